//! Text of composed layouts. Law: the printed text parses to the same value.
//!
//! ```text
//! composed := map { 'o' offset 'o' map } 'o' offset 'o' layout        also with `∘`
//! map      := layout | S<bits,base,shift> | F2<outputs>[column,..]
//! offset   := a number, or a nested coordinate of the map before it
//! ```

use core::fmt;
use core::str::FromStr;

use super::{Composed, InnerValue, OuterMap};
use crate::coordinate::Coordinate;
use crate::ground::words::debug_as_text;
use crate::limits::MAX_CHAIN;
use crate::refusal::error::{LayoutError, Limit};
use crate::symbolic::{Declarations, Expr};
use crate::value::layout::Layout;
use crate::value::number::Extent;
use crate::value::tree::Tree;

/// A type of values whose composed layouts have a text.
pub trait PlaceText: InnerValue {
    /// The declarations of names in the text.
    type Names;

    /// Gathers the declarations in a text.
    fn names(text: &str) -> Result<Self::Names, LayoutError>;

    /// Parses an outer layout.
    fn outer(names: &Self::Names, text: &str) -> Result<Layout<Self::Extent>, LayoutError>;

    /// Parses an offset.
    fn tree(names: &Self::Names, text: &str) -> Result<Tree<Self::Extent>, LayoutError>;

    /// Parses an inner layout.
    fn inner(names: &Self::Names, text: &str) -> Result<Layout<Self>, LayoutError>;
}

macro_rules! read_by_parse {
    () => {
        type Names = ();

        fn names(_: &str) -> Result<(), LayoutError> {
            Ok(())
        }

        fn outer(_: &(), text: &str) -> Result<Layout<Self::Extent>, LayoutError> {
            text.parse()
        }

        fn tree(_: &(), text: &str) -> Result<Tree<Self::Extent>, LayoutError> {
            text.parse()
        }

        fn inner(_: &(), text: &str) -> Result<Layout<Self>, LayoutError> {
            text.parse()
        }
    };
}

impl PlaceText for i64 {
    read_by_parse!();
}

impl PlaceText for Coordinate {
    read_by_parse!();
}

macro_rules! read_by_names {
    ($inner:ident) => {
        type Names = Declarations;

        fn names(text: &str) -> Result<Declarations, LayoutError> {
            names(text)
        }

        fn outer(names: &Declarations, text: &str) -> Result<Layout<Expr>, LayoutError> {
            names.layout(text)
        }

        fn tree(names: &Declarations, text: &str) -> Result<Tree<Expr>, LayoutError> {
            names.tree(text)
        }

        fn inner(names: &Declarations, text: &str) -> Result<Layout<Self>, LayoutError> {
            names.$inner(text)
        }
    };
}

impl PlaceText for Expr {
    read_by_names!(layout);
}

impl PlaceText for Coordinate<Expr> {
    read_by_names!(coordinate_layout);
}

/// The declarations of names in a whole text.
fn names(text: &str) -> Result<Declarations, LayoutError> {
    let mut names = Declarations::new();
    let mut rest = text;
    while let Some((part, after)) = split(rest) {
        // A swizzle declares no facts.
        if !is_bit_map(part) {
            names.gather(part)?;
        }
        rest = after;
    }
    names.gather(rest)?;
    Ok(names)
}

/// The texts before and after the first `o` or `∘`; an `o` in a name does not count.
fn split(text: &str) -> Option<(&str, &str)> {
    let in_name = |c: char| c.is_ascii_alphabetic() || c == '_';
    // Whether the text before the current position ends with a name, and its last character.
    let (mut word, mut before) = (false, None);
    for (at, c) in text.char_indices() {
        let after = at + c.len_utf8();
        let next = text.get(after..).and_then(|rest| rest.chars().next());
        if c == '∘' || (c == 'o' && !word && !before.is_some_and(in_name) && !next.is_some_and(in_name)) {
            return Some((text.get(..at)?, text.get(after..)?));
        }
        word = (word && c.is_ascii_digit()) || in_name(c);
        before = Some(c);
    }
    None
}

fn is_bit_map(text: &str) -> bool {
    let text = text.trim_start();
    ["S<", "Sw<", "SW_", "F2<"].iter().any(|start| text.starts_with(start))
}

/// An error in a part of a text, with its position in the whole text.
fn placed(error: LayoutError, start: usize) -> LayoutError {
    match error {
        LayoutError::Syntax { at, expected } => LayoutError::Syntax { at: at + start, expected },
        other => other,
    }
}

const MISSING: LayoutError =
    LayoutError::Syntax { at: 0, expected: "'o': a composed layout is outer o offset o layout" };

/// A text `A o offset o .. o B`, parsed up to the last offset.
struct ComposedText<'a, D: InnerValue> {
    outer: Option<OuterMap<D::Extent>>,
    /// The text of the last offset, and its position.
    offset: Option<(&'a str, usize)>,
    /// The text of the last part, and its position.
    last: (&'a str, usize),
}

impl<'a, D: PlaceText> ComposedText<'a, D> {
    fn read(names: &D::Names, text: &'a str) -> Result<ComposedText<'a, D>, LayoutError> {
        let mut parts = ComposedText { outer: None, offset: None, last: (text, 0) };
        let mut maps = 1;
        while let Some((map, after)) = split(parts.last.0) {
            let map = ComposedText::<D>::map(names, map).map_err(|error| placed(error, parts.last.1))?;
            parts.outer = Some(parts.extended(names, map)?);
            let begin = text.len() - after.len();
            let Some((offset, after)) = split(after) else { return Err(placed(MISSING, text.len())) };
            maps += 1;
            if maps > MAX_CHAIN + 1 {
                return Err(LayoutError::TooLarge { limit: Limit::Chain, value: maps });
            }
            parts.offset = Some((offset, begin));
            parts.last = (after, text.len() - after.len());
        }
        Ok(parts)
    }

    fn map(names: &D::Names, text: &str) -> Result<OuterMap<D::Extent>, LayoutError> {
        Ok(match text.trim_start().as_bytes().first() {
            Some(b'S') if is_bit_map(text) => OuterMap::Swizzle(text.parse()?),
            Some(b'F') if is_bit_map(text) => OuterMap::Bits(text.parse()?),
            _ => OuterMap::Layout(D::outer(names, text)?),
        })
    }

    /// The maps so far, followed by one more map after the last offset.
    fn extended(&mut self, names: &D::Names, map: OuterMap<D::Extent>) -> Result<OuterMap<D::Extent>, LayoutError> {
        let (Some(outer), Some((offset, begin))) = (self.outer.take(), self.offset.take()) else { return Ok(map) };
        let tree = D::tree(names, offset).map_err(|error| placed(error, begin))?;
        match (tree.leaves(), tree.is_leaf()) {
            ([offset], true) => Ok(OuterMap::chain(outer, offset.clone(), map)),
            _ => Err(LayoutError::Syntax { at: begin, expected: "an offset, one integer" }),
        }
    }
}

impl<N: Extent + PlaceText> FromStr for OuterMap<N> {
    type Err = LayoutError;

    /// Parses a swizzle, a bit matrix or a layout, or a chain `outer o offset o map`, with `o` or
    /// `∘`.
    fn from_str(text: &str) -> Result<OuterMap<N>, LayoutError> {
        let names = N::names(text)?;
        let mut parts = ComposedText::<N>::read(&names, text)?;
        let (last, begin) = parts.last;
        let last = ComposedText::<N>::map(&names, last).map_err(|error| placed(error, begin))?;
        parts.extended(&names, last)
    }
}

impl<D: PlaceText> FromStr for Composed<D> {
    type Err = LayoutError;

    /// Parses `A o offset o B`, with `o` or `∘`. `A` is a swizzle, a bit matrix, a layout, or a
    /// chain of these with offsets in between.
    fn from_str(text: &str) -> Result<Composed<D>, LayoutError> {
        let names = D::names(text)?;
        let parts = ComposedText::<D>::read(&names, text)?;
        let (Some(outer), Some((offset, begin))) = (parts.outer, parts.offset) else {
            return Err(placed(MISSING, text.len()));
        };
        let tree = D::tree(&names, offset).map_err(|error| placed(error, begin))?;
        let syntax =
            LayoutError::Syntax { at: begin, expected: "an offset: one integer, or a coordinate of the outer layout" };
        let offset = D::of_offset_tree(&tree).ok_or(syntax)?;
        let (inner, begin) = parts.last;
        Composed::new(outer, offset, D::inner(&names, inner).map_err(|error| placed(error, begin))?)
    }
}

impl<D: InnerValue> fmt::Display for Composed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The constructor refuses an offset that does not fit.
        let offset = self.offset.offset_tree(&self.outer).map_err(|_| fmt::Error)?;
        write!(f, "{} o {} o {}", self.outer, offset, self.inner)
    }
}

debug_as_text!(Composed<D: InnerValue>);

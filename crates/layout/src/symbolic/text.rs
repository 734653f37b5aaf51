//! Parsing of expressions, and of trees, layouts and tilers of them.
//!
//! The grammar is in `text/grammar.rs`. In a tree, a parenthesis at the start of a leaf opens a
//! tuple. `mod(a,b)` is the remainder of `floor(a/b)`, `rem(a,b)` that of `a/b`.
//!
//! A name is positive unless its facts include `int` or a `min`. So is `?`, except in a stride,
//! where it is any integer, because the sign of an unknown stride is unknown, too. The facts of a
//! name apply to the whole text that contains them, whatever their position.

mod grammar;

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;

use super::expression::Expr;
use super::parameter::{Facts, Parameter};
use crate::coordinate::Coordinate;
use crate::refusal::error::LayoutError;
use crate::text::reading::Cursor;
use crate::tile::tiler::{Tiler, read_tiler};
use crate::value::coord::{Coord, Slot};
use crate::value::layout::Layout;
use crate::value::profile::Profile;
use crate::value::tree::Tree;

/// The names in a text or a program, and the facts about each.
///
/// All facts about a name hold, wherever they are declared.
///
/// ```
/// use tilewright_layout::symbolic::Declarations;
///
/// let mut names = Declarations::new();
/// names.gather("(M{div=64},K):(K,1)").unwrap();
/// names.gather("M{max=4096}").unwrap();
/// let tile = names.expr("M/64").unwrap();
/// assert_eq!(tile.range(), (Some(1), Some(64)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Declarations {
    names: BTreeMap<String, Parameter>,
}

impl Declarations {
    /// An empty set of names.
    pub fn new() -> Declarations {
        Declarations::default()
    }

    /// Declares a name, or adds facts to it.
    ///
    /// Errors: the name is not valid; no value has all its facts ([`LayoutError::Argument`]).
    pub fn declare(&mut self, name: &str, facts: Facts) -> Result<(), LayoutError> {
        let facts = match self.names.get(name) {
            Some(before) => before.facts().and(facts)?,
            None => facts,
        };
        self.names.insert(name.to_string(), Parameter::named(name, facts)?);
        Ok(())
    }

    /// Declares every name that has facts in a text, such as `M{div=128}`. The text need not be a
    /// value.
    ///
    /// Errors: the facts of a name cannot be read ([`LayoutError::Syntax`]); as
    /// [`Declarations::declare`].
    pub fn gather(&mut self, text: &str) -> Result<(), LayoutError> {
        let mut cursor = Cursor::new(text);
        while let Some(byte) = cursor.peek() {
            if byte.is_ascii_alphabetic() {
                let name = cursor.name();
                if cursor.peek() == Some(b'{') {
                    let facts = cursor.facts(Facts::positive())?;
                    self.declare(name, facts)?;
                }
            } else if byte.is_ascii_digit() || byte == b'_' {
                // Digits with letters, such as 0x40, are not names.
                cursor.word();
            } else {
                cursor.at += 1;
            }
        }
        Ok(())
    }

    /// The parameter with this name: as declared, or positive if it is not declared.
    ///
    /// Errors: the name is not valid.
    pub fn parameter(&self, name: &str) -> Result<Parameter, LayoutError> {
        match self.names.get(name) {
            Some(parameter) => Ok(parameter.clone()),
            None => Parameter::named(name, Facts::positive()),
        }
    }

    /// Parses an expression.
    pub fn expr(&self, text: &str) -> Result<Expr, LayoutError> {
        let mut cursor = Cursor::new(text);
        let expr = cursor.sum(self, Facts::positive(), 0)?;
        cursor.end()?;
        Ok(expr)
    }

    /// Parses a tree of expressions in which a `?` is positive.
    pub fn tree(&self, text: &str) -> Result<Tree<Expr>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let tree = self.subtree(&mut cursor, Facts::positive())?;
        cursor.end()?;
        Ok(tree)
    }

    fn subtree(&self, cursor: &mut Cursor<'_>, unknown: Facts) -> Result<Tree<Expr>, LayoutError> {
        let (nodes, leaves) = cursor.tree_of(|cursor| cursor.sum(self, unknown, 0))?;
        Ok(Tree::from_parts(Profile::from_nodes(nodes), leaves))
    }

    /// Parses a coordinate. A `?` in it is any integer.
    pub fn coord(&self, text: &str) -> Result<Coord<Expr>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let (nodes, leaves) = cursor.tree_of(|cursor| match cursor.underscore() {
            true => Ok(Slot::All),
            false => cursor.sum(self, Facts::integer(), 0).map(Slot::At),
        })?;
        cursor.end()?;
        Ok(Tree::from_parts(Profile::from_nodes(nodes), leaves))
    }

    /// Parses a layout; the strides default to compact, first mode fastest.
    pub fn layout(&self, text: &str) -> Result<Layout<Expr>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let shape = self.subtree(&mut cursor, Facts::positive())?;
        if !cursor.eat(b':') {
            cursor.end()?;
            return Layout::compact(&shape);
        }
        let stride = self.subtree(&mut cursor, Facts::integer())?;
        cursor.end()?;
        Layout::new(&shape, &stride)
    }

    /// Parses a layout of coordinates: strides such as `1@0` or `M@1`.
    ///
    /// ```
    /// use tilewright_layout::symbolic::Declarations;
    ///
    /// let layout = Declarations::new().coordinate_layout("(4,M):(1@0,2*K@1)").unwrap();
    /// assert_eq!(layout.to_string(), "(4,M):(1@0,2*K@1)");
    /// ```
    pub fn coordinate_layout(&self, text: &str) -> Result<Layout<Coordinate<Expr>>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let shape = self.subtree(&mut cursor, Facts::positive())?;
        cursor.expect(b':', "':' and the strides")?;
        let stride = self.steps(&mut cursor)?;
        cursor.end()?;
        Layout::new(&shape, &stride)
    }

    /// Parses a tuple of coordinate steps.
    pub fn coordinate_steps(&self, text: &str) -> Result<Tree<Coordinate<Expr>>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let steps = self.steps(&mut cursor)?;
        cursor.end()?;
        Ok(steps)
    }

    fn steps(&self, cursor: &mut Cursor<'_>) -> Result<Tree<Coordinate<Expr>>, LayoutError> {
        let (nodes, leaves) = cursor.tree_of(|cursor| cursor.step_sum(self))?;
        Ok(Tree::from_parts(Profile::from_nodes(nodes), leaves))
    }

    /// Parses a tiler.
    pub fn tiler(&self, text: &str) -> Result<Tiler<Expr>, LayoutError> {
        read_tiler(text, &|value, strides| match strides {
            true => self.layout(value).map(Tiler::Layout),
            false => Tiler::from_shape(&self.tree(value)?),
        })
    }
}

fn overflow() -> LayoutError {
    LayoutError::overflow("parse")
}

/// Parses a text with only the facts that it declares itself.
fn read<T>(text: &str, read: impl FnOnce(&Declarations, &str) -> Result<T, LayoutError>) -> Result<T, LayoutError> {
    let mut names = Declarations::new();
    names.gather(text)?;
    read(&names, text)
}

/// Texts that are parsed alone: each type by its method of [`Declarations`].
macro_rules! read_alone {
    ($($kind:ty, $method:ident;)*) => {
        $(
            impl FromStr for $kind {
                type Err = LayoutError;

                fn from_str(text: &str) -> Result<$kind, LayoutError> {
                    read(text, Declarations::$method)
                }
            }
        )*
    };
}

read_alone! {
    Expr, expr;
    Tree<Expr>, tree;
    Coord<Expr>, coord;
    Layout<Expr>, layout;
    Tiler<Expr>, tiler;
}

impl FromStr for Facts {
    type Err = LayoutError;

    /// Parses `div=128,max=4096`. The value is positive unless `int` or a `min` is among the facts.
    fn from_str(text: &str) -> Result<Facts, LayoutError> {
        Cursor::new(text).facts_until(Facts::positive(), None)
    }
}

/// Adds the facts of each name at its first occurrence in a text.
pub(super) fn with_facts(text: &str, parameters: &[Parameter]) -> String {
    let mut out = String::new();
    let mut missing: Vec<&Parameter> = parameters.iter().collect();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
        let length = match first {
            // Text in braces is not a name.
            '{' => rest.find('}').map_or(rest.len(), |end| end + 1),
            first if word(first) => rest.find(|byte| !word(byte)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match missing.iter().position(|parameter| parameter.name() == Some(token)) {
            // A word before a bracket is a function or a swizzle.
            Some(place) if !after.starts_with(['(', '<']) => {
                out.push_str(&alloc::format!("{:#}", missing.swap_remove(place)))
            }
            _ => out.push_str(token),
        }
        rest = after;
    }
    out
}

//! Parsing of trees and layouts. Law: the printed text parses to the same value.
//!
//! ```text
//! layout  := tree [ ':' tree ]          the strides default to compact, first mode fastest
//! tree    := leaf | '(' [ tree { ',' tree } [ ',' ] ] ')'
//! integer := [ '-' | '_' ] digits       `_4` is CuTe's print of a static 4; `0x40` and `1_024` are integers too
//! ```
//!
//! Spaces and tabs are allowed between tokens. This is the grammar of values only, for `FromStr`;
//! the notation crate parses expressions over values.
//!
//! The type of a leaf determines its text ([`Literal`]): an integer, an index or `_`, a step such
//! as `3@1`, or `*` in a profile. So one parser handles trees of all types, and [`LayoutLiteral`]
//! handles layouts and tilers.

use core::str::FromStr;

use smallvec::SmallVec;

use crate::limits::{MAX_DEPTH, MAX_NODES};
use crate::refusal::error::{LayoutError, Limit};
use crate::value::coord::Slot;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Stride;
use crate::value::profile::{LEAF, Nodes, Profile};
use crate::value::tree::{Leaves, Tree};

/// A type of leaf that can be parsed.
///
/// Law: `read` parses the printed text of a leaf to the same leaf, and reads no further.
pub trait Literal: Sized {
    /// Parses the leaf that begins at the next byte; spaces before it have been skipped.
    ///
    /// Errors: no such leaf begins there ([`LayoutError::Syntax`]).
    fn read(text: &mut Cursor<'_>) -> Result<Self, LayoutError>;

    /// Refuses leaves that cannot be in the same tree.
    #[inline(always)]
    fn check(_tree: &Tree<Self>) -> Result<(), LayoutError> {
        Ok(())
    }
}

/// A type of stride whose layouts can be parsed.
pub trait LayoutLiteral: Literal + Stride<Extent: Literal> {
    /// The stride that equals an index; None if the type has no integers. It is used for a shape
    /// without strides, and for an extent in a tiler.
    fn of_index(index: Self::Extent) -> Option<Self>;

    /// Parses a layout.
    #[inline]
    fn layout(text: &str) -> Result<Layout<Self>, LayoutError> {
        any_layout(text)
    }
}

/// A text, and the position up to which it has been parsed.
pub struct Cursor<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text: text.as_bytes(), at: 0 }
    }

    /// The byte offset in the text.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The next byte after spaces and tabs, which are skipped; None at the end.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Skips `byte`, and spaces and tabs before it, if it is the next byte. Returns whether it was.
    #[inline]
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// A syntax error at this position; `expected` is in words.
    #[cold]
    pub fn fail<T>(&self, expected: &'static str) -> Result<T, LayoutError> {
        Err(LayoutError::Syntax { at: self.at, expected })
    }

    /// Parses an integer: decimal or hexadecimal, with `-` or `_` before it and `_` between digits.
    ///
    /// Errors: no integer begins here, or it does not fit in 64 bits.
    #[inline]
    pub fn integer(&mut self) -> Result<i64, LayoutError> {
        let start = self.at;
        let mut at = start;
        let negative = self.text.get(at) == Some(&b'-');
        at += usize::from(negative || self.text.get(at) == Some(&b'_'));
        let first = at;
        let mut value: i64 = 0;
        while let Some(digit) = self.text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            // Eighteen digits always fit; longer numbers need overflow checks.
            if at - first >= 18 {
                return self.long_integer(start);
            }
            value = value * 10 + i64::from(digit);
            at += 1;
        }
        if at == first || matches!(self.text.get(at), Some(b'_' | b'x' | b'X')) {
            return self.long_integer(start);
        }
        self.at = at;
        Ok(if negative { -value } else { value })
    }

    /// Parses integers with separators, hexadecimal integers, and integers near the limit.
    #[cold]
    fn long_integer(&mut self, start: usize) -> Result<i64, LayoutError> {
        self.at = start;
        let negative = self.text.get(self.at) == Some(&b'-');
        self.at += usize::from(negative || self.text.get(self.at) == Some(&b'_'));
        let radix: i64 = match self.text.get(self.at..self.at + 2) {
            Some(b"0x" | b"0X") => 16,
            _ => 10,
        };
        self.at += if radix == 16 { 2 } else { 0 };
        let mut value: i64 = 0;
        let mut digits = 0;
        while let Some(byte) = self.text.get(self.at) {
            if *byte == b'_' && digits > 0 {
                self.at += 1;
                continue;
            }
            let Some(digit) = char::from(*byte).to_digit(radix as u32) else { break };
            let next = value.checked_mul(radix).and_then(|value| {
                let digit = i64::from(digit);
                if negative { value.checked_sub(digit) } else { value.checked_add(digit) }
            });
            let Some(next) = next else {
                self.at = start;
                return self.fail("an integer that fits in 64 bits");
            };
            value = next;
            digits += 1;
            self.at += 1;
        }
        if digits == 0 {
            self.at = start;
            return self.fail("an integer or '('");
        }
        Ok(value)
    }

    /// Parses a mode number.
    pub(crate) fn mode(&mut self) -> Result<usize, LayoutError> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                let (at, mode) = (self.at, self.integer()?);
                usize::try_from(mode).map_err(|_| LayoutError::Syntax { at, expected: "a mode number" })
            }
            _ => self.fail("a mode number"),
        }
    }

    /// Whether `_` comes next and is not the beginning of an index such as `_4`.
    fn eat_open(&mut self) -> bool {
        let found = self.peek() == Some(b'_') && !self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn tree<T: Literal>(&mut self) -> Result<(Nodes, Leaves<T>), LayoutError> {
        self.tree_of(T::read)
    }

    /// Parses a tree; `leaf` parses each leaf.
    #[inline]
    pub(crate) fn tree_of<T>(
        &mut self,
        leaf: impl Fn(&mut Cursor<'a>) -> Result<T, LayoutError>,
    ) -> Result<(Nodes, Leaves<T>), LayoutError> {
        let mut nodes = Nodes::new();
        let mut leaves = Leaves::new();
        let mut open: SmallVec<[usize; 16]> = SmallVec::new();
        loop {
            // The position is at the start of an item.
            match self.peek() {
                Some(b'(') => {
                    if open.len() == MAX_DEPTH {
                        return Err(LayoutError::TooLarge { limit: Limit::Depth, value: MAX_DEPTH + 1 });
                    }
                    self.at += 1;
                    open.push(nodes.len());
                    nodes.push(1);
                    if self.peek() != Some(b')') {
                        continue;
                    }
                }
                Some(_) => {
                    leaves.push(leaf(self)?);
                    nodes.push(0);
                }
                None => return self.fail("an integer or '('"),
            }
            if nodes.len() > MAX_NODES {
                return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: nodes.len() });
            }
            // The position is at the end of an item: closing parentheses end tuples until a comma
            // begins the next item.
            loop {
                let Some(start) = open.last().copied() else { return Ok((nodes, leaves)) };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if self.peek() != Some(b')') {
                            break;
                        }
                    }
                    Some(b')') => {}
                    _ => return self.fail("',' or ')'"),
                }
                self.at += 1;
                nodes[start] = (nodes.len() - start) as u16;
                open.pop();
            }
        }
    }

    pub(crate) fn end(&mut self) -> Result<(), LayoutError> {
        if self.peek().is_some() { self.fail("the end of the text") } else { Ok(()) }
    }
}

impl Literal for i64 {
    #[inline]
    fn read(text: &mut Cursor<'_>) -> Result<i64, LayoutError> {
        text.integer()
    }
}

impl<N: Literal> Literal for Slot<N> {
    /// Parses an index or `_`.
    fn read(text: &mut Cursor<'_>) -> Result<Slot<N>, LayoutError> {
        if text.eat_open() { Ok(Slot::All) } else { N::read(text).map(Slot::At) }
    }
}

impl<T: Literal> FromStr for Tree<T> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Tree<T>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let (nodes, leaves) = cursor.tree()?;
        cursor.end()?;
        let tree = Tree::from_parts(Profile::from_nodes(nodes), leaves);
        T::check(&tree)?;
        Ok(tree)
    }
}

impl FromStr for Profile {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Profile, LayoutError> {
        let mut cursor = Cursor::new(text);
        let (nodes, _) = cursor.tree_of(|cursor| if cursor.eat(b'*') { Ok(()) } else { cursor.fail("'*' or '('") })?;
        cursor.end()?;
        Ok(Profile::from_nodes(nodes))
    }
}

impl<D: LayoutLiteral> FromStr for Layout<D> {
    type Err = LayoutError;

    #[inline]
    fn from_str(text: &str) -> Result<Layout<D>, LayoutError> {
        D::layout(text)
    }
}

impl LayoutLiteral for i64 {
    #[inline]
    fn of_index(index: i64) -> Option<i64> {
        Some(index)
    }

    fn layout(text: &str) -> Result<Layout, LayoutError> {
        // The result is written to its final location, because moving it is costly.
        let mut leaves = [Leaf { extent: 0, stride: 0 }; PLAIN.1];
        let mut nodes = [LEAF; PLAIN.0];
        match plain_layout(text.as_bytes(), &mut nodes, &mut leaves) {
            Some((node, leaf)) => {
                let profile = Profile::from_nodes(Nodes::from_buf_and_len(nodes, node));
                Ok(Layout::from_valid(Tree::from_parts(profile, Leaves::from_buf_and_len(leaves, leaf))))
            }
            None => any_layout(text),
        }
    }
}

/// The most nodes and the most leaves of a layout that [`plain_layout`] parses; such a layout needs
/// no heap.
const PLAIN: (usize, usize) = (16, 8);

/// Marks the end of a text; UTF-8 does not contain this byte.
const END: u8 = 0xff;

/// Parses a small layout in its printed form: no spaces, decimal integers of up to eleven digits,
/// both shape and strides, and no empty tuple. [`any_layout`] handles all other texts, and all
/// errors. Returns the numbers of nodes and leaves.
#[inline(always)]
fn plain_layout(text: &[u8], nodes: &mut [u16; PLAIN.0], leaves: &mut [Leaf; PLAIN.1]) -> Option<(usize, usize)> {
    let mut bytes = text.iter();
    let mut next = || bytes.next().copied().unwrap_or(END);
    // A tree is encoded in bits: a tuple is 1, its modes, 0; a leaf is 10, which is unambiguous
    // because empty tuples do not occur. A leading 1 precedes all bits. Sixteen nodes need 33 bits.
    let mut shape = 1_u64;
    // The first nodes of the open tuples, four bits each, the innermost lowest, with a 1 above
    // them. With sixteen open tuples the 1 is lost, but then no node is left for a leaf.
    let mut open = 1_u64;
    let (mut node, mut leaf, mut size) = (0, 0, 1_i64);
    loop {
        let mut byte = next();
        while byte == b'(' {
            *nodes.get_mut(node)? = 1;
            open = open << 4 | node as u64;
            shape = shape << 1 | 1;
            node += 1;
            byte = next();
        }
        let extent;
        (extent, byte) = plain_integer(byte, &mut next)?;
        leaves.get_mut(leaf)?.extent = extent;
        nodes.get(node)?;
        size = size.checked_mul(extent).filter(|size| *size > 0)?;
        leaf += 1;
        node += 1;
        shape = shape << 2 | 2;
        while byte == b')' && open > 1 {
            let begin = (open & 15) as usize;
            nodes[begin] = (node - begin) as u16;
            open >>= 4;
            shape <<= 1;
            byte = next();
        }
        match byte {
            b',' if open > 1 => {}
            b':' if open == 1 => break,
            _ => return None,
        }
    }
    // These bits may overflow, but then they differ from those of the shape: a 0 follows a 1 only
    // in leaves, there are as many leaves as in the shape, and the zeros above the bits of the
    // shape would have to follow a 1 that overflowed.
    let mut strides = 1_u64;
    for place in leaves.iter_mut().take(leaf) {
        let mut byte = next();
        while byte == b'(' {
            strides = strides << 1 | 1;
            byte = next();
        }
        let negative = byte == b'-';
        if negative {
            byte = next();
        }
        let stride;
        (stride, byte) = plain_integer(byte, &mut next)?;
        place.stride = if negative { -stride } else { stride };
        strides = strides << 2 | 2;
        while byte == b')' {
            strides <<= 1;
            byte = next();
        }
        if byte != b',' {
            return (byte == END && strides == shape).then_some((node, leaf));
        }
    }
    None
}

/// Parses the decimal integer that begins with the digit `byte`; also returns the byte after it.
#[inline(always)]
fn plain_integer(byte: u8, next: &mut impl FnMut() -> u8) -> Option<(i64, u8)> {
    let mut digit = byte.wrapping_sub(b'0');
    if digit > 9 {
        return None;
    }
    let mut value = 0;
    loop {
        value = value * 10 + i64::from(digit);
        let byte = next();
        digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Some((value, byte));
        }
        if value > i64::from(u32::MAX / 2) {
            return None;
        }
    }
}

/// Parses a layout in any of its spellings.
#[inline(never)]
fn any_layout<D: LayoutLiteral>(text: &str) -> Result<Layout<D>, LayoutError> {
    let mut cursor = Cursor::new(text);
    let (nodes, extents) = cursor.tree::<D::Extent>()?;
    let profile = Profile::from_nodes(nodes);
    if !cursor.eat(b':') {
        cursor.end()?;
        let compact = Layout::compact(&Tree::from_parts(profile, extents))?;
        let strides = compact.tree().try_map(|leaf| {
            let stride = D::of_index(leaf.stride.clone()).ok_or(())?;
            Ok(Leaf { extent: leaf.extent.clone(), stride })
        });
        return strides.map(Layout::from_valid).or_else(|()| cursor.fail("':' and the strides"));
    }
    let (stride_nodes, strides) = cursor.tree::<D>()?;
    cursor.end()?;
    Layout::from_columns(profile, &extents, Profile::from_nodes(stride_nodes), &strides)
}

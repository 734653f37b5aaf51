//! Text of trees and layouts: what is printed reads back as the same value.
//!
//! ```text
//! layout  := tree [ ':' tree ]          the strides default to compact, first mode fastest
//! tree    := integer | '(' [ tree { ',' tree } [ ',' ] ] ')'
//! profile := '*' | '(' [ profile { ',' profile } [ ',' ] ] ')'
//! coord   := integer | '_' | '(' [ coord { ',' coord } [ ',' ] ] ')'
//! integer := [ '-' | '_' ] digits       `_4` is CuTe's print of a static 4; `0x40` and `1_024` are integers too
//! ```
//!
//! Spaces and tabs may stand between tokens. This is the grammar of values alone, for `FromStr`; expressions over them are
//! read by the notation crate.

use core::fmt;
use core::str::FromStr;

use smallvec::SmallVec;

use crate::coord::Slot;
use crate::error::{LayoutError, Limit};
use crate::layout::{Layout, Leaf};
use crate::profile::{LEAF, MAX_DEPTH, MAX_NODES, Nodes, Profile, ProfileRef};
use crate::tree::{Leaves, Tree};

/// Writes the parentheses and commas of a profile, and each leaf by `leaf(f, number)`.
pub(crate) fn write_tree(
    f: &mut fmt::Formatter<'_>,
    profile: ProfileRef<'_>,
    mut leaf: impl FnMut(&mut fmt::Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    let mut ends: SmallVec<[usize; 8]> = SmallVec::new();
    let mut leaves = 0;
    let mut after = false;
    for (position, node) in profile.nodes().iter().enumerate() {
        while ends.last().is_some_and(|end| *end <= position) {
            ends.pop();
            f.write_str(")")?;
            after = true;
        }
        if after {
            f.write_str(",")?;
        }
        if *node == 0 {
            leaf(f, leaves)?;
            leaves += 1;
            after = true;
        } else {
            ends.push(position + usize::from(*node));
            f.write_str("(")?;
            after = false;
        }
    }
    for _ in ends {
        f.write_str(")")?;
    }
    Ok(())
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text: text.as_bytes(), at: 0 }
    }

    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    #[cold]
    fn fail<T>(&self, expected: &'static str) -> Result<T, LayoutError> {
        Err(LayoutError::Syntax { at: self.at, expected })
    }

    #[inline]
    fn integer(&mut self) -> Result<i64, LayoutError> {
        let start = self.at;
        let mut at = start;
        let negative = self.text.get(at) == Some(&b'-');
        at += usize::from(negative || self.text.get(at) == Some(&b'_'));
        let first = at;
        let mut value: i64 = 0;
        while let Some(digit) = self.text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            // Eighteen digits always fit; longer ones are read with care.
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

    /// Integers with separators, in hexadecimal, or near the limit.
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

    /// An index or `_`; `_4` is the index 4.
    fn slot(&mut self) -> Result<Slot, LayoutError> {
        if self.peek() == Some(b'_') && !self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
            return Ok(Slot::All);
        }
        Ok(Slot::At(self.integer()?))
    }

    #[inline]
    fn tree(&mut self) -> Result<(Nodes, Leaves<i64>), LayoutError> {
        self.tree_of(Cursor::integer)
    }

    /// A tree whose leaves are read by `leaf`.
    #[inline]
    fn tree_of<T>(
        &mut self,
        leaf: impl Fn(&mut Cursor<'a>) -> Result<T, LayoutError>,
    ) -> Result<(Nodes, Leaves<T>), LayoutError> {
        let mut nodes = Nodes::new();
        let mut leaves = Leaves::new();
        let mut open: SmallVec<[usize; 16]> = SmallVec::new();
        loop {
            // At the start of an item.
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
            // At the end of an item: close what closes, until a comma starts the next.
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

    fn end(&mut self) -> Result<(), LayoutError> {
        if self.peek().is_some() { self.fail("the end of the text") } else { Ok(()) }
    }
}

impl FromStr for Tree<i64> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Tree<i64>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let (nodes, leaves) = cursor.tree()?;
        cursor.end()?;
        Ok(Tree::from_parts(Profile::from_nodes(nodes), leaves))
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

impl FromStr for Tree<Slot> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Tree<Slot>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let (nodes, leaves) = cursor.tree_of(Cursor::slot)?;
        cursor.end()?;
        Ok(Tree::from_parts(Profile::from_nodes(nodes), leaves))
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    #[inline]
    fn from_str(text: &str) -> Result<Layout, LayoutError> {
        match plain_layout(text.as_bytes()) {
            Some(layout) => Ok(layout),
            None => any_layout(text),
        }
    }
}

/// The marks of a shape: what follows in the text of its strides, `0` for a number.
const MARKS: usize = 64;

/// A layout as it is printed: no spaces, decimal integers, both shape and strides, no empty tuple. Anything else, errors
/// included, is left to [`any_layout`].
#[inline]
fn plain_layout(text: &[u8]) -> Option<Layout> {
    let mut layout = Layout::blank();
    let (nodes, leaves) = layout.parts_mut();
    let mut marks = [0_u8; MARKS];
    let (mut count, mut at, mut depth, mut size) = (0, 0, 0, 1_i64);
    let mut open = [0_usize; 8];
    let mut mark = |byte: u8| {
        *marks.get_mut(count)? = byte;
        count += 1;
        Some(())
    };
    loop {
        let byte = *text.get(at)?;
        if byte == b'(' {
            mark(b'(')?;
            at += 1;
            *open.get_mut(depth)? = nodes.len();
            depth += 1;
            nodes.push(1);
            continue;
        }
        let extent = plain_integer(text, &mut at)?;
        size = size.checked_mul(extent).filter(|_| extent > 0)?;
        mark(b'0')?;
        nodes.push(LEAF);
        leaves.push(Leaf { extent, stride: 0 });
        loop {
            let byte = *text.get(at)?;
            at += 1;
            mark(byte)?;
            if byte == b')' && depth > 0 {
                depth -= 1;
                let begin = *open.get(depth)?;
                *nodes.get_mut(begin)? = (nodes.len() - begin) as u16;
            } else if byte == b',' && depth > 0 {
                break;
            } else if byte == b':' && depth == 0 {
                let marks = marks.get(..count - 1)?;
                let mut leaves = leaves.iter_mut();
                for mark in marks {
                    if *mark == b'0' {
                        leaves.next()?.stride = plain_integer(text, &mut at)?;
                    } else if text.get(at) == Some(mark) {
                        at += 1;
                    } else {
                        return None;
                    }
                }
                return (at == text.len()).then_some(layout);
            } else {
                return None;
            }
        }
    }
}

/// A decimal integer of at most eighteen digits.
#[inline(always)]
fn plain_integer(text: &[u8], at: &mut usize) -> Option<i64> {
    let negative = text.get(*at) == Some(&b'-');
    let first = *at + usize::from(negative);
    let mut end = first;
    let mut value: i64 = 0;
    while let Some(digit) = text.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        end += 1;
    }
    if end == first || end > first + 18 {
        return None;
    }
    *at = end;
    Some(if negative { -value } else { value })
}

/// A layout in any of its spellings.
#[inline(never)]
fn any_layout(text: &str) -> Result<Layout, LayoutError> {
    let mut cursor = Cursor::new(text);
    let (nodes, extents) = cursor.tree()?;
    if !cursor.eat(b':') {
        cursor.end()?;
        return Layout::compact(&Tree::from_parts(Profile::from_nodes(nodes), extents));
    }
    let (stride_nodes, strides) = cursor.tree()?;
    cursor.end()?;
    Layout::from_columns(Profile::from_nodes(nodes), &extents, Profile::from_nodes(stride_nodes), &strides)
}

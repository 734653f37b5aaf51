//! Descriptors: the strides of a layout as a list of basis steps, such as `((1@0,8@1),1@2)`.
//!
//! ```text
//! descriptor := '(' [ entry { ',' entry } ] ')'
//! entry      := descriptor | count '@' mode { '@' mode } | '0'
//! count      := integer [ '/' integer ]
//! ```
//!
//! Law: an entry is `count` steps in the mode whose path it names, innermost mode first. A count
//! may be written as a fraction, but must be an integer: `4/2@0` is `2@0`, and `1/2@0` is refused,
//! with its position in the text. The result is a tree of strides in lowest terms, and the printed
//! text parses to the same tree; the zero of any mode prints as `0`.
//!
//! An entry with its count and denominator exists only during parsing.

use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use super::{Coordinate, ModePath};
use crate::refusal::error::LayoutError;
use crate::text::reading::{Cursor, Literal};
use crate::value::profile::Profile;
use crate::value::tree::Tree;

/// The strides that a descriptor such as `((1@0,8@1),1@2)` represents.
///
/// ```
/// use tilewright_layout::Descriptor;
///
/// let descriptor: Descriptor = "((4/2@0, 8@1), 1@0@2)".parse().unwrap();
/// assert_eq!(descriptor.to_string(), "((2@0,8@1),1@0@2)");
/// assert_eq!(descriptor.strides().rank(), 2);
///
/// let error = "(1/2@0, 4@1)".parse::<Descriptor>().unwrap_err();
/// assert_eq!(error.code(), "E0128"); // half a step; the error has its position
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Descriptor {
    strides: Tree<Coordinate>,
}

impl Descriptor {
    /// The strides, in the nesting of the descriptor.
    pub fn strides(&self) -> &Tree<Coordinate> {
        &self.strides
    }
}

/// An entry as written.
struct Entry {
    count: i64,
    denominator: i64,
    path: ModePath,
    /// Its bytes in the text.
    place: Range<usize>,
}

impl Entry {
    fn read(text: &mut Cursor<'_>) -> Result<Entry, LayoutError> {
        let start = text.at();
        let count = text.integer()?;
        let mut end = text.at();
        let mut denominator = 1;
        if text.eat(b'/') {
            text.peek();
            let at = text.at();
            denominator = text.integer()?;
            if denominator == 0 {
                return Err(LayoutError::Syntax { at, expected: "a denominator other than 0" });
            }
            end = text.at();
        }
        let path = text.path(&mut end)?;
        // Zero needs no mode.
        if path.is_empty() && (count != 0 || denominator != 1) {
            return text.fail("'@' and a mode");
        }
        Ok(Entry { count, denominator, path, place: start..end })
    }

    /// The step that the entry represents.
    fn step(self) -> Result<Coordinate, LayoutError> {
        match (self.count.checked_div(self.denominator), self.count.checked_rem(self.denominator)) {
            (Some(count), Some(0)) => Ok(Coordinate::step(count, self.path)),
            (Some(_), Some(_)) => {
                Err(LayoutError::Fraction { place: self.place, count: self.count, denominator: self.denominator })
            }
            _ => Err(LayoutError::overflow("descriptor")),
        }
    }
}

impl FromStr for Descriptor {
    type Err = LayoutError;

    /// Errors: text that is not a descriptor ([`LayoutError::Syntax`]); a count that is not an
    /// integer ([`LayoutError::Fraction`]); two paths of which one continues the other
    /// ([`LayoutError::Mixed`]); a path or a number beyond the limits.
    fn from_str(text: &str) -> Result<Descriptor, LayoutError> {
        let mut cursor = Cursor::new(text);
        if cursor.peek() != Some(b'(') {
            return cursor.fail("'('");
        }
        let (nodes, steps) = cursor.tree_of(|cursor| Entry::read(cursor)?.step())?;
        cursor.end()?;
        let strides = Tree::from_parts(Profile::from_nodes(nodes), steps);
        Coordinate::check(&strides)?;
        Ok(Descriptor { strides })
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.strides.fmt(f)
    }
}

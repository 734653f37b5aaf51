//! Indices of tiles, and iteration counts.
//!
//! Law: an index is a sum of numbers times blocks and iterations of loops, and a number.

use std::fmt;
use std::ops;

pub use tilewright_kernel::program::operation::Axis;

use super::ValueId;

/// A variable of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// The number of the block along an axis.
    Block(Axis),
    /// The iteration of a loop, by the number of the loop.
    Iteration(u32),
}

/// A sum of numbers times blocks and iterations of loops, and a number.
///
/// ```
/// use tilewright_tile::{Axis, Index};
///
/// let row = Index::block(Axis::X) * 64 + 3;
/// assert_eq!(row.to_string(), "block.x*64 + 3");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Index {
    pub(crate) terms: Vec<(Name, i64)>,
    pub(crate) constant: i64,
    /// Whether a number of it did not fit in 64 bits: then it is refused where it is used.
    pub(crate) overflows: bool,
}

/// A result of arithmetic, or a mark that it did not fit.
fn noted(result: Option<i64>, overflows: &mut bool) -> i64 {
    *overflows |= result.is_none();
    result.unwrap_or(0)
}

impl Index {
    /// The number of the block along an axis.
    pub fn block(axis: Axis) -> Index {
        Index { terms: vec![(Name::Block(axis), 1)], ..Index::from(0) }
    }

    pub(crate) fn iteration(number: u32) -> Index {
        Index { terms: vec![(Name::Iteration(number), 1)], ..Index::from(0) }
    }

    /// The number, if it is nothing else.
    pub(crate) fn known(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The value where each name has one; none if it does not fit.
    pub(crate) fn value(&self, of: impl Fn(Name) -> i64) -> Option<i64> {
        self.terms.iter().try_fold(self.constant, |sum, (name, by)| sum.checked_add(of(*name).checked_mul(*by)?))
    }

    pub(crate) fn plus(mut self, other: &Index) -> Index {
        self.overflows |= other.overflows;
        self.constant = noted(self.constant.checked_add(other.constant), &mut self.overflows);
        for (name, by) in &other.terms {
            match self.terms.iter_mut().find(|(own, _)| own == name) {
                Some((_, own)) => *own = noted(own.checked_add(*by), &mut self.overflows),
                None => self.terms.push((*name, *by)),
            }
        }
        self.terms.retain(|(_, by)| *by != 0);
        self
    }
}

impl From<i64> for Index {
    fn from(constant: i64) -> Index {
        Index { terms: Vec::new(), constant, overflows: false }
    }
}

impl From<&Index> for Index {
    fn from(index: &Index) -> Index {
        index.clone()
    }
}

impl ops::Add<i64> for Index {
    type Output = Index;

    fn add(self, other: i64) -> Index {
        self.plus(&Index::from(other))
    }
}

impl ops::Add for Index {
    type Output = Index;

    fn add(self, other: Index) -> Index {
        self.plus(&other)
    }
}

impl ops::Mul<i64> for Index {
    type Output = Index;

    fn mul(mut self, by: i64) -> Index {
        self.constant = noted(self.constant.checked_mul(by), &mut self.overflows);
        for (_, own) in &mut self.terms {
            *own = noted(own.checked_mul(by), &mut self.overflows);
        }
        self.terms.retain(|(_, own)| *own != 0);
        self
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Block(Axis::X) => f.write_str("block.x"),
            Name::Block(Axis::Y) => f.write_str("block.y"),
            Name::Block(Axis::Z) => f.write_str("block.z"),
            Name::Iteration(number) => write!(f, "i{number}"),
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (name, by) in &self.terms {
            f.write_str(if first { "" } else { " + " })?;
            match by {
                1 => write!(f, "{name}")?,
                by => write!(f, "{name}*{by}")?,
            }
            first = false;
        }
        match (first, self.constant) {
            (true, constant) => write!(f, "{constant}"),
            (false, 0) => Ok(()),
            (false, constant) => write!(f, " + {constant}"),
        }
    }
}

/// The iteration count of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Count {
    /// An expression of sizes: `ceil(K/64)`.
    Sizes(String),
    /// A number that depends on the block, or on the iteration of a loop around.
    Index(Index),
    /// A scalar of type i32, which may come from a tensor; no iteration if it is negative.
    Value(ValueId),
}

impl Count {
    /// The value that says it, if one does.
    pub(crate) fn value(&self) -> Option<ValueId> {
        match self {
            Count::Value(value) => Some(*value),
            Count::Sizes(_) | Count::Index(_) => None,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::Sizes(text) => f.write_str(text),
            Count::Index(index) => index.fmt(f),
            Count::Value(value) => write!(f, "value {}", value.index()),
        }
    }
}

impl From<&str> for Count {
    fn from(text: &str) -> Count {
        Count::Sizes(text.to_string())
    }
}

impl From<Index> for Count {
    fn from(index: Index) -> Count {
        Count::Index(index)
    }
}

impl From<i64> for Count {
    fn from(count: i64) -> Count {
        Count::Sizes(count.to_string())
    }
}

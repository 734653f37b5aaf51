//! Check whether different coordinates have different offsets.
//!
//! Law: a layout is injective exactly when it has no collision, two indices with the same offset;
//! [`Layout::collision`] finds one or proves that there is none.

use core::fmt;

use crate::{Layout, LayoutError, Tree, idx2crd};

use super::{At, Verdict};

/// The proof that a layout is injective: all coordinates have different offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injective {
    /// The number of coordinates.
    pub size: i64,
}

impl fmt::Display for Injective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} coordinates have different offsets", self.size)
    }
}

/// Two coordinates with the same offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOffset {
    /// Two indices, the first less than the second.
    pub indices: (i64, i64),
    /// Their coordinates.
    pub coordinates: (Tree<i64>, Tree<i64>),
    /// The offset of both.
    pub offset: i64,
}

impl fmt::Display for SharedOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = &self.coordinates;
        write!(f, "the coordinates {} and {} both have offset {}", At(a), At(b), self.offset)
    }
}

/// Whether different coordinates have different offsets; if not, two coordinates with the same
/// offset.
///
/// Not decided: as [`Layout::is_injective`].
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Layout;
///
/// let layout: Layout = "(4,4):(1,2)".parse().unwrap();
/// assert_eq!(verify::injective(&layout).to_string(), "fails: the coordinates (2,0) and (0,1) both have offset 2");
/// ```
pub fn injective(layout: &Layout) -> Verdict<Injective, SharedOffset> {
    decide(layout).into()
}

fn decide(layout: &Layout) -> Result<Result<Injective, SharedOffset>, LayoutError> {
    let Some(indices) = layout.collision()? else { return Ok(Ok(Injective { size: layout.size() })) };
    let shape = layout.shape();
    let coordinate = |index: i64| idx2crd(&Tree::leaf(index), &shape);
    let coordinates = (coordinate(indices.0)?, coordinate(indices.1)?);
    Ok(Err(SharedOffset { indices, coordinates, offset: layout.eval(&indices.0)? }))
}

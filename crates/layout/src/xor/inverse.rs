//! Inverses of layouts with XOR strides.
//!
//! # Laws
//!
//! An inverse maps offsets to indices. Its argument is an offset as a number; its value is an index
//! as a vector of bits. So an inverse is a layout with XOR strides. (Integer strides are not
//! sufficient: the inverse of `(8,8):(^9,^1)` has the value 8 ^ 9 at offset 9.)
//!
//! * Right: `L(R(k)) = k` for every `k` below the size of `R`, with `R(k)` an index of `L`; the
//!   largest such layout.
//! * Left: `L(R(L(k))) = L(k)` for every index `k` of `L`. On an injective layout this says
//!   `R(L(k)) = k`.
//!
//! # Powers of two
//!
//! If all extents are powers of two, `L` is a linear map over bits. If `2^r` is the least power of
//! two that is not an offset, the size of `R` is exactly `2^r`: its columns are indices of
//! `1, 2, 4, .., 2^(r-1)`. A left inverse always exists: the pseudo-inverse of the matrix. Both are
//! found by elimination.
//!
//! # Other extents
//!
//! The candidates are searched, mode by mode, within [`MAX_XOR_STEPS`] steps: for a right inverse
//! the strides ([`right`]); for a left one, of layouts of up to [`MAX_XOR_VALUES`] indices, the
//! extents, and for given extents the bits of the strides are the unknowns of linear equations
//! ([`left`]).

mod left;
mod right;
mod unknowns;

use alloc::vec::Vec;

use crate::algebra::coalesce::push_merged;
use crate::limits::{MAX_XOR_STEPS, MAX_XOR_VALUES};
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::NoInverse;
use crate::refusal::interrupt;
use crate::value::layout::{Layout, Leaf};
use crate::value::tree::Leaves;
use crate::xor::convert::layout_of_columns;
use crate::xor::function::XorModes;
use crate::xor::{Xor, flat};
use left::NoLeftInverse;

const OP_RIGHT: &str = "right_inverse";

impl Layout<Xor> {
    /// The largest layout `R` with `L(R(k)) = k` for every `k` below its size; its values are
    /// indices of this layout, as bits.
    ///
    /// Errors: a vector is not representable; an extent is not a power of two, and no layout is
    /// proved to be the largest within [`MAX_XOR_STEPS`] and [`MAX_XOR_VALUES`]
    /// ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let right = |text: &str| text.parse::<Layout<Xor>>().unwrap().right_inverse().unwrap().to_string();
    /// assert_eq!(right("(8,8):(^1,^9)"), "(8,8):(^1,^9)");
    /// assert_eq!(right("(8,8):(^9,^1)"), "(8,8):(^8,^9)");
    /// assert_eq!(right("(8,8):(^1,^13)"), "(8,2,2,2):(^1,^13,^31,^59)");
    /// assert_eq!(right("(3,8):(^1,^5)"), "3:^1"); // 3 is not an offset
    /// ```
    pub fn right_inverse(&self) -> Result<Layout<Xor>, LayoutError> {
        if self.leaves().iter().all(|leaf| leaf.extent.unsigned_abs().is_power_of_two()) {
            return linear_right_inverse(self);
        }
        right::largest(self)
    }

    /// A layout `R` with `L(R(L(k))) = L(k)` for every index `k`: it maps an offset to an index
    /// with this offset, as bits.
    ///
    /// Errors: no layout does this ([`LayoutError::NoLeftInverse`]); an extent is not a power of
    /// two, and the search reached its limit ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let left = |text: &str| text.parse::<Layout<Xor>>().unwrap().left_inverse().unwrap().to_string();
    /// assert_eq!(left("4:^2"), "(2,4):(^0,^1)");
    /// assert_eq!(left("(4,2):(^3,^1)"), "(2,2,2):(^4,^5,^7)");
    /// assert_eq!(left("3:^2"), "(2,3):(^0,^1)");
    /// ```
    pub fn left_inverse(&self) -> Result<Layout<Xor>, LayoutError> {
        const OP: &str = "left_inverse";
        if self.leaves().iter().all(|leaf| leaf.extent.unsigned_abs().is_power_of_two()) {
            return layout_of_columns(OP, self.bit_matrix()?.pseudo_inverse().columns());
        }
        if self.size().unsigned_abs() > MAX_XOR_VALUES {
            return Err(LayoutError::Undecided { op: OP, limit: MAX_XOR_VALUES as usize });
        }
        let table = OffsetTable::of(OP, self)?;
        match left::search(&table) {
            Ok(modes) => layout_of(OP, &modes),
            Err(NoLeftInverse::Halted) => {
                interrupt::check(OP).and(Err(LayoutError::Undecided { op: OP, limit: MAX_XOR_STEPS }))
            }
            Err(NoLeftInverse::None { offset, index }) => {
                let none = NoInverse { index: index as i64, offset: offset as i64 };
                Err(LayoutError::NoLeftInverse(alloc::boxed::Box::new(none)))
            }
        }
    }
}

fn layout_of(op: &'static str, modes: &XorModes) -> Result<Layout<Xor>, LayoutError> {
    let mut leaves = Leaves::new();
    for (extent, stride) in modes {
        let leaf = Leaf { extent: *extent as i64, stride: Xor::within(*stride).fits(op)? };
        push_merged(&mut leaves, &leaf).fits(op)?;
    }
    flat(op, leaves)
}

fn linear_right_inverse(layout: &Layout<Xor>) -> Result<Layout<Xor>, LayoutError> {
    let matrix = layout.bit_matrix()?;
    // A number is an offset exactly if the pseudo-inverse maps it to an index that has it.
    let back = matrix.pseudo_inverse();
    let right = back.columns().iter().zip(0..).take_while(|(index, bit)| matrix.apply(**index) == 1 << bit).count();
    layout_of_columns(OP_RIGHT, back.columns().get(..right).unwrap_or_default())
}

/// The offsets of a layout.
struct OffsetTable {
    /// The offsets, by index.
    values: Vec<u64>,
    /// The offsets with their indices, sorted by offset.
    offsets: Vec<(u64, u64)>,
}

impl OffsetTable {
    fn of(op: &'static str, layout: &Layout<Xor>) -> Result<OffsetTable, LayoutError> {
        let values = (0..layout.size()).map(|index| layout.eval(&index).map(Xor::bits));
        let values = values.collect::<Result<Vec<u64>, _>>().map_err(|_| LayoutError::overflow(op))?;
        let mut offsets: Vec<(u64, u64)> = values.iter().zip(0..).map(|(value, index)| (*value, index)).collect();
        offsets.sort_unstable();
        Ok(OffsetTable { values, offsets })
    }

    /// Whether a vector is an index with this offset.
    fn has(&self, index: u64, offset: u64) -> bool {
        usize::try_from(index).ok().and_then(|index| self.values.get(index)) == Some(&offset)
    }

    /// The indices of an offset.
    fn indices(&self, offset: u64) -> Vec<u64> {
        let first = self.offsets.partition_point(|(other, _)| *other < offset);
        self.offsets.iter().skip(first).take_while(|(other, _)| *other == offset).map(|(_, index)| *index).collect()
    }
}

//! Conversions between XOR strides, bit matrices and integer strides.
//!
//! # Law
//!
//! Each conversion keeps the function, and exists exactly if a layout of the other kind has this
//! function.
//!
//! * A layout with XOR strides whose extents are powers of two is a linear map from the bits of the
//!   index to the bits of the offset, and every such map equals the coalesced layout of the modes
//!   `2:^c` for its columns `c`.
//! * A layout of integers is converted by composing `1:^1` with it; `1:^1` continues without end
//!   and maps an index to the vector with its bits.
//! * A mode `s:^d` is a mode of integers exactly when the product of no index below `s` with `d`
//!   has a carry: the first index with a carry is `2^g + 1`, where `g` is the least distance
//!   between two bits of `d`, and with this index no layout of integers has the values. Such a
//!   layout would have this first extent, and its value at the next index would be the value here
//!   plus `d`; but the carries at the next index differ. The modes are additive like integers
//!   exactly when no two have a common bit.

use smallvec::SmallVec;

use crate::algebra::coalesce::push_merged;
use crate::bits::matrix::BitMatrix;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Offset;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Stride;
use crate::value::tree::{Leaves, Tree};
use crate::xor::compose::gap;
use crate::xor::{BITS, Xor, flat, length, product};

impl Layout<Xor> {
    /// The layout as a linear map from the bits of its index to the bits of its offset.
    ///
    /// The number of inputs is the base-2 logarithm of the size, and the number of outputs is that
    /// of the bits of the offsets. Errors: an extent is not a power of two.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let tile: Layout<Xor> = "(8,8):(^1,^9)".parse().unwrap();
    /// assert_eq!(tile.bit_matrix().unwrap().columns(), [1, 2, 4, 9, 18, 36]);
    /// ```
    pub fn bit_matrix(&self) -> Result<BitMatrix, LayoutError> {
        BitMatrix::of_columns(self.bit_columns("bit_matrix")?)
    }

    /// The offsets of the indices that are powers of two.
    pub(crate) fn bit_columns(&self, op: &'static str) -> Result<SmallVec<[u64; 16]>, LayoutError> {
        let mut columns = SmallVec::new();
        for leaf in self.leaves() {
            let extent = leaf.extent.unsigned_abs();
            if !extent.is_power_of_two() {
                let (what, wanted) = ("an extent", "a power of two");
                return Err(LayoutError::Argument { op, what, value: leaf.extent, wanted });
            }
            for bit in 0..extent.trailing_zeros() {
                columns.push(product(1 << bit, leaf.stride.bits()).fits(op)?);
            }
        }
        Ok(columns)
    }

    /// The layout that equals a linear map over bits: flat and coalesced, of size 2 to the number
    /// of inputs.
    ///
    /// Errors: more than 62 inputs; a column with bit 63.
    ///
    /// ```
    /// use tilewright_layout::{BitMatrix, Layout, Xor};
    ///
    /// let map = BitMatrix::new(6, [1, 2, 4, 9, 18, 36]).unwrap();
    /// assert_eq!(Layout::<Xor>::of_bit_matrix(&map).unwrap().to_string(), "(8,8):(^1,^9)");
    /// ```
    pub fn of_bit_matrix(map: &BitMatrix) -> Result<Layout<Xor>, LayoutError> {
        layout_of_columns("bit_matrix", map.columns())
    }

    /// The layout with XOR strides that is the same function as a layout of integers.
    ///
    /// Its shape refines that of the layout. Errors: an offset is negative; sums of its values
    /// carry, so that no layout with XOR strides has them ([`LayoutError::NotXor`]); not decided
    /// ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let xor = |text: &str| Layout::<Xor>::of_integers(&text.parse().unwrap()).map(|layout| layout.to_string());
    /// assert_eq!(xor("(8,64):(64,1)").unwrap(), "(8,64):(^64,^1)");
    /// assert_eq!(xor("4:3").unwrap_err().code(), "E0124"); // 3 ^ 6 is not 9
    /// ```
    pub fn of_integers(layout: &Layout) -> Result<Layout<Xor>, LayoutError> {
        const OP: &str = "to_xor";
        crate::algebra::complement::refuse_negative(OP, layout)?;
        let vectors = Layout::mode_of(1, Xor(1))?;
        vectors.compose(layout).map_err(|error| match error {
            LayoutError::NotXor(mut not) => {
                not.op = OP;
                LayoutError::NotXor(not)
            }
            LayoutError::Undecided { limit, .. } => LayoutError::Undecided { op: OP, limit },
            LayoutError::Overflow { .. } => LayoutError::overflow(OP),
            other => other,
        })
    }

    /// The layout of integers that is the same function: of the same shape, with the strides as
    /// numbers.
    ///
    /// Errors: the offsets are not additive like integers ([`LayoutError::NotXor`], with the
    /// coordinate).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let integers = |text: &str| text.parse::<Layout<Xor>>().unwrap().integers().map(|layout| layout.to_string());
    /// assert_eq!(integers("(8,64):(^64,^1)").unwrap(), "(8,64):(64,1)");
    /// let error = integers("(8,8):(^1,^9)").unwrap_err();
    /// assert_eq!(error.to_string(), "to_layout: no layout has these values: at (1,1) the value is 8, but the modes come to 10");
    /// ```
    pub fn integers(&self) -> Result<Layout, LayoutError> {
        const OP: &str = "to_layout";
        let rank = self.leaves().len();
        let refuse = |indices: &[(usize, i64)]| {
            let mut coordinate: SmallVec<[i64; 8]> = SmallVec::from_elem(0, rank);
            let (mut value, mut sum) = (0, 0_i64);
            for (leaf, index) in indices {
                let stride = self.leaves().get(*leaf).map_or(Xor(0), |leaf| leaf.stride);
                value ^= stride.times(index).fits(OP)?.bits();
                sum = (stride.bits() as i64).checked_mul(*index).and_then(|x| sum.checked_add(x)).fits(OP)?;
                if let Some(place) = coordinate.get_mut(*leaf) {
                    *place = *index;
                }
            }
            let (value, sum) = (Offset::Number(value as i64), Offset::Number(sum));
            Err(LayoutError::NotXor(alloc::boxed::Box::new(crate::NotXor {
                op: OP,
                mode: None,
                place: crate::value::tree::nested(self.profile(), &coordinate),
                value,
                sum,
            })))
        };
        // For each bit of the offset, the leaf that uses it, and the bit of the index of that leaf.
        let mut reached = [None; BITS as usize];
        for (number, leaf) in self.leaves().iter().enumerate() {
            let (last, stride) = (leaf.extent.unsigned_abs() - 1, leaf.stride.bits());
            if last == 0 || stride == 0 {
                continue;
            }
            let first = 1_u64.checked_shl(gap(stride)).and_then(|first| first.checked_add(1)).unwrap_or(u64::MAX);
            if !stride.is_power_of_two() && last >= first {
                return refuse(&[(number, first as i64)]);
            }
            for bit in 0..length(last) {
                let index = 1_i64 << bit;
                let value = leaf.stride.times(&index).fits(OP)?.bits();
                for (_, reached) in reached.iter_mut().enumerate().filter(|(place, _)| value >> place & 1 == 1) {
                    match reached {
                        Some((other, at)) if *other != number => return refuse(&[(*other, *at), (number, index)]),
                        _ => *reached = Some((number, index)),
                    }
                }
            }
        }
        let leaves: Leaves<Leaf> = self
            .leaves()
            .iter()
            .map(|leaf| Leaf {
                extent: leaf.extent,
                stride: if leaf.extent == 1 { 0 } else { leaf.stride.bits() as i64 },
            })
            .collect();
        Layout::from_tree(Tree::new(self.profile().clone(), leaves)?)
    }
}

/// The layout that maps bit `i` of its index to the `i`-th vector.
pub(crate) fn layout_of_columns(op: &'static str, columns: &[u64]) -> Result<Layout<Xor>, LayoutError> {
    let mut leaves = Leaves::new();
    for column in columns {
        let stride = Xor::within(*column).fits(op)?;
        push_merged(&mut leaves, &Leaf { extent: 2, stride }).fits(op)?;
    }
    flat(op, leaves)
}

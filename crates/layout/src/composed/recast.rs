//! Recasting composed layouts: the same memory, read in wider or narrower elements.
//!
//! Law: as for layouts. Widening by `n`, element `c` of the result covers exactly the bits of a box
//! of `n` elements of `R`; narrowing by `r`, element `r*c + j` of one mode is part `j` of element
//! `c`.
//!
//! *Widening*: where `B` widens, its boxes are aligned runs of `n` offsets; where `n` divides the
//! offset they stay so; and `A` must send every aligned run of `n` to an aligned run of `n`, as a
//! set. Then `A / n`, the offset over `n` and `B / n` are the three parts. A swizzle does so unless
//! a bit within a run flips one above. A matrix does so where its low bits stay among themselves,
//! one to one. A layout, read on all integers, does so where its first mode is `n*k:1` and `n`
//! divides the other strides. *Narrowing*: each part by itself; `A` keeps runs of `r` in order.

use super::{Composed, OuterMap};
use crate::bits::matrix::{BitMatrix, low_bits};
use crate::bits::swizzle::{Swizzle, ratio};
use crate::refusal::error::LayoutError;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Extent;
use crate::value::tree::Leaves;

const OP: &str = "recast_layout";

impl Composed {
    /// The layout of the same bits in elements of `new_bits`, where this one has elements of
    /// `old_bits`, exactly (CuTe `recast_layout`).
    ///
    /// Errors: as [`Layout::recast`] for the inner layout; the offset does not begin a wide element
    /// ([`LayoutError::NotDivisible`]); the outer map does not move elements whole: as
    /// [`Swizzle::recast`] for a swizzle.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<3,3,3> o 64 o (8,64):(64,1)".parse().unwrap();
    /// assert_eq!(tile.recast(32, 16).unwrap().to_string(), "S<3,2,3> o 32 o (8,32):(32,1)");
    /// assert_eq!(tile.recast(8, 16).unwrap().to_string(), "S<3,4,3> o 128 o (8,128):(128,1)");
    /// assert_eq!(tile.recast(2048, 16).unwrap_err().code(), "E0115"); // 128 halves are two rows
    /// ```
    pub fn recast(&self, new_bits: i64, old_bits: i64) -> Result<Composed, LayoutError> {
        let (wider, narrower) = ratio(OP, new_bits, old_bits)?;
        let offset = self.offset.checked_mul(narrower).ok_or_else(|| LayoutError::overflow(OP))?;
        if offset % wider != 0 {
            return Err(LayoutError::NotDivisible { op: OP, path: Default::default(), value: offset, divisor: wider });
        }
        let outer = self.outer.narrowed(narrower)?.widened(wider)?;
        Composed::new(outer, offset / wider, self.inner.recast(new_bits, old_bits)?)
    }

    /// The map in elements `n` times as wide: [`Composed::recast`], and where the elements lie
    /// apart by multiples of `n`, the wide elements in which they begin. It is exact, as no part of
    /// a composed layout can be rounded up. Errors: as [`Composed::recast`].
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let apart: Composed = "S<2,1,2> o 0 o (4,4):(2,8)".parse().unwrap();
    /// assert_eq!(apart.upcast(2).unwrap().to_string(), "S<2,0,2> o 0 o (4,4):(1,4)");
    /// ```
    pub fn upcast(&self, n: i64) -> Result<Composed, LayoutError> {
        let packed = self.recast(n, 1);
        let apart = |leaf: &Leaf| leaf.extent == 1 || leaf.stride.checked_rem(n) == Some(0);
        match packed {
            Err(LayoutError::NotDivisible { .. } | LayoutError::Apart { .. })
                if n > 0 && self.inner.leaves().iter().all(apart) && self.offset % n == 0 =>
            {
                Composed::new(self.outer.widened(n)?, self.offset / n, self.inner.upcast(n)?)
            }
            packed => packed,
        }
    }

    /// [`Composed::recast`] to elements `n` times as narrow. Errors: as [`Composed::recast`].
    pub fn downcast(&self, n: i64) -> Result<Composed, LayoutError> {
        self.recast(1, n)
    }

    /// The largest `n` such that the map, its inner layout coalesced, recasts exactly to elements
    /// `n` times as wide whose parts the outer map keeps in order: so many elements, aligned,
    /// always lie together and can move as one (CuTe `max_alignment`).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let alignment = |text: &str| text.parse::<Composed>().unwrap().max_alignment();
    /// assert_eq!(alignment("S<3,3,3> o 0 o (8,64):(64,1)"), 8);
    /// assert_eq!(alignment("S<3,3,3> o 4 o (8,64):(64,1)"), 4);
    /// assert_eq!(alignment("(4,8):(1,4) o 0 o 32:1"), 32);
    /// ```
    pub fn max_alignment(&self) -> i64 {
        self.inner.alignment_within(&self.offset.shared_divisor(&self.outer.run()))
    }
}

impl OuterMap {
    /// The number whose divisors `n` are those for which every aligned run of `n` offsets goes to
    /// an aligned run in order; 0 when all do.
    fn run(&self) -> i64 {
        if self.is_identity() {
            return 0;
        }
        match self {
            // At most 2^61: two fields of a bit at the least lie above.
            OuterMap::Swizzle(swizzle) => 1 << swizzle.base(),
            OuterMap::Bits(matrix) => {
                let whole = |bit: &usize| {
                    let alone = 1_u64.checked_shl(*bit as u32);
                    matrix.columns().get(*bit).copied() == alone && Some(matrix.row(*bit)) == alone
                };
                1 << (0..matrix.inputs()).take_while(whole).count().min(62)
            }
            OuterMap::Layout(layout) => match layout.coalesce_z() {
                Ok(layout) => match layout.leaves() {
                    [first, rest @ ..] if first.stride == 1 => {
                        // The last mode goes on for ever, whatever its extent.
                        let end = if rest.is_empty() { 0 } else { first.extent };
                        rest.iter().fold(end, |run, leaf| run.shared_divisor(&leaf.stride))
                    }
                    _ => 1,
                },
                Err(_) => 1,
            },
            OuterMap::Chain(chain) => {
                chain.inner.run().shared_divisor(&chain.offset).shared_divisor(&chain.outer.run())
            }
        }
    }

    /// The map of elements `n` times as narrow.
    fn narrowed(&self, n: i64) -> Result<OuterMap, LayoutError> {
        let overflow = || LayoutError::overflow(OP);
        if n == 1 || self.is_identity() {
            return Ok(self.clone());
        }
        match self {
            OuterMap::Swizzle(swizzle) => Ok(swizzle.downcast(n)?.into()),
            OuterMap::Bits(matrix) => Ok(BitMatrix::identity(power(n)?)?.beside(matrix)?.into()),
            OuterMap::Layout(layout) => {
                let mut leaves: Leaves<Leaf> = Leaves::new();
                leaves.push(Leaf { extent: n, stride: 1 });
                for leaf in layout.leaves() {
                    leaves.push(Leaf { extent: leaf.extent, stride: leaf.stride.checked_mul(n).ok_or_else(overflow)? });
                }
                Ok(Layout::flat(leaves)?.coalesce_z()?.into())
            }
            OuterMap::Chain(chain) => {
                let offset = chain.offset.checked_mul(n).ok_or_else(overflow)?;
                Ok(OuterMap::chain(chain.outer.narrowed(n)?, offset, chain.inner.narrowed(n)?))
            }
        }
    }

    /// The map of elements `n` times as wide.
    fn widened(&self, n: i64) -> Result<OuterMap, LayoutError> {
        let uneven =
            |value, divisor| Err(LayoutError::NotDivisible { op: OP, path: Default::default(), value, divisor });
        if n == 1 || self.is_identity() {
            return Ok(self.clone());
        }
        match self {
            OuterMap::Swizzle(swizzle) => Ok(Swizzle::recast(*swizzle, n, 1)?.into()),
            OuterMap::Bits(matrix) => {
                let bits = power(n)?;
                let within = |column: &u64| column & !low_bits(bits) == 0;
                let (low, high) = matrix.columns().split_at_checked(bits).unwrap_or((matrix.columns(), &[]));
                if let Some(column) = low.iter().find(|column| !within(column)) {
                    return uneven(*column as i64, n);
                }
                let block = BitMatrix::of_columns(low.iter().copied())?;
                if low.len() < bits || block.rank() < bits {
                    return uneven(1 << block.rank(), n);
                }
                let outputs = matrix.outputs().saturating_sub(bits);
                let columns = high.iter().map(|column| column.checked_shr(bits as u32).unwrap_or(0));
                Ok(BitMatrix::new(outputs, columns)?.into())
            }
            OuterMap::Layout(layout) => {
                let layout = layout.coalesce_z()?;
                let mut leaves: Leaves<Leaf> = layout.leaves().iter().copied().collect();
                let last = leaves.len() == 1;
                let Some((first, rest)) = leaves.split_first_mut() else { return uneven(1, n) };
                // The last mode goes on for ever, whatever its extent.
                if first.stride != 1 || (!last && first.extent % n != 0) {
                    return if first.stride == 1 { uneven(first.extent, n) } else { uneven(first.stride, n) };
                }
                first.extent = if last { first.extent.saturating_add(n - 1) / n } else { first.extent / n };
                for leaf in rest {
                    if leaf.stride % n != 0 {
                        return uneven(leaf.stride, n);
                    }
                    leaf.stride /= n;
                }
                Ok(Layout::flat(leaves)?.into())
            }
            OuterMap::Chain(chain) => {
                if chain.offset % n != 0 {
                    return uneven(chain.offset, n);
                }
                Ok(OuterMap::chain(chain.outer.widened(n)?, chain.offset / n, chain.inner.widened(n)?))
            }
        }
    }
}

/// The logarithm of a power of two.
fn power(n: i64) -> Result<usize, LayoutError> {
    if n > 0 && n.count_ones() == 1 {
        return Ok(n.trailing_zeros() as usize);
    }
    let wanted = "a power of two, for a map over bits";
    Err(LayoutError::Argument { op: OP, what: "the factor", value: n, wanted })
}

//! Recasting composed layouts: the same memory as wider or narrower elements.
//!
//! Law: as for layouts. Widening by `n`, element `c` of the result is the box of `n` elements
//! `R(f*c + j)`, and its parts are in the same order in every wide element:
//! `R(f*c + j) = n*W(c) + P(j)`, where `P` is one layout onto `[0, n)`. Narrowing by `r`, element
//! `r*c + j` of one mode is part `j` of element `c`.
//!
//! *Widening by parts*: if `B` can be widened, its boxes are aligned runs of `n` offsets. If `n`
//! divides the offset, they stay aligned. `A` must map every aligned run of `n` to an aligned run
//! of `n`, in order ([`OuterMap::run`]). Then `A / n`, the offset divided by `n`, and `B / n` are
//! the parts of the result. A swizzle that flips bits within a run is allowed if the bits that
//! control those flips are 0 in every offset.
//!
//! *A map that is affine over bits* is decided by its columns, whatever its parts are. If the order
//! of the parts is the same in every wide element and increases along each mode, then `P` maps the
//! bits of `j` to single bits below `n`, because every bit below `n` must come from exactly one
//! column. So the columns of the result are those with no bit below `n`, shifted; the other columns
//! must be single bits, in increasing order within each mode, and precede the rest of their mode.
//!
//! *Any other map* is tested at every index (`widened_by_index`).
//!
//! *Narrowing* is done to each part separately; `A` keeps runs of `r` in order.
//!
//! [`Composed::upcast`] requires less: `A` may change the order within an aligned run
//! ([`OuterMap::widened`]).

use alloc::vec::Vec;

use super::{Affine, Composed, OuterMap};
use crate::bits::matrix::{BitMatrix, Columns, low_bits};
use crate::bits::swizzle::{Swizzle, ratio};
use crate::limits::MAX_INDICES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::interrupt;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, gcd};
use crate::value::tree::{Leaves, Tree};

const OP: &str = "recast_layout";

/// The number of residues of offsets that are counted: a power of two, greater than every bit that
/// a swizzle for elements of up to 128 bits and rows of up to 512 bytes reads.
const RESIDUES: usize = 1 << 12;

impl Composed {
    /// The layout of the same bits in elements of `new_bits`, where this one has elements of
    /// `old_bits`, exactly (CuTe `recast_layout`).
    ///
    /// Errors: as [`Layout::recast`] for the inner layout; the offset is not at the start of a wide
    /// element ([`LayoutError::NotDivisible`]); the outer map does not keep the parts of an element
    /// together and in order ([`LayoutError::Apart`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<3,3,3> o 64 o (8,64):(64,1)".parse().unwrap();
    /// assert_eq!(tile.recast(32, 16).unwrap().to_string(), "S<3,2,3> o 32 o (8,32):(32,1)");
    /// assert_eq!(tile.recast(8, 16).unwrap().to_string(), "S<3,4,3> o 128 o (8,128):(128,1)");
    /// assert_eq!(tile.recast(2048, 16).unwrap_err().code(), "E0115"); // two rows
    /// ```
    pub fn recast(&self, new_bits: i64, old_bits: i64) -> Result<Composed, LayoutError> {
        let (wider, narrower) = ratio(OP, new_bits, old_bits)?;
        let parts = match narrower {
            1 => self.settled(wider),
            _ => self.outer.narrowed(narrower)?,
        };
        let recast = self.recast_by_parts(&parts, wider, narrower);
        match recast {
            Err(LayoutError::Overflow { .. }) | Ok(_) => recast,
            Err(_) if narrower == 1 => match self.widened_by_bits(wider)? {
                Some(found) => Ok(found),
                None => self.widened_by_index(wider)?.map_or(recast, Ok),
            },
            Err(_) => recast,
        }
    }

    /// Recasts offset and layout separately; `outer` is the outer map for elements of the greatest
    /// common width.
    fn recast_by_parts(&self, outer: &OuterMap, wider: i64, narrower: i64) -> Result<Composed, LayoutError> {
        let run = outer.run();
        if run % wider != 0 {
            let together = gcd(run, wider) as i64;
            return Err(LayoutError::Apart { op: OP, path: Default::default(), together, needed: wider });
        }
        let offset = self.offset.checked_mul(narrower).fits(OP)?;
        if offset % wider != 0 {
            return Err(LayoutError::NotDivisible { op: OP, path: Default::default(), value: offset, divisor: wider });
        }
        let inner = self.inner.recast(wider, narrower)?;
        Composed::new(outer.widened(wider)?, offset / wider, inner)
    }

    /// The outer map; a swizzle without those flips within a run of `n` that never happen for the
    /// given offsets.
    fn settled(&self, n: i64) -> OuterMap {
        let OuterMap::Swizzle(swizzle) = self.outer else { return self.outer.clone() };
        let within = i64::from(n.unsigned_abs().ilog2());
        let lost = (within - swizzle.base()).clamp(0, swizzle.bits());
        if lost == 0 || swizzle.shift() < 0 || n.count_ones() != 1 {
            return self.outer.clone();
        }
        let read = low_bits(lost as usize) << (swizzle.base() + swizzle.shift());
        let rest = match swizzle.bits() - lost {
            0 => Swizzle::new(0, 0, 0),
            bits => Swizzle::new(bits, swizzle.base() + lost, swizzle.shift()),
        };
        match rest {
            Ok(rest) if self.bits_of_offsets() & read == 0 => rest.into(),
            _ => self.outer.clone(),
        }
    }

    /// A mask that includes every bit that is 1 in some offset.
    fn bits_of_offsets(&self) -> u64 {
        let offsets = [self.offset].into_iter().chain(self.inner.leaves().iter().map(|leaf| leaf.stride));
        let lowest = offsets.map(i64::trailing_zeros).min().unwrap_or(0);
        let mut bits = u64::MAX.checked_shl(lowest).unwrap_or(0);
        if let Ok((least, greatest)) = self.inner.range()
            && let (Some(least), Some(greatest)) = (least.checked_add(self.offset), greatest.checked_add(self.offset))
            && least >= 0
        {
            bits &= low_bits(64 - greatest.leading_zeros() as usize);
        }
        // The low bits are determined exactly, from the residues of the offsets.
        let mut seen = [false; RESIDUES];
        let residue = |number: i64| number.rem_euclid(RESIDUES as i64) as usize;
        if let Some(first) = seen.get_mut(residue(self.offset)) {
            *first = true;
        }
        for leaf in self.inner.leaves() {
            let steps = leaf.extent.min(RESIDUES as i64);
            let mut taken = 1;
            while taken < steps {
                let more = taken.min(steps - taken);
                let by = residue(leaf.stride.wrapping_mul(more));
                let before = seen;
                for (at, _) in before.iter().enumerate().filter(|(_, seen)| **seen) {
                    if let Some(place) = seen.get_mut((at + by) % RESIDUES) {
                        *place = true;
                    }
                }
                taken += more;
            }
        }
        let found = seen.iter().enumerate().filter(|(_, seen)| **seen).fold(0, |bits, (at, _)| bits | at as u64);
        bits & (found | !(RESIDUES as u64 - 1))
    }

    /// Widening by `n`, a power of two, of a map that is affine over bits; None if it is not, or if
    /// the columns do not satisfy the criterion.
    ///
    /// Errors: a number is not representable.
    fn widened_by_bits(&self, n: i64) -> Result<Option<Composed>, LayoutError> {
        let affine = self.parities().and_then(|sum| sum.affine());
        let Some(affine) = affine.filter(|_| n.count_ones() == 1) else { return Ok(None) };
        let (below, by) = (n.unsigned_abs() - 1, n.trailing_zeros());
        if affine.constant & below != 0 {
            return Ok(None);
        }
        let mut columns = affine.columns.iter().copied();
        let (mut covered, mut rest) = (0, Columns::new());
        let mut extents = Vec::new();
        for leaf in self.inner.leaves() {
            let (mut extent, mut last) = (1_i64, 0);
            for column in columns.by_ref().take(leaf.extent.trailing_zeros() as usize) {
                let part = column & below;
                let moves = part == 0;
                // A part of the box; it precedes the columns that move whole wide elements.
                let fits = column == part && part.is_power_of_two() && part > last && covered & part == 0;
                if moves {
                    // The product divides the extent of the leaf.
                    rest.push(((column as i64) >> by) as u64);
                    extent *= 2;
                } else if extent == 1 && fits {
                    (covered, last) = (covered | part, part);
                } else {
                    return Ok(None);
                }
            }
            extents.push(extent);
        }
        if covered != below {
            return Ok(None);
        }
        let affine = Affine { constant: ((affine.constant as i64) >> by) as u64, columns: rest };
        let shape = Tree::new(self.inner.profile().clone(), extents)?;
        Composed::of_affine_over(&shape, &affine).map(Some)
    }

    /// The map for elements that are `n` times as wide: [`Composed::recast`]. Two further cases are
    /// accepted: the outer map may change the order within runs of `n`, and elements may be apart
    /// by multiples of `n`, in which case the result has the wide elements in which they begin.
    /// Nothing is rounded up. Errors: as [`Composed::recast`], except for the order.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let apart: Composed = "S<2,1,2> o 0 o (4,4):(2,8)".parse().unwrap();
    /// assert_eq!(apart.upcast(2).unwrap().to_string(), "S<2,0,2> o 0 o (4,4):(1,4)");
    /// ```
    pub fn upcast(&self, n: i64) -> Result<Composed, LayoutError> {
        let (n, _) = ratio(OP, n, 1)?;
        let packed = self.recast(n, 1);
        if packed.is_ok() || self.offset % n != 0 {
            return packed;
        }
        let apart = |leaf: &Leaf| leaf.extent == 1 || leaf.stride.checked_rem(n) == Some(0);
        let inner = match self.inner.recast(n, 1) {
            Ok(inner) => inner,
            Err(LayoutError::NotDivisible { .. } | LayoutError::Apart { .. })
                if self.inner.leaves().iter().all(apart) =>
            {
                self.inner.upcast(n)?
            }
            Err(_) => return packed,
        };
        Composed::new(self.outer.widened(n)?, self.offset / n, inner)
    }

    /// Widening by `n`, with the definition tested at every index; None if it fails.
    ///
    /// Along a leaf, `f` is the first step at which the part is the same as at 0, or the extent.
    /// The result is the map at multiples of each `f`, followed by the division by `n`, which is
    /// the layout `(n,N):(0,1)`.
    ///
    /// Errors: there are more than [`MAX_INDICES`] indices to test; a number is not representable.
    fn widened_by_index(&self, n: i64) -> Result<Option<Composed>, LayoutError> {
        let undecided = || LayoutError::Undecided { op: OP, limit: MAX_INDICES as usize };
        if self.eval(&0)? % n != 0 {
            return Ok(None);
        }
        let (mut step, mut inside, mut rest) = (1_i64, Leaves::new(), Leaves::new());
        let mut product = 1_i64;
        for leaf in self.inner.leaves() {
            let mut part = 1;
            while part < leaf.extent && self.eval(&(step * part))? % n != 0 {
                part += 1;
                if part > n / product {
                    return Ok(None);
                }
                if part > MAX_INDICES {
                    return Err(undecided());
                }
                interrupt::check(OP)?;
            }
            if leaf.extent % part != 0 {
                return Ok(None);
            }
            product *= part;
            // These are indices of the map, so they are below its size.
            inside.push(Leaf { extent: part, stride: step });
            let stride = if leaf.extent == part { 0 } else { step * part };
            rest.push(Leaf { extent: leaf.extent / part, stride });
            step *= leaf.extent;
        }
        if product != n {
            return Ok(None);
        }
        if self.size() > MAX_INDICES {
            return Err(undecided());
        }
        let (inside, rest) = (Layout::flat(inside)?, Layout::flat(rest)?);
        let mut greatest = 0;
        let mut order: Vec<i64> = Vec::new();
        for first in (0..rest.size()).map(|index| rest.eval(&index)) {
            let first = first?;
            let wide = self.eval(&first)?;
            if wide < 0 || wide % n != 0 {
                return Ok(None);
            }
            greatest = greatest.max(wide / n);
            for part in 0..n {
                interrupt::check(OP)?;
                let place = self.eval(&(first + inside.eval(&part)?))?.checked_sub(wide);
                match (place, order.get(part as usize)) {
                    (Some(place), Some(first)) if place == *first => {}
                    (Some(place), None) if (0..n).contains(&place) => order.push(place),
                    _ => return Ok(None),
                }
            }
        }
        // The parts must be one order onto [0, n) that increases along each leaf.
        let mut seen = order.clone();
        seen.sort_unstable();
        let mut below = 1;
        let mut grows = seen.into_iter().eq(0..n);
        for leaf in inside.leaves() {
            let last = below * leaf.extent as usize;
            let pairs = order.iter().zip(order.iter().skip(below)).enumerate();
            grows &= pairs.into_iter().all(|(at, (part, next))| at % last >= last - below || part < next);
            below = last;
        }
        if !grows {
            return Ok(None);
        }
        let steps = self.inner.leaves().iter().zip(inside.leaves()).zip(rest.leaves());
        let leaves = steps.map(|((leaf, inside), rest)| {
            let stride = if rest.extent == 1 { 0 } else { leaf.stride * inside.extent };
            Leaf { extent: rest.extent, stride }
        });
        let inner = Layout::from_tree(Tree::new(self.inner.profile().clone(), leaves)?)?;
        let count = greatest.checked_add(2).filter(|count| count.checked_mul(n).is_some());
        let count = count.fits(OP)?;
        let parts = [Leaf { extent: n, stride: 0 }, Leaf { extent: count, stride: 1 }];
        let divided = OuterMap::Layout(Layout::flat(parts.into_iter().collect())?);
        Ok(Some(Composed::new(divided.after(&0, &self.outer)?, self.offset, inner)?))
    }

    /// [`Composed::recast`] to elements that are `n` times as narrow. Errors: as
    /// [`Composed::recast`].
    pub fn downcast(&self, n: i64) -> Result<Composed, LayoutError> {
        self.recast(1, n)
    }

    /// The largest `n` such that the map, with its inner layout coalesced, recasts exactly to
    /// elements `n` times as wide, and the outer map keeps their parts in order: every aligned
    /// group of this many elements is contiguous, so that one load or store can move it (CuTe
    /// `max_alignment`).
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
    /// A number whose divisors are exactly the `n` for which every aligned run of `n` offsets is
    /// mapped to an aligned run in order; 0 if every `n` is one.
    fn run(&self) -> i64 {
        if self.is_identity() {
            return 0;
        }
        match self {
            // At most 2^61, because two fields of at least one bit are above.
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
                        // The last mode continues without end, whatever its extent.
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

    /// The map for elements that are `n` times as narrow.
    fn narrowed(&self, n: i64) -> Result<OuterMap, LayoutError> {
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
                    leaves.push(Leaf { extent: leaf.extent, stride: leaf.stride.checked_mul(n).fits(OP)? });
                }
                Ok(Layout::flat(leaves)?.coalesce_z()?.into())
            }
            OuterMap::Chain(chain) => {
                let offset = chain.offset.checked_mul(n).fits(OP)?;
                Ok(OuterMap::chain(chain.outer.narrowed(n)?, offset, chain.inner.narrowed(n)?))
            }
        }
    }

    /// The map of aligned runs of `n` offsets, regardless of the order within a run.
    fn widened(&self, n: i64) -> Result<OuterMap, LayoutError> {
        let uneven =
            |value, divisor| Err(LayoutError::NotDivisible { op: OP, path: Default::default(), value, divisor });
        if n == 1 || self.is_identity() {
            return Ok(self.clone());
        }
        match self {
            OuterMap::Swizzle(swizzle) => Ok(swizzle.upcast(n)?.into()),
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
                // The last mode continues without end, whatever its extent.
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

/// The base-2 logarithm of a power of two.
fn power(n: i64) -> Result<usize, LayoutError> {
    if n > 0 && n.count_ones() == 1 {
        return Ok(n.trailing_zeros() as usize);
    }
    let wanted = "a power of two, for a map over bits";
    Err(LayoutError::Argument { op: OP, what: "the factor", value: n, wanted })
}

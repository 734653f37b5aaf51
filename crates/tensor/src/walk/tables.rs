//! Tables of the offsets of maps.
//!
//! Law: for a map `f` that is linear over bits, `f(p + q) = f(p) ^ f(q)` where `p` and `q` have no
//! bit in common. So where the modes of a layout, and the offset before them, have no bits in
//! common, the offsets are those of one block of the fastest modes, XORed with one number for each
//! block. A table is made once, and the map is evaluated once a block.
//!
//! If only the fastest mode steps by a power of two, the same is true within aligned blocks of its
//! positions. Otherwise the map is evaluated at every position, and the next offsets are listed.

use smallvec::SmallVec;
use tilewright_layout::{Layout, Leaf, OuterMap, Swizzle, Xor};

use super::runs::Run;

/// The largest number of entries of a table.
pub(super) const MOST: i64 = 512;

/// The fastest modes of a layout as a table, and the modes above them.
pub(super) struct TableBlock {
    /// The offsets of the block, from its least place on.
    pub table: Vec<i64>,
    pub modes: SmallVec<[Leaf; 8]>,
    /// The distance from the first position of a block to its smallest one.
    pub bias: i64,
    /// The number of elements of the last block along the first mode, which may be shorter.
    pub last: i64,
}

/// The largest number of entries that the table of a layout of this size should have: about twice
/// the square root of the size, because making the table then costs as much as stepping from block
/// to block. A table larger than the L1 cache is of no use.
fn most(size: i64) -> i64 {
    (2 * size.isqrt()).clamp(8, MOST)
}

/// The block of a layout: the offsets of a run, repeated over further modes, and the modes above
/// it.
pub(super) fn added_block(run: Vec<i64>, leaves: &[Leaf], size: i64) -> TableBlock {
    let (mut table, mut rest) = (run, leaves);
    let most = most(size);
    let add = |table: &mut Vec<i64>, leaf: &Leaf| {
        repeat(table, (1..leaf.extent).map(|index| index.wrapping_mul(leaf.stride)), leaf.extent, i64::wrapping_add);
    };
    while let [leaf, above @ ..] = rest
        && (table.len() as i64).saturating_mul(leaf.extent) <= most
    {
        add(&mut table, leaf);
        rest = above;
    }
    let mut modes: SmallVec<[Leaf; 8]> = SmallVec::from_slice(rest);
    let length = table.len() as i64;
    let mut last = length;
    if let Some(leaf) = modes.first_mut()
        && most / length > 1
    {
        let part = most / length;
        add(&mut table, &Leaf { extent: part, stride: leaf.stride });
        last = length * ((leaf.extent - 1) % part + 1);
        *leaf = Leaf { extent: (leaf.extent - 1) / part + 1, stride: leaf.stride.wrapping_mul(part) };
    }
    TableBlock { table, modes, bias: 0, last }
}

/// The bits that the positions of a mode use, counted from the smallest; None if they do not fit
/// into a number.
fn bits(leaf: &Leaf) -> Option<u64> {
    let step = leaf.stride.unsigned_abs();
    let greatest = i64::try_from(step.checked_mul(leaf.extent as u64 - 1)?).ok()? as u64;
    if greatest == 0 {
        return Some(0);
    }
    // All from the first to the last: of a step that is a power of two, those of an index.
    Some((u64::MAX >> greatest.leading_zeros()) & (u64::MAX << step.trailing_zeros()))
}

/// Whether a map is linear over bits wherever it has a value.
fn is_linear(map: &OuterMap) -> bool {
    matches!(map, OuterMap::Swizzle(_) | OuterMap::Bits(_))
}

/// The block of a map over a layout with these merged leaves; None if the law does not hold, or the
/// block would be small.
pub(super) fn linear_block(map: &OuterMap, offset: i64, leaves: &[Leaf]) -> Option<TableBlock> {
    if !is_linear(map) {
        return None;
    }
    // The smallest position, because modes may run backwards, and the bits in use.
    let mut least = offset;
    let mut taken = 0;
    for leaf in leaves {
        let bits = bits(leaf)?;
        if taken & bits != 0 {
            return None;
        }
        taken |= bits;
        least = least.checked_add(leaf.stride.min(0).checked_mul(leaf.extent - 1)?)?;
    }
    if least < 0 || taken & least as u64 != 0 {
        return None;
    }
    let size = leaves.iter().map(|leaf| leaf.extent).product::<i64>();
    let most = most(size);
    let (mut table, mut bias) = (vec![0_i64], 0_i64);
    let mut rest = leaves;
    while let [leaf, above @ ..] = rest {
        let length = table.len() as i64;
        if length.saturating_mul(leaf.extent) > most {
            break;
        }
        extend(&mut table, map, leaf);
        bias = bias.wrapping_add(leaf.stride.min(0).wrapping_mul(leaf.extent - 1));
        rest = above;
    }
    let length = table.len() as i64;
    let mut modes: SmallVec<[Leaf; 8]> = SmallVec::from_slice(rest);
    let mut last = length;
    // If the first mode is too long, a part of it whose indices have bits of their own.
    if let Some(leaf) = modes.first_mut()
        && leaf.stride.unsigned_abs().count_ones() <= 1
    {
        let mut part = 1_i64 << (most / length).ilog2();
        if leaf.stride < 0 {
            // A mode with negative steps: a part that is not full would begin within another.
            part = part.min(1 << leaf.extent.trailing_zeros());
        }
        let inner = Leaf { extent: part, stride: leaf.stride };
        extend(&mut table, map, &inner);
        bias = bias.wrapping_add(inner.stride.min(0).wrapping_mul(part - 1));
        last = length * ((leaf.extent - 1) % part + 1);
        *leaf = Leaf { extent: (leaf.extent - 1) / part + 1, stride: leaf.stride.wrapping_mul(part) };
    }
    if (table.len() as i64) < size.min(8) {
        return None;
    }
    Some(TableBlock { table, modes, bias, last })
}

/// Extends the table by one mode: for each further index, appends the first entries, combined with
/// the index's addend.
#[inline(always)]
fn repeat(table: &mut Vec<i64>, added: impl Iterator<Item = i64>, extent: i64, both: impl Fn(i64, i64) -> i64) {
    let length = table.len();
    table.resize(length * extent as usize, 0);
    let (old, new) = table.split_at_mut(length);
    for (part, added) in new.chunks_exact_mut(length).zip(added) {
        part.iter_mut().zip(&*old).for_each(|(new, old)| *new = both(*old, added));
    }
}

/// Extends the table by one mode, for a map that is linear over bits.
fn extend(table: &mut Vec<i64>, map: &OuterMap, leaf: &Leaf) {
    let (length, step) = (table.len(), leaf.stride.unsigned_abs() as i64);
    if step.count_ones() > 1 {
        repeat(table, (1..leaf.extent).map(|index| value(map, step * index)), leaf.extent, |old, added| old ^ added);
    } else {
        // Bit by bit of the index: doubles the entries by XOR with the bit's value.
        table.resize(length * leaf.extent as usize, 0);
        let (mut done, mut bit) = (length, 0);
        while done < table.len() {
            let added = value(map, step << bit);
            let (old, new) = table.split_at_mut(done);
            new.iter_mut().zip(old).for_each(|(new, old)| *new = *old ^ added);
            (done, bit) = (2 * done, bit + 1);
        }
    }
    if leaf.stride < 0 {
        // The last index is the least place.
        table.reverse();
        table.chunks_exact_mut(length).for_each(|part| part.reverse());
    }
}

/// The value of a map that is linear over bits, at a position where it has a value.
#[inline]
pub(super) fn value(map: &OuterMap, place: i64) -> i64 {
    match map {
        OuterMap::Swizzle(swizzle) => swizzle.apply(place),
        OuterMap::Bits(matrix) => {
            // Square, it keeps the bits above its inputs.
            let inputs = u64::MAX.checked_shr(64 - matrix.inputs() as u32).unwrap_or(0);
            let above = if matrix.inputs() == matrix.outputs() { place as u64 & !inputs } else { 0 };
            (matrix.apply(place as u64) | above) as i64
        }
        map => map.eval(&place).unwrap_or(0),
    }
}

/// A map that is linear over bits, over a layout whose fastest mode steps by a power of two. The
/// positions within an aligned block differ in the same bits only. So the table holds the values of
/// these bits, and a run ends at the beginning of the next block.
#[derive(Clone)]
pub(super) struct Aligned {
    map: OuterMap,
    places: PlaceTable,
    /// The fastest mode, the logarithm of its step, and the number of positions of a block.
    run: Leaf,
    step: u32,
    block: i64,
}

impl Aligned {
    /// The map over a layout with these merged leaves, and its table; None if the law does not
    /// hold, or runs would be short.
    pub fn new(map: &OuterMap, offset: i64, leaves: &[Leaf]) -> Option<(Aligned, Vec<i64>)> {
        let run = *leaves.first()?;
        let size = leaves.iter().map(|leaf| leaf.extent).product::<i64>();
        let least = leaves
            .iter()
            .try_fold(offset, |least, leaf| least.checked_add(leaf.stride.min(0).checked_mul(leaf.extent - 1)?))?;
        let step = run.stride.unsigned_abs();
        if !is_linear(map) || least < 0 || !step.is_power_of_two() || run.extent < 16 {
            return None;
        }
        // A block is not longer than a run, because a matrix need not have values for higher bits.
        let (block, step) = (1_i64 << most(size).min(run.extent).ilog2(), step.trailing_zeros());
        let mut table = vec![0];
        extend(&mut table, map, &Leaf { extent: block, stride: 1_i64.checked_shl(step)? });
        if run.stride < 0 {
            table.reverse();
        }
        Some((Aligned { map: map.clone(), places: PlaceTable::new(offset, leaves), run, step, block }, table))
    }

    /// The value of the bits above the block and below the step, and the index in the table.
    fn within(&self, place: i64) -> (i64, i64) {
        let bits = (self.block - 1) << self.step;
        let at = (place & bits) >> self.step;
        let at = if self.run.stride < 0 { self.block - 1 - at } else { at };
        (value(&self.map, place & !bits), at)
    }

    /// The run that begins at an index, with at most the remaining elements.
    pub fn first(&self, table: &[i64], index: i64, left: i64) -> Run {
        let (place, digit) = self.places.of(index);
        let (first, at) = self.within(place);
        let length = (self.run.extent - digit).min(self.block - at).min(left);
        Run { first, step: 0, table: table.as_ptr().wrapping_add(at as usize), length }
    }

    /// The run that ends before an index, with at most the remaining elements.
    pub fn last(&self, table: &[i64], end: i64, left: i64) -> Run {
        let (place, digit) = self.places.of(end - 1);
        let (first, at) = self.within(place);
        let length = (digit + 1).min(at + 1).min(left);
        Run { first, step: 0, table: table.as_ptr().wrapping_add((at + 1 - length) as usize), length }
    }
}

/// The positions of a layout, found by index.
#[derive(Clone)]
struct PlaceTable {
    offset: i64,
    leaves: SmallVec<[Leaf; 8]>,
}

impl PlaceTable {
    fn new(offset: i64, leaves: &[Leaf]) -> PlaceTable {
        PlaceTable { offset, leaves: SmallVec::from_slice(leaves) }
    }

    /// The position of an index, and the index in the fastest mode.
    fn of(&self, index: i64) -> (i64, i64) {
        let (mut rest, mut place) = (index, self.offset);
        for leaf in &self.leaves {
            place = place.wrapping_add((rest % leaf.extent).wrapping_mul(leaf.stride));
            rest /= leaf.extent;
        }
        (place, self.leaves.first().map_or(0, |leaf| index % leaf.extent))
    }

    /// Lists a function's values at the positions from an index on.
    #[inline(always)]
    fn list(&self, index: i64, offsets: &mut [i64], see: impl Fn(i64) -> i64) {
        let (mut place, mut at) = self.of(index);
        let run = self.leaves.first().map_or(Leaf { extent: 1, stride: 0 }, |leaf| *leaf);
        // Counts the runs by the indices of the other modes.
        let mut digits: SmallVec<[i64; 8]> = SmallVec::new();
        let mut rest = index / run.extent;
        for leaf in self.leaves.iter().skip(1) {
            digits.push(rest % leaf.extent);
            rest /= leaf.extent;
        }
        let mut unseen = offsets;
        while !unseen.is_empty() {
            let length = usize::try_from(run.extent - at).unwrap_or(usize::MAX).min(unseen.len());
            let (now, later) = unseen.split_at_mut(length);
            for (offset, i) in now.iter_mut().zip(0_i64..) {
                *offset = see(place.wrapping_add(i.wrapping_mul(run.stride)));
            }
            unseen = later;
            // Moves to the beginning of the next run.
            place = place.wrapping_sub(at.wrapping_mul(run.stride));
            at = 0;
            for (digit, leaf) in digits.iter_mut().zip(self.leaves.iter().skip(1)) {
                *digit += 1;
                place = place.wrapping_add(leaf.stride);
                if *digit < leaf.extent {
                    break;
                }
                place = place.wrapping_sub(leaf.stride.wrapping_mul(leaf.extent));
                *digit = 0;
            }
        }
    }
}

/// A map that is evaluated at every index.
#[derive(Clone)]
pub(super) struct Each {
    map: Asked,
    places: PlaceTable,
}

#[derive(Clone)]
enum Asked {
    Swizzle(Swizzle),
    Map(OuterMap),
    /// An XOR layout, which maps indices.
    Xor(Box<Layout<Xor>>),
}

impl Each {
    pub fn new(map: &OuterMap, offset: i64, leaves: &[Leaf]) -> Each {
        let map = match map {
            OuterMap::Swizzle(swizzle) => Asked::Swizzle(*swizzle),
            map => Asked::Map(map.clone()),
        };
        Each { map, places: PlaceTable::new(offset, leaves) }
    }

    pub fn of_xor(layout: &Layout<Xor>) -> Each {
        let leaf = Leaf { extent: layout.size(), stride: 1 };
        Each { map: Asked::Xor(Box::new(layout.clone())), places: PlaceTable::new(0, &[leaf]) }
    }

    /// Lists the offsets from an index on.
    pub fn fill(&self, index: i64, offsets: &mut [i64]) {
        match &self.map {
            Asked::Swizzle(swizzle) => {
                // Computes `Swizzle::apply` with its constants hoisted, so that the compiler may
                // vectorize it.
                let (mask, distance) =
                    (((1_i64 << swizzle.bits()) - 1) << swizzle.base(), swizzle.shift().unsigned_abs());
                if swizzle.shift() >= 0 {
                    // The shift copies the sign only into bits above the mask.
                    self.places.list(index, offsets, |place| place ^ ((place as u64 >> distance) as i64 & mask));
                } else {
                    self.places.list(index, offsets, |place| place ^ ((place & mask) << distance));
                }
            }
            // A map has a value at every position of the layout with which it was composed, if that
            // belongs to a view.
            Asked::Map(map) => self.places.list(index, offsets, |place| map.eval(&place).unwrap_or(i64::MAX)),
            Asked::Xor(layout) => {
                self.places.list(index, offsets, |index| layout.eval(&index).map_or(i64::MAX, number));
            }
        }
    }
}

/// A vector of bits as a number.
pub(crate) fn number(value: Xor) -> i64 {
    value.bits() as i64
}

//! Right inverses of layouts with XOR strides whose extents are not powers of two.
//!
//! Law: the result is the largest right inverse, or an error.
//!
//! Let `m` be the least number that is not an offset. No right inverse has more than `m` indices.
//! The following methods are tried in order:
//!
//! * *Integers.* If the values are those of a layout with integer strides whose chain of strides
//!   ends at `m`, its right inverse is converted to XOR strides, if possible.
//! * *The low block.* If `L` begins with `2^k*q:^1` and all other strides have `k` low bits 0,
//!   `L(i) = i mod 2^k + 2^k * L'(i >> k)`. The low bits of an index are those of its offset, so
//!   extents of a right inverse below `2^k` are powers of two: it is `2^k:^1` and, `k` bits higher,
//!   one of `L'`.
//! * *Bits.* The right inverse of the linear part of `L`, if it reaches `m`, or the first number
//!   that is not a sum of vectors of `L`.
//! * *A search* of all modes: with the modes so far covering `c` offsets, the next stride is an
//!   index of offset `c`, and its extent is at most the number of blocks of `c` offsets that are
//!   then correct. Only indices of offsets below `m` are possible. They are found by elimination
//!   for each coordinate of the odd parts of extents, the extents `2^k` being linear.

use alloc::vec::Vec;

use super::{OP_RIGHT as OP, layout_of, linear_right_inverse};
use crate::algebra::coalesce::{coalesced, push_merged};
use crate::algebra::inverse::right_chain;
use crate::bits::matrix::BitMatrix;
use crate::limits::{MAX_XOR_STEPS, MAX_XOR_VALUES};
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::interrupt;
use crate::value::layout::{Layout, Leaf, index_steps};
use crate::value::tree::Leaves;
use crate::xor::complement::CutModes;
use crate::xor::function::XorModes;
use crate::xor::image::Image;
use crate::xor::{Xor, flat, product};

/// The largest right inverse.
pub(super) fn largest(layout: &Layout<Xor>) -> Result<Layout<Xor>, LayoutError> {
    if let Some(found) = of_integers(layout) {
        return Ok(found);
    }
    let modes = coalesced(layout.leaves()).fits(OP)?;
    let Some((low, rest)) = above_low_block(&modes) else { return above_block(&flat(OP, modes)?) };
    let above = above_block(&flat(OP, rest)?)?;
    let mut leaves = Leaves::new();
    push_merged(&mut leaves, &Leaf { extent: 1 << low, stride: Xor::within(1).fits(OP)? });
    for leaf in above.leaves() {
        let stride = product(1 << low, leaf.stride.bits()).and_then(Xor::within).fits(OP)?;
        push_merged(&mut leaves, &Leaf { extent: leaf.extent, stride }).fits(OP)?;
    }
    flat(OP, leaves)
}

/// The right inverse of the integer layout with these values, if no longer one exists.
fn of_integers(layout: &Layout<Xor>) -> Option<Layout<Xor>> {
    let integers = layout.integers().ok()?;
    let mut chain = Layout::blank();
    let (_, overlaps) = right_chain(&integers, &mut chain).ok()?;
    chain.nest_flat().ok()?;
    if overlaps { None } else { Layout::of_integers(&chain).ok() }
}

/// The number of bits of the low block, and the modes above it; None if there is no such block.
fn above_low_block(modes: &[Leaf<Xor>]) -> Option<(u32, Leaves<Leaf<Xor>>)> {
    let (first, others) = modes.split_first().filter(|(first, _)| first.stride.bits() == 1)?;
    let even = others.iter().map(|leaf| leaf.stride.bits().trailing_zeros());
    let low = even.fold(first.extent.trailing_zeros(), u32::min);
    if low == 0 {
        return None;
    }
    let mut rest = Leaves::new();
    rest.push(Leaf { extent: first.extent >> low, stride: first.stride });
    for leaf in others {
        rest.push(Leaf { extent: leaf.extent, stride: Xor::within(leaf.stride.bits() >> low)? });
    }
    Some((low, coalesced(&rest)?))
}

fn above_block(layout: &Layout<Xor>) -> Result<Layout<Xor>, LayoutError> {
    let undecided = |limit| LayoutError::Undecided { op: OP, limit };
    let sure = linear_right_inverse(&linear_part(layout)?)?;
    // Every offset is a sum of vectors.
    let sums = CutModes::of(OP, layout)?.span(OP)?.image();
    let bits = sums.iter().zip(0..).take_while(|(vector, bit)| **vector == 1 << *bit).count();
    if sure.size().unsigned_abs().ilog2() as usize == bits {
        return Ok(sure);
    }
    let missing = Image::of(OP, layout)?.first_missing();
    interrupt::check(OP)?;
    let missing = missing.ok_or_else(|| undecided(MAX_XOR_VALUES as usize))?;
    if sure.size().unsigned_abs() == missing {
        return Ok(sure);
    }
    let most = usize::try_from(missing).map_err(|_| LayoutError::overflow(OP))?;
    let offsets = met(layout, missing).ok_or_else(|| undecided(MAX_XOR_VALUES as usize))?;
    let mut search = RightInverseSearch { offsets, best: XorModes::new(), size: 1, most, steps: MAX_XOR_STEPS };
    search.extend(&mut XorModes::new(), &[0]);
    interrupt::check(OP)?;
    if search.steps == 0 && search.size < most {
        return Err(undecided(MAX_XOR_STEPS));
    }
    if search.size <= sure.size() as usize { Ok(sure) } else { layout_of(OP, &search.best) }
}

/// The first indices of a layout that are linear in their bits: its modes up to the first whose
/// extent is not a power of two, and a part of that mode.
fn linear_part(layout: &Layout<Xor>) -> Result<Layout<Xor>, LayoutError> {
    let mut leaves = Leaves::new();
    for leaf in layout.leaves() {
        let extent = leaf.extent.unsigned_abs();
        leaves.push(Leaf { extent: 1 << extent.ilog2(), stride: leaf.stride });
        if !extent.is_power_of_two() {
            break;
        }
    }
    Layout::flat(leaves)
}

/// The offsets below `end` with their indices, sorted; None if there are too many.
fn met(layout: &Layout<Xor>, end: u64) -> Option<Vec<(u64, u64)>> {
    // A mode of extent 2^a * q is a mode of extent 2 for each of a bits, and one of extent q.
    let mut twos: Vec<(u64, u64)> = Vec::new();
    let mut odd: Vec<(u64, u64, u64)> = Vec::new();
    for (leaf, step) in layout.leaves().iter().zip(index_steps(layout.leaves())?) {
        let (extent, stride, step) = (leaf.extent.unsigned_abs(), leaf.stride.bits(), step.unsigned_abs());
        let bits = extent.trailing_zeros();
        for bit in 0..bits {
            twos.push((product(1 << bit, stride)?, step << bit));
        }
        odd.push((extent >> bits, product(1 << bits, stride)?, step << bits));
    }
    let above = u64::BITS - (end - 1).leading_zeros();
    let high = |value: u64| value.checked_shr(above).unwrap_or(0);
    let matrix = BitMatrix::of_columns(twos.iter().map(|(value, _)| high(*value))).ok()?;
    let (back, kernel) = (matrix.pseudo_inverse(), matrix.kernel());
    // The XOR of the values, and the sum of the index steps, that the bits of a number select.
    let selected = |bits: u64| {
        let chosen = twos.iter().zip(0..).filter(|(_, bit)| bits >> bit & 1 == 1);
        chosen.fold((0, 0), |(value, index), ((more, step), _)| (value ^ more, index + step))
    };
    let count = odd.iter().try_fold(1_u64, |count, (extent, ..)| count.checked_mul(*extent));
    let each = 1_u64.checked_shl(kernel.len() as u32)?;
    if count?.checked_mul(each)? > MAX_XOR_VALUES {
        return None;
    }
    let mut corners = alloc::vec![(0, 0)];
    for (extent, stride, step) in odd {
        let steps = (0..extent).map(|digit| Some((product(digit, stride)?, digit * step)));
        let steps = steps.collect::<Option<Vec<(u64, u64)>>>()?;
        let moved = |(value, index): &(u64, u64)| {
            let (value, index) = (*value, *index);
            steps.iter().map(move |(more, step)| (value ^ more, index + step))
        };
        corners = corners.iter().flat_map(moved).collect();
    }
    let mut found = Vec::new();
    for (value, index) in corners {
        let first = back.apply(high(value));
        if matrix.apply(first) != high(value) {
            continue;
        }
        for choice in 0..each {
            let chosen = kernel.iter().zip(0..).filter(|(_, bit)| choice >> bit & 1 == 1);
            let (more, step) = selected(chosen.fold(first, |bits, (vector, _)| bits ^ vector));
            if value ^ more < end {
                found.push((value ^ more, index + step));
            }
        }
    }
    found.sort_unstable();
    Some(found)
}

struct RightInverseSearch {
    /// The possible offsets, with their indices, sorted.
    offsets: Vec<(u64, u64)>,
    best: XorModes,
    size: usize,
    /// An upper bound of the size of right inverses.
    most: usize,
    steps: usize,
}

impl RightInverseSearch {
    /// Whether a vector is an index with this offset.
    fn has(&self, index: u64, offset: u64) -> bool {
        self.offsets.binary_search(&(offset, index)).is_ok()
    }

    /// The indices of an offset.
    fn indices(&self, offset: u64) -> Vec<u64> {
        let first = self.offsets.partition_point(|(other, _)| *other < offset);
        self.offsets.iter().skip(first).take_while(|(other, _)| *other == offset).map(|(_, index)| *index).collect()
    }

    /// Tries all modes that may be appended; `values` are those of the modes so far.
    fn extend(&mut self, modes: &mut XorModes, values: &[u64]) {
        let covered = values.len();
        if covered > self.size {
            (self.size, self.best) = (covered, modes.clone());
        }
        for stride in self.indices(covered as u64) {
            self.steps = self.steps.saturating_sub(covered);
            let mut longer = values.to_vec();
            let mut count = 1;
            while longer.len() == count * covered && longer.len() < self.most {
                for inner in values {
                    let Some(index) = product(count as u64, stride).map(|steps| steps ^ inner) else { break };
                    if self.steps == 0 || self.size == self.most || interrupt::is_requested() {
                        return;
                    }
                    self.steps -= 1;
                    if !self.has(index, longer.len() as u64) {
                        break;
                    }
                    longer.push(index);
                }
                count += 1;
            }
            for extent in (2..=longer.len() / covered).rev() {
                if self.steps == 0 {
                    return;
                }
                self.steps -= 1;
                modes.push((extent as u64, stride));
                self.extend(modes, longer.get(..extent * covered).unwrap_or_default());
                modes.pop();
            }
        }
    }
}

//! Composition after layouts of indices, for XOR strides.
//!
//! # Law
//!
//! `R = A o B` as in [`crate::algebra::compose`]: `R(c) = A(B(c))` at every coordinate, each leaf
//! of `B` replaced by one leaf or a flat tuple, coalesced. The contributions of the indices of a
//! coordinate are XORed. So a composite exists exactly when `c -> A(B(c))` is the XOR of its
//! functions along each single leaf of `B`, and each of these is the function of a layout
//! ([`crate::xor::function`]).
//!
//! # By structure
//!
//! Coalesce `A` on all integers: levels of extents `M_k` and strides `D_k`, the last one endless.
//! An index is its digits, and a digit its bits: `A` is linear in the bits of the digits. So if
//! adding the parts of an index produces no carry, neither between bits of a digit nor out of a
//! digit, `A` of the sum is the XOR of `A` of the parts. For a run `t:e` of a mode of `B`, and `q`
//! a digit of `e`, `x * e` for `x < t` produces no carry if `(t - 1) * q < M` and `t` is at most
//! `2^g`, where `g` is the least distance between two bits of `q`; then `A(x * e) = x * A(e)`, a
//! mode. Several runs produce no carry if in each digit their bits are disjoint, and the sum of
//! their largest digits is less than `M`. If `D_k` is 0, the bits of the digit do not matter, only
//! carries out of it. A mode that is too long for one run is split where it fills a digit, or else
//! at a power of two.
//!
//! This decides every case that is linear over bits: if the extents are powers of two and sums of
//! the strides of `B` never carry, the composite exists, and is found in a number of steps that is
//! the number of leaves times the number of levels.
//!
//! # By values
//!
//! Otherwise parts may still cancel, or an extent may not be a power of two. The values along each
//! leaf, and then those at all coordinates, decide, up to [`MAX_XOR_VALUES`] values. For more
//! values, single leaves and pairs of leaves are searched for a refutation; if there is none, the
//! answer is undecided.

use alloc::boxed::Box;
use alloc::vec::Vec;

use arrayvec::ArrayVec;
use smallvec::SmallVec;

use crate::algebra::coalesce::each_coalesced;
use crate::algebra::compose::{MAX_LEVELS, OP};
use crate::limits::MAX_XOR_VALUES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::{BMode, NotXor, Offset};
use crate::value::kind::StrideKind;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Stride;
use crate::value::profile::{ROOM, Splitting};
use crate::value::tree::{Tree, nested};
use crate::xor::function::{FunctionShape, XorModes, modes};
use crate::xor::{Xor, product};

/// A level of the outer layout.
struct XorLevel {
    /// `M_k`; `u64::MAX` for the last, which has no end.
    extent: u64,
    /// `D_k`
    stride: u64,
    /// The digit of the current run.
    digit: u64,
    /// The bits that the runs so far use in this digit.
    bits: u64,
    /// The sum of the largest digits of the runs so far.
    reach: u64,
}

/// The outer layout as a function on all integers.
struct XorOuter {
    levels: ArrayVec<XorLevel, { MAX_LEVELS + 1 }>,
}

impl XorOuter {
    fn read(leaves: &[Leaf<Xor>]) -> Option<XorOuter> {
        let mut levels = ArrayVec::new();
        let level = |extent, stride: Xor| XorLevel { extent, stride: stride.bits(), digit: 0, bits: 0, reach: 0 };
        let last =
            each_coalesced(leaves, true, |mode| levels.try_push(level(mode.extent.unsigned_abs(), mode.stride)).ok())?;
        levels.try_push(level(u64::MAX, last.map_or(Xor::zero(), |last| last.stride))).ok()?;
        Some(XorOuter { levels })
    }

    /// Begins a run with step `step`. Returns `A(step)` and the number of steps without a carry, at
    /// least two.
    #[inline]
    fn walk(&mut self, step: u64) -> Option<(u64, u64)> {
        let (mut value, mut rest, mut room) = (0, step, u64::MAX);
        for level in &mut self.levels {
            let digit = if level.extent.is_power_of_two() {
                let digit = rest & (level.extent - 1);
                rest >>= level.extent.trailing_zeros();
                digit
            } else if rest < level.extent {
                core::mem::take(&mut rest)
            } else {
                let digit = rest % level.extent;
                rest /= level.extent;
                digit
            };
            level.digit = digit;
            if digit == 0 {
                continue;
            }
            let fits = if digit.is_power_of_two() {
                ((level.extent - 1) >> digit.trailing_zeros()) + 1
            } else {
                let fits = (level.extent - 1) / digit + 1;
                if level.stride == 0 { fits } else { fits.min(1_u64.checked_shl(gap(digit)).unwrap_or(u64::MAX)) }
            };
            room = room.min(fits);
            value ^= product(digit, level.stride)?;
        }
        Some((value, room))
    }

    /// Adds `count` steps of the current run to the runs so far; false if they produce a carry
    /// together.
    #[inline]
    fn place(&mut self, count: u64) -> bool {
        let last = count - 1;
        let ones = u64::MAX >> last.leading_zeros();
        for level in self.levels.iter_mut().filter(|level| level.digit != 0) {
            // The values of B are representable, so neither product exceeds 64 bits.
            let Some(reach) = last.checked_mul(level.digit).and_then(|reach| reach.checked_add(level.reach)) else {
                return false;
            };
            let bits = ones.wrapping_mul(level.digit);
            if reach >= level.extent || (level.stride != 0 && level.bits & bits != 0) {
                return false;
            }
            level.bits |= bits;
            level.reach = reach;
        }
        true
    }
}

/// The least distance between two bits of a number with more than one.
pub(crate) fn gap(digit: u64) -> u32 {
    (1..u64::BITS).find(|distance| digit & (digit >> distance) != 0).unwrap_or(u64::BITS)
}

/// `A(offset)`; for negative offsets, `A(-i) = -A(i)`.
fn value_at(a: &Layout<Xor>, offset: i64) -> Option<u64> {
    Xor::eval(a.leaves(), &offset).map(Xor::bits)
}

/// `A o B`: see [`Layout::compose`].
pub(crate) fn compose(a: &Layout<Xor>, b: &Layout) -> Result<Layout<Xor>, LayoutError> {
    if a.leaves().is_empty() && b.leaves().iter().any(|leaf| leaf.extent > 1 && leaf.stride != 0) {
        // The empty layout has a value only at index 0.
        return Err(LayoutError::overflow(OP));
    }
    // Every value of B is representable.
    let (_, greatest) = b.range()?;
    let mut outer = XorOuter::read(a.leaves()).fits(OP)?;
    let mut result = Layout::blank();
    match by_structure(&mut outer, b, greatest, &mut result)? {
        true => Ok(result),
        false => by_values(a, b),
    }
}

/// Writes the composite; false if its existence is not proved without looking at values.
fn by_structure(
    outer: &mut XorOuter,
    b: &Layout,
    greatest: i64,
    result: &mut Layout<Xor>,
) -> Result<bool, LayoutError> {
    let (nodes, leaves) = result.parts_mut();
    let mut room = ROOM;
    let mut tree = Splitting::new(b.as_ref().profile, nodes, &mut room);
    for leaf in b.leaves() {
        let (mut extent, mut step) = (leaf.extent.unsigned_abs(), leaf.stride.unsigned_abs());
        if extent == 1 || step == 0 {
            leaves.push(Leaf { extent: leaf.extent, stride: Xor::zero() });
            tree.leaf(1);
            continue;
        }
        if leaf.stride < 0 && greatest > 0 {
            // The steps have both signs, so the sum of the parts crosses zero.
            return Ok(false);
        }
        let first = leaves.len();
        loop {
            let (value, room) = outer.walk(step).fits(OP)?;
            let run = if extent <= room {
                extent
            } else if extent % room == 0 {
                room
            } else {
                1 << extent.trailing_zeros().min(room.ilog2())
            };
            if run == 1 || !outer.place(run) {
                return Ok(false);
            }
            let stride = Xor::within(value).fits(OP)?;
            match leaves.get_mut(first..).and_then(|runs| runs.last_mut()) {
                Some(last) if last.stride.continues(&last.extent, &stride).proved() => last.extent *= run as i64,
                _ => leaves.push(Leaf { extent: run as i64, stride }),
            }
            if run == extent {
                break;
            }
            extent /= run;
            step = step.checked_mul(run).fits(OP)?;
        }
        tree.leaf((leaves.len() - first) as u16);
    }
    tree.finish()?;
    Ok(true)
}

/// Computes the composite from the values that it must have.
#[cold]
fn by_values(a: &Layout<Xor>, b: &Layout) -> Result<Layout<Xor>, LayoutError> {
    let mut result = Layout::blank();
    let (nodes, leaves) = result.parts_mut();
    let mut room = ROOM;
    let mut tree = Splitting::new(b.as_ref().profile, nodes, &mut room);
    let mut open = false;
    for (number, leaf) in b.leaves().iter().enumerate() {
        let size = leaf.extent.unsigned_abs();
        let along = |index: u64| value_at(a, leaf.stride.checked_mul(i64::try_from(index).ok()?)?);
        match modes(size, along).fits(OP)? {
            FunctionShape::Modes(found) => {
                let runs = push_modes(leaves, &found, leaf.extent);
                tree.leaf(runs as u16);
            }
            FunctionShape::Break { index, value, steps } => {
                let path = b.profile().path(number);
                let mode = Some(BMode { path, extent: leaf.extent, stride: leaf.stride });
                let mut place: SmallVec<[i64; 8]> = SmallVec::from_elem(0, b.leaves().len());
                if let Some(own) = place.get_mut(number) {
                    *own = index as i64;
                }
                return Err(refusal(OP, mode, nested(b.profile(), &place), value, steps));
            }
            FunctionShape::Open => open = true,
        }
    }
    tree.finish()?;
    // If the number of coordinates is small enough, the values at all of them are compared.
    let every = b.leaves().iter().map(|leaf| 0..leaf.extent).collect::<Vec<_>>();
    if !open && b.size().unsigned_abs() <= MAX_XOR_VALUES {
        return match first_misfit(a, b, every)? {
            Some(refusal) => Err(refusal),
            None => Ok(result),
        };
    }
    Err(refuted_by_pairs(a, b)?.unwrap_or(LayoutError::Undecided { op: OP, limit: MAX_XOR_VALUES as usize }))
}

/// Writes the modes of one leaf and returns their number.
pub(crate) fn push_modes(leaves: &mut crate::value::tree::Leaves<Leaf<Xor>>, found: &XorModes, extent: i64) -> usize {
    if found.is_empty() {
        leaves.push(Leaf { extent, stride: Xor::zero() });
        return 1;
    }
    for (extent, stride) in found {
        // Values of a layout have 63 bits.
        leaves.push(Leaf { extent: *extent as i64, stride: Xor::within(*stride).unwrap_or_default() });
    }
    found.len()
}

/// The first coordinate within the ranges at which the value is not the XOR of the values along
/// each leaf.
fn first_misfit(
    a: &Layout<Xor>,
    b: &Layout,
    ranges: Vec<core::ops::Range<i64>>,
) -> Result<Option<LayoutError>, LayoutError> {
    let mut along: Vec<Vec<u64>> = Vec::new();
    for (leaf, range) in b.leaves().iter().zip(&ranges) {
        let values = range.clone().map(|index| value_at(a, leaf.stride.checked_mul(index)?));
        along.push(values.collect::<Option<_>>().fits(OP)?);
    }
    let mut coordinate: SmallVec<[i64; 8]> = ranges.iter().map(|range| range.start).collect();
    loop {
        let (mut offset, mut sum) = (0_i64, 0);
        for (((index, leaf), range), values) in coordinate.iter().zip(b.leaves()).zip(&ranges).zip(&along) {
            offset = leaf.stride.checked_mul(*index).and_then(|part| offset.checked_add(part)).fits(OP)?;
            sum ^= values.get((index - range.start) as usize).copied().unwrap_or_default();
        }
        let value = value_at(a, offset).fits(OP)?;
        if value != sum {
            return Ok(Some(refusal(OP, None, nested(b.profile(), &coordinate), value, sum)));
        }
        let next = coordinate.iter_mut().zip(&ranges).find_map(|(index, range)| {
            *index += 1;
            if *index < range.end {
                return Some(());
            }
            *index = range.start;
            None
        });
        if next.is_none() {
            return Ok(None);
        }
    }
}

/// A coordinate with two nonzero indices that refutes the composite. Tried are the first few
/// indices of each leaf, and those with one bit.
fn refuted_by_pairs(a: &Layout<Xor>, b: &Layout) -> Result<Option<LayoutError>, LayoutError> {
    const FEW: i64 = 16;
    let moving = |leaf: &&(usize, &Leaf)| leaf.1.extent > 1 && leaf.1.stride != 0;
    let leaves: Vec<(usize, &Leaf)> = b.leaves().iter().enumerate().filter(|leaf| moving(&leaf)).collect();
    for (position, (first, x)) in leaves.iter().enumerate() {
        for (second, y) in leaves.iter().skip(position + 1) {
            let bits =
                |leaf: &Leaf| (4..62).map(|bit| 1_i64 << bit).take_while(|i| *i < leaf.extent).collect::<Vec<_>>();
            let few = |leaf: &Leaf| (1..leaf.extent.min(FEW)).collect::<Vec<_>>();
            let ends = |leaf: &Leaf| [few(leaf), bits(leaf), alloc::vec![leaf.extent - 1]].concat();
            let ends_of_y = ends(y);
            for i in ends(x) {
                for j in &ends_of_y {
                    let ranges = (0..b.leaves().len()).map(|number| match number {
                        number if number == *first => i..i + 1,
                        number if number == *second => *j..*j + 1,
                        _ => 0..1,
                    });
                    if let Some(refusal) = first_misfit(a, b, ranges.collect())? {
                        return Ok(Some(refusal));
                    }
                }
            }
        }
    }
    Ok(None)
}

/// The refusal with a value, and the different value of the modes.
#[cold]
pub(crate) fn refusal(op: &'static str, mode: Option<BMode>, place: Tree<i64>, value: u64, sum: u64) -> LayoutError {
    let offset = |bits: u64| Offset::Text(alloc::format!("^{bits}").into());
    LayoutError::NotXor(Box::new(NotXor { op, mode, place, value: offset(value), sum: offset(sum) }))
}

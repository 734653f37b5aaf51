//! The largest value of a composed layout.
//!
//! The coordinates of `B` form a box, on which `offset + B(c)` stays between two ends. For an
//! interval of offsets the outer map has an upper bound, which is exact if the two ends are equal.
//! The search takes the box of greatest bound and, while its ends differ, halves it in the mode
//! with the largest spread. When the ends of the box of greatest bound are equal, its value is
//! attained and no other box can exceed it.

use alloc::collections::BinaryHeap;

use smallvec::SmallVec;

use crate::bits::matrix::{BitMatrix, low_bits};
use crate::bits::swizzle::Swizzle;
use crate::composed::OuterMap;
use crate::ground::bounds::Wide;
use crate::limits::MAX_BOXES;
use crate::refusal::interrupt::is_requested;
use crate::value::layout::Leaf;

/// A box of coordinates, ordered by its bound and, for equal bounds, by how narrow it is, so that
/// the search ends.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CoordinateBox {
    bound: Wide,
    narrowness: Wide,
    least: Wide,
    /// The number of steps of each mode in the box, from `least` on.
    spans: Spans,
}

type Spans = SmallVec<[i64; 8]>;

/// The largest value of `outer(offset + inner(c))`; None if the limit is reached.
pub(crate) fn largest(outer: &OuterMap, offset: i64, inner: &[Leaf]) -> Option<Wide> {
    let mut least = Wide::from(offset);
    let mut steps: SmallVec<[Wide; 8]> = SmallVec::new();
    let mut spans = Spans::new();
    for leaf in inner.iter().filter(|leaf| leaf.extent > 1 && leaf.stride != 0) {
        // A mode of negative stride is counted from its end, so that all steps are positive.
        let (step, span) = (Wide::from(leaf.stride), leaf.extent - 1);
        least += (step * Wide::from(span)).min(0);
        steps.push(step.abs());
        spans.push(span);
    }
    let part = |least: Wide, spans: Spans| {
        let width: Wide = steps.iter().zip(&spans).map(|(step, span)| step * Wide::from(*span)).sum();
        CoordinateBox { bound: bound(outer, least, least + width), narrowness: -width, least, spans }
    };
    let mut parts = BinaryHeap::new();
    parts.push(part(least, spans));
    for _ in 0..MAX_BOXES {
        if is_requested() {
            return None;
        }
        let CoordinateBox { bound, narrowness, least, spans: mut low } = parts.pop()?;
        if narrowness == 0 {
            return Some(bound);
        }
        let widest = steps.iter().zip(&low).map(|(step, span)| step * Wide::from(*span)).enumerate();
        let (widest, _) = widest.max_by_key(|(_, spread)| *spread)?;
        let mut high = low.clone();
        let span = low.get_mut(widest)?;
        *high.get_mut(widest)? = *span - *span / 2 - 1;
        *span /= 2;
        let start = least + steps.get(widest)? * Wide::from(*span + 1);
        parts.push(part(least, low));
        parts.push(part(start, high));
    }
    None
}

/// An upper bound of `outer` from `low` to `high`, which is exact if the two are equal.
fn bound(outer: &OuterMap, low: Wide, high: Wide) -> Wide {
    between(outer, low, high).1
}

/// An interval that contains the values of `outer` from `low` to `high`; it has one number if the
/// two are equal.
pub(crate) fn between(outer: &OuterMap, low: Wide, high: Wide) -> (Wide, Wide) {
    match outer {
        OuterMap::Swizzle(swizzle) => match (i64::try_from(low), i64::try_from(high)) {
            (Ok(low), Ok(high)) => swizzled(*swizzle, low, high),
            _ => (Wide::MIN, Wide::MAX),
        },
        OuterMap::Bits(matrix) => match (i64::try_from(low), i64::try_from(high)) {
            (Ok(low), Ok(high)) => mapped(matrix, low, high),
            _ => (Wide::MIN, Wide::MAX),
        },
        OuterMap::Layout(layout) => {
            let leaves = layout.leaves();
            // Below zero a layout mirrors; an unbounded interval stays unbounded.
            let mirrored = |low: Wide, high: Wide| {
                let (least, most) = laid_out(leaves, high.checked_neg()?, low.checked_neg()?)?;
                Some((most.checked_neg()?, least.checked_neg()?))
            };
            let values = if low >= 0 {
                laid_out(leaves, low, high)
            } else if high <= 0 {
                mirrored(low, high)
            } else {
                let ends = laid_out(leaves, 0, high).zip(mirrored(low, 0));
                ends.map(|(above, below)| (above.0.min(below.0), above.1.max(below.1)))
            };
            values.unwrap_or((Wide::MIN, Wide::MAX))
        }
        OuterMap::Chain(chain) => {
            let (low, high) = between(&chain.inner, low, high);
            let offset = Wide::from(chain.offset);
            between(&chain.outer, low.saturating_add(offset), high.saturating_add(offset))
        }
    }
}

/// The bits that all numbers from `low` to `high` have in common: those above the highest bit in
/// which the ends differ.
fn shared(low: i64, high: i64) -> u64 {
    let unshared = (low ^ high) as u64;
    !(u64::MAX.checked_shr(unshared.leading_zeros()).unwrap_or(0))
}

/// The least and the greatest number that agree with `image` in the bits `known`, including the
/// sign; unbounded if the sign is not known.
fn spread(image: u64, known: u64) -> (Wide, Wide) {
    if known >> 63 == 0 {
        return (Wide::from(i64::MIN), Wide::from(i64::MAX));
    }
    (Wide::from((image & known) as i64), Wide::from((image & known | !known) as i64))
}

/// A bit of the image is known if it depends only on bits that the offsets share; every other bit
/// may be 0 or 1.
fn swizzled(swizzle: Swizzle, low: i64, high: i64) -> (Wide, Wide) {
    let known = shared(low, high);
    let distance = swizzle.shift().unsigned_abs();
    let read = if swizzle.shift() >= 0 { known >> distance } else { known << distance };
    spread(swizzle.apply(low) as u64, known & (read | !swizzle.flipped()))
}

fn mapped(matrix: &BitMatrix, low: i64, high: i64) -> (Wide, Wide) {
    let known = shared(low, high);
    // The bits above the inputs are kept if the matrix is square, and are 0 otherwise.
    let above = !low_bits(matrix.inputs().max(matrix.outputs()));
    let kept = if matrix.inputs() == matrix.outputs() { known & above } else { above };
    let made = (0..matrix.outputs()).filter(|row| matrix.row(*row) & !known == 0);
    let known = made.fold(kept, |bits, row| bits | 1_u64.checked_shl(row as u32).unwrap_or(0));
    match matrix.extended(low) {
        Ok(image) => spread(image as u64, known),
        Err(_) => (Wide::MIN, Wide::MAX),
    }
}

/// The offsets share the digits above the highest one in which the ends differ; below it every
/// digit is possible. None if a number exceeds 128 bits.
fn laid_out(leaves: &[Leaf], low: Wide, high: Wide) -> Option<(Wide, Wide)> {
    let Some((last, front)) = leaves.split_last() else { return Some((0, 0)) };
    let mut period: Wide = front.iter().map(|leaf| Wide::from(leaf.extent)).product();
    let (mut low, mut high, mut shared, mut least, mut most) = (low, high, true, 0_i128, 0_i128);
    let modes = core::iter::once(last).chain(front.iter().rev());
    for (position, leaf) in modes.enumerate() {
        let stride = Wide::from(leaf.stride);
        if position > 0 {
            period /= Wide::from(leaf.extent);
        }
        let (first, end) = if shared { (low / period, high / period) } else { (0, Wide::from(leaf.extent) - 1) };
        let (first, last) = (first.checked_mul(stride)?, end.checked_mul(stride)?);
        least = least.checked_add(first.min(last))?;
        most = most.checked_add(first.max(last))?;
        shared &= low / period == high / period;
        (low, high) = (low % period, high % period);
    }
    Some((least, most))
}

//! The largest value of a composed layout.
//!
//! The coordinates of `B` form a box, on which `offset + B(c)` stays between two ends. For an interval of offsets the outer map has an upper bound
//! that is its value where the two ends are equal. The box of greatest bound is taken and, while its ends differ, halved in the mode that
//! spreads it most. When the ends of the box of greatest bound are equal, its value is reached and no other box can exceed it.

use alloc::collections::BinaryHeap;

use smallvec::SmallVec;

use crate::composed::OuterMap;
use crate::layout::Leaf;
use crate::swizzle::Swizzle;

/// How many boxes of coordinates are looked at before [`crate::Composed::cosize`] gives up.
pub const MAX_BOXES: usize = 1 << 14;

/// Wide enough for every sum of products of two offsets.
type Wide = i128;

/// A box of coordinates, ordered by its bound and then, to come to an end, by how narrow it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    bound: Wide,
    narrowness: Wide,
    least: Wide,
    /// How many steps of each mode the box spans, from `least` on.
    spans: Spans,
}

type Spans = SmallVec<[i64; 8]>;

/// The largest value of `outer(offset + inner(c))`; `None` when the limit is reached.
pub(crate) fn largest(outer: &OuterMap, offset: i64, inner: &[Leaf]) -> Option<Wide> {
    let mut least = Wide::from(offset);
    let mut steps: SmallVec<[Wide; 8]> = SmallVec::new();
    let mut spans = Spans::new();
    for leaf in inner.iter().filter(|leaf| leaf.extent > 1 && leaf.stride != 0) {
        // Counted from the end of a mode of negative steps, all steps go up.
        let (step, span) = (Wide::from(leaf.stride), leaf.extent - 1);
        least += (step * Wide::from(span)).min(0);
        steps.push(step.abs());
        spans.push(span);
    }
    let part = |least: Wide, spans: Spans| {
        let width: Wide = steps.iter().zip(&spans).map(|(step, span)| step * Wide::from(*span)).sum();
        Part { bound: bound(outer, least, least + width), narrowness: -width, least, spans }
    };
    let mut parts = BinaryHeap::new();
    parts.push(part(least, spans));
    for _ in 0..MAX_BOXES {
        let Part { bound, narrowness, least, spans: mut low } = parts.pop()?;
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

/// At least the values of `outer` from `low` to `high`, and the value itself where the two are equal.
fn bound(outer: &OuterMap, low: Wide, high: Wide) -> Wide {
    match outer {
        OuterMap::Swizzle(swizzle) => swizzled(*swizzle, low as i64, high as i64),
        OuterMap::Layout(layout) => {
            let leaves = layout.leaves();
            // Below zero a layout is the mirror image of itself.
            if low >= 0 {
                laid_out(leaves, 1, low, high)
            } else if high <= 0 {
                laid_out(leaves, -1, -high, -low)
            } else {
                laid_out(leaves, 1, 0, high).max(laid_out(leaves, -1, 0, -low))
            }
        }
    }
}

/// The offsets share the bits above the highest one in which the ends differ. A bit of the image is known when it is made of such bits;
/// every other one may be set.
fn swizzled(swizzle: Swizzle, low: i64, high: i64) -> Wide {
    if low < 0 && high >= 0 {
        return Wide::from(i64::MAX);
    }
    let unshared = (low ^ high) as u64;
    let known = !(u64::MAX.checked_shr(unshared.leading_zeros()).unwrap_or(0));
    let distance = swizzle.shift().unsigned_abs();
    let read = if swizzle.shift() >= 0 { known >> distance } else { known << distance };
    let known = known & (read | !swizzle.flipped());
    let image = swizzle.apply(low) as u64;
    // The ends have one sign, so that the sign bit is known.
    Wide::from(((image & known) | !known) as i64)
}

/// The offsets share the digits above the highest one in which the ends differ; below it every digit may be anything.
fn laid_out(leaves: &[Leaf], sign: Wide, low: Wide, high: Wide) -> Wide {
    let Some((last, front)) = leaves.split_last() else { return 0 };
    let mut period: Wide = front.iter().map(|leaf| Wide::from(leaf.extent)).product();
    let (mut low, mut high, mut shared, mut bound) = (low, high, true, 0);
    let modes = core::iter::once(last).chain(front.iter().rev());
    for (position, leaf) in modes.enumerate() {
        let stride = sign * Wide::from(leaf.stride);
        if position > 0 {
            period /= Wide::from(leaf.extent);
        }
        let (first, end) = if shared { (low / period, high / period) } else { (0, Wide::from(leaf.extent) - 1) };
        bound += (first * stride).max(end * stride);
        shared &= first == end;
        (low, high) = (low % period, high % period);
    }
    bound
}

//! The common domain of two sides, and which of its axes are additive.
//!
//! Law: both sides are functions of the colexicographic index. Where the products of the first extents of both form one divisibility chain, the index has digits in which
//! each mode of either side is a group of neighbours: these are the axes, and every axis has one step on each side. Elsewhere there are none, and a copy walks the
//! index. Congruent and compatible shapes always have axes, those of their coordinates.
//!
//! Splitting an axis in two changes nothing; so axes are split where one part is additive and the other is not ([`super::addressing`]).

use super::addressing::{Addressing, Bits};

/// One digit of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) extent: i64,
    /// What a step adds, on the source side and on the destination side: to the place where the axis is additive, otherwise to what goes into the map.
    pub(super) step: [i64; 2],
    /// Whether the axis is not additive.
    pub(super) tangled: [bool; 2],
}

/// The source and the destination, as numbers of their parts in an [`Axis`].
pub(super) const SOURCE: usize = 0;
pub(super) const DESTINATION: usize = 1;

/// The axes of two sides of one size; none where they have no common digits, or a number is not representable.
pub(super) fn common(src: &Addressing, dst: &Addressing) -> Option<Vec<Axis>> {
    let moving = |side: &Addressing| -> Vec<(i64, i64)> {
        let moving = side.leaves().iter().filter(|leaf| leaf.extent > 1);
        moving.rev().map(|leaf| (leaf.extent, leaf.stride)).collect()
    };
    let (mut sources, mut destinations) = (moving(src), moving(dst));
    let mut axes = Vec::new();
    while let (Some(a), Some(b)) = (sources.pop(), destinations.pop()) {
        let extent = a.0.min(b.0);
        if a.0 % extent != 0 || b.0 % extent != 0 {
            return None;
        }
        for (mode, rest) in [(a, &mut sources), (b, &mut destinations)] {
            if mode.0 > extent {
                rest.push((mode.0 / extent, mode.1.checked_mul(extent)?));
            }
        }
        axes.push(Axis { extent, step: [a.1, b.1], tangled: [src.is_mapped(), dst.is_mapped()] });
    }
    for (number, side) in [(SOURCE, src), (DESTINATION, dst)] {
        if side.is_mapped() {
            axes = disentangled(axes, number, side)?;
        }
    }
    Some(axes)
}

/// Finds the additive axes of a side with a map, and splits those of which a part is.
fn disentangled(axes: Vec<Axis>, number: usize, side: &Addressing) -> Option<Vec<Axis>> {
    if !side.starts_from_zero() {
        return Some(axes);
    }
    let bits = side.bits();
    let mut axes = axes;
    if let Some(bits) = &bits {
        let unit = bits.unit();
        axes = cut(axes, number, unit)?;
        if let Some(period) = bits.period() {
            axes = cut(axes, number, period)?;
        }
        let within = |axis: &&Axis| axis.step[number] % unit != 0;
        let reach = axes.iter().filter(within).try_fold(side.offset() % unit, |reach, axis| {
            let step = Some(axis.step[number]).filter(|step| *step > 0)?;
            reach.checked_add(step.checked_mul(axis.extent - 1)?)
        });
        if reach.is_some_and(|reach| reach < unit) {
            for axis in axes.iter_mut().filter(|axis| axis.step[number] % unit != 0) {
                axis.tangled[number] = false;
            }
        }
    }
    for axis in axes.iter_mut().filter(|axis| axis.tangled[number]) {
        if let Some(step) = side.step(axis.step[number]) {
            axis.step[number] = step;
            axis.tangled[number] = false;
        }
    }
    match bits {
        Some(bits) if axes.iter().any(|axis| axis.tangled[number]) => by_columns(axes, number, side, &bits),
        _ => Some(axes),
    }
}

/// Splits the axes that step across multiples of `at` on one side, where both parts are whole.
fn cut(axes: Vec<Axis>, number: usize, at: i64) -> Option<Vec<Axis>> {
    let mut parts = Vec::new();
    for axis in axes {
        let step = axis.step[number];
        let inner = if step > 0 && at % step == 0 { at / step } else { 1 };
        if axis.tangled[number] && inner > 1 && inner < axis.extent && axis.extent % inner == 0 {
            parts.extend(split(axis, inner)?);
        } else {
            parts.push(axis);
        }
    }
    Some(parts)
}

/// The first `inner` positions of an axis, and the rest.
fn split(axis: Axis, inner: i64) -> Option<[Axis; 2]> {
    let step = [axis.step[0].checked_mul(inner)?, axis.step[1].checked_mul(inner)?];
    Some([Axis { extent: inner, ..axis }, Axis { extent: axis.extent / inner, step, ..axis }])
}

/// The rule of columns: where no sum carries, an axis is additive if what it contributes has no bit in common with what others contribute,
/// nor one of its bits with another.
fn by_columns(axes: Vec<Axis>, number: usize, side: &Addressing, bits: &Bits) -> Option<Vec<Axis>> {
    // Axes that are additive already do not matter here: they step by whole periods, or within the unit.
    let mut parts: Vec<Axis> = Vec::new();
    for axis in &axes {
        let mut rest = *axis;
        while axis.tangled[number] && rest.extent > 2 && rest.extent % 2 == 0 {
            let [bit, more] = split(rest, 2)?;
            parts.push(bit);
            rest = more;
        }
        parts.push(rest);
    }
    let unit = bits.unit();
    // The bits that the map may move about.
    let moved = bits.period().map_or(i64::MAX, |period| period - 1);
    let mut taken = side.offset() & moved;
    // What each axis may contribute, and what one step of it does if so do all: bits of its own, one for each bit of the coordinate.
    let mut images: Vec<(i64, Option<i64>)> = Vec::new();
    for axis in &parts {
        let step = axis.step[number];
        if !axis.tangled[number] {
            images.push((0, None));
            continue;
        }
        if step <= 0 || step & (step - 1) != 0 {
            return Some(axes);
        }
        let (first, count) = (step.trailing_zeros(), u64::BITS - ((axis.extent - 1) as u64).leading_zeros());
        let (mut image, mut even) = (0, bits.column(first));
        for bit in first..first + count {
            let place = 1_i64.checked_shl(bit).filter(|place| *place > 0 && taken & place == 0);
            let (Some(place), Some(column)) = (place, bits.column(bit)) else { return Some(axes) };
            // One bit goes where it likes; several must stay in step.
            let wanted = even.and_then(|one| one.checked_mul(1 << (bit - first)));
            even = even.filter(|one| wanted == Some(column) && (count == 1 || one & (one - 1) == 0));
            taken |= place;
            image |= column;
        }
        images.push((image, even));
    }
    // Within the unit and by whole periods other axes may add what they like, but only then is a sum with them an XOR.
    let inside =
        |axis: &Axis| axis.step[number] < unit || bits.period().is_some_and(|period| axis.step[number] % period == 0);
    if parts.iter().any(|axis| !axis.tangled[number] && !inside(axis)) {
        return Some(axes);
    }
    let base = side.place(0)? & moved;
    for (at, axis) in parts.iter_mut().enumerate() {
        let others = images.iter().enumerate().filter(|(k, _)| *k != at).fold(base, |all, (_, image)| all | image.0);
        match images.get(at) {
            Some((image, Some(step))) if image & others == 0 && axis.tangled[number] => {
                axis.step[number] = *step;
                axis.tangled[number] = false;
            }
            _ => {}
        }
    }
    Some(parts)
}

//! The common domain of several sides, and which of its axes are additive.
//!
//! Law: every side is a function of the colexicographic index. Where the products of the first extents of all sides form one divisibility chain, the index has digits in
//! which each mode of any side is a group of neighbours: these are the axes, and every axis has one step on each side. Elsewhere there are none, and the index is
//! walked. Congruent and compatible shapes always have axes, those of their coordinates; and modes of one side that are one function of the index count as one.
//!
//! Splitting an axis in two changes nothing; so axes are split where one part is additive and the other is not ([`super::addressing`]).
//!
//! Copies have two sides. Transforms and reductions have one for each operand, and the last is the one that is written.

use super::addressing::{Addressing, Bits};

/// One digit of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis<const N: usize> {
    pub(super) extent: i64,
    /// What a step adds on each side: to the place where the axis is additive, otherwise to what goes into the map.
    pub(super) step: [i64; N],
    /// Whether the axis is not additive.
    pub(super) tangled: [bool; N],
}

/// The axes of sides of one size; none where they have no common digits, or a number is not representable.
pub(super) fn digits<const N: usize>(sides: [&Addressing; N]) -> Option<Vec<Axis<N>>> {
    // Digits that modes have in common as they are may be more, so that a map finds more of them additive.
    let mut axes = refined(sides, sides.map(moving)).or_else(|| refined(sides, sides.map(coalesced)))?;
    for (number, side) in sides.into_iter().enumerate() {
        if side.is_mapped() {
            axes = disentangled(axes, number, side)?;
        }
    }
    Some(axes)
}

/// The modes of a side that move, as extents and strides, the last one first.
fn moving(side: &Addressing) -> Vec<(i64, i64)> {
    let moving = side.leaves().iter().rev().filter(|leaf| leaf.extent > 1);
    moving.map(|leaf| (leaf.extent, leaf.stride)).collect()
}

/// The same, as few as possible. What a map takes is the same, so that they may be merged before it too.
fn coalesced(side: &Addressing) -> Vec<(i64, i64)> {
    let mut modes: Vec<(i64, i64)> = Vec::new();
    for (size, step) in moving(side).into_iter().rev() {
        match modes.last_mut() {
            Some((extent, stride)) if stride.checked_mul(*extent) == Some(step) => *extent *= size,
            _ => modes.push((size, step)),
        }
    }
    modes.reverse();
    modes
}

/// The digits in which each mode is a group of neighbours, all of them tangled on sides with a map.
fn refined<const N: usize>(sides: [&Addressing; N], mut modes: [Vec<(i64, i64)>; N]) -> Option<Vec<Axis<N>>> {
    let mut axes = Vec::new();
    while let Some(extent) = modes.iter().map(|rest| Some(rest.last()?.0)).min().flatten() {
        let mut axis = Axis { extent, step: [0; N], tangled: sides.map(Addressing::is_mapped) };
        for (step, rest) in axis.step.iter_mut().zip(&mut modes) {
            let (size, stride) = rest.pop()?;
            if size % extent != 0 {
                return None;
            }
            if size > extent {
                rest.push((size / extent, stride.checked_mul(extent)?));
            }
            *step = stride;
        }
        axes.push(axis);
    }
    Some(axes)
}

/// Finds the additive axes of a side with a map, and splits those of which a part is.
fn disentangled<const N: usize>(mut axes: Vec<Axis<N>>, number: usize, side: &Addressing) -> Option<Vec<Axis<N>>> {
    // Whoever does not move is not moved.
    for axis in axes.iter_mut().filter(|axis| axis.step[number] == 0) {
        axis.tangled[number] = false;
    }
    if !side.starts_from_zero() {
        return Some(axes);
    }
    let bits = side.bits();
    if let Some(bits) = &bits {
        let unit = bits.unit();
        axes = cut(axes, number, unit)?;
        if let Some(period) = bits.period() {
            axes = cut(axes, number, period)?;
        }
        let within = |axis: &&Axis<N>| axis.step[number] % unit != 0;
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
fn cut<const N: usize>(axes: Vec<Axis<N>>, number: usize, at: i64) -> Option<Vec<Axis<N>>> {
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
fn split<const N: usize>(axis: Axis<N>, inner: i64) -> Option<[Axis<N>; 2]> {
    let mut rest = Axis { extent: axis.extent / inner, ..axis };
    for step in &mut rest.step {
        *step = step.checked_mul(inner)?;
    }
    Some([Axis { extent: inner, ..axis }, rest])
}

/// The rule of columns: where no sum carries, an axis is additive if what it contributes has no bit in common with what others contribute,
/// nor one of its bits with another.
fn by_columns<const N: usize>(
    axes: Vec<Axis<N>>,
    number: usize,
    side: &Addressing,
    bits: &Bits,
) -> Option<Vec<Axis<N>>> {
    // Axes that are additive already do not matter here: they step by whole periods, or within the unit.
    let mut parts: Vec<Axis<N>> = Vec::new();
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
    let inside = |axis: &Axis<N>| {
        axis.step[number] < unit || bits.period().is_some_and(|period| axis.step[number] % period == 0)
    };
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

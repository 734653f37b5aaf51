//! The common axes of several operands, and which of them are additive.
//!
//! Law: every operand is a function of the colexicographic index. If the products of the first
//! extents of all operands form one divisibility chain, the index has digits such that each mode of
//! any operand is a group of neighbouring digits. These digits are the axes, and every axis has one
//! step in each operand. Otherwise there are no axes, and indices are visited one by one.
//!
//! Congruent and compatible shapes always have axes, those of their coordinates. Modes of one
//! operand that are one function of the index count as one.
//!
//! Splitting an axis in two changes nothing. So axes are split where one part is additive and the
//! other is not ([`super::addressing`]). Copies have two sides; transforms and reductions have one
//! for each operand, of which the last is written.

use tilewright_layout::{CommonDigits, Digit};

use super::addressing::{Addressing, Bits};

/// Extents and strides.
type Modes = (Vec<i64>, Vec<i64>);

/// One digit of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DomainAxis<const N: usize> {
    pub(super) extent: i64,
    /// What a step adds in each operand: to the offset if the axis is additive, otherwise to the
    /// argument of the map.
    pub(super) step: [i64; N],
    /// Whether the axis is not additive, on each side.
    pub(super) non_additive: [bool; N],
}

/// The common axes of operands of the same size; None if they have no common digits, or a number is
/// not representable.
pub(super) fn common_axes<const N: usize>(sides: [&Addressing; N]) -> Option<Vec<DomainAxis<N>>> {
    // Modes that are not coalesced may have more digits in common, so that more of them are
    // additive through a map.
    let mut axes = refine(sides, sides.map(moving_modes)).or_else(|| refine(sides, sides.map(coalesced_modes)))?;
    for (number, side) in sides.into_iter().enumerate() {
        if side.is_mapped() {
            axes = find_additive(axes, number, side)?;
        }
    }
    Some(axes)
}

/// The extents and strides of the modes with an extent above 1.
fn moving_modes(side: &Addressing) -> Modes {
    side.leaves().iter().filter(|leaf| leaf.extent > 1).map(|leaf| (leaf.extent, leaf.stride)).unzip()
}

/// The extents and strides of the coalesced modes. Coalescing is valid before a map too, because
/// the map's argument does not change.
fn coalesced_modes(side: &Addressing) -> Modes {
    let (mut extents, mut strides): Modes = Default::default();
    let (sizes, steps) = moving_modes(side);
    for (size, step) in sizes.into_iter().zip(steps) {
        match (extents.last_mut(), strides.last()) {
            (Some(extent), Some(stride)) if i64::checked_mul(*stride, *extent) == Some(step) => *extent *= size,
            _ => {
                extents.push(size);
                strides.push(step);
            }
        }
    }
    (extents, strides)
}

/// The digits such that each mode is a group of neighbouring digits. For operands with a map no
/// digit is marked as additive yet.
fn refine<const N: usize>(sides: [&Addressing; N], modes: [Modes; N]) -> Option<Vec<DomainAxis<N>>> {
    let mut digits = CommonDigits::new(modes.each_ref().map(|(extents, _)| extents.as_slice()));
    let mut axes = Vec::new();
    for Digit { extent, parts } in digits.by_ref() {
        let mut axis = DomainAxis { extent, step: [0; N], non_additive: sides.map(Addressing::is_mapped) };
        for ((step, (_, strides)), (mode, below)) in axis.step.iter_mut().zip(&modes).zip(parts) {
            *step = strides.get(mode)?.checked_mul(below)?;
        }
        axes.push(axis);
    }
    digits.is_complete().then_some(axes)
}

/// Finds the additive axes of an operand with a map, and splits axes of which only a part is
/// additive.
fn find_additive<const N: usize>(
    mut axes: Vec<DomainAxis<N>>,
    number: usize,
    side: &Addressing,
) -> Option<Vec<DomainAxis<N>>> {
    // An axis with step 0 is additive through any map.
    for axis in axes.iter_mut().filter(|axis| axis.step[number] == 0) {
        axis.non_additive[number] = false;
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
        let within = |axis: &&DomainAxis<N>| axis.step[number] % unit != 0;
        let reach = axes.iter().filter(within).try_fold(side.offset() % unit, |reach, axis| {
            let step = Some(axis.step[number]).filter(|step| *step > 0)?;
            reach.checked_add(step.checked_mul(axis.extent - 1)?)
        });
        if reach.is_some_and(|reach| reach < unit) {
            for axis in axes.iter_mut().filter(|axis| axis.step[number] % unit != 0) {
                axis.non_additive[number] = false;
            }
        }
    }
    for axis in axes.iter_mut().filter(|axis| axis.non_additive[number]) {
        if let Some(step) = side.step(axis.step[number]) {
            axis.step[number] = step;
            axis.non_additive[number] = false;
        }
    }
    match bits {
        Some(bits) if axes.iter().any(|axis| axis.non_additive[number]) => by_columns(axes, number, side, &bits),
        _ => Some(axes),
    }
}

/// Splits the axes that step across multiples of `at` in one operand, if that divides them.
fn cut<const N: usize>(axes: Vec<DomainAxis<N>>, number: usize, at: i64) -> Option<Vec<DomainAxis<N>>> {
    let mut parts = Vec::new();
    for axis in axes {
        let step = axis.step[number];
        let inner = if step > 0 && at % step == 0 { at / step } else { 1 };
        if axis.non_additive[number] && inner > 1 && inner < axis.extent && axis.extent % inner == 0 {
            parts.extend(split(axis, inner)?);
        } else {
            parts.push(axis);
        }
    }
    Some(parts)
}

/// The first `inner` positions of an axis, and the rest.
fn split<const N: usize>(axis: DomainAxis<N>, inner: i64) -> Option<[DomainAxis<N>; 2]> {
    let mut rest = DomainAxis { extent: axis.extent / inner, ..axis };
    for step in &mut rest.step {
        *step = step.checked_mul(inner)?;
    }
    Some([DomainAxis { extent: inner, ..axis }, rest])
}

/// The rule of columns: if no sum carries, an axis is additive if its columns share no bit with
/// those of other axes, nor with each other.
fn by_columns<const N: usize>(
    axes: Vec<DomainAxis<N>>,
    number: usize,
    side: &Addressing,
    bits: &Bits,
) -> Option<Vec<DomainAxis<N>>> {
    // Additive axes need no columns: they step by whole periods, or within the unit.
    let mut parts: Vec<DomainAxis<N>> = Vec::new();
    for axis in &axes {
        let mut rest = *axis;
        while axis.non_additive[number] && rest.extent > 2 && rest.extent % 2 == 0 {
            let [bit, more] = split(rest, 2)?;
            parts.push(bit);
            rest = more;
        }
        parts.push(rest);
    }
    let unit = bits.unit();
    // The bits that the map may change.
    let moved = bits.period().map_or(i64::MAX, |period| period - 1);
    let mut taken = side.offset() & moved;
    // For each axis: the union of its columns, and the value of a step if its columns are evenly
    // spaced.
    let mut images: Vec<(i64, Option<i64>)> = Vec::new();
    for axis in &parts {
        let step = axis.step[number];
        if !axis.non_additive[number] {
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
            // A single bit may have any column. Several bits must have columns that double from bit
            // to bit.
            let wanted = even.and_then(|one| one.checked_mul(1 << (bit - first)));
            even = even.filter(|one| wanted == Some(column) && (count == 1 || one & (one - 1) == 0));
            taken |= place;
            image |= column;
        }
        images.push((image, even));
    }
    // Other axes may add within the unit, or by whole periods. Otherwise a sum with them is not an
    // XOR.
    let inside = |axis: &DomainAxis<N>| {
        axis.step[number] < unit || bits.period().is_some_and(|period| axis.step[number] % period == 0)
    };
    if parts.iter().any(|axis| !axis.non_additive[number] && !inside(axis)) {
        return Some(axes);
    }
    let base = side.place(0)? & moved;
    for (at, axis) in parts.iter_mut().enumerate() {
        let others = images.iter().enumerate().filter(|(k, _)| *k != at).fold(base, |all, (_, image)| all | image.0);
        match images.get(at) {
            Some((image, Some(step))) if image & others == 0 && axis.non_additive[number] => {
                axis.step[number] = *step;
                axis.non_additive[number] = false;
            }
            _ => {}
        }
    }
    Some(parts)
}

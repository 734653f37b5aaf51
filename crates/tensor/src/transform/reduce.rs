//! Reductions along modes.
//!
//! Law: as in [`super`]. A reduction is a transform of the source and the destination, whose layout
//! has stride 0 along the modes that are reduced.
//!
//! Reason for unsafe code: as in [`super`].
#![allow(unsafe_code)]

use tilewright_layout::Leaf;

use super::rows::{pairs, singles};
use super::{reading, writing};
use crate::domain::Addressing;
use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};
use crate::visit::{Patch, visit, visit_parts};

/// The number of rows that are reduced at a time, each to one element.
const ROWS: usize = 8;
/// The number of partial values in which a row is combined, if they may be joined.
const VALUES: usize = 16;

/// Combines the elements of `src` along some of its top-level modes, each listed once; `dst` has
/// the other modes, in order.
///
/// Every element of `dst` is set to `initial`, and is then combined with its elements of `src`, one
/// after another, in any order.
///
/// Errors: there is no such mode, or a mode of `dst` has another size than the mode of `src` that
/// it stands for (E0422).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, reduce};
///
/// let (rows, sums): (Layout, Layout) = ("(2,3):(3,1)".parse().unwrap(), "3:1".parse().unwrap());
/// let a = Tensor::from_vec(vec![1, 2, 3, 10, 20, 30], rows).unwrap();
/// let mut columns = Tensor::filled(sums, 0).unwrap();
/// reduce(&a.view(), &[0], &mut columns.view_mut(), 0, |sum, a| sum + a).unwrap();
/// assert_eq!(columns.as_slice(), [11, 22, 33]);
/// ```
pub fn reduce<A: Sync, T: Copy + Send + Sync, L: Offsets, D: Offsets>(
    src: &TensorView<'_, A, L>,
    modes: &[usize],
    dst: &mut TensorViewMut<'_, T, D>,
    initial: T,
    combine: impl Fn(T, &A) -> T + Sync,
) -> Result<(), TensorError> {
    let to = Addressing::of(dst.layout())?;
    let (from, over) = (Addressing::of(src.layout())?, reduced(src.layout(), modes, dst.layout(), &to)?);
    // SAFETY: the views borrow every place of their layouts. The places of `over` are those of the
    // destination; they recur along the reduced modes only, in which their stride is 0.
    unsafe {
        visit([writing(dst, &to)], dst.size(), &|patch| singles(patch, &|dst: &mut T| *dst = initial));
        visit([reading(src, &from), writing(dst, &over)], src.size(), &|patch| gather(patch, &combine));
    }
    Ok(())
}

/// As [`reduce`], with several partial values that are joined at the end, so that long sums are
/// vectorized and shared by threads.
///
/// Every element of `dst` is the join of some partial values, in any order. Each partial value is
/// `initial` combined with some elements of `src`, and every element is in exactly one of them. The
/// result is that of [`reduce`] if `initial` is neutral and `join` is associative and commutative.
/// Sums of floats are nearly so; they are the same on any number of threads.
///
/// Errors: as [`reduce`].
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, reduce_with};
///
/// let (rows, one): (Layout, Layout) = ("(200,300):(300,1)".parse().unwrap(), "1:0".parse().unwrap());
/// let a = Tensor::from_fn(rows, |index| index as f64).unwrap();
/// let mut sum = Tensor::filled(one, 0.0).unwrap();
/// reduce_with(&a.view(), &[0, 1], &mut sum.view_mut(), 0.0, |sum, a| sum + a, |a, b| a + b).unwrap();
/// assert_eq!(sum.as_slice(), [60_000.0 * 59_999.0 / 2.0]);
/// ```
pub fn reduce_with<A: Sync, T: Copy + Send + Sync, L: Offsets, D: Offsets>(
    src: &TensorView<'_, A, L>,
    modes: &[usize],
    dst: &mut TensorViewMut<'_, T, D>,
    initial: T,
    combine: impl Fn(T, &A) -> T + Sync,
    join: impl Fn(T, T) -> T + Sync,
) -> Result<(), TensorError> {
    let to = Addressing::of(dst.layout())?;
    let (from, over) = (Addressing::of(src.layout())?, reduced(src.layout(), modes, dst.layout(), &to)?);
    let run = |patch: &Patch<'_, 2>| {
        // SAFETY: the patch is one of the visits below, of elements of these types.
        unsafe { gather_joined(patch, initial, &combine, &join) }
    };
    // SAFETY: the views borrow every place of their layouts, as in `reduce`; the value of a part is
    // an element of its own.
    unsafe {
        if dst.size() == 1 {
            let broadcast = Addressing::broadcast(from.leaves().iter().map(|leaf| leaf.extent));
            let values = visit_parts(reading(src, &from), &broadcast, src.size(), initial, &run);
            if let Some(value) = values.into_iter().reduce(&join) {
                visit([writing(dst, &to)], 1, &|patch| singles(patch, &|dst: &mut T| *dst = value));
            }
        } else {
            visit([writing(dst, &to)], dst.size(), &|patch| singles(patch, &|dst: &mut T| *dst = initial));
            visit([reading(src, &from), writing(dst, &over)], src.size(), &run);
        }
    }
    Ok(())
}

/// The addressing of the destination over the shape of the source.
fn reduced<L: Offsets, D: Offsets>(
    src: &L,
    modes: &[usize],
    dst: &D,
    to: &Addressing,
) -> Result<Addressing, TensorError> {
    let sizes = mode_sizes(src);
    if let Some(mode) = modes.iter().find(|mode| **mode >= sizes.len()) {
        return Err(TensorError::Reduction { mode: *mode, size: None, found: None });
    }
    let mut kept = mode_sizes(dst).into_iter();
    let mut rest = to.leaves().iter();
    let mut leaves: Vec<Leaf> = Vec::new();
    for (mode, size) in sizes.iter().enumerate() {
        if modes.contains(&mode) {
            leaves.push(Leaf { extent: *size, stride: 0 });
            continue;
        }
        let found = kept.next();
        // Reducing all modes leaves one element, so `dst` may have any shape of size 1.
        if found != Some(*size) {
            return Err(TensorError::Reduction { mode, size: Some(*size), found });
        }
        let mut covered = 1;
        while covered < *size {
            let Some(leaf) = rest.next() else { break };
            covered *= leaf.extent;
            leaves.push(*leaf);
        }
    }
    if let Some(found) = kept.find(|size| *size != 1) {
        return Err(TensorError::Reduction { mode: sizes.len(), size: None, found: Some(found) });
    }
    Ok(to.with_leaves(leaves))
}

/// The sizes of the top-level modes.
fn mode_sizes(layout: &impl Offsets) -> Vec<i64> {
    let shape = layout.shape();
    shape.modes().map(|mode| mode.leaves().iter().product()).collect()
}

/// Combines the elements of a patch with the elements to which they are reduced.
///
/// # Safety
/// The patch is of elements of these types.
unsafe fn gather<A, T: Copy>(patch: &Patch<'_, 2>, combine: &impl Fn(T, &A) -> T) {
    let unit = size_of::<A>() as isize;
    // SAFETY: the caller vouches for the elements of the patch; rows that are taken at once go to
    // different elements.
    unsafe {
        match patch.steps() {
            [step, 0] if size_of::<T>() != 0 && step == unit => gather_rows(patch, unit, combine),
            [step, 0] if size_of::<T>() != 0 => gather_rows(patch, step, combine),
            _ => pairs(patch, &|a: &A, dst: &mut T| *dst = combine(*dst, a)),
        }
    }
}

/// Combines rows that are reduced to one element each. Several rows are combined at a time, because
/// each step of a sum waits for the previous one.
///
/// # Safety
/// As in [`gather`]; elements are `step` bytes apart along a row.
#[inline(always)]
unsafe fn gather_rows<A, T: Copy>(patch: &Patch<'_, 2>, step: isize, combine: &impl Fn(T, &A) -> T) {
    let (all, rest) = if patch.distinct() { patch.table().as_chunks::<ROWS>() } else { (&[][..], patch.table()) };
    // SAFETY: the caller vouches for the rows of the patch, whose elements are `step` bytes apart.
    unsafe {
        all.iter().for_each(|lines| gather_lines(patch, lines, step, combine));
        rest.iter().for_each(|line| gather_lines(patch, &[*line], step, combine));
    }
}

/// Combines several rows at once.
///
/// # Safety
/// As in [`gather_rows`]; the lines have different places in the destination.
#[inline(always)]
unsafe fn gather_lines<A, T: Copy, const K: usize>(
    patch: &Patch<'_, 2>,
    lines: &[[isize; 2]; K],
    step: isize,
    combine: &impl Fn(T, &A) -> T,
) {
    let starts = lines.map(|line| patch.start(&line));
    // SAFETY: the caller vouches for the rows, and that no two go to one element.
    unsafe {
        let mut totals = starts.map(|[_, dst]| *dst.cast::<T>());
        for index in 0..patch.count() as isize {
            for (total, [a, _]) in totals.iter_mut().zip(starts) {
                *total = combine(*total, &*a.wrapping_offset(step * index).cast::<A>());
            }
        }
        for (total, [_, dst]) in totals.iter().zip(starts) {
            *dst.cast::<T>() = *total;
        }
    }
}

/// As [`gather`], for rows that may be combined in several partial values.
///
/// # Safety
/// As in [`gather`].
unsafe fn gather_joined<A, T: Copy>(
    patch: &Patch<'_, 2>,
    initial: T,
    combine: &impl Fn(T, &A) -> T,
    join: &impl Fn(T, T) -> T,
) {
    let unit = size_of::<A>() as isize;
    // SAFETY: the caller vouches for the elements of the patch; a contiguous row is a slice of
    // them.
    unsafe {
        match patch.steps() {
            [step, 0] if step == unit && size_of::<T>() != 0 && patch.count() >= 2 * VALUES => {
                patch.rows(|[a, dst]| {
                    let row = std::slice::from_raw_parts(a.cast::<A>().cast_const(), patch.count());
                    let dst = dst.cast::<T>();
                    *dst = join(*dst, joined(row, initial, combine, join));
                });
            }
            _ => gather(patch, combine),
        }
    }
}

/// The value to which a row is combined.
fn joined<A, T: Copy>(row: &[A], initial: T, combine: &impl Fn(T, &A) -> T, join: &impl Fn(T, T) -> T) -> T {
    let mut values = [initial; VALUES];
    let (all, rest) = row.as_chunks::<VALUES>();
    for some in all {
        for (value, a) in values.iter_mut().zip(some) {
            *value = combine(*value, a);
        }
    }
    for (value, a) in values.iter_mut().zip(rest) {
        *value = combine(*value, a);
    }
    let mut count = VALUES;
    while count > 1 {
        count /= 2;
        for at in 0..count {
            values[at] = join(values[at], values[at + count]);
        }
    }
    values[0]
}

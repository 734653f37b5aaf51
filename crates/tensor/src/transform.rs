//! Computing where elements lie: element by element over several tensors, with a predicate, and along modes.
//!
//! Laws, for every index `i` of operands of one size:
//!
//! * [`transform`]: `f(&a(i), &mut dst(i))` is called once; [`transform2`]: `f(&a(i), &b(i), &mut dst(i))`; in any order, on any thread;
//! * [`copy_if`]: `dst(i) = src(i)` where `predicate(i)`, and nothing is written elsewhere;
//! * [`axpby`]: `y(i) = alpha * x(i) + beta * y(i)`;
//! * [`reduce`]: `dst(k)` is the initial value combined with all `src(i)` whose coordinates in the other modes are `k`, in any order.
//!
//! The layouts may be any, and differ; no copy of an operand is made.
#![allow(unsafe_code)]

use std::ops::{Add, Mul};

use tilewright_layout::Leaf;

use crate::copy::{Addressing, Operand, Row, visit};
use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};

fn same_size(first: i64, second: i64) -> Result<(), TensorError> {
    if first == second { Ok(()) } else { Err(TensorError::Sizes { first, second }) }
}

/// Calls `f` with every element of `a` and the element of `dst` at the same index.
///
/// Errors: the sizes differ (E0420).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, transform};
///
/// let (rows, columns): (Layout, Layout) = ("(2,3):(3,1)".parse().unwrap(), "(2,3):(1,2)".parse().unwrap());
/// let a = Tensor::from_fn(rows, |index| index as i32).unwrap();
/// let mut squares = Tensor::filled(columns, 0_i64).unwrap();
/// transform(&a.view(), &mut squares.view_mut(), |a, square| *square = i64::from(*a).pow(2)).unwrap();
/// assert_eq!(squares.as_slice(), [0, 1, 4, 9, 16, 25]);
/// ```
pub fn transform<A: Sync, T: Send, L: Offsets, D: Offsets>(
    a: &TensorView<'_, A, L>,
    dst: &mut TensorViewMut<'_, T, D>,
    f: impl Fn(&A, &mut T) + Sync,
) -> Result<(), TensorError> {
    let size = dst.size();
    same_size(a.size(), size)?;
    let (from, to) = (Addressing::of(a.layout())?, Addressing::of(dst.layout())?);
    // SAFETY: the views borrow every place of their layouts, and that of the destination has each once.
    unsafe { visit([reading(a, &from), writing(dst, &to)], size, |row| pairs(row, &f)) };
    Ok(())
}

/// Calls `f` with every element of `a`, that of `b` and that of `dst` at the same index.
///
/// Errors: the sizes differ (E0420).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, transform2};
///
/// let (rows, columns): (Layout, Layout) = ("(2,3):(3,1)".parse().unwrap(), "(2,3):(1,2)".parse().unwrap());
/// let a = Tensor::from_fn(rows.clone(), |index| index as f32).unwrap();
/// let b = Tensor::filled(columns, 2.0_f32).unwrap();
/// let mut product = Tensor::filled(rows, 0.0_f32).unwrap();
/// transform2(&a.view(), &b.view(), &mut product.view_mut(), |a, b, product| *product = a * b).unwrap();
/// assert_eq!(product.get([1, 2]), Ok(&10.0));
/// ```
pub fn transform2<A: Sync, B: Sync, T: Send, L: Offsets, M: Offsets, D: Offsets>(
    a: &TensorView<'_, A, L>,
    b: &TensorView<'_, B, M>,
    dst: &mut TensorViewMut<'_, T, D>,
    f: impl Fn(&A, &B, &mut T) + Sync,
) -> Result<(), TensorError> {
    let size = dst.size();
    same_size(a.size(), size)?;
    same_size(b.size(), size)?;
    let (first, second) = (Addressing::of(a.layout())?, Addressing::of(b.layout())?);
    let to = Addressing::of(dst.layout())?;
    let operands = [reading(a, &first), reading(b, &second), writing(dst, &to)];
    // SAFETY: as in `transform`.
    unsafe { visit(operands, size, |row| triples(row, &f)) };
    Ok(())
}

/// Copies the elements of `src` where the predicate holds, to the same index of `dst`; the others stay as they are.
///
/// Errors: the sizes differ (E0420).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, copy_if};
///
/// let layout: Layout = "4:1".parse().unwrap();
/// let src = Tensor::from_vec(vec![1, 2, 3, 4], layout.clone()).unwrap();
/// let inside = Tensor::from_vec(vec![true, true, true, false], layout.clone()).unwrap();
/// let mut dst = Tensor::filled(layout, 0).unwrap();
/// copy_if(&src.view(), &inside.view(), &mut dst.view_mut()).unwrap();
/// assert_eq!(dst.as_slice(), [1, 2, 3, 0]);
/// ```
pub fn copy_if<T: Copy + Send + Sync, L: Offsets, P: Offsets, D: Offsets>(
    src: &TensorView<'_, T, L>,
    predicate: &TensorView<'_, bool, P>,
    dst: &mut TensorViewMut<'_, T, D>,
) -> Result<(), TensorError> {
    transform2(src, predicate, dst, |src, holds, dst| {
        if *holds {
            *dst = *src;
        }
    })
}

/// `y = alpha * x + beta * y`, element by element.
///
/// Errors: the sizes differ (E0420).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, axpby};
///
/// let (rows, columns): (Layout, Layout) = ("(2,2):(2,1)".parse().unwrap(), "(2,2):(1,2)".parse().unwrap());
/// let x = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], rows).unwrap();
/// let mut y = Tensor::filled(columns, 10.0).unwrap();
/// axpby(2.0, &x.view(), 0.5, &mut y.view_mut()).unwrap();
/// assert_eq!(y.as_slice(), [7.0, 11.0, 9.0, 13.0]);
/// ```
pub fn axpby<T, L: Offsets, D: Offsets>(
    alpha: T,
    x: &TensorView<'_, T, L>,
    beta: T,
    y: &mut TensorViewMut<'_, T, D>,
) -> Result<(), TensorError>
where
    T: Copy + Send + Sync + Add<Output = T> + Mul<Output = T>,
{
    transform(x, y, |x, y| *y = alpha * *x + beta * *y)
}

/// Combines the elements of `src` along some of its top-level modes, each number once; `dst` has the others, in order.
///
/// Every element of `dst` becomes `initial`, and is then combined with one element of `src` after another, in any order.
///
/// Errors: there is no such mode, or a mode of `dst` has another size than the mode of `src` that it stands for (E0422).
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
    let sizes = mode_sizes(src.layout());
    if let Some(mode) = modes.iter().find(|mode| **mode >= sizes.len()) {
        return Err(TensorError::Reduction { mode: *mode, size: None, found: None });
    }
    let to = Addressing::of(dst.layout())?;
    let mut kept = mode_sizes(dst.layout()).into_iter();
    let mut rest = to.leaves().iter();
    let mut leaves: Vec<Leaf> = Vec::new();
    for (mode, size) in sizes.iter().enumerate() {
        if modes.contains(&mode) {
            leaves.push(Leaf { extent: *size, stride: 0 });
            continue;
        }
        let found = kept.next();
        // All modes reduced leave one element, which any shape of size 1 has.
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
    let nothing = Addressing::everywhere(to.leaves().iter().map(|leaf| leaf.extent));
    let start = Operand { base: (&raw const initial).cast_mut().cast(), element: size_of::<T>(), side: &nothing };
    let size = dst.size();
    // SAFETY: the only place of the source is the initial value.
    unsafe { visit([start, writing(dst, &to)], size, |row| pairs(row, &|initial: &T, dst: &mut T| *dst = *initial)) };
    let (from, over) = (Addressing::of(src.layout())?, to.with_leaves(leaves));
    let size = src.size();
    // SAFETY: the places of `over` are those of the destination; they recur along the reduced modes only, in which their step is 0.
    unsafe {
        visit([reading(src, &from), writing(dst, &over)], size, |row| {
            pairs(row, &|a: &A, dst: &mut T| *dst = combine(*dst, a));
        });
    }
    Ok(())
}

/// The sizes of the top-level modes.
fn mode_sizes(layout: &impl Offsets) -> Vec<i64> {
    let shape = layout.shape();
    shape.modes().map(|mode| mode.leaves().iter().product()).collect()
}

fn reading<'s, T, L: Offsets>(view: &TensorView<'_, T, L>, side: &'s Addressing) -> Operand<'s> {
    Operand { base: view.as_ptr().cast_mut().cast(), element: size_of::<T>(), side }
}

fn writing<'s, T, L: Offsets>(view: &mut TensorViewMut<'_, T, L>, side: &'s Addressing) -> Operand<'s> {
    Operand { base: view.as_mut_ptr().cast(), element: size_of::<T>(), side }
}

/// Every pair of a row; elements that are neighbours in both are taken as slices, which the compiler makes vectors of.
///
/// Only called with rows of elements of these types, by the invariant of [`visit`].
fn pairs<A, T>(row: &Row<2>, f: &impl Fn(&A, &mut T)) {
    let ([a, dst], count) = (row.places, row.count);
    let (a, dst) = (a.cast::<A>(), dst.cast::<T>());
    // SAFETY: the row has so many elements in each operand; nobody else uses those that are written.
    unsafe {
        if row.steps == [size_of::<A>() as isize, size_of::<T>() as isize] {
            let (a, dst) = (std::slice::from_raw_parts(a, count), std::slice::from_raw_parts_mut(dst, count));
            a.iter().zip(dst).for_each(|(a, dst)| f(a, dst));
        } else {
            for index in 0..count as isize {
                f(&*a.byte_offset(row.steps[0] * index), &mut *dst.byte_offset(row.steps[1] * index));
            }
        }
    }
}

/// The same for three operands.
fn triples<A, B, T>(row: &Row<3>, f: &impl Fn(&A, &B, &mut T)) {
    let ([a, b, dst], count) = (row.places, row.count);
    let (a, b, dst) = (a.cast::<A>(), b.cast::<B>(), dst.cast::<T>());
    let unit = [size_of::<A>() as isize, size_of::<B>() as isize, size_of::<T>() as isize];
    // SAFETY: as in `pairs`.
    unsafe {
        if row.steps == unit {
            let (a, b) = (std::slice::from_raw_parts(a, count), std::slice::from_raw_parts(b, count));
            let dst = std::slice::from_raw_parts_mut(dst, count);
            a.iter().zip(b).zip(dst).for_each(|((a, b), dst)| f(a, b, dst));
        } else {
            for index in 0..count as isize {
                let (a, b) = (&*a.byte_offset(row.steps[0] * index), &*b.byte_offset(row.steps[1] * index));
                f(a, b, &mut *dst.byte_offset(row.steps[2] * index));
            }
        }
    }
}

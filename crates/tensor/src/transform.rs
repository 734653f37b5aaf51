//! Elementwise functions over several tensors, with a predicate, and reductions along modes.
//!
//! Laws, for every index `i` of operands of one size:
//!
//! * [`transform`]: `f(&a(i), &mut dst(i))` is called once; [`transform2`]: `f(&a(i), &b(i), &mut
//!   dst(i))`; [`transform3`] takes one operand more, and [`update`] the destination alone; in any
//!   order, on any thread;
//! * [`copy_if`]: `dst(i) = src(i)` where `predicate(i)`, and nothing is written elsewhere;
//! * [`axpby`]: `y(i) = alpha * x(i) + beta * y(i)`;
//! * [`reduce()`]: `dst(k)` is the initial value combined with all `src(i)` whose coordinates in
//!   the other modes are `k`, in any order; [`reduce_with`]: in several values that are then
//!   joined.
//!
//! The operands may have any, and different, layouts. No operand is copied as a whole. If the order
//! of an operand that is read differs, its numbers may be passed to `f` from a small buffer, a
//! block at a time. Loops and patches are those of [`crate::visit`].
//!
//! Reason for unsafe code: operands of several types and any layout are visited by pointer, so that
//! the compiler makes vectors.
#![allow(unsafe_code)]

mod plain;
mod reduce;
mod rows;

use std::ops::{Add, Mul};

use crate::domain::Addressing;
use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};
use crate::visit::{VisitOperand, visit};
use plain::plain;
pub use reduce::{reduce, reduce_with};
use rows::{pairs, quadruples, singles, triples};

/// Elements of up to this many bytes are written back unchanged where a predicate is false, because
/// that costs less than a branch.
const BLENDED: usize = 16;

/// An error if operands have different sizes.
pub(crate) fn same_size(first: i64, second: i64) -> Result<(), TensorError> {
    if first == second { Ok(()) } else { Err(TensorError::Sizes { first, second }) }
}

/// Calls `f` with a mutable reference to every element.
///
/// Errors: as [`Offsets::derived`].
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{TensorViewMut, update};
///
/// let mut memory = [1, 2, 3, 4, 5, 6];
/// let every_other: Layout = "3:2".parse().unwrap();
/// update(&mut TensorViewMut::new(&mut memory, every_other).unwrap(), |element| *element *= 10).unwrap();
/// assert_eq!(memory, [10, 2, 30, 4, 50, 6]);
/// ```
pub fn update<T: Send, D: Offsets>(
    dst: &mut TensorViewMut<'_, T, D>,
    f: impl Fn(&mut T) + Sync,
) -> Result<(), TensorError> {
    let (to, size) = (Addressing::of(dst.layout())?, dst.size());
    // SAFETY: the view borrows every place of its layout, and has each once; the elements are of
    // its type.
    unsafe { visit([writing(dst, &to)], size, &|patch| singles(patch, &f)) };
    Ok(())
}

/// Calls `f` with every element of `a` and the element of `dst` at the same index.
///
/// If an operand that is read has another order than `dst`, `f` may get copies of its elements,
/// provided they are primitive numbers.
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
    // SAFETY: the views borrow every place of their layouts, and the destination has each place
    // once. The operands of a patch are elements of these types.
    unsafe { visit([reading(a, &from), writing(dst, &to)], size, &|patch| pairs(patch, &f)) };
    Ok(())
}

/// Calls `f` with every element of `a`, that of `b` and that of `dst` at the same index.
///
/// If an operand that is read has another order than `dst`, `f` may get copies of its elements,
/// provided they are primitive numbers.
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
    // SAFETY: the views borrow every place of their layouts, and the destination has each place
    // once. The operands of a patch are elements of these types.
    unsafe { visit(operands, size, &|patch| triples(patch, &f)) };
    Ok(())
}

/// Calls `f` with every element of `a`, those of `b` and `c`, and that of `dst` at the same index.
///
/// If an operand that is read has another order than `dst`, `f` may get copies of its elements,
/// provided they are primitive numbers.
///
/// Errors: the sizes differ (E0420).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, TensorView, transform3};
///
/// // A matrix, scaled and moved by columns: the vectors repeat along the rows.
/// let (rows, along): (Layout, Layout) = ("(2,3):(3,1)".parse().unwrap(), "(2,3):(0,1)".parse().unwrap());
/// let a = Tensor::from_fn(rows.clone(), |index| index as f32).unwrap();
/// let scale = TensorView::new(&[1.0, 2.0, 3.0], along.clone()).unwrap();
/// let shift = TensorView::new(&[0.5, 0.0, -0.5], along).unwrap();
/// let mut dst = Tensor::filled(rows, 0.0_f32).unwrap();
/// transform3(&a.view(), &scale, &shift, &mut dst.view_mut(), |a, scale, shift, dst| *dst = a * scale + shift).unwrap();
/// assert_eq!(dst.as_slice(), [0.5, 4.0, 11.5, 1.5, 6.0, 14.5]);
/// ```
pub fn transform3<A: Sync, B: Sync, C: Sync, T: Send, L: Offsets, M: Offsets, N: Offsets, D: Offsets>(
    a: &TensorView<'_, A, L>,
    b: &TensorView<'_, B, M>,
    c: &TensorView<'_, C, N>,
    dst: &mut TensorViewMut<'_, T, D>,
    f: impl Fn(&A, &B, &C, &mut T) + Sync,
) -> Result<(), TensorError> {
    let size = dst.size();
    same_size(a.size(), size)?;
    same_size(b.size(), size)?;
    same_size(c.size(), size)?;
    let (first, second) = (Addressing::of(a.layout())?, Addressing::of(b.layout())?);
    let (third, to) = (Addressing::of(c.layout())?, Addressing::of(dst.layout())?);
    let operands = [reading(a, &first), reading(b, &second), reading(c, &third), writing(dst, &to)];
    // SAFETY: the views borrow every place of their layouts, and the destination has each place
    // once. The operands of a patch are elements of these types.
    unsafe { visit(operands, size, &|patch| quadruples(patch, &f)) };
    Ok(())
}

/// Copies the elements of `src` where the predicate is true to the same index of `dst`; the other
/// elements of `dst` stay as they are.
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
        if size_of::<T>() <= BLENDED {
            *dst = if *holds { *src } else { *dst };
        } else if *holds {
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
    transform(x, y, move |x, y| *y = alpha * *x + beta * *y)
}

fn reading<'s, T, L: Offsets>(view: &TensorView<'_, T, L>, side: &'s Addressing) -> VisitOperand<'s> {
    VisitOperand { base: view.as_ptr().cast_mut().cast(), element: size_of::<T>(), side, plain: plain::<T>() }
}

fn writing<'s, T, L: Offsets>(view: &mut TensorViewMut<'_, T, L>, side: &'s Addressing) -> VisitOperand<'s> {
    VisitOperand { base: view.as_mut_ptr().cast(), element: size_of::<T>(), side, plain: plain::<T>() }
}

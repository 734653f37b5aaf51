//! Copies between layouts.
//!
//! Law: `copy(src, dst)` makes `dst(i) = src(i)` for every colexicographic index `i`, and writes
//! nothing else. If the two shapes are congruent, or one refines the other, the same is true for
//! every coordinate.
//!
//! The two layouts may be any of the same size: strided, permuted, tiled, swizzled, gathered
//! through another layout, or with XOR strides. A [`Plan`] is built for the two layouts ([`plan`])
//! and then run on memory ([`run`]) as often as needed. Printing it explains what it does and why.
//!
//! Extra memory does not grow with the data: the tables of a tile, below 512 KiB, and a buffer for
//! each thread, at most 80 KiB, which [`Plan`] prints.

mod explain;
mod joined;
mod pairs;
mod permuted;
mod plan;
mod run;

use bytemuck::NoUninit;

use crate::domain::Addressing;
use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::simd::Instructions;
use crate::threads;
use crate::view::{TensorView, TensorViewMut};
pub use plan::CopyOptions;
use plan::{Body, body};
use run::Work;

/// A plan of how to copy between two layouts, for elements of one size. It is built once, and runs
/// on any memory under these layouts.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{CopyOptions, Plan, Tensor};
///
/// let rows: Layout = "(640,480):(480,1)".parse().unwrap();
/// let columns: Layout = "(640,480):(1,640)".parse().unwrap();
/// let one_thread = CopyOptions { threads: Some(1), ..CopyOptions::default() };
/// let plan = Plan::new(&rows, &columns, 2, one_thread).unwrap();
/// assert!(plan.to_string().contains("transposed in registers"));
///
/// let src = Tensor::from_fn(rows, |index| index as u16).unwrap();
/// let mut dst = Tensor::filled(columns, 0_u16).unwrap();
/// plan.run(&src.view(), &mut dst.view_mut()).unwrap();
/// assert!((0..640 * 480).all(|index| dst.get(index) == src.get(index)));
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    src: Addressing,
    dst: Addressing,
    element: usize,
    size: i64,
    body: Body,
    threads: usize,
    instructions: Instructions,
}

impl Plan {
    /// A plan to copy elements of `element_bytes` bytes from one layout to another.
    ///
    /// Errors: the sizes differ (E0420); the destination reaches an element twice, or that could
    /// not be decided (E0402); as [`Offsets::derived`].
    pub fn new<S: Offsets, D: Offsets>(
        src: &S,
        dst: &D,
        element_bytes: usize,
        options: CopyOptions,
    ) -> Result<Plan, TensorError> {
        crate::offsets::each_once(dst)?;
        Plan::of_valid(src, dst, element_bytes, options)
    }

    /// As [`Plan::new`], for a destination that is known to be injective.
    fn of_valid<S: Offsets, D: Offsets>(
        src: &S,
        dst: &D,
        element_bytes: usize,
        options: CopyOptions,
    ) -> Result<Plan, TensorError> {
        Plan::of_sides(Addressing::of(src)?, Addressing::of(dst)?, dst.size(), element_bytes, options)
    }

    fn of_sides(
        src: Addressing,
        dst: Addressing,
        size: i64,
        element: usize,
        options: CopyOptions,
    ) -> Result<Plan, TensorError> {
        if src.size() != Some(size) {
            return Err(TensorError::Sizes { first: src.size().unwrap_or(i64::MAX), second: size });
        }
        let body = body(&src, &dst, element, &options);
        let threads = options.threads.unwrap_or_else(threads::count).max(1);
        let best = Instructions::detected();
        let instructions = options.instructions.unwrap_or(best).min(best);
        Ok(Plan { src, dst, element, size, body, threads, instructions })
    }

    /// Copies the elements of one view to another.
    ///
    /// Errors: the layouts, or the size of an element, are not those of the plan (E0421).
    pub fn run<T: NoUninit, S: Offsets, D: Offsets>(
        &self,
        src: &TensorView<'_, T, S>,
        dst: &mut TensorViewMut<'_, T, D>,
    ) -> Result<(), TensorError> {
        let refuse = |what| Err(TensorError::Plan { what });
        if size_of::<T>() != self.element {
            return refuse("elements of another size");
        }
        if Addressing::of(src.layout())? != self.src {
            return refuse("another source layout");
        }
        if Addressing::of(dst.layout())? != self.dst {
            return refuse("another destination layout");
        }
        self.run_valid(src, dst);
        Ok(())
    }

    /// As [`Plan::run`], for views under the layouts of the plan.
    #[allow(unsafe_code)]
    fn run_valid<T: NoUninit, S: Offsets, D: Offsets>(
        &self,
        src: &TensorView<'_, T, S>,
        dst: &mut TensorViewMut<'_, T, D>,
    ) {
        debug_assert_eq!(size_of::<T>(), self.element);
        // SAFETY: every place of the plan's sides is one of the views' layouts. The views borrow
        // the places of the source to be read, and those of the destination for this alone.
        unsafe { self.work().run(src.as_ptr().cast(), dst.as_mut_ptr().cast()) }
    }

    fn work(&self) -> Work<'_> {
        Work {
            src: &self.src,
            dst: &self.dst,
            body: &self.body,
            element: self.element,
            size: self.size,
            threads: self.threads,
            instructions: self.instructions,
        }
    }
}

/// Copies every element of `src` to the element of `dst` at the same index.
///
/// Errors: the sizes differ (E0420).
///
/// ```
/// use tilewright_layout::{Composed, Layout};
/// use tilewright_tensor::{Tensor, copy};
///
/// // Rows into a swizzled tile, as shared memory has it.
/// let rows: Layout = "(8,64):(64,1)".parse().unwrap();
/// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
/// let src = Tensor::from_fn(rows, |index| index as u16).unwrap();
/// let mut dst = Tensor::filled(tile, 0_u16).unwrap();
/// copy(&src.view(), &mut dst.view_mut()).unwrap();
/// assert_eq!(dst.get([3, 40]), src.get([3, 40]));
/// ```
pub fn copy<T: NoUninit, S: Offsets, D: Offsets>(
    src: &TensorView<'_, T, S>,
    dst: &mut TensorViewMut<'_, T, D>,
) -> Result<(), TensorError> {
    let plan = Plan::of_valid(src.layout(), dst.layout(), size_of::<T>(), CopyOptions::default())?;
    plan.run_valid(src, dst);
    Ok(())
}

/// Sets every element of `dst` to a value.
///
/// Errors: as [`Offsets::derived`].
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{TensorViewMut, fill};
///
/// let mut memory = [0; 8];
/// let every_other: Layout = "4:2".parse().unwrap();
/// fill(&mut TensorViewMut::new(&mut memory, every_other).unwrap(), 7).unwrap();
/// assert_eq!(memory, [7, 0, 7, 0, 7, 0, 7, 0]);
/// ```
#[allow(unsafe_code)]
pub fn fill<T: NoUninit, D: Offsets>(dst: &mut TensorViewMut<'_, T, D>, value: T) -> Result<(), TensorError> {
    let (side, size) = (Addressing::of(dst.layout())?, dst.size());
    let broadcast = Addressing::broadcast(side.leaves().iter().map(|leaf| leaf.extent));
    let plan = Plan::of_sides(broadcast, side, size, size_of::<T>(), CopyOptions::default())?;
    // SAFETY: the only place of the source is the value, and the view borrows those of the
    // destination.
    unsafe { plan.work().run((&raw const value).cast(), dst.as_mut_ptr().cast()) };
    Ok(())
}

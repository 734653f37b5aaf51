//! A GEMM: its operands and factors.
//!
//! **Law.** `C(i,j) = alpha * sum over k of A(i,k) * B(j,k) + beta * C(i,j)`. The tasks of a GEMM
//! write disjoint parts of C.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::element::SumElement;
use super::kernel::KernelSet;
use super::line::DimensionOffsets;
use super::pack::Pack;
use super::plan::ProductPlan;
use super::shared::SharedBlocks;
use super::small;
use super::task::{self, Share};
use crate::threads::Threads;

/// The offsets of the elements of a matrix.
pub enum MatrixPlaces<'a> {
    /// The offset is the sum of a row's offset and a column's offset.
    Lines(DimensionOffsets, DimensionOffsets),
    /// A function of row and column returns the offset.
    Each(&'a (dyn Fn(usize, usize) -> isize + Sync)),
}

/// An operand: rows along M or N, columns along K.
pub struct ProductOperand<'a, S> {
    /// The element at offset 0. *Invariant*: every offset in `places` leads to a number that may be
    /// read, from any thread.
    pub from: *const S,
    pub places: MatrixPlaces<'a>,
}

/// The matrix that is written.
pub struct ProductTarget<'a, C> {
    /// The element at offset 0. *Invariant*: every offset in `places` leads to an element that
    /// nobody else uses, and different coordinates to different elements.
    pub to: *mut C,
    pub places: MatrixPlaces<'a>,
}

/// A GEMM: the extents M, N and K, the operands, the factors, and the largest number of threads.
pub struct Product<'a, S, C> {
    pub extents: [usize; 3],
    pub alpha: C,
    pub beta: C,
    pub a: ProductOperand<'a, S>,
    pub b: ProductOperand<'a, S>,
    pub c: ProductTarget<'a, C>,
    pub threads: usize,
    /// Whether A and B are exchanged, and M and N with them.
    pub transposed: bool,
}

// SAFETY: tasks read the operands, which any thread may, and write disjoint parts of the target,
// which by its invariant nobody else uses.
unsafe impl<S, C> Sync for Product<'_, S, C> {}

impl<S, C> Product<'_, S, C> {
    /// Exchanges A and B if the rows of C are contiguous and its columns are not: `C = A * B` is
    /// also `C^T = B^T * A^T`.
    #[inline]
    pub fn transpose_to_columns(&mut self) {
        let MatrixPlaces::Lines(rows, columns) = &mut self.c.places else { return };
        if rows.stride(1) == Some(1) || columns.stride(1) != Some(1) {
            return;
        }
        std::mem::swap(rows, columns);
        std::mem::swap(&mut self.a, &mut self.b);
        self.extents.swap(0, 1);
        self.transposed = true;
    }
}

/// The micro-kernels, and the packing whose output they read.
#[derive(Clone, Copy)]
pub(super) struct Backend<S, W: 'static, C: 'static> {
    pub kernels: &'static KernelSet<W, C>,
    pub pack_a: Pack<S, W>,
    pub pack_b: Pack<S, W>,
    /// Whether a word is the number itself, so that micro-kernels can read operands without
    /// packing.
    pub in_place: bool,
}

/// The largest number of multiplications of a GEMM that is computed without packing, if that is
/// possible.
const SMALL: usize = 1 << 23;
/// As [`SMALL`], if there are several threads.
pub(super) const SMALL_ON_THREADS: usize = 1 << 20;

impl<S: Copy + Default, W: Copy, C: SumElement> Backend<S, W, C> {
    /// Computes a GEMM.
    pub fn run(&self, product: &Product<'_, S, C>) {
        let threads = product.threads;
        if small::run(self, product, if threads > 1 { SMALL_ON_THREADS } else { SMALL }) {
            return;
        }
        let [m, n, _] = product.extents;
        let plan = ProductPlan::new(self, product);
        let [rows, columns] = plan.task;
        let across = m.div_ceil(rows);
        let tasks = across * n.div_ceil(columns);
        let shared = plan.shared.map(|[blocks, bytes]| SharedBlocks::new(blocks, bytes));
        let task = |number: usize| {
            let (i, j) = (number % across * rows, number / across * columns);
            let share = shared.as_ref().map(|blocks| Share { blocks, task: number, tasks });
            task::run(self, product, &plan, [i..(i + rows).min(m), j..(j + columns).min(n)], share);
        };
        if tasks == 1 || threads == 1 {
            return (0..tasks).for_each(task);
        }
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= tasks {
                    break;
                }
                task(number);
            }
        };
        // This thread works too, so that only the others need to be woken.
        Threads::here().beside(threads.min(tasks) - 1, &work);
        if let Some(shared) = shared {
            shared.keep();
        }
    }
}

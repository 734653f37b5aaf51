//! GEMMs that are too small for packing to pay.
//!
//! **Law.** That of a GEMM, for operands that the micro-kernels can read and write in place.
#![allow(unsafe_code)]

use super::blocking::register_tile;
use super::element::SumElement;
use super::prefetch::Prefetch;
use super::product::{Backend, MatrixPlaces, Product, SMALL_ON_THREADS};
use super::tile::{ProductPart, Slices, each_tile};

/// The largest number of passes over B in such a GEMM, one for each slice of A. GEMMs that threads
/// would not share are exempt.
const MAX_PASSES: usize = 10;

/// Computes a GEMM of at most this many multiplications. If there are more, or an operand has to be
/// packed, it returns false and does nothing.
#[inline]
pub(super) fn run<S: Copy + Default, W: Copy, C: SumElement>(
    backend: &Backend<S, W, C>,
    product: &Product<'_, S, C>,
    most: usize,
) -> bool {
    let kernels = backend.kernels;
    let [m, n, k] = product.extents;
    let work = m.saturating_mul(n).saturating_mul(k);
    let passes = m.div_ceil(kernels.lanes * kernels.packed.len());
    if !backend.in_place || work > most || work > SMALL_ON_THREADS && passes > MAX_PASSES {
        return false;
    }
    let (MatrixPlaces::Lines(a_rows, a_steps), MatrixPlaces::Lines(b_rows, b_steps), MatrixPlaces::Lines(down, across)) =
        (&product.a.places, &product.b.places, &product.c.places)
    else {
        return false;
    };
    let (Some(1), Some(a_step), Some(b_row), Some(b_step), Some(1), Some(stride)) =
        (a_rows.stride(1), a_steps.stride(0), b_rows.stride(1), b_steps.stride(0), down.stride(1), across.stride(0))
    else {
        return false;
    };
    let lanes = kernels.lanes;
    let [vectors, nr] = register_tile(kernels, m.div_ceil(lanes), n, k);
    let mr = lanes * vectors;
    let a = Slices { from: product.a.from.cast(), slice: mr as isize, step: a_step, row: 1 };
    let b = Slices { from: product.b.from.cast(), slice: b_row * nr as isize, step: b_step, row: b_row };
    let part = ProductPart { tile: [mr, nr], extents: [m, n], words: k, edge: true };
    each_tile(
        kernels,
        part,
        [a, b],
        [product.alpha, product.beta],
        Prefetch::NONE,
        |_| Prefetch::NONE,
        |i, j, run, _, tile| {
            let to = product.c.to.wrapping_offset(i as isize + stride * j as isize);
            // SAFETY: the tile is a part of C, whose invariant makes it ours, and its slices lie in
            // the operands. The instructions are those that the caller of the product asked for.
            unsafe { tile.write(run, to, stride) }
        },
    );
    true
}

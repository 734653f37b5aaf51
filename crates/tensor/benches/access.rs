//! What an element access costs: the sum of a matrix through views, and through raw pointers that nobody checks.
//!
//! Each pair of cases does the same additions in the same order, so that the difference is the access.
#![allow(unsafe_code)]

use std::hint::black_box;

use divan::Bencher;
use tilewright_layout::{Composed, Layout};
use tilewright_tensor::{Tensor, TensorView};

const ROWS: i64 = 256;
const COLUMNS: i64 = 256;

fn main() {
    divan::main();
}

fn matrix(layout: &str) -> Tensor<f32> {
    Tensor::from_fn(layout.parse::<Layout>().unwrap(), |index| (index % 7) as f32).unwrap()
}

/// Row after row with room between them, taken in the order of memory.
const TRANSPOSED: &str = "(256,256):(1,272)";
/// The same memory, taken across it.
const ROW_MAJOR: &str = "(256,256):(272,1)";
/// Tiles of 16 x 16.
const TILED: &str = "((16,16),(16,16)):((1,4096),(16,256))";

/// The sum in order of the indices, by pointers.
#[inline(never)]
fn raw(base: *const f32, down: isize, right: isize) -> f32 {
    let mut sum = 0.0;
    for j in 0..COLUMNS as isize {
        for i in 0..ROWS as isize {
            // SAFETY: the callers have so many elements.
            sum += unsafe { *base.offset(i * down + j * right) };
        }
    }
    sum
}

/// The sum over tiles of 16 x 16 in the order of the indices, by pointers.
#[inline(never)]
fn raw_tiled(base: *const f32) -> f32 {
    let mut sum = 0.0;
    for tile_column in 0..16 {
        for j in 0..16 {
            for tile_row in 0..16 {
                for i in 0..16 {
                    // SAFETY: the callers have so many elements.
                    sum += unsafe { *base.offset(i + 4096 * tile_row + 16 * j + 256 * tile_column) };
                }
            }
        }
    }
    sum
}

#[inline(never)]
fn iterated(view: &TensorView<'_, f32>) -> f32 {
    let mut sum = 0.0;
    view.for_each(|element| sum += element);
    sum
}

#[inline(never)]
fn stepped(view: &TensorView<'_, f32>) -> f32 {
    let mut sum = 0.0;
    for element in view.iter() {
        sum += element;
    }
    sum
}

#[inline(never)]
fn by_mode(view: &TensorView<'_, f32>) -> f32 {
    let matrix = view.by_mode::<2>().unwrap();
    let [rows, columns] = matrix.extents();
    let mut sum = 0.0;
    for j in 0..columns {
        for i in 0..rows {
            sum += matrix.get([i, j]).unwrap_or(&0.0);
        }
    }
    sum
}

#[inline(never)]
fn by_index(view: &TensorView<'_, f32>) -> f32 {
    let elements = view.by_index();
    (0..view.size()).map(|index| elements.get(index).unwrap_or(&0.0)).sum()
}

/// What the evaluator costs by itself.
#[inline(never)]
fn raw_by_index(base: *const f32, layout: &Layout) -> f32 {
    let (evaluator, size) = (layout.evaluator(), layout.size());
    // SAFETY: the callers have so many elements.
    (0..size).map(|index| unsafe { *base.offset(evaluator.eval(index).unwrap_unchecked() as isize) }).sum()
}

#[inline(never)]
fn swizzled(view: &TensorView<'_, f32, Composed>) -> f32 {
    let mut sum = 0.0;
    view.for_each(|element| sum += element);
    sum
}

#[inline(never)]
fn raw_swizzled(base: *const f32) -> f32 {
    let mut sum = 0.0;
    for j in 0..COLUMNS as isize {
        for i in 0..ROWS as isize {
            let offset = i * 256 + j;
            // SAFETY: the callers have so many elements; the swizzle stays within rows.
            sum += unsafe { *base.offset(offset ^ (offset >> 3 & 0x38)) };
        }
    }
    sum
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn a_raw_pointers(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    let (down, right) = if layout == ROW_MAJOR { (272, 1) } else { (1, 272) };
    bencher.bench_local(|| raw(black_box(tensor.as_ptr()), black_box(down), black_box(right)));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn b_for_each(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| iterated(black_box(&tensor.view())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn c_iterator(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| stepped(black_box(&tensor.view())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn d_by_mode(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| by_mode(black_box(&tensor.view())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR, TILED])]
fn e_by_index(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| by_index(black_box(&tensor.view())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR, TILED])]
fn e_evaluator_and_raw_pointers(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| raw_by_index(black_box(tensor.as_ptr()), black_box(tensor.layout())));
}

#[divan::bench]
fn f_tiled_raw_pointers(bencher: Bencher<'_, '_>) {
    let tensor = matrix(TILED);
    bencher.bench_local(|| raw_tiled(black_box(tensor.as_ptr())));
}

#[divan::bench]
fn g_tiled_for_each(bencher: Bencher<'_, '_>) {
    let tensor = matrix(TILED);
    bencher.bench_local(|| iterated(black_box(&tensor.view())));
}

#[divan::bench]
fn h_swizzled_raw_pointers(bencher: Bencher<'_, '_>) {
    let tensor = matrix("(256,256):(256,1)");
    bencher.bench_local(|| raw_swizzled(black_box(tensor.as_ptr())));
}

#[divan::bench]
fn i_swizzled_for_each(bencher: Bencher<'_, '_>) {
    let tensor = matrix("(256,256):(256,1)");
    let swizzled_layout: Composed = "S<3,3,3> o 0 o (256,256):(256,1)".parse().unwrap();
    let view = TensorView::new(tensor.as_slice(), swizzled_layout).unwrap();
    bencher.bench_local(|| swizzled(black_box(&view)));
}

//! What an element access costs: the sum of a matrix through views, and through raw pointers that
//! nobody checks.
//!
//! Each pair of cases does the same additions in the same order, so that the difference is the
//! access. `scripts/accesses` counts the instructions of an element of each case, of which all have
//! 65536. On x86-64 without vector extensions, an element costs
//!
//! ```text
//!                                     by pointers   for_each, sum   iterator   from the back
//! (256,256):(1,256)                       2.04           1.38         5.00         4.00
//! (256,256):(1,272)                       2.04           1.47         4.04
//! (256,256):(272,1)                       2.04           2.09         4.04         4.48
//! (64,32,32):(32,2048,1)                  2.22           2.03         4.02
//! (16,16,16,16):(17,4352,1,272)           2.95           2.91         4.85        11.50
//! ((16,16),(16,16)):((1,4096),(16,256))   2.95           3.27         4.84
//! (4,8,64,32):(8,1,1024,32)               6.07           3.01         9.15
//! S<3,3,3> o 0 o (256,256):(256,1)        7.54           4.14         6.35         6.36
//! S<3,3,3> o 0 o (256,256):(1,264)        7.54           5.27         7.37         7.35
//! (256,256):(^1,^257)                     3.79           4.38         6.59
//! ```
#![allow(unsafe_code)]

use std::hint::black_box;

use divan::Bencher;
use tilewright_layout::{Composed, Layout, Xor};
use tilewright_tensor::{Offsets, Tensor, TensorView, TensorViewMut, Zipped};

#[path = "access/measured.rs"]
mod measured;

fn main() {
    divan::main();
}

fn matrix(layout: &str) -> Tensor<f32> {
    Tensor::from_fn(layout.parse::<Layout>().unwrap(), |index| (index % 7) as f32).unwrap()
}

/// Extents and strides, for loops by pointers.
fn loops<const RANK: usize>(layout: &str) -> [(isize, isize); RANK] {
    let layout: Layout = layout.parse().unwrap();
    let modes: Vec<(isize, isize)> =
        layout.leaves().iter().map(|leaf| (leaf.extent as isize, leaf.stride as isize)).collect();
    black_box(modes.try_into().unwrap())
}

/// Side by side.
const CONTIGUOUS: &str = "(256,256):(1,256)";
/// Row after row with room between them, taken in the order of memory.
const TRANSPOSED: &str = "(256,256):(1,272)";
/// The same memory, taken across it.
const ROW_MAJOR: &str = "(256,256):(272,1)";
/// Tiles of 16 x 16.
const TILED: &str = "((16,16),(16,16)):((1,4096),(16,256))";
/// Modes in another order than in memory.
const PERMUTED: &str = "(64,32,32):(32,2048,1)";
/// Four modes in another order than in memory, room between rows.
const FOUR: &str = "(16,16,16,16):(17,4352,1,272)";
/// Short modes in another order than in memory.
const SHORT: &str = "(4,8,64,32):(8,1,1024,32)";
/// Rows of 256, taken across, of which eight neighbours are moved about by the row.
const ACROSS: &str = "S<3,3,3> o 0 o (256,256):(256,1)";
/// The same, taken in the order of rows.
const ALONG: &str = "S<3,3,3> o 0 o (256,256):(1,256)";
/// A swizzle of rows with room between them.
const PADDED: &str = "S<3,3,3> o 0 o (256,256):(1,264)";
/// A swizzle with XOR strides.
const XOR: &str = "(256,256):(^1,^257)";

#[divan::bench(args = [CONTIGUOUS, TRANSPOSED, ROW_MAJOR, PERMUTED, FOUR, SHORT, TILED])]
fn a_raw_pointers(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    let base = tensor.as_ptr();
    match tensor.layout().leaves().len() {
        2 => bencher.bench_local(|| measured::raw_two(black_box(base), loops(layout))),
        3 => bencher.bench_local(|| measured::raw_three(black_box(base), loops(layout))),
        _ => bencher.bench_local(|| measured::raw_four(black_box(base), loops(layout))),
    }
}

#[divan::bench(args = [CONTIGUOUS, TRANSPOSED, ROW_MAJOR, PERMUTED, FOUR, SHORT, TILED])]
fn b_for_each(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| measured::for_each(black_box(&tensor.view())));
}

#[divan::bench(args = [CONTIGUOUS, TRANSPOSED, ROW_MAJOR, PERMUTED, FOUR, SHORT, TILED])]
fn c_sum(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| measured::summed(black_box(&tensor.view())));
}

#[divan::bench(args = [CONTIGUOUS, TRANSPOSED, ROW_MAJOR, PERMUTED, FOUR, SHORT, TILED])]
fn d_iterator(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| measured::stepped(black_box(&tensor.view())));
}

#[divan::bench(args = [CONTIGUOUS, ROW_MAJOR, FOUR])]
fn e_iterator_from_the_back(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| measured::backwards(black_box(&tensor.view())));
}

#[divan::bench(args = [CONTIGUOUS, ROW_MAJOR, FOUR])]
fn f_to_vec(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| measured::collected(black_box(&tensor.view())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn g_by_mode(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| measured::by_mode(black_box(&tensor.view())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR, TILED])]
fn h_by_index(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| measured::by_index(black_box(&tensor.view())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR, TILED])]
fn i_evaluator_and_raw_pointers(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = matrix(layout);
    bencher.bench_local(|| measured::raw_by_index(black_box(tensor.as_ptr()), black_box(tensor.layout())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn j_written_by_raw_pointers(bencher: Bencher<'_, '_>, layout: &str) {
    let mut tensor = matrix(layout);
    let base = tensor.as_mut_ptr();
    bencher.bench_local(|| measured::raw_written(black_box(base), loops(layout)));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn k_written_by_for_each(bencher: Bencher<'_, '_>, layout: &str) {
    let mut tensor = matrix(layout);
    bencher.bench_local(|| measured::written(black_box(&mut tensor.view_mut())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn l_written_by_iterator(bencher: Bencher<'_, '_>, layout: &str) {
    let mut tensor = matrix(layout);
    bencher.bench_local(|| measured::stepped_mut(black_box(&mut tensor.view_mut())));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn m_zipped_by_raw_pointers(bencher: Bencher<'_, '_>, layout: &str) {
    let (from, mut to) = (matrix(layout), matrix(layout));
    let base = to.as_mut_ptr();
    bencher.bench_local(|| measured::raw_zipped(black_box(from.as_ptr()), black_box(base), loops(layout)));
}

#[divan::bench(args = [TRANSPOSED, ROW_MAJOR])]
fn n_zipped(bencher: Bencher<'_, '_>, layout: &str) {
    let (from, mut to) = (matrix(layout), matrix(layout));
    bencher.bench_local(|| measured::zipped(black_box(from.view()), black_box(to.view_mut())));
}

/// A tensor under a swizzle.
fn swizzled(layout: &str) -> Tensor<f32, Composed> {
    Tensor::from_fn(layout.parse::<Composed>().unwrap(), |index| (index % 7) as f32).unwrap()
}

#[divan::bench(args = [ACROSS, ALONG, PADDED])]
fn o_swizzled_raw_pointers(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = swizzled(layout);
    let inner = layout.rsplit(' ').next().unwrap();
    let base = tensor.as_ptr();
    bencher.bench_local(|| measured::raw_swizzled(black_box(base), loops(inner), black_box(3), black_box(0x38)));
}

#[divan::bench(args = [ACROSS, ALONG, PADDED])]
fn p_swizzled_for_each(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = swizzled(layout);
    bencher.bench_local(|| measured::for_each(black_box(&tensor.view())));
}

#[divan::bench(args = [ACROSS, ALONG, PADDED])]
fn q_swizzled_iterator(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = swizzled(layout);
    bencher.bench_local(|| measured::stepped(black_box(&tensor.view())));
}

#[divan::bench(args = [ACROSS, PADDED])]
fn r_swizzled_from_the_back(bencher: Bencher<'_, '_>, layout: &str) {
    let tensor = swizzled(layout);
    bencher.bench_local(|| measured::backwards(black_box(&tensor.view())));
}

#[divan::bench]
fn s_xor_raw_pointers(bencher: Bencher<'_, '_>) {
    let tensor = Tensor::from_fn(XOR.parse::<Layout<Xor>>().unwrap(), |index| (index % 7) as f32).unwrap();
    bencher.bench_local(|| measured::raw_xor(black_box(tensor.as_ptr()), black_box(256), black_box(256)));
}

#[divan::bench]
fn t_xor_for_each(bencher: Bencher<'_, '_>) {
    let tensor = Tensor::from_fn(XOR.parse::<Layout<Xor>>().unwrap(), |index| (index % 7) as f32).unwrap();
    bencher.bench_local(|| measured::for_each(black_box(&tensor.view())));
}

#[divan::bench]
fn u_xor_iterator(bencher: Bencher<'_, '_>) {
    let tensor = Tensor::from_fn(XOR.parse::<Layout<Xor>>().unwrap(), |index| (index % 7) as f32).unwrap();
    bencher.bench_local(|| measured::stepped(black_box(&tensor.view())));
}

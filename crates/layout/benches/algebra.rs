//! How the cost of the algebra grows: `cargo bench -p tilewright-layout`.
//!
//! Law: an operation costs time linear in the number of leaves, up to a logarithm where leaves are
//! sorted. At most 62 extents can exceed 1, so the leaves of the layouts with 100 and 1000 are
//! mostly broadcast: extent 1, or stride 0. Single cases, with their times in nanoseconds, are in
//! the example `throughput`.

use divan::{Bencher, black_box};
use tilewright_layout::{Layout, Leaf, Tree};

/// The numbers of leaves.
const RANKS: [usize; 4] = [1, 10, 100, 1000];

fn main() {
    divan::main();
}

/// A layout of this many leaves: up to thirty extents of 2, spread out, that no merging shortens;
/// between them extents of 1.
fn broadcast(rank: usize) -> Layout {
    let moving = rank.min(30);
    let leaves = (0..rank).map(|leaf| {
        // Whether a moving leaf falls here, with the moving ones at equal distances.
        let number = leaf * moving / rank;
        let begins = leaf == 0 || (leaf - 1) * moving / rank < number;
        match number {
            _ if !begins => Leaf { extent: 1, stride: leaf as i64 },
            // The first and second of each pair change places, so neighbours do not merge.
            number => Leaf { extent: 2, stride: 1 << (number ^ 1) },
        }
    });
    let tree = Tree::flat(leaves).expect("a thousand leaves are not too many");
    Layout::from_tree(tree).expect("the size is at most 2^30")
}

#[divan::bench(args = RANKS)]
fn coalesce(bencher: Bencher<'_, '_>, rank: usize) {
    let layout = broadcast(rank);
    bencher.bench(|| black_box(&layout).coalesce());
}

#[divan::bench(args = RANKS)]
fn compose_after(bencher: Bencher<'_, '_>, rank: usize) {
    let (layout, first) = (broadcast(rank), broadcast(1));
    bencher.bench(|| black_box(&layout).compose(black_box(&first)).expect("the composite exists"));
}

#[divan::bench(args = RANKS)]
fn compose_before(bencher: Bencher<'_, '_>, rank: usize) {
    let line: Layout = "1073741824:1".parse().expect("a line");
    let layout = broadcast(rank);
    bencher.bench(|| black_box(&line).compose(black_box(&layout)).expect("the composite exists"));
}

#[divan::bench(args = RANKS)]
fn complement(bencher: Bencher<'_, '_>, rank: usize) {
    let layout = broadcast(rank);
    bencher.bench(|| black_box(&layout).complement(black_box(&(1 << 40))).expect("the complement exists"));
}

#[divan::bench(args = RANKS)]
fn right_inverse(bencher: Bencher<'_, '_>, rank: usize) {
    let layout = broadcast(rank);
    bencher.bench(|| black_box(&layout).right_inverse().expect("the inverse exists"));
}

#[divan::bench(args = RANKS)]
fn eval(bencher: Bencher<'_, '_>, rank: usize) {
    let layout = broadcast(rank);
    bencher.bench(|| black_box(&layout).eval(black_box(&1)).expect("the value is small"));
}

#[divan::bench(args = RANKS)]
fn eval_prepared(bencher: Bencher<'_, '_>, rank: usize) {
    let evaluator = broadcast(rank).evaluator();
    bencher.bench(|| black_box(&evaluator).eval(black_box(1)).expect("the value is small"));
}

#[divan::bench(args = RANKS)]
fn parse(bencher: Bencher<'_, '_>, rank: usize) {
    let text = broadcast(rank).to_string();
    bencher.bench(|| black_box(text.as_str()).parse::<Layout>().expect("the text of a layout"));
}

#[divan::bench(args = RANKS)]
fn print(bencher: Bencher<'_, '_>, rank: usize) {
    let layout = broadcast(rank);
    let mut line = Vec::with_capacity(16 * rank + 256);
    bencher.bench_local(|| {
        line.clear();
        black_box(&layout).write_to(&mut line);
        black_box(line.len())
    });
}

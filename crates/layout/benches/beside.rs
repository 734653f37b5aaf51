//! Morphisms beside the algebra, on the same layouts in one run:
//! `cargo bench -p tilewright-layout --bench beside`.
//!
//! Law: what is computed through morphisms takes at most a few times as long as what the algebra
//! computes directly: the standard representation beside the complement, which sorts the same
//! modes; encoding beside the compact layout of the same shape, which multiplies up the same
//! strides; composition by refinement beside composition.

use divan::{Bencher, black_box};
use tilewright_layout::Layout;
use tilewright_layout::morphism::{compose_by_refinement, standard_representation};

fn main() {
    divan::main();
}

/// Layouts of one to eight modes.
const LAYOUTS: [&str; 4] = [
    "64:1",
    "(32,(2,2)):(192,(24,3))",
    "(8,4,(2,4)):(4,128,(32,1))",
    "((2,2),(2,2),(2,2),(2,2)):((1,16),(2,32),(4,64),(8,128))",
];

/// Outer and inner layouts whose composition goes through refinement.
const PAIRS: [(&str, &str); 4] = [
    ("128:2", "(8,16):(16,1)"),
    ("(12,3,6):(1,72,12)", "(6,6):(1,6)"),
    ("(10,360):(2,60)", "(6,6):(5,60)"),
    ("((8,16),(4,8)):((4,256),(1,32))", "((4,8),(2,2,4)):((32,1),(8,16,128))"),
];

fn layout(text: &str) -> Layout {
    text.parse().expect("a layout")
}

mod represent {
    use super::*;

    #[divan::bench(args = LAYOUTS)]
    fn standard_representation_of(bencher: Bencher<'_, '_>, text: &str) {
        let layout = layout(text);
        bencher.bench(|| standard_representation(black_box(&layout)).expect("it is tractable"));
    }

    #[divan::bench(args = LAYOUTS)]
    fn complement(bencher: Bencher<'_, '_>, text: &str) {
        let layout = layout(text);
        bencher.bench(|| black_box(&layout).complement(black_box(&6144)).expect("it is a chain"));
    }
}

mod encode {
    use super::*;

    #[divan::bench(args = LAYOUTS)]
    fn encoded_layout(bencher: Bencher<'_, '_>, text: &str) {
        let f = standard_representation(&layout(text)).expect("it is tractable");
        bencher.bench(|| black_box(&f).encoded_layout().expect("the strides fit"));
    }

    #[divan::bench(args = LAYOUTS)]
    fn compact_layout(bencher: Bencher<'_, '_>, text: &str) {
        let shape = layout(text).shape();
        bencher.bench(|| Layout::compact(black_box(&shape)).expect("the size fits"));
    }
}

mod compose {
    use super::*;

    #[divan::bench(args = [0, 1, 2, 3])]
    fn by_refinement(bencher: Bencher<'_, '_>, pair: usize) {
        let (outer, inner) = (layout(PAIRS[pair].0), layout(PAIRS[pair].1));
        bencher.bench(|| compose_by_refinement(black_box(&outer), black_box(&inner)).expect("it applies"));
    }

    #[divan::bench(args = [0, 1, 2, 3])]
    fn directly(bencher: Bencher<'_, '_>, pair: usize) {
        let (outer, inner) = (layout(PAIRS[pair].0), layout(PAIRS[pair].1));
        bencher.bench(|| black_box(&outer).compose_within(black_box(&inner)).expect("it exists"));
    }
}

//! A composite computed, the same looked up, and a value interned again:
//! `cargo bench -p tilewright-compiler`.
//!
//! The example `interning` prints ratios, for more operations and for the first time as well.

use divan::{Bencher, black_box};
use tilewright_compiler::Interner;
use tilewright_layout::AnyLayout;

/// Composites of three sizes: three leaves, five, and ten.
const CASES: [(&str, &str); 3] = [
    ("(6,2):(8,2)", "(4,3):(3,1)"),
    ("((8,16),(64,2),(1,2)):((64,512),(1,8192),(0,16384))", "((4,4),(2,16)):((1,4),(16,32))"),
    ("(2,2,2,2,2,2,2,2,2,2):(2,1,8,4,32,16,128,64,512,256)", "(2,2,2,2,2,2,2,2,2,2):(512,256,128,64,32,16,8,4,2,1)"),
];

fn main() {
    divan::main();
}

fn operands((a, b): (&str, &str)) -> (AnyLayout, AnyLayout) {
    (a.parse().expect("a layout"), b.parse().expect("a layout"))
}

#[divan::bench(args = 0..CASES.len())]
fn compute(bencher: Bencher<'_, '_>, case: usize) {
    let (a, b) = operands(CASES[case]);
    bencher.bench(|| black_box(&a).compose(black_box(&b)));
}

#[divan::bench(args = 0..CASES.len())]
fn look_up(bencher: Bencher<'_, '_>, case: usize) {
    let (a, b) = operands(CASES[case]);
    let interner = Interner::new();
    let (a, b) = (interner.intern(&a).expect("room"), interner.intern(&b).expect("room"));
    interner.compose(a, b).expect("the composite exists");
    bencher.bench(|| interner.compose(black_box(a), black_box(b)));
}

/// What a handle costs whoever has a value: it is hashed and compared.
#[divan::bench(args = 0..CASES.len())]
fn intern(bencher: Bencher<'_, '_>, case: usize) {
    let (a, _) = operands(CASES[case]);
    let interner = Interner::new();
    interner.intern(&a).expect("room");
    bencher.bench(|| interner.intern(black_box(&a)));
}

//! Random large layouts, and where they are looked at.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tilewright_layout::{Layout, Leaf, Tree};

/// Decisions, read one after another: proptest shrinks them towards 0.
pub struct Choices {
    numbers: Vec<u32>,
    next: Cell<usize>,
}

impl Choices {
    pub fn below(&self, bound: i64) -> i64 {
        let at = self.next.replace(self.next.get() + 1);
        let (high, low) = (self.numbers[at % self.numbers.len()], self.numbers[(at * 7 + 3) % self.numbers.len()]);
        let wide = u64::from(high) << 32 | u64::from(low ^ at as u32);
        (wide % bound as u64) as i64
    }

    pub fn of<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as i64) as usize]
    }
}

/// Runs a law on this many cases, always the same ones.
pub fn holds(cases: u32, law: impl Fn(&Choices)) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&vec(any::<u32>(), 96), |numbers| {
        law(&Choices { numbers, next: Cell::new(0) });
        Ok::<(), TestCaseError>(())
    });
    outcome.unwrap();
}

/// Counts what happened, to show that a test is not vacuous.
#[derive(Default)]
pub struct Counts(RefCell<BTreeMap<String, u32>>);

impl Counts {
    pub fn add(&self, what: &str) {
        *self.0.borrow_mut().entry(what.to_string()).or_default() += 1;
    }

    pub fn of(&self, what: &str) -> u32 {
        self.0.borrow().get(what).copied().unwrap_or(0)
    }

    #[track_caller]
    pub fn at_least(&self, what: &str, count: u32) {
        assert!(self.of(what) >= count, "{what}: {:?}", self.0.borrow());
    }

    #[track_caller]
    pub fn at_most(&self, what: &str, count: u32) {
        assert!(self.of(what) <= count, "{what}: {:?}", self.0.borrow());
    }
}

pub const MOST: i64 = 1 << 50;

pub fn extents(c: &Choices) -> Vec<i64> {
    let mut size = 1_i64;
    let mut extents = Vec::new();
    for _ in 0..1 + c.below(12) {
        let random = 1 + c.below(1 << 20);
        let extent = c.of(&[1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 16, 32, 100, 128, 1 << 10, 1 << 20, random]);
        match size.checked_mul(extent) {
            Some(next) if next <= MOST => size = next,
            _ => break,
        }
        extents.push(extent);
    }
    extents
}

/// An order of `0..n`.
pub fn order(c: &Choices, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, c.below(i as i64 + 1) as usize);
    }
    order
}

pub fn strides(c: &Choices, extents: &[i64]) -> Vec<i64> {
    let kind = c.below(7);
    let mut strides = vec![0; extents.len()];
    let (mut step, mut products) = (1, vec![1]);
    for at in order(c, extents.len()) {
        strides[at] = match kind {
            3 => c.of(&products),
            4 => c.below(1 << 20),
            5 => c.below(1 << 20) - (1 << 19),
            _ => step,
        };
        if kind == 1 && step < MOST {
            step *= c.of(&[1, 1, 2]);
        }
        if kind == 2 && c.below(4) == 0 {
            strides[at] = 0;
        } else if kind == 6 && c.below(3) == 0 {
            strides[at] = -strides[at];
        }
        step *= extents[at];
        products.push(step);
    }
    strides
}

/// The leaves in some nesting.
pub fn nested(c: &Choices, extents: &[i64], strides: &[i64]) -> Layout {
    let leaves = extents.iter().zip(strides).map(|(extent, stride)| Leaf { extent: *extent, stride: *stride });
    let mut layout = Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap();
    for _ in 0..c.below(4) {
        let rank = layout.rank() as i64;
        let begin = c.below(rank + 1);
        let end = begin + c.below(rank + 1 - begin);
        layout = layout.group(begin as usize..end as usize).unwrap();
    }
    layout
}

pub fn any_layout(c: &Choices) -> Layout {
    let extents = extents(c);
    let strides = strides(c, &extents);
    nested(c, &extents, &strides)
}

/// A divisor of `n`, not always the least or the largest.
pub fn divisor(c: &Choices, n: i64) -> i64 {
    let wanted = c.of(&[1, 2, 4, 3, 6, 16, n, n, n / 2]).max(1);
    gcd(n, wanted)
}

pub fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A layout of indices of `a`, made of parts of its modes; three times in four so that `a` composes
/// with it.
pub fn indices_of(c: &Choices, a: &Layout) -> Layout {
    let mut leaves: Vec<(i64, i64)> = Vec::new();
    let mut step = 1;
    let mut modes = a.leaves().iter().peekable();
    while let Some(leaf) = modes.next() {
        let (inner, begin) = (divisor(c, leaf.extent), step);
        // A part of this mode, or the rest of it and a first part of the next.
        match modes.next_if(|_| c.below(3) == 0) {
            Some(next) => {
                leaves.push((leaf.extent / inner * divisor(c, next.extent), step * inner));
                step *= next.extent;
            }
            None => leaves.push((divisor(c, leaf.extent / inner), step * inner)),
        }
        if c.below(3) == 0 {
            leaves.push((inner, begin));
        }
        step *= leaf.extent;
    }
    let mut chosen: Vec<(i64, i64)> = order(c, leaves.len()).into_iter().map(|at| leaves[at]).take(12).collect();
    match c.below(8) {
        0 => chosen.iter_mut().for_each(|leaf| leaf.1 = -leaf.1),
        1 => chosen[0].1 += c.of(&[1, 1 << 10, -1]),
        2 => chosen[0].0 += c.of(&[1, 7, 1 << 10]),
        3 => chosen.push((c.of(&[2, 3, 5]), c.of(&[0, 1, step / 2, step]))),
        _ => {}
    }
    let (mut size, mut extents, mut strides) = (1_i64, Vec::new(), Vec::new());
    for (extent, stride) in chosen {
        if let Some(next) = size.checked_mul(extent).filter(|next| *next <= MOST) {
            size = next;
            extents.push(extent);
            strides.push(stride);
        }
    }
    nested(c, &extents, &strides)
}

/// Coordinates, one index a leaf: corners, neighbours of corners, and others.
pub fn samples(c: &Choices, leaves: &[Leaf]) -> Vec<Vec<i64>> {
    let mut all = vec![vec![0; leaves.len()], leaves.iter().map(|leaf| leaf.extent - 1).collect()];
    for _ in 0..24 {
        let one = |leaf: &Leaf| {
            let random = c.below(leaf.extent);
            c.of(&[0, 1, leaf.extent - 1, leaf.extent - 2, leaf.extent / 2, random, random]).clamp(0, leaf.extent - 1)
        };
        all.push(leaves.iter().map(one).collect());
    }
    all
}

/// The coordinates just before and at which `b` passes a boundary of a mode of `a`, one mode of `b`
/// at a time.
pub fn around_carries(a: &Layout, b: &Layout) -> Vec<Vec<i64>> {
    let mut all = Vec::new();
    let mut end = 1;
    for leaf in a.leaves() {
        end *= leaf.extent;
        for (position, leaf) in b.leaves().iter().enumerate().filter(|(_, leaf)| leaf.stride != 0) {
            let at = end / leaf.stride.abs();
            for index in at - 1..=at + 1 {
                if (0..leaf.extent).contains(&index) {
                    let mut low = vec![0; b.leaves().len()];
                    low[position] = index;
                    let mut high: Vec<i64> = b.leaves().iter().map(|leaf| leaf.extent - 1).collect();
                    high[position] = index;
                    all.extend([low, high]);
                }
            }
        }
    }
    all
}

/// Indices of a layout, and some past its end and below zero.
pub fn some_indices(c: &Choices, size: i64) -> Vec<i64> {
    let mut all = vec![0, 1, size - 1, size, size + 1, 2 * size + 1, -1, -size];
    all.extend((0..24).map(|_| c.below(size)));
    all.extend((0..8).map(|_| -c.below(size)));
    all
}

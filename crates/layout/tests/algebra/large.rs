//! The laws on large layouts: up to twelve modes, extents up to 2^20, sizes up to 2^50.
//!
//! Nothing can be checked at every index here, so laws are checked at the corners, around carries
//! and at sampled coordinates, with values computed in 128 bits; and refusals by the witness that
//! they show. The cases come from `proptest` with a fixed seed. A good part of the operands is made
//! so that the result exists, and the shares are asserted.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tilewright_layout::{Layout, LayoutError, Leaf, Tiler, Tree};

/// Decisions, read one after another: proptest shrinks them towards 0.
struct Choices {
    numbers: Vec<u32>,
    next: Cell<usize>,
}

impl Choices {
    fn below(&self, bound: i64) -> i64 {
        let at = self.next.replace(self.next.get() + 1);
        let (high, low) = (self.numbers[at % self.numbers.len()], self.numbers[(at * 7 + 3) % self.numbers.len()]);
        let wide = u64::from(high) << 32 | u64::from(low ^ at as u32);
        (wide % bound as u64) as i64
    }

    fn of<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as i64) as usize]
    }
}

/// Runs a law on so many cases, always the same ones.
fn holds(cases: u32, law: impl Fn(&Choices)) {
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
struct Counts(std::cell::RefCell<BTreeMap<String, u32>>);

impl Counts {
    fn add(&self, what: &str) {
        *self.0.borrow_mut().entry(what.to_string()).or_default() += 1;
    }

    fn of(&self, what: &str) -> u32 {
        self.0.borrow().get(what).copied().unwrap_or(0)
    }

    #[track_caller]
    fn at_least(&self, what: &str, count: u32) {
        assert!(self.of(what) >= count, "{what}: {:?}", self.0.borrow());
    }

    #[track_caller]
    fn at_most(&self, what: &str, count: u32) {
        assert!(self.of(what) <= count, "{what}: {:?}", self.0.borrow());
    }
}

const MOST: i64 = 1 << 50;

fn extents(c: &Choices) -> Vec<i64> {
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
fn order(c: &Choices, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, c.below(i as i64 + 1) as usize);
    }
    order
}

fn strides(c: &Choices, extents: &[i64]) -> Vec<i64> {
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
fn nested(c: &Choices, extents: &[i64], strides: &[i64]) -> Layout {
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

fn any_layout(c: &Choices) -> Layout {
    let extents = extents(c);
    let strides = strides(c, &extents);
    nested(c, &extents, &strides)
}

/// A divisor of `n`, not always the least or the largest.
fn divisor(c: &Choices, n: i64) -> i64 {
    let wanted = c.of(&[1, 2, 4, 3, 6, 16, n, n, n / 2]).max(1);
    gcd(n, wanted)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A layout of indices of `a`, made of parts of its modes; three times in four so that `a` composes
/// with it.
fn indices_of(c: &Choices, a: &Layout) -> Layout {
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

/// `L(i)` in 128 bits.
fn exact(leaves: &[Leaf], index: i128) -> i128 {
    let (mut rest, mut sum) = (index, 0);
    for (position, leaf) in leaves.iter().enumerate() {
        // Truncating division mirrors below zero.
        let extent = i128::from(leaf.extent);
        let digit = if position + 1 == leaves.len() { rest } else { rest % extent };
        sum += digit * i128::from(leaf.stride);
        rest /= extent;
    }
    sum
}

fn offset(leaves: &[Leaf], coordinate: &[i64]) -> i128 {
    leaves.iter().zip(coordinate).map(|(leaf, at)| i128::from(leaf.stride) * i128::from(*at)).sum()
}

/// Coordinates, one index a leaf: corners, neighbours of corners, and others.
fn samples(c: &Choices, leaves: &[Leaf]) -> Vec<Vec<i64>> {
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
fn around_carries(a: &Layout, b: &Layout) -> Vec<Vec<i64>> {
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

fn index_of(leaves: &[Leaf], coordinate: &[i64]) -> i64 {
    leaves.iter().zip(coordinate).rev().fold(0, |index, (leaf, at)| index * leaf.extent + at)
}

/// Indices of a layout, and some past its end and below zero.
fn some_indices(c: &Choices, size: i64) -> Vec<i64> {
    let mut all = vec![0, 1, size - 1, size, size + 1, 2 * size + 1, -1, -size];
    all.extend((0..24).map(|_| c.below(size)));
    all.extend((0..8).map(|_| -c.below(size)));
    all
}

fn check_refusal(a: &Layout, b: &Layout, error: &LayoutError, counts: &Counts) {
    counts.add(error.code());
    match error {
        LayoutError::Carry(carry) => {
            let at = offset(b.leaves(), carry.coordinate());
            assert!(
                b.leaves().iter().zip(carry.coordinate()).all(|(leaf, at)| (0..leaf.extent).contains(at)),
                "{error}"
            );
            assert_eq!(carry.value.to_string(), exact(a.leaves(), at).to_string(), "{a} o {b}: {error}");
            assert_ne!(carry.value, carry.sum, "{a} o {b}: {error}");
            // Where the modes of B, each as a whole, do not add up, that alone shows that there is
            // no composite.
            let steps = b.leaves().iter().zip(carry.coordinate());
            let apart: i128 =
                steps.map(|(leaf, at)| exact(a.leaves(), i128::from(leaf.stride) * i128::from(*at))).sum();
            counts.add(if apart == exact(a.leaves(), at) { "carry within a mode" } else { "carry across modes" });
        }
        LayoutError::Uneven(uneven) => {
            let (p, left, step) = (uneven.run, uneven.left, i128::from(uneven.stride));
            let h = |x: i64| exact(a.leaves(), i128::from(x) * step);
            assert!(p < left && left % p != 0, "{a} o {b}: {error}");
            assert_eq!(i128::from(uneven.mode.stride.abs()) * i128::from(uneven.mode.extent / left), step, "{error}");
            assert_eq!(uneven.mode.extent % left, 0, "{error}");
            assert_ne!(h(p), i128::from(p) * h(1), "{a} o {b}: {error}");
            for x in [1, 2, p / 2, p - 2, p - 1].into_iter().filter(|x| *x > 0 && *x < p) {
                assert_eq!(h(x), i128::from(x) * h(1), "{a} o {b}: {error}");
            }
        }
        LayoutError::Overflow { .. } | LayoutError::Undecided { .. } => {}
        other => panic!("{a} o {b}: {other}"),
    }
}

#[test]
fn composition_is_the_function_or_shows_why_not() {
    const CASES: u32 = 20_000;
    let counts = Counts::default();
    holds(CASES, |c| {
        let a = any_layout(c);
        let b = if c.below(5) == 0 { any_layout(c) } else { indices_of(c, &a) };
        match a.compose(&b) {
            Ok(r) => {
                counts.add("exists");
                if r.leaves().len() > b.leaves().len() {
                    counts.add("splits");
                }
                assert_eq!(r.size(), b.size());
                assert_eq!(r.rank(), b.rank());
                for at in samples(c, b.leaves()).into_iter().chain(around_carries(&a, &b)) {
                    let index = index_of(b.leaves(), &at);
                    let expected = exact(a.leaves(), offset(b.leaves(), &at));
                    assert_eq!(exact(r.leaves(), index.into()), expected, "{a} o {b} = {r} at {at:?}");
                    assert_eq!(r.eval(&index).map(i128::from).unwrap_or(expected), expected);
                }
            }
            Err(error) => check_refusal(&a, &b, &error, &counts),
        }
    });
    counts.at_least("exists", CASES / 2);
    counts.at_least("splits", CASES / 50);
    counts.at_least("carry across modes", CASES / 50);
    counts.at_least("E0108", CASES / 50);
    counts.at_most("E0103", CASES / 20);
    counts.at_most("E0110", CASES / 50);
}

#[test]
fn coalescing_keeps_every_value() {
    let counts = Counts::default();
    holds(10_000, |c| {
        let l = any_layout(c);
        let (short, z) = (l.coalesce().unwrap(), l.coalesce_z().unwrap());
        assert!(l.equivalent(&short));
        assert_eq!(short.size(), l.size());
        if short.leaves().len() < l.leaves().len() {
            counts.add("shorter");
        }
        for index in some_indices(c, l.size()) {
            let expected = exact(l.leaves(), index.into());
            assert_eq!(exact(z.leaves(), index.into()), expected, "{l}: {z} at {index}");
            assert_eq!(l.eval(&index).map(i128::from).ok(), i64::try_from(expected).is_ok().then_some(expected));
            if (0..l.size()).contains(&index) {
                assert_eq!(exact(short.leaves(), index.into()), expected, "{l}: {short} at {index}");
            }
        }
    });
    counts.at_least("shorter", 2_000);
}

#[test]
fn modes_move_and_keep_their_values() {
    holds(10_000, |c| {
        let l = any_layout(c);
        assert_eq!(l.to_string().parse::<Layout>().unwrap(), l);
        let flat = l.flatten().unwrap();
        assert_eq!(flat.leaves(), l.leaves());
        let modes = order(c, l.rank());
        let selected = l.select(&modes).unwrap();
        for (at, mode) in modes.iter().enumerate() {
            assert_eq!(selected.mode(at), l.mode(*mode));
        }
        let begin = c.below(l.rank() as i64 + 1) as usize;
        let grouped = l.group(begin..l.rank()).unwrap();
        for index in some_indices(c, l.size()) {
            assert_eq!(grouped.eval(&index), l.eval(&index), "{l}: {grouped} at {index}");
            assert_eq!(flat.eval(&index), l.eval(&index), "{l}: {flat} at {index}");
        }
        assert_eq!(grouped.flatten().unwrap().leaves(), l.leaves());
    });
}

/// The moving modes by stride: extent and stride.
fn sorted(leaves: &[Leaf]) -> Vec<(i128, i128)> {
    let moving = leaves.iter().filter(|leaf| leaf.extent > 1 && leaf.stride != 0);
    let mut modes: Vec<(i128, i128)> = moving.map(|leaf| (leaf.extent.into(), leaf.stride.into())).collect();
    modes.sort_by_key(|(_, stride)| *stride);
    modes
}

#[test]
fn complements_fill_what_is_left_or_there_is_no_chain() {
    const CASES: u32 = 10_000;
    let counts = Counts::default();
    holds(CASES, |c| {
        let l = any_layout(c);
        let target = 1 + c.below(c.of(&[100, 1 << 30, 1 << 50]));
        let modes = sorted(l.leaves());
        let mut covered = 1;
        let chain = modes.iter().all(|(extent, stride)| {
            let divides = stride % covered == 0 && *stride > 0;
            covered = extent * stride.abs();
            divides
        });
        match l.complement(&target) {
            Ok(complement) => {
                counts.add("exists");
                assert!(chain, "{l}: {complement}");
                // Layout and complement together are compact, so that they fill [0, total) exactly.
                let mut together = modes;
                together.extend(sorted(complement.leaves()));
                together.sort_by_key(|(_, stride)| *stride);
                let mut total = 1;
                for (extent, stride) in together {
                    assert_eq!(stride, total, "{l}: {complement}");
                    total *= extent;
                }
                assert_eq!(
                    total,
                    (i128::from(target) + covered - 1) / covered * covered,
                    "{l} to {target}: {complement}"
                );
                assert!(complement.is_ordered() || complement.size() == 1);
            }
            Err(error) => {
                counts.add(error.code());
                assert!(!chain || error.code() == "E0103", "{l}: {error}");
            }
        }
    });
    counts.at_least("exists", CASES / 5);
    counts.at_least("E0111", CASES / 10);
    counts.at_most("E0103", CASES / 20);
}

#[test]
fn inverses_undo() {
    const CASES: u32 = 400;
    let counts = Counts::default();
    holds(CASES, |c| {
        let l = any_layout(c);
        let r = l.right_inverse().unwrap();
        if r.size() > 1 {
            counts.add("right");
        }
        for i in some_indices(c, r.size()).into_iter().filter(|i| (0..r.size()).contains(i)) {
            let index = r.eval(&i).unwrap();
            assert!((0..l.size()).contains(&index), "{l}: {r} at {i}");
            assert_eq!(exact(l.leaves(), index.into()), i.into(), "{l}: {r} at {i}");
        }
        match l.left_inverse() {
            Ok(r) => {
                counts.add("left");
                for k in some_indices(c, l.size()).into_iter().filter(|k| (0..l.size()).contains(k)) {
                    let offset = exact(l.leaves(), k.into());
                    let back = exact(r.leaves(), offset);
                    assert_eq!(exact(l.leaves(), back), offset, "{l}: {r} at {k}");
                }
            }
            Err(error) => assert!(["E0110", "E0114", "E0103"].contains(&error.code()), "{l}: {error}"),
        }
    });
    counts.at_least("right", CASES / 5);
    counts.at_least("left", CASES / 5);
}

#[test]
fn divisions_and_products_are_what_they_are_made_of() {
    const CASES: u32 = 10_000;
    let counts = Counts::default();
    holds(CASES, |c| {
        let a = any_layout(c);
        let b = indices_of(c, &a);
        let tiler = Tiler::from(&b);
        if let Ok(r) = a.logical_divide(&tiler) {
            counts.add("divided");
            let rest = b.complement(&a.size()).unwrap();
            assert_eq!((r.rank(), r.size()), (2, b.size() * rest.size()));
            for _ in 0..24 {
                let (x, y) = (c.below(b.size()), c.below(rest.size()));
                let index = exact(b.leaves(), x.into()) + exact(rest.leaves(), y.into());
                let at = i128::from(x) + i128::from(b.size()) * i128::from(y);
                assert_eq!(exact(r.leaves(), at), exact(a.leaves(), index), "{a} by {b}: {r} at ({x},{y})");
            }
        }
        let copies = Layout::mode_of(1 + c.below(64), 1).unwrap();
        if let Ok(r) = a.logical_product(&Tiler::from(&copies)) {
            counts.add("multiplied");
            assert_eq!(r.mode(0).unwrap().leaves(), a.leaves());
            let (least, greatest) = a.range().unwrap();
            let block = r.mode(1).unwrap();
            assert_eq!(block.size(), copies.size());
            // Copies are disjoint: a chain of the modes of both, each beyond the reach of those
            // before.
            let mut modes = sorted(a.leaves());
            modes.extend(sorted(block.leaves()));
            modes.iter_mut().for_each(|(_, stride)| *stride = stride.abs());
            modes.sort_by_key(|(_, stride)| *stride);
            let mut reach = 0;
            for (extent, stride) in modes {
                assert!(stride > reach, "{a} times {copies}: {r}");
                reach += (extent - 1) * stride;
            }
            assert!(reach >= i128::from(greatest) - i128::from(least));
        }
    });
    counts.at_least("divided", CASES / 10);
    counts.at_least("multiplied", CASES / 5);
}

/// Next to 2^62 and 2^63 a result is exact or there is none.
#[test]
fn nothing_wraps() {
    const CASES: u32 = 20_000;
    let counts = Counts::default();
    holds(CASES, |c| {
        let edge = |c: &Choices| {
            let near = c.of(&[1_i64 << 62, i64::MAX, 1 << 61, i64::MAX / 3, 1 << 32, 3, 1]);
            near.saturating_sub(c.below(4)).saturating_mul(c.of(&[1, 1, -1]))
        };
        let some = |c: &Choices| {
            let mut leaves = Vec::new();
            let mut size = 1_i64;
            for _ in 0..1 + c.below(4) {
                let extent = c.of(&[edge(c).saturating_abs().max(1), 2, 3, 1 << 31]);
                if let Some(next) = size.checked_mul(extent) {
                    size = next;
                    leaves.push(Leaf { extent, stride: edge(c) });
                }
            }
            Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap()
        };
        let (a, b) = (some(c), some(c));
        let outcome =
            |what: &str, exact: bool| counts.add(&format!("{what} {}", if exact { "exact" } else { "refused" }));
        for index in [0, 1, a.size() - 1, c.below(a.size()), edge(c)] {
            let value = a.eval(&index).ok();
            outcome("eval", value.is_some());
            if let Some(value) = value {
                assert_eq!(i128::from(value), exact(a.leaves(), index.into()), "{a} at {index}");
            }
        }
        if let Ok((least, greatest)) = a.range() {
            let reach = |leaf: &Leaf| i128::from(leaf.extent - 1) * i128::from(leaf.stride);
            assert_eq!(i128::from(least), a.leaves().iter().map(|leaf| reach(leaf).min(0)).sum::<i128>());
            assert_eq!(i128::from(greatest), a.leaves().iter().map(|leaf| reach(leaf).max(0)).sum::<i128>());
            counts.add("range");
        }
        let short = a.coalesce().unwrap();
        for at in samples(c, a.leaves()) {
            let index = i128::from(index_of(a.leaves(), &at));
            assert_eq!(exact(short.leaves(), index), exact(a.leaves(), index), "{a}: {short}");
        }
        let composite = a.compose(&b);
        outcome("compose", composite.is_ok());
        match composite {
            Ok(r) => {
                for at in samples(c, b.leaves()) {
                    let expected = exact(a.leaves(), offset(b.leaves(), &at));
                    assert_eq!(
                        exact(r.leaves(), index_of(b.leaves(), &at).into()),
                        expected,
                        "{a} o {b} = {r} at {at:?}"
                    );
                }
            }
            Err(error) => check_refusal(&a, &b, &error, &counts),
        }
        let twice = a.add(&a);
        outcome("add", twice.is_ok());
        if let Ok(sum) = twice {
            for at in samples(c, a.leaves()) {
                let index = i128::from(index_of(a.leaves(), &at));
                assert_eq!(exact(sum.leaves(), index), 2 * exact(a.leaves(), index), "{a}: {sum}");
            }
        }
    });
    for what in ["eval", "compose", "add"] {
        counts.at_least(&format!("{what} exact"), CASES / 100);
        counts.at_least(&format!("{what} refused"), CASES / 100);
    }
    counts.at_least("range", CASES / 100);
}

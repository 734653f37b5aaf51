//! The laws on large layouts: up to twelve modes, extents up to 2^20, sizes up to 2^50.
//!
//! Nothing can be checked at every index here, so laws are checked at the corners, around carries
//! and at sampled coordinates, with values computed in 128 bits; and refusals by the witness that
//! they show. The cases come from `proptest` with a fixed seed. A good part of the operands is made
//! so that the result exists, and the shares are asserted.

mod cases;

use tilewright_layout::{Layout, LayoutError, Leaf, Tiler, Tree};

use cases::*;

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

fn index_of(leaves: &[Leaf], coordinate: &[i64]) -> i64 {
    leaves.iter().zip(coordinate).rev().fold(0, |index, (leaf, at)| index * leaf.extent + at)
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
        let r = l.right_inverse().unwrap_or_else(|error| {
            assert_eq!(error.code(), "E0110", "{l}");
            counts.add("undecided");
            Layout::unit()
        });
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
    counts.at_most("undecided", CASES / 4);
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

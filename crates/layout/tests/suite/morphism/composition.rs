//! Composition by mutual refinement: it gives the composite, of the same form as the algebra; the
//! written-out steps and the direct way agree.

use crate::morphism::random::{Random, same, value};
use tilewright_layout::morphism::{WorkedComposition, compose_by_refinement, is_tractable, weak_composite};
use tilewright_layout::{Layout, Leaf, Tree};

/// Compares everything that is known about one pair; whether refinement applies.
fn check(outer: &Layout, inner: &Layout) -> bool {
    let direct = compose_by_refinement(outer, inner);
    let worked = WorkedComposition::new(outer, inner);
    let composite = match (direct, worked) {
        (Ok(direct), Ok(worked)) => {
            assert_eq!(direct, worked.composite, "{outer} after {inner}");
            // The steps fit together.
            assert_eq!(worked.first.encoded_layout().unwrap().size(), inner.size());
            assert!(same(&worked.first.encoded_layout().unwrap(), inner));
            assert!(same(&worked.second.encoded_layout().unwrap(), outer));
            assert!(same(&worked.pullback.morphism.encoded_layout().unwrap(), inner));
            assert!(same(&worked.pushforward.morphism.encoded_layout().unwrap(), outer));
            assert_eq!(weak_composite(&worked.second, &worked.first).unwrap(), worked.morphism);
            assert!(same(&worked.weak, &direct));
            direct
        }
        (Err(direct), Err(worked)) => {
            assert_eq!(direct, worked, "{outer} after {inner}");
            return false;
        }
        (direct, worked) => panic!("{outer} after {inner}: {direct:?} and {worked:?}"),
    };
    // By the definition, and as the algebra has it, to the letter.
    for index in 0..inner.size() {
        assert_eq!(value(&composite, index), value(outer, value(inner, index)), "{outer} after {inner} at {index}");
    }
    assert_eq!(outer.compose_within(inner).unwrap(), composite, "{outer} after {inner}");
    true
}

fn flat(leaves: &[(i64, i64)]) -> Layout {
    Layout::from_tree(
        Tree::flat(leaves.iter().map(|(extent, stride)| Leaf { extent: *extent, stride: *stride })).unwrap(),
    )
    .unwrap()
}

#[test]
fn on_every_pair_of_a_bounded_set() {
    let extents = [1, 2, 3, 4, 6];
    let (mut inner, mut outer) = (Vec::new(), Vec::new());
    for a in extents {
        for d in 0..=6 {
            inner.push(flat(&[(a, d)]));
            for b in [2, 3, 4] {
                inner.extend((0..=12).map(|e| flat(&[(a, d), (b, e)])));
            }
        }
    }
    for a in [1, 2, 3, 4, 6, 12] {
        for b in [2, 4, 6] {
            outer.extend([(1, a), (b, 1), (0, 1), (2, 2 * a), (3, 7)].map(|(d, e)| flat(&[(a, d), (b, e)])));
            outer.push(flat(&[(a, 6 * b), (b, 6), (6, 1)]));
        }
    }
    let (mut applies, mut all) = (0, 0);
    for outer in &outer {
        for inner in &inner {
            applies += usize::from(check(outer, inner));
            all += 1;
        }
    }
    assert!(applies * 50 > all, "{applies} of {all}");
}

/// A random tractable nested layout: a morphism into a random tuple, encoded.
fn layout(random: &mut Random, size: i64) -> Layout {
    let entries = [2, 2, 3, 4, 4, 6, 8];
    let mut codomain: Vec<i64> = Vec::new();
    for _ in 0..random.below(6) {
        let extent = random.pick(&entries);
        if codomain.iter().product::<i64>() * extent <= size {
            codomain.push(extent);
        }
    }
    let flat = random.morphism(&codomain, 1, false);
    random.nest(&flat, None).encoded_layout().unwrap()
}

#[test]
fn on_random_tractable_pairs() {
    let (mut random, mut applies) = (Random(7), 0);
    for _ in 0..120_000 {
        let (outer, inner) = (layout(&mut random, 500), layout(&mut random, 64));
        assert!(is_tractable(&outer) && is_tractable(&inner));
        applies += usize::from(check(&outer, &inner));
    }
    assert!(applies > 15_000, "{applies}");
}

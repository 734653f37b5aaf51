//! Which compositions the algebra allows that mutual refinement does not: each class, counted on a
//! bounded set. The chapter of the book has the table.

use std::collections::BTreeMap;

use tilewright_layout::morphism::{Class, MorphismError, classify, compose_by_refinement, is_tractable};
use tilewright_layout::{Layout, Leaf, Tree};

/// Every flat layout of one or two modes with these extents and strides.
fn layouts(extents: &[i64], strides: &[i64]) -> Vec<Layout> {
    let mut modes = Vec::new();
    for extent in extents {
        modes.extend(strides.iter().map(|stride| Leaf { extent: *extent, stride: *stride }));
    }
    let flat = |leaves: &[Leaf]| Layout::from_tree(Tree::flat(leaves.iter().copied()).unwrap()).unwrap();
    let pairs = modes.iter().flat_map(|a| modes.iter().map(|b| flat(&[*a, *b])));
    modes.iter().map(|a| flat(&[*a])).chain(pairs).collect()
}

#[test]
fn the_table_of_the_book_counts_every_composite_of_a_bounded_set() {
    let outer = layouts(&[2, 3, 4, 6], &[0, 1, 2, 3, 4, 6, 8]);
    let inner = layouts(&[2, 3, 4], &[0, 1, 2, 3, 4, 5, 6, 8]);
    let (mut counts, mut refused) = (BTreeMap::new(), 0_u64);
    for a in &outer {
        for b in &inner {
            match classify(a, b) {
                Ok(class) => *counts.entry(class).or_insert(0_u64) += 1,
                Err(MorphismError::Layout(error)) => {
                    assert!(matches!(error.code(), "E0107" | "E0108"), "{a} after {b}: {error}");
                    // What refinement composes, the algebra composes.
                    assert!(compose_by_refinement(a, b).is_err());
                    refused += 1;
                }
                Err(error) => panic!("{a} after {b}: {error}"),
            }
        }
    }
    let composed: u64 = counts.values().sum();
    assert_eq!(composed + refused, (outer.len() * inner.len()) as u64);
    let mut rows: Vec<String> =
        Class::ALL.iter().map(|class| format!("| {class} | {} |", counts.get(class).copied().unwrap_or(0))).collect();
    rows.push(format!("| all that compose | {composed} |"));
    rows.push(format!("| no composite | {refused} |"));
    let book = include_str!("../../../../../docs/book/src/morphisms.md");
    assert!(book.contains(&rows.join("\n")), "the table should be\n{}", rows.join("\n"));
}

#[test]
fn classes_are_what_they_say() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    for (outer, inner, expected) in [
        ("(12,3,6):(1,72,12)", "(6,6):(1,6)", Class::Refinement),
        ("4:1", "4:2", Class::PastTheEnd),
        ("(4,4):(1,2)", "(2,2):(1,4)", Class::OuterNotTractable),
        ("8:1", "(2,2):(1,1)", Class::InnerNotTractable),
        ("8:1", "2:3", Class::Ragged),
        ("12:1", "(2,2):(1,3)", Class::InnerNotTractable),
        ("(2,2,2):(1,1,3)", "(2,2):(3,3)", Class::Indivisible),
    ] {
        let (outer, inner) = (layout(outer), layout(inner));
        assert_eq!(classify(&outer, &inner).unwrap(), expected, "{outer} after {inner}");
        assert_eq!(compose_by_refinement(&outer, &inner).is_ok(), expected == Class::Refinement);
    }
    assert!(is_tractable(&layout("(4,4):(1,4)")) && !is_tractable(&layout("(4,4):(1,2)")));
    let refused = classify(&layout("(6,2):(1,7)"), &layout("(3,2):(2,3)")).unwrap_err();
    assert_eq!(refused.code(), "E0107");
}

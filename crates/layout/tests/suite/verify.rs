//! The verifier's questions against brute force on small sets.

mod congruence;
mod division;
mod equality;
mod questions;

use std::collections::HashMap;

use crate::random::Random;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::verify::{self, Indivisible, MissingMode, Remainder, Verdict};
use tilewright_layout::{Composed, Coordinate, Layout, LayoutError, Profile, Tiler, Tree, Truth, Xor, coordinates};

fn tree(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

/// Every layout of rank at most 2 and every nested one of three leaves, with few extents and
/// strides, as text columns.
fn small_layouts() -> Vec<Layout> {
    let leaves: Vec<(i64, i64)> = (1..=4).flat_map(|s| (-2..=4).map(move |d| (s, d))).collect();
    let mut all = Vec::new();
    for (s, d) in &leaves {
        all.push(format!("{s}:{d}"));
        for (t, e) in &leaves {
            all.push(format!("({s},{t}):({d},{e})"));
            if (s + t + d + e) % 5 == 0 {
                all.push(format!("({s},({t},2)):({d},({e},3))"));
            }
        }
    }
    all.iter().map(|text| text.parse().unwrap()).collect()
}

fn values(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).map(|i| layout.eval(&i).unwrap()).collect()
}

/// Every tuple of depth at most 2 with modes of rank at most 2, numbers standing for nothing.
fn profiles() -> Vec<Tree<i64>> {
    let flat = ["()", "1", "(1)", "(1,1)"];
    let mut all: Vec<String> = flat.iter().map(ToString::to_string).collect();
    for a in flat {
        all.push(format!("({a})"));
        for b in flat {
            all.push(format!("({a},{b})"));
            all.push(format!("(({a},{b}),1)"));
        }
    }
    all.sort();
    all.dedup();
    all.iter().map(|text| tree(text)).collect()
}

/// By the definition: equal profiles; and leaves replaced by tuples.
fn nests_in(coord: &Tree<i64>, shape: &Tree<i64>) -> bool {
    coord.is_leaf()
        || (!shape.is_leaf()
            && coord.rank() == shape.rank()
            && coord.modes().zip(shape.modes()).all(|(c, s)| nests_in(&c, &s)))
}

fn at(tree: &Tree<i64>, path: &[usize]) -> Tree<i64> {
    path.iter().fold(tree.clone(), |here, mode| here.modes().nth(*mode).unwrap())
}

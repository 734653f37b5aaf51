//! Thread-value layouts against their law, and against CuTe's definition by the raked product.

use std::collections::BTreeSet;

use tilewright_layout::{Layout, LayoutError, Tree, make_layout_tv};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// The value of mode `i` of a layout at an index of that mode, 0 past the rank; and the sizes of
/// the modes.
fn mode_sizes(layout: &Layout, rank: usize) -> Vec<i64> {
    (0..rank).map(|i| if i < layout.rank() { layout.mode(i).unwrap().size() } else { 1 }).collect()
}

fn digits(mut index: i64, sizes: &[i64]) -> Vec<i64> {
    let digit = |size: &i64| {
        let digit = index % size;
        index /= size;
        digit
    };
    sizes.iter().map(digit).collect()
}

fn check(thr: &Layout, val: &Layout) -> Layout {
    let (tiler, tv) = make_layout_tv(thr, val).unwrap_or_else(|error| panic!("{thr}, {val}: {error}"));
    let rank = thr.rank().max(val.rank());
    let (threads, values) = (mode_sizes(thr, rank), mode_sizes(val, rank));
    let tile: Vec<i64> = threads.iter().zip(&values).map(|(t, v)| t * v).collect();
    assert_eq!(tiler, Tree::flat(tile.iter().copied()).unwrap(), "{thr}, {val}");
    assert_eq!(tv.rank(), 2);
    assert_eq!(tv.mode(0).unwrap().size(), thr.size());
    assert_eq!(tv.mode(1).unwrap().size(), val.size());
    let mut seen = BTreeSet::new();
    for t in 0..thr.size() {
        for v in 0..val.size() {
            let (tc, vc) = (digits(t, &threads), digits(v, &values));
            let (mut index, mut step) = (0, 1);
            for i in 0..rank {
                index += step * (vc[i] + values[i] * tc[i]);
                step *= tile[i];
            }
            let pair = thr.eval(&t).unwrap() + thr.size() * val.eval(&v).unwrap();
            assert_eq!(tv.eval(&pair).unwrap(), index, "{thr}, {val}: {tv} at thread {t}, value {v}");
            seen.insert(index);
        }
    }
    assert_eq!(seen.len() as i64, tv.size(), "one owner for each element");
    tv
}

/// Compact layouts: every order of the modes of a few shapes.
fn numberings() -> Vec<Layout> {
    let texts = [
        "1:0",
        "4:1",
        "(6):(1)",
        "(4,3):(1,4)",
        "(4,3):(3,1)",
        "(2,2,3):(1,2,4)",
        "(2,2,3):(6,3,1)",
        "(2,2,3):(3,6,1)",
        "((2,2),3):((1,6),2)",
        "((2,3),(2,2)):((4,8),(1,2))",
        "(2,(2,2)):(2,(1,4))",
        "(1,5):(0,1)",
        "():()",
    ];
    texts.map(layout).to_vec()
}

#[test]
fn every_element_has_one_owner() {
    for thr in numberings() {
        for val in numberings() {
            check(&thr, &val);
        }
    }
}

#[test]
fn it_is_the_inverse_of_the_raked_product() {
    for thr in numberings() {
        for val in numberings() {
            // A number beside a tuple, and the empty layout, nest otherwise there.
            if thr.profile().is_leaf() || val.profile().is_leaf() || thr.rank() == 0 || val.rank() == 0 {
                continue;
            }
            let owners = thr.raked_product(&val).unwrap();
            let shape = Tree::flat([thr.size(), val.size()]).unwrap();
            let expected = owners.right_inverse().unwrap().compose(&Layout::compact(&shape).unwrap()).unwrap();
            let (tiler, tv) = make_layout_tv(&thr, &val).unwrap();
            assert!(tv.equivalent(&expected), "{thr}, {val}: {tv}, {expected}");
            assert_eq!(tiler, Tree::flat(owners.modes().map(|mode| mode.size())).unwrap());
        }
    }
}

#[test]
fn known_results() {
    let tv = |thr: &str, val: &str| {
        let (tiler, _) = make_layout_tv(&layout(thr), &layout(val)).unwrap();
        (tiler.to_string(), check(&layout(thr), &layout(val)).to_string())
    };
    let known = |tiler: &str, tv: &str| (tiler.to_string(), tv.to_string());
    assert_eq!(tv("(4,64):(64,1)", "(16,8):(8,1)"), known("(64,512)", "((64,4),(8,16)):((512,16),(64,1))"));
    assert_eq!(tv("(4,64):(64,1)", "(4,4):(4,1)"), known("(16,256)", "((64,4),(4,4)):((64,4),(16,1))"));
}

#[test]
fn refuses_numberings_with_holes_or_repeats() {
    let whole = layout("4:1");
    for (text, count) in
        [("4:2", 1), ("4:0", 1), ("(4,8):(0,1)", 8), ("(2,2):(1,4)", 2), ("4:-1", 1), ("(2,2):(1,1)", 2)]
    {
        for (thr, val) in [(layout(text), whole.clone()), (whole.clone(), layout(text))] {
            match make_layout_tv(&thr, &val) {
                Err(LayoutError::Argument { op: "make_layout_tv", value, .. }) => {
                    assert!(value <= count, "{text}: {value}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }
    let large = layout("4294967296:1");
    assert!(matches!(make_layout_tv(&large, &large), Err(LayoutError::Overflow { .. })));
}

//! Compact layouts in an order: each is a bijection onto `0..size`, and the keys say which mode is
//! faster.

use tilewright_layout::{Layout, LayoutError, Tree, compact_order};

fn tree(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn offsets(layout: &Layout) -> Vec<i64> {
    let mut all: Vec<i64> = (0..layout.size()).map(|index| layout.eval(&index).unwrap()).collect();
    all.sort_unstable();
    all
}

fn is_compact(layout: &Layout) -> bool {
    offsets(layout).into_iter().eq(0..layout.size())
}

#[test]
fn every_order_of_three_modes() {
    let keys = [-3, 0, 1, 7];
    for shape in ["(2,3,4)", "(4,1,2)", "(1,1,1)", "(3,3,2)"] {
        let shape = tree(shape);
        for a in keys {
            for b in keys {
                for c in keys {
                    let order = Tree::flat([a, b, c]).unwrap();
                    match Layout::ordered(&shape, &order) {
                        Ok(ordered) => {
                            assert!(a != b && b != c && a != c);
                            assert_eq!(ordered.shape(), shape);
                            assert!(is_compact(&ordered));
                            for (first, key) in ordered.leaves().iter().zip(order.leaves()) {
                                for (second, other) in ordered.leaves().iter().zip(order.leaves()) {
                                    if first.extent > 1 && second.extent > 1 {
                                        assert_eq!(first.stride < second.stride, key < other, "{ordered} by {order}");
                                    }
                                }
                            }
                        }
                        Err(LayoutError::Order { key, .. }) => {
                            assert!([a, b, c].iter().filter(|other| **other == key).count() > 1);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        }
    }
}

#[test]
fn named_orders() {
    for (shape, order, stride) in [
        ("(2,3,4)", "(0,1,2)", "(1,2,6)"),
        ("(2,3,4)", "(2,1,0)", "(12,4,1)"),
        ("((2,3),4)", "(1,0)", "((4,8),1)"),
        ("((2,3),4)", "((2,0),1)", "((12,1),3)"),
        ("((2,3),4)", "5", "((1,2),6)"),
        ("(4,1,2)", "(0,1,2)", "(1,0,4)"),
        ("()", "()", "()"),
        ("7", "3", "1"),
    ] {
        assert_eq!(compact_order(&tree(shape), &tree(order)).unwrap(), tree(stride), "{shape} by {order}");
    }
    // A key twice aliases elsewhere: (2,3,4) by (0,0,1) gives (1,1,6) in CuTe.
    let error = compact_order(&tree("(2,3,4)"), &tree("(0,0,1)")).unwrap_err();
    assert_eq!(error, LayoutError::Order { op: "compact_order", key: 0, what: "appears twice" });
    assert!(matches!(compact_order(&tree("(2,3)"), &tree("(0,1,2)")), Err(LayoutError::Rank { .. })));
    assert!(matches!(compact_order(&tree("(2,3)"), &tree("(0,(1,2))")), Err(LayoutError::Rank { .. })));
    assert!(matches!(compact_order(&tree("(2,0)"), &tree("(0,1)")), Err(LayoutError::Extent { .. })));
    let huge = tree("(9223372036854775807,2)");
    assert!(matches!(Layout::ordered(&huge, &tree("(0,1)")), Err(LayoutError::Overflow { .. })));
    assert_eq!(Layout::ordered(&tree("(2,3)"), &tree("(0,1)")).unwrap(), Layout::compact(&tree("(2,3)")).unwrap());
    assert_eq!(Layout::ordered(&tree("(2,3)"), &tree("(1,0)")).unwrap(), Layout::row_major(&tree("(2,3)")).unwrap());
}

/// Every layout of rank 3 with extents 1..3 and strides -3..4.
fn layouts() -> Vec<Layout> {
    let leaves: Vec<(i64, i64)> = (1..=3).flat_map(|s| (-3..=4).map(move |d| (s, d))).collect();
    let mut all = Vec::new();
    for a in &leaves {
        for b in &leaves {
            for c in &leaves {
                let shape = Tree::flat([a.0, b.0, c.0]).unwrap();
                all.push(Layout::new(&shape, &Tree::flat([a.1, b.1, c.1]).unwrap()).unwrap());
            }
        }
    }
    all
}

#[test]
fn layout_like_keeps_order_and_repetition() {
    for given in layouts() {
        let like = given.layout_like().unwrap();
        assert_eq!(like.shape(), given.shape());
        assert!(is_compact(&like.filter_zeros()), "{given} like {like}");
        for (a, x) in given.leaves().iter().zip(like.leaves()) {
            assert!(a.extent == 1 || (a.stride == 0) == (x.stride == 0), "{given} like {like}");
            for (b, y) in given.leaves().iter().zip(like.leaves()) {
                if a.extent > 1 && b.extent > 1 && a.stride.abs() < b.stride.abs() {
                    assert!(x.stride < y.stride, "{given} like {like}");
                }
            }
        }
        assert_eq!(like.layout_like().unwrap(), like);
    }
    assert_eq!(layout("(2,2,2,2):(0,2,4,1)").layout_like().unwrap(), layout("(2,2,2,2):(0,2,4,1)"));
    // Tied strides alias elsewhere; here the left one is faster.
    assert_eq!(layout("(4,4,5):(5,5,1)").layout_like().unwrap(), layout("(4,4,5):(5,20,1)"));
    assert_eq!(layout("((2,3),4):((50,7),-9)").layout_like().unwrap(), layout("((2,3),4):((12,1),3)"));
}

#[test]
fn fragment_like_makes_room_for_every_mode_but_repeats_in_the_first() {
    for given in layouts() {
        let fragment = given.fragment_like().unwrap();
        assert_eq!(fragment.shape(), given.shape());
        let first = given.leaves()[0];
        assert_eq!(fragment.leaves()[0].stride, i64::from(first.extent > 1 && first.stride != 0));
        assert!(is_compact(&fragment.filter_zeros()), "{given} to {fragment}");
        for (leaf, own) in fragment.leaves().iter().zip(given.leaves()).skip(1) {
            assert!(leaf.extent == 1 || leaf.stride > 0);
            for (other, theirs) in fragment.leaves().iter().zip(given.leaves()).skip(1) {
                if leaf.extent > 1 && other.extent > 1 && own.stride.abs() < theirs.stride.abs() {
                    assert!(leaf.stride < other.stride, "{given} to {fragment}");
                }
            }
        }
    }
    for (given, fragment) in [
        ("((2,2),3,4):((8,0),0,1)", "((2,2),3,4):((1,0),2,6)"),
        ("(4,(2,3)):(100,(5,1))", "(4,(2,3)):(1,(12,4))"),
        ("4:0", "4:1"),
        ("((2,3)):((0,9))", "((2,3)):((1,2))"),
        ("((2,3),5):((9,1),1)", "((2,3),5):((1,2),6)"),
    ] {
        assert_eq!(layout(given).fragment_like().unwrap(), layout(fragment));
    }
}

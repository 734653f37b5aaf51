//! Numbers in nested tuples, against their definitions on small cases.

use core::cmp::Ordering;

use tilewright_layout::{LayoutError, Profile, Tree, coordinates, crd2idx};

fn tree(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

/// Every tree with at most `leaves` leaves out of `numbers` and depth at most 2.
fn trees(numbers: &[i64], leaves: usize) -> Vec<Tree<i64>> {
    let mut inner: Vec<Tree<i64>> = numbers.iter().map(|n| Tree::leaf(*n)).collect();
    for a in numbers {
        inner.push(Tree::flat([*a]).unwrap());
        for b in numbers {
            inner.push(Tree::flat([*a, *b]).unwrap());
        }
    }
    let mut all = inner.clone();
    for a in &inner {
        all.push(Tree::tuple([a]).unwrap());
        for b in &inner {
            all.push(Tree::tuple([a, b]).unwrap());
        }
    }
    all.retain(|tree| tree.leaves().len() <= leaves);
    all.push(Tree::flat([]).unwrap());
    all
}

#[test]
fn folds() {
    for (text, product, sum, max, min, gcd) in [
        ("()", 1, 0, None, None, 0),
        ("3", 3, 3, Some(3), Some(3), 3),
        ("(4,3)", 12, 7, Some(4), Some(3), 1),
        ("(4,(-6,8))", -192, 6, Some(8), Some(-6), 2),
        ("((0),10)", 0, 10, Some(10), Some(0), 10),
        ("(0,-9)", 0, -9, Some(0), Some(-9), 9),
    ] {
        let tree = tree(text);
        assert_eq!(tree.product().unwrap(), product);
        assert_eq!(tree.sum().unwrap(), sum);
        assert_eq!((tree.max(), tree.min()), (max, min));
        assert_eq!(tree.gcd().unwrap(), gcd, "{text}");
    }
    let huge = tree("(9223372036854775807,2)");
    assert!(matches!(huge.product(), Err(LayoutError::Overflow { .. })));
    assert!(matches!(huge.sum(), Err(LayoutError::Overflow { .. })));
    assert!(matches!(tree("(-9223372036854775808,0)").gcd(), Err(LayoutError::Overflow { .. })));
    assert_eq!(tree("(-9223372036854775808,0,12)").gcd().unwrap(), 4);
}

#[test]
fn products_by_mode_and_by_guide() {
    for (text, each) in
        [("((3,5),2)", "(15,2)"), ("(2,(3,4))", "(2,12)"), ("5", "(5)"), ("()", "()"), ("((),3)", "(1,3)")]
    {
        assert_eq!(tree(text).product_each().unwrap(), tree(each));
    }
    for shape in trees(&[1, 2, 3], 4) {
        for guide in trees(&[0], 4) {
            match shape.product_like(guide.profile()) {
                Ok(products) => {
                    assert!(guide.weakly_congruent(&shape) && products.congruent(&guide));
                    assert_eq!(products.product(), shape.product());
                    assert!(products.compatible(&shape).proved());
                }
                Err(error) => {
                    assert!(!guide.weakly_congruent(&shape), "{shape} by {guide}: {error}");
                    assert!(matches!(error, LayoutError::Rank { op: "product_like", .. }));
                }
            }
        }
    }
    assert_eq!(tree("((2,(3,4)))").elem_scale(&tree("((5,(6,(7,8))))")).unwrap(), tree("((10,(18,224)))"));
    assert!(tree("(2,3)").elem_scale(&tree("(2,3,4)")).is_err());
    assert_eq!(tree("(2,(0,1))").inner_product(&tree("(2,(1,8))")).unwrap(), 12);
    assert!(matches!(tree("(1,2)").inner_product(&tree("(1,(2))")), Err(LayoutError::NotCongruent { .. })));
    assert!(tree("(9223372036854775807,1)").inner_product(&tree("(1,1)")).is_err());
}

/// Numbers rounded up, from the definition: the least `q` with `q * b >= a`.
fn ceil(a: i64, b: i64) -> i64 {
    (-100..=100).find(|q| q * b >= a).unwrap()
}

#[test]
fn numbers_divide_by_their_definitions() {
    for a in -40..=40 {
        for b in -3..=12 {
            let (x, y) = (Tree::leaf(a), Tree::leaf(b));
            if b <= 0 {
                for error in [x.ceil_div(&y).unwrap_err(), x.round_up(&y).unwrap_err(), x.shape_div(&y).unwrap_err()] {
                    assert!(matches!(error, LayoutError::Argument { .. }), "{error}");
                }
                continue;
            }
            assert_eq!(x.ceil_div(&y).unwrap(), Tree::leaf(ceil(a, b)), "{a} / {b}");
            assert_eq!(x.round_up(&y).unwrap(), Tree::leaf(ceil(a, b) * b), "{a} up to {b}");
            match x.shape_div(&y) {
                Ok(quotient) => {
                    assert!(a > 0 && quotient.product().unwrap() == (a / b).max(1) && (a % b == 0 || b % a == 0))
                }
                Err(LayoutError::NotDivisible { value, divisor, .. }) => {
                    assert!(a % b != 0 && b % a != 0);
                    assert_eq!((value, divisor), (a, b));
                }
                Err(_) => assert!(a <= 0),
            }
        }
    }
    assert_eq!(tree("9223372036854775807").ceil_div(&tree("2")).unwrap(), tree("4611686018427387904"));
    assert!(tree("9223372036854775807").round_up(&tree("2")).is_err());
    // The product of the divisor does not fit, the quotient does.
    let wide = tree("(9223372036854775807,9223372036854775807)");
    assert_eq!(tree("5").ceil_div(&wide).unwrap(), tree("1"));
}

#[test]
fn tuples_divide_by_mode_by_count_and_by_product() {
    for (a, b, quotient) in [
        ("(5,6,7)", "(4,4)", "(2,2,7)"),
        ("(4,5,6)", "40", "(1,1,3)"),
        ("((4,5,6),40)", "(1,1)", "((4,5,6),40)"),
        ("((4,5),6)", "40", "((1,1),3)"),
        ("100", "(4,(5))", "5"),
        ("()", "3", "()"),
        ("7", "()", "7"),
        ("(4,(2,3))", "(2,4)", "(2,(1,2))"),
    ] {
        assert_eq!(tree(a).ceil_div(&tree(b)).unwrap(), tree(quotient), "{a} / {b}");
    }
    for (a, b, quotient) in [
        ("((8,10),(6,4))", "((2,5),(3,2))", "((4,2),(2,2))"),
        ("12", "4", "3"),
        ("4", "12", "1"),
        ("(4,5,6)", "40", "(1,1,3)"),
        ("12", "(2,3)", "2"),
        ("6", "(4,3)", "1"),
    ] {
        assert_eq!(tree(a).shape_div(&tree(b)).unwrap(), tree(quotient), "{a} / {b}");
    }
    for (a, b, path) in [("(8,(9,6))", "(2,(3,4))", vec![1, 1]), ("6", "4", vec![]), ("(4,6)", "3", vec![0])] {
        let error = tree(a).shape_div(&tree(b)).unwrap_err();
        assert!(matches!(&error, LayoutError::NotDivisible { path: found, .. } if *found == path), "{error}");
    }
    assert!(matches!(tree("(4,4)").shape_div(&tree("(4)")), Err(LayoutError::Rank { .. })));
    assert!(matches!(tree("(4,4)").ceil_div(&tree("(4,4,4)")), Err(LayoutError::Rank { .. })));
    assert!(matches!(tree("8").ceil_div(&tree("(-2,-2)")), Err(LayoutError::Argument { .. })));
    assert!(matches!(tree("8").shape_div(&tree("(-2,-2)")), Err(LayoutError::Argument { .. })));
    assert_eq!(tree("(5,(6,7),8)").round_up(&tree("(4,(4))")).unwrap(), tree("(8,(8,7),8)"));
    assert!(tree("(5,6)").round_up(&tree("4")).is_err() && tree("5").round_up(&tree("(4)")).is_err());
}

/// Whatever divides a tuple by a number covers it: the number is used up from the left.
#[test]
fn ceil_div_by_a_number_covers() {
    for a in trees(&[1, 2, 3, 5], 4) {
        for b in 1..=40 {
            let quotient = a.ceil_div(&Tree::leaf(b)).unwrap();
            assert!(quotient.congruent(&a));
            let mut rest = b;
            for (extent, tiles) in a.leaves().iter().zip(quotient.leaves()) {
                assert_eq!(*tiles, ceil(*extent, rest));
                rest = ceil(rest, *extent);
            }
            let even = a.evenly_divides(&Tree::leaf(b)).unwrap().proved();
            assert_eq!(even, quotient.product().unwrap() * b == a.product().unwrap());
        }
        for b in trees(&[1, 2, 3], 3) {
            let even = a.evenly_divides(&b).unwrap().proved();
            let by_mode = a.ceil_div(&b);
            if !a.is_leaf() && !b.is_leaf() {
                let expected = b.rank() <= a.rank()
                    && a.modes().zip(b.modes()).all(|(mode, tile)| mode.evenly_divides(&tile).unwrap().proved());
                assert_eq!(even, expected);
            }
            assert!(!even || by_mode.is_ok(), "{a} by {b}");
        }
    }
    assert!(tree("(4,0)").evenly_divides(&tree("2")).is_err());
    assert!(tree("(4,4)").evenly_divides(&tree("(0,2)")).is_err());
}

#[test]
fn the_two_orders_are_partial_orders() {
    let all = trees(&[1, 2, 4], 3);
    let structural = |a: &Tree<i64>, b: &Tree<i64>| a.weakly_congruent(b);
    let sized = |a: &Tree<i64>, b: &Tree<i64>| a.compatible(b).proved();
    for order in [&structural as &dyn Fn(&Tree<i64>, &Tree<i64>) -> bool, &sized] {
        for a in &all {
            assert!(order(a, a));
            for b in &all {
                if order(a, b) {
                    assert!(structural(a, b));
                    assert!(!order(b, a) || a.congruent(b));
                    assert!(all.iter().filter(|c| order(b, c)).all(|c| order(a, c)));
                }
            }
        }
    }
}

/// Compatible means that coordinates inside the one are coordinates inside the other, with the same
/// index.
#[test]
fn compatible_shapes_share_coordinates() {
    let all = trees(&[1, 2, 3], 3);
    let mut pairs = 0;
    for a in &all {
        for b in &all {
            let expected = a.weakly_congruent(b) && b.product_like(a.profile()).unwrap() == *a;
            assert_eq!(a.compatible(b).proved(), expected, "{a} {b}");
            if expected {
                pairs += 1;
                for coord in coordinates(a).unwrap() {
                    assert_eq!(crd2idx(&coord, b), crd2idx(&coord, a));
                }
            }
        }
    }
    assert!(pairs > all.len());
    assert!(tree("2").compatible(&tree("(9223372036854775807,9223372036854775807)")).refuted());
}

#[test]
fn tuples_add() {
    for (a, b, sum) in [
        ("((1,2),(3,4),(5,6))", "((10,11),(20,21))", "((11,13),(23,25),(5,6))"),
        ("(1,2,3)", "(4,5)", "(5,7,3)"),
        ("(3,4)", "0", "(3,4)"),
        ("0", "(3,(4))", "(3,(4))"),
        ("(6,8)", "(2,4)", "(8,12)"),
        ("5", "-7", "-2"),
        ("()", "(1)", "(1)"),
        ("((1,2),0)", "(0,(3))", "((1,2),(3))"),
    ] {
        assert_eq!(tree(a).tuple_add(&tree(b)).unwrap(), tree(sum));
        assert_eq!(tree(b).tuple_add(&tree(a)).unwrap(), tree(sum));
    }
    for (a, b, difference) in [("(5,8)", "0", "(5,8)"), ("(5,8,3)", "(1,2)", "(4,6,3)"), ("0", "(1,(2))", "(-1,(-2))")]
    {
        assert_eq!(tree(a).tuple_sub(&tree(b)).unwrap(), tree(difference));
    }
    assert_eq!(tree("(1)").tuple_sub(&tree("(1,2)")).unwrap(), tree("(0,-2)"));
    for (a, b) in [("(1,2)", "3"), ("3", "(1,2)"), ("((1,2),3)", "(1,2)")] {
        assert!(matches!(tree(a).tuple_add(&tree(b)), Err(LayoutError::Rank { op: "tuple_add", .. })));
    }
    assert!(tree("(9223372036854775807)").tuple_add(&tree("(1)")).is_err());
    assert!(tree("()").tuple_sub(&tree("(-9223372036854775808)")).is_err());
}

#[test]
fn filter_zeros_reduces_modes() {
    for (shape, stride, expected) in [
        ("(4,(2,3))", "(0,(1,0))", "(1,(2,1))"),
        ("(4,(2,3))", "(5,0)", "(4,1)"),
        ("(4,(2,3))", "1", "(4,(2,3))"),
        ("4", "0", "1"),
        ("()", "()", "()"),
    ] {
        assert_eq!(tree(shape).filter_zeros(&tree(stride)).unwrap(), tree(expected));
    }
    assert!(tree("(4,2)").filter_zeros(&tree("(1,2,3)")).is_err());
}

/// On coordinates of a shape, colexicographic order is the order of indices, lexicographic the
/// order of row-major indices.
#[test]
fn orders_of_coordinates() {
    for text in ["(3,4)", "((2,3),2)", "(2,(2,2),3)"] {
        let shape = tree(text);
        let reversed = shape.reverse().unwrap();
        let all: Vec<Tree<i64>> = coordinates(&shape).unwrap().collect();
        for (i, a) in all.iter().enumerate() {
            let row = |coord: &Tree<i64>| crd2idx(&coord.reverse().unwrap(), &reversed).unwrap();
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.colex_cmp(b), Some(i.cmp(&j)));
                assert_eq!(a.lex_cmp(b), Some(row(a).cmp(&row(b))));
                let leaves = || a.leaves().iter().zip(b.leaves());
                assert_eq!(a.elem_less(b).proved(), leaves().all(|(x, y)| x < y));
                assert_eq!(a.elem_leq(b).proved(), leaves().all(|(x, y)| x <= y));
                assert_eq!(a.elem_gtr(b), b.elem_less(a));
                assert_eq!(a.elem_geq(b), b.elem_leq(a));
                assert_eq!((a.colex_less(b).proved(), a.colex_leq(b).proved()), (i < j, i <= j));
                assert_eq!((a.colex_gtr(b).proved(), a.colex_geq(b).proved()), (i > j, i >= j));
                assert_eq!((a.lex_less(b).proved(), a.lex_leq(b).proved()), (row(a) < row(b), row(a) <= row(b)));
                assert_eq!((a.lex_gtr(b).proved(), a.lex_geq(b).proved()), (row(a) > row(b), row(a) >= row(b)));
            }
        }
    }
}

#[test]
fn orders_of_tuples_of_different_rank() {
    let order = |a: &str, b: &str| (tree(a).lex_cmp(&tree(b)).unwrap(), tree(a).colex_cmp(&tree(b)).unwrap());
    assert_eq!(order("(1,2)", "(1,2,0)"), (Ordering::Less, Ordering::Greater)); // 2 against 0 at the end
    assert_eq!(order("(1,2)", "(0,1,2)"), (Ordering::Greater, Ordering::Less));
    assert_eq!(order("(2)", "2"), (Ordering::Equal, Ordering::Equal));
    assert!(tree("(1,2)").elem_less(&tree("(2,3,0)")).proved()); // more modes above do not count
    assert!(tree("(1,2,3)").elem_less(&tree("(9,9)")).refuted());
    assert!(tree("()").elem_less(&tree("()")).proved());
    // Total and antisymmetric on trees of every kind.
    let all = trees(&[0, 1], 3);
    for a in &all {
        for b in &all {
            for (ab, ba) in [(a.lex_cmp(b), b.lex_cmp(a)), (a.colex_cmp(b), b.colex_cmp(a))] {
                assert_eq!(ab.unwrap(), ba.unwrap().reverse());
            }
        }
    }
}

#[test]
fn a_profile_is_below_its_refinements() {
    let profile = |text: &str| tree(text).profile().clone();
    assert!(Profile::leaf().weakly_congruent(&profile("()")));
    assert!(profile("()").weakly_congruent(&profile("()")));
    assert!(!profile("()").weakly_congruent(&Profile::leaf()));
    assert!(profile("(0,0)").weakly_congruent(&profile("((0,(0,0)),0)")));
    assert!(!profile("((0,0),0)").weakly_congruent(&profile("(0,(0,0))")));
}

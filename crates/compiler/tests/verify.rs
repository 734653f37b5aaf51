//! The verifier's questions against brute force on small sets.

#[path = "../../layout/tests/random/mod.rs"]
mod random;

use std::collections::HashMap;

use random::Random;
use tilewright_compiler::verify::{self, Indivisible, MissingMode, Rounding, Verdict};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coordinate, Layout, LayoutError, Profile, Tiler, Tree, Truth, Xor, coordinates};

fn tree(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

/// Every layout of rank at most 2 and every nested one of three leaves, with few extents and strides, as text columns.
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

#[test]
fn congruence() {
    let all = profiles();
    let mut answers = [0; 4];
    for a in &all {
        for b in &all {
            match verify::congruent(a, b) {
                Verdict::Holds(profile) => {
                    answers[0] += 1;
                    assert!(a.to_string() == b.to_string() && profile == *a.profile());
                }
                Verdict::Fails(at_fault) => {
                    answers[1] += 1;
                    let (left, right) = (at(a, &at_fault.path), at(b, &at_fault.path));
                    assert!(left.to_string() != right.to_string());
                    assert_eq!((&at_fault.first_profile, &at_fault.second_profile), (left.profile(), right.profile()));
                    // It is the outermost place with a difference of its own, and all to the left of it agrees.
                    assert!(left.is_leaf() || right.is_leaf() || left.rank() != right.rank());
                    for depth in 0..at_fault.path.len() {
                        let (left, right) = (at(a, &at_fault.path[..depth]), at(b, &at_fault.path[..depth]));
                        assert!(!left.is_leaf() && !right.is_leaf() && left.rank() == right.rank());
                        let before = left.modes().zip(right.modes()).take(at_fault.path[depth]);
                        assert!(before.into_iter().all(|(x, y)| x.to_string() == y.to_string()));
                    }
                }
                Verdict::Undecided(error) => panic!("{a}, {b}: {error}"),
            }
            match verify::weakly_congruent(a, b) {
                Verdict::Holds(_) => {
                    answers[2] += 1;
                    assert!(nests_in(a, b), "{a}, {b}");
                }
                Verdict::Fails(fault) => {
                    answers[3] += 1;
                    let (left, right) = (at(a, &fault.path), at(b, &fault.path));
                    assert!(!nests_in(a, b) && !nests_in(&left, &right), "{a}, {b}");
                    assert!(!left.is_leaf() && (right.is_leaf() || left.rank() != right.rank()), "{a}, {b}");
                }
                Verdict::Undecided(error) => panic!("{a}, {b}: {error}"),
            }
        }
    }
    assert!(answers.iter().all(|count| *count >= all.len()), "{answers:?}");
}

#[test]
fn paths() {
    for tree in profiles() {
        for path in [vec![], vec![0], vec![1], vec![2], vec![0, 0], vec![0, 1], vec![0, 0, 0], vec![0, 0, 1, 0]] {
            let mut here = tree.clone();
            let mut expected = Verdict::Holds(());
            for (depth, mode) in path.iter().enumerate() {
                if here.is_leaf() {
                    expected = Verdict::Fails(MissingMode::PastLeaf { depth, extra: path.len() - depth });
                    break;
                }
                let modes: Vec<_> = here.modes().collect();
                let Some(next) = modes.get(*mode) else {
                    expected = Verdict::Fails(MissingMode::OutOfRange { depth, mode: *mode, rank: modes.len() });
                    break;
                };
                here = next.clone();
            }
            match (verify::mode_at(&tree, &path), expected) {
                (Verdict::Holds(found), Verdict::Holds(())) => assert_eq!(found, here),
                (Verdict::Fails(found), Verdict::Fails(expected)) => assert_eq!(found, expected),
                (found, expected) => panic!("{tree} at {path:?}: {found:?} and {expected:?}"),
            }
        }
    }
}

/// A number by a number: the definition.
#[test]
fn division_of_numbers() {
    for n in 1..=40 {
        for b in 1..=45 {
            let divide = |rounding| {
                verify::divides(&tree(&n.to_string()), &Tiler::from_shape(&tree(&b.to_string())).unwrap(), rounding)
            };
            let quotient = |rounding| match divide(rounding) {
                Verdict::Holds(division) => Some(division.quotient.to_string().parse::<i64>().unwrap()),
                Verdict::Fails(_) => None,
                Verdict::Undecided(error) => panic!("{error}"),
            };
            let covering = (1..).find(|q| q * b >= n).unwrap();
            let whole = (0..).take_while(|q| q * b <= n).last().unwrap();
            assert_eq!(quotient(Rounding::Ceil), Some(covering));
            assert_eq!(quotient(Rounding::Floor), (whole > 0).then_some(whole));
            assert_eq!(quotient(Rounding::Exact), (whole * b == n).then_some(whole));
            match divide(Rounding::Exact) {
                Verdict::Holds(division) => assert!(division.ragged.is_empty()),
                Verdict::Fails(Indivisible::Remainder(at)) => {
                    assert_eq!((at.extent, at.block, at.whole, at.whole * b + at.remainder), (n, b, whole, n));
                    assert!(at.path.is_empty() && 0 < at.remainder && at.remainder < b);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Exact division holds exactly when every layout of the shape composes with the tile and with its copies: tried on strides that have
/// nothing to do with each other, so that nothing cancels.
#[test]
fn exact_division_is_what_every_layout_allows() {
    const PRIMES: [i64; 3] = [1_009, 99_991, 10_000_019];
    let mut answers = [0; 2];
    for shape in [1, 2, 3, 4, 6]
        .into_iter()
        .flat_map(|a| [1, 2, 3, 4, 5, 6].map(|b| [a, b]))
        .flat_map(|[a, b]| [1, 2, 3, 4].map(|c| [a, b, c]))
    {
        let [a, b, c] = shape;
        let text = format!("(({a},{b}),{c})");
        let whole: i64 = shape.iter().product();
        let layout: Layout = format!("{text}:(({},{}),{})", PRIMES[0], PRIMES[1], PRIMES[2]).parse().unwrap();
        for block in 1..=whole + 2 {
            // The tile, and where its copies begin: the block is the tile's first places, the rest counts blocks.
            let tile: Layout = format!("{block}:1").parse().unwrap();
            let possible = whole % block == 0 && {
                let copies: Layout = format!("{}:{block}", whole / block).parse().unwrap();
                layout.compose(&tile).is_ok() && layout.compose(&copies).is_ok()
            };
            let verdict = verify::divides(&tree(&text), &Tiler::Layout(tile), Rounding::Exact);
            assert_eq!(verdict.holds(), possible, "{text} by {block}: {verdict}");
            answers[usize::from(possible)] += 1;
            if let Verdict::Holds(division) = verdict {
                let count = division.quotient.product().unwrap();
                assert_eq!(count * block, whole, "{text} by {block}");
            }
        }
    }
    assert!(answers[0] > 1000 && answers[1] > 500, "{answers:?}");
}

/// What holds is what the algebra's divisions give, mode by mode and used up from the left.
#[test]
fn divisions_agree_with_the_algebra() {
    let mut random = Random(5);
    let mut held = [0; 3];
    for case in 0..20_000 {
        let mut number = |bound| 1 + random.below(bound);
        let (shape, divisor) = match case % 3 {
            0 => (format!("({},{})", number(24), number(24)), format!("({},{})", number(8), number(8))),
            1 => (format!("(({},{}),{})", number(6), number(6), number(9)), format!("({})", number(30))),
            _ => (format!("({},{},{})", number(5), number(5), number(5)), number(60).to_string()),
        };
        let (shape, divisor) = (tree(&shape), tree(&divisor));
        let tiler = Tiler::from_shape(&divisor).unwrap();
        if let Verdict::Holds(division) = verify::divides(&shape, &tiler, Rounding::Ceil) {
            assert_eq!(division.quotient, shape.ceil_div(&divisor).unwrap(), "{shape} by {divisor}");
            held[0] += 1;
            let exact = verify::divides(&shape, &tiler, Rounding::Exact);
            assert_eq!(exact.holds(), division.ragged.is_empty(), "{shape} by {divisor}");
            if let Verdict::Holds(exact) = exact {
                held[1] += 1;
                assert_eq!(exact.quotient, division.quotient);
                assert_eq!(shape.evenly_divides(&divisor).unwrap(), Truth::Proved, "{shape} by {divisor}");
                if divisor.is_leaf() || divisor.rank() == shape.rank() {
                    assert_eq!(exact.quotient, shape.shape_div(&divisor).unwrap(), "{shape} by {divisor}");
                }
            }
            if let Verdict::Holds(floor) = verify::divides(&shape, &tiler, Rounding::Floor) {
                held[2] += 1;
                assert_eq!(floor.ragged, division.ragged);
                for (down, up) in floor.quotient.leaves().iter().zip(division.quotient.leaves()) {
                    assert!(down == up || down + 1 == *up);
                }
            }
        } else {
            let at = verify::divides(&shape, &tiler, Rounding::Ceil).failure();
            assert!(matches!(at, Some(Indivisible::Straddles { .. })), "{shape} by {divisor}: {at:?}");
            assert!(verify::divides(&shape, &tiler, Rounding::Exact).fails());
        }
    }
    assert!(held.iter().all(|count| *count > 500), "{held:?}");
}

/// A tile with gaps divides what its copies fill.
#[test]
fn division_by_tiles_with_gaps() {
    let mut answers = [0; 2];
    for (extent, stride) in (1..=4).flat_map(|s| (0..=4).map(move |d| (s, d))) {
        for n in 1..=36 {
            let tile: Layout = format!("{extent}:{stride}").parse().unwrap();
            // The tile's copies at 0, 1, .., stride - 1 fill a block; brute force: shift until the block is full.
            let step = if extent == 1 { 1 } else { stride.max(1) };
            let distinct = if stride == 0 { 1 } else { extent };
            let block = step * distinct;
            let tiler = Tiler::Layout(tile.clone());
            let verdict = verify::divides(&tree(&n.to_string()), &tiler, Rounding::Exact);
            assert_eq!(verdict.holds(), n % block == 0, "{n} by {tile}: {verdict}");
            answers[usize::from(verdict.holds())] += 1;
            if verdict.holds() && stride > 0 {
                // The division of a line of that size loses nothing and adds nothing.
                let line: Layout = format!("{n}:1").parse().unwrap();
                let divided = line.logical_divide(&tiler).unwrap();
                assert!(divided.is_compact() && divided.size() == n, "{n} by {tile}: {divided}");
            }
        }
    }
    assert!(answers.iter().all(|count| *count > 100), "{answers:?}");
}

#[test]
fn divisions_that_fail() {
    let divide = |shape: &str, tiler: &str, rounding| {
        verify::divides(&tree(shape), &tiler.parse().unwrap(), rounding).to_string()
    };
    assert_eq!(
        divide("(8,(4,6))", "[8:1;[4:1;3:1;1:1]]", Rounding::Ceil),
        "fails: in mode 1, the tiler has rank 3 and the shape rank 2"
    );
    assert_eq!(
        divide("(8,(4,6))", "[_;[_;4:1]]", Rounding::Exact),
        "fails: exact division: in mode [1,1], extent 6 is 1 tiles of 4 and 2 more"
    );
    assert_eq!(
        divide("(8,6)", "[16:1]", Rounding::Floor),
        "fails: floor division: in mode 0, extent 8 is 0 tiles of 16 and 8 more, so no tile is left"
    );
    assert!(
        divide("(8,6)", "[_;(2,2):(2,3)]", Rounding::Ceil)
            .starts_with("fails: in mode 1, the tile has no complement: ")
    );
    assert_eq!(divide("(8,0)", "[4:1]", Rounding::Ceil), "fails: in mode 1, the extent 0 is not positive");
    assert_eq!(divide("()", "1:1", Rounding::Exact), "holds: exact division gives ()");
    assert_eq!(divide("()", "2:1", Rounding::Exact), "fails: exact division: extent 1 is 0 tiles of 2 and 1 more");
    assert_eq!(divide("7", "[7:1]", Rounding::Exact), "holds: exact division gives 1");
    // A block beyond 64 bits is not decided.
    let undecided = divide("8", "(4611686018427387904,1):(4611686018427387904,1)", Rounding::Ceil);
    assert!(undecided.starts_with("undecided: "), "{undecided}");
}

#[test]
fn images_and_domains() {
    let all = small_layouts();
    let mut answers = [0; 3];
    for (position, inner) in all.iter().enumerate() {
        let offsets = values(inner);
        for outer in all.iter().skip(position % 7).step_by(7) {
            let inside = offsets.iter().all(|offset| (0..outer.size()).contains(offset));
            match verify::fits(inner, outer) {
                Verdict::Holds(fit) => {
                    assert!(inside);
                    assert_eq!(Some(&fit.least), offsets.iter().min());
                    assert_eq!(Some(&fit.greatest), offsets.iter().max());
                    assert_eq!(fit.size, outer.size());
                    answers[0] += 1;
                }
                Verdict::Fails(outside) => {
                    assert!(!inside);
                    assert_eq!(inner.eval_at(&outside.coordinate).unwrap(), outside.offset);
                    assert!(outside.coordinate.elem_less(&inner.shape()).proved());
                    assert_eq!(outside.below, outside.offset < 0);
                    assert!(outside.below || outside.offset >= outer.size());
                    answers[if outside.below { 1 } else { 2 }] += 1;
                }
                Verdict::Undecided(error) => panic!("{error}"),
            }
            // The strict composition asks the same.
            let strict =
                inner.size() > 0 && !matches!(outer.compose_within(inner), Err(error) if error.code() == "E0109");
            assert_eq!(strict, inside, "{inner} in {outer}");
        }
    }
    assert!(answers.iter().all(|count| *count > 1000), "{answers:?}");
    let far: Layout = "(3,3):(9223372036854775807,1)".parse().unwrap();
    assert_eq!(verify::fits(&far, &"8:1".parse::<Layout>().unwrap()).truth(), Truth::Open);
}

#[test]
fn equality_and_the_first_difference() {
    let all = small_layouts();
    let mut answers = [0; 3];
    for (position, a) in all.iter().enumerate() {
        let left = values(a);
        for b in all.iter().skip(position % 3).step_by(3) {
            let right = values(b);
            let first = left.iter().zip(&right).position(|(x, y)| x != y);
            match verify::equal(a, b) {
                Verdict::Holds(form) => {
                    assert!(left == right, "{a}, {b}");
                    assert_eq!(values(&form), left);
                    assert!(a.equivalent(b) || left.len() == 1);
                    answers[0] += 1;
                }
                Verdict::Fails(difference) => {
                    assert_eq!(difference.sizes, (a.size(), b.size()));
                    let at = difference.at.as_ref();
                    assert_eq!(at.map(|point| point.index as usize), first, "{a}, {b}");
                    if let Some(point) = at {
                        answers[1] += 1;
                        let values = (a.eval(&point.index).unwrap(), b.eval(&point.index).unwrap());
                        assert_eq!(point.values, values);
                        assert_eq!(a.eval_at(&point.coordinates.0).unwrap(), values.0);
                        assert_eq!(b.eval_at(&point.coordinates.1).unwrap(), values.1);
                    } else {
                        answers[2] += 1;
                        assert_ne!(left.len(), right.len());
                    }
                }
                Verdict::Undecided(error) => panic!("{a}, {b}: {error}"),
            }
        }
    }
    assert!(answers.iter().all(|count| *count > 1000), "{answers:?}");
}

/// The same on layouts with many modes, that agree for a long time.
#[test]
fn late_differences() {
    let mut random = Random(23);
    let mut late = 0;
    for _ in 0..3_000 {
        let leaves: Vec<(i64, i64)> = (0..4).map(|_| (1 + random.below(4), random.below(12))).collect();
        let mut changed = leaves.clone();
        let place = random.below(4) as usize;
        if random.below(2) == 0 {
            changed[place].0 = 1 + random.below(4);
        } else {
            changed[place].1 = random.below(12);
        }
        let build = |leaves: &[(i64, i64)]| -> Layout {
            let column = |f: &dyn Fn(&(i64, i64)) -> String| leaves.iter().map(f).collect::<Vec<_>>().join(",");
            format!("({}):({})", column(&|leaf| leaf.0.to_string()), column(&|leaf| leaf.1.to_string()))
                .parse()
                .unwrap()
        };
        let (a, b) = (build(&leaves), build(&changed));
        let (left, right) = (values(&a), values(&b));
        let first = left.iter().zip(&right).position(|(x, y)| x != y);
        match verify::equal(&a, &b) {
            Verdict::Holds(_) => assert_eq!(left, right),
            Verdict::Fails(difference) => {
                assert_eq!(difference.at.map(|point| point.index as usize), first, "{a}, {b}");
                late += usize::from(first.is_some_and(|index| index > 3));
            }
            Verdict::Undecided(error) => panic!("{error}"),
        }
    }
    assert!(late > 300, "{late}");
    // No walk: these agree on four thousand million indices.
    let (a, b): (Layout, Layout) =
        ("(65536,65536,2):(1,65536,0)".parse().unwrap(), "(4294967296,2):(1,5)".parse().unwrap());
    assert_eq!(verify::equal(&a, &b).failure().unwrap().at.unwrap().index, 4_294_967_296);
}

/// XOR strides have first differences of their own: a mode may be continued by the next for a while.
#[test]
fn first_differences_of_xor_layouts() {
    let leaves: Vec<(i64, i64)> = [2, 3, 4, 6].into_iter().flat_map(|s| [0, 1, 3, 6].map(|d| (s, d))).collect();
    let mut all: Vec<String> = Vec::new();
    for (s, d) in &leaves {
        all.push(format!("{}:^{d}", s * 4));
        for (t, e) in &leaves {
            all.push(format!("({s},{t}):(^{d},^{e})"));
            // Neighbours that continue each other as far as they can.
            all.push(format!("({s},{t},2):(^{d},^{},^{e})", s * d));
        }
    }
    let all: Vec<Layout<Xor>> = all.iter().filter_map(|text| text.parse().ok()).collect();
    let values = |layout: &Layout<Xor>| -> Vec<Xor> { (0..layout.size()).map(|i| layout.eval(&i).unwrap()).collect() };
    let listed: Vec<Vec<Xor>> = all.iter().map(values).collect();
    let mut answers = [0; 3];
    for (a, left) in all.iter().zip(&listed) {
        for (b, right) in all.iter().zip(&listed) {
            let first = left.iter().zip(right).position(|(x, y)| x != y);
            match verify::equal(a, b) {
                Verdict::Holds(_) => {
                    assert!(left == right, "{a}, {b}");
                    answers[0] += 1;
                }
                Verdict::Fails(difference) => {
                    let found = difference.at.map(|point| point.index as usize);
                    assert_eq!(found, first, "{a}, {b}");
                    answers[if found.is_some_and(|index| index > 4) { 1 } else { 2 }] += 1;
                }
                Verdict::Undecided(error) => panic!("{a}, {b}: {error}"),
            }
        }
    }
    assert!(answers.iter().all(|count| *count > 200), "{answers:?}");
}

/// Layouts whose values are coordinates.
#[test]
fn questions_about_coordinates() {
    let layout = |text: &str| -> Layout<Coordinate> { text.parse().unwrap() };
    assert_eq!(verify::equal(&layout("(2,4):(1@0,2@0)"), &layout("8:1@0")).to_string(), "holds: 8:1@0");
    assert_eq!(
        verify::equal(&layout("(4,8):(1@0,1@1)"), &layout("(4,8):(1@0,2@1)")).to_string(),
        "fails: at index 4 the first, at (0,1), has 1@1 and the second, at (0,1), has 2@1"
    );
    assert_eq!(
        verify::result_type(&layout("(4,8):(1@0,1@1)"), &layout("(4,8):(1@1,1@0)")).to_string(),
        "fails: in mode 0, the declared type has 4:1@0, the inferred one 4:1@1"
    );
    let inner: Layout = "(4,8):(1,4)".parse().unwrap();
    assert!(verify::fits(&inner, &layout("(4,8):(1@0,1@1)")).holds());
    assert!(verify::fits(&inner, &layout("(4,7):(1@0,1@1)")).fails());
}

/// Swizzled layouts against the list of their values.
#[test]
fn first_differences_of_composed_layouts() {
    let inner = ["(8,8):(8,1)", "(8,8):(1,8)", "64:1", "(4,2,8):(1,4,8)", "(6,4):(4,1)", "(3,8):(8,1)", "16:2"];
    let outer = [
        "S<0,0,3> o 0",
        "S<1,0,3> o 0",
        "S<2,1,3> o 0",
        "S<1,4,3> o 0",
        "S<1,0,3> o 4",
        "S<2,0,-2> o 0",
        "S<1,3,2> o 1",
    ];
    let all: Vec<Composed> = inner.iter().flat_map(|b| outer.map(|a| format!("{a} o {b}").parse().unwrap())).collect();
    let values = |map: &Composed| -> Vec<i64> { (0..map.size()).map(|i| map.eval(&i).unwrap()).collect() };
    let mut answers = [0; 3];
    for a in &all {
        for b in &all {
            let (left, right) = (values(a), values(b));
            let expected = left.iter().zip(&right).position(|(x, y)| x != y);
            match verify::equal_composed(a, b) {
                Verdict::Holds(form) => {
                    assert!(left == right && values(&form) == left, "{a} and {b}");
                    answers[0] += 1;
                }
                Verdict::Fails(difference) => {
                    assert!(left != right);
                    assert_eq!(difference.at.as_ref().map(|point| point.index as usize), expected, "{a} and {b}");
                    answers[1] += 1;
                    if let Some(point) = difference.at {
                        assert_eq!(point.values, (left[point.index as usize], right[point.index as usize]));
                        assert_eq!(a.eval_at(&point.coordinates.0).unwrap(), point.values.0);
                        answers[2] += usize::from(point.index > 2);
                    }
                }
                Verdict::Undecided(error) => panic!("{a} and {b}: {error}"),
            }
        }
    }
    assert!(answers.iter().all(|count| *count > 100), "{answers:?}");
}

/// Coordinates inside a shape, against a list of all of them.
#[test]
fn coordinates_and_shapes() {
    let steps = ["0", "1@0", "2@0", "1@1", "3@1", "-1@0", "1@0@2", "2@1@2", "1@2", "1@4"];
    let shapes = ["(3,4)", "(4,6,(2,3))", "(8,8,(1,4))", "(2,2,5)"];
    let mut answers = [0; 4];
    for d in steps {
        for e in steps {
            for (s, t) in [(1, 2), (2, 2), (3, 2), (4, 3)] {
                let Ok(inner) = format!("({s},{t}):({d},{e})").parse::<Layout<Coordinate>>() else { continue };
                for shape in shapes {
                    let shape = tree(shape);
                    let values: Vec<Coordinate> = (0..inner.size()).map(|i| inner.eval(&i).unwrap()).collect();
                    let nested: Option<Vec<Tree<i64>>> =
                        values.iter().map(|value| value.in_profile(shape.profile()).ok()).collect();
                    let inside = |at: &Tree<i64>| {
                        at.leaves().iter().zip(shape.leaves()).all(|(index, extent)| (0..*extent).contains(index))
                    };
                    let expected = nested.as_ref().is_some_and(|all| all.iter().all(inside));
                    let verdict = verify::fits_shape(&inner, &shape);
                    assert_eq!(verdict.holds(), expected, "{inner} in {shape}: {verdict:?}");
                    match verdict {
                        Verdict::Holds(fits) => {
                            let nested = nested.unwrap();
                            for (leaf, fit) in fits.iter().enumerate() {
                                let reached = nested.iter().map(|at| at.leaves()[leaf]);
                                assert_eq!(Some(fit.least), reached.clone().min());
                                assert_eq!(Some(fit.greatest), reached.max());
                                assert_eq!(fit.size, shape.leaves()[leaf]);
                            }
                            answers[0] += 1;
                        }
                        Verdict::Fails(verify::OutsideShape::Mode { mode, at: outside }) => {
                            let value = inner.eval_at(&outside.coordinate).unwrap();
                            assert_eq!(
                                value.in_profile(shape.profile()).unwrap().at(&mode).unwrap().leaves(),
                                [outside.offset]
                            );
                            assert_eq!(at(&shape, &mode).leaves(), [outside.size]);
                            assert!(
                                outside.below == (outside.offset < 0)
                                    && (outside.below || outside.offset >= outside.size)
                            );
                            answers[if outside.below { 1 } else { 2 }] += 1;
                        }
                        Verdict::Fails(verify::OutsideShape::NoMode { leaf, stride }) => {
                            assert_eq!(inner.at(&leaf).unwrap().leaves()[0].stride, stride);
                            assert!(stride.in_profile(shape.profile()).is_err());
                            answers[3] += 1;
                        }
                        Verdict::Undecided(error) => panic!("{error}"),
                    }
                }
            }
        }
    }
    assert!(answers.iter().all(|count| *count > 50), "{answers:?}");
}

/// Extents that become known at launch: what is decided holds for every value, and what is open names the fact.
#[test]
fn symbolic_questions() {
    let layout = |text: &str| -> Layout<Expr> { text.parse().unwrap() };
    let divides = |shape: &str, tile: &str, rounding| {
        let tiler: Tiler<Expr> = Tiler::modes([Tiler::Layout(layout(tile))]).unwrap();
        verify::divides(&layout(shape).shape(), &tiler, rounding)
    };
    let exact = divides("(M{div=128},64)", "128:1", Rounding::Exact).established().unwrap();
    assert_eq!(exact.quotient.to_string(), "(M/128,64)");
    match divides("(M,64)", "128:1", Rounding::Exact) {
        Verdict::Undecided(LayoutError::Open { question, .. }) => {
            assert_eq!(question.to_string(), "needs M to be a multiple of 128; declare `M{div=128}`");
        }
        other => panic!("{other:?}"),
    }
    assert!(divides("(N,64)", "2*N:1", Rounding::Exact).fails());

    let fits = |inner: &str, outer: &str| verify::fits(&layout(inner), &layout(outer)).truth();
    assert_eq!(fits("M:1", "(M,4):(4,1)"), Truth::Proved);
    assert_eq!(fits("(M,4):(4,1)", "M:1"), Truth::Refuted);
    assert_eq!(fits("M:1", "N:1"), Truth::Open);

    let equal = |a: &str, b: &str| verify::equal(&layout(a), &layout(b)).truth();
    assert_eq!(equal("(M,N):(1,M)", "M*N:1"), Truth::Proved);
    assert_eq!(equal("(4,M):(1,4)", "(4,M):(1,5)"), Truth::Open); // equal when M is 1
    assert_eq!(equal("(4,M):(1,4)", "(4,M):(2,8)"), Truth::Refuted);
}

#[test]
fn equality_without_broadcast() {
    let all = small_layouts();
    let mut equal = 0;
    for a in all.iter().step_by(3) {
        for b in all.iter().step_by(5) {
            let without = |layout: &Layout| {
                let kept: Vec<_> = layout.leaves().iter().filter(|leaf| leaf.stride != 0).collect();
                let mut offsets = vec![0];
                for leaf in kept {
                    offsets = (0..leaf.extent).flat_map(|i| offsets.iter().map(move |o| o + i * leaf.stride)).collect();
                }
                offsets
            };
            let verdict = verify::equal_without_broadcast(a, b);
            assert_eq!(verdict.holds(), without(a) == without(b), "{a}, {b}: {verdict}");
            equal += usize::from(verdict.holds());
        }
    }
    assert!(equal > 100, "{equal}");
}

#[test]
fn collisions() {
    let mut answers = [0; 2];
    for layout in small_layouts() {
        let values = values(&layout);
        let mut seen: HashMap<i64, usize> = HashMap::new();
        let distinct = values.iter().enumerate().all(|(index, value)| seen.insert(*value, index).is_none());
        match verify::injective(&layout) {
            Verdict::Holds(answer) => assert!(distinct && answer.size as usize == values.len(), "{layout}"),
            Verdict::Fails(collision) => {
                let (i, j) = collision.indices;
                assert!(i < j && values[i as usize] == collision.offset && values[j as usize] == collision.offset);
                assert_eq!(layout.eval_at(&collision.coordinates.0).unwrap(), collision.offset);
                assert_eq!(layout.eval_at(&collision.coordinates.1).unwrap(), collision.offset);
                assert!(!distinct && collision.coordinates.0 != collision.coordinates.1);
            }
            Verdict::Undecided(error) => panic!("{layout}: {error}"),
        }
        answers[usize::from(distinct)] += 1;
    }
    assert!(answers.iter().all(|count| *count > 200), "{answers:?}");
    let dense = "(16384,16384,16384,16384):(922337203685477,31234567890123457,31234567890123511,51234567890123519)";
    assert_eq!(verify::injective(&dense.parse().unwrap()).truth(), Truth::Open);
}

#[test]
fn result_types() {
    let all = small_layouts();
    let mut answers = [0; 4];
    for declared in all.iter().step_by(2) {
        for inferred in all.iter().step_by(3) {
            // By the definition: at every natural coordinate equal values, extents equal, and alike nested.
            let same = declared.shape() == inferred.shape()
                && coordinates(&declared.shape())
                    .unwrap()
                    .all(|at| declared.eval_at(&at).unwrap() == inferred.eval_at(&at).unwrap());
            match verify::result_type(declared, inferred) {
                Verdict::Holds(found) => assert!(same && found == *inferred, "{declared}, {inferred}"),
                Verdict::Fails(mismatch) => {
                    assert!(!same, "{declared}, {inferred}");
                    let (verify::Mismatch::Nesting { same_function, .. }
                    | verify::Mismatch::Leaf { same_function, .. }) = mismatch;
                    assert_eq!(same_function, declared.equivalent(inferred));
                    answers[if same_function { 1 } else { 2 }] += 1;
                    if let verify::Mismatch::Leaf { path, declared: left, inferred: right, .. } = mismatch {
                        assert_eq!(declared.at(&path).unwrap().leaves(), [left]);
                        assert_eq!(inferred.at(&path).unwrap().leaves(), [right]);
                        assert!(left != right);
                        answers[3] += 1;
                    }
                }
                Verdict::Undecided(error) => panic!("{error}"),
            }
            answers[0] += usize::from(same);
        }
    }
    assert!(answers.iter().all(|count| *count > 100), "{answers:?}");
    assert_eq!(Profile::leaf(), *all[0].profile());
}

//! Division of numbers in tuples, and of layouts by tiles.

use super::*;

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
            assert_eq!(quotient(Remainder::Ceil), Some(covering));
            assert_eq!(quotient(Remainder::Floor), (whole > 0).then_some(whole));
            assert_eq!(quotient(Remainder::Exact), (whole * b == n).then_some(whole));
            match divide(Remainder::Exact) {
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

/// Exact division holds exactly when every layout of the shape composes with the tile and with its
/// copies: tried on strides that have nothing to do with each other, so that nothing cancels.
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
            // The tile, and where its copies begin: the block is the tile's first places, the rest
            // counts blocks.
            let tile: Layout = format!("{block}:1").parse().unwrap();
            let possible = whole % block == 0 && {
                let copies: Layout = format!("{}:{block}", whole / block).parse().unwrap();
                layout.compose(&tile).is_ok() && layout.compose(&copies).is_ok()
            };
            let verdict = verify::divides(&tree(&text), &Tiler::Layout(tile), Remainder::Exact);
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
        if let Verdict::Holds(division) = verify::divides(&shape, &tiler, Remainder::Ceil) {
            assert_eq!(division.quotient, shape.ceil_div(&divisor).unwrap(), "{shape} by {divisor}");
            held[0] += 1;
            let exact = verify::divides(&shape, &tiler, Remainder::Exact);
            assert_eq!(exact.holds(), division.ragged.is_empty(), "{shape} by {divisor}");
            if let Verdict::Holds(exact) = exact {
                held[1] += 1;
                assert_eq!(exact.quotient, division.quotient);
                assert_eq!(shape.evenly_divides(&divisor).unwrap(), Truth::Proved, "{shape} by {divisor}");
                if divisor.is_leaf() || divisor.rank() == shape.rank() {
                    assert_eq!(exact.quotient, shape.shape_div(&divisor).unwrap(), "{shape} by {divisor}");
                }
            }
            if let Verdict::Holds(floor) = verify::divides(&shape, &tiler, Remainder::Floor) {
                held[2] += 1;
                assert_eq!(floor.ragged, division.ragged);
                for (down, up) in floor.quotient.leaves().iter().zip(division.quotient.leaves()) {
                    assert!(down == up || down + 1 == *up);
                }
            }
        } else {
            let at = verify::divides(&shape, &tiler, Remainder::Ceil).failure();
            assert!(matches!(at, Some(Indivisible::Straddles { .. })), "{shape} by {divisor}: {at:?}");
            assert!(verify::divides(&shape, &tiler, Remainder::Exact).fails());
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
            // The tile's copies at 0, 1, .., stride - 1 fill a block; brute force: shift until the
            // block is full.
            let step = if extent == 1 { 1 } else { stride.max(1) };
            let distinct = if stride == 0 { 1 } else { extent };
            let block = step * distinct;
            let tiler = Tiler::Layout(tile.clone());
            let verdict = verify::divides(&tree(&n.to_string()), &tiler, Remainder::Exact);
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
        divide("(8,(4,6))", "[8:1;[4:1;3:1;1:1]]", Remainder::Ceil),
        "fails: in mode 1, the tiler has rank 3 and the shape rank 2"
    );
    assert_eq!(
        divide("(8,(4,6))", "[_;[_;4:1]]", Remainder::Exact),
        "fails: exact division: in mode [1,1], extent 6 is 1 tiles of 4 and 2 more"
    );
    assert_eq!(
        divide("(8,6)", "[16:1]", Remainder::Floor),
        "fails: floor division: in mode 0, extent 8 is 0 tiles of 16 and 8 more, so no tile is left"
    );
    assert!(
        divide("(8,6)", "[_;(2,2):(2,3)]", Remainder::Ceil)
            .starts_with("fails: in mode 1, the tile has no complement: ")
    );
    assert_eq!(divide("(8,0)", "[4:1]", Remainder::Ceil), "fails: in mode 1, the extent 0 is not positive");
    assert_eq!(divide("()", "1:1", Remainder::Exact), "holds: exact division gives ()");
    assert_eq!(divide("()", "2:1", Remainder::Exact), "fails: exact division: extent 1 is 0 tiles of 2 and 1 more");
    assert_eq!(divide("7", "[7:1]", Remainder::Exact), "holds: exact division gives 1");
    // A block beyond 64 bits is not decided.
    let undecided = divide("8", "(4611686018427387904,1):(4611686018427387904,1)", Remainder::Ceil);
    assert!(undecided.starts_with("undecided: "), "{undecided}");
}

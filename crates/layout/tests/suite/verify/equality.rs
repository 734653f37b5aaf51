//! Equality of layouts as functions, and the first place where they differ.

use super::*;

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

/// XOR strides have first differences of their own: a mode may be continued by the next for a
/// while.
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

/// Equality is that of functions; the identity of swizzles and blindness to broadcasts are asked
/// for by name.
#[test]
fn swizzles_and_broadcasts_count_where_they_are_asked_for() {
    let swizzles = ["S<0,4,3>", "S<2,4,3>", "S<3,4,3>", "S<1,0,2>", "S<1,0,-2>", "8:1", "F2<4>[1,2,4,8]"];
    let layouts = ["8:1", "(2,4):(1,2)", "(4,4):(1,4)", "(8,2):(1,0)"];
    let maps: Vec<Composed> = swizzles
        .iter()
        .flat_map(|swizzle| layouts.iter().map(move |layout| format!("{swizzle} o 0 o {layout}").parse().unwrap()))
        .collect();
    let mut counts = [0; 4];
    for a in &maps {
        for b in &maps {
            let table = |map: &Composed| (0..map.size()).map(|i| map.eval(&i).unwrap()).collect::<Vec<_>>();
            let (same, none) = (table(a) == table(b), |map: &Composed| map.outer().to_string().starts_with("S<0,"));
            let alike = a.outer() == b.outer() || none(a) && none(b);
            assert_eq!(verify::equal_composed(a, b).holds(), same, "{a}, {b}");
            assert_eq!(verify::identical_composed(a, b).holds(), same && alike, "{a}, {b}");
            counts[0] += usize::from(same && !alike);
            counts[1] += usize::from(same && alike && a != b);
            // A map without its repeats: each offset of an inner stride 0 once.
            let blind = verify::equal_composed_without_broadcast(a, b);
            counts[2] += usize::from(blind.holds() && !same);
            counts[3] += usize::from(blind.fails());
            assert!(!same || blind.holds(), "{a}, {b}");
        }
    }
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
}

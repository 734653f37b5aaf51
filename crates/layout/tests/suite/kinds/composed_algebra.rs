//! Composed layouts beyond powers of two: complements, recasting, vectors, inverses and what others
//! get wrong, each against a walk over the indices.

use tilewright_layout::{Composed, Coord, Layout, LayoutError, OuterMap, Swizzle, Tree, max_common_vector};

use crate::kinds::composed_values::{assert_sends_back, composed, image, reached, values};
use crate::random::Random;

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// Small outer maps, offsets and inner layouts of any extents.
fn any(random: &mut Random) -> Composed {
    const OUTERS: [&str; 9] = [
        "S<1,0,1>",
        "S<1,1,2>",
        "S<2,0,2>",
        "S<2,0,-2>",
        "S<1,2,-1>",
        "(4,64):(16,1)",
        "(2,2,64):(2,1,4)",
        "64:3",
        "F2<3>[1,3,4]",
    ];
    let map = |random: &mut Random| OUTERS[random.below(9) as usize].parse::<OuterMap>().unwrap();
    let mut outer = map(random);
    if random.below(4) == 0 {
        outer = outer.after(&random.below(5), &map(random)).unwrap();
    }
    let rank = random.below(3) + 1;
    let shape: Vec<i64> = (0..rank).map(|_| random.below(4) + 1).collect();
    let stride: Vec<i64> = (0..rank).map(|_| [0, 1, 2, 3, 4, 6, 8, 12, 16][random.below(9) as usize]).collect();
    let inner = Layout::new(&Tree::flat(shape).unwrap(), &Tree::flat(stride).unwrap()).unwrap();
    const TILES: [&str; 6] =
        ["(4,4):(4,1)", "(2,6):(6,1)", "(3,8):(8,1)", "12:1", "(8,3):(1,8)", "(2,(2,3)):(1,(6,2))"];
    let inner = if random.below(2) == 0 { inner } else { layout(TILES[random.below(6) as usize]) };
    let offset = [0, 0, 1, 4, 16][random.below(5) as usize];
    Composed::new(outer, offset, inner).unwrap()
}

#[test]
fn complements_fill_what_the_values_leave() {
    let mut random = Random(21);
    let (mut whole, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let r = any(&mut random);
        let (values, target) = (image(&r), random.below(60) + 1);
        // The set fills an interval together with another when tiling it from below never fails.
        let fills = |end: i64| {
            let mut covered = vec![false; end as usize];
            while let Some(first) = covered.iter().position(|done| !done) {
                for value in &values {
                    match covered.get_mut(first + *value as usize) {
                        Some(done) if !*done => *done = true,
                        _ => return false,
                    }
                }
            }
            true
        };
        let exists = (1..=8 * (target + values.last().unwrap() + 1)).any(fills);
        match r.complement(&target) {
            Ok(complement) => {
                whole += 1;
                let mut sums: Vec<i64> = (0..complement.size())
                    .flat_map(|i| values.iter().map(move |value| (i, value)))
                    .map(|(i, value)| complement.eval(&i).unwrap() + value)
                    .collect();
                sums.sort_unstable();
                assert!(
                    sums.len() as i64 >= target && sums.iter().copied().eq(0..sums.len() as i64),
                    "{r}: {complement}"
                );
                assert!(complement.is_ordered());
            }
            // A swizzle that flips nothing changes nothing: the layout alone decides, and its modes
            // may overlap.
            Err(error) if r.outer().is_identity() && *r.offset() == 0 => {
                assert_eq!(r.inner().complement(&target), Err(error), "{r}");
            }
            Err(error) => {
                refused += 1;
                assert!(!exists, "{r}: {error}");
            }
        }
        if let Ok(copies) = r.weak_complement(&target) {
            let mut sums: Vec<i64> = (0..copies.size())
                .flat_map(|i| values.iter().map(move |value| (i, value)))
                .map(|(i, value)| copies.eval(&i).unwrap() + value)
                .collect();
            let count = sums.len();
            sums.sort_unstable();
            sums.dedup();
            assert_eq!(sums.len(), count, "{r}: {copies}");
        }
        match r.image_layout() {
            Ok((layout, offset)) => {
                let listed: Vec<i64> = (0..layout.size()).map(|i| layout.eval(&i).unwrap() + offset).collect();
                assert_eq!(listed, values, "{r}: {layout}");
            }
            Err(LayoutError::NotAdditive { index, value, alone, .. }) => {
                assert!(values[index as usize] == value && value != alone, "{r}");
            }
            Err(error) => panic!("{r}: {error}"),
        }
    }
    assert!(whole > 300 && refused > 300, "{whole} {refused}");
}

#[test]
fn inverses_send_values_back() {
    let mut random = Random(22);
    let (mut left, mut right, mut undecided) = (0, 0, 0);
    for _ in 0..3_000 {
        let r = any(&mut random);
        let back = match r.left_inverse() {
            Ok(back) => back,
            // Neither the maps one by one nor the whole as a layout can be undone.
            Err(LayoutError::Undecided { .. } | LayoutError::NoLeftInverse(_)) => {
                undecided += 1;
                continue;
            }
            Err(error) => panic!("{r}: {error}"),
        };
        left += 1;
        assert_sends_back(&r, &back, image(&r));
        let reached = reached(&r);
        match r.right_inverse() {
            Ok(inverse) => {
                right += 1;
                assert_eq!(inverse.size(), reached, "{r}: {inverse}");
                assert_sends_back(&r, &inverse, 0..reached);
            }
            Err(error) => assert!(reached == 0, "{r}: {error}"),
        }
    }
    println!("{left} left inverses, {right} right ones, {undecided} undecided");
    assert!(left > 2_000 && right > 800 && undecided < 400, "{left} {right} {undecided}");
}

/// Whether some layout of integers has these values, the first of which is 0.
fn is_layout_function(h: &[i64]) -> bool {
    let n = h.len();
    n == 1
        || (2..=n).any(|t| {
            n.is_multiple_of(t)
                && (0..n).all(|i| h[i] == (i % t) as i64 * h[1] + h[i - i % t])
                && is_layout_function(&h.iter().copied().step_by(t).collect::<Vec<_>>())
        })
}

/// The size of the largest layout with an offset that gives back `0, 1, ..`: every choice of
/// indices is tried.
fn largest_right_inverse(values: &[i64]) -> Option<usize> {
    let at = |value: usize| (0..values.len()).filter(move |index| values[*index] == value as i64);
    let most = (0..).find(|value| at(*value).next().is_none()).unwrap();
    (1..=most).rev().find(|size| {
        let mut chosen: Vec<Vec<i64>> = vec![vec![]];
        for value in 0..*size {
            let longer = |list: &Vec<i64>| {
                at(value).map(|index| [list.as_slice(), &[index as i64]].concat()).collect::<Vec<_>>()
            };
            chosen = chosen.iter().flat_map(longer).collect();
        }
        chosen.iter().any(|list| is_layout_function(&list.iter().map(|index| index - list[0]).collect::<Vec<_>>()))
    })
}

#[test]
fn right_inverses_exist_without_left_ones() {
    let mut random = Random(31);
    let (mut compared, mut longer) = (0, 0);
    for _ in 0..20_000 {
        let r = any(&mut random);
        let list = values(&r);
        // A left inverse, cut, has the largest; here there is none.
        if r.left_inverse().is_ok() || list.len() > 12 {
            continue;
        }
        match r.right_inverse() {
            Ok(right) => {
                for (value, index) in values(&right).into_iter().enumerate() {
                    assert_eq!(list.get(index as usize), Some(&(value as i64)), "{r}: {right}");
                }
                assert_eq!(Some(right.size() as usize), largest_right_inverse(&list), "{r}: {right}");
                compared += 1;
                longer += i32::from(right.size() > 1);
            }
            Err(error) => {
                assert!(matches!(error, LayoutError::NoPreimage { value: 0, .. }) && !list.contains(&0), "{r}: {error}")
            }
        }
    }
    assert!(compared > 100 && longer > 20, "{compared} {longer}");
}

#[test]
fn recasting_keeps_the_bits() {
    let mut random = Random(23);
    let (mut wide, mut narrow) = (0, 0);
    for _ in 0..3_000 {
        let r = any(&mut random);
        let list = values(&r);
        for n in [2, 3, 4, 8] {
            if let Ok(parts) = r.downcast(n) {
                narrow += 1;
                let cut: Vec<i64> = list.iter().flat_map(|value| (0..n).map(move |j| n * value + j)).collect();
                let mut found = values(&parts);
                found.sort_unstable();
                let mut cut = cut;
                cut.sort_unstable();
                assert_eq!(found, cut, "{r} by {n}: {parts}");
            }
            if let Ok(packed) = r.upcast(n) {
                wide += 1;
                let wide_values = values(&packed);
                let mut found: Vec<i64> = wide_values.iter().flat_map(|v| (0..n).map(move |j| n * v + j)).collect();
                let mut all = list.clone();
                found.sort_unstable();
                all.sort_unstable();
                // Elements that lie apart are seen in the wide elements that hold them.
                let apart = || wide_values.iter().copied().eq(list.iter().map(|value| value.div_euclid(n)));
                assert!(found == all || r.recast(n, 1).is_err() && apart(), "{r} by {n}: {packed}");
            }
        }
        let n = r.max_alignment();
        assert!(n >= 1 && (n == 1 || r.coalesce().unwrap().upcast(n).is_ok()), "{r}: {n}");
    }
    assert!(wide > 500 && narrow > 3_000, "{wide} {narrow}");
}

#[test]
fn vectors_move_whole_wherever_they_begin() {
    let mut random = Random(24);
    let mut vectors = 0;
    for _ in 0..12_000 {
        let (a, b) = (any(&mut random), any(&mut random));
        let b = Composed::new(b.outer().clone(), *b.offset(), a.inner().clone()).unwrap();
        let common = a.max_common_layout(&b).unwrap();
        let size = common.size();
        vectors += i64::from(size > 1);
        if size == 1 {
            continue;
        }
        let starts = common.complement(&a.size()).unwrap_or_else(|error| panic!("{a}, {b}: {common}: {error}"));
        for start in (0..starts.size()).map(|i| starts.eval(&i).unwrap()) {
            for element in 0..size {
                let index = start + common.eval(&element).unwrap();
                for r in [&a, &b] {
                    assert_eq!(
                        r.eval(&index).unwrap(),
                        r.eval(&start).unwrap() + element,
                        "{a}, {b}: {common} at {start}"
                    );
                }
            }
        }
    }
    assert!(vectors > 120, "{vectors}");
}

#[test]
fn common_bits_are_all_that_there_are() {
    // Swizzled rows: the largest power of two by which every aligned run of elements stays a run in
    // both.
    let mut random = Random(25);
    let mut found = 0;
    for _ in 0..500 {
        let swizzle = |random: &mut Random| loop {
            if let Ok(s) = Swizzle::new(random.below(3), random.below(4), random.below(9) - 4) {
                return s;
            }
        };
        let make = |random: &mut Random| {
            Composed::new(
                swizzle(random),
                256 * random.below(3) + (random.below(16) & 8 & -random.below(2)),
                layout("(8,8):(16,1)"),
            )
        };
        let (a, b) = (make(&mut random).unwrap(), make(&mut random).unwrap());
        let plain = a.to_layout().is_ok() && b.to_layout().is_ok();
        let runs = |r: &Composed, n: i64| {
            (0..8).all(|i| {
                let row = |j: i64| r.eval(&(i + 8 * j)).unwrap();
                (0..8 / n).all(|t| row(n * t) % n == 0 && (0..n).all(|j| row(n * t + j) == row(n * t) + j))
            })
        };
        let best = [8, 4, 2, 1].into_iter().find(|n| runs(&a, *n) && runs(&b, *n)).unwrap();
        let vector = a.max_common_vector(&b).unwrap();
        found += i64::from(best > 1);
        assert!(if plain { vector >= best } else { vector == best }, "{a}, {b}: {vector}, not {best}");
    }
    assert!(found > 100, "{found}");
}

#[test]
fn row_26_a_swizzle_as_a_layout_has_its_whole_extent() {
    for (text, whole) in [("S<2,0,3>", "S<2,0,3> o 0 o 32:1"), ("S<3,4,3>", "S<3,4,3> o 0 o 1024:1")] {
        let layout = text.parse::<Swizzle>().unwrap().layout().unwrap();
        assert_eq!(layout.to_string(), whole);
        assert!(image(&layout).into_iter().eq(0..layout.size()));
    }
}

#[test]
fn row_27_a_ratio_that_is_no_power_of_two_is_refused() {
    let swizzle = Swizzle::new(3, 4, 3).unwrap();
    for (new, old) in [(24, 16), (16, 24), (6, 4)] {
        assert_eq!(swizzle.recast(new, old).unwrap_err().code(), "E0116");
        assert!(composed("S<3,4,3> o 0 o 1152:1").recast(new, old).is_err());
    }
    assert_eq!(swizzle.recast(32, 8).unwrap().to_string(), "S<3,2,3>");
    // What flips nothing goes with any ratio.
    assert_eq!(composed("S<0,4,3> o 6 o 12:1").recast(3, 1).unwrap().to_string(), "S<0,4,3> o 2 o 4:1");
}

#[test]
fn row_28_modes_are_those_of_the_inner_layout() {
    let r = composed("S<3,3,3> o 8 o (8,(2,32)):(64,(0,1))");
    assert_eq!(r.select(&[0]).unwrap().to_string(), "S<3,3,3> o 8 o (8):(64)");
    assert_eq!(r.prepend_to_rank(3, &Layout::unit()).unwrap().to_string(), "S<3,3,3> o 8 o (1,8,(2,32)):(0,64,(0,1))");
    assert_eq!(r.prepend(&layout("3:512")).unwrap().to_string(), "S<3,3,3> o 8 o (3,8,(2,32)):(512,64,(0,1))");
    assert_eq!(r.filter_zeros().unwrap().to_string(), "S<3,3,3> o 8 o (8,(1,32)):(64,(0,1))");
}

#[test]
fn row_29_what_others_leave_out() {
    let r = composed("S<3,3,3> o 8 o (8,(2,32)):(64,(0,1))");
    assert_eq!(r.at(&[1, 1]).unwrap().shape().to_string(), "32");
    assert_eq!(r.dice(&"(1,(_,3))".parse::<Coord>().unwrap()).unwrap().to_string(), "S<3,3,3> o 8 o (8,32):(64,1)");
    assert_eq!(r.coshape().unwrap().to_string(), r.cosize().unwrap().to_string());
    assert_eq!(r.cosize().unwrap(), 1 + image(&r).last().unwrap());
    assert_eq!(r.filter().unwrap().to_string(), "S<3,3,3> o 8 o (8,32):(64,1)");
    assert_eq!(r.append(&layout("3:512")).unwrap().size(), 3 * r.size());
    assert_eq!(r.replace(1, &layout("4:1")).unwrap().to_string(), "S<3,3,3> o 8 o (8,4):(64,1)");
}

#[test]
fn row_30_values_are_seen_through_the_outer_map_and_the_offset() {
    // The complement of the values, not of the inner layout.
    let r = composed("(4,4):(4,1) o 0 o 4:1"); // 0, 4, 8, 12
    assert_eq!(r.complement(&32).unwrap().to_string(), "(4,2):(1,16)");
    assert_eq!(r.cosize(), Ok(13));
    let r = composed("(4,4):(4,1) o 1 o 3:1"); // 4, 8, 12
    assert!(r.complement(&32).is_err());
    assert_eq!(r.weak_complement(&32).unwrap().to_string(), "(4,3):(1,12)");
    assert_eq!(composed("(4,8):(1,4) o 0 o 32:1").max_alignment(), 32);
    assert_eq!(composed("(4,8):(1,4) o 2 o 32:1").max_alignment(), 2);
    assert_eq!(composed("(4,8):(8,1) o 0 o (4,3,8):(1,0,4)").nullspace().unwrap().to_string(), "3:4");
}

#[test]
fn row_31_an_offset_is_no_obstacle() {
    let r = composed("S<2,0,2> o 5 o (4,4):(1,4)");
    let a = layout("(8,8):(8,1)");
    let both = r.then(a.clone()).unwrap();
    for index in 0..16 {
        assert_eq!(both.eval(&index), a.eval(&r.eval(&index).unwrap()));
    }
    assert_eq!(composed(&both.to_string()), both);
}

#[test]
fn row_32_a_vector_does_not_cross_what_an_offset_moves() {
    let rows = composed("S<0,0,0> o 0 o (8,64):(64,1)");
    for (offset, vector) in [(0, 8), (8, 8), (64, 8), (4, 4), (12, 4), (2, 2), (7, 1)] {
        let r = composed(&format!("S<3,3,3> o {offset} o (8,64):(64,1)"));
        assert_eq!(rows.max_common_vector(&r), Ok(vector), "{r}");
    }
    let plain = composed("S<0,0,0> o 16 o (8,64):(64,1)");
    assert_eq!(rows.max_common_vector(&plain), max_common_vector(rows.inner(), plain.inner()));
}

#[test]
fn row_33_inverses_are_right_with_any_offset() {
    for offset in [0, 1, 5, 16, -3] {
        let r = Composed::new(Swizzle::new(2, 0, 2).unwrap(), offset, layout("(4,4):(4,1)")).unwrap();
        let back = r.left_inverse().unwrap();
        for index in 0..16 {
            assert_eq!(back.eval(&r.eval(&index).unwrap()), Ok(index), "{r}: {back}");
        }
    }
}

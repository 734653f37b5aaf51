//! Recasting against its laws, with elements as sets of bits (here: of elements of the narrow
//! width).
//!
//! The oracle decides by search: it tries every way to divide the extents, looks at every box of
//! elements, and asks whether each is one aligned wide element and whether their numbers add up
//! over the modes.

use tilewright_layout::{Layout, LayoutError};

type Flat = Vec<(i64, i64)>;

fn layout(flat: &[(i64, i64)]) -> Layout {
    let column =
        |f: &dyn Fn(&(i64, i64)) -> i64| flat.iter().map(|leaf| f(leaf).to_string()).collect::<Vec<_>>().join(",");
    format!("({}):({})", column(&|leaf| leaf.0), column(&|leaf| leaf.1)).parse().unwrap()
}

/// Every coordinate of a shape, first mode fastest.
fn coordinates(shape: &[i64]) -> Vec<Vec<i64>> {
    let size: i64 = shape.iter().product();
    let digits = |mut index: i64| {
        shape
            .iter()
            .map(|extent| {
                let digit = index % extent;
                index /= extent;
                digit
            })
            .collect()
    };
    (0..size).map(digits).collect()
}

fn value(flat: &[(i64, i64)], coordinate: &[i64]) -> i64 {
    flat.iter().zip(coordinate).map(|((_, d), c)| d * c).sum()
}

/// The value of a layout with one mode a leaf at a coordinate of its modes.
fn at(layout: &Layout, coordinate: &[i64]) -> i64 {
    let (mut index, mut step) = (0, 1);
    for (mode, c) in layout.modes().zip(coordinate) {
        index += step * c;
        step *= mode.size();
    }
    layout.eval(&index).unwrap()
}

/// The number of the wide element that a box of elements fills, if it fills one.
fn wide(mut elements: Vec<i64>, n: i64) -> Option<i64> {
    elements.sort_unstable();
    let first = elements[0];
    let filled = elements.iter().zip(first..).all(|(element, expected)| *element == expected);
    (filled && elements.len() as i64 == n && first.rem_euclid(n) == 0).then(|| first.div_euclid(n))
}

/// The elements of the box at `c`, each leaf cut into runs of `f`.
fn boxed(flat: &[(i64, i64)], f: &[i64], c: &[i64]) -> Vec<i64> {
    let elements = coordinates(f).into_iter();
    let shifted = elements.map(|j| j.iter().zip(f).zip(c).map(|((j, f), c)| f * c + j).collect::<Vec<_>>());
    shifted.map(|coordinate| value(flat, &coordinate)).collect()
}

/// The numbers of the wide elements at every coordinate of the divided shape, when there are such.
fn widened(flat: &[(i64, i64)], f: &[i64], n: i64) -> Option<Vec<i64>> {
    let rest: Vec<i64> = flat.iter().zip(f).map(|((s, _), f)| s / f).collect();
    coordinates(&rest).iter().map(|c| wide(boxed(flat, f, c), n)).collect()
}

/// Whether a function on the coordinates of a shape adds up over its modes.
fn adds_up(shape: &[i64], values: &[i64]) -> bool {
    let all = coordinates(shape);
    let step = |mode: usize| shape[..mode].iter().product::<i64>() as usize;
    let alone = |mode: usize, c: i64| values[c as usize * step(mode)];
    // Along each mode in equal steps, for a leaf is one extent and one stride.
    let linear = (0..shape.len()).all(|mode| (0..shape[mode]).all(|c| alone(mode, c) == c * alone(mode, c.min(1))));
    linear
        && all.iter().zip(values).all(|(c, v)| *v == c.iter().enumerate().map(|(mode, c)| alone(mode, *c)).sum::<i64>())
}

fn divisors(n: i64) -> impl Iterator<Item = i64> + Clone {
    (1..=n).filter(move |d| n % d == 0)
}

/// Every way to divide the extents by factors that multiply up to `n`.
fn factorings(flat: &[(i64, i64)], n: i64) -> Vec<Vec<i64>> {
    let Some(((extent, _), rest)) = flat.split_first() else {
        return if n == 1 { vec![vec![]] } else { vec![] };
    };
    let mut all = Vec::new();
    for f in divisors(*extent).filter(|f| n % f == 0) {
        for mut tail in factorings(rest, n / f) {
            tail.insert(0, f);
            all.push(tail);
        }
    }
    all
}

/// Whether elements of `flat` pack into elements `n` times as wide.
fn packs(flat: &[(i64, i64)], n: i64) -> bool {
    factorings(flat, n).iter().any(|f| {
        let rest: Vec<i64> = flat.iter().zip(f).map(|((s, _), f)| s / f).collect();
        widened(flat, f, n).is_some_and(|values| adds_up(&rest, &values))
    })
}

/// Flat layouts of up to three leaves, strides of both signs, 0 and extents of 1 included.
fn small() -> Vec<Flat> {
    let leaves = |extents: &[i64], strides: &[i64]| -> Flat {
        extents.iter().flat_map(|s| strides.iter().map(move |d| (*s, *d))).collect()
    };
    let wide = leaves(&[1, 2, 3, 4, 6], &[-6, -4, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12]);
    let narrow = leaves(&[1, 2, 3, 4], &[-1, 0, 1, 2, 3, 4, 6, 8]);
    let mut all: Vec<Flat> = wide.iter().map(|leaf| vec![*leaf]).collect();
    all.extend(wide.iter().flat_map(|a| wide.iter().map(|b| vec![*a, *b])));
    for a in &narrow {
        all.extend(narrow.iter().flat_map(|b| narrow.iter().map(|c| vec![*a, *b, *c])));
    }
    all
}

#[test]
fn widening_is_exact_or_refused() {
    let (mut done, mut refused) = (0, 0);
    for flat in small() {
        let l = layout(&flat);
        for n in [2, 3, 4, 6, 8, 12] {
            match l.recast(n, 1) {
                Ok(r) => {
                    done += 1;
                    assert_eq!(r.profile(), l.profile(), "{l} by {n}");
                    let f: Vec<i64> = flat.iter().zip(r.leaves()).map(|((s, _), leaf)| s / leaf.extent).collect();
                    assert!(flat.iter().zip(r.leaves()).all(|((s, _), leaf)| s % leaf.extent == 0));
                    let rest: Vec<i64> = r.leaves().iter().map(|leaf| leaf.extent).collect();
                    let expected =
                        widened(&flat, &f, n).unwrap_or_else(|| panic!("{l} by {n} = {r}: a box is not filled"));
                    let values: Vec<i64> = coordinates(&rest).iter().map(|c| at(&r, c)).collect();
                    assert_eq!(values, expected, "{l} by {n} = {r}");
                    let covering = l.upcast(n).unwrap();
                    assert_eq!(r, covering, "where it packs, rounding up changes nothing");
                }
                Err(error) => {
                    refused += 1;
                    assert!(!packs(&flat, n), "{l} by {n} refused: {error}");
                    match &error {
                        LayoutError::NotDivisible { value, divisor, .. } => {
                            assert_ne!(value % divisor, 0, "{l} by {n}: {error}")
                        }
                        // As many elements from offset 0 on, and then a gap.
                        LayoutError::Apart { together, needed, .. } => {
                            let offsets: Vec<i64> = (0..l.size()).map(|i| l.eval(&i).unwrap()).collect();
                            let run = (0..).take_while(|offset| offsets.contains(offset)).count() as i64;
                            assert!(*together < *needed && *needed == n && run % together == 0, "{l} by {n}: {error}");
                        }
                        LayoutError::Negative { stride, .. } => assert!(*stride < 0 && stride % n != 0, "{l} by {n}"),
                        LayoutError::Overlap(chain) => assert!(chain.covered > chain.outer.2, "{l} by {n}: {error}"),
                        _ => panic!("{l} by {n}: {error}"),
                    }
                }
            }
        }
    }
    assert!(done > 2_000 && refused > 100_000, "{done} {refused}");
}

#[test]
fn narrowing_is_exact_always() {
    for flat in small() {
        let l = layout(&flat);
        for n in [2, 3, 4] {
            let r = l.recast(1, n).unwrap();
            let sizes: Vec<i64> = r.modes().map(|mode| mode.size()).collect();
            assert_eq!(r.rank(), flat.len());
            let run = sizes.iter().zip(&flat).position(|(size, (s, _))| size != s).unwrap();
            let shape: Vec<i64> = flat.iter().map(|(s, _)| *s).collect();
            for c in coordinates(&shape) {
                for j in 0..n {
                    let mut part = c.clone();
                    part[run] = n * c[run] + j;
                    assert_eq!(at(&r, &part), n * value(&flat, &c) + j, "{l} into {n} = {r}");
                }
            }
            assert_eq!(sizes.iter().product::<i64>(), n * l.size());
            // The way back gives the same function.
            assert!(r.recast(n, 1).unwrap().equivalent(&l), "{l} into {n} = {r}");
            if flat.iter().any(|(s, d)| *s == 1 || *d == 1) {
                assert_eq!(r.profile(), l.profile());
            }
        }
    }
}

/// Ratios that are not whole: from `old` to `new` parts. Exists when the parts pack, whichever leaf
/// takes them.
#[test]
fn ratios_go_through_the_common_divisor() {
    let mut done = 0;
    for flat in small() {
        let l = layout(&flat);
        for (new, old) in [(3, 2), (2, 3), (4, 3), (12, 8)] {
            let (n, r) = if new == 12 { (3, 2) } else { (new, old) };
            // The parts of elements in every place where they can stand.
            let cut = |run: usize| -> Flat {
                let pair = |(s, d): &(i64, i64)| [(r, 1), (*s, d * r)];
                let moved = |(s, d): &(i64, i64)| vec![(*s, d * r)];
                flat.iter()
                    .enumerate()
                    .flat_map(|(at, leaf)| match leaf {
                        (s, d) if at == run && (*d == 1 || *s == 1) => vec![(s * r, 1)],
                        leaf if at == run => pair(leaf).to_vec(),
                        leaf => moved(leaf),
                    })
                    .collect()
            };
            match l.recast(new, old) {
                Ok(result) => {
                    done += 1;
                    let bits = |values: Vec<i64>, width: i64| {
                        let mut bits: Vec<i64> =
                            values.iter().flat_map(|v| (0..width).map(move |j| v * width + j)).collect();
                        bits.sort_unstable();
                        bits
                    };
                    let all = |l: &Layout| (0..l.size()).map(|i| l.eval(&i).unwrap()).collect::<Vec<_>>();
                    assert_eq!(bits(all(&result), n), bits(all(&l), r), "{l}: {old} -> {new} = {result}");
                }
                Err(error) => {
                    assert!((0..flat.len()).all(|run| !packs(&cut(run), n)), "{l}: {old} -> {new} refused: {error}");
                }
            }
        }
    }
    assert!(done > 300, "{done}");
}

#[test]
fn max_alignment_is_the_largest_that_packs() {
    for flat in small() {
        let l = layout(&flat);
        let coalesced = l.coalesce().unwrap();
        let flat: Flat = coalesced.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect();
        let largest = (1..=coalesced.size()).rev().find(|n| packs(&flat, *n)).unwrap();
        assert_eq!(l.max_alignment(), largest, "{l}");
        assert!(coalesced.recast(largest, 1).is_ok());
    }
}

#[test]
fn upcast_rounds_up_and_downcast_scales() {
    for flat in small() {
        let l = layout(&flat);
        for n in [1, 2, 3, 4] {
            let up = l.upcast(n).unwrap();
            for ((s, d), leaf) in flat.iter().zip(up.leaves()) {
                let ceil = |a: i64, b: i64| (a + b - 1) / b;
                let (extent, stride) =
                    if *d == 0 { (*s, 0) } else { (ceil(*s, ceil(n, d.abs())), d.signum() * ceil(d.abs(), n)) };
                assert_eq!(leaf.extent, extent);
                assert_eq!(leaf.stride, if extent == 1 { 0 } else { stride });
            }
            let down = l.downcast(n);
            if n > 1 && flat.iter().any(|(s, d)| *s > 1 && *d == -1) {
                assert!(matches!(down, Err(LayoutError::Negative { stride: -1, .. })));
                continue;
            }
            let down = down.unwrap();
            for ((s, d), leaf) in flat.iter().zip(down.leaves()) {
                let (extent, stride) = if *d == 1 { (s * n, 1) } else { (*s, d * n) };
                assert_eq!(leaf.extent, extent);
                assert_eq!(leaf.stride, if *s == 1 && *d != 1 { 0 } else { stride });
            }
            // Where one leaf of stride 1 has an extent above 1 it is the narrowing; no extent 1 of
            // stride 1 may join in.
            if n > 1 && flat.iter().filter(|(_, d)| *d == 1).count() == 1 && flat.iter().any(|(s, d)| *s > 1 && *d == 1)
            {
                assert_eq!(down, l.recast(1, n).unwrap());
            }
        }
    }
}

#[test]
fn extremes_are_errors_not_panics() {
    let l: Layout = "(4,2):(1,-9223372036854775808)".parse().unwrap();
    assert_eq!(l.upcast(2).unwrap().to_string(), "(2,2):(1,-4611686018427387904)");
    assert_eq!(l.max_alignment(), 4);
    assert_eq!(l.recast(4, 1).unwrap().to_string(), "(1,2):(0,-2305843009213693952)");
    assert!(matches!(l.recast(1, 2), Err(LayoutError::Overflow { .. })));
    assert!(matches!(l.downcast(2), Err(LayoutError::Overflow { .. })));
    let long: Layout = "(4611686018427387904):(1)".parse().unwrap();
    assert!(matches!(long.downcast(2), Err(LayoutError::Overflow { .. })));
    assert!(matches!(long.recast(1, i64::MAX), Err(LayoutError::Overflow { .. })));
    assert_eq!(long.max_alignment(), 1 << 62);
    for n in [0, -1, i64::MIN] {
        assert!(matches!(long.upcast(n), Err(LayoutError::Argument { .. })));
        assert!(matches!(long.downcast(n), Err(LayoutError::Argument { .. })));
        assert!(matches!(long.recast(n, 8), Err(LayoutError::Argument { what: "new_bits", .. })));
        assert!(matches!(long.recast(8, n), Err(LayoutError::Argument { what: "old_bits", .. })));
    }
    let empty: Layout = "():()".parse().unwrap();
    assert_eq!(empty.recast(8, 32).unwrap().to_string(), "(4):(1)");
    assert!(empty.recast(32, 8).is_err());
    let nested: Layout = "((4,2),((3,5),2)):((2,8),((16,1),48))".parse().unwrap();
    assert_eq!(nested.recast(8, 16).unwrap().to_string(), "((4,2),((3,10),2)):((4,16),((32,1),96))");
    let error = nested.recast(32, 16).unwrap_err();
    assert_eq!(error.to_string(), "recast_layout: in mode [1,0,1], 2 does not divide 5");
}

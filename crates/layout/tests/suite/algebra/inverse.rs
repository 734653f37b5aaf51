//! Inverses, complements and sums against their definitions, on every layout of bounded sets.

use std::collections::BTreeSet;

use tilewright_layout::{Layout, LayoutError};

/// Every layout of rank at most 2 over these extents and strides.
fn layouts(extents: std::ops::RangeInclusive<i64>, strides: &[i64]) -> Vec<Layout> {
    let leaves: Vec<(i64, i64)> = extents.flat_map(|s| strides.iter().map(move |d| (s, *d))).collect();
    let singles = leaves.iter().map(|(s, d)| format!("{s}:{d}"));
    let pairs = leaves.iter().flat_map(|(s, d)| leaves.iter().map(move |(t, e)| format!("({s},{t}):({d},{e})")));
    singles.chain(pairs).map(|text| text.parse().unwrap()).collect()
}

fn values(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).map(|i| layout.eval(&i).unwrap()).collect()
}

/// The size of the largest right inverse, by trying every index for every mode.
fn largest_right_inverse(values: &[i64]) -> usize {
    fn extend(values: &[i64], inverse: &[usize], best: &mut usize) {
        *best = (*best).max(inverse.len());
        let covered = inverse.len();
        for step in (0..values.len()).filter(|index| values[*index] == covered as i64) {
            let mut longer = inverse.to_vec();
            for copy in 1.. {
                let next: Vec<usize> = inverse.iter().map(|index| index + copy * step).collect();
                let fits = next
                    .iter()
                    .enumerate()
                    .all(|(i, index)| values.get(*index).is_some_and(|v| *v == (i + copy * covered) as i64));
                if !fits {
                    break;
                }
                longer.extend(next);
                extend(values, &longer, best);
            }
        }
    }
    let mut best = 1;
    extend(values, &[0], &mut best);
    best
}

#[test]
fn right_inverse_is_right_and_largest() {
    let mut searched = 0;
    let all = layouts(1..=5, &[-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 12]);
    for layout in all.into_iter().chain(layouts(1..=6, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 12])) {
        let inverse = layout.right_inverse().unwrap();
        let size = inverse.size();
        for i in 0..size {
            let index = inverse.eval(&i).unwrap();
            assert!((0..layout.size()).contains(&index), "{layout}: {inverse} leaves it at {i}");
            assert_eq!(layout.eval(&index).unwrap(), i, "{layout}: {inverse} at {i}");
        }
        let largest = largest_right_inverse(&values(&layout));
        assert_eq!(size as usize, largest, "{layout}: {inverse}");
        searched += usize::from(largest > 1);
    }
    assert!(searched > 500);
}

#[test]
fn right_inverse_of_three_modes() {
    let mut seed = 3_u64;
    let mut random = |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % bound) as i64
    };
    for case in 0..12_000 {
        let most = if case % 2 == 0 { 9 } else { 4 };
        let mut leaf = || (1 + random(4), random(most) - i64::from(most == 9));
        let ((a, x), (b, y), (c, z)) = (leaf(), leaf(), leaf());
        // Small strides, zero among them, make the overlaps in which the chain of strides falls
        // short.
        let layout: Layout = format!("({a},{b},{c}):({x},{y},{z})").parse().unwrap();
        let inverse = layout.right_inverse().unwrap();
        for i in 0..inverse.size() {
            assert_eq!(layout.eval(&inverse.eval(&i).unwrap()).unwrap(), i, "{layout}: {inverse}");
        }
        assert_eq!(inverse.size() as usize, largest_right_inverse(&values(&layout)), "{layout}: {inverse}");
    }
}

/// Whether a layout takes one of the allowed values at every point: its first mode is tried at
/// every extent and step.
fn layout_through(points: &[(i64, BTreeSet<i64>)], most: i64) -> bool {
    let Some((last, _)) = points.last() else { return true };
    for extent in 2..=last + 1 {
        for step in -most..=most {
            let mut above: Vec<(i64, BTreeSet<i64>)> = Vec::new();
            let mut fits = true;
            for (point, allowed) in points {
                let (block, rest) = (point / extent, point % extent);
                let reduced: BTreeSet<i64> = allowed.iter().map(|value| value - rest * step).collect();
                if block == 0 {
                    fits = reduced.contains(&0);
                } else if let Some((_, values)) = above.last_mut().filter(|(at, _)| *at == block) {
                    values.retain(|value| reduced.contains(value));
                    fits = !values.is_empty();
                } else {
                    above.push((block, reduced));
                }
                if !fits {
                    break;
                }
            }
            if fits && layout_through(&above, most) {
                return true;
            }
        }
    }
    false
}

fn left_inverse_exists(layout: &Layout) -> bool {
    let mut points: std::collections::BTreeMap<i64, BTreeSet<i64>> = Default::default();
    for (index, value) in values(layout).into_iter().enumerate() {
        if value != 0 {
            points.entry(value.abs()).or_default().insert(value.signum() * index as i64);
        }
    }
    layout_through(&points.into_iter().collect::<Vec<_>>(), layout.size())
}

fn check_left_inverse(layout: &Layout) -> bool {
    match layout.left_inverse() {
        Ok(inverse) => {
            for (index, value) in values(layout).into_iter().enumerate() {
                let back = inverse.eval(&value).unwrap();
                assert_eq!(layout.eval(&back).unwrap(), value, "{layout}: {inverse} at {index}");
            }
            true
        }
        Err(LayoutError::NoLeftInverse(_)) => {
            assert!(!left_inverse_exists(layout), "{layout} has a left inverse");
            false
        }
        Err(error) => panic!("{layout}: {error}"),
    }
}

#[test]
fn left_inverse_is_left_or_does_not_exist() {
    let mut all = layouts(1..=4, &[-3, -2, -1, 0, 1, 2, 3, 4, 5, 6]);
    all.extend(layouts(1..=6, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 12]));
    let found = all.iter().filter(|layout| check_left_inverse(layout)).count();
    println!("{} layouts, {found} with a left inverse", all.len());
    assert!(found > all.len() / 2 && found < all.len());
}

#[test]
fn nullspace_is_null() {
    for layout in layouts(1..=4, &[0, 1, 2, 3]) {
        let null = layout.nullspace().unwrap();
        let indices: BTreeSet<i64> = values(&null).into_iter().collect();
        assert_eq!(indices.len() as i64, null.size(), "{layout}: {null}");
        assert!(indices.iter().all(|index| layout.eval(index).unwrap() == 0), "{layout}: {null}");
        assert_eq!(null.size() * layout.filter_zeros().size(), layout.size(), "{layout}: {null}");
    }
}

/// Whether sorted, coalesced layouts can tile `[0, target)` together with this one, by laying the
/// first hole again and again.
fn complement_by_hand(layout: &Layout, target: i64) -> Option<BTreeSet<i64>> {
    let tile: BTreeSet<i64> = values(layout).into_iter().collect();
    let mut covered = tile.clone();
    let mut origins = BTreeSet::from([0]);
    while let Some(hole) = (0..target).find(|offset| !covered.contains(offset)) {
        for offset in &tile {
            if !covered.insert(hole + offset) {
                return None;
            }
        }
        origins.insert(hole);
    }
    (covered.first() == Some(&0) && covered.last() == Some(&(covered.len() as i64 - 1))).then_some(origins)
}

#[test]
fn complement_fills_exactly() {
    let mut refused = 0;
    for layout in layouts(1..=6, &[-2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12]) {
        let image: BTreeSet<i64> = values(&layout).into_iter().collect();
        for target in [1, 2, 6, 24, 36] {
            match layout.complement(&target) {
                Ok(complement) => {
                    let offsets = values(&complement);
                    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "{layout}, {target}: {complement}");
                    assert_eq!(complement, complement.coalesce().unwrap());
                    let sums: BTreeSet<i64> = image.iter().flat_map(|a| offsets.iter().map(move |b| a + b)).collect();
                    let total = image.len() * offsets.len();
                    assert_eq!(sums, (0..total as i64).collect(), "{layout}, {target}: {complement}");
                    assert!(
                        total as i64 >= target && (total as i64) < target + total_of(&layout),
                        "{layout}, {target}"
                    );
                }
                Err(_) => {
                    refused += 1;
                    // Nothing tiles a multiple of what the layout needs: so no complement was there
                    // to be found.
                    let period = (1..=64).find(|n| complement_by_hand(&layout, target.max(1) * n).is_some());
                    let injective = image.len() as i64 == layout.filter_zeros().size();
                    assert!(period.is_none() || !injective, "{layout} in {target} refused; {period:?}");
                }
            }
        }
    }
    assert!(refused > 1000);
}

/// The extent that a layout with a complement tiles: the stride after its last mode.
fn total_of(layout: &Layout) -> i64 {
    layout.complement_open().unwrap().leaves().last().map_or(1, |leaf| leaf.stride)
}

#[test]
fn weak_complement_is_sorted_and_disjoint() {
    let mut holes = 0;
    for layout in layouts(1..=5, &[-4, -1, 0, 1, 2, 3, 4, 5, 6, 8, 12]) {
        for target in [1, 7, 24, 64] {
            let Ok(weak) = layout.weak_complement(&target) else { continue };
            let image: BTreeSet<i64> = values(&layout).into_iter().collect();
            let offsets = values(&weak);
            assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "{layout}, {target}: {weak}");
            let sums: BTreeSet<i64> = image.iter().flat_map(|a| offsets.iter().map(move |b| a + b)).collect();
            assert_eq!(sums.len(), image.len() * offsets.len(), "{layout}, {target}: {weak}");
            match layout.complement(&target) {
                Ok(strict) => assert_eq!(strict, weak, "{layout}, {target}"),
                Err(_) => holes += 1,
            }
        }
    }
    assert!(holes > 500);
}

#[test]
fn sums_are_sums_or_no_layout() {
    let mut refused = 0;
    let all: Vec<Layout> = layouts(1..=6, &[-2, 0, 1, 2, 3]);
    for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))).filter(|(a, b)| a.size() == b.size()) {
        let expected: Vec<i64> = values(a).iter().zip(values(b)).map(|(x, y)| x + y).collect();
        match a.add(b) {
            Ok(sum) => {
                assert_eq!(values(&sum), expected, "{a} + {b} = {sum}");
                assert_eq!(sum, sum.coalesce().unwrap());
            }
            Err(_) => {
                refused += 1;
                assert!(!is_layout_function(&expected), "{a} + {b} refused");
            }
        }
    }
    assert!(refused > 1000);
}

fn is_layout_function(h: &[i64]) -> bool {
    let n = h.len();
    let Some(p) = (1..n).find(|i| h[*i] != *i as i64 * h[1]) else { return true };
    n.is_multiple_of(p)
        && (0..n).all(|i| h[i] == h[i % p] + h[i - i % p])
        && is_layout_function(&h.iter().copied().step_by(p).collect::<Vec<_>>())
}

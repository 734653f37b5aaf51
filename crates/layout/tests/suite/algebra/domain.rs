//! Shared domains against their definitions, on all small shapes.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_layout::{
    CommonDigits, Digit, Layout, LayoutError, Tree, common_coarsening, common_refinement, domain_distribute,
    greatest_common_domain,
};

fn tree(extents: &[i64]) -> Tree<i64> {
    Tree::flat(extents.iter().copied()).unwrap()
}

/// Every ordered factorisation of `n` into factors above 1: every flat shape of that size without
/// extents of 1.
fn factorisations(n: i64) -> Vec<Vec<i64>> {
    if n == 1 {
        return vec![vec![]];
    }
    let heads = (2..=n).filter(|head| n % head == 0);
    heads
        .flat_map(|head| {
            factorisations(n / head).into_iter().map(move |mut tail| {
                tail.insert(0, head);
                tail
            })
        })
        .collect()
}

/// Whether `fine` refines `coarse`: each extent of `coarse` is the product of a run of `fine`.
fn refines(fine: &[i64], coarse: &[i64]) -> bool {
    let mut rest = fine.iter();
    for extent in coarse {
        let mut product = 1;
        while product < *extent {
            let Some(next) = rest.next() else { return false };
            product *= next;
        }
        if product != *extent {
            return false;
        }
    }
    rest.next().is_none()
}

/// The extents of a shape, none for 1.
fn extents(shape: &Tree<i64>) -> Vec<i64> {
    shape.leaves().iter().copied().filter(|extent| *extent > 1).collect()
}

/// Shapes of all sizes up to 24 and of some with many divisors, by size.
fn shapes() -> BTreeMap<i64, Vec<Vec<i64>>> {
    (1..=24).chain([30, 32, 36, 48, 60]).map(|size| (size, factorisations(size))).collect()
}

#[test]
fn join_and_meet_are_the_bounds_of_the_refinement_order() {
    let (mut joined, mut refused) = (0, 0);
    for shapes in shapes().values() {
        for (a, b) in shapes.iter().flat_map(|a| shapes.iter().map(move |b| (a, b))) {
            let meet = extents(&common_coarsening(&tree(a), &tree(b)).unwrap());
            assert!(refines(a, &meet) && refines(b, &meet), "{a:?} {b:?}: {meet:?}");
            for other in shapes.iter().filter(|other| refines(a, other) && refines(b, other)) {
                assert!(refines(&meet, other), "{a:?} {b:?}: {other:?} is finer than {meet:?}");
            }
            let mut bounds = shapes.iter().filter(|other| refines(other, a) && refines(other, b));
            match common_refinement(&tree(a), &tree(b)) {
                Ok(join) => {
                    joined += 1;
                    let join = extents(&join);
                    assert!(refines(&join, a) && refines(&join, b), "{a:?} {b:?}: {join:?}");
                    assert!(bounds.all(|other| refines(other, &join)), "{a:?} {b:?}: {join:?} is not the coarsest");
                }
                Err(LayoutError::NotDivisible { path, value, divisor, .. }) => {
                    refused += 1;
                    assert!(value % divisor != 0 && path[0] < a.len());
                    assert!(bounds.next().is_none(), "{a:?} {b:?} refused");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(joined > 1_000 && refused > 1_000, "{joined} {refused}");
}

#[test]
fn bounds_forget_nesting_and_ones() {
    let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
    let (a, b) = (shape("((2,1),(3,4))"), shape("(1,(6,1),2,2,1)"));
    assert_eq!(common_refinement(&a, &b).unwrap().to_string(), "(2,3,2,2)");
    assert_eq!(common_coarsening(&a, &b).unwrap().to_string(), "(6,4)");
    assert_eq!(common_refinement(&shape("6"), &shape("(6)")).unwrap().to_string(), "6");
    assert_eq!(common_coarsening(&shape("()"), &shape("(1,1)")).unwrap().to_string(), "1");
    let error = LayoutError::Size { op: "common_refinement", left: 6, right: 8 };
    assert_eq!(common_refinement(&shape("6"), &shape("8")), Err(error));
    assert!(matches!(common_coarsening(&shape("6"), &shape("(2,0)")), Err(LayoutError::Extent { .. })));
    let large = shape("(4611686018427387904,4)");
    assert!(matches!(common_coarsening(&large, &large), Err(LayoutError::Overflow { .. })));
}

/// Whether the mode `g:e` is a digit within one mode of the shape: between two prefix products.
fn within_one_mode(shape: &[i64], g: i64, e: i64) -> bool {
    let mut product = 1;
    shape.iter().any(|extent| {
        let start = product;
        product *= extent;
        e % start == 0 && product % (e * g) == 0
    })
}

/// The value at an index of a layout of this shape whose strides no sum of digits can hide: powers
/// of a large base.
fn tagged(shape: &[i64], mut index: i64) -> i64 {
    let mut tag = 1;
    let mut sum = 0;
    for extent in shape {
        sum += index % extent * tag;
        index /= extent;
        tag *= 101;
    }
    sum
}

fn modes(layout: &Layout) -> Vec<(i64, i64)> {
    layout.leaves().iter().filter(|leaf| leaf.extent > 1).map(|leaf| (leaf.extent, leaf.stride)).collect()
}

#[test]
fn the_common_domain_is_linear_for_both_and_the_greatest() {
    let all: Vec<Vec<i64>> = shapes().into_values().flatten().filter(|shape| shape.len() <= 4).collect();
    let mut shared = 0;
    // All pairs of equal size, and a third of the others.
    for (number, a) in all.iter().enumerate() {
        for (other, b) in all.iter().enumerate() {
            let (size_a, size_b): (i64, i64) = (a.iter().product(), b.iter().product());
            if size_a != size_b && (number + other) % 3 != 0 {
                continue;
            }
            let g = greatest_common_domain(&tree(a), &tree(b)).unwrap();
            assert_eq!(g, greatest_common_domain(&tree(b), &tree(a)).unwrap());
            assert!(size_a % g.size() == 0 && size_b % g.size() == 0, "{a:?} {b:?} {g}");
            assert!(g.depth() <= 1);
            let values: Vec<i64> = (0..g.size()).map(|i| g.eval(&i).unwrap()).collect();
            assert!(values.is_sorted_by(|x, y| x < y), "{a:?} {b:?} {g}");
            for shape in [a, b] {
                // Linear: at every index the value is the sum over the modes of G.
                for (index, value) in values.iter().enumerate() {
                    let mut rest = index as i64;
                    let parts = modes(&g).into_iter().map(|(extent, stride)| {
                        let digit = rest % extent;
                        rest /= extent;
                        digit * tagged(shape, stride)
                    });
                    assert_eq!(parts.sum::<i64>(), tagged(shape, *value), "{a:?} {b:?} {g}");
                }
            }
            // Greatest: every digit that lies within one mode of both takes its values from G.
            let image: BTreeSet<i64> = values.into_iter().collect();
            let size = size_a.min(size_b);
            for e in 1..size {
                for extent in (2..=size / e).filter(|g| within_one_mode(a, *g, e) && within_one_mode(b, *g, e)) {
                    shared += 1;
                    assert!((0..extent).all(|c| image.contains(&(c * e))), "{a:?} {b:?} {g}: {extent}:{e}");
                }
            }
            assert!(modes(&g).iter().all(|(g, e)| within_one_mode(a, *g, *e) && within_one_mode(b, *g, *e)));
        }
    }
    assert!(shared > 10_000, "{shared}");
}

/// The definition by search: the largest product of divisors of the extents that divides `n`.
fn largest_share(a: &[i64], n: i64) -> i64 {
    let Some((extent, rest)) = a.split_first() else { return 1 };
    let parts = (1..=*extent).filter(|part| extent % part == 0 && n % part == 0);
    parts.map(|part| part * largest_share(rest, n / part)).max().unwrap()
}

#[test]
fn a_share_is_even_increasing_and_the_largest() {
    for a in shapes().into_values().flatten() {
        for n in 1..=64 {
            let r = domain_distribute(&tree(&a), &Tree::from(n)).unwrap();
            assert_eq!(r.size(), largest_share(&a, n), "{a:?} {n}");
            assert_eq!(n % r.size(), 0);
            let values: Vec<i64> = (0..r.size()).map(|i| r.eval(&i).unwrap()).collect();
            assert!(values.is_sorted_by(|x, y| x < y) && values[0] == 0);
            // Even: shifted by multiples of what is taken of each mode, the copies tile the domain.
            let mut taken = vec![1; a.len()];
            let image: BTreeSet<i64> = values.iter().copied().collect();
            let mut step = 1;
            for (part, extent) in taken.iter_mut().zip(&a) {
                *part = (1..=*extent).take_while(|c| image.contains(&((c - 1) * step))).count() as i64;
                assert_eq!(extent % *part, 0, "{a:?} {n} {r}");
                step *= extent;
            }
            assert_eq!(taken.iter().product::<i64>(), r.size(), "{a:?} {n} {r}");
            assert_eq!(r, r.coalesce().unwrap());
        }
    }
    let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
    let share = |a: &str, b: &str| domain_distribute(&shape(a), &shape(b)).unwrap().to_string();
    assert_eq!(share("((15,1),14)", "(3,2)"), "(3,2):(1,15)");
    assert_eq!(share("(4,6)", "8"), "8:1");
    assert!(domain_distribute(&tree(&[4]), &Tree::from(0)).is_err());
}

/// At every index: what a mode counts is the sum of what the digits count that are parts of it.
#[test]
fn common_digits_are_parts_of_the_modes() {
    let lists: [&[i64]; 6] = [&[24], &[4, 6], &[2, 2, 6], &[2, 1, 12], &[6, 4], &[3, 2, 2, 2]];
    let mut found = [0; 2];
    for (a, b) in lists.iter().flat_map(|a| lists.iter().map(move |b| (*a, *b))) {
        let mut walk = CommonDigits::new([a, b]);
        let digits: Vec<Digit<2>> = walk.by_ref().collect();
        let ends = |list: &[i64]| {
            list.iter()
                .scan(1, |end, extent| {
                    *end *= extent;
                    Some(*end)
                })
                .collect::<Vec<i64>>()
        };
        let mut all = [ends(a), ends(b)].concat();
        all.sort_unstable();
        assert_eq!(walk.is_complete(), all.windows(2).all(|pair| pair[1] % pair[0] == 0), "{a:?} {b:?}");
        found[usize::from(walk.is_complete())] += 1;
        if !walk.is_complete() {
            continue;
        }
        for index in 0..24 {
            for (number, list) in [a, b].into_iter().enumerate() {
                let mut counted = vec![0; list.len()];
                let mut rest = index;
                for digit in &digits {
                    let (mode, below) = digit.parts[number];
                    counted[mode] += rest % digit.extent * below;
                    rest /= digit.extent;
                }
                let mut rest = index;
                for (extent, counted) in list.iter().zip(counted) {
                    assert_eq!(counted, rest % extent, "{a:?} {b:?} at {index}");
                    rest /= extent;
                }
            }
        }
    }
    assert!(found.iter().all(|count| *count > 5), "{found:?}");
}

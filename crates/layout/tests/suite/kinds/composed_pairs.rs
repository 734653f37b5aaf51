//! Composed layouts side by side, division and product by them, coordinates as indices, and
//! questions about all values: each against a walk over the indices.

use std::collections::BTreeSet;

use tilewright_layout::{Composed, Coordinate, DivideForm, Layout, LayoutError, OuterMap, Tree};

use crate::kinds::composed_values::values;
use crate::random::Random;

fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as i64) as usize]
}

const EVEN: [&str; 7] = ["(4,4):(4,1)", "8:1", "(2,4):(8,1)", "4:2", "(2,2,2):(1,2,4)", "(4,2):(1,4)", "4:1"];
const ODD: [&str; 7] = ["3:1", "(3,4):(4,1)", "(2,3):(3,1)", "5:2", "(3,2):(1,3)", "(2,3):(-1,4)", "6:1"];
const BITS: [&str; 7] = ["S<0,0,0>", "S<1,0,1>", "S<1,0,2>", "S<2,0,2>", "S<2,0,-2>", "F2<3>[1,3,4]", "S<1,1,1>"];
const LINES: [&str; 5] = ["64:3", "(4,64):(16,1)", "(2,2,64):(2,1,4)", "(3,64):(64,1)", "16:1"];

/// A layout seen through a map or two, of extents that are powers of two, or of any.
fn any(random: &mut Random, even: bool) -> Composed {
    let inners = if even || random.below(2) == 0 { &EVEN } else { &ODD };
    let inner: Layout = pick(random, inners).parse().unwrap();
    let mut outer: OuterMap = pick(random, &BITS).parse().unwrap();
    match random.below(4) {
        0 => outer = pick(random, &LINES).parse::<OuterMap>().unwrap().after(&random.below(3), &outer).unwrap(),
        1 => outer = outer.after(&0, &pick(random, &LINES).parse().unwrap()).unwrap(),
        _ => {}
    }
    let offset = [0, 0, 0, 1, 4][random.below(5) as usize];
    Composed::new(outer, offset, inner).unwrap()
}

#[test]
fn side_by_side_values_add_up() {
    let mut random = Random(5);
    let (mut found, mut refused, mut split) = (0, 0, 0);
    for round in 0..6_000 {
        let (x, y) = (any(&mut random, round % 2 == 0), any(&mut random, round % 4 < 2));
        let is_layout = x.to_layout().is_ok() || y.to_layout().is_ok();
        match x.beside(&y) {
            Ok(both) => {
                found += 1;
                let sums: Vec<i64> =
                    values(&y).iter().flat_map(|y| values(&x).into_iter().map(move |x| x + y)).collect();
                assert_eq!(values(&both), sums, "{x} beside {y}: {both}");
                assert_eq!(both.rank(), 2);
                let part = |mode: usize| both.mode(mode).unwrap().shape();
                assert!(x.shape().compatible(&part(0)).proved() && y.shape().compatible(&part(1)).proved(), "{both}");
                split += i32::from(x.shape() != part(0) || y.shape() != part(1));
            }
            Err(error) => {
                refused += 1;
                // A layout beside any map whose numbers stay at or above 0 is never refused.
                assert!(
                    !is_layout || values(&x).iter().chain(&values(&y)).any(|value| *value < 0),
                    "{x} beside {y}: {error}"
                );
                assert!(matches!(error, LayoutError::NotLinear { .. } | LayoutError::Undecided { .. }), "{error}");
            }
        }
    }
    println!("{found} pairs side by side, {refused} refused, {split} with a number split into modes");
    assert!(found > 5_000 && split < found / 20, "{found} {split}");
}

#[test]
fn sums_of_maps() {
    let mut random = Random(4);
    let (mut done, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let (a, b) = (any(&mut random, true), any(&mut random, true));
        match a.add(&b) {
            Ok(sum) => {
                done += 1;
                let sums: Vec<i64> = values(&a).iter().zip(values(&b)).map(|(a, b)| a + b).collect();
                assert_eq!(values(&sum), sums, "{a} + {b}");
            }
            Err(LayoutError::Size { left, right, .. }) => {
                assert!(left != right && a.size() == left && b.size() == right)
            }
            Err(error) => {
                refused += 1;
                assert!(
                    matches!(error, LayoutError::Undecided { .. } | LayoutError::NotLinear { .. }),
                    "{a} + {b}: {error}"
                );
            }
        }
    }
    println!("{done} sums, {refused} refused");
    assert!(done > 500, "{done}");
}

#[test]
fn divisions_by_composed_tiles_lose_nothing() {
    let mut random = Random(6);
    let (mut done, mut refused) = (0, 0);
    for round in 0..3_000 {
        let even = round % 2 == 0;
        let (whole, tile) = (any(&mut random, even), any(&mut random, even));
        let Ok(rest) = tile.complement(&whole.size()) else {
            assert!(whole.logical_divide_composed(&tile).is_err());
            continue;
        };
        let divided = match whole.logical_divide_composed(&tile) {
            Ok(divided) => divided,
            Err(error) => {
                assert!(
                    matches!(error, LayoutError::Undecided { .. } | LayoutError::NotLinear { .. }),
                    "{whole} by {tile}: {error}"
                );
                refused += 1;
                continue;
            }
        };
        done += 1;
        let at = |index: i64| whole.map().unwrap().eval(&index).unwrap();
        let indices: Vec<i64> = (0..rest.size())
            .flat_map(|r| values(&tile).into_iter().map(move |t| (t, r)))
            .map(|(t, r)| t + rest.eval(&r).unwrap())
            .collect();
        assert_eq!(values(&divided), indices.iter().map(|index| at(*index)).collect::<Vec<_>>(), "{whole} by {tile}");
        // Every index, each once but for repetitions within the tile.
        let all: BTreeSet<i64> = indices.iter().copied().collect();
        assert!((0..whole.size()).all(|index| all.contains(&index)), "{whole} by {tile}");
        for form in DivideForm::ALL {
            assert_eq!(values(&whole.divide_composed(form, &tile).unwrap()), values(&divided));
        }
        let tiled = whole.divide_composed(DivideForm::Tiled, &tile).unwrap();
        assert_eq!(tiled.mode(0).unwrap().size(), tile.size());
    }
    println!("{done} divisions, {refused} refused");
    assert!(done > 1_000 && refused < 10, "{done} {refused}");
}

#[test]
fn products_by_composed_arrangements_are_disjoint_copies() {
    let mut random = Random(7);
    let (mut done, mut refused) = (0, 0);
    for round in 0..3_000 {
        let (block, by) = (any(&mut random, round % 2 == 0), any(&mut random, round % 3 == 0));
        let inner = block.inner().clone();
        let product = match block.logical_product_composed(&by) {
            Ok(product) => product,
            Err(error) => {
                assert!(
                    matches!(error, LayoutError::Undecided { .. } | LayoutError::NotLinear { .. }),
                    "{block} by {by}: {error}"
                );
                refused += 1;
                continue;
            }
        };
        done += 1;
        let copies = inner.weak_complement_open().unwrap();
        // By definition: the block's inner layout, moved to where each copy lies, through its outer
        // map.
        let mut expected = Vec::new();
        for place in values(&by) {
            let begin = copies.eval(&place).unwrap();
            for index in 0..inner.size() {
                expected.push(block.outer().eval(&(block.offset() + begin + inner.eval(&index).unwrap())).unwrap());
            }
        }
        assert_eq!(values(&product), expected, "{block} by {by}");
        for form in DivideForm::ALL {
            assert_eq!(values(&block.product_composed(form, &by).unwrap()), expected, "{block} by {by}");
        }
        let blocked = block.blocked_product_composed(&by).unwrap();
        let raked = block.raked_product_composed(&by).unwrap();
        let sorted = |map: &Composed| {
            let mut all = values(map);
            all.sort_unstable();
            all
        };
        let mut all = expected.clone();
        all.sort_unstable();
        assert_eq!((sorted(&blocked), sorted(&raked)), (all.clone(), all));
        assert_eq!((blocked.rank(), raked.rank()), (block.rank().max(by.rank()), block.rank().max(by.rank())));
        for mode in 0..block.rank().min(by.rank()) {
            let size = |map: &Composed| map.mode(mode).unwrap().size();
            assert_eq!(size(&blocked), size(&block) * size(&by), "{block} by {by}: {blocked}");
        }
    }
    println!("{done} products, {refused} refused");
    assert!(done > 2_900 && refused < 60, "{done} {refused}");
}

#[test]
fn coordinates_become_indices() {
    const OUTERS: [&str; 7] = [
        "(4,5):(5,1)",
        "((2,2),5):((8,1),16)",
        "(3,(2,4)):(8,(1,2))",
        "(4,8):(1,4)",
        "16:3",
        "S<1,0,2>",
        "S<2,0,3> o 3 o (4,8):(8,1)",
    ];
    let mut random = Random(8);
    let (mut done, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let outer = pick(&mut random, &OUTERS);
        let number = |random: &mut Random| random.below(3) - i64::from(random.below(8) == 0);
        let single = matches!(outer, "16:3" | "S<1,0,2>");
        let paths: &[&str] = match outer {
            _ if single => &[""],
            "((2,2),5):((8,1),16)" => &["@0", "@1", "@0@0", "@1@0"],
            "(3,(2,4)):(8,(1,2))" => &["@0", "@1", "@0@1", "@1@1"],
            _ => &["@0", "@1"],
        };
        let extents: Vec<i64> = (0..2).map(|_| random.below(4) + 1).collect();
        let steps: Vec<String> =
            (0..2).map(|_| format!("{}{}", number(&mut random), pick(&mut random, paths))).collect();
        let offset = if single { "1" } else { pick(&mut random, &["(0,0)", "(1,2)", "(0,3)", "(2,1)"]) };
        let text = format!("{outer} o {offset} o ({},{}):({},{})", extents[0], extents[1], steps[0], steps[1]);
        let Ok(map) = text.parse::<Composed<Coordinate>>() else { continue };
        let all: Result<Vec<i64>, _> = (0..map.size()).map(|index| map.eval(&index)).collect();
        match map.by_index() {
            Ok(numbers) => {
                done += 1;
                assert_eq!(Ok(values(&numbers)), all, "{text}: {numbers}");
                assert!(map.shape().compatible(&numbers.shape()).proved());
            }
            Err(error) => {
                refused += 1;
                assert!(
                    matches!(
                        error,
                        LayoutError::OutOfDomain { .. } | LayoutError::Mixed(_) | LayoutError::NoPath { .. }
                    ),
                    "{text}: {error}"
                );
            }
        }
    }
    println!("{done} maps by index, {refused} refused");
    assert!(done > 2_000 && refused < done / 4, "{done} {refused}");
}

#[test]
fn products_of_coordinates_are_seen_through_the_same_map() {
    let window: Composed<Coordinate> = "(8,8):(1,8) o (1,0) o (2,2):(1@0,1@1)".parse().unwrap();
    let product = window.blocked_product(&"(2,3):(2@0,1@1)".parse::<Layout<Coordinate>>().unwrap()).unwrap();
    let block = window.inner().blocked_product(&"(2,3):(2@0,1@1)".parse::<Layout<Coordinate>>().unwrap()).unwrap();
    assert_eq!(product.inner(), &block);
    let target: Tree<i64> = "(4,6)".parse().unwrap();
    let covered = window.tile_to_shape(&target, None).unwrap();
    assert_eq!(covered.inner(), &window.inner().tile_to_shape(&target, None).unwrap());
    assert_eq!(covered.outer(), window.outer());
}

#[test]
fn questions_about_all_values() {
    let mut random = Random(9);
    let mut yes = [0; 4];
    for round in 0..6_000 {
        let map = any(&mut random, round % 2 == 0);
        let all = values(&map);
        let set: BTreeSet<i64> = all.iter().copied().collect();
        let (least, most) = (*set.first().unwrap(), *set.last().unwrap());
        let whole = most - least + 1 == set.len() as i64;
        let surjective = whole && least == 0;
        let expected =
            [surjective, surjective && set.len() == all.len(), whole, all.windows(2).all(|pair| pair[0] < pair[1])];
        let answers = [
            map.is_surjective().unwrap(),
            map.is_bijective().unwrap(),
            map.is_contiguous().unwrap(),
            map.is_ordered().unwrap(),
        ];
        assert_eq!(answers, expected, "{map}: {all:?}");
        assert_eq!(map.is_compact().unwrap(), expected[1]);
        for (count, answer) in yes.iter_mut().zip(answers) {
            *count += i32::from(answer);
        }
    }
    assert!(yes.iter().all(|count| (200..5_800).contains(count)), "{yes:?}");
}

//! XOR layouts among maps of numbers: as composed layouts, after them and before them, against the
//! values at every index.

use crate::random::Random;
use tilewright_layout::{Composed, Layout, LayoutError, OuterMap, Xor};

fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as i64) as usize]
}

fn xor(random: &mut Random, even: bool) -> Layout<Xor> {
    let rank = random.below(3) + 1;
    let extent = |random: &mut Random| if even { [1, 2, 4, 8][random.below(4) as usize] } else { random.below(6) + 1 };
    let extents: Vec<String> = (0..rank).map(|_| extent(random).to_string()).collect();
    let strides: Vec<String> = (0..rank).map(|_| format!("^{}", random.below(20))).collect();
    format!("({}):({})", extents.join(","), strides.join(",")).parse().unwrap()
}

fn map(random: &mut Random) -> Composed {
    const OUTERS: [&str; 6] = ["S<0,0,0>", "S<1,0,1>", "S<2,0,2>", "F2<3>[1,3,4]", "(4,64):(16,1)", "64:3"];
    const INNERS: [&str; 7] =
        ["(4,4):(4,1)", "8:1", "(2,4):(8,1)", "(3,4):(4,1)", "5:2", "(2,3):(-1,4)", "(2,2,3):(1,2,4)"];
    let outer: OuterMap = pick(random, &OUTERS).parse().unwrap();
    Composed::new(outer, [0, 0, 1][random.below(3) as usize], pick(random, &INNERS).parse().unwrap()).unwrap()
}

fn vectors(layout: &Layout<Xor>) -> Vec<u64> {
    (0..layout.size()).map(|index| layout.eval(&index).unwrap().bits()).collect()
}

fn values(map: &Composed) -> Vec<i64> {
    (0..map.size()).map(|index| map.eval(&index).unwrap()).collect()
}

#[test]
fn every_xor_layout_is_a_composed_layout() {
    let mut random = Random(31);
    for round in 0..4_000 {
        let layout = xor(&mut random, round % 2 == 0);
        let map = layout.composed().unwrap();
        assert_eq!(
            values(&map).iter().map(|value| *value as u64).collect::<Vec<_>>(),
            vectors(&layout),
            "{layout}: {map}"
        );
        assert!(layout.shape().compatible(&map.shape()).proved(), "{layout}: {map}");
        // And back.
        let back = map.to_xor().unwrap();
        assert_eq!(vectors(&back), vectors(&layout), "{layout}: {back}");
        assert!(layout.shape().compatible(&back.shape()).proved(), "{layout}: {back}");
    }
    // Of any size.
    let large: Layout<Xor> = "(1048576,3,1048576):(^3,^5,^1048583)".parse().unwrap();
    let map = large.composed().unwrap();
    for index in [0, 1, 77_777, 1 << 22, (1 << 41) + 12_345] {
        assert_eq!(map.eval(&index).unwrap() as u64, large.eval(&index).unwrap().bits());
    }
}

#[test]
fn xor_layouts_after_maps() {
    let mut random = Random(32);
    let mut done = 0;
    for round in 0..4_000 {
        let (outer, inner) = (xor(&mut random, round % 3 > 0), map(&mut random));
        let all = values(&inner);
        match inner.then_xor(&outer) {
            Ok(both) => {
                done += 1;
                let expected: Vec<i64> = all.iter().map(|value| outer.eval(value).unwrap().bits() as i64).collect();
                assert_eq!(values(&both), expected, "{outer} o {inner}: {both}");
            }
            Err(error) => {
                assert!(all.iter().any(|value| *value < 0), "{outer} o {inner}: {error}");
                assert!(matches!(error, LayoutError::Argument { .. }), "{error}");
            }
        }
    }
    assert!(done > 3_000, "{done}");
}

#[test]
fn maps_and_xor_layouts_after_xor_layouts() {
    let mut random = Random(33);
    for round in 0..4_000 {
        let inner = xor(&mut random, round % 2 == 0);
        let numbers = inner.composed().unwrap();
        let all = vectors(&inner);
        let outer = map(&mut random);
        let both = outer.compose_composed(&numbers).unwrap();
        let expected: Vec<i64> = all.iter().map(|value| outer.map().unwrap().eval(&(*value as i64)).unwrap()).collect();
        assert_eq!(values(&both), expected, "{outer} o {inner}");
        let outer = xor(&mut random, round % 4 < 2);
        let both = numbers.then_xor(&outer).unwrap();
        let expected: Vec<i64> = all.iter().map(|value| outer.eval(&(*value as i64)).unwrap().bits() as i64).collect();
        assert_eq!(values(&both), expected, "{outer} o {inner}");
        if inner.bit_matrix().is_ok() && outer.bit_matrix().is_ok() {
            // Powers of two: again a layout with XOR strides.
            assert!(both.to_xor().is_ok(), "{outer} o {inner}: {both}");
        }
    }
}

#[test]
fn xor_strides_are_found_exactly_where_they_exist() {
    /// Whether some modes have these values: every first extent is tried.
    fn exists(h: &[i64]) -> bool {
        let n = h.len();
        let steps = |i: usize| (0..16).filter(|bit| i >> bit & 1 == 1).fold(0, |sum, bit| sum ^ h[1] << bit);
        h[0] == 0
            && (n == 1
                || (2..=n).any(|t| {
                    n.is_multiple_of(t)
                        && (0..n).all(|i| h[i] == steps(i % t) ^ h[i - i % t])
                        && exists(&h.iter().copied().step_by(t).collect::<Vec<_>>())
                }))
    }
    let mut random = Random(34);
    let (mut found, mut none) = (0, 0);
    for _ in 0..4_000 {
        let map = map(&mut random);
        let all = values(&map);
        if all.iter().any(|value| *value < 0) {
            continue;
        }
        // A function of the index; and it adds up over the modes of the domain.
        let mut begin = 1;
        let mut parts = Vec::new();
        for extent in map.shape().leaves() {
            parts.push((0..*extent).map(|i| all[(i * begin) as usize]).collect::<Vec<_>>());
            begin *= extent;
        }
        let adds_up = all.iter().enumerate().all(|(index, value)| {
            let mut rest = index;
            let sum = parts.iter().fold(0, |sum, part| {
                let digit = rest % part.len();
                rest /= part.len();
                sum ^ part[digit]
            });
            sum == *value
        });
        let expected = adds_up && parts.iter().all(|part| exists(part));
        match map.to_xor() {
            Ok(layout) => {
                found += 1;
                assert_eq!(vectors(&layout).iter().map(|value| *value as i64).collect::<Vec<_>>(), all, "{map}");
            }
            Err(error) => {
                none += 1;
                assert!(!expected, "{map}: {error}");
            }
        }
    }
    assert!(found > 500 && none > 500, "{found} {none}");
}

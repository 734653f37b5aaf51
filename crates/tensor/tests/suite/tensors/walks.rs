//! Walks: offsets and elements in the order of the indices, from either end, in steps of any kind,
//! against what the layout says of each index.

use std::collections::VecDeque;

use tilewright_layout::{BitMatrix, Composed, Layout, Leaf, OuterMap, Profile, StaticLayout, Swizzle, Tree, Xor};
use tilewright_tensor::{AnyOffsets, CoordinateTensor, Offsets, TensorView, TensorViewMut, Zipped};

#[allow(dead_code)]
use crate::kernels::random::Random;

impl Random {
    fn within(&mut self, least: i64, most: i64) -> i64 {
        least + self.below((most - least + 1) as u64) as i64
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Takes from an iterator in random steps, and holds it against what it should have.
fn step<I>(walk: I, expected: &[i64], random: &mut Random, what: &str)
where
    I: DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone,
{
    let (mut walk, mut left) = (walk, expected.iter().copied().collect::<VecDeque<i64>>());
    // Much of one kind, so that runs end in many ways.
    let kind = random.below(6);
    for _ in 0..random.below(60) {
        assert_eq!((walk.len(), walk.size_hint()), (left.len(), (left.len(), Some(left.len()))), "{what}");
        match if random.one_in(3) { random.below(6) } else { kind } {
            0 | 1 => assert_eq!(walk.next(), left.pop_front(), "{what}"),
            2 => assert_eq!(walk.next_back(), left.pop_back(), "{what}"),
            3 => {
                let count =
                    if random.one_in(4) { random.below(2 * expected.len() as u64 + 2) } else { random.below(70) };
                let kept = left.split_off((count as usize).min(left.len()));
                left = kept;
                assert_eq!(walk.nth(count as usize), left.pop_front(), "{what}: nth {count}");
            }
            4 => {
                let count = random.below(9) as usize;
                left.truncate(left.len().saturating_sub(count));
                assert_eq!(walk.nth_back(count), left.pop_back(), "{what}: nth_back {count}");
            }
            _ => {
                // A clone has the rest, and is not touched by what is done to the other.
                let clone = walk.clone();
                assert!(walk.eq(left.iter().copied()), "{what}: by steps");
                walk = clone;
            }
        }
    }
    match random.below(6) {
        0 => {
            let mut rest = Vec::new();
            walk.for_each(|offset| rest.push(offset));
            assert!(left == rest, "{what}: folded {rest:?}, not {left:?}");
        }
        1 => assert_eq!(
            walk.rev().collect::<Vec<i64>>(),
            left.into_iter().rev().collect::<Vec<i64>>(),
            "{what}: reversed"
        ),
        2 => assert_eq!(walk.count(), left.len(), "{what}"),
        3 => assert_eq!(walk.last(), left.pop_back(), "{what}"),
        4 => assert!(left == walk.collect::<Vec<i64>>(), "{what}: collected"),
        _ => {
            while let Some(offset) = left.pop_front() {
                assert_eq!(walk.next(), Some(offset), "{what}");
            }
            let nothing = [walk.next(), walk.next_back(), walk.nth(1), walk.next()];
            assert_eq!((nothing, walk.len()), ([None; 4], 0), "{what}");
            assert_eq!(walk.fold(0, |count, _| count + 1), 0, "{what}: after the end");
        }
    }
}

/// The laws of the walks over a layout.
fn check<L: Offsets>(layout: &L, random: &mut Random) {
    let what = format!("{layout}");
    let expected: Vec<i64> = (0..layout.size()).map(|index| layout.offset(index).unwrap()).collect();
    assert_eq!(layout.walk().collect::<Vec<i64>>(), expected, "{what}");
    assert_eq!(layout.walk().fold(0, |count, _| count + 1), expected.len(), "{what}");
    for _ in 0..6 {
        step(layout.walk(), &expected, random, &what);
    }
    // The element at an offset is the offset.
    let (least, greatest) = layout.range().unwrap();
    let (least, greatest) = (least.min(0), greatest.max(0));
    let origin = least.unsigned_abs() as usize;
    let mut memory: Vec<i64> = (least..=greatest).collect();
    let view = TensorView::with_origin(&memory, origin, layout.clone()).unwrap();
    assert_eq!(view.to_vec(), expected, "{what}");
    let mut elements = Vec::new();
    view.for_each(|element| elements.push(*element));
    assert_eq!(elements, expected, "{what}");
    for _ in 0..6 {
        step(view.iter().copied(), &expected, random, &what);
    }
    // From each index on, where there are few.
    for index in (0..=expected.len()).step_by(1 + expected.len() / 64) {
        let (before, after) = expected.split_at(index);
        let mut walk = view.iter();
        assert!(walk.by_ref().take(index).eq(before), "{what}");
        assert_eq!(walk.len(), after.len());
        let mut from_the_back = walk.clone();
        assert_eq!(
            walk.fold(Vec::new(), |rest, element| [rest, vec![*element]].concat()),
            after,
            "{what} from {index}"
        );
        assert!(
            (0..after.len()).all(|place| from_the_back.next_back() == after.iter().nth_back(place)),
            "{what} from {index}"
        );
        let mut walk = view.iter();
        assert_eq!(walk.nth(index).copied(), after.first().copied(), "{what} at {index}");
        assert!(walk.eq(after.iter().skip(1)), "{what} after {index}");
    }
    if layout.injective() != Ok(true) {
        return;
    }
    // Each element is had once, to be written.
    let mut numbers = memory.clone();
    let mut view = TensorViewMut::with_origin(&mut memory, origin, layout.clone()).unwrap();
    let mut other = TensorViewMut::with_origin(&mut numbers, origin, layout.clone()).unwrap();
    let mut walk = other.iter_mut();
    let few = random.below(expected.len() as u64 + 1) as usize;
    let (mut front, mut back) = (Vec::new(), Vec::new());
    front.extend(walk.by_ref().take(few));
    while walk.len() > 10 {
        back.extend(walk.next_back());
        front.extend(walk.nth(2));
    }
    front.extend(walk);
    for element in front.into_iter().chain(back) {
        *element += 1_000_000;
    }
    view.for_each_mut(|element| *element += 1_000_000);
    let mut zip = Zipped::new((view.view(), other.view_mut())).unwrap();
    let (mut places, mut skipped) = (expected.iter(), 0);
    zip.for_each(|(element, other)| {
        let wanted = places.next().unwrap() + 1_000_000;
        assert_eq!(*element, wanted, "{what}");
        skipped += usize::from(*other != wanted);
        *other = wanted;
    });
    // What `nth` passes over is had by nobody.
    assert!(places.next().is_none() && skipped <= 2 * expected.len() / 4 + 2, "{what}: {skipped}");
    let reached: std::collections::HashSet<i64> = expected.into_iter().collect();
    for (element, offset) in memory.iter().zip(least..) {
        assert_eq!(*element - offset, if reached.contains(&offset) { 1_000_000 } else { 0 }, "{what}");
    }
}

/// Extents of a product below a bound, many of them short.
fn extents(random: &mut Random, powers: bool) -> Vec<i64> {
    let (mut size, mut extents) = (1, Vec::new());
    for _ in 0..random.within(1, 6) {
        let extent = match random.below(4) {
            0 => random.of(&[1, 2, 3, 4]),
            1 => random.of(&[2, 4, 8, 16]),
            2 => random.within(1, 40),
            _ => random.of(&[5, 64, 100, 128, 257, 300, 512, 700, 1000]),
        };
        let extent = if powers { 1 << i64::ilog2(extent) } else { extent };
        if size * extent <= 4000 {
            size *= extent;
            extents.push(extent);
        }
    }
    extents.extend(if extents.is_empty() { Some(3) } else { None });
    extents
}

/// Strides that keep elements apart, in a random order of the modes, some backwards; or any.
fn strides(random: &mut Random, extents: &[i64], powers: bool) -> Vec<i64> {
    let mut left: Vec<usize> = (0..extents.len()).collect();
    let mut strides = vec![0; extents.len()];
    let any = !powers && random.one_in(4);
    let backwards = random.one_in(3);
    let mut step: i64 = if powers { 1 } else { random.within(1, 3) };
    while !left.is_empty() {
        let mode =
            if random.one_in(2) { left.remove(0) } else { left.remove(random.below(left.len() as u64) as usize) };
        let sign = if backwards && random.one_in(2) { -1 } else { 1 };
        strides[mode] = if any { random.within(-9, 9) } else { step * sign };
        step *= extents[mode];
        if powers {
            step = (step as u64).next_power_of_two() as i64;
        } else if random.one_in(3) {
            step += random.within(0, 3);
        }
    }
    strides
}

/// A layout of these modes, some of them nested.
fn nested<D: Clone>(random: &mut Random, modes: Vec<D>) -> Tree<D> {
    let rank = modes.len();
    if rank < 3 || random.one_in(2) {
        return Tree::flat(modes).unwrap();
    }
    let profile: Profile = format!("({},({}))", "*,".repeat(rank - 2).trim_end_matches(','), "*,*").parse().unwrap();
    Tree::new(profile, modes).unwrap()
}

fn integer(random: &mut Random, powers: bool) -> Layout {
    let whole = powers && random.one_in(2);
    let extents = extents(random, whole);
    let strides = strides(random, &extents, powers);
    let leaves = extents.iter().zip(strides).map(|(extent, stride)| Leaf { extent: *extent, stride }).collect();
    Layout::from_tree(nested(random, leaves)).unwrap()
}

fn swizzle(random: &mut Random) -> Swizzle {
    let bits = random.within(0, 4);
    let shift = random.within(bits, bits + 3) * if random.one_in(3) { -1 } else { 1 };
    Swizzle::new(bits, random.within(0, 4), shift).unwrap()
}

fn map(random: &mut Random) -> OuterMap {
    let columns =
        |random: &mut Random, count: usize| -> Vec<u64> { (0..count).map(|_| random.below(1 << 14)).collect() };
    match random.below(8) {
        0..4 => swizzle(random).into(),
        4 => BitMatrix::new(20, columns(random, 20)).unwrap().into(),
        5 => BitMatrix::new(14, columns(random, 22)).unwrap().into(),
        6 => integer(random, false).into(),
        _ => {
            let last = swizzle(random);
            OuterMap::from(last).after(&random.within(0, 9), &OuterMap::from(swizzle(random))).unwrap()
        }
    }
}

#[test]
fn walks_over_layouts() {
    let mut random = Random(0x7a11);
    for _ in 0..400 {
        let powers = random.one_in(3);
        check(&integer(&mut random, powers), &mut random);
    }
    for text in [
        "1:0",
        "():()",
        "(1,1):(5,7)",
        "7:0",
        "(3,2):(0,0)",
        "4000:-1",
        "(2,2000):(5000,1)",
        "((2,2),(3,1,4)):((6,3),(1,9,12))",
    ] {
        let layout = text.parse::<Layout>().unwrap();
        check(&layout, &mut random);
        check(&AnyOffsets::Plain(layout), &mut random);
    }
    const LEAVES: &[Leaf; 2] = &[Leaf { extent: 3, stride: 40 }, Leaf { extent: 40, stride: 1 }];
    check(&StaticLayout::new(LEAVES, &[0, 1], &[3, 0, 0]).unwrap(), &mut random);
}

#[test]
fn walks_through_maps() {
    let mut random = Random(0x5317);
    let mut done = 0;
    for _ in 0..900 {
        let (map, powers) = (map(&mut random), random.below(3) > 0);
        let inner = integer(&mut random, powers);
        let least = inner.range().unwrap().0;
        // Mostly what keeps the bits of modes apart; sometimes below zero.
        let offset = match random.below(4) {
            0 => -least + random.within(0, 40),
            1 => random.within(-20, 20),
            2 => -least + (random.within(0, 3) << 12),
            _ => -least,
        };
        let Ok(composed) = Composed::new(map, offset, inner) else { continue };
        if Offsets::range(&composed).is_ok_and(|(least, greatest)| least > -200_000 && greatest < 200_000) {
            done += 1;
            check(&composed, &mut random);
        }
    }
    assert!(done > 600, "{done}");
    for text in [
        "S<3,3,3> o 0 o (64,8):(8,1)",
        "S<2,3,3> o 0 o (1024,3):(1,1024)",
        "S<1,0,1> o 0 o 2:1",
        "S<0,0,0> o 5 o ():()",
    ] {
        let composed = text.parse::<Composed>().unwrap();
        check(&composed, &mut random);
        check(&AnyOffsets::Mapped(Box::new(composed)), &mut random);
    }
}

#[test]
fn walks_of_xor_strides() {
    let mut random = Random(0xb175);
    for _ in 0..200 {
        let extents = extents(&mut random, false);
        let stride = |random: &mut Random| {
            Xor::new(if random.one_in(3) { 1 << random.below(12) } else { random.below(1 << 10) }).unwrap()
        };
        let leaves = extents.iter().map(|extent| Leaf { extent: *extent, stride: stride(&mut random) }).collect();
        check(&Layout::<Xor>::from_tree(nested(&mut random, leaves)).unwrap(), &mut random);
    }
    // An index of more bits than a number has: 35 modes of extent 3 take 70.
    let leaves = (0..35).map(|mode| Leaf { extent: 3, stride: Xor::new(1 << (mode % 20)).unwrap() });
    let layout = Layout::<Xor>::from_tree(Tree::flat(leaves).unwrap()).unwrap();
    assert!(layout.derived().is_err());
    let (size, mut walk) = (layout.size(), layout.walk());
    assert_eq!(walk.len() as i64, size);
    for index in 0..1000 {
        assert_eq!(walk.next(), layout.offset(index).ok());
        assert_eq!(walk.next_back(), layout.offset(size - 1 - index).ok());
    }
    assert_eq!(walk.nth(1_000_000_007), layout.offset(1_000_001_007).ok());
    assert_eq!(walk.next(), layout.offset(1_000_001_008).ok());
}

#[test]
fn walks_longer_than_anyone_waits() {
    let layout: Layout = "(1048576,1048576,1048576):(0,3,-1)".parse().unwrap();
    let (mut walk, size) = (layout.walk(), layout.size());
    assert_eq!(walk.nth(size as usize - 3), layout.offset(size - 3).ok());
    assert_eq!(
        (walk.next_back(), walk.next(), walk.next(), walk.next_back()),
        (Some(3 * 1_048_575 - 1_048_575), Some(3 * 1_048_575 - 1_048_575), None, None)
    );
    let mut walk = layout.walk();
    assert_eq!((walk.next_back(), walk.nth(1 << 45)), (Some(2 * 1_048_575), layout.offset(1 << 45).ok()));
    assert_eq!(walk.len() as i64, size - 2 - (1 << 45));
}

#[test]
fn walks_of_coordinates() {
    let mut random = Random(0xc00d);
    for _ in 0..40 {
        let extents = extents(&mut random, false);
        let coordinates = CoordinateTensor::identity(&nested(&mut random, extents)).unwrap();
        let mut index = 0;
        coordinates.iter().for_each(|coord| {
            assert_eq!(Ok(coord), coordinates.get(index));
            index += 1;
        });
        assert_eq!(index, coordinates.size());
    }
}

//! Composed layouts of power-of-two extents: nothing about them is refused, and everything agrees
//! with a walk over the indices.

use tilewright_layout::{BitMatrix, Composed, Layout, LayoutError, OuterMap, Swizzle, Tree};

use crate::kinds::composed_values::{assert_sends_back, composed, image, reached, values};
use crate::random::Random;

/// A layout whose offsets are sums without carries: every bit of the index goes to a bit of its
/// own, some nowhere.
fn bit_layout(random: &mut Random, bits: usize, outputs: usize) -> Layout {
    let mut free: Vec<i64> = (0..outputs as i64).collect();
    let mut leaves = Vec::new();
    let mut left = bits;
    while left > 0 {
        let log = 1 + random.below(left.min(3) as i64) as usize;
        left -= log;
        // A run of bits, or bits here and there in leaves of their own.
        let start = free.iter().position(|bit| (0..log as i64).all(|k| free.contains(&(bit + k))));
        match start.filter(|_| random.below(6) > 0) {
            Some(_) => {
                let starts: Vec<i64> =
                    free.iter().copied().filter(|bit| (0..log as i64).all(|k| free.contains(&(bit + k)))).collect();
                let bit = starts[random.below(starts.len() as i64) as usize];
                free.retain(|used| !(bit..bit + log as i64).contains(used));
                leaves.push((1_i64 << log, 1_i64 << bit));
            }
            None => leaves.push((1 << log, 0)),
        }
    }
    let (shape, stride): (Vec<i64>, Vec<i64>) = leaves.into_iter().unzip();
    Layout::new(&Tree::flat(shape).unwrap(), &Tree::flat(stride).unwrap()).unwrap()
}

fn swizzle(random: &mut Random) -> Swizzle {
    loop {
        let (b, m, s) = (random.below(4), random.below(4), random.below(13) - 6);
        if let Ok(swizzle) = Swizzle::new(b, m, s) {
            return swizzle;
        }
    }
}

/// A swizzled layout of power-of-two extents with an offset in bits that the layout leaves free.
fn swizzled(random: &mut Random) -> Composed {
    let bits = random.below(8) as usize;
    let inner = bit_layout(random, bits, 9);
    let used = (0..inner.size()).fold(0, |all, i| all | inner.eval(&i).unwrap());
    let offset = random.below(1 << 10) & !used & -random.below(2);
    let outer = match random.below(4) {
        0 => OuterMap::from(swizzle(random)).after(&0, &OuterMap::from(swizzle(random))).unwrap(),
        1 => OuterMap::from(swizzle(random)).after(&(random.below(4) << 10), &OuterMap::from(swizzle(random))).unwrap(),
        _ => swizzle(random).into(),
    };
    Composed::new(outer, offset, inner).unwrap()
}

#[test]
fn inverses_of_swizzled_layouts_always_exist() {
    let mut random = Random(11);
    let (mut right, mut none) = (0, 0);
    for _ in 0..4_000 {
        let r = swizzled(&mut random);
        let left = r.left_inverse().unwrap_or_else(|error| panic!("{r}: {error}"));
        assert_eq!(composed(&left.to_string()), left);
        assert_sends_back(&r, &left, image(&r));
        let reached = reached(&r);
        match r.right_inverse() {
            Ok(inverse) => {
                right += 1;
                assert_eq!(inverse.size(), reached, "{r}: {inverse}");
                assert_sends_back(&r, &inverse, 0..reached);
            }
            Err(LayoutError::NoPreimage { value: 0, .. }) => {
                none += 1;
                assert_eq!(reached, 0, "{r}");
            }
            Err(error) => panic!("{r}: {error}"),
        }
        let distinct = image(&r);
        assert_eq!(r.is_injective(), Ok(distinct.len() as i64 == r.size()), "{r}");
        assert_eq!(r.image(), Ok(distinct));
    }
    assert!(right > 500 && none > 500, "{right} {none}");
}

#[test]
fn matrices_and_back() {
    let mut random = Random(12);
    let (mut linear, mut layouts, mut forms) = (0, 0, 0);
    for _ in 0..4_000 {
        let r = swizzled(&mut random);
        let list = values(&r);
        match r.bit_matrix() {
            Ok(matrix) => {
                linear += 1;
                assert_eq!(list[0], 0);
                for (index, value) in list.iter().enumerate() {
                    assert_eq!(matrix.apply(index as u64), *value as u64, "{r}: {matrix}");
                }
                let back = matrix.to_composed(&r.shape()).unwrap();
                assert_eq!(values(&back), list, "{r}: {back}");
                forms += usize::from(matches!(back.outer(), OuterMap::Swizzle(_)));
                let exists =
                    (0..matrix.inputs()).all(|i| (0..i).all(|j| matrix.columns()[i] & matrix.columns()[j] == 0));
                match matrix.to_layout(&r.shape()) {
                    Ok(layout) => {
                        layouts += 1;
                        let same = (0..r.size()).all(|i| layout.eval(&i) == Ok(list[i as usize]));
                        assert!(exists && same, "{matrix}: {layout}");
                        assert_eq!(BitMatrix::of_layout(&layout).unwrap().columns(), matrix.columns());
                    }
                    Err(LayoutError::NotAdditive { index, value, alone, .. }) => {
                        assert!(!exists && value != alone && list[index as usize] == value, "{matrix}");
                    }
                    Err(error) => panic!("{matrix}: {error}"),
                }
            }
            Err(LayoutError::NotLinear { index, value, alone, .. }) => {
                assert!(value != alone && list[index as usize] == value, "{r}");
                let parts =
                    (0..10).filter(|k| index >> k & 1 == 1).fold(list[0], |sum, k| sum ^ list[0] ^ list[1 << k]);
                assert!(if index == 0 { alone == 0 } else { alone == parts }, "{r} at {index}");
            }
            Err(error) => panic!("{r}: {error}"),
        }
    }
    assert!(linear > 500 && layouts > 300 && forms > 400, "{linear} {layouts} {forms}");
}

#[test]
fn a_swizzle_is_found_whenever_one_does_the_same() {
    // Every swizzle over every bit layout of four bits has a form with a swizzle again; a matrix
    // that has none is one for which no swizzle does.
    let mut random = Random(13);
    let all: Vec<Swizzle> = (0..=3)
        .flat_map(|b| (0..=5).flat_map(move |m| (-6_i64..=6).filter_map(move |s| Swizzle::new(b, m, s).ok())))
        .collect();
    let (mut found, mut none) = (0, 0);
    for _ in 0..1_000 {
        // Bits here and there, some of them flipped by one rule, some not.
        let s = swizzle(&mut random);
        let mut columns: Vec<u64> = (0..4).map(|k| 1 << (k + random.below(3))).collect();
        columns.swap(0, random.below(4) as usize);
        let flipped = columns
            .iter()
            .map(|c| if random.below(8) > 0 { s.apply(*c as i64) as u64 & 63 } else { random.below(64) as u64 });
        let matrix = BitMatrix::new(6, flipped).unwrap();
        let shape: Tree<i64> = "(4,4)".parse().unwrap();
        let back = matrix.to_composed(&shape).unwrap();
        for index in 0..16 {
            assert_eq!(back.eval(&index), Ok(matrix.apply(index as u64) as i64));
        }
        // S(f) adds up over the bits of the index.
        let adds_up = |s: &Swizzle| {
            let value = |i: i64| s.apply(matrix.apply(i as u64) as i64);
            (0..16).all(|i| value(i) == (0..4).filter(|k| i >> k & 1 == 1).map(|k| value(1 << k)).sum::<i64>())
        };
        if matches!(back.outer(), OuterMap::Swizzle(_)) {
            found += 1;
        } else {
            none += 1;
            assert!(!all.iter().any(adds_up), "{matrix}");
        }
    }
    assert!(found > 200 && none > 200, "{found} {none}");
}

#[test]
fn plain_layouts_are_seen_exactly_where_they_are() {
    let mut random = Random(14);
    let (mut plain, mut not) = (0, 0);
    for round in 0..4_000 {
        let mut r = swizzled(&mut random);
        if round % 2 == 0 {
            // A slice of it, or any offset, with carries.
            r = Composed::new(r.outer().clone(), random.below(1 << 9) - 40, r.inner().clone()).unwrap();
        }
        let list = values(&r);
        let steps: Vec<i64> = (0..r.size().trailing_zeros()).map(|k| list[1 << k] - list[0]).collect();
        let sum = |i: usize| steps.iter().enumerate().filter(|(k, _)| i >> k & 1 == 1).map(|(_, d)| d).sum::<i64>();
        let exists = (0..list.len()).all(|i| list[i] == list[0] + sum(i));
        match r.to_layout() {
            Ok((layout, offset)) => {
                plain += 1;
                assert!(exists && layout.shape().compatible_with(&r), "{r}: {layout}");
                assert!((0..r.size()).all(|i| layout.eval(&i).unwrap() + offset == list[i as usize]), "{r}: {layout}");
            }
            Err(LayoutError::NotAdditive { index, value, alone, .. }) => {
                not += 1;
                assert!(!exists && value != alone && list[index as usize] == value, "{r} at {index}");
            }
            Err(error) => panic!("{r}: {error}"),
        }
    }
    assert!(plain > 500 && not > 500, "{plain} {not}");
}

trait Refines {
    fn compatible_with(&self, r: &Composed) -> bool;
}

impl Refines for Tree<i64> {
    /// Each leaf of the domain is one leaf here, or a tuple of the same size.
    fn compatible_with(&self, r: &Composed) -> bool {
        r.shape().modes().zip(self.modes()).all(|(a, b)| a.product() == b.product())
    }
}

#[test]
fn equality_is_decided_whatever_the_size() {
    let mut random = Random(15);
    let (mut equal, mut different) = (0, 0);
    for _ in 0..3_000 {
        let a = swizzled(&mut random);
        let b = match random.below(4) {
            0 => a.bit_matrix().map_or_else(|_| swizzled(&mut random), |bits| bits.to_composed(&a.shape()).unwrap()),
            1 => a.then(swizzle(&mut random)).unwrap(),
            2 => a.coalesce().unwrap(),
            _ => a.left_inverse().unwrap().left_inverse().unwrap_or(a.clone()),
        };
        let same = a.size() == b.size() && values(&a) == values(&b);
        assert_eq!(a.equivalent(&b), Ok(same), "{a} and {b}");
        *(if same { &mut equal } else { &mut different }) += 1;
    }
    assert!(equal > 800 && different > 500, "{equal} {different}");
    // A petabyte, in three ways.
    let big = composed("S<3,4,3> o 0 o (1048576,1048576):(1048576,1)");
    let turned =
        composed("(1024,1024,1048576):(1,1024,1048576) o 0 o S<3,4,3> o 0 o (1048576,1024,1024):(1048576,1,1024)");
    let other = composed("S<3,4,4> o 0 o (1048576,1048576):(1048576,1)");
    assert_eq!((big.equivalent(&turned), big.equivalent(&other)), (Ok(true), Ok(false)));
    // Odd extents: part by part, and by walking.
    let padded = composed("S<3,3,3> o 0 o (64,8,1001):(1,64,512)");
    assert_eq!(padded.equivalent(&composed("S<0,0,0> o 0 o (8,64,1001):(1,8,512)")), Ok(false));
    let parts = composed("1000000:1 o 0 o S<3,3,3> o 0 o (512,1001):(1,512)");
    assert_eq!(padded.equivalent(&parts), Ok(true));
    assert_eq!(composed("S<1,0,2> o 0 o (3,5):(1,3)").equivalent(&composed("S<1,0,2> o 0 o (5,3):(1,5)")), Ok(true));
    let (a, b) = (composed("S<1,0,2> o 0 o (3,1000001):(1,4)"), composed("1:1 o 0 o S<1,0,2> o 0 o (3,1000001):(1,4)"));
    assert!(matches!(a.equivalent(&b), Err(LayoutError::Undecided { .. })));
}

#[test]
fn large_layouts_are_inverted_too() {
    let tile = composed("S<3,4,3> o 0 o (1048576,1048576):(1048576,1)");
    let right = tile.right_inverse().unwrap();
    assert_eq!(right.size(), 1 << 40);
    for value in [0, 1, 0x80, 0x3f0, (1 << 40) - 1, 123_456_789_012] {
        assert_eq!(tile.eval(&right.eval(&value).unwrap()), Ok(value));
        let index = right.eval(&value).unwrap();
        assert_eq!(tile.left_inverse().unwrap().eval(&value), Ok(index));
    }
    let identity = right.then(tile.map().unwrap()).unwrap();
    assert_eq!(identity.equivalent(&Composed::from("1099511627776:1".parse::<Layout>().unwrap())), Ok(true));
}

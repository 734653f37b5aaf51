//! Restriction, factorisation, squeezing and sorting of nested morphisms: what they do to values,
//! at every index, and to the nesting. Each on a hundred thousand random morphisms.

use crate::morphism::random::{Random, encoded, value};
use tilewright_layout::morphism::NestMorphism;
use tilewright_layout::{Profile, Tree};

const CASES: u64 = 100_000;

/// Some of the places below `count`, in order.
fn chosen(random: &mut Random, count: usize) -> Vec<usize> {
    (0..count).filter(|_| random.below(3) > 0).collect()
}

/// How far the paths to two leaves run together.
fn shared(profile: &Profile, a: usize, b: usize) -> usize {
    profile.path(a).iter().zip(profile.path(b)).take_while(|(a, b)| *a == b).count()
}

/// Whether the leaves of `part` lie in it as the leaves `kept` do in `whole`: each as deep,
/// neighbours together as far as before.
fn nests_alike(part: &Profile, whole: &Profile, kept: &[usize]) -> bool {
    part.leaves() == kept.len()
        && kept.iter().enumerate().all(|(leaf, old)| part.path(leaf).len() == whole.path(*old).len())
        && kept
            .windows(2)
            .enumerate()
            .all(|(leaf, pair)| shared(part, leaf, leaf + 1) == shared(whole, pair[0], pair[1]))
}

/// The index at which the chosen entries have the digits of an index of their own, and the others
/// are 0.
fn embedded(entries: &[i64], chosen: &[usize], index: i64) -> i64 {
    let mut digits = vec![0; entries.len()];
    let mut rest = index;
    for entry in chosen {
        digits[*entry] = rest % entries[*entry];
        rest /= entries[*entry];
    }
    entries.iter().zip(&digits).rev().fold(0, |index, (extent, digit)| index * extent + digit)
}

fn morphism(random: &mut Random) -> NestMorphism {
    let codomain = random.tuple(6, 1, 128);
    let flat = random.morphism(&codomain, 2, false);
    random.nest(&flat, None)
}

#[test]
fn a_restriction_keeps_the_values_where_the_other_entries_are_0() {
    let mut random = Random(31);
    for _ in 0..CASES {
        let f = morphism(&mut random);
        let entries = chosen(&mut random, f.flatten().domain().len());
        let part = f.restrict(&entries).unwrap();
        let (whole, layout) = (encoded(&f), encoded(&part));
        for index in 0..layout.size() {
            let at = embedded(f.flatten().domain(), &entries, index);
            assert_eq!(value(&layout, index), value(&whole, at), "{f} on {entries:?}");
        }
        assert!(nests_alike(part.domain_profile(), f.domain_profile(), &entries), "{f} on {entries:?}: {part}");
        assert_eq!((part.codomain(), part.flatten()), (f.codomain(), &f.flatten().restrict(&entries).unwrap()));
        // All of it is itself, and two restrictions are one.
        let all: Vec<usize> = (0..f.flatten().domain().len()).collect();
        assert_eq!(f.restrict(&all).unwrap(), f);
        let again = chosen(&mut random, entries.len());
        let both: Vec<usize> = again.iter().map(|entry| entries[*entry]).collect();
        assert_eq!(part.restrict(&again).unwrap(), f.restrict(&both).unwrap());
    }
}

#[test]
fn a_morphism_is_its_factor_before_the_inclusion() {
    let mut random = Random(32);
    for _ in 0..CASES {
        let f = morphism(&mut random);
        let count = f.flatten().codomain().len();
        let extra = chosen(&mut random, count);
        let hit = |place: &usize| f.map().preimage(*place).is_some() || extra.contains(place);
        let entries: Vec<usize> = (0..count).filter(hit).collect();
        let factor = f.factorise(&entries).unwrap();
        assert!(nests_alike(factor.codomain_profile(), f.codomain_profile(), &entries), "{f} into {entries:?}");
        let inclusion = NestMorphism::new(&factor.codomain(), &f.codomain(), entries.iter().map(|entry| Some(*entry)));
        let inclusion = inclusion.unwrap();
        assert_eq!(inclusion.compose(&factor).unwrap(), f);
        let (whole, first, second) = (encoded(&f), encoded(&factor), encoded(&inclusion));
        for index in 0..whole.size() {
            assert_eq!(value(&whole, index), value(&second, value(&first, index)), "{f} into {entries:?}");
        }
        // What is hit cannot be left out.
        if let Some(image) = f.map().images().flatten().next() {
            let others: Vec<usize> = (0..count).filter(|place| *place != image).collect();
            assert_eq!(f.factorise(&others).unwrap_err().code(), "E0713");
        }
    }
}

#[test]
fn squeezing_is_a_functor_that_keeps_the_values() {
    let mut random = Random(33);
    for _ in 0..CASES {
        let top = random.tuple(5, 1, 128);
        let above = random.morphism(&top, 2, false);
        let below = random.morphism(above.domain(), 2, false);
        let g = random.nest(&above, None);
        let f = random.nest(&below, Some(&g.domain()));
        let both = g.compose(&f).unwrap();
        assert_eq!(both.squeeze().unwrap(), g.squeeze().unwrap().compose(&f.squeeze().unwrap()).unwrap());
        let squeezed = f.squeeze().unwrap();
        let (layout, whole) = (encoded(&squeezed), encoded(&f));
        assert_eq!(layout.size(), whole.size());
        for index in 0..whole.size() {
            assert_eq!(value(&layout, index), value(&whole, index), "{f}");
        }
        let moving = |entries: &[i64]| -> Vec<usize> { (0..entries.len()).filter(|at| entries[*at] > 1).collect() };
        assert!(nests_alike(squeezed.domain_profile(), f.domain_profile(), &moving(f.flatten().domain())), "{f}");
        assert!(nests_alike(squeezed.codomain_profile(), f.codomain_profile(), &moving(f.flatten().codomain())));
        assert_eq!(squeezed.squeeze().unwrap(), squeezed);
    }
}

#[test]
fn sorting_takes_the_entries_in_the_order_of_the_strides() {
    let mut random = Random(34);
    for _ in 0..CASES {
        let f = morphism(&mut random);
        let sorted = f.sort().unwrap();
        let (layout, whole) = (encoded(&sorted), encoded(&f));
        assert!(layout.leaves().windows(2).all(|pair| pair[0].stride <= pair[1].stride), "{f}");
        // The same values: at the index with the digits moved along.
        let mut order: Vec<usize> = (0..whole.leaves().len()).collect();
        order.sort_by_key(|entry| (f.map().image(*entry).map_or(0, |place| place + 1), f.flatten().domain()[*entry]));
        for index in 0..layout.size() {
            let mut digits = vec![0; order.len()];
            let mut rest = index;
            for entry in &order {
                digits[*entry] = rest % f.flatten().domain()[*entry];
                rest /= f.flatten().domain()[*entry];
            }
            let moved =
                digits.iter().zip(f.flatten().domain()).rev().fold(0, |at, (digit, extent)| at * extent + digit);
            assert_eq!(value(&layout, index), value(&whole, moved), "{f}");
        }
        assert_eq!(sorted.codomain(), f.codomain());
        assert_eq!(sorted.domain(), Tree::flat(sorted.flatten().domain().iter().copied()).unwrap());
        assert_eq!(sorted.sort().unwrap(), sorted);
    }
}

#[test]
fn what_is_left_of_a_nesting() {
    let f: NestMorphism = "(((2,3)),4,()) -> 24 : (((*,*)),*,())".parse().unwrap();
    let left = |entries: &[usize]| f.restrict(entries).unwrap().domain().to_string();
    assert_eq!(
        (left(&[0, 1, 2]), left(&[1, 2]), left(&[2])),
        ("(((2,3)),4,())".into(), "(((3)),4,())".into(), "(4,())".into())
    );
    assert_eq!(left(&[0]), "(((2)),())");
    let number: NestMorphism = "7 -> (7) : 1".parse().unwrap();
    assert_eq!(number.restrict(&[]).unwrap().to_string(), "() -> (7) : ()");
    assert_eq!(f.factorise(&[]).unwrap().codomain().to_string(), "()");
    assert_eq!(f.restrict(&[2, 1]).unwrap_err().code(), "E0712");
}

#[test]
fn realisation_at_a_coordinate_is_that_at_its_index() {
    let mut random = Random(35);
    for _ in 0..CASES {
        let f = morphism(&mut random);
        let (shape, layout) = (f.domain(), encoded(&f));
        for index in 0..f.size() {
            let mut rest = index;
            let natural = shape.map(|extent| {
                let digit = rest % extent;
                rest /= extent;
                digit
            });
            assert_eq!(f.realise_at(&natural).unwrap(), value(&layout, index), "{f} at {natural}");
        }
        assert_eq!(f.realise_at(&Tree::from(f.size() - 1)), f.realise(f.size() - 1));
        // One past the end of any mode is outside.
        if !shape.leaves().is_empty() {
            let mode = random.below(shape.leaves().len());
            let mut leaf = 0;
            let past = shape.map(|extent| {
                leaf += 1;
                if leaf == mode + 1 { *extent } else { 0 }
            });
            assert_eq!(f.realise_at(&past).unwrap_err().code(), "E0116", "{f} at {past}");
        }
    }
}

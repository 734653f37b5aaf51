//! The ambient category: maps of places under which products divide. Tuple and the refinements are
//! subcategories of it, told apart by conditions on the map, and the square by which spans compose
//! commutes in it.

use crate::morphism::random::Random;
use tilewright_layout::morphism::{AmbientMorphism, Backward, Fact, Span, TupleMorphism};

const CASES: u64 = 20_000;

/// A morphism into a tuple, with several entries sent to one place: entries are picked among the
/// divisors of what is left there.
fn into(random: &mut Random, codomain: &[i64]) -> AmbientMorphism {
    let mut left = codomain.to_vec();
    let (mut domain, mut images) = (Vec::new(), Vec::new());
    let mut size = 1;
    for _ in 0..random.below(6) {
        let forgotten = codomain.is_empty() || random.below(5) == 0;
        let (extent, image) = if forgotten {
            (1 + random.below(4) as i64, None)
        } else {
            let place = random.below(codomain.len());
            let divisors: Vec<i64> = (1..=left[place]).filter(|divisor| left[place] % divisor == 0).collect();
            let extent = random.pick(&divisors);
            left[place] /= extent;
            (extent, Some(place))
        };
        if size * extent <= 2_000 {
            size *= extent;
            domain.push(extent);
            images.push(image);
        }
    }
    AmbientMorphism::new(domain, codomain.iter().copied(), images).unwrap()
}

/// The condition, written down from the definition.
fn divides(domain: &[i64], codomain: &[i64], images: &[Option<usize>]) -> bool {
    codomain.iter().enumerate().all(|(place, entry)| {
        let sent = domain.iter().zip(images).filter(|(_, image)| **image == Some(place));
        entry % sent.map(|(extent, _)| extent).product::<i64>() == 0
    })
}

#[test]
fn it_is_a_category() {
    let mut random = Random(41);
    for _ in 0..CASES {
        let top = random.tuple(4, 1, 200);
        let h = into(&mut random, &top);
        let g = into(&mut random, h.domain());
        let f = into(&mut random, g.domain());
        let both = h.compose(&g).unwrap();
        assert!(divides(both.domain(), both.codomain(), both.images()), "{h} after {g}");
        assert_eq!(both.compose(&f).unwrap(), h.compose(&g.compose(&f).unwrap()).unwrap());
        let identity = |tuple: &[i64]| AmbientMorphism::identity(tuple.iter().copied()).unwrap();
        assert_eq!(f.compose(&identity(f.domain())).unwrap(), f);
        assert_eq!(identity(f.codomain()).compose(&f).unwrap(), f);
        // What is active, onto, monotone or exact stays so.
        for holds in [AmbientMorphism::is_active, AmbientMorphism::is_surjective, AmbientMorphism::is_monotone] {
            assert!(!(holds(&g) && holds(&f)) || holds(&g.compose(&f).unwrap()), "{g} after {f}");
        }
    }
}

/// A map is a morphism of the category exactly when products divide.
#[test]
fn maps_are_admitted_by_their_products() {
    let mut random = Random(42);
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..CASES {
        let (domain, codomain) = (random.tuple(4, 1, 100), random.tuple(3, 1, 200));
        let images: Vec<Option<usize>> = domain
            .iter()
            .map(
                |_| if codomain.is_empty() || random.below(4) == 0 { None } else { Some(random.below(codomain.len())) },
            )
            .collect();
        let made = AmbientMorphism::new(domain.iter().copied(), codomain.iter().copied(), images.iter().copied());
        let expected = divides(&domain, &codomain, &images);
        assert_eq!(made.is_ok(), expected, "{domain:?} -> {codomain:?}: {images:?}");
        if expected {
            admitted += 1;
        } else {
            refused += 1;
            assert_eq!(made.unwrap_err().code(), "E0718");
        }
    }
    assert!(admitted > 1_000 && refused > 1_000, "{admitted} and {refused}");
}

/// The inclusion of Tuple: a functor, one to one, onto the maps that hit no place twice and send
/// entries to equal ones.
#[test]
fn tuple_is_a_subcategory() {
    let mut random = Random(43);
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..CASES {
        let top = random.tuple(5, 1, 128);
        let g = random.morphism(&top, 2, false);
        let f = random.morphism(g.domain(), 2, false);
        let (above, below) = (AmbientMorphism::from(&g), AmbientMorphism::from(&f));
        assert_eq!(AmbientMorphism::from(&g.compose(&f).unwrap()), above.compose(&below).unwrap());
        assert_eq!(above.to_morphism(), Some(g));
        let identity = TupleMorphism::identity(top.iter().copied()).unwrap();
        assert_eq!(AmbientMorphism::from(&identity), AmbientMorphism::identity(top.iter().copied()).unwrap());
        let any = into(&mut random, &top);
        let images: Vec<usize> = any.images().iter().copied().flatten().collect();
        let once = images.iter().enumerate().all(|(at, place)| !images[..at].contains(place));
        let equal = any.domain().iter().zip(any.images()).all(|(s, image)| image.is_none_or(|place| top[place] == *s));
        assert_eq!(any.to_morphism().is_some(), once && equal, "{any}");
        if once && equal { inside += 1 } else { outside += 1 }
    }
    assert!(inside > 1_000 && outside > 1_000, "{inside} and {outside}");
}

/// The inclusion of the refinements: a functor, one to one, onto the maps that are active, onto,
/// monotone and exact.
#[test]
fn refinements_are_a_subcategory() {
    let mut random = Random(44);
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..CASES {
        let tuple = random.tuple(4, 1, 128);
        let coarse = Fact::new(tuple.iter().map(|extent| random.part(*extent).leaves().to_vec())).unwrap();
        let fine = Fact::new(coarse.domain().iter().map(|extent| random.part(*extent).leaves().to_vec())).unwrap();
        let (above, below) = (AmbientMorphism::from(&coarse), AmbientMorphism::from(&fine));
        assert_eq!(AmbientMorphism::from(&coarse.compose(&fine).unwrap()), above.compose(&below).unwrap());
        assert_eq!(above.to_factorisation(), Some(coarse));
        let any = into(&mut random, &tuple);
        let images = any.images();
        let onto = (0..tuple.len()).all(|place| images.contains(&Some(place)));
        let rising = images.windows(2).all(|pair| pair[0] <= pair[1]) && images.iter().all(Option::is_some);
        let products = (0..tuple.len()).all(|place| {
            let sent = any.domain().iter().zip(images).filter(|(_, image)| **image == Some(place));
            sent.map(|(extent, _)| extent).product::<i64>() == tuple[place]
        });
        let expected = onto && rising && products;
        assert_eq!(any.to_factorisation().is_some(), expected, "{any}");
        if expected { inside += 1 } else { outside += 1 }
    }
    assert!(inside > 100 && outside > 1_000, "{inside} and {outside}");
}

/// Spans compose by a square: refine then move is move then refine, on the entries that the
/// morphism does not forget.
#[test]
fn the_squares_of_spans_commute() {
    let mut random = Random(45);
    for _ in 0..CASES {
        let top = random.tuple(4, 1, 128);
        let f = random.morphism(&top, 2, false);
        let cut = Fact::new(top.iter().map(|extent| random.part(*extent).leaves().to_vec())).unwrap();
        let composite = Span::of_back(cut.clone()).unwrap().compose(&Span::of_morphism(&f).unwrap()).unwrap();
        // X' -> X -> V is X' -> V' -> V.
        let around = AmbientMorphism::from(&f).compose(&AmbientMorphism::from(composite.back())).unwrap();
        let through = AmbientMorphism::from(&cut).compose(&AmbientMorphism::from(composite.forward())).unwrap();
        assert_eq!(around, through, "{f} along {cut}");
        assert_eq!(Backward::domain(composite.back()), composite.forward().domain());
    }
}

//! Pullback and pushforward of refinements: they keep the function, and they are functors.

use crate::morphism::random::{Random, same};
use tilewright_layout::Tree;
use tilewright_layout::morphism::{NestMorphism, Refinement};

/// A refinement of a tuple, part by part.
fn refinement(random: &mut Random, of: &Tree<i64>) -> Refinement {
    let parts: Vec<Tree<i64>> = of.leaves().iter().map(|extent| random.part(*extent)).collect();
    Refinement::by_parts(of, parts).unwrap()
}

#[test]
fn pullback_and_pushforward_keep_the_function() {
    let mut random = Random(5);
    for _ in 0..100_000 {
        let codomain = random.tuple(4, 1, 64);
        let flat = random.morphism(&codomain, 1, false);
        let f = random.nest(&flat, None);
        let layout = f.encoded_layout().unwrap();
        let along = refinement(&mut random, &f.codomain());
        let square = f.pullback(&along).unwrap();
        assert_eq!(&square.codomain, &along);
        assert_eq!((&square.morphism.domain(), &square.morphism.codomain()), (square.domain.fine(), along.fine()));
        assert!(same(&square.morphism.encoded_layout().unwrap(), &layout), "{f} along {along}");
        // The conditions of a morphism hold: reading it checks them.
        assert_eq!(square.morphism.to_string().parse::<NestMorphism>().unwrap(), square.morphism);

        let along = refinement(&mut random, &f.domain());
        let square = f.pushforward(&along).unwrap();
        assert_eq!(&square.domain, &along);
        assert_eq!((&square.morphism.domain(), &square.morphism.codomain()), (along.fine(), square.codomain.fine()));
        assert!(same(&square.morphism.encoded_layout().unwrap(), &layout), "{f} along {along}");
        assert_eq!(square.morphism.to_string().parse::<NestMorphism>().unwrap(), square.morphism);
    }
}

#[test]
fn refining_is_a_functor_both_ways() {
    let mut random = Random(6);
    for _ in 0..100_000 {
        let top = random.tuple(4, 1, 64);
        let above = random.morphism(&top, 1, false);
        let below = random.morphism(above.domain(), 1, false);
        let g = random.nest(&above, None);
        let f = random.nest(&below, Some(&g.domain()));
        let both = g.compose(&f).unwrap();
        // Backwards along g and then along f is backwards along g o f.
        let along = refinement(&mut random, &g.codomain());
        let upper = g.pullback(&along).unwrap();
        let lower = f.pullback(&upper.domain).unwrap();
        let whole = both.pullback(&along).unwrap();
        assert_eq!(whole.domain, lower.domain);
        assert_eq!(whole.morphism, upper.morphism.compose(&lower.morphism).unwrap());
        // Forwards along f and then along g is forwards along g o f.
        let along = refinement(&mut random, &f.domain());
        let lower = f.pushforward(&along).unwrap();
        let upper = g.pushforward(&lower.codomain).unwrap();
        let whole = both.pushforward(&along).unwrap();
        let joined = upper.morphism.compose(&lower.morphism).unwrap();
        // An entry that g hits from nothing of f's image is refined by neither, so the two agree.
        assert_eq!(whole.morphism, joined);
        assert_eq!(whole.codomain, upper.codomain);
    }
}

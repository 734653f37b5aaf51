//! Spans and cospans: the laws of categories, sums and functors, to the letter, on random values.

use crate::morphism::random::{Random, same, value};
use tilewright_layout::Tree;
use tilewright_layout::morphism::{
    Backward, Cospan, MutualRefinement, Ref, Span, TupleMorphism, standard_representation,
};

const CASES: u64 = 40_000;

/// A refinement that ends at a tuple.
fn finer(random: &mut Random, tuple: &[i64]) -> Ref {
    let modes: Vec<_> = tuple.iter().map(|extent| random.part(*extent)).collect();
    Ref::new(Tree::tuple(modes.iter()).unwrap()).unwrap()
}

/// A span that ends at a tuple: a morphism into it, and a coarser tuple of its domain.
fn span(random: &mut Random, codomain: &[i64]) -> Span<Ref> {
    let forward = random.morphism(codomain, 1, false);
    let profile = random.profile(forward.domain().len(), 2);
    let tree = Tree::new(profile, forward.domain().iter().copied()).unwrap();
    Span::new(Ref::new(tree).unwrap(), forward).unwrap()
}

#[test]
fn spans_compose_strictly_and_realisation_is_a_functor() {
    let mut random = Random(22);
    for _ in 0..CASES {
        let top = random.tuple(4, 1, 36);
        let c = span(&mut random, &top);
        let b = span(&mut random, c.domain());
        let a = span(&mut random, b.domain());
        // Strict associativity and units.
        let (cb, ba) = (c.compose(&b).unwrap(), b.compose(&a).unwrap());
        let all = cb.compose(&a).unwrap();
        assert_eq!(all, c.compose(&ba).unwrap());
        assert_eq!(c.compose(&Span::identity(c.domain()).unwrap()).unwrap(), c);
        assert_eq!(Span::identity(c.codomain()).unwrap().compose(&c).unwrap(), c);
        // Realisation.
        for index in 0..a.domain().iter().product::<i64>() {
            let value = c.realise(b.realise(a.realise(index).unwrap()).unwrap()).unwrap();
            assert_eq!(all.realise(index).unwrap(), value);
        }
        // The functor to Span(Tuple, Fact).
        let flat = |span: &Span<Ref>| span.to_fact().unwrap();
        assert_eq!(flat(&cb), flat(&c).compose(&flat(&b)).unwrap());
    }
}

#[test]
fn sums_of_spans_interchange_and_tuple_and_nest_are_inside() {
    let mut random = Random(23);
    for _ in 0..CASES {
        let (left, right) = (random.tuple(3, 1, 24), random.tuple(3, 1, 24));
        let (c, d) = (span(&mut random, &left), span(&mut random, &right));
        let (a, b) = (span(&mut random, c.domain()), span(&mut random, d.domain()));
        let beside = c.sum(&d).unwrap().compose(&a.sum(&b).unwrap()).unwrap();
        assert_eq!(beside, c.compose(&a).unwrap().sum(&d.compose(&b).unwrap()).unwrap());
        // Tuple, and Nest through it.
        let g = random.morphism(&left, 1, false);
        let f = random.morphism(g.domain(), 1, false);
        let inside = |f: &TupleMorphism| Span::<Ref>::of_morphism(f).unwrap();
        assert_eq!(inside(&g.compose(&f).unwrap()), inside(&g).compose(&inside(&f)).unwrap());
        let nested = random.nest(&g, None);
        assert_eq!(Span::<Ref>::of_nest(&nested).unwrap(), inside(&g));
        // Refinements, backwards.
        let coarse = finer(&mut random, &left);
        let fine = finer(&mut random, coarse.domain());
        let back = |r: &Ref| Span::of_back(r.clone()).unwrap();
        assert_eq!(back(&coarse.compose(&fine).unwrap()), back(&fine).compose(&back(&coarse)).unwrap());
    }
}

#[test]
fn composition_of_layouts_is_a_span_an_inclusion_and_a_cospan() {
    let (mut random, mut found) = (Random(24), 0);
    for _ in 0..CASES {
        let entries = [2, 2, 3, 4, 6];
        let mut tuple = || -> Vec<i64> { (0..1 + random.below(3)).map(|_| random.pick(&entries)).collect() };
        let (t, u) = (tuple(), tuple());
        let (first, second) = (random.morphism(&t, 1, false), random.morphism(&u, 0, true).inverse());
        // A morphism out of `u`.
        let Ok(second) = second.or_else(|_| TupleMorphism::identity(u.iter().copied())) else { continue };
        let (f, g) = (random.nest(&first, None), random.nest(&second, None));
        let Ok(mutual) = MutualRefinement::new(&f.codomain(), &g.domain()) else { continue };
        found += 1;
        // T <- T' -> U', after f.
        let fine = |parts: &[Tree<i64>]| Ref::new(Tree::tuple(parts).unwrap()).unwrap();
        let inclusion = mutual.inclusion().unwrap().flatten().clone();
        let cut = Span::new(fine(mutual.first().parts()), inclusion).unwrap();
        let lower = cut.compose(&Span::of_morphism(f.flatten()).unwrap()).unwrap();
        // U' -> U, then g.
        let joined = Cospan::new(lower.forward().clone(), fine(mutual.second().parts())).unwrap();
        let upper = Cospan::new(g.flatten().clone(), Ref::identity(g.flatten().codomain()).unwrap()).unwrap();
        let both = upper.compose(&joined).unwrap();
        let weak = tilewright_layout::morphism::weak_composite(&g, &f).unwrap();
        assert_eq!(weak.flatten(), both.forward());
        assert_eq!(weak.domain().leaves(), lower.back().domain());
        let (f, g, weak) = (f.encoded_layout().unwrap(), g.encoded_layout().unwrap(), weak.encoded_layout().unwrap());
        for index in 0..f.size() {
            assert_eq!(value(&weak, index), value(&g, value(&f, index)));
            assert_eq!(both.realise(index).unwrap(), value(&weak, index));
        }
    }
    assert!(found > 8_000, "{found}");
}

#[test]
fn a_layout_is_a_span() {
    let mut random = Random(25);
    for _ in 0..CASES {
        let codomain = random.tuple(5, 2, 64);
        let flat = random.morphism(&codomain, 1, false);
        let layout = random.nest(&flat, None).encoded_layout().unwrap();
        let span = Span::of_layout(&layout).unwrap();
        let encoded = span.encoded_layout().unwrap();
        assert!(same(&encoded, &layout));
        assert_eq!(span.forward(), standard_representation(&layout).unwrap().flatten());
        let modes: Vec<i64> = layout.modes().map(|mode| mode.size()).collect();
        assert_eq!(span.domain(), modes);
        assert!((0..layout.size()).all(|index| span.realise(index).unwrap() == value(&layout, index)));
        assert_eq!(Backward::domain(span.back()), layout.leaves().iter().map(|leaf| leaf.extent).collect::<Vec<_>>());
    }
}

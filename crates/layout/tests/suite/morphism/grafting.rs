//! Fact, Ref and profiles: the laws of categories and operads, to the letter, on random values.

use crate::morphism::random::Random;
use tilewright_layout::morphism::operad::{substitute, substitute_at};
use tilewright_layout::morphism::{Fact, Ref};
use tilewright_layout::{Profile, Tree};

const CASES: u64 = 100_000;

/// A refinement that ends at a tuple.
fn finer(random: &mut Random, tuple: &[i64]) -> Ref {
    let modes: Vec<_> = tuple.iter().map(|extent| random.part(*extent)).collect();
    Ref::new(Tree::tuple(modes.iter()).unwrap()).unwrap()
}

#[test]
fn refinements_and_factorisations_are_categories_and_flattening_is_a_functor() {
    let mut random = Random(21);
    for _ in 0..CASES {
        let leaves = random.tuple(4, 1, 64);
        let profile = random.profile(leaves.len(), 2);
        let c = Ref::new(Tree::new(profile, leaves).unwrap()).unwrap();
        let b = finer(&mut random, c.domain());
        let a = finer(&mut random, b.domain());
        assert_eq!(c.compose(&b).unwrap().compose(&a).unwrap(), c.compose(&b.compose(&a).unwrap()).unwrap());
        assert_eq!(c.compose(&Ref::identity(c.domain()).unwrap()).unwrap(), c);
        assert_eq!(Ref::identity(c.codomain()).unwrap().compose(&c).unwrap(), c);
        let flat = |r: &Ref| r.to_fact().unwrap();
        assert_eq!(flat(&c.compose(&b).unwrap()), flat(&c).compose(&flat(&b)).unwrap());
        assert_eq!(flat(&Ref::identity(c.domain()).unwrap()), Fact::identity(c.domain()).unwrap());
        assert_eq!(flat(&Ref::from_fact(&flat(&c)).unwrap()), flat(&c));
        let (left, right) = (c.sum(&b).unwrap(), b.sum(&a).unwrap());
        assert_eq!(left.compose(&right).unwrap(), c.compose(&b).unwrap().sum(&b.compose(&a).unwrap()).unwrap());
        assert_eq!(flat(&left), flat(&c).sum(&flat(&b)).unwrap());
        let fact = |r: &Ref| r.to_fact().unwrap();
        let (x, y, z) = (fact(&c), fact(&b), fact(&a));
        assert_eq!(x.compose(&y).unwrap().compose(&z).unwrap(), x.compose(&y.compose(&z).unwrap()).unwrap());
    }
}

#[test]
fn profiles_are_an_operad() {
    let mut random = Random(26);
    for _ in 0..CASES {
        let mut any = |most: usize| -> Profile {
            let leaves = random.below(most + 1);
            if random.below(4) == 0 { Profile::leaf() } else { random.profile(leaves, 2) }
        };
        let p = any(4);
        let parts: Vec<Profile> = (0..p.leaves()).map(|_| any(3)).collect();
        let below: Vec<Vec<Profile>> = parts.iter().map(|part| (0..part.leaves()).map(|_| any(2)).collect()).collect();
        // Associative: all at once, or one after another.
        let inner: Vec<Profile> =
            parts.iter().zip(&below).map(|(part, below)| substitute(part, below).unwrap()).collect();
        let outer = substitute(&p, &parts).unwrap();
        assert_eq!(substitute(&outer, &below.concat()).unwrap(), substitute(&p, &inner).unwrap());
        // Units.
        assert_eq!(substitute(&Profile::leaf(), std::slice::from_ref(&p)).unwrap(), p);
        assert_eq!(substitute(&p, &vec![Profile::leaf(); p.leaves()]).unwrap(), p);
        // Leaves add up, and one at a time is the same.
        assert_eq!(outer.leaves(), parts.iter().map(Profile::leaves).sum::<usize>());
        let mut by_one = p.clone();
        for (leaf, part) in parts.iter().enumerate().rev() {
            by_one = substitute_at(&by_one, leaf, part).unwrap();
        }
        assert_eq!(by_one, outer);
        assert_eq!(substitute(&p, &parts[..parts.len().saturating_sub(1)]).is_err(), !parts.is_empty());
    }
}

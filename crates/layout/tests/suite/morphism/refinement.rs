//! Refinements and mutual refinement: laws on random tuples, and the closed form as an oracle.

use crate::morphism::random::Random;
use tilewright_layout::Tree;
use tilewright_layout::morphism::{MutualRefinement, NestMorphism, Refinement, refines};

/// Whether `fine` refines `coarse`, by the definition; no code of the library.
fn refines_by_definition(fine: &Tree<i64>, coarse: &Tree<i64>) -> bool {
    if coarse.is_leaf() {
        return coarse.leaves()[0] == fine.leaves().iter().product::<i64>();
    }
    !fine.is_leaf()
        && fine.rank() == coarse.rank()
        && fine.modes().zip(coarse.modes()).all(|(fine, coarse)| refines_by_definition(&fine, &coarse))
}

/// The closed form: the prefix products of `t`, with those of `u` up to the size of `t` and the
/// first above, divide each other in turn, and `u` is at least as large.
fn has_mutual_refinement(t: &[i64], u: &[i64]) -> bool {
    let prefixes = |tuple: &[i64]| -> Vec<i64> {
        tuple
            .iter()
            .scan(1, |product, extent| {
                *product *= extent;
                Some(*product)
            })
            .collect()
    };
    let (size, theirs) = (t.iter().product::<i64>(), prefixes(u));
    let mut chain = prefixes(t);
    chain.extend(theirs.iter().filter(|product| **product <= size));
    chain.extend(theirs.iter().find(|product| **product > size));
    chain.sort();
    chain.windows(2).all(|pair| pair[1] % pair[0] == 0) && u.iter().product::<i64>() >= size
}

#[test]
fn a_mutual_refinement_exists_exactly_in_the_closed_form() {
    let (mut random, mut found) = (Random(3), 0);
    for round in 0..300_000 {
        // Entries 1 in every second round; entries with few primes, so that both answers are
        // common.
        let least = if round % 2 == 0 { 2 } else { 1 };
        let entries = [1, 2, 3, 4, 6, 8, 12];
        let mut tuple = |most: usize| -> Vec<i64> {
            (0..random.below(most + 1)).map(|_| random.pick(&entries[least as usize - 1..])).collect()
        };
        let (t, u) = (tuple(4), tuple(5));
        let (first, second) = (random.tree(&t), random.tree(&u));
        let expected = has_mutual_refinement(&t, &u);
        let mutual = MutualRefinement::new(&first, &second);
        assert_eq!(mutual.is_ok(), expected, "{first} and {second}");
        let Ok(mutual) = mutual else { continue };
        found += 1;
        let (fine, into) = (mutual.first().fine(), mutual.second().fine());
        assert!(refines_by_definition(fine, &first), "{fine} of {first}");
        assert!(refines_by_definition(into, &second), "{into} of {second}");
        assert!(into.leaves().starts_with(fine.leaves()), "{mutual}");
        // The inclusion is a morphism: its conditions are checked when it is read.
        let inclusion = mutual.inclusion().unwrap();
        assert_eq!(inclusion.to_string().parse::<NestMorphism>().unwrap(), inclusion);
        assert!((0..inclusion.size().min(50)).all(|index| inclusion.realise(index).unwrap() == index));
    }
    assert!((60_000..240_000).contains(&found), "{found}");
}

/// A refinement of a tuple, part by part.
fn refinement(random: &mut Random, of: &Tree<i64>) -> Refinement {
    let parts: Vec<Tree<i64>> = of.leaves().iter().map(|extent| random.part(*extent)).collect();
    Refinement::by_parts(of, parts).unwrap()
}

#[test]
fn refinement_is_a_partial_order_and_its_parts_are_the_relative_modes() {
    let mut random = Random(4);
    for _ in 0..100_000 {
        let leaves = random.tuple(3, 1, 200);
        let coarse = random.tree(&leaves);
        let middle = refinement(&mut random, &coarse);
        let fine = refinement(&mut random, middle.fine());
        assert!(refines(&coarse, &coarse));
        assert!(refines_by_definition(middle.fine(), &coarse));
        assert_eq!(Refinement::new(middle.fine(), &coarse).unwrap(), middle);
        let both = middle.compose(&fine).unwrap();
        assert_eq!((both.fine(), both.coarse()), (fine.fine(), &coarse));
        for (part, extent) in both.parts().iter().zip(coarse.leaves()) {
            assert_eq!(part.leaves().iter().product::<i64>(), *extent);
        }
        // Both ways only for the same tuple.
        assert_eq!(refines(&coarse, fine.fine()), &coarse == fine.fine());
        let other = refinement(&mut random, &coarse);
        assert_eq!(refines(other.fine(), middle.fine()), refines_by_definition(other.fine(), middle.fine()));
    }
}

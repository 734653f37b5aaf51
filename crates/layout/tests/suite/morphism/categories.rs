//! Tuple and Nest are categories with sums, inverses and concatenation; squeezing is a functor.
//! Each law on a hundred thousand random morphisms.

use crate::morphism::random::{Random, same};
use tilewright_layout::Layout;
use tilewright_layout::morphism::{NestMorphism, TupleMorphism};

const CASES: u64 = 100_000;

fn encoded(f: &NestMorphism) -> Layout {
    f.encoded_layout().unwrap()
}

#[test]
fn concatenation() {
    let mut random = Random(17);
    for _ in 0..CASES {
        let top = random.tuple(5, 1, 128);
        let outer = random.morphism(&top, 1, false);
        // Two morphisms into the domain of `outer` with disjoint images: one, cut in two.
        let whole = random.morphism(outer.domain(), 2, false);
        let cut = random.below(whole.domain().len() + 1);
        let (left, right): (Vec<usize>, Vec<usize>) = (0..whole.domain().len()).partition(|entry| *entry < cut);
        let (f, g) = (whole.restrict(&left).unwrap(), whole.restrict(&right).unwrap());
        assert_eq!(f.concat(&g).unwrap(), whole);
        let h = random.nest(&outer, None);
        let (f, g) = (random.nest(&f, Some(&h.domain())), random.nest(&g, Some(&h.domain())));
        let beside = f.concat(&g).unwrap();
        assert_eq!(encoded(&beside), Layout::tuple([&encoded(&f), &encoded(&g)]).unwrap());
        // h o (f, g) = (h o f, h o g)
        let parts = h.compose(&f).unwrap().concat(&h.compose(&g).unwrap()).unwrap();
        assert_eq!(h.compose(&beside).unwrap(), parts);
    }
}

#[test]
fn sorting_and_squeezing() {
    let mut random = Random(18);
    for _ in 0..CASES {
        let top = random.tuple(6, 1, 128);
        let above = random.morphism(&top, 2, false);
        let below = random.morphism(above.domain(), 2, false);
        // Squeezing is a functor, sorting keeps the values.
        let both = above.compose(&below).unwrap();
        assert_eq!(both.squeeze(), above.squeeze().compose(&below.squeeze()).unwrap());
        assert!(same(&both.squeeze().encoded_layout().unwrap(), &both.encoded_layout().unwrap()));
        let sorted = above.sort();
        assert!(sorted.is_sorted() && sorted.sort() == sorted && (above.is_sorted() == (sorted == above)));
        let mut leaves = above.encoded_layout().unwrap().leaves().to_vec();
        leaves.sort_by_key(|leaf| (leaf.stride, leaf.extent));
        assert_eq!(sorted.encoded_layout().unwrap().leaves(), leaves, "{above}");
    }
}

#[test]
fn tuple_and_nest_are_categories_with_sums_and_inverses() {
    let mut random = Random(19);
    for _ in 0..CASES {
        let top = random.tuple(4, 1, 128);
        let h = random.morphism(&top, 1, false);
        let g = random.morphism(h.domain(), 1, false);
        let f = random.morphism(g.domain(), 1, false);
        let left = h.compose(&g).unwrap().compose(&f).unwrap();
        assert_eq!(left, h.compose(&g.compose(&f).unwrap()).unwrap());
        let identity = |tuple: &[i64]| TupleMorphism::identity(tuple.iter().copied()).unwrap();
        assert_eq!(f.compose(&identity(f.domain())).unwrap(), f);
        assert_eq!(identity(f.codomain()).compose(&f).unwrap(), f);
        // Interchange.
        let (a, b) = (g.sum(&h).unwrap(), f.sum(&g).unwrap());
        assert_eq!(a.compose(&b).unwrap(), g.compose(&f).unwrap().sum(&h.compose(&g).unwrap()).unwrap());
        // A permutation has an inverse; nothing else has.
        let order = random.order(top.len());
        let p =
            TupleMorphism::new(order.iter().map(|at| top[*at]), top.iter().copied(), order.iter().map(|at| Some(*at)));
        let p = p.unwrap();
        assert!(p.is_isomorphism());
        assert_eq!(p.compose(&p.inverse().unwrap()).unwrap(), identity(&top));
        assert_eq!(p.inverse().unwrap().compose(&p).unwrap(), identity(p.domain()));
        assert_eq!(f.inverse().is_ok(), f.is_isomorphism());
        assert_eq!(f.is_isomorphism(), f.domain().len() == f.codomain().len() && f.is_injective());
    }
}

//! The theorems that relate an operation on morphisms to one on layouts, each on a hundred thousand
//! random morphisms: the layouts agree with those of the algebra, and with the definition at every
//! index.

use crate::morphism::random::{Random, canonical, encoded, observable, same, value};
use tilewright_layout::morphism::TupleMorphism;

const CASES: u64 = 100_000;

#[test]
fn theorem_b_composition() {
    let mut random = Random(11);
    for _ in 0..CASES {
        let top = random.tuple(5, 1, 96);
        let above = random.morphism(&top, 2, false);
        let below = random.morphism(above.domain(), 2, false);
        let g = random.nest(&above, None);
        let f = random.nest(&below, Some(&g.domain()));
        let both = g.compose(&f).unwrap();
        let (composite, outer, inner) = (encoded(&both), encoded(&g), encoded(&f));
        assert_eq!(observable(&composite), outer.compose_within(&inner).unwrap(), "{g} after {f}");
        for index in 0..inner.size() {
            assert_eq!(value(&composite, index), value(&outer, value(&inner, index)));
        }
    }
}

#[test]
fn theorem_c_coalesce() {
    let mut random = Random(12);
    for _ in 0..CASES {
        let codomain = random.tuple(6, 1, 128);
        let mut flat = random.morphism(&codomain, 2, false);
        if random.below(2) == 0 {
            flat = flat.sort();
        }
        let f = random.nest(&flat, None);
        let (layout, merged) = (encoded(&f), f.coalesce().unwrap());
        assert_eq!(encoded(&merged), layout.coalesce().unwrap(), "{f}");
        assert!(same(&encoded(&merged), &layout));
        // In Tuple, where the empty tuple is the coalesced form of size 1.
        let short = flat.coalesce().unwrap();
        assert!(short.is_coalesced() && short.coalesce().unwrap() == short, "{flat} to {short}");
        assert_eq!(flat.is_coalesced(), short.domain() == flat.domain());
        let strong = flat.coalesce_strongly().unwrap();
        assert_eq!(strong.encoded_layout().unwrap(), short.encoded_layout().unwrap());
        assert_eq!(strong.codomain_size().unwrap(), flat.codomain_size().unwrap());
        assert_eq!(strong.coalesce_strongly().unwrap(), strong);
    }
}

#[test]
fn theorem_d_complement() {
    let mut random = Random(13);
    for _ in 0..CASES {
        let codomain = random.tuple(6, 1, 128);
        let flat = random.morphism(&codomain, 0, true);
        let f = random.nest(&flat, None);
        let rest = f.complement().unwrap();
        let size = flat.codomain_size().unwrap();
        let (layout, free) = (encoded(&f), encoded(&rest));
        assert_eq!(canonical(&free), canonical(&layout.complement(&size).unwrap()), "{f}");
        // By the definition: beside each other they are every offset below the size, once.
        let mut seen = vec![false; size as usize];
        for index in 0..layout.size() * free.size() {
            let offset = value(&layout, index % layout.size()) + value(&free, index / layout.size());
            assert!(!std::mem::replace(&mut seen[offset as usize], true));
        }
        assert!(seen.iter().all(|seen| *seen));
        assert!(f.is_complementary_to(&rest) && flat.is_complementary_to(rest.flatten()));
        assert_eq!(rest.flatten().complement().unwrap(), flat.sort());
        // Any complement is this one when sorted.
        let order = random.order(rest.flatten().domain().len());
        let shuffled = TupleMorphism::new(
            order.iter().map(|entry| rest.flatten().domain()[*entry]),
            codomain.iter().copied(),
            order.iter().map(|entry| rest.map().image(*entry)),
        );
        let shuffled = shuffled.unwrap();
        assert!(flat.is_complementary_to(&shuffled));
        assert_eq!(&shuffled.sort(), rest.flatten());
    }
}

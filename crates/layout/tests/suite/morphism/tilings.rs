//! Theorems E and F: logical division and logical product of morphisms are those of layouts, each
//! on a hundred thousand random morphisms.

use crate::morphism::random::{Random, canonical, encoded, observable, value};
use tilewright_layout::Tiler;
use tilewright_layout::morphism::NestMorphism;

const CASES: u64 = 100_000;

#[test]
fn theorem_e_division() {
    let mut random = Random(14);
    for _ in 0..CASES {
        let top = random.tuple(5, 1, 96);
        let above = random.morphism(&top, 1, false);
        let below = random.morphism(above.domain(), 0, true);
        let f = random.nest(&above, None);
        let g = random.nest(&below, Some(&f.domain()));
        let divided = f.logical_divide(&g).unwrap();
        let (layout, tile) = (encoded(&f), encoded(&g));
        let expected = layout.logical_divide(&Tiler::Layout(tile.clone())).unwrap();
        assert_eq!(canonical(&encoded(&divided)), canonical(&expected), "{f} by {g}");
        assert_eq!(encoded(&divided).rank(), 2);
        // By the definition: the first mode is the layout after the tile, and no element is lost.
        for index in 0..tile.size() {
            assert_eq!(value(&encoded(&divided), index), value(&layout, value(&tile, index)));
        }
        let mut offsets: Vec<i64> = (0..layout.size()).map(|index| value(&layout, index)).collect();
        let mut found: Vec<i64> = (0..layout.size()).map(|index| value(&encoded(&divided), index)).collect();
        offsets.sort();
        found.sort();
        assert_eq!(offsets, found);
        assert_eq!(above.flat_divide(&below).unwrap(), divided.flatten().clone());
    }
}

#[test]
fn theorem_f_product() {
    let mut random = Random(15);
    for _ in 0..CASES {
        let top = random.tuple(6, 2, 128);
        let flat = random.morphism(&top, 0, true);
        let free = flat.complement().unwrap();
        let copies = random.morphism(free.domain(), 1, false);
        let f = random.nest(&flat, None);
        let begins = NestMorphism::from(free.clone()).domain();
        let g = random.nest(&copies, Some(&begins));
        let product = f.logical_product(&g).unwrap();
        let (block, tile) = (encoded(&f), encoded(&g));
        let expected = block.logical_product(&Tiler::Layout(tile)).unwrap();
        assert_eq!(observable(&encoded(&product)), observable(&expected), "{f} times {g}");
        // By the definition: (f, f^c o g).
        let free = free.encoded_layout().unwrap();
        for index in 0..block.size() * copies.size() {
            let copy = value(&copies.encoded_layout().unwrap(), index / block.size());
            assert_eq!(value(&encoded(&product), index), value(&block, index % block.size()) + value(&free, copy));
        }
        assert_eq!(flat.flat_product(&copies).unwrap(), product.flatten().clone());
        // (f * g)^c = f^c o g^c for an injective g.
        if copies.is_injective() {
            let rest = flat.complement().unwrap().compose(&copies.complement().unwrap()).unwrap();
            assert_eq!(product.flatten().complement().unwrap(), rest);
        }
    }
}

#[test]
fn the_product_is_associative() {
    let mut random = Random(16);
    for _ in 0..CASES {
        let top = random.tuple(6, 2, 400);
        let f = random.morphism(&top, 0, true);
        let g = random.morphism(f.complement().unwrap().domain(), 0, true);
        let h = random.morphism(g.complement().unwrap().domain(), 1, false);
        let left = f.flat_product(&g).unwrap().flat_product(&h).unwrap();
        assert_eq!(left, f.flat_product(&g.flat_product(&h).unwrap()).unwrap());
    }
}

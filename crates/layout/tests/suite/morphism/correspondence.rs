//! Theorem A: non-degenerate tractable layouts and non-degenerate standard morphisms correspond one
//! to one. On every layout and every morphism of a bounded set, and on random nested ones.

use std::collections::HashSet;

use crate::morphism::random::{Random, observable, same, value};
use tilewright_layout::morphism::{NestMorphism, TupleMorphism, is_tractable, standard_representation};
use tilewright_layout::{Layout, Leaf, Tree};

/// Whether a layout is tractable, by the closed form: among the moving modes each pair, smaller
/// stride first, divides. No code of the library.
fn tractable(layout: &Layout) -> bool {
    let modes: Vec<Leaf> = layout.leaves().iter().copied().filter(|leaf| leaf.extent > 1 && leaf.stride != 0).collect();
    modes.iter().enumerate().all(|(at, a)| {
        a.stride > 0
            && modes[at + 1..].iter().all(|b| {
                let (low, high) = if (a.stride, a.extent) <= (b.stride, b.extent) { (a, b) } else { (b, a) };
                high.stride % (low.stride * low.extent) == 0
            })
    })
}

/// Every flat layout of `rank` modes with extents up to 4 and strides up to `stride`.
fn layouts(rank: usize, stride: i64) -> Vec<Layout> {
    let mut all: Vec<Vec<Leaf>> = vec![vec![]];
    for _ in 0..rank {
        all = all
            .iter()
            .flat_map(|leaves| {
                (1..=4).flat_map(move |extent| {
                    (0..=stride).map(move |stride| {
                        let mut leaves = leaves.clone();
                        leaves.push(Leaf { extent, stride });
                        leaves
                    })
                })
            })
            .collect();
    }
    all.into_iter().map(|leaves| Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap()).collect()
}

#[test]
fn every_tractable_layout_of_a_bounded_set_is_encoded_by_its_standard_representation_and_no_other_is() {
    let (mut seen, mut morphisms) = (0, HashSet::new());
    for layout in (0..=1).flat_map(|rank| layouts(rank, 64)).chain(layouts(2, 24)).chain(layouts(3, 12)) {
        let expected = tractable(&layout);
        assert_eq!(is_tractable(&layout), expected, "{layout}");
        assert_eq!(layout.is_tractable(), expected, "{layout}");
        let standard = standard_representation(&layout);
        assert_eq!(standard.is_ok(), expected);
        let Ok(f) = standard else { continue };
        assert!(f.is_standard() && !f.is_degenerate(), "{layout} by {f}");
        assert_eq!(f.encoded_layout().unwrap(), observable(&layout));
        if observable(&layout) == layout {
            seen += 1;
            // Different layouts have different representations.
            assert!(morphisms.insert(f), "{layout}");
        }
    }
    assert_eq!(seen, 5_299);
}

/// Every standard non-degenerate morphism from `domain` whose codomain has a size of at most
/// `most`.
fn morphisms(domain: &[i64], most: i64, gaps: &[i64]) -> Vec<TupleMorphism> {
    // Choose the order in which entries are hit, and a gap, or none, before each.
    fn extend(
        domain: &[i64],
        most: i64,
        gaps: &[i64],
        codomain: &mut Vec<i64>,
        images: &mut Vec<Option<usize>>,
        found: &mut Vec<TupleMorphism>,
    ) {
        found.push(
            TupleMorphism::new(domain.iter().copied(), codomain.iter().copied(), images.iter().copied()).unwrap(),
        );
        for entry in 0..domain.len() {
            if images[entry].is_some() || domain[entry] == 1 {
                continue;
            }
            for gap in gaps {
                if codomain.iter().product::<i64>() * gap * domain[entry] > most {
                    continue;
                }
                let length = codomain.len();
                if *gap > 1 {
                    codomain.push(*gap);
                }
                images[entry] = Some(codomain.len());
                codomain.push(domain[entry]);
                extend(domain, most, gaps, codomain, images, found);
                images[entry] = None;
                codomain.truncate(length);
            }
        }
    }
    let mut found = Vec::new();
    extend(domain, most, gaps, &mut Vec::new(), &mut vec![None; domain.len()], &mut found);
    found
}

#[test]
fn every_standard_morphism_of_a_bounded_set_is_the_representation_of_what_it_encodes() {
    let mut count = 0;
    let mut domains: Vec<Vec<i64>> = vec![vec![]];
    for _ in 0..3 {
        let longer: Vec<Vec<i64>> =
            domains.iter().flat_map(|front| (1..=4).map(move |extent| [&front[..], &[extent]].concat())).collect();
        domains.extend(longer);
    }
    let domains: HashSet<Vec<i64>> = domains.into_iter().collect();
    for domain in &domains {
        let mut layouts = HashSet::new();
        for f in morphisms(domain, 144, &[1, 2, 3, 4, 5, 6]) {
            assert!(f.is_standard() && !f.is_degenerate(), "{f}");
            let layout = f.encoded_layout().unwrap();
            assert!(tractable(&layout), "{layout} by {f}");
            assert_eq!(standard_representation(&layout).unwrap().flatten(), &f);
            assert_eq!(f.standard_form().unwrap(), f);
            assert!(layouts.insert(layout));
            count += 1;
        }
    }
    assert_eq!((domains.len(), count), (85, 11_771));
}

#[test]
fn realisation_is_the_function_of_the_encoded_layout_and_a_functor() {
    let mut random = Random(1);
    for _ in 0..100_000 {
        let codomain = random.tuple(5, 1, 240);
        let middle = random.morphism(&codomain, 2, false);
        let f = random.morphism(middle.domain(), 2, false);
        let encoded = f.encoded_layout().unwrap();
        let table = f.table().unwrap();
        assert_eq!(table.len() as i64, f.size());
        assert!(table.iter().enumerate().all(|(index, value_)| value(&encoded, index as i64) == *value_), "{f}");
        // |g o f| = |g| o |f|, and the values of f are indices of g.
        let both = middle.compose(&f).unwrap();
        for (index, between) in table.iter().enumerate() {
            assert_eq!(both.realise(index as i64).unwrap(), middle.realise(*between).unwrap(), "{middle} after {f}");
        }
        assert_eq!(
            TupleMorphism::identity(f.domain().iter().copied()).unwrap().table().unwrap(),
            (0..f.size()).collect::<Vec<_>>()
        );
    }
}

#[test]
fn nested_layouts_too() {
    let mut random = Random(2);
    for _ in 0..100_000 {
        let codomain = random.tuple(5, 1, 240);
        let flat = random.morphism(&codomain, 2, false);
        let f = random.nest(&flat, None);
        let layout = f.encoded_layout().unwrap();
        assert_eq!(layout.profile(), f.domain_profile());
        let standard = standard_representation(&layout).unwrap();
        assert!(standard.is_standard() && !standard.is_degenerate());
        assert_eq!(standard.encoded_layout().unwrap(), observable(&layout));
        assert!(same(&standard.encoded_layout().unwrap(), &layout));
        // What prints reads back.
        assert_eq!(f.to_string().parse::<NestMorphism>().unwrap(), f);
        assert_eq!(standard.to_string().parse::<NestMorphism>().unwrap(), standard);
    }
}

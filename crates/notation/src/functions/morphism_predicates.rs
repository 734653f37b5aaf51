//! Predicates of morphisms, and the morphisms that exist for every tuple.

use tilewright_layout::morphism::NestMorphism;

use super::morphisms::morphism;
use super::{Function, function};

pub(super) const MORPHISMS: &[Function] = &[
    function("identity(S)", "the morphism of a tuple that maps each entry to itself")
        .example("identity((4,(2,3)))", "(4,(2,3)) -> (4,(2,3)) : (1,(2,3))")
        .run(1..=1, |a| Ok(NestMorphism::identity(&a.integer_shape(0)?)?.into())),
    function("inclusion(S, T)", "the morphism of S into T, whose first leaves are those of S")
        .example("inclusion((6,(2,3)), ((6,2),3,6))", "(6,(2,3)) -> ((6,2),3,6) : (1,(2,3))")
        .run(2..=2, |a| {
            let (first, whole) = (a.integer_shape(0)?, a.integer_shape(1)?);
            if !whole.leaves().starts_with(first.leaves()) {
                return a.kind(1, "a tuple whose first leaves are those of the first argument");
            }
            Ok(NestMorphism::new(&first, &whole, (0..first.leaves().len()).map(Some))?.into())
        }),
    function("divides(g, f)", "whether the codomain of g is the domain of f and no entry of g maps to the base point, so that logical_divide(f, g) exists")
        .example("divides((8) -> (4,8) : (2), (4,8) -> (8,4) : (2,1))", "true")
        .run(2..=2, |a| Ok(morphism(&a, 0)?.divides(morphism(&a, 1)?).into())),
    function("is_product_admissible(f, g)", "whether the codomain of g is the entries outside of the image of f, so that logical_product(f, g) exists")
        .example("is_product_admissible((2,2) -> (2,3,2,5) : (1,3), 5 -> (3,5) : 2)", "true")
        .run(2..=2, |a| Ok(morphism(&a, 0)?.is_product_admissible(morphism(&a, 1)?).into())),
    function("is_standard(f)", "whether the codomain has no superfluous entry, so that f is the standard morphism of its layout")
        .example("is_standard((4,5) -> (4,2,8,5,7) : (1,4))", "false")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.is_standard().into())),
    function("is_degenerate(f)", "whether an entry 1 maps to an entry: its stride cannot be observed")
        .example("is_degenerate((4,1) -> (4,1) : (1,2))", "true")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.is_degenerate().into())),
    function("is_sorted(f)", "whether the domain is in the order of the codomain, entries that map to the base point first")
        .example("is_sorted((4,5) -> (5,4) : (2,1))", "false")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.flatten().is_sorted().into())),
    function("is_coalesced(f)", "whether no entry is 1 and no two adjacent entries are contiguous, so that the encoded layout is coalesced")
        .example("is_coalesced((2,3) -> (2,3) : (1,2))", "false")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.flatten().is_coalesced().into())),
    function("is_complementary(f, g)", "whether the images of two morphisms together are a permutation of their common codomain")
        .example("is_complementary((2,2) -> (5,2,3,2) : (4,2), (5,3) -> (5,2,3,2) : (1,3))", "true")
        .run(2..=2, |a| Ok(morphism(&a, 0)?.is_complementary_to(morphism(&a, 1)?).into())),
];

//! Properties of layouts as functions.

use super::{Function, function};

pub(super) const PREDICATES: &[Function] = &[
    function("is_injective(A)", "whether different coordinates have different offsets")
        .example("is_injective((2,2):(2,3))", "true")
        .run(1..=1, |a| Ok(a.layout(0)?.is_injective()?.into())),
    function("is_surjective(A)", "whether the offsets are exactly those from 0 up to the cosize: none missing, none negative")
        .example("is_surjective((2,4):(1,2))", "true")
        .run(1..=1, |a| Ok(a.layout(0)?.is_surjective()?.into())),
    function("is_bijective(A)", "whether the offsets are those from 0 up to the size, each once")
        .example("is_bijective((4,3):(3,1))", "true")
        .run(1..=1, |a| Ok(a.layout(0)?.is_bijective()?.into())),
    function("is_compact(A)", "whether the memory has no holes and no shared elements: the same as is_bijective")
        .example("is_compact((4,3):(3,1))", "true")
        .run(1..=1, |a| Ok(a.layout(0)?.is_compact()?.into())),
    function("is_contiguous(A)", "whether the offsets form an interval without a hole")
        .example("is_contiguous((2,4):(1,2))", "true")
        .run(1..=1, |a| Ok(a.layout(0)?.is_contiguous()?.into())),
    function("is_ordered(A)", "whether the offsets increase strictly with the index")
        .example("is_ordered((4,3):(3,1))", "false")
        .run(1..=1, |a| Ok(a.layout(0)?.is_ordered()?.into())),
    function("is_tractable(A)", "whether, sorted by stride, extent * stride of each mode divides the next stride: the layouts of tuple morphisms")
        .example("is_tractable((2,2):(2,3))", "false")
        .run(1..=1, |a| Ok(a.layout(0)?.is_tractable()?.into())),
    function("image(A)", "the offsets of the layout, in increasing order")
        .example("image((3,2):(1,4))", "(0,1,2,4,5,6)")
        .run(1..=1, |a| Ok(a.layout(0)?.image()?.into())),
    function("coshape(A)", "the shape of the codomain: the cosize, or one extent for each mode of a coordinate")
        .example("coshape((2,3):(1,4))", "10")
        .run(1..=1, |a| Ok(a.layout(0)?.coshape()?.into())),
];

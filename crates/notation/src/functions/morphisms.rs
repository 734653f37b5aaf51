//! Layouts as morphisms of tuples. Entries are counted from 1, as in the notation of morphisms.

use tilewright_layout::morphism::{
    NestMorphism, Refinement, compose_by_refinement, mutual_refinement, refines, standard_representation,
    weak_composite,
};
use tilewright_layout::{AnyTree, Tree};

use super::{Function, MANY, Run, function, spans};
use crate::arguments::{Arguments, Fault};
use crate::value::Value;

pub(super) fn morphism<'a>(a: &Arguments<'a>, argument: usize) -> Result<&'a NestMorphism, Fault> {
    match a.get(argument) {
        Some(Value::Morphism(morphism)) => Ok(morphism),
        _ => a.kind(argument, "a morphism"),
    }
}

/// The morphism that is the only argument. Layouts may have a second argument, but morphisms have
/// none.
fn alone<'a>(a: &Arguments<'a>) -> Result<&'a NestMorphism, Fault> {
    if a.len() > 1 { a.kind(1, "nothing, for a morphism") } else { morphism(a, 0) }
}

/// The entry numbers in the arguments from the second on.
fn places(a: &Arguments<'_>) -> Result<Vec<usize>, Fault> {
    let place = |argument: usize| match a.get(argument) {
        Some(Value::Int(place)) => match usize::try_from(*place).ok().and_then(|place| place.checked_sub(1)) {
            Some(place) => Ok(place),
            None => a.kind(argument, "a place, counted from 1"),
        },
        _ => a.kind(argument, "a place, counted from 1"),
    };
    (1..a.len()).map(place).collect()
}

/// The realisation at an index or a coordinate.
pub(super) fn realised(f: &NestMorphism, at: &Value) -> Result<Value, Fault> {
    match at {
        Value::Int(index) => Ok(f.realise(*index)?.into()),
        Value::Tree(AnyTree::Integer(coordinate)) => Ok(f.realise_at(coordinate)?.into()),
        _ => Err(Fault::Kind { argument: 1, wanted: "an index or a coordinate of known numbers" }),
    }
}

/// The composition `g` after `f`.
pub(super) fn composition(a: Arguments<'_>) -> Result<Value, Fault> {
    Ok(morphism(&a, 0)?.compose(morphism(&a, 1)?)?.into())
}

/// The variant of a function of layouts for a morphism, if there is one.
pub(crate) fn of_morphism(function: &str) -> Option<Run> {
    Some(match function {
        "composition" => composition,
        "coalesce" => |a| Ok(alone(&a)?.coalesce()?.into()),
        "complement" => |a| Ok(alone(&a)?.complement()?.into()),
        "logical_divide" => |a| Ok(morphism(&a, 0)?.logical_divide(morphism(&a, 1)?)?.into()),
        "logical_product" => |a| Ok(morphism(&a, 0)?.logical_product(morphism(&a, 1)?)?.into()),
        "flatten" => |a| Ok(NestMorphism::from(alone(&a)?.flatten().clone()).into()),
        "size" => |a| Ok(alone(&a)?.size().into()),
        "is_injective" => |a| Ok(alone(&a)?.flatten().is_injective().into()),
        "equivalent" => |a| {
            let (f, g) = (morphism(&a, 0)?.encoded_layout()?, morphism(&a, 1)?.encoded_layout()?);
            Ok(f.equivalent(&g).into())
        },
        "sum" => |a| {
            let first = morphism(&a, 0)?.clone();
            let all = (1..a.len()).try_fold(first, |sum, next| Ok::<_, Fault>(sum.sum(morphism(&a, next)?)?));
            Ok(all?.into())
        },
        _ => return None,
    })
}

pub(super) const MORPHISMS: &[Function] = &[
    function("morphism(A)", "the standard morphism of tuples that encodes a layout")
        .example("morphism((2,2):(5,50))", "(2,2) -> (5,2,5,2) : (2,4)")
        .run(1..=1, |a| Ok(standard_representation(&*a.integer_layout(0)?)?.into())),
    function("encoded(f)", "the layout that a morphism or a span encodes")
        .example("encoded((4,5) -> (4,16,5) : (1,3))", "(4,5):(1,64)")
        .run(1..=1, |a| match spans::encoded(&a) {
            Some(layout) => layout,
            None => Ok(morphism(&a, 0)?.encoded_layout()?.into()),
        }),
    function(
        "standard_form(f)",
        "the morphism that encodes the same layout, with no superfluous entry in its codomain",
    )
    .example("standard_form((4,5) -> (4,2,8,5,7) : (1,4))", "(4,5) -> (4,16,5) : (1,3)")
    .run(1..=1, |a| Ok(morphism(&a, 0)?.standard_form()?.into())),
    function(
        "mutual_refinement(S, T)",
        "S and T refined such that the leaves of the first are the first leaves of the second",
    )
    .example("mutual_refinement((6,6), (12,3,6))", "((6,(2,3)),((6,2),3,6))")
    .run(2..=2, |a| {
        let mutual = mutual_refinement(&a.integer_shape(0)?, &a.integer_shape(1)?)?;
        Ok(Tree::tuple([mutual.first().fine(), mutual.second().fine()])?.into())
    }),
    function("refines(S, T)", "whether S is T with entries replaced by tuples of the same size")
        .example("refines(((2,3),4), (6,4))", "true")
        .run(2..=2, |a| Ok(refines(&a.integer_shape(0)?, &a.integer_shape(1)?).into())),
    function("pullback(f, T)", "f with its codomain refined to T, and its domain accordingly")
        .example("pullback((6,4) -> (4,6,6) : (2,*), (4,(2,3),6))", "((2,3),4) -> (4,(2,3),6) : ((2,3),*)")
        .run(2..=2, |a| {
            let f = morphism(&a, 0)?;
            Ok(f.pullback(&Refinement::new(&a.integer_shape(1)?, &f.codomain())?)?.morphism.into())
        }),
    function("pushforward(f, S)", "f with its domain refined to S, and its codomain accordingly")
        .example("pushforward((12,3) -> (3,12) : (2,1), ((6,2),3))", "((6,2),3) -> (3,(6,2)) : ((2,3),1)")
        .run(2..=2, |a| {
            let f = morphism(&a, 0)?;
            Ok(f.pushforward(&Refinement::new(&a.integer_shape(1)?, &f.domain())?)?.morphism.into())
        }),
    function(
        "weak_composite(g, f)",
        "g after f, both refined until codomain and domain match: the function of the composition, with more modes",
    )
    .example(
        "weak_composite((12,3,6) -> (12,6,3) : (1,3,2), (6,6) -> (6,6) : (1,2))",
        "(6,(2,3)) -> ((6,2),6,3) : (1,(2,4))",
    )
    .run(2..=2, |a| Ok(weak_composite(morphism(&a, 0)?, morphism(&a, 1)?)?.into())),
    function(
        "composition_by_refinement(A, B)",
        "A after B by mutual refinement of their morphisms; refused where that does not apply, though A o B may exist",
    )
    .example("composition_by_refinement((12,3,6):(1,72,12), (6,6):(1,6))", "(6,(2,3)):(1,(6,72))")
    .run(2..=2, |a| Ok(compose_by_refinement(&*a.integer_layout(0)?, &*a.integer_layout(1)?)?.into())),
    function("concat(f, g)", "the sum of two morphisms into one tuple with disjoint images")
        .example("concat((4) -> (4,2,8) : (1), (8) -> (4,2,8) : (3))", "((4),(8)) -> (4,2,8) : ((1),(3))")
        .run(2..=2, |a| Ok(morphism(&a, 0)?.concat(morphism(&a, 1)?)?.into())),
    function("restrict(f, place...)", "a morphism on some of the entries of its domain, which keep their nesting")
        .example("restrict((4,5) -> (4,7,5) : (1,3), 2)", "(5) -> (4,7,5) : (3)")
        .run(1..=MANY, |a| Ok(morphism(&a, 0)?.restrict(&places(&a)?)?.into())),
    function("factorise(f, place...)", "a morphism into some of the entries of its codomain, which include its image")
        .example("factorise((4,5) -> (4,7,5) : (1,3), 1, 3)", "(4,5) -> (4,5) : (1,2)")
        .run(1..=MANY, |a| Ok(morphism(&a, 0)?.factorise(&places(&a)?)?.into())),
    function("domain(f)", "the domain of a morphism")
        .example("domain(((2,2),3) -> (5,2,2,3) : ((2,*),4))", "((2,2),3)")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.domain().into())),
    function("codomain(f)", "the codomain of a morphism")
        .example("codomain(((2,2),3) -> (5,2,2,3) : ((2,*),4))", "(5,2,2,3)")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.codomain().into())),
    function("squeeze(f)", "a morphism without the entries 1 of its domain and codomain")
        .example("squeeze(((1,4),1) -> (4,2,1) : ((*,1),3))", "((4)) -> (4,2) : ((1))")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.squeeze()?.into())),
    function("sort(f)", "a morphism with its domain, as a flat tuple, in the order of its codomain")
        .example("sort((2,(3,5)) -> (5,3,2) : (3,(2,1)))", "(5,3,2) -> (5,3,2) : (1,2,3)")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.sort()?.into())),
    function("is_isomorphism(f)", "whether a morphism is a permutation of entries, so that it has an inverse")
        .example("is_isomorphism((4,5) -> (5,4) : (2,1))", "true")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.is_isomorphism().into())),
    function("inverse(f)", "the inverse of a morphism that is a permutation of entries")
        .example("inverse((4,5) -> (5,4) : (2,1))", "(5,4) -> (4,5) : (2,1)")
        .run(1..=1, |a| Ok(morphism(&a, 0)?.inverse()?.into())),
];

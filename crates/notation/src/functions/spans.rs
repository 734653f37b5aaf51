//! Refinements, factorisations and spans as values.
//!
//! A refinement is its finer tuple: `((2,3),4)` refines the sizes of its modes, `(6,4)`. A
//! factorisation is one of depth 2. A span `U <- X -> V` is the list of a refinement of `U` whose
//! leaves are `X` and a morphism from `X`.

use tilewright_layout::morphism::{NestMorphism, Ref, Span};
use tilewright_layout::{AnyLayout, AnyTree, Tree};

use super::{Function, function};
use crate::arguments::{Arguments, Fault};
use crate::reading::integer_tree;
use crate::value::{Value, list_of};

/// A tuple as a refinement.
fn refinement(a: &Arguments<'_>, argument: usize) -> Result<Ref, Fault> {
    Ok(Ref::new(a.integer_shape(argument)?)?)
}

/// A value as a span: a span itself, a morphism, or a refinement.
fn span(a: &Arguments<'_>, argument: usize) -> Result<Span<Ref>, Fault> {
    const WANTED: &str = "a span: (refinement, morphism), a morphism, or a refinement";
    match a.get(argument) {
        Some(Value::List(parts)) => match parts.as_slice() {
            [back, Value::Morphism(forward)] => match integer_tree(back) {
                Some(tree) => Ok(Span::new(Ref::new(tree)?, forward.flatten().clone())?),
                None => a.kind(argument, WANTED),
            },
            _ => a.kind(argument, WANTED),
        },
        Some(Value::Morphism(forward)) => Ok(Span::of_nest(forward)?),
        Some(Value::Tree(AnyTree::Integer(tree))) => Ok(Span::of_back(Ref::new(tree.clone())?)?),
        _ => a.kind(argument, WANTED),
    }
}

fn pair(span: &Span<Ref>) -> Result<Value, Fault> {
    Ok(list_of(vec![span.back().tree().clone().into(), NestMorphism::from(span.forward().clone()).into()])?)
}

/// The layout that a span encodes; None if the argument is not a span.
pub(super) fn encoded(a: &Arguments<'_>) -> Option<Result<Value, Fault>> {
    matches!(a.get(0), Some(Value::List(_))).then(|| Ok(span(a, 0)?.encoded_layout()?.into()))
}

pub(super) const SPANS: &[Function] = &[
    function("graft(S, T)", "the refinement S with its leaves split into the modes of T of the same sizes")
        .example("graft((6,(4,4)), ((2,3),4,(2,2)))", "((2,3),(4,(2,2)))")
        .run(2..=2, |a| Ok(refinement(&a, 0)?.compose(&refinement(&a, 1)?)?.tree().clone().into())),
    function("factorisation(S)", "the factorisation below a refinement: the leaves of each mode, without their nesting")
        .example("factorisation(((2,(3,5)),4))", "((2,3,5),4)")
        .run(1..=1, |a| Ok(Ref::from_fact(&refinement(&a, 0)?.to_fact()?)?.tree().clone().into())),
    function("refined_sizes(S)", "the coarser tuple of a refinement: the sizes of its modes")
        .example("refined_sizes(((2,(3,5)),4))", "(30,4)")
        .run(1..=1, |a| Ok(Tree::flat(refinement(&a, 0)?.codomain().iter().copied())?.into())),
    function("span(A)", "a layout, a morphism or a refinement as a span: the sizes of the modes split into leaves, and the map of the leaves")
        .example("span(((2,2),3):((6,1),2))", "(((2,2),3),(2,2,3) -> (2,3,2) : (3,1,2))")
        .run(1..=1, |a| match a.get(0) {
            Some(Value::Layout(AnyLayout::Integer(layout))) => pair(&Span::of_layout(layout)?),
            _ => pair(&span(&a, 0)?),
        }),
    function("span_composition(s, t)", "s after t: the morphism of t pulled back along the refinement of s")
        .example("span_composition((4,(2,3)), (4,6) -> (4,6) : (1,2))", "((4,(2,3)),(4,2,3) -> (4,2,3) : (1,2,3))")
        .run(2..=2, |a| pair(&span(&a, 0)?.compose(&span(&a, 1)?)?)),
    function("span_sum(s, t)", "the sum of two spans")
        .example("span_sum((4,(2,3)), (5) -> (5) : (1))", "((4,(2,3),5),(4,2,3,5) -> (4,2,3,5) : (1,2,3,4))")
        .run(2..=2, |a| pair(&span(&a, 0)?.sum(&span(&a, 1)?)?)),
];

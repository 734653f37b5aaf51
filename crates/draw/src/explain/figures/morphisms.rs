//! Pictures of operations on morphisms.

use crate::{self as draw, DrawError, Figure};
use tilewright_layout::morphism::{
    MorphismError, MutualRefinement, NestMorphism, Refinement, Square, WorkedComposition,
};
use tilewright_layout::{Layout, Tree};
use tilewright_notation::Value;

use crate::explain::map::plain;

/// The pictures of an operation on morphisms, or of one that uses them. Squares and refinements
/// have pictures of their own; the others show the operands and the result. The morphism that is
/// applied first is drawn first.
pub fn operation(
    function: &str,
    arguments: &[Value],
    result: Option<&Value>,
) -> Option<Result<Figure<'static>, DrawError>> {
    match (function, arguments) {
        ("pullback" | "pushforward", [Value::Morphism(f), along]) => {
            Some(draw::square(&square(function, f, &tuple(along)?)?.ok()?))
        }
        ("mutual_refinement", [first, second]) => {
            Some(draw::mutual_refinement(&MutualRefinement::new(&tuple(first)?, &tuple(second)?).ok()?))
        }
        ("composition_by_refinement", [outer, inner]) => {
            Some(draw::worked_composition(&WorkedComposition::new(&plain(outer)?, &plain(inner)?).ok()?))
        }
        _ => {
            let drawn = |value: &Value| match value {
                Value::Morphism(f) => Some(draw::morphism(f)),
                _ => None,
            };
            let beside = |left: Result<Figure<'static>, _>, right: Result<Figure<'static>, _>| Ok(left?.beside(right?));
            let mut before: Vec<_> = arguments.iter().filter_map(drawn).collect();
            if matches!(function, "composition" | "weak_composite") {
                before.reverse();
            }
            let before = before.into_iter().reduce(beside);
            match (before, result.and_then(drawn)) {
                (Some(before), Some(after)) => Some(before.and_then(|before| Ok(before.followed_by(after?)))),
                (before, after) => before.or(after),
            }
        }
    }
}

/// The pullback or pushforward of a morphism along a tuple; None for another function.
pub fn square(function: &str, f: &NestMorphism, fine: &Tree<i64>) -> Option<Result<Square, MorphismError>> {
    match function {
        "pullback" => Some(Refinement::new(fine, &f.codomain()).and_then(|along| f.pullback(&along))),
        "pushforward" => Some(Refinement::new(fine, &f.domain()).and_then(|along| f.pushforward(&along))),
        _ => None,
    }
}

/// The tuple that a value is, or the shape of a layout.
pub fn tuple(value: &Value) -> Option<Tree<i64>> {
    match value {
        Value::Layout(layout) => layout.integer().map(Layout::shape),
        value => value.integer_tree(),
    }
}

//! Comparisons of values, shapes and coordinates.

use tilewright_layout::{LayoutError, Stride, Truth};

use super::{Function, function, numeric};
use crate::arguments::{Arguments, Fault};
use crate::reading::launch_tree;
use crate::value::Value;

/// Whether two values are equal; the stride of a mode with extent 1 does not matter.
fn equal(a: &Arguments<'_>) -> Truth {
    let (Some(first), Some(second)) = (a.get(0), a.get(1)) else { return Truth::Refuted };
    match (first, second) {
        (Value::Layout(x), Value::Layout(y)) => x.same_modes(y),
        _ => match (launch_tree(first), launch_tree(second)) {
            (Some(x), Some(y)) if x.profile() == y.profile() => {
                let pairs = x.leaves().iter().zip(y.leaves());
                pairs.fold(Truth::Proved, |truth, (x, y)| match (truth, x.same(y)) {
                    (Truth::Refuted, _) | (_, Truth::Refuted) => Truth::Refuted,
                    (Truth::Proved, Truth::Proved) => Truth::Proved,
                    _ => Truth::Open,
                })
            }
            _ => Truth::from(first == second),
        },
    }
}

/// The answer to a question about numbers with parameters; an error if it is undecided.
fn answer(a: &Arguments<'_>, truth: Truth) -> Result<bool, Fault> {
    match truth {
        Truth::Proved => Ok(true),
        Truth::Refuted => Ok(false),
        Truth::Open => {
            let values: Vec<String> = a.values.iter().map(Value::to_string).collect();
            let fact = format!("{}({}) holds", a.function, values.join(", "));
            Err(Fault::Refused(LayoutError::unknown(a.function, &fact)))
        }
    }
}

pub(super) const EQUALITY: &[Function] = &[
    function("equal(a, b)", "whether two values are equal, ignoring strides of modes of extent 1")
        .example("equal((4,1):(1,0), (4,1):(1,7))", "true")
        .run(2..=2, |a| Ok(answer(&a, equal(&a))?.into())),
    function("equivalent(A, B)", "whether two layouts are the same function of an index")
        .example("equivalent((2,4):(1,2), 8:1)", "true")
        .run(2..=2, |a| Ok(answer(&a, a.layout(0)?.same_function(&*a.layout(1)?)?)?.into())),
    function("congruent(a, b)", "whether two shapes have the same nesting")
        .example("congruent((4,(2,3)), (1,(5,7)))", "true")
        .run(2..=2, |a| Ok((a.profile(0)? == a.profile(1)?).into())),
    function("weakly_congruent(a, b)", "whether b has the nesting of a, or a deeper one")
        .example("weakly_congruent((4,6), (1,(5,7)))", "true")
        .run(2..=2, |a| Ok(a.profile(0)?.weakly_congruent(&a.profile(1)?).into())),
    function("compatible(a, b)", "whether each extent of a is the product of the corresponding mode of b")
        .example("compatible((4,6), (4,(2,3)))", "true")
        .run(2..=2, |a| numeric!(a, a.shapes(0, 1)?, (x, y) => answer(&a, x.compatible(&y))?)),
    function("evenly_divides(a, tiler)", "whether tiles of these extents cover the shape a without crossing its end")
        .example("evenly_divides((8,6,5), (4,3))", "true")
        .run(2..=2, |a| numeric!(a, a.shapes(0, 1)?, (x, y) => answer(&a, x.evenly_divides(&y)?)?)),
];

pub(super) const ORDER: &[Function] = &[
    function("elem_less(a, b)", "whether every number of a is less than the corresponding one of b")
        .example("elem_less((3,(1,2)), (4,(2,3)))", "true")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.elem_less(&y))?)),
    function("elem_leq(a, b)", "whether every number of a is at most the corresponding one of b")
        .example("elem_leq((3,(1,2)), (4,(2,3)))", "true")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.elem_leq(&y))?)),
    function("elem_gtr(a, b)", "whether every number of a is greater than the corresponding one of b")
        .example("elem_gtr((3,(1,2)), (4,(2,3)))", "false")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.elem_gtr(&y))?)),
    function("elem_geq(a, b)", "whether every number of a is at least the corresponding one of b")
        .example("elem_geq((3,(1,2)), (4,(2,3)))", "false")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.elem_geq(&y))?)),
    function("lex_less(a, b)", "whether a < b in lexicographic order, the first mode most significant")
        .example("lex_less((1,5), (2,0))", "true")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.lex_less(&y))?)),
    function("lex_leq(a, b)", "whether a <= b in lexicographic order, the first mode most significant")
        .example("lex_leq((1,5), (2,0))", "true")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.lex_leq(&y))?)),
    function("lex_gtr(a, b)", "whether a > b in lexicographic order, the first mode most significant")
        .example("lex_gtr((1,5), (2,0))", "false")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.lex_gtr(&y))?)),
    function("lex_geq(a, b)", "whether a >= b in lexicographic order, the first mode most significant")
        .example("lex_geq((1,5), (2,0))", "false")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.lex_geq(&y))?)),
    function("colex_less(a, b)", "whether a < b in colexicographic order, the last mode most significant")
        .example("colex_less((1,5), (2,0))", "false")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.colex_less(&y))?)),
    function("colex_leq(a, b)", "whether a <= b in colexicographic order, the last mode most significant")
        .example("colex_leq((1,5), (2,0))", "false")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.colex_leq(&y))?)),
    function("colex_gtr(a, b)", "whether a > b in colexicographic order, the last mode most significant")
        .example("colex_gtr((1,5), (2,0))", "true")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.colex_gtr(&y))?)),
    function("colex_geq(a, b)", "whether a >= b in colexicographic order, the last mode most significant")
        .example("colex_geq((1,5), (2,0))", "true")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.colex_geq(&y))?)),
];

//! Comparisons of values, shapes and coordinates.

use tilewright_layout::{LayoutError, Stride, Truth};

use super::{Function, numeric};
use crate::arguments::{Arguments, Fault};
use crate::reading::launch_tree;
use crate::value::Value;

const EQUALITY: &str = "Equality and fit";
const ORDER: &str = "Orders of coordinates";

/// Whether two values are the same; the stride of an extent of 1 cannot be observed.
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

/// The answer to a question about numbers that may not be known.
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

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "equal",
        signature: "equal(a, b)",
        summary: "whether two values are equal, ignoring strides of modes of extent 1",
        example: "equal((4,1):(1,0), (4,1):(1,7))",
        result: "true",
        section: EQUALITY,
        least: 2,
        most: 2,
        run: |a| Ok(answer(&a, equal(&a))?.into()),
    },
    Function {
        name: "equivalent",
        signature: "equivalent(A, B)",
        summary: "whether two layouts are the same function of an index",
        example: "equivalent((2,4):(1,2), 8:1)",
        result: "true",
        section: EQUALITY,
        least: 2,
        most: 2,
        run: |a| Ok(answer(&a, a.layout(0)?.same_function(&*a.layout(1)?)?)?.into()),
    },
    Function {
        name: "congruent",
        signature: "congruent(a, b)",
        summary: "whether two shapes have the same nesting",
        example: "congruent((4,(2,3)), (1,(5,7)))",
        result: "true",
        section: EQUALITY,
        least: 2,
        most: 2,
        run: |a| Ok((a.profile(0)? == a.profile(1)?).into()),
    },
    Function {
        name: "weakly_congruent",
        signature: "weakly_congruent(a, b)",
        summary: "whether b has the nesting of a, or a deeper one",
        example: "weakly_congruent((4,6), (1,(5,7)))",
        result: "true",
        section: EQUALITY,
        least: 2,
        most: 2,
        run: |a| Ok(a.profile(0)?.weakly_congruent(&a.profile(1)?).into()),
    },
    Function {
        name: "compatible",
        signature: "compatible(a, b)",
        summary: "whether each extent of a is the product of the corresponding mode of b",
        example: "compatible((4,6), (4,(2,3)))",
        result: "true",
        section: EQUALITY,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.shapes(0, 1)?, (x, y) => answer(&a, x.compatible(&y))?),
    },
    Function {
        name: "evenly_divides",
        signature: "evenly_divides(a, tiler)",
        summary: "whether tiles of these extents cover the shape a without crossing its end",
        example: "evenly_divides((8,6,5), (4,3))",
        result: "true",
        section: EQUALITY,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.shapes(0, 1)?, (x, y) => answer(&a, x.evenly_divides(&y)?)?),
    },
    Function {
        name: "elem_less",
        signature: "elem_less(a, b)",
        summary: "whether every number of a is less than the corresponding one of b",
        example: "elem_less((3,(1,2)), (4,(2,3)))",
        result: "true",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.elem_less(&y))?),
    },
    Function {
        name: "elem_leq",
        signature: "elem_leq(a, b)",
        summary: "whether every number of a is at most the corresponding one of b",
        example: "elem_leq((3,(1,2)), (4,(2,3)))",
        result: "true",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.elem_leq(&y))?),
    },
    Function {
        name: "elem_gtr",
        signature: "elem_gtr(a, b)",
        summary: "whether every number of a is greater than the corresponding one of b",
        example: "elem_gtr((3,(1,2)), (4,(2,3)))",
        result: "false",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.elem_gtr(&y))?),
    },
    Function {
        name: "elem_geq",
        signature: "elem_geq(a, b)",
        summary: "whether every number of a is at least the corresponding one of b",
        example: "elem_geq((3,(1,2)), (4,(2,3)))",
        result: "false",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.elem_geq(&y))?),
    },
    Function {
        name: "lex_less",
        signature: "lex_less(a, b)",
        summary: "whether a < b in lexicographic order, the first mode most significant",
        example: "lex_less((1,5), (2,0))",
        result: "true",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.lex_less(&y))?),
    },
    Function {
        name: "lex_leq",
        signature: "lex_leq(a, b)",
        summary: "whether a <= b in lexicographic order, the first mode most significant",
        example: "lex_leq((1,5), (2,0))",
        result: "true",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.lex_leq(&y))?),
    },
    Function {
        name: "lex_gtr",
        signature: "lex_gtr(a, b)",
        summary: "whether a > b in lexicographic order, the first mode most significant",
        example: "lex_gtr((1,5), (2,0))",
        result: "false",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.lex_gtr(&y))?),
    },
    Function {
        name: "lex_geq",
        signature: "lex_geq(a, b)",
        summary: "whether a >= b in lexicographic order, the first mode most significant",
        example: "lex_geq((1,5), (2,0))",
        result: "false",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.lex_geq(&y))?),
    },
    Function {
        name: "colex_less",
        signature: "colex_less(a, b)",
        summary: "whether a < b in colexicographic order, the last mode most significant",
        example: "colex_less((1,5), (2,0))",
        result: "false",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.colex_less(&y))?),
    },
    Function {
        name: "colex_leq",
        signature: "colex_leq(a, b)",
        summary: "whether a <= b in colexicographic order, the last mode most significant",
        example: "colex_leq((1,5), (2,0))",
        result: "false",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.colex_leq(&y))?),
    },
    Function {
        name: "colex_gtr",
        signature: "colex_gtr(a, b)",
        summary: "whether a > b in colexicographic order, the last mode most significant",
        example: "colex_gtr((1,5), (2,0))",
        result: "true",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.colex_gtr(&y))?),
    },
    Function {
        name: "colex_geq",
        signature: "colex_geq(a, b)",
        summary: "whether a >= b in colexicographic order, the last mode most significant",
        example: "colex_geq((1,5), (2,0))",
        result: "true",
        section: ORDER,
        least: 2,
        most: 2,
        run: |a| numeric!(a, a.tuples(0, 1)?, (x, y) => answer(&a, x.colex_geq(&y))?),
    },
];

//! What `check` says of the results of the algebra: that they keep their laws.
//!
//! A law is tested without the code that computed the result, so what fails here is a wrong result
//! or a law that asks for more than the definition.

use tilewright_draw::explain::check::{self, Answer};
use tilewright_notation::{Environment, call};

/// Maps with steps back, on the spot and past each other, and maps through others that take several
/// offsets to one, exchange them or go on from an offset.
const MAPS: [&str; 47] = [
    "4:1",
    "2:3",
    "3:0",
    "4:-1",
    "(2,2):(1,2)",
    "(2,2):(2,1)",
    "(2,3):(3,1)",
    "(2,2):(1,0)",
    "(2,2):(0,1)",
    "(2,2):(1,1)",
    "(2,2):(1,5)",
    "(2,2):(-1,4)",
    "((2,2)):((4,1))",
    "((2,2),2):((1,4),2)",
    "(4,2)",
    "4:0 o 0 o 2:1",
    "4:0 o 0 o (2,2):(1,2)",
    "(2,3):(1,0) o 0 o 2:2",
    "(2,2):(1,1) o 0 o (2,2):(1,2)",
    "(2,2):(1,1) o 0 o 4:1",
    "(2,2):(1,1) o 1 o (2,2):(2,1)",
    "(2,3):(0,1) o 2 o (2,2):(1,4)",
    "S<1,0,1> o 0 o 4:1",
    "S<1,0,1> o 0 o (2,2):(1,2)",
    "S<1,0,1> o 1 o (2,2):(2,1)",
    "S<1,0,2> o 3 o (3,2):(1,3)",
    "S<2,0,-2> o 0 o 8:1",
    "S<1,0,1> o 0 o (2,2):(1,0)",
    "S<1,0,1> o 0 o (2,2):(1,1)",
    "4:0 o 1 o S<1,0,1> o 0 o (2,2):(1,2)",
    "(2,2):(1,3) o 0 o S<1,0,1> o 0 o 4:1",
    "to_xor(S<1,0,1> o 0 o (2,2):(1,2))",
    "to_xor(4:1)",
    "to_xor((2,2):(2,1))",
    "to_xor(2:3)",
    "to_xor(S<1,0,1> o 2 o (2,2):(1,4))",
    "make_identity_layout((2,3))",
    "make_identity_layout((4))",
    "(2,2):(1@1,1@0)",
    "(2,2):(1@0,2@0)",
    "(2,(2,2)):(1@0,(1@1,2@1))",
    "[2:1;2:1]",
    "[_;2:1]",
    "[(2,2):(2,1);1:0]",
    "(2,2)",
    "S<1,0,1>",
    "1:0",
];

const OF_ONE: [&str; 8] =
    ["coalesce", "flatten", "filter", "filter_zeros", "right_inverse", "left_inverse", "nullspace", "group"];

const OF_TWO: [&str; 12] = [
    "composition",
    "layout_add",
    "logical_divide",
    "zipped_divide",
    "tiled_divide",
    "flat_divide",
    "logical_product",
    "zipped_product",
    "tiled_product",
    "flat_product",
    "blocked_product",
    "raked_product",
];

#[test]
fn right_answers_do_not_fail() {
    let mut calls: Vec<String> = Vec::new();
    for a in MAPS {
        calls.extend(OF_ONE.map(|operation| format!("{operation}({a})")));
        calls.extend([12, 16].iter().flat_map(|target| {
            ["complement", "weak_complement"].map(|operation| format!("{operation}({a}, {target})"))
        }));
        calls.extend(MAPS.iter().flat_map(|b| OF_TWO.map(|operation| format!("{operation}({a}, {b})"))));
    }
    let (mut held, mut unchecked, mut failing) = (0, 0, Vec::new());
    for text in &calls {
        // A refusal of the algebra has no law to check.
        let Ok(Some(call)) = call(text, &mut Environment::new()) else { continue };
        match check::of_call(&call).map(|finding| finding.answer) {
            Some(Answer::Holds(_)) => held += 1,
            Some(wrong) => failing.push(format!("{text} = {}: {wrong:?}", call.value)),
            None => unchecked += 1,
        }
    }
    assert!(failing.is_empty(), "{} of {}:\n{}", failing.len(), calls.len(), failing.join("\n"));
    assert!(held > 12000 && unchecked < held / 5, "{held} hold, {unchecked} have no law");
}

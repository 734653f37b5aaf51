//! Linear layouts: maps over bits whose inputs and outputs have names.

use tilewright_layout::{LinearLayout, Tree};

use super::{Function, Run, function};
use crate::arguments::{Arguments, Fault};
use crate::value::Value;

fn linear<'a>(a: &Arguments<'a>, argument: usize) -> Result<&'a LinearLayout, Fault> {
    match a.get(argument) {
        Some(Value::Linear(map)) => Ok(map),
        _ => a.kind(argument, "a linear layout"),
    }
}

/// The composition `g` after `f`.
pub(super) fn composition(a: Arguments<'_>) -> Result<Value, Fault> {
    Ok(linear(&a, 0)?.compose(linear(&a, 1)?)?.into())
}

/// The variant of a function of layouts or matrices for a linear layout, if it keeps the names.
pub(crate) fn of_linear(function: &str) -> Option<Run> {
    Some(match function {
        "composition" => composition,
        "bit_inverse" => |a| Ok(linear(&a, 0)?.invert()?.into()),
        "left_inverse" => |a| Ok(linear(&a, 0)?.left_inverse()?.into()),
        "right_inverse" => |a| Ok(linear(&a, 0)?.right_inverse()?.into()),
        "left_divide" => |a| Ok(linear(&a, 0)?.left_divide(linear(&a, 1)?)?.into()),
        "to_layout" => |a| Ok(linear(&a, 0)?.to_layout()?.into()),
        "to_composed" => |a| Ok(linear(&a, 0)?.to_composed()?.into()),
        _ => return None,
    })
}

/// The indices of the outputs, given one index for each input; the index alone if there is a single
/// output.
pub(super) fn apply(map: &LinearLayout, indices: &[i64]) -> Result<Value, Fault> {
    let wanted = Fault::Kind { argument: 1, wanted: "an index of 0 or more for each input, for a linear layout" };
    let Ok(indices) = indices.iter().map(|index| u64::try_from(*index)).collect::<Result<Vec<u64>, _>>() else {
        return Err(wanted);
    };
    // An output has at most 62 bits.
    let images = map.apply(&indices)?.into_iter().map(|index| i64::try_from(index).unwrap_or(i64::MAX));
    let images: Vec<i64> = images.collect();
    match images.as_slice() {
        [only] => Ok(Value::Int(*only)),
        _ => Ok(Tree::flat(images)?.into()),
    }
}

pub(super) const LINEAR: &[Function] = &[
    function("linear_layout(A)", "a layout, swizzled or not, as a linear layout: its modes are the inputs dim0, dim1, .., its value is the output offset")
        .example("linear_layout(S<1,0,2> o 0 o (2,4):(4,1))", "dim0=[(5)] dim1=[(1),(2)] -> offset:8")
        .run(1..=1, |a| {
            let layout = a.layout(0)?;
            let map = layout.composed()?.into_owned();
            // A number is the index of a single input, even if the layout that has the values has
            // several modes.
            let single = a.shape(0).is_ok_and(|shape| shape.is_leaf()) && !map.profile().is_leaf();
            let map = if single { map.group(0..map.rank())? } else { map };
            let names: Vec<String> = (0..map.rank()).map(|mode| format!("dim{mode}")).collect();
            Ok(LinearLayout::of_composed(names.iter().map(String::as_str), "offset", &map)?.into())
        }),
    function("pseudo_inverse(F)", "a linear layout that maps every value of F to indices with that value")
        .example("pseudo_inverse(register=[(0,1)] lane=[(1,0),(2,0)] -> row:4 column:2)", "row=[(0,1),(0,2)] column=[(1,0)] -> register:2 lane:4")
        .run(1..=1, |a| Ok(linear(&a, 0)?.pseudo_inverse().into())),
    function("linear_product(F, G)", "F on the low bits of each name and G on those above; composition, left_divide, bit_inverse, to_composed and the like also take linear layouts")
        .example("linear_product(register=[(1)] -> row:2, lane=[(1,0),(0,1)] -> row:2 column:2)", "register=[(1,0)] lane=[(2,0),(0,1)] -> row:4 column:2")
        .run(2..=2, |a| Ok(linear(&a, 0)?.product(linear(&a, 1)?)?.into())),
    function("linear_quotient(F, tile)", "the linear layout G with linear_product(tile, G) = F")
        .example("linear_quotient(register=[(1,0),(0,1)] lane=[(2,0)] -> row:4 column:2, register=[(1)] -> row:2)", "register=[(0,1)] lane=[(1,0)] -> row:2 column:2")
        .run(2..=2, |a| match linear(&a, 0)?.quotient(linear(&a, 1)?) {
            Some(quotient) => Ok(quotient.into()),
            None => a.kind(1, "a tile that the linear layout is a product of"),
        }),
];

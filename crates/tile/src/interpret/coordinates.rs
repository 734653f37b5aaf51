//! Evaluates tiles of coordinates for one block, without the contents of tensors.
//!
//! Law: a coordinate is known if [`super::run`] computes it at these sizes in block (1,1,1) and in
//! the first iteration of each loop. A coordinate that depends on the contents of a tensor is
//! unknown.

use std::collections::{HashMap, HashSet};

use tilewright_layout::symbolic::Values;

use super::number::Number;
use super::{number_of, tile};
use crate::program::{Counter, Operation, Program, Statement, ValueId};

/// The elements of each wanted value, for those that are known.
///
/// Block 1 represents the others, because only few blocks are at the edges, where coordinates are
/// clamped.
pub(crate) fn known(
    program: &Program,
    statements: &[&Statement],
    sizes: &Values,
    wanted: &HashSet<ValueId>,
) -> HashMap<ValueId, Vec<i64>> {
    let mut needed = wanted.clone();
    for statement in statements.iter().rev() {
        match statement {
            Statement::Let { result, operands, .. } if needed.contains(result) => needed.extend(operands),
            Statement::Loop(own) => {
                let carried = own.parameters.iter().zip(&own.initial);
                let begins: Vec<ValueId> = carried.filter(|own| needed.contains(own.0)).map(|own| *own.1).collect();
                needed.extend(begins);
            }
            _ => {}
        }
    }
    let mut found: HashMap<ValueId, Vec<Number>> = HashMap::new();
    for statement in statements {
        match statement {
            Statement::Let { result, operation, operands, .. } if needed.contains(result) => {
                let own = given((program, *result), operation, operands, sizes, &found);
                found.extend(own.map(|own| (*result, own)));
            }
            Statement::Loop(own) => {
                for (parameter, begins) in own.parameters.iter().zip(&own.initial) {
                    let begins = found.get(begins).cloned();
                    found.extend(begins.map(|begins| (*parameter, begins)));
                }
            }
            _ => {}
        }
    }
    found.retain(|value, _| wanted.contains(value));
    let integers = |(value, own): (ValueId, Vec<Number>)| {
        let element = program.type_of(value).element;
        (value, own.into_iter().map(|at| at.integer(element)).collect())
    };
    found.into_iter().map(integers).collect()
}

fn given(
    (program, result): (&Program, ValueId),
    operation: &Operation,
    operands: &[ValueId],
    sizes: &Values,
    found: &HashMap<ValueId, Vec<Number>>,
) -> Option<Vec<Number>> {
    let number = |value: i64| i32::try_from(value).ok().map(|value| vec![Number::real(f64::from(value))]);
    match operation {
        Operation::Load { .. } | Operation::Gather { .. } | Operation::Stage { .. } | Operation::Dot => None,
        Operation::Scalar(..) => None,
        Operation::Number(index) => {
            number(index.value(|name| name.of(i64::from(matches!(name.counter(), Counter::Block(_)))))?)
        }
        Operation::Size(text) => number(number_of(text, sizes).ok()?),
        operation => {
            let of = |value: &ValueId| Some((found.get(value)?.as_slice(), program.type_of(*value)));
            let given = operands.iter().map(of).collect::<Option<Vec<_>>>()?;
            Some(tile::evaluate(operation, &given, program.type_of(result)))
        }
    }
}

//! Values that can be computed ahead of their iteration.
//!
//! Law: a copy to shared memory that is issued some iterations ahead needs the coordinates of its
//! tile at that time. They are recomputed for the later iteration. So they may depend on the index
//! of the iteration, on values from before the loop, and on tensors that no statement changes, but
//! not on loop-carried values.

use std::collections::HashSet;

use super::{Operation, Program, Role, Statement, ValueId};

/// Whether an operation always has the same result for the same operands, and is cheap.
pub(crate) fn is_repeatable(program: &Program, operation: &Operation) -> bool {
    match operation {
        Operation::Load { tensor, .. } | Operation::Gather { tensor, .. } => {
            program.tensors[*tensor].role == Role::Input
        }
        Operation::Constant(..) | Operation::Number(_) | Operation::Size(_) | Operation::Scalar(..) => true,
        Operation::Arange { .. } | Operation::Unary(_) | Operation::Binary(_) | Operation::MultiplyAdd => true,
        Operation::Select(_) | Operation::To(_) | Operation::Recast(_) => true,
        Operation::Broadcast(_) | Operation::Reshape(_) | Operation::Transpose(_) | Operation::Held(_) => true,
        _ => false,
    }
}

/// The statements of a body that compute these values, in order.
pub(crate) fn statements_of<'s>(body: &'s [Statement], values: &[ValueId]) -> Vec<&'s Statement> {
    let mut needed: HashSet<ValueId> = values.iter().copied().collect();
    let mut found: Vec<&Statement> = Vec::new();
    for statement in body.iter().rev() {
        if let Statement::Let { result, operands, .. } = statement
            && needed.contains(result)
        {
            needed.extend(operands);
            found.push(statement);
        }
    }
    found.reverse();
    found
}

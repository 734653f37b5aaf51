//! Values that are computed ahead of their iteration.
//!
//! Law: a copy to shared memory that is issued some iterations early needs the coordinates of its
//! tile then. They are computed again for the later iteration. So they depend on the number of the
//! iteration, on values from before the loop and on tensors that no statement changes, and not on
//! what an iteration hands to the next.

use std::collections::HashSet;

use super::{Operation, Program, Role, Statement, ValueId};

/// Whether an operation has the same result whenever it is carried out on the same operands, and
/// costs little.
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

/// The statements of a body that compute values, in their order.
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

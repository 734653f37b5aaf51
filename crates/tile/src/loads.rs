//! The loads of a program.

use crate::program::{Operation, Program, Role, Statement, ValueId};

/// A load: its value, its operation, and the tiles that say coordinates.
pub(crate) type LoadOf<'s> = (ValueId, &'s Operation, &'s [ValueId]);

/// Whether a program loads from a tensor that it changes.
pub(crate) fn is_in_place(program: &Program) -> bool {
    let mut found = Vec::new();
    program.body.iter().for_each(|statement| loads(statement, &mut found));
    found.iter().any(|(_, operation, _)| loaded(operation).is_some_and(|own| program.tensors[own].role == Role::Both))
}

/// The tensor that an operation loads from.
pub(crate) fn loaded(operation: &Operation) -> Option<usize> {
    match operation {
        Operation::Load { tensor, .. } | Operation::Gather { tensor, .. } | Operation::Stage { tensor, .. } => {
            Some(*tensor)
        }
        _ => None,
    }
}

/// The loads of a statement, those of loops included.
pub(crate) fn loads<'s>(statement: &'s Statement, found: &mut Vec<LoadOf<'s>>) {
    match statement {
        Statement::Let { result, operation, operands, .. } if loaded(operation).is_some() => {
            found.push((*result, operation, operands.as_slice()));
        }
        Statement::Loop(own) => own.body.iter().for_each(|inner| loads(inner, found)),
        _ => {}
    }
}

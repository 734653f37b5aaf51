//! The loads of a program.

use crate::program::statement::{LetOf, definitions};
use crate::program::{Index, Operation, Program, Role, Statement};

/// Whether a program loads from a tensor that it changes.
pub(crate) fn is_in_place(program: &Program) -> bool {
    loads(&program.body).any(|load| loaded(load.1).is_some_and(|own| program.tensors[own].role == Role::Both))
}

/// The tensor that an operation loads from, and the index of the tile.
pub(crate) fn read(operation: &Operation) -> Option<(usize, &[Index])> {
    match operation {
        Operation::Load { tensor, at, .. }
        | Operation::Stage { tensor, at, .. }
        | Operation::Gather { tensor, at, .. } => Some((*tensor, at)),
        _ => None,
    }
}

/// The tensor that an operation loads from.
pub(crate) fn loaded(operation: &Operation) -> Option<usize> {
    read(operation).map(|(tensor, _)| tensor)
}

/// The loads of a body, each with its tiles of coordinates.
pub(crate) fn loads(body: &[Statement]) -> impl Iterator<Item = LetOf<'_>> {
    definitions(body).filter(|load| loaded(load.1).is_some())
}

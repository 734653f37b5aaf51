//! The statements of a program, and iterators over the statements of a body and of its inner loops.

use tilewright_kernel::program::Location;

use super::{Count, Index, Operation, Reduction, ValueId};

/// A statement of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// Defines a value.
    Let {
        /// The value.
        result: ValueId,
        /// The operation that computes it.
        operation: Operation,
        /// The operands of the operation.
        operands: Vec<ValueId>,
        /// Where it was written.
        place: Location,
    },
    /// Stores a tile to a tensor. Elements past the edges are not stored.
    Store {
        /// The tensor, by its number.
        tensor: usize,
        /// The index of the tile, along each mode.
        at: Vec<Index>,
        /// Modes, in ascending order, with the tiles that hold the coordinate of each element along
        /// them, as for [`Operation::Gather`].
        rows: Vec<(usize, ValueId)>,
        /// The reduction that atomically combines the tile with the tensor; None if the store
        /// overwrites elements.
        with: Option<Reduction>,
        /// The value that is stored.
        value: ValueId,
        /// Where it was written.
        place: Location,
    },
    /// A loop: each iteration of the body takes the values that the previous one carried over.
    Loop(Loop),
}

impl Statement {
    /// Its name in messages.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Statement::Let { operation: Operation::Load { .. } | Operation::Gather { .. }, .. } => "load",
            Statement::Let { operation: Operation::Held(_), .. } => "held",
            Statement::Let { operation: Operation::Dot, .. } => "dot",
            Statement::Let { .. } => "value",
            Statement::Store { .. } => "store",
            Statement::Loop(_) => "loop",
        }
    }

    /// The values that it uses, once for each use. Values that only the body of a loop uses are not
    /// among them.
    pub(crate) fn takes(&self) -> Vec<ValueId> {
        match self {
            Statement::Let { operands, .. } => operands.clone(),
            Statement::Store { value, rows, .. } => {
                std::iter::once(*value).chain(rows.iter().map(|(_, rows)| *rows)).collect()
            }
            Statement::Loop(own) => own.initial.iter().chain(&own.next).copied().chain(own.count.value()).collect(),
        }
    }

    /// Where it was written.
    pub(crate) fn place(&self) -> Location {
        match self {
            Statement::Let { place, .. } | Statement::Store { place, .. } => *place,
            Statement::Loop(own) => own.place,
        }
    }
}

/// A loop that carries values from one iteration to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// The number of the loop, by which an [`Index`] names its iteration.
    pub iteration: u32,
    /// The number of iterations.
    pub count: Count,
    /// The values before the first iteration.
    pub initial: Vec<ValueId>,
    /// The values at the beginning of an iteration.
    pub parameters: Vec<ValueId>,
    /// The body of an iteration.
    pub body: Vec<Statement>,
    /// The values for the next iteration.
    pub next: Vec<ValueId>,
    /// The values after the last iteration, or the initial ones if there is none.
    pub results: Vec<ValueId>,
    /// Where it was written.
    pub place: Location,
}

/// A definition: the value, its operation, and the operands.
pub(crate) type LetOf<'s> = (ValueId, &'s Operation, &'s [ValueId]);

/// All statements of a body, in the order in which they are written. A loop comes before the
/// statements in it.
pub(crate) fn statements(body: &[Statement]) -> impl Iterator<Item = &Statement> {
    let mut open = vec![body.iter()];
    std::iter::from_fn(move || {
        loop {
            let Some(statement) = open.last_mut()?.next() else {
                open.pop();
                continue;
            };
            if let Statement::Loop(own) = statement {
                open.push(own.body.iter());
            }
            return Some(statement);
        }
    })
}

/// The values that the statements of a body compute, in the order of [`statements`].
pub(crate) fn definitions(body: &[Statement]) -> impl Iterator<Item = LetOf<'_>> {
    statements(body).filter_map(|statement| match statement {
        Statement::Let { result, operation, operands, .. } => Some((*result, operation, operands.as_slice())),
        _ => None,
    })
}

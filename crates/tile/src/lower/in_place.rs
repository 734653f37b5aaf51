//! Barriers for tensors that a program both loads from and stores to.
//!
//! Law: each element is loaded before it is stored to (see [`crate::interpret`]). A thread loads
//! its elements when it reaches the statement. Therefore all threads of the block synchronize
//! before a store, unless each thread has loaded exactly the elements that it stores, or the tiles
//! do not overlap.

use super::Lowering;
use crate::loads::{loaded, loads};
use crate::program::statement::{LetOf, statements};
use crate::program::{Counter, Index, Operation, Role, Statement, ValueId};

/// Whether two tiles never overlap along a mode: their indices differ by a known number, and depend
/// on no iteration.
fn are_apart(a: &Index, b: &Index, extent: i64) -> bool {
    let is_fixed = |index: &Index| index.terms.iter().all(|(name, _)| matches!(name.counter(), Counter::Block(_)));
    let apart = a.clone().number().plus(&(b.clone().number() * -1)).known();
    let least = if a.by_element { extent } else { 1 };
    a.by_element == b.by_element
        && is_fixed(a)
        && is_fixed(b)
        && apart.is_some_and(|apart| apart.unsigned_abs() >= least.unsigned_abs())
}

impl Lowering<'_, '_> {
    /// Whether all threads synchronize before a statement of a body.
    pub(super) fn waits(&self, body: &[Statement], number: usize) -> bool {
        let program = &self.placed.program;
        let is_both = |own: &&Statement| matches!(own, Statement::Store { tensor, .. } if program.tensors[*tensor].role == Role::Both);
        let own: Vec<&Statement> = statements(&body[number..=number]).filter(is_both).collect();
        if own.is_empty() {
            return false;
        }
        // In a loop, a load after the statement also comes before the statement of the next
        // iteration.
        let is_whole = std::ptr::eq(body, program.body.as_slice());
        let end = if is_whole { number } else { body.len() };
        let others = (0..end).filter(|at| *at != number);
        let before: Vec<LetOf<'_>> = others.flat_map(|at| loads(&body[at..=at])).collect();
        own.iter().any(|store| before.iter().any(|load| self.may_differ(*load, store)))
    }

    /// Whether a load and a store access the same tensor, and a thread may store an element that
    /// another thread loads.
    fn may_differ(&self, (result, operation, picked): LetOf<'_>, store: &Statement) -> bool {
        let Statement::Store { tensor, at, rows, value, .. } = store else { return false };
        if loaded(operation) != Some(*tensor) {
            return false;
        }
        let (shape, place, rows_of_load) = match operation {
            Operation::Load { shape, at, .. } => (shape, at, Vec::new()),
            Operation::Gather { shape, at, modes, .. } => {
                (shape, at, modes.iter().copied().zip(picked.iter().copied()).collect())
            }
            _ => return true,
        };
        let stored = &self.placed.program.type_of(*value).shape;
        let along = |mode: &usize| rows_of_load.iter().chain(rows).all(|(own, _)| own != mode);
        let modes = || (0..at.len().min(place.len())).filter(along);
        if modes().any(|mode| are_apart(&place[mode], &at[mode], shape[mode].max(stored[mode]))) {
            return false;
        }
        let held = |value: &ValueId| self.placed.layouts.get(value);
        let is_same = shape == stored
            && place == at
            && rows_of_load == *rows
            && held(&result).is_some_and(|own| held(value) == Some(own) && own.threads.iter().all(Option::is_some));
        !is_same
    }
}

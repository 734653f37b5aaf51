//! Estimates how many registers the values of a program take at the same time.
//!
//! Law: a value takes the registers of its layout from its definition to its last use. A value that
//! is only reshaped shares registers. A value that is recomputed at each use takes none, nor does a
//! tile in shared memory. Values are counted where whole tiles must exist: at loops, and at
//! operations that combine elements. Between these, elements are computed one after the other, and
//! the assembler decides.

use std::collections::{BTreeMap, HashMap, HashSet};

use tilewright_kernel::program::Location;

use crate::place::Placed;
use crate::pools::{is_anywhere, registers};
use crate::program::{Operation, Program, Statement, ValueId};

/// The statement of a program at which values take the most registers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pressure {
    pub(crate) place: Option<Location>,
    pub(crate) registers: i64,
    /// The values that are live there, and the registers that each takes.
    pub(crate) values: Vec<(ValueId, i64)>,
}

/// Whether an operation needs all elements of its operands before it computes the first element of
/// its result.
fn is_whole(operation: &Operation) -> bool {
    operation.combines() || matches!(operation, Operation::Dot | Operation::Held(_))
}

struct Walk<'p> {
    placed: &'p Placed,
    /// From a value to the value whose registers it shares.
    same: HashMap<ValueId, ValueId>,
    /// Values that take no registers.
    free: HashSet<ValueId>,
    most: Pressure,
}

/// The statement at which the values of a program take the most registers. Tiles in `shared` take
/// none.
pub(crate) fn pressure(placed: &Placed, shared: impl Fn(ValueId) -> bool) -> Pressure {
    let (same, free) = (HashMap::new(), HashSet::new());
    let mut walk = Walk { placed, same, free, most: Pressure::default() };
    walk.names(&placed.program, &placed.program.body, &shared);
    walk.body(&placed.program.body, &mut HashSet::new());
    walk.most
}

impl Walk<'_> {
    fn names(&mut self, program: &Program, body: &[Statement], shared: &impl Fn(ValueId) -> bool) {
        for statement in body {
            match statement {
                Statement::Let { result, operation, operands, .. } => {
                    let renames =
                        matches!(operation, Operation::Reshape(_) | Operation::Transpose(_) | Operation::Broadcast(_));
                    let alike = matches!(operation, Operation::Held(_))
                        && self.placed.layouts.get(result)
                            == operands.first().and_then(|own| self.placed.layouts.get(own));
                    if let Some(operand) = operands.first().filter(|_| renames || alike) {
                        self.same.insert(*result, *operand);
                    }
                    if shared(*result) || is_anywhere(program, operation, operands) {
                        self.free.insert(*result);
                    }
                }
                Statement::Loop(own) => {
                    // The results share the registers of the parameters.
                    self.same.extend(own.results.iter().copied().zip(own.parameters.iter().copied()));
                    self.names(program, &own.body, shared);
                }
                Statement::Store { .. } => {}
            }
        }
    }

    fn root(&self, value: ValueId) -> ValueId {
        let mut own = value;
        while let Some(other) = self.same.get(&own) {
            own = *other;
        }
        own
    }

    fn uses(&self, live: &mut HashSet<ValueId>, values: &[ValueId]) {
        live.extend(values.iter().map(|value| self.root(*value)));
    }

    /// Counts the values that are live after a statement.
    fn look(&mut self, live: &HashSet<ValueId>, place: Location) {
        let takes = |value: &ValueId| -> Option<(ValueId, i64)> {
            let held = self.placed.layouts.get(value).filter(|_| !self.free.contains(value))?;
            Some((*value, registers(held.values(), self.placed.program.type_of(*value))))
        };
        let values: BTreeMap<ValueId, i64> = live.iter().filter_map(takes).collect();
        let sum = values.values().sum();
        if sum > self.most.registers {
            self.most = Pressure { place: Some(place), registers: sum, values: values.into_iter().collect() };
        }
    }

    /// Walks a body backwards. `live` holds the values that are live after the body and, at the
    /// end, those that are live before it.
    fn body(&mut self, body: &[Statement], live: &mut HashSet<ValueId>) {
        for statement in body.iter().rev() {
            match statement {
                Statement::Let { result, operation, operands, place } => {
                    if is_whole(operation) {
                        self.look(live, *place);
                    }
                    if self.root(*result) == *result {
                        live.remove(result);
                    }
                    self.uses(live, operands);
                    if is_whole(operation) {
                        self.look(live, *place);
                    }
                }
                Statement::Store { value, rows, .. } => {
                    self.uses(live, &[*value]);
                    rows.iter().for_each(|(_, rows)| self.uses(live, &[*rows]));
                }
                Statement::Loop(own) => {
                    // Before the loop, the parameters are not live.
                    live.retain(|value| !own.parameters.contains(value));
                    // A value from before the loop that an iteration uses is live during all
                    // iterations, so the body is walked twice.
                    for _ in 0..2 {
                        let mut iteration = live.clone();
                        self.uses(&mut iteration, &own.next);
                        self.look(&iteration, own.place);
                        self.body(&own.body, &mut iteration);
                        iteration.retain(|value| !own.parameters.contains(value));
                        live.extend(iteration);
                    }
                    self.uses(live, &own.initial);
                }
            }
        }
    }
}

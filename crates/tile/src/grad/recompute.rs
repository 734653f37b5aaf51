//! Recomputes forward values.
//!
//! Law: a value of the source program is computed at most once in a scope. It is computed in the
//! scope of the loop that defines it, before the statements that use it.

use tilewright_kernel::program::Location;

use super::reverse::{Definition, Known, Reverse};
use super::writer::{ScopeId, Spot};
use crate::error::TileError;
use crate::program::{Count, Loop, Operation, ValueId};

impl<'p> Reverse<'p> {
    /// Recomputes a value of the source program in a scope.
    pub(super) fn primal(&mut self, value: ValueId, scope: ScopeId) -> Result<ValueId, TileError> {
        // Operands come first. Chains of values may be long, so this is a loop and not a recursion.
        let mut waiting = vec![value];
        while let Some(value) = waiting.last().copied() {
            let Some(Known { definition, home }) = self.known.get(&value).copied() else {
                return Err(self.refuse("a value has no definition", crate::program::here()));
            };
            let Some(own) = self.writer.scope_of(scope, home) else {
                return Err(self.refuse("a value of a loop is used after it", crate::program::here()));
            };
            if self.writer.known(own, value).is_some() {
                waiting.pop();
                continue;
            }
            match definition {
                Definition::Let(operation, operands, place) => {
                    let missing = |operand: &&ValueId| {
                        let home = self.known.get(operand).and_then(|known| known.home);
                        self.writer.scope_of(scope, home).is_none_or(|own| self.writer.known(own, **operand).is_none())
                    };
                    let missing: Vec<ValueId> = operands.iter().filter(missing).copied().collect();
                    if !missing.is_empty() {
                        waiting.extend(missing);
                        continue;
                    }
                    self.computed_again(value, (operation, operands, place), (scope, own))?;
                }
                Definition::Parameter(around, number) => {
                    let because = format!(
                        "it needs the value {} that the loop carries, at each iteration; a loop is reversed if what it \
                         carries is a sum, a minimum or a maximum over its iterations",
                        number + 1
                    );
                    return Err(self.refuse(because, around.place));
                }
                Definition::Result(around) => self.loop_again(around, own)?,
            }
            waiting.pop();
        }
        let home = self.known.get(&value).and_then(|known| known.home);
        let own = self.writer.scope_of(scope, home).and_then(|own| self.writer.known(own, value));
        own.ok_or_else(|| self.refuse("a value has no definition", crate::program::here()))
    }

    /// Recomputes a value whose operands are known. Layout hints are left out, because the gradient
    /// uses the value in other ways.
    fn computed_again(
        &mut self,
        value: ValueId,
        (operation, operands, place): (&Operation, &[ValueId], Location),
        (scope, own): (ScopeId, ScopeId),
    ) -> Result<(), TileError> {
        let spot = Spot { scope: own, place };
        let known = |operand: &ValueId| {
            let home = self.known.get(operand).and_then(|known| known.home);
            self.writer.scope_of(scope, home).and_then(|own| self.writer.known(own, *operand))
        };
        let operands: Vec<ValueId> = operands.iter().filter_map(known).collect();
        let mut operation = operation.clone();
        match &mut operation {
            Operation::Atom(_) | Operation::Held(_) => {
                if let Some(same) = operands.first() {
                    self.writer.remember(own, value, *same);
                }
                return Ok(());
            }
            Operation::Load { at, .. } | Operation::Stage { at, .. } | Operation::Gather { at, .. } => {
                *at = self.indices(spot, at)?;
            }
            Operation::Number(index) => *index = self.index(spot, index)?,
            Operation::Broadcast(shape) => {
                let tile = self.writer.broadcast(spot, operands[0], shape)?;
                self.writer.remember(own, value, tile);
                return Ok(());
            }
            _ => {}
        }
        let result = self.writer.apply(spot, operation, &operands)?;
        self.writer.remember(own, value, result);
        Ok(())
    }

    pub(super) fn count(&mut self, count: &Count, spot: Spot) -> Result<Count, TileError> {
        Ok(match count {
            Count::Sizes(text) => Count::Sizes(text.clone()),
            Count::Index(index) => Count::Index(self.index(spot, index)?),
            Count::Value(value) => Count::Value(self.primal(*value, spot.scope)?),
        })
    }

    /// Recomputes the results of a loop, in the scope that encloses the loop.
    fn loop_again(&mut self, own: &'p Loop, scope: ScopeId) -> Result<(), TileError> {
        let spot = Spot { scope, place: own.place };
        let count = self.count(&own.count, spot)?;
        let initial = own.initial.iter().map(|value| self.primal(*value, scope)).collect::<Result<Vec<_>, _>>()?;
        let body = self.writer.open(scope, own.iteration, count);
        let mut parameters = Vec::new();
        for (parameter, initial) in own.parameters.iter().zip(initial) {
            let carried = self.writer.parameter(body, initial);
            self.writer.remember(body, *parameter, carried);
            parameters.push(carried);
        }
        for ((next, carried), result) in own.next.iter().zip(parameters).zip(&own.results) {
            let next = self.primal(*next, body)?;
            let after = self.writer.hand_on(body, carried, next);
            self.writer.remember(scope, *result, after);
        }
        self.writer.close(Spot { scope: body, ..spot });
        Ok(())
    }
}

//! Merges reductions of a body, so that they are computed together.
//!
//! Law: a reduction gives the same numbers, computed in the same order, whether it is computed
//! alone or with others. If operands of later reductions of a body do not depend on a reduction,
//! they are computed before it, and all these reductions are computed at once: their shuffles are
//! in flight at the same time, and one barrier serves all of them.

use std::collections::HashSet;

use tilewright_kernel::{Distributed, KernelError};

use super::functions::binary;
use super::{Lowering, ThreadValue};
use crate::pools::registers;
use crate::program::ahead::{is_repeatable, statements_of};
use crate::program::{Operation, Reduction, Statement, ValueId};

/// The most registers of a thread for all operands of merged reductions.
const REGISTERS: i64 = 128;

/// A reduction of a body: its statement, its result, its operand, and how it combines.
#[derive(Clone, Copy)]
struct Reduced<'s> {
    at: usize,
    result: ValueId,
    operand: ValueId,
    reduction: Reduction,
    modes: &'s [usize],
}

impl<'s> Reduced<'s> {
    fn of(body: &'s [Statement], at: usize) -> Option<Reduced<'s>> {
        match &body[at] {
            Statement::Let { result, operation: Operation::Reduce(reduction, modes), operands, .. } => {
                Some(Reduced { at, result: *result, operand: operands[0], reduction: *reduction, modes })
            }
            _ => None,
        }
    }
}

impl<'k> Lowering<'k, '_> {
    /// Computes the reduction of a statement together with later reductions of the body that do not
    /// depend on it. Returns false, and emits nothing, if there are none.
    pub(super) fn reduced_together(&mut self, body: &[Statement], number: usize) -> Result<bool, KernelError> {
        let Some(first) = Reduced::of(body, number) else { return Ok(false) };
        if self.groups.is_some() || !self.whole.is_empty() {
            return Ok(false);
        }
        let all = self.independent(body, first);
        if all.len() < 2 {
            return Ok(false);
        }
        for later in &all[1..] {
            for statement in statements_of(&body[number + 1..later.at], &[later.operand]) {
                let Statement::Let { result, operation, operands, place } = statement else { continue };
                let own = match self.early.get(&(*result, self.written.clone())).cloned() {
                    Some(own) => own,
                    None => place.during(|| self.given(*result, operation, operands))?,
                };
                self.is_known(*result, own);
            }
        }
        let tiles: Vec<Distributed<'k>> = all
            .iter()
            .map(|own| self.tiled(&self.numbers(own.operand)?, &self.distribution(own.operand)?))
            .collect::<Result<_, _>>()?;
        let tiles: Vec<&Distributed<'k>> = tiles.iter().collect();
        let reduced = self.k.reduce_together(&tiles, first.modes, |a, b| {
            let pairs = all.iter().zip(a.iter().zip(b));
            Ok(pairs.map(|(own, (a, b))| binary(own.reduction.binary(), *a, *b)).collect())
        })?;
        for (own, tile) in all.iter().zip(reduced) {
            let numbers = tile.convert(&self.distribution(own.result)?)?.fragment().numbers()?;
            match own.at == number {
                true => self.values.insert(own.result, ThreadValue::Numbers(numbers)),
                false => self.early.insert((own.result, self.written.clone()), ThreadValue::Numbers(numbers)),
            };
        }
        Ok(true)
    }

    /// Records a value that is computed before its statement. The body uses it when it reaches the
    /// statement.
    fn is_known(&mut self, value: ValueId, own: ThreadValue<'k>) {
        self.early.insert((value, self.written.clone()), own.clone());
        self.values.insert(value, own);
    }

    /// A reduction, and the later ones of a body that can be computed with it: they combine the
    /// same modes of tiles in the same layout.
    fn independent<'s>(&self, body: &'s [Statement], first: Reduced<'s>) -> Vec<Reduced<'s>> {
        let program = &self.placed.program;
        let layout = |value: ValueId| (self.placed.layouts.get(&value), &program.type_of(value).shape);
        let takes = |value: ValueId| {
            let values = self.placed.layouts.get(&value).map_or(0, |held| held.values());
            registers(values, program.type_of(value))
        };
        let (mut all, mut taken) = (vec![first], takes(first.operand));
        let mut depending = HashSet::from([first.result]);
        for at in first.at + 1..body.len() {
            let Statement::Let { result, operation, operands, .. } = &body[at] else { break };
            if matches!(operation, Operation::Stage { .. }) {
                break;
            }
            if operands.iter().any(|value| depending.contains(value)) {
                depending.insert(*result);
                continue;
            }
            let Some(own) = Reduced::of(body, at) else { continue };
            let repeatable = |statement: &&Statement| match statement {
                Statement::Let { operation, .. } => is_repeatable(program, operation),
                _ => false,
            };
            let between = statements_of(&body[first.at + 1..at], &[own.operand]);
            let may = own.modes == first.modes && layout(own.operand) == layout(first.operand);
            if may && between.iter().all(repeatable) && taken + takes(own.operand) <= REGISTERS {
                taken += takes(own.operand);
                all.push(own);
                depending.insert(*result);
            }
        }
        all
    }
}

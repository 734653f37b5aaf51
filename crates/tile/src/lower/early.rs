//! Prefetches the loads of a loop: issues them one iteration before their use.
//!
//! Law: each iteration computes the same as before, in the same order, but its loads are issued
//! while the previous iteration computes (prefetching). It is done if the loop stores to outputs
//! alone, which nothing loads, and the number of iterations is known, so that no load is wasted. It
//! is limited to loops in which the warps of a block synchronize in each iteration, or which carry
//! so many registers that few warps are resident. In other loops, warps hide each other's latency
//! with fewer registers. Iterations are unrolled in pairs, so that numbers in flight never move to
//! another register.

use tilewright_kernel::{Fragment, KernelError};
use tilewright_layout::Stride;
use tilewright_layout::symbolic::Expr;

use super::{Lowering, ThreadValue, iterations_of, over, unrolled};
use crate::place::Placed;
use crate::pools::registers;
use crate::pressure::pressure;
use crate::program::statement::definitions;
use crate::program::{Counter, Loop, Operation, Program, Role, Statement, ValueId};

/// The number of iterations that are unrolled together.
const TOGETHER: i64 = 2;
/// The bits of a lane's index.
const LANE_BITS: usize = 5;
/// The most registers of a thread for the loads of an iteration.
const REGISTERS: i64 = 64;
/// By how many registers whole tiles may exceed the registers of a thread: the assembler recomputes
/// parts of them, or spills a few.
const MORE_REGISTERS: i64 = 16;
/// The number of loop-carried registers of a thread from which on a loop counts as carrying many.
/// With the loads and values of an iteration, sixteen warps or fewer are then resident.
const MANY_CARRIED: i64 = 16;

/// The iteration of each unrolled loop around a statement.
pub(super) type Iterations = Vec<(u32, i64)>;

/// A load, identified by its result and by the iterations of the unrolled loops.
pub(super) type Key = (ValueId, Iterations);

/// A load, and the iterations of the loops inside the one whose loads are prefetched.
struct Early<'s> {
    statement: &'s Statement,
    inner: Iterations,
}

/// The registers that a thread has for tiles, plus the few that the assembler can save.
fn room(placed: &Placed) -> i64 {
    placed.registers_of_thread() + MORE_REGISTERS
}

impl Early<'_> {
    /// The registers of a thread that the load takes.
    fn registers(&self, placed: &Placed) -> i64 {
        match self.statement {
            Statement::Let { result, .. } => {
                let values = placed.layouts.get(result).map_or(0, |held| held.values());
                registers(values, placed.program.type_of(*result))
            }
            _ => 0,
        }
    }
}

/// The loads of an iteration of a loop, and the number of iterations; None if the loads are not
/// prefetched.
fn early<'s>(own: &'s Loop, placed: &Placed) -> Option<(Vec<Early<'s>>, i64)> {
    let count = iterations_of(own).filter(|count| *count > 0 && count % TOGETHER == 0)?;
    let mut loads = Vec::new();
    let may = (meet(&own.body, placed) || carries_many(own, placed))
        && collect(&own.body, &mut Vec::new(), &placed.program, &mut loads)
        && !loads.is_empty();
    let takes: i64 = loads.iter().map(|load| load.registers(placed)).sum();
    let fits = || takes <= REGISTERS && pressure(placed, |_| false).registers + takes <= room(placed);
    (may && fits()).then_some((loads, count))
}

/// Whether a body, without its inner loops, exchanges data between warps.
fn meet(body: &[Statement], placed: &Placed) -> bool {
    let warps = |value: &ValueId| placed.layouts.get(value).and_then(|held| held.threads.get(LANE_BITS..));
    definitions(body).any(|(result, operation, operands)| match operation {
        Operation::Held(_) => operands.first().and_then(warps) != warps(&result),
        _ => operation.combines() && operands.first().and_then(warps).is_some_and(|bits| !bits.is_empty()),
    })
}

/// Whether a loop without `dot` carries many registers.
fn carries_many(own: &Loop, placed: &Placed) -> bool {
    let is_product = |statement: &Statement| match statement {
        Statement::Let { operation, .. } => matches!(operation, Operation::Dot),
        Statement::Loop(_) => true,
        Statement::Store { .. } => false,
    };
    let takes = |value: &ValueId| {
        let values = placed.layouts.get(value).map_or(0, |held| held.values());
        registers(values, placed.program.type_of(*value))
    };
    !own.body.iter().any(is_product) && own.parameters.iter().map(takes).sum::<i64>() >= MANY_CARRIED
}

/// The loads of a loop that carries many registers, if they can be moved before its statements:
/// those that depend on the iteration.
pub(super) fn loads_of<'s>(own: &'s Loop, placed: &Placed) -> Option<Vec<&'s Statement>> {
    let mut loads = Vec::new();
    let may = carries_many(own, placed) && collect(&own.body, &mut Vec::new(), &placed.program, &mut loads);
    let counter = Counter::Iteration(own.iteration);
    let differs = |load: &Early<'_>| match load.statement {
        Statement::Let { operation: Operation::Load { at, .. }, .. } => {
            at.iter().flat_map(|index| &index.terms).any(|(name, _)| name.counter() == counter)
        }
        _ => false,
    };
    let is_inner = loads.iter().any(|load| !load.inner.is_empty());
    let found: Vec<&Statement> = loads.iter().filter(|load| differs(load)).map(|load| load.statement).collect();
    (may && !is_inner && !found.is_empty()).then_some(found)
}

/// Collects the loads of a body, including those of the loops in it that are unrolled. Returns
/// false if loads cannot be moved before some statement, or go through rings of their own.
fn collect<'s>(body: &'s [Statement], inner: &mut Iterations, program: &Program, found: &mut Vec<Early<'s>>) -> bool {
    body.iter().all(|statement| match statement {
        Statement::Let { operation: Operation::Load { .. }, .. } => {
            found.push(Early { statement, inner: inner.clone() });
            true
        }
        Statement::Let { operation: Operation::Stage { .. }, .. } => false,
        Statement::Let { .. } => true,
        Statement::Store { tensor, .. } => program.tensors[*tensor].role == Role::Output,
        Statement::Loop(own) => unrolled(own, program).is_some_and(|count| {
            (0..count).all(|iteration| {
                inner.push((own.iteration, iteration));
                let all = collect(&own.body, inner, program, found);
                inner.pop();
                all
            })
        }),
    })
}

/// The most registers of a thread that prefetched loads of a loop take, in a kernel without roles;
/// None if no loop prefetches.
pub(crate) fn early_registers(placed: &Placed) -> Option<i64> {
    fn most(body: &[Statement], placed: &Placed) -> Option<i64> {
        let of = |statement: &Statement| match statement {
            Statement::Loop(own) if unrolled(own, &placed.program).is_some() => None,
            Statement::Loop(own) => match early(own, placed) {
                Some((loads, _)) => Some(loads.iter().map(|load| load.registers(placed)).sum()),
                None => most(&own.body, placed),
            },
            _ => None,
        };
        body.iter().filter_map(of).max()
    }
    most(&placed.program.body, placed)
}

impl<'k> Lowering<'k, '_> {
    /// Emits the iterations of a loop whose loads are prefetched. Returns false, and emits nothing,
    /// if they are not prefetched.
    pub(super) fn early_iterations(&mut self, own: &Loop, carried: &[Fragment<'k>]) -> Result<bool, KernelError> {
        let placed = self.placed;
        let Some((loads, count)) = early(own, placed) else { return Ok(false) };
        let first = self.asked_for(own, &loads, &Expr::from(0))?;
        // The loads in flight at the beginning of a pair of iterations.
        let kept = first.iter().map(|from| self.same(from)).collect::<Result<Vec<_>, _>>()?;
        let pairs = count / TOGETHER;
        if pairs > 1 {
            let k = self.k;
            k.range(pairs - 1, |pair| {
                let first = Stride::times(&pair, &Expr::from(TOGETHER)).ok_or_else(over)?;
                self.pair(own, (&first, true), (&loads, &kept), carried)
            })?;
        }
        self.pair(own, (&Expr::from(count - TOGETHER), false), (&loads, &kept), carried)?;
        Ok(true)
    }

    /// Emits two iterations. If more follow, also prefetches the loads of the first one that
    /// follows.
    fn pair(
        &mut self,
        own: &Loop,
        (first, more): (&Expr, bool),
        (loads, kept): (&[Early<'_>], &[Fragment<'k>]),
        carried: &[Fragment<'k>],
    ) -> Result<(), KernelError> {
        for (parameter, fragment) in own.parameters.iter().zip(carried) {
            self.values.insert(*parameter, ThreadValue::Numbers(fragment.numbers()?));
        }
        let mut taken = kept.iter().map(|from| self.same(from)).collect::<Result<Vec<_>, _>>()?;
        for number in 0..TOGETHER {
            let iteration = Stride::plus(first, &Expr::from(number)).ok_or_else(over)?;
            let next = Stride::plus(&iteration, &Expr::from(1)).ok_or_else(over)?;
            let comes = number + 1 < TOGETHER || more;
            let asked = if comes { self.asked_for(own, loads, &next)? } else { Vec::new() };
            self.iterations.insert(own.iteration, iteration);
            for (early, fragment) in loads.iter().zip(&taken) {
                let Statement::Let { result, .. } = early.statement else { continue };
                let tile = fragment.distributed(&self.distribution(*result)?)?;
                self.early.insert((*result, early.inner.clone()), ThreadValue::Tile(tile));
            }
            let around = std::mem::take(&mut self.written);
            self.body(&own.body)?;
            self.written = around;
            let next: Vec<Option<ThreadValue<'k>>> =
                own.next.iter().map(|value| self.values.get(value).cloned()).collect();
            for (parameter, value) in own.parameters.iter().zip(next) {
                self.values.extend(value.map(|value| (*parameter, value)));
            }
            taken = asked;
        }
        for (parameter, fragment) in own.parameters.iter().zip(carried) {
            fragment.set(&self.numbers(*parameter)?)?;
        }
        kept.iter().zip(&taken).try_for_each(|(kept, from)| kept.assign(from))
    }

    /// Issues the loads of an iteration.
    fn asked_for(
        &mut self,
        own: &Loop,
        loads: &[Early<'_>],
        iteration: &Expr,
    ) -> Result<Vec<Fragment<'k>>, KernelError> {
        self.iterations.insert(own.iteration, iteration.clone());
        let mut found = Vec::new();
        for early in loads {
            let Statement::Let { result, operation, operands, place } = early.statement else { continue };
            self.iterations.extend(early.inner.iter().map(|(number, iteration)| (*number, Expr::from(*iteration))));
            if let ThreadValue::Tile(tile) = place.during(|| self.given(*result, operation, operands))? {
                found.push(tile.fragment().clone());
            }
        }
        Ok(found)
    }

    /// A copy of a fragment in new registers.
    fn same(&self, from: &Fragment<'k>) -> Result<Fragment<'k>, KernelError> {
        let own = self.k.register(from.element(), &from.size().to_string())?;
        own.assign(from)?;
        Ok(own)
    }
}

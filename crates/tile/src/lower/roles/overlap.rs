//! Overlaps the last wgmma of an iteration with the beginning of the next iteration.
//!
//! Law: the first iteration is peeled off, up to its last wgmma. Each further iteration issues its
//! first wgmma, then the last one of the previous iteration, and computes when the first has
//! finished. Computations that need the accumulators wait for the second. After the loop comes the
//! last wgmma of the last iteration. If there is no iteration, nothing of this is executed.

use tilewright_kernel::{Fragment, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Stride, Truth};

use super::super::{Lowering, ThreadValue, over};
use crate::program::{Loop, Operation, Statement, ValueId};
use crate::roles::Overlap;

/// The part of an iteration's statements that is emitted.
#[derive(Clone, Copy, PartialEq)]
enum IterationPart {
    Before,
    Behind,
}

/// The masks of an iteration that are omitted.
#[derive(Clone, Copy)]
struct Whole {
    early: bool,
    late: bool,
}

impl<'k> Lowering<'k, '_> {
    /// Emits the statements of one part of an iteration, except for `dot` and loaded tiles.
    fn part(&mut self, own: &Loop, overlap: &Overlap, part: IterationPart, whole: Whole) -> Result<(), KernelError> {
        for statement in &own.body {
            let Statement::Let { result, operation, operands, place } = statement else { continue };
            if matches!(operation, Operation::Dot | Operation::Stage { .. })
                || overlap.behind.contains(result) != (part == IterationPart::Behind)
            {
                continue;
            }
            let masks = &overlap.masks;
            if whole.early && masks.early.contains(result) || whole.late && masks.late.contains(result) {
                let numbers = self.numbers(operands[2])?;
                self.values.insert(*result, ThreadValue::Numbers(numbers));
                continue;
            }
            // The last sort may belong to another iteration.
            self.sorted = None;
            let made = place.during(|| self.given(*result, operation, operands))?;
            self.values.insert(*result, made);
        }
        Ok(())
    }

    /// Emits a loop of this kind, whose loop-carried values are in `carried`.
    pub(in crate::lower) fn overlapped(
        &mut self,
        own: &Loop,
        overlap: &Overlap,
        count: &Expr,
        carried: &[Fragment<'k>],
    ) -> Result<(), KernelError> {
        let product = |value: ValueId| {
            own.body.iter().find_map(|statement| match statement {
                Statement::Let { result, operands, .. } if *result == value => Some(operands.clone()),
                _ => None,
            })
        };
        let early = product(overlap.early).ok_or_else(over)?;
        let late = product(overlap.late).ok_or_else(over)?;
        // The number of iterations that are emitted separately. The first iteration is one of them.
        let apart = overlap.masks.first.max(1);
        let k = self.k;
        // The index of the iteration is known for small counts only.
        if !self.has(count, apart)? {
            let there = k.index(count)?;
            let some = k.index(&Expr::from(0))?.lt(there);
            return k.when(some, || {
                // There may be no iteration after the first.
                self.iterations_of(own, overlap, (&early, &late), (count, 1, apart == 1), carried)
            });
        }
        self.iterations_of(own, overlap, (&early, &late), (count, apart, true), carried)
    }

    /// Whether the loop has at least this many iterations.
    fn has(&self, count: &Expr, least: i64) -> Result<bool, KernelError> {
        Ok(Expr::from(least - 1).less(count) == Truth::Proved)
    }

    fn iterations_of(
        &mut self,
        own: &Loop,
        overlap: &Overlap,
        (early, late): (&[ValueId], &[ValueId]),
        (count, apart, early_whole): (&Expr, i64, bool),
        carried: &[Fragment<'k>],
    ) -> Result<(), KernelError> {
        let k = self.k;
        let sums = overlap.sums;
        // The initial value of the last `dot` of an iteration has the layout of its accumulators.
        let (begun, _) = self.begun(overlap.late, own.initial[sums])?;
        self.iterations.insert(own.iteration, Expr::from(0));
        for (parameter, fragment) in own.parameters.iter().zip(carried) {
            self.values.insert(*parameter, ThreadValue::Numbers(fragment.numbers()?));
        }
        self.await_factors(early)?;
        let first = self.begin_product(overlap.early, early)?;
        k.wait_mma(0);
        first.release()?;
        self.values.insert(overlap.early, ThreadValue::Numbers(first.sums.numbers()?));
        let masked = Whole { early: overlap.masks.first == 0, late: false };
        self.part(own, overlap, IterationPart::Before, masked)?;
        self.part(own, overlap, IterationPart::Behind, masked)?;
        let rows = self.rows_of(overlap.late, late[0])?;
        let held = k.register(rows.element(), &rows.shape().to_string())?;
        self.hand_on(own, overlap, late, (carried, &begun, &held))?;

        let iteration = |this: &mut Self, at: Expr, whole: Whole| -> Result<(), KernelError> {
            this.iterations.insert(own.iteration, at);
            for (number, (parameter, fragment)) in own.parameters.iter().zip(carried).enumerate() {
                if number != sums {
                    this.values.insert(*parameter, ThreadValue::Numbers(fragment.numbers()?));
                }
            }
            this.await_factors(early)?;
            let first = this.begin_product(overlap.early, early)?;
            this.await_factors(late)?;
            let second = this.set_off(overlap.late, late, (&begun, true), Some(&held))?;
            k.wait_mma(1);
            first.release()?;
            this.values.insert(overlap.early, ThreadValue::Numbers(first.sums.numbers()?));
            this.part(own, overlap, IterationPart::Before, whole)?;
            k.wait_mma(0);
            second.release()?;
            this.values.insert(own.parameters[sums], ThreadValue::Numbers(begun.numbers()?));
            this.part(own, overlap, IterationPart::Behind, whole)?;
            this.hand_on(own, overlap, late, (carried, &begun, &held))
        };
        for at in 1..apart {
            iteration(self, Expr::from(at), Whole { early: false, late: false })?;
        }
        let rest = count.minus(&Expr::from(apart)).ok_or_else(over)?;
        let behind = |at: &Expr, by: &Expr| Stride::plus(at, by).ok_or_else(over);
        if overlap.masks.late.is_empty() {
            let whole = Whole { early: early_whole, late: true };
            k.range(rest, |at| iteration(self, behind(&at, &Expr::from(apart))?, whole))?;
        } else {
            // Only the last iterations, which the loops before do not cover, need the masks.
            let there = k.index(&rest)?;
            let [none, last] = [0, overlap.masks.last].map(|number| there.like(number as f64));
            let there = k.index_of(there.max(none).min(last))?;
            let between = rest.minus(&there).ok_or_else(over)?;
            let whole = Whole { early: early_whole, late: true };
            k.range(between.clone(), |at| iteration(self, behind(&at, &Expr::from(apart))?, whole))?;
            let last = behind(&between, &Expr::from(apart))?;
            let whole = Whole { early: early_whole, late: false };
            k.range(there, |at| iteration(self, behind(&at, &last)?, whole))?;
        }
        self.await_factors(late)?;
        let last = self.set_off(overlap.late, late, (&begun, true), Some(&held))?;
        k.wait_mma(0);
        last.release()?;
        carried[sums].set(&begun.numbers()?)
    }

    fn begin_product(
        &self,
        result: ValueId,
        operands: &[ValueId],
    ) -> Result<super::multiply::UnderWay<'k>, KernelError> {
        let rows = match self.by_groups()?.plan.of.contains_key(&operands[0]) {
            true => None,
            false => Some(self.rows_of(result, operands[0])?),
        };
        let (sums, adds) = self.begun(result, operands[2])?;
        self.set_off(result, operands, (&sums, adds), rows.as_ref())
    }

    /// The loop-carried state: values, the accumulators of the last `dot`, and the operand of that
    /// `dot`.
    fn hand_on(
        &self,
        own: &Loop,
        overlap: &Overlap,
        late: &[ValueId],
        (carried, begun, held): (&[Fragment<'k>], &Fragment<'k>, &Fragment<'k>),
    ) -> Result<(), KernelError> {
        let next = own.next.iter().enumerate().filter(|(number, _)| *number != overlap.sums);
        let next: Vec<(usize, Vec<_>)> =
            next.map(|(number, value)| Ok((number, self.numbers(*value)?))).collect::<Result<_, KernelError>>()?;
        let rows = self.rows_of(overlap.late, late[0])?;
        begun.set(&self.numbers(late[2])?)?;
        held.assign(&rows)?;
        next.into_iter().try_for_each(|(number, numbers)| carried[number].set(&numbers))
    }
}

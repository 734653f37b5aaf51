//! Loops whose `cp.async` copies are issued ahead of their iterations, by all threads of the block.
//!
//! Law: iteration `t` uses stage `t mod n`. Its copies are issued in iteration `t - n + 1`, or
//! before the first one, into a stage that no thread reads any more. They have arrived, for all
//! threads, when iteration `t` begins. One barrier in each iteration ensures both: a thread that
//! has passed it has waited for its own copies of this iteration, and has finished the previous
//! iteration.

use tilewright_layout::symbolic::Expr;

use super::Build;
use super::core::{Core, Slot};
use super::number::Flag;
use super::role::barrier_of;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Comparison, Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// The greatest index of an iteration.
fn last_iteration(iterations: &Expr) -> i64 {
    iterations.range().1.map_or(i64::from(i32::MAX), |most| most.min(i64::from(i32::MAX))) - 1
}

impl Core {
    fn add(&mut self, register: Register, term: i64) -> Register {
        let term = self.constant(term as u32 as u64, Width::Bits32);
        self.pure(Operation::Binary(Binary::Add, Number::I32), [register, term], Width::Bits32)
    }

    /// The stage after a stage; the first one after the last.
    fn next_stage(&mut self, stage: Register, stages: i64) -> Register {
        let next = self.add(stage, 1);
        let (end, zero) = (self.constant(stages as u64, Width::Bits32), self.constant(0, Width::Bits32));
        let over = self.pure(Operation::Compare(Comparison::Equal, Number::I32), [next, end], Width::Predicate);
        self.pure(Operation::Select, [over, zero, next], Width::Bits32)
    }
}

impl Build {
    /// A loop whose asynchronous copies are issued ahead by all stages but one. `copy` issues the
    /// copies of an iteration into a stage, and `work` uses them. All threads of the block, or of
    /// the role, execute both. Groups, waits and barriers are inserted; they are those of sm_80.
    ///
    /// ```
    /// use tilewright_layout::atoms::{CopyAtom, TiledCopy};
    /// use tilewright_kernel::{Kernel, interpret};
    /// use tilewright_layout::symbolic::Expr;
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let at = |index: &Expr| Tree::flat([Slot::All, Slot::All, Slot::At(index.clone())]);
    /// let kernel = Kernel::build("copied", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(32,4,K):(4,1,128)")?, k.output::<f32>("y", "(32,4,K):(4,1,128)")?);
    ///     k.threads(32)?;
    ///     let held = k.shared::<f32>("(32,4,3):(4,1,128)")?;
    ///     let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>")?;
    ///     let copy = TiledCopy::new(atom, 32, &"(32,1):(1,1)".parse()?, &"(1,4)".parse()?)?;
    ///     k.staged(
    ///         3,
    ///         k.size("K")?,
    ///         |iteration, stage| k.copy(&copy, &x.slice(at(iteration)?)?, &held.slice(at(stage)?)?),
    ///         |iteration, stage| {
    ///             let values = held.slice(at(stage)?)?.thread_part()?.load()?;
    ///             y.slice(at(iteration)?)?.thread_part()?.store(&values)
    ///         },
    ///     )
    /// })?;
    /// let run = interpret::check(kernel.program(), &[("K", 7)])?.run;
    /// assert_eq!(run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: fewer than two stages; those of the bodies; the count has too many terms.
    #[track_caller]
    pub fn staged(
        &self,
        stages: i64,
        iterations: impl Into<Expr>,
        copy: impl Fn(&Expr, &Expr) -> Result<(), KernelError>,
        work: impl FnOnce(&Expr, &Expr) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let location = Location::caller();
        let source = Source { statement: "staged", location };
        let refuse = |refusal: Reason| refusal.at("staged", location);
        let iterations = iterations.into();
        self.core().begin(source);
        if !(2..=1 << 16).contains(&stages) {
            let because = "copies run ahead by all stages but one, so there are at least two".to_string();
            return Err(refuse(Reason::Instruction { name: format!("{stages} stages"), because }));
        }
        // Issues the copies of the iteration whose index is in a register, if there is such an
        // iteration.
        let ahead = |iteration: Register, stage: &Expr| {
            let (inside, iteration) = {
                let mut core = self.core_for(source);
                let end = core.lower(&iterations, Width::Bits32).map_err(refuse)?;
                let inside = Operation::Compare(Comparison::Less, Number::I32);
                let inside = core.pure(inside, [iteration, end], Width::Predicate);
                (inside, core.new_variable(iteration, last_iteration(&iterations).max(1), Some(iterations.clone())))
            };
            let body = || copy(&iteration, stage);
            self.branch("staged", Flag { build: self, register: inside }, body, || Ok(()), location)?;
            let mut core = self.core_for(source);
            core.effect(Operation::CommitAsync, [], &[], None);
            Ok::<_, KernelError>(())
        };
        for iteration in 0..stages - 1 {
            let register = self.core().constant(iteration as u64, Width::Bits32);
            ahead(register, &Expr::from(iteration))?;
        }
        // The stage of the iteration, and that of the copies, as loop-carried variables.
        let cell = {
            let mut core = self.core();
            let (first, last) = (core.constant(0, Width::Bits32), core.constant(stages as u64 - 1, Width::Bits32));
            let cell = core.new_cell(32, 2).map_err(refuse)?;
            core.cells[cell].slots = vec![Slot::Whole(first), Slot::Whole(last)];
            cell
        };
        self.range(iterations.clone(), |iteration| {
            let (next, stage, filled) = {
                let mut core = self.core_for(source);
                core.effect(Operation::WaitAsync(stages as u32 - 2), [], &[], None);
                let barrier = barrier_of(core.team.as_ref());
                core.effect(barrier, [], &[], None);
                let now = core.lower(&iteration, Width::Bits32).map_err(refuse)?;
                let next = core.add(now, stages - 1);
                let stage = core.element_register(cell, 0).map_err(refuse)?;
                let filled = core.element_register(cell, 1).map_err(refuse)?;
                let [stage, filled] = [stage, filled].map(|register| core.new_variable(register, stages - 1, None));
                (next, stage, filled)
            };
            ahead(next, &filled)?;
            work(&iteration, &stage)?;
            let mut core = self.core_for(source);
            let filled = core.element_register(cell, 0).map_err(refuse)?;
            let stage = core.next_stage(filled, stages);
            core.cells[cell].slots = vec![Slot::Whole(stage), Slot::Whole(filled)];
            Ok(())
        })?;
        // The code after this may reuse the stages.
        let mut core = self.core_for(source);
        core.effect(Operation::WaitAsync(0), [], &[], None);
        let barrier = barrier_of(core.team.as_ref());
        core.effect(barrier, [], &[], None);
        Ok(())
    }
}

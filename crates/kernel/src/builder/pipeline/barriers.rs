//! The two mbarriers of a stage: waiting until it is empty or full, and releasing it.
//!
//! Law: consumers wait at the full mbarrier for the parity of their iteration, and producers at the
//! empty mbarrier for the opposite parity, so that the first iteration of a stage does not wait. A
//! warp that has finished reading arrives once at the empty mbarrier of each block that fills the
//! stage.

use super::Stage;
use crate::arguments::IntoRanks;
use crate::error::KernelError;
use crate::program::memory::BufferId;
use crate::program::operation::{Binary, Comparison, Number, Operation, Special};
use crate::program::register::{Register, Width};

impl Stage<'_> {
    /// Waits until the stage is empty: for producers.
    ///
    /// Errors: an index has too many terms.
    #[track_caller]
    pub fn acquire(&self) -> Result<(), KernelError> {
        // In the first iteration of a stage, the phase before the first one counts as completed.
        let one = self.build.core().constant(1, Width::Bits32);
        let parity = {
            let mut core = self.build.core();
            core.pure(Operation::Binary(Binary::Xor, Number::U32), [self.parity, one], Width::Bits32)
        };
        self.wait_at("acquire", self.empty, parity)
    }

    /// Waits until the stage is full: for consumers.
    ///
    /// Errors: as [`Stage::acquire`].
    #[track_caller]
    pub fn wait(&self) -> Result<(), KernelError> {
        self.wait_at("wait", self.full, self.parity)
    }

    #[track_caller]
    fn wait_at(&self, statement: &'static str, buffer: BufferId, parity: Register) -> Result<(), KernelError> {
        self.build.statement(statement, || {
            let (access, address) = self.build.object(buffer, &self.index)?;
            let inputs: Vec<Register> = address.into_iter().chain([parity]).collect();
            self.build.core().effect(Operation::BarrierWait { access }, inputs, &[], None);
            Ok(())
        })
    }

    /// Releases the stage for this warp: its lanes synchronize, and one of them arrives.
    ///
    /// Errors: as [`Stage::acquire`].
    #[track_caller]
    pub fn release(&self) -> Result<(), KernelError> {
        let (access, address) = self.build.statement("release", || self.build.object(self.empty, &self.index))?;
        let mut core = self.build.core();
        core.effect(Operation::WarpBarrier, [], &[], None);
        let (lane, zero) = (core.special(Special::Lane), core.constant(0, Width::Bits32));
        let first = core.pure(Operation::Compare(Comparison::Equal, Number::I32), [lane, zero], Width::Predicate);
        core.effect(Operation::BarrierArrive { access, expect: 0 }, address, &[], Some(first));
        Ok(())
    }

    /// As [`Stage::release`], at the blocks that fill the stage of this block, given by their ranks
    /// ([`IntoRanks`]). The lanes of the warp synchronize, and one arrives at the stage of each
    /// block. The arrival says that the stage has been read; it does not publish ordinary stores.
    ///
    /// Errors: as [`Stage::acquire`]; the ranks are not proved to be in the cluster.
    #[track_caller]
    pub fn release_to(&self, fillers: impl IntoRanks) -> Result<(), KernelError> {
        self.arrive_at("release_to", fillers, false)
    }

    /// As [`Stage::release_to`], and also publishes the stores of the warp, including those to
    /// shared memory of other blocks, to threads that wait with [`Stage::acquire`]
    /// (`mbarrier.arrive.release.cluster`). The arriving thread waits for all its stores, and waits
    /// in such a kernel have cluster scope. If nothing was stored, [`Stage::release_to`] is faster.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Kernel, interpret};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Each of two blocks sends 32 numbers to the other one, and signals it by an arrival.
    /// let kernel = Kernel::build("given", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(32,1,2):(1,1,32)")?, k.output::<f32>("y", "(32,1,2):(1,1,32)")?);
    ///     k.threads(32)?;
    ///     k.grid(Axis::X, 2)?;
    ///     k.cluster(2)?;
    ///     let column = Tree::flat([Slot::All, Slot::All, Slot::At(k.block_number(Axis::X))])?;
    ///     let taken = k.shared::<f32>("(32,1):(1,1)")?;
    ///     let iteration = k.pipeline(1, 1)?.cursor()?;
    ///     let other = k.rank_after(1)?;
    ///     let own = x.slice(column.clone())?.thread_part()?.load()?;
    ///     taken.of_block(other.clone())?.thread_part()?.store(&own)?;
    ///     iteration.stage()?.give_to(other)?;
    ///     // The phase that the arrival of the other block ends.
    ///     iteration.advance()?;
    ///     iteration.stage()?.acquire()?;
    ///     y.slice(column)?.thread_part()?.store(&taken.thread_part()?.load()?)
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// let (x, y) = (run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// assert_eq!((&y[..32], &y[32..]), (&x[32..], &x[..32]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Stage::release_to`].
    #[track_caller]
    pub fn give_to(&self, fillers: impl IntoRanks) -> Result<(), KernelError> {
        self.arrive_at("give_to", fillers, true)
    }

    #[track_caller]
    fn arrive_at(&self, statement: &'static str, fillers: impl IntoRanks, releases: bool) -> Result<(), KernelError> {
        self.build.statement(statement, || {
            let (access, address) = self.build.object(self.empty, &self.index)?;
            let mut core = self.build.core();
            let ranks = core.ranks(fillers)?;
            core.effect(Operation::WarpBarrier, [], &[], None);
            let (rank, inside) = core.rank_of_lane(&ranks)?;
            let inputs: Vec<Register> = address.into_iter().chain([rank]).collect();
            core.effect(Operation::RemoteArrive { access, releases }, inputs, &[], Some(inside));
            Ok(())
        })
    }
}

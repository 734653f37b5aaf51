//! Pipelines: stages of shared memory that producer warps fill and consumer warps read.
//!
//! Law: iteration `t` uses stage `t mod n`. Producers fill a stage when it is empty, consumers read
//! it when it is full, and it is empty again when all consumers have released it. Each stage has
//! two mbarriers, and an iteration waits for the phase with parity `t / n mod 2`. A cursor counts
//! stage and parity, one for the producers and one for the consumers, so the author counts neither
//! by hand.
//!
//! This file has the ring, its mbarriers and its cursors. `copies.rs` fills a stage; `barriers.rs`
//! waits for a stage and releases it. `scheduler.rs` passes the indices that clusters claim through
//! a ring.

mod barriers;
mod copies;
mod scheduler;

pub use scheduler::{Claim, DynamicScheduler};

use std::cell::Cell;

use tilewright_layout::Layout;
use tilewright_layout::symbolic::Expr;

use super::Build;
use super::core::Slot;
use super::number::Flag;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::memory::{BufferId, Role, Space};
use crate::program::operation::{Binary, Comparison, Fence, Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// A ring of stages: see [`Build::pipeline`].
#[derive(Clone)]
pub struct Pipeline<'k> {
    build: &'k Build,
    stages: i64,
    full: BufferId,
    empty: BufferId,
}

/// The stage and the parity at which the producers or the consumers of a ring are: see
/// [`Pipeline::cursor`].
pub struct Cursor<'k> {
    pipeline: Pipeline<'k>,
    /// Stage and parity, as a variable that loops carry.
    cell: usize,
}

/// An iteration of a ring: see [`Cursor::stage`].
pub struct Stage<'k> {
    build: &'k Build,
    full: BufferId,
    empty: BufferId,
    index: Expr,
    /// The parity of the phase that its users wait for.
    parity: Register,
    /// The bytes of the copies into the stage so far.
    bytes: Cell<i64>,
}

impl std::fmt::Debug for Pipeline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pipeline({} stages)", self.stages)
    }
}

impl std::fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cursor({:?})", self.pipeline)
    }
}

impl std::fmt::Debug for Stage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stage({})", self.index)
    }
}

impl Build {
    /// A ring of `stages` stages. A stage is empty again after `releases` releases: one by each
    /// warp that reads it ([`Stage::release`]).
    ///
    /// Call it before the roles: all threads of the block, or of the cluster, wait here until the
    /// mbarriers are initialised. The number of threads and the size of the cluster, if there is
    /// one, must have been set. If other blocks fill a stage too, its releases include those to the
    /// other blocks ([`Stage::release_to`]).
    ///
    /// Errors: no stages, or no releases; too little shared memory; the number of threads was not
    /// set; a call in a role.
    #[track_caller]
    pub fn pipeline(&self, stages: i64, releases: u32) -> Result<Pipeline<'_>, KernelError> {
        let location = Location::caller();
        let source = Source { statement: "pipeline", location };
        let refuse = |refusal: Reason| refusal.at("pipeline", location);
        self.core().begin(source);
        let because =
            |because: &str| Reason::Instruction { name: "pipeline".to_string(), because: because.to_string() };
        if stages < 1 || releases < 1 {
            return Err(refuse(because("there are stages, and someone who releases them")));
        }
        if self.core().team.is_some() {
            return Err(refuse(because("it must be outside of roles, because all threads use it")));
        }
        let array = || -> Result<BufferId, KernelError> {
            let name = format!("barriers{}", self.core().buffers.len());
            let view = self.declare(Element::U64, &name, Layout::strided(stages, 1), Space::Shared, Role::Both);
            Ok(view.map_err(refuse)?.buffer)
        };
        let (full, empty) = (array()?, array()?);
        let first = {
            let mut core = self.core();
            let thread = core.thread().map_err(refuse)?;
            let thread = core.lower(&thread, Width::Bits32).map_err(refuse)?;
            let zero = core.constant(0, Width::Bits32);
            core.pure(Operation::Compare(Comparison::Equal, Number::I32), [thread, zero], Width::Predicate)
        };
        let init = || {
            for stage in 0..stages {
                for (buffer, count) in [(full, 1), (empty, releases)] {
                    let (access, address) = self.object(buffer, &Expr::from(stage)).map_err(refuse)?;
                    let mut core = self.core_for(source);
                    core.effect(Operation::BarrierInit { access, count }, address, &[], None);
                }
            }
            self.core().effect(Operation::Fence(Fence::BarrierInit), [], &[], None);
            Ok(())
        };
        self.branch("pipeline", Flag { build: self, register: first }, init, || Ok(()), location)?;
        let mut core = self.core_for(source);
        if core.cluster_size() > 1 {
            // Other blocks also arrive at these mbarriers.
            core.effect(Operation::ClusterArrive, [], &[], None);
            core.effect(Operation::ClusterWait, [], &[], None);
        } else {
            core.effect(Operation::Barrier, [], &[], None);
        }
        drop(core);
        Ok(Pipeline { build: self, stages, full, empty })
    }
}

impl<'k> Pipeline<'k> {
    /// The position of a role in the ring, at the first stage. The producers create one in their
    /// role, and the consumers one in theirs.
    ///
    /// Errors: the kernel has too many variables.
    #[track_caller]
    pub fn cursor(&self) -> Result<Cursor<'k>, KernelError> {
        self.build.instructed("cursor", |core| {
            let zero = core.constant(0, Width::Bits32);
            let cell = core.new_cell(32, 2)?;
            core.cells[cell].slots.fill(Slot::Whole(zero));
            Ok(Cursor { pipeline: self.clone(), cell })
        })
    }
}

impl<'k> Cursor<'k> {
    /// The current stage.
    ///
    /// Errors: the cursor belongs to another role, or to a loop that is closed.
    #[track_caller]
    pub fn stage(&self) -> Result<Stage<'k>, KernelError> {
        let Pipeline { build, stages, full, empty } = self.pipeline.clone();
        build.instructed("stage", |core| {
            let (index, parity) = (core.element_register(self.cell, 0)?, core.element_register(self.cell, 1)?);
            let index = core.new_variable(index, stages - 1, None);
            Ok(Stage { build, full, empty, index, parity, bytes: Cell::new(0) })
        })
    }

    /// Advances to the next stage, and from the last one to the first.
    ///
    /// Errors: as [`Cursor::stage`].
    #[track_caller]
    pub fn advance(&self) -> Result<(), KernelError> {
        self.pipeline.build.instructed("advance", |core| {
            let (index, parity) = (core.element_register(self.cell, 0)?, core.element_register(self.cell, 1)?);
            let [zero, one, end] = [0, 1, self.pipeline.stages as u64].map(|value| core.constant(value, Width::Bits32));
            let next = core.pure(Operation::Binary(Binary::Add, Number::I32), [index, one], Width::Bits32);
            let over = core.pure(Operation::Compare(Comparison::Equal, Number::I32), [next, end], Width::Predicate);
            let index = core.pure(Operation::Select, [over, zero, next], Width::Bits32);
            let turned = core.pure(Operation::Select, [over, one, zero], Width::Bits32);
            let parity = core.pure(Operation::Binary(Binary::Xor, Number::U32), [parity, turned], Width::Bits32);
            core.cells[self.cell].slots = vec![Slot::Whole(index), Slot::Whole(parity)];
            Ok(())
        })
    }
}

impl Cursor<'_> {
    /// Advances by `count` stages, like `count` calls of [`Cursor::advance`]: past stages that
    /// other roles use.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, KernelError, interpret};
    /// use tilewright_layout::symbolic::Expr;
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // One warp fills a ring, and two others use its stages in turn.
    /// let kernel = Kernel::build("iterations", |k| {
    ///     let x = k.input::<f32>("x", "(32,4,6):(4,1,128)")?;
    ///     let y = k.output::<f32>("y", "(32,4,2,3):(4,1,128,256)")?;
    ///     k.threads(96)?;
    ///     let ring = k.shared::<f32>("(32,4,4):(4,1,128)")?;
    ///     let pipeline = k.pipeline(4, 1)?;
    ///     let at = |index: &Expr| {
    ///         Ok::<_, KernelError>(Tree::flat([Slot::All, Slot::All, Slot::At(index.clone())])?)
    ///     };
    ///     k.role(2..3, || {
    ///         k.single(|| {
    ///             let cursor = pipeline.cursor()?;
    ///             k.range(6, |iteration| {
    ///                 let stage = cursor.stage()?;
    ///                 stage.acquire()?;
    ///                 stage.load(&x.slice(at(&iteration)?)?, &ring.slice(at(stage.index())?)?)?;
    ///                 stage.publish()?;
    ///                 cursor.advance()
    ///             })
    ///         })
    ///     })?;
    ///     for warp in 0..2 {
    ///         k.role(warp..warp + 1, || {
    ///             let cursor = pipeline.cursor()?;
    ///             cursor.advance_by(warp.into())?;
    ///             let own = y.slice(Tree::flat([Slot::All, Slot::All, Slot::At(i64::from(warp).into()), Slot::All])?)?;
    ///             k.range(3, |iteration| {
    ///                 let stage = cursor.stage()?;
    ///                 stage.wait()?;
    ///                 let part = ring.slice(at(stage.index())?)?.thread_part()?.load()?;
    ///                 stage.release()?;
    ///                 own.slice(at(&iteration)?)?.thread_part()?.store(&part)?;
    ///                 cursor.advance_by(2)
    ///             })
    ///         })?;
    ///     }
    ///     Ok(())
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Cursor::stage`]; `count` is negative.
    #[track_caller]
    pub fn advance_by(&self, count: i64) -> Result<(), KernelError> {
        let stages = self.pipeline.stages;
        self.pipeline.build.instructed("advance_by", |core| {
            if count < 0 {
                let because = "a cursor only advances".to_string();
                return Err(Reason::Instruction { name: format!("advance_by {count}"), because });
            }
            let (index, parity) = (core.element_register(self.cell, 0)?, core.element_register(self.cell, 1)?);
            let (rounds, rest) = (count / stages % 2, count % stages);
            let constants = [0, 1, rest, stages - 1, -stages, rounds];
            let [zero, one, rest, last, back, rounds] =
                constants.map(|value| core.constant(value as i32 as u32 as u64, Width::Bits32));
            let add = Operation::Binary(Binary::Add, Number::I32);
            let next = core.pure(add.clone(), [index, rest], Width::Bits32);
            let over = core.pure(Operation::Compare(Comparison::Greater, Number::I32), [next, last], Width::Predicate);
            let around = core.pure(add, [next, back], Width::Bits32);
            let index = core.pure(Operation::Select, [over, around, next], Width::Bits32);
            let turned = core.pure(Operation::Select, [over, one, zero], Width::Bits32);
            let xor = Operation::Binary(Binary::Xor, Number::U32);
            let parity = core.pure(xor.clone(), [parity, turned], Width::Bits32);
            let parity = core.pure(xor, [parity, rounds], Width::Bits32);
            core.cells[self.cell].slots = vec![Slot::Whole(index), Slot::Whole(parity)];
            Ok(())
        })
    }
}

impl<'k> Stage<'k> {
    /// The index of the stage, for tensors in shared memory that have a mode of stages.
    pub fn index(&self) -> &Expr {
        &self.index
    }
}

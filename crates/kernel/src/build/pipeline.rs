//! Stages of shared memory between those who fill and those who use them.
//!
//! Law: turn `t` is in stage `t mod n`. A stage is filled when it is free, used when it is full, and
//! free again when all users have released it: two barriers in memory a stage count that, and which
//! phase a turn waits for is `t / n mod 2`. Both are what a cursor counts, one for those who fill and
//! one for those who use, so neither stages nor phases are counted by hand. The bytes that a stage
//! waits for are those of the copies that were set off into it.

use std::cell::Cell;

use tilewright_layout::symbolic::Expr;

use super::Build;
use super::core::Slot;
use super::number::Flag;
use super::tensor::View;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::memory::{BufferId, Role, Space};
use crate::program::operation::{Binary, Comparison, Fence, Number, Operation, Special};
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

/// Where those who fill, or those who use, are in a ring: see [`Pipeline::cursor`].
pub struct Cursor<'k> {
    pipeline: Pipeline<'k>,
    /// Stage and parity: a variable, which loops carry.
    cell: usize,
}

/// A turn of a ring: see [`Cursor::stage`].
pub struct Stage<'k> {
    build: &'k Build,
    full: BufferId,
    empty: BufferId,
    index: Expr,
    /// The parity of the phase that its users wait for.
    parity: Register,
    /// Bytes of the copies into it.
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
    /// A ring of so many stages, each of which is free again after as many releases: one by each
    /// warp that uses it ([`Stage::release`]).
    ///
    /// It stands before the roles: all threads of the block wait here until its barriers can be
    /// used. The number of threads must have been said.
    ///
    /// Errors: no stages, or no releases; there is not so much shared memory; the number of threads
    /// was not said; it stands in a role.
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
            return Err(refuse(because("it stands outside of roles, for all threads use it")));
        }
        let array = || -> Result<BufferId, KernelError> {
            let name = format!("barriers{}", self.core().buffers.len());
            let view = self.declare(Element::U64, &name, &format!("{stages}:1"), Space::Shared, Role::Both);
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
                    let mut core = self.core();
                    core.begin(source);
                    core.effect(Operation::BarrierInit { access, count }, address, &[], None);
                }
            }
            self.core().effect(Operation::Fence(Fence::BarrierInit), [], &[], None);
            Ok(())
        };
        self.branch("pipeline", Flag { build: self, register: first }, init, || Ok(()), location)?;
        let mut core = self.core();
        core.begin(source);
        core.effect(Operation::Barrier, [], &[], None);
        drop(core);
        Ok(Pipeline { build: self, stages, full, empty })
    }
}

impl<'k> Pipeline<'k> {
    /// The place of a role in the ring, at the first stage: one for those who fill, in their role, and
    /// one for those who use, in theirs.
    ///
    /// Errors: the kernel has no room for more variables.
    #[track_caller]
    pub fn cursor(&self) -> Result<Cursor<'k>, KernelError> {
        let location = Location::caller();
        let mut core = self.build.core();
        core.begin(Source { statement: "cursor", location });
        let zero = core.constant(0, Width::Bits32);
        let cell = core.new_cell(32, 2).map_err(|refusal| refusal.at("cursor", location))?;
        core.cells[cell].slots.fill(Slot::Whole(zero));
        drop(core);
        Ok(Cursor { pipeline: self.clone(), cell })
    }
}

impl<'k> Cursor<'k> {
    /// The stage at which it is.
    ///
    /// Errors: the cursor is of another role, or of a loop that is over.
    #[track_caller]
    pub fn stage(&self) -> Result<Stage<'k>, KernelError> {
        let location = Location::caller();
        let Pipeline { build, stages, full, empty } = self.pipeline.clone();
        let mut core = build.core();
        core.begin(Source { statement: "stage", location });
        let registers =
            core.element_register(self.cell, 0).and_then(|index| Ok([index, core.element_register(self.cell, 1)?]));
        let [index, parity] = registers.map_err(|refusal| refusal.at("stage", location))?;
        let index = core.new_variable(index, stages - 1, None);
        drop(core);
        Ok(Stage { build, full, empty, index, parity, bytes: Cell::new(0) })
    }

    /// Goes on to the next stage, and after the last one to the first.
    ///
    /// Errors: as [`Cursor::stage`].
    #[track_caller]
    pub fn advance(&self) -> Result<(), KernelError> {
        let location = Location::caller();
        let mut core = self.pipeline.build.core();
        core.begin(Source { statement: "advance", location });
        let mut advance = || {
            let (index, parity) = (core.element_register(self.cell, 0)?, core.element_register(self.cell, 1)?);
            let [zero, one, end] = [0, 1, self.pipeline.stages as u64].map(|value| core.constant(value, Width::Bits32));
            let next = core.pure(Operation::Binary(Binary::Add, Number::I32), [index, one], Width::Bits32);
            let over = core.pure(Operation::Compare(Comparison::Equal, Number::I32), [next, end], Width::Predicate);
            let index = core.pure(Operation::Select, [over, zero, next], Width::Bits32);
            let turned = core.pure(Operation::Select, [over, one, zero], Width::Bits32);
            let parity = core.pure(Operation::Binary(Binary::Xor, Number::U32), [parity, turned], Width::Bits32);
            core.cells[self.cell].slots = vec![Slot::Whole(index), Slot::Whole(parity)];
            Ok(())
        };
        advance().map_err(|refusal: Reason| refusal.at("advance", location))
    }
}

impl<'k> Stage<'k> {
    /// Which stage it is: the index in tensors of shared memory that have a mode of stages.
    pub fn index(&self) -> &Expr {
        &self.index
    }

    /// Waits until the stage is free: for those who fill it.
    ///
    /// Errors: an index with too many terms.
    #[track_caller]
    pub fn acquire(&self) -> Result<(), KernelError> {
        // Before the first turn of a stage, the phase before the first one counts as over.
        let one = self.build.core().constant(1, Width::Bits32);
        let parity = {
            let mut core = self.build.core();
            core.pure(Operation::Binary(Binary::Xor, Number::U32), [self.parity, one], Width::Bits32)
        };
        self.wait_at("acquire", self.empty, parity, Location::caller())
    }

    /// Waits until the stage is full: for those who use it.
    ///
    /// Errors: as [`Stage::acquire`].
    #[track_caller]
    pub fn wait(&self) -> Result<(), KernelError> {
        self.wait_at("wait", self.full, self.parity, Location::caller())
    }

    fn wait_at(
        &self,
        statement: &'static str,
        buffer: BufferId,
        parity: Register,
        location: Location,
    ) -> Result<(), KernelError> {
        self.build.core().begin(Source { statement, location });
        let (access, address) =
            self.build.object(buffer, &self.index).map_err(|refusal| refusal.at(statement, location))?;
        let inputs: Vec<Register> = address.into_iter().chain([parity]).collect();
        self.build.core().effect(Operation::BarrierWait { access }, inputs, &[], None);
        Ok(())
    }

    /// Sets off bulk copies of a tile of a tensor into shared memory, by one thread
    /// ([`Build::single`]), that arrive at this stage. The tensor map follows from the layouts
    /// of both. What the tile has past the edges of the tensor is filled with zeros.
    ///
    /// Errors: sizes or types differ; the tile does not lie in shared memory as boxes of the tensor
    /// lie; what is not shown to be aligned.
    #[track_caller]
    pub fn load(&self, source: &View<'k>, destination: &View<'k>) -> Result<(), KernelError> {
        let location = Location::caller();
        self.build.core().begin(Source { statement: "load", location });
        let load = || {
            source.readable()?;
            let boxes = self.build.boxes(source, destination)?;
            let (barrier, object) = self.build.object(self.full, &self.index)?;
            for at in &boxes.boxes {
                let (to, address, corner) = self.build.placed(at, destination)?;
                let inputs: Vec<Register> = address.into_iter().chain(object).chain(corner).collect();
                self.build.core().effect(Operation::BulkLoad { map: boxes.map, to, barrier }, inputs, &[], None);
            }
            self.bytes.set(self.bytes.get().saturating_add(boxes.bytes));
            Ok(())
        };
        load().map_err(|refusal: Reason| refusal.at("load", location))
    }

    /// Arrives for the copies that were set off into this stage: it is full when all their bytes
    /// are there. By the thread that set them off.
    ///
    /// Errors: more bytes than a barrier counts.
    #[track_caller]
    pub fn publish(&self) -> Result<(), KernelError> {
        let location = Location::caller();
        self.build.core().begin(Source { statement: "publish", location });
        let publish = || {
            let (access, address) = self.build.object(self.full, &self.index)?;
            let (asked, limit) = (self.bytes.get().unsigned_abs(), (1 << 20) - 1);
            if asked > limit {
                return Err(Reason::TooMuch { what: "bytes of a stage", asked, limit });
            }
            self.build.core().effect(Operation::BarrierArrive { access, expect: asked as u32 }, address, &[], None);
            Ok(())
        };
        publish().map_err(|refusal: Reason| refusal.at("publish", location))
    }

    /// Says that this warp is done with the stage: its lanes meet, and one of them arrives.
    ///
    /// Errors: as [`Stage::acquire`].
    #[track_caller]
    pub fn release(&self) -> Result<(), KernelError> {
        let location = Location::caller();
        self.build.core().begin(Source { statement: "release", location });
        let (access, address) =
            self.build.object(self.empty, &self.index).map_err(|refusal| refusal.at("release", location))?;
        let mut core = self.build.core();
        core.effect(Operation::WarpBarrier, [], &[], None);
        let (lane, zero) = (core.special(Special::Lane), core.constant(0, Width::Bits32));
        let first = core.pure(Operation::Compare(Comparison::Equal, Number::I32), [lane, zero], Width::Predicate);
        core.effect(Operation::BarrierArrive { access, expect: 0 }, address, &[], Some(first));
        Ok(())
    }
}

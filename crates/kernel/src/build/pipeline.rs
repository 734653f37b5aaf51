//! Stages of shared memory between those who fill and those who use them.
//!
//! Law: turn `t` is in stage `t mod n`. A stage is filled when it is free, used when it is full,
//! and free again when all users have released it: two barriers in memory a stage count that, and
//! which phase a turn waits for is `t / n mod 2`. Both are what a cursor counts, one for those who
//! fill and one for those who use, so neither stages nor phases are counted by hand. The bytes that
//! a stage waits for are those of the copies that were set off into it.

use std::cell::Cell;

use tilewright_layout::Extent;
use tilewright_layout::symbolic::{Expr, Symbolic, Values};

use super::Build;
use super::bulk::mode_of;
use super::cluster::Ranks;
use super::core::Slot;
use super::number::Flag;
use super::tensor::View;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::memory::{Access, BufferId, Role, Space};
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
    /// used; in a cluster, all threads of the cluster. The number of threads must have been said,
    /// and how many blocks a cluster has, if it has several. A stage that other blocks fill too
    /// counts the releases of their users ([`Stage::release_to`]).
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
        if core.cluster_size() > 1 {
            // Other blocks arrive at these barriers too.
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
    /// The place of a role in the ring, at the first stage: one for those who fill, in their role,
    /// and one for those who use, in theirs.
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
        self.filled(source, destination, None).map_err(|refusal| refusal.at("load", location))
    }

    /// As [`Stage::load`], into the same place in several blocks of the cluster at once: the
    /// receivers are the ranks that a layout names, `first` added. Each block of them sets off a
    /// part of the same size, so that a stage gets one from each, and [`Stage::publish`] expects as
    /// many. A stage is free when it is in all receivers: their users release it to all who fill it
    /// ([`Stage::release_to`]).
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Build, Kernel, KernelError, interpret, ptx};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Each of two blocks loads half of 64 rows for both, and both store all of them.
    /// let kernel = Kernel::build("shared", |k: &Build| {
    ///     let x = k.input::<u16>("x", "(64,64):(64,1)")?;
    ///     let y = k.output::<u16>("y", "(64,64,2):(64,1,4096)")?;
    ///     k.threads(64)?;
    ///     k.grid(Axis::X, "2")?;
    ///     k.cluster(2)?;
    ///     let ring = k.shared::<u16>("(64,64,1):(64,1,4096)")?;
    ///     let half = |k: &Build| Ok::<_, KernelError>(Tree::flat([Slot::At(k.rank()), Slot::At(0.into())])?);
    ///     let whole = ring.slice(Tree::flat([Slot::All, Slot::All, Slot::At(0.into())])?)?;
    ///     let pipeline = k.pipeline(1, 2)?;
    ///     k.role(1..2, || {
    ///         k.single(|| {
    ///             let stage = pipeline.cursor()?.stage()?;
    ///             stage.acquire()?;
    ///             let (from, to) = (x.local_tile("(32,64)", half(k)?)?, whole.local_tile("(32,64)", half(k)?)?);
    ///             stage.load_multicast(&from, &to, "2:1", 0)?;
    ///             stage.publish()
    ///         })
    ///     })?;
    ///     k.role(0..1, || {
    ///         let stage = pipeline.cursor()?.stage()?;
    ///         stage.wait()?;
    ///         let own = y.slice(Tree::flat([Slot::All, Slot::All, Slot::At(k.block_number(Axis::X))])?)?;
    ///         for rows in 0..2 {
    ///             let tile = Tree::flat([Slot::At(rows.into()), Slot::At(0.into())])?;
    ///             let part = whole.local_tile("(32,64)", tile.clone())?.thread_part()?.load()?;
    ///             own.local_tile("(32,64)", tile)?.thread_part()?.store(&part)?;
    ///         }
    ///         stage.release_to("2:1", 0)
    ///     })?;
    ///     // Nobody ends while the other one still arrives.
    ///     k.cluster_barrier();
    ///     Ok(())
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<u16>(1)?[4096..], run.tensor::<u16>(0)?[..]);
    /// assert!(ptx::write(kernel.program(), ptx::Target::Sm90a)?.contains(".multicast::cluster"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Stage::load`]; the ranks are not shown to be of the cluster.
    #[track_caller]
    pub fn load_multicast(
        &self,
        source: &View<'k>,
        destination: &View<'k>,
        receivers: &str,
        first: impl Into<Expr>,
    ) -> Result<(), KernelError> {
        let location = Location::caller();
        self.build.core().begin(Source { statement: "load_multicast", location });
        let first = first.into();
        let load = || {
            let ranks = self.build.core().ranks(receivers, &first)?;
            self.filled(source, destination, Some(&ranks))
        };
        load().map_err(|refusal: Reason| refusal.at("load_multicast", location))
    }

    /// Sets off bulk copies of a tile, for one block or for several.
    fn filled(&self, source: &View<'k>, destination: &View<'k>, to_all: Option<&Ranks>) -> Result<(), Reason> {
        source.readable()?;
        let boxes = self.build.boxes(source, destination)?;
        let (barrier, object) = self.build.object(self.full, &self.index)?;
        for at in &boxes.boxes {
            let (to, address, corner) = self.build.placed(at, destination)?;
            let mut core = self.build.core();
            let mask = to_all.map(|ranks| core.mask_of(ranks)).transpose()?;
            let inputs: Vec<Register> = address.into_iter().chain(object).chain(corner).chain(mask).collect();
            let operation = Operation::BulkLoad { map: boxes.map, to, barrier, multicast: mask.is_some() };
            core.effect(operation, inputs, &[], None);
        }
        let parts = to_all.map_or(1, |ranks| ranks.ranks.len() as i64);
        self.bytes.set(self.bytes.get().saturating_add(boxes.bytes.saturating_mul(parts)));
        Ok(())
    }

    /// Sets off a bulk copy from a tile of shared memory to one of a block of the cluster, by one
    /// thread: it arrives at this stage of that block (`cp.async.bulk.shared::cluster`). Each block
    /// sends as many bytes as it gets, and [`Stage::publish`] expects as many. Both tiles have the
    /// same layout, without gaps.
    ///
    /// Errors: types or layouts differ, or have gaps; what is not shown to be aligned, or to be a
    /// rank of the cluster.
    #[track_caller]
    pub fn send(&self, source: &View<'k>, destination: &View<'k>, rank: impl Into<Expr>) -> Result<(), KernelError> {
        let location = Location::caller();
        self.build.core().begin(Source { statement: "send", location });
        let rank = rank.into();
        let send = || {
            let bytes = source.same_bytes(destination)?;
            let (barrier, object) = self.build.object(self.full, &self.index)?;
            let (to, to_address) = destination.bytes_of()?;
            let (from, from_address) = source.bytes_of()?;
            let mut core = self.build.core();
            core.ranks("1:0", &rank)?;
            let rank = core.lower(&rank, Width::Bits32)?;
            let inputs: Vec<Register> =
                to_address.into_iter().chain(object).chain(from_address).chain([rank]).collect();
            core.effect(Operation::BulkSend { to, barrier, from, bytes: bytes as u32 }, inputs, &[], None);
            self.bytes.set(self.bytes.get().saturating_add(bytes));
            Ok(())
        };
        send().map_err(|refusal: Reason| refusal.at("send", location))
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

    /// As [`Stage::release`], to the blocks that fill the stage in this one: the ranks that a
    /// layout names, `first` added. The lanes of the warp meet, and one arrives at the stage of
    /// each. It says that the stage has been read; what ordinary stores wrote there is not passed
    /// on.
    ///
    /// Errors: as [`Stage::acquire`]; the ranks are not shown to be of the cluster.
    #[track_caller]
    pub fn release_to(&self, fillers: &str, first: impl Into<Expr>) -> Result<(), KernelError> {
        self.arrive_at("release_to", (fillers, &first.into()), false, Location::caller())
    }

    /// As [`Stage::release_to`], and what the warp stored, in shared memory of other blocks too, is
    /// passed on to who waits there with [`Stage::acquire`] (`mbarrier.arrive.release.cluster`).
    /// It waits for all stores of the thread that arrives, and waits in such a kernel are for the
    /// whole cluster: where nothing was stored, [`Stage::release_to`] is faster.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Kernel, interpret};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Each of two blocks gives the other one 32 numbers, and tells it by an arrival.
    /// let kernel = Kernel::build("given", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(32,1,2):(1,1,32)")?, k.output::<f32>("y", "(32,1,2):(1,1,32)")?);
    ///     k.threads(32)?;
    ///     k.grid(Axis::X, "2")?;
    ///     k.cluster(2)?;
    ///     let column = Tree::flat([Slot::All, Slot::All, Slot::At(k.block_number(Axis::X))])?;
    ///     let taken = k.shared::<f32>("(32,1):(1,1)")?;
    ///     let turn = k.pipeline(1, 1)?.cursor()?;
    ///     let other = k.rank_after(1)?;
    ///     let own = x.slice(column.clone())?.thread_part()?.load()?;
    ///     taken.of_block(other.clone())?.thread_part()?.store(&own)?;
    ///     turn.stage()?.give_to("1:0", other)?;
    ///     // The phase that the arrival of the other block ends.
    ///     turn.advance()?;
    ///     turn.stage()?.acquire()?;
    ///     y.slice(column)?.thread_part()?.store(&taken.thread_part()?.load()?)
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// let (x, y) = (run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// assert_eq!((&y[..32], &y[32..]), (&x[32..], &x[..32]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn give_to(&self, fillers: &str, first: impl Into<Expr>) -> Result<(), KernelError> {
        self.arrive_at("give_to", (fillers, &first.into()), true, Location::caller())
    }

    fn arrive_at(
        &self,
        statement: &'static str,
        (fillers, first): (&str, &Expr),
        releases: bool,
        location: Location,
    ) -> Result<(), KernelError> {
        self.build.core().begin(Source { statement, location });
        let arrive = || {
            let (access, address) = self.build.object(self.empty, &self.index)?;
            let mut core = self.build.core();
            let ranks = core.ranks(fillers, first)?;
            core.effect(Operation::WarpBarrier, [], &[], None);
            let (rank, inside) = core.rank_of_lane(&ranks)?;
            let inputs: Vec<Register> = address.into_iter().chain([rank]).collect();
            core.effect(Operation::RemoteArrive { access, releases }, inputs, &[], Some(inside));
            Ok(())
        };
        arrive().map_err(|refusal: Reason| refusal.at(statement, location))
    }
}

impl View<'_> {
    /// How many bytes two tiles of shared memory have that lie alike, without gaps.
    fn same_bytes(&self, other: &View<'_>) -> Result<i64, Reason> {
        let refuse = |because: &str| Reason::Width {
            tensor: self.text(),
            atom: "a bulk copy between blocks".to_string(),
            elements: 128 / self.element.bits(),
            because: because.to_string(),
        };
        self.own_block("the source of a bulk copy")?;
        other.own_block("a bulk copy, to which the rank is given,")?;
        if !self.is_shared() || !other.is_shared() {
            return Err(refuse("both sides are in shared memory"));
        }
        if self.element != other.element {
            return Err(Reason::Elements { wanted: other.element, given: self.element });
        }
        if self.layout != other.layout || self.map != other.map {
            return Err(refuse("both sides have one layout"));
        }
        let layout = self.layout.numbers(&Values::new())?;
        if layout.right_inverse()?.size() != layout.size() {
            return Err(refuse("it does not lie in shared memory without gaps"));
        }
        let bits = i64::from(self.element.bits());
        let mode = mode_of(self, bits).ok_or_else(|| refuse("the swizzle is none of the copy engine"))?;
        let (unit, bytes) = (mode.period().max(16), layout.size() * bits / 8);
        let period = Expr::from((unit * 8 / bits).max(1));
        // Whole patterns of the swizzle, so that both sides are permuted alike.
        if bytes % unit != 0 || [self, other].iter().any(|view| !period.divides(&view.offset).proved()) {
            return Err(refuse("it is not shown to begin and end at multiples of 16 bytes, or where its swizzle does"));
        }
        Ok(bytes)
    }

    /// Where a tile begins in shared memory, before its swizzle.
    fn bytes_of(&self) -> Result<(Access, Option<Register>), Reason> {
        let plain = View { map: None, ..self.clone() };
        let (address, offset) = plain.address(&mut self.build.core(), &self.offset)?;
        Ok((plain.access(address, offset, 64, 2), address))
    }
}

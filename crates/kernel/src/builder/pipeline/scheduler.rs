//! The dynamic persistent scheduler: clusters claim indices from an atomic counter.
//!
//! Law: one thread of the first block of a cluster increments the counter in global memory, and
//! sends the result to all blocks of the cluster through a ring in shared memory. Each index below
//! n is claimed by exactly one cluster, in one of its iterations, and by all threads of the cluster
//! in that iteration. An index of n or more means stop. With n indices and C clusters, the counter
//! takes n + C values and wraps to 0, so the next launch finds it at 0.

mod refused;

use std::cell::{Cell, RefCell};

use tilewright_layout::symbolic::{Expr, Symbolic};
use tilewright_layout::{Coord, Layout, LayoutError, Slot as Part, Stride, Tree};

use super::super::Build;
use super::super::core::{Core, Slot};
use super::super::number::Flag;
use super::super::state::SchedulerState;
use super::super::tensor::View;
use super::{Cursor, Stage};
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Comparison, Fence, Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::scalar::Scalar;
use crate::program::{Location, Source, TileCounter};

/// The number of 32-bit indices of a message: a bulk copy moves at least 16 bytes.
const MESSAGE: usize = 4;
/// The stages of the ring of messages: one is read while the next is in flight.
const STAGES: i64 = 2;

/// Indices that clusters claim from an atomic counter: see [`Build::dynamic_scheduler`].
pub struct DynamicScheduler<'k> {
    build: &'k Build,
    count: Expr,
    /// The prefetch distance in iterations; and the number of indices that are known when an
    /// iteration begins, which is the prefetch distance, or one more.
    ahead: usize,
    known: usize,
    /// The number of the launch's counter, the value after which it wraps, and the end of the
    /// indices.
    which: Register,
    last: Register,
    end: Register,
    numbers: View<'k>,
    cursor: Cursor<'k>,
    /// The indices of the next iterations, as a loop-carried variable.
    cell: usize,
}

/// An iteration of a cluster, with the index that it has claimed: see [`DynamicScheduler::each`].
pub struct Claim<'a, 'k> {
    scheduler: &'a DynamicScheduler<'k>,
    iteration: Expr,
    now: Expr,
    depth: usize,
    /// The index that is claimed the prefetch distance ahead, once the body has requested it; and
    /// whether the next one has been requested.
    later: RefCell<Option<Expr>>,
    asked: Cell<bool>,
    /// The last index that was known when the iteration began.
    latest: Register,
    stage: Stage<'k>,
}

impl std::fmt::Debug for DynamicScheduler<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DynamicScheduler({} indices, {} ahead)", self.count, self.ahead)
    }
}

impl std::fmt::Debug for Claim<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim({})", self.now)
    }
}

fn refuse(because: impl Into<String>) -> Reason {
    Reason::Instruction { name: "dynamic_scheduler".to_string(), because: because.into() }
}

impl Build {
    /// Clusters claim the indices from 0 up to `count` dynamically from an atomic counter. Without
    /// clusters, blocks claim them. Each index is claimed by exactly one cluster. A cluster that
    /// finishes early claims more, so the load is balanced even if iterations take different times.
    /// `ahead` indices, 1 to 4, are known before their iterations, so that their loads can be
    /// issued early.
    ///
    /// The grid (along x only), the threads of a block and the blocks of a cluster must be set
    /// before. A kernel has one dynamic scheduler, outside of roles, loops and conditions.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Kernel, Written, interpret, ptx};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Three blocks double rows of 32 numbers, however many there are.
    /// let kernel = Kernel::build("rows", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(M,32):(32,1)")?, k.output::<f32>("y", "(M,32):(32,1)")?);
    ///     k.threads(32)?;
    ///     k.grid(Axis::X, 3)?;
    ///     let scheduler = k.dynamic_scheduler(k.size("M")?, 1)?;
    ///     scheduler.each(|claim| {
    ///         let row = Tree::flat([Slot::At(claim.now().clone()), Slot::All])?;
    ///         let own = x.slice(row.clone())?.thread_part()?.load()?;
    ///         y.slice(row)?.thread_part()?.store(&own.map(|x| Ok(x + x))?)
    ///     })
    /// })?;
    /// // For every M, and in whichever order clusters claim rows.
    /// assert_eq!(kernel.outputs()[0].written, Written::Once);
    /// let run = interpret::check(kernel.program(), &[("M", 10)])?.run;
    /// let (x, y) = (run.tensor::<f32>("x")?, run.tensor::<f32>("y")?);
    /// assert!(x.iter().zip(&y).all(|(x, y)| x + x == *y));
    /// assert!(ptx::write(kernel.program(), ptx::Target::Sm90a)?.contains("atom.global.inc.u32"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The counter is in memory of the module. It needs no clearing, not in CUDA graphs either,
    /// because each launch leaves it at 0. Launches that may run concurrently use different
    /// counters, which the launch selects ([`Scalar::Count`]).
    ///
    /// Errors: a second scheduler; a scheduler in a role, a loop or a condition; blocks along y or
    /// z; the grid or the threads are not set; `ahead` is 0 or more than 4.
    #[track_caller]
    pub fn dynamic_scheduler(&self, count: impl Into<Expr>, ahead: usize) -> Result<DynamicScheduler<'_>, KernelError> {
        self.scheduler(count.into(), [ahead; 2])
    }

    /// As [`Build::dynamic_scheduler`], for short iterations: one more index is prefetched (so
    /// `ahead` is at most 3). The body requests the next index ([`Claim::ask`]); otherwise it is
    /// requested at the end of the iteration instead of the beginning. No thread then waits for
    /// global memory before the blocks of a cluster have synchronized.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Kernel, KernelError, Written, interpret};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("rows", |k| {
    ///     let x = k.input::<f32>("x", "(M,32):(32,1)")?;
    ///     let y = k.output::<f32>("y", "(M,32):(32,1)")?;
    ///     k.threads(32)?;
    ///     k.grid(Axis::X, 3)?;
    ///     let read = |row| -> Result<_, KernelError> {
    ///         x.slice(Tree::flat([Slot::At(row), Slot::All])?)?.thread_part()?.load_predicated()
    ///     };
    ///     let scheduler = k.prefetching_scheduler(k.size("M")?, 1)?;
    ///     let next = k.register(tilewright_kernel::Element::F32, 1)?;
    ///     next.set(&read(scheduler.first(0)?)?.numbers()?)?;
    ///     scheduler.each(|claim| {
    ///         let own = next.numbers()?;
    ///         next.set(&read(claim.ahead()?)?.numbers()?)?;
    ///         let row = Tree::flat([Slot::At(claim.now().clone()), Slot::All])?;
    ///         let twice = k.register(tilewright_kernel::Element::F32, 1)?;
    ///         twice.set(&[own[0] + own[0]])?;
    ///         claim.ask()?;
    ///         y.slice(row)?.thread_part()?.store(&twice)
    ///     })
    /// })?;
    /// assert_eq!(kernel.outputs()[0].written, Written::Once);
    /// let run = interpret::check(kernel.program(), &[("M", 10)])?.run;
    /// let (x, y) = (run.tensor::<f32>("x")?, run.tensor::<f32>("y")?);
    /// assert!(x.iter().zip(&y).all(|(x, y)| x + x == *y));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Build::dynamic_scheduler`].
    #[track_caller]
    pub fn prefetching_scheduler(
        &self,
        count: impl Into<Expr>,
        ahead: usize,
    ) -> Result<DynamicScheduler<'_>, KernelError> {
        self.scheduler(count.into(), [ahead, ahead.saturating_add(usize::from(ahead > 0))])
    }

    #[track_caller]
    fn scheduler(&self, count: Expr, [ahead, known]: [usize; 2]) -> Result<DynamicScheduler<'_>, KernelError> {
        let location = Location::caller();
        let source = Source { statement: "dynamic_scheduler", location };
        let at = |refusal: Reason| refusal.at(source.statement, location);
        let (warps, blocks) = self.core().may_schedule(known).map_err(at)?;
        let layout = Layout::strided((MESSAGE, STAGES), (1, MESSAGE));
        let numbers = self.shared_of(Element::U32, layout)?;
        let cursor = self.pipeline(STAGES, warps * blocks)?.cursor()?;
        let (which, last, end, cell) = {
            let mut core = self.core_for(source);
            let clusters = core.grid[0].clone().and_then(|grid| grid.floor_div(&Expr::from(i64::from(blocks))));
            let all = clusters.and_then(|clusters| Stride::plus(&count, &clusters));
            let last = all.and_then(|all| Stride::plus(&all, &Expr::from(-1)));
            let last = last.ok_or_else(|| at(LayoutError::Overflow { op: "dynamic_scheduler" }.into()))?;
            let last = core.lower(&last, Width::Bits32).map_err(at)?;
            let end = core.lower(&count, Width::Bits32).map_err(at)?;
            let cell = core.new_cell(32, known as i64).map_err(at)?;
            let counter = TileCounter { numbers: numbers.buffer, first: known as u32, count: end };
            core.tile_counter = Some(SchedulerState { counter, number: None, iterations: false });
            (core.scalar(Scalar::Count), last, end, cell)
        };
        let scheduler = DynamicScheduler { build: self, count, ahead, known, which, last, end, numbers, cursor, cell };
        let stage = scheduler.cursor.stage()?;
        scheduler.ask(&stage, None, location)?;
        let first = scheduler.take(&stage)?;
        scheduler.cursor.advance()?;
        self.core().cells[cell].slots = first[..known].iter().map(|number| Slot::Whole(*number)).collect();
        Ok(scheduler)
    }
}

impl<'k> DynamicScheduler<'k> {
    /// The index of one of the first `ahead` iterations; `count` if there is no such iteration.
    ///
    /// Errors: `iteration` is not below `ahead`; a call in the body of the iterations.
    #[track_caller]
    pub fn first(&self, iteration: usize) -> Result<Expr, KernelError> {
        self.build.instructed("first", |core| {
            if iteration >= self.ahead {
                return Err(refuse(format!("{} iterations are known ahead", self.ahead)));
            }
            let number = core.element_register(self.cell, iteration)?;
            self.variable(core, number)
        })
    }

    /// A claimed index as a variable, at most `count`.
    fn variable(&self, core: &mut Core, number: Register) -> Result<Expr, Reason> {
        let past =
            Stride::plus(&self.count, &Expr::from(1)).ok_or(LayoutError::Overflow { op: "dynamic_scheduler" })?;
        let greatest = self.count.range().1.unwrap_or(i64::MAX).min(i64::from(i32::MAX));
        Ok(core.new_variable(number, greatest, Some(past)))
    }

    /// Runs the body for each index that this cluster claims. All its threads see the same index.
    ///
    /// Errors: those of the body.
    #[track_caller]
    pub fn each(&self, body: impl FnOnce(&Claim<'_, 'k>) -> Result<(), KernelError>) -> Result<(), KernelError> {
        let location = Location::caller();
        let source = Source { statement: "dynamic_scheduler", location };
        let at = |refusal: Reason| refusal.at(source.statement, location);
        let build = self.build;
        build.core().runs_once().map_err(at)?;
        let iterations = |core: &mut Core| {
            // There is no iteration if the first index is past the end.
            let first = core.element_register(self.cell, 0)?;
            let zero = core.constant(0, Width::Bits32);
            let inside =
                core.pure(Operation::Compare(Comparison::Less, Number::I32), [first, self.end], Width::Predicate);
            Ok(core.pure(Operation::Select, [inside, self.end, zero], Width::Bits32))
        };
        build.repeated(source, &self.count, iterations, |iteration| {
            let (now, latest, depth) = {
                let mut core = build.core_for(source);
                let now = core.element_register(self.cell, 0).map_err(at)?;
                let latest = core.element_register(self.cell, self.known - 1).map_err(at)?;
                let greatest = self.count.range().1.unwrap_or(i64::MAX).min(i64::from(i32::MAX)) - 1;
                let now = core.new_variable(now, greatest, Some(self.count.clone()));
                // Over all clusters, the claimed index behaves like the index of one loop.
                let number = now.parameters().into_iter().next();
                core.iterations.extend(number.iter().map(|own| (own.clone(), self.count.clone())));
                if let Some(state) = &mut core.tile_counter {
                    state.number = number;
                }
                (now, latest, core.depth())
            };
            let stage = self.cursor.stage()?;
            let (later, asked) = (RefCell::new(None), Cell::new(false));
            let claim = Claim { scheduler: self, iteration, now, depth, later, asked, latest, stage };
            let beforehand = self.known > self.ahead;
            if !beforehand {
                claim.ask()?;
            }
            body(&claim)?;
            claim.ahead()?;
            if beforehand {
                if !claim.asked.get() {
                    claim.ask()?;
                }
                self.next(&claim.stage)?;
            }
            let mut core = build.core_for(source);
            let next = core.element_register(self.cell, 0).map_err(at)?;
            let over = Operation::Compare(Comparison::GreaterEqual, Number::I32);
            Ok(Some(core.pure(over, [next, self.end], Width::Predicate)))
        })?;
        if build.core().cluster_size() > 1 {
            // A block must not exit while others may still arrive at its mbarriers.
            build.cluster_barrier();
        }
        Ok(())
    }

    /// One thread of the first block claims indices, unless the last one was past the end, and
    /// sends them; the other blocks expect the bytes. The first message has all prefetched indices,
    /// and each later one a single index.
    fn ask(&self, stage: &Stage<'k>, latest: Option<Register>, location: Location) -> Result<(), KernelError> {
        let build = self.build;
        let source = Source { statement: "dynamic_scheduler", location };
        let at = |refusal: Reason| refusal.at(source.statement, location);
        let blocks = build.core().cluster_size();
        let arrive = |expect: u32| {
            let (access, address) = build.object(stage.full, &stage.index).map_err(at)?;
            build.core().effect(Operation::BarrierArrive { access, expect }, address, &[], None);
            Ok(())
        };
        let send = || {
            stage.acquire()?;
            build.core().begin(source);
            let message = self.message(stage)?;
            let taken = self.claimed(latest);
            {
                let fragment = build.register(Element::U32, &MESSAGE.to_string())?;
                let mut core = build.core();
                core.cells[fragment.cell].slots = taken.into_iter().map(Slot::Whole).collect();
                drop(core);
                message.store(&fragment)?;
            }
            build.core().begin(source);
            if blocks > 1 {
                build.core().effect(Operation::Fence(Fence::AsyncShared), [], &[], None);
            }
            for rank in 1..blocks {
                stage.send(&message, &message, Expr::from(i64::from(rank)))?;
            }
            build.core().begin(source);
            arrive(0)
        };
        build.single(|| {
            if blocks == 1 {
                return send();
            }
            let rank = build.rank();
            let register = {
                let mut core = build.core_for(source);
                let rank = core.lower(&rank, Width::Bits32).map_err(at)?;
                let zero = core.constant(0, Width::Bits32);
                core.pure(Operation::Compare(Comparison::Equal, Number::I32), [rank, zero], Width::Predicate)
            };
            let receive = || arrive(MESSAGE as u32 * 4);
            build.branch("dynamic_scheduler", Flag { build, register }, send, receive, location)
        })
    }

    /// The indices of a message, claimed by one thread; the end if none is left.
    fn claimed(&self, latest: Option<Register>) -> Vec<Register> {
        let mut core = self.build.core();
        let asked = if latest.is_none() { self.known } else { 1 };
        let mut before = latest;
        let mut taken = Vec::new();
        for _ in 0..asked {
            let less = Operation::Compare(Comparison::Less, Number::I32);
            let left = before.map(|before| core.pure(less, [before, self.end], Width::Predicate));
            let number = core.effect(Operation::Claim, [self.which, self.last], &[Width::Bits32], left)[0];
            let least = Operation::Binary(Binary::Minimum, Number::U32);
            let mut number = core.pure(least, [number, self.end], Width::Bits32);
            if let Some(left) = left {
                number = core.pure(Operation::Select, [left, number, self.end], Width::Bits32);
            }
            before = Some(number);
            taken.push(number);
        }
        taken.resize(MESSAGE, self.end);
        taken
    }

    fn message(&self, stage: &Stage<'k>) -> Result<View<'k>, KernelError> {
        let at: Coord<Expr> = Tree::flat([Part::All, Part::At(stage.index.clone())])?;
        self.numbers.slice(at)
    }

    /// Waits for a message and reads it.
    fn take(&self, stage: &Stage<'k>) -> Result<Vec<Register>, KernelError> {
        stage.wait()?;
        let numbers = self.message(stage)?.load()?;
        let blocks = self.build.core().cluster_size();
        match blocks {
            1 => stage.release()?,
            _ => stage.release_to(0)?,
        }
        let mut core = self.build.core();
        let taken = (0..MESSAGE).map(|at| core.element_register(numbers.cell, at));
        taken.collect::<Result<_, _>>().map_err(|refusal| refusal.at("dynamic_scheduler", Location::caller()))
    }

    /// Waits for the next index, and shifts the known indices by one.
    fn next(&self, stage: &Stage<'k>) -> Result<Register, KernelError> {
        let number = self.take(stage)?[0];
        self.cursor.advance()?;
        let slots = &mut self.build.core().cells[self.cell].slots;
        slots.remove(0);
        slots.push(Slot::Whole(number));
        Ok(number)
    }
}

impl<'k> Claim<'_, 'k> {
    /// The number of iterations that this cluster has completed.
    pub fn iteration(&self) -> &Expr {
        &self.iteration
    }

    /// The index of this iteration: below `count`, and claimed by no other cluster.
    pub fn now(&self) -> &Expr {
        &self.now
    }

    /// The index of the iteration that is `ahead` iterations later; `count` if there is none. It
    /// was requested at the beginning of this iteration, so call this late in the body; with
    /// [`Build::prefetching_scheduler`] it is known from the beginning.
    ///
    /// Errors: a call in a loop or a condition of the body.
    #[track_caller]
    pub fn ahead(&self) -> Result<Expr, KernelError> {
        let location = Location::caller();
        if let Some(known) = &*self.later.borrow() {
            return Ok(known.clone());
        }
        let scheduler = self.scheduler;
        if scheduler.build.core().depth() != self.depth {
            let because = "a later index is read outside of loops and conditions";
            return Err(refuse(because).at("ahead", location));
        }
        let number = if scheduler.known > scheduler.ahead { self.latest } else { scheduler.next(&self.stage)? };
        let mut core = scheduler.build.core_for(Source { statement: "ahead", location });
        let later = scheduler.variable(&mut core, number).map_err(|refusal| refusal.at("ahead", location))?;
        drop(core);
        *self.later.borrow_mut() = Some(later.clone());
        Ok(later)
    }

    /// Requests the next index of [`Build::prefetching_scheduler`] here. The best place is after
    /// the blocks of the cluster have synchronized, with work left in the iteration.
    ///
    /// Errors: a second request in one iteration ([`Build::dynamic_scheduler`] makes its own when
    /// an iteration begins); a call in a loop or a condition of the body.
    #[track_caller]
    pub fn ask(&self) -> Result<(), KernelError> {
        let location = Location::caller();
        if self.scheduler.build.core().depth() != self.depth {
            return Err(refuse("an index is requested outside of loops and conditions").at("ask", location));
        }
        if self.asked.replace(true) {
            return Err(refuse("an index is requested once in an iteration").at("ask", location));
        }
        self.scheduler.ask(&self.stage, Some(self.latest), location)
    }
}

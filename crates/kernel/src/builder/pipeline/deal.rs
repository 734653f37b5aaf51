//! Numbers dealt to the clusters of a launch, each to the one that asks first.
//!
//! Law: the first block of a cluster takes numbers of a count in memory, one after another, and
//! sends each to all blocks of the cluster through a ring. So every number below the end is had by
//! one cluster, in one of its iterations, and by all threads of it in that iteration. A cluster
//! that is given the end or more asks no more. Of n numbers and C clusters the count gives n + C
//! then, each cluster one of the last C, and begins again after that: the next launch finds it at
//! 0.

mod refused;

use std::cell::{Cell, RefCell};

use tilewright_layout::symbolic::{Expr, Parameter, Symbolic};
use tilewright_layout::{Coord, LayoutError, Slot as Part, Stride, Tree};

use super::super::Build;
use super::super::core::{Core, Slot};
use super::super::number::Flag;
use super::super::tensor::View;
use super::{Cursor, Stage};
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Comparison, Fence, Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::scalar::Scalar;
use crate::program::{Dealt, Location, Source};

/// Numbers of a message: what a copy to another block moves at least.
const MESSAGE: usize = 4;
/// Messages for which there is room: one is read while the next is under way.
const ROOM: i64 = 2;

/// Numbers that a launch deals to its clusters: see [`Build::deal`].
pub struct Deal<'k> {
    build: &'k Build,
    count: Expr,
    /// How many iterations before its own a number is given, and how many are known when an
    /// iteration begins: as many, or one more.
    ahead: usize,
    known: usize,
    /// The count of the launch, the number after which it begins again, and the end of the numbers.
    which: Register,
    last: Register,
    end: Register,
    numbers: View<'k>,
    cursor: Cursor<'k>,
    /// The numbers of the next iterations: a variable, which the loop carries.
    cell: usize,
}

/// What a kernel that deals has said of it.
pub(crate) struct Dealing {
    pub(crate) dealt: Dealt,
    /// The number of an iteration.
    pub(crate) number: Option<Parameter>,
    turns: bool,
}

/// An iteration of a cluster with a number that it was dealt: see [`Deal::each`].
pub struct Drawn<'a, 'k> {
    deal: &'a Deal<'k>,
    turn: Expr,
    now: Expr,
    depth: usize,
    /// The number of the iteration that comes as many iterations later as are known ahead, once the
    /// body has wanted it, and whether the next one has been asked for.
    later: RefCell<Option<Expr>>,
    asked: Cell<bool>,
    /// The last number that was known when the iteration began.
    latest: Register,
    stage: Stage<'k>,
}

impl std::fmt::Debug for Deal<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Deal({} numbers, {} ahead)", self.count, self.ahead)
    }
}

impl std::fmt::Debug for Drawn<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Drawn({})", self.now)
    }
}

fn refuse(because: impl Into<String>) -> Reason {
    Reason::Instruction { name: "deal".to_string(), because: because.into() }
}

impl Build {
    /// Deals the numbers from 0 to below `count` to the clusters of the launch, or to its blocks,
    /// where they are no clusters: who is done first asks first. Each number is had by one cluster.
    /// So work whose parts take unlike times, or that some processors do faster, ends everywhere at
    /// once; `ahead` numbers are known before their iterations, up to four, for loads to be under
    /// way.
    ///
    /// How many blocks there are, along the first axis alone, how many threads, and how many blocks
    /// a cluster has, was said before. A kernel deals once, outside of roles, loops and conditions.
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
    ///     k.grid(Axis::X, "3")?;
    ///     let deal = k.deal(k.size("M")?, 1)?;
    ///     deal.each(|drawn| {
    ///         let row = Tree::flat([Slot::At(drawn.now().clone()), Slot::All])?;
    ///         let own = x.slice(row.clone())?.thread_part()?.load()?;
    ///         y.slice(row)?.thread_part()?.store(&own.map(|x| Ok(x + x))?)
    ///     })
    /// })?;
    /// // Whatever M is, and whoever comes first.
    /// assert_eq!(kernel.outputs()[0].written, Written::Once);
    /// let run = interpret::check(kernel.program(), &[("M", 10)])?.run;
    /// let (x, y) = (run.tensor::<f32>("x")?, run.tensor::<f32>("y")?);
    /// assert!(x.iter().zip(&y).all(|(x, y)| x + x == *y));
    /// assert!(ptx::write(kernel.program(), ptx::Target::Sm90a)?.contains("atom.global.inc.u32"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The count is in memory of the module. It needs no clearing, in graphs neither, as each
    /// launch leaves it as it found it; launches that may run at the same time have counts of their
    /// own, which the launch tells ([`Scalar::Count`]).
    ///
    /// Errors: it was said before; it stands in a role, a loop or a condition; blocks along other
    /// axes; what was not said; no number ahead, or more than four.
    #[track_caller]
    pub fn deal(&self, count: impl Into<Expr>, ahead: usize) -> Result<Deal<'_>, KernelError> {
        self.dealt(count.into(), [ahead; 2])
    }

    /// As [`Build::deal`], where iterations are short: one number more is known, up to three are
    /// ahead, and the next is asked for where the body says so ([`Drawn::ask`]), or at the end of
    /// the iteration, not when it begins. So nobody waits for an answer from memory before the
    /// blocks of a cluster have met.
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
    ///     k.grid(Axis::X, "3")?;
    ///     let read = |row| -> Result<_, KernelError> {
    ///         x.slice(Tree::flat([Slot::At(row), Slot::All])?)?.thread_part()?.load_predicated()
    ///     };
    ///     let deal = k.deal_beforehand(k.size("M")?, 1)?;
    ///     let next = k.register(tilewright_kernel::Element::F32, "1")?;
    ///     next.set(&read(deal.first(0)?)?.numbers()?)?;
    ///     deal.each(|drawn| {
    ///         let own = next.numbers()?;
    ///         next.set(&read(drawn.ahead()?)?.numbers()?)?;
    ///         let row = Tree::flat([Slot::At(drawn.now().clone()), Slot::All])?;
    ///         let twice = k.register(tilewright_kernel::Element::F32, "1")?;
    ///         twice.set(&[own[0] + own[0]])?;
    ///         drawn.ask()?;
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
    /// Errors: as [`Build::deal`].
    #[track_caller]
    pub fn deal_beforehand(&self, count: impl Into<Expr>, ahead: usize) -> Result<Deal<'_>, KernelError> {
        self.dealt(count.into(), [ahead, ahead.saturating_add(usize::from(ahead > 0))])
    }

    #[track_caller]
    fn dealt(&self, count: Expr, [ahead, known]: [usize; 2]) -> Result<Deal<'_>, KernelError> {
        let location = Location::caller();
        let source = Source { statement: "deal", location };
        let at = |refusal: Reason| refusal.at(source.statement, location);
        let (warps, blocks) = self.core().may_deal(known).map_err(at)?;
        let layout = format!("({MESSAGE},{ROOM}):(1,{MESSAGE})");
        let numbers = self.shared_of(Element::U32, &layout)?;
        let cursor = self.pipeline(ROOM, warps * blocks)?.cursor()?;
        let (which, last, end, cell) = {
            let mut core = self.core();
            core.begin(source);
            let clusters = core.grid[0].clone().and_then(|grid| grid.floor_div(&Expr::from(i64::from(blocks))));
            let all = clusters.and_then(|clusters| Stride::plus(&count, &clusters));
            let last = all.and_then(|all| Stride::plus(&all, &Expr::from(-1)));
            let last = last.ok_or_else(|| at(LayoutError::Overflow { op: "deal" }.into()))?;
            let last = core.lower(&last, Width::Bits32).map_err(at)?;
            let end = core.lower(&count, Width::Bits32).map_err(at)?;
            let cell = core.new_cell(32, known as i64).map_err(at)?;
            let dealt = Dealt { numbers: numbers.buffer, first: known as u32, count: end };
            core.dealt = Some(Dealing { dealt, number: None, turns: false });
            (core.scalar(Scalar::Count), last, end, cell)
        };
        let deal = Deal { build: self, count, ahead, known, which, last, end, numbers, cursor, cell };
        let stage = deal.cursor.stage()?;
        deal.ask(&stage, None, location)?;
        let first = deal.take(&stage)?;
        deal.cursor.advance()?;
        self.core().cells[cell].slots = first[..known].iter().map(|number| Slot::Whole(*number)).collect();
        Ok(deal)
    }
}

impl<'k> Deal<'k> {
    /// The number of one of the first iterations, from 0 to before as many as are known ahead: the
    /// count itself where there is none.
    ///
    /// Errors: it is not known ahead; it stands in the body of the iterations.
    #[track_caller]
    pub fn first(&self, turn: usize) -> Result<Expr, KernelError> {
        let location = Location::caller();
        let mut core = self.build.core();
        core.begin(Source { statement: "first", location });
        if turn >= self.ahead {
            let because = format!("{} turns are known ahead", self.ahead);
            return Err(refuse(because).at("first", location));
        }
        let number = core.element_register(self.cell, turn).map_err(|refusal| refusal.at("first", location))?;
        self.variable(&mut core, number).map_err(|refusal| refusal.at("first", location))
    }

    /// A number, at most the count.
    fn variable(&self, core: &mut Core, number: Register) -> Result<Expr, Reason> {
        let past = Stride::plus(&self.count, &Expr::from(1)).ok_or(LayoutError::Overflow { op: "deal" })?;
        let greatest = self.count.range().1.unwrap_or(i64::MAX).min(i64::from(i32::MAX));
        Ok(core.new_variable(number, greatest, Some(past)))
    }

    /// An iteration for each number that this cluster has, the same in all its threads.
    ///
    /// Errors: what the body refuses.
    #[track_caller]
    pub fn each(&self, body: impl FnOnce(&Drawn<'_, 'k>) -> Result<(), KernelError>) -> Result<(), KernelError> {
        let location = Location::caller();
        let source = Source { statement: "deal", location };
        let at = |refusal: Reason| refusal.at(source.statement, location);
        let build = self.build;
        build.core().takes_turns().map_err(at)?;
        let turns = |core: &mut Core| {
            // None, where the first number is past the end.
            let first = core.element_register(self.cell, 0)?;
            let zero = core.constant(0, Width::Bits32);
            let inside =
                core.pure(Operation::Compare(Comparison::Less, Number::I32), [first, self.end], Width::Predicate);
            Ok(core.pure(Operation::Select, [inside, self.end, zero], Width::Bits32))
        };
        build.repeated(source, &self.count, turns, |turn| {
            let (now, latest, depth) = {
                let mut core = build.core();
                core.begin(source);
                let now = core.element_register(self.cell, 0).map_err(at)?;
                let latest = core.element_register(self.cell, self.known - 1).map_err(at)?;
                let greatest = self.count.range().1.unwrap_or(i64::MAX).min(i64::from(i32::MAX)) - 1;
                let now = core.new_variable(now, greatest, Some(self.count.clone()));
                // Over all clusters, it counts as the iterations of one loop do.
                let number = now.parameters().into_iter().next();
                core.turns.extend(number.iter().map(|own| (own.clone(), self.count.clone())));
                if let Some(dealing) = &mut core.dealt {
                    dealing.number = number;
                }
                (now, latest, core.depth())
            };
            let stage = self.cursor.stage()?;
            let (later, asked) = (RefCell::new(None), Cell::new(false));
            let drawn = Drawn { deal: self, turn, now, depth, later, asked, latest, stage };
            let beforehand = self.known > self.ahead;
            if !beforehand {
                drawn.ask()?;
            }
            body(&drawn)?;
            drawn.ahead()?;
            if beforehand {
                if !drawn.asked.get() {
                    drawn.ask()?;
                }
                self.next(&drawn.stage)?;
            }
            let mut core = build.core();
            core.begin(source);
            let next = core.element_register(self.cell, 0).map_err(at)?;
            let over = Operation::Compare(Comparison::GreaterEqual, Number::I32);
            Ok(Some(core.pure(over, [next, self.end], Width::Predicate)))
        })?;
        if build.core().cluster_size() > 1 {
            // A block must not end while others may still arrive at its barriers.
            build.cluster_barrier();
        }
        Ok(())
    }

    /// One thread of the first block takes numbers, unless none was left before, and sends them;
    /// the other blocks expect them. All of the first message, or one.
    fn ask(&self, stage: &Stage<'k>, latest: Option<Register>, location: Location) -> Result<(), KernelError> {
        let build = self.build;
        let source = Source { statement: "deal", location };
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
                let mut core = build.core();
                core.begin(source);
                let rank = core.lower(&rank, Width::Bits32).map_err(at)?;
                let zero = core.constant(0, Width::Bits32);
                core.pure(Operation::Compare(Comparison::Equal, Number::I32), [rank, zero], Width::Predicate)
            };
            let receive = || arrive(MESSAGE as u32 * 4);
            build.branch("deal", Flag { build, register }, send, receive, location)
        })
    }

    /// The numbers of a message, as one thread takes them of the count: the end where none is left.
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

    /// Waits for a message, and reads it.
    fn take(&self, stage: &Stage<'k>) -> Result<Vec<Register>, KernelError> {
        stage.wait()?;
        let numbers = self.message(stage)?.load()?;
        let blocks = self.build.core().cluster_size();
        match blocks {
            1 => stage.release()?,
            _ => stage.release_to("1:0", 0)?,
        }
        let mut core = self.build.core();
        let taken = (0..MESSAGE).map(|at| core.element_register(numbers.cell, at));
        taken.collect::<Result<_, _>>().map_err(|refusal| refusal.at("deal", Location::caller()))
    }

    /// Waits for the next number; the iterations move up by one.
    fn next(&self, stage: &Stage<'k>) -> Result<Register, KernelError> {
        let number = self.take(stage)?[0];
        self.cursor.advance()?;
        let slots = &mut self.build.core().cells[self.cell].slots;
        slots.remove(0);
        slots.push(Slot::Whole(number));
        Ok(number)
    }
}

impl<'k> Drawn<'_, 'k> {
    /// How many iterations this cluster has had before.
    pub fn turn(&self) -> &Expr {
        &self.turn
    }

    /// The number of this iteration: less than the count, and no other cluster's.
    pub fn now(&self) -> &Expr {
        &self.now
    }

    /// The number of the iteration that comes as many iterations later as was said, or the count
    /// where there is none. It was asked for at the beginning of the iteration, and comes late in
    /// it; of [`Build::deal_beforehand`], it is known then.
    ///
    /// Errors: it stands in a loop or a condition of the body.
    #[track_caller]
    pub fn ahead(&self) -> Result<Expr, KernelError> {
        let location = Location::caller();
        if let Some(known) = &*self.later.borrow() {
            return Ok(known.clone());
        }
        let deal = self.deal;
        if deal.build.core().depth() != self.depth {
            let because = "what comes later is asked for outside of loops and conditions";
            return Err(refuse(because).at("ahead", location));
        }
        let number = if deal.known > deal.ahead { self.latest } else { deal.next(&self.stage)? };
        let mut core = deal.build.core();
        core.begin(Source { statement: "ahead", location });
        let later = deal.variable(&mut core, number).map_err(|refusal| refusal.at("ahead", location))?;
        drop(core);
        *self.later.borrow_mut() = Some(later.clone());
        Ok(later)
    }

    /// Asks here for the next number of [`Build::deal_beforehand`]: best where the blocks of the
    /// cluster have met and have work until the end of the iteration.
    ///
    /// Errors: it was asked for before in this iteration, as [`Build::deal`] does when an iteration
    /// begins; it stands in a loop or a condition of the body.
    #[track_caller]
    pub fn ask(&self) -> Result<(), KernelError> {
        let location = Location::caller();
        if self.deal.build.core().depth() != self.depth {
            return Err(refuse("a number is asked for outside of loops and conditions").at("ask", location));
        }
        if self.asked.replace(true) {
            return Err(refuse("a number is asked for once in a turn").at("ask", location));
        }
        self.deal.ask(&self.stage, Some(self.latest), location)
    }
}

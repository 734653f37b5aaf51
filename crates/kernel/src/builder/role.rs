//! Roles: code for a range of a block's warps.
//!
//! Law: inside a role, threads are numbered from 0, tiled copies and tiled MMA are partitioned
//! among them alone, and a barrier is one of these threads. So a role reads like a kernel of its
//! own. Two roles synchronize at barriers that both name.

use std::collections::HashMap;
use std::ops::Range;

use super::Build;
use super::control::OpenBody;
use super::core::Core;
use super::number::Flag;
use super::state::Team;
use crate::error::{KernelError, Reason};
use crate::program::WARP_LANES;
use crate::program::operation::{Binary, Comparison, Number, Operation, Shuffle, Special};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source, entry_registers};

/// The number of named barriers of a block, besides that of all threads.
const BARRIERS: u32 = 15;

impl Core {
    /// A predicate that is true in the warps of a range with this many warps. It depends on the
    /// warp index, which is broadcast, so that the assembler sees that the lanes of a warp agree.
    fn among(&mut self, warps: &Range<u32>, count: u32) -> Register {
        let (thread, five) = (self.special(Special::Thread), self.constant(5, Width::Bits32));
        let warp = self.pure(Operation::Binary(Binary::ShiftRight, Number::U32), [thread, five], Width::Bits32);
        let zero = self.constant(0, Width::Bits32);
        let warp = self.effect(Operation::Shuffle(Shuffle::Index), [warp, zero], &[Width::Bits32], None)[0];
        let compare = |core: &mut Core, comparison, bound: u32| {
            let bound = core.constant(bound.into(), Width::Bits32);
            core.pure(Operation::Compare(comparison, Number::I32), [warp, bound], Width::Predicate)
        };
        match (warps.start, warps.end) {
            (0, end) => compare(self, Comparison::Less, end),
            (start, end) if end == count => compare(self, Comparison::GreaterEqual, start),
            (start, end) => {
                let both = [compare(self, Comparison::GreaterEqual, start), compare(self, Comparison::Less, end)];
                self.pure(Operation::Binary(Binary::And, Number::U16), both, Width::Predicate)
            }
        }
    }

    /// The team of the warps of a role, and the predicate of its threads.
    fn team(&mut self, warps: &Range<u32>) -> Result<(Team, Register), Reason> {
        let help = "set the number of threads of a block, `k.threads(288)`, before its roles";
        let all = self.threads.ok_or(Reason::Unsaid { what: "the number of threads", help })?;
        let (first, end) = (i64::from(warps.start) * WARP_LANES as i64, i64::from(warps.end) * WARP_LANES as i64);
        if !all.is_multiple_of(WARP_LANES as u32) {
            let because = "a block with roles has whole warps".to_string();
            return Err(Reason::Instruction { name: format!("role of {all} threads"), because });
        }
        if warps.is_empty() || end > i64::from(all) {
            let asked = u64::from(warps.end);
            return Err(Reason::TooMuch { what: "warps", asked, limit: u64::from(all) / WARP_LANES as u64 });
        }
        // Roles of the same warps run one after another, so they share a barrier.
        let barrier = match self.of_roles.get(&(warps.start, warps.end)) {
            Some(known) => *known,
            None => self.take_barrier()?,
        };
        self.of_roles.insert((warps.start, warps.end), barrier);
        let inside = self.among(warps, all.div_ceil(WARP_LANES as u32));
        let mut register = self.special(Special::Thread);
        if first > 0 {
            let back = self.constant((-first) as u32 as u64, Width::Bits32);
            register = self.pure(Operation::Binary(Binary::Add, Number::I32), [register, back], Width::Bits32);
        }
        let thread = self.variable_of("thread", register, end - first - 1, None);
        Ok((Team { first, threads: (end - first) as u32, thread, barrier }, inside))
    }
}

impl Build {
    /// Code for a range of warps only. Inside, `k.thread()` counts from the first of them, tiled
    /// copies and tiled MMA have that many threads, and `k.barrier()` is a barrier of these
    /// threads. Roles follow each other in the text and run concurrently.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Two warps double the first column, a third one negates the second, two rows a thread.
    /// let kernel = Kernel::build("roles", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(64,2):(1,64)")?, k.output::<f32>("y", "(64,2):(1,64)")?);
    ///     k.threads(96)?;
    ///     let column = |number: i64| Tree::flat([Slot::All, Slot::At(number.into())]);
    ///     k.role(0..2, || {
    ///         let from = x.slice(column(0)?)?.compose("(64,1):(1,64)")?.thread_part()?;
    ///         let to = y.slice(column(0)?)?.compose("(64,1):(1,64)")?.thread_part()?;
    ///         to.store(&from.load()?.map(|x| Ok(x * 2.0))?)
    ///     })?;
    ///     k.role(2..3, || {
    ///         let from = x.slice(column(1)?)?.compose("(32,2):(2,1)")?.thread_part()?;
    ///         let to = y.slice(column(1)?)?.compose("(32,2):(2,1)")?.thread_part()?;
    ///         to.store(&from.load()?.map(|x| Ok(x * -1.0))?)
    ///     })
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// let (x, y) = (run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// assert_eq!((y[5], y[69]), (2.0 * x[5], -x[69]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: those of the body; there are not that many warps, or more than 15 ranges have roles;
    /// the number of threads was not set; a role inside a role.
    #[track_caller]
    pub fn role(&self, warps: Range<u32>, body: impl FnOnce() -> Result<(), KernelError>) -> Result<(), KernelError> {
        self.open_role(warps)?.holds(body)
    }

    /// Opens a role: statements belong to the warps of a range until the guard is closed or
    /// dropped. [`Build::role`] does the same with a closure.
    ///
    /// Errors: there are not that many warps, or more than 15 ranges have roles; the number of
    /// threads was not set; a role inside a role.
    #[track_caller]
    pub fn open_role(&self, warps: Range<u32>) -> Result<OpenBody<'_>, KernelError> {
        let begun = Source { statement: "role", location: Location::caller() };
        let begin = || {
            let mut core = self.core_for(begun);
            if core.team.is_some() {
                let because = "a role must not be inside of another role".to_string();
                return Err(Reason::Instruction { name: "role".to_string(), because });
            }
            let (team, inside) = core.team(&warps)?;
            core.team = Some(team);
            Ok(inside)
        };
        let register = begin().map_err(|reason| begun.refuses(reason))?;
        self.open_team(begun, Flag { build: self, register })
    }

    /// Code for the first thread of the role, or of the block outside of roles. Use it to issue
    /// bulk copies, and to arrive for a whole stage.
    ///
    /// Errors: those of the body; the number of threads was not set.
    #[track_caller]
    pub fn single(&self, body: impl FnOnce() -> Result<(), KernelError>) -> Result<(), KernelError> {
        self.open_single()?.holds(body)
    }

    /// Opens a body for the first thread: of the role, or of the block outside of roles.
    /// [`Build::single`] does the same with a closure.
    ///
    /// Errors: the number of threads was not set.
    #[track_caller]
    pub fn open_single(&self) -> Result<OpenBody<'_>, KernelError> {
        let begun = Source { statement: "single", location: Location::caller() };
        let begin = || {
            let mut core = self.core_for(begun);
            core.thread()?;
            // The number in the block is compared, not that in the role: from a difference ptxas
            // does not see that one thread is left, and then loops over the threads of each bulk
            // copy.
            let first = core.team.as_ref().map_or(0, |team| team.first);
            let (thread, first) = (core.special(Special::Thread), core.constant(first.unsigned_abs(), Width::Bits32));
            Ok(core.pure(Operation::Compare(Comparison::Equal, Number::I32), [thread, first], Width::Predicate))
        };
        let register = begin().map_err(|reason| begun.refuses(reason))?;
        self.open_branch(begun, Flag { build: self, register })
    }
}

impl Build {
    /// Reallocates the registers of each thread of this role from here on (`setmaxnreg`, sm_90a): a
    /// smaller number returns registers to the block, a larger one waits until the block has them.
    /// A producer needs few, and consumers take them. The role consists of whole warpgroups, and
    /// this is its first statement.
    ///
    /// At launch, the threads of the resident blocks share the 65,536 registers of the
    /// multiprocessor, in multiples of 8, at most 248 each. The kernel is refused unless the
    /// registers of its roles, and of threads without reallocation, fit into that share.
    ///
    /// Errors: a call outside of roles; the role does not consist of warpgroups; `count` is no
    /// multiple of 8 from 24 to 248.
    #[track_caller]
    pub fn registers(&self, count: u32) -> Result<(), KernelError> {
        let (mut core, location) = self.begin("registers");
        let because = |because: &str| {
            let refusal = Reason::Instruction { name: format!("{count} registers"), because: because.to_string() };
            Err(refusal.at("registers", location))
        };
        let group = 4 * WARP_LANES as i64;
        let Some(team) = core.team.clone() else { return because("a role says how many its threads have") };
        if team.first % group != 0 || i64::from(team.threads) % group != 0 {
            return because("a whole warpgroup changes them: its first warp has an index that is a multiple of four");
        }
        if !count.is_multiple_of(8) || !(24..=248).contains(&count) {
            return because("a thread has a multiple of 8, from 24 to 248");
        }
        let before = entry_registers(core.threads.unwrap_or(1), core.resident);
        core.shares.push((team.first, team.threads, count));
        core.effect(Operation::SetRegisters { count, more: count > before }, [], &[], None);
        Ok(())
    }

    /// Code for one elected lane of each warp, always the same one (`elect.sync`, sm_90): all lanes
    /// must get here.
    ///
    /// Errors: those of the body.
    #[track_caller]
    pub fn elected(&self, body: impl FnOnce() -> Result<(), KernelError>) -> Result<(), KernelError> {
        let location = Location::caller();
        let register = {
            let mut core = self.core_for(Source { statement: "elected", location });
            core.effect(Operation::Elect, [], &[Width::Predicate], None)[0]
        };
        self.branch("elected", Flag { build: self, register }, body, || Ok(()), location)
    }

    /// A named barrier of `threads` threads, whole warps of any roles: some wait, and some may
    /// arrive without waiting.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // One warp fills what another one stores.
    /// let kernel = Kernel::build("handed", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(32,1):(1,1)")?, k.output::<f32>("y", "(32,1):(1,1)")?);
    ///     k.threads(64)?;
    ///     let held = k.shared::<f32>("(32,1):(1,1)")?;
    ///     let filled = k.meeting(64)?;
    ///     k.role(0..1, || {
    ///         held.thread_part()?.store(&x.thread_part()?.load()?)?;
    ///         filled.arrive();
    ///         Ok(())
    ///     })?;
    ///     k.role(1..2, || {
    ///         filled.wait();
    ///         y.thread_part()?.store(&held.thread_part()?.load()?)
    ///     })
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: `threads` is no multiple of a warp; roles and meetings together are more than 15.
    #[track_caller]
    pub fn meeting(&self, threads: u32) -> Result<Meeting<'_>, KernelError> {
        let (mut core, location) = self.begin("meeting");
        if threads == 0 || !threads.is_multiple_of(WARP_LANES as u32) || threads > 1024 {
            let because = "whole warps meet, of at most 1024 threads".to_string();
            let refusal = Reason::Instruction { name: format!("meeting of {threads} threads"), because };
            return Err(refusal.at("meeting", location));
        }
        let number = core.take_barrier().map_err(|refusal| refusal.at("meeting", location))?;
        Ok(Meeting { build: self, number, threads })
    }
}

/// A barrier of some threads of a block: see [`Build::meeting`].
#[derive(Clone, Copy)]
pub struct Meeting<'k> {
    build: &'k Build,
    number: u32,
    threads: u32,
}

impl std::fmt::Debug for Meeting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Meeting({} threads)", self.threads)
    }
}

impl Meeting<'_> {
    /// Arrives, and waits until all threads have arrived. What these threads did before the barrier
    /// is then visible to this thread.
    #[track_caller]
    pub fn wait(&self) {
        let operation = Operation::NamedBarrier { number: self.number, threads: self.threads };
        self.build.issue("wait", operation);
    }

    /// Arrives without waiting. The waiting threads see what this thread did before.
    #[track_caller]
    pub fn arrive(&self) {
        let operation = Operation::NamedArrive { number: self.number, threads: self.threads };
        self.build.issue("arrive", operation);
    }
}

impl Core {
    /// The number of an unused named barrier.
    fn take_barrier(&mut self) -> Result<u32, Reason> {
        if self.barriers == BARRIERS {
            let (asked, limit) = (u64::from(BARRIERS) + 1, BARRIERS.into());
            return Err(Reason::TooMuch { what: "roles and meetings", asked, limit });
        }
        self.barriers += 1;
        Ok(self.barriers)
    }

    /// Refuses roles that request more registers than a block has.
    pub(crate) fn settle_registers(&self, threads: u32) -> Result<(), Reason> {
        if self.shares.is_empty() {
            return Ok(());
        }
        let before = entry_registers(threads, self.resident);
        // Each role may set its registers once.
        let mut shares: HashMap<i64, (u32, u32)> = HashMap::new();
        for (first, threads, count) in &self.shares {
            if shares.insert(*first, (*threads, *count)).is_some() {
                let because = "a role says once how many registers its threads have".to_string();
                return Err(Reason::Instruction { name: format!("{count} registers"), because });
            }
        }
        let whole = threads.next_multiple_of(WARP_LANES as u32);
        let said: u32 = shares.values().map(|(threads, _)| threads).sum();
        let asked = shares.values().map(|(threads, count)| u64::from(threads * count)).sum::<u64>()
            + u64::from(whole.saturating_sub(said) * before);
        let limit = u64::from(whole * before);
        if asked > limit {
            return Err(Reason::TooMuch { what: "registers of the roles of a block", asked, limit });
        }
        Ok(())
    }
}

/// The barrier of a role, or of the block.
pub(crate) fn barrier_of(team: Option<&Team>) -> Operation {
    match team {
        Some(team) => Operation::NamedBarrier { number: team.barrier, threads: team.threads },
        None => Operation::Barrier,
    }
}

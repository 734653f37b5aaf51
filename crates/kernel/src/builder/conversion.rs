//! Conversion of a distributed tile to another distribution.
//!
//! Law: the elements of the tile stay the same; the requested distribution determines which thread
//! holds each. The cheapest of these methods is used:
//!
//! * **registers**, if every thread already holds what it needs;
//! * **lanes**, if every warp holds what it needs, in the same pattern for all warps: rounds of one
//!   shuffle each. Before the shuffle, each lane selects the register that it offers; after it,
//!   each lane keeps what it needs ([`Round`]);
//! * **shared memory**, with the layout of the tile and the swizzle for which stores and loads take
//!   the fewest wavefronts ([`storage`]); one barrier stands between them.
//!
//! Elements of 8 and 16 bits that stay adjacent are moved together.

mod plan;
mod storage;

use tilewright_layout::Layout;

use self::plan::{Plan, Round};
use super::access::Edge;
use super::core::{Core, Slot};
use super::distributed::Distributed;
use super::fragment::Fragment;
use super::tensor::Cuttable;
use crate::distribution::Distribution;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::Operation;
use crate::program::register::{Register, Width};

/// How each thread gets its elements in a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// Every thread already holds them.
    Registers,
    /// Shuffles between the lanes of each warp.
    Lanes,
    /// Shared memory, with a barrier between.
    Shared,
}

impl Route {
    /// The approximate number of instructions of each warp for a conversion through shared memory,
    /// by the number of words that each thread stores and loads: see [`Distribution::route`].
    ///
    /// ```
    /// use tilewright_kernel::{Distribution, Element, Route};
    ///
    /// // Each warp holds rows before and columns after, four numbers for each thread.
    /// let rows = Distribution::new((32, 16), "((32,4),4):((1,32),128)")?;
    /// let columns = Distribution::new((32, 16), "((16,2,4),4):((32,1,2),8)")?;
    /// assert_eq!(rows.route(&columns, Element::F32)?, (Route::Shared, Route::through_shared(4, 4)));
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn through_shared(stored: u32, loaded: u32) -> u32 {
        plan::through_shared(stored, loaded)
    }
}

impl Distribution {
    /// The method by which [`Distributed::convert`] converts to another distribution, and the
    /// approximate number of instructions that each warp executes. Going through shared memory
    /// counts as 40 instructions.
    ///
    /// ```
    /// use tilewright_kernel::{Distribution, Element, Route};
    ///
    /// let rows = Distribution::new((32, 4), "(32,4):(1,32)")?;
    /// let columns = Distribution::new((32, 4), "((8,4),4):((4,32),1)")?;
    /// assert_eq!(rows.route(&rows, Element::F32)?, (Route::Registers, 0));
    /// assert_eq!(rows.route(&columns, Element::F32)?.0, Route::Lanes);
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    ///
    /// Errors: the other distribution is of another tile or of another number of threads.
    #[track_caller]
    pub fn route(&self, to: &Distribution, element: Element) -> Result<(Route, u32), KernelError> {
        KernelError::within("route", || self.can_become(to))?;
        if self == to {
            return Ok((Route::Registers, 0));
        }
        let (_, plan, instructions) = self.plan_to(to, element.bits());
        let route = match plan {
            Plan::Registers(_) => Route::Registers,
            Plan::Lanes(_) => Route::Lanes,
            Plan::Shared => Route::Shared,
        };
        Ok((route, instructions))
    }

    fn can_become(&self, to: &Distribution) -> Result<(), Reason> {
        if self.tile() == to.tile() && self.threads() == to.threads() {
            return Ok(());
        }
        let because = format!("the tile is distributed as {self}");
        Err(Reason::Distribution { layout: to.to_string(), because })
    }

    /// The number of elements that are moved together, the plan, and its approximate number of
    /// instructions.
    fn plan_to(&self, to: &Distribution, bits: u32) -> (usize, Plan, u32) {
        let (from, wanted) = (self.table(), to.table());
        let together = plan::together(&from, &wanted, (32 / bits).max(1) as usize);
        let first = |table: Vec<Vec<i64>>| -> Vec<Vec<i64>> {
            table.into_iter().map(|row| row.into_iter().step_by(together).collect()).collect()
        };
        let words = if bits == 64 { 2 } else { 1 };
        let (plan, instructions) = plan::cheapest(&first(from), &first(wanted), words);
        (together, plan, instructions)
    }
}

impl<'k> Distributed<'k> {
    /// The same tile in another distribution.
    ///
    /// ```
    /// use tilewright_kernel::{Distribution, Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A row of four in each of 32 threads becomes a column of four.
    /// let rows = Distribution::new((32, 4), "(32,4):(1,32)")?;
    /// let columns = Distribution::new((32, 4), "((8,4),4):((4,32),1)")?;
    /// let kernel = Kernel::build("turned", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(32,4):(4,1)")?, k.output::<f32>("y", "(32,4):(1,32)")?);
    ///     y.store_distributed(&x.load_distributed(&rows)?.convert(&columns)?)
    /// })?;
    /// interpret::check(kernel.program(), &[])?;
    /// assert_eq!(kernel.program().shared_bytes, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the other distribution is of another tile or of another number of threads; an
    /// element has no value yet; there is not enough shared memory.
    #[track_caller]
    pub fn convert(&self, to: &Distribution) -> Result<Distributed<'k>, KernelError> {
        self.fragment.build.statement("convert", || self.moved_to(to))
    }

    pub(crate) fn moved_to(&self, to: &Distribution) -> Result<Distributed<'k>, Reason> {
        if self.held == *to {
            return Ok(self.clone());
        }
        self.held.can_become(to)?;
        let (together, plan, _) = self.held.plan_to(to, self.element().bits());
        let fragment = match plan {
            Plan::Registers(values) => {
                let each = values.into_iter().flat_map(|value| (0..together).map(move |part| value * together + part));
                self.fragment.chosen(&each.collect::<Vec<_>>())?
            }
            Plan::Lanes(rounds) => self.by_lanes(&rounds, together, to.values() as usize)?,
            Plan::Shared => self.by_shared(to)?,
        };
        Ok(Distributed { fragment, held: to.clone() })
    }

    fn by_lanes(&self, rounds: &[Round], together: usize, values: usize) -> Result<Fragment<'k>, Reason> {
        let build = self.fragment.build;
        let slots = self.fragment.slots()?;
        let mut core = build.core();
        // The sources of each value of the result: lanes and registers.
        let mut parts: Vec<Vec<(u32, Register)>> = vec![Vec::new(); values / together];
        for round in rounds {
            let mut offered: Option<Register> = None;
            for (value, lanes) in &round.offers {
                let own: Vec<usize> = (0..together).map(|part| slots[value * together + part]).collect();
                let register = match own.as_slice() {
                    [one] => core.element_register(self.fragment.cell, *one)?,
                    several => core.word_of(self.fragment.cell, several)?,
                };
                offered = Some(core.either(offered, *lanes, register));
            }
            let Some(offered) = offered else { continue };
            let received = core.fetched(offered, &round.sources);
            for (value, lanes) in &round.keeps {
                parts[*value].push((*lanes, received));
            }
        }
        let cell = core.new_cell(self.element().bits(), values as i64)?;
        for (value, parts) in parts.into_iter().enumerate() {
            let mut chosen: Option<Register> = None;
            for (lanes, register) in parts {
                chosen = Some(core.either(chosen, lanes, register));
            }
            let Some(register) = chosen else { continue };
            if together == 1 {
                core.cells[cell].slots[value] = Slot::Whole(register);
            } else {
                let own: Vec<usize> = (value * together..(value + 1) * together).collect();
                core.set_word(cell, &own, register);
            }
        }
        let layout = Layout::mode_of(values as i64, i64::from(values > 1))?;
        Ok(Fragment { build, cell, element: self.element(), start: 0, layout, part: None })
    }

    fn by_shared(&self, to: &Distribution) -> Result<Fragment<'k>, Reason> {
        let build = self.fragment.build;
        let text = storage::storage(&self.held, to, self.element().bits())?;
        let array = build.take_scratch(self.element(), &text)?;
        let (first, layout) = self.held.first_copies()?;
        let only = build.core().all_zero(&self.held.copy_digits())?;
        array.composed(&layout)?.of_thread()?.write_where(only, &self.fragment.chosen(&first)?, 128, Edge::Proved)?;
        build.meet();
        let (first, layout) = to.first_copies()?;
        let part = array.composed(&layout)?.of_thread()?;
        let fragment = part.fragment_like(self.element())?;
        part.read_into(&fragment, 128, Edge::Proved)?;
        build.return_scratch(&array);
        if first.len() as i64 == to.values() {
            return fragment.chosen(&(0..first.len()).collect::<Vec<_>>());
        }
        fragment.chosen(&to.firsts())
    }
}

impl Core {
    /// Selects a register in some lanes, and the previous choice in the other lanes.
    fn either(&mut self, before: Option<Register>, lanes: u32, register: Register) -> Register {
        match before {
            None => register,
            Some(before) if before == register => register,
            Some(before) => {
                let here = self.in_lanes(lanes);
                let width = self.width(register);
                debug_assert_ne!(width, Width::Predicate);
                self.pure(Operation::Select, [here, register, before], width)
            }
        }
    }
}

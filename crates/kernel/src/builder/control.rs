//! Loops and conditions.
//!
//! Law: a fragment is a variable: after a loop it has what the last turn left in it, and after a
//! condition what the chosen body left. In the program these are values that the loop carries, or
//! the condition chooses; those that the body does not change stay what they were.

use tilewright_layout::symbolic::{Expr, Facts, Parameter, Symbolic};

use super::Build;
use super::core::{Core, Scope, Slot};
use super::number::Flag;
use crate::error::{KernelError, Reason};
use crate::program::register::{Register, Width};
use crate::program::{Branch, Carried, Chosen, Location, Loop, Source, Step};

/// Elements of a fragment that one register holds.
struct Unit {
    cell: usize,
    slots: Vec<usize>,
}

impl Core {
    /// The registers that hold the fragments, those of narrow elements as whole words where they
    /// can be.
    fn units(&mut self) -> Result<Vec<(Unit, Register)>, Reason> {
        let mut units = Vec::new();
        for cell in 0..self.cells.len() {
            let bits = self.cells[cell].bits;
            // Predicates have no words.
            let each = if (2..32).contains(&bits) { (32 / bits) as usize } else { 1 };
            let count = self.cells[cell].slots.len();
            for from in (0..count).step_by(each) {
                let slots: Vec<usize> = (from..(from + each).min(count)).collect();
                let empty = |core: &Core, at: usize| core.cells[cell].slots[at] == Slot::Empty;
                if slots.iter().all(|at| empty(self, *at)) {
                    continue;
                }
                if each > 1 && !slots.iter().any(|at| empty(self, *at)) {
                    let word = self.word_of(cell, &slots)?;
                    units.push((Unit { cell, slots }, word));
                    continue;
                }
                for at in slots.into_iter().filter(|at| self.cells[cell].slots[*at] != Slot::Empty).collect::<Vec<_>>()
                {
                    let register = self.element_register(cell, at)?;
                    units.push((Unit { cell, slots: vec![at] }, register));
                }
            }
        }
        Ok(units)
    }

    fn set_unit(&mut self, unit: &Unit, register: Register) {
        match unit.slots.as_slice() {
            [one] if self.width(register) != Width::Bits32 || self.cells[unit.cell].bits >= 32 => {
                self.cells[unit.cell].slots[*one] = Slot::Whole(register);
            }
            several => {
                let several = several.to_vec();
                self.set_word(unit.cell, &several, register);
            }
        }
    }

    fn unit_register(&mut self, unit: &Unit, width: Width) -> Result<Register, Reason> {
        match unit.slots.as_slice() {
            [one] if width != Width::Bits32 || self.cells[unit.cell].bits >= 32 => {
                self.element_register(unit.cell, *one)
            }
            several => {
                let several = several.to_vec();
                self.word_of(unit.cell, &several)
            }
        }
    }

    /// The states of all fragments, to come back to.
    fn snapshot(&self) -> Vec<Vec<Slot>> {
        self.cells.iter().map(|cell| cell.slots.clone()).collect()
    }

    fn restore(&mut self, snapshot: &[Vec<Slot>]) {
        for (cell, slots) in self.cells.iter_mut().zip(snapshot) {
            cell.slots.clone_from(slots);
        }
    }
}

impl Build {
    /// Turns of a body for `index` from 0 to below `count`; `count` may be known at launch, and is
    /// the same in all threads.
    ///
    /// Errors: what the body refuses; the count has too many terms.
    #[track_caller]
    pub fn range(
        &self,
        count: impl Into<Expr>,
        body: impl FnOnce(Expr) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let source = Source { statement: "range", location: Location::caller() };
        let count = count.into();
        let to = |core: &mut Core| core.lower(&count, Width::Bits32);
        self.repeated(source, &count, to, |turn| {
            // A turn that is always 0 is no variable, but may be none.
            let none = || Facts::integer().at_least(0).and_then(|facts| facts.at_most(0)).map(Parameter::anonymous);
            let own = turn.parameters().into_iter().next().or_else(|| none().ok());
            self.core().turns.extend(own.map(|own| (own, count.clone())));
            body(turn)?;
            Ok(None)
        })
    }

    /// Turns of a body for an index from 0 to below what is in a register, at most `count`; the
    /// body may give a predicate that is true in the last turn. What the turns count, the body
    /// says.
    pub(super) fn repeated(
        &self,
        begun: Source,
        count: &Expr,
        to: impl FnOnce(&mut Core) -> Result<Register, Reason>,
        body: impl FnOnce(Expr) -> Result<Option<Register>, KernelError>,
    ) -> Result<(), KernelError> {
        let refuse = |refusal: Reason| refusal.at(begun.statement, begun.location);
        let (units, from, to, index, source) = {
            let mut core = self.core();
            core.begin(begun);
            let source = core.source;
            let units = core.units().map_err(refuse)?;
            let to = to(&mut core).map_err(refuse)?;
            let from = core.constant(0, Width::Bits32);
            core.scopes.push(Scope::default());
            let depth = core.depth();
            let mut carried = Vec::new();
            for (unit, initial) in units {
                let width = core.width(initial);
                let current = core.register_at(width, depth);
                // What a loop carries has a register of its own.
                core.sums.insert(current);
                core.set_unit(&unit, current);
                carried.push((unit, initial, current));
            }
            let index = core.register_at(Width::Bits32, depth);
            (carried, from, to, index, source)
        };
        let variable = {
            let greatest = match count.range().1 {
                Some(greatest) => greatest.min(i64::from(i32::MAX)) - 1,
                None => i64::from(i32::MAX) - 1,
            };
            self.core().variable_of("turn", index, greatest, Some(count.clone()))
        };
        let around = self.core().turns.len();
        let until = body(variable)?;
        let mut core = self.core();
        core.turns.truncate(around);
        core.begin(begun);
        let mut ends = Vec::new();
        for (unit, initial, current) in &units {
            let width = core.width(*initial);
            ends.push(core.unit_register(unit, width).map_err(refuse)?);
            let _ = current;
        }
        let scope = core.scopes.pop().unwrap_or_default();
        let depth = core.depth();
        // What only the body wrote has no value where there is no turn.
        let known: Vec<(usize, usize)> =
            units.iter().flat_map(|(unit, ..)| unit.slots.iter().map(|slot| (unit.cell, *slot))).collect();
        for cell in 0..core.cells.len() {
            for slot in 0..core.cells[cell].slots.len() {
                if !known.contains(&(cell, slot)) {
                    core.cells[cell].slots[slot] = Slot::Empty;
                }
            }
        }
        let mut carried = Vec::new();
        for ((unit, initial, current), next) in units.iter().zip(ends) {
            if next == *current {
                core.aliases.insert(*current, *initial);
                core.set_unit(unit, *initial);
                continue;
            }
            let width = core.width(*initial);
            let result = core.register_at(width, depth);
            core.set_unit(unit, result);
            carried.push(Carried { initial: *initial, current: *current, next, result });
        }
        let step = Step::Loop(Loop { index, from, to, step: 1, carried, body: scope.steps, until, source });
        core.scopes[depth].steps.push(step);
        Ok(())
    }

    /// What `body` computes stands in the body that is being written. Elsewhere what does not
    /// change in a loop is computed before it, and has registers throughout: too many, where a loop
    /// needs them for its sums and a tile is read or written behind it.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, KernelError, program::Step};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // How many steps stand before a loop of copies, and how many in it.
    /// let steps = |in_place: bool| -> Result<[usize; 2], KernelError> {
    ///     let kernel = Kernel::build("columns", |k| {
    ///         let (x, y) = (k.input::<f32>("x", "(32,64):(1,32)")?, k.output::<f32>("y", "(32,64):(1,32)")?);
    ///         k.threads(32)?;
    ///         k.range(64, |turn| {
    ///             let copied = || {
    ///                 let [x, y] = [&x, &y].map(|own| own.slice(Tree::flat([Slot::All, Slot::At(turn.clone())])?));
    ///                 y?.thread_part()?.store(&x?.thread_part()?.load()?)
    ///             };
    ///             if in_place { k.in_place(copied) } else { copied() }
    ///         })
    ///     })?;
    ///     let body = &kernel.program().body;
    ///     let turns = body.iter().find_map(|step| match step {
    ///         Step::Loop(turns) => Some(turns.body.len()),
    ///         _ => None,
    ///     });
    ///     Ok([body.len(), turns.unwrap_or(0)])
    /// };
    /// let ([before, within], [fewer, more]) = (steps(false)?, steps(true)?);
    /// assert!(fewer < before && more > within);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: what the body refuses.
    pub fn in_place<T>(&self, body: impl FnOnce() -> Result<T, KernelError>) -> Result<T, KernelError> {
        let around = {
            let mut core = self.core();
            let depth = core.depth();
            std::mem::replace(&mut core.least_depth, depth)
        };
        let done = body();
        self.core().least_depth = around;
        done
    }

    /// A body for the threads in which a condition is true.
    ///
    /// Errors: what the body refuses.
    #[track_caller]
    pub fn when<'k>(
        &'k self,
        condition: Flag<'k>,
        body: impl FnOnce() -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        self.branch("when", condition, body, || Ok(()), Location::caller())
    }

    /// One body for the threads in which a condition is true, another for the others.
    ///
    /// Errors: what the bodies refuse.
    #[track_caller]
    pub fn choose<'k>(
        &'k self,
        condition: Flag<'k>,
        then: impl FnOnce() -> Result<(), KernelError>,
        otherwise: impl FnOnce() -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        self.branch("choose", condition, then, otherwise, Location::caller())
    }

    pub(crate) fn branch<'k>(
        &'k self,
        statement: &'static str,
        condition: Flag<'k>,
        then: impl FnOnce() -> Result<(), KernelError>,
        otherwise: impl FnOnce() -> Result<(), KernelError>,
        location: Location,
    ) -> Result<(), KernelError> {
        let refuse = |refusal: Reason| refusal.at(statement, location);
        let (units, source) = {
            let mut core = self.core();
            core.begin(Source { statement, location });
            (core.units().map_err(refuse)?, core.source)
        };
        let before = {
            let mut core = self.core();
            for (unit, register) in &units {
                core.set_unit(unit, *register);
            }
            core.snapshot()
        };
        let one = |side: bool, body: &mut dyn FnMut() -> Result<(), KernelError>| {
            {
                let mut core = self.core();
                core.restore(&before);
                core.scopes.push(Scope::default());
                core.conditions.push((condition.register, side));
            }
            body()?;
            let mut core = self.core();
            core.conditions.pop();
            let mut ends = Vec::new();
            for (unit, initial) in &units {
                let width = core.width(*initial);
                ends.push(core.unit_register(unit, width).map_err(refuse)?);
            }
            let scope = core.scopes.pop().unwrap_or_default();
            Ok::<_, KernelError>((scope.steps, ends))
        };
        let (mut then, mut otherwise) = (Some(then), Some(otherwise));
        let (then, yes) = one(true, &mut || then.take().map_or(Ok(()), |body| body()))?;
        let (otherwise, no) = one(false, &mut || otherwise.take().map_or(Ok(()), |body| body()))?;
        let mut core = self.core();
        core.restore(&before);
        for cell in before.len()..core.cells.len() {
            core.cells[cell].slots.fill(Slot::Empty);
        }
        let depth = core.depth();
        let mut chosen = Vec::new();
        for (((unit, initial), then), otherwise) in units.iter().zip(yes).zip(no) {
            if then == *initial && otherwise == *initial {
                continue;
            }
            let width = core.width(*initial);
            let result = core.register_at(width, depth);
            core.set_unit(unit, result);
            chosen.push(Chosen { then, otherwise, result });
        }
        let step = Step::Branch(Branch { condition: condition.register, then, otherwise, chosen, source });
        core.scopes[depth].steps.push(step);
        Ok(())
    }
}

//! Loops and conditions.
//!
//! Law: a fragment is a variable. After a loop it has the value of the last iteration, and after a
//! condition that of the chosen body. In the program, these are loop-carried values, or values
//! selected by the condition; a value that the body does not change is not carried.
//!
//! A body is opened and closed. [`Build::open_loop`] and similar methods return a guard. Statements
//! until the guard is closed or dropped belong to the body. A method with a closure opens the body,
//! calls the closure and closes the body.

use tilewright_layout::symbolic::{Expr, Facts, Parameter, Symbolic};

use super::Build;
use super::core::{Core, Scope, Slot};
use super::number::Flag;
use crate::error::{KernelError, Reason};
use crate::program::register::{Register, Width};
use crate::program::{Branch, Carried, Chosen, Location, Loop, Source, SourceId, Step};

/// Elements of a fragment that share one register.
struct Unit {
    cell: usize,
    slots: Vec<usize>,
}

impl Core {
    /// The registers that hold the fragments. Narrow elements form whole words if possible.
    fn units(&mut self) -> Result<Vec<(Unit, Register)>, Reason> {
        let mut units = Vec::new();
        for cell in 0..self.cells.len() {
            let bits = self.cells[cell].bits;
            // Predicates are not packed into words.
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

    /// The states of all fragments, to restore them later.
    fn snapshot(&self) -> Vec<Vec<Slot>> {
        self.cells.iter().map(|cell| cell.slots.clone()).collect()
    }

    fn restore(&mut self, snapshot: &[Vec<Slot>]) {
        for (cell, slots) in self.cells.iter_mut().zip(snapshot) {
            cell.slots.clone_from(slots);
        }
    }
}

/// A loop whose body is being written.
pub(super) struct LoopBody {
    begun: Source,
    source: SourceId,
    from: Register,
    to: Register,
    index: Register,
    /// The values of fragments before the loop, and at the beginning of an iteration.
    carried: Vec<(Unit, Register, Register)>,
    /// The number of enclosing loops.
    around: usize,
    depth: usize,
}

/// A condition of which one body is being written.
pub(super) struct BranchBody {
    begun: Source,
    source: SourceId,
    condition: Register,
    units: Vec<(Unit, Register)>,
    before: Vec<Vec<Slot>>,
    /// After the first body was closed: its steps, and the values of the fragments at its end.
    then: Option<(Vec<Step>, Vec<Register>)>,
    depth: usize,
}

impl Core {
    /// Refuses to close a body while an inner one is open.
    fn closes(&self, depth: usize) -> Result<(), Reason> {
        if self.scopes.len() == depth + 2 { Ok(()) } else { Err(Reason::OpenBody) }
    }

    /// Opens a loop whose index runs from 0 up to a number in a register, which is at most `count`.
    /// Returns the index.
    fn open_loop(
        &mut self,
        begun: Source,
        count: &Expr,
        to: impl FnOnce(&mut Core) -> Result<Register, Reason>,
    ) -> Result<(LoopBody, Expr), Reason> {
        self.begin(begun);
        let source = self.source;
        let depth = self.depth();
        let units = self.units()?;
        let to = to(self)?;
        let from = self.constant(0, Width::Bits32);
        self.scopes.push(Scope::default());
        let mut carried = Vec::new();
        for (unit, initial) in units {
            let current = self.register_at(self.width(initial), depth + 1);
            // A loop-carried value has its own register.
            self.sums.insert(current);
            self.set_unit(&unit, current);
            carried.push((unit, initial, current));
        }
        let index = self.register_at(Width::Bits32, depth + 1);
        let greatest = count.range().1.unwrap_or(i64::MAX).min(i64::from(i32::MAX)) - 1;
        let variable = self.variable_of("iteration", index, greatest, Some(count.clone()));
        let around = self.iterations.len();
        Ok((LoopBody { begun, source, from, to, index, carried, around, depth }, variable))
    }

    /// Closes a loop. `until` is a predicate that is true in its last iteration.
    fn close_loop(&mut self, body: LoopBody, until: Option<Register>) -> Result<(), Reason> {
        let LoopBody { begun, source, from, to, index, carried: units, around, depth } = body;
        self.closes(depth)?;
        self.iterations.truncate(around);
        self.begin(begun);
        let mut ends = Vec::new();
        for (unit, initial, _) in &units {
            let width = self.width(*initial);
            ends.push(self.unit_register(unit, width)?);
        }
        let scope = self.scopes.pop().unwrap_or_default();
        // If there is no iteration, a value that only the body writes is undefined.
        let known: Vec<(usize, usize)> =
            units.iter().flat_map(|(unit, ..)| unit.slots.iter().map(|slot| (unit.cell, *slot))).collect();
        for cell in 0..self.cells.len() {
            for slot in 0..self.cells[cell].slots.len() {
                if !known.contains(&(cell, slot)) {
                    self.cells[cell].slots[slot] = Slot::Empty;
                }
            }
        }
        let mut carried = Vec::new();
        for ((unit, initial, current), next) in units.iter().zip(ends) {
            if next == *current {
                self.aliases.insert(*current, *initial);
                self.set_unit(unit, *initial);
                continue;
            }
            let result = self.register_at(self.width(*initial), depth);
            self.set_unit(unit, result);
            carried.push(Carried { initial: *initial, current: *current, next, result });
        }
        let step = Step::Loop(Loop { index, from, to, step: 1, carried, body: scope.steps_of_loop(), until, source });
        self.scopes[depth].steps.push(step);
        Ok(())
    }

    /// Opens the body for the threads in which a condition is true.
    fn open_branch(&mut self, begun: Source, condition: Register) -> Result<BranchBody, Reason> {
        self.begin(begun);
        let units = self.units()?;
        let source = self.source;
        for (unit, register) in &units {
            self.set_unit(unit, *register);
        }
        let (before, depth) = (self.snapshot(), self.depth());
        self.scopes.push(Scope::default());
        self.conditions.push((condition, true));
        Ok(BranchBody { begun, source, condition, units, before, then: None, depth })
    }

    /// Ends a body of a condition: its steps, and the values of the fragments at its end.
    fn end_side(&mut self, body: &BranchBody) -> Result<(Vec<Step>, Vec<Register>), Reason> {
        self.closes(body.depth)?;
        self.conditions.pop();
        let mut ends = Vec::new();
        for (unit, initial) in &body.units {
            let width = self.width(*initial);
            ends.push(self.unit_register(unit, width)?);
        }
        Ok((self.scopes.pop().unwrap_or_default().steps, ends))
    }

    /// Ends the first body of a condition, and opens that of the other threads.
    fn open_otherwise(&mut self, body: &mut BranchBody) -> Result<(), Reason> {
        body.then = Some(self.end_side(body)?);
        self.restore(&body.before);
        self.scopes.push(Scope::default());
        self.conditions.push((body.condition, false));
        Ok(())
    }

    /// Closes a condition.
    fn close_branch(&mut self, mut body: BranchBody) -> Result<(), Reason> {
        if body.then.is_none() {
            self.open_otherwise(&mut body)?;
        }
        let (otherwise, no) = self.end_side(&body)?;
        let BranchBody { source, condition, units, before, then, depth, .. } = body;
        let (then, yes) = then.unwrap_or_default();
        self.restore(&before);
        for cell in before.len()..self.cells.len() {
            self.cells[cell].slots.fill(Slot::Empty);
        }
        let mut chosen = Vec::new();
        for (((unit, initial), then), otherwise) in units.iter().zip(yes).zip(no) {
            if then == *initial && otherwise == *initial {
                continue;
            }
            let result = self.register_at(self.width(*initial), depth);
            self.set_unit(unit, result);
            chosen.push(Chosen { then, otherwise, result });
        }
        let step = Step::Branch(Branch { condition, then, otherwise, chosen, source });
        self.scopes[depth].steps.push(step);
        Ok(())
    }
}

impl Source {
    /// A refusal of this statement.
    pub(super) fn refuses(self, reason: Reason) -> KernelError {
        reason.at(self.statement, self.location)
    }
}

/// The body of a loop that is being written: see [`Build::open_loop`]. The loop ends when this
/// guard is closed or dropped.
#[must_use = "the loop ends where this is dropped"]
pub struct OpenLoop<'k> {
    build: &'k Build,
    index: Expr,
    body: Option<LoopBody>,
}

impl std::fmt::Debug for OpenLoop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenLoop({})", self.index)
    }
}

impl OpenLoop<'_> {
    /// The index, from 0 to below the count.
    pub fn index(&self) -> Expr {
        self.index.clone()
    }

    /// Ends the loop.
    ///
    /// Errors: an inner body is open (E0927).
    pub fn close(mut self) -> Result<(), KernelError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), KernelError> {
        let Some(body) = self.body.take() else { return Ok(()) };
        let begun = body.begun;
        self.build.core().close_loop(body, None).map_err(|reason| begun.refuses(reason))
    }
}

impl Drop for OpenLoop<'_> {
    fn drop(&mut self) {
        // If the author's code panics, the kernel is not finished.
        if !std::thread::panicking()
            && let Err(error) = self.end()
        {
            self.build.complain(error);
        }
    }
}

/// The body of a condition, of a role or of one thread that is being written: see
/// [`Build::open_when`] and [`Build::open_role`]. The body ends when this guard is closed or
/// dropped.
#[must_use = "the body ends where this is dropped"]
pub struct OpenBody<'k> {
    build: &'k Build,
    body: Option<BranchBody>,
    /// Whether it is a role, which renumbers its threads.
    is_role: bool,
}

impl std::fmt::Debug for OpenBody<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let statement = self.body.as_ref().map_or("", |body| body.begun.statement);
        write!(f, "OpenBody({statement})")
    }
}

impl<'k> OpenBody<'k> {
    /// Ends the body of [`Build::open_when`], and opens one for the threads in which the condition
    /// is false.
    ///
    /// Errors: this is not a body of `open_when`, or already has a second one (E0910); an inner
    /// body is open (E0927).
    pub fn otherwise(mut self) -> Result<OpenBody<'k>, KernelError> {
        let Some(mut body) = self.body.take() else { return Ok(self) };
        if body.then.is_some() || !matches!(body.begun.statement, "when" | "choose") {
            let because = "there is no condition before, whose else branch this could be".to_string();
            return Err(body.begun.refuses(Reason::Instruction { name: "otherwise".to_string(), because }));
        }
        self.build.core().open_otherwise(&mut body).map_err(|reason| body.begun.refuses(reason))?;
        Ok(OpenBody { build: self.build, body: Some(body), is_role: false })
    }

    /// Ends the body.
    ///
    /// Errors: an inner body is open (E0927).
    pub fn close(mut self) -> Result<(), KernelError> {
        self.end()
    }

    /// Calls a closure that writes the body, and ends the body.
    pub(super) fn holds(mut self, body: impl FnOnce() -> Result<(), KernelError>) -> Result<(), KernelError> {
        if let Err(refused) = body() {
            // The kernel is refused, so the written part does not matter.
            self.body = None;
            return Err(refused);
        }
        self.end()
    }

    fn end(&mut self) -> Result<(), KernelError> {
        let Some(body) = self.body.take() else { return Ok(()) };
        let begun = body.begun;
        let mut core = self.build.core();
        let done = core.close_branch(body);
        if self.is_role {
            core.team = None;
        }
        done.map_err(|reason| begun.refuses(reason))
    }
}

impl Drop for OpenBody<'_> {
    fn drop(&mut self) {
        // If the author's code panics, the kernel is not finished.
        if !std::thread::panicking()
            && let Err(error) = self.end()
        {
            self.build.complain(error);
        }
    }
}

impl Build {
    /// Opens a loop whose index runs from 0 up to `count`, which may be known at launch and must be
    /// the same in all threads. Statements until the guard is closed or dropped are the body.
    /// [`Build::range`] does the same with a closure.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Each thread sums a row of 8 elements, and doubles the sum if it is negative.
    /// let kernel = Kernel::build("sums", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(32,8):(8,1)")?, k.output::<f32>("y", "32:1")?);
    ///     k.threads(32)?;
    ///     let y = y.slice(k.thread()?)?;
    ///     let sum = y.fragment()?;
    ///     sum.clear();
    ///
    ///     let columns = k.open_loop(8)?;
    ///     let element = x.slice((k.thread()?, columns.index()))?.load()?;
    ///     sum.fill(sum.numbers()?[0] + element.numbers()?[0])?;
    ///     columns.close()?;
    ///
    ///     let value = sum.numbers()?[0];
    ///     let negative = k.open_when(value.lt(value.like(0.0)))?;
    ///     sum.fill(value * 2.0)?;
    ///     negative.close()?;
    ///     y.store(&sum)
    /// })?;
    /// interpret::check(kernel.program(), &[])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the count has too many terms.
    #[track_caller]
    pub fn open_loop(&self, count: impl Into<Expr>) -> Result<OpenLoop<'_>, KernelError> {
        let begun = Source { statement: "range", location: Location::caller() };
        let count = count.into();
        let mut core = self.core();
        let to = |core: &mut Core| core.lower(&count, Width::Bits32);
        let (body, index) = core.open_loop(begun, &count, to).map_err(|reason| begun.refuses(reason))?;
        // An index that is always 0 is no variable, but the loop may have no iteration.
        let none = || Facts::integer().at_least(0).and_then(|facts| facts.at_most(0)).map(Parameter::anonymous);
        let own = index.parameters().into_iter().next().or_else(|| none().ok());
        core.iterations.extend(own.map(|own| (own, count)));
        Ok(OpenLoop { build: self, index, body: Some(body) })
    }

    /// A loop whose body a closure writes: see [`Build::open_loop`].
    ///
    /// Errors: those of the body; the count has too many terms.
    #[track_caller]
    pub fn range(
        &self,
        count: impl Into<Expr>,
        body: impl FnOnce(Expr) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let mut open = self.open_loop(count)?;
        if let Err(refused) = body(open.index()) {
            // The kernel is refused, so the written part does not matter.
            open.body = None;
            return Err(refused);
        }
        open.end()
    }

    /// A loop whose index runs from 0 up to a number in a register, which is at most `count`. The
    /// body may return a predicate that is true in the last iteration. The body determines the
    /// coordinates that the iterations count.
    pub(super) fn repeated(
        &self,
        begun: Source,
        count: &Expr,
        to: impl FnOnce(&mut Core) -> Result<Register, Reason>,
        body: impl FnOnce(Expr) -> Result<Option<Register>, KernelError>,
    ) -> Result<(), KernelError> {
        let (open, index) = self.core().open_loop(begun, count, to).map_err(|reason| begun.refuses(reason))?;
        let until = body(index)?;
        self.core().close_loop(open, until).map_err(|reason| begun.refuses(reason))
    }

    /// Keeps computations in `body` in the body that is being written. Elsewhere, loop-invariant
    /// computations are hoisted and occupy registers during the loop. That may be too many
    /// registers if the loop needs them for accumulators, and a tile is loaded or stored after it.
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
    ///         k.range(64, |iteration| {
    ///             let copied = || {
    ///                 let [x, y] = [&x, &y].map(|own| own.slice(Tree::flat([Slot::All, Slot::At(iteration.clone())])?));
    ///                 y?.thread_part()?.store(&x?.thread_part()?.load()?)
    ///             };
    ///             if in_place { k.in_place(copied) } else { copied() }
    ///         })
    ///     })?;
    ///     let body = &kernel.program().body;
    ///     let iterations = body.iter().find_map(|step| match step {
    ///         Step::Loop(looped) => Some(looped.body.len()),
    ///         _ => None,
    ///     });
    ///     Ok([body.len(), iterations.unwrap_or(0)])
    /// };
    /// let ([before, within], [fewer, more]) = (steps(false)?, steps(true)?);
    /// assert!(fewer < before && more > within);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: those of the body.
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

    /// Opens a body for the threads in which a condition is true; [`OpenBody::otherwise`] opens one
    /// for the others. Statements until the guard is closed or dropped are the body.
    /// [`Build::when`] and [`Build::choose`] do the same with closures.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("absolute", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "32:1")?, k.output::<f32>("y", "32:1")?);
    ///     k.threads(32)?;
    ///     let (value, y) = (x.slice(k.thread()?)?.load()?, y.slice(k.thread()?)?);
    ///     let number = value.numbers()?[0];
    ///     let negative = k.open_when(number.lt(number.like(0.0)))?;
    ///     y.store(&value.map(|x| Ok(x * -1.0))?)?;
    ///     let others = negative.otherwise()?;
    ///     y.store(&value)?;
    ///     others.close()
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// let (x, y) = (run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// assert!(x.iter().zip(&y).all(|(x, y)| x.abs() == *y));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: a fragment has values in only some of its elements where all are needed.
    #[track_caller]
    pub fn open_when<'k>(&'k self, condition: Flag<'k>) -> Result<OpenBody<'k>, KernelError> {
        self.open_branch(Source { statement: "when", location: Location::caller() }, condition)
    }

    /// A body for the threads in which a condition is true: see [`Build::open_when`].
    ///
    /// Errors: those of the body.
    #[track_caller]
    pub fn when<'k>(
        &'k self,
        condition: Flag<'k>,
        body: impl FnOnce() -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        self.branch("when", condition, body, || Ok(()), Location::caller())
    }

    /// One body for the threads in which a condition is true, and another one for the rest: see
    /// [`Build::open_when`].
    ///
    /// Errors: those of the bodies.
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
        let begun = Source { statement, location };
        let refuse = |reason| begun.refuses(reason);
        let mut body = self.core().open_branch(begun, condition.register).map_err(refuse)?;
        then()?;
        self.core().open_otherwise(&mut body).map_err(refuse)?;
        otherwise()?;
        self.core().close_branch(body).map_err(refuse)
    }

    /// Opens the body of a condition, for a statement.
    pub(super) fn open_branch<'k>(&'k self, begun: Source, condition: Flag<'k>) -> Result<OpenBody<'k>, KernelError> {
        let body = self.core().open_branch(begun, condition.register).map_err(|reason| begun.refuses(reason))?;
        Ok(OpenBody { build: self, body: Some(body), is_role: false })
    }

    /// Opens the body of a role, in which threads are numbered from 0.
    pub(super) fn open_team<'k>(&'k self, begun: Source, inside: Flag<'k>) -> Result<OpenBody<'k>, KernelError> {
        let mut open = self.open_branch(begun, inside)?;
        open.is_role = true;
        Ok(open)
    }
}

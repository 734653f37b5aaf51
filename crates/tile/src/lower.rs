//! Lowers a tile program to the kernel language.
//!
//! Law: each value becomes the numbers that the threads hold of it in its layout. Elementwise
//! operations apply to these numbers; operations that only change layouts rename numbers; loads,
//! stores, reductions, scans and conversions are those of distributed tiles, and `dot` is MMA on
//! fragments.

mod early;
mod functions;
mod in_place;
mod limits;
mod operations;
mod own_ring;
mod picked;
mod roles;
mod smooth;
mod stage;
mod together;
mod top;

pub(crate) use early::early_registers;
pub(crate) use roles::{lower as lower_by_roles, tma_layout};
pub(crate) use stage::staged_layout;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tilewright_kernel::machine::{Machine, Multiprocessor};
use tilewright_kernel::program::Location;
use tilewright_kernel::ptx::Target;
use tilewright_kernel::{Build, Distributed, Distribution, Element, Fragment, Kernel, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Stride};

use self::functions::reductions;
use self::stage::staged;
use crate::held::Held;
use crate::place::Placed;
use crate::program::{Axis, Count, Counter, Index, Loop, Name, Operation, Program, Statement, ValueId};
use crate::roles::{Masks, masks};

/// The most iterations of a loop that is unrolled completely.
const MOST_TURNS: i64 = 8;
/// The most elements of a value in an unrolled loop.
const MOST_ELEMENTS: i64 = 1 << 15;
/// Bytes of a cache line.
const LINE: i64 = 128;
/// Bytes of a sector, the unit of memory transactions.
const SECTOR: i64 = 32;

/// The kernel of a program whose values have layouts. `residents` are the requested numbers of
/// resident blocks: without rings of threads, and with them.
pub(crate) fn lower(
    placed: &Placed,
    (residents, room): ([u32; 2], &Room),
    taken: &SharedArrays,
) -> Result<Kernel, KernelError> {
    let program = &placed.program;
    Kernel::build(&program.name, |k| {
        let mut tensors = Vec::new();
        for (tensor, (place, _)) in program.tensors.iter().zip(&program.declared) {
            let declare = || k.tensor_of(tensor.element, &tensor.name, &tensor.layout, tensor.role);
            tensors.push(place.during(declare)?);
        }
        // An axis that the program does not set has one block.
        let counts = program.grid.iter().map(String::as_str).chain(std::iter::repeat("1"));
        for (axis, count) in Axis::ALL.into_iter().zip(counts) {
            program.at_grid(|| k.grid(axis, count))?;
        }
        let threads = placed.layouts.values().next().map_or(32, Held::threads);
        k.threads(threads)?;
        let mut own = Lowering { room: *room, residents, ..Lowering::new(k, placed, tensors, taken) };
        own.body(&program.body)?;
        match residents[usize::from(own.has_own_rings)] {
            0 | 1 => Ok(()),
            resident => k.resident(resident),
        }
    })
}

/// The shared memory that is available for staged tiles, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// The shared memory that a block may have.
    pub(crate) block: i64,
    /// The shared memory of a multiprocessor, and the part of it that is reserved for each resident
    /// block.
    pub(crate) multiprocessor: i64,
    pub(crate) reserved: i64,
    /// The shared memory that other arrays of the block take.
    pub(crate) others: i64,
}

impl Room {
    /// The shared memory of a machine. Without a machine, what every target has.
    pub(crate) fn of(machine: Option<&Machine>) -> Room {
        let all = || Target::ALL.into_iter().map(Multiprocessor::of).min_by_key(|own| own.block_shared_bytes);
        let least = |own: Multiprocessor| Room {
            block: own.block_shared_bytes.into(),
            multiprocessor: own.shared_bytes.into(),
            reserved: own.reserved_bytes.into(),
            others: 0,
        };
        match machine {
            Some(machine) => {
                let own = least(machine.multiprocessor);
                let target = Multiprocessor::of(machine.target).block_shared_bytes;
                Room { block: own.block.min(target.into()), ..own }
            }
            None => least(all().unwrap_or(Multiprocessor::of(Target::Sm86))),
        }
    }

    /// The shared memory that a block may have if this many blocks are to be resident.
    fn of_blocks(&self, blocks: i64) -> i64 {
        self.block.min(self.multiprocessor / blocks.max(1) - self.reserved) - self.others
    }
}

/// The arrays in shared memory: the statement and its bytes.
pub(crate) type SharedArrays = RefCell<Vec<(Location, i64)>>;

/// What a thread holds of a value.
#[derive(Clone)]
enum ThreadValue<'k> {
    Numbers(Vec<Num<'k>>),
    /// A tile as it was loaded: two elements of 16 bits stay in one register.
    Tile(Distributed<'k>),
    /// A tile that is converted to a wider type at each use. A narrow number that is kept over a
    /// barrier and a second conversion cost less than a wide number that is kept.
    Widened(Distributed<'k>, Element),
    /// An operand of `dot` in the layout of the instruction: a fragment for each 16 elements along
    /// K.
    Operand(Vec<Fragment<'k>>),
    /// An operand that is loaded from shared memory during the `dot`, one k-step at a time: its
    /// ring, and the stage.
    InStage(Rc<stage::StageRing<'k>>, Expr),
}

struct Lowering<'k, 'p> {
    k: &'k Build,
    placed: &'p Placed,
    tensors: Vec<View<'k>>,
    /// What a thread holds of each value.
    values: HashMap<ValueId, ThreadValue<'k>>,
    iterations: HashMap<u32, Expr>,
    /// Tiles that were prefetched, by the load that would load them.
    early: HashMap<early::Key, ThreadValue<'k>>,
    /// The operands that are in shared memory: their ring, and the stage.
    in_stage: HashMap<ValueId, (Rc<stage::StageRing<'k>>, Expr)>,
    /// The rings of the innermost loop, if the copies of early and late tiles alternate.
    turn: Option<stage::Turn<'k>>,
    /// The copies of rings that have not been issued yet.
    copies: Option<stage::LateCopies<'k>>,
    /// Selections that select their first tile in all iterations that are being emitted.
    whole: HashSet<ValueId>,
    /// The available shared memory, and the part of it that operands outside of loops keep.
    room: Room,
    /// The requested numbers of resident blocks, and whether a loop has rings of threads.
    residents: [u32; 2],
    has_own_rings: bool,
    kept_bytes: i64,
    kept: Vec<(ValueId, Rc<stage::StageRing<'k>>)>,
    /// The iterations of the unrolled loops that are being emitted.
    written: early::Iterations,
    /// The number of open loops.
    depth: usize,
    /// The block whose program is being executed, if it is not the block of the launch.
    block: Option<[Expr; 3]>,
    /// The statements that allocated shared memory, with the bytes: one entry for each array.
    taken: &'p SharedArrays,
    /// The last sort of the body that also computed positions.
    sorted: Option<top::Sorted<'k>>,
    /// The state of the consumer warpgroups, in a program with roles.
    groups: Option<roles::Groups<'k, 'p>>,
}

fn over() -> KernelError {
    tilewright_layout::LayoutError::Overflow { op: "tile" }.into()
}

impl<'k, 'p> Lowering<'k, 'p> {
    fn new(k: &'k Build, placed: &'p Placed, tensors: Vec<View<'k>>, taken: &'p SharedArrays) -> Lowering<'k, 'p> {
        let (values, iterations) = (HashMap::new(), HashMap::new());
        let (early, in_stage, written) = (HashMap::new(), HashMap::new(), Vec::new());
        Lowering {
            k,
            placed,
            tensors,
            values,
            iterations,
            early,
            in_stage,
            turn: None,
            copies: None,
            whole: HashSet::new(),
            room: Room::of(None),
            residents: [1; 2],
            has_own_rings: false,
            kept_bytes: 0,
            kept: Vec::new(),
            written,
            depth: 0,
            block: None,
            taken,
            sorted: None,
            groups: None,
        }
    }

    /// Attributes arrays in shared memory that have no statement yet to a statement.
    fn note(&self, place: Location) {
        let arrays = self.k.shared_arrays();
        let mut taken = self.taken.borrow_mut();
        let known = taken.len().min(arrays.len());
        taken.extend(arrays[known..].iter().map(|bytes| (place, *bytes)));
    }

    /// The number of iterations of a loop.
    fn count(&self, own: &Loop) -> Result<Expr, KernelError> {
        match &own.count {
            Count::Sizes(text) => self.k.size(text),
            Count::Index(index) => self.index(index),
            Count::Value(value) => {
                let count = *self.numbers(*value)?.first().ok_or_else(over)?;
                self.k.index_of(count.max(count.like(0.0)))
            }
        }
    }

    fn held(&self, value: ValueId) -> Result<&Held, KernelError> {
        let missing = || KernelError::from(tilewright_layout::LayoutError::Overflow { op: "layout" });
        self.placed.layouts.get(&value).ok_or_else(missing)
    }

    fn distribution(&self, value: ValueId) -> Result<Distribution, KernelError> {
        self.held(value)?.distribution(&self.placed.program.type_of(value).shape)
    }

    fn numbers(&self, value: ValueId) -> Result<Vec<Num<'k>>, KernelError> {
        match self.values.get(&value) {
            Some(ThreadValue::Numbers(numbers)) => Ok(numbers.clone()),
            Some(ThreadValue::Tile(tile)) => tile.fragment().numbers(),
            Some(ThreadValue::Widened(tile, element)) => tile.to(*element)?.fragment().numbers(),
            Some(ThreadValue::Operand(parts)) => {
                let parts = parts.iter().map(Fragment::numbers).collect::<Result<Vec<_>, _>>()?;
                Ok(parts.concat())
            }
            Some(ThreadValue::InStage(ring, stage)) => {
                let parts = self.fragments(value, ring, stage)?;
                let parts = parts.iter().map(Fragment::numbers).collect::<Result<Vec<_>, _>>()?;
                Ok(parts.concat())
            }
            None => Ok(Vec::new()),
        }
    }

    fn index(&self, index: &Index) -> Result<Expr, KernelError> {
        let over = || KernelError::from(tilewright_layout::LayoutError::Overflow { op: "index" });
        let mut sum = Expr::from(index.constant);
        for (name, by) in &index.terms {
            let counted = match name.counter() {
                Counter::Block(axis) => match &self.block {
                    Some(block) => block[axis as usize].clone(),
                    None => self.k.block_number(axis),
                },
                Counter::Iteration(number) => self.iterations.get(&number).cloned().unwrap_or(Expr::from(0)),
            };
            let own = match name {
                Name::Block(_) | Name::Iteration(_) => counted,
                Name::Quotient(_, by) => self.k.quotient(&counted, *by)?,
                Name::Remainder(_, by) => self.k.remainder(&counted, *by)?,
            };
            let part = Stride::times(&own, &Expr::from(*by)).ok_or_else(over)?;
            sum = Stride::plus(&sum, &part).ok_or_else(over)?;
        }
        Ok(sum)
    }

    /// Numbers as a distributed tile.
    fn tiled(&self, numbers: &[Num<'k>], held: &Distribution) -> Result<Distributed<'k>, KernelError> {
        let element = numbers.first().map_or(Element::F32, |number| number.element());
        let fragment = self.k.register(element, &numbers.len().to_string())?;
        fragment.set(numbers)?;
        fragment.distributed(held)
    }

    fn body(&mut self, body: &[Statement]) -> Result<(), KernelError> {
        // The sorted registers belong to another body, or to another iteration.
        self.sorted = None;
        for (number, statement) in body.iter().enumerate() {
            // After a loop with wgmma, a tile may need a separate coordinate for each element. They
            // are not computed before the loop, because the accumulators need the registers.
            let behind = |own: &Statement| matches!(own, Statement::Loop(_));
            let late = self.groups.is_some() && body[..number].iter().any(behind);
            if self.waits(body, number) {
                statement.place().during(|| self.k.barrier());
            }
            match statement {
                Statement::Let { result, operation: Operation::Stage { .. }, place, .. } if self.groups.is_some() => {
                    place.during(|| self.hold(*result, body))?;
                }
                // At the beginning of an iteration, the operands of the loop are in shared memory
                // already.
                Statement::Let { result, operation: Operation::Stage { .. }, place, .. } => {
                    place.during(|| {
                        if !self.take_staged(*result) {
                            self.staged_at_once(*result, statement)?;
                        }
                        Ok::<_, KernelError>(())
                    })?;
                }
                Statement::Let { result, operation: Operation::Select(_), operands, .. }
                    if self.whole.contains(result) =>
                {
                    let numbers = self.numbers(operands[2])?;
                    self.values.insert(*result, ThreadValue::Numbers(numbers));
                }
                Statement::Let { result, operation, operands, place } => {
                    if let Some(own) = self.early.remove(&(*result, self.written.clone())) {
                        self.values.insert(*result, own);
                        continue;
                    }
                    if !place.during(|| self.reduced_together(body, number))? {
                        self.turns(operation, operands, *place)?;
                        let k = self.k;
                        let mut given = || place.during(|| self.given(*result, operation, operands));
                        let is_read = matches!(operation, Operation::Load { .. } | Operation::Gather { .. });
                        let own = if is_read && late { k.in_place(given)? } else { given()? };
                        self.values.insert(*result, own);
                    }
                }
                Statement::Store { place, .. } => place.during(|| self.store(statement, late))?,
                Statement::Loop(own) => {
                    self.begin_copies()?;
                    own.place.during(|| self.iterations(own))?;
                    self.give_kept_back(&body[number + 1..]);
                }
            }
            self.note(statement.place());
            self.let_go(&body[number..=number], &body[number + 1..])?;
        }
        self.sorted = None;
        Ok(())
    }

    fn iterations(&mut self, own: &Loop) -> Result<(), KernelError> {
        let own_rings = if self.groups.is_none() { self.own_rings(own)? } else { None };
        if let Some(count) = unrolled(own, &self.placed.program)
            && self.groups.is_none()
            && own_rings.is_none()
        {
            return self.written_out(own, count);
        }
        let count = self.count(own)?;
        let mut carried = Vec::new();
        for value in &own.initial {
            let numbers = self.numbers(*value)?;
            let element = self.placed.program.type_of(*value).element;
            let fragment = self.k.register(element, &numbers.len().to_string())?;
            fragment.set(&numbers)?;
            carried.push(fragment);
        }
        let k = self.k;
        let overlap = self.groups.as_ref().and_then(|groups| groups.overlaps.get(&own.iteration)).cloned();
        if let Some(overlap) = overlap {
            self.overlapped(own, &overlap, &count, &carried)?;
            return self.ended(own, &carried);
        }
        if let Some(rings) = own_rings {
            self.ringed_iterations(own, &rings, &carried)?;
            return self.ended(own, &carried);
        }
        if self.groups.is_none() && self.early_iterations(own, &carried)? {
            return self.ended(own, &carried);
        }
        let around = self.turn.take();
        let rings = if self.groups.is_some() { Vec::new() } else { self.begin_rings(own, self.depth > 0)? };
        self.depth += 1;
        for (first, count, whole) in self.parts(own, count)? {
            let left_out = std::mem::replace(&mut self.whole, whole);
            k.range(count, |iteration| {
                let iteration = Stride::plus(&first, &iteration).ok_or_else(over)?;
                self.iterations.insert(own.iteration, iteration.clone());
                self.iteration_rings(own, &rings, &iteration)?;
                for (parameter, fragment) in own.parameters.iter().zip(&carried) {
                    self.values.insert(*parameter, ThreadValue::Numbers(fragment.numbers()?));
                }
                self.body(&own.body)?;
                self.begin_copies()?;
                for (next, fragment) in own.next.iter().zip(&carried) {
                    fragment.set(&self.numbers(*next)?)?;
                }
                Ok(())
            })?;
            self.whole = left_out;
        }
        self.depth -= 1;
        self.end_rings(&rings);
        self.turn = around;
        self.ended(own, &carried)
    }

    /// Splits the iterations of a loop: the first iteration of each part, the number of its
    /// iterations, and the masks that are true in all of them. A loop without `dot`, and one whose
    /// masks are always needed, is one part.
    fn parts(&mut self, own: &Loop, count: Expr) -> Result<Vec<(Expr, Expr, HashSet<ValueId>)>, KernelError> {
        let zero = Expr::from(0);
        let multiplies =
            |own: &Statement| matches!(own, Statement::Let { operation: Operation::Dot, .. } | Statement::Loop(_));
        if self.groups.is_some() || !own.body.iter().any(multiplies) {
            return Ok(vec![(zero, count, HashSet::new())]);
        }
        let Masks { first, early, last, late } = masks(&self.placed.program, own);
        if early.is_empty() && late.is_empty() {
            return Ok(vec![(zero, count, HashSet::new())]);
        }
        let k = self.k;
        let there = k.index(&count)?;
        let least = |most: i64| -> Result<Expr, KernelError> {
            let none = there.like(0.0);
            k.index_of(there.max(none).min(there.like(most as f64)))
        };
        let mut found = Vec::new();
        let mut begin = zero;
        if !early.is_empty() && first > 0 {
            let own = least(first)?;
            found.push((begin, own.clone(), HashSet::new()));
            begin = own;
        }
        let rest = count.minus(&begin).ok_or_else(over)?;
        if late.is_empty() {
            found.push((begin, rest, early));
            return Ok(found);
        }
        let rest_number = k.index(&rest)?;
        let end = k.index_of(rest_number.max(rest_number.like(0.0)).min(rest_number.like(last as f64)))?;
        let between = rest.minus(&end).ok_or_else(over)?;
        let behind = Stride::plus(&begin, &between).ok_or_else(over)?;
        found.push((begin, between, early.union(&late).copied().collect()));
        found.push((behind, end, early));
        Ok(found)
    }

    /// Sets the results of a loop.
    fn ended(&mut self, own: &Loop, carried: &[Fragment<'k>]) -> Result<(), KernelError> {
        for (result, fragment) in own.results.iter().zip(carried) {
            self.values.insert(*result, ThreadValue::Numbers(fragment.numbers()?));
        }
        Ok(())
    }

    /// Unrolls the iterations of a loop completely, so that loads of later iterations are issued
    /// early.
    fn written_out(&mut self, own: &Loop, count: i64) -> Result<(), KernelError> {
        let of = |lowering: &Self, value: &ValueId| lowering.values.get(value).cloned();
        let mut carried: Vec<Option<ThreadValue<'k>>> = own.initial.iter().map(|value| of(self, value)).collect();
        for iteration in 0..count {
            self.iterations.insert(own.iteration, Expr::from(iteration));
            for (parameter, value) in own.parameters.iter().zip(carried) {
                self.values.extend(value.map(|value| (*parameter, value)));
            }
            self.written.push((own.iteration, iteration));
            self.body(&own.body)?;
            self.written.pop();
            carried = own.next.iter().map(|value| of(self, value)).collect();
        }
        for (result, value) in own.results.iter().zip(carried) {
            self.values.extend(value.map(|value| (*result, value)));
        }
        Ok(())
    }
}

/// The number of iterations of a loop that is unrolled completely: one with few iterations and few
/// statements, without loops, `dot`, barriers or shared memory. None for other loops.
fn unrolled(own: &Loop, program: &Program) -> Option<i64> {
    let count = iterations_of(own)?;
    let registers = |value: &ValueId| program.type_of(*value).size();
    let plain = |statement: &Statement| match statement {
        Statement::Let { operation: Operation::Stage { .. }, .. } => false,
        // Operands take many registers. With fewer registers, more warps are resident and hide
        // latency.
        Statement::Let { operation: Operation::Dot, .. } => false,
        Statement::Let { operation, .. } if operation.combines() => false,
        Statement::Let { result, .. } => registers(result) <= MOST_ELEMENTS,
        Statement::Store { .. } => true,
        Statement::Loop(_) => false,
    };
    (0..=MOST_TURNS).contains(&count).then_some(count).filter(|_| own.body.iter().all(plain))
}

/// The number of iterations of a loop; None if it is known only at launch.
fn iterations_of(own: &Loop) -> Option<i64> {
    match &own.count {
        Count::Sizes(text) => text.trim().parse::<i64>().ok(),
        Count::Index(index) => index.known(),
        Count::Value(_) => None,
    }
}

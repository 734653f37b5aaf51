//! Inserts conversions where layouts differ.
//!
//! Law: the program does not change, except that each operation gets its operands in the layouts
//! that it needs. A conversion is made once for a value and a layout, where the value is defined: a
//! loop-invariant value is converted before the loop. Values that are cheap to recompute (ranges,
//! scalars) are recomputed, and dead code is removed.

use std::collections::{BTreeMap, HashMap, HashSet};

use tilewright_kernel::machine::Multiprocessor;
use tilewright_kernel::program::{Location, WARP_LANES};
use tilewright_kernel::ptx::Target;

use crate::assign::{Assignment, left, needed};
use crate::error::Reason;
use crate::held::Held;
use crate::matrix::Tiling;
use crate::picked;
use crate::pools::{Pools, is_anywhere};
use crate::program::{Loop, Operation, Program, Statement, ValueId};

/// A program with a layout for each value, and a tiling for each `dot`.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) program: Program,
    pub(crate) layouts: BTreeMap<ValueId, Held>,
    pub(crate) tilings: HashMap<ValueId, Tiling>,
}

/// The most registers of a thread (PTX ISA, `.maxnreg`: the limit of all targets since sm_35).
const MOST_REGISTERS: i64 = 255;

impl Placed {
    /// The registers that a thread may have if the block is alone on a multiprocessor.
    pub(crate) fn registers_of_thread(&self) -> i64 {
        let threads = self.layouts.values().next().map_or(WARP_LANES as i64, Held::threads);
        // Every target has the same number of registers.
        let all = Multiprocessor::of(Target::Sm80).registers;
        (i64::from(all) / threads.max(1)).min(MOST_REGISTERS)
    }
}

struct Placer<'p> {
    source: &'p Program,
    pools: &'p Pools,
    assignment: &'p Assignment,
    placed: Placed,
    /// The bodies that are being written.
    bodies: Vec<Vec<Statement>>,
    /// The depth of the body in which each value is defined.
    depths: HashMap<ValueId, usize>,
    /// The conversions of each value. They are defined with the value, so they are visible wherever
    /// it is.
    others: HashMap<(ValueId, Held), ValueId>,
    /// Operations that are recomputed at each use.
    anywhere: HashMap<ValueId, (Operation, Vec<ValueId>)>,
    number: usize,
}

/// Inserts the conversions of an assignment into a program.
pub(crate) fn place(program: &Program, pools: &Pools, assignment: &Assignment) -> Result<Placed, Reason> {
    let mut placer = Placer {
        source: program,
        pools,
        assignment,
        placed: Placed { program: program.clone(), layouts: BTreeMap::new(), tilings: assignment.tilings.clone() },
        bodies: vec![Vec::new()],
        depths: HashMap::new(),
        others: HashMap::new(),
        anywhere: HashMap::new(),
        number: 0,
    };
    placer.body(&program.body)?;
    let body = placer.bodies.pop().unwrap_or_default();
    let mut placed = placer.placed;
    placed.program.body = live(body);
    Ok(placed)
}

/// Removes dead code.
pub(crate) fn live(body: Vec<Statement>) -> Vec<Statement> {
    let mut used = HashSet::new();
    uses(&body, &mut used);
    swept(body, &used)
}

/// The values that statements use.
fn uses(body: &[Statement], used: &mut HashSet<ValueId>) {
    for statement in body.iter().rev() {
        match statement {
            Statement::Let { result, .. } if !used.contains(result) => {}
            _ => used.extend(statement.takes()),
        }
        if let Statement::Loop(own) = statement {
            uses(&own.body, used);
        }
    }
}

fn swept(body: Vec<Statement>, used: &HashSet<ValueId>) -> Vec<Statement> {
    let kept = body.into_iter().filter_map(|statement| match statement {
        Statement::Let { result, .. } if !used.contains(&result) => None,
        Statement::Loop(own) => {
            let body = swept(own.body, used);
            Some(Statement::Loop(Loop { body, ..own }))
        }
        other => Some(other),
    });
    kept.collect()
}

impl Placer<'_> {
    fn layout(&self, value: ValueId) -> Result<Held, Reason> {
        let held = self.placed.layouts.get(&value).or_else(|| self.assignment.layouts.get(&self.pools.of(value)));
        held.cloned().ok_or_else(|| Reason::Unknown { what: "layout of the value", name: format!("{value:?}") })
    }

    /// Adds a statement to the body at a depth.
    fn give(
        &mut self,
        depth: usize,
        (result, held): (ValueId, Held),
        operation: Operation,
        operands: &[ValueId],
        place: Location,
    ) {
        self.depths.insert(result, depth);
        self.placed.layouts.insert(result, held);
        self.bodies[depth].push(Statement::Let { result, operation, operands: operands.to_vec(), place });
    }

    /// A value in a layout; converts it if necessary.
    fn in_layout(&mut self, value: ValueId, held: &Held, place: Location) -> Result<ValueId, Reason> {
        if let Some(known) = self.others.get(&(value, held.clone())) {
            return Ok(*known);
        }
        let depth = self.depths.get(&value).copied().unwrap_or(0);
        let ty = self.placed.program.type_of(value).clone();
        let other = match self.anywhere.get(&value).cloned() {
            Some((operation, operands)) => {
                let other = self.placed.program.value(ty);
                self.give(depth, (other, held.clone()), operation, &operands, place);
                other
            }
            None if self.layout(value)? == *held => return Ok(value),
            None => {
                let other = self.placed.program.value(ty);
                self.give(depth, (other, held.clone()), Operation::Held(held.clone()), &[value], place);
                other
            }
        };
        self.others.insert((value, held.clone()), other);
        Ok(other)
    }

    fn body(&mut self, body: &[Statement]) -> Result<(), Reason> {
        for statement in body {
            let number = self.number;
            self.number += 1;
            match statement {
                Statement::Let { result, operation, operands, place } => {
                    self.given(*result, operation, operands, *place)?;
                }
                Statement::Store { tensor, at, rows, with, value, place } => {
                    let held = self.assignment.stores.get(&number).cloned();
                    let held = held.ok_or(Reason::Unknown { what: "layout of the store", name: number.to_string() })?;
                    let shape = self.source.type_of(*value).shape.clone();
                    let value = self.in_layout(*value, &held, *place)?;
                    let mut own = Vec::new();
                    for (mode, rows) in rows {
                        let held = picked::coordinates(&shape, &self.source.type_of(*rows).shape, &held);
                        own.push((*mode, self.in_layout(*rows, &held, *place)?));
                    }
                    let (tensor, at, with, place) = (*tensor, at.clone(), *with, *place);
                    self.push(Statement::Store { tensor, at, rows: own, with, value, place });
                }
                Statement::Loop(own) => self.iterations(own)?,
            }
        }
        Ok(())
    }

    fn push(&mut self, statement: Statement) {
        if let Some(body) = self.bodies.last_mut() {
            body.push(statement);
        }
    }

    fn given(
        &mut self,
        result: ValueId,
        operation: &Operation,
        operands: &[ValueId],
        place: Location,
    ) -> Result<(), Reason> {
        let held = self.layout(result)?;
        let depth = self.bodies.len() - 1;
        if is_anywhere(self.source, operation, operands) {
            self.anywhere.insert(result, (operation.clone(), operands.to_vec()));
            self.give(depth, (result, held.clone()), operation.clone(), operands, place);
            self.others.insert((result, held), result);
            return Ok(());
        }
        let to = self.source.type_of(result).shape.clone();
        let mut taken = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            let from = &self.source.type_of(*operand).shape;
            let want = match operation {
                Operation::Dot => self.placed.tilings.get(&result).map(|own| [&own.a, &own.b, &own.c][at].clone()),
                _ => needed(operation, from, &to, &held),
            };
            taken.push(match want {
                Some(want) => self.in_layout(*operand, &want, place)?,
                None => *operand,
            });
        }
        if let Operation::Held(_) = operation {
            // The operand already has that layout.
            self.others.insert((result, held.clone()), taken[0]);
            self.give(depth, (result, held.clone()), Operation::Held(held), &taken, place);
            return Ok(());
        }
        if !operation.reduces() {
            self.give(depth, (result, held), operation.clone(), &taken, place);
            return Ok(());
        }
        // The layout of the result of a reduction follows from that of its operand.
        let shape = &self.source.type_of(operands[0]).shape;
        let own = left(operation, shape, &self.layout(taken[0])?).unwrap_or(held.clone());
        if own == held {
            self.give(depth, (result, held), operation.clone(), &taken, place);
            return Ok(());
        }
        let other = self.placed.program.value(self.source.type_of(result).clone());
        self.give(depth, (other, own), operation.clone(), &taken, place);
        self.give(depth, (result, held.clone()), Operation::Held(held), &[other], place);
        Ok(())
    }

    fn iterations(&mut self, own: &Loop) -> Result<(), Reason> {
        let mut initial = Vec::new();
        for (value, parameter) in own.initial.iter().zip(&own.parameters) {
            let held = self.layout(*parameter)?;
            initial.push(self.in_layout(*value, &held, own.place)?);
        }
        let depth = self.bodies.len();
        self.bodies.push(Vec::new());
        for parameter in &own.parameters {
            let held = self.layout(*parameter)?;
            self.placed.layouts.insert(*parameter, held);
            self.depths.insert(*parameter, depth);
        }
        self.body(&own.body)?;
        let mut next = Vec::new();
        for (value, parameter) in own.next.iter().zip(&own.parameters) {
            let held = self.layout(*parameter)?;
            next.push(self.in_layout(*value, &held, own.place)?);
        }
        let body = self.bodies.pop().unwrap_or_default();
        for result in &own.results {
            let held = self.layout(*result)?;
            self.placed.layouts.insert(*result, held);
            self.depths.insert(*result, depth - 1);
        }
        self.push(Statement::Loop(Loop { initial, body, next, ..own.clone() }));
        Ok(())
    }
}

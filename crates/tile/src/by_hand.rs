//! Instructions that the author names.
//!
//! Law: `atom(a, NAME)` is the tile `a`, computed by the instruction of this name: `dot` by an MMA
//! instruction, a load by a copy. If that is impossible, it is refused; no other instruction is
//! used instead. This pass removes `atom` from the program; later passes get the names separately.

use std::collections::HashMap;

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;

use crate::error::Reason;
use crate::matrix;
use crate::program::{Count, Loop, Operation, Program, Statement, ValueId};

/// The name of the `cp.async` copy: threads copy a tile to shared memory.
pub(crate) const BY_THREADS: &str = "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>";
/// The name of the TMA load.
pub(crate) const BY_ENGINE: &str = "SM90_TMA_LOAD";
/// The names of copies to registers, with the bits that a thread loads at once.
const BY_READING: [(&str, i64); 5] = [
    ("UniversalCopy<uint8_t>", 8),
    ("UniversalCopy<uint16_t>", 16),
    ("UniversalCopy<uint32_t>", 32),
    ("UniversalCopy<uint64_t>", 64),
    ("UniversalCopy<uint128_t>", 128),
];

/// The instruction that computes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// An `mma` of a warp.
    Warp,
    /// A `wgmma` with this many columns.
    Group(i64),
    /// `cp.async`: threads copy the tile to shared memory.
    Threads,
    /// TMA loads the tile into shared memory.
    Engine,
    /// Threads load the tile to registers, this many bits at once.
    Bits(i64),
}

/// The instructions that the author names, by the values that they compute.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByHand {
    of: HashMap<ValueId, (Given, String, Location)>,
}

fn refuse(name: &str, place: Location, because: &str) -> Reason {
    Reason::Atom { name: name.to_string(), because: because.to_string(), place }
}

impl ByHand {
    /// The instruction named for a value; None if the author names none.
    pub(crate) fn of(&self, value: ValueId) -> Option<Given> {
        self.of.get(&value).map(|own| own.0)
    }

    /// The refusal of an instruction that cannot compute a value.
    pub(crate) fn refused(&self, value: ValueId, because: &str) -> Reason {
        match self.of.get(&value) {
            Some((_, name, place)) => refuse(name, *place, because),
            None => Reason::Unknown { what: "atom of the value", name: format!("{value:?}") },
        }
    }

    /// The first value of the program whose named instruction satisfies `is`.
    pub(crate) fn first(&self, is: impl Fn(Given) -> bool) -> Option<ValueId> {
        self.first_of(is, |_| true)
    }

    /// The first of some values whose named instruction satisfies `is`.
    pub(crate) fn first_of(&self, is: impl Fn(Given) -> bool, one: impl Fn(ValueId) -> bool) -> Option<ValueId> {
        self.of.iter().filter(|(value, own)| is(own.0) && one(**value)).map(|(value, _)| *value).min()
    }
}

impl ByHand {
    /// Refuses a `dot` by wgmma that the named instruction cannot compute.
    pub(crate) fn is_of_groups(
        &self,
        product: ValueId,
        element: Element,
        [m, n, _]: [i64; 3],
        (columns, groups, shared): (i64, i64, bool),
    ) -> Result<(), Reason> {
        let Some((Given::Group(_), name, _)) = self.of.get(&product) else { return Ok(()) };
        if n % columns != 0 {
            return Err(self.refused(product, &format!("{n} columns are no multiple of its {columns}")));
        }
        if n != columns && m != 64 * groups {
            return Err(self.refused(product, "a group of several rows of 64 multiplies all columns at once"));
        }
        if *name != matrix::group_atom(element, columns, shared) {
            let because = match shared {
                true => "the A operand is in shared memory, which is `_SS`",
                false => "the A operand is in registers, which is `_RS`",
            };
            return Err(self.refused(product, because));
        }
        Ok(())
    }
}

/// A program without its `atom` operations, and the instructions that these name.
pub(crate) fn taken(program: &Program) -> Result<(Program, ByHand), Reason> {
    let mut taker = GivenTaker { program, of: HashMap::new(), same: HashMap::new(), found: ByHand::default() };
    let mut own = program.clone();
    own.body = taker.body(&program.body)?;
    Ok((own, taker.found))
}

struct GivenTaker<'p> {
    program: &'p Program,
    /// The operation that computes each value.
    of: HashMap<ValueId, (Operation, Vec<ValueId>)>,
    /// The value that replaces the result of an `atom`.
    same: HashMap<ValueId, ValueId>,
    found: ByHand,
}

impl GivenTaker<'_> {
    fn root(&self, value: ValueId) -> ValueId {
        self.same.get(&value).copied().unwrap_or(value)
    }

    fn roots(&self, values: &[ValueId]) -> Vec<ValueId> {
        values.iter().map(|value| self.root(*value)).collect()
    }

    fn body(&mut self, body: &[Statement]) -> Result<Vec<Statement>, Reason> {
        let mut found = Vec::new();
        for statement in body {
            match statement {
                Statement::Let { result, operation: Operation::Atom(name), operands, place } => {
                    let value = self.root(operands[0]);
                    let given = self.given(value, name, *place)?;
                    if self.found.of.insert(value, (given, name.clone(), *place)).is_some() {
                        return Err(refuse(name, *place, "another atom is named for the same value"));
                    }
                    self.same.insert(*result, value);
                }
                Statement::Let { result, operation, operands, place } => {
                    let operands = self.roots(operands);
                    self.of.insert(*result, (operation.clone(), operands.clone()));
                    let (result, operation, place) = (*result, operation.clone(), *place);
                    found.push(Statement::Let { result, operation, operands, place });
                }
                Statement::Store { tensor, at, rows, with, value, place } => {
                    let rows = rows.iter().map(|(mode, rows)| (*mode, self.root(*rows))).collect();
                    let value = self.root(*value);
                    let (tensor, at, with, place) = (*tensor, at.clone(), *with, *place);
                    found.push(Statement::Store { tensor, at, rows, with, value, place });
                }
                Statement::Loop(own) => {
                    let initial = self.roots(&own.initial);
                    let count = match &own.count {
                        Count::Value(value) => Count::Value(self.root(*value)),
                        other => other.clone(),
                    };
                    let body = self.body(&own.body)?;
                    let next = self.roots(&own.next);
                    found.push(Statement::Loop(Loop { count, initial, body, next, ..own.clone() }));
                }
            }
        }
        Ok(found)
    }

    /// The instruction with this name, for the value that it computes.
    fn given(&self, value: ValueId, name: &str, place: Location) -> Result<Given, Reason> {
        match self.of.get(&value) {
            Some((Operation::Dot, operands)) => self.product(operands, name, place),
            Some((Operation::Load { .. } | Operation::Gather { .. }, _)) => {
                if let Some((_, bits)) = BY_READING.iter().find(|own| own.0 == name) {
                    return Ok(Given::Bits(*bits));
                }
                match (name, self.of.get(&value)) {
                    (BY_THREADS, Some((Operation::Load { .. }, _))) => Ok(Given::Threads),
                    (BY_ENGINE, Some((Operation::Load { .. }, _))) => Ok(Given::Engine),
                    _ => Err(refuse(
                        name,
                        place,
                        "a load is one by `UniversalCopy<uint128_t>` or a narrower one, and what products take \
                         may come by `SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>` or `SM90_TMA_LOAD`",
                    )),
                }
            }
            Some((operation, _)) if !matches!(operation, Operation::Stage { .. }) => {
                Err(refuse(name, place, "only dot and loads have an instruction, and this value is neither"))
            }
            _ => Err(refuse(name, place, "name it where the value is defined: at its dot or its load")),
        }
    }

    fn product(&self, operands: &[ValueId], name: &str, place: Location) -> Result<Given, Reason> {
        let element = self.program.type_of(operands[0]).element;
        if name == matrix::atom(element) {
            return Ok(Given::Warp);
        }
        let columns = (8..=256).step_by(8).find(|columns| {
            [true, false].into_iter().any(|shared| matrix::group_atom(element, *columns, shared) == name)
        });
        if let Some(columns) = columns {
            return Ok(Given::Group(columns));
        }
        let groups = matrix::group_atom(element, "{8,16,..,256}", true);
        let because = format!(
            "operands of {element} are multiplied by `{}`, or by a warpgroup with `{groups}`, which ends in `_RS` where \
             A is in registers",
            matrix::atom(element)
        );
        Err(refuse(name, place, &because))
    }
}

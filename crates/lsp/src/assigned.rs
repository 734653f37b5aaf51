//! The layouts that the passes assign to the values of a program, with their costs.

use std::collections::BTreeMap;

use tilewright_kernel::machine::Machine;
use tilewright_tile::{Compiled, Held, Program, TileError, ValueId};

use crate::position::Text;
use crate::problem::{Problem, problem_of};

/// The largest program whose layouts are assigned as it is typed, in bytes.
const MAX_PROGRAM: usize = 1 << 16;

/// The layouts of the values of a program.
#[derive(Debug, Clone)]
pub struct Assigned {
    layouts: BTreeMap<ValueId, Held>,
    costs: BTreeMap<ValueId, f64>,
    /// The estimated cost of the whole program, in SM cycles per block.
    pub cycles: f64,
    /// The number of warps of a block.
    pub warps: i64,
}

impl Assigned {
    /// Assigns layouts to the values of a program, for one machine or, if that is None, for every
    /// target.
    ///
    /// Errors: a pass refuses the program; the error has the position in the text.
    pub fn of(program: &Program, machine: Option<&Machine>, text: &Text) -> Result<Assigned, Box<Problem>> {
        let refused = |error: TileError| Box::new(problem_of(&error, text));
        Ok(Assigned::new(&program.compile(machine).map_err(refused)?, program))
    }

    /// Whether a program is small enough that its layouts are assigned as it is typed.
    pub(crate) fn is_for(text: &str) -> bool {
        text.len() <= MAX_PROGRAM
    }

    fn new(compiled: &Compiled, program: &Program) -> Assigned {
        let costs = compiled.costs();
        let cycles = costs.values.values().chain(costs.stores.values()).sum();
        let layouts = program.values().filter_map(|value| Some((value, compiled.layout_of(value)?.clone())));
        Assigned { layouts: layouts.collect(), costs: costs.values, cycles, warps: compiled.warps() }
    }

    /// The layout of a value, in the notation.
    pub fn layout(&self, value: ValueId) -> Option<String> {
        self.layouts.get(&value).map(ToString::to_string)
    }

    /// The cost of computing a value and of converting it to other layouts, in SM cycles per block.
    pub fn cost(&self, value: ValueId) -> f64 {
        self.costs.get(&value).copied().unwrap_or(0.0)
    }

    /// The text of an inlay hint: the layout of a value and its cost.
    pub(crate) fn label(&self, value: ValueId) -> Option<String> {
        let layout = self.layout(value)?;
        let cost = self.cost(value);
        Some(if cost < 0.05 { layout } else { format!("{layout} · {} cycles", rounded(cost)) })
    }
}

/// A number of cycles rounded to three significant digits.
pub(crate) fn rounded(cycles: f64) -> String {
    if cycles < 100.0 { format!("{cycles:.1}") } else { format!("{cycles:.0}") }
}

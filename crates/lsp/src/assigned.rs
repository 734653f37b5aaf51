//! The layouts that the passes assign to the values of a program, and what they cost.

use std::collections::BTreeMap;

use tilewright_kernel::machine::Machine;
use tilewright_tile::{Compiled, Held, Program, TileError, ValueId};

use crate::position::Text;
use crate::problem::{Problem, problem_of};

/// The most bytes of a program whose layouts are assigned as it is typed.
const MAX_PROGRAM: usize = 1 << 16;

/// The layouts of a program.
#[derive(Debug, Clone)]
pub struct Assigned {
    layouts: BTreeMap<ValueId, Held>,
    costs: BTreeMap<ValueId, f64>,
    /// Cycles of a multiprocessor per block, all in all.
    pub cycles: f64,
    /// How many warps a block has.
    pub warps: i64,
}

impl Assigned {
    /// Assigns layouts to the values of a program: for a machine, or for every target.
    ///
    /// Errors: what the passes refuse, at its place in the text.
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

    /// What it costs to give a value and to convert it, in cycles of a multiprocessor per block.
    pub fn cost(&self, value: ValueId) -> f64 {
        self.costs.get(&value).copied().unwrap_or(0.0)
    }

    /// The layout of a value and its cost, as they stand beside it.
    pub(crate) fn label(&self, value: ValueId) -> Option<String> {
        let layout = self.layout(value)?;
        let cost = self.cost(value);
        Some(if cost < 0.05 { layout } else { format!("{layout} · {} cycles", rounded(cost)) })
    }
}

/// Cycles to three digits.
pub(crate) fn rounded(cycles: f64) -> String {
    if cycles < 100.0 { format!("{cycles:.1}") } else { format!("{cycles:.0}") }
}

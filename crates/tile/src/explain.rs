//! Why each value has its layout.
//!
//! Law: what is said was computed: the layouts are those of the kernel, the costs those by which
//! the assignment was chosen, and what the next best costs is the cost of the best assignment in
//! which a value has any other of its layouts.

use std::fmt;

use crate::assign::Conversions;
use crate::compile::Compiled;
use crate::error::TileError;
use crate::held::Held;
use crate::program::{Operation, Statement, Type, ValueId};
use tilewright_kernel::Route;

/// A value, its layout, and the next best.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The name in the text of the explanation.
    pub name: String,
    /// What it is.
    pub ty: Type,
    /// The layout that it has.
    pub held: Held,
    /// How many layouts were weighed.
    pub weighed: usize,
    /// The layout that it would have else, and the cycles that the whole would cost then; none
    /// where it had no choice.
    pub next: Option<(Held, f64)>,
}

/// A conversion from one layout to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The value before it.
    pub from: String,
    /// The value behind it.
    pub to: String,
    /// How the threads exchange elements.
    pub route: Route,
    /// About how many instructions of each warp that takes.
    pub instructions: u32,
}

/// What was chosen for a program, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// How many warps a block has that hold tiles.
    pub warps: i64,
    /// What which warps do, line by line, or why all do the same; nothing for machines on which all
    /// do.
    pub roles: Vec<String>,
    /// The program with its conversions, the layout of each value beside it.
    pub program: String,
    /// The values that had a choice, in their order.
    pub choices: Vec<Choice>,
    /// The conversions, in their order.
    pub conversions: Vec<Conversion>,
    /// Cycles of a multiprocessor for the work of a block, by the weights of an H200.
    pub cycles: f64,
    /// What every assignment of these layouts costs at least; the same number where the choice is
    /// shown to be the best.
    pub bound: f64,
}

/// Hundredths of a cycle as cycles.
fn cycles(cost: u64) -> f64 {
    cost as f64 / 100.0
}

impl Compiled {
    /// Why each value has its layout, and what the next best would have cost.
    ///
    /// ```
    /// use tilewright_tile::{LIBRARY, Program};
    ///
    /// let (name, text) = LIBRARY[0];
    /// let explained = Program::read(name, text)?.compile()?.explain()?;
    /// // The best there is, among the layouts that were weighed.
    /// assert_eq!(explained.cycles, explained.bound);
    /// assert!(explained.choices.iter().all(|own| own.next.as_ref().is_none_or(|next| next.1 >= explained.cycles)));
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: a layout is not representable.
    pub fn explain(&self) -> Result<Explanation, TileError> {
        let names = self.placed.program.names();
        let layouts = &self.placed.layouts;
        let held = |value: ValueId| layouts.get(&value).map_or(String::new(), ToString::to_string);
        let program = self
            .placed
            .program
            .with_remarks(&|value| format!("{} by {}", self.placed.program.type_of(value), held(value)));
        let next_best = self.assignment.next_best(&self.pools);
        let mut choices = Vec::new();
        for (value, weighed) in &self.pools.layouts {
            let (Some(name), Some(held)) = (names.get(value), self.assignment.layouts.get(value)) else { continue };
            let next = next_best.get(value).map(|(held, cost)| (held.clone(), cycles(*cost)));
            let ty = self.source.type_of(*value).clone();
            choices.push(Choice { name: name.clone(), ty, held: held.clone(), weighed: weighed.len(), next });
        }
        choices.sort_by_key(|choice| choice.name[1..].parse::<u32>().unwrap_or(0));
        let mut conversions = Vec::new();
        let mut routes = Conversions::new(self.warps);
        self.converted(&self.placed.program.body, &mut |from, to| {
            let (Some(a), Some(b)) = (layouts.get(&from), layouts.get(&to)) else { return Ok(()) };
            let (route, instructions) = routes.route(a, b, self.placed.program.type_of(from).element)?;
            let name = |value: ValueId| names.get(&value).cloned().unwrap_or_default();
            conversions.push(Conversion { from: name(from), to: name(to), route, instructions });
            Ok(())
        })?;
        let (warps, cost, bound) =
            (self.warps, cycles(self.assignment.solution.cost), cycles(self.assignment.solution.bound));
        let roles = match &self.roles {
            None => Vec::new(),
            Some(Ok(roles)) => roles.lines(&self.placed.program),
            Some(Err(because)) => vec![format!("all warps do the same: {because}")],
        };
        Ok(Explanation { warps, roles, program, choices, conversions, cycles: cost, bound })
    }

    fn converted(
        &self,
        body: &[Statement],
        found: &mut impl FnMut(ValueId, ValueId) -> Result<(), crate::error::Reason>,
    ) -> Result<(), TileError> {
        for statement in body {
            match statement {
                Statement::Let { result, operation: Operation::Held(_), operands, .. } => found(operands[0], *result)?,
                Statement::Loop(own) => self.converted(&own.body, found)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        writeln!(f, "\n{} warps of 32 threads; a value `t (m,n) by (threads,values):(..)` is held so", self.warps)?;
        self.roles.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f, "about {:.0} cycles of a multiprocessor a block, by what is counted", self.cycles)?;
        match self.bound == self.cycles {
            true => writeln!(f, "no assignment of the layouts that were weighed costs less")?,
            false => writeln!(f, "the best assignment costs at least {:.0}", self.bound)?,
        }
        writeln!(f, "\nwhat the best costs where a value has another of its layouts:")?;
        for choice in &self.choices {
            match &choice.next {
                Some((held, cost)) => {
                    let more = match *cost > self.cycles {
                        true => format!("{:>6.1} % more", 100.0 * (cost / self.cycles.max(1.0) - 1.0)),
                        false => format!("{:>13}", "as much"),
                    };
                    writeln!(f, "  {:<4} {more} by {held}, of {}", choice.name, choice.weighed)?;
                }
                None => writeln!(f, "  {:<4} {:>13}", choice.name, "no choice")?,
            }
        }
        if self.conversions.is_empty() {
            return writeln!(f, "\nno tile changes its layout");
        }
        writeln!(f, "\nconversions:")?;
        for own in &self.conversions {
            let how = match own.route {
                Route::Registers => "within threads".to_string(),
                Route::Lanes => format!("between lanes, about {} instructions", own.instructions),
                Route::Shared => format!("through shared memory, about {} instructions", own.instructions),
            };
            writeln!(f, "  {} to {}: {how}", own.from, own.to)?;
        }
        Ok(())
    }
}

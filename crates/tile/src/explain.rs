//! Why each value has its layout.
//!
//! Law: every reported number was computed by the compiler. The layouts are those of the kernel.
//! The costs are those by which the assignment was chosen. The cost of the next best layout is that
//! of the best assignment in which the value has any other of its layouts.

mod print;

use std::collections::HashMap;

use crate::assign::{Conversions, CostPart, Next};
use crate::compile::Compiled;
use crate::error::TileError;
use crate::held::Held;
use crate::pools::Origin;
use crate::pressure::{self, Pressure};
use crate::program::statement::{definitions, statements};
use crate::program::{Operation, Statement, Type, ValueId};
use tilewright_kernel::program::Location;
use tilewright_kernel::{Coverage, Route};
use tilewright_layout::Composed;

/// The layout of a value, and the next best one.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The name in the text of the explanation.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The layout that it has.
    pub held: Held,
    /// The origin of this layout: the operation that asked for it, at this value or at a connected
    /// one.
    pub origin: String,
    /// The number of layouts that were compared.
    pub weighed: usize,
    /// The best assignment in which the value has another layout; None if it had no choice.
    pub next: Option<NextBest>,
}

/// The best assignment in which a value has another layout.
#[derive(Debug, Clone, PartialEq)]
pub struct NextBest {
    /// The layout that the value has there.
    pub held: Held,
    /// The cost of the whole program in that assignment, in cycles.
    pub cycles: f64,
    /// A lower bound of the cost of every assignment in which the value has another layout; equal
    /// to the cost if that is proved optimal.
    pub bound: f64,
    /// The differences in cost in that assignment, in cycles; the largest first.
    pub because: Vec<(String, f64)>,
}

/// A tile that is staged in shared memory as an operand of `dot`.
#[derive(Debug, Clone, PartialEq)]
pub struct Staged {
    /// The name of the value in the text of the explanation.
    pub name: String,
    /// The tensor.
    pub tensor: String,
    /// The layout of its rows and columns in one stage, in elements.
    pub layout: Composed,
    /// The bits of an element.
    pub bits: i64,
    /// Whether threads load it to registers. If not, wgmma reads it from shared memory.
    pub is_read: bool,
}

/// A value that occupies registers.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// The name in the text of the explanation.
    pub name: String,
    /// The registers of each thread that it occupies.
    pub registers: i64,
    /// Where the value is defined.
    pub place: Option<Location>,
}

/// A conversion from one layout to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The value that is converted.
    pub from: String,
    /// The result of the conversion.
    pub to: String,
    /// How the threads exchange elements.
    pub route: Route,
    /// The approximate number of instructions of each warp.
    pub instructions: u32,
}

/// The choices for a program, and the reasons: what `tilewright kernel explain` prints.
///
/// ```
/// use tilewright_tile::Program;
///
/// let double: Program = "
/// tile double {
///     input x: f32 (M,256):(256,1)
///     output y: f32 (M,256):(256,1)
///     grid ceil(M/8)
///     store(y, (block.x, 0), load(x, (8,256), (block.x, 0)) * 2)
/// }"
/// .parse()?;
/// let explanation = double.compile(None)?.explain()?;
/// // The layout that the load asked for goes through: nothing is converted.
/// assert!(explanation.conversions.is_empty());
/// assert!(explanation.bound <= explanation.cycles);
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The number of warps of a block that hold tiles.
    pub warps: i64,
    /// The roles of warps, line by line, or the reason why there are none; empty on machines
    /// without roles.
    pub roles: Vec<String>,
    /// The program with its conversions, and the layout of each value beside it.
    pub program: String,
    /// The values that had a choice, in their order.
    pub choices: Vec<Choice>,
    /// The conversions, in their order.
    pub conversions: Vec<Conversion>,
    /// The tiles that are staged in shared memory.
    pub staged: Vec<Staged>,
    /// The statement at which values take the most registers of a thread, estimated from the
    /// program.
    pub widest: Option<Location>,
    /// The values that occupy registers at that statement, the largest first.
    pub taken: Vec<Taken>,
    /// What is assumed about tiles whose coordinates are read from memory.
    pub assumed: Vec<String>,
    /// The estimated cycles of a multiprocessor for one block, by the rates of the machine.
    pub cycles: f64,
    /// A lower bound of the cost of every assignment of these layouts; equal to the cost if the
    /// assignment is proved optimal.
    pub bound: f64,
    /// The coverage of each output, proved when the kernel was built.
    pub outputs: Vec<Coverage>,
}

/// Converts hundredths of a cycle to cycles.
fn cycles(cost: u64) -> f64 {
    cost as f64 / 100.0
}

impl Compiled {
    /// Explains why each value has its layout, and what the next best layout would have cost.
    ///
    /// ```
    /// use tilewright_tile::{LIBRARY, Program};
    ///
    /// let entry = LIBRARY[0];
    /// let explained = Program::read(entry.name, entry.text)?.compile(None)?.explain()?;
    /// // The best there is, among the layouts that were weighed.
    /// assert_eq!(explained.cycles, explained.bound);
    /// assert!(explained.choices.iter().all(|own| own.next.as_ref().is_none_or(|next| next.cycles >= explained.cycles)));
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: a layout is not representable.
    pub fn explain(&self) -> Result<Explanation, TileError> {
        let names = self.placed.program.names();
        let layouts = &self.placed.layouts;
        let held = |value: ValueId| layouts.get(&value).map_or(String::new(), ToString::to_string);
        let tiling = |value: ValueId| self.placed.tilings.get(&value);
        let atom = |value: ValueId| tiling(value).map_or(String::new(), |own| format!(", {}", own.mma.atom().name()));
        let program = self
            .placed
            .program
            .with_remarks(&|value| format!("{} by {}{}", self.placed.program.type_of(value), held(value), atom(value)));
        let next_best = self.assignment.next_best(&self.pools);
        let mut choices = Vec::new();
        for (value, weighed) in &self.pools.layouts {
            let (Some(name), Some(held)) = (names.get(value), self.assignment.layouts.get(value)) else { continue };
            let next = next_best.get(value).map(|next| self.next(next, &names));
            let (ty, origin) = (self.placed.program.type_of(*value).clone(), self.origin(*value, held, &names));
            choices.push(Choice { name: name.clone(), ty, held: held.clone(), origin, weighed: weighed.len(), next });
        }
        choices.sort_by_key(|choice| choice.name[1..].parse::<u32>().unwrap_or(0));
        let mut conversions = Vec::new();
        let mut routes = Conversions::new(self.warps);
        for (to, _, operands) in
            definitions(&self.placed.program.body).filter(|own| matches!(own.1, Operation::Held(_)))
        {
            let from = operands[0];
            let (Some(a), Some(b)) = (layouts.get(&from), layouts.get(&to)) else { continue };
            let (route, instructions) = routes.route(a, b, self.placed.program.type_of(from).element)?;
            let name = |value: ValueId| names.get(&value).cloned().unwrap_or_default();
            conversions.push(Conversion { from: name(from), to: name(to), route, instructions });
        }
        let (warps, cost, bound) =
            (self.warps, cycles(self.assignment.solution.cost), cycles(self.assignment.solution.bound));
        let roles = match &self.roles {
            None => Vec::new(),
            Some(Ok(roles)) => roles.lines(&self.placed.program),
            Some(Err(because)) => vec![format!("all warps do the same: {because}")],
        };
        let staged = self.staged(&names)?;
        let in_shared = |value: ValueId| matches!(&self.roles, Some(Ok(roles)) if roles.of.contains_key(&value));
        let Pressure { place: widest, mut values, .. } = pressure::pressure(&self.placed, in_shared);
        values.sort_by_key(|own| (-own.1, own.0));
        let places = places(&self.placed.program.body);
        let taken = values.into_iter().map(|(value, registers)| {
            let name = names.get(&value).cloned().unwrap_or_default();
            Taken { name, registers, place: places.get(&value).copied() }
        });
        let taken = taken.collect();
        let (outputs, assumed) = (self.kernel.outputs().to_vec(), self.assumed());
        let cycles = cost;
        Ok(Explanation {
            warps,
            roles,
            program,
            choices,
            conversions,
            staged,
            widest,
            taken,
            assumed,
            cycles,
            bound,
            outputs,
        })
    }

    fn next(&self, next: &Next, names: &HashMap<ValueId, String>) -> NextBest {
        let name = |value: &ValueId| names.get(value).map_or("a value", String::as_str);
        let because = next.parts.iter().map(|(part, more)| {
            let what = match part {
                CostPart::Given(value) => name(value).to_string(),
                CostPart::Converted(value) => format!("{} to other layouts", name(value)),
                CostPart::Stored(tensor) => format!("the store to {}", self.tensor(*tensor)),
            };
            (what, *more as f64 / 100.0)
        });
        let (cost, bound) = (cycles(next.cost), cycles(next.bound));
        NextBest { held: next.held.clone(), cycles: cost, bound, because: because.collect() }
    }

    /// The tiles whose coordinates are not known before a launch: each tensor and line once.
    fn assumed(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (number, statement) in &self.pools.assumed {
            let (what, place) = statement;
            let line = format!(
                "the coordinates of {what} {} at line {} are not known: neighbours are assumed to be far apart",
                self.tensor(*number),
                place.line()
            );
            if !found.contains(&line) {
                found.push(line);
            }
        }
        found
    }

    fn tensor(&self, number: usize) -> &str {
        self.source.tensors.get(number).map_or("a tensor", |tensor| tensor.name.as_str())
    }

    fn origin(&self, value: ValueId, held: &Held, names: &HashMap<ValueId, String>) -> String {
        let name = |value: ValueId| names.get(&value).map_or("a value", String::as_str);
        match self.pools.origin(value, held) {
            Origin::Read(tensor) => format!("the load of {}", self.tensor(tensor)),
            Origin::Written(tensor) => format!("the store to {}", self.tensor(tensor)),
            Origin::Product(product) => match self.placed.tilings.get(&product) {
                Some(tiling) => tiling.mma.atom().name().to_string(),
                None => format!("the product {}", name(product)),
            },
            Origin::Author(_) => "the author".to_string(),
            Origin::Value(_) | Origin::Plain => "nothing: one after another".to_string(),
        }
    }

    /// The tiles that are staged in shared memory; the layout is that of one stage.
    fn staged(&self, names: &HashMap<ValueId, String>) -> Result<Vec<Staged>, TileError> {
        let mut found = Vec::new();
        for node in crate::pools::nodes(&self.placed.program) {
            let Statement::Let { result, operation: Operation::Stage { tensor, shape, modes, .. }, .. } =
                node.statement
            else {
                continue;
            };
            let program = &self.placed.program;
            let layout = match &self.roles {
                Some(Ok(_)) => crate::lower::tma_layout(program, *tensor, shape, *modes),
                _ => crate::lower::staged_layout(program, *tensor, shape, *modes),
            };
            let name = names.get(result).cloned().unwrap_or_default();
            let bits = i64::from(program.tensors[*tensor].element.bits());
            let tensor = self.tensor(*tensor).to_string();
            let is_read = !matches!(&self.roles, Some(Ok(_)));
            let layout = layout.map_err(crate::error::Reason::from)?;
            found.push(Staged { name, tensor, layout, bits, is_read });
        }
        Ok(found)
    }
}

/// The location at which each value is defined.
fn places(body: &[Statement]) -> HashMap<ValueId, Location> {
    let mut found = HashMap::new();
    for statement in statements(body) {
        match statement {
            Statement::Let { result, place, .. } => {
                found.insert(*result, *place);
            }
            Statement::Loop(own) => {
                found.extend(own.parameters.iter().chain(&own.results).map(|value| (*value, own.place)));
            }
            Statement::Store { .. } => {}
        }
    }
    found
}

//! Layout assignment: chooses a layout for each value.
//!
//! Law: the cost of an assignment is the cost of its operations in their layouts plus that of the
//! conversions between layouts. Each is counted as often as it is executed; a conversion counts
//! once for a value and a layout, however many operations use it (`demand`). The best assignment is
//! the solution of a [`Network`].

mod conversions;

use std::collections::{BTreeMap, HashMap, HashSet};

pub(crate) use self::conversions::Conversions;
use crate::demand::{self, Demand};
use crate::error::Reason;
use crate::held::Held;
use crate::matrix::Tiling;
use crate::memory::Place;
use crate::network::{NEVER, Network, Solution};
use crate::picked;
use crate::pools::{Node, Pools, forward, is_anywhere, wanted};
use crate::program::{Operation, Program, Statement, ValueId};
use crate::top;
use crate::weights::{self, Weights};

/// Layouts for all values, and what they cost.
pub(crate) struct Assignment {
    pub(crate) layouts: BTreeMap<ValueId, Held>,
    /// The layout in which each store writes its tile, by the number of the statement.
    pub(crate) stores: HashMap<usize, Held>,
    /// The tiling of each `dot`.
    pub(crate) tilings: HashMap<ValueId, Tiling>,
    pub(crate) solution: Solution,
    network: Network,
    variables: HashMap<ValueId, usize>,
    /// The parts of the network.
    parts: Vec<CostPart>,
}

/// A part of what a program costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostPart {
    /// The operation that computes a value.
    Given(ValueId),
    /// The conversions of a value to the layouts in which it is used.
    Converted(ValueId),
    /// A store to a tensor.
    Stored(usize),
}

/// The best assignment in which a value has a layout other than that in the best assignment of all.
pub(crate) struct Next {
    pub(crate) held: Held,
    pub(crate) cost: u64,
    /// A lower bound of the cost of every such assignment.
    pub(crate) bound: u64,
    /// The difference in cost from the best assignment, for each part of the program; the largest
    /// first.
    pub(crate) parts: Vec<(CostPart, i64)>,
}

/// The cost of the parts of a program in the assigned layouts, in cycles of a multiprocessor per
/// block. Their sum is [`crate::Explanation::cycles`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    /// The cost of computing each value, and of its conversions.
    pub values: BTreeMap<ValueId, f64>,
    /// The cost of the stores to each tensor, by its index.
    pub stores: BTreeMap<usize, f64>,
}

impl Assignment {
    /// The cost of each part.
    pub(crate) fn costs(&self) -> Costs {
        let mut costs = Costs::default();
        let shares = self.network.shares(&self.solution.choice);
        for (part, share) in self.parts.iter().zip(shares.iter().skip(1)) {
            let own = match part {
                CostPart::Given(value) | CostPart::Converted(value) => costs.values.entry(*value).or_default(),
                CostPart::Stored(tensor) => costs.stores.entry(*tensor).or_default(),
            };
            *own += *share as f64 / 100.0;
        }
        costs
    }

    /// For each value that had a choice of layouts: the best assignment in which it has another
    /// one.
    pub(crate) fn next_best(&self, pools: &Pools) -> BTreeMap<ValueId, Next> {
        let chosen = |value: &ValueId| self.variables.get(value).copied();
        let own = self.network.shares(&self.solution.choice);
        let next = |(value, layouts): (&ValueId, &Vec<Held>)| {
            let variable = chosen(value).filter(|_| layouts.len() > 1)?;
            let mut other = self.network.clone();
            other.costs(variable, |option| if option == self.solution.choice[variable] { NEVER } else { 0 });
            let found = other.solve();
            // It may be that no operation can use any of the other layouts.
            if found.cost >= NEVER {
                return None;
            }
            let shares = self.network.shares(&found.choice);
            let apart = |(part, more): (&CostPart, (&u64, &u64))| (*part, *more.0 as i64 - *more.1 as i64);
            let mut parts: Vec<(CostPart, i64)> =
                self.parts.iter().zip(shares.iter().zip(&own).skip(1)).map(apart).filter(|own| own.1 != 0).collect();
            parts.sort_by_key(|own| -own.1);
            let (held, cost, bound) = (layouts[found.choice[variable]].clone(), found.cost, found.bound);
            Some((*value, Next { held, cost, bound, parts }))
        };
        pools.layouts.iter().filter_map(next).collect()
    }
}

/// The network of a program: it knows which variable stands for which value or store.
struct Weighing<'p> {
    program: &'p Program,
    pools: &'p Pools,
    /// The costs of device memory and MMA on the machine.
    rates: Weights,
    network: Network,
    variables: HashMap<ValueId, usize>,
    stores: HashMap<usize, usize>,
    /// How often the statement that defines each value is executed.
    weights: HashMap<ValueId, u64>,
    /// The layouts in which operations use each value.
    demands: BTreeMap<ValueId, Vec<Demand>>,
    parts: Vec<CostPart>,
    warps: u64,
    /// Whether `dot` uses wgmma.
    by_groups: bool,
    /// Operands of `dot` that are staged in shared memory, from which threads read them.
    staged: HashSet<ValueId>,
}

/// The number of bits that `is_one` accepts among the bits of the lane, and among those of the
/// warp.
fn counted(held: &Held, is_one: impl Fn(u8) -> bool) -> [u64; 2] {
    let (lanes, across) = held.threads.split_at(held.threads.len().min(5));
    [lanes, across].map(|bits| bits.iter().flatten().filter(|bit| is_one(**bit)).count() as u64)
}

/// The best assignment.
pub(crate) fn assign(
    program: &Program,
    nodes: &[Node<'_>],
    pools: &Pools,
    rates: Weights,
    conversions: &mut Conversions,
) -> Result<Assignment, Reason> {
    let network = Network::default();
    let warps = conversions.warps;
    let (variables, stores) = (HashMap::new(), HashMap::new());
    let by_groups = pools.tilings.values().flatten().any(|tiling| tiling.by_groups);
    let weights = crate::pools::weights(nodes);
    let (demands, parts) = (BTreeMap::new(), Vec::new());
    let by_threads = |node: &Node<'_>| match node.statement {
        Statement::Let { result, operation: Operation::Stage { .. }, .. } if !by_groups => Some(*result),
        _ => None,
    };
    let staged = nodes.iter().filter_map(by_threads).collect();
    let mut costs = Weighing {
        program,
        pools,
        rates,
        network,
        variables,
        stores,
        weights,
        demands,
        parts,
        warps,
        by_groups,
        staged,
    };
    for (value, layouts) in &pools.layouts {
        costs.variables.insert(*value, costs.network.variable(layouts.len()));
    }
    for (number, layouts) in &pools.stores {
        costs.stores.insert(*number, costs.network.variable(layouts.len()));
    }
    for (number, node) in nodes.iter().enumerate() {
        costs.add(number, node, nodes, conversions)?;
    }
    costs.convert(conversions)?;
    let solution = costs.network.solve();
    Ok(costs.assigned(solution))
}

impl Weighing<'_> {
    fn variable(&self, value: ValueId) -> Option<usize> {
        self.variables.get(&self.pools.of(value)).copied()
    }

    fn assigned(self, solution: Solution) -> Assignment {
        let layouts: BTreeMap<ValueId, Held> = self
            .pools
            .layouts
            .iter()
            .map(|(value, layouts)| (*value, layouts[solution.choice[self.variables[value]]].clone()))
            .collect();
        let stores = self
            .stores
            .iter()
            .map(|(number, variable)| (*number, self.pools.stores[number][solution.choice[*variable]].clone()));
        let tilings = self.pools.tilings.iter().filter_map(|(value, tilings)| {
            let held = layouts.get(&self.pools.of(*value))?;
            Some((*value, tilings.iter().find(|tiling| tiling.c == *held)?.clone()))
        });
        let (stores, tilings) = (stores.collect(), tilings.collect());
        let (network, variables, parts) = (self.network, self.variables, self.parts);
        Assignment { layouts, stores, tilings, solution, network, variables, parts }
    }

    /// Assigns the costs that are added from here on to this part of the program.
    fn begin(&mut self, part: CostPart) {
        self.network.begin_part();
        self.parts.push(part);
    }

    /// Adds the cost of converting each value to the layouts in which it is used.
    fn convert(&mut self, conversions: &mut Conversions) -> Result<(), Reason> {
        for (value, demands) in std::mem::take(&mut self.demands) {
            let Some(from) = self.variable(value) else { continue };
            self.begin(CostPart::Converted(value));
            // The conversion is executed as often as the definition of the value.
            let weight = self.weights.get(&value).copied().unwrap_or(1);
            let element = self.program.type_of(value).element;
            let layouts = self.pools.layouts_of(value);
            // Threads read a staged operand directly in the layout of the instruction. They hold it
            // in no other layout.
            let is_staged = self.staged.contains(&value);
            let cost = |held: &Held, want: &Held| match is_staged && held != want {
                true => Ok(NEVER),
                false => Ok(conversions.cost(held, want, element)?.saturating_mul(weight)),
            };
            demand::settle(&mut self.network, (from, layouts), &demands, cost)?;
        }
        Ok(())
    }

    /// The costs of a statement.
    fn add(
        &mut self,
        number: usize,
        node: &Node<'_>,
        nodes: &[Node<'_>],
        conversions: &mut Conversions,
    ) -> Result<(), Reason> {
        match node.statement {
            Statement::Let { result, operation, operands, .. } => {
                self.begin(CostPart::Given(*result));
                self.own(number, node)?;
                for (at, operand) in operands.iter().enumerate() {
                    if !made_anywhere(self.program, nodes, *operand) {
                        self.operand((*result, operation), (at, *operand), node.weight, conversions)?;
                    }
                }
            }
            Statement::Store { tensor, value, rows, .. } => {
                self.begin(CostPart::Stored(*tensor));
                let (place, layouts) = (&self.pools.places[&number], &self.pools.stores[&number]);
                let variable = self.stores[&number];
                // With roles, a store writes a tile in the layout that the tile has: a conversion
                // would take shared memory from the rings.
                let own = match self.by_groups {
                    true => vec![0; layouts.len()],
                    false => access_costs(&self.rates, place, layouts, node.weight)?,
                };
                self.network.costs(variable, |option| own[option]);
                for (_, rows) in rows.iter().filter(|(_, rows)| !made_anywhere(self.program, nodes, *rows)) {
                    let [shape, own] = [*value, *rows].map(|value| &self.program.type_of(value).shape);
                    let want = |held: &Held| Some(picked::coordinates(shape, own, held));
                    let wants: Vec<Option<Held>> = layouts.iter().map(want).collect();
                    self.taken(*rows, (variable, wants));
                }
                self.converted(*value, (variable, layouts));
            }
            Statement::Loop(own) => {
                for ends in [&own.initial, &own.next] {
                    for (value, parameter) in ends.iter().zip(&own.parameters) {
                        let Some(variable) = self.variable(*parameter) else { continue };
                        if !made_anywhere(self.program, nodes, *value) {
                            self.converted(*value, (variable, self.pools.layouts_of(*parameter)));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the cost of an operation that depends on the layout of its result alone.
    fn own(&mut self, number: usize, node: &Node<'_>) -> Result<(), Reason> {
        let Statement::Let { result, operation, operands, .. } = node.statement else { return Ok(()) };
        let (layouts, warps, weight) = (self.pools.layouts_of(*result), self.warps, node.weight);
        let Some(variable) = self.variable(*result) else { return Ok(()) };
        match operation {
            Operation::Load { .. } | Operation::Gather { .. } => {
                let own = access_costs(&self.rates, &self.pools.places[&number], layouts, weight)?;
                self.network.costs(variable, |option| own[option]);
            }
            Operation::Stage { .. } => {
                let place = &self.pools.places[&number];
                let read = place.cost(&place.coalesced(layouts[0].threads.len())[0])?;
                let ty = self.program.type_of(*result);
                let each = i64::from(ty.element.bytes());
                let bytes = (ty.size() * each).unsigned_abs();
                let rates = self.rates;
                let held = |option: usize| (each * layouts[option].values() * layouts[option].threads()).unsigned_abs();
                let cost = |option: usize| rates.staged(&read, bytes, held(option)).saturating_mul(weight);
                self.network.costs(variable, cost);
            }
            Operation::Dot => {
                let shape = |at: usize| &self.program.type_of(operands[at]).shape;
                let depth = crate::matrix::depth(self.program.type_of(operands[0]).element);
                let cost = self.rates.product([shape(0)[0], shape(1)[1], shape(0)[1]], depth);
                let tilings = &self.pools.tilings[result];
                let one = |option: usize| tilings.iter().any(|tiling| tiling.c == layouts[option]);
                self.network.costs(variable, |option| if one(option) { cost.saturating_mul(weight) } else { NEVER });
            }
            Operation::Reshape(_) | Operation::Transpose(_) | Operation::Broadcast(_) | Operation::Held(_) => {}
            // An earlier pass has removed the names of instructions.
            Operation::Atom(_) => {}
            Operation::Reduce(..) | Operation::Scan(..) | Operation::ScanBefore(..) => {}
            Operation::ArgMax(_) | Operation::ArgMin(_) | Operation::Top(..) | Operation::TopPlaces(..) => {}
            Operation::Histogram(_) => {
                let values = |option: usize| layouts[option].values().unsigned_abs();
                self.network.costs(variable, |option| weights::histogram(values(option), warps).saturating_mul(weight));
            }
            _ => {
                // Numbers of 64 bits take two instructions, or have half the throughput.
                let words = (self.program.type_of(*result).element.bits() / 32).max(1);
                let values = |option: usize| layouts[option].values().unsigned_abs() * u64::from(words);
                let cost = |option: usize| weights::elementwise(operation, values(option), warps);
                self.network.costs(variable, |option| cost(option).saturating_mul(weight));
            }
        }
        Ok(())
    }

    /// Adds the cost of the conversion of an operand to the layout that the operation needs.
    fn operand(
        &mut self,
        (result, operation): (ValueId, &Operation),
        (at, operand): (usize, ValueId),
        weight: u64,
        conversions: &mut Conversions,
    ) -> Result<(), Reason> {
        let Some(variable) = self.variable(result) else { return Ok(()) };
        let layouts = self.pools.layouts_of(result);
        match operation {
            Operation::Dot => {
                let tilings = &self.pools.tilings[&result];
                let want = |held: &Held| -> Option<Held> {
                    let tiling = tilings.iter().find(|tiling| tiling.c == *held)?;
                    Some([&tiling.a, &tiling.b, &tiling.c][at].clone())
                };
                let wants: Vec<Option<Held>> = layouts.iter().map(want).collect();
                self.taken(operand, (variable, wants));
                Ok(())
            }
            // A histogram accepts any distribution. The index of a staged tile is known to all
            // threads.
            Operation::Histogram(_) => Ok(()),
            Operation::Stage { modes, picked, .. } if !picked.is_some_and(|mode| modes.contains(&mode)) => Ok(()),
            Operation::Top(mode, count) | Operation::TopPlaces(mode, count) => {
                // If the positions are wanted too, two numbers are compared and moved instead of
                // one.
                let numbers = if matches!(operation, Operation::TopPlaces(..)) { 3 } else { 1 };
                self.searched((result, variable), operand, (*mode, *count), weight * numbers, conversions)
            }
            Operation::Reduce(_, modes) => self.reduced((result, variable), operand, (modes, 1), weight, conversions),
            // A search for a position exchanges two numbers: the value and its position.
            Operation::ArgMax(mode) | Operation::ArgMin(mode) => {
                self.reduced((result, variable), operand, (&[*mode], 4), weight, conversions)
            }
            _ => {
                if let Operation::Scan(_, mode) | Operation::ScanBefore(_, mode) = operation {
                    self.scanned((result, variable), operand, *mode, weight);
                }
                let (from, to) = (&self.program.type_of(operand).shape, &self.program.type_of(result).shape);
                let wants: Vec<Option<Held>> = layouts.iter().map(|held| needed(operation, from, to, held)).collect();
                self.taken(operand, (variable, wants));
                Ok(())
            }
        }
    }

    /// Adds the cost of `top`: a sorting network along a mode, and the conversions of its operand
    /// and of its result.
    fn searched(
        &mut self,
        (result, variable): (ValueId, usize),
        operand: ValueId,
        (mode, greatest): (usize, i64),
        weight: u64,
        conversions: &mut Conversions,
    ) -> Result<(), Reason> {
        let (layouts, ty) = (self.pools.layouts_of(result), self.program.type_of(operand));
        let Some(taken) = self.variable(operand) else { return Ok(()) };
        let mut table = Vec::new();
        for held in self.pools.layouts_of(operand) {
            let network = top::TopNetwork::new(&ty.shape, mode, greatest.trailing_zeros(), held);
            let mut own = weights::instructions(network.instructions(), self.warps);
            own = own.saturating_add(conversions.cost(held, &network.begins, ty.element)?);
            if let Some((before, after)) = &network.moved {
                own = own.saturating_add(conversions.cost(before, after, ty.element)?);
            }
            for to in layouts {
                let last = conversions.cost(&network.result, to, ty.element)?;
                table.push(own.saturating_add(last).saturating_mul(weight));
            }
        }
        let count = layouts.len();
        self.network.both(taken, variable, |from, to| table[from * count + to]);
        Ok(())
    }

    /// Adds the cost of a reduction along modes that combines `count` numbers at a time, and of the
    /// conversion of its result.
    fn reduced(
        &mut self,
        (result, variable): (ValueId, usize),
        operand: ValueId,
        (modes, numbers): (&[usize], u64),
        weight: u64,
        conversions: &mut Conversions,
    ) -> Result<(), Reason> {
        let layouts = self.pools.layouts_of(result);
        let Some(taken) = self.variable(operand) else { return Ok(()) };
        let element = self.program.type_of(result).element;
        let along = crate::held::bits::without(&self.program.type_of(operand).shape, modes);
        let mut table = Vec::new();
        for held in self.pools.layouts_of(operand) {
            let left = held.mapped(|bit| along[usize::from(bit)]);
            let [lanes, across] = counted(held, |bit| along[usize::from(bit)].is_none());
            let values = [held, &left].map(|held| held.values().unsigned_abs());
            let own = weights::reduction(values[0], values[1], lanes, across, self.warps);
            for to in layouts {
                let last = conversions.cost(&left, to, element)?;
                table.push((own * numbers).saturating_add(last).saturating_mul(weight));
            }
        }
        let count = layouts.len();
        self.network.both(taken, variable, |from, to| table[from * count + to]);
        Ok(())
    }

    /// The cost of a scan along a mode in each layout.
    fn scanned(&mut self, (result, variable): (ValueId, usize), operand: ValueId, mode: usize, weight: u64) {
        let (layouts, warps, shape) = (self.pools.layouts_of(result), self.warps, &self.program.type_of(operand).shape);
        let first: u32 = shape[..mode].iter().map(|extent| extent.trailing_zeros()).sum();
        let bits = first..first + shape[mode].trailing_zeros();
        let cost = |held: &Held| {
            let [lanes, across] = counted(held, |bit| bits.contains(&u32::from(bit)));
            let values = held.values().unsigned_abs();
            weights::reduction(2 * values, values, lanes, across, warps)
        };
        self.network.costs(variable, |option| cost(&layouts[option]).saturating_mul(weight));
    }

    /// Demands a value in each layout of a variable.
    fn converted(&mut self, value: ValueId, (variable, layouts): (usize, &[Held])) {
        self.taken(value, (variable, layouts.iter().cloned().map(Some).collect()));
    }

    /// Demands a value in the layout that each option of a variable needs. An option whose layout
    /// is `None` is impossible.
    fn taken(&mut self, value: ValueId, (variable, wants): (usize, Vec<Option<Held>>)) {
        self.demands.entry(value).or_default().push(Demand { variable, wants });
    }
}

/// The cost of a load or a store in each of some layouts.
fn access_costs(rates: &Weights, place: &Place, layouts: &[Held], weight: u64) -> Result<Vec<u64>, Reason> {
    let cost = |held: &Held| Ok(rates.access(&place.cost(held)?).saturating_mul(weight));
    layouts.iter().map(cost).collect()
}

/// Whether a value is recomputed in every layout in which it is used, instead of converted.
pub(crate) fn made_anywhere(program: &Program, nodes: &[Node<'_>], value: ValueId) -> bool {
    nodes.iter().any(|node| match node.statement {
        Statement::Let { result, operation, operands, .. } => {
            *result == value && is_anywhere(program, operation, operands)
        }
        _ => false,
    })
}

/// The layout in which an operation reads an operand, given the layout of its result; None if there
/// is no such layout.
pub(crate) fn needed(operation: &Operation, from: &[i64], to: &[i64], held: &Held) -> Option<Held> {
    match operation {
        Operation::Held(_) => Some(held.clone()),
        _ => wanted(operation, from, to, held),
    }
}

/// The layout of the result of a reduction, given the layout of its operand.
pub(crate) fn left(operation: &Operation, shape: &[i64], held: &Held) -> Option<Held> {
    forward(operation, shape, held)
}

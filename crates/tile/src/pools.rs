//! The layouts that each value may have.
//!
//! Law: layouts originate where an operation asks for one: tensors ask for coalesced lanes, `dot`
//! for the layouts of its instructions, the author for the layouts that the program gives. They are
//! propagated to connected values through operations that map layouts exactly, as bits. A value has
//! at most [`MOST`] of them, the nearest first.

mod seeds;

use std::collections::{BTreeMap, HashMap, HashSet};

use tilewright_kernel::program::Location;
use tilewright_layout::symbolic::Values;

use self::seeds::Seeds;
use crate::by_hand::{ByHand, Given};
use crate::error::{Reason, Taker, TileError};
use crate::held::{Held, bits};
use crate::interpret::coordinates;
use crate::matrix::Tiling;
use crate::memory::{self, Place};
use crate::picked;
use crate::program::{Count, Loop, Operation, Program, Statement, Type, ValueId};
use crate::roles::Roles;
use crate::staged_copy::StagedCopy;
use crate::top::TopNetwork;

/// The most layouts of a value.
pub(crate) const MOST: usize = 12;
/// The most registers of a thread that a value may take.
const REGISTERS: i64 = 240;
/// The assumed number of iterations of a loop whose count is known only at launch.
const TURNS: u64 = 16;

/// The registers of a thread that a value takes, if the thread holds this many elements.
pub(crate) fn registers(values: i64, ty: &Type) -> i64 {
    (values * i64::from(ty.element.bits()) + 31) / 32
}

/// A statement, and how often it is executed.
pub(crate) struct Node<'p> {
    pub(crate) statement: &'p Statement,
    pub(crate) weight: u64,
}

/// All statements, loops before their bodies.
pub(crate) fn nodes(program: &Program) -> Vec<Node<'_>> {
    fn walk<'p>(body: &'p [Statement], weight: u64, found: &mut Vec<Node<'p>>) {
        for statement in body {
            found.push(Node { statement, weight });
            if let Statement::Loop(own) = statement {
                walk(&own.body, weight.saturating_mul(iterations(own)).min(1 << 20), found);
            }
        }
    }
    let mut found = Vec::new();
    walk(&program.body, 1, &mut found);
    found
}

fn iterations(own: &Loop) -> u64 {
    let known = match &own.count {
        Count::Sizes(text) => text.trim().parse::<u64>().ok(),
        Count::Index(index) => index.known().map(|count| count.max(0) as u64),
        Count::Value(_) => None,
    };
    known.unwrap_or(TURNS).max(1)
}

/// How often the definition of each value is executed.
pub(crate) fn weights(nodes: &[Node<'_>]) -> HashMap<ValueId, u64> {
    let mut found = HashMap::new();
    for node in nodes {
        match node.statement {
            Statement::Let { result, .. } => {
                found.insert(*result, node.weight);
            }
            Statement::Loop(own) => {
                let inner = node.weight.saturating_mul(iterations(own)).min(1 << 20);
                found.extend(own.parameters.iter().map(|value| (*value, inner)));
                found.extend(own.results.iter().map(|value| (*value, node.weight)));
            }
            Statement::Store { .. } => {}
        }
    }
    found
}

/// Whether a value is cheaper to recompute in any layout than to convert.
pub(crate) fn is_anywhere(program: &Program, operation: &Operation, operands: &[ValueId]) -> bool {
    match operation {
        Operation::Constant(..) | Operation::Number(_) | Operation::Size(_) | Operation::Arange { .. } => true,
        Operation::Scalar(..) => true,
        Operation::Broadcast(_) => operands.iter().all(|value| program.type_of(*value).shape.is_empty()),
        _ => false,
    }
}

/// The origin of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A tile of a tensor that is loaded or stored, by the number of the tensor.
    Read(usize),
    Written(usize),
    /// The instruction of the `dot` that computes a value.
    Product(ValueId),
    /// The author, who gave this value a layout.
    Author(ValueId),
    /// Another value, from which the layout was propagated through an operation.
    Value(ValueId),
    /// Nothing asked for a layout.
    Plain,
}

/// The candidate layouts of each value.
pub(crate) struct Pools {
    /// The representative of each value. Loop-carried values share one, because they have the same
    /// layout in all iterations.
    alike: HashMap<ValueId, ValueId>,
    pub(crate) layouts: BTreeMap<ValueId, Vec<Held>>,
    /// The origin of each candidate layout, and the layout at that origin.
    origins: HashMap<(ValueId, Held), (Origin, Held)>,
    /// The candidate layouts of each store, by the number of its statement.
    pub(crate) stores: HashMap<usize, Vec<Held>>,
    /// The tilings of each `dot`, by its result.
    pub(crate) tilings: HashMap<ValueId, Vec<Tiling>>,
    /// The accesses whose coordinates are unknown: the tensor, the operation, and the location.
    pub(crate) assumed: Vec<(usize, (&'static str, Location))>,
    /// Where tiles are in memory, by the index of the load or store.
    pub(crate) places: HashMap<usize, Place>,
}

impl Pools {
    pub(crate) fn of(&self, value: ValueId) -> ValueId {
        self.alike.get(&value).copied().unwrap_or(value)
    }

    /// The candidate layouts of a value, shared by all values with the same representative.
    pub(crate) fn layouts_of(&self, value: ValueId) -> &[Held] {
        self.layouts.get(&self.of(value)).map_or(&[], Vec::as_slice)
    }

    /// The first origin of a layout of a value: the operation that asked for it, and the value for
    /// which it asked.
    pub(crate) fn origin(&self, value: ValueId, held: &Held) -> Origin {
        let (mut value, mut held) = (self.of(value), held.clone());
        // A layout is older than those that were propagated from it, so this loop ends.
        for _ in 0..self.origins.len() {
            match self.origins.get(&(value, held.clone())) {
                Some((Origin::Value(from), before)) => (value, held) = (*from, before.clone()),
                Some((origin, _)) => return *origin,
                None => break,
            }
        }
        Origin::Plain
    }

    fn add(&mut self, value: ValueId, held: Held, origin: Origin) -> bool {
        let before = held.clone();
        self.add_from(value, held, (origin, before))
    }

    /// Adds a layout with its origin, and with the layout at that origin.
    fn add_from(&mut self, value: ValueId, held: Held, origin: (Origin, Held)) -> bool {
        let value = self.of(value);
        let own = self.layouts.entry(value).or_default();
        if own.len() >= MOST || own.contains(&held) {
            return false;
        }
        own.push(held.clone());
        self.origins.entry((value, held)).or_insert(origin);
        true
    }

    /// The candidate layouts of a program for this many warps.
    pub(crate) fn new(
        program: &Program,
        nodes: &[Node<'_>],
        (warps, roles): (i64, Option<&Roles>),
        by_hand: &ByHand,
        sizes: &Values,
    ) -> Result<Pools, TileError> {
        let thread_bits = 5 + warps.trailing_zeros() as usize;
        let mut pools = Pools::carried(nodes);
        let statements: Vec<&Statement> = nodes.iter().map(|node| node.statement).collect();
        let coordinates = coordinates::known(program, &statements, sizes, &that_say_coordinates(nodes));
        let given = Seeds { program, warps, roles, by_hand, sizes, coordinates }.all(nodes, &mut pools)?;
        pools.spread_all(program, nodes);
        pools.fill(program, nodes, thread_bits);
        pools.keep_words(program, nodes, thread_bits);
        pools.read_so(program, nodes, by_hand)?;
        pools.let_stores(nodes);
        pools.fit(program, nodes)?;
        pools.keep_operand_layouts(nodes)?;
        // If the author gives a layout, it is the only candidate.
        for (value, held) in given {
            let own = pools.of(value);
            pools.origins.insert((own, held.clone()), (Origin::Author(value), held.clone()));
            pools.layouts.insert(own, vec![held]);
        }
        Ok(pools)
    }

    /// Pools without layouts; only the representatives of values are set.
    fn carried(nodes: &[Node<'_>]) -> Pools {
        let mut alike = HashMap::new();
        for node in nodes {
            if let Statement::Loop(own) = node.statement {
                alike.extend(own.results.iter().copied().zip(own.parameters.iter().copied()));
            }
        }
        Pools {
            alike,
            layouts: BTreeMap::new(),
            origins: HashMap::new(),
            stores: HashMap::new(),
            tilings: HashMap::new(),
            assumed: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Propagates layouts through all operations until no new ones appear.
    fn spread_all(&mut self, program: &Program, nodes: &[Node<'_>]) {
        while nodes.iter().fold(false, |any, node| any | self.spread(program, node)) {}
    }

    /// Gives a layout to values without a candidate: first to operands of broadcasts, then to the
    /// rest.
    fn fill(&mut self, program: &Program, nodes: &[Node<'_>], thread_bits: usize) {
        for node in nodes {
            let Statement::Let { result, .. } = node.statement else { continue };
            if self.layouts_of(*result).is_empty() {
                let bits = program.type_of(*result).bits() as usize;
                self.add(*result, memory::plain(bits, thread_bits), Origin::Plain);
                self.spread_all(program, nodes);
            }
        }
    }

    /// Restricts the layouts of unpacked 4-bit numbers to those in which a thread holds all numbers
    /// of a word.
    fn keep_words(&mut self, program: &Program, nodes: &[Node<'_>], thread_bits: usize) {
        for node in nodes {
            let Statement::Let { result, operation: operation @ Operation::Unpack { .. }, operands, .. } =
                node.statement
            else {
                continue;
            };
            let (from, to) = (&program.type_of(operands[0]).shape, &program.type_of(*result).shape);
            let own = self.of(*result);
            let begins = self.layouts_of(operands[0]).first().and_then(|held| forward(operation, from, held));
            let layouts = self.layouts.entry(own).or_default();
            layouts.retain(|held| wanted(operation, from, to, held).is_some());
            if let (true, Some(begins)) = (layouts.is_empty(), begins) {
                layouts.push(begins);
            }
            // If every layout holds more values than this one, for example because every thread
            // holds all words, add this one: the others may take too many registers.
            let bits = program.type_of(operands[0]).bits() as usize;
            if let Some(parted) = forward(operation, from, &memory::plain(bits, thread_bits))
                && layouts.iter().all(|held| held.values() > parted.values())
            {
                layouts.push(parted);
            }
        }
    }

    /// Lets a store use any layout that its value may have.
    fn let_stores(&mut self, nodes: &[Node<'_>]) {
        for (number, node) in nodes.iter().enumerate() {
            let Statement::Store { value, .. } = node.statement else { continue };
            let own = self.layouts_of(*value).to_vec();
            let stores = self.stores.entry(number).or_default();
            own.into_iter().for_each(|held| {
                if !stores.contains(&held) {
                    stores.push(held);
                }
            });
        }
    }

    /// Restricts staged operands to the layouts of instructions.
    fn keep_operand_layouts(&mut self, nodes: &[Node<'_>]) -> Result<(), Reason> {
        let multiplied: Vec<Held> =
            self.tilings.values().flatten().flat_map(|tiling| [tiling.a.clone(), tiling.b.clone()]).collect();
        for node in nodes {
            let Statement::Let { result, operation: Operation::Stage { .. }, .. } = node.statement else { continue };
            let own = self.layouts.entry(*result).or_default();
            own.retain(|held| multiplied.contains(held));
            if own.is_empty() {
                let because = "a tile staged in shared memory is an operand of dot".to_string();
                return Err(Reason::Held { layout: "stage".to_string(), because });
            }
        }
        Ok(())
    }

    /// Restricts loads whose instruction the author names to layouts with accesses of that width.
    fn read_so(&mut self, program: &Program, nodes: &[Node<'_>], by_hand: &ByHand) -> Result<(), Reason> {
        for (number, node) in nodes.iter().enumerate() {
            let (Statement::Let { result, .. }, Some(place)) = (node.statement, self.places.get(&number)) else {
                continue;
            };
            let Some(Given::Bits(bits)) = by_hand.of(*result) else { continue };
            let own = self.alike.get(result).copied().unwrap_or(*result);
            let layouts = self.layouts.entry(own).or_default();
            let widths = |held: &Held| place.vector(held) * i64::from(place.element.bits());
            let widest = layouts.iter().map(widths).max().unwrap_or(0);
            layouts.retain(|held| widths(held) == bits);
            if layouts.is_empty() {
                let ty = program.type_of(*result);
                let because =
                    format!("no layout of {ty} that was weighed reads {bits} bits at once; up to {widest} are");
                return Err(by_hand.refused(*result, &because));
            }
        }
        Ok(())
    }

    /// Removes layouts that take more registers than a thread has.
    fn fit(&mut self, program: &Program, nodes: &[Node<'_>]) -> Result<(), Reason> {
        let takes = |value: ValueId, held: &Held| registers(held.values(), program.type_of(value));
        let mut least = BTreeMap::new();
        for (value, layouts) in &mut self.layouts {
            let own = layouts.iter().map(|held| takes(*value, held)).min().unwrap_or(0);
            least.insert(*value, own);
            layouts.retain(|held| takes(*value, held) <= REGISTERS);
        }
        let asked = least.values().copied().max().unwrap_or(0);
        if asked <= REGISTERS {
            return Ok(());
        }
        let mut takers: Vec<Taker> = nodes
            .iter()
            .filter_map(|node| {
                let Statement::Let { result, place, .. } = node.statement else { return None };
                let takes = least.get(result).copied()?;
                Some(Taker { what: program.type_of(*result).to_string(), place: *place, takes })
            })
            .collect();
        takers.sort_by_key(|taker| -taker.takes);
        // Operations on one line may take equally much. They are listed once.
        takers.dedup();
        Err(Reason::Room { what: "registers of a thread for one value", asked, limit: REGISTERS, takers })
    }

    /// Propagates layouts between the operands and the result of an operation, both ways. Returns
    /// whether any were new.
    fn spread(&mut self, program: &Program, node: &Node<'_>) -> bool {
        match node.statement {
            Statement::Let { result, operation, operands, .. } => {
                let mut any = false;
                for operand in operands {
                    let shape = program.type_of(*operand).shape.clone();
                    let (there, here) = (self.of(*operand), self.of(*result));
                    for before in self.layouts_of(*operand).to_vec() {
                        if let Some(held) = forward(operation, &shape, &before) {
                            any |= self.add_from(*result, held, (Origin::Value(there), before));
                        }
                    }
                    for before in self.layouts_of(*result).to_vec() {
                        if let Some(held) = wanted(operation, &shape, &program.type_of(*result).shape, &before) {
                            any |= self.add_from(*operand, held, (Origin::Value(here), before));
                        }
                    }
                }
                any
            }
            Statement::Loop(own) => {
                let mut any = false;
                for ends in [&own.initial, &own.next] {
                    for (a, b) in ends.iter().zip(&own.parameters) {
                        for (from, to) in [(*a, *b), (*b, *a)] {
                            for held in self.layouts_of(from).to_vec() {
                                any |= self.add(to, held, Origin::Value(self.of(from)));
                            }
                        }
                    }
                }
                any
            }
            Statement::Store { value, rows, .. } => {
                let (shape, from) = (&program.type_of(*value).shape, self.of(*value));
                let mut any = false;
                for (_, rows) in rows {
                    for before in self.layouts_of(*value).to_vec() {
                        let held = picked::coordinates(shape, &program.type_of(*rows).shape, &before);
                        any |= self.add_from(*rows, held, (Origin::Value(from), before));
                    }
                }
                any
            }
        }
    }
}

/// The values that hold coordinates for gathers and scatters.
fn that_say_coordinates(nodes: &[Node<'_>]) -> HashSet<ValueId> {
    let own = |node: &Node<'_>| match node.statement {
        Statement::Let { operation: Operation::Gather { .. }, operands, .. } => operands.clone(),
        Statement::Store { rows, .. } => rows.iter().map(|(_, rows)| *rows).collect(),
        _ => Vec::new(),
    };
    nodes.iter().flat_map(own).collect()
}

/// The layout of a result that follows from the layout of its operand; None if it does not follow.
pub(crate) fn forward(operation: &Operation, shape: &[i64], held: &Held) -> Option<Held> {
    match operation {
        Operation::Transpose(order) => {
            let to = bits::transposed(shape, order);
            Some(held.mapped(|bit| Some(to[usize::from(bit)])))
        }
        Operation::Reduce(_, modes) => {
            let to = bits::without(shape, modes);
            Some(held.mapped(|bit| to[usize::from(bit)]))
        }
        Operation::ArgMax(mode) | Operation::ArgMin(mode) => {
            let to = bits::without(shape, &[*mode]);
            Some(held.mapped(|bit| to[usize::from(bit)]))
        }
        Operation::Top(mode, count) | Operation::TopPlaces(mode, count) => {
            Some(TopNetwork::new(shape, *mode, count.trailing_zeros(), held).result)
        }
        Operation::Unpack { .. } => {
            let mut found = held.mapped(|bit| Some(bit + 3));
            found.values.splice(0..0, 0..3);
            Some(found)
        }
        Operation::Broadcast(_) | Operation::Dot | Operation::Held(_) => None,
        Operation::Gather { .. } | Operation::Stage { .. } | Operation::Histogram(_) => None,
        _ if shape.is_empty() => None,
        _ => Some(held.clone()),
    }
}

/// The layout in which an operand is wanted, given the layout of the result; None if it does not
/// follow.
pub(crate) fn wanted(operation: &Operation, from: &[i64], to: &[i64], held: &Held) -> Option<Held> {
    match operation {
        Operation::Transpose(order) => {
            let moved = bits::transposed(from, order);
            Some(held.mapped(|bit| moved.iter().position(|own| *own == bit).map(|at| at as u8)))
        }
        Operation::Broadcast(_) => {
            let onto = bits::without(to, &bits::broadcast(from, to));
            Some(held.mapped(|bit| onto[usize::from(bit)]))
        }
        Operation::Gather { shape, .. } => Some(picked::coordinates(shape, from, held)),
        Operation::Stage { shape, modes, picked: Some(mode), .. } => {
            let run = modes.iter().find(|own| *own != mode).filter(|_| modes.contains(mode))?;
            Some(StagedCopy::new(shape[*run], shape[*mode], held.threads()).of_lines(held.threads.len()))
        }
        Operation::Unpack { .. } => {
            // A thread must hold whole words.
            let whole = (0..3).all(|bit| held.values.contains(&bit));
            whole.then(|| held.mapped(|bit| bit.checked_sub(3)))
        }
        own if own.reduces() => None,
        Operation::Histogram(_) | Operation::Dot | Operation::Held(_) | Operation::Stage { .. } => None,
        _ => Some(held.clone()),
    }
}

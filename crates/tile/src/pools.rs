//! The layouts that each value may have.
//!
//! Law: layouts come from where something asks for one: from tensors those whose lanes lie side by
//! side in memory, from products those of the instructions, from the author those that are given.
//! They go from there to the values that hang together with these by operations that take layouts
//! to layouts: exactly, as bits. A value has at most [`MOST`] of them, the nearest first.

use std::collections::{BTreeMap, HashMap};

use tilewright_layout::symbolic::Values;

use crate::error::Reason;
use crate::held::{Held, bits};
use crate::matrix::{self, Tiling};
use crate::memory::{self, Place};
use crate::picked;
use crate::program::{Count, Loop, Operation, Program, Statement, ValueId};
use crate::roles::Roles;
use crate::top::Network;

/// The most layouts of a value.
pub(crate) const MOST: usize = 12;
/// The most registers of a thread that a value may take.
const REGISTERS: i64 = 240;
/// How often a loop is taken to turn whose count is known at launch.
const TURNS: u64 = 16;

/// A statement with how often it is executed.
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
                walk(&own.body, weight.saturating_mul(turns(own)).min(1 << 20), found);
            }
        }
    }
    let mut found = Vec::new();
    walk(&program.body, 1, &mut found);
    found
}

fn turns(own: &Loop) -> u64 {
    let known = match &own.count {
        Count::Sizes(text) => text.trim().parse::<u64>().ok(),
        Count::Index(index) => index.known().map(|count| count.max(0) as u64),
    };
    known.unwrap_or(TURNS).max(1)
}

/// How often each value is given.
pub(crate) fn weights(nodes: &[Node<'_>]) -> HashMap<ValueId, u64> {
    let mut found = HashMap::new();
    for node in nodes {
        match node.statement {
            Statement::Let { result, .. } => {
                found.insert(*result, node.weight);
            }
            Statement::Loop(own) => {
                let inner = node.weight.saturating_mul(turns(own)).min(1 << 20);
                found.extend(own.parameters.iter().map(|value| (*value, inner)));
                found.extend(own.results.iter().map(|value| (*value, node.weight)));
            }
            Statement::Store { .. } => {}
        }
    }
    found
}

/// Whether a value is made anew in any layout more cheaply than it is converted.
pub(crate) fn is_anywhere(program: &Program, operation: &Operation, operands: &[ValueId]) -> bool {
    match operation {
        Operation::Constant(..) | Operation::Number(_) | Operation::Size(_) | Operation::Arange { .. } => true,
        Operation::Broadcast(_) => operands.iter().all(|value| program.type_of(*value).shape.is_empty()),
        _ => false,
    }
}

/// What each value may be held by.
pub(crate) struct Pools {
    /// The value that stands for each: values that a loop carries are held alike in all turns.
    alike: HashMap<ValueId, ValueId>,
    pub(crate) layouts: BTreeMap<ValueId, Vec<Held>>,
    /// The layouts of stores, by the number of their statement.
    pub(crate) stores: HashMap<usize, Vec<Held>>,
    /// The ways of each product, by its result.
    pub(crate) tilings: HashMap<ValueId, Vec<Tiling>>,
    /// Where tiles of tensors lie, by the number of the statement that moves them.
    pub(crate) places: HashMap<usize, Place>,
}

impl Pools {
    pub(crate) fn of(&self, value: ValueId) -> ValueId {
        self.alike.get(&value).copied().unwrap_or(value)
    }

    /// The layouts of a value, and of all that are held alike.
    pub(crate) fn layouts_of(&self, value: ValueId) -> &[Held] {
        self.layouts.get(&self.of(value)).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, value: ValueId, held: Held) -> bool {
        let own = self.layouts.entry(self.of(value)).or_default();
        if own.len() >= MOST || own.contains(&held) {
            return false;
        }
        own.push(held);
        true
    }

    /// The layouts of a program for so many warps.
    pub(crate) fn new(
        program: &Program,
        nodes: &[Node<'_>],
        warps: i64,
        sizes: &Values,
        roles: Option<&Roles>,
    ) -> Result<Pools, Reason> {
        let thread_bits = 5 + warps.trailing_zeros() as usize;
        let mut pools = Pools {
            alike: HashMap::new(),
            layouts: BTreeMap::new(),
            stores: HashMap::new(),
            tilings: HashMap::new(),
            places: HashMap::new(),
        };
        for node in nodes {
            if let Statement::Loop(own) = node.statement {
                for (result, parameter) in own.results.iter().zip(&own.parameters) {
                    pools.alike.insert(*result, *parameter);
                }
            }
        }
        let mut given = BTreeMap::new();
        for (number, node) in nodes.iter().enumerate() {
            pools.seed(program, (number, node), (warps, roles), sizes, &mut given)?;
        }
        let passes =
            |pools: &mut Pools| while nodes.iter().fold(false, |any, node| any | pools.spread(program, node)) {};
        passes(&mut pools);
        // What nothing asks for: broadcasts backwards, then whatever is left.
        for node in nodes {
            let Statement::Let { result, .. } = node.statement else { continue };
            if pools.layouts_of(*result).is_empty() {
                let bits = program.type_of(*result).bits() as usize;
                pools.add(*result, memory::plain(bits, thread_bits));
                passes(&mut pools);
            }
        }
        // Words have their numbers in one thread.
        for node in nodes {
            let Statement::Let { result, operation: operation @ Operation::Unpack { .. }, operands, .. } =
                node.statement
            else {
                continue;
            };
            let (from, to) = (&program.type_of(operands[0]).shape, &program.type_of(*result).shape);
            let own = pools.of(*result);
            let begins = pools.layouts_of(operands[0]).first().and_then(|held| forward(operation, from, held));
            let layouts = pools.layouts.entry(own).or_default();
            layouts.retain(|held| wanted(operation, from, to, held).is_some());
            if let (true, Some(begins)) = (layouts.is_empty(), begins) {
                layouts.push(begins);
            }
        }
        // A store may write in any layout that its value may have.
        for (number, node) in nodes.iter().enumerate() {
            let Statement::Store { value, .. } = node.statement else { continue };
            let own = pools.layouts_of(*value).to_vec();
            let stores = pools.stores.entry(number).or_default();
            own.into_iter().for_each(|held| {
                if !stores.contains(&held) {
                    stores.push(held);
                }
            });
        }
        pools.fit(program)?;
        // Factors have the layouts of instructions.
        let factors: Vec<Held> =
            pools.tilings.values().flatten().flat_map(|tiling| [tiling.a.clone(), tiling.b.clone()]).collect();
        for node in nodes {
            let Statement::Let { result, operation: Operation::Stage { .. }, .. } = node.statement else { continue };
            let own = pools.layouts.entry(*result).or_default();
            own.retain(|held| factors.contains(held));
            if own.is_empty() {
                let because = "a tile by way of shared memory is a factor of a product".to_string();
                return Err(Reason::Held { layout: "stage".to_string(), because });
            }
        }
        // Layouts by hand stand alone.
        for (value, held) in given {
            pools.layouts.insert(pools.of(value), vec![held]);
        }
        Ok(pools)
    }

    /// Leaves out layouts that take more registers than a thread has.
    fn fit(&mut self, program: &Program) -> Result<(), Reason> {
        for (value, layouts) in &mut self.layouts {
            let ty = program.type_of(*value);
            let registers = |held: &Held| (held.values() * i64::from(ty.element.bits()) + 31) / 32;
            let least = layouts.iter().map(registers).min().unwrap_or(0);
            if least > REGISTERS {
                let what = format!("registers a thread for a value of {ty}");
                return Err(Reason::TooMuch { what, asked: least, limit: REGISTERS });
            }
            layouts.retain(|held| registers(held) <= REGISTERS);
        }
        Ok(())
    }

    fn seed(
        &mut self,
        program: &Program,
        (number, node): (usize, &Node<'_>),
        (warps, roles): (i64, Option<&Roles>),
        sizes: &Values,
        given: &mut BTreeMap<ValueId, Held>,
    ) -> Result<(), Reason> {
        let thread_bits = 5 + warps.trailing_zeros() as usize;
        match node.statement {
            Statement::Let { result, operation, operands, .. } => match operation {
                Operation::Load { tensor, shape, .. } => {
                    let place = Place::new(program, *tensor, shape, sizes)?;
                    place.coalesced(thread_bits).into_iter().for_each(|held| {
                        self.add(*result, held);
                    });
                    self.places.insert(number, place);
                }
                Operation::Gather { tensor, shape, mode, .. } => {
                    let place = Place::new(program, *tensor, shape, sizes)?.picked(shape, *mode);
                    place.coalesced(thread_bits).into_iter().for_each(|held| {
                        self.add(*result, held);
                    });
                    self.places.insert(number, place);
                }
                Operation::Stage { tensor, shape, .. } => {
                    self.places.insert(number, Place::new(program, *tensor, shape, sizes)?);
                }
                Operation::Dot => {
                    let shape = |at: usize| &program.type_of(operands[at]).shape;
                    let extents = [shape(0)[0], shape(1)[1], shape(0)[1]];
                    let element = program.type_of(operands[0]).element;
                    let found = match roles {
                        None => matrix::tilings(element, extents, warps)?,
                        Some(roles) => {
                            let brought = |at: usize| {
                                let value = operands[at];
                                let bits = program.type_of(value).bits() as usize;
                                roles.of.contains_key(&value).then(|| memory::plain(bits, thread_bits))
                            };
                            let b = brought(1).unwrap_or_else(|| memory::plain(0, thread_bits));
                            vec![matrix::of_groups(element, extents, roles.groups, brought(0).as_ref(), &b)?]
                        }
                    };
                    if found.is_empty() {
                        let (asked, limit) = (warps, (extents[0] / 16) * (extents[1] / 8));
                        let what = "warps for the instructions of a product".to_string();
                        return Err(Reason::TooMuch { what, asked, limit });
                    }
                    for tiling in &found {
                        self.add(*result, tiling.c.clone());
                        self.add(operands[0], tiling.a.clone());
                        self.add(operands[1], tiling.b.clone());
                    }
                    self.tilings.insert(*result, found);
                }
                Operation::Held(held) => {
                    if held.threads.len() != thread_bits {
                        let because =
                            format!("it is one of {} threads, and a block has {}", held.threads(), 32 * warps);
                        return Err(Reason::Held { layout: held.to_string(), because });
                    }
                    self.add(operands[0], held.clone());
                    given.insert(*result, held.clone());
                }
                _ => {}
            },
            Statement::Store { tensor, value, rows, .. } => {
                let shape = &program.type_of(*value).shape;
                let place = Place::new(program, *tensor, shape, sizes)?;
                let place = rows.map_or(place.clone(), |(mode, _)| place.picked(shape, mode));
                let found = place.coalesced(thread_bits);
                // With roles, tiles leave as they lie.
                if roles.is_none() {
                    found.iter().for_each(|held| {
                        self.add(*value, held.clone());
                    });
                }
                self.stores.insert(number, found);
                self.places.insert(number, place);
            }
            Statement::Loop(_) => {}
        }
        Ok(())
    }

    /// Takes layouts from one end of an operation to the other; whether any were new.
    fn spread(&mut self, program: &Program, node: &Node<'_>) -> bool {
        match node.statement {
            Statement::Let { result, operation, operands, .. } => {
                let mut any = false;
                for operand in operands {
                    let shape = program.type_of(*operand).shape.clone();
                    for held in self.layouts_of(*operand).to_vec() {
                        if let Some(held) = forward(operation, &shape, &held) {
                            any |= self.add(*result, held);
                        }
                    }
                    for held in self.layouts_of(*result).to_vec() {
                        if let Some(held) = wanted(operation, &shape, &program.type_of(*result).shape, &held) {
                            any |= self.add(*operand, held);
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
                                any |= self.add(to, held);
                            }
                        }
                    }
                }
                any
            }
            Statement::Store { value, rows: Some((mode, rows)), .. } => {
                let shape = program.type_of(*value).shape.clone();
                let wanted = self.layouts_of(*value).iter().map(|held| picked::coordinates(&shape, *mode, held));
                wanted.collect::<Vec<_>>().into_iter().fold(false, |any, held| any | self.add(*rows, held))
            }
            Statement::Store { .. } => false,
        }
    }
}

/// The layout of a result where an operand has one, if the operation says it.
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
        Operation::ArgMax(mode) => {
            let to = bits::without(shape, &[*mode]);
            Some(held.mapped(|bit| to[usize::from(bit)]))
        }
        Operation::Top(mode, count) => Some(Network::new(shape, *mode, count.trailing_zeros(), held).result),
        Operation::Unpack { .. } => {
            let mut found = held.mapped(|bit| Some(bit + 3));
            found.values.splice(0..0, 0..3);
            Some(found)
        }
        Operation::Broadcast(_) | Operation::Dot | Operation::Held(_) => None,
        Operation::Gather { .. } | Operation::Histogram(_) => None,
        _ if shape.is_empty() => None,
        _ => Some(held.clone()),
    }
}

/// The layout in which an operand is wanted where the result has one; none where the result says
/// nothing about it.
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
        Operation::Gather { shape, mode, .. } => Some(picked::coordinates(shape, *mode, held)),
        Operation::Unpack { .. } => {
            // A thread has words whole.
            let whole = (0..3).all(|bit| held.values.contains(&bit));
            whole.then(|| held.mapped(|bit| bit.checked_sub(3)))
        }
        Operation::Reduce(..) | Operation::ArgMax(_) | Operation::Top(..) | Operation::Histogram(_) => None,
        Operation::Dot | Operation::Held(_) => None,
        _ => Some(held.clone()),
    }
}

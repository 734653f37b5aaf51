//! Reverses the statements of a program, from the last to the first.
//!
//! Law: when a statement is reversed, the derivative with respect to its result is complete,
//! because every statement that uses the result comes after it and was reversed before. Derivatives
//! are tiles of the shape of their value, of f64 if the value is f64, and of f32 otherwise.

use std::collections::{HashMap, HashSet};

use tilewright_kernel::program::Location;

use super::destination::{Destination, Parts, Way, declare, destination};
use super::edges::Edges;
use super::prepare::{Prepared, depends};
use super::writer::{self, ROOT, ScopeId, Spot, Writer};
use super::{GradientOptions, derivative, wide};
use crate::error::{Reason, TileError};
use crate::loads::read;
use crate::program::statement::statements;
use crate::program::{Binary, Comparison, Index, Loop, Operation, Program, Reduction, Role, Statement, ValueId};

/// How a value of the source program is defined.
#[derive(Clone, Copy)]
pub(super) enum Definition<'p> {
    Let(&'p Operation, &'p [ValueId], Location),
    /// Carried by a loop, at the beginning of an iteration.
    Parameter(&'p Loop, usize),
    /// The result of a loop, after it.
    Result(&'p Loop),
}

/// A value of the source program: its definition, and the loop whose body defines it.
#[derive(Clone, Copy)]
pub(super) struct Known<'p> {
    pub(super) definition: Definition<'p>,
    pub(super) home: Option<u32>,
}

/// A later loop whose loads are reversed in the scope of an earlier loop.
struct Deferred<'p> {
    own: &'p Loop,
    seeds: Vec<Seed>,
}

/// The derivative with respect to a value that a loop carries.
#[derive(Clone, Copy)]
enum Seed {
    /// For a sum: the derivative with respect to the result.
    Sum { number: usize, result: ValueId },
    /// For a minimum or maximum: the derivative with respect to the result, and the share of it
    /// that each iteration with the extreme gets.
    Extreme { number: usize, result: ValueId, share: ValueId },
}

/// A tile of a derivative that is to be stored.
struct Pending {
    tensor: usize,
    at: Vec<Index>,
    rows: Vec<(usize, ValueId)>,
    value: ValueId,
    place: Location,
}

pub(super) struct Reverse<'p> {
    pub(super) source: &'p Program,
    prepared: &'p Prepared,
    pub(super) known: HashMap<ValueId, Known<'p>>,
    /// How often each value is used.
    uses: HashMap<ValueId, usize>,
    /// The values that depend on an input with respect to which the gradient is taken.
    active: HashSet<ValueId>,
    destinations: Vec<(Destination, usize)>,
    /// From the number of each output to the tensor that holds the derivative with respect to it.
    given: HashMap<usize, usize>,
    pub(super) writer: Writer,
    /// Derivatives with respect to values of the source program, by the scope that adds to them.
    derivatives: HashMap<ScopeId, HashMap<ValueId, ValueId>>,
    pending: HashMap<ScopeId, Vec<Pending>>,
    deferred: HashMap<u32, Vec<Deferred<'p>>>,
    /// The loop that is being reversed a second time, for its loads alone.
    again: Option<u32>,
    /// The outputs of the source program that are written too.
    outputs: HashSet<usize>,
    /// The stores of these outputs. They come last, so that no load waits for them.
    stored: Vec<Statement>,
}

/// The numbers of the outputs that are written too.
fn outputs(source: &Program, options: &GradientOptions) -> Result<HashSet<usize>, TileError> {
    let number = |name: &String| {
        let found = source.tensors.iter().position(|tensor| tensor.name == *name && tensor.role == Role::Output);
        let because = || "the program has no output of this name that it does not read".to_string();
        found.ok_or_else(|| Reason::Gradient { of: name.clone(), because: because() }.into())
    };
    options.outputs.iter().map(number).collect()
}

/// The gradient of a program, and the parts that are still to be added.
pub(super) fn reversed(
    prepared: &Prepared,
    of: &[usize],
    options: &GradientOptions,
) -> Result<(Program, Vec<Parts>), TileError> {
    let source = &prepared.program;
    let mut program = Program {
        name: derivative(&source.name),
        tensors: source.tensors.clone(),
        declared: source.declared.clone(),
        types: Vec::new(),
        body: Vec::new(),
        iterations: 0,
        ..source.clone()
    };
    let outputs = outputs(source, options)?;
    for (number, tensor) in program.tensors.iter_mut().enumerate() {
        // No program reads what this program writes.
        tensor.role = if outputs.contains(&number) { Role::Output } else { Role::Input };
    }
    let mut destinations = Vec::new();
    let mut parts = Vec::new();
    let (mut given, mut edges) = (HashMap::new(), Edges::default());
    for (number, tensor) in source.tensors.iter().enumerate() {
        if tensor.role != Role::Input && tensor.element.is_float() {
            let (place, modes) = source.declared[number];
            let declared = (derivative(&tensor.name), tensor.element);
            let layout = (tensor.layout.clone(), modes);
            let own = writer::declare(&mut program, declared, layout, Role::Input, place);
            edges.give(own, &tensor.layout)?;
            given.insert(number, own);
        }
    }
    for tensor in of {
        let Some(own) = destination(source, *tensor, options)? else {
            let (of, because) = (source.tensors[*tensor].name.clone(), "no statement loads it".to_string());
            return Err(Reason::Gradient { of, because }.into());
        };
        let (number, more) = declare(&mut program, source, &own)?;
        destinations.push((own, number));
        parts.extend(more);
    }
    for (number, tensor) in program.tensors.iter().enumerate() {
        if program.tensors[..number].iter().any(|other| other.name == tensor.name) {
            let because = "a tensor of the program has this name".to_string();
            return Err(Reason::Gradient { of: tensor.name.clone(), because }.into());
        }
    }
    let (known, uses) = definitions(source);
    let active = active(source, of);
    let mut reverse = Reverse {
        source,
        prepared,
        known,
        uses,
        active,
        destinations,
        given,
        writer: Writer::new(program, edges),
        derivatives: HashMap::new(),
        pending: HashMap::new(),
        deferred: HashMap::new(),
        again: None,
        outputs,
        stored: Vec::new(),
    };
    reverse.body(&source.body, ROOT)?;
    reverse.stores(ROOT)?;
    let Reverse { mut writer, destinations, stored, .. } = reverse;
    stored.into_iter().for_each(|store| writer.push(ROOT, store));
    let program = writer.finish();
    // If an input does not influence the outputs, there is no derivative to store.
    for (own, _) in &destinations {
        let name = derivative(&source.tensors[own.tensor].name);
        let parts = super::destination::parts_of(&name);
        if program.tensors.iter().all(|tensor| tensor.name != name && tensor.name != parts) {
            let because = "no output of a floating-point type depends on it".to_string();
            return Err(Reason::Gradient { of: source.tensors[own.tensor].name.clone(), because }.into());
        }
    }
    Ok((program, parts))
}

/// Each value with its definition, and how often it is used.
fn definitions(program: &Program) -> (HashMap<ValueId, Known<'_>>, HashMap<ValueId, usize>) {
    fn walk<'p>(body: &'p [Statement], home: Option<u32>, known: &mut HashMap<ValueId, Known<'p>>) {
        for statement in body {
            match statement {
                Statement::Let { result, operation, operands, place } => {
                    known.insert(*result, Known { definition: Definition::Let(operation, operands, *place), home });
                }
                Statement::Store { .. } => {}
                Statement::Loop(own) => {
                    for (number, (parameter, result)) in own.parameters.iter().zip(&own.results).enumerate() {
                        let inside = Definition::Parameter(own, number);
                        known.insert(*parameter, Known { definition: inside, home: Some(own.iteration) });
                        known.insert(*result, Known { definition: Definition::Result(own), home });
                    }
                    walk(&own.body, Some(own.iteration), known);
                }
            }
        }
    }
    let (mut known, mut uses) = (HashMap::new(), HashMap::new());
    walk(&program.body, None, &mut known);
    for value in statements(&program.body).flat_map(Statement::takes) {
        *uses.entry(value).or_insert(0) += 1;
    }
    (known, uses)
}

/// The values that depend on an input through differentiable operations.
///
/// A number that is rounded to an integer has no derivative. The bits of a number (`recast`) are
/// different: a number that is computed from them depends on the input, so its derivative is
/// refused.
fn active(program: &Program, of: &[usize]) -> HashSet<ValueId> {
    let (mut active, mut bits) = (HashSet::new(), HashSet::new());
    // A loop carries dependence from the end of its body to the beginning, so repeat until nothing
    // changes.
    loop {
        let before = active.len() + bits.len();
        for statement in statements(&program.body) {
            match statement {
                Statement::Let { result, operation, operands, .. } => {
                    let any = |set: &HashSet<ValueId>| operands.iter().any(|own| set.contains(own));
                    let loaded = read(operation).is_some_and(|(tensor, _)| of.contains(&tensor));
                    let recast = matches!(operation, Operation::Recast(_));
                    match program.type_of(*result).element.is_float() {
                        true if loaded || any(&active) || (recast && any(&bits)) => active.insert(*result),
                        false if any(&bits) || (recast && any(&active)) => bits.insert(*result),
                        _ => false,
                    };
                }
                Statement::Store { .. } => {}
                Statement::Loop(own) => {
                    for number in 0..own.initial.len() {
                        for set in [&mut active, &mut bits] {
                            if set.contains(&own.initial[number]) || set.contains(&own.next[number]) {
                                set.insert(own.parameters[number]);
                                set.insert(own.results[number]);
                            }
                        }
                    }
                }
            }
        }
        if active.len() + bits.len() == before {
            return active;
        }
    }
}

impl<'p> Reverse<'p> {
    /// The refusal to reverse a statement.
    pub(super) fn refuse(&self, because: impl Into<String>, place: Location) -> TileError {
        let of = self.source.name.clone();
        Reason::Gradient { of, because: because.into() }.at("the gradient", place)
    }

    pub(super) fn is_active(&self, value: ValueId) -> bool {
        self.active.contains(&value)
    }

    /// An index of the source program, in a scope.
    pub(super) fn index(&self, spot: Spot, index: &Index) -> Result<Index, TileError> {
        self.writer
            .index(spot.scope, index)
            .ok_or_else(|| self.refuse(format!("{index} is not known here"), spot.place))
    }

    pub(super) fn indices(&self, spot: Spot, at: &[Index]) -> Result<Vec<Index>, TileError> {
        at.iter().map(|index| self.index(spot, index)).collect()
    }

    /// Adds to the derivative by a value.
    pub(super) fn add(&mut self, value: ValueId, more: ValueId, spot: Spot) -> Result<(), TileError> {
        if !self.is_active(value) {
            return Ok(());
        }
        // Behind a conversion the derivative has the type of the result.
        let more = self.writer.to(spot, more, wide(self.source.type_of(value).element))?;
        let before = self.derivatives.entry(spot.scope).or_default().get(&value).copied();
        let all = match before {
            None => more,
            Some(before) => self.writer.binary(spot, Binary::Add, [before, more])?,
        };
        self.derivatives.entry(spot.scope).or_default().insert(value, all);
        Ok(())
    }

    fn taken(&mut self, value: ValueId, scope: ScopeId) -> Option<ValueId> {
        self.derivatives.get_mut(&scope).and_then(|own| own.remove(&value))
    }

    /// A derivative without the elements that lie past the edge along a mode.
    pub(super) fn inside(&mut self, derivative: ValueId, mode: usize, spot: Spot) -> Result<ValueId, TileError> {
        let writer = &mut self.writer;
        let Some(edge) = writer.edges.of(derivative, mode).cloned() else { return Ok(derivative) };
        let shape = writer.type_of(derivative).shape.clone();
        let first = writer.apply(spot, Operation::Number(edge.at * edge.extent), &[])?;
        let first = writer.broadcast(spot, first, &shape)?;
        let own = writer.apply(spot, Operation::Arange { shape: shape.clone(), mode }, &[])?;
        let own = writer.binary(spot, Binary::Add, [first, own])?;
        let end = writer.apply(spot, Operation::Size(edge.end), &[])?;
        let end = writer.broadcast(spot, end, &shape)?;
        let zero = writer.full_like(spot, derivative, 0.0)?;
        writer.select(spot, (Comparison::Less, [own, end]), [derivative, zero])
    }

    /// Reverses the statements of a body.
    fn body(&mut self, body: &'p [Statement], scope: ScopeId) -> Result<(), TileError> {
        for statement in body.iter().rev() {
            match statement {
                Statement::Let { result, operation, operands, place } => {
                    if let Some(derivative) = self.taken(*result, scope) {
                        let spot = Spot { scope, place: *place };
                        self.reverse((*result, operation, operands), derivative, spot)?;
                    }
                }
                Statement::Store { tensor, at, rows, with, value, place } => {
                    let spot = Spot { scope, place: *place };
                    if self.outputs.contains(tensor) {
                        if scope != ROOT || with.is_some() || !rows.is_empty() {
                            let because =
                                "an output is written too only where blocks store its tiles, outside of loops";
                            return Err(self.refuse(because, *place));
                        }
                        let (at, rows, with) = (self.indices(spot, at)?, Vec::new(), None);
                        let value = self.primal(*value, scope)?;
                        self.stored.push(Statement::Store { tensor: *tensor, at, rows, with, value, place: *place });
                    }
                    if !self.is_active(*value) {
                        continue;
                    }
                    if let Some(Reduction::Product | Reduction::Minimum | Reduction::Maximum) = with {
                        let because = "a derivative of what blocks combine is known for sums alone";
                        return Err(self.refuse(because, *place));
                    }
                    let Some(given) = self.given.get(tensor).copied() else { continue };
                    let shape = self.source.type_of(*value).shape.clone();
                    let at = self.indices(spot, at)?;
                    let (modes, rows): (Vec<usize>, Vec<ValueId>) = rows.iter().copied().unzip();
                    let operation = match modes.is_empty() {
                        true => Operation::Load { tensor: given, shape, at, other: 0.0 },
                        false => Operation::Gather { tensor: given, shape, at, modes: modes.clone(), other: 0.0 },
                    };
                    let rows = self.coordinates(&modes, &rows, scope)?;
                    let rows: Vec<ValueId> = rows.into_iter().map(|(_, rows)| rows).collect();
                    let derivative = self.writer.apply(spot, operation, &rows)?;
                    let element = wide(self.source.type_of(*value).element);
                    let derivative = self.writer.to(spot, derivative, element)?;
                    self.add(*value, derivative, spot)?;
                }
                Statement::Loop(own) => self.reverse_loop(own, scope)?,
            }
        }
        Ok(())
    }

    /// Collects the derivative with respect to a loaded tile.
    pub(super) fn loaded(
        &mut self,
        operation: &Operation,
        derivative: ValueId,
        rows: Vec<(usize, ValueId)>,
        spot: Spot,
    ) -> Result<(), TileError> {
        let Some((tensor, at)) = read(operation) else { return Ok(()) };
        let at = self.indices(spot, at)?;
        let here = self.pending.entry(spot.scope).or_default();
        // Indices count tiles, so equal indices of tiles of other shapes are other elements.
        let shape = |value: ValueId| &self.writer.type_of(value).shape;
        let is_same = |own: &Pending| {
            (own.tensor, &own.at, &own.rows) == (tensor, &at, &rows) && shape(own.value) == shape(derivative)
        };
        match here.iter().position(is_same) {
            None => here.push(Pending { tensor, at, rows, value: derivative, place: spot.place }),
            Some(same) => {
                let before = here[same].value;
                let sum = self.writer.binary(spot, Binary::Add, [before, derivative])?;
                if let Some(own) = self.pending.get_mut(&spot.scope).and_then(|here| here.get_mut(same)) {
                    own.value = sum;
                }
            }
        }
        Ok(())
    }

    /// Stores the derivatives that a scope has collected.
    fn stores(&mut self, scope: ScopeId) -> Result<(), TileError> {
        for Pending { tensor, at, rows, value, place } in self.pending.remove(&scope).unwrap_or_default() {
            let Some((own, number)) = self.destinations.iter().find(|(own, _)| own.tensor == tensor) else { continue };
            let spot = Spot { scope, place };
            let (way, number) = (own.way.clone(), *number);
            let (mut at, mut value, mut with) = (at, value, None);
            match way {
                Way::Own => value = self.writer.to(spot, value, self.source.tensors[tensor].element)?,
                Way::Atomic => with = Some(Reduction::Sum),
                Way::Parts(axes) => {
                    let shape = [vec![1; axes.len()], self.writer.type_of(value).shape.clone()].concat();
                    value = self.writer.reshape(spot, value, &shape)?;
                    at = axes.into_iter().map(Index::block).chain(at).collect();
                }
            }
            self.writer.push(scope, Statement::Store { tensor: number, at, rows, with, value, place });
        }
        Ok(())
    }

    /// For a loop-carried minimum or maximum: the value that each iteration compares with it. None
    /// if the loop-carried value is neither.
    fn compared(&self, own: &'p Loop, number: usize) -> Option<ValueId> {
        let (parameter, next) = (own.parameters[number], own.next[number]);
        let Definition::Let(Operation::Binary(Binary::Minimum | Binary::Maximum), operands, _) =
            self.known.get(&next)?.definition
        else {
            return None;
        };
        let once = |value: &ValueId| self.uses.get(value) == Some(&1);
        match operands {
            [a, b] if *a == parameter && *b != parameter && once(a) && once(&next) => Some(*b),
            [b, a] if *a == parameter && *b != parameter && once(a) && once(&next) => Some(*b),
            _ => None,
        }
    }

    /// 1 where two tiles are equal, elsewhere 0.
    fn equal(&mut self, tiles: [ValueId; 2], spot: Spot) -> Result<ValueId, TileError> {
        let [one, zero] = [1.0, 0.0].map(|value| self.writer.full_like(spot, tiles[0], value));
        let (one, zero) = (one?, zero?);
        self.writer.select(spot, (Comparison::Equal, tiles), [one, zero])
    }

    /// The derivatives with respect to the values that a loop carries.
    fn seeds(&mut self, own: &'p Loop, scope: ScopeId) -> Result<Vec<Seed>, TileError> {
        let spot = Spot { scope, place: own.place };
        let mut seeds = Vec::new();
        for (number, after) in own.results.iter().enumerate() {
            let Some(result) = self.taken(*after, scope) else { continue };
            let Some(compared) = self.compared(own, number) else {
                seeds.push(Seed::Sum { number, result });
                continue;
            };
            // Iterations whose value equals the extreme share the derivative, as equal elements of
            // a tile do in a reduction.
            let (extreme, initial) = (self.primal(*after, scope)?, self.primal(own.initial[number], scope)?);
            let count = self.count(&own.count, spot)?;
            let body = self.writer.open(scope, own.iteration, count);
            let inside = Spot { scope: body, ..spot };
            let one = self.primal(compared, body)?;
            let equal = self.equal([one, extreme], inside)?;
            let equal = self.writer.accumulate(inside, equal)?;
            self.writer.close(inside);
            let before = self.equal([initial, extreme], spot)?;
            let all = self.writer.binary(spot, Binary::Add, [before, equal])?;
            let share = self.writer.binary(spot, Binary::Divide, [result, all])?;
            seeds.push(Seed::Extreme { number, result: extreme, share });
        }
        Ok(seeds)
    }

    /// Reverses the body of a loop in a scope.
    fn iteration(&mut self, own: &'p Loop, seeds: &[Seed], scope: ScopeId) -> Result<(), TileError> {
        let spot = Spot { scope, place: own.place };
        let mut begin: Vec<(ValueId, ValueId)> = Vec::new();
        for seed in seeds {
            match *seed {
                Seed::Sum { number, result } => begin.push((own.next[number], result)),
                Seed::Extreme { number, result, share } => {
                    if let Some(compared) = self.compared(own, number) {
                        let tile = self.primal(compared, scope)?;
                        begin.push((compared, self.shared(tile, (result, share), spot)?));
                    }
                }
            }
        }
        for (value, derivative) in begin {
            self.add(value, derivative, spot)?;
        }
        self.body(&own.body, scope)?;
        // Each summand of a loop-carried sum gets the derivative of the result, unchanged.
        for (number, parameter) in own.parameters.iter().enumerate() {
            let found = self.taken(*parameter, scope);
            let sum = seeds.iter().find_map(|seed| match seed {
                Seed::Sum { number: own, result } if *own == number => Some(*result),
                _ => None,
            });
            if self.is_active(*parameter) && found != sum {
                let because = format!(
                    "the value {} that the loop carries is no sum, minimum or maximum over its iterations",
                    number + 1
                );
                return Err(self.refuse(because, own.place));
            }
        }
        Ok(())
    }

    /// The share of a derivative where a tile equals an extreme, and 0 elsewhere.
    fn shared(
        &mut self,
        tile: ValueId,
        (extreme, share): (ValueId, ValueId),
        spot: Spot,
    ) -> Result<ValueId, TileError> {
        let zero = self.writer.full_like(spot, share, 0.0)?;
        self.writer.select(spot, (Comparison::Equal, [tile, extreme]), [share, zero])
    }

    fn reverse_loop(&mut self, own: &'p Loop, scope: ScopeId) -> Result<(), TileError> {
        let spot = Spot { scope, place: own.place };
        let seeds = self.seeds(own, scope)?;
        let count = self.count(&own.count, spot)?;
        let body = self.writer.open(scope, own.iteration, count);
        self.iteration(own, &seeds, body)?;
        // If an earlier loop loads the same tiles, the loads of this loop are reversed in the
        // reversal of that loop.
        let earlier: HashMap<usize, u32> = self
            .destinations
            .iter()
            .filter_map(|(destination, _)| Some((destination.tensor, *destination.fused.get(&own.iteration)?)))
            .collect();
        match self.again {
            None => {
                if let Some(here) = self.pending.get_mut(&body) {
                    here.retain(|pending| !earlier.contains_key(&pending.tensor));
                }
                let first: HashSet<u32> = earlier.values().copied().collect();
                for first in first {
                    let seeds = seeds.clone();
                    self.deferred.entry(first).or_default().push(Deferred { own, seeds });
                }
            }
            // In this second pass, only the loads of the deferred loop itself are wanted, not those
            // of loops inside it.
            Some(_) => {
                self.pending.remove(&body);
            }
        }
        let outer = self.derivatives.remove(&body).unwrap_or_default();
        for deferred in self.deferred.remove(&own.iteration).unwrap_or_default() {
            self.reverse_again(&deferred, own.iteration, body)?;
        }
        self.stores(body)?;
        self.handed_out(own, outer, (scope, body))?;
        for seed in seeds {
            match seed {
                Seed::Sum { number, result } => self.add(own.initial[number], result, spot)?,
                Seed::Extreme { number, result, share } => {
                    let initial = self.primal(own.initial[number], scope)?;
                    let derivative = self.shared(initial, (result, share), spot)?;
                    self.add(own.initial[number], derivative, spot)?;
                }
            }
        }
        Ok(())
    }

    /// Reverses a later loop a second time, in the scope of the first loop that loads the same
    /// tiles. Only the derivatives with respect to its loads are kept.
    fn reverse_again(&mut self, deferred: &Deferred<'p>, first: u32, body: ScopeId) -> Result<(), TileError> {
        let before = self.again.replace(deferred.own.iteration);
        let kept = self.pending.remove(&body).unwrap_or_default();
        self.writer.stand_for(body, deferred.own.iteration);
        self.iteration(deferred.own, &deferred.seeds, body)?;
        self.derivatives.remove(&body);
        let mut more = self.pending.remove(&body).unwrap_or_default();
        let fused = |own: &Destination| own.fused.get(&deferred.own.iteration) == Some(&first);
        more.retain(|pending| self.destinations.iter().any(|(own, _)| own.tensor == pending.tensor && fused(own)));
        self.pending.insert(body, kept);
        for Pending { tensor, at, rows, value, place } in more {
            let here = self.pending.entry(body).or_default();
            let same = here.iter_mut().find(|own| (own.tensor, &own.at, &own.rows) == (tensor, &at, &rows));
            match same {
                None => here.push(Pending { tensor, at, rows, value, place }),
                Some(own) => {
                    own.value = {
                        let inside = Spot { scope: body, place };
                        self.writer.binary(inside, Binary::Add, [own.value, value])?
                    }
                }
            }
        }
        self.again = before;
        Ok(())
    }

    /// The derivatives with respect to values from outside of a loop: the sum over the iterations.
    fn handed_out(
        &mut self,
        own: &Loop,
        outer: HashMap<ValueId, ValueId>,
        (scope, body): (ScopeId, ScopeId),
    ) -> Result<(), TileError> {
        let [spot, inside] = [scope, body].map(|scope| Spot { scope, place: own.place });
        let mut outer: Vec<(ValueId, ValueId)> = outer.into_iter().collect();
        outer.sort();
        let name = self.writer.iteration(body);
        let mut sums = Vec::new();
        for (value, mut derivative) in outer {
            // If the edge depends on the iteration, the iterations have zeros in different
            // elements. Elements past the edge must be cleared before the sum mixes them.
            for mode in 0..self.source.type_of(value).shape.len() {
                let edge = self.writer.edges.of(derivative, mode);
                if edge.is_some_and(|edge| name.is_some_and(|name| depends(std::slice::from_ref(&edge.at), name))) {
                    derivative = self.inside(derivative, mode, inside)?;
                }
            }
            if let Some(merged) = self.prepared.merged.as_ref().filter(|merged| merged.iteration == own.iteration)
                && let Some(blocks) = &merged.blocks
            {
                // If the blocks are no multiple of the merged blocks, the last iterations stand for
                // blocks that do not exist.
                let at = (Index::block(merged.axis) * merged.together).plus(&Index::iteration(own.iteration));
                let at = self.index(inside, &at)?;
                let shape = self.writer.type_of(derivative).shape.clone();
                let writer = &mut self.writer;
                let number = writer.apply(inside, Operation::Number(at), &[])?;
                let number = writer.broadcast(inside, number, &shape)?;
                let end = writer.apply(inside, Operation::Size(blocks.clone()), &[])?;
                let end = writer.broadcast(inside, end, &shape)?;
                let zero = writer.full_like(inside, derivative, 0.0)?;
                derivative = writer.select(inside, (Comparison::Less, [number, end]), [derivative, zero])?;
            }
            sums.push((value, self.writer.accumulate(inside, derivative)?));
        }
        self.writer.close(inside);
        for (value, sum) in sums {
            self.add(value, sum, spot)?;
        }
        Ok(())
    }
}

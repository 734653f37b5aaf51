//! Writes the gradient as a program with nested scopes.
//!
//! Law: a scope is the body of a loop, or of the program. A statement may also be added to a scope
//! that encloses the one being written. It then comes before the inner loop, because a loop is
//! added to its enclosing scope only when the scope of the loop is closed.

use std::collections::{HashMap, HashSet};

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;
use tilewright_layout::Layout;
use tilewright_layout::symbolic::{Expr, Symbolic};

use super::edges::Edges;
use crate::error::TileError;
use crate::program::statement::statements;
use crate::program::{
    Binary, Comparison, Count, Counter, Index, Loop, Name, Operation, Program, Reduction, Role, Statement, Type, Unary,
    ValueId, infer,
};

/// A scope, by its number.
pub(super) type ScopeId = usize;

/// The scope of the program's body.
pub(super) const ROOT: ScopeId = 0;

/// Where a statement is written: in a scope, for a line of the source program.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) scope: ScopeId,
    pub(super) place: Location,
}

/// A loop-carried value.
struct Carried {
    initial: ValueId,
    parameter: ValueId,
    next: ValueId,
    result: ValueId,
}

/// A body that is being written.
#[derive(Default)]
struct Scope {
    parent: Option<ScopeId>,
    /// The loops of the source program whose iteration corresponds to the iteration of this loop.
    stands_for: Vec<u32>,
    /// The number of this loop and its count; None for the program's body.
    repeated: Option<(u32, Count)>,
    statements: Vec<Statement>,
    carried: Vec<Carried>,
    /// From values of the source program to the values that this scope recomputed.
    known: HashMap<ValueId, ValueId>,
    /// The tiles that were broadcast in this scope.
    broadcast: HashMap<(ValueId, Vec<i64>), ValueId>,
    /// The constant tiles of this scope.
    full: HashMap<(Vec<i64>, Element, u64), ValueId>,
}

pub(super) struct Writer {
    pub(super) program: Program,
    pub(super) edges: Edges,
    scopes: Vec<Scope>,
}

impl Writer {
    pub(super) fn new(program: Program, edges: Edges) -> Writer {
        Writer { program, edges, scopes: vec![Scope::default()] }
    }

    pub(super) fn type_of(&self, value: ValueId) -> &Type {
        self.program.type_of(value)
    }

    /// Opens a loop in a scope. It corresponds to a loop of the source program.
    pub(super) fn open(&mut self, parent: ScopeId, stands_for: u32, count: Count) -> ScopeId {
        let iteration = self.program.iterations;
        self.program.iterations += 1;
        let repeated = Some((iteration, count));
        self.scopes.push(Scope { parent: Some(parent), stands_for: vec![stands_for], repeated, ..Scope::default() });
        self.scopes.len() - 1
    }

    /// Records that the iteration of a scope also corresponds to that of another loop of the source
    /// program.
    pub(super) fn stand_for(&mut self, scope: ScopeId, own: u32) {
        self.scopes[scope].stands_for.push(own);
    }

    /// Adds a loop-carried value to the loop of a scope.
    pub(super) fn parameter(&mut self, scope: ScopeId, initial: ValueId) -> ValueId {
        let ty = self.type_of(initial).clone();
        let parameter = self.program.value(ty.clone());
        let result = self.program.value(ty);
        self.scopes[scope].carried.push(Carried { initial, parameter, next: parameter, result });
        parameter
    }

    /// Sets the next value of a loop-carried value, and returns the value after the loop.
    pub(super) fn hand_on(&mut self, scope: ScopeId, parameter: ValueId, next: ValueId) -> ValueId {
        match self.scopes[scope].carried.iter_mut().find(|own| own.parameter == parameter) {
            Some(own) => {
                own.next = next;
                own.result
            }
            None => next,
        }
    }

    /// The iteration of the loop of a scope; None for the program's body.
    pub(super) fn iteration(&self, scope: ScopeId) -> Option<Name> {
        self.scopes[scope].repeated.as_ref().map(|(iteration, _)| Name::Iteration(*iteration))
    }

    /// Adds to a value over the iterations of a loop, from 0, and returns the sum after the loop.
    pub(super) fn accumulate(&mut self, spot: Spot, value: ValueId) -> Result<ValueId, TileError> {
        let outside = Spot { scope: self.scopes[spot.scope].parent.unwrap_or(ROOT), ..spot };
        let zero = self.full_like(outside, value, 0.0)?;
        let parameter = self.parameter(spot.scope, zero);
        let sum = self.binary(spot, Binary::Add, [parameter, value])?;
        let result = self.hand_on(spot.scope, parameter, sum);
        let iteration = self.iteration(spot.scope);
        self.edges.sum(result, value, |at| at.terms.iter().all(|(name, _)| Some(*name) != iteration));
        Ok(result)
    }

    /// Closes the loop of a scope: it becomes a statement of the scope around.
    pub(super) fn close(&mut self, spot: Spot) {
        let own = std::mem::take(&mut self.scopes[spot.scope]);
        let (Some(parent), Some((iteration, count))) = (own.parent, own.repeated) else { return };
        let each = |of: fn(&Carried) -> ValueId| own.carried.iter().map(of).collect();
        self.scopes[parent].statements.push(Statement::Loop(Loop {
            iteration,
            count,
            initial: each(|own| own.initial),
            parameters: each(|own| own.parameter),
            next: each(|own| own.next),
            results: each(|own| own.result),
            body: own.statements,
            place: spot.place,
        }));
    }

    /// The innermost scope, from this one outwards, whose iteration corresponds to a loop of the
    /// source program. Without a loop, the program's body.
    pub(super) fn scope_of(&self, mut scope: ScopeId, own: Option<u32>) -> Option<ScopeId> {
        let Some(own) = own else { return Some(ROOT) };
        loop {
            let here = &self.scopes[scope];
            if here.stands_for.contains(&own) {
                return Some(scope);
            }
            scope = here.parent?;
        }
    }

    /// Translates an index of the source program to a scope. None if the index names a loop that is
    /// not open.
    pub(super) fn index(&self, scope: ScopeId, index: &Index) -> Option<Index> {
        let name = |name: Name| match name.counter() {
            Counter::Block(_) => Some(name),
            Counter::Iteration(own) => {
                let own = self.scope_of(scope, Some(own))?;
                self.scopes[own].repeated.as_ref().map(|(iteration, _)| name.with(Counter::Iteration(*iteration)))
            }
        };
        let terms = index.terms.iter().map(|(own, by)| Some((name(*own)?, *by))).collect::<Option<Vec<_>>>()?;
        Some(Index { terms, ..index.clone() })
    }

    pub(super) fn known(&self, scope: ScopeId, value: ValueId) -> Option<ValueId> {
        self.scopes[scope].known.get(&value).copied()
    }

    pub(super) fn remember(&mut self, scope: ScopeId, value: ValueId, own: ValueId) {
        self.scopes[scope].known.insert(value, own);
    }

    pub(super) fn push(&mut self, scope: ScopeId, statement: Statement) {
        self.scopes[scope].statements.push(statement);
    }

    /// Adds an operation, and returns its result.
    pub(super) fn apply(
        &mut self,
        spot: Spot,
        operation: Operation,
        operands: &[ValueId],
    ) -> Result<ValueId, TileError> {
        let types: Vec<&Type> = operands.iter().map(|value| self.program.type_of(*value)).collect();
        let ty = infer(&operation, &types, self.program.source(&operation));
        let result = self.program.value(ty.map_err(|reason| reason.at("the gradient", spot.place))?);
        let shape_of = |value: &ValueId| (*value, self.program.type_of(*value).shape.as_slice());
        let shapes: Vec<(ValueId, &[i64])> = operands.iter().map(shape_of).collect();
        self.edges.note(shape_of(&result), &operation, &shapes);
        self.push(spot.scope, Statement::Let { result, operation, operands: operands.to_vec(), place: spot.place });
        Ok(result)
    }

    pub(super) fn binary(&mut self, spot: Spot, binary: Binary, operands: [ValueId; 2]) -> Result<ValueId, TileError> {
        self.apply(spot, Operation::Binary(binary), &operands)
    }

    pub(super) fn unary(&mut self, spot: Spot, unary: Unary, value: ValueId) -> Result<ValueId, TileError> {
        self.apply(spot, Operation::Unary(unary), &[value])
    }

    /// A tile times a number.
    pub(super) fn scaled(&mut self, spot: Spot, value: ValueId, by: f64) -> Result<ValueId, TileError> {
        let by = self.full_like(spot, value, by)?;
        self.binary(spot, Binary::Multiply, [value, by])
    }

    /// A selection: one tile where the comparison is true, another tile elsewhere.
    pub(super) fn select(
        &mut self,
        spot: Spot,
        (comparison, compared): (Comparison, [ValueId; 2]),
        [yes, no]: [ValueId; 2],
    ) -> Result<ValueId, TileError> {
        self.apply(spot, Operation::Select(comparison), &[compared[0], compared[1], yes, no])
    }

    /// A tile of one number of f32.
    pub(super) fn full(&mut self, spot: Spot, shape: &[i64], value: f64) -> Result<ValueId, TileError> {
        self.filled(spot, shape, (Element::F32, value))
    }

    /// A tile of one number, of the shape and the type of another tile.
    pub(super) fn full_like(&mut self, spot: Spot, like: ValueId, value: f64) -> Result<ValueId, TileError> {
        let Type { shape, element } = self.type_of(like).clone();
        self.filled(spot, &shape, (element, value))
    }

    /// A constant tile.
    pub(super) fn filled(
        &mut self,
        spot: Spot,
        shape: &[i64],
        (element, value): (Element, f64),
    ) -> Result<ValueId, TileError> {
        let key = (shape.to_vec(), element, value.to_bits());
        if let Some(known) = self.scopes[spot.scope].full.get(&key) {
            return Ok(*known);
        }
        let number = self.apply(spot, Operation::Constant(element, value), &[])?;
        let tile = self.broadcast(spot, number, shape)?;
        self.scopes[spot.scope].full.insert(key, tile);
        Ok(tile)
    }

    /// A tile broadcast to a shape; itself if it has the shape.
    pub(super) fn broadcast(&mut self, spot: Spot, value: ValueId, shape: &[i64]) -> Result<ValueId, TileError> {
        if self.type_of(value).shape == shape {
            return Ok(value);
        }
        let key = (value, shape.to_vec());
        if let Some(known) = self.scopes[spot.scope].broadcast.get(&key) {
            return Ok(*known);
        }
        let tile = self.apply(spot, Operation::Broadcast(shape.to_vec()), &[value])?;
        self.scopes[spot.scope].broadcast.insert(key, tile);
        Ok(tile)
    }

    /// A tile in another shape; itself if it has the shape.
    pub(super) fn reshape(&mut self, spot: Spot, value: ValueId, shape: &[i64]) -> Result<ValueId, TileError> {
        match self.type_of(value).shape == shape {
            true => Ok(value),
            false => self.apply(spot, Operation::Reshape(shape.to_vec()), &[value]),
        }
    }

    /// A tile in another type; itself if it has the type.
    pub(super) fn to(&mut self, spot: Spot, value: ValueId, element: Element) -> Result<ValueId, TileError> {
        match self.type_of(value).element == element {
            true => Ok(value),
            false => self.apply(spot, Operation::To(element), &[value]),
        }
    }

    /// The sum along modes, which keep one element each; the tile itself if there are none.
    pub(super) fn sum(&mut self, spot: Spot, value: ValueId, modes: &[usize]) -> Result<ValueId, TileError> {
        match modes.is_empty() {
            true => Ok(value),
            false => self.apply(spot, Operation::Reduce(Reduction::Sum, modes.to_vec()), &[value]),
        }
    }

    /// The finished program, without statements that no store needs and tensors that it does not
    /// use.
    pub(super) fn finish(mut self) -> Program {
        let mut body = std::mem::take(&mut self.scopes[ROOT].statements);
        let mut used = HashSet::new();
        needed(&mut body, &mut used);
        let mut tensors = HashSet::new();
        read_or_written(&mut body, &mut |tensor| {
            tensors.insert(*tensor);
        });
        // A tensor that is not used may be the only one that declares a size.
        let mut sizes = HashSet::new();
        self.program.grid.iter().for_each(|text| named_in(text, &mut sizes));
        sizes_of(&body, &mut sizes);
        let layout = |number: usize| {
            let mut names = HashSet::new();
            named_in_layout(&self.program.tensors[number].layout, &mut names);
            names
        };
        let mut known: HashSet<String> = tensors.iter().flat_map(|own| layout(*own)).collect();
        for number in 0..self.program.tensors.len() {
            let names = layout(number);
            if self.program.tensors[number].role == Role::Input
                && names.iter().any(|name| sizes.contains(name) && !known.contains(name))
            {
                known.extend(names);
                tensors.insert(number);
            }
        }
        let kept: Vec<usize> = (0..self.program.tensors.len()).filter(|own| tensors.contains(own)).collect();
        read_or_written(&mut body, &mut |tensor| {
            *tensor = kept.iter().position(|own| own == tensor).unwrap_or(0);
        });
        self.program.tensors = kept.iter().map(|own| self.program.tensors[*own].clone()).collect();
        self.program.declared = kept.iter().map(|own| self.program.declared[*own]).collect();
        self.program.body = body;
        self.program
    }
}

/// Keeps the statements of a body that stores need, and adds the values that they use.
fn needed(body: &mut Vec<Statement>, used: &mut HashSet<ValueId>) {
    let mut kept = Vec::new();
    for mut statement in std::mem::take(body).into_iter().rev() {
        match &mut statement {
            Statement::Let { result, .. } if !used.contains(result) => continue,
            Statement::Let { .. } | Statement::Store { .. } => used.extend(statement.takes()),
            Statement::Loop(own) => {
                // A loop-carried value is needed if its result is needed, or if the body needs it.
                let mut alive: Vec<bool> = own.results.iter().map(|result| used.contains(result)).collect();
                let all = own.body.clone();
                loop {
                    let mut inside = used.clone();
                    inside.extend(own.next.iter().zip(&alive).filter(|(_, alive)| **alive).map(|(next, _)| *next));
                    own.body = all.clone();
                    needed(&mut own.body, &mut inside);
                    let more: Vec<bool> =
                        own.parameters.iter().zip(&alive).map(|(own, alive)| *alive || inside.contains(own)).collect();
                    if more == alive {
                        *used = inside;
                        break;
                    }
                    alive = more;
                }
                if own.body.is_empty() && !alive.contains(&true) {
                    continue;
                }
                let only = |all: &mut Vec<ValueId>| {
                    let mut alive = alive.iter();
                    all.retain(|_| alive.next().copied().unwrap_or(false));
                };
                [&mut own.initial, &mut own.parameters, &mut own.next, &mut own.results].into_iter().for_each(only);
                used.extend(own.initial.iter().copied());
                used.extend(own.count.value());
            }
        }
        kept.push(statement);
    }
    kept.reverse();
    *body = kept;
}

/// Adds the sizes that an expression names. A text that is no expression adds none; it is refused
/// where it is used.
fn named_in(text: &str, names: &mut HashSet<String>) {
    if let Ok(expr) = text.parse::<Expr>() {
        names.extend(expr.parameters().iter().filter_map(|own| own.name().map(str::to_string)));
    }
}

/// The sizes that a layout names.
fn named_in_layout(text: &str, names: &mut HashSet<String>) {
    if let Ok(layout) = text.parse::<Layout<Expr>>() {
        names.extend(layout.parameters().iter().filter_map(|own| own.name().map(str::to_string)));
    }
}

/// The sizes that the statements of a body name.
fn sizes_of(body: &[Statement], names: &mut HashSet<String>) {
    for statement in statements(body) {
        match statement {
            Statement::Let { operation: Operation::Size(text), .. } => named_in(text, names),
            Statement::Loop(Loop { count: Count::Sizes(text), .. }) => named_in(text, names),
            _ => {}
        }
    }
}

/// Visits the number of each tensor that a body reads or writes.
fn read_or_written(body: &mut [Statement], visit: &mut dyn FnMut(&mut usize)) {
    for statement in body {
        match statement {
            Statement::Let { operation, .. } => match operation {
                Operation::Load { tensor, .. } | Operation::Stage { tensor, .. } | Operation::Gather { tensor, .. } => {
                    visit(tensor)
                }
                _ => {}
            },
            Statement::Store { tensor, .. } => visit(tensor),
            Statement::Loop(own) => read_or_written(&mut own.body, visit),
        }
    }
}

/// Declares a tensor of a program.
pub(super) fn declare(
    program: &mut Program,
    (name, element): (String, Element),
    (layout, modes): (String, usize),
    role: Role,
    place: Location,
) -> usize {
    program.tensors.push(crate::program::Tensor { name, element, layout, role });
    program.declared.push((place, modes));
    program.tensors.len() - 1
}

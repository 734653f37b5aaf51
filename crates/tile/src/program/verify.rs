//! Verifies that a program is well-formed.
//!
//! Law: each value is defined once, is used only after its definition and inside the body that
//! defines it, and has the type that its operation gives. The verifier detects a pass that breaks a
//! program.

use std::collections::HashSet;

use tilewright_kernel::program::Location;

use tilewright_kernel::Element;
use tilewright_layout::symbolic::{Expr, Parameter, Symbolic};
use tilewright_layout::{Layout, LayoutError};

use super::infer::{are_coordinates, is_count, is_tile_of};
use super::statement::statements;
use super::{
    Count, Counter, Index, Operation, Program, Reduction, Role, Statement, Type, ValueId, are_multiplied, infer,
};
use crate::error::{Reason, TileError};

struct Verifier<'p> {
    program: &'p Program,
    /// The sizes that tensors declare.
    sizes: Vec<String>,
    known: HashSet<ValueId>,
    /// In a loop, the values that a copy for a later iteration may use: values from before the
    /// loop, and values computed from them and from the index of the iteration.
    ahead: Option<HashSet<ValueId>>,
    iterations: HashSet<u32>,
    /// The values whose elements are numbers of tf32.
    rounded: HashSet<ValueId>,
}

impl Program {
    /// Verifies that every value is defined once, before it is used, and has the type of its
    /// operation, and that every output is stored to.
    ///
    /// Errors: the first statement that breaks a rule, with its line.
    pub fn verify(&self) -> Result<(), TileError> {
        let mut sizes = Vec::new();
        for (tensor, (place, _)) in self.tensors.iter().zip(&self.declared) {
            let layout: Layout<Expr> =
                tensor.layout.parse().map_err(|error: LayoutError| Reason::from(error).at("tensor", *place))?;
            for name in layout.parameters().iter().filter_map(Parameter::name) {
                if sizes.iter().all(|own| own != name) {
                    sizes.push(name.to_string());
                }
            }
        }
        let (known, iterations) = (HashSet::new(), HashSet::new());
        let rounded = HashSet::new();
        let mut verifier = Verifier { program: self, sizes, known, ahead: None, iterations, rounded };
        if let Some(place) = self.grid_place {
            let each = self.grid.iter().try_for_each(|text| verifier.sizes("a number of blocks", text));
            each.map_err(|reason| reason.at("grid", place))?;
        }
        verifier.body(&self.body)?;
        // Refuses an output that is never written.
        for (number, (tensor, (place, _))) in self.tensors.iter().zip(&self.declared).enumerate() {
            let is_to = |own: &Statement| matches!(own, Statement::Store { tensor, .. } if *tensor == number);
            if tensor.role == Role::Output && !statements(&self.body).any(is_to) {
                let tried = "left unwritten: no statement stores to it";
                return Err(Reason::Role { tensor: tensor.name.clone(), tried }.at("output", *place));
            }
        }
        Ok(())
    }
}

impl Verifier<'_> {
    fn gives(&mut self, value: ValueId, ty: &Type) -> Result<(), Reason> {
        if self.program.types.get(value.index()) != Some(ty) || !self.known.insert(value) {
            return Err(Reason::Unknown { what: "single value", name: format!("{value:?}") });
        }
        Ok(())
    }

    fn uses(&self, value: ValueId) -> Result<&Type, Reason> {
        match self.program.types.get(value.index()) {
            Some(ty) if self.known.contains(&value) => Ok(ty),
            _ => Err(Reason::Unknown { what: "value", name: format!("{value:?}") }),
        }
    }

    /// Refuses an expression of a size that no tensor declares, because a launch does not know it.
    fn sizes(&self, what: &'static str, text: &str) -> Result<(), Reason> {
        let refused = |error| Reason::Expression { what, text: text.to_string(), error };
        let expr: Expr = text.parse().map_err(refused)?;
        let unknown = |own: &Parameter| own.name().is_none_or(|name| self.sizes.iter().all(|size| size != name));
        match expr.parameters().iter().find(|own| unknown(own)) {
            Some(own) => Err(Reason::Size { name: own.to_string(), known: self.sizes.clone() }),
            None => Ok(()),
        }
    }

    fn index(&self, index: &Index) -> Result<(), Reason> {
        if index.overflows {
            return Err(Reason::Index { index: index.to_string() });
        }
        let axis = index.terms.iter().find_map(|(name, _)| match name.counter() {
            Counter::Block(axis) => Some(axis),
            Counter::Iteration(_) => None,
        });
        if let (true, Some(axis)) = (self.program.grid.is_empty(), axis) {
            return Err(Reason::NoGrid { axis });
        }
        let open = index.terms.iter().find(|(name, _)| match name.counter() {
            Counter::Iteration(iteration) => !self.iterations.contains(&iteration),
            Counter::Block(_) => false,
        });
        match open {
            Some((name, _)) => Err(Reason::Unknown { what: "loop", name: name.to_string() }),
            None => Ok(()),
        }
    }

    fn is_tile(&self, tensor: usize, at: &[Index]) -> Result<(), Reason> {
        at.iter().try_for_each(|index| self.index(index))?;
        match self.program.tensors.get(tensor) {
            Some(_) => Ok(()),
            None => Err(Reason::Unknown { what: "tensor", name: tensor.to_string() }),
        }
    }

    fn given(&mut self, result: ValueId, operation: &Operation, operands: &[ValueId]) -> Result<(), Reason> {
        match operation {
            Operation::Load { tensor, at, .. }
            | Operation::Stage { tensor, at, .. }
            | Operation::Gather { tensor, at, .. } => self.is_tile(*tensor, at)?,
            Operation::Number(index) => self.index(index)?,
            Operation::Scalar(name, element) => {
                let known = self.program.scalars.iter().any(|own| own.name == *name && own.element == *element);
                if !known {
                    return Err(Reason::Unknown { what: "number of the launch", name: name.clone() });
                }
            }
            Operation::Size(text) => self.sizes("an expression of sizes", text)?,
            _ => {}
        }
        if let (Operation::Stage { tensor, modes, picked: Some(mode), .. }, [place]) = (operation, operands) {
            if self.ahead.as_ref().is_some_and(|ahead| !ahead.contains(place)) {
                let because = "copies run ahead of their iterations, so what says the tile is computed from values \
                               that are known before the loop";
                return Err(Reason::Held { layout: "stage".to_string(), because: because.to_string() });
            }
            if modes.contains(mode) && self.program.is_contiguous(*tensor, *mode) {
                let because = "a tile says which rows are copied, and the elements of a row are contiguous";
                return Err(Reason::Held { layout: "stage".to_string(), because: because.to_string() });
            }
        }
        let types = operands.iter().map(|value| self.uses(*value)).collect::<Result<Vec<_>, _>>()?;
        are_multiplied(operation, operands, &types, &self.rounded)?;
        let ty = infer(operation, &types, self.program.source(operation))?;
        if operation.is_tf32(operands, &self.rounded) {
            self.rounded.insert(result);
        }
        self.gives(result, &ty)
    }

    fn body(&mut self, body: &[Statement]) -> Result<(), TileError> {
        let mut stores = Vec::new();
        for statement in body {
            match statement {
                Statement::Let { result, operation, operands, place } => {
                    self.given(*result, operation, operands).map_err(|reason| reason.at("value", *place))?;
                }
                Statement::Store { tensor, at, rows, with, value, place } => {
                    let refuse = |reason: Reason| reason.at("store", *place);
                    self.is_tile(*tensor, at).map_err(refuse)?;
                    let ty = self.uses(*value).map_err(refuse)?;
                    let types = rows.iter().map(|(mode, rows)| Ok::<_, Reason>((*mode, self.uses(*rows)?)));
                    let types = types.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
                    can_store(self.program, *tensor, at, &types, *with, ty).map_err(refuse)?;
                    if rows.is_empty() {
                        let program = self.program;
                        let own = (*tensor, at.as_slice(), program.type_of(*value).shape.as_slice(), *with);
                        is_first(program, &mut stores, own).map_err(refuse)?;
                    }
                }
                Statement::Loop(own) => self.iterations(own)?,
            }
        }
        Ok(())
    }

    fn iterations(&mut self, own: &super::Loop) -> Result<(), TileError> {
        let refuse = |reason: Reason| reason.at("loop", own.place);
        match &own.count {
            Count::Sizes(text) => self.sizes("a number of iterations", text).map_err(refuse)?,
            Count::Index(index) => self.index(index).map_err(refuse)?,
            Count::Value(value) => is_count(self.uses(*value).map_err(refuse)?).map_err(refuse)?,
        }
        let types = own.initial.iter().map(|value| self.uses(*value).cloned()).collect::<Result<Vec<_>, _>>();
        let types = types.map_err(refuse)?;
        let around = self.known.clone();
        let ahead = self.ahead.replace(around.clone());
        self.iterations.insert(own.iteration);
        let both = [own.parameters.len(), own.results.len(), own.next.len()];
        if both.iter().any(|count| *count != types.len()) {
            return Err(refuse(Reason::Iterations { begins: types.len(), hands_on: own.next.len() }));
        }
        for (parameter, ty) in own.parameters.iter().zip(&types) {
            self.gives(*parameter, ty).map_err(refuse)?;
        }
        self.body(&own.body)?;
        hands_on(self.program, own, |value| self.uses(value).cloned()).map_err(refuse)?;
        self.known = around;
        self.ahead = ahead;
        self.iterations.remove(&own.iteration);
        for (result, ty) in own.results.iter().zip(&types) {
            self.gives(*result, ty).map_err(refuse)?;
        }
        Ok(())
    }
}

/// A store of a whole tile: the tensor, the index and shape of the tile, and the reduction of an
/// atomic store.
type Stored<'p> = (usize, &'p [Index], &'p [i64], Option<Reduction>);

/// Refuses a store to a tile if an earlier statement of the same body stores to it, unless both
/// combine by the same reduction. Stores in other bodies, and of tiles of other shapes, are checked
/// by the kernel language and by the interpreters.
fn is_first<'p>(program: &Program, stores: &mut Vec<Stored<'p>>, own: Stored<'p>) -> Result<(), Reason> {
    let (tensor, at, shape, with) = own;
    let same = |(before, other): (&Index, &Index)| {
        (before.by_element, before.length) == (other.by_element, other.length)
            && before.clone().plus(&(other.clone() * -1)).known() == Some(0)
    };
    let again = stores.iter().any(|before| {
        (before.0, before.2) == (tensor, shape)
            && before.1.iter().zip(at).all(same)
            && (with.is_none() || before.3 != with)
    });
    stores.push(own);
    match again {
        true => Err(Reason::StoredTwice { tensor: program.tensors[tensor].name.clone() }),
        false => Ok(()),
    }
}

fn hands_on(
    program: &Program,
    own: &super::Loop,
    uses: impl Fn(ValueId) -> Result<Type, Reason>,
) -> Result<(), Reason> {
    for (number, (parameter, next)) in own.parameters.iter().zip(&own.next).enumerate() {
        is_handed_on(number, program.type_of(*parameter), &uses(*next)?)?;
    }
    Ok(())
}

/// Refuses a loop-carried value whose next value has another type.
pub(crate) fn is_handed_on(number: usize, begins: &Type, hands_on: &Type) -> Result<(), Reason> {
    if begins == hands_on {
        return Ok(());
    }
    Err(Reason::Iteration { number, begins: begins.to_string(), hands_on: hands_on.to_string() })
}

/// Refuses a value that cannot be stored to a tensor.
pub(crate) fn can_store(
    program: &Program,
    tensor: usize,
    at: &[Index],
    rows: &[(usize, &Type)],
    with: Option<Reduction>,
    ty: &Type,
) -> Result<(), Reason> {
    let (Some(tensor), Some((_, modes))) = (program.tensors.get(tensor), program.declared.get(tensor)) else {
        return Err(Reason::Unknown { what: "tensor", name: tensor.to_string() });
    };
    let tried = match tensor.role {
        Role::Input => Some("written"),
        Role::Output if with.is_some() => Some("combined: it is nothing before"),
        Role::Output if !rows.is_empty() => {
            Some("partially written: other rows keep their values, so it must be an `inout`")
        }
        _ => None,
    };
    if let Some(tried) = tried {
        return Err(Reason::Role { tensor: tensor.name.clone(), tried });
    }
    match (with, ty.element) {
        (Some(Reduction::Product), element) => {
            let operation = "an indivisible product".to_string();
            return Err(Reason::Element { operation, element, wanted: "a sum, a minimum or a maximum" });
        }
        (Some(Reduction::Minimum | Reduction::Maximum), Element::I32 | Element::I64)
        | (Some(Reduction::Sum), Element::I32 | Element::F32 | Element::I64 | Element::F64)
        | (Some(Reduction::Sum), Element::F16 | Element::Bf16)
        | (None, _) => {}
        (Some(Reduction::Sum), element) => {
            let (operation, wanted) = ("an indivisible sum".to_string(), "f32, f16, bf16, f64, i32 or i64");
            return Err(Reason::Element { operation, element, wanted });
        }
        (Some(_), element) => {
            let (operation, wanted) = ("an indivisible choice".to_string(), "i32 or i64");
            return Err(Reason::Element { operation, element, wanted });
        }
    }
    if tensor.element != ty.element {
        let operation = format!("a store to {}, which has {},", tensor.name, tensor.element);
        return Err(Reason::Element { operation, element: ty.element, wanted: "the same type" });
    }
    is_tile_of(&ty.shape, at.len(), (&tensor.name, *modes))?;
    match rows.is_empty() {
        true => Ok(()),
        false => are_coordinates(&ty.shape, rows, at),
    }
}

/// A location without a line.
#[track_caller]
pub(crate) fn here() -> Location {
    let own = std::panic::Location::caller();
    Location::new(own.file(), own.line(), own.column(), None)
}

//! The types of the results of operations.
//!
//! Law: the type of a result follows from the operation and the types of its operands; if there is
//! none, the operation is refused. Builder, reader, verifier and passes use this.

use std::collections::HashSet;

use tilewright_kernel::Element;
use tilewright_layout::atoms::{BulkCopy, CopyAtom, MmaAtom};

use super::{Index, MAX_ELEMENTS, MAX_RANK, Operation, Program, Type, Unary, ValueId, padded};
use crate::error::Reason;

/// The tensor of a load.
#[derive(Clone, Copy)]
pub(crate) struct Source<'p> {
    name: &'p str,
    element: Element,
    modes: usize,
}

impl Program {
    /// The tensor that an operation loads from. None if it loads from none, or if the program has
    /// no such tensor.
    pub(crate) fn source(&self, operation: &Operation) -> Option<Source<'_>> {
        let (Operation::Load { tensor, .. } | Operation::Stage { tensor, .. } | Operation::Gather { tensor, .. }) =
            operation
        else {
            return None;
        };
        let (own, (_, modes)) = (self.tensors.get(*tensor)?, self.declared.get(*tensor)?);
        Some(Source { name: &own.name, element: own.element, modes: *modes })
    }
}

/// Refuses an invalid shape of a tile.
pub(crate) fn is_shape(what: &str, shape: &[i64]) -> Result<(), Reason> {
    let refuse = |wanted: String| Reason::Shape { what: what.to_string(), shape: shape.to_vec(), wanted };
    if shape.len() > MAX_RANK {
        return Err(refuse(format!("one of at most {MAX_RANK} extents")));
    }
    if shape.iter().any(|extent| *extent < 1) {
        return Err(refuse("one of extents from 1 on".to_string()));
    }
    // Extents need not be powers of two here: padding makes them so later.
    match shape.iter().try_fold(1_i64, |size, extent| size.checked_mul(padded(*extent))) {
        Some(size) if size <= MAX_ELEMENTS => Ok(()),
        size => Err(Reason::TooMuch {
            what: "elements of a tile".to_string(),
            asked: size.unwrap_or(i64::MAX),
            limit: MAX_ELEMENTS,
        }),
    }
}

/// The common shape of two tiles after broadcasting: modes of extent 1 are broadcast, and a scalar
/// is broadcast to any shape. None if there is none.
pub(crate) fn broadcast_shape(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    match (a, b) {
        ([], other) | (other, []) => Some(other.to_vec()),
        _ if a.len() != b.len() => None,
        _ => a
            .iter()
            .zip(b)
            .map(|(a, b)| match (*a, *b) {
                (a, b) if a == b => Some(a),
                (1, other) | (other, 1) => Some(other),
                _ => None,
            })
            .collect(),
    }
}

fn mismatch(what: &str, found: &[i64], wanted: &[i64]) -> Reason {
    Reason::Shape { what: what.to_string(), shape: found.to_vec(), wanted: crate::error::shape_text(wanted) }
}

/// Refuses a tile whose rank differs from that of its tensor, and an index whose rank differs from
/// that of its tile.
pub(crate) fn is_tile_of(shape: &[i64], coordinates: usize, tensor: (&str, usize)) -> Result<(), Reason> {
    let extents = |count: usize| if count == 1 { "one extent".to_string() } else { format!("{count} extents") };
    let refuse = |wanted: String| Reason::Shape { what: "the tile".to_string(), shape: shape.to_vec(), wanted };
    if shape.len() != tensor.1 || shape.is_empty() {
        return Err(refuse(format!("one of {}, as {} has,", extents(tensor.1), tensor.0)));
    }
    if coordinates != shape.len() {
        return Err(refuse(format!("one of {}, as its place has,", extents(coordinates))));
    }
    Ok(())
}

/// Refuses a number that a type cannot hold.
fn is_number(value: f64, element: Element) -> Result<(), Reason> {
    let (least, greatest) = match element {
        Element::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        // From 2^53 on, a number of f64 may stand for several integers.
        Element::I64 => (1.0 - 2.0_f64.powi(53), 2.0_f64.powi(53) - 1.0),
        Element::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        Element::U8 => (0.0, f64::from(u8::MAX)),
        _ => return Ok(()),
    };
    match value.fract() == 0.0 && (least..=greatest).contains(&value) {
        true => Ok(()),
        false => Err(Reason::Number { value, element }),
    }
}

fn computed(operation: &str, element: Element) -> Result<(), Reason> {
    match element {
        Element::F32 | Element::I32 | Element::F64 | Element::I64 => Ok(()),
        element => Err(Reason::Element { operation: operation.to_string(), element, wanted: "f32, i32, f64 or i64" }),
    }
}

fn float(operation: &str, element: Element) -> Result<(), Reason> {
    match element {
        Element::F32 | Element::F64 => Ok(()),
        element => Err(Reason::Element { operation: operation.to_string(), element, wanted: "f32 or f64" }),
    }
}

/// Refuses a function for a type that has no instruction for it.
fn function(function: Unary, element: Element) -> Result<(), Reason> {
    match function {
        Unary::Negate | Unary::Abs => computed("a function", element),
        Unary::Sqrt | Unary::Rsqrt | Unary::Recip | Unary::Floor | Unary::Ceil | Unary::Round => {
            float("a function", element)
        }
        _ if element == Element::F32 => Ok(()),
        function => {
            let name = Unary::NAMES.iter().find(|(_, own)| *own == function).map_or("a function", |(name, _)| name);
            Err(Reason::Element { operation: name.to_string(), element, wanted: "f32" })
        }
    }
}

fn alike(operation: &str, types: &[&Type]) -> Result<(), Reason> {
    for other in &types[1..] {
        if other.shape != types[0].shape {
            return Err(Reason::Operands { first: types[0].shape.clone(), second: other.shape.clone() });
        }
        if other.element != types[0].element {
            let wanted = "one type on both sides";
            return Err(Reason::Element { operation: operation.to_string(), element: other.element, wanted });
        }
    }
    Ok(())
}

fn is_mode(mode: usize, shape: &[i64]) -> Result<(), Reason> {
    if mode < shape.len() {
        return Ok(());
    }
    let wanted = format!("one with a mode {mode}, counted from 0,");
    Err(Reason::Shape { what: "the tile".to_string(), shape: shape.to_vec(), wanted })
}

/// Refuses an element type that tensors of tile programs cannot have.
pub(crate) fn is_stored(element: Element) -> Result<(), Reason> {
    match element {
        Element::F32 | Element::F16 | Element::Bf16 | Element::E4M3 | Element::E5M2 => Ok(()),
        Element::I32 | Element::I8 | Element::U8 | Element::F64 | Element::I64 => Ok(()),
        element => {
            let wanted = "f32, f16, bf16, e4m3, e5m2, f64, i32, i8, u8 or i64";
            Err(Reason::Element { operation: "a tensor".to_string(), element, wanted })
        }
    }
}

fn converted(from: Element, to: Element) -> Result<(), Reason> {
    use Element::{Bf16, E4M3, E5M2, F16, F32, F64, I8, I32, I64, U8};
    let fits = matches!(
        (from, to),
        (F32 | F16 | Bf16 | E4M3 | E5M2 | F64 | I32 | I8 | U8 | I64, F32 | I32 | F64 | I64)
            | (F32 | F16 | Bf16 | E4M3 | E5M2, F16 | Bf16)
            | (F32 | F16 | Bf16, E4M3 | E5M2)
            | (F32, I8 | U8)
    );
    if fits {
        return Ok(());
    }
    let operation = format!("a conversion to {to}");
    Err(Reason::Element { operation, element: from, wanted: "f32, or f32, i32, f64 or i64 as the result" })
}

/// The type of the result of an operation. `source` is the tensor of a load.
pub(crate) fn infer(operation: &Operation, types: &[&Type], source: Option<Source<'_>>) -> Result<Type, Reason> {
    let count = match operation {
        Operation::Constant(..) | Operation::Number(_) | Operation::Size(_) | Operation::Arange { .. } => 0,
        Operation::Scalar(..) => 0,
        Operation::Load { .. } | Operation::Stage { picked: None, .. } => 0,
        Operation::Binary(_) | Operation::Random(_) => 2,
        Operation::MultiplyAdd | Operation::Dot => 3,
        Operation::Select(_) => 4,
        Operation::Gather { modes, .. } => modes.len(),
        _ => 1,
    };
    if types.len() != count {
        let what = "operands".to_string();
        return Err(Reason::TooMuch { what, asked: types.len() as i64, limit: count as i64 });
    }
    let of = |shape: &[i64], element: Element| Ok(Type { shape: shape.to_vec(), element });
    match operation {
        Operation::Constant(element, value) => {
            computed("a number", *element)?;
            is_number(*value, *element)?;
            of(&[], *element)
        }
        Operation::Number(_) => of(&[], Element::I32),
        Operation::Size(text) => {
            let refused = |error| Reason::Expression { what: "an expression of sizes", text: text.clone(), error };
            text.parse::<tilewright_layout::symbolic::Expr>().map_err(refused)?;
            of(&[], Element::I32)
        }
        Operation::Scalar(_, element) => {
            computed("a number of the launch", *element)?;
            of(&[], *element)
        }
        Operation::Arange { shape, mode } => {
            is_shape("the range", shape)?;
            is_mode(*mode, shape)?;
            of(shape, Element::I32)
        }
        Operation::Load { tensor, shape, at, other } => {
            let source = source.ok_or_else(|| no_tensor(*tensor))?;
            is_shape("the tile", shape)?;
            is_tile_of(shape, at.len(), (source.name, source.modes))?;
            is_number(*other, source.element)?;
            of(shape, source.element)
        }
        Operation::Gather { tensor, shape, at, modes, other } => {
            let source = source.ok_or_else(|| no_tensor(*tensor))?;
            is_shape("the tile", shape)?;
            is_tile_of(shape, at.len(), (source.name, source.modes))?;
            is_number(*other, source.element)?;
            are_coordinates(shape, &modes.iter().copied().zip(types.iter().copied()).collect::<Vec<_>>(), at)?;
            of(shape, source.element)
        }
        Operation::Stage { tensor, shape, at, modes: [rows, columns], picked } => {
            if at.iter().any(|index| index.by_element) {
                let because = "copies to shared memory are of whole tiles: load a tile that begins at an element";
                return Err(Reason::Held { layout: "stage".to_string(), because: because.to_string() });
            }
            let source = source.ok_or_else(|| no_tensor(*tensor))?;
            is_shape("the tile", shape)?;
            is_tile_of(shape, at.len(), (source.name, source.modes))?;
            is_mode(*rows, shape)?;
            is_mode(*columns, shape)?;
            let element = source.element;
            if !is_multiplied(element) {
                let wanted = "f16, bf16, e4m3 or e5m2";
                return Err(Reason::Element { operation: "an operand".to_string(), element, wanted });
            }
            let matrix = [shape[*rows], shape[*columns]];
            if rows == columns || shape.iter().product::<i64>() != matrix[0] * matrix[1] {
                let wanted = "one with extent 1 in all modes but two".to_string();
                return Err(Reason::Shape { what: "the tile".to_string(), shape: shape.clone(), wanted });
            }
            if let Some(mode) = picked {
                are_places(shape, *mode, types[0])?;
                is_moved(shape, *mode, at)?;
            }
            of(&matrix, element)
        }
        Operation::Unary(own) => {
            function(*own, types[0].element)?;
            Ok(types[0].clone())
        }
        Operation::Binary(function) => {
            alike("an operation", types)?;
            match function {
                super::Binary::Remainder => integer("a remainder", types[0].element)?,
                function if function.is_of_bits() => integer("an operation on bits", types[0].element)?,
                _ => computed("an operation", types[0].element)?,
            }
            Ok(types[0].clone())
        }
        Operation::MultiplyAdd => {
            alike("a product and sum", types)?;
            float("a product and sum", types[0].element)?;
            Ok(types[0].clone())
        }
        Operation::Select(_) => {
            alike("a comparison", &types[..2])?;
            alike("a choice", &types[2..])?;
            computed("a comparison", types[0].element)?;
            computed("a choice", types[2].element)?;
            if types[0].shape != types[2].shape {
                return Err(mismatch("a choice", &types[2].shape, &types[0].shape));
            }
            Ok(types[2].clone())
        }
        Operation::To(element) => {
            converted(types[0].element, *element)?;
            of(&types[0].shape, *element)
        }
        Operation::Recast(element) => {
            let both = [types[0].element, *element];
            both.into_iter().try_for_each(|own| computed("bits", own))?;
            if both[0].bits() != both[1].bits() {
                let wanted = "f32 and i32, or f64 and i64,";
                return Err(Reason::Element { operation: format!("bits as {element}"), element: both[0], wanted });
            }
            of(&types[0].shape, *element)
        }
        Operation::Unpack { element, .. } => {
            whole("four bits each", types[0].element)?;
            if !matches!(element, Element::F32 | Element::I32 | Element::Bf16 | Element::F16) {
                let (operation, wanted) = ("numbers of four bits as a tile".to_string(), "bf16, f16, f32 or i32");
                return Err(Reason::Element { operation, element: *element, wanted });
            }
            let mut shape = types[0].shape.clone();
            match shape.first_mut() {
                Some(first) => *first *= 8,
                None => shape.push(8),
            }
            is_shape("the result", &shape)?;
            of(&shape, *element)
        }
        Operation::Random(word) => {
            alike("random bits", types)?;
            whole("random bits", types[0].element)?;
            if *word > 3 {
                let (what, asked) = ("as the number of a word, which is 0 to 3,".to_string(), i64::from(*word));
                return Err(Reason::TooMuch { what, asked, limit: 3 });
            }
            Ok(types[0].clone())
        }
        Operation::Broadcast(shape) => {
            is_shape("the broadcast", shape)?;
            if broadcast_shape(&types[0].shape, shape).as_deref() != Some(shape) {
                return Err(Reason::Broadcast { from: types[0].shape.clone(), to: shape.clone() });
            }
            of(shape, types[0].element)
        }
        Operation::Reshape(shape) => {
            is_shape("the new shape", shape)?;
            if shape.iter().product::<i64>() != types[0].size() {
                let wanted = format!("one of {} elements", types[0].size());
                return Err(Reason::Shape { what: "the new shape".to_string(), shape: shape.clone(), wanted });
            }
            of(shape, types[0].element)
        }
        Operation::Transpose(order) => {
            let shape = &types[0].shape;
            let all = (0..shape.len()).all(|mode| order.contains(&mode));
            if order.len() != shape.len() || !all {
                let modes: Vec<String> = order.iter().map(ToString::to_string).collect();
                let wanted = format!("one whose modes ({}) names, each once,", modes.join(","));
                return Err(Reason::Shape { what: "the tile".to_string(), shape: shape.clone(), wanted });
            }
            of(&order.iter().map(|mode| shape[*mode]).collect::<Vec<_>>(), types[0].element)
        }
        Operation::Reduce(_, modes) => {
            computed("a reduction", types[0].element)?;
            modes.iter().try_for_each(|mode| is_mode(*mode, &types[0].shape))?;
            let again = modes.iter().enumerate().any(|(at, mode)| modes[..at].contains(mode));
            if modes.is_empty() || again {
                let wanted = "a reduction that names one mode or several, each once,".to_string();
                return Err(Reason::Shape { what: "the tile".to_string(), shape: types[0].shape.clone(), wanted });
            }
            let extent = |(mode, extent): (usize, &i64)| if modes.contains(&mode) { 1 } else { *extent };
            of(&types[0].shape.iter().enumerate().map(extent).collect::<Vec<_>>(), types[0].element)
        }
        Operation::ArgMax(mode) | Operation::ArgMin(mode) => {
            computed("a search for an extreme", types[0].element)?;
            is_mode(*mode, &types[0].shape)?;
            let mut shape = types[0].shape.clone();
            shape[*mode] = 1;
            of(&shape, Element::I32)
        }
        Operation::Top(mode, count) | Operation::TopPlaces(mode, count) => {
            computed("a search for the maximum", types[0].element)?;
            is_mode(*mode, &types[0].shape)?;
            let mut shape = types[0].shape.clone();
            if *count > shape[*mode] {
                let what = format!("of the elements along mode {mode}");
                return Err(Reason::TooMuch { what, asked: *count, limit: shape[*mode] });
            }
            shape[*mode] = *count;
            is_shape("the result", &shape)?;
            let is_place = matches!(operation, Operation::TopPlaces(..));
            of(&shape, if is_place { Element::I32 } else { types[0].element })
        }
        Operation::Histogram(bins) => {
            whole("a histogram", types[0].element)?;
            is_shape("the histogram", &[*bins])?;
            of(&[*bins], Element::I32)
        }
        Operation::Scan(_, mode) | Operation::ScanBefore(_, mode) => {
            computed("a scan", types[0].element)?;
            is_mode(*mode, &types[0].shape)?;
            Ok(types[0].clone())
        }
        Operation::Dot => dot(types),
        Operation::Atom(name) => {
            if !is_known(name) {
                return Err(Reason::Unknown { what: "atom", name: name.clone() });
            }
            Ok(types[0].clone())
        }
        Operation::Held(held) => {
            if held.bits() != types[0].bits() {
                let because = format!("it holds {} elements, and the tile has {}", held.size(), types[0].size());
                return Err(Reason::Held { layout: held.to_string(), because });
            }
            Ok(types[0].clone())
        }
    }
}

fn whole(operation: &str, element: Element) -> Result<(), Reason> {
    match element {
        Element::I32 => Ok(()),
        element => Err(Reason::Element { operation: operation.to_string(), element, wanted: "i32" }),
    }
}

fn integer(operation: &str, element: Element) -> Result<(), Reason> {
    match element {
        Element::I32 | Element::I64 => Ok(()),
        element => Err(Reason::Element { operation: operation.to_string(), element, wanted: "i32 or i64" }),
    }
}

/// Refuses a type that cannot be an iteration count.
pub(crate) fn is_count(count: &Type) -> Result<(), Reason> {
    whole("a count of iterations", count.element)?;
    if count.size() != 1 {
        let (what, wanted) = ("the count of iterations".to_string(), "one of one element".to_string());
        return Err(Reason::Shape { what, shape: count.shape.clone(), wanted });
    }
    Ok(())
}

/// Refuses a tile that cannot hold the coordinates along a mode of a staged tile.
pub(crate) fn are_places(shape: &[i64], mode: usize, rows: &Type) -> Result<(), Reason> {
    is_mode(mode, shape)?;
    integer("coordinates", rows.element)?;
    let wanted: Vec<i64> = shape.iter().enumerate().map(|(at, own)| if at == mode { *own } else { 1 }).collect();
    if rows.shape != wanted {
        return Err(mismatch("the tile of coordinates", &rows.shape, &wanted));
    }
    Ok(())
}

/// Refuses tiles that cannot hold the coordinates along modes of a tile.
pub(crate) fn are_coordinates(shape: &[i64], rows: &[(usize, &Type)], at: &[Index]) -> Result<(), Reason> {
    if rows.is_empty() || !rows.is_sorted_by(|a, b| a.0 < b.0) {
        let wanted = "one with tiles of coordinates along one mode or several, each once,".to_string();
        return Err(Reason::Shape { what: "the tile".to_string(), shape: shape.to_vec(), wanted });
    }
    for (mode, ty) in rows {
        is_mode(*mode, shape)?;
        integer("coordinates", ty.element)?;
        // The largest extent of the tile of coordinates along a mode: that of the tile, if some
        // tile of coordinates belongs to the mode.
        let most = |own: usize| if rows.iter().any(|(other, _)| *other == own) { shape[own] } else { 1 };
        let wanted: Vec<i64> = (0..shape.len()).map(|own| if own == *mode { shape[own] } else { 1 }).collect();
        let fits = |(own, extent): (usize, &i64)| *extent == most(own) || (own != *mode && *extent == 1);
        if ty.shape.len() != shape.len() || !ty.shape.iter().enumerate().all(fits) {
            return Err(mismatch("the tile of coordinates", &ty.shape, &wanted));
        }
        is_moved(shape, *mode, at)?;
    }
    Ok(())
}

/// Refuses an index along a mode with a tile of coordinates, unless it can be added to the
/// coordinates.
pub(crate) fn is_moved(shape: &[i64], mode: usize, at: &[Index]) -> Result<(), Reason> {
    match (at.get(mode), shape.get(mode)) {
        (Some(index), Some(1)) if !index.by_element => Ok(()),
        (Some(index), Some(_)) if index.known() != Some(0) => {
            let wanted = format!("one of extent 1 along mode {mode}, where an index is added to its coordinate,");
            Err(Reason::Shape { what: "the tile".to_string(), shape: shape.to_vec(), wanted })
        }
        _ => Ok(()),
    }
}

fn no_tensor(number: usize) -> Reason {
    Reason::Unknown { what: "tensor", name: number.to_string() }
}

/// Whether `dot` supports operands of a type.
fn is_multiplied(element: Element) -> bool {
    matches!(element, Element::F16 | Element::Bf16 | Element::E4M3 | Element::E5M2)
}

/// Refuses operands of f32 of `dot` that are not rounded to tf32. `rounded` holds the values that
/// are.
pub(crate) fn are_multiplied(
    operation: &Operation,
    operands: &[ValueId],
    types: &[&Type],
    rounded: &HashSet<ValueId>,
) -> Result<(), Reason> {
    let is_exact = |(value, ty): (&ValueId, &&Type)| ty.element == Element::F32 && !rounded.contains(value);
    match operation {
        Operation::Dot if operands.iter().zip(types).take(2).any(is_exact) => {
            let wanted = "f16, bf16, e4m3 or e5m2, both alike, or f32 that `tf32` has rounded,";
            Err(Reason::Element { operation: "a product".to_string(), element: Element::F32, wanted })
        }
        _ => Ok(()),
    }
}

fn dot(types: &[&Type]) -> Result<Type, Reason> {
    let [a, b, c] = types else { return Err(mismatch("the product", &[], &[])) };
    for operand in [a, b] {
        let is_multiplied = is_multiplied(operand.element) || operand.element == Element::F32;
        if !is_multiplied || operand.element != a.element {
            let wanted = "f16, bf16, e4m3 or e5m2, both alike,";
            return Err(Reason::Element { operation: "a product".to_string(), element: operand.element, wanted });
        }
    }
    if c.element != Element::F32 {
        let operation = "the accumulator of a dot".to_string();
        return Err(Reason::Element { operation, element: c.element, wanted: "f32" });
    }
    let ([m, k], [depth, n]) = (a.shape.as_slice(), b.shape.as_slice()) else {
        return Err(mismatch("the A operand", &a.shape, &[16, 16]));
    };
    if k != depth {
        return Err(mismatch("the B operand", &b.shape, &[*k, *n]));
    }
    if c.shape != [*m, *n] {
        return Err(mismatch("the sum", &c.shape, &[*m, *n]));
    }
    let depth = crate::matrix::depth(a.element);
    for (what, shape, least) in [("the A operand", &a.shape, [16, depth]), ("the B operand", &b.shape, [depth, 8])] {
        if shape.iter().zip(least).any(|(extent, least)| *extent < least) {
            let wanted = format!("one of at least {}, which an instruction takes,", crate::error::shape_text(&least));
            return Err(Reason::Shape { what: what.to_string(), shape: shape.clone(), wanted });
        }
    }
    Ok((*c).clone())
}

/// Whether there is an atom of this name.
fn is_known(name: &str) -> bool {
    MmaAtom::named(name).is_ok() || CopyAtom::named(name).is_ok() || BulkCopy::named(name).is_ok()
}

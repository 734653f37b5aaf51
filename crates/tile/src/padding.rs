//! Pads tiles whose extents are not powers of two.
//!
//! Law: threads hold tiles whose extents are powers of two, so each tile becomes the beginning of
//! the smallest such tile. A load fills the padding like elements past an edge, and a store skips
//! it. An operation that combines elements fills the padding of its operand with its identity: a
//! sum with 0, a product of matrices with 0 along K, a search with the last number of its order. In
//! other places the values of the padding do not matter. The program computes the same results, and
//! values keep their numbers.

use std::collections::HashMap;

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;

use crate::error::{Reason, TileError};
use crate::program::statement::statements;
use crate::program::{
    Binary, Comparison, Index, Loop, Operation, Program, Statement, Type, Unary, ValueId, padded as power,
};

/// The program with padded tiles; the program itself, if all extents are powers of two.
///
/// Errors: a reshape would reorder padded elements; an operand of `dot` is neither loaded nor
/// converted, so that its padding cannot be set to 0.
pub(crate) fn padded(program: &Program) -> Result<Program, TileError> {
    let is_power = |ty: &Type| ty.shape.iter().all(|extent| power(*extent) == *extent);
    if program.types.iter().all(is_power) && stores_are_powers(program) {
        return Ok(program.clone());
    }
    let mut types = program.types.clone();
    types.iter_mut().for_each(|ty| ty.shape = powers(&ty.shape));
    let own = Program { types, body: Vec::new(), ..program.clone() };
    let mut padding = Padding { source: program, own, known: HashMap::new() };
    let body = padding.body(&program.body)?;
    Ok(Program { body, ..padding.own })
}

/// Whether all stored tiles have extents that are powers of two. If so, the loaded tiles have them,
/// too.
fn stores_are_powers(program: &Program) -> bool {
    statements(&program.body).all(|statement| match statement {
        Statement::Store { value, .. } => powers(&program.type_of(*value).shape) == program.type_of(*value).shape,
        _ => true,
    })
}

fn powers(shape: &[i64]) -> Vec<i64> {
    shape.iter().map(|extent| power(*extent)).collect()
}

/// The index of a tile inside of its padded tile: it counts elements, and limits their number.
fn indices(at: &[Index], shape: &[i64]) -> Vec<Index> {
    let one = |(index, extent): (&Index, &i64)| match power(*extent) == *extent {
        true => index.clone(),
        false => {
            let first = if index.by_element { index.clone() } else { index.clone() * *extent };
            first.within(index.length.map_or(*extent, |length| length.min(*extent)))
        }
    };
    at.iter().zip(shape).map(one).collect()
}

/// Whether a reshape keeps the order of elements despite the padding: if several modes are merged
/// or split, only the last one may be padded.
fn keeps_order(from: &[i64], to: &[i64]) -> bool {
    let (mut from, mut to) = (from.iter().copied().peekable(), to.iter().copied().peekable());
    while from.peek().is_some() || to.peek().is_some() {
        let (mut sizes, mut is_last) = ([1, 1], [true, true]);
        // The shortest groups of modes on both sides that have equally many elements.
        loop {
            let side = usize::from(sizes[0] > sizes[1]);
            let next = if side == 0 { from.next() } else { to.next() };
            let Some(extent) = next else { return sizes[0] == sizes[1] };
            if !is_last[side] && extent > 1 {
                return false;
            }
            is_last[side] &= power(extent) == extent;
            sizes[side] *= extent;
            if sizes[0] == sizes[1] {
                break;
            }
        }
    }
    true
}

/// What fills the padding of a tile.
#[derive(Clone, Copy)]
enum Fill {
    Number(f64),
    /// The last number in the order of `top`: a floating-point number with all bits set.
    Least,
}

struct Padding<'p> {
    source: &'p Program,
    own: Program,
    /// The operation that computes each value, in the program that is written.
    known: HashMap<ValueId, (Operation, Vec<ValueId>)>,
}

impl Padding<'_> {
    fn body(&mut self, body: &[Statement]) -> Result<Vec<Statement>, TileError> {
        let mut out = Vec::new();
        for statement in body {
            match statement {
                Statement::Let { result, operation, operands, place } => {
                    self.given((*result, operation, operands), &mut out, *place)?;
                }
                Statement::Store { tensor, at, rows, with, value, place } => {
                    let shape = &self.source.type_of(*value).shape;
                    let of = |(mode, rows): &(usize, ValueId)| (*mode, self.coordinates(*rows, &mut out, *place));
                    let rows: Vec<(usize, ValueId)> = rows.iter().map(of).collect();
                    // A mode with a tile of coordinates has no index.
                    let mut own = indices(at, shape);
                    rows.iter().for_each(|(mode, _)| own[*mode] = at[*mode].clone());
                    let (tensor, with, value, place) = (*tensor, *with, *value, *place);
                    out.push(Statement::Store { tensor, at: own, rows, with, value, place });
                }
                Statement::Loop(own) => {
                    let body = self.body(&own.body)?;
                    out.push(Statement::Loop(Loop { body, ..own.clone() }));
                }
            }
        }
        Ok(out)
    }

    fn put(
        &mut self,
        result: ValueId,
        operation: Operation,
        operands: &[ValueId],
        to: (&mut Vec<Statement>, Location),
    ) {
        self.known.insert(result, (operation.clone(), operands.to_vec()));
        let (out, place) = to;
        out.push(Statement::Let { result, operation, operands: operands.to_vec(), place });
    }

    /// Adds an operation that the source program does not have, and returns its result.
    fn made(
        &mut self,
        (shape, element): (&[i64], Element),
        operation: Operation,
        operands: &[ValueId],
        (out, place): (&mut Vec<Statement>, Location),
    ) -> ValueId {
        let result = self.own.value(Type { shape: shape.to_vec(), element });
        self.put(result, operation, operands, (out, place));
        result
    }

    /// The padded modes of a value, among some modes, with their extents before padding.
    fn ends(&self, shape: &[i64], modes: &[usize]) -> Vec<(usize, i64)> {
        let own = |mode: &usize| Some((*mode, *shape.get(*mode)?));
        modes.iter().filter_map(own).filter(|(_, extent)| power(*extent) != *extent).collect()
    }

    /// A tile whose padding along some modes is filled. Its shape is that in the source program.
    fn filled(
        &mut self,
        value: ValueId,
        (shape, modes): (&[i64], &[usize]),
        fill: Fill,
        out: &mut Vec<Statement>,
        place: Location,
    ) -> ValueId {
        let ends = self.ends(shape, modes);
        let element = self.own.type_of(value).element;
        if ends.is_empty() || self.is_filled(value, &ends, fill) {
            return value;
        }
        let wide = powers(shape);
        let mut fill_value = self.filling(fill, element, (&mut *out, place));
        fill_value = self.made((&wide, element), Operation::Broadcast(wide.clone()), &[fill_value], (out, place));
        let mut found = value;
        for (mode, extent) in ends {
            let arange = Operation::Arange { shape: wide.clone(), mode };
            let at = self.made((&wide, Element::I32), arange, &[], (out, place));
            let end = Operation::Constant(Element::I32, extent as f64);
            let end = self.made((&[], Element::I32), end, &[], (out, place));
            let end = self.made((&wide, Element::I32), Operation::Broadcast(wide.clone()), &[end], (out, place));
            let operands = [at, end, found, fill_value];
            found = self.made((&wide, element), Operation::Select(Comparison::Less), &operands, (out, place));
        }
        found
    }

    /// A tile of the number that fills the padding.
    fn filling(&mut self, fill: Fill, element: Element, (out, place): (&mut Vec<Statement>, Location)) -> ValueId {
        let mut constant = |element: Element, value: f64| {
            self.made((&[], element), Operation::Constant(element, value), &[], (&mut *out, place))
        };
        match (fill, element) {
            (Fill::Number(number), Element::I32) => constant(element, number.clamp(i32::MIN.into(), i32::MAX.into())),
            (Fill::Number(number), Element::I64) if number.is_infinite() => {
                // The least and greatest integers of 64 bits cannot be written as a constant of
                // f64.
                let [one, places] = [1.0, 63.0].map(|value| constant(element, value));
                let least = Operation::Binary(Binary::ShiftLeft);
                let least = self.made((&[], element), least, &[one, places], (&mut *out, place));
                if number < 0.0 {
                    return least;
                }
                let all = Operation::Constant(element, -1.0);
                let all = self.made((&[], element), all, &[], (&mut *out, place));
                self.made((&[], element), Operation::Binary(Binary::Xor), &[least, all], (out, place))
            }
            (Fill::Number(number), _) => constant(element, number),
            (Fill::Least, Element::I32) => constant(element, f64::from(i32::MIN)),
            (Fill::Least, Element::I64) => self.filling(Fill::Number(f64::NEG_INFINITY), element, (out, place)),
            (Fill::Least, element) => {
                // A number with all bits set.
                let whole = if element == Element::F64 { Element::I64 } else { Element::I32 };
                let bits = constant(whole, -1.0);
                self.made((&[], element), Operation::Recast(element), &[bits], (out, place))
            }
        }
    }

    /// Whether the padding already has the fill value, because a load put it there.
    fn is_filled(&self, value: ValueId, ends: &[(usize, i64)], fill: Fill) -> bool {
        let Fill::Number(number) = fill else { return false };
        match self.known.get(&value) {
            Some((Operation::Load { other, at, .. }, _)) => {
                other.to_bits() == number.to_bits() && ends.iter().all(|(mode, _)| at[*mode].length.is_some())
            }
            // Zero is the same in every floating-point type. A load rounds a fill of infinity to
            // the greatest number of a type of 8 bits; an infinity in memory stays one.
            Some((Operation::To(Element::F32), operands)) if number == 0.0 || number.is_infinite() => {
                let element = self.own.type_of(operands[0]).element;
                let keeps = element.is_float() && (number == 0.0 || element.bits() > 8);
                keeps && self.is_filled(operands[0], ends, fill)
            }
            _ => false,
        }
    }

    /// A tile of coordinates whose padding holds coordinates outside of the tensor.
    fn coordinates(&mut self, rows: ValueId, out: &mut Vec<Statement>, place: Location) -> ValueId {
        let shape = self.source.type_of(rows).shape.clone();
        let modes: Vec<usize> = (0..shape.len()).collect();
        self.filled(rows, (&shape, &modes), Fill::Number(-1.0), out, place)
    }

    /// An operand of `dot` with zeros in its padding along K.
    fn operand(
        &mut self,
        value: ValueId,
        (shape, mode): (&[i64], usize),
        out: &mut Vec<Statement>,
        place: Location,
    ) -> Result<ValueId, TileError> {
        if self.ends(shape, &[mode]).is_empty() || self.is_zero(value) {
            return Ok(value);
        }
        if let Some((Operation::To(element), operands)) = self.known.get(&value).cloned()
            && matches!(self.own.type_of(operands[0]).element, Element::F32 | Element::I32)
        {
            let inner = self.filled(operands[0], (shape, &[mode]), Fill::Number(0.0), out, place);
            return Ok(self.made((&powers(shape), element), Operation::To(element), &[inner], (out, place)));
        }
        if let Some((Operation::Unary(Unary::Tf32), operands)) = self.known.get(&value).cloned() {
            let inner = self.filled(operands[0], (shape, &[mode]), Fill::Number(0.0), out, place);
            let operation = Operation::Unary(Unary::Tf32);
            return Ok(self.made((&powers(shape), Element::F32), operation, &[inner], (out, place)));
        }
        let wanted =
            "one that is loaded, with 0 past its edges, or converted, if its extent along K is no power of two,";
        let (what, shape) = ("the operand of a product".to_string(), shape.to_vec());
        Err(Reason::Shape { what, shape, wanted: wanted.to_string() }.at("dot", place))
    }

    /// Whether the padding of a tile is 0: the load fills it with 0, and the tile is only moved or
    /// converted.
    fn is_zero(&self, value: ValueId) -> bool {
        match self.known.get(&value) {
            Some((Operation::Load { other, .. } | Operation::Gather { other, .. }, _)) => other.to_bits() == 0,
            Some((
                Operation::Transpose(_)
                | Operation::To(_)
                | Operation::Unary(Unary::Tf32)
                | Operation::Atom(_)
                | Operation::Held(_),
                operands,
            )) => self.is_zero(operands[0]),
            _ => false,
        }
    }

    fn given(
        &mut self,
        (result, operation, operands): (ValueId, &Operation, &[ValueId]),
        out: &mut Vec<Statement>,
        place: Location,
    ) -> Result<(), TileError> {
        let mut operands = operands.to_vec();
        let shape = operands.first().map(|value| self.source.type_of(*value).shape.clone()).unwrap_or_default();
        let refuse = |shape: &[i64], wanted: &str| {
            let (what, wanted) = ("the tile".to_string(), wanted.to_string());
            Err(Reason::Shape { what, shape: shape.to_vec(), wanted }.at("value", place))
        };
        let operation = match operation.clone() {
            Operation::Load { tensor, shape, at, other } => {
                Operation::Load { tensor, at: indices(&at, &shape), shape: powers(&shape), other }
            }
            Operation::Gather { tensor, shape, at, modes, other } => {
                operands.iter_mut().for_each(|own| *own = self.coordinates(*own, out, place));
                let mut own = indices(&at, &shape);
                modes.iter().for_each(|mode| own[*mode] = at[*mode].clone());
                Operation::Gather { tensor, shape: powers(&shape), at: own, modes, other }
            }
            Operation::Stage { shape, .. } if powers(&shape) != shape => {
                return refuse(&shape, "one of powers of two: load it, and the product takes it");
            }
            Operation::Arange { shape, mode } => Operation::Arange { shape: powers(&shape), mode },
            Operation::Broadcast(shape) => Operation::Broadcast(powers(&shape)),
            Operation::Reshape(to) => {
                if !keeps_order(&shape, &to) {
                    let wanted = "one whose modes that are no powers of two stay, or are the last of those that \
                                  are joined or divided,";
                    return refuse(&shape, wanted);
                }
                Operation::Reshape(powers(&to))
            }
            Operation::Reduce(reduction, modes) => {
                let fill = Fill::Number(reduction.neutral());
                operands[0] = self.filled(operands[0], (&shape, &modes), fill, out, place);
                Operation::Reduce(reduction, modes)
            }
            Operation::ArgMax(mode) => {
                operands[0] = self.filled(operands[0], (&shape, &[mode]), Fill::Number(f64::NEG_INFINITY), out, place);
                Operation::ArgMax(mode)
            }
            Operation::ArgMin(mode) => {
                operands[0] = self.filled(operands[0], (&shape, &[mode]), Fill::Number(f64::INFINITY), out, place);
                Operation::ArgMin(mode)
            }
            Operation::Top(mode, count) => {
                operands[0] = self.filled(operands[0], (&shape, &[mode]), Fill::Least, out, place);
                Operation::Top(mode, power(count))
            }
            Operation::TopPlaces(mode, count) => {
                operands[0] = self.filled(operands[0], (&shape, &[mode]), Fill::Least, out, place);
                Operation::TopPlaces(mode, power(count))
            }
            Operation::Histogram(bins) => {
                let modes: Vec<usize> = (0..shape.len()).collect();
                operands[0] = self.filled(operands[0], (&shape, &modes), Fill::Number(-1.0), out, place);
                Operation::Histogram(power(bins))
            }
            Operation::Dot => {
                let depth = self.source.type_of(operands[1]).shape.clone();
                operands[0] = self.operand(operands[0], (&shape, 1), out, place)?;
                operands[1] = self.operand(operands[1], (&depth, 0), out, place)?;
                Operation::Dot
            }
            other => other,
        };
        self.put(result, operation, &operands, (out, place));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of an element in the padded tile.
    fn place(shape: &[i64], index: i64) -> i64 {
        let (mut rest, mut below, mut found) = (index, 1, 0);
        for extent in shape {
            found += rest % extent * below;
            rest /= extent;
            below *= power(*extent);
        }
        found
    }

    #[test]
    fn a_reshape_keeps_the_order_of_elements_behind_padding() {
        let shapes: [&[i64]; 14] = [
            &[96],
            &[32, 3],
            &[3, 32],
            &[2, 48],
            &[48, 2],
            &[96, 1],
            &[1, 96],
            &[2, 16, 3],
            &[6, 16],
            &[24],
            &[8, 3],
            &[4, 24],
            &[12, 8],
            &[4, 8, 3],
        ];
        let mut kept = 0;
        for from in shapes {
            for to in shapes {
                let [size, other] = [from, to].map(|shape| shape.iter().product::<i64>());
                if size != other {
                    continue;
                }
                let same = (0..size).all(|index| place(from, index) == place(to, index));
                // `keeps_order` accepts exactly the reshapes that keep the order.
                assert_eq!(keeps_order(from, to), same, "{from:?} {to:?}");
                kept += i32::from(same);
            }
        }
        assert!(kept > 30, "{kept}");
    }
}

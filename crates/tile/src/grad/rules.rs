//! The derivative of each operation.
//!
//! Law: `d` is the derivative by the result of an operation. A rule adds, for each operand, `d`
//! times the derivative of the result by the operand, as a function of real numbers. Where a
//! function has a corner, equal elements share: half each of `min` and `max`, equal parts of the
//! elements that are the extreme of a reduction; `abs` has 0 there.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2};

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;

use super::reverse::Reverse;
use super::writer::ScopeId;
use crate::error::TileError;
use crate::program::{Binary, Comparison, Operation, Reduction, Unary, ValueId};

impl Reverse<'_> {
    /// Reverses a statement that defines a value.
    pub(super) fn reverse(
        &mut self,
        (result, operation, operands): (ValueId, &Operation, &[ValueId]),
        d: ValueId,
        scope: ScopeId,
        place: Location,
    ) -> Result<(), TileError> {
        let unknown = |what: &str| format!("{what} has no derivative here");
        match operation {
            Operation::Load { .. } => self.loaded(operation, d, Vec::new(), scope, place),
            Operation::Gather { modes, .. } => {
                let rows = self.coordinates(modes, operands, scope)?;
                self.loaded(operation, d, rows, scope, place)
            }
            Operation::Stage { shape, modes, picked, .. } => {
                let rows = self.coordinates(picked.as_slice(), operands, scope)?;
                // The matrix as the tile that it is: its modes in their order.
                let tile = match modes[0] < modes[1] {
                    true => d,
                    false => self.writer.apply(scope, Operation::Transpose(vec![1, 0]), &[d], place)?,
                };
                let tile = self.writer.reshape(scope, tile, shape, place)?;
                self.loaded(operation, tile, rows, scope, place)
            }
            Operation::Unary(function) => self.unary(*function, (result, operands[0]), d, scope, place),
            Operation::Binary(function) => {
                self.binary(*function, (result, [operands[0], operands[1]]), d, scope, place)
            }
            Operation::MultiplyAdd => {
                self.product([operands[0], operands[1]], d, scope, place)?;
                self.add(operands[2], d, scope, place)
            }
            Operation::Select(comparison) => {
                let sides = [self.primal(operands[0], scope)?, self.primal(operands[1], scope)?];
                let zero = self.zero_like(d, scope, place)?;
                for (value, both) in [(operands[2], [d, zero]), (operands[3], [zero, d])] {
                    if self.is_active(value) {
                        let own = self.writer.select(scope, (*comparison, sides), both, place)?;
                        self.add(value, own, scope, place)?;
                    }
                }
                Ok(())
            }
            Operation::To(_) | Operation::Atom(_) | Operation::Held(_) => self.add(operands[0], d, scope, place),
            Operation::Broadcast(_) => self.reverse_broadcast(operands[0], d, scope, place),
            Operation::Reshape(_) => {
                let shape = self.source.type_of(operands[0]).shape.clone();
                let own = self.writer.reshape(scope, d, &shape, place)?;
                self.add(operands[0], own, scope, place)
            }
            Operation::Transpose(order) => {
                let mut back = vec![0; order.len()];
                order.iter().enumerate().for_each(|(mode, from)| back[*from] = mode);
                let own = self.writer.apply(scope, Operation::Transpose(back), &[d], place)?;
                self.add(operands[0], own, scope, place)
            }
            Operation::Reduce(Reduction::Sum, _) => {
                let shape = self.source.type_of(operands[0]).shape.clone();
                let own = self.writer.broadcast(scope, d, &shape, place)?;
                self.add(operands[0], own, scope, place)
            }
            Operation::Reduce(Reduction::Minimum | Reduction::Maximum, modes) => {
                let (tile, extreme) = (self.primal(operands[0], scope)?, self.primal(result, scope)?);
                let shape = self.source.type_of(operands[0]).shape.clone();
                let extreme = self.writer.broadcast(scope, extreme, &shape, place)?;
                let [one, zero] = [1.0, 0.0].map(|value| self.writer.full_like(scope, tile, value, place));
                let (one, zero) = (one?, zero?);
                let equal = self.writer.select(scope, (Comparison::Equal, [tile, extreme]), [one, zero], place)?;
                let count = self.writer.sum(scope, equal, modes, place)?;
                let share = self.writer.binary(scope, Binary::Divide, [d, count], place)?;
                let share = self.writer.broadcast(scope, share, &shape, place)?;
                let own = self.writer.select(scope, (Comparison::Equal, [tile, extreme]), [share, zero], place)?;
                self.add(operands[0], own, scope, place)
            }
            // What is after an element along the mode: all, less what is before.
            Operation::Scan(Reduction::Sum, mode) => {
                self.reverse_scan(Operation::ScanBefore(Reduction::Sum, *mode), (operands[0], *mode), d, scope, place)
            }
            Operation::ScanBefore(Reduction::Sum, mode) => {
                self.reverse_scan(Operation::Scan(Reduction::Sum, *mode), (operands[0], *mode), d, scope, place)
            }
            Operation::Dot => self.reverse_dot(operands, d, scope, place),
            Operation::Top(..) => Err(self.refuse(unknown("the largest elements of a tile"), place)),
            Operation::Reduce(Reduction::Product, _) => Err(self.refuse(unknown("a product along a mode"), place)),
            Operation::Scan(..) | Operation::ScanBefore(..) => {
                Err(self.refuse(unknown("a scan other than of sums"), place))
            }
            Operation::Recast(_) => Err(self.refuse(unknown("a number with the bits of another type"), place)),
            // Their results do not depend on floating-point operands.
            Operation::Constant(..)
            | Operation::Number(_)
            | Operation::Size(_)
            | Operation::Scalar(..)
            | Operation::Arange { .. }
            | Operation::Unpack { .. }
            | Operation::Random(_)
            | Operation::ArgMax(_)
            | Operation::ArgMin(_)
            | Operation::TopPlaces(..)
            | Operation::Histogram(_) => Ok(()),
        }
    }

    /// Modes, and the tiles that say the coordinates along them.
    pub(super) fn coordinates(
        &mut self,
        modes: &[usize],
        operands: &[ValueId],
        scope: ScopeId,
    ) -> Result<Vec<(usize, ValueId)>, TileError> {
        let one = |(mode, rows): (&usize, &ValueId)| Ok((*mode, self.primal(*rows, scope)?));
        modes.iter().zip(operands).map(one).collect()
    }

    fn zero_like(&mut self, value: ValueId, scope: ScopeId, place: Location) -> Result<ValueId, TileError> {
        self.writer.full_like(scope, value, 0.0, place)
    }

    /// Adds to both operands of a product.
    fn product(&mut self, [a, b]: [ValueId; 2], d: ValueId, scope: ScopeId, place: Location) -> Result<(), TileError> {
        for (own, other) in [(a, b), (b, a)] {
            if self.is_active(own) {
                let other = self.primal(other, scope)?;
                let by = self.writer.binary(scope, Binary::Multiply, [d, other], place)?;
                self.add(own, by, scope, place)?;
            }
        }
        Ok(())
    }

    fn unary(
        &mut self,
        function: Unary,
        (result, operand): (ValueId, ValueId),
        d: ValueId,
        scope: ScopeId,
        place: Location,
    ) -> Result<(), TileError> {
        let (x, y) = (self.primal(operand, scope)?, self.primal(result, scope)?);
        let times = |own: &mut Self, a, b| own.writer.binary(scope, Binary::Multiply, [a, b], place);
        let own = match function {
            Unary::Negate => self.writer.unary(scope, Unary::Negate, d, place)?,
            Unary::Abs => {
                let zero = self.zero_like(d, scope, place)?;
                let less = self.writer.unary(scope, Unary::Negate, d, place)?;
                // 0 times the number: 0 at 0, and NaN at NaN.
                let neither = times(self, d, x)?;
                let more = self.writer.select(scope, (Comparison::Less, [zero, x]), [d, neither], place)?;
                self.writer.select(scope, (Comparison::Less, [x, zero]), [less, more], place)?
            }
            Unary::Exp => times(self, d, y)?,
            Unary::Exp2 => {
                let by = times(self, d, y)?;
                self.writer.scaled(scope, by, LN_2, place)?
            }
            Unary::Log2 => {
                let by = self.writer.binary(scope, Binary::Divide, [d, x], place)?;
                self.writer.scaled(scope, by, 1.0 / LN_2, place)?
            }
            Unary::Sqrt => {
                let half = self.writer.scaled(scope, d, 0.5, place)?;
                self.writer.binary(scope, Binary::Divide, [half, y], place)?
            }
            Unary::Rsqrt => {
                let square = times(self, y, y)?;
                let cube = times(self, square, y)?;
                let by = times(self, d, cube)?;
                self.writer.scaled(scope, by, -0.5, place)?
            }
            Unary::Recip => {
                let square = times(self, y, y)?;
                let by = times(self, d, square)?;
                self.writer.unary(scope, Unary::Negate, by, place)?
            }
            Unary::Tanh => {
                let square = times(self, y, y)?;
                let by = times(self, d, square)?;
                self.writer.binary(scope, Binary::Subtract, [d, by], place)?
            }
            Unary::Log => self.writer.binary(scope, Binary::Divide, [d, x], place)?,
            Unary::Sin => {
                let cosine = self.writer.unary(scope, Unary::Cos, x, place)?;
                times(self, d, cosine)?
            }
            Unary::Cos => {
                let sine = self.writer.unary(scope, Unary::Sin, x, place)?;
                let by = times(self, d, sine)?;
                self.writer.unary(scope, Unary::Negate, by, place)?
            }
            Unary::Erf => {
                let square = times(self, x, x)?;
                let less = self.writer.unary(scope, Unary::Negate, square, place)?;
                let density = self.writer.unary(scope, Unary::Exp, less, place)?;
                let by = times(self, d, density)?;
                self.writer.scaled(scope, by, FRAC_2_SQRT_PI, place)?
            }
            // Rounded as conversions are.
            Unary::Tf32 => d,
            // Whole numbers do not change with what they are near to.
            Unary::Floor | Unary::Ceil | Unary::Round => return Ok(()),
        };
        self.add(operand, own, scope, place)
    }

    fn binary(
        &mut self,
        function: Binary,
        (result, [a, b]): (ValueId, [ValueId; 2]),
        d: ValueId,
        scope: ScopeId,
        place: Location,
    ) -> Result<(), TileError> {
        match function {
            Binary::Add => {
                self.add(a, d, scope, place)?;
                self.add(b, d, scope, place)
            }
            Binary::Subtract => {
                self.add(a, d, scope, place)?;
                if self.is_active(b) {
                    let less = self.writer.unary(scope, Unary::Negate, d, place)?;
                    self.add(b, less, scope, place)?;
                }
                Ok(())
            }
            Binary::Multiply => self.product([a, b], d, scope, place),
            Binary::Divide => {
                let divisor = self.primal(b, scope)?;
                let by = self.writer.binary(scope, Binary::Divide, [d, divisor], place)?;
                self.add(a, by, scope, place)?;
                if self.is_active(b) {
                    let quotient = self.primal(result, scope)?;
                    let by = self.writer.binary(scope, Binary::Multiply, [by, quotient], place)?;
                    let less = self.writer.unary(scope, Unary::Negate, by, place)?;
                    self.add(b, less, scope, place)?;
                }
                Ok(())
            }
            Binary::Minimum | Binary::Maximum => {
                let sides = [self.primal(a, scope)?, self.primal(b, scope)?];
                let zero = self.zero_like(d, scope, place)?;
                let half = self.writer.scaled(scope, d, 0.5, place)?;
                let both = self.writer.select(scope, (Comparison::Equal, sides), [half, d], place)?;
                // The operand that is taken gets all.
                let [x, y] = sides;
                let ordered = if function == Binary::Maximum { [x, y] } else { [y, x] };
                for (own, [less, more]) in [(a, ordered), (b, [ordered[1], ordered[0]])] {
                    if self.is_active(own) {
                        let own_part =
                            self.writer.select(scope, (Comparison::Less, [less, more]), [zero, both], place)?;
                        self.add(own, own_part, scope, place)?;
                    }
                }
                Ok(())
            }
            // Operations on bits have integers.
            _ => Ok(()),
        }
    }

    fn reverse_broadcast(
        &mut self,
        operand: ValueId,
        d: ValueId,
        scope: ScopeId,
        place: Location,
    ) -> Result<(), TileError> {
        let from = self.source.type_of(operand).shape.clone();
        let to = self.writer.type_of(d).shape.clone();
        let modes: Vec<usize> = match from.is_empty() {
            true => (0..to.len()).collect(),
            false => (0..to.len()).filter(|mode| from[*mode] != to[*mode]).collect(),
        };
        let mut inside = d;
        for mode in &modes {
            inside = self.inside(inside, *mode, scope, place)?;
        }
        let sum = self.writer.sum(scope, inside, &modes, place)?;
        let own = self.writer.reshape(scope, sum, &from, place)?;
        self.add(operand, own, scope, place)
    }

    fn reverse_scan(
        &mut self,
        before: Operation,
        (operand, mode): (ValueId, usize),
        d: ValueId,
        scope: ScopeId,
        place: Location,
    ) -> Result<(), TileError> {
        let shape = self.writer.type_of(d).shape.clone();
        let all = self.writer.sum(scope, d, &[mode], place)?;
        let all = self.writer.broadcast(scope, all, &shape, place)?;
        let before = self.writer.apply(scope, before, &[d], place)?;
        let own = self.writer.binary(scope, Binary::Subtract, [all, before], place)?;
        self.add(operand, own, scope, place)
    }

    /// `dA = d Bᵀ`, `dB = Aᵀ d`, with `d` rounded to the type of the operands, f32 to tf32; 8-bit
    /// operands are multiplied as bf16, in which they are exact.
    fn reverse_dot(
        &mut self,
        operands: &[ValueId],
        d: ValueId,
        scope: ScopeId,
        place: Location,
    ) -> Result<(), TileError> {
        let [a, b, c] = operands else { return Ok(()) };
        self.add(*c, d, scope, place)?;
        let element = match self.source.type_of(*a).element {
            own @ (Element::F16 | Element::F32) => own,
            _ => Element::Bf16,
        };
        for (own, other, from_left) in [(*a, *b, false), (*b, *a, true)] {
            if !self.is_active(own) {
                continue;
            }
            // The sum runs over the rows of d, or over its columns.
            let inside = self.inside(d, usize::from(!from_left), scope, place)?;
            let d = match element {
                Element::F32 => self.writer.unary(scope, Unary::Tf32, inside, place)?,
                _ => self.writer.to(scope, inside, element, place)?,
            };
            let other = self.primal(other, scope)?;
            let other = self.writer.to(scope, other, element, place)?;
            let other = self.writer.apply(scope, Operation::Transpose(vec![1, 0]), &[other], place)?;
            let shape = self.source.type_of(own).shape.clone();
            let zero = self.writer.full(scope, &shape, 0.0, place)?;
            let operands = if from_left { [other, d] } else { [d, other] };
            let product = self.writer.apply(scope, Operation::Dot, &[operands[0], operands[1], zero], place)?;
            self.add(own, product, scope, place)?;
        }
        Ok(())
    }
}

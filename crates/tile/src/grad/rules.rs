//! The derivative of each operation.
//!
//! Law: `d` is the derivative with respect to the result of an operation. For each operand, a rule
//! adds `d` times the derivative of the result with respect to the operand, as a function of real
//! numbers. Where a function has a corner, equal elements share: `min` and `max` give half to each
//! operand, a reduction gives equal parts to the elements that equal the extreme, and `abs` has the
//! derivative 0 at 0. A power that is infinite times a derivative of 0 is 0.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2};

use tilewright_kernel::Element;

use super::reverse::Reverse;
use super::writer::{ScopeId, Spot};
use crate::error::TileError;
use crate::program::{Binary, Comparison, Operation, Reduction, Unary, ValueId};

impl Reverse<'_> {
    /// Reverses a statement that defines a value.
    pub(super) fn reverse(
        &mut self,
        (result, operation, operands): (ValueId, &Operation, &[ValueId]),
        d: ValueId,
        spot: Spot,
    ) -> Result<(), TileError> {
        let unknown = |what: &str| format!("{what} has no derivative here");
        match operation {
            Operation::Load { .. } => self.loaded(operation, d, Vec::new(), spot),
            Operation::Gather { modes, .. } => {
                let rows = self.coordinates(modes, operands, spot.scope)?;
                self.loaded(operation, d, rows, spot)
            }
            Operation::Stage { shape, modes, picked, .. } => {
                let rows = self.coordinates(picked.as_slice(), operands, spot.scope)?;
                // The matrix as the tile that it is: its modes in their order.
                let tile = match modes[0] < modes[1] {
                    true => d,
                    false => self.writer.apply(spot, Operation::Transpose(vec![1, 0]), &[d])?,
                };
                let tile = self.writer.reshape(spot, tile, shape)?;
                self.loaded(operation, tile, rows, spot)
            }
            Operation::Unary(function) => self.unary(*function, (result, operands[0]), d, spot),
            Operation::Binary(function) => self.binary(*function, (result, [operands[0], operands[1]]), d, spot),
            Operation::MultiplyAdd => {
                self.product([operands[0], operands[1]], d, spot)?;
                self.add(operands[2], d, spot)
            }
            Operation::Select(comparison) => {
                let sides = [self.primal(operands[0], spot.scope)?, self.primal(operands[1], spot.scope)?];
                let zero = self.zero_like(d, spot)?;
                for (value, both) in [(operands[2], [d, zero]), (operands[3], [zero, d])] {
                    if self.is_active(value) {
                        let own = self.writer.select(spot, (*comparison, sides), both)?;
                        self.add(value, own, spot)?;
                    }
                }
                Ok(())
            }
            Operation::To(_) | Operation::Atom(_) | Operation::Held(_) => self.add(operands[0], d, spot),
            Operation::Broadcast(_) => self.reverse_broadcast(operands[0], d, spot),
            Operation::Reshape(_) => {
                let shape = self.source.type_of(operands[0]).shape.clone();
                let own = self.writer.reshape(spot, d, &shape)?;
                self.add(operands[0], own, spot)
            }
            Operation::Transpose(order) => {
                let mut back = vec![0; order.len()];
                order.iter().enumerate().for_each(|(mode, from)| back[*from] = mode);
                let own = self.writer.apply(spot, Operation::Transpose(back), &[d])?;
                self.add(operands[0], own, spot)
            }
            Operation::Reduce(Reduction::Sum, _) => {
                let shape = self.source.type_of(operands[0]).shape.clone();
                let own = self.writer.broadcast(spot, d, &shape)?;
                self.add(operands[0], own, spot)
            }
            Operation::Reduce(Reduction::Minimum | Reduction::Maximum, modes) => {
                let (tile, extreme) = (self.primal(operands[0], spot.scope)?, self.primal(result, spot.scope)?);
                let shape = self.source.type_of(operands[0]).shape.clone();
                let extreme = self.writer.broadcast(spot, extreme, &shape)?;
                let [one, zero] = [1.0, 0.0].map(|value| self.writer.full_like(spot, tile, value));
                let (one, zero) = (one?, zero?);
                let equal = self.writer.select(spot, (Comparison::Equal, [tile, extreme]), [one, zero])?;
                let count = self.writer.sum(spot, equal, modes)?;
                let share = self.writer.binary(spot, Binary::Divide, [d, count])?;
                let share = self.writer.broadcast(spot, share, &shape)?;
                let own = self.writer.select(spot, (Comparison::Equal, [tile, extreme]), [share, zero])?;
                self.add(operands[0], own, spot)
            }
            // The sum of the elements after each one, along the mode: the sum of all, minus the
            // elements before it.
            Operation::Scan(Reduction::Sum, mode) => {
                self.reverse_scan(Operation::ScanBefore(Reduction::Sum, *mode), (operands[0], *mode), d, spot)
            }
            Operation::ScanBefore(Reduction::Sum, mode) => {
                self.reverse_scan(Operation::Scan(Reduction::Sum, *mode), (operands[0], *mode), d, spot)
            }
            Operation::Dot => self.reverse_dot(operands, d, spot),
            Operation::Top(..) => Err(self.refuse(unknown("the largest elements of a tile"), spot.place)),
            Operation::Reduce(Reduction::Product, _) => Err(self.refuse(unknown("a product along a mode"), spot.place)),
            Operation::Scan(..) | Operation::ScanBefore(..) => {
                Err(self.refuse(unknown("a scan other than of sums"), spot.place))
            }
            Operation::Recast(_) => Err(self.refuse(unknown("a number with the bits of another type"), spot.place)),
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

    /// Modes, with the tiles that hold the coordinates along them.
    pub(super) fn coordinates(
        &mut self,
        modes: &[usize],
        operands: &[ValueId],
        scope: ScopeId,
    ) -> Result<Vec<(usize, ValueId)>, TileError> {
        let one = |(mode, rows): (&usize, &ValueId)| Ok((*mode, self.primal(*rows, scope)?));
        modes.iter().zip(operands).map(one).collect()
    }

    fn zero_like(&mut self, value: ValueId, spot: Spot) -> Result<ValueId, TileError> {
        self.writer.full_like(spot, value, 0.0)
    }

    /// Adds to both operands of a product.
    fn product(&mut self, [a, b]: [ValueId; 2], d: ValueId, spot: Spot) -> Result<(), TileError> {
        for (own, other) in [(a, b), (b, a)] {
            if self.is_active(own) {
                let other = self.primal(other, spot.scope)?;
                let by = self.writer.binary(spot, Binary::Multiply, [d, other])?;
                self.add(own, by, spot)?;
            }
        }
        Ok(())
    }

    /// A derivative times a power, and 0 where the derivative is 0. The power may be infinite
    /// there: the slope of `1 / (1 + exp(-x))` at a small `x` is 0 times infinity, and is 0.
    fn times_power(&mut self, d: ValueId, power: ValueId, spot: Spot) -> Result<ValueId, TileError> {
        let zero = self.zero_like(d, spot)?;
        let product = self.writer.binary(spot, Binary::Multiply, [d, power])?;
        self.writer.select(spot, (Comparison::Equal, [d, zero]), [zero, product])
    }

    fn unary(
        &mut self,
        function: Unary,
        (result, operand): (ValueId, ValueId),
        d: ValueId,
        spot: Spot,
    ) -> Result<(), TileError> {
        let (x, y) = (self.primal(operand, spot.scope)?, self.primal(result, spot.scope)?);
        let times = |own: &mut Self, a, b| own.writer.binary(spot, Binary::Multiply, [a, b]);
        let own = match function {
            Unary::Negate => self.writer.unary(spot, Unary::Negate, d)?,
            Unary::Abs => {
                let zero = self.zero_like(d, spot)?;
                let less = self.writer.unary(spot, Unary::Negate, d)?;
                // 0 times the number: 0 at 0, and NaN at NaN.
                let neither = times(self, d, x)?;
                let more = self.writer.select(spot, (Comparison::Less, [zero, x]), [d, neither])?;
                self.writer.select(spot, (Comparison::Less, [x, zero]), [less, more])?
            }
            Unary::Exp => self.times_power(d, y, spot)?,
            Unary::Exp2 => {
                let by = self.times_power(d, y, spot)?;
                self.writer.scaled(spot, by, LN_2)?
            }
            Unary::Log2 => {
                let by = self.writer.binary(spot, Binary::Divide, [d, x])?;
                self.writer.scaled(spot, by, 1.0 / LN_2)?
            }
            Unary::Sqrt => {
                let half = self.writer.scaled(spot, d, 0.5)?;
                self.writer.binary(spot, Binary::Divide, [half, y])?
            }
            Unary::Rsqrt => {
                let square = times(self, y, y)?;
                let cube = times(self, square, y)?;
                let by = times(self, d, cube)?;
                self.writer.scaled(spot, by, -0.5)?
            }
            Unary::Recip => {
                let square = times(self, y, y)?;
                let by = times(self, d, square)?;
                self.writer.unary(spot, Unary::Negate, by)?
            }
            Unary::Tanh => {
                let square = times(self, y, y)?;
                let by = times(self, d, square)?;
                self.writer.binary(spot, Binary::Subtract, [d, by])?
            }
            Unary::Log => self.writer.binary(spot, Binary::Divide, [d, x])?,
            Unary::Sin => {
                let cosine = self.writer.unary(spot, Unary::Cos, x)?;
                times(self, d, cosine)?
            }
            Unary::Cos => {
                let sine = self.writer.unary(spot, Unary::Sin, x)?;
                let by = times(self, d, sine)?;
                self.writer.unary(spot, Unary::Negate, by)?
            }
            Unary::Erf => {
                let square = times(self, x, x)?;
                let less = self.writer.unary(spot, Unary::Negate, square)?;
                let density = self.writer.unary(spot, Unary::Exp, less)?;
                let by = times(self, d, density)?;
                self.writer.scaled(spot, by, FRAC_2_SQRT_PI)?
            }
            // Rounding to tf32 counts as a conversion.
            Unary::Tf32 => d,
            // A function that rounds to a whole number is constant between jumps.
            Unary::Floor | Unary::Ceil | Unary::Round => return Ok(()),
        };
        self.add(operand, own, spot)
    }

    fn binary(
        &mut self,
        function: Binary,
        (result, [a, b]): (ValueId, [ValueId; 2]),
        d: ValueId,
        spot: Spot,
    ) -> Result<(), TileError> {
        match function {
            Binary::Add => {
                self.add(a, d, spot)?;
                self.add(b, d, spot)
            }
            Binary::Subtract => {
                self.add(a, d, spot)?;
                if self.is_active(b) {
                    let less = self.writer.unary(spot, Unary::Negate, d)?;
                    self.add(b, less, spot)?;
                }
                Ok(())
            }
            Binary::Multiply => self.product([a, b], d, spot),
            Binary::Divide => {
                let divisor = self.primal(b, spot.scope)?;
                let by = self.writer.binary(spot, Binary::Divide, [d, divisor])?;
                self.add(a, by, spot)?;
                if self.is_active(b) {
                    let quotient = self.primal(result, spot.scope)?;
                    let by = self.writer.binary(spot, Binary::Multiply, [by, quotient])?;
                    let less = self.writer.unary(spot, Unary::Negate, by)?;
                    self.add(b, less, spot)?;
                }
                Ok(())
            }
            Binary::Minimum | Binary::Maximum => {
                let sides = [self.primal(a, spot.scope)?, self.primal(b, spot.scope)?];
                let zero = self.zero_like(d, spot)?;
                let half = self.writer.scaled(spot, d, 0.5)?;
                let both = self.writer.select(spot, (Comparison::Equal, sides), [half, d])?;
                // The operand that is taken gets all.
                let [x, y] = sides;
                let ordered = if function == Binary::Maximum { [x, y] } else { [y, x] };
                for (own, [less, more]) in [(a, ordered), (b, [ordered[1], ordered[0]])] {
                    if self.is_active(own) {
                        let own_part = self.writer.select(spot, (Comparison::Less, [less, more]), [zero, both])?;
                        self.add(own, own_part, spot)?;
                    }
                }
                Ok(())
            }
            // Bitwise operations have integer operands.
            _ => Ok(()),
        }
    }

    fn reverse_broadcast(&mut self, operand: ValueId, d: ValueId, spot: Spot) -> Result<(), TileError> {
        let from = self.source.type_of(operand).shape.clone();
        let to = self.writer.type_of(d).shape.clone();
        let modes: Vec<usize> = match from.is_empty() {
            true => (0..to.len()).collect(),
            false => (0..to.len()).filter(|mode| from[*mode] != to[*mode]).collect(),
        };
        let mut inside = d;
        for mode in &modes {
            inside = self.inside(inside, *mode, spot)?;
        }
        let sum = self.writer.sum(spot, inside, &modes)?;
        let own = self.writer.reshape(spot, sum, &from)?;
        self.add(operand, own, spot)
    }

    fn reverse_scan(
        &mut self,
        before: Operation,
        (operand, mode): (ValueId, usize),
        d: ValueId,
        spot: Spot,
    ) -> Result<(), TileError> {
        let shape = self.writer.type_of(d).shape.clone();
        let all = self.writer.sum(spot, d, &[mode])?;
        let all = self.writer.broadcast(spot, all, &shape)?;
        let before = self.writer.apply(spot, before, &[d])?;
        let own = self.writer.binary(spot, Binary::Subtract, [all, before])?;
        self.add(operand, own, spot)
    }

    /// `dA = d Bᵀ`, `dB = Aᵀ d`, with `d` rounded to the type of the operands, f32 to tf32; 8-bit
    /// operands are multiplied as bf16, in which they are exact.
    fn reverse_dot(&mut self, operands: &[ValueId], d: ValueId, spot: Spot) -> Result<(), TileError> {
        let [a, b, c] = operands else { return Ok(()) };
        self.add(*c, d, spot)?;
        let element = match self.source.type_of(*a).element {
            own @ (Element::F16 | Element::F32) => own,
            _ => Element::Bf16,
        };
        for (own, other, from_left) in [(*a, *b, false), (*b, *a, true)] {
            if !self.is_active(own) {
                continue;
            }
            // The sum runs over the rows of d, or over its columns.
            let inside = self.inside(d, usize::from(!from_left), spot)?;
            let d = match element {
                Element::F32 => self.writer.unary(spot, Unary::Tf32, inside)?,
                _ => self.writer.to(spot, inside, element)?,
            };
            let other = self.primal(other, spot.scope)?;
            let other = self.writer.to(spot, other, element)?;
            let other = self.writer.apply(spot, Operation::Transpose(vec![1, 0]), &[other])?;
            let shape = self.source.type_of(own).shape.clone();
            let zero = self.writer.full(spot, &shape, 0.0)?;
            let operands = if from_left { [other, d] } else { [d, other] };
            let product = self.writer.apply(spot, Operation::Dot, &[operands[0], operands[1], zero])?;
            self.add(own, product, spot)?;
        }
        Ok(())
    }
}

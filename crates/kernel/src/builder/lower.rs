//! Lowers expressions of the layout algebra to instructions.
//!
//! Law: the register has the value of the expression for all sizes that the facts admit. An
//! expression that depends only on sizes is passed at launch. Numbers are computed in 32 bits if
//! the facts prove that all of them fit.

use tilewright_layout::symbolic::{Expr, Node, Rounding};
use tilewright_layout::{Extent, Stride};

use super::core::Core;
use crate::error::Reason;
use crate::program::operation::{Binary, Comparison, Format, Number, Operation, Rounding as Round};
use crate::program::register::{Register, Width};
use crate::program::scalar::Scalar;

/// Whether every value of an expression fits in a signed 32-bit integer.
pub(super) fn fits(expr: &Expr) -> bool {
    matches!(expr.range(), (Some(least), Some(greatest))
        if least >= i64::from(i32::MIN) && greatest <= i64::from(i32::MAX))
}

fn overflow() -> Reason {
    Reason::Layout(tilewright_layout::LayoutError::Expression { op: "index" })
}

/// The expression of a node.
fn expr_of(node: &Node) -> Option<Expr> {
    with(node, &|_| None)
}

/// The expression of a node, with some nodes replaced by other expressions.
pub(super) fn with(node: &Node, other: &dyn Fn(&Node) -> Option<Expr>) -> Option<Expr> {
    if let Some(other) = other(node) {
        return Some(other);
    }
    let expr_of = |node: &Node| with(node, other);
    Some(match node {
        Node::Integer(value) => Expr::from(*value),
        Node::Parameter(parameter) => Expr::from(parameter.clone()),
        Node::Sum(nodes) => nodes.iter().try_fold(Expr::from(0), |sum, node| Stride::plus(&sum, &expr_of(node)?))?,
        Node::Product(nodes) => {
            nodes.iter().try_fold(Expr::from(1), |product, node| Stride::times(&product, &expr_of(node)?))?
        }
        Node::Quotient(n, d, Rounding::Up) => expr_of(n)?.divide_up(&expr_of(d)?)?,
        Node::Quotient(n, d, Rounding::TowardZero) => Extent::divide(&expr_of(n)?, &expr_of(d)?)?.0,
        Node::Quotient(n, d, _) => expr_of(n)?.floor_div(&expr_of(d)?)?,
        Node::Remainder(n, d, Rounding::TowardZero) => Extent::divide(&expr_of(n)?, &expr_of(d)?)?.1,
        Node::Remainder(n, d, _) => {
            let (n, d) = (expr_of(n)?, expr_of(d)?);
            let quotient = n.floor_div(&d)?;
            n.minus(&quotient.times(&d)?)?
        }
        Node::Minimum(a, b) => expr_of(a)?.minimum(&expr_of(b)?)?,
    })
}

/// The signed integer type for indices of a width.
fn signed(width: Width) -> Number {
    if width == Width::Bits32 { Number::I32 } else { Number::I64 }
}

impl Core {
    /// The 32-bit index that a register holds, if it is one. Several indices may share the register
    /// because they are equal; then the smallest expression.
    pub(super) fn index_in(&self, register: Register) -> Option<Expr> {
        let all = self.scopes.iter().flat_map(|scope| &scope.expressions);
        let held = all.filter(|((_, width), own)| *width == Width::Bits32 && **own == register);
        held.map(|((index, _), _)| index).min().cloned()
    }

    /// The quotient of a non-negative 32-bit number by a constant.
    pub(super) fn divided(&mut self, register: Register, by: i64) -> Register {
        let by = by as u64;
        if by == 1 {
            return register;
        }
        if by.is_power_of_two() {
            let shift = self.constant(u64::from(by.trailing_zeros()), Width::Bits32);
            return self.pure(Operation::Binary(Binary::ShiftRight, Number::U32), [register, shift], Width::Bits32);
        }
        let (multiplier, shift) = crate::program::scalar::reciprocal(by as u32);
        let multiplier = self.constant(u64::from(multiplier), Width::Bits32);
        let high =
            self.pure(Operation::Binary(Binary::MultiplyHigh, Number::U32), [register, multiplier], Width::Bits32);
        let shift = self.constant(u64::from(shift), Width::Bits32);
        self.pure(Operation::Binary(Binary::ShiftRight, Number::U32), [high, shift], Width::Bits32)
    }

    /// The remainder of a non-negative 32-bit number by a constant.
    pub(super) fn reduced(&mut self, register: Register, by: i64) -> Register {
        if (by as u64).is_power_of_two() {
            let mask = self.constant(by as u64 - 1, Width::Bits32);
            return self.pure(Operation::Binary(Binary::And, Number::U32), [register, mask], Width::Bits32);
        }
        let quotient = self.divided(register, by);
        let back = self.constant((-by) as u32 as u64, Width::Bits32);
        self.pure(Operation::MultiplyAdd(Number::I32), [quotient, back, register], Width::Bits32)
    }

    /// The register with the value of an expression. It has 32 bits only if the value fits.
    pub(crate) fn lower(&mut self, expr: &Expr, width: Width) -> Result<Register, Reason> {
        self.lower_node(&expr.node(), width)
    }

    fn lower_node(&mut self, node: &Node, width: Width) -> Result<Register, Reason> {
        let expr = expr_of(node).ok_or_else(overflow)?;
        if let Some(known) = expr.known() {
            if width == Width::Bits32 && i32::try_from(known).is_err() {
                let because = format!("threads count in 32 bits with a sign, from {} to {}", i32::MIN, i32::MAX);
                return Err(Reason::Instruction { name: known.to_string(), because });
            }
            let bits = if width == Width::Bits32 { u64::from(known as u32) } else { known as u64 };
            return Ok(self.constant(bits, width));
        }
        if self.is_launched(&expr) {
            return Ok(self.scalar(Scalar::Size { value: expr, bits: width.bits() }));
        }
        // Numbers that fit are computed in 32 bits, and extended at the end.
        if width == Width::Bits64 && fits(&expr) {
            let narrow = self.lower_node(node, Width::Bits32)?;
            let from = if matches!(expr.range().0, Some(0..)) { Number::U32 } else { Number::I32 };
            let to = if from == Number::U32 { Number::U64 } else { Number::I64 };
            let convert =
                Operation::Convert { from: Format::Number(from), to: Format::Number(to), rounding: Round::Zero };
            return Ok(self.pure(convert, [narrow], Width::Bits64));
        }
        let key = (expr.clone(), width);
        if let Some(known) = self.scopes.iter().find_map(|scope| scope.expressions.get(&key)) {
            return Ok(*known);
        }
        if width == Width::Bits32 {
            self.narrowed(&expr);
        }
        let register = self.computed(node, width)?;
        let home = self.home(register);
        self.scopes[home].expressions.insert(key, register);
        Ok(register)
    }

    /// Computes an expression in 32 bits. If the facts do not prove that its minimum and maximum
    /// fit, that is checked at launch.
    fn narrowed(&mut self, expr: &Expr) {
        if fits(expr) {
            return;
        }
        for greatest in [true, false] {
            let end = self.extreme(expr, greatest);
            if !fits(&end) && self.is_launched(&end) && !self.narrow.contains(&end) {
                self.narrow.push(end);
            }
        }
    }

    fn computed(&mut self, node: &Node, width: Width) -> Result<Register, Reason> {
        let signed = signed(width);
        match node {
            Node::Integer(value) => Ok(self.constant(*value as u64, width)),
            Node::Parameter(parameter) => match self.variable(parameter) {
                // Variables have 32 bits, and are widened where they are used.
                Some(variable) if self.home(variable.register) > self.depth() => {
                    Err(Reason::Over { index: expr_of(node).ok_or_else(overflow)?.to_string() })
                }
                Some(variable) => Ok(variable.register),
                None => Ok(self.scalar(Scalar::Size { value: Expr::from(parameter.clone()), bits: width.bits() })),
            },
            Node::Sum(nodes) => self.sum(nodes, width),
            Node::Product(nodes) => self.product(nodes, width),
            Node::Quotient(n, d, rounding) => self.quotient(n, d, *rounding, width),
            Node::Remainder(n, d, rounding) => {
                let (n_expr, d_expr) = (expr_of(n).ok_or_else(overflow)?, expr_of(d).ok_or_else(overflow)?);
                if let (Some(by), Some(0..), true) = (d_expr.known(), n_expr.range().0, fits(&n_expr)) {
                    let n = self.lower_node(n, Width::Bits32)?;
                    let rest = self.reduced(n, by);
                    return Ok(self.widened(rest, width));
                }
                let quotient = self.quotient(n, d, *rounding, width)?;
                let (n, d) = (self.lower_node(n, width)?, self.lower_node(d, width)?);
                let product = self.pure(Operation::Binary(Binary::Multiply, signed), [quotient, d], width);
                Ok(self.pure(Operation::Binary(Binary::Subtract, signed), [n, product], width))
            }
            Node::Minimum(a, b) => {
                let (a, b) = (self.lower_node(a, width)?, self.lower_node(b, width)?);
                Ok(self.pure(Operation::Binary(Binary::Minimum, signed), [a, b], width))
            }
        }
    }

    fn sum(&mut self, nodes: &[Node], width: Width) -> Result<Register, Reason> {
        // Constants of the launch are combined into one number. Terms that exist in outer bodies
        // come first, so that they are computed there. Numbers of the launch come last, and then
        // the constant: sums that differ by it share the rest, and take one register in outer
        // bodies instead of one each.
        let mut launched = Expr::from(0);
        let mut registers = Vec::new();
        for node in nodes {
            let expr = expr_of(node).ok_or_else(overflow)?;
            if self.is_launched(&expr) {
                launched = Stride::plus(&launched, &expr).ok_or_else(overflow)?;
            } else {
                registers.push(self.lower_node(node, width)?);
            }
        }
        registers.sort_by_key(|register| self.home(*register));
        if launched.known() != Some(0) {
            registers.push(self.lower(&launched, width)?);
        }
        let mut registers = registers.into_iter();
        let mut sum = registers.next().ok_or_else(overflow)?;
        for next in registers {
            sum = self.pure(Operation::Binary(Binary::Add, signed(width)), [sum, next], width);
        }
        Ok(sum)
    }

    fn product(&mut self, nodes: &[Node], width: Width) -> Result<Register, Reason> {
        let mut launched = Expr::from(1);
        let mut moving: Option<(Expr, Vec<&Node>)> = None;
        for node in nodes {
            let expr = expr_of(node).ok_or_else(overflow)?;
            if self.is_launched(&expr) {
                launched = Stride::times(&launched, &expr).ok_or_else(overflow)?;
            } else {
                let (product, parts) = moving.get_or_insert((Expr::from(1), Vec::new()));
                *product = Stride::times(product, &expr).ok_or_else(overflow)?;
                parts.push(node);
            }
        }
        let Some((moving, parts)) = moving else { return self.lower(&launched, width) };
        if launched.known() != Some(1) {
            let factor = if parts.len() == 1 { (parts[0].clone(), parts[0]) } else { (moving.node(), parts[0]) };
            return self.multiplied(&factor.0, &moving, &launched, width);
        }
        let mut product = self.lower_node(parts[0], width)?;
        for node in &parts[1..] {
            let next = self.lower_node(node, width)?;
            product = self.pure(Operation::Binary(Binary::Multiply, signed(width)), [product, next], width);
        }
        Ok(product)
    }

    /// A non-negative 32-bit number, extended to the wanted width.
    fn widened(&mut self, register: Register, width: Width) -> Register {
        if self.width(register) == width {
            return register;
        }
        let convert = Operation::Convert {
            from: Format::Number(Number::U32),
            to: Format::Number(Number::U64),
            rounding: Round::Zero,
        };
        self.pure(convert, [register], Width::Bits64)
    }

    /// The product of an expression of blocks, threads and iterations, and an expression that the
    /// launch computes.
    fn multiplied(&mut self, node: &Node, moving: &Expr, launched: &Expr, width: Width) -> Result<Register, Reason> {
        if width == Width::Bits32 {
            let factor = self.lower_node(node, width)?;
            if let Some(by) = launched.known().filter(|by| *by > 0 && (*by as u64).is_power_of_two()) {
                let shift = self.constant(u64::from(by.trailing_zeros()), Width::Bits32);
                return Ok(self.pure(Operation::Binary(Binary::ShiftLeft, Number::U32), [factor, shift], width));
            }
            let by = self.lower(launched, width)?;
            return Ok(self.pure(Operation::Binary(Binary::Multiply, Number::I32), [factor, by], width));
        }
        // Two numbers of 32 bits have a product of 64 in one instruction.
        if fits(moving) && fits(launched) {
            let (factor, by) = (self.lower_node(node, Width::Bits32)?, self.lower(launched, Width::Bits32)?);
            return Ok(self.pure(Operation::Binary(Binary::MultiplyWide, Number::I32), [factor, by], width));
        }
        let (factor, by) = (self.lower_node(node, width)?, self.lower(launched, width)?);
        Ok(self.pure(Operation::Binary(Binary::Multiply, Number::I64), [factor, by], width))
    }

    fn quotient(&mut self, n: &Node, d: &Node, rounding: Rounding, width: Width) -> Result<Register, Reason> {
        let (n_expr, d_expr) = (expr_of(n).ok_or_else(overflow)?, expr_of(d).ok_or_else(overflow)?);
        let not_negative = matches!(n_expr.range().0, Some(0..));
        let up = rounding == Rounding::Up;
        if not_negative && fits(&n_expr) && !up {
            if let Some(by) = d_expr.known() {
                let n = self.lower_node(n, Width::Bits32)?;
                let quotient = self.divided(n, by);
                return Ok(self.widened(quotient, width));
            }
            if self.is_launched(&d_expr) && fits(&d_expr) {
                let n = self.lower_node(n, Width::Bits32)?;
                let multiplier = self.scalar(Scalar::Multiplier { divisor: d_expr.clone() });
                let shift = self.scalar(Scalar::Shift { divisor: d_expr.clone() });
                let high = Operation::Binary(Binary::MultiplyHigh, Number::U32);
                let high = self.pure(high, [n, multiplier], Width::Bits32);
                let mut quotient =
                    self.pure(Operation::Binary(Binary::ShiftRight, Number::U32), [high, shift], Width::Bits32);
                if d_expr.range().0.is_none_or(|least| least < 2) {
                    let zero = self.constant(0, Width::Bits32);
                    let compare = Operation::Compare(Comparison::Equal, Number::U32);
                    let one = self.pure(compare, [multiplier, zero], Width::Predicate);
                    quotient = self.pure(Operation::Select, [one, n, quotient], Width::Bits32);
                }
                return Ok(self.widened(quotient, width));
            }
        }
        let number = if width == Width::Bits32 { Number::I32 } else { Number::I64 };
        let (mut n, d) = (self.lower_node(n, width)?, self.lower_node(d, width)?);
        if up {
            let one = self.constant(1, width);
            let last = self.pure(Operation::Binary(Binary::Subtract, number), [d, one], width);
            n = self.pure(Operation::Binary(Binary::Add, number), [n, last], width);
        }
        if rounding == Rounding::Down && !not_negative {
            return Err(Reason::Instruction {
                name: n_expr.to_string(),
                because: "an index that may be negative is divided".to_string(),
            });
        }
        Ok(self.pure(Operation::Binary(Binary::Divide, number), [n, d], width))
    }
}

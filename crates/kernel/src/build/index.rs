//! Expressions of the algebra as instructions, and what is known about them.
//!
//! Law: the register has the value of the expression for all sizes that the facts admit. What
//! depends on sizes alone is a number that the launch passes. Numbers are computed in 32 bits
//! wherever the facts show that all of them fit.

use tilewright_layout::symbolic::{Expr, Facts, Node, Parameter, Rounding, Symbolic, Values};
use tilewright_layout::{Extent, Stride, Truth};

use super::core::{Core, Variable};
use crate::error::Reason;
use crate::program::operation::{Axis, Binary, Comparison, Format, Number, Operation, Rounding as Round, Special};
use crate::program::register::{Register, Width};
use crate::program::scalar::Scalar;

/// Whether every value of an expression fits into 32 bits with a sign.
pub(super) fn fits(expr: &Expr) -> bool {
    matches!(expr.range(), (Some(least), Some(greatest))
        if least >= i64::from(i32::MIN) && greatest <= i64::from(i32::MAX))
}

fn overflow() -> Reason {
    Reason::TooMuch { what: "terms in an index", asked: 257, limit: 256 }
}

/// The expression that a node is.
fn expr_of(node: &Node) -> Option<Expr> {
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

impl Core {
    /// Whether an expression depends on sizes alone.
    pub(crate) fn is_launched(&self, expr: &Expr) -> bool {
        expr.parameters().iter().all(|parameter| self.variable(parameter).is_none())
    }

    /// A variable of the algebra whose value is in a register: at least 0, at most `greatest`, and
    /// less than `below`.
    pub(crate) fn new_variable(&mut self, register: Register, greatest: i64, below: Option<Expr>) -> Expr {
        let facts = Facts::integer().at_least(0).and_then(|facts| facts.at_most(greatest.max(0)));
        let parameter = Parameter::anonymous(facts.unwrap_or(Facts::integer()));
        if greatest > 0 {
            self.variables.push(Variable { parameter: parameter.clone(), below, register });
        }
        Expr::from(parameter)
    }

    /// The number of the thread in its role, or in its block.
    pub(crate) fn thread(&mut self) -> Result<Expr, Reason> {
        if let Some(team) = &self.team {
            return Ok(team.thread.clone());
        }
        let help = "say how many threads a block has: `k.threads(256)`, or use a tiled copy or product first";
        let threads = self.threads.ok_or(Reason::Unsaid { what: "the number of threads", help })?;
        if let Some(number) = self.thread {
            return Ok(Expr::from(self.variables[number].parameter.clone()));
        }
        let register = self.special(Special::Thread);
        let thread = self.new_variable(register, i64::from(threads) - 1, None);
        if threads > 1 {
            self.thread = Some(self.variables.len() - 1);
        }
        Ok(thread)
    }

    /// The number of the block along an axis.
    pub(crate) fn block(&mut self, axis: Axis) -> Expr {
        if let Some(number) = self.blocks[axis as usize] {
            return Expr::from(self.variables[number].parameter.clone());
        }
        let register = self.special(Special::Block(axis));
        let count = self.grid[axis as usize].clone();
        let greatest = count.as_ref().and_then(Extent::known).unwrap_or(i64::from(i32::MAX)) - 1;
        let block = self.new_variable(register, greatest, count);
        if greatest > 0 {
            self.blocks[axis as usize] = Some(self.variables.len() - 1);
        }
        block
    }

    /// Says how many blocks there are along an axis.
    pub(crate) fn say_blocks(&mut self, axis: Axis, count: &Expr) -> Result<(), Reason> {
        match &self.grid[axis as usize] {
            None => {
                self.grid[axis as usize] = Some(count.clone());
                if let Some(number) = self.blocks[axis as usize] {
                    self.variables[number].below = Some(count.clone());
                }
                Ok(())
            }
            Some(known) if known.same(count) == Truth::Proved => Ok(()),
            Some(known) => Err(Reason::Twice {
                what: format!("the number of blocks along {axis:?}"),
                first: known.to_string(),
                second: count.to_string(),
            }),
        }
    }

    /// The digit `(number / divisor) % modulus` of a number, as a variable; the number itself where
    /// it has no other digits.
    pub(crate) fn digit(&mut self, number: &Expr, divisor: i64, modulus: i64) -> Result<Expr, Reason> {
        if modulus == 1 {
            return Ok(Expr::from(0));
        }
        if let Some(known) = number.known() {
            return Ok(Expr::from((known / divisor) % modulus));
        }
        let whole = matches!(number.range(), (Some(0..), Some(greatest)) if greatest / divisor < modulus);
        if divisor == 1 && whole {
            return Ok(number.clone());
        }
        let key = (number.clone(), divisor, modulus);
        if let Some(known) = self.digits.get(&key) {
            return Ok(known.clone());
        }
        let register = self.outermost(|core| {
            let register = core.lower(number, Width::Bits32)?;
            let register = core.divided(register, divisor);
            Ok::<_, Reason>(if whole { register } else { core.reduced(register, modulus) })
        })?;
        let digit = self.new_variable(register, modulus - 1, None);
        self.digits.insert(key, digit.clone());
        Ok(digit)
    }

    /// `number / divisor`, as a variable.
    pub(crate) fn rest(&mut self, number: &Expr, divisor: i64) -> Result<Expr, Reason> {
        if let Some(known) = number.known() {
            return Ok(Expr::from(known / divisor));
        }
        let (Some(0..), Some(greatest)) = number.range() else {
            return Err(Reason::Open { what: "the range", layout: number.to_string() });
        };
        if greatest > i64::from(i32::MAX) {
            let (asked, limit) = (greatest.unsigned_abs(), i32::MAX as u64);
            return Err(Reason::TooMuch { what: "values of an index", asked, limit });
        }
        let key = (number.clone(), divisor, 0);
        if let Some(known) = self.digits.get(&key) {
            return Ok(known.clone());
        }
        let register = self.outermost(|core| {
            let register = core.lower(number, Width::Bits32)?;
            Ok::<_, Reason>(core.divided(register, divisor))
        })?;
        let rest = self.new_variable(register, greatest / divisor, None);
        self.digits.insert(key, rest.clone());
        Ok(rest)
    }

    /// The greatest value of an index of which bits are taken.
    fn greatest_of_bits(index: &Expr) -> Result<i64, Reason> {
        match index.range() {
            (Some(0..), Some(greatest)) if greatest <= i64::from(i32::MAX) => Ok(greatest),
            (Some(0..), Some(greatest)) => {
                let (asked, limit) = (greatest.unsigned_abs(), i32::MAX as u64);
                Err(Reason::TooMuch { what: "values of an index", asked, limit })
            }
            _ => Err(Reason::Open { what: "the range", layout: index.to_string() }),
        }
    }

    /// The exclusive or of the columns of the bits of an index, as a variable. Bits that go equally
    /// far are moved together.
    pub(crate) fn over_bits(&mut self, index: &Expr, columns: &[u64]) -> Result<Expr, Reason> {
        let greatest = Core::greatest_of_bits(index)? as u64;
        let all = columns.iter().fold(0, |all, column| all | column);
        if all > i32::MAX as u64 {
            return Err(Reason::TooMuch { what: "values of an index", asked: all, limit: i32::MAX as u64 });
        }
        let columns = &columns[..columns.len().min((u64::BITS - greatest.leading_zeros()) as usize)];
        let chosen = |index: u64| {
            let bits = columns.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
            bits.fold(0, |sum, (_, column)| sum ^ column)
        };
        if let Some(known) = index.known() {
            return Ok(Expr::from(chosen(known as u64) as i64));
        }
        let register = self.lower(index, Width::Bits32)?;
        let logic = |core: &mut Core, operation: Binary, a: Register, b: Register| {
            core.pure(Operation::Binary(operation, Number::U32), [a, b], Width::Bits32)
        };
        let mut sum = None;
        for far in -31..31_i32 {
            let reached = |bit: usize| usize::try_from(bit as i32 + far).ok().filter(|to| *to < 31);
            let taken = columns
                .iter()
                .enumerate()
                .filter(|(bit, column)| reached(*bit).is_some_and(|to| *column >> to & 1 == 1));
            let taken = taken.fold(0_u64, |taken, (bit, _)| taken | 1 << bit);
            if taken == 0 {
                continue;
            }
            let mask = self.constant(taken, Width::Bits32);
            let mut part = logic(self, Binary::And, register, mask);
            if far != 0 {
                let by = self.constant(u64::from(far.unsigned_abs()), Width::Bits32);
                part = logic(self, if far < 0 { Binary::ShiftRight } else { Binary::ShiftLeft }, part, by);
            }
            sum = Some(match sum {
                None => part,
                Some(sum) => logic(self, Binary::Xor, sum, part),
            });
        }
        let all = columns.iter().fold(0, |all, column| all | column);
        Ok(sum.map_or(Expr::from(0), |sum| self.new_variable(sum, all as i64, None)))
    }

    /// The exclusive or of two indices, as a variable.
    pub(crate) fn exclusive_or(&mut self, a: &Expr, b: &Expr) -> Result<Expr, Reason> {
        let greatest = (Core::greatest_of_bits(a)? | Core::greatest_of_bits(b)?) as u64;
        if let (Some(a), Some(b)) = (a.known(), b.known()) {
            return Ok(Expr::from(a ^ b));
        }
        if a.known() == Some(0) || b.known() == Some(0) {
            return Ok(if a.known() == Some(0) { b.clone() } else { a.clone() });
        }
        let (a, b) = (self.lower(a, Width::Bits32)?, self.lower(b, Width::Bits32)?);
        let sum = self.pure(Operation::Binary(Binary::Xor, Number::U32), [a, b], Width::Bits32);
        let most = u64::MAX.checked_shr(greatest.leading_zeros()).unwrap_or(0);
        Ok(self.new_variable(sum, most as i64, None))
    }

    /// A number of 32 bits that is not negative, divided by a known one.
    fn divided(&mut self, register: Register, by: i64) -> Register {
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

    /// A number of 32 bits that is not negative, modulo a known one.
    fn reduced(&mut self, register: Register, by: i64) -> Register {
        if (by as u64).is_power_of_two() {
            let mask = self.constant(by as u64 - 1, Width::Bits32);
            return self.pure(Operation::Binary(Binary::And, Number::U32), [register, mask], Width::Bits32);
        }
        let quotient = self.divided(register, by);
        let back = self.constant((-by) as u32 as u64, Width::Bits32);
        self.pure(Operation::MultiplyAdd(Number::I32), [quotient, back, register], Width::Bits32)
    }

    /// The register that has the value of an expression; in 32 bits only if it fits.
    pub(crate) fn lower(&mut self, expr: &Expr, width: Width) -> Result<Register, Reason> {
        self.lower_node(&expr.node(), width)
    }

    fn lower_node(&mut self, node: &Node, width: Width) -> Result<Register, Reason> {
        let expr = expr_of(node).ok_or_else(overflow)?;
        if let Some(known) = expr.known() {
            let bits = if width == Width::Bits32 { u64::from(known as u32) } else { known as u64 };
            return Ok(self.constant(bits, width));
        }
        if self.is_launched(&expr) {
            return Ok(self.scalar(Scalar::Size { value: expr, bits: width.bits() }));
        }
        // What fits is computed in 32 bits, and extended at the end.
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
        let register = self.computed(node, width)?;
        let home = self.home(register);
        self.scopes[home].expressions.insert(key, register);
        Ok(register)
    }

    fn computed(&mut self, node: &Node, width: Width) -> Result<Register, Reason> {
        let signed = if width == Width::Bits32 { Number::I32 } else { Number::I64 };
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
            Node::Sum(nodes) => {
                // What the launch knows is one number; what exists in outer bodies comes first, so
                // that it is computed there.
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
                if launched.known() != Some(0) {
                    registers.push(self.lower(&launched, width)?);
                }
                registers.sort_by_key(|register| self.home(*register));
                let mut registers = registers.into_iter();
                let mut sum = registers.next().ok_or_else(overflow)?;
                for next in registers {
                    sum = self.pure(Operation::Binary(Binary::Add, signed), [sum, next], width);
                }
                Ok(sum)
            }
            Node::Product(nodes) => {
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
                    let factor =
                        if parts.len() == 1 { (parts[0].clone(), parts[0]) } else { (moving.node(), parts[0]) };
                    return self.multiplied(&factor.0, &moving, &launched, width);
                }
                let mut product = self.lower_node(parts[0], width)?;
                for node in &parts[1..] {
                    let next = self.lower_node(node, width)?;
                    product = self.pure(Operation::Binary(Binary::Multiply, signed), [product, next], width);
                }
                Ok(product)
            }
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

    /// A number of 32 bits that is not negative, in as many bits as asked for.
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

    /// The product of an expression over blocks, threads and turns, and one that the launch
    /// computes.
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

    /// The greatest value of an expression over all threads, blocks and turns, or the least, as an
    /// expression over the sizes and what is bounded by numbers alone.
    fn extreme(&self, expr: &Expr, greatest: bool) -> Expr {
        let mut expr = expr.clone();
        // Variables that came later may be bounded by earlier ones.
        for variable in self.variables.iter().rev() {
            let Some(last) = variable.below.as_ref().and_then(|below| below.minus(&Expr::from(1))) else { continue };
            let Some((base, slope)) = affine(&expr, &variable.parameter) else { continue };
            let rises = match slope.range() {
                (Some(0..), _) => true,
                (_, Some(..=0)) => false,
                _ => continue,
            };
            let end = if rises == greatest {
                Stride::times(&slope, &last).and_then(|part| Stride::plus(&base, &part))
            } else {
                Some(base)
            };
            expr = end.unwrap_or(expr);
        }
        expr
    }

    /// Whether one number is less than another in all threads, blocks and turns.
    pub(crate) fn is_less(&self, a: &Expr, b: &Expr) -> bool {
        a.less(b).proved() || self.extreme(a, true).less(b).proved()
    }

    /// Whether a number is 0 or more in all threads, blocks and turns.
    pub(crate) fn is_natural(&self, a: &Expr) -> bool {
        let below = Expr::from(-1);
        below.less(a).proved() || below.less(&self.extreme(a, false)).proved()
    }

    /// A predicate that is true where `0 <= a < b`.
    pub(crate) fn inside(&mut self, a: &Expr, b: &Expr) -> Result<Register, Reason> {
        if self.is_natural(a) {
            return self.less(a, b);
        }
        // A negative number is a large one without its sign.
        let narrow = fits(a) && fits(b);
        let (width, number) = if narrow { (Width::Bits32, Number::U32) } else { (Width::Bits64, Number::U64) };
        let (a, b) = (self.lower(a, width)?, self.lower(b, width)?);
        Ok(self.pure(Operation::Compare(Comparison::Less, number), [a, b], Width::Predicate))
    }

    /// A predicate that is true where `a < b`.
    pub(crate) fn less(&mut self, a: &Expr, b: &Expr) -> Result<Register, Reason> {
        let narrow = fits(a) && fits(b);
        let (width, number) = if narrow { (Width::Bits32, Number::I32) } else { (Width::Bits64, Number::I64) };
        let (a, b) = (self.lower(a, width)?, self.lower(b, width)?);
        Ok(self.pure(Operation::Compare(Comparison::Less, number), [a, b], Width::Predicate))
    }
}

/// `base` and `slope` of `expr = base + slope * parameter`; none where it is no such sum.
fn affine(expr: &Expr, parameter: &Parameter) -> Option<(Expr, Expr)> {
    if !expr.parameters().iter().any(|own| own.stands_for(parameter)) {
        return Some((expr.clone(), Expr::from(0)));
    }
    let at = |value: i64| {
        let mut values = Values::new();
        values.set(parameter, value);
        expr.substitute(&values).ok()
    };
    let base = at(0)?;
    let slope = at(1)?.minus(&base)?;
    let back = Stride::times(&slope, &Expr::from(parameter.clone())).and_then(|part| Stride::plus(&base, &part))?;
    (back == *expr).then_some((base, slope))
}

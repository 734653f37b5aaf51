//! Bounds of numbers over all threads, blocks and iterations; and predicates for cases in which
//! bounds do not suffice.
//!
//! Law: if a number is proved to be less than another one, that holds for all sizes that the facts
//! admit.

use tilewright_layout::symbolic::{Expr, Node, Parameter, Rounding, Symbolic, Values};
use tilewright_layout::{Extent, Stride};

use super::address::constant_term;
use super::core::Core;
use super::lower::{fits, with};
use crate::error::Reason;
use crate::program::operation::{self, Binary, Comparison, Format, Number, Operation};
use crate::program::register::{Register, Width};

impl Core {
    /// The maximum or minimum of an expression over all threads, blocks and iterations, as an
    /// expression over sizes and numbers with constant bounds.
    pub(super) fn extreme(&self, expr: &Expr, greatest: bool) -> Expr {
        let mut expr = expr.clone();
        // Later variables may be bounded by earlier ones.
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

    /// Whether one number is less than another in all threads, blocks and iterations.
    pub(crate) fn is_less(&self, a: &Expr, b: &Expr) -> bool {
        a.less(b).proved()
            || self.noted(self.extreme(a, true).less(b).proved(), Some(a), b)
            || self.is_quotient_less(a, b)
    }

    /// Whether a quotient by a positive number is less than `b`: its dividend is less than `b`
    /// times the divisor.
    fn is_quotient_less(&self, a: &Expr, b: &Expr) -> bool {
        let Node::Quotient(n, d, Rounding::Plain | Rounding::Down) = a.node() else { return false };
        let whole = |node: &Node| with(node, &|_| None);
        let (Some(n), Some(d)) = (whole(&n), whole(&d)) else { return false };
        let Some(end) = Stride::times(b, &d) else { return false };
        Expr::from(0).less(&d).proved() && self.is_natural(&n) && self.is_less(&n, &end)
    }

    /// Whether a number is at least another one in all threads, blocks and iterations.
    pub(crate) fn is_at_least(&self, a: &Expr, b: &Expr) -> bool {
        let Some(before) = b.minus(&Expr::from(1)) else { return false };
        before.less(a).proved() || self.noted(before.less(&self.extreme(a, false)).proved(), Some(&before), a)
    }

    /// Whether a number is 0 or more in all threads, blocks and iterations.
    pub(crate) fn is_natural(&self, a: &Expr) -> bool {
        let below = Expr::from(-1);
        below.less(a).proved() || is_remainder(a) || self.noted(below.less(&self.extreme(a, false)).proved(), None, a)
    }

    /// Records a fact that depends on a number of blocks that the author may still change: that one
    /// number is less than another, or that one is not negative.
    fn noted(&self, holds: bool, less: Option<&Expr>, than: &Expr) -> bool {
        if holds && self.may_change_blocks() {
            self.relied.borrow_mut().insert((less.cloned(), than.clone()));
        }
        holds
    }

    /// A predicate that is true where `0 <= a < b`.
    pub(crate) fn inside(&mut self, a: &Expr, b: &Expr) -> Result<Register, Reason> {
        if self.is_natural(a) {
            return self.less(a, b);
        }
        // As an unsigned number, a negative one is large.
        let narrow = fits(a) && fits(b);
        let (width, number) = if narrow { (Width::Bits32, Number::U32) } else { (Width::Bits64, Number::U64) };
        let (a, b) = (self.lower(a, width)?, self.lower(b, width)?);
        Ok(self.pure(Operation::Compare(Comparison::Less, number), [a, b], Width::Predicate))
    }

    /// A predicate that is true where `a < b`.
    pub(crate) fn less(&mut self, a: &Expr, b: &Expr) -> Result<Register, Reason> {
        let less = |number: Number| Operation::Compare(Comparison::Less, number);
        if fits(a) && fits(b) {
            let (a, b) = (self.lower(a, Width::Bits32)?, self.lower(b, Width::Bits32)?);
            return Ok(self.pure(less(Number::I32), [a, b], Width::Predicate));
        }
        if let Some((known, base)) = self.apart(a, b) {
            let room = self.room(&base, b)?;
            let known = self.constant(u64::from(known as u32), Width::Bits32);
            return Ok(self.pure(less(Number::I32), [known, room], Width::Predicate));
        }
        let (a, b) = (self.lower(a, Width::Bits64)?, self.lower(b, Width::Bits64)?);
        Ok(self.pure(less(Number::I64), [a, b], Width::Predicate))
    }

    /// Splits a number into a constant and the rest, if it can be compared with `b` through
    /// [`room`](Core::room). The constant is below the largest room, and neither the rest nor `b`
    /// is negative, so 64 bits hold their difference.
    fn apart(&self, a: &Expr, b: &Expr) -> Option<(i32, Expr)> {
        let known = i32::try_from(constant_term(a)?).ok().filter(|known| *known < i32::MAX)?;
        let base = a.minus(&Expr::from(i64::from(known)))?;
        (self.is_natural(&base) && self.is_natural(b)).then_some((known, base))
    }

    /// The difference of two numbers in 32 bits, saturated. Accesses that differ by constants share
    /// it, so each needs only a comparison.
    fn room(&mut self, from: &Expr, to: &Expr) -> Result<Register, Reason> {
        let (from, to) = (self.lower(from, Width::Bits64)?, self.lower(to, Width::Bits64)?);
        let mut room = self.pure(Operation::Binary(Binary::Subtract, Number::I64), [to, from], Width::Bits64);
        for (nearest, operation) in [(i32::MIN, Binary::Maximum), (i32::MAX, Binary::Minimum)] {
            let nearest = self.constant(i64::from(nearest) as u64, Width::Bits64);
            room = self.pure(Operation::Binary(operation, Number::I64), [room, nearest], Width::Bits64);
        }
        let narrow = Operation::Convert {
            from: Format::Number(Number::I64),
            to: Format::Number(Number::I32),
            rounding: operation::Rounding::Zero,
        };
        Ok(self.pure(narrow, [room], Width::Bits32))
    }
}

/// Whether an expression is the remainder of a division by a positive number, `a - d*floor(a/d)`,
/// in any form. Tiles of a raster band are counted in this way. The algebra writes a quotient of a
/// quotient as one quotient, so `floor(a/d)` may have another dividend; it is the same expression.
fn is_remainder(expr: &Expr) -> bool {
    let node = expr.node();
    let mut divisions = Vec::new();
    gather(&node, &mut divisions);
    let is_whole = |(n, d): (&Node, &Node)| {
        // The expression is linear in the quotient.
        let at = |value: i64| {
            with(&node, &|own| match own {
                Node::Quotient(a, b, Rounding::Plain | Rounding::Down) if (&**a, &**b) == (n, d) => {
                    Some(Expr::from(value))
                }
                Node::Remainder(a, b, Rounding::Plain | Rounding::Down) if (&**a, &**b) == (n, d) => {
                    with(a, &|_| None)?.minus(&Stride::times(&with(b, &|_| None)?, &Expr::from(value))?)
                }
                _ => None,
            })
        };
        let quotient = with(n, &|_| None)?.floor_div(&with(d, &|_| None)?)?;
        let dividend = at(0)?;
        let divisor = dividend.minus(&at(1)?)?;
        let again = dividend.minus(&Stride::times(&divisor, &quotient)?)?;
        let positive = Expr::from(0).less(&divisor).proved();
        Some(positive && again == *expr && dividend.floor_div(&divisor)? == quotient)
    };
    divisions.into_iter().any(|division| is_whole(division) == Some(true))
}

/// The dividends and divisors of the quotients and remainders of an expression.
fn gather<'n>(node: &'n Node, found: &mut Vec<(&'n Node, &'n Node)>) {
    match node {
        Node::Integer(_) | Node::Parameter(_) => {}
        Node::Sum(nodes) | Node::Product(nodes) => nodes.iter().for_each(|node| gather(node, found)),
        Node::Minimum(a, b) => [a, b].into_iter().for_each(|node| gather(node, found)),
        Node::Quotient(a, b, _) | Node::Remainder(a, b, _) => {
            if !found.contains(&(a, b)) {
                found.push((a, b));
            }
            [a, b].into_iter().for_each(|node| gather(node, found));
        }
    }
}

/// `base` and `slope` of `expr = base + slope * parameter`; None if the expression is not of this
/// form.
pub(super) fn affine(expr: &Expr, parameter: &Parameter) -> Option<(Expr, Expr)> {
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

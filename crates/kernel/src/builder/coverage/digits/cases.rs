//! Cases of a number. A case is a range of the number in which coordinates are sums of its digits.
//!
//! Law: let `x = n mod X` be a digit of a number, and let `floor(x / d)` be multiplied by other
//! terms of a coordinate, as a flag that selects one of several positions. For `x` from `v * d` up
//! to `(v + 1) * d`, or up to `X`, that quotient is `v`. These ranges are the cases. In each one:
//!
//! ```text
//! n = v * d + y + X * z,   y below u = min(d, X - v * d),   m = y + u * z
//! ```
//!
//! where `m` takes each value from 0 up to `u * units / X` once. If the coordinates are sums of
//! digits of `m` in each case, the positions of all numbers are covered if those of the cases are
//! disjoint and fill the tensor (`coverage.rs`).

use std::cell::RefCell;

use tilewright_layout::symbolic::{Expr, Node, Parameter};
use tilewright_layout::{Extent, Stride};

use super::super::super::core::Core;
use super::super::super::lower::with;
use super::{Case, DigitSource, InParts, Start, digit, limited, natural, share};

/// The most cases of a number.
const MOST: i64 = 4;

/// The cases of a number, in each of which the coordinates are sums of digits.
pub(super) fn cases(number: &DigitSource, core: &Core, starts: &[Start]) -> Option<Vec<Case>> {
    let whole = InParts { number: Expr::from(number.own.clone()), modulus: 1, limits: RefCell::default() };
    let mut cuts = Vec::new();
    for (starts, iterations) in starts {
        let share = share(&number.iterations, iterations).unwrap_or(0);
        for start in starts {
            multiplied(core, &start.node(), &mut |(dividend, divisor)| {
                let dividend = number.in_terms(core, share, dividend, Some(&whole));
                let cut = dividend.and_then(|dividend| number.cut(&dividend, divisor));
                cuts.extend(cut.filter(|cut| !cuts.contains(cut)));
            });
        }
    }
    cuts.into_iter().find_map(|(divisor, modulus)| {
        let begins = (0..=(modulus - 1) / divisor).map(|value| value * divisor);
        begins.map(|begin| number.from(core, starts, begin, (divisor, modulus))).collect()
    })
}

/// The digits in an expression, and in its clamped indices, that are multiplied by something
/// unknown: their numbers and divisors.
fn multiplied(core: &Core, node: &Node, found: &mut dyn FnMut((&Expr, i64))) {
    match node {
        Node::Integer(_) => {}
        Node::Parameter(own) => {
            if let Some((index, _)) = limited(core, own) {
                multiplied(core, &index.node(), found);
            }
        }
        Node::Sum(nodes) => nodes.iter().for_each(|node| multiplied(core, node, found)),
        Node::Product(nodes) => {
            let several = nodes.iter().filter(|node| !matches!(node, Node::Integer(_))).count() > 1;
            for node in nodes {
                if let Node::Parameter(own) = node
                    && let Some((number, divisor, _)) = digit(core, own).filter(|_| several)
                {
                    found((number, divisor));
                }
                multiplied(core, node, found);
            }
        }
        Node::Quotient(a, b, _) | Node::Remainder(a, b, _) | Node::Minimum(a, b) => {
            multiplied(core, a, found);
            multiplied(core, b, found);
        }
    }
}

impl DigitSource {
    /// The divisor and the modulus of a quotient of this number, or of a remainder of it.
    fn cut(&self, dividend: &Expr, divisor: i64) -> Option<(i64, i64)> {
        let own = Expr::from(self.own.clone());
        let mut moduli = vec![Expr::from(1), self.units.clone()];
        self.find_divisors(&dividend.node(), &mut moduli);
        let is_rest = |modulus: &Expr| {
            let whole = Stride::times(&own.floor_div(modulus)?, modulus)?;
            Some(*dividend == own.minus(&whole)? || *modulus == self.units && *dividend == own)
        };
        let modulus = moduli.into_iter().find(|modulus| is_rest(modulus) == Some(true))?;
        let modulus = modulus.known().filter(|_| modulus.divides(&self.units).proved())?;
        (0 < divisor && divisor < modulus && (modulus - 1) / divisor < MOST).then_some((divisor, modulus))
    }

    /// The case that begins at a multiple of a divisor.
    fn from(&self, core: &Core, starts: &[Start], begin: i64, (divisor, modulus): (i64, i64)) -> Option<Case> {
        let times = self.units.floor_div(&Expr::from(modulus))?;
        let count = divisor.min(modulus - begin);
        let below = |count: Option<i64>| match count {
            Some(count) => natural()?.at_most(count - 1).ok().map(Parameter::anonymous),
            None => natural().map(Parameter::anonymous),
        };
        // First with both parts as they are, so that quotients become simple; then as digits of one
        // number.
        let (own, inner, outer) = (below(None)?, below(Some(count))?, below(times.known())?);
        let far = Stride::times(&Expr::from(outer.clone()), &Expr::from(modulus))?;
        let number = Stride::plus(&Stride::plus(&Expr::from(begin), &Expr::from(inner.clone()))?, &far)?;
        let parts = InParts { number, modulus, limits: RefCell::default() };
        let whole = Expr::from(own.clone());
        let quotient = match times.known() {
            Some(1) => Expr::from(0),
            _ => whole.floor_div(&Expr::from(count))?,
        };
        let rest = whole.minus(&Stride::times(&quotient, &Expr::from(count))?)?;
        let of_one = |expr: &Expr| {
            with(&expr.node(), &|node| match node {
                Node::Parameter(own) if own.stands_for(&inner) => Some(rest.clone()),
                Node::Parameter(own) if own.stands_for(&outer) => Some(quotient.clone()),
                _ => None,
            })
        };
        let place = |(starts, iterations): &Start| -> Option<Vec<Expr>> {
            let share = share(&self.iterations, iterations).unwrap_or(0);
            starts.iter().map(|start| of_one(&self.in_terms(core, share, start, Some(&parts))?)).collect()
        };
        let mut starts: Vec<Vec<Expr>> = starts.iter().map(place).collect::<Option<_>>()?;
        // Clamped indices follow the coordinates. As sums of digits, they can be compared with
        // their limits.
        let (indices, limits): (Vec<Expr>, Vec<i64>) = parts.limits.into_inner().into_iter().unzip();
        starts.push(indices.iter().map(of_one).collect::<Option<_>>()?);
        let units = Stride::times(&times, &Expr::from(count))?;
        let number = DigitSource { own, units, axis: self.axis, iterations: self.iterations.clone(), block: None };
        let mut case = number.sums(core, starts)?;
        let within = case
            .starts
            .pop()?
            .iter()
            .zip(limits)
            .all(|(index, limit)| matches!(index.range(), (Some(0..), Some(greatest)) if greatest <= limit));
        within.then_some(case)
    }
}

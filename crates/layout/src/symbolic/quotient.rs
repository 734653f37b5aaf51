//! Division of expressions.
//!
//! Law: `floor(n/d) * d <= n < (floor(n/d) + 1) * d` for a positive `d`; and a quotient that is a
//! polynomial is returned as one. The rest becomes an atom in a canonical form, so that equal
//! quotients are usually equal atoms:
//!
//! * multiples of the divisor are extracted: `floor((d*a + b)/d) = a + floor(b/d)`;
//! * a quotient within its bounds is a number: `0 <= b < d` gives 0;
//! * common factors cancel: `floor((x*a + c)/(x*e)) = floor(a/e)` for `0 <= c < x`;
//! * nested quotients are combined: `floor((floor(a/b) + e)/c) = floor((a + b*e)/(b*c))`.
//!
//! There are no atoms for remainders: the remainder is `n - d*floor(n/d)`, so the law of quotient
//! and remainder always holds.

use alloc::sync::Arc;

use super::bounds::{Bounds, not_negative};
use super::expression::Expr;
use super::polynomial::{self, Atom, MAX_HEIGHT, MadeAtom, Monomial, Operation, Term};
use crate::value::number::{Truth, gcd};

/// The most rewrites of a quotient.
const MAX_REWRITES: usize = 24;

pub(super) fn at_least(n: &Expr, least: i64) -> bool {
    n.bounds().least >= least && n.bounds().least > i64::MIN
        || n.minus_expr(&Expr::known(least)).is_some_and(|excess| not_negative(&excess))
}

fn less(a: &Expr, b: &Expr) -> bool {
    b.minus_expr(a).is_some_and(|room| at_least(&room, 1))
}

/// Divides polynomials: `n = d * quotient + rest` with the smallest rest that polynomials allow;
/// `rest = n` if the leading coefficient of `d` is negative.
fn split(n: &Expr, d: &Expr) -> Option<(Expr, Expr)> {
    if d.terms().first().is_none_or(|lead| lead.coefficient < 0) {
        return Some((Expr::known(0), n.clone()));
    }
    let (quotient, rest) = polynomial::divide(&n.terms(), &d.terms())?;
    Some((Expr::from_terms(quotient), Expr::from_terms(rest)))
}

/// The quotient by a positive number, rounded down.
pub(crate) fn floor(n: &Expr, d: &Expr) -> Option<Expr> {
    let (mut n, mut d, mut whole) = (n.clone(), d.clone(), Expr::known(0));
    for _ in 0..MAX_REWRITES {
        let (multiple, rest) = split(&n, &d)?;
        whole = whole.plus_expr(&multiple)?;
        if let Some(number) = within_bounds(&rest, &d) {
            return whole.plus_expr(&Expr::known(number));
        }
        match cancelled(&rest, &d).or_else(|| flattened(&rest, &d)) {
            Some(simpler) => (n, d) = simpler,
            None => {
                n = rest;
                break;
            }
        }
    }
    whole.plus_expr(&atom(Operation::Floor, n, d)?)
}

/// The quotient of a rest, if it is the same number for every value.
fn within_bounds(rest: &Expr, d: &Expr) -> Option<i64> {
    if *rest == Expr::known(0) {
        return Some(0);
    }
    let bounds = rest.bounds().floor(d.bounds());
    if bounds.least == bounds.greatest {
        return Some(bounds.least);
    }
    if at_least(rest, 0) {
        return less(rest, d).then_some(0);
    }
    let above = rest.plus_expr(d)?;
    (at_least(&above, 0) && less(rest, &Expr::known(0))).then_some(-1)
}

/// Cancels a common divisor of divisor and dividend.
fn cancelled(n: &Expr, d: &Expr) -> Option<(Expr, Expr)> {
    let (dividend, divisor) = (n.terms(), d.terms());
    let moving = || dividend.iter().filter(|term| !term.monomial.is_empty());
    let content = divisor.iter().fold(0, |common, term| common_part(common, term.coefficient));
    let shared = moving().fold(content, |common, term| common_part(common, term.coefficient));
    let atoms: Monomial = match divisor.split_first() {
        Some((first, others)) => first
            .monomial
            .iter()
            .filter(|atom| others.iter().all(|term| term.monomial.contains(atom)))
            .cloned()
            .collect(),
        None => return None,
    };
    let mut common = Monomial::new();
    for atom in &atoms {
        if moving().all(|term| count(&term.monomial, atom) > count(&common, atom)) {
            common.push(atom.clone());
        }
    }
    let whole = Term { monomial: common, coefficient: shared };
    let alone = atoms.iter().map(|atom| Term { monomial: core::iter::once(atom.clone()).collect(), coefficient: 1 });
    for factor in core::iter::once(whole).chain(alone).chain([Term::constant(content)]) {
        if factor.monomial.is_empty() && factor.coefficient <= 1 {
            continue;
        }
        let by = [factor];
        let (Some((a, c)), Some((e, left))) = (polynomial::divide(&dividend, &by), polynomial::divide(&divisor, &by))
        else {
            continue;
        };
        let (a, c, e) = (Expr::from_terms(a), Expr::from_terms(c), Expr::from_terms(e));
        let [factor] = by;
        let factor = Expr::from_terms(core::iter::once(factor).collect());
        if !left.is_empty() {
            continue;
        }
        if at_least(&c, 0) && less(&c, &factor) {
            return Some((a, e));
        }
        // The rest may also be counted from the previous multiple of the divisor.
        let above = c.plus_expr(&factor)?;
        if at_least(&above, 0) && less(&above, &factor) {
            return Some((a.minus_expr(&Expr::known(1))?, e));
        }
    }
    None
}

fn common_part(a: i64, b: i64) -> i64 {
    // A common divisor of 2^63 is not used.
    i64::try_from(gcd(a, b)).unwrap_or(1)
}

fn count(monomial: &Monomial, atom: &Atom) -> usize {
    monomial.iter().filter(|own| *own == atom).count()
}

/// Combines a quotient of a sum that contains a quotient into one quotient.
fn flattened(n: &Expr, d: &Expr) -> Option<(Expr, Expr)> {
    let terms = n.terms();
    let (inner, made) = terms
        .iter()
        .filter_map(|term| match term.monomial.as_slice() {
            [atom @ Atom::Made(made)] if term.coefficient == 1 && made.operation == Operation::Floor => {
                Some((atom.clone(), made.clone()))
            }
            _ => None,
        })
        .max()?;
    let others = n.minus_expr(&Expr::of_atom(inner, 1))?;
    let dividend = made.left.plus_expr(&made.right.times_expr(&others)?)?;
    Some((dividend, made.right.times_expr(d)?))
}

/// The atom for an operation on two expressions.
pub(crate) fn atom(operation: Operation, left: Expr, right: Expr) -> Option<Expr> {
    let height_of = |expr: &Expr| expr.terms().iter().flat_map(|term| &term.monomial).map(Atom::height).max();
    let height = height_of(&left).max(height_of(&right)).unwrap_or(0) + 1;
    if height > MAX_HEIGHT {
        return None;
    }
    let (own, other) = (left.bounds(), right.bounds());
    let bounds = match operation {
        Operation::Floor => own.floor(other),
        Operation::Truncated => {
            // Rounding toward zero is at least the floor for nonpositive numbers, and at most the
            // floor for nonnegative ones.
            let magnitude = |end: i64| if end == i64::MIN { i64::MAX } else { end.abs() };
            let (below, above) = (magnitude(own.least.min(0)), own.greatest.max(0));
            let down = Bounds { least: 0, greatest: below }.floor(other).greatest;
            let up = Bounds { least: 0, greatest: above }.floor(other).greatest;
            Bounds { least: if down == i64::MAX { i64::MIN } else { -down }, greatest: up }
        }
        Operation::Minimum => own.minimum(other),
    };
    Some(Expr::of_atom(Atom::Made(Arc::new(MadeAtom { height, operation, left, right, bounds })), 1))
}

/// The quotient by a positive number, rounded up.
pub(crate) fn ceil(n: &Expr, d: &Expr) -> Option<Expr> {
    positive(d)?;
    let (multiple, rest) = split(n, d)?;
    if rest == Expr::known(0) {
        return Some(multiple);
    }
    multiple.plus_expr(&floor(&rest.plus_expr(d)?.minus_expr(&Expr::known(1))?, d)?)
}

fn positive(d: &Expr) -> Option<()> {
    at_least(d, 1).then_some(())
}

/// Quotient and remainder, rounded toward zero.
#[inline(never)]
pub(crate) fn truncated(n: &Expr, d: &Expr) -> Option<(Expr, Expr)> {
    let (dividend, divisor) = (n.bounds(), d.bounds());
    if dividend.least >= 0 && dividend.greatest < divisor.least {
        return Some((Expr::known(0), n.clone()));
    }
    let (multiple, rest) = split(n, d)?;
    if rest == Expr::known(0) {
        return Some((multiple, rest));
    }
    let quotient = inexact(n, d)?;
    let remainder = n.minus_expr(&quotient.times_expr(d)?)?;
    Some((quotient, remainder))
}

/// The quotient rounded toward zero, if the division of polynomials leaves a rest.
fn inexact(n: &Expr, d: &Expr) -> Option<Expr> {
    positive(d)?;
    if at_least(n, 0) {
        return floor(n, d);
    }
    let opposite = n.negated()?;
    if at_least(&opposite, 0) {
        return floor(&opposite, d)?.negated();
    }
    atom(Operation::Truncated, n.clone(), d.clone())
}

/// Whether `d` divides `n`.
#[inline(never)]
pub(crate) fn divides(d: &Expr, n: &Expr) -> Truth {
    let Some((_, rest)) = split(n, d) else { return Truth::Open };
    if rest == Expr::known(0) {
        return Truth::Proved;
    }
    if !at_least(d, 1) {
        return Truth::Open;
    }
    if at_least(&rest, 1) && less(&rest, d) {
        return Truth::Refuted;
    }
    // The rest modulo a number that divides the divisor and all terms of the rest but the last.
    let content = d.terms().iter().fold(0, |common, term| common_part(common, term.coefficient));
    if leaves(&rest, content) { Truth::Refuted } else { Truth::Open }
}

/// Whether an expression cannot be 0, because a number divides all of its terms but the last.
pub(crate) fn indivisible(p: &Expr) -> bool {
    leaves(p, 0)
}

fn leaves(p: &Expr, modulus: i64) -> bool {
    let (mut common, mut constant) = (modulus, 0);
    for term in p.terms().iter() {
        if term.monomial.is_empty() {
            constant = term.coefficient;
        } else {
            common = common_part(common, term.coefficient);
        }
    }
    common != 0 && constant % common != 0
}

/// The lesser of two expressions.
pub(crate) fn minimum(a: &Expr, b: &Expr) -> Option<Expr> {
    if a == b || at_least(&b.minus_expr(a)?, 0) {
        return Some(a.clone());
    }
    if at_least(&a.minus_expr(b)?, 0) {
        return Some(b.clone());
    }
    let (left, right) = if a <= b { (a, b) } else { (b, a) };
    atom(Operation::Minimum, left.clone(), right.clone())
}

impl Expr {
    /// The lesser of the two numbers.
    ///
    /// Errors: `None` when it is not representable.
    ///
    /// ```
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// let (m, n): (Expr, Expr) = ("M{max=64}".parse().unwrap(), "N{min=64}".parse().unwrap());
    /// assert_eq!(m.minimum(&n).unwrap(), m);
    /// assert_eq!(m.minimum(&Expr::from(16)).unwrap().to_string(), "min(16,M)");
    /// ```
    pub fn minimum(&self, other: &Expr) -> Option<Expr> {
        minimum(self, other)
    }

    /// The greater of the two numbers.
    ///
    /// Errors: `None` when it is not representable.
    pub fn maximum(&self, other: &Expr) -> Option<Expr> {
        self.plus_expr(other)?.minus_expr(&minimum(self, other)?)
    }

    /// The quotient by a positive divisor, rounded down.
    ///
    /// Errors: `None` when the divisor is not known to be positive, or the quotient is not
    /// representable.
    pub fn floor_div(&self, divisor: &Expr) -> Option<Expr> {
        positive(divisor)?;
        floor(self, divisor)
    }
}

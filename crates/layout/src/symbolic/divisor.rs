//! Divisors that two expressions share.
//!
//! Law: the *greatest common divisor* is that of the values, for every admissible choice of the
//! parameters, or None; a *shared divisor* divides both values, and is as great as can be proved
//! easily.
//!
//! A common factor is extracted, `gcd(g*a, g*b) = g * gcd(a, b)`. Then Euclid's algorithm is
//! applied with quotients of polynomials, `gcd(a, b) = gcd(b, a - q*b)`, until one divides the
//! other. If a remainder is a number `c`, the coefficients modulo `c` decide.

use core::cmp::Ordering;

use super::expression::Expr;
use super::polynomial::{self, Monomial, Term};
use super::quotient::at_least;
use crate::value::number::{Extent, gcd};

/// The most steps of Euclid's algorithm.
const MAX_STEPS: usize = 8;

/// The greatest product of a number and atoms that divides every term of both, with a positive
/// coefficient.
fn common_factor(a: &Expr, b: &Expr) -> Option<Term> {
    let (left, right) = (a.terms(), b.terms());
    let mut terms = left.iter().chain(right.iter());
    let first = terms.next()?;
    let mut common = Term { monomial: first.monomial.clone(), coefficient: first.coefficient };
    for term in terms {
        common.coefficient = i64::try_from(gcd(common.coefficient, term.coefficient)).ok()?;
        let mut theirs = term.monomial.iter().peekable();
        let kept: Monomial = common
            .monomial
            .iter()
            .filter(|atom| {
                while theirs.next_if(|other| other < atom).is_some() {}
                theirs.next_if(|other| other == atom).is_some()
            })
            .cloned()
            .collect();
        common.monomial = kept;
    }
    common.coefficient = common.coefficient.checked_abs()?;
    Some(common)
}

fn of_term(term: Term) -> Expr {
    Expr::from_terms(core::iter::once(term).collect())
}

/// Divides every term by a common factor.
fn without(expr: &Expr, factor: &Term) -> Option<Expr> {
    let (quotient, rest) = polynomial::divide(&expr.terms(), core::slice::from_ref(factor))?;
    rest.is_empty().then(|| Expr::from_terms(quotient))
}

/// The greatest common divisor of a number and an expression, if the coefficients determine it.
fn with_number(number: i64, expr: &Expr) -> Option<Expr> {
    if number == 1 {
        return Some(Expr::known(1));
    }
    let (mut moving, mut constant) = (0, 0);
    for term in expr.terms().iter() {
        if term.monomial.is_empty() {
            constant = term.coefficient;
        } else {
            moving = i64::try_from(gcd(moving, term.coefficient)).ok()?;
        }
    }
    // The variable part is a multiple of the number, so only the constant matters.
    let divided = moving % number == 0;
    divided.then(|| i64::try_from(gcd(number, constant)).ok()).flatten().map(Expr::known)
}

/// The degree and the coefficient of the leading term.
fn leading(expr: &Expr) -> Option<(usize, i64)> {
    expr.terms().first().map(|term| (term.monomial.len(), term.coefficient))
}

/// The remainder of `a` after division by a polynomial; None if the quotient is 0.
fn remainder(a: &Expr, b: &Expr) -> Option<Expr> {
    leading(b).filter(|(_, coefficient)| *coefficient > 0)?;
    let (_, rest) = polynomial::divide(&a.terms(), &b.terms())?;
    Some(Expr::from_terms(rest)).filter(|rest| rest != a)
}

fn positive(expr: &Expr) -> bool {
    at_least(expr, 1)
}

/// The greatest common divisor of two positive expressions; one of them may be 0.
pub(super) fn greatest(a: &Expr, b: &Expr) -> Option<Expr> {
    let (mut a, mut b, mut factor) = (a.clone(), b.clone(), Expr::known(1));
    for _ in 0..MAX_STEPS {
        if let (Some(x), Some(y)) = (a.known(), b.known()) {
            return factor.times_expr(&Expr::known(i64::try_from(gcd(x, y)).ok()?));
        }
        for (divisor, other) in [(&a, &b), (&b, &a)] {
            if positive(divisor) && divisor.divides(other).proved() {
                return factor.times_expr(divisor);
            }
        }
        let common = common_factor(&a, &b)?;
        let whole = of_term(common.clone());
        if whole != Expr::known(1) && positive(&whole) {
            (a, b) = (without(&a, &common)?, without(&b, &common)?);
            factor = factor.times_expr(&whole)?;
        }
        for (number, other) in [(&a, &b), (&b, &a)] {
            if let Some(number) = number.known().filter(|number| *number > 0) {
                return factor.times_expr(&with_number(number, other)?);
            }
        }
        let (lesser, rest) = match leading(&a)?.cmp(&leading(&b)?) {
            Ordering::Less => (a.clone(), remainder(&b, &a)?),
            _ => (b.clone(), remainder(&a, &b)?),
        };
        (a, b) = (lesser, rest);
    }
    None
}

/// A positive divisor of both; 1 if no other is found.
pub(super) fn shared(a: &Expr, b: &Expr) -> Expr {
    if let Some(greatest) = greatest(a, b).filter(positive) {
        return greatest;
    }
    let Some(common) = common_factor(a, b) else { return Expr::known(1) };
    let (number, whole) = (Expr::known(common.coefficient), of_term(common));
    if positive(&whole) { whole } else { number }
}

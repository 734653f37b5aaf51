//! The fact that would settle an open condition.
//!
//! Law: with the suggested declaration, the condition holds for every admissible value, and there
//! is at least one.

use alloc::vec::Vec;

use smallvec::SmallVec;

use super::expression::Expr;
use super::parameter::Parameter;
use super::polynomial::{self, Atom, MadeAtom, Operation, Term};
use super::values::Symbolic;
use crate::refusal::evidence::{Condition, Question};
use crate::value::number::{Extent, gcd, lcm};

#[cold]
pub(super) fn question(condition: Condition, left: &Expr, right: &Expr) -> Question {
    let mut parameters: Vec<Parameter> = left.parameters();
    parameters.extend(right.parameters());
    parameters.sort();
    parameters.dedup();
    let declaration = match condition {
        Condition::Divides => multiple(left, right),
        Condition::Less => right.minus(left).and_then(|room| bound(&room.minus(&Expr::one())?)),
        Condition::AtMost => right.minus(left).and_then(|room| bound(&room)),
        Condition::Equal | Condition::Ordered | Condition::Known | Condition::Stated => None,
    };
    Question { parameters, declaration, ..Question::plain(condition, left, right) }
}

/// A parameter with a divisor that makes a number divide an expression.
fn multiple(divisor: &Expr, expr: &Expr) -> Option<Parameter> {
    let divisor = divisor.known().filter(|divisor| *divisor > 0)?;
    let (_, rest) = polynomial::divide(&expr.terms(), &[Term::constant(divisor)])?;
    let mut factor = 1;
    for term in &rest {
        let common = i64::try_from(gcd(divisor, term.coefficient)).ok()?;
        factor = lcm(factor, divisor / common)?;
    }
    let (first, others) = rest.split_first()?;
    let everywhere = |atom: &&Atom| others.iter().all(|term| term.monomial.contains(atom));
    let parameter = first.monomial.iter().filter(everywhere).find_map(|atom| match atom {
        Atom::Unit(parameter) => Some(parameter),
        Atom::Made(_) => None,
    })?;
    let facts = parameter.facts();
    Some(parameter.with_facts(facts.multiple_of(facts.divisor().checked_mul(factor)?).ok()?))
}

/// A parameter with a bound that makes an expression not negative.
fn bound(expr: &Expr) -> Option<Parameter> {
    let terms = expr.terms();
    terms.iter().enumerate().find_map(|(place, term)| {
        let mut others: SmallVec<[Term; 2]> = terms.iter().cloned().collect();
        others.remove(place);
        let rest = Expr::from_terms(others);
        let parameter = match term.monomial.as_slice() {
            [Atom::Unit(parameter)] => parameter,
            [Atom::Made(made)] if term.coefficient > 0 => {
                return quotient_bound(made, rest.bounds().least()?, term.coefficient)
                    .filter(|parameter| !rest.parameters().iter().any(|other| other.stands_for(parameter)));
            }
            _ => return None,
        };
        // The bounds of the rest must not depend on the same parameter.
        if rest.parameters().contains(parameter) {
            return None;
        }
        let least = rest.bounds().least()?;
        let facts = parameter.facts();
        let unit = |unit: i64| unit.checked_mul(facts.divisor());
        let narrowed = if term.coefficient > 0 {
            let missing = least.checked_neg()?;
            let quotient = missing.div_euclid(term.coefficient);
            let up = quotient.checked_add(i64::from(missing.rem_euclid(term.coefficient) > 0))?;
            facts.at_least(unit(up)?)
        } else {
            facts.at_most(unit(least.div_euclid(term.coefficient.checked_neg()?))?)
        };
        Some(parameter.with_facts(narrowed.ok()?))
    })
}

/// A bound of a parameter for which a multiple of a quotient compensates a negative part.
fn quotient_bound(made: &MadeAtom, least: i64, coefficient: i64) -> Option<Parameter> {
    let missing = least.checked_neg().filter(|missing| *missing > 0)?;
    let up = missing.checked_add(coefficient - 1)? / coefficient;
    let divisor = made.right.known().filter(|divisor| *divisor > 0)?;
    match made.operation {
        // Both roundings give a positive number if the dividend is at least this multiple of the
        // divisor.
        Operation::Floor | Operation::Truncated => bound(&made.left.minus(&Expr::from(up.checked_mul(divisor)?))?),
        Operation::Minimum => None,
    }
}

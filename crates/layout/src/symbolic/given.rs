//! Proofs under the assumption that some extents are at least 2.
//!
//! Law: the result holds for every allowed value at which each of `many` is at least 2; nothing is
//! claimed for the others.
//!
//! An extent that may be 1 often prevents a proof: 1 divided by `M` is 0, unless `M` is 1. Within a
//! mode of `M` positions that exception does not matter. If an extent is a parameter, or a quotient
//! of one, "at least 2" is a fact about the parameter. So the question is answered for a parameter
//! with this fact, and the original parameter replaces it in the answer.

use smallvec::SmallVec;

use super::bounds::Bounds;
use super::expression::Expr;
use super::parameter::Parameter;
use super::polynomial::{Atom, Operation};
use super::values::rebuilt;
use crate::value::number::{Extent, Stride, Truth};

/// A parameter, and the same parameter with a greater least value.
struct Raised {
    from: Parameter,
    to: Parameter,
}

type Replaced = SmallVec<[Raised; 2]>;

/// The parameters with the facts that follow if every expression is at least 2.
fn raised(many: &[&Expr]) -> Replaced {
    let mut all = Replaced::new();
    for expr in many {
        let Some((parameter, unit)) = least_unit(expr, 2) else { continue };
        let from = all.iter().find(|raised| raised.from == parameter).map_or(&parameter, |raised| &raised.to);
        let least = unit.checked_mul(parameter.facts().divisor());
        let Some(facts) = least.and_then(|least| from.facts().at_least(least).ok()) else { continue };
        let to = parameter.with_facts(facts);
        all.retain(|raised| raised.from != parameter);
        all.push(Raised { from: parameter, to });
    }
    all
}

/// The parameter of an expression and the least value, in its unit, at which the expression reaches
/// `value`, if it is linear in one parameter or a quotient of such an expression.
fn least_unit(expr: &Expr, value: i64) -> Option<(Parameter, i64)> {
    if expr.bounds().least >= value {
        return None;
    }
    let terms = expr.terms();
    let (first, constant) = match &*terms {
        [first] => (first, 0),
        [first, last] if last.monomial.is_empty() => (first, last.coefficient),
        _ => return None,
    };
    let wanted = value.checked_sub(constant)?;
    match first.monomial.as_slice() {
        [Atom::Unit(parameter)] if first.coefficient > 0 => {
            Some((parameter.clone(), wanted.divide_up(&first.coefficient)?))
        }
        [Atom::Made(made)] if made.operation == Operation::Floor && first.coefficient == 1 => {
            least_unit(&made.left, wanted.checked_mul(made.right.known()?)?)
        }
        _ => None,
    }
}

fn read_with(expr: &Expr, find: impl Fn(&Parameter) -> Option<Parameter>) -> Option<Expr> {
    rebuilt(expr, &mut |parameter| {
        Ok(find(parameter).map(|other| match other.unit_bounds() {
            Bounds { least, greatest } if least == greatest => Expr::known(least),
            _ => Expr::of_atom(Atom::Unit(other), 1),
        }))
    })
    .ok()
}

fn stronger(expr: &Expr, all: &Replaced) -> Option<Expr> {
    read_with(expr, |parameter| all.iter().find(|raised| raised.from == *parameter).map(|raised| raised.to.clone()))
}

fn weaker(expr: &Expr, all: &Replaced) -> Option<Expr> {
    read_with(expr, |parameter| all.iter().find(|raised| raised.to == *parameter).map(|raised| raised.from.clone()))
}

/// The number of atoms of an expression that are not parameters.
fn composite_atoms(expr: &Expr) -> usize {
    expr.terms().iter().flat_map(|term| &term.monomial).filter(|atom| atom.height() > 0).count()
}

#[inline(never)]
pub(super) fn divide(n: &Expr, d: &Expr, many: &[&Expr]) -> Option<(Expr, Expr)> {
    let plain = n.divide(d);
    if plain.as_ref().is_some_and(|(quotient, _)| composite_atoms(quotient) == 0) {
        return plain;
    }
    let all = raised(many);
    if all.is_empty() {
        return plain;
    }
    let given = || {
        let (quotient, remainder) = stronger(n, &all)?.divide(&stronger(d, &all)?)?;
        Some((weaker(&quotient, &all)?, weaker(&remainder, &all)?))
    };
    match (given(), plain) {
        (Some(given), Some(plain)) => {
            Some(if composite_atoms(&given.0) < composite_atoms(&plain.0) { given } else { plain })
        }
        (given, plain) => given.or(plain),
    }
}

#[inline(never)]
pub(super) fn less(a: &Expr, b: &Expr, many: &[&Expr]) -> Truth {
    let plain = a.less(b);
    if plain != Truth::Open {
        return plain;
    }
    let all = raised(many);
    let answer = match (stronger(a, &all), stronger(b, &all)) {
        (Some(a), Some(b)) if !all.is_empty() => a.less(&b),
        _ => plain,
    };
    if answer == Truth::Open { less_by_product(a, b, many) } else { answer }
}

/// The same for an extent that is a product, which implies nothing about a single parameter:
/// `b - a` is at least 1 if it is at least `many - 1`, and at most 0 if it is at most `2 - many`.
fn less_by_product(a: &Expr, b: &Expr, many: &[&Expr]) -> Truth {
    for product in many.iter().filter(|expr| expr.bounds().least < 2) {
        let above = || b.minus(a)?.minus(product)?.plus(&Expr::one());
        let below = || a.minus(b)?.minus(product)?.plus(&Expr::from(2));
        let holds = |rest: Option<Expr>| rest.is_some_and(|rest| rest.less(&Expr::zero()).refuted());
        if holds(above()) {
            return Truth::Proved;
        }
        if holds(below()) {
            return Truth::Refuted;
        }
    }
    Truth::Open
}

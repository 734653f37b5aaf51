//! Proofs of the sign of an expression from facts.
//!
//! There are two methods. Intervals are computed with every expression; elimination is used for a
//! single question:
//!
//! * *Intervals.* The bounds of the atoms give bounds of every product, and these add up.
//! * *Elimination.* To show `P >= 0`, take the atom `x` that nests most deeply and read `P` as a
//!   polynomial in it. If `P = C*x + R` is linear in a parameter with `least <= x <= greatest`,
//!   it is enough, and for independent parameters also necessary, that `P` is not negative at both
//!   ends, or, if one end is unbounded, not negative at the other end with `C` of the right sign. A
//!   quotient `x = floor(n/d)` lies between `(n-d+1)/d` and `n/d`, and between its own bounds: `P`
//!   is linear in `x`, so one lower end and one upper end at which it is not negative suffice. A
//!   minimum is one of two expressions. For higher powers, all coefficients of the expansion about
//!   the least value must not be negative. The remaining conditions have one atom less.
//!
//! Law: `true` means that the claim holds for every admissible value; `false` means that no proof
//! was found.

use smallvec::SmallVec;

use super::expression::Expr;
use super::polynomial::{Atom, MadeAtom, Monomial, Operation, Term, Terms};

pub(crate) use crate::ground::bounds::Bounds;

/// The most eliminations for one question.
const MAX_STEPS: u32 = 200;

/// Whether the facts prove that an expression is not negative.
pub(crate) fn not_negative(p: &Expr) -> bool {
    shown(p, &mut { MAX_STEPS })
}

fn shown(p: &Expr, left: &mut u32) -> bool {
    let bounds = p.bounds();
    if bounds.least >= 0 {
        return true;
    }
    if bounds.greatest < 0 || *left == 0 {
        return false;
    }
    *left -= 1;
    let Some(atom) = p.terms().iter().flat_map(|term| &term.monomial).max().cloned() else { return false };
    by_atom(p, &atom, left).unwrap_or(false)
}

/// The same by elimination of `atom`; None if a number is not representable.
fn by_atom(p: &Expr, atom: &Atom, left: &mut u32) -> Option<bool> {
    let parts = coefficients(p, atom)?;
    let [rest, slope] = parts.as_slice() else { return above_least(&parts, atom.bounds(), left) };
    let at = |end: &Expr| rest.plus_expr(&slope.times_expr(end)?);
    match atom {
        Atom::Unit(_) => {
            let bounds = atom.bounds();
            Some(match (bounds.least(), bounds.greatest()) {
                (Some(least), Some(greatest)) => {
                    shown(&at(&Expr::known(least))?, left) && shown(&at(&Expr::known(greatest))?, left)
                }
                (Some(least), None) => shown(&at(&Expr::known(least))?, left) && shown(slope, left),
                (None, Some(greatest)) => shown(&at(&Expr::known(greatest))?, left) && shown(&slope.negated()?, left),
                (None, None) => false,
            })
        }
        Atom::Made(made) => match made.operation {
            Operation::Minimum => {
                let (a, b) = (at(&made.left)?, at(&made.right)?);
                Some(match shown(&slope.negated()?, left) {
                    true => shown(&a, left) || shown(&b, left),
                    false => shown(&a, left) && shown(&b, left),
                })
            }
            Operation::Floor => quotient_ends(made, rest, slope, left),
            Operation::Truncated => above_least(&parts, made.bounds, left),
        },
    }
}

/// Whether `rest + slope * floor(n/d)` is not negative at the ends of the quotient.
fn quotient_ends(made: &MadeAtom, rest: &Expr, slope: &Expr, left: &mut u32) -> Option<bool> {
    let (n, d) = (&made.left, &made.right);
    // d times the value of the expression, for a quotient whose product with d is `end`.
    let at = |end: &Expr| rest.times_expr(d)?.plus_expr(&slope.times_expr(end)?);
    let at_number = |end: Option<i64>| rest.plus_expr(&slope.times_expr(&Expr::known(end?))?);
    let lower = |left: &mut u32| {
        at_number(made.bounds.least()).is_some_and(|value| shown(&value, left))
            || n.minus_expr(d)
                .and_then(|end| at(&end.plus_expr(&Expr::known(1))?))
                .is_some_and(|value| shown(&value, left))
    };
    let upper = |left: &mut u32| {
        at_number(made.bounds.greatest()).is_some_and(|value| shown(&value, left))
            || at(n).is_some_and(|value| shown(&value, left))
    };
    if shown(slope, left) {
        return Some(lower(left));
    }
    if shown(&slope.negated()?, left) {
        return Some(upper(left));
    }
    Some(lower(left) && upper(left))
}

/// Whether a polynomial in an atom, of which only the bounds are used, is not negative: all
/// coefficients of its expansion about the least value must not be negative.
fn above_least(parts: &[Expr], bounds: Bounds, left: &mut u32) -> Option<bool> {
    let Some(least) = bounds.least() else { return Some(false) };
    let least = Expr::known(least);
    let mut parts: SmallVec<[Expr; 4]> = parts.iter().cloned().collect();
    // Synthetic division by (x - least), once for each coefficient.
    for first in 0..parts.len() {
        for place in (first..parts.len().saturating_sub(1)).rev() {
            let above = parts.get(place + 1)?.times_expr(&least)?;
            let sum = parts.get(place)?.plus_expr(&above)?;
            *parts.get_mut(place)? = sum;
        }
        if !shown(parts.get(first)?, left) {
            return Some(false);
        }
    }
    Some(true)
}

/// The coefficients of an expression as a polynomial in one atom, starting with power 0.
fn coefficients(p: &Expr, atom: &Atom) -> Option<SmallVec<[Expr; 4]>> {
    let mut parts: SmallVec<[Terms; 4]> = SmallVec::new();
    for term in p.terms().iter() {
        let power = term.monomial.iter().filter(|own| *own == atom).count();
        while parts.len() <= power {
            parts.push(Terms::new());
        }
        // Removing the same power from all terms keeps their order.
        let monomial: Monomial = term.monomial.iter().filter(|own| *own != atom).cloned().collect();
        parts.get_mut(power)?.push(Term { monomial, coefficient: term.coefficient });
    }
    Some(parts.into_iter().map(Expr::from_terms).collect())
}

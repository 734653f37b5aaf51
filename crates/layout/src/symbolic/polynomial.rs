//! The canonical form of an expression: a sum of products of atoms.
//!
//! Law: two sums of products are the same polynomial exactly if they are the same list of terms.
//! Terms have nonzero coefficients and different monomials, the greatest first; monomials are
//! ordered by degree and then by their atoms. Multiplication preserves that order, which makes the
//! division of polynomials terminate.
//!
//! A parameter `M` that is a multiple of 128 is the monomial `128 * m` of the atom `m = M/128`. So
//! the coefficients show whether 128 divides an expression.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use smallvec::SmallVec;

use super::bounds::Bounds;
use super::expression::Expr;
use super::parameter::Parameter;

/// An atom: a number that the canonical form does not decompose.
///
/// Atoms are ordered by nesting depth, so the last one of a list is contained in none of the
/// others.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    /// A parameter, divided by its known divisor.
    Unit(Parameter),
    /// A quotient or a minimum of expressions.
    Made(Arc<MadeAtom>),
}

impl Ord for Atom {
    #[inline]
    fn cmp(&self, other: &Atom) -> Ordering {
        match (self, other) {
            (Atom::Unit(own), Atom::Unit(other)) => own.cmp(other),
            (Atom::Unit(_), Atom::Made(_)) => Ordering::Less,
            (Atom::Made(_), Atom::Unit(_)) => Ordering::Greater,
            (Atom::Made(own), Atom::Made(other)) => {
                // Most comparisons are between clones.
                if Arc::ptr_eq(own, other) { Ordering::Equal } else { own.cmp(other) }
            }
        }
    }
}

impl PartialOrd for Atom {
    #[inline]
    fn partial_cmp(&self, other: &Atom) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An atom made from two expressions.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MadeAtom {
    /// The nesting depth: one more than the greatest depth inside.
    pub(crate) height: u32,
    pub(crate) operation: Operation,
    pub(crate) left: Expr,
    pub(crate) right: Expr,
    pub(crate) bounds: Bounds,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Operation {
    /// The quotient by a positive divisor, rounded down.
    Floor,
    /// The quotient by a positive divisor of a number of unknown sign, rounded toward zero.
    Truncated,
    Minimum,
}

/// The greatest nesting depth of quotients and minima.
pub(crate) const MAX_HEIGHT: u32 = 32;

/// The most terms of an expression; the error message has this number.
pub(crate) const MAX_TERMS: usize = 256;

/// The most atoms of a product.
const MAX_DEGREE: usize = 64;

impl Atom {
    pub(crate) fn height(&self) -> u32 {
        match self {
            Atom::Unit(_) => 0,
            Atom::Made(made) => made.height,
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        match self {
            Atom::Unit(parameter) => parameter.unit_bounds(),
            Atom::Made(made) => made.bounds,
        }
    }
}

/// The atoms of a product, sorted, each as often as it occurs.
pub(crate) type Monomial = SmallVec<[Atom; 2]>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Term {
    pub(crate) monomial: Monomial,
    pub(crate) coefficient: i64,
}

pub(crate) type Terms = SmallVec<[Term; 2]>;

/// Sorted terms, at least one of them with an atom, and their bounds.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Polynomial {
    pub(crate) terms: Terms,
    pub(crate) bounds: Bounds,
}

impl Polynomial {
    pub(crate) fn new(terms: Terms) -> Polynomial {
        let sum = |sum: Bounds, term: &Term| sum.plus(bounds(&term.monomial, term.coefficient));
        let bounds = terms.iter().fold(Bounds::exactly(0), sum);
        Polynomial { terms, bounds }
    }
}

impl Term {
    pub(crate) fn constant(coefficient: i64) -> Term {
        Term { monomial: Monomial::new(), coefficient }
    }
}

/// The bounds of a product.
#[inline]
fn bounds(monomial: &Monomial, coefficient: i64) -> Bounds {
    monomial.iter().fold(Bounds::exactly(coefficient), |product, atom| product.times(atom.bounds()))
}

/// A clone; a monomial of one atom clones just the atom.
#[inline]
fn cloned(monomial: &Monomial) -> Monomial {
    match monomial.as_slice() {
        [] => Monomial::new(),
        [only] => {
            let mut clone = Monomial::new();
            clone.push(only.clone());
            clone
        }
        _ => monomial.clone(),
    }
}

/// The order of monomials; in a list of terms the greater one is first.
pub(crate) fn order(a: &Monomial, b: &Monomial) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| b.as_slice().cmp(a.as_slice()))
}

/// The product of two monomials.
pub(crate) fn product(a: &Monomial, b: &Monomial) -> Option<Monomial> {
    if a.len() + b.len() > MAX_DEGREE {
        return None;
    }
    let mut atoms: Monomial = a.iter().chain(b).cloned().collect();
    atoms.sort();
    Some(atoms)
}

/// The monomial whose product with `divisor` is `monomial`; None if there is none.
pub(crate) fn cofactor(monomial: &Monomial, divisor: &Monomial) -> Option<Monomial> {
    if divisor.is_empty() {
        return Some(cloned(monomial));
    }
    let mut wanted = divisor.iter().peekable();
    let rest = monomial.iter().filter(|atom| wanted.next_if(|next| next == atom).is_none()).cloned().collect();
    wanted.peek().is_none().then_some(rest)
}

/// Passes on the terms of `a + factor * b`, sorted; None if a coefficient is not representable, or
/// if `each` returns None.
#[inline(always)]
fn each_of_sum(
    mut a: &[Term],
    mut b: &[Term],
    factor: i64,
    mut each: impl FnMut(&Monomial, i64) -> Option<()>,
) -> Option<()> {
    loop {
        let (monomial, coefficient) = match (a.split_first(), b.split_first()) {
            (None, None) => return Some(()),
            (Some((left, rest)), None) => {
                a = rest;
                (&left.monomial, left.coefficient)
            }
            (None, Some((right, rest))) => {
                b = rest;
                (&right.monomial, right.coefficient.checked_mul(factor)?)
            }
            (Some((left, left_rest)), Some((right, right_rest))) => match order(&left.monomial, &right.monomial) {
                Ordering::Greater => {
                    a = left_rest;
                    (&left.monomial, left.coefficient)
                }
                Ordering::Less => {
                    b = right_rest;
                    (&right.monomial, right.coefficient.checked_mul(factor)?)
                }
                Ordering::Equal => {
                    (a, b) = (left_rest, right_rest);
                    (&left.monomial, left.coefficient.checked_add(right.coefficient.checked_mul(factor)?)?)
                }
            },
        };
        if coefficient != 0 {
            each(monomial, coefficient)?;
        }
    }
}

/// The terms of `a + factor * b`, sorted.
pub(crate) fn add(a: &[Term], b: &[Term], factor: i64) -> Option<Terms> {
    let mut sum = Terms::new();
    each_of_sum(a, b, factor, |monomial, coefficient| {
        sum.push(Term { monomial: cloned(monomial), coefficient });
        Some(())
    })?;
    (sum.len() <= MAX_TERMS).then_some(sum)
}

/// The bounds of `a - b`, computed without the difference.
pub(crate) fn bounds_of_difference(a: &[Term], b: &[Term]) -> Option<Bounds> {
    let mut sum = Bounds::exactly(0);
    each_of_sum(a, b, -1, |monomial, coefficient| {
        sum = sum.plus(bounds(monomial, coefficient));
        Some(())
    })?;
    Some(sum)
}

/// The terms of `factor * terms + constant`, sorted, for a nonzero factor.
pub(crate) fn affine(terms: &[Term], factor: i64, constant: i64) -> Option<Terms> {
    let mut sum = Terms::new();
    let mut constant = constant;
    for term in terms {
        let coefficient = term.coefficient.checked_mul(factor)?;
        if term.monomial.is_empty() {
            // The constant is the last term.
            constant = constant.checked_add(coefficient)?;
        } else {
            sum.push(Term { monomial: cloned(&term.monomial), coefficient });
        }
    }
    if constant != 0 {
        sum.push(Term::constant(constant));
    }
    (sum.len() <= MAX_TERMS).then_some(sum)
}

/// The terms of the product of a term and a sum, sorted.
pub(crate) fn scale(terms: &[Term], by: &Term) -> Option<Terms> {
    // Multiplication preserves the order of monomials.
    terms
        .iter()
        .map(|term| {
            let coefficient = term.coefficient.checked_mul(by.coefficient)?;
            let monomial =
                if by.monomial.is_empty() { term.monomial.clone() } else { product(&term.monomial, &by.monomial)? };
            Some(Term { monomial, coefficient })
        })
        .collect()
}

/// The terms of the product of two sums, sorted.
pub(crate) fn multiply(a: &[Term], b: &[Term]) -> Option<Terms> {
    if let [only] = a {
        return scale(b, only);
    }
    if let [only] = b {
        return scale(a, only);
    }
    if a.len().checked_mul(b.len())? > MAX_TERMS * 4 {
        return None;
    }
    let mut all: Vec<Term> = Vec::with_capacity(a.len() * b.len());
    for term in b {
        all.extend(scale(a, term)?);
    }
    gathered(all)
}

/// The sum of terms that are in any order.
pub(crate) fn gathered(mut all: Vec<Term>) -> Option<Terms> {
    all.sort_by(|a, b| order(&b.monomial, &a.monomial));
    let mut sum = Terms::new();
    for term in all {
        match sum.last_mut() {
            Some(last) if last.monomial == term.monomial => {
                last.coefficient = last.coefficient.checked_add(term.coefficient)?;
            }
            _ => {
                if sum.last().is_some_and(|last| last.coefficient == 0) {
                    sum.pop();
                }
                sum.push(term);
            }
        }
    }
    if sum.last().is_some_and(|last| last.coefficient == 0) {
        sum.pop();
    }
    (sum.len() <= MAX_TERMS).then_some(sum)
}

/// `n = d * quotient + remainder`, where no term of the remainder is divisible by the leading term
/// of `d` except for a coefficient from 0 to less than that of `d`.
///
/// The leading coefficient of `d` must be positive.
pub(crate) fn divide(n: &[Term], d: &[Term]) -> Option<(Terms, Terms)> {
    let lead = d.first()?;
    if d.len() == 1 {
        let (mut quotient, mut remainder) = (Terms::new(), Terms::new());
        for term in n {
            let part = match cofactor(&term.monomial, &lead.monomial) {
                Some(monomial) => {
                    let whole = term.coefficient.div_euclid(lead.coefficient);
                    if whole != 0 {
                        quotient.push(Term { monomial, coefficient: whole });
                    }
                    term.coefficient.rem_euclid(lead.coefficient)
                }
                None => term.coefficient,
            };
            if part != 0 {
                remainder.push(Term { monomial: cloned(&term.monomial), coefficient: part });
            }
        }
        return Some((quotient, remainder));
    }
    let (mut quotient, mut remainder): (Vec<Term>, Vec<Term>) = (Vec::new(), Vec::new());
    let mut rest: Terms = n.iter().cloned().collect();
    for _ in 0..MAX_TERMS {
        let Some(first) = rest.first().cloned() else { return Some((gathered(quotient)?, gathered(remainder)?)) };
        let whole = first.coefficient.div_euclid(lead.coefficient);
        match cofactor(&first.monomial, &lead.monomial) {
            Some(monomial) if whole != 0 => {
                let step = Term { monomial, coefficient: whole };
                rest = add(&rest, &scale(d, &step)?, -1)?;
                quotient.push(step);
                // The rest of the leading term is less than the divisor and remains.
                if let Some(part) = rest.first()
                    && part.monomial == first.monomial
                {
                    remainder.push(rest.remove(0));
                }
            }
            _ => remainder.push(rest.remove(0)),
        }
    }
    None
}

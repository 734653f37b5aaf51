//! The canonical form of an expression: a sum of products of atoms.
//!
//! Law: two sums of products are the same polynomial exactly when they are the same list of terms. Terms have coefficients other than 0 and
//! different monomials, the greatest first; monomials are ordered by degree and then by their atoms. That order is kept by
//! multiplication, which is what division of polynomials needs to end.
//!
//! A parameter `M` that is a multiple of 128 is the monomial `128 * m` of the atom `m = M/128`. So whether 128 divides is seen from
//! coefficients.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use smallvec::SmallVec;

use super::bounds::Bounds;
use super::expression::Expr;
use super::parameter::Parameter;

/// A number that the canonical form does not look into.
///
/// Atoms are ordered by how deeply they nest, so the last one of a list lies inside none of the others.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Atom {
    /// A parameter, divided by its known divisor.
    Unit(Parameter),
    /// A quotient or a minimum.
    Made(Arc<Made>),
}

/// An atom made from two expressions.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Made {
    /// One more than that of anything inside.
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

/// How deeply quotients and minima may nest.
pub(crate) const MAX_HEIGHT: u32 = 32;

/// The most terms of an expression.
pub(crate) const MAX_TERMS: usize = 256;

/// The most atoms in a product.
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
            Atom::Unit(parameter) => {
                let (least, greatest) = parameter.facts().unit_bounds();
                Bounds { least, greatest }
            }
            Atom::Made(made) => made.bounds,
        }
    }
}

/// The atoms of a product, in order, as often as they occur.
pub(crate) type Monomial = SmallVec<[Atom; 2]>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Term {
    pub(crate) monomial: Monomial,
    pub(crate) coefficient: i64,
}

pub(crate) type Terms = SmallVec<[Term; 2]>;

/// Terms in order, at least one of them with an atom, and the bounds that they show.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Polynomial {
    pub(crate) terms: Terms,
    pub(crate) bounds: Bounds,
}

impl Polynomial {
    pub(crate) fn new(terms: Terms) -> Polynomial {
        let bounds = terms.iter().fold(Bounds::exactly(0), |sum, term| sum.plus(term.bounds()));
        Polynomial { terms, bounds }
    }
}

impl Term {
    pub(crate) fn constant(coefficient: i64) -> Term {
        Term { monomial: Monomial::new(), coefficient }
    }

    fn bounds(&self) -> Bounds {
        self.monomial.iter().fold(Bounds::exactly(self.coefficient), |product, atom| product.times(atom.bounds()))
    }
}

/// The order of monomials, the greater one first in a list of terms.
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

/// The monomial by which `divisor` must be multiplied to give `monomial`.
pub(crate) fn cofactor(monomial: &Monomial, divisor: &Monomial) -> Option<Monomial> {
    let mut wanted = divisor.iter().peekable();
    let rest = monomial.iter().filter(|atom| wanted.next_if(|next| next == atom).is_none()).cloned().collect();
    wanted.peek().is_none().then_some(rest)
}

/// `a + factor * b`, in order.
pub(crate) fn add(a: &[Term], b: &[Term], factor: i64) -> Option<Terms> {
    let mut sum = Terms::new();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let which = match (a.peek(), b.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(left), Some(right)) => order(&left.monomial, &right.monomial),
        };
        let left = if which.is_ge() { a.next() } else { None };
        let right = if which.is_le() { b.next() } else { None };
        let own = left.map_or(0, |term| term.coefficient);
        let other = right.map_or(Some(0), |term| term.coefficient.checked_mul(factor))?;
        let coefficient = own.checked_add(other)?;
        if coefficient != 0 {
            let monomial = left.or(right)?.monomial.clone();
            sum.push(Term { monomial, coefficient });
        }
    }
    (sum.len() <= MAX_TERMS).then_some(sum)
}

/// The product of a term and a sum, in order.
pub(crate) fn scale(terms: &[Term], by: &Term) -> Option<Terms> {
    // The order of monomials is kept by multiplication.
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

/// The product of two sums, in order.
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

/// The sum of terms in any order.
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

/// `n = d * quotient + remainder`, where no term of the remainder is divisible by the leading term of `d` except for a coefficient
/// from 0 to less than that of `d`.
///
/// The leading coefficient of `d` must be positive.
pub(crate) fn divide(n: &[Term], d: &[Term]) -> Option<(Terms, Terms)> {
    let lead = d.first()?;
    let (mut quotient, mut remainder): (Vec<Term>, Vec<Term>) = (Vec::new(), Vec::new());
    if d.len() == 1 {
        for term in n {
            match cofactor(&term.monomial, &lead.monomial) {
                Some(monomial) => {
                    let (whole, part) =
                        (term.coefficient.div_euclid(lead.coefficient), term.coefficient.rem_euclid(lead.coefficient));
                    if whole != 0 {
                        quotient.push(Term { monomial, coefficient: whole });
                    }
                    if part != 0 {
                        remainder.push(Term { monomial: term.monomial.clone(), coefficient: part });
                    }
                }
                None => remainder.push(term.clone()),
            }
        }
        return Some((quotient.into(), remainder.into()));
    }
    let mut rest: Terms = n.iter().cloned().collect();
    for _ in 0..MAX_TERMS {
        let Some(first) = rest.first().cloned() else { return Some((gathered(quotient)?, gathered(remainder)?)) };
        let whole = first.coefficient.div_euclid(lead.coefficient);
        match cofactor(&first.monomial, &lead.monomial) {
            Some(monomial) if whole != 0 => {
                let step = Term { monomial, coefficient: whole };
                rest = add(&rest, &scale(d, &step)?, -1)?;
                quotient.push(step);
                // What is left of the leading term is smaller than the divisor's and stays.
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

//! Quotients and remainders of polynomials.
//!
//! Law: for a positive divisor `d`, `n = d * quotient + remainder`, the quotient rounded toward
//! zero, as in the evaluation of a layout at an index. Terms that the divisor divides are divided
//! separately, so that only the rest needs a division: `(i + 64*j) / 8` is `i / 8 + 8*j` for
//! `i >= 0`.

use alloc::vec::Vec;

use crate::emit::graph::{Graph, Id};
use crate::emit::polynomial::EmittedPolynomial;
use crate::symbolic::Rounding;

/// Quotient and remainder; None if a number is not representable.
pub(crate) fn divide(
    graph: &mut Graph,
    n: &EmittedPolynomial,
    d: &EmittedPolynomial,
) -> Option<(EmittedPolynomial, EmittedPolynomial)> {
    if d.known() == Some(1) {
        return Some((n.clone(), EmittedPolynomial::default()));
    }
    if let (Some(n), Some(d)) = (n.known(), d.known()) {
        return Some((EmittedPolynomial::constant(n.checked_div(d)?), EmittedPolynomial::constant(n.checked_rem(d)?)));
    }
    let own = n.range(graph);
    let divisor = d.range(graph);
    if own.magnitude().less(divisor) == Some(true) {
        return Some((EmittedPolynomial::default(), n.clone()));
    }
    let (front, rest) = split(graph, n, d)?;
    if rest == EmittedPolynomial::default() {
        return Some((front, rest));
    }
    let left = rest.range(graph);
    if own.not_negative() && left.not_negative() {
        if left.less(divisor) == Some(true) {
            return Some((front, rest));
        }
        let (quotient, remainder) = atoms(graph, &rest, d, Rounding::Plain);
        return Some((front.plus(&quotient)?, remainder));
    }
    let rounding = if own.not_negative() { Rounding::Plain } else { Rounding::TowardZero };
    Some(atoms(graph, n, d, rounding))
}

/// The quotient and the remainder as operations.
fn atoms(
    graph: &mut Graph,
    n: &EmittedPolynomial,
    d: &EmittedPolynomial,
    rounding: Rounding,
) -> (EmittedPolynomial, EmittedPolynomial) {
    let (n, d) = (n.compute(graph), d.compute(graph));
    // The remainder is the lower digit, so it comes first in sums.
    let (remainder, quotient) = (graph.remainder(n, d, rounding), graph.quotient(n, d, rounding));
    (EmittedPolynomial::of(graph, quotient), EmittedPolynomial::of(graph, remainder))
}

/// Splits a polynomial by terms, `n = d * front + rest`.
fn split(
    graph: &mut Graph,
    n: &EmittedPolynomial,
    d: &EmittedPolynomial,
) -> Option<(EmittedPolynomial, EmittedPolynomial)> {
    let (mut front, mut rest) = (EmittedPolynomial::default(), EmittedPolynomial::default());
    if n == d {
        return Some((EmittedPolynomial::constant(1), rest));
    }
    let Some((by, size)) = d.single() else { return Some((front, n.clone())) };
    for (factors, coefficient) in n.terms() {
        match divided(graph, factors, coefficient, by, size) {
            Some((factors, coefficient)) => front.add(factors, coefficient)?,
            None if factors.is_empty() && by.is_empty() => {
                front.add(Vec::new(), coefficient.div_euclid(size))?;
                rest.add(Vec::new(), coefficient.rem_euclid(size))?;
            }
            None => rest.add(factors.clone(), coefficient)?,
        }
    }
    Some((front, rest))
}

/// The quotient of a product that is divisible.
pub(crate) fn divided(
    graph: &mut Graph,
    factors: &[Id],
    coefficient: i64,
    by: &[Id],
    size: i64,
) -> Option<(Vec<Id>, i64)> {
    let mut left = factors.to_vec();
    for factor in by {
        let place = left.iter().position(|own| own == factor)?;
        left.remove(place);
    }
    let common = gcd(coefficient, size);
    let (coefficient, mut size) = (coefficient.checked_div(common)?, size.checked_div(common)?);
    for factor in &mut left {
        if size == 1 {
            break;
        }
        // Uses the known divisor of a variable.
        let common = gcd(graph.divisor(*factor), size);
        if common > 1 {
            let divisor = graph.integer(common);
            *factor = graph.quotient(*factor, divisor, Rounding::Exact);
            size /= common;
        }
    }
    left.sort();
    (size == 1).then_some((left, coefficient))
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1).max(1)
}

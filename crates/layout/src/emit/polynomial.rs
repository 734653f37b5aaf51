//! Sums of products of operations, and the operations that compute them.
//!
//! Law: equal polynomials in the same operations are the same value here; and the operations that
//! [`EmittedPolynomial::compute`] adds to a graph have the value of the polynomial, with common
//! factors extracted: `K*i + 128*K*j` is `(i + j * 128) * K`.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::emit::graph::{Graph, Id};
use crate::emit::range::Range;

/// The most terms of a polynomial.
const MAX_TERMS: usize = 1024;

/// The coefficient of each product; no coefficient is 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct EmittedPolynomial {
    terms: BTreeMap<Vec<Id>, i64>,
}

impl EmittedPolynomial {
    pub(crate) fn constant(value: i64) -> EmittedPolynomial {
        EmittedPolynomial::term(Vec::new(), value)
    }

    pub(crate) fn term(mut factors: Vec<Id>, coefficient: i64) -> EmittedPolynomial {
        factors.sort();
        EmittedPolynomial { terms: (coefficient != 0).then_some((factors, coefficient)).into_iter().collect() }
    }

    /// The polynomial of one operation.
    pub(crate) fn of(graph: &Graph, id: Id) -> EmittedPolynomial {
        match graph.constant(id) {
            Some(value) => EmittedPolynomial::constant(value),
            None => EmittedPolynomial::term(vec![id], 1),
        }
    }

    pub(crate) fn terms(&self) -> impl Iterator<Item = (&Vec<Id>, i64)> {
        self.terms.iter().map(|(factors, coefficient)| (factors, *coefficient))
    }

    pub(crate) fn known(&self) -> Option<i64> {
        match self.terms.iter().next() {
            None => Some(0),
            Some((factors, value)) if factors.is_empty() && self.terms.len() == 1 => Some(*value),
            Some(_) => None,
        }
    }

    /// The only term; None if there is another number of terms.
    pub(crate) fn single(&self) -> Option<(&Vec<Id>, i64)> {
        self.terms().next().filter(|_| self.terms.len() == 1)
    }

    pub(crate) fn plus(mut self, other: &EmittedPolynomial) -> Option<EmittedPolynomial> {
        for (factors, coefficient) in other.terms() {
            self.add(factors.clone(), coefficient)?;
        }
        Some(self)
    }

    pub(crate) fn add(&mut self, factors: Vec<Id>, coefficient: i64) -> Option<()> {
        let sum = self.terms.get(&factors).copied().unwrap_or(0).checked_add(coefficient)?;
        if sum == 0 {
            self.terms.remove(&factors);
        } else {
            self.terms.insert(factors, sum);
        }
        (self.terms.len() <= MAX_TERMS).then_some(())
    }

    pub(crate) fn times(&self, other: &EmittedPolynomial) -> Option<EmittedPolynomial> {
        if self.terms.len().checked_mul(other.terms.len())? > 4 * MAX_TERMS {
            return None;
        }
        let mut product = EmittedPolynomial::default();
        for (left, a) in self.terms() {
            for (right, b) in other.terms() {
                let mut factors: Vec<Id> = left.iter().chain(right).copied().collect();
                factors.sort();
                product.add(factors, a.checked_mul(b)?)?;
            }
        }
        Some(product)
    }

    pub(crate) fn range(&self, graph: &Graph) -> Range {
        let term = |(factors, coefficient): (&Vec<Id>, i64)| {
            factors.iter().fold(Range::exactly(coefficient), |product, id| product.times(graph.range(*id)))
        };
        self.terms().map(term).fold(Range::exactly(0), Range::plus)
    }

    /// Adds the operations that compute it.
    pub(crate) fn compute(&self, graph: &mut Graph) -> Id {
        let range = self.range(graph);
        let id = sum_of(graph, self.terms.iter().map(|(factors, value)| (factors.clone(), *value)).collect());
        match graph.constant(id) {
            Some(_) => id,
            None => graph.add(graph.op(id), range),
        }
    }
}

/// A term of a sum, added or subtracted.
struct Summand {
    id: Id,
    negative: bool,
}

/// Adds the operations that compute a sum of terms.
fn sum_of(graph: &mut Graph, terms: Vec<(Vec<Id>, i64)>) -> Id {
    let mut parts = Vec::new();
    parts_of(graph, terms, &mut parts);
    // Terms are sorted by their first variables, constants last; subtracted terms follow the
    // others.
    parts.sort_by_key(|part| graph.first(part.id));
    if let Some(place) = parts.iter().position(|part| !part.negative) {
        parts[..=place].rotate_right(1);
    }
    let mut sum: Option<Id> = None;
    for part in parts {
        sum = Some(match (sum, part.negative) {
            (None, false) => part.id,
            (None, true) => match graph.constant(part.id).and_then(i64::checked_neg) {
                Some(value) => graph.integer(value),
                None => graph.negative(part.id),
            },
            (Some(sum), false) => graph.sum(sum, part.id),
            (Some(sum), true) => graph.difference(sum, part.id),
        });
    }
    sum.unwrap_or_else(|| graph.integer(0))
}

fn parts_of(graph: &mut Graph, mut terms: Vec<(Vec<Id>, i64)>, parts: &mut Vec<Summand>) {
    while let Some((_, coefficient)) = terms.first() {
        // The operand that most terms share; of several, the later variable, so that the rest
        // begins with the earlier ones.
        let mut counts: BTreeMap<Id, usize> = BTreeMap::new();
        for (factors, _) in &terms {
            let mut before = None;
            for factor in factors.iter().filter(|factor| before.replace(**factor) != Some(**factor)) {
                *counts.entry(*factor).or_default() += 1;
            }
        }
        let shared =
            counts.iter().filter(|(_, count)| **count > 1).max_by_key(|(id, count)| (**count, graph.first(**id)));
        if let Some((factor, _)) = shared {
            let factor = *factor;
            let (with, without): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(own, _)| own.contains(&factor));
            let less = with.into_iter().map(|(mut own, coefficient)| {
                if let Some(place) = own.iter().position(|own| *own == factor) {
                    own.remove(place);
                }
                (own, coefficient)
            });
            let inner = sum_of(graph, less.collect());
            let id = ordered_product(graph, inner, factor);
            parts.push(Summand { id, negative: false });
            terms = without;
            continue;
        }
        // Terms whose coefficients have the same magnitude share one product.
        let size = coefficient.unsigned_abs();
        let equal = |term: &(Vec<Id>, i64)| size > 1 && !term.0.is_empty() && term.1.unsigned_abs() == size;
        if terms.iter().filter(|term| equal(term)).count() > 1 {
            let (with, without): (Vec<_>, Vec<_>) = terms.into_iter().partition(equal);
            let negative = with.iter().all(|(_, own)| *own < 0);
            let unit = |own: i64| if (own < 0) == negative { 1 } else { -1 };
            let inner = sum_of(graph, with.iter().map(|(factors, own)| (factors.clone(), unit(*own))).collect());
            let id = scaled(graph, inner, size, negative);
            parts.push(id);
            terms = without;
            continue;
        }
        let (factors, coefficient) = terms.remove(0);
        let product = factors.into_iter().fold(None, |product, factor| match product {
            Some(product) => Some(ordered_product(graph, product, factor)),
            None => Some(factor),
        });
        let part = match product {
            Some(product) => scaled(graph, product, coefficient.unsigned_abs(), coefficient < 0),
            None => number(graph, coefficient.unsigned_abs(), coefficient < 0),
        };
        parts.push(part);
    }
}

/// The product with the earlier variable first.
fn ordered_product(graph: &mut Graph, a: Id, b: Id) -> Id {
    if graph.first(b) < graph.first(a) { graph.product(b, a) } else { graph.product(a, b) }
}

fn scaled(graph: &mut Graph, id: Id, size: u64, negative: bool) -> Summand {
    let Summand { id: by, negative } = number(graph, size, negative);
    Summand { id: graph.product(id, by), negative }
}

/// A constant of this magnitude; the least number includes its sign.
fn number(graph: &mut Graph, size: u64, negative: bool) -> Summand {
    match i64::try_from(size) {
        Ok(size) => Summand { id: graph.integer(size), negative },
        Err(_) => Summand { id: graph.integer(i64::MIN), negative: false },
    }
}

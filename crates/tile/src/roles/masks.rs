//! Masks that are all true in most iterations of a loop.
//!
//! Law: a selection that compares sums of blocks, iterations and coordinates is true for all
//! elements of an iteration if the largest difference of both sides is below its bound. If that
//! difference decreases from iteration to iteration, the selection is all true from some iteration
//! on. If it increases, the selection is all true in all iterations except some last ones, which
//! are counted back from the last iteration. If an iteration handles `j*64 + 0..63 < S` in
//! `ceil(S/64)` iterations, that is only the last one, because there are fewer than `S/64 + 1` of
//! them.

use std::collections::HashSet;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Stride, Truth};

use crate::program::{Count, Counter, Loop, Name, Operation, Program, Statement, ValueId};
use crate::sums::{Sum, SumTerm, Sums};

/// The most iterations at either end of a loop that are emitted separately.
const TURNS: i64 = 4;

/// Masks of a loop that can be omitted in most iterations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Masks {
    /// From this iteration on, the masks of `early` are all true.
    pub(crate) first: i64,
    pub(crate) early: HashSet<ValueId>,
    /// The number of last iterations in which the masks of `late` may not be all true.
    pub(crate) last: i64,
    pub(crate) late: HashSet<ValueId>,
}

/// The selections of a loop that select their first tile for all elements in most iterations.
pub(crate) fn masks(program: &Program, own: &Loop) -> Masks {
    let sums = Sums::new(program);
    let iteration = SumTerm::Name(Name::Iteration(own.iteration));
    let mut found = Masks::default();
    for statement in &own.body {
        let Statement::Let { result, operation: Operation::Select(comparison), operands, .. } = statement else {
            continue;
        };
        let Some((difference, bound)) = sums.difference(*comparison, operands) else { continue };
        let Some(most) = difference.greatest().and_then(|greatest| greatest.checked_sub(bound)) else { continue };
        // A quotient or a remainder of the iteration does not change by the same amount in each
        // iteration.
        let is_part = |term: &SumTerm| match term {
            SumTerm::Name(name) => name.is_part() && name.counter() == Counter::Iteration(own.iteration),
            SumTerm::Size(_) => false,
        };
        if difference.terms.keys().any(is_part) {
            continue;
        }
        let by = difference.terms.get(&iteration).copied().unwrap_or(0);
        if by <= 0 {
            let whole = (0..=TURNS).find(|at| most.saturating_add(by.saturating_mul(*at)) <= 0);
            if let Some(whole) = whole.filter(|_| difference.terms.keys().all(|term| *term == iteration)) {
                found.first = found.first.max(whole);
                found.early.insert(*result);
            }
            continue;
        }
        let last = match &own.count {
            Count::Index(count) => {
                let behind = || {
                    let count = Sum::of_index(count).scaled(by)?;
                    difference.plus(&Sum::of_term(iteration.clone(), by.checked_neg()?))?.plus(&count)
                };
                let behind = behind().filter(|behind| behind.terms.is_empty());
                let most = behind.and_then(|behind| behind.greatest()?.checked_sub(bound));
                // The number of iterations before the last ones.
                let before = |most: i64, last: &i64| most.saturating_sub(by.saturating_mul(1 + last)) <= 0;
                most.and_then(|most| (1..=TURNS).find(|last| before(most, last)))
            }
            Count::Value(_) => None,
            Count::Sizes(_) => {
                let mut others = difference.terms.iter().filter(|own| *own.0 != iteration);
                match (others.next(), others.next()) {
                    (Some((SumTerm::Size(size), -1)), None) if most <= by && iterations(own, size, by) => Some(1),
                    _ => None,
                }
            }
        };
        if let Some(last) = last {
            found.last = found.last.max(last);
            found.late.insert(*result);
        }
    }
    found
}

/// Whether a loop has `ceil(size / by)` iterations.
fn iterations(own: &Loop, size: &str, by: i64) -> bool {
    let Count::Sizes(text) = &own.count else { return false };
    let (count, parts) = (text.parse::<Expr>(), format!("ceil(({size})/{by})").parse::<Expr>());
    matches!((count, parts), (Ok(count), Ok(parts)) if count.same(&parts) == Truth::Proved)
}

//! Masks that are whole from some turn on.
//!
//! Law: a selection whose comparison is of sums of blocks, turns and coordinates is true for all
//! elements of a turn where the greatest difference of both sides is below its bound. Where that
//! difference falls from turn to turn, it holds from one turn on. Where it grows, it holds in all
//! turns but some last ones: those in which it is seen from the last turn not to hold, and where a
//! turn takes `j*64 + 0..63 < S` in `ceil(S/64)` turns, the last one, for there are fewer than
//! `S/64 + 1` of them.

use std::collections::{HashMap, HashSet};

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Stride, Truth};

use crate::program::{Binary, Comparison, Count, Index, Loop, Name, Operation, Program, Statement, ValueId};

/// The most turns that are written for themselves.
const TURNS: i64 = 4;

/// What a sum is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Term {
    Name(Name),
    Size(String),
}

/// Masks of a loop that its turns need not take.
#[derive(Debug, Clone, Default)]
pub(crate) struct Masks {
    /// From this turn on those of `early` are whole.
    pub(crate) first: i64,
    pub(crate) early: HashSet<ValueId>,
    /// How many turns are the last in which those of `late` may not be whole.
    pub(crate) last: i64,
    pub(crate) late: HashSet<ValueId>,
}

/// A sum of terms, and a number between two.
#[derive(Debug, Clone)]
struct Sum {
    terms: HashMap<Term, i64>,
    least: i64,
    greatest: i64,
}

impl Sum {
    fn scaled(&self, by: i64) -> Option<Sum> {
        let terms =
            self.terms.iter().map(|(name, own)| Some((name.clone(), own.checked_mul(by)?))).collect::<Option<_>>()?;
        let (a, b) = (self.least.checked_mul(by)?, self.greatest.checked_mul(by)?);
        Some(Sum { terms, least: a.min(b), greatest: a.max(b) })
    }

    fn plus(&self, other: &Sum) -> Option<Sum> {
        let mut terms = self.terms.clone();
        for (name, by) in &other.terms {
            let own = terms.entry(name.clone()).or_insert(0);
            *own = own.checked_add(*by)?;
        }
        terms.retain(|_, by| *by != 0);
        let (least, greatest) = (self.least.checked_add(other.least)?, self.greatest.checked_add(other.greatest)?);
        Some(Sum { terms, least, greatest })
    }
}

type Given<'p> = HashMap<ValueId, (&'p Operation, &'p [ValueId])>;

fn collect<'p>(body: &'p [Statement], found: &mut Given<'p>) {
    for statement in body {
        match statement {
            Statement::Let { result, operation, operands, .. } => {
                found.insert(*result, (operation, operands));
            }
            Statement::Loop(own) => collect(&own.body, found),
            Statement::Store { .. } => {}
        }
    }
}

/// A value as a sum, where it is one.
fn sum(given: &Given<'_>, value: ValueId) -> Option<Sum> {
    let (operation, operands) = given.get(&value)?;
    let number = |least: i64, greatest: i64| Sum { terms: HashMap::new(), least, greatest };
    match operation {
        Operation::Constant(element, value) if !element.is_float() && value.fract() == 0.0 && value.abs() < 1e9 => {
            Some(number(*value as i64, *value as i64))
        }
        Operation::Number(index) => Some(sum_of(index)),
        Operation::Size(text) => {
            Some(Sum { terms: HashMap::from([(Term::Size(text.trim().to_string()), 1)]), ..number(0, 0) })
        }
        Operation::Arange { shape, mode } => Some(number(0, shape.get(*mode)? - 1)),
        Operation::Broadcast(_) | Operation::Reshape(_) | Operation::Transpose(_) | Operation::Held(_) => {
            sum(given, operands[0])
        }
        Operation::Binary(Binary::Add) => sum(given, operands[0])?.plus(&sum(given, operands[1])?),
        Operation::Binary(Binary::Subtract) => sum(given, operands[0])?.plus(&sum(given, operands[1])?.scaled(-1)?),
        _ => None,
    }
}

/// Which selections of a loop take their first tile alone in most turns.
pub(super) fn masks(program: &Program, own: &Loop) -> Masks {
    let mut given = Given::new();
    collect(&program.body, &mut given);
    let turn = Term::Name(Name::Turn(own.turn));
    let mut found = Masks::default();
    for statement in &own.body {
        let Statement::Let { result, operation: Operation::Select(comparison), operands, .. } = statement else {
            continue;
        };
        let difference = || {
            let (left, right) = (sum(&given, operands[0])?, sum(&given, operands[1])?);
            left.plus(&right.scaled(-1)?)
        };
        let bound = match comparison {
            Comparison::LessEqual => 0,
            Comparison::Less => -1,
            Comparison::Equal => continue,
        };
        let Some(difference) = difference() else { continue };
        let Some(most) = difference.greatest.checked_sub(bound) else { continue };
        let by = difference.terms.get(&turn).copied().unwrap_or(0);
        if by <= 0 {
            let whole = (0..=TURNS).find(|at| most.saturating_add(by.saturating_mul(*at)) <= 0);
            if let Some(whole) = whole.filter(|_| difference.terms.keys().all(|term| *term == turn)) {
                found.first = found.first.max(whole);
                found.early.insert(*result);
            }
            continue;
        }
        let last = match &own.count {
            Count::Index(count) => {
                let behind = || {
                    let count = sum_of(count).scaled(by)?;
                    let turns = Sum { terms: HashMap::from([(turn.clone(), 1)]), least: 0, greatest: 0 };
                    difference.plus(&turns.scaled(by.checked_neg()?)?)?.plus(&count)
                };
                let behind = behind().filter(|behind| behind.terms.is_empty());
                let most = behind.and_then(|behind| behind.greatest.checked_sub(bound));
                // So many turns before the last.
                let before = |most: i64, last: &i64| most.saturating_sub(by.saturating_mul(1 + last)) <= 0;
                most.and_then(|most| (1..=TURNS).find(|last| before(most, last)))
            }
            Count::Sizes(_) => {
                let mut others = difference.terms.iter().filter(|own| *own.0 != turn);
                match (others.next(), others.next()) {
                    (Some((Term::Size(size), -1)), None) if most <= by && turns(own, size, by) => Some(1),
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

/// An index as a sum.
fn sum_of(index: &Index) -> Sum {
    let terms = index.terms.iter().map(|(name, by)| (Term::Name(*name), *by)).collect();
    Sum { terms, least: index.constant, greatest: index.constant }
}

/// Whether a loop has as many turns as a size has parts of so many.
fn turns(own: &Loop, size: &str, by: i64) -> bool {
    let Count::Sizes(text) = &own.count else { return false };
    let (count, parts) = (text.parse::<Expr>(), format!("ceil(({size})/{by})").parse::<Expr>());
    matches!((count, parts), (Ok(count), Ok(parts)) if count.same(&parts) == Truth::Proved)
}

//! Masks that are whole from some turn on.
//!
//! Law: a selection whose comparison is of sums of blocks, turns and coordinates is true for all
//! elements of a turn where the greatest difference of both sides is below its bound. Where that
//! difference falls from turn to turn, it holds from one turn on.

use std::collections::{HashMap, HashSet};

use crate::program::{Binary, Comparison, Loop, Name, Operation, Program, Statement, ValueId};

/// The most turns that are written for themselves.
const TURNS: i64 = 4;

/// A sum of names, and a number between two.
#[derive(Debug, Clone)]
struct Sum {
    terms: HashMap<Name, i64>,
    least: i64,
    greatest: i64,
}

impl Sum {
    fn scaled(&self, by: i64) -> Option<Sum> {
        let terms = self.terms.iter().map(|(name, own)| Some((*name, own.checked_mul(by)?))).collect::<Option<_>>()?;
        let (a, b) = (self.least.checked_mul(by)?, self.greatest.checked_mul(by)?);
        Some(Sum { terms, least: a.min(b), greatest: a.max(b) })
    }

    fn plus(&self, other: &Sum) -> Option<Sum> {
        let mut terms = self.terms.clone();
        for (name, by) in &other.terms {
            let own = terms.entry(*name).or_insert(0);
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
        Operation::Number(index) => {
            Some(Sum { terms: index.terms.iter().copied().collect(), ..number(index.constant, index.constant) })
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

/// From which turn on the selections of a loop take their first tile alone, and which they are;
/// 0 and none where there are none, or where that is not shown for few turns.
pub(super) fn whole_from(program: &Program, own: &Loop) -> (i64, HashSet<ValueId>) {
    let mut given = Given::new();
    collect(&program.body, &mut given);
    let turn = Name::Turn(own.turn);
    let (mut first, mut masks) = (0, HashSet::new());
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
        let falls = difference.terms.get(&turn).copied().unwrap_or(0);
        if difference.terms.keys().any(|name| *name != turn) || falls > 0 {
            continue;
        }
        let whole = (0..=TURNS).find(|at| difference.greatest.saturating_add(falls.saturating_mul(*at)) <= bound);
        if let Some(whole) = whole {
            first = first.max(whole);
            masks.insert(*result);
        }
    }
    (first, masks)
}

//! Loops with two `dot`, the second of which overlaps the next iteration.
//!
//! Law: an iteration multiplies loaded operands, computes, and multiplies the result into
//! loop-carried accumulators. So the first `dot` of an iteration does not depend on the previous
//! one, and is issued before the second `dot` of the previous iteration. Computations between both
//! run concurrently with them. Computations that need the accumulators come after.

use std::collections::{HashMap, HashSet};

use super::masks::{self, Masks};
use crate::program::statement::definitions;
use crate::program::{Loop, Operation, Program, Statement, ValueId};

/// A loop whose iterations overlap.
#[derive(Debug, Clone)]
pub(crate) struct Overlap {
    /// The first `dot` of an iteration.
    pub(crate) early: ValueId,
    /// The last `dot` of an iteration.
    pub(crate) late: ValueId,
    /// The number of the loop-carried value that holds the accumulators of the last `dot`.
    pub(crate) sums: usize,
    /// Values that are computed after the last `dot` of the previous iteration has finished.
    pub(crate) behind: HashSet<ValueId>,
    /// The masks that can be omitted in most iterations.
    pub(crate) masks: Masks,
}

/// The overlap of a loop; None if it is not a loop of two such `dot`.
pub(super) fn overlap(program: &Program, own: &Loop) -> Option<Overlap> {
    let mut given: HashMap<ValueId, (&Operation, &[ValueId])> = HashMap::new();
    let mut products = Vec::new();
    let mut order = Vec::new();
    for statement in &own.body {
        let Statement::Let { result, operation, operands, .. } = statement else { return None };
        given.insert(*result, (operation, operands));
        order.push(*result);
        if let Operation::Dot = operation {
            products.push(*result);
        }
    }
    let [early, late] = products.as_slice() else { return None };
    let sums = own.next.iter().position(|value| value == late)?;
    let uses = order.iter().flat_map(|value| given[value].1).filter(|value| *value == late).count();
    if uses > 0 || own.next.iter().filter(|value| *value == late).count() > 1 {
        return None;
    }
    // The previous iteration must not affect the first `dot`, and accumulators must not affect
    // operands.
    let reach = |from: &[ValueId]| {
        let mut reached: HashSet<ValueId> = from.iter().copied().collect();
        for value in &order {
            if given[value].1.iter().any(|operand| reached.contains(operand)) {
                reached.insert(*value);
            }
        }
        reached
    };
    if reach(&own.parameters).contains(early) || !reach(&[*early]).contains(late) {
        return None;
    }
    if !is_zero(program, given[early].1[2]) {
        return None;
    }
    let mut behind = reach(&[own.parameters[sums]]);
    behind.remove(late);
    // The operand is rounded once the registers of the previous operand are free.
    let operand = given[late].1[0];
    if let Some((Operation::To(_), _)) = given.get(&operand) {
        let others = order.iter().filter(|value| *value != late).flat_map(|value| given[value].1);
        if others.chain(&own.next).all(|value| *value != operand) {
            behind.insert(operand);
        }
    }
    let is_behind = |value: &ValueId| behind.contains(value) && !matches!(given[value].0, Operation::To(_));
    if is_behind(&operand) || given.get(&given[late].1[1]).is_none_or(|own| !matches!(own.0, Operation::Stage { .. })) {
        return None;
    }
    Some(Overlap { early: *early, late: *late, sums, behind, masks: masks::masks(program, own) })
}

/// Whether a value is a tile of zeros.
pub(crate) fn is_zero(program: &Program, value: ValueId) -> bool {
    match definitions(&program.body).find(|own| own.0 == value) {
        Some((_, Operation::Constant(_, number), _)) => *number == 0.0,
        Some((_, Operation::Broadcast(_) | Operation::Held(_), operands)) => is_zero(program, operands[0]),
        _ => false,
    }
}

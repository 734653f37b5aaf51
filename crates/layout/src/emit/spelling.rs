//! Replaces operations that a language lacks by operations that it has.
//!
//! Law: every result keeps its value. If quotient and remainder of one division are both needed
//! and can have names, the division is done once: `r = n - q * d`.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::emit::graph::{Graph, Id, Op};
use crate::emit::language::OperationTable;
use crate::symbolic::Rounding;

/// The operations that the results need, operands first.
pub(crate) fn needed(graph: &Graph, results: &[Id]) -> Vec<Id> {
    let mut used: BTreeSet<Id> = results.iter().copied().collect();
    for id in graph.ids().rev() {
        if used.contains(&id) {
            used.extend(graph.op(id).operands());
        }
    }
    graph.ids().filter(|id| used.contains(id)).collect()
}

/// Rebuilds the graph of the results with the operations of a language; returns the graph and the
/// results in it. `named` means that parts may get names.
pub(crate) fn spelled(graph: &Graph, results: &[Id], table: &dyn OperationTable, named: bool) -> (Graph, Vec<Id>) {
    let mut new = Graph::with_variables_of(graph);
    let mut place: BTreeMap<Id, Id> = BTreeMap::new();
    let order = needed(graph, results);
    let mut divided = BTreeSet::new();
    for id in &order {
        if let (true, Op::Quotient(n, d, rounding)) = (named, graph.op(*id)) {
            divided.insert((n, d, rounding));
        }
    }
    for id in order {
        let op = graph.op(id).over(|operand| place.get(&operand).copied().unwrap_or(operand));
        let shared = matches!(graph.op(id), Op::Remainder(n, d, rounding) if divided.contains(&(n, d, rounding)));
        let range = graph.range(id);
        let spelling = match op {
            Op::Variable(number) => new.variable_numbered(number),
            Op::Remainder(n, d, rounding) if shared => {
                let quotient = quotient(&mut new, n, d, rounding, table);
                // The product is at most the dividend, which interval arithmetic does not find.
                let whole = if new.range(n).not_negative() {
                    let bound = crate::emit::range::Range { least: Some(0), greatest: new.range(n).greatest };
                    new.add(Op::Product(quotient, d), bound)
                } else {
                    new.product(quotient, d)
                };
                new.add(Op::Difference(n, whole), range)
            }
            Op::Quotient(n, d, rounding) => quotient(&mut new, n, d, rounding, table),
            Op::Remainder(n, d, rounding) => remainder(&mut new, n, d, rounding, table),
            Op::Minimum(a, b) if table.form(op).is_none() => {
                let less = new.less(a, b);
                new.choice(less, a, b)
            }
            Op::Magnitude(a) if table.form(op).is_none() => {
                let negative = is_negative(&mut new, a);
                let opposite = new.negative(a);
                new.choice(negative, opposite, a)
            }
            other => new.add(other, range),
        };
        place.insert(id, new.add(new.op(spelling), range));
    }
    let results = results.iter().map(|id| place.get(id).copied().unwrap_or(*id)).collect();
    (new, results)
}

fn is_negative(graph: &mut Graph, a: Id) -> Id {
    let zero = graph.integer(0);
    graph.less(a, zero)
}

fn quotient(graph: &mut Graph, n: Id, d: Id, rounding: Rounding, table: &dyn OperationTable) -> Id {
    if table.form(Op::Quotient(n, d, rounding)).is_some() {
        return graph.quotient(n, d, rounding);
    }
    match rounding {
        Rounding::Up => {
            let one = graph.integer(1);
            let most = match graph.constant(d) {
                Some(d) => graph.integer(d.saturating_sub(1)),
                None => graph.difference(d, one),
            };
            let sum = graph.sum(n, most);
            graph.quotient(sum, d, Rounding::Plain)
        }
        // The quotient toward zero, minus one if the remainder is negative.
        Rounding::Down => {
            let whole = graph.quotient(n, d, Rounding::TowardZero);
            let left = graph.remainder(n, d, Rounding::TowardZero);
            let (below, one) = (is_negative(graph, left), graph.integer(1));
            let less = graph.difference(whole, one);
            graph.choice(below, less, whole)
        }
        // The quotient of the magnitude, rounded down.
        _ => {
            let (below, opposite) = (is_negative(graph, n), graph.negative(n));
            let mirrored = graph.quotient(opposite, d, Rounding::Down);
            let (mirrored, whole) = (graph.negative(mirrored), graph.quotient(n, d, Rounding::Down));
            graph.choice(below, mirrored, whole)
        }
    }
}

fn remainder(graph: &mut Graph, n: Id, d: Id, rounding: Rounding, table: &dyn OperationTable) -> Id {
    if table.form(Op::Remainder(n, d, rounding)).is_some() {
        return graph.remainder(n, d, rounding);
    }
    match rounding {
        Rounding::Down => {
            let left = graph.remainder(n, d, Rounding::TowardZero);
            let (below, above) = (is_negative(graph, left), graph.sum(left, d));
            graph.choice(below, above, left)
        }
        _ => {
            let (below, opposite) = (is_negative(graph, n), graph.negative(n));
            let mirrored = graph.remainder(opposite, d, Rounding::Down);
            let (mirrored, left) = (graph.negative(mirrored), graph.remainder(n, d, Rounding::Down));
            graph.choice(below, mirrored, left)
        }
    }
}

//! Factors of products by way of shared memory.
//!
//! Law: a load whose tile only products take, reshaped and transposed or not, becomes a
//! [`Operation::Stage`] of the same matrix; the program means the same. A tile may say the
//! coordinate along one of its other modes: one that is known before the loop of the product, since
//! copies are ahead of it. It is done where memory has 16 bytes of a row side by side, so that
//! copies are asynchronous, and where the threads of a block have a copy each. The copy engine
//! needs no threads, and brings a tile once for several products.

use std::collections::{HashMap, HashSet};

use tilewright_layout::symbolic::Values;

use crate::by_hand::{ByHand, Given};
use crate::error::Reason;
use crate::memory::Place;
use crate::program::{Index, Loop, Operation, Program, Statement, ValueId};

/// Where the matrix of a value is: the load, and the modes of its tile that are rows and columns.
#[derive(Debug, Clone)]
struct Matrix {
    load: ValueId,
    /// For each mode of the value, which mode of the load's tile it is; none for those of one
    /// element.
    modes: Vec<Option<usize>>,
}

/// How often each value is used.
fn uses(body: &[Statement], found: &mut HashMap<ValueId, usize>) {
    let mut add = |values: &[ValueId]| values.iter().for_each(|value| *found.entry(*value).or_insert(0) += 1);
    for statement in body {
        match statement {
            Statement::Let { operands, .. } => add(operands),
            Statement::Store { value, rows, .. } => {
                add(&[*value]);
                add(rows.map(|(_, rows)| rows).as_slice());
            }
            Statement::Loop(own) => {
                add(&own.initial);
                add(&own.next);
                add(own.count.value().as_slice());
            }
        }
    }
    for statement in body {
        if let Statement::Loop(own) = statement {
            uses(&own.body, found);
        }
    }
}

/// The operations of all statements.
fn definitions<'p>(body: &'p [Statement], found: &mut HashMap<ValueId, (&'p Operation, &'p [ValueId])>) {
    for statement in body {
        match statement {
            Statement::Let { result, operation, operands, .. } => {
                found.insert(*result, (operation, operands));
            }
            Statement::Loop(own) => definitions(&own.body, found),
            Statement::Store { .. } => {}
        }
    }
}

/// The body in which each value is given, by its number; 0 is that of the program.
fn bodies(body: &[Statement], number: usize, count: &mut usize, found: &mut HashMap<ValueId, usize>) {
    for statement in body {
        match statement {
            Statement::Let { result, .. } => {
                found.insert(*result, number);
            }
            Statement::Loop(own) => {
                *count += 1;
                let inner = *count;
                found.extend(own.parameters.iter().map(|value| (*value, inner)));
                found.extend(own.results.iter().map(|value| (*value, number)));
                bodies(&own.body, inner, count, found);
            }
            Statement::Store { .. } => {}
        }
    }
}

/// A tile of a tensor that is read: the tensor, the shape, which tile, what lies past the edges,
/// and the mode along which another tile says where.
type Tile<'p> = (&'p usize, &'p Vec<i64>, &'p Vec<Index>, &'p f64, Option<usize>);

fn tile(operation: &Operation) -> Option<Tile<'_>> {
    match operation {
        Operation::Load { tensor, shape, at, other } => Some((tensor, shape, at, other, None)),
        Operation::Gather { tensor, shape, at, mode, other } => Some((tensor, shape, at, other, Some(*mode))),
        _ => None,
    }
}

/// What stands in place of the last operation before a product, and the tile that says where.
type Stages = HashMap<ValueId, (Operation, Option<ValueId>)>;

/// Who copies the factors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Copies {
    /// So many threads, each its part.
    Threads(i64),
    /// The copy engine.
    Bulk,
}

/// The program with its factors by way of shared memory.
///
/// Errors: what an author's atom brings to shared memory is no factor, or does not fit.
pub(crate) fn staged(program: &Program, copies: Copies, by_hand: &ByHand, sizes: &Values) -> Result<Program, Reason> {
    let (mut used, mut known) = (HashMap::new(), HashMap::new());
    uses(&program.body, &mut used);
    definitions(&program.body, &mut known);
    let mut within = HashMap::new();
    bodies(&program.body, 0, &mut 0, &mut within);
    let factors = || known.values().filter(|(operation, _)| matches!(operation, Operation::Dot)).map(|own| &own.1[..2]);
    let matrix = |value: ValueId| -> Option<Matrix> {
        let mut chain = Vec::new();
        let mut value = value;
        // Products may share what the engine brings.
        let shared = match copies {
            Copies::Threads(_) => 1,
            Copies::Bulk => factors().flatten().filter(|factor| **factor == value).count().max(1),
        };
        loop {
            let most = if chain.is_empty() { shared } else { 1 };
            if used.get(&value) != Some(&most) {
                return None;
            }
            let (operation, operands) = known.get(&value)?;
            match operation {
                Operation::Load { .. } | Operation::Gather { .. } => break,
                Operation::Transpose(_) | Operation::Reshape(_) => chain.push((operands[0], value, *operation)),
                _ => return None,
            }
            value = operands[0];
        }
        // Forwards again: which mode is which.
        let mut modes: Vec<Option<usize>> = (0..program.type_of(value).shape.len()).map(Some).collect();
        for (from, to, operation) in chain.into_iter().rev() {
            let shape = &program.type_of(from).shape;
            modes = match operation {
                Operation::Transpose(order) => order.iter().map(|mode| modes[*mode]).collect(),
                // A reshape that only adds or takes away extents of 1.
                _ => {
                    let many = |shape: &[i64]| shape.iter().copied().filter(|extent| *extent > 1).collect::<Vec<_>>();
                    let to = &program.type_of(to).shape;
                    if many(shape) != many(to) {
                        return None;
                    }
                    let mut own = modes.iter().zip(shape).filter(|(_, extent)| **extent > 1).map(|(mode, _)| *mode);
                    to.iter().map(|extent| if *extent > 1 { own.next().flatten() } else { None }).collect()
                }
            };
        }
        Some(Matrix { load: value, modes })
    };
    let is_ahead = |value: ValueId, of: ValueId| within.get(&value) != within.get(&of) || within.get(&of) == Some(&0);
    let mut stages: Stages = HashMap::new();
    let mut brought: HashSet<ValueId> = HashSet::new();
    for (operation, operands) in known.values() {
        let Operation::Dot = operation else { continue };
        for factor in &operands[..2] {
            let Some(Matrix { load, modes }) = matrix(*factor) else { continue };
            let [Some(rows), Some(columns)] = modes.as_slice() else { continue };
            let Some((tensor, shape, at, other, picked)) = known.get(&load).and_then(|own| tile(own.0)) else {
                continue;
            };
            let said = known.get(&load).and_then(|own| own.1.first()).copied();
            let ahead = said.is_none_or(|value| is_ahead(value, load));
            if picked.is_some_and(|mode| [*rows, *columns].contains(&mode)) || !ahead {
                continue;
            }
            if let Some(Given::Bits(_)) = by_hand.of(load) {
                continue;
            }
            let place = Place::new(program, *tensor, shape, sizes)?;
            let inner = [*rows, *columns].into_iter().find(|mode| place.is_wide_along(shape, *mode));
            // Matrices of 8 bits are read by threads as they lie: those in shared memory are of 16.
            let bits = program.tensors[*tensor].element.bits();
            let fits = |mode: usize| match copies {
                Copies::Threads(_) if bits != 16 => false,
                Copies::Threads(threads) => shape.iter().product::<i64>() / 8 >= threads && shape[mode] <= 8 * threads,
                Copies::Bulk => true,
            };
            if *other == 0.0 && inner.is_some_and(fits) {
                let (tensor, shape, at) = (*tensor, shape.clone(), at.clone());
                let stage = Operation::Stage { tensor, shape, at, modes: [*rows, *columns], picked };
                stages.insert(*factor, (stage, said));
                brought.insert(load);
            }
        }
    }
    let apart = |given| matches!(given, Given::Threads | Given::Engine);
    if let Some(value) = by_hand.first_of(apart, |value| !brought.contains(&value)) {
        let because = "only products take what goes by way of shared memory, in rows of 16 bytes and more, and each \
                       thread of the block copies a part";
        return Err(by_hand.refused(value, because));
    }
    let mut staged = program.clone();
    staged.body = crate::place::live(written(&program.body, &stages));
    Ok(staged)
}

/// Statements with stages in place of the last operations before products.
fn written(body: &[Statement], stages: &Stages) -> Vec<Statement> {
    let one = |statement: &Statement| match statement {
        Statement::Let { result, place, .. } if stages.contains_key(result) => {
            let (operation, picked) = stages[result].clone();
            Statement::Let { result: *result, operation, operands: picked.into_iter().collect(), place: *place }
        }
        Statement::Loop(own) => Statement::Loop(Loop { body: written(&own.body, stages), ..own.clone() }),
        other => other.clone(),
    };
    body.iter().map(one).collect()
}

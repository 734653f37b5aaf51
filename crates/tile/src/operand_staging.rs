//! Staging of `dot` operands in shared memory.
//!
//! Law: a load whose tile is used only by `dot`, reshaped and transposed or not, becomes an
//! [`Operation::Stage`] of the same matrix; the program means the same. Another tile may give the
//! coordinate along one of its other modes, or the coordinates of rows, which threads copy one by
//! one. Copies run ahead of their iterations, so coordinates must be computed ahead, too. It is
//! done if 16 bytes of a row are contiguous in memory, so that copies are asynchronous, and if the
//! threads of a block have a copy each. TMA needs no threads, and loads a tile once for several
//! `dot`.

use std::collections::{HashMap, HashSet};

use tilewright_layout::symbolic::Values;

use crate::by_hand::{ByHand, Given};
use crate::error::Reason;
use crate::memory::Place;
use crate::program::ahead::is_repeatable;
use crate::program::statement::{definitions, statements};
use crate::program::{Index, Loop, Operation, Program, Role, Statement, ValueId};

/// Where the matrix of a value is: the load, and the modes of its tile that are rows and columns.
#[derive(Debug, Clone)]
struct Matrix {
    load: ValueId,
    /// For each mode of the value, which mode of the load's tile it is; none for those of one
    /// element.
    modes: Vec<Option<usize>>,
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

/// A tile of a tensor that is loaded: the tensor, the shape, the indices, the value past the edges,
/// and the mode along which another tile gives the coordinates.
type Tile<'p> = (&'p usize, &'p Vec<i64>, &'p Vec<Index>, &'p f64, Option<usize>);

fn tile(operation: &Operation) -> Option<Tile<'_>> {
    match operation {
        Operation::Load { tensor, shape, at, other } => Some((tensor, shape, at, other, None)),
        Operation::Gather { tensor, shape, at, modes, other } => match modes.as_slice() {
            [mode] => Some((tensor, shape, at, other, Some(*mode))),
            _ => None,
        },
        _ => None,
    }
}

/// The replacement of the last operation before a `dot`, and the tile with the coordinates.
type StagedOperation = (Operation, Option<ValueId>);

/// The replacement for each operand.
type Stages = HashMap<ValueId, StagedOperation>;

/// How operands are copied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Copies {
    /// By threads, each its part.
    Threads(i64),
    /// TMA.
    Bulk,
}

/// The values of a program, and who uses them.
struct Uses<'p> {
    program: &'p Program,
    copies: Copies,
    /// The number of uses of each value, the operation that computes it, and its body.
    used: HashMap<ValueId, usize>,
    known: HashMap<ValueId, (&'p Operation, &'p [ValueId])>,
    within: HashMap<ValueId, usize>,
}

impl<'p> Uses<'p> {
    fn of(program: &'p Program, copies: Copies) -> Uses<'p> {
        let (mut used, mut within) = (HashMap::new(), HashMap::new());
        for value in statements(&program.body).flat_map(Statement::takes) {
            *used.entry(value).or_insert(0) += 1;
        }
        let known = definitions(&program.body).map(|(value, operation, from)| (value, (operation, from))).collect();
        bodies(&program.body, 0, &mut 0, &mut within);
        Uses { program, copies, used, known, within }
    }

    /// The operands of all products.
    fn multiplied(&self) -> impl Iterator<Item = ValueId> + '_ {
        let products = self.known.values().filter(|(operation, _)| matches!(operation, Operation::Dot));
        products.flat_map(|(_, operands)| operands[..2].iter().copied())
    }

    /// The load that an operand comes from by transposing and reshaping only, if nothing else uses
    /// it.
    fn matrix(&self, operand: ValueId) -> Option<Matrix> {
        let (mut chain, mut value) = (Vec::new(), operand);
        // Several `dot` may share what TMA loads.
        let shared = match self.copies {
            Copies::Threads(_) => 1,
            Copies::Bulk => self.multiplied().filter(|own| *own == operand).count().max(1),
        };
        loop {
            let most = if chain.is_empty() { shared } else { 1 };
            if self.used.get(&value) != Some(&most) {
                return None;
            }
            let (operation, operands) = self.known.get(&value)?;
            match operation {
                Operation::Load { .. } | Operation::Gather { .. } => break,
                Operation::Transpose(_) | Operation::Reshape(_) => chain.push((operands[0], value, *operation)),
                _ => return None,
            }
            value = operands[0];
        }
        // Forwards again: which mode is which.
        let mut modes: Vec<Option<usize>> = (0..self.program.type_of(value).shape.len()).map(Some).collect();
        for (from, to, operation) in chain.into_iter().rev() {
            let (from, to) = (&self.program.type_of(from).shape, &self.program.type_of(to).shape);
            modes = match operation {
                Operation::Transpose(order) => order.iter().map(|mode| modes[*mode]).collect(),
                _ => reshaped(&modes, from, to)?,
            };
        }
        Some(Matrix { load: value, modes })
    }

    /// Whether a value is known before the loop in which another one is given, or is computed from
    /// such values.
    fn is_ahead(&self, value: ValueId, of: ValueId) -> bool {
        let within = [value, of].map(|value| self.within.get(&value));
        if within[0] != within[1] || within[1] == Some(&0) {
            return true;
        }
        let repeats = |(operation, operands): &(&Operation, &[ValueId])| {
            is_repeatable(self.program, operation) && operands.iter().all(|operand| self.is_ahead(*operand, of))
        };
        self.known.get(&value).is_some_and(repeats)
    }

    /// The replacement of an operand that is staged, and its load.
    fn stage(
        &self,
        operand: ValueId,
        by_hand: &ByHand,
        sizes: &Values,
    ) -> Result<Option<(ValueId, StagedOperation)>, Reason> {
        let Some(Matrix { load, modes }) = self.matrix(operand) else { return Ok(None) };
        let [Some(rows), Some(columns)] = modes[..] else { return Ok(None) };
        let Some((operation, operands)) = self.known.get(&load) else { return Ok(None) };
        let Some((tensor, shape, at, other, picked)) = tile(operation) else { return Ok(None) };
        let said = operands.first().copied();
        let ahead = said.is_none_or(|value| self.is_ahead(value, load));
        let by_threads = matches!(by_hand.of(load), Some(Given::Bits(_)));
        let is_changed = self.program.tensors[*tensor].role != Role::Input;
        if !ahead || by_threads || is_changed {
            return Ok(None);
        }
        // Copies to shared memory are of whole tiles.
        if at.iter().any(|index| index.by_element) {
            return Ok(None);
        }
        let place = Place::new(self.program, *tensor, (shape, at), sizes)?;
        let inner = [rows, columns].into_iter().find(|mode| place.is_wide_along(shape, *mode));
        // Matrices of 8 bits are read by threads as they lie: those in shared memory are of 16.
        let bits = self.program.tensors[*tensor].element.bits();
        let fits = |mode: usize| match self.copies {
            Copies::Threads(_) if bits != 16 => false,
            Copies::Threads(threads) => shape.iter().product::<i64>() / 8 >= threads && shape[mode] <= 8 * threads,
            Copies::Bulk => true,
        };
        // Rows at coordinates of their own are no tile that TMA loads.
        let can_pick = picked.is_none_or(|mode| {
            ![rows, columns].contains(&mode) || (matches!(self.copies, Copies::Threads(_)) && inner != Some(mode))
        });
        if *other != 0.0 || !can_pick || !inner.is_some_and(fits) {
            return Ok(None);
        }
        let (tensor, shape, at) = (*tensor, shape.clone(), at.clone());
        let stage = Operation::Stage { tensor, shape, at, modes: [rows, columns], picked };
        Ok(Some((load, (stage, said))))
    }
}

/// The modes behind a reshape that only adds or takes away extents of 1; none behind others.
fn reshaped(modes: &[Option<usize>], from: &[i64], to: &[i64]) -> Option<Vec<Option<usize>>> {
    let many = |shape: &[i64]| shape.iter().copied().filter(|extent| *extent > 1).collect::<Vec<_>>();
    if many(from) != many(to) {
        return None;
    }
    let mut own = modes.iter().zip(from).filter(|(_, extent)| **extent > 1).map(|(mode, _)| *mode);
    Some(to.iter().map(|extent| if *extent > 1 { own.next().flatten() } else { None }).collect())
}

/// The program with its operands by way of shared memory.
///
/// Errors: a tile staged by the author's atom is not an operand, or does not fit.
pub(crate) fn staged(program: &Program, copies: Copies, by_hand: &ByHand, sizes: &Values) -> Result<Program, Reason> {
    let uses = Uses::of(program, copies);
    let mut stages: Stages = HashMap::new();
    let mut brought: HashSet<ValueId> = HashSet::new();
    for operand in uses.multiplied() {
        if let Some((load, stage)) = uses.stage(operand, by_hand, sizes)? {
            stages.insert(operand, stage);
            brought.insert(load);
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

/// Statements with stages in place of the last operations before `dot`.
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

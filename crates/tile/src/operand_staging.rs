//! Staging of `dot` operands in shared memory.
//!
//! Law: a load whose tile is used only by `dot`, reshaped and transposed or not, becomes an
//! [`Operation::Stage`] of the same matrix, and the meaning of the program stays the same. Another
//! tile may hold the coordinate along one of the other modes, or the coordinates of rows, which
//! threads copy one by one. Copies are issued iterations ahead, so their coordinates must be
//! computed ahead, too. A load is staged if 16 bytes of a row are contiguous in memory, so that
//! copies are asynchronous, and if there is a copy for each thread of a block. TMA needs no
//! threads, and loads a tile once for several `dot`.

use std::collections::{HashMap, HashSet};

use tilewright_layout::symbolic::Values;

use crate::by_hand::{ByHand, Given};
use crate::error::Reason;
use crate::memory::Place;
use crate::program::ahead::is_repeatable;
use crate::program::statement::{definitions, statements};
use crate::program::{Index, Loop, Operation, Program, Role, Statement, ValueId};

/// The matrix that a value holds: the load, and the modes of the loaded tile that are rows and
/// columns.
#[derive(Debug, Clone)]
struct Matrix {
    load: ValueId,
    /// For each mode of the value, the mode of the loaded tile; None for modes of extent 1.
    modes: Vec<Option<usize>>,
}

/// Records the number of the body that defines each value. The program's body has number 0.
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

/// A load of a tile: the tensor, the shape, the indices, the value past the edges, and the mode
/// whose coordinates another tile holds.
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

/// The operation that replaces the last one before a `dot`, and the tile of coordinates.
type StagedOperation = (Operation, Option<ValueId>);

/// The replacement for each operand.
type Stages = HashMap<ValueId, StagedOperation>;

/// How operands are copied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Copies {
    /// By this many threads, each of which copies a part.
    Threads(i64),
    /// By TMA.
    Bulk,
}

/// The values of a program, and their users.
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

    /// The A and B operands of all `dot`.
    fn multiplied(&self) -> impl Iterator<Item = ValueId> + '_ {
        let products = self.known.values().filter(|(operation, _)| matches!(operation, Operation::Dot));
        products.flat_map(|(_, operands)| operands[..2].iter().copied())
    }

    /// The load that an operand is a reshaped and transposed form of, if the load has no other
    /// user.
    fn matrix(&self, operand: ValueId) -> Option<Matrix> {
        let (mut chain, mut value) = (Vec::new(), operand);
        // Several `dot` may share a tile that TMA loads.
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
        // Follows the modes from the load to the operand.
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

    /// Whether a value is known ahead of the loop body that defines `of`: it is defined before the
    /// loop, or recomputed from such values.
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

    /// For an operand that can be staged: its load, and the replacement.
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
        // Copies to shared memory require an index that counts tiles.
        if at.iter().any(|index| index.by_element) {
            return Ok(None);
        }
        let place = Place::new(self.program, *tensor, (shape, at), sizes)?;
        let inner = [rows, columns].into_iter().find(|mode| place.is_wide_along(shape, *mode));
        // Threads stage only elements of 16 bits in shared memory. They load 8-bit operands
        // directly to registers.
        let bits = self.program.tensors[*tensor].element.bits();
        let fits = |mode: usize| match self.copies {
            Copies::Threads(_) if bits != 16 => false,
            Copies::Threads(threads) => shape.iter().product::<i64>() / 8 >= threads && shape[mode] <= 8 * threads,
            Copies::Bulk => true,
        };
        // TMA does not load rows at separate coordinates.
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

/// The modes after a reshape that only adds or removes extents of 1; None after another reshape.
fn reshaped(modes: &[Option<usize>], from: &[i64], to: &[i64]) -> Option<Vec<Option<usize>>> {
    let many = |shape: &[i64]| shape.iter().copied().filter(|extent| *extent > 1).collect::<Vec<_>>();
    if many(from) != many(to) {
        return None;
    }
    let mut own = modes.iter().zip(from).filter(|(_, extent)| **extent > 1).map(|(mode, _)| *mode);
    Some(to.iter().map(|extent| if *extent > 1 { own.next().flatten() } else { None }).collect())
}

/// The program with its operands staged in shared memory.
///
/// Errors: a tile that the author's `atom` stages is not an operand, or cannot be staged.
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

/// The statements, with a stage in place of the last operation before each staged `dot` operand.
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

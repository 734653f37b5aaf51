//! Transforms a program so that it can be reversed.
//!
//! Law: the program computes the same results as before. If blocks along an axis share a tile of an
//! input, a loop executes several of these blocks. A statement stands outside each loop on which it
//! does not depend.

use std::collections::HashSet;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Stride};

use super::GradientOptions;
use crate::error::{Reason, TileError};
use crate::loads::read;
use crate::program::statement::statements;
use crate::program::{Axis, Count, Counter, Index, Loop, Name, Operation, Program, Role, Statement, ValueId, here};

/// A program that can be reversed.
pub(super) struct Prepared {
    pub(super) program: Program,
    /// The loop over merged blocks, if blocks are merged.
    pub(super) merged: Option<Merged>,
}

/// A loop over blocks of the program.
pub(super) struct Merged {
    /// The number of the loop.
    pub(super) iteration: u32,
    /// The axis along which blocks are merged.
    pub(super) axis: Axis,
    /// The number of blocks that the program has along the axis, if it is no multiple of
    /// `together`; None if it is. The last iterations must then be omitted.
    pub(super) blocks: Option<String>,
    /// The number of blocks that the loop executes.
    pub(super) together: i64,
}

pub(super) fn prepared(program: &Program, of: &[usize], options: &GradientOptions) -> Result<Prepared, TileError> {
    let mut program = program.clone();
    program.body = hoisted(program.body);
    let mut merged = program.clone();
    if let Some(own) = merge(&mut merged, of, options.blocks_merged)? {
        merged.body = hoisted(merged.body);
        // A stage whose coordinate depends on the block cannot be in a loop over blocks.
        if merged.verify().is_ok() {
            return Ok(Prepared { program: merged, merged: Some(own) });
        }
    }
    Ok(Prepared { program, merged: None })
}

/// The axes along which a program has more than one block.
pub(super) fn axes(program: &Program) -> Vec<(Axis, &str)> {
    let counts = program.grid.iter().map(String::as_str);
    Axis::ALL.into_iter().zip(counts).filter(|(_, count)| *count != "1").collect()
}

/// Refuses tiles whose index counts elements and not tiles: such tiles may overlap, and have no
/// gradient here.
pub(super) fn counts_tiles(program: &Program) -> Result<(), TileError> {
    let mut found = None;
    for statement in statements(&program.body) {
        let at: &[Index] = match statement {
            Statement::Let { operation, .. } => read(operation).map_or(&[], |own| own.1),
            Statement::Store { at, .. } => at,
            Statement::Loop(_) => &[],
        };
        if at.iter().any(|index| index.by_element) {
            found.get_or_insert(statement.place());
        }
    }
    let because = "a tile that begins at an element has no derivative here: count tiles, or name its coordinates";
    let reason = Reason::Gradient { of: program.name.clone(), because: because.to_string() };
    found.map_or(Ok(()), |place| Err(reason.at("the gradient", place)))
}

/// Refuses a program that loads from a tensor which it changes.
pub(super) fn reads_inputs(program: &Program) -> Result<(), TileError> {
    let mut found = None;
    for statement in statements(&program.body) {
        if let Statement::Let { operation, .. } = statement
            && let Some((tensor, _)) = read(operation)
            && program.tensors[tensor].role != Role::Input
        {
            found.get_or_insert((tensor, statement.place()));
        }
    }
    let because = "what was in a tensor that is changed is gone behind the program: let it be an input";
    let reason =
        |tensor: usize| Reason::Gradient { of: program.tensors[tensor].name.clone(), because: because.to_string() };
    found.map_or(Ok(()), |(tensor, place)| Err(reason(tensor).at("the gradient", place)))
}

/// Whether an index depends on a name.
pub(super) fn depends(at: &[Index], name: Name) -> bool {
    at.iter().any(|index| index.terms.iter().any(|(own, _)| own.counter() == name.counter()))
}

/// Merges blocks along the first axis along which a tile of a chosen input is shared.
fn merge(program: &mut Program, of: &[usize], together: i64) -> Result<Option<Merged>, TileError> {
    // A tile that a loop loads cannot be loaded before the loop over merged blocks.
    let shared = |axis: Axis| {
        let (mut any, mut in_loop) = (false, false);
        for statement in statements(&program.body) {
            if let Statement::Let { operation, .. } = statement
                && let Some((tensor, at)) = read(operation)
                && of.contains(&tensor)
                && !depends(at, Name::Block(axis))
            {
                any = true;
                in_loop |= at
                    .iter()
                    .any(|index| index.terms.iter().any(|(name, _)| matches!(name.counter(), Counter::Iteration(_))));
            }
        }
        any && !in_loop
    };
    // An index that uses a quotient or a remainder of the block's number cannot use the sum that
    // replaces the number.
    let found = axes(program).into_iter().find(|(axis, _)| shared(*axis) && !takes_part(program, *axis));
    let Some((axis, count)) = found.map(|(axis, count)| (axis, count.to_string())) else { return Ok(None) };
    let blocks: Expr = count.parse()?;
    let together = blocks.known().map_or(together, |known| known.min(together));
    if together <= 1 {
        return Ok(None);
    }
    let groups = blocks.divide_up(&Expr::from(together));
    let groups = groups.ok_or(tilewright_layout::LayoutError::Expression { op: "grid" })?;
    let exact = groups.times(&Expr::from(together)).is_some_and(|all| all == blocks);
    let number = Axis::ALL.iter().position(|own| *own == axis).unwrap_or(0);
    program.grid[number] = groups.to_string();
    let iteration = program.iterations;
    program.iterations += 1;
    let place = program.grid_place.unwrap_or_else(here);
    let mut body = std::mem::take(&mut program.body);
    let instead = (Index::block(axis) * together).plus(&Index::iteration(iteration));
    renamed(&mut body, &|index| replaced(index, Name::Block(axis), &instead));
    program.body = vec![Statement::Loop(Loop {
        iteration,
        count: Count::from(together),
        initial: Vec::new(),
        parameters: Vec::new(),
        body,
        next: Vec::new(),
        results: Vec::new(),
        place,
    })];
    Ok(Some(Merged { iteration, axis, blocks: (!exact).then_some(count), together }))
}

/// Whether an index of a program uses a quotient or a remainder of the block's number along an
/// axis.
fn takes_part(program: &Program, axis: Axis) -> bool {
    let is_part =
        |index: &Index| index.terms.iter().any(|(name, _)| name.is_part() && name.counter() == Counter::Block(axis));
    let mut found = false;
    for statement in statements(&program.body) {
        found |= match statement {
            Statement::Let { operation: Operation::Number(index), .. } => is_part(index),
            Statement::Let { operation, .. } => read(operation).is_some_and(|(_, at)| at.iter().any(is_part)),
            Statement::Store { at, .. } => at.iter().any(is_part),
            Statement::Loop(own) => matches!(&own.count, Count::Index(index) if is_part(index)),
        };
    }
    found
}

/// An index in which a sum replaces a name.
fn replaced(index: &Index, name: Name, instead: &Index) -> Index {
    let by = index.terms.iter().find(|(own, _)| *own == name).map_or(0, |(_, by)| *by);
    let mut rest = index.clone();
    rest.terms.retain(|(own, _)| *own != name);
    rest.plus(&(instead.clone() * by))
}

/// Replaces every index of a body.
fn renamed(body: &mut [Statement], with: &dyn Fn(&Index) -> Index) {
    let all = |at: &mut Vec<Index>| at.iter_mut().for_each(|index| *index = with(index));
    for statement in body {
        match statement {
            Statement::Let { operation, .. } => match operation {
                Operation::Load { at, .. } | Operation::Stage { at, .. } | Operation::Gather { at, .. } => all(at),
                Operation::Number(index) => *index = with(index),
                _ => {}
            },
            Statement::Store { at, .. } => all(at),
            Statement::Loop(own) => {
                if let Count::Index(index) = &mut own.count {
                    *index = with(index);
                }
                renamed(&mut own.body, with);
            }
        }
    }
}

/// Moves statements that do not depend on an iteration out of the loops of a body.
fn hoisted(body: Vec<Statement>) -> Vec<Statement> {
    let mut out = Vec::new();
    for statement in body {
        let Statement::Loop(mut own) = statement else {
            out.push(statement);
            continue;
        };
        let mut inside: HashSet<ValueId> = own.parameters.iter().copied().collect();
        let mut kept = Vec::new();
        for statement in hoisted(own.body) {
            match &statement {
                Statement::Let { result, operation, operands, .. } => {
                    let here = match operation {
                        Operation::Number(index) => std::slice::from_ref(index),
                        operation => read(operation).map_or(&[][..], |(_, at)| at),
                    };
                    if !depends(here, Name::Iteration(own.iteration))
                        && !operands.iter().any(|value| inside.contains(value))
                    {
                        out.push(statement);
                        continue;
                    }
                    inside.insert(*result);
                }
                Statement::Loop(inner) => inside.extend(&inner.results),
                Statement::Store { .. } => {}
            }
            kept.push(statement);
        }
        own.body = kept;
        out.push(Statement::Loop(own));
    }
    out
}

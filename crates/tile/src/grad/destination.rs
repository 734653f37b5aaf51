//! Where the derivatives with respect to loaded tiles are stored.
//!
//! Law: each element of a derivative is written once. If the index of a loaded tile differs for all
//! blocks and iterations, each stores its tile. If it does not depend on some axes of the grid,
//! each block along these axes stores a part of its own, and a second program adds the parts. Other
//! overlaps are refused, unless atomics are allowed.

use std::collections::HashMap;

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;
use tilewright_layout::Stride;
use tilewright_layout::symbolic::Expr;

use super::prepare::{axes, depends};
use super::{GradientOptions, derivative, edges, wide};
use crate::error::{Reason, TileError};
use crate::loads::read;
use crate::program::{Axis, Count, Counter, Index, Loop, Name, Operation, Program, Role, Statement};

/// How the derivative with respect to an input is written.
#[derive(Clone)]
pub(super) enum Way {
    /// Each tile is stored by the block and the iteration that loads it.
    Own,
    /// Each block along these axes stores a part.
    Parts(Vec<Axis>),
    /// Each tile is added by atomics.
    Atomic,
}

/// Where the derivative with respect to an input is stored.
#[derive(Clone)]
pub(super) struct Destination {
    /// The input.
    pub(super) tensor: usize,
    pub(super) way: Way,
    /// Loops that load the same tiles as an earlier loop. The loads of such a loop are reversed in
    /// the reversal of the earlier one. From the number of the loop to that of the earlier one.
    pub(super) fused: HashMap<u32, u32>,
}

/// The parts of a derivative, which a separate program adds.
pub(super) struct Parts {
    /// The tensor of the parts, as an input of that program: one mode for each shared axis, then
    /// the modes of the input.
    pub(super) name: String,
    pub(super) layout: String,
    /// The number of parts along each shared axis.
    pub(super) counts: Vec<String>,
    /// The derivative: its name, type and layout.
    pub(super) result: (String, Element, String),
    /// The extents of the input.
    pub(super) extents: Vec<Expr>,
    pub(super) place: Location,
}

/// A load of an input.
struct Loaded<'p> {
    shape: Vec<i64>,
    at: &'p [Index],
    /// The loops that enclose the load, the outermost first.
    around: Vec<&'p Loop>,
    /// Whether a tile of coordinates selects the elements, as in a gather.
    picked: bool,
    place: Location,
}

fn loads<'p>(body: &'p [Statement], tensor: usize, around: &mut Vec<&'p Loop>, out: &mut Vec<Loaded<'p>>) {
    for statement in body {
        match statement {
            Statement::Let { operation, place, .. } => {
                let (shape, picked) = match operation {
                    Operation::Load { shape, .. } => (shape, false),
                    Operation::Gather { shape, .. } => (shape, true),
                    Operation::Stage { shape, picked, .. } => (shape, picked.is_some()),
                    _ => continue,
                };
                if let Some((own, at)) = read(operation)
                    && own == tensor
                {
                    out.push(Loaded { shape: shape.clone(), at, around: around.clone(), picked, place: *place });
                }
            }
            Statement::Store { .. } => {}
            Statement::Loop(own) => {
                around.push(own);
                loads(&own.body, tensor, around, out);
                around.pop();
            }
        }
    }
}

/// How the derivative with respect to an input is written, or the reason why it cannot be.
pub(super) fn destination(
    program: &Program,
    tensor: usize,
    options: &GradientOptions,
) -> Result<Option<Destination>, TileError> {
    let mut all = Vec::new();
    loads(&program.body, tensor, &mut Vec::new(), &mut all);
    let Some(first) = all.first() else { return Ok(None) };
    let place = first.place;
    let refuse = |because: String| {
        if options.atomic {
            return Ok(Some(Destination { tensor, way: Way::Atomic, fused: HashMap::new() }));
        }
        let of = derivative(&program.tensors[tensor].name);
        Err(Reason::Gradient { of, because }.at("load", place))
    };
    let is_part = |index: &Index| index.terms.iter().any(|(name, _)| name.is_part());
    if all.iter().any(|own| own.at.iter().any(is_part)) {
        let because = "tiles at a quotient or a remainder of an index are those of several blocks or iterations, so \
                       their derivatives are added by atomics alone";
        return refuse(because.to_string());
    }
    if all.iter().any(|own| own.picked) {
        let because = "rows that a tile names may be the same rows, so their derivatives are added by atomics alone";
        return refuse(because.to_string());
    }
    // From a loop to the first loop that loads the same tiles.
    let mut fused = HashMap::new();
    for (number, own) in all.iter().enumerate() {
        for earlier in &all[..number] {
            let (Some((inner, around)), Some((before, other))) = (own.around.split_last(), earlier.around.split_last())
            else {
                continue;
            };
            let alike = |(a, b): (&&Loop, &&Loop)| a.iteration == b.iteration;
            let same = around.len() == other.len() && around.iter().zip(other).all(alike);
            let counted = inner.count == before.count && inner.count.value().is_none();
            if same && counted && inner.iteration != before.iteration && !fused.contains_key(&inner.iteration) {
                let first = fused.get(&before.iteration).copied().unwrap_or(before.iteration);
                fused.insert(inner.iteration, first);
            }
        }
    }
    let canonical = |index: &Index| {
        let name = |name: Name| match name {
            Name::Iteration(own) => Name::Iteration(fused.get(&own).copied().unwrap_or(own)),
            // A program with parts has been refused already.
            name => name,
        };
        let mut index = index.clone();
        index.terms.iter_mut().for_each(|(own, _)| *own = name(*own));
        index.terms.sort_by_key(|(name, _)| match name.counter() {
            Counter::Block(axis) => (0, Axis::ALL.iter().position(|own| *own == axis).unwrap_or(0) as u32),
            Counter::Iteration(own) => (1, own),
        });
        index
    };
    let at: Vec<Vec<Index>> = all.iter().map(|own| own.at.iter().map(canonical).collect()).collect();
    let terms = |at: &[Index]| at.iter().map(|own| own.terms.clone()).collect::<Vec<_>>();
    for (own, own_at) in all.iter().zip(&at) {
        if own.shape != first.shape || terms(own_at) != terms(&at[0]) {
            return refuse("it is loaded in tiles of two kinds, which may overlap".to_string());
        }
        // Loops that load the same tiles count as one. Each enclosing loop must select different
        // tiles.
        for around in &own.around {
            let name = Name::Iteration(fused.get(&around.iteration).copied().unwrap_or(around.iteration));
            if !depends(own_at, name) {
                return refuse("iterations of a loop load one tile, named by a tile of the iteration".to_string());
            }
        }
    }
    let loops: Vec<&Loop> = all.iter().flat_map(|own| own.around.iter().copied()).collect();
    let count = |name: Name| match name {
        Name::Block(_) | Name::Quotient(..) | Name::Remainder(..) => None,
        Name::Iteration(own) => match &loops.iter().find(|known| known.iteration == own)?.count {
            Count::Sizes(text) => text.parse().ok(),
            Count::Index(index) => index.known(),
            Count::Value(_) => None,
        },
    };
    for mode in 0..first.shape.len() {
        let constants: Vec<i64> = at.iter().map(|own| own[mode].constant).collect();
        if !tells_apart(&at[0][mode].terms, &constants, &count) {
            return refuse(format!("tiles at {} may be loaded by two blocks or iterations", at[0][mode]));
        }
    }
    let same_twice = |number: usize| {
        at[..number].iter().enumerate().any(|(before, other)| {
            let scopes = |own: &Loaded<'_>| {
                let one = |own: &&Loop| fused.get(&own.iteration).copied().unwrap_or(own.iteration);
                own.around.iter().map(one).collect::<Vec<_>>()
            };
            *other == at[number] && scopes(&all[before]) != scopes(&all[number])
        })
    };
    if (0..all.len()).any(same_twice) {
        return refuse("two loops with other numbers of iterations load the same tiles".to_string());
    }
    let shared: Vec<Axis> =
        axes(program).into_iter().map(|(axis, _)| axis).filter(|axis| !depends(&at[0], Name::Block(*axis))).collect();
    let way = match (shared.is_empty(), options.atomic) {
        (true, _) => Way::Own,
        (false, true) => Way::Atomic,
        (false, false) => Way::Parts(shared),
    };
    Ok(Some(Destination { tensor, way, fused }))
}

/// Whether different values of the names, or different constants, always give different sums. They
/// do if, in ascending order, each coefficient is larger than the largest sum of all smaller terms.
fn tells_apart(terms: &[(Name, i64)], constants: &[i64], count: &dyn Fn(Name) -> Option<i64>) -> bool {
    let (least, greatest) = (constants.iter().min().copied(), constants.iter().max().copied());
    let mut below = greatest.unwrap_or(0).checked_sub(least.unwrap_or(0));
    let mut terms = terms.to_vec();
    terms.sort_by_key(|(_, by)| by.unsigned_abs());
    terms.iter().all(|(name, by)| {
        let apart = below.is_some_and(|below| by.checked_abs().is_some_and(|by| by > below));
        // If a name has no bound, no larger coefficient is large enough.
        let most = count(*name).and_then(|count| by.checked_abs()?.checked_mul((count - 1).max(0)));
        below = below.and_then(|below| below.checked_add(most?));
        apart
    })
}

/// The name of the tensor that holds the parts of a derivative.
pub(super) fn parts_of(name: &str) -> String {
    format!("parts_of_{name}")
}

/// Declares the tensor of a derivative. If the derivative is written in parts, declares the tensor
/// of the parts instead, and returns it.
pub(super) fn declare(
    program: &mut Program,
    source: &Program,
    own: &Destination,
) -> Result<(usize, Option<Parts>), TileError> {
    let (tensor, (place, modes)) = (&source.tensors[own.tensor], source.declared[own.tensor]);
    let name = derivative(&tensor.name);
    let axes = match &own.way {
        Way::Own => {
            let declared = (name, tensor.element);
            let layout = (tensor.layout.clone(), modes);
            return Ok((super::writer::declare(program, declared, layout, Role::Output, place), None));
        }
        Way::Atomic => {
            let layout = (tensor.layout.clone(), modes);
            return Ok((
                super::writer::declare(program, (name, wide(tensor.element)), layout, Role::Both, place),
                None,
            ));
        }
        Way::Parts(axes) => axes,
    };
    let extents = edges::extents(&tensor.layout)?;
    let count = |axis: &Axis| program.grid[Axis::ALL.iter().position(|own| own == axis).unwrap_or(0)].clone();
    let counts: Vec<String> = axes.iter().map(count).collect();
    let mut all = counts.iter().map(|count| count.parse()).collect::<Result<Vec<Expr>, _>>()?;
    all.extend(extents.iter().cloned());
    if all.len() > crate::program::MAX_RANK {
        let because = format!(
            "parts of it have {} modes, one for each axis of the grid along which blocks share it, and a tensor has at \
             most {}",
            all.len(),
            crate::program::MAX_RANK
        );
        return Err(Reason::Gradient { of: name, because }.at("input", place));
    }
    // Compact, the last mode fastest.
    let overflow = tilewright_layout::LayoutError::Expression { op: "parts" };
    let mut strides = vec![Expr::from(1)];
    for extent in all[1..].iter().rev() {
        let next = strides[strides.len() - 1].times(extent).ok_or_else(|| overflow.clone())?;
        strides.push(next);
    }
    strides.reverse();
    let tuple = |all: &[Expr]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let layout = format!("({}):({})", tuple(&all), tuple(&strides));
    let parts = Parts {
        name: parts_of(&name),
        layout: layout.clone(),
        counts,
        result: (name, tensor.element, tensor.layout.clone()),
        extents,
        place,
    };
    let number = super::writer::declare(
        program,
        (parts.name.clone(), wide(tensor.element)),
        (layout, all.len()),
        Role::Output,
        place,
    );
    Ok((number, Some(parts)))
}

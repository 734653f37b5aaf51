//! A tile program whose warps have roles.
//!
//! Law: those who bring and those who multiply walk the same program, block by block and turn by
//! turn, so tiles come in the order in which they are taken. A stage is free again when the product
//! that reads it is over.

mod bring;
mod leave;
mod multiply;
mod overlap;

pub(crate) use bring::brought_layout;

use std::collections::HashMap;

use tilewright_kernel::{Build, Cursor, Kernel, KernelError, Pipeline, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Stride};

use super::{Lowering, Memory, over};
use crate::place::Placed;
use crate::program::{Axis, ValueId};
use crate::roles::{self, Overlap, Roles};

/// Multiprocessors of a Hopper: as many blocks stay.
const PROCESSORS: i64 = 132;
/// Warps of those who bring tiles: a group, which gives its registers to the others.
const BRINGERS: u32 = 4;
/// Registers of a thread of those who bring, and the most of one of those who multiply.
const FEW: u32 = 24;
const MANY: u32 = 240;
/// Registers of a multiprocessor.
const REGISTERS: u32 = 65_536;

/// A ring in shared memory, `(first, second, stages)` for each of its parts.
pub(super) struct Live<'k> {
    pub(super) pipeline: Pipeline<'k>,
    pub(super) parts: Vec<View<'k>>,
}

/// What those who multiply have besides values.
pub(super) struct Groups<'k, 'p> {
    pub(super) plan: &'p Roles,
    pub(super) rings: &'p [Live<'k>],
    pub(super) cursors: Vec<Cursor<'k>>,
    pub(super) overlaps: HashMap<u32, Overlap>,
    /// Rings whose stage is held over statements, until this value is used no more.
    pub(super) kept: HashMap<usize, ValueId>,
    /// Shared memory through which results leave, by its extents.
    pub(super) leaving: HashMap<[i64; 2], View<'k>>,
}

/// The kernel of a program whose values have layouts.
pub(crate) fn lower(placed: &Placed, plan: &Roles, taken: &Memory) -> Result<Kernel, KernelError> {
    let program = &placed.program;
    Kernel::build(&program.name, |k| {
        let mut tensors = Vec::new();
        for tensor in &program.tensors {
            tensors.push(k.tensor_of(tensor.element, &tensor.name, &tensor.layout, tensor.role)?);
        }
        let warps = 4 * plan.groups as u32;
        k.threads(i64::from(warps + BRINGERS) * 32)?;
        k.grid(Axis::X, &PROCESSORS.to_string())?;
        let mut extents = [Expr::from(1), Expr::from(1), Expr::from(1)];
        for (extent, text) in extents.iter_mut().zip(&program.grid) {
            *extent = k.size(text)?;
        }
        let mut rings = Vec::new();
        for ring in &plan.rings {
            let parts = ring.parts.iter().map(|part| {
                let element = program.tensors[part.tensor].element;
                k.shared_of(element, &bring::layout(program, part, ring.stages))
            });
            let parts = parts.collect::<Result<_, _>>()?;
            rings.push(Live { pipeline: k.pipeline(ring.stages, warps)?, parts });
        }
        let blocks = Blocks { k, extents, band: plan.band, last_first: plan.last_first };
        let lowering = || Lowering::new(k, placed, tensors.clone(), taken);
        // What those who bring leave of the registers that threads have at the beginning.
        let groups = plan.groups as u32;
        let all = REGISTERS / (groups + 1) / 1024 * 8 * (groups + 1);
        let many = ((all - FEW) / groups / 8 * 8).min(MANY);
        let mut those = lowering();
        let leaving = if plan.leaves { those.leaving()? } else { HashMap::new() };
        k.role(warps..warps + BRINGERS, || {
            k.registers(FEW)?;
            k.single(|| {
                let mut own = lowering();
                let cursors = rings.iter().map(|ring| ring.pipeline.cursor()).collect::<Result<Vec<_>, _>>()?;
                blocks.each(|at| {
                    own.block = Some(at);
                    own.bring(&program.body, plan, &rings, &cursors)
                })
            })
        })?;
        k.role(0..warps, || {
            k.registers(many)?;
            let cursors = rings.iter().map(|ring| ring.pipeline.cursor()).collect::<Result<Vec<_>, _>>()?;
            let overlaps = roles::overlaps(program, plan);
            let leaves = !leaving.is_empty();
            those.groups = Some(Groups { plan, rings: &rings, cursors, overlaps, kept: HashMap::new(), leaving });
            blocks.each(|at| {
                those.block = Some(at);
                those.values.clear();
                those.body(&program.body)
            })?;
            if leaves {
                k.single(|| {
                    k.wait_bulk(0);
                    Ok(())
                })?;
            }
            Ok(())
        })
    })
}

/// The blocks of the grid of a program, and in which order they are taken.
struct Blocks<'k> {
    k: &'k Build,
    extents: [Expr; 3],
    band: i64,
    last_first: bool,
}

impl Blocks<'_> {
    /// What is done in each of those that this block of the launch takes.
    fn each(&self, mut body: impl FnMut([Expr; 3]) -> Result<(), KernelError>) -> Result<(), KernelError> {
        let k = self.k;
        let block = k.block_number(Axis::X);
        let [x, y, z] = &self.extents;
        let times = |a: &Expr, b: &Expr| Stride::times(a, b).ok_or_else(over);
        let plus = |a: &Expr, b: &Expr| Stride::plus(a, b).ok_or_else(over);
        // Bands of blocks along x, of which the last may have some that are none of the grid.
        let bands = x.divide_up(&Expr::from(self.band)).ok_or_else(over)?;
        let across = times(&bands, &Expr::from(self.band))?;
        let plane = times(&across, y)?;
        let left = times(&plane, z)?.minus(&block).ok_or_else(over)?;
        let count = left.divide_up(&Expr::from(PROCESSORS)).ok_or_else(over)?;
        k.range(count, |turn| {
            let number = plus(&times(&turn, &Expr::from(PROCESSORS))?, &block)?;
            let parted = |number: &Expr, by: &Expr, several: bool| {
                if !several {
                    return Ok::<_, KernelError>((Expr::from(0), number.clone()));
                }
                let quotient = k.index_of(k.index(&number.floor_div(by).ok_or_else(over)?)?)?;
                let rest = number.minus(&times(&quotient, by)?).ok_or_else(over)?;
                Ok((quotient, k.index_of(k.index(&rest)?)?))
            };
            let is_one = |extent: &Expr| extent.known() == Some(1);
            let (z_at, inside) = parted(&number, &plane, !is_one(z))?;
            if self.band == 1 {
                let (y_at, x_at) = parted(&inside, x, !is_one(y))?;
                let x_at = match self.last_first {
                    false => x_at,
                    true => plus(&plus(x, &Expr::from(-1))?, &times(&x_at, &Expr::from(-1))?)?,
                };
                return body([k.index_of(k.index(&x_at)?)?, y_at, z_at]);
            }
            let (band, inside) = parted(&inside, &times(y, &Expr::from(self.band))?, true)?;
            let (y_at, rest) = parted(&inside, &Expr::from(self.band), true)?;
            let x_at = plus(&times(&band, &Expr::from(self.band))?, &rest)?;
            let own = k.index(&x_at)?;
            let [none, one] = [0, 1].map(|number| own.like(f64::from(number)));
            let there = k.index_of(own.lt(k.index(x)?).select(one, none))?;
            // A loop of no turn or one: what is made of the coordinates of a block stays inside.
            k.range(there, |zero| body([plus(&x_at, &zero)?, plus(&y_at, &zero)?, z_at]))
        })
    }
}

//! Lowers a tile program with warp specialization.
//!
//! Law: producers and consumers execute the same program, block by block and iteration by
//! iteration, so tiles arrive in the order in which they are used. A stage is released when the
//! wgmma that reads it has finished.

mod bulk_store;
mod multiply;
mod overlap;
mod produce;

pub(crate) use produce::tma_layout;

use std::collections::{BTreeMap, HashMap};

use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Build, Cursor, Kernel, KernelError, Num, Pipeline, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Stride};

use super::{Lowering, SharedArrays, over};
use crate::place::Placed;
use crate::program::{Axis, ValueId};
use crate::roles::{self, Longest, Overlap, Roles};

/// The number of producer warps: one warpgroup, which releases registers to the consumers.
const BRINGERS: u32 = 4;
/// Registers of a producer thread, and of a producer thread that also computes numbers from device
/// memory, which would otherwise spill.
const FEW: u32 = 24;
const FOLLOWING: u32 = 40;
/// The most registers of a consumer thread.
const MANY: u32 = 240;

/// A ring in shared memory, with a view `(first, second, stages)` for each of its parts.
pub(super) struct Live<'k> {
    pub(super) pipeline: Pipeline<'k>,
    pub(super) parts: Vec<View<'k>>,
}

/// The state of the consumers, apart from values.
pub(super) struct Groups<'k, 'p> {
    pub(super) plan: &'p Roles,
    pub(super) rings: &'p [Live<'k>],
    pub(super) cursors: Vec<Cursor<'k>>,
    pub(super) overlaps: HashMap<u32, Overlap>,
    /// Rings whose stage stays in use over several statements: the value, after whose last use the
    /// stage is released, and the depth of the loop that holds it.
    pub(super) kept: BTreeMap<usize, (ValueId, usize)>,
    /// Buffers in shared memory from which TMA stores results, by their extents.
    pub(super) bulk_stores: HashMap<[i64; 2], View<'k>>,
}

/// The kernel of a program whose values have layouts.
pub(crate) fn lower(
    machine: &Machine,
    placed: &Placed,
    plan: &Roles,
    taken: &SharedArrays,
) -> Result<Kernel, KernelError> {
    let program = &placed.program;
    Kernel::build(&program.name, |k| {
        let mut tensors = Vec::new();
        for tensor in &program.tensors {
            tensors.push(k.tensor_of(tensor.element, &tensor.name, &tensor.layout, tensor.role)?);
        }
        let warps = 4 * plan.groups as u32;
        k.threads(i64::from(warps + BRINGERS) * 32)?;
        // The grid is persistent: one block for each multiprocessor.
        let processors = i64::from(machine.multiprocessors);
        k.grid(Axis::X, processors)?;
        let mut extents = [Expr::from(1), Expr::from(1), Expr::from(1)];
        for (extent, text) in extents.iter_mut().zip(&program.grid) {
            *extent = k.size(text)?;
        }
        let mut rings = Vec::new();
        for ring in &plan.rings {
            let parts = ring.parts.iter().map(|part| {
                let element = program.tensors[part.tensor].element;
                k.shared_of(element, produce::layout(program, part, ring.stages))
            });
            let parts = parts.collect::<Result<_, _>>()?;
            rings.push(Live { pipeline: k.pipeline(ring.stages, warps)?, parts });
        }
        let blocks = Blocks { k, processors, extents, band: plan.band, longest: plan.longest };
        let lowering = || Lowering::new(k, placed, tensors.clone(), taken);
        // The registers of a consumer thread: those that a thread has at launch, and those that the
        // producers release.
        let groups = plan.groups as u32;
        let all = machine.multiprocessor.registers / (groups + 1) / 1024 * 8 * (groups + 1);
        let few = if plan.places.is_empty() { FEW } else { FOLLOWING };
        let many = ((all - few) / groups / 8 * 8).min(MANY);
        let mut those = lowering();
        let bulk_stores = if plan.bulk_stores { those.bulk_stores()? } else { HashMap::new() };
        k.role(warps..warps + BRINGERS, || {
            k.registers(few)?;
            k.single(|| {
                let mut own = lowering();
                let cursors = rings.iter().map(|ring| ring.pipeline.cursor()).collect::<Result<Vec<_>, _>>()?;
                blocks.each(|at| {
                    own.block = Some(at);
                    own.produce(&program.body, plan, &rings, &cursors)
                })
            })
        })?;
        k.role(0..warps, || {
            k.registers(many)?;
            let cursors = rings.iter().map(|ring| ring.pipeline.cursor()).collect::<Result<Vec<_>, _>>()?;
            let overlaps = roles::overlaps(program, plan);
            let has_bulk_stores = !bulk_stores.is_empty();
            those.groups = Some(Groups { plan, rings: &rings, cursors, overlaps, kept: BTreeMap::new(), bulk_stores });
            blocks.each(|at| {
                those.block = Some(at);
                those.values.clear();
                those.body(&program.body)
            })?;
            if has_bulk_stores {
                k.single(|| {
                    k.wait_bulk(0);
                    Ok(())
                })?;
            }
            Ok(())
        })
    })
}

/// The blocks of a program's grid, and the order in which persistent blocks execute them.
struct Blocks<'k> {
    k: &'k Build,
    /// The number of blocks of the launch.
    processors: i64,
    extents: [Expr; 3],
    band: i64,
    longest: Option<Longest>,
}

fn times(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::times(a, b).ok_or_else(over)
}

fn plus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::plus(a, b).ok_or_else(over)
}

impl<'k> Blocks<'k> {
    /// Runs `body` for each block of the program's grid that this persistent block executes.
    fn each(&self, mut body: impl FnMut([Expr; 3]) -> Result<(), KernelError>) -> Result<(), KernelError> {
        if let (Some(longest), 1) = (self.longest, self.band) {
            return self.each_by_turns(longest, body);
        }
        let k = self.k;
        let block = k.block_number(Axis::X);
        let [x, y, z] = &self.extents;
        // Blocks are visited in bands along x. The last band may be partial.
        let bands = x.divide_up(&Expr::from(self.band)).ok_or_else(over)?;
        let across = times(&bands, &Expr::from(self.band))?;
        let plane = times(&across, y)?;
        let left = times(&plane, z)?.minus(&block).ok_or_else(over)?;
        let count = left.divide_up(&Expr::from(self.processors)).ok_or_else(over)?;
        k.range(count, |iteration| {
            let number = plus(&times(&iteration, &Expr::from(self.processors))?, &block)?;
            let (z_at, inside) = self.parted(&number, &plane, z)?;
            if self.band == 1 {
                let (y_at, x_at) = self.parted(&inside, x, y)?;
                return body([k.index_of(k.index(&x_at)?)?, y_at, z_at]);
            }
            let (band, inside) = self.parted(&inside, &times(y, &Expr::from(self.band))?, &bands)?;
            let (y_at, rest) = self.parted(&inside, &Expr::from(self.band), y)?;
            let x_at = plus(&times(&band, &Expr::from(self.band))?, &rest)?;
            let own = k.index(&x_at)?;
            let [none, one] = [0, 1].map(|number| own.like(f64::from(number)));
            let there = k.index_of(own.lt(k.index(x)?).select(one, none))?;
            // A loop of at most one iteration, so that values computed from the coordinates of a
            // block are local to it.
            k.range(there, |zero| body([plus(&x_at, &zero)?, plus(&y_at, &zero)?, z_at]))
        })
    }

    /// As `each`, for programs in which blocks further along x have more iterations; these blocks
    /// come first. A persistent block takes its tile in ascending order in one wave and in
    /// descending order in the next, so that a block with more work gets less in the next wave.
    fn each_by_turns(
        &self,
        longest: Longest,
        mut body: impl FnMut([Expr; 3]) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let k = self.k;
        let [x, y, z] = &self.extents;
        let beside = times(y, z)?;
        let own = k.index(&k.block_number(Axis::X))?;
        let [none, one, processors] = [0, 1, self.processors].map(|number| own.like(number as f64));
        // Added to an index, this gives the index in descending order.
        let turned = processors - one - own - own;
        let place = |round: Num<'k>| own + round.bit_and(one) * turned;
        let all = k.index(&times(x, &beside)?)?;
        let rounds = k.index(&k.index_of(all)?.floor_div(&Expr::from(self.processors)).ok_or_else(over)?)?;
        let more = place(rounds).lt(all - rounds * processors).select(one, none);
        k.range(k.index_of(rounds + more)?, |round| {
            let round = k.index(&round)?;
            let number = k.index_of(round * processors + place(round))?;
            let (behind, y_at, z_at) = match longest {
                Longest::Alike => {
                    let (behind, inside) = self.parted(&number, &beside, x)?;
                    let (z_at, y_at) = self.parted(&inside, y, z)?;
                    (behind, y_at, z_at)
                }
                Longest::Near => {
                    let (z_at, inside) = self.parted(&number, &times(x, y)?, z)?;
                    let (y_at, behind) = self.parted(&inside, x, y)?;
                    (behind, y_at, z_at)
                }
            };
            let x_at = plus(x, &Expr::from(-1))?.minus(&behind).ok_or_else(over)?;
            body([k.index_of(k.index(&x_at)?)?, k.index_of(k.index(&y_at)?)?, z_at])
        })
    }

    /// The quotient of a number by `by`, which is below `several`, and the remainder.
    fn parted(&self, number: &Expr, by: &Expr, several: &Expr) -> Result<(Expr, Expr), KernelError> {
        if several.known() == Some(1) {
            return Ok((Expr::from(0), number.clone()));
        }
        let k = self.k;
        let quotient = k.index_of(k.index(&number.floor_div(by).ok_or_else(over)?)?)?;
        let rest = number.minus(&times(&quotient, by)?).ok_or_else(over)?;
        Ok((quotient, k.index_of(k.index(&rest)?)?))
    }
}

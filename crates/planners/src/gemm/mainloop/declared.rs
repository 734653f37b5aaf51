//! What the roles of a kernel share: tensors, shared memory, mbarriers, and the work.

use crate::gemm::index::{at, overflow};
use crate::gemm::mainloop::blocks::BlockOperands;
use crate::gemm::mainloop::operand::{GemmOperand, part_of};
use crate::gemm::mainloop::outline::Outline;
use crate::gemm::mainloop::pass::Pass;
use crate::gemm::mainloop::ping_pong::Order;
use crate::gemm::mainloop::scales::Scaling;
use crate::gemm::panel::{swizzled, swizzled_at, width};
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::text::Written;
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::gemm::schedule::grouped::GroupedTiles;
use crate::units::{LANES, VECTOR};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Cursor, Distribution, KernelError, LayoutArgument, Pipeline, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, LayoutError, Swizzle};

/// What the roles of a kernel share.
pub(crate) struct Declared<'a, 'k> {
    pub(crate) k: &'k Build,
    pub(crate) outline: &'a Outline<'a>,
    /// The operands of each problem; the operand along the rows of tiles comes first.
    pub(crate) operands: Vec<[GemmOperand<'k>; 2]>,
    /// The stages of both operands in shared memory.
    pub(crate) rings: [View<'k>; 2],
    pub(crate) scaling: Option<Scaling<'k>>,
    /// The scales of a block-scaled format.
    pub(crate) blocks: Option<BlockOperands<'k>>,
    /// The mbarriers of the stages, if a producer fills them.
    ring: Option<Pipeline<'k>>,
    /// The order of ping-pong warpgroups.
    pub(crate) order: Order<'k>,
    /// The place of a block in its cluster.
    pub(crate) rank: Expr,
    /// The passes over tiles, one after the other.
    pub(crate) passes: Vec<Pass<'a, 'k>>,
}

impl<'a, 'k> Declared<'a, 'k> {
    /// Declares everything, and waits for the previous launch if launches overlap (PDL).
    pub(crate) fn new(k: &'k Build, outline: &'a Outline<'a>) -> Result<Declared<'a, 'k>, KernelError> {
        let (problem, plan) = (outline.problem, outline.plan);
        let of_problems = outline.written.iter().enumerate();
        let operands = of_problems.map(|(number, written)| declare_operands(k, outline, number, written));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        k.threads(i64::from(outline.multipliers() + outline.copiers()) * 32)?;
        k.resident(plan.blocks_per_sm as u32)?;
        k.grid(Axis::X, plan.blocks)?;
        k.cluster(plan.cluster as u32)?;
        let block = k.block_number(Axis::X);
        let (rings, memory) = rings(k, outline, &operands[0])?;
        let beside = outline.epilogue.inputs(k, memory.as_ref())?;
        let scaling = Scaling::declare(k, problem, plan)?;
        let blocks = BlockOperands::declare(k, problem, plan)?;
        let [_, _, along] = outline.sizes();
        let steps = k.size(&format!("ceil({along}/{})", problem.k_tile()))?;
        let groups = GroupedTiles::declare(k, problem, plan, &steps)?;
        let written: Vec<&Written> = outline.written.iter().collect();
        let ends = outline.epilogue.ends(k, &written, beside)?;
        let last = outline.last.as_ref().map(|last| last.ends(k, &written, last.inputs(k, None)?)).transpose()?;
        clear_outside(k, outline, &rings[0])?;
        let releases = outline.together() * plan.cluster as u32;
        let ring = if outline.has_producer() {
            Some(k.pipeline(plan.stages / outline.stages_of_phase(), releases)?)
        } else {
            None
        };
        let order = Order::new(k, plan, outline.steps())?;
        let rank = if plan.cluster == 1 { Expr::from(0) } else { k.rank() };
        if plan.programmatic_launch {
            // The code before this may run while the previous launch is still running.
            k.wait_launches();
            k.launch_next();
        }
        let passes = Pass::all(k, outline, &block, (&steps, groups), (ends, last))?;
        Ok(Declared { k, outline, operands, rings, scaling, blocks, ring, order, rank, passes })
    }

    /// A cursor in the ring, for a producer or a consumer.
    ///
    /// Errors: the warps copy by cp.async, so that no ring has mbarriers.
    pub(crate) fn cursor(&self) -> Result<Cursor<'k>, KernelError> {
        self.ring.as_ref().ok_or_else(overflow)?.cursor()
    }
}

/// The stages of both operands. If warps multiply by mma.sync, each stage holds the lines of the
/// first operand and then those of the second, in memory in which D is staged too.
fn rings<'k>(
    k: &'k Build,
    outline: &Outline<'_>,
    operands: &[GemmOperand<'k>; 2],
) -> Result<([View<'k>; 2], Option<View<'k>>), KernelError> {
    let (problem, plan, element) = (outline.problem, outline.plan, outline.problem.operand_type());
    let (contiguous, depth) = ([operands[0].contiguous, operands[1].contiguous], problem.k_tile());
    let lines = [plan.rows, plan.columns];
    if plan.warps.is_none() {
        let together = plan.tile_of_d(problem);
        let ring = |side: usize| {
            let stage = lines[side] * depth;
            k.shared_of(
                element,
                ring(problem, contiguous[side], [lines[side], together[side]], [plan.stages, stage, 0]),
            )
        };
        return Ok(([ring(0)?, ring(1)?], None));
    }
    let elements = plan.warp_bytes(problem, outline.machine) / i64::from(element.bytes());
    // Swizzled memory begins at a multiple of the size of the swizzle pattern.
    let memory = k.shared_of(element, swizzled(depth, LINE_BYTES / depth, Layout::strided(elements, 1)?)?)?;
    let stage = (plan.rows + plan.columns) * depth;
    let ring = |side: usize| {
        let first = if side == 0 { 0 } else { plan.rows * depth };
        let layout = ring(problem, contiguous[side], [lines[side]; 2], [plan.stages, stage, first])?;
        memory.recast(element, layout)
    };
    Ok(([ring(0)?, ring(1)?], Some(memory)))
}

/// Stores zeros where the operand along the rows of tiles has lines that no load fills
/// ([`Edges::first`](crate::gemm::schedule::edges::Edges::first)): 16 bytes a thread and store, by
/// the consumer warps. All threads wait for each other afterwards, when the mbarriers of the ring
/// are initialised.
fn clear_outside(k: &Build, outline: &Outline<'_>, ring: &View<'_>) -> Result<(), KernelError> {
    let Some(inside) = outline.clusters.iter().find_map(|clusters| clusters.edges.first()[0]) else { return Ok(()) };
    let (depth, width) = (outline.problem.k_tile(), VECTOR / i64::from(outline.problem.operand_type().bytes()));
    let warps = outline.multipliers();
    // The threads store whole lines together. Lines inside that they clear as well are loaded
    // afterwards.
    let lines = i64::from(warps) * LANES * VECTOR / LINE_BYTES;
    let threads = Layout::strided(((depth / width, lines), width), ((width * lines, 1), lines))?;
    let held = Distribution::new((lines, depth), threads)?;
    k.role(0..warps, || {
        let zeros = k.register(outline.problem.operand_type(), &width.to_string())?.distributed(&held)?;
        zeros.fragment().clear();
        k.range(outline.plan.stages, |stage| {
            let stage = ring.slice(at(&stage)?)?;
            (inside / lines..outline.plan.rows / lines)
                .try_for_each(|part| part_of(&stage, [lines, depth], &Expr::from(part))?.store_distributed(&zeros))
        })?;
        k.fence_async();
        Ok(())
    })
}

/// Declares the operands of a problem, by its index: the one along the rows of tiles, then the one
/// along the columns.
pub(crate) fn declare_operands<'k>(
    k: &'k Build,
    outline: &Outline<'_>,
    number: usize,
    written: &Written,
) -> Result<[GemmOperand<'k>; 2], KernelError> {
    let (problem, paired) = (outline.problem, outline.problem.pairs().is_some());
    let named = |name: &str| if outline.problems.len() > 1 { format!("{name}{number}") } else { name.to_string() };
    let [of_a, of_b] = &outline.batched;
    let a = GemmOperand {
        view: k.tensor_of(problem.a().element(), &named("a"), &written.tensors[0], Role::Input)?,
        contiguous: outline.contiguous[0],
        batch: *of_a,
        paired: false,
        halved: false,
        grouped: problem.row_groups().is_some(),
    };
    let b = GemmOperand {
        view: k.tensor_of(problem.b().element(), &named("b"), &written.tensors[1], Role::Input)?,
        contiguous: outline.contiguous[1],
        batch: *of_b,
        paired,
        halved: paired,
        grouped: false,
    };
    let (left, mut right) = if outline.plan.swapped { (b, a) } else { (a, b) };
    right.halved |= outline.halved;
    Ok([left, right])
}

/// The layout of the stages of an operand: lines of 128 bytes along K, or lines of up to 128 bytes
/// along the other mode, which divide the rows of one instruction. The stages are `stage` elements
/// apart, from an element of memory on.
///
/// Threads load elements of 64 bits one by one, half a warp at a time: four lines by 32 bytes. So
/// chunks of 16 bytes are permuted in pairs, and any four adjacent lines are in different banks.
///
/// Errors: an element has no offset that is a number.
fn ring(
    problem: &Problem,
    contiguous: Contiguous,
    [rows, together]: [i64; 2],
    [stages, stage, first]: [i64; 3],
) -> Result<LayoutArgument, LayoutError> {
    let depth = problem.k_tile();
    match (contiguous, problem.operand_type().bytes()) {
        (contiguous, 8) => {
            let (swizzle, width) = (Swizzle::new(2, 2, 2)?, LINE_BYTES / 8);
            let layout = match contiguous {
                Contiguous::Columns => Layout::strided((rows, depth, stages), (depth, 1, stage))?,
                Contiguous::Rows => {
                    let shape = ((width, rows / width), depth, stages);
                    Layout::strided(shape, ((1, width * depth), width, stage))?
                }
            };
            LayoutArgument::placed(Some(swizzle), first, layout)
        }
        (Contiguous::Rows, _) => {
            let width = width(together, 2);
            let shape = ((width, rows / width), depth, stages);
            swizzled_at(first, width, 2, Layout::strided(shape, ((1, width * depth), width, stage))?)
        }
        (_, bytes) => {
            let swizzle = Swizzle::new(3, i64::from(4 - bytes.ilog2()), 3)?;
            LayoutArgument::placed(Some(swizzle), first, Layout::strided((rows, depth, stages), (depth, 1, stage))?)
        }
    }
}

//! A GEMM for every GPU since Ampere, by `mma.sync`.
//!
//! Law: `C(m,n) = sum over k of A(m,k) * B(n,k)`, with 16-bit operands and f32 accumulators, for
//! any M, N and K.
//!
//! A block computes a tile of C. Tiles of A and B are copied by `cp.async` into a ring of stages in
//! shared memory, a few k-tiles ahead of the MMA. Rows are swizzled in chunks of 16 bytes, so that
//! neither `cp.async` nor `ldmatrix` has bank conflicts. Elements past the edges of A and B are
//! filled with zeros. A thread loads the fragments of the next 16 elements along K while it
//! multiplies the previous ones, so that MMA does not wait for shared memory.
//!
//! Raster order: `group` tiles along M first, then along N, then the next group. So blocks that run
//! at the same time share rows of A and columns of B.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Fragment, Kernel, KernelError, View};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coord, Extent, IntoShape, Layout, Slot, Stride, Swizzle, Tiler, Tree};

use crate::error::PlanError;
use crate::planned::Planned;
use crate::terms::Meaning;
use crate::units::block_shared;

/// Elements along K of one MMA instruction.
const STEP: i64 = 16;

/// The tile configuration of a GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TileShape {
    /// Rows and columns of the tile of C of a block.
    tile: [i64; 2],
    /// Elements along K of a stage: 32 or 64.
    depth: i64,
    /// Stages in shared memory.
    stages: i64,
    /// Warps along M and N.
    warps: [i64; 2],
}

/// For many tiles: one block uses most of the shared memory of a multiprocessor, and its eight
/// warps hide each other's latency.
const LARGE: TileShape = TileShape { tile: [128, 256], depth: 64, stages: 3, warps: [2, 4] };
/// For many tiles if rows or columns may be outside: fewer predicates for the copies of a stage, so
/// that everything fits into registers.
const RAGGED: TileShape = TileShape { tile: [128, 256], depth: 32, stages: 4, warps: [2, 4] };
/// For few tiles: two resident blocks on a multiprocessor.
const SMALL: TileShape = TileShape { tile: [128, 128], depth: 32, stages: 4, warps: [2, 2] };

/// The height of a raster band: up to eight tiles along M, such that the last band is as full as
/// possible.
pub(crate) fn group_of(tiles: i64) -> i64 {
    let outside = |group: &i64| count(tiles, *group) * group - tiles;
    (1..=tiles.clamp(1, 8)).rev().filter(|group| 2 * group >= tiles.min(8)).min_by_key(outside).unwrap_or(1)
}

/// A GEMM kernel: A, `(M,K):(K,1)`, and B, `(N,K):(K,1)`, into C, `(M,N):(N,1)`, with operands of
/// f16 or bf16 and C of the same type or f32.
///
/// The sizes `[M, N, K]` determine the tile shape and the known divisors of M, N and K. The kernel
/// declares these divisors, and other sizes with the same divisors may be launched. K is a multiple
/// of 8, so that rows begin at multiples of 16 bytes.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::product;
///
/// let h200 = Machine::named("H200").unwrap();
/// let plan = product(&h200, Element::Bf16, Element::F32, [4096, 4096, 4096]).unwrap();
/// let grid: Vec<String> = plan.kernel().program().grid.iter().map(ToString::to_string).collect();
/// assert_eq!(grid, ["8", "N/256", "M/1024"]);
/// ```
///
/// Errors: there is no MMA instruction for these types; K is not a multiple of 8.
pub fn product(
    machine: &Machine,
    operands: Element,
    result: Element,
    [m, n, k]: [i64; 3],
) -> Result<Planned, PlanError> {
    let blocks = |tiles: &TileShape| count(m, tiles.tile[0]).saturating_mul(count(n, tiles.tile[1]));
    let many = blocks(&LARGE) >= machine.multiprocessors.into();
    let tile = if many { LARGE.tile } else { SMALL.tile };
    let whole = m % (tile[0] * group_of(count(m, tile[0]))) == 0 && n % tile[1] == 0;
    let tiles = match (many, whole) {
        (true, true) => LARGE,
        (true, false) => RAGGED,
        (false, _) => SMALL,
    };
    let of = |tiles: &TileShape| -> Result<Planned, PlanError> {
        // Known divisors that save a predicate or widen an access.
        let group = group_of(count(m, tiles.tile[0]));
        let facts = [
            fact(m, &[tiles.tile[0] * group]),
            fact(n, &[tiles.tile[1], 8]),
            fact(if k % 8 == 0 { k } else { 8 }, &[tiles.depth, 8]),
        ];
        Ok(product_of(operands, result, tiles, group, facts)?.sized(&[("M", m), ("N", n), ("K", k)]))
    };
    // On smaller machines: the same tile with fewer stages, or smaller tiles.
    for tiles in [tiles, TileShape { stages: 2, ..tiles }, SMALL, TileShape { stages: 2, ..SMALL }] {
        let plan = of(&tiles)?;
        if i64::from(plan.kernel().program().shared_bytes) <= block_shared(machine) {
            return Ok(plan);
        }
    }
    Err(PlanError::Plan { because: "no tiles fit" })
}

/// The MMA instruction for operands of a type.
fn instruction(operands: Element) -> &'static str {
    match operands {
        Element::F16 => "SM80_16x8x16_F32F16F16F32_TN",
        _ => "SM80_16x8x16_F32BF16BF16F32_TN",
    }
}

/// The tiled copies and the tiled MMA of a block.
struct Tilings {
    mma: TiledMma,
    /// Copies in chunks of 16 bytes: A and B to shared memory, C from there.
    copy: TiledCopy,
    write: TiledCopy,
    /// Copies of fragments of A and B from shared memory.
    load_a: TiledCopy,
    load_b: TiledCopy,
}

impl Tilings {
    fn of(operands: Element, TileShape { depth, warps, .. }: &TileShape) -> Result<Tilings, PlanError> {
        let arranged = Layout::compact(&(warps[0], warps[1], 1).into_shape()?)?;
        // Two instructions of 8 columns for each warp, so that one `ldmatrix` serves both.
        let order: Tiler = Tiler::from_shape(&(16 * warps[0], 16 * warps[1], STEP).into_shape()?)?;
        let mma = TiledMma::new(MmaAtom::named(instruction(operands))?, &arranged, &order)?;
        // Rows, and chunks of a row.
        let movers = |chunks: i64| Layout::strided((mma.threads() / chunks, chunks), (chunks, 1));
        let eight = Layout::compact(&(1, 8).into_shape()?)?;
        let copy = CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?;
        let copy = TiledCopy::new(copy, 16, &movers(depth / 8)?, &eight)?;
        let write = TiledCopy::new(CopyAtom::named("UniversalCopy<uint128_t>")?, 16, &movers(16)?, &eight)?;
        let matrices = CopyAtom::named("SM75_U32x4_LDSM_N")?;
        let load_a = TiledCopy::of_operand(matrices.clone(), &mma, Operand::A)?;
        let load_b = TiledCopy::of_operand(matrices, &mma, Operand::B)?;
        Ok(Tilings { mma, copy, write, load_a, load_b })
    }
}

/// The operands A and B of a thread, from global memory to fragments.
struct StagedOperands<'k, 't> {
    k: &'k Build,
    tilings: &'t Tilings,
    /// The tiles of A and B of the block, along K.
    tiles: [View<'k>; 2],
    /// Their stages in shared memory.
    rings: [View<'k>; 2],
    /// Two sets of fragments for each operand: one is loaded while the other is multiplied.
    fragments: [[Fragment<'k>; 2]; 2],
}

impl<'k> StagedOperands<'k, '_> {
    /// Issues the copies of a k-tile into a stage of the ring.
    fn fetch(&self, step: &Expr, stage: &Expr) -> Result<(), KernelError> {
        let (k, copy, [tiles_a, tiles_b], [ring_a, ring_b]) = (self.k, &self.tilings.copy, &self.tiles, &self.rings);
        k.copy_predicated(copy, &tiles_a.slice(at(step)?)?, &ring_a.slice(at(stage)?)?)?;
        k.copy_predicated(copy, &tiles_b.slice(at(step)?)?, &ring_b.slice(at(stage)?)?)?;
        k.commit_async();
        Ok(())
    }

    /// Loads the fragments of 16 elements along K from a stage.
    fn load(&self, stage: &Expr, step: i64) -> Result<(), KernelError> {
        let (k, [ring_a, ring_b]) = (self.k, &self.rings);
        let Tilings { load_a, load_b, .. } = self.tilings;
        let (here_a, here_b) = (part(ring_a, stage, step)?, part(ring_b, stage, step)?);
        let [a, b] = self.set(step);
        k.copy(load_a, &here_a, &a.retile(load_a, CopyEnd::Destination)?)?;
        k.copy(load_b, &here_b, &b.retile(load_b, CopyEnd::Destination)?)
    }

    /// Multiplies the loaded fragments of 16 elements along K into the accumulators.
    fn multiply(&self, step: i64, accumulators: &Fragment<'k>) -> Result<(), KernelError> {
        let [a, b] = self.set(step);
        self.k.mma(&self.tilings.mma, accumulators, a, b, accumulators)
    }

    /// The fragments of A and of B for a step of 16 elements.
    fn set(&self, step: i64) -> [&Fragment<'k>; 2] {
        self.fragments.each_ref().map(|sets| &sets[(step % 2) as usize])
    }

    /// The mainloop: multiplies all k-tiles into the accumulators.
    fn multiply_all(
        &self,
        TileShape { depth, stages, .. }: &TileShape,
        accumulators: &Fragment<'k>,
    ) -> Result<(), KernelError> {
        let (k, stages) = (self.k, *stages);
        for step in 0..stages {
            self.fetch(&Expr::from(step), &Expr::from(step))?;
        }
        k.wait_async(stages as u32 - 1);
        k.barrier();
        self.load(&Expr::from(0), 0)?;
        k.range(k.size(&format!("ceil(K/{depth})"))?, |iteration| {
            let ahead = |by: i64| Stride::plus(&iteration, &Expr::from(by)).unwrap_or(iteration.clone());
            let stage = k.remainder(&iteration, stages)?;
            for step in 0..depth / STEP {
                if step + 1 < depth / STEP {
                    self.load(&stage, step + 1)?;
                } else {
                    // All threads have loaded this stage into registers, and the next stage has
                    // arrived. So this stage is free for the k-tile that is farthest ahead.
                    k.wait_async(stages as u32 - 2);
                    k.barrier();
                    self.load(&k.remainder(&ahead(1), stages)?, 0)?;
                    self.fetch(&ahead(stages), &stage)?;
                }
                self.multiply(step, accumulators)?;
            }
            Ok(())
        })?;
        // Copies that nobody reads may still be in flight.
        k.wait_async(0);
        Ok(())
    }
}

/// The kernel of a tile configuration, with raster bands of `group` tiles along M, and known
/// divisors of M, N and K.
fn product_of(
    operands: Element,
    result: Element,
    tiles: &TileShape,
    group: i64,
    facts: [String; 3],
) -> Result<Planned, PlanError> {
    let TileShape { tile: [rows, columns], depth, stages, .. } = *tiles;
    let tilings = Tilings::of(operands, tiles)?;
    let mma = &tilings.mma;
    // C of 16-bit elements is staged in shared memory, so that whole lines are written.
    let staged = result.bits() == 16;
    let plan = vec![
        format!("tiles of {rows} x {columns} of C, {depth} steps along K at a time, {stages} stages"),
        format!("blocks in the order of tiles: {group} along M, then the {group} beside them along N"),
        format!("{}, {} threads", instruction(operands), mma.threads()),
        (if staged { "C through shared memory" } else { "C from registers" }).to_string(),
    ];
    let swizzle = Swizzle::new(if depth == 64 { 3 } else { 2 }, 3, 3)?;
    let ring = |rows: i64| {
        let rows = Layout::strided((rows, depth, stages), (depth, 1, rows * depth))?;
        Composed::new(swizzle, 0, rows)
    };
    let kernel = Kernel::build("product", |k| {
        let a = k.tensor_of(operands, "a", &format!("(M{},K{}):(K,1)", facts[0], facts[2]), Role::Input)?;
        let b = k.tensor_of(operands, "b", &format!("(N{},K):(K,1)", facts[1]), Role::Input)?;
        let c = k.tensor_of(result, "c", "(M,N):(N,1)", Role::Output)?;
        k.grid(Axis::X, group)?;
        k.grid(Axis::Y, &format!("ceil(N/{columns})"))?;
        k.grid(Axis::Z, &format!("ceil(M/{})", rows * group))?;
        let [x, y, z] = Axis::ALL.map(|axis| k.block_number(axis));
        let row = Stride::times(&z, &Expr::from(group)).and_then(|z| Stride::plus(&z, &x)).unwrap_or(x);
        let tiles_a = a.local_tile((rows, depth), tile_at(&row, None)?)?;
        let tiles_b = b.local_tile((columns, depth), tile_at(&y, None)?)?;
        let tile_c = c.local_tile((rows, columns), tile_at(&row, Some(&y))?)?;
        let (ring_a, ring_b) = (k.shared_of(operands, ring(rows))?, k.shared_of(operands, ring(columns))?);

        let part_c = tile_c.partition_mma(mma, Operand::C)?;
        let accumulators = part_c.fragment_of(Element::F32)?;
        accumulators.clear();
        let fragments = [fragments(&ring_a, mma, Operand::A)?, fragments(&ring_b, mma, Operand::B)?];
        let operands =
            StagedOperands { k, tilings: &tilings, tiles: [tiles_a, tiles_b], rings: [ring_a, ring_b], fragments };
        operands.multiply_all(tiles, &accumulators)?;
        let accumulators =
            if result == Element::F32 { accumulators } else { accumulators.map(|sum| Ok(sum.to(result)))? };
        if !staged {
            return part_c.store_predicated(&accumulators);
        }
        // The swizzle permutes chunks of 16 bytes by row, so that the eight rows of an instruction
        // are in different banks.
        let by = i64::from(columns.ilog2()) - 3;
        let tile = k.shared_of(
            result,
            Composed::new(Swizzle::new(3, 3, by)?, 0, Layout::strided((rows, columns), (columns, 1))?),
        )?;
        tile.partition_mma(mma, Operand::C)?.store(&accumulators)?;
        k.barrier();
        k.copy_predicated(&tilings.write, &tile, &tile_c)
    })?;
    Ok(Planned::new(kernel, plan, Meaning::Product))
}

/// `size / part`, rounded up; 1 for a size of 0.
pub(crate) fn count(size: i64, part: i64) -> i64 {
    (size.max(1) - 1) / part.max(1) + 1
}

/// The first of some numbers that divides a size, as a fact.
pub(crate) fn fact(size: i64, by: &[i64]) -> String {
    by.iter().find(|by| size % **by == 0).map_or(String::new(), |by| format!("{{div={by}}}"))
}

/// The coordinate of a stage: all rows, and as much of K as an instruction takes.
#[track_caller]
fn part<'k>(ring: &View<'k>, stage: &Expr, step: i64) -> Result<View<'k>, KernelError> {
    let stage = ring.slice(at(stage)?)?;
    let rows = stage.shape().mode(0).and_then(|mode| Extent::known(mode.leaves().first()?)).unwrap_or(1);
    stage.local_tile((rows, STEP), tile_at(&Expr::from(0), Some(&Expr::from(step)))?)
}

/// Two sets of fragments for the steps of a stage.
fn fragments<'k>(ring: &View<'k>, mma: &TiledMma, operand: Operand) -> Result<[Fragment<'k>; 2], KernelError> {
    let part = part(ring, &Expr::from(0), 0)?.partition_mma(mma, operand)?;
    Ok([part.fragment()?, part.fragment()?])
}

/// `(_,_,index)`.
pub(crate) fn at(index: &Expr) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(index.clone())])?)
}

/// `(row,column)`, with `_` for a missing column.
pub(crate) fn tile_at(row: &Expr, column: Option<&Expr>) -> Result<Coord<Expr>, KernelError> {
    let column = column.map_or(Slot::All, |column| Slot::At(column.clone()));
    Ok(Tree::flat([Slot::At(row.clone()), column])?)
}

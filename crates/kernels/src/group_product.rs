//! A product of matrices for Hopper: products of four warps, fed by the copy engine.
//!
//! Law: as [`crate::product`]: `C(m,n) = sum over k of A(m,k) * B(n,k)`, factors of 16 bits, sums in
//! f32, for any M, N and K that are multiples of what the kernel says of them.
//!
//! One warp sets off bulk copies of tiles of A and B into a ring of stages; eight others, in two
//! groups of four, multiply what has arrived, 64 rows of a tile each. There are as many blocks as
//! processors, which take tiles of C in turn, so that the copies for a tile go on while the one
//! before is written. Its rows go through shared memory, swizzled, and are stored by the copy engine
//! while the next tile is computed.

use tilewright_atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, Kernel, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout, LayoutError, Stride, Tiler};

use crate::error::PlanError;
use crate::meaning::Meaning;
use crate::planned::Planned;
use crate::product::{at, count, fact, group_of, tile_at};

/// Rows of C of a block.
const ROWS: i64 = 128;
/// Columns of C that a block may have, and the stages of shared memory that fit beside them.
const WIDTHS: [(i64, i64); 4] = [(256, 3), (192, 4), (128, 5), (64, 6)];
/// Steps along K of a stage: rows of 128 bytes.
const DEPTH: i64 = 64;
/// Columns of a panel of C in shared memory: rows of 128 bytes.
const PANEL: i64 = 64;
/// Warps that multiply; one more sets off copies.
const WARPS: u32 = 8;

/// Processors of the device that the number of blocks is chosen for: an H200 or H100.
const PROCESSORS: i64 = 132;

/// How C is cut, for how many blocks.
struct Cut {
    columns: i64,
    stages: i64,
    /// Tiles along M that are taken one after the other.
    group: i64,
    blocks: i64,
}

impl Cut {
    /// The cut of which the blocks that run together are done first, by a model of a processor: the
    /// turns of a block, each as long as its products take or the copies into shared memory, and what
    /// is written at the end of a tile. As many blocks as take no more turns than [`PROCESSORS`]
    /// would, and no more: processors that are idle leave their power to the others.
    fn of([m, n, k]: [i64; 3]) -> Cut {
        let group = group_of(count(m, ROWS));
        let bands = count(m, ROWS * group).saturating_mul(group);
        let cut = |(columns, stages): (i64, i64)| {
            let tiles = bands.saturating_mul(count(n, columns));
            let turns = count(tiles, PROCESSORS);
            // Cycles of a step along K: of the products, and of the copies, 64 bytes in a cycle. Rows
            // that begin in the middle of a line take nearly twice as long.
            let copies = 2 * (ROWS + columns);
            let copies = if k % LINE == 0 { copies } else { copies * 7 / 4 };
            let step = (4 * columns).max(copies);
            let tile = count(k, DEPTH).saturating_mul(step).saturating_add(TILE_CYCLES);
            // The widest tile has the fewest reads of factors in a product.
            let slower = if columns == WIDTHS[0].0 { 100 } else { 103 };
            (
                turns.saturating_mul(tile).saturating_mul(slower),
                Cut { columns, stages, group, blocks: count(tiles, turns) },
            )
        };
        let [first, others @ ..] = WIDTHS;
        let better = |best: (i64, Cut), width| {
            let other = cut(width);
            if other.0 < best.0 { other } else { best }
        };
        others.into_iter().fold(cut(first), better).1
    }
}

/// Elements of a line of the cache.
const LINE: i64 = 64;

/// Cycles at the beginning and at the end of a tile in which nothing is multiplied, about.
const TILE_CYCLES: i64 = 2500;

/// A kernel that multiplies as [`crate::product`] does, for Hopper alone: A, `(M,K):(K,1)`, and B,
/// `(N,K):(K,1)`, into C, `(M,N):(N,1)`, all of f16 or all of bf16, with sums in f32.
///
/// The sizes `[M, N, K]` decide how many blocks there are, and of what the kernel takes M, N and K to
/// be multiples; other sizes with these facts may be launched. K and N are multiples of 8, so that
/// rows begin at multiples of 16 bytes.
///
/// ```
/// use tilewright_kernel::{Element, ptx};
/// use tilewright_kernels::group_product;
///
/// let planned = group_product(Element::Bf16, [4096, 4096, 4096]).unwrap();
/// let program = planned.kernel().program();
/// // 512 tiles of 128 x 256 in four turns of 128 blocks.
/// assert_eq!(program.grid[0].to_string(), "128");
/// assert!(ptx::write(program, ptx::Target::Sm90a).unwrap().contains("wgmma"));
/// ```
///
/// Errors: there is no instruction for this type; K or N is no multiple of 8.
pub fn group_product(element: Element, [m, n, k]: [i64; 3]) -> Result<Planned, PlanError> {
    let cut = Cut::of([m, n, k]);
    let facts = [fact(m, &[ROWS * cut.group]), fact(multiple(n), &[cut.columns, 8]), fact(multiple(k), &[DEPTH, 8])];
    Ok(written(element, &cut, &facts)?.sized(&[("M", m), ("N", n), ("K", k)]))
}

/// A size, or 8 where it is no multiple of 8, which the launch will refuse.
fn multiple(size: i64) -> i64 {
    if size % 8 == 0 { size } else { 8 }
}

fn written(element: Element, cut: &Cut, facts: &[String; 3]) -> Result<Planned, PlanError> {
    let (factors, result) = (element, element);
    let Cut { columns, stages, group, blocks } = *cut;
    let rows = ROWS;
    let name = if factors == Element::F16 { "F16F16" } else { "BF16BF16" };
    let atom = format!("SM90_64x{columns}x16_F32{name}_SS");
    let order: Tiler = format!("[{rows}:1;{columns}:1;16:1]").parse()?;
    let mma = TiledMma::new(MmaAtom::named(&atom)?, &"(2,1,1)".parse::<Layout>()?, &order)?;
    let plan = vec![
        format!("tiles of {rows} x {columns} of C, {DEPTH} steps along K at a time, {stages} stages"),
        format!("{blocks} blocks, which take tiles in turn; {group} tiles along M one after the other, then along N"),
        format!("{atom}, {WARPS} warps; bulk copies by one more"),
        "C through shared memory, in panels of 128 bytes, by bulk stores".to_string(),
    ];
    let ring = |rows: i64| format!("S<3,3,3> o 0 o ({rows},{DEPTH},{stages}):({DEPTH},1,{})", rows * DEPTH);
    let panels = format!("S<3,3,3> o 0 o ({rows},({PANEL},{})):({PANEL},(1,{}))", columns / PANEL, rows * PANEL);
    // Matrices of 8 x 8 as the sums lie in the lanes, four at a time.
    let store = TiledCopy::of_operand_in(CopyAtom::named("SM90_U32x4_STSM_N")?, &mma, Operand::C, 16)?;
    let kernel = Kernel::build("group_product", |k| {
        let a = k.tensor_of(factors, "a", &format!("(M{},K{}):(K,1)", facts[0], facts[2]), Role::Input)?;
        let b = k.tensor_of(factors, "b", &format!("(N{},K):(K,1)", facts[1]), Role::Input)?;
        let c = k.tensor_of(result, "c", "(M,N):(N,1)", Role::Output)?;
        k.threads(i64::from(WARPS + 1) * 32)?;
        k.grid(Axis::X, &blocks.to_string())?;
        let block = k.block_number(Axis::X);
        let (ring_a, ring_b) = (k.shared_of(factors, &ring(rows))?, k.shared_of(factors, &ring(columns))?);
        let staged = k.shared_of(result, &panels)?;
        let pipeline = k.pipeline(stages, WARPS)?;

        let steps = k.size(&format!("ceil(K/{DEPTH})"))?;
        let across = k.size(&format!("ceil(N/{columns})"))?;
        let tiles = times(&k.size(&format!("ceil(M/{})", rows * group))?, &times(&across, &Expr::from(group))?)?;
        // How many tiles this block has, and where one of them is.
        let left = tiles.minus(&block).ok_or_else(overflow)?;
        let own = left.divide_up(&Expr::from(blocks)).ok_or_else(overflow)?;
        let place = |turn: &Expr| -> Result<[Expr; 2], KernelError> {
            let tile = plus(&times(turn, &Expr::from(blocks))?, &block)?;
            let band = times(&across, &Expr::from(group))?;
            let (number, inside) = split(&tile, &band)?;
            let (column, row) = split(&inside, &Expr::from(group))?;
            Ok([plus(&times(&number, &Expr::from(group))?, &row)?, column])
        };

        k.role(WARPS..WARPS + 1, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(own.clone(), |turn| {
                    let [row, column] = place(&turn)?;
                    let tiles_a = a.local_tile(&format!("({rows},{DEPTH})"), tile_at(&row, None)?)?;
                    let tiles_b = b.local_tile(&format!("({columns},{DEPTH})"), tile_at(&column, None)?)?;
                    k.range(steps.clone(), |step| {
                        let stage = cursor.stage()?;
                        stage.acquire()?;
                        stage.load(&tiles_a.slice(at(&step)?)?, &ring_a.slice(at(stage.index())?)?)?;
                        stage.load(&tiles_b.slice(at(&step)?)?, &ring_b.slice(at(stage.index())?)?)?;
                        stage.publish()?;
                        cursor.advance()
                    })
                })
            })
        })?;
        k.role(0..WARPS, || {
            let part = staged.partition_mma(&mma, Operand::C)?;
            let sums = part.fragment_of(Element::F32)?;
            let cursor = pipeline.cursor()?;
            k.range(own.clone(), |turn| {
                sums.clear();
                k.range(steps.clone(), |_| {
                    let stage = cursor.stage()?;
                    stage.wait()?;
                    let (here_a, here_b) = (ring_a.slice(at(stage.index())?)?, ring_b.slice(at(stage.index())?)?);
                    k.mma(&mma, &sums, &here_a, &here_b, &sums)?;
                    k.wait_mma(0);
                    stage.release()?;
                    cursor.advance()
                })?;
                // The tile before has been read from shared memory.
                k.single(|| {
                    k.wait_bulk(0);
                    Ok(())
                })?;
                k.barrier();
                k.copy(&store, &sums.to(result)?.retile(&store, CopyEnd::Source)?, &staged)?;
                k.fence_async();
                k.barrier();
                let [row, column] = place(&turn)?;
                let tile_c = c.local_tile(&format!("({rows},{columns})"), tile_at(&row, Some(&column))?)?;
                k.single(|| {
                    k.store_bulk(&staged, &tile_c)?;
                    k.commit_bulk();
                    Ok(())
                })
            })?;
            k.single(|| {
                k.wait_bulk(0);
                Ok(())
            })
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::Product))
}

fn overflow() -> KernelError {
    LayoutError::Overflow { op: "product" }.into()
}

/// Quotient and remainder.
fn split(number: &Expr, by: &Expr) -> Result<(Expr, Expr), KernelError> {
    let quotient = number.floor_div(by).ok_or_else(overflow)?;
    let rest = number.minus(&times(&quotient, by)?).ok_or_else(overflow)?;
    Ok((quotient, rest))
}

fn plus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::plus(a, b).ok_or_else(overflow)
}

fn times(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::times(a, b).ok_or_else(overflow)
}

//! A product of matrices for processors since Ampere.
//!
//! Law: `C(m,n) = sum over k of A(m,k) * B(n,k)`, factors of 16 bits, sums in f32, for any M, N and
//! K.
//!
//! A block computes a tile of C. Tiles of A and B come by asynchronous copies into a ring of stages
//! of shared memory, some steps along K ahead of the multiplication; rows of 64 bytes lie there
//! with their chunks of 16 bytes permuted, so that neither copies nor matrix loads meet in a bank.
//! Past the edges of A and B zeros are written, which change no sum.

use tilewright_atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Element, Kernel, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Stride, Tiler, Tree};

use crate::error::PlanError;
use crate::meaning::Meaning;
use crate::planned::Planned;

/// Rows and columns of C of a block.
const TILE: [i64; 2] = [128, 128];
/// Steps along K of a stage.
const DEPTH: i64 = 32;
/// Stages in shared memory.
const STAGES: i64 = 4;
/// Warps along M, N and K.
const WARPS: &str = "(2,2,1)";
/// What the warps hold together of M, N and K: two instructions of 8 columns a warp, so that one
/// load of matrices serves both.
const ORDER: &str = "[32:1;32:1;16:1]";
/// Threads that fetch: rows, and chunks of 16 bytes of a row.
const FETCHERS: &str = "(32,4):(4,1)";

/// A kernel that multiplies A, `(M,K):(K,1)`, and B, `(N,K):(K,1)`, into C, `(M,N):(N,1)`, for
/// factors of f16 or bf16 and C of the same type or f32.
///
/// K is a multiple of 8, so that rows begin at multiples of 16 bytes; M, N and K are any numbers
/// besides.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::product;
///
/// let plan = product(Element::Bf16, Element::F32).unwrap();
/// assert_eq!(plan.kernel().program().grid[0].to_string(), "ceil(M/128)");
/// ```
///
/// Errors: there is no matrix instruction for these types.
pub fn product(factors: Element, result: Element) -> Result<Planned, PlanError> {
    let atom = match factors {
        Element::F16 => "SM80_16x8x16_F32F16F16F32_TN",
        _ => "SM80_16x8x16_F32BF16BF16F32_TN",
    };
    let warps: Layout = WARPS.parse()?;
    let order: Tiler = ORDER.parse()?;
    let mma = TiledMma::new(MmaAtom::named(atom)?, &warps, &order)?;
    let copy = TiledCopy::new(
        CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?,
        16,
        &FETCHERS.parse()?,
        &"(1,8)".parse()?,
    )?;
    let matrices = CopyAtom::named("SM75_U32x4_LDSM_N")?;
    let load_a = TiledCopy::of_operand(matrices.clone(), &mma, Operand::A)?;
    let load_b = TiledCopy::of_operand(matrices, &mma, Operand::B)?;
    let plan = vec![
        format!("tiles of {} x {} of C, {DEPTH} steps along K at a time, {STAGES} stages", TILE[0], TILE[1]),
        format!("{atom}, {} threads", mma.threads()),
    ];
    let (rows, columns) = (format!("({},{DEPTH})", TILE[0]), format!("({},{DEPTH})", TILE[1]));
    let stage = |rows: i64| format!("S<2,3,3> o 0 o ({rows},{DEPTH},{STAGES}):({DEPTH},1,{})", rows * DEPTH);
    let kernel = Kernel::build("product", |k| {
        let a = k.tensor_of(factors, "a", "(M,K{div=8}):(K,1)", Role::Input)?;
        let b = k.tensor_of(factors, "b", "(N,K):(K,1)", Role::Input)?;
        let c = k.tensor_of(result, "c", "(M,N):(N,1)", Role::Output)?;
        let (tiles_a, tiles_b) = (a.local_tile(&rows, k.block("(x,_)")?)?, b.local_tile(&columns, k.block("(y,_)")?)?);
        let tile_c = c.local_tile(&format!("({},{})", TILE[0], TILE[1]), k.block("(x,y)")?)?;
        let (ring_a, ring_b) = (k.shared_of(factors, &stage(TILE[0]))?, k.shared_of(factors, &stage(TILE[1]))?);

        let part_c = tile_c.partition_mma(&mma, Operand::C)?;
        let sums = part_c.fragment_of(Element::F32)?;
        sums.clear();
        // A step along K into a stage of the ring.
        let fetch = |step: &Expr, stage: &Expr| -> Result<(), KernelError> {
            k.copy_predicated(&copy, &tiles_a.slice(at(step)?)?, &ring_a.slice(at(stage)?)?)?;
            k.copy_predicated(&copy, &tiles_b.slice(at(step)?)?, &ring_b.slice(at(stage)?)?)?;
            k.commit_async();
            Ok(())
        };
        for step in 0..STAGES - 1 {
            fetch(&Expr::from(step), &Expr::from(step))?;
        }
        k.range(k.size(&format!("ceil(K/{DEPTH})"))?, |step| {
            // The stage of this step is there for all threads, and all are done with the one before
            // it.
            k.wait_async(STAGES as u32 - 2);
            k.barrier();
            let ahead = Stride::plus(&step, &Expr::from(STAGES - 1)).unwrap_or(step.clone());
            fetch(&ahead, &k.remainder(&ahead, STAGES)?)?;
            let stage = k.remainder(&step, STAGES)?;
            let (here_a, here_b) = (ring_a.slice(at(&stage)?)?, ring_b.slice(at(&stage)?)?);
            let factor_a = here_a.partition_mma(&mma, Operand::A)?.fragment()?;
            let factor_b = here_b.partition_mma(&mma, Operand::B)?.fragment()?;
            k.copy(&load_a, &here_a, &factor_a.retile(&load_a, CopyEnd::Destination)?)?;
            k.copy(&load_b, &here_b, &factor_b.retile(&load_b, CopyEnd::Destination)?)?;
            k.mma(&mma, &sums, &factor_a, &factor_b, &sums)
        })?;
        // Copies that nobody reads are under way still.
        k.wait_async(0);
        let sums = if result == Element::F32 { sums } else { sums.map(|sum| Ok(sum.to(result)))? };
        part_c.store_predicated(&sums)
    })?;
    Ok(Planned::new(kernel, plan, Meaning::Product))
}

/// `(_,_,index)`.
fn at(index: &Expr) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(index.clone())])?)
}

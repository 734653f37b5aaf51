//! The kernel of a plan: one warp that copies, groups of four that multiply.
//!
//! One warp sets off bulk copies of tiles of both operands into a ring of stages; the others multiply
//! what has arrived, 64 rows of a tile at a time. Blocks take tiles in turn, so that the copies for a
//! tile go on while the one before is written.

use tilewright_atoms::{MmaAtom, TiledMma};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, Kernel, KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Tiler, Tree};

use super::epilogue::Epilogue;
use super::plan::{DEPTH, Plan, WARPS};
use super::problem::Problem;
use super::schedule::{Grid, Unit, plus};
use crate::error::PlanError;
use crate::product::{at, fact, tile_at};

/// The instruction of a plan, by name.
pub(super) fn atom(problem: &Problem, plan: &Plan) -> String {
    let name = if problem.factors() == Element::F16 { "F16F16" } else { "BF16BF16" };
    format!("SM90_64x{}x16_F32{name}_SS", plan.columns)
}

/// The kernel that multiplies, into D or into the sums of each range of steps: for the sizes of the
/// problem, or for all that are multiples of what it says.
pub(super) fn kernel(name: &str, problem: &Problem, plan: &Plan, exact: bool) -> Result<Kernel, PlanError> {
    let factors = problem.factors();
    let Plan { swapped, rows, columns, groups, stages, splits, group, blocks, .. } = *plan;
    let warps = (WARPS * groups) as u32;
    let order: Tiler = format!("[{rows}:1;{columns}:1;16:1]").parse()?;
    let mma =
        TiledMma::new(MmaAtom::named(&atom(problem, plan))?, &format!("({groups},1,1)").parse::<Layout>()?, &order)?;
    let epilogue = Epilogue::of(problem, plan, &mma)?;
    let facts = (!exact).then(|| facts(problem, plan));
    let written = problem.written(facts.as_ref());
    let [m, n, steps] = &written.sizes;
    let [m, n] = if swapped { [n, m] } else { [m, n] };
    let ring = |rows: i64| format!("S<3,3,3> o 0 o ({rows},{DEPTH},{stages}):({DEPTH},1,{})", rows * DEPTH);
    let kernel = Kernel::build(name, |k| {
        let a = k.tensor_of(factors, "a", &written.a(), Role::Input)?;
        let b = k.tensor_of(factors, "b", &written.b(), Role::Input)?;
        let d = epilogue.tensor(k, &written)?;
        let (left, right) = if swapped { (b, a) } else { (a, b) };
        k.threads(i64::from(warps + 1) * 32)?;
        k.resident(plan.resident as u32)?;
        k.grid(Axis::X, &blocks.to_string())?;
        let block = k.block_number(Axis::X);
        let (ring_left, ring_right) = (k.shared_of(factors, &ring(rows))?, k.shared_of(factors, &ring(columns))?);
        let staged = epilogue.staged(k)?;
        let pipeline = k.pipeline(stages, warps)?;
        let grid = Grid {
            across: k.size(&format!("ceil({n}/{columns})"))?,
            bands: k.size(&format!("ceil({m}/{})", rows * group))?,
            group,
            batch: if problem.batch() > 1 { Some(k.size(&written.batch)?) } else { None },
            steps: k.size(&format!("ceil({steps}/{DEPTH})"))?,
            splits,
            blocks,
        };
        let own = grid.own(&block)?;

        k.role(warps..warps + 1, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(own.clone(), |turn| {
                    let unit = grid.unit(k, &block, &turn)?;
                    let tiles_left = tiles(&left, &unit, rows, &unit.row)?;
                    let tiles_right = tiles(&right, &unit, columns, &unit.column)?;
                    k.range(unit.steps.clone(), |step| {
                        let step = at(&plus(&unit.first, &step)?)?;
                        let stage = cursor.stage()?;
                        stage.acquire()?;
                        stage.load(&tiles_left.slice(step.clone())?, &ring_left.slice(at(stage.index())?)?)?;
                        stage.load(&tiles_right.slice(step)?, &ring_right.slice(at(stage.index())?)?)?;
                        stage.publish()?;
                        cursor.advance()
                    })
                })
            })
        })?;
        k.role(0..warps, || {
            let sums = epilogue.sums(&mma, &staged, &d)?;
            let cursor = pipeline.cursor()?;
            k.range(own.clone(), |turn| {
                let unit = grid.unit(k, &block, &turn)?;
                sums.clear();
                k.range(unit.steps.clone(), |_| {
                    let stage = cursor.stage()?;
                    stage.wait()?;
                    let here = at(stage.index())?;
                    k.mma(&mma, &sums, &ring_left.slice(here.clone())?, &ring_right.slice(here)?, &sums)?;
                    k.wait_mma(0);
                    stage.release()?;
                    cursor.advance()
                })?;
                epilogue.write(k, &mma, &sums, &staged, &d, &unit)
            })?;
            epilogue.end(k)
        })
    })?;
    Ok(kernel)
}

/// The tiles along K of an operand, of so many rows each, in the matrix of a part of the work.
fn tiles<'k>(operand: &View<'k>, unit: &Unit, rows: i64, row: &Expr) -> Result<View<'k>, KernelError> {
    let operand = match &unit.matrix {
        None => operand.clone(),
        Some(matrix) => operand.slice(Tree::flat([Slot::All, Slot::All, Slot::At(matrix.clone())])?)?,
    };
    operand.local_tile(&format!("({rows},{DEPTH})"), tile_at(row, None)?)
}

/// What M, N and K are multiples of, where that spares a bound or shows an alignment.
fn facts(problem: &Problem, plan: &Plan) -> [String; 3] {
    let [m, n, k] = problem.sizes();
    let (along_m, along_n) = (plan.rows * plan.group, plan.columns);
    let (along_m, along_n) = if plan.swapped { (along_n, along_m) } else { (along_m, along_n) };
    let eight = |size: i64| if size % 8 == 0 { size } else { 8 };
    [fact(m, &[along_m]), fact(eight(n), &[along_n, 8]), fact(eight(k), &[DEPTH, 8])]
}

/// What a kernel does, as lines of its plan.
pub(super) fn lines(problem: &Problem, plan: &Plan) -> Vec<String> {
    vec![
        format!("{}, {} warps; bulk copies by one more", atom(problem, plan), WARPS * plan.groups),
        "D through shared memory, in panels of 128 bytes, by bulk stores".to_string(),
    ]
}

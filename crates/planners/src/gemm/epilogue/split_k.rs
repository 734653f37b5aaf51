//! The second kernel of split-K: adds partial accumulators.
//!
//! Law: `D(e) = f(W(e,0) + W(e,1) + .., ..)`, added in the type of the accumulators in the order of
//! K and rounded once. The order does not depend on which block ran when, so the result has the
//! same bits each time.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Distribution, Kernel};
use tilewright_layout::{Layout, LayoutError, Slot, Tree};

use crate::error::PlanError;
use crate::expression::Expression;
use crate::gemm::index::tile_at;
use crate::gemm::index::{overflow, plus, times};
use crate::gemm::plan::Plan;
use crate::gemm::problem::Problem;
use crate::gemm::schedule::grid::Grid;
use crate::map::{MapOptions, MapTensor, map};
use crate::units::{MOVE_THREADS, follow_launches};

/// The kernel that adds the partial accumulators of `split_k` blocks: `partials`, `(E,S):(1,E)`,
/// into `d`, `E:1`.
pub(crate) fn added(problem: &Problem, machine: &Machine, split_k: i64) -> Result<Kernel, PlanError> {
    let [m, n, _] = problem.sizes();
    let elements = m.saturating_mul(n).saturating_mul(problem.batch());
    // The widest vectors that leave each SM two blocks, which read at full bandwidth.
    let blocks = 2 * i64::from(machine.multiprocessors);
    let width = [8, 4, 2].into_iter().find(|width| elements >= width * MOVE_THREADS * blocks && elements % width == 0);
    let width = width.unwrap_or(1);
    let tile = MOVE_THREADS * width;
    let held = Distribution::new(tile, Layout::strided((MOVE_THREADS, width), (width, 1)))?;
    let kernel = Kernel::build("product_sums", |k| {
        let layout = Layout::strided((elements, split_k), (1, elements));
        let partials = k.tensor_of(problem.accumulator_type(), "partials", layout, Role::Input)?;
        let d = k.tensor_of(problem.result_type(), "d", Layout::strided(elements, 1), Role::Output)?;
        k.threads(MOVE_THREADS)?;
        follow_launches(k, machine);
        let of = |split: i64| {
            let own = partials.slice(Tree::flat([Slot::All, Slot::At(split.into())])?)?;
            own.local_tile(&tile.to_string(), k.block("x")?)?.load_distributed_predicated(&held)
        };
        let mut total = of(0)?;
        for split in 1..split_k {
            total = total.zip(&of(split)?, |a, b| Ok(a + b))?;
        }
        d.local_tile(tile, k.block("x")?)?.store_distributed_predicated(&total.to(problem.result_type())?)
    })?;
    Ok(kernel)
}

/// Rows of a block, and columns of a thread, of the kernel that adds the tail.
const ROWS: i64 = 16;
const WIDTH: i64 = 8;

/// The layout of the partial accumulators of a split tail: rows, columns, splits, tiles.
///
/// Errors: it has more elements than there are numbers.
pub(crate) fn partials_layout([rows, columns]: [i64; 2], split_k: i64, tiles: i64) -> Result<Layout, LayoutError> {
    let tile = rows * columns;
    Layout::strided((rows, columns, split_k, tiles), (columns, 1, tile, tile * split_k))
}

/// The kernel that adds the partial accumulators of the tail of a plan, [`partials_layout`], into
/// D.
pub(crate) fn last(problem: &Problem, plan: &Plan, machine: &Machine) -> Result<Kernel, PlanError> {
    let Plan { rows, columns, split_k, tail, raster_band: band, .. } = *plan;
    let [along, across] = plan.tiles(problem);
    let (chunks, pieces) = (columns / WIDTH, rows / ROWS);
    let held = Distribution::new((ROWS, columns), Layout::strided(((chunks, ROWS), WIDTH), ((WIDTH * ROWS, 1), ROWS)))?;
    let tiler = (ROWS, columns);
    let kernel = Kernel::build("product_last", |k| {
        let layout = partials_layout([rows, columns], split_k, tail);
        let partials = k.tensor_of(problem.accumulator_type(), "partials", layout, Role::Input)?;
        let d = k.tensor_of(problem.result_type(), "d", problem.d().declared(), Role::Both)?;
        k.threads(chunks * ROWS)?;
        k.grid(Axis::X, pieces * tail)?;
        follow_launches(k, machine);
        let digits = k.coordinate(&k.block_number(Axis::X), &[pieces, tail])?;
        let [piece, tile] = &digits[..] else { return Err(overflow()) };
        let of = |split: i64| {
            let own = Tree::flat([Slot::All, Slot::All, Slot::At(split.into()), Slot::At(tile.clone())])?;
            partials.slice(own)?.local_tile(tiler, tile_at(piece, Some(&0.into()))?)?.load_distributed(&held)
        };
        let mut total = of(0)?;
        for split in 1..split_k {
            total = total.zip(&of(split)?, |a, b| Ok(a + b))?;
        }
        let grid = Grid {
            across: across.into(),
            beside: 1,
            bands: (along / band).into(),
            band,
            batch: None,
            steps: 1.into(),
            split_k: 1,
            blocks: 1,
            some: None,
            above: None,
        };
        let place = grid.at(k, plus(tile, &(along * across - tail).into())?)?;
        let row = plus(&times(&place.row, &pieces.into())?, piece)?;
        let to = d.local_tile(tiler, tile_at(&row, Some(&place.column))?)?;
        to.store_distributed_predicated(&total.to(problem.result_type())?)
    })?;
    Ok(kernel)
}

/// The kernel for any other layout of D, and for epilogue functions. Its inputs are the partial
/// accumulators of each split, `(M,N,L)` (if gated, the first and the second columns), then the
/// epilogue inputs; its output is D.
pub(crate) fn mapped(problem: &Problem, machine: &Machine, split_k: i64) -> Result<Kernel, PlanError> {
    let ([m, n, _], batch) = (problem.sizes(), problem.batch());
    let same = |[rows, columns, matrices]: [i64; 3]| -> Result<Layout, PlanError> {
        Ok(Layout::strided((m, n, batch), (rows, columns, matrices))?)
    };
    let folded = || PlanError::Plan { because: "folded modes are moved before" };
    let (each, matrix) = (if problem.pairs().is_some() { 2 } else { 1 }, m.saturating_mul(n));
    let partials = same([n, 1, matrix.saturating_mul(each)])?;
    let count = partials.size().saturating_mul(each);
    let given = problem.epilogue().map_or(&[][..], |fused| &fused.inputs);
    let layouts = given.iter().chain([problem.d()]).map(|matrix| same(matrix.strides().ok_or_else(folded)?));
    let layouts: Vec<Layout> = layouts.collect::<Result<_, _>>()?;
    let places = (0..split_k).flat_map(|split| (0..each).map(move |sum| split * count + sum * matrix));
    let mut inputs: Vec<MapTensor<'_>> =
        places.map(|place| (&partials, problem.accumulator_type(), place).into()).collect();
    for (layout, matrix) in layouts.iter().zip(given) {
        inputs.push((layout, matrix.element(), matrix.offset()).into());
    }
    let (split_k, each) = (split_k as usize, each as usize);
    let total = |sum: usize| {
        let others = (1..split_k).map(|split| Expression::input(split * each + sum));
        others.fold(Expression::input(sum), |total, other| total + other)
    };
    let expression = match problem.epilogue() {
        Some(fused) => {
            let others = (0..given.len()).map(|number| Expression::input(split_k * each + number));
            fused.expression.with(&(0..each).map(total).chain(others).collect::<Vec<_>>())
        }
        None => total(0),
    };
    let d = layouts.last().ok_or_else(folded)?;
    let output = (d, problem.result_type(), problem.d().offset());
    let options = MapOptions { name: "product_sums" };
    Ok(map(machine, &expression, &inputs, output, options)?.kernel().clone())
}

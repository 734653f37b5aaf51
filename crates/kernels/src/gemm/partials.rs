//! The sums of blocks that shared a tile, added.
//!
//! Law: `D(e) = f(W(e,0) + W(e,1) + .., ..)`, added in f32 in this order and rounded once, whatever
//! ran when: so the result has the same bits each time.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Distribution, Element, Kernel};
use tilewright_layout::{Layout, Slot, Tree};

use super::problem::Problem;
use crate::error::PlanError;
use crate::expression::Expression;
use crate::map::{Placed, map_at};

/// Threads of a block.
const THREADS: i64 = 256;
/// Blocks that a device runs at once, about.
const BLOCKS: i64 = 264;

/// The kernel that adds the sums of so many blocks: `sums`, `(E,S):(1,E)`, into `d`, `E:1`.
pub(super) fn added(problem: &Problem, splits: i64) -> Result<Kernel, PlanError> {
    let [m, n, _] = problem.sizes();
    let elements = m.saturating_mul(n).saturating_mul(problem.batch());
    // As wide as leaves enough blocks to read at full speed.
    let width = [8, 4, 2].into_iter().find(|width| elements >= width * THREADS * BLOCKS && elements % width == 0);
    let width = width.unwrap_or(1);
    let tile = THREADS * width;
    let held = Distribution::new(&tile.to_string(), &format!("({THREADS},{width}):({width},1)"))?;
    let kernel = Kernel::build("product_sums", |k| {
        let sums = k.input::<f32>("sums", &format!("({elements},{splits}):(1,{elements})"))?;
        let d = k.tensor_of(problem.result(), "d", &format!("{elements}:1"), Role::Output)?;
        k.threads(THREADS)?;
        k.wait_launches();
        k.launch_next();
        let of = |split: i64| {
            let own = sums.slice(Tree::flat([Slot::All, Slot::At(split.into())])?)?;
            own.local_tile(&tile.to_string(), k.block("x")?)?.load_distributed_predicated(&held)
        };
        let mut total = of(0)?;
        for split in 1..splits {
            total = total.zip(&of(split)?, |a, b| Ok(a + b))?;
        }
        d.local_tile(&tile.to_string(), k.block("x")?)?.store_distributed_predicated(&total.to(problem.result())?)
    })?;
    Ok(kernel)
}

/// The same where D lies otherwise, or where something is done with the sums: the sums of each
/// block, `(M,N,L)`, then the inputs, into D.
pub(super) fn mapped(problem: &Problem, splits: i64) -> Result<Kernel, PlanError> {
    let ([m, n, _], batch) = (problem.sizes(), problem.batch());
    let same = |[rows, columns, matrices]: [i64; 3]| -> Result<Layout, PlanError> {
        Ok(format!("({m},{n},{batch}):({rows},{columns},{matrices})").parse()?)
    };
    let folded = || PlanError::Plan { because: "folded modes are moved before" };
    let sums = same([n, 1, m.saturating_mul(n)])?;
    let count = sums.size();
    let given = problem.function().map_or(&[][..], |fused| &fused.inputs);
    let layouts = given.iter().chain([problem.d()]).map(|matrix| same(matrix.strides().ok_or_else(folded)?));
    let layouts: Vec<Layout> = layouts.collect::<Result<_, _>>()?;
    let mut inputs: Vec<Placed<'_>> = (0..splits).map(|split| (&sums, Element::F32, split * count)).collect();
    for (layout, matrix) in layouts.iter().zip(given) {
        inputs.push((layout, matrix.element(), matrix.offset()));
    }
    let splits = splits as usize;
    let total = (1..splits).fold(Expression::input(0), |total, split| total + Expression::input(split));
    let expression = match problem.function() {
        Some(fused) => {
            let others = (0..given.len()).map(|number| Expression::input(splits + number));
            fused.expression.with(&std::iter::once(total).chain(others).collect::<Vec<_>>())
        }
        None => total,
    };
    let d = layouts.last().ok_or_else(folded)?;
    let output = (d, problem.result(), problem.d().offset());
    Ok(map_at("product_sums", &expression, &inputs, output)?.kernel().clone())
}

//! The sums of blocks that shared a tile, added.
//!
//! Law: `D(e) = W(e,0) + W(e,1) + ..`, added in f32 in this order and rounded once, whatever ran when:
//! so the result has the same bits each time.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Distribution, Kernel};
use tilewright_layout::{Slot, Tree};

use super::problem::Problem;
use crate::error::PlanError;

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

//! The GEMM kernel: a producer warp issues TMA loads, consumer warpgroups issue wgmma.
//! Where there is no wgmma, warps issue mma.sync (`warps.rs`), with the same producer or without.
//!
//! The producer loads k-tiles of both operands into a ring of stages. Each stage has an mbarrier
//! that counts its bytes. Consumers multiply full stages, 64 rows by one instruction, and release
//! them. The grid is persistent: each block iterates over output tiles, so the loads of a tile
//! overlap the epilogue of the previous tile.
//!
//! `outline.rs` has the decisions of a kernel, `declared.rs` what its roles share, `pass.rs` the
//! tiles that a block computes. `load.rs` is the producer, `multiply.rs` the consumer, `operand.rs`
//! an operand in global and shared memory. `promote.rs` and `scales.rs` promote accumulators;
//! `blocks.rs` has the scales of block-scaled formats; `ping_pong.rs` orders two consumer
//! warpgroups.

mod blocks;
mod declared;
mod load;
mod multiply;
mod operand;
pub(crate) mod outline;
mod pass;
mod ping_pong;
mod promote;
mod scales;
mod warps;
mod weights;

use tilewright_kernel::Kernel;
use tilewright_kernel::machine::Machine;

use crate::error::PlanError;
use crate::gemm::mainloop::declared::Declared;
use crate::gemm::mainloop::load::Loader;
use crate::gemm::mainloop::multiply::Multiplier;
use crate::gemm::mainloop::outline::Outline;
use crate::gemm::plan::Plan;
use crate::gemm::problem::Problem;

/// The kernel that multiplies, into D or into the partial accumulators of split-K: for the sizes of
/// the problem, or for all multiples of the sizes that it names.
pub(crate) fn kernel(
    name: &str,
    problem: &Problem,
    (plan, machine): (&Plan, &Machine),
    exact: bool,
) -> Result<Kernel, PlanError> {
    kernel_of(name, std::slice::from_ref(problem), (plan, machine), exact)
}

/// The kernel for all problems of a list, the first of which has the types and layouts of all: one
/// problem, or several with different sizes.
pub(crate) fn kernel_of(
    name: &str,
    problems: &[Problem],
    (plan, machine): (&Plan, &Machine),
    exact: bool,
) -> Result<Kernel, PlanError> {
    let outline = Outline::of(problems, (plan, machine), exact)?;
    if outline.problem.int4_scales().is_some() {
        return weights::kernel(name, &outline);
    }
    if plan.warps.is_some() {
        return warps::kernel(name, &outline);
    }
    let kernel = Kernel::build(name, |k| {
        let declared = Declared::new(k, &outline)?;
        Loader::role(&declared)?;
        let together = outline.together();
        for group in 0..plan.tiles_at_once() as u32 {
            k.role(group * together..(group + 1) * together, || Multiplier::multiply(&declared, group as usize))?;
        }
        if plan.cluster > 1 {
            // No block of a cluster exits while others still arrive at its mbarriers.
            k.cluster_barrier();
        }
        Ok(())
    })?;
    Ok(kernel)
}

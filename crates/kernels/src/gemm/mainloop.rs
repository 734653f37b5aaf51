//! The kernel of a plan: one warp that copies, groups of four that multiply.
//!
//! One warp sets off bulk copies of tiles of both operands into a ring of stages; the others
//! multiply what has arrived, 64 rows of a tile at a time. Blocks take tiles in turn, so that the
//! copies for a tile go on while the one before is written.
//!
//! `outline.rs` says what problems and plan make of the kernel, `declared.rs` declares what its
//! roles share, and `pass.rs` which tiles a block takes; `load.rs` is the role that copies,
//! `multiply.rs` the one that multiplies, with `promote.rs` where sums are promoted.

mod declared;
mod load;
mod multiply;
mod outline;
mod pass;
mod promote;

use tilewright_kernel::Kernel;

use self::declared::Declared;
use self::load::Loader;
use self::multiply::Multiplier;
use self::outline::Outline;
pub(super) use self::outline::atom;
use super::plan::Plan;
use super::problem::Problem;
use crate::error::PlanError;

/// The kernel that multiplies, into D or into the sums of each range of steps: for the sizes of the
/// problem, or for all that are multiples of what it says.
pub(super) fn kernel(name: &str, problem: &Problem, plan: &Plan, exact: bool) -> Result<Kernel, PlanError> {
    kernel_of(name, std::slice::from_ref(problem), plan, exact)
}

/// The kernel that multiplies all problems of a list, of which the first one says types and how
/// tensors lie: one problem, or several for their sizes alone.
pub(super) fn kernel_of(name: &str, problems: &[Problem], plan: &Plan, exact: bool) -> Result<Kernel, PlanError> {
    let outline = Outline::of(problems, plan, exact)?;
    let kernel = Kernel::build(name, |k| {
        let declared = Declared::new(k, &outline)?;
        let multipliers = outline.multipliers();
        k.role(multipliers..multipliers + outline.copiers(), || Loader::load(&declared))?;
        let together = outline.together();
        for group in 0..plan.tiles_at_once() as u32 {
            k.role(group * together..(group + 1) * together, || Multiplier::multiply(&declared, group as usize))?;
        }
        if plan.cluster > 1 {
            // Nobody ends while the others still arrive at its stages.
            k.cluster_barrier();
        }
        Ok(())
    })?;
    Ok(kernel)
}

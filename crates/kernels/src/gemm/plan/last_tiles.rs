//! Blocks that share the steps along K of the last tiles.
//!
//! Law: where tiles do not fill whole turns of all blocks, those that are left, [`Plan::tail`] of
//! them, may be shared by several blocks each. All others have one block.

use tilewright_kernel::cost::Machine;

use super::Plan;
use crate::gemm::problem::Problem;

/// Turns of all blocks after which blocks may share the last tiles: after fewer, what is gained was
/// less than what the sums cost.
const MANY_TURNS: i64 = 12;

impl Plan {
    /// The same plan on all processors, in which so many blocks share the tiles that are left of
    /// whole turns; none where no turn is whole, or none is left.
    pub(crate) fn sharing_last(&self, problem: &Problem, machine: &Machine, splits: i64) -> Option<Plan> {
        let (tiles, blocks) = (self.tiles(problem).iter().product::<i64>(), i64::from(machine.multiprocessors));
        let tail = tiles % blocks;
        if self.splits > 1 || self.resident > 1 || tail == 0 || tail == tiles {
            return None;
        }
        let plan = Plan { splits, tail, blocks, ..self.clone() };
        plan.refusal(problem).is_none().then_some(plan)
    }

    /// Whether few tiles are left after many turns, and blocks share these.
    pub(super) fn shares_few(&self, problem: &Problem) -> bool {
        let turns = (self.tiles(problem).iter().product::<i64>() - self.tail) / self.blocks.max(1);
        self.tail > 0 && 2 * self.tail <= self.blocks && turns >= MANY_TURNS && !problem.is_promoted()
    }

    /// Whether all tiles are shared.
    pub(crate) fn is_shared(&self) -> bool {
        self.splits > 1 && self.tail == 0
    }

    /// The plan of the tiles that a block has alone, and of the last ones that are shared.
    pub(crate) fn parted(&self) -> (Plan, Plan) {
        (Plan { splits: 1, tail: 0, ..self.clone() }, Plan { tail: 0, ..self.clone() })
    }
}

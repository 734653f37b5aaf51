//! What the kernel of a plan does, in words.

use super::mainloop::atom;
use super::plan::{Plan, WARPS};
use super::problem::Problem;

/// The lines of a plan that say what its kernel does.
pub(super) fn of_kernel(problem: &Problem, plan: &Plan) -> Vec<String> {
    let stored = match problem.stored() {
        _ if plan.is_shared() => "sums from registers to the workspace".to_string(),
        Ok(_) => format!("D through shared memory, in panels of {} bytes, by bulk stores", plan.panel_bytes(problem)),
        Err(because) if problem.staged().is_some() => {
            format!("D through shared memory, by threads that write neighbours: {because}")
        }
        Err(because) => format!("D from registers: {because}"),
    };
    let columns = plan.tile_of_d(problem)[1];
    let halved = problem.pairs().is_none() && plan.halves(problem) == 2;
    let instruction = atom(problem, if halved { columns / 2 } else { columns });
    let warps = format!("{instruction} by {} warps; one more warp starts bulk copies", WARPS * plan.groups);
    let folded = problem.fold().map(|fold| {
        let sides = fold.boxes(plan.rows).iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        format!("the rows of a tile are a box along the axes of folded modes, {sides}, and read where they lie")
    });
    let above = plan.ends_above(problem).then(|| {
        let [across, down] = if plan.swapped { ["M", "N"] } else { ["N", "M"] };
        let last = plan.tiles(problem)[0];
        format!(
            "the number of tiles along {across} is odd: the last {last} are neighbours along {down} in their clusters"
        )
    });
    let along = if plan.swapped { "rows" } else { "columns" };
    let pairs = problem.pairs().map(|_| format!("each two {along} of a tile make one column of D, in one thread"));
    let promoted = problem.is_promoted().then(|| "the sums of 128 steps along K are added in f32".to_string());
    let shares = plan
        .shares(problem)
        .map(|[few, many]| format!("{many} registers a thread of warps that multiply, {few} of others"));
    above.into_iter().chain([warps]).chain(folded).chain(pairs).chain(promoted).chain(shares).chain([stored]).collect()
}

//! The lines of a plan that describe its kernel.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::Feature;

use crate::gemm::implicit;
use crate::gemm::mainloop::outline::{atom, warp_instruction};
use crate::gemm::plan::Plan;
use crate::gemm::problem::Problem;

/// The lines of a plan that describe its kernel.
pub(crate) fn of_kernel(problem: &Problem, plan: &Plan, machine: &Machine) -> Vec<String> {
    if plan.warps.is_some() {
        return of_warps(problem, plan, machine);
    }
    let epilogue = match problem.stored() {
        _ if plan.is_shared() => "accumulators from registers to the workspace".to_string(),
        Ok(_) => {
            let bytes = plan.panel_bytes(problem, machine);
            format!("D through shared memory in panels of {bytes} bytes, stored by TMA")
        }
        Err(because) if problem.staged().is_some() => {
            format!("D through shared memory, stored by threads: {because}")
        }
        Err(because) => format!("D from registers: {because}"),
    };
    let columns = plan.tile_of_d(problem)[1];
    let halved = problem.pairs().is_none() && plan.halves(problem) == 2;
    let instruction = atom(problem, if halved { columns / 2 } else { columns });
    let consumers = match plan.warpgroups {
        1 => "one consumer warpgroup".to_string(),
        several => format!("{several} consumer warpgroups"),
    };
    let mainloop = format!("{instruction} by {consumers}; a producer warp issues TMA loads");
    let folded = folded(problem, plan, "TMA box");
    let above = plan.ends_above(problem).then(|| {
        let [across, down] = if plan.swapped { ["M", "N"] } else { ["N", "M"] };
        let last = plan.tiles(problem)[0];
        format!(
            "the number of tiles along {across} is odd: the last {last} are neighbours along {down} in their clusters"
        )
    });
    let [pairs, promoted, order] = of_problem(problem, plan);
    let registers = plan
        .shares(problem, machine)
        .map(|[few, many]| format!("{many} registers for each consumer thread, {few} for each producer thread"));
    let lines =
        above.into_iter().chain([mainloop]).chain(folded).chain(pairs).chain(promoted).chain(order).chain(registers);
    lines.chain([epilogue]).collect()
}

/// The line about the boxes that a tile of an implicit GEMM reads.
fn folded(problem: &Problem, plan: &Plan, what: &str) -> Option<String> {
    implicit::of(problem).map(|fold| {
        let sides = fold.boxes(plan.rows).iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        format!("implicit GEMM: the rows of a tile are a {what} of {sides} of A where it is")
    })
}

/// The lines about features of a problem that both mainloops have in common: gated pairs,
/// promotion, the order of terms.
fn of_problem(problem: &Problem, plan: &Plan) -> [Option<String>; 3] {
    let along = if plan.swapped { "rows" } else { "columns" };
    let pairs = problem.pairs().map(|_| format!("gated: two {along} of a tile make one column of D, in one thread"));
    let promoted = problem.is_promoted().then(|| "accumulators of each 128 of K are promoted to f32".to_string());
    let order = problem
        .is_batch_invariant()
        .then(|| "batch-invariant: an element adds its terms in the order of K, in one sum, for every M".to_string());
    [pairs, promoted, order]
}

/// The lines of a plan of warps.
fn of_warps(problem: &Problem, plan: &Plan, machine: &Machine) -> Vec<String> {
    let [along, across] = plan.warps.unwrap_or([1, 1]);
    let (rows, columns) = (plan.rows / along, plan.columns / across);
    let name = match (problem.has_nibbles(), problem.operand_type()) {
        (true, Element::I8) => "SM80_16x8x64_S32S4S4S32_TN",
        (true, _) => "SM80_16x8x64_S32U4U4S32_TN",
        // The instructions that are emitted for a target without MMA of 16 rows.
        (false, Element::F64) if !machine.target.has(Feature::TallDoubles) => "SM80_8x8x4_F64F64F64F64_TN",
        (false, _) => warp_instruction(problem),
    };
    let loaded = match (problem.operand_type(), problem.int4_scales()) {
        (_, Some(_)) => "words and 16 bytes, which hold the weights of four bits and what they are multiplied by",
        (Element::F64, _) => "single elements",
        _ => "ldmatrix",
    };
    let mainloop = match plan.producer {
        true => format!(
            "{name} by {along} x {across} warps of {rows} x {columns}, which load fragments by {loaded}; a producer warp issues TMA loads"
        ),
        false => format!(
            "{name} by {along} x {across} warps of {rows} x {columns}, which copy k-tiles by cp.async and load fragments by {loaded}"
        ),
    };
    let epilogue = match problem.staged_by_warps() {
        _ if plan.is_shared() => "accumulators from registers to the workspace".to_string(),
        Some(contiguous) => {
            let bytes = problem.stored_together(contiguous) * i64::from(problem.result_type().bytes());
            let parts = match plan.parts(problem, machine).0 {
                1 => String::new(),
                parts => format!(" in {parts} parts"),
            };
            let memory = if plan.producer { "of a stage" } else { "of the stages" };
            format!("D through the shared memory {memory}{parts}, stored by threads in chunks of {bytes} bytes")
        }
        None => "D from registers".to_string(),
    };
    let slow = problem.has_nibbles() && machine.capability >= (9, 0);
    let slow = slow.then(|| "this machine multiplies four bits by instructions of eight: i8 is faster".to_string());
    [mainloop]
        .into_iter()
        .chain(folded(problem, plan, "box"))
        .chain(slow)
        .chain(of_problem(problem, plan).into_iter().flatten())
        .chain([epilogue])
        .collect()
}

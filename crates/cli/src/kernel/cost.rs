//! `tilewright kernel cost`: the costs of a kernel, without running it.

use serde_json::json;
use tilewright::kernel::cost::Cost;
use tilewright::kernel::interpret::AccessCount;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx;
use tilewright::planners::{Entry, Planned};

use super::object_of;
use crate::json::Json;
use crate::output::Failure;
use crate::terminal::Terminal;

pub fn run(entry: &Entry, planned: &Planned, machine: &Machine, terminal: &mut Terminal) -> Result<(), Failure> {
    // A kernel that cannot run on the machine has no cost there.
    for kernel in planned.launches() {
        ptx::write(kernel.program(), machine.target)?;
    }
    let costs = planned.launches().map(|kernel| kernel.program().cost(machine, planned.sizes()));
    let costs = costs.collect::<Result<Vec<_>, _>>().map_err(|error| Failure::refused(&error))?;
    if terminal.json {
        let mut object = object(entry.name, planned.plan(), &costs[0]);
        if let Some(second) = costs.get(1) {
            object["second"] = self::object(entry.name, planned.plan(), second);
        }
        return Ok(terminal.object(&object)?);
    }
    let plan: String = planned.plan().iter().map(|line| format!("  {line}\n")).collect();
    let costs: Vec<String> = costs.iter().map(ToString::to_string).collect();
    Ok(terminal.text(&format!("{}\n{plan}\n{}", entry.name, costs.join("then\n\n")))?)
}

pub(super) fn object(name: &str, plan: &[String], cost: &Cost) -> Json {
    let held = &cost.occupancy;
    let bounds: Vec<Json> =
        cost.bounds().iter().map(|bound| json!({ "by": bound.what, "seconds": bound.seconds })).collect();
    let counted = match &cost.counted {
        Ok(counted) => {
            let accesses = AccessCount::by_statement(&counted.accesses);
            json!({
                "blocks": counted.blocks,
                "walked": counted.walked,
                "exact": counted.is_exact(),
                "instructions": counted.instructions(),
                "accesses": accesses.iter().map(object_of).collect::<Vec<_>>(),
                "operations": counted.operations.total(),
                "operations_at_least": counted.least.total(),
                "touched_bytes": counted.touched_bytes,
                "sectors": cost.sectors(),
                "intensity": cost.intensity(),
            })
        }
        Err(why) => json!({ "reason": why.to_string() }),
    };
    let in_flight = cost.in_flight.as_ref().map(|own| {
        json!({
            "bytes": own.bytes(),
            "block_bytes": own.block_bytes,
            "blocks": own.blocks,
            "at_most": own.at_most,
            "wanted": cost.machine.in_flight(),
        })
    });
    json!({
        "name": name,
        "plan": plan,
        "machine": cost.machine.name,
        "grid": cost.grid,
        "threads": cost.threads,
        "registers_estimate": cost.registers,
        "shared_bytes": cost.shared_bytes,
        "resident": { "blocks": held.blocks, "warps": held.warps, "most_warps": held.most_warps, "decided_by": held.limit.name() },
        "tensor_bytes": cost.tensor_bytes,
        "in_flight": in_flight,
        "counted": counted,
        "at_least": bounds,
    })
}

//! Kernels of the library: their plans, checks, texts and costs.

use serde_json::{Value as Json, json};
use tilewright_draw::Theme;
use tilewright_kernel::interpret::{AccessCount, CheckError, Class};
use tilewright_kernel::machine::{Machine, UnknownMachine};
use tilewright_kernel::program::Program;
use tilewright_kernel::program::memory::Space;
use tilewright_kernel::{Element, ptx};
use tilewright_planners::{Entry, EntryOptions, PlanError, Planned, Unchecked};

use crate::failure::Failure;
use crate::outline::{self, tiles::Tiles};
use crate::request::{At, Wanted};
use crate::steps;

/// The most elements of all tensors of a check, so that the page need not wait long.
const MOST: i64 = 1 << 20;

/// The kernels, with their sizes and types.
pub fn list() -> Json {
    let object = |entry: &Entry| {
        let sizes: Vec<Json> = entry.sizes.iter().map(|(name, size)| json!([name, size])).collect();
        let types: Vec<&str> = entry.types.iter().map(|known| known.name()).collect();
        json!({ "name": entry.name, "summary": entry.summary, "sizes": sizes, "types": types, "large": entry.large })
    };
    let targets: Vec<&str> = ptx::Target::ALL.iter().map(|target| target.name()).collect();
    json!({
        "kernels": tilewright_planners::library().iter().map(object).collect::<Vec<_>>(),
        "targets": targets,
        "machines": Machine::NAMES,
    })
}

/// The answer to a question about a kernel.
///
/// Errors: there is no such kernel, size or type; the plan or the text does not exist.
pub fn of(
    name: &str,
    sizes: &[(String, i64)],
    element: &str,
    want: Wanted,
    target: &str,
    (at, theme): (&At, Theme),
) -> Result<Json, Failure> {
    let entry = tilewright_planners::named(name)?;
    let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    let element = match element {
        "" => None,
        name => Some(Element::named(name).ok_or_else(|| PlanError::Unknown {
            what: "type",
            given: name.to_owned(),
            known: entry.types.iter().map(|known| known.name()).collect::<Vec<_>>().join(", "),
        })?),
    };
    // PTX is for a target, a cost for a machine; everything else is for an H200.
    let machine = match ptx::Target::named(target) {
        Some(target) => Machine::of_target(target),
        None => Machine::named(target).unwrap_or_else(|| Machine::of_target(ptx::Target::Sm90a)),
    };
    let options = EntryOptions { sizes: &sizes, element, ..EntryOptions::default() };
    let planned = entry.plan(&machine, options)?;
    match want {
        Wanted::Plan => plan(entry, &planned),
        Wanted::Check => check(&planned),
        Wanted::Ptx => text(planned.kernel().program(), target),
        Wanted::Cost => cost(&planned, target),
        Wanted::Steps => {
            small(&planned, "a run")?;
            steps::of(&planned, at, theme)
        }
    }
}

fn plan(entry: &Entry, planned: &Planned) -> Result<Json, Failure> {
    let program = planned.kernel().program();
    // The tiles of statements are taken from a run.
    let tiles = match small(planned, "a run") {
        Ok(()) => Tiles::of(planned)?,
        Err(_) => Tiles::default(),
    };
    let buffers: Vec<Json> = program
        .buffers
        .iter()
        .map(|buffer| {
            json!({
                "name": buffer.name,
                "type": buffer.element.name(),
                "bits": 8 * i64::from(buffer.element.bytes()),
                "layout": buffer.layout,
                "shared": buffer.space == Space::Shared,
                "elements": buffer.elements.to_string(),
            })
        })
        .collect();
    let grid: Vec<String> = program.grid.iter().map(ToString::to_string).collect();
    let outputs: Vec<String> =
        planned.kernel().outputs().iter().map(|output| format!("{}: {}", output.tensor, output.written)).collect();
    Ok(json!({
        "summary": entry.summary,
        "plan": planned.plan(),
        "buffers": buffers,
        "grid": grid,
        "threads": program.threads,
        "shared_bytes": program.shared_bytes,
        "outputs": outputs,
        "outline": outline::of(program, &tiles),
        "tiles": !tiles.is_empty(),
    }))
}

fn access(count: &AccessCount) -> Json {
    json!({
        "statement": count.source.statement,
        "memory": count.buffer,
        "requests": count.requests,
        "bytes": count.bytes,
        "sectors": count.sectors,
        "wavefronts": count.wavefronts,
        "least": count.least_wavefronts,
        "at_most": count.at_most,
    })
}

/// Whether a run is short enough for the page.
fn small(planned: &Planned, what: &str) -> Result<(), Failure> {
    // The least number of bytes estimates the work: tensors are read and written at least once.
    if planned.bytes() / 4 > MOST || planned.operations() > 64 * MOST {
        let advice = "choose smaller sizes, or run `tilewright kernel check` on your machine";
        return Err(Failure::choice(format!("{what} of these sizes would take too long here: {advice}")));
    }
    Ok(())
}

fn check(planned: &Planned) -> Result<Json, Failure> {
    small(planned, "a check")?;
    match planned.check() {
        Ok(report) => {
            let counts = &report.checked.run.counts;
            let executed: Vec<Json> = Class::ALL
                .iter()
                .filter(|class| counts.executed(**class) > 0)
                .map(|class| json!([class.name(), counts.executed(*class)]))
                .collect();
            Ok(json!({
                "schedules": report.checked.schedules.len(),
                "instructions": counts.total(),
                "executed": executed,
                "accesses": AccessCount::by_statement(&counts.accesses).iter().map(access).collect::<Vec<_>>(),
                "compared": report.compared,
                "worst": report.worst,
            }))
        }
        Err(Unchecked::Interpreter(CheckError::Findings(findings))) => {
            let told: Vec<Json> = findings
                .iter()
                .map(|finding| json!({ "code": finding.code(), "message": finding.to_string() }))
                .collect();
            Ok(json!({ "findings": told }))
        }
        Err(Unchecked::Interpreter(CheckError::Setup(error))) => Err(Failure::refused(&error)),
        Err(wrong) => Ok(json!({ "findings": [{ "code": "", "message": wrong.to_string() }] })),
    }
}

fn text(program: &Program, target: &str) -> Result<Json, Failure> {
    let target = match target {
        "" => ptx::least(program)?,
        name => ptx::Target::named(name).ok_or_else(|| {
            let known: Vec<&str> = ptx::Target::ALL.iter().map(|target| target.name()).collect();
            Failure::choice(format!("there is no target '{name}'; the targets are {}", known.join(", ")))
        })?,
    };
    Ok(json!({ "target": target.name(), "ptx": ptx::write(program, target)? }))
}

fn cost(planned: &Planned, machine: &str) -> Result<Json, Failure> {
    let name = if machine.is_empty() { "H200" } else { machine };
    let machine: Machine = name.parse().map_err(|unknown: UnknownMachine| Failure::choice(unknown.to_string()))?;
    let cost = planned.kernel().program().cost(&machine, planned.sizes())?;
    let accesses = match &cost.counted {
        Ok(counted) => AccessCount::by_statement(&counted.accesses).iter().map(access).collect::<Vec<_>>(),
        Err(_) => Vec::new(),
    };
    Ok(json!({ "machine": cost.machine.name, "text": cost.to_string(), "accesses": accesses }))
}

//! The machine of a plan: `--machine` and `--arch`; and the plans measured on a device.
//!
//! Law: every command that plans kernels reads these options here. So a name means the same card
//! everywhere, and an unknown name is refused with the list of the cards.

use tilewright::gpu::Device;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx::Target;
use tilewright::measured::{DevicePlanner, Kept};
use tilewright::planners::PlanError;

use crate::output::Failure;
use crate::terminal::Terminal;

/// The name for the first GPU of this computer.
const FIRST_DEVICE: &str = "device";

/// The machine with this name; `device` is the first GPU. An earlier target may follow an `@`, and
/// then restricts plans: `device@sm_80`.
pub fn named(name: &str) -> Result<Machine, Failure> {
    let (card, target) = name.split_once('@').map_or((name, None), |(card, target)| (card, Target::named(target)));
    let found = match card.eq_ignore_ascii_case(FIRST_DEVICE) {
        false => Machine::named(name),
        true if card == name => return Ok(Device::open(0)?.machine()?),
        true => Device::open(0)?.machine()?.held_to(target.ok_or_else(|| unknown(name))?),
    };
    found.ok_or_else(|| unknown(name))
}

/// The error for an unknown name.
fn unknown(name: &str) -> Failure {
    let known = format!("{}, {FIRST_DEVICE}", Machine::NAMES.join(", "));
    PlanError::Unknown { what: "machine", given: name.to_owned(), known }.into()
}

/// The machine for which to write text: the one with this name, or a card that runs a target's
/// code.
pub fn to_write_for(name: Option<&str>, arch: Option<Target>) -> Result<Machine, Failure> {
    name.map_or_else(|| Ok(Machine::of_target(arch.unwrap_or(Target::Sm80))), named)
}

/// The machine of an operation that may run: the named one, else the device's, else an H200.
pub fn to_plan_for(name: Option<&str>, device: Option<&Device>) -> Result<Machine, Failure> {
    match (name, device) {
        (Some(name), _) => named(name),
        (None, Some(device)) => Ok(device.machine()?),
        (None, None) => Ok(Machine::of_target(Target::Sm90a)),
    }
}

/// The target with this name.
pub fn target(name: &str) -> Result<Target, String> {
    Target::named(name).ok_or_else(|| format!("the targets are {}", Target::names()))
}

/// The planner of a device. It takes measured plans first, then those of the model. If the file of
/// measured plans cannot be read, a note on standard error says so, and no measured plan is used.
pub fn of_device(device: &Device, terminal: &mut Terminal) -> Result<DevicePlanner, Failure> {
    let planner = DevicePlanner::new(device)?;
    if let Some(error) = planner.unread() {
        terminal.note(&format!("no measured plan is used: {error}"));
    }
    Ok(planner)
}

/// The note about a measured plan.
pub fn said_of_kept(kept: &Kept) -> String {
    let path = kept.path.display();
    let mut text = match kept.is_new {
        true => format!("the first is kept in {path}"),
        false => format!("a faster one that was measured before stays in {path}"),
    };
    if kept.damaged > 0 {
        text += &format!("; {} damaged entries of the file are gone", kept.damaged);
    }
    text
}

//! `tilewright gemm --device`: a GEMM on a GPU, planned, checked and timed.
//!
//! Law: printed figures were measured in this run (`measured.rs`). Without a device, only the plan
//! is printed, if it was requested.

use serde_json::json;
use tilewright::gpu::Device;
use tilewright::kernel::machine::Machine;
use tilewright::planners::PlanError;
use tilewright::planners::gemm::{Plan, Problem, Product, ProductReport};

use super::chosen::Chosen;
use super::measured::{MeasuredProduct, measured};
use super::on_device::DeviceRunOptions;
use super::task::{self, Task};
use super::tune;
use crate::json::Json;
use crate::machine;
use crate::output::Failure;
use crate::terminal::Terminal;

pub fn run(options: &super::GemmOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let own = &options.device;
    if let Some(sizes) = &own.list {
        refuse_options_of_cpu(options)?;
        let device = own.device.then(|| Device::open(0)).transpose()?;
        return super::list::run(options, sizes, (device.as_ref(), own.rest), terminal);
    }
    let device = match (own.device, own.plan) {
        (true, _) => Some(Device::open(0)?),
        // A measured plan may be stored for a device, if there is one.
        (false, true) => Device::open(0).ok(),
        _ => None,
    };
    let (chosen, measured) = planned(options, (device.as_ref(), own.device), terminal)?;
    let report = match own.check {
        true => Some(chosen.product.check().map_err(|wrong| Failure::Value(format!("the plan is wrong: {wrong}")))?),
        false => None,
    };
    if terminal.json {
        let mut object = object(&chosen, measured.as_ref());
        if let Some(report) = &report {
            let interpreted = json!({ "compared": report.compared, "worst": report.worst });
            crate::json::extend(&mut object, json!({ "interpreted": interpreted }));
        }
        return Ok(terminal.object(&object)?);
    }
    let mut text = chosen.text(own.plan);
    if let Some(ProductReport { compared, worst, .. }) = &report {
        text += &format!(
            "the interpreter ran the kernels: {compared} elements are right, the worst within {worst:.3} of the rounding bound\n"
        );
    }
    if let Some(measured) = &measured {
        measured.text(&chosen.product, &mut text);
    }
    Ok(terminal.text(&text)?)
}

/// Plans a GEMM for a device, checks and times it there. Returns the object that `gemm --device
/// --json` prints.
pub(crate) fn measured_object(
    options: &super::GemmOptions,
    device: &Device,
    terminal: &mut Terminal,
) -> Result<Json, Failure> {
    if options.device.list.is_some() {
        return Err(Failure::Usage("a list of GEMMs is measured by `tilewright gemm --device` alone".into()));
    }
    let (chosen, measured) = planned(options, (Some(device), true), terminal)?;
    Ok(object(&chosen, measured.as_ref()))
}

fn object(chosen: &Chosen, measured: Option<&MeasuredProduct>) -> Json {
    let mut object = chosen.json();
    if let Some(measured) = measured {
        measured.json(&chosen.product, &mut object);
    }
    object
}

fn refuse_options_of_cpu(options: &super::GemmOptions) -> Result<(), Failure> {
    let cpu = [
        ("--a", options.a.is_some()),
        ("--b", options.b.is_some()),
        ("--output", options.output.is_some()),
        ("--atom", options.atom.is_some()),
        ("--threads", options.threads.is_some()),
        ("--repeat", options.repeat.is_some()),
    ];
    match cpu.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!("{option} is for GEMM on the CPU"))),
        None => Ok(()),
    }
}

/// The plan of a GEMM, and its result on the device if it `runs`.
fn planned(
    options: &super::GemmOptions,
    (device, runs): (Option<&Device>, bool),
    terminal: &mut Terminal,
) -> Result<(Chosen, Option<MeasuredProduct>), Failure> {
    refuse_options_of_cpu(options)?;
    let own = &options.device;
    let task = task::problem(options)?;
    let ends = task::ends(options, &task.problem)?;
    let machine = machine::to_plan_for(own.machine.as_deref(), device)?;
    let chosen = chosen(own, task, (device, &machine), ends.as_deref(), terminal)?;
    own.write_ptx(&chosen.product.kernels(), &machine)?;
    let measured = match device.filter(|_| runs) {
        Some(device) => Some(measured((device, &machine), &chosen.product, ends.as_deref(), own.rest)?),
        None => None,
    };
    Ok((chosen, measured))
}

/// The modelled microseconds of a GEMM's plan, and of the fastest plan of another problem. None if
/// the model does not know the plan, which was measured.
fn modelled(product: &Product, other: &Problem, machine: &Machine) -> Result<Option<[f64; 2]>, PlanError> {
    let own = Product::candidates(product.problem(), machine)?.into_iter().find(|(_, plan)| plan == product.plan());
    let other = Product::candidates(other, machine)?.into_iter().next();
    Ok(own.zip(other).map(|((own, _), (other, _))| [own, other].map(|seconds| seconds * 1e6)))
}

/// The plan of a GEMM: the fastest measured one, now or earlier on this device, if the plan is for
/// this device; otherwise the model's.
fn chosen(
    options: &DeviceRunOptions,
    task: Task,
    (device, machine): (Option<&Device>, &Machine),
    ends: Option<&[u8]>,
    terminal: &mut Terminal,
) -> Result<Chosen, Failure> {
    let problem = &task.problem;
    let refused = |error| Failure::refused(&error);
    if let Some(line) = &options.chosen {
        let plan = Plan::from_line(line).ok_or_else(|| {
            Failure::Usage(format!(
                "--chosen {line:?} is no plan: each field is given once, as `rows=128 columns=128 ..`"
            ))
        })?;
        let product = Product::planned(problem, &plan, machine).map_err(refused)?;
        return Ok(Chosen { task, product, tuned: None, modelled: None });
    }
    let found = match (device, options.tune) {
        (Some(device), Some(count)) => {
            Some(tune::tuned(device, problem, ends, (count as usize, options.rest), terminal)?)
        }
        (Some(device), None) if device.machine()? == *machine => {
            let kept = machine::of_device(device, terminal)?.measured(problem);
            kept.map(|(plan, tuned)| Ok((Product::planned(problem, &plan, machine)?, tuned)))
                .transpose()
                .map_err(refused)?
        }
        _ => None,
    };
    let (product, tuned) = match found {
        Some((product, tuned)) => (product, Some(tuned)),
        None => (Product::new(problem, machine).map_err(refused)?, None),
    };
    let modelled = task.free.as_ref().map(|free| modelled(&product, free, machine)).transpose().map_err(refused)?;
    Ok(Chosen { task, product, tuned, modelled: modelled.flatten() })
}

//! `tilewright gemm --list`: GEMMs of several sizes in one launch, planned, checked and timed.
//!
//! Law: printed figures were measured in this run. Each D is filled with poison before, and
//! compared with sums in f64 of the same inputs; the number of compared elements is printed. Rounds
//! alternate between the list, the same GEMMs in one launch each, and cuBLAS, one GEMM after the
//! other. Each figure is the median over the rounds.

use std::fmt::Write as _;

use serde_json::json;
use tilewright::bench::Round;
use tilewright::bench::tensors::{CHECKED, Tensors, compare, ready, wanted};
use tilewright::gpu::Device;
use tilewright::kernel::machine::Machine;
use tilewright::planners::gemm::{Problem, Problems, Product, Products};

use super::measured::Rival;
use super::on_device::ProblemSizes;
use super::task::{self, Task};
use crate::kernel::bench::{ROUNDS, median, timed};
use crate::machine;
use crate::output::Failure;
use crate::terminal::Terminal;

pub fn run(
    options: &super::GemmOptions,
    sizes: &ProblemSizes,
    (device, rest): (Option<&Device>, Option<u32>),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let tasks = sizes.0.iter().map(|sizes| task::sized(options, *sizes)).collect::<Result<Vec<Task>, _>>()?;
    let texts: Vec<String> = tasks.iter().map(Task::text).collect();
    let problems: Vec<Problem> = tasks.into_iter().map(|task| task.problem).collect();
    let refused = |error| Failure::refused(&error);
    let list = Problems::new(problems).map_err(refused)?;
    let machine = machine::to_plan_for(options.device.machine.as_deref(), device)?;
    let products = Products::new(&list, &machine).map_err(refused)?;
    options.device.write_ptx(&products.kernels(), &machine)?;
    let measured = device.map(|device| measured(device, &machine, &products, rest)).transpose()?;
    if terminal.json {
        let mut object = json!({
            "sizes": sizes.0,
            "problems": texts,
            "plan": products.lines(),
            "kernels": products.kernels().iter().map(|kernel| kernel.name()).collect::<Vec<_>>(),
            "workspace": products.workspace(),
        });
        if let Some(measured) = &measured {
            measured.json(&list, rest, &mut object);
        }
        return Ok(terminal.object(&object)?);
    }
    let mut text = String::new();
    for problem in texts {
        let _ = writeln!(text, "{problem}");
    }
    for line in products.lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "  {} bytes of workspace", products.workspace());
    if let Some(measured) = &measured {
        measured.text(&list, &mut text);
    }
    Ok(terminal.text(&text)?)
}

/// The result of a run on a device.
struct MeasuredList {
    device: String,
    /// The seconds of the list, and of its GEMMs in one launch each.
    list: f64,
    alone: f64,
    /// The seconds of cuBLAS, or the reason why there are none.
    cublas: Result<f64, String>,
    compared: usize,
    /// The largest error, in units of its bound.
    worst: f64,
}

impl MeasuredList {
    fn text(&self, list: &Problems, text: &mut String) {
        let unit = if list.problems()[0].accumulator_type().is_float() { "TFLOP/s" } else { "TOP/s" };
        let rate = list.operations() as f64 / self.list / 1e12;
        let ratio = |seconds: f64| seconds / self.list;
        let _ = writeln!(text, "  {}", self.device);
        let _ = writeln!(text, "  {:.1} us, the median of {ROUNDS} rounds; {rate:.1} {unit}", self.list * 1e6);
        let _ = writeln!(text, "  in a launch each {:.1} us: {:.3} of it", self.alone * 1e6, ratio(self.alone));
        let _ = match &self.cublas {
            Ok(seconds) => {
                writeln!(text, "  cuBLAS one after the other {:.1} us: {:.3} of it", seconds * 1e6, ratio(*seconds))
            }
            Err(because) => writeln!(text, "  no cuBLAS beside it: {because}"),
        };
        let (compared, worst) = (self.compared, self.worst);
        let _ = writeln!(text, "  {compared} elements compared with f64: at most {worst:.3} of a bound");
    }

    fn json(&self, list: &Problems, rest: Option<u32>, object: &mut serde_json::Value) {
        object["device"] = json!(self.device);
        object["median_us"] = json!(self.list * 1e6);
        object["tflops"] = json!(list.operations() as f64 / self.list / 1e12);
        object["alone_us"] = json!(self.alone * 1e6);
        object["cublas_us"] = json!(self.cublas.as_ref().ok().map(|seconds| seconds * 1e6));
        object["rest_ms"] = json!(rest);
        object["checked"] = json!(true);
        object["compared"] = json!(self.compared);
        object["worst"] = json!(self.worst);
        if let Err(because) = &self.cublas {
            object["no_cublas"] = json!(because);
        }
    }
}

fn measured(
    device: &Device,
    machine: &Machine,
    products: &Products,
    rest: Option<u32>,
) -> Result<MeasuredList, Failure> {
    let stream = device.stream()?;
    let problems = products.problems().problems();
    let kernels = ready(device, products.steps(), machine)?;
    let alone = problems.iter().map(|problem| Product::new(problem, machine)).collect::<Result<Vec<_>, _>>();
    let alone = alone.map_err(|error| Failure::refused(&error))?;
    let (mut all, mut elements) = (Vec::new(), Vec::new());
    for (place, problem) in problems.iter().enumerate() {
        // The workspaces of the list, and of each single GEMM that needs one.
        let mut pieces = if place == 0 { products.workspaces().to_vec() } else { Vec::new() };
        let own = alone[place].workspaces();
        pieces.resize(pieces.len().max(own.len()), 0);
        pieces.iter_mut().zip(own).for_each(|(piece, own)| *piece = (*piece).max(*own));
        let (tensors, blocks) = Tensors::filled(device, &stream, (problem, place), None, &pieces)?;
        elements.push(wanted(problem, &blocks, CHECKED / problems.len() as i64)?);
        all.push(tensors);
    }
    Tensors::launch_all(&mut all, &stream, &kernels)?;
    stream.synchronize()?;
    let mut worst = 0.0_f64;
    for ((problem, tensors), elements) in problems.iter().zip(&all).zip(&elements) {
        worst = worst.max(compare(problem, &stream, elements, tensors)?[2]);
    }
    let compared = elements.iter().map(Vec::len).sum();
    let ready_alone =
        alone.iter().map(|product| ready(device, product.steps(), machine)).collect::<Result<Vec<_>, _>>()?;
    let mut rivals = problems.iter().map(|problem| Rival::of(device, problem)).collect::<Result<Vec<_>, String>>();

    let once = timed(device, &stream, 3, || Tensors::launch_all(&mut all, &stream, &kernels))?;
    let mut round = Round::new(device, once, rest)?;
    let (mut list, mut single, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        list.push(round.timed(device, &stream, || Tensors::launch_all(&mut all, &stream, &kernels))?);
        single.push(round.timed(device, &stream, || {
            all.iter_mut().zip(&ready_alone).try_for_each(|(tensors, kernels)| tensors.launch(&stream, kernels))
        })?);
        if let Ok(rivals) = &mut rivals {
            theirs.push(round.timed(device, &stream, || {
                rivals.iter_mut().zip(&all).try_for_each(|(rival, tensors)| rival.multiply(&stream, tensors))
            })?);
        }
    }
    let refused = |rivals: &Vec<Rival>| rivals.iter().find_map(|rival| rival.refused.clone());
    let cublas = match rivals {
        Err(because) => Err(because),
        Ok(rivals) => refused(&rivals).map_or_else(|| Ok(median(theirs)), Err),
    };
    Ok(MeasuredList {
        device: device.name().to_owned(),
        list: median(list),
        alone: median(single),
        cublas,
        compared,
        worst,
    })
}

//! `tilewright kernel explain`: the layouts that are assigned to the values of a tile program, and
//! why.

mod pictures;

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use serde_json::json;
use tilewright::atoms::Dimension;
use tilewright::draw::Format;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx;
use tilewright::kernel::{BoxMap, Kernel, Launch, Route};
use tilewright::tile::{Compared, Compiled, Explanation, NextBest, Report, Unchecked};

use super::tiles::Tile;
use crate::json::Json;
use crate::output::{Failure, Saving, write_file};
use crate::terminal::Terminal;

/// Outputs besides the text.
#[derive(Debug, Args)]
pub struct KernelExplainOptions {
    /// Run the kernel on the interpreter at the sizes: every access of every thread, and each
    /// element that it writes beside what the program means.
    #[arg(long)]
    check: bool,
    /// Draw the layouts: which thread holds which elements, and in which banks tiles lie.
    #[arg(long)]
    pictures: bool,
    /// The value whose layout is drawn into the file, as the text names it: v3.
    #[arg(long, value_name = "VALUE", requires = "output")]
    value: Option<String>,
    #[command(flatten)]
    saving: Saving,
}

/// Explains a program, and a launch of it if sizes are given. Writes its kernel as PTX, or its
/// layouts as pictures, if a file is named; checks it if requested.
pub fn run(
    file: &Path,
    sizes: &[(String, i64)],
    machine: &Machine,
    options: &KernelExplainOptions,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let output = options.saving.output.as_deref();
    if let Some(output) = output.filter(|output| Format::of_file(output).is_err())
        && output.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("ptx"))
    {
        let known =
            "a kernel is written to a file that ends in .ptx, a picture to .svg, .html, .png, .pdf, .tex or .txt";
        return Err(Failure::file(output, known));
    }
    let compiled = Tile::read(file)?.compile(machine)?;
    let explained = compiled.explain()?;
    let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    let launch = (!sizes.is_empty()).then(|| compiled.kernel().program().launch(&sizes)).transpose();
    let launch = launch.map_err(|error| Failure::refused(&error))?;
    let report = options.check.then(|| checked_at(&compiled, &sizes, terminal)).transpose()?;
    let drawn = |output: &&Path| options.value.is_some() || Format::of_file(output).is_ok();
    match (output.filter(drawn), output) {
        (Some(output), _) => {
            let (name, value) = (compiled.source().name(), options.value.as_deref());
            pictures::save(name, &explained, value, (output, &options.saving), terminal)?;
        }
        (None, Some(output)) => {
            write_file(output, ptx::write(compiled.kernel().program(), machine.target)?.as_bytes(), terminal)?;
        }
        (None, None) => {}
    }
    if !terminal.json {
        let launch = launch.map_or(String::new(), |launch| {
            let (program, [x, y, z]) = (compiled.kernel().program(), launch.grid);
            let (threads, shared) = (program.threads, program.shared_bytes);
            format!("\na launch: ({x},{y},{z}) blocks of {threads} threads, {shared} bytes of shared memory\n")
        });
        let report = report.as_ref().map_or(String::new(), findings);
        terminal.text(&format!("{explained}{launch}{report}"))?;
        return if options.pictures { pictures::show(&explained, terminal) } else { Ok(()) };
    }
    let mut object = object(&explained);
    object["name"] = json!(compiled.source().name());
    let took = compiled.times().iter().map(|(pass, time)| json!({ "pass": pass, "seconds": time.as_secs_f64() }));
    object["passes"] = took.collect();
    if let Some(launch) = launch {
        object["launch"] = passed(compiled.kernel(), &launch);
    }
    if let Some(report) = report {
        object["check"] = checked(&report);
    }
    Ok(terminal.object(&object)?)
}

fn object(explained: &Explanation) -> Json {
    let choices: Vec<Json> = explained
        .choices
        .iter()
        .map(|own| {
            let because = |next: &NextBest| -> Vec<Json> {
                next.because.iter().map(|(what, more)| json!({ "what": what, "cycles": more })).collect()
            };
            let next = own.next.as_ref().map(|next| {
                let layout = next.held.to_string();
                json!({ "layout": layout, "cycles": next.cycles, "bound": next.bound, "because": because(next) })
            });
            json!({
                "value": own.name,
                "type": own.ty.element.name(),
                "shape": own.ty.shape,
                "layout": own.held.to_string(),
                "origin": own.origin,
                "weighed": own.weighed,
                "next": next,
            })
        })
        .collect();
    let conversions: Vec<Json> = explained
        .conversions
        .iter()
        .map(|own| {
            let route = match own.route {
                Route::Registers => "registers",
                Route::Lanes => "lanes",
                Route::Shared => "shared",
            };
            json!({ "from": own.from, "to": own.to, "route": route, "instructions": own.instructions })
        })
        .collect();
    let staged = explained.staged.iter().map(
        |own| json!({ "value": own.name, "tensor": own.tensor, "layout": own.layout.to_string(), "bits": own.bits }),
    );
    let staged: Vec<Json> = staged.collect();
    let registers = explained.taken.iter().map(
        |own| json!({ "value": own.name, "registers": own.registers, "line": own.place.map(|place| place.line()) }),
    );
    let registers: Vec<Json> = registers.collect();
    json!({
        "program": explained.program,
        "warps": explained.warps,
        "roles": explained.roles,
        "cycles": explained.cycles,
        "bound": explained.bound,
        "choices": choices,
        "conversions": conversions,
        "staged": staged,
        "registers": registers,
        "assumed": explained.assumed,
        "outputs": super::outputs(&explained.outputs),
    })
}

/// The result of a check, as text.
pub(super) fn findings(report: &Report) -> String {
    let (instructions, schedules) = (report.checked.run.counts.total(), report.checked.schedules.len());
    let mut text = format!("\nchecked: {instructions} instructions of warps under each of {schedules} schedules:\n");
    let _ = writeln!(text, "{}", super::NOTHING_FOUND);
    for Compared { tensor, compared, farthest, rounding } in &report.outputs {
        let _ = write!(text, "{tensor}: {compared} elements compared with the interpreter; ");
        let _ = match *farthest == 0.0 {
            true => writeln!(text, "all equal"),
            false => writeln!(
                text,
                "the largest difference is {farthest:.1e} of the largest element, and the tolerance is {rounding:.1e}"
            ),
        };
    }
    text + "for these sizes and one set of numbers; other sizes were not run\n"
}

/// Runs a program in the interpreter at these sizes, and compares its outputs with the program's
/// definition.
pub(super) fn checked_at(
    compiled: &Compiled,
    sizes: &[(&str, i64)],
    terminal: &mut Terminal,
) -> Result<Report, Failure> {
    match compiled.check(sizes) {
        Ok(report) => Ok(report),
        Err(Unchecked::Program(error)) => Err(error.into()),
        Err(Unchecked::Interpreter(error)) => Err(super::unchecked(&error, terminal)?),
        Err(wrong) => Err(Failure::Value(wrong.to_string())),
    }
}

/// The result of a check, as JSON.
pub(super) fn checked(report: &Report) -> Json {
    let compared = report.outputs.iter().map(|Compared { tensor, compared, farthest, rounding }| {
        json!({ "tensor": tensor, "compared": compared, "farthest": farthest, "rounding": rounding })
    });
    json!({
        "schedules": report.checked.schedules.len(),
        "instructions": report.checked.run.counts.total(),
        "outputs": compared.collect::<Vec<_>>(),
    })
}

/// The arguments of a launch: the tensors, then the numbers with their bits.
fn passed(kernel: &Kernel, launch: &Launch) -> Json {
    let program = kernel.program();
    let numbers: Vec<Json> = program
        .scalars
        .iter()
        .zip(&launch.scalars)
        .map(|(scalar, bits)| json!({ "bits": scalar.bits(), "value": bits }))
        .collect();
    let dimension = |own: &Dimension| json!({ "extent": own.extent, "stride": own.stride, "box": own.boxed });
    let map = |own: &BoxMap| {
        let dimensions: Vec<Json> = own.dimensions.iter().map(dimension).collect();
        json!({ "tensor": own.tensor, "dimensions": dimensions, "swizzle_bytes": 16 * own.swizzle.units() })
    };
    let maps: Vec<Json> = launch.maps.iter().map(map).collect();
    json!({
        "grid": launch.grid,
        "threads": program.threads,
        "shared_bytes": program.shared_bytes,
        "bytes": launch.bytes,
        "numbers": numbers,
        "maps": maps,
    })
}

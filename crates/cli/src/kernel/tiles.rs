//! Tile programs by name: listed, shown, written as PTX, checked, costed and timed like the kernels
//! of the library.
//!
//! Law: a name means a kernel of the library; if there is none, a tile program of the library; and
//! otherwise a file. If a kernel and a tile program have the same name, `NAME.tile` means the tile
//! program.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::json;
use tilewright::bench::BenchResult;
use tilewright::gpu::Device;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx::{self, Target};
use tilewright::layout::nearest;
use tilewright::planners;
use tilewright::tile::{Compiled, Entry, GradientOptions, LIBRARY, Program};

use super::bench::object_of;
use super::{Choice, cost, explain, launch, listed, outputs, shown, sizes_text};
use crate::json::Json;
use crate::machine;
use crate::output::{Failure, write_file};
use crate::terminal::Terminal;

/// Sizes by name.
type NamedSizes = Vec<(String, i64)>;

/// A tile program, and the sizes that are its own.
pub(super) struct Tile {
    pub(super) program: Program,
    entry: Option<&'static Entry>,
}

/// The command's name for a tile program of the library.
fn command_name(entry: &Entry) -> String {
    match planners::named(entry.name) {
        Ok(_) => format!("{}.tile", entry.name),
        Err(_) => entry.name.to_owned(),
    }
}

/// The tile program of the library with this name.
fn of_library(name: &str) -> Option<&'static Entry> {
    let stem = name.strip_suffix(".tile").unwrap_or(name);
    LIBRARY.iter().find(|entry| entry.name == stem)
}

impl Tile {
    /// The program in a file, or the program of the library with this name.
    pub(super) fn read(file: &Path) -> Result<Tile, Failure> {
        let name = file.to_string_lossy();
        let found = of_library(&name);
        if let Some(entry) = found.filter(|entry| entry.name == name || !file.exists()) {
            return Ok(Tile { program: Program::read(entry.name, entry.text)?, entry: Some(entry) });
        }
        let text = std::fs::read_to_string(file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let names: Vec<&str> = LIBRARY.iter().map(|entry| entry.name).collect();
                let near = nearest(&name, names.iter().copied(), 1);
                let near = near.first().map_or(String::new(), |near| format!("; did you mean '{near}'?"));
                let known =
                    format!("no such file, and no program of the library, which has {}{near}", names.join(", "));
                Failure::file(file, known)
            }
            ErrorKind::InvalidData => Failure::file(file, "it is no text"),
            _ => Failure::file(file, error),
        })?;
        Ok(Tile { program: Program::read(&name, &text)?, entry: None })
    }

    /// The program that a choice names; None if it names a kernel.
    ///
    /// Errors: the file cannot be read, or is not a program; a type is given, although the text
    /// determines it.
    pub(super) fn chosen(choice: &Choice) -> Result<Option<Tile>, Failure> {
        let name = &choice.name;
        let is_file = Path::new(name).extension().is_some_and(|extension| extension == "tile");
        if planners::named(name).is_ok() || !(is_file || of_library(name).is_some()) {
            return Ok(None);
        }
        if let Some(element) = &choice.element {
            let text = format!("{name} is a tile program, whose text says its types: --type {element} changes nothing");
            return Err(Failure::Value(text));
        }
        Tile::read(Path::new(name)).map(Some)
    }

    pub(super) fn compile(&self, machine: &Machine) -> Result<Compiled, Failure> {
        Ok(self.program.compile(machine)?)
    }

    /// The given sizes, completed by the program's small or large default sizes.
    fn sizes(&self, given: &[(String, i64)], large: bool) -> NamedSizes {
        let entry = self.entry.filter(|_| given.is_empty());
        let own = entry.into_iter().flat_map(|entry| entry.sizes.iter().zip(entry.large));
        let own = own.map(|((name, small), most)| ((*name).to_owned(), if large { *most } else { *small }));
        given.iter().cloned().chain(own).collect()
    }

    fn summary(&self) -> String {
        let entry = self.entry.map(|entry| format!(": {}", entry.summary()));
        format!("{}{}", self.program.name(), entry.unwrap_or_default())
    }
}

fn borrowed(sizes: &NamedSizes) -> Vec<(&str, i64)> {
    sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect()
}

/// All programs of the library.
pub(super) fn list(width: usize, terminal: &mut Terminal) -> Result<(), Failure> {
    for entry in &LIBRARY {
        let name = command_name(entry);
        let program = Program::read(entry.name, entry.text)?;
        let mut types: Vec<&str> = Vec::new();
        for tensor in program.tensors() {
            if !types.contains(&tensor.element.name()) {
                types.push(tensor.element.name());
            }
        }
        let more = |object: &mut Json| {
            crate::json::extend(object, json!({ "arch": Target::Sm80.name(), "launches": 1, "tile": true }));
            Ok(())
        };
        listed((&name, &entry.summary(), "; a tile program"), entry.sizes, &types, width, more, terminal)?;
    }
    Ok(())
}

/// The width of the longest name.
pub(super) fn width() -> usize {
    LIBRARY.iter().map(|entry| command_name(entry).len()).max().unwrap_or(0)
}

/// Prints the compiled program: roles, tensors, and the coverage of its outputs.
pub(super) fn show(tile: &Tile, machine: &Machine, terminal: &mut Terminal) -> Result<(), Failure> {
    let compiled = tile.compile(machine)?;
    let (kernel, explained) = (compiled.kernel(), compiled.explain()?);
    let program = kernel.program();
    let plan = [
        format!("{} warps; estimated {:.0} cycles of a multiprocessor per block", explained.warps, explained.cycles),
        format!("`tilewright kernel explain {}` says which layouts its tiles have, and why", tile.program.name()),
    ];
    if terminal.json {
        let mut object = json!({ "name": tile.program.name(), "plan": plan, "outputs": outputs(kernel.outputs()) });
        crate::json::extend(&mut object, launch(program));
        return Ok(terminal.object(&object)?);
    }
    Ok(terminal.text(&shown(&tile.summary(), &plan, std::iter::once(kernel)))?)
}

/// Prints the gradient of a program, or writes it to files of a directory.
pub(super) fn gradient(
    tile: &Tile,
    options: &GradientOptions,
    output: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let gradient = tile.program.gradient(options)?;
    if let Some(directory) = output {
        for program in gradient.programs() {
            let file = directory.join(format!("{}.tile", program.name()));
            write_file(&file, program.to_string().as_bytes(), terminal)?;
        }
        return Ok(());
    }
    if terminal.json {
        let object = |program: &Program| json!({ "name": program.name(), "text": program.to_string() });
        let programs: Vec<Json> = gradient.programs().iter().map(object).collect();
        return Ok(terminal.object(&json!({ "name": tile.program.name(), "programs": programs }))?);
    }
    Ok(terminal.text(&gradient.to_string())?)
}

/// Runs the kernel in the interpreter, and compares the result with that of the program.
pub(super) fn check(
    tile: &Tile,
    given: &[(String, i64)],
    machine: &Machine,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let compiled = tile.compile(machine)?;
    let sizes = tile.sizes(given, false);
    let report = explain::checked_at(&compiled, &borrowed(&sizes), terminal)?;
    if terminal.json {
        let mut object = json!({ "name": tile.program.name(), "sizes": object_of(&sizes) });
        crate::json::extend(&mut object, explain::checked(&report));
        return Ok(terminal.object(&object)?);
    }
    Ok(terminal.text(&format!("{} {}{}", tile.program.name(), sizes_text(&sizes), explain::findings(&report)))?)
}

/// Prints the cost of a launch on a machine.
pub(super) fn cost(
    tile: &Tile,
    given: &[(String, i64)],
    machine: &Machine,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let compiled = tile.compile(machine)?;
    let program = compiled.kernel().program();
    ptx::write(program, machine.target)?;
    let sizes = tile.sizes(given, true);
    let cost = program.cost(machine, &borrowed(&sizes)).map_err(|error| Failure::refused(&error))?;
    let plan = compiled.explain()?.roles;
    if terminal.json {
        return Ok(terminal.object(&cost::object(tile.program.name(), &plan, &cost))?);
    }
    let plan: String = plan.iter().map(|line| format!("  {line}\n")).collect();
    Ok(terminal.text(&format!("{}\n{plan}\n{cost}", tile.program.name()))?)
}

/// Runs the kernel on a device twice. At small sizes the result is compared with that of the
/// program; other sizes are timed, together with the driver's copy of equally many bytes.
pub(super) fn measured(
    tile: &Tile,
    given: &[(String, i64)],
    machine: Option<Machine>,
    (device, rounds): (&Device, u16),
    terminal: &mut Terminal,
) -> Result<BenchResult, Failure> {
    let small = tile.sizes(&[], false);
    let small = if small.is_empty() { given.to_vec() } else { small };
    let sizes = tile.sizes(given, true);
    let (small, sizes) = (borrowed(&small), borrowed(&sizes));
    let compiled = match machine {
        Some(machine) => tile.program.compile(&machine)?,
        None => machine::of_device(device, terminal)?.tile(&tile.program, &sizes)?,
    };
    Ok(tilewright::bench::tile(device, &compiled, &small, &sizes, rounds)?)
}

//! Tries each instruction on a device with random operands, and compares with
//! `tilewright_sanitize::isa`.
//!
//! ```text
//! cargo run --release -p tilewright-sanitize --example ptx_instructions              # all, at most 9 minutes
//! cargo run --release -p tilewright-sanitize --example ptx_instructions -- wgmma vadd   # those of these names
//! .. -- --ptxas PATH                                                                 # no device: only assemble
//! .. -- --interpreter wgmma                                                          # no device: interpret the kernels
//! ```
//!
//! It needs the CUDA driver and `python3`, which runs the kernels through the driver alone. For
//! each instruction there is a kernel. The table says how many results agree bit by bit; of those
//! that do not, how many are NaN with other bits, the largest distance in last places, and
//! examples. Where the PTX ISA leaves last places open, it says `open`; of sums of tensor cores it
//! says which order and rounding agree better. The command fails if an exact instruction disagrees.

mod lanes;
mod maps;
mod program;
mod warps;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use program::Program;
use tilewright_sanitize::{Argument, Array, Direction, Element, KernelLaunch, MapArray, Options, sanitize};

/// How long all kernels may take.
const LIMIT: Duration = Duration::from_secs(540);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ptxas = arguments.iter().position(|argument| argument == "--ptxas").map(|at| arguments.get(at + 1).cloned());
    let interprets = arguments.iter().any(|argument| argument == "--interpreter");
    let is_option = |at: usize| arguments[at].starts_with("--") || at > 0 && arguments[at - 1] == "--ptxas";
    let names: Vec<&String> = (0..arguments.len()).filter(|at| !is_option(*at)).map(|at| &arguments[at]).collect();
    let mut programs = lanes::programs();
    programs.extend(warps::programs());
    programs.extend(maps::programs());
    programs.retain(|program| names.is_empty() || names.iter().any(|name| program.name.contains(*name)));
    let folder = std::env::temp_dir().join(format!("ptx-instructions-{}", std::process::id()));
    let answer = match ptxas {
        Some(Some(path)) => write(&folder, &programs).and_then(|()| assemble(&folder, &programs, &path)),
        Some(None) => Err("--ptxas takes the path of an assembler".into()),
        None if interprets => {
            write(&folder, &programs).and_then(|()| interpret(&folder, &programs)).map(|()| compare(&folder, &programs))
        }
        None => write(&folder, &programs).and_then(|()| run(&folder)).map(|()| compare(&folder, &programs)),
    };
    let _ = std::fs::remove_dir_all(&folder);
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn file(folder: &Path, number: usize, end: &str) -> PathBuf {
    folder.join(format!("{number}.{end}"))
}

fn write(folder: &Path, programs: &[Program]) -> Result<(), String> {
    let save = |path: PathBuf, bytes: &[u8]| {
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut list = String::new();
    for (number, program) in programs.iter().enumerate() {
        let Program { blocks, threads, input, output_bytes, text, .. } = program;
        list += &format!("{number} {blocks} {threads} {} {output_bytes}\n", input.len());
        save(file(folder, number, "ptx"), text.as_bytes())?;
        save(file(folder, number, "in"), input)?;
        if let Some(map) = &program.map {
            save(file(folder, number, "map"), map.line().as_bytes())?;
        }
    }
    save(folder.join("list"), list.as_bytes())?;
    save(folder.join("run.py"), include_bytes!("run.py"))
}

/// Runs all kernels; an end by force after the limit is no error: what has run is compared.
fn run(folder: &Path) -> Result<(), String> {
    let mut child = Command::new("python3")
        .arg(folder.join("run.py"))
        .arg(folder)
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("python3: {error}"))?;
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("the kernels did not run: {status}")),
            Ok(None) if begin.elapsed() > LIMIT => {
                let _ = child.kill();
                let _ = child.wait();
                eprintln!("ended after {} s", LIMIT.as_secs());
                return Ok(());
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Runs all kernels by the interpreter, which reads their text as it reads that of compilers.
fn interpret(folder: &Path, programs: &[Program]) -> Result<(), String> {
    for (number, program) in programs.iter().enumerate() {
        let array = |name: &str, direction, bytes: Vec<u8>| {
            let shape = vec![bytes.len() as u64];
            Argument::Array(Array { name: name.into(), direction, element: Element::Unsigned(1), shape, bytes })
        };
        let mut launch = KernelLaunch::new("k", [program.blocks as u32, 1, 1], [program.threads as u32, 1, 1])
            .argument(array("x", Direction::In, program.input.clone()))
            .argument(array("y", Direction::Out, vec![0; program.output_bytes]));
        if let Some(map) = &program.map {
            let element = match map.bytes {
                1 => Element::Unsigned(1),
                2 => Element::F16,
                _ => Element::F32,
            };
            let (shape, bytes) = (map.shape.clone(), program.input.clone());
            let array = Array { name: "z".into(), direction: Direction::In, element, shape, bytes };
            launch = launch.argument(Argument::Map { array: MapArray::Own(array), view: map.view.clone() });
        }
        let save = |end: &str, bytes: &[u8]| {
            std::fs::write(file(folder, number, end), bytes).map_err(|error| format!("{}: {error}", folder.display()))
        };
        match sanitize(&program.text, &launch, &Options::default()) {
            Err(refusal) => save("err", refusal.to_string().as_bytes())?,
            Ok(report) if !report.is_clean() => save("err", report.to_string().as_bytes())?,
            Ok(report) => {
                let found = report.results.iter().find(|own| own.argument == 1);
                save("out", found.map_or(&[][..], |own| &own.bytes))?;
            }
        }
    }
    Ok(())
}

fn compare(folder: &Path, programs: &[Program]) -> bool {
    let (mut agree, mut open, mut nan, mut differ, mut failed) = (0, 0, 0, 0, 0);
    for (number, program) in programs.iter().enumerate() {
        let name = &program.name;
        let output = std::fs::read(file(folder, number, "out")).unwrap_or_default();
        if output.len() != program.output_bytes {
            let why = std::fs::read_to_string(file(folder, number, "err")).unwrap_or_else(|_| "did not run".into());
            println!("FAILED  {name}: {}", why.trim());
            failed += 1;
            continue;
        }
        let outcome = (program.check)(&output);
        let rest = outcome.compared - outcome.equal;
        let verdict = match (rest, rest - outcome.nan, program.approximate) {
            (0, _, _) => {
                agree += 1;
                "equal"
            }
            (_, 0, _) => {
                nan += 1;
                "NaN"
            }
            (_, _, true) => {
                open += 1;
                "open"
            }
            _ => {
                differ += 1;
                "DIFFER"
            }
        };
        println!(
            "{verdict:<7} {name}: {} of {} equal, {} other NaN, at most {} last places",
            outcome.equal, outcome.compared, outcome.nan, outcome.distance
        );
        for note in &outcome.notes {
            println!("          {note}");
        }
    }
    println!(
        "{} instructions: {agree} agree bit by bit, {nan} but for the bits of NaN, {open} differ where the ISA is open, \
         {differ} differ, {failed} did not run",
        programs.len()
    );
    differ == 0 && failed == 0
}

/// Assembles all kernels, without a device.
fn assemble(folder: &Path, programs: &[Program], ptxas: &str) -> Result<bool, String> {
    let mut refused = 0;
    for (number, program) in programs.iter().enumerate() {
        let output = Command::new(ptxas)
            .args(["-arch=sm_90a", "-O1", "-o", "/dev/null"])
            .arg(file(folder, number, "ptx"))
            .output()
            .map_err(|error| format!("{ptxas}: {error}"))?;
        if !output.status.success() {
            refused += 1;
            println!("{}: {}", program.name, String::from_utf8_lossy(&output.stderr).trim());
        }
    }
    println!("{} kernels, {refused} refused", programs.len());
    Ok(refused == 0)
}

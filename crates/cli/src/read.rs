//! `tilewright read`: the layouts in a text of another system, and explanations of failed builds.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tilewright::Value;
use tilewright::layout::{Refusal as _, Tree};
use tilewright::mesh::Mesh;
use tilewright::read::{self, Failure as Failed, Item, Meaning, Reading, Refused, System, Unit, Verdict};

use crate::json::{self, Json};
use crate::output::Failure;
use crate::picture::{Paint, painted};
use crate::terminal::Terminal;

pub const EXAMPLES: &str = "\
Examples:
  tilewright read build.log                      every layout of a log; why a build failed
  nvcc .. 2>&1 | tilewright read -               the same of a pipe
  tilewright read dump.mlir --only '%12'         one layout, by its name or line
  tilewright read kernel.log --bits 16           the width of an element that the text leaves open
  tilewright read spec.txt --shape '(8,16)' --mesh dp=2:4,tp=4:1
  tilewright read kernel.log --json

Texts of CuTe are types and source in C++, what `print` writes, CuTe DSL in Python and its IR, and
errors of nvcc, gcc and clang. Texts of Triton, Gluon, TileLang, TIRx, tinygrad, NumPy, PyTorch and
JAX are read as well. The answer is the layout in the language of this command, with what its values
count. Every command that takes an expression takes such a text in its place.";

/// The text to read, and values that it leaves open.
#[derive(Debug, Args)]
pub struct ReadOptions {
    /// A file, or `-` for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only the layouts of this name, or of this line.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The width of an element in bits, where the text does not say it.
    #[arg(long, value_name = "N")]
    bits: Option<i64>,
    /// The shape of the tensor, where the text does not say it.
    #[arg(long)]
    shape: Option<String>,
    /// The mesh of devices, where a sharding does not say it: dp=2:4,tp=4:1 counts as JAX and
    /// PyTorch do.
    #[arg(long)]
    mesh: Option<String>,
    /// The system that wrote the text, where several could have: cute-print, cute-cpp, cute-dsl,
    /// cute-ir, triton, gluon, tilelang, tirx, tinygrad, numpy, torch or jax.
    #[arg(long, value_name = "NAME")]
    system: Option<System>,
    /// Show everything that was found, not only one screen.
    #[arg(long)]
    all: bool,
}

/// The number of layouts and failures that are shown, unless all are requested.
const MOST_SHOWN: usize = 16;

/// The largest text that is read, in bytes.
const MOST_BYTES: u64 = 1 << 30;

pub fn run(options: &ReadOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let source = text(options)?;
    let told = read::Options {
        element_bits: options.bits,
        shape: options.shape.as_deref().map(shape).transpose()?,
        mesh: options.mesh.as_deref().map(mesh).transpose()?,
        system: options.system,
    };
    let failures = read::failures(&source, &told);
    let mut items = read::document(&source, &told).items;
    if let Some(only) = &options.only {
        items.retain(|item| item.name.as_deref() == Some(only) || item.place.line.to_string() == *only);
    }
    let good = items.iter().any(|item| item.answer.is_ok()) || !failures.is_empty();
    if terminal.json {
        terminal.object(&object(&failures, &items))?;
    } else {
        show(options, &failures, &items, terminal)?;
    }
    if good { Ok(()) } else { Err(Failure::No) }
}

/// The text. Bytes that are not UTF-8 are replaced by a character that no layout contains.
fn text(options: &ReadOptions) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    if options.file.as_os_str() == "-" {
        std::io::stdin().lock().take(MOST_BYTES).read_to_end(&mut bytes)?;
    } else {
        let file = std::fs::File::open(&options.file).map_err(|error| Failure::file(&options.file, error))?;
        file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|error| Failure::file(&options.file, error))?;
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

fn shape(text: &str) -> Result<Vec<i64>, Failure> {
    let tree: Tree<i64> =
        text.parse().map_err(|error| Failure::refused_about(format_args!("--shape {text}"), &error))?;
    Ok(tree.leaves().to_vec())
}

fn mesh(text: &str) -> Result<Mesh, Failure> {
    text.parse().map_err(|error| Failure::refused_about(format_args!("--mesh {text}"), &error))
}

/// A layout of the text, with the number of its occurrences.
struct Shown<'a> {
    item: &'a Item,
    times: usize,
}

/// Merges equal names with the same meaning.
fn merged(items: &[Item]) -> Vec<Shown<'_>> {
    let mut shown: Vec<Shown<'_>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for item in items {
        let meaning = match &item.answer {
            Ok(reading) => format!("{reading} {}", reading.unit),
            Err(refused) => refused.to_string(),
        };
        let key = format!("{:?} {:?} {meaning}", item.name, item.system);
        match known.get(&key).and_then(|at| shown.get_mut(*at)) {
            Some(before) => before.times += 1,
            None => {
                known.insert(key, shown.len());
                shown.push(Shown { item, times: 1 });
            }
        }
    }
    shown
}

fn show(options: &ReadOptions, failures: &[Failed], items: &[Item], terminal: &mut Terminal) -> Result<(), Failure> {
    let limit = if options.all { usize::MAX } else { MOST_SHOWN };
    let shown = merged(items);
    if failures.is_empty() && shown.is_empty() {
        let what = options.only.as_ref().map_or(String::new(), |only| format!(" named {only}"));
        return Ok(terminal.text(&format!("there is no layout{what} in the text\n"))?);
    }
    for failure in failures.iter().take(limit) {
        let text = explained(failure, terminal.colour);
        terminal.text(&text)?;
    }
    if failures.len() > limit {
        terminal.text(&format!("… and {} more failures; --all shows them\n", failures.len() - limit))?;
    }
    // The types in compiler messages are those of the failures.
    let limit = if failures.is_empty() || options.all || options.only.is_some() { limit } else { 0 };
    let width = |texts: &mut dyn Iterator<Item = usize>, most: usize| texts.map(|n| n.min(most)).max().unwrap_or(0);
    let head: Vec<&Shown<'_>> = shown.iter().take(limit).collect();
    let line = width(&mut head.iter().map(|shown| shown.item.place.line.to_string().len()), 12);
    let name = width(&mut head.iter().map(|shown| named(shown.item).chars().count()), 24);
    for Shown { item, times } in head {
        let again = if *times > 1 { format!("  ×{times}") } else { String::new() };
        let place = format!("{:>line$}  {:name$}  ", item.place.line, named(item));
        match &item.answer {
            Ok(reading) => {
                // The parts of a block are listed below it.
                let block = matches!(reading.value(), Some(Value::List(_))) && !reading.parts.is_empty();
                let (meaning, more) = match block {
                    true => (reading.what.to_owned(), reading.system.title().to_owned()),
                    false => (reading.to_string(), format!("{}; {}", about(reading), reading.system.title())),
                };
                terminal.text(&format!("{place}{}{again}\n", painted(&meaning, Paint::Strong, terminal.colour)))?;
                let indent = " ".repeat(line + name + 4);
                terminal.text(&format!("{indent}{more}\n"))?;
                for note in &reading.notes {
                    terminal.text(&format!("{indent}note: {note}\n"))?;
                }
                for part in &reading.parts {
                    terminal.text(&format!("{indent}{}: {}\n", part.name, part.value))?;
                }
            }
            Err(refused) => terminal.text(&format!("{place}{}{again}\n", refusal(refused)))?,
        }
    }
    match shown.len().saturating_sub(limit) {
        0 => {}
        more if limit == 0 => {
            let layouts = if more == 1 { "layout" } else { "layouts" };
            terminal.text(&format!("{more} {layouts} in the text; --all lists them, --only NAME one\n"))?;
        }
        more => terminal.text(&format!("… and {more} more layouts; --all lists them, --only NAME one\n"))?,
    }
    Ok(())
}

fn named(item: &Item) -> &str {
    item.name.as_deref().unwrap_or("-")
}

/// A description of a reading and its units.
fn about(reading: &Reading) -> String {
    match reading.unit {
        Unit::None => reading.what.to_owned(),
        unit => format!("{}, {unit}", reading.what),
    }
}

fn refusal(refused: &Refused) -> String {
    let help = refused.help().map_or(String::new(), |help| format!("; {help}"));
    match refused {
        Refused::Question(_) => format!("question: {refused}{help}"),
        Refused::Error(_) => format!("error[{}]: {refused}{help}", refused.code()),
    }
}

/// A failure, explained in a few lines.
fn explained(failure: &Failed, colour: bool) -> String {
    let called = failure.called_at.as_ref().map_or(String::new(), |place| format!(", called at {place}"));
    let head = format!("line {}: {} failed{called}", failure.place.line, failure.operation);
    let mut text = format!("{}\n", painted(&head, Paint::Strong, colour));
    let width = failure.operands.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in &failure.operands {
        text.push_str(&format!("  {name:width$}  {value}\n"));
    }
    text.push_str(&format!("  condition: {}\n", failure.condition));
    match &failure.verdict {
        Verdict::Refused { code, message, witness, help } => {
            text.push_str(&format!("  because: {message} [{code}]\n"));
            if let Some(witness) = witness {
                text.push_str(&format!("  at coordinate: {witness}\n"));
            }
            if let Some(help) = help {
                text.push_str(&format!("  help: {help}\n"));
            }
        }
        Verdict::Exists { value, why } => {
            text.push_str(&format!("  the result exists: {value}\n  because: {why}\n"));
        }
        Verdict::Extents { sides, help } => {
            let side = |(text, extent): &(String, Option<i64>)| match extent {
                Some(extent) => format!("{text} is {extent}"),
                None => format!("the message does not say what {text} is"),
            };
            text.push_str(&format!("  because: {}, {}\n  help: {help}\n", side(&sides[0]), side(&sides[1])));
        }
        Verdict::Unread(why) => text.push_str(&format!("  because: {why}\n")),
        _ => {}
    }
    text
}

fn object(failures: &[Failed], items: &[Item]) -> Json {
    let layouts: Vec<Json> = items.iter().filter_map(|item| item.answer.as_ref().ok()).map(layout).collect();
    let refused = items.iter().filter_map(|item| {
        let refused = item.answer.as_ref().err()?;
        let kind = if matches!(refused, Refused::Question(_)) { "question" } else { "error" };
        Some(json!({
            "line": item.place.line, "column": item.place.column, "name": item.name, "system": item.system.name(),
            "kind": kind, "code": refused.code(), "message": refused.to_string(), "help": refused.help(),
        }))
    });
    json!({
        "failures": failures.iter().map(failed).collect::<Vec<_>>(),
        "layouts": layouts,
        "refused": refused.collect::<Vec<_>>(),
    })
}

fn layout(reading: &Reading) -> Json {
    let bits = match reading.unit {
        Unit::Elements { bits } => bits,
        _ => None,
    };
    let mut object = json!({
        "line": reading.place.line, "column": reading.place.column,
        "start": reading.place.span.start, "end": reading.place.span.end,
        "name": reading.name, "system": reading.system.name(), "what": reading.what,
        "unit": reading.unit.to_string(), "bits": bits, "notes": reading.notes,
    });
    let value = match &reading.meaning {
        Meaning::Value(value) => json::value(value),
        other => {
            json!({ "text": reading.to_string(), "kind": if matches!(other, Meaning::Sharded(_)) { "sharded" } else { "other" } })
        }
    };
    let parts = reading
        .parts
        .iter()
        .map(|part| json!({ "name": part.name, "text": part.value.to_string(), "unit": part.unit.to_string() }));
    json::extend(&mut object, json!({ "value": value, "parts": parts.collect::<Vec<_>>() }));
    object
}

fn failed(failure: &Failed) -> Json {
    let operands = failure.operands.iter().map(|(name, value)| json!({ "name": name, "text": value.to_string() }));
    let mut object = json!({
        "line": failure.place.line, "operation": failure.operation, "condition": failure.condition,
        "called_at": failure.called_at, "operands": operands.collect::<Vec<_>>(),
    });
    json::extend(
        &mut object,
        match &failure.verdict {
            Verdict::Refused { code, message, witness, help } => json!({
                "verdict": "refused", "code": code, "message": message,
                "witness": witness.as_ref().map(ToString::to_string), "help": help,
            }),
            Verdict::Exists { value, why } => {
                json!({ "verdict": "exists", "result": value.to_string(), "message": why })
            }
            Verdict::Extents { sides, help } => json!({
                "verdict": "extents", "help": help,
                "sides": sides.iter().map(|(text, extent)| json!({ "text": text, "extent": extent })).collect::<Vec<_>>(),
            }),
            Verdict::Unread(why) => json!({ "verdict": "unread", "message": why }),
            _ => json!({ "verdict": "other" }),
        },
    );
    object
}

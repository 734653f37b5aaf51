//! A block of a kernel, statement by statement: the current statement, the contents of memory and
//! registers, and the accesses.
//!
//! Law: the block is run from its beginning for each question, so going back means running to an
//! earlier step.

mod memory;

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use tilewright_draw::explain::figures;
use tilewright_draw::{Style, Theme};
use tilewright_kernel::interpret::{AccessKind, Completion, Held, StepEvents, Stepper, Thread};
use tilewright_kernel::program::Source;
use tilewright_kernel::program::operation::{BlockScaled, Matrix, Operation};
use tilewright_kernel::program::wgmma::WgmmaOperands;
use tilewright_layout::atoms::MmaAtom;
use tilewright_planners::Planned;

use crate::failure::Failure;
use crate::request::At;

include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The most steps in the list, and the most registers.
const LISTED: usize = 4000;
const REGISTERS: usize = 512;
/// The most warp instructions that a block may execute here.
const INSTRUCTIONS: u64 = 1 << 24;
/// The number of source lines shown before and after a statement.
const LINES: usize = 9;

/// The steps of a block, and its state after one of them.
///
/// Errors: there is no such block or thread; the interpreter finds a defect.
pub fn of(planned: &Planned, at: &At, theme: Theme) -> Result<Json, Failure> {
    let program = planned.kernel().program();
    let grid = program.launch(planned.sizes())?.grid;
    if at.thread >= program.threads {
        return Err(Failure::choice(format!("there is no thread {}: a block has {}", at.thread, program.threads)));
    }
    let mut interpreter = planned.interpreter()?;
    interpreter.limit(INSTRUCTIONS);
    let completion = if at.early { Completion::Early } else { Completion::Late };
    let mut stepper = interpreter.stepper(at.block, completion)?;
    let mut sources = Sources::default();
    let (mut steps, mut count, mut accesses, mut here, mut found) = (Vec::new(), 0, 0, None, None);
    // Before the first step nothing was executed.
    if at.step == 0 && at.access.is_none() {
        here = Some(after(planned, at, theme, &stepper, (0, &StepEvents::default()))?);
    }
    loop {
        match stepper.step() {
            Ok(Some(step)) => {
                count += 1;
                if steps.len() < LISTED {
                    steps.push(listed(&step, &mut sources));
                }
                let touches = !step.touched.is_empty();
                accesses += usize::from(touches);
                let wanted = at.access.map_or(count == at.step, |access| touches && accesses == access);
                if wanted {
                    here = Some(after(planned, at, theme, &stepper, (count, &step))?);
                }
            }
            Ok(None) => break,
            Err(findings) => {
                let told =
                    findings.iter().map(|finding| json!({ "code": finding.code(), "message": finding.to_string() }));
                found = Some(told.collect::<Vec<_>>());
                break;
            }
        }
    }
    let Some(mut object) = here else {
        return Err(Failure::choice(match at.access {
            Some(access) => format!("there is no access {access}: {accesses} steps of this block touch memory"),
            None => format!("there is no step {}: this block takes {count}", at.step),
        }));
    };
    object["grid"] = json!(grid);
    object["cluster"] = json!(program.cluster_size());
    object["threads"] = json!(program.threads);
    object["launches"] = json!(planned.launches().count());
    object["count"] = json!(count);
    object["steps"] = json!(steps);
    object["statements"] = json!(sources.names);
    object["findings"] = json!(found);
    Ok(object)
}

/// Statements with their numbers, in order of appearance.
#[derive(Default)]
struct Sources {
    numbers: HashMap<Source, usize>,
    names: Vec<Json>,
}

impl Sources {
    fn number(&mut self, source: Source) -> usize {
        *self.numbers.entry(source).or_insert_with(|| {
            self.names.push(json!([source.statement, place(source)]));
            self.names.len() - 1
        })
    }
}

/// The file of the project and the line of a statement.
fn place(source: Source) -> String {
    let file = source.location.file();
    let short = file.find("crates/").and_then(|at| file.get(at..)).unwrap_or(file);
    format!("{short}:{}", source.location.line())
}

/// Ranges of numbers: `0-3, 8`.
pub fn runs(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let one = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A step in the list: for each statement its number, the warps, bytes read and written, wavefronts
/// and the least possible number.
fn listed(step: &StepEvents, sources: &mut Sources) -> Json {
    let bytes = |source: Source, read: bool| {
        let own = step.touched.iter().filter(|touched| touched.source.is_beside(&source));
        own.filter(|touched| (touched.kind == AccessKind::Read) == read).map(|touched| touched.bytes).sum::<u64>()
    };
    let mut lines: Vec<Json> = Vec::new();
    for executed in &step.executed {
        let source = executed.source;
        let (read, written) = (bytes(source, true), bytes(source, false));
        let warps = runs(&executed.warps);
        let waves = (executed.wavefronts, executed.least_wavefronts);
        lines.push(json!([sources.number(source), warps, read, written, waves.0, waves.1]));
    }
    // The work of an asynchronous copy by itself.
    if lines.is_empty()
        && let Some(first) = step.touched.first()
    {
        let (read, written) = (bytes(first.source, true), bytes(first.source, false));
        lines.push(json!([sources.number(first.source), "", read, written, 0, 0]));
    }
    json!(lines)
}

/// The state after the step of this number.
fn after(
    planned: &Planned,
    at: &At,
    theme: Theme,
    stepper: &Stepper<'_>,
    (number, step): (usize, &StepEvents),
) -> Result<Json, Failure> {
    let mut sources: Vec<Source> = step.executed.iter().map(|executed| executed.source).collect();
    if sources.is_empty() {
        sources.extend(step.touched.first().map(|touched| touched.source));
    }
    let held = stepper.registers(Thread { block: at.block, thread: at.thread });
    let mut pictures = memory::tensors(planned, at, theme, stepper, step)?;
    if let Some(name) = held.iter().find_map(|held| instruction(held.operation))
        && let Ok(atom) = MmaAtom::named(&name)
    {
        let figure = figures::instructions::of_mma(&atom, Style::default())?;
        pictures.insert(0, json!({ "name": name, "svg": figure.svg(theme), "what": "instruction" }));
    }
    Ok(json!({
        "step": number,
        "code": sources.iter().take(3).filter_map(|source| excerpt(*source)).collect::<Vec<_>>(),
        "told": memory::lines(planned, step),
        "registers": held.iter().take(REGISTERS).map(register).collect::<Vec<_>>(),
        "written": held.len(),
        "pictures": pictures,
        "requests": memory::requests(planned, step),
        "banks": memory::banks(planned, at, theme, step),
    }))
}

/// The lines around a statement; None if its file is not one of the kernels'.
fn excerpt(source: Source) -> Option<Json> {
    let file = source.location.file();
    let (name, text) = SOURCES.iter().find(|(name, _)| file.ends_with(name))?;
    let line = source.location.line() as usize;
    let first = line.saturating_sub(LINES).max(1);
    let lines: Vec<&str> = text.lines().skip(first - 1).take(line + LINES + 1 - first).collect();
    Some(json!({ "file": name, "statement": source.statement, "first": first, "line": line, "lines": lines }))
}

/// A register: its name, the instruction that wrote it, the type, the value, and whether it may be
/// an element of a tensor and not only an index or address.
fn register(held: &Held<'_>) -> Json {
    let element = held.reading.element();
    let kind = element.map_or_else(|| "bits".to_owned(), |element| element.name().to_owned());
    let kind =
        if held.reading == tilewright_kernel::interpret::Reading::Predicate { "predicate".to_owned() } else { kind };
    let loads = matches!(
        held.operation,
        Operation::Load(_) | Operation::RemoteLoad(_) | Operation::LoadMatrix { .. } | Operation::Atomic(..)
    );
    let data = loads || element.is_some_and(tilewright_kernel::Element::is_float);
    json!([held.register.to_string(), operation(held.operation), kind, held.reading.text(held.bits), data])
}

/// An operation in a few words: `add f32`, `load`, `multiply bf16f32`.
fn operation(operation: &Operation) -> String {
    let text = format!("{operation:?}");
    // The pictures show the rest of an access.
    let short = text.split("(Access").next().unwrap_or(&text).split(" {").next().unwrap_or(&text);
    let inner = short.strip_prefix("Binary(").or_else(|| short.strip_prefix("Unary(")).unwrap_or(short);
    let mut words = String::new();
    let mut small = false;
    for letter in inner.chars() {
        match letter {
            '(' | ')' | ',' | ' ' => {
                if !words.is_empty() && !words.ends_with(' ') {
                    words.push(' ');
                }
                small = false;
            }
            letter => {
                if letter.is_ascii_uppercase() && small {
                    words.push(' ');
                }
                small = letter.is_ascii_lowercase();
                words.push(letter.to_ascii_lowercase());
            }
        }
    }
    words.trim_end().to_owned()
}

/// The instruction name of a product.
fn instruction(operation: &Operation) -> Option<String> {
    if let Operation::Wgmma { operands, columns, a, .. } = operation {
        let types = match operands {
            WgmmaOperands::F16 => "F32F16F16",
            WgmmaOperands::Bf16 => "F32BF16BF16",
            WgmmaOperands::Tf32 => "F32TF32TF32",
            WgmmaOperands::E4M3 => "F32E4M3E4M3",
            WgmmaOperands::E5M2 => "F32E5M2E5M2",
            WgmmaOperands::I8 => "S32S8S8",
            WgmmaOperands::U8 => "S32U8U8",
        };
        let from = if a.is_some() { "SS" } else { "RS" };
        return Some(format!("SM90_64x{columns}x{}_{types}_{from}", operands.depth()));
    }
    let Operation::Multiply(matrix) = operation else { return None };
    let name = match matrix {
        Matrix::F16F32 => "SM80_16x8x16_F32F16F16F32_TN",
        Matrix::F16F16 => "SM80_16x8x16_F16F16F16F16_TN",
        Matrix::Bf16F32 => "SM80_16x8x16_F32BF16BF16F32_TN",
        Matrix::Tf32F32 => "SM80_16x8x8_F32TF32TF32F32_TN",
        Matrix::F64 => "SM80_8x8x4_F64F64F64F64_TN",
        Matrix::F64K4 => "SM90_16x8x4_F64F64F64F64_TN",
        Matrix::F64K8 => "SM90_16x8x8_F64F64F64F64_TN",
        Matrix::F64K16 => "SM90_16x8x16_F64F64F64F64_TN",
        Matrix::I8I32 => "SM80_16x8x32_S32S8S8S32_TN",
        Matrix::U8I32 => "SM80_16x8x32_S32U8U8S32_TN",
        Matrix::S4I32 => "SM80_16x8x64_S32S4S4S32_TN",
        Matrix::U4I32 => "SM80_16x8x64_S32U4U4S32_TN",
        Matrix::E4M3F32 => "SM89_16x8x32_F32E4M3E4M3F32_TN",
        Matrix::E5M2F32 => "SM89_16x8x32_F32E5M2E5M2F32_TN",
        Matrix::Scaled(BlockScaled::Mxf8E4M3, _) => "SM120_16x8x32_TN_VS<E4M3,E4M3,F32,UE8M0,32>",
        Matrix::Scaled(BlockScaled::Mxf8E5M2, _) => "SM120_16x8x32_TN_VS<E5M2,E5M2,F32,UE8M0,32>",
        Matrix::Scaled(BlockScaled::Mxf4, _) => "SM120_16x8x64_TN_VS<E2M1,E2M1,F32,UE8M0,32>",
        Matrix::Scaled(BlockScaled::Nvf4, _) => "SM120_16x8x64_TN_VS<E2M1,E2M1,F32,UE4M3,16>",
    };
    Some(name.to_owned())
}

//! `tilewright write`: a layout in the notation of another system; and `tilewright same`: whether
//! two layouts of any systems are the same function.

use clap::Args;
use serde_json::json;
use tilewright::atoms::MmaAtom;
use tilewright::kernel::{Element, Route};
use tilewright::layout::{Refusal as _, Tree};
use tilewright::read::{self, Meaning, Missing, Question, Refused, System, Unit};
use tilewright::same;

use crate::output::Failure;
use crate::picture::{Paint, painted};
use crate::reader;
use crate::terminal::Terminal;

pub const WRITE_EXAMPLES: &str = "\
Examples:
  tilewright write 'S<3,3,3> o 0 o (64,64):(64,1)' --as cute-cpp
  tilewright write 'S<3,3,3> o 0 o (64,64):(64,1)' --as triton
  tilewright write '((4,8),(2,2)):((32,1),(16,8))' --as gluon --shape '(16,8)'
  tilewright write '(4,8):(8,1)' --as torch

What is written reads back as the same function. A layout that the system cannot say is refused,
with the reason. With --shape, a layout of two modes is one of threads and values of a tile of that
shape.";

pub const SAME_EXAMPLES: &str = "\
Examples:
  tilewright same 'Layout<Shape<_4,_8>,Stride<_8,_1>>' 'S[(4, 8) : (8, 1)]'
  tilewright same 'gl.SwizzledSharedLayout(8, 1, 8, [1, 0])' 'S<3,3,3> o 0 o (8,64):(64,1)' \\
      --shape '(8,64)'

Layouts of threads and values are compared at every thread and value, and others at every
coordinate. If they differ, the first difference is named, and the exit status is 1. If threads
hold the data, the answer says what moves it: renamed registers, shuffles, or shared memory, with
about how many instructions a warp executes. Layouts that count bytes and elements are not
compared.";

/// A layout, and the system that is to say it.
#[derive(Debug, Args)]
pub struct WriteOptions {
    /// An expression, or a text of another system.
    #[arg(allow_hyphen_values = true)]
    layout: String,
    /// The system: cute-cpp, cute-dsl, triton, gluon, tilelang, tirx, torch or jax.
    #[arg(long = "as", value_name = "SYSTEM")]
    system: System,
    /// The shape of the tensor, or of the tile whose elements threads hold.
    #[arg(long)]
    shape: Option<String>,
    /// The width of an element in bits, where the text does not say it.
    #[arg(long, value_name = "N")]
    bits: Option<i64>,
}

/// Two layouts, and what they leave open.
#[derive(Debug, Args)]
pub struct SameOptions {
    /// An expression, or a text of another system.
    #[arg(allow_hyphen_values = true)]
    left: String,
    /// What the first is compared with.
    #[arg(allow_hyphen_values = true)]
    right: String,
    /// The shape of the tensor, or of the tile whose elements threads hold.
    #[arg(long)]
    shape: Option<String>,
    /// The width of an element in bits, 8, 16, 32 or 64, where the texts do not say it. What moves
    /// the data costs that of 32 bits where nothing says it.
    #[arg(long, value_name = "N")]
    bits: Option<i64>,
}

fn shape(text: &str) -> Result<Vec<i64>, Failure> {
    let tree: Tree<i64> =
        text.parse().map_err(|error| Failure::refused_about(format_args!("--shape {text}"), &error))?;
    Ok(tree.leaves().to_vec())
}

/// The meaning of an expression, or of a text of another system, and the unit of its values.
fn meaning(source: &str, options: &read::Options) -> Result<(Meaning, Unit), Failure> {
    if let Some(failure) = instruction(source) {
        return Err(failure);
    }
    let mut environment = reader::environment();
    let error = match tilewright::evaluate(source, &mut environment) {
        Ok(value) => {
            reader::note(&mut environment);
            return Ok((Meaning::Value(value), Unit::None));
        }
        Err(error) => error,
    };
    match read::expression(source, options) {
        Ok(reading) => {
            reading.notes.iter().for_each(|note| reader::say(note.clone()));
            Ok((reading.meaning, reading.unit))
        }
        // A text that no reader recognises is a wrong expression.
        Err(refused) if refused.code() == "E1301" => Err(Failure::of_expression(error, source)),
        Err(refused) => Err(asked(&refused, source)),
    }
}

/// The error for a text that is the name of an instruction, which has a layout for each operand.
fn instruction(source: &str) -> Option<Failure> {
    let name = source.trim();
    let is_name = name.contains('_') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let atom = is_name.then(|| MmaAtom::named(name).ok()).flatten()?;
    let operands: Vec<String> =
        atom.operands().map(|(operand, held)| format!("{operand} is {}", held.layout())).collect();
    let message = format!("{name} is an instruction, and each of its operands has a layout: {}", operands.join(", "));
    Some(Failure::Value(message))
}

/// A refusal, with advice that applies to these commands.
fn asked(refused: &Refused, source: &str) -> Failure {
    let failure = Failure::of_text(refused, source);
    match refused {
        Refused::Question(Question { missing: Missing::System(systems), .. })
            if systems.contains(&System::NumPy) && systems.contains(&System::PyTorch) =>
        {
            failure.with_help(
                "say it in the text: `dtype=float32` beside NumPy's bytes, `stride=` for PyTorch's elements".into(),
            )
        }
        _ => failure,
    }
}

pub fn run_write(options: &WriteOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let shape = options.shape.as_deref().map(shape).transpose()?;
    let told = read::Options { element_bits: options.bits, shape, ..read::Options::default() };
    let (meaning, _) = meaning(&options.layout, &told)?;
    let text = read::write(&meaning, options.system, &told).map_err(|refused| Failure::refused(&refused))?;
    Ok(terminal.text(&format!("{text}\n"))?)
}

pub fn run_same(options: &SameOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let shape = options.shape.as_deref().map(shape).transpose()?;
    let told = read::Options { element_bits: options.bits, shape: shape.clone(), ..read::Options::default() };
    let (left, first) = meaning(&options.left, &told)?;
    let (right, second) = meaning(&options.right, &told)?;
    let note = read::common_unit(first, second).map_err(|refused| Failure::refused(&refused))?;
    note.into_iter().for_each(reader::say);
    let width = |unit: Unit| match unit {
        Unit::Elements { bits } => bits,
        _ => None,
    };
    let element = match options.bits.or(width(first)).or(width(second)) {
        Some(8) => Element::U8,
        Some(16) => Element::F16,
        None | Some(32) => Element::F32,
        Some(64) => Element::F64,
        Some(other) if options.bits.is_some() => {
            return Err(Failure::Usage(format!("--bits is 8, 16, 32 or 64, and not {other}")));
        }
        // The planner of conversions moves whole bytes.
        Some(_) => Element::U8,
    };
    let found = same::same(&left, &right, shape.as_deref(), element).map_err(|refused| Failure::refused(&refused))?;
    found.notes.iter().for_each(|note| reader::say(note.clone()));
    let movement = found.movement.map(|movement| {
        let route = match movement.route {
            Route::Registers => "registers",
            Route::Lanes => "shuffles",
            Route::Shared => "shared memory",
        };
        json!({ "route": route, "instructions": movement.instructions })
    });
    if terminal.json {
        terminal.object(&json!({
            "same": found.difference.is_none(),
            "compared": found.compared,
            "difference": found.difference,
            "movement": movement,
        }))?;
    } else {
        let text = found.to_string();
        let (first, rest) = text.split_once('\n').map_or((text.as_str(), None), |(first, rest)| (first, Some(rest)));
        let paint = if found.difference.is_none() { Paint::Good } else { Paint::Bad };
        let rest = rest.map_or(String::new(), |rest| format!("\n{rest}"));
        terminal.text(&format!("{}{rest}\n", painted(first, paint, terminal.colour)))?;
    }
    if found.difference.is_none() { Ok(()) } else { Err(Failure::No) }
}

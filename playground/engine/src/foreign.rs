//! Texts of other systems instead of a program: types, prints, dumps, messages of compilers.
//!
//! Law: units are never guessed. If a text leaves something open, the reader asks, and a line above
//! the text answers: `# bits: 16`, `# shape: (128,64)`, `# mesh: dp=2:4,tp=4:1`, `# system:
//! triton`.

use tilewright_layout::{Refusal as _, Tree};
use tilewright_read::{Failure as Failed, Meaning, Missing, Options, Reading, Refused, ShardedLayout, Unit, Verdict};
use tilewright_read::{document, expression, failures};

use crate::failure::Failure;

/// The meaning of a text of another system.
#[derive(Debug)]
pub struct Foreign {
    /// What it says.
    pub said: Said,
    /// How the text was read, and what was converted.
    pub notes: Vec<String>,
    /// The width of an element in bits, if the text gives it.
    pub bits: Option<i64>,
}

/// What a text says.
#[derive(Debug)]
pub enum Said {
    /// A value, as a program.
    Program(String),
    /// A tensor that is sharded over devices, which no program has.
    Sharded(Box<ShardedLayout>),
}

/// Reads a text; None if no reader knows it.
///
/// Errors: a question, with the line that answers it; a refusal of the reader; a failed operation
/// in a message of a compiler, which the algebra refuses too.
pub fn read(source: &str) -> Option<Result<Foreign, Failure>> {
    let (options, begins) = match answers(source) {
        Ok(told) => told,
        Err(failure) => return Some(Err(failure)),
    };
    let text = source.get(begins..).unwrap_or("");
    match expression(text, &options) {
        Ok(reading) => Some(of_reading(&reading)),
        Err(refused) if refused.code() == "E1301" => several(text, &options, begins),
        Err(refused) => Some(Err(of_refusal(&refused, begins))),
    }
}

/// The answers in the lines above a text, and the start of the text.
fn answers(source: &str) -> Result<(Options, usize), Failure> {
    let mut options = Options::default();
    let mut begins = 0;
    for line in source.split_inclusive('\n') {
        let Some((name, value)) = line.trim().strip_prefix('#').and_then(|line| line.split_once(':')) else { break };
        let value = value.trim();
        match name.trim() {
            "bits" => {
                let bits = value.parse().ok().filter(|bits| *bits > 0);
                let wrong = || Failure::choice(format!("`# bits: {value}` is no width of an element, such as 16"));
                options.element_bits = Some(bits.ok_or_else(wrong)?);
            }
            "shape" => {
                let shape: Tree<i64> = value.parse().map_err(|error| Failure::refused(&error))?;
                options.shape = Some(shape.leaves().to_vec());
            }
            "mesh" => options.mesh = Some(value.parse().map_err(|error| Failure::refused(&error))?),
            "system" => options.system = Some(value.parse().map_err(Failure::choice)?),
            _ => break,
        }
        begins += line.len();
    }
    Ok((options, begins))
}

fn of_reading(reading: &Reading) -> Result<Foreign, Failure> {
    let said = match &reading.meaning {
        Meaning::Sharded(layout) => Said::Sharded(layout.clone()),
        _ => Said::Program(reading.to_string()),
    };
    let bits = match reading.unit {
        Unit::Elements { bits } => bits,
        _ => None,
    };
    let unit = match reading.unit {
        Unit::None => String::new(),
        unit => format!(", in {unit}"),
    };
    let notes = [
        vec![format!("read as {}{} ({}){unit}", article(reading.what), reading.what, reading.system.title())],
        reading.notes.clone(),
    ];
    Ok(Foreign { said, notes: notes.concat(), bits })
}

/// The article of a noun phrase, with a blank.
fn article(what: &str) -> &'static str {
    if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an " } else { "a " }
}

/// The first layout of a text with several, or the operation that a compiler refused.
fn several(text: &str, options: &Options, begins: usize) -> Option<Result<Foreign, Failure>> {
    if let Some(failed) = failures(text, options).first() {
        return Some(of_failed(failed));
    }
    let found = document(text, options);
    let Some(first) = found.readings().next() else {
        let refused = found.items.iter().find_map(|item| item.answer.as_ref().err());
        return refused.map(|refused| Err(of_refusal(refused, begins)));
    };
    let others = found.readings().filter(|reading| !std::ptr::eq(*reading, first)).map(|reading| {
        let name = reading.name.as_deref().map_or(String::new(), |name| format!(" {name}"));
        format!("also in the text, line {}{name}: {reading}", reading.place.line)
    });
    Some(of_reading(first).map(|mut read| {
        read.notes.extend(others);
        read
    }))
}

/// The refusal of the algebra for an operation that a compiler refused.
fn of_failed(failed: &Failed) -> Result<Foreign, Failure> {
    let operands = failed.operands.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>();
    let place = failed.called_at.as_ref().map_or(String::new(), |place| format!(", called at {place}"));
    let what = format!("{} failed{place}: {}", failed.operation, operands.join(", "));
    match &failed.verdict {
        Verdict::Exists { value, why } => {
            Ok(Foreign { said: Said::Program(value.to_string()), notes: vec![what, why.clone()], bits: None })
        }
        Verdict::Refused { code, message, help, .. } => {
            Err(Failure::told(code, format!("{what}; {message}"), help.clone()))
        }
        Verdict::Extents { sides: [(left, first), (right, second)], help } => {
            let side =
                |text: &str, extent: &Option<i64>| extent.map_or(text.into(), |extent| format!("{text} is {extent}"));
            let (left, right) = (side(left, first), side(right, second));
            Err(Failure::told("E1304", format!("{what}; {left}, and {right}"), Some(help.clone())))
        }
        Verdict::Unread(why) => Err(Failure::choice(format!("{what}; {why}"))),
        _ => Err(Failure::choice(what)),
    }
}

/// A refusal, at its location in the program.
fn of_refusal(refused: &Refused, begins: usize) -> Failure {
    let help = match refused {
        Refused::Question(question) => Some(match &question.missing {
            Missing::Width => "write the width of an element in a line above the text: # bits: 16".to_owned(),
            Missing::Shape => "write the shape in a line above the text: # shape: (128,64)".to_owned(),
            Missing::Mesh => "write the mesh in a line above the text: # mesh: dp=2:4,tp=4:1".to_owned(),
            Missing::System(systems) => {
                let names = systems.iter().map(|system| system.name()).collect::<Vec<_>>().join(", ");
                format!("write the system in a line above the text, `# system:` and one of {names}")
            }
            Missing::Definition(name) => format!("paste the line that defines {name} above it"),
            _ => refused.help().unwrap_or_default(),
        }),
        Refused::Error(_) => refused.help(),
    };
    let failure = Failure::told(refused.code(), refused.to_string(), help);
    match refused.span() {
        Some(span) => failure.at(span.start + begins..span.end + begins),
        None => failure,
    }
}

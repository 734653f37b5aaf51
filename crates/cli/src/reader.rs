//! Evaluates the expressions on the command line to values of the kind that a command needs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tilewright::layout::Refusal as _;
use tilewright::layout::{AnyTree, Coord, Tiler};
use tilewright::notation::{Call, Note, call};
use tilewright::read::{self, Meaning, Options, Refused, Unit};
use tilewright::{Diagnostic, Environment, Layout, LayoutError, Tree, Value};

pub use tilewright::explain::launch::unknown;
pub use tilewright::explain::map::plain;

use crate::output::Failure;

/// Whether this run of the command is strict: it refuses what would otherwise have a note.
static STRICT: AtomicBool = AtomicBool::new(false);

/// The width of the elements, in bits, that a text of another system contains; 0 if none did.
static BITS: AtomicI64 = AtomicI64::new(0);

/// The notes about the input, which the command prints at the end.
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub fn be_strict(strict: bool) {
    STRICT.store(strict, Ordering::Relaxed);
}

/// An environment that keeps notes, or in strict mode refuses.
pub fn environment() -> Environment {
    let mut environment = Environment::new();
    match STRICT.load(Ordering::Relaxed) {
        true => environment.be_strict(),
        false => environment.keep_notes(),
    }
    environment
}

/// Stores the notes of an environment, to be printed at the end.
pub fn note(environment: &mut Environment) {
    keep(environment.take_notes());
}

/// Stores notes, each once, to be printed at the end.
pub fn keep(notes: Vec<Note>) {
    notes.into_iter().for_each(|note| say(note.message));
}

/// Stores a sentence as a note, to be printed at the end.
pub fn say(message: String) {
    if let Ok(mut kept) = NOTES.lock()
        && !kept.contains(&message)
    {
        kept.push(message);
    }
}

/// The stored notes.
pub fn notes() -> Vec<String> {
    NOTES.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default()
}

/// The value of an expression, or of a text of another system.
pub fn evaluate(source: &str, environment: &mut Environment) -> Result<Value, Failure> {
    tilewright::evaluate(source, environment).or_else(|error| match foreign(source, &error)? {
        Some(ours) => tilewright::evaluate(&ours, environment).map_err(|error| Failure::of_expression(error, &ours)),
        None => Err(Failure::of_expression(error, source)),
    })
}

/// As [`evaluate`], with the outermost operation of the expression.
pub fn called(source: &str, environment: &mut Environment) -> Result<Option<Call>, Failure> {
    call(source, environment).or_else(|error| match foreign(source, &error)? {
        Some(ours) => call(&ours, environment).map_err(|error| Failure::of_expression(error, &ours)),
        None => Err(Failure::of_expression(error, source)),
    })
}

/// Error codes about a text that was parsed as an expression: about `?` and coordinates.
const OF_EXPRESSIONS: [&str; 3] = ["E0208", "E0215", "E0217"];

/// The meaning of a text that is not an expression. None if no reader recognises it, or if it is a
/// refused expression.
pub fn foreign(source: &str, error: &Diagnostic) -> Result<Option<String>, Failure> {
    if !error.code.starts_with("E02") || OF_EXPRESSIONS.contains(&error.code) {
        return Ok(None);
    }
    let reading = match read::expression(source, &Options::default()) {
        Ok(reading) => reading,
        // A text that no reader recognises is a wrong expression.
        Err(refused) if refused.code() == "E1301" => return Ok(None),
        Err(refused @ Refused::Question(_)) => {
            let help = refused.help().unwrap_or_default();
            return Err(Failure::refused(&refused).with_help(format!("{help}, as `tilewright read` takes it")));
        }
        Err(refused) => return Err(Failure::of_text(&refused, source)),
    };
    if let Meaning::Sharded(_) = reading.meaning {
        let what = format!("the text is a sharded tensor, {reading}");
        return Err(Failure::Value(format!("{what}; `tilewright mesh` takes it with its mesh")));
    }
    if let Unit::Elements { bits: Some(bits) } = reading.unit {
        BITS.store(bits, Ordering::Relaxed);
    }
    say(format!("read as {} ({}): {reading}", with_article(reading.what), reading.system.title()));
    reading.notes.iter().for_each(|note| say(note.clone()));
    Ok(Some(reading.to_string()))
}

fn with_article(what: &str) -> String {
    let vowel = what.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {what}", if vowel { "an" } else { "a" })
}

/// An error if a width differs from the one in a text of another system.
pub fn check_width(width: i64) -> Result<(), Failure> {
    match BITS.load(Ordering::Relaxed) {
        bits if bits != 0 && bits != width => {
            Err(Failure::Usage(format!("the text says that an element has {bits} bits: give --width {bits}")))
        }
        _ => Ok(()),
    }
}

/// Evaluates expressions in order, each with the names of the earlier ones.
pub struct Reader {
    environment: Environment,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader { environment: environment() }
    }
}

/// An expression, its value, and the call that made it, if there was one.
pub struct Read {
    pub source: String,
    pub value: Value,
    pub call: Option<Call>,
}

impl Reader {
    pub fn value(&mut self, source: &str) -> Result<Value, Failure> {
        let value = evaluate(source, &mut self.environment);
        note(&mut self.environment);
        value
    }

    /// The value of an expression, with its outermost operation.
    pub fn call(&mut self, source: &str) -> Result<Read, Failure> {
        let call = called(source, &mut self.environment);
        note(&mut self.environment);
        let call = call?;
        let value = match &call {
            Some(call) => call.value.clone(),
            None => self.value(source)?,
        };
        Ok(Read { source: source.to_owned(), value, call })
    }

    pub fn shape(&mut self, source: &str) -> Result<Tree<i64>, Failure> {
        match self.value(source)? {
            Value::Int(extent) => Ok(Tree::from(extent)),
            Value::Tree(AnyTree::Integer(shape)) => Ok(shape),
            other => Err(Failure::not(source, &other, "a shape")),
        }
    }

    pub fn layout(&mut self, source: &str) -> Result<Layout, Failure> {
        let value = self.value(source)?;
        plain(&value).ok_or_else(|| Failure::not(source, &value, "a layout of integers"))
    }

    /// A coordinate, which may contain `_`.
    pub fn coordinate(&mut self, source: &str) -> Result<Coord, Failure> {
        source.parse().map_err(|error: LayoutError| Failure::refused_about(format_args!("`{source}`"), &error))
    }

    pub fn tiler(&mut self, source: &str) -> Result<Tiler, Failure> {
        let value = self.value(source)?;
        match value.to_tiler() {
            Some(tiler) => Ok(tiler?),
            None => Err(Failure::not(source, &value, "a tiler")),
        }
    }
}

//! Reads the expressions on the command line as values of the kind that a command needs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright::layout::{AnyTree, Coord, Tiler};
use tilewright::notation::{Call, Note, call};
use tilewright::{Environment, Layout, LayoutError, Tree, Value, evaluate};

pub use tilewright::explain::launch::unknown;
pub use tilewright::explain::map::plain;

use crate::output::Failure;

/// Whether this run of the command refuses what would have a note.
static STRICT: AtomicBool = AtomicBool::new(false);

/// The notes about what was read, which the command tells in the end.
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub fn be_strict(strict: bool) {
    STRICT.store(strict, Ordering::Relaxed);
}

/// An environment that keeps notes, or refuses what has one.
pub fn environment() -> Environment {
    let mut environment = Environment::new();
    match STRICT.load(Ordering::Relaxed) {
        true => environment.be_strict(),
        false => environment.keep_notes(),
    }
    environment
}

/// Keeps the notes of an environment for the end.
pub fn note(environment: &mut Environment) {
    keep(environment.take_notes());
}

/// Keeps notes for the end, each once.
pub fn keep(notes: Vec<Note>) {
    notes.into_iter().for_each(|note| say(note.message));
}

/// Keeps a sentence as a note for the end.
pub fn say(message: String) {
    if let Ok(mut kept) = NOTES.lock()
        && !kept.contains(&message)
    {
        kept.push(message);
    }
}

/// The notes that were kept.
pub fn notes() -> Vec<String> {
    NOTES.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default()
}

/// What evaluates expressions, each with the names of those before it.
pub struct Reader {
    environment: Environment,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader { environment: environment() }
    }
}

/// An expression, its value, and the call that made it if there was one.
pub struct Read {
    pub source: String,
    pub value: Value,
    pub call: Option<Call>,
}

impl Reader {
    pub fn value(&mut self, source: &str) -> Result<Value, Failure> {
        let value = evaluate(source, &mut self.environment).map_err(|error| Failure::of_expression(error, source));
        note(&mut self.environment);
        value
    }

    /// The value of an expression with its outermost operation.
    pub fn call(&mut self, source: &str) -> Result<Read, Failure> {
        let call = call(source, &mut self.environment).map_err(|error| Failure::of_expression(error, source));
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

    /// A coordinate, which may have `_` in it.
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

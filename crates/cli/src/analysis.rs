//! `tilewright banks`, `access`, `suggest` and `footprint`: what layouts cost in memory.
//!
//! What they share: reading a layout and accesses to it, and telling refusals.

pub mod access;
pub mod banks;
pub mod footprint;
mod options;
pub mod suggest;

use std::io::Write;

use tilewright::analysis::{Access, AnalysisError, Storage};
use tilewright::atoms::AtomError;
use tilewright::draw::{DrawError, Touched};
use tilewright::layout::Composed;
use tilewright::{Environment, Layout, Tree, Value, evaluate};

use options::Lanes;

use crate::json::Object;
use crate::picture::Window;
use crate::terminal::{Failure, Terminal};

/// Why there is no answer: it is refused, or the command was not used as it should be.
pub enum Stop {
    Refused { code: &'static str, message: String, help: Option<String> },
    Failed(Failure),
}

impl From<AnalysisError> for Stop {
    fn from(error: AnalysisError) -> Stop {
        Stop::Refused { code: error.code(), message: error.to_string(), help: error.help() }
    }
}

impl From<DrawError> for Stop {
    fn from(error: DrawError) -> Stop {
        Stop::Refused { code: error.code(), message: error.to_string(), help: Some(error.help()) }
    }
}

impl From<AtomError> for Stop {
    fn from(error: AtomError) -> Stop {
        Stop::Refused { code: error.code(), message: error.to_string(), help: error.help() }
    }
}

impl From<tilewright::LayoutError> for Stop {
    fn from(error: tilewright::LayoutError) -> Stop {
        Stop::from(AnalysisError::from(error))
    }
}

impl From<crate::draw::Stop> for Stop {
    fn from(stop: crate::draw::Stop) -> Stop {
        match stop {
            crate::draw::Stop::Refused { code, message, help } => Stop::Refused { code, message, help: Some(help) },
            crate::draw::Stop::Failed(failure) => Stop::Failed(failure),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Failed(Failure::Io(error))
    }
}

fn usage(message: impl Into<String>) -> Stop {
    Stop::Failed(Failure::Usage(message.into()))
}

/// Tells a refusal, as JSON to standard output where that is wanted.
fn told(done: Result<(), Stop>, json: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    match done {
        Ok(()) => Ok(()),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Refused { code, message, help }) if json => {
            let mut error = Object::new();
            error.text("code", code);
            error.text("message", &message);
            match &help {
                Some(help) => error.text("help", help),
                None => error.raw("help", "null"),
            }
            let mut object = Object::new();
            object.raw("error", &error.end());
            writeln!(terminal.out, "{}", object.end())?;
            Err(Failure::Refused)
        }
        Err(Stop::Refused { code, message, help }) => {
            let help = help.map(|help| format!("  help: {help}\n")).unwrap_or_default();
            terminal.message(&format!("error[{code}]: {message}\n{help}"));
            Err(Failure::Refused)
        }
    }
}

/// What evaluates expressions, each with the names of those before it.
struct Reader<'a> {
    environment: Environment,
    terminal: &'a mut Terminal,
}

impl Reader<'_> {
    fn new(terminal: &mut Terminal) -> Reader<'_> {
        Reader { environment: Environment::new(), terminal }
    }

    fn value(&mut self, source: &str) -> Result<Value, Stop> {
        evaluate(source, &mut self.environment).map_err(|error| self.terminal.report(&error, source).into())
    }

    fn storage(&mut self, source: &str) -> Result<Storage, Stop> {
        match self.value(source)? {
            Value::SymbolLayout(layout) => Ok(Storage::at_launch(&layout)?),
            Value::SymbolComposed(map) => Ok(Storage::composed_at_launch(&map)?),
            Value::Composed(map) => Ok(Storage::from(&map)),
            Value::XorLayout(layout) => Ok(Storage::from(&layout)),
            Value::Swizzle(swizzle) => Ok(Storage::from(&swizzle.layout()?)),
            value => plain(&value).map(|layout| Storage::from(&layout)).ok_or_else(|| not(&value, "layout of offsets")),
        }
    }

    /// A tile whose offsets are known.
    fn tile(&mut self, source: &str) -> Result<Composed, Stop> {
        Ok(match self.value(source)? {
            Value::Composed(map) => map,
            Value::Swizzle(swizzle) => swizzle.layout()?,
            Value::XorLayout(layout) => layout.bit_matrix()?.to_composed(&layout.shape())?,
            value => match (plain(&value), value.parameters().first()) {
                (Some(layout), _) => Composed::from(&layout),
                (None, Some(name)) => {
                    return Err(usage(format!(
                        "swizzles and paddings are compared by the banks of every offset, so {name} must be known: substitute(A, {name}, 64)"
                    )));
                }
                (None, None) => return Err(not(&value, "layout of offsets")),
            },
        })
    }

    fn layout(&mut self, source: &str) -> Result<Layout, Stop> {
        let value = self.value(source)?;
        plain(&value).ok_or_else(|| not(&value, "layout"))
    }

    fn shape(&mut self, source: &str) -> Result<Tree<i64>, Stop> {
        match self.value(source)? {
            Value::Int(extent) => Ok(Tree::from(extent)),
            Value::Tree(shape) => Ok(shape),
            value => Err(not(&value, "shape")),
        }
    }

    /// The accesses that are written; if none is, that by which the layout is one of threads and values.
    fn accesses(&mut self, lanes: &Lanes, shape: &Tree<i64>) -> Result<Vec<Access>, Stop> {
        let Lanes { width: bits, vector, access: specs } = lanes;
        let (bits, vector) = (*bits, *vector);
        if specs.is_empty() {
            return Ok(vec![Access::thread_values(shape, bits, vector)?]);
        }
        specs.iter().map(|spec| self.access(spec, shape, bits, vector)).collect()
    }

    fn access(&mut self, spec: &str, shape: &Tree<i64>, bits: i64, vector: i64) -> Result<Access, Stop> {
        let spec = spec.trim();
        let (name, own) = match spec.split_once(':') {
            Some((name, own)) if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.') => {
                match (name.starts_with(|c: char| c.is_ascii_alphabetic()), own.parse()) {
                    (true, Ok(own)) => (name, Some(own)),
                    _ => (spec, None),
                }
            }
            _ => (spec, None),
        };
        let wide = own.unwrap_or(vector);
        let matrices = name.strip_prefix("ldmatrix").or_else(|| name.strip_prefix("stmatrix"));
        let access = match (name, matrices) {
            ("threads", _) => Access::thread_values(shape, bits, wide)?,
            ("rows", _) => Access::rows(shape, bits, wide)?,
            ("columns", _) => Access::columns(shape, bits, wide)?,
            (_, Some(rest)) => {
                let (count, transposed) = match rest.strip_suffix(".trans") {
                    Some(count) => (count, true),
                    None => (rest, false),
                };
                let count = match count {
                    ".x1" | "" => 1,
                    ".x2" => 2,
                    ".x4" => 4,
                    _ => return Err(usage(format!("`{name}` is no instruction: .x1, .x2 and .x4 are, then .trans"))),
                };
                return Ok(Access::matrices(shape, bits, count, transposed)?.named(name));
            }
            _ => Access::new(spec, &self.layout(spec)?, bits, vector)?,
        };
        Ok(if own.is_some() { access.named(spec) } else { access })
    }
}

/// The layout that a value is; a shape is its compact layout.
fn plain(value: &Value) -> Option<Layout> {
    match value {
        Value::Layout(layout) => Some(layout.clone()),
        Value::Tree(shape) => Layout::compact(shape).ok(),
        Value::Int(extent) => Layout::compact(&Tree::from(*extent)).ok(),
        _ => None,
    }
}

fn not(value: &Value, wanted: &str) -> Stop {
    usage(format!("a {} is no {wanted}", value.kind()))
}

/// The fields that say what an access is.
fn access_json(access: &Access) -> String {
    let mut object = Object::new();
    object.text("name", access.name());
    object.text("pattern", &access.pattern().to_string());
    for (name, value) in [
        ("bits", access.bits()),
        ("vector", access.vector()),
        ("bytes", access.bytes()),
        ("lanes", access.lanes()),
        ("threads", access.threads()),
        ("instructions", access.instructions()),
    ] {
        object.raw(name, &value.to_string());
    }
    object.end()
}

/// An access in words: `rows: 512 threads, 16 bytes each`.
fn access_text(access: &Access) -> String {
    let (threads, bytes) = (count(access.threads(), "thread"), count(access.bytes(), "byte"));
    match access.instructions() {
        1 => format!("{}: {threads}, {bytes} each", access.name()),
        times => format!("{}: {threads}, {times} times {bytes} each", access.name()),
    }
}

/// A number and its noun.
fn count(number: i64, noun: &str) -> String {
    let ending = match (number, noun) {
        (1, _) => return format!("1 {noun}"),
        (_, "copy") => return format!("{number} copies"),
        _ => "s",
    };
    format!("{number} {noun}{ending}")
}

/// Lanes in few letters: `0-7,9`.
fn ranges(numbers: &[i64]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let runs = runs.filter_map(|run| match (run.first()?, run.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first}-{last}")),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// The lines that lanes touch, a letter for each word: `0` to `9`, then `a` to `v`, is the lane that comes first.
fn strip(touched: &Touched, window: Window) -> String {
    let lines = &touched.lines;
    let width = lines.iter().map(|line| line.len()).max().unwrap_or(0).max(4);
    let group = touched.group.max(1);
    let mut rows = vec![vec![None; usize::try_from(touched.words).unwrap_or(0)]; lines.len()];
    for touch in touched.touches.iter().rev() {
        let word = usize::try_from(touch.column).unwrap_or(usize::MAX);
        if let Some(place) = rows.get_mut(touch.line).and_then(|row| row.get_mut(word)) {
            *place = u32::try_from(touch.lane).ok();
        }
    }
    let mut text = format!("  {:>width$}  a letter is the lane that takes a word: 0-9, then a-v\n", "byte");
    let last = lines.len().saturating_sub(1);
    let most = window.rows.max(4);
    for (number, (line, row)) in lines.iter().zip(&rows).enumerate() {
        if lines.len() > most && number + 1 == most {
            text.push_str(&format!("  {:>width$}\n", "⋮"));
        }
        if lines.len() > most && number + 1 >= most && number < last {
            continue;
        }
        text.push_str(&format!("  {line:>width$}  "));
        for (word, lane) in row.iter().enumerate() {
            if word > 0 && word as i64 % group == 0 {
                text.push(' ');
            }
            text.push(lane.map_or('·', |lane| char::from_digit(lane, 36).unwrap_or('+')));
        }
        text.push('\n');
    }
    text
}

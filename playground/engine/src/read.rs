//! A program, its value, and the expressions in the fields beside it.
//!
//! Law: the fields see the names that the program binds.

use tilewright_draw::explain::launch::unknown;
use tilewright_draw::explain::map::{self, plain};
use tilewright_layout::atoms::{CopyAtom, MmaAtom};
use tilewright_layout::{AnyTree, Coord, Layout, LayoutError, Tiler, Tree};
use tilewright_notation::{Call, Environment, Value, call, evaluate};
use tilewright_read::ShardedLayout;

use crate::failure::Failure;
use crate::foreign::{Foreign, Said};

/// A reader of texts of another system; None if no reader knows a text.
pub type ReadForeign = fn(&str) -> Option<Result<Foreign, Failure>>;

/// A program that was run.
#[derive(Debug)]
pub struct Read {
    /// Its text.
    pub source: String,
    /// Its value; a shape alone is its compact layout.
    pub shown: Shown,
    /// The width of an element in bits, if a text of another system gives it.
    pub bits: Option<i64>,
    told: Vec<String>,
    environment: Environment,
}

/// The result of a program.
#[derive(Debug)]
pub enum Shown {
    /// A value, and the call that made it if there was one.
    Value(Box<Value>, Option<Box<Call>>),
    /// The name of an instruction that multiplies matrices.
    Product(Box<MmaAtom>),
    /// The name of an instruction that copies.
    Copy(Box<CopyAtom>),
    /// A tensor that is sharded over devices.
    Sharded(Box<ShardedLayout>),
}

impl Read {
    /// Runs a program, or finds the instruction of a name; if it is neither, `foreign` reads it as
    /// a text of another system.
    ///
    /// Errors: those of the program.
    pub fn of(source: &str, foreign: Option<ReadForeign>) -> Result<Read, Failure> {
        let mut environment = Environment::new();
        environment.keep_notes();
        let told = |error| Failure::of_program(&error, source);
        if let Some(atom) = instruction(source) {
            return Ok(Read { source: source.to_owned(), shown: atom, bits: None, told: Vec::new(), environment });
        }
        let call = match call(source, &mut environment) {
            Ok(call) => call,
            Err(error) => match foreign.filter(|_| error.code.starts_with("E02")).and_then(|read| read(source)) {
                Some(found) => {
                    let found = found?;
                    let read = match found.said {
                        Said::Program(program) => Read::of(&program, None).map_err(Failure::without_place)?,
                        Said::Sharded(layout) => {
                            let (source, shown) = (layout.to_string(), Shown::Sharded(layout));
                            Read { source, shown, bits: None, told: Vec::new(), environment }
                        }
                    };
                    return Ok(Read { bits: found.bits, told: found.notes, ..read });
                }
                None => return Err(told(error)),
            },
        };
        let value = match &call {
            Some(call) => call.value.clone(),
            None => evaluate(source, &mut environment).map_err(told)?,
        };
        let shown = Shown::Value(Box::new(value), call.map(Box::new));
        Ok(Read { source: source.to_owned(), shown, bits: None, told: Vec::new(), environment })
    }

    /// The notes of the answers so far, of the program and of the fields, each once: a program that
    /// is no call is evaluated twice.
    pub fn notes(&mut self) -> Vec<String> {
        let mut said: Vec<String> = std::mem::take(&mut self.told);
        for note in self.environment.take_notes() {
            if !said.contains(&note.message) {
                said.push(note.message);
            }
        }
        said
    }

    /// The value of the program.
    ///
    /// Errors: it is the name of an instruction, or a sharded tensor.
    pub fn value(&self) -> Result<&Value, Failure> {
        match &self.shown {
            Shown::Value(value, _) => Ok(value),
            Shown::Sharded(_) => {
                Err(Failure::choice("this takes a layout; a tensor on several devices has a picture of its own"))
            }
            _ => Err(Failure::choice("this takes a layout; an instruction has a picture of its own")),
        }
    }

    /// The values to show side by side: those of a list, or the one.
    ///
    /// Errors: as [`Read::value`].
    pub fn values(&self) -> Result<Vec<Value>, Failure> {
        Ok(match self.value()? {
            Value::List(items) => items.iter().cloned().map(drawable).collect(),
            value => vec![drawable(value.clone())],
        })
    }

    /// The map to draw for a value of the program.
    ///
    /// Errors: it is no layout, or has sizes that are not known yet.
    pub fn map_of(&self, value: &Value) -> Result<map::Map, Failure> {
        let source = match &self.shown {
            Shown::Value(shown, _) if !matches!(**shown, Value::List(_)) => self.source.clone(),
            _ => value.to_string(),
        };
        map::of_operand(value).ok_or_else(|| match unknown(&source, value) {
            Some(advice) => Failure::choice(format!("this is drawn {advice}")),
            None => Failure::not("the picture", value, "a layout"),
        })
    }

    fn field(&mut self, name: &str, source: &str) -> Result<Value, Failure> {
        evaluate(source, &mut self.environment).map_err(|error| Failure::of_field(name, &error))
    }

    /// A shape in a field.
    ///
    /// Errors: the field has no shape.
    pub fn shape(&mut self, name: &str, source: &str) -> Result<Tree<i64>, Failure> {
        match self.field(name, source)? {
            Value::Int(extent) => Ok(Tree::from(extent)),
            Value::Tree(AnyTree::Integer(shape)) => Ok(shape),
            other => Err(Failure::not(name, &other, "a shape")),
        }
    }

    /// A layout in a field.
    ///
    /// Errors: the field has no layout of integers.
    pub fn layout(&mut self, name: &str, source: &str) -> Result<Layout, Failure> {
        let value = self.field(name, source)?;
        plain(&value).ok_or_else(|| Failure::not(name, &value, "a layout of integers"))
    }

    /// A tiler in a field.
    ///
    /// Errors: the field has no tiler.
    pub fn tiler(&mut self, name: &str, source: &str) -> Result<Tiler, Failure> {
        let value = self.field(name, source)?;
        match value.to_tiler() {
            Some(tiler) => Ok(tiler?),
            None => Err(Failure::not(name, &value, "a tiler")),
        }
    }

    /// A coordinate in a field, which may contain `_`.
    ///
    /// Errors: the field has no coordinate.
    pub fn coordinate(&mut self, name: &str, source: &str) -> Result<Coord, Failure> {
        source.parse().map_err(|error: LayoutError| Failure::choice(format!("{name}: {error}")))
    }

    /// Any value in a field.
    ///
    /// Errors: those of the expression.
    pub fn any(&mut self, name: &str, source: &str) -> Result<Value, Failure> {
        self.field(name, source)
    }
}

/// The instruction of a name; None if the text is no name, or no instruction has it.
fn instruction(source: &str) -> Option<Shown> {
    let word = source.trim();
    // Looking up an unknown name is slow, because the nearest names are searched.
    if word.is_empty() || !word.contains('_') || word.contains(|c: char| c.is_whitespace() || "()[];=".contains(c)) {
        return None;
    }
    match MmaAtom::named(word) {
        Ok(atom) => Some(Shown::Product(Box::new(atom))),
        Err(_) => CopyAtom::named(word).ok().map(|atom| Shown::Copy(Box::new(atom))),
    }
}

/// Whether a text is the name of an instruction.
pub fn is_instruction(source: &str) -> bool {
    instruction(source).is_some()
}

/// A shape alone means its compact layout; other values are drawn as they are.
pub fn drawable(value: Value) -> Value {
    match &value {
        Value::Tree(AnyTree::Integer(shape)) => Layout::compact(shape).map_or(value, Value::from),
        _ => value,
    }
}

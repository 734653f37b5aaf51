//! A reading: a value, its unit, its name, its location, and notes.

use std::fmt;
use std::ops::Range;

use tilewright_layout::AnyLayout;
use tilewright_mesh::ShardedLayout;
use tilewright_notation::Value;

use crate::system::System;

/// The meaning of a text that another system wrote.
///
/// ```
/// use tilewright_read::{Options, Unit, expression};
///
/// let text = "sA:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)";
/// let reading = expression(text, &Options::default()).unwrap();
/// assert_eq!(reading.name.as_deref(), Some("sA"));
/// assert_eq!(reading.to_string(), "S<3,3,3> o 0 o (8,64):(64,1)");
/// assert_eq!(reading.unit, Unit::Elements { bits: Some(16) });
/// assert!(reading.notes[0].contains("acts on byte addresses"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The system that wrote the text.
    pub system: System,
    /// The name before it; None if there is none.
    pub name: Option<String>,
    /// Its location.
    pub place: Place,
    /// Its kind, as a noun phrase without an article: "layout", "tiled copy".
    pub what: &'static str,
    /// Its meaning.
    pub meaning: Meaning,
    /// The unit of the layout's values.
    pub unit: Unit,
    /// Notes for the user: conversions, and assumptions of the system that wrote the text. Each is
    /// a clause or a sentence without a full stop.
    pub notes: Vec<String>,
    /// The layouts inside it if it has several, as a tiled copy does.
    pub parts: Vec<Part>,
}

/// The meaning of a text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Meaning {
    /// A value of the expression language: a layout, a swizzle, a linear map with names, a tuple.
    Value(Value),
    /// A tensor that is sharded over the devices of a mesh.
    Sharded(Box<ShardedLayout>),
}

/// The unit of the values of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Elements.
    Elements {
        /// The width of an element, in bits; None if the text lacks it.
        bits: Option<i64>,
    },
    /// Bytes.
    Bytes,
    /// Bits.
    Bits,
    /// Coordinates of a tensor: the strides are steps along its modes.
    Coordinates,
    /// Indices into the tile of an instruction, colexicographic, first mode fastest.
    Indices,
    /// Threads.
    Threads,
    /// The text is not a map to memory: a shape, a tiler, a stride.
    None,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unit::Elements { bits: Some(bits) } => write!(f, "elements of {bits} bits"),
            Unit::Elements { bits: None } => f.write_str("elements"),
            Unit::Bytes => f.write_str("bytes"),
            Unit::Bits => f.write_str("bits"),
            Unit::Coordinates => f.write_str("coordinates"),
            Unit::Indices => f.write_str("indices into a tile"),
            Unit::Threads => f.write_str("threads"),
            Unit::None => f.write_str("no unit"),
        }
    }
}

/// A layout inside a larger text, with its name there.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The name in the text: `LayoutA_TV`.
    pub name: String,
    /// Its meaning.
    pub value: Value,
    /// The unit of its values.
    pub unit: Unit,
}

impl Part {
    /// A part of a larger text.
    pub fn new(name: impl Into<String>, value: Value, unit: Unit) -> Part {
        Part { name: name.into(), value, unit }
    }
}

/// The location of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The bytes of the whole text.
    pub span: Range<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Reading {
    /// A reading without a name and a location, which the scanner of documents adds.
    pub fn new(system: System, what: &'static str, value: impl Into<Value>, unit: Unit) -> Reading {
        Reading::of(system, what, Meaning::Value(value.into()), unit)
    }

    /// As [`Reading::new`], for any meaning.
    pub fn of(system: System, what: &'static str, meaning: Meaning, unit: Unit) -> Reading {
        let (name, place) = (None, Place::default());
        Reading { system, name, place, what, meaning, unit, notes: Vec::new(), parts: Vec::new() }
    }

    /// The reading with one more note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Reading {
        self.notes.push(note.into());
        self
    }

    /// The reading with a name, unless it has one.
    #[must_use]
    pub fn named(mut self, name: Option<String>) -> Reading {
        self.name = self.name.or(name);
        self
    }

    /// The value of the expression language; None for a sharded tensor.
    pub fn value(&self) -> Option<&Value> {
        match &self.meaning {
            Meaning::Value(value) => Some(value),
            Meaning::Sharded(_) => None,
        }
    }

    /// The layout; None if the meaning is not a layout.
    pub fn layout(&self) -> Option<&AnyLayout> {
        match self.value()? {
            Value::Layout(layout) => Some(layout),
            _ => None,
        }
    }
}

/// The meaning in our notation.
impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.meaning {
            Meaning::Value(value) => write!(f, "{value}"),
            Meaning::Sharded(sharded) => write!(f, "{sharded}"),
        }
    }
}

//! Refusals of tile programs.
//!
//! Each knows the statement that was refused and the line it stands on. What is wrong is data; the
//! sentence is made when it is printed.

use std::error::Error;
use std::fmt;

use tilewright_kernel::program::Location;
use tilewright_kernel::{Element, KernelError};
use tilewright_layout::{LayoutError, Refusal};

/// Why a program is refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// E1201: a shape that does not fit.
    Shape {
        /// What has it.
        what: String,
        /// The shape.
        shape: Vec<i64>,
        /// What it should be.
        wanted: String,
    },
    /// E1202: elements of a type that the operation does not have.
    Element {
        /// The operation.
        operation: String,
        /// The type.
        element: Element,
        /// What would do.
        wanted: &'static str,
    },
    /// E1203: something that is not there, or not there any more.
    Unknown {
        /// What it should be: a tensor, a value.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// E1204: a text that is no program.
    Text {
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// E1205: an input that is written, or an output that is read.
    Role {
        /// The tensor.
        tensor: String,
        /// What was tried.
        tried: &'static str,
    },
    /// E1206: a limit is exceeded.
    TooMuch {
        /// Of what.
        what: String,
        /// How many.
        asked: i64,
        /// How many there are.
        limit: i64,
    },
    /// E1207: a turn of a loop hands on other tiles than it began with.
    Turn {
        /// Which of the values, from 0.
        number: usize,
        /// What the turn begins with.
        begins: String,
        /// What it hands on.
        hands_on: String,
    },
    /// E1208: a layout by which no threads hold a tile.
    Held {
        /// The layout.
        layout: String,
        /// Why.
        because: String,
    },
    /// E1209: a size, or the contents of a tensor, that a run needs or cannot take.
    Argument {
        /// What is wrong.
        what: String,
    },
    /// E1210: an element of an output that two tiles are written to.
    WrittenTwice {
        /// The tensor.
        tensor: String,
        /// The element, as an offset.
        offset: i64,
    },
    /// E1211: what a block has suffices for no layouts of the program's values.
    Room {
        /// Of what.
        what: &'static str,
        /// How much the program takes at least.
        asked: i64,
        /// How much there is.
        limit: i64,
        /// How much each value or statement takes, and where it is written, the largest first.
        takers: Vec<Taker>,
    },
    /// E1212: an atom that cannot give a value.
    Atom {
        /// Its name.
        name: String,
        /// Why.
        because: String,
        /// Where it is named.
        place: Location,
    },
    /// The algebra refused.
    Layout(LayoutError),
    /// The kernel language refused what the program became.
    Kernel(Box<KernelError>),
}

/// What takes registers or shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taker {
    /// A value or a statement.
    pub what: String,
    /// Where it is written.
    pub place: Location,
    /// How much it takes.
    pub takes: i64,
}

/// How many of those that take most a message names.
const NAMED: usize = 5;

impl Reason {
    /// The refusal of a statement at a place.
    pub(crate) fn at(self, statement: &'static str, place: Location) -> TileError {
        TileError { statement, place: Some(place), reason: Box::new(self) }
    }
}

impl From<LayoutError> for Reason {
    fn from(error: LayoutError) -> Reason {
        Reason::Layout(error)
    }
}

impl From<KernelError> for Reason {
    fn from(error: KernelError) -> Reason {
        Reason::Kernel(Box::new(error))
    }
}

/// Why a tile program is refused, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct TileError {
    statement: &'static str,
    place: Option<Location>,
    reason: Box<Reason>,
}

impl TileError {
    /// Why.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// Where the statement is written, or where an atom is named; none for what no line says.
    pub fn place(&self) -> Option<Location> {
        match &*self.reason {
            Reason::Atom { place, .. } => Some(*place),
            _ => self.place,
        }
    }
}

impl From<Reason> for TileError {
    fn from(reason: Reason) -> TileError {
        TileError { statement: "program", place: None, reason: Box::new(reason) }
    }
}

impl From<KernelError> for TileError {
    fn from(error: KernelError) -> TileError {
        TileError::from(Reason::from(error))
    }
}

impl From<LayoutError> for TileError {
    fn from(error: LayoutError) -> TileError {
        TileError::from(Reason::from(error))
    }
}

/// `(4,8)`.
pub(crate) fn shape_text(shape: &[i64]) -> String {
    format!("({})", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Shape { what, shape, wanted } => {
                write!(f, "{what} has the shape {}, where {wanted} is wanted", shape_text(shape))
            }
            Reason::Element { operation, element, wanted } => {
                write!(f, "{operation} of elements of {element}, where {wanted} is wanted")
            }
            Reason::Unknown { what, name } => write!(f, "there is no {what} `{name}` here"),
            Reason::Text { found, expected } => write!(f, "{expected} is wanted, and {found} stands here"),
            Reason::Role { tensor, tried } => write!(f, "{tensor} cannot be {tried}"),
            Reason::TooMuch { what, asked, limit } => write!(f, "{asked} {what}, where there are {limit}"),
            Reason::Turn { number, begins, hands_on } => {
                write!(f, "a turn begins with {begins} as value {number}, and hands on {hands_on}")
            }
            Reason::Held { layout, because } => write!(f, "{layout}: {because}"),
            Reason::Argument { what } => f.write_str(what),
            Reason::WrittenTwice { tensor, offset } => {
                write!(f, "the element at offset {offset} of {tensor} is written twice")
            }
            Reason::Room { what, asked, limit, takers } => {
                write!(f, "{asked} {what}, where there are {limit}")?;
                for (number, taker) in takers.iter().take(NAMED).enumerate() {
                    let sign = if number == 0 { ":" } else { "," };
                    write!(f, "{sign} {} at {} takes {}", taker.what, taker.place, taker.takes)?;
                }
                Ok(())
            }
            Reason::Atom { name, because, place } => write!(f, "{name} at {place}: {because}"),
            Reason::Layout(error) => error.fmt(f),
            Reason::Kernel(error) => write!(f, "the kernel that it becomes is refused: {error}"),
        }
    }
}

impl fmt::Display for TileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{} at {place}: {}", self.statement, self.reason),
            None => self.reason.fmt(f),
        }
    }
}

impl Error for TileError {}

impl Refusal for TileError {
    fn code(&self) -> &'static str {
        match &*self.reason {
            Reason::Shape { .. } => "E1201",
            Reason::Element { .. } => "E1202",
            Reason::Unknown { .. } => "E1203",
            Reason::Text { .. } => "E1204",
            Reason::Role { .. } => "E1205",
            Reason::TooMuch { .. } => "E1206",
            Reason::Turn { .. } => "E1207",
            Reason::Held { .. } => "E1208",
            Reason::Argument { .. } => "E1209",
            Reason::WrittenTwice { .. } => "E1210",
            Reason::Room { .. } => "E1211",
            Reason::Atom { .. } => "E1212",
            Reason::Layout(error) => error.code(),
            Reason::Kernel(error) => error.code(),
        }
    }

    fn help(&self) -> Option<String> {
        Some(match &*self.reason {
            Reason::Shape { .. } => {
                "extents of tiles are powers of two, and an extent of 1 stands for all; a larger tile reaches past the \
                 edges of its tensor, and what lies there is left out"
                    .to_string()
            }
            Reason::Element { .. } => "convert it, as in `f32(x)`".to_string(),
            Reason::Unknown { .. } => "a name is known from its statement to the end of the body around it".to_string(),
            Reason::Text { .. } => "the page of the language has a line of each kind".to_string(),
            Reason::Role { .. } => "declare it as `input` to read it, as `output` to write it".to_string(),
            Reason::TooMuch { .. } => "take smaller tiles, or more warps".to_string(),
            Reason::Turn { .. } => {
                "convert, reshape or broadcast before `next`, or begin with another tile".to_string()
            }
            Reason::Held { .. } => {
                "give (threads, values) with extents that are powers of two, each element to one value".to_string()
            }
            Reason::Argument { .. } => {
                "give each size a number, and each input as many elements as its layout reaches".to_string()
            }
            Reason::WrittenTwice { .. } => "let each block write tiles of its own".to_string(),
            Reason::Room { what, .. } if what.starts_with("bytes") => {
                "take smaller tiles; a layout by hand that both sides of a conversion take needs no memory".to_string()
            }
            Reason::Room { .. } => "take smaller tiles, or more warps, as in `warps 8`".to_string(),
            Reason::Atom { .. } => {
                "leave the atom out, and the passes choose one; `tilewright kernel explain` says which".to_string()
            }
            Reason::Layout(error) => return error.help().map(|help| help.to_string()),
            Reason::Kernel(error) => return error.help(),
        })
    }
}

//! Refusals of tile programs.
//!
//! Each error knows the statement that was refused and its line. It holds data; the sentence is
//! made when it is printed.

mod hint;

use std::error::Error;
use std::fmt;

use tilewright_kernel::program::Location;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, KernelError};
use tilewright_layout::{LayoutError, Refusal};

/// Why a program is refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// E1201: a shape that an operation does not accept.
    Shape {
        /// The object.
        what: String,
        /// The shape.
        shape: Vec<i64>,
        /// The expected type or shape.
        wanted: String,
    },
    /// E1201: a broadcast to extents that are not possible for a tile.
    Broadcast {
        /// The shape of the tile.
        from: Vec<i64>,
        /// The shape that is asked for.
        to: Vec<i64>,
    },
    /// E1201: two tiles that an operation cannot combine.
    Operands {
        /// The shape of the first.
        first: Vec<i64>,
        /// The shape of the second.
        second: Vec<i64>,
    },
    /// E1202: an element type that the operation does not support.
    Element {
        /// The operation.
        operation: String,
        /// The type.
        element: Element,
        /// The types that are possible.
        wanted: &'static str,
    },
    /// E1202: a number that a type cannot hold.
    Number {
        /// The number.
        value: f64,
        /// The type.
        element: Element,
    },
    /// E1203: a name that is not defined, or not any more.
    Unknown {
        /// The kind of object: a tensor, a value.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// E1203: a value that the body of a loop defines, used after the loop.
    Gone {
        /// Its name.
        name: String,
        /// Where the loop is written.
        place: Location,
    },
    /// E1203: a size that no tensor declares.
    Size {
        /// Its name.
        name: String,
        /// The sizes that tensors declare.
        known: Vec<String>,
    },
    /// A text that is neither a layout nor an expression of sizes. The code of the error is that of
    /// the reader.
    Expression {
        /// The kind of object.
        what: &'static str,
        /// The text.
        text: String,
        /// The defect.
        error: LayoutError,
    },
    /// E1204: a text that is no program.
    Text {
        /// The text that was found.
        found: String,
        /// The text that was expected.
        expected: String,
    },
    /// E1204: a declaration after a statement.
    Late {
        /// The word that it begins with.
        word: String,
    },
    /// E1205: an input that is written, or an output that is read.
    Role {
        /// The tensor.
        tensor: String,
        /// The attempted operation.
        tried: &'static str,
    },
    /// E1206: a limit is exceeded.
    TooMuch {
        /// The object.
        what: String,
        /// The requested amount.
        asked: i64,
        /// The available amount.
        limit: i64,
    },
    /// E1206: a number of warps that a block cannot have.
    Warps {
        /// How many.
        asked: i64,
    },
    /// E1206: a grid without blocks.
    Blocks {
        /// The number of blocks along an axis, which is 0 or less.
        count: String,
    },
    /// E1206: the number of the block along an axis, if the program sets no grid.
    NoGrid {
        /// The axis.
        axis: Axis,
    },
    /// E1206: a sum of indices that does not fit in 64 bits.
    Index {
        /// The index, without the term that overflows.
        index: String,
    },
    /// E1207: a name that the body of a loop reads and defines again, without carrying it.
    Forgotten {
        /// The name.
        name: String,
        /// Where the loop is written.
        place: Location,
    },
    /// E1207: the body of a loop returns another number of loop-carried values than the loop has.
    Iterations {
        /// The number of loop-carried values.
        begins: usize,
        /// The number of values that the body returns.
        hands_on: usize,
    },
    /// E1207: a loop-carried value whose next value has another type.
    Iteration {
        /// The index of the loop-carried value, from 0.
        number: usize,
        /// The type of its initial value.
        begins: String,
        /// The type of its next value.
        hands_on: String,
    },
    /// E1208: a layout that is no distribution of the tile over threads.
    Held {
        /// The layout.
        layout: String,
        /// Why.
        because: String,
    },
    /// E1209: a size or the contents of a tensor that a run lacks or cannot accept.
    Argument {
        /// The defect.
        what: String,
    },
    /// E1210: an element of an output that is written by two tiles.
    WrittenTwice {
        /// The tensor.
        tensor: String,
        /// The offset of the element.
        offset: i64,
    },
    /// E1210: an element of a tensor that is loaded after it was stored to, or that another block
    /// loads than the one that stores to it.
    Changed {
        /// The tensor.
        tensor: String,
        /// The offset of the element.
        offset: i64,
    },
    /// E1210: a tile of a tensor to which an earlier statement already stores.
    StoredTwice {
        /// The tensor.
        tensor: String,
    },
    /// E1211: a block has too few registers or too little shared memory for every assignment of
    /// layouts.
    Room {
        /// The resource.
        what: &'static str,
        /// The least amount that the program needs.
        asked: i64,
        /// The amount that a block has.
        limit: i64,
        /// The amount that each value or statement needs, with its location; the largest first.
        takers: Vec<Taker>,
    },
    /// E1212: an atom that cannot compute a value.
    Atom {
        /// Its name.
        name: String,
        /// Why.
        because: String,
        /// Where it is named.
        place: Location,
    },
    /// E1213: a gradient that cannot be computed.
    Gradient {
        /// The program, or the tensor with respect to which the gradient is taken.
        of: String,
        /// Why.
        because: String,
    },
    /// E1214: tensors of one name in a sequence whose elements have different types.
    Joined {
        /// The tensor.
        tensor: String,
        /// The types, that of the earlier program first.
        types: [Element; 2],
    },
    /// E1214: tensors of a sequence that the caller does not pass.
    NotGiven {
        /// Each tensor with its type and its layout.
        tensors: Vec<String>,
    },
    /// E1214: a name that no tensor of a sequence has.
    NoTensor {
        /// The name.
        name: String,
        /// The names of the tensors.
        known: Vec<String>,
    },
    /// E1214: a tensor of a sequence that is passed twice.
    GivenTwice {
        /// The tensor.
        tensor: String,
    },
    /// The algebra refused.
    Layout(LayoutError),
    /// The kernel language refused the kernel of the program.
    Kernel(Box<KernelError>),
}

/// A value or statement that needs registers or shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taker {
    /// A value or a statement.
    pub what: String,
    /// Where it is written.
    pub place: Location,
    /// The amount, in the unit of the resource.
    pub takes: i64,
}

/// The largest number of values that a message names; and the amount below which a value is not
/// named.
const NAMED: usize = 5;
const LITTLE: i64 = 16;

impl Reason {
    /// The refusal of a statement at a place.
    pub(crate) fn at(self, statement: &'static str, place: Location) -> TileError {
        TileError { statement, place: Some(place), reason: Box::new(self) }
    }
}

tilewright_layout::from_variants!(Reason: Layout(LayoutError), Kernel(KernelError));

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

    /// The location of the statement, or of a named atom; None if there is no line.
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

/// A shape as text: `(4,8)`.
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
            Reason::Number { value, element } => write!(f, "{value} is no number of {element}"),
            Reason::Broadcast { from, to } => {
                write!(f, "a tile of the shape {} does not broadcast to {}: ", shape_text(from), shape_text(to))?;
                let differs = |(_, (from, to)): &(usize, (&i64, &i64))| from != to && **from != 1;
                match from.iter().zip(to).enumerate().find(differs) {
                    _ if from.len() != to.len() => write!(f, "one has {} modes, the other {}", from.len(), to.len()),
                    Some((mode, (from, _))) => write!(f, "its extent along mode {mode} is {from}, not 1"),
                    None => f.write_str("the result has another shape"),
                }
            }
            Reason::Operands { first, second } => {
                write!(f, "tiles of the shapes {} and {} are not combined: ", shape_text(first), shape_text(second))?;
                let differs = |(_, (a, b)): &(usize, (&i64, &i64))| a != b && **a != 1 && **b != 1;
                match first.iter().zip(second).enumerate().find(differs) {
                    Some((mode, (a, b))) if first.len() == second.len() => {
                        write!(f, "along mode {mode} one has {a} elements, the other {b}")
                    }
                    _ => write!(f, "one has {} modes, the other {}", first.len(), second.len()),
                }
            }
            Reason::Unknown { what: "value", name } => {
                write!(f, "the value `{name}` is not known here")
            }
            Reason::Unknown { what, name } => write!(f, "there is no {what} `{name}` here"),
            Reason::Gone { name, place } => {
                write!(f, "`{name}` is defined in the body of the loop at {place}, and is not known after it")
            }
            Reason::Size { name, known } => {
                write!(f, "the size {name} is in no layout of a tensor; ")?;
                match known.as_slice() {
                    [] => f.write_str("all extents of tensors are known"),
                    known => write!(f, "the sizes are {}", known.join(", ")),
                }
            }
            Reason::Expression { what, text, error } if text.is_empty() => {
                let _ = error;
                write!(f, "{what} is missing here")
            }
            Reason::Expression { what, text, error } => write!(f, "`{text}` is not {what}: {error}"),
            Reason::NoGrid { axis } => {
                write!(f, "block.{axis} is used, and no grid says how many blocks there are")
            }
            Reason::Index { index } => write!(f, "an index does not fit in 64 bits: {index}"),
            Reason::Forgotten { name, place } => write!(
                f,
                "`{name}` is given before the loop at {place}, and again in its body: each iteration would read what it was \
                 before the loop"
            ),
            Reason::Text { found, expected } => write!(f, "expected {expected}, found {found}"),
            Reason::Late { word } => write!(f, "`{word}` follows a statement"),
            Reason::Role { tensor, tried } => write!(f, "{tensor} cannot be {tried}"),
            Reason::TooMuch { what, asked, limit } => write!(f, "{asked} {what}, where there are {limit}"),
            Reason::Warps { asked } => write!(f, "{asked} warps, where a block has 1, 2, 4, 8, 16 or 32"),
            Reason::Blocks { count } => write!(f, "{count} blocks along an axis, where a grid has one at least"),
            Reason::Iterations { begins, hands_on } => {
                write!(f, "an iteration begins with {begins} {}, and hands on {hands_on}", plural(*begins, "value"))
            }
            Reason::Iteration { number, begins, hands_on } => {
                write!(f, "an iteration begins with {begins} as value {number}, and hands on {hands_on}")
            }
            Reason::Held { layout, because } => write!(f, "{layout}: {because}"),
            Reason::Argument { what } => f.write_str(what),
            Reason::WrittenTwice { tensor, offset } => {
                write!(f, "the element at offset {offset} of {tensor} is written twice")
            }
            Reason::Changed { tensor, offset } => {
                write!(
                    f,
                    "the element at offset {offset} of {tensor} is loaded after it was stored to, or by another block \
                     than the one that stores to it"
                )
            }
            Reason::StoredTwice { tensor } => write!(f, "a statement before stores to this tile of {tensor} already"),
            Reason::Room { what, asked, limit, takers } => {
                write!(f, "{asked} {what}, where there are {limit}")?;
                let much = |(number, taker): &(usize, &Taker)| *number == 0 || taker.takes * LITTLE >= *limit;
                for (number, taker) in takers.iter().take(NAMED).enumerate().filter(much) {
                    let sign = if number == 0 { ":" } else { "," };
                    write!(f, "{sign} {} at {} takes {}", taker.what, taker.place, taker.takes)?;
                }
                Ok(())
            }
            Reason::Gradient { of, because } => write!(f, "`{of}` has no gradient: {because}"),
            Reason::Joined { tensor, types: [first, other] } => {
                write!(
                    f,
                    "`{tensor}` has elements of {first} in one program of the sequence, and of {other} in another"
                )
            }
            Reason::NotGiven { tensors } => {
                f.write_str(if tensors.len() == 1 { "a tensor is not given: " } else { "tensors are not given: " })?;
                f.write_str(&tensors.join("; "))
            }
            Reason::NoTensor { name, known } => {
                write!(f, "no program of the sequence has a tensor `{name}`; the tensors are {}", known.join(", "))
            }
            Reason::GivenTwice { tensor } => write!(f, "`{tensor}` is given twice"),
            Reason::Atom { name, because, place } => write!(f, "{name} at {place}: {because}"),
            Reason::Layout(error) => error.fmt(f),
            Reason::Kernel(error) => {
                let source = KernelError::source(error);
                f.write_str("the kernel that it becomes is refused: ")?;
                match source.statement {
                    // The error is about the whole kernel, not about a line of the program.
                    "kernel" => {}
                    statement => {
                        // The statement has the same name in the kernel language and in tile
                        // programs.
                        let own = ["store", "load"].into_iter().find(|own| statement.starts_with(own));
                        write!(f, "{} at {}: ", own.unwrap_or(statement), source.location)?;
                    }
                }
                write!(f, "{}", error.reason())
            }
        }
    }
}

/// `values`, or `value` if `count` is 1.
fn plural(count: usize, what: &str) -> String {
    if count == 1 { what.to_string() } else { format!("{what}s") }
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
            Reason::Element { .. } | Reason::Number { .. } => "E1202",
            Reason::Broadcast { .. } | Reason::Operands { .. } => "E1201",
            Reason::Unknown { .. } | Reason::Gone { .. } | Reason::Size { .. } => "E1203",
            Reason::Expression { error, .. } => error.code(),
            Reason::Text { .. } | Reason::Late { .. } => "E1204",
            Reason::Role { .. } => "E1205",
            Reason::TooMuch { .. } | Reason::Warps { .. } | Reason::Blocks { .. } => "E1206",
            Reason::NoGrid { .. } | Reason::Index { .. } => "E1206",
            Reason::Iteration { .. } | Reason::Iterations { .. } | Reason::Forgotten { .. } => "E1207",
            Reason::Held { .. } => "E1208",
            Reason::Argument { .. } => "E1209",
            Reason::WrittenTwice { .. } | Reason::StoredTwice { .. } | Reason::Changed { .. } => "E1210",
            Reason::Room { .. } => "E1211",
            Reason::Atom { .. } => "E1212",
            Reason::Gradient { .. } => "E1213",
            Reason::Joined { .. } | Reason::NotGiven { .. } => "E1214",
            Reason::NoTensor { .. } | Reason::GivenTwice { .. } => "E1214",
            Reason::Layout(error) => error.code(),
            Reason::Kernel(error) => error.code(),
        }
    }

    fn help(&self) -> Option<String> {
        hint::of(&self.reason)
    }
}

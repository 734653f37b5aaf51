//! Refusals of tile programs.
//!
//! Each error knows the statement that was refused and its line. It holds data; the sentence is
//! made when it is printed.

use std::error::Error;
use std::fmt;

use tilewright_kernel::program::Location;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, KernelError, Reason as KernelReason};
use tilewright_layout::{LayoutError, Refusal, nearest};

/// Why a program is refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// E1201: a shape that does not fit.
    Shape {
        /// The object.
        what: String,
        /// The shape.
        shape: Vec<i64>,
        /// The expected type or shape.
        wanted: String,
    },
    /// E1201: extents that a broadcast does not make of others.
    Broadcast {
        /// The shape of the tile.
        from: Vec<i64>,
        /// The shape that is asked for.
        to: Vec<i64>,
    },
    /// E1201: two tiles that an operation does not combine.
    Operands {
        /// The shape of the first.
        first: Vec<i64>,
        /// The shape of the second.
        second: Vec<i64>,
    },
    /// E1202: elements of a type that the operation does not have.
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
    /// E1203: something that is not there, or not there any more.
    Unknown {
        /// The kind of object: a tensor, a value.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// E1203: a value of the body of a loop, used behind it.
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
    /// A text that is no layout and no expression of sizes; the code is that of the reader.
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
    /// E1204: a declaration behind a statement.
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
        /// How many.
        asked: i64,
        /// How many there are.
        limit: i64,
    },
    /// E1206: a number of warps that no block has.
    Warps {
        /// How many.
        asked: i64,
    },
    /// E1206: a grid without blocks.
    Blocks {
        /// How many there are along an axis, 0 or less.
        count: String,
    },
    /// E1206: a number of a block along an axis, if no grid is set.
    NoGrid {
        /// The axis.
        axis: Axis,
    },
    /// E1206: a sum of indices that does not fit in 64 bits.
    Index {
        /// The index, as far as it fits.
        index: String,
    },
    /// E1207: a name that an iteration reads and gives again, without carrying it.
    Forgotten {
        /// The name.
        name: String,
        /// Where the loop is written.
        place: Location,
    },
    /// E1207: an iteration of a loop hands on more or fewer values than it began with.
    Iterations {
        /// With how many it begins.
        begins: usize,
        /// How many it hands on.
        hands_on: usize,
    },
    /// E1207: an iteration of a loop hands on other tiles than it began with.
    Iteration {
        /// The index of the loop-carried value, from 0.
        number: usize,
        /// The type of its initial value.
        begins: String,
        /// The type of its next value.
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
        /// The defect.
        what: String,
    },
    /// E1210: an element of an output that two tiles are written to.
    WrittenTwice {
        /// The tensor.
        tensor: String,
        /// The element, as an offset.
        offset: i64,
    },
    /// E1210: an element of a tensor that is loaded after it was stored to, or by another block
    /// than the one that stores to it.
    Changed {
        /// The tensor.
        tensor: String,
        /// The element, as an offset.
        offset: i64,
    },
    /// E1210: a tile of a tensor to which a statement before stores already.
    StoredTwice {
        /// The tensor.
        tensor: String,
    },
    /// E1211: what a block has suffices for no layouts of the program's values.
    Room {
        /// The resource.
        what: &'static str,
        /// The least amount that the program needs.
        asked: i64,
        /// How much there is.
        limit: i64,
        /// The amount that each value or statement needs, with its location, the largest first.
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
    /// E1213: a gradient that cannot be made.
    Gradient {
        /// The program, or the tensor by which is derived.
        of: String,
        /// Why.
        because: String,
    },
    /// E1214: tensors of one name in a sequence, with elements of different types.
    Joined {
        /// The tensor.
        tensor: String,
        /// The types, that of the earlier program first.
        types: [Element; 2],
    },
    /// E1214: tensors of a sequence that the caller does not give.
    NotGiven {
        /// Each with its type and its layout.
        tensors: Vec<String>,
    },
    /// E1214: a name that no tensor of a sequence has.
    NoTensor {
        /// The name.
        name: String,
        /// The names of the tensors.
        known: Vec<String>,
    },
    /// E1214: a tensor of a sequence that is given twice.
    GivenTwice {
        /// The tensor.
        tensor: String,
    },
    /// The algebra refused.
    Layout(LayoutError),
    /// The kernel language refused what the program became.
    Kernel(Box<KernelError>),
}

/// A value or statement that needs registers or shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taker {
    /// A value or a statement.
    pub what: String,
    /// Where it is written.
    pub place: Location,
    /// How much it takes.
    pub takes: i64,
}

/// The number of such values that a message names, and a threshold below which they are ignored.
const NAMED: usize = 5;
const LITTLE: i64 = 16;

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
                    // The whole of it: no line of the program.
                    "kernel" => {}
                    statement => {
                        // The kernel language uses this word for a statement of this one.
                        let own = ["store", "load"].into_iter().find(|own| statement.starts_with(own));
                        write!(f, "{} at {}: ", own.unwrap_or(statement), source.location)?;
                    }
                }
                write!(f, "{}", error.reason())
            }
        }
    }
}

/// `values`, or `value` where there is one.
fn plural(count: usize, what: &str) -> String {
    if count == 1 { what.to_string() } else { format!("{what}s") }
}

/// A hint for a refusal of the kernel that a program compiles to, in terms of tile programs if
/// these differ.
fn of_kernel(error: &KernelError) -> Option<String> {
    Some(match error.reason() {
        KernelReason::NeverWritten { .. } => {
            "cover the whole tensor: a block for each tile of it, as in `grid ceil(M/4)`, or a loop over tiles"
                .to_string()
        }
        KernelReason::WrittenTwice { .. } => {
            "let each block store tiles of its own, or combine them, as in `atomic_add` to an `inout`".to_string()
        }
        KernelReason::TooMuch { .. } => "take smaller tiles, or more warps".to_string(),
        _ => return error.help(),
    })
}

/// A hint if an operation does not support elements of a type.
fn of_element(operation: &str) -> &'static str {
    match operation {
        "a tensor" => "declare it with one of these types",
        "a product" => "convert both operands, as in `bf16(x)`, or round those of f32, as in `tf32(x)`",
        "the accumulator of a dot" => "begin with an f32 accumulator, as in `dot(a, b, broadcast(f32(0), (16,16)))`",
        "a number" => "write it as f32, i32, f64 or i64, and convert the tile that is made with it",
        "exp" | "exp2" | "log" | "log2" | "tanh" | "sin" | "cos" | "erf" => {
            "instructions compute it of f32 alone: convert the tile, as in `f64(exp(f32(x)))`, with the precision of f32"
        }
        "a quotient" => "convert both sides, as in `f32(x) / f32(y)`; by a power of two, `shr(x, 3)` divides i32",
        own if own.starts_with("a store") => "convert the tile before it is stored, as in `bf16(x)`",
        _ => "convert it, as in `f32(x)`",
    }
}

/// A hint if a limit is exceeded.
fn of_limit(what: &str) -> &'static str {
    match what {
        "elements of a tile" => "take smaller tiles, and a loop or more blocks for the rest",
        "axes of a grid" => "blocks have numbers along x, y and z alone; join two axes to one, or loop over one",
        "tiles of coordinates" => {
            "one mode of a stage takes a tile of coordinates, the others take indices; a load takes several"
        }
        "levels of nesting" => "give a part of the expression a name of its own",
        "operands" => "`tilewright explain E1204` lists what each function takes",
        own if own.starts_with("modes of") => "merge contiguous modes into one",
        _ => "take smaller tiles, or more warps",
    }
}

/// How a loop hands a value on.
const CARRY: &str = "carry it, as in `loop i < 4 with s = zero { .. next s + a } -> s`";

/// Replacements for function names of other libraries.
const MEANT: [(&[&str], &str); 12] = [
    (&["where"], "select(a < b, yes, no)"),
    (&["sum", "mean", "reduce_mean"], "reduce_sum(a, 1), and for a mean times 1 / the extent"),
    (&["amax", "amin"], "reduce_max(a, 1) or reduce_min(a, 1)"),
    (&["maximum", "minimum"], "max(a, b) or min(a, b)"),
    (&["ln"], "log(a)"),
    (&["pow"], "a * a, or exp2(log2(a) * n) of a positive number"),
    (&["sigmoid"], "recip(1 + exp(-a))"),
    (&["relu"], "max(a, 0)"),
    (&["matmul", "mm"], "dot(a, b, c), which adds to the tile c"),
    (&["zeros", "ones", "full"], "broadcast(f32(0), (4,64))"),
    (&["cumsum", "cumprod"], "scan_sum(a, 1) or scan_product(a, 1)"),
    (&["sort", "topk"], "top(a, 1, 8)"),
];

/// A hint for an unknown name.
fn of_unknown(what: &str, name: &str) -> String {
    match what {
        "type" => "tensors have elements of f32, f16, bf16, e4m3, e5m2, i32, i8 or u8".to_string(),
        "function" => match MEANT.iter().find(|(names, _)| names.contains(&name)) {
            Some((_, meant)) => format!("write {meant}"),
            None => "`tilewright explain E1204` lists the functions".to_string(),
        },
        "axis" => "blocks have the numbers `block.x`, `block.y` and `block.z`".to_string(),
        "iteration of a loop" => {
            "an index is a sum of numbers, `block.x`, `block.y`, `block.z` and the iterations of loops around \
                             it"
            .to_string()
        }
        "tensor" => "tensors are declared before the first statement, as in `input x: f32 (M,64):(64,1)`".to_string(),
        "atom" => "the chapter on tile programs lists those that a program may name".to_string(),
        "value of this program" => "a value belongs to the program in which it was made".to_string(),
        "value" => format!(
            "a name is known from its statement to the end of the body around it; {CARRY}, where it is a value of a loop"
        ),
        _ => "a name is known from its statement to the end of the body around it".to_string(),
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
        Some(match &*self.reason {
            Reason::Shape { .. } => {
                "an extent of 1 stands for all; a tile may reach past the edges of its tensor, and what lies there is \
                 left out"
                    .to_string()
            }
            Reason::Broadcast { .. } => {
                "a broadcast makes other extents of extents of 1 alone; reshape the tile first, as in \
                 `broadcast(reshape(a, (1,64)), (4,64))`"
                    .to_string()
            }
            Reason::Operands { .. } => {
                "the extents of both tiles are equal, or 1 along a mode; load, reshape or transpose one of them"
                    .to_string()
            }
            Reason::Gone { .. } | Reason::Forgotten { .. } => CARRY.to_string(),
            Reason::Size { name, known } => match nearest(name, known.iter().map(String::as_str), 1).first() {
                Some(near) => format!("did you mean {near}?"),
                None => "use a name that stands in the layout of a tensor, as M in `(M,64):(64,1)`".to_string(),
            },
            Reason::Expression { what: "a layout", .. } => {
                "a layout is (shape):(strides), nested alike, as in `(M,64):(64,1)`".to_string()
            }
            Reason::Expression { .. } => {
                "an expression has names of sizes, whole numbers, + - *, parentheses, and `ceil(M/4)` or `floor(M/4)` \
                 for quotients"
                    .to_string()
            }
            Reason::NoGrid { .. } => {
                "say it before the first statement, as in `grid ceil(M/4)`, with one count for each axis".to_string()
            }
            Reason::Index { .. } => "take smaller operands, or let a size of the grid count further".to_string(),
            Reason::Element { operation, .. } => of_element(operation).to_string(),
            Reason::Number { element: Element::I64, value } if value.fract() == 0.0 => {
                "a number is written below 2^53 in magnitude: make a greater one of others, as in `shl(i64(1), 62)`"
                    .to_string()
            }
            Reason::Number { .. } => {
                "integers are whole and have ends; to compute with others convert the tile first, as in \
                 `f32(x) * 0.5`"
                    .to_string()
            }
            Reason::Unknown { what, name } => of_unknown(what, name),
            Reason::Text { .. } => "`tilewright explain E1204` has a line of each kind of statement".to_string(),
            Reason::Late { word } => format!(
                "tensors, `grid` and `warps` are declared before the first statement: move this `{word}` up there"
            ),
            Reason::Role { tried: "declared again", .. } => "give each tensor a name of its own".to_string(),
            Reason::Role { tried, .. } if tried.starts_with("left unwritten") => {
                "store a tile to it, as in `store(y, (block.x, 0), a)`, or leave the tensor out".to_string()
            }
            Reason::Role { .. } => "declare it as `input` to read it, as `output` to write it, as `inout` to change \
                                    what is there"
                .to_string(),
            Reason::TooMuch { what, .. } => of_limit(what).to_string(),
            Reason::Warps { .. } => "say another number, or leave it out: then the plan chooses".to_string(),
            Reason::Blocks { .. } => {
                "say how many tiles there are along the axis, as in `grid ceil(M/4)`, or leave the axis out: then it \
                 has one block"
                    .to_string()
            }
            Reason::Iterations { .. } => {
                "say `next` with a value for each that the loop carries, as in `with s = a { next s + b } -> sum`"
                    .to_string()
            }
            Reason::Iteration { .. } => {
                "convert, reshape or broadcast before `next`, or begin with another tile".to_string()
            }
            Reason::Held { .. } => {
                "give (threads, values) with extents that are powers of two, each element to one value".to_string()
            }
            Reason::Argument { .. } => {
                "give each size a number, and each input as many elements as its layout reaches".to_string()
            }
            Reason::WrittenTwice { .. } => "let each block write tiles of its own".to_string(),
            Reason::Changed { .. } => {
                "load what a block changes before it stores, and nothing of other blocks; or store to another tensor"
                    .to_string()
            }
            Reason::StoredTwice { .. } => {
                "leave one of both out, or combine them, as in `atomic_add` to an `inout`".to_string()
            }
            Reason::Room { what, .. } if what.starts_with("bytes") => {
                "take smaller tiles; a layout set by hand that both sides of a conversion use needs no memory"
                    .to_string()
            }
            Reason::Room { .. } => "take smaller tiles, or more warps, as in `warps 8`".to_string(),
            Reason::Atom { .. } => {
                "leave the atom out, and the passes choose one; `tilewright kernel explain` says which".to_string()
            }
            Reason::Gradient { .. } => {
                "write the derivative as a program of its own, or leave the input out of those by which is derived"
                    .to_string()
            }
            Reason::Joined { .. } => "give one of the two another name, or convert it in a program between".to_string(),
            Reason::NotGiven { .. } => "give each tensor by its name; only workspaces may be left out".to_string(),
            Reason::NoTensor { name, known } => match nearest(name, known, 1).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => "leave it out".to_string(),
            },
            Reason::GivenTwice { .. } => "leave one of both out".to_string(),
            Reason::Layout(error) => return error.help().map(|help| help.to_string()),
            Reason::Kernel(error) => return of_kernel(error),
        })
    }
}

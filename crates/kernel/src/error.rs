//! Errors of building a kernel.
//!
//! Each error has the refused statement and its line. It holds data; the text is made when it is
//! printed.

use std::error::Error;
use std::fmt;

use tilewright_layout::LayoutError;
use tilewright_layout::atoms::AtomError;

use crate::element::Element;
use crate::program::operation::Axis;
use crate::program::{Location, Source};

/// The syntax of expressions of sizes.
const EXPRESSION: &str = "an expression has names of sizes, whole numbers, + - *, parentheses, and `ceil(M/4)` or \
                          `floor(M/4)` for quotients";

/// Why a kernel is refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// E0901: the layout algebra refused an operation.
    Layout(LayoutError),
    /// A text that is no expression of sizes. The code is that of the parser's error.
    Expression {
        /// The kind of expression that is expected.
        what: &'static str,
        /// The text.
        text: String,
        /// The defect.
        error: LayoutError,
    },
    /// E0909: a size that no tensor declares.
    Size {
        /// Its name.
        name: String,
        /// The sizes that tensors declare.
        known: Vec<String>,
    },
    /// E0902: an instruction or a tiled copy or MMA cannot be made.
    Atom(AtomError),
    /// E0903: an element of a tensor may not exist, and the access is not predicated.
    Outside {
        /// The tensor.
        tensor: String,
        /// The coordinate, as an expression.
        coordinate: String,
        /// The mode of the tensor, from 0.
        mode: usize,
        /// The extent that it must be less than.
        extent: String,
    },
    /// E0903: an access may be before the first element of a tensor.
    Before {
        /// The tensor.
        tensor: String,
        /// The coordinate, as an expression.
        coordinate: String,
        /// The mode of the tensor, from 0.
        mode: usize,
    },
    /// E0903: an index of a mode with one element, where any other index would be that element
    /// again.
    Single {
        /// The tensor.
        tensor: String,
        /// The index.
        index: String,
    },
    /// E0903: a tensor that may have elements before its first one.
    Backwards {
        /// Its layout.
        layout: String,
        /// The stride or the offset that may be negative.
        step: String,
    },
    /// E0904: two parts that should have the same number of elements.
    Sizes {
        /// The first object or shape.
        left: String,
        /// Its number of elements.
        left_size: String,
        /// The second object or shape.
        right: String,
        /// Its number of elements.
        right_size: String,
    },
    /// E0905: two objects that should have the same element type.
    Elements {
        /// The required type.
        wanted: Element,
        /// The actual type.
        given: Element,
    },
    /// E0906: an extent or a stride that must be known when the kernel is built.
    Open {
        /// The kind of object.
        what: &'static str,
        /// The layout that contains it.
        layout: String,
    },
    /// E0907: an access of this width is not possible.
    Width {
        /// The tensor.
        tensor: String,
        /// The instruction.
        atom: String,
        /// The number of contiguous elements that the instruction accesses.
        elements: u32,
        /// The condition that does not hold.
        because: String,
    },
    /// E0923: a bulk store whose last chunk of 16 bytes may reach past the innermost extent.
    Chunk {
        /// The tensor.
        tensor: String,
        /// Its innermost extent.
        extent: String,
        /// The number of elements of a chunk.
        unit: i64,
        /// The fact that would prove it, such as `N{div=8}`; None if no fact of one size does.
        fact: Option<String>,
    },
    /// E0908: the grid, the number of threads or a bound is set twice, to different values.
    Twice {
        /// The object.
        what: String,
        /// The first value.
        first: String,
        /// The second value.
        second: String,
    },
    /// E0908: the number of tiles of a view differs from that of another view, or from the number
    /// of blocks of the grid on which an earlier access relies.
    Blocks {
        /// The axis of the grid.
        axis: Axis,
        /// The number of tiles of the view.
        tiles: String,
        /// The number of blocks by another view or by the grid.
        blocks: String,
        /// Whether an access is inside its tensor only with as many blocks as tiles.
        relied: bool,
    },
    /// E0909: a statement that must come first is missing.
    Unsaid {
        /// The object.
        what: &'static str,
        /// The statement that is missing.
        help: &'static str,
    },
    /// E0910: an instruction that is not supported, or not for these operands.
    Instruction {
        /// Its name.
        name: String,
        /// The reason.
        because: String,
    },
    /// E0911: a limit of the hardware or of this library.
    TooMuch {
        /// The resource.
        what: &'static str,
        /// The requested amount.
        asked: u64,
        /// The available amount.
        limit: u64,
    },
    /// E0912: a tensor is used against its role.
    Role {
        /// The tensor.
        tensor: String,
        /// The attempted operation.
        tried: &'static str,
    },
    /// E0913: elements of a fragment without a value.
    Unwritten {
        /// The index of the element.
        element: usize,
    },
    /// E0918: the index of a loop that is closed, or a number computed from it.
    Over {
        /// The index.
        index: String,
    },
    /// E0919: a layout that is no distribution of a tile, or not one that the statement supports.
    Distribution {
        /// The layout.
        layout: String,
        /// The condition that does not hold.
        because: String,
    },
    /// E0914: an operation that this element type does not support.
    Arithmetic {
        /// The operation.
        operation: &'static str,
        /// The type.
        element: Element,
    },
    /// E0915: elements of one statement that have the same place.
    Overlap {
        /// The layout that maps them to the same place.
        layout: String,
        /// Whether the place is a register. If not, it is in memory.
        in_registers: bool,
    },
    /// E0916: an element of an output that may be written by several threads.
    WrittenTwice {
        /// The output.
        tensor: String,
        /// The threads, as text.
        by: String,
    },
    /// E0924: ends of a copy, or operands of an MMA, that do not have the same elements at the same
    /// indices.
    Parts {
        /// A description of the first.
        first: String,
        /// A description of the second.
        second: String,
    },
    /// E0925: an index that a fragment does not have.
    NoElement {
        /// The layout of the fragment.
        layout: String,
        /// The index.
        index: i64,
        /// The number of elements of the fragment, or of its mode.
        count: i64,
    },
    /// E0917: an element of an output that may never be written.
    NeverWritten {
        /// The output.
        tensor: String,
        /// What may not be written, as text.
        what: String,
    },
    /// E0927: a body is still open when an enclosing body or the kernel ends.
    OpenBody,
}

tilewright_layout::from_variants!(Reason: Layout(LayoutError));

impl From<AtomError> for Reason {
    fn from(error: AtomError) -> Reason {
        match error {
            AtomError::Layout(error) => Reason::Layout(error),
            error => Reason::Atom(error),
        }
    }
}

impl KernelError {
    /// Executes a part of a statement. A refusal has the statement's name and the caller's line.
    #[track_caller]
    pub(crate) fn within<T>(
        statement: &'static str,
        does: impl FnOnce() -> Result<T, Reason>,
    ) -> Result<T, KernelError> {
        let location = Location::caller();
        does().map_err(|refusal| refusal.at(statement, location))
    }
}

impl Reason {
    /// The refusal of a statement at a line.
    pub(crate) fn at(self, statement: &'static str, location: Location) -> KernelError {
        KernelError(Box::new((self, Source { statement, location })))
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

/// A refused kernel: the reason, the statement, and its line in the author's text.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelError(Box<(Reason, Source)>);

impl From<LayoutError> for KernelError {
    /// A layout error inside a kernel. Its line is that of the `?`.
    #[track_caller]
    fn from(error: LayoutError) -> KernelError {
        Reason::from(error).at("layout", Location::caller())
    }
}

impl From<AtomError> for KernelError {
    /// An error of an atom or a tiling inside a kernel. Its line is that of the `?`.
    #[track_caller]
    fn from(error: AtomError) -> KernelError {
        Reason::from(error).at("atom", Location::caller())
    }
}

impl KernelError {
    /// The reason.
    pub fn reason(&self) -> &Reason {
        &self.0.0
    }

    /// The statement, and its location.
    pub fn source(&self) -> Source {
        self.0.1
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self.reason() {
            Reason::Layout(_) | Reason::Expression { .. } => "E0901",
            Reason::Atom(_) => "E0902",
            Reason::Outside { .. } | Reason::Before { .. } | Reason::Single { .. } | Reason::Backwards { .. } => {
                "E0903"
            }
            Reason::Sizes { .. } => "E0904",
            Reason::Elements { .. } => "E0905",
            Reason::Open { .. } => "E0906",
            Reason::Width { .. } => "E0907",
            Reason::Chunk { .. } => "E0923",
            Reason::Twice { .. } | Reason::Blocks { .. } => "E0908",
            Reason::Unsaid { .. } | Reason::Size { .. } => "E0909",
            Reason::Instruction { .. } => "E0910",
            Reason::TooMuch { .. } => "E0911",
            Reason::Role { .. } => "E0912",
            Reason::Unwritten { .. } => "E0913",
            Reason::Arithmetic { .. } => "E0914",
            Reason::Overlap { .. } => "E0915",
            Reason::WrittenTwice { .. } => "E0916",
            Reason::NeverWritten { .. } => "E0917",
            Reason::OpenBody => "E0927",
            Reason::Over { .. } => "E0918",
            Reason::Distribution { .. } => "E0919",
            Reason::Parts { .. } => "E0924",
            Reason::NoElement { .. } => "E0925",
        }
    }

    /// A hint on how to fix it.
    pub fn help(&self) -> Option<String> {
        Some(match self.reason() {
            Reason::Layout(error) => return error.help().map(|help| help.to_string()),
            Reason::Atom(error) => return error.help(),
            Reason::Expression { .. } => EXPRESSION.to_string(),
            Reason::Size { name, known } => match tilewright_layout::nearest(name, known.iter().map(String::as_str), 1)
            {
                near if !near.is_empty() => format!("did you mean {}?", near[0]),
                _ => "use a name that stands in the layout of a tensor, as M in `(M,64):(64,1)`".to_string(),
            },
            // A constant has no other divisors.
            Reason::Outside { coordinate, extent, .. } if is_number(coordinate) && is_number(extent) => {
                format!("take an index below {extent}")
            }
            Reason::Outside { extent, .. } if is_number(extent) => {
                format!("cut tiles whose extents divide {extent}, or use the predicated form of the statement")
            }
            Reason::Outside { extent, .. } => {
                format!(
                    "declare a divisor of {extent}, as in `M{{div=64}}`, or use the predicated form of the statement"
                )
            }
            Reason::Before { .. } => {
                "take a coordinate that is never negative, or use the predicated form of the statement".to_string()
            }
            Reason::Single { .. } => {
                "write 0 there, or cut the tensor itself at that index, where its edge is seen".to_string()
            }
            Reason::Backwards { .. } => "reverse the mode where its coordinate is made".to_string(),
            Reason::Sizes { .. } => "cut both by the same tile".to_string(),
            Reason::Elements { wanted, .. } => format!("convert with `.to(Element::{wanted:?})`"),
            Reason::Open { .. } => "cut tiles of known shapes first, with `local_tile`".to_string(),
            Reason::Width { .. } => {
                "declare divisors of the strides and extents, or take a narrower instruction".to_string()
            }
            Reason::Chunk { fact, unit, .. } => {
                let fact = match fact {
                    Some(fact) => format!("declare `{fact}`"),
                    None => format!("declare whole rows of a multiple of {unit} elements"),
                };
                format!("{fact}, or write the last columns with ordinary stores that are predicated")
            }
            Reason::Twice { .. } => "one kernel has one grid and one number of threads".to_string(),
            Reason::Blocks { axis, relied: false, .. } => {
                format!(
                    "say how many blocks there are before the first view is cut at the block: `grid` for axis {axis}"
                )
            }
            Reason::Blocks { relied: true, .. } => {
                "say the grid before the first view is cut at the block, and predicate the accesses that it does not \
                 show to be inside"
                    .to_string()
            }
            Reason::Unsaid { help, .. } => (*help).to_string(),
            Reason::Instruction { .. } => "`Matrix` and the pages of `copy` list what kernels have".to_string(),
            Reason::TooMuch { .. } => "take smaller tiles or fewer stages".to_string(),
            Reason::Role { .. } => "declare it as an input, an output, or with `tensor` as both".to_string(),
            Reason::Unwritten { .. } => "fill the fragment, or load it, first".to_string(),
            Reason::Overlap { in_registers: true, .. } => {
                "take a fragment with a register for each element".to_string()
            }
            Reason::Overlap { .. } => "cut the tensor so that each element is there once".to_string(),
            Reason::WrittenTwice { .. } => {
                "let one thread write it, under a condition or at its own coordinate; or declare the tensor as both"
                    .to_string()
            }
            Reason::OpenBody => {
                "close the guards of bodies innermost first".to_string()
            }
            Reason::NeverWritten { .. } => {
                "cover the whole tensor: a block for each tile, or a loop over the remaining tiles".to_string()
            }
            Reason::Over { .. } => "use it in the body of the loop".to_string(),
            Reason::Arithmetic { .. } => "convert to a type that has it, as `f32`".to_string(),
            Reason::Parts { .. } => {
                "partition both ends by the same tiled instruction at the same thread, or neither; retile a fragment for another one"
                    .to_string()
            }
            Reason::NoElement { count, .. } => format!("take an index from 0 to {}", count - 1),
            Reason::Distribution { .. } => {
                "give each element of the tile to one thread and value, and copies by modes of stride 0".to_string()
            }
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Layout(error) => error.fmt(f),
            Reason::Atom(error) => error.fmt(f),
            Reason::Expression { what, text, error } => write!(f, "`{text}` is not {what}: {error}"),
            Reason::Size { name, known } if known.is_empty() => {
                write!(f, "the size {name} is in no layout of a tensor; all extents of tensors are known")
            }
            Reason::Size { name, known } => {
                write!(f, "the size {name} is in no layout of a tensor; the sizes are {}", known.join(", "))
            }
            Reason::Outside { tensor, coordinate, mode, extent } if is_number(coordinate) && is_number(extent) => {
                write!(f, "mode {mode} of {tensor} has {extent} indices from 0 on, and {coordinate} is none of them")
            }
            Reason::Outside { tensor, coordinate, mode, extent } => {
                write!(
                    f,
                    "mode {mode} of {tensor} is reached at {coordinate}, which is not shown to be less than {extent}"
                )
            }
            Reason::Before { tensor, coordinate, mode } => {
                write!(f, "mode {mode} of {tensor} is reached at {coordinate}, which is not shown to be 0 or more")
            }
            Reason::Single { tensor, index } => {
                write!(f, "a mode of this part of {tensor} has one element, and the index {index} is not shown to be 0")
            }
            Reason::Backwards { layout, step } => {
                write!(f, "{layout} begins at its first element, and {step} may lead back before it")
            }
            Reason::Sizes { left, left_size, right, right_size } => {
                write!(f, "{left} has {left_size} elements, {right} has {right_size}")
            }
            Reason::Elements { wanted, given } => write!(f, "elements of type {given} where {wanted} is wanted"),
            Reason::Open { what, layout } => write!(f, "{what} of {layout} must be known when the kernel is built"),
            Reason::Width { tensor, atom, elements, because } => {
                write!(f, "{atom} takes {elements} elements of {tensor} side by side, but {because}")
            }
            Reason::Chunk { tensor, extent, unit, .. } => {
                write!(
                    f,
                    "a bulk store to {tensor} writes whole chunks of 16 bytes, {unit} elements, and its innermost "
                )?;
                write!(
                    f,
                    "extent {extent} is not shown to be a multiple of {unit}: it would overwrite the memory after it"
                )
            }
            Reason::Twice { what, first, second } => write!(f, "{what} is {first} here and {second} there"),
            Reason::Blocks { axis, tiles, blocks, relied: false } => {
                write!(f, "this view asks for {tiles} blocks along {axis}, and one before asks for {blocks}")
            }
            Reason::Blocks { axis, tiles, blocks, relied: true } => {
                write!(
                    f,
                    "with {blocks} blocks along {axis} an access before may leave its tensor: it relies on the {tiles} \
                     blocks that its view asks for"
                )
            }
            Reason::Unsaid { what, .. } => write!(f, "{what} is not known yet"),
            Reason::Instruction { name, because } => write!(f, "{name}: {because}"),
            Reason::TooMuch { what, asked, limit } => write!(f, "{asked} {what}, where there are {limit}"),
            Reason::Role { tensor, tried } => write!(f, "{tensor} cannot be {tried}"),
            Reason::Unwritten { element } => write!(f, "element {element} of the fragment has no value yet"),
            Reason::Over { index } => write!(f, "{index} is used after the loop whose index it is"),
            Reason::Parts { first, second } => write!(f, "{first}, and {second}"),
            Reason::NoElement { layout, index, count } => {
                write!(f, "index {index} of the fragment {layout}, where there are {count} elements")
            }
            Reason::Distribution { layout, because } => write!(f, "{layout}: {because}"),
            Reason::Arithmetic { operation, element } => write!(f, "numbers of type {element} have no {operation}"),
            Reason::Overlap { layout, in_registers: true } => {
                write!(f, "two elements of {layout} share a register, and one may exist without the other")
            }
            Reason::Overlap { layout, .. } => write!(f, "two elements of {layout} have the same offset"),
            Reason::WrittenTwice { tensor, by } => write!(f, "elements of the output {tensor} may be written by {by}"),
            Reason::OpenBody => f.write_str("a body within it is still open"),
            Reason::NeverWritten { tensor, what } => {
                write!(f, "elements of the output {tensor} are not written: {what}")
            }
        }
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source();
        write!(f, "{source}: {}", self.reason())
    }
}

impl Error for KernelError {}

impl tilewright_layout::Refusal for KernelError {
    fn code(&self) -> &'static str {
        KernelError::code(self)
    }

    fn help(&self) -> Option<String> {
        KernelError::help(self)
    }
}

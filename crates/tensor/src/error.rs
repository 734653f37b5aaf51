//! The errors of this crate.
//!
//! As in the algebra, errors are data with a stable [code](TensorError::code); the sentence is made
//! when one is printed.

use std::fmt;

use tilewright_layout::atoms::AtomError;
use tilewright_layout::{Coord, LayoutError, Tree};

/// Why a tensor, a view or an element does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorError {
    /// E0401: a layout with offsets outside the memory.
    Outside {
        /// The least offset.
        least: i64,
        /// The greatest offset.
        greatest: i64,
        /// The position of the element at offset 0.
        origin: usize,
        /// The number of elements in memory.
        elements: usize,
    },
    /// E0402: a layout that reaches an element twice, where every element must be reached once.
    Shared {
        /// Two indices, the smaller one first, and their common offset; None if the search for such
        /// a pair reached its limit.
        pair: Option<(i64, i64, i64)>,
        /// The layout.
        layout: Box<str>,
    },
    /// E0403: a coordinate outside the shape.
    Coordinate {
        /// The coordinate; an open mode `_` stands for the whole mode.
        coord: Box<Coord>,
        /// The shape.
        shape: Box<Tree<i64>>,
    },
    /// E0404: more elements than fit into memory.
    Memory {
        /// The number of elements.
        elements: i64,
        /// The size of each in bytes.
        bytes: usize,
    },
    /// E0405: a tile with coordinates outside the mode that it tiles.
    Tile {
        /// The tile, as a layout of indices.
        tile: Box<str>,
        /// The path of the mode, outermost index first; empty for the whole tensor.
        path: Vec<usize>,
        /// The smallest and the largest index in the tile.
        range: (i64, i64),
        /// The number of indices of the mode.
        extent: i64,
    },
    /// E0406: tiles that cover more than the mode that they tile.
    Ragged {
        /// The tile, as a layout of indices.
        tile: Box<str>,
        /// The path of the mode, outermost index first; empty for the whole tensor.
        path: Vec<usize>,
        /// The number of indices of the mode.
        extent: i64,
        /// The number of indices that the tiles cover.
        covered: i64,
    },
    /// E0407: a thread number that the thread layout does not have.
    Thread {
        /// The number of the thread.
        thread: i64,
        /// The thread layout.
        threads: Box<str>,
    },
    /// E0408: tensors of different shapes for an operation that needs equal shapes.
    Shapes {
        /// The shape of the first.
        first: Box<Tree<i64>>,
        /// The shape of another.
        second: Box<Tree<i64>>,
    },
    /// E0409: elements that are not aligned for a type.
    Alignment {
        /// The address of the element at offset 0.
        address: usize,
        /// The alignment in bytes.
        wanted: usize,
    },
    /// E0413: a thread layout that is not one to one onto the threads `0, 1, ..`.
    ThreadLayout {
        /// Two indices, the smaller one first, and their common thread; None if the thread numbers
        /// have gaps or do not begin at 0.
        pair: Option<(i64, i64, i64)>,
        /// The thread layout.
        threads: Box<str>,
    },
    /// E0414: a layout whose values are not offsets.
    NoOffsets {
        /// The layout.
        layout: Box<str>,
        /// Its kind, in words.
        kind: &'static str,
    },
    /// E0420: operands of different sizes in an elementwise operation.
    Sizes {
        /// The size of the first.
        first: i64,
        /// The size of the other.
        second: i64,
    },
    /// E0421: a plan that was built for other layouts.
    Plan {
        /// What differs, in words.
        what: &'static str,
    },
    /// E0422: a mode of a reduction that does not exist, or that does not match its result.
    Reduction {
        /// The mode of the source.
        mode: usize,
        /// Its size; None if there is no such mode.
        size: Option<i64>,
        /// The size of the mode of the result that corresponds to it; None if there is none.
        found: Option<i64>,
    },
    /// E0423: a copy of one thread's partition with an instruction that moves values between
    /// threads.
    Exchange {
        /// The name of the atom.
        atom: Box<str>,
    },
    /// E0424: elements of another type or width than the values of an instruction.
    Values {
        /// The name of the operand, or that it is a copy.
        what: &'static str,
        /// The name of the atom.
        atom: Box<str>,
        /// The type and width of values that the atom takes, in words.
        expected: Box<str>,
        /// The type and width of the elements found.
        found: Box<str>,
    },
    /// E0425: partitions that are not those of the instruction's threads.
    Partition {
        /// What is partitioned.
        what: Box<str>,
        /// What is expected, in words.
        expected: Box<str>,
        /// What was found.
        found: Box<str>,
    },
    /// An error of the atom.
    Atom(Box<AtomError>),
    /// E0440: an atom without a micro-kernel for the types of a GEMM.
    NoKernel {
        /// The name of the atom.
        atom: Box<str>,
        /// The names of the atoms that have one.
        known: Vec<&'static str>,
    },
    /// E0441: an atom whose instructions this machine does not have.
    Instructions {
        /// The name of the atom.
        atom: &'static str,
    },
    /// E0442: a tiled MMA that splits K among threads.
    ThreadsAlongK {
        /// The atom layout.
        atoms: Box<str>,
    },
    /// E0443: an operand of a GEMM that is not a matrix.
    NoMatrix {
        /// A, B or C.
        operand: char,
        /// Its layout.
        layout: Box<str>,
    },
    /// E0444: matrices whose extents do not match in a GEMM.
    Product {
        /// The extents of A, (M,K).
        a: [usize; 2],
        /// The extents of B, (N,K).
        b: [usize; 2],
        /// The extents of C, (M,N).
        c: [usize; 2],
    },
    /// E0445: an instruction that the CPU does not compute.
    NotComputed {
        /// The name of the atom.
        atom: Box<str>,
        /// Why, in words.
        why: &'static str,
    },
    /// An error of the layout algebra.
    Layout(LayoutError),
}

impl TensorError {
    /// What would help, as a sentence; none if the message says it all.
    pub fn help(&self) -> Option<String> {
        match self {
            TensorError::Outside { least, .. } if *least < 0 => {
                Some(format!("place offset 0 at element {} or later", least.unsigned_abs()))
            }
            TensorError::Shared { .. } => {
                Some("a view that is only read may repeat elements: view the memory with TensorView".into())
            }
            TensorError::Ragged { .. } => Some(
                "take clipped tiles, which end where the tensor does, or tile an identity tensor beside it and compare"
                    .into(),
            ),
            TensorError::NoOffsets { .. } => Some(
                "take a layout of numbers, such as (4,8):(8,1); what becomes known at launch is substituted first"
                    .into(),
            ),
            TensorError::Sizes { .. } => Some("element i goes to element i: slice or tile the larger one".into()),
            TensorError::Plan { .. } => Some("make a plan of these layouts: Plan::new".into()),
            TensorError::Exchange { .. } => Some("copy the partitions of all threads at once: copy_threads".into()),
            TensorError::Partition { .. } => {
                Some("partition each operand for every thread: partition_for, partition_at".into())
            }
            TensorError::Atom(error) => error.help(),
            TensorError::NoKernel { known, .. } if !known.is_empty() => {
                Some(format!("take one of {}", known.join(", ")))
            }
            TensorError::Instructions { .. } => Some("cpu_atoms lists those that this machine has".into()),
            TensorError::ThreadsAlongK { .. } => Some("arrange the atoms along M and N".into()),
            TensorError::NoMatrix { .. } => Some("group the modes into two: group_modes".into()),
            TensorError::Product { a: [m, k], b: [k_too, n], c } if k == k_too && [*m, *n] == *c => {
                Some("B has modes (N,K): give its transpose".into())
            }
            TensorError::Layout(error) => error.help(),
            _ => None,
        }
    }
}

tilewright_layout::refusal! {
    TensorError from Layout of Atom:
    Outside "E0401", Shared "E0402", Coordinate "E0403", Memory "E0404", Tile "E0405",
    Ragged "E0406", Thread "E0407", Shapes "E0408", Alignment "E0409", ThreadLayout "E0413",
    NoOffsets "E0414", Sizes "E0420", Plan "E0421", Reduction "E0422", Exchange "E0423",
    Values "E0424", Partition "E0425", NoKernel "E0440", Instructions "E0441",
    ThreadsAlongK "E0442", NoMatrix "E0443", Product "E0444", NotComputed "E0445",
}

impl From<AtomError> for TensorError {
    fn from(error: AtomError) -> TensorError {
        match error {
            AtomError::Layout(error) => TensorError::Layout(error),
            other => TensorError::Atom(Box::new(other)),
        }
    }
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorError::Outside { least, greatest, origin, elements } => {
                let held = if *elements == 1 { "1 element".into() } else { format!("{elements} elements") };
                write!(f, "offsets from {least} to {greatest} do not fit into {held} with offset 0 at element {origin}")
            }
            TensorError::Shared { pair: Some((first, second, offset)), layout } => {
                write!(f, "{layout} reaches offset {offset} at index {first} and again at index {second}")
            }
            TensorError::Shared { pair: None, layout } => {
                write!(f, "{layout} is not known to reach every element once")
            }
            TensorError::Coordinate { coord, shape } => write!(f, "coordinate {coord} is outside the shape {shape}"),
            TensorError::Memory { elements, bytes } => {
                write!(f, "{elements} elements of {bytes} bytes do not fit into memory")
            }
            TensorError::Tile { tile, path, range: (least, greatest), extent } => {
                write!(f, "tile {tile} takes indices {least} to {greatest}, but {} has {extent}", Mode(path))
            }
            TensorError::Ragged { tile, path, extent, covered } => {
                write!(f, "tiles {tile} cover {covered} indices, but {} has {extent}", Mode(path))
            }
            TensorError::Thread { thread, threads } => write!(f, "the thread layout {threads} has no thread {thread}"),
            TensorError::ThreadLayout { pair: Some((first, second, thread)), threads } => {
                write!(
                    f,
                    "the thread layout {threads} has thread {thread} at index {first} and again at index {second}"
                )
            }
            TensorError::ThreadLayout { pair: None, threads } => {
                write!(f, "the thread layout {threads} does not number its threads 0, 1, .. without gaps")
            }
            TensorError::Shapes { first, second } => {
                write!(f, "a tensor of shape {first} and one of shape {second}, where one shape is wanted")
            }
            TensorError::Alignment { address, wanted } => {
                write!(f, "the element at offset 0 is at address {address:#x}, which is no multiple of {wanted}")
            }
            TensorError::NoOffsets { layout, kind } => {
                write!(f, "the values of {layout} are no offsets: it is a {kind}")
            }
            TensorError::Sizes { first, second } => {
                let elements = |size: &i64| if *size == 1 { "1 element".into() } else { format!("{size} elements") };
                write!(f, "one operand has {}, the other {}", elements(first), elements(second))
            }
            TensorError::Plan { what } => write!(f, "the plan was made for {what}"),
            TensorError::Reduction { mode, size: None, found: None } => write!(f, "there is no mode {mode} to reduce"),
            TensorError::Reduction { mode, size: Some(size), found: None } => {
                write!(f, "mode {mode}, of size {size}, is kept, but the result has no mode for it")
            }
            TensorError::Reduction { mode, size: Some(size), found: Some(found) } => {
                write!(f, "mode {mode}, of size {size}, is kept, but its mode in the result has size {found}")
            }
            TensorError::Reduction { size: None, found: Some(found), .. } => {
                write!(f, "the result has a mode of size {found} for which no mode is kept")
            }
            TensorError::Exchange { atom } => write!(f, "{atom} moves values from one thread to another"),
            TensorError::Values { what, atom, expected, found } => {
                write!(f, "{what} of {atom} has values of {expected}, but the elements are {found}")
            }
            TensorError::Partition { what, expected, found } => write!(f, "{what}: expected {expected}, found {found}"),
            TensorError::Atom(error) => error.fmt(f),
            TensorError::NoKernel { atom, .. } => write!(f, "no micro-kernel for these types is called {atom}"),
            TensorError::Instructions { atom } => write!(f, "this machine does not have the instructions of {atom}"),
            TensorError::ThreadsAlongK { atoms } => {
                write!(f, "the atom layout {atoms} divides K among threads, whose partial sums would not be added")
            }
            TensorError::NoMatrix { operand, layout } => {
                write!(f, "{operand} has not two modes, as a matrix does: {layout}")
            }
            TensorError::Product { a: [m, k], b: [n, b_k], c: [c_m, c_n] } => write!(
                f,
                "extents do not agree: A is (M,K) = ({m},{k}), B is (N,K) = ({n},{b_k}), and C is (M,N) = ({c_m},{c_n})"
            ),
            TensorError::NotComputed { atom, why } => write!(f, "{atom} is not computed on the CPU: {why}"),
            TensorError::Layout(error) => error.fmt(f),
        }
    }
}

/// Displays a mode in words, by its path, outermost index first.
struct Mode<'a>(&'a [usize]);

impl fmt::Display for Mode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("the tensor"),
            [mode] => write!(f, "mode {mode}"),
            [first, rest @ ..] => {
                write!(f, "mode [{first}")?;
                rest.iter().try_for_each(|mode| write!(f, ",{mode}"))?;
                f.write_str("]")
            }
        }
    }
}

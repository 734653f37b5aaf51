//! Tile programs.
//!
//! Law: a program is executed once for each block of its grid. Values are tiles: a shape and an
//! element type, without a layout. Each value is defined once, before it is used, and is visible to
//! the end of the body that defines it. Every pass preserves the result of
//! [`crate::interpret::run`].

pub(crate) mod ahead;
mod index;
mod infer;
mod print;
pub(crate) mod statement;
mod verify;

use std::collections::HashSet;
use std::fmt;

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;
pub use tilewright_kernel::program::memory::Role;
use tilewright_layout::Layout;
use tilewright_layout::symbolic::Expr;

pub use index::{Axis, Count, Counter, Index, Name};
pub(crate) use infer::{are_multiplied, broadcast_shape, infer, is_count, is_stored};
pub(crate) use print::{atomic, role_name};
pub use statement::{Loop, Statement};
pub(crate) use verify::{can_store, here, is_handed_on};

use crate::held::Held;

/// The most extents of a tile.
pub const MAX_RANK: usize = 5;
/// The most elements of a tile.
pub const MAX_ELEMENTS: i64 = 1 << 16;

/// The type of a value: the shape of a tile, and the type of its elements. A tile without extents
/// is a scalar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Type {
    /// The extents.
    pub shape: Vec<i64>,
    /// The type of the elements.
    pub element: Element,
}

impl Type {
    /// How many elements there are.
    pub fn size(&self) -> i64 {
        self.shape.iter().product()
    }

    /// The logarithm of the number of elements, each extent up to a power of two.
    pub(crate) fn bits(&self) -> u32 {
        self.shape.iter().map(|extent| padded(*extent).trailing_zeros()).sum()
    }
}

/// The least power of two that an extent fits in; the extent, if there is none.
pub(crate) fn padded(extent: i64) -> i64 {
    let power = u64::try_from(extent).ok().and_then(u64::checked_next_power_of_two);
    power.and_then(|power| i64::try_from(power).ok()).unwrap_or(extent)
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.element, print::tuple(&self.shape))
    }
}

/// A value of a program, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) u32);

impl ValueId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor in memory of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its layout as text, with sizes known at launch as names: `(M,1024):(1024,1)`.
    pub layout: String,
    /// Whether it is read, or written, or changed: then what it was counts, too.
    pub role: Role,
}

/// A number that the launch passes to all blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// Its name.
    pub name: String,
    /// Its type: f32, i32, f64 or i64.
    pub element: Element,
}

/// Functions of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x`.
    Negate,
    /// The magnitude.
    Abs,
    /// `e^x`, as `2^(x log2(e))`.
    Exp,
    /// `2^x`.
    Exp2,
    /// The logarithm to base 2.
    Log2,
    /// The square root.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// `1 / x`.
    Recip,
    /// The hyperbolic tangent, within a relative error of 2^-11.
    Tanh,
    /// The natural logarithm, as `log2(x) ln(2)`.
    Log,
    /// The sine of radians. Up to a magnitude of 2^17 it is within 2 units in the last place;
    /// beyond, within 2^-23.
    Sin,
    /// The cosine of radians, as precise as [`Unary::Sin`].
    Cos,
    /// The error function, within 2 units in the last place.
    Erf,
    /// The greatest whole number up to `x`.
    Floor,
    /// The least whole number from `x` on.
    Ceil,
    /// The nearest whole number, ties to even.
    Round,
    /// The nearest number of tf32, which has 10 bits behind the first one, as f32; of two that are
    /// as near, the one of greater magnitude (`cvt.rna.tf32.f32`). Products of f32 take such
    /// numbers alone.
    Tf32,
}

impl Unary {
    /// All, by their names.
    pub const NAMES: [(&'static str, Unary); 17] = [
        ("neg", Unary::Negate),
        ("abs", Unary::Abs),
        ("exp", Unary::Exp),
        ("exp2", Unary::Exp2),
        ("log2", Unary::Log2),
        ("sqrt", Unary::Sqrt),
        ("rsqrt", Unary::Rsqrt),
        ("recip", Unary::Recip),
        ("tanh", Unary::Tanh),
        ("log", Unary::Log),
        ("sin", Unary::Sin),
        ("cos", Unary::Cos),
        ("erf", Unary::Erf),
        ("floor", Unary::Floor),
        ("ceil", Unary::Ceil),
        ("round", Unary::Round),
        ("tf32", Unary::Tf32),
    ];
}

/// Functions of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// The sum.
    Add,
    /// The difference.
    Subtract,
    /// The product.
    Multiply,
    /// The quotient. Of integers the greatest whole number up to it, as in Python: -7 over 2 is -4.
    /// A number over 0 is 0.
    Divide,
    /// What a quotient of integers leaves, `a - a / b * b`: it has the sign of the divisor, and is
    /// the number itself where that is 0.
    Remainder,
    /// The lesser; NaN if one is NaN.
    Minimum,
    /// The greater; NaN if one is NaN.
    Maximum,
    /// Bitwise and, of integers.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The first shifted left by the second, read as unsigned; 0 from the number of bits on.
    ShiftLeft,
    /// The first shifted right by the second, filled with its sign (arithmetic shift).
    ShiftRight,
    /// The first shifted right by the second, filled with zeros (logical shift).
    ShiftDown,
}

impl Binary {
    /// Operators that are written as functions, with their names.
    pub const NAMES: [(&'static str, Binary); 8] = [
        ("min", Binary::Minimum),
        ("max", Binary::Maximum),
        ("and", Binary::And),
        ("or", Binary::Or),
        ("xor", Binary::Xor),
        ("shl", Binary::ShiftLeft),
        ("shr", Binary::ShiftRight),
        ("lshr", Binary::ShiftDown),
    ];

    /// Whether it combines bits, which integers alone have.
    pub fn is_of_bits(self) -> bool {
        use Binary::{And, Or, ShiftDown, ShiftLeft, ShiftRight, Xor};
        matches!(self, And | Or | Xor | ShiftLeft | ShiftRight | ShiftDown)
    }
}

/// Comparisons of two numbers. NaN compares as false with everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `==`.
    Equal,
}

impl Comparison {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Equal => "==",
        }
    }
}

/// How elements along a mode are combined; in which order is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The least.
    Minimum,
    /// The greatest.
    Maximum,
}

impl Reduction {
    /// All, by their names.
    pub const NAMES: [(&'static str, Reduction); 4] = [
        ("sum", Reduction::Sum),
        ("product", Reduction::Product),
        ("min", Reduction::Minimum),
        ("max", Reduction::Maximum),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        Reduction::NAMES.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }

    /// The neutral element; for integers, the end of the range.
    pub fn neutral(self) -> f64 {
        match self {
            Reduction::Sum => 0.0,
            Reduction::Product => 1.0,
            Reduction::Minimum => f64::INFINITY,
            Reduction::Maximum => f64::NEG_INFINITY,
        }
    }

    /// The function of two numbers.
    pub fn binary(self) -> Binary {
        match self {
            Reduction::Sum => Binary::Add,
            Reduction::Product => Binary::Multiply,
            Reduction::Minimum => Binary::Minimum,
            Reduction::Maximum => Binary::Maximum,
        }
    }
}

/// The operation that computes a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// A number.
    Constant(Element, f64),
    /// An index of the block or of a loop, as i32.
    Number(Index),
    /// An expression of sizes, as i32: how many rows there are.
    Size(String),
    /// A number that the launch passes, by its name: f32, i32, f64 or i64.
    Scalar(String, Element),
    /// The coordinate of each element along a mode, as i32.
    Arange {
        /// The shape of the tile.
        shape: Vec<i64>,
        /// The mode.
        mode: usize,
    },
    /// A tile of a tensor. Elements past the edges of the tensor are `other`.
    Load {
        /// The tensor, by its number.
        tensor: usize,
        /// The shape of the tile.
        shape: Vec<i64>,
        /// The index of the tile, along each mode.
        at: Vec<Index>,
        /// The value of elements past the edges.
        other: f64,
    },
    /// A tile of a tensor, whose elements are where operands say: each operand says the coordinate
    /// of each element along one of the modes. An operand has the extent of the tile along its own
    /// mode, and that or 1 along the other modes for which there is an operand; else 1. Elements
    /// past the edges are `other`, and negative coordinates are past them.
    Gather {
        /// The tensor, by its number.
        tensor: usize,
        /// The shape of the tile.
        shape: Vec<i64>,
        /// The index of the tile, along each other mode.
        at: Vec<Index>,
        /// The modes along which operands say where, one for each operand, in ascending order.
        modes: Vec<usize>,
        /// The value of elements past the edges.
        other: f64,
    },
    /// Stages a matrix in a tile of a tensor in shared memory: rows are one mode of the tile,
    /// columns another, and the other modes have extent 1. It is an operand of `dot`. An operand
    /// may give the coordinate along one of the other modes, or the coordinates of the rows; rows
    /// past the edges are zeros.
    Stage {
        /// The tensor, by its number.
        tensor: usize,
        /// The shape of the tile.
        shape: Vec<i64>,
        /// The index of the tile, along each mode.
        at: Vec<Index>,
        /// The modes of rows and of columns.
        modes: [usize; 2],
        /// The mode along which the operand says where, if there is one.
        picked: Option<usize>,
    },
    /// A function of each element.
    Unary(Unary),
    /// A function of each element and another's.
    Binary(Binary),
    /// `a * b + c` of three tiles, rounded once.
    MultiplyAdd,
    /// Where the first tile compares with the second, the third, elsewhere the fourth.
    Select(Comparison),
    /// The elements in another type: rounded to nearest, to integers toward zero. e4m3 and e5m2
    /// saturate, and so do integers that come from other numbers. Of an i64 that becomes an i32 the
    /// lowest bits stay. NaN becomes the integer 0, or the least one where one of both types is f64
    /// or i64.
    To(Element),
    /// The same bits as elements of another type: f32 and i32, or f64 and i64.
    Recast(Element),
    /// Eight elements for each word of i32, along the first mode: its numbers of four bits, the
    /// lowest bits first.
    Unpack {
        /// Their type, in which they are exact.
        element: Element,
        /// Whether they are -8 to 7; else they are 0 to 15.
        signed: bool,
    },
    /// 32 random bits for each counter of the first tile and seed of the second: one of the four
    /// words that Philox4x32-10 makes of the counter (c,0,0,0) and the key (s,0).
    Random(u8),
    /// Modes of extent 1 get other extents by broadcasting. A scalar becomes any tile.
    Broadcast(Vec<i64>),
    /// The same elements in another shape, in the same order, the first mode fastest.
    Reshape(Vec<i64>),
    /// Mode `i` of the result is mode `order[i]` of the tile.
    Transpose(Vec<usize>),
    /// The tile combined along modes, which keep one element each.
    Reduce(Reduction, Vec<usize>),
    /// Argmax along a mode, as i32: of equal elements the first. NaN is greater than every number.
    /// The mode keeps extent 1.
    ArgMax(usize),
    /// Argmin along a mode, as i32: of equal elements the first. NaN is less than every number. The
    /// mode keeps extent 1.
    ArgMin(usize),
    /// The largest `k` elements along a mode, in descending order. For f32, NaN is greater than all
    /// numbers (less, if its sign is set), and 0 greater than -0.
    Top(usize, i64),
    /// Where the elements of [`Operation::Top`] are along the mode, in the same order, as i32: of
    /// equal elements the first comes first.
    TopPlaces(usize, i64),
    /// A histogram: how often each of this many numbers, from 0 on, occurs in the tile.
    Histogram(i64),
    /// Each element combined with all before it along a mode.
    Scan(Reduction, usize),
    /// The exclusive scan: all before each element along a mode, combined; the identity at the
    /// first.
    ScanBefore(Reduction, usize),
    /// `a b + c` of matrices `(M,K)`, `(K,N)`, `(M,N)`: operands of 16 or 8 bits, or of f32 that
    /// were rounded by [`Unary::Tf32`] and then only moved; sums of f32.
    Dot,
    /// The same tile, computed by the named instruction: see [`crate::Value::atom`].
    Atom(String),
    /// The same tile, with this distribution over the threads of the block.
    Held(Held),
}

impl Operation {
    /// Whether it takes elements along modes together, and its result has fewer along them.
    pub(crate) fn reduces(&self) -> bool {
        matches!(
            self,
            Operation::Reduce(..)
                | Operation::ArgMax(_)
                | Operation::ArgMin(_)
                | Operation::Top(..)
                | Operation::TopPlaces(..)
        )
    }

    /// Whether it combines elements of a tile.
    pub(crate) fn combines(&self) -> bool {
        let counts = matches!(self, Operation::Histogram(_) | Operation::Scan(..) | Operation::ScanBefore(..));
        counts || self.reduces()
    }

    /// Whether every element of its result is a number of tf32: it rounds to one, or only moves
    /// elements of a tile that is so.
    pub(crate) fn is_tf32(&self, operands: &[ValueId], known: &HashSet<ValueId>) -> bool {
        match self {
            Operation::Unary(Unary::Tf32) => true,
            Operation::Broadcast(_)
            | Operation::Reshape(_)
            | Operation::Transpose(_)
            | Operation::Atom(_)
            | Operation::Held(_) => operands.iter().all(|own| known.contains(own)),
            _ => false,
        }
    }
}

/// A tile program.
///
/// ```
/// use tilewright_tile::Program;
///
/// let softmax: Program = "
/// tile softmax {
///     input  x: bf16 (M,1024):(1024,1)
///     output y: bf16 (M,1024):(1024,1)
///     grid ceil(M/4)
///     a = f32(load(x, (4,1024), (block.x, 0)))
///     e = exp(a - reduce_max(a, 1))
///     store(y, (block.x, 0), bf16(e / reduce_sum(e, 1)))
/// }"
/// .parse()?;
/// assert_eq!(softmax.to_string().parse::<Program>()?.to_string(), softmax.to_string());
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) tensors: Vec<Tensor>,
    /// The numbers that a launch passes.
    pub(crate) scalars: Vec<Scalar>,
    /// Where each tensor is declared, and how many modes it has.
    pub(crate) declared: Vec<(Location, usize)>,
    pub(crate) grid: Vec<String>,
    /// The location of the statement.
    pub(crate) grid_place: Option<Location>,
    pub(crate) warps: Option<u32>,
    /// The type of each value.
    pub(crate) types: Vec<Type>,
    pub(crate) body: Vec<Statement>,
    /// How many loops were numbered.
    pub(crate) iterations: u32,
}

impl Program {
    /// Whether elements along a mode of a tensor lie side by side.
    pub(crate) fn is_contiguous(&self, tensor: usize, mode: usize) -> bool {
        let layout = self.tensors[tensor].layout.parse::<Layout<Expr>>();
        let own = layout.ok().and_then(|layout| layout.mode(mode));
        own.is_some_and(|own| own.leaves().first().is_some_and(|leaf| leaf.stride == Expr::from(1)))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tensors, in the order in which they were declared.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The numbers that a launch passes, in the order in which they were declared.
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// Whether a tensor, or a number of the launch, has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.iter().any(|own| own.name == name) || self.scalars.iter().any(|own| own.name == name)
    }

    /// How many blocks there are along x, y and z, as expressions of sizes; 1 where nothing is
    /// said.
    pub fn grid(&self) -> &[String] {
        &self.grid
    }

    /// Does what `statements` does if the grid is set.
    pub(crate) fn at_grid<R>(&self, statements: impl FnOnce() -> R) -> R {
        match self.grid_place {
            Some(place) => place.during(statements),
            None => statements(),
        }
    }

    /// How many warps a block has, if that was set.
    pub fn warps(&self) -> Option<u32> {
        self.warps
    }

    /// The statements of a block.
    pub fn body(&self) -> &[Statement] {
        &self.body
    }

    /// The values, in the order in which they were made.
    pub fn values(&self) -> impl Iterator<Item = ValueId> {
        (0..self.types.len() as u32).map(ValueId)
    }

    /// The type of a value.
    pub fn type_of(&self, value: ValueId) -> &Type {
        &self.types[value.index()]
    }

    pub(crate) fn value(&mut self, ty: Type) -> ValueId {
        self.types.push(ty);
        ValueId(self.types.len() as u32 - 1)
    }
}

//! The representation of tile programs.
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

/// The most modes of a tile.
pub const MAX_RANK: usize = 5;
/// The most elements of a tile.
pub const MAX_ELEMENTS: i64 = 1 << 16;

/// The type of a value: the shape of a tile, and the type of its elements. A tile without modes is
/// a scalar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Type {
    /// The extents.
    pub shape: Vec<i64>,
    /// The type of the elements.
    pub element: Element,
}

impl Type {
    /// The number of elements.
    pub fn size(&self) -> i64 {
        self.shape.iter().product()
    }

    /// The logarithm to base 2 of the number of elements, with each extent rounded up to a power of
    /// two.
    pub(crate) fn bits(&self) -> u32 {
        self.shape.iter().map(|extent| padded(*extent).trailing_zeros()).sum()
    }
}

/// The least power of two that is not below an extent; the extent itself, if there is none in 64
/// bits.
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

/// A tensor in global memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its layout as text, with sizes known at launch as names: `(M,1024):(1024,1)`.
    pub layout: String,
    /// Whether the program reads it, writes it, or both.
    pub role: Role,
}

/// A scalar argument that the launch passes to all blocks.
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
    /// The sine of an angle in radians. Up to a magnitude of 2^17, the error is at most 2 units in
    /// the last place; beyond, at most 2^-23.
    Sin,
    /// The cosine of an angle in radians, with the error bounds of [`Unary::Sin`].
    Cos,
    /// The error function, with an error of at most 2 units in the last place.
    Erf,
    /// The greatest whole number that is at most `x`.
    Floor,
    /// The least whole number that is at least `x`.
    Ceil,
    /// The nearest whole number, ties to even.
    Round,
    /// The nearest number of tf32 (10 fraction bits), as f32; ties away from 0
    /// (`cvt.rna.tf32.f32`). `dot` of f32 accepts only operands that are rounded so.
    Tf32,
}

impl Unary {
    /// All functions, by their names.
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
    /// The quotient. For integers it is rounded down, as in Python: -7 over 2 is -4. An integer
    /// over 0 is 0.
    Divide,
    /// The remainder of integers, `a - a / b * b`. It has the sign of the divisor. If the divisor
    /// is 0, it is `a`.
    Remainder,
    /// The lesser; NaN if one is NaN.
    Minimum,
    /// The greater; NaN if one is NaN.
    Maximum,
    /// Bitwise and of integers.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The first operand shifted left by the second, which is read as unsigned. A shift by the
    /// width or more gives 0.
    ShiftLeft,
    /// The first operand shifted right by the second, filled with copies of the sign (arithmetic
    /// shift).
    ShiftRight,
    /// The first operand shifted right by the second, filled with zeros (logical shift).
    ShiftDown,
}

impl Binary {
    /// The functions that are written by name and not as operators, with their names.
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

    /// Whether it is a bitwise function, which only integers have.
    pub fn is_of_bits(self) -> bool {
        use Binary::{And, Or, ShiftDown, ShiftLeft, ShiftRight, Xor};
        matches!(self, And | Or | Xor | ShiftLeft | ShiftRight | ShiftDown)
    }
}

/// Comparisons of two numbers. Every comparison with NaN is false.
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
    /// The sign of the comparison in programs.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Equal => "==",
        }
    }
}

/// How a reduction combines elements. The order is unspecified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The minimum.
    Minimum,
    /// The maximum.
    Maximum,
}

impl Reduction {
    /// All reductions, by their names.
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

    /// The identity. For minima and maxima of integers, infinity stands for the end of the range.
    pub fn neutral(self) -> f64 {
        match self {
            Reduction::Sum => 0.0,
            Reduction::Product => 1.0,
            Reduction::Minimum => f64::INFINITY,
            Reduction::Maximum => f64::NEG_INFINITY,
        }
    }

    /// The function of two numbers that it applies.
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
    /// A constant.
    Constant(Element, f64),
    /// An index of the block or of a loop, as i32.
    Number(Index),
    /// The value of an expression of sizes, as i32.
    Size(String),
    /// A scalar argument of the launch, by its name: f32, i32, f64 or i64.
    Scalar(String, Element),
    /// The coordinate of each element along a mode, as i32.
    Arange {
        /// The shape of the tile.
        shape: Vec<i64>,
        /// The mode.
        mode: usize,
    },
    /// Loads a tile of a tensor. Elements past the edges of the tensor are `other`.
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
    /// Gathers a tile from a tensor. Each operand holds, for one of the modes, the coordinate of
    /// each element along it. An operand has the extent of the tile along its own mode. Along
    /// another mode for which there is an operand, it has the extent of the tile or 1; along the
    /// remaining modes it has 1. Elements past the edges, and elements at negative coordinates, are
    /// `other`.
    Gather {
        /// The tensor, by its number.
        tensor: usize,
        /// The shape of the tile.
        shape: Vec<i64>,
        /// The index of the tile, along each other mode.
        at: Vec<Index>,
        /// The modes whose coordinates the operands hold, one for each operand, in ascending order.
        modes: Vec<usize>,
        /// The value of elements past the edges.
        other: f64,
    },
    /// Stages a matrix, a tile of a tensor, in shared memory as an operand of `dot`. One mode of
    /// the tile is its rows and another is its columns; the other modes have extent 1. An operand
    /// may hold the coordinate along one of the other modes, or the coordinates of the rows. Rows
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
        /// The mode whose coordinates the operand holds; None without an operand.
        picked: Option<usize>,
    },
    /// A function of each element.
    Unary(Unary),
    /// A function of the elements of two tiles.
    Binary(Binary),
    /// `a * b + c` of three tiles, rounded once.
    MultiplyAdd,
    /// A selection: where the first tile compares with the second, the third tile, elsewhere the
    /// fourth.
    Select(Comparison),
    /// Converts the elements to another type: to floating point to nearest, to integers toward
    /// zero. e4m3 and e5m2 saturate, and so do integers that are converted from floating-point
    /// numbers. An i64 that is converted to i32 keeps the lowest bits. NaN becomes the integer 0,
    /// or the least integer if one of both types is f64 or i64.
    To(Element),
    /// The same bits as elements of another type: f32 and i32, or f64 and i64.
    Recast(Element),
    /// Unpacks 4-bit integers: eight elements along the first mode for each word of i32, the lowest
    /// bits first.
    Unpack {
        /// The type of the result, which represents them exactly.
        element: Element,
        /// Whether they are signed, -8 to 7. If not, they are 0 to 15.
        signed: bool,
    },
    /// 32 random bits for each element: one of the four words that Philox4x32-10 computes from the
    /// counter (c,0,0,0) and the key (s,0). The first tile holds the counters, the second the
    /// seeds.
    Random(u8),
    /// Broadcasts modes of extent 1 to other extents. A scalar can be broadcast to any shape.
    Broadcast(Vec<i64>),
    /// The same elements in another shape, in the same order, the first mode fastest.
    Reshape(Vec<i64>),
    /// Mode `i` of the result is mode `order[i]` of the tile.
    Transpose(Vec<usize>),
    /// Reduces the tile along modes, which keep extent 1.
    Reduce(Reduction, Vec<usize>),
    /// Argmax along a mode, as i32. The first of equal elements wins, and NaN counts as greater
    /// than every number. The mode keeps extent 1.
    ArgMax(usize),
    /// Argmin along a mode, as i32. The first of equal elements wins, and NaN counts as less than
    /// every number. The mode keeps extent 1.
    ArgMin(usize),
    /// The largest `k` elements along a mode, in descending order. For f32, NaN counts as greater
    /// than all numbers (as less, if its sign is set), and 0 as greater than -0.
    Top(usize, i64),
    /// The positions along the mode of the elements of [`Operation::Top`], in the same order, as
    /// i32. Among equal elements, the first comes first.
    TopPlaces(usize, i64),
    /// A histogram: how often each number from 0 up to, but not including, this one occurs in the
    /// tile.
    Histogram(i64),
    /// The inclusive scan along a mode: each element combined with all elements before it.
    Scan(Reduction, usize),
    /// The exclusive scan along a mode: the combination of all elements before each element, and
    /// the identity for the first element.
    ScanBefore(Reduction, usize),
    /// `a * b + c` of matrices `(M,K)`, `(K,N)` and `(M,N)`. The operands have elements of 16 or 8
    /// bits, or of f32 that were rounded by [`Unary::Tf32`] and then only moved. The accumulators
    /// are f32.
    Dot,
    /// The same tile, computed by the named instruction: see [`crate::Value::atom`].
    Atom(String),
    /// The same tile, with this distribution over the threads of the block.
    Held(Held),
}

impl Operation {
    /// Whether it combines elements along modes, and its result has smaller extents along them.
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

    /// Whether every element of its result is a number of tf32: it rounds to tf32, or only moves
    /// elements of a tile of such numbers.
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
    /// The scalar arguments of a launch.
    pub(crate) scalars: Vec<Scalar>,
    /// For each tensor, the location of its declaration and its number of modes.
    pub(crate) declared: Vec<(Location, usize)>,
    pub(crate) grid: Vec<String>,
    /// The location of the statement that sets the grid.
    pub(crate) grid_place: Option<Location>,
    pub(crate) warps: Option<u32>,
    /// The type of each value.
    pub(crate) types: Vec<Type>,
    pub(crate) body: Vec<Statement>,
    /// The number of loops so far; the next loop gets this number.
    pub(crate) iterations: u32,
}

impl Program {
    /// Whether elements along a mode of a tensor are contiguous in memory.
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

    /// The scalar arguments of a launch, in the order in which they were declared.
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// Whether a tensor or a scalar argument has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.iter().any(|own| own.name == name) || self.scalars.iter().any(|own| own.name == name)
    }

    /// The number of blocks along x, y and z, as expressions of sizes. Axes that are not given have
    /// 1 block.
    pub fn grid(&self) -> &[String] {
        &self.grid
    }

    /// Runs `statements` with the location of the statement that sets the grid.
    pub(crate) fn at_grid<R>(&self, statements: impl FnOnce() -> R) -> R {
        match self.grid_place {
            Some(place) => place.during(statements),
            None => statements(),
        }
    }

    /// The number of warps of a block, if the program sets it.
    pub fn warps(&self) -> Option<u32> {
        self.warps
    }

    /// The statements of a block.
    pub fn body(&self) -> &[Statement] {
        &self.body
    }

    /// The values, in the order in which they were defined.
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

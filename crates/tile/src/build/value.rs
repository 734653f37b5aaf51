//! Values, with operators.
//!
//! Law: an operator adds one statement. If two extents differ and one of them is 1, it adds a
//! broadcast first.

use std::ops;

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;

use super::Build;
use crate::error::Reason;
use crate::held::Held;
use crate::program::{Binary, Count, Operation, Reduction, Type, Unary, ValueId, broadcast_shape, here};

/// A value of a program that is being written: a tile, with a shape and an element type, but no
/// layout.
///
/// Operators and methods add operations to the program. Modes of extent 1 are broadcast, as in `a -
/// a.reduce(..)`. A method returns a value and not a result: a refusal is kept, and
/// [`Program::build`](crate::Program::build) returns the first one with its line.
///
/// ```
/// use tilewright_tile::{Axis, Element, Index, Program, Reduction};
///
/// let centred = Program::build("centred", |t| {
///     let x = t.input(Element::F32, "x", "(M,256):(256,1)")?;
///     let y = t.output(Element::F32, "y", "(M,256):(256,1)")?;
///     t.grid(["M"])?;
///     let at = [Index::block(Axis::X), 0.into()];
///     let row = t.load(x, &[1, 256], &at);
///     let mean = row.reduce(Reduction::Sum, &[1]) * t.number(1.0 / 256.0);
///     assert_eq!(mean.type_of().to_string(), "f32 (1,1)");
///     t.store(y, &at, row - mean);
///     Ok(())
/// })?;
/// assert!(centred.compile(None).is_ok());
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Value<'t> {
    pub(crate) build: &'t Build,
    pub(crate) id: ValueId,
}

impl From<Value<'_>> for Count {
    fn from(count: Value<'_>) -> Count {
        Count::Value(count.id)
    }
}

impl<'t> Value<'t> {
    /// The shape and the element type.
    pub fn type_of(self) -> Type {
        self.build.type_of(self.id)
    }

    /// Adds an operation on this value, and returns its result.
    pub(crate) fn apply(self, statement: &'static str, operation: Operation, place: Location) -> Value<'t> {
        self.build.apply(statement, operation, &[self.id], place)
    }

    /// The tile broadcast to this shape; itself if it has the shape.
    pub(crate) fn spread(self, shape: &[i64], statement: &'static str, place: Location) -> Value<'t> {
        if self.type_of().shape == shape {
            return self;
        }
        self.apply(statement, Operation::Broadcast(shape.to_vec()), place)
    }

    /// Broadcasts several tiles to their common shape. If they have none, returns them unchanged.
    pub(crate) fn together<const N: usize>(
        values: [Value<'t>; N],
        statement: &'static str,
        place: Location,
    ) -> [Value<'t>; N] {
        let shapes = values.map(|value| value.type_of().shape);
        let meet = shapes.iter().skip(1).try_fold(shapes[0].clone(), |all, shape| {
            broadcast_shape(&all, shape).ok_or_else(|| Reason::Operands { first: all.clone(), second: shape.clone() })
        });
        match meet {
            Ok(shape) => values.map(|value| value.spread(&shape, statement, place)),
            Err(reason) => {
                values[0].build.complain(reason.at(statement, place));
                values
            }
        }
    }

    pub(crate) fn binary(self, other: Value<'t>, binary: Binary, name: &'static str, place: Location) -> Value<'t> {
        let [a, b] = Value::together([self, other], name, place);
        self.build.apply(name, Operation::Binary(binary), &[a.id, b.id], place)
    }

    pub(crate) fn constant(self, value: f64, place: Location) -> Value<'t> {
        self.build.apply("number", Operation::Constant(self.type_of().element, value), &[], place)
    }

    /// The elements in another type.
    #[track_caller]
    pub fn to(self, element: Element) -> Value<'t> {
        let place = here();
        if self.type_of().element == element { self } else { self.apply("to", Operation::To(element), place) }
    }

    /// A function of each element.
    #[track_caller]
    pub fn map(self, function: Unary) -> Value<'t> {
        self.apply("map", Operation::Unary(function), here())
    }

    /// `e` to the power of each element.
    #[track_caller]
    pub fn exp(self) -> Value<'t> {
        self.apply("exp", Operation::Unary(Unary::Exp), here())
    }

    /// `1 / sqrt(x)` of each element.
    #[track_caller]
    pub fn rsqrt(self) -> Value<'t> {
        self.apply("rsqrt", Operation::Unary(Unary::Rsqrt), here())
    }

    /// The natural logarithm of each element.
    #[track_caller]
    pub fn log(self) -> Value<'t> {
        self.apply("log", Operation::Unary(Unary::Log), here())
    }

    /// The sine of each element, in radians. The error bound is the same for large and small
    /// angles: see [`Unary::Sin`].
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program, Unary, interpret};
    ///
    /// // Rotary embedding: pairs of a row are turned by the angle of their position.
    /// let turned = Program::build("turned", |t| {
    ///     let x = t.input(Element::F32, "x", "(M,64,2):(128,1,64)")?;
    ///     let y = t.output(Element::F32, "y", "(M,64,2):(128,1,64)")?;
    ///     t.grid(["M"])?;
    ///     let at = |half: i64| [Index::block(Axis::X), 0.into(), half.into()];
    ///     let [a, b] = [0, 1].map(|half| t.load(x, &[1, 64, 1], &at(half)));
    ///     let frequency = (t.arange(&[1, 64, 1], 1).to(Element::F32) * -0.2).map(Unary::Exp2);
    ///     let angle = frequency * t.index(Index::block(Axis::X)).to(Element::F32);
    ///     t.store(y, &at(0), a * angle.cos() - b * angle.sin());
    ///     t.store(y, &at(1), a * angle.sin() + b * angle.cos());
    ///     Ok(())
    /// })?;
    /// let outputs = interpret::run(&turned, &[("M", 2)], &[("x", vec![1.0; 256])])?;
    /// let first = outputs[0].1[128].unwrap_or(0.0);
    /// assert!((first - (1.0_f64.cos() - 1.0_f64.sin())).abs() < 1e-6);
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    #[track_caller]
    pub fn sin(self) -> Value<'t> {
        self.apply("sin", Operation::Unary(Unary::Sin), here())
    }

    /// The cosine of each element, in radians.
    #[track_caller]
    pub fn cos(self) -> Value<'t> {
        self.apply("cos", Operation::Unary(Unary::Cos), here())
    }

    /// The error function of each element `x`: `2/sqrt(pi)` times the integral of `e^(-t^2)` from 0
    /// to `x`.
    #[track_caller]
    pub fn erf(self) -> Value<'t> {
        self.apply("erf", Operation::Unary(Unary::Erf), here())
    }

    /// The floor of each element: the greatest whole number that is not above it, as f32.
    #[track_caller]
    pub fn floor(self) -> Value<'t> {
        self.apply("floor", Operation::Unary(Unary::Floor), here())
    }

    /// The ceiling of each element: the least whole number that is not below it, as f32.
    #[track_caller]
    pub fn ceil(self) -> Value<'t> {
        self.apply("ceil", Operation::Unary(Unary::Ceil), here())
    }

    /// The whole number nearest to each element, ties to even, as f32.
    #[track_caller]
    pub fn round(self) -> Value<'t> {
        self.apply("round", Operation::Unary(Unary::Round), here())
    }

    /// The lesser of two; NaN if one is NaN.
    #[track_caller]
    pub fn min(self, other: Value<'t>) -> Value<'t> {
        self.binary(other, Binary::Minimum, "min", here())
    }

    /// The greater of two; NaN if one is NaN.
    #[track_caller]
    pub fn max(self, other: Value<'t>) -> Value<'t> {
        self.binary(other, Binary::Maximum, "max", here())
    }

    /// `self * b + c`, rounded once.
    #[track_caller]
    pub fn multiply_add(self, b: Value<'t>, c: Value<'t>) -> Value<'t> {
        let place = here();
        let all = Value::together([self, b, c], "fma", place);
        self.build.apply("fma", Operation::MultiplyAdd, &all.map(|value| value.id), place)
    }

    /// The tile broadcast to a shape: modes of extent 1 get the extents of the shape.
    #[track_caller]
    pub fn broadcast(self, shape: &[i64]) -> Value<'t> {
        self.apply("broadcast", Operation::Broadcast(shape.to_vec()), here())
    }

    /// The same elements in another shape, in the same order, first mode fastest.
    #[track_caller]
    pub fn reshape(self, shape: &[i64]) -> Value<'t> {
        self.apply("reshape", Operation::Reshape(shape.to_vec()), here())
    }

    /// Mode `i` of the result is mode `order[i]` of this tile.
    #[track_caller]
    pub fn transpose(self, order: &[usize]) -> Value<'t> {
        self.apply("transpose", Operation::Transpose(order.to_vec()), here())
    }

    /// Reduces the tile along modes, which keep extent 1.
    #[track_caller]
    pub fn reduce(self, reduction: Reduction, modes: &[usize]) -> Value<'t> {
        self.apply("reduce", Operation::Reduce(reduction, modes.to_vec()), here())
    }

    /// The inclusive scan along a mode: each element combined with all elements before it.
    #[track_caller]
    pub fn scan(self, reduction: Reduction, mode: usize) -> Value<'t> {
        self.apply("scan", Operation::Scan(reduction, mode), here())
    }

    /// The exclusive scan along a mode: the combination of all elements before each element, and
    /// the identity for the first element.
    #[track_caller]
    pub fn scan_before(self, reduction: Reduction, mode: usize) -> Value<'t> {
        self.apply("scan_before", Operation::ScanBefore(reduction, mode), here())
    }

    /// Argmax along a mode, as i32. The first of equal elements wins, and NaN counts as greater
    /// than every number.
    #[track_caller]
    pub fn argmax(self, mode: usize) -> Value<'t> {
        self.apply("argmax", Operation::ArgMax(mode), here())
    }

    /// Argmin along a mode, as i32. The first of equal elements wins, and NaN counts as less than
    /// every number.
    #[track_caller]
    pub fn argmin(self, mode: usize) -> Value<'t> {
        self.apply("argmin", Operation::ArgMin(mode), here())
    }

    /// The positions along the mode of the elements of [`Value::top`], in the same order, as i32.
    /// Among equal elements, the first comes first. If a program uses both, the mode is sorted
    /// once.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program, interpret};
    ///
    /// // The two experts that each token prefers, and their logits.
    /// let route = Program::build("route", |t| {
    ///     let x = t.input(Element::F32, "x", "(T,8):(8,1)")?;
    ///     let experts = t.output(Element::I32, "experts", "(T,2):(2,1)")?;
    ///     let logits = t.output(Element::F32, "logits", "(T,2):(2,1)")?;
    ///     t.grid(["T"])?;
    ///     let at = [Index::block(Axis::X), 0.into()];
    ///     let row = t.load(x, &[1, 8], &at);
    ///     t.store(experts, &at, row.top_places(1, 2));
    ///     t.store(logits, &at, row.top(1, 2));
    ///     Ok(())
    /// })?;
    /// let x = vec![0.5, 3.0, -1.0, 3.0, 0.0, 2.0, 1.0, 0.0];
    /// let outputs = interpret::run(&route, &[("T", 1)], &[("x", x)])?;
    /// assert_eq!(outputs[0].1, [Some(1.0), Some(3.0)]);
    /// assert_eq!(outputs[1].1, [Some(3.0), Some(3.0)]);
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    #[track_caller]
    pub fn top_places(self, mode: usize, count: i64) -> Value<'t> {
        self.apply("top", Operation::TopPlaces(mode, count), here())
    }

    /// The `count` greatest elements along a mode, in descending order.
    #[track_caller]
    pub fn top(self, mode: usize, count: i64) -> Value<'t> {
        self.apply("top", Operation::Top(mode, count), here())
    }

    /// A histogram: how often each of the numbers `0..bins` occurs in a tile of i32.
    #[track_caller]
    pub fn histogram(self, bins: i64) -> Value<'t> {
        self.apply("histogram", Operation::Histogram(bins), here())
    }

    /// The same bits as another type of the same width: f32 and i32, or f64 and i64.
    #[track_caller]
    pub fn recast(self, element: Element) -> Value<'t> {
        let place = here();
        if self.type_of().element == element { self } else { self.apply("recast", Operation::Recast(element), place) }
    }

    /// Unpacks 4-bit integers from words of i32 to bf16, f16, f32 or i32. Each word holds eight
    /// consecutive elements along the first mode, the lowest bits first. Signed integers are -8 to
    /// 7, unsigned ones 0 to 15.
    #[track_caller]
    pub fn unpack(self, element: Element, signed: bool) -> Value<'t> {
        self.apply("unpack", Operation::Unpack { element, signed }, here())
    }

    /// Bitwise operations and shifts of i32 ([`Binary::is_of_bits`]).
    #[track_caller]
    pub fn bits(self, binary: Binary, other: Value<'t>) -> Value<'t> {
        self.binary(other, binary, "bits", here())
    }

    /// Each element of f32 rounded to tf32, to nearest with ties away from 0; the result has type
    /// f32. `dot` of f32 requires operands that are rounded so.
    ///
    /// ```
    /// use tilewright_tile::{Element, Program, interpret};
    ///
    /// let product = Program::build("product", |t| {
    ///     let x = t.input(Element::F32, "x", "(16,8):(8,1)")?;
    ///     let y = t.output(Element::F32, "y", "(16,8):(8,1)")?;
    ///     let a = t.load(x, &[16, 8], &[0.into(), 0.into()]).tf32();
    ///     let b = t.load(x, &[8, 8], &[0.into(), 0.into()]).tf32();
    ///     t.store(y, &[0.into(), 0.into()], a.dot(b, t.full(&[16, 8], 0.0)));
    ///     Ok(())
    /// })?;
    /// // 1 + 2^-12 is no number of tf32, and 1 is the nearest one.
    /// let outputs = interpret::run(&product, &[], &[("x", vec![1.0 + 2.0_f64.powi(-12); 128])])?;
    /// assert_eq!(outputs[0].1[0], Some(8.0));
    /// assert!(product.compile(None).is_ok());
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    #[track_caller]
    pub fn tf32(self) -> Value<'t> {
        self.apply("tf32", Operation::Unary(Unary::Tf32), here())
    }

    /// `self * b + c` of matrices `(M,K)`, `(K,N)` and `(M,N)`. The operands have elements of 16 or
    /// 8 bits, or of f32 that [`Value::tf32`] rounded.
    #[track_caller]
    pub fn dot(self, b: Value<'t>, c: Value<'t>) -> Value<'t> {
        self.build.apply("dot", Operation::Dot, &[self.id, b.id, c.id], here())
    }

    /// The same tile, computed by the named instruction. The tile must be the result of `dot` or of
    /// a load. The name is that of an MMA instruction, of a copy to registers with the width of a
    /// thread's loads in bits, or of a copy that stages an operand in shared memory.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program};
    ///
    /// let copied = Program::build("copied", |t| {
    ///     let x = t.input(Element::F32, "x", "(M,128):(128,1)")?;
    ///     let y = t.output(Element::F32, "y", "(M,128):(128,1)")?;
    ///     t.grid(["M"])?;
    ///     let at = [Index::block(Axis::X), 0.into()];
    ///     t.store(y, &at, t.load(x, &[1, 128], &at).atom("UniversalCopy<uint64_t>"));
    ///     Ok(())
    /// })?;
    /// let ptx = tilewright_kernel::ptx::write(
    ///     copied.compile(None)?.kernel().program(),
    ///     tilewright_kernel::ptx::Target::Sm80,
    /// )?;
    /// assert!(ptx.contains("ld.global.v2.b32") && !ptx.contains("ld.global.v4.b32"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Program::compile`](crate::Program::compile) refuses an instruction that cannot compute the
    /// value.
    #[track_caller]
    pub fn atom(self, name: &str) -> Value<'t> {
        self.apply("atom", Operation::Atom(name.to_string()), here())
    }

    /// The same tile, with this distribution over the threads of the block.
    #[track_caller]
    pub fn held(self, held: &Held) -> Value<'t> {
        self.apply("held", Operation::Held(held.clone()), here())
    }
}

macro_rules! operators {
    ($($of:ident :: $method:ident, $binary:ident, $name:literal;)*) => {
        $(
            impl<'t> ops::$of for Value<'t> {
                type Output = Value<'t>;

                #[track_caller]
                fn $method(self, other: Value<'t>) -> Value<'t> {
                    self.binary(other, Binary::$binary, $name, here())
                }
            }

            impl<'t> ops::$of<f64> for Value<'t> {
                type Output = Value<'t>;

                #[track_caller]
                fn $method(self, other: f64) -> Value<'t> {
                    let place = here();
                    self.binary(self.constant(other, place), Binary::$binary, $name, place)
                }
            }
        )*
    };
}

operators! {
    Add::add, Add, "addition";
    Sub::sub, Subtract, "subtraction";
    Mul::mul, Multiply, "multiplication";
    Div::div, Divide, "division";
    Rem::rem, Remainder, "remainder";
}

impl<'t> ops::Neg for Value<'t> {
    type Output = Value<'t>;

    #[track_caller]
    fn neg(self) -> Value<'t> {
        self.apply("negation", Operation::Unary(Unary::Negate), here())
    }
}

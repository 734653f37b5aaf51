//! Numbers of a thread, with operators.
//!
//! Law: an operator is one instruction on the type of its operands, which must agree; nothing is
//! converted implicitly. Types of 8 bits have no arithmetic: convert them first.

mod sources;

use std::ops;

use super::Build;
use super::core::Core;
use crate::element::Element;
use crate::error::Reason;
use crate::program::operation::{Binary, Comparison, Format, Number, Operation, Rounding, Unary};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// A number that each thread has in a register.
///
/// Operators and methods add instructions; the numbers exist when the kernel runs. Both operands
/// have one type. A Rust number on the right of an operator gets the type of the left operand.
///
/// ```
/// use tilewright_kernel::{Fragment, KernelError};
///
/// /// `x * sigmoid(x)`, element by element.
/// fn silu<'k>(x: &Fragment<'k>) -> Result<Fragment<'k>, KernelError> {
///     x.map(|x| Ok(x * ((x * -1.0).exp() + 1.0).recip()))
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Num<'k> {
    build: &'k Build,
    register: Register,
    element: Element,
}

/// A condition that is true or false in each thread.
#[derive(Clone, Copy)]
pub struct Flag<'k> {
    pub(crate) build: &'k Build,
    pub(crate) register: Register,
}

impl std::fmt::Debug for Num<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.register, self.element)
    }
}

impl std::fmt::Debug for Flag<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.register)
    }
}

/// The type of the arithmetic for an element type; None for types without arithmetic.
pub(crate) fn arithmetic(element: Element) -> Option<Number> {
    Some(match element {
        Element::U8 | Element::I8 | Element::E4M3 | Element::E5M2 => return None,
        Element::U16 => Number::U16,
        Element::I16 => Number::I16,
        Element::U32 => Number::U32,
        Element::I32 => Number::I32,
        Element::U64 => Number::U64,
        Element::I64 => Number::I64,
        Element::F16 => Number::F16,
        Element::Bf16 => Number::Bf16,
        Element::F32 => Number::F32,
        Element::F64 => Number::F64,
    })
}

/// The format of an element in a register of its own.
fn format(element: Element) -> Format {
    match element {
        Element::U8 => Format::U8,
        Element::I8 => Format::I8,
        Element::E4M3 => Format::E4M3,
        Element::E5M2 => Format::E5M2,
        other => Format::Number(arithmetic(other).unwrap_or(Number::U16)),
    }
}

/// The width of a register of one element.
pub(crate) fn width_of(element: Element) -> Width {
    Width::of_bits(element.bits().max(16)).unwrap_or(Width::Bits64)
}

/// A type mismatch of operands is reported at the end of the enclosing statement, because an
/// operator returns no `Result`.
impl Core {
    pub(crate) fn converted(&mut self, register: Register, from: Element, to: Element) -> Register {
        use Element::{Bf16, E4M3, E5M2, F16, F32};
        if from == to {
            return register;
        }
        let convert = |from: Format, to: Format, rounding: Rounding| Operation::Convert { from, to, rounding };
        let rounding = if to.is_float() { Rounding::Nearest } else { Rounding::Zero };
        match (from, to) {
            // 8-bit floating-point numbers are converted through f16 and f32.
            (E4M3 | E5M2, to) => {
                let pair = self.pure(Operation::WidenPair { from: format(from) }, [register], Width::Bits32);
                let half = self.pure_many(Operation::Unpack, [pair], &[Width::Bits16, Width::Bits16])[0];
                self.converted(half, F16, to)
            }
            (F32, E4M3 | E5M2) => {
                let zero = self.constant(0, Width::Bits32);
                self.pure(Operation::ConvertPair { to: format(to) }, [register, zero], Width::Bits16)
            }
            (from, E4M3 | E5M2) => {
                let wide = self.converted(register, from, F32);
                self.converted(wide, F32, to)
            }
            // Between f16 and bf16, and from and to integers, through f32 (f16 and bf16 have no
            // direct conversion).
            (F16, Bf16) | (Bf16, F16) => {
                let wide = self.converted(register, from, F32);
                self.converted(wide, F32, to)
            }
            (Bf16, to) if to != F32 => {
                let wide = self.converted(register, from, F32);
                self.converted(wide, F32, to)
            }
            (from, Bf16) if from != F32 => {
                let wide = self.converted(register, from, F32);
                self.converted(wide, F32, to)
            }
            _ => self.pure(convert(format(from), format(to), rounding), [register], width_of(to)),
        }
    }
}

impl<'k> Num<'k> {
    pub(crate) fn new(build: &'k Build, register: Register, element: Element) -> Num<'k> {
        Num { build, register, element }
    }

    pub(super) fn build(self) -> &'k Build {
        self.build
    }

    pub(crate) fn register(self) -> Register {
        self.register
    }

    /// The type.
    pub fn element(self) -> Element {
        self.element
    }

    #[track_caller]
    fn unary(self, operation: Unary, name: &'static str) -> Num<'k> {
        let (mut core, location) = self.build.begin(name);
        let Some(number) = arithmetic(self.element) else {
            drop(core);
            self.build.complain(Reason::Arithmetic { operation: name, element: self.element }.at(name, location));
            return self;
        };
        let register = core.pure(Operation::Unary(operation, number), [self.register], width_of(self.element));
        Num { register, ..self }
    }

    #[track_caller]
    pub(super) fn binary(self, other: Num<'k>, operation: Binary, name: &'static str) -> Num<'k> {
        let (mut core, location) = self.build.begin(name);
        let refusal = match arithmetic(self.element) {
            None => Reason::Arithmetic { operation: name, element: self.element },
            Some(_) if self.element != other.element => Reason::Elements { wanted: self.element, given: other.element },
            Some(number) => {
                let inputs = [self.register, other.register];
                let register = core.pure(Operation::Binary(operation, number), inputs, width_of(self.element));
                return Num { register, ..self };
            }
        };
        drop(core);
        self.build.complain(refusal.at(name, location));
        self
    }

    #[track_caller]
    fn compare(self, other: Num<'k>, comparison: Comparison) -> Flag<'k> {
        let (mut core, location) = self.build.begin("compare");
        let number = arithmetic(self.element).filter(|_| self.element == other.element);
        let Some(number) = number else {
            drop(core);
            let refusal = Reason::Elements { wanted: self.element, given: other.element };
            self.build.complain(refusal.at("compare", location));
            return self.build.flag(false);
        };
        let inputs = [self.register, other.register];
        let register = core.pure(Operation::Compare(comparison, number), inputs, Width::Predicate);
        drop(core);
        Flag { build: self.build, register }
    }

    /// Converts the number to another type: to floating point to nearest, and to an integer toward
    /// zero.
    ///
    /// Values outside of an integer type saturate; NaN becomes 0, or only the highest bit if one of
    /// the types is f64 or a 64-bit integer. From f64 and integers to bf16, e4m3 and e5m2, rounding
    /// happens twice, first to f32. e4m3 and e5m2 saturate.
    #[track_caller]
    pub fn to(self, element: Element) -> Num<'k> {
        let (mut core, _) = self.build.begin("to");
        let register = core.converted(self.register, self.element, element);
        drop(core);
        Num { register, element, ..self }
    }

    /// `self * b + c`, rounded once.
    #[track_caller]
    pub fn multiply_add(self, b: Num<'k>, c: Num<'k>) -> Num<'k> {
        let (mut core, location) = self.build.begin("multiply_add");
        let agree = self.element == b.element && self.element == c.element;
        let Some(number) = arithmetic(self.element).filter(|_| agree) else {
            drop(core);
            let refusal = Reason::Elements { wanted: self.element, given: b.element };
            self.build.complain(refusal.at("multiply_add", location));
            return self;
        };
        let inputs = [self.register, b.register, c.register];
        let register = core.pure(Operation::MultiplyAdd(number), inputs, width_of(self.element));
        Num { register, ..self }
    }

    /// The lesser of two numbers; NaN if one is NaN, as NumPy's `minimum`.
    #[track_caller]
    pub fn min(self, other: Num<'k>) -> Num<'k> {
        let operation = if self.element.is_float() { Binary::MinimumNan } else { Binary::Minimum };
        self.binary(other, operation, "minimum")
    }

    /// The greater of two numbers; NaN if one is NaN, as NumPy's `maximum`.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    /// use tilewright_kernel::ptx::{Target, write};
    ///
    /// let ptx = |ignores: bool| {
    ///     let kernel = Kernel::build("positive", |k| {
    ///         k.threads(128)?;
    ///         let (x, y) = (k.input::<f32>("x", "(128,1):(1,128)")?, k.output::<f32>("y", "(128,1):(1,128)")?);
    ///         let own = x.thread_part()?.load()?;
    ///         let zero = k.number(0.0_f32);
    ///         own.set(&[if ignores { own.numbers()?[0].fmax(zero) } else { own.numbers()?[0].max(zero) }])?;
    ///         y.thread_part()?.store(&own)
    ///     });
    ///     write(kernel.unwrap().program(), Target::Sm80).unwrap()
    /// };
    /// assert!(ptx(false).contains("max.NaN.f32") && ptx(true).contains("max.f32"));
    /// ```
    #[track_caller]
    pub fn max(self, other: Num<'k>) -> Num<'k> {
        let operation = if self.element.is_float() { Binary::MaximumNan } else { Binary::Maximum };
        self.binary(other, operation, "maximum")
    }

    /// The lesser of two numbers; the other one if one is NaN, as C's `fmin`.
    #[track_caller]
    pub fn fmin(self, other: Num<'k>) -> Num<'k> {
        self.binary(other, Binary::Minimum, "fmin")
    }

    /// The greater of two numbers; the other one if one is NaN, as C's `fmax`.
    #[track_caller]
    pub fn fmax(self, other: Num<'k>) -> Num<'k> {
        self.binary(other, Binary::Maximum, "fmax")
    }

    /// The magnitude.
    #[track_caller]
    pub fn abs(self) -> Num<'k> {
        self.unary(Unary::Magnitude, "abs")
    }

    /// The square root.
    #[track_caller]
    pub fn sqrt(self) -> Num<'k> {
        self.unary(Unary::SquareRoot, "sqrt")
    }

    /// `1 / sqrt(self)`.
    #[track_caller]
    pub fn rsqrt(self) -> Num<'k> {
        self.unary(Unary::ReciprocalSquareRoot, "rsqrt")
    }

    /// `1 / self`.
    #[track_caller]
    pub fn recip(self) -> Num<'k> {
        self.unary(Unary::Reciprocal, "recip")
    }

    /// `2^self`.
    #[track_caller]
    pub fn exp2(self) -> Num<'k> {
        self.unary(Unary::Exp2, "exp2")
    }

    /// `e^self`, as `2^(self * log2(e))`.
    #[track_caller]
    pub fn exp(self) -> Num<'k> {
        let factor = self.build.number_of(self.element, std::f64::consts::LOG2_E);
        self.binary(factor, Binary::Multiply, "exp").unary(Unary::Exp2, "exp")
    }

    /// `log2(self)`.
    #[track_caller]
    pub fn log2(self) -> Num<'k> {
        self.unary(Unary::Log2, "log2")
    }

    /// `tanh(self)`.
    #[track_caller]
    pub fn tanh(self) -> Num<'k> {
        self.unary(Unary::HyperbolicTangent, "tanh")
    }

    /// The floor: the greatest whole number that is not above it; for f32 and f64.
    #[track_caller]
    pub fn floor(self) -> Num<'k> {
        self.unary(Unary::Floor, "floor")
    }

    /// The ceiling: the least whole number that is not below it; for f32 and f64.
    #[track_caller]
    pub fn ceil(self) -> Num<'k> {
        self.unary(Unary::Ceiling, "ceil")
    }

    /// The nearest whole number, ties to even; for f32 and f64.
    #[track_caller]
    pub fn round_even(self) -> Num<'k> {
        self.unary(Unary::RoundEven, "round")
    }

    /// The nearest number of tf32, ties away from 0; for f32. An MMA instruction of tf32 uses
    /// operands that are rounded so without further rounding.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret, ptx};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("rounded", |k| {
    ///     k.threads(32)?;
    ///     let (x, y) = (k.input::<f32>("x", "(32,1):(1,32)")?, k.output::<f32>("y", "(32,1):(1,32)")?);
    ///     y.thread_part()?.store(&x.thread_part()?.load()?.map(|x| Ok(x.round_tf32()))?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &[1.0_f32 + 3.0 / 2048.0; 32])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<f32>("y")?[0], 1.0 + 2.0 / 1024.0);
    /// let text = ptx::write(kernel.program(), ptx::Target::Sm80)?;
    /// assert!(text.contains("cvt.rna.tf32.f32"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn round_tf32(self) -> Num<'k> {
        if self.element != Element::F32 {
            let refusal = Reason::Arithmetic { operation: "rounding to tf32", element: self.element };
            self.build.complain(refusal.at("round_tf32", Location::caller()));
            return self;
        }
        self.unary(Unary::RoundTf32, "round_tf32")
    }

    /// A constant in the type of this number.
    #[track_caller]
    pub fn like(self, value: f64) -> Num<'k> {
        self.build.number_of(self.element, value)
    }

    /// Whether it is less.
    #[track_caller]
    pub fn lt(self, other: Num<'k>) -> Flag<'k> {
        self.compare(other, Comparison::Less)
    }

    /// Whether it is less or equal.
    #[track_caller]
    pub fn le(self, other: Num<'k>) -> Flag<'k> {
        self.compare(other, Comparison::LessEqual)
    }

    /// Whether it is greater.
    #[track_caller]
    pub fn gt(self, other: Num<'k>) -> Flag<'k> {
        self.compare(other, Comparison::Greater)
    }

    /// Whether both are equal.
    #[track_caller]
    pub fn eq(self, other: Num<'k>) -> Flag<'k> {
        self.compare(other, Comparison::Equal)
    }
}

impl<'k> Flag<'k> {
    /// `yes` if this is true, otherwise `no`.
    #[track_caller]
    pub fn select(self, yes: Num<'k>, no: Num<'k>) -> Num<'k> {
        let location = Location::caller();
        if yes.element != no.element {
            let refusal = Reason::Elements { wanted: yes.element, given: no.element };
            self.build.complain(refusal.at("select", location));
            return yes;
        }
        let mut core = self.build.core_for(Source { statement: "select", location });
        let inputs = [self.register, yes.register, no.register];
        let register = core.pure(Operation::Select, inputs, width_of(yes.element));
        Num { register, ..yes }
    }

    /// Whether both are true.
    pub fn and(self, other: Flag<'k>) -> Flag<'k> {
        let operation = Operation::Binary(Binary::And, Number::U16);
        let register = self.build.core().pure(operation, [self.register, other.register], Width::Predicate);
        Flag { register, ..self }
    }

    /// Whether at least one is true.
    pub fn or(self, other: Flag<'k>) -> Flag<'k> {
        let operation = Operation::Binary(Binary::Or, Number::U16);
        let register = self.build.core().pure(operation, [self.register, other.register], Width::Predicate);
        Flag { register, ..self }
    }

    /// Whether it is false.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Flag<'k> {
        let register =
            self.build.core().pure(Operation::Unary(Unary::Not, Number::U16), [self.register], Width::Predicate);
        Flag { register, ..self }
    }
}

macro_rules! operators {
    ($($of:ident :: $method:ident, $binary:ident, $name:literal;)*) => {
        $(
            impl<'k> ops::$of for Num<'k> {
                type Output = Num<'k>;

                #[track_caller]
                fn $method(self, other: Num<'k>) -> Num<'k> {
                    self.binary(other, Binary::$binary, $name)
                }
            }

            impl<'k> ops::$of<f64> for Num<'k> {
                type Output = Num<'k>;

                #[track_caller]
                fn $method(self, other: f64) -> Num<'k> {
                    self.binary(self.like(other), Binary::$binary, $name)
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
}

impl<'k> ops::Neg for Num<'k> {
    type Output = Num<'k>;

    #[track_caller]
    fn neg(self) -> Num<'k> {
        self.unary(Unary::Negate, "negation")
    }
}

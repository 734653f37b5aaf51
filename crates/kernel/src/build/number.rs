//! Numbers of a thread, with operators.
//!
//! Law: an operator is one instruction on the type of its operands, which must agree; nothing is
//! converted silently. Types of 8 bits are stored, not computed with: convert them first.

use std::ops;

use super::Build;
use super::core::Core;
use crate::element::{Element, ElementType};
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Comparison, Format, Number, Operation, Rounding, Unary};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// A number that each thread has in a register.
#[derive(Clone, Copy)]
pub struct Num<'k> {
    build: &'k Build,
    register: Register,
    element: Element,
}

/// Something that is true or false in each thread.
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

/// How arithmetic reads elements of this type; none for those that are only stored.
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

/// What a conversion reads of an element that is alone in a register.
fn format(element: Element) -> Format {
    match element {
        Element::U8 => Format::U8,
        Element::I8 => Format::I8,
        Element::E4M3 => Format::E4M3,
        Element::E5M2 => Format::E5M2,
        other => Format::Number(arithmetic(other).unwrap_or(Number::U16)),
    }
}

/// The register of one element.
pub(crate) fn width_of(element: Element) -> Width {
    Width::of_bits(element.bits().max(16)).unwrap_or(Width::Bits64)
}

/// Operands that do not go together are found when the statement around them ends: an operator has
/// no result to refuse with.
impl Core {
    pub(crate) fn converted(&mut self, register: Register, from: Element, to: Element) -> Register {
        use Element::{Bf16, E4M3, E5M2, F16, F32};
        if from == to {
            return register;
        }
        let convert = |from: Format, to: Format, rounding: Rounding| Operation::Convert { from, to, rounding };
        let rounding = if to.is_float() { Rounding::Nearest } else { Rounding::Zero };
        match (from, to) {
            // Bytes that are floating-point numbers go by way of f16 and f32.
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
            // Between the two types of 16 bits, and from and to integers, by way of f32 (f16 and
            // bf16 have no others).
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
        let location = Location::caller();
        let mut core = self.build.core();
        core.begin(Source { statement: name, location });
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
        let location = Location::caller();
        let mut core = self.build.core();
        core.begin(Source { statement: name, location });
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
        let location = Location::caller();
        let mut core = self.build.core();
        core.begin(Source { statement: "compare", location });
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

    /// The number in another type, rounded to nearest, or toward zero to an integer.
    ///
    /// What lies beyond an integer type becomes its end; NaN becomes 0, or the highest bit alone
    /// where one of both types is f64 or a 64-bit integer. From f64 and integers to bf16, e4m3 and
    /// e5m2 it is rounded twice, to f32 first. e4m3 and e5m2 saturate.
    #[track_caller]
    pub fn to(self, element: Element) -> Num<'k> {
        let location = Location::caller();
        let mut core = self.build.core();
        core.begin(Source { statement: "to", location });
        let register = core.converted(self.register, self.element, element);
        drop(core);
        Num { register, element, ..self }
    }

    /// `self * b + c`, rounded once.
    #[track_caller]
    pub fn multiply_add(self, b: Num<'k>, c: Num<'k>) -> Num<'k> {
        let location = Location::caller();
        let mut core = self.build.core();
        core.begin(Source { statement: "multiply_add", location });
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

    /// The lesser; the other one if one is NaN.
    #[track_caller]
    pub fn min(self, other: Num<'k>) -> Num<'k> {
        self.binary(other, Binary::Minimum, "minimum")
    }

    /// The greater; the other one if one is NaN.
    #[track_caller]
    pub fn max(self, other: Num<'k>) -> Num<'k> {
        self.binary(other, Binary::Maximum, "maximum")
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

    /// The same constant in the type of this number.
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
    /// The one number where this is true, the other elsewhere.
    #[track_caller]
    pub fn select(self, yes: Num<'k>, no: Num<'k>) -> Num<'k> {
        let location = Location::caller();
        if yes.element != no.element {
            let refusal = Reason::Elements { wanted: yes.element, given: no.element };
            self.build.complain(refusal.at("select", location));
            return yes;
        }
        let mut core = self.build.core();
        core.begin(Source { statement: "select", location });
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

    /// Whether one is true, or both.
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

impl Build {
    /// A constant.
    pub fn number<T: ElementType>(&self, value: T) -> Num<'_> {
        let register = self.core().constant(value.to_bits(), width_of(T::ELEMENT));
        Num::new(self, register, T::ELEMENT)
    }

    /// A constant of a type, rounded to it.
    pub fn number_of(&self, element: Element, value: f64) -> Num<'_> {
        let bits = match element {
            Element::F64 => value.to_bits(),
            Element::F32 => u64::from((value as f32).to_bits()),
            Element::F16 => u64::from(half::f16::from_f64(value).to_bits()),
            Element::Bf16 => u64::from(half::bf16::from_f64(value).to_bits()),
            Element::U64 => value as u64,
            Element::I64 => value as i64 as u64,
            Element::U32 => u64::from(value as u32),
            Element::I32 => u64::from(value as i32 as u32),
            Element::U16 => u64::from(value as u16),
            Element::I16 => u64::from(value as i16 as u16),
            Element::U8 => u64::from(value as u8),
            Element::I8 => u64::from(value as i8 as u8),
            Element::E4M3 | Element::E5M2 => {
                return self.number_of(Element::F32, value).to(element);
            }
        };
        let register = self.core().constant(bits, width_of(element));
        Num::new(self, register, element)
    }

    /// True or false.
    pub fn flag(&self, value: bool) -> Flag<'_> {
        let register = self.core().constant(u64::from(value), Width::Predicate);
        Flag { build: self, register }
    }

    /// A number of the elements of a tensor, i32 or u32, as an index of another: where it says,
    /// that is read or written. It may be past any edge, and a negative one is, so accesses at it
    /// are predicated.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // y(m) = x(index(m)), 0 where there is no such element.
    /// let kernel = Kernel::build("picked", |k| {
    ///     let (x, index) = (k.input::<f32>("x", "K:1")?, k.input::<i32>("index", "M{div=32}:1")?);
    ///     let y = k.output::<f32>("y", "M:1")?.local_tile("32", k.block("x")?)?.thread_part()?;
    ///     let own = index.local_tile("32", k.block("x")?)?.thread_part()?.load()?.numbers()?[0];
    ///     y.store(&x.slice(tilewright_layout::coord!(k.index_of(own)?)?)?.load_predicated()?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[("K", 5), ("M", 32)])?;
    /// interpreter.tensor(0, &[1.0_f32, 2.0, 3.0, 4.0, 5.0])?;
    /// interpreter.tensor(1, &(0..32).map(|at| 3 - at).collect::<Vec<i32>>())?;
    /// let checked = interpreter.check()?;
    /// assert_eq!(checked.run.tensor::<f32>("y")?[..6], [4.0, 3.0, 2.0, 1.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the number is of another type.
    #[track_caller]
    pub fn index_of(&self, number: Num<'_>) -> Result<tilewright_layout::symbolic::Expr, KernelError> {
        let location = Location::caller();
        if !matches!(number.element, Element::I32 | Element::U32) {
            let refusal = Reason::Elements { wanted: Element::I32, given: number.element };
            return Err(refusal.at("index_of", location));
        }
        let mut core = self.core();
        core.begin(Source { statement: "index_of", location });
        // Without a sign, negative numbers are greater than all others.
        let most = core.constant(i32::MAX as u64, Width::Bits32);
        let least = Operation::Binary(Binary::Minimum, Number::U32);
        let register = core.pure(least, [number.register, most], Width::Bits32);
        Ok(core.new_variable(register, i32::MAX.into(), None))
    }

    /// A number that the launch passes, by its name.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("scaled", |k| {
    ///     let x = k.input::<f32>("x", "M{div=32}:1")?.local_tile("32", k.block("x")?)?.thread_part()?;
    ///     let y = k.output::<f32>("y", "M:1")?.local_tile("32", k.block("x")?)?.thread_part()?;
    ///     let factor = k.scalar::<f32>("factor")?;
    ///     y.store(&x.load()?.map(|x| Ok(x * factor))?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[("M", 32)])?;
    /// interpreter.tensor(0, &[2.0_f32; 32])?.number("factor", 1.5_f32)?;
    /// assert_eq!(interpreter.check()?.run.tensor::<f32>("y")?[0], 3.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: a number of this name has another type; numbers of 8 bits are not passed.
    #[track_caller]
    pub fn scalar<T: ElementType>(&self, name: &str) -> Result<Num<'_>, KernelError> {
        self.scalar_of(T::ELEMENT, name)
    }

    /// As [`Build::scalar`], for a type that is a value.
    ///
    /// Errors: as [`Build::scalar`].
    #[track_caller]
    pub fn scalar_of(&self, element: Element, name: &str) -> Result<Num<'_>, KernelError> {
        use crate::program::scalar::Scalar;
        let location = Location::caller();
        let mut core = self.core();
        core.begin(Source { statement: "scalar", location });
        let other = core.scalars.iter().find_map(|scalar| match scalar {
            Scalar::Given { name: own, element: given } if own == name && *given != element => Some(*given),
            _ => None,
        });
        let refusal = match other {
            Some(given) => Some(Reason::Elements { wanted: given, given: element }),
            None if element.bits() < 16 => Some(Reason::Arithmetic { operation: "passing", element }),
            None => None,
        };
        if let Some(refusal) = refusal {
            return Err(refusal.at("scalar", location));
        }
        let register = core.scalar(Scalar::Given { name: name.to_string(), element });
        drop(core);
        Ok(Num::new(self, register, element))
    }

    /// The value of an index as a number of 32 bits with a sign.
    ///
    /// Errors: it has too many terms.
    #[track_caller]
    pub fn index(&self, index: &tilewright_layout::symbolic::Expr) -> Result<Num<'_>, KernelError> {
        let location = Location::caller();
        let register = self.core().lower(index, Width::Bits32).map_err(|refusal| refusal.at("index", location))?;
        Ok(Num::new(self, register, Element::I32))
    }
}

//! Words of arithmetic: the types of numbers, and what is done with one or two of them.

/// How an arithmetic operation reads the bits of its registers.
///
/// Integers wrap. Floating-point numbers round to nearest, ties to even, and keep subnormal
/// numbers, except where [`Unary`] names an approximation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// 16 bits, signed.
    I16,
    /// 16 bits.
    U16,
    /// 32 bits, signed.
    I32,
    /// 32 bits.
    U32,
    /// 64 bits, signed.
    I64,
    /// 64 bits.
    U64,
    /// IEEE binary16, in 16 bits.
    F16,
    /// Upper half of a binary32, in 16 bits.
    Bf16,
    /// Two [`Number::F16`] in 32 bits.
    F16x2,
    /// Two [`Number::Bf16`] in 32 bits.
    Bf16x2,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Number {
    /// How many bits a register of it has.
    pub fn bits(self) -> u32 {
        match self {
            Number::I16 | Number::U16 | Number::F16 | Number::Bf16 => 16,
            Number::I32 | Number::U32 | Number::F16x2 | Number::Bf16x2 | Number::F32 => 32,
            Number::I64 | Number::U64 | Number::F64 => 64,
        }
    }

    /// Whether it is a floating-point number, or two.
    pub fn is_float(self) -> bool {
        !matches!(self, Number::I16 | Number::U16 | Number::I32 | Number::U32 | Number::I64 | Number::U64)
    }
}

/// The source or destination format of a conversion: numbers in registers, and narrower ones in the
/// low bits of registers.
///
/// A register of a type of 8 bits has 16: the byte is in the low half, and the high half is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// As [`Number`] says. [`Number::F16x2`] and [`Number::Bf16x2`] are given by
    /// [`super::Operation::ConvertPair`] alone.
    Number(Number),
    /// 8 bits, signed, extended to 16.
    I8,
    /// 8 bits, extended by zeros to 16.
    U8,
    /// 8 bits: 4 of exponent, 3 of mantissa. Target of [`super::Operation::ConvertPair`] alone.
    E4M3,
    /// 8 bits: 5 of exponent, 2 of mantissa. Target of [`super::Operation::ConvertPair`] alone.
    E5M2,
}

/// Operations on one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-a`.
    Negate,
    /// `|a|`.
    Magnitude,
    /// Each bit flipped; of a predicate too.
    Not,
    /// `1/a`, f32 within 1 unit in the last place; exact rounding for f64.
    Reciprocal,
    /// The square root, rounded to nearest.
    SquareRoot,
    /// `1/sqrt(a)`, f32 within a relative error of 2^-22.
    ReciprocalSquareRoot,
    /// `2^a`, f32 within 2 units in the last place; subnormal results are 0.
    Exp2,
    /// `log2(a)`, f32 within an absolute error of 2^-22 near 1.
    Log2,
    /// `sin(a)`, f32, absolute error 2^-20 for `|a| <= pi`.
    Sine,
    /// `cos(a)`, as the sine.
    Cosine,
    /// `tanh(a)`, f32 within a relative error of 2^-11.
    HyperbolicTangent,
    /// The greatest whole number up to `a`, f32 and f64, exact. Infinities and NaN stay.
    Floor,
    /// The least whole number from `a` on, as [`Unary::Floor`].
    Ceiling,
    /// The nearest whole number, ties to even, as [`Unary::Floor`].
    RoundEven,
    /// The nearest number of tf32, which has 10 bits behind the first one, as f32: of two that are
    /// as near, the one of greater magnitude. Of f32 alone.
    RoundTf32,
    /// How many bits are set; 32 and 64 bits, gives 32.
    CountOnes,
    /// The place of the highest set bit counted from the top (`clz`); gives 32 bits.
    CountLeadingZeros,
}

/// Operations on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a * b`, the low half for integers.
    Multiply,
    /// The high half of the product of two integers.
    MultiplyHigh,
    /// Two 32-bit integers to the whole product of 64.
    MultiplyWide,
    /// `a / b`: toward zero for integers (0 for `b = 0`), rounded to nearest for floating-point
    /// numbers.
    Divide,
    /// The remainder of integers in [`Binary::Divide`].
    Remainder,
    /// The lesser; the other one if one is NaN.
    Minimum,
    /// The greater; the other one if one is NaN.
    Maximum,
    /// The lesser; NaN if one is NaN. Integers have no NaN.
    MinimumNan,
    /// The greater; NaN if one is NaN.
    MaximumNan,
    /// Bit by bit; of predicates too.
    And,
    /// Bit by bit; of predicates too.
    Or,
    /// Bit by bit; of predicates too.
    Xor,
    /// `a` to the left by `b` (32 bits); 0 from the width on.
    ShiftLeft,
    /// `a` to the right by `b` (32 bits), filled with the sign of a signed number.
    ShiftRight,
}

/// Comparisons. Of floating-point numbers, all but [`Comparison::NotEqual`] are false where one is
/// NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `a = b`.
    Equal,
    /// `a != b`; true where one is NaN.
    NotEqual,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessEqual,
    /// `a > b`.
    Greater,
    /// `a >= b`.
    GreaterEqual,
}

/// How a conversion rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Toward zero. A floating-point number beyond an integer type becomes its end. NaN becomes 0,
    /// or the highest bit alone where one of both types is f64 or a 64-bit integer.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
}

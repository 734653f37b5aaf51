//! Arithmetic: the types of numbers, and the operations on one or two of them.

/// How an arithmetic operation interprets the bits of its registers.
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
    /// IEEE half precision, in 16 bits.
    F16,
    /// bfloat16, the upper half of an f32, in 16 bits.
    Bf16,
    /// Two [`Number::F16`] in 32 bits.
    F16x2,
    /// Two [`Number::Bf16`] in 32 bits.
    Bf16x2,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Number {
    /// The number of bits of a register.
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

/// The source or destination format of a conversion: a number in a register, or a narrower one in
/// the low bits of a register.
///
/// A register of a type of 8 bits has 16: the byte is in the low half, and the high half is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// As [`Number`]. Only [`super::Operation::ConvertPair`] produces [`Number::F16x2`] and
    /// [`Number::Bf16x2`].
    Number(Number),
    /// 8 bits, signed, extended to 16.
    I8,
    /// 8 bits, extended by zeros to 16.
    U8,
    /// 8 bits: 4 exponent bits, 3 mantissa bits. Only [`super::Operation::ConvertPair`] produces
    /// it.
    E4M3,
    /// 8 bits: 5 exponent bits, 2 mantissa bits. Only [`super::Operation::ConvertPair`] produces
    /// it.
    E5M2,
}

/// Operations on one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-a`.
    Negate,
    /// `|a|`.
    Magnitude,
    /// Bitwise not; also for predicates.
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
    /// The floor: the greatest whole number that is at most `a`; f32 and f64, exact. Infinities and
    /// NaN stay.
    Floor,
    /// The ceiling: the least whole number that is at least `a`; as [`Unary::Floor`].
    Ceiling,
    /// The nearest whole number, ties to even, as [`Unary::Floor`].
    RoundEven,
    /// The nearest number of tf32 (10 fraction bits), as f32; ties away from 0. For f32 only.
    RoundTf32,
    /// The number of set bits, of 32 or 64 bits, as 32 bits.
    CountOnes,
    /// The number of leading zeros (`clz`), as 32 bits.
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
    /// The minimum; the other one if one is NaN.
    Minimum,
    /// The maximum; the other one if one is NaN.
    Maximum,
    /// The minimum; NaN if one is NaN. Integers have no NaN.
    MinimumNan,
    /// The maximum; NaN if one is NaN.
    MaximumNan,
    /// Bitwise and; also for predicates.
    And,
    /// Bitwise or; also for predicates.
    Or,
    /// Bitwise exclusive or; also for predicates.
    Xor,
    /// `a` shifted left by `b` (32 bits); 0 if `b` is at least the width.
    ShiftLeft,
    /// `a` shifted right by `b` (32 bits), filled with the sign of a signed number.
    ShiftRight,
}

/// Comparisons. For floating-point numbers, all but [`Comparison::NotEqual`] are false if one is
/// NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `a = b`.
    Equal,
    /// `a != b`; true if one is NaN.
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

/// The rounding mode of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Toward zero. A floating-point number beyond an integer type becomes its least or greatest
    /// number. NaN becomes 0, or only the highest bit set if one of both types is f64 or a 64-bit
    /// integer.
    Zero,
    /// Toward minus infinity.
    Down,
    /// Toward plus infinity.
    Up,
}

//! Functions of one argument.
//!
//! Law: the result of [`Function::number`] differs from the first value of [`Function::value`] by
//! at most the second. The first value is the function itself in f64, not the steps of the kernel.

use tilewright_kernel::{Build, Element, Num};

use crate::extremes::greater;

/// Functions of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Exp,
    Tanh,
    Abs,
    Sqrt,
    Recip,
    Relu,
    Sigmoid,
    Silu,
    Gelu,
    GeluTanh,
}

/// The tail of the normal distribution above `x >= 0` is two to the power of this polynomial,
/// within 1.2e-7 up to [`TAIL_END`]: fitted to the logarithm, weighted by the tail, with a first
/// coefficient that halves numbers near 0 exactly.
const TAIL: [f64; 7] = [
    -1.0,
    -1.151_116_859_596_666,
    -0.459_082_711_391_011_8,
    -0.052_926_796_113_316_7,
    0.007_724_098_620_303_8,
    -0.000_647_780_292_352_5,
    0.000_017_758_422_082,
];
/// From here on the tail is 0 in f32; the polynomial grows again far beyond.
const TAIL_END: f64 = 16.0;
/// The error of the tail, including roundings in f32.
const TAIL_OFF: f64 = 4e-7;

/// `sqrt(2 / pi)`, and the coefficient of the cube in the tanh approximation of gelu.
const GELU: [f64; 2] = [0.797_884_560_802_865_4, 0.044_715];

impl Function {
    /// All functions, with their names in texts.
    pub(super) const NAMES: [(&'static str, Function); 10] = [
        ("exp", Function::Exp),
        ("tanh", Function::Tanh),
        ("abs", Function::Abs),
        ("sqrt", Function::Sqrt),
        ("recip", Function::Recip),
        ("relu", Function::Relu),
        ("sigmoid", Function::Sigmoid),
        ("silu", Function::Silu),
        ("gelu", Function::Gelu),
        ("gelu_tanh", Function::GeluTanh),
    ];

    pub(super) fn name(self) -> &'static str {
        Function::NAMES.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }

    /// The value at `x`, whose error is at most `off`, and a bound on the error of the result in
    /// f32, or in the type that rounds by `rounding`, which has no exponentials if it is f64.
    pub(super) fn value(self, x: f64, off: f64, rounding: f64) -> (f64, f64) {
        // The argument of the exponential is multiplied by log2(e), and that product is rounded
        // too.
        let power = |x: f64| (4.0 + x.abs() * 2.0) * rounding;
        match self {
            Function::Exp => (x.exp(), x.exp() * (off + power(x))),
            Function::Tanh => (x.tanh(), off + x.tanh().abs() / 1024.0),
            Function::Abs => (x.abs(), off),
            Function::Sqrt => (x.sqrt(), off / x.sqrt().max(f64::MIN_POSITIVE) + x.sqrt() * rounding),
            Function::Recip => {
                let value = 1.0 / x;
                (value, value.abs() * (off / (x.abs() - off).max(0.0) + 2.0 * rounding))
            }
            Function::Relu => (greater(x, 0.0), off),
            Function::Sigmoid => {
                let value = sigmoid(x);
                // Exponentials that underflow in f32 give 0.
                (value, off * 0.25 + value * (power(x) + 4.0 * rounding) + f64::from(f32::MIN_POSITIVE))
            }
            Function::Silu => {
                let value = x * sigmoid(x);
                let own = value.abs() * (power(x) + 6.0 * rounding) + x.abs() * f64::from(f32::MIN_POSITIVE);
                (value, off * 1.1 + own)
            }
            Function::Gelu if x == f64::NEG_INFINITY => (0.0, off),
            Function::Gelu => {
                (0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2), off * 1.13 + x.abs() * TAIL_OFF)
            }
            Function::GeluTanh => {
                let inner = GELU[0] * (x + GELU[1] * x * x * x);
                (0.5 * x * (1.0 + inner.tanh()), off * 1.13 + x.abs() / 2000.0)
            }
        }
    }

    /// Emits the function into a kernel.
    pub(super) fn number<'k>(self, k: &'k Build, element: Element, x: Num<'k>) -> Num<'k> {
        let constant = |value: f64| k.number_of(element, value);
        match self {
            Function::Exp => x.exp(),
            Function::Tanh => x.tanh(),
            Function::Abs => x.abs(),
            Function::Sqrt => x.sqrt(),
            Function::Recip => x.recip(),
            Function::Relu => x.max(constant(0.0)),
            Function::Sigmoid => ((-x).exp() + 1.0).recip(),
            Function::Silu => x * ((-x).exp() + 1.0).recip(),
            // max(x, 0) - |x| Q(|x|) needs no branch on the sign of x.
            Function::Gelu => {
                let size = x.abs().min(constant(TAIL_END));
                let first = constant(TAIL[6]);
                let power = TAIL[..6].iter().rev().fold(first, |sum, b| sum.multiply_add(size, constant(*b)));
                (-size).multiply_add(power.exp2(), x.max(constant(0.0)))
            }
            Function::GeluTanh => {
                let [left, right] = gelu_operands(k, element, x, None);
                left * right
            }
        }
    }
}

/// The two operands whose product is `gelu_tanh(x)`, or `gelu_tanh(x + added)` where `added` was
/// scaled when it was loaded. With `w = s x`, the product is `0.5 / s` times `w (1 + tanh(w (w^2 +
/// b)))`. The argument of this tanh takes one multiplication less than in the usual form.
pub(super) fn gelu_operands<'k>(k: &'k Build, element: Element, x: Num<'k>, added: Option<Num<'k>>) -> [Num<'k>; 2] {
    let scale = (GELU[0] * GELU[1]).cbrt();
    let [by, linear, after] = [scale, GELU[0] / scale, 0.5 / scale].map(|value| k.number_of(element, value));
    let w = match added {
        None => x * by,
        Some(added) => x.multiply_add(by, added * by),
    };
    let inner = w.multiply_add(w, linear) * w;
    [w.multiply_add(inner.tanh(), w), after]
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

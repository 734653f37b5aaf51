//! The numbers that the command multiplies: their source, and the check of results.
//!
//! Law: alpha and beta are exactly the number that was typed, rounded to its type, or refused.

use std::path::Path;

use half::{bf16, f16};
use tilewright::tensor::npy;
use tilewright::tensor::{Numbers, Tensor};

use super::verify::{Limits, Outcome, Terms, judge_float, judge_integer};
use crate::output::Failure;

/// A type of matrix elements.
pub trait ProductNumber: Numbers<Sum: Sum> {
    /// A small random number.
    fn random(random: &mut Random) -> Self;
    /// The value as `f64`.
    fn value(self) -> f64;
    /// Reads a tensor from a file.
    fn read(path: &Path) -> Result<Tensor<Self>, Failure>;
}

/// A type of accumulators.
pub trait Sum: npy::NpyElement {
    /// Whether arithmetic is exact, modulo `2^32`.
    const IS_EXACT: bool;
    /// Its name, and the kind of its numbers, in words.
    const NAME: &'static str;
    /// The range of a factor, in words.
    const RANGE: &'static str;
    /// Parses a scalar; None unless it is a finite number of this type.
    fn factor(value: f64) -> Option<Self>;
    /// The value as `f64`.
    fn number(self) -> f64;
    /// Judges an element of `alpha * (sum of terms) + beta * old`.
    fn judge(self, terms: &Terms, factors: [Self; 2], old: Self) -> Outcome;
}

macro_rules! numbers {
    ($($type:ident as $file:expr, $random:expr, $value:expr;)*) => {$(
        impl ProductNumber for $type {
            fn random(random: &mut Random) -> $type {
                $random(random)
            }
            fn value(self) -> f64 {
                $value(self)
            }
            fn read(path: &Path) -> Result<Tensor<$type>, Failure> {
                $file(path)
            }
        }
    )*};
}

numbers! {
    f32 as from_file, |random: &mut Random| random.real() as f32, f64::from;
    f64 as from_file, Random::real, f64::from;
    f16 as from_file, |random: &mut Random| f16::from_f64(random.real()), f16::to_f64;
    bf16 as no_file, |random: &mut Random| bf16::from_f64(random.real()), bf16::to_f64;
    i8 as from_file, |random: &mut Random| random.bits() as i8, f64::from;
}

fn from_file<T: npy::NpyElement>(path: &Path) -> Result<Tensor<T>, Failure> {
    npy::read(path).map_err(|error| Failure::of_npy(path, &error))
}

fn no_file(path: &Path) -> Result<Tensor<bf16>, Failure> {
    Err(Failure::file(path, "NumPy files have no bf16"))
}

impl Sum for f32 {
    const IS_EXACT: bool = false;
    const NAME: &'static str = "f32";
    const RANGE: &'static str = "a finite number of magnitude up to 3.4028235e38";
    fn factor(value: f64) -> Option<f32> {
        Some(value as f32).filter(|factor| factor.is_finite())
    }
    fn number(self) -> f64 {
        f64::from(self)
    }
    fn judge(self, terms: &Terms, [alpha, beta]: [f32; 2], old: f32) -> Outcome {
        const LIMITS: Limits = Limits {
            unit: f32::EPSILON as f64 / 2.0,
            greatest: f32::MAX as f64,
            least: f32::MIN_POSITIVE as f64 * f32::EPSILON as f64,
            // Double precision is so much more precise that its own errors are a small part of the
            // bound.
            slack: 1.001,
        };
        let before = if beta == 0.0 { 0.0 } else { f64::from(beta) * f64::from(old) };
        judge_float(&LIMITS, f64::from(self), terms, f64::from(alpha), before)
    }
}

impl Sum for f64 {
    const IS_EXACT: bool = false;
    const NAME: &'static str = "f64";
    const RANGE: &'static str = "a finite number";
    fn factor(value: f64) -> Option<f64> {
        Some(value).filter(|factor| factor.is_finite())
    }
    fn number(self) -> f64 {
        self
    }
    fn judge(self, terms: &Terms, [alpha, beta]: [f64; 2], old: f64) -> Outcome {
        const LIMITS: Limits = Limits {
            unit: f64::EPSILON / 2.0,
            greatest: f64::MAX,
            least: f64::MIN_POSITIVE * f64::EPSILON,
            // The reference has the same precision.
            slack: 2.001,
        };
        let before = if beta == 0.0 { 0.0 } else { beta * old };
        judge_float(&LIMITS, self, terms, alpha, before)
    }
}

impl Sum for i32 {
    const IS_EXACT: bool = true;
    const NAME: &'static str = "i32";
    const RANGE: &'static str = "a whole number from -2147483648 to 2147483647";
    fn factor(value: f64) -> Option<i32> {
        let factor = value as i32;
        (f64::from(factor) == value).then_some(factor)
    }
    fn number(self) -> f64 {
        f64::from(self)
    }
    fn judge(self, terms: &Terms, factors: [i32; 2], old: i32) -> Outcome {
        judge_integer(self, terms, factors, old)
    }
}

/// Pseudorandom numbers, the same in each run (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// A random number of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number between -1 and 1.
    pub fn real(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

//! The numbers that the command multiplies: where they come from, and how far a sum may be off.

use std::path::Path;

use half::{bf16, f16};
use tilewright::tensor::npy;
use tilewright::tensor::{Numbers, Tensor};

use super::about;
use crate::terminal::Failure;

/// A type of numbers as the command sees it.
pub trait Number: Numbers<Sum: Sum> {
    /// A small random number.
    fn random(random: &mut Random) -> Self;
    /// Its value.
    fn value(self) -> f64;
    /// The tensor in a file.
    fn read(path: &Path) -> Result<Tensor<Self>, Failure>;
}

/// A type of sums as the command sees it.
pub trait Sum: npy::Element {
    /// Half of the distance from 1 to the next number; 0 where arithmetic is exact.
    const UNIT: f64;
    /// The greatest number; sums past it are infinite.
    const GREATEST: f64;
    /// A factor that was typed; none where it is no number of this type.
    fn factor(value: f64) -> Option<Self>;
    /// Its value.
    fn number(self) -> f64;
    /// How far it is from a value.
    fn off(self, value: f64) -> f64;
}

macro_rules! numbers {
    ($($type:ident as $file:expr, $random:expr, $value:expr;)*) => {$(
        impl Number for $type {
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
    i8 as from_file, |random: &mut Random| random.next() as i8, f64::from;
}

fn from_file<T: npy::Element>(path: &Path) -> Result<Tensor<T>, Failure> {
    npy::read(path).map_err(|error| about(path, &error))
}

fn no_file(path: &Path) -> Result<Tensor<bf16>, Failure> {
    Err(Failure::Usage(format!("{}: NumPy files have no bf16", path.display())))
}

impl Sum for f32 {
    const UNIT: f64 = f32::EPSILON as f64 / 2.0;
    const GREATEST: f64 = f32::MAX as f64;
    fn factor(value: f64) -> Option<f32> {
        Some(value as f32)
    }
    fn number(self) -> f64 {
        f64::from(self)
    }
    fn off(self, value: f64) -> f64 {
        (f64::from(self) - value).abs()
    }
}

impl Sum for f64 {
    const UNIT: f64 = f64::EPSILON / 2.0;
    const GREATEST: f64 = f64::MAX;
    fn factor(value: f64) -> Option<f64> {
        Some(value)
    }
    fn number(self) -> f64 {
        self
    }
    fn off(self, value: f64) -> f64 {
        (self - value).abs()
    }
}

impl Sum for i32 {
    const UNIT: f64 = 0.0;
    // Sums wrap.
    const GREATEST: f64 = f64::INFINITY;
    fn factor(value: f64) -> Option<i32> {
        let factor = value as i32;
        (f64::from(factor) == value).then_some(factor)
    }
    fn number(self) -> f64 {
        f64::from(self)
    }
    fn off(self, value: f64) -> f64 {
        // Integers are taken modulo 2^32.
        f64::from(self.wrapping_sub((value % 4_294_967_296.0) as i64 as i32)).abs()
    }
}

/// Numbers that look random, the same each time (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// Any 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between -1 and 1.
    pub fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

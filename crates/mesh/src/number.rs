//! Numbers that devices compute with.
//!
//! Law: a result does not depend on how a tensor is sharded, except for the rounding of sums. So
//! integers wrap, which makes their sums independent of order; NaN is greater than every number, so
//! that it is found on any device; and sums on one device are computed in `f64`, or in `i64`.

use bytemuck::Pod;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Types of numbers that are reduced and mapped: `i32`, `i64`, `f32` and `f64`.
pub trait Number: sealed::Sealed + Pod + Default + PartialEq + Send + Sync {
    /// The type in which one device accumulates sums.
    #[doc(hidden)]
    type Wide: Pod + Default;
    /// The least value: minus infinity or the least integer.
    #[doc(hidden)]
    const LEAST: Self;
    /// The sum; integers wrap.
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
    /// Adds this number to a wide sum.
    #[doc(hidden)]
    fn add_to(self, sum: &mut Self::Wide);
    /// A wide number, rounded to this type.
    #[doc(hidden)]
    fn narrow(wide: Self::Wide) -> Self;
    /// The greater number; NaN if one of them is NaN.
    #[doc(hidden)]
    fn larger(self, other: Self) -> Self;
    /// An unsigned integer with the same order as these numbers; NaN is the greatest, and both
    /// zeros are equal.
    #[doc(hidden)]
    fn key(self) -> u64;
    /// The number divided by `by`; None for integers, which are not divisible in general.
    #[doc(hidden)]
    fn divided(self, by: i64) -> Option<Self>;
}

/// Numbers with an exponential function: `f32` and `f64`.
pub trait Real: Number<Wide = f64> {
    /// The number as `f64`, exactly.
    #[doc(hidden)]
    fn wide(self) -> f64;
}

const SIGN: u64 = 1 << 63;

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            type Wide = i64;
            const LEAST: $type = <$type>::MIN;

            fn plus(self, other: $type) -> $type {
                self.wrapping_add(other)
            }

            fn add_to(self, sum: &mut i64) {
                *sum = sum.wrapping_add(i64::from(self));
            }

            fn narrow(wide: i64) -> $type {
                wide as $type
            }

            fn larger(self, other: $type) -> $type {
                self.max(other)
            }

            fn key(self) -> u64 {
                i64::from(self) as u64 ^ SIGN
            }

            fn divided(self, _: i64) -> Option<$type> {
                None
            }
        }
    )*};
}

macro_rules! reals {
    ($($type:ty)*) => {$(
        impl Number for $type {
            type Wide = f64;
            const LEAST: $type = <$type>::NEG_INFINITY;

            fn plus(self, other: $type) -> $type {
                self + other
            }

            fn add_to(self, sum: &mut f64) {
                *sum += f64::from(self);
            }

            fn narrow(wide: f64) -> $type {
                wide as $type
            }

            fn larger(self, other: $type) -> $type {
                if other > self || other.is_nan() { other } else { self }
            }

            fn key(self) -> u64 {
                let value = f64::from(self);
                match value {
                    _ if value.is_nan() => u64::MAX,
                    _ if value == 0.0 => SIGN,
                    _ if value < 0.0 => !value.to_bits(),
                    _ => value.to_bits() | SIGN,
                }
            }

            fn divided(self, by: i64) -> Option<$type> {
                Some((f64::from(self) / by as f64) as $type)
            }
        }

        impl Real for $type {
            fn wide(self) -> f64 {
                f64::from(self)
            }
        }
    )*};
}

integers!(i32 i64);
reals!(f32 f64);

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn keys_are_ordered_as_numbers_are() {
        let ordered = [f64::NEG_INFINITY, -2.5, -1.0, -f64::MIN_POSITIVE, 0.0, 1e-300, 3.0, f64::INFINITY, f64::NAN];
        for pair in ordered.windows(2) {
            assert!(
                pair[0].key() < pair[1].key() && pair[0].larger(pair[1]).to_bits() == pair[1].to_bits(),
                "{pair:?}"
            );
            assert_eq!(pair[1].larger(pair[0]).to_bits(), pair[1].to_bits(), "{pair:?}");
        }
        assert_eq!((-0.0_f64).key(), 0.0_f64.key());
        for pair in [i64::MIN, -7, 0, 1, i64::MAX].windows(2) {
            assert!(pair[0].key() < pair[1].key() && pair[0].larger(pair[1]) == pair[1]);
        }
        assert_eq!((i32::MAX.plus(1), i32::narrow(i64::from(i32::MAX) + 1)), (i32::MIN, i32::MIN));
    }
}

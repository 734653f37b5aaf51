//! The arithmetic of elements of C.
//!
//! Law: floats round as IEEE 754 says; integers are taken modulo `2^32`.

/// A type of accumulators.
pub trait SumElement: Copy + PartialEq + Default + Send + Sync {
    /// One, the multiplicative identity.
    const ONE: Self;
    /// `self + beta * old`.
    fn plus(self, beta: Self, old: Self) -> Self;
    /// `self * alpha`.
    fn times(self, alpha: Self) -> Self;
}

impl SumElement for f32 {
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn plus(self, beta: f32, old: f32) -> f32 {
        self + beta * old
    }
    #[inline(always)]
    fn times(self, alpha: f32) -> f32 {
        self * alpha
    }
}

impl SumElement for f64 {
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn plus(self, beta: f64, old: f64) -> f64 {
        self + beta * old
    }
    #[inline(always)]
    fn times(self, alpha: f64) -> f64 {
        self * alpha
    }
}

impl SumElement for i32 {
    const ONE: i32 = 1;
    #[inline(always)]
    fn plus(self, beta: i32, old: i32) -> i32 {
        self.wrapping_add(beta.wrapping_mul(old))
    }
    #[inline(always)]
    fn times(self, alpha: i32) -> i32 {
        self.wrapping_mul(alpha)
    }
}

impl SumElement for half::f16 {
    const ONE: half::f16 = half::f16::ONE;
    /// Computed in single precision, and rounded to 16 bits once.
    #[inline(always)]
    fn plus(self, beta: half::f16, old: half::f16) -> half::f16 {
        half::f16::from_f32(self.to_f32() + beta.to_f32() * old.to_f32())
    }
    #[inline(always)]
    fn times(self, alpha: half::f16) -> half::f16 {
        half::f16::from_f32(self.to_f32() * alpha.to_f32())
    }
}

//! Comparisons, and selections by them.
//!
//! Law: integers compare as numbers of their type. For floating-point numbers, if one side is NaN,
//! an ordered comparison is false and an unordered one (`equ`, `ltu` ..) is true; -0 equals +0.

use super::float::flush32;
use super::integer::Integer;

/// The comparison operators of PTX (`CmpOp`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `eq`
    Eq,
    /// `ne`
    Ne,
    /// `lt`, `lo`
    Lt,
    /// `le`, `ls`
    Le,
    /// `gt`, `hi`
    Gt,
    /// `ge`, `hs`
    Ge,
    /// `equ`
    Equ,
    /// `neu`
    Neu,
    /// `ltu`
    Ltu,
    /// `leu`
    Leu,
    /// `gtu`
    Gtu,
    /// `geu`
    Geu,
    /// `num`: both are numbers.
    Num,
    /// `nan`: one is NaN.
    Nan,
}

impl Comparison {
    /// Whether the comparison holds for integers. `num` and unordered comparisons treat them as
    /// numbers that are not NaN.
    #[inline(always)]
    pub fn integers<T: Integer>(self, a: T, b: T) -> bool {
        match self {
            Comparison::Eq | Comparison::Equ => a == b,
            Comparison::Ne | Comparison::Neu => a != b,
            Comparison::Lt | Comparison::Ltu => a < b,
            Comparison::Le | Comparison::Leu => a <= b,
            Comparison::Gt | Comparison::Gtu => a > b,
            Comparison::Ge | Comparison::Geu => a >= b,
            Comparison::Num => true,
            Comparison::Nan => false,
        }
    }

    /// Whether the comparison holds for `f32` or `f64`. Narrower numbers are converted exactly.
    #[inline(always)]
    pub fn floats<T: PartialOrd>(self, a: T, b: T) -> bool {
        // Only NaN differs from itself.
        #[allow(clippy::eq_op)]
        let unordered = a != a || b != b;
        match self {
            Comparison::Eq => a == b,
            Comparison::Ne => a != b && !unordered,
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
            Comparison::Gt => a > b,
            Comparison::Ge => a >= b,
            Comparison::Equ => a == b || unordered,
            Comparison::Neu => a != b,
            Comparison::Ltu => a < b || unordered,
            Comparison::Leu => a <= b || unordered,
            Comparison::Gtu => a > b || unordered,
            Comparison::Geu => a >= b || unordered,
            Comparison::Num => !unordered,
            Comparison::Nan => unordered,
        }
    }

    /// Whether the comparison holds for the bits of two f32. With `flush`, subnormal operands
    /// become 0 first.
    #[inline(always)]
    pub fn f32(self, a: u32, b: u32, flush: bool) -> bool {
        self.floats(f32::from_bits(flush32(a, flush)), f32::from_bits(flush32(b, flush)))
    }

    /// Whether the comparison holds for the bits of two f64.
    #[inline(always)]
    pub fn f64(self, a: u64, b: u64) -> bool {
        self.floats(f64::from_bits(a), f64::from_bits(b))
    }
}

/// `slct` by an s32: `a` if it is at least 0, otherwise `b`.
#[inline(always)]
pub fn slct_s32<T>(a: T, b: T, c: i32) -> T {
    if c >= 0 { a } else { b }
}

/// `slct` by an f32: `a` if it is at least 0, and `b` if it is negative or NaN.
#[inline(always)]
pub fn slct_f32<T>(a: T, b: T, c: u32, flush: bool) -> T {
    if f32::from_bits(flush32(c, flush)) >= 0.0 { a } else { b }
}

//! Integers of 16, 32 and 64 bits.
//!
//! Law: results are exact modulo `2^bits`; `.sat` clamps to the range of the type instead. The PTX
//! ISA does not define a division by 0: here quotient and remainder are all ones, as in code for
//! the hardware. The least number divided by -1 gives itself, with remainder 0.

/// An integer type of PTX: `u16`, `s16`, `u32`, `s32`, `u64` or `s64`.
pub trait Integer: Copy + Ord + std::fmt::Debug {
    /// The number of bits.
    const BITS: u32;
    /// Whether it has a sign.
    const SIGNED: bool;
    /// The type of the full product of `mul.wide`, at most 64 bits.
    type Wide: Copy;

    /// The number in the lowest bits of a register.
    fn of_bits(bits: u64) -> Self;
    /// The bits of the number, extended by zeros.
    fn bits(self) -> u64;
    /// The value of the number.
    fn exact(self) -> i128;
    /// `a + b`.
    fn add(self, b: Self) -> Self;
    /// `a - b`.
    fn sub(self, b: Self) -> Self;
    /// The lower half of the product: `mul.lo`.
    fn mul(self, b: Self) -> Self;
    /// The upper half of the product: `mul.hi`.
    fn mul_hi(self, b: Self) -> Self;
    /// The quotient, rounded toward 0; all ones if `b` is 0.
    fn div(self, b: Self) -> Self;
    /// The remainder, with the sign of `a`; all ones if `b` is 0.
    fn rem(self, b: Self) -> Self;
    /// `-a`.
    fn neg(self) -> Self;
    /// `|a|`; the least number stays itself.
    fn abs(self) -> Self;
    /// `|a - b|` modulo `2^bits`.
    fn distance(self, b: Self) -> Self;
    /// `a << amount`; 0 if the amount is the number of bits or more.
    fn shl(self, amount: u32) -> Self;
    /// `a >> amount`, filled with the sign for signed types.
    fn shr(self, amount: u32) -> Self;
    /// `a + b`, clamped: `add.sat`.
    fn add_sat(self, b: Self) -> Self;
    /// `a - b`, clamped: `sub.sat`.
    fn sub_sat(self, b: Self) -> Self;
    /// The full product: `mul.wide`.
    fn mul_wide(self, b: Self) -> Self::Wide;
}

macro_rules! integer {
    ($type:ty, $unsigned:ty, $wide:ty, $signed:expr, $abs:expr) => {
        impl Integer for $type {
            const BITS: u32 = <$type>::BITS;
            const SIGNED: bool = $signed;
            type Wide = $wide;

            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                bits as $type
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self as $unsigned)
            }
            #[inline(always)]
            fn exact(self) -> i128 {
                i128::from(self)
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn mul_hi(self, b: Self) -> Self {
                ((self as $wide).wrapping_mul(b as $wide) >> <$type>::BITS) as $type
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                if b == 0 { !0 } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn rem(self, b: Self) -> Self {
                if b == 0 { !0 } else { self.wrapping_rem(b) }
            }
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                let abs: fn($type) -> $type = $abs;
                abs(self)
            }
            #[inline(always)]
            fn distance(self, b: Self) -> Self {
                self.abs_diff(b) as $type
            }
            #[inline(always)]
            fn shl(self, amount: u32) -> Self {
                if amount < <$type>::BITS { self << amount } else { 0 }
            }
            #[inline(always)]
            fn shr(self, amount: u32) -> Self {
                if amount < <$type>::BITS {
                    self >> amount
                } else if $signed {
                    self >> (<$type>::BITS - 1)
                } else {
                    0
                }
            }
            #[inline(always)]
            fn add_sat(self, b: Self) -> Self {
                self.saturating_add(b)
            }
            #[inline(always)]
            fn sub_sat(self, b: Self) -> Self {
                self.saturating_sub(b)
            }
            #[inline(always)]
            fn mul_wide(self, b: Self) -> $wide {
                (self as $wide).wrapping_mul(b as $wide)
            }
        }
    };
}

integer!(u16, u16, u32, false, |a| a);
integer!(i16, u16, i32, true, i16::wrapping_abs);
integer!(u32, u32, u64, false, |a| a);
integer!(i32, u32, i64, true, i32::wrapping_abs);
integer!(u64, u64, u128, false, |a| a);
integer!(i64, u64, i128, true, i64::wrapping_abs);

/// `sad`: `c + |a - b|`.
#[inline(always)]
pub fn sad<T: Integer>(a: T, b: T, c: T) -> T {
    c.add(a.distance(b))
}

/// `mad.lo`: `a * b + c`.
#[inline(always)]
pub fn mad_lo<T: Integer>(a: T, b: T, c: T) -> T {
    a.mul(b).add(c)
}

/// `mad.hi`: the upper half of the product, plus `c`.
#[inline(always)]
pub fn mad_hi<T: Integer>(a: T, b: T, c: T) -> T {
    a.mul_hi(b).add(c)
}

/// `mad.hi.sat.s32`: the upper half of the product, plus `c`, clamped.
#[inline(always)]
pub fn mad_hi_sat(a: i32, b: i32, c: i32) -> i32 {
    a.mul_hi(b).saturating_add(c)
}

/// `a + b + carry`, and the carry out: `add.cc`, `addc`, `addc.cc`.
///
/// ```
/// use tilewright_sanitize::isa::integer::add_carry;
///
/// assert_eq!(add_carry(u32::MAX, 0, true), (0, true));
/// assert_eq!(add_carry(7_u64, 8, true), (16, false));
/// ```
#[inline(always)]
pub fn add_carry<T: Integer>(a: T, b: T, carry: bool) -> (T, bool) {
    let sum = u128::from(a.bits()) + u128::from(b.bits()) + u128::from(carry);
    (T::of_bits(sum as u64), sum >> T::BITS != 0)
}

/// `a - b - borrow`, and the borrow out, which is kept in the carry flag: `sub.cc`, `subc`,
/// `subc.cc`.
#[inline(always)]
pub fn sub_borrow<T: Integer>(a: T, b: T, borrow: bool) -> (T, bool) {
    let difference = i128::from(a.bits()) - i128::from(b.bits()) - i128::from(borrow);
    (T::of_bits(difference as u64), difference < 0)
}

/// The lowest 24 bits as a number, signed if the type is.
#[inline(always)]
fn of_24<T: Integer>(a: T) -> i64 {
    let low = a.bits() << 40;
    if T::SIGNED { low as i64 >> 40 } else { (low >> 40) as i64 }
}

/// `mul24.lo`: the lowest 32 bits of the product of 24-bit numbers.
#[inline(always)]
pub fn mul24_lo<T: Integer>(a: T, b: T) -> T {
    T::of_bits(of_24(a).wrapping_mul(of_24(b)) as u64)
}

/// `mul24.hi`: bits 16 to 47 of the product of 24-bit numbers.
#[inline(always)]
pub fn mul24_hi<T: Integer>(a: T, b: T) -> T {
    T::of_bits((of_24(a).wrapping_mul(of_24(b)) >> 16) as u64)
}

/// `mad24.lo`.
#[inline(always)]
pub fn mad24_lo<T: Integer>(a: T, b: T, c: T) -> T {
    mul24_lo(a, b).add(c)
}

/// `mad24.hi`.
#[inline(always)]
pub fn mad24_hi<T: Integer>(a: T, b: T, c: T) -> T {
    mul24_hi(a, b).add(c)
}

/// `mad24.hi.sat.s32`.
#[inline(always)]
pub fn mad24_hi_sat(a: i32, b: i32, c: i32) -> i32 {
    mul24_hi(a, b).saturating_add(c)
}

/// Byte `at` of a register as a number.
#[inline(always)]
fn byte(value: u32, at: u32, signed: bool) -> i32 {
    let byte = (value >> (8 * at)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

/// `dp4a`: `c` plus the products of four pairs of bytes, with the given signedness.
#[inline(always)]
pub fn dp4a(a: u32, a_signed: bool, b: u32, b_signed: bool, c: u32) -> u32 {
    let product = |at| byte(a, at, a_signed).wrapping_mul(byte(b, at, b_signed)) as u32;
    c.wrapping_add(product(0)).wrapping_add(product(1)).wrapping_add(product(2)).wrapping_add(product(3))
}

/// `dp2a`: `c` plus the products of two halves of `a` with the lower or upper two bytes of `b`.
#[inline(always)]
pub fn dp2a(a: u32, a_signed: bool, b: u32, b_signed: bool, upper: bool, c: u32) -> u32 {
    let half = |at: u32| {
        let half = (a >> (16 * at)) as u16;
        if a_signed { i32::from(half as i16) } else { i32::from(half) }
    };
    let from = if upper { 2 } else { 0 };
    let product = |at| half(at).wrapping_mul(byte(b, from + at, b_signed)) as u32;
    c.wrapping_add(product(0)).wrapping_add(product(1))
}

/// Applies `operation` to both 16-bit halves of two registers: `add.s16x2`, `min.u16x2` and so on.
#[inline(always)]
pub fn pairwise<T: Integer>(a: u32, b: u32, operation: impl Fn(T, T) -> T) -> u32 {
    let each =
        |shift: u32| operation(T::of_bits((a >> shift).into()), T::of_bits((b >> shift).into())).bits() as u32 & 0xffff;
    each(0) | each(16) << 16
}

/// `.relu` of `min` and `max`: the number, or 0 if it is negative.
#[inline(always)]
pub fn relu<T: Integer>(a: T) -> T {
    a.max(T::of_bits(0))
}

/// `atom.inc` and `red.inc`: `old >= bound ? 0 : old + 1`.
#[inline(always)]
pub fn increment(old: u32, bound: u32) -> u32 {
    if old >= bound { 0 } else { old.wrapping_add(1) }
}

/// `atom.dec` and `red.dec`: `old == 0 || old > bound ? bound : old - 1`.
#[inline(always)]
pub fn decrement(old: u32, bound: u32) -> u32 {
    if old == 0 || old > bound { bound } else { old.wrapping_sub(1) }
}

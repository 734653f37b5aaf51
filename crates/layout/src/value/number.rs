//! The arithmetic that the algebra needs.
//!
//! A layout maps a coordinate to an inner product, so it needs two types of value: **extents**,
//! which count, and **strides**, which are added and multiplied by counts. Strides form an *integer
//! semimodule* over the extents (Cecka, "CuTe Layout Representation and Algebra", section on
//! strides): addition, and a product `extent * stride`. Extents are themselves strides (an index is
//! a value like any other), so that one layout can be composed with another.
//!
//! Two conventions hold everywhere:
//!
//! * *No overflow wraps.* Every operation returns `None` if the result is not representable.
//! * *Nothing is guessed.* A question about values has three answers, [`Truth`]. For `i64` only two
//!   of them occur and the third branch is compiled away; for values that become known later a
//!   proof may be missing. A rewrite that is optional runs only on [`Truth::Proved`]; a
//!   precondition that is [`Truth::Open`] is refused.

use core::fmt::{Debug, Display};
use core::hash::Hash;

use crate::value::kind::{ExtentKind, StrideKind};

/// The answer to a question about values that may not be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truth {
    /// It holds for every admissible value.
    Proved,
    /// It fails for every admissible value.
    Refuted,
    /// It depends on a value that is not known.
    Open,
}

impl Truth {
    /// Whether it is proved: the test for an optional rewrite.
    #[inline(always)]
    pub fn proved(self) -> bool {
        matches!(self, Truth::Proved)
    }

    /// Whether it is refuted: the test for a certain refusal.
    #[inline(always)]
    pub fn refuted(self) -> bool {
        matches!(self, Truth::Refuted)
    }
}

impl From<bool> for Truth {
    #[inline(always)]
    fn from(holds: bool) -> Truth {
        if holds { Truth::Proved } else { Truth::Refuted }
    }
}

/// A step in the codomain of a layout: an element of an integer semimodule.
///
/// Laws, for steps `a`, `b`, `c` and extents `m`, `n`, wherever the results exist:
/// `a + (b + c) = (a + b) + c`, `a + 0 = a`, `1 * a = a`; and, where counts
/// [distribute](Stride::DISTRIBUTES), `m * (n * a) = (m * n) * a` and
/// `m * a + n * a = (m + n) * a`.
///
/// Implemented for `i64`, [`Expr`](crate::symbolic::Expr), [`Coordinate`](crate::Coordinate) and
/// [`Xor`](crate::Xor). Sealed: the algebra needs further operations, and other crates cannot
/// implement it.
pub trait Stride: Clone + Eq + Hash + Debug + Display + StrideKind {
    /// The type of the counts of these steps.
    type Extent: Extent;

    /// Whether counts act as integers do, that is, whether the laws above about products of counts
    /// hold. They do not hold for XOR.
    const DISTRIBUTES: bool = true;

    /// The zero step.
    fn zero() -> Self;

    /// Whether this step is zero.
    fn is_zero(&self) -> Truth;

    /// `self + other`.
    fn plus(&self, other: &Self) -> Option<Self>;

    /// `count * self`.
    fn times(&self, count: &Self::Extent) -> Option<Self>;

    /// Whether a mode of `extent` steps of `self`, followed by a mode of steps `next`, equals one
    /// longer mode of steps `self`: the merge test of `coalesce`.
    ///
    /// If counts distribute over steps, the condition is `next = extent * self`; for a semimodule
    /// in which they do not (XOR), there is an additional condition.
    #[inline]
    fn continues(&self, extent: &Self::Extent, next: &Self) -> Truth {
        match self.times(extent) {
            Some(end) => end.same(next),
            None => Truth::Refuted,
        }
    }

    /// Whether two steps are equal.
    #[inline]
    fn same(&self, other: &Self) -> Truth {
        Truth::from(self == other)
    }
}

/// A count of positions, and an index into them.
///
/// Division truncates toward zero, so that a layout at a negative index has the negated value of
/// the positive one: `L(-i) = -L(i)`.
///
/// Implemented for `i64` and [`Expr`](crate::symbolic::Expr). Sealed like [`Stride`].
pub trait Extent: Stride<Extent = Self> + From<i64> + ExtentKind {
    /// The number 1.
    fn one() -> Self;

    /// `self - other`.
    fn minus(&self, other: &Self) -> Option<Self>;

    /// Quotient and remainder of the division by a positive `divisor`, truncated toward zero.
    fn divide(&self, divisor: &Self) -> Option<(Self, Self)>;

    /// Whether `self` divides `other` exactly.
    fn divides(&self, other: &Self) -> Truth;

    /// Whether `self < other`.
    fn less(&self, other: &Self) -> Truth;

    /// The number if it is known.
    fn known(&self) -> Option<i64>;

    /// The greatest common divisor of the magnitudes, `gcd(0, n) = |n|`; None if it is not known,
    /// or not representable.
    fn greatest_divisor(&self, other: &Self) -> Option<Self>;

    /// A positive number that divides both for every admissible value, as large as is known; 0 if
    /// both numbers are 0.
    fn shared_divisor(&self, other: &Self) -> Self;

    /// Whether this is 1.
    #[inline]
    fn is_one(&self) -> Truth {
        self.same(&Self::one())
    }

    /// `self / divisor` rounded up, for a non-negative `self` and a positive `divisor`.
    #[inline]
    fn divide_up(&self, divisor: &Self) -> Option<Self> {
        let (quotient, remainder) = self.divide(divisor)?;
        match remainder.is_zero() {
            Truth::Proved => Some(quotient),
            Truth::Refuted => quotient.plus(&Self::one()),
            Truth::Open => None,
        }
    }

    /// The magnitude `|self|`.
    #[inline]
    fn magnitude(&self) -> Option<Self> {
        match self.less(&Self::zero()) {
            Truth::Proved => Self::zero().minus(self),
            Truth::Refuted => Some(self.clone()),
            Truth::Open => None,
        }
    }
}

impl Stride for i64 {
    type Extent = i64;

    #[inline(always)]
    fn zero() -> i64 {
        0
    }

    #[inline(always)]
    fn is_zero(&self) -> Truth {
        Truth::from(*self == 0)
    }

    #[inline(always)]
    fn plus(&self, other: &i64) -> Option<i64> {
        self.checked_add(*other)
    }

    #[inline(always)]
    fn times(&self, count: &i64) -> Option<i64> {
        self.checked_mul(*count)
    }
}

impl Extent for i64 {
    #[inline(always)]
    fn one() -> i64 {
        1
    }

    #[inline(always)]
    fn minus(&self, other: &i64) -> Option<i64> {
        self.checked_sub(*other)
    }

    #[inline(always)]
    fn divide(&self, divisor: &i64) -> Option<(i64, i64)> {
        // Most extents are powers of two, and a shift is ten times faster than a division; so is a
        // comparison.
        if *self >= 0 && self < divisor {
            return Some((0, *self));
        }
        if *self >= 0 && *divisor > 0 {
            let (n, d) = (*self as u64, *divisor as u64);
            if d.is_power_of_two() {
                let quotient = n >> d.trailing_zeros();
                return Some((quotient as i64, (n - quotient * d) as i64));
            }
            // The divisor is not larger than the dividend.
            if n >> 32 == 0 {
                let (n, d) = (n as u32, d as u32);
                return Some((i64::from(n / d), i64::from(n % d)));
            }
        }
        Some((self.checked_div(*divisor)?, self.checked_rem(*divisor)?))
    }

    #[inline(always)]
    fn divides(&self, other: &i64) -> Truth {
        match other.divide(self) {
            Some((_, remainder)) => Truth::from(remainder == 0),
            None => Truth::from(*other == 0),
        }
    }

    #[inline(always)]
    fn less(&self, other: &i64) -> Truth {
        Truth::from(self < other)
    }

    #[inline(always)]
    fn known(&self) -> Option<i64> {
        Some(*self)
    }

    #[inline]
    fn greatest_divisor(&self, other: &i64) -> Option<i64> {
        i64::try_from(gcd(*self, *other)).ok()
    }

    #[inline]
    fn shared_divisor(&self, other: &i64) -> i64 {
        // If the greatest common divisor is 2^63, its half also divides both.
        self.greatest_divisor(other).unwrap_or(1 << 62)
    }

    #[inline(always)]
    fn magnitude(&self) -> Option<i64> {
        let magnitude = self.wrapping_abs();
        (magnitude >= 0).then_some(magnitude)
    }
}

/// The greatest common divisor of two magnitudes; `gcd(0, n) = |n|`.
pub(crate) fn gcd(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple of two positive numbers.
pub(crate) fn lcm(a: i64, b: i64) -> Option<i64> {
    let divisor = i64::try_from(gcd(a, b)).ok().filter(|d| *d > 0)?;
    (a / divisor).checked_mul(b)
}

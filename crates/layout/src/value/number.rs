//! The arithmetic that the algebra is written against.
//!
//! A layout sends a coordinate to an inner product, so it needs two kinds of value: **extents**,
//! which count, and **strides**, which are added up and scaled by counts. Strides form an *integer
//! semimodule* over the extents (Cecka, "CuTe Layout Representation and Algebra", section on
//! strides): addition, and a product `extent * stride`. Extents are themselves strides (an index is
//! a value like any other), and that is what lets one layout be composed after another.
//!
//! Two conventions hold everywhere:
//!
//! * *Nothing wraps.* Every operation returns `None` when the result cannot be represented.
//! * *Nothing is guessed.* A question about values has three answers, [`Truth`]. For `i64` only two
//!   of them occur and the third branch is compiled away; for values that become known later a
//!   proof may be missing. A rewrite that is optional runs only on [`Truth::Proved`]; a
//!   precondition that is [`Truth::Open`] is refused.

use core::fmt::{Debug, Display, Write};
use core::hash::Hash;

use crate::refusal::error::LayoutError;
use crate::refusal::evidence::{Condition, Question};
use crate::text::print::Printer;
use crate::value::layout::{Layout, Leaf};

/// The answer to a question about values, some of which may not be known yet.
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
pub trait Stride: Clone + Eq + Hash + Debug + Display {
    /// What counts these steps.
    type Extent: Extent;

    /// Whether counts act as integers do. Where they do not (XOR), the kind brings its own
    /// [`Stride::compose_layouts`] and [`Stride::add_layouts`], and shortcuts that multiply counts
    /// are left out.
    const DISTRIBUTES: bool = true;

    /// The step that goes nowhere.
    fn zero() -> Self;

    /// Whether this step goes nowhere.
    fn is_zero(&self) -> Truth;

    /// `self + other`.
    fn plus(&self, other: &Self) -> Option<Self>;

    /// `count * self`.
    fn times(&self, count: &Self::Extent) -> Option<Self>;

    /// Adds `count * step` to this; what this is when that is not representable is not said.
    ///
    /// Kinds whose values are large do it in place.
    #[inline(always)]
    fn add_times(&mut self, count: &Self::Extent, step: &Self) -> Option<()> {
        *self = self.plus(&step.times(count)?)?;
        Some(())
    }

    /// Whether a mode of `extent` steps of `self`, followed by a mode of steps `next`, reads as one
    /// longer mode of steps `self`: the merge test of `coalesce`.
    ///
    /// Where addition of extents distributes over steps this says `next = extent * self`; a
    /// semimodule in which it does not (XOR) adds the condition that it needs.
    #[inline]
    fn continues(&self, extent: &Self::Extent, next: &Self) -> Truth {
        match self.times(extent) {
            Some(end) => end.same(next),
            None => Truth::Refuted,
        }
    }

    /// The numbers of two strides that cannot belong to one layout, where there are such: most
    /// kinds have none.
    #[inline(always)]
    fn clash(_leaves: &[Leaf<Self>]) -> Option<(usize, usize)> {
        None
    }

    /// Writes the step as it reads back.
    #[inline]
    fn print(&self, out: &mut Printer<'_>) {
        // A printer takes everything; what fails is remembered by it.
        let _ = write!(out, "{self}");
    }

    /// The integer whose decimal text is the text of this step, where it is one: such steps have a
    /// short way to be printed.
    #[inline(always)]
    fn decimal(&self) -> Option<i64> {
        None
    }

    /// The value of a list of leaves at an index: its digits in the mixed radix of the extents, the
    /// last one unbounded, times the strides; `None` when it is not representable. The empty list
    /// has a value at index 0 alone.
    #[inline]
    fn eval(leaves: &[Leaf<Self>], index: &Self::Extent) -> Option<Self> {
        eval_by_division(leaves, index)
    }

    /// Whether `extent` steps from the one with number `from` on are the same as those from 0 on:
    /// `(from + c) * self = from * self + c * self` for every `c` below `extent`.
    #[inline]
    fn repeats(&self, _extent: &Self::Extent, _from: &Self::Extent) -> Truth {
        Truth::Proved
    }

    /// `outer o inner`: see [`Layout::compose`].
    #[inline(always)]
    fn compose_layouts(outer: &Layout<Self>, inner: &Layout<Self::Extent>) -> Result<Layout<Self>, LayoutError> {
        crate::algebra::compose::compose_integers(outer, inner)
    }

    /// The sum of two layouts: see [`Layout::add`].
    #[inline]
    fn add_layouts(a: &Layout<Self>, b: &Layout<Self>) -> Result<Layout<Self>, LayoutError> {
        crate::algebra::sum::add_integers(a, b)
    }

    /// Whether two steps are equal.
    #[inline]
    fn same(&self, other: &Self) -> Truth {
        Truth::from(self == other)
    }
}

/// A count of positions, and an index into them.
///
/// Division truncates toward zero, so that a layout evaluated at a negative index is the mirror
/// image of itself at the positive one: `L(-i) = -L(i)`.
pub trait Extent: Stride<Extent = Self> + From<i64> {
    /// One position.
    fn one() -> Self;

    /// `self - other`.
    fn minus(&self, other: &Self) -> Option<Self>;

    /// Quotient and remainder of the division by a positive `divisor`, truncated toward zero.
    fn divide(&self, divisor: &Self) -> Option<(Self, Self)>;

    /// Whether `self` divides `other` exactly.
    fn divides(&self, other: &Self) -> Truth;

    /// Whether `self < other`.
    fn less(&self, other: &Self) -> Truth;

    /// The number, when it is known.
    fn known(&self) -> Option<i64>;

    /// The greatest common divisor of the magnitudes, `gcd(0, n) = |n|`; none where it is not
    /// known, or not representable.
    fn greatest_divisor(&self, other: &Self) -> Option<Self>;

    /// A positive number that divides both for every admissible value, as great as is known; of two
    /// numbers 0, it is 0.
    fn shared_divisor(&self, other: &Self) -> Self;

    /// As [`Extent::divide`], where each of `many` may be taken to be at least 2.
    ///
    /// The steps of a mode matter only where it has more than one position, so that much is granted
    /// about its extent.
    #[inline(always)]
    fn divide_given(&self, divisor: &Self, _many: &[&Self]) -> Option<(Self, Self)> {
        self.divide(divisor)
    }

    /// As [`Extent::less`], where each of `many` may be taken to be at least 2.
    #[inline(always)]
    fn less_given(&self, other: &Self, _many: &[&Self]) -> Truth {
        self.less(other)
    }

    /// 1 where `self` is at least `end`, which is positive, and 0 elsewhere.
    #[inline]
    fn reaches(&self, end: &Self) -> Option<Self> {
        match self.less(end) {
            Truth::Proved => Some(Self::zero()),
            Truth::Refuted => Some(Self::one()),
            Truth::Open => None,
        }
    }

    /// Whether a layout sends different coordinates to different values: see
    /// [`Layout::is_injective`].
    fn injective(layout: &Layout<Self>) -> Result<bool, LayoutError>;

    /// The refusal of an operation that needs a number which is not representable.
    #[doc(hidden)]
    #[cold]
    fn overflow(op: &'static str) -> LayoutError {
        LayoutError::overflow(op)
    }

    /// The question whether a condition holds of two numbers, with what is known about an answer.
    #[cold]
    fn question(condition: Condition, left: &Self, right: &Self) -> Question {
        Question::new(condition, left, right)
    }

    /// Whether the product with `other` would say less than both: one of them is known, and the
    /// other is not and has no name. `8*?` reads back as a number about which nothing is known,
    /// while `(8,?)` keeps the 8.
    #[inline(always)]
    fn apart(&self, _other: &Self) -> bool {
        false
    }

    /// Whether this is one position.
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

    #[inline(always)]
    fn print(&self, out: &mut Printer<'_>) {
        out.integer(*self);
    }

    #[inline(always)]
    fn decimal(&self) -> Option<i64> {
        Some(*self)
    }

    #[inline]
    fn eval(leaves: &[Leaf], index: &i64) -> Option<i64> {
        let Some((last, front)) = leaves.split_last().filter(|_| *index >= 0) else {
            return eval_backward(leaves, *index);
        };
        // The index and the extents are not negative. Most extents are powers of two, and a shift
        // is ten times faster than a division.
        let (mut rest, mut value) = (*index as u64, 0_i64);
        for leaf in front {
            let extent = leaf.extent as u64;
            let mask = extent.wrapping_sub(1);
            let digit = if extent & mask == 0 {
                let digit = rest & mask;
                rest = rest.wrapping_shr(extent.trailing_zeros());
                digit
            } else if (rest | extent) >> 32 == 0 {
                let digit = u64::from(rest as u32 % extent as u32);
                rest = u64::from(rest as u32 / extent as u32);
                digit
            } else {
                let digit = rest.checked_rem(extent)?;
                rest /= extent;
                digit
            };
            value = value.checked_add(leaf.stride.checked_mul(digit as i64)?)?;
        }
        value.checked_add(last.stride.checked_mul(rest as i64)?)
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
            // The divisor is no larger.
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

    fn injective(layout: &Layout) -> Result<bool, LayoutError> {
        crate::algebra::predicate::injective(layout)
    }

    #[inline]
    fn greatest_divisor(&self, other: &i64) -> Option<i64> {
        i64::try_from(gcd(*self, *other)).ok()
    }

    #[inline]
    fn shared_divisor(&self, other: &i64) -> i64 {
        // Where the greatest is 2^63, its half divides both too.
        self.greatest_divisor(other).unwrap_or(1 << 62)
    }

    #[inline(always)]
    fn magnitude(&self) -> Option<i64> {
        let magnitude = self.wrapping_abs();
        (magnitude >= 0).then_some(magnitude)
    }
}

/// As [`Stride::eval`], for all kinds of strides.
#[inline]
fn eval_by_division<D: Stride>(leaves: &[Leaf<D>], index: &D::Extent) -> Option<D> {
    let Some((last, front)) = leaves.split_last() else {
        return index.is_zero().proved().then(D::zero);
    };
    let mut rest = index.clone();
    let mut value = D::zero();
    for leaf in front {
        let (quotient, digit) = rest.divide(&leaf.extent)?;
        value.add_times(&digit, &leaf.stride)?;
        rest = quotient;
    }
    value.add_times(&rest, &last.stride)?;
    Some(value)
}

#[cold]
fn eval_backward(leaves: &[Leaf], index: i64) -> Option<i64> {
    eval_by_division(leaves, &index)
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

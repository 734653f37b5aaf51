//! Operations on strides and extents that the algebra needs in addition to [`Stride`] and
//! [`Extent`].
//!
//! Law: the laws of [`Stride`] and [`Extent`] determine each result; a type implements it in the
//! way that suits its values.
//!
//! The traits are public in a private module, which seals them: a new type is added in this crate,
//! and in `any`. The implementations for the types are in `algebra/integer.rs`,
//! `coordinate/kind.rs`, `symbolic/kind.rs` and `xor/kind.rs`.

use alloc::boxed::Box;
use alloc::string::ToString;
use core::fmt::Write;

use crate::ground::profile::Profile;
use crate::refusal::error::{LayoutError, Overflow};
use crate::refusal::evidence::{Condition, Offset, Question};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride, Truth};

/// A writer for the text of a step, with fast methods for marks and integers.
pub trait TextOut: Write {
    /// Writes one byte of ASCII.
    fn mark(&mut self, byte: u8);

    /// Writes an integer in decimal.
    fn integer(&mut self, value: i64);
}

/// Further operations of strides. Sealed.
pub trait StrideKind: Sized {
    /// Adds `count * step` to this. If the sum is not representable, the resulting value is
    /// unspecified.
    ///
    /// Types whose values are large add in place.
    #[inline(always)]
    fn add_times(&mut self, count: &Self::Extent, step: &Self) -> Option<()>
    where
        Self: Stride,
    {
        *self = self.plus(&step.times(count)?)?;
        Some(())
    }

    /// The numbers of two strides that cannot belong to the same layout; None if there are none.
    /// Most types never have such strides.
    #[inline(always)]
    fn clash(_leaves: &[Leaf<Self>]) -> Option<(usize, usize)>
    where
        Self: Stride,
    {
        None
    }

    /// Writes the step as text that parses to it.
    #[inline]
    fn print(&self, out: &mut impl TextOut)
    where
        Self: Stride,
    {
        // A writer stores its own error.
        let _ = write!(out, "{self}");
    }

    /// The integer with the same decimal text as this step; None if there is none. Such steps are
    /// printed faster.
    #[inline(always)]
    fn decimal(&self) -> Option<i64> {
        None
    }

    /// The value of a list of leaves at an index: its digits in the mixed radix of the extents, the
    /// last one unbounded, times the strides; None if it is not representable. The empty list has a
    /// value only at index 0.
    #[inline]
    fn eval(leaves: &[Leaf<Self>], index: &Self::Extent) -> Option<Self>
    where
        Self: Stride,
    {
        eval_by_division(leaves, index)
    }

    /// Whether the `extent` steps from number `from` on equal those from 0 on:
    /// `(from + c) * self = from * self + c * self` for every `c` below `extent`.
    #[inline]
    fn repeats(&self, _extent: &Self::Extent, _from: &Self::Extent) -> Truth
    where
        Self: Stride,
    {
        Truth::Proved
    }

    /// `outer o inner`: see [`Layout::compose`].
    fn compose_layouts(outer: &Layout<Self>, inner: &Layout<Self::Extent>) -> Result<Layout<Self>, LayoutError>
    where
        Self: Stride;

    /// The sum of two layouts: see [`Layout::add`].
    fn add_layouts(a: &Layout<Self>, b: &Layout<Self>) -> Result<Layout<Self>, LayoutError>
    where
        Self: Stride;
}

/// Further operations of extents. Sealed.
pub trait ExtentKind: Overflow + Sized {
    /// Whether every number of this type is known, so that no answer is open. Code for open answers
    /// is then omitted if the compiler does not detect that it is unreachable.
    const KNOWN: bool;

    /// As [`Extent::divide`], assuming that each of `many` is at least 2.
    ///
    /// The steps of a mode matter only if it has more than one position, so this may be assumed
    /// about its extent.
    #[inline(always)]
    fn divide_given(&self, divisor: &Self, _many: &[&Self]) -> Option<(Self, Self)>
    where
        Self: Extent,
    {
        self.divide(divisor)
    }

    /// As [`Extent::less`], assuming that each of `many` is at least 2.
    #[inline(always)]
    fn less_given(&self, other: &Self, _many: &[&Self]) -> Truth
    where
        Self: Extent,
    {
        self.less(other)
    }

    /// 1 if `self` is at least `end`, which is positive, otherwise 0.
    #[inline]
    fn reaches(&self, end: &Self) -> Option<Self>
    where
        Self: Extent,
    {
        match self.less(end) {
            Truth::Proved => Some(Self::zero()),
            Truth::Refuted => Some(Self::one()),
            Truth::Open => None,
        }
    }

    /// Whether a layout maps different coordinates to different values: see
    /// [`Layout::is_injective`].
    fn injective(layout: &Layout<Self>) -> Result<bool, LayoutError>
    where
        Self: Extent;

    /// The open question for a condition on two numbers, with the facts that would settle it.
    #[cold]
    fn question(condition: Condition, left: &Self, right: &Self) -> Question
    where
        Self: Extent,
    {
        Question::plain(condition, left, right)
    }
}

/// [`StrideKind::eval`] for all types of strides.
#[inline]
pub(crate) fn eval_by_division<D: Stride>(leaves: &[Leaf<D>], index: &D::Extent) -> Option<D> {
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

impl LayoutError {
    /// The refusal of `op`, which needs a condition on two numbers that is neither proved nor
    /// refuted.
    #[cold]
    pub fn open<N: Extent>(op: &'static str, condition: Condition, left: &N, right: &N) -> LayoutError {
        LayoutError::Open { op, question: Box::new(N::question(condition, left, right)) }
    }

    /// The error for an extent that is not positive, or not known to be.
    #[cold]
    pub(crate) fn extent<N: Extent>(profile: &Profile, leaf: usize, extent: &N) -> LayoutError {
        match N::zero().less(extent) {
            Truth::Open => LayoutError::open("shape", Condition::Less, &N::zero(), extent),
            _ => LayoutError::Extent { path: profile.path(leaf), extent: extent.to_string().into_boxed_str() },
        }
    }
}

impl Question {
    /// The open question for a condition on two numbers. For numbers known at launch it has the
    /// parameters and, if there is a simple one, the declaration that would settle it.
    ///
    /// ```
    /// use tilewright_layout::{Condition, Question, symbolic::Expr};
    ///
    /// let (divisor, number): (Expr, Expr) = (8.into(), "M".parse().unwrap());
    /// let question = Question::new(Condition::Divides, &divisor, &number);
    /// assert_eq!(question.declaration.unwrap().facts().divisor(), 8);
    /// ```
    #[cold]
    pub fn new<N: Extent>(condition: Condition, left: &N, right: &N) -> Question {
        N::question(condition, left, right)
    }
}

impl Offset {
    pub(crate) fn of<D: Stride>(value: &D) -> Offset {
        match value.decimal() {
            Some(number) => Offset::Number(number),
            None => Offset::Text(value.to_string().into_boxed_str()),
        }
    }
}

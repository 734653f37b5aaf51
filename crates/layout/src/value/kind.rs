//! What the algebra asks of a kind of stride, or of extent, beside the laws of [`Stride`] and
//! [`Extent`].
//!
//! Law: the laws determine each answer; a kind gives it in the way that suits its values.
//!
//! The traits are public in a private module, which seals them: a new kind is added in this crate,
//! as a row of `any` too. What a kind needs from rooms above this one stands in the room of the
//! kind (`algebra/integer.rs`, `coordinate/kind.rs`, `symbolic/kind.rs`, `xor/kind.rs`).

use alloc::boxed::Box;
use alloc::string::ToString;
use core::fmt::Write;

use crate::ground::profile::Profile;
use crate::refusal::error::{LayoutError, Overflow};
use crate::refusal::evidence::{Condition, Offset, Question};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride, Truth};

/// Where the text of a step goes: a writer with short ways for marks and integers.
pub trait TextOut: Write {
    /// One byte of ASCII.
    fn mark(&mut self, byte: u8);

    /// An integer in decimal.
    fn integer(&mut self, value: i64);
}

/// What the algebra asks of a kind of stride. Sealed.
pub trait StrideKind: Sized {
    /// Adds `count * step` to this. Where the sum is not representable, the value left here is
    /// unspecified.
    ///
    /// Kinds whose values are large do it in place.
    #[inline(always)]
    fn add_times(&mut self, count: &Self::Extent, step: &Self) -> Option<()>
    where
        Self: Stride,
    {
        *self = self.plus(&step.times(count)?)?;
        Some(())
    }

    /// The numbers of two strides that cannot belong to one layout, where there are such: most
    /// kinds have none.
    #[inline(always)]
    fn clash(_leaves: &[Leaf<Self>]) -> Option<(usize, usize)>
    where
        Self: Stride,
    {
        None
    }

    /// Writes the step as it reads back.
    #[inline]
    fn print(&self, out: &mut impl TextOut)
    where
        Self: Stride,
    {
        // A writer takes everything; what fails is remembered by it.
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
    fn eval(leaves: &[Leaf<Self>], index: &Self::Extent) -> Option<Self>
    where
        Self: Stride,
    {
        eval_by_division(leaves, index)
    }

    /// Whether `extent` steps from the one with number `from` on are the same as those from 0 on:
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

/// What the algebra asks of a kind of extent. Sealed.
pub trait ExtentKind: Overflow + Sized {
    /// Whether every number of this kind is known, so that no answer is open. Code for open answers
    /// is left out then, where the compiler does not see by itself that it is not reached.
    const KNOWN: bool;

    /// As [`Extent::divide`], where each of `many` may be taken to be at least 2.
    ///
    /// The steps of a mode matter only where it has more than one position, so that much is granted
    /// about its extent.
    #[inline(always)]
    fn divide_given(&self, divisor: &Self, _many: &[&Self]) -> Option<(Self, Self)>
    where
        Self: Extent,
    {
        self.divide(divisor)
    }

    /// As [`Extent::less`], where each of `many` may be taken to be at least 2.
    #[inline(always)]
    fn less_given(&self, other: &Self, _many: &[&Self]) -> Truth
    where
        Self: Extent,
    {
        self.less(other)
    }

    /// 1 where `self` is at least `end`, which is positive, and 0 elsewhere.
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

    /// Whether a layout sends different coordinates to different values: see
    /// [`Layout::is_injective`].
    fn injective(layout: &Layout<Self>) -> Result<bool, LayoutError>
    where
        Self: Extent;

    /// The question whether a condition holds of two numbers, with what is known about an answer.
    #[cold]
    fn question(condition: Condition, left: &Self, right: &Self) -> Question
    where
        Self: Extent,
    {
        Question::plain(condition, left, right)
    }
}

/// As [`StrideKind::eval`], for all kinds of strides.
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

    /// An extent that is not positive, or not known to be.
    #[cold]
    pub(crate) fn extent<N: Extent>(profile: &Profile, leaf: usize, extent: &N) -> LayoutError {
        match N::zero().less(extent) {
            Truth::Open => LayoutError::open("shape", Condition::Less, &N::zero(), extent),
            _ => LayoutError::Extent { path: profile.path(leaf), extent: extent.to_string().into_boxed_str() },
        }
    }
}

impl Question {
    /// The question whether a condition holds of two numbers. Of numbers known at launch it holds
    /// the parameters, and the declaration that would settle it where a simple one does.
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

//! Numbers known at launch as a kind of stride and of extent.
//!
//! Law: this is the generic algebra with answers that may be open; for known numbers it is the
//! algebra of integers.

use super::{Expr, given, predicate, question, quotient};
use crate::algebra::compose::compose_integers;
use crate::algebra::sum::add_integers;
use crate::refusal::error::{LayoutError, Overflow};
use crate::refusal::evidence::{Condition, Question};
use crate::value::kind::{ExtentKind, StrideKind};
use crate::value::layout::Layout;
use crate::value::number::{Extent, Stride, Truth};

impl StrideKind for Expr {
    #[inline(always)]
    fn decimal(&self) -> Option<i64> {
        self.known()
    }

    #[inline(always)]
    fn compose_layouts(outer: &Layout<Expr>, inner: &Layout<Expr>) -> Result<Layout<Expr>, LayoutError> {
        compose_integers(outer, inner)
    }

    #[inline]
    fn add_layouts(a: &Layout<Expr>, b: &Layout<Expr>) -> Result<Layout<Expr>, LayoutError> {
        add_integers(a, b)
    }
}

impl Overflow for Expr {
    #[cold]
    fn overflow(op: &'static str) -> LayoutError {
        LayoutError::Expression { op }
    }
}

impl ExtentKind for Expr {
    const KNOWN: bool = false;

    #[inline(always)]
    fn divide_given(&self, divisor: &Expr, many: &[&Expr]) -> Option<(Expr, Expr)> {
        match (self.known(), divisor.known()) {
            (Some(a), Some(b)) => {
                let (quotient, remainder) = a.divide(&b)?;
                Some((Expr::known(quotient), Expr::known(remainder)))
            }
            _ => given::divide(self, divisor, many),
        }
    }

    #[inline(always)]
    fn less_given(&self, other: &Expr, many: &[&Expr]) -> Truth {
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => Truth::from(a < b),
            _ => given::less(self, other, many),
        }
    }

    fn reaches(&self, end: &Expr) -> Option<Expr> {
        match self.less(end) {
            Truth::Proved => Some(Expr::zero()),
            Truth::Refuted => Some(Expr::one()),
            // The number is clamped to the range from 0 to the end, so that the quotient is 0 or 1.
            Truth::Open => quotient::floor(&self.minimum(end)?.maximum(&Expr::zero())?, end),
        }
    }

    fn injective(layout: &Layout<Expr>) -> Result<bool, LayoutError> {
        predicate::injective(layout)
    }

    fn question(condition: Condition, left: &Expr, right: &Expr) -> Question {
        question::question(condition, left, right)
    }
}

//! Integers as a kind of stride and of extent.
//!
//! Law: the results are those of the generic algebra; shifts replace divisions by powers of two.

use crate::algebra::compose::compose_integers;
use crate::algebra::predicate;
use crate::algebra::sum::add_integers;
use crate::refusal::error::{LayoutError, Overflow};
use crate::value::kind::{ExtentKind, StrideKind, TextOut, eval_by_division};
use crate::value::layout::{Layout, Leaf};

impl StrideKind for i64 {
    #[inline(always)]
    fn print(&self, out: &mut impl TextOut) {
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

    #[inline(always)]
    fn compose_layouts(outer: &Layout, inner: &Layout) -> Result<Layout, LayoutError> {
        compose_integers(outer, inner)
    }

    #[inline]
    fn add_layouts(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
        add_integers(a, b)
    }
}

impl Overflow for i64 {}

impl ExtentKind for i64 {
    const KNOWN: bool = true;

    fn injective(layout: &Layout) -> Result<bool, LayoutError> {
        predicate::injective(layout)
    }
}

#[cold]
fn eval_backward(leaves: &[Leaf], index: i64) -> Option<i64> {
    eval_by_division(leaves, &index)
}

//! XOR steps as a kind of stride.
//!
//! Law: values are XORs of carry-less products; composition and sums are those of the module `xor`.

use super::{Xor, compose, product, sum};
use crate::refusal::error::LayoutError;
use crate::value::kind::StrideKind;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Truth;

impl StrideKind for Xor {
    #[inline]
    fn eval(leaves: &[Leaf<Xor>], index: &i64) -> Option<Xor> {
        // Every vector is its own negative, so that a negative index has the same value as its
        // magnitude.
        let Some((last, front)) = leaves.split_last() else { return (*index == 0).then_some(Xor(0)) };
        let (mut rest, mut value) = (index.unsigned_abs(), 0);
        for leaf in front {
            let extent = leaf.extent as u64;
            let mask = extent.wrapping_sub(1);
            let digit = if extent & mask == 0 {
                let digit = rest & mask;
                rest = rest.wrapping_shr(extent.trailing_zeros());
                digit
            } else {
                let digit = rest.checked_rem(extent)?;
                rest /= extent;
                digit
            };
            value ^= product(digit, leaf.stride.0)?;
        }
        Some(Xor(value ^ product(rest, last.stride.0)?))
    }

    fn repeats(&self, extent: &i64, from: &i64) -> Truth {
        // No sum carries if `from` has no bit below the length of the largest index.
        let low = u64::MAX.checked_shr((extent.unsigned_abs() - 1).leading_zeros()).unwrap_or(0);
        Truth::from(self.0 == 0 || from.unsigned_abs() & low == 0)
    }

    #[inline]
    fn compose_layouts(outer: &Layout<Xor>, inner: &Layout) -> Result<Layout<Xor>, LayoutError> {
        compose::compose(outer, inner)
    }

    fn add_layouts(a: &Layout<Xor>, b: &Layout<Xor>) -> Result<Layout<Xor>, LayoutError> {
        sum::add(a, b)
    }
}

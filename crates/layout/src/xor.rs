//! XOR strides: steps that are bit vectors.
//!
//! # Law
//!
//! Bit vectors are added by XOR, and a count acts as the polynomial over the field of two elements
//! whose coefficients are its bits: `n * d` is the carry-less product, the XOR of `d << b` over the
//! bits `b` of `n`. So the mode `s:^d` has the values `i * d` for `i < s`, and `(8,8):(^1,^9)` is a
//! swizzled 8x8. A negative count acts as its magnitude, since every vector is its own negative: so
//! for negative indices `L(-i) = -L(i)`, as for all layouts.
//!
//! This is a module over polynomials, not over the integers: `m * (n * d)` takes the carry-less
//! product of `m` and `n`, and `(m + n) * d` is `m * d + n * d` only if the sum has no carry. Hence
//! the rules of the algebra about modes have another form:
//!
//! * *Merging.* A mode `s:^d` and the next mode `t:^e` with `t > 1` are a single mode exactly when
//!   `e = s * d` and either `s` is a power of two or `d = 0`. For otherwise `e` would still have to
//!   be `s * d`, from index `s`, and at index `s + a`, `a` the lowest bit of `s`, the two modes
//!   give `(s ^ a) * d` where one mode has `(s + a) * d`.
//! * *Coalesced forms are unique*, and so functions are equal exactly when their coalesced forms
//!   are. Let two coalesced layouts have one function `f`, with `f(1) = d` and first extents
//!   `s < t`. Then `f(s) = s * d` by the second, so this is the next stride of the first; as the
//!   modes did not merge, `d` is not 0 and `s = u * 2^k` with `u` odd, above 1. Put `p = s + 2^k`,
//!   where the first has `(s ^ 2^k) * d`, not `p * d`; before it there is no break, and `t <= p`.
//!   If `t = p`, then at `p + 2^k` the first has `(s ^ 2^(k+1)) * d` and the second
//!   `f(p) + f(2^k) = s * d`. If `t < p`, then `f(t) = t * d` by the first; so the second breaks at
//!   `t + a`, `a` the lowest bit of `t`, with the value `(t ^ a) * d`. Both must be the same break:
//!   `t + a = s + 2^k` and `t - a = s - 2^k`, hence `t = s`. So the first extents agree, and the
//!   rest follows by induction on `f` at the multiples of `s`.

mod complement;
pub(crate) mod compose;
mod convert;

pub(crate) mod function;
mod image;
pub(crate) mod inverse;
mod kind;
mod recast;
mod sum;
mod text;

use crate::refusal::error::{Fits, LayoutError};
use crate::tile::product::Blocks;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Stride, Truth};
use crate::value::tree::Leaves;

/// An XOR step: a vector of 63 bits. Offsets are also numbers, so the sign bit is not used.
///
/// ```
/// use tilewright_layout::{Layout, Xor};
///
/// let tile: Layout<Xor> = "(8,8):(^1,^9)".parse().unwrap();
/// assert_eq!(tile.eval_at(&"(5,3)".parse().unwrap()).unwrap(), Xor::new(5 ^ 3 ^ 24).unwrap());
/// assert_eq!(tile.to_string(), "(8,8):(^1,^9)");
/// assert_eq!("F9".parse::<Xor>().unwrap().bits(), 9);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Xor(u64);

/// The number of bits of a vector.
pub(crate) const BITS: u32 = 63;

impl Xor {
    /// The vector with these bits.
    ///
    /// Errors: bit 63 is set.
    pub fn new(bits: u64) -> Result<Xor, LayoutError> {
        Xor::within(bits).fits("XOR step")
    }

    #[inline(always)]
    pub(crate) fn within(bits: u64) -> Option<Xor> {
        if bits >> BITS == 0 { Some(Xor(bits)) } else { None }
    }

    /// The bits, as a number.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// The flat layout of these leaves; an error if its size is not representable.
pub(crate) fn flat(op: &'static str, leaves: Leaves<Leaf<Xor>>) -> Result<Layout<Xor>, LayoutError> {
    let size = leaves.iter().try_fold(1_i64, |size, leaf| size.checked_mul(leaf.extent));
    size.fits(op)?;
    Layout::flat(leaves)
}

/// The carry-less product; None if it has more than 63 bits.
#[inline]
pub(crate) fn product(a: u64, b: u64) -> Option<u64> {
    if a & a.wrapping_sub(1) == 0 {
        return if a == 0 { Some(0) } else { shifted(b, a.trailing_zeros()) };
    }
    if b & b.wrapping_sub(1) == 0 {
        return if b == 0 { Some(0) } else { shifted(a, b.trailing_zeros()) };
    }
    long_product(a, b)
}

fn long_product(a: u64, b: u64) -> Option<u64> {
    // The highest bits of a product of polynomials do not cancel, so its length is known in
    // advance.
    if length(a) + length(b) > BITS + 1 {
        return None;
    }
    let (mut short, long) = (a.min(b), a.max(b));
    let mut product = 0;
    while short != 0 {
        product ^= long << short.trailing_zeros();
        short &= short - 1;
    }
    Some(product)
}

/// The number of bits that a number needs.
#[inline(always)]
pub(crate) fn length(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

#[inline(always)]
fn shifted(bits: u64, by: u32) -> Option<u64> {
    // The shift must keep all bits below bit 63.
    if by < BITS && bits >> (BITS - by) == 0 { Some(bits << by) } else { None }
}

impl Stride for Xor {
    type Extent = i64;

    const DISTRIBUTES: bool = false;

    #[inline(always)]
    fn zero() -> Xor {
        Xor(0)
    }

    #[inline(always)]
    fn is_zero(&self) -> Truth {
        Truth::from(self.0 == 0)
    }

    #[inline(always)]
    fn plus(&self, other: &Xor) -> Option<Xor> {
        Some(Xor(self.0 ^ other.0))
    }

    #[inline]
    fn times(&self, count: &i64) -> Option<Xor> {
        product(count.unsigned_abs(), self.0).map(Xor)
    }

    #[inline]
    fn continues(&self, extent: &i64, next: &Xor) -> Truth {
        let extent = extent.unsigned_abs();
        Truth::from(if self.0 == 0 {
            next.0 == 0
        } else {
            extent.is_power_of_two() && shifted(self.0, extent.trailing_zeros()) == Some(next.0)
        })
    }
}

impl Blocks for Xor {
    fn copies(block: &Layout<Xor>) -> Result<Layout<Xor>, LayoutError> {
        block.weak_complement_open()
    }
}

//! Numbers that the launch passes.
//!
//! Law: a value that depends only on sizes known at launch is computed once, by the host, and
//! passed as a number. So threads never compute strides, and a division by a size becomes a
//! multiplication.

use tilewright_layout::symbolic::Expr;

use crate::element::Element;

/// The number of counters of a module whose kernel claims indices or counts blocks: this many
/// streams and graphs may launch it.
pub const COUNTS: u32 = 1 << 16;

/// A number that the launch passes to all threads.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// The value of an expression over the sizes, in 32 or 64 bits.
    Size {
        /// The expression.
        value: Expr,
        /// The number of bits in which it is passed: 32 or 64.
        bits: u32,
    },
    /// Replaces a division by an expression of sizes by a multiplication: for `0 <= n < 2^31`, `n /
    /// d = high(n * multiplier) >> shift`, where `high` is the upper 32 bits. This is the 32-bit
    /// multiplier.
    Multiplier {
        /// The divisor, from 2 to 2^31 - 1. A divisor of 1 has multiplier 0, see [`reciprocal`].
        divisor: Expr,
    },
    /// The shift that goes with [`Scalar::Multiplier`], of 32 bits.
    Shift {
        /// The divisor.
        divisor: Expr,
    },
    /// The index of the counter of a launch, among the [`COUNTS`] of its module
    /// ([`Operation::Claim`], [`Operation::CountBlock`]), of 32 bits. No two launches that may run
    /// at the same time have the same counter. Consecutive launches may, because each leaves the
    /// counter at 0.
    ///
    /// [`Operation::Claim`]: super::operation::Operation::Claim
    /// [`Operation::CountBlock`]: super::operation::Operation::CountBlock
    Count,
    /// A scalar argument of the caller.
    Given {
        /// Its name.
        name: String,
        /// Its type.
        element: Element,
    },
}

impl Scalar {
    /// The number of bits in which it is passed.
    pub fn bits(&self) -> u32 {
        match self {
            Scalar::Size { bits, .. } => *bits,
            Scalar::Multiplier { .. } | Scalar::Shift { .. } | Scalar::Count => 32,
            Scalar::Given { element, .. } => element.bits().max(16),
        }
    }
}

/// Multiplier and shift for a division by `divisor`, from 1 to 2^31 - 1, of dividends below 2^31.
///
/// Law: `n / d = (n * m / 2^32) >> s` for every `0 <= n < 2^31`; for `d = 1` the multiplier is 0,
/// and a division by it is `n` itself, which the caller selects.
///
/// With `2^s >= d/2 > 2^s/2` and `m = ceil(2^(32+s) / d)`, `m` is below `2^32`, and the error
/// `e = m d - 2^(32+s)` is below `d <= 2^(s+1)`; the quotient is right as long as `n e < 2^(32+s)`,
/// which `n < 2^31` gives.
///
/// ```
/// use tilewright_kernel::reciprocal;
///
/// for d in [2_u32, 3, 7, 64, 641, 1 << 30, (1 << 31) - 1] {
///     let (multiplier, shift) = reciprocal(d);
///     for n in [0, 1, d - 1, d, 2_147_483_647] {
///         let quotient = ((u64::from(n) * u64::from(multiplier)) >> 32) >> shift;
///         assert_eq!(quotient, u64::from(n / d));
///     }
/// }
/// ```
pub fn reciprocal(divisor: u32) -> (u32, u32) {
    if divisor < 2 {
        return (0, 0);
    }
    let shift = 31 - (divisor - 1).leading_zeros();
    let multiplier = (1_u64 << (32 + shift)).div_ceil(u64::from(divisor));
    (u32::try_from(multiplier).unwrap_or(u32::MAX), shift)
}

#[cfg(test)]
mod tests {
    use super::reciprocal;

    #[test]
    fn quotients_are_right_at_every_boundary() {
        let mut divisors: Vec<u32> = (2..5000).collect();
        divisors.extend((12..31).flat_map(|bit| [(1_u32 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        divisors.push((1 << 31) - 1);
        for d in divisors {
            let (multiplier, shift) = reciprocal(d);
            let last = ((1_u64 << 31) - 1) / u64::from(d);
            let multiples = [0, 1, 2, last / 2, last.saturating_sub(1), last];
            for n in multiples.iter().flat_map(|q| [q * u64::from(d), (q * u64::from(d)).saturating_sub(1)]) {
                if n >= 1 << 31 {
                    continue;
                }
                let quotient = ((n * u64::from(multiplier)) >> 32) >> shift;
                assert_eq!(quotient, n / u64::from(d), "{n} / {d}");
            }
        }
    }
}

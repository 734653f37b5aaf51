//! Intervals of numbers, whose ends may be open, and numbers wide enough for products of two.

/// Integers of searches and bounds: wide enough for every product of two 64-bit numbers, and for
/// sums of such products that stay below 2^126.
pub(crate) type Wide = i128;

/// The least and the greatest value; `i64::MIN` and `i64::MAX` mean no bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Bounds {
    pub(crate) least: i64,
    pub(crate) greatest: i64,
}

const NONE_BELOW: i64 = i64::MIN;
const NONE_ABOVE: i64 = i64::MAX;

impl Bounds {
    pub(crate) fn exactly(value: i64) -> Bounds {
        Bounds { least: value, greatest: value }
    }

    /// An end beyond 64 bits is clamped to the nearest number, which is a looser bound or means no
    /// bound; it never becomes the mark of the other side.
    pub(crate) fn of(least: i64, greatest: i64) -> Bounds {
        Bounds { least: least.min(NONE_ABOVE - 1), greatest: greatest.max(NONE_BELOW + 1) }
    }

    pub(crate) fn plus(self, other: Bounds) -> Bounds {
        let end = |a: i64, b: i64, none: i64| if a == none || b == none { none } else { a.saturating_add(b) };
        Bounds::of(end(self.least, other.least, NONE_BELOW), end(self.greatest, other.greatest, NONE_ABOVE))
    }

    pub(crate) fn times(self, other: Bounds) -> Bounds {
        if self.least >= 0 && other.least >= 0 {
            return Bounds::of(self.least.saturating_mul(other.least), self.greatest.saturating_mul(other.greatest));
        }
        let mut least = i64::MAX;
        let mut greatest = i64::MIN;
        for a in [self.least, self.greatest] {
            for b in [other.least, other.greatest] {
                let infinite = |end: i64| end == NONE_BELOW || end == NONE_ABOVE;
                let product = match (a, b) {
                    (0, _) | (_, 0) => 0,
                    _ if infinite(a) || infinite(b) => {
                        if (a < 0) == (b < 0) {
                            NONE_ABOVE
                        } else {
                            NONE_BELOW
                        }
                    }
                    _ => a.saturating_mul(b),
                };
                least = least.min(product);
                greatest = greatest.max(product);
            }
        }
        Bounds::of(least, greatest)
    }

    /// The bounds of a quotient rounded down.
    pub(crate) fn floor(self, divisor: Bounds) -> Bounds {
        let least = match self.least {
            i64::MIN => i64::MIN,
            least if least >= 0 => {
                if divisor.greatest == i64::MAX {
                    0
                } else {
                    least / divisor.greatest.max(1)
                }
            }
            least => least.div_euclid(divisor.least.max(1)),
        };
        let greatest = match self.greatest {
            i64::MAX => i64::MAX,
            greatest if greatest >= 0 => greatest / divisor.least.max(1),
            greatest => {
                if divisor.greatest == i64::MAX {
                    -1
                } else {
                    greatest.div_euclid(divisor.greatest.max(1))
                }
            }
        };
        Bounds { least, greatest }
    }

    pub(crate) fn minimum(self, other: Bounds) -> Bounds {
        Bounds { least: self.least.min(other.least), greatest: self.greatest.min(other.greatest) }
    }

    pub(crate) fn least(self) -> Option<i64> {
        Some(self.least).filter(|end| *end > i64::MIN)
    }

    pub(crate) fn greatest(self) -> Option<i64> {
        Some(self.greatest).filter(|end| *end < i64::MAX)
    }
}

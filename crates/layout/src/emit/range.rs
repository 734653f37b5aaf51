//! Known bounds of a number.
//!
//! Law: the result of an operation on ranges contains every result of the operation on values in
//! the ranges. A bound is None if it is not known or exceeds the arithmetic here.

use alloc::vec::Vec;

use crate::symbolic::Rounding;

/// The smallest and the largest value; None if unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Range {
    pub(crate) least: Option<i128>,
    pub(crate) greatest: Option<i128>,
}

impl Range {
    pub(crate) const ALL: Range = Range { least: None, greatest: None };

    pub(crate) fn exactly(value: i64) -> Range {
        Range::of(Some(value), Some(value))
    }

    pub(crate) fn of(least: Option<i64>, greatest: Option<i64>) -> Range {
        Range { least: least.map(i128::from), greatest: greatest.map(i128::from) }
    }

    /// The range with 2 to the `exponent` as its only value.
    pub(crate) fn power(exponent: u32) -> Range {
        let power = 1_i128.checked_shl(exponent);
        Range { least: power, greatest: power }
    }

    /// The only value; None if there are several.
    pub(crate) fn only(self) -> Option<i64> {
        (self.least == self.greatest).then(|| i64::try_from(self.least?).ok())?
    }

    pub(crate) fn not_negative(self) -> bool {
        self.least.is_some_and(|least| least >= 0)
    }

    /// Whether every value lies between the two.
    pub(crate) fn within(self, least: i128, greatest: i128) -> bool {
        self.least.is_some_and(|own| own >= least) && self.greatest.is_some_and(|own| own <= greatest)
    }

    /// Whether every value of this range is less than every value of another (true), or none is
    /// (false); None if neither is known.
    pub(crate) fn less(self, other: Range) -> Option<bool> {
        let below = |a: Option<i128>, b: Option<i128>| Some(a? < b?);
        match (below(self.greatest, other.least), below(self.least, other.greatest)) {
            (Some(true), _) => Some(true),
            (_, Some(false)) => Some(false),
            _ => None,
        }
    }

    /// The intersection.
    pub(crate) fn and(self, other: Range) -> Range {
        let closer = |a: Option<i128>, b: Option<i128>, choose: fn(i128, i128) -> i128| match (a, b) {
            (Some(a), Some(b)) => Some(choose(a, b)),
            (a, b) => a.or(b),
        };
        Range {
            least: closer(self.least, other.least, i128::max),
            greatest: closer(self.greatest, other.greatest, i128::min),
        }
    }

    /// The union.
    pub(crate) fn or(self, other: Range) -> Range {
        let farther = |a: Option<i128>, b: Option<i128>, choose: fn(i128, i128) -> i128| Some(choose(a?, b?));
        Range {
            least: farther(self.least, other.least, i128::min),
            greatest: farther(self.greatest, other.greatest, i128::max),
        }
    }

    pub(crate) fn plus(self, other: Range) -> Range {
        let sum = |a: Option<i128>, b: Option<i128>| a?.checked_add(b?);
        Range { least: sum(self.least, other.least), greatest: sum(self.greatest, other.greatest) }
    }

    pub(crate) fn minus(self, other: Range) -> Range {
        let difference = |a: Option<i128>, b: Option<i128>| a?.checked_sub(b?);
        Range { least: difference(self.least, other.greatest), greatest: difference(self.greatest, other.least) }
    }

    pub(crate) fn times(self, other: Range) -> Range {
        if self.only() == Some(0) || other.only() == Some(0) {
            return Range::exactly(0);
        }
        if self.not_negative() && other.not_negative() {
            let product = |a: Option<i128>, b: Option<i128>| a?.checked_mul(b?);
            let least = product(self.least, other.least).or(Some(0));
            return Range { least, greatest: product(self.greatest, other.greatest) };
        }
        let ends = |range: Range| Some([range.least?, range.greatest?]);
        let products = || {
            let (own, others) = (ends(self)?, ends(other)?);
            let mut all = Vec::new();
            for a in own {
                for b in others {
                    all.push(a.checked_mul(b)?);
                }
            }
            Some(Range { least: all.iter().min().copied(), greatest: all.iter().max().copied() })
        };
        products().unwrap_or(Range::ALL)
    }

    pub(crate) fn magnitude(self) -> Range {
        let greatest = || Some(self.least?.checked_abs()?.max(self.greatest?.checked_abs()?));
        Range { least: Some(0), greatest: greatest() }
    }

    /// The quotient by a positive divisor.
    pub(crate) fn quotient(self, divisor: Range, rounding: Rounding) -> Range {
        let smallest = divisor.least.unwrap_or(1).max(1);
        let round = |n: i128, d: i128| match rounding {
            Rounding::Up => n.checked_add(d - 1).map(|sum| sum.div_euclid(d)),
            Rounding::TowardZero => Some(n / d),
            Rounding::Exact | Rounding::Plain | Rounding::Down => Some(n.div_euclid(d)),
        };
        // Rounding away from zero needs the least divisor, toward zero the greatest.
        let end = |n: Option<i128>, away: bool| {
            let n = n?;
            match (away, divisor.greatest) {
                (true, _) => round(n, smallest),
                (false, Some(greatest)) => round(n, greatest.max(1)),
                // The divisor may be arbitrarily large.
                (false, None) if n < 0 => Some(if rounding == Rounding::Down { -1 } else { 0 }),
                (false, None) => Some(i128::from(n > 0 && rounding == Rounding::Up)),
            }
        };
        Range {
            least: end(self.least, self.least.is_some_and(|n| n < 0)),
            greatest: end(self.greatest, self.greatest.is_some_and(|n| n > 0)),
        }
    }

    /// The remainder of a division by a positive divisor.
    pub(crate) fn remainder(self, divisor: Range, rounding: Rounding) -> Range {
        let below = divisor.greatest.map(|divisor| divisor - 1);
        match rounding {
            Rounding::TowardZero => Range { least: below.map(|below| -below), greatest: below },
            _ => {
                let own = self.greatest.filter(|_| self.not_negative());
                let greatest = match (below, own) {
                    (Some(below), Some(own)) => Some(below.min(own)),
                    (below, own) => below.or(own),
                };
                Range { least: Some(0), greatest }
            }
        }
    }

    pub(crate) fn minimum(self, other: Range) -> Range {
        let least = || Some(self.least?.min(other.least?));
        let greatest = match (self.greatest, other.greatest) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Range { least: least(), greatest }
    }

    /// The bits of a mask.
    pub(crate) fn masked(self, mask: i64) -> Range {
        let all = i128::from(mask);
        if mask < 0 {
            // Clearing bits of a nonnegative number keeps it nonnegative.
            let least = if self.not_negative() { Some(0) } else { self.least.and_then(|least| least.checked_add(all)) };
            return Range { least, greatest: self.greatest };
        }
        let greatest = if self.not_negative() { self.greatest.map_or(all, |own| own.min(all)) } else { all };
        Range { least: Some(0), greatest: Some(greatest) }
    }

    pub(crate) fn xor(self, other: Range) -> Range {
        // The result has no bit above the highest bit of both; a negative operand may set all.
        let length = |range: Range| {
            let bits = |end: Option<i128>| Some(128 - end?.checked_abs()?.leading_zeros());
            Some(bits(range.least)?.max(bits(range.greatest)?))
        };
        let signed = !(self.not_negative() && other.not_negative());
        let most = || 1_i128.checked_shl(length(self)?.max(length(other)?)).filter(|power| *power > 0);
        match most() {
            Some(power) => Range { least: Some(if signed { -power } else { 0 }), greatest: Some(power - 1) },
            None => Range { least: (!signed).then_some(0), greatest: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDINGS: [Rounding; 4] = [Rounding::Plain, Rounding::Up, Rounding::Down, Rounding::TowardZero];

    /// Ranges within -9 to 9, some of them unbounded; `values` lists unbounded ones up to 40.
    fn ranges() -> Vec<Range> {
        let ends: Vec<Option<i64>> = [None].into_iter().chain((-9..=9).step_by(3).map(Some)).collect();
        let mut all = Vec::new();
        for least in &ends {
            for greatest in &ends {
                if least.zip(*greatest).is_none_or(|(least, greatest)| least <= greatest) {
                    all.push(Range::of(*least, *greatest));
                }
            }
        }
        all
    }

    fn values(range: Range) -> impl Iterator<Item = i128> {
        range.least.unwrap_or(-40)..=range.greatest.unwrap_or(40)
    }

    fn holds(range: Range, value: i128) -> bool {
        range.least.is_none_or(|least| least <= value) && range.greatest.is_none_or(|greatest| value <= greatest)
    }

    fn rounded(n: i128, d: i128, rounding: Rounding) -> i128 {
        match rounding {
            Rounding::Up => n.div_euclid(d) + i128::from(n.rem_euclid(d) > 0),
            Rounding::TowardZero => n / d,
            _ => n.div_euclid(d),
        }
    }

    #[test]
    fn every_value_of_an_operation_is_in_its_range() {
        let masks = [1, 6, 7, 24, -8, -2];
        for a in ranges() {
            for x in values(a) {
                assert!(holds(a.magnitude(), x.abs()), "|{a:?}| at {x}");
                for mask in masks {
                    assert!(holds(a.masked(mask), x & i128::from(mask)), "{a:?} & {mask} at {x}");
                }
            }
            for b in ranges() {
                let pairs = || values(a).flat_map(|x| values(b).map(move |y| (x, y)));
                for (x, y) in pairs() {
                    let at = format!("{a:?} {b:?} at {x}, {y}");
                    assert!(holds(a.plus(b), x + y), "{at}");
                    assert!(holds(a.minus(b), x - y), "{at}");
                    assert!(holds(a.times(b), x * y), "{at}");
                    assert!(holds(a.minimum(b), x.min(y)), "{at}");
                    assert!(holds(a.xor(b), x ^ y), "{at}");
                    assert!(holds(a.or(b), x) && holds(a.or(b), y), "{at}");
                    assert!(a.less(b).is_none_or(|less| less == (x < y)), "{at}");
                }
                for (x, y) in pairs().filter(|(_, y)| *y > 0) {
                    for rounding in ROUNDINGS {
                        let quotient = rounded(x, y, rounding);
                        assert!(holds(a.quotient(b, rounding), quotient), "{a:?} / {b:?} {rounding:?} at {x}, {y}");
                        if rounding != Rounding::Up {
                            let left = x - y * quotient;
                            assert!(holds(a.remainder(b, rounding), left), "{a:?} % {b:?} {rounding:?} at {x}, {y}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_are_met() {
        let range = |least, greatest| Range::of(Some(least), Some(greatest));
        assert_eq!(range(0, 9).times(range(1, 4)), range(0, 36));
        assert_eq!(range(-3, 9).times(range(-2, 4)), range(-18, 36));
        assert_eq!(range(5, 100).quotient(range(7, 9), Rounding::Plain), range(0, 14));
        assert_eq!(range(5, 100).quotient(range(7, 9), Rounding::Up), range(1, 15));
        assert_eq!(range(-20, 20).quotient(range(3, 4), Rounding::TowardZero), range(-6, 6));
        assert_eq!(range(0, 100).remainder(range(7, 9), Rounding::Plain), range(0, 8));
        assert_eq!(range(0, 5).xor(range(0, 2)), range(0, 7));
        assert_eq!(range(0, 100).masked(24), range(0, 24));
    }
}

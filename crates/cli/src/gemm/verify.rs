//! Checks whether a result of a GEMM is right.
//!
//! Law: a verified element has a value that the arithmetic of its type can give, in some order of
//! summation.
//!
//! * Floats: a finite result is within the error bound of every order of summation. A result that
//!   is infinite or NaN must be the result of IEEE 754 in every order. If a partial sum may
//!   overflow in one order but not in another, an infinity or NaN is neither right nor wrong: the
//!   element counts as open.
//! * Integers: a result equals the exact one modulo `2^32`. Places that do not fit are counted.

use serde_json::json;

use super::number::Sum;
use crate::json::Json;

/// The terms of one sum.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    /// The sum of the finite terms.
    pub sum: f64,
    /// The sum of the magnitudes of the finite terms.
    pub size: f64,
    /// The number of all terms.
    count: u64,
    /// Whether a term is NaN, infinity, or minus infinity.
    nan: bool,
    plus: bool,
    minus: bool,
}

impl Terms {
    /// The terms of a sum of products.
    pub fn of_products(products: impl Iterator<Item = (f64, f64)>) -> Terms {
        let mut terms = Terms::default();
        for (a, b) in products {
            let product = a * b;
            terms.count += 1;
            if product.is_finite() || a.is_finite() && b.is_finite() {
                // The product of two finite numbers may be infinite. Then partial sums overflow.
                terms.sum += product;
                terms.size += product.abs();
            } else {
                terms.nan |= product.is_nan();
                terms.plus |= product == f64::INFINITY;
                terms.minus |= product == f64::NEG_INFINITY;
            }
        }
        terms
    }
}

/// The judgement of one element of C.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The element is right: its error and the bound on it; both 0 in exact arithmetic.
    Right(f64, f64),
    /// The element is infinite or NaN, and must be.
    Special,
    /// The element is right modulo `2^32`, and the exact result does not fit.
    Wrapped,
    /// The element is infinite or NaN, as some orders of summation give.
    Open,
    /// The element is wrong: the expected result, and its tolerance.
    Wrong(f64, f64),
}

/// The limits of a type of floats.
pub struct Limits {
    /// Half of the distance from 1 to the next number.
    pub unit: f64,
    /// The largest finite number, and the smallest positive one.
    pub greatest: f64,
    pub least: f64,
    /// The bound on the difference from the reference, divided by the bound on the error of one of
    /// the two: 1 if the reference is more precise, 2 if it has the same precision.
    pub slack: f64,
}

/// Judges a value `found` for `alpha * (sum of terms) + before`, computed in a type with these
/// limits. Alpha and `before` are finite.
pub fn judge_float(limits: &Limits, found: f64, terms: &Terms, alpha: f64, before: f64) -> Outcome {
    let Limits { unit, greatest, least, slack } = *limits;
    let errors = (terms.count + 3) as f64 * unit;
    if terms.nan || terms.plus && terms.minus || (terms.plus || terms.minus) && alpha == 0.0 {
        return if found.is_nan() { Outcome::Special } else { Outcome::Wrong(f64::NAN, 0.0) };
    }
    if errors >= 0.5 {
        // With this many terms, the bound is useless.
        return Outcome::Open;
    }
    let gamma = errors / (1.0 - errors);
    let size = alpha.abs() * terms.size + before.abs();
    // No partial sum, and no product of one with alpha, is larger.
    let fits = terms.size.max(size) * (1.0 + gamma) <= greatest;
    if terms.plus || terms.minus {
        let wanted = if terms.plus == (alpha > 0.0) { f64::INFINITY } else { f64::NEG_INFINITY };
        return match found {
            found if found == wanted && fits => Outcome::Special,
            found if found.is_finite() || fits => Outcome::Wrong(wanted, 0.0),
            _ => Outcome::Open,
        };
    }
    let exact = alpha * terms.sum + before;
    let underflow = errors / unit * least * alpha.abs().max(1.0);
    let bound = slack * gamma * size + underflow;
    let off = (found - exact).abs();
    if found.is_finite() {
        return match off <= bound {
            true => Outcome::Right(off, bound),
            false if exact.is_finite() => Outcome::Wrong(exact, bound),
            // The reference overflowed.
            false => Outcome::Open,
        };
    }
    if fits {
        return Outcome::Wrong(exact, bound);
    }
    // If all terms have the same sign, the magnitude of partial sums only grows: a result beyond
    // the largest number overflows in every order.
    let one_sign = terms.size == terms.sum.abs() && alpha * terms.sum * before >= 0.0;
    match one_sign && exact.abs() - bound > greatest {
        true if found == exact.signum() * f64::INFINITY => Outcome::Special,
        true => Outcome::Wrong(exact.signum() * f64::INFINITY, 0.0),
        false => Outcome::Open,
    }
}

/// Judges `alpha * (sum of terms) + beta * old` of whole numbers.
pub fn judge_integer(found: i32, terms: &Terms, [alpha, beta]: [i32; 2], old: i32) -> Outcome {
    // Terms are products of bytes; a sum of 2^32 of them is exact in double precision.
    let exact = i128::from(alpha) * terms.sum as i128 + i128::from(beta) * i128::from(old);
    match exact {
        exact if exact == i128::from(found) => Outcome::Right(0.0, 0.0),
        exact if exact as i32 == found => Outcome::Wrapped,
        exact => Outcome::Wrong(exact as f64, 0.0),
    }
}

/// The counts of the outcomes of the elements that were checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    looked_at: u64,
    finite: u64,
    special: u64,
    wrapped: u64,
    open: u64,
    /// The largest error, as a fraction of its bound.
    worst: f64,
    /// The largest difference, and its bound.
    error: f64,
    bound: f64,
}

impl Tally {
    /// Counts an element. The error says what is wrong with it.
    pub fn count(&mut self, outcome: Outcome) -> Result<(), String> {
        self.looked_at += 1;
        match outcome {
            Outcome::Right(off, bound) => {
                self.finite += 1;
                self.worst = self.worst.max(if off == 0.0 { 0.0 } else { off / bound });
                if off > self.error {
                    (self.error, self.bound) = (off, bound);
                }
            }
            Outcome::Special => self.special += 1,
            Outcome::Wrapped => self.wrapped += 1,
            Outcome::Open => self.open += 1,
            Outcome::Wrong(wanted, 0.0) => return Err(format!("should be {wanted}")),
            Outcome::Wrong(wanted, bound) => return Err(format!("should be {wanted}, give or take {bound}")),
        }
        Ok(())
    }

    /// The counts as a JSON object.
    pub fn json<S: Sum>(&self, places: i64) -> Json {
        let exact = S::IS_EXACT && self.wrapped == 0;
        let off = !S::IS_EXACT && self.finite > 0;
        json!({
            "places": places,
            "compared": self.looked_at - self.open,
            "exact": exact,
            "error": off.then_some(self.error),
            "error_bound": (off && self.error > 0.0).then_some(self.bound),
            "worst": off.then_some(self.worst),
            "wrapped": self.wrapped,
            "special": self.special,
            "open": self.open,
        })
    }

    /// The verified elements, in words.
    pub fn verdict<S: Sum>(&self, places: i64) -> String {
        let verified = self.looked_at - self.open;
        let mut text = format!("verified {verified} of {places} places");
        if S::IS_EXACT && self.wrapped == 0 {
            text.push_str(", exact");
        } else if S::IS_EXACT {
            let (count, verb) = (self.wrapped, if self.wrapped == 1 { "does" } else { "do" });
            text.push_str(&format!(", exact modulo 2^32: {count} of them {verb} not fit into 32 bits and wrapped"));
        } else if self.finite > 0 {
            text.push_str(&format!(", off by {:.3} of the bound at the most", self.worst));
        }
        if self.special > 0 {
            text.push_str(&format!(", {} of them infinite or NaN as IEEE 754 has it", self.special));
        }
        if self.open > 0 {
            let count = self.open;
            text.push_str(&format!("; {count} not verified, where partial sums overflow in some orders of summation"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINGLE: Limits =
        Limits { unit: f32::EPSILON as f64 / 2.0, greatest: f32::MAX as f64, least: 1.5e-45, slack: 1.001 };

    fn judged(found: f32, terms: &[f64], alpha: f64, before: f64) -> Outcome {
        let terms = Terms::of_products(terms.iter().map(|term| (*term, 1.0)));
        judge_float(&SINGLE, f64::from(found), &terms, alpha, before)
    }

    #[test]
    fn finite_results_are_within_the_bound() {
        assert!(matches!(judged(6.0, &[1.0, 2.0, 3.0], 1.0, 0.0), Outcome::Right(0.0, _)));
        assert!(
            matches!(judged(6.000_001, &[1.0, 2.0, 3.0], 1.0, 0.0), Outcome::Right(off, bound) if 0.0 < off && off <= bound)
        );
        assert!(matches!(judged(6.001, &[1.0, 2.0, 3.0], 1.0, 0.0), Outcome::Wrong(..)));
        assert!(matches!(judged(-11.0, &[1.0, 2.0, 3.0], -2.0, 1.0), Outcome::Right(0.0, _)));
        // A finite result that is right stays right, even if partial sums may have overflowed.
        assert!(matches!(judged(1.0, &[3e38, -3e38, 3e38, -3e38, 1.0], 1.0, 0.0), Outcome::Right(0.0, _)));
    }

    #[test]
    fn infinities_and_nan_are_those_of_the_arithmetic() {
        let (infinity, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!(judged(f32::INFINITY, &[1.0, infinity], 2.0, 0.0), Outcome::Special);
        assert_eq!(judged(f32::NEG_INFINITY, &[1.0, infinity], -2.0, 0.0), Outcome::Special);
        assert!(matches!(judged(f32::NAN, &[1.0, infinity], 2.0, 0.0), Outcome::Wrong(..)));
        assert!(matches!(judged(1.0, &[1.0, infinity], 2.0, 0.0), Outcome::Wrong(..)));
        assert_eq!(judged(f32::NAN, &[1.0, infinity], 0.0, 0.0), Outcome::Special);
        assert_eq!(judged(f32::NAN, &[infinity, -infinity], 1.0, 0.0), Outcome::Special);
        assert_eq!(judged(f32::NAN, &[1.0, nan], 1.0, 0.0), Outcome::Special);
        assert!(matches!(judged(1.0, &[1.0, nan], 1.0, 0.0), Outcome::Wrong(..)));
        // Finite terms that fit give neither an infinity nor NaN.
        assert!(matches!(judged(f32::INFINITY, &[1.0, 2.0], 1.0, 0.0), Outcome::Wrong(..)));
        assert!(matches!(judged(f32::NAN, &[1.0, 2.0], 1.0, 0.0), Outcome::Wrong(..)));
    }

    #[test]
    fn overflow_on_the_way_is_not_verified() {
        assert_eq!(judged(f32::INFINITY, &[3e38, 3e38, -3e38, -3e38, 1.0], 1.0, 0.0), Outcome::Open);
        assert_eq!(judged(f32::NAN, &[3e38, 3e38, -3e38, -3e38, 1.0], 1.0, 0.0), Outcome::Open);
        // With one sign every order overflows.
        assert_eq!(judged(f32::INFINITY, &[3e38, 3e38], 1.0, 0.0), Outcome::Special);
        assert!(matches!(judged(f32::NAN, &[3e38, 3e38], 1.0, 0.0), Outcome::Wrong(..)));
        assert_eq!(judged(f32::INFINITY, &[3e38, 1.0, infinite()], 1.0, 0.0), Outcome::Special);
    }

    fn infinite() -> f64 {
        f64::INFINITY
    }

    #[test]
    fn whole_numbers_are_compared_modulo_two_to_the_32() {
        let terms = Terms::of_products((0..140_000).map(|_| (-128.0, -128.0)));
        assert_eq!(judge_integer(-2_001_207_296, &terms, [1, 0], 0), Outcome::Wrapped);
        assert!(matches!(judge_integer(-2_001_207_295, &terms, [1, 0], 0), Outcome::Wrong(..)));
        let terms = Terms::of_products([(3.0, -5.0)].into_iter());
        assert_eq!(judge_integer(-31, &terms, [2, -1], 1), Outcome::Right(0.0, 0.0));
        assert_eq!(judge_integer(30, &terms, [2, i32::MAX], 0), Outcome::Wrong(-30.0, 0.0));
    }
}

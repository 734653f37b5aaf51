//! Constructors of facts and parameters, which may refuse.

pub(super) use crate::ground::parameter::WIDTHS;
pub use crate::ground::parameter::{Facts, Parameter};
use crate::refusal::error::{Fits, LayoutError};
use crate::value::number::lcm;

impl Facts {
    /// Adds the fact that the value is a multiple of `divisor`.
    ///
    /// Errors: `divisor` is not positive; no value has all facts ([`LayoutError::Argument`]).
    pub fn multiple_of(self, divisor: i64) -> Result<Facts, LayoutError> {
        if divisor <= 0 {
            return Err(refused("div", divisor, "positive"));
        }
        let divisor = lcm(self.divisor, divisor).fits(OP)?;
        Facts { divisor, ..self }.settled("div", divisor)
    }

    /// Adds the fact that the value is at least `least`.
    ///
    /// Errors: no value has all facts ([`LayoutError::Argument`]).
    pub fn at_least(self, least: i64) -> Result<Facts, LayoutError> {
        Facts { least: self.least.max(least), ..self }.settled("min", least)
    }

    /// Adds the fact that the value is at most `greatest`.
    ///
    /// Errors: no value has all facts ([`LayoutError::Argument`]).
    pub fn at_most(self, greatest: i64) -> Result<Facts, LayoutError> {
        Facts { greatest: self.greatest.min(greatest), ..self }.settled("max", greatest)
    }

    /// The conjunction of both.
    ///
    /// Errors: no value has both ([`LayoutError::Argument`]).
    pub fn and(self, other: Facts) -> Result<Facts, LayoutError> {
        self.at_least(other.least)?.at_most(other.greatest)?.multiple_of(other.divisor)
    }

    /// Rounds the bounds inward to multiples of the divisor.
    fn settled(mut self, what: &'static str, value: i64) -> Result<Facts, LayoutError> {
        let divisor = self.divisor;
        if let Some(least) = self.least() {
            let up = least.checked_sub(least.rem_euclid(divisor));
            self.least = match up {
                Some(multiple) if multiple < least => multiple.checked_add(divisor),
                other => other,
            }
            .ok_or_else(|| refused(what, value, "such that a value remains"))?;
        }
        if let Some(greatest) = self.greatest() {
            self.greatest = greatest
                .checked_sub(greatest.rem_euclid(divisor))
                .ok_or_else(|| refused(what, value, "such that a value remains"))?;
        }
        if self.least > self.greatest {
            return Err(refused(what, value, "such that a value remains"));
        }
        Ok(self)
    }
}

const OP: &str = "declare";

#[cold]
fn refused(what: &'static str, value: i64, wanted: &'static str) -> LayoutError {
    LayoutError::Argument { op: OP, what, value, wanted }
}

impl Parameter {
    /// The parameter of this name.
    ///
    /// Errors: the name is not a letter followed by letters, digits and `_`
    /// ([`LayoutError::Syntax`]).
    pub fn named(name: &str, facts: Facts) -> Result<Parameter, LayoutError> {
        let bytes = name.as_bytes();
        let good = |(at, byte): (usize, &u8)| {
            byte.is_ascii_alphabetic() || (at > 0 && (byte.is_ascii_digit() || *byte == b'_'))
        };
        match bytes.iter().enumerate().position(|place| !good(place)) {
            None if !bytes.is_empty() => Ok(Parameter::given(name, facts)),
            at => Err(LayoutError::Syntax {
                at: at.unwrap_or(0),
                expected: "a name: a letter, then letters, digits or '_'",
            }),
        }
    }
}

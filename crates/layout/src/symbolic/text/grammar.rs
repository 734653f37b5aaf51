//! The grammar of expressions.
//!
//! ```text
//! expr   := [ '-' ] term { ( '+' | '-' ) term }
//! term   := factor { ( '*' | '/' | '%' ) factor }                 from the left; `/` and `%` toward zero
//! factor := integer | name [ facts ] | '?' [ facts ] | '(' expr ')'
//!         | ( 'floor' | 'ceil' | 'trunc' ) '(' expr ')'           of a quotient `a/b`: how it is rounded
//!         | ( 'mod' | 'rem' | 'min' | 'max' ) '(' expr ',' expr ')'
//! facts  := '{' [ fact { [ ',' ] fact } ] '}'
//! fact   := ( 'div' | 'min' | 'max' ) '=' integer | 'int' | 'i8' | 'i16' | 'i32' | 'i64'
//! ```

use super::{Declarations, overflow};
use crate::coordinate::Coordinate;
use crate::refusal::error::LayoutError;
use crate::symbolic::expression::Expr;
use crate::symbolic::parameter::{Facts, Parameter, WIDTHS};
use crate::symbolic::quotient;
use crate::text::reading::Cursor;
use crate::value::number::{Extent, Stride};

/// The greatest nesting depth of an expression.
const MAX_NESTING: usize = 32;

impl<'a> Cursor<'a> {
    /// A run of letters, digits and `_`, possibly empty.
    pub(super) fn word(&mut self) -> &'a str {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        self.at += length;
        rest.get(..length).and_then(|word| core::str::from_utf8(word).ok()).unwrap_or_default()
    }

    pub(super) fn name(&mut self) -> &'a str {
        self.word()
    }

    /// Whether `_` comes next and is not the beginning of a number.
    pub(super) fn underscore(&mut self) -> bool {
        let found = self.peek() == Some(b'_') && !self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), LayoutError> {
        if self.eat(byte) { Ok(()) } else { self.fail(expected) }
    }

    /// Parses `{div=8,min=16}`; `unknown` has the facts that hold otherwise.
    pub(in crate::symbolic) fn facts(&mut self, unknown: Facts) -> Result<Facts, LayoutError> {
        self.expect(b'{', "'{'")?;
        self.facts_until(unknown, Some(b'}'))
    }

    pub(super) fn facts_until(&mut self, unknown: Facts, end: Option<u8>) -> Result<Facts, LayoutError> {
        let mut facts = Facts::integer();
        let mut bounded = false;
        while self.peek() != end {
            let start = self.at;
            let word = self.word();
            facts = match word {
                "int" => {
                    bounded = true;
                    facts
                }
                "i64" => facts,
                "div" | "min" | "max" => {
                    self.expect(b'=', "'='")?;
                    self.peek();
                    let at = self.at;
                    let value = self.integer()?;
                    bounded |= word == "min";
                    let narrowed = match word {
                        "div" => facts.multiple_of(value),
                        "min" => facts.at_least(value),
                        _ => facts.at_most(value),
                    };
                    narrowed.inspect_err(|_| self.at = at)?
                }
                word => match WIDTHS.iter().find(|(name, ..)| *name == word) {
                    Some((_, least, greatest)) => facts.at_least(*least)?.at_most(*greatest)?,
                    None => {
                        self.at = start;
                        return self.fail("a fact: div=, min=, max=, int, i8, i16, i32 or i64");
                    }
                },
            };
            self.eat(b',');
        }
        self.at += usize::from(end.is_some());
        if bounded { Ok(facts) } else { facts.and(unknown) }
    }

    /// Parses an expression. A `?` in it has the facts `unknown`.
    pub(in crate::symbolic) fn sum(
        &mut self,
        names: &Declarations,
        unknown: Facts,
        depth: usize,
    ) -> Result<Expr, LayoutError> {
        if depth > MAX_NESTING {
            return self.fail("an expression that nests less deeply");
        }
        let mut sum = Expr::known(0);
        let mut negative = self.eat(b'-');
        loop {
            let term = self.product(negative, names, unknown, depth)?;
            sum = sum.plus_expr(&term).ok_or_else(overflow)?;
            negative = match self.peek() {
                Some(b'+') => false,
                Some(b'-') => true,
                _ => return Ok(sum),
            };
            self.at += 1;
        }
    }

    /// Parses a sum of steps along modes, each an expression and a path. A `?` in it is any
    /// integer.
    pub(super) fn step_sum(&mut self, names: &Declarations) -> Result<Coordinate<Expr>, LayoutError> {
        let mut sum = Coordinate::zero();
        let mut negative = self.eat(b'-');
        loop {
            let scale = self.product(negative, names, Facts::integer(), 0)?;
            let step = Coordinate::step(scale, self.path(&mut 0)?);
            sum = sum.plus(&step).ok_or_else(overflow)?;
            negative = match self.peek() {
                Some(b'+') => false,
                Some(b'-') => true,
                _ => return Ok(sum),
            };
            self.at += 1;
        }
    }

    fn product(
        &mut self,
        negative: bool,
        names: &Declarations,
        unknown: Facts,
        depth: usize,
    ) -> Result<Expr, LayoutError> {
        let mut product = self.factor(negative, names, unknown, depth)?;
        loop {
            let operator = match self.peek() {
                Some(byte @ (b'*' | b'/' | b'%')) => byte,
                _ => return Ok(product),
            };
            self.at += 1;
            self.peek();
            let at = self.at;
            let factor = self.factor(false, names, unknown, depth)?;
            product = match operator {
                b'*' => product.times(&factor).ok_or_else(overflow)?,
                _ => {
                    let (quotient, remainder) = self.quotient(&product, &factor, at)?;
                    if operator == b'/' { quotient } else { remainder }
                }
            };
        }
    }

    /// Quotient and remainder; the divisor is at byte `at`.
    fn quotient(&mut self, dividend: &Expr, divisor: &Expr, at: usize) -> Result<(Expr, Expr), LayoutError> {
        if !Expr::zero().less(divisor).proved() {
            self.at = at;
            return self.fail("a divisor that is known to be positive");
        }
        dividend.divide(divisor).ok_or_else(overflow)
    }

    fn factor(
        &mut self,
        negative: bool,
        names: &Declarations,
        unknown: Facts,
        depth: usize,
    ) -> Result<Expr, LayoutError> {
        let signed = |value: Expr| if negative { value.negated().ok_or_else(overflow) } else { Ok(value) };
        match self.peek() {
            Some(b'(') => {
                self.at += 1;
                let inner = self.sum(names, unknown, depth + 1)?;
                self.expect(b')', "')'")?;
                signed(inner)
            }
            Some(b'?') => {
                self.at += 1;
                let facts = if self.peek() == Some(b'{') { self.facts(unknown)? } else { unknown };
                signed(Expr::from(Parameter::anonymous(facts)))
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                let start = self.at;
                let name = self.name();
                match self.peek() {
                    Some(b'(') => signed(self.call(name, start, names, unknown, depth)?),
                    Some(b'{') => {
                        self.facts(Facts::positive())?;
                        signed(Expr::from(names.parameter(name)?))
                    }
                    _ => signed(Expr::from(names.parameter(name)?)),
                }
            }
            _ => self.signed_integer(negative).map(Expr::known),
        }
    }

    fn call(
        &mut self,
        name: &str,
        start: usize,
        names: &Declarations,
        unknown: Facts,
        depth: usize,
    ) -> Result<Expr, LayoutError> {
        self.expect(b'(', "'('")?;
        let result = match name {
            "floor" | "ceil" | "trunc" => {
                // The rounding applies to the last division of the operand.
                let negative = self.eat(b'-');
                let mut dividend = self.factor(negative, names, unknown, depth + 1)?;
                let mut divisor: Option<(Expr, usize)> = None;
                while let Some(operator @ (b'*' | b'/' | b'%')) = self.peek() {
                    if let Some((divisor, at)) = divisor.take() {
                        (dividend, _) = self.quotient(&dividend, &divisor, at)?;
                    }
                    self.at += 1;
                    self.peek();
                    let at = self.at;
                    let factor = self.factor(false, names, unknown, depth + 1)?;
                    match operator {
                        b'*' => dividend = dividend.times(&factor).ok_or_else(overflow)?,
                        b'%' => (_, dividend) = self.quotient(&dividend, &factor, at)?,
                        _ => divisor = Some((factor, at)),
                    }
                }
                let Some((divisor, at)) = divisor else { return self.fail("'/'") };
                let (truncated, _) = self.quotient(&dividend, &divisor, at)?;
                match name {
                    "floor" => quotient::floor(&dividend, &divisor),
                    "ceil" => quotient::ceil(&dividend, &divisor),
                    _ => Some(truncated),
                }
            }
            "mod" | "rem" | "min" | "max" => {
                let left = self.sum(names, unknown, depth + 1)?;
                self.expect(b',', "','")?;
                self.peek();
                let at = self.at;
                let right = self.sum(names, unknown, depth + 1)?;
                match name {
                    "min" => left.minimum(&right),
                    "max" => left.maximum(&right),
                    _ => {
                        let (_, remainder) = self.quotient(&left, &right, at)?;
                        match name {
                            "rem" => Some(remainder),
                            _ => {
                                quotient::floor(&left, &right).and_then(|quotient| left.minus(&quotient.times(&right)?))
                            }
                        }
                    }
                }
            }
            _ => {
                self.at = start;
                return self.fail("floor, ceil, trunc, mod, rem, min or max before '('");
            }
        };
        self.expect(b')', "')'")?;
        result.ok_or_else(overflow)
    }

    /// An integer, after its sign was read.
    fn signed_integer(&mut self, negative: bool) -> Result<i64, LayoutError> {
        // A sign directly before the digits belongs to the number, because the least number has no
        // opposite.
        if negative && self.text.get(self.at.wrapping_sub(1)) == Some(&b'-') {
            self.at -= 1;
            return self.integer();
        }
        let value = self.integer()?;
        if negative { value.checked_neg().ok_or_else(overflow) } else { Ok(value) }
    }
}

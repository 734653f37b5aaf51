//! Reading expressions, and trees, layouts and tilers of them.
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
//!
//! In a tree a leaf does not begin with a parenthesis: that opens a tuple. `mod(a,b)` is what
//! `floor(a/b)` leaves, `rem(a,b)` what `a/b` does.
//!
//! A name is positive unless its facts say `int` or give a `min`. So is `?`, except in a stride,
//! where it is any integer: a stride that is not known has no sign either. The facts of a name hold
//! throughout the text that declares them, wherever they stand.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;

use super::expression::Expr;
use super::parameter::{Facts, Parameter, WIDTHS};
use super::quotient;
use crate::coordinate::Coordinate;
use crate::refusal::error::LayoutError;
use crate::text::reading::Cursor;
use crate::tile::tiler::{Tiler, read_tiler};
use crate::value::coord::{Coord, Slot};
use crate::value::layout::Layout;
use crate::value::number::{Extent, Stride};
use crate::value::profile::Profile;
use crate::value::tree::Tree;

/// The names that a text or a program uses, and what is known about each.
///
/// Facts that are given in several places hold together.
///
/// ```
/// use tilewright_layout::symbolic::Declarations;
///
/// let mut names = Declarations::new();
/// names.gather("(M{div=64},K):(K,1)").unwrap();
/// names.gather("M{max=4096}").unwrap();
/// let tile = names.expr("M/64").unwrap();
/// assert_eq!(tile.range(), (Some(1), Some(64)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Declarations {
    names: BTreeMap<String, Parameter>,
}

impl Declarations {
    /// No names.
    pub fn new() -> Declarations {
        Declarations::default()
    }

    /// Declares a name, or adds to what is known of it.
    ///
    /// Errors: the name is not one; no value has all its facts ([`LayoutError::Argument`]).
    pub fn declare(&mut self, name: &str, facts: Facts) -> Result<(), LayoutError> {
        let facts = match self.names.get(name) {
            Some(before) => before.facts().and(facts)?,
            None => facts,
        };
        self.names.insert(name.to_string(), Parameter::named(name, facts)?);
        Ok(())
    }

    /// Declares every name that stands with facts in a text: `M{div=128}`. The text need not be a
    /// value.
    ///
    /// Errors: the facts of a name cannot be read ([`LayoutError::Syntax`]); as
    /// [`Declarations::declare`].
    pub fn gather(&mut self, text: &str) -> Result<(), LayoutError> {
        let mut cursor = Cursor::new(text);
        while let Some(byte) = cursor.peek() {
            if byte.is_ascii_alphabetic() {
                let name = cursor.name();
                if cursor.peek() == Some(b'{') {
                    let facts = cursor.facts(Facts::positive())?;
                    self.declare(name, facts)?;
                }
            } else if byte.is_ascii_digit() || byte == b'_' {
                // Digits with letters, such as 0x40, are not names.
                cursor.word();
            } else {
                cursor.at += 1;
            }
        }
        Ok(())
    }

    /// The parameter of a name: as declared, otherwise positive.
    ///
    /// Errors: the name is not one.
    pub fn parameter(&self, name: &str) -> Result<Parameter, LayoutError> {
        match self.names.get(name) {
            Some(parameter) => Ok(parameter.clone()),
            None => Parameter::named(name, Facts::positive()),
        }
    }

    /// Reads an expression.
    pub fn expr(&self, text: &str) -> Result<Expr, LayoutError> {
        let mut cursor = Cursor::new(text);
        let expr = cursor.sum(self, Facts::positive(), 0)?;
        cursor.end()?;
        Ok(expr)
    }

    /// Reads a tree of expressions in which a `?` is positive.
    pub fn tree(&self, text: &str) -> Result<Tree<Expr>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let tree = self.subtree(&mut cursor, Facts::positive())?;
        cursor.end()?;
        Ok(tree)
    }

    fn subtree(&self, cursor: &mut Cursor<'_>, unknown: Facts) -> Result<Tree<Expr>, LayoutError> {
        let (nodes, leaves) = cursor.tree_of(|cursor| cursor.sum(self, unknown, 0))?;
        Ok(Tree::from_parts(Profile::from_nodes(nodes), leaves))
    }

    /// Reads a coordinate. A `?` in it is any integer.
    pub fn coord(&self, text: &str) -> Result<Coord<Expr>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let (nodes, leaves) = cursor.tree_of(|cursor| match cursor.underscore() {
            true => Ok(Slot::All),
            false => cursor.sum(self, Facts::integer(), 0).map(Slot::At),
        })?;
        cursor.end()?;
        Ok(Tree::from_parts(Profile::from_nodes(nodes), leaves))
    }

    /// Reads a layout; the strides default to compact, first mode fastest.
    pub fn layout(&self, text: &str) -> Result<Layout<Expr>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let shape = self.subtree(&mut cursor, Facts::positive())?;
        if !cursor.eat(b':') {
            cursor.end()?;
            return Layout::compact(&shape);
        }
        let stride = self.subtree(&mut cursor, Facts::integer())?;
        cursor.end()?;
        Layout::new(&shape, &stride)
    }

    /// Reads a layout of coordinates: strides such as `1@0` or `M@1`.
    ///
    /// ```
    /// use tilewright_layout::symbolic::Declarations;
    ///
    /// let layout = Declarations::new().coordinate_layout("(4,M):(1@0,2*K@1)").unwrap();
    /// assert_eq!(layout.to_string(), "(4,M):(1@0,2*K@1)");
    /// ```
    pub fn coordinate_layout(&self, text: &str) -> Result<Layout<Coordinate<Expr>>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let shape = self.subtree(&mut cursor, Facts::positive())?;
        cursor.expect(b':', "':' and the strides")?;
        let stride = self.steps(&mut cursor)?;
        cursor.end()?;
        Layout::new(&shape, &stride)
    }

    /// Reads a tuple of coordinate steps.
    pub fn coordinate_steps(&self, text: &str) -> Result<Tree<Coordinate<Expr>>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let steps = self.steps(&mut cursor)?;
        cursor.end()?;
        Ok(steps)
    }

    fn steps(&self, cursor: &mut Cursor<'_>) -> Result<Tree<Coordinate<Expr>>, LayoutError> {
        let (nodes, leaves) = cursor.tree_of(|cursor| cursor.step_sum(self))?;
        Ok(Tree::from_parts(Profile::from_nodes(nodes), leaves))
    }

    /// Reads a tiler.
    pub fn tiler(&self, text: &str) -> Result<Tiler<Expr>, LayoutError> {
        read_tiler(text, &|value, strides| match strides {
            true => self.layout(value).map(Tiler::Layout),
            false => Tiler::from_shape(&self.tree(value)?),
        })
    }
}

/// How deeply an expression may nest.
const MAX_NESTING: usize = 32;

impl<'a> Cursor<'a> {
    /// Letters, digits and `_`, which may be none.
    fn word(&mut self) -> &'a str {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        self.at += length;
        rest.get(..length).and_then(|word| core::str::from_utf8(word).ok()).unwrap_or_default()
    }

    fn name(&mut self) -> &'a str {
        self.word()
    }

    /// `_` alone, which is not the beginning of a number.
    fn underscore(&mut self) -> bool {
        let found = self.peek() == Some(b'_') && !self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), LayoutError> {
        if self.eat(byte) { Ok(()) } else { self.fail(expected) }
    }

    /// `{div=8,min=16}`, for a parameter that is otherwise as `unknown` says.
    pub(super) fn facts(&mut self, unknown: Facts) -> Result<Facts, LayoutError> {
        self.expect(b'{', "'{'")?;
        self.facts_until(unknown, Some(b'}'))
    }

    fn facts_until(&mut self, unknown: Facts, end: Option<u8>) -> Result<Facts, LayoutError> {
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

    /// An expression. A `?` in it is as `unknown` says.
    pub(super) fn sum(&mut self, names: &Declarations, unknown: Facts, depth: usize) -> Result<Expr, LayoutError> {
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

    /// A sum of steps along modes: an expression and a path each. A `?` in one is any integer.
    fn step_sum(&mut self, names: &Declarations) -> Result<Coordinate<Expr>, LayoutError> {
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

    /// Quotient and remainder; the divisor stands at byte `at`.
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
                // The last division of the operand is the one that is rounded.
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

    /// An integer after its sign.
    fn signed_integer(&mut self, negative: bool) -> Result<i64, LayoutError> {
        // The sign belongs to the digits where it stands before them, for the least number has no
        // opposite.
        if negative && self.text.get(self.at.wrapping_sub(1)) == Some(&b'-') {
            self.at -= 1;
            return self.integer();
        }
        let value = self.integer()?;
        if negative { value.checked_neg().ok_or_else(overflow) } else { Ok(value) }
    }
}

fn overflow() -> LayoutError {
    LayoutError::overflow("parse")
}

/// Reads a text whose own facts are all that is known.
fn read<T>(text: &str, read: impl FnOnce(&Declarations, &str) -> Result<T, LayoutError>) -> Result<T, LayoutError> {
    let mut names = Declarations::new();
    names.gather(text)?;
    read(&names, text)
}

/// Texts read by themselves: each kind by its method of [`Declarations`].
macro_rules! read_alone {
    ($($kind:ty, $method:ident;)*) => {
        $(
            impl FromStr for $kind {
                type Err = LayoutError;

                fn from_str(text: &str) -> Result<$kind, LayoutError> {
                    read(text, Declarations::$method)
                }
            }
        )*
    };
}

read_alone! {
    Expr, expr;
    Tree<Expr>, tree;
    Coord<Expr>, coord;
    Layout<Expr>, layout;
    Tiler<Expr>, tiler;
}

impl FromStr for Facts {
    type Err = LayoutError;

    /// Reads `div=128,max=4096`: positive, unless `int` or a `min` is among them.
    fn from_str(text: &str) -> Result<Facts, LayoutError> {
        Cursor::new(text).facts_until(Facts::positive(), None)
    }
}

/// A text in which the first occurrence of each name has its facts.
pub(super) fn with_facts(text: &str, parameters: &[Parameter]) -> String {
    let mut out = String::new();
    let mut missing: Vec<&Parameter> = parameters.iter().collect();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
        let length = match first {
            // What is in braces is not a name.
            '{' => rest.find('}').map_or(rest.len(), |end| end + 1),
            first if word(first) => rest.find(|byte| !word(byte)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match missing.iter().position(|parameter| parameter.name() == Some(token)) {
            // What goes on with a bracket is a function or a swizzle.
            Some(place) if !after.starts_with(['(', '<']) => {
                out.push_str(&alloc::format!("{:#}", missing.swap_remove(place)))
            }
            _ => out.push_str(token),
        }
        rest = after;
    }
    out
}

//! Nested tuples as CuTe prints them, and their text in our notation.
//!
//! Law: [`Tuple`] prints as text of the expression language with the same meaning: `_4` is 4, a
//! step `2@1@0` begins with its innermost mode in both, and a dynamic number is `?` with the facts
//! that the text contains.

use std::fmt;
use std::ops::Range;

use tilewright_layout::MAX_DEPTH;
use tilewright_notation::{Environment, Value, evaluate};

use crate::cursor::Cursor;
use crate::refused::Refused;

/// A nested tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tuple {
    /// A static number.
    Known(i64),
    /// A dynamic number, and a number that divides it: `?{div=16}`.
    Unknown {
        /// A divisor of it.
        divisor: i64,
    },
    /// A fraction, `1/16`.
    Fraction(i64, i64),
    /// A step along a mode: the scale, and the path with the innermost mode first.
    Step(Box<Tuple>, Vec<usize>),
    /// `_`
    Keep,
    /// A nested tuple.
    Tuple(Vec<Tuple>),
}

impl Tuple {
    /// Reads a tuple, a number, a step or `_`. If there is none, returns None, and the position of
    /// the cursor is unspecified. Blanks and line ends inside brackets are skipped.
    pub fn read(cursor: &mut Cursor<'_>) -> Option<Tuple> {
        read(cursor, 0)
    }

    /// Whether it contains a `_`.
    pub fn keeps(&self) -> bool {
        match self {
            Tuple::Keep => true,
            Tuple::Tuple(items) => items.iter().any(Tuple::keeps),
            _ => false,
        }
    }

    /// Whether every leaf is a step or 0, and one is a step.
    pub fn steps(&self) -> bool {
        match self {
            Tuple::Step(..) => true,
            Tuple::Tuple(items) => items.iter().any(Tuple::steps),
            _ => false,
        }
    }

    /// The number; None unless it is a single static number.
    pub fn known(&self) -> Option<i64> {
        match self {
            Tuple::Known(number) => Some(*number),
            _ => None,
        }
    }
}

fn read(cursor: &mut Cursor<'_>, depth: usize) -> Option<Tuple> {
    if depth > MAX_DEPTH {
        return None;
    }
    if !cursor.eat("(") {
        return leaf(cursor);
    }
    let mut items = Vec::new();
    if cursor.blanks(true).eat(")") {
        return Some(Tuple::Tuple(items));
    }
    loop {
        cursor.blanks(true);
        items.push(read(cursor, depth + 1)?);
        if cursor.blanks(true).eat(")") {
            return Some(Tuple::Tuple(items));
        }
        if !cursor.eat(",") {
            return None;
        }
        cursor.blanks(true);
        // A Python tuple with one element.
        if cursor.eat(")") {
            return Some(Tuple::Tuple(items));
        }
    }
}

fn leaf(cursor: &mut Cursor<'_>) -> Option<Tuple> {
    let number = number(cursor)?;
    let mut path = Vec::new();
    while cursor.eat("@") {
        path.push(usize::try_from(cursor.integer()?).ok()?);
    }
    match (&number, path.is_empty()) {
        (_, true) => Some(number),
        (Tuple::Keep, false) => None,
        (_, false) => Some(Tuple::Step(Box::new(number), path)),
    }
}

fn number(cursor: &mut Cursor<'_>) -> Option<Tuple> {
    if cursor.eat("?") {
        return Some(Tuple::Unknown { divisor: facts(cursor)? });
    }
    let kept = cursor.at;
    if cursor.eat("_") {
        let after = cursor.peek();
        if !after.is_some_and(|byte| byte.is_ascii_digit() || byte == b'-') {
            // A `_` that begins a word is not a kept mode.
            let word = after.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
            return (!word).then_some(Tuple::Keep);
        }
    }
    let Some(number) = cursor.integer() else {
        cursor.at = kept;
        return None;
    };
    // A number that continues as a word or another kind of fraction is not a number.
    match cursor.peek() {
        Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'.' => return None,
        Some(b'/') => {
            cursor.at += 1;
            let _ = cursor.eat("_");
            let divisor = cursor.integer().filter(|divisor| *divisor > 0)?;
            return Some(Tuple::Fraction(number, divisor));
        }
        _ => {}
    }
    Some(Tuple::Known(number))
}

/// The divisor of a dynamic number: `{div=16}`, `{i64 div=8}`, `{i64}`; 1 without braces.
fn facts(cursor: &mut Cursor<'_>) -> Option<i64> {
    if !cursor.eat("{") {
        return Some(1);
    }
    let mut divisor = 1;
    loop {
        if cursor.blanks(false).eat("}") {
            return Some(divisor);
        }
        if cursor.eat(",") {
            continue;
        }
        if cursor.eat("div=") {
            divisor = cursor.integer().filter(|divisor| *divisor > 0)?;
        } else {
            let word = cursor.word()?;
            let width = word.strip_prefix('i')?;
            if !["1", "8", "16", "32", "64"].contains(&width) {
                return None;
            }
        }
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tuple::Known(number) => write!(f, "{number}"),
            Tuple::Unknown { divisor: 1 } => f.write_str("?"),
            Tuple::Unknown { divisor } => write!(f, "?{{div={divisor}}}"),
            Tuple::Fraction(number, divisor) => write!(f, "{number}/{divisor}"),
            Tuple::Step(scale, path) => {
                write!(f, "{scale}")?;
                path.iter().try_for_each(|mode| write!(f, "@{mode}"))
            }
            Tuple::Keep => f.write_str("_"),
            Tuple::Tuple(items) => {
                f.write_str("(")?;
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str(")")
            }
        }
    }
}

/// The value of text in our notation that a reader has made, for a text at `span`.
///
/// Errors: the algebra refuses it (E1303), for example because shape and strides are nested
/// differently.
pub fn value(text: &str, span: Range<usize>) -> Result<Value, Refused> {
    evaluate(text, &mut Environment::new()).map_err(|error| {
        let refused = Refused::contradiction(span, format!("{} [{}]", error.message, error.code));
        match error.help {
            Some(help) => refused.with_help(help),
            None => refused,
        }
    })
}

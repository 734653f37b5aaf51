//! Text of coordinates.
//!
//! Law: printed text parses to the same coordinate. Terms are written in the order of their paths,
//! each a scale and its path, innermost mode first.

use alloc::string::ToString;
use core::fmt;
use core::str::FromStr;

use smallvec::SmallVec;

use super::{Coordinate, ModePath, clash};
use crate::ground::words::debug_as_text;
use crate::limits::MAX_PATH;
use crate::refusal::error::{Fits, LayoutError, Limit};
use crate::text::print::Printer;
use crate::text::reading::{Cursor, LayoutLiteral, Literal};
use crate::value::kind::{StrideKind, TextOut};
use crate::value::number::{Extent, Stride};
use crate::value::tree::Tree;

/// Writes the terms.
pub(super) fn print<N: Extent>(coordinate: &Coordinate<N>, out: &mut impl TextOut) {
    let mut terms = coordinate.terms();
    let Some((path, scale)) = terms.next() else { return out.integer(0) };
    print_term(out, path, scale, true);
    terms.for_each(|(path, scale)| print_term(out, path, scale, false));
}

fn print_term<N: Extent>(out: &mut impl TextOut, path: ModePath, scale: &N, first: bool) {
    match scale.decimal() {
        Some(number) => {
            if !first && number >= 0 {
                out.mark(b'+');
            }
            out.integer(number);
        }
        None => {
            let text = scale.to_string();
            // A sum or a difference needs parentheses to be one scale; without a path it needs
            // none.
            let alone = path.is_empty() || text.chars().skip(1).all(|c| !matches!(c, '+' | '-'));
            if !(first || alone && text.starts_with('-')) {
                out.mark(b'+');
            }
            let _ = if alone { out.write_str(&text) } else { write!(out, "({text})") };
        }
    }
    for mode in path.modes().rev() {
        out.mark(b'@');
        out.integer(mode as i64);
    }
}

impl<N: Extent> fmt::Display for Coordinate<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::to_text(f);
        self.print(&mut printer);
        printer.finish()
    }
}

debug_as_text!(Coordinate<N: Extent>);

/// Parses a scale and the path after it: `3@1@0`, `-3`.
fn read_term<N: Extent + Literal>(text: &mut Cursor<'_>) -> Result<Coordinate<N>, LayoutError> {
    text.peek();
    let scale = N::read(text)?;
    Ok(Coordinate::step(scale, text.path(&mut 0)?))
}

impl Cursor<'_> {
    /// Parses the path after a scale, `@1@0`, innermost mode first; empty if there is none. `end`
    /// is set to the position after its last mode.
    pub(crate) fn path(&mut self, end: &mut usize) -> Result<ModePath, LayoutError> {
        let mut modes: SmallVec<[usize; MAX_PATH]> = SmallVec::new();
        while self.eat(b'@') {
            if modes.len() == MAX_PATH {
                return Err(LayoutError::TooLarge { limit: Limit::Path, value: MAX_PATH + 1 });
            }
            modes.push(self.mode()?);
            *end = self.at();
        }
        modes.reverse();
        ModePath::new(&modes)
    }
}

impl<N: Extent + Literal> Literal for Coordinate<N> {
    fn read(text: &mut Cursor<'_>) -> Result<Coordinate<N>, LayoutError> {
        let mut sum = read_term(text)?;
        loop {
            match text.peek() {
                Some(b'+') => {
                    text.eat(b'+');
                }
                Some(b'-') => {}
                _ => return Ok(sum),
            }
            sum = sum.plus(&read_term(text)?).fits_as::<N>("coordinate")?;
        }
    }

    /// Refuses strides without a common codomain.
    fn check(tree: &Tree<Coordinate<N>>) -> Result<(), LayoutError> {
        match clash(tree.leaves().iter()) {
            None => Ok(()),
            Some(pair) => Err(LayoutError::mixed(tree.profile(), pair, |leaf| tree.leaves().get(leaf))),
        }
    }
}

impl<N: Extent + Literal> LayoutLiteral for Coordinate<N> {
    fn of_index(index: N) -> Option<Coordinate<N>> {
        Some(Coordinate::integer(index))
    }
}

impl<N: Extent + Literal> FromStr for Coordinate<N> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Coordinate<N>, LayoutError> {
        let mut cursor = Cursor::new(text);
        let value = Coordinate::read(&mut cursor)?;
        cursor.end()?;
        Ok(value)
    }
}

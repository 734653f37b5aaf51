//! The problem of a tile program and its position in the text.

use std::ops::Range;

use tilewright_kernel::program::Location;
use tilewright_layout::Refusal as _;
use tilewright_tile::{Reason, TileError};

use crate::position::{Span, Text};

/// A problem of a text: what an editor shows as a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The span that is underlined.
    pub span: Span,
    /// The stable code, for which `tilewright explain` has a page.
    pub code: &'static str,
    /// The message.
    pub message: String,
    /// A sentence on how to fix it, if there is one.
    pub help: Option<String>,
}

/// A refusal of the reader or of the passes, with its span.
pub(crate) fn problem_of(error: &TileError, text: &Text) -> Problem {
    let span = match error.place() {
        Some(place) => text.span(culprit(error.reason(), place, text)),
        None => Span::default(),
    };
    Problem { span, code: error.code(), message: error.reason().to_string(), help: error.help() }
}

/// The bytes to underline: the word or sign at the position, a call with its arguments, or a
/// declaration to the end of its line.
fn culprit(reason: &Reason, place: Location, text: &Text) -> Range<usize> {
    let source = text.as_str();
    let start = text.offset_of_column(place.line(), place.column());
    let rest = source.get(start..).unwrap_or("");
    let line = rest.split(['\n', '#']).next().unwrap_or("").trim_end();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let word = line.len() - line.trim_start_matches(is_word).len();
    if line.is_empty() {
        // At the end of the text or of a line, the character before it is underlined, so that the
        // span is not empty.
        let before = source.get(..start).unwrap_or("").trim_end();
        let last = before.chars().next_back().map_or(0, char::len_utf8);
        return before.len() - last..before.len();
    }
    let declares = ["input", "output", "inout", "scalar", "grid", "warps"];
    if line.get(..word).is_some_and(|word| declares.contains(&word)) && !matches!(reason, Reason::Late { .. }) {
        return start..start + line.len();
    }
    let names = matches!(reason, Reason::Unknown { .. } | Reason::Gone { .. } | Reason::Forgotten { .. });
    let is_late = matches!(reason, Reason::Late { .. } | Reason::Text { .. });
    if word > 0 && !names && !is_late && line.get(word..).is_some_and(|rest| rest.starts_with('(')) {
        let mut depth = 0_usize;
        for (at, c) in line.char_indices() {
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => return start..start + at + 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        return start..start + line.len();
    }
    let first = line.chars().next().map_or(0, char::len_utf8);
    let two = ["->", "<=", ">=", "==", "!="].iter().any(|sign| line.starts_with(sign));
    start..start + word.max(if two { 2 } else { first })
}

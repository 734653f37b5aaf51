//! Splits a text into words and signs, with their locations.

use std::cell::Cell;

use tilewright_kernel::program::Location;

use crate::error::{Reason, TileError};

/// A text that is being read.
#[derive(Clone)]
pub(super) struct Text<'t> {
    file: String,
    text: &'t str,
    at: usize,
    /// A cache for locations, which are mostly asked for in ascending order: a byte offset, the
    /// number of lines that end before it, and the offset at which the last line begins.
    counted: Cell<(usize, usize, usize)>,
    /// The locations of the lines, if they come from another text.
    places: &'t [Location],
}

impl<'t> Text<'t> {
    pub(super) fn new(file: &str, text: &'t str, places: &'t [Location]) -> Text<'t> {
        let mut own = Text { file: file.to_string(), text, at: 0, counted: Cell::default(), places };
        own.skip();
        own
    }

    /// Skips spaces and comments.
    fn skip(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            if !self.text[self.at..].starts_with('#') {
                return;
            }
            self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at);
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn place(&self) -> Location {
        let (from, mut number, mut start) = match self.counted.get() {
            known if known.0 <= self.at => known,
            _ => (0, 0, 0),
        };
        for (end, _) in self.text[from..self.at].match_indices('\n') {
            number += 1;
            start = from + end + 1;
        }
        self.counted.set((self.at, number, start));
        if let Some(place) = self.places.get(number) {
            return *place;
        }
        let line = number as u32 + 1;
        let column = self.text[start..self.at].chars().count() as u32 + 1;
        Location::new(&self.file, line, column, None)
    }

    /// A refusal at the current location.
    pub(super) fn refuse(&self, expected: &str) -> TileError {
        let found = match self.rest().split_whitespace().next() {
            None => "the end of the text".to_string(),
            Some(word) => format!("`{}`", word.chars().take(24).collect::<String>()),
        };
        Reason::Text { found, expected: expected.to_string() }.at("text", self.place())
    }

    pub(super) fn sees(&self, sign: &str) -> bool {
        self.rest().starts_with(sign)
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) fn sees_digit(&self) -> bool {
        self.rest().starts_with(|letter: char| letter.is_ascii_digit())
    }

    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let sees = self.sees(sign);
        if sees {
            self.at += sign.len();
            self.skip();
        }
        sees
    }

    pub(super) fn sign(&mut self, sign: &str) -> Result<(), TileError> {
        if self.takes(sign) { Ok(()) } else { Err(self.refuse(&format!("`{sign}`"))) }
    }

    /// The length of the name at the current location.
    fn name_length(&self) -> usize {
        let rest = self.rest();
        if !rest.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
            return 0;
        }
        rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len())
    }

    /// The name at the current location; empty if there is none.
    pub(super) fn seen_name(&self) -> &'t str {
        &self.rest()[..self.name_length()]
    }

    pub(super) fn sees_word(&self, word: &str) -> bool {
        &self.rest()[..self.name_length()] == word
    }

    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        self.sees_word(word) && self.takes(word)
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), TileError> {
        if self.takes_word(word) { Ok(()) } else { Err(self.refuse(&format!("`{word}`"))) }
    }

    pub(super) fn name(&mut self, what: &str) -> Result<String, TileError> {
        let length = self.name_length();
        if length == 0 {
            return Err(self.refuse(what));
        }
        let name = self.rest()[..length].to_string();
        self.at += length;
        self.skip();
        Ok(name)
    }

    pub(super) fn integer(&mut self) -> Result<i64, TileError> {
        let rest = self.rest();
        let length = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..length].parse().map_err(|_| self.refuse("a whole number that 64 bits hold"))?;
        self.at += length;
        self.skip();
        Ok(number)
    }

    /// Reads an unsigned number, written as in Rust; None if there is none.
    pub(super) fn number(&mut self) -> Result<Option<f64>, TileError> {
        for (word, value) in [("inf", f64::INFINITY), ("nan", f64::NAN)] {
            if self.takes_word(word) {
                return Ok(Some(value));
            }
        }
        if !self.sees_digit() {
            return Ok(None);
        }
        let rest = self.rest();
        let digits = |from: usize| {
            rest[from..].find(|letter: char| !letter.is_ascii_digit()).map_or(rest.len(), |length| from + length)
        };
        let mut end = digits(0);
        if rest[end..].starts_with('.') {
            end = digits(end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            if rest[end + 1 + sign..].starts_with(|letter: char| letter.is_ascii_digit()) {
                end = digits(end + 1 + sign);
            }
        }
        let number = rest[..end].parse().map_err(|_| self.refuse("a number"))?;
        self.at += end;
        self.skip();
        Ok(Some(number))
    }

    /// The rest of the line after a word; None if the text does not continue with the word.
    pub(super) fn takes_line(&mut self, word: &str) -> Option<String> {
        if !self.sees_word(word) {
            return None;
        }
        self.at += word.len();
        Some(self.line())
    }

    /// The rest of the line.
    pub(super) fn line(&mut self) -> String {
        let rest = self.rest();
        let line = &rest[..rest.find(['\n', '#']).unwrap_or(rest.len())];
        self.at += line.len();
        self.skip();
        line.trim().to_string()
    }

    /// The text up to the first of these words or signs.
    pub(super) fn until(&mut self, ends: &[&str]) -> String {
        let rest = self.rest();
        let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim().to_string()
    }

    /// The text up to the matching closing parenthesis.
    pub(super) fn enclosed(&mut self) -> Result<String, TileError> {
        let mut open = 0;
        let end = self.rest().find(|sign: char| {
            open += i64::from(sign == '(') - i64::from(sign == ')');
            open < 0
        });
        let end = end.ok_or_else(|| self.refuse("`)`"))?;
        let inner = self.rest()[..end].trim().to_string();
        self.at += end;
        Ok(inner)
    }

    /// The text between two quotes.
    pub(super) fn quoted(&mut self) -> Result<String, TileError> {
        let inner = self.rest().strip_prefix('"').and_then(|rest| rest.find('"').map(|end| &rest[..end]));
        let inner = inner.ok_or_else(|| self.refuse("a layout in quotes"))?;
        self.at += inner.len() + 2;
        self.skip();
        Ok(inner.to_string())
    }

    pub(super) fn end(&self) -> Result<(), TileError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.refuse("the end of the text")) }
    }
}

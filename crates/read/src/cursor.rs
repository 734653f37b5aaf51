//! A cursor that moves forward through a text, with which every reader is written.
//!
//! Law: a cursor never moves back, except to a saved position, and none of its methods panics for
//! any text.

use std::ops::Range;

/// The largest nesting depth of brackets that are read. Layouts nest at most
/// [`tilewright_layout::MAX_DEPTH`] deep, and C++ templates wrap each level in two more.
pub const MAX_NESTING: usize = 160;

/// The largest length of a comment that is skipped, in bytes, because a reader looks ahead a
/// bounded distance.
const MAX_COMMENT: usize = 1 << 12;

/// The number of bytes to the end of a line; None if it is too far away.
pub(crate) fn comment_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let window = bytes.get(..MAX_COMMENT).unwrap_or(bytes);
    let end = window.iter().position(|byte| *byte == b'\n');
    end.or((window.len() == bytes.len()).then_some(bytes.len()))
}

/// A position in a text.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    /// The whole text.
    pub source: &'a str,
    /// The position, in bytes.
    pub at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at a position of a text.
    pub fn new(source: &'a str, at: usize) -> Cursor<'a> {
        Cursor { source, at }
    }

    /// The rest of the text.
    pub fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or("")
    }

    /// The next byte.
    pub fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    /// Whether the cursor is at the end of the text.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.source.len()
    }

    /// Passes blanks, tabs and, with `lines`, ends of lines; itself, for what is read then.
    pub fn blanks(&mut self, lines: bool) -> &mut Cursor<'a> {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\n' | b'\r' if lines => self.at += 1,
                _ => break,
            }
        }
        self
    }

    /// Skips blanks, line ends and Python comments.
    pub fn blanks_of_python(&mut self) {
        self.blanks(true);
        while self.peek() == Some(b'#') && self.skip_line() {
            self.blanks(true);
        }
    }

    /// Skips blanks, line ends and C++ comments.
    pub fn blanks_of_cpp(&mut self) {
        self.blanks(true);
        loop {
            let rest = self.rest();
            let passed = if rest.starts_with("//") {
                self.skip_line()
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let window = comment.as_bytes().get(..MAX_COMMENT).unwrap_or(comment.as_bytes());
                let length = window.windows(2).position(|pair| pair == b"*/");
                self.at += length.map_or(0, |length| length + "/**/".len());
                length.is_some()
            } else {
                false
            };
            if !passed {
                return;
            }
            self.blanks(true);
        }
    }

    /// Skips the rest of a line that is a comment. Returns false if it is too long.
    fn skip_line(&mut self) -> bool {
        let length = comment_length(self.rest());
        self.at += length.unwrap_or(0);
        length.is_some()
    }

    /// Skips this text if it comes next. Returns whether it did.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.source.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()));
        if found {
            self.at += text.len();
        }
        found
    }

    /// As [`Cursor::eat`], after blanks and line ends. If the text does not follow, these are not
    /// skipped.
    pub fn eat_spaced(&mut self, text: &str) -> bool {
        let kept = self.at;
        let found = self.blanks(true).eat(text);
        if !found {
            self.at = kept;
        }
        found
    }

    /// Skips bytes as long as they satisfy a predicate, and returns them.
    pub fn take_while(&mut self, mut wanted: impl FnMut(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&mut wanted) {
            self.at += 1;
        }
        // If all bytes are ASCII, only whole characters were skipped; otherwise the result is
        // empty.
        self.source.get(start..self.at).unwrap_or("")
    }

    /// Reads a word of letters, digits and `_` that does not begin with a digit.
    pub fn word(&mut self) -> Option<&'a str> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_') {
            return None;
        }
        Some(self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
    }

    /// Reads an integer with an optional sign that fits 64 bits. If there is none, the cursor
    /// stays.
    pub fn integer(&mut self) -> Option<i64> {
        let start = self.at;
        let _ = self.eat("-");
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let number =
            if digits.is_empty() { None } else { self.source.get(start..self.at).and_then(|n| n.parse().ok()) };
        if number.is_none() {
            self.at = start;
        }
        number
    }

    /// Skips `open`, and everything up to the bracket that closes it. Returns the range between
    /// them. Brackets `()`, `[]`, `{}` and `<>` inside are matched in pairs, quoted text is
    /// skipped, and `->` and `=>` are arrows. If the bracket is not closed within 64 KiB, or nests
    /// deeper than [`MAX_NESTING`], returns None, and the cursor stays.
    pub fn bracketed(&mut self, open: u8) -> Option<Range<usize>> {
        const WINDOW: usize = 1 << 16;
        if self.peek() != Some(open) {
            return None;
        }
        let bytes = self.source.as_bytes();
        let mut closers: Vec<u8> = Vec::new();
        let mut at = self.at;
        let end = bytes.len().min(at.saturating_add(WINDOW));
        while at < end {
            let byte = *bytes.get(at)?;
            match byte {
                b'(' => closers.push(b')'),
                b'[' => closers.push(b']'),
                b'{' => closers.push(b'}'),
                b'<' => closers.push(b'>'),
                b'-' | b'=' if bytes.get(at + 1) == Some(&b'>') => at += 1,
                b'"' => {
                    let length = bytes.get(at + 1..end)?.iter().position(|byte| *byte == b'"')?;
                    at += length + 1;
                }
                b')' | b']' | b'}' | b'>' => {
                    if closers.pop() != Some(byte) {
                        return None;
                    }
                    if closers.is_empty() {
                        let inside = self.at + 1..at;
                        self.at = at + 1;
                        return Some(inside);
                    }
                }
                _ => {}
            }
            if closers.len() > MAX_NESTING {
                return None;
            }
            at += 1;
        }
        None
    }
}

//! A place in a text that moves forward: what every reader is written with.
//!
//! Law: a cursor never moves back but to a place that was kept, and no method of it panics,
//! whatever the text.

use std::ops::Range;

/// How deep brackets may nest in what is read. Layouts nest at most
/// [`tilewright_layout::MAX_DEPTH`] deep; templates of C++ wrap each level in two more.
pub const MAX_NESTING: usize = 160;

/// How long a comment is that is passed, in bytes: a reader looks a bounded way ahead.
const MAX_COMMENT: usize = 1 << 12;

/// The bytes to the end of a line; none if it is too far away.
pub(crate) fn comment_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let window = bytes.get(..MAX_COMMENT).unwrap_or(bytes);
    let end = window.iter().position(|byte| *byte == b'\n');
    end.or((window.len() == bytes.len()).then_some(bytes.len()))
}

/// A place in a text.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    /// The whole text.
    pub source: &'a str,
    /// The place, in bytes.
    pub at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at a place of a text.
    pub fn new(source: &'a str, at: usize) -> Cursor<'a> {
        Cursor { source, at }
    }

    /// What is left of the text.
    pub fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or("")
    }

    /// The next byte.
    pub fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    /// Whether nothing is left.
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

    /// Passes blanks, ends of lines and comments of Python.
    pub fn blanks_of_python(&mut self) {
        self.blanks(true);
        while self.peek() == Some(b'#') && self.skip_line() {
            self.blanks(true);
        }
    }

    /// Passes blanks, ends of lines and comments of C++.
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

    /// Passes the rest of a line that is a comment; false where that is too long.
    fn skip_line(&mut self) -> bool {
        let length = comment_length(self.rest());
        self.at += length.unwrap_or(0);
        length.is_some()
    }

    /// Passes this text if it comes next.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.source.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()));
        if found {
            self.at += text.len();
        }
        found
    }

    /// As [`Cursor::eat`], after blanks and ends of lines, which stay where the text does not come.
    pub fn eat_spaced(&mut self, text: &str) -> bool {
        let kept = self.at;
        let found = self.blanks(true).eat(text);
        if !found {
            self.at = kept;
        }
        found
    }

    /// Passes bytes as long as they are like this, and gives them.
    pub fn take_while(&mut self, mut wanted: impl FnMut(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&mut wanted) {
            self.at += 1;
        }
        // Only whole characters were passed if all bytes are ASCII; else the text is empty.
        self.source.get(start..self.at).unwrap_or("")
    }

    /// A word of letters, digits and `_`, which does not begin with a digit.
    pub fn word(&mut self) -> Option<&'a str> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_') {
            return None;
        }
        Some(self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
    }

    /// An integer with an optional sign, which fits 64 bits. The cursor stays where there is none.
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

    /// Passes `open`, and everything to the bracket that closes it; gives what stands between.
    /// Brackets `()`, `[]`, `{}` and `<>` inside are passed in pairs, quoted text as it is, `->`
    /// and `=>` as arrows. None, and the cursor stays, where it is not closed within 64 KiB or
    /// nests deeper than [`MAX_NESTING`].
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

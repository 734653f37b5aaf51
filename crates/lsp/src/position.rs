//! Positions in a text, as the protocol counts them.
//!
//! Law: lines are counted from 0 and end with `\n`, `\r\n` or `\r`; characters are counted in units
//! of UTF-16. A position past the end of a line means the end of the line, and one past the end of
//! the text means the end of the text.

use std::ops::Range;

/// A position: a line and a character, both counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The number of UTF-16 units before it on its line.
    pub character: u32,
}

/// A range of text. Its end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The position of the first character.
    pub start: Position,
    /// The position after the last character.
    pub end: Position,
}

/// A text with the offsets of its lines.
#[derive(Debug, Clone, Default)]
pub struct Text {
    text: String,
    starts: Vec<usize>,
    /// Whether some line ends with `\r` alone.
    has_returns: bool,
}

impl Text {
    /// Takes a text and finds its lines once.
    ///
    /// ```
    /// use tilewright_lsp::{Position, Text};
    ///
    /// let text = Text::new("a\n𝄞b".to_owned());
    /// let place = Position { line: 1, character: 2 };
    /// assert_eq!(text.offset(place), 6); // the sign takes two UTF-16 units and four bytes
    /// assert_eq!(text.position(6), place);
    /// ```
    pub fn new(text: String) -> Text {
        let (mut starts, mut has_returns) = (vec![0], false);
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                starts.push(at + 1);
                has_returns |= *byte == b'\r';
            }
        }
        Text { text, starts, has_returns }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of lines: the number of line ends plus one.
    pub fn lines(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// The bytes of a line, without its end.
    pub fn line(&self, line: u32) -> Range<usize> {
        let line = line as usize;
        let Some(start) = self.starts.get(line).copied() else { return self.text.len()..self.text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let own = self.text.get(start..end).unwrap_or("");
        start..start + own.trim_end_matches(['\n', '\r']).len()
    }

    /// The text of a line, without its end.
    pub fn line_text(&self, line: u32) -> &str {
        self.text.get(self.line(line)).unwrap_or("")
    }

    /// The byte offset of a position.
    pub fn offset(&self, place: Position) -> usize {
        let line = self.line(place.line);
        let mut units = 0;
        for (at, c) in self.text.get(line.clone()).unwrap_or("").char_indices() {
            if units >= place.character {
                return line.start + at;
            }
            units += c.len_utf16() as u32;
        }
        line.end
    }

    /// The position of a byte offset.
    pub fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let units = self.text.get(start..end).unwrap_or("").chars().map(char::len_utf16).sum::<usize>();
        Position { line: line as u32, character: units as u32 }
    }

    /// The span of a range of bytes.
    pub fn span(&self, bytes: Range<usize>) -> Span {
        Span { start: self.position(bytes.start), end: self.position(bytes.end) }
    }

    /// The byte offset of a line and a column, both counted from 1, the column in characters.
    pub fn offset_of_column(&self, line: u32, column: u32) -> usize {
        // The reader of tile programs counts only `\n` as a line end.
        let start = match line {
            0 | 1 => 0,
            line if !self.has_returns => self.starts.get(line as usize - 1).copied().unwrap_or(self.text.len()),
            line => self.text.match_indices('\n').nth(line as usize - 2).map_or(self.text.len(), |(at, _)| at + 1),
        };
        let rest = self.text.get(start..).unwrap_or("");
        let rest = rest.split('\n').next().unwrap_or("");
        let characters = column.saturating_sub(1) as usize;
        start + rest.char_indices().nth(characters).map_or(rest.len(), |(at, _)| at)
    }

    /// The text in which a span is replaced.
    #[must_use]
    pub fn changed(&self, span: Span, with: &str) -> Text {
        let start = self.offset(span.start);
        let end = self.offset(span.end).max(start);
        let mut text = String::with_capacity(self.text.len() + with.len());
        text.push_str(self.text.get(..start).unwrap_or(""));
        text.push_str(with);
        text.push_str(self.text.get(end..).unwrap_or(""));
        Text::new(text)
    }
}

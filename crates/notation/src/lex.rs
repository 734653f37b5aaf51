//! Tokens.
//!
//! ```text
//! integer := [ '-' ] [ '_' ] digits      `_4` is CuTe's print of a static 4; `0x40` and `1_024` are integers too
//! name    := letter { letter | digit | '_' }
//! ```
//!
//! Spaces, tabs and carriage returns separate tokens. `#` starts a comment that ends with the line.
//! Newlines are tokens: they separate statements, and inside brackets the parser skips them. Tokens
//! are made one at a time, so that a text of any length needs no extra memory.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Fail, excerpt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int(i64),
    Name,
    Underscore,
    Open,
    Close,
    OpenSquare,
    CloseSquare,
    Less,
    Greater,
    Comma,
    Semicolon,
    Newline,
    Colon,
    Dot,
    Equals,
    At,
    Caret,
    Slash,
    Plus,
    Minus,
    Arrow,
    Star,
    Percent,
    Question,
    OpenBrace,
    CloseBrace,
    Circle,
    End,
}

impl Kind {
    /// The token, as a message names it.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Kind::Int(_) => "an integer",
            Kind::Name => "a name",
            Kind::Underscore => "'_'",
            Kind::Open => "'('",
            Kind::Close => "')'",
            Kind::OpenSquare => "'['",
            Kind::CloseSquare => "']'",
            Kind::Less => "'<'",
            Kind::Greater => "'>'",
            Kind::Comma => "','",
            Kind::Semicolon => "';'",
            Kind::Newline => "the end of the line",
            Kind::Colon => "':'",
            Kind::Dot => "'.'",
            Kind::Equals => "'='",
            Kind::At => "'@'",
            Kind::Caret => "'^'",
            Kind::Slash => "'/'",
            Kind::Plus => "'+'",
            Kind::Minus => "'-'",
            Kind::Arrow => "'->'",
            Kind::Star => "'*'",
            Kind::Percent => "'%'",
            Kind::Question => "'?'",
            Kind::OpenBrace => "'{'",
            Kind::CloseBrace => "'}'",
            Kind::Circle => "'o'",
            Kind::End => "the end of the text",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    pub(crate) fn span(self) -> Range<usize> {
        self.start..self.end
    }
}

pub(crate) struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str) -> Lexer<'a> {
        Lexer { source, at: 0 }
    }

    /// A lexer that starts at a byte offset, for lookahead.
    pub(crate) fn at(source: &'a str, at: usize) -> Lexer<'a> {
        Lexer { source, at }
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.source.as_bytes().get(at).copied()
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<Token, Fail> {
        loop {
            match self.byte(self.at) {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'#') => {
                    let comment = self.source.get(self.at + 1..).unwrap_or("");
                    if is_attribute(comment) {
                        return attribute(self.at..self.at + 1, comment).fail();
                    }
                    while self.byte(self.at).is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => break,
            }
        }
        let start = self.at;
        let Some(byte) = self.byte(start) else { return Ok(Token { kind: Kind::End, start, end: start }) };
        let kind = match byte {
            b'0'..=b'9' => return self.integer(start, start, false),
            b'-' => {
                let digits = start + 1 + usize::from(self.byte(start + 1) == Some(b'_'));
                if self.byte(digits).is_some_and(|byte| byte.is_ascii_digit()) {
                    return self.integer(start, digits, true);
                }
                if self.byte(start + 1) == Some(b'>') {
                    self.at = start + 2;
                    return Ok(Token { kind: Kind::Arrow, start, end: self.at });
                }
                Kind::Minus
            }
            b'_' => match self.byte(start + 1) {
                Some(b'0'..=b'9') => return self.integer(start, start + 1, false),
                // C++ prints a negative static integer as `_-4`.
                Some(b'-') => return self.integer(start, start + 2, true),
                _ => Kind::Underscore,
            },
            b'a'..=b'z' | b'A'..=b'Z' => {
                let mut end = start + 1;
                while self.byte(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    end += 1;
                }
                self.at = end;
                return Ok(Token { kind: Kind::Name, start, end });
            }
            b'(' => Kind::Open,
            b')' => Kind::Close,
            b'[' => Kind::OpenSquare,
            b']' => Kind::CloseSquare,
            b'<' => Kind::Less,
            b'>' => Kind::Greater,
            b',' => Kind::Comma,
            b';' => Kind::Semicolon,
            b'\n' => Kind::Newline,
            b':' => Kind::Colon,
            b'.' => Kind::Dot,
            b'=' => Kind::Equals,
            b'@' => Kind::At,
            b'^' => Kind::Caret,
            b'/' => Kind::Slash,
            b'+' => Kind::Plus,
            b'*' => Kind::Star,
            b'%' => Kind::Percent,
            b'?' => Kind::Question,
            b'{' => Kind::OpenBrace,
            b'}' => Kind::CloseBrace,
            _ => return self.other(start),
        };
        self.at = start + 1;
        Ok(Token { kind, start, end: self.at })
    }

    #[cold]
    fn other(&mut self, start: usize) -> Result<Token, Fail> {
        let c = self.source.get(start..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
        let end = start + c.len_utf8();
        if c == '∘' {
            self.at = end;
            return Ok(Token { kind: Kind::Circle, start, end });
        }
        let error = Diagnostic::new("E0203", start..end, format!("the character {c:?} has no meaning here"));
        match c {
            '"' | '\'' => error.help("values are written as they are, without quotes"),
            '−' | '–' | '—' => error.help("a negative number starts with the ASCII sign '-'"),
            _ => error,
        }
        .fail()
    }

    #[inline]
    fn integer(&mut self, start: usize, digits: usize, negative: bool) -> Result<Token, Fail> {
        let mut end = digits;
        let mut value: i64 = 0;
        while let Some(digit) = self.byte(end).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            // Eighteen digits always fit; longer numbers are checked for overflow.
            if end - digits >= 18 {
                return self.long_integer(start, digits, negative);
            }
            value = value * 10 + i64::from(digit);
            end += 1;
        }
        if end == digits || matches!(self.byte(end), Some(b'_' | b'x' | b'X')) {
            return self.long_integer(start, digits, negative);
        }
        self.at = end;
        Ok(Token { kind: Kind::Int(if negative { -value } else { value }), start, end })
    }

    /// An integer with separators, in hexadecimal, or near the limit.
    #[cold]
    fn long_integer(&mut self, start: usize, digits: usize, negative: bool) -> Result<Token, Fail> {
        let hexadecimal = self.byte(digits) == Some(b'0') && matches!(self.byte(digits + 1), Some(b'x' | b'X'));
        let radix: u32 = if hexadecimal { 16 } else { 10 };
        let mut end = digits + if hexadecimal { 2 } else { 0 };
        let mut value: Option<i64> = Some(0);
        let mut count = 0;
        while let Some(byte) = self.byte(end) {
            if byte == b'_' && count > 0 {
                end += 1;
                continue;
            }
            let Some(digit) = char::from(byte).to_digit(radix) else { break };
            value = value.and_then(|value| value.checked_mul(i64::from(radix))).and_then(|value| {
                if negative { value.checked_sub(i64::from(digit)) } else { value.checked_add(i64::from(digit)) }
            });
            count += 1;
            end += 1;
        }
        if count == 0 {
            return Diagnostic::new("E0204", start..end.max(start + 1), "an integer without digits").fail();
        }
        self.at = end;
        match value {
            Some(value) => Ok(Token { kind: Kind::Int(value), start, end }),
            None => Diagnostic::new("E0204", start..end, "the integer does not fit in 64 bits")
                .label(start..end, if negative { "less than -2^63" } else { "more than 2^63 - 1" })
                .help("sizes, strides and offsets are 64-bit integers; nothing wraps")
                .fail(),
        }
    }
}

/// How to write a layout of Triton in this language.
pub(crate) const TRITON: &str =
    "write it as a linear layout: register=[(0,1)] lane=[(0,2),(1,0)] warp=[(2,0)] -> dim0:4 dim1:4";

/// Whether the text after a `#` is an MLIR attribute instead of a comment: `ttg.blocked<`, or the
/// definition of an alias, `mma = #`.
pub(crate) fn is_attribute(text: &str) -> bool {
    let word = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')).count();
    let (name, rest) = text.split_at_checked(word).unwrap_or((text, ""));
    let dialect = name.split_once('.').is_some_and(|(first, second)| {
        let known = ["ttg", "ttng", "tt", "triton_gpu", "triton_nvidia_gpu", "gluon", "cute", "nvgpu"].contains(&first);
        !second.is_empty() && (known || rest.starts_with('<'))
    });
    let alias = || rest.trim_start().strip_prefix('=').is_some_and(|value| value.trim_start().starts_with('#'));
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && (dialect || alias())
}

/// The refusal of an MLIR attribute.
#[cold]
pub(crate) fn attribute(place: Range<usize>, text: &str) -> Diagnostic {
    let name = text.split(['<', ' ', '=']).next().unwrap_or("");
    Diagnostic::new("E0216", place.clone(), format!("'#{}' is an attribute of MLIR, not a comment", excerpt(name)))
        .label(place, "of Triton, or another dialect")
        .help(format!("{TRITON}; a comment begins with '# '"))
}

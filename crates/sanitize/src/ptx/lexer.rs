//! Splits PTX into tokens.

use super::PtxError;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name, a register, an opcode.
    Word(&'a str),
    /// A modifier: what follows a dot, including its `::`.
    Dot(&'a str),
    /// An integer.
    Integer(u64),
    /// A float of 32 bits, given by its bits.
    Float32(u32),
    /// A float of 64 bits, given by its bits.
    Float64(u64),
    /// A string in quotes, without interpretation of escapes.
    Text(&'a str),
    /// A punctuation character.
    Sign(u8),
    /// The end of the text.
    End,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The rest of the line, which is then skipped.
    pub(super) fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    fn skip_blanks(&mut self) -> Result<(), PtxError> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                byte if byte.is_ascii_whitespace() || *byte == 0 => self.at += 1,
                b'/' if bytes.get(self.at + 1) == Some(&b'/') => self.skip_line(),
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => {
                    let start = self.line;
                    self.at += 2;
                    loop {
                        match bytes.get(self.at) {
                            None => return Err(PtxError::new(start, "the comment has no end")),
                            Some(b'*') if bytes.get(self.at + 1) == Some(&b'/') => break,
                            Some(b'\n') => self.line += 1,
                            Some(_) => {}
                        }
                        self.at += 1;
                    }
                    self.at += 2;
                }
                b'#' => self.skip_line(),
                _ => break,
            }
        }
        Ok(())
    }

    /// The end of a word that continues at `from`.
    fn word_end(&self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = from;
        while bytes.get(end).is_some_and(|byte| is_word(*byte)) {
            end += 1;
        }
        end
    }

    fn number(&mut self) -> Result<Token<'a>, PtxError> {
        let bytes = self.text.as_bytes();
        let line = self.line;
        let wrong = |text: &str| PtxError::new(line, format!("`{text}` is no number"));
        let start = self.at;
        let mut end = self.word_end(start);
        let word = &self.text[start..end];
        let lower = word.as_bytes().get(1).map(u8::to_ascii_lowercase);
        if word.starts_with('0') && matches!(lower, Some(b'f' | b'd')) && word.len() > 2 {
            self.at = end;
            let digits = &word[2..];
            return if lower == Some(b'f') && digits.len() == 8 {
                u32::from_str_radix(digits, 16).map(Token::Float32).map_err(|_| wrong(word))
            } else if lower == Some(b'd') && digits.len() == 16 {
                u64::from_str_radix(digits, 16).map(Token::Float64).map_err(|_| wrong(word))
            } else {
                Err(wrong(word))
            };
        }
        let is_radix = word.starts_with('0') && matches!(lower, Some(b'x' | b'b'));
        let has_point = bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        let has_exponent = !is_radix && word.contains(['e', 'E']);
        if has_point || has_exponent {
            if has_point {
                end = self.word_end(end + 1);
            }
            let signs = matches!(bytes.get(end), Some(b'+' | b'-')) && matches!(bytes[end - 1], b'e' | b'E');
            if signs {
                end = self.word_end(end + 1);
            }
            let text = &self.text[start..end];
            self.at = end;
            return text.parse::<f64>().map(|value| Token::Float64(value.to_bits())).map_err(|_| wrong(text));
        }
        self.at = end;
        let digits = word.trim_end_matches(['U', 'u']);
        let value = match lower {
            Some(b'x') if is_radix => u64::from_str_radix(&digits[2..], 16),
            Some(b'b') if is_radix => u64::from_str_radix(&digits[2..], 2),
            _ if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(&digits[1..], 8),
            _ => digits.parse(),
        };
        value.map(Token::Integer).map_err(|_| wrong(word))
    }

    /// The next token, and its line.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, u32), PtxError> {
        self.skip_blanks()?;
        let bytes = self.text.as_bytes();
        let line = self.line;
        let Some(byte) = bytes.get(self.at).copied() else { return Ok((Token::End, line)) };
        let token = match byte {
            b'0'..=b'9' => self.number()?,
            byte if is_word(byte) || byte == b'%' => {
                let start = self.at;
                self.at = self.word_end(start + 1);
                Token::Word(&self.text[start..self.at])
            }
            b'.' => {
                let start = self.at + 1;
                let mut end = self.word_end(start);
                while bytes.get(end) == Some(&b':') && bytes.get(end + 1) == Some(&b':') {
                    end = self.word_end(end + 2);
                }
                self.at = end;
                match end > start {
                    true => Token::Dot(&self.text[start..end]),
                    false => Token::Sign(b'.'),
                }
            }
            b'"' => {
                let start = self.at + 1;
                let mut end = start;
                loop {
                    match bytes.get(end) {
                        None | Some(b'\n') => return Err(PtxError::new(line, "the text in quotes has no end")),
                        Some(b'"') => break,
                        Some(b'\\') => end += 2,
                        Some(_) => end += 1,
                    }
                }
                self.at = end + 1;
                Token::Text(self.text.get(start..end).unwrap_or_default())
            }
            byte if byte.is_ascii() => {
                self.at += 1;
                Token::Sign(byte)
            }
            _ => return Err(PtxError::new(line, "a letter that PTX does not have")),
        };
        Ok((token, line))
    }
}

//! Terms: syntax trees of MLIR or Python text.
//!
//! Law: one grammar serves attributes and types of MLIR (`#ttg.blocked<{order = [1, 0]}>`,
//! `tensor<64x32xf16, #mma>`) and calls of Python (`View(shape=(4, 8), mask=None)`). Nothing is
//! executed. Reading ends where the term ends; the caller reads what follows. For a damaged or
//! truncated text, the result is the byte at which reading stopped.

use std::ops::Range;

use crate::cursor::comment_length;

/// The largest nesting depth of terms.
const MAX_DEPTH: usize = 64;
/// The largest number of terms in a text.
const MAX_TERMS: usize = 1 << 16;

/// A term and its location.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub kind: TermKind,
    pub place: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TermKind {
    Number(i64),
    /// A name with dots, `ttg.blocked`, `None`, `#mma`, or extents and a type, `64x32xf16`.
    Word(String),
    /// A quoted text.
    Text(String),
    /// The content of brackets: `(`, `[` or `{`.
    List(char, Vec<Argument>),
    /// A name with the content of the `<..>`, `(..)` or `[..]` after it.
    Call(String, Vec<Argument>),
    /// A separate sign: `->`, `<=`, `*`, `+`.
    Sign(String),
}

/// An element of a list: `value`, `name = value` or `name: value`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Argument {
    pub name: Option<String>,
    /// One term, or several terms without a comma between them.
    pub values: Vec<Term>,
}

impl Argument {
    pub fn value(&self) -> Option<&Term> {
        if let [value] = self.values.as_slice() { Some(value) } else { None }
    }
}

impl Term {
    /// The name and the arguments of a call, without the `#` or `!` of MLIR.
    pub fn call(&self) -> Option<(&str, &[Argument])> {
        match &self.kind {
            TermKind::Call(name, arguments) => Some((name.trim_start_matches(['#', '!']), arguments)),
            _ => None,
        }
    }

    /// The elements of a list.
    pub fn list(&self) -> Option<Vec<&Term>> {
        match &self.kind {
            TermKind::List(_, elements) => elements.iter().map(|element| element.value()).collect(),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<i64> {
        if let TermKind::Number(number) = self.kind { Some(number) } else { None }
    }

    /// The numbers of a list.
    pub fn numbers(&self) -> Option<Vec<i64>> {
        self.list()?.into_iter().map(Term::number).collect()
    }

    pub fn word(&self) -> Option<&str> {
        if let TermKind::Word(word) = &self.kind { Some(word) } else { None }
    }

    /// `true`, `True`, `false` or `False`.
    pub fn truth(&self) -> Option<bool> {
        match self.word()? {
            "true" | "True" => Some(true),
            "false" | "False" => Some(false),
            _ => None,
        }
    }
}

/// The byte at which reading stopped, and what was found there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stopped {
    pub at: usize,
    pub wanted: &'static str,
}

/// The term that begins at a byte of a text, after blanks.
pub(crate) fn read(text: &str, from: usize) -> Result<Term, Stopped> {
    TermReader { text, at: from, terms: 0, comments: false }.term(0)
}

/// As [`read`], in Python source code, where `#` begins a comment.
pub(crate) fn read_python(text: &str, from: usize) -> Result<Term, Stopped> {
    TermReader { text, at: from, terms: 0, comments: true }.term(0)
}

/// Reads words with values in sequence, `shape=(4, 8), strides=(8, 1)`, at most this many. Returns
/// them and their end. Commas, blanks, `.` and `x.` before a name, and `()` after one, are skipped.
/// The words of another array end the sequence: `y.shape=` after `x.shape=`, or a second shape.
pub(crate) fn read_arguments(text: &str, from: usize, most: usize) -> Result<(Vec<Argument>, usize), Stopped> {
    let mut found: Vec<Argument> = Vec::new();
    let mut end = from;
    let mut at = from;
    let before = text.get(..from).unwrap_or("");
    let mut owner = before.strip_suffix('.').and_then(last_word);
    while found.len() < most {
        let rest = text.get(at..).unwrap_or("");
        let skipped = rest.len() - rest.trim_start_matches([' ', '\t', ',', ';', '.', '(', ')', '\'', '"']).len();
        let skipped = if found.is_empty() { rest.len() - rest.trim_start_matches(['\'', '"']).len() } else { skipped };
        let start = at + skipped;
        let rest = text.get(start..).unwrap_or("");
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.')).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or("");
        if word.is_empty() || word.len() > 64 {
            break;
        }
        let (own, name) = word.rsplit_once('.').map_or((None, word), |(own, name)| (Some(own), name));
        if found.iter().any(|argument| role(argument.name.as_deref().unwrap_or("Size")) == role(name)) {
            break;
        }
        if word.ends_with("torch.Size") {
            let mut reader = TermReader { text, at: start, terms: 0, comments: false };
            let term = reader.term(0)?;
            at = reader.at;
            end = at;
            let extents = match &term.kind {
                TermKind::Call(_, arguments) => arguments.first().and_then(|argument| argument.value()?.list()),
                _ => None,
            };
            let rank = extents.map_or(0, |extents| extents.len());
            found.push(Argument { name: None, values: vec![term] });
            // `torch.Size([2, 3]) (3, 1)`, as a print of shape and strides.
            let behind = text.get(at..).unwrap_or("");
            let open = behind.trim_start_matches([' ', ',']);
            if open.starts_with('(') && matches!(behind.len() - open.len(), 1 | 2) {
                let mut reader = TermReader { text, at: at + behind.len() - open.len(), terms: 0, comments: false };
                if let Ok(strides) = reader.term(0)
                    && strides.numbers().is_some_and(|numbers| numbers.len() == rank)
                {
                    at = reader.at;
                    end = at;
                    found.push(Argument { name: Some("stride".to_owned()), values: vec![strides] });
                }
            }
            continue;
        }
        let behind = rest.get(length..).unwrap_or("");
        let value = behind.trim_start_matches(['(', ')', '\'', '"', ' ']);
        let is_named = value.starts_with([':', '=']) && !value.starts_with("==");
        // `.stride() (8, 1)`: a call and its result.
        let called = behind.strip_prefix("()").map(str::trim_start).filter(|value| value.starts_with('('));
        let value = match (is_named, called) {
            (true, _) => value.get(1..).unwrap_or(""),
            (false, Some(value)) => value,
            _ => break,
        };
        if own.is_some() && owner.is_some() && own.and_then(last_word) != owner {
            break;
        }
        owner = owner.or(own.and_then(last_word));
        let mut reader = TermReader { text, at: text.len() - tail(text, value), terms: 0, comments: false };
        let term = reader.term(0)?;
        at = reader.at;
        end = at;
        found.push(Argument { name: Some(name.to_owned()), values: vec![term] });
    }
    if found.is_empty() {
        return Err(Stopped { at: from + 1, wanted: "a word with a value" });
    }
    Ok((found, end))
}

/// What a word says of an array: an array has one shape and one list of strides.
fn role(name: &str) -> &str {
    match name {
        "shape" | "size" | "Size" => "shape",
        "stride" | "strides" | "__stride" => "strides",
        other => other,
    }
}

/// The identifier that ends a text, `x` of `self.x`.
fn last_word(text: &str) -> Option<&str> {
    let start = text.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    text.get(start..).filter(|word| !word.is_empty())
}

/// The number of bytes of a text from the start of one of its parts on.
fn tail(text: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    text.len().saturating_sub(offset)
}

struct TermReader<'a> {
    text: &'a str,
    at: usize,
    terms: usize,
    /// Whether `#` begins a comment instead of an MLIR name.
    comments: bool,
}

impl TermReader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            if !self.comments || self.peek() != Some('#') {
                return;
            }
            let Some(length) = comment_length(self.rest()) else { return };
            self.at += length;
        }
    }

    fn fail<T>(&self, wanted: &'static str) -> Result<T, Stopped> {
        Err(Stopped { at: self.at, wanted })
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn term(&mut self, depth: usize) -> Result<Term, Stopped> {
        self.terms += 1;
        if depth > MAX_DEPTH || self.terms > MAX_TERMS {
            return self.fail("a text that nests less deeply, or is shorter");
        }
        self.blanks();
        let start = self.at;
        let kind = match self.peek() {
            None => return self.fail("more: the text ends here"),
            Some(open @ ('(' | '[' | '{')) => {
                self.at += 1;
                let close = match open {
                    '(' => ')',
                    '[' => ']',
                    _ => '}',
                };
                TermKind::List(open, self.arguments(close, depth)?)
            }
            Some(quote @ ('\'' | '"')) => {
                self.at += 1;
                let Some(end) = self.rest().find(quote) else { return self.fail("the quote that ends the text") };
                let inner = self.rest().get(..end).unwrap_or("").to_owned();
                self.at += end + 1;
                TermKind::Text(inner)
            }
            Some(c) if c.is_ascii_digit() || c == '?' => self.digits()?,
            Some('-') if self.rest().get(1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) => {
                self.at += 1;
                match self.digits()? {
                    TermKind::Number(number) => TermKind::Number(-number),
                    _ => return self.fail("a number"),
                }
            }
            Some(c) if c.is_ascii_alphabetic() || matches!(c, '_' | '#' | '!' | '@' | '%') => self.named(depth)?,
            Some(_) => {
                let signs = ["->", "<=", "//", "**", ">=", "==", "*", "+", "-", "%", "/", "^", "&", "|", ".", "<", ">"];
                let sign = signs.into_iter().find(|sign| self.rest().starts_with(sign));
                let Some(sign) = sign else { return self.fail("a number, a name or a list") };
                self.at += sign.len();
                TermKind::Sign(sign.to_owned())
            }
        };
        Ok(Term { kind, place: start..self.at })
    }

    /// A number, or extents and a type, `64x32xf16`.
    fn digits(&mut self) -> Result<TermKind, Stopped> {
        let start = self.at;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '?');
        let length = self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len());
        let word = self.rest().get(..length).unwrap_or("").to_owned();
        self.at += length;
        let plain = word.replace('_', "");
        let number = match plain.strip_prefix("0x") {
            Some(digits) if !digits.contains('x') => i64::from_str_radix(digits, 16).ok(),
            _ => plain.parse().ok(),
        };
        match number {
            Some(number) => Ok(TermKind::Number(number)),
            None if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') => {
                self.at = start;
                self.fail("a number of at most 63 bits")
            }
            None => Ok(TermKind::Word(word)),
        }
    }

    fn named(&mut self, depth: usize) -> Result<TermKind, Stopped> {
        let first = self.peek().map_or(0, char::len_utf8);
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let rest = self.rest().get(first..).unwrap_or("");
        let length = first + rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = self.rest().get(..length).unwrap_or("").to_owned();
        self.at += length;
        let close = match self.peek() {
            Some('<') if !self.rest().starts_with("<=") => '>',
            Some('(') => ')',
            _ => return Ok(TermKind::Word(name)),
        };
        self.at += 1;
        let arguments = self.arguments(close, depth)?;
        Ok(TermKind::Call(name, arguments))
    }

    /// Reads the arguments up to the closing sign. Braces that enclose all arguments are left out.
    fn arguments(&mut self, close: char, depth: usize) -> Result<Vec<Argument>, Stopped> {
        let mut arguments = Vec::new();
        loop {
            self.blanks();
            if self.peek() == Some(close) {
                self.at += 1;
                break;
            }
            let mut argument = Argument { name: None, values: Vec::new() };
            loop {
                self.blanks();
                match self.peek() {
                    Some(',') | None => break,
                    Some(c) if c == close && !(c == '>' && self.rest().starts_with(">=")) => break,
                    _ => {}
                }
                if argument.name.is_none() && argument.values.len() == 1 {
                    let equals = self.rest().starts_with('=') && !self.rest().starts_with("==");
                    if equals || self.rest().starts_with(':') {
                        let name = match argument.values.first().map(|term| &term.kind) {
                            Some(TermKind::Word(name) | TermKind::Text(name)) => Some(name.clone()),
                            Some(TermKind::Number(number)) => Some(number.to_string()),
                            _ => None,
                        };
                        if let Some(name) = name {
                            self.at += 1;
                            argument = Argument { name: Some(name), values: Vec::new() };
                            continue;
                        }
                    }
                }
                if self.take(":") {
                    let place = self.at - 1..self.at;
                    argument.values.push(Term { kind: TermKind::Sign(":".into()), place });
                    continue;
                }
                argument.values.push(self.term(depth + 1)?);
            }
            if argument.values.is_empty() && argument.name.is_none() {
                return self.fail("a value");
            }
            arguments.push(argument);
            self.blanks();
            if self.peek() == Some(',') {
                self.at += 1;
            } else if self.peek() != Some(close) {
                return self.fail("a comma, or the sign that closes the list");
            }
        }
        // `name<{a = 1}>` is `name<a = 1>`.
        if let [only] = arguments.as_slice()
            && close == '>'
            && only.name.is_none()
            && let Some(Term { kind: TermKind::List('{', _), .. }) = only.value()
            && let Some(Argument { values, .. }) = arguments.pop()
            && let Some(Term { kind: TermKind::List(_, inner), .. }) = values.into_iter().next()
        {
            return Ok(inner);
        }
        Ok(arguments)
    }
}

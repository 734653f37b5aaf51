//! Whole texts: every layout in a log, a dump or an error, with its line and name.
//!
//! Law: the text is scanned once, from its beginning to its end. Wherever a sign of a reader
//! occurs, the reader is called; the text that it reads is skipped as a whole, so that nothing is
//! found twice. If two systems would read the same text differently, neither is chosen, and the
//! result is a question. Terminal colours and the prefixes of log lines are not part of the text
//! (`clean.rs`).

use std::sync::OnceLock;

use tilewright_layout::Refusal as _;

use crate::clean::clean;
use crate::options::Options;
use crate::reader::{Context, Definitions, Found, Reader};
use crate::reading::{Place, Reading};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::table::readers;

/// The layouts in a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// The layouts, and the texts that looked like one, in the order of the text.
    pub items: Vec<Item>,
}

/// A layout in a text, or a text that looked like one.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The system that wrote it.
    pub system: System,
    /// The name before it; None if there is none.
    pub name: Option<String>,
    /// Its location.
    pub place: Place,
    /// Its meaning, or why it has none.
    pub answer: Result<Reading, Refused>,
}

impl Document {
    /// The readings, without the refusals.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.items.iter().filter_map(|item| item.answer.as_ref().ok())
    }
}

/// Reads every layout in a text.
///
/// ```
/// use tilewright_read::{Options, document};
///
/// let log = "step 1\nsA: (_8,_64):(_64,_1)\nok\nsB: (_8,_64):(_1,_8)\n";
/// let found = document(log, &Options::default());
/// let lines: Vec<_> = found.items.iter().map(|item| (item.place.line, item.name.as_deref())).collect();
/// assert_eq!(lines, [(2, Some("sA")), (4, Some("sB"))]);
/// ```
pub fn document(source: &str, options: &Options) -> Document {
    document_within(source, 0..source.len(), options)
}

/// Reads every layout that begins in a range of bytes of a text, using the definitions of the whole
/// text. An editor uses this for the lines around a position. Bytes outside the text are ignored.
///
/// ```
/// use tilewright_read::{Options, document_within};
///
/// let log = "sA: (_8,_64):(_64,_1)\nsB: (_8,_64):(_1,_8)\n";
/// let found = document_within(log, 22..log.len(), &Options::default());
/// assert_eq!((found.items.len(), found.items[0].place.line), (1, 2));
/// ```
pub fn document_within(source: &str, bytes: std::ops::Range<usize>, options: &Options) -> Document {
    let cleaned = clean(source);
    let source = cleaned.as_ref();
    let definitions = Definitions::of(source);
    let context = Context::new(source, options, &definitions);
    let mut lines = Lines::new(source);
    let mut items = Vec::new();
    let mut at = bytes.start;
    while let Some((start, readers)) = next_sign(source, at, bytes.end) {
        let found = ask(&context, start, &readers);
        let Some((system, found)) = found else {
            at = next_boundary(source, start).max(context.passed());
            continue;
        };
        // The scan continues after a type that nests too deeply. The error names the beginning of
        // the type.
        at = found.span.end.max(next_boundary(source, start)).max(context.passed());
        let place = lines.place(found.span.clone());
        let name = name_before(source, start);
        let answer = found.answer.map(|mut reading| {
            reading.place = place.clone();
            reading.named(name.clone())
        });
        let name = answer.as_ref().map_or(name, |reading| reading.name.clone());
        items.push(Item { system, name, place, answer });
    }
    Document { items }
}

/// Reads a text that is one layout, with or without a name before it.
///
/// Errors: no reader recognises the text (E1301), or it contains more than one layout; the refusal
/// of its system's reader; a question if the text is incomplete.
///
/// ```
/// use tilewright_read::{Options, expression};
///
/// let read = |text| expression(text, &Options::default());
/// assert_eq!(read("(_4,_8):(_8,_1)").unwrap().to_string(), "(4,8):(8,1)");
/// assert_eq!(read("hello").unwrap_err().to_string(), "no reader knows this text");
/// ```
pub fn expression(source: &str, options: &Options) -> Result<Reading, Refused> {
    let cleaned = clean(source);
    let source = cleaned.as_ref();
    let start = source.len() - source.trim_start().len();
    let end = source.trim_end().len();
    let found = document(source, options);
    let help = "`tilewright read` lists every layout of a text";
    let mut items = found.items.into_iter();
    let Some(first) = items.next() else {
        return Err(Refused::unknown(start..end, "no reader knows this text", help));
    };
    // Text on the line of the damage, or before it, is a part of the damaged text.
    let stopped = match &first.answer {
        Err(refused) if refused.code() == "E1302" => refused.span().map(|span| span.end),
        _ => None,
    };
    let is_other = |item: &Item| {
        let between = stopped.and_then(|stopped| source.get(stopped..item.place.span.start));
        stopped.is_none() || between.is_some_and(|between| between.contains('\n'))
    };
    if let Some(other) = items.find(is_other) {
        return Err(Refused::unknown(other.place.span, "the text holds more than one layout", help));
    }
    let before = source.get(start..first.place.span.start).unwrap_or("");
    let after = source.get(first.place.span.end..end).unwrap_or("");
    if !is_introduction(before) {
        let span = start..first.place.span.start;
        return Err(Refused::unknown(span, "no reader knows the text before the layout", help));
    }
    if stopped.is_some() {
        return first.answer;
    }
    // What may follow a layout: a value of a C++ type, the end of a statement, the end of a
    // quotation.
    if !["", ";", ",", "{}", "{};", "\"", "'"].contains(&after.trim()) {
        let span = first.place.span.end..end;
        return Err(Refused::unknown(span, "no reader knows the text after the layout", help));
    }
    first.answer
}

/// Whether a text is empty, or the column numbers of a table: `0 1 2`.
fn is_numbered(text: &str) -> bool {
    text.split_whitespace().enumerate().all(|(at, word)| word.parse() == Ok(at))
}

/// Whether the text before a layout is a name, or a declaration in source code.
fn is_introduction(text: &str) -> bool {
    let text = text.trim();
    is_numbered(text) || (text.ends_with([':', '=']) && text.len() <= 120 && !text.contains('\n'))
}

/// The system and the result of the readers that recognise the text at a position. They must agree.
fn ask(context: &Context<'_>, at: usize, readers: &[&'static Reader]) -> Option<(System, Found)> {
    let wanted = |reader: &&&'static Reader| context.options.system.is_none_or(|system| system == reader.system);
    let mut found = readers.iter().filter(wanted).filter_map(|reader| {
        let found = (reader.read)(context, at)?;
        Some((reader.system, found))
    });
    let (first_system, first) = found.next()?;
    let mut systems = vec![first_system];
    let mut longest = (first_system, first);
    let mut agree = true;
    for (system, other) in found {
        if meaning(&other) != meaning(&longest.1) {
            agree = false;
        }
        if !systems.contains(&system) {
            systems.push(system);
        }
        if other.span.end > longest.1.span.end {
            longest = (system, other);
        }
    }
    if !agree && systems.len() > 1 {
        let names: Vec<&str> = systems.iter().map(|system| system.title()).collect();
        let message = format!("the text means different things to {}", names.join(" and to "));
        longest.1.answer = Err(Refused::ask(Missing::System(systems), message));
    }
    Some(longest)
}

/// The parts of a result about which two readers must agree.
fn meaning(found: &Found) -> Option<(&crate::reading::Meaning, crate::reading::Unit)> {
    found.answer.as_ref().ok().map(|reading| (&reading.meaning, reading.unit))
}

/// The signs, by their first byte.
type Signs = Vec<Vec<(&'static str, &'static Reader)>>;

fn signs() -> &'static Signs {
    static SIGNS: OnceLock<Signs> = OnceLock::new();
    SIGNS.get_or_init(|| {
        let mut signs: Signs = vec![Vec::new(); 256];
        for reader in readers() {
            for sign in reader.signs {
                let first = sign.bytes().next().map(usize::from);
                if let Some(row) = first.and_then(|first| signs.get_mut(first)) {
                    row.push((*sign, reader));
                }
            }
        }
        signs
    })
}

/// The next position of a sign, and the readers that have this sign.
fn next_sign(source: &str, from: usize, end: usize) -> Option<(usize, Vec<&'static Reader>)> {
    let signs = signs();
    let bytes = source.as_bytes();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    for at in from..bytes.len().min(end) {
        let first = *bytes.get(at)?;
        let Some(row) = signs.get(usize::from(first)).filter(|row| !row.is_empty()) else { continue };
        // A word does not begin inside another word.
        if word(first) && at > 0 && bytes.get(at - 1).is_some_and(|before| word(*before)) {
            continue;
        }
        let mut found: Vec<&'static Reader> = Vec::new();
        for (sign, reader) in row {
            let here = bytes.get(at..).is_some_and(|rest| rest.starts_with(sign.as_bytes()));
            if here && !found.iter().any(|other| std::ptr::eq(*other, *reader)) {
                found.push(reader);
            }
        }
        if !found.is_empty() {
            return Some((at, found));
        }
    }
    None
}

/// The position of the next character.
fn next_boundary(source: &str, at: usize) -> usize {
    let mut next = at + 1;
    while next < source.len() && !source.is_char_boundary(next) {
        next += 1;
    }
    next
}

/// The distance in bytes that is searched backwards on the line for a name.
const NAME_WINDOW: usize = 120;

/// The name on the line before a position: `sA:`, `LShape=`, `using L =`, `%3 = ..`. If the value
/// begins its line, the name at the end of the line above.
fn name_before(source: &str, at: usize) -> Option<String> {
    let mut from = at.saturating_sub(NAME_WINDOW);
    while !source.is_char_boundary(from) {
        from += 1;
    }
    let before = source.get(from..at)?;
    let (line, whole) = match before.rfind('\n') {
        Some(end) => (before.get(end + 1..)?, true),
        None => (before, from == 0),
    };
    let above = before.trim_end();
    let (line, whole) = match above.strip_suffix('=').filter(|_| line.trim().is_empty()) {
        Some(_) => above.rfind('\n').map_or((above, from == 0), |end| (above.get(end + 1..).unwrap_or(""), true)),
        None => (line, whole),
    };
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | '!' | '%' | '$');
    // A value of an IR, which its line defines.
    if whole && let Some((name, _)) = line.split_once('=') {
        let name = name.trim();
        if name.len() > 1 && name.starts_with(['%', '#', '!']) && name.chars().all(|c| word(c) || c == '.') {
            return Some(name.to_owned());
        }
    }
    let label = line.trim_end().trim_end_matches(['"', '\'', '(']).trim_end();
    let named = label.strip_suffix([':', '='])?;
    let named = named.trim_end();
    if label.ends_with(':') && whole {
        let words = |c: char| word(c) || matches!(c, ' ' | '-' | '.' | '\t');
        let words = !named.trim().is_empty() && named.chars().all(words);
        if words {
            // A TeX comment.
            return Some(named.trim().trim_start_matches("% ").to_owned());
        }
    }
    let start = named.char_indices().rev().find(|(_, c)| !word(*c)).map_or(0, |(at, c)| at + c.len_utf8());
    named
        .get(start..)
        .filter(|name| !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

/// Lines and columns of positions, which must be requested in ascending order.
pub(crate) struct Lines<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    start: usize,
}

impl<'a> Lines<'a> {
    /// The line and column counter of a text.
    pub(crate) fn new(source: &'a str) -> Lines<'a> {
        Lines { source, at: 0, line: 1, start: 0 }
    }

    pub(crate) fn place(&mut self, span: std::ops::Range<usize>) -> Place {
        let passed = self.source.get(self.at..span.start).unwrap_or("");
        for (at, _) in passed.match_indices('\n') {
            self.line += 1;
            self.start = self.at + at + 1;
        }
        self.at = span.start.max(self.at);
        // Columns are counted in characters on lines of ordinary length, and in bytes beyond that.
        let line = self.source.get(self.start..span.start).unwrap_or("");
        let column = if line.len() > 1 << 12 { line.len() } else { line.chars().count() } + 1;
        Place { line: self.line, column, span }
    }
}

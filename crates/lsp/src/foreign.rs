//! Layouts in files of any language: finds the layout at a position.
//!
//! Law: only the lines around the position are parsed, so a large file costs no more than one pass
//! over its lines. Text in our notation is reported only if it is unmistakably a layout. The file
//! is read and never executed.

use std::ops::Range;

use tilewright_notation::{Environment, Value, evaluate};
use tilewright_read::{Item, Meaning, Options, Unit, document_within};

use crate::describe;
use crate::literal::Call;
use crate::position::{Position, Span, Text};

/// How many bytes before the position a layout may begin.
const BEFORE: usize = 1 << 13;
/// The longest text in the notation that is evaluated, in bytes.
const LONGEST: usize = 1 << 10;

/// A layout in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The span of its text.
    pub span: Span,
    /// The hover text, as Markdown.
    pub text: String,
    /// The layout in the notation, for the playground and the command; None if the notation cannot
    /// write it.
    pub expression: Option<String>,
}

/// The layout at a position of a file of any language; None if no reader recognizes one.
///
/// ```
/// use tilewright_lsp::{Position, Text, layout_at};
///
/// let text = Text::new("sA = cute.make_layout((4, 8), stride=(8, 1))\n".to_owned());
/// let found = layout_at(&text, Position { line: 0, character: 12 }).unwrap();
/// assert_eq!(found.expression.as_deref(), Some("(4,8):(8,1)"));
/// assert!(found.text.contains("size 32, cosize 32"));
/// ```
pub fn layout_at(text: &Text, place: Position) -> Option<Found> {
    let at = text.offset(place);
    let items = around(text, at);
    let item = items.iter().filter(|item| holds(&item.place.span, at)).min_by_key(|item| item.place.span.len());
    let read = item.and_then(|item| of_item(text, item));
    // A layout of another system may be part of a text in our notation: `"A o B"` contains two.
    let in_notation = notation_at(text, place.line, at);
    if let Some(own) = &read
        && item.is_some_and(|item| item.answer.is_ok())
        && in_notation.as_ref().is_none_or(|notation| !encloses(notation.span, own.span))
    {
        return read;
    }
    in_notation.or_else(|| constructor_at(text, at)).or(read)
}

/// Whether a span contains another one and is longer.
fn encloses(outer: Span, inner: Span) -> bool {
    outer != inner && outer.start <= inner.start && inner.end <= outer.end
}

fn holds(bytes: &Range<usize>, at: usize) -> bool {
    bytes.start <= at && at <= bytes.end
}

/// The bytes in which a layout at a position may begin: a few lines before it, up to the end of its
/// line.
fn window(text: &Text, at: usize) -> Range<usize> {
    let line = text.position(at).line;
    let mut end = text.line(line).end.min(at + BEFORE);
    let mut first = text.line(line.saturating_sub(64)).start.max(at.saturating_sub(BEFORE));
    while !text.as_str().is_char_boundary(first) {
        first += 1;
    }
    while !text.as_str().is_char_boundary(end) {
        end -= 1;
    }
    first..end
}

/// The layouts that the readers find in the window of a position.
fn around(text: &Text, at: usize) -> Vec<Item> {
    document_within(text.as_str(), window(text, at), &Options::default()).items
}

fn of_item(text: &Text, item: &Item) -> Option<Found> {
    let span = text.span(item.place.span.clone());
    let title = match &item.name {
        Some(name) => format!("**{}** `{}`", item.system.title(), name.replace('`', "'")),
        None => format!("**{}**", item.system.title()),
    };
    let reading = match &item.answer {
        Ok(reading) => reading,
        Err(refused) => {
            use tilewright_layout::Refusal as _;
            let mut text = format!("{title}: {refused} ({})\n", refused.code());
            if let Some(help) = refused.help() {
                text.push_str(&format!("\n* help: {help}\n"));
            }
            return Some(Found { span, text, expression: None });
        }
    };
    let mut text = format!("{title}: {}", reading.what);
    if reading.unit != Unit::None {
        text.push_str(&format!(", in {}", reading.unit));
    }
    text.push_str("\n\n");
    let expression = match &reading.meaning {
        Meaning::Value(value) => {
            text.push_str(&describe::value(value));
            Some(value.to_string())
        }
        _ => {
            text.push_str(&format!("```text\n{reading}\n```\n"));
            None
        }
    };
    for note in &reading.notes {
        text.push_str(&format!("\n* {note}"));
    }
    for part in &reading.parts {
        text.push_str(&format!("\n* `{}`: `{}`", part.name, part.value));
    }
    Some(Found { span, text, expression })
}

/// The values that are unmistakably layouts.
fn is_layout(value: &Value) -> bool {
    matches!(value, Value::Layout(_) | Value::Swizzle(_) | Value::Linear(_) | Value::Morphism(_) | Value::Tiler(_))
}

fn in_notation(text: &Text, bytes: Range<usize>) -> Option<Found> {
    let source = text.as_str().get(bytes.clone())?;
    if source.len() > LONGEST || !source.contains("):") || source.contains(['\n', '=']) {
        return None;
    }
    let value = evaluate(source, &mut Environment::new()).ok().filter(is_layout)?;
    let shown = format!("**layout**\n\n{}", describe::value(&value));
    Some(Found { span: text.span(bytes), text: shown, expression: Some(source.trim().to_owned()) })
}

/// A layout in our notation: in quotes, in `layout!(..)`, or two parentheses with a colon between
/// them.
fn notation_at(text: &Text, line: u32, at: usize) -> Option<Found> {
    let bytes = text.line(line);
    let own = text.line_text(line);
    let here = at.checked_sub(bytes.start)?;
    if own.len() > 8 * LONGEST {
        return None;
    }
    let shifted = |inner: Range<usize>| bytes.start + inner.start..bytes.start + inner.end;
    for quote in ['"', '\'', '`'] {
        let places: Vec<usize> = own.match_indices(quote).map(|(at, _)| at).collect();
        for pair in places.chunks_exact(2) {
            if let [open, close] = pair
                && *open < here
                && here <= *close
                && let Some(found) = in_notation(text, shifted(open + 1..*close))
            {
                return Some(found);
            }
        }
    }
    for (start, _) in own.match_indices("layout!(") {
        let open = start + "layout!(".len();
        if let Some(close) = closing(own, open)
            && start <= here
            && here <= close
            && let Some(found) = in_notation(text, shifted(open..close))
        {
            return Some(found);
        }
    }
    for (colon, _) in own.match_indices("):(") {
        let close = closing(own, colon + 3);
        let open = opening(own, colon);
        if let (Some(open), Some(close)) = (open, close)
            && open <= here
            && here <= close + 1
            && let Some(found) = in_notation(text, shifted(open..close + 1))
        {
            return Some(found);
        }
    }
    None
}

/// The byte of the parenthesis that closes the one around this byte.
fn closing(line: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in line.get(from..)?.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(from + at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The byte of the parenthesis that the one at this byte closes.
fn opening(line: &str, close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in line.get(..close)?.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => return Some(at),
            '(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The longest text of the form `module.Layout(`, in bytes.
const MAX_QUALIFIED_NAME: usize = 64;

/// A call `Layout(shape, stride)` of Python whose arguments are literals: integers and tuples of
/// them. The call may begin a few lines before the position.
fn constructor_at(text: &Text, at: usize) -> Option<Found> {
    let source = text.as_str();
    let window = window(text, at);
    // A position on the module name of `pycute.Layout(` belongs to the call, too.
    let mut end = (at + MAX_QUALIFIED_NAME).min(window.end);
    while !source.is_char_boundary(end) {
        end -= 1;
    }
    let before = source.get(window.start..end)?;
    // The innermost call is tried first.
    for (start, name) in before.rmatch_indices("Layout(") {
        let start = window.start + start;
        let head = source.get(..start)?;
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let qualified = head.trim_end_matches(|c| is_part(c) || c == '.').len();
        if head.chars().next_back().is_some_and(is_part) || qualified > at {
            continue;
        }
        let Some(call) = Call::read(source, start + name.len()).filter(|call| at <= call.end) else { continue };
        let Some(layout) = call.layout().filter(|layout| layout.len() <= LONGEST) else { continue };
        let Ok(value) = evaluate(&layout, &mut Environment::new()) else { continue };
        let shown = format!("**Python**: layout, in elements\n\n{}", describe::value(&value));
        return Some(Found { span: text.span(qualified..call.end), text: shown, expression: Some(value.to_string()) });
    }
    None
}

/// All layouts of a file that the readers recognize, for requests about the whole file.
pub fn layouts(text: &Text) -> Vec<Found> {
    let found = document_within(text.as_str(), 0..text.as_str().len(), &Options::default());
    found.items.iter().filter_map(|item| of_item(text, item)).collect()
}

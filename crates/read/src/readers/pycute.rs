//! Layouts as printed by pycute, CuTe's algebra in Python, and by the package tensor-layouts.
//!
//! Law: `Layout((4, 8), (8, 1))` has a shape and strides, as in CuTe; `Swizzle(3, 0, 3)` is
//! `S<3,0,3>` in the unit of the layout to which it is applied; `ComposedLayout(outer, inner,
//! offset=5)`, printed `(outer) o {5} o (inner)`, sends `c` to `outer(5 + inner(c))`. A tensor
//! begins at its offset, `{4} ∘ (4, 8) : (8, 1)`. An atom consists of the layouts from (thread,
//! value) to the elements of its operands.

use std::ops::Range;

use tilewright_layout::MAX_DEPTH;
use tilewright_notation::Value;

use super::cute_print::layout_text;
use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Part, Reading, Unit};
use crate::refused::Refused;
use crate::system::System;
use crate::term::{Argument, Term, TermKind, read_python};
use crate::tuple::value;

/// The reader.
pub const READER: Reader = Reader {
    system: System::CuteDsl,
    signs: &["Layout(", "ComposedLayout(", "Swizzle(", "(Swizzle(", "MMAAtom(name=", "Tensor({", "{"],
    read,
};

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let rest = context.source.get(at..)?;
    if rest.starts_with('{') || rest.starts_with("Tensor({") {
        return tensor(context, at);
    }
    if rest.starts_with('(') {
        return circled(context, at);
    }
    let term = read_python(context.source, at).ok()?;
    let span = term.place.clone();
    let (name, arguments) = term.call()?;
    let answer = match name {
        "Swizzle" => {
            let text = expression(&term, 0)?;
            value(&text, span.clone()).map(|swizzle| Reading::new(System::CuteDsl, "swizzle", swizzle, Unit::None))
        }
        "MMAAtom" => atom(arguments, &span)?,
        _ => {
            let text = expression(&term, 0)?;
            value(&text, span.clone()).map(layout)
        }
    };
    Some(Found { span, answer })
}

fn layout(made: Value) -> Reading {
    Reading::new(System::CuteDsl, "layout", made, Unit::Elements { bits: None })
}

/// Whether a call is a layout with only a shape and strides.
pub(super) fn is_plain(source: &str, at: usize) -> bool {
    read_python(source, at).ok().is_some_and(|term| expression(&term, 0).is_some())
}

/// A number or a tuple, in our notation.
fn tuple(term: &Term, depth: usize) -> Option<String> {
    match &term.kind {
        TermKind::Number(number) => Some(number.to_string()),
        TermKind::List('(', items) if depth <= MAX_DEPTH => {
            let parts = items.iter().map(|item| match item.name {
                None => tuple(item.value()?, depth + 1),
                Some(_) => None,
            });
            Some(format!("({})", parts.collect::<Option<Vec<_>>>()?.join(",")))
        }
        _ => None,
    }
}

/// A layout in our notation; None for any other call.
fn expression(term: &Term, depth: usize) -> Option<String> {
    let (name, arguments) = term.call().filter(|_| depth <= MAX_DEPTH)?;
    let plain: Vec<&Term> =
        arguments.iter().filter(|argument| argument.name.is_none()).filter_map(Argument::value).collect();
    match (name, plain.as_slice()) {
        ("Layout", [shape, stride]) if arguments.len() == 2 => {
            Some(format!("{}:{}", tuple(shape, 0)?, tuple(stride, 0)?))
        }
        ("Swizzle", [bits, base, shift]) if arguments.len() == 3 => {
            Some(format!("S<{},{},{}>", bits.number()?, base.number()?, shift.number()?))
        }
        ("ComposedLayout", [outer, inner]) => {
            let offset = match arguments {
                [_, _] => 0,
                [_, _, offset] if offset.name.as_deref() == Some("offset") => offset.value()?.number()?,
                _ => return None,
            };
            Some(format!("{} o {offset} o {}", expression(outer, depth + 1)?, expression(inner, depth + 1)?))
        }
        _ => None,
    }
}

/// `(Swizzle(3, 0, 3)) o {5} o ((8, 8) : (8, 1))`
fn circled(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let outer = group(&mut cursor)?;
    let mut offset = 0;
    cursor.eat_spaced("o").then_some(())?;
    if cursor.blanks(false).eat("{") {
        offset = cursor.integer()?;
        cursor.eat("}").then_some(())?;
        cursor.eat_spaced("o").then_some(())?;
        cursor.blanks(false);
    }
    let inner = group(&mut cursor)?;
    let span = at..cursor.at;
    let answer = value(&format!("{outer} o {offset} o {inner}"), span.clone()).map(layout);
    Some(Found { span, answer })
}

/// A swizzle or a layout in its own parentheses.
fn group(cursor: &mut Cursor<'_>) -> Option<String> {
    cursor.eat("(").then_some(())?;
    let found = if cursor.rest().starts_with("Swizzle(") {
        let term = read_python(cursor.source, cursor.at).ok()?;
        cursor.at = term.place.end;
        expression(&term, 0)?
    } else {
        layout_text(cursor)?
    };
    cursor.blanks(false).eat(")").then_some(found)
}

/// `{4} ∘ (4, 8) : (8, 1)`, alone or in `Tensor(..)`.
fn tensor(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let is_call = cursor.eat("Tensor(");
    cursor.eat("{").then_some(())?;
    let offset = cursor.integer()?;
    (cursor.eat("}") && cursor.eat_spaced("∘")).then_some(())?;
    cursor.blanks(false);
    let text = layout_text(&mut cursor)?;
    if is_call {
        cursor.eat_spaced(")").then_some(())?;
    }
    let span = at..cursor.at;
    // The offset is composed with a layout that is the identity on a large enough range.
    let made = value(&format!("cosize({text})"), span.clone()).and_then(|reach| {
        let reach = reach.to_string().parse::<i64>().unwrap_or(0).max(1).saturating_add(offset.saturating_abs());
        let text = if offset == 0 { text } else { format!("{reach}:1 o {offset} o {text}") };
        value(&text, span.clone())
    });
    let unit = Unit::Elements { bits: None };
    Some(Found { span, answer: made.map(|made| Reading::new(System::CuteDsl, "tensor", made, unit)) })
}

/// The layouts of an atom.
fn atom(arguments: &[Argument], span: &Range<usize>) -> Option<Result<Reading, Refused>> {
    let named = |name: &str| arguments.iter().find(|own| own.name.as_deref() == Some(name)).and_then(Argument::value);
    let texts = ["a_layout", "b_layout", "c_layout"].map(|name| Some((name, expression(named(name)?, 0)?)));
    let [Some(a), Some(b), Some(c)] = texts else { return None };
    let parts = [a, b, c]
        .into_iter()
        .map(|(name, text)| value(&text, span.clone()).map(|made| Part::new(name, made, Unit::Indices)));
    Some(parts.collect::<Result<Vec<Part>, Refused>>().map(|parts| {
        let values = parts.iter().map(|part| part.value.clone()).collect();
        let mut reading = Reading::new(System::CuteDsl, "atom of a product", Value::List(values), Unit::Indices)
            .note("(thread, value) to elements of A, B and C, numbered first dimension fastest");
        reading.parts = parts;
        reading
    }))
}

//! Layouts in the source of CuTe's Python: `cute.make_layout((4, 8), stride=(8, 1))`.
//!
//! Law: a call means what the function computes; a layout without strides is compact, first mode
//! fastest. Names in shapes and strides are positive numbers that become known at launch. A call
//! with anything else in it, such as a variable for a layout, is passed over.

use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::system::System;
use crate::tuple::value;

/// The row of the table.
pub const READER: Reader = Reader {
    system: System::CuteDsl,
    signs: &[
        "cute.make_",
        "cute.composition(",
        "cute.logical_",
        "cute.zipped_",
        "cute.tiled_",
        "cute.blocked_product(",
        "cute.raked_product(",
        "cute.tile_to_shape(",
        "cute.coalesce(",
        "cute.right_inverse(",
        "cute.left_inverse(",
        "make_layout(",
        "make_ordered_layout(",
        "make_composed_layout(",
        "make_identity_layout(",
    ],
    read,
};

/// How deep calls and tuples nest.
const MAX_DEPTH: usize = 24;

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let (text, kind) = operand(&mut cursor, 0)?;
    if kind != Kind::Layout {
        return None;
    }
    let span = at..cursor.at;
    let unit = if text.contains("make_identity_layout") { Unit::Coordinates } else { Unit::Elements { bits: None } };
    let answer = value(&text, span.clone()).map(|layout| Reading::new(System::CuteDsl, "layout", layout, unit));
    Some(Found { span, answer })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Numbers,
    Layout,
    Swizzle,
}

/// One operand in our notation.
fn operand(cursor: &mut Cursor<'_>, depth: usize) -> Option<(String, Kind)> {
    if depth > MAX_DEPTH {
        return None;
    }
    cursor.blanks(true);
    if cursor.peek() == Some(b'(') {
        let (items, _) = arguments(cursor, b')', depth)?;
        let numbers = items.iter().all(|(_, kind)| *kind == Kind::Numbers);
        let texts: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
        return numbers.then(|| (format!("({})", texts.join(",")), Kind::Numbers));
    }
    if let Some(number) = cursor.integer() {
        let more = cursor.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        return (!more).then(|| (number.to_string(), Kind::Numbers));
    }
    let _ = cursor.eat("cute.");
    let name = cursor.word()?;
    if cursor.peek() != Some(b'(') {
        // A name in a shape; `.` or an operator after it makes it something else.
        cursor.blanks(false);
        let alone = depth > 1 && matches!(cursor.peek(), Some(b',' | b')'));
        let free = name.starts_with(|c: char| c.is_ascii_alphabetic()) && tilewright_notation::function(name).is_none();
        return (alone && free && !["None", "True", "False", "o"].contains(&name))
            .then(|| (name.to_owned(), Kind::Numbers));
    }
    let (items, keywords) = arguments(cursor, b')', depth)?;
    let keyword = |name: &str| keywords.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let kinds: Vec<Kind> = items.iter().map(|(_, kind)| *kind).collect();
    let texts: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
    let known =
        |names: &[&str]| keywords.iter().all(|(key, _)| names.contains(&key.as_str()) || key == "loc" || key == "ip");
    let layout = |text: String| Some((text, Kind::Layout));
    match (name, texts.as_slice(), kinds.as_slice()) {
        ("make_layout", [shape], [Kind::Numbers]) if known(&["stride"]) => match keyword("stride") {
            Some(stride) => layout(format!("{shape}:{stride}")),
            None => layout(format!("col_major({shape})")),
        },
        ("make_layout", [shape, stride], [Kind::Numbers, Kind::Numbers]) if known(&[]) => {
            layout(format!("{shape}:{stride}"))
        }
        ("make_ordered_layout", [shape, rest @ ..], [Kind::Numbers, ..]) if known(&["order"]) => {
            let order = keyword("order").or(rest.first().copied())?;
            layout(format!("make_ordered_layout({shape},{order})"))
        }
        ("make_identity_layout", [shape], [Kind::Numbers]) if known(&[]) => {
            layout(format!("make_identity_layout({shape})"))
        }
        ("make_swizzle", [bits, base, shift], [Kind::Numbers, ..]) if known(&[]) => {
            Some((format!("S<{bits},{base},{shift}>"), Kind::Swizzle))
        }
        (
            "make_composed_layout",
            [outer, offset, inner],
            [Kind::Swizzle | Kind::Layout, Kind::Numbers, Kind::Layout],
        ) if known(&[]) => layout(format!("{} o {offset} o ({inner})", wrapped(outer, kinds.first()))),
        (
            "composition" | "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" | "logical_product"
            | "zipped_product" | "tiled_product" | "flat_product" | "blocked_product" | "raked_product"
            | "tile_to_shape" | "coalesce" | "right_inverse" | "left_inverse" | "complement",
            [_, ..],
            [Kind::Layout, ..],
        ) if known(&[]) => layout(format!("{name}({})", texts.join(","))),
        _ => None,
    }
}

/// A layout in parentheses; a swizzle as it is.
fn wrapped(text: &str, kind: Option<&Kind>) -> String {
    if kind == Some(&Kind::Swizzle) { text.to_owned() } else { format!("({text})") }
}

type Items = (Vec<(String, Kind)>, Vec<(String, String)>);

/// Operands in parentheses, and those with names.
fn arguments(cursor: &mut Cursor<'_>, close: u8, depth: usize) -> Option<Items> {
    cursor.at += 1;
    let (mut items, mut keywords) = (Vec::new(), Vec::new());
    loop {
        cursor.blanks(true);
        if cursor.peek() == Some(close) {
            cursor.at += 1;
            return Some((items, keywords));
        }
        let kept = cursor.at;
        let key = cursor.word().filter(|_| cursor.eat_spaced("=") && cursor.peek() != Some(b'='));
        match key {
            Some(key) => keywords.push((key.to_owned(), operand(cursor, depth + 2)?.0)),
            None => {
                cursor.at = kept;
                items.push(operand(cursor, depth + 1)?);
            }
        }
        cursor.blanks(true);
        match cursor.peek() {
            Some(b',') => cursor.at += 1,
            Some(byte) if byte == close => {}
            _ => return None,
        }
    }
}

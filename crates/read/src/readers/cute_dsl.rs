//! Layouts in the source of CuTe's Python: `cute.make_layout((4, 8), stride=(8, 1))`.
//!
//! Law: a call means the value that the function computes; a layout without strides is compact,
//! first mode fastest. Names in shapes and strides are positive parameters. `None` in a coordinate
//! keeps its mode. A call with any other argument, such as a variable for a layout, is skipped; if
//! it is the whole text, it is refused with the reason. A shared memory atom,
//! `make_smem_layout_atom(kind, type)`, is the layout that it prints. A call may span lines and
//! contain comments.

use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::tuple::value;
use crate::width::element_bits;

/// The reader.
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
        "cute.complement(",
        "cute.flat_divide(",
        "cute.flat_product(",
        "cute.recast_layout(",
        "cute.select(",
        "cute.group_modes(",
        "cute.flatten(",
        "cute.filter",
        "cute.append(",
        "cute.prepend(",
        "cute.get(",
        "cute.slice_(",
        "cute.dice(",
        "cute.local_tile(",
        "cute.local_partition(",
        "make_smem_layout_atom(",
        "make_smem_layout_a(",
        "make_smem_layout_b(",
        "make_smem_layout_epi(",
        "get_smem_layout_atom(",
        "make_trivial_tiled_mma(",
        "make_layout(",
        "make_ordered_layout(",
        "make_composed_layout(",
        "make_identity_layout(",
    ],
    read,
};

/// The largest nesting depth of calls and tuples.
const MAX_DEPTH: usize = 24;

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    if cursor.eat("make_smem_layout_atom") {
        return atom(context, at, cursor);
    }
    let Some((text, kind)) = operand(&mut cursor, 0) else { return unread(context, at) };
    if kind != DslKind::Layout {
        return None;
    }
    let span = at..cursor.at;
    let unit = if text.contains("make_identity_layout") { Unit::Coordinates } else { Unit::Elements { bits: None } };
    let answer = value(&text, span.clone()).map(|layout| Reading::new(System::CuteDsl, "layout", layout, unit));
    Some(Found { span, answer })
}

/// The refusal of a call that is the whole text, but lacks information.
fn unread(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let name = cursor.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    // CuTe's C++ names belong to another reader.
    let own = name.starts_with("cute.") || name.starts_with("make_smem_") || name.starts_with("get_smem_");
    if !own && name != "make_trivial_tiled_mma" {
        return None;
    }
    let before = context.source.get(..at)?.trim();
    // `sm90_utils.` and `layout =` may precede it.
    let before = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')).trim();
    let alone = before.is_empty() || (before.ends_with('=') && before.len() <= 120 && !before.contains('\n'));
    cursor.bracketed(b'(')?;
    if !alone || !context.source.get(cursor.at..)?.trim().is_empty() {
        return None;
    }
    let span = at..cursor.at;
    let message = format!("what {name} gives depends on values that the text does not say");
    let help = "print its result, or write the numbers in place of the names";
    Some(Found { span: span.clone(), answer: Err(Refused::unsupported(span, message, help)) })
}

/// `make_smem_layout_atom(SmemLayoutAtomKind.K_SW128, cutlass.Float16)`
fn atom(context: &Context<'_>, at: usize, mut cursor: Cursor<'_>) -> Option<Found> {
    let inside = cursor.bracketed(b'(')?;
    let (kind, element) = context.source.get(inside)?.split_once(',')?;
    let last = |text: &str| text.trim().rsplit('.').next().map(str::to_owned);
    let (major, swizzle) =
        last(kind)?.split_once('_').map(|(major, swizzle)| (major.to_owned(), swizzle.to_owned()))?;
    let (swizzle, bytes) = match swizzle.as_str() {
        "INTER" => ("S<0,4,3>", 16),
        "SW32" => ("S<1,4,3>", 32),
        "SW64" => ("S<2,4,3>", 64),
        "SW128" => ("S<3,4,3>", 128),
        "SW128_32B" if major == "MN" => ("S<2,5,2>", 128),
        _ => return unread(context, at),
    };
    let span = at..cursor.at;
    let element = last(element.trim_end_matches([',', ' ', '\n']))?;
    let Some(bits) = element_bits(&element).or(context.options.element_bits) else {
        let message = format!("the atom has {bytes} bytes in a row, and how wide is an element of the type {element}?");
        return Some(Found { span, answer: Err(Refused::ask(Missing::Width, message)) });
    };
    let across = bytes * 8 / bits.max(1);
    let layout = match major.as_str() {
        "K" => format!("(8,{across}):({across},1)"),
        "MN" => format!("({across},8):(1,{across})"),
        _ => return unread(context, at),
    };
    let text = if swizzle == "S<0,4,3>" { layout } else { format!("{swizzle} o 0 o {layout}") };
    let answer = value(&text, span.clone()).map(|layout| {
        let reading = Reading::new(System::CuteDsl, "layout", layout, Unit::Elements { bits: Some(bits) });
        reading.note(format!(
            "this is the layout that CuTe prints; given to a pointer as its swizzle, {swizzle} acts on byte addresses"
        ))
    });
    Some(Found { span, answer })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DslKind {
    Numbers,
    Layout,
    Swizzle,
}

/// One operand in our notation.
fn operand(cursor: &mut Cursor<'_>, depth: usize) -> Option<(String, DslKind)> {
    if depth > MAX_DEPTH {
        return None;
    }
    cursor.blanks_of_python();
    if let Some(open @ (b'(' | b'[')) = cursor.peek() {
        let (items, _) = arguments(cursor, if open == b'(' { b')' } else { b']' }, depth)?;
        let numbers = items.iter().all(|(_, kind)| *kind == DslKind::Numbers);
        let texts: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
        return numbers.then(|| (format!("({})", texts.join(",")), DslKind::Numbers));
    }
    if let Some(number) = cursor.integer() {
        let more = cursor.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        return (!more).then(|| (number.to_string(), DslKind::Numbers));
    }
    let _ = cursor.eat("cute.");
    let name = cursor.word()?;
    if cursor.peek() != Some(b'(') {
        // `None` keeps its mode.
        if name == "None" && depth > 1 {
            return Some(("_".to_owned(), DslKind::Numbers));
        }
        // A name in a shape. If `.` or an operator follows, it is something else.
        cursor.blanks(false);
        let alone = depth > 1 && matches!(cursor.peek(), Some(b',' | b')' | b']'));
        let free = name.starts_with(|c: char| c.is_ascii_alphabetic()) && tilewright_notation::function(name).is_none();
        return (alone && free && !["None", "True", "False", "o"].contains(&name))
            .then(|| (name.to_owned(), DslKind::Numbers));
    }
    let (items, keywords) = arguments(cursor, b')', depth)?;
    let keyword = |name: &str| keywords.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let kinds: Vec<DslKind> = items.iter().map(|(_, kind)| *kind).collect();
    let texts: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
    let known =
        |names: &[&str]| keywords.iter().all(|(key, _)| names.contains(&key.as_str()) || key == "loc" || key == "ip");
    let layout = |text: String| Some((text, DslKind::Layout));
    match (name, texts.as_slice(), kinds.as_slice()) {
        ("make_layout", [shape], [DslKind::Numbers]) if known(&["stride"]) => match keyword("stride") {
            Some(stride) => layout(format!("{shape}:{stride}")),
            None => layout(format!("col_major({shape})")),
        },
        ("make_layout", [shape, stride], [DslKind::Numbers, DslKind::Numbers]) if known(&[]) => {
            layout(format!("{shape}:{stride}"))
        }
        ("make_ordered_layout", [shape, rest @ ..], [DslKind::Numbers, ..]) if known(&["order"]) => {
            let order = keyword("order").or(rest.first().copied())?;
            layout(format!("make_ordered_layout({shape},{order})"))
        }
        ("make_identity_layout" | "make_identity_tensor", [shape], [DslKind::Numbers]) if known(&[]) => {
            layout(format!("make_identity_layout({shape})"))
        }
        ("make_swizzle", [bits, base, shift], [DslKind::Numbers, ..]) if known(&[]) => {
            Some((format!("S<{bits},{base},{shift}>"), DslKind::Swizzle))
        }
        (
            "make_composed_layout",
            [outer, offset, inner],
            [DslKind::Swizzle | DslKind::Layout, DslKind::Numbers, DslKind::Layout],
        ) if known(&[]) => layout(format!("{} o {offset} o ({inner})", wrapped(outer, kinds.first()))),
        ("make_composed_layout", [], []) if known(&["inner", "offset", "outer"]) => {
            let (inner, offset, outer) = (keyword("inner")?, keyword("offset")?, keyword("outer")?);
            let kind = if inner.starts_with("S<") && inner.ends_with('>') { DslKind::Swizzle } else { DslKind::Layout };
            layout(format!("{} o {offset} o ({outer})", wrapped(inner, Some(&kind))))
        }
        ("recast_layout", [new, old, inner], [DslKind::Numbers, DslKind::Numbers, DslKind::Layout]) if known(&[]) => {
            layout(format!("recast_layout({new},{old},{inner})"))
        }
        ("select" | "get", [inner, rest @ ..], [DslKind::Layout, ..]) if known(&["mode"]) && rest.len() < 2 => {
            let modes = keyword("mode").or(rest.first().copied())?;
            layout(format!("{name}({inner},{})", modes.trim_matches(['(', ')'])))
        }
        ("group_modes", [inner, begin, end], [DslKind::Layout, DslKind::Numbers, DslKind::Numbers]) if known(&[]) => {
            layout(format!("group({inner},{begin},{end})"))
        }
        ("flatten" | "filter" | "filter_zeros", [inner], [DslKind::Layout]) if known(&[]) => {
            layout(format!("{name}({inner})"))
        }
        ("append" | "prepend", [inner, other], [DslKind::Layout, DslKind::Layout]) if known(&[]) => {
            layout(format!("{name}({inner},{other})"))
        }
        ("slice_" | "dice", [inner, coordinate], [DslKind::Layout, DslKind::Numbers]) if known(&[]) => {
            layout(format!("{}({inner},{coordinate})", name.trim_end_matches('_')))
        }
        ("tile_to_shape", [inner, shape, rest @ ..], [DslKind::Layout, DslKind::Numbers, ..]) if known(&["order"]) => {
            let order = keyword("order").or(rest.first().copied())?;
            layout(format!("tile_to_shape({inner},{shape},{order})"))
        }
        (
            "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" | "logical_product" | "zipped_product"
            | "tiled_product" | "flat_product" | "blocked_product" | "raked_product",
            [inner],
            [DslKind::Layout],
        ) if known(&["tiler"]) => layout(format!("{name}({inner},{})", keyword("tiler")?)),
        (
            "composition" | "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" | "logical_product"
            | "zipped_product" | "tiled_product" | "flat_product" | "blocked_product" | "raked_product"
            | "tile_to_shape" | "coalesce" | "right_inverse" | "left_inverse" | "complement",
            [_, ..],
            [DslKind::Layout, ..],
        ) if known(&[]) => layout(format!("{name}({})", texts.join(","))),
        _ => None,
    }
}

/// A layout in parentheses; a swizzle unchanged.
fn wrapped(text: &str, kind: Option<&DslKind>) -> String {
    if kind == Some(&DslKind::Swizzle) { text.to_owned() } else { format!("({text})") }
}

type Items = (Vec<(String, DslKind)>, Vec<(String, String)>);

/// Positional operands in parentheses, and operands with names.
fn arguments(cursor: &mut Cursor<'_>, close: u8, depth: usize) -> Option<Items> {
    cursor.at += 1;
    let (mut items, mut keywords) = (Vec::new(), Vec::new());
    loop {
        cursor.blanks_of_python();
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
        cursor.blanks_of_python();
        match cursor.peek() {
            Some(b',') => cursor.at += 1,
            Some(byte) if byte == close => {}
            _ => return None,
        }
    }
}

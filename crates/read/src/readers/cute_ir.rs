//! Types of the IR of CuTe's Python, and its printed tensors.
//!
//! Law: the text in quotes is a layout of elements, including a swizzle in it. A swizzle after the
//! alignment, `!cute.memref<f16, smem, align<1024>, S<3,4,3>, "L">`, belongs to the pointer and
//! acts on byte addresses. With the width of the element type it is converted to a swizzle of
//! element indices. The shape and the strides of a `coord_tensor` are those of a tensor of
//! coordinates.

use std::ops::Range;

use tilewright_layout::Swizzle;

use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::readers::cute_print::{circle, layout, swizzle};
use crate::reading::{Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::tuple::{Tuple, value};
use crate::width::{element_bits, swizzle_of_elements};

/// The reader of types.
pub const READER: Reader = Reader { system: System::CuteIr, signs: &["!cute."], read: read_type };

/// The reader of printed tensors.
pub const PRINTED: Reader =
    Reader { system: System::CuteDsl, signs: &["tensor<", "ptr<", "raw_ptr(", "Tensor<0x"], read: read_printed };

fn read_type(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    if !cursor.eat("!cute.") {
        return None;
    }
    let kind = cursor.word()?;
    let whole = context.source.trim().starts_with("!cute.") && context.source.trim().ends_with('>');
    let known = matches!(kind, "layout" | "composed_layout" | "memref" | "coord_tensor");
    let Some(inside) = cursor.bracketed(b'<') else {
        // The line ends inside the brackets.
        let end = context.source.get(cursor.at..)?.find('\n').map_or(context.source.len(), |end| cursor.at + end);
        let cut = known && cursor.peek() == Some(b'<');
        return cut.then(|| Found {
            span: at..end,
            answer: Err(Refused::damaged(end..end, "the type is cut off").with_help("paste the whole type")),
        });
    };
    let span = at..cursor.at;
    let parts = split(context.source, inside);
    let answer = match kind {
        "layout" | "composed_layout" => match parts.as_slice() {
            [only] => quoted(context.source, only.clone(), System::CuteIr),
            _ => None,
        },
        "memref" => memory(context, &parts, System::CuteIr, true),
        "coord_tensor" => {
            let coordinate = context.source.get(parts.first()?.clone())?.trim_matches('"');
            let text = parts.get(1).filter(|_| parts.len() == 2);
            text.and_then(|text| quoted(context.source, text.clone(), System::CuteIr)).map(|answer| {
                answer.map(|mut reading| {
                    reading.what = "tensor of coordinates";
                    reading.unit = Unit::Coordinates;
                    from(reading, coordinate)
                })
            })
        }
        "ptr" => pointer(context, &parts, System::CuteIr),
        "swizzle" if whole => {
            let text = context.source.get(parts.first()?.clone())?.trim_matches('"');
            let text = swizzle(&mut Cursor::new(text, 0))?;
            Some(value(&text, span.clone()).map(|it| Reading::new(System::CuteIr, "swizzle", it, Unit::None)))
        }
        "tile" => tiler(context.source, parts.first()?.clone()),
        "shape" | "stride" | "int_tuple" | "coord" if whole => {
            let text = context.source.get(parts.first()?.clone())?.trim_matches('"');
            let mut inner = Cursor::new(text, 0);
            let tuple = Tuple::read(&mut inner).filter(|_| inner.is_at_end())?;
            let what = if kind == "stride" { "stride" } else { "tuple" };
            let tuple = value(&tuple.to_string(), span.clone());
            Some(tuple.map(|tuple| Reading::new(System::CuteIr, what, tuple, Unit::None)))
        }
        _ => None,
    };
    // The layout inside is not read alone, for another part may change it.
    let unknown = || {
        let help = "paste the layout in quotation marks alone, if it is meant alone";
        Err(Refused::unsupported(span.clone(), "a part of the type is not known", help))
    };
    let answer = answer.or_else(|| known.then(unknown))?;
    Some(Found { span, answer })
}

fn read_printed(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    if cursor.eat("raw_ptr") || cursor.eat("Tensor") {
        return read_address(context, at, cursor);
    }
    let is_pointer = cursor.eat("ptr");
    if !is_pointer && !cursor.eat("tensor") {
        return None;
    }
    let inside = cursor.bracketed(b'<')?;
    let span = at..cursor.at;
    if is_pointer {
        let parts = split(context.source, inside);
        return Some(Found { span, answer: pointer(context, &parts, System::CuteDsl)? });
    }
    let text = context.source.get(..inside.end)?;
    let mut cursor = Cursor::new(text, inside.start);
    if cursor.eat("ptr") {
        let pointer = cursor.bracketed(b'<')?;
        if !circle(&mut cursor) {
            return None;
        }
        let mut parts = split(context.source, pointer);
        parts.push(cursor.at..inside.end);
        return Some(Found { span, answer: memory(context, &parts, System::CuteDsl, false)? });
    }
    // A tensor of coordinates: `tensor<(0,0) o (4,8):(1@0,1@1)>`.
    let coordinate = Tuple::read(&mut cursor).filter(|tuple| !tuple.keeps())?;
    if !circle(&mut cursor) {
        return None;
    }
    let (text, steps) = layout(&mut cursor)?;
    if !cursor.is_at_end() || !steps {
        return None;
    }
    let answer = value(&text, span.clone()).map(|layout| {
        let reading = Reading::new(System::CuteDsl, "tensor of coordinates", layout, Unit::Coordinates);
        from(reading, &coordinate.to_string())
    });
    Some(Found { span, answer })
}

/// A tensor with its address: `raw_ptr(0x400: f16, smem, align<1024>) o (8,8):(8,1)` as printed at
/// run time, `Tensor<0x400@gmem o (8,8):(8,1)>` as printed by Python.
fn read_address(context: &Context<'_>, at: usize, mut cursor: Cursor<'_>) -> Option<Found> {
    let source = context.source;
    let address = |byte: u8| byte.is_ascii_hexdigit() || byte == b'x';
    if cursor.peek() == Some(b'(') {
        let inside = cursor.bracketed(b'(')?;
        let (_, attributes) = source.get(inside.clone())?.split_once(':')?;
        let mut parts = split(source, inside.end - attributes.len()..inside.end);
        if !circle(&mut cursor) {
            return None;
        }
        let start = cursor.at;
        layout(&mut cursor)?;
        parts.push(start..cursor.at);
        return Some(Found { span: at..cursor.at, answer: memory(context, &parts, System::CuteDsl, false)? });
    }
    let inside = cursor.bracketed(b'<')?;
    let mut inner = Cursor::new(source.get(..inside.end)?, inside.start);
    let _ = inner.take_while(address);
    if !inner.eat("@") {
        return None;
    }
    let start = inner.at;
    let space = inner.word()?;
    let space = start..start + space.len();
    if !circle(&mut inner) {
        return None;
    }
    let answer = memory(context, &[space, inner.at..inside.end], System::CuteDsl, false)?;
    Some(Found { span: at..cursor.at, answer })
}

/// Adds a note that coordinates count from one that is not the origin.
fn from(reading: Reading, coordinate: &str) -> Reading {
    match coordinate.chars().all(|c| matches!(c, '0' | '(' | ')' | ',' | ' ')) {
        true => reading,
        false => reading.note(format!("its coordinates count from {coordinate} on")),
    }
}

/// The parts of a list at its top level.
fn split(source: &str, inside: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut depth, mut quoted, mut start) = (0_usize, false, inside.start);
    for at in inside.clone() {
        match source.as_bytes().get(at) {
            Some(b'"') => quoted = !quoted,
            _ if quoted => {}
            Some(b'<' | b'(' | b'[' | b'{') => depth += 1,
            Some(b'>' | b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            Some(b',') if depth == 0 => {
                parts.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(start..inside.end);
    let trim = |part: Range<usize>| {
        let text = source.get(part.clone()).unwrap_or("");
        let start = part.start + (text.len() - text.trim_start().len());
        start..start + text.trim().len()
    };
    parts.into_iter().map(trim).collect()
}

/// The layout in quotes, or without quotes.
fn quoted(source: &str, part: Range<usize>, system: System) -> Option<Result<Reading, Refused>> {
    let (text, steps) = inner_layout(source, part.clone())?;
    let unit = if steps { Unit::Coordinates } else { Unit::Elements { bits: None } };
    Some(value(&text, part).map(|layout| Reading::new(system, "layout", layout, unit)))
}

/// The layout in a part, in our notation. In JSON a backslash stands before a quotation mark.
fn inner_layout(source: &str, part: Range<usize>) -> Option<(String, bool)> {
    let text = source.get(part)?.trim_matches(['"', '\\']);
    let mut cursor = Cursor::new(text, 0);
    cursor.blanks(false);
    let found = layout(&mut cursor)?;
    cursor.blanks(false).is_at_end().then_some(found)
}

/// The attributes of a pointer.
struct IrPointer<'a> {
    kind: &'a str,
    what: &'static str,
    align: Option<i64>,
    swizzle: Option<Swizzle>,
}

impl<'a> IrPointer<'a> {
    fn of(source: &'a str, parts: &[Range<usize>]) -> Option<IrPointer<'a>> {
        let mut pointer = IrPointer { kind: "", what: "tensor", align: None, swizzle: None };
        for (at, part) in parts.iter().enumerate() {
            let text = source.get(part.clone())?;
            match text {
                "smem" => pointer.what = "tensor in shared memory",
                "gmem" => pointer.what = "tensor in global memory",
                "rmem" => pointer.what = "tensor in registers",
                "tmem" => pointer.what = "tensor in tensor memory",
                "generic" => {}
                _ if text.starts_with("align<") && pointer.align.is_none() => {
                    pointer.align = text.strip_prefix("align<")?.strip_suffix('>')?.trim().parse().ok();
                }
                _ if text.starts_with("S<") && pointer.swizzle.is_none() => {
                    let mut cursor = Cursor::new(text, 0);
                    pointer.swizzle = Some(swizzle(&mut cursor)?.parse().ok()?);
                }
                _ if at == 0 => pointer.kind = text,
                _ => return None,
            }
        }
        Some(pointer)
    }

    /// The swizzle converted to element indices, with its notes.
    fn of_elements(
        &self,
        context: &Context<'_>,
        span: Range<usize>,
    ) -> Result<Option<(Swizzle, i64, Vec<String>)>, Refused> {
        let Some(swizzle) = self.swizzle.filter(|swizzle| !swizzle.is_identity()) else { return Ok(None) };
        let bits = element_bits(self.kind).or(context.options.element_bits).ok_or_else(|| {
            let kind = if self.kind.is_empty() { "the pointer's type" } else { self.kind };
            let message = format!("{swizzle} belongs to the pointer and acts on byte addresses: how wide is {kind}?");
            Refused::ask(Missing::Width, message)
        })?;
        let (own, note) = swizzle_of_elements(swizzle, bits, span)?;
        let mut notes: Vec<String> = note.into_iter().map(|note| note.replace("Sw<", "S<")).collect();
        let reach = swizzle.bits() + swizzle.base() + swizzle.shift().abs();
        let needed = u32::try_from(reach).ok().and_then(|reach| 1_i64.checked_shl(reach)).unwrap_or(i64::MAX);
        if self.align.is_none_or(|align| align % needed != 0) {
            notes.push(format!("this holds where the pointer is a multiple of {needed} bytes"));
        }
        Ok(Some((own, bits, notes)))
    }
}

/// A tensor in memory: the attributes of its pointer, and a layout as the last part.
fn memory(
    context: &Context<'_>,
    parts: &[Range<usize>],
    system: System,
    quotes: bool,
) -> Option<Result<Reading, Refused>> {
    let (last, attributes) = parts.split_last()?;
    if quotes && !context.source.get(last.clone())?.trim_start_matches('\\').starts_with('"') {
        return None;
    }
    let pointer = IrPointer::of(context.source, attributes)?;
    let (text, _) = inner_layout(context.source, last.clone())?;
    let span = last.clone();
    Some((|| {
        let Some((swizzle, bits, notes)) = pointer.of_elements(context, span.clone())? else {
            let unit = Unit::Elements { bits: element_bits(pointer.kind).or(context.options.element_bits) };
            return Ok(Reading::new(system, pointer.what, value(&text, span)?, unit));
        };
        if text.contains('S') {
            let message = "a swizzle of the pointer stands before a layout that is swizzled itself";
            return Err(Refused::unsupported(span, message, "give the layout behind the pointer alone"));
        }
        let layout = value(&format!("{swizzle} o 0 o ({text})"), span)?;
        let mut reading = Reading::new(system, pointer.what, layout, Unit::Elements { bits: Some(bits) });
        reading.notes = notes;
        Ok(reading)
    })())
}

/// The swizzle of a pointer; None if it has none.
fn pointer(context: &Context<'_>, parts: &[Range<usize>], system: System) -> Option<Result<Reading, Refused>> {
    let pointer = IrPointer::of(context.source, parts)?;
    pointer.swizzle?;
    let span = parts.first()?.start..parts.last()?.end;
    Some((|| {
        let Some((swizzle, bits, notes)) = pointer.of_elements(context, span.clone())? else {
            let identity = pointer.swizzle.map_or_else(String::new, |swizzle| swizzle.to_string());
            return Ok(Reading::new(system, "swizzle of a pointer", value(&identity, span)?, Unit::None));
        };
        let swizzle = value(&swizzle.to_string(), span)?;
        let mut reading = Reading::new(system, "swizzle of a pointer", swizzle, Unit::Elements { bits: Some(bits) });
        reading.notes = notes;
        Ok(reading)
    })())
}

/// `[128:1;64:1]`
fn tiler(source: &str, part: Range<usize>) -> Option<Result<Reading, Refused>> {
    let text = source.get(part.clone())?.trim_matches('"');
    // Only characters of tilers with numbers, without operators and names.
    let mut cursor = Cursor::new(text, 0);
    tiler_item(&mut cursor, 0)?;
    if !cursor.is_at_end() {
        return None;
    }
    Some(value(text, part).map(|tiler| Reading::new(System::CuteIr, "tiler", tiler, Unit::None)))
}

fn tiler_item(cursor: &mut Cursor<'_>, depth: usize) -> Option<()> {
    if depth > tilewright_layout::MAX_DEPTH {
        return None;
    }
    if cursor.blanks(false).eat("[") {
        loop {
            tiler_item(cursor, depth + 1)?;
            if cursor.blanks(false).eat("]") {
                return Some(());
            }
            if !cursor.eat(";") {
                return None;
            }
        }
    }
    let _ = Tuple::read(cursor)?;
    if cursor.blanks(false).eat(":") {
        cursor.blanks(false);
        let _ = Tuple::read(cursor)?;
    }
    Some(())
}

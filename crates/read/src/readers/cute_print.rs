//! The output of CuTe's C++ `print`: layouts, swizzles, pointers, tensors.
//!
//! Law: `shape:stride` is the layout with these numbers, where `_4` and `4` are the same.
//! `Sw<b,m,s> o n o L` is `c -> swizzle(n + L(c))`, in the unit that `L` counts. If a pointer is
//! involved, `Sw<..> o smem_ptr[16b](unset) o L` or `Sw<..>_smem_ptr[16b](0x..) o L`, the swizzle
//! acts on byte addresses and `L` counts elements of the printed width, so the swizzle is recast to
//! elements. If an address is not aligned to the range that the swizzle permutes, the remainder
//! becomes the offset of the composed layout, so that the result counts elements from the aligned
//! address below.

use tilewright_layout::{AnyLayout, Swizzle};
use tilewright_notation::Value;

use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::readers::arrays::offset_by;
use crate::readers::cute_tables;
use crate::reading::{Reading, Unit};
use crate::refused::Refused;
use crate::sparse;
use crate::system::System;
use crate::tuple::{Tuple, value};
use crate::width::swizzle_of_elements;

/// The reader.
pub const READER: Reader = Reader {
    system: System::CutePrint,
    signs: &[
        "(",
        "_",
        "?",
        "Sw<",
        "S<",
        "smem_ptr[",
        "gmem_ptr[",
        "rmem_ptr[",
        "ptr[",
        "tmem_[",
        "smem_sparse<",
        "sparse<",
        "counting_iter(",
        "smem_ptr_",
        "gmem_ptr_",
        "rmem_ptr_",
        "raw_ptr_",
        "smem_subptr[",
        "gmem_subptr[",
        "rmem_subptr[",
        "subptr[",
        "GMMA::DescriptorIterator",
        "UMMA::DescriptorIterator",
        "ArithTuple(",
    ],
    read,
};

/// A printed pointer.
struct PrintedPointer {
    /// The memory, as a phrase for [`Reading::what`].
    what: &'static str,
    bits: i64,
    /// The address; None if it is unset.
    address: Option<u64>,
    /// The number of logical elements that share one stored element.
    sharing: i64,
}

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let Some(answer) = text(&mut cursor) else {
        if let Some(found) = tuple_alone(context, at) {
            return Some(found);
        }
        if context.source.as_bytes().get(at) == Some(&b'(') {
            context.pass(resume(context.source, at));
        }
        return None;
    };
    let span = at..cursor.at;
    // `x.stride(): (8, 1)` is a call and its result.
    let is_call = at > 0 && context.source.as_bytes().get(at - 1).is_some_and(u8::is_ascii_alphanumeric);
    if is_call && context.source.get(at..)?.starts_with("()") {
        return None;
    }
    if is_remnant(context.source, at) {
        let message = "the layout stands inside of a composition, of which the part before it is not read";
        let refused = Refused::damaged(span.clone(), message).with_help("paste the layout alone, if it is meant alone");
        return Some(Found { span, answer: Err(refused) });
    }
    let answer = answer(span.clone());
    let Some((table, end)) = cute_tables::below(context.source, span.end) else { return Some(Found { span, answer }) };
    // The table that `print_layout` draws below the layout shows the same layout.
    let shown = answer.as_ref().ok().and_then(Reading::layout);
    let differs = shown.is_some_and(|layout| !table.agrees(layout));
    let span = at..end;
    let answer = if differs {
        let message = "the table below the layout shows other indices than the layout has";
        Err(Refused::contradiction(span.clone(), message).with_help("read one of the two alone"))
    } else {
        answer
    };
    Some(Found { span, answer })
}

/// The distance in bytes that is searched backwards on the line for the outer part of a
/// composition.
const OUTSIDE: usize = 256;

/// Whether a layout follows the `o` of a composition whose outer part is not supported. Complete
/// compositions were read before.
fn is_remnant(source: &str, at: usize) -> bool {
    let mut from = at.saturating_sub(OUTSIDE);
    while !source.is_char_boundary(from) {
        from += 1;
    }
    let before = source.get(from..at).unwrap_or("").trim_end_matches(['(', ' ']);
    let before = before.rsplit('\n').next().unwrap_or("");
    let outside =
        before.strip_suffix('∘').or_else(|| before.strip_suffix('o').filter(|outside| outside.ends_with(' ')));
    // An `o` at the beginning of a line is a list mark.
    outside.is_some_and(|outside| {
        let signs = ["Sw<", "S<", "Swizzle(", "ptr[", "ptr_", "tmem_[", "sparse<"];
        outside.trim_end().ends_with('}') || signs.iter().any(|sign| outside.contains(sign))
    })
}

/// `((_8,_1),_4,_1)`, if it is the whole text.
fn tuple_alone(context: &Context<'_>, at: usize) -> Option<Found> {
    let source = context.source.trim_end();
    if !context.source.get(..at)?.trim().is_empty() || source.len() - at > TUPLE {
        return None;
    }
    let mut cursor = Cursor::new(source, at);
    let tuple = Tuple::read(&mut cursor).filter(|tuple| !tuple.keeps() && matches!(tuple, Tuple::Tuple(_)))?;
    if !cursor.is_at_end() || !source.get(at..)?.contains('_') {
        return None;
    }
    let span = at..cursor.at;
    let answer = value(&tuple.to_string(), span.clone());
    Some(Found { span, answer: answer.map(|tuple| Reading::new(System::CutePrint, "tuple", tuple, Unit::None)) })
}

/// The largest length of a tuple that is read alone, in bytes.
const TUPLE: usize = 1 << 10;

/// The position at which a layout can begin after a bracket that begins none.
///
/// Up to the first character that does not belong to a tuple, only a bracket pair that ends
/// directly before a `:` can be a shape, because all brackets that are still open remain open.
fn resume(source: &str, at: usize) -> usize {
    let bytes = source.as_bytes();
    let mut opens: Vec<usize> = Vec::new();
    // The last closed bracket pair, and its end.
    let (mut last, mut end) = (at, at);
    let mut next = at;
    while let Some(byte) = bytes.get(next) {
        match byte {
            b'(' => opens.push(next),
            b')' => {
                let Some(open) = opens.pop() else { break };
                (last, end) = (open, next + 1);
                if opens.is_empty() {
                    return next + 1;
                }
            }
            b' ' | b'\t' | b',' | b'\n' | b'\r' => {}
            b'0'..=b'9' | b'_' | b'?' | b'@' | b'/' | b'-' => {
                if end != next {
                    last = next;
                }
                end = next + 1;
            }
            _ => break,
        }
        next += 1;
    }
    let shape = bytes.get(next) == Some(&b':') && last > at;
    if shape { last } else { next.max(at + 1) }
}

type PrintReading = Box<dyn FnOnce(std::ops::Range<usize>) -> Result<Reading, Refused>>;

/// Reads one text. Its meaning is computed once its location is known.
fn text(cursor: &mut Cursor<'_>) -> Option<PrintReading> {
    if let Some(coordinate) = counted(cursor) {
        let layout = layout_text(cursor)?;
        return Some(Box::new(move |span| coordinates(&coordinate, &layout, span)));
    }
    if cursor.eat("GMMA::DescriptorIterator") || cursor.eat("UMMA::DescriptorIterator") {
        let layout = behind(cursor)?;
        return Some(Box::new(move |span| {
            let unit = Unit::Elements { bits: Some(128) };
            let reading = Reading::new(System::CutePrint, "tensor of descriptors", value(&layout, span)?, unit);
            Ok(reading.note("a descriptor moves in units of 16 bytes"))
        }));
    }
    if cursor.eat("counting_iter(") {
        let first = cursor.integer().filter(|_| cursor.eat(")"))?;
        let layout = behind(cursor)?;
        return Some(Box::new(move |span| {
            let unit = Unit::Elements { bits: None };
            let numbers = match value(&layout, span.clone())? {
                Value::Layout(AnyLayout::Integer(layout)) => Value::Layout(
                    offset_by(layout, first).map_err(|error| Refused::contradiction(span, error.to_string()))?,
                ),
                other if first == 0 => other,
                _ => {
                    let message = format!("numbers that count from {first} on are read with sizes that are known");
                    return Err(Refused::unsupported(span, message, "paste the layout behind the iterator alone"));
                }
            };
            Ok(Reading::new(System::CutePrint, "tensor of numbers", numbers, unit))
        }));
    }
    if let Some(swizzle) = swizzle(cursor) {
        if cursor.eat("_") {
            let pointer = pointer(cursor)?;
            let layout = behind(cursor)?;
            return Some(Box::new(move |span| swizzled(&swizzle, &pointer, &layout, span)));
        }
        if !circle(cursor) {
            return None;
        }
        if let Some(pointer) = pointer(cursor) {
            let layout = behind(cursor)?;
            return Some(Box::new(move |span| swizzled(&swizzle, &pointer, &layout, span)));
        }
        let rest = composed_rest(cursor)?;
        return Some(Box::new(move |span| {
            let layout = value(&format!("{swizzle} o {rest}"), span)?;
            Ok(Reading::new(System::CutePrint, "layout", layout, Unit::Elements { bits: None }))
        }));
    }
    if let Some(pointer) = pointer(cursor) {
        let layout = behind(cursor)?;
        return Some(Box::new(move |span| tensor(&pointer, &layout, span)));
    }
    let (layout, steps) = layout(cursor)?;
    let unit = if steps { Unit::Coordinates } else { Unit::Elements { bits: None } };
    Some(Box::new(move |span| Ok(Reading::new(System::CutePrint, "layout", value(&layout, span)?, unit))))
}

/// A layout or a composed layout without a pointer, in our notation, and whether its values are
/// coordinates.
pub(super) fn layout(cursor: &mut Cursor<'_>) -> Option<(String, bool)> {
    if let Some(swizzle) = swizzle(cursor) {
        if !circle(cursor) {
            return None;
        }
        return Some((format!("{swizzle} o {}", composed_rest(cursor)?), false));
    }
    let layout = layout_text(cursor)?;
    let steps = layout.contains('@');
    let kept = cursor.at;
    // `A o offset o B` with a layout as the outer map.
    if circle(cursor)
        && let Some(rest) = composed_rest(cursor)
    {
        return Some((format!("{layout} o {rest}"), steps));
    }
    cursor.at = kept;
    Some((layout, steps))
}

/// ` o `, with any blanks.
pub(super) fn circle(cursor: &mut Cursor<'_>) -> bool {
    let kept = cursor.at;
    cursor.blanks(true);
    if cursor.at > kept && cursor.eat("o") {
        let after = cursor.at;
        cursor.blanks(true);
        if cursor.at > after {
            return true;
        }
    }
    cursor.at = kept;
    false
}

/// `Sw<3,4,3>` or `S<3,4,3>`, in our notation.
pub(super) fn swizzle(cursor: &mut Cursor<'_>) -> Option<String> {
    let kept = cursor.at;
    let numbers = (|| {
        if !cursor.eat("Sw<") && !cursor.eat("S<") {
            return None;
        }
        let bits = cursor.integer()?;
        let base = cursor.eat_spaced(",").then(|| spaced_integer(cursor)).flatten()?;
        let shift = cursor.eat_spaced(",").then(|| spaced_integer(cursor)).flatten()?;
        cursor.eat_spaced(">").then(|| format!("S<{bits},{base},{shift}>"))
    })();
    if numbers.is_none() {
        cursor.at = kept;
    }
    numbers
}

fn spaced_integer(cursor: &mut Cursor<'_>) -> Option<i64> {
    cursor.blanks(false).integer()
}

/// `offset o L`, in our notation.
fn composed_rest(cursor: &mut Cursor<'_>) -> Option<String> {
    let offset = Tuple::read(cursor).filter(|offset| !offset.keeps())?;
    if !circle(cursor) {
        return None;
    }
    let layout = layout_text(cursor)?;
    Some(format!("{offset} o {layout}"))
}

/// `shape:stride`, in our notation.
pub(super) fn layout_text(cursor: &mut Cursor<'_>) -> Option<String> {
    let start = cursor.at;
    let shape = Tuple::read(cursor).filter(|shape| !shape.keeps() && !shape.steps())?;
    let kept = cursor.at;
    if !cursor.blanks(false).eat(":") {
        cursor.at = kept;
        return None;
    }
    cursor.blanks(false);
    let stride = Tuple::read(cursor).filter(|stride| !stride.keeps())?;
    // `12:30` is a time, and `file:12:30` a location. Numbers alone are a layout only if CuTe marks
    // one of them as static.
    if matches!(shape, Tuple::Known(_)) && matches!(stride, Tuple::Known(_)) {
        let text = cursor.source.get(start..cursor.at).unwrap_or("");
        let alone = start == 0 && cursor.is_at_end();
        if !alone && (!text.contains('_') || cursor.peek() == Some(b':')) {
            return None;
        }
    }
    Some(format!("{shape}:{stride}"))
}

/// ` o L` after a pointer, in our notation: a layout, or a composed layout.
fn behind(cursor: &mut Cursor<'_>) -> Option<String> {
    if !circle(cursor) {
        return None;
    }
    match swizzle(cursor) {
        Some(swizzle) => {
            if !circle(cursor) {
                return None;
            }
            Some(format!("{swizzle} o {}", composed_rest(cursor)?))
        }
        None => layout_text(cursor),
    }
}

/// `smem_ptr[16b](0x7f..)` and similar pointers.
fn pointer(cursor: &mut Cursor<'_>) -> Option<PrintedPointer> {
    // Older headers write the width after the name: `smem_ptr_16b(unset)`. The address of elements
    // of less than a byte has a position within its byte: `subptr[4b](0x400.0)`.
    const MEMORIES: &[(&str, &str)] = &[
        ("smem_ptr_", "tensor in shared memory"),
        ("gmem_ptr_", "tensor in global memory"),
        ("rmem_ptr_", "tensor in registers"),
        ("raw_ptr_", "tensor"),
        ("smem_subptr[", "tensor in shared memory"),
        ("gmem_subptr[", "tensor in global memory"),
        ("rmem_subptr[", "tensor in registers"),
        ("subptr[", "tensor"),
        ("smem_ptr[", "tensor in shared memory"),
        ("gmem_ptr[", "tensor in global memory"),
        ("rmem_ptr[", "tensor in registers"),
        ("tmem_[", "tensor in tensor memory"),
        ("ptr[", "tensor"),
    ];
    let kept = cursor.at;
    let pointer = (|| {
        // `smem_sparse<2>_ptr[16b](unset)`, `sparse<2>_smem_ptr[16b](0x..)`
        let flag = cursor.eat("smem_sparse<");
        let sharing = if flag || cursor.eat("sparse<") {
            let sharing = cursor.integer().filter(|sharing| *sharing > 0)?;
            cursor.eat(">_").then_some(sharing)?
        } else {
            1
        };
        let (tag, what) = *MEMORIES.iter().find(|(tag, _)| cursor.eat(tag))?;
        let what = if flag { "tensor in shared memory" } else { what };
        let bits = cursor.integer().filter(|bits| *bits > 0)?;
        if !cursor.eat(if tag.ends_with('_') { "b(" } else { "b](" }) {
            return None;
        }
        let address = if cursor.eat("unset") || cursor.eat("(nil)") {
            None
        } else {
            let digits = cursor.take_while(|byte| byte.is_ascii_hexdigit() || byte == b'x' || byte == b'.');
            let whole = |digits: &str| u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok();
            match digits.split_once('.') {
                None => Some(whole(digits)?),
                // At position 0 within a byte, the address is that of the byte.
                Some((byte, "0")) if tag.ends_with("subptr[") => Some(whole(byte)?),
                Some(_) if tag.ends_with("subptr[") => return None,
                // Tensor memory has addresses of lanes and columns.
                Some(_) => None,
            }
        };
        cursor.eat(")").then_some(PrintedPointer { what, bits, address, sharing })
    })();
    if pointer.is_none() {
        cursor.at = kept;
    }
    pointer
}

/// `ArithTuple(0,_0) o `, the coordinate in our notation.
fn counted(cursor: &mut Cursor<'_>) -> Option<String> {
    let kept = cursor.at;
    if cursor.eat("ArithTuple")
        && let Some(coordinate) = Tuple::read(cursor).filter(|coordinate| !coordinate.keeps())
        && circle(cursor)
    {
        return Some(coordinate.to_string());
    }
    cursor.at = kept;
    None
}

fn coordinates(coordinate: &str, layout: &str, span: std::ops::Range<usize>) -> Result<Reading, Refused> {
    let layout = value(layout, span)?;
    let reading = Reading::new(System::CutePrint, "tensor of coordinates", layout, Unit::Coordinates);
    let zero = coordinate.chars().all(|c| matches!(c, '0' | '(' | ')' | ','));
    Ok(if zero { reading } else { reading.note(format!("its coordinates count from {coordinate} on")) })
}

fn tensor(pointer: &PrintedPointer, layout: &str, span: std::ops::Range<usize>) -> Result<Reading, Refused> {
    let unit = Unit::Elements { bits: Some(pointer.bits) };
    let layout = value(&sparse::stored(layout, pointer.sharing, span.clone())?, span)?;
    let reading = Reading::new(System::CutePrint, pointer.what, layout, unit);
    Ok(if pointer.sharing > 1 { reading.note(sparse::note(pointer.sharing)) } else { reading })
}

/// A layout composed with a swizzle of byte addresses.
fn swizzled(
    swizzle: &str,
    pointer: &PrintedPointer,
    layout: &str,
    span: std::ops::Range<usize>,
) -> Result<Reading, Refused> {
    let bytes: Swizzle =
        swizzle.parse().map_err(|error| Refused::contradiction(span.clone(), format!("{swizzle}: {error}")))?;
    let (own, note) = swizzle_of_elements(bytes, pointer.bits, span.clone())?;
    let mut notes: Vec<String> = note.into_iter().collect();
    if bytes.is_identity() {
        return tensor(pointer, layout, span);
    }
    if layout.starts_with("S<") {
        return Err(Refused::unsupported(
            span,
            "a swizzle of addresses stands before a layout that is swizzled itself",
            "give the layout behind the pointer alone",
        ));
    }
    let stored = sparse::stored(layout, pointer.sharing, span.clone())?;
    if pointer.sharing > 1 {
        notes.push(sparse::note(pointer.sharing));
    }
    // The bytes within which the swizzle permutes: 2^(bits + base + |shift|).
    let reach = bytes.bits() + bytes.base() + bytes.shift().abs();
    let span_bytes = u32::try_from(reach).ok().and_then(|reach| 1_u64.checked_shl(reach));
    let over = match (pointer.address, span_bytes) {
        (Some(address), Some(bytes)) => address % bytes,
        _ => 0,
    };
    let over_bits = over.checked_mul(8).and_then(|bits| i64::try_from(bits).ok()).unwrap_or(0);
    if over_bits % pointer.bits != 0 {
        return Err(Refused::contradiction(span, "the address is not one of an element of this width"));
    }
    let offset = over_bits / pointer.bits;
    match (pointer.address, span_bytes) {
        (None, Some(bytes)) => notes.push(format!("this holds where the pointer is a multiple of {bytes} bytes")),
        (Some(_), Some(bytes)) if offset > 0 => {
            notes.push(format!(
                "the pointer is {over} bytes past a multiple of {bytes}: elements count from that multiple on"
            ));
        }
        _ => {}
    }
    let layout = value(&format!("{own} o {offset} o {stored}"), span)?;
    let mut reading =
        Reading::new(System::CutePrint, pointer.what, layout, Unit::Elements { bits: Some(pointer.bits) });
    reading.notes = notes;
    Ok(reading)
}

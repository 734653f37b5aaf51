//! Shared memory layouts that TileLang makes by name: `make_swizzled_layout(A_shared)`.
//!
//! Law: the name and the buffer's shape and element width decide the layout. With `v = 128 / bits`
//! elements in 16 bytes, a swizzle of `c` chunks (8 in a full bank, 4 in a half, 2 in a quarter)
//! cuts the columns into panels of `c*v`. The rows of a panel are contiguous, and the chunks of a
//! row are permuted by an XOR with bits of the row number. A buffer's name gives neither shape nor
//! width, so these are questions. `make_swizzled_layout` takes the widest swizzle whose panels
//! divide the columns, and pads the rows if there is none.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::tuple::value;

/// The reader.
pub const READER: Reader = Reader {
    system: System::TileLang,
    signs: &[
        "make_swizzled_layout(",
        "make_full_bank_swizzled_layout(",
        "make_half_bank_swizzled_layout(",
        "make_quarter_bank_swizzled_layout(",
        "make_linear_layout(",
        "make_wgmma_swizzled_layout(",
        "make_tcgen05mma_swizzled_layout(",
        "make_volta_swizzled_layout(",
        "make_mma_swizzle_layout(",
    ],
    read,
};

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let name = cursor.word()?;
    let inside = cursor.bracketed(b'(')?;
    let arguments = context.source.get(inside)?.trim();
    // A definition of the function is not a call.
    if context.source.get(..at)?.ends_with("def ") || arguments.is_empty() {
        return None;
    }
    let span = at..cursor.at;
    Some(Found { answer: meaning(name, arguments, context, span.clone()), span })
}

fn meaning(name: &str, arguments: &str, context: &Context<'_>, span: Range<usize>) -> Result<Reading, Refused> {
    let refuse = |why: &str| {
        let help = "print the layout in TileLang, and read Layout([..] -> [..], transform: ..)";
        Err(Refused::unsupported(span.clone(), format!("{name}: {why}"), help))
    };
    let mut numbers = Vec::new();
    let mut others = 0_usize;
    for argument in arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty()) {
        match (argument.parse::<i64>(), argument.split_once('=')) {
            (Ok(number), _) => numbers.push(number),
            (_, None) => others += 1,
            (_, Some((key, value))) => match (key.trim(), value.trim()) {
                ("k_major" | "allow_pad", "True") => {}
                ("buffer" | "buffer_or_load_or_region", _) => others += 1,
                _ => return refuse(&format!("with {argument} the layout is not known here")),
            },
        }
    }
    let from_buffer = others > 0;
    let (shape, bits) = match (from_buffer, numbers.as_slice()) {
        (false, [rows, columns]) if name == "make_linear_layout" => (Some([*rows, *columns]), None),
        (false, [rows, columns, bits]) => (Some([*rows, *columns]), Some(*bits)),
        (true, []) if others == 1 => {
            let own = context.options.shape.as_deref();
            let last = |shape: &[i64]| match shape {
                [.., rows, columns] => Some([*rows, *columns]),
                _ => None,
            };
            (own.and_then(last), context.options.element_bits)
        }
        _ => return refuse("a buffer is wanted, or rows, columns and the bits of an element"),
    };
    let Some([rows, columns]) = shape.filter(|shape| shape.iter().all(|extent| (1..1 << 31).contains(extent))) else {
        return Err(Refused::ask(
            Missing::Shape,
            "the layout depends on the last two extents of the buffer, which its name does not say",
        ));
    };
    if name == "make_linear_layout" {
        let layout = value(&format!("({rows},{columns}):({columns},1)"), span.clone())?;
        return Ok(Reading::new(System::TileLang, "layout", layout, Unit::Elements { bits }));
    }
    let Some(bits) = bits else {
        return Err(Refused::ask(
            Missing::Width,
            "the swizzle moves 16 bytes, and how wide is an element of the buffer?",
        ));
    };
    if !matches!(bits, 4 | 8 | 16 | 32) {
        return refuse("the width of an element is 4, 8, 16 or 32 bits here");
    }
    let vector = 128 / bits;
    let chunks = match name {
        "make_full_bank_swizzled_layout" => 8,
        "make_half_bank_swizzled_layout" => 4,
        "make_quarter_bank_swizzled_layout" => 2,
        "make_swizzled_layout" => {
            match [8, 4].into_iter().find(|chunks| columns % (chunks * vector) == 0) {
                Some(chunks) => chunks,
                // Padding moves rows apart that begin in the same bank.
                None => {
                    let row = if columns * bits % 256 == 0 { columns + vector } else { columns };
                    let layout = value(&format!("({rows},{columns}):({row},1)"), span.clone())?;
                    let reading = Reading::new(System::TileLang, "layout", layout, Unit::Elements { bits: Some(bits) });
                    return Ok(reading.note("no swizzle divides the columns, so the rows are padded"));
                }
            }
        }
        _ => return refuse("this layout depends on the instruction, and is not known here"),
    };
    let panel = chunks * vector;
    if rows % 8 != 0 || columns % panel != 0 {
        return Err(Refused::contradiction(
            span,
            format!("{name} wants rows in eights and columns in panels of {panel}, and the buffer is {rows}x{columns}"),
        ));
    }
    let swizzle = format!("S<{},{},3>", chunks.ilog2(), vector.ilog2());
    let text = match columns / panel {
        1 => format!("{swizzle} o 0 o ({rows},{panel}):({panel},1)"),
        panels => format!("{swizzle} o 0 o ({rows},({panel},{panels})):({panel},(1,{}))", rows * panel),
    };
    let layout = value(&text, span)?;
    Ok(Reading::new(System::TileLang, "layout", layout, Unit::Elements { bits: Some(bits) }))
}

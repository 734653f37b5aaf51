//! Linear layouts as Triton prints them, a line for each basis.
//!
//! Law: ` - lane=4 -> (1, 0)` gives the coordinate to which the bit of value 4 of a lane is sent. A
//! name occurs once, before its first bit. `warp is a size 1 dimension` has no bits. The line
//! `where out dims are: [dim0 (size 16), ..]` gives names and extents; without it the dimensions
//! are `dim0`, `dim1` and so on, as large as the bases reach, or of the shape in the options.

use std::ops::Range;

use tilewright_notation::Value;

use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::Refused;
use crate::system::System;
use crate::tuple::value;

/// The reader.
pub const READER: Reader = Reader {
    system: System::Triton,
    signs: &["- register", "- lane", "- warp", "- block", "- offset", "- row", "- col"],
    read,
};

/// The largest number of bits of all inputs together.
const MAX_BITS: usize = 64;

/// The inputs with the images of their bits.
type Inputs<'a> = Vec<(&'a str, Vec<Vec<u64>>)>;

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let mut inputs: Inputs<'_> = Vec::new();
    let mut end = at;
    let mut bits = 0;
    loop {
        let before = cursor.at;
        if line(&mut cursor, &mut inputs).is_none() {
            cursor.at = before;
            break;
        }
        end = cursor.at;
        bits += 1;
        if bits > MAX_BITS {
            break;
        }
        cursor.blanks(true);
    }
    // The sign alone is not a layout.
    let rank = inputs.iter().flat_map(|(_, images)| images).map(Vec::len).next()?;
    if is_basis(cursor) {
        let message = "the text is damaged: the bit of another line is wanted before this one";
        let refused = Refused::damaged(cursor.at..cursor.at, message).with_help("paste every line of the layout");
        return Some(Found { span: at..cursor.at, answer: Err(refused) });
    }
    let (outputs, end) = outputs(cursor).map_or((None, end), |(outputs, end)| (Some(outputs), end));
    let span = at..end;
    Some(Found { answer: meaning(&inputs, rank, outputs, context, span.clone()), span })
}

/// Reads one line: a bit and its image, or an input without bits.
fn line<'a>(cursor: &mut Cursor<'a>, inputs: &mut Inputs<'a>) -> Option<()> {
    let begins = cursor.eat("- ");
    let name = cursor.word()?;
    if begins && cursor.eat(" is a size 1 dimension") {
        inputs.push((name, Vec::new()));
        return Some(());
    }
    let bit = cursor.eat("=").then(|| cursor.integer()).flatten()?;
    if !cursor.eat_spaced("->") {
        return None;
    }
    if !cursor.blanks(false).eat("(") {
        return None;
    }
    let mut image = Vec::new();
    while !cursor.eat_spaced(")") {
        let _ = cursor.eat(",");
        image.push(u64::try_from(cursor.blanks(false).integer()?).ok()?);
    }
    if begins {
        inputs.push((name, Vec::new()));
    }
    let (own, images) = inputs.last_mut()?;
    // The bits of an input are in ascending order.
    (*own == name && 1_i64.checked_shl(images.len() as u32) == Some(bit)).then(|| images.push(image))
}

/// Whether the line of another bit begins here: `lane=4 ->`.
fn is_basis(mut cursor: Cursor<'_>) -> bool {
    cursor.word().is_some() && cursor.eat("=") && cursor.integer().is_some() && cursor.eat_spaced("->")
}

/// `where out dims are: [dim0 (size 16), dim1 (size 8)]`
fn outputs(mut cursor: Cursor<'_>) -> Option<(Vec<(String, u64)>, usize)> {
    if !cursor.eat_spaced("where out dims are: [") {
        return None;
    }
    let mut found = Vec::new();
    loop {
        let name = cursor.blanks(false).word()?.to_owned();
        let size = cursor.eat(" (size ").then(|| cursor.integer()).flatten()?;
        if !cursor.eat(")") {
            return None;
        }
        found.push((name, u64::try_from(size).ok()?));
        if cursor.eat("]") {
            return Some((found, cursor.at));
        }
        if !cursor.eat(",") {
            return None;
        }
    }
}

fn meaning(
    inputs: &Inputs<'_>,
    rank: usize,
    outputs: Option<Vec<(String, u64)>>,
    context: &Context<'_>,
    span: Range<usize>,
) -> Result<Reading, Refused> {
    let images = || inputs.iter().flat_map(|(_, images)| images);
    if images().any(|image| image.len() != rank) {
        return Err(Refused::damaged(span, "the bases have other numbers of dimensions"));
    }
    let told = outputs.is_some();
    let reach = |dimension: usize| images().filter_map(|image| image.get(dimension)).fold(0, |all, own| all | own);
    let outputs = outputs.unwrap_or_else(|| {
        let own = context.options.shape.as_deref().filter(|shape| shape.len() == rank);
        let extent = |dimension: usize| match own.and_then(|shape| shape.get(dimension)) {
            Some(extent) => extent.unsigned_abs(),
            None => reach(dimension).checked_add(1).and_then(u64::checked_next_power_of_two).unwrap_or(u64::MAX),
        };
        (0..rank).map(|dimension| (format!("dim{dimension}"), extent(dimension))).collect()
    });
    let bases = inputs.iter().map(|(name, images)| {
        let image = |image: &Vec<u64>| format!("({})", image.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
        format!("{name}=[{}]", images.iter().map(image).collect::<Vec<_>>().join(","))
    });
    let names = outputs.iter().map(|(name, extent)| format!("{name}:{extent}"));
    let text = format!("{} -> {}", bases.collect::<Vec<_>>().join(" "), names.collect::<Vec<_>>().join(" "));
    let map = value(&text, span.clone())?;
    if !matches!(map, Value::Linear(_)) {
        return Err(Refused::contradiction(span, "the bases are no linear layout"));
    }
    let reading = Reading::new(System::Triton, "linear layout", map, Unit::Coordinates);
    Ok(if told { reading } else { reading.note("the extents are those that the bases reach, or of the shape given") })
}

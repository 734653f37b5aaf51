//! The views of a layout that `triton-tensor-layout` and Gluon's `format_tensor_view` print.
//!
//! Law: a view shows every element. The view of the tensor has the elements row by row. For each
//! element it lists the threads that hold it, `T0:1| T4:1`: thread 0 as its value 1, and thread 4
//! as its value 1. Threads are numbered through all warps, and the blocks of a cluster add
//! `B1:T0:1`. It is read as the layout from threads and values to elements. The view of the
//! hardware has a block of lines for each warp, a line for each register and a column for each
//! lane, and is read as the linear map of these. The views of shared memory show the element at
//! each offset, as `(2: 4)` or `Offset: 9 -> (2, 4)`; the layout sends each element to its offset.
//! The layout found is compared at every entry.

use std::collections::HashSet;
use std::ops::Range;

use tilewright_notation::Value;

use crate::cursor::Cursor;
use crate::fit::{fit, fit_held};
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::Refused;
use crate::system::System;
use crate::tuple::value;

/// The reader.
pub const READER: Reader = Reader {
    system: System::Triton,
    signs: &["[[", "[ ", "[T", "[B", "[(", "Warp0:", "Block0:", "Offset: 0 ->", "Block: 0:"],
    read,
};

/// The largest number of entries that are read.
const MAX_ENTRIES: usize = 1 << 20;

/// The largest number of dimensions of a tensor.
const MAX_RANK: usize = 8;

/// The end of a view, and its meaning.
type Seen = (usize, Result<Reading, Refused>);

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let cursor = Cursor::new(context.source, at);
    let (end, answer) = match cursor.peek()? {
        b'[' => tensor(cursor)?,
        b'W' => hardware(cursor)?,
        b'O' => offsets(cursor)?,
        _ if cursor.rest().starts_with("Block0:") => hardware(cursor)?,
        _ => offsets(cursor)?,
    };
    let span = at..end.max(at + 1);
    Some(Found { span, answer })
}

fn damaged(at: usize, message: &str) -> Seen {
    let refused = Refused::damaged(at..at, format!("the view of the layout is damaged or cut off: {message}"));
    (at, Err(refused.with_help("paste the whole view")))
}

fn unsupported(span: Range<usize>, message: impl Into<String>) -> Refused {
    Refused::unsupported(span, message, "read the encoding instead, with the type around it: tensor<64x32xf16, #ttg..>")
}

/// Whether a view of a layout follows the line of a position.
pub(super) fn follows(source: &str, at: usize) -> bool {
    let rest = source.get(at..).unwrap_or("").trim_start();
    ["[", "Warp0:", "Block0:", "Block: 0:", "Offset: 0"].iter().any(|sign| rest.starts_with(sign))
}

/// An entry of the view of a tensor.
enum Entry {
    /// The block, thread and value of each holder of the element.
    Held(Vec<[i64; 3]>),
    /// The element at this offset.
    Element(Vec<i64>),
}

/// `T0:1| T4:1`, `B0:T0:1`, or `(2: 4)`.
fn entry(cursor: &mut Cursor<'_>) -> Option<Entry> {
    if cursor.blanks(false).eat("(") {
        let mut element = Vec::new();
        loop {
            element.push(cursor.blanks(false).integer().filter(|at| *at >= 0)?);
            if cursor.eat(")") {
                return Some(Entry::Element(element));
            }
            cursor.eat(":").then_some(())?;
        }
    }
    let mut held = Vec::new();
    loop {
        let block = if cursor.blanks(false).eat("B") {
            let block = cursor.integer()?;
            cursor.eat(":").then_some(block)?
        } else {
            0
        };
        let thread = cursor.eat("T").then(|| cursor.integer()).flatten()?;
        let number = cursor.eat(":").then(|| cursor.integer()).flatten()?;
        held.push([block, thread, number]);
        if !cursor.blanks(false).eat("|") {
            return Some(Entry::Held(held));
        }
    }
}

/// Reads the view of a tensor, in as many brackets as it has dimensions.
fn tensor(mut cursor: Cursor<'_>) -> Option<Seen> {
    let start = cursor.at;
    let mut rank = 0;
    while cursor.eat("[") {
        rank += 1;
        cursor.blanks(false);
        if rank > MAX_RANK {
            return None;
        }
    }
    // The first thread holds the first element, or it is at the first offset.
    let mut probe = cursor;
    let is_first = match entry(&mut probe)? {
        Entry::Held(held) => held.first() == Some(&[0, 0, 0]),
        Entry::Element(element) => rank > 1 && element.len() == rank && element.iter().all(|at| *at == 0),
    };
    // The list must continue, because `[T0:0]` alone is not a view.
    probe.blanks(false);
    if !is_first || !matches!(probe.peek(), Some(b',' | b']')) || (rank == 1 && probe.peek() != Some(b',')) {
        return None;
    }
    let mut entries = Vec::new();
    let mut extents = vec![0_i64; rank];
    let mut counts = vec![0_i64; rank];
    let mut depth = rank;
    loop {
        // At the depth of elements.
        let Some(next) = entry(&mut cursor) else { return Some(damaged(cursor.at, "an element is wanted here")) };
        entries.push(next);
        if entries.len() > MAX_ENTRIES {
            return Some(damaged(cursor.at, "it has more elements than are read"));
        }
        *counts.get_mut(rank - 1)? += 1;
        if cursor.blanks(false).eat(",") {
            continue;
        }
        while cursor.eat("]") {
            let own = counts.get_mut(depth - 1)?;
            let extent = extents.get_mut(depth - 1)?;
            if *extent != 0 && *extent != *own {
                return Some(damaged(cursor.at, "its rows have other lengths"));
            }
            *extent = *own;
            *own = 0;
            depth -= 1;
            if depth == 0 {
                let answer = seen(&extents, &entries, start..cursor.at);
                return Some((cursor.at, answer));
            }
            *counts.get_mut(depth - 1)? += 1;
            cursor.blanks(false);
        }
        let stopped = cursor.at;
        let _ = cursor.blanks(true).eat(",");
        cursor.blanks(true);
        while depth < rank && cursor.eat("[") {
            depth += 1;
            cursor.blanks(false);
        }
        if depth < rank {
            return Some(damaged(stopped, "a row is wanted here"));
        }
    }
}

/// The number of an element, first dimension fastest, from its number row by row.
fn first_fastest(extents: &[i64], number: i64) -> i64 {
    let (mut rest, mut step) = (number, extents.iter().product::<i64>());
    let mut found = 0;
    for extent in extents.iter().rev() {
        step /= extent;
        found += rest % extent * step;
        rest /= extent;
    }
    found
}

fn seen(extents: &[i64], entries: &[Entry], span: Range<usize>) -> Result<Reading, Refused> {
    let mut held = Vec::new();
    let mut elements = Vec::new();
    for (entry, number) in entries.iter().zip(0_i64..) {
        match entry {
            Entry::Held(all) => held.extend(all.iter().map(|own| (*own, first_fastest(extents, number)))),
            Entry::Element(element) => elements.push(element.clone()),
        }
    }
    if held.is_empty() {
        return memory(extents, &elements, span);
    }
    if !elements.is_empty() {
        let message = "some elements of the view are in threads, and others in memory";
        return Err(Refused::damaged(span, message));
    }
    let threads = held.iter().map(|([_, thread, _], _)| *thread).max().unwrap_or(0).saturating_add(1);
    let blocks = held.iter().map(|([block, ..], _)| *block).max().unwrap_or(0).saturating_add(1);
    let places = held.into_iter().map(|([block, thread, number], element)| {
        ((block.saturating_mul(threads).saturating_add(thread), number), element)
    });
    let fitted = fit_held(places).map_err(|because| unsupported(span, format!("the view is no layout: {because}")))?;
    let shape = extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    let note = format!("(thread, value) to elements of the {shape} tensor, numbered first dimension fastest");
    let reading = Reading::new(System::Triton, "view of a layout", Value::Layout(fitted.layout), Unit::Indices);
    let reading = reading.note(note);
    Ok(if blocks > 1 {
        reading.note(format!("{threads} threads in each of {blocks} blocks, counted on"))
    } else {
        reading
    })
}

/// The layout from elements to offsets, given the element at each offset.
fn memory(extents: &[i64], elements: &[Vec<i64>], span: Range<usize>) -> Result<Reading, Refused> {
    let mut table = vec![None; elements.len()];
    for (element, offset) in elements.iter().zip(0_i64..) {
        let (mut number, mut step) = (0, 1);
        let inside = element.len() == extents.len()
            && element.iter().zip(extents).all(|(at, extent)| {
                number += at * step;
                step *= extent;
                at < extent
            });
        let place = usize::try_from(number).ok().and_then(|number| table.get_mut(number)).filter(|_| inside);
        match place {
            Some(place @ None) => *place = Some(offset),
            _ => return Err(unsupported(span, "the view shows an element twice, or one that the tensor has not")),
        }
    }
    let table: Vec<i64> = table.into_iter().flatten().collect();
    match fit(extents, &table) {
        Some(layout) => {
            let unit = Unit::Elements { bits: None };
            Ok(Reading::new(System::Triton, "view of a shared memory layout", Value::Layout(layout), unit))
        }
        None => Err(unsupported(span, "no layout has the offsets of this view")),
    }
}

/// Reads `Block: 0:` and a line for each offset, `Offset: 9 -> (2, 4)`.
fn offsets(mut cursor: Cursor<'_>) -> Option<Seen> {
    let start = cursor.at;
    if cursor.eat("Block: 0:") {
        end_of_line(&mut cursor)?;
    }
    let mut elements: Vec<Vec<i64>> = Vec::new();
    let mut end = cursor.at;
    loop {
        if !cursor.blanks(true).eat(&format!("Offset: {} ->", elements.len())) {
            break;
        }
        match coordinate(&mut cursor) {
            Some(element) if elements.first().is_none_or(|first| first.len() == element.len()) => {
                elements.push(element)
            }
            _ => return Some(damaged(cursor.at, "a coordinate is wanted here")),
        }
        end = cursor.at;
        if elements.len() > MAX_ENTRIES {
            return Some(damaged(end, "it has more elements than are read"));
        }
    }
    let rank = elements.first()?.len();
    let end = further_blocks(cursor, end);
    if cursor.rest().starts_with("Block: ") {
        return Some((end, Err(unsupported(start..end, "the view shows the memory of several blocks"))));
    }
    let extent = |mode: usize| elements.iter().filter_map(|element| element.get(mode)).max().map_or(1, |last| last + 1);
    let extents: Vec<i64> = (0..rank).map(extent).collect();
    let size = extents.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
    if size != i64::try_from(elements.len()).ok() {
        return Some(damaged(end, "it does not show each element once"));
    }
    Some((end, memory(&extents, &elements, start..end)))
}

/// The end of the lines of further blocks.
fn further_blocks(mut cursor: Cursor<'_>, end: usize) -> usize {
    let mut end = end;
    for line in cursor.rest().split_inclusive('\n') {
        let text = line.trim();
        if !text.is_empty() && !text.starts_with("Block: ") && !text.starts_with("Offset: ") {
            break;
        }
        cursor.at += line.len();
        end = if text.is_empty() { end } else { cursor.at - (line.len() - line.trim_end().len()) };
    }
    end
}

fn end_of_line(cursor: &mut Cursor<'_>) -> Option<()> {
    let _ = cursor.blanks(false).eat("\r");
    cursor.eat("\n").then_some(())
}

/// `(2, 4)`
fn coordinate(cursor: &mut Cursor<'_>) -> Option<Vec<i64>> {
    cursor.blanks(false).eat("(").then_some(())?;
    let mut found = Vec::new();
    loop {
        found.push(cursor.blanks(false).integer().filter(|at| *at >= 0)?);
        if found.len() > MAX_RANK {
            return None;
        }
        if cursor.eat(")") {
            return Some(found);
        }
        cursor.eat(",").then_some(())?;
    }
}

/// Reads a line of the view of the hardware: a register, with its element in each lane.
fn lanes(cursor: &mut Cursor<'_>) -> Option<Vec<Vec<i64>>> {
    let mut found = Vec::new();
    loop {
        found.push(coordinate(cursor)?);
        if !cursor.blanks(false).eat(",") {
            return Some(found);
        }
    }
}

/// Reads `Warp0:` and a line for each register, for each warp; `Block0:` precedes those of a block.
fn hardware(mut cursor: Cursor<'_>) -> Option<Seen> {
    let start = cursor.at;
    // The elements, by block, warp, register and lane.
    let mut blocks: Vec<Vec<Vec<Vec<Vec<i64>>>>> = Vec::new();
    let mut end = cursor.at;
    let mut entries = 0;
    loop {
        if cursor.blanks(true).eat(&format!("Block{}:", blocks.len())) {
            end_of_line(&mut cursor)?;
            blocks.push(Vec::new());
            cursor.blanks(true);
        } else if blocks.is_empty() {
            blocks.push(Vec::new());
        }
        let own = blocks.last_mut()?;
        if !cursor.eat(&format!("Warp{}:", own.len())) {
            break;
        }
        let mut registers = Vec::new();
        loop {
            let before = cursor;
            let begins = end_of_line(&mut cursor).is_some() && { cursor.blanks(false).peek() == Some(b'(') };
            if !begins {
                cursor = before;
                break;
            }
            // The first line shows whether it is a view.
            let Some(row) = lanes(&mut cursor) else {
                return (entries > 0).then(|| damaged(cursor.at, "a coordinate is wanted here"));
            };
            entries += row.len();
            if entries > MAX_ENTRIES {
                return Some(damaged(cursor.at, "it has more elements than are read"));
            }
            registers.push(row);
            end = cursor.at;
        }
        own.push(registers);
    }
    (entries > 0).then_some(())?;
    Some((end, map(&blocks, start..end)))
}

/// The linear map with these elements.
fn map(blocks: &[Vec<Vec<Vec<Vec<i64>>>>], span: Range<usize>) -> Result<Reading, Refused> {
    let cut_off = || damaged(span.end, "warps have other numbers of registers or lanes").1;
    let warps = blocks.first().map_or(0, Vec::len);
    let first = blocks.first().and_then(|own| own.first());
    let registers = first.map_or(0, Vec::len);
    let lanes = first.and_then(|own| own.first()).map_or(0, Vec::len);
    let rank = first.and_then(|own| own.first()?.first()).map_or(0, Vec::len);
    let alike = blocks.iter().all(|own| {
        own.len() == warps
            && own.iter().all(|warp| {
                warp.len() == registers
                    && warp.iter().all(|row| row.len() == lanes && row.iter().all(|at| at.len() == rank))
            })
    });
    let extents = [registers, lanes, warps, blocks.len()];
    if !alike || extents.iter().any(|extent| !extent.is_power_of_two()) {
        return cut_off();
    }
    let at = |[register, lane, warp, block]: [usize; 4]| {
        blocks.get(block).and_then(|own| own.get(warp)?.get(register)?.get(lane))
    };
    let image = |input: usize, bit: u32| {
        let mut place = [0; 4];
        if let Some(own) = place.get_mut(input) {
            *own = 1_usize << bit;
        }
        at(place)
    };
    let linear = |place: [usize; 4]| {
        let mut sum = vec![0_i64; rank];
        for (input, own) in place.iter().enumerate() {
            for bit in (0..usize::BITS).filter(|bit| own >> bit & 1 == 1) {
                for (sum, at) in sum.iter_mut().zip(image(input, bit)?) {
                    *sum ^= at;
                }
            }
        }
        Some(sum)
    };
    let mut reach = vec![0_i64; rank];
    let mut elements = HashSet::new();
    for block in 0..blocks.len() {
        for warp in 0..warps {
            for register in 0..registers {
                for lane in 0..lanes {
                    let place = [register, lane, warp, block];
                    let own = at(place);
                    if own.is_none() || own != linear(place).as_ref() {
                        return Err(unsupported(span, "no linear layout has the elements of this view"));
                    }
                    elements.extend(own);
                    reach.iter_mut().zip(own.into_iter().flatten()).for_each(|(reach, at)| *reach = (*reach).max(*at));
                }
            }
        }
    }
    // A view shows every element.
    let size = reach.iter().try_fold(1_i64, |size, last| size.checked_mul(last.checked_add(1)?));
    if size != i64::try_from(elements.len()).ok() {
        return damaged(span.end, "it does not show each element").1;
    }
    let mut text = String::new();
    for (input, (name, extent)) in ["register", "lane", "warp", "block"].into_iter().zip(extents).enumerate() {
        if name == "block" && extent == 1 {
            continue;
        }
        let images = (0..extent.trailing_zeros()).filter_map(|bit| image(input, bit));
        let image = |image: &Vec<i64>| format!("({})", image.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
        text.push_str(&format!("{name}=[{}] ", images.map(image).collect::<Vec<_>>().join(",")));
    }
    let names = reach.iter().enumerate().map(|(dimension, last)| format!("dim{dimension}:{}", last + 1));
    let text = format!("{text}-> {}", names.collect::<Vec<_>>().join(" "));
    match value(&text, span.clone())? {
        map @ Value::Linear(_) => {
            Ok(Reading::new(System::Triton, "view of a distributed layout", map, Unit::Coordinates))
        }
        _ => Err(unsupported(span, "no linear layout has the elements of this view")),
    }
}

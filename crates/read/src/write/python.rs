//! Layouts and fragments as Python index expressions, for TileLang.
//!
//! Law of a layout: a leaf of a mode is a digit of the mode's index: `i // below % extent`, where
//! the last digit needs no remainder. A swizzle is an XOR with bits of the same sum.
//!
//! Law of a fragment: TileLang maps elements to threads and values, so the bit map is inverted.
//! Each bit of a thread's number, or of a value's, is an XOR of bits of the coordinate;
//! neighbouring bits that are neighbours in one index form one digit. A bit of a thread that has no
//! effect on the element counts copies: it is a digit of `rep`.

use tilewright_layout::{AnyLayout, BitMatrix, Layout, LinearLayout, Swizzle};
use tilewright_notation::Value;

use super::{Parts, bases, cannot, parts};
use crate::options::Options;
use crate::refused::Refused;
use crate::system::System;

/// Names of indices, in the order of the modes.
const NAMES: [&str; 6] = ["i", "j", "k", "l", "m", "n"];

pub(super) fn tilelang(value: &Value, options: &Options) -> Result<String, Refused> {
    let system = System::TileLang;
    match (value, &options.shape) {
        (Value::Linear(map), _) => return fragment(map),
        (Value::Layout(_), Some(tile)) => return fragment(&bases::distributed(value, tile)?),
        _ => {}
    }
    let (layout, swizzle) = match parts(value, system)? {
        Parts::Plain(layout) => (layout, None),
        Parts::Swizzled(swizzle, offset, layout) => (layout, Some((swizzle, offset))),
    };
    if let Value::Layout(AnyLayout::Composed(composed)) = value
        && composed.bit_matrix().is_err()
    {
        return Err(cannot(system, "it is swizzled and no map of bits, which would not be read back"));
    }
    let modes: Vec<Layout> = if layout.depth() == 0 { vec![layout.clone()] } else { layout.modes().collect() };
    if modes.len() > NAMES.len() || modes.is_empty() {
        return Err(cannot(system, "layouts of one to six modes are written"));
    }
    let extents: Vec<String> = modes.iter().map(|mode| mode.size().to_string()).collect();
    let mut terms = Vec::new();
    for (name, mode) in NAMES.iter().zip(&modes) {
        let mut below = 1_i64;
        let leaves = mode.leaves();
        for (position, leaf) in leaves.iter().enumerate() {
            if leaf.stride != 0 && leaf.extent > 1 {
                let mut digit = name.to_string();
                if below > 1 {
                    digit = format!("{digit} // {below}");
                }
                if position + 1 < leaves.len() {
                    digit = format!("{digit} % {}", leaf.extent);
                }
                terms.push(if leaf.stride == 1 { digit } else { format!("{digit} * {}", leaf.stride) });
            }
            below *= leaf.extent;
        }
    }
    let sum = if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") };
    let index = match swizzle {
        None => sum,
        Some((swizzle, offset)) => swizzled(swizzle, offset, &sum),
    };
    Ok(format!("T.Layout([{}], lambda {}: {index})", extents.join(", "), NAMES[..modes.len()].join(", ")))
}

/// A fragment for the elements that threads hold, given a distributed layout.
fn fragment(map: &LinearLayout) -> Result<String, Refused> {
    let system = System::TileLang;
    let threads = ["lane", "warp"];
    if let Some((name, _)) =
        map.inputs().iter().find(|(name, bits)| *bits > 0 && !["register", "lane", "warp"].contains(&name.as_ref()))
    {
        return Err(cannot(system, format_args!("it has the input {name}, besides registers, lanes and warps")));
    }
    if map.outputs().len() > NAMES.len() || map.outputs().is_empty() {
        return Err(cannot(system, "fragments of one to six dimensions are written"));
    }
    // The columns of the inputs: for the bits of a thread, and of a value.
    let columns = |wanted: &str| {
        let mut first = 0;
        let mut found: &[u64] = &[];
        for (name, bits) in map.inputs() {
            if name.as_ref() == wanted {
                found = map.matrix().columns().get(first..first + bits).unwrap_or(&[]);
            }
            first += bits;
        }
        found
    };
    let thread: Vec<u64> = threads.iter().flat_map(|name| columns(name)).copied().collect();
    let register = columns("register");
    if register.contains(&0) {
        return Err(cannot(system, "a thread holds an element as several of its values"));
    }
    let moving: Vec<u64> = thread.iter().chain(register).copied().filter(|column| *column != 0).collect();
    let back = BitMatrix::new(map.matrix().outputs(), moving).and_then(|matrix| matrix.inverse()).map_err(|_| {
        cannot(system, "an element of the tile is held by nobody, or several bits together count its copies")
    })?;
    // The bits of the element that make each bit of a thread or a value.
    let row = |bit: usize| {
        back.columns().iter().enumerate().filter(|(_, column)| **column >> bit & 1 == 1).map(|(at, _)| at).collect()
    };
    let (mut next, mut copies) = (0, 0);
    let mut bits_of = |columns: &[u64]| -> Vec<Bit> {
        let mut made = Vec::new();
        for column in columns {
            made.push(match column {
                0 => {
                    copies += 1;
                    Bit::Copy(copies - 1)
                }
                _ => {
                    next += 1;
                    Bit::Of(row(next - 1))
                }
            });
        }
        made
    };
    let (thread, value) = (bits_of(&thread), bits_of(register));
    let dimensions: Vec<usize> = map.outputs().iter().map(|(_, bits)| *bits).collect();
    let [thread, value] = [thread, value].map(|bits| digits(&bits, &dimensions, copies));
    let shape: Vec<String> = dimensions.iter().map(|bits| (1_u64 << bits).to_string()).collect();
    let mut names = NAMES[..dimensions.len()].to_vec();
    let mut replicate = String::new();
    if copies > 0 {
        names.push("rep");
        replicate = format!(", replicate={}", 1_u64 << copies);
    }
    Ok(format!(
        "T.Fragment([{}], forward_fn=lambda {}: ({thread}, {value}){replicate})",
        shape.join(", "),
        names.join(", ")
    ))
}

/// The source of a bit of a thread's or a value's number.
enum Bit {
    /// A bit of the number of the copy.
    Copy(usize),
    /// The XOR of these bits of the element's number, the first dimension fastest.
    Of(Vec<usize>),
}

/// A number as a sum of digits of indices.
fn digits(bits: &[Bit], dimensions: &[usize], copies: usize) -> String {
    // The index that contains a bit, the position of the bit in it, and its number of bits.
    let place = |bit: usize| {
        let mut rest = bit;
        for (name, own) in NAMES.iter().zip(dimensions) {
            if rest < *own {
                return (*name, rest, *own);
            }
            rest -= own;
        }
        ("rep", 0, 0)
    };
    let single = |bit: &Bit| match bit {
        Bit::Copy(bit) => Some(("rep", *bit, copies)),
        Bit::Of(bits) => match bits.as_slice() {
            [bit] => Some(place(*bit)),
            _ => None,
        },
    };
    let mut terms = Vec::new();
    let mut at = 0;
    while let Some(bit) = bits.get(at) {
        let (digit, length) = match (single(bit), bit) {
            (Some(first), _) => {
                let follows =
                    |next: usize| bits.get(at + next).and_then(single) == Some((first.0, first.1 + next, first.2));
                let length = 1 + (1..).take_while(|next| follows(*next)).count();
                (digit(first, length), length)
            }
            (None, Bit::Of(all)) => {
                let each =
                    all.iter().map(|bit| digit(place(*bit), 1)).reduce(|a, b| format!("T.bitwise_xor({a}, {b})"));
                (each.unwrap_or_else(|| "0".to_owned()), 1)
            }
            (None, Bit::Copy(_)) => ("0".to_owned(), 1),
        };
        terms.push(match at {
            0 => digit,
            _ if digit.contains([' ']) && !digit.starts_with("T.") => format!("({digit}) * {}", 1_u64 << at),
            _ => format!("{digit} * {}", 1_u64 << at),
        });
        at += length;
    }
    if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
}

/// The digit of this many bits of an index: `i // 4 % 8`.
fn digit((name, from, all): (&str, usize, usize), length: usize) -> String {
    let mut text = name.to_owned();
    if from > 0 {
        text = format!("{text} // {}", 1_u64 << from);
    }
    if from + length < all {
        text = format!("{text} % {}", 1_u64 << length);
    }
    text
}

/// The bits above `base + shift` moved down by the shift, or those above `base` moved up.
fn swizzled(swizzle: Swizzle, offset: i64, sum: &str) -> String {
    let sum = if offset == 0 { sum.to_owned() } else { format!("{sum} + {offset}") };
    if swizzle.is_identity() {
        return sum;
    }
    let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
    let [from, to] = if shift >= 0 { [base + shift, base] } else { [base, base - shift] };
    let moved = format!("(({sum}) // {} % {}) * {}", 1_i64 << from.min(62), 1_i64 << bits.min(62), 1_i64 << to.min(62));
    format!("T.bitwise_xor({sum}, {moved})")
}

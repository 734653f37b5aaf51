//! Layouts as index expressions of Python, for TileLang.
//!
//! Law: a leaf of a mode is a digit of the mode's index: `i // below % extent`, where the last
//! digit needs no remainder. A swizzle is an XOR with bits of the same sum.

use tilewright_layout::{AnyLayout, Layout, Swizzle};
use tilewright_notation::Value;

use super::{Parts, cannot, parts};
use crate::refused::Refused;
use crate::system::System;

/// Names of indices, in the order of the modes.
const NAMES: [&str; 6] = ["i", "j", "k", "l", "m", "n"];

pub(super) fn tilelang(value: &Value) -> Result<String, Refused> {
    let system = System::TileLang;
    if let Value::Linear(_) = value {
        let because = "a fragment goes from elements to threads by expressions, and this is a map of bits from threads";
        return Err(cannot(system, because));
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

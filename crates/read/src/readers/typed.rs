//! Shapes behind the name of a type: `f16[128, 64][64, 1]cuda:0` of PyTorch's compiler,
//! `f32[8,6]{0,1}` of XLA.
//!
//! Law: the second list of PyTorch are strides in elements. The list in braces of XLA names the
//! dimensions from the one that moves fastest on; elements follow each other without gaps. XLA's
//! tiles, `{1,0:T(8,128)}`, pad and reorder elements, and are refused.

use tilewright_layout::AnyLayout;
use tilewright_notation::Value;

use super::arrays::strided;
use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::Refused;
use crate::system::System;

/// The row of the table for PyTorch.
pub const TORCH: Reader =
    Reader { system: System::PyTorch, signs: SIGNS, read: |context, at| read(context, at, System::PyTorch) };

/// The row of the table for XLA.
pub const XLA: Reader =
    Reader { system: System::Jax, signs: SIGNS, read: |context, at| read(context, at, System::Jax) };

const SIGNS: &[&str] = &[
    "f16[",
    "bf16[",
    "f32[",
    "f64[",
    "f8e4m3fn[",
    "f8e5m2[",
    "i8[",
    "i16[",
    "i32[",
    "i64[",
    "u8[",
    "b8[",
    "s8[",
    "s16[",
    "s32[",
    "s64[",
    "u16[",
    "u32[",
    "u64[",
    "pred[",
];

/// The devices of PyTorch.
const DEVICES: [&str; 8] = ["cpu", "cuda", "xpu", "mps", "meta", "hpu", "npu", "xla"];

fn bits(name: &str) -> Option<i64> {
    Some(match name {
        "f8e4m3fn" | "f8e5m2" | "i8" | "u8" | "b8" | "s8" | "pred" => 8,
        "f16" | "bf16" | "i16" | "s16" | "u16" => 16,
        "f32" | "i32" | "s32" | "u32" => 32,
        "f64" | "i64" | "s64" | "u64" => 64,
        _ => return None,
    })
}

fn read(context: &Context<'_>, at: usize, system: System) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let bits = bits(cursor.word()?)?;
    let shape = numbers(&mut cursor, "[", "]")?;
    let unit = Unit::Elements { bits: Some(bits) };
    let (strides, end) = if system == System::PyTorch {
        let strides = numbers(&mut cursor, "[", "]").filter(|strides| strides.len() == shape.len())?;
        // Without its device, `cuda:0`, it may be an array of another language.
        let device = cursor.word().filter(|device| DEVICES.contains(device));
        device?;
        if cursor.eat(":") {
            let _ = cursor.integer();
        }
        (Ok(strides), cursor.at)
    } else {
        let inside = cursor.bracketed(b'{')?;
        let text = context.source.get(inside.clone())?;
        let (order, rest) = text.split_once(':').unwrap_or((text, ""));
        let order: Vec<usize> = order.split(',').map(|word| word.trim().parse().ok()).collect::<Option<_>>()?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..shape.len()).collect::<Vec<_>>() {
            return None;
        }
        // A memory space alone changes nothing.
        let tiled = !rest.is_empty() && !rest.starts_with("S(");
        let refused = Refused::unsupported(
            inside,
            "the layout of XLA has tiles, which pad and reorder the elements",
            "give the same shape without its tiles: f32[8,128]{1,0}",
        );
        (if tiled { Err(refused) } else { Ok(strides_of(&shape, &order)) }, cursor.at)
    };
    let span = at..end;
    let answer = strides.and_then(|strides| {
        let layout =
            strided(&shape, &strides).map_err(|error| Refused::contradiction(span.clone(), error.to_string()))?;
        Ok(Reading::new(system, "array", Value::Layout(AnyLayout::from(layout)), unit))
    });
    Some(Found { span, answer })
}

/// Positive numbers or 0 in brackets, at least one.
fn numbers(cursor: &mut Cursor<'_>, open: &str, close: &str) -> Option<Vec<i64>> {
    if !cursor.eat(open) {
        return None;
    }
    let mut found = Vec::new();
    loop {
        cursor.blanks(false);
        found.push(cursor.integer().filter(|number| *number >= 0)?);
        cursor.blanks(false);
        if cursor.eat(close) {
            return Some(found);
        }
        if !cursor.eat(",") {
            return None;
        }
    }
}

/// Strides of elements without gaps, the dimensions in this order from the fastest on.
fn strides_of(shape: &[i64], order: &[usize]) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1_i64;
    for dimension in order {
        if let Some(stride) = strides.get_mut(*dimension) {
            *stride = step;
        }
        step = step.saturating_mul(shape.get(*dimension).copied().unwrap_or(1).max(1));
    }
    strides
}

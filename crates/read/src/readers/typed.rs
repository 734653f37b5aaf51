//! Shapes after the name of a type: `f16[128, 64][64, 1]cuda:0` of PyTorch's compiler,
//! `f32[8,6]{0,1}` of XLA.
//!
//! Law: the second list of PyTorch has strides in elements. The list in braces of XLA names the
//! dimensions from the fastest to the slowest; elements are contiguous. XLA's tiles,
//! `{1,0:T(8,128)}`, pad and reorder elements, and are refused. A JAX type names the axes of a mesh
//! that shard a dimension, `float32[8@x,16@(y,z)]`: that is a `PartitionSpec` with its shape.

use tilewright_layout::AnyLayout;
use tilewright_notation::Value;

use super::arrays::strided;
use super::sharding::on_mesh;
use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::system::System;

/// The reader of PyTorch.
pub const TORCH: Reader =
    Reader { system: System::PyTorch, signs: SIGNS, read: |context, at| read(context, at, System::PyTorch) };

/// The reader of XLA.
pub const XLA: Reader =
    Reader { system: System::Jax, signs: SIGNS, read: |context, at| read(context, at, System::Jax) };

/// The reader of JAX types with mesh axes.
pub const AXES: Reader = Reader {
    system: System::Jax,
    signs: &[
        "float16[",
        "float32[",
        "float64[",
        "bfloat16[",
        "int8[",
        "int16[",
        "int32[",
        "int64[",
        "uint8[",
        "uint16[",
        "uint32[",
        "uint64[",
        "bool[",
        "f16[",
        "bf16[",
        "f32[",
        "f64[",
        "i8[",
        "i16[",
        "i32[",
        "i64[",
        "u8[",
        "u32[",
    ],
    read: read_axes,
};

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

/// The device names of PyTorch.
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
        // Without a device, `cuda:0`, it may be an array of another language.
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
        // A memory space alone has no effect on the layout.
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

/// The largest number of bytes of a type with axes.
const TYPE: usize = 512;

fn read_axes(context: &Context<'_>, at: usize) -> Option<Found> {
    let rest = context.source.get(at..)?;
    let window = rest.as_bytes().get(..TYPE).unwrap_or(rest.as_bytes());
    let open = window.iter().position(|byte| *byte == b'[')?;
    let end = window.iter().position(|byte| *byte == b']')?;
    let inside = rest.get(open + 1..end).filter(|inside| inside.contains('@'))?;
    let (mut shape, mut spec) = (Vec::new(), Vec::new());
    let mut left = inside;
    while !left.is_empty() {
        let length = left.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(left.len());
        shape.push(left.get(..length)?.parse::<i64>().ok()?);
        left = left.get(length..)?;
        spec.push(match left.strip_prefix('@') {
            None => "None".to_owned(),
            Some(axes) => {
                let (names, behind) = match axes.strip_prefix('(') {
                    Some(names) => names.split_once(')')?,
                    None => axes.split_at(axes.find(',').unwrap_or(axes.len())),
                };
                left = behind;
                let word =
                    |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                let names: Vec<&str> = names.split(',').map(str::trim).collect();
                names.iter().all(word).then_some(())?;
                format!("({})", names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", "))
            }
        });
        left = left.strip_prefix(',').unwrap_or(left).trim_start();
    }
    let behind = rest.get(end + 1..)?;
    let kinds = behind.strip_prefix('{').and_then(|kinds| kinds.split_once('}'));
    let kinds = kinds.map(|(kinds, _)| kinds).filter(|kinds| kinds.contains(':'));
    let span = at..at + end + 1 + kinds.map_or(0, |kinds| kinds.len() + 2);
    let answer = match (&context.options.mesh, kinds) {
        (_, Some(kinds)) => Err(Refused::unsupported(
            span.clone(),
            format!("{{{kinds}}} says that the array varies or is not reduced along axes"),
            "give the type of an array behind the reduction",
        )),
        (None, None) => {
            let message = "a type does not say its mesh; jax.typeof(x).sharding does";
            Err(Refused::ask(Missing::Mesh, message))
        }
        (Some(mesh), None) => {
            let spec = format!("PartitionSpec({})", spec.join(", "));
            on_mesh(context, mesh, &spec, Some(shape), span.clone(), System::Jax)
        }
    };
    Some(Found { span, answer })
}

/// Non-negative numbers in brackets, at least one.
fn numbers(cursor: &mut Cursor<'_>, open: &str, close: &str) -> Option<Vec<i64>> {
    if !cursor.eat(open) {
        return None;
    }
    let mut found = Vec::new();
    loop {
        found.push(cursor.blanks(false).integer().filter(|number| *number >= 0)?);
        if cursor.blanks(false).eat(close) {
            return Some(found);
        }
        if !cursor.eat(",") {
            return None;
        }
    }
}

/// The strides of contiguous elements, given the dimensions from the fastest to the slowest.
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

//! Tensors that JAX and PyTorch shard over devices, as their objects are printed.
//!
//! Law: `NamedSharding(mesh=.., spec=..)`, `GSPMDSharding({devices=..})` and `DTensorSpec(..)` are
//! the sharded layouts that `tilewright_mesh` has for them, on the printed mesh, for the shape of
//! the tensor. A `DTensorSpec` has the shape in `tensor_meta`; otherwise the shape is a question. A
//! `PartitionSpec` or placements alone lack the mesh, which is then a question.

use tilewright_mesh::{Mesh, ShardedLayout};

use super::near::{name_beside, shape_beside};
use super::placements::{closed_in, with_sums};
use crate::cursor::Cursor;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Meaning, Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::term::{Term, TermKind, read as read_term};

/// The reader of JAX.
pub const JAX: Reader = Reader {
    system: System::Jax,
    signs: &[
        "NamedSharding(",
        "GSPMDSharding(",
        "{devices=",
        "{replicated}",
        "{maximal device=",
        "PartitionSpec(",
        "P('",
        "P(None",
        "P((",
    ],
    read: |context, at| read(context, at, System::Jax),
};

/// The reader of DTensor.
pub const DTENSOR: Reader = Reader {
    system: System::PyTorch,
    signs: &[
        "DTensorSpec(",
        "(Shard(",
        "[Shard(",
        "(Replicate(",
        "[Replicate(",
        "(_StridedShard(",
        "[_StridedShard(",
        "(Partial(",
        "[Partial(",
        "(_Partial(",
        "[_Partial(",
    ],
    read: |context, at| read(context, at, System::PyTorch),
};

fn read(context: &Context<'_>, at: usize, system: System) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let name = cursor.take_while(|byte| byte.is_ascii_alphanumeric());
    let Some(end) = closed(context.source, cursor.at) else {
        let refused = Refused::damaged(at..cursor.at, "the text is damaged or cut off: its bracket is not closed");
        return Some(Found { span: at..cursor.at.max(at + 1), answer: Err(refused) });
    };
    let span = at..end;
    let text = context.source.get(span.clone())?;
    // `P(` begins a PartitionSpec only if it contains nothing but names of axes.
    if name == "P" && !is_spec(text) {
        return None;
    }
    let answer = match name {
        "PartitionSpec" | "P" | "" if !text.starts_with('{') => alone(context, text, span.clone(), system),
        _ => sharded(context, text, span.clone(), system),
    };
    Some(Found { span, answer })
}

/// Whether a text is `P(..)` of quoted names, `None`, and tuples of names.
fn is_spec(text: &str) -> bool {
    let inner = text.strip_prefix("P(").and_then(|text| text.strip_suffix(')')).unwrap_or("");
    let name = |part: &str| {
        let part = part.trim_matches(['(', ')', ' ', '\n']);
        part.is_empty() || part == "None" || (part.len() > 2 && part.starts_with('\'') && part.ends_with('\''))
    };
    !inner.is_empty() && inner.split(',').all(name)
}

/// A PartitionSpec or placements without a mesh.
fn alone(context: &Context<'_>, text: &str, span: std::ops::Range<usize>, system: System) -> Result<Reading, Refused> {
    let Some(mesh) = &context.options.mesh else {
        let (what, whole) = match system {
            System::Jax => ("a PartitionSpec", "the NamedSharding(mesh=.., spec=..)"),
            _ => ("a list of placements", "the DTensorSpec(mesh=.., placements=..)"),
        };
        let message = format!("{what} does not say its mesh; {whole} that it belongs to does");
        return Err(Refused::ask(Missing::Mesh, message));
    };
    let text = match text.strip_prefix("P(") {
        Some(inner) => format!("PartitionSpec({inner}"),
        None => text.to_owned(),
    };
    on_mesh(context, mesh, &text, None, span, system)
}

/// The largest number of bytes of a sharding.
const WINDOW: usize = 1 << 12;

/// The position of the bracket that closes the one here.
fn closed(source: &str, at: usize) -> Option<usize> {
    Some(at + closed_in(source.get(at..)?, WINDOW)?)
}

fn sharded(
    context: &Context<'_>,
    text: &str,
    span: std::ops::Range<usize>,
    system: System,
) -> Result<Reading, Refused> {
    let fail = |error: tilewright_mesh::MeshError| Refused::contradiction(span.clone(), error.to_string());
    let inner = text.strip_prefix("GSPMDSharding(").and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let mesh = match (&context.options.mesh, inner) {
        // These two lack the number of devices.
        (Some(mesh), inner) if is_without_mesh(inner) => mesh.clone(),
        (None, inner) if is_without_mesh(inner) => {
            let message = format!("{inner} does not say on which devices");
            return Err(Refused::ask(Missing::Mesh, message));
        }
        _ => Mesh::of_sharding(text).map_err(fail)?,
    };
    // An XLA sharding is an attribute of a value that has a type.
    let beside = if text.starts_with('{') { shape_beside(context.source, span.clone(), 0) } else { None };
    let owner = if text.starts_with('{') { name_beside(context.source, span.start) } else { None };
    Ok(on_mesh(context, &mesh, text, beside, span.clone(), system)?.named(owner))
}

fn is_without_mesh(text: &str) -> bool {
    text == "{replicated}" || text.starts_with("{maximal device=")
}

/// A sharding over tiles with a list of devices, on a mesh with one axis.
pub(super) fn of_tiles(context: &Context<'_>, text: &str, span: std::ops::Range<usize>) -> Result<Reading, Refused> {
    sharded(context, text, span, System::Jax)
}

/// A sharding on a mesh, for the shape in the text, else that of the type beside it, else that of
/// the options.
pub(super) fn on_mesh(
    context: &Context<'_>,
    mesh: &Mesh,
    text: &str,
    beside: Option<Vec<i64>>,
    span: std::ops::Range<usize>,
    system: System,
) -> Result<Reading, Refused> {
    let fail = |error: tilewright_mesh::MeshError| Refused::contradiction(span.clone(), error.to_string());
    let shape = of_meta(text, "shape").or(beside).or_else(|| context.options.shape.clone());
    let Some(shape) = shape else {
        let message = "which device has which element depends on the shape, which a sharding does not say";
        return Err(Refused::ask(Missing::Shape, message));
    };
    if let Some(strides) = of_meta(text, "stride").filter(|strides| !is_row_major(&shape, strides)) {
        let strides = strides.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let message = format!("stride=({strides}) is not row-major, and the parts of a device are read as row-major");
        let help = "to see which device has which element, leave out stride=(..) of tensor_meta";
        return Err(Refused::unsupported(span, message, help));
    }
    let text = if system == System::PyTorch { with_sums(text, &span)? } else { text.to_owned() };
    let layout = ShardedLayout::of_sharding(mesh, &shape, &text).map_err(fail)?;
    let unit = Unit::Elements { bits: context.options.element_bits };
    let reading = Reading::of(system, "sharded tensor", Meaning::Sharded(Box::new(layout)), unit);
    let reading =
        reading.note(format!("on the mesh {mesh}; a step without @ counts elements in the memory of a device"));
    Ok(match system == System::PyTorch && is_partial_mesh(mesh, &text) {
        true => reading.note("the mesh is a part of a larger one; its devices are numbered from 0 on, in their order"),
        false => reading,
    })
}

/// Whether the strides of a `DeviceMesh` leave gaps, so that its devices are not numbered
/// contiguously.
fn is_partial_mesh(mesh: &Mesh, text: &str) -> bool {
    // The strides of a tensor stand behind the mesh.
    let inside = text.find("DeviceMesh(").and_then(|at| {
        let open = at + "DeviceMesh".len();
        text.get(open..closed(text, open)?)
    });
    let printed = inside.and_then(|inside| inside.split_once("stride"));
    let strides =
        printed.and_then(|(_, rest)| rest.trim_start_matches(['=', ':', ' ']).strip_prefix('(')?.split_once(')'));
    let strides = strides.map(|(strides, _)| strides.split(',').filter_map(|stride| stride.trim().parse::<i64>().ok()));
    strides.is_some_and(|strides| !strides.eq(mesh.ranks().leaves().iter().map(|leaf| leaf.stride)))
}

/// Numbers in `tensor_meta=TensorMeta(shape=torch.Size([8, 6]), stride=(6, 1), ..)`.
fn of_meta(text: &str, name: &str) -> Option<Vec<i64>> {
    let term = read_term(text, 0).ok()?;
    let argument = |term: &Term, name: &str| {
        let (_, arguments) = term.call()?;
        arguments.iter().find(|argument| argument.name.as_deref() == Some(name))?.value().cloned()
    };
    let found = argument(&argument(&term, "tensor_meta")?, name)?;
    match &found.kind {
        TermKind::Call(_, arguments) => arguments.first()?.value()?.numbers(),
        _ => found.numbers(),
    }
}

/// Whether the last mode is contiguous, and each mode before it steps over what is behind it. The
/// stride of an extent of 1 is never taken.
fn is_row_major(shape: &[i64], strides: &[i64]) -> bool {
    let mut step = 1_i64;
    shape.len() == strides.len()
        && shape.iter().zip(strides).rev().all(|(extent, stride)| {
            let fits = *extent == 1 || *stride == step;
            step = step.saturating_mul(*extent);
            fits
        })
}

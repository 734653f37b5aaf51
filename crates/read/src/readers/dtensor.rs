//! Tensors of PyTorch that are sharded over devices, as DTensor prints them.
//!
//! Law: `DTensor(local_tensor=.., device_mesh=.., placements=..)` prints the mesh and the
//! placements of the whole tensor and the part of one device. The shape of the whole tensor does
//! not follow from that part, because the last devices may have smaller parts. So the shape is a
//! question, and a shape under which no device has a part of the printed size is refused.
//! `Spec(f32[8, 6](S(0)R))` is a short form: `S(0)` is `Shard(0)`, `R` is `Replicate()`, `P(sum)`
//! is `Partial()`, and `_S(0, 2)` is `_StridedShard(0, 2)`. A partial sum is a summand; partial
//! values of other reductions have no layout here.

use std::ops::Range;

use tilewright_mesh::Mesh;

use super::placements::{WINDOW, closed};
use super::sharding::on_mesh;
use crate::reader::{Context, Found, Reader};
use crate::reading::{Meaning, Reading};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::term::read as read_term;

/// The reader.
pub const READER: Reader = Reader { system: System::PyTorch, signs: &["DTensor(", "Spec("], read };

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let rest = context.source.get(at..)?;
    let tensor = rest.strip_prefix("DTensor(");
    let inner = match tensor {
        Some(inner) => inner.trim_start().strip_prefix("local_tensor")?,
        None => {
            let inner = rest.strip_prefix("Spec(")?;
            let begin = inner.trim_start_matches(['(', ' ']);
            // Another `Spec(` contains other words.
            let is_placement = ["S(", "R", "P", "_S("].iter().any(|sign| begin.starts_with(sign));
            let is_type = begin.split_once('[').is_some_and(|(kind, _)| kind.len() < 12 && is_type(kind));
            (is_placement || is_type).then_some(inner)?
        }
    };
    let open = rest.find('(')?;
    let Some(end) = closed(rest.get(open..)?) else {
        // The line of a damaged text is part of it.
        let line = rest.bytes().take(WINDOW).position(|byte| byte == b'\n').unwrap_or(rest.len().min(WINDOW));
        let span = at..at + line.max(rest.len() - inner.len());
        let refused = Refused::damaged(span.clone(), "the text is damaged or cut off: its bracket is not closed");
        return Some(Found { span, answer: Err(refused) });
    };
    let span = at..at + open + end;
    let inside = rest.get(open + 1..open + end - 1)?;
    let answer = match tensor {
        Some(_) => of_tensor(context, inside, span.clone()),
        None => of_spec(context, inside, span.clone())?,
    };
    Some(Found { span, answer })
}

fn is_type(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
    digits.len() < word.len() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The value of a named argument, outside brackets.
fn argument<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (mut depth, mut start) = (0_usize, 0);
    let mut parts = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                parts.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..)?);
    parts.into_iter().find_map(|part| Some(part.trim().strip_prefix(name)?.trim_start().strip_prefix('=')?.trim()))
}

fn of_tensor(context: &Context<'_>, inside: &str, span: Range<usize>) -> Result<Reading, Refused> {
    let wanted = |name: &str| {
        argument(inside, name)
            .ok_or_else(|| Refused::damaged(span.clone(), format!("the text is damaged or cut off: no {name}=..")))
    };
    let (local, mesh, placements) = (wanted("local_tensor")?, wanted("device_mesh")?, wanted("placements")?);
    let part = shape_of_local(local);
    if context.options.shape.is_none() {
        let local = part.as_deref().map_or(String::new(), |part| format!(", {}", by(part)));
        let message = format!(
            "which device has which element depends on the shape of the whole tensor, and a DTensor prints only the \
             part of one device{local}"
        );
        return Err(Refused::ask(Missing::Shape, message));
    }
    let spec = format!("DTensorSpec(mesh={mesh}, placements={placements})");
    let own = Mesh::of_sharding(&spec).map_err(|error| Refused::contradiction(span.clone(), error.to_string()))?;
    let reading = on_mesh(context, &own, &spec, None, span.clone(), System::PyTorch)?;
    if let (Some(part), Meaning::Sharded(layout)) = (part, &reading.meaning) {
        let size = part.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
        let is_local = |rank| Some(layout.local_size_on(rank)) == size;
        if !(0..own.size()).any(is_local) {
            let message = format!("no device has a part of {}, as it is printed, of a tensor of this shape", by(&part));
            return Err(Refused::contradiction(span, message));
        }
    }
    Ok(reading)
}

/// Extents as text, `2x3`.
fn by(extents: &[i64]) -> String {
    extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// The extents of the values in `tensor([[1., 2.], [3., 4.]], device='cuda:0')`, or `size=(2, 2)`;
/// None if values are elided.
fn shape_of_local(text: &str) -> Option<Vec<i64>> {
    if let Some((_, size)) = text.split_once("size=") {
        return read_term(size, 0).ok()?.numbers();
    }
    let values = text.get(text.find('[')?..)?;
    let values = values.get(..closed(values)?)?;
    if values.contains("...") {
        return None;
    }
    let mut shape = Vec::new();
    let mut depth = 0_usize;
    let mut counts: Vec<i64> = Vec::new();
    let mut filled = false;
    for byte in values.bytes() {
        match byte {
            b'[' => {
                depth += 1;
                if counts.len() < depth {
                    counts.push(0);
                }
                *counts.get_mut(depth - 1)? = 0;
                filled = false;
            }
            b']' | b',' => {
                let count = counts.get_mut(depth - 1)?;
                *count += i64::from(filled);
                filled = false;
                if byte == b']' {
                    let count = *count;
                    match shape.iter_mut().find(|(level, _)| *level == depth) {
                        Some((_, known)) if *known != count => return None,
                        Some(_) => {}
                        None => shape.push((depth, count)),
                    }
                    depth -= 1;
                    filled = true;
                }
            }
            b' ' | b'\n' => {}
            _ => filled = true,
        }
    }
    shape.sort_unstable();
    Some(shape.into_iter().map(|(_, extent)| extent).collect())
}

/// `f32[8, 6](S(0)R)`, or `(S(0), R) on (8, 6)` of older versions; None for another text.
fn of_spec(context: &Context<'_>, inside: &str, span: Range<usize>) -> Option<Result<Reading, Refused>> {
    let inside = inside.trim();
    let (short, shape) = match inside.split_once(" on ") {
        Some((short, shape)) => (short, shape.trim().strip_prefix('(')?.strip_suffix(')')?),
        None => {
            let (_, rest) = inside.split_once('[').filter(|(kind, _)| is_type(kind))?;
            let (shape, rest) = rest.split_once(']')?;
            (rest.trim(), shape)
        }
    };
    let numbers = shape.split(',').map(str::trim).filter(|number| !number.is_empty());
    let shape: Vec<i64> = numbers.map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let short = short.strip_prefix('(').and_then(|short| short.strip_suffix(')')).unwrap_or(short);
    let placements = long_forms(short)?;
    Some(match &context.options.mesh {
        None => {
            let message =
                "a Spec does not say its mesh; the DTensorSpec(mesh=.., placements=..) that it stands for does";
            Err(Refused::ask(Missing::Mesh, message))
        }
        Some(mesh) => on_mesh(context, mesh, &placements, Some(shape), span, System::PyTorch),
    })
}

/// Short placements in their long form.
fn long_forms(short: &str) -> Option<String> {
    let mut found = Vec::new();
    let mut rest = short.trim_start();
    while !rest.is_empty() {
        let sign = ["_S", "S", "R", "P"].into_iter().find(|sign| rest.starts_with(sign))?;
        rest = rest.get(sign.len()..)?;
        let mut inner = "";
        if rest.starts_with('(') {
            let end = closed(rest)?;
            inner = rest.get(1..end - 1)?;
            rest = rest.get(end..)?;
        }
        found.push(match sign {
            "_S" => format!("_StridedShard({inner})"),
            "S" => format!("Shard({inner})"),
            "R" if inner.is_empty() => "Replicate()".to_owned(),
            "P" => format!("Partial({inner})"),
            _ => return None,
        });
        rest = rest.trim_start_matches([',', ' ']);
    }
    Some(format!("[{}]", found.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::{long_forms, shape_of_local};

    #[test]
    fn short_forms_and_local_shapes() {
        for (text, long) in [
            ("S(0)R", "[Shard(0), Replicate()]"),
            ("S(0), P(sum)", "[Shard(0), Partial(sum)]"),
            ("_S(1, 2)S(0)", "[_StridedShard(1, 2), Shard(0)]"),
        ] {
            assert_eq!(long_forms(text).as_deref(), Some(long));
        }
        assert_eq!(long_forms("S(0)[1]"), None);
        for (text, shape) in [
            ("tensor([[1., 2., 3.],\n        [3., 4., 5.]], device='cuda:0')", Some(vec![2, 3])),
            ("tensor([], size=(0, 4))", Some(vec![0, 4])),
            ("tensor([1, 2])", Some(vec![2])),
            ("tensor(..., device='meta', size=(4, 8))", Some(vec![4, 8])),
            ("tensor([[0., ..., 1.]])", None),
            ("tensor([[1.], [1., 2.]])", None),
        ] {
            assert_eq!(shape_of_local(text), shape, "{text}");
        }
    }
}

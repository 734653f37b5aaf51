//! Shardy's shardings in StableHLO: `#sdy.sharding<@mesh, [{"x"}, {}]>`, and without the attribute
//! name, as operations print them.
//!
//! Law: the meaning is the sharded layout that `tilewright_mesh` has for it, on the mesh that the
//! text defines, `sdy.mesh @mesh = <["x"=2, "y"=4]>`, or the one in the options, for the shape of
//! the type beside it. If the mesh or the shape is missing, the result is a question.

use std::ops::Range;

use tilewright_mesh::{Mesh, MeshError};

use super::near::{name_beside, shape_beside};
use super::sharding::on_mesh;
use crate::reader::{Context, Found, Reader};
use crate::reading::Reading;
use crate::refused::{Missing, Refused};
use crate::system::System;

/// The reader.
pub const READER: Reader = Reader { system: System::Jax, signs: &["#sdy.sharding<", "<@", "<mesh<"], read };

/// The largest number of bytes of a sharding.
const WINDOW: usize = 1 << 12;

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let rest = context.source.get(at..)?;
    let is_named = rest.starts_with("#sdy.");
    let inner = rest.strip_prefix("#sdy.sharding").unwrap_or(rest);
    // `<@name, [{` or `<@name, []>`; other texts contain `<@` too.
    let name = inner.strip_prefix("<@").map(|name| {
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '$' | '-'));
        name.split_at(end.unwrap_or(name.len()))
    });
    match name {
        Some(("", _)) => return None,
        Some((_, behind)) if !is_named && !behind.strip_prefix(',')?.trim_start().starts_with("[{") => return None,
        _ => {}
    }
    let Some(end) = closed(inner) else {
        // The line of a damaged text is part of it.
        let line = rest.bytes().take(WINDOW).position(|byte| byte == b'\n').unwrap_or(rest.len().min(WINDOW));
        let span = at..at + line.max(1);
        let refused = Refused::damaged(span.clone(), "the sharding is damaged or cut off: its `<` is not closed");
        return Some(Found { span, answer: Err(refused) });
    };
    let span = at..at + (rest.len() - inner.len()) + end;
    // Inside a quoted text, quotes are escaped.
    let text = inner.get(..end)?.replace("\\\"", "\"");
    let answer = meaning(context, &text, name.map(|(name, _)| name), span.clone());
    Some(Found { span, answer })
}

/// The position of the bracket that closes the first one of a text.
fn closed(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().take(WINDOW).enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            b'\n' => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn meaning(context: &Context<'_>, text: &str, name: Option<&str>, span: Range<usize>) -> Result<Reading, Refused> {
    let fail = |error: MeshError| Refused::contradiction(span.clone(), error.to_string());
    let mesh = match name {
        None => Mesh::of_sharding(text).map_err(fail)?,
        Some(name) => defined(context, name, &span)?,
    };
    let shape = shape_beside(context.source, span.clone(), number(context.source, span.start));
    let owner = name_beside(context.source, span.start);
    let reading = on_mesh(context, &mesh, text, shape, span, System::Jax)?.named(owner);
    Ok(match text.contains('?') {
        true => reading.note("a dimension with `?` is open: a later pass may cut it further"),
        false => reading,
    })
}

/// The mesh with a name.
fn defined(context: &Context<'_>, name: &str, span: &Range<usize>) -> Result<Mesh, Refused> {
    let found = context.definitions.get(&format!("@{name}"), span.start);
    match (found, &context.options.mesh) {
        (Some((text, _)), _) => {
            let text = text.split_inclusive('>').next().unwrap_or(text).replace("\\\"", "\"");
            if !text.contains('"') {
                let message = format!("the mesh @{name} has no axes: it stands for one device, or for none");
                let help = "a tensor on one device is cut nowhere; read its type instead";
                return Err(Refused::unsupported(span.clone(), message, help));
            }
            Mesh::of_shardy(&text)
                .map_err(|error| Refused::contradiction(span.clone(), format!("the mesh @{name}: {error}")))
        }
        (None, Some(mesh)) => Ok(mesh.clone()),
        (None, None) => {
            let message = format!("the text does not define @{name}; its line is sdy.mesh @{name} = <[\"x\"=2]>");
            Err(Refused::ask(Missing::Mesh, message))
        }
    }
}

/// The index of a sharding in a list `[<@mesh, ..>, <@mesh, ..>]`, which is that of its result.
fn number(source: &str, at: usize) -> usize {
    let mut from = at.saturating_sub(WINDOW);
    while !source.is_char_boundary(from) {
        from += 1;
    }
    let before = source.get(from..at).unwrap_or("");
    before.rfind("sharding_per_value<[").map_or(0, |list| before.get(list..).unwrap_or("").matches("<@").count())
}

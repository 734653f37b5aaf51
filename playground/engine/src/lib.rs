//! The server side of the playground.
//!
//! Law: everything is computed by the crates of the workspace; a question and its answer are texts,
//! and an answer depends on the question only. So the programs in `bin` read one question from
//! standard input and write one answer to standard output, natively as in WebAssembly, and a run
//! that panics or never ends affects only itself.
//!
//! * `request`: the questions
//! * `read`: programs and the fields besides them
//! * `foreign`: texts of other systems instead of a program; `sharded`: who
//!   holds what of a tensor that they shard over devices
//! * `picture`, `memory`, `code`, `kernel`, `steps`, `catalogue`: the answers
//! * `failure`: errors

#![warn(missing_docs)]

mod catalogue;
mod code;
mod failure;
mod foreign;
mod kernel;
mod memory;
mod outline;
mod picture;
mod ptx;
mod read;
mod request;
mod sharded;
mod steps;

use std::io::{Read as _, Write as _};

use serde_json::{Value as Json, json};
use tilewright_draw::explain::figures::sections;
use tilewright_draw::explain::{check, facts, map};
use tilewright_draw::{Figure, Format, Medium, Style, Theme};
use tilewright_notation::{Environment, call, derive};
use tilewright_read::ShardedLayout;

use failure::Failure;
use picture::Picture;
use read::{Read, Shown};
use request::Request;

/// The most bytes of a question.
const MOST: u64 = 1 << 20;

/// Writes a figure in a format; None if the program does not have the format.
pub type Write = fn(&Figure<'_>, Format, Theme) -> Option<Vec<u8>>;

/// The answers of a program besides those about layouts.
#[derive(Debug, Clone, Copy)]
pub struct Also {
    /// Writes files.
    pub write: Write,
    /// The rarer answers, if the program has them.
    pub more: Option<More>,
}

/// The rarer answers, separate so that the program that the page loads first is small.
#[derive(Debug, Clone, Copy)]
pub struct More {
    foreign: read::ReadForeign,
    sharded: fn(&ShardedLayout) -> Result<Figure<'static>, Failure>,
    memory: fn(&mut Read, &request::View, Style) -> Result<Picture, Failure>,
    code: fn(&mut Read, &request::Code) -> Result<String, Failure>,
    derivation: fn(&str, Theme) -> Result<Json, Failure>,
    page: fn(&str) -> Option<&'static str>,
    kernels: fn(Request) -> Result<Json, Failure>,
}

/// Texts of other systems, costs of memory, index arithmetic, derivations, pages about error codes,
/// and the kernels of the library.
pub const MORE: More = More {
    foreign: foreign::read,
    sharded: sharded::holders,
    memory: |read, view, style| match view.kind {
        request::Kind::Banks => memory::banks(read, view, style),
        request::Kind::Sectors => memory::sectors(read, view, style),
        _ => memory::suggest(read, view, style),
    },
    code: code::of,
    derivation,
    page: catalogue::page,
    kernels: |request| match request {
        Request::Kernels {} => Ok(kernel::list()),
        Request::Kernel { name, sizes, element, want, target, at, theme } => {
            kernel::of(&name, &sizes, &element, want, &target, (&at, picture::theme(theme)))
        }
        Request::Ptx { launch } => ptx::of(&launch),
        _ => Err(Failure::choice("this is no question about a kernel")),
    },
};

/// The error of the first program for a question that only the workshop answers.
fn elsewhere() -> Failure {
    Failure::choice("this program does not answer that; the workshop does")
}

/// Answers the question on standard input; returns whether that worked.
pub fn serve(also: Also) -> bool {
    let mut question = String::new();
    let read = std::io::stdin().lock().take(MOST + 1).read_to_string(&mut question);
    let answer = match read {
        Ok(_) if question.len() as u64 > MOST => object(Err(Failure::choice("the program is longer than a megabyte"))),
        Ok(_) => answer(&question, also),
        Err(error) => object(Err(Failure::choice(format!("the question cannot be read: {error}")))),
    };
    std::io::stdout().lock().write_all(&answer).is_ok()
}

/// An answer as text: an object, with `error` if it failed.
fn object(answer: Result<Json, Failure>) -> Vec<u8> {
    let object = answer.unwrap_or_else(|failure| json!({ "error": failure.json() }));
    object.to_string().into_bytes()
}

/// The answer to a question: an object, with `error` if it failed; or the bytes of a file.
pub fn answer(question: &str, also: Also) -> Vec<u8> {
    let request = match serde_json::from_str(question) {
        Ok(request) => request,
        Err(error) => return object(Err(Failure::choice(format!("this question is not known: {error}")))),
    };
    match request {
        Request::File { source, view, theme, format } => {
            match file(&source, &view, picture::theme(theme), &format, also) {
                Ok(bytes) => bytes,
                Err(failure) => object(Err(failure)),
            }
        }
        Request::Catalogue {} => object(Ok(catalogue::of())),
        Request::Program { source, view, theme } => object(program(&source, &view, picture::theme(theme), also)),
        Request::Derivation { source, theme } => object(match also.more {
            Some(more) => (more.derivation)(&source, picture::theme(theme)),
            None => Err(elsewhere()),
        }),
        Request::Code { source, code } => object(match also.more {
            Some(more) => Read::of(&source, Some(more.foreign))
                .and_then(|mut read| Ok(json!({ "code": (more.code)(&mut read, &code)? }))),
            None => Err(elsewhere()),
        }),
        Request::Explanation { code } => object(match also.more.map(|more| (more.page)(code.trim())) {
            Some(Some(page)) => Ok(json!({ "page": page })),
            Some(None) => Err(Failure::choice(format!("there is no code '{code}'"))),
            None => Err(elsewhere()),
        }),
        about => object(also.more.map_or_else(|| Err(elsewhere()), |more| (more.kernels)(about))),
    }
}

fn program(source: &str, view: &request::View, theme: Theme, also: Also) -> Result<Json, Failure> {
    let mut read = Read::of(source, also.more.map(|more| more.foreign))?;
    let view = &sized(view, &read);
    let mut object = match &read.shown {
        Shown::Value(value, call) => {
            let drawn = read::drawable((**value).clone());
            let facts = map::of(&drawn).map(|map| facts::of(&drawn, &map)).unwrap_or_default();
            json!({
                "text": value.to_string(),
                "kind": value.kind(),
                "facts": facts,
                "call": call.as_ref().map(|call| call.function),
                "table": picture::table(value, view.element_bits),
            })
        }
        Shown::Product(atom) => json!({ "text": atom.name(), "kind": "matrix instruction", "facts": [] }),
        Shown::Copy(atom) => json!({ "text": atom.name(), "kind": "copy instruction", "facts": [] }),
        Shown::Sharded(layout) => json!({ "text": layout.to_string(), "kind": "sharded tensor", "facts": [] }),
    };
    let mut notes = Vec::new();
    match picture::of(&mut read, view, Medium::Page, also.more) {
        Ok(drawn) => {
            object["picture"] = Json::from(drawn.figure.svg(theme));
            object["told"] = json!(drawn.told);
            object["proposed"] = json!(drawn.proposed);
            notes = drawn.notes;
        }
        Err(failure) => object["unseen"] = failure.json(),
    }
    object["notes"] = json!([read.notes(), notes].concat());
    Ok(object)
}

/// The choices, with the element width from a text of another system.
fn sized(view: &request::View, read: &Read) -> request::View {
    request::View { element_bits: read.bits.unwrap_or(view.element_bits), ..view.clone() }
}

/// A picture as a file.
fn file(source: &str, view: &request::View, theme: Theme, format: &str, also: Also) -> Result<Vec<u8>, Failure> {
    let format = Format::of_file(format!("picture.{format}").as_ref())?;
    let medium = if format == Format::Text { Medium::Terminal } else { Medium::Page };
    let mut read = Read::of(source, also.more.map(|more| more.foreign))?;
    let view = &sized(view, &read);
    let picture = picture::of(&mut read, view, medium, also.more)?;
    let written = (also.write)(&picture.figure, format, theme);
    written.ok_or_else(|| Failure::choice(format!("this program does not write {format}")))
}

/// The derivation of the value of a program, operation by operation, and whether its law holds.
fn derivation(source: &str, theme: Theme) -> Result<Json, Failure> {
    if read::is_instruction(source) {
        return Err(Failure::choice("an instruction is data of the library: nothing is derived"));
    }
    // A text of another system is derived as its equivalent program.
    let read = Read::of(source, Some(foreign::read)).ok().filter(|read| read.source != source);
    if let Some(Read { shown: Shown::Sharded(_), .. }) = &read {
        return Err(Failure::choice("a sharded tensor is read from its text: nothing is derived"));
    }
    let source = read.as_ref().map_or(source, |read| &read.source);
    let derivation = derive(source, &mut Environment::new());
    let parts: Vec<Json> = sections(&derivation, Style::default())
        .into_iter()
        .map(|section| {
            let pictures: Vec<String> = section.figures.iter().map(|figure| figure.svg(theme)).collect();
            json!({ "indent": section.indent, "formula": section.formula, "lines": section.lines, "pictures": pictures })
        })
        .collect();
    let mut object = json!({ "parts": parts });
    match &derivation.value {
        Ok(value) => object["text"] = Json::from(value.to_string()),
        Err(diagnostic) => object["error"] = Failure::of_program(diagnostic, source).json(),
    }
    let law = call(source, &mut Environment::new()).ok().flatten().and_then(|call| check::of_call(&call));
    if let Some(found) = law {
        let (answer, words) = match found.answer {
            check::Answer::Holds(words) => ("holds", words),
            check::Answer::Fails(words) => ("fails", words),
            check::Answer::Open(words) => ("open", words),
        };
        object["law"] = json!({ "law": found.law, "answer": answer, "words": words });
    }
    Ok(object)
}

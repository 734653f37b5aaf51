//! Calls that create or check a strided tensor: those of Inductor, and `as_strided`.
//!
//! Law: `assert_size_stride(x, (4, 8), (8, 1))`, `empty_strided_cuda((4, 8), (8, 1),
//! torch.float16)` and `reinterpret_tensor(x, (8, 4), (1, 8), 0)` have sizes and then strides,
//! which count elements; the last one also has an offset. `as_strided` is either PyTorch's, with
//! elements, or NumPy's, with bytes. The names of its arguments or its module distinguish them;
//! otherwise the result is a question. A call whose sizes are not numbers is skipped.

use super::arrays::{bytes, elements};
use crate::reader::{Context, Found, Reader};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::term::{Argument, Term, TermKind, read_python};
use crate::width::element_bits;

const SIGNS: &[&str] = &[
    "assert_size_stride(",
    "empty_strided(",
    "empty_strided_cuda(",
    "empty_strided_cpu(",
    "empty_strided_xpu(",
    "reinterpret_tensor(",
    "as_strided(",
];

/// The reader of PyTorch.
pub const TORCH: Reader =
    Reader { system: System::PyTorch, signs: SIGNS, read: |context, at| read(context, at, System::PyTorch) };

/// The reader of NumPy.
pub const NUMPY: Reader =
    Reader { system: System::NumPy, signs: &["as_strided("], read: |context, at| read(context, at, System::NumPy) };

fn read(context: &Context<'_>, at: usize, system: System) -> Option<Found> {
    let term = read_python(context.source, at).ok()?;
    let (name, arguments) = term.call()?;
    let span = term.place.clone();
    // The first argument of these is a tensor, given by any expression; a method has none.
    let named = |names: &[&str]| {
        let known = |argument: &&Argument| argument.name.as_deref().is_some_and(|name| names.contains(&name));
        arguments.iter().find(known).and_then(Argument::value)
    };
    let positional: Vec<Vec<i64>> = arguments
        .iter()
        .filter(|argument| argument.name.is_none())
        .filter_map(|argument| numbers(argument.value()?))
        .collect();
    let shape = named(&["size", "shape"]).and_then(numbers).or_else(|| positional.first().cloned())?;
    let mut rest = positional.iter().skip(usize::from(named(&["size", "shape"]).is_none()));
    let strides = named(&["stride", "strides"]).and_then(numbers).or_else(|| rest.next().cloned())?;
    let mine = if name == "as_strided" {
        let before = context.source.get(..at).unwrap_or("");
        let is_numpy = before.ends_with("stride_tricks.") || named(&["shape", "strides"]).is_some();
        let is_torch = before.ends_with("torch.") || named(&["size", "stride", "storage_offset"]).is_some();
        // Only PyTorch's call has an offset.
        let offset = arguments.iter().filter(|argument| argument.name.is_none());
        let is_torch = is_torch || offset.filter_map(|argument| argument.value()?.number()).next().is_some();
        match (is_numpy, is_torch) {
            (true, _) => Some(System::NumPy),
            (_, true) => Some(System::PyTorch),
            _ => context.options.system.filter(|own| matches!(own, System::NumPy | System::PyTorch)),
        }
    } else {
        Some(System::PyTorch)
    };
    let kind = named(&["dtype"]).or_else(|| {
        arguments
            .iter()
            .filter_map(Argument::value)
            .find(|term| term.word().is_some_and(|word| word.starts_with("torch.")))
    });
    let bits = kind.and_then(|kind| element_bits(kind.word()?)).or(context.options.element_bits);
    let answer = match mine {
        Some(own) if own != system => return None,
        Some(System::NumPy) => bytes(&shape, &strides, bits, span.clone()),
        Some(_) => {
            let last = arguments.last().filter(|argument| argument.name.is_none()).and_then(Argument::value);
            let offset = named(&["storage_offset"]).or(last).and_then(Term::number).unwrap_or(0);
            elements(System::PyTorch, (&shape, &strides, offset), bits, span.clone())
        }
        None if system == System::NumPy => return None,
        None => Err(Refused::ask(
            Missing::System(vec![System::NumPy, System::PyTorch]),
            "strides of as_strided count bytes in NumPy and elements in PyTorch, and the text does not say whose they are",
        )),
    };
    let owner = match (name, arguments.first().and_then(Argument::value)) {
        ("assert_size_stride", Some(first)) => first.word().map(str::to_owned),
        _ => None,
    };
    Some(Found { span, answer: answer.map(|reading| reading.named(owner)) })
}

/// The numbers of a tuple or a list.
fn numbers(term: &Term) -> Option<Vec<i64>> {
    matches!(term.kind, TermKind::List('(' | '[', _)).then(|| term.numbers()).flatten()
}

//! The PTX of any compiler: what is wrong with a kernel, and what its lines cost.

use serde_json::{Value as Json, json};
use tilewright_sanitize::costs::Costs;
use tilewright_sanitize::ptx::{Module, parse};
use tilewright_sanitize::{Argument, KernelLaunch, LaunchError, Options, sanitize};

use crate::failure::Failure;
use crate::request::PtxLaunch;

/// The most bytes of a text.
const MOST_TEXT: usize = 1 << 18;
/// The most elements of all arrays of a launch.
const MOST_ELEMENTS: u64 = 1 << 20;
/// The most instructions of threads, so that the page need not wait long.
const MOST_INSTRUCTIONS: u64 = 50_000_000;

fn refused(error: &LaunchError) -> Failure {
    Failure::choice(error.message.clone())
}

/// The entries of a text with their parameters; and, where arguments are given, what a launch
/// finds.
///
/// Errors: the text is too long or cannot be read; the launch is too large or does not fit.
pub fn of(asked: &PtxLaunch) -> Result<Json, Failure> {
    if asked.text.len() > MOST_TEXT {
        return Err(Failure::choice(format!(
            "the text has {} bytes, and this page reads {MOST_TEXT}: `tilewright sanitize` reads any",
            asked.text.len()
        )));
    }
    let module = parse(&asked.text).map_err(|error| Failure::choice(format!("PTX {error}")))?;
    let entries = entries(&module);
    let Some(entry) = entry(&module, &asked.entry) else {
        return Err(Failure::choice(match entries.as_array().map_or(0, Vec::len) {
            0 => "the text has no entry".to_owned(),
            _ => format!("the text has no entry `{}`", asked.entry),
        }));
    };
    if asked.arguments.is_empty() && !module.function(entry).is_none_or(|own| own.parameters.is_empty()) {
        return Ok(json!({ "entries": entries, "entry": entry }));
    }
    let mut launch = KernelLaunch::new(entry, asked.grid, asked.block).shared(asked.shared);
    let mut elements = 0_u64;
    for (seed, text) in asked.arguments.iter().enumerate() {
        elements = elements.saturating_add(elements_of(text));
        if elements > MOST_ELEMENTS {
            return Err(Failure::choice(format!("the arrays have more than {MOST_ELEMENTS} elements")));
        }
        launch = launch.argument(Argument::read("", text, seed as u64).map_err(|error| refused(&error))?);
    }
    let options = Options { costs: true, cores: Some(1), limit: MOST_INSTRUCTIONS, ..Options::default() };
    let report = sanitize(&asked.text, &launch, &options).map_err(|error| refused(&error))?;
    let findings: Vec<Json> = report
        .findings
        .iter()
        .map(|own| json!({ "code": own.code(), "message": own.text(&report), "count": own.count }))
        .collect();
    Ok(json!({
        "entries": entries,
        "entry": entry,
        "findings": findings,
        "unfinished": report.unfinished(),
        "printed": report.printed,
        "instructions": report.thread_instructions,
        "costs": report.costs.as_ref().map(|costs: &Costs| costs.table(&asked.text, |_, _| None)),
    }))
}

fn entries(module: &Module<'_>) -> Json {
    let entries = module.functions.iter().filter(|own| own.is_entry && own.body.is_some());
    let object = |own: &tilewright_sanitize::ptx::PtxFunction<'_>| {
        let parameters: Vec<Json> = own.parameters.iter().map(|own| json!([own.name, own.bytes])).collect();
        json!({ "name": own.name, "parameters": parameters })
    };
    entries.map(object).collect()
}

/// The entry of this name; the first where none is named.
fn entry<'m>(module: &'m Module<'_>, name: &str) -> Option<&'m str> {
    let mut entries = module.functions.iter().filter(|own| own.is_entry && own.body.is_some());
    entries.find(|own| name.is_empty() || own.name == name).map(|own| own.name)
}

/// How many elements an argument such as `in:f32[64,64]` has: the product of what stands in
/// brackets.
fn elements_of(text: &str) -> u64 {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(inside, _)| inside);
    let extents = inside.split(',').filter_map(|extent| extent.trim().parse::<u64>().ok());
    extents.fold(1, u64::saturating_mul)
}

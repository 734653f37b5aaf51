//! The catalogue: functions, instructions, and the names of choices.

use serde_json::{Value as Json, json};
use tilewright_draw::Palette;
use tilewright_layout::atoms::{CopyAtom, MmaAtom};
use tilewright_notation::functions;

use crate::picture::{LABELS, SHADES};

/// Everything that the page offers by name.
pub fn of() -> Json {
    let functions: Vec<Json> = functions()
        .iter()
        .map(|function| {
            json!({
                "name": function.name,
                "signature": function.signature,
                "summary": function.summary,
                "example": function.example,
                "result": function.result,
                "section": function.section,
            })
        })
        .collect();
    let products = MmaAtom::families().map(|family| json!([family.arch().name(), family.pattern(), family.names()]));
    let copies = CopyAtom::families().map(|family| json!([family.arch().name(), family.pattern(), family.names()]));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "functions": functions,
        "products": products.collect::<Vec<_>>(),
        "copies": copies.collect::<Vec<_>>(),
        "palettes": Palette::ALL.map(|(name, _)| name),
        "labels": LABELS.map(|(name, _)| name),
        "shades": SHADES.map(|(name, _)| name),
    })
}

/// The pages about error codes, by crate.
///
/// Those of meshes, tile programs, tensors and devices are left out: no refusal of the playground
/// has their codes, and their crates would have to be compiled in.
const PAGES: [fn(&str) -> Option<&'static str>; 9] = [
    tilewright_layout::explanation,
    tilewright_notation::explanation,
    tilewright_layout::emit::explanation,
    tilewright_layout::atoms::explanation,
    tilewright_draw::explanation,
    tilewright_layout::analysis::explanation,
    tilewright_layout::morphism::explanation,
    tilewright_kernel::explanation,
    tilewright_planners::explanation,
];

/// The page about an error code.
pub fn page(code: &str) -> Option<&'static str> {
    PAGES.iter().find_map(|page| page(code))
}

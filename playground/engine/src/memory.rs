//! Costs of memory accesses, in words and pictures.

use serde_json::{Value as Json, json};
use tilewright_draw::explain::map::plain;
use tilewright_draw::explain::requests::{
    self, access_text, bytes_or_elements, conflicts, conflicts_text, count, no_access, sectors_text,
};
use tilewright_draw::{Figure, Style};
use tilewright_layout::analysis::{
    Access, Banks, Proof, Remedy, Storage, bank_conflicts, global_access, phase_hits, request_units,
};
use tilewright_layout::{AnyLayout, Composed, Kind, Tree};
use tilewright_notation::Value;

use crate::failure::Failure;
use crate::picture::Picture;
use crate::read::Read;
use crate::request::View;

/// The storage of the elements of a layout.
fn storage(value: &Value) -> Result<Storage, Failure> {
    match value {
        Value::Layout(layout) if layout.kind() != Kind::Coordinate && layout.kind() != Kind::CoordinateComposed => {
            Ok(Storage::new(layout)?)
        }
        Value::Swizzle(swizzle) => Ok(Storage::from(&swizzle.layout()?)),
        value => match plain(value) {
            Some(layout) => Ok(Storage::from(&layout)),
            None => Err(Failure::not("the view", value, "a layout of offsets")),
        },
    }
}

/// A tile whose offsets are known.
fn tile(value: &Value) -> Result<Composed, Failure> {
    match value {
        Value::Layout(AnyLayout::Composed(map)) => Ok(Composed::clone(map)),
        Value::Swizzle(swizzle) => Ok(swizzle.layout()?),
        Value::Layout(AnyLayout::Xor(layout)) => Ok(layout.bit_matrix()?.to_composed(&layout.shape())?),
        value => match plain(value) {
            Some(layout) => Ok(Composed::from(&layout)),
            None => Err(Failure::not("the view", value, "a layout of known offsets")),
        },
    }
}

/// The given accesses; if there are none, the access of the layout as a layout of threads and
/// values.
fn accesses(read: &mut Read, view: &View, shape: &Tree<i64>) -> Result<Vec<Access>, Failure> {
    let (bits, vector) = (view.element_bits, view.vector);
    if !(1..=256).contains(&vector) {
        return Err(Failure::choice(format!("the elements of a load: expected 1 to 256, not {vector}")));
    }
    let specs: Vec<&str> = view.access.iter().map(|spec| spec.trim()).filter(|spec| !spec.is_empty()).collect();
    if specs.is_empty() {
        return Ok(vec![Access::thread_values(shape, bits, vector)?]);
    }
    let mut all = Vec::new();
    for spec in specs {
        all.push(match Access::of_name(spec, shape, bits, vector)? {
            Some(access) => access,
            None => {
                if let Some(why) = no_access(spec) {
                    return Err(Failure::choice(why));
                }
                Access::new(spec, &read.layout("the access", spec)?, bits, vector)?
            }
        });
    }
    Ok(all)
}

/// The note on a swizzle that may be one of bytes.
fn bytes_note(value: &Value, bits: i64) -> Vec<String> {
    let Value::Layout(layout) = value else { return Vec::new() };
    bytes_or_elements(layout, bits).into_iter().collect()
}

/// Figures below each other, with the caption of the first.
fn stacked(figures: Vec<Figure<'static>>) -> Figure<'static> {
    figures.into_iter().reduce(Figure::above).unwrap_or_default()
}

/// The banks of each lane, in the worst phase or the given one.
pub fn banks(read: &mut Read, view: &View, style: Style) -> Result<Picture, Failure> {
    let value = read.value()?.clone();
    let storage = storage(&value)?;
    let accesses = accesses(read, view, storage.shape())?;
    let mut picture = Picture::from(Figure::default());
    picture.notes = bytes_note(&value, view.element_bits);
    let figures = accesses.iter().map(|access| phase_of(&storage, access, view.phase, style, &mut picture.told));
    picture.figure = stacked(figures.collect::<Result<_, _>>()?);
    picture.figure.title = storage.text().to_owned();
    Ok(picture)
}

fn phase_of(
    storage: &Storage,
    access: &Access,
    phase: Option<usize>,
    style: Style,
    lines: &mut Vec<String>,
) -> Result<Figure<'static>, Failure> {
    let report = bank_conflicts(storage, access, Banks::NVIDIA)?;
    let number = phase.unwrap_or_else(|| report.worst());
    if number >= report.phases().len() {
        return Err(Failure::choice(format!("phase {number}: there are {} phases, from 0", report.phases().len())));
    }
    let hits = phase_hits(storage, access, Banks::NVIDIA, number)?;
    lines.push(format!("{}: {}", access_text(access), conflicts_text(&report)));
    Ok(conflicts(access, &report, number, &hits, Banks::NVIDIA, style))
}

/// The sectors of each lane, in the worst request or the given one.
pub fn sectors(read: &mut Read, view: &View, style: Style) -> Result<Picture, Failure> {
    let storage = storage(read.value()?)?;
    let accesses = accesses(read, view, storage.shape())?;
    let mut picture = Picture::from(Figure::default());
    let mut figures = Vec::new();
    for access in accesses {
        let report = global_access(&storage, &access)?;
        let number = view.phase.unwrap_or_else(|| report.worst());
        if number >= report.requests().len() {
            let there = report.requests().len();
            return Err(Failure::choice(format!("request {number}: there are {there} requests, from 0")));
        }
        let units = request_units(&storage, &access, number)?;
        picture.told.push(format!("{}: {}", access_text(&access), sectors_text(&report)));
        figures.push(requests::sectors(&access, &report, number, &units, style));
    }
    picture.figure = stacked(figures);
    picture.figure.title = storage.text().to_owned();
    Ok(picture)
}

/// The change that costs least, with pictures before and after, and all others as programs.
pub fn suggest(read: &mut Read, view: &View, style: Style) -> Result<Picture, Failure> {
    let value = read.value()?.clone();
    let tile = tile(&value)?;
    let before = Storage::from(&tile);
    let accesses = accesses(read, view, before.shape())?;
    let advice = tilewright_layout::analysis::suggest(tile, &accesses, Banks::NVIDIA)?;
    let mut picture = Picture::from(Figure::default());
    picture.notes = bytes_note(&value, view.element_bits);
    let ideal = advice.ideal();
    let Some(access) =
        accesses.iter().enumerate().max_by_key(|(at, _)| advice.before.get(*at).map_or(0, |r| r.degree()))
    else {
        return Err(Failure::choice("there is no access"));
    };
    picture.figure = phase_of(&before, access.1, None, style, &mut picture.told)?;
    if advice.suggestions.is_empty() {
        picture.told.push(match advice.wavefronts() <= ideal {
            true => "nothing to gain: no phase takes more wavefronts than it must".to_owned(),
            false => "no swizzle, linear map, padding or order of threads costs less".to_owned(),
        });
        return Ok(picture);
    }
    for suggestion in &advice.suggestions {
        let (kind, program) = match &suggestion.remedy {
            Remedy::Swizzle(swizzle) => (format!("swizzle {swizzle}"), Some(suggestion.text())),
            Remedy::Linear(_) => ("a linear map of bits".to_owned(), Some(suggestion.text())),
            Remedy::Padding { stride, elements } => {
                (format!("{} more at each multiple of {stride}", count(*elements, "element")), Some(suggestion.text()))
            }
            Remedy::Threads { pattern, .. } => (format!("other threads: {pattern}"), None),
            _ => ("a change".to_owned(), None),
        };
        let why = match (suggestion.proof, &suggestion.remedy) {
            (Proof::Bound | Proof::Exhausted, Remedy::Threads { .. }) => "as few for this access as its words need",
            (Proof::Bound, _) => "as few as the words need, so nothing does better",
            (Proof::Exhausted, _) => "the best of its kind",
            _ => "not shown to be the best",
        };
        let cost = format!("{} instead of {}: {why}", count(suggestion.wavefronts(), "wavefront"), advice.wavefronts());
        picture.proposed.push(json!({ "what": kind, "cost": cost, "program": program }) as Json);
    }
    let best = advice.suggestions.iter().find(|suggestion| !matches!(suggestion.remedy, Remedy::Threads { .. }));
    if let Some(best) = best {
        let after = Storage::from(&best.layout);
        let figure = phase_of(&after, access.1, None, style, &mut picture.told)?;
        picture.figure = picture.figure.above(figure);
        picture.figure.title = format!("Before, and as {}", best.text());
    }
    Ok(picture)
}

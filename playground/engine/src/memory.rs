//! What accesses to memory cost, in words and pictures.

use serde_json::{Value as Json, json};
use tilewright_analysis::{
    Access, Banks, LINE_BYTES, Proof, Remedy, SECTOR_BYTES, Storage, bank_conflicts, global_access, phase_hits,
    request_units,
};
use tilewright_draw::{self as draw, Figure, Style, Touch, Touched};
use tilewright_explain::map::plain;
use tilewright_layout::{AnyLayout, Composed, Kind, Tree};
use tilewright_notation::Value;

use crate::failure::Failure;
use crate::picture::Picture;
use crate::read::Read;
use crate::request::View;

/// Where the elements of a layout lie.
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

/// The accesses that are written; if none is, that by which the layout is one of threads and
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
                let word = spec.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == ':');
                if word && spec.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    let known = "threads, rows, columns, rows:8, ldmatrix.x4, or a layout from (thread, value)";
                    return Err(Failure::choice(format!("there is no access '{spec}': write {known}")));
                }
                Access::new(spec, &read.layout("the access", spec)?, bits, vector)?
            }
        });
    }
    Ok(all)
}

/// A number and its noun.
fn count(number: i64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// An access in words.
fn describe(access: &Access) -> String {
    let (threads, bytes) = (count(access.threads(), "thread"), count(access.bytes(), "byte"));
    match access.instructions() {
        1 => format!("{}: {threads}, {bytes} each", access.name()),
        times => format!("{}: {threads}, {times} times {bytes} each", access.name()),
    }
}

/// A remark below the last panel.
fn noted(mut figure: Figure<'static>, note: String) -> Figure<'static> {
    if let Some(Some(panel)) = figure.table.last_mut().and_then(|row| row.first_mut()) {
        panel.note = note;
    }
    figure
}

/// Which lanes touch which banks, in the worst phase or the one that is asked for.
pub fn banks(read: &mut Read, view: &View, style: Style) -> Result<Picture, Failure> {
    let storage = storage(read.value()?)?;
    let accesses = accesses(read, view, storage.shape())?;
    let mut picture = Picture::from(Figure::default());
    for access in accesses {
        let figure = conflicts(&storage, &access, view.phase, style, &mut picture.told)?;
        picture.figure = picture.figure.above(figure);
    }
    picture.figure.title = storage.text().to_owned();
    picture.figure.caption =
        "Rows are lines of memory by their first byte, columns are banks; below, the words that each bank gives."
            .to_owned();
    Ok(picture)
}

fn conflicts(
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
    let wavefronts = count(report.wavefronts(), "wavefront");
    let verdict = match report.is_conflict_free() {
        true => format!("no conflicts: {wavefronts}, and no fewer would do"),
        false => format!("{}-way conflicts: {wavefronts}, where {} would do", report.degree(), report.ideal()),
    };
    let phase = &hits.phase;
    let heading = format!(
        "phase {number} of {}: warp {}, load {}, lanes {}-{}: {} for {}",
        report.phases().len(),
        phase.group,
        phase.instruction,
        phase.first,
        phase.first + phase.lanes - 1,
        count(phase.degree, "wavefront"),
        count(phase.words, "word")
    );
    let note = format!("{}: {verdict}", describe(access));
    lines.push(note.clone());
    let touches = hits.hits.iter().map(|hit| Touch { line: hit.line, column: hit.bank, lane: hit.lane });
    let words = Banks::NVIDIA.count();
    let touched = Touched { lines: hits.lines.clone(), words, group: words, banks: true, touches: touches.collect() };
    Ok(noted(draw::request(&heading, &touched, style), note))
}

/// Which lanes touch which sectors, in the worst request or the one that is asked for.
pub fn sectors(read: &mut Read, view: &View, style: Style) -> Result<Picture, Failure> {
    const WORD: i64 = 4;
    let storage = storage(read.value()?)?;
    let accesses = accesses(read, view, storage.shape())?;
    let mut picture = Picture::from(Figure::default());
    for access in accesses {
        let report = global_access(&storage, &access)?;
        let number = view.phase.unwrap_or_else(|| report.worst());
        let Some(request) = report.requests().get(number) else {
            let there = report.requests().len();
            return Err(Failure::choice(format!("request {number}: there are {there} requests, from 0")));
        };
        let heading = format!(
            "request {number} of {}: warp {}, load {}: {} in {}",
            report.requests().len(),
            request.group,
            request.instruction,
            count(request.sectors, "sector"),
            count(request.lines, "line")
        );
        let percent = (report.efficiency() * 1000.0).round() / 10.0;
        let would = if report.sectors() == report.ideal() {
            String::new()
        } else {
            format!(" where {} would do,", report.ideal())
        };
        let sectors = count(report.sectors(), "sector");
        let note = format!("{}: {sectors},{would} {percent}% of their bytes are asked for", describe(&access));
        picture.told.push(note.clone());
        let units = request_units(&storage, &access, number)?;
        let touches = units.units.iter().flat_map(|unit| {
            let words = unit.byte / WORD..(unit.byte + access.bytes() + WORD - 1) / WORD;
            words.map(|column| Touch { line: unit.line, column, lane: unit.lane })
        });
        let (words, group) = (LINE_BYTES / WORD, SECTOR_BYTES / WORD);
        let touched = Touched { lines: units.lines.clone(), words, group, banks: false, touches: touches.collect() };
        picture.figure = picture.figure.above(noted(draw::request(&heading, &touched, style), note));
    }
    picture.figure.title = storage.text().to_owned();
    picture.figure.caption =
        "Rows are lines of 128 bytes by their first byte, columns their words of 4 bytes, in sectors of 32.".to_owned();
    Ok(picture)
}

/// The change that costs least, before and after, and all others as programs.
pub fn suggest(read: &mut Read, view: &View, style: Style) -> Result<Picture, Failure> {
    let tile = tile(read.value()?)?;
    let before = Storage::from(&tile);
    let accesses = accesses(read, view, before.shape())?;
    let advice = tilewright_analysis::suggest(tile, &accesses, Banks::NVIDIA)?;
    let mut picture = Picture::from(Figure::default());
    let ideal = advice.ideal();
    let Some(access) =
        accesses.iter().enumerate().max_by_key(|(at, _)| advice.before.get(*at).map_or(0, |r| r.degree()))
    else {
        return Err(Failure::choice("there is no access"));
    };
    picture.figure = conflicts(&before, access.1, None, style, &mut picture.told)?;
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
        let figure = conflicts(&after, access.1, None, style, &mut picture.told)?;
        picture.figure = picture.figure.above(figure);
        picture.figure.title = format!("Before, and as {}", best.text());
    }
    Ok(picture)
}

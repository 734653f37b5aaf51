//! The memory that the lanes of a request access, as text and as pictures: banks of shared memory,
//! sectors of global memory.
//!
//! Law: texts and pictures show the counts of a report, and the words that [`phase_hits`] and
//! [`request_units`] list.
//!
//! [`phase_hits`]: tilewright_layout::analysis::phase_hits
//! [`request_units`]: tilewright_layout::analysis::request_units

use crate::{self as draw, Figure, Style, Touch, Touched};
use tilewright_layout::analysis::{
    Access, BankReport, Banks, GlobalReport, LINE_BYTES, Phase, PhaseHits, RequestUnits, SECTOR_BYTES,
};
use tilewright_layout::{AnyLayout, OuterMap, nearest};

/// A number and its noun: `1 wavefront`, `3 copies`.
pub fn count(number: i64, noun: &str) -> String {
    let ending = match (number, noun) {
        (1, _) => return format!("1 {noun}"),
        (_, "copy") => return format!("{number} copies"),
        _ => "s",
    };
    format!("{number} {noun}{ending}")
}

/// A note about a swizzle that may be counted in bytes, for elements of `bits` bits: for a pointer
/// to shared memory, `S<3,4,3>` is the swizzle that is `S<3,3,3>` in elements of 16 bits. None if
/// the swizzle does not have 16-byte units, or if elements are bytes.
///
/// ```
/// use tilewright_draw::explain::requests::bytes_or_elements;
/// use tilewright_layout::AnyLayout;
///
/// let said = |text: &str, bits| bytes_or_elements(&text.parse::<AnyLayout>().unwrap(), bits);
/// let note = said("S<3,4,3> o 0 o (8,64):(64,1)", 16).unwrap();
/// assert!(note.ends_with("write S<3,3,3> o 0 o (8,64):(64,1)"));
/// assert_eq!(said("S<3,3,3> o 0 o (8,64):(64,1)", 16), None);
/// assert_eq!(said("S<3,4,3> o 0 o (8,128):(128,1)", 8), None);
/// ```
pub fn bytes_or_elements(layout: &AnyLayout, bits: i64) -> Option<String> {
    // The three swizzles of the hardware permute units of 2^4 bytes, by the bits from 7 up.
    const UNIT: i64 = 4;
    const SHIFT: i64 = 3;
    let AnyLayout::Composed(map) = layout else { return None };
    let OuterMap::Swizzle(swizzle) = map.outer() else { return None };
    if swizzle.is_identity() || (swizzle.base(), swizzle.shift()) != (UNIT, SHIFT) || bits <= 8 {
        return None;
    }
    let elements = swizzle.recast(bits, 8).ok()?;
    let written = format!("{elements} o {} o {}", map.offset(), map.inner());
    Some(format!(
        "{swizzle} counts elements of {bits} bits here; if it is that of a pointer, which counts bytes, write {written}"
    ))
}

/// Why a word does not name an access. None if the text is not a word, and so may be an expression.
///
/// ```
/// use tilewright_draw::explain::requests::no_access;
///
/// assert!(no_access("ldmatrix.x3").unwrap().contains(".x1, .x2 or .x4"));
/// assert!(no_access("colums").unwrap().contains("`columns` is near"));
/// assert_eq!(no_access("(32,4):(4,1)"), None);
/// ```
pub fn no_access(spec: &str) -> Option<String> {
    // A word, with or without the elements of a load, is the name of an access, and not an
    // expression.
    let name = spec.split_once(':').filter(|(_, own)| own.parse::<i64>().is_ok()).map_or(spec, |(name, _)| name);
    let word = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    if !word {
        return None;
    }
    if name.starts_with("ldmatrix") || name.starts_with("stmatrix") {
        let known = "`ldmatrix` and `stmatrix` are followed by .x1, .x2 or .x4, then .trans";
        return Some(format!("there is no access `{name}`: {known}"));
    }
    let meant = nearest(name, Access::NAMES, 1);
    let meant = meant.first().map_or(String::new(), |near| format!(" (`{near}` is near)"));
    let known = "threads, rows, columns, ldmatrix.x1 and the like, or a layout from (thread, value) to an index";
    Some(format!("there is no access `{name}`{meant}: write {known}"))
}

/// An access in words: `rows: 512 threads, 16 bytes each`.
pub fn access_text(access: &Access) -> String {
    let (threads, bytes) = (count(access.threads(), "thread"), count(access.bytes(), "byte"));
    match access.instructions() {
        1 => format!("{}: {threads}, {bytes} each", access.name()),
        times => format!("{}: {threads}, {times} times {bytes} each", access.name()),
    }
}

/// The cost of an access to shared memory, in words.
///
/// ```
/// use tilewright_layout::analysis::{Access, Banks, Storage, bank_conflicts, phase_hits};
/// use tilewright_draw::{Style, Theme};
/// use tilewright_draw::explain::requests::{conflicts, conflicts_text};
/// use tilewright_layout::Layout;
///
/// // 32 lanes read a column of rows of 128 bytes.
/// let layout: Layout = "(32,32):(32,1)".parse().unwrap();
/// let storage = Storage::from(&layout);
/// let access = Access::of_name("columns", storage.shape(), 32, 1).unwrap().unwrap();
/// let banks = Banks::new(32, 4).unwrap();
/// let report = bank_conflicts(&storage, &access, banks).unwrap();
/// assert_eq!(conflicts_text(&report), "32-way conflicts: 1024 wavefronts, where 32 would do");
/// let hits = phase_hits(&storage, &access, banks, 0).unwrap();
/// let picture = conflicts(&access, &report, 0, &hits, banks, Style::default());
/// assert!(picture.svg(Theme::Auto).contains("bank 0: 32 words"));
/// ```
pub fn conflicts_text(report: &BankReport) -> String {
    let wavefronts = count(report.wavefronts(), "wavefront");
    if report.is_conflict_free() {
        return format!("no conflicts: {wavefronts}, and no fewer would do");
    }
    format!("{}-way conflicts: {wavefronts}, where {} would do", report.degree(), report.ideal())
}

/// A phase in words: its lanes, and its cost.
pub fn phase_text(number: usize, phase: &Phase) -> String {
    let lanes = if phase.lanes == 1 {
        format!("lane {}", phase.first)
    } else {
        format!("lanes {}-{}", phase.first, phase.first + phase.lanes - 1)
    };
    format!(
        "phase {number}: warp {}, load {}, {lanes}: {} for {}",
        phase.group,
        phase.instruction,
        count(phase.degree, "wavefront"),
        count(phase.words, "word")
    )
}

/// The lines and banks that the lanes of a phase touch.
pub fn touched_banks(hits: &PhaseHits, banks: Banks) -> Touched {
    let lines = hits.lines.clone();
    let touches = hits.hits.iter().map(|hit| Touch { line: hit.line, column: hit.bank, lane: hit.lane });
    Touched { lines, words: banks.count(), group: banks.count(), banks: true, touches: touches.collect() }
}

/// The picture of phase `number` of an access to shared memory.
pub fn conflicts(
    access: &Access,
    report: &BankReport,
    number: usize,
    hits: &PhaseHits,
    banks: Banks,
    style: Style,
) -> Figure<'static> {
    let figure = draw::request(&phase_text(number, &hits.phase), &touched_banks(hits, banks), style);
    noted(figure, access, &conflicts_text(report)).captioned(
        "Rows are lines of memory by their first byte, columns are banks; below, the words that each bank gives.",
    )
}

/// The cost of an access to global memory, in words.
pub fn sectors_text(report: &GlobalReport) -> String {
    let sectors = count(report.sectors(), "sector");
    let tenths = (report.efficiency() * 1000.0).round() / 10.0;
    if report.sectors() == report.ideal() {
        format!("{sectors}, and no fewer would do: {tenths}% of their bytes are asked for")
    } else {
        format!("{sectors}, where {} would do: {tenths}% of their bytes are asked for", report.ideal())
    }
}

/// A request in words: its lanes, and its cost.
pub fn request_text(number: usize, report: &GlobalReport) -> String {
    let Some(request) = report.requests().get(number) else { return String::new() };
    format!(
        "request {number}: warp {}, load {}: {} in {}, {} asked for",
        request.group,
        request.instruction,
        count(request.sectors, "sector"),
        count(request.lines, "line"),
        count(request.bytes, "byte")
    )
}

/// The lines and sectors that the lanes of a request touch.
pub fn touched_sectors(access: &Access, units: &RequestUnits) -> Touched {
    const WORD: i64 = 4;
    let lines = units.lines.clone();
    let touches = units.units.iter().flat_map(|unit| {
        let words = unit.byte / WORD..(unit.byte + access.bytes() + WORD - 1) / WORD;
        words.map(|column| Touch { line: unit.line, column, lane: unit.lane })
    });
    let (words, group) = (LINE_BYTES / WORD, SECTOR_BYTES / WORD);
    Touched { lines, words, group, banks: false, touches: touches.collect() }
}

/// The picture of request `number` of an access to global memory.
pub fn sectors(
    access: &Access,
    report: &GlobalReport,
    number: usize,
    units: &RequestUnits,
    style: Style,
) -> Figure<'static> {
    let figure = draw::request(&request_text(number, report), &touched_sectors(access, units), style);
    noted(figure, access, &sectors_text(report))
        .captioned("Rows are lines of 128 bytes by their first byte, columns their words of 4 bytes, in sectors of 32.")
}

/// The figure with the access and its cost in the note of the last panel.
fn noted(mut figure: Figure<'static>, access: &Access, cost: &str) -> Figure<'static> {
    if let Some(Some(panel)) = figure.table.last_mut().and_then(|row| row.first_mut()) {
        panel.note = format!("{}: {cost}", access_text(access));
    }
    figure.of_source(access.pattern().to_string())
}

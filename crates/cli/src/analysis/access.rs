//! `tilewright access`: sectors, lines and vector widths of accesses to global memory, and boxes of
//! TMA copies.

use clap::{Args, ValueEnum};
use serde_json::json;
use tilewright::Layout;
use tilewright::analysis::{Access, GlobalReport, RequestUnits, Storage, Widths, global_access, request_units, widths};
use tilewright::atoms::{SwizzleMode, TensorMap};
use tilewright::draw::Figure;
use tilewright::explain::requests::{access_text, count, request_text, sectors, sectors_text, touched_sectors};

use super::options::Lanes;
use super::{access_json, accesses, line_json, storage, strip};
use crate::json::Json;
use crate::output::{Failure, SCALE, Saving};
use crate::picture::{Paint, painted};
use crate::reader::Reader;
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub struct AccessOptions {
    #[command(flatten)]
    lanes: Lanes,
    /// The request to show; the first of the worst ones if it is not given.
    #[arg(long, value_name = "N")]
    request: Option<usize>,
    /// The shape of a box that a bulk copy moves.
    #[arg(long = "box", value_name = "SHAPE")]
    boxed: Option<String>,
    /// Layout of the box in shared memory, before the swizzle; row-major by default.
    #[arg(long, value_name = "LAYOUT", requires = "boxed")]
    shared: Option<String>,
    /// The swizzle of the bulk copy.
    #[arg(long, value_enum, default_value = "none", requires = "boxed")]
    swizzle: SwizzleName,
    #[command(flatten)]
    saving: Saving,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SwizzleName {
    None,
    #[value(name = "32")]
    Bytes32,
    #[value(name = "64")]
    Bytes64,
    #[value(name = "128")]
    Bytes128,
}

/// An access and its analysis.
struct AnalyzedAccess {
    access: Access,
    report: GlobalReport,
    widths: Widths,
    number: usize,
    units: RequestUnits,
}

pub fn run(layout: &str, options: &AccessOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let picture_file = options.saving.file()?;
    let mut reader = Reader::default();
    let storage = storage(layout, Some(options.lanes.width), &mut reader)?;
    let accesses = accesses(&options.lanes, storage.shape(), &mut reader)?;
    let boxed = match &options.boxed {
        Some(boxed) => Some(bulk(layout, boxed, options, &mut reader)?),
        None => None,
    };
    let mut all = Vec::new();
    for access in accesses {
        let report = global_access(&storage, &access)?;
        let number = options.request.unwrap_or_else(|| report.worst());
        if number >= report.requests().len() {
            return Err(Failure::Usage(format!("--request {number}: there are {} requests", report.requests().len())));
        }
        let units = request_units(&storage, &access, number)?;
        let widths = widths(&storage, &access)?;
        all.push(AnalyzedAccess { access, report, widths, number, units });
    }
    if let Some(file) = picture_file {
        let style = options.saving.style();
        let figures = all.iter().map(|found| sectors(&found.access, &found.report, found.number, &found.units, style));
        let mut figure = figures.reduce(Figure::above).unwrap_or_default();
        figure.title = storage.text().to_owned();
        return options.saving.save(&figure, file, SCALE, terminal);
    }
    for (position, found) in all.iter().enumerate() {
        if terminal.json {
            terminal.object(&json(&storage, found, boxed.as_ref()))?;
            continue;
        }
        let gap = if position > 0 { "\n" } else { "" };
        let text = text(&storage, found, terminal);
        terminal.prose(&format!("{gap}{text}"))?;
    }
    if let Some(map) = boxed.filter(|_| !terminal.json) {
        terminal.text(&format!("\n{}\n", bulk_text(&map)))?;
    }
    Ok(())
}

/// The TMA copy of boxes of a layout, if the hardware supports it.
fn bulk(layout: &str, boxed: &str, options: &AccessOptions, reader: &mut Reader) -> Result<TensorMap, Failure> {
    let (global, shape) = (reader.layout(layout)?, reader.shape(boxed)?);
    let shared = match &options.shared {
        Some(shared) => reader.layout(shared)?,
        None => Layout::row_major(&shape)?,
    };
    let swizzle = match options.swizzle {
        SwizzleName::None => SwizzleMode::None,
        SwizzleName::Bytes32 => SwizzleMode::Bytes32,
        SwizzleName::Bytes64 => SwizzleMode::Bytes64,
        SwizzleName::Bytes128 => SwizzleMode::Bytes128,
    };
    Ok(TensorMap::new(&global, &shape, &shared, options.lanes.width, swizzle)?)
}

fn bulk_text(map: &TensorMap) -> String {
    let boxes: Vec<String> = map.dimensions().iter().map(|dimension| dimension.boxed.to_string()).collect();
    format!("bulk copy: {} of a box of {} elements", count(map.copies(), "copy"), boxes.join(" x "))
}

fn text(storage: &Storage, found: &AnalyzedAccess, terminal: &Terminal) -> String {
    let AnalyzedAccess { access, report, widths, .. } = found;
    let colour = terminal.colour;
    let good = if report.sectors() == report.ideal() { Paint::Good } else { Paint::Bad };
    let mut text = format!("{}\n", painted(storage.text(), Paint::Strong, colour));
    let mut line = |name: &str, what: &str| text.push_str(&format!("  {name:<10} {what}\n"));
    line("elements", &format!("{} bits", access.bits()));
    line("access", &access_text(access));
    let requests = count(report.requests().len() as i64, "request");
    line(
        "requests",
        &format!("{requests}: {} in {}", count(report.sectors(), "sector"), count(report.lines(), "line")),
    );
    line("widest", &widest(access, widths));
    line("verdict", &painted(&sectors_text(report), good, colour));
    text.push_str(&format!("\n  {}\n\n", request_text(found.number, report)));
    text.push_str(&strip(&touched_sectors(access, &found.units), terminal.window()));
    text
}

/// The widest possible loads, in words.
fn widest(access: &Access, widths: &Widths) -> String {
    let all = widths.all();
    let aligned = match widths.alignment {
        Some(bytes) => format!("vectors begin at multiples of {}", count(bytes, "byte")),
        None => "vectors begin at byte 0".to_owned(),
    };
    let best = widths.threads.iter().copied().max().unwrap_or(all);
    let some = if best > all { format!(", {best} in some threads") } else { String::new() };
    format!("{} ({}) at once{some}; {aligned}", count(all, "element"), count(all * access.bits() / 8, "byte"))
}

fn json(storage: &Storage, found: &AnalyzedAccess, boxed: Option<&TensorMap>) -> Json {
    let AnalyzedAccess { access, report, widths, number, units } = found;
    let mut object = json!({
        "layout": storage.text(),
        "access": access_json(access),
        "requests": report.requests().len(),
        "bytes": report.bytes(),
        "sectors": report.sectors(),
        "ideal": report.ideal(),
        "lines": report.lines(),
        "widest": widths.all(),
        "alignment": widths.alignment,
        "efficiency": report.efficiency(),
    });
    if let Some(request) = report.requests().get(*number) {
        object["request"] = json!({
            "number": number,
            "group": request.group,
            "instruction": request.instruction,
            "lanes": request.lanes,
            "bytes": request.bytes,
            "sectors": request.sectors,
            "lines": request.lines,
            "starts": units.lines.iter().map(|line| line_json(line)).collect::<Vec<_>>(),
            "touches": units.units.iter().map(|unit| json!([unit.lane, unit.line, unit.byte])).collect::<Vec<_>>(),
        });
    }
    if let Some(map) = boxed {
        let dimensions = map.dimensions().iter().map(
            |dimension| json!({ "extent": dimension.extent, "stride": dimension.stride, "boxed": dimension.boxed }),
        );
        object["bulk"] = json!({ "dimensions": dimensions.collect::<Vec<_>>(), "copies": map.copies() });
    }
    object
}

//! `tilewright banks`: conflicts of accesses to shared memory, phase by phase.

use clap::Args;
use serde_json::json;
use tilewright::analysis::{Access, BankConflict, BankReport, Banks, PhaseHits, Storage, bank_conflicts, phase_hits};
use tilewright::draw::{Figure, Style};
use tilewright::explain::requests::{access_text, conflicts, conflicts_text, count, phase_text, touched_banks};

use super::options::{Lanes, Memory};
use super::{access_json, accesses, line_json, ranges, storage, strip};
use crate::json::Json;
use crate::output::{Failure, SCALE, Saving};
use crate::picture::{Paint, painted};
use crate::reader::Reader;
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub struct BanksOptions {
    #[command(flatten)]
    lanes: Lanes,
    #[command(flatten)]
    memory: Memory,
    /// The phase to show; the first of the worst ones if it is not given.
    #[arg(long, value_name = "N")]
    phase: Option<usize>,
    #[command(flatten)]
    saving: Saving,
}

/// An access and its analysis.
pub struct AnalyzedBanks {
    pub access: Access,
    pub report: BankReport,
    pub number: usize,
    pub hits: PhaseHits,
}

pub fn run(layout: &str, options: &BanksOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let picture_file = options.saving.file()?;
    let mut reader = Reader::default();
    let storage = storage(layout, Some(options.lanes.width), &mut reader)?;
    let accesses = accesses(&options.lanes, storage.shape(), &mut reader)?;
    let banks = options.memory.banks()?;
    let mut all = Vec::new();
    for access in accesses {
        let report = bank_conflicts(&storage, &access, banks)?;
        let number = options.phase.unwrap_or_else(|| report.worst());
        if number >= report.phases().len() {
            return Err(Failure::Usage(format!("--phase {number}: there are {} phases", report.phases().len())));
        }
        let hits = phase_hits(&storage, &access, banks, number)?;
        all.push(AnalyzedBanks { access, report, number, hits });
    }
    if let Some(file) = picture_file {
        let figures = all.iter().map(|found| found.picture(banks, options.saving.style()));
        let mut figure = figures.reduce(Figure::above).unwrap_or_default();
        figure.title = storage.text().to_owned();
        return options.saving.save(&figure, file, SCALE, terminal);
    }
    for (position, found) in all.iter().enumerate() {
        if terminal.json {
            terminal.object(&json(&storage, found, banks))?;
            continue;
        }
        let gap = if position > 0 { "\n" } else { "" };
        let text = text(&storage, found, banks, terminal);
        terminal.prose(&format!("{gap}{text}"))?;
    }
    Ok(())
}

impl AnalyzedBanks {
    pub fn picture(&self, banks: Banks, style: Style) -> Figure<'static> {
        conflicts(&self.access, &self.report, self.number, &self.hits, banks, style)
    }
}

fn text(storage: &Storage, found: &AnalyzedBanks, banks: Banks, terminal: &Terminal) -> String {
    let AnalyzedBanks { access, report, number, hits } = found;
    let colour = terminal.colour;
    let good = if report.is_conflict_free() { Paint::Good } else { Paint::Bad };
    let mut text = format!("{}\n", painted(storage.text(), Paint::Strong, colour));
    let mut line = |name: &str, what: &str| text.push_str(&format!("  {name:<10} {what}\n"));
    line("elements", &format!("{} bits, in {} banks of {} bytes", access.bits(), banks.count(), banks.bytes()));
    line("access", &access_text(access));
    let lanes = report.phases().first().map_or(0, |phase| phase.lanes);
    let degrees: Vec<String> =
        report.degrees().iter().map(|(degree, phases)| format!("{phases} of degree {degree}")).collect();
    line("phases", &format!("{}, each of {}: {}", report.phases().len(), count(lanes, "lane"), degrees.join(", ")));
    line("verdict", &painted(&conflicts_text(report), good, colour));
    text.push_str(&format!("\n  {}\n\n", phase_text(*number, &hits.phase)));
    text.push_str(&strip(&touched_banks(hits, banks), terminal.window()));
    let collisions = hits.collisions();
    if !collisions.is_empty() {
        text.push('\n');
    }
    for group in collisions.chunk_by(|a, b| lanes_of(a) == lanes_of(b) && a.bank + 1 == b.bank) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let banks = ranges(&(first.bank..=last.bank).collect::<Vec<_>>());
        let waits: Vec<String> = lanes_of(first).iter().map(|lanes| ranges(lanes)).collect();
        let plural = if first.bank == last.bank { "bank" } else { "banks" };
        text.push_str(&format!("  {plural} {banks}: lanes {}\n", waits.join(" | ")));
    }
    text
}

fn lanes_of(collision: &BankConflict) -> Vec<&[i64]> {
    collision.words.iter().map(|(_, lanes)| lanes.as_slice()).collect()
}

fn json(storage: &Storage, found: &AnalyzedBanks, banks: Banks) -> Json {
    let AnalyzedBanks { access, report, number, hits } = found;
    let degrees: Vec<_> = report.degrees().iter().map(|(degree, phases)| json!([degree, phases])).collect();
    let collisions: Vec<Json> = hits.collisions().iter().map(collision_json).collect();
    json!({
        "layout": storage.text(),
        "access": access_json(access),
        "banks": banks.count(),
        "bank_bytes": banks.bytes(),
        "degree": report.degree(),
        "wavefronts": report.wavefronts(),
        "ideal": report.ideal(),
        "conflict_free": report.is_conflict_free(),
        "phases": report.phases().len(),
        "degrees": degrees,
        "phase": {
            "number": number,
            "group": hits.phase.group,
            "instruction": hits.phase.instruction,
            "first": hits.phase.first,
            "lanes": hits.phase.lanes,
            "words": hits.phase.words,
            "degree": hits.phase.degree,
            "ideal": hits.phase.ideal,
            "lines": hits.lines.iter().map(|line| line_json(line)).collect::<Vec<_>>(),
            "hits": hits.hits.iter().map(|hit| json!([hit.bank, hit.line, hit.lane])).collect::<Vec<_>>(),
            "collisions": collisions,
        },
    })
}

fn collision_json(collision: &BankConflict) -> Json {
    let words = collision.words.iter().map(|(line, lanes)| json!({ "line": line, "lanes": lanes }));
    json!({ "bank": collision.bank, "words": words.collect::<Vec<_>>() })
}

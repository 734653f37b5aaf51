//! `tilewright suggest`: the swizzle, padding or order of threads that makes accesses cheaper.

use clap::Args;
use serde_json::json;
use tilewright::analysis::{
    Access, Advice, BankReport, Banks, Proof, Remedy, Storage, Suggestion, phase_hits, suggest,
};
use tilewright::draw::Figure;
use tilewright::explain::requests::{access_text, bytes_or_elements, conflicts_text, count};
use tilewright::layout::{AnyLayout, Composed, Swizzle};

use super::banks::AnalyzedBanks;
use super::options::{Lanes, Memory};
use super::{access_json, accesses, tile};
use crate::json::{Json, extend};
use crate::output::{Failure, SCALE, Saving};
use crate::picture::{Paint, painted};
use crate::reader::{self, Reader};
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub struct SuggestOptions {
    #[command(flatten)]
    lanes: Lanes,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    saving: Saving,
}

pub fn run(layout: &str, options: &SuggestOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let picture_file = options.saving.file()?;
    let mut reader = Reader::default();
    let tile = tile(layout, &mut reader)?;
    reader::check_width(options.lanes.width)?;
    if let Some(said) = bytes_or_elements(&AnyLayout::from(tile.clone()), options.lanes.width) {
        reader::say(said);
    }
    let before = Storage::from(&tile);
    let accesses = accesses(&options.lanes, before.shape(), &mut reader)?;
    let banks = options.memory.banks()?;
    let advice = suggest(tile.clone(), &accesses, banks)?;
    if let Some(file) = picture_file {
        let Some(best) = advice.suggestions.first() else {
            return Err(Failure::Value("there is nothing to draw: no change costs less".to_owned()));
        };
        let figure = before_and_after(&tile, best, &accesses, &advice, banks, &options.saving)?;
        return options.saving.save(&figure, file, SCALE, terminal);
    }
    if terminal.json {
        return Ok(terminal.object(&json(&text_of(&tile), &accesses, &advice, options.lanes.width))?);
    }
    let text = text(&text_of(&tile), &accesses, &advice, banks, terminal.colour);
    Ok(terminal.prose(&text)?)
}

/// The worst phase of the most expensive access, before and after a change.
fn before_and_after(
    tile: &Composed,
    best: &Suggestion,
    accesses: &[Access],
    advice: &Advice,
    banks: Banks,
    saving: &Saving,
) -> Result<Figure<'static>, Failure> {
    let worst = (0..accesses.len()).rev().max_by_key(|at| advice.before.get(*at).map_or(0, BankReport::degree));
    let number = worst.unwrap_or(0);
    let mut figure = Figure::default();
    for (storage, reports, changed) in
        [(Storage::from(tile), &advice.before, false), (Storage::from(&best.layout), &best.reports, true)]
    {
        let (Some(old), Some(report), Some(first)) =
            (accesses.get(number), reports.get(number), advice.before.get(number))
        else {
            continue;
        };
        let access = match &best.remedy {
            Remedy::Threads { access, pattern } if changed && *access == number => {
                Access::new(old.name(), pattern, old.bits(), old.vector())?
            }
            _ => old.clone(),
        };
        let phase = first.worst();
        let hits = phase_hits(&storage, &access, banks, phase)?;
        let found = AnalyzedBanks { access, report: report.clone(), number: phase, hits };
        let mut half = found.picture(banks, saving.style());
        if let Some(Some(panel)) = half.table.first_mut().and_then(|row| row.first_mut()) {
            let text = if changed { best.text() } else { text_of(tile) };
            panel.heading = format!("{text} — {}", panel.heading);
        }
        figure = if changed { figure.above(half) } else { half };
    }
    figure.title = format!("Before and after: {}", name(&best.remedy, accesses));
    Ok(figure)
}

/// The text of a tile: that of a plain layout if it is one.
fn text_of(tile: &Composed) -> String {
    match tile.outer().is_identity() && *tile.offset() == 0 {
        true => tile.inner().to_string(),
        false => tile.to_string(),
    }
}

/// A short description of a change.
fn name(remedy: &Remedy, accesses: &[Access]) -> String {
    match remedy {
        Remedy::Swizzle(swizzle) => format!("swizzle {swizzle}"),
        Remedy::Linear(matrix) => format!("map of bits {matrix}"),
        Remedy::Padding { stride, elements } => {
            format!("{} more at each multiple of {stride}", count(*elements, "element"))
        }
        Remedy::Threads { access, pattern } => {
            let name = accesses.get(*access).map_or("an access", Access::name);
            format!("other threads for {name}: {pattern}")
        }
        _ => "a change".to_owned(),
    }
}

fn kind(remedy: &Remedy) -> &'static str {
    match remedy {
        Remedy::Swizzle(_) => "swizzle",
        Remedy::Linear(_) => "linear map",
        Remedy::Padding { .. } => "padding",
        Remedy::Threads { .. } => "threads",
        _ => "other",
    }
}

fn proof(suggestion: &Suggestion) -> &'static str {
    match (suggestion.proof, &suggestion.remedy) {
        (Proof::Bound | Proof::Exhausted, Remedy::Threads { .. }) => "as few for this access as its words need",
        (Proof::Bound, _) => "as few as the words need, so nothing does better",
        (Proof::Exhausted, Remedy::Swizzle(_)) => "the best of all swizzles",
        (Proof::Exhausted, Remedy::Linear(_)) => "the best of all linear maps over bits",
        (Proof::Exhausted, Remedy::Padding { .. }) => "the best of all paddings of one stride",
        _ => "not shown to be the best",
    }
}

/// The same swizzle in bytes.
fn in_bytes(swizzle: Swizzle, width: i64) -> Option<Swizzle> {
    let more = i64::from((width / 8).max(1).trailing_zeros());
    Swizzle::checked(swizzle.bits(), swizzle.base() + more, swizzle.shift()).filter(|_| width % 8 == 0)
}

fn text(tile: &str, accesses: &[Access], advice: &Advice, banks: Banks, colour: bool) -> String {
    let bits = accesses.first().map_or(0, Access::bits);
    let mut text = format!("{}\n", painted(tile, Paint::Strong, colour));
    text.push_str(&format!("  elements   {bits} bits, in {} banks of {} bytes\n", banks.count(), banks.bytes()));
    for (access, report) in accesses.iter().zip(&advice.before) {
        text.push_str(&format!("  access     {}\n             {}\n", access_text(access), conflicts_text(report)));
    }
    if advice.suggestions.is_empty() {
        let told = if advice.wavefronts() <= advice.ideal() {
            "nothing to gain: no phase takes more wavefronts than it must"
        } else {
            "no swizzle, linear map, padding or order of threads costs less"
        };
        text.push_str(&format!("\n  {}\n", painted(told, Paint::Good, colour)));
        return text;
    }
    for suggestion in &advice.suggestions {
        let mut title = name(&suggestion.remedy, accesses);
        if let Remedy::Swizzle(swizzle) = suggestion.remedy
            && let Some(bytes) = in_bytes(swizzle, bits).filter(|bytes| *bytes != swizzle)
        {
            title.push_str(&format!(", of bytes {bytes}"));
        }
        text.push_str(&format!("\n  {}\n", painted(&title, Paint::Strong, colour)));
        if !matches!(suggestion.remedy, Remedy::Threads { .. }) {
            text.push_str(&format!("    tile     {}\n", suggestion.text()));
        }
        let (before, after) = (advice.wavefronts(), suggestion.wavefronts());
        text.push_str(&format!(
            "    cost     {} instead of {before}: {}\n",
            count(after, "wavefront"),
            proof(suggestion)
        ));
        if suggestion.extra != 0 {
            text.push_str(&format!("    memory   {} more\n", count(suggestion.extra, "element")));
        }
    }
    text
}

fn json(tile: &str, accesses: &[Access], advice: &Advice, width: i64) -> Json {
    let costs = |reports: &[BankReport]| reports.iter().map(BankReport::wavefronts).collect::<Vec<_>>();
    let suggestions = advice.suggestions.iter().map(|suggestion| {
        let mut object = json!({ "kind": kind(&suggestion.remedy) });
        let change = match &suggestion.remedy {
            Remedy::Swizzle(swizzle) => {
                let bytes = in_bytes(*swizzle, width).map(|bytes| bytes.to_string());
                json!({ "swizzle": swizzle.to_string(), "bytes": bytes })
            }
            Remedy::Linear(matrix) => json!({ "matrix": matrix.to_string() }),
            Remedy::Padding { stride, elements } => json!({ "stride": stride, "elements": elements }),
            Remedy::Threads { access, pattern } => json!({ "access": access, "pattern": pattern.to_string() }),
            _ => json!({}),
        };
        extend(&mut object, change);
        let proof = match suggestion.proof {
            Proof::Bound => "bound",
            Proof::Exhausted => "exhausted",
            Proof::Open => "open",
        };
        let result = json!({
            "layout": suggestion.text(),
            "wavefronts": suggestion.wavefronts(),
            "each": costs(&suggestion.reports),
            "extra": suggestion.extra,
            "proof": proof,
        });
        extend(&mut object, result);
        object
    });
    json!({
        "layout": tile,
        "accesses": accesses.iter().map(access_json).collect::<Vec<_>>(),
        "wavefronts": advice.wavefronts(),
        "ideal": advice.ideal(),
        "each": costs(&advice.before),
        "suggestions": suggestions.collect::<Vec<_>>(),
    })
}

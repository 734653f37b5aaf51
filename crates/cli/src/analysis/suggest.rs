//! `tilewright suggest`: the swizzle, padding or order of threads with which accesses cost less.

use std::io::Write;

use clap::Args;
use tilewright::analysis::{
    Access, Advice, BankReport, Banks, Proof, Remedy, Storage, Suggestion, phase_hits, suggest,
};
use tilewright::draw::Figure;
use tilewright::layout::{Composed, Swizzle};

use super::banks::{Found, picture, verdict};
use super::options::{Answer, Lanes, Memory};
use super::{Reader, Stop, access_json, access_text, count, told, usage};
use crate::json::Object;
use crate::picture::{Paint, painted};
use crate::terminal::{Failure, Terminal};

#[derive(Debug, Args)]
pub struct Options {
    #[command(flatten)]
    lanes: Lanes,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    answer: Answer,
}

pub fn run(layout: &str, options: &Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let done = advised(layout, options, terminal);
    told(done, options.answer.json, terminal)
}

fn advised(layout: &str, options: &Options, terminal: &mut Terminal) -> Result<(), Stop> {
    let mut reader = Reader::new(terminal);
    let tile = reader.tile(layout)?;
    let before = Storage::from(&tile);
    let accesses = reader.accesses(&options.lanes, before.shape())?;
    let banks = options.memory.banks()?;
    let advice = suggest(tile.clone(), &accesses, banks)?;
    if let Some((file, style)) = options.answer.picture()? {
        let Some(best) = advice.suggestions.first() else {
            return Err(usage("there is nothing to draw: no phase takes more wavefronts than it must"));
        };
        // The access that is worst as the tile is.
        let worst = (0..accesses.len()).rev().max_by_key(|at| advice.before.get(*at).map_or(0, BankReport::degree));
        let number = worst.unwrap_or(0);
        let after = Storage::from(&best.layout);
        let mut figures: Vec<Figure<'_>> = Vec::new();
        for (storage, reports) in [(&before, &advice.before), (&after, &best.reports)] {
            let access = match &best.remedy {
                Remedy::Threads { access, pattern } if *access == number && std::ptr::eq(storage, &after) => {
                    let old = &accesses[number];
                    Access::new(old.name(), pattern, old.bits(), old.vector())?
                }
                _ => accesses[number].clone(),
            };
            let report = reports[number].clone();
            let phase = advice.before[number].worst();
            let hits = phase_hits(storage, &access, banks, phase)?;
            let found = Found { access, report, number: phase, hits };
            let mut figure = picture(&found, banks, style);
            if let Some(Some(panel)) = figure.table.first_mut().and_then(|row| row.first_mut()) {
                let text = if std::ptr::eq(storage, &before) { text_of(&tile) } else { best.text() };
                panel.heading = format!("{text} — {}", panel.heading);
            }
            figures.push(figure);
        }
        if let Some(first) = figures.first_mut() {
            first.title = format!("Before and after: {}", name(&best.remedy, &accesses));
        }
        return options.answer.save(figures, file);
    }
    if options.answer.json {
        return Ok(writeln!(terminal.out, "{}", json(&text_of(&tile), &accesses, &advice, options.lanes.width))?);
    }
    let text = text(&text_of(&tile), &accesses, &advice, banks, terminal.colour);
    Ok(terminal.out.write_all(text.as_bytes())?)
}

/// A tile as it is written: a layout where it is one.
fn text_of(tile: &Composed) -> String {
    match tile.outer().is_identity() && *tile.offset() == 0 {
        true => tile.inner().to_string(),
        false => tile.to_string(),
    }
}

/// A change in few words.
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
        (Proof::Bound, Remedy::Threads { .. }) => "as few for this access as its words need",
        (Proof::Bound, _) => "as few as the words need, so nothing does better",
        (Proof::Exhausted, Remedy::Swizzle(_)) => "the best of all swizzles",
        (Proof::Exhausted, Remedy::Linear(_)) => "the best of all linear maps over bits",
        (Proof::Exhausted, Remedy::Padding { .. }) => "the best of all paddings of one stride",
        _ => "not shown to be the best",
    }
}

/// The same swizzle of bytes.
fn in_bytes(swizzle: Swizzle, width: i64) -> Option<Swizzle> {
    let more = i64::from((width / 8).max(1).trailing_zeros());
    Swizzle::checked(swizzle.bits(), swizzle.base() + more, swizzle.shift()).filter(|_| width % 8 == 0)
}

fn text(tile: &str, accesses: &[Access], advice: &Advice, banks: Banks, colour: bool) -> String {
    let bits = accesses.first().map_or(0, Access::bits);
    let mut text = format!("{}\n", painted(tile, Paint::Strong, colour));
    text.push_str(&format!("  elements   {bits} bits, in {} banks of {} bytes\n", banks.count(), banks.bytes()));
    for (access, report) in accesses.iter().zip(&advice.before) {
        text.push_str(&format!("  access     {}\n             {}\n", access_text(access), verdict(report)));
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

fn json(tile: &str, accesses: &[Access], advice: &Advice, width: i64) -> String {
    let mut object = Object::new();
    object.text("layout", tile);
    object.list("accesses", accesses.iter().map(access_json));
    let costs =
        |reports: &[BankReport]| reports.iter().map(|report| report.wavefronts().to_string()).collect::<Vec<_>>();
    object.raw("wavefronts", &advice.wavefronts().to_string());
    object.raw("ideal", &advice.ideal().to_string());
    object.list("each", costs(&advice.before));
    let suggestions = advice.suggestions.iter().map(|suggestion| {
        let mut object = Object::new();
        object.text("kind", kind(&suggestion.remedy));
        match &suggestion.remedy {
            Remedy::Swizzle(swizzle) => {
                object.text("swizzle", &swizzle.to_string());
                match in_bytes(*swizzle, width) {
                    Some(bytes) => object.text("bytes", &bytes.to_string()),
                    None => object.raw("bytes", "null"),
                }
            }
            Remedy::Linear(matrix) => object.text("matrix", &matrix.to_string()),
            Remedy::Padding { stride, elements } => {
                object.raw("stride", &stride.to_string());
                object.raw("elements", &elements.to_string());
            }
            Remedy::Threads { access, pattern } => {
                object.raw("access", &access.to_string());
                object.text("pattern", &pattern.to_string());
            }
            _ => {}
        }
        object.text("layout", &suggestion.text());
        object.raw("wavefronts", &suggestion.wavefronts().to_string());
        object.list("each", costs(&suggestion.reports));
        object.raw("extra", &suggestion.extra.to_string());
        object.text(
            "proof",
            match suggestion.proof {
                Proof::Bound => "bound",
                Proof::Exhausted => "exhausted",
                Proof::Open => "open",
            },
        );
        object.end()
    });
    let suggestions: Vec<String> = suggestions.collect();
    object.list("suggestions", suggestions);
    object.end()
}

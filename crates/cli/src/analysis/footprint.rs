//! `tilewright footprint`: the memory that a layout covers, its cycles, and its difference from
//! another layout.

use clap::Args;
use serde_json::json;
use tilewright::analysis::{Distance, Footprint, Permutation, Storage, distance, footprint, permutation};
use tilewright::draw::{self, Figure, Style};
use tilewright::explain::requests::count;

use super::storage;
use crate::draw::map_of;
use crate::json::Json;
use crate::output::{Failure, SCALE, Saving};
use crate::picture::{Paint, painted};
use crate::reader::Reader;
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub struct FootprintOptions {
    /// List the cycles of the permutation that the layout is.
    #[arg(long)]
    cycles: bool,
    #[command(flatten)]
    saving: Saving,
}

/// The number of addresses in a row of the picture.
const ADDRESSES: i64 = 32;
/// The number of gaps and cycles that are listed in text.
const SHOWN: usize = 8;

pub fn run(
    layout: &str,
    other: Option<&str>,
    options: &FootprintOptions,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let mut reader = Reader::default();
    if let Some(file) = options.saving.file()? {
        let style = options.saving.style();
        let figures = [Some(layout), other].into_iter().flatten().map(|source| image(source, style, &mut reader));
        let figures = figures.collect::<Result<Vec<_>, _>>()?;
        let figure = figures.into_iter().reduce(Figure::above).unwrap_or_default();
        return options.saving.save(&figure, file, SCALE, terminal);
    }
    let storage_of = storage(layout, None, &mut reader)?;
    let apart = match other {
        Some(other) => {
            let other = storage(other, None, &mut reader)?;
            let apart = distance(&storage_of, &other)?;
            Some((other, apart))
        }
        None => None,
    };
    let found = footprint(&storage_of)?;
    // A layout need not be a permutation; this is an error only if cycles are requested.
    let permuted = match permutation(&storage_of) {
        Ok(permuted) => Some(permuted),
        Err(error) if options.cycles => return Err(error.into()),
        Err(_) => None,
    };
    if terminal.json {
        let object = json(&storage_of, &found, permuted.as_ref(), apart.as_ref(), options.cycles);
        return Ok(terminal.object(&object)?);
    }
    let text = text(&storage_of, &found, permuted.as_ref(), apart.as_ref(), options.cycles, terminal.colour);
    Ok(terminal.prose(&text)?)
}

/// A picture of a layout over the memory that it covers, with its gaps and with the addresses of
/// several indices.
fn image(source: &str, style: Style, reader: &mut Reader) -> Result<Figure<'static>, Failure> {
    let read = reader.call(source)?;
    let mut figure = draw::memory(&read.value.to_string(), &map_of(&read)?, ADDRESSES, style)?;
    // With two layouts, the footprint of each is in the caption of its own picture.
    let told = std::mem::take(&mut figure.caption);
    if let Some(Some(panel)) = figure.table.first_mut().and_then(|row| row.first_mut()) {
        panel.note = told;
    }
    Ok(figure.of_source(source))
}

fn text(
    storage: &Storage,
    found: &Footprint,
    permuted: Option<&Permutation>,
    apart: Option<&(Storage, Distance)>,
    cycles: bool,
    colour: bool,
) -> String {
    let mut text = format!("{}\n", painted(storage.text(), Paint::Strong, colour));
    let mut line = |name: &str, what: &str| text.push_str(&format!("  {name:<12} {what}\n"));
    let same = if found.offsets == found.indices { "each once".to_owned() } else { count(found.offsets, "offset") };
    line("elements", &format!("{} at offsets {} to {}: {same}", found.indices, found.least, found.greatest));
    if let Some((first, second)) = found.alias {
        let reuse = (found.reuse() * 100.0).round() / 100.0;
        line("reuse", &format!("{reuse} a place, at most {}; indices {first} and {second} share one", found.shared));
    }
    line(
        "span",
        &format!(
            "{}, {} left out",
            count(found.span(), "place"),
            if found.holes() == 0 { "none".into() } else { found.holes().to_string() }
        ),
    );
    if !found.gaps.is_empty() {
        let listed: Vec<String> = found
            .gaps
            .iter()
            .take(SHOWN)
            .map(|(start, len)| match len {
                1 => start.to_string(),
                _ => format!("{start}-{}", start + len - 1),
            })
            .collect();
        let more =
            if found.gaps.len() > SHOWN { format!(" and {} more", found.gaps.len() - SHOWN) } else { String::new() };
        line("gaps", &format!("{}{more}", listed.join(", ")));
    }
    line("contiguity", &format!("runs of {}", count(found.contiguity, "element")));
    line("order", if found.ascending { "ascending" } else { "not ascending" });
    if let Some(permuted) = permuted {
        let order = permuted.order().map_or("more than 64 bits hold".to_owned(), |order| order.to_string());
        let parity = if permuted.is_even() { "even" } else { "odd" };
        line(
            "permutation",
            &format!("{}, {parity}, of order {order}; {} stay", count(permuted.swaps(), "swap"), permuted.fixed()),
        );
        if cycles {
            let moving = || permuted.cycles().iter().filter(|cycle| cycle.len() > 1);
            for cycle in moving().take(SHOWN) {
                let listed: Vec<String> = cycle.iter().take(2 * SHOWN).map(i64::to_string).collect();
                let more =
                    if cycle.len() > 2 * SHOWN { format!(" .. ({} in all)", cycle.len()) } else { String::new() };
                line("cycle", &format!("{}{more}", listed.join(" -> ")));
            }
            let rest = moving().count().saturating_sub(SHOWN);
            if rest > 0 {
                line("", &format!("and {}", count(rest as i64, "more cycle")));
            }
        }
    }
    if let Some((other, apart)) = apart {
        let runs = if apart.moved > 0 { format!(", in {}", count(apart.runs, "run")) } else { String::new() };
        line("to", other.text());
        line("moved", &format!("{} of {}{runs}; at most {} away", apart.moved, apart.indices, apart.farthest));
        if let Some(swaps) = apart.swaps {
            line("in place", &count(swaps, "swap"));
        }
    }
    text
}

fn json(
    storage: &Storage,
    found: &Footprint,
    permuted: Option<&Permutation>,
    apart: Option<&(Storage, Distance)>,
    cycles: bool,
) -> Json {
    let permutation = permuted.map(|permuted| {
        let mut object = json!({
            "swaps": permuted.swaps(),
            "even": permuted.is_even(),
            "order": permuted.order(),
            "fixed": permuted.fixed(),
        });
        if cycles {
            object["cycles"] = json!(permuted.cycles());
        }
        object
    });
    let mut object = json!({
        "layout": storage.text(),
        "indices": found.indices,
        "offsets": found.offsets,
        "least": found.least,
        "greatest": found.greatest,
        "span": found.span(),
        "holes": found.holes(),
        "shared": found.shared,
        "contiguity": found.contiguity,
        "reuse": found.reuse(),
        "ascending": found.ascending,
        "alias": found.alias.map(|(first, second)| [first, second]),
        "gaps": found.gaps.iter().map(|(start, len)| [start, len]).collect::<Vec<_>>(),
        "permutation": permutation,
    });
    if let Some((other, apart)) = apart {
        object["to"] = json!({
            "layout": other.text(),
            "moved": apart.moved,
            "runs": apart.runs,
            "farthest": apart.farthest,
            "first": apart.first,
            "swaps": apart.swaps,
        });
    }
    object
}

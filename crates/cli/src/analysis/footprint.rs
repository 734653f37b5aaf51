//! `tilewright footprint`: what a layout covers of memory, its cycles, and how far it is from another.

use std::io::Write;

use clap::Args;
use tilewright::analysis::{Distance, Footprint, Permutation, Storage, distance, footprint, permutation};
use tilewright::draw::{self, Figure, Style};

use super::options::Answer;
use super::{Reader, Stop, count, told};
use crate::draw::map_of;
use crate::json::Object;
use crate::picture::{Paint, painted};
use crate::terminal::{Failure, Terminal};

#[derive(Debug, Args)]
pub struct Options {
    /// List the cycles of the permutation that the layout is.
    #[arg(long)]
    cycles: bool,
    #[command(flatten)]
    answer: Answer,
}

/// The addresses to a row of the picture.
const ADDRESSES: i64 = 32;
/// How many gaps and cycles are listed in text.
const SHOWN: usize = 8;

pub fn run(layout: &str, other: Option<&str>, options: &Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let done = analysed(layout, other, options, terminal);
    told(done, options.answer.json, terminal)
}

fn analysed(layout: &str, other: Option<&str>, options: &Options, terminal: &mut Terminal) -> Result<(), Stop> {
    let mut reader = Reader::new(terminal);
    if let Some((file, style)) = options.answer.picture()? {
        let figures = [Some(layout), other].into_iter().flatten().map(|source| image(source, style, &mut reader));
        return options.answer.save(figures.collect::<Result<Vec<_>, _>>()?, file);
    }
    let storage = reader.storage(layout)?;
    let apart = match other {
        Some(other) => {
            let other = reader.storage(other)?;
            let apart = distance(&storage, &other)?;
            Some((other, apart))
        }
        None => None,
    };
    let found = footprint(&storage)?;
    // That a layout is no permutation is a fact, and refused only where cycles are asked for.
    let permuted = match permutation(&storage) {
        Ok(permuted) => Some(permuted),
        Err(error) if options.cycles => return Err(error.into()),
        Err(_) => None,
    };
    if options.answer.json {
        return Ok(writeln!(
            terminal.out,
            "{}",
            json(&storage, &found, permuted.as_ref(), apart.as_ref(), options.cycles)
        )?);
    }
    let text = text(&storage, &found, permuted.as_ref(), apart.as_ref(), options.cycles, terminal.colour);
    Ok(terminal.out.write_all(text.as_bytes())?)
}

/// A layout over the memory that it covers, with its gaps and what several of its indices share.
fn image(source: &str, style: Style, reader: &mut Reader<'_>) -> Result<Figure<'static>, Stop> {
    let value = reader.value(source)?;
    let mut figure = draw::memory(&value.to_string(), &map_of(&value)?, ADDRESSES, style)?;
    // Of two layouts, each says beside its own picture what it covers.
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
) -> String {
    let optional = |number: Option<i64>| number.map_or("null".to_owned(), |number| number.to_string());
    let mut object = Object::new();
    object.text("layout", storage.text());
    for (name, value) in [
        ("indices", found.indices),
        ("offsets", found.offsets),
        ("least", found.least),
        ("greatest", found.greatest),
        ("span", found.span()),
        ("holes", found.holes()),
        ("shared", found.shared),
        ("contiguity", found.contiguity),
    ] {
        object.raw(name, &value.to_string());
    }
    object.raw("reuse", &found.reuse().to_string());
    object.raw("ascending", if found.ascending { "true" } else { "false" });
    object.raw("alias", &found.alias.map_or("null".to_owned(), |(first, second)| format!("[{first},{second}]")));
    object.list("gaps", found.gaps.iter().map(|(start, len)| format!("[{start},{len}]")));
    match permuted {
        None => object.raw("permutation", "null"),
        Some(permuted) => {
            let mut inner = Object::new();
            inner.raw("swaps", &permuted.swaps().to_string());
            inner.raw("even", if permuted.is_even() { "true" } else { "false" });
            inner.raw("order", &optional(permuted.order()));
            inner.raw("fixed", &permuted.fixed().to_string());
            if cycles {
                inner.list(
                    "cycles",
                    permuted.cycles().iter().map(|cycle| {
                        let listed: Vec<String> = cycle.iter().map(i64::to_string).collect();
                        format!("[{}]", listed.join(","))
                    }),
                );
            }
            object.raw("permutation", &inner.end());
        }
    }
    if let Some((other, apart)) = apart {
        let mut inner = Object::new();
        inner.text("layout", other.text());
        for (name, value) in [("moved", apart.moved), ("runs", apart.runs), ("farthest", apart.farthest)] {
            inner.raw(name, &value.to_string());
        }
        inner.raw("first", &optional(apart.first));
        inner.raw("swaps", &optional(apart.swaps));
        object.raw("to", &inner.end());
    }
    object.end()
}

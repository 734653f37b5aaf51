//! The grid of devices that `jax.debug.visualize_array_sharding` draws.
//!
//! Law: a cell shows the devices that hold a part of the array, row by row and column by column,
//! all parts of one size. That is a sharding over tiles with a list of devices, as in XLA; several
//! devices in a cell hold copies. An array of one dimension has one row. The picture does not show
//! the shape, so the shape is a question.

use crate::reader::{Context, Found, Reader};
use crate::readers::sharding::of_tiles;
use crate::refused::{Missing, Refused};
use crate::system::System;

/// The reader.
pub const READER: Reader = Reader { system: System::Jax, signs: &["┌─"], read };

/// The largest indentation of a picture.
const INDENT: usize = 64;

/// The largest number of lines of a picture.
const MAX_LINES: usize = 512;

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    // A picture begins on a line of its own.
    let before = context.source.as_bytes().get(at.saturating_sub(INDENT)..at)?;
    let own = before.iter().rev().find(|byte| !matches!(byte, b' ' | b'\t'));
    if own.is_some_and(|byte| *byte != b'\n') || (own.is_none() && at > before.len()) {
        return None;
    }
    let mut end = at;
    let mut grid: Vec<Vec<Vec<i64>>> = Vec::new();
    let mut cells: Vec<Vec<i64>> = Vec::new();
    let mut closed = false;
    for line in context.source.get(at..)?.split_inclusive('\n').take(MAX_LINES) {
        let text = line.trim();
        let begin = text.chars().next()?;
        match begin {
            '┌' if end == at => {}
            '├' | '└' => {
                if !cells.is_empty() {
                    grid.push(std::mem::take(&mut cells));
                }
                closed = begin == '└';
            }
            '│' => {
                let parts = text.trim_matches('│').split('│');
                for (column, part) in parts.enumerate() {
                    if cells.len() <= column {
                        cells.push(Vec::new());
                    }
                    let numbers = part.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<i64>().ok());
                    cells.get_mut(column)?.extend(numbers);
                }
            }
            _ => break,
        }
        end += line.len();
        if closed {
            break;
        }
    }
    let devices = grid.iter().flatten().map(Vec::len);
    // These lines are also used for other pictures.
    let each = devices.clone().next().filter(|each| *each > 0)?;
    let end = at + context.source.get(at..end)?.trim_end().len();
    let span = at..end;
    let columns = grid.first()?.len();
    let even = closed && devices.clone().all(|own| own == each) && grid.iter().all(|row| row.len() == columns);
    if !even {
        let refused = Refused::damaged(span.clone(), "the grid of devices is cut off, or its cells are not alike");
        return Some(Found { span, answer: Err(refused) });
    }
    let list: Vec<String> = grid.iter().flatten().flatten().map(i64::to_string).collect();
    let tiles = |rank: usize| {
        let tiles = if rank == 1 { columns.to_string() } else { format!("{},{columns}", grid.len()) };
        match each {
            1 => format!("{{devices=[{tiles}]{}}}", list.join(",")),
            _ => format!("{{devices=[{tiles},{each}]{} last_tile_dim_replicate}}", list.join(",")),
        }
    };
    let answer = match &context.options.shape {
        None => Err(Refused::ask(Missing::Shape, "the grid of devices does not say the shape of the array")),
        Some(shape) if shape.len() == 2 || (shape.len() == 1 && grid.len() == 1) => {
            of_tiles(context, &tiles(shape.len()), span.clone())
        }
        Some(shape) => {
            let message =
                format!("the grid shows an array of one or two dimensions, and the shape has {}", shape.len());
            Err(Refused::contradiction(span.clone(), message))
        }
    };
    Some(Found { span, answer })
}

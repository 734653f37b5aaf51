//! `tilewright banks`, `access`, `suggest` and `footprint`: the memory costs of layouts.
//!
//! Shared code: evaluates a layout and the accesses to it.

pub mod access;
pub mod banks;
pub mod footprint;
mod options;
pub mod suggest;

use serde_json::json;
use tilewright::analysis::{Access, Storage};
use tilewright::draw::Touched;
use tilewright::explain::requests::{bytes_or_elements, no_access};
use tilewright::layout::{AnyLayout, Composed, Kind};
use tilewright::{Tree, Value};

use options::Lanes;

use crate::json::Json;
use crate::output::Failure;
use crate::picture::Window;
use crate::reader::{self, Reader, plain, unknown};

/// The storage of a layout.
fn storage(source: &str, width: Option<i64>, reader: &mut Reader) -> Result<Storage, Failure> {
    let value = reader.value(source)?;
    width.map_or(Ok(()), reader::check_width)?;
    if let (Value::Layout(layout), Some(width)) = (&value, width)
        && let Some(said) = bytes_or_elements(layout, width)
    {
        reader::say(said);
    }
    match value {
        Value::Layout(layout) if layout.kind() != Kind::Coordinate && layout.kind() != Kind::CoordinateComposed => {
            Ok(Storage::new(&layout)?)
        }
        Value::Swizzle(swizzle) => Ok(Storage::from(&swizzle.layout()?)),
        value => match plain(&value) {
            Some(layout) => Ok(Storage::from(&layout)),
            None => Err(Failure::not(source, &value, "a layout of offsets")),
        },
    }
}

/// A tile without parameters.
fn tile(source: &str, reader: &mut Reader) -> Result<Composed, Failure> {
    Ok(match reader.value(source)? {
        Value::Layout(AnyLayout::Composed(map)) => *map,
        Value::Swizzle(swizzle) => swizzle.layout()?,
        Value::Layout(AnyLayout::Xor(layout)) => layout.bit_matrix()?.to_composed(&layout.shape())?,
        value => match (plain(&value), unknown(source, &value)) {
            (Some(layout), _) => Composed::from(&layout),
            (None, Some(advice)) => {
                let why = "swizzles and paddings are compared by the banks of every offset";
                return Err(Failure::Value(format!("{why}; that can be done {advice}")));
            }
            (None, None) => return Err(Failure::not(source, &value, "a layout of offsets")),
        },
    })
}

/// The accesses on the command line. If there are none, the layout is taken as a thread-value
/// layout, and is the access itself.
fn accesses(lanes: &Lanes, shape: &Tree<i64>, reader: &mut Reader) -> Result<Vec<Access>, Failure> {
    let Lanes { width: bits, vector, access: specs } = lanes;
    if specs.is_empty() {
        return Ok(vec![Access::thread_values(shape, *bits, *vector)?]);
    }
    specs.iter().map(|spec| access(spec.trim(), shape, [*bits, *vector], reader)).collect()
}

fn access(spec: &str, shape: &Tree<i64>, [bits, vector]: [i64; 2], reader: &mut Reader) -> Result<Access, Failure> {
    if let Some(access) = Access::of_name(spec, shape, bits, vector)? {
        return Ok(access);
    }
    if let Some(why) = no_access(spec) {
        return Err(Failure::Usage(why));
    }
    Ok(Access::new(spec, &reader.layout(spec)?, bits, vector)?)
}

/// The fields that describe an access.
fn access_json(access: &Access) -> Json {
    json!({
        "name": access.name(),
        "pattern": access.pattern().to_string(),
        "bits": access.bits(),
        "vector": access.vector(),
        "bytes": access.bytes(),
        "lanes": access.lanes(),
        "threads": access.threads(),
        "instructions": access.instructions(),
    })
}

/// A line of memory as a number, or as text if it depends on a parameter.
fn line_json(line: &str) -> Json {
    line.parse::<i64>().map_or_else(|_| Json::from(line), Json::from)
}

/// Lanes as ranges: `0-7,9`.
fn ranges(numbers: &[i64]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let runs = runs.filter_map(|run| match (run.first()?, run.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first}-{last}")),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// The lines that lanes touch, one character for each word: the first lane that touches it, as `0`
/// to `9`, then `a` to `v`.
fn strip(touched: &Touched, window: Window) -> String {
    let lines = &touched.lines;
    let width = lines.iter().map(|line| line.len()).max().unwrap_or(0).max(4);
    let group = touched.group.max(1);
    let mut rows = vec![vec![None; usize::try_from(touched.words).unwrap_or(0)]; lines.len()];
    for touch in touched.touches.iter().rev() {
        let word = usize::try_from(touch.column).unwrap_or(usize::MAX);
        if let Some(place) = rows.get_mut(touch.line).and_then(|row| row.get_mut(word)) {
            *place = u32::try_from(touch.lane).ok();
        }
    }
    let mut text = format!("  {:>width$}  a letter is the lane that takes a word: 0-9, then a-v\n", "byte");
    let last = lines.len().saturating_sub(1);
    let most = window.rows.max(4);
    for (number, (line, row)) in lines.iter().zip(&rows).enumerate() {
        if lines.len() > most && number + 1 == most {
            text.push_str(&format!("  {:>width$}\n", "⋮"));
        }
        if lines.len() > most && number + 1 >= most && number < last {
            continue;
        }
        text.push_str(&format!("  {line:>width$}  "));
        for (word, lane) in row.iter().enumerate() {
            if word > 0 && word as i64 % group == 0 {
                text.push(' ');
            }
            text.push(lane.map_or('·', |lane| char::from_digit(lane, 36).unwrap_or('+')));
        }
        text.push('\n');
    }
    text
}

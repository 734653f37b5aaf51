//! A value as the text that an editor shows: its notation, its picture and its properties.
//!
//! Law: the picture and the properties are those of `tilewright show`. Of a large layout only a
//! part is drawn and properties are not counted, so that the time is bounded.

use tilewright_draw::explain::{facts, map};
use tilewright_draw::terminal::{Colours, Picture, Window};
use tilewright_draw::{Axis, Grid, Mode};
use tilewright_layout::{AnyTree, Layout, Tree};
use tilewright_notation::Value;

/// The largest picture in a hover text, in characters.
const WINDOW: Window = Window { columns: 96, rows: 18 };

/// The most indices over which properties are counted.
const MOST_COUNTED: i64 = 1 << 16;

/// A shape is drawn as its compact layout.
fn drawable(value: &Value) -> Value {
    match value {
        Value::Tree(AnyTree::Integer(shape)) => Layout::compact(shape).map_or_else(|_| value.clone(), Value::from),
        _ => value.clone(),
    }
}

/// The Markdown text for a value.
pub(crate) fn value(value: &Value) -> String {
    let mut out = format!("```text\n{value}\n```\n");
    let value = drawable(value);
    let Some(map) = map::of(&value) else { return out };
    if let Some(picture) = picture(&map) {
        out.push_str(&format!("\n```text\n{}\n```\n", picture.trim_end()));
    }
    let lines = match map.size() {
        size if size <= MOST_COUNTED => facts::of(&value, &map),
        size => vec![format!("size {size}, rank {}", map.shape().rank())],
    };
    for line in lines {
        out.push_str(&format!("\n* {line}"));
    }
    out.push('\n');
    out
}

/// The grid of a map, with the modes after the second at coordinate 0; None if nothing can be
/// drawn.
fn picture(map: &map::Map) -> Option<String> {
    let modes: Vec<Tree<i64>> = map.shape().modes().collect();
    let one = Axis::flat(1);
    let (rows, columns, height) = match modes.as_slice() {
        [] => (one.clone(), one, 1),
        [only] => (one, Axis::of(only), 1),
        [rows, columns, ..] => (Axis::of(rows), Axis::of(columns), map::size(rows)),
    };
    let grid = Grid::new(rows, columns, |row, column, cell| {
        let index = column.checked_mul(height).and_then(|at| at.checked_add(row));
        let value = index.and_then(|index| map.value(index).ok());
        cell.label = value.map_or("?".to_owned(), |value| value.to_string());
    });
    let mut text = Picture::of_grid(&grid, WINDOW).text(0, Colours::None, Mode::Light);
    if modes.len() > 2 {
        text.push_str("\nthe first of the grids of the further modes");
    }
    Some(text)
}

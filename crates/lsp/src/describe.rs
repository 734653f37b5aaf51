//! A value as the text that an editor shows: its notation, its picture, what can be said about it.
//!
//! Law: the picture and the facts are those of `tilewright show`. What is large is drawn in part
//! and counted no further, so that the time has a bound.

use tilewright_draw::explain::{facts, map};
use tilewright_draw::terminal::{Colours, Picture, Window};
use tilewright_draw::{Axis, Grid, Mode};
use tilewright_layout::{AnyTree, Layout, Tree};
use tilewright_notation::Value;

/// The most rows and columns of a picture on hover.
const WINDOW: Window = Window { columns: 96, rows: 18 };

/// The most indices that are counted for the facts.
const MOST_COUNTED: i64 = 1 << 16;

/// A shape alone means its compact layout.
fn drawable(value: &Value) -> Value {
    match value {
        Value::Tree(AnyTree::Integer(shape)) => Layout::compact(shape).map_or_else(|_| value.clone(), Value::from),
        _ => value.clone(),
    }
}

/// A value as Markdown.
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

/// The grid of a map whose modes behind the second are 0; none if nothing can be drawn.
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

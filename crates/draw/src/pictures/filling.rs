//! Pictures of a layout and its complement over memory: the gaps, and the copies that fill them.
//!
//! Law: an offset belongs to copy `j` if it is `A(i) + R(j)` for some `i`; the first such copy is
//! shown. An offset of no copy is a hole.

use std::collections::HashMap;

use tilewright_layout::Layout;

use crate::axis::Axis;
use crate::error::DrawError;
use crate::figure::{Figure, Legend, Panel};
use crate::number::push_integer;
use crate::pictures::{MAX_INDICES, Medium, Style};
use crate::theme::Paint;

/// The number of offsets in a row, and the largest number of offsets.
const ROW: i64 = 16;
const MAX_OFFSETS: i64 = 2048;

/// A layout over memory with its gaps, and the copies of it that its complement adds. Each copy has
/// a colour.
///
/// Errors: there are more than [`crate::MAX_INDICES`] offsets; one is negative or does not fit in
/// 64 bits.
///
/// ```
/// use tilewright_draw::{Style, filled};
/// use tilewright_layout::Layout;
///
/// let a: Layout = "4:2".parse().unwrap();
/// let rest = a.complement(&24).unwrap();
/// let figure = filled(&a, &rest, Style::default()).unwrap();
/// assert!(figure.caption.starts_with("6 copies of 4 fill [0,24)"), "{}", figure.caption);
/// ```
pub fn filled<'a>(layout: &Layout, rest: &Layout, style: Style) -> Result<Figure<'a>, DrawError> {
    let (what, limit) = ("the size of a layout and its complement", MAX_INDICES);
    let base = layout.filter()?;
    let (size, copies) = (base.size(), rest.size());
    match size.checked_mul(copies) {
        Some(all) if all <= limit => {}
        all => return Err(DrawError::TooLarge { what, value: all.unwrap_or(i64::MAX), limit }),
    }
    let mut owner: HashMap<i64, i64> = HashMap::new();
    let overflow = || tilewright_layout::LayoutError::Overflow { op: "complement" };
    for copy in 0..copies {
        let begin = rest.eval(&copy)?;
        for index in 0..size {
            let offset = base.eval(&index)?.checked_add(begin).ok_or_else(overflow)?;
            owner.entry(offset).or_insert(copy);
        }
    }
    let end = owner.keys().copied().max().unwrap_or(0).saturating_add(1);
    let holes = end.saturating_sub(i64::try_from(owner.len()).unwrap_or(i64::MAX));
    let drawn = end.min(MAX_OFFSETS);
    let width = if drawn <= ROW + ROW / 2 { drawn } else { ROW };
    let rows = Axis::flat((drawn + width - 1) / width).counted_by(width);
    let rows = if drawn <= width { Axis::named([""]) } else { rows };
    let grid = |heading: String, only_first: bool, owner: HashMap<i64, i64>| {
        Panel::grid(heading, rows.clone(), Axis::flat(width), move |row, column, cell| {
            let offset = row * width + column;
            if offset >= end {
                return;
            }
            match owner.get(&offset) {
                Some(copy) if *copy == 0 || !only_first => {
                    cell.fill = style.palette.paint(*copy, copies);
                    cell.region = u32::from(*copy == 0);
                    push_integer(&mut cell.label, offset);
                    cell.title = format!("offset {offset}: copy {copy}");
                }
                held => {
                    cell.fill = Paint::Void;
                    cell.faint = true;
                    match style.medium {
                        Medium::Terminal => cell.label.push('·'),
                        Medium::Page => push_integer(&mut cell.label, offset),
                    }
                    cell.title = format!("offset {offset}: {}", if held.is_some() { "a gap" } else { "a hole" });
                }
            }
        })
        .outlined(Paint::Border)
    };
    let mut caption = match (holes, copies) {
        (0, 1) => format!("A fills [0,{end}) by itself"),
        (0, _) => format!("{copies} copies of {size} fill [0,{end})"),
        _ => format!("{copies} copies of {size} reach [0,{end}) without overlap and leave {holes} holes"),
    };
    if drawn < end {
        caption.push_str(&format!("; the first {drawn} are drawn"));
    }
    let before = grid(format!("A = {layout}"), true, owner.clone());
    let after = grid(format!("with its complement {rest}"), false, owner);
    let legend = Legend::Names(vec![
        (style.palette.paint(0, copies), "A".to_owned()),
        (style.palette.paint((copies - 1).min(1), copies), "the next copy".to_owned()),
    ]);
    let figure = Figure { table: vec![vec![Some(before)], vec![Some(after)]], ..Figure::default() };
    Ok(figure.captioned(caption).explained(legend))
}

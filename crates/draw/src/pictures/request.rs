//! Pictures of the words that the lanes of one request access: lines of memory downward, words of a
//! line to the right.
//!
//! Law: the cell in row `l` and column `c` is word `c` of line `l` of memory. It shows the first
//! lane that touches it and the number of others, in the colour of that lane. With banks, columns
//! are banks, and the row below counts the distinct words of each bank, which the bank reads one
//! after another.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tilewright_layout::Tree;

use crate::axis::Axis;
use crate::figure::{Figure, Legend, Panel};
use crate::grid::Cell;
use crate::number::push_integer;
use crate::pictures::{Medium, Style};
use crate::theme::Paint;

/// An access of a lane to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Touch {
    /// The index of the line.
    pub line: usize,
    /// The index of the word in the line.
    pub column: i64,
    /// The lane.
    pub lane: i64,
}

/// The lanes of a request, and the memory that they touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The lines, each by its first byte, as text.
    pub lines: Vec<Box<str>>,
    /// The number of words of a line.
    pub words: i64,
    /// The number of words in a group; groups are separated by a heavier line.
    pub group: i64,
    /// Whether the words of a column are in the same bank.
    pub banks: bool,
    /// The accesses.
    pub touches: Vec<Touch>,
}

/// The words that lanes access, line by line.
///
/// ```
/// use tilewright_draw::{Style, Theme, Touch, Touched, request};
///
/// // Two lanes want different words of bank 0.
/// let touches = vec![Touch { line: 0, column: 0, lane: 0 }, Touch { line: 1, column: 0, lane: 1 }];
/// let touched = Touched { lines: vec!["0".into(), "128".into()], words: 32, group: 32, banks: true, touches };
/// let svg = request("phase 0", &touched, Style::default()).svg(Theme::Auto);
/// assert!(svg.contains("bank 0: 2 words"));
/// ```
pub fn request<'a>(heading: &str, touched: &Touched, style: Style) -> Figure<'a> {
    let lanes = touched.touches.iter().map(|touch| touch.lane).max().unwrap_or(0).saturating_add(1);
    let mut places: BTreeMap<(usize, i64), Vec<i64>> = BTreeMap::new();
    for touch in &touched.touches {
        places.entry((touch.line, touch.column)).or_default().push(touch.lane);
    }
    // The distinct words of each column.
    let mut depth: BTreeMap<i64, i64> = BTreeMap::new();
    for (_, column) in places.keys() {
        *depth.entry(*column).or_default() += 1;
    }
    let mut figure = Figure::row([panel(heading, touched, style, &places, lanes)]);
    if touched.banks {
        figure.table.push(vec![Some(counts(touched, depth.clone(), style))]);
    }
    let mut names = vec![(style.palette.paint(0, lanes), "a lane, by its number".to_owned())];
    if depth.values().any(|words| *words > 1) && touched.banks {
        names.push((Paint::Warn, "a bank that gives several words, one after another".to_owned()));
    }
    figure.explained(Legend::Names(names))
}

/// The words of a line, in groups.
fn axis(touched: &Touched) -> Axis {
    let groups = touched.words.checked_div(touched.group).unwrap_or(1);
    match Tree::flat([touched.group, groups]) {
        Ok(nested) if groups > 1 && touched.words == groups * touched.group => Axis::of_modes([&nested]),
        _ => Axis::flat(touched.words),
    }
}

fn panel<'a>(
    heading: &str,
    touched: &Touched,
    style: Style,
    places: &BTreeMap<(usize, i64), Vec<i64>>,
    lanes: i64,
) -> Panel<'a> {
    let (places, lines, banks) = (places.clone(), touched.lines.clone(), touched.banks);
    let rows = Axis::named(lines.iter().map(AsRef::as_ref)).titled("byte");
    let page = style.medium == Medium::Page;
    Panel::grid(
        heading,
        rows,
        axis(touched).titled(if banks { "bank" } else { "word" }),
        move |row, column, cell: &mut Cell| {
            let line = usize::try_from(row).unwrap_or(usize::MAX);
            let Some(here) = places.get(&(line, column)) else {
                if !page {
                    cell.label.push('·');
                    cell.faint = true;
                }
                return;
            };
            let first = here.first().copied().unwrap_or(0);
            cell.fill = style.palette.paint(first, lanes);
            push_integer(&mut cell.label, first);
            let more = here.len().saturating_sub(1);
            match (more, page) {
                (0, _) => {}
                (_, true) => {
                    let _ = write!(cell.second, "+{more}");
                }
                (_, false) => {
                    let _ = write!(cell.label, "+{more}");
                }
            }
            cell.link = u32::try_from(first).ok();
            if page {
                cell.title.push_str(if banks { "bank " } else { "word " });
                push_integer(&mut cell.title, column);
                cell.title.push_str(" of the line at ");
                cell.title.push_str(lines.get(line).map_or("?", AsRef::as_ref));
                let list: Vec<String> = here.iter().map(i64::to_string).collect();
                let _ = write!(cell.title, ": lane{} {}", if here.len() > 1 { "s" } else { "" }, list.join(", "));
            }
        },
    )
}

/// A panel with the number of words that each bank reads.
fn counts<'a>(touched: &Touched, depth: BTreeMap<i64, i64>, style: Style) -> Panel<'a> {
    let page = style.medium == Medium::Page;
    Panel::grid("", Axis::flat(1).unticked(), axis(touched).unticked(), move |_, column, cell: &mut Cell| {
        let words = depth.get(&column).copied().unwrap_or(0);
        if words > 0 {
            push_integer(&mut cell.label, words);
        }
        cell.fill = if words > 1 { Paint::Warn } else { Paint::Void };
        if page {
            let _ = write!(cell.title, "bank {column}: {words} word{}", if words == 1 { "" } else { "s" });
        }
    })
}

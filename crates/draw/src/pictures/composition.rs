//! Pictures of compositions: the indices of A that B selects, mode by mode and as a whole.
//!
//! Law: every value is that of A at the value of B, both evaluated. The composite layout is not
//! used, so that a composition that does not exist can be drawn too.

use std::collections::HashMap;
use std::rc::Rc;

use tilewright_layout::Layout;

use crate::axis::Axis;
use crate::error::DrawError;
use crate::figure::{Figure, Legend, Panel};
use crate::map::Map;
use crate::number::push_integer;
use crate::pictures::offsets::{Mark, Tint, tinted};
use crate::pictures::selection::indices;
use crate::pictures::{Medium, Shade, Style};
use crate::theme::Paint;

/// The largest number of positions of a mode, or of indices of a layout, in a line.
const MAX_LINE: i64 = 32;

/// A composition: A with the indices that B selects, B, and the composite. Each position of the
/// last mode of B has a colour.
///
/// Errors: the composition is refused; there are more than [`crate::MAX_INDICES`] indices.
///
/// ```
/// use tilewright_draw::{Style, Theme, composition};
/// use tilewright_layout::Layout;
///
/// let (a, b): (Layout, Layout) = ("(6,2):(8,2)".parse().unwrap(), "(4,3):(3,1)".parse().unwrap());
/// let figure = composition(&a, &b, Style::default()).unwrap();
/// assert_eq!(figure.panels().count(), 3);
/// assert!(figure.svg(Theme::Light).contains("((2,2),3):((24,2),8)"));
/// ```
pub fn composition<'a>(a: &Layout, b: &Layout, style: Style) -> Result<Figure<'a>, DrawError> {
    let result = a.compose(b)?;
    let maps = [a, b, &result].map(Map::from);
    for map in &maps {
        indices(map)?;
    }
    let of = b.mode(b.rank().saturating_sub(1)).map_or(1, |last| last.size()).max(1);
    let run = (b.size() / of).max(1);
    let part = move |index: i64| Mark {
        fill: style.palette.paint(index / run, of),
        region: u32::try_from(index / run + 1).unwrap_or(u32::MAX),
        faint: false,
    };
    let mut picked: HashMap<i64, i64> = HashMap::new();
    for index in 0..b.size() {
        picked.entry(b.eval(&index)?).or_insert(index);
    }
    let missing = Mark { faint: true, ..Mark::default() };
    let chosen: Tint = Rc::new(move |index| picked.get(&index).map_or(missing, |by| Mark { region: 0, ..part(*by) }));
    let counted: Tint = Rc::new(part);
    let [whole, inner, outer] = &maps;
    let first = tinted(&format!("A = {a}"), whole, style, chosen);
    let second = tinted(&format!("B = {b}"), inner, style, Rc::clone(&counted));
    let third = tinted(&format!("A o B = {result}"), outer, style, counted);
    let caption = "A o B has at c what A has at the index B(c); a colour is a position of the last mode of B";
    Ok(first.beside(second).followed_by(third).captioned(caption))
}

/// A composition mode by mode: the indices of A that a mode of B selects, and the values of A at
/// them.
///
/// If the composition splits a mode, a line marks the end of each run.
///
/// Errors: a layout refuses an index.
///
/// ```
/// use tilewright_draw::{Style, composition_by_mode};
/// use tilewright_layout::Layout;
///
/// let (a, b): (Layout, Layout) = ("(6,2):(8,2)".parse().unwrap(), "(4,3):(3,1)".parse().unwrap());
/// let figure = composition_by_mode(&a, &b, Style::default()).unwrap();
/// assert_eq!(figure.panels().count(), 2);
/// ```
pub fn composition_by_mode<'a>(a: &Layout, b: &Layout, style: Style) -> Result<Figure<'a>, DrawError> {
    let mut table = Vec::new();
    for (number, mode) in b.modes().enumerate() {
        let composite = a.compose(&mode);
        let (axis, heading) = match &composite {
            Ok(composite) => (Axis::of(&composite.shape()), format!("R{number} = A o {mode} = {composite}")),
            Err(_) => (Axis::flat(mode.size()), format!("A o {mode}: no layout")),
        };
        let shown = mode.size().min(MAX_LINE);
        let axis = if shown < mode.size() { Axis::flat(shown) } else { axis };
        let mut rows = Vec::new();
        for position in 0..shown {
            let index = mode.eval(&position)?;
            rows.push((index, a.eval(&index)?));
        }
        let panel = Panel::grid(heading, Axis::named(["B(c)", "A(B(c))"]), axis, move |row, column, cell| {
            let Some((index, value)) = usize::try_from(column).ok().and_then(|column| rows.get(column)) else { return };
            if row == 0 {
                push_integer(&mut cell.label, *index);
                cell.title = format!("B({column}) = {index}");
            } else {
                push_integer(&mut cell.label, *value);
                cell.title = format!("A({index}) = {value}");
                cell.fill = if style.shade == Shade::Plain { Paint::Paper } else { Paint::grey(*value) };
            }
        });
        let note = if shown < mode.size() { format!("the first {shown} of {}", mode.size()) } else { String::new() };
        table.push(vec![Some(panel.noted(note))]);
    }
    Ok(Figure { table, ..Figure::default() })
}

/// A layout as a line of its indices. `what` selects the indices that are highlighted. Lines mark
/// the ends of the modes.
///
/// None if a line is too short for the indices.
///
/// Errors: the layout refuses an index.
///
/// ```
/// use tilewright_draw::{Paint, Style, over_indices};
/// use tilewright_layout::Layout;
///
/// let a: Layout = "(6,2):(1,7)".parse().unwrap();
/// let marks = [(4, Paint::Accent, "mode 0".to_owned()), (7, Paint::Warn, "both".to_owned())];
/// let figure = over_indices("A", &a, &marks, Style::default()).unwrap().unwrap();
/// assert_eq!(figure.panels().count(), 1);
/// ```
pub fn over_indices<'a>(
    heading: &str,
    layout: &Layout,
    marks: &[(i64, Paint, String)],
    style: Style,
) -> Result<Option<Figure<'a>>, DrawError> {
    let last = marks.iter().map(|mark| mark.0).max().unwrap_or(0);
    let first = marks.iter().map(|mark| mark.0).min().unwrap_or(0);
    if first < 0 || last >= MAX_LINE {
        return Ok(None);
    }
    let coalesced = layout.coalesce()?;
    let axis = Axis::of(&coalesced.shape());
    // Past its end a layout continues in its last mode; the line ends with a whole run of the modes
    // before it.
    let run = axis.run(axis.levels().saturating_sub(1)).clamp(1, MAX_LINE);
    let len = layout.size().min(MAX_LINE).max(last.saturating_add(1)).saturating_add(run - 1) / run * run;
    let axis = axis.cut_to(len);
    let values = (0..len).map(|index| Ok(layout.eval(&index)?)).collect::<Result<Vec<i64>, DrawError>>()?;
    let marked: HashMap<i64, Paint> = marks.iter().rev().map(|mark| (mark.0, mark.1)).collect();
    let panel = Panel::grid(heading, Axis::named(["A"]), axis, move |_, column, cell| {
        let Some(value) = usize::try_from(column).ok().and_then(|column| values.get(column)) else { return };
        push_integer(&mut cell.label, *value);
        cell.title = format!("A({column}) = {value}");
        cell.fill = marked.get(&column).copied().unwrap_or_default();
    });
    let captions: Vec<String> = marks.iter().map(|(index, _, name)| format!("A({index}): {name}")).collect();
    let names = marks.iter().zip(&captions).map(|(mark, caption)| (mark.1, caption.clone())).collect();
    let figure = Figure::row([panel]);
    Ok(Some(match style.medium {
        Medium::Page => figure.explained(Legend::Names(names)),
        Medium::Terminal => figure.captioned(captions.join("; ")),
    }))
}

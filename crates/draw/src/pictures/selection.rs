//! Pictures of slices and tiles, highlighted in their layout.
//!
//! Law: exactly the indices of the slice or tile are filled and outlined, in one colour for each
//! slice or tile; everything else is pale. An index that is in several has the colour of the first.

use std::collections::HashMap;
use std::rc::Rc;

use tilewright_layout::{Coord, Layout, Slot, Tiler, Tree};

use crate::error::DrawError;
use crate::figure::{Figure, Legend};
use crate::map::Map;
use crate::pictures::offsets::{Mark, Tint, tinted};
use crate::pictures::{MAX_INDICES, Style};
use crate::theme::Paint;

/// Named sets of indices, highlighted in a grid of offsets.
fn selected<'a>(heading: &str, map: &Map, sets: Vec<(String, Vec<i64>)>, style: Style) -> Figure<'a> {
    let of = i64::try_from(sets.len()).unwrap_or(i64::MAX).max(3);
    let paint = move |set: usize| style.palette.paint(i64::try_from(set).unwrap_or(0), of);
    let mut names = Vec::new();
    let mut member: HashMap<i64, usize> = HashMap::new();
    for (set, (name, indices)) in sets.into_iter().enumerate() {
        names.push((paint(set), name));
        for index in indices {
            member.entry(index).or_insert(set);
        }
    }
    let tint: Tint = Rc::new(move |index| match member.get(&index) {
        Some(set) => {
            Mark { fill: paint(*set), region: u32::try_from(set.saturating_add(1)).unwrap_or(u32::MAX), faint: false }
        }
        None => Mark { fill: Paint::Paper, region: 0, faint: true },
    });
    tinted(heading, map, style, tint).explained(Legend::Names(names))
}

/// The compact layout of the shape of a map: its values are the map's indices.
pub(crate) fn indices(map: &Map) -> Result<Layout, DrawError> {
    if map.size() > MAX_INDICES {
        return Err(DrawError::TooLarge { what: "the size of the layout", value: map.size(), limit: MAX_INDICES });
    }
    Ok(Layout::compact(map.shape())?)
}

/// A layout with slices highlighted: each is a coordinate with `_`.
///
/// Errors: a coordinate does not fit the layout or leads past the end of a mode; the layout has
/// more than [`crate::MAX_INDICES`] indices.
///
/// ```
/// use tilewright_draw::{Map, Style, Theme, slices};
/// use tilewright_layout::Layout;
///
/// let layout: Layout = "(4,8):(8,1)".parse().unwrap();
/// let row = "(2,_)".parse().unwrap();
/// let figure = slices("rows", &Map::from(&layout), &[row], Style::default()).unwrap();
/// assert!(figure.svg(Theme::Light).contains(">(2,_)</text>"));
/// ```
pub fn slices<'a>(heading: &str, map: &Map, coords: &[Coord], style: Style) -> Result<Figure<'a>, DrawError> {
    let plain = indices(map)?;
    let mut sets = Vec::new();
    for coord in coords {
        let (slice, begin) = plain.slice_and_offset(coord)?;
        inside(coord, map.shape())?;
        let members = (0..slice.size()).map(|index| Ok(slice.eval(&index)?.saturating_add(begin)));
        sets.push((coord.to_string(), members.collect::<Result<Vec<i64>, DrawError>>()?));
    }
    Ok(selected(heading, map, sets, style))
}

/// An error if a coordinate that fits a shape leads past the end of a mode. A layout continues
/// there, but its picture does not.
fn inside(coord: &Coord, shape: &Tree<i64>) -> Result<(), DrawError> {
    if !coord.is_leaf() {
        return coord.modes().zip(shape.modes()).try_for_each(|(coord, mode)| inside(&coord, &mode));
    }
    let extent = shape.leaves().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent));
    match coord.leaves() {
        [Slot::At(index)] if !(0..extent).contains(index) => Err(DrawError::PastEnd { index: *index, extent }),
        _ => Ok(()),
    }
}

/// A layout divided by a tiler, with some tiles highlighted, which are given by their numbers.
///
/// Errors: the division is refused; a tile number does not exist; the layout has more than
/// [`crate::MAX_INDICES`] indices.
pub fn tiles<'a>(
    heading: &str,
    map: &Map,
    tiler: &Tiler,
    numbers: &[i64],
    style: Style,
) -> Result<Figure<'a>, DrawError> {
    let divided = indices(map)?.zipped_divide(tiler)?;
    let tile = divided.mode(0).map_or(1, |mode| mode.size());
    let count = divided.mode(1).map_or(1, |mode| mode.size());
    let mut sets = Vec::new();
    for number in numbers {
        if !(0..count).contains(number) {
            let (what, other) = ("the number of a tile", "the number of tiles");
            return Err(DrawError::Size { what, size: *number, other, wanted: count });
        }
        let members = (0..tile).map(|index| Ok(divided.eval(&(index + tile * number))?));
        sets.push((format!("tile {number}"), members.collect::<Result<Vec<i64>, DrawError>>()?));
    }
    Ok(selected(heading, map, sets, style))
}

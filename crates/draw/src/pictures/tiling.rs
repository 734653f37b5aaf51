//! Pictures of divisions and products: operands and result, with matching colours.
//!
//! Law of division: index `i` of the input belongs to tile `r` if `D(t, r) = i` for some `t`, where
//! `D` divides the compact layout of the input's shape. A cell of the result with index `c` shows
//! the element of input index `D(c)`, in the colour of that index's tile. A tiler that does not
//! divide a mode evenly reaches past its end. Therefore the modes of that compact layout are spaced
//! so far apart that an index past the end of a mode is never another element; such a cell is pale.
//!
//! Law of product: the result contains a copy of the first operand for each index of the second. A
//! cell has the colour of the copy to which its offset belongs, which is also the colour of that
//! copy's cell in the picture of the second operand.

use std::rc::Rc;

use tilewright_layout::{DivideForm, Layout, LayoutError, Tiler};

use crate::error::DrawError;
use crate::figure::Figure;
use crate::map::Map;
use crate::pictures::offsets::{Mark, Tint, offsets as grids, reach, tinted};
use crate::pictures::selection::indices;
use crate::pictures::{MAX_INDICES, Style};
use crate::theme::Paint;

/// The part to which each value of a layout belongs.
enum Numbers {
    /// For each value from `begin` on, one more than the number of its part; 0 if it has none.
    Dense { begin: i64, parts: Vec<u32> },
    /// The values, in increasing order, with the numbers of their parts; used if values are far
    /// apart.
    Sparse(Vec<(i64, u32)>),
}

/// The largest ratio of the range of values to their number for which the dense form is used.
const SPREAD: i64 = 4;

impl Numbers {
    /// The parts of a layout whose mode 0 is a part and whose other modes count the parts. A value
    /// that is in several parts belongs to the first.
    fn of(zipped: &Layout) -> Result<Numbers, DrawError> {
        let size = zipped.size();
        if size > MAX_INDICES {
            return Err(DrawError::TooLarge { what: "the size of the result", value: size, limit: MAX_INDICES });
        }
        let tile = zipped.mode(0).map_or(1, |mode| mode.size()).max(1);
        let evaluator = zipped.evaluator();
        let number = |index: i64| u32::try_from(index / tile).unwrap_or(u32::MAX);
        let (least, greatest) = reach(zipped);
        let span = greatest.checked_sub(least).filter(|span| *span < size.saturating_mul(SPREAD));
        if let Some(span) = span {
            let mut parts = vec![0_u32; usize::try_from(span).unwrap_or(0).saturating_add(1)];
            for index in 0..size {
                let place = evaluator.eval(index)?.checked_sub(least).and_then(|place| usize::try_from(place).ok());
                match place.and_then(|place| parts.get_mut(place)) {
                    Some(part) if *part == 0 => *part = number(index).saturating_add(1),
                    _ => {}
                }
            }
            return Ok(Numbers::Dense { begin: least, parts });
        }
        let pairs = (0..size).map(|index| Ok((evaluator.eval(index)?, number(index))));
        let mut pairs = pairs.collect::<Result<Vec<(i64, u32)>, LayoutError>>()?;
        pairs.sort_unstable();
        pairs.dedup_by_key(|pair| pair.0);
        Ok(Numbers::Sparse(pairs))
    }

    /// The number of the part of a value; None if it has none.
    fn get(&self, value: i64) -> Option<i64> {
        match self {
            Numbers::Dense { begin, parts } => {
                let place = usize::try_from(value.checked_sub(*begin)?).ok()?;
                parts.get(place)?.checked_sub(1).map(i64::from)
            }
            Numbers::Sparse(pairs) => {
                let place = pairs.binary_search_by_key(&value, |pair| pair.0).ok()?;
                pairs.get(place).map(|pair| i64::from(pair.1))
            }
        }
    }
}

/// The mark of an index that belongs to a part, one of `of`.
fn mark(part: Option<i64>, of: i64, style: Style) -> Mark {
    match part {
        Some(part) => Mark {
            fill: style.palette.paint(part, of),
            region: u32::try_from(part.saturating_add(1)).unwrap_or(u32::MAX),
            faint: false,
        },
        None => Mark::default(),
    }
}

/// A division: the layout with its tiles, and the result, tile by tile in the same colours.
///
/// Errors: the division is refused; there are more than [`crate::MAX_INDICES`] indices.
///
/// ```
/// use tilewright_draw::{Style, Theme, divide};
/// use tilewright_layout::{DivideForm, Layout, Tiler};
///
/// let matrix: Layout = "(4,6):(6,1)".parse().unwrap();
/// let tiler: Tiler = "[2:1;3:1]".parse().unwrap();
/// let figure = divide(&matrix, &tiler, DivideForm::Zipped, Style::default()).unwrap();
/// assert!(figure.svg(Theme::Light).contains("((2,3),(2,2)):((6,1),(12,3))"));
/// ```
pub fn divide<'a>(layout: &Layout, tiler: &Tiler, form: DivideForm, style: Style) -> Result<Figure<'a>, DrawError> {
    let input = Map::from(layout);
    let result = layout.divide(form, tiler)?;
    let (places, steps) = apart(&indices(&input)?, tiler)?;
    let zipped = places.zipped_divide(tiler)?;
    let of = zipped.mode(1).map_or(1, |mode| mode.size());
    let numbers = Rc::new(Numbers::of(&zipped)?);
    let (place, traced) = (places.evaluator(), places.divide(form, tiler)?.evaluator());
    let known = Rc::clone(&numbers);
    let before: Tint = Rc::new(move |index| mark(place.eval(index).ok().and_then(|place| known.get(place)), of, style));
    let after: Tint = Rc::new(move |index| match traced.eval(index) {
        Ok(place) if inside(place, &steps) => mark(numbers.get(place), of, style),
        _ => Mark { fill: Paint::Void, region: 0, faint: true },
    });
    let left = tinted(&layout.to_string(), &input, style, before);
    let right = tinted(&result.to_string(), &Map::from(&result), style, after);
    let mut caption =
        format!("{} by {tiler}: {of} tiles of {}; a colour is a tile", form.division(), zipped.size() / of.max(1));
    if zipped.size() > layout.size() {
        caption.push_str("; pale cells are past the end of a mode");
    }
    Ok(left.followed_by(right).captioned(caption))
}

/// The layout with the shape of a compact layout whose modes are spaced so far apart that an index
/// past the end of a mode is not an element of another. Also returns, for each mode, the value of a
/// step and its size.
fn apart(plain: &Layout, tiler: &Tiler) -> Result<(Layout, Vec<(i64, i64)>), DrawError> {
    let covered = plain.logical_divide(tiler)?;
    let whole = || (plain.clone(), vec![(1, plain.size())]);
    // A layout of one mode continues past its end.
    if covered.rank() != plain.rank() || covered.size() == plain.size() || plain.rank() == 1 {
        return Ok(whole());
    }
    let overflow = || LayoutError::Overflow { op: "divide" };
    let (mut step, mut modes, mut steps) = (1_i64, Vec::new(), Vec::new());
    for (mode, wide) in plain.modes().zip(covered.modes()) {
        let compact = Layout::compact(&mode.shape())?;
        let stride = compact.stride().try_map(|stride| stride.checked_mul(step).ok_or_else(overflow))?;
        modes.push(Layout::new(&mode.shape(), &stride)?);
        steps.push((step, mode.size()));
        step = step.checked_mul(wide.size().max(mode.size())).ok_or_else(overflow)?;
    }
    Ok((Layout::tuple(&modes)?, steps))
}

/// Whether a value is one of the layout of [`apart`] inside the sizes of all modes.
fn inside(value: i64, steps: &[(i64, i64)]) -> bool {
    let mut rest = value;
    let held = steps.iter().rev().all(|(step, size)| {
        let coordinate = rest.checked_div(*step).unwrap_or(i64::MAX);
        rest = rest.checked_rem(*step).unwrap_or(0);
        (0..*size).contains(&coordinate)
    });
    held && rest == 0
}

/// A form of product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Multiplication {
    /// `logical_product`: the first operand, then its copies.
    Logical,
    /// `blocked_product`: blocks in the arrangement of the second operand, mode by mode.
    Blocked,
    /// `raked_product`: the copies interleaved, mode by mode.
    Raked,
}

impl Multiplication {
    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Multiplication::Logical => "logical_product",
            Multiplication::Blocked => "blocked_product",
            Multiplication::Raked => "raked_product",
        }
    }

    fn of(self, layout: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
        match self {
            Multiplication::Logical => layout.logical_product(&Tiler::from(tiler.clone())),
            Multiplication::Blocked => layout.blocked_product(tiler),
            Multiplication::Raked => layout.raked_product(tiler),
        }
    }
}

/// A product: the first operand, the layout of its copies, and the result in the colours of the
/// copies.
///
/// Errors: the product is refused; there are more than [`crate::MAX_INDICES`] indices.
///
/// ```
/// use tilewright_draw::{Multiplication, Style, Theme, product};
/// use tilewright_layout::Layout;
///
/// let (block, copies): (Layout, Layout) = ("(2,2):(1,2)".parse().unwrap(), "(2,3):(3,1)".parse().unwrap());
/// let figure = product(&block, &copies, Multiplication::Blocked, Style::default()).unwrap();
/// assert_eq!(figure.panels().count(), 3);
/// ```
pub fn product<'a>(
    layout: &Layout,
    copies: &Layout,
    form: Multiplication,
    style: Style,
) -> Result<Figure<'a>, DrawError> {
    let result = form.of(layout, copies)?;
    // Mode 0 of the logical form is the first operand, mode 1 its copies. The copies are disjoint,
    // so an offset determines its copy.
    let logical = Multiplication::Logical.of(layout, copies)?;
    let of = copies.size();
    let numbers = Numbers::of(&logical)?;
    let result_map = Map::from(&result);
    let offsets = result_map.clone();
    let count: Tint = Rc::new(move |index| mark(Some(index), of, style));
    let after: Tint =
        Rc::new(move |index| mark(offsets.at(index).ok().and_then(|offset| numbers.get(offset)), of, style));
    let plain = Style { shade: crate::pictures::Shade::Plain, ..style };
    let block = grids(&layout.to_string(), &Map::from(layout), plain);
    let copies_part = tinted(&copies.to_string(), &Map::from(copies), style, count);
    let whole = tinted(&result.to_string(), &result_map, style, after);
    let caption = format!("{}: a colour is a copy of the first layout, numbered by the second", form.name());
    Ok(block.beside(copies_part).followed_by(whole).captioned(caption))
}

//! Pictures of tiles of a tile program: their threads, and their layouts in shared memory.

use crate::{self as draw, Banks, DrawError, Figure, Map, Style};
use tilewright_layout::{Composed, Layout, LayoutError, Tree};

/// The number of lines that are drawn of a tile in shared memory: as many as a swizzle permutes.
const LINES: i64 = 8;
/// The largest number of elements of a line that are drawn.
const ALONG: i64 = 64;
/// The largest numbers of rows and columns of a corner: a warp's part of the accumulator of a
/// matrix instruction.
const CORNER: [i64; 2] = [16, 32];

/// The threads of the elements of a tile: `held` maps (thread, value) to the index of an element of
/// `shape`, the first mode fastest.
///
/// ```
/// use tilewright_draw::{Style, Theme};
/// use tilewright_draw::explain::figures::tiles;
///
/// // 32 threads hold the columns of a tile of 4 x 32.
/// let held = "(32,4):(4,1)".parse().unwrap();
/// let figure = tiles::held("columns", &held, &[4, 32], Style::default()).unwrap();
/// assert!(figure.svg(Theme::Light).contains("T31"));
/// ```
///
/// Errors: the shape has no extents; the layout is not a thread-value layout of the tile.
pub fn held(heading: &str, held: &Layout, shape: &[i64], style: Style) -> Result<Figure<'static>, DrawError> {
    draw::thread_value(heading, &Map::from(held), &tree(shape)?, style)
}

/// As [`held`], for the first rows and columns only: on a page of many tiles, the pattern is what
/// matters.
///
/// ```
/// use tilewright_draw::{Style, Theme};
/// use tilewright_draw::explain::figures::tiles;
///
/// // 128 threads, a row of a tile of 128 x 64 each.
/// let rows = "(128,64):(1,128)".parse().unwrap();
/// let figure = tiles::held_corner("", &rows, &[128, 64], Style::default()).unwrap();
/// assert!(figure.svg(Theme::Light).contains("the first 16 × 32 of 128 × 64"));
/// ```
///
/// Errors: as [`held`].
pub fn held_corner(heading: &str, held: &Layout, shape: &[i64], style: Style) -> Result<Figure<'static>, DrawError> {
    draw::thread_value_corner(heading, &Map::from(held), &tree(shape)?, CORNER, style)
}

fn tree(shape: &[i64]) -> Result<Tree<i64>, LayoutError> {
    match shape {
        [one] => Ok(Tree::leaf(*one)),
        several => Tree::flat(several.to_vec()),
    }
}

/// The first lines of a tile in shared memory, of elements of `bits` bits, with their banks, before
/// and after its swizzle.
///
/// ```
/// use tilewright_draw::{Style, Theme};
/// use tilewright_draw::explain::figures::tiles;
///
/// let stage = "S<3,3,3> o 0 o (64,64):(64,1)".parse().unwrap();
/// assert!(tiles::staged(&stage, 16, Style::default()).unwrap().svg(Theme::Light).contains("32 banks"));
/// ```
///
/// Errors: a stride exceeds 64 bits.
pub fn staged(layout: &Composed, bits: i64, style: Style) -> Result<Figure<'static>, LayoutError> {
    let inner = layout.inner();
    let modes: Vec<Layout> = (0..inner.rank()).filter_map(|mode| inner.mode(mode)).collect();
    let contiguous = |own: &Layout| own.leaves().first().is_some_and(|leaf| leaf.stride == 1);
    let first = |contiguous_one: bool| {
        let own = modes.iter().find(|own| contiguous(own) == contiguous_one);
        own.and_then(|own| own.leaves().first().cloned())
    };
    let (Some(along), Some(down)) = (first(true), first(false)) else {
        return Ok(draw::swizzle(layout, Banks::of_elements(bits), style));
    };
    let part = Layout::tuple(&[
        Layout::mode_of(down.extent.min(LINES), down.stride)?,
        Layout::mode_of(along.extent.min(ALONG), along.stride)?,
    ])?;
    let part = Composed::new(layout.outer().clone(), *layout.offset(), part)?;
    Ok(draw::swizzle(&part, Banks::of_elements(bits), style))
}

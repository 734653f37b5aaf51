//! Pictures of layouts.
//!
//! A picture is made in three steps, each a value that can be inspected:
//!
//! 1. a **[`Figure`]** says what is shown: panels in a table, each a [`Grid`] of cells that are
//!    computed when they are drawn, an [`Image`] of pixels, or a [`Scene`]; with a title, a caption
//!    and a legend;
//! 2. a **[`Scene`]** says what is drawn and where: tiles with text, lines, paths and arrows,
//!    words, images, groups. Colours are roles ([`Paint`]) that [`theme`] resolves, in a light and
//!    a dark form;
//! 3. a **format** writes it: [`svg()`], [`html()`] (a click isolates a thread), [`tikz()`], and
//!    with the features `png` and `pdf` those too. The [`terminal`] draws figures itself, in
//!    characters.
//!
//! The kinds of pictures are functions from layouts to figures:
//!
//! | function | shows |
//! |---|---|
//! | [`offsets`], [`side_by_side`] | the value at each coordinate, nested as the layout is; large ones as images |
//! | [`thread_value`] | who holds each place of a tile |
//! | [`thread_value_corner`] | who holds the first rows and columns of a large one |
//! | [`copy`] | who reads what, and who writes what |
//! | [`mma`] | the operands of a matrix product, an instruction's or a tiled one's |
//! | [`swizzle`] | offsets before and after, coloured by bank |
//! | [`composition`], [`composition_by_mode`], [`over_indices`] | what B picks out of A, and where it goes wrong |
//! | [`filled`] | a layout over memory, and the copies that its complement adds |
//! | [`request`] | which lanes touch which words or banks, line by line |
//! | [`divide`], [`product`] | what goes in and what comes out, tile by tile in the same colours |
//! | [`slices`], [`tiles`] | parts, pointed out |
//! | [`memory`] | the image over memory, with gaps and overlaps |
//! | [`bits`] | a linear map over bits, as its matrix |
//! | [`morphism`], [`mutual_refinement`], [`square`], [`span`] | layouts as morphisms of tuples: stacks, arrows, nesting trees |
//! | [`worked_composition`] | a composition by mutual refinement, step by step |
//!
//! ```
//! use tilewright_draw::{Map, Style, Theme, offsets};
//! use tilewright_layout::Layout;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let layout: Layout = "((2,2),(2,4)):((1,4),(2,8))".parse()?;
//! let figure = offsets("L", &Map::from(&layout), Style::default()).titled("A nested layout");
//! let file = figure.svg(Theme::Auto);
//! assert!(file.starts_with("<svg") && file.contains("prefers-color-scheme:dark"));
//! # Ok(())
//! # }
//! ```
//!
//! The module [`explain`] chooses among them for a value or a call of the notation, and tests the
//! laws of operations.
//!
//! A [`Page`] puts text, formulas and figures into one HTML file.
//!
//! A scene knows nothing of layouts, so diagrams of nodes, arrows and nesting trees
//! ([`Scene::nesting`]) are drawn by the same formats: build a [`Scene`] and give it to
//! [`Figure::of_scene`].
//!
//! # Promises
//!
//! Every cell is computed by evaluating the layout at the cell's own index. A large layout becomes
//! an image or is cut, and the picture says so. There is always a picture, within stated limits
//! ([`MAX_CELLS`], [`MAX_SIDE`], [`MAX_COLUMNS`], [`MAX_LINE`], [`MAX_INDICES`]). Files hold
//! everything they need: no font, script or style from elsewhere. Text is readable on every fill:
//! its contrast is at least 4.5 to 1.

mod arrange;
mod axis;
mod colour;
mod document;
mod error;
pub mod explain;
mod explanation;
mod figure;
#[cfg(any(feature = "png", feature = "pdf"))]
mod font;
mod format;
mod grid;
mod html;
mod image;
mod map;
mod measure;
mod nesting;
mod number;
mod page;
#[cfg(feature = "pdf")]
mod pdf;
mod pictures;
#[cfg(feature = "png")]
mod raster;
mod scene;
mod svg;
pub mod terminal;
pub mod theme;
mod tikz;

pub use arrange::{MAX_CELLS, MAX_COLUMNS, MAX_LINE, MAX_SIDE};
pub use axis::Axis;
pub use colour::{Rgb, oklch};
pub use document::Document;
pub use error::DrawError;
pub use explanation::explanation;
pub use figure::{Body, Figure, Legend, Panel};
pub use format::Format;
pub use grid::{Cell, Grid};
pub use html::html;
pub use image::Image;
pub use map::{Map, Target};
pub use measure::text_width;
pub use nesting::Side;
pub use page::Page;
#[cfg(feature = "pdf")]
pub use pdf::pdf;
pub use pictures::{
    Banks, Label, MAX_ENTRIES, MAX_INDICES, Medium, Multiplication, Shade, Style, Touch, Touched, bits, composition,
    composition_by_mode, copy, divide, filled, memory, mma, morphism, mutual_refinement, offsets, over_indices,
    product, request, side_by_side, slices, span, square, swizzle, thread_value, thread_value_corner, tiles,
    worked_composition,
};
#[cfg(feature = "png")]
pub use raster::png;
pub use scene::{Anchor, Frame, Item, Point, Scene, Span, Step, Stroke, TextStyle, Tile};
pub use svg::svg;
pub use theme::{Mode, Paint, Palette, Theme};
pub use tikz::tikz;

//! A scene: the items of a picture and their positions, before it is written to a file.
//!
//! Law: a scene is a list of items, drawn in order, the later on top. Lengths are CSS pixels, x to
//! the right and y downward, colours are roles ([`Paint`]), the y of a text is the middle of its
//! capitals. Every format draws every item, so a picture looks the same in each. All text lives in
//! one string and items point into it: a grid of thousands of cells is a handful of allocations.
//!
//! The scene knows nothing of layouts: diagrams of nodes, arrows and nesting trees are scenes too.
//!
//! ```
//! use tilewright_draw::{Anchor, Paint, Point, Scene, Stroke, TextStyle, Tile};
//!
//! let mut scene = Scene::new();
//! for (row, label) in ["a", "b"].into_iter().enumerate() {
//!     let y = 60.0 * row as f64;
//!     scene.tile(Tile::at(0.0, y, 48.0, 30.0).rounded(6.0).bordered(Stroke::new(Paint::Ink, 1.0)), label, "", "");
//! }
//! scene.arrow(&[Point::new(24.0, 30.0), Point::new(24.0, 60.0)], Stroke::new(Paint::Accent, 1.5));
//! scene.text(Point::new(34.0, 45.0), "f", TextStyle::small().anchored(Anchor::Start));
//! assert_eq!(scene.bounds().height, 91.0);
//! ```

mod arrow;
mod parts;
#[cfg(any(feature = "png", feature = "pdf"))]
mod pen;

use std::ops::Range;

use crate::image::Image;
use crate::measure::text_width;
use crate::theme::{self, Paint};

pub use parts::{Anchor, Frame, Point, Span, Step, Stroke, TextStyle, Tile};
#[cfg(any(feature = "png", feature = "pdf"))]
pub(crate) use pen::Pen;

/// One thing that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A rectangle with text.
    Tile(Tile),
    /// A straight line.
    Line {
        /// Its start.
        from: Point,
        /// Its end.
        to: Point,
        /// Its role and width.
        stroke: Stroke,
    },
    /// A path: straight and curved lines, and the area that they enclose.
    Path {
        /// The steps, in [`Scene::steps`].
        steps: Range<usize>,
        /// The fill, if there is one.
        fill: Option<Paint>,
        /// The line, if there is one.
        stroke: Option<Stroke>,
    },
    /// A line of text.
    Text {
        /// The position of its anchor, and of the middle height of its capitals.
        at: Point,
        /// The text.
        text: Span,
        /// Its look.
        style: TextStyle,
    },
    /// A picture of pixels, each a role, without smoothing.
    Image {
        /// Its position and size.
        frame: Frame,
        /// The index in [`Scene::images`].
        image: usize,
    },
    /// The beginning of a group: the items up to the matching [`Item::Close`] belong together.
    Open {
        /// The tooltip of all of them.
        title: Span,
        /// The thread that they belong to.
        link: Option<u32>,
    },
    /// The end of a group.
    Close,
}

/// Items in drawing order, later ones on top. Lengths are CSS pixels, y downward; colours are
/// roles.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    text: String,
    items: Vec<Item>,
    steps: Vec<Step>,
    images: Vec<Image>,
    bounds: Option<Frame>,
}

impl Scene {
    /// An empty scene.
    pub fn new() -> Scene {
        Scene::default()
    }

    /// The items, in the order in which they are drawn.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The text of a span.
    pub fn text_of(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// All texts end to end; spans are ranges of it.
    pub(crate) fn all_text(&self) -> &str {
        &self.text
    }

    /// The steps of a path.
    pub fn steps(&self, range: Range<usize>) -> &[Step] {
        self.steps.get(range).unwrap_or_default()
    }

    /// The pictures of pixels.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// The smallest rectangle that contains everything, including borders and the widths of texts.
    /// For an empty scene it is empty, at the origin.
    pub fn bounds(&self) -> Frame {
        self.bounds.unwrap_or_default()
    }

    /// The number of tiles.
    pub fn tiles(&self) -> usize {
        self.items.iter().filter(|item| matches!(item, Item::Tile(_))).count()
    }

    /// Stores a text; the empty span if the scene would contain more text than 32 bits can count.
    pub fn span(&mut self, text: &str) -> Span {
        let (start, end) = (self.text.len(), self.text.len() + text.len());
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) if !text.is_empty() => {
                self.text.push_str(text);
                Span { start, end }
            }
            _ => Span::default(),
        }
    }

    fn cover(&mut self, frame: Frame) {
        self.bounds = Some(self.bounds.map_or(frame, |bounds| bounds.with(frame)));
    }

    /// Adds a tile with its two lines of text and its tooltip; each may be empty.
    pub fn tile(&mut self, tile: Tile, label: &str, second: &str, title: &str) {
        let (label, second, title) = (self.span(label), self.span(second), self.span(title));
        let edge = tile.border.map_or(0.0, |border| border.width / 2.0);
        let Frame { x, y, width, height } = tile.frame;
        self.cover(Frame::new(x - edge, y - edge, width + 2.0 * edge, height + 2.0 * edge));
        self.items.push(Item::Tile(Tile { label, second, title, ..tile }));
    }

    /// Stores the texts of a tile that is added later: its label, its second line and its tooltip,
    /// end to end. Returns the end of each.
    pub(crate) fn texts(&mut self, texts: [&str; 3]) -> [u32; 3] {
        texts.map(|text| {
            // If the scene can store no more text, the tile has none.
            if u32::try_from(self.text.len() + text.len()).is_ok() {
                self.text.push_str(text);
            }
            self.text_end()
        })
    }

    /// The beginning of the next text.
    pub(crate) fn text_end(&self) -> u32 {
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }

    /// Reserves memory for the texts of this many tiles.
    pub(crate) fn expect(&mut self, tiles: usize) {
        self.text.reserve(48 * tiles);
    }

    /// Adds the tiles of a grid that covers `frame`, each with the ends of its texts; the texts
    /// begin at `begin`.
    pub(crate) fn grid(
        &mut self,
        frame: Frame,
        mut begin: u32,
        tiles: impl ExactSizeIterator<Item = (Tile, [u32; 3])>,
    ) {
        self.cover(frame);
        // Also reserves memory for the lines and ticks around them.
        self.items.reserve(tiles.len() + tiles.len() / 8);
        for (tile, ends) in tiles {
            let [label, second, title] = ends.map(|end| {
                let span = Span { start: begin, end };
                begin = end;
                span
            });
            self.items.push(Item::Tile(Tile { label, second, title, ..tile }));
        }
    }

    /// Adds a straight line.
    pub fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.cover_points([from, to], stroke.width);
        self.items.push(Item::Line { from, to, stroke });
    }

    fn cover_points(&mut self, points: impl IntoIterator<Item = Point>, width: f64) {
        for point in points {
            self.cover(Frame::new(point.x - width / 2.0, point.y - width / 2.0, width, width));
        }
    }

    /// Adds a path.
    pub fn path(&mut self, steps: &[Step], fill: Option<Paint>, stroke: Option<Stroke>) {
        let points = steps.iter().flat_map(|step| match *step {
            Step::Move(a) | Step::Line(a) => vec![a],
            Step::Curve(a, b, c) => vec![a, b, c],
            Step::Close => Vec::new(),
        });
        self.cover_points(points, stroke.map_or(0.0, |stroke| stroke.width));
        let start = self.steps.len();
        self.steps.extend_from_slice(steps);
        self.items.push(Item::Path { steps: start..self.steps.len(), fill, stroke });
    }

    /// Adds a line of text.
    pub fn text(&mut self, at: Point, text: &str, style: TextStyle) {
        let width = text_width(text, style.size, style.strong) * theme::OTHER_FONTS;
        let left = style.anchor.left(at.x, width);
        self.cover(Frame::new(left, at.y - style.size * 0.6, width, style.size * 1.2));
        let text = self.span(text);
        self.items.push(Item::Text { at, text, style });
    }

    /// Adds a picture of pixels, stretched to a frame.
    pub fn image(&mut self, frame: Frame, image: Image) {
        self.cover(frame);
        self.items.push(Item::Image { frame, image: self.images.len() });
        self.images.push(image);
    }

    /// Adds the items that `draw` adds as one group, with its tooltip and its thread.
    pub fn group(&mut self, title: &str, link: Option<u32>, draw: impl FnOnce(&mut Scene)) {
        let title = self.span(title);
        self.items.push(Item::Open { title, link });
        draw(self);
        self.items.push(Item::Close);
    }

    /// Adds the items of another scene, moved.
    pub fn insert(&mut self, other: &Scene, by: Point) {
        let moved = |point: Point| Point::new(point.x + by.x, point.y + by.y);
        let framed = |frame: Frame| Frame::new(frame.x + by.x, frame.y + by.y, frame.width, frame.height);
        let (steps, images) = (self.steps.len(), self.images.len());
        self.steps.extend(other.steps.iter().map(|step| match *step {
            Step::Move(a) => Step::Move(moved(a)),
            Step::Line(a) => Step::Line(moved(a)),
            Step::Curve(a, b, c) => Step::Curve(moved(a), moved(b), moved(c)),
            Step::Close => Step::Close,
        }));
        self.images.extend(other.images.iter().cloned());
        for item in &other.items {
            let mut item = item.clone();
            match &mut item {
                Item::Tile(tile) => {
                    tile.frame = framed(tile.frame);
                    for span in [&mut tile.label, &mut tile.second, &mut tile.title] {
                        *span = self.span(other.text_of(*span));
                    }
                }
                Item::Line { from, to, .. } => (*from, *to) = (moved(*from), moved(*to)),
                Item::Path { steps: range, .. } => *range = range.start + steps..range.end + steps,
                Item::Text { at, text, .. } => (*at, *text) = (moved(*at), self.span(other.text_of(*text))),
                Item::Image { frame, image } => (*frame, *image) = (framed(*frame), *image + images),
                Item::Open { title, .. } => *title = self.span(other.text_of(*title)),
                Item::Close => {}
            }
            self.items.push(item);
        }
        if let Some(bounds) = other.bounds {
            self.cover(framed(bounds));
        }
    }
}

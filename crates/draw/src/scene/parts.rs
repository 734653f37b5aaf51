//! The parts of scenes: points, lines, text styles, tiles, path steps.

use crate::theme::{self, Paint};

/// A point, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    /// The distance to the right.
    pub x: f64,
    /// The distance downward.
    pub y: f64,
}

impl Point {
    /// The point with these coordinates.
    pub const fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }
}

/// A rectangle by its top left corner and its size.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Frame {
    /// The left side.
    pub x: f64,
    /// The top.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

impl Frame {
    /// The rectangle with this corner and size.
    pub const fn new(x: f64, y: f64, width: f64, height: f64) -> Frame {
        Frame { x, y, width, height }
    }

    /// The middle.
    pub fn middle(self) -> Point {
        Point::new(self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    /// The smallest rectangle that contains both.
    pub(super) fn with(self, other: Frame) -> Frame {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let (right, bottom) =
            ((self.x + self.width).max(other.x + other.width), (self.y + self.height).max(other.y + other.height));
        Frame::new(x, y, right - x, bottom - y)
    }
}

/// The role and width of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// The role.
    pub paint: Paint,
    /// The width.
    pub width: f64,
    /// Whether it is broken into dashes.
    pub dashed: bool,
}

impl Stroke {
    /// A line.
    pub const fn new(paint: Paint, width: f64) -> Stroke {
        Stroke { paint, width, dashed: false }
    }

    /// The same line, dashed.
    #[must_use]
    pub const fn dashed(self) -> Stroke {
        Stroke { dashed: true, ..self }
    }
}

/// The part of a text that is placed at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Anchor {
    /// Its left end.
    #[default]
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

impl Anchor {
    /// The left end of a text of this width that is placed at `x`.
    pub(crate) fn left(self, x: f64, width: f64) -> f64 {
        match self {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        }
    }
}

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextStyle {
    /// The role.
    pub paint: Paint,
    /// The size.
    pub size: f64,
    /// Whether it is bold.
    pub strong: bool,
    /// The anchor of its position.
    pub anchor: Anchor,
}

impl TextStyle {
    /// Ordinary text.
    pub const fn plain() -> TextStyle {
        TextStyle { paint: Paint::Ink, size: theme::TEXT, strong: false, anchor: Anchor::Start }
    }

    /// The heading of a part.
    pub const fn heading() -> TextStyle {
        TextStyle { strong: true, ..TextStyle::plain() }
    }

    /// The title of a picture.
    pub const fn title() -> TextStyle {
        TextStyle { size: theme::TITLE_TEXT, strong: true, ..TextStyle::plain() }
    }

    /// Ticks and notes.
    pub const fn small() -> TextStyle {
        TextStyle { paint: Paint::Faint, size: theme::SMALL_TEXT, ..TextStyle::plain() }
    }

    /// Captions.
    pub const fn caption() -> TextStyle {
        TextStyle { paint: Paint::Faint, ..TextStyle::plain() }
    }

    /// The same style with another anchor.
    #[must_use]
    pub const fn anchored(self, anchor: Anchor) -> TextStyle {
        TextStyle { anchor, ..self }
    }
}

/// A piece of the text of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    /// Whether there is no text.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The byte range within all texts.
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        let place = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
        place(self.start)..place(self.end)
    }
}

/// A rectangle with up to two lines of text in its middle: a cell of a grid, or a node of a
/// diagram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tile {
    /// Its position and size.
    pub frame: Frame,
    /// Its fill, which determines the colour of its text.
    pub fill: Paint,
    /// Its border, if it has one.
    pub border: Option<Stroke>,
    /// The radius of its corners.
    pub radius: f64,
    /// Whether its text is less important.
    pub faint: bool,
    /// The size of its text; the second line is smaller.
    pub size: f64,
    /// The thread that it belongs to, which can be isolated.
    pub link: Option<u32>,
    /// The first line; set by [`crate::Scene::tile`].
    pub label: Span,
    /// The second line.
    pub second: Span,
    /// The tooltip.
    pub title: Span,
}

impl Tile {
    /// A tile without border.
    pub fn at(x: f64, y: f64, width: f64, height: f64) -> Tile {
        Tile {
            frame: Frame::new(x, y, width, height),
            fill: Paint::Paper,
            border: None,
            radius: 0.0,
            faint: false,
            size: theme::CELL_TEXT,
            link: None,
            label: Span::default(),
            second: Span::default(),
            title: Span::default(),
        }
    }

    /// The same tile with a fill.
    #[must_use]
    pub fn filled(self, fill: Paint) -> Tile {
        Tile { fill, ..self }
    }

    /// The same tile with a border.
    #[must_use]
    pub fn bordered(self, border: Stroke) -> Tile {
        Tile { border: Some(border), ..self }
    }

    /// The same tile with round corners.
    #[must_use]
    pub fn rounded(self, radius: f64) -> Tile {
        Tile { radius, ..self }
    }

    /// Its lines of text: span, position and size.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Span, Point, f64)> {
        let middle = self.frame.middle();
        let small = self.size * theme::SMALL_TEXT / theme::CELL_TEXT;
        let lines = match (self.label.is_empty(), self.second.is_empty()) {
            (true, true) => [None, None],
            (false, true) => [Some((self.label, middle, self.size)), None],
            (true, false) => [Some((self.second, middle, small)), None],
            (false, false) => [
                Some((self.label, Point::new(middle.x, middle.y - 0.58 * self.size), self.size)),
                Some((self.second, Point::new(middle.x, middle.y + 0.62 * self.size), small)),
            ],
        };
        lines.into_iter().flatten()
    }
}

/// A step of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Begins a piece here.
    Move(Point),
    /// A straight line to this point.
    Line(Point),
    /// A cubic curve: two control points and its end.
    Curve(Point, Point, Point),
    /// A straight line back to the beginning of this piece.
    Close,
}

/// A rectangle with round corners as a path.
#[cfg(any(feature = "png", feature = "pdf"))]
pub(crate) fn rounded(frame: Frame, radius: f64) -> Vec<Step> {
    let Frame { x, y, width, height } = frame;
    let (right, bottom) = (x + width, y + height);
    let r = radius.clamp(0.0, width.min(height) / 2.0);
    // The control points of a quarter circle.
    let k = r * 0.552_284_75;
    let p = Point::new;
    vec![
        Step::Move(p(x + r, y)),
        Step::Line(p(right - r, y)),
        Step::Curve(p(right - r + k, y), p(right, y + r - k), p(right, y + r)),
        Step::Line(p(right, bottom - r)),
        Step::Curve(p(right, bottom - r + k), p(right - r + k, bottom), p(right - r, bottom)),
        Step::Line(p(x + r, bottom)),
        Step::Curve(p(x + r - k, bottom), p(x, bottom - r + k), p(x, bottom - r)),
        Step::Line(p(x, y + r)),
        Step::Curve(p(x, y + r - k), p(x + r - k, y), p(x + r, y)),
        Step::Close,
    ]
}

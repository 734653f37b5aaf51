//! SVG files.
//!
//! Law: a file needs nothing else. Colours are CSS custom properties by role, so that a page can
//! set them; they are declared light, and dark if the reader prefers that. Each rule names the
//! light colour first, for programs without support for custom properties. Text is stored as text,
//! the picture has a title and a description, and items that belong to a thread have `data-t`.

mod escape;
mod style;
mod tiles;

pub(crate) use escape::push_escaped;

use escape::Texts;
use style::{style, used};
use tiles::{Tiles, push_title};

use crate::document::Document;
use crate::image::base64;
use crate::number::{push_integer, push_length};
use crate::scene::{Anchor, Frame, Item, Point, Scene, Span, Step, Stroke, TextStyle};
use crate::theme::{self, Mode, Paint, Theme};

/// The SVG file of a scene, with some space around it.
///
/// ```
/// use tilewright_draw::{Document, Point, Scene, TextStyle, svg};
///
/// let mut scene = Scene::new();
/// scene.text(Point::new(0.0, 0.0), "a < b", TextStyle::plain());
/// let text = svg(&scene, &Document { title: "An order".to_owned(), ..Document::default() });
/// assert!(text.contains("<title>An order</title>"));
/// assert!(text.contains(">a &lt; b</text>"));
/// ```
pub fn svg(scene: &Scene, document: &Document) -> String {
    let mut out = String::with_capacity(4096 + scene.items().len() * 288);
    let Frame { x, y, width, height } = padded(scene.bounds());
    out.push_str("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tilewright\" role=\"img\" viewBox=\"");
    for (at, length) in [x, y, width, height].into_iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        push_length(&mut out, length);
    }
    out.push('"');
    attribute(&mut out, "width", width);
    attribute(&mut out, "height", height);
    out.push_str(">\n");
    for line in &document.source {
        out.push_str("<!-- ");
        // Two hyphens would end the comment.
        push_escaped(&mut out, &line.replace("--", "- -"));
        out.push_str(" -->\n");
    }
    out.push_str("<title>");
    push_escaped(&mut out, if document.title.is_empty() { "Layouts" } else { &document.title });
    out.push_str("</title>\n<desc>");
    push_escaped(&mut out, &document.description);
    out.push_str("</desc>\n");
    style(&mut out, &used(scene), document.theme);
    out.push_str("<rect class=\"paper\"");
    place(&mut out, Frame { x, y, width, height });
    out.push_str("/>\n");
    let (tiles, texts) = (Tiles::default(), Texts::of(scene));
    Writer { scene, texts, out: &mut out, run: None, tiles, theme: document.theme }.items();
    out.push_str("</svg>\n");
    out
}

/// The rectangle with the space around a picture.
pub(crate) fn padded(bounds: Frame) -> Frame {
    let space = theme::SPACE * 0.75;
    Frame::new(bounds.x - space, bounds.y - space, bounds.width + 2.0 * space, bounds.height + 2.0 * space)
}

fn attribute(out: &mut String, name: &str, length: f64) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_length(out, length);
    out.push('"');
}

fn place(out: &mut String, frame: Frame) {
    for (name, length) in [("x", frame.x), ("y", frame.y), ("width", frame.width), ("height", frame.height)] {
        attribute(out, name, length);
    }
}

/// Appends the style of a line.
fn push_stroke(out: &mut String, stroke: Stroke) {
    out.push_str(" class=\"l-");
    stroke.paint.write_name(out);
    out.push('"');
    attribute(out, "stroke-width", stroke.width);
    if stroke.dashed {
        out.push_str(" stroke-dasharray=\"");
        push_length(out, 3.0 * stroke.width);
        out.push('"');
    }
}

struct Writer<'a> {
    scene: &'a Scene,
    texts: Texts<'a>,
    out: &'a mut String,
    /// The font size of the current run of tiles; None if no run is open.
    run: Option<f64>,
    tiles: Tiles,
    theme: Theme,
}

impl Writer<'_> {
    fn items(&mut self) {
        for item in self.scene.items() {
            match item {
                Item::Tile(tile) => {
                    if self.run != Some(tile.size) {
                        self.end_run();
                        self.out.push_str("<g class=\"tiles\"");
                        attribute(self.out, "font-size", tile.size);
                        self.out.push_str(">\n");
                        self.run = Some(tile.size);
                    }
                    self.tiles.push(self.out, &self.texts, tile);
                }
                other => {
                    self.end_run();
                    self.item(other);
                }
            }
        }
        self.end_run();
    }

    fn end_run(&mut self) {
        if self.run.take().is_some() {
            self.out.push_str("</g>\n");
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Tile(_) => {}
            Item::Line { from, to, stroke } => {
                self.out.push_str("<line");
                for (name, length) in [("x1", from.x), ("y1", from.y), ("x2", to.x), ("y2", to.y)] {
                    attribute(self.out, name, length);
                }
                push_stroke(self.out, *stroke);
                self.out.push_str(" stroke-linecap=\"square\"/>\n");
            }
            Item::Path { steps, fill, stroke } => self.path(self.scene.steps(steps.clone()), *fill, *stroke),
            Item::Text { at, text, style } => self.text(*at, *text, *style),
            Item::Image { frame, image } => {
                let Some(image) = self.scene.images().get(*image) else { return };
                let forms: &[(&str, Mode)] = match self.theme {
                    Theme::Auto => &[("light", Mode::Light), ("dark", Mode::Dark)],
                    Theme::Light => &[("light", Mode::Light)],
                    Theme::Dark => &[("", Mode::Dark)],
                };
                for (class, mode) in forms {
                    self.out.push_str("<image class=\"");
                    self.out.push_str(class);
                    self.out.push('"');
                    place(self.out, *frame);
                    self.out.push_str(
                        " preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,",
                    );
                    base64(&image.png(*mode), self.out);
                    self.out.push_str("\"/>\n");
                }
            }
            Item::Open { title, link } => {
                self.out.push_str("<g");
                if let Some(link) = link {
                    self.out.push_str(" data-t=\"");
                    push_integer(self.out, i64::from(*link));
                    self.out.push('"');
                }
                self.out.push('>');
                push_title(self.out, &self.texts, *title);
                self.out.push('\n');
            }
            Item::Close => self.out.push_str("</g>\n"),
        }
    }

    fn path(&mut self, steps: &[Step], fill: Option<Paint>, stroke: Option<Stroke>) {
        self.out.push_str("<path");
        match (fill, stroke) {
            (Some(fill), None) => {
                self.out.push_str(" class=\"");
                fill.write_name(self.out);
                self.out.push('"');
            }
            (None, Some(stroke)) => {
                push_stroke(self.out, stroke);
                self.out.push_str(" fill=\"none\"");
            }
            (Some(fill), Some(stroke)) => {
                self.out.push_str(" class=\"");
                fill.write_name(self.out);
                self.out.push_str(" l-");
                stroke.paint.write_name(self.out);
                self.out.push('"');
                attribute(self.out, "stroke-width", stroke.width);
            }
            (None, None) => self.out.push_str(" fill=\"none\""),
        }
        self.out.push_str(" d=\"");
        let mut point = |letter: char, points: &[Point]| {
            self.out.push(letter);
            for (at, point) in points.iter().enumerate() {
                if at > 0 {
                    self.out.push(' ');
                }
                push_length(self.out, point.x);
                self.out.push(' ');
                push_length(self.out, point.y);
            }
        };
        for step in steps {
            match *step {
                Step::Move(a) => point('M', &[a]),
                Step::Line(a) => point('L', &[a]),
                Step::Curve(a, b, c) => point('C', &[a, b, c]),
                Step::Close => point('Z', &[]),
            }
        }
        self.out.push_str("\"/>\n");
    }

    fn text(&mut self, at: Point, text: Span, style: TextStyle) {
        self.out.push_str("<text class=\"t-");
        style.paint.write_name(self.out);
        if style.strong {
            self.out.push_str(" strong");
        }
        self.out.push('"');
        for (name, length) in [("x", at.x), ("y", baseline(at, style.size)), ("font-size", style.size)] {
            attribute(self.out, name, length);
        }
        match style.anchor {
            Anchor::Start => {}
            Anchor::Middle => self.out.push_str(" text-anchor=\"middle\""),
            Anchor::End => self.out.push_str(" text-anchor=\"end\""),
        }
        self.out.push('>');
        self.texts.push(self.out, text);
        self.out.push_str("</text>\n");
    }
}

/// The baseline of a text whose capitals have their middle at `at`. Capitals are 0.728 times the
/// font size high.
pub(crate) fn baseline(at: Point, size: f64) -> f64 {
    at.y + 0.364 * size
}

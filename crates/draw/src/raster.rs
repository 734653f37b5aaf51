//! PNG files.
//!
//! Law: the pixels are those of the scene at a scale, drawn with smooth edges and the embedded
//! fonts, on the background of the theme. A picture of more than [`MAX_PIXELS`] pixels is scaled
//! down, so that there is always a file.

use std::collections::HashMap;

use tiny_skia::{Color, FillRule, LineCap, PathBuilder, Pixmap, Rect, StrokeDash, Transform};
use ttf_parser::GlyphId;

use crate::colour::Rgb;
use crate::font::{Fonts, Weight};
use crate::image::png as encoded;
use crate::scene::{Anchor, Frame, Pen, Point, Scene, Step, Stroke};
use crate::svg::{baseline, padded};
use crate::theme::{Mode, Paint};

/// The largest number of pixels of a file.
pub const MAX_PIXELS: f64 = 33_554_432.0;
/// The longest side of a file, in pixels.
const MAX_SIDE: f64 = 16_000.0;

/// The PNG file of a scene, with `scale` pixels for each CSS pixel, or fewer if it would be very
/// large.
///
/// ```
/// use tilewright_draw::{Mode, Point, Scene, TextStyle, png};
///
/// let mut scene = Scene::new();
/// scene.text(Point::new(0.0, 0.0), "pixels", TextStyle::plain());
/// assert!(png(&scene, Mode::Dark, 2.0).starts_with(b"\x89PNG"));
/// ```
pub fn png(scene: &Scene, mode: Mode, scale: f64) -> Vec<u8> {
    let frame = padded(scene.bounds());
    let (width, height) = (frame.width.max(1.0), frame.height.max(1.0));
    let wanted = if scale.is_finite() { scale.clamp(0.05, 16.0) } else { 1.0 };
    let scale = wanted.min((MAX_PIXELS / (width * height)).sqrt()).min(MAX_SIDE / width.max(height));
    let pixels = |length: f64| ((length * scale).round().max(1.0)) as u32;
    let Some(map) = Pixmap::new(pixels(width), pixels(height)) else { return encoded(1, 3, &[0; 3]) };
    let mut painter = Painter { map, mode, frame, scale, fonts: Fonts::new(), glyphs: HashMap::new() };
    painter.map.fill(color(Paint::Paper.rgb(mode)));
    painter.scene(scene);
    // Everything is opaque, so that colours need no division by their opacity.
    let mut bytes = Vec::with_capacity(painter.map.data().len() / 4 * 3);
    for pixel in painter.map.data().chunks_exact(4) {
        bytes.extend(pixel.iter().take(3));
    }
    encoded(usize::try_from(painter.map.width()).unwrap_or(1), 3, &bytes)
}

fn color(Rgb(r, g, b): Rgb) -> Color {
    Color::from_rgba8(r, g, b, 255)
}

struct Painter {
    map: Pixmap,
    mode: Mode,
    frame: Frame,
    scale: f64,
    fonts: Fonts,
    /// The outlines of glyphs, for a size of 1.
    glyphs: HashMap<(Weight, GlyphId), Option<tiny_skia::Path>>,
}

impl Painter {
    fn x(&self, x: f64) -> f32 {
        ((x - self.frame.x) * self.scale) as f32
    }

    fn y(&self, y: f64) -> f32 {
        ((y - self.frame.y) * self.scale) as f32
    }

    fn paint(&self, rgb: Rgb) -> tiny_skia::Paint<'static> {
        let mut paint = tiny_skia::Paint::default();
        paint.set_color(color(rgb));
        paint.anti_alias = true;
        paint
    }
}

impl Pen for Painter {
    fn mode(&self) -> Mode {
        self.mode
    }

    /// Fills a rectangle whose sides are aligned to pixel boundaries, so that neighbours leave no
    /// seam.
    fn fill(&mut self, frame: Frame, rgb: Rgb) {
        let (left, top) = (self.x(frame.x).round(), self.y(frame.y).round());
        let (right, bottom) = (self.x(frame.x + frame.width).round(), self.y(frame.y + frame.height).round());
        if let Some(rect) = Rect::from_ltrb(left, top, right, bottom) {
            let mut paint = self.paint(rgb);
            paint.anti_alias = false;
            self.map.fill_rect(rect, &paint, Transform::identity(), None);
        }
    }

    fn path(&mut self, steps: &[Step], fill: Option<Paint>, stroke: Option<Stroke>) {
        let mut builder = PathBuilder::new();
        let place = |point: Point| (self.x(point.x), self.y(point.y));
        push_steps(&mut builder, steps, &place);
        let Some(path) = builder.finish() else { return };
        if let Some(fill) = fill {
            let paint = self.paint(fill.rgb(self.mode));
            self.map.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
        }
        if let Some(stroke) = stroke {
            let width = (stroke.width * self.scale) as f32;
            let dash = stroke.dashed.then(|| StrokeDash::new(vec![3.0 * width, 3.0 * width], 0.0)).flatten();
            let line = tiny_skia::Stroke { width, dash, line_cap: LineCap::Butt, ..tiny_skia::Stroke::default() };
            let paint = self.paint(stroke.paint.rgb(self.mode));
            self.map.stroke_path(&path, &paint, &line, Transform::identity(), None);
        }
    }

    fn text(&mut self, at: Point, text: &str, size: f64, strong: bool, anchor: Anchor, rgb: Rgb) {
        let (glyphs, width) = self.fonts.line(text, strong);
        let left = anchor.left(at.x, width * size);
        let paint = self.paint(rgb);
        let grown = (size * self.scale) as f32;
        for glyph in glyphs {
            let (x, y) = (self.x(left + glyph.x * size), self.y(baseline(at, size)));
            let outline = self.glyphs.entry((glyph.font, glyph.id)).or_insert_with(|| {
                let mut builder = PathBuilder::new();
                let steps = self.fonts.outline(glyph.font, glyph.id);
                push_steps(&mut builder, &steps, &|point| (point.x as f32, point.y as f32));
                builder.finish()
            });
            if let Some(path) = outline {
                let transform = Transform::from_row(grown, 0.0, 0.0, grown, x, y);
                self.map.fill_path(path, &paint, FillRule::Winding, transform, None);
            }
        }
    }

    fn image(&mut self, scene: &Scene, frame: Frame, image: usize) {
        let Some(image) = scene.images().get(image) else { return };
        let (rows, columns) = (image.height(), image.width());
        let (height, width) = (frame.height / rows as f64, frame.width / columns as f64);
        let bytes = image.bytes(self.mode);
        for (place, rgb) in bytes.chunks_exact(3).enumerate() {
            if let [r, g, b] = *rgb {
                let (x, y) = ((place % columns) as f64 * width, (place / columns) as f64 * height);
                self.fill(Frame::new(frame.x + x, frame.y + y, width, height), Rgb(r, g, b));
            }
        }
    }
}

fn push_steps(builder: &mut PathBuilder, steps: &[Step], place: &dyn Fn(Point) -> (f32, f32)) {
    for step in steps {
        match *step {
            Step::Move(a) => {
                let (x, y) = place(a);
                builder.move_to(x, y);
            }
            Step::Line(a) => {
                let (x, y) = place(a);
                builder.line_to(x, y);
            }
            Step::Curve(a, b, c) => {
                let ((x1, y1), (x2, y2), (x, y)) = (place(a), place(b), place(c));
                builder.cubic_to(x1, y1, x2, y2, x, y);
            }
            Step::Close => builder.close(),
        }
    }
}

//! The fonts of PNG and PDF files.
//!
//! Law: a character is drawn in the first font that has it: Inter for ASCII and a few related
//! signs, DejaVu Sans for Latin, Greek and Cyrillic letters, arrows, mathematics and boxes. A
//! character that no font has would be drawn as a box, so [`Figure::file`](crate::Figure::file)
//! refuses it. A word has one font: if Inter lacks one of its letters, all of it is in DejaVu Sans.
//! All digits have the same width.

use ttf_parser::{Face, GlyphId};

use crate::scene::{Item, Scene, Span};

#[cfg(feature = "png")]
use {
    crate::scene::{Point, Step},
    ttf_parser::OutlineBuilder,
};

/// The font of a glyph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Weight {
    Regular,
    Strong,
    /// The font of other letters and signs.
    Other,
    /// The same font, bold.
    OtherStrong,
}

impl Weight {
    pub(crate) const ALL: [Weight; 4] = [Weight::Regular, Weight::Strong, Weight::Other, Weight::OtherStrong];

    /// The font file.
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Weight::Regular => include_bytes!("fonts/Inter-Regular.ttf"),
            Weight::Strong => include_bytes!("fonts/Inter-SemiBold.ttf"),
            Weight::Other => dejavu::sans::regular(),
            Weight::OtherStrong => dejavu::sans::bold(),
        }
    }
}

/// The parsed fonts.
pub(crate) struct Fonts {
    faces: [Option<Face<'static>>; 4],
}

/// A glyph in a line of text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Glyph {
    pub font: Weight,
    pub id: GlyphId,
    #[cfg(feature = "pdf")]
    pub character: char,
    /// The distance from the start of the line, for a font size of 1.
    pub x: f64,
}

impl Fonts {
    pub(crate) fn new() -> Fonts {
        Fonts { faces: Weight::ALL.map(|weight| Face::parse(weight.bytes(), 0).ok()) }
    }

    pub(crate) fn face(&self, weight: Weight) -> Option<&Face<'static>> {
        let [regular, strong, other, other_strong] = &self.faces;
        match weight {
            Weight::Regular => regular.as_ref(),
            Weight::Strong => strong.as_ref(),
            Weight::Other => other.as_ref(),
            Weight::OtherStrong => other_strong.as_ref(),
        }
    }

    /// Whether a font has a character and can place it: characters that are written from right to
    /// left are not placed.
    pub(crate) fn has(&self, character: char) -> bool {
        let leftward = matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
        !leftward && self.faces.iter().flatten().any(|face| face.glyph_index(character).is_some())
    }

    /// The first character of a scene that no font has; None if there is none.
    pub(crate) fn lacking(&self, scene: &Scene) -> Option<char> {
        let shown = scene.items().iter().flat_map(|item| match item {
            Item::Tile(tile) => [tile.label, tile.second],
            Item::Text { text, .. } => [*text, Span::default()],
            _ => [Span::default(); 2],
        });
        let mut letters = shown.flat_map(|span| scene.text_of(span).chars());
        letters.find(|letter| !letter.is_ascii() && !letter.is_whitespace() && !self.has(*letter))
    }

    /// The glyphs of a line and its width, for a size of 1.
    pub(crate) fn line(&self, text: &str, strong: bool) -> (Vec<Glyph>, f64) {
        let (weight, other) =
            if strong { (Weight::Strong, Weight::OtherStrong) } else { (Weight::Regular, Weight::Other) };
        let mut glyphs = Vec::with_capacity(text.len());
        let mut x = 0.0;
        for word in text.split_inclusive(char::is_whitespace) {
            let find = |font: Weight, character: char| Some((font, self.face(font)?.glyph_index(character)?));
            let lacking = word.chars().any(|letter| letter.is_alphabetic() && find(weight, letter).is_none());
            let (first, second) = if lacking { (other, weight) } else { (weight, other) };
            for character in word.chars() {
                let found = find(first, character).or_else(|| find(second, character));
                let (font, id) = found.unwrap_or((other, GlyphId(0)));
                glyphs.push(Glyph {
                    font,
                    id,
                    #[cfg(feature = "pdf")]
                    character,
                    x,
                });
                x += self.advance(font, id);
            }
        }
        (glyphs, x)
    }

    pub(crate) fn advance(&self, font: Weight, id: GlyphId) -> f64 {
        let Some(face) = self.face(font) else { return 0.0 };
        f64::from(face.glyph_hor_advance(id).unwrap_or(0)) / f64::from(face.units_per_em())
    }

    /// The outline of a glyph for a size of 1, y downward.
    #[cfg(feature = "png")]
    pub(crate) fn outline(&self, font: Weight, id: GlyphId) -> Vec<Step> {
        let Some(face) = self.face(font) else { return Vec::new() };
        let mut outline =
            Outline { steps: Vec::new(), unit: 1.0 / f64::from(face.units_per_em()), at: Point::default() };
        face.outline_glyph(id, &mut outline);
        outline.steps
    }
}

#[cfg(feature = "png")]
struct Outline {
    steps: Vec<Step>,
    unit: f64,
    at: Point,
}

#[cfg(feature = "png")]
impl Outline {
    fn point(&self, x: f32, y: f32) -> Point {
        Point::new(f64::from(x) * self.unit, -f64::from(y) * self.unit)
    }
}

#[cfg(feature = "png")]
impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.at = self.point(x, y);
        self.steps.push(Step::Move(self.at));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.at = self.point(x, y);
        self.steps.push(Step::Line(self.at));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        // A quadratic curve equals the cubic curve whose control points are two thirds of the way
        // to its own control point.
        let (from, control, to) = (self.at, self.point(x1, y1), self.point(x, y));
        let toward = |a: Point| Point::new(a.x + (control.x - a.x) * 2.0 / 3.0, a.y + (control.y - a.y) * 2.0 / 3.0);
        self.at = to;
        self.steps.push(Step::Curve(toward(from), toward(to), to));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.at = self.point(x, y);
        self.steps.push(Step::Curve(self.point(x1, y1), self.point(x2, y2), self.at));
    }

    fn close(&mut self) {
        self.steps.push(Step::Close);
    }
}

//! PDF files.
//!
//! Law: a file has one page of exactly the size of the picture. Text is stored as text in the
//! embedded fonts, can be searched and copied, and looks the same everywhere. A CSS pixel is three
//! quarters of a point; a picture that exceeds the largest page is scaled down. The file contains
//! only the glyphs of a font that it shows.

use std::collections::BTreeMap;

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};
use subsetter::{GlyphRemapper, subset};
use ttf_parser::{Face, GlyphId};

use crate::colour::Rgb;
use crate::document::Document;
use crate::font::{Fonts, Weight};
use crate::scene::{Anchor, Frame, Pen, Point, Scene, Step, Stroke};
use crate::svg::{baseline, padded};
use crate::theme::{Mode, Paint};

/// The longest side of a page, in points.
const MAX_SIDE: f64 = 14_400.0;
const POINT: f64 = 0.75;

/// The PDF file of a scene.
///
/// ```
/// use tilewright_draw::{Document, Point, Scene, TextStyle, pdf};
///
/// let mut scene = Scene::new();
/// scene.text(Point::new(0.0, 0.0), "a page", TextStyle::plain());
/// assert!(pdf(&scene, &Document::default()).starts_with(b"%PDF-"));
/// ```
pub fn pdf(scene: &Scene, document: &Document) -> Vec<u8> {
    let frame = padded(scene.bounds());
    let scale = POINT.min(MAX_SIDE / frame.width.max(frame.height).max(1.0));
    let mut writer = PdfWriter {
        content: Content::new(),
        fonts: Fonts::new(),
        shown: BTreeMap::new(),
        frame,
        scale,
        mode: document.theme.mode(),
        fill: None,
    };
    writer.content.rect(0.0, 0.0, (frame.width * scale) as f32, (frame.height * scale) as f32);
    writer.fill_with(Paint::Paper.rgb(writer.mode));
    writer.content.fill_nonzero();
    writer.scene(scene);
    let PdfWriter { content, fonts, shown, mode, .. } = writer;

    let mut ids = Ids(0);
    let (catalog, pages, page, stream, info) = (ids.next(), ids.next(), ids.next(), ids.next(), ids.next());
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages).lang(TextStr("en"));
    pdf.pages(pages).kids([page]).count(1);
    pdf.document_info(info).title(TextStr(&document.title)).subject(TextStr(&document.source.join("; ")));
    let used: Vec<(Weight, Ref)> = shown.keys().map(|font| (*font, ids.next())).collect();
    let images: Vec<Ref> = scene.images().iter().map(|_| ids.next()).collect();
    let mut written = pdf.page(page);
    let size = Rect::new(0.0, 0.0, (frame.width * scale) as f32, (frame.height * scale) as f32);
    written.parent(pages).media_box(size).contents(stream);
    let mut resources = written.resources();
    let mut named = resources.fonts();
    for (font, id) in &used {
        named.pair(name_of(*font), *id);
    }
    named.finish();
    let mut named = resources.x_objects();
    for (place, id) in images.iter().enumerate() {
        named.pair(Name(format!("I{place}").as_bytes()), *id);
    }
    named.finish();
    resources.finish();
    written.finish();
    let body = compress_to_vec_zlib(content.finish().as_slice(), 6);
    pdf.stream(stream, &body).filter(Filter::FlateDecode);
    for (image, id) in scene.images().iter().zip(images) {
        let data = compress_to_vec_zlib(&image.bytes(mode), 6);
        let side = |pixels: usize| i32::try_from(pixels).unwrap_or(i32::MAX);
        let mut object = pdf.image_xobject(id, &data);
        object.filter(Filter::FlateDecode);
        object.width(side(image.width())).height(side(image.height()));
        object.bits_per_component(8).color_space().device_rgb();
    }
    for ((font, shown), (_, id)) in shown.iter().zip(used) {
        if let Some(face) = fonts.face(*font) {
            embed(&mut pdf, &mut ids, id, *font, face, &fonts, shown);
        }
    }
    pdf.finish()
}

/// The glyphs of a font that are shown: their numbers in the file, and for each number the glyph
/// and its character.
#[derive(Default)]
struct FontSubset {
    numbers: GlyphRemapper,
    glyphs: BTreeMap<u16, (GlyphId, char)>,
}

/// A counter for the numbers of the file's objects.
struct Ids(i32);

impl Ids {
    fn next(&mut self) -> Ref {
        self.0 += 1;
        Ref::new(self.0)
    }
}

fn name_of(font: Weight) -> Name<'static> {
    Name(match font {
        Weight::Regular => b"F0",
        Weight::Strong => b"F1",
        Weight::Other => b"F2",
        Weight::OtherStrong => b"F3",
    })
}

/// Writes a font with the widths and characters of the glyphs in use.
fn embed(pdf: &mut Pdf, ids: &mut Ids, id: Ref, font: Weight, face: &Face<'static>, fonts: &Fonts, shown: &FontSubset) {
    let (descendant, descriptor, characters, file) = (ids.next(), ids.next(), ids.next(), ids.next());
    let base = Name(match font {
        Weight::Regular => b"TWAAAA+Inter-Regular",
        Weight::Strong => b"TWAAAB+Inter-SemiBold",
        Weight::Other => b"TWAAAC+DejaVuSans",
        Weight::OtherStrong => b"TWAAAD+DejaVuSans-Bold",
    });
    let system = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };
    pdf.type0_font(id)
        .base_font(base)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(descendant)
        .to_unicode(characters);
    let mut cid = pdf.cid_font(descendant);
    cid.subtype(CidFontType::Type2).base_font(base).system_info(system).font_descriptor(descriptor);
    cid.default_width(0.0).cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid.widths();
    for (number, (glyph, _)) in &shown.glyphs {
        widths.consecutive(*number, [(fonts.advance(font, *glyph) * 1000.0) as f32]);
    }
    widths.finish();
    cid.finish();
    let unit = 1000.0 / f32::from(face.units_per_em());
    let box_of = face.global_bounding_box();
    let side = |length: i16| f32::from(length) * unit;
    let mut described = pdf.font_descriptor(descriptor);
    described.name(base).flags(FontFlags::SYMBOLIC).italic_angle(0.0).stem_v(80.0);
    described.bbox(Rect::new(side(box_of.x_min), side(box_of.y_min), side(box_of.x_max), side(box_of.y_max)));
    described.ascent(side(face.ascender())).descent(side(face.descender()));
    described.cap_height(side(face.capital_height().unwrap_or(face.ascender()))).font_file2(file);
    described.finish();
    let mut map = UnicodeCmap::new(
        Name(b"Characters"),
        SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"UCS"), supplement: 0 },
    );
    for (number, (_, character)) in &shown.glyphs {
        map.pair(*number, *character);
    }
    pdf.cmap(characters, &map.finish());
    // The fonts are known and can be reduced to a subset, which a test checks.
    let cut = subset(font.bytes(), 0, &shown.numbers).unwrap_or_default();
    let body = compress_to_vec_zlib(&cut, 6);
    let length = i32::try_from(cut.len()).unwrap_or(i32::MAX);
    pdf.stream(file, &body).filter(Filter::FlateDecode).pair(Name(b"Length1"), length);
}

struct PdfWriter {
    content: Content,
    fonts: Fonts,
    /// The glyphs in use, font by font.
    shown: BTreeMap<Weight, FontSubset>,
    frame: Frame,
    scale: f64,
    mode: Mode,
    /// The current fill.
    fill: Option<Rgb>,
}

impl PdfWriter {
    fn x(&self, x: f64) -> f32 {
        ((x - self.frame.x) * self.scale) as f32
    }

    /// The y axis of PDF points upward.
    fn y(&self, y: f64) -> f32 {
        ((self.frame.y + self.frame.height - y) * self.scale) as f32
    }

    fn fill_with(&mut self, rgb: Rgb) {
        if self.fill != Some(rgb) {
            let [r, g, b] = unit(rgb);
            self.content.set_fill_rgb(r, g, b);
            self.fill = Some(rgb);
        }
    }
}

impl Pen for PdfWriter {
    fn mode(&self) -> Mode {
        self.mode
    }

    fn fill(&mut self, frame: Frame, rgb: Rgb) {
        self.fill_with(rgb);
        let (width, height) = ((frame.width * self.scale) as f32, (frame.height * self.scale) as f32);
        self.content.rect(self.x(frame.x), self.y(frame.y) - height, width, height).fill_nonzero();
    }

    fn image(&mut self, _: &Scene, frame: Frame, image: usize) {
        let size = [(frame.width * self.scale) as f32, (frame.height * self.scale) as f32];
        let (x, y) = (self.x(frame.x), self.y(frame.y + frame.height));
        self.content.save_state().transform([size[0], 0.0, 0.0, size[1], x, y]);
        self.content.x_object(Name(format!("I{image}").as_bytes())).restore_state();
    }

    fn path(&mut self, steps: &[Step], fill: Option<Paint>, stroke: Option<Stroke>) {
        if let Some(fill) = fill {
            self.fill_with(fill.rgb(self.mode));
        }
        if let Some(stroke) = stroke {
            let [r, g, b] = unit(stroke.paint.rgb(self.mode));
            let width = (stroke.width * self.scale) as f32;
            self.content.set_stroke_rgb(r, g, b).set_line_width(width);
            let dash = if stroke.dashed { vec![3.0 * width] } else { Vec::new() };
            self.content.set_dash_pattern(dash, 0.0);
        }
        for step in steps {
            match *step {
                Step::Move(a) => self.content.move_to(self.x(a.x), self.y(a.y)),
                Step::Line(a) => self.content.line_to(self.x(a.x), self.y(a.y)),
                Step::Curve(a, b, c) => {
                    self.content.cubic_to(self.x(a.x), self.y(a.y), self.x(b.x), self.y(b.y), self.x(c.x), self.y(c.y))
                }
                Step::Close => self.content.close_path(),
            };
        }
        match (fill, stroke) {
            (Some(_), Some(_)) => self.content.fill_nonzero_and_stroke(),
            (Some(_), None) => self.content.fill_nonzero(),
            (None, Some(_)) => self.content.stroke(),
            (None, None) => self.content.end_path(),
        };
    }

    fn text(&mut self, at: Point, text: &str, size: f64, strong: bool, anchor: Anchor, rgb: Rgb) {
        let (glyphs, width) = self.fonts.line(text, strong);
        let left = anchor.left(at.x, width * size);
        self.fill_with(rgb);
        let y = self.y(baseline(at, size));
        // A change of font begins a new run.
        for run in glyphs.chunk_by(|a, b| a.font == b.font) {
            let Some(first) = run.first() else { continue };
            let mut codes = Vec::with_capacity(2 * run.len());
            let shown = self.shown.entry(first.font).or_default();
            for glyph in run {
                let number = shown.numbers.remap(glyph.id.0);
                codes.extend(number.to_be_bytes());
                shown.glyphs.entry(number).or_insert((glyph.id, glyph.character));
            }
            let x = self.x(left + first.x * size);
            self.content.begin_text().set_font(name_of(first.font), (size * self.scale) as f32);
            self.content.next_line(x, y).show(Str(&codes)).end_text();
        }
    }
}

/// Red, green and blue from 0 to 1.
fn unit(Rgb(r, g, b): Rgb) -> [f32; 3] {
    [r, g, b].map(|byte| f32::from(byte) / 255.0)
}

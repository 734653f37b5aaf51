//! TikZ pictures.
//!
//! Law: the text is a complete document that pdfLaTeX compiles with only `tikz`. A cell has no node
//! and no colour of its own. Cells do not overlap, so those with the same fill become one path.
//! Their texts, colour by colour, become one box of kerned pieces. So memory grows by some dozen
//! words for each cell, and tens of thousands of cells stay within the capacity of a standard TeX.
//! TikZ cannot embed an image, so an image becomes runs of coloured rectangles, in at most 96 rows
//! and columns.

use std::collections::{BTreeMap, HashSet};

use crate::colour::Rgb;
use crate::document::Document;
use crate::image::Image;
use crate::number::push_length;
use crate::scene::{Anchor, Frame, Item, Point, Scene, Span, Step, Stroke, Tile};
use crate::svg::{baseline, padded};
use crate::theme::{Mode, Paint};

/// The largest number of rows and columns of an image that are drawn.
const MAX_IMAGE: usize = 96;

/// The overlap of neighbouring pixels.
const SEAM: f64 = 0.4;
/// The largest number of texts; beyond it, cells keep their first line, or none.
const MAX_TEXTS: usize = 33_000;

/// Rectangles (x, y, width, height) are collected until they are filled; texts (x, y, text) are
/// collected in a box until it is placed.
const MACROS: &str = r"\newcommand\twr[4]{\pgfpathrectangle{\pgfqpoint{#1bp}{#2bp}}{\pgfqpoint{#3bp}{#4bp}}}
\newcommand\twf[1]{\pgfsetfillcolor{#1}\pgfusepath{fill}}
\newsavebox\twbox
\newcommand\twbegin[3][]{\begingroup\pgfsetfillcolor{#3}\setbox\twbox\hbox\bgroup\pgfinterruptpicture\sffamily#1\fontsize{#2}{#2}\selectfont}
\newcommand\twm[3]{\rlap{\kern#1bp\raise#2bp\hbox to 0pt{\hss#3\hss}}}
\newcommand\twl[3]{\rlap{\kern#1bp\raise#2bp\hbox to 0pt{#3\hss}}}
\newcommand\twe[3]{\rlap{\kern#1bp\raise#2bp\hbox to 0pt{\hss#3}}}
\newcommand\twend{\endpgfinterruptpicture\egroup\pgftext[base,left]{\box\twbox}\endgroup}
";

/// The LaTeX document of a scene.
///
/// ```
/// use tilewright_draw::{Document, Point, Scene, TextStyle, tikz};
///
/// let mut scene = Scene::new();
/// scene.text(Point::new(0.0, 0.0), "50% of x_1", TextStyle::plain());
/// let text = tikz(&scene, &Document::default());
/// assert!(text.contains(r"50\% of x\_1"));
/// ```
pub fn tikz(scene: &Scene, document: &Document) -> String {
    let mode = document.theme.mode();
    let mut out = String::with_capacity(4096 + scene.items().len() * 100);
    for line in [&document.title].into_iter().chain(&document.source) {
        if !line.is_empty() {
            out.push_str("% ");
            for c in line.chars().filter(|c| !c.is_control()) {
                if c.is_ascii() { out.push(c) } else { push_tex(&mut out, c.encode_utf8(&mut [0; 4])) }
            }
            out.push('\n');
        }
    }
    out.push_str("\\documentclass{article}\n\\usepackage{tikz}\n");
    out.push_str("\\renewcommand\\familydefault{\\sfdefault}\n\\pagestyle{empty}\n\\setlength\\parindent{0pt}\n");
    let frame = padded(scene.bounds());
    // TeX lengths end at 16383 points, so a larger picture is scaled down.
    let scale = (13_000.0 / frame.width.max(frame.height).max(1.0)).min(1.0);
    for (name, length) in [("paperwidth", frame.width), ("paperheight", frame.height)] {
        out.push('\\');
        out.push_str(name);
        out.push('=');
        push_length(&mut out, length * scale);
        out.push_str("bp\n");
    }
    out.push_str("\\pdfpagewidth=\\paperwidth \\pdfpageheight=\\paperheight\n");
    out.push_str("\\hoffset=-1in \\voffset=-1in \\topmargin=0pt \\headheight=0pt \\headsep=0pt \\topskip=0pt\n");
    out.push_str("\\oddsidemargin=0pt \\textwidth=\\paperwidth \\textheight=\\paperheight \\maxdepth=0pt\n");
    colours(&mut out, scene, mode);
    out.push_str(MACROS);
    out.push_str("\\begin{document}\\vbox to 0pt{\\vss}\\nointerlineskip%\n");
    let tiles = scene.items().iter().filter_map(|item| if let Item::Tile(tile) = item { Some(tile) } else { None });
    let counts =
        tiles.map(|tile| tile.lines().count()).fold([0, 0], |[first, all], lines| [first + lines.min(1), all + lines]);
    let lines = match counts {
        [_, all] if all <= MAX_TEXTS => 2,
        [first, _] if first <= MAX_TEXTS => 1,
        _ => 0,
    };
    let mut writer = TikzWriter { out: &mut out, scene, frame, scale, mode, lines };
    writer.out.push_str("\\begin{tikzpicture}[x=1bp,y=1bp]\n\\useasboundingbox (0,0) rectangle (");
    let (width, height) = (frame.width * scale, frame.height * scale);
    writer.pair(width, height);
    writer.out.push_str(");\n");
    writer.rectangle(frame);
    writer.fill(Paint::Paper);
    writer.items();
    out.push_str("\\end{tikzpicture}\n\\end{document}\n");
    out
}

/// Defines every colour in use, including those of text on fills.
fn colours(out: &mut String, scene: &Scene, mode: Mode) {
    let mut seen: HashSet<Paint> = HashSet::new();
    let mut define = |paint: Paint| {
        if seen.insert(paint) {
            for (prefix, colour) in [("tw", paint.rgb(mode)), ("on", paint.text(mode))] {
                out.push_str("\\definecolor{");
                out.push_str(prefix);
                paint.write_name(out);
                out.push_str("}{HTML}{");
                out.push_str(&colour.hex().to_uppercase());
                out.push_str("}\n");
            }
        }
    };
    define(Paint::Paper);
    define(Paint::Faint);
    for item in scene.items() {
        match item {
            Item::Tile(tile) => {
                define(tile.fill);
                if let Some(border) = tile.border {
                    define(border.paint);
                }
            }
            Item::Line { stroke, .. } => define(stroke.paint),
            Item::Path { fill, stroke, .. } => {
                fill.iter().for_each(|fill| define(*fill));
                stroke.iter().for_each(|stroke| define(stroke.paint));
            }
            Item::Text { style, .. } => define(style.paint),
            Item::Image { image, .. } => {
                if let Some(image) = scene.images().get(*image) {
                    reduced(image).into_iter().flatten().for_each(&mut define);
                }
            }
            Item::Open { .. } | Item::Close => {}
        }
    }
}

/// The rows of an image, reduced to at most [`MAX_IMAGE`] rows and columns.
fn reduced(image: &Image) -> Vec<Vec<Paint>> {
    let (height, width) = (image.height().min(MAX_IMAGE), image.width().min(MAX_IMAGE));
    let place = |at: usize, shown: usize, all: usize| at * all / shown.max(1);
    let row = |row: usize| {
        let pixel =
            |column: usize| image.pixel(place(row, height, image.height()), place(column, width, image.width()));
        (0..width).map(|column| pixel(column).unwrap_or_default()).collect()
    };
    (0..height).map(row).collect()
}

struct TikzWriter<'a> {
    out: &'a mut String,
    scene: &'a Scene,
    frame: Frame,
    scale: f64,
    mode: Mode,
    /// The number of lines of a cell's text that are written.
    lines: usize,
}

impl TikzWriter<'_> {
    fn x(&self, x: f64) -> f64 {
        (x - self.frame.x) * self.scale
    }

    /// The y axis of TikZ points upward.
    fn y(&self, y: f64) -> f64 {
        (self.frame.y + self.frame.height - y) * self.scale
    }

    fn pair(&mut self, x: f64, y: f64) {
        push_length(self.out, x);
        self.out.push(',');
        push_length(self.out, y);
    }

    fn point(&mut self, point: Point) {
        self.out.push('(');
        self.pair(self.x(point.x), self.y(point.y));
        self.out.push(')');
    }

    fn argument(&mut self, length: f64) {
        self.out.push('{');
        push_length(self.out, length);
        self.out.push('}');
    }

    fn name(&mut self, prefix: &str, paint: Paint) {
        self.out.push_str(prefix);
        paint.write_name(self.out);
    }

    /// Adds a rectangle to the next fill.
    fn rectangle(&mut self, frame: Frame) {
        self.out.push_str("\\twr");
        self.argument(self.x(frame.x));
        self.argument(self.y(frame.y + frame.height));
        self.argument(frame.width * self.scale);
        self.argument(frame.height * self.scale);
        self.out.push('\n');
    }

    fn fill(&mut self, paint: Paint) {
        self.out.push_str("\\twf{");
        self.name("tw", paint);
        self.out.push_str("}\n");
    }

    fn begin_texts(&mut self, (prefix, paint): (&str, Paint), size: f64, strong: bool) {
        self.out.push_str(if strong { "\\twbegin[\\bfseries]" } else { "\\twbegin" });
        self.argument(size * self.scale);
        self.out.push('{');
        self.name(prefix, paint);
        self.out.push_str("}%\n");
    }

    fn text(&mut self, at: Point, text: &str, size: f64, anchor: Anchor) {
        self.out.push_str(match anchor {
            Anchor::Start => "\\twl",
            Anchor::Middle => "\\twm",
            Anchor::End => "\\twe",
        });
        self.argument(self.x(at.x));
        self.argument(self.y(baseline(at, size)));
        self.out.push('{');
        push_tex(self.out, text);
        self.out.push_str("}%\n");
    }

    /// Plain tiles in sequence: their fills, then their texts.
    fn tiles(&mut self, tiles: &[&Tile]) {
        let scene = self.scene;
        let mut fills: BTreeMap<[u8; 3], (Paint, Vec<Frame>)> = BTreeMap::new();
        type TextGroup = (&'static str, Paint, f64, Vec<(Span, Point)>);
        let mut texts: BTreeMap<([u8; 3], u64), TextGroup> = BTreeMap::new();
        let bytes = |Rgb(r, g, b): Rgb| [r, g, b];
        for tile in tiles {
            let fill = fills.entry(bytes(tile.fill.rgb(self.mode))).or_insert_with(|| (tile.fill, Vec::new()));
            fill.1.push(tile.frame);
            let (prefix, paint) = if tile.faint { ("tw", Paint::Faint) } else { ("on", tile.fill) };
            let rgb = if tile.faint { paint.rgb(self.mode) } else { paint.text(self.mode) };
            for (span, at, size) in tile.lines().take(self.lines) {
                let group =
                    texts.entry((bytes(rgb), size.to_bits())).or_insert_with(|| (prefix, paint, size, Vec::new()));
                group.3.push((span, at));
            }
        }
        for (paint, frames) in fills.into_values() {
            for frame in frames {
                self.rectangle(frame);
            }
            self.fill(paint);
        }
        for (prefix, paint, size, spans) in texts.into_values() {
            self.begin_texts((prefix, paint), size, false);
            for (span, at) in spans {
                self.text(at, scene.text_of(span), size, Anchor::Middle);
            }
            self.out.push_str("\\twend\n");
        }
    }

    fn items(&mut self) {
        let scene = self.scene;
        let mut run: Vec<&Tile> = Vec::new();
        for item in scene.items() {
            match item {
                Item::Tile(tile) if tile.border.is_none() && tile.radius == 0.0 => {
                    run.push(tile);
                    continue;
                }
                _ => self.tiles(&std::mem::take(&mut run)),
            }
            match item {
                Item::Tile(tile) => self.node(tile),
                Item::Line { from, to, stroke } => {
                    self.draw(None, Some(*stroke));
                    self.point(*from);
                    self.out.push_str("--");
                    self.point(*to);
                    self.out.push_str(";\n");
                }
                Item::Path { steps, fill, stroke } => self.path(scene.steps(steps.clone()), *fill, *stroke),
                Item::Text { at, text, style } => {
                    self.begin_texts(("tw", style.paint), style.size, style.strong);
                    self.text(*at, scene.text_of(*text), style.size, style.anchor);
                    self.out.push_str("\\twend\n");
                }
                Item::Image { frame, image } => {
                    if let Some(image) = scene.images().get(*image) {
                        self.image(*frame, &reduced(image));
                    }
                }
                Item::Open { .. } | Item::Close => {}
            }
        }
        self.tiles(&run);
    }

    /// A tile with a border or round corners.
    fn node(&mut self, tile: &Tile) {
        self.draw(Some(tile.fill), tile.border);
        let Frame { x, y, width, height } = tile.frame;
        self.out.push_str("[rounded corners=");
        push_length(self.out, tile.radius * self.scale);
        self.out.push_str("bp] ");
        self.point(Point::new(x, y));
        self.out.push_str(" rectangle ");
        self.point(Point::new(x + width, y + height));
        self.out.push_str(";\n");
        for (span, at, size) in tile.lines() {
            let colour = if tile.faint { ("tw", Paint::Faint) } else { ("on", tile.fill) };
            self.begin_texts(colour, size, false);
            self.text(at, self.scene.text_of(span), size, Anchor::Middle);
            self.out.push_str("\\twend\n");
        }
    }

    /// The beginning of a path, with its options.
    fn draw(&mut self, fill: Option<Paint>, stroke: Option<Stroke>) {
        self.out.push_str("\\path[");
        if let Some(fill) = fill {
            self.name("fill=tw", fill);
            self.out.push(',');
        }
        if let Some(stroke) = stroke {
            self.name("draw=tw", stroke.paint);
            self.out.push_str(",line width=");
            push_length(self.out, stroke.width * self.scale);
            self.out.push_str("bp");
            if stroke.dashed {
                self.out.push_str(",dashed");
            }
        }
        self.out.push(']');
    }

    fn path(&mut self, steps: &[Step], fill: Option<Paint>, stroke: Option<Stroke>) {
        self.draw(fill, stroke);
        for (at, step) in steps.iter().enumerate() {
            // Limits the length of a line of the file.
            if at % 8 == 7 {
                self.out.push('\n');
            }
            match *step {
                Step::Move(a) => {
                    self.out.push(' ');
                    self.point(a);
                }
                Step::Line(a) => {
                    self.out.push_str("--");
                    self.point(a);
                }
                Step::Curve(a, b, c) => {
                    self.out.push_str(" .. controls ");
                    self.point(a);
                    self.out.push_str(" and ");
                    self.point(b);
                    self.out.push_str(" .. ");
                    self.point(c);
                }
                Step::Close => self.out.push_str("--cycle"),
            }
        }
        self.out.push_str(";\n");
    }

    /// Runs of pixels of one colour as rectangles, colour by colour.
    fn image(&mut self, frame: Frame, rows: &[Vec<Paint>]) {
        let height = frame.height / rows.len().max(1) as f64;
        let mode = self.mode;
        let mut fills: BTreeMap<[u8; 3], (Paint, Vec<Frame>)> = BTreeMap::new();
        for (row, pixels) in rows.iter().enumerate() {
            let width = frame.width / pixels.len().max(1) as f64;
            let mut start = 0;
            for run in pixels.chunk_by(|a, b| a == b) {
                let (x, y) = (frame.x + start as f64 * width, frame.y + row as f64 * height);
                let paint = run.first().copied().unwrap_or_default();
                let Rgb(r, g, b) = paint.rgb(mode);
                let fill = fills.entry([r, g, b]).or_insert_with(|| (paint, Vec::new()));
                // The rectangles are slightly too large, because some programs leave seams between
                // neighbours.
                fill.1.push(Frame::new(x, y, run.len() as f64 * width + SEAM, height + SEAM));
                start += run.len();
            }
        }
        for (paint, frames) in fills.into_values() {
            for frame in frames {
                self.rectangle(frame);
            }
            self.fill(paint);
        }
    }
}

/// Appends text with TeX's special characters escaped.
fn push_tex(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' | '}' | '#' | '$' | '%' | '&' | '_' => {
                out.push('\\');
                out.push(c);
            }
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '"' => out.push_str("''"),
            '…' => out.push_str("\\dots{}"),
            '⋮' => out.push_str("$\\vdots$"),
            '⋯' => out.push_str("$\\cdots$"),
            '×' => out.push_str("$\\times$"),
            '·' => out.push_str("$\\cdot$"),
            '→' => out.push_str("$\\rightarrow$"),
            '↦' => out.push_str("$\\mapsto$"),
            '∘' => out.push_str("$\\circ$"),
            '⊗' => out.push_str("$\\otimes$"),
            '⊕' => out.push_str("$\\oplus$"),
            '−' => out.push_str("$-$"),
            '≤' => out.push_str("$\\le$"),
            '≥' => out.push_str("$\\ge$"),
            '≠' => out.push_str("$\\ne$"),
            '∞' => out.push_str("$\\infty$"),
            '–' => out.push_str("--"),
            c if c.is_control() => {}
            c if c.is_ascii() => out.push(c),
            // A character that a standard TeX may lack is written as its code point.
            c => {
                out.push_str("U+");
                out.push_str(&format!("{:04X}", u32::from(c)));
            }
        }
    }
}

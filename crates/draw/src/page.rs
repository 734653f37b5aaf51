//! Web pages of text, formulas and pictures.
//!
//! Law: a page is one file that needs nothing else, light or dark as the reader prefers. Text and
//! formulas take their colours from the roles of the pictures ([`Paint`]), so that a page looks
//! uniform. The parts are below one another; formulas and pictures of a part are side by side if
//! there is space.

use crate::document::Document;
use crate::figure::Figure;
use crate::html::head;
use crate::svg::push_escaped;
use crate::theme::{Mode, Paint, Theme};

const LAYOUT: &str = "\
*{box-sizing:border-box}
body{margin:0;padding:32px 24px 48px;background:var(--ground);color:var(--words);font-size:15px;line-height:1.55}
main{max-width:1160px;margin:0 auto}
h1{font-size:22px;line-height:1.3;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:15px;margin:0 0 10px;overflow-wrap:anywhere}
p{margin:0 0 16px;color:var(--quiet);max-width:80ch}
.part{display:flex;flex-wrap:wrap;gap:24px 40px;align-items:flex-start;padding:24px 0;border-top:1px solid var(--line)}
.words{flex:1 1 400px;min-width:0}
.pictures{flex:1 1 480px;min-width:0;display:flex;flex-direction:column;gap:20px}
pre{margin:0 0 8px;padding:0;font:13px/1.75 ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.wrong{border-left:3px solid var(--wrong);padding-left:12px;color:var(--words)}
.part:first-of-type{border:0;padding:4px 0 20px}
.value{font-size:14px;margin:0}
svg.tilewright{display:block;margin:-21px}
svg.tilewright>.paper{fill:none}
";

/// A part of a page.
#[derive(Debug, Default)]
struct PagePart {
    heading: String,
    words: Vec<(Words, String)>,
    pictures: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Text,
    Formulas,
    Value,
    Wrong,
}

/// A web page of text, formulas and pictures, part by part.
///
/// ```
/// use tilewright_draw::{Map, Page, Style, Theme, offsets};
/// use tilewright_layout::Layout;
///
/// let rows: Layout = "(4,8):(8,1)".parse().unwrap();
/// let mut page = Page::new("Row after row", Theme::Auto);
/// page.part("A matrix");
/// page.formulas("A(i,j) = 8i + j");
/// page.figure(&offsets("A", &Map::from(&rows), Style::default()));
/// let file = page.html();
/// assert!(file.contains("8i + j") && file.contains("<svg"));
/// ```
#[derive(Debug)]
pub struct Page {
    title: String,
    theme: Theme,
    parts: Vec<PagePart>,
}

impl Page {
    /// A page with a title and nothing on it.
    pub fn new(title: impl Into<String>, theme: Theme) -> Page {
        Page { title: title.into(), theme, parts: vec![PagePart::default()] }
    }

    /// Begins a part, to which everything is added from now on.
    pub fn part(&mut self, heading: impl Into<String>) {
        self.parts.push(PagePart { heading: heading.into(), ..PagePart::default() });
    }

    fn words(&mut self, kind: Words, text: impl Into<String>) {
        if let Some(part) = self.parts.last_mut() {
            part.words.push((kind, text.into()));
        }
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.words(Words::Text, text);
    }

    /// Adds lines of formulas, which keep their line breaks.
    pub fn formulas(&mut self, lines: impl Into<String>) {
        self.words(Words::Formulas, lines);
    }

    /// Adds lines with a result.
    pub fn value(&mut self, lines: impl Into<String>) {
        self.words(Words::Value, lines);
    }

    /// Adds lines with an error.
    pub fn wrong(&mut self, lines: impl Into<String>) {
        self.words(Words::Wrong, lines);
    }

    /// Adds a picture.
    pub fn figure(&mut self, figure: &Figure<'_>) {
        let picture = figure.svg(self.theme);
        if let Some(part) = self.parts.last_mut() {
            part.pictures.push(picture);
        }
    }

    /// The file.
    pub fn html(&self) -> String {
        let mut page = String::with_capacity(4096);
        let colours = |page: &mut String, mode: Mode| {
            page.push_str(":root{");
            let roles =
                [("ground", Paint::Paper), ("words", Paint::Ink), ("quiet", Paint::Faint), ("line", Paint::Rule)];
            for (name, paint) in roles.into_iter().chain([("wrong", Paint::Warn)]) {
                page.push_str(&format!("--{name}:#{};", paint.rgb(mode).hex()));
            }
            page.push_str("}\n");
        };
        head(&mut page, &Document { title: self.title.clone(), theme: self.theme, ..Document::default() });
        colours(&mut page, self.theme.mode());
        if self.theme == Theme::Auto {
            page.push_str("@media(prefers-color-scheme:dark){");
            colours(&mut page, Mode::Dark);
            page.push_str("}\n");
        }
        page.push_str(LAYOUT);
        page.push_str("</style>\n</head>\n<body>\n<main>\n<h1>");
        push_escaped(&mut page, &self.title);
        page.push_str("</h1>\n");
        for part in &self.parts {
            part.write(&mut page);
        }
        page.push_str("</main>\n</body>\n</html>\n");
        page
    }
}

impl PagePart {
    fn write(&self, page: &mut String) {
        if self.words.is_empty() && self.pictures.is_empty() && self.heading.is_empty() {
            return;
        }
        page.push_str("<section class=\"part\">\n<div class=\"words\">\n");
        if !self.heading.is_empty() {
            page.push_str("<h2>");
            push_escaped(page, &self.heading);
            page.push_str("</h2>\n");
        }
        for (kind, text) in &self.words {
            let (open, close) = match kind {
                Words::Text => ("<p>", "</p>\n"),
                Words::Formulas => ("<pre>", "</pre>\n"),
                Words::Value => ("<pre class=\"value\">", "</pre>\n"),
                Words::Wrong => ("<pre class=\"wrong\">", "</pre>\n"),
            };
            page.push_str(open);
            for (at, line) in text.lines().enumerate() {
                if at > 0 {
                    page.push('\n');
                }
                push_escaped(page, line);
            }
            page.push_str(close);
        }
        page.push_str("</div>\n");
        if !self.pictures.is_empty() {
            page.push_str("<div class=\"pictures\">\n");
            self.pictures.iter().for_each(|picture| page.push_str(picture));
            page.push_str("</div>\n");
        }
        page.push_str("</section>\n");
    }
}

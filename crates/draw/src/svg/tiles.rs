//! The tiles of an SVG file.
//!
//! Law: a tile is a group that is moved to its position. Apart from its texts, the content of the
//! group depends only on the tile's size and look. A picture has thousands of tiles and few looks,
//! so the pieces between the texts are written once for each look and then copied.

use crate::number::{push_integer, push_length};
use crate::scene::{Span, Stroke, Tile};
use crate::svg::escape::Texts;
use crate::svg::{attribute, baseline, push_stroke};

/// The number of looks that are remembered. A grid has one or two, a diagram one for each size of
/// its nodes.
const REMEMBERED: usize = 8;

/// The properties of a tile that determine the pieces between its texts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    width: f64,
    height: f64,
    size: f64,
    radius: f64,
    border: Option<Stroke>,
    faint: bool,
    /// Whether it has a first line and a second line.
    lines: (bool, bool),
}

/// The pieces of a tile: from its title to its first text, from there to its second, and from there
/// to its end.
#[derive(Debug)]
struct Mould {
    look: Look,
    body: String,
    second: String,
    end: &'static str,
}

impl Mould {
    fn of(tile: &Tile, look: Look) -> Mould {
        let mut body = String::from("<rect");
        attribute(&mut body, "width", look.width);
        attribute(&mut body, "height", look.height);
        if look.radius > 0.0 {
            attribute(&mut body, "rx", look.radius);
        }
        if let Some(border) = look.border {
            push_stroke(&mut body, border);
        }
        body.push_str("/>");
        let corner = tile.frame;
        let mut openings = tile.lines().map(|(_, at, size)| {
            let mut opening = String::from("<text x=\"");
            push_length(&mut opening, at.x - corner.x);
            opening.push_str("\" y=\"");
            push_length(&mut opening, baseline(at, size) - corner.y);
            opening.push('"');
            if size != tile.size {
                attribute(&mut opening, "font-size", size);
            }
            opening.push_str(if tile.faint { " class=\"t-faint\">" } else { ">" });
            opening
        });
        body.push_str(&openings.next().unwrap_or_default());
        let second = openings.next().map(|opening| format!("</text>{opening}"));
        let end = if look.lines == (false, false) { "</g>\n" } else { "</text></g>\n" };
        Mould { look, body, second: second.unwrap_or_default(), end }
    }
}

/// The moulds of earlier tiles.
#[derive(Debug, Default)]
struct Moulds {
    known: Vec<Mould>,
    /// The index of the last tile's mould.
    last: usize,
}

impl Moulds {
    fn of(&mut self, tile: &Tile) -> Option<&Mould> {
        let look = Look {
            width: tile.frame.width,
            height: tile.frame.height,
            size: tile.size,
            radius: tile.radius,
            border: tile.border,
            faint: tile.faint,
            lines: (!tile.label.is_empty(), !tile.second.is_empty()),
        };
        if self.known.get(self.last).is_none_or(|mould| mould.look != look) {
            self.last = self.known.iter().position(|mould| mould.look == look).unwrap_or_else(|| {
                if self.known.len() >= REMEMBERED {
                    self.known.clear();
                }
                self.known.push(Mould::of(tile, look));
                self.known.len() - 1
            });
        }
        self.known.get(self.last)
    }
}

/// Writes tiles one after another.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    moulds: Moulds,
    /// The position of the row of the last tile, as text.
    row: Option<(f64, String)>,
}

impl Tiles {
    /// Appends a tile.
    pub(super) fn push(&mut self, out: &mut String, texts: &Texts<'_>, tile: &Tile) {
        let Some(mould) = self.moulds.of(tile) else { return };
        out.push_str("<g class=\"");
        tile.fill.write_name(out);
        if let Some(link) = tile.link {
            out.push_str("\" data-t=\"");
            push_integer(out, i64::from(link));
        }
        out.push_str("\" transform=\"translate(");
        push_length(out, tile.frame.x);
        match &self.row {
            Some((y, end)) if *y == tile.frame.y => out.push_str(end),
            _ => {
                let mut end = String::from(",");
                push_length(&mut end, tile.frame.y);
                end.push_str(")\">");
                out.push_str(&end);
                self.row = Some((tile.frame.y, end));
            }
        }
        push_title(out, texts, tile.title);
        out.push_str(&mould.body);
        // The single line of a tile is written as the first.
        let (first, second) = if tile.label.is_empty() { (tile.second, tile.label) } else { (tile.label, tile.second) };
        texts.push(out, first);
        out.push_str(&mould.second);
        texts.push(out, second);
        out.push_str(mould.end);
    }
}

/// Appends a tooltip.
pub(super) fn push_title(out: &mut String, texts: &Texts<'_>, title: Span) {
    if !title.is_empty() {
        out.push_str("<title>");
        texts.push(out, title);
        out.push_str("</title>");
    }
}

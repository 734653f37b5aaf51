//! Pictures made of text, and coloured words.
//!
//! The text of a picture is complete without colour, which only repeats it. So a picture reads the
//! same in a pipe.

pub use tilewright::draw::Axis;
pub use tilewright::draw::terminal::{Colours, Picture, Window};

use tilewright::draw::{Grid, Mode, Paint as Fill, Palette};

/// The colour of a piece of text, if colour is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Faint,
    Strong,
    Good,
    Bad,
    /// One of eight greys, with a large contrast between neighbouring numbers.
    Grey(i64),
    /// One of eight pale colours, for threads, warps and banks.
    Hue(i64),
}

/// Text in a colour, if `colour` is set.
pub fn painted(text: &str, paint: Paint, colour: bool) -> String {
    let start = match paint {
        _ if !colour => return text.to_owned(),
        Paint::Faint => "2",
        Paint::Strong => "1",
        Paint::Good => "32",
        Paint::Bad => "1;31",
        Paint::Plain | Paint::Grey(_) | Paint::Hue(_) => return text.to_owned(),
    };
    format!("\x1b[{start}m{text}\x1b[0m")
}

/// The colours of a terminal with colour: true colour if the terminal reports it.
pub fn colours(colour: bool) -> Colours {
    let all = std::env::var("COLORTERM").is_ok_and(|told| told == "truecolor" || told == "24bit");
    match (colour, all) {
        (false, _) => Colours::None,
        (true, false) => Colours::Indexed,
        (true, true) => Colours::True,
    }
}

/// The text of a picture, each line after `indent` spaces.
pub fn text(picture: &Picture, indent: usize, colour: bool) -> String {
    picture.text(indent, colours(colour), Mode::Light)
}

/// A cell: its text and its colour.
pub type Cell = (String, Paint);

/// The grid of `cell(row, column)`, with the part omitted that does not fit the window.
pub fn grid(rows: &Axis, columns: &Axis, window: Window, cell: impl Fn(i64, i64) -> Cell) -> Picture {
    let grid = Grid::new(rows.clone(), columns.clone(), |row, column, out| {
        let (text, paint) = cell(row, column);
        out.label = text;
        out.faint = paint == Paint::Faint;
        out.fill = match paint {
            Paint::Grey(number) => Fill::grey(number),
            Paint::Hue(number) => Palette::Pastel.paint(number, 8),
            Paint::Bad => Fill::Warn,
            _ => Fill::Paper,
        };
    });
    Picture::of_grid(&grid, window)
}

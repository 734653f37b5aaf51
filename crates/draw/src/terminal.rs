//! Pictures as text in the terminal.
//!
//! Law: the text alone contains all information; colour repeats it, so a picture reads the same in
//! a pipe. Rows are mode 0, downward; columns are mode 1, to the right; ticks are outside. If a
//! picture does not fit the window, its middle is omitted and marked by dots. No line is wider than
//! the window, unless the window is too narrow for three columns of cells.

mod canvas;
mod grid;
mod ink;

use crate::figure::{Body, Figure, Legend, Panel};
use crate::grid::Grid;
use crate::image::Image;
use crate::theme::{Mode, Paint};

pub(crate) use canvas::{ACROSS, DOWN};
pub use ink::{Colours, Ink};

/// The size of the window: characters across, and rows of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Characters across.
    pub columns: usize,
    /// Rows of cells.
    pub rows: usize,
}

impl Window {
    /// No limit.
    pub const ALL: Window = Window { columns: usize::MAX, rows: usize::MAX };
}

pub(crate) fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// One line: pieces of text, each with its look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<(String, Ink)>);

impl Line {
    pub(crate) fn push(&mut self, text: impl Into<String>, ink: Ink) {
        self.0.push((text.into(), ink));
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| width_of(text)).sum()
    }
}

/// Lines of text, each piece with its look.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    lines: Vec<Line>,
}

impl Picture {
    /// A grid, with the part omitted that does not fit the window.
    ///
    /// ```
    /// use tilewright_draw::terminal::{Colours, Picture, Window};
    /// use tilewright_draw::{Axis, Grid, Mode};
    ///
    /// let grid = Grid::new(Axis::flat(2), Axis::flat(3), |i, j, cell| cell.label = (i + 2 * j).to_string());
    /// let text = Picture::of_grid(&grid, Window::ALL).text(0, Colours::None, Mode::Light);
    /// assert_eq!(
    ///     text,
    ///     "    0 1 2
    ///   ┌───────┐
    /// 0 │ 0 2 4 │
    /// 1 │ 1 3 5 │
    ///   └───────┘
    /// "
    /// );
    /// ```
    pub fn of_grid(grid: &Grid<'_>, window: Window) -> Picture {
        grid::picture(grid, window)
    }

    /// The picture with one line of text above it.
    #[must_use]
    pub fn captioned(mut self, caption: &str) -> Picture {
        let mut line = Line::default();
        line.push(caption, Ink::Strong);
        self.lines.insert(0, line);
        self
    }

    /// This picture with another to its right, their top lines at the same height.
    #[must_use]
    pub fn beside(mut self, gap: usize, right: Picture) -> Picture {
        let width = self.width().saturating_add(gap);
        let height = self.lines.len().max(right.lines.len());
        self.lines.resize_with(height, Line::default);
        for (line, more) in self.lines.iter_mut().zip(right.lines) {
            let pad = width.saturating_sub(line.width());
            line.push(" ".repeat(pad), Ink::Plain);
            line.0.extend(more.0);
        }
        self
    }

    /// This picture with another below it.
    #[must_use]
    pub fn above(mut self, below: Picture) -> Picture {
        self.lines.extend(below.lines);
        self
    }

    fn push(&mut self, text: impl Into<String>, ink: Ink) {
        let mut line = Line::default();
        line.push(text, ink);
        self.lines.push(line);
    }

    /// The widest line, in characters.
    pub fn width(&self) -> usize {
        self.lines.iter().map(Line::width).max().unwrap_or(0)
    }

    /// The picture as text, each line after `indent` spaces.
    pub fn text(&self, indent: usize, colours: Colours, mode: Mode) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let mut row = " ".repeat(indent);
            for (text, ink) in &line.0 {
                row.push_str(&ink.painted(text, colours, mode));
            }
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }

    fn wrapped(text: &str, width: usize, ink: Ink) -> Picture {
        let mut picture = Picture::default();
        for paragraph in text.lines() {
            let mut line = String::new();
            for word in paragraph.split_whitespace() {
                if !line.is_empty() && width_of(&line) + 1 + width_of(word) > width {
                    picture.push(std::mem::take(&mut line), ink);
                }
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            picture.push(line, ink);
        }
        picture
    }

    /// An image in half blocks, or in shades if there is no colour.
    fn of_image(image: &Image, window: Window, colours: Colours) -> Picture {
        let columns = image.width().min(window.columns.saturating_sub(2).clamp(1, 200));
        let rows = image.height().min(window.rows.saturating_mul(2).clamp(2, 200));
        let pixel = |row: usize, column: usize| {
            let place = image.pixel(row * image.height() / rows.max(1), column * image.width() / columns.max(1));
            place.unwrap_or_default()
        };
        let mut picture = Picture::default();
        for row in (0..rows).step_by(2) {
            let mut line = Line::default();
            for column in 0..columns {
                let paint = pixel(row, column);
                if colours == Colours::None {
                    line.push(shade(paint).to_string(), Ink::Plain);
                } else {
                    line.push(" ", Ink::On(paint));
                }
            }
            picture.lines.push(line);
        }
        picture
    }
}

/// A character that is as dark as a fill is on paper.
fn shade(paint: Paint) -> char {
    let dark = 1.0 - paint.rgb(Mode::Light).luminance();
    let shades = [' ', '░', '▒', '▓', '█'];
    let place = (dark * 5.0).floor().clamp(0.0, 4.0);
    shades.get(place as usize).copied().unwrap_or(' ')
}

impl Figure<'_> {
    /// The figure as a picture in the terminal: panels side by side if the window is wide enough,
    /// else below one another.
    ///
    /// ```
    /// use tilewright_draw::terminal::{Colours, Window};
    /// use tilewright_draw::{Map, Medium, Mode, Style, offsets};
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(2,3):(3,1)".parse().unwrap();
    /// let style = Style { medium: Medium::Terminal, ..Style::default() };
    /// let figure = offsets("rows", &Map::from(&layout), style);
    /// let text = figure.picture(Window::ALL, Colours::None).text(0, Colours::None, Mode::Light);
    /// assert!(text.starts_with("rows\n    0 1 2\n  ┌───────┐\n0 │ 0 1 2 │\n"));
    /// ```
    pub fn picture(&self, window: Window, colours: Colours) -> Picture {
        const GAP: usize = 3;
        let mut whole = Picture::default();
        if !self.title.is_empty() {
            whole.push(self.title.clone(), Ink::Strong);
            whole.push("", Ink::Plain);
        }
        for (at, row) in self.table.iter().enumerate() {
            if at > 0 {
                whole.push("", Ink::Plain);
            }
            // Panels to the right of an empty position are indented by the width that it would
            // have.
            let mut band: Option<Picture> = None;
            let levels = row.iter().flatten().map(levels_of).max().unwrap_or(0);
            for (column, panel) in row.iter().enumerate() {
                let drawn = match panel {
                    Some(panel) => panel_picture(panel, levels, window, colours),
                    None => self.blank(column, window, colours),
                };
                band = Some(match band {
                    None => drawn,
                    Some(left) => {
                        let wide = left.width().saturating_add(GAP).saturating_add(drawn.width()) > window.columns;
                        match (wide, left.width() == 0 || panel.is_none()) {
                            (false, _) => left.beside(GAP, drawn),
                            (true, true) => drawn,
                            (true, false) => {
                                whole = whole.above(left);
                                drawn
                            }
                        }
                    }
                });
            }
            whole = whole.above(band.unwrap_or_default());
        }
        match &self.legend {
            Some(Legend::Ramp(least, most)) => {
                let mut line = Line::default();
                line.push(format!("{least} "), Ink::Plain);
                for step in 0..24_u8 {
                    let paint = Paint::Heat(step * 11);
                    match colours {
                        Colours::None => line.push(shade(paint).to_string(), Ink::Plain),
                        _ => line.push(" ", Ink::On(paint)),
                    }
                }
                line.push(format!(" {most}"), Ink::Plain);
                whole.push("", Ink::Plain);
                whole.lines.push(line);
            }
            // Without colours, the names of colours are useless.
            Some(Legend::Names(names)) if colours != Colours::None => {
                let mut line = Line::default();
                for (paint, name) in names {
                    if line.width() > 0 && line.width() + width_of(name) + 6 > window.columns {
                        whole.lines.push(std::mem::take(&mut line));
                    }
                    line.push("  ", Ink::On(*paint));
                    line.push(format!(" {name}   "), Ink::Plain);
                }
                whole.push("", Ink::Plain);
                whole.lines.push(line);
            }
            _ => {}
        }
        if !self.caption.is_empty() {
            whole.push("", Ink::Plain);
            whole = whole.above(Picture::wrapped(&self.caption, window.columns, Ink::Plain));
        }
        whole
    }

    /// An empty picture as wide as the widest panel of a column.
    fn blank(&self, column: usize, window: Window, colours: Colours) -> Picture {
        let panels = self.table.iter().filter_map(|row| row.get(column)?.as_ref());
        let width = panels.map(|panel| panel_picture(panel, 0, window, colours).width()).max().unwrap_or(0);
        let mut picture = Picture::default();
        picture.push(" ".repeat(width), Ink::Plain);
        picture
    }
}

/// The number of lines of ticks above the body of a panel.
fn levels_of(panel: &Panel<'_>) -> usize {
    if let Body::Grid(grid) = &panel.body { grid.columns.levels() } else { 0 }
}

/// A panel whose body begins as low as that of a panel with this many lines of ticks.
fn panel_picture(panel: &Panel<'_>, levels: usize, window: Window, colours: Colours) -> Picture {
    let body = match &panel.body {
        Body::Grid(grid) => Picture::of_grid(grid, window),
        Body::Image { image, .. } => Picture::of_image(image, window, colours),
        Body::Scene(scene) => canvas::picture(scene, window),
    };
    let mut picture = Picture::default();
    for line in panel.heading.lines() {
        picture.push(line, Ink::Strong);
    }
    for _ in levels_of(panel)..levels {
        picture.push("", Ink::Plain);
    }
    picture = picture.above(body);
    if panel.note.is_empty() {
        picture
    } else {
        picture.above(Picture::wrapped(&panel.note, window.columns, Ink::Faint))
    }
}

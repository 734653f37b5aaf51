//! Figures: panels side by side and below one another, with a title, a caption and a legend.
//!
//! Law: panels are arranged in a table. The bodies in a row begin at the same height, and those in
//! a column at the same distance from the left, so that shared axes are aligned. A figure is drawn
//! on a page through a [`Scene`] (`arrange.rs`) or in the terminal (`terminal.rs`); both show the
//! same panels in the same order.

use crate::axis::Axis;
use crate::document::Document;
use crate::grid::Grid;
use crate::image::Image;
use crate::scene::Scene;
use crate::theme::{Paint, Theme};

/// The content of a panel.
#[derive(Debug)]
pub enum Body<'a> {
    /// A grid of cells.
    Grid(Grid<'a>),
    /// Pixels, each a cell or a block of cells.
    Image {
        /// The pixels.
        image: Image,
        /// The number of cells per pixel, downward and to the right.
        block: (i64, i64),
    },
    /// A scene: for example a diagram.
    Scene(Scene),
}

/// One picture of a figure, with its heading and a note below.
#[derive(Debug)]
pub struct Panel<'a> {
    /// The heading.
    pub heading: String,
    /// A note below the panel.
    pub note: String,
    /// The picture.
    pub body: Body<'a>,
    /// Whether an arrow leads to it from the panel on its left.
    pub follows: bool,
    /// Whether it continues a panel above, so that its heading is less prominent.
    pub minor: bool,
}

impl<'a> Panel<'a> {
    /// A panel.
    pub fn new(heading: impl Into<String>, body: Body<'a>) -> Panel<'a> {
        Panel { heading: heading.into(), note: String::new(), body, follows: false, minor: false }
    }

    /// A panel with a grid.
    pub fn grid(
        heading: impl Into<String>,
        rows: Axis,
        columns: Axis,
        cell: impl Fn(i64, i64, &mut crate::Cell) + 'a,
    ) -> Panel<'a> {
        Panel::new(heading, Body::Grid(Grid::new(rows, columns, cell)))
    }

    /// The same panel with a note below.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Panel<'a> {
        Panel { note: note.into(), ..self }
    }

    /// The same panel with an arrow from the panel on its left.
    #[must_use]
    pub fn following(self) -> Panel<'a> {
        Panel { follows: true, ..self }
    }

    /// The same panel with an outline around each region of its grid.
    #[must_use]
    pub fn outlined(mut self, paint: Paint) -> Panel<'a> {
        if let Body::Grid(grid) = self.body {
            self.body = Body::Grid(grid.outlined(paint));
        }
        self
    }
}

/// The meaning of colours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Legend {
    /// Fills and their names.
    Names(Vec<(Paint, String)>),
    /// The text of the smallest and of the largest value of a colour ramp.
    Ramp(String, String),
}

/// Panels with a title, a caption and a legend.
#[derive(Debug, Default)]
pub struct Figure<'a> {
    /// The title.
    pub title: String,
    /// The caption, below the title.
    pub caption: String,
    /// The texts of the layouts that are drawn.
    pub source: Vec<String>,
    /// Rows of panels; None is an empty position.
    pub table: Vec<Vec<Option<Panel<'a>>>>,
    /// The meaning of colours.
    pub legend: Option<Legend>,
    /// The columns of the table before which a line of panels may be broken if the page is too
    /// narrow for all.
    pub breaks: Vec<usize>,
}

impl<'a> Figure<'a> {
    /// Panels side by side.
    pub fn row(panels: impl IntoIterator<Item = Panel<'a>>) -> Figure<'a> {
        Figure { table: vec![panels.into_iter().map(Some).collect()], ..Figure::default() }
    }

    /// A figure of one scene: a diagram.
    ///
    /// ```
    /// use tilewright_draw::{Figure, Paint, Point, Scene, Stroke, Theme};
    ///
    /// let mut scene = Scene::new();
    /// scene.arrow(&[Point::new(0.0, 0.0), Point::new(60.0, 0.0)], Stroke::new(Paint::Ink, 1.5));
    /// let figure = Figure::of_scene(scene).titled("An arrow");
    /// assert!(figure.svg(Theme::Auto).contains("<path"));
    /// ```
    pub fn of_scene(scene: Scene) -> Figure<'a> {
        Figure::row([Panel::new("", Body::Scene(scene))])
    }

    /// The same with a title.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Figure<'a> {
        Figure { title: title.into(), ..self }
    }

    /// The same with a caption.
    #[must_use]
    pub fn captioned(self, caption: impl Into<String>) -> Figure<'a> {
        Figure { caption: caption.into(), ..self }
    }

    /// The same with a legend.
    #[must_use]
    pub fn explained(self, legend: Legend) -> Figure<'a> {
        Figure { legend: Some(legend), ..self }
    }

    /// The same figure with the text of one more layout that is drawn.
    #[must_use]
    pub fn of_source(mut self, source: impl Into<String>) -> Figure<'a> {
        self.source.push(source.into());
        self
    }

    /// Adds the panels of another figure to the right of these, or below if the page is too narrow
    /// for both.
    ///
    /// ```
    /// use tilewright_draw::{Figure, Map, Style, offsets};
    /// use tilewright_layout::Layout;
    ///
    /// let square = Map::from(&"(16,16):(16,1)".parse::<Layout>().unwrap());
    /// let row = |count: usize| {
    ///     (0..count).fold(Figure::default(), |all, _| all.beside(offsets("A", &square, Style::default())))
    /// };
    /// assert!(row(2).scene().bounds().width > 1.9 * row(1).scene().bounds().width);
    /// assert!(row(10).scene().bounds().width < 2000.0);
    /// ```
    #[must_use]
    pub fn beside(mut self, other: Figure<'a>) -> Figure<'a> {
        let width = self.joined(other);
        if width > 0 {
            self.breaks.push(width);
        }
        self
    }

    /// Puts the panels of another figure to the right of these. Returns the column in which they
    /// begin.
    fn joined(&mut self, other: Figure<'a>) -> usize {
        let width = self.table.iter().map(Vec::len).max().unwrap_or(0);
        let height = self.table.len().max(other.table.len());
        self.table.resize_with(height, Vec::new);
        for (row, more) in self.table.iter_mut().zip(other.table) {
            row.resize_with(width, || None);
            row.extend(more);
        }
        self.source.extend(other.source);
        self.legend = self.legend.take().or(other.legend);
        self.breaks.extend(other.breaks.iter().map(|column| column + width));
        for (mine, theirs) in [(&mut self.title, other.title), (&mut self.caption, other.caption)] {
            if mine.is_empty() {
                *mine = theirs;
            }
        }
        width
    }

    /// Adds the panels of the next step: to the right, with an arrow, or below if both figures are
    /// wide. A line is not broken at an arrow.
    #[must_use]
    pub fn followed_by(mut self, mut next: Figure<'a>) -> Figure<'a> {
        const WIDE: i64 = 40;
        let sides = |figure: &Figure<'a>| {
            let sizes = figure.panels().map(|panel| match &panel.body {
                Body::Grid(grid) => (grid.rows.len(), grid.columns.len()),
                _ => (1, 1),
            });
            sizes.fold((0, 0), |(rows, columns): (i64, i64), size| (rows.max(size.0), columns.saturating_add(size.1)))
        };
        let ((rows, columns), (next_rows, next_columns)) = (sides(&self), sides(&next));
        let across = columns.saturating_add(next_columns);
        if across > WIDE && across > rows.saturating_add(next_rows).saturating_mul(2) {
            return self.above(next);
        }
        if let Some(Some(panel)) = next.table.first_mut().and_then(|row| row.first_mut()) {
            panel.follows = true;
        }
        self.joined(next);
        self
    }

    /// Adds the panels of another figure below these.
    #[must_use]
    pub fn above(mut self, other: Figure<'a>) -> Figure<'a> {
        self.table.extend(other.table);
        self.source.extend(other.source);
        self.legend = self.legend.or(other.legend);
        self
    }

    /// The panels, row by row.
    pub fn panels(&self) -> impl Iterator<Item = &Panel<'a>> {
        self.table.iter().flatten().flatten()
    }

    /// The title, description and source of the file.
    pub fn document(&self, theme: Theme) -> Document {
        let parts: Vec<String> =
            self.panels().map(|panel| panel.heading.clone()).filter(|text| !text.is_empty()).collect();
        let title = if self.title.is_empty() { parts.join(", ") } else { self.title.clone() };
        let notes = self.panels().flat_map(|panel| [described(panel), panel.note.clone()]);
        let description: Vec<String> = notes.chain([self.caption.clone()]).filter(|text| !text.is_empty()).collect();
        Document { title, description: description.join(". "), source: self.source.clone(), theme }
    }

    /// The figure as an SVG file.
    pub fn svg(&self, theme: Theme) -> String {
        crate::svg::svg(&self.scene(), &self.document(theme))
    }

    /// The figure as a web page, on which a click isolates a thread.
    pub fn html(&self, theme: Theme) -> String {
        crate::html::html(&self.scene(), &self.document(theme))
    }

    /// The figure as a LaTeX document of one TikZ picture.
    pub fn tikz(&self, theme: Theme) -> String {
        crate::tikz::tikz(&self.scene(), &self.document(theme))
    }

    /// The figure as a PNG file, with `scale` pixels for each CSS pixel, or fewer if it would be
    /// very large.
    #[cfg(feature = "png")]
    pub fn png(&self, theme: Theme, scale: f64) -> Vec<u8> {
        crate::raster::png(&self.scene(), theme.mode(), scale)
    }

    /// The figure as a PDF file of one page.
    #[cfg(feature = "pdf")]
    pub fn pdf(&self, theme: Theme) -> Vec<u8> {
        crate::pdf::pdf(&self.scene(), &self.document(theme))
    }
}

/// A panel in words.
fn described(panel: &Panel<'_>) -> String {
    let kind = match &panel.body {
        Body::Grid(grid) => format!("a grid of {} rows and {} columns", grid.rows.len(), grid.columns.len()),
        Body::Image { image, .. } => format!("an image of {} by {} pixels", image.width(), image.height()),
        Body::Scene(_) => "a diagram".to_owned(),
    };
    if panel.heading.is_empty() { kind } else { format!("{}: {kind}", panel.heading) }
}

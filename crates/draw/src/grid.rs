//! Grids: cells in rows and columns, computed when they are drawn.
//!
//! Law: the grid's function computes the cell in row `i` and column `j` from `(i, j)`, and only for
//! cells that are shown. Rows go downward, columns to the right.

use std::fmt;

use crate::axis::Axis;
use crate::theme::Paint;

/// One cell: filled in by the function of its grid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text, or the first of its two lines.
    pub label: String,
    /// The second line.
    pub second: String,
    /// The tooltip.
    pub title: String,
    /// The fill.
    pub fill: Paint,
    /// Whether its text is less important.
    pub faint: bool,
    /// The thread that it belongs to, which can be isolated.
    pub link: Option<u32>,
    /// The outlined region that it belongs to; 0 for none.
    pub region: u32,
}

impl Cell {
    /// Empties the cell; the memory of its texts is kept.
    pub(crate) fn clear(&mut self) {
        self.label.clear();
        self.second.clear();
        self.title.clear();
        (self.fill, self.faint, self.link, self.region) = (Paint::Paper, false, None, 0);
    }
}

type Fill<'a> = Box<dyn Fn(i64, i64, &mut Cell) + 'a>;

/// Rows and columns of cells.
pub struct Grid<'a> {
    /// The rows, downward.
    pub rows: Axis,
    /// The columns, to the right.
    pub columns: Axis,
    cell: Fill<'a>,
    outline: Option<Paint>,
}

impl<'a> Grid<'a> {
    /// A grid; `cell` fills the cell of each row and column.
    ///
    /// ```
    /// use tilewright_draw::{Axis, Grid};
    ///
    /// let products = Grid::new(Axis::flat(9), Axis::flat(9), |row, column, cell| {
    ///     cell.label = ((row + 1) * (column + 1)).to_string();
    /// });
    /// assert_eq!(products.cell(6, 7).label, "56");
    /// ```
    pub fn new(rows: Axis, columns: Axis, cell: impl Fn(i64, i64, &mut Cell) + 'a) -> Grid<'a> {
        Grid { rows, columns, cell: Box::new(cell), outline: None }
    }

    /// The same grid with an outline around each region of cells.
    #[must_use]
    pub fn outlined(self, paint: Paint) -> Grid<'a> {
        Grid { outline: Some(paint), ..self }
    }

    /// The role of the outlines of regions, if they have any.
    pub fn outline(&self) -> Option<Paint> {
        self.outline
    }

    /// The cell in a row and column.
    pub fn cell(&self, row: i64, column: i64) -> Cell {
        let mut cell = Cell::default();
        (self.cell)(row, column, &mut cell);
        cell
    }

    /// As [`Grid::cell`], into a cell whose texts already have memory.
    pub(crate) fn fill(&self, row: i64, column: i64, cell: &mut Cell) {
        cell.clear();
        (self.cell)(row, column, cell);
    }
}

impl fmt::Debug for Grid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grid").field("rows", &self.rows).field("columns", &self.columns).finish_non_exhaustive()
    }
}

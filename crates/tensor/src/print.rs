//! Tensors as text.
//!
//! Law: the layout is printed first, and then the elements. A tensor of one mode is a row. One of
//! two modes is a table, with mode 0 downwards. With more modes, there is a table for each
//! coordinate of the further modes. A nested mode is counted by its index. A tensor of more than
//! [`FEW`] elements shows only the first and last few of a long mode. `{:#}` shows all; a
//! precision, as in `{:.3}`, applies to the elements.

use std::fmt::{self, Display, Write};

use tilewright_layout::Tree;

use crate::offsets::Offsets;
use crate::tensor::Tensor;
use crate::view::{TensorView, TensorViewMut};

/// The largest number of elements of a tensor that is shown whole.
const FEW: i64 = 1000;

/// The number of indices that are shown at each end of a long mode.
const EDGE: i64 = 3;

/// The largest number of tables that are shown of a tensor that is not shown whole.
const TABLES: i64 = 49;

/// The text for omitted indices and tables.
const GAP: &str = "...";

/// The indices of a mode that are shown; None for a gap.
fn shown(extent: i64, all: bool) -> impl Iterator<Item = Option<i64>> + Clone {
    let long = !all && extent > 2 * EDGE + 1;
    let (first, last) = if long { (EDGE, extent - EDGE) } else { (extent, extent) };
    (0..first).map(Some).chain(long.then_some(None)).chain((last..extent).map(Some))
}

impl<T: Display, L: Offsets> Display for TensorView<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layout())?;
        let shape = self.shape().product_each().map_err(|_| fmt::Error)?;
        let (extents, all) = (shape.leaves(), f.alternate() || self.size() <= FEW);
        let (table, further) = extents.split_at(extents.len().min(2));
        let mut further: Vec<_> = further.iter().map(|extent| shown(*extent, all)).collect();
        let mut left = if all { i64::MAX } else { TABLES };
        self.tables(f, table, &mut further, &mut Vec::new(), &mut left, all)
    }
}

impl<T: Display, L: Offsets> TensorView<'_, T, L> {
    /// The tables at the shown coordinates of the modes from `further` on, the last mode slowest,
    /// as long as some are `left` to be shown.
    fn tables<I: Iterator<Item = Option<i64>> + Clone>(
        &self,
        f: &mut fmt::Formatter<'_>,
        table: &[i64],
        further: &mut Vec<I>,
        at: &mut Vec<i64>,
        left: &mut i64,
        all: bool,
    ) -> fmt::Result {
        let Some(mode) = further.pop() else {
            // It goes below 0 once the gap has been shown.
            *left -= 1;
            if *left < 0 {
                return write!(f, "\n{GAP}");
            }
            if !at.is_empty() {
                f.write_str("\n(_,_")?;
                at.iter().rev().try_for_each(|index| write!(f, ",{index}"))?;
                f.write_str(")")?;
            }
            return self.table(f, table, at, all);
        };
        for index in mode.clone() {
            match index {
                Some(index) => {
                    at.push(index);
                    self.tables(f, table, further, at, left, all)?;
                    at.pop();
                    if *left < 0 {
                        break;
                    }
                }
                None => write!(f, "\n{GAP}")?,
            }
        }
        further.push(mode);
        Ok(())
    }

    /// Prints one table: rows of mode 0, or one row if there is no mode 1.
    fn table(&self, f: &mut fmt::Formatter<'_>, table: &[i64], at: &[i64], all: bool) -> fmt::Result {
        let (rows, columns) = match table {
            [] => (1, 1),
            [only] => (1, *only),
            [rows, columns, ..] => (*rows, *columns),
        };
        let mut cells: Vec<Vec<String>> = Vec::new();
        for row in shown(rows, all) {
            let mut line = Vec::new();
            for column in shown(columns, all) {
                let (Some(row), Some(column)) = (row, column) else {
                    line.push(GAP.to_owned());
                    continue;
                };
                let position = match table {
                    [] => Tree::leaf(0),
                    [_] => Tree::leaf(column),
                    _ => {
                        Tree::flat([row, column].into_iter().chain(at.iter().rev().copied())).map_err(|_| fmt::Error)?
                    }
                };
                let element = self.get(&position).map_err(|_| fmt::Error)?;
                line.push(match f.precision() {
                    Some(precision) => format!("{element:.precision$}"),
                    None => element.to_string(),
                });
            }
            cells.push(line);
        }
        let mut widths: Vec<usize> = Vec::new();
        for line in &cells {
            widths.resize(widths.len().max(line.len()), 0);
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        for line in &cells {
            f.write_char('\n')?;
            for (position, (cell, width)) in line.iter().zip(&widths).enumerate() {
                write!(f, "{}{cell:>width$}", if position == 0 { "" } else { " " })?;
            }
        }
        Ok(())
    }
}

impl<T: Display, L: Offsets> Display for TensorViewMut<'_, T, L> {
    /// As a [`TensorView`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<T: Display, L: Offsets> Display for Tensor<T, L> {
    /// As a [`TensorView`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::Tensor;
    ///
    /// let rows: Layout = "(2,3):(3,1)".parse().unwrap();
    /// let tensor = Tensor::from_vec(vec![1, 2, 3, 10, 20, 30], rows).unwrap();
    /// assert_eq!(tensor.to_string(), "(2,3):(3,1)\n 1  2  3\n10 20 30");
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

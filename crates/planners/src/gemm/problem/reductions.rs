//! Reductions of the rows and columns of D: what the user asks for.

use std::fmt;
use std::str::FromStr;

use tilewright_kernel::Element;

use crate::error::PlanError;
use crate::expression::Expression;
use crate::gemm::problem::matrix::Matrix;
use crate::terms::Statistic;

/// Whether a reduction has a number for each row or for each column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Each {
    /// Each row: reduces over columns.
    Row,
    /// Each column: reduces over rows.
    Column,
}

/// A reduction of the rows or of the columns of D, computed in the epilogue.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_planners::gemm::{EpilogueReduction, Each, Problem};
/// use tilewright_planners::{Expression, Statistic};
///
/// // The largest magnitude of each row, by which the row may be scaled.
/// let of = Expression::input(0).abs();
/// let magnitude = EpilogueReduction { each: Each::Row, statistic: Statistic::Maximum, of };
/// let problem = Problem::new(Element::Bf16, [256, 512, 64]).unwrap().reducing(magnitude).unwrap();
/// assert!(problem.to_string().ends_with("greatest of abs(d) of each row"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EpilogueReduction {
    /// Rows or columns.
    pub each: Each,
    /// [`Statistic::Sum`] or [`Statistic::Maximum`].
    pub statistic: Statistic,
    /// The expression that is reduced; its input 0 is the element that is written to D.
    pub of: Expression,
}

impl EpilogueReduction {
    /// The matrix of results: contiguous, in f32, with one column or one row.
    pub(crate) fn matrix(&self, [m, n]: [i64; 2], batch: i64) -> Result<Matrix, PlanError> {
        match self.each {
            Each::Row => Matrix::strided(Element::F32, [m, 1, batch], [1, 0, m]),
            Each::Column => Matrix::strided(Element::F32, [1, n, batch], [0, 1, n]),
        }
    }
}

impl FromStr for EpilogueReduction {
    type Err = PlanError;

    /// Parses `row` or `column`, then `sum` or `max`, then optionally an expression of `d`, the
    /// element of D.
    ///
    /// ```
    /// use tilewright_planners::gemm::EpilogueReduction;
    ///
    /// let magnitude: EpilogueReduction = "row max abs(d)".parse().unwrap();
    /// assert_eq!(magnitude.to_string(), "greatest of abs(d) of each row");
    /// assert_eq!("row mean".parse::<EpilogueReduction>().unwrap_err().code(), "E0936");
    /// ```
    ///
    /// Errors: other words ([`PlanError::Unknown`]); as [`Expression::parse`].
    fn from_str(text: &str) -> Result<EpilogueReduction, PlanError> {
        let mut words = text.trim().splitn(3, char::is_whitespace);
        let each = match words.next() {
            Some("row") => Some(Each::Row),
            Some("column") => Some(Each::Column),
            _ => None,
        };
        let statistic = match words.next() {
            Some("sum") => Some(Statistic::Sum),
            Some("max") => Some(Statistic::Maximum),
            _ => None,
        };
        let (Some(each), Some(statistic)) = (each, statistic) else {
            let known = "`row` and `column`, followed by `sum` or `max`, and perhaps of what: `row max abs(d)`";
            return Err(PlanError::Unknown { what: "reduction", given: format!("`{text}`"), known: known.to_string() });
        };
        Ok(EpilogueReduction { each, statistic, of: Expression::parse(words.next().unwrap_or("d"), &["d"])? })
    }
}

impl fmt::Display for EpilogueReduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistic = if self.statistic == Statistic::Sum { "sum" } else { "greatest" };
        let each = if self.each == Each::Row { "row" } else { "column" };
        write!(f, "{statistic} of {} of each {each}", self.of.named(&["d"]))
    }
}

//! Reductions of the rows and columns of D: what is asked for.

use std::fmt;
use std::str::FromStr;

use tilewright_kernel::Element;

use crate::error::PlanError;
use crate::expression::Expression;
use crate::gemm::problem::matrix::Matrix;
use crate::terms::Statistic;

/// What there is one number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Each {
    /// Each row, of all its columns.
    Row,
    /// Each column, of all its rows.
    Column,
}

/// Numbers that are kept of the rows or of the columns of D.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_planners::gemm::{ByProduct, Each, Problem};
/// use tilewright_planners::{Expression, Statistic};
///
/// // The greatest magnitude of each row, by which the row may be scaled.
/// let of = Expression::input(0).abs();
/// let magnitude = ByProduct { each: Each::Row, statistic: Statistic::Maximum, of };
/// let problem = Problem::new(Element::Bf16, [256, 512, 64]).unwrap().keeping(magnitude).unwrap();
/// assert!(problem.to_string().ends_with("greatest of abs(d) of each row"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ByProduct {
    /// Of rows or of columns.
    pub each: Each,
    /// [`Statistic::Sum`] or [`Statistic::Maximum`].
    pub statistic: Statistic,
    /// What is added, or compared: an expression whose input 0 is the number that is written to D.
    pub of: Expression,
}

impl ByProduct {
    /// Where its numbers lie: one after the other, in f32, as a matrix with one column or one row.
    pub(crate) fn matrix(&self, [m, n]: [i64; 2], batch: i64) -> Result<Matrix, PlanError> {
        match self.each {
            Each::Row => Matrix::strided(Element::F32, [m, 1, batch], [1, 0, m]),
            Each::Column => Matrix::strided(Element::F32, [1, n, batch], [0, 1, n]),
        }
    }
}

impl FromStr for ByProduct {
    type Err = PlanError;

    /// From text: `row` or `column`, `sum` or `max`, and perhaps of what, an expression of the
    /// number `d` that is written.
    ///
    /// ```
    /// use tilewright_planners::gemm::ByProduct;
    ///
    /// let magnitude: ByProduct = "row max abs(d)".parse().unwrap();
    /// assert_eq!(magnitude.to_string(), "greatest of abs(d) of each row");
    /// assert_eq!("row mean".parse::<ByProduct>().unwrap_err().code(), "E0936");
    /// ```
    ///
    /// Errors: other words ([`PlanError::Unknown`]); as [`Expression::parse`].
    fn from_str(text: &str) -> Result<ByProduct, PlanError> {
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
            return Err(PlanError::Unknown {
                what: "by-product",
                given: format!("`{text}`"),
                known: known.to_string(),
            });
        };
        Ok(ByProduct { each, statistic, of: Expression::parse(words.next().unwrap_or("d"), &["d"])? })
    }
}

impl fmt::Display for ByProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistic = if self.statistic == Statistic::Sum { "sum" } else { "greatest" };
        let each = if self.each == Each::Row { "row" } else { "column" };
        write!(f, "{statistic} of {} of each {each}", self.of.named(&["d"]))
    }
}

//! Matrices as arguments of row kernels.
//!
//! Law: the elements of a row are contiguous, and rows are a pitch apart. Accesses are as wide as
//! the alignment of the first element, the rows and the pitches allows.

use tilewright_kernel::Element;

use crate::units::{VECTOR, WHOLE, gcd, widest};

/// A matrix `(M,N)` with contiguous rows, for softmax and norms: the length of a row, its type, and
/// optional properties.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::{RowMatrix, softmax};
///
/// let h200 = Machine::named("H200").unwrap();
/// // If there are few rows, the blocks of a cluster share one.
/// let few = softmax(&h200, RowMatrix::new(32_768, Element::F32).with_rows(16)).unwrap();
/// assert!(few.plan()[1].starts_with("a cluster of 8 blocks of 256 threads a row"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowMatrix {
    pub(crate) columns: i64,
    pub(crate) element: Element,
    pub(crate) alignment: i64,
    pub(crate) rows: Option<i64>,
    pub(crate) pitches: [i64; 2],
}

/// The length and the pitches of rows, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowPlaces {
    /// Elements of a row.
    pub(crate) columns: i64,
    /// The pitch of the input.
    pub(crate) x: i64,
    /// The pitch of the result.
    pub(crate) y: i64,
}

/// A contiguous matrix of rows of this length and type.
impl From<(i64, Element)> for RowMatrix {
    fn from((columns, element): (i64, Element)) -> RowMatrix {
        RowMatrix::new(columns, element)
    }
}

impl RowMatrix {
    /// Contiguous rows of `columns` elements; the matrix begins at a multiple of 16 bytes.
    pub fn new(columns: i64, element: Element) -> RowMatrix {
        RowMatrix { columns, element, alignment: WHOLE, rows: None, pitches: [columns; 2] }
    }

    /// Sets the alignment of the matrix in elements, if it is less than 16 bytes: accesses are
    /// narrower then. Weights, bias and result have the same alignment.
    pub fn aligned(self, elements: i64) -> RowMatrix {
        RowMatrix { alignment: elements, ..self }.pitched(self.pitches[0], self.pitches[1])
    }

    /// Sets the pitch `x` of the input and `y` of the result, in elements: both may be parts of
    /// wider matrices. Accesses are narrower if a pitch is not a multiple of 16 bytes.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::{RowMatrix, softmax};
    ///
    /// let h200 = Machine::named("H200").unwrap();
    /// // The first 1000 columns of a matrix of 4096, into a contiguous matrix.
    /// let part = RowMatrix::new(1000, Element::F32).pitched(4096, 1000);
    /// let plan = softmax(&h200, part).unwrap();
    /// let layouts: Vec<&str> = plan.kernel().program().tensors().map(|own| own.layout.as_str()).collect();
    /// assert_eq!(layouts, ["(M,1000):(4096,1)", "(M,1000):(1000,1)"]);
    /// ```
    pub fn pitched(self, x: i64, y: i64) -> RowMatrix {
        let whole = |pitch: i64| if pitch == self.columns { 0 } else { pitch };
        let alignment = gcd(self.alignment, gcd(whole(x), whole(y)));
        RowMatrix { alignment, pitches: [x, y], ..self }
    }

    /// Sets the approximate number of rows. The planned kernel is correct for any number, and tuned
    /// for this one; by default it is tuned for many rows.
    pub fn with_rows(self, rows: i64) -> RowMatrix {
        RowMatrix { rows: Some(rows), ..self }
    }

    /// The pitches of the rows.
    pub(crate) fn places(&self) -> RowPlaces {
        RowPlaces { columns: self.columns, x: self.pitches[0], y: self.pitches[1] }
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> i64 {
        self.columns.saturating_mul(self.element.bytes().into())
    }

    /// The number of vectors of 16 bytes in a row, if threads can read these.
    pub(crate) fn vectors(&self) -> Option<i64> {
        let vector = VECTOR / i64::from(self.element.bytes());
        (widest(self.columns, self.element, self.alignment) == vector).then_some(self.columns / vector)
    }
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::machine::Machine;

    use super::*;
    use crate::{Norm, PlanError, Planned, layer_norm, rms_norm, softmax};

    /// Rows within wider matrices, into rows within others; norms without weights, without a bias,
    /// and without both.
    #[test]
    fn rows_of_any_pitch_are_normalised() {
        let (norm, h200) = (Norm::new(1e-5), &Machine::named("H200").unwrap());
        for (columns, x, y, element) in [
            (24, 40, 24, Element::F32),
            (24, 24, 27, Element::Bf16),
            (1000, 1001, 4096, Element::Bf16),
            // All rows are the same one, or each row overlaps the next.
            (300, 0, 300, Element::F32),
            (300, 8, 304, Element::F32),
        ] {
            let matrix = RowMatrix::new(columns, element).pitched(x, y);
            for planned in [
                softmax(h200, matrix),
                rms_norm(h200, matrix, 1e-5),
                rms_norm(h200, matrix, norm.without_weights()),
                layer_norm(h200, matrix, norm.without_bias()),
                layer_norm(h200, matrix, norm.without_weights()),
                layer_norm(h200, matrix, norm.without_weights().without_bias()),
            ] {
                check(planned, columns);
            }
        }
        // Rows that a block, a cluster or the largest block holds, persistent clusters, and rows
        // that are read twice.
        let rows = |columns, x, y| RowMatrix::new(columns, Element::F32).pitched(x, y).with_rows(2);
        check(softmax(h200, rows(8192, 8200, 8192)), 8192);
        check(rms_norm(h200, rows(16_384, 16_388, 16_392), norm.without_weights()), 16_384);
        check(layer_norm(h200, rows(33_001, 33_004, 33_001), norm.without_bias()), 33_001);
        let many = RowMatrix::new(20_000, Element::F32).pitched(20_004, 20_008);
        check(layer_norm(h200, many, norm.without_bias()), 20_000);
    }

    fn check(planned: Result<Planned, PlanError>, columns: i64) {
        let planned = planned.unwrap().sized(&[("M", 2)]);
        let report = planned.check().unwrap_or_else(|error| panic!("{planned}{error}"));
        assert_eq!(report.compared as i64, 2 * columns);
    }
}

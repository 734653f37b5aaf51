//! Matrices whose rows lie one after another.

use tilewright_kernel::Element;

use super::{VECTOR, WHOLE, widest};

/// A matrix `(M,N)`, rows one after another, as softmax and norms take it: how many elements a row
/// has, of which type, and what is known of it besides.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::{RowMatrix, softmax_of};
///
/// // Where there are few rows, the blocks of a cluster share one.
/// let few = softmax_of(RowMatrix::new(32_768, Element::F32).with_rows(16)).unwrap();
/// assert!(few.plan()[1].starts_with("a cluster of 8 blocks of 256 threads a row"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowMatrix {
    pub(crate) columns: i64,
    pub(crate) element: Element,
    pub(crate) alignment: i64,
    pub(crate) rows: Option<i64>,
}

impl RowMatrix {
    /// Of rows of so many elements, which begins at a multiple of 16 bytes.
    pub fn new(columns: i64, element: Element) -> RowMatrix {
        RowMatrix { columns, element, alignment: WHOLE, rows: None }
    }

    /// That begins at a multiple of so many elements, where those are less than 16 bytes: accesses
    /// are narrower then. What goes with all rows, and the result, begin so too.
    pub fn aligned(self, elements: i64) -> RowMatrix {
        RowMatrix { alignment: elements, ..self }
    }

    /// That has about so many rows. The kernel that is planned is right for any number, and chosen
    /// to be fast for this one; without it, for many.
    pub fn with_rows(self, rows: i64) -> RowMatrix {
        RowMatrix { rows: Some(rows), ..self }
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> i64 {
        self.columns.saturating_mul(self.element.bytes().into())
    }

    /// How many vectors of 16 bytes a row has, where threads read such.
    pub(crate) fn vectors(&self) -> Option<i64> {
        let vector = VECTOR / i64::from(self.element.bytes());
        (widest(self.columns, self.element, self.alignment) == vector).then_some(self.columns / vector)
    }
}

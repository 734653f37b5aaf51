//! A matrix operand: type and layout.
//!
//! Law: element `(r,c,l)` of a batch of matrices is at `offset + layout(r,c,l)` of its tensor,
//! counted in elements of its type. TMA can read a matrix with one contiguous mode whose other
//! strides and whose beginning are multiples of 16 bytes. TMA can store it if its lines also end at
//! a multiple of 16 bytes, because it writes whole chunks.

use std::fmt;

use tilewright_kernel::{Element, LayoutArgument};
use tilewright_layout::{Layout, LayoutError};

use crate::error::PlanError;
use crate::units::VECTOR;

/// A matrix in a tensor, or a batch of matrices: the type of its elements, and their layout.
///
/// ```
/// use tilewright_kernel::{Element, LayoutArgument};
/// use tilewright_planners::gemm::Matrix;
///
/// // 100 columns of 200 rows, with a leading dimension of 208 elements.
/// let padded = Matrix::new(Element::Bf16, &"(200,100):(1,208)".parse().unwrap()).unwrap();
/// assert_eq!(padded.extents(), [200, 100, 1]);
/// assert_eq!(Matrix::rows(Element::F32, [2, 3]).unwrap().to_string(), "f32 (2,3):(3,1)");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    element: Element,
    layout: Layout,
    offset: i64,
    extents: [i64; 3],
    /// The strides of rows, columns and matrices, if each is a single mode.
    strides: Option<[i64; 3]>,
    /// Whether rows are padded to multiples of 16 bytes that may be overwritten: true in
    /// workspaces.
    whole_rows: bool,
}

/// The contiguous mode of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Contiguous {
    /// Row-major: the columns of a row are contiguous.
    Columns,
    /// Column-major: the rows of a column are contiguous.
    Rows,
}

impl Matrix {
    /// A matrix `(rows,columns)`, or a batch `(rows,columns,matrices)`, with a layout. Modes may be
    /// nested, and strides may be 0 for broadcasts.
    ///
    /// Errors: another rank ([`PlanError::Rank`]); it begins before its tensor
    /// ([`PlanError::Before`]).
    pub fn new(element: Element, layout: &Layout) -> Result<Matrix, PlanError> {
        let rank = layout.rank();
        if !(2..=3).contains(&rank) || layout.profile().is_leaf() {
            return Err(PlanError::Rank { layout: layout.to_string() });
        }
        let (least, greatest) = layout.range()?;
        if least < 0 {
            return Err(PlanError::Before { layout: layout.to_string(), least });
        }
        let limit = 1 << 40;
        if greatest >= limit {
            return Err(PlanError::TooLarge { what: "elements of a tensor", asked: greatest + 1, limit });
        }
        let (mut extents, mut strides) = ([1; 3], Some([0; 3]));
        for at in 0..rank {
            let Some(mode) = layout.mode(at) else { continue };
            extents[at] = mode.size();
            let joined = mode.coalesce()?;
            match (joined.leaves(), &mut strides) {
                ([leaf], Some(strides)) => strides[at] = if leaf.extent > 1 { leaf.stride } else { 0 },
                _ => strides = None,
            }
        }
        Ok(Matrix { element, layout: layout.clone(), offset: 0, extents, strides, whole_rows: false })
    }

    /// A row-major matrix.
    ///
    /// Errors: an extent below 1.
    pub fn rows(element: Element, [rows, columns]: [i64; 2]) -> Result<Matrix, PlanError> {
        Matrix::strided(element, [rows, columns, 1], [columns, 1, 0])
    }

    /// A column-major matrix.
    ///
    /// Errors: an extent below 1.
    pub fn columns(element: Element, [rows, columns]: [i64; 2]) -> Result<Matrix, PlanError> {
        Matrix::strided(element, [rows, columns, 1], [1, rows, 0])
    }

    /// A matrix with the strides of rows, columns and matrices.
    ///
    /// Errors: an extent below 1; as [`Matrix::new`].
    pub fn strided(element: Element, extents: [i64; 3], strides: [i64; 3]) -> Result<Matrix, PlanError> {
        for (name, extent) in ["rows", "columns", "matrices"].into_iter().zip(extents) {
            if extent < 1 {
                return Err(PlanError::Size { name: name.to_string(), given: extent });
            }
        }
        let modes = if extents[2] == 1 { 2 } else { 3 };
        Matrix::new(element, &Layout::strided(&extents[..modes], &strides[..modes])?)
    }

    /// The same matrix, at an offset in its tensor. The tensor itself begins at a multiple of 256
    /// bytes, as allocations do, so the offset determines the alignment.
    ///
    /// Errors: it begins before its tensor.
    pub fn at(self, offset: i64) -> Result<Matrix, PlanError> {
        match offset {
            0.. => Ok(Matrix { offset, ..self }),
            least => Err(PlanError::Before { layout: self.layout.to_string(), least }),
        }
    }

    /// The same matrix, with rows padded to multiples of 16 bytes: for a workspace, whose padding
    /// holds nothing else. Columns must be contiguous.
    pub(crate) fn in_whole_rows(self) -> Matrix {
        Matrix { whole_rows: true, ..self }
    }

    /// The type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The offset of the layout in the tensor, in elements.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Rows, columns and matrices.
    pub fn extents(&self) -> [i64; 3] {
        self.extents
    }

    /// The offset of an element in its tensor, in elements. A broadcast matrix serves the whole
    /// batch.
    ///
    /// Errors: the offset does not fit in 64 bits.
    pub fn place(&self, [row, column, matrix]: [i64; 3]) -> Result<i64, LayoutError> {
        let inside = match self.strides {
            Some([rows, columns, matrices]) => row * rows + column * columns + matrix * matrices,
            None => {
                let [rows, columns, matrices] = self.extents;
                let matrix = matrix.min(matrices - 1);
                self.layout.eval(&(row + rows * (column + columns * matrix)))?
            }
        };
        Ok(self.offset + inside)
    }

    /// The least number of elements of its tensor.
    ///
    /// Errors: the number does not fit in 64 bits.
    pub fn reach(&self) -> Result<i64, LayoutError> {
        let behind = self.declared_extents()[1] - self.extents[1];
        Ok(self.offset + self.layout.range()?.1 + 1 + behind)
    }

    /// Rows, columns and matrices as a kernel declares them, with padded rows.
    pub(crate) fn declared_extents(&self) -> [i64; 3] {
        let [rows, columns, matrices] = self.extents;
        match (self.whole_rows, self.strides) {
            (false, _) => self.extents,
            (true, Some([1, across, _])) if across != 1 => [padded(rows, self.element), columns, matrices],
            _ => [rows, padded(columns, self.element), matrices],
        }
    }

    /// The strides of rows, columns and matrices, if each is a single mode. Modes of extent 1 have
    /// stride 0.
    pub(crate) fn strides(&self) -> Option<[i64; 3]> {
        self.strides
    }

    /// The contiguous mode in which threads copy it by cp.async, and the elements of a copy: those
    /// of 16, 8 or 4 bytes that divide its lines, their steps and its offset. Otherwise, why they
    /// cannot.
    pub(crate) fn copied_by_threads(&self) -> Result<(Contiguous, i64), &'static str> {
        let Some([rows, columns, matrices]) = self.strides else { return Err("its modes are folded") };
        let [height, width, count] = self.extents;
        let contiguous = self.contiguous(rows, columns)?;
        let [long, wide, _] = self.declared_extents();
        let (line, step, lines) = match contiguous {
            Contiguous::Columns => (wide, rows, height),
            Contiguous::Rows => (long, columns, width),
        };
        let step = if lines > 1 { step } else { 0 };
        let apart = if count > 1 { matrices } else { 0 };
        if step < 0 || apart < 0 || lines > 1 && step == 0 {
            return Err("its lines do not follow one another");
        }
        let bytes = i64::from(self.element.bytes());
        let whole = |width: &i64| [line, step, apart, self.offset].iter().all(|number| number * bytes % width == 0);
        let widest = [VECTOR, VECTOR / 2, VECTOR / 4].into_iter().find(whole);
        widest.map(|width| (contiguous, width / bytes)).ok_or("its lines begin or end at no multiples of 4 bytes")
    }

    /// The contiguous mode, by the strides of rows and columns. A mode of extent 1 may have any
    /// stride.
    fn contiguous(&self, rows: i64, columns: i64) -> Result<Contiguous, &'static str> {
        let [height, width, _] = self.extents;
        if columns == 1 || width == 1 && rows != 1 {
            Ok(Contiguous::Columns)
        } else if rows == 1 || height == 1 {
            Ok(Contiguous::Rows)
        } else {
            Err("neither mode is contiguous")
        }
    }

    /// Whether lines along a contiguous mode are whole chunks of 16 bytes, as kernels declare them.
    pub(crate) fn has_whole_lines(&self, contiguous: Contiguous) -> bool {
        let [rows, columns, _] = self.declared_extents();
        let along = if contiguous == Contiguous::Columns { columns } else { rows };
        along * i64::from(self.element.bytes()) % VECTOR == 0
    }

    /// Whether lines are declared with their padding.
    pub(crate) fn is_in_whole_rows(&self) -> bool {
        self.whole_rows
    }

    /// The layout that kernels declare; the third mode is omitted if all matrices are one.
    ///
    /// Errors: an element has no offset that is a number.
    pub(crate) fn declared(&self) -> Result<LayoutArgument, LayoutError> {
        let (extents, modes) = (self.declared_extents(), if self.is_batch() { 3 } else { 2 });
        let layout = match self.declared_strides() {
            None => self.layout.clone(),
            Some(strides) => Layout::strided(&extents[..modes], &strides[..modes])?,
        };
        LayoutArgument::placed(None, self.offset, layout)
    }

    /// The strides that a kernel declares, if no mode is folded: modes of extent 1 get a stride
    /// that TMA allows.
    pub(crate) fn declared_strides(&self) -> Option<[i64; 3]> {
        let mut strides = self.strides?;
        let [rows, columns, _] = self.extents;
        let whole = |extent: i64| padded(extent, self.element);
        match self.bulk() {
            Ok(Contiguous::Columns) => {
                strides[1] = 1;
                strides[0] = if rows == 1 { whole(columns) } else { strides[0] };
            }
            Ok(Contiguous::Rows) => {
                strides[0] = 1;
                strides[1] = if columns == 1 { whole(rows) } else { strides[1] };
            }
            Err(_) => {}
        }
        Some(strides)
    }

    /// Whether its matrices differ.
    pub(crate) fn is_batch(&self) -> bool {
        self.extents[2] > 1 && self.strides.is_none_or(|strides| strides[2] != 0)
    }

    /// The mode in which TMA reads it, or why it cannot.
    pub(crate) fn bulk(&self) -> Result<Contiguous, &'static str> {
        let bytes = i64::from(self.element.bytes());
        let Some([rows, columns, matrices]) = self.strides else { return Err("its modes are folded") };
        if self.offset != 0 {
            return Err("it begins inside of its tensor");
        }
        let step = |stride: i64| stride > 0 && stride * bytes % VECTOR == 0;
        let [height, width, count] = self.extents;
        let contiguous = self.contiguous(rows, columns)?;
        let (other, extent) = match contiguous {
            Contiguous::Columns => (rows, height),
            Contiguous::Rows => (columns, width),
        };
        if extent > 1 && !step(other) {
            return Err("its lines begin at no multiples of 16 bytes");
        }
        if count > 1 && matrices != 0 && !step(matrices) {
            return Err("its matrices begin at no multiples of 16 bytes");
        }
        Ok(contiguous)
    }

    /// The mode in which bulk copies store it, or why they cannot: they write whole chunks.
    pub(crate) fn stored_in_bulk(&self) -> Result<Contiguous, &'static str> {
        let contiguous = self.bulk()?;
        match self.has_whole_lines(contiguous) {
            true => Ok(contiguous),
            false => Err("its lines end inside a chunk of 16 bytes, which bulk stores write whole"),
        }
    }

    /// The bytes of its elements, each once.
    pub(crate) fn bytes(&self) -> i64 {
        self.layout.filter_zeros().size().saturating_mul(self.element.bytes().into())
    }
}

/// The number of elements in 16 bytes.
pub(crate) fn unit(element: Element) -> i64 {
    16 / i64::from(element.bytes())
}

/// `length` rounded up so that the next line begins at a multiple of 16 bytes.
pub(crate) fn padded(length: i64, element: Element) -> i64 {
    (length + unit(element) - 1) / unit(element) * unit(element)
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.element, self.layout)?;
        if self.offset > 0 { write!(f, " + {}", self.offset) } else { Ok(()) }
    }
}

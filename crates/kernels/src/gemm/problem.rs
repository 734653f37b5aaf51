//! What is multiplied: the problem, and what can be asked of it.
//!
//! Law: `D(m,n,l) = f(sum over k of A(m,k,l) * B(n,k,l), X(m,n,l), ..)` for each matrix `l` of a
//! batch, with a [`Fused`] function of the sum and of the elements of further tensors, or the sum
//! itself. Sums are in f32, and in i32 of integers; D is rounded once.
//!
//! `build.rs` makes problems and refuses what is none; `text.rs` writes them.

mod build;
mod text;

use tilewright_kernel::Element;

use super::byproduct::ByProduct;
use super::fold::Fold;
use super::images::Images;
use super::matrix::{Contiguous, Matrix};
use super::pairs::Pairs;
use super::scales::Scales;
use crate::expression::Expression;

pub(crate) use text::Written;

/// Bytes of a line of the cache, and of a row of a stage.
pub(crate) const LINE_BYTES: i64 = 128;

/// A product of matrices, or a batch of them: types, layouts, and what is done with the sums.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::Expression;
/// use tilewright_kernels::gemm::{Fused, Matrix, Problem, Product};
///
/// // D(m,n) = relu(sum over k of A(m,k) B(n,k) + bias(n)), which the plan and the check know too.
/// let bias = Matrix::new(Element::Bf16, &"(128,256):(0,1)".parse().unwrap()).unwrap();
/// let expression = Expression::parse("max(x0 + x1, 0)", &["x0", "x1"]).unwrap();
/// let problem = Problem::new(Element::Bf16, [128, 256, 64]).unwrap();
/// let problem = problem.fused(Fused { expression, inputs: vec![bias] }).unwrap();
/// assert_eq!(problem.sizes(), [128, 256, 64]);
/// assert!(Product::new(&problem).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    sizes: [i64; 3],
    batch: i64,
    a: Matrix,
    b: Matrix,
    d: Matrix,
    images: Option<Images>,
    pairs: Option<Pairs>,
    fused: Option<Fused>,
    kept: Vec<(ByProduct, Matrix)>,
    scales: Option<Scales>,
    ends: Option<Matrix>,
    tf32: bool,
    fast: bool,
}

/// What is done with a sum before it is written: an expression whose input 0 is the sum, and whose
/// other inputs are the elements of tensors at the same row, column and matrix. A tensor of fewer
/// elements has steps of 0. Of pairs ([`Problem::gated`]) inputs 0 and 1 are both sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused {
    /// The function.
    pub expression: Expression,
    /// Inputs 1, 2, .. of the expression; 2, 3, .. of pairs.
    pub inputs: Vec<Matrix>,
}

impl Problem {
    /// M, N and K.
    pub fn sizes(&self) -> [i64; 3] {
        self.sizes
    }

    /// How many matrices there are.
    pub fn batch(&self) -> i64 {
        self.batch
    }

    /// A, `(M,K)`; of a convolution the windows of images that have their borders.
    pub fn a(&self) -> &Matrix {
        &self.a
    }

    /// The images of which A has windows, where it is written nowhere.
    pub(super) fn images(&self) -> Option<&Images> {
        self.images.as_ref()
    }

    /// B, `(N,K)`.
    pub fn b(&self) -> &Matrix {
        &self.b
    }

    /// D, `(M,N)`.
    pub fn d(&self) -> &Matrix {
        &self.d
    }

    /// What is done with the sums, if anything.
    pub fn function(&self) -> Option<&Fused> {
        self.fused.as_ref()
    }

    /// Which columns of B make a column of D, where there are pairs.
    pub fn pairs(&self) -> Option<Pairs> {
        self.pairs
    }

    /// What is kept of rows and columns.
    pub fn by_products(&self) -> impl Iterator<Item = &ByProduct> {
        self.kept.iter().map(|(by, _)| by)
    }

    /// Where the numbers of a by-product lie.
    pub(crate) fn kept(&self, number: usize) -> Option<&Matrix> {
        self.kept.get(number).map(|(_, matrix)| matrix)
    }

    /// The scales of blocks, if there are any.
    pub fn scales(&self) -> Option<&Scales> {
        self.scales.as_ref()
    }

    /// Where groups of rows end, if there are groups.
    pub fn ends(&self) -> Option<&Matrix> {
        self.ends.as_ref()
    }

    /// Whether factors are floating-point numbers of 8 bits.
    fn is_small(&self) -> bool {
        matches!(self.factors(), Element::E4M3 | Element::E5M2)
    }

    /// Whether the sums of each 128 steps along K are added in f32.
    pub fn is_promoted(&self) -> bool {
        self.scales.is_some() || self.is_small() && !self.fast
    }

    /// M, N and K of what is multiplied: both columns of each pair.
    pub(crate) fn multiplied(&self) -> [i64; 3] {
        [self.sizes[0], self.b.extents()[0], self.sizes[2]]
    }

    /// The type of A and B.
    pub fn factors(&self) -> Element {
        self.a.element()
    }

    /// Whether factors of f32 are rounded to tf32.
    pub fn is_tf32(&self) -> bool {
        self.tf32
    }

    /// Whether rows of D follow one another without gaps, and so do its matrices.
    pub(crate) fn is_dense(&self) -> bool {
        let [m, n, _] = self.sizes;
        let step = |at: usize, extent: i64, wanted: i64| {
            extent == 1 || self.d.strides().is_some_and(|strides| strides[at] == wanted)
        };
        self.d.offset() == 0 && step(0, m, n) && step(1, n, 1) && step(2, self.batch, m * n)
    }

    /// The type of D.
    pub fn result(&self) -> Element {
        self.d.element()
    }

    /// The type of the sums: f32, and i32 of integers.
    pub fn sums(&self) -> Element {
        if self.factors().is_float() { Element::F32 } else { Element::I32 }
    }

    /// Multiplications and additions.
    pub fn operations(&self) -> i64 {
        self.multiplied().into_iter().fold(self.batch.saturating_mul(2), i64::saturating_mul)
    }

    /// The bytes of the tensors, each element once.
    pub fn bytes(&self) -> i64 {
        let inputs = self.fused.iter().flat_map(|fused| &fused.inputs).chain(self.kept.iter().map(|(_, to)| to));
        let inputs = inputs.chain(&self.ends).chain(self.scales.iter().flat_map(|scales| [&scales.a, &scales.b]));
        [&self.a, &self.b, &self.d].into_iter().chain(inputs).map(Matrix::bytes).fold(0, i64::saturating_add)
    }

    /// Steps along K of a stage: rows of 128 bytes.
    pub(crate) fn depth(&self) -> i64 {
        LINE_BYTES / i64::from(self.factors().bytes())
    }

    /// The axes of its rows and of K, where modes of A or B are folded and the copy engine reads
    /// both as they lie.
    pub(super) fn fold(&self) -> Option<Fold> {
        Fold::of(self)
    }

    /// In which mode the copy engine reads a factor, or why it cannot be multiplied as it lies.
    pub(crate) fn readable(&self, factor: &Matrix) -> Result<Contiguous, &'static str> {
        match factor.bulk()? {
            Contiguous::Rows if factor.element().bytes() != 2 => {
                Err("instructions for its type take K contiguous alone")
            }
            contiguous => Ok(contiguous),
        }
    }

    /// The same of A, whose rows may be in groups.
    pub(crate) fn readable_a(&self) -> Result<Contiguous, &'static str> {
        if self.fold().is_some() {
            return Ok(Contiguous::Columns);
        }
        if self.images.is_some() {
            return Err("windows go past its edges, or its channels are not contiguous");
        }
        match self.readable(&self.a)? {
            Contiguous::Rows if self.ends.is_some() => Err("groups begin at any of its rows, which are contiguous"),
            contiguous => Ok(contiguous),
        }
    }

    /// In which mode D is stored by bulk copies, or why from registers.
    pub(crate) fn stored(&self) -> Result<Contiguous, &'static str> {
        if self.ends.is_some() {
            return Err("a group may end within a tile");
        }
        if !matches!(self.d.element().bytes(), 2 | 4) {
            return Err("its elements have 8 bits");
        }
        let contiguous = self.d.stored_in_bulk()?;
        // Rows that are folded are several modes, of which the first one is contiguous.
        let first = if contiguous == Contiguous::Rows { self.fold().and_then(|fold| fold.first_row()) } else { None };
        match first.is_some_and(|rows| rows * i64::from(self.d.element().bytes()) % 16 != 0) {
            true => Err("its folded lines end inside a chunk of 16 bytes, which bulk stores write whole"),
            false => Ok(contiguous),
        }
    }

    /// In which mode D goes through shared memory, from where bulk copies store it, or threads that
    /// write neighbours side by side; none where it is stored from registers.
    pub(crate) fn staged(&self) -> Option<Contiguous> {
        if let Ok(contiguous) = self.stored() {
            return Some(contiguous);
        }
        match self.d.strides() {
            Some([_, 1, _]) if self.ends.is_some() && self.spread() > 1 => Some(Contiguous::Columns),
            Some([_, 1, _]) if self.d.element().bytes() == 2 => Some(Contiguous::Columns),
            Some([1, _, _]) if self.d.element().bytes() == 2 => Some(Contiguous::Rows),
            _ => None,
        }
    }

    /// How many neighbours of D a thread writes together, where threads write them.
    pub(crate) fn spread(&self) -> i64 {
        let bytes = i64::from(self.d.element().bytes());
        let widest = [16 / bytes, 8 / bytes, 4 / bytes].into_iter().filter(|width| *width > 1 && bytes > 1);
        let whole = |width: &i64| {
            let strides = self.d.strides().unwrap_or([1; 3]);
            let lines = strides[0] % width == 0 && strides[1] == 1 && strides[2] % width == 0;
            lines && self.sizes[1] % width == 0 && self.d.offset() % width == 0
        };
        if self.ends.is_some() { widest.into_iter().find(whole).unwrap_or(1) } else { 1 }
    }

    /// Whether each line of a factor begins at a line of the cache.
    pub(crate) fn begins_at_lines(&self) -> bool {
        let whole = |factor: &Matrix| {
            let strides = factor.strides().unwrap_or([1; 3]);
            let bytes = i64::from(factor.element().bytes());
            strides.into_iter().all(|stride| stride == 1 || stride * bytes % LINE_BYTES == 0)
        };
        whole(&self.a) && whole(&self.b)
    }
}

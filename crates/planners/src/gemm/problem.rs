//! What is multiplied: the problem, as data.
//!
//! Law: `D(m,n,l) = f(sum over k of A(m,k,l) * B(n,k,l), X(m,n,l), ..)` for each matrix `l` of a
//! batch, with an epilogue function [`Fused`] of the accumulator and of further tensors, or the
//! accumulator itself. Accumulators are in f32, in f64 for operands of f64, and in i32 for
//! integers; D is rounded once.
//!
//! `build.rs` constructs and validates problems; `text.rs` prints them. Nothing here knows how a
//! problem is carried out.

mod block_scaled;
pub(crate) mod blocks;
mod build;
pub(crate) mod convolution;
pub(crate) mod gated;
pub(crate) mod grouped;
pub(crate) mod list;
pub(crate) mod matrix;
pub(crate) mod reductions;
pub(crate) mod scales;
pub(crate) mod text;
pub(crate) mod weights;

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;

use crate::expression::Expression;
use crate::gemm::problem::blocks::BlockScales;
use crate::gemm::problem::convolution::Images;
use crate::gemm::problem::gated::Pairs;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::reductions::EpilogueReduction;
use crate::gemm::problem::scales::Scales;
use crate::units::has_wgmma;

/// Bytes of a cache line, and of a row of a stage.
pub(crate) const LINE_BYTES: i64 = 128;

/// A GEMM or a batched GEMM: types, layouts, and what is done with the accumulators.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::Expression;
/// use tilewright_planners::gemm::{Fused, Matrix, Problem, Product};
///
/// // D(m,n) = relu(sum over k of A(m,k) B(n,k) + bias(n)).
/// let bias = Matrix::new(Element::Bf16, &"(128,256):(0,1)".parse().unwrap()).unwrap();
/// let expression = Expression::parse("max(x0 + x1, 0)", &["x0", "x1"]).unwrap();
/// let problem = Problem::new(Element::Bf16, [128, 256, 64]).unwrap();
/// let problem = problem.fused(Fused { expression, inputs: vec![bias] }).unwrap();
/// assert_eq!(problem.sizes(), [128, 256, 64]);
/// let h200 = Machine::named("H200").unwrap();
/// assert!(Product::new(&problem, &h200).is_ok());
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
    kept: Vec<(EpilogueReduction, Matrix)>,
    scales: Option<Scales>,
    blocks: Option<BlockScales>,
    ends: Option<Matrix>,
    int4: Option<Matrix>,
    nibbles: bool,
    tf32: bool,
    fast: bool,
    batch_invariant: bool,
}

/// The epilogue function: an expression whose input 0 is the accumulator, and whose other inputs
/// are the elements of tensors at the same row, column and matrix. A broadcast tensor has strides
/// of 0. In a gated GEMM ([`Problem::gated`]) inputs 0 and 1 are both accumulators.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused {
    /// The function.
    pub expression: Expression,
    /// Inputs 1, 2, .. of the expression; if gated, 2, 3, ...
    pub inputs: Vec<Matrix>,
}

impl Problem {
    /// M, N and K. Of operands of four bits, K counts bytes: see [`Problem::depth`].
    pub fn sizes(&self) -> [i64; 3] {
        self.sizes
    }

    /// The number of products that an accumulator adds: K, or twice the bytes along K of operands
    /// of four bits.
    pub fn depth(&self) -> i64 {
        if self.nibbles { self.sizes[2].saturating_mul(2) } else { self.sizes[2] }
    }

    /// Whether each byte of A and of B has two integers of four bits: see [`Problem::in_nibbles`].
    pub fn has_nibbles(&self) -> bool {
        self.nibbles
    }

    /// The name of the type of the operands: that of their elements, or `s4` or `u4`.
    pub fn operand_name(&self) -> &'static str {
        match (self.nibbles, self.operand_type()) {
            (true, Element::I8) => "s4",
            (true, _) => "u4",
            (false, element) => element.name(),
        }
    }

    /// The batch size.
    pub fn batch(&self) -> i64 {
        self.batch
    }

    /// A, `(M,K)`. For a convolution, these are the im2col windows of the padded images.
    pub fn a(&self) -> &Matrix {
        &self.a
    }

    /// The images of a convolution, whose matrix A is not in memory.
    pub(crate) fn images(&self) -> Option<&Images> {
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

    /// The epilogue function, if there is one.
    pub fn epilogue(&self) -> Option<&Fused> {
        self.fused.as_ref()
    }

    /// Which columns of B make a column of D, in a gated GEMM.
    pub fn pairs(&self) -> Option<Pairs> {
        self.pairs
    }

    /// The reductions of rows and columns.
    pub fn reductions(&self) -> impl Iterator<Item = &EpilogueReduction> {
        self.kept.iter().map(|(by, _)| by)
    }

    /// The matrix of the results of a reduction.
    pub(crate) fn kept(&self, number: usize) -> Option<&Matrix> {
        self.kept.get(number).map(|(_, matrix)| matrix)
    }

    /// The scales of blocks, if there are any.
    pub fn scales(&self) -> Option<&Scales> {
        self.scales.as_ref()
    }

    /// Where row groups end, in a grouped GEMM.
    pub fn group_ends(&self) -> Option<&Matrix> {
        self.ends.as_ref()
    }

    /// Whether operands are 8-bit floating-point numbers.
    fn is_small(&self) -> bool {
        matches!(self.operand_type(), Element::E4M3 | Element::E5M2)
    }

    /// Whether the accumulators of each 128 elements along K are promoted to f32.
    pub fn is_promoted(&self) -> bool {
        let scaled = self.scales.is_some() || self.int4.is_some();
        scaled || self.is_small() && !self.fast && self.blocks.is_none()
    }

    /// M, N and K of the MMA: both columns of each gated pair count.
    pub(crate) fn mma_sizes(&self) -> [i64; 3] {
        [self.sizes[0], self.b.extents()[0], self.sizes[2]]
    }

    /// The type of A and B.
    pub fn operand_type(&self) -> Element {
        self.a.element()
    }

    /// Whether operands of f32 are rounded to tf32.
    pub fn is_tf32(&self) -> bool {
        self.tf32
    }

    /// Whether rows of D have the same bits for every M: see [`Problem::batch_invariant`].
    pub fn is_batch_invariant(&self) -> bool {
        self.batch_invariant
    }

    /// Whether D is contiguous, rows and matrices.
    pub(crate) fn is_dense(&self) -> bool {
        let [m, n, _] = self.sizes;
        let step = |at: usize, extent: i64, wanted: i64| {
            extent == 1 || self.d.strides().is_some_and(|strides| strides[at] == wanted)
        };
        self.d.offset() == 0 && step(0, m, n) && step(1, n, 1) && step(2, self.batch, m * n)
    }

    /// The type of D.
    pub fn result_type(&self) -> Element {
        self.d.element()
    }

    /// The accumulator type: f32, f64 for operands of f64, or i32 for integers.
    pub fn accumulator_type(&self) -> Element {
        match self.operand_type() {
            Element::F64 => Element::F64,
            operands if operands.is_float() || self.blocks.is_some() => Element::F32,
            _ => Element::I32,
        }
    }

    /// The type in which the epilogue function is computed: f32, or f64 for operands of f64.
    pub(crate) fn computed_type(&self) -> Element {
        if self.operand_type() == Element::F64 { Element::F64 } else { Element::F32 }
    }

    /// Whether warpgroups multiply on a machine, by wgmma; otherwise warps do, by mma.sync. wgmma
    /// supports neither f64 nor integers of four bits, nor weights of four bits in memory, nor
    /// block scales.
    pub(crate) fn is_by_warpgroups(&self, machine: &Machine) -> bool {
        let packed = self.nibbles || self.int4.is_some() || self.blocks.is_some();
        has_wgmma(machine) && self.operand_type() != Element::F64 && !packed
    }

    /// Floating-point operations: multiplications plus additions.
    pub fn operations(&self) -> i64 {
        let packed = self.blocks.as_ref().map_or(1, |blocks| i64::from(blocks.format.packed()));
        let [m, n, _] = self.mma_sizes();
        [m, n, self.depth()].into_iter().fold(self.batch.saturating_mul(2 * packed), i64::saturating_mul)
    }

    /// The bytes of the tensors, each element once.
    pub fn bytes(&self) -> i64 {
        let inputs = self.fused.iter().flat_map(|fused| &fused.inputs).chain(self.kept.iter().map(|(_, to)| to));
        let scales = self.scales.iter().chain(self.blocks.iter().map(|blocks| &blocks.scales));
        let inputs = inputs.chain(&self.ends).chain(scales.flat_map(|scales| [&scales.a, &scales.b]));
        let inputs = inputs.chain(&self.int4);
        [&self.a, &self.b, &self.d].into_iter().chain(inputs).map(Matrix::bytes).fold(0, i64::saturating_add)
    }

    /// Elements of a k-tile along K: 128 bytes, or a group of weights of four bits.
    pub(crate) fn k_tile(&self) -> i64 {
        if self.int4.is_some() {
            return weights::GROUP;
        }
        LINE_BYTES / i64::from(self.operand_type().bytes())
    }
}

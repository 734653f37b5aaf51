//! The kernels of a GEMM in launch order, and their tensors.

use tilewright_kernel::Kernel;

/// A tensor of a GEMM, as an argument of its kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProductTensor {
    /// A.
    A,
    /// B.
    B,
    /// An epilogue input, counted from 0.
    Input(usize),
    /// The scales of the blocks of A.
    ScalesA,
    /// The scales of the blocks of B.
    ScalesB,
    /// The ends of the row groups.
    Ends,
    /// D.
    D,
    /// The result of a reduction of rows or columns, counted from 0.
    Reduction(usize),
    /// A workspace in device memory, by its index.
    Workspace(usize),
}

/// What a kernel of a GEMM is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// Copies or converts an operand that TMA cannot read, or D if TMA cannot store it.
    Move,
    /// Writes the table of the tiles of all row groups.
    Tiles,
    /// The GEMM itself: mainloop and epilogue.
    Gemm,
    /// Adds the partial accumulators of split-K.
    SplitK,
    /// Finishes a reduction of rows or columns.
    Reduction,
}

/// The tensors of a GEMM kernel, by their roles.
#[derive(Debug, Clone)]
pub(crate) struct ProductTensors {
    pub(crate) a: ProductTensor,
    pub(crate) b: ProductTensor,
    /// The epilogue inputs, in their order.
    pub(crate) inputs: Vec<ProductTensor>,
    /// The scales of A, then those of B; nothing without scales.
    pub(crate) scales: Vec<ProductTensor>,
    pub(crate) d: ProductTensor,
}

/// A kernel of a GEMM.
#[derive(Debug, Clone)]
pub struct Step {
    pub(crate) kind: StepKind,
    pub(crate) kernel: Kernel,
    pub(crate) operands: Vec<ProductTensor>,
    /// The number of tensors that are written; these come last.
    pub(crate) writes: usize,
    /// The launch sizes that the kernel has names for.
    pub(crate) sizes: Vec<(&'static str, i64)>,
    pub(crate) does: String,
    /// The problem of each operand, in a list; empty for a single problem.
    pub(crate) problems: Vec<usize>,
}

impl Step {
    /// A kernel with known sizes that writes its last tensor.
    pub(crate) fn new(kind: StepKind, kernel: Kernel, operands: Vec<ProductTensor>, does: String) -> Step {
        Step { kind, kernel, operands, writes: 1, sizes: Vec::new(), does, problems: Vec::new() }
    }

    /// The purpose of the kernel.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Problem, Product, StepKind};
    ///
    /// // TMA cannot read rows of 9 elements: A and B are copied first.
    /// let problem = Problem::new(Element::Bf16, [10, 16, 9]).unwrap();
    /// let product = Product::new(&problem, &Machine::named("H200").unwrap()).unwrap();
    /// let kinds: Vec<StepKind> = product.steps().iter().map(|step| step.kind()).collect();
    /// assert_eq!(kinds, [StepKind::Move, StepKind::Move, StepKind::Gemm]);
    /// ```
    pub fn kind(&self) -> StepKind {
        self.kind
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The launch sizes by name; empty if the kernel has fixed sizes.
    pub fn sizes(&self) -> &[(&'static str, i64)] {
        &self.sizes
    }

    /// Its tensors, in the order of the kernel: inputs, then outputs.
    pub fn operands(&self) -> &[ProductTensor] {
        &self.operands
    }

    /// The inputs and the outputs, each in the order of the kernel.
    pub fn read_and_written(&self) -> (&[ProductTensor], &[ProductTensor]) {
        self.operands.split_at(self.operands.len().saturating_sub(self.writes))
    }

    /// The index of the problem in a list that each tensor belongs to, in the order of
    /// [`Step::operands`]: 0 for a single problem. Workspaces belong to all.
    pub fn problems(&self) -> impl Iterator<Item = usize> {
        (0..self.operands.len()).map(|at| self.problems.get(at).copied().unwrap_or(0))
    }

    /// A short description.
    pub fn does(&self) -> &str {
        &self.does
    }
}

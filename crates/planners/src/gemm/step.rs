//! The kernels of a product in the order in which they run, and their tensors.

use tilewright_kernel::Kernel;

/// A tensor of a product, which an argument of one of its kernels stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProductTensor {
    /// A.
    A,
    /// B.
    B,
    /// An input of the epilogue function, counted from 0.
    Input(usize),
    /// The scales of the blocks of A.
    ScalesA,
    /// The scales of the blocks of B.
    ScalesB,
    /// Where the row groups end.
    Ends,
    /// D.
    D,
    /// What is kept of rows or columns, counted from 0.
    ByProduct(usize),
    /// A piece of device memory that belongs to the product alone, by its number.
    Workspace(usize),
}

/// What a kernel of a GEMM is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// Moves or converts an operand that TMA cannot read, or D that it cannot store.
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
pub(crate) struct Operands {
    pub(crate) a: ProductTensor,
    pub(crate) b: ProductTensor,
    /// The inputs of the epilogue function, in their order.
    pub(crate) inputs: Vec<ProductTensor>,
    /// The scales of A, then those of B; nothing without scales.
    pub(crate) scales: Vec<ProductTensor>,
    pub(crate) d: ProductTensor,
}

/// A kernel of a product.
#[derive(Debug, Clone)]
pub struct Step {
    pub(crate) kind: StepKind,
    pub(crate) kernel: Kernel,
    pub(crate) operands: Vec<ProductTensor>,
    /// How many of them are written: the last ones.
    pub(crate) writes: usize,
    /// The sizes of its launch, where the kernel has names for them.
    pub(crate) sizes: Vec<(&'static str, i64)>,
    pub(crate) does: String,
    /// Whose tensor each operand is, of the problems of a list; none where there is one problem.
    pub(crate) problems: Vec<usize>,
}

impl Step {
    /// A kernel whose sizes are known, that writes its last tensor.
    pub(crate) fn new(kind: StepKind, kernel: Kernel, operands: Vec<ProductTensor>, does: String) -> Step {
        Step { kind, kernel, operands, writes: 1, sizes: Vec::new(), does, problems: Vec::new() }
    }

    /// What it is for.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Problem, Product, StepKind};
    ///
    /// // TMA reads no rows of 9 elements: A and B are moved before.
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

    /// The sizes of its launch, by name: none where the kernel knows them.
    pub fn sizes(&self) -> &[(&'static str, i64)] {
        &self.sizes
    }

    /// Its tensors, in the order of the kernel: those that are read, then those that are written.
    pub fn operands(&self) -> &[ProductTensor] {
        &self.operands
    }

    /// The tensors that are read, and those that are written, each in the order of the kernel.
    pub fn read_and_written(&self) -> (&[ProductTensor], &[ProductTensor]) {
        self.operands.split_at(self.operands.len().saturating_sub(self.writes))
    }

    /// Which problem of a list the tensors belong to, in the order of [`Step::operands`]: 0 where
    /// there is one problem. Pieces of the workspace belong to all.
    pub fn problems(&self) -> impl Iterator<Item = usize> {
        (0..self.operands.len()).map(|at| self.problems.get(at).copied().unwrap_or(0))
    }

    /// What it does, in a few words.
    pub fn does(&self) -> &str {
        &self.does
    }
}

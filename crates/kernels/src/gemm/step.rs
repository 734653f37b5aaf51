//! Kernels in the order in which they run, and what they read and write.

use tilewright_kernel::Kernel;

/// A tensor of a product, which an argument of one of its kernels stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProductTensor {
    /// A.
    A,
    /// B.
    B,
    /// An input of the function of the sums, counted from 0.
    Input(usize),
    /// The scales of the blocks of A.
    ScalesA,
    /// The scales of the blocks of B.
    ScalesB,
    /// Where the groups of rows end.
    Ends,
    /// D.
    D,
    /// What is kept of rows or columns, counted from 0.
    ByProduct(usize),
    /// A piece of device memory that belongs to the product alone, by its number.
    Workspace(usize),
}

/// A kernel of a product.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) kernel: Kernel,
    pub(super) operands: Vec<ProductTensor>,
    /// How many of them are written: the last ones.
    pub(super) writes: usize,
    /// The sizes of its launch, where the kernel has names for them.
    pub(super) sizes: Vec<(&'static str, i64)>,
    pub(super) does: String,
    /// Whose tensor each operand is, of the problems of a list; none where there is one problem.
    pub(super) problems: Vec<usize>,
}

impl Step {
    /// A kernel whose sizes are known, that writes its last tensor.
    pub(super) fn new(kernel: Kernel, operands: Vec<ProductTensor>, does: String) -> Step {
        Step { kernel, operands, writes: 1, sizes: Vec::new(), does, problems: Vec::new() }
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

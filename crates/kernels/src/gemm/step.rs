//! Kernels in the order in which they run, and what they read and write.

use tilewright_kernel::Kernel;

/// A tensor of a product: what an argument of one of its kernels is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A.
    A,
    /// B.
    B,
    /// An input of the function of the sums, counted from 0.
    Input(usize),
    /// D.
    D,
    /// A piece of device memory that belongs to the product alone, by its number.
    Workspace(usize),
}

/// A kernel of a product.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) kernel: Kernel,
    pub(super) operands: Vec<Operand>,
    pub(super) does: String,
}

impl Step {
    /// The kernel. Its sizes are known.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Its tensors, in the order of the kernel: the last one is written, the others are read.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// What it does, in a few words.
    pub fn does(&self) -> &str {
        &self.does
    }
}

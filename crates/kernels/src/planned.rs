//! A kernel and its plan.

use std::fmt;

use tilewright_kernel::Kernel;

use crate::meaning::Meaning;

/// A kernel, and what was chosen for it.
#[derive(Debug, Clone)]
pub struct Planned {
    kernel: Kernel,
    plan: Vec<String>,
    bytes: i64,
    operations: i64,
    sizes: Vec<(&'static str, i64)>,
    meaning: Meaning,
}

impl Planned {
    pub(crate) fn new(kernel: Kernel, plan: Vec<String>, meaning: Meaning) -> Planned {
        Planned { kernel, plan, bytes: 0, operations: 0, sizes: Vec::new(), meaning }
    }

    pub(crate) fn moving(self, bytes: i64) -> Planned {
        Planned { bytes, ..self }
    }

    pub(crate) fn computing(self, operations: i64) -> Planned {
        Planned { operations, ..self }
    }

    pub(crate) fn sized(self, sizes: &[(&'static str, i64)]) -> Planned {
        Planned { sizes: sizes.to_vec(), ..self }
    }

    pub(crate) fn meaning(&self) -> &Meaning {
        &self.meaning
    }

    /// The sizes with which it is launched: those that the kernel does not know yet.
    pub fn sizes(&self) -> &[(&'static str, i64)] {
        &self.sizes
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What was chosen, a line each.
    pub fn plan(&self) -> &[String] {
        &self.plan
    }

    /// The least number of bytes that must be read and written: each element once.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// How many additions and multiplications the result takes; 0 where memory alone decides.
    pub fn operations(&self) -> i64 {
        self.operations
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

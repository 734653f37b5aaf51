//! A kernel and its plan.

use std::fmt;

use tilewright_kernel::Kernel;

use crate::error::PlanError;
use crate::terms::Meaning;

/// A kernel, and the plan from which it was built.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::softmax;
///
/// let planned = softmax(&Machine::named("H200").unwrap(), (1024, Element::Bf16)).unwrap();
/// assert_eq!(planned.plan()[0], "softmax of rows of 1024 bf16"); // the plan as text
/// assert_eq!(planned.launches().count(), 1);
/// assert_eq!(planned.kernel().outputs().len(), 1);
/// ```
#[derive(Debug, Clone)]
pub struct Planned {
    kernel: Kernel,
    second: Option<Kernel>,
    /// The number of scratch tensors, in which the blocks of a launch leave partial results for its
    /// last block.
    left: usize,
    plan: Vec<String>,
    bytes: i64,
    operations: i64,
    sizes: Vec<(&'static str, i64)>,
    meaning: Meaning,
}

impl Planned {
    pub(crate) fn new(kernel: Kernel, plan: Vec<String>, meaning: Meaning) -> Planned {
        let (second, sizes) = (None, Vec::new());
        Planned { kernel, second, left: 0, plan, bytes: 0, operations: 0, sizes, meaning }
    }

    /// Adds a second launch, whose inputs are the outputs of the first one, in the same order.
    pub(crate) fn then(self, second: Kernel, line: String) -> Planned {
        let mut plan = self.plan;
        plan.push(line);
        Planned { second: Some(second), plan, ..self }
    }

    /// Declares `left` tensors before the last one as scratch between the blocks of the launch.
    pub(crate) fn leaving(self, left: usize) -> Planned {
        Planned { left, ..self }
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

    /// The sizes of its launch that are not fixed by the kernel.
    pub fn sizes(&self) -> &[(&'static str, i64)] {
        &self.sizes
    }

    /// The kernel, or that of the first launch.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The kernel of a second launch, if there is one. The tensors after the inputs of the first
    /// kernel are then its inputs, in the same order, and its last tensor is the result. It takes
    /// the same sizes.
    pub fn second(&self) -> Option<&Kernel> {
        self.second.as_ref()
    }

    /// The tensors of the kernel that are scratch memory, by index: partial results that blocks
    /// leave for the last block, or for a second launch. The caller allocates them; their contents
    /// do not matter. The tensors before them are the inputs; the tensor after them is the result,
    /// or the last one of the second launch.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::{ReduceOptions, Statistic, reduce};
    ///
    /// let h200 = Machine::named("H200").unwrap();
    /// let matrix = "(4096,4096):(4096,1)".parse().unwrap();
    /// let rows = reduce(&h200, Statistic::Sum, (&matrix, Element::F32), &[1], ReduceOptions::default()).unwrap();
    /// assert!(rows.between().is_empty());
    /// let all = reduce(&h200, Statistic::ArgMaximum, (&matrix, Element::F32), &[0, 1], ReduceOptions::default()).unwrap();
    /// // The maxima of the blocks, and their indices.
    /// assert_eq!(all.between(), 1..3);
    /// ```
    pub fn between(&self) -> std::ops::Range<usize> {
        let tensors = |kernel: &Kernel| kernel.program().tensors().count();
        let count = tensors(&self.kernel);
        match &self.second {
            Some(second) => count + 1 - tensors(second)..count,
            None => count.saturating_sub(1 + self.left)..count.saturating_sub(1),
        }
    }

    /// The kernels in the order of their launches.
    pub fn launches(&self) -> impl Iterator<Item = &Kernel> {
        std::iter::once(&self.kernel).chain(&self.second)
    }

    /// The plan as text, line by line.
    pub fn plan(&self) -> &[String] {
        &self.plan
    }

    /// The least number of bytes that must be read and written: each element once.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Additions and multiplications; 0 if the kernel is limited by memory.
    pub fn operations(&self) -> i64 {
        self.operations
    }
}

/// The first plan, and all others that can be carried out and whose text differs.
pub(crate) fn distinct(first: Planned, others: impl IntoIterator<Item = Result<Planned, PlanError>>) -> Vec<Planned> {
    let mut all = vec![first];
    for other in others.into_iter().flatten() {
        if all.iter().all(|own| own.plan != other.plan) {
            all.push(other);
        }
    }
    all
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

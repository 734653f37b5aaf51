//! The features that the instructions of a program need.
//!
//! Law: the PTX for a target can be written if and only if the target has all features of
//! [`Program::features`], apart from the limit of shared memory and operations that no target has.

use std::collections::BTreeSet;

use super::operation::{AtomicOperation, Fence, Format, Matrix, Number, Operation, Special};
use super::{Instruction, Program};
use crate::machine::{Multiprocessor, Rates};
use crate::program::wgmma::WgmmaOperands;
use crate::target::{Feature, Target};

impl Rates {
    /// The rate of a matrix instruction of a warp.
    pub fn matrix(&self, matrix: Matrix) -> f64 {
        match matrix {
            Matrix::F16F32 | Matrix::Bf16F32 => self.matrix_16,
            Matrix::F16F16 => self.matrix_16_in_16,
            Matrix::Tf32F32 => self.matrix_tf32,
            Matrix::F64 | Matrix::F64K4 | Matrix::F64K8 | Matrix::F64K16 => self.matrix_f64,
            // No card is slower at four bits than at eight. Cards before 9.0 are twice as fast.
            Matrix::I8I32 | Matrix::U8I32 | Matrix::S4I32 | Matrix::U4I32 => self.matrix_i8,
            Matrix::E4M3F32 | Matrix::E5M2F32 => self.matrix_f8,
            Matrix::Scaled(format, _) if format.packed() == 1 => self.matrix_f8,
            Matrix::Scaled(..) => self.matrix_f4,
        }
    }

    /// The rate of a matrix instruction of a warpgroup.
    pub fn group(&self, operands: WgmmaOperands) -> f64 {
        match operands {
            WgmmaOperands::F16 | WgmmaOperands::Bf16 => self.matrix_16,
            WgmmaOperands::Tf32 => self.matrix_tf32,
            WgmmaOperands::I8 | WgmmaOperands::U8 => self.matrix_i8,
            WgmmaOperands::E4M3 | WgmmaOperands::E5M2 => self.matrix_f8,
        }
    }
}

impl Instruction {
    /// The feature that the instruction needs, and a description of the instruction; None if every
    /// target has it.
    pub(crate) fn needs(&self) -> Option<(Feature, &'static str)> {
        let bulk = |what| Some((Feature::BulkCopies, what));
        match &self.operation {
            Operation::Special(Special::ClusterRank) | Operation::ClusterArrive | Operation::ClusterWait => {
                Some((Feature::Clusters, "a cluster"))
            }
            Operation::RemoteArrive { .. }
            | Operation::RemoteLoad(_)
            | Operation::RemoteStore(_)
            | Operation::RemoteReduce(..) => Some((Feature::Clusters, "shared memory of another block")),
            Operation::Wgmma { .. }
            | Operation::FenceRegisters
            | Operation::CommitMultiply
            | Operation::WaitMultiply(_) => Some((Feature::Wgmma, "wgmma")),
            Operation::SetRegisters { .. } => Some((Feature::RegisterReallocation, "a change of registers")),
            Operation::WaitLaunches | Operation::LaunchNext => {
                Some((Feature::DependentLaunches, "a wait for launches"))
            }
            Operation::Elect => bulk("an elected lane"),
            Operation::Fence(Fence::AsyncShared | Fence::AsyncGlobal) => bulk("a proxy fence"),
            Operation::Fence(Fence::BarrierInit) => bulk("a fence of barriers"),
            Operation::BarrierArrive { .. } => bulk("an arrival without a state"),
            Operation::BarrierWait { .. } => bulk("a wait that may sleep"),
            Operation::BulkLoad { multicast: true, .. } | Operation::BulkSend { .. } => {
                Some((Feature::Clusters, "a bulk copy to other blocks"))
            }
            Operation::BulkLoad { .. }
            | Operation::BulkStore { .. }
            | Operation::CommitBulk
            | Operation::WaitBulk { .. } => bulk("a bulk copy"),
            // The inputs are an address, if there is one, and the values.
            Operation::Reduce(_, _, access) if self.inputs.len() > 1 + usize::from(access.addressed) => {
                Some((Feature::WideAtomics, "a vector of atomic additions"))
            }
            Operation::Atomic(AtomicOperation::Add, Number::Bf16 | Number::Bf16x2, _)
            | Operation::Reduce(AtomicOperation::Add, Number::Bf16 | Number::Bf16x2, _) => {
                Some((Feature::WideAtomics, "an atomic addition of bf16"))
            }
            Operation::StoreMatrix { .. } => Some((Feature::StoreMatrix, "stmatrix")),
            Operation::Multiply(Matrix::Scaled(..)) => Some((Feature::BlockScaledMma, "an MMA with block scales")),
            Operation::Multiply(Matrix::E4M3F32 | Matrix::E5M2F32) => Some((Feature::Float8, "an MMA of 8-bit floats")),
            Operation::ConvertPair { to: Format::E4M3 | Format::E5M2 } => {
                Some((Feature::Float8, "conversion to 8-bit floats"))
            }
            Operation::WidenPair { .. } => Some((Feature::Float8, "conversion from 8-bit floats")),
            _ => None,
        }
    }
}

impl Program {
    /// The features that the instructions of the program need.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    /// use tilewright_kernel::ptx::Feature;
    ///
    /// let kernel = Kernel::build("kernel", |k| {
    ///     k.threads(32)?;
    ///     k.wait_launches();
    ///     Ok(())
    /// })?;
    /// assert!(kernel.program().features().into_iter().eq([Feature::DependentLaunches]));
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn features(&self) -> BTreeSet<Feature> {
        let cluster = (self.cluster_size() > 1).then_some(Feature::Clusters);
        self.instructions().filter_map(Instruction::needs).map(|(feature, _)| feature).chain(cluster).collect()
    }

    /// The first target that has every instruction of the program; None if no target has all of
    /// them.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, ptx::Target};
    ///
    /// let kernel = |waits: bool| {
    ///     Kernel::build("kernel", |k| {
    ///         k.threads(32)?;
    ///         if waits {
    ///             k.wait_launches();
    ///         }
    ///         Ok(())
    ///     })
    /// };
    /// assert_eq!(kernel(false)?.program().least_target(), Some(Target::Sm80));
    /// assert_eq!(kernel(true)?.program().least_target(), Some(Target::Sm90a));
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn least_target(&self) -> Option<Target> {
        let features = self.features();
        Target::ALL.into_iter().find(|target| features.iter().all(|feature| target.has(*feature)))
    }

    /// Whether a target has every instruction of the program, and enough shared memory for a block.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, ptx::Target};
    ///
    /// let kernel = Kernel::build("kernel", |k| {
    ///     k.threads(32)?;
    ///     k.shared::<f32>("32768:1")?;
    ///     Ok(())
    /// })?;
    /// // 128 KiB: more than a block of an RTX 4090 has.
    /// assert!(kernel.program().runs_on(Target::Sm80) && !kernel.program().runs_on(Target::Sm89));
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn runs_on(&self, target: Target) -> bool {
        self.shared_bytes <= Multiprocessor::of(target).block_shared_bytes
            && self.features().into_iter().all(|feature| target.has(feature))
    }
}

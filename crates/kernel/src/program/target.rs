//! The least target that has the instructions of a program.
//!
//! Law: text for a target can be written if and only if the target is not before
//! [`Program::least_target`], but for shared memory and operations that no target has.

use super::operation::{AtomicOperation, Fence, Format, Matrix, Number, Operation, Special};
use super::{Instruction, Program};
use crate::machine::{Multiprocessor, Rates};
use crate::program::wgmma::WgmmaOperands;
use crate::target::Target;

impl Rates {
    /// The rate of a matrix instruction of a warp.
    pub fn matrix(&self, matrix: Matrix) -> f64 {
        match matrix {
            Matrix::F16F32 | Matrix::Bf16F32 => self.matrix_16,
            Matrix::F16F16 => self.matrix_16_in_16,
            Matrix::Tf32F32 => self.matrix_tf32,
            Matrix::F64 => self.matrix_f64,
            Matrix::I8I32 | Matrix::U8I32 => self.matrix_i8,
            Matrix::E4M3F32 | Matrix::E5M2F32 => self.matrix_f8,
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
    /// The first target that has it, and what it is; none if every target has it.
    pub(crate) fn needs(&self) -> Option<(Target, &'static str)> {
        let hopper = |what| Some((Target::Sm90a, what));
        match &self.operation {
            Operation::Special(Special::ClusterRank) => hopper("a cluster"),
            Operation::Wgmma { .. }
            | Operation::FenceRegisters
            | Operation::CommitMultiply
            | Operation::WaitMultiply(_) => hopper("wgmma"),
            Operation::Elect => hopper("an elected lane"),
            Operation::SetRegisters { .. }
            | Operation::WaitLaunches
            | Operation::LaunchNext
            | Operation::ClusterArrive
            | Operation::ClusterWait => hopper("a cluster, a change of registers or a wait for launches"),
            Operation::Fence(Fence::AsyncShared | Fence::AsyncGlobal) => hopper("a proxy fence"),
            Operation::Fence(Fence::BarrierInit) => hopper("a fence of barriers"),
            Operation::BarrierArrive { .. } => hopper("an arrival without a state"),
            Operation::BarrierWait { .. } => hopper("a wait that may sleep"),
            Operation::RemoteArrive { .. }
            | Operation::RemoteLoad(_)
            | Operation::RemoteStore(_)
            | Operation::RemoteReduce(..) => hopper("shared memory of another block"),
            Operation::BulkLoad { .. }
            | Operation::BulkSend { .. }
            | Operation::BulkStore { .. }
            | Operation::CommitBulk
            | Operation::WaitBulk { .. } => hopper("a bulk copy"),
            // The inputs are an address, if there is one, and the values.
            Operation::Reduce(_, _, access) if self.inputs.len() > 1 + usize::from(access.addressed) => {
                hopper("a vector of atomic additions")
            }
            Operation::Atomic(AtomicOperation::Add, Number::Bf16 | Number::Bf16x2, _)
            | Operation::Reduce(AtomicOperation::Add, Number::Bf16 | Number::Bf16x2, _) => {
                hopper("an atomic addition of bf16")
            }
            Operation::StoreMatrix { .. } => hopper("stmatrix"),
            Operation::Multiply(Matrix::E4M3F32 | Matrix::E5M2F32) => Some((Target::Sm89, "an MMA of 8-bit floats")),
            Operation::ConvertPair { to: Format::E4M3 | Format::E5M2 } => {
                Some((Target::Sm89, "conversion to 8-bit floats"))
            }
            Operation::WidenPair { .. } => Some((Target::Sm89, "conversion from 8-bit floats")),
            _ => None,
        }
    }
}

impl Program {
    /// The first target that has every instruction of the program.
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
    /// assert_eq!(kernel(false)?.program().least_target(), Target::Sm80);
    /// assert_eq!(kernel(true)?.program().least_target(), Target::Sm90a);
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn least_target(&self) -> Target {
        let cluster = if self.cluster_size() > 1 { Target::Sm90a } else { Target::Sm80 };
        self.instructions().filter_map(Instruction::needs).map(|(target, _)| target).fold(cluster, Target::max)
    }

    /// Whether a target has every instruction of the program, and as much shared memory for a
    /// block.
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
        target >= self.least_target() && self.shared_bytes <= Multiprocessor::of(target).block_shared_bytes
    }
}

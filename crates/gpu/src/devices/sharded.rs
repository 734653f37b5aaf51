//! Operations on sharded tensors, on several devices of one machine: GEMM, functions of elements,
//! reductions and softmax.
//!
//! Law: `D(m,n)` is the sum over k of `A(m,k) * B(k,n)`, each with its sharded layout. The layouts
//! determine what each device multiplies, and in which order ([`ShardedPlan`]). Devices receive
//! blocks from other devices and send partial sums while they multiply ([`ShardedProduct`]).
//! Partial sums are added in the order of ranks, so the result is deterministic.
//!
//! All other operations, and GEMMs that cannot be divided into such blocks, are steps that all
//! devices execute one after another ([`WorkPlan`], [`ShardedWork`]).

mod device;
mod local;
mod operations;
mod planned;
mod steps;
mod work;

use crate::GpuError;
use tilewright_layout::LayoutError;
use tilewright_mesh::MeshError;
use tilewright_planners::PlanError;

pub use device::ShardedProduct;
pub use planned::{Arrival, Operand, PartialDestination, PieceProduct, RankPlan, ShardedPlan};
pub use steps::{Tensor, WorkPlan, WorkStep};
pub use work::ShardedWork;

use crate::devices::gemm::ProductError;
use crate::devices::reshard::ReshardError;
use crate::error::{one_of, refused_by};

one_of! {
    /// Why work on sharded tensors is refused.
    #[derive(Debug, Clone)]
    ShardedError {
        /// An error of the layouts, or of the devices of the mesh.
        Mesh(MeshError),
        /// A kernel cannot be planned.
        Plan(PlanError),
        /// An error of the driver, or of a launch.
        Gpu(GpuError),
        /// An error of a transfer between devices.
        Reshard(ReshardError),
    }
}
refused_by! { ShardedError: Mesh, Plan, Gpu, Reshard }

tilewright_layout::from_variants!(ShardedError: Mesh(LayoutError));

impl From<ProductError> for ShardedError {
    fn from(error: ProductError) -> ShardedError {
        match error {
            ProductError::Plan(error) => ShardedError::Plan(error),
            ProductError::Gpu(error) => ShardedError::Gpu(error),
        }
    }
}

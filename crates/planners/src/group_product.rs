//! A GEMM for Hopper: wgmma, fed by TMA.
//!
//! Law: as [`crate::product()`]: `D(m,n) = sum over k of A(m,k) * B(n,k)`, operands of 16 bits,
//! accumulators in f32, for any M, N and K that are multiples of what the kernel says of them.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;

use crate::error::PlanError;
use crate::gemm::{self, Problem};
use crate::planned::Planned;

/// A kernel that multiplies as [`crate::product()`] does, for a machine with wgmma: A,
/// `(M,K):(K,1)`, and B, `(N,K):(K,1)`, into D, `(M,N):(N,1)`, all of f16 or all of bf16, with
/// accumulators in f32. It is the plan of [`crate::gemm`] that takes the least time on the machine
/// without a workspace.
///
/// The sizes `[M, N, K]` determine the number of blocks and the known divisors of M, N and K; other
/// sizes with these divisors may be launched. K and N are multiples of 8, so that rows begin at
/// multiples of 16 bytes.
///
/// ```
/// use tilewright_kernel::machine::Machine;
/// use tilewright_kernel::{Element, ptx};
/// use tilewright_planners::group_product;
///
/// let h200 = Machine::named("H200").unwrap();
/// let planned = group_product(&h200, Element::Bf16, [4096, 4096, 4096]).unwrap();
/// let program = planned.kernel().program();
/// // 512 tiles of 128 x 256 in four waves of 128 blocks.
/// assert_eq!(program.grid[0].to_string(), "128");
/// assert!(ptx::write(program, ptx::Target::Sm90a).unwrap().contains("wgmma"));
/// ```
///
/// Errors: the machine has no wgmma; there is no instruction for this type; K or N is no multiple
/// of 8; a size below 1.
pub fn group_product(machine: &Machine, element: Element, sizes: [i64; 3]) -> Result<Planned, PlanError> {
    gemm::alone("group_product", &Problem::new(element, sizes)?, machine)
}

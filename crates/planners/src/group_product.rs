//! A GEMM for Hopper, by wgmma and TMA.
//!
//! Law: as [`crate::product()`]: `C(m,n) = sum over k of A(m,k) * B(n,k)`, with 16-bit operands and
//! f32 accumulators, for all M, N and K that are multiples of what the kernel declares.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::Target;

use crate::error::PlanError;
use crate::gemm::{self, Problem};
use crate::planned::Planned;

/// A GEMM kernel like [`crate::product()`], for Hopper only: A, `(M,K):(K,1)`, and B,
/// `(N,K):(K,1)`, into D, `(M,N):(N,1)`, all of f16 or all of bf16, with f32 accumulators. It is
/// the fastest plan of [`crate::gemm`] without a workspace.
///
/// The sizes `[M, N, K]` determine the number of blocks and the known divisors of M, N and K; other
/// sizes with these divisors may be launched. K and N are multiples of 8, so that rows begin at
/// multiples of 16 bytes.
///
/// ```
/// use tilewright_kernel::{Element, ptx};
/// use tilewright_planners::group_product;
///
/// let planned = group_product(Element::Bf16, [4096, 4096, 4096]).unwrap();
/// let program = planned.kernel().program();
/// // 512 tiles of 128 x 256 in four waves of 128 blocks.
/// assert_eq!(program.grid[0].to_string(), "128");
/// assert!(ptx::write(program, ptx::Target::Sm90a).unwrap().contains("wgmma"));
/// ```
///
/// Errors: there is no instruction for this type; K or N is not a multiple of 8; a size below 1.
pub fn group_product(element: Element, sizes: [i64; 3]) -> Result<Planned, PlanError> {
    gemm::alone("group_product", &Problem::new(element, sizes)?, &Machine::of_target(Target::Sm90a))
}

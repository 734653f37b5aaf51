//! The tilings of a GEMM, for inspection.
//!
//! Law: from the outside in, the tilers cover the GEMM that is computed, and the packed layouts are
//! those that packing writes.

use std::fmt;

use tilewright_layout::atoms::TiledMma;
use tilewright_layout::{Layout, Tiler, Tree};

use super::blocking::Blocking;
use super::{Numbers, with_product};
use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};

/// The tilers by which a GEMM is divided, from the outside in, and the layouts of packed operands.
///
/// If the rows of C are contiguous, the GEMM is computed as `C^T = B^T * A^T`. The tilers are those
/// of that GEMM, whose M is the N of the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tilings {
    /// Whether `C^T = B^T * A^T` is computed.
    pub transposed: bool,
    /// M, N and K of the original GEMM.
    pub extents: [i64; 3],
    /// The tiler of C, `(M,N)`: the part that one thread computes at a time.
    pub task: Tiler,
    /// The tiler of B, `(N,K)`: the panel that is packed at a time.
    pub panel: Tiler,
    /// The tiler of A, `(M,K)`: the block that is packed at a time.
    pub block: Tiler,
    /// The tiler of C, `(M,N)`: the register tile of the micro-kernel.
    pub tile: Tiler,
    /// The layout of a packed block of A, slice after slice; None if A is read in place.
    pub packed_a: Option<Layout>,
    /// The layout of a packed panel of B; None if B is read in place.
    pub packed_b: Option<Layout>,
    /// The bytes of the workspace of each thread.
    pub workspace: usize,
    /// The bytes of the packed A that threads share.
    pub shared: usize,
}

/// The tilings under which [`gemm`](crate::gemm()) multiplies these operands. A GEMM that is too
/// small to be divided among threads and blocks has only `tile`.
///
/// Errors: as [`gemm`](crate::gemm()).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, cpu_atoms, cpu_mma_of, tilings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let square: Layout = "(512,512):(1,512)".parse()?;
/// let a = Tensor::filled(square.clone(), 1_f32)?;
/// let b = Tensor::filled(square.clone(), 1_f32)?;
/// let mut c = Tensor::filled(square, 0_f32)?;
/// let portable = cpu_atoms::<f32>()?.pop().expect("one that is always there");
/// let chosen = tilings(&cpu_mma_of(portable, 1)?, &a.view(), &b.view(), &mut c.view_mut())?;
/// assert_eq!(chosen.tile.to_string(), "[16:1;2:1]");
/// assert_eq!(chosen.task.to_string(), "[512:1;512:1]");
/// # Ok(())
/// # }
/// ```
pub fn tilings<S: Numbers, LA: Offsets, LB: Offsets, LC: Offsets>(
    mma: &TiledMma,
    a: &TensorView<'_, S, LA>,
    b: &TensorView<'_, S, LB>,
    c: &mut TensorViewMut<'_, S::Sum, LC>,
) -> Result<Tilings, TensorError> {
    with_product(mma, [S::Sum::default(); 2], a, b, c, |route, product| {
        let ([m, n, k], transposed) = (product.extents, product.transposed);
        let plan = (route.plan)(product);
        let Blocking { mr, nr, mc, nc, kc } = plan.blocking;
        let depth = kc.min(k);
        let tiler = |extents: [usize; 2]| -> Result<Tiler, TensorError> {
            Ok(Tiler::from_shape(&Tree::flat(extents.map(number))?)?)
        };
        let packed = |width: usize, rows: usize| -> Result<Layout, TensorError> {
            let slices = rows.div_ceil(width);
            let group = plan.group;
            let words = depth.div_ceil(group);
            let slice = width * words * group + plan.extra * group;
            Ok(Layout::strided(((width, slices), (group, words)), ((group, slice), (1, group * width)))?)
        };
        Ok(Tilings {
            transposed,
            extents: (if transposed { [n, m, k] } else { [m, n, k] }).map(number),
            task: tiler(plan.task)?,
            panel: tiler([nc, depth])?,
            block: tiler([mc, depth])?,
            tile: tiler([mr, nr])?,
            packed_a: if plan.a.is_none() { Some(packed(mr, mc)?) } else { None },
            packed_b: if plan.b.is_none() { Some(packed(nr, nc)?) } else { None },
            workspace: plan.bytes,
            shared: plan.shared.map_or(0, |[blocks, bytes]| blocks * bytes),
        })
    })?
}

/// An extent as `i64`, which it was in the layout.
fn number(extent: usize) -> i64 {
    i64::try_from(extent).unwrap_or(i64::MAX)
}

impl fmt::Display for Tilings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.extents;
        let [a, b, c] = if self.transposed { ["B^T", "A^T", "C^T"] } else { ["A", "B", "C"] };
        let place = |packed: &Option<Layout>| {
            packed.as_ref().map_or("read in place".into(), |layout| format!("packed {layout}"))
        };
        write!(f, "product  M={m} N={n} K={k}")?;
        if self.transposed {
            write!(f, ", computed as C^T = B^T A^T, because rows of C are contiguous")?;
        }
        writeln!(f, "\ntask     {c} by {}", self.task)?;
        writeln!(f, "panel    {b} by {}, {}", self.panel, place(&self.packed_b))?;
        writeln!(f, "block    {a} by {}, {}", self.block, place(&self.packed_a))?;
        writeln!(f, "tile     {c} by {}", self.tile)?;
        write!(f, "memory   {} bytes a thread", self.workspace)?;
        if self.shared > 0 {
            write!(f, ", and {} that they share", self.shared)?;
        }
        Ok(())
    }
}

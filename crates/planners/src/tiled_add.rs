//! The sum of two matrices, partitioned by threads and values.
//!
//! Law: `C(m,n) = A(m,n) + B(m,n)`.
//!
//! This is the kernel with which thread-value layouts are usually explained. A layout of threads
//! and a layout of values define the tile of a block. Each block computes a tile, and each thread
//! composes the tile with the thread-value layout to get its own part.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Fragment, Kernel, KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Tree, make_layout_tv};

use crate::error::PlanError;
use crate::planned::Planned;
use crate::terms::Meaning;

/// A kernel that adds two row-major matrices `(M,N)` of any sizes.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_planners::tiled_add;
///
/// let plan = tiled_add(Element::F32).unwrap();
/// assert_eq!(plan.kernel().program().threads, 256);
/// ```
///
/// Errors: the type supports no arithmetic.
pub fn tiled_add(element: Element) -> Result<Planned, PlanError> {
    // 256 threads, 4 x 64, the second mode fastest; each has 1 x 4 values: a block of 4 KB for
    // 32-bit types. Larger blocks would be slower.
    let threads: Layout = "(4,64):(64,1)".parse()?;
    let values: Layout = "(1,4):(4,1)".parse()?;
    let (tile, held) = make_layout_tv(&threads, &values)?;
    let plan = vec![format!("tiles of {tile}; threads and values {held}")];
    let tiler = tile.to_string();
    let kernel = Kernel::build("tiled_add", |k| {
        let layout = "(M,N{div=4}):(N,1)";
        let a = k.tensor_of(element, "a", layout, Role::Input)?;
        let b = k.tensor_of(element, "b", layout, Role::Input)?;
        let c = k.tensor_of(element, "c", layout, Role::Output)?;
        let (a, b) = (part(k, &a, &tiler, &held)?.load_predicated()?, part(k, &b, &tiler, &held)?.load_predicated()?);
        let sum: Fragment<'_> = a.zip(&b, |a, b| Ok(a + b))?;
        part(k, &c, &tiler, &held)?.store_predicated(&sum)
    })?;
    Ok(Planned::new(kernel, plan, Meaning::Sum))
}

/// The part of this thread in the tile of this block.
#[track_caller]
fn part<'k>(k: &'k Build, tensor: &View<'k>, tiler: &str, held: &Layout) -> Result<View<'k>, KernelError> {
    let tiles = tensor.zipped_divide(tiler)?;
    // ((_,_), block)
    let whole: Coord<Expr> = Tree::flat([Slot::All, Slot::All])?;
    let tile = tiles.slice(Tree::tuple([&whole, &k.block("(y,x)")?])?)?;
    tile.compose(held)?.thread_part()
}

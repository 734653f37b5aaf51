//! Lines that begin anywhere, moved to lines that begin at multiples of 16 bytes.
//!
//! Law: `to(l,i,m) = from(l,i,m)`, and 0 behind the end of a line up to the next multiple of 16 bytes. A
//! thread reads its elements one by one, or as many at once as the lines allow, and writes 16 bytes.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Distribution, Element, Kernel};
use tilewright_layout::{Slot, Tree};

use crate::error::PlanError;

/// Threads of a block.
const THREADS: i64 = 256;

/// Elements of 16 bytes.
pub(super) fn unit(element: Element) -> i64 {
    16 / i64::from(element.bytes())
}

/// The length of a line of so many elements, where the next one begins at a multiple of 16 bytes.
pub(super) fn padded(length: i64, element: Element) -> i64 {
    (length + unit(element) - 1) / unit(element) * unit(element)
}

/// The kernel that moves `matrices` of so many lines of so many elements, which begin every `line` and
/// every `step` elements behind an offset.
pub(super) fn packed(
    element: Element,
    [lines, length, matrices]: [i64; 3],
    [line, step]: [i64; 2],
    offset: i64,
) -> Result<Kernel, PlanError> {
    let (unit, whole) = (unit(element), padded(length, element));
    let tile = THREADS * unit;
    let held = Distribution::new(&tile.to_string(), &format!("({THREADS},{unit}):({unit},1)"))?;
    let from = format!("S<0,0,0> o {offset} o ({lines},{length},{matrices}):({line},1,{step})");
    let to = format!("({lines},{whole},{matrices}):({whole},1,{})", lines.saturating_mul(whole));
    let kernel = Kernel::build("pack_lines", |k| {
        let from = k.tensor_of(element, "from", &from, Role::Input)?;
        let to = k.tensor_of(element, "to", &to, Role::Output)?;
        k.threads(THREADS)?;
        k.grid(Axis::X, &lines.to_string())?;
        k.grid(Axis::Z, &matrices.to_string())?;
        let [number, _, matrix] = Axis::ALL.map(|axis| k.block_number(axis));
        let at = Tree::flat([Slot::At(number), Slot::All, Slot::At(matrix)])?;
        let tiler = tile.to_string();
        let read = from.slice(at.clone())?.local_tile(&tiler, k.block("y")?)?.load_distributed_predicated(&held)?;
        to.slice(at)?.local_tile(&tiler, k.block("y")?)?.store_distributed_predicated(&read)
    })?;
    Ok(kernel)
}

//! Kernels that align lines to 16 bytes.
//!
//! Law: `to(l,i,m) = from(l,i,m)`, and 0 from the end of a line to the next multiple of 16 bytes.
//! Accesses are coalesced and as wide as the strides allow. If they allow only single elements, a
//! thread copies the elements of a 4-byte word one after the other.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Distribution, Element, Kernel};
use tilewright_layout::{Composed, Layout, LayoutError, Slot, Swizzle, Tree};

use crate::error::PlanError;
use crate::gemm::problem::LINE_BYTES;
use crate::gemm::problem::matrix::{padded, unit};
use crate::law::SEVERAL_THREADS;
use crate::units::{MOVE_THREADS, follow_launches};

/// Elements of a thread that copies lines, approximately.
const THREAD_ELEMENTS: i64 = 16;

/// The stride of lines of `length` elements: a multiple of the cache line if that wastes little
/// memory, otherwise a multiple of 16 bytes.
pub(crate) fn spaced(length: i64, element: Element) -> i64 {
    let line = LINE_BYTES / i64::from(element.bytes());
    let spaced = (length + line - 1) / line * line;
    if spaced * 8 <= length * 9 { spaced } else { padded(length, element) }
}

/// Contiguous elements of a thread: those of the widest access, up to 16 bytes, that divides the
/// strides and the offset; or those of 4 bytes.
fn side(element: Element, steps: &[i64]) -> i64 {
    let widest = steps.iter().fold(unit(element), |widest, step| widest.min(1 << step.trailing_zeros().min(4)));
    widest.max(4 / i64::from(element.bytes()))
}

/// A layout whose offsets are `offset` larger.
///
/// Errors: an element has no offset that is a number.
pub(super) fn behind(offset: i64, layout: Layout) -> Result<Composed, LayoutError> {
    Composed::new(Swizzle::new(0, 0, 0)?, offset, layout)
}

/// The kernel that copies `matrices` matrices of lines. Lines are `line` elements apart and
/// matrices `step` elements apart, from an offset on.
pub(crate) fn packed(
    element: Element,
    [lines, length, matrices]: [i64; 3],
    [line, step]: [i64; 2],
    offset: i64,
    machine: &Machine,
) -> Result<Kernel, PlanError> {
    let (whole, apart) = (padded(length, element), spaced(length, element));
    let side = side(element, &[line, step, offset]);
    // As many elements of a thread as a line needs, limited by what a thread can keep in flight.
    let tiles = (whole + SEVERAL_THREADS * THREAD_ELEMENTS - 1) / (SEVERAL_THREADS * THREAD_ELEMENTS);
    let iterations = (whole + tiles * SEVERAL_THREADS * side - 1) / (tiles * SEVERAL_THREADS * side);
    let tile = SEVERAL_THREADS * side * iterations;
    let held = Layout::strided((SEVERAL_THREADS, (side, iterations)), (side, (1, SEVERAL_THREADS * side)));
    let held = Distribution::new(tile, held)?;
    let from = behind(offset, Layout::strided((lines, length, matrices), (line, 1, step))?)?;
    let to = Layout::strided((lines, whole, matrices), (apart, 1, lines.saturating_mul(apart)))?;
    let kernel = Kernel::build("pack_lines", |k| {
        let from = k.tensor_of(element, "from", &from, Role::Input)?;
        let to = k.tensor_of(element, "to", &to, Role::Output)?;
        k.threads(SEVERAL_THREADS)?;
        k.grid(Axis::X, lines)?;
        k.grid(Axis::Z, matrices)?;
        follow_launches(k, machine);
        let [number, _, matrix] = Axis::ALL.map(|axis| k.block_number(axis));
        let at = Tree::flat([Slot::At(number), Slot::All, Slot::At(matrix)])?;
        let read = from.slice(at.clone())?.local_tile(tile, k.block("y")?)?.load_distributed_predicated(&held)?;
        to.slice(at)?.local_tile(tile, k.block("y")?)?.store_distributed_predicated(&read)
    })?;
    Ok(kernel)
}

/// The parts of A and of B, of three each, that each segment of a line holds. Together they give
/// all products of parts except those below 2^-22 of the whole.
pub(crate) const PARTS: [[usize; 6]; 2] = [[0, 0, 1, 1, 0, 2], [0, 1, 0, 1, 2, 0]];

/// The kernel that splits f32 into parts of bf16, `x = x_0 + x_1 + x_2`. Each part is the rest of
/// the number rounded to bf16. For each of `parts` it writes a segment of a line, padded to chunks
/// of 16 bytes.
pub(crate) fn split(
    [lines, length, matrices]: [i64; 3],
    [line, step]: [i64; 2],
    offset: i64,
    parts: [usize; 6],
) -> Result<Kernel, PlanError> {
    let (unit, whole) = (unit(Element::Bf16), padded(length, Element::Bf16));
    let (tile, all) = (MOVE_THREADS * unit, whole * parts.len() as i64);
    let held = Distribution::new(tile, Layout::strided((MOVE_THREADS, unit), (unit, 1)))?;
    let from = behind(offset, Layout::strided((lines, length, matrices), (line, 1, step))?)?;
    let to = Layout::strided((lines, whole, parts.len(), matrices), (all, 1, whole, lines.saturating_mul(all)))?;
    let kernel = Kernel::build("split_lines", |k| {
        let from = k.tensor_of(Element::F32, "from", &from, Role::Input)?;
        let to = k.tensor_of(Element::Bf16, "to", &to, Role::Output)?;
        k.threads(MOVE_THREADS)?;
        k.grid(Axis::X, lines)?;
        k.grid(Axis::Y, (whole + tile - 1) / tile)?;
        k.grid(Axis::Z, matrices)?;
        let [number, place, matrix] = Axis::ALL.map(|axis| Slot::At(k.block_number(axis)));
        let place = Tree::leaf(place);
        let own = from.slice(Tree::flat([number.clone(), Slot::All, matrix.clone()])?)?;
        let first = own.local_tile(tile, place.clone())?.load_distributed_predicated(&held)?;
        let mut rest = first;
        let mut found = Vec::new();
        for _ in 0..3 {
            let part = rest.to(Element::Bf16)?;
            rest = rest.zip(&part.to(Element::F32)?, |all, part| Ok(all - part))?;
            found.push(part);
        }
        for (segment, part) in parts.into_iter().enumerate() {
            let at = [number.clone(), Slot::All, Slot::At((segment as i64).into()), matrix.clone()];
            let own = to.slice(Tree::flat(at)?)?.local_tile(tile, place.clone())?;
            own.store_distributed_predicated(&found[part])?;
        }
        Ok(())
    })?;
    Ok(kernel)
}

//! Operands that are transposed on their way to a patch.
//!
//! Law: a row of the patch finds the elements of such an operand in a buffer, one after another, and they are those at the same indices.
//!
//! An operand that is contiguous along the lines of the table, and has long steps along the row, would be read element by element. Its block of the patch is transposed into a buffer instead, by the
//! squares of copies, and the patch has contiguous rows there. Only what is read can be: and as a copy, so that it must be numbers, of which nobody can tell it.
#![allow(unsafe_code)]

use super::nest::Nest;
use crate::memory::LINE;
use crate::simd::{self, Instructions, Rows, Scratch, Stores, Stripe};

/// Rows of a block that is transposed, and elements of such a row: as many as make a line of each operand at the least, and read on for a while.
pub(super) const NEAR_TABLE: usize = 256;
pub(super) const NEAR_ROW: usize = 64;
/// Smaller blocks are not worth it.
const LEAST: usize = 8;

/// How the operands are transposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Near<const N: usize> {
    operands: Vec<Brought>,
    /// The table, and the steps of the row, where these operands lie in the buffer.
    pub(super) table: Vec<[isize; N]>,
    pub(super) steps: [isize; N],
    /// The bytes of a row of those operands that stay where they are.
    pub(super) fetched: [usize; N],
    bytes: usize,
}

/// An operand, the size of its elements, where it begins in the buffer, and where its rows begin from there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Brought {
    operand: usize,
    element: usize,
    start: usize,
    lines: Vec<isize>,
}

/// Memory of a thread.
pub(super) struct Workspace {
    buffer: Vec<u8>,
    scratch: Scratch,
    instructions: Instructions,
}

/// Whether elements of so many bytes are transposed in registers.
pub(super) fn in_registers(element: usize) -> bool {
    matches!(element, 1 | 2 | 4 | 8)
}

impl<const N: usize> Near<N> {
    /// For the operands whose elements may be read from elsewhere; none where that helps none of them.
    pub(super) fn new(nest: &Nest<N>, elements: [usize; N], plain: [bool; N]) -> Option<Near<N>> {
        let mut near =
            Near { operands: Vec::new(), table: nest.table.clone(), steps: nest.row.by, fetched: [0; N], bytes: 0 };
        if nest.table.len() < LEAST || nest.row.extent < LEAST {
            return None;
        }
        for operand in 0..N {
            let (element, by) = (elements[operand], nest.row.by[operand]);
            let contiguous = || nest.table.iter().enumerate().all(|(k, line)| line[operand] == (k * element) as isize);
            if operand + 1 < N
                && plain[operand]
                && in_registers(element)
                && by != 0
                && by != element as isize
                && contiguous()
            {
                // An odd number of lines, so that rows do not push each other out of the nearest cache.
                let pitch = (nest.row.extent * element).div_ceil(LINE) | 1;
                let lines: Vec<isize> = (0..nest.table.len()).map(|k| (k * pitch * LINE) as isize).collect();
                for (place, line) in near.table.iter_mut().zip(&lines) {
                    place[operand] = *line;
                }
                near.steps[operand] = element as isize;
                near.operands.push(Brought { operand, element, start: near.bytes, lines });
                near.bytes += nest.table.len() * pitch * LINE;
            } else if by == element as isize {
                near.fetched[operand] = nest.row.extent * element;
            }
        }
        Some(near).filter(|near| !near.operands.is_empty())
    }

    pub(super) fn workspace(&self) -> Workspace {
        let (buffer, scratch) = (vec![0; self.bytes + LINE], Scratch::new());
        Workspace { buffer, scratch, instructions: Instructions::detected() }
    }

    /// Brings the elements near of `count` of a row, `by` bytes apart, at so many lines of the table, and says where the operands begin now. `onward` is where they begin next.
    ///
    /// # Safety
    /// These elements may be read.
    pub(super) unsafe fn bring(
        &self,
        mut bases: [*mut u8; N],
        onward: [*mut u8; N],
        by: [isize; N],
        [count, lines]: [usize; 2],
        workspace: &mut Workspace,
    ) -> [*mut u8; N] {
        let Workspace { buffer, scratch, instructions } = workspace;
        let start = buffer.as_mut_ptr();
        let start = start.wrapping_add((start as usize).wrapping_neg() % LINE);
        for Brought { operand, element, start: at, lines: columns } in &self.operands {
            let (src, dst) = (bases[*operand].cast_const(), start.wrapping_add(*at));
            let columns = columns.get(..lines).unwrap_or_default();
            let (group, by) = (LINE / element, by[*operand]);
            let far = simd::stripes_ahead(*instructions, *element, columns.len()) * group;
            let [mut here, mut next] = [Rows::NONE; 2];
            let rows = |base: *const u8, first: usize| {
                let offsets: [isize; LINE] = std::array::from_fn(|k| ((first + k) as isize).wrapping_mul(by));
                (base, offsets)
            };
            for first in (0..count).step_by(group) {
                let some = group.min(count - first);
                let (base, offsets) = rows(src, first);
                here.set(base, offsets.get(..some).unwrap_or_default(), *element);
                let later = first + far;
                let (base, offsets) =
                    if later < count { rows(src, later) } else { rows(onward[*operand], later - count) };
                next.set(base, offsets.get(..group).unwrap_or_default(), *element);
                let dst = dst.wrapping_add(first * element);
                let stripe =
                    Stripe { rows: &here, next: &next, dst, columns, bytes: some * element, stores: Stores::Ordinary };
                // SAFETY: as here; each row of the buffer has room for so many elements.
                unsafe { simd::transpose(&stripe, *element, *instructions, scratch) };
            }
            bases[*operand] = dst;
        }
        bases
    }
}

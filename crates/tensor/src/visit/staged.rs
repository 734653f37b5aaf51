//! Operands that are transposed into a buffer before a patch is visited.
//!
//! Law: for a row of the patch, the elements of a staged operand are contiguous in the buffer, and
//! they are those at the same indices.
//!
//! An operand that is contiguous along the lines of the table, and has long steps along the row,
//! would be read element by element. Instead its block of the patch is transposed into a buffer, in
//! registers, and the patch reads contiguous rows there. Only operands that are read can be staged.
//! The closure is then given copies, so their types must be plain numbers, for which that makes no
//! difference.
//!
//! Reason for unsafe code: elements are moved as bytes, in vector registers.
#![allow(unsafe_code)]

use super::nest::Nest;
use crate::memory::LINE;
use crate::simd::{self, Instructions, Scratch, Stores, Stripe, StripeRows};

/// The number of rows of a staged block, and of elements of such a row: at least a cache line of
/// each operand, and long enough for the hardware prefetcher.
pub(super) const STAGED_TABLE: usize = 256;
pub(super) const STAGED_ROW: usize = 64;
/// The smallest number of rows and of elements that is worth staging.
const LEAST: usize = 8;

/// The operands that are staged, and their place in the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Staged<const N: usize> {
    operands: Vec<StagedOperand>,
    /// The table of the patch with the staged operands in the buffer, and the steps of its row.
    pub(super) table: Vec<[isize; N]>,
    pub(super) steps: [isize; N],
    /// The bytes of a row that are prefetched, for the operands that are not staged.
    pub(super) prefetched: [usize; N],
    bytes: usize,
}

/// A staged operand: the size of its elements, its beginning in the buffer, and the offsets of its
/// rows from there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StagedOperand {
    operand: usize,
    element: usize,
    start: usize,
    lines: Vec<isize>,
}

/// The buffer of a thread.
pub(super) struct Workspace {
    buffer: Vec<u8>,
    scratch: Scratch,
    instructions: Instructions,
}

/// Whether elements of this many bytes are transposed in registers.
pub(super) fn in_registers(element: usize) -> bool {
    matches!(element, 1 | 2 | 4 | 8)
}

impl<const N: usize> Staged<N> {
    /// The operands whose elements may be read from a copy; None if staging helps none of them.
    pub(super) fn new(nest: &Nest<N>, elements: [usize; N], plain: [bool; N]) -> Option<Staged<N>> {
        let mut staged = Staged {
            operands: Vec::new(),
            table: nest.table.clone(),
            steps: nest.row.by,
            prefetched: [0; N],
            bytes: 0,
        };
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
                // The pitch of rows is an odd number of lines, so that rows do not conflict in the
                // sets of the L1 cache.
                let pitch = (nest.row.extent * element).div_ceil(LINE) | 1;
                let lines: Vec<isize> = (0..nest.table.len()).map(|k| (k * pitch * LINE) as isize).collect();
                for (place, line) in staged.table.iter_mut().zip(&lines) {
                    place[operand] = *line;
                }
                staged.steps[operand] = element as isize;
                staged.operands.push(StagedOperand { operand, element, start: staged.bytes, lines });
                staged.bytes += nest.table.len() * pitch * LINE;
            } else if by == element as isize {
                staged.prefetched[operand] = nest.row.extent * element;
            }
        }
        Some(staged).filter(|staged| !staged.operands.is_empty())
    }

    pub(super) fn workspace(&self) -> Workspace {
        let (buffer, scratch) = (vec![0; self.bytes + LINE], Scratch::new());
        Workspace { buffer, scratch, instructions: Instructions::detected() }
    }

    /// Stages `count` elements of a row, `by` bytes apart, at these lines of the table. Returns
    /// where each operand now begins. `next` is where the operands begin in the following patch,
    /// which is prefetched.
    ///
    /// # Safety
    /// These elements of the operands may be read.
    pub(super) unsafe fn stage(
        &self,
        mut bases: [*mut u8; N],
        next_bases: [*mut u8; N],
        by: [isize; N],
        [count, lines]: [usize; 2],
        workspace: &mut Workspace,
    ) -> [*mut u8; N] {
        let Workspace { buffer, scratch, instructions } = workspace;
        let start = buffer.as_mut_ptr();
        let start = start.wrapping_add((start as usize).wrapping_neg() % LINE);
        for StagedOperand { operand, element, start: at, lines: columns } in &self.operands {
            let (src, dst) = (bases[*operand].cast_const(), start.wrapping_add(*at));
            let columns = columns.get(..lines).unwrap_or_default();
            let (group, by) = (LINE / element, by[*operand]);
            let far = simd::stripes_ahead(*instructions, *element, columns.len()) * group;
            let [mut here, mut next] = [StripeRows::NONE; 2];
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
                    if later < count { rows(src, later) } else { rows(next_bases[*operand], later - count) };
                next.set(base, offsets.get(..group).unwrap_or_default(), *element);
                let dst = dst.wrapping_add(first * element);
                let stripe =
                    Stripe { rows: &here, next: &next, dst, columns, bytes: some * element, stores: Stores::Ordinary };
                // SAFETY: the caller vouches for these rows; each row of the buffer has room for so
                // many elements.
                unsafe { simd::transpose(&stripe, *element, *instructions, scratch) };
            }
            bases[*operand] = dst;
        }
        bases
    }
}

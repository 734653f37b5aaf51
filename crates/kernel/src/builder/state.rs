//! Tables of a kernel that is being written: stores, the last block, the dynamic scheduler, roles,
//! and areas of shared memory.

use tilewright_layout::symbolic::{Expr, Parameter};
use tilewright_layout::{Coordinate, ModePath};

use crate::program::memory::BufferId;
use crate::program::register::Register;
use crate::program::{SourceId, TileCounter};

/// A store to an output.
pub(crate) struct Write {
    pub(crate) buffer: BufferId,
    pub(crate) source: SourceId,
    /// The coordinate of the first element in the whole tensor.
    pub(crate) start: Coordinate<Expr>,
    /// The distance from there to each element, along each mode; None if it is unknown.
    pub(crate) elements: Option<Vec<Vec<i64>>>,
    /// The modes of the tensor, and their extents.
    pub(crate) bounds: Vec<(ModePath, Expr)>,
    /// Predicates that are true, or false, in the threads that store.
    pub(crate) conditions: Vec<(Register, bool)>,
    /// The enclosing loops: the index and the number of iterations of each.
    pub(crate) iterations: Vec<(Parameter, Expr)>,
    /// Whether only the last block to finish stores.
    pub(crate) alone: bool,
}

/// The state of [`super::Build::when_last`] while a kernel is built.
pub(crate) struct LastBlock {
    /// The shared array with the number of blocks that finished before this one.
    pub(crate) before: BufferId,
    /// The number of blocks along each axis that are counted.
    pub(crate) grid: [Option<Expr>; 3],
    /// The predicate of the threads of the last block, while its body is written.
    pub(crate) within: Option<Register>,
}

/// The state of a kernel's dynamic scheduler.
pub(crate) struct SchedulerState {
    pub(crate) counter: TileCounter,
    /// The index that the current iteration claims.
    pub(crate) number: Option<Parameter>,
    /// Whether its loop was written.
    pub(crate) iterations: bool,
}

/// The threads of a role.
#[derive(Debug, Clone)]
pub(crate) struct Team {
    /// The index of the first thread in the block.
    pub(crate) first: i64,
    /// The number of threads.
    pub(crate) threads: u32,
    /// The index of this thread among them.
    pub(crate) thread: Expr,
    /// The number of their named barrier.
    pub(crate) barrier: u32,
}

/// The areas that statements have allocated.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Areas that are in use, or were in use since the last barrier: the first byte, the end, and
    /// whether they were freed.
    pub(crate) busy: Vec<(BufferId, u32, u32, bool)>,
    /// The offset of each array among all areas.
    pub(crate) placed: Vec<(BufferId, u32)>,
    /// The total size in bytes.
    pub(crate) bytes: u32,
    /// The alignment of the first area, in bytes.
    pub(crate) alignment: u32,
}

impl Scratch {
    /// Records a barrier of the block: areas that were freed before it can be reused.
    pub(crate) fn settle(&mut self) {
        self.busy.retain(|(.., returned)| !returned);
    }

    pub(crate) fn take(&mut self, buffer: BufferId, bytes: u32, alignment: u32) {
        // The first gap between the areas in use.
        let mut begin = 0;
        let mut busy: Vec<(u32, u32)> = self.busy.iter().map(|(_, begin, end, _)| (*begin, *end)).collect();
        busy.sort_unstable();
        for (from, to) in busy {
            if begin + bytes <= from {
                break;
            }
            begin = begin.max(to.next_multiple_of(alignment));
        }
        self.busy.push((buffer, begin, begin + bytes, false));
        self.placed.push((buffer, begin));
        self.bytes = self.bytes.max(begin + bytes);
        self.alignment = self.alignment.max(alignment);
    }
}

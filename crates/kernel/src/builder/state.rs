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
    /// The loops around it: the iteration, and how many there are.
    pub(crate) iterations: Vec<(Parameter, Expr)>,
    /// Whether it is one block that stores, which came last.
    pub(crate) alone: bool,
}

/// The state of [`super::Build::when_last`] while a kernel is written.
pub(crate) struct LastBlock {
    /// The shared array that has how many blocks came before this one.
    pub(crate) before: BufferId,
    /// How many blocks were counted along each axis.
    pub(crate) grid: [Option<Expr>; 3],
    /// The flag of the threads of the last block, while its body is written.
    pub(crate) within: Option<Register>,
}

/// What a kernel has declared about its dynamic scheduler.
pub(crate) struct SchedulerState {
    pub(crate) counter: TileCounter,
    /// The index of an iteration.
    pub(crate) number: Option<Parameter>,
    /// Whether its iterations were written.
    pub(crate) iterations: bool,
}

/// The threads of a role.
#[derive(Debug, Clone)]
pub(crate) struct Team {
    /// The number of the first in the block.
    pub(crate) first: i64,
    /// How many.
    pub(crate) threads: u32,
    /// The number of this thread among them.
    pub(crate) thread: Expr,
    /// The number of their barrier.
    pub(crate) barrier: u32,
}

/// Areas that statements have taken.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Areas that are in use, or were since the last barrier: begin, end, and whether they were
    /// released.
    pub(crate) busy: Vec<(BufferId, u32, u32, bool)>,
    /// Where each array begins among all of them.
    pub(crate) placed: Vec<(BufferId, u32)>,
    /// The total size in bytes.
    pub(crate) bytes: u32,
    /// The alignment of the first one, in bytes.
    pub(crate) alignment: u32,
}

impl Scratch {
    /// A barrier of the block: what was given back before it is free.
    pub(crate) fn settle(&mut self) {
        self.busy.retain(|(.., returned)| !returned);
    }

    pub(crate) fn take(&mut self, buffer: BufferId, bytes: u32, alignment: u32) {
        // The first gap between what is busy.
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

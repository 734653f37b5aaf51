//! What the threads of a launch store to a tensor.
//!
//! Law: addresses and predicates are those of the walk that counts (`walk.rs`). So the list is that
//! of a launch where all of them follow from the numbers of threads, blocks and iterations, and
//! else there is none.

use super::walk::Walk;
use crate::interpret::code::Code;
use crate::program::Program;
use crate::program::memory::BufferId;

/// A store of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    /// The number of the thread, through all blocks.
    pub(crate) thread: u64,
    /// The first byte, and how many.
    pub(crate) at: i64,
    pub(crate) bytes: u32,
}

/// What is stored to one tensor, as a walk goes.
#[derive(Debug)]
pub(super) struct TensorStores {
    pub(super) to: BufferId,
    /// By the number of the thread in its block.
    pub(super) list: Vec<Stored>,
    /// Whether all addresses and predicates were known.
    pub(super) known: bool,
}

impl Program {
    /// Passes on what threads store to a tensor, block by block, in a launch of a program without
    /// sizes; whether that is all that they store. At most this many nodes of warps are walked
    /// through.
    pub(crate) fn each_stored(&self, to: BufferId, limit: u64, mut each: impl FnMut(Stored)) -> bool {
        let Ok(launch) = self.launch_numbers(&[]) else { return false };
        let code = Code::new(self);
        let mut walk = Walk::new(self, &code, launch.grid, &launch.scalars, limit).storing(to);
        let [columns, rows, layers] = launch.grid;
        let mut first = 0;
        for z in 0..layers {
            for y in 0..rows {
                for x in 0..columns {
                    let Some(list) = walk.block([x, y, z]).ok().and_then(|()| walk.stored()) else { return false };
                    for own in list {
                        each(Stored { thread: first + own.thread, ..own });
                    }
                    first += u64::from(self.threads);
                }
            }
        }
        true
    }
}

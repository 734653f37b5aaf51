//! The stores of a launch to one tensor.
//!
//! Law: addresses and predicates are those of the counting walk (`walk.rs`). So if all of them
//! follow from the indices of threads, blocks and iterations, the list is that of a launch;
//! otherwise there is none.

use super::walk::Walk;
use crate::interpret::code::Code;
use crate::program::Program;
use crate::program::memory::BufferId;

/// A store of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    /// The index of the thread, counted through all blocks.
    pub(crate) thread: u64,
    /// The first byte, and the number of bytes.
    pub(crate) at: i64,
    pub(crate) bytes: u32,
}

/// The stores to one tensor, collected during a walk.
#[derive(Debug)]
pub(super) struct TensorStores {
    pub(super) to: BufferId,
    /// The stores, sorted by the index of the thread in its block.
    pub(super) list: Vec<Stored>,
    /// Whether all addresses and predicates were known.
    pub(super) known: bool,
}

impl Program {
    /// Calls a function with the stores of each block to a tensor, in a launch of a program without
    /// sizes. Returns whether these are all the stores. At most `limit` warp nodes are walked.
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

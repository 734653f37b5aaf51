//! Register reallocation between warps, and launches that overlap.
//!
//! Law: the warps of a block share the registers that it had at launch. A warp that requests more
//! waits until others have released enough. If that never happens, no warp can proceed, which is
//! reported. In a program that waits for previous launches, a thread may access global memory only
//! after it knows that these have finished.

use super::finding::Defect;
use super::machine::{InterpretedRun, Stop};
use super::warp::{State, Warp};
use crate::program::WARP_LANES;

impl InterpretedRun<'_> {
    /// A warp releases registers, or requests some.
    pub(super) fn set_registers(
        &mut self,
        warp: &mut Warp,
        place: usize,
        count: u32,
        more: bool,
    ) -> Result<State, Stop> {
        if warp.mask != u32::MAX {
            self.report(Defect::Divergence { active: warp.mask }, place, Some(warp.thread(0)))?;
        }
        self.block.products[warp.number].push((place, [0; 2]));
        let held = warp.held.unwrap_or(self.program.entry_registers());
        if (more && count < held) || (!more && count > held) {
            let what = if more { "a thread has more" } else { "a thread has fewer" };
            let free = self.block.pools[warp.rank];
            self.report(Defect::Registers { what, asked: count, free }, place, Some(warp.thread(0)))?;
            return Err(Stop);
        }
        warp.state = State::Registers { place, count };
        self.take_registers(warp, place, count);
        Ok(warp.state)
    }

    /// A warp continues with `count` registers for each thread if the block has them.
    pub(super) fn take_registers(&mut self, warp: &mut Warp, place: usize, count: u32) {
        let held = warp.held.unwrap_or(self.program.entry_registers());
        let threads = WARP_LANES as u32;
        let pool = &mut self.block.pools[warp.rank];
        match count.checked_sub(held) {
            None => *pool += (held - count) * threads,
            Some(wanted) if wanted * threads <= *pool => *pool -= wanted * threads,
            Some(_) => {
                warp.state = State::Registers { place, count };
                return;
            }
        }
        warp.held = Some(count);
        warp.state = State::Ready;
    }

    /// Threads wait for the previous launches.
    pub(super) fn wait_for_launches(&mut self, warp: &Warp) {
        self.block.clocks.wait_for_launches(warp.threads(warp.mask));
    }
}

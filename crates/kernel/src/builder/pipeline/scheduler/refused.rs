//! Refusals of a dynamic scheduler.

use tilewright_layout::Extent;

use super::super::super::core::Core;
use super::{MESSAGE, refuse};
use crate::error::Reason;
use crate::program::Program;
use crate::program::WARP_LANES;

impl Core {
    /// The number of warps of a block and of blocks of a cluster; an error if the kernel cannot
    /// have a scheduler.
    pub(super) fn may_schedule(&mut self, known: usize) -> Result<(u32, u32), Reason> {
        if self.tile_counter.is_some() {
            return Err(refuse("a kernel has one dynamic scheduler"));
        }
        if self.team.is_some() || self.depth() > 0 {
            return Err(refuse("it must be outside of roles, loops and conditions, because all threads take part"));
        }
        if !(1..=MESSAGE).contains(&known) {
            return Err(refuse(format!("{known} indices known ahead, of 1 to {MESSAGE}")));
        }
        if self.grid[0].is_none() {
            return Err(Reason::Unsaid { what: "the number of blocks", help: "say it with `k.grid` first" });
        }
        // A grid that was stated later would change the counter's last value.
        self.said[0] = true;
        let help = "set the number of threads of a block first: `k.threads(256)`";
        let threads = self.threads.ok_or(Reason::Unsaid { what: "the number of threads", help })?;
        let [x, y, z] = *self.cluster.get_or_insert([1; 3]);
        if (y, z) != (1, 1) {
            return Err(refuse("a dynamic scheduler needs clusters along the first axis alone"));
        }
        Ok((threads.div_ceil(WARP_LANES as u32), x))
    }

    /// Refuses a loop over claimed indices, unless every cluster runs it exactly once.
    pub(super) fn runs_once(&mut self) -> Result<(), Reason> {
        let outside = self.team.is_none() && self.depth() == 0;
        match &mut self.tile_counter {
            Some(state) if !state.iterations && outside => {
                state.iterations = true;
                Ok(())
            }
            _ => Err(refuse("`each` is called once, outside of roles, loops and conditions")),
        }
    }

    /// Refuses a scheduler whose indices are never claimed, and features that exclude it.
    pub(crate) fn scheduler_is_run(&self, program: &Program) -> Result<(), Reason> {
        match &self.tile_counter {
            Some(state) if !state.iterations => Err(refuse("its iterations are never run: call `scheduler.each`")),
            _ => program.tile_counter_is_alone(),
        }
    }
}

impl Program {
    /// Refuses features that cannot be combined with a tile counter.
    fn tile_counter_is_alone(&self) -> Result<(), Reason> {
        if self.tile_counter.is_none() {
            return Ok(());
        }
        if self.grid[1..].iter().any(|count| count.known() != Some(1)) {
            return Err(refuse("a dynamic scheduler needs blocks along the first axis alone"));
        }
        if self.waits_for_launches() {
            return Err(refuse("a launch that begins before the previous one has ended would share its counter"));
        }
        Ok(())
    }
}

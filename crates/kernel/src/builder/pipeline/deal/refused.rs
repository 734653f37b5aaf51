//! Where numbers cannot be dealt, and what says so.

use tilewright_layout::Extent;

use super::super::super::core::Core;
use super::{MESSAGE, refuse};
use crate::error::Reason;
use crate::program::Program;
use crate::program::WARP_LANES;

impl Core {
    /// How many warps a block has, and how many blocks a cluster, where numbers may be dealt.
    pub(super) fn may_deal(&mut self, known: usize) -> Result<(u32, u32), Reason> {
        if self.dealt.is_some() {
            return Err(refuse("a kernel deals once"));
        }
        if self.team.is_some() || self.depth() > 0 {
            return Err(refuse("it stands outside of roles, loops and conditions, for all threads take part"));
        }
        if !(1..=MESSAGE).contains(&known) {
            return Err(refuse(format!("{known} numbers known ahead, of 1 to {MESSAGE}")));
        }
        if self.grid[0].is_none() {
            return Err(Reason::Unsaid { what: "the number of blocks", help: "say it with `k.grid` first" });
        }
        // The count that is computed here would be stale.
        self.said[0] = true;
        let help = "say how many threads a block has first: `k.threads(256)`";
        let threads = self.threads.ok_or(Reason::Unsaid { what: "the number of threads", help })?;
        let [x, y, z] = *self.cluster.get_or_insert([1; 3]);
        if (y, z) != (1, 1) {
            return Err(refuse("clusters along the first axis take numbers"));
        }
        Ok((threads.div_ceil(WARP_LANES as u32), x))
    }

    /// Refuses a loop over numbers of the tile counter where not every cluster executes it once.
    pub(super) fn takes_turns(&mut self) -> Result<(), Reason> {
        let outside = self.team.is_none() && self.depth() == 0;
        match &mut self.dealt {
            Some(dealing) if !dealing.turns && outside => {
                dealing.turns = true;
                Ok(())
            }
            _ => Err(refuse("the turns are taken once, outside of roles, loops and conditions")),
        }
    }

    /// Refuses a count that nobody comes to the end of, and what it cannot be together with.
    pub(crate) fn deals_all(&self, program: &Program) -> Result<(), Reason> {
        match &self.dealt {
            Some(dealing) if !dealing.turns => Err(refuse("its turns are not taken: `deal.each`")),
            _ => program.is_dealt_alone(),
        }
    }
}

impl Program {
    /// Refuses what a count that clusters take numbers of cannot be together with.
    fn is_dealt_alone(&self) -> Result<(), Reason> {
        if self.dealt.is_none() {
            return Ok(());
        }
        if self.grid[1..].iter().any(|count| count.known() != Some(1)) {
            return Err(refuse("numbers are dealt to blocks along the first axis alone"));
        }
        if self.waits_for_launches() {
            return Err(refuse("a launch that begins before the one before it is over would share its count"));
        }
        Ok(())
    }
}

//! Numbers from other lanes of a warp.
//!
//! Law: all 32 lanes take part, and a lane gets the bits of the number that the other lane gave.

use super::Build;
use super::number::Num;
use crate::program::operation::Shuffle;
use crate::program::{Location, Source};

impl Build {
    /// A number of another lane, whose number is one's own XOR the mask.
    #[track_caller]
    pub fn shuffle_xor<'k>(&'k self, value: Num<'k>, mask: u32) -> Num<'k> {
        let mut core = self.core();
        core.begin(Source { statement: "shuffle_xor", location: Location::caller() });
        let register = core.shuffled(value.register(), &Shuffle::Butterfly(mask), None);
        drop(core);
        Num::new(self, register, value.element())
    }
}

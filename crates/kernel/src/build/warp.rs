//! Numbers from other lanes of a warp.
//!
//! Law: all 32 lanes take part, and a lane gets the bits of the number that the other lane gave.

use std::panic::Location;

use super::Build;
use super::number::{Num, width_of};
use crate::program::Source;
use crate::program::operation::{Operation, Shuffle};
use crate::program::register::Width;

impl Build {
    /// A number of another lane, whose number is one's own XOR the mask.
    #[track_caller]
    pub fn shuffle_xor<'k>(&'k self, value: Num<'k>, mask: u32) -> Num<'k> {
        let mut core = self.core();
        core.begin(Source { statement: "shuffle_xor", location: Location::caller() });
        let shuffle = Operation::Shuffle(Shuffle::Butterfly(mask));
        let width = width_of(value.element());
        let register = match width {
            Width::Bits32 => core.effect(shuffle, [value.register()], &[Width::Bits32], None)[0],
            Width::Bits64 => {
                let halves = core.pure_many(Operation::Unpack, [value.register()], &[Width::Bits32; 2]);
                let low = core.effect(shuffle.clone(), [halves[0]], &[Width::Bits32], None)[0];
                let high = core.effect(shuffle, [halves[1]], &[Width::Bits32], None)[0];
                core.effect(Operation::Pack, [low, high], &[Width::Bits64], None)[0]
            }
            _ => {
                let zero = core.constant(0, Width::Bits16);
                let word = core.pure(Operation::Pack, [value.register(), zero], Width::Bits32);
                let word = core.effect(shuffle, [word], &[Width::Bits32], None)[0];
                core.effect(Operation::Unpack, [word], &[Width::Bits16; 2], None)[0]
            }
        };
        drop(core);
        Num::new(self, register, value.element())
    }
}

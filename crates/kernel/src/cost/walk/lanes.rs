//! What the lanes of a warp take from each other.
//!
//! Law: as the interpreter has it, for a warp all of whose lanes take part. Which lane is elected
//! is left open by the machine; here it is the first one.

use super::Walk;
use crate::interpret::lanes::Lanes;
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::operation::{Operation, shuffled};

impl Walk<'_> {
    /// Executes an instruction whose lanes exchange what they hold, if it is one; its inputs are
    /// known.
    pub(super) fn exchanges(&mut self, instruction: &Instruction, mask: u32) -> bool {
        let input = |at: usize| instruction.inputs.get(at).map(|input| self.registers[input.index()]);
        let value: Lanes = match (&instruction.operation, input(0), input(1)) {
            (Operation::Shuffle(shuffle), Some(held), from) => {
                let from = from.unwrap_or_default();
                std::array::from_fn(|lane| held[shuffled(*shuffle, lane, from[lane])])
            }
            (Operation::Ballot, ..) => match instruction.inputs.first() {
                Some(predicate) => [u64::from(self.holds(*predicate) & mask); WARP_LANES],
                None => return false,
            },
            (Operation::Elect, ..) => {
                let first = mask.trailing_zeros() as usize % WARP_LANES;
                std::array::from_fn(|lane| u64::from(lane == first))
            }
            _ => return false,
        };
        if let Some(output) = instruction.outputs.first() {
            self.registers[output.index()] = value;
        }
        true
    }
}

//! Exchanges between the lanes of a warp.
//!
//! Law: the results are those of the interpreter, for a warp in which all lanes take part. The
//! elected lane is unspecified; here it is the first one.

use super::Walk;
use crate::interpret::lanes::Lanes;
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::operation::{Operation, shuffled};

impl Walk<'_> {
    /// Executes an instruction that exchanges values between lanes. Returns false for any other
    /// instruction. Its inputs are known.
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

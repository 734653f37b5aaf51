//! Exchanges between the lanes of a warp.
//!
//! Law: after a shuffle, each lane has the value of the lane that it names. Shuffles move 32 bits.
//! Wider numbers are moved in halves, and narrower ones are extended by zeros.

use super::core::Core;
use crate::program::WARP_LANES;
use crate::program::operation::{Binary, Comparison, Number, Operation, Shuffle, Special};
use crate::program::register::{Register, Width};

/// The bits of lane indices as sets of lanes: set `i` contains the lanes whose bit `i` is set.
const PLANES: [u32; 5] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00, 0xffff_0000];

/// The lane from which each lane reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sources(pub(crate) [u8; WARP_LANES]);

impl Sources {
    /// For each bit, the lanes whose source differs from their own index in this bit.
    fn differences(&self) -> [u32; 5] {
        let mut planes = [0_u32; 5];
        for (lane, source) in self.0.iter().enumerate() {
            for (bit, plane) in planes.iter_mut().enumerate() {
                *plane |= ((u32::from(*source) ^ lane as u32) >> bit & 1) << lane;
            }
        }
        planes
    }

    /// Whether each lane reads from itself.
    pub(crate) fn is_identity(&self) -> bool {
        self.differences() == [0; 5]
    }

    /// The mask, if each lane reads from the lane with its own index XOR the mask.
    pub(crate) fn mask(&self) -> Option<u32> {
        let planes = self.differences();
        planes
            .iter()
            .all(|plane| matches!(*plane, 0 | u32::MAX))
            .then(|| planes.iter().enumerate().map(|(bit, plane)| (plane & 1) << bit).sum())
    }

    /// The source lanes, XORed with the source of lane 0, and that source. Rounds that differ by a
    /// mask share all but one instruction.
    pub(crate) fn based(&self) -> (Sources, u32) {
        let first = self.0[0];
        (Sources(self.0.map(|source| source ^ first)), first.into())
    }

    /// The number of instructions that compute the source lanes of [`Sources::based`].
    pub(crate) fn cost(&self) -> u32 {
        let each = |plane: &u32| match *plane {
            0 => 0,
            plane if PLANES.contains(&plane) => 3,
            _ => 4,
        };
        self.differences().iter().map(each).sum()
    }
}

impl Core {
    fn logic(&mut self, operation: Binary, a: Register, b: Register) -> Register {
        self.pure(Operation::Binary(operation, Number::U32), [a, b], Width::Bits32)
    }

    /// A predicate that is true in these lanes.
    pub(crate) fn in_lanes(&mut self, lanes: u32) -> Register {
        let lane = self.special(Special::Lane);
        let (set, one, zero) = (
            self.constant(lanes.into(), Width::Bits32),
            self.constant(1, Width::Bits32),
            self.constant(0, Width::Bits32),
        );
        let moved = self.logic(Binary::ShiftRight, set, lane);
        let bit = self.logic(Binary::And, moved, one);
        self.pure(Operation::Compare(Comparison::NotEqual, Number::U32), [bit, zero], Width::Predicate)
    }

    /// The index of the lane from which each lane reads.
    fn source_lane(&mut self, sources: &Sources) -> Register {
        let lane = self.special(Special::Lane);
        let (based, flips) = sources.based();
        let mut at = lane;
        for (bit, plane) in based.differences().into_iter().enumerate() {
            if plane == 0 {
                continue;
            }
            let digit = match PLANES.iter().position(|known| *known == plane) {
                Some(from) => {
                    let by = self.constant(from.abs_diff(bit) as u64, Width::Bits32);
                    let iteration = if bit >= from { Binary::ShiftLeft } else { Binary::ShiftRight };
                    let moved = self.logic(iteration, lane, by);
                    let one = self.constant(1 << bit, Width::Bits32);
                    self.logic(Binary::And, moved, one)
                }
                None => {
                    let (set, one) = (self.constant(plane.into(), Width::Bits32), self.constant(1, Width::Bits32));
                    let moved = self.logic(Binary::ShiftRight, set, lane);
                    let digit = self.logic(Binary::And, moved, one);
                    let by = self.constant(bit as u64, Width::Bits32);
                    self.logic(Binary::ShiftLeft, digit, by)
                }
            };
            at = self.logic(Binary::Xor, at, digit);
        }
        if flips != 0 {
            let flips = self.constant(flips.into(), Width::Bits32);
            at = self.logic(Binary::Xor, at, flips);
        }
        at
    }

    /// The value of a register in other lanes.
    pub(crate) fn fetched(&mut self, register: Register, sources: &Sources) -> Register {
        if sources.is_identity() {
            return register;
        }
        match sources.mask() {
            Some(mask) => self.shuffled(register, &Shuffle::Butterfly(mask), None),
            None => {
                let lane = self.source_lane(sources);
                self.shuffled(register, &Shuffle::Index, Some(lane))
            }
        }
    }

    /// Shuffles a register of any width.
    pub(crate) fn shuffled(&mut self, register: Register, shuffle: &Shuffle, lane: Option<Register>) -> Register {
        let word = |core: &mut Core, word: Register| {
            let inputs: Vec<Register> = std::iter::once(word).chain(lane).collect();
            core.effect(Operation::Shuffle(*shuffle), inputs, &[Width::Bits32], None)[0]
        };
        match self.width(register) {
            Width::Bits32 => word(self, register),
            Width::Bits64 => {
                let halves = self.pure_many(Operation::Unpack, [register], &[Width::Bits32; 2]);
                let (low, high) = (word(self, halves[0]), word(self, halves[1]));
                self.pure(Operation::Pack, [low, high], Width::Bits64)
            }
            _ => {
                let zero = self.constant(0, Width::Bits16);
                let packed = self.pure(Operation::Pack, [register, zero], Width::Bits32);
                let moved = word(self, packed);
                self.pure_many(Operation::Unpack, [moved], &[Width::Bits16; 2])[0]
            }
        }
    }
}

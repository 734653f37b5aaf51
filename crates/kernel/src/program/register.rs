//! Registers of a thread.

use std::fmt;

/// A register of each thread. One instruction writes it, or a loop that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub(crate) u32);

impl Register {
    /// Its index in the tables of the program.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// The number of bits of a register. The instructions that use it define their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// True or false.
    Predicate,
    /// 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

impl Width {
    /// All widths, in ascending order.
    pub(crate) const ALL: [Width; 4] = [Width::Predicate, Width::Bits16, Width::Bits32, Width::Bits64];

    /// The number of bits; a predicate has one.
    pub fn bits(self) -> u32 {
        match self {
            Width::Predicate => 1,
            Width::Bits16 => 16,
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }

    /// The width of a register with this many bits: 16, 32 or 64.
    pub fn of_bits(bits: u32) -> Option<Width> {
        match bits {
            1 => Some(Width::Predicate),
            16 => Some(Width::Bits16),
            32 => Some(Width::Bits32),
            64 => Some(Width::Bits64),
            _ => None,
        }
    }
}

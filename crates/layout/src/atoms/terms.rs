//! The terms that instructions and refusals share: ends of copies, dimensions of operands, swizzle
//! modes.

use core::fmt;

use crate::ground::words::words;

words! {
    /// An end of a copy.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum CopyEnd {
        /// The source.
        Source = "source",
        /// The destination.
        Destination = "destination",
    }
}

words! {
    /// A dimension of an operand.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum OperandMode {
        /// M or N, mode 0.
        MN = "mode 0 (MN)",
        /// K, mode 1.
        K = "mode 1 (K)",
    }
}

/// How units of 16 bytes are permuted in shared memory: the swizzle mode of a descriptor, named for
/// the length of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SwizzleMode {
    /// Not at all: atoms of 8 units, one after another.
    None,
    /// Within lines of 32 bytes.
    Bytes32,
    /// Within lines of 64 bytes.
    Bytes64,
    /// Within lines of 128 bytes.
    Bytes128,
}

words! {
    /// The dimension of the operand, `(mn, k)`, in which elements are contiguous.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Major {
        /// Along K, the dimension that is summed over.
        K = "K-major",
        /// Along the other dimension: M of the first operand, N of the second.
        MN = "MN-major",
    }
}

impl SwizzleMode {
    /// All modes, by the length of their lines.
    pub const ALL: [SwizzleMode; 4] =
        [SwizzleMode::None, SwizzleMode::Bytes32, SwizzleMode::Bytes64, SwizzleMode::Bytes128];

    /// How many bits are flipped: the logarithm of [`SwizzleMode::units`].
    pub(crate) fn log_units(self) -> i64 {
        match self {
            SwizzleMode::None => 0,
            SwizzleMode::Bytes32 => 1,
            SwizzleMode::Bytes64 => 2,
            SwizzleMode::Bytes128 => 3,
        }
    }

    /// The units of 16 bytes in a line of an atom: 1, 2, 4 or 8.
    pub fn units(self) -> i64 {
        1 << self.log_units()
    }

    /// After how many bytes the permutation repeats: 8 lines.
    pub fn period(self) -> i64 {
        128 * self.units()
    }

    /// The two bits that stand for the mode in a descriptor: 0, 3, 2, 1 from no swizzle to 128
    /// bytes.
    pub fn code(self) -> u64 {
        match self {
            SwizzleMode::None => 0,
            SwizzleMode::Bytes32 => 3,
            SwizzleMode::Bytes64 => 2,
            SwizzleMode::Bytes128 => 1,
        }
    }
}

impl fmt::Display for SwizzleMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwizzleMode::None => f.write_str("no swizzle"),
            mode => write!(f, "{}-byte swizzle", 16 * mode.units()),
        }
    }
}

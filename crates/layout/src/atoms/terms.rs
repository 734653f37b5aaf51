//! Enums that instructions and errors share: ends of copies, modes of operands, swizzle modes.

use core::fmt;

use crate::ground::words::words;

words! {
    /// One end of a copy.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum CopyEnd {
        /// The source.
        Source = "source",
        /// The destination.
        Destination = "destination",
    }
}

words! {
    /// A mode of an operand, `(mn, k)`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum OperandMode {
        /// M or N, mode 0.
        MN = "mode 0 (MN)",
        /// K, mode 1.
        K = "mode 1 (K)",
    }
}

/// The swizzle mode of a matrix descriptor: how units of 16 bytes are permuted in shared memory. It
/// is named for the length of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SwizzleMode {
    /// No swizzle: atoms of 8 units, one after another.
    None,
    /// 32-byte swizzle: units are permuted within lines of 32 bytes.
    Bytes32,
    /// 64-byte swizzle: units are permuted within lines of 64 bytes.
    Bytes64,
    /// 128-byte swizzle: units are permuted within lines of 128 bytes.
    Bytes128,
}

words! {
    /// The dimension of the operand, `(mn, k)`, in which elements are contiguous.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Major {
        /// Elements are contiguous along K, the dimension of the sum.
        K = "K-major",
        /// Elements are contiguous along the other dimension: M of the first operand, N of the
        /// second.
        MN = "MN-major",
    }
}

impl SwizzleMode {
    /// All modes, by the length of their lines.
    pub const ALL: [SwizzleMode; 4] =
        [SwizzleMode::None, SwizzleMode::Bytes32, SwizzleMode::Bytes64, SwizzleMode::Bytes128];

    /// The number of bits that are flipped: the base-2 logarithm of [`SwizzleMode::units`].
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

    /// The number of bytes after which the permutation repeats: 8 lines.
    pub fn period(self) -> i64 {
        128 * self.units()
    }

    /// The two bits of the mode in a descriptor: 0, 3, 2, 1 for none, 32, 64 and 128 bytes.
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

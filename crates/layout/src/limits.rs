//! The limits of the representation, and the limits on the work of searches and enumerations.
//!
//! Law: a value beyond a limit is refused with
//! [`LayoutError::TooLarge`](crate::LayoutError::TooLarge), and a search that reaches its limit
//! with [`LayoutError::Undecided`](crate::LayoutError::Undecided). No answer is a guess.

/// The most nodes, leaves and tuples together, that a profile may have.
pub const MAX_NODES: usize = u16::MAX as usize;

/// The deepest nesting of a profile: a leaf has depth 0, a flat tuple depth 1.
pub const MAX_DEPTH: usize = 64;

/// The most modes in the path of a term.
pub const MAX_PATH: usize = 8;

/// The largest mode number in the path of a term.
pub const MAX_PATH_MODE: usize = 254;

/// The most maps in a chain, in an [`OuterMap`](crate::OuterMap).
pub const MAX_CHAIN: usize = 64;

/// The most input bits, and the most output bits, of a [`BitMatrix`](crate::BitMatrix).
pub const MAX_BITS: usize = 64;

/// The most bits of an offset that a swizzle may read or flip; it keeps the sign.
pub const MAX_SWIZZLE_BITS: i64 = 63;

/// The number of parts of a box, or of steps of a mode, that are examined before the answer is
/// [`LayoutError::Undecided`](crate::LayoutError::Undecided); fewer if each takes long.
pub const MAX_CASES: usize = 1 << 16;

/// The number of candidates that a search for an inverse tries.
pub const MAX_CANDIDATES: usize = 1 << 14;

/// The size of the largest layout, without its modes of stride 0, whose values are listed.
pub const MAX_IMAGE: i64 = 1 << 20;

/// The number of boxes of coordinates that are examined before [`crate::Composed::cosize`] is
/// undecided.
pub const MAX_BOXES: usize = 1 << 14;

/// The number of indices of a composed layout whose values are enumerated if no faster method
/// decides.
pub const MAX_INDICES: i64 = 1 << 18;

/// The number of values of a function that are enumerated if its structure does not decide whether
/// a layout with XOR strides has them.
pub const MAX_XOR_VALUES: u64 = 1 << 16;

/// The number of steps of a search for an inverse of a layout with XOR strides. This many steps
/// decide every left inverse of two modes of extents up to 6 with strides up to 6, 8 and 12; a
/// quarter of them do not.
pub const MAX_XOR_STEPS: usize = 1 << 19;

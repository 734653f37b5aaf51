//! The limits of the representation, and of the work that is done where no shorter way is known.
//!
//! Law: what is beyond a limit is refused, [`LayoutError::TooLarge`](crate::LayoutError::TooLarge)
//! for a value and [`LayoutError::Undecided`](crate::LayoutError::Undecided) for a search; no
//! answer is a guess.

/// The most nodes, leaves and tuples together, that a profile may have.
pub const MAX_NODES: usize = u16::MAX as usize;

/// The deepest nesting of a profile: a leaf has depth 0, a flat tuple depth 1.
pub const MAX_DEPTH: usize = 64;

/// The most modes in the path of a term.
pub const MAX_PATH: usize = 8;

/// The largest mode number in the path of a term.
pub const MAX_PATH_MODE: usize = 254;

/// The most maps that follow one another in an [`OuterMap`](crate::OuterMap).
pub const MAX_CHAIN: usize = 64;

/// The most input bits, and the most output bits, of a [`BitMatrix`](crate::BitMatrix).
pub const MAX_BITS: usize = 64;

/// The most bits of an offset that a swizzle may touch: the sign stays.
pub const MAX_SWIZZLE_BITS: i64 = 63;

/// How many parts of a box, or steps of a mode, are examined before the answer is
/// [`LayoutError::Undecided`](crate::LayoutError::Undecided); fewer where each takes long.
pub const MAX_CASES: usize = 1 << 16;

/// How many candidates a search for an inverse looks at.
pub const MAX_CANDIDATES: usize = 1 << 14;

/// The largest layout, counted without its modes of stride 0, whose values are listed.
pub const MAX_IMAGE: i64 = 1 << 20;

/// How many boxes of coordinates are looked at before [`crate::Composed::cosize`] gives up.
pub const MAX_BOXES: usize = 1 << 14;

/// How many indices of a composed layout are looked at where nothing better decides a question
/// about it.
pub const MAX_INDICES: i64 = 1 << 18;

/// How many values of a function are looked at where its structure does not decide whether a layout
/// with XOR strides has it.
pub const MAX_XOR_VALUES: u64 = 1 << 16;

/// How many steps a search for an inverse of a layout with XOR strides takes at most. They
/// decide every left inverse of two modes of up to 6 with strides up to 6, 8 and 12, where a
/// quarter did not.
pub const MAX_XOR_STEPS: usize = 1 << 19;

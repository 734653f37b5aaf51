//! The data of refusals: flaws of thread-value layouts, and the conditions of canonical layouts,
//! with their sentences.

use alloc::boxed::Box;
use core::fmt;

use crate::Swizzle;
use crate::atoms::terms::{OperandMode, SwizzleMode};

/// A thread-value layout that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadThreadValue {
    /// The atom.
    pub name: Box<str>,
    /// The operand.
    pub operand: Box<str>,
    /// The layout.
    pub layout: Box<str>,
    /// The flaw.
    pub flaw: Flaw,
}

/// Why a layout does not say who holds what.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// It has two modes, (thread, value).
    Rank {
        /// The number of modes that it has.
        found: usize,
    },
    /// It has the threads of the atom.
    Threads {
        /// How many it has.
        found: i64,
        /// How many the atom has.
        wanted: i64,
    },
    /// Two values of a thread are at the same place.
    Repeated {
        /// The value mode that stays in one place.
        mode: Box<str>,
    },
    /// A place is not held by the stated number of threads.
    Holders {
        /// By how many it is held.
        found: i64,
        /// The stated number.
        stated: i64,
    },
    /// A thread does not hold each of its places the stated number of times, or not all of the
    /// tile.
    Copies {
        /// How many times it has each.
        found: i64,
        /// The stated number.
        stated: i64,
    },
    /// Without repetitions it is a bijection onto the tile.
    Onto {
        /// The layout without repetitions.
        found: Box<str>,
        /// The number of places in the tile.
        wanted: i64,
    },
}

/// The condition of a canonical layout that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CanonicalCondition {
    /// The layout has two modes, `(mn, k)`.
    Rank {
        /// The number of modes that it has.
        found: usize,
    },
    /// The outer map is a swizzle.
    Outer,
    /// The swizzle is one of the four modes, in elements of the given width.
    Swizzle {
        /// The swizzle.
        found: Swizzle,
        /// The swizzle of the 128-byte mode for this width.
        widest: Swizzle,
    },
    /// K takes 32 bytes.
    Depth {
        /// The extent of K.
        found: i64,
        /// The elements in 32 bytes.
        wanted: i64,
    },
    /// A dimension is a whole number of what one atom has there.
    Multiple {
        /// The dimension.
        along: OperandMode,
        /// Its extent.
        found: i64,
        /// The extent of the atom.
        of: i64,
    },
    /// Within an atom a dimension has the steps of the atom.
    Core {
        /// The dimension.
        along: OperandMode,
        /// The layout's mode there.
        found: Box<str>,
        /// The atom's mode there.
        wanted: Box<str>,
        /// The mode that the swizzle says.
        mode: SwizzleMode,
    },
    /// A dimension must have one stride from atom to atom, and from unit to unit if it is not
    /// swizzled.
    Step {
        /// The dimension.
        along: OperandMode,
        /// The layout's mode there.
        found: Box<str>,
    },
}

impl fmt::Display for CanonicalCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CanonicalCondition::Rank { found } => write!(f, "it has {found} modes where (mn,k) is needed"),
            CanonicalCondition::Outer => f.write_str("its outer map is not a swizzle"),
            CanonicalCondition::Swizzle { found, widest } => {
                write!(
                    f,
                    "its swizzle is {found}, but for this element width only {widest} and those of fewer bits are known"
                )
            }
            CanonicalCondition::Depth { found, wanted } => {
                write!(f, "its K extent is {found}, but one instruction reads {wanted}")
            }
            CanonicalCondition::Multiple { along, found, of } => {
                write!(f, "{along} has extent {found}, which is no multiple of {of}")
            }
            CanonicalCondition::Core { along, found, wanted, mode } => {
                write!(f, "{along} begins with {found}, but with {mode} it must begin with {wanted}")
            }
            CanonicalCondition::Step { along, found } => {
                write!(f, "{along} continues with {found}, which is not one stride of at least 0")
            }
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Rank { found } => write!(f, "it has {found} modes where (thread, value) is needed"),
            Flaw::Threads { found, wanted } => write!(f, "it has {found} threads, but the atom has {wanted}"),
            Flaw::Repeated { mode } => write!(f, "a thread holds a place more than once, in value mode {mode}"),
            Flaw::Holders { found, stated } => {
                write!(f, "each place is held by {found} threads, but {stated} are stated")
            }
            Flaw::Copies { found, stated } => {
                write!(f, "a thread has each place {found} times, but {stated} are stated, of a tile of whole copies")
            }
            Flaw::Onto { found, wanted } => {
                write!(
                    f,
                    "without repetitions it is {found}, which is not a bijection onto the {wanted} places of the tile"
                )
            }
        }
    }
}

/// Why threads and values with offsets have no tile in a layout of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoTile {
    /// The offsets are of (thread, value).
    Rank {
        /// The number of modes that they have.
        found: usize,
    },
    /// Two elements of the data are at one offset.
    Shared {
        /// The first of two indices with one offset.
        first: i64,
        /// The second.
        second: i64,
    },
    /// No element of the data is at the offset of a thread and value.
    Nothing {
        /// A thread.
        thread: i64,
        /// A value of it.
        value: i64,
        /// The offset without an element.
        offset: i64,
    },
    /// The coordinates that occur in a mode are those of a layout, each once.
    Uneven {
        /// The mode.
        mode: usize,
    },
    /// The places in the tile are a layout of (thread, value).
    Crooked,
    /// More elements than are looked at one by one.
    Large {
        /// The limit.
        limit: i64,
    },
}

impl fmt::Display for NoTile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTile::Rank { found } => write!(f, "they have {found} modes where (thread, value) is needed"),
            NoTile::Shared { first, second } => {
                write!(f, "elements {first} and {second} of the data have the same offset")
            }
            NoTile::Nothing { thread, value, offset } => {
                write!(
                    f,
                    "thread {thread} has as its value {value} the offset {offset}, where there is no element of the data"
                )
            }
            NoTile::Crooked => f.write_str("the places in the tile are not a layout of (thread, value)"),
            NoTile::Uneven { mode } => {
                write!(f, "the coordinates that occur in mode {mode} are not those of a layout, each once")
            }
            NoTile::Large { limit } => write!(f, "more than {limit} elements would have to be looked at"),
        }
    }
}

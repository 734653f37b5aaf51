//! The data of errors: flaws of thread-value layouts, and the conditions of canonical layouts, with
//! their sentences.

use alloc::boxed::Box;
use core::fmt;

use crate::Swizzle;
use crate::atoms::terms::{OperandMode, SwizzleMode};

/// A thread-value layout that is refused, and its flaw.
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

/// The flaw of a thread-value layout. Each variant is the violated condition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// It must have two modes, (thread, value).
    Rank {
        /// The number of modes that it has.
        found: usize,
    },
    /// It must have the threads of the atom.
    Threads {
        /// The number of threads that it has.
        found: i64,
        /// The number of threads of the atom.
        wanted: i64,
    },
    /// The values of a thread must be at different positions, and two are not.
    Repeated {
        /// The value mode that does not change the position.
        mode: Box<str>,
    },
    /// The stated number of threads must hold each position.
    Holders {
        /// The number of threads that do.
        found: i64,
        /// The stated number.
        stated: i64,
    },
    /// A thread must hold each of its positions the stated number of times.
    Copies {
        /// The number of times that it does.
        found: i64,
        /// The stated number.
        stated: i64,
    },
    /// Without repetitions it must be a bijection onto the tile.
    Onto {
        /// The layout without repetitions.
        found: Box<str>,
        /// The number of positions in the tile.
        wanted: i64,
    },
}

/// A condition of canonical layouts that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CanonicalCondition {
    /// The layout must have two modes, `(mn, k)`.
    Rank {
        /// The number of modes that it has.
        found: usize,
    },
    /// The outer map must be a swizzle.
    Outer,
    /// The swizzle must be that of one of the four modes, for the given width of elements.
    Swizzle {
        /// The swizzle.
        found: Swizzle,
        /// The swizzle of the 128-byte mode for this width.
        widest: Swizzle,
    },
    /// The extent of K must be 32 bytes.
    Depth {
        /// The extent of K.
        found: i64,
        /// The elements in 32 bytes.
        wanted: i64,
    },
    /// A dimension must be a multiple of the extent of the atom.
    Multiple {
        /// The dimension.
        along: OperandMode,
        /// Its extent.
        found: i64,
        /// The extent of the atom.
        of: i64,
    },
    /// Within an atom, a dimension must have the steps of the atom.
    Core {
        /// The dimension.
        along: OperandMode,
        /// The mode of the layout along the dimension.
        found: Box<str>,
        /// The mode of the atom along the dimension.
        wanted: Box<str>,
        /// The swizzle mode of the atom.
        mode: SwizzleMode,
    },
    /// A dimension must have one stride from atom to atom or, without a swizzle, from unit to unit.
    Step {
        /// The dimension.
        along: OperandMode,
        /// The mode of the layout along the dimension.
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

/// The reason why threads and values with offsets have no tile in a layout of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoTile {
    /// The layout of offsets must have two modes, (thread, value).
    Rank {
        /// The number of modes that it has.
        found: usize,
    },
    /// Two elements of the data are at the same offset.
    Shared {
        /// The first of two indices with the same offset.
        first: i64,
        /// The second.
        second: i64,
    },
    /// No element of the data is at the offset of a thread and value.
    Nothing {
        /// A thread.
        thread: i64,
        /// One of its values.
        value: i64,
        /// The offset without an element.
        offset: i64,
    },
    /// The coordinates that occur in a mode are not those of a layout.
    Uneven {
        /// The mode.
        mode: usize,
    },
    /// The positions in the tile are not a layout of (thread, value).
    Crooked,
    /// There are more elements than are enumerated.
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

//! Refusals.
//!
//! As in the algebra, errors are data with a stable [code](AtomError::code); the sentence is made when one is printed.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use tilewright_layout::{LayoutError, Swizzle};

use crate::shared::{Major, SwizzleMode};

/// Why there is no such atom or descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtomError {
    /// E0301: an element width that does not divide 16 bytes.
    ElementWidth {
        /// The width in bits.
        bits: i64,
    },
    /// E0302: a layout that is not one of the canonical ones.
    NotCanonical {
        /// As which it was read.
        major: Major,
        /// The condition that fails.
        condition: Box<Condition>,
    },
    /// E0303: an address or a distance that does not fit its field.
    Field {
        /// Which field, in words.
        what: &'static str,
        /// The number of bytes.
        bytes: i64,
        /// What would do, in words.
        wanted: &'static str,
    },
    /// E0304: bits that are not those of a descriptor.
    Reserved {
        /// The bits that must be 0 and are not.
        bits: u64,
    },
    /// An operation of the algebra refused.
    Layout(LayoutError),
}

/// A dimension of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// M or N, mode 0.
    MN,
    /// K, mode 1.
    K,
}

/// What makes a layout canonical, and fails.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
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
        /// That of the 128-byte mode for this width.
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
        side: Side,
        /// Its extent.
        found: i64,
        /// That of the atom.
        of: i64,
    },
    /// Within an atom a dimension has the steps of the atom.
    Core {
        /// The dimension.
        side: Side,
        /// What the layout has there.
        found: Box<str>,
        /// What the atom of this mode has.
        wanted: Box<str>,
        /// The mode that the swizzle says.
        mode: SwizzleMode,
    },
    /// From atom to atom, and from unit to unit where they are not swizzled, a dimension has one step.
    Step {
        /// The dimension.
        side: Side,
        /// What the layout has there.
        found: Box<str>,
    },
}

impl AtomError {
    /// The stable code of this kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            AtomError::ElementWidth { .. } => "E0301",
            AtomError::NotCanonical { .. } => "E0302",
            AtomError::Field { .. } => "E0303",
            AtomError::Reserved { .. } => "E0304",
            AtomError::Layout(error) => error.code(),
        }
    }

    /// What would help, as a sentence; none where the message says it all.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            AtomError::NotCanonical { condition, .. } => match **condition {
                Condition::Depth { .. } => {
                    "one instruction reads 32 bytes along K: divide the tile and take a descriptor of each part"
                }
                _ => "tile a canonical atom to the shape: SwizzleMode::tile",
            },
            AtomError::Layout(error) => return error.help(),
            _ => return None,
        };
        Some(help.into())
    }
}

impl From<LayoutError> for AtomError {
    fn from(error: LayoutError) -> AtomError {
        AtomError::Layout(error)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::MN => "mode 0 (MN)",
            Side::K => "mode 1 (K)",
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Rank { found } => write!(f, "it has {found} modes where (mn,k) is needed"),
            Condition::Outer => f.write_str("its outer map is not a swizzle"),
            Condition::Swizzle { found, widest } => {
                write!(
                    f,
                    "its swizzle is {found}, but for this element width only {widest} and those of fewer bits are known"
                )
            }
            Condition::Depth { found, wanted } => {
                write!(f, "its K extent is {found}, but one instruction reads {wanted}")
            }
            Condition::Multiple { side, found, of } => {
                write!(f, "{side} has extent {found}, which is no multiple of {of}")
            }
            Condition::Core { side, found, wanted, mode } => {
                write!(f, "{side} begins with {found}, but with {mode} it must begin with {wanted}")
            }
            Condition::Step { side, found } => {
                write!(f, "{side} goes on with {found}, which is not one step of at least 0")
            }
        }
    }
}

impl fmt::Display for AtomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AtomError::ElementWidth { bits } => {
                write!(f, "elements of {bits} bits: the width must be a power of two from 1 to 128")
            }
            AtomError::NotCanonical { major, condition } => write!(f, "not a canonical {major} layout: {condition}"),
            AtomError::Field { what, bytes, wanted } => write!(f, "{what} is {bytes} bytes, but it must be {wanted}"),
            AtomError::Reserved { bits } => {
                write!(f, "bits {bits:#x} of a matrix descriptor are reserved, and must be 0")
            }
            AtomError::Layout(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AtomError {}

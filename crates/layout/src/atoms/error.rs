//! The errors of atoms, descriptors and tilings.
//!
//! As in the algebra, an error is data with a stable [code](AtomError::code); the message is
//! formatted when it is printed.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::atoms::evidence::{BadThreadValue, CanonicalCondition, NoTile};
use crate::atoms::terms::{CopyEnd, Major};
use crate::{LayoutError, nearest};

/// The reason why there is no such atom, descriptor or tiling.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtomError {
    /// E0311: an element width that does not divide 16 bytes.
    ElementWidth {
        /// The width in bits.
        bits: i64,
    },
    /// E0312: a layout is not one of the canonical layouts.
    NotCanonical {
        /// The major mode for which it was read.
        major: Major,
        /// The condition that fails.
        condition: Box<CanonicalCondition>,
    },
    /// E0313: an address or a distance does not fit its field.
    Field {
        /// The field, in words.
        what: &'static str,
        /// The number of bytes.
        bytes: i64,
        /// The supported values, in words.
        wanted: &'static str,
    },
    /// E0314: reserved bits of a descriptor are set.
    Reserved {
        /// The bits that must be 0 and are not.
        bits: u64,
    },
    /// E0315: in a thread-value layout, an element of the tile does not have the stated number of
    /// holders.
    ThreadValue(Box<BadThreadValue>),
    /// E0316: nothing has this name.
    UnknownName {
        /// The kind of object.
        kind: &'static str,
        /// The name.
        name: Box<str>,
        /// Similar names, the most similar first.
        near: Vec<Box<str>>,
    },
    /// E0317: an extent of an instruction is not positive, or its tile is too large.
    Shape {
        /// The atom.
        name: Box<str>,
        /// M, N and K.
        shape: [i64; 3],
    },
    /// E0318: two threads of an atom have the same number.
    Threads {
        /// The atom.
        name: Box<str>,
        /// The layout of their numbers.
        layout: Box<str>,
    },
    /// E0319: the instruction does not take an operand.
    NoOperand {
        /// The atom.
        name: Box<str>,
        /// The operand.
        operand: Box<str>,
    },
    /// E0320: no thread has a number.
    NoThread {
        /// The number.
        number: Box<str>,
        /// The layout of the numbers of the threads.
        layout: Box<str>,
    },
    /// E0321: in an arrangement of atoms two threads coincide.
    AtomLayout {
        /// The arrangement.
        layout: Box<str>,
    },
    /// E0322: a permutation does not take every index of a mode once.
    Permutation {
        /// The mode: 0 for M, 1 for N, 2 for K.
        mode: usize,
        /// The permutation.
        permutation: Box<str>,
        /// The number of indices that the atoms cover together.
        core: i64,
    },
    /// E0323: the thread numbers have gaps, but a layout of all numbers is needed.
    Gaps {
        /// The layout of the numbers of the threads.
        layout: Box<str>,
    },
    /// E0324: a copy splits values of this width.
    CopyWidth {
        /// The atom.
        name: Box<str>,
        /// The end at which it splits them.
        end: CopyEnd,
        /// The width in bits.
        bits: i64,
        /// The layout of bits at that end.
        layout: Box<str>,
    },
    /// E0325: threads and values are not divisible into copies of the atom.
    TiledCopy {
        /// The atom.
        name: Box<str>,
        /// The thread-value layout.
        layout: Box<str>,
        /// The requirement, in words.
        what: &'static str,
    },
    /// E0326: a fragment does not consist of what a copy moves.
    Retile {
        /// The atom.
        name: Box<str>,
        /// The fragment.
        fragment: Box<str>,
        /// The defect, in words.
        what: &'static str,
    },
    /// E0327: no bulk copy moves a tile.
    TensorMap {
        /// The layout in global memory.
        global: Box<str>,
        /// The layout in shared memory.
        shared: Box<str>,
        /// The defect, in words.
        what: &'static str,
        /// The number that is wrong.
        value: i64,
    },
    /// E0328: a bulk copy does not accept a tensor map, or a number of bytes.
    BulkCopy {
        /// The instruction.
        name: Box<str>,
        /// The accepted values, in words.
        what: &'static str,
        /// The given value.
        value: i64,
    },
    /// E0329: threads and values have no tile in a layout of data.
    Cotiled {
        /// The atom.
        name: Box<str>,
        /// The layout from (thread, value) to offsets.
        offsets: Box<str>,
        /// The layout from coordinates to offsets.
        data: Box<str>,
        /// The reason.
        reason: NoTile,
    },
    /// An operation of the algebra refused.
    Layout(LayoutError),
}

impl AtomError {
    /// The error for an unknown name, with similar names.
    pub(crate) fn unknown<S: AsRef<str>>(
        kind: &'static str,
        name: &str,
        known: impl IntoIterator<Item = S>,
    ) -> AtomError {
        // The number of names that are shown.
        const MOST: usize = 3;
        let known: Vec<S> = known.into_iter().collect();
        let mut near: Vec<Box<str>> =
            nearest(name, known.iter().map(AsRef::as_ref), MOST).iter().map(|near| (*near).into()).collect();
        if near.is_empty() && !name.is_empty() {
            // A name without its arguments is a prefix of the full names.
            let longer = known.iter().map(AsRef::as_ref).filter(|known| known.starts_with(name));
            near = longer.take(MOST).map(Into::into).collect();
        }
        AtomError::UnknownName { kind, name: name.into(), near }
    }

    /// The same error with names as [words](crate::atoms::word), for a language without angle
    /// brackets.
    pub fn in_words(self) -> AtomError {
        match self {
            AtomError::UnknownName { kind, name, near } => {
                let near = near.iter().map(|near| crate::atoms::word(near).into()).collect();
                AtomError::UnknownName { kind, name: crate::atoms::word(&name).into(), near }
            }
            other => other,
        }
    }

    /// A hint on how to fix it, as a sentence; None if the message is complete.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            AtomError::NotCanonical { condition, .. } => match **condition {
                CanonicalCondition::Depth { .. } => {
                    "one instruction reads 32 bytes along K: divide the tile and take a descriptor of each part"
                }
                _ => "tile a canonical atom to the shape: SwizzleMode::tile",
            },
            AtomError::ThreadValue(_) => "give each position of the tile to the stated number of threads",
            AtomError::UnknownName { near, .. } => {
                let (first, others) = near.split_first()?;
                let others: String = others.iter().map(|name| alloc::format!(" or `{name}`")).collect();
                return Some(alloc::format!("is `{first}`{others} meant?"));
            }
            AtomError::Gaps { .. } => "ask for the part of a thread: TiledMma::get_slice",
            AtomError::Layout(error) => return error.help(),
            _ => return None,
        };
        Some(help.into())
    }
}

crate::refusal! {
    AtomError from Layout:
    ElementWidth "E0311", NotCanonical "E0312", Field "E0313", Reserved "E0314",
    ThreadValue "E0315", UnknownName "E0316", Shape "E0317", Threads "E0318", NoOperand "E0319",
    NoThread "E0320", AtomLayout "E0321", Permutation "E0322", Gaps "E0323", CopyWidth "E0324",
    TiledCopy "E0325", Retile "E0326", TensorMap "E0327", BulkCopy "E0328", Cotiled "E0329",
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
            AtomError::ThreadValue(bad) => {
                let BadThreadValue { name, operand, layout, flaw } = bad.as_ref();
                write!(f, "{name}: operand {operand}, {layout}: {flaw}")
            }
            AtomError::UnknownName { kind, name, .. } => write!(f, "there is no {kind} `{name}`"),
            AtomError::Shape { name, shape: [m, n, k] } => {
                write!(f, "{name}: a tile of {m} x {n} x {k} is empty, or its places cannot be counted in 64 bits")
            }
            AtomError::Threads { name, layout } => {
                write!(f, "{name}: threads {layout} are not numbered from 0 on, each with a number of its own")
            }
            AtomError::NoOperand { name, operand } => write!(f, "{name} takes no operand {operand}"),
            AtomError::NoThread { number, layout } => write!(f, "no thread of {layout} has the number {number}"),
            AtomError::AtomLayout { layout } => {
                write!(f, "atoms arranged by {layout}: needed are modes for M, N and K that do not overlap")
            }
            AtomError::Permutation { mode, permutation, core } => {
                let mode = ["M", "N", "K"].get(*mode).unwrap_or(&"a mode past K");
                write!(
                    f,
                    "permutation {permutation} of {mode}: needed is a bijection onto 0, 1, .., whose size is a multiple of {core}"
                )
            }
            AtomError::Gaps { layout } => {
                write!(f, "threads {layout} are not numbered 0, 1, .. without gaps, so no layout has all of them")
            }
            AtomError::CopyWidth { name, end, bits, layout } => {
                write!(f, "{name}: the {end}, bits {layout}, is not made of values of {bits} bits")
            }
            AtomError::TiledCopy { name, layout, what } => write!(f, "{name} for threads and values {layout}: {what}"),
            AtomError::Retile { name, fragment, what } => write!(f, "{name}: the fragment {fragment}: {what}"),
            AtomError::TensorMap { global, shared, what, value } => {
                write!(f, "no bulk copy from {global} to {shared}: {what} {value}")
            }
            AtomError::BulkCopy { name, what, value } => write!(f, "{name} takes {what}, but there is {value}"),
            AtomError::Cotiled { name, offsets, data, reason } => {
                write!(f, "{name} for offsets {offsets} in data {data}: {reason}")
            }
            AtomError::Layout(error) => error.fmt(f),
        }
    }
}

//! The errors of the analyses.
//!
//! As in the algebra, an error is data with a stable [code](AnalysisError::code); the message is
//! formatted when it is printed.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::{Condition, Extent, LayoutError, Question};

/// The reason why an analysis has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnalysisError {
    /// E0601: the width of an access is not one of a load or store.
    Width {
        /// The bits of an element.
        bits: i64,
        /// The number of elements of the vector.
        vector: i64,
    },
    /// E0602: the elements of a load or store are not contiguous.
    Split {
        /// The thread.
        thread: i64,
        /// The value that is not contiguous with the one before.
        value: i64,
        /// The offset of the first element.
        start: Box<str>,
        /// The offset of that value.
        offset: Box<str>,
        /// The number of elements of one vector.
        vector: i64,
        /// The name of the access along the other mode, if elements are contiguous along that.
        other: Option<Box<str>>,
    },
    /// E0603: a load or store is not aligned to its width.
    Misaligned {
        /// The thread.
        thread: i64,
        /// The first value of the load or store.
        value: i64,
        /// The offset of that value.
        offset: Box<str>,
        /// The number of elements of one vector.
        vector: i64,
    },
    /// E0604: an access or a search is too large.
    TooLarge {
        /// The name of the quantity that is too large.
        what: &'static str,
        /// The quantity.
        value: i64,
        /// The limit.
        limit: i64,
    },
    /// E0605: an access is to an element outside the tile.
    Outside {
        /// The thread.
        thread: i64,
        /// The value.
        value: i64,
        /// The index.
        index: i64,
        /// The number of elements of the tile.
        size: i64,
    },
    /// E0606: an access or an analysis does not fit a shape.
    Shape {
        /// The shape.
        shape: Box<str>,
        /// The reason, in words.
        what: Box<str>,
    },
    /// E0607: the memory does not support a number.
    Memory {
        /// The name of the quantity.
        what: &'static str,
        /// The number.
        value: i64,
        /// The supported values, in words.
        wanted: &'static str,
    },
    /// E0608: the answer depends on a number that becomes known at launch.
    Open {
        /// The thread whose address is unknown.
        thread: i64,
        /// The value.
        value: i64,
        /// The unproved condition.
        question: Box<Question>,
    },
    /// E0608: an offset becomes known only at launch.
    Later {
        /// The index with that offset.
        index: i64,
        /// The unproved condition.
        question: Box<Question>,
    },
    /// E0609: a layout is not a permutation of its indices.
    NotPermutation {
        /// The layout.
        layout: Box<str>,
        /// The reason, in words.
        what: &'static str,
        /// The offset at which it fails.
        offset: i64,
    },
    /// An operation of the algebra refused.
    Layout(LayoutError),
}

impl AnalysisError {
    /// It is not known whether `by` divides a number, or, if `by` is 0, what the number is.
    pub(crate) fn of_question<N: Extent>(by: &N, number: &N, thread: i64, value: i64) -> AnalysisError {
        let condition = if by.is_zero().proved() { Condition::Known } else { Condition::Divides };
        let (left, right) = if by.is_zero().proved() { (number, by) } else { (by, number) };
        AnalysisError::Open { thread, value, question: Box::new(Question::new(condition, left, right)) }
    }

    /// The offset of an index is not known.
    pub(crate) fn of_offset<N: Extent>(index: i64, offset: &N) -> AnalysisError {
        AnalysisError::Later { index, question: Box::new(Question::new(Condition::Known, offset, &N::from(0))) }
    }

    /// A hint on how to fix it, as a sentence; None if the message is complete.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            AnalysisError::Width { .. } => "take a vector of 1, 2, 4, 8 or 16 bytes",
            AnalysisError::Split { other: Some(other), .. } => {
                return Some(format!("elements are contiguous along the other mode: use `{other}`"));
            }
            AnalysisError::Split { .. } => "take fewer elements at once, or let the values of a thread be contiguous",
            AnalysisError::Misaligned { .. } => "take fewer elements at once, or pad rows to a multiple of the vector",
            AnalysisError::TooLarge { .. } => "look at a part: a tile is enough, as the others behave alike",
            AnalysisError::Outside { .. } => "the values of an access are indices of the tile, first mode fastest",
            AnalysisError::Shape { .. } | AnalysisError::Memory { .. } | AnalysisError::NotPermutation { .. } => {
                return None;
            }
            // The question itself names the fact to declare.
            AnalysisError::Open { question, .. } | AnalysisError::Later { question, .. }
                if question.declaration.is_some() =>
            {
                return None;
            }
            AnalysisError::Open { .. } | AnalysisError::Later { .. } => {
                "give the parameters divisors, `M{div=64}`, or a value"
            }
            AnalysisError::Layout(error) => return error.help(),
        };
        Some(help.to_owned())
    }
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnalysisError::Width { bits, vector } => {
                write!(f, "no load or store takes {vector} elements of {bits} bits")
            }
            AnalysisError::Split { thread, value, start, offset, vector, .. } => write!(
                f,
                "thread {thread} takes {vector} elements from offset {start} on, but its value {value} is at {offset}"
            ),
            AnalysisError::Misaligned { thread, value, offset, vector } => write!(
                f,
                "thread {thread} takes {vector} elements from value {value} on, at offset {offset}, which is no multiple of {vector}"
            ),
            AnalysisError::TooLarge { what, value, limit } => {
                write!(f, "{what} is {value}, and at most {limit} are looked at")
            }
            AnalysisError::Outside { thread, value, index, size } => {
                write!(f, "thread {thread}, value {value} is element {index} of a tile that has {size}")
            }
            AnalysisError::Shape { shape, what } => write!(f, "shape {shape}: {what}"),
            AnalysisError::Memory { what, value, wanted } => write!(f, "{what} must be {wanted}, not {value}"),
            AnalysisError::Open { thread, value, question } => {
                write!(f, "where thread {thread} finds value {value} is not known before launch: {question}")
            }
            AnalysisError::Later { index, question } => {
                write!(f, "the offset of index {index} is not known before launch: {question}")
            }
            AnalysisError::NotPermutation { layout, what, offset } => {
                write!(f, "{layout} is no permutation: it {what} {offset}")
            }
            AnalysisError::Layout(error) => error.fmt(f),
        }
    }
}

crate::refusal! {
    AnalysisError from Layout:
    Width "E0601", Split "E0602", Misaligned "E0603", TooLarge "E0604", Outside "E0605",
    Shape "E0606", Memory "E0607", Open "E0608", Later "E0608", NotPermutation "E0609",
}

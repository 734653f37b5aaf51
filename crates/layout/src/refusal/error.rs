//! The errors of operations on layouts.
//!
//! An operation returns the value that satisfies its definition, or a [`LayoutError`] with the
//! condition that fails, the mode and the numbers. Errors are data: the message is formatted when
//! one is printed ([`super::message`]). Every kind has a stable [code](LayoutError::code), for
//! which there is a page.

use alloc::boxed::Box;

use crate::ground::profile::{Profile, ProfileRef};
pub use crate::refusal::evidence::Path;
use crate::refusal::evidence::{Carry, Chain, Condition, Mixed, NoInverse, NotXor, Question, Uneven};

/// The name of the division, in which the tiler is complemented.
pub(crate) const DIVIDE: &str = "logical_divide";

/// A limit of the representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`crate::limits::MAX_NODES`]
    Nodes,
    /// [`crate::limits::MAX_DEPTH`]
    Depth,
    /// [`crate::limits::MAX_PATH`]
    Path,
    /// [`crate::limits::MAX_PATH_MODE`]
    PathMode,
    /// [`crate::limits::MAX_CHAIN`]
    Chain,
}

/// The operand of an operation that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefusedOperand {
    /// The first operand `A`, or the only one.
    #[default]
    First,
    /// The second operand `B`.
    Second,
}

/// Errors of operations on layouts.
///
/// ```
/// use tilewright_layout::Layout;
///
/// let a: Layout = "(4,6,8):(2,3,5)".parse().unwrap();
/// let b: Layout = "6:3".parse().unwrap();
/// let error = a.compose(&b).unwrap_err();
/// assert_eq!(error.code(), "E0108");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// E0101: two trees that must have the same nesting do not.
    NotCongruent {
        /// The two profiles.
        profiles: Box<(Profile, Profile)>,
        /// The path at which they first differ.
        path: Path,
    },
    /// E0102: an extent is not positive.
    Extent {
        /// The leaf.
        path: Path,
        /// The extent as written.
        extent: Box<str>,
    },
    /// E0103: a number does not fit in 64 bits.
    Overflow {
        /// The operation.
        op: &'static str,
    },
    /// E0103: an expression of numbers that become known at launch has too large a number, or too
    /// many terms.
    Expression {
        /// The operation.
        op: &'static str,
    },
    /// E0104: a tree is larger or deeper than the representation allows.
    TooLarge {
        /// The limit.
        limit: Limit,
        /// The size, or a lower bound of it.
        value: usize,
    },
    /// E0105: there is no mode with this number.
    NoSuchMode {
        /// The operation.
        op: &'static str,
        /// The requested mode.
        mode: usize,
        /// The number of modes.
        rank: usize,
    },
    /// E0105: a name is not valid here.
    NoName {
        /// The operation.
        op: &'static str,
        /// The name.
        name: Box<str>,
        /// The reason, in words.
        what: &'static str,
    },
    /// E0105: a range of modes is not within the rank.
    Modes {
        /// The operation.
        op: &'static str,
        /// First mode.
        begin: usize,
        /// One past the last mode.
        end: usize,
        /// The number of modes.
        rank: usize,
    },
    /// E0106: a tuple has the wrong number of modes.
    Rank {
        /// The operation.
        op: &'static str,
        /// The tuple.
        path: Path,
        /// The required rank.
        expected: usize,
        /// The rank of the tuple.
        found: usize,
    },
    /// E0106: a list of leaves does not fit a profile.
    LeafCount {
        /// The number of leaves of the profile.
        expected: usize,
        /// The number of leaves given.
        found: usize,
    },
    /// E0107: composition: the modes of B add to a carry in A.
    Carry(Box<Carry>),
    /// E0108: composition: a mode of B leaves a mode of A at a step that does not divide its
    /// extent.
    Uneven(Box<Uneven>),
    /// E0109: strict composition: B leaves the domain of A.
    OutOfDomain {
        /// The mode of A in which B steps; empty if the values of B are indices of the whole A.
        mode: Path,
        /// The least offset of B.
        least: i64,
        /// The largest offset of B.
        greatest: i64,
        /// The size of A, or of that mode.
        size: i64,
    },
    /// E0110: the search for an answer reached its limit.
    Undecided {
        /// The operation.
        op: &'static str,
        /// The number of cases examined.
        limit: usize,
    },
    /// E0129: the caller interrupted searches ([`crate::interrupt::request`]).
    Interrupted {
        /// The operation.
        op: &'static str,
    },
    /// E0111: complement: the strides do not form a divisibility chain.
    NotChain(Box<Chain>),
    /// E0112: modes overlap.
    Overlap(Box<Chain>),
    /// E0113: a negative stride where offsets must not be negative.
    Negative {
        /// The operation.
        op: &'static str,
        /// The leaf.
        path: Path,
        /// Its stride.
        stride: i64,
    },
    /// E0114: the layout has no left inverse.
    NoLeftInverse(Box<NoInverse>),
    /// E0114: a map over bits has the same value at different numbers.
    Collapse {
        /// The operation.
        op: &'static str,
        /// The XOR of two numbers with the same value.
        difference: u64,
    },
    /// E0114: a number that is not a value of a map over bits.
    NoPreimage {
        /// The operation.
        op: &'static str,
        /// The number.
        value: u64,
    },
    /// E0115: a division that leaves a remainder.
    NotDivisible {
        /// The operation.
        op: &'static str,
        /// The leaf.
        path: Path,
        /// The dividend.
        value: i64,
        /// The divisor.
        divisor: i64,
    },
    /// E0115: too few contiguous elements for a wide one.
    Apart {
        /// The operation.
        op: &'static str,
        /// The leaf with the most contiguous elements; the root if no two elements are contiguous.
        path: Path,
        /// The number of contiguous elements.
        together: i64,
        /// The number of elements of a wide one.
        needed: i64,
    },
    /// E0116: an argument is outside the allowed range.
    Argument {
        /// The operation.
        op: &'static str,
        /// The argument, in words.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The allowed values, in words.
        wanted: &'static str,
    },
    /// E0117: two sizes that must be equal are not.
    Size {
        /// The operation.
        op: &'static str,
        /// The first size.
        left: i64,
        /// The second size.
        right: i64,
    },
    /// E0118: a coordinate does not fit the shape.
    Coordinate {
        /// The operation.
        op: &'static str,
        /// The position in the coordinate.
        path: Path,
        /// The profile of the shape at that position.
        shape: Box<Profile>,
    },
    /// E0119: a tiler does not fit the layout.
    Tiler {
        /// The operation.
        op: &'static str,
        /// The position in the tiler.
        path: Path,
        /// The reason, in words.
        what: &'static str,
    },
    /// E0120: an order is not a permutation of the modes.
    Order {
        /// The operation.
        op: &'static str,
        /// The key that is wrong.
        key: i64,
        /// The reason, in words.
        what: &'static str,
    },
    /// E0121: the sum of two layouts is not a layout.
    NotALayout {
        /// The operation.
        op: &'static str,
        /// The lengths of runs that do not divide each other.
        runs: (i64, i64),
    },
    /// E0121: a map is not linear over bits.
    NotLinear {
        /// The operation.
        op: &'static str,
        /// An index at which linearity fails; it has two set bits if two are enough.
        index: i64,
        /// The value at the index.
        value: i64,
        /// The XOR of the values of the single bits of the index.
        alone: i64,
    },
    /// E0121: a map is not a layout plus an offset.
    NotAdditive {
        /// The operation.
        op: &'static str,
        /// An index at which additivity fails.
        index: i64,
        /// The value at the index.
        value: i64,
        /// The sum of the values of the single modes.
        alone: i64,
    },
    /// E0125: strides have no common codomain.
    Mixed(Box<Mixed>),
    /// E0126: a step in a mode that does not exist.
    NoPath {
        /// The operation.
        op: &'static str,
        /// The leaf with this stride.
        path: Path,
        /// The stride as written.
        step: Box<str>,
        /// The nesting, in which the mode does not exist.
        profile: Box<Profile>,
    },
    /// E0128: the count of a step is not an integer.
    Fraction {
        /// The bytes of the entry in the text.
        place: core::ops::Range<usize>,
        /// The count as written.
        count: i64,
        /// The divisor.
        denominator: i64,
    },
    /// E0127: a stride in several modes at once, for an operation that treats each mode separately.
    Diagonal {
        /// The operation.
        op: &'static str,
        /// The leaf with this stride.
        path: Path,
        /// The stride as written.
        step: Box<str>,
    },
    /// E0122: a text is not a value.
    Syntax {
        /// Byte offset in the text.
        at: usize,
        /// The expected text, in words.
        expected: &'static str,
    },
    /// E0123: the operation needs a condition on numbers that are not known.
    Open {
        /// The operation.
        op: &'static str,
        /// The missing fact.
        question: Box<Question>,
    },
    /// E0124: a function is not that of a layout with XOR strides.
    NotXor(Box<NotXor>),
    /// E0130: an operand is a kind of layout for which the operation is not defined.
    Kind {
        /// The operation.
        op: &'static str,
        /// The operand.
        operand: RefusedOperand,
        /// The expected kind, in words.
        wanted: &'static str,
    },
}

/// Types of numbers with an error for a number that is not representable.
pub trait Overflow {
    /// The error of an operation whose number is not representable.
    #[cold]
    fn overflow(op: &'static str) -> LayoutError {
        LayoutError::overflow(op)
    }
}

/// A number of an operation; None if it is not representable.
pub(crate) trait Fits<T> {
    /// The number, or the error of the operation.
    fn fits(self, op: &'static str) -> Result<T, LayoutError>;

    /// As [`Fits::fits`], with the error of a type of numbers.
    fn fits_as<N: Overflow>(self, op: &'static str) -> Result<T, LayoutError>;
}

impl<T> Fits<T> for Option<T> {
    #[inline(always)]
    fn fits(self, op: &'static str) -> Result<T, LayoutError> {
        self.ok_or_else(|| LayoutError::overflow(op))
    }

    #[inline(always)]
    fn fits_as<N: Overflow>(self, op: &'static str) -> Result<T, LayoutError> {
        self.ok_or_else(|| N::overflow(op))
    }
}

impl LayoutError {
    #[cold]
    pub(crate) fn overflow(op: &'static str) -> LayoutError {
        LayoutError::Overflow { op }
    }

    /// The same error, with mode `position` of the tiler as its operand.
    #[cold]
    pub(crate) fn in_mode(mut self, position: usize) -> LayoutError {
        match &mut self {
            LayoutError::Tiler { path, .. } | LayoutError::Negative { path, .. } => path.insert(0, position),
            LayoutError::Carry(carry) => carry.above.insert(0, position),
            LayoutError::Uneven(uneven) => uneven.mode.path.insert(0, position),
            LayoutError::NotXor(not) => {
                if let Some(mode) = &mut not.mode {
                    mode.path.insert(0, position);
                }
            }
            LayoutError::NotChain(chain) | LayoutError::Overlap(chain) => {
                chain.outer.0.insert(0, position);
                if let Some((path, ..)) = &mut chain.inner {
                    path.insert(0, position);
                }
            }
            _ => {}
        }
        self
    }

    /// The error of a complement, as the error of the division that needed it.
    #[cold]
    pub(crate) fn in_divide(mut self) -> LayoutError {
        match &mut self {
            LayoutError::Negative { op, .. } | LayoutError::Overflow { op } | LayoutError::Open { op, .. } => {
                *op = DIVIDE
            }
            LayoutError::NotChain(chain) => chain.op = DIVIDE,
            _ => {}
        }
        self
    }

    #[cold]
    pub(crate) fn no_mode(op: &'static str, mode: usize, rank: usize) -> LayoutError {
        LayoutError::NoSuchMode { op, mode, rank }
    }

    /// As [`LayoutError::open`], for a condition in words: `index 4 is inside`.
    #[cold]
    pub fn unknown(op: &'static str, fact: &dyn core::fmt::Display) -> LayoutError {
        LayoutError::Open { op, question: Box::new(Question::plain(Condition::Stated, fact, &"")) }
    }

    #[cold]
    pub(crate) fn not_congruent(left: &Profile, right: &Profile) -> LayoutError {
        LayoutError::NotCongruent {
            profiles: Box::new((left.clone(), right.clone())),
            path: first_difference(left.as_ref(), right.as_ref()),
        }
    }
}

/// The path at which two profiles first differ.
fn first_difference(left: ProfileRef<'_>, right: ProfileRef<'_>) -> Path {
    if left.is_leaf() || right.is_leaf() || left.rank() != right.rank() {
        return Path::new();
    }
    for (position, (a, b)) in left.modes().zip(right.modes()).enumerate() {
        if a != b {
            let mut path = first_difference(a, b);
            path.insert(0, position);
            return path;
        }
    }
    Path::new()
}

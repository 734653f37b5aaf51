//! The errors of morphisms.
//!
//! As in the algebra, an error is data with a stable [code](MorphismError::code); `message.rs`
//! formats the message when it is printed. Entries are counted from 0 in the data and from 1 in
//! messages, as in the notation of morphisms.

use alloc::boxed::Box;
use alloc::string::String;

use crate::{LayoutError, Path};

/// One of the two tuples of a morphism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The tuple where the arrows start.
    Domain,
    /// The tuple where the arrows end.
    Codomain,
}

/// One of the two layouts of a composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompositionSide {
    /// The layout by itself: no composition.
    Alone,
    /// The one that is applied first.
    Inner,
    /// The one that is applied second.
    Outer,
}

/// Why there is no such morphism, refinement or composite.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MorphismError {
    /// E0701: the number of images of a map is not the number of entries of the domain.
    MapLength {
        /// The number of entries of the domain.
        domain: usize,
        /// The number of images.
        map: usize,
    },
    /// E0702: a map that sends an entry past the end of the codomain.
    Target {
        /// The entry of the domain.
        entry: usize,
        /// Its image.
        target: usize,
        /// The number of entries of the codomain.
        entries: usize,
    },
    /// E0703: two entries that are sent to the same entry.
    SentTwice {
        /// The first entry.
        first: usize,
        /// The second.
        second: usize,
        /// Their image.
        target: usize,
    },
    /// E0704: an entry maps to an entry of another size.
    Unequal {
        /// The entry of the domain.
        entry: usize,
        /// Its size.
        extent: i64,
        /// Its image.
        target: usize,
        /// The size of the image.
        found: i64,
    },
    /// E0705: an entry that is not positive.
    NotPositive {
        /// The tuple, in words.
        what: &'static str,
        /// The entry.
        entry: usize,
        /// Its value.
        value: i64,
    },
    /// E0706: the codomain of a morphism is not the domain of the next.
    NotComposable {
        /// The operation.
        op: &'static str,
        /// The codomain of the first morphism.
        ends: Box<str>,
        /// The domain of the next morphism.
        begins: Box<str>,
        /// The difference of the two tuples.
        apart: Apart,
    },
    /// E0707: a layout that no morphism encodes.
    NotTractable(Box<NotTractable>),
    /// E0708: an operation that needs every entry of the domain to be sent somewhere.
    Dropped {
        /// The operation.
        op: &'static str,
        /// The first entry that is sent to the base point.
        entry: usize,
    },
    /// E0709: the images of two morphisms side by side are not disjoint.
    ImagesMeet {
        /// The entry of the first one.
        first: usize,
        /// The entry of the second one.
        second: usize,
        /// Their common image.
        target: usize,
    },
    /// E0710: a tuple that does not refine another.
    NotARefinement(Box<NotARefinement>),
    /// E0711: tuples without a mutual refinement.
    NoMutualRefinement(Box<NoMutualRefinement>),
    /// E0712: an entry that does not exist, or is out of order.
    NoSuchEntry {
        /// The operation.
        op: &'static str,
        /// The tuple.
        side: Side,
        /// The entry.
        entry: usize,
        /// The number of entries; a smaller entry is out of order.
        entries: usize,
    },
    /// E0713: entries of the codomain that are to be kept do not include one that is hit.
    Lost {
        /// The entry of the domain.
        entry: usize,
        /// Its image.
        target: usize,
    },
    /// E0714: a morphism that has no inverse.
    NotIsomorphism {
        /// The first entry that violates it.
        entry: usize,
        /// The tuple: an entry of the domain that maps to the base point, or one of the codomain
        /// outside of the image.
        side: Side,
    },
    /// E0715: the number of parts is not the number of entries.
    Arity {
        /// The operation.
        op: &'static str,
        /// The number of entries.
        places: usize,
        /// The number of parts.
        parts: usize,
    },
    /// E0716: a text is not a morphism.
    Syntax {
        /// The byte at which reading stopped.
        at: usize,
        /// The expected text, in words.
        expected: &'static str,
    },
    /// E0718: entries map to one that their product does not divide.
    Undivided {
        /// Their common image.
        target: usize,
        /// The size of the image.
        entry: i64,
        /// The product of these entries.
        product: i64,
    },
    /// E0717: more values than a table holds.
    Table {
        /// The number of values.
        size: i64,
        /// The limit.
        limit: i64,
    },
    /// An operation of the algebra refused.
    Layout(LayoutError),
}

/// Two modes for which a layout is not tractable, or a mode of negative stride.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTractable {
    /// The layout.
    pub part: CompositionSide,
    /// The layout.
    pub layout: Box<str>,
    /// The mode whose `extent * stride` does not divide the next stride, by path; or the mode of
    /// negative stride.
    pub mode: Path,
    /// Its extent and stride.
    pub leaf: (i64, i64),
    /// The next mode in the order of strides, and its stride; None if the stride is negative.
    pub next: Option<(Path, i64)>,
}

/// A mode that is not refined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotARefinement {
    /// The tuple that should be finer.
    pub fine: Box<str>,
    /// The tuple that it should refine.
    pub coarse: Box<str>,
    /// The position, by path.
    pub path: Path,
    /// The value there.
    pub found: Misfit,
}

/// How a mode fails to refine another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The size of a mode is not the number that it should refine.
    Size {
        /// The number.
        wanted: i64,
        /// The size of the mode.
        found: i64,
    },
    /// A tuple has another number of modes.
    Rank {
        /// How many modes the coarse tuple has.
        wanted: usize,
        /// The number of modes of the fine tuple; None for a number, which does not refine a tuple.
        found: Option<usize>,
    },
}

/// The position at which the walk along two tuples stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoMutualRefinement {
    /// The tuple that should divide the other.
    pub first: Box<str>,
    /// The other.
    pub second: Box<str>,
    /// The entry of the first tuple, and the rest of it at this position.
    pub left: (usize, i64),
    /// The entry of the second tuple, and the rest of it at this position; None if the second tuple
    /// has ended.
    pub right: Option<(usize, i64)>,
    /// The product of everything before, which both have in common.
    pub before: i64,
}

/// The difference between the codomain of a morphism and the domain of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// They differ only in nesting.
    Nesting,
    /// The first is a prefix of the second, as in a mutual refinement: there is an inclusion.
    Beginning,
    /// They differ in entries.
    Entries,
}

impl Apart {
    pub(crate) fn of(ends: &[i64], begins: &[i64]) -> Apart {
        match begins.strip_prefix(ends) {
            Some([]) => Apart::Nesting,
            Some(_) => Apart::Beginning,
            None => Apart::Entries,
        }
    }
}

crate::refusal! {
    MorphismError from Layout:
    MapLength "E0701", Target "E0702", SentTwice "E0703", Unequal "E0704", NotPositive "E0705",
    NotComposable "E0706", NotTractable "E0707", Dropped "E0708", ImagesMeet "E0709",
    NotARefinement "E0710", NoMutualRefinement "E0711", NoSuchEntry "E0712", Lost "E0713",
    NotIsomorphism "E0714", Arity "E0715", Syntax "E0716", Table "E0717", Undivided "E0718",
}

/// The error for a number that is not representable.
pub(crate) fn overflow(op: &'static str) -> MorphismError {
    LayoutError::Overflow { op }.into()
}

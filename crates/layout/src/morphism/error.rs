//! Refusals.
//!
//! As in the algebra, errors are data with a stable [code](MorphismError::code); the sentence is
//! made when one is printed, in `message.rs`. Entries are counted from 0 in the data and from 1 in
//! the sentences, as in the notation of morphisms.

use alloc::boxed::Box;
use alloc::string::String;

use crate::{LayoutError, Path};

/// One of the two tuples of a morphism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where the arrows begin.
    Domain,
    /// Where they end.
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
    /// E0701: a map that says something about another number of entries than the domain has.
    MapLength {
        /// How many entries the domain has.
        domain: usize,
        /// How many the map sends.
        map: usize,
    },
    /// E0702: a map that sends an entry past the end of the codomain.
    Target {
        /// The entry of the domain.
        entry: usize,
        /// Where it is sent.
        target: usize,
        /// How many entries the codomain has.
        entries: usize,
    },
    /// E0703: two entries that are sent to the same entry.
    SentTwice {
        /// The first entry.
        first: usize,
        /// The second.
        second: usize,
        /// Where both are sent.
        target: usize,
    },
    /// E0704: an entry that is sent to another number.
    Unequal {
        /// The entry of the domain.
        entry: usize,
        /// Its number.
        extent: i64,
        /// Where it is sent.
        target: usize,
        /// The number there.
        found: i64,
    },
    /// E0705: an entry that is not positive.
    NotPositive {
        /// In which tuple, in words.
        what: &'static str,
        /// The entry.
        entry: usize,
        /// Its number.
        value: i64,
    },
    /// E0706: morphisms of which one does not end where the other begins.
    NotComposable {
        /// The operation.
        op: &'static str,
        /// Where the first one ends.
        ends: Box<str>,
        /// Where the next one would have to begin, and begins.
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
    /// E0709: morphisms side by side whose images meet.
    ImagesMeet {
        /// The entry of the first one.
        first: usize,
        /// The entry of the second one.
        second: usize,
        /// Where both are sent.
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
        /// How many there are; an entry below that is named out of order.
        entries: usize,
    },
    /// E0713: entries of the codomain to be kept that leave out one that is hit.
    Lost {
        /// The entry of the domain.
        entry: usize,
        /// Where it is sent.
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
    /// E0715: one part per entry is needed, and there is another number of parts.
    Arity {
        /// The operation.
        op: &'static str,
        /// The number of entries.
        places: usize,
        /// How many parts are given.
        parts: usize,
    },
    /// E0716: a text that is no morphism.
    Syntax {
        /// The byte at which reading stopped.
        at: usize,
        /// The expected text, in words.
        expected: &'static str,
    },
    /// E0718: entries map to one that their product does not divide.
    Undivided {
        /// Where they are sent.
        target: usize,
        /// The entry there.
        entry: i64,
        /// The product of these entries.
        product: i64,
    },
    /// E0717: more values than a table holds.
    Table {
        /// How many there are.
        size: i64,
        /// The most.
        limit: i64,
    },
    /// An operation of the algebra refused.
    Layout(LayoutError),
}

/// Two modes that keep a layout from being tractable, or one whose stride is negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTractable {
    /// The layout.
    pub part: CompositionSide,
    /// The layout.
    pub layout: Box<str>,
    /// The mode that reaches over the next one's stride, by path; or the one of negative stride.
    pub mode: Path,
    /// Its extent and stride.
    pub leaf: (i64, i64),
    /// The next mode in the order of strides, and its stride; none if the stride is negative.
    pub next: Option<(Path, i64)>,
}

/// A mode that is not refined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotARefinement {
    /// The tuple that should be finer.
    pub fine: Box<str>,
    /// The tuple that it should refine.
    pub coarse: Box<str>,
    /// Where, by path.
    pub path: Path,
    /// The value there.
    pub found: Misfit,
}

/// How a mode fails to refine another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// A number stands for another number of positions than the mode that should refine it.
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
        /// How many the fine one has; none for a number, which refines no tuple.
        found: Option<usize>,
    },
}

/// Where the walk along two tuples stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoMutualRefinement {
    /// The tuple that should divide the other.
    pub first: Box<str>,
    /// The other.
    pub second: Box<str>,
    /// The entry of the first tuple, and how much of it is left there.
    pub left: (usize, i64),
    /// The entry of the second tuple, and how much of it is left there; none when the second tuple
    /// has ended.
    pub right: Option<(usize, i64)>,
    /// The product of everything before, which both have in common.
    pub before: i64,
}

/// The difference between the codomain of a morphism and the domain of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// In their nesting alone.
    Nesting,
    /// The first is the beginning of the second, as those of a mutual refinement are: an inclusion
    /// leads from one to the other.
    Beginning,
    /// In their entries.
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

/// A number that does not fit.
pub(crate) fn overflow(op: &'static str) -> MorphismError {
    LayoutError::Overflow { op }.into()
}

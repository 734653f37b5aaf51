//! The data of errors: modes, coordinates and numbers, from which messages are formatted.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use smallvec::SmallVec;

use crate::ground::parameter::Parameter;
use crate::ground::profile::Profile;
use crate::ground::tree::Tree;

/// A path of mode numbers from the root of a tree, outermost first.
pub type Path = Vec<usize>;

/// The carry of `A o B`: data of [`crate::LayoutError::Carry`].
///
/// A search may try many compositions that do not exist, so only numbers are stored; paths are
/// computed on request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carry {
    /// The nesting of B.
    pub(crate) profile: Profile,
    /// The path of B, if it is a part of a tiler.
    pub(crate) above: Path,
    /// Leaf number, extent and stride of the crossing and of the inside mode.
    pub(crate) crossing: (usize, i64, i64),
    pub(crate) inside: (usize, i64, i64),
    /// The coalesced mode of A in which the sum carries, counted from 0.
    pub mode_of_a: usize,
    /// The number of consecutive indices that this mode and those before it cover.
    pub run: i64,
    /// A coordinate of B, one index for each leaf.
    pub(crate) coordinate: SmallVec<[i64; 8]>,
    /// The value by the definition: `A(B(coordinate))`.
    pub value: Offset,
    /// The sum of the values of the single modes.
    pub sum: Offset,
}

impl Carry {
    /// The mode of B whose steps cross from one mode of A into the next.
    pub fn crossing(&self) -> BMode {
        self.mode(self.crossing)
    }

    /// The mode of B that starts inside that mode of A; the crossing mode itself if it carries
    /// alone.
    pub fn inside(&self) -> BMode {
        self.mode(self.inside)
    }

    /// Whether the crossing mode carries alone.
    pub fn alone(&self) -> bool {
        self.crossing.0 == self.inside.0
    }

    /// A coordinate of B, one index for each leaf, at which the sum carries.
    pub fn coordinate(&self) -> &[i64] {
        &self.coordinate
    }

    fn mode(&self, (leaf, extent, stride): (usize, i64, i64)) -> BMode {
        let mut path = self.above.clone();
        path.extend(self.profile.path(leaf));
        BMode { path, extent, stride }
    }
}

/// A value of a layout in an error: a number, or another step as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offset {
    /// A number.
    Number(i64),
    /// The text of a step.
    Text(Box<str>),
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Offset::Number(number) => number.fmt(f),
            Offset::Text(text) => f.write_str(text),
        }
    }
}

/// A mode of B in an error about a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BMode {
    /// The path of the leaf.
    pub path: Path,
    /// Its extent.
    pub extent: i64,
    /// Its stride.
    pub stride: i64,
}

/// The reason why a single mode of B does not compose: data of [`crate::LayoutError::Uneven`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uneven {
    /// The mode of B.
    pub mode: BMode,
    /// The remaining extent at the failure: the extent without the completed runs.
    pub left: i64,
    /// The number of steps of `stride` after which it leaves a mode of A.
    pub run: i64,
    /// The step of the run that ends.
    pub stride: i64,
    /// The coalesced mode of A that it leaves, counted from 0.
    pub mode_of_a: usize,
    /// The extent of that mode.
    pub extent_of_a: i64,
}

/// The reason why no layout with XOR strides has the required values: data of
/// [`crate::LayoutError::NotXor`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotXor {
    /// The operation.
    pub op: &'static str,
    /// The mode of B that does not become modes even alone; None if the modes are not additive
    /// together, or if there is no B.
    pub mode: Option<BMode>,
    /// A coordinate of B, or of the layout that is converted; or an index. If `mode` is set, it is
    /// 0 in all other modes.
    pub(crate) place: Tree<i64>,
    /// The required value at that coordinate.
    pub value: Offset,
    /// The sum of the values of the modes.
    pub sum: Offset,
}

impl NotXor {
    /// The coordinate at which the values differ: an index for each leaf.
    pub fn coordinate(&self) -> &[i64] {
        self.place.leaves()
    }

    /// The coordinate, nested like the layout.
    pub fn place(&self) -> &Tree<i64> {
        &self.place
    }
}

/// Two modes that do not tile: data of [`crate::LayoutError::NotChain`] and
/// [`crate::LayoutError::Overlap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The operation.
    pub op: &'static str,
    /// The inner mode, its extent and stride; None if the outer mode is the innermost.
    pub inner: Option<(Path, i64, i64)>,
    /// The range covered by the previous modes: `extent * stride` of the inner mode.
    pub covered: i64,
    /// The outer mode, its extent and stride.
    pub outer: (Path, i64, i64),
}

/// The reason why there is no left inverse: data of [`crate::LayoutError::NoLeftInverse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoInverse {
    /// The index of the layout at which every candidate fails.
    pub index: i64,
    /// The offset of that index.
    pub offset: i64,
}

/// Two strides without a common codomain: data of [`crate::LayoutError::Mixed`].
///
/// One path of the two ends at a mode that the other one continues through; an integer has the
/// empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mixed {
    /// The path of one leaf, and its stride as written.
    pub first: (Path, Box<str>),
    /// The path of the other leaf, and its stride as written; the same leaf if a single stride has
    /// both paths.
    pub second: (Path, Box<str>),
}

/// A condition on numbers that are not known: data of [`crate::LayoutError::Open`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The required condition.
    pub condition: Condition,
    /// The first number of the condition, as text.
    pub left: Box<str>,
    /// The second number, as text.
    pub right: Box<str>,
    /// The parameters on which it depends.
    pub parameters: Vec<Parameter>,
    /// A parameter with facts that would prove the condition, if there is a simple one.
    pub declaration: Option<Parameter>,
}

/// A condition on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The first divides the second.
    Divides,
    /// The first is less than the second.
    Less,
    /// The first is at most the second.
    AtMost,
    /// They are equal.
    Equal,
    /// Whether the first is less than the second must be known, in one way or the other.
    Ordered,
    /// The first number must be known.
    Known,
    /// The condition in words, in place of the first number.
    Stated,
}

impl Question {
    /// A condition on two values, as text.
    #[cold]
    pub(crate) fn plain(condition: Condition, left: &dyn fmt::Display, right: &dyn fmt::Display) -> Question {
        let text = |value: &dyn fmt::Display| value.to_string().into_boxed_str();
        Question { condition, left: text(left), right: text(right), parameters: Vec::new(), declaration: None }
    }
}

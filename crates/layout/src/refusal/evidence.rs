//! The evidence of an error: modes, coordinates and numbers, from which the message is made when it
//! is printed.

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

/// Why `A o B` carries: data of [`crate::LayoutError::Carry`].
///
/// A search may try many compositions that do not exist, so this holds numbers; paths are found
/// when they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carry {
    /// The nesting of B.
    pub(crate) profile: Profile,
    /// The modes of a tuple that contain B, if it is a part of a tiler.
    pub(crate) above: Path,
    /// Leaf number, extent and stride of the two modes.
    pub(crate) crossing: (usize, i64, i64),
    pub(crate) inside: (usize, i64, i64),
    /// The coalesced mode of A in which the sum carries, counted from 0.
    pub mode_of_a: usize,
    /// The number of consecutive indices that this mode and those before it cover.
    pub run: i64,
    /// A coordinate of B, one index a leaf.
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

    /// The mode of B that starts inside that mode of A; the crossing mode itself when it carries
    /// alone.
    pub fn inside(&self) -> BMode {
        self.mode(self.inside)
    }

    /// Whether the crossing mode carries alone.
    pub fn alone(&self) -> bool {
        self.crossing.0 == self.inside.0
    }

    /// A coordinate of B, one index a leaf, at which the sum carries.
    pub fn coordinate(&self) -> &[i64] {
        &self.coordinate
    }

    fn mode(&self, (leaf, extent, stride): (usize, i64, i64)) -> BMode {
        let mut path = self.above.clone();
        path.extend(self.profile.path(leaf));
        BMode { path, extent, stride }
    }
}

/// A value of a layout in an error: a number, or a step of another kind as it is written.
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

/// Why one mode of B alone does not compose: data of [`crate::LayoutError::Uneven`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uneven {
    /// The mode of B.
    pub mode: BMode,
    /// The number of indices that remain when it fails (its extent without the completed runs).
    pub left: i64,
    /// After how many steps of `stride` it leaves a mode of A.
    pub run: i64,
    /// The step of the run that breaks.
    pub stride: i64,
    /// The coalesced mode of A that it leaves, counted from 0.
    pub mode_of_a: usize,
    /// The extent of that mode.
    pub extent_of_a: i64,
}

/// Why no layout with XOR strides has the values wanted: data of [`crate::LayoutError::NotXor`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotXor {
    /// The operation.
    pub op: &'static str,
    /// The mode of B that becomes no mode even by itself; none if modes do not add up, and where
    /// there is no B.
    pub mode: Option<BMode>,
    /// A coordinate of B, or of the layout that is converted; or an index. Where a mode is named,
    /// it is 0 in all others.
    pub(crate) place: Tree<i64>,
    /// The value that is wanted there.
    pub value: Offset,
    /// The value of the modes.
    pub sum: Offset,
}

impl NotXor {
    /// Where the values differ: an index for each leaf.
    pub fn coordinate(&self) -> &[i64] {
        self.place.leaves()
    }

    /// The coordinate, nested like the layout.
    pub fn place(&self) -> &Tree<i64> {
        &self.place
    }
}

/// Why modes do not tile: data of [`crate::LayoutError::NotChain`] and
/// [`crate::LayoutError::Overlap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The operation.
    pub op: &'static str,
    /// The inner mode, its extent and stride; none when the outer mode is the innermost.
    pub inner: Option<(Path, i64, i64)>,
    /// The range covered by the previous modes: `extent * stride` of the inner mode.
    pub covered: i64,
    /// The outer mode, its extent and stride.
    pub outer: (Path, i64, i64),
}

/// Why there is no left inverse: data of [`crate::LayoutError::NoLeftInverse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoInverse {
    /// Two indices of the layout that every candidate sends to the wrong place.
    pub index: i64,
    /// Its offset.
    pub offset: i64,
}

/// Why strides do not lead into one codomain: data of [`crate::LayoutError::Mixed`].
///
/// One path of the two ends at a mode that the other one continues through; an integer ends at the
/// whole codomain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mixed {
    /// The path of one leaf, and its stride as written.
    pub first: (Path, Box<str>),
    /// The path of the other leaf, and its stride as written; the same one where a single stride
    /// does both.
    pub second: (Path, Box<str>),
}

/// A question about numbers that are not known, whose answer an operation needs: data of
/// [`crate::LayoutError::Open`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The required condition.
    pub condition: Condition,
    /// The first number of the condition, as it is written.
    pub left: Box<str>,
    /// The second one.
    pub right: Box<str>,
    /// The parameters on which it depends.
    pub parameters: Vec<Parameter>,
    /// A parameter with facts that would settle it, where there is a simple one.
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
    /// The first is less than the second, or it is not: either would do.
    Ordered,
    /// The first is a number.
    Known,
    /// The first is the condition, in words.
    Stated,
}

impl Question {
    /// A question about two values as they are written.
    #[cold]
    pub(crate) fn plain(condition: Condition, left: &dyn fmt::Display, right: &dyn fmt::Display) -> Question {
        let text = |value: &dyn fmt::Display| value.to_string().into_boxed_str();
        Question { condition, left: text(left), right: text(right), parameters: Vec::new(), declaration: None }
    }
}

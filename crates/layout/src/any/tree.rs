//! Nested tuples of any kind of number.
//!
//! Law: an [`AnyTree`] made with `From` has the least kind that holds all of its leaves.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use super::{AnyCoord, CoordinateStep, convert, of_every_kind, wrong_kind};
use crate::coordinate::Coordinate;
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::{Expr, Parameter, Symbolic, Values};
use crate::value::number::Extent;
use crate::value::profile::Profile;
use crate::value::tree::Tree;
use crate::xor::Xor;

/// A nested tuple of any kind of number: a shape, strides, or a coordinate. A tree that is a single
/// leaf is a number or a step.
///
/// ```
/// use tilewright_layout::AnyTree;
///
/// let tree: AnyTree = "(4,(M,2))".parse().unwrap();
/// assert_eq!(tree.rank(), 2);
/// assert_eq!(tree.flatten().unwrap().to_string(), "(4,M,2)");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum AnyTree {
    /// Of integers: `(4,(2,3))`.
    Integer(Tree<i64>),
    /// With a number that becomes known at launch: `(M,8)`.
    Launch(Box<Tree<Expr>>),
    /// Of steps along modes of a coordinate: `(1@0,2@1)`.
    Coordinate(Box<Tree<CoordinateStep>>),
    /// Of XOR steps: `(^1,^9)`.
    Xor(Tree<Xor>),
}

/// Evaluates an expression for the tree in an [`AnyTree`], whatever its kind.
macro_rules! with_tree {
    ($any:expr, $tree:ident => $result:expr) => {
        match $any {
            AnyTree::Integer($tree) => $result,
            AnyTree::Launch($tree) => $result,
            AnyTree::Coordinate($tree) => $result,
            AnyTree::Xor($tree) => $result,
        }
    };
}
pub(super) use with_tree;

of_every_kind! {
    AnyTree, with_tree:
    /// The same leaves in one flat tuple: [`Tree::flatten`].
    flatten();
    /// The same leaves in another nesting: [`Tree::unflatten`].
    unflatten(profile: &Profile);
    /// A range of modes as one mode: [`Tree::group`].
    group(range: Range<usize>);
    /// A range of modes: [`Tree::take`].
    take(range: Range<usize>);
    /// The modes with these numbers: [`Tree::select`].
    select(modes: &[usize]);
    /// The tree without one mode: [`Tree::remove`].
    remove(mode: usize);
    /// The modes in reverse order, at every level: [`Tree::reverse`].
    reverse();
    /// Transposes modes of modes, `((a,b),(c,d))` to `((a,c),(b,d))`: [`Tree::zip`].
    zip();
    /// Separates pairs, as a profile guides: [`Tree::zip_by`].
    zip_by(guide: &Profile);
}

macro_rules! with_another {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*);)*) => {
        impl AnyTree {
            $(
                $(#[$about])*
                pub fn $name(&self, $($argument: $kind,)* other: &AnyTree) -> Result<AnyTree, LayoutError> {
                    if let (AnyTree::Integer(a), AnyTree::Integer(b)) = (self, other) {
                        return Ok(a.$name($($argument,)* b)?.into());
                    }
                    if let (Some(a), Some(b)) = (self.launch(), other.launch()) {
                        return Ok(a.$name($($argument,)* &b)?.into());
                    }
                    if let (Some(a), Some(b)) = (self.coordinate(), other.coordinate()) {
                        return Ok(a.$name($($argument,)* &b)?.into());
                    }
                    match (self.xor(), other.xor()) {
                        (Some(a), Some(b)) => Ok(a.$name($($argument,)* &b)?.into()),
                        _ => wrong_kind(stringify!($name), RefusedOperand::Second, "a tuple of the same kind of steps"),
                    }
                }
            )*
        }
    };
}

with_another! {
    /// The modes of this tuple, then the other as one mode: [`Tree::append`].
    append();
    /// The other as one mode, then the modes of this tuple: [`Tree::prepend`].
    prepend();
    /// The tree followed by copies of the other until there are `rank` modes:
    /// [`Tree::append_to_rank`].
    append_to_rank(rank: usize);
    /// The tree preceded by copies of the other until there are `rank` modes:
    /// [`Tree::prepend_to_rank`].
    prepend_to_rank(rank: usize);
    /// The tree with one mode replaced by the other: [`Tree::replace`].
    replace(mode: usize);
    /// Mode `j` of the result holds mode `j` of both: [`Tree::zip_with`].
    zip_with();
}

impl AnyTree {
    /// The tree of integers; None if it is of another kind.
    pub fn integer(&self) -> Option<&Tree<i64>> {
        if let AnyTree::Integer(tree) = self { Some(tree) } else { None }
    }

    /// The tree with expressions as numbers; None if it has none.
    pub fn launch(&self) -> Option<Tree<Expr>> {
        match self {
            AnyTree::Integer(tree) => Some(convert::symbolic_tree(tree)),
            AnyTree::Launch(tree) => Some((**tree).clone()),
            _ => None,
        }
    }

    /// The tree of coordinate steps, or None. A number is a step in a codomain that is not a tuple.
    pub fn coordinate(&self) -> Option<Tree<CoordinateStep>> {
        match self {
            AnyTree::Coordinate(tree) => Some((**tree).clone()),
            _ => self.launch().map(|tree| convert::step_tree(&tree)),
        }
    }

    /// The tree of XOR steps, or None. The number 0 is an XOR step.
    pub fn xor(&self) -> Option<Tree<Xor>> {
        match self {
            AnyTree::Xor(tree) => Some(tree.clone()),
            _ => convert::renumbered_tree(self.integer()?, convert::no_step),
        }
    }

    /// The parts at which a coordinate is open: [`Tree::slice`].
    ///
    /// Errors: as [`Tree::slice`].
    pub fn slice(&self, coord: &AnyCoord) -> Result<AnyTree, LayoutError> {
        with_tree!(self, tree => Ok(tree.slice(&coord.launch())?.into()))
    }

    /// The parts at which a coordinate has an index: [`Tree::dice`].
    ///
    /// Errors: as [`Tree::dice`].
    pub fn dice(&self, coord: &AnyCoord) -> Result<AnyTree, LayoutError> {
        with_tree!(self, tree => Ok(tree.dice(&coord.launch())?.into()))
    }

    /// The tuple that consists of these modes, in the join of their kinds.
    ///
    /// Errors: the kinds have no join ([`LayoutError::Kind`]); it is larger or nests deeper than a
    /// tree may ([`LayoutError::TooLarge`]).
    ///
    /// ```
    /// use tilewright_layout::AnyTree;
    ///
    /// let modes: [AnyTree; 2] = ["4".parse().unwrap(), "(1@0,M)".parse().unwrap()];
    /// assert_eq!(AnyTree::tuple(&modes).unwrap().to_string(), "(4,(1@0,M))");
    /// ```
    pub fn tuple(modes: &[impl core::borrow::Borrow<AnyTree>]) -> Result<AnyTree, LayoutError> {
        let modes = || modes.iter().map(|mode| mode.borrow());
        if let Some(modes) = modes().map(AnyTree::integer).collect::<Option<Vec<_>>>() {
            return Ok(Tree::tuple(modes)?.into());
        }
        if let Some(modes) = modes().map(AnyTree::launch).collect::<Option<Vec<_>>>() {
            return Ok(Tree::tuple(&modes)?.into());
        }
        if let Some(modes) = modes().map(AnyTree::coordinate).collect::<Option<Vec<_>>>() {
            return Ok(Tree::tuple(&modes)?.into());
        }
        match modes().map(AnyTree::xor).collect::<Option<Vec<_>>>() {
            Some(modes) => Ok(Tree::tuple(&modes)?.into()),
            None => wrong_kind("tuple", RefusedOperand::Second, "a tuple of the same kind of steps"),
        }
    }

    /// The number of a tree that is a single leaf, or a tuple with one leaf; None otherwise.
    pub fn number(&self) -> Option<Cow<'_, Expr>> {
        match self {
            AnyTree::Integer(tree) => match tree.leaves() {
                [only] => Some(Cow::Owned(Expr::from(*only))),
                _ => None,
            },
            AnyTree::Launch(tree) => match tree.leaves() {
                [only] => Some(Cow::Borrowed(only)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it is a single leaf.
    pub fn is_leaf(&self) -> bool {
        self.profile().is_leaf()
    }

    /// The number of modes at the top level.
    pub fn rank(&self) -> usize {
        with_tree!(self, tree => tree.rank())
    }

    /// The depth of the nesting.
    pub fn depth(&self) -> usize {
        with_tree!(self, tree => tree.depth())
    }

    /// The nesting.
    pub fn profile(&self) -> &Profile {
        with_tree!(self, tree => tree.profile())
    }

    /// The number of leaves.
    pub fn len(&self) -> usize {
        with_tree!(self, tree => tree.leaves().len())
    }

    /// Whether it has no leaves.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The mode with this number.
    pub fn mode(&self, mode: usize) -> Option<AnyTree> {
        with_tree!(self, tree => tree.mode(mode).map(AnyTree::from))
    }
}

super::with_parameters!(AnyTree: Launch, Coordinate; Integer, Xor);

impl From<i64> for AnyTree {
    #[inline]
    fn from(number: i64) -> AnyTree {
        AnyTree::Integer(Tree::leaf(number))
    }
}

impl From<Expr> for AnyTree {
    fn from(number: Expr) -> AnyTree {
        match number.known() {
            Some(known) => AnyTree::from(known),
            None => AnyTree::Launch(Box::new(Tree::leaf(number))),
        }
    }
}

impl From<CoordinateStep> for AnyTree {
    fn from(step: CoordinateStep) -> AnyTree {
        AnyTree::from(Tree::leaf(step))
    }
}

crate::from_variants!(AnyTree: Integer(Tree<i64>));

impl From<Tree<Expr>> for AnyTree {
    fn from(tree: Tree<Expr>) -> AnyTree {
        match convert::known_tree(&tree) {
            Some(known) => AnyTree::Integer(known),
            None => AnyTree::Launch(Box::new(tree)),
        }
    }
}

impl From<Tree<CoordinateStep>> for AnyTree {
    fn from(tree: Tree<CoordinateStep>) -> AnyTree {
        match convert::plain_tree(&tree) {
            Some(numbers) => numbers.into(),
            None => AnyTree::Coordinate(Box::new(tree)),
        }
    }
}

impl From<Tree<Coordinate>> for AnyTree {
    fn from(tree: Tree<Coordinate>) -> AnyTree {
        tree.map(|step| CoordinateStep::from(step)).into()
    }
}

impl From<Tree<Xor>> for AnyTree {
    fn from(tree: Tree<Xor>) -> AnyTree {
        match convert::renumbered_tree(&tree, convert::no_bits) {
            Some(numbers) => AnyTree::Integer(numbers),
            None => AnyTree::Xor(tree),
        }
    }
}

impl AnyCoord {
    /// The indices; None if a mode is open.
    pub fn indices(&self) -> Option<AnyTree> {
        match self {
            AnyCoord::Integer(coord) => coord.indices().map(AnyTree::from),
            AnyCoord::Launch(coord) => coord.indices().map(AnyTree::from),
        }
    }
}

//! Layouts.
//!
//! Law: a layout is a tree of (extent, stride) pairs. As a function, it maps a natural coordinate,
//! with one index for each leaf, to the sum of `index * stride`. It maps an integer to the value at
//! its colexicographic coordinate: the first leaf varies fastest, and the index of the last leaf is
//! not reduced, so that past the end the last stride continues. For negative indices,
//! `L(-i) = -L(i)`.
//!
//! Invariants, checked once by the constructors: extents are positive, and their product, the size,
//! is representable. Shape and stride are congruent because there is only one tree.

use smallvec::SmallVec;

use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::value::kind::ExtentKind;
use crate::value::number::{Extent, Stride, Truth};
use crate::value::profile::{Nodes, Profile};
use crate::value::tree::{Leaves, Tree, TreeRef};

/// One leaf of a layout: `extent` positions with distance `stride`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Leaf<D: Stride = i64> {
    /// The number of positions, at least one.
    pub extent: D::Extent,
    /// The distance between neighbouring positions.
    pub stride: D,
}

/// A layout: a function from coordinates to offsets, given by a shape and a stride for each extent.
///
/// The strides are integers by default. Equality and hashing are structural: two layouts are equal
/// when they have the same shape and the same strides. For equality as functions see
/// [`Layout::equivalent`].
///
/// ```
/// use tilewright_layout::Layout;
///
/// // Four rows and eight columns, row-major.
/// let rows: Layout = "(4,8):(8,1)".parse().unwrap();
/// assert_eq!(rows.size(), 32);
/// assert_eq!(rows.eval(&2).unwrap(), 16); // index 2 is the coordinate (2,0)
/// assert_eq!(rows.to_string(), "(4,8):(8,1)");
/// ```
#[derive(PartialEq, Eq, Hash)]
pub struct Layout<D: Stride = i64> {
    tree: Tree<Leaf<D>>,
}

impl<D: Stride> Clone for Layout<D> {
    #[inline]
    fn clone(&self) -> Layout<D> {
        Layout { tree: self.tree.clone() }
    }
}

impl<D: Stride> Layout<D> {
    /// The layout with this shape and these strides.
    ///
    /// Errors: the trees are not congruent; an extent is not positive; the size is not
    /// representable; strides that cannot belong to one layout ([`LayoutError::Mixed`]).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tree};
    ///
    /// let shape: Tree<i64> = "(4,8)".parse().unwrap();
    /// let stride: Tree<i64> = "(8,1)".parse().unwrap();
    /// assert_eq!(Layout::new(&shape, &stride).unwrap().to_string(), "(4,8):(8,1)");
    /// ```
    pub fn new(shape: &Tree<D::Extent>, stride: &Tree<D>) -> Result<Layout<D>, LayoutError> {
        Layout::from_columns(shape.profile().duplicate(), shape.leaves(), stride.profile().duplicate(), stride.leaves())
    }

    #[inline]
    pub(crate) fn from_columns(
        profile: Profile,
        extents: &[D::Extent],
        stride_profile: Profile,
        strides: &[D],
    ) -> Result<Layout<D>, LayoutError> {
        if profile != stride_profile {
            return Err(LayoutError::not_congruent(&profile, &stride_profile));
        }
        let leaves = extents.iter().zip(strides);
        let leaves: Leaves<Leaf<D>> =
            leaves.map(|(extent, stride)| Leaf { extent: extent.clone(), stride: stride.clone() }).collect();
        Layout::from_tree(Tree::from_parts(profile, leaves))
    }

    /// The layout with these (extent, stride) pairs.
    ///
    /// Errors: an extent is not positive; the size is not representable; strides that cannot belong
    /// to one layout ([`LayoutError::Mixed`]).
    pub fn from_tree(tree: Tree<Leaf<D>>) -> Result<Layout<D>, LayoutError> {
        let mut size = D::Extent::one();
        for (position, leaf) in tree.leaves().iter().enumerate() {
            if !D::Extent::zero().less(&leaf.extent).proved() {
                return Err(LayoutError::extent(tree.profile(), position, &leaf.extent));
            }
            size = size.times(&leaf.extent).fits_as::<D::Extent>("size")?;
        }
        if let Some(pair) = D::clash(tree.leaves()) {
            return Err(LayoutError::mixed(tree.profile(), pair, |leaf| {
                tree.leaves().get(leaf).map(|leaf| &leaf.stride)
            }));
        }
        Ok(Layout { tree })
    }

    /// As [`Layout::from_tree`], for operations that keep the extents positive and the size
    /// representable.
    #[inline]
    pub(crate) fn from_valid(tree: Tree<Leaf<D>>) -> Layout<D> {
        debug_assert!(Layout::from_tree(tree.clone()).is_ok());
        Layout { tree }
    }

    /// An empty layout, into which an operation writes valid leaves, and then their nesting.
    ///
    /// A layout is two hundred bytes, and moving it costs more than most operations; so operations
    /// write their result to its final location.
    #[inline(always)]
    pub(crate) fn blank() -> Layout<D> {
        Layout { tree: Tree::blank() }
    }

    #[inline(always)]
    pub(crate) fn leaves_mut(&mut self) -> &mut Leaves<Leaf<D>> {
        self.tree.leaves_mut()
    }

    /// Nests the leaves as a flat tuple; a single leaf is not nested, and no leaf becomes `1:0`.
    #[inline(always)]
    pub(crate) fn nest_flat(&mut self) -> Result<(), LayoutError> {
        if self.leaves().is_empty() {
            self.leaves_mut().push(Leaf { extent: D::Extent::one(), stride: D::zero() });
        }
        self.tree.nest_flat()
    }

    /// The nodes of the profile and the leaves, which must be written consistently.
    #[inline(always)]
    pub(crate) fn parts_mut(&mut self) -> (&mut Nodes, &mut Leaves<Leaf<D>>) {
        self.tree.parts_mut()
    }

    /// The flat layout of these leaves; a single leaf is not nested, and no leaf becomes `1:0`.
    #[inline]
    pub(crate) fn flat(leaves: Leaves<Leaf<D>>) -> Result<Layout<D>, LayoutError> {
        let mut layout = Layout::blank();
        *layout.leaves_mut() = leaves;
        layout.nest_flat()?;
        Ok(layout)
    }

    /// One mode: `extent:stride`.
    ///
    /// Errors: the extent is not positive.
    pub fn mode_of(extent: D::Extent, stride: D) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(Tree::leaf(Leaf { extent, stride }))
    }

    /// The layout `1:0`.
    pub fn unit() -> Layout<D> {
        Layout { tree: Tree::leaf(Leaf { extent: D::Extent::one(), stride: D::zero() }) }
    }

    /// The tuple whose modes are the given layouts (CuTe `make_layout(l0, l1, ...)`).
    ///
    /// Errors: the size is not representable; too many leaves.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let (a, b): (Layout, Layout) = ("4:1".parse().unwrap(), "(2,3):(4,8)".parse().unwrap());
    /// assert_eq!(Layout::tuple([&a, &b]).unwrap().to_string(), "(4,(2,3)):(1,(4,8))");
    /// ```
    pub fn tuple<'a>(modes: impl IntoIterator<Item = &'a Layout<D>>) -> Result<Layout<D>, LayoutError>
    where
        D: 'a,
    {
        Layout::from_tree(Tree::tuple(modes.into_iter().map(|layout| &layout.tree))?)
    }

    /// The tree of (extent, stride) pairs.
    #[inline]
    pub fn tree(&self) -> &Tree<Leaf<D>> {
        &self.tree
    }

    #[inline]
    pub(crate) fn as_ref(&self) -> TreeRef<'_, Leaf<D>> {
        self.tree.as_ref()
    }

    /// The nesting that shape and stride share.
    #[inline]
    pub fn profile(&self) -> &Profile {
        self.tree.profile()
    }

    /// The (extent, stride) pairs, left to right.
    #[inline]
    pub fn leaves(&self) -> &[Leaf<D>] {
        self.tree.leaves()
    }

    /// The extents.
    pub fn shape(&self) -> Tree<D::Extent> {
        self.tree.map(|leaf| leaf.extent.clone())
    }

    /// The strides.
    pub fn stride(&self) -> Tree<D> {
        self.tree.map(|leaf| leaf.stride.clone())
    }

    /// The number of top-level modes; a single mode without parentheses has one.
    #[inline]
    pub fn rank(&self) -> usize {
        self.tree.rank()
    }

    /// The nesting depth: 0 for `4:1`, 1 for `(4,2):(1,4)`.
    #[inline]
    pub fn depth(&self) -> usize {
        self.tree.depth()
    }

    /// The number of coordinates: the product of the extents.
    #[inline]
    pub fn size(&self) -> D::Extent {
        let mut leaves = self.leaves().iter();
        let Some(first) = leaves.next() else { return D::Extent::one() };
        leaves.fold(first.extent.clone(), |size, leaf| match size.times(&leaf.extent) {
            Some(size) => size,
            // The constructor has checked that the product is representable.
            None => leaf.extent.clone(),
        })
    }

    /// Mode number `mode` as a layout; a single mode is its own mode 0.
    pub fn mode(&self, mode: usize) -> Option<Layout<D>> {
        Some(Layout { tree: self.tree.mode(mode)? })
    }

    /// The top-level modes, in order.
    pub fn modes(&self) -> impl Iterator<Item = Layout<D>> + '_ {
        self.tree.modes().map(|tree| Layout { tree })
    }

    /// The value at an index.
    ///
    /// At or past [`Layout::size`] the last mode continues; for negative indices, `L(-i) = -L(i)`.
    /// Errors: the value, or a partial sum, is not representable. The empty layout has a value only
    /// at index 0.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "((2,2),3):((24,2),8)".parse().unwrap();
    /// let offsets: Vec<i64> = (0..12).map(|i| layout.eval(&i).unwrap()).collect();
    /// assert_eq!(offsets, [0, 24, 2, 26, 8, 32, 10, 34, 16, 40, 18, 42]);
    /// assert_eq!(layout.eval(&12).unwrap(), 24); // past the end: the fourth step of 8
    /// ```
    #[inline]
    pub fn eval(&self, index: &D::Extent) -> Result<D, LayoutError> {
        eval_leaves(self.leaves(), index).fits_as::<D::Extent>("eval")
    }
}

impl<N: Extent> Layout<N> {
    /// The compact layout of a shape, first mode fastest: the strides are the running products of
    /// the extents (CuTe `LayoutLeft`, the default).
    ///
    /// Modes of extent 1 get stride 0.
    /// Errors: an extent is not positive; the size is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tree};
    ///
    /// let shape: Tree<i64> = "(4,(2,3))".parse().unwrap();
    /// assert_eq!(Layout::compact(&shape).unwrap().to_string(), "(4,(2,3)):(1,(4,8))");
    /// ```
    pub fn compact(shape: &Tree<N>) -> Result<Layout<N>, LayoutError> {
        compact_leaves(shape, true)
    }

    /// The compact layout of a shape, last mode fastest (CuTe `LayoutRight`).
    ///
    /// Modes of extent 1 get stride 0.
    /// Errors: as [`Layout::compact`].
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tree};
    ///
    /// let shape: Tree<i64> = "(4,(2,3))".parse().unwrap();
    /// assert_eq!(Layout::row_major(&shape).unwrap().to_string(), "(4,(2,3)):(6,(3,1))");
    /// ```
    pub fn row_major(shape: &Tree<N>) -> Result<Layout<N>, LayoutError> {
        compact_leaves(shape, false)
    }

    /// The least and the greatest offset. Negative strides have negative offsets.
    ///
    /// Errors: an offset is not representable.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,2):(-1,8)".parse().unwrap();
    /// assert_eq!(layout.range().unwrap(), (-3, 8));
    /// ```
    pub fn range(&self) -> Result<(N, N), LayoutError> {
        range_of(self.leaves())
    }

    /// The largest offset plus one: the size of the memory from offset 0.
    ///
    /// Errors: an offset is not representable.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let cosize = |text: &str| text.parse::<Layout>().unwrap().cosize().unwrap();
    /// assert_eq!(cosize("(2,3):(1,4)"), 10);
    /// assert_eq!(cosize("(4,2):(-1,8)"), 9); // 8 is the largest offset; the least is -3
    /// ```
    pub fn cosize(&self) -> Result<N, LayoutError> {
        self.range()?.1.plus(&N::one()).fits_as::<N>("cosize")
    }
}

fn range_of<N: Extent>(leaves: &[Leaf<N>]) -> Result<(N, N), LayoutError> {
    const OP: &str = "cosize";
    let (mut least, mut greatest) = (N::zero(), N::zero());
    for leaf in leaves {
        let reach = leaf.extent.minus(&N::one()).and_then(|last| leaf.stride.times(&last)).fits_as::<N>(OP)?;
        match reach.less(&N::zero()) {
            Truth::Proved => least = least.plus(&reach).fits_as::<N>(OP)?,
            Truth::Refuted => greatest = greatest.plus(&reach).fits_as::<N>(OP)?,
            Truth::Open => return Err(LayoutError::open(OP, Condition::AtMost, &N::zero(), &leaf.stride)),
        }
    }
    Ok((least, greatest))
}

/// The compact layout of a shape, taking the leaves from the left or from the right.
fn compact_leaves<N: Extent>(shape: &Tree<N>, from_left: bool) -> Result<Layout<N>, LayoutError> {
    let mut leaves: Leaves<Leaf<N>> = Leaves::new();
    let mut step = N::one();
    let mut push = |extent: &N| {
        if !N::zero().less(extent).proved() {
            let leaf = if from_left { leaves.len() } else { shape.leaves().len() - 1 - leaves.len() };
            return Err(LayoutError::extent(shape.profile(), leaf, extent));
        }
        let stride = if extent.is_one().proved() { N::zero() } else { step.clone() };
        step = step.times(extent).fits_as::<N>("size")?;
        leaves.push(Leaf { extent: extent.clone(), stride });
        Ok(())
    };
    if from_left {
        shape.leaves().iter().try_for_each(&mut push)?;
    } else {
        shape.leaves().iter().rev().try_for_each(&mut push)?;
        leaves.reverse();
    }
    Ok(Layout::from_valid(Tree::from_parts(shape.profile().duplicate(), leaves)))
}

/// The value of a list of leaves at an index, the last leaf unbounded; see `StrideKind::eval`.
#[inline]
pub(crate) fn eval_leaves<D: Stride>(leaves: &[Leaf<D>], index: &D::Extent) -> Option<D> {
    D::eval(leaves, index)
}

/// The same value, as the step of a mode of `many` positions, assuming that there are at least 2.
pub(crate) fn eval_given<D: Stride>(leaves: &[Leaf<D>], index: &D::Extent, many: &D::Extent) -> Option<D> {
    if many.known().is_some() {
        return eval_leaves(leaves, index);
    }
    let (last, front) = leaves.split_last()?;
    let (mut rest, mut value) = (index.clone(), D::zero());
    for leaf in front {
        let (quotient, digit) = rest.divide_given(&leaf.extent, &[many])?;
        value.add_times(&digit, &leaf.stride)?;
        rest = quotient;
    }
    value.add_times(&rest, &last.stride)?;
    Some(value)
}

/// The running products of the extents: the index step of each leaf, and the size at the end.
pub(crate) fn index_steps<D: Stride>(leaves: &[Leaf<D>]) -> Option<SmallVec<[D::Extent; 9]>> {
    let mut steps = SmallVec::new();
    let mut step = D::Extent::one();
    for leaf in leaves {
        steps.push(step.clone());
        step = step.times(&leaf.extent)?;
    }
    steps.push(step);
    Some(steps)
}

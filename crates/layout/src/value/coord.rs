//! Coordinates.
//!
//! Law: coordinates of a shape are counted colexicographically, the first mode fastest. An integer
//! `i` at a tuple mode means the natural coordinate with index `i`: its digits are computed by
//! division from the left, and the last digit is *not reduced*. So an index past the end is the
//! coordinate past the end of the last mode, and a negative index has the negated digits of its
//! magnitude. Hence, for a shape `S` with at least one extent and any index `i`,
//!
//! ```text
//! crd2idx(idx2crd(i, S), S) = i
//! idx2crd(crd2idx(c, S), S) = c                        for c inside S
//! L.eval_at(idx2crd(i, shape(L))) = L.eval(i)
//! ```
//!
//! A coordinate fits a shape if it is *weakly congruent* to it: an integer fits every shape; a
//! tuple fits a tuple of the same rank if its modes fit. Indices are not compared with the extents
//! (CuTe `crd2idx`, `idx2crd`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::refusal::error::{Fits, LayoutError, Path};
use crate::refusal::evidence::Condition;
use crate::value::layout::{Layout, Leaf, eval_leaves};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::profile::{Profile, ProfileRef};
use crate::value::shape::product;
use crate::value::tree::{Leaves, Tree, TreeRef};

/// A leaf of a [`Coord`]: an index, or the whole mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot<N = i64> {
    /// An index.
    At(N),
    /// The whole mode: `_`.
    All,
}

impl<N> From<N> for Slot<N> {
    fn from(index: N) -> Slot<N> {
        Slot::At(index)
    }
}

impl<N: fmt::Display> fmt::Display for Slot<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::At(index) => index.fmt(f),
            Slot::All => f.write_str("_"),
        }
    }
}

/// A coordinate in which a mode may be left open, as `_`.
///
/// ```
/// use tilewright_layout::Coord;
///
/// let column: Coord = "(_,(1,_))".parse().unwrap();
/// assert_eq!(column.to_string(), "(_,(1,_))");
/// assert!(column.indices().is_none());
/// ```
pub type Coord<N = i64> = Tree<Slot<N>>;

impl<N: Clone> Tree<Slot<N>> {
    /// The coordinate as a tree of indices; None if a mode is open.
    pub fn indices(&self) -> Option<Tree<N>> {
        self.try_map(|slot| match slot {
            Slot::At(index) => Ok(index.clone()),
            Slot::All => Err(()),
        })
        .ok()
    }
}

/// The error for a coordinate that does not fit.
#[cold]
pub(crate) fn misfit(op: &'static str, path: &[usize], shape: ProfileRef<'_>) -> LayoutError {
    LayoutError::Coordinate { op, path: path.to_vec(), shape: Box::new(shape.to_owned()) }
}

/// Refuses extents that are not positive.
pub(crate) fn check_extents<N: Extent>(shape: &Tree<N>) -> Result<(), LayoutError> {
    for (position, extent) in shape.leaves().iter().enumerate() {
        if !N::zero().less(extent).proved() {
            return Err(LayoutError::extent(shape.profile(), position, extent));
        }
    }
    Ok(())
}

impl<D: Stride> Layout<D> {
    /// The value at a coordinate, whose nesting may be less deep than that of the shape: an integer
    /// at a tuple mode is an index into that mode (CuTe `layout(coord)`,
    /// `crd2idx(coord, shape, stride)`).
    ///
    /// Errors: the coordinate does not fit the shape; the value is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tree};
    ///
    /// let layout: Layout = "(4,(2,4)):(2,(1,8))".parse().unwrap();
    /// let at = |coord: &str| layout.eval_at(&coord.parse::<Tree<i64>>().unwrap()).unwrap();
    /// assert_eq!(at("(2,(0,1))"), 12);
    /// assert_eq!(at("(2,2)"), 12); // index 2 of (2,4) is (0,1)
    /// assert_eq!(at("10"), 12); // index 10 of the whole
    /// ```
    pub fn eval_at(&self, coord: &Tree<D::Extent>) -> Result<D, LayoutError> {
        self.eval_slots(coord, |index| Some(index), "eval")
    }

    /// The value at a coordinate of any type of leaf; a leaf without an index counts as index 0.
    pub(crate) fn eval_slots<T>(
        &self,
        coord: &Tree<T>,
        index: impl Fn(&T) -> Option<&D::Extent>,
        op: &'static str,
    ) -> Result<D, LayoutError> {
        eval_coord(self.as_ref(), coord.as_ref(), &index, op, &mut Path::new())
    }
}

fn eval_coord<D: Stride, T, F: Fn(&T) -> Option<&D::Extent>>(
    layout: TreeRef<'_, Leaf<D>>,
    coord: TreeRef<'_, T>,
    index: &F,
    op: &'static str,
    path: &mut Path,
) -> Result<D, LayoutError> {
    if let (true, Some(slot)) = (coord.is_leaf(), coord.leaves.first()) {
        let Some(index) = index(slot) else { return Ok(D::zero()) };
        if layout.leaves.is_empty() && !index.is_zero().proved() {
            return Err(misfit(op, path, layout.profile));
        }
        return eval_leaves(layout.leaves, index).fits_as::<D::Extent>(op);
    }
    if layout.is_leaf() || layout.rank() != coord.rank() {
        return Err(misfit(op, path, layout.profile));
    }
    let mut value = D::zero();
    for (position, (mode, coord)) in layout.modes().zip(coord.modes()).enumerate() {
        path.push(position);
        let part = eval_coord(mode, coord, index, op, path)?;
        path.pop();
        value = value.plus(&part).fits_as::<D::Extent>(op)?;
    }
    Ok(value)
}

/// For each leaf of `coord`, the extents of the part of the shape that it indexes.
///
/// Errors: the coordinate does not fit the shape.
fn counted<'a, N, T>(
    coord: TreeRef<'_, T>,
    shape: TreeRef<'a, N>,
    op: &'static str,
    path: &mut Path,
    out: &mut Vec<&'a [N]>,
) -> Result<(), LayoutError> {
    if coord.is_leaf() {
        out.push(shape.leaves);
        return Ok(());
    }
    if shape.is_leaf() || shape.rank() != coord.rank() {
        return Err(misfit(op, path, shape.profile));
    }
    for (position, (coord, mode)) in coord.modes().zip(shape.modes()).enumerate() {
        path.push(position);
        counted(coord, mode, op, path, out)?;
        path.pop();
    }
    Ok(())
}

/// The index of a coordinate in a shape (CuTe `crd2idx(coord, shape)`).
///
/// An integer is already an index and is returned unchanged. An index past the end of its mode
/// continues in the next mode. Errors: the coordinate does not fit the shape; an extent is not
/// positive; the index is not representable.
///
/// ```
/// use tilewright_layout::{Tree, crd2idx};
///
/// let (coord, shape): (Tree<i64>, Tree<i64>) = ("(1,(0,1))".parse().unwrap(), "(4,(2,3))".parse().unwrap());
/// assert_eq!(crd2idx(&coord, &shape).unwrap(), 9);
/// ```
pub fn crd2idx<N: Extent>(coord: &Tree<N>, shape: &Tree<N>) -> Result<N, LayoutError> {
    const OP: &str = "crd2idx";
    check_extents(shape)?;
    let mut pieces = Vec::new();
    counted(coord.as_ref(), shape.as_ref(), OP, &mut Path::new(), &mut pieces)?;
    // The step of a mode is needed only if its index is not 0; otherwise it may be too large to
    // represent.
    let mut step = Some(N::one());
    let mut sum = N::zero();
    for (index, extents) in coord.leaves().iter().zip(pieces) {
        if !index.is_zero().proved() {
            let part = step.as_ref().and_then(|step| step.times(index));
            sum = part.and_then(|part| sum.plus(&part)).fits_as::<N>(OP)?;
        }
        step = step.and_then(|step| step.times(&product(extents)?));
    }
    Ok(sum)
}

/// The natural coordinate with the given index: one index for every leaf of the shape (CuTe
/// `idx2crd`).
///
/// `index` may be a tuple, whose modes are indices into the modes of the shape. The last digit of
/// each index is not reduced.
/// Errors: the tuple does not fit the shape; an extent is not positive; an index other than 0 into
/// the empty shape.
///
/// ```
/// use tilewright_layout::{Tree, idx2crd};
///
/// let coord = |index: &str, shape: &str| {
///     let (index, shape): (Tree<i64>, Tree<i64>) = (index.parse().unwrap(), shape.parse().unwrap());
///     idx2crd(&index, &shape).unwrap().to_string()
/// };
/// assert_eq!(coord("9", "(4,(2,3))"), "(1,(0,1))");
/// assert_eq!(coord("(1,2)", "(4,(2,3))"), "(1,(0,1))");
/// assert_eq!(coord("7", "(2,3)"), "(1,3)"); // past the end
/// ```
pub fn idx2crd<N: Extent>(index: &Tree<N>, shape: &Tree<N>) -> Result<Tree<N>, LayoutError> {
    const OP: &str = "idx2crd";
    check_extents(shape)?;
    let mut pieces = Vec::new();
    counted(index.as_ref(), shape.as_ref(), OP, &mut Path::new(), &mut pieces)?;
    let mut digits: Leaves<N> = Leaves::new();
    for (position, (number, extents)) in index.leaves().iter().zip(pieces).enumerate() {
        let Some((_, front)) = extents.split_last() else {
            // The empty shape has only the coordinate (), of index 0.
            if number.is_zero().proved() {
                continue;
            }
            return Err(misfit(OP, &index.profile().path(position), Profile::flat(0)?.as_ref()));
        };
        let mut rest = number.clone();
        for extent in front {
            let (quotient, digit) = rest.divide(extent).fits_as::<N>(OP)?;
            digits.push(digit);
            rest = quotient;
        }
        digits.push(rest);
    }
    Tree::new(shape.profile().duplicate(), digits)
}

/// The coordinate in shape `to` with the same index as `coord` has in shape `from` (CuTe
/// `crd2crd`).
///
/// If the modes of both shapes have equal sizes, each mode of the coordinate is converted
/// separately. Errors: the sizes differ; the coordinate does not fit `from`; an extent is not
/// positive.
///
/// ```
/// use tilewright_layout::{Tree, crd2crd};
///
/// let tree = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// assert_eq!(crd2crd(&tree("(1,2)"), &tree("(2,3)"), &tree("(3,2)")).unwrap(), tree("(2,1)"));
/// ```
pub fn crd2crd<N: Extent>(coord: &Tree<N>, from: &Tree<N>, to: &Tree<N>) -> Result<Tree<N>, LayoutError> {
    const OP: &str = "crd2crd";
    check_extents(from)?;
    check_extents(to)?;
    let left = product(from.leaves()).fits_as::<N>(OP)?;
    let right = product(to.leaves()).fits_as::<N>(OP)?;
    match left.same(&right) {
        Truth::Proved => idx2crd(&Tree::leaf(crd2idx(coord, from)?), to),
        truth => Err(match (left.known(), right.known(), truth) {
            (Some(left), Some(right), _) => LayoutError::Size { op: OP, left, right },
            _ => LayoutError::open(OP, Condition::Equal, &left, &right),
        }),
    }
}

/// The coordinate after this one in colexicographic order; the last mode has no end (CuTe
/// `increment`).
///
/// Errors: the coordinate does not fit the shape; the shape has no mode; an extent is not positive.
///
/// ```
/// use tilewright_layout::{Tree, increment};
///
/// let tree = |text: &str| text.parse::<Tree<i64>>().unwrap();
/// assert_eq!(increment(&tree("(3,2)"), &tree("(4,8)")).unwrap(), tree("(0,3)"));
/// assert_eq!(increment(&tree("(3,7)"), &tree("(4,8)")).unwrap(), tree("(0,8)")); // past the end
/// ```
pub fn increment<N: Extent>(coord: &Tree<N>, shape: &Tree<N>) -> Result<Tree<N>, LayoutError> {
    const OP: &str = "increment_coord";
    check_extents(shape)?;
    let mut pieces = Vec::new();
    counted(coord.as_ref(), shape.as_ref(), OP, &mut Path::new(), &mut pieces)?;
    let mut leaves: Leaves<N> = coord.leaves().iter().cloned().collect();
    let count = leaves.len();
    if count == 0 {
        return Err(LayoutError::Argument { op: OP, what: "the number of modes", value: 0, wanted: "at least 1" });
    }
    let mut carry = N::one();
    for (position, (index, extents)) in leaves.iter_mut().zip(pieces).enumerate() {
        let next = index.plus(&carry).fits_as::<N>(OP)?;
        // A mode whose size is not representable contains every representable index.
        let end = if position + 1 == count { None } else { product(extents) };
        let Some(end) = end else {
            *index = next;
            break;
        };
        // An index that passes the end becomes 0, and the next index advances.
        let past = next.reaches(&end).ok_or_else(|| LayoutError::open(OP, Condition::Ordered, &next, &end))?;
        let back = next.times(&past).and_then(|past| next.minus(&past));
        *index = back.fits_as::<N>(OP)?;
        if past.is_zero().proved() {
            break;
        }
        carry = past;
    }
    Ok(Tree::from_parts(coord.profile().duplicate(), leaves))
}

/// Every coordinate of a shape, in colexicographic order: those of index 0, 1, 2, and so on.
///
/// Errors: an extent is not positive; the size is not representable.
///
/// ```
/// use tilewright_layout::{Tree, coordinates};
///
/// let shape: Tree<i64> = "(2,(1,2))".parse().unwrap();
/// let all: Vec<String> = coordinates(&shape).unwrap().map(|coord| coord.to_string()).collect();
/// assert_eq!(all, ["(0,(0,0))", "(1,(0,0))", "(0,(0,1))", "(1,(0,1))"]);
/// ```
pub fn coordinates(shape: &Tree<i64>) -> Result<Coordinates, LayoutError> {
    check_extents(shape)?;
    let left = product(shape.leaves()).fits("size")?;
    Ok(Coordinates { extents: shape.leaves().iter().copied().collect(), next: shape.map(|_| 0), left })
}

/// An iterator over the coordinates of a shape; see [`coordinates`].
#[derive(Debug, Clone)]
pub struct Coordinates {
    extents: Leaves<i64>,
    next: Tree<i64>,
    left: i64,
}

impl Iterator for Coordinates {
    type Item = Tree<i64>;

    fn next(&mut self) -> Option<Tree<i64>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let mut carry = true;
        let mut extents = self.extents.iter();
        let next = self.next.map(|index| {
            let extent = extents.next().copied().unwrap_or(1);
            if !carry {
                return *index;
            }
            carry = index + 1 == extent;
            if carry { 0 } else { index + 1 }
        });
        Some(core::mem::replace(&mut self.next, next))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match usize::try_from(self.left) {
            Ok(left) => (left, Some(left)),
            Err(_) => (usize::MAX, None),
        }
    }
}

//! Thread-value layouts: which element of a tile belongs to which thread, as which of its values.
//!
//! A thread layout numbers the threads of a grid, and a value layout the elements that each of them
//! holds. Side by side in every mode, the blocks of values in the arrangement of the threads, they
//! make a tile of `size(thr[i]) * size(val[i])` in mode `i`.
//!
//! Law: for every coordinate `t` of `thr` and `v` of `val`, counted by mode,
//!
//! ```text
//! tv(thr(t), val(v)) = index in the tile of the coordinate with  m[i] = v[i] + size(val[i]) * t[i]
//! ```
//!
//! So `tv` is a bijection from (thread, value) onto the tile. It is CuTe's
//! `right_inverse(raked_product(thr, val))` after the shape `(size(thr), size(val))`. Here it is
//! computed from the law: place the steps of `thr` and of `val` in the tile, and go from numbers to
//! coordinates by their right inverses. Both numberings must be one-to-one onto `0, 1, ..`, or some
//! element would have no owner or two.

use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Extent;
use crate::value::tree::{Leaves, Tree};

const OP: &str = "make_layout_tv";

/// The shape of the tile, by mode, and the layout from (thread, value) to the colexicographic index
/// in the tile (CuTe `make_layout_tv`).
///
/// The operand of lower rank is filled up with modes of extent 1. Mode 0 of the result has
/// `size(thr)` threads, mode 1 `size(val)` values.
///
/// Errors: a numbering is not one-to-one onto `0, 1, ..` ([`LayoutError::Argument`]); the size of
/// the tile is not representable.
///
/// ```
/// use tilewright_layout::{Layout, make_layout_tv};
///
/// // 4 x 64 threads, rows of 64 next to each other, each holding 16 x 8 values, row by row.
/// let thr: Layout = "(4,64):(64,1)".parse().unwrap();
/// let val: Layout = "(16,8):(8,1)".parse().unwrap();
/// let (tiler, tv) = make_layout_tv(&thr, &val).unwrap();
/// assert_eq!(tiler.to_string(), "(64,512)");
/// assert_eq!(tv.to_string(), "((64,4),(8,16)):((512,16),(64,1))");
/// ```
pub fn make_layout_tv<N: Extent>(thr: &Layout<N>, val: &Layout<N>) -> Result<(Tree<N>, Layout<N>), LayoutError> {
    let (mut threads, mut values) = (thr.modes(), val.modes());
    let (mut thread_leaves, mut value_leaves) = (Leaves::new(), Leaves::new());
    let mut extents: Leaves<N> = Leaves::new();
    let mut step = N::one();
    loop {
        let (thread, value) = (threads.next(), values.next());
        if thread.is_none() && value.is_none() {
            break;
        }
        // Within the mode the values are next to each other, and a thread begins where the one
        // before ends.
        let begin = step.clone();
        for (mode, out) in [(value, &mut value_leaves), (thread, &mut thread_leaves)] {
            for leaf in mode.iter().flat_map(Layout::leaves) {
                out.push(Leaf { extent: leaf.extent.clone(), stride: step.clone() });
                step = step.times(&leaf.extent).fits_as::<N>(OP)?;
            }
        }
        extents.push(step.divide(&begin).fits_as::<N>(OP)?.0);
    }
    let by_thread = numbered(
        thr,
        thread_leaves,
        ["the number of threads that have the numbers 0, 1, .. without a gap", "that of all"],
    )?;
    let by_value = numbered(
        val,
        value_leaves,
        ["the number of values that have the numbers 0, 1, .. without a gap", "that of all"],
    )?;
    Ok((Tree::flat(extents)?, Layout::tuple([&by_thread, &by_value])?))
}

/// From a number to the place in the tile: the places `leaves` of the coordinates, after the way
/// from numbers to coordinates.
fn numbered<N: Extent>(
    numbering: &Layout<N>,
    leaves: Leaves<Leaf<N>>,
    [what, wanted]: [&'static str; 2],
) -> Result<Layout<N>, LayoutError> {
    let inverse = numbering.right_inverse()?;
    let (reached, size) = (inverse.size(), numbering.size());
    if !reached.same(&size).proved() {
        return Err(match reached.known() {
            Some(value) if size.known().is_some() => LayoutError::Argument { op: OP, what, value, wanted },
            _ => LayoutError::open(OP, Condition::Equal, &reached, &size),
        });
    }
    let places = Layout::from_tree(Tree::new(numbering.profile().clone(), leaves)?)?;
    places.compose(&inverse)
}

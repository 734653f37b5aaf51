//! Thread-value layouts: the element of a tile for each thread and value.
//!
//! A thread layout maps coordinates to thread numbers, and a value layout maps coordinates to the
//! numbers of a thread's values. In every mode, the tile consists of the blocks of values in the
//! arrangement of the threads: its extent in mode `i` is `size(thr[i]) * size(val[i])`.
//!
//! Law: for every coordinate `t` of `thr` and `v` of `val`, counted by mode,
//!
//! ```text
//! tv(thr(t), val(v)) = index in the tile of the coordinate with  m[i] = v[i] + size(val[i]) * t[i]
//! ```
//!
//! So `tv` is a bijection from (thread, value) onto the tile. It is CuTe's
//! `right_inverse(raked_product(thr, val))` after the shape `(size(thr), size(val))`. Here it is
//! computed from the law: the steps of `thr` and of `val` in the tile are composed with their right
//! inverses, which map numbers to coordinates. Both layouts must be bijections onto `0, 1, ..`;
//! otherwise an element would have no thread, or two.

use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Extent;
use crate::value::tree::{Leaves, Tree};

const OP: &str = "make_layout_tv";

/// The shape of the tile, by mode, and the layout from (thread, value) to the colexicographic index
/// in the tile (CuTe `make_layout_tv`).
///
/// The operand of lower rank is extended with modes of extent 1. Mode 0 of the result has
/// `size(thr)` threads, mode 1 `size(val)` values.
///
/// Errors: a layout is not a bijection onto `0, 1, ..` ([`LayoutError::Argument`]); the size of the
/// tile is not representable.
///
/// ```
/// use tilewright_layout::{Layout, make_layout_tv};
///
/// // 4 x 64 threads, row-major, each with 16 x 8 values, row-major.
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
        // Within the mode the values of a thread are adjacent, and a thread begins where the
        // previous one ends.
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

/// The layout from a number to the index in the tile: `leaves`, the steps of the coordinates in the
/// tile, after the right inverse, from numbers to coordinates.
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

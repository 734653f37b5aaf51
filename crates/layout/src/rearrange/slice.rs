//! Slicing: fixing some modes and keeping the others.
//!
//! Law: `slice(c, t)` keeps what `c` leaves open (`_`) and `dice(c, t)` keeps what `c` fixes. A
//! kept mode keeps its nesting; if `c` has a tuple at a mode, the kept parts of that mode become
//! modes of the tuple above (CuTe's `slice` and `dice`). For a layout `L` and a coordinate `c` that
//! fits its shape, `(R, offset) = slice_and_offset(c, L)` satisfies
//!
//! ```text
//! L(c with its open modes filled by d) = offset + R(d)        for every coordinate d of R
//! ```
//!
//! Extents are not checked, as for every coordinate: past its end, a mode continues with its
//! stride.

use crate::refusal::error::{LayoutError, Path};
use crate::value::coord::{Coord, Slot, misfit};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::tree::{Gatherer, Tree, TreeRef};

/// The kind of entries of a coordinate whose modes are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Open,
    Fixed,
}

impl<T: Clone> Tree<T> {
    /// The modes for which `coord` is `_` (CuTe `slice`). The coordinate `_` keeps the whole tree;
    /// a single index leaves `()`.
    ///
    /// Errors: the coordinate nests more deeply than the tree, or a rank differs.
    ///
    /// ```
    /// use tilewright_layout::{Coord, Tree};
    ///
    /// let shape: Tree<i64> = "(2,(3,4))".parse().unwrap();
    /// let slice = |coord: &str| shape.slice(&coord.parse::<Coord>().unwrap()).unwrap().to_string();
    /// assert_eq!(slice("(_,(1,_))"), "(2,4)");
    /// assert_eq!(slice("(1,_)"), "((3,4))");
    /// ```
    pub fn slice<N: Clone>(&self, coord: &Coord<N>) -> Result<Tree<T>, LayoutError> {
        keep(self, coord, Keep::Open, "slice")
    }

    /// The modes for which `coord` has an index (CuTe `dice`). A single index keeps the whole tree;
    /// `_` leaves `()`.
    ///
    /// Errors: as [`Tree::slice`].
    ///
    /// ```
    /// use tilewright_layout::{Coord, Tree};
    ///
    /// let shape: Tree<i64> = "(2,(3,4))".parse().unwrap();
    /// assert_eq!(shape.dice(&"(_,(1,_))".parse::<Coord>().unwrap()).unwrap().to_string(), "(3)");
    /// ```
    pub fn dice<N: Clone>(&self, coord: &Coord<N>) -> Result<Tree<T>, LayoutError> {
        keep(self, coord, Keep::Fixed, "dice")
    }
}

impl<D: Stride> Layout<D> {
    /// The modes that `coord` leaves open (CuTe `slice`): the sublayout of the coordinates with the
    /// fixed indices.
    ///
    /// Its offset is that of [`Layout::slice_and_offset`]. Errors: the coordinate does not fit the
    /// shape.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,(2,4)):(2,(1,8))".parse().unwrap();
    /// let slice = |coord: &str| layout.slice(&coord.parse().unwrap()).unwrap().to_string();
    /// assert_eq!(slice("(0,(_,_))"), "(2,4):(1,8)");
    /// assert_eq!(slice("(0,_)"), "((2,4)):((1,8))"); // a kept mode keeps its nesting
    /// ```
    pub fn slice(&self, coord: &Coord<D::Extent>) -> Result<Layout<D>, LayoutError> {
        Ok(Layout::from_valid(keep(self.tree(), coord, Keep::Open, "slice")?))
    }

    /// The modes that `coord` fixes (CuTe `dice`).
    ///
    /// Errors: the coordinate does not fit the shape.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,(2,4)):(2,(1,8))".parse().unwrap();
    /// assert_eq!(layout.dice(&"(0,(_,1))".parse().unwrap()).unwrap().to_string(), "(4,4):(2,8)");
    /// ```
    pub fn dice(&self, coord: &Coord<D::Extent>) -> Result<Layout<D>, LayoutError> {
        Ok(Layout::from_valid(keep(self.tree(), coord, Keep::Fixed, "dice")?))
    }

    /// The slice and its offset: the value at `coord` with 0 for its open modes (CuTe
    /// `slice_and_offset`).
    ///
    /// Errors: the coordinate does not fit the shape; the offset is not representable.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,8):(8,1)".parse().unwrap();
    /// let (row, offset) = layout.slice_and_offset(&"(2,_)".parse().unwrap()).unwrap();
    /// assert_eq!((row.to_string().as_str(), offset), ("(8):(1)", 16));
    /// ```
    pub fn slice_and_offset(&self, coord: &Coord<D::Extent>) -> Result<(Layout<D>, D), LayoutError> {
        let offset = self.eval_slots(
            coord,
            |slot| match slot {
                Slot::At(index) => Some(index),
                Slot::All => None,
            },
            "slice",
        )?;
        Ok((self.slice(coord)?, offset))
    }

    /// The layout with its origin moved to `coord`, and the offset of `coord`: the value of the
    /// result at `c`, plus the offset, is the value of this layout at `c + coord` (CuTe
    /// `domain_offset`).
    ///
    /// The returned layout equals this one, because its steps are the same everywhere. The identity
    /// holds if the sum `c + coord` does not carry out of a mode, so it always holds for natural
    /// coordinates. With XOR strides the steps are the same only from certain indices on; from
    /// other indices no layout satisfies the identity. Errors: the coordinate does not fit the
    /// shape; the offset is not representable; an XOR mode has other steps from its index on
    /// ([`LayoutError::Argument`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(4,8):(8,1)".parse().unwrap();
    /// assert_eq!(layout.domain_offset(&"(1,2)".parse().unwrap()).unwrap(), (layout.clone(), 10));
    /// ```
    pub fn domain_offset(&self, coord: &Tree<D::Extent>) -> Result<(Layout<D>, D), LayoutError> {
        const OP: &str = "domain_offset";
        let offset = self.eval_slots(coord, |index| Some(index), OP)?;
        if !D::DISTRIBUTES {
            refuse_uneven_start(self.as_ref(), coord.as_ref(), OP)?;
        }
        Ok((self.clone(), offset))
    }
}

/// Refuses a coordinate from whose index on an XOR mode has other steps.
fn refuse_uneven_start<D: Stride>(
    layout: TreeRef<'_, Leaf<D>>,
    coord: TreeRef<'_, D::Extent>,
    op: &'static str,
) -> Result<(), LayoutError> {
    let ([index], true) = (coord.leaves, coord.is_leaf()) else {
        return layout.modes().zip(coord.modes()).try_for_each(|(mode, coord)| refuse_uneven_start(mode, coord, op));
    };
    let (mut rest, last) = (index.clone(), layout.leaves.len().saturating_sub(1));
    for (position, leaf) in layout.leaves.iter().enumerate() {
        let split = rest.divide(&leaf.extent).filter(|_| position < last);
        let (next, digit) = split.unwrap_or((D::Extent::zero(), rest));
        if !leaf.stride.repeats(&leaf.extent, &digit).proved() {
            let value = digit.known().unwrap_or_default();
            let (what, wanted) = ("an index of a mode", "one from which on the steps are those from 0 on");
            return Err(LayoutError::Argument { op, what, value, wanted });
        }
        rest = next;
    }
    Ok(())
}

fn keep<T: Clone, N: Clone>(
    tree: &Tree<T>,
    coord: &Coord<N>,
    keep: Keep,
    op: &'static str,
) -> Result<Tree<T>, LayoutError> {
    if coord.is_leaf() && coord.leaves().iter().all(|slot| keeps(slot, keep)) {
        return Ok(tree.clone());
    }
    let mut out = Gatherer::new();
    out.open();
    if !coord.is_leaf() {
        keep_modes(tree.as_ref(), coord.as_ref(), keep, op, &mut out, &mut Path::new())?;
    }
    out.close();
    out.finish()
}

fn keeps<N>(slot: &Slot<N>, keep: Keep) -> bool {
    matches!(slot, Slot::All) == (keep == Keep::Open)
}

/// Appends the kept parts of the modes of `tree` for a tuple `coord`.
fn keep_modes<T: Clone, N>(
    tree: TreeRef<'_, T>,
    coord: TreeRef<'_, Slot<N>>,
    keep: Keep,
    op: &'static str,
    out: &mut Gatherer<T>,
    path: &mut Path,
) -> Result<(), LayoutError> {
    if tree.is_leaf() || tree.rank() != coord.rank() {
        return Err(misfit(op, path, tree.profile));
    }
    for (position, (mode, coord)) in tree.modes().zip(coord.modes()).enumerate() {
        if !coord.is_leaf() {
            path.push(position);
            keep_modes(mode, coord, keep, op, out, path)?;
            path.pop();
        } else if coord.leaves.iter().all(|slot| keeps(slot, keep)) {
            out.append(mode);
        }
    }
    Ok(())
}

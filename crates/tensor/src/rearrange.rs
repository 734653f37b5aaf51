//! Rearrangements of the domain of a tensor.
//!
//! Law: a rearrangement turns a map `L` into `L o f`, where `f` maps into the coordinates of `L`.
//! So the result reaches no element that `L` does not. A layout can be evaluated past the end of a
//! mode, but memory ends there. So an index outside its mode, a tile larger than its mode, and
//! tiles that cover more than their mode are refused here. Identity tensors have no memory: there,
//! tiles may cover more, and a predicate says which coordinates are inside.
//!
//! If a tile is a layout, `f` is found by rearranging the compact layout of the shape in the same
//! way, because its offsets are indices. `f` is one to one exactly if that result is.

use std::ops::Range;

use tilewright_layout::{
    Composed, Coord, Coordinate, DivideForm, Layout, LayoutError, Profile, Slot, Stride, Tiler, Tree,
};

use crate::error::TensorError;

/// One rearrangement of a domain.
#[derive(Debug, Clone, PartialEq)]
pub enum Rearrangement {
    /// The slice at these indices; modes under `_` stay whole.
    Slice(Coord),
    /// Of `((tiles),(rests))`, the tile at these indices of the rests; modes of the rests without
    /// an index stay.
    Inner(Coord),
    /// Of `((tiles),(rests))`, the rests at these indices of the tile; modes of the tile without an
    /// index stay.
    Outer(Coord),
    /// Composition: the elements at the indices that a layout lists, in its order.
    Compose(Layout),
    /// Composition mode by mode: the elements of each mode at the indices of its part of a tiler.
    ComposeBy(Tiler),
    /// The division into tiles and the rests, which run over the tiles.
    Divide(DivideForm, Tiler),
    /// Some modes as one.
    Group(Range<usize>),
    /// All leaves in one flat tuple.
    Flatten,
    /// The fewest modes that keep the offset at every index.
    Coalesce,
    /// The fewest modes within each leaf of a nesting that keep the offset at every index.
    CoalesceBy(Profile),
    /// Some modes, in some order, at index 0 of the others.
    Select(Vec<usize>),
}

impl Rearrangement {
    /// An error for a rearrangement with coordinates outside a shape: a slice beyond an extent, a
    /// layout beyond the last index, tiles that do not cover a mode evenly. All other
    /// rearrangements stay inside.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tree};
    /// use tilewright_tensor::Rearrangement;
    ///
    /// let shape: Tree<i64> = "(4,6)".parse().unwrap();
    /// let every_other: Layout = "12:2".parse().unwrap();
    /// assert!(Rearrangement::Compose(every_other).check(&shape).is_ok());
    /// let beyond: Layout = "13:2".parse().unwrap();
    /// assert_eq!(Rearrangement::Compose(beyond).check(&shape).unwrap_err().code(), "E0405");
    /// ```
    ///
    /// Errors: E0403, E0405, E0406; a coordinate that does not fit the shape.
    pub fn check(&self, shape: &Tree<i64>) -> Result<(), TensorError> {
        let slice = |coord: &Coord| match inside(coord, shape)? {
            true => Ok(()),
            false => Err(TensorError::Coordinate { coord: Box::new(coord.clone()), shape: Box::new(shape.clone()) }),
        };
        match self {
            Rearrangement::Slice(coord) => slice(coord),
            Rearrangement::Inner(coord) => slice(&of_pair(shape, coord, 1)?),
            Rearrangement::Outer(coord) => slice(&of_pair(shape, coord, 0)?),
            Rearrangement::Compose(b) => check_tile(b, shape, &[]),
            Rearrangement::ComposeBy(tiler) => check_tiler(tiler, shape, &mut Vec::new(), &check_tile),
            Rearrangement::Divide(_, tiler) => check_tiler(tiler, shape, &mut Vec::new(), &check_tiles),
            _ => Ok(()),
        }
    }

    /// Whether the rearrangement may name a coordinate twice.
    pub(crate) fn may_repeat(&self) -> bool {
        use Rearrangement::{Compose, ComposeBy, Divide, Select};
        matches!(self, Compose(_) | ComposeBy(_) | Divide(..) | Select(_))
    }
}

/// A map whose domain can be rearranged: [`Layout`], [`Composed`], and the layout of coordinates of
/// an identity tensor.
pub trait Rearrange: Clone + sealed::Sealed {
    /// The type of what a slice adds to the values of its map.
    type Start: Stride;

    /// The slice at a coordinate, and the value that its indices contribute.
    #[doc(hidden)]
    fn sliced(&self, coord: &Coord) -> Result<(Self, Self::Start), LayoutError>;

    #[doc(hidden)]
    fn composed(&self, b: &Layout) -> Result<Self, LayoutError>;

    #[doc(hidden)]
    fn composed_by(&self, tiler: &Tiler) -> Result<Self, LayoutError>;

    #[doc(hidden)]
    fn divided(&self, form: DivideForm, tiler: &Tiler) -> Result<Self, LayoutError>;

    #[doc(hidden)]
    fn grouped(&self, modes: Range<usize>) -> Result<Self, LayoutError>;

    #[doc(hidden)]
    fn flattened(&self) -> Result<Self, LayoutError>;

    #[doc(hidden)]
    fn coalesced(&self, profile: Option<&Profile>) -> Result<Self, LayoutError>;

    #[doc(hidden)]
    fn selected(&self, modes: &[usize]) -> Result<Self, LayoutError>;

    /// The extents.
    #[doc(hidden)]
    fn extents(&self) -> Tree<i64>;
}

mod sealed {
    use tilewright_layout::{Composed, Coordinate, Layout};

    pub trait Sealed {}
    impl Sealed for Layout {}
    impl Sealed for Composed {}
    impl Sealed for Layout<Coordinate> {}
}

/// The methods that layouts of every kind have under the same names.
macro_rules! domain {
    () => {
        fn composed(&self, b: &Layout) -> Result<Self, LayoutError> {
            self.compose(b)
        }

        fn composed_by(&self, tiler: &Tiler) -> Result<Self, LayoutError> {
            self.compose_tiler(tiler)
        }

        fn divided(&self, form: DivideForm, tiler: &Tiler) -> Result<Self, LayoutError> {
            self.divide(form, tiler)
        }

        fn grouped(&self, modes: Range<usize>) -> Result<Self, LayoutError> {
            self.group(modes)
        }

        fn flattened(&self) -> Result<Self, LayoutError> {
            self.flatten()
        }

        fn coalesced(&self, profile: Option<&Profile>) -> Result<Self, LayoutError> {
            match profile {
                Some(profile) => self.coalesce_by(profile),
                None => self.coalesce(),
            }
        }

        fn selected(&self, modes: &[usize]) -> Result<Self, LayoutError> {
            self.select(modes)
        }

        fn extents(&self) -> Tree<i64> {
            self.shape()
        }
    };
}

impl Rearrange for Layout {
    type Start = i64;

    fn sliced(&self, coord: &Coord) -> Result<(Layout, i64), LayoutError> {
        self.slice_and_offset(coord)
    }

    domain!();
}

impl Rearrange for Composed {
    type Start = i64;

    fn sliced(&self, coord: &Coord) -> Result<(Composed, i64), LayoutError> {
        // The slice keeps its offset within the map, because the outer map need not preserve sums.
        Ok((self.slice(coord)?, 0))
    }

    domain!();
}

impl Rearrange for Layout<Coordinate> {
    type Start = Coordinate;

    fn sliced(&self, coord: &Coord) -> Result<(Layout<Coordinate>, Coordinate), LayoutError> {
        self.slice_and_offset(coord)
    }

    domain!();
}

/// The map after one rearrangement, and the value that the rearrangement adds. With `covering`,
/// tiles may cover more than their mode.
pub(crate) fn rearranged<L: Rearrange>(
    map: &L,
    how: &Rearrangement,
    covering: bool,
) -> Result<(L, L::Start), TensorError> {
    let shape = map.extents();
    match how {
        Rearrangement::Divide(_, tiler) if covering => check_tiler(tiler, &shape, &mut Vec::new(), &check_tile)?,
        _ => how.check(&shape)?,
    }
    let whole = |map: Result<L, LayoutError>| Ok((map?, L::Start::zero()));
    match how {
        Rearrangement::Slice(coord) => Ok(map.sliced(coord)?),
        Rearrangement::Inner(coord) => Ok(map.sliced(&of_pair(&shape, coord, 1)?)?),
        Rearrangement::Outer(coord) => Ok(map.sliced(&of_pair(&shape, coord, 0)?)?),
        Rearrangement::Compose(b) => whole(map.composed(b)),
        Rearrangement::ComposeBy(tiler) => whole(map.composed_by(tiler)),
        Rearrangement::Divide(form, tiler) => whole(map.divided(*form, tiler)),
        Rearrangement::Group(modes) => whole(map.grouped(modes.clone())),
        Rearrangement::Flatten => whole(map.flattened()),
        Rearrangement::Coalesce => whole(map.coalesced(None)),
        Rearrangement::CoalesceBy(profile) => whole(map.coalesced(Some(profile))),
        Rearrangement::Select(modes) => whole(map.selected(modes)),
    }
}

/// `((tiles),(rests))`, where the last tiles may reach past the end of their modes.
pub(crate) fn covering_tiles<L: Rearrange>(map: &L, tiler: &Tiler) -> Result<L, TensorError> {
    Ok(rearranged(map, &Rearrangement::Divide(DivideForm::Zipped, tiler.clone()), true)?.0)
}

/// The coordinate of a pair of modes that fixes mode `fixed` at `coord`, as far as `coord` has
/// indices, and leaves the other mode open, each of its modes separately.
pub(crate) fn of_pair(shape: &Tree<i64>, coord: &Coord, fixed: usize) -> Result<Coord, LayoutError> {
    let open = |mode: &Tree<i64>| Tree::flat(std::iter::repeat_n(Slot::All, mode.rank()));
    let Some(mode) = shape.mode(fixed).filter(|_| shape.rank() == 2) else {
        return Err(LayoutError::Rank { op: "slice", path: Vec::new(), expected: 2, found: shape.rank() });
    };
    if !coord.is_leaf() && coord.rank() > mode.rank() {
        let (op, path, shape) = ("partition", Vec::new(), Box::new(mode.profile().clone()));
        return Err(LayoutError::Coordinate { op, path, shape });
    }
    let all = Tree::leaf(Slot::All);
    let coord = if coord.is_leaf() { coord.clone() } else { coord.append_to_rank(mode.rank(), &all)? };
    let kept = match shape.mode(1 - fixed) {
        Some(mode) if !mode.is_leaf() => open(&mode)?,
        _ => all,
    };
    if fixed == 0 { Tree::tuple([&coord, &kept]) } else { Tree::tuple([&kept, &coord]) }
}

/// Whether each index is inside its mode. The layout algebra refuses a coordinate that does not fit
/// the shape.
fn inside(coord: &Coord, shape: &Tree<i64>) -> Result<bool, LayoutError> {
    if coord.is_leaf() {
        return Ok(match coord.leaves() {
            [Slot::At(index)] => (*index as u64) < size_of(shape)? as u64,
            _ => true,
        });
    }
    for (coord, mode) in coord.modes().zip(shape.modes()) {
        if !inside(&coord, &mode)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn size_of(shape: &Tree<i64>) -> Result<i64, LayoutError> {
    shape.product()
}

/// An error if a layout has values outside the indices of a shape.
fn check_tile(tile: &Layout, shape: &Tree<i64>, path: &[usize]) -> Result<(), TensorError> {
    let (size, (least, greatest)) = (size_of(shape)?, tile.range()?);
    if least < 0 || greatest >= size {
        return Err(TensorError::Tile {
            tile: tile.to_string().into(),
            path: path.to_vec(),
            range: (least, greatest),
            extent: size,
        });
    }
    Ok(())
}

/// An error if a tile has values outside the indices of a shape, or if its copies do not cover the
/// shape evenly.
fn check_tiles(tile: &Layout, shape: &Tree<i64>, path: &[usize]) -> Result<(), TensorError> {
    check_tile(tile, shape, path)?;
    let size = size_of(shape)?;
    let pair = Layout::mode_of(size, 1)?.logical_divide(&Tiler::Layout(tile.clone()))?;
    let covered = pair.cosize()?;
    if covered > size {
        return Err(TensorError::Ragged { tile: tile.to_string().into(), path: path.to_vec(), extent: size, covered });
    }
    Ok(())
}

/// Calls `check` for each layout of a tiler and the mode that it tiles.
fn check_tiler(
    tiler: &Tiler,
    shape: &Tree<i64>,
    path: &mut Vec<usize>,
    check: &impl Fn(&Layout, &Tree<i64>, &[usize]) -> Result<(), TensorError>,
) -> Result<(), TensorError> {
    match tiler {
        Tiler::Keep => Ok(()),
        Tiler::Layout(tile) => check(tile, shape, path),
        Tiler::Modes(modes) => {
            for (position, (tiler, mode)) in modes.items().iter().zip(shape.modes()).enumerate() {
                path.push(position);
                check_tiler(tiler, &mode, path, check)?;
                path.pop();
            }
            Ok(())
        }
    }
}

/// The map after some rearrangements, and the sum of the values that they add.
pub(crate) fn after<L: Rearrange<Start = i64>>(map: L, steps: &[Rearrangement]) -> Result<(L, i64), TensorError> {
    steps.iter().try_fold((map, 0_i64), |(map, start), step| {
        let (map, by) = rearranged(&map, step, false)?;
        // Both are offsets of elements of one slice, counted from the same origin.
        Ok((map, start.wrapping_add(by)))
    })
}

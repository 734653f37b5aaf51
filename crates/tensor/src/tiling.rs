//! Slices, tiles and partitions of tensors.
//!
//! Law: each of these operations is `T o f` for a map `f` into the coordinates of the tensor `T`,
//! and shares its elements. The layout algebra defines `f` under the same name. The documentation
//! of [`Rearrangement`] says what is refused beyond that.
//!
//! With `D = zipped_divide(T, tiler)`, of modes `(tile, rest)`:
//!
//! ```text
//! inner_partition(T, tiler, c) = D(_, c)       one tile
//! outer_partition(T, tiler, c) = D(c, _)       one place in every tile
//! local_tile(T, tiler, c, p)   = inner_partition(T, dice(p, tiler), dice(p, c))
//! local_partition(T, thr, i)   = outer_partition(T, shape(thr) by mode, the coordinate at which thr is i)
//! ```

use std::ops::Range;

use tilewright_layout::{Coord, DivideForm, Layout, LayoutError, Profile, Slot, Tiler, Tree, idx2crd};

use crate::error::TensorError;
use crate::offsets::{Offsets, each_once};
use crate::rearrange::Rearrangement;

/// Tensors that can be sliced, tiled and partitioned: views, identity tensors and zipped tensors.
///
/// These methods borrow read-only views, but consume mutable ones. If a mutable view is needed
/// later, pass [`TensorViewMut::view_mut`](crate::TensorViewMut::view_mut). Coordinates are text,
/// `"(2,_)".parse()`, or written with expressions: [`coord!(row, _)`](tilewright_layout::coord).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, Tiling};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rows: Layout = "(4,6):(6,1)".parse()?;
/// let tensor = Tensor::from_vec((0..24).collect(), rows)?;
/// let view = tensor.view();
///
/// let row = view.slice(&"(2,_)".parse()?)?;
/// assert_eq!(row.layout().to_string(), "(6):(1)");
/// assert_eq!(row.get([3])?, &15);
///
/// let tiles = view.zipped_divide(&"[2:1;3:1]".parse()?)?; // tiles of 2 x 3
/// assert_eq!(tiles.layout().to_string(), "((2,3),(2,2)):((6,1),(12,3))");
/// let tile = view.local_tile(&"[2:1;3:1]".parse()?, &"(1,0)".parse()?)?;
/// assert_eq!(tile.get([0, 0])?, &12);
///
/// // Thread 3 of 2 x 2 has every second row from 1 on, and of it every second element from 1 on.
/// let part = view.local_partition(&"(2,2)".parse()?, 3)?;
/// assert_eq!(part.layout().to_string(), "(2,3):(12,2)");
/// assert_eq!(part.get([0, 0])?, &7);
///
/// let error = view.zipped_divide(&"[8:1;3:1]".parse()?).unwrap_err();
/// assert_eq!(error.to_string(), "tile 8:1 takes indices 0 to 7, but mode 0 has 4");
/// # Ok(())
/// # }
/// ```
pub trait Tiling: Sized {
    /// The type of the rearranged tensor.
    type Output;

    /// The tensor after some rearrangements, one after another.
    ///
    /// Errors: as the operation on layouts; an index outside its mode; a tile larger than its mode,
    /// or tiles that cover more than it; an element of a mutable view that would have two
    /// coordinates in the result.
    fn rearranged(self, steps: &[Rearrangement]) -> Result<Self::Output, TensorError>;

    /// The slice at the indices of a coordinate; modes under `_` stay (CuTe `tensor(coord)`).
    ///
    /// Errors: the coordinate does not fit the shape; an index is outside its mode.
    fn slice(self, coord: &Coord) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Slice(coord.clone())])
    }

    /// The elements at the indices that a layout lists, in its order (CuTe `composition`). With a
    /// thread-value layout of a tile, the result has the modes (thread, value).
    ///
    /// Errors: as [`Layout::compose`]; an index outside the tensor.
    #[doc(alias = "tensor_composition")]
    fn composition(self, b: &Layout) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Compose(b.clone())])
    }

    /// The composition with a tiler, mode by mode: the elements of each mode at the indices of its
    /// part of the tiler.
    ///
    /// Errors: as [`Layout::compose_tiler`]; an index outside its mode.
    fn compose_tiler(self, tiler: &Tiler) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::ComposeBy(tiler.clone())])
    }

    /// Divides each mode into a tile and the rest, which runs over the tiles:
    /// [`Layout::logical_divide`].
    ///
    /// Errors: as the operation on layouts; a tile larger than its mode, or tiles that cover more
    /// than it.
    fn logical_divide(self, tiler: &Tiler) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Divide(DivideForm::Logical, tiler.clone())])
    }

    /// Divides into tiles and rests, `((tiles),(rests))`: [`Layout::zipped_divide`].
    ///
    /// Errors: as [`Tiling::logical_divide`].
    #[doc(alias = "tensor_zipped_divide")]
    fn zipped_divide(self, tiler: &Tiler) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Divide(DivideForm::Zipped, tiler.clone())])
    }

    /// Divides into tiles and rests, `((tiles),rest,..)`: [`Layout::tiled_divide`].
    ///
    /// Errors: as [`Tiling::logical_divide`].
    fn tiled_divide(self, tiler: &Tiler) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Divide(DivideForm::Tiled, tiler.clone())])
    }

    /// Divides into tiles and rests, `(tile,..,rest,..)`: [`Layout::flat_divide`].
    ///
    /// Errors: as [`Tiling::logical_divide`].
    fn flat_divide(self, tiler: &Tiler) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Divide(DivideForm::Flat, tiler.clone())])
    }

    /// Groups some modes into one, at the position of the first of them (CuTe `group_modes`).
    ///
    /// Errors: the range is not within `0..rank`.
    fn group_modes(self, modes: Range<usize>) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Group(modes)])
    }

    /// All leaves in one flat tuple.
    fn flatten(self) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Flatten])
    }

    /// The fewest modes that keep the element at every index.
    fn coalesce(self) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Coalesce])
    }

    /// The fewest modes within each leaf of a nesting that keep the element at every index:
    /// [`Layout::coalesce_by`].
    ///
    /// Errors: as the operation on layouts.
    fn coalesce_by(self, profile: &Profile) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::CoalesceBy(profile.clone())])
    }

    /// Some modes, in some order, at index 0 of the others (CuTe `select`).
    ///
    /// Errors: a mode is not below the rank.
    fn select(self, modes: &[usize]) -> Result<Self::Output, TensorError> {
        self.rearranged(&[Rearrangement::Select(modes.to_vec())])
    }

    /// One tile, with the modes of the tensor: tile number `coord` of the division by the tiler
    /// (CuTe `inner_partition`).
    ///
    /// An index counts all tiles. If a coordinate names fewer modes than there are, the others stay
    /// open. Errors: as [`Tiling::logical_divide`] and [`Tiling::slice`].
    fn inner_partition(self, tiler: &Tiler, coord: &Coord) -> Result<Self::Output, TensorError> {
        let divide = Rearrangement::Divide(DivideForm::Zipped, tiler.clone());
        self.rearranged(&[divide, Rearrangement::Inner(coord.clone())])
    }

    /// The elements at one position in every tile (CuTe `outer_partition`).
    ///
    /// An index counts the positions of the tile. If a coordinate names fewer modes than there are,
    /// the others stay open. Errors: as [`Tiling::logical_divide`] and [`Tiling::slice`].
    fn outer_partition(self, tiler: &Tiler, coord: &Coord) -> Result<Self::Output, TensorError> {
        let divide = Rearrangement::Divide(DivideForm::Zipped, tiler.clone());
        self.rearranged(&[divide, Rearrangement::Outer(coord.clone())])
    }

    /// One tile: [`Tiling::inner_partition`] (CuTe `local_tile`).
    ///
    /// Errors: as [`Tiling::inner_partition`].
    fn local_tile(self, tiler: &Tiler, coord: &Coord) -> Result<Self::Output, TensorError> {
        self.inner_partition(tiler, coord)
    }

    /// One tile, by some of the modes of a tiler and the same modes of a coordinate: those that a
    /// projection does not leave open (CuTe `local_tile` with `Step`).
    ///
    /// Errors: as [`Tiling::inner_partition`]; the projection and the tiler, or the coordinate,
    /// differ in rank.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::{Tensor, Tiling};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A tile of 4 x 4 x 2 in (M,N,K): the operand A, of shape (M,K), has tiles of 4 x 2.
    /// let a = Tensor::from_vec((0..64).collect(), "(8,8):(1,8)".parse::<Layout>()?)?;
    /// let tile = a.view().local_tile_projected(&"[4:1;4:1;2:1]".parse()?, &"(1,0,_)".parse()?, &"(1,_,1)".parse()?)?;
    /// assert_eq!(tile.layout().to_string(), "(4,2,4):(1,8,16)");
    /// assert_eq!(tile.get(0)?, &4);
    /// # Ok(())
    /// # }
    /// ```
    fn local_tile_projected(
        self,
        tiler: &Tiler,
        coord: &Coord,
        projection: &Coord,
    ) -> Result<Self::Output, TensorError> {
        let (tiler, coord) = (projected_tiler(projection, tiler)?, coord.dice(projection)?);
        self.inner_partition(&tiler, &coord)
    }

    /// Thread `thread`'s part of a tensor: in every tile of the shape of the thread layout, the
    /// element at the coordinate at which the thread layout has the value `thread` (CuTe
    /// `local_partition`).
    ///
    /// Errors: as [`Tiling::outer_partition`]; the thread layout does not have that value, or has
    /// it at more than one coordinate.
    fn local_partition(self, threads: &Layout, thread: i64) -> Result<Self::Output, TensorError> {
        let coord = slots(&thread_coord(threads, thread)?);
        self.outer_partition(&Tiler::from_shape(&threads.shape().product_each()?)?, &coord)
    }

    /// [`Tiling::local_partition`] with the modes of the thread layout that a projection does not
    /// leave open (CuTe `local_partition` with `Step`).
    ///
    /// Errors: as [`Tiling::local_partition`]; the projection and the thread layout differ in rank.
    fn local_partition_projected(
        self,
        threads: &Layout,
        thread: i64,
        projection: &Coord,
    ) -> Result<Self::Output, TensorError> {
        let coord = slots(&thread_coord(threads, thread)?).dice(projection)?;
        let shape = threads.shape().product_each()?.dice(projection)?;
        self.outer_partition(&Tiler::from_shape(&shape)?, &coord)
    }
}

/// A coordinate without open modes.
fn slots(coord: &Tree<i64>) -> Coord {
    coord.map(|index| Slot::At(*index))
}

/// The modes of a tiler that a projection does not leave open.
fn projected_tiler(projection: &Coord, tiler: &Tiler) -> Result<Tiler, TensorError> {
    let Tiler::Modes(modes) = tiler else {
        let what = "is one tile, and a projection chooses among the tiles of modes";
        return Err(LayoutError::Tiler { op: "local_tile", path: Vec::new(), what }.into());
    };
    if projection.is_leaf() || projection.rank() != modes.items().len() {
        let (expected, found) = (modes.items().len(), projection.rank());
        return Err(LayoutError::Rank { op: "local_tile", path: Vec::new(), expected, found }.into());
    }
    let kept = modes.items().iter().zip(projection.modes());
    let kept = kept.filter(|(_, step)| !matches!(step.leaves(), [Slot::All])).map(|(tiler, _)| tiler.clone());
    Ok(Tiler::modes(kept)?)
}

/// The largest number of threads of a thread layout that are listed, either because all are
/// requested or because no inverse was found.
pub(crate) const MAX_THREADS: i64 = 1 << 20;

/// An error if a thread layout has a thread at two coordinates.
pub(crate) fn each_thread_once(threads: &Layout) -> Result<(), TensorError> {
    each_once(threads).map_err(|error| match error {
        TensorError::Shared { pair: Some(pair), layout } => {
            TensorError::ThreadLayout { pair: Some(pair), threads: layout }
        }
        other => other,
    })
}

/// The coordinate, one index for each mode, at which a thread layout has a value.
fn thread_coord(threads: &Layout, thread: i64) -> Result<Tree<i64>, TensorError> {
    each_thread_once(threads)?;
    let index = match threads.left_inverse() {
        Ok(inverse) => Some(inverse.eval(&thread)?).filter(|index| threads.offset(*index) == Ok(thread)),
        Err(error) if threads.size() > MAX_THREADS => return Err(error.into()),
        Err(_) => (0..threads.size()).find(|index| threads.eval(index) == Ok(thread)),
    };
    match index {
        Some(index) => Ok(idx2crd(&Tree::leaf(index), &threads.shape().product_each()?)?),
        None => Err(TensorError::Thread { thread, threads: threads.to_string().into() }),
    }
}

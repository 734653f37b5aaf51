//! Division of a layout into tiles.
//!
//! # Law
//!
//! `logical_divide(A, T) = A o (T, complement(T, size(A)))`: mode 0 is one tile, `A o T`, and mode
//! 1 runs over the tiles. The complement is the strict one, so `(T, complement)` is a bijection
//! onto `[0, N)`, where `N` is `size(A)` rounded up to what `T` tiles (up to repetitions, where `T`
//! has stride 0). Hence every element of `A` is in a tile, and in exactly one if `T` is injective.
//! Past the end of `A`, the tiles continue in the last mode of `A`. The division exists exactly
//! when the complement and the composition do.
//!
//! For a tile of coordinates, such as `2:64@0`, every mode of `A` is treated separately: the
//! complement is the one in the shape of `A`.
//!
//! By mode, each mode `A_i` is divided by its tile `T_i`, and modes that the tiler does not name
//! stay undivided. Division by mode equals the division by a single layout over all modes that
//! combines the tiles, but each tile depends on only one mode of `A`.

use crate::algebra::compose::compose_parts;
use crate::algebra::inner::Inner;
use crate::refusal::error::{DIVIDE as OP, Fits, LayoutError};
use crate::tile::form::DivideForm;
use crate::tile::tiler::{Tiler, by_tiler};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::pairs::Pairs;
use crate::value::tree::{Tree, TreeRef};

/// Writes `A o T` and `A o complement(T, size(A))`, for a tile whose values are indices.
pub(crate) fn divide_by_indices<D: Stride>(
    layout: TreeRef<'_, Leaf<D>>,
    tile: &Layout<D::Extent>,
    pairs: &mut Pairs<D>,
) -> Result<(), LayoutError> {
    if let ([whole], [part]) = (layout.leaves, tile.leaves())
        && tile.profile().is_leaf()
        && D::Extent::zero().less(&part.stride).proved()
        && divide_leaf(whole, part, pairs).fits_as::<D::Extent>(OP)?
    {
        return Ok(());
    }
    let size = size_of(layout.leaves).fits_as::<D::Extent>(OP)?;
    let rest = tile.complement(&size).map_err(LayoutError::in_divide)?;
    let both = Layout::tuple([tile, &rest])?;
    let mut divided = Layout::blank();
    let (nodes, leaves) = divided.parts_mut();
    compose_parts(layout, both.as_ref(), nodes, leaves)?;
    write_parts(&divided, pairs);
    Ok(())
}

/// Writes the two modes of a divided layout as a pair.
#[inline]
pub(crate) fn write_parts<D: Stride>(divided: &Layout<D>, pairs: &mut Pairs<D>) {
    let mut modes = divided.as_ref().modes();
    if let (Some(tile), Some(rest)) = (modes.next(), modes.next()) {
        pairs.first().append(tile);
        pairs.second().append(rest);
    }
}

/// Divides one mode `S:D` by one mode `s:d` with `d > 0`. The complement is a gap `d:1` and the
/// rest with stride `s*d`; `A` multiplies them by `D`. Gap, tile and rest combined are again a mode
/// with step `D`. Returns false, and writes nothing, if steps are not additive in this way.
#[inline]
fn divide_leaf<D: Stride>(whole: &Leaf<D>, part: &Leaf<D::Extent>, pairs: &mut Pairs<D>) -> Option<bool> {
    let unit = || Leaf { extent: D::Extent::one(), stride: D::zero() };
    if part.extent.is_one().proved() {
        let whole = if whole.extent.is_one().proved() { unit() } else { whole.clone() };
        pairs.first().leaf(unit());
        pairs.second().leaf(whole);
        return Some(true);
    }
    let covered = part.stride.times(&part.extent)?;
    // A tile of one element leaves no gap. If the tile may have one element, gap and rest must be
    // the whole mode also in that case.
    let several = part.extent.known().is_some() || D::Extent::one().less(&part.extent).proved();
    if !several && !part.stride.is_one().proved() && !covered.divides(&whole.extent).proved() {
        return Some(false);
    }
    let count = whole.extent.divide_up(&covered)?;
    let tile = Leaf { extent: part.extent.clone(), stride: whole.stride.times(&part.stride)? };
    if !whole.stride.continues(&part.stride, &tile.stride).proved() {
        return Some(false);
    }
    let gap = Leaf { extent: part.stride.clone(), stride: whole.stride.clone() };
    let gap = if gap.extent.is_one().proved() { None } else { Some(gap) };
    if count.is_one().proved() {
        pairs.first().leaf(tile);
        pairs.second().leaf(gap.unwrap_or_else(unit));
        return Some(true);
    }
    let rest = Leaf { extent: count, stride: whole.stride.times(&covered)? };
    if !tile.stride.continues(&tile.extent, &rest.stride).proved() {
        return Some(false);
    }
    pairs.first().leaf(tile);
    match gap {
        Some(gap) => pairs.second().run(&[gap, rest]),
        None => pairs.second().leaf(rest),
    }
    Some(true)
}

fn size_of<D: Stride>(leaves: &[Leaf<D>]) -> Option<D::Extent> {
    leaves.iter().try_fold(D::Extent::one(), |size, leaf| size.times(&leaf.extent))
}

impl<D: Stride> Layout<D> {
    /// The layout split into tiles: mode 0 is the tile, mode 1 runs over the tiles; by mode, each
    /// mode is split in this way (CuTe `logical_divide`).
    ///
    /// A mode under `_` stays unchanged, and so do modes that the tiler does not name. If the tile
    /// does not divide the layout, the size is rounded up. Errors: the tile has no complement
    /// ([`LayoutError::NotChain`], [`LayoutError::Negative`]); the layout cannot be composed with
    /// tile and complement ([`LayoutError::Carry`], [`LayoutError::Uneven`]); the tiler has more
    /// modes than the layout ([`LayoutError::Tiler`]).
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout, Tiler};
    ///
    /// let layout: Layout = "(4,6):(1,4)".parse().unwrap();
    /// let tiler: Tiler = "(2,3)".parse().unwrap();
    /// assert_eq!(layout.logical_divide(&tiler).unwrap().to_string(), "((2,2),(3,2)):((1,2),(4,12))");
    ///
    /// let whole: Tiler = "4:2".parse().unwrap(); // every second element
    /// assert_eq!(layout.logical_divide(&whole).unwrap().to_string(), "(4,(2,3)):(2,(1,8))");
    ///
    /// let rows: Tiler<Coordinate> = "2:3@1".parse().unwrap(); // columns 0 and 3
    /// assert_eq!(layout.logical_divide(&rows).unwrap().to_string(), "(2,(4,3)):(12,(1,4))");
    /// ```
    pub fn logical_divide<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler(OP, DivideForm::Logical, self, tiler, &B::divide)
    }

    /// [`Layout::logical_divide`] with the tiles grouped as mode 0, and the rests as mode 1:
    /// `((tiles),(rests))` (CuTe `zipped_divide`).
    ///
    /// A mode under `_` must have two modes: the first goes to the tile, the second to the rests.
    /// Modes that the tiler does not name follow the rests.
    /// Errors: as [`Layout::logical_divide`]; a mode under `_` is not a pair.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tiler};
    ///
    /// let layout: Layout = "(4,6):(1,4)".parse().unwrap();
    /// let tiler: Tiler = "(2,3)".parse().unwrap();
    /// assert_eq!(layout.zipped_divide(&tiler).unwrap().to_string(), "((2,3),(2,2)):((1,4),(2,12))");
    /// ```
    pub fn zipped_divide<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler("zipped_divide", DivideForm::Zipped, self, tiler, &B::divide)
    }

    /// [`Layout::zipped_divide`] with each rest as a mode: `((tiles),rest,..)` (CuTe
    /// `tiled_divide`).
    ///
    /// Errors: as [`Layout::zipped_divide`].
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tiler};
    ///
    /// let layout: Layout = "(4,6):(1,4)".parse().unwrap();
    /// let tiler: Tiler = "(2,3)".parse().unwrap();
    /// assert_eq!(layout.tiled_divide(&tiler).unwrap().to_string(), "((2,3),2,2):((1,4),2,12)");
    /// ```
    pub fn tiled_divide<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler("tiled_divide", DivideForm::Tiled, self, tiler, &B::divide)
    }

    /// [`Layout::zipped_divide`] with each tile and each rest as a mode: `(tile,..,rest,..)` (CuTe
    /// `flat_divide`).
    ///
    /// Errors: as [`Layout::zipped_divide`].
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tiler};
    ///
    /// let layout: Layout = "(4,6):(1,4)".parse().unwrap();
    /// let tiler: Tiler = "(2,3)".parse().unwrap();
    /// assert_eq!(layout.flat_divide(&tiler).unwrap().to_string(), "(2,3,2,2):(1,4,2,12)");
    /// ```
    pub fn flat_divide<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler("flat_divide", DivideForm::Flat, self, tiler, &B::divide)
    }
}

impl<D: Stride> Layout<D> {
    /// The division in a form that is an argument.
    ///
    /// Errors: as [`Layout::logical_divide`].
    pub fn divide<B: Inner<D>>(&self, form: DivideForm, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler(form.division(), form, self, tiler, &B::divide)
    }
}

impl<N: Extent> Tiler<N> {
    /// The number of tiles that cover a shape, for each mode: the shape of the rests of
    /// [`Layout::zipped_divide`] (CuTe `ceil_div(shape, tiler)`).
    ///
    /// Errors: as [`Layout::zipped_divide`].
    ///
    /// ```
    /// use tilewright_layout::{Tiler, Tree};
    ///
    /// let shape: Tree<i64> = "(100,64,7)".parse().unwrap();
    /// let tiler: Tiler = "[16:1;8:1]".parse().unwrap();
    /// assert_eq!(tiler.tiles_of(&shape).unwrap().to_string(), "(7,8,7)");
    /// ```
    pub fn tiles_of(&self, shape: &Tree<N>) -> Result<Tree<N>, LayoutError> {
        // The compact layout is linear in each mode, so only the complement affects the result.
        let whole = Layout::compact(shape)?;
        let pair = |mode: TreeRef<'_, Leaf<N>>, tile: &Layout<N>, pairs: &mut Pairs<N>| {
            let size = size_of(mode.leaves).fits_as::<N>("ceil_div")?;
            pairs.first().append(tile.as_ref());
            pairs.second().append(tile.complement(&size).map_err(LayoutError::in_divide)?.as_ref());
            Ok(())
        };
        let divided = by_tiler("ceil_div", DivideForm::Zipped, &whole, self, &pair)?;
        Ok(divided.mode(1).map_or(Tree::leaf(N::one()), |rests| rests.shape()))
    }
}

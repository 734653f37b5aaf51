//! The parts of a tensor: one view for each index of a mode.
//!
//! Law: part `i` of a view `V` along a mode is the slice `V(.., i, ..)`.
//!
//! # Invariant
//!
//! The parts of a mutable view are disjoint: its layout sends different coordinates to different
//! offsets, and the coordinates of two parts differ in that mode. Every index is used once: by the
//! iterator, which removes it from its range, or by one of the two halves into which the range is
//! split for threads.
//!
//! Reason for unsafe code: the borrow checker understands disjoint halves of slices, but not
//! disjoint tiles.
#![allow(unsafe_code)]

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use rayon::iter::plumbing::{Consumer, Producer, ProducerCallback, UnindexedConsumer, bridge};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Tiler, Tree, idx2crd};

use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::rearrange::{Rearrange, covering_tiles, of_pair};
use crate::tiling::{MAX_THREADS, Tiling, each_thread_once};
use crate::view::{TensorView, TensorViewMut};

mod sealed {
    use crate::offsets::Offsets;
    use crate::rearrange::Rearrange;

    /// A view that can be taken apart into its pointer and its map.
    pub trait View: Sized {
        type Element;
        type Map: Offsets<Derived = Self::Map> + Rearrange<Start = i64>;

        fn apart(self) -> (*mut Self::Element, Self::Map);

        /// The view of a pointer and a map.
        ///
        /// # Safety
        /// The invariant of the view.
        unsafe fn of(base: *mut Self::Element, map: Self::Map) -> Self;
    }
}
use sealed::View;

impl<T, L: Offsets<Derived = L> + Rearrange<Start = i64>> View for TensorView<'_, T, L> {
    type Element = T;
    type Map = L;

    fn apart(self) -> (*mut T, L) {
        (self.as_ptr().cast_mut(), self.into_layout())
    }

    unsafe fn of(base: *mut T, map: L) -> Self {
        // SAFETY: the caller vouches for the invariant of the view.
        unsafe { TensorView::from_raw(base, map) }
    }
}

impl<T, L: Offsets<Derived = L> + Rearrange<Start = i64>> View for TensorViewMut<'_, T, L> {
    type Element = T;
    type Map = L;

    fn apart(mut self) -> (*mut T, L) {
        (self.as_mut_ptr(), self.into_layout())
    }

    unsafe fn of(base: *mut T, map: L) -> Self {
        // SAFETY: the caller vouches for the invariant of the view.
        unsafe { TensorViewMut::from_raw(base, map) }
    }
}

/// The parts of a tensor: views of type `V`, in order; disjoint, if they are mutable.
///
/// An iterator, and a parallel iterator through `into_par_iter`.
pub struct Parts<V: View> {
    base: *mut V::Element,
    map: V::Map,
    /// The coordinate of a part; its leaf `at` is the index of the part.
    coord: Coord,
    at: usize,
    range: Range<i64>,
    /// The index of each part if the parts are in another order; each index occurs once.
    order: Option<Arc<[i64]>>,
    edge: Option<EdgeTiles>,
    whole: PhantomData<V>,
}

/// Tiles that are clipped at the end of the tensor. For each mode: the extent of the tensor, that
/// of the tile, and the number of tiles.
#[derive(Clone)]
struct EdgeTiles {
    extents: Vec<i64>,
    tile: Vec<i64>,
    counts: Tree<i64>,
}

// SAFETY: parts are a view of the whole, of which threads may have different ones.
unsafe impl<V: View + Send> Send for Parts<V> {}
// SAFETY: shared access gives no access to elements.
unsafe impl<V: View + Send> Sync for Parts<V> {}

impl EdgeTiles {
    /// The part of a tile that is inside the tensor; None if all of it is.
    fn clip(&self, index: i64) -> Result<Option<Tiler>, LayoutError> {
        let position = idx2crd(&Tree::leaf(index), &self.counts)?;
        let sizes = self.extents.iter().zip(&self.tile).zip(position.leaves());
        // No number here exceeds the extent.
        self.tiler(sizes.map(|((extent, tile), index)| (*tile).min(extent - index * tile)))
    }

    fn tiler(&self, inside: impl Iterator<Item = i64>) -> Result<Option<Tiler>, LayoutError> {
        let inside: Vec<i64> = inside.collect();
        if inside == self.tile {
            return Ok(None);
        }
        Ok(Some(Tiler::from_shape(&Tree::flat(inside)?)?))
    }

    /// The part of the last tile that is inside the tensor; None if all of it is.
    fn last(&self) -> Result<Option<Tiler>, LayoutError> {
        self.clip(self.counts.product()? - 1)
    }
}

impl<V: View> Parts<V> {
    /// The `count` parts of a map. Part `index` is the slice of the map at `coord`, with the open
    /// leaf `at` set to `index`.
    fn new((base, map): (*mut V::Element, V::Map), coord: Coord, at: usize, count: i64) -> Parts<V> {
        Parts { base, map, coord, at, range: 0..count, order: None, edge: None, whole: PhantomData }
    }

    /// The slices along a top-level mode.
    fn along(view: V, mode: usize) -> Result<Parts<V>, TensorError> {
        let (base, map) = view.apart();
        let shape = map.extents();
        let rank = shape.rank();
        let refused = LayoutError::NoSuchMode { op: "split_mode", mode, rank };
        let count = shape.mode(mode).ok_or(refused)?.product()?;
        let open = if shape.is_leaf() { Tree::leaf(Slot::All) } else { Tree::flat(vec![Slot::All; rank])? };
        Ok(Parts::new((base, map), open, mode, count))
    }

    /// The slices along mode `fixed` of `((tiles),(rests))`.
    fn of_divided((base, map): (*mut V::Element, V::Map), fixed: usize) -> Result<Parts<V>, TensorError> {
        let shape = &map.extents();
        let coord = of_pair(shape, &Tree::leaf(Slot::At(0)), fixed)?;
        let at = coord.leaves().iter().position(|slot| matches!(slot, Slot::At(_))).unwrap_or(0);
        let count = shape.mode(fixed).map_or(Ok(1), |mode| mode.product())?;
        Ok(Parts::new((base, map), coord, at, count))
    }

    /// The number of parts that are left.
    #[inline]
    fn count_left(&self) -> usize {
        // There are at most as many parts as elements.
        (self.range.end - self.range.start) as usize
    }

    /// The part at position `place` of the order.
    ///
    /// # Safety
    /// For a mutable view, each position is used only once.
    unsafe fn part(&self, place: i64) -> Option<V> {
        let index = match &self.order {
            Some(order) => *order.get(place as usize)?,
            None => place,
        };
        let mut leaf = 0;
        let coord = self.coord.map(|slot| {
            leaf += 1;
            if leaf == self.at + 1 { Slot::At(index) } else { *slot }
        });
        let (map, start) = self.map.sliced(&coord).ok()?;
        let map = match self.edge.as_ref().map(|edge| edge.clip(index)) {
            None => map,
            Some(clip) => match clip.ok()? {
                None => map,
                Some(tiler) => map.composed_by(&tiler).ok()?,
            },
        };
        // SAFETY: these are elements of a slice, or of its part inside the tensor; slices at
        // different indices of one mode have none in common, and the caller asks for each place
        // once.
        Some(unsafe { V::of(self.base.wrapping_offset(start as isize), map) })
    }

    /// The parts in a subrange of the same whole. The caller must not use a position in both.
    fn with_range(&self, range: Range<i64>) -> Parts<V> {
        Parts {
            base: self.base,
            map: self.map.clone(),
            coord: self.coord.clone(),
            at: self.at,
            range,
            order: self.order.clone(),
            edge: self.edge.clone(),
            whole: PhantomData,
        }
    }
}

impl<V: View> fmt::Debug for Parts<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parts({} left of {} at {})", self.count_left(), self.map, self.coord)
    }
}

impl<V: View> Iterator for Parts<V> {
    type Item = V;

    fn next(&mut self) -> Option<V> {
        let place = self.range.next()?;
        // SAFETY: the range gives out each place once.
        let part = unsafe { self.part(place) };
        debug_assert!(part.is_some(), "a slice inside a layout that was sliced before");
        part
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count_left(), Some(self.count_left()))
    }

    fn nth(&mut self, n: usize) -> Option<V> {
        let place = i64::try_from(n).ok().and_then(|n| self.range.start.checked_add(n));
        self.range.start = place.map_or(self.range.end, |place| place.min(self.range.end));
        self.next()
    }
}

impl<V: View> DoubleEndedIterator for Parts<V> {
    fn next_back(&mut self) -> Option<V> {
        let place = self.range.next_back()?;
        // SAFETY: the range gives out each place once.
        unsafe { self.part(place) }
    }
}

impl<V: View> ExactSizeIterator for Parts<V> {}
impl<V: View> FusedIterator for Parts<V> {}

/// [`Parts`] for threads.
pub struct ParallelParts<V: View>(Parts<V>);

impl<V: View + Send> IntoParallelIterator for Parts<V> {
    type Iter = ParallelParts<V>;
    type Item = V;

    fn into_par_iter(self) -> ParallelParts<V> {
        ParallelParts(self)
    }
}

impl<V: View + Send> ParallelIterator for ParallelParts<V> {
    type Item = V;

    fn drive_unindexed<C: UnindexedConsumer<V>>(self, consumer: C) -> C::Result {
        bridge(self, consumer)
    }

    fn opt_len(&self) -> Option<usize> {
        Some(self.0.count_left())
    }
}

impl<V: View + Send> IndexedParallelIterator for ParallelParts<V> {
    fn len(&self) -> usize {
        self.0.count_left()
    }

    fn drive<C: Consumer<V>>(self, consumer: C) -> C::Result {
        bridge(self, consumer)
    }

    fn with_producer<C: ProducerCallback<V>>(self, callback: C) -> C::Output {
        callback.callback(self.0)
    }
}

impl<V: View + Send> Producer for Parts<V> {
    type Item = V;
    type IntoIter = Parts<V>;

    fn into_iter(self) -> Parts<V> {
        self
    }

    fn split_at(mut self, index: usize) -> (Parts<V>, Parts<V>) {
        let middle = self.range.start.saturating_add(i64::try_from(index).unwrap_or(i64::MAX)).min(self.range.end);
        let rest = self.with_range(middle..self.range.end);
        self.range.end = middle;
        (self, rest)
    }
}

/// The methods of both kinds of view: they return the parts as `V`, of the view after `steps`.
macro_rules! parts {
    ($tiles:ident, $clipped:ident, $partition:ident, $split:ident, $view:ident, $receiver:ty, $once:literal $(, $example:literal)?) => {
        impl<'a, T, L: Offsets> $view<'a, T, L> {
            /// The slices along a top-level mode, one for each index.
            ///
            /// Errors: there is no such mode.
            pub fn $split(self: $receiver, mode: usize) -> Result<Parts<$view<'a, T, L::Derived>>, TensorError> {
                Parts::along(self.rearranged(&[])?, mode)
            }

            /// The tiles, each with the modes of the tensor, in the order of their numbers: the
            /// tiles of mode 0 first.
            ///
            #[doc = $once]
            ///
            /// Errors: as [`Tiling::zipped_divide`].
            $(#[doc = $example])?
            pub fn $tiles(self: $receiver, tiler: &Tiler) -> Result<Parts<$view<'a, T, L::Derived>>, TensorError> {
                Parts::of_divided(self.zipped_divide(tiler)?.apart(), 1)
            }

            /// The tiles of a shape, by mode, clipped at the end of the tensor: tiles at the far
            /// edges may be smaller.
            ///
            #[doc = $once]
            ///
            /// A mode that the shape does not include is one tile. Errors: an extent is larger than
            /// its mode, not positive, or not a number; the clipped tile is not a layout.
            pub fn $clipped(self: $receiver, tile: &Tree<i64>) -> Result<Parts<$view<'a, T, L::Derived>>, TensorError> {
                let (shape, view) = (self.shape(), self.rearranged(&[])?);
                let (tiler, edge) = edge_of(&shape, tile)?;
                let (base, map) = view.apart();
                let divided = covering_tiles(&map, &tiler)?;
                let last = edge.last()?;
                if let Some(clip) = last {
                    // Each mode is clipped independently, so a property of the last tile is a
                    // property of all.
                    divided.sliced(&of_pair(&divided.extents(), &Tree::leaf(Slot::At(0)), 1)?)?.0.composed_by(&clip)?;
                }
                let parts = Parts::of_divided((base, divided), 1)?;
                Ok(Parts { edge: Some(edge), ..parts })
            }

            /// Each thread's part of a tensor, in the order of the thread numbers:
            /// [`Tiling::local_partition`] for each thread.
            ///
            #[doc = $once]
            ///
            /// Errors: as [`Tiling::local_partition`]; the thread layout is not one to one onto `0,
            /// 1, ..` ([`TensorError::ThreadLayout`]).
            pub fn $partition(self: $receiver, threads: &Layout) -> Result<Parts<$view<'a, T, L::Derived>>, TensorError> {
                let order = by_number(threads)?;
                let tile = Tiler::from_shape(&threads.shape().product_each()?)?;
                let parts = Parts::of_divided(self.zipped_divide(&tile)?.apart(), 0)?;
                Ok(Parts { order: Some(order), ..parts })
            }
        }
    };
}

parts!(
    tiles,
    clipped_tiles,
    partition,
    split_mode,
    TensorView,
    &Self,
    "Tiles may have elements in common, if the layout or the tile repeats them."
);
parts!(
    tiles_mut,
    clipped_tiles_mut,
    partition_mut,
    split_mode_mut,
    TensorViewMut,
    Self,
    "They are disjoint: no element is in two of them, and so threads may each have one.",
    r#"
```
use rayon::prelude::*;
use tilewright_layout::Layout;
use tilewright_tensor::Tensor;

# fn main() -> Result<(), Box<dyn std::error::Error>> {
let rows: Layout = "(4,6):(6,1)".parse()?;
let mut tensor = Tensor::filled(rows, 0)?;
let tiles = tensor.view_mut().tiles_mut(&"[2:1;3:1]".parse()?)?;
tiles.into_par_iter().enumerate().for_each(|(number, mut tile)| {
    tile.for_each_mut(|element| *element = number);
});
assert_eq!(tensor.as_slice(), [
    0, 0, 0, 2, 2, 2,
    0, 0, 0, 2, 2, 2,
    1, 1, 1, 3, 3, 3,
    1, 1, 1, 3, 3, 3,
]);
# Ok(())
# }
```
"#
);

/// The tiler of a shape, and the clipping of its tiles at the end of a tensor.
fn edge_of(shape: &Tree<i64>, tile: &Tree<i64>) -> Result<(Tiler, EdgeTiles), TensorError> {
    let modes: Vec<i64> = shape.product_each()?.leaves().to_vec();
    let rank = tile.rank();
    if tile.leaves().len() != rank || tile.depth() > 1 || rank > modes.len() {
        return Err(LayoutError::Tiler {
            op: "clipped_tiles",
            path: Vec::new(),
            what: "has other modes than the tensor",
        }
        .into());
    }
    let mut full = modes.clone();
    for (position, (place, extent)) in full.iter_mut().zip(tile.leaves()).enumerate() {
        if *extent > *place {
            return Err(TensorError::Tile {
                tile: extent.to_string().into(),
                path: vec![position],
                range: (0, extent.saturating_sub(1)),
                extent: *place,
            });
        }
        *place = *extent;
    }
    let tiler = Tiler::from_shape(&Tree::flat(full.iter().copied())?)?;
    let counts = modes.iter().zip(&full).map(|(extent, tile)| (extent - 1) / tile + 1);
    let counts = Tree::flat(counts)?;
    Ok((tiler, EdgeTiles { extents: modes, tile: full, counts }))
}

/// The indices of a thread layout in the order of their threads.
fn by_number(threads: &Layout) -> Result<Arc<[i64]>, TensorError> {
    each_thread_once(threads)?;
    let size = threads.size();
    if size > MAX_THREADS {
        let (op, what, wanted) = ("partition", "the number of threads", "at most 1048576");
        return Err(LayoutError::Argument { op, what, value: size, wanted }.into());
    }
    if !threads.is_bijective() {
        return Err(TensorError::ThreadLayout { pair: None, threads: threads.to_string().into() });
    }
    let mut pairs =
        (0..size).map(|index| Ok((threads.eval(&index)?, index))).collect::<Result<Vec<_>, LayoutError>>()?;
    pairs.sort_unstable();
    Ok(pairs.into_iter().map(|(_, index)| index).collect())
}

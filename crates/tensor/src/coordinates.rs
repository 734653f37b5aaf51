//! Identity tensors: tensors whose elements are their own coordinates.
//!
//! Law: element `c` of an identity tensor is `c`. Slice, tile or partition an identity tensor like
//! a tensor of data: each element of the result is the coordinate, in the whole tensor, of the
//! corresponding element of the data. Nothing is stored.
//!
//! Tiles of an identity tensor may extend past the tensor: a predicate compares the coordinates
//! past an edge with the shape. [`TensorView::gather`] and [`TensorViewMut::scatter`] copy between
//! any tensor and the part of another that is given by its coordinates, and skip coordinates
//! outside.

use std::fmt;

use tilewright_layout::{Coordinate, Layout, LayoutError, Profile, Slot, Stride, Tree};

use crate::error::TensorError;
use crate::offsets::{Offsets, inside};
use crate::position::Position;
use crate::rearrange::{Rearrangement, rearranged};
use crate::tensor::Tensor;
use crate::tiling::Tiling;
use crate::transform::same_size;
use crate::view::{TensorView, TensorViewMut};

/// A tensor of coordinates (CuTe `make_identity_tensor`).
///
/// ```
/// use tilewright_layout::Tree;
/// use tilewright_tensor::{CoordinateTensor, Tiling};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Tiles of 4 x 4 over 10 x 6; the last column of them is ragged.
/// let shape: Tree<i64> = "(10,6)".parse()?;
/// let whole = CoordinateTensor::identity(&shape)?;
/// let tile = whole.local_tile(&"[4:1;4:1]".parse()?, &"(2,1)".parse()?)?;
/// assert_eq!(tile.get([1, 1])?.to_string(), "(9,5)");
/// assert_eq!(tile.get([2, 1])?.to_string(), "(10,5)"); // past the edge
/// let predicate = tile.elem_less(&shape)?;
/// assert_eq!(predicate.as_slice().iter().filter(|inside| **inside).count(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CoordinateTensor {
    map: Layout<Coordinate>,
    start: Coordinate,
    codomain: Profile,
}

impl CoordinateTensor {
    /// The tensor of this shape whose elements are their own coordinates.
    ///
    /// Errors: as [`Layout::identity`].
    #[doc(alias = "make_identity_tensor")]
    pub fn identity(shape: &Tree<i64>) -> Result<CoordinateTensor, TensorError> {
        let map = Layout::<Coordinate>::identity(shape)?;
        Ok(CoordinateTensor { map, start: Coordinate::zero(), codomain: shape.profile().clone() })
    }

    /// The layout from coordinates of this tensor to steps from [`CoordinateTensor::start`].
    pub fn layout(&self) -> &Layout<Coordinate> {
        &self.map
    }

    /// The coordinate, in the whole tensor, of the first element.
    pub fn start(&self) -> &Coordinate {
        &self.start
    }

    /// The extents.
    pub fn shape(&self) -> Tree<i64> {
        self.map.shape()
    }

    /// The number of top-level modes.
    pub fn rank(&self) -> usize {
        self.map.rank()
    }

    /// The number of coordinates.
    pub fn size(&self) -> i64 {
        self.map.size()
    }

    /// The coordinate in the whole tensor, nested like its shape.
    ///
    /// Errors: the position is outside the shape.
    pub fn get(&self, position: impl Position) -> Result<Tree<i64>, TensorError> {
        let coord = position.coord()?;
        inside(&coord, &self.map.shape())?;
        let steps = self.map.eval_at(&coord)?;
        let value = self.start.plus(&steps).ok_or(LayoutError::Overflow { op: "coordinate" })?;
        Ok(value.in_profile(&self.codomain)?)
    }

    /// The coordinates in the whole tensor, in index order.
    pub fn iter(&self) -> impl Iterator<Item = Tree<i64>> + '_ {
        (0..self.size()).map_while(|index| self.get(index).ok())
    }

    /// The slices along a top-level mode, one for each index, as [`TensorView::split_mode`] makes
    /// them.
    ///
    /// Errors: there is no such mode. An item is an error if its coordinates are not representable.
    ///
    /// ```
    /// use tilewright_tensor::{CoordinateTensor, Tiling};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // The tiles of 4 along the first axis of 10 x 6, the last of which is ragged.
    /// let whole = CoordinateTensor::identity(&"(10,6)".parse()?)?;
    /// let tiles = whole.flat_divide(&"[4:1]".parse()?)?;
    /// assert_eq!(tiles.shape().to_string(), "(4,3,6)");
    /// let starts = tiles.split_mode(1)?.map(|tile| Ok(tile?.get([0, 5])?.to_string()));
    /// let starts = starts.collect::<Result<Vec<String>, Box<dyn std::error::Error>>>()?;
    /// assert_eq!(starts, ["(0,5)", "(4,5)", "(8,5)"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn split_mode(
        &self,
        mode: usize,
    ) -> Result<impl Iterator<Item = Result<CoordinateTensor, TensorError>> + '_, TensorError> {
        let shape = self.map.shape();
        let refused = LayoutError::NoSuchMode { op: "split_mode", mode, rank: shape.rank() };
        let count = shape.mode(mode).ok_or(refused)?.product()?;
        let open = if shape.is_leaf() { Tree::leaf(Slot::All) } else { Tree::flat(vec![Slot::All; shape.rank()])? };
        Ok((0..count).map(move |index| {
            let mut at = 0..;
            self.slice(&open.map(|slot| if at.next() == Some(mode) { Slot::At(index) } else { *slot }))
        }))
    }

    /// Whether each coordinate is inside a shape, that is, below it in every mode (CuTe
    /// `elem_less`). The result is a compact tensor with the same modes.
    ///
    /// Errors: the shape is nested differently from the coordinates; there is not enough memory.
    pub fn elem_less(&self, shape: &Tree<i64>) -> Result<Tensor<bool>, TensorError> {
        self.fits("elem_less", shape)?;
        let layout = Layout::compact(&self.map.shape())?;
        let mut predicate = Tensor::filled(layout, false)?;
        let mut places = predicate.as_mut_slice().iter_mut();
        self.each(|coord| {
            if let Some(place) = places.next() {
                *place = place_in(coord, shape.leaves()).is_some();
            }
            Ok(())
        })?;
        Ok(predicate)
    }

    /// An error if a shape is nested differently from the coordinates.
    fn fits(&self, op: &'static str, shape: &Tree<i64>) -> Result<(), TensorError> {
        if *shape.profile() == self.codomain {
            return Ok(());
        }
        Err(LayoutError::Coordinate { op, path: Vec::new(), shape: Box::new(shape.profile().clone()) }.into())
    }

    /// Calls `f` with the leaves of the coordinate at each index, in order.
    fn each(&self, mut f: impl FnMut(&[i64]) -> Result<(), TensorError>) -> Result<(), TensorError> {
        let leaves = |step: &Coordinate| Ok::<_, LayoutError>(step.in_profile(&self.codomain)?.leaves().to_vec());
        let mut at = leaves(&self.start)?;
        let mut axes = Vec::new();
        for leaf in self.map.leaves().iter().filter(|leaf| leaf.extent > 1) {
            axes.push((leaf.extent, 0_i64, leaves(&leaf.stride)?));
        }
        // Every partial sum is between these two ends in every mode.
        for (position, start) in at.iter().enumerate() {
            let (mut least, mut greatest) = (i128::from(*start), i128::from(*start));
            for (extent, _, step) in &axes {
                let reach = i128::from(step.get(position).copied().unwrap_or(0)) * i128::from(extent - 1);
                (least, greatest) = (least + reach.min(0), greatest + reach.max(0));
            }
            if [least, greatest, greatest - least].into_iter().any(|number| i64::try_from(number).is_err()) {
                return Err(LayoutError::Overflow { op: "coordinate" }.into());
            }
        }
        loop {
            f(&at)?;
            // A mixed-radix counter: the first axis that has a next index advances, and the axes
            // before it restart.
            let mut moved = false;
            for (extent, index, step) in &mut axes {
                let (next, times) = if *index + 1 < *extent { (*index + 1, 1) } else { (0, 1 - *extent) };
                at.iter_mut().zip(step.iter()).for_each(|(place, step)| *place += step * times);
                *index = next;
                if next > 0 {
                    moved = true;
                    break;
                }
            }
            if !moved {
                return Ok(());
            }
        }
    }
}

/// The colexicographic index of a coordinate, given by its leaves; None if it is outside the shape.
fn place_in(coord: &[i64], extents: &[i64]) -> Option<i64> {
    let (mut index, mut step) = (0_i64, 1_i64);
    for (at, extent) in coord.iter().zip(extents) {
        if *at < 0 || at >= extent {
            return None;
        }
        // It is below the size of the shape.
        index = index.wrapping_add(at.wrapping_mul(step));
        step = step.wrapping_mul(*extent);
    }
    Some(index)
}

impl<T: Copy, L: Offsets> TensorView<'_, T, L> {
    /// Copies the elements at the coordinates of another tensor: element `i` of `dst` becomes the
    /// one at coordinate `i`, or `outside` where that is outside this tensor.
    ///
    /// A tile of an identity tensor that extends past the edge selects the same tile of this
    /// tensor, with zeros past the edge: a predicated copy with zero fill.
    ///
    /// Errors: the sizes differ (E0420); the shape of this tensor is nested differently from the
    /// coordinates.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::{CoordinateTensor, Tensor, Tiling};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let matrix = Tensor::from_fn("(3,5):(5,1)".parse::<Layout>()?, |index| index + 1)?;
    /// // Tiles of 2 x 4: the last one has one row and one column of the matrix.
    /// let tiles = CoordinateTensor::identity(&matrix.shape())?;
    /// let last = tiles.local_tile(&"[2:1;4:1]".parse()?, &"(1,1)".parse()?)?;
    /// let mut tile = Tensor::filled("(2,4):(4,1)".parse::<Layout>()?, -1)?;
    /// matrix.view().gather(&last, &mut tile.view_mut(), 0)?;
    /// assert_eq!(tile.as_slice(), [15, 0, 0, 0, 0, 0, 0, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn gather<D: Offsets>(
        &self,
        at: &CoordinateTensor,
        dst: &mut TensorViewMut<'_, T, D>,
        outside: T,
    ) -> Result<(), TensorError> {
        let shape = self.shape();
        at.fits("gather", &shape)?;
        same_size(at.size(), dst.size())?;
        let mut elements = dst.iter_mut();
        at.each(|coord| {
            let value = match place_in(coord, shape.leaves()) {
                Some(index) => *self.get(index)?,
                None => outside,
            };
            if let Some(element) = elements.next() {
                *element = value;
            }
            Ok(())
        })
    }
}

impl<T: Copy, L: Offsets> TensorViewMut<'_, T, L> {
    /// Copies to the coordinates of another tensor: the element at coordinate `i` becomes element
    /// `i` of `src`. Coordinates outside this tensor are skipped. If several elements have the same
    /// destination, the last one remains.
    ///
    /// The reverse of [`TensorView::gather`]: a predicated store of a thread's part of a tile that
    /// extends past the edge.
    ///
    /// Errors: as [`TensorView::gather`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::{CoordinateTensor, Tensor, Tiling};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut matrix = Tensor::filled("(2,3):(3,1)".parse::<Layout>()?, 0)?;
    /// let right = CoordinateTensor::identity(&matrix.shape())?.local_tile(&"[2:1;2:1]".parse()?, &"(0,1)".parse()?)?;
    /// let tile = Tensor::filled("(2,2):(1,2)".parse::<Layout>()?, 7)?;
    /// matrix.view_mut().scatter(&right, &tile.view())?;
    /// assert_eq!(matrix.as_slice(), [0, 0, 7, 0, 0, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scatter<S: Offsets>(
        &mut self,
        at: &CoordinateTensor,
        src: &TensorView<'_, T, S>,
    ) -> Result<(), TensorError> {
        let shape = self.shape();
        at.fits("scatter", &shape)?;
        same_size(src.size(), at.size())?;
        let mut elements = src.iter();
        at.each(|coord| {
            let value = elements.next();
            if let (Some(index), Some(value)) = (place_in(coord, shape.leaves()), value) {
                self.set(index, *value)?;
            }
            Ok(())
        })
    }
}

impl Tiling for &CoordinateTensor {
    type Output = CoordinateTensor;

    fn rearranged(self, steps: &[Rearrangement]) -> Result<CoordinateTensor, TensorError> {
        steps.iter().try_fold(self.clone(), |tensor, step| {
            let (map, by) = rearranged(&tensor.map, step, true)?;
            let start = tensor.start.plus(&by).ok_or(LayoutError::Overflow { op: "coordinate" })?;
            Ok(CoordinateTensor { map, start, codomain: tensor.codomain })
        })
    }
}

impl fmt::Debug for CoordinateTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoordinateTensor({} + {})", self.start, self.map)
    }
}

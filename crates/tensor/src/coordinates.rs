//! Identity tensors: tensors whose elements are their own coordinates.
//!
//! Law: element `c` of an identity tensor is `c`, and an identity tensor that is sliced, tiled or partitioned as a tensor of data is has at every coordinate the
//! coordinate, in the whole, of what the other has there. Nothing is stored.
//!
//! Tiles may cover more than the tensor here: the coordinates past an edge are what a predicate compares with the shape.

use std::fmt;

use tilewright_layout::{Coordinate, Layout, LayoutError, Profile, Stride, Tree};

use crate::error::TensorError;
use crate::offsets::inside;
use crate::position::Position;
use crate::rearrange::{Rearrangement, rearranged};
use crate::tensor::Tensor;
use crate::tiling::Tiling;

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
    pub fn identity(shape: &Tree<i64>) -> Result<CoordinateTensor, TensorError> {
        let map = Layout::<Coordinate>::identity(shape)?;
        Ok(CoordinateTensor { map, start: Coordinate::zero(), codomain: shape.profile().clone() })
    }

    /// What sends a coordinate to the steps from [`CoordinateTensor::start`].
    pub fn layout(&self) -> &Layout<Coordinate> {
        &self.map
    }

    /// The coordinate in the whole of the first element.
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

    /// The coordinate in the whole, in the nesting of its shape.
    ///
    /// Errors: the position is outside the shape.
    pub fn get(&self, position: impl Position) -> Result<Tree<i64>, TensorError> {
        let coord = position.coord()?;
        inside(&coord, &self.map.shape())?;
        let steps = self.map.eval_at(&coord)?;
        let value = self.start.plus(&steps).ok_or(LayoutError::Overflow { op: "coordinate" })?;
        Ok(value.in_profile(&self.codomain)?)
    }

    /// The coordinates in the whole, in the order of the indices.
    pub fn iter(&self) -> impl Iterator<Item = Tree<i64>> + '_ {
        (0..self.size()).map_while(|index| self.get(index).ok())
    }

    /// Of each coordinate, whether it is inside a shape: below it in every mode. In the same modes, compact (CuTe `elem_less`).
    ///
    /// Errors: there is not so much memory.
    pub fn elem_less(&self, shape: &Tree<i64>) -> Result<Tensor<bool>, TensorError> {
        let layout = Layout::compact(&self.map.shape())?;
        let mut predicate = Tensor::filled(layout, false)?;
        for (place, index) in predicate.as_mut_slice().iter_mut().zip(0..) {
            let coord = self.get(index)?;
            *place = coord.elem_less(shape).proved() && coord.leaves().iter().all(|index| *index >= 0);
        }
        Ok(predicate)
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

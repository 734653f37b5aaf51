//! Tensor maps (TMA): the box that one bulk copy moves.
//!
//! # Law
//!
//! A tensor map has up to five dimensions of global memory, with extents and strides, and in each
//! the extent of a box. The copy writes a box to shared memory compactly, first dimension fastest,
//! with a swizzle. For a tile of global memory and its layout in shared memory, the box is found by
//! following the order of shared memory: each next mode that is a step of 1 in a dimension that is
//! not in the box yet becomes a dimension of the box.
//!
//! ```text
//! smem(c) = index of c in the box, for every c in the box
//! ```
//!
//! The requirements of the hardware, in the words of the CUDA driver API
//! (`cuTensorMapEncodeTiled`): the first dimension is contiguous; extents are at most 2^32; strides
//! are multiples of 16 bytes below 2^40; a box has at most 256 elements in a dimension; its rows
//! are multiples of 16 bytes and, with a swizzle, no longer than a line of the swizzle.
//!
//! (CuTe `make_tma_copy`: construction of the box from the right inverse of the shared-memory
//! layout.)

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::atoms::error::AtomError;
use crate::atoms::terms::SwizzleMode;
use crate::{Coordinate, Layout, LayoutError, ModePath, Tiler, Tree};

/// The most dimensions of a tensor map.
pub const MAX_DIMENSIONS: usize = 5;
/// The greatest extent of a box along a dimension, in elements.
pub const MAX_BOX: i64 = 256;

/// One dimension of a tensor map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// The number of elements in global memory.
    pub extent: i64,
    /// The distance of neighbours in global memory, in bytes.
    pub stride: i64,
    /// The number of elements in the box.
    pub boxed: i64,
}

/// A tensor map: the dimensions of a tensor in global memory, and the box of one bulk copy.
///
/// ```
/// use tilewright_layout::atoms::{SwizzleMode, TensorMap};
/// use tilewright_layout::{Layout, Tree};
///
/// // A tile of 128 x 64 of a row-major f16 matrix, to swizzled rows of 128 bytes: one copy.
/// let layout = |text: &str| text.parse::<Layout>().unwrap();
/// let tile: Tree<i64> = "(128,64)".parse().unwrap();
/// let map = TensorMap::new(&layout("(1024,512):(512,1)"), &tile, &layout("(128,64):(64,1)"), 16, SwizzleMode::Bytes128).unwrap();
/// let boxed: Vec<i64> = map.dimensions().iter().map(|dimension| dimension.boxed).collect();
/// assert_eq!((boxed, map.copies()), (vec![64, 128], 1));
///
/// // Column-major shared memory does not fit.
/// let refusal = TensorMap::new(&layout("(1024,512):(512,1)"), &tile, &layout("(128,64)"), 16, SwizzleMode::None).unwrap_err();
/// assert_eq!(refusal.code(), "E0327");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorMap {
    dimensions: Vec<Dimension>,
    copies: i64,
}

impl TensorMap {
    /// The map for tiles of shape `tile`, one extent for each mode of `global`. `shared` is the
    /// layout of a tile in shared memory, without the swizzle. Elements have `bits` bits.
    ///
    /// Errors: the tile and its layout in shared memory differ in size; no elements are contiguous
    /// in both memories; a number that the hardware does not support ([`AtomError::TensorMap`]).
    pub fn new(
        global: &Layout,
        tile: &Tree<i64>,
        shared: &Layout,
        bits: i64,
        swizzle: SwizzleMode,
    ) -> Result<TensorMap, AtomError> {
        let refuse = |what: &'static str, value: i64| AtomError::TensorMap {
            global: global.to_string().into(),
            shared: shared.to_string().into(),
            what,
            value,
        };
        let bytes = |elements: i64| {
            let bits = elements.checked_mul(bits).ok_or(LayoutError::Overflow { op: "tensor_map" })?;
            Ok::<_, AtomError>(if bits % 8 == 0 { bits / 8 } else { -1 })
        };
        let size = tile.product()?;
        if shared.size() != size {
            return Err(refuse("the elements in shared memory are not those of the tile", shared.size()));
        }
        let coordinates = Layout::<Coordinate>::identity(&global.shape())?.compose_tiler(&Tiler::from_shape(tile)?)?;
        let along = coordinates.compose(&shared.right_inverse()?)?;
        // The leaves of global memory, by path; each becomes a dimension of the box as long as
        // possible.
        let mut leaves = Vec::new();
        gather(global, ModePath::ROOT, &mut leaves)?;
        let mut dimensions: Vec<Dimension> = Vec::new();
        let (mut volume, mut is_whole) = (1_i64, true);
        for leaf in along.leaves().iter().filter(|leaf| leaf.extent > 1) {
            let Some((path, 1)) = leaf.stride.term().map(|(path, scale)| (path, *scale)) else { break };
            let Some(at) = leaves.iter().position(|(known, ..)| *known == path) else { break };
            let (_, extent, stride) = leaves.remove(at);
            let parts = (1..=MAX_BOX.min(leaf.extent)).rev().filter(|part| leaf.extent % part == 0);
            // The first dimension is a row, of whole chunks of 16 bytes.
            let is_row = |part: &i64| !dimensions.is_empty() || bytes(*part).is_ok_and(|bytes| bytes % 16 == 0);
            let boxed = parts.clone().find(is_row).or_else(|| parts.max()).unwrap_or(1);
            if dimensions.is_empty() {
                is_whole = boxed == leaf.extent;
            }
            dimensions.push(Dimension { extent, stride: bytes(stride)?, boxed });
            // Both extents divide the size of the tile.
            volume *= boxed;
            if boxed < leaf.extent || dimensions.len() == MAX_DIMENSIONS {
                break;
            }
        }
        let Some(first) = dimensions.first() else {
            return Err(refuse("side by side in shared memory are no neighbours of a mode of the tile, but", 0));
        };
        if first.stride != bytes(1)? {
            return Err(refuse(
                "elements that are contiguous in shared memory are apart in global memory, in bytes, by",
                first.stride,
            ));
        }
        let row = bytes(first.boxed)?;
        if row % 16 != 0 {
            let what = if is_whole {
                "a row of the box must be a multiple of 16 bytes, but is"
            } else {
                "a part of a row, of at most 256 elements, must be a multiple of 16 bytes, but the longest is"
            };
            return Err(refuse(what, row));
        }
        if swizzle != SwizzleMode::None && row > 16 * swizzle.units() {
            return Err(refuse(
                "a row of the box must not be longer than a line of the swizzle, but is, in bytes,",
                row,
            ));
        }
        for (_, extent, stride) in leaves.into_iter().filter(|(_, extent, _)| *extent > 1) {
            dimensions.push(Dimension { extent, stride: bytes(stride)?, boxed: 1 });
        }
        if dimensions.len() > MAX_DIMENSIONS {
            return Err(refuse("at most 5 dimensions are possible, but there are", dimensions.len() as i64));
        }
        for (number, dimension) in dimensions.iter().enumerate() {
            if dimension.extent > 1 << 32 {
                return Err(refuse("an extent of at most 2^32 is needed, but there is", dimension.extent));
            }
            if number > 0 && (dimension.stride % 16 != 0 || !(0..1 << 40).contains(&dimension.stride)) {
                return Err(refuse("strides are multiples of 16 bytes below 2^40, but there is", dimension.stride));
            }
        }
        Ok(TensorMap { dimensions, copies: size / volume })
    }

    /// The dimensions: the contiguous one first, and those of the box before the others.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The number of boxes in a tile.
    pub fn copies(&self) -> i64 {
        self.copies
    }
}

/// The path, extent and stride of each leaf.
fn gather(layout: &Layout, path: ModePath, leaves: &mut Vec<(ModePath, i64, i64)>) -> Result<(), LayoutError> {
    if let ([leaf], true) = (layout.leaves(), layout.profile().is_leaf()) {
        leaves.push((path, leaf.extent, leaf.stride));
        return Ok(());
    }
    layout.modes().enumerate().try_for_each(|(mode, part)| gather(&part, path.then(mode)?, leaves))
}

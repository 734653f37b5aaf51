//! Tensors in a kernel: views.
//!
//! Law: a view is a function from coordinates to elements of a buffer, `c -> map(offset +
//! layout(c))`, together with a function from the same coordinates to those of the whole tensor.
//! Every operation that slices or tiles a view is a layout function, and is applied to both. So the
//! coordinates of a view in its tensor are always known, and so are the conditions at its edges.

mod cut;
mod cuttable;

use std::fmt;

use tilewright_layout::atoms::{CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::{Expr, Symbolic};
use tilewright_layout::{Composed, Coordinate, Extent, Layout, ModePath, OuterMap, Stride, Swizzle, Tiler, Tree};

pub(super) use self::cut::BySlice;
pub(crate) use self::cut::Cut;
use self::cut::{ByGroup, ByModes};
pub(super) use self::cut::{ByLayout, ByTile, ByTiler};
pub(crate) use self::cuttable::Cuttable;
use super::Build;
use super::part::ThreadPart;
use crate::arguments::{IntoCoord, IntoTile, LayoutArgument};
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::memory::{BufferId, Cache};
use crate::program::register::Register;

/// The position of a view's elements in the whole tensor.
#[derive(Clone)]
pub(crate) struct ViewPlace {
    pub(crate) start: Coordinate<Expr>,
    pub(crate) layout: Layout<Coordinate<Expr>>,
}

/// A tensor in global or shared memory, or a part of one.
///
/// Coordinates and shapes are those of its layout; offsets count elements. Every method that slices
/// or tiles it returns another view of the same memory, which still knows the coordinates of its
/// elements in the whole tensor. That makes it possible to prove or predicate accesses at edges.
///
/// ```
/// use tilewright_kernel::Kernel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Kernel::build("cut", |k| {
///     let x = k.input::<f32>("x", "(M{div=64},N{div=64}):(N,1)")?;
///     k.threads(256)?;
///     // The tile of this block, its transpose, and 16 elements for each of 256 threads.
///     let tile = x.local_tile((64, 64), k.block("(x,y)")?)?;
///     assert_eq!(tile.shape().to_string(), "(64,64)");
///     assert_eq!(tile.select(&[1, 0])?.layout().to_string(), "(64,64):(1,N)");
///     assert_eq!(tile.compose("(256,16):(16,1)")?.shape().to_string(), "((4,64),16)");
///     Ok(())
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct View<'k> {
    pub(crate) build: &'k Build,
    pub(crate) buffer: BufferId,
    pub(crate) element: Element,
    pub(crate) map: Option<Swizzle>,
    pub(crate) offset: Expr,
    pub(crate) layout: Layout<Expr>,
    pub(crate) place: ViewPlace,
    /// The shape of the whole tensor.
    pub(crate) whole: Tree<Expr>,
    /// Modes that end before their extent, by their paths, and the ends.
    pub(crate) ends: Vec<(ModePath, Expr)>,
    /// Whether the whole is not the declared tensor, but its memory with another element type.
    pub(crate) recast: bool,
    /// The rank of the block whose shared memory it is in; None for this block.
    pub(crate) rank: Option<Register>,
    /// The cache hint of loads.
    pub(crate) cache: Cache,
    /// The part of a tile that it is, if it is one.
    pub(crate) part: Option<ThreadPart>,
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({})", self.text())
    }
}

/// A shape as known extents; an error if an extent is not known.
pub(crate) fn known_shape(shape: &Tree<Expr>, layout: impl Fn() -> String) -> Result<Tree<i64>, Reason> {
    shape.try_map(|extent| extent.known().ok_or_else(|| Reason::Open { what: "an extent", layout: layout() }))
}

impl<'k> View<'k> {
    /// The layout, as text.
    pub fn text(&self) -> String {
        match &self.map {
            Some(swizzle) => format!("{swizzle} o {} o {}", self.offset, self.layout),
            None if self.offset == Expr::from(0) => self.layout.to_string(),
            None => format!("{} + {}", self.offset, self.layout),
        }
    }

    /// The shape.
    pub fn shape(&self) -> Tree<Expr> {
        self.layout.shape()
    }

    /// The type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The layout, in elements relative to the first element of the view.
    pub fn layout(&self) -> &Layout<Expr> {
        &self.layout
    }

    /// The tile with this shape at a coordinate of tiles, such as `(block_x, block_y)`. `_` keeps
    /// the tiles along a mode as further modes after those of the tile (CuTe `local_tile`).
    ///
    /// Tiles cover the tensor, so the last ones may reach past its edge; accesses there must be
    /// predicated. If the coordinate names a block ([`Build::block`]) and [`Build::grid`] is not
    /// called, the grid has as many blocks as there are tiles.
    ///
    /// Errors: the tile or the coordinate does not match the shape; another view has another number
    /// of tiles, and no grid is set.
    #[track_caller]
    pub fn local_tile(&self, tile: impl IntoTile, at: impl IntoCoord) -> Result<View<'k>, KernelError> {
        self.build.statement("local_tile", || self.tile_at(tile, at))
    }

    /// Tiles and rests, as `((tile),(rest))` (CuTe `zipped_divide`; `tensor_zipped_divide` of the
    /// DSL).
    ///
    /// Errors: the tiler does not divide the layout.
    #[track_caller]
    pub fn zipped_divide(&self, tiler: impl IntoTile) -> Result<View<'k>, KernelError> {
        self.build.statement("zipped_divide", || self.cut(&ByTile { tiler: &self.build.tiler(tiler)? }))
    }

    /// The composition of the view with a layout of its indices, or with a tiler (CuTe
    /// `composition`; `tensor_composition` of the DSL).
    ///
    /// Errors: the composition does not exist.
    #[track_caller]
    pub fn compose(&self, by: impl IntoTile) -> Result<View<'k>, KernelError> {
        self.build.statement("compose", || {
            let tiler = self.build.tiler(by)?;
            match tiler {
                Tiler::Layout(layout) => self.cut(&ByLayout(&layout)),
                tiler => self.cut(&ByTiler(&tiler)),
            }
        })
    }

    /// The slice at a coordinate, in which `_` keeps a mode.
    ///
    /// Errors: the coordinate does not match the shape.
    #[track_caller]
    pub fn slice(&self, at: impl IntoCoord) -> Result<View<'k>, KernelError> {
        self.build.statement("slice", || self.slice_at(at))
    }

    pub(crate) fn composed(&self, by: &Layout) -> Result<View<'k>, Reason> {
        self.cut(&ByLayout(&Layout::from(by)))
    }

    /// These modes, in this order: `select(&[1, 0])` is the transposed matrix.
    ///
    /// Errors: there is no such mode.
    #[track_caller]
    pub fn select(&self, modes: &[usize]) -> Result<View<'k>, KernelError> {
        self.build.statement("select", || self.cut(&ByModes(modes)))
    }

    /// The modes of a range, grouped as one mode.
    ///
    /// Errors: there are no such modes.
    #[track_caller]
    pub fn group(&self, modes: std::ops::Range<usize>) -> Result<View<'k>, KernelError> {
        self.build.statement("group", || self.cut(&ByGroup(modes)))
    }

    /// This thread's part of the view, by a tiled copy: `((values,further),rest,..)` (CuTe
    /// `partition_S`, `partition_D`).
    ///
    /// [`Build::copy`] with this tiled copy copies exactly the elements of the result.
    ///
    /// Errors: the tile of the copy does not divide the view; the number of threads differs; the
    /// view is already a part.
    #[track_caller]
    pub fn partition(&self, copy: &TiledCopy, end: CopyEnd) -> Result<View<'k>, KernelError> {
        self.build.statement("partition", || self.partition_copy(copy, end, None))
    }

    /// As [`View::partition`], for the thread with an index (CuTe `get_slice(thread)`). Use it for
    /// threads of a role that are numbered differently, or for a thread that needs the part of
    /// another.
    ///
    /// Errors: as [`View::partition`]; the index is not proved to be one of the copy's threads.
    #[track_caller]
    pub fn partition_at(&self, copy: &TiledCopy, end: CopyEnd, thread: &Expr) -> Result<View<'k>, KernelError> {
        self.build.statement("partition_at", || self.partition_copy(copy, end, Some(thread)))
    }

    /// This thread's part of an operand of a tiled MMA: `(values,rest,rest,..)` (CuTe
    /// `partition_A`, ..).
    ///
    /// Errors: as [`View::partition`].
    #[track_caller]
    pub fn partition_mma(&self, mma: &TiledMma, operand: Operand) -> Result<View<'k>, KernelError> {
        self.build.statement("partition_mma", || self.partition_of(mma, operand, None))
    }

    /// As [`View::partition_mma`], for the thread with an index.
    ///
    /// Errors: as [`View::partition_at`].
    #[track_caller]
    pub fn partition_mma_at(&self, mma: &TiledMma, operand: Operand, thread: &Expr) -> Result<View<'k>, KernelError> {
        self.build.statement("partition_mma_at", || self.partition_of(mma, operand, Some(thread)))
    }

    /// This thread's part of a view whose mode 0 counts threads: the slice at the index of the
    /// thread (`tensor[(thread, None)]` of the DSL).
    ///
    /// Errors: the extent of the first mode is not the number of threads.
    #[track_caller]
    pub fn thread_part(&self) -> Result<View<'k>, KernelError> {
        self.build.statement("thread_part", || self.of_thread())
    }
}

/// The parts of a tensor's layout: the swizzle, if any, the offset that is added before it, and the
/// layout.
pub(crate) fn read(
    core: &mut super::core::Core,
    layout: &LayoutArgument,
) -> Result<(Option<Swizzle>, Expr, Layout<Expr>), Reason> {
    match layout {
        LayoutArgument::Layout(layout) => return Ok((None, Expr::from(0), Layout::from(layout))),
        LayoutArgument::Composed(composed) => {
            if let OuterMap::Swizzle(swizzle) = composed.outer() {
                return Ok((Some(*swizzle), Expr::from(*composed.offset()), Layout::from(composed.inner())));
            }
        }
        LayoutArgument::Text(text) => {
            core.names.gather(text)?;
            if !text.contains(" o ") {
                return Ok((None, Expr::from(0), core.names.layout(text)?));
            }
            let composed: Composed<Expr> = text.parse()?;
            if let OuterMap::Swizzle(swizzle) = composed.outer() {
                return Ok((Some(*swizzle), composed.offset().clone(), composed.inner().clone()));
            }
        }
    }
    Err(Reason::Instruction {
        name: layout.to_string(),
        because: "tensors of kernels have layouts, optionally with a swizzle".to_string(),
    })
}

/// The paths of the leaves of a shape, in order.
pub(crate) fn paths(shape: &Tree<Expr>) -> Vec<ModePath> {
    fn gather(shape: &Tree<Expr>, path: ModePath, found: &mut Vec<ModePath>) {
        if shape.is_leaf() {
            found.push(path);
            return;
        }
        for (mode, part) in shape.modes().enumerate() {
            if let Ok(path) = path.then(mode) {
                gather(&part, path, found);
            }
        }
    }
    let mut found = Vec::new();
    gather(shape, ModePath::ROOT, &mut found);
    found
}

/// The coordinates of a whole tensor.
pub(crate) fn whole(shape: &Tree<Expr>) -> Result<ViewPlace, Reason> {
    Ok(ViewPlace { start: Coordinate::zero(), layout: Layout::<Coordinate<Expr>>::identity(shape)? })
}

/// The parameters of a layout, which are sizes.
pub(crate) fn sizes(layout: &Layout<Expr>) -> Vec<tilewright_layout::symbolic::Parameter> {
    layout.parameters()
}

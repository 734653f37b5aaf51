//! Tensors as a kernel sees them.
//!
//! Law: a view is a function from coordinates to elements of a buffer, `c -> map(offset +
//! layout(c))`, together with a function from the same coordinates to those of the whole tensor.
//! Every operation that cuts a view is a layout function, and is applied to both, so the
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

/// Where the elements of a view are in the whole tensor.
#[derive(Clone)]
pub(crate) struct ViewPlace {
    pub(crate) start: Coordinate<Expr>,
    pub(crate) layout: Layout<Coordinate<Expr>>,
}

/// A tensor in global or shared memory, or a part of one.
///
/// Coordinates and shapes are those of its layout; offsets count elements. Every method that cuts
/// it returns another view of the same memory, which still knows which elements of the whole tensor
/// it has. That is how an access past an edge is found.
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
    /// Modes of it that end before, by their paths, and where.
    pub(crate) ends: Vec<(ModePath, Expr)>,
    /// Whether that is not the tensor that was declared, but its memory as other elements.
    pub(crate) recast: bool,
    /// The rank of the block whose shared memory it is in, where that may be another.
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

/// A shape whose extents are known.
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

    /// The layout of the part, in elements from where the part begins.
    pub fn layout(&self) -> &Layout<Expr> {
        &self.layout
    }

    /// The tile of the given shape at a coordinate of tiles: `(block_x, block_y)`, or with `_` for
    /// tiles that are left in the result as modes behind those of the tile (CuTe `local_tile`).
    ///
    /// Tiles cover the tensor, so the last ones may reach past its edge; accesses there must be
    /// predicated. Where the coordinate names a block ([`Build::block`]) and [`Build::grid`] says
    /// nothing, the grid has as many blocks as there are tiles.
    ///
    /// Errors: tile or coordinate do not fit the shape; another view has another number of tiles,
    /// and no grid is set.
    #[track_caller]
    pub fn local_tile(&self, tile: impl IntoTile, at: impl IntoCoord) -> Result<View<'k>, KernelError> {
        self.build.statement("local_tile", || self.tile_at(tile, at))
    }

    /// Tiles and rests, as `((tile),(rest))` (CuTe `zipped_divide`; `tensor_zipped_divide` of the
    /// DSL).
    ///
    /// Errors: the tiler does not fit.
    #[track_caller]
    pub fn zipped_divide(&self, tiler: impl IntoTile) -> Result<View<'k>, KernelError> {
        self.build.statement("zipped_divide", || self.cut(&ByTile { tiler: &self.build.tiler(tiler)? }))
    }

    /// The view after a layout of its indices, or after a tiler (CuTe `composition`;
    /// `tensor_composition` of the DSL).
    ///
    /// Errors: the composite does not exist.
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
    /// Errors: the coordinate does not fit the shape.
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

    /// The modes of a range as one.
    ///
    /// Errors: there are no such modes.
    #[track_caller]
    pub fn group(&self, modes: std::ops::Range<usize>) -> Result<View<'k>, KernelError> {
        self.build.statement("group", || self.cut(&ByGroup(modes)))
    }

    /// The part of this thread in the view, by a tiled copy: `((values,further),rest,..)` (CuTe
    /// `partition_S`, `partition_D`).
    ///
    /// The result is a part: [`Build::copy`] with this tiled copy moves exactly its elements.
    ///
    /// Errors: the tile of the copy does not fit; the number of threads is another; the view is a
    /// part already.
    #[track_caller]
    pub fn partition(&self, copy: &TiledCopy, end: CopyEnd) -> Result<View<'k>, KernelError> {
        self.build.statement("partition", || self.partition_copy(copy, end, None))
    }

    /// As [`View::partition`], for the thread of a number (CuTe `get_slice(thread)`): threads of a
    /// role that count from elsewhere, or one thread that has the part of another.
    ///
    /// Errors: as [`View::partition`]; the number is not shown to be one of the copy's threads.
    #[track_caller]
    pub fn partition_at(&self, copy: &TiledCopy, end: CopyEnd, thread: &Expr) -> Result<View<'k>, KernelError> {
        self.build.statement("partition_at", || self.partition_copy(copy, end, Some(thread)))
    }

    /// The part of this thread in an operand of a tiled MMA: `(values,rest,rest,..)` (CuTe
    /// `partition_A`, ..).
    ///
    /// Errors: as [`View::partition`].
    #[track_caller]
    pub fn partition_mma(&self, mma: &TiledMma, operand: Operand) -> Result<View<'k>, KernelError> {
        self.build.statement("partition_mma", || self.partition_of(mma, operand, None))
    }

    /// As [`View::partition_mma`], for the thread of a number.
    ///
    /// Errors: as [`View::partition_at`].
    #[track_caller]
    pub fn partition_mma_at(&self, mma: &TiledMma, operand: Operand, thread: &Expr) -> Result<View<'k>, KernelError> {
        self.build.statement("partition_mma_at", || self.partition_of(mma, operand, Some(thread)))
    }

    /// The part of this thread where `threads` numbers them: mode 0 of the view at the thread, the
    /// others left (`tensor[(thread, None)]` of the DSL).
    ///
    /// Errors: the first mode has not as many indices as there are threads.
    #[track_caller]
    pub fn thread_part(&self) -> Result<View<'k>, KernelError> {
        self.build.statement("thread_part", || self.of_thread())
    }
}

/// The parts of a tensor's layout: a swizzle or none, what is added before it, and the layout.
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

/// The paths of the leaves of a shape, in their order.
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

/// The parameters of a layout that are sizes.
pub(crate) fn sizes(layout: &Layout<Expr>) -> Vec<tilewright_layout::symbolic::Parameter> {
    layout.parameters()
}

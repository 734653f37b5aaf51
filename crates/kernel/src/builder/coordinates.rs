//! The coordinates of a tensor as a tensor without memory: an identity tensor.
//!
//! Law: coordinates are tiled and partitioned like views. So at index `i`, the part of a thread has
//! the coordinate of element `i` of the same part of a view of that shape.
//!
//! (CuTe `make_identity_tensor`.)

use std::fmt;

use tilewright_layout::atoms::{CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coordinate, Layout, LayoutError, Stride, Tiler, Tree};

use super::Build;
use super::part::ThreadPart;
use super::tensor::{self, Cut, Cuttable, ViewPlace};
use crate::arguments::{IntoCoord, IntoShapeArgument, IntoTile, LayoutArgument, ShapeArgument};
use crate::error::{KernelError, Reason};

/// The coordinates of a tensor, or of a part of one.
///
/// ```
/// use tilewright_kernel::Kernel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Kernel::build("corner", |k| {
///     k.threads(32)?;
///     k.grid(tilewright_kernel::program::operation::Axis::X, 4)?;
///     let tile = k.coordinates((64, 8))?.local_tile((16, 8), k.block("(x,0)")?)?;
///     assert_eq!(tile.shape().to_string(), "(16,8)");
///     // Element 17 of the tile of block x: row 16 x + 1, column 1.
///     assert_eq!(tile.at(17)?.leaves()[1].known(), Some(1));
///     Ok(())
/// })?;
/// # use tilewright_layout::Extent;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Coordinates<'k> {
    build: &'k Build,
    place: ViewPlace,
    whole: Tree<Expr>,
    part: Option<ThreadPart>,
}

impl fmt::Debug for Coordinates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Coordinates({})", self.place.layout)
    }
}

impl<'k> Cuttable<'k> for Coordinates<'k> {
    fn build(&self) -> &'k Build {
        self.build
    }

    fn place(&self) -> &ViewPlace {
        &self.place
    }

    fn part(&self) -> Option<&ThreadPart> {
        self.part.as_ref()
    }

    fn of_part(self, part: ThreadPart) -> Self {
        Coordinates { part: Some(part), ..self }
    }

    fn name(&self) -> String {
        format!("the coordinates of {}", self.whole)
    }

    fn cut(&self, by: &impl Cut) -> Result<Coordinates<'k>, Reason> {
        let place = self.place.cut(by)?;
        let part = self.part.as_ref().map(|part| part.cut(by.keeps_values()));
        Ok(Coordinates { place, part, ..self.clone() })
    }
}

impl<'k> Coordinates<'k> {
    /// The shape.
    pub fn shape(&self) -> Tree<Expr> {
        self.place.layout.shape()
    }

    /// The layout: from coordinates of the part to those of the tensor, relative to the first
    /// coordinate of the part.
    pub fn layout(&self) -> &Layout<Coordinate<Expr>> {
        &self.place.layout
    }

    /// The coordinate in the whole tensor of the element with an index.
    ///
    /// Errors: the coordinate is not representable.
    #[track_caller]
    pub fn at(&self, index: impl Into<Expr>) -> Result<Tree<Expr>, KernelError> {
        KernelError::within("at", || {
            let part: Coordinate<Expr> = self.place.layout.eval(&index.into())?;
            let at = self.place.start.plus(&part).ok_or(LayoutError::Overflow { op: "coordinate" })?;
            let mut paths = tensor::paths(&self.whole).into_iter();
            Ok(self.whole.map(|_| paths.next().map_or(Expr::zero(), |path| at.scale_at(path))))
        })
    }

    /// As [`View::local_tile`](crate::View::local_tile).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn local_tile(&self, tile: impl IntoTile, at: impl IntoCoord) -> Result<Coordinates<'k>, KernelError> {
        self.build.statement("local_tile", || self.tile_at(tile, at))
    }

    /// As [`View::zipped_divide`](crate::View::zipped_divide).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn zipped_divide(&self, tiler: impl IntoTile) -> Result<Coordinates<'k>, KernelError> {
        let cut = || self.cut(&tensor::ByTile { tiler: &self.build.tiler(tiler)? });
        self.build.statement("zipped_divide", cut)
    }

    /// As [`View::compose`](crate::View::compose).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn compose(&self, by: impl IntoTile) -> Result<Coordinates<'k>, KernelError> {
        let cut = || {
            let tiler = self.build.tiler(by)?;
            match tiler {
                Tiler::Layout(layout) => self.cut(&tensor::ByLayout(&layout)),
                tiler => self.cut(&tensor::ByTiler(&tiler)),
            }
        };
        self.build.statement("compose", cut)
    }

    /// As [`View::slice`](crate::View::slice).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn slice(&self, at: impl IntoCoord) -> Result<Coordinates<'k>, KernelError> {
        self.build.statement("slice", || self.slice_at(at))
    }

    /// As [`View::thread_part`](crate::View::thread_part).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn thread_part(&self) -> Result<Coordinates<'k>, KernelError> {
        self.build.statement("thread_part", || self.of_thread())
    }

    /// As [`View::partition`](crate::View::partition).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn partition(&self, copy: &TiledCopy, end: CopyEnd) -> Result<Coordinates<'k>, KernelError> {
        self.build.statement("partition", || self.partition_copy(copy, end, None))
    }

    /// As [`View::partition_at`](crate::View::partition_at).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn partition_at(&self, copy: &TiledCopy, end: CopyEnd, thread: &Expr) -> Result<Coordinates<'k>, KernelError> {
        self.build.statement("partition_at", || self.partition_copy(copy, end, Some(thread)))
    }

    /// As [`View::partition_mma`](crate::View::partition_mma).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn partition_mma(&self, mma: &TiledMma, operand: Operand) -> Result<Coordinates<'k>, KernelError> {
        self.build.statement("partition_mma", || self.partition_of(mma, operand, None))
    }

    /// As [`View::partition_mma_at`](crate::View::partition_mma_at).
    ///
    /// Errors: as there.
    #[track_caller]
    pub fn partition_mma_at(
        &self,
        mma: &TiledMma,
        operand: Operand,
        thread: &Expr,
    ) -> Result<Coordinates<'k>, KernelError> {
        self.build.statement("partition_mma_at", || self.partition_of(mma, operand, Some(thread)))
    }
}

impl Build {
    /// The coordinates of a tensor with a shape (CuTe `make_identity_tensor`). The shape is a tuple
    /// of numbers, the shape of a view, or text in which sizes have names.
    ///
    /// Errors: the shape cannot be read, or has too many modes.
    #[track_caller]
    pub fn coordinates(&self, shape: impl IntoShapeArgument) -> Result<Coordinates<'_>, KernelError> {
        KernelError::within("coordinates", || {
            let shape = match shape.into_shape_argument()? {
                ShapeArgument::Text(text) => tensor::read(&mut self.core(), &LayoutArgument::Text(text))?.2.shape(),
                ShapeArgument::Shape(shape) => shape,
            };
            Ok(Coordinates { build: self, place: tensor::whole(&shape)?, whole: shape, part: None })
        })
    }
}

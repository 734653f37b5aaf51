//! Partitions of tensors among the threads of an instruction.
//!
//! Law: the part of a thread is `T o f`, where `f` is the partition of the coordinates that
//! [`ThreadMma::partition`] and [`ThreadCopy::partition`] make of any layout. Unlike layouts,
//! tensors end, so tiles that cover more than a mode are refused. Identity tensors are an
//! exception: their coordinates say where the tensor ends.

use tilewright_layout::atoms::{CopyEnd, CopyTilers, MmaTilers, Operand, ThreadCopy, ThreadMma};
use tilewright_layout::{Coord, DivideForm, LayoutError, Slot, Tree};

use crate::coordinates::CoordinateTensor;
use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::rearrange::Rearrangement;
use crate::tiling::Tiling;
use crate::view::{TensorView, TensorViewMut};

/// What can be partitioned among the threads of an instruction: views and identity tensors.
///
/// ```
/// use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Instructed, Tensor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mma = TiledMma::from(MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?);
/// let rows: Layout = "(32,16):(16,1)".parse()?;
/// let sums = Tensor::from_vec((0..512).collect(), rows)?;
///
/// // Lane 5 has two neighbours in rows 1 and 9 of each block.
/// let part = sums.view().partition_for(&mma.get_slice(&5)?, Operand::C)?;
/// assert_eq!(part.layout().to_string(), "((2,2),2,2):((1,128),256,8)");
/// assert_eq!((part.get([0, 0, 0])?, part.get([2, 1, 0])?), (&18, &(18 + 128 + 256)));
///
/// // A thread's own copy.
/// assert_eq!(part.fragment_like::<f32>()?.layout().to_string(), "((2,2),2,2):((1,2),8,4)");
/// # Ok(())
/// # }
/// ```
pub trait Instructed: Tiling {
    /// The number of modes.
    #[doc(hidden)]
    fn mode_count(&self) -> usize;

    /// A thread's part of an operand (M,K,..), (N,K,..) or (M,N,..) of a tiled MMA:
    /// `(FrgV,RestM,RestK,..)` (CuTe `partition_A`, `partition_B`, `partition_C`).
    ///
    /// Errors: the instruction does not have the operand; fewer than two modes; a tile larger than
    /// its mode, or tiles that cover more than it; as [`Tiling::logical_divide`].
    #[doc(alias = "partition_A")]
    #[doc(alias = "partition_B")]
    #[doc(alias = "partition_C")]
    fn partition_for(self, thread: &ThreadMma<'_>, operand: Operand) -> Result<Self::Output, TensorError> {
        let modes = self.mode_count();
        if modes < 2 {
            let (op, path) = ("partition", Vec::new());
            return Err(LayoutError::Rank { op, path, expected: 2, found: modes }.into());
        }
        let MmaTilers { order, atom, held, rest } = thread.mma().tilers(operand)?;
        let at = thread.coordinate(operand)?.map(|index| Slot::At(*index));
        let coord = Tree::tuple([&at, &Tree::tuple([&Tree::leaf(Slot::All), &open(modes)?])?])?;
        self.rearranged(&[
            Rearrangement::Divide(DivideForm::Logical, order),
            Rearrangement::Divide(DivideForm::Zipped, atom),
            Rearrangement::ComposeBy(held),
            Rearrangement::Divide(DivideForm::Zipped, rest),
            Rearrangement::Slice(coord),
        ])
    }

    /// A thread's part at one end of a tiled copy: `((FrgV,FrgX),RestM,..)` (CuTe `partition_S`,
    /// `partition_D`).
    ///
    /// Errors: the copy splits values of this width; a tile larger than its mode, or tiles that
    /// cover more than it; as [`Tiling::zipped_divide`]; a mutable view at an end where several
    /// threads have the same element.
    #[doc(alias = "partition_S")]
    #[doc(alias = "partition_D")]
    fn partition_at(self, thread: &ThreadCopy<'_>, end: CopyEnd) -> Result<Self::Output, TensorError> {
        let modes = self.mode_count();
        let CopyTilers { tile, held } = thread.copy().tilers(end)?;
        let at = Tree::flat([Slot::At(*thread.number()), Slot::All])?;
        let coord = Tree::tuple([&at, &open(modes)?])?;
        self.rearranged(&[
            Rearrangement::Divide(DivideForm::Zipped, tile),
            Rearrangement::ComposeBy(held),
            Rearrangement::Slice(coord),
        ])
    }
}

/// A coordinate of this many open modes `_`.
fn open(modes: usize) -> Result<Coord, LayoutError> {
    Tree::flat((0..modes).map(|_| Slot::All))
}

impl<T, L: Offsets> Instructed for &TensorView<'_, T, L> {
    fn mode_count(&self) -> usize {
        self.rank()
    }
}

impl<T, L: Offsets> Instructed for TensorViewMut<'_, T, L> {
    fn mode_count(&self) -> usize {
        self.rank()
    }
}

impl Instructed for &CoordinateTensor {
    fn mode_count(&self) -> usize {
        self.layout().rank()
    }
}

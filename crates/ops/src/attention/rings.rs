//! Rings of tiles in shared memory, in the kernels that are written by hand.
//!
//! Law: a ring has one tile for each stage, and all tiles have one layout. In tiles of rows, chunks
//! of 16 bytes are permuted by row, so that eight adjacent rows of a chunk are in different banks.

use tilewright_kernel::{Build, Element, KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Layout, Swizzle};

use super::place::behind;

/// Elements of 16 bits of a line of 128 bytes of shared memory.
pub(super) const LINE_ELEMENTS: i64 = 64;

/// A ring of tiles.
pub(super) struct Ring<'k> {
    /// All tiles; the last mode is the stage.
    stages: View<'k>,
    /// The modes of a tile.
    modes: usize,
}

impl<'k> Ring<'k> {
    /// Tiles of `rows` rows of `wide` elements of 16 bits, row after row: for `cp.async` and
    /// `ldmatrix`.
    pub(super) fn of_rows(
        k: &'k Build,
        element: Element,
        [rows, wide]: [i64; 2],
        stages: i64,
    ) -> Result<Ring<'k>, KernelError> {
        let swizzle = Swizzle::new(3, 3, i64::from(wide.ilog2()) - 3)?;
        let lines = Layout::strided((rows, wide, stages), (wide, 1, rows * wide))?;
        Ok(Ring { stages: k.shared_of(element, Composed::new(swizzle, 0, lines)?)?, modes: 2 })
    }

    /// Tiles of `rows` rows of `wide` elements of 16 bits, in panels of 128 bytes: for TMA and
    /// wgmma.
    pub(super) fn of_panels(
        k: &'k Build,
        element: Element,
        [rows, wide]: [i64; 2],
        stages: i64,
    ) -> Result<Ring<'k>, KernelError> {
        let lines = Layout::strided((LINE_ELEMENTS, wide / LINE_ELEMENTS), (1, LINE_ELEMENTS * rows))?;
        let stages = Layout::strided(stages, rows * wide)?;
        let all = Layout::tuple(&[Layout::strided(rows, LINE_ELEMENTS)?, lines, stages])?;
        Ok(Ring { stages: k.shared_of(element, Composed::new(Swizzle::new(3, 3, 3)?, 0, all)?)?, modes: 2 })
    }

    /// Tiles of as many numbers of f32.
    pub(super) fn of_numbers(k: &'k Build, numbers: i64, stages: i64) -> Result<Ring<'k>, KernelError> {
        let all = Layout::strided((numbers, stages), (1, numbers))?;
        Ok(Ring { stages: k.shared_of(Element::F32, all)?, modes: 1 })
    }

    /// Tiles of two modes of another layout, whose third mode is the stage.
    pub(super) fn of_layout(
        k: &'k Build,
        element: Element,
        swizzle: Swizzle,
        layout: Layout,
    ) -> Result<Ring<'k>, KernelError> {
        Ok(Ring { stages: k.shared_of(element, Composed::new(swizzle, 0, layout)?)?, modes: 2 })
    }

    /// The tile of a stage.
    pub(super) fn stage(&self, stage: &Expr) -> Result<View<'k>, KernelError> {
        self.stages.slice(behind(self.modes, &[stage])?)
    }

    /// The only tile of a ring of one stage.
    pub(super) fn only(&self) -> Result<View<'k>, KernelError> {
        self.stage(&Expr::from(0))
    }
}

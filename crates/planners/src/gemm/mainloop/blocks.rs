//! The scales of a block-scaled format, as `mma.sync` takes them.
//!
//! Law: of each 16 rows of A that its warp multiplies, a thread holds the scales of row `lane / 4`,
//! or of row `lane / 4 + 8` in odd lanes; of each 8 columns of B, those of column `lane / 4`. The
//! scales of an instruction along K are a word of 1, 2 or 4 bytes. A k-tile has four adjacent
//! words, which are loaded together from global memory.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Fragment, KernelError, LayoutArgument, View};
use tilewright_layout::atoms::{Operand, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout, Slot, Tree};

use crate::gemm::index::tile_at;
use crate::gemm::plan::Plan;
use crate::gemm::plan::warps::warp_atom;
use crate::gemm::problem::Problem;
use crate::gemm::schedule::unit::Unit;
use crate::units::count;

/// The scales of both operands: first those of the operand along the rows of tiles.
pub(crate) struct BlockOperands<'k> {
    sides: [SideScales<'k>; 2],
    /// Bytes of a k-tile along K.
    depth: i64,
}

/// The scales of an operand.
struct SideScales<'k> {
    /// The view of the scales: a word for each line and each byte along K. All bytes along K of one
    /// instruction map to the same word.
    view: View<'k>,
    batch: bool,
    /// Lines of a tile.
    lines: i64,
}

impl<'k> BlockOperands<'k> {
    /// Declares the scales of a problem: those of A, then those of B.
    pub(crate) fn declare(
        k: &'k Build,
        problem: &Problem,
        plan: &Plan,
    ) -> Result<Option<BlockOperands<'k>>, KernelError> {
        let Some(blocks) = problem.blocks() else { return Ok(None) };
        let word = blocks.word();
        let element = match word {
            1 => Element::U8,
            2 => Element::U16,
            _ => Element::U32,
        };
        let of = |is_a: bool| -> Result<SideScales<'k>, KernelError> {
            let matrix = blocks.of(is_a);
            let ([rows, along, matrices], batch) = (matrix.extents(), matrix.is_batch());
            let [down, _, step] = matrix.strides().unwrap_or([0; 3]);
            let mut modes = vec![
                Layout::strided(rows, down / word)?,
                Layout::strided((warp_atom(problem).1, count(along, word)), (0, 1))?,
            ];
            if batch {
                modes.push(Layout::strided(matrices, step / word)?);
            }
            let layout = LayoutArgument::placed(None, matrix.offset() / word, Layout::tuple(&modes)?)?;
            let view = k.tensor_of(element, if is_a { "scales_a" } else { "scales_b" }, layout, Role::Input)?;
            let lines = if is_a != plan.swapped { plan.rows } else { plan.columns };
            Ok(SideScales { view, batch, lines })
        };
        let [a, b] = [of(true)?, of(false)?];
        let sides = if plan.swapped { [b, a] } else { [a, b] };
        Ok(Some(BlockOperands { sides, depth: problem.k_tile() }))
    }

    /// Loads the scales of a thread for a k-tile: for each 16 rows of a tile that its warp
    /// multiplies, and for each 8 columns.
    pub(crate) fn ask(
        &self,
        k: &'k Build,
        mma: &TiledMma,
        unit: &Unit,
        step: &Expr,
    ) -> Result<[Vec<Fragment<'k>>; 2], KernelError> {
        let odd = k.coordinate(&k.thread()?, &[2, mma.threads() / 2])?[0].clone();
        let [rows, columns] = &self.sides;
        let zero = || Slot::At(Expr::from(0));
        // Values of A are bytes, halves of the rows, and halves of K; those of B bytes and halves
        // of K.
        let of_rows = Tree::flat([zero(), Slot::At(odd), zero()])?;
        let of_columns = Tree::flat([zero(), zero()])?;
        Ok([
            rows.ask(mma, (Operand::A, &of_rows), unit, [&unit.row, step], self.depth)?,
            columns.ask(mma, (Operand::B, &of_columns), unit, [&unit.column, step], self.depth)?,
        ])
    }
}

impl<'k> SideScales<'k> {
    fn ask(
        &self,
        mma: &TiledMma,
        (operand, value): (Operand, &Tree<Slot<Expr>>),
        unit: &Unit,
        [line, step]: [&Expr; 2],
        depth: i64,
    ) -> Result<Vec<Fragment<'k>>, KernelError> {
        let view = match unit.matrix.as_ref().filter(|_| self.batch) {
            Some(matrix) => self.view.slice(Tree::flat([Slot::All, Slot::All, Slot::At(matrix.clone())])?)?,
            None => self.view.clone(),
        };
        let tile = view.local_tile((self.lines, depth), tile_at(line, Some(step))?)?;
        let part = tile.partition_mma(mma, operand)?;
        let blocks = part.layout().mode(1).map_or(1, |mode| mode.size().known().unwrap_or(1));
        let of = |block: i64| {
            let at = Tree::tuple(&[value.clone(), Tree::leaf(Slot::At(Expr::from(block))), Tree::leaf(Slot::All)])?;
            part.slice(at)?.load_predicated()
        };
        (0..blocks).map(of).collect()
    }
}

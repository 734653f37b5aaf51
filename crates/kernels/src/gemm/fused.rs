//! Elements of further tensors beside the sums.
//!
//! Law: for each sum of a thread, in the order of its registers, the elements of the inputs at the same
//! row, column and matrix; 0 where these lie past the edges. What repeats along rows or columns is
//! loaded once.

use tilewright_atoms::{Operand, TiledMma};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

use super::matrix::Matrix;
use super::problem::Fused;
use super::schedule::Unit;
use crate::product::tile_at;

/// An input as a kernel reads it.
pub(super) struct Input<'k> {
    view: View<'k>,
    /// Whether there is one matrix for each of the batch.
    batch: bool,
    /// Whether its elements repeat from row to row, and from column to column, of a tile.
    repeats: [bool; 2],
}

/// The inputs of a function, declared in their order.
pub(super) fn inputs<'k>(k: &'k Build, fused: &Fused, swapped: bool) -> Result<Vec<Input<'k>>, KernelError> {
    let declare = |(number, input): (usize, &Matrix)| {
        let view = k.tensor_of(input.element(), &format!("x{}", number + 1), &input.declared(), Role::Input)?;
        let repeated =
            |mode: usize| input.extents()[mode] > 1 && input.strides().is_some_and(|strides| strides[mode] == 0);
        let [rows, columns] = [repeated(0), repeated(1)];
        let repeats = if swapped { [columns, rows] } else { [rows, columns] };
        // Rows of tiles are columns of D where operands change places.
        Ok(Input { view, batch: input.is_batch(), repeats })
    };
    fused.inputs.iter().enumerate().map(declare).collect()
}

impl<'k> Input<'k> {
    /// What a thread has of the input beside its sums of `tile` of the part of the work, in f32: columns
    /// are counted in tiles.
    pub(super) fn numbers(
        &self,
        mma: &TiledMma,
        swapped: bool,
        unit: &Unit,
        [rows, columns]: [i64; 2],
        column: &Expr,
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let matrix = match &unit.matrix {
            Some(matrix) if self.batch => {
                self.view.slice(Tree::flat([Slot::All, Slot::All, Slot::At(matrix.clone())])?)?
            }
            _ => self.view.clone(),
        };
        let matrix = if swapped { matrix.select(&[1, 0])? } else { matrix };
        let tile = matrix.local_tile(&format!("({rows},{columns})"), tile_at(&unit.row, Some(column))?)?;
        let part = tile.partition_mma(mma, Operand::C)?;
        // Values of an instruction are two columns, two rows, and blocks of eight columns; then come blocks
        // of rows.
        let only = |repeats: bool| if repeats { Slot::At(Expr::from(0)) } else { Slot::All };
        let [same_rows, same_columns] = self.repeats;
        let values = Tree::flat([only(same_columns), only(same_rows), only(same_columns)])?;
        let at: Coord<Expr> = Tree::tuple([&values, &Tree::leaf(only(same_rows)), &Tree::leaf(Slot::All)])?;
        let fragment = if same_rows || same_columns { part.slice(at)? } else { part }.load_predicated()?;
        let found: Vec<Num<'k>> = fragment.numbers()?.into_iter().map(|number| number.to(Element::F32)).collect();
        let (blocks, row_blocks) = ((columns / 8) as usize, count_of(mma, rows));
        let mut numbers = Vec::with_capacity(4 * blocks * row_blocks);
        for row_block in 0..row_blocks {
            for block in 0..blocks {
                for (row, pair) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let at = match self.repeats {
                        [false, false] => pair + 2 * (row + 2 * (block + blocks * row_block)),
                        [true, false] => pair + 2 * block,
                        [false, true] => row + 2 * row_block,
                        [true, true] => 0,
                    };
                    numbers.push(found[at]);
                }
            }
        }
        Ok(numbers)
    }
}

/// Blocks of rows that each thread has of a tile of so many.
pub(super) fn count_of(mma: &TiledMma, rows: i64) -> usize {
    (rows * 128 / (64 * mma.threads())).max(1) as usize
}

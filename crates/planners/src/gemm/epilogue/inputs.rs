//! Inputs of the epilogue function.
//!
//! Law: for each accumulator of a thread, in the order of its registers, an input gives its element
//! at the same row, column and matrix, or 0 past the edges. An input that repeats along rows or
//! columns is loaded once.
//!
//! Inputs that TMA can read are prefetched ([`Fetch`]): a matrix with the layout of D into the
//! shared memory through which D is stored, a vector into shared memory of its own. The producer
//! issues these loads after those of the k-tiles, so they overlap the mainloop.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, KernelError, LayoutArgument, Num, Stage, View};
use tilewright_layout::atoms::{Operand, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Tree};

use crate::gemm::index::tile_at;
use crate::gemm::index::{plus, times};
use crate::gemm::problem::Fused;
use crate::gemm::problem::matrix::{Contiguous, Matrix};
use crate::gemm::schedule::unit::Unit;
use crate::units::LANES;

/// An input as a kernel reads it.
pub(crate) struct Input<'k> {
    view: View<'k>,
    /// Whether it has a batch mode.
    batch: bool,
    /// Whether it is broadcast along the rows and along the columns of a tile.
    repeats: [bool; 2],
    /// The type in which the epilogue computes.
    computed: Element,
    /// How it is prefetched, and its view in shared memory then, as rows and columns of a tile.
    pub(crate) fetched: Option<(Fetch, View<'k>)>,
}

/// How an input is prefetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// A tile, into the shared memory of D.
    Tile,
    /// A vector along the columns of a tile, broadcast along rows.
    Columns,
    /// A vector along the rows of a tile, broadcast along columns.
    Rows,
}

/// How each epilogue input is prefetched. `stored` is the mode in which TMA stores D, and whether a
/// whole tile of it is in shared memory; `tile` is the number of rows and columns of a tile.
pub(crate) fn fetches(
    fused: &Fused,
    d: &Matrix,
    (stored, whole): (Contiguous, bool),
    swapped: bool,
    tile: [i64; 2],
) -> Vec<Option<Fetch>> {
    let mut tiles = 0;
    let fetch = |input: &Matrix| {
        let bytes = i64::from(input.element().bytes());
        if whole
            && input.bulk() == Ok(stored)
            && input.element() == d.element()
            && input.is_batch() == d.is_batch()
            && tiles == 0
        {
            tiles += 1;
            return Some(Fetch::Tile);
        }
        let strides = input.strides().filter(|_| input.offset() == 0)?;
        if strides[2] * bytes % 16 != 0 {
            return None;
        }
        let extents = input.extents();
        let vector = |mode: usize, along: i64| {
            let whole = strides[mode] == 1 && extents[mode] > 1 && strides[1 - mode] == 0;
            whole && along * bytes % 16 == 0
        };
        let [rows, columns] = if swapped { [1, 0] } else { [0, 1] };
        if vector(columns, tile[1]) {
            Some(Fetch::Columns)
        } else if vector(rows, tile[0]) {
            Some(Fetch::Rows)
        } else {
            None
        }
    };
    fused.inputs.iter().map(fetch).collect()
}

/// Declares the epilogue inputs, in their order, with names that end in `end`. Prefetched inputs
/// share the buffers of a problem that was declared before, if there is one.
pub(crate) fn inputs<'k>(
    k: &'k Build,
    (fused, end): (&Fused, &str),
    swapped: bool,
    [tile_rows, tile_columns]: [i64; 2],
    (fetches, staged, before): (&[Option<Fetch>], Option<&View<'k>>, Option<&[Input<'k>]>),
    computed: Element,
    declared: impl Fn(&Matrix) -> Result<LayoutArgument, LayoutError>,
) -> Result<Vec<Input<'k>>, KernelError> {
    let declare = |(number, input): (usize, &Matrix)| {
        let view = k.tensor_of(input.element(), &format!("x{}{end}", number + 1), declared(input), Role::Input)?;
        let repeated =
            |mode: usize| input.extents()[mode] > 1 && input.strides().is_some_and(|strides| strides[mode] == 0);
        let [rows, columns] = [repeated(0), repeated(1)];
        let repeats = if swapped { [columns, rows] } else { [rows, columns] };
        // If operands are swapped, rows of tiles are columns of D.
        let vector = |size: i64, strides: [i64; 2]| {
            let shared = k.shared_of(input.element(), Layout::strided(size, 1))?;
            shared.compose(Layout::strided((tile_rows, tile_columns), strides))
        };
        let there = before.and_then(|inputs| inputs.get(number)).and_then(|input| input.fetched.clone());
        let fetched = match fetches.get(number).copied().flatten() {
            None => None,
            Some(_) if there.is_some() => there,
            Some(Fetch::Tile) => staged.map(|staged| (Fetch::Tile, staged.clone())),
            Some(Fetch::Columns) => Some((Fetch::Columns, vector(tile_columns, [0, 1])?)),
            Some(Fetch::Rows) => Some((Fetch::Rows, vector(tile_rows, [1, 0])?)),
        };
        Ok(Input { view, batch: input.is_batch(), repeats, computed, fetched })
    };
    fused.inputs.iter().enumerate().map(declare).collect()
}

impl<'k> Input<'k> {
    /// A tensor that is broadcast along the rows or columns of a tile where `repeats` says so.
    pub(crate) fn of(view: View<'k>, batch: bool, repeats: [bool; 2]) -> Input<'k> {
        Input { view, batch, repeats, computed: Element::F32, fetched: None }
    }

    /// Whether it has a batch mode.
    pub(crate) fn is_batch(&self) -> bool {
        self.batch
    }

    /// The same input for a slice of the tensor.
    pub(crate) fn sliced(&self, at: Coord<Expr>) -> Result<Input<'k>, KernelError> {
        Ok(Input { computed: self.computed, ..Input::of(self.view.slice(at)?, self.batch, self.repeats) })
    }

    /// Its matrix for a work unit, with the rows of tiles first.
    fn matrix(&self, swapped: bool, unit: &Unit) -> Result<View<'k>, KernelError> {
        let matrix = match &unit.matrix {
            Some(matrix) if self.batch => {
                self.view.slice(Tree::flat([Slot::All, Slot::All, Slot::At(matrix.clone())])?)?
            }
            _ => self.view.clone(),
        };
        let matrix = match &unit.rows {
            None => matrix,
            Some(rows) => rows.of(&matrix)?,
        };
        if swapped { matrix.select(&[1, 0]) } else { Ok(matrix) }
    }

    /// Issues the prefetch for a work unit: one of several pieces of a tile along its rows and
    /// columns, and with the first piece the vectors.
    pub(crate) fn fetch(
        &self,
        stage: &Stage<'k>,
        swapped: bool,
        unit: &Unit,
        [rows, columns]: [i64; 2],
        (piece, pieces): ([i64; 2], [i64; 2]),
    ) -> Result<(), KernelError> {
        let Some((fetch, to)) = &self.fetched else { return Ok(()) };
        let matrix = self.matrix(swapped, unit)?;
        let zero = || Slot::At(Expr::from(0));
        match fetch {
            Fetch::Tile => {
                let tiler = (rows / pieces[0], columns / pieces[1]);
                let place = |unit: &Expr, way: usize| plus(&times(unit, &pieces[way].into())?, &piece[way].into());
                let to = to.local_tile(tiler, tile_at(&piece[0].into(), Some(&piece[1].into()))?)?;
                let at = tile_at(&place(&unit.row, 0)?, Some(&place(&unit.column, 1)?))?;
                stage.load(&matrix.local_tile(tiler, at)?, &to)
            }
            _ if piece != [0, 0] => Ok(()),
            Fetch::Columns => {
                let line = matrix.slice(Tree::flat([zero(), Slot::All])?)?;
                let part = line.local_tile(columns, Tree::leaf(Slot::At(unit.column.clone())))?;
                stage.load(&part, &to.slice(Tree::flat([zero(), Slot::All])?)?)
            }
            Fetch::Rows => {
                let line = matrix.slice(Tree::flat([Slot::All, zero()])?)?;
                let part = line.local_tile(rows, Tree::leaf(Slot::At(unit.row.clone())))?;
                stage.load(&part, &to.slice(Tree::flat([Slot::All, zero()])?)?)
            }
        }
    }

    /// The input values of a thread for its accumulators of `tile` of the work unit, in the type in
    /// which the epilogue computes.
    /// Columns are counted in strips, within the tile and in all of D.
    pub(crate) fn numbers(
        &self,
        mma: &TiledMma,
        swapped: bool,
        unit: &Unit,
        tile: [i64; 2],
        number: (i64, &Expr),
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let found = self.loaded(mma, swapped, unit, tile, number)?;
        Ok(self.spread(&found, mma, tile))
    }

    /// The same, with broadcast values loaded once.
    pub(crate) fn loaded(
        &self,
        mma: &TiledMma,
        swapped: bool,
        unit: &Unit,
        [rows, columns]: [i64; 2],
        (number, column): (i64, &Expr),
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let tiler = (rows, columns);
        let ahead = self.fetched.as_ref().map(|(_, shared)| shared);
        let tile = match ahead {
            Some(shared) => shared.local_tile(tiler, tile_at(&Expr::from(0), Some(&Expr::from(number)))?)?,
            None => match &unit.boxed {
                None => self.matrix(swapped, unit)?.local_tile(tiler, tile_at(&unit.row, Some(column))?)?,
                Some(boxed) => boxed.of(&self.matrix(swapped, unit)?, columns, column)?,
            },
        };
        let part = tile.partition_mma(mma, Operand::C)?;
        // The values of wgmma are two columns, two rows, and blocks of eight columns; after these
        // come blocks of rows. The values of mma.sync are two columns and two rows; after these
        // come blocks of rows, then blocks of columns.
        let only = |repeats: bool| if repeats { Slot::At(Expr::from(0)) } else { Slot::All };
        let [same_rows, same_columns] = self.repeats.map(only);
        let (pair, row) = (same_columns.clone(), same_rows.clone());
        let at: Coord<Expr> = match HeldBlocks::of(mma, [rows, columns]).rows_first {
            true => {
                let values = Tree::flat([pair, row])?;
                Tree::tuple([&values, &Tree::leaf(same_rows), &Tree::leaf(same_columns)])?
            }
            false => {
                let values = Tree::flat([pair, row, same_columns])?;
                Tree::tuple([&values, &Tree::leaf(same_rows), &Tree::leaf(Slot::All)])?
            }
        };
        let [same_rows, same_columns] = self.repeats;
        let part = if same_rows || same_columns { part.slice(at)? } else { part };
        let fragment = if ahead.is_some() { part.load()? } else { part.load_predicated()? };
        Ok(fragment.numbers()?.into_iter().map(|number| number.to(self.computed)).collect())
    }

    /// The loaded values, broadcast to one for each accumulator of a thread.
    pub(crate) fn spread(&self, found: &[Num<'k>], mma: &TiledMma, [rows, columns]: [i64; 2]) -> Vec<Num<'k>> {
        let HeldBlocks { rows: row_blocks, columns: blocks, rows_first } = HeldBlocks::of(mma, [rows, columns]);
        let mut numbers = Vec::with_capacity(4 * blocks * row_blocks);
        let (slow, fast) = if rows_first { (blocks, row_blocks) } else { (row_blocks, blocks) };
        for outer in 0..slow {
            for inner in 0..fast {
                let (row_block, block) = if rows_first { (inner, outer) } else { (outer, inner) };
                for (row, pair) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let at = match self.repeats {
                        [false, false] => pair + 2 * (row + 2 * (inner + fast * outer)),
                        [true, false] => pair + 2 * block,
                        [false, true] => row + 2 * row_block,
                        [true, true] => 0,
                    };
                    numbers.push(found[at]);
                }
            }
        }
        numbers
    }
}

/// The number of instruction-sized blocks of rows of a thread in a tile.
pub(crate) fn count_of(mma: &TiledMma, rows: i64) -> usize {
    HeldBlocks::of(mma, [rows, 8]).rows
}

/// The blocks of rows and of eight columns of a tile that a thread has accumulators of.
struct HeldBlocks {
    rows: usize,
    columns: usize,
    /// Whether blocks of rows come before blocks of columns in the order of accumulators: with
    /// mma.sync, whose instructions have eight columns.
    rows_first: bool,
}

impl HeldBlocks {
    fn of(mma: &TiledMma, [rows, columns]: [i64; 2]) -> HeldBlocks {
        let atoms = |mode: usize| mma.atom_layout().mode(mode).map_or(1, |mode| mode.size());
        let [height, width] = [0, 1].map(|mode| mma.atom().shape()[mode]);
        // An instruction of a warpgroup has all columns.
        let rows_first = mma.atom().threads().size() == LANES;
        let own = if rows_first { width * atoms(1) } else { 8 };
        let blocks = |extent: i64, own: i64| (extent / own).max(1) as usize;
        HeldBlocks { rows: blocks(rows, height * atoms(0)), columns: blocks(columns, own), rows_first }
    }
}

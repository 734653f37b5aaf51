//! The producer role: loads tiles by TMA.
//!
//! Law: the producer executes only the loads of tiles that `dot` uses, and the loops around them.
//! It loads a tile when the stage for it is free.

use tilewright_kernel::{Cursor, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coord, Layout, LayoutError, Slot, Swizzle, Tree};

use super::super::{Lowering, ThreadValue, over, staged};
use super::{BRINGERS, Live};
use crate::held::Held;
use crate::matrix;
use crate::program::statement::definitions;
use crate::program::{Index, Operation, Program, Statement, ValueId};
use crate::roles::{Roles, TmaTile, has_tma_loads};

/// Bytes of a line in shared memory, and the span of a swizzle.
const LINE: i64 = 128;
const UNIT: i64 = 16;
/// The number of producer threads.
const BRINGING: u32 = 32 * BRINGERS;

/// The layout of a ring of tiles: lines of up to 128 bytes, with the swizzle that the instructions
/// expect. A wider tile is split into panels of such lines.
///
/// Errors: the offset of an element is not a known number.
pub(super) fn layout(program: &Program, tile: &TmaTile, stages: i64) -> Result<Composed, LayoutError> {
    let size: i64 = tile.kept().map(|mode| tile.shape[mode]).iter().product();
    with_stages(program, tile, Some((stages, size)))
}

/// The layout of one stage of a tile that TMA loads.
///
/// Errors: the offset of an element is not a known number.
pub(crate) fn tma_layout(
    program: &Program,
    tensor: usize,
    shape: &[i64],
    modes: [usize; 2],
) -> Result<Composed, LayoutError> {
    with_stages(program, &TmaTile { tensor, shape: shape.to_vec(), modes }, None)
}

/// The layout of a tile. If there are several stages, it has a mode of stages.
fn with_stages(program: &Program, tile: &TmaTile, stages: Option<(i64, i64)>) -> Result<Composed, LayoutError> {
    let kept = tile.kept();
    let [first, second] = kept.map(|mode| tile.shape[mode]);
    let along_first = program.is_contiguous(tile.tensor, kept[0]);
    let (run, others) = if along_first { (first, second) } else { (second, first) };
    let bytes = i64::from(program.tensors[tile.tensor].element.bytes());
    let (width, unit) = (run.min(LINE / bytes), UNIT / bytes);
    let lines = Layout::strided((width, run / width), (1, width * others))?;
    let rows = Layout::strided(others, width)?;
    let mut modes = if along_first { vec![lines, rows] } else { vec![rows, lines] };
    if let Some((stages, size)) = stages {
        modes.push(Layout::strided(stages, size)?);
    }
    let swizzle = Swizzle::new((width / unit).max(1).ilog2().into(), unit.ilog2().into(), 3)?;
    Composed::new(swizzle, 0, Layout::tuple(&modes)?)
}

impl<'k> Lowering<'k, '_> {
    /// Loads the tiles of a body, in the order in which the consumers use them.
    pub(super) fn produce(
        &mut self,
        body: &[Statement],
        plan: &Roles,
        rings: &[Live<'k>],
        cursors: &[Cursor<'k>],
    ) -> Result<(), KernelError> {
        let mut done = Vec::new();
        for statement in body {
            match statement {
                Statement::Let { result, operation: Operation::Stage { .. }, place, .. } => {
                    let Some((ring, _)) = plan.of.get(result) else { continue };
                    if plan.again.contains_key(result) {
                        continue;
                    }
                    // The parts of a ring are loaded together, when the first is due.
                    if !done.contains(result) {
                        place.during(|| self.bring_ring(body, *ring, (plan, rings, cursors), &mut done))?;
                    }
                }
                // Values that determine the number of iterations, or the tile that is loaded.
                Statement::Let { result, operation, operands, place } if plan.places.contains(result) => {
                    let number = place.during(|| self.alone(*result, operation, operands))?;
                    self.values.insert(*result, ThreadValue::Numbers(vec![number]));
                }
                Statement::Loop(own) if has_tma_loads(&own.body) => {
                    let k = self.k;
                    let count = self.count(own)?;
                    own.place.during(|| {
                        k.range(count, |iteration| {
                            self.iterations.insert(own.iteration, iteration.clone());
                            self.produce(&own.body, plan, rings, cursors)
                        })
                    })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn bring_ring(
        &mut self,
        body: &[Statement],
        ring: usize,
        (plan, rings, cursors): (&Roles, &[Live<'k>], &[Cursor<'k>]),
        done: &mut Vec<ValueId>,
    ) -> Result<(), KernelError> {
        let (live, cursor) = (&rings[ring], &cursors[ring]);
        let stage = cursor.stage()?;
        stage.acquire()?;
        for (part, to) in live.parts.iter().enumerate() {
            let own = body.iter().find_map(|statement| match statement {
                Statement::Let { result, operation: Operation::Stage { tensor, shape, at, modes, picked }, .. }
                    if plan.of.get(result) == Some(&(ring, part))
                        && !plan.again.contains_key(result)
                        && !done.contains(result) =>
                {
                    Some((
                        *result,
                        TmaTile { tensor: *tensor, shape: shape.clone(), modes: *modes },
                        at,
                        *picked,
                        statement,
                    ))
                }
                _ => None,
            });
            let (value, own, at, picked, statement) = own.ok_or_else(over)?;
            let picked = picked.map(|mode| Ok::<_, KernelError>((mode, self.place_of(statement)?))).transpose()?;
            let from = self.matrix(&own, at, picked)?;
            let to = to.slice(staged(stage.index())?)?;
            let to = if self.is_crossed(value) { to.compose(&crossed(&own)?)? } else { to };
            stage.load(&from, &to)?;
            done.push(value);
        }
        stage.publish()?;
        cursor.advance()
    }

    /// Computes a value in one thread, as the producer does: see [`Roles::places`].
    fn alone(&mut self, result: ValueId, operation: &Operation, operands: &[ValueId]) -> Result<Num<'k>, KernelError> {
        let element = self.placed.program.type_of(result).element;
        if let Operation::Load { tensor, shape, at, other } = operation {
            // All threads of the role hold the single element.
            let threads = vec![None; BRINGING.trailing_zeros() as usize];
            let all = Held { threads, values: Vec::new() }.distribution(shape)?;
            let other = self.k.number_of(element, *other);
            let tile = self.tile(*tensor, shape, at, &[])?.load_distributed_or(&all, other)?;
            return tile.fragment().numbers()?.first().copied().ok_or_else(over);
        }
        self.sorted = None;
        match self.given(result, operation, operands)? {
            ThreadValue::Numbers(numbers) => numbers.first().copied().ok_or_else(over),
            _ => Err(over()),
        }
    }

    /// Whether the columns of a B operand are permuted in shared memory.
    fn is_crossed(&self, value: ValueId) -> bool {
        definitions(&self.placed.program.body)
            .filter(|own| matches!(own.1, Operation::Dot) && own.2[1] == value)
            .any(|own| self.placed.tilings.get(&own.0).is_some_and(|tiling| tiling.crossed))
    }

    /// A tile of a tensor without its modes of extent 1. The other modes are in the order of the
    /// tensor.
    pub(super) fn matrix(
        &self,
        own: &TmaTile,
        at: &[Index],
        picked: Option<(usize, Expr)>,
    ) -> Result<View<'k>, KernelError> {
        let kept = own.kept();
        let tile = self.tile(own.tensor, &own.shape, at, picked.as_slice())?;
        if own.shape.len() == 2 {
            return Ok(tile);
        }
        let one = |mode: usize| if kept.contains(&mode) { Slot::All } else { Slot::At(Expr::from(0)) };
        let slots: Coord<Expr> = Tree::flat((0..own.shape.len()).map(one))?;
        tile.slice(slots)
    }
}

/// A map from the coordinates of a tile in shared memory, in the order of the tensor's modes, to
/// those of its elements in the tensor, with permuted columns. Columns of the operand are rows in
/// memory.
fn crossed(own: &TmaTile) -> Result<Layout, KernelError> {
    let kept = own.kept();
    let [first, second] = kept.map(|mode| own.shape[mode]);
    if own.modes[1] == kept[0] {
        let columns = matrix::crossing(first)?;
        return Ok(Layout::tuple([&columns, &Layout::mode_of(second, first)?])?);
    }
    let columns = Layout::mode_of(second, first)?.compose(&matrix::crossing(second)?)?;
    Ok(Layout::tuple([&Layout::mode_of(first, 1)?, &columns])?)
}

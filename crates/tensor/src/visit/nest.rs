//! The plan of a visit: loops around a patch.
//!
//! Law: the loops and the patch together visit every index once, with the offset of its element in
//! each operand.
//!
//! The domain is that of copies ([`Space`]): merged additive axes, and a table of the offsets of
//! the others. The order is free, with one exception: all indices at which one element is written
//! are visited by one thread. The axes become
//!
//! * a *row*: the axis along which most operands are contiguous or do not move, the written one
//!   first;
//! * a *table* of the offsets of rows: those of the axes that are not additive, and of as many
//!   positions of other axes as make a patch worth a call. If an operand has long steps along the
//!   row and short ones along another axis, both are tiled, so that its lines are read once;
//! * *loops*, those with long steps outermost. Those along which the written operand moves come
//!   first, and are shared by threads.
//!
//! The row and the table are a patch ([`Patch`](super::patch::Patch)). The caller loops over its
//! elements, so that the compiler sees whole rows.

use std::cmp::Reverse;

use super::staged::{STAGED_ROW, STAGED_TABLE, Staged, in_registers};
use crate::domain::{Addressing, Space, Step};
use crate::memory::LINE;

/// The smallest number of elements of a patch.
const PATCH: usize = 1 << 10;
/// The largest number of elements of a row. With this limit, the next row finds data that both rows
/// use in the L1 cache.
const ROW: usize = 1 << 12;
/// The side, in elements, of a tile of operands whose orders differ.
const BLOCK: usize = 64;
/// The largest number of elements of a short row.
const FEW: usize = 8;
/// The number of rows that are reduced at a time, each to one element.
const ROWS: usize = 16;

/// A loop around the patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatchLoop<const N: usize> {
    pub(super) step: Step<N>,
    pub(super) part: ShortPart,
}

/// Which part is shorter in the last iteration of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShortPart {
    /// Nothing is shorter.
    Whole,
    /// The table has only this many lines.
    Table(usize),
    /// The row has only this many elements.
    Row(usize),
}

/// Loops around a patch of `N` operands, of which the last one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nest<const N: usize> {
    /// The offset of the first element in each operand, in bytes.
    pub(super) origin: [isize; N],
    /// The loops, outermost first.
    pub(super) loops: Vec<PatchLoop<N>>,
    /// The number of loops that move the written operand. They come first.
    pub(super) moving: usize,
    pub(super) table: Vec<[isize; N]>,
    pub(super) row: Step<N>,
    /// Whether the lines of the table have different offsets in the written operand.
    pub(super) distinct: bool,
    /// The operands that are transposed into a buffer for each patch.
    pub(super) staged: Option<Staged<N>>,
}

impl<const N: usize> Nest<N> {
    /// The plan for operands of the same size, with elements of these sizes in bytes. The operands
    /// that are `plain` may be read from a copy. An error says in words why there is no plan.
    pub(super) fn new(
        sides: [&Addressing; N],
        elements: [usize; N],
        plain: [bool; N],
    ) -> Result<Nest<N>, &'static str> {
        let Space { origin, mut steps, table, .. } = Space::new(sides, elements)?.sorted();
        // Operands that are read may be transposed into a buffer, so the written operand determines
        // the row.
        let read = |operand: usize| plain[operand] && in_registers(elements[operand]);
        let written_first = steps.iter().all(|step| written(step) != 0) && (0..N.saturating_sub(1)).all(read);
        let key = |step: &Step<N>| {
            let fitness = row_fitness(step, elements);
            (written_first && fitness.1, fitness)
        };
        let best = (0..steps.len()).max_by_key(|at| steps.get(*at).map(key));
        let row = best.map_or(Step { extent: 1, by: [0; N] }, |best| steps.remove(best));
        let mut nest = Nest { origin, loops: Vec::new(), moving: 0, table, row, distinct: false, staged: None };
        let block = block(&steps, &nest.row);
        let stages = block.is_some_and(|(at, far)| read(far) && steps[at].by[far] == elements[far] as isize);
        let [side, most] = if stages { [STAGED_TABLE, STAGED_ROW] } else { [BLOCK, BLOCK] };
        nest.tabulate_short_row(elements);
        let mut open = true;
        if let Some((at, far)) = block {
            let mut step = steps.remove(at);
            open = nest.take(step, side);
            // If an axis ends within the tile, another axis may continue it.
            while open && nest.table.len() * 2 <= side {
                let onward = steps.iter().position(|next| next.by.get(far) == end(&step, far).as_ref());
                let Some(at) = onward else { break };
                step = steps.remove(at);
                open = nest.take(step, side);
            }
        }
        if open {
            let reduces = written(&nest.row) == 0 && nest.row.extent > 1;
            let rows = if reduces { nest.row.extent.saturating_mul(ROWS) } else { 0 };
            nest.grow(&mut steps, rows.max(PATCH));
        }
        nest.shorten(if block.is_some() { most } else { ROW });
        nest.loops.extend(steps.into_iter().map(|step| PatchLoop { step, part: ShortPart::Whole }));
        nest.loops.sort_by_key(|each| (written(&each.step) == 0, Reverse(each.step.reach())));
        nest.moving = nest.loops.iter().filter(|each| written(&each.step) != 0).count();
        nest.distinct = nest.table.len() == 1 || {
            let mut places: Vec<isize> = nest.table.iter().filter_map(|place| place.last().copied()).collect();
            places.sort_unstable();
            places.windows(2).all(|pair| pair[0] != pair[1])
        };
        nest.staged = Staged::new(&nest, elements, plain);
        Ok(nest)
    }

    /// Moves a row that is too short for vectors into the table, element by element, because a loop
    /// for each row would cost more. A row that is written to one element stays.
    fn tabulate_short_row(&mut self, elements: [usize; N]) {
        let even = |(by, element): (&isize, usize)| *by == 0 || *by == element as isize;
        let vectors = self.row.by.iter().zip(elements).all(even) || written(&self.row) == 0;
        if !vectors && self.row.extent <= FEW && self.table.len() <= PATCH {
            let row = std::mem::replace(&mut self.row, Step { extent: 1, by: [0; N] });
            self.take(row, row.extent * self.table.len());
        }
    }

    /// Adds axes to the table until a patch has this many elements. Axes that move the written
    /// operand come first, and among these the ones with short steps.
    fn grow(&mut self, steps: &mut Vec<Step<N>>, elements: usize) {
        loop {
            let wanted = elements / self.row.extent.saturating_mul(self.table.len()).max(1);
            let key = |at: &usize| steps.get(*at).map(|step| (written(step) == 0, step.reach()));
            let Some(next) = (0..steps.len()).min_by_key(key).filter(|_| wanted > 1) else { return };
            let step = steps.remove(next);
            if !self.take(step, wanted * self.table.len()) {
                return;
            }
        }
    }

    /// Adds an axis to the table, which then has about `wanted` lines. Returns false if a part of
    /// the axis is left, which becomes a loop; then no further axis is added.
    fn take(&mut self, step: Step<N>, wanted: usize) -> bool {
        let len = self.table.len();
        let all = step.extent.saturating_mul(len) <= wanted + wanted / 4;
        let chunk = if all { step.extent } else { (wanted / len).max(1) };
        let lines = std::mem::take(&mut self.table);
        self.table.reserve(lines.len() * chunk);
        for index in 0..chunk {
            let by = times(&step.by, index);
            self.table.extend(lines.iter().map(|line| moved(line, &by)));
        }
        if chunk < step.extent {
            self.divide(step, chunk, |last| ShortPart::Table(last * len));
        }
        all
    }

    /// Splits a row with more elements than `most`, and makes a loop over its parts.
    fn shorten(&mut self, most: usize) {
        if self.row.extent > most + most / 4 {
            self.divide(self.row, most, ShortPart::Row);
            self.row.extent = most;
        }
    }

    /// Adds the loop over the chunks of an axis.
    fn divide(&mut self, step: Step<N>, chunk: usize, part: impl Fn(usize) -> ShortPart) {
        let count = step.extent.div_ceil(chunk);
        let part = part(step.extent - (count - 1) * chunk);
        self.loops.push(PatchLoop { step: Step { extent: count, by: times(&step.by, chunk) }, part });
    }
}

/// The bytes that a step adds in the written operand.
fn written<const N: usize>(step: &Step<N>) -> isize {
    step.by.last().copied().unwrap_or(0)
}

/// How suitable an axis is as a row: the number of operands in which it is contiguous, or at least
/// constant.
fn row_fitness<const N: usize>(step: &Step<N>, elements: [usize; N]) -> (usize, bool, Reverse<usize>, usize) {
    let contiguity = |(by, element): (&isize, usize)| match by.unsigned_abs() {
        0 => 1,
        by if by == element => 2,
        _ => 0,
    };
    let contiguous = elements.last().is_some_and(|element| written(step).unsigned_abs() == *element);
    // An element that is written along a whole row stays in a register.
    let first = usize::from(contiguous || written(step) == 0);
    let all = first + step.by.iter().zip(elements).map(contiguity).sum::<usize>();
    let longest = step.by.iter().map(|by| by.unsigned_abs()).max().unwrap_or(0);
    (all, contiguous, Reverse(longest), step.extent)
}

/// An axis and an operand for tiling: the operand has steps longer than a line along the row, and
/// shorter ones along the axis. Returns the axis that helps most operands, if any.
fn block<const N: usize>(steps: &[Step<N>], row: &Step<N>) -> Option<(usize, usize)> {
    let helped = |step: &Step<N>| -> Vec<usize> {
        let short = |k: &usize| step.by[*k] != 0 && step.by[*k].unsigned_abs() < LINE;
        (0..N).filter(|k| row.by[*k].unsigned_abs() >= LINE).filter(short).collect()
    };
    let all = steps.iter().map(helped).enumerate().filter(|(_, operands)| !operands.is_empty());
    let best = all.min_by_key(|(at, operands)| (Reverse(operands.len()), steps[*at].reach()));
    best.and_then(|(at, operands)| Some((at, *operands.first()?)))
}

/// The offset after the end of an axis in an operand.
fn end<const N: usize>(step: &Step<N>, operand: usize) -> Option<isize> {
    step.by.get(operand)?.checked_mul(isize::try_from(step.extent).ok()?)
}

/// The product of a step and a count.
pub(super) fn times<const N: usize>(by: &[isize; N], count: usize) -> [isize; N] {
    by.map(|by| by.wrapping_mul(count as isize))
}

/// The sum of an offset and a step.
pub(super) fn moved<const N: usize>(place: &[isize; N], by: &[isize; N]) -> [isize; N] {
    std::array::from_fn(|operand| place[operand].wrapping_add(by[operand]))
}

#[cfg(test)]
mod tests {
    use tilewright_layout::{Composed, Layout};

    use super::*;

    /// The plan for operands of four bytes an element, none of which may be read from a copy.
    fn nest<const N: usize>(operands: [&str; N]) -> Nest<N> {
        plain(operands, [false; N])
    }

    fn plain<const N: usize>(operands: [&str; N], plain: [bool; N]) -> Nest<N> {
        let sides = operands.map(|text| match text.parse::<Composed>() {
            Ok(composed) => Addressing::of(&composed).unwrap(),
            Err(_) => Addressing::of(&text.parse::<Layout>().unwrap()).unwrap(),
        });
        Nest::new(sides.each_ref(), [4; N], plain).unwrap()
    }

    /// The number of elements of a row, of rows of a patch, and of iterations of each loop.
    fn form<const N: usize>(nest: &Nest<N>) -> (usize, usize, Vec<usize>) {
        (nest.row.extent, nest.table.len(), nest.loops.iter().map(|each| each.step.extent).collect())
    }

    #[test]
    fn axes_merge_whatever_their_order() {
        let all = nest(["(3,4,5):(20,5,1)", "(3,4,5):(20,5,1)", "(3,4,5):(20,5,1)", "(3,4,5):(20,5,1)"]);
        assert_eq!(form(&all), (60, 1, vec![]));
        assert_eq!(all.row.by, [4; 4]);
        // A different shape, and negative strides.
        assert_eq!(form(&nest(["(3,20):(20,1)", "(3,4,5):(20,1,4)"])), (60, 1, vec![]));
        assert_eq!(form(&nest(["(3,4):(-4,-1)", "(3,4):(-4,-1)"])), (12, 1, vec![]));
    }

    #[test]
    fn maps_leave_rows_and_tables() {
        // Vectors of 8 elements, and the lines of 8 rows, which the swizzle permutes.
        let tile = nest(["S<3,3,3> o 0 o (1024,64):(64,1)", "(1024,64):(64,1)"]);
        assert_eq!((tile.row, form(&tile).1 % 64), (Step { extent: 8, by: [4, 4] }, 0));
        let both = nest(["S<3,3,3> o 0 o (8,64):(64,1)", "(8,64):(64,1)", "S<3,3,3> o 0 o (8,64):(64,1)"]);
        assert_eq!(form(&both), (8, 64, vec![]));
    }

    #[test]
    fn operands_that_disagree_are_taken_by_the_block() {
        let transpose = nest(["(256,256):(256,1)", "(256,256):(1,256)"]);
        assert_eq!((form(&transpose), transpose.row.by), ((64, 64, vec![4, 4]), [1024, 4]));
        // Two of the three operands agree: rows follow their order.
        let most = nest(["(256,256):(256,1)", "(256,256):(256,1)", "(256,256):(1,256)"]);
        assert_eq!((form(&most), most.row.by), ((64, 64, vec![4, 4]), [4, 4, 1024]));
        // Short axes are continued by others.
        let short = nest(["(8,8,8,8):(512,64,8,1)", "(8,8,8,8):(1,8,64,512)"]);
        assert_eq!(form(&short), (1, 1024, vec![4]));
    }

    #[test]
    fn numbers_are_staged_in_the_order_of_the_destination() {
        let (rows, columns) = ("(512,512):(512,1)", "(512,512):(1,512)");
        let transposed = plain([rows, rows, columns], [true; 3]);
        let staged = transposed.staged.as_ref().unwrap();
        assert_eq!(
            (form(&transposed), transposed.row.by, staged.steps),
            ((64, 256, vec![2, 8]), [2048, 2048, 4], [4; 3])
        );
        // An operand in the order of the destination is not staged, and no operand is staged if one
        // of them may not be copied.
        assert_eq!(plain([rows, columns, columns], [true; 3]).staged.unwrap().table[1], [320, 2048, 2048]);
        assert_eq!(plain([rows, rows, columns], [true, false, false]).staged, None);
        assert_eq!(plain([columns, columns], [true; 2]).staged, None);
        // Sums stay in registers.
        assert_eq!(plain([rows, "(512,512):(1,0)"], [true; 2]).staged, None);
    }

    #[test]
    fn threads_share_what_moves_the_destination() {
        // Sums of rows: several rows at a time, in the order of memory.
        let rows = nest(["(100,9000):(9000,1)", "(100,9000):(1,0)"]);
        assert_eq!((rows.row.by, rows.distinct, rows.moving), ([4, 0], true, 1));
        assert_eq!(form(&rows), (ROW, ROWS, vec![100_usize.div_ceil(ROWS), 9000_usize.div_ceil(ROW)]));
        // Sums of columns: they stay in the L1 cache.
        let columns = nest(["(100,9000):(9000,1)", "(100,9000):(0,1)"]);
        assert_eq!((columns.row.by, columns.moving), ([4, 4], 1));
        assert_eq!(form(&columns), (ROW, 1, vec![9000_usize.div_ceil(ROW), 100]));
        let all = nest(["(100,9000):(9000,1)", "(100,9000):(0,0)"]);
        assert_eq!((all.moving, form(&all)), (0, (ROW, 1, vec![900_000_usize.div_ceil(ROW)])));
    }

    #[test]
    fn no_common_digits_no_loops() {
        let sides =
            ["(2,3):(1,2)", "(3,2):(1,3)"].map(|text| Addressing::of(&text.parse::<Layout>().unwrap()).unwrap());
        assert_eq!(Nest::new(sides.each_ref(), [4; 2], [true; 2]).err(), None);
        let padded =
            ["(2,3):(1,3)", "(3,2):(1,4)"].map(|text| Addressing::of(&text.parse::<Layout>().unwrap()).unwrap());
        assert_eq!(Nest::new(padded.each_ref(), [4; 2], [true; 2]), Err("the shapes have no common refinement"));
    }
}

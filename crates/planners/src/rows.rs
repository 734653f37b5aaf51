//! Rows that threads hold in registers.
//!
//! Law: the tile of a block is `(R,A,V,W)`: R rows of W parts each, one for each warp. A part has V
//! runs of A elements. Element `(r,a,v,w)` is in row `r` and column `a + A w + A W v`: the runs of
//! all warps are adjacent, and V such groups of runs follow each other. So the part of a warp is
//! reduced by shuffles, and only the reduction along W needs a barrier. Runs are computed one after
//! another, which saves registers.
//!
//! * A row of at most four vectors in each lane is held by one warp, or by fewer lanes, and a block
//!   holds several rows; no barrier is needed.
//! * A longer row is held by a block of up to 512 threads, with four vectors of 16 bytes for each
//!   thread. That is few enough registers for several resident blocks, whose loads and stores
//!   overlap. For f32 with at most one vector of weights or bias, threads have two vectors, if 512
//!   threads can hold a row like that.
//! * If a thread has more than four vectors, up to sixteen, the others are in shared memory, copied
//!   there by `cp.async`, if rows begin at multiples of 16 bytes. Then two blocks of 512 threads
//!   are resident, or one of 1024.
//! * If a block of 512 threads would have more than that, the blocks of a cluster hold a row
//!   together, each a part of it. They exchange results through distributed shared memory, with one
//!   barrier.
//! * Long rows of norms and softmax are claimed by persistent clusters (`persistent.rs`).
//! * Few rows of more than 32 KiB are held by clusters, or by the largest blocks, in registers, so
//!   that all multiprocessors have work (`plan.rs`).
//! * Rows that are too long for all of these are read twice (`twice.rs`).

mod combine;
mod held;
mod persistent;
mod plan;
mod twice;

use tilewright_kernel::machine::{Machine, Multiprocessor};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Distributed, Distribution, Element, Fragment, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use crate::error::PlanError;
use crate::fitted::ROWS;
use crate::law::{DATA_REGISTERS, FEW_THREADS, REGISTER_VECTORS, SEVERAL_THREADS};
use crate::terms::{RowMatrix, RowPlaces};
use crate::units::{BLOCK_THREADS, LANES, VECTOR, block_shared, div_up, power_from, resident_threads, widest};
pub(crate) use combine::{counted, pairwise, together};
pub(crate) use held::{Held, RowVector};
#[cfg(test)]
pub(crate) use persistent::ClusterShape;
pub(crate) use persistent::Persistent;
pub(crate) use plan::{RowComputation, Way};
pub(crate) use twice::RowsTwice;

/// Shared memory through which the blocks of a cluster exchange results, in bytes.
const EXCHANGE_BYTES: i64 = 512;
/// The rows of a thread that has one vector of each row: it stores their results together.
const ROWS_OF_THREAD: i64 = VECTOR / 4;

fn at_run(run: usize) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(Expr::from(run as i64)), Slot::All])?)
}

/// A tensor that begins at a multiple of `alignment` elements, or of 16 bytes. The alignment of
/// accesses is the largest power of two that divides it: multiples of 6 are multiples of 2.
pub(crate) fn placed<'k>(tensor: View<'k>, element: Element, alignment: i64) -> Result<View<'k>, KernelError> {
    let power = 1 << alignment.trailing_zeros().min(VECTOR.trailing_zeros());
    let bytes = VECTOR.min(power * i64::from(element.bytes()));
    if bytes == VECTOR { Ok(tensor) } else { tensor.aligned(bytes as u32) }
}

/// Whether a kernel that computes in f32 accepts elements of a type. Integers would be meaningless,
/// and f64 would lose half of its digits.
///
/// Errors: the type is not accepted ([`PlanError::Unknown`]).
pub(crate) fn in_f32(what: &'static str, element: Element) -> Result<(), PlanError> {
    if element.is_float() && element != Element::F64 {
        return Ok(());
    }
    let types = Element::ALL.into_iter().filter(|element| element.is_float() && *element != Element::F64);
    let known = types.map(|element| element.to_string()).collect::<Vec<_>>().join(", ");
    Err(PlanError::Unknown { what, given: element.to_string(), known })
}

/// How a block holds rows of one length.
#[derive(Debug, Clone)]
pub(crate) struct RowsPlan {
    /// Elements of a row.
    pub(crate) columns: i64,
    element: Element,
    /// The tensors begin at multiples of this number of elements.
    pub(crate) alignment: i64,
    vector: i64,
    /// The lanes that hold a run, the vectors of each lane, the warps that hold a row, and the rows
    /// of a block.
    lanes: i64,
    vectors: i64,
    /// The number of these vectors that are in shared memory: the first ones.
    stored: i64,
    warps: i64,
    rows: i64,
    /// The pitches of the rows.
    pub(crate) places: RowPlaces,
    /// The number of blocks that hold a row together.
    blocks: i64,
    /// The number of adjacent rows of a thread.
    each: i64,
    /// The number of weight and bias vectors.
    beside: usize,
    /// The distribution of a run over threads.
    run: Distribution,
    /// The limits of a multiprocessor.
    multiprocessor: Multiprocessor,
}

impl RowsPlan {
    /// The plan for the rows of a matrix with `beside` vectors, such as weights.
    ///
    /// Errors: a row does not fit into the registers of a block.
    pub(crate) fn new(machine: &Machine, matrix: RowMatrix, beside: usize) -> Result<RowsPlan, PlanError> {
        let RowMatrix { columns, element, alignment, .. } = matrix;
        let least = if element == Element::F32 && beside < 2 { 2 } else { REGISTER_VECTORS };
        let most = 4 * REGISTER_VECTORS;
        let rows = RowsPlan::holding(machine, (least, most), FEW_THREADS, (columns, alignment), element)?;
        Ok(RowsPlan { beside, places: matrix.places(), ..rows })
    }

    /// As [`RowsPlan::new`], without shared memory, for kernels that reduce each row to a number;
    /// `threads` is the size of a block whose warps have different rows.
    ///
    /// Errors: those of [`RowsPlan::new`].
    pub(crate) fn in_registers(
        machine: &Machine,
        threads: i64,
        columns: i64,
        element: Element,
        alignment: i64,
    ) -> Result<RowsPlan, PlanError> {
        let vectors = (REGISTER_VECTORS, 2 * REGISTER_VECTORS);
        RowsPlan::holding(machine, vectors, threads, (columns, alignment), element)
    }

    /// The plan for rows that the blocks of a cluster hold together. None for rows that fit one
    /// block well, that do not end at multiples of 16 bytes, or that are too long.
    ///
    /// Errors: a layout is not representable.
    pub(crate) fn in_cluster(machine: &Machine, matrix: RowMatrix) -> Result<Option<RowsPlan>, PlanError> {
        let RowMatrix { columns, element, alignment, .. } = matrix;
        let vector = VECTOR / i64::from(element.bytes());
        let count = columns / vector;
        let (most, full) = (4 * REGISTER_VECTORS, SEVERAL_THREADS);
        let blocks = [2, 4, 8].into_iter().find(|blocks| div_up(count, blocks * full) <= most);
        let Some(blocks) = blocks
            .filter(|blocks| widest(columns, element, alignment) == vector && div_up(count, blocks / 2 * full) > most)
        else {
            return Ok(None);
        };
        let warps = div_up(div_up(count, blocks * most), LANES);
        let run = vector * LANES;
        let fill = |warps: i64| blocks * warps * div_up(count, blocks * warps * LANES) * run == columns;
        // If rows end within a run, bounds take registers, and more of them if the index of a
        // thread is not made of power-of-two digits.
        let warps = if fill(warps) || warps <= ROWS.ragged_warps { warps } else { full / LANES };
        let vectors = div_up(count, blocks * warps * LANES);
        // The shared memory for the part of a row if two blocks are resident, without the exchange
        // buffers.
        let own = machine.multiprocessor;
        let half = i64::from(own.shared_bytes / 2 - own.reserved_bytes) - EXCHANGE_BYTES;
        let fits = |kept: i64| (vectors - kept) * warps * LANES * VECTOR <= half;
        let kept = REGISTER_VECTORS;
        let kept = if fill(warps) { kept } else { kept - if fits(kept - 3) { 3 } else { 2 } };
        RowsPlan::in_blocks(machine, matrix, (blocks, warps), (vectors, vectors - kept)).map(Some)
    }

    /// One row in `blocks` blocks of `warps` warps, whose threads have `vectors` vectors of 16
    /// bytes, `stored` of them in shared memory.
    ///
    /// Errors: a layout is not representable.
    fn in_blocks(
        machine: &Machine,
        matrix: RowMatrix,
        (blocks, warps): (i64, i64),
        (vectors, stored): (i64, i64),
    ) -> Result<RowsPlan, PlanError> {
        let RowMatrix { columns, element, alignment, .. } = matrix;
        let vector = VECTOR / i64::from(element.bytes());
        let run = vector * LANES;
        let layout = Layout::strided(((LANES, 1, warps), (vector, 1)), ((vector, 1, run), (1, 1)))?;
        let held = Distribution::new((1, run, warps), &layout)?;
        let (lanes, rows, each) = (LANES, 1, 1);
        Ok(RowsPlan {
            columns,
            element,
            alignment,
            vector,
            lanes,
            vectors,
            stored,
            warps,
            rows,
            places: matrix.places(),
            blocks,
            each,
            beside: 0,
            run: held,
            multiprocessor: machine.multiprocessor,
        })
    }

    /// The plan for rows of which a thread has from `least` to `most` vectors if a block holds one
    /// row.
    fn holding(
        machine: &Machine,
        (least, most): (i64, i64),
        threads: i64,
        (columns, alignment): (i64, i64),
        element: Element,
    ) -> Result<RowsPlan, PlanError> {
        let vector = widest(columns, element, alignment);
        let count = (columns + vector - 1) / vector;
        // Copies to shared memory need whole vectors.
        let most = if vector * i64::from(element.bytes()) == VECTOR { most } else { 2 * REGISTER_VECTORS };
        let (kept, few, full) = (REGISTER_VECTORS, 2 * REGISTER_VECTORS, SEVERAL_THREADS);
        let (lanes, warps, rows) = if count <= kept * LANES {
            let lanes = power_from(count).min(LANES);
            (lanes, 1, threads / lanes)
        } else {
            let whole = |each: i64| div_up(div_up(count, each), LANES) * LANES;
            let each = [least, kept, few, most].into_iter().find(|each| whole(*each) <= full);
            (LANES, each.map_or(BLOCK_THREADS, whole) / LANES, 1)
        };
        let vectors = div_up(count, lanes * warps);
        let stored = if most > few { (vectors - kept).max(0) } else { 0 };
        if vectors > most || stored * lanes * warps * VECTOR > block_shared(machine) {
            let limit = BLOCK_THREADS * most * vector;
            return Err(PlanError::TooLarge { what: "elements of a row", asked: columns, limit });
        }
        let run = vector * lanes;
        // If a lane would have one short vector of a row, it gets vectors of several rows.
        let several = vectors == 1 && most == few && threads > FEW_THREADS && count < LANES;
        let several = several && alignment % ROWS_OF_THREAD == 0;
        let each = if several { ROWS_OF_THREAD.min(lanes) } else { 1 };
        let rows = if warps == 1 { rows * each } else { rows };
        let layout = Layout::strided(
            ((lanes, rows / each, warps), (vector, each)),
            ((rows * vector, each, rows * run), (rows, 1)),
        )?;
        let held = Distribution::new((rows, run, warps), &layout)?;
        Ok(RowsPlan {
            columns,
            element,
            alignment,
            vector,
            lanes,
            vectors,
            stored,
            warps,
            rows,
            places: RowPlaces { columns, x: columns, y: columns },
            blocks: 1,
            each,
            beside: 0,
            run: held,
            multiprocessor: machine.multiprocessor,
        })
    }

    /// The plan, in a sentence.
    pub(crate) fn plan(&self) -> String {
        let vectors = match (self.vector, self.vectors) {
            (1, 1) => "an element".to_string(),
            (1, count) => format!("{count} elements"),
            (vector, 1) => format!("a vector of {vector}"),
            (vector, count) => format!("{count} vectors of {vector}"),
        };
        match (self.warps, self.lanes) {
            (1, LANES) => format!("a warp a row, {} rows a block, {vectors} a lane", self.rows),
            (1, 1) => format!("a lane a row, {} rows a block, {vectors} a lane", self.rows),
            (1, lanes) => format!("{lanes} lanes a row, {} rows a block, {vectors} a lane", self.rows),
            (warps, _) => {
                let stored = match self.stored {
                    0 => String::new(),
                    stored => format!(", {stored} of them in shared memory"),
                };
                let blocks = match self.blocks {
                    1 => "a block".to_string(),
                    blocks => format!("a cluster of {blocks} blocks"),
                };
                format!("{blocks} of {} threads a row, {vectors} a thread{stored}", warps * LANES)
            }
        }
    }

    /// The type of the elements.
    pub(crate) fn element(&self) -> Element {
        self.element
    }

    /// Rows of a block.
    pub(crate) fn of_block(&self) -> i64 {
        self.rows
    }

    /// The values of a thread in a run, row by row.
    pub(crate) fn by_row<'k>(&self, numbers: Vec<Num<'k>>) -> Vec<Vec<Num<'k>>> {
        numbers.chunks(self.vector as usize).map(<[_]>::to_vec).collect()
    }

    /// One number of each thread for each of its rows, as `(R,A,W)`.
    pub(crate) fn of_threads<'k>(&self, numbers: &Fragment<'k>) -> Result<Distributed<'k>, KernelError> {
        let (lanes, rows, warps, each) = (self.lanes, self.rows, self.warps, self.each);
        let layout = Layout::strided(((lanes, rows / each, warps), each), ((rows, each, rows * lanes), 1))?;
        numbers.distributed(&Distribution::new((rows, lanes, warps), &layout)?)
    }

    /// A number for each row, `(R,1,1)`: lane `i` of the first lanes of a row holds that of row `i`
    /// of its thread.
    pub(crate) fn of_lanes<'k>(&self, number: &Fragment<'k>) -> Result<Distributed<'k>, KernelError> {
        let (lanes, rows, warps, each) = (self.lanes, self.rows, self.warps, self.each);
        let layout = Layout::strided((((each, lanes / each), rows / each, warps), 1), (((1, 0), each, 0), 0))?;
        number.distributed(&Distribution::new((rows, 1, 1), &layout)?)
    }

    /// Whether a thread reads its part of a row again for each pass, so that passes are expensive.
    pub(crate) fn rereads(&self) -> bool {
        self.stored > 0
    }

    /// Whether each thread has registers for its part of the rows, as 32-bit numbers.
    pub(crate) fn has_room(&self) -> bool {
        (self.blocks == 1 || self.stored == 0) && self.vectors * self.vector <= 2 * DATA_REGISTERS
    }

    /// Whether all threads have equally many elements of a row, and the number of warps is a power
    /// of two: then results are combined in pairs of equal sizes.
    pub(crate) fn even(&self) -> bool {
        self.warps.count_ones() == 1 && !self.ends_in(self.vectors as usize - 1)
    }

    /// Whether blocks of a cluster hold a row together.
    pub(crate) fn is_shared(&self) -> bool {
        self.blocks > 1
    }

    /// Whether several warps hold a row, so that they need a barrier.
    pub(crate) fn meet(&self) -> bool {
        self.warps > 1 || self.is_shared()
    }

    /// The matrix that is read or written, as `(M,N)`.
    pub(crate) fn matrix<'k>(&self, k: &'k Build, name: &str, role: Role) -> Result<View<'k>, KernelError> {
        let RowPlaces { columns, x, y } = self.places;
        let pitch = if role == Role::Input { x } else { y };
        let tensor = k.tensor_of(self.element, name, &format!("(M,{columns}):({pitch},1)"), role)?;
        placed(tensor, self.element, self.alignment)
    }

    /// Weights or a bias: one number for each column.
    pub(crate) fn row<'k>(&self, k: &'k Build, name: &str) -> Result<View<'k>, KernelError> {
        let tensor =
            k.tensor_of(self.element, name, Layout::strided((1, self.columns), (self.columns, 1)), Role::Input)?;
        placed(tensor, self.element, self.alignment)
    }

    /// Declares the number of blocks that should be resident on a multiprocessor if threads hold
    /// all these rows at once: as many as fill it if a thread has few elements. Declares nothing if
    /// one warp has whole rows.
    pub(crate) fn state_resident_blocks(k: &Build, all: &[&RowsPlan]) -> Result<(), KernelError> {
        let Some(first) = all.first().filter(|rows| rows.warps > 1) else { return Ok(()) };
        let registers = match all.iter().map(|rows| rows.vectors).sum() {
            1..=2 => 2 * DATA_REGISTERS,
            // 16-bit elements take more registers while they are computed with, and so do weights
            // with a bias.
            3..=4 if all.iter().all(|rows| rows.element == Element::F32 && rows.beside < 2) => 8 * DATA_REGISTERS / 3,
            _ => 4 * DATA_REGISTERS,
        };
        let threads = first.lanes * first.rows / first.each * first.warps;
        let own = &first.multiprocessor;
        let by_registers = resident_threads(own, registers) / threads as u32;
        k.resident(by_registers.clamp(1, own.blocks.max(1)))
    }

    /// The index of the first row of this block, in blocks, and the part of the row that the block
    /// has.
    fn at(&self, k: &Build) -> Result<[Expr; 2], KernelError> {
        let block = k.block_number(operation::Axis::X);
        if self.blocks == 1 {
            return Ok([block, Expr::from(0)]);
        }
        k.cluster(self.blocks as u32)?;
        k.grid(operation::Axis::X, &format!("{}*M", self.blocks))?;
        let digits = k.coordinate(&block, &[self.blocks, 1])?;
        Ok([digits[1].clone(), digits[0].clone()])
    }

    /// The rows of this block in a matrix as `(R,A,V,W)`.
    pub(crate) fn tile<'k>(&self, k: &'k Build, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        let [row, part] = self.at(k)?;
        self.cut(matrix, self.rows, [row, part])
    }

    fn cut<'k>(&self, matrix: &View<'k>, rows: i64, [row, part]: [Expr; 2]) -> Result<View<'k>, KernelError> {
        let (run, vectors, warps) = (self.vector * self.lanes, self.vectors, self.warps);
        let at: Coord<Expr> = Tree::flat([Slot::At(row), Slot::At(part)])?;
        let modes = Layout::strided((rows, run, vectors, warps), (1, rows, rows * run * warps, rows * run))?;
        matrix.local_tile((rows, run * vectors * warps), at)?.compose(&modes)
    }

    /// The position of a thread: lane, group of rows and warp.
    pub(crate) fn place_of(&self, k: &Build) -> Result<[Expr; 3], KernelError> {
        let digits = k.coordinate(&k.thread()?, &[self.lanes, self.rows / self.each, self.warps])?;
        let [lane, group, warp] = &digits[..] else { return Err(LayoutError::Overflow { op: "thread" }.into()) };
        Ok([lane.clone(), group.clone(), warp.clone()])
    }

    /// The number of vectors of a row before the run of a thread.
    pub(crate) fn vectors_before<'k>(&self, k: &'k Build, run: usize) -> Result<Num<'k>, KernelError> {
        let [lane, _, warp] = self.place_of(k)?;
        let before = run as i64 * self.lanes * self.warps;
        Ok(k.index(&lane)? + k.index(&warp)? * k.number(self.lanes as i32) + k.number(before as i32))
    }

    /// A vector of one of the rows of a thread, by its index.
    pub(crate) fn vector_of<'k>(
        &self,
        k: &'k Build,
        matrix: &View<'k>,
        row: &Expr,
        number: Num<'k>,
    ) -> Result<Fragment<'k>, KernelError> {
        let overflow = || LayoutError::Overflow { op: "row" };
        let [_, group, _] = self.place_of(k)?;
        let first = Stride::times(&k.block_number(operation::Axis::X), &Expr::from(self.rows)).ok_or_else(overflow)?;
        let group = Stride::times(&group, &Expr::from(self.each)).ok_or_else(overflow)?;
        let own = Stride::plus(&first, &group).and_then(|own| Stride::plus(&own, row));
        let at = [Slot::At(own.ok_or_else(overflow)?), Slot::At(k.index_of(number)?)];
        let at: Coord<Expr> = Tree::flat(at)?;
        matrix.local_tile((1, self.vector), at)?.load_predicated()
    }

    /// Elements of a vector.
    pub(crate) fn vector(&self) -> i64 {
        self.vector
    }
}

//! Plans of warps that multiply by mma.sync.
//!
//! Law: the warps of a block are a grid over a tile, and each multiplies blocks of 16 rows and 16
//! columns. Either all of them copy k-tiles to a ring of stages by cp.async, and D is staged in the
//! memory of the ring after its last k-tile; or a producer warp loads them by TMA, and D is staged
//! in the stage after that of its last k-tile, while the next ones are already being filled.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;

use crate::gemm::implicit;
use crate::gemm::panel::width;
use crate::gemm::plan::refusal::{CUTS_SCALES, MOST};
use crate::gemm::plan::{MAX_COLUMNS, MAX_PHASES, Plan};
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::units::{LANES, VECTOR, block_shared, count};

/// Rows and columns of the blocks that a warp multiplies: an instruction, and two side by side, so
/// that one `ldmatrix` serves both.
pub(crate) const WARP_BLOCK: i64 = 16;
/// The most warps of a block.
const MAX_WARPS: i64 = 16;
/// Bytes of shared memory besides the stages: for the partial results of reductions, and for the
/// mbarriers of a ring that a producer fills.
const OTHER_BYTES: i64 = 1024;
/// Registers of a thread for addresses, predicates and counters, estimated from the allocation by
/// ptxas: if a producer has the addresses of global memory, and if the thread itself has them.
const ADDRESS_REGISTERS: [i64; 2] = [24, 40];

/// The name of the atom by which warps partition tiles, and its extent along K in elements of the
/// matrices. Block-scaled formats use the fragments of 8-bit elements.
pub(crate) fn warp_atom(problem: &Problem) -> (&'static str, i64) {
    match problem.operand_type() {
        _ if problem.blocks().is_some() => ("SM89_16x8x32_F32E4M3E4M3F32_TN", 32),
        Element::F16 => ("SM80_16x8x16_F32F16F16F32_TN", 16),
        Element::F32 => ("SM80_16x8x8_F32TF32TF32F32_TN", 8),
        Element::F64 => ("SM90_16x8x8_F64F64F64F64_TN", 8),
        Element::E4M3 => ("SM89_16x8x32_F32E4M3E4M3F32_TN", 32),
        Element::E5M2 => ("SM89_16x8x32_F32E5M2E5M2F32_TN", 32),
        Element::I8 => ("SM80_16x8x32_S32S8S8S32_TN", 32),
        Element::U8 => ("SM80_16x8x32_S32U8U8S32_TN", 32),
        _ => ("SM80_16x8x16_F32BF16BF16F32_TN", 16),
    }
}

impl Plan {
    /// The stages that fit into the shared memory of a block.
    pub(crate) fn most_warp_stages(&self, problem: &Problem, machine: &Machine) -> i64 {
        (self.warp_room(machine) / self.stage_bytes(problem).max(1)).min(MAX_PHASES)
    }

    /// Bytes of shared memory for the stages of a block.
    fn warp_room(&self, machine: &Machine) -> i64 {
        let own = i64::from(machine.multiprocessor.shared_bytes) / self.blocks_per_sm.max(1)
            - i64::from(machine.multiprocessor.reserved_bytes);
        own.min(block_shared(machine)) - OTHER_BYTES
    }

    /// The warps of a block whose grid over a tile is given: those of the grid, and the producer.
    pub(crate) fn warps_of(&self, [along, across]: [i64; 2]) -> i64 {
        along * across + i64::from(self.producer)
    }

    /// The parts in which a tile of D is staged, in one buffer: few, each no larger than the
    /// stages; no larger than one stage if a producer fills the others meanwhile.
    pub(crate) fn warp_parts(&self, problem: &Problem, machine: &Machine) -> (i64, i64) {
        let [rows, columns] = self.tile_of_d(problem);
        let bytes = rows * columns * i64::from(problem.result_type().bytes());
        let stages = if self.producer { 1 } else { self.stages.max(1) };
        let room = self.warp_room(machine).min(stages * self.stage_bytes(problem));
        let step = self.strip_step(problem);
        let fits = |parts: &i64| columns % (parts * step) == 0 && bytes / parts <= room;
        (1..=columns / step).find(fits).map_or((1, 1), |parts| (parts, 1))
    }

    /// Columns that a strip of the epilogue is a multiple of: those that all warps multiply, and
    /// whole panels.
    pub(crate) fn strip_step(&self, problem: &Problem) -> i64 {
        let [_, columns] = self.tile_of_d(problem);
        let across = self.warps.map_or(8, |[_, across]| WARP_BLOCK * across);
        match self.along_rows(problem) || problem.staged_by_warps().is_none() {
            true => across,
            false => across.max(width(columns, i64::from(problem.result_type().bytes().max(2)))),
        }
    }

    /// Bytes of shared memory of a block: the stages, or a part of D.
    pub(crate) fn warp_bytes(&self, problem: &Problem, machine: &Machine) -> i64 {
        let [rows, columns] = self.tile_of_d(problem);
        let part = rows * columns * i64::from(problem.result_type().bytes()) / self.warp_parts(problem, machine).0;
        let part = if self.is_shared() || problem.staged_by_warps().is_none() { 0 } else { part };
        match self.producer {
            true => (self.stages - 1) * self.stage_bytes(problem) + part.max(self.stage_bytes(problem)),
            false => (self.stages * self.stage_bytes(problem)).max(part),
        }
    }

    /// Registers of a thread: accumulators, two sets of fragments, addresses.
    fn warp_registers(&self, problem: &Problem, machine: &Machine, [along, across]: [i64; 2]) -> i64 {
        // The bytes of each row and column that an instruction multiplies, twice.
        let depth = warp_atom(problem).1 * i64::from(problem.operand_type().bytes());
        let fragments = (self.rows / along + self.columns / across) * depth / 64;
        let scales = self.scale_loads(problem);
        // Scales of blocks have addresses of their own.
        let loads = !self.producer || problem.blocks().is_some();
        self.accumulators(problem, machine) + fragments + ADDRESS_REGISTERS[usize::from(loads)] + scales
    }

    /// Why warps cannot carry out the plan; None if they can.
    pub(crate) fn warps_refusal(&self, problem: &Problem, machine: &Machine) -> Option<&'static str> {
        let [along, across] = self.warps?;
        let steps = count(self.extents(problem)[2], problem.k_tile());
        if [self.raster_band, self.blocks, self.blocks_per_sm].iter().any(|number| !(1..=MOST).contains(number)) {
            return Some("`raster_band`, `blocks` and `blocks_per_sm` are from 1 to 4096");
        }
        if !(1..=MAX_WARPS).contains(&along) || !(1..=MAX_WARPS).contains(&across) || along * across > MAX_WARPS {
            return Some("a block has at most 16 warps");
        }
        let [rows, columns] = self.tile_of_d(problem);
        let sides = [(self.rows, rows, along), (self.columns, columns, across)];
        if sides.iter().any(|(all, own, warps)| {
            !(WARP_BLOCK..=MAX_COLUMNS).contains(all) || *own < 1 || own % (WARP_BLOCK * warps) != 0
        }) {
            return Some("each warp multiplies multiples of 16 rows and 16 columns, and a tile has at most 256");
        }
        // Each thread must copy as many chunks of a k-tile as all others.
        let lines = LANES * along * across * VECTOR / LINE_BYTES;
        if !self.producer && (self.rows % lines != 0 || self.columns % lines != 0) {
            return Some("the threads of a block copy equal parts of the rows and of the columns of a k-tile");
        }
        // Each half of the pairs is copied separately: in lines if its columns are contiguous; if K
        // is contiguous, in the lines that the threads of a block copy at once.
        let half = if self.swapped { self.rows } else { self.columns } / 2;
        let in_lines = problem.readable_on(machine)[1] == Ok(Contiguous::Rows);
        if problem.pairs().is_some()
            && in_lines
            && half % width(2 * half, i64::from(problem.operand_type().bytes())) != 0
        {
            return Some("each half of the pairs of a tile has whole lines of contiguous columns");
        }
        if problem.pairs().is_some() && !in_lines && !self.producer && half % lines != 0 {
            return Some("the threads of a block copy equal parts of each half of the pairs of a tile");
        }
        if self.ping_pong || self.cluster != 1 || self.programmatic_launch || self.warpgroups != 1 {
            return Some("warps have no clusters, no ping-pong and no programmatic launch");
        }
        if !(1..=steps).contains(&self.split_k) {
            return Some("`split_k` is at most the number of k-tiles");
        }
        if implicit::of(problem).is_some() && (self.swapped || self.split_k > 1) {
            return Some("implicit GEMM needs A along the rows of tiles, and excludes split-K");
        }
        // Threads copy a power of two of lines at once, and the sides of a box must divide that
        // number.
        if implicit::of(problem).is_some() && self.rows.count_ones() != 1 {
            return Some("implicit GEMM by warps needs tiles whose rows are a power of two");
        }
        self.producer_refusal(problem, machine)
            .or_else(|| self.warp_sharing_refusal(problem))
            .or_else(|| self.order_refusal(problem))
            .or_else(|| self.warp_room_refusal(problem, machine, [along, across]))
    }

    /// Refuses a producer if nothing is loaded by TMA.
    fn producer_refusal(&self, problem: &Problem, machine: &Machine) -> Option<&'static str> {
        if !self.producer {
            return None;
        }
        if !machine.target.has_tma() {
            return Some("the machine has no TMA: its warps copy k-tiles by cp.async");
        }
        // Threads load f64 and weights of four bits from rings with other swizzles, and windows of
        // images line by line.
        let others = problem.operand_type() == Element::F64 || problem.int4_scales().is_some();
        let reads = problem.readable_a().is_ok() && problem.readable_b().is_ok() && implicit::of(problem).is_none();
        (others || !reads).then_some("TMA cannot read an operand: warps copy its k-tiles by cp.async")
    }

    /// Refuses plans whose blocks share tiles if that is not possible.
    fn warp_sharing_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if self.tail != 0 && (self.tail < 0 || self.tail_refusal(problem).is_some()) {
            return self.tail_refusal(problem).or(Some("`tail` is less than 0"));
        }
        if self.split_k > 1 && problem.reductions().next().is_some() {
            return Some("reductions of rows or columns need whole accumulators, so without split-K");
        }
        if self.split_k > 1 && problem.row_groups().is_some() {
            return Some("row groups exclude split-K and clusters");
        }
        if self.split_k > 1 && problem.accumulator_type() == Element::I32 {
            return Some("split-K needs accumulators in f32");
        }
        if problem.reductions().next().is_some() && self.warps.is_some_and(|[_, across]| across > 1) {
            return Some("reductions of rows or columns need all columns of a tile in one warp");
        }
        if self.cuts_scales(problem) {
            return Some(CUTS_SCALES);
        }
        self.splits_scales(problem).then_some("the columns of a tile have one block of scales")
    }

    /// Refuses plans that need too many registers or too much shared memory.
    fn warp_room_refusal(&self, problem: &Problem, machine: &Machine, warps: [i64; 2]) -> Option<&'static str> {
        if self.warp_registers(problem, machine, warps) > self.registers(machine) {
            return Some("a thread has not enough registers for its accumulators");
        }
        if self.stages < 2 {
            return Some("fewer than two stages fit into shared memory");
        }
        if self.stages > MAX_PHASES || self.warp_bytes(problem, machine) > self.warp_room(machine) {
            return Some("the stages and the epilogue tile do not fit into shared memory");
        }
        if self.producer && self.warp_bytes(problem, machine) > self.stages * self.stage_bytes(problem) {
            return Some("a part of D does not fit into a stage");
        }
        (self.raster_band > count(self.extents(problem)[0], self.rows.max(1)))
            .then_some("`raster_band` is more than the tiles along the rows")
    }
}

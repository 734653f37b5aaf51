//! Why a plan cannot be carried out.
//!
//! Law: a plan without a refusal has a kernel, and the kernel computes the GEMM. Each reason is a
//! sentence about the plan alone, or about the plan and the problem.

use tilewright_kernel::Element;

use tilewright_kernel::machine::Machine;

use crate::gemm::implicit;
use crate::gemm::panel::width;
use crate::gemm::plan::{COLUMNS_OF_THREE, MAX_COLUMNS, MAX_PHASES, OTHER_REGISTERS, Plan};
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::scales::ScaleLayout;
use crate::units::count;
use crate::units::has_wgmma;

/// The largest number of blocks of a launch, of blocks on an SM, and of tiles in a raster band.
pub(crate) const MOST: i64 = 4096;

/// The largest size of the mbarriers, in bytes.
const MAX_BARRIER_BYTES: i64 = 512;

impl Plan {
    /// Why the plan cannot be carried out; None if it can.
    pub(crate) fn refusal(&self, problem: &Problem, machine: &Machine) -> Option<&'static str> {
        if self.warps.is_some() {
            return self.warps_refusal(problem, machine);
        }
        if !problem.is_by_warpgroups(machine) && has_wgmma(machine) {
            return Some("wgmma does not have the types of the operands: a plan says how its `warps` multiply");
        }
        if !has_wgmma(machine) {
            return Some("the machine has no wgmma: a plan for it says how its `warps` multiply");
        }
        self.number_refusal(problem)
            .or_else(|| self.pairs_refusal(problem))
            .or_else(|| self.ping_pong_refusal(problem))
            .or_else(|| self.sharing_refusal(problem))
            .or_else(|| self.order_refusal(problem))
            .or_else(|| self.columns_refusal(problem))
            .or_else(|| self.instruction_refusal(problem))
            .or_else(|| self.room_refusal(problem, machine))
            .or_else(|| self.cluster_refusal(problem))
    }

    /// Refuses numbers that are invalid for every problem.
    fn number_refusal(&self, problem: &Problem) -> Option<&'static str> {
        let steps = count(problem.sizes()[2], problem.k_tile());
        if [self.raster_band, self.blocks, self.blocks_per_sm].iter().any(|number| !(1..=MOST).contains(number)) {
            return Some("`raster_band`, `blocks` and `blocks_per_sm` are from 1 to 4096");
        }
        if !(1..=4).contains(&self.warpgroups)
            || !(64..=256).contains(&self.rows)
            || self.rows % (64 * self.together()) != 0
        {
            return Some("each warpgroup multiplies a multiple of 64 rows, and a tile has at most 256");
        }
        if !(1..=2).contains(&self.cluster) {
            return Some("a cluster has one block or two");
        }
        if !(1..=steps).contains(&self.split_k) {
            return Some("`split_k` is at most the number of k-tiles");
        }
        if !(8..=MAX_COLUMNS).contains(&self.columns) || self.columns % 8 != 0 {
            return Some("a tile has a multiple of 8 columns, at most 256");
        }
        None
    }

    /// Refuses plans for gated pairs.
    fn pairs_refusal(&self, problem: &Problem) -> Option<&'static str> {
        problem.pairs()?;
        let [rows, columns] = self.tile_of_d(problem);
        if rows % (64 * self.warpgroups) != 0 || columns % 8 != 0 {
            return Some("each half of a gated tile needs a multiple of 64 rows for each warpgroup, and of 8 columns");
        }
        (self.cluster > 1).then_some("a gated GEMM uses no clusters")
    }

    /// Refuses ping-pong plans.
    fn ping_pong_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if !self.ping_pong {
            return None;
        }
        if self.warpgroups != 2 || self.blocks_per_sm > 1 || self.cluster > 1 || self.split_k > 1 {
            return Some(
                "ping-pong takes two consumer warpgroups, without split-K, clusters, or a second block on a multiprocessor",
            );
        }
        let more = problem.pairs().is_some() || problem.reductions().next().is_some() || problem.is_promoted();
        if more || problem.row_groups().is_some() || implicit::of(problem).is_some() {
            return Some(
                "ping-pong has no gated pairs, reductions of rows or columns, promotion, row groups, or folded modes",
            );
        }
        (self.stages < 4).then_some("ping-pong needs four stages")
    }

    /// Refuses plans whose blocks share tiles or loads.
    fn sharing_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if self.split_k > 1 && problem.reductions().next().is_some() {
            return Some("reductions of rows or columns need whole accumulators, so without split-K");
        }
        if self.tail != 0 && (self.tail < 0 || self.tail_refusal(problem).is_some()) {
            return self.tail_refusal(problem).or(Some("`tail` is less than 0"));
        }
        if problem.row_groups().is_some() && (self.split_k > 1 || self.cluster > 1) {
            return Some("row groups exclude split-K and clusters");
        }
        if implicit::of(problem).is_some() && (self.swapped || self.split_k > 1 || self.cluster > 1) {
            return Some("implicit GEMM needs A along the rows of tiles, and excludes split-K and clusters");
        }
        None
    }

    /// Refuses plans in which M decides how the terms of an element are added, if the GEMM is
    /// batch-invariant.
    pub(crate) fn order_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if !problem.is_batch_invariant() || problem.accumulator_type() == Element::I32 {
            return None;
        }
        if self.split_k > 1 || self.tail > 0 {
            return Some("a batch-invariant GEMM adds the terms of an element in one sum, without split-K");
        }
        self.swapped.then_some("a batch-invariant GEMM has A along the rows of tiles for every M")
    }

    /// Refuses tile widths that reductions or scales do not allow.
    fn columns_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if problem.reductions().next().is_some() && self.tile_of_d(problem)[1] % 16 != 0 {
            return Some("reductions of rows or columns need tiles of a multiple of 16 columns");
        }
        if self.cuts_scales(problem) {
            return Some(CUTS_SCALES);
        }
        self.splits_scales(problem).then_some("columns of one instruction have one block of scales")
    }

    /// Refuses plans for which no instruction exists.
    fn instruction_refusal(&self, problem: &Problem) -> Option<&'static str> {
        let own = self.tile_of_d(problem)[1];
        let columns = if problem.pairs().is_none() { own / self.halves(problem) } else { own };
        if self.warpgroups > 2 && columns > COLUMNS_OF_THREE {
            return Some("three warpgroups multiply tiles of more than 192 columns by halves, so of a multiple of 16");
        }
        if columns < own && self.cuts_panels(problem) {
            return Some("halves of the columns are whole panels if the operand along them is not K-major");
        }
        if self.warpgroups > 2 && problem.staged().is_some() && problem.stored().is_err() {
            return Some("threads of three warpgroups do not divide a tile that they store themselves");
        }
        if problem.accumulator_type() == Element::I32 && columns > 24 && columns % 16 != 0 {
            return Some("instructions for integers have a multiple of 16 columns, or 8 or 24");
        }
        if problem.accumulator_type() == Element::I32 && self.split_k > 1 {
            return Some("split-K needs accumulators in f32");
        }
        if problem.operand_type() == Element::F32 && !problem.is_tf32() {
            return Some("no instruction multiplies operands of f32 that may not be rounded to tf32");
        }
        None
    }

    /// Whether halves of the columns begin within a panel of the operand along them.
    fn cuts_panels(&self, problem: &Problem) -> bool {
        let operand = if self.swapped { problem.a() } else { problem.b() };
        let half = self.columns / 2;
        problem.readable(operand) == Ok(Contiguous::Rows) && half % width(self.columns, 2) != 0
    }

    /// Refuses plans that need too many registers or too much shared memory.
    fn room_refusal(&self, problem: &Problem, machine: &Machine) -> Option<&'static str> {
        let registers = self.shares(problem, machine).map_or(self.registers(machine), |[_, many]| i64::from(many));
        if self.accumulators(problem, machine) + OTHER_REGISTERS > registers {
            return Some("a thread has not enough registers for its accumulators");
        }
        if self.stages < 2 {
            return Some("fewer than two stages fit into shared memory");
        }
        let most = MAX_PHASES * self.stages_of_phase(problem);
        let bytes =
            self.stages.min(most) * self.stage_bytes(problem) + MAX_BARRIER_BYTES + self.staged_bytes(problem, machine);
        (self.stages > most || bytes > i64::from(machine.multiprocessor.block_shared_bytes))
            .then_some("the stages and the epilogue tile do not fit into shared memory")
    }

    /// Refuses raster orders and clusters.
    fn cluster_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if self.raster_band > count(self.extents(problem)[0], self.rows.max(1)) {
            return Some("`raster_band` is more than the tiles along the rows");
        }
        if self.cluster != 2 {
            return None;
        }
        let side = self.side_by_side();
        let operand = if self.swapped == side { problem.b() } else { problem.a() };
        if problem.readable(operand) != Ok(Contiguous::Columns) {
            return Some("the operand that a cluster multicasts is not K-major");
        }
        if self.blocks % 2 != 0 || (!side && self.raster_band % 2 != 0) {
            return Some(
                "clusters of two need an even number of blocks, and an even `raster_band` if their tiles are one above the other",
            );
        }
        (side && count(self.extents(problem)[1], self.columns) < 2)
            .then_some("the tiles of a cluster are side by side, and there is only one column of tiles")
    }

    /// Why the tail cannot be split; None if it can.
    pub(crate) fn tail_refusal(&self, problem: &Problem) -> Option<&'static str> {
        let [along, across] = self.tiles(problem);
        let scaled = problem.scales().is_some() || problem.blocks().is_some();
        let plain = problem.epilogue().is_none() && !scaled && problem.batch() == 1;
        if !plain || self.swapped || self.cluster > 1 {
            return Some(
                "split-K of the tail excludes an epilogue function, scales, a batch, clusters, and B along the rows of tiles",
            );
        }
        if self.split_k < 2 || (along * across - self.tail) % self.blocks.max(1) != 0 || self.tail >= along * across {
            return Some("`tail` is the number of tiles after the last full wave, and `split_k` is 2 or more");
        }
        None
    }

    /// Whether tiles cut blocks of scales: a block along the rows of tiles ends inside a tile, and
    /// a tile is not a number of whole blocks.
    pub(crate) fn cuts_scales(&self, problem: &Problem) -> bool {
        let Some(wide) = wide(problem, !self.swapped) else { return false };
        let ([m, n, _], [rows, _]) = (problem.sizes(), self.tile_of_d(problem));
        wide > 1 && wide < if self.swapped { n } else { m } && wide % rows != 0 && rows % wide != 0
    }

    /// Whether columns of one instruction are in several blocks of scales: each thread would load
    /// as many scales.
    pub(crate) fn splits_scales(&self, problem: &Problem) -> bool {
        let Some(wide) = wide(problem, self.swapped) else { return false };
        let [m, n, _] = problem.sizes();
        let paired = problem.pairs().is_some();
        let together = if paired { self.tile_of_d(problem)[1] } else { self.columns / self.halves(problem) };
        wide > 1 && wide < if self.swapped { m } else { n } && wide % together != 0
    }
}

/// Why [`Plan::cuts_scales`] refuses a plan.
pub(crate) const CUTS_SCALES: &str = "the rows of a tile divide a block of scales, or are whole blocks";

/// The width of a block of scales of the operand along the columns of tiles, in rows or columns of
/// D. With `swapped` negated, that of the operand along the rows.
pub(crate) fn wide(problem: &Problem, swapped: bool) -> Option<i64> {
    let (scales, [m, n, _]) = (problem.scales()?, problem.sizes());
    let along =
        if swapped { ScaleLayout::of(&scales.a, m, None) } else { ScaleLayout::of(&scales.b, n, problem.pairs()) };
    Some(along.ok()?.wide)
}

//! Why a plan cannot be carried out.
//!
//! Law: a plan without a refusal has a kernel, and the kernel is the product. Each reason is a
//! sentence about the plan alone, or about the plan and what the problem asks for.

use tilewright_kernel::Element;

use super::{BLOCK_BYTES, COLUMNS_OF_THREE, MAX_COLUMNS, MAX_STAGES, OTHER_REGISTERS, Plan};
use crate::gemm::epilogue::width;
use crate::gemm::matrix::Contiguous;
use crate::gemm::problem::Problem;
use crate::gemm::scales::wide;
use crate::product::count;

/// The most blocks of a launch, on a processor, and tiles that are taken one after the other.
const MOST: i64 = 4096;

/// Bytes that barriers take at most.
const MOST_BARRIER_BYTES: i64 = 512;

impl Plan {
    /// Why it cannot be carried out, if so.
    pub(crate) fn refusal(&self, problem: &Problem) -> Option<&'static str> {
        self.number_refusal(problem)
            .or_else(|| self.pairs_refusal(problem))
            .or_else(|| self.turns_refusal(problem))
            .or_else(|| self.sharing_refusal(problem))
            .or_else(|| self.columns_refusal(problem))
            .or_else(|| self.instruction_refusal(problem))
            .or_else(|| self.room_refusal(problem))
            .or_else(|| self.cluster_refusal(problem))
    }

    /// Of its numbers, each by itself.
    fn number_refusal(&self, problem: &Problem) -> Option<&'static str> {
        let steps = count(problem.sizes()[2], problem.depth());
        if [self.group, self.blocks, self.resident].iter().any(|number| !(1..=MOST).contains(number)) {
            return Some("`group`, `blocks` and `resident` are from 1 to 4096");
        }
        if !(1..=4).contains(&self.groups)
            || !(64..=256).contains(&self.rows)
            || self.rows % (64 * self.together()) != 0
        {
            return Some("each group of four warps multiplies a multiple of 64 rows, and a tile has at most 256");
        }
        if !(1..=2).contains(&self.cluster) {
            return Some("a cluster has one block or two");
        }
        if !(1..=steps).contains(&self.splits) {
            return Some("each block that shares a tile needs a step along K");
        }
        if !(8..=MAX_COLUMNS).contains(&self.columns) || self.columns % 8 != 0 {
            return Some("a tile has a multiple of 8 columns, at most 256");
        }
        None
    }

    /// Where B has pairs of columns.
    fn pairs_refusal(&self, problem: &Problem) -> Option<&'static str> {
        problem.pairs()?;
        let [rows, columns] = self.tile_of_d(problem);
        if rows % (64 * self.groups) != 0 || columns % 8 != 0 {
            return Some(
                "each half of the pairs of a tile needs a multiple of 64 rows for each group, and of 8 columns",
            );
        }
        (self.cluster > 1).then_some("pairs of columns are not multiplied by clusters")
    }

    /// Where groups take tiles in turn.
    fn turns_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if !self.alternates {
            return None;
        }
        if self.groups != 2 || self.resident > 1 || self.cluster > 1 || self.splits > 1 {
            return Some(
                "groups that take tiles in turn are two, of a block that shares no tile and no processor, and is in no cluster",
            );
        }
        let more = problem.pairs().is_some() || problem.by_products().next().is_some() || problem.is_promoted();
        if more || problem.groups().is_some() || problem.fold().is_some() {
            return Some(
                "groups take tiles in turn where there are no pairs, by-products, sums of blocks, groups of rows and folded modes",
            );
        }
        (self.stages < 4).then_some("groups that take tiles in turn need four stages")
    }

    /// Where blocks share tiles, or loads.
    fn sharing_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if self.splits > 1 && problem.by_products().next().is_some() {
            return Some("by-products are taken of whole sums, so blocks share no tiles");
        }
        if self.tail != 0 && (self.tail < 0 || self.tail_refusal(problem).is_some()) {
            return self.tail_refusal(problem).or(Some("`tail` is less than 0"));
        }
        if problem.groups().is_some() && (self.splits > 1 || self.cluster > 1) {
            return Some("where rows are in groups, blocks share no tiles and are in no clusters");
        }
        if problem.fold().is_some() && (self.swapped || self.splits > 1 || self.cluster > 1) {
            return Some(
                "where rows of A are folded, they lie along the rows of tiles, and blocks share no tiles and are in no clusters",
            );
        }
        None
    }

    /// Of the columns of a tile, where by-products are taken of them or they have scales.
    fn columns_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if problem.by_products().next().is_some() && self.tile_of_d(problem)[1] % 16 != 0 {
            return Some("by-products need tiles of a multiple of 16 columns");
        }
        self.splits_scales(problem).then_some("columns that are multiplied together have one block of scales")
    }

    /// Of what the instructions do.
    fn instruction_refusal(&self, problem: &Problem) -> Option<&'static str> {
        let own = self.tile_of_d(problem)[1];
        let columns = if problem.pairs().is_none() { own / self.halves(problem) } else { own };
        if self.groups > 2 && columns > COLUMNS_OF_THREE {
            return Some("three groups multiply tiles of more than 192 columns by halves, so of a multiple of 16");
        }
        if columns < own && self.cuts_panels(problem) {
            return Some("halves of the columns are whole panels where neighbours along them are neighbours in memory");
        }
        if self.groups > 2 && problem.staged().is_some() && problem.stored().is_err() {
            return Some("threads of three groups do not divide a tile that they store themselves");
        }
        if problem.sums() == Element::I32 && columns > 24 && columns % 16 != 0 {
            return Some("instructions for integers have a multiple of 16 columns, or 8 or 24");
        }
        if problem.sums() == Element::I32 && self.splits > 1 {
            return Some("blocks share no tiles whose sums are integers");
        }
        if problem.factors() == Element::F32 && !problem.is_tf32() {
            return Some("no instruction multiplies factors of f32 that may not be rounded to tf32");
        }
        None
    }

    /// Whether halves of the columns begin within a panel of the factor along them.
    fn cuts_panels(&self, problem: &Problem) -> bool {
        let factor = if self.swapped { problem.a() } else { problem.b() };
        let half = self.columns / 2;
        problem.readable(factor) == Ok(Contiguous::Rows) && half % width(self.columns, 2) != 0
    }

    /// Of registers and shared memory.
    fn room_refusal(&self, problem: &Problem) -> Option<&'static str> {
        let registers = self.shares(problem).map_or(self.registers(), |[_, many]| i64::from(many));
        if self.sums(problem) + OTHER_REGISTERS > registers {
            return Some("a thread has no registers for so many sums");
        }
        if self.stages < 2 {
            return Some("fewer than two stages fit into shared memory");
        }
        let bytes =
            self.stages.min(MAX_STAGES + 1) * self.stage_bytes() + MOST_BARRIER_BYTES + self.staged_bytes(problem);
        (self.stages > MAX_STAGES || bytes > BLOCK_BYTES)
            .then_some("the stages, and what D goes through, do not fit into shared memory")
    }

    /// Of the order of tiles, and of clusters.
    fn cluster_refusal(&self, problem: &Problem) -> Option<&'static str> {
        if self.group > count(self.extents(problem)[0], self.rows.max(1)) {
            return Some("`group` is more than the tiles along the rows");
        }
        if self.cluster != 2 {
            return None;
        }
        let side = self.side_by_side();
        let factor = if self.swapped == side { problem.b() } else { problem.a() };
        if problem.readable(factor) != Ok(Contiguous::Columns) {
            return Some("K is not contiguous in the factor of which the blocks of a cluster load halves");
        }
        if self.blocks % 2 != 0 || (!side && self.group % 2 != 0) {
            return Some(
                "clusters of two need an even number of blocks, and an even `group` where their tiles are one above the other",
            );
        }
        (side && count(self.extents(problem)[1], self.columns) < 2)
            .then_some("the tiles of a cluster are side by side, and there is only one column of tiles")
    }

    /// Why blocks cannot share the last tiles, if so.
    fn tail_refusal(&self, problem: &Problem) -> Option<&'static str> {
        let [along, across] = self.tiles(problem);
        let plain = problem.function().is_none() && problem.scales().is_none() && problem.batch() == 1;
        if !plain || self.swapped || self.cluster > 1 {
            return Some(
                "only the last tiles cannot be shared where there is a function, scales, a batch, a cluster, or B along the rows of tiles",
            );
        }
        if self.splits < 2 || (along * across - self.tail) % self.blocks.max(1) != 0 || self.tail >= along * across {
            return Some("`tail` is how many tiles whole turns of all blocks leave, and two blocks or more share each");
        }
        None
    }

    /// Whether columns that are multiplied together are in several blocks that have scales: each
    /// thread would load as many.
    fn splits_scales(&self, problem: &Problem) -> bool {
        let Some(wide) = wide(problem, self.swapped) else { return false };
        let [m, n, _] = problem.sizes();
        let paired = problem.pairs().is_some();
        let together = if paired { self.tile_of_d(problem)[1] } else { self.columns / self.halves(problem) };
        wide > 1 && wide < if self.swapped { m } else { n } && wide % together != 0
    }
}

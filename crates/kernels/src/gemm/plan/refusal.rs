//! Why a plan cannot be carried out.
//!
//! Law: a plan without a refusal has a kernel, and the kernel is the product. Each reason is a
//! sentence about the plan alone, or about the plan and what the problem asks for.

use tilewright_kernel::Element;

use super::{MAX_COLUMNS, OTHER_REGISTERS, Plan};
use crate::gemm::matrix::Contiguous;
use crate::gemm::problem::Problem;
use crate::gemm::scales::wide;
use crate::product::count;

impl Plan {
    /// Why it cannot be carried out, if so.
    pub(crate) fn refusal(&self, problem: &Problem) -> Option<&'static str> {
        let steps = count(problem.sizes()[2], problem.depth());
        if self.groups < 1 || self.rows < 64 || self.rows % (64 * self.together()) != 0 {
            return Some("each group of four warps multiplies a multiple of 64 rows");
        }
        if !(8..=MAX_COLUMNS).contains(&self.columns) || self.columns % 8 != 0 {
            return Some("a tile has a multiple of 8 columns, at most 256");
        }
        if problem.pairs().is_some() {
            if self.tile_of_d(problem)[0] % (64 * self.groups) != 0 || self.tile_of_d(problem)[1] % 8 != 0 {
                return Some("each half of the pairs of a tile is multiplied by instructions of its own");
            }
            if self.cluster > 1 {
                return Some("the blocks of a cluster load halves of what pairs divide");
            }
        }
        if self.alternates {
            let more = problem.pairs().is_some() || problem.by_products().next().is_some() || problem.is_promoted();
            let more = more || problem.groups().is_some() || problem.fold().is_some();
            if self.groups != 2 || self.resident > 1 || self.cluster > 1 || self.splits > 1 || more {
                return Some("two groups of one block take tiles in turn, of sums that are as they are multiplied");
            }
            if self.stages < 4 {
                return Some("fewer than four stages are not enough for groups that take tiles in turn");
            }
        }
        if self.splits > 1 && problem.by_products().next().is_some() {
            return Some("by-products are taken of whole sums, so blocks share no tiles");
        }
        if self.tail != 0 && (self.tail < 0 || self.tail_refusal(problem).is_some()) {
            return self.tail_refusal(problem).or(Some("there are no fewer tiles than none"));
        }
        if problem.groups().is_some() && (self.splits > 1 || self.cluster > 1) {
            return Some("blocks share no tiles of groups, and make no clusters");
        }
        if problem.fold().is_some() && (self.swapped || self.splits > 1 || self.cluster > 1) {
            return Some("folded rows lie along the rows of tiles, which no blocks share and no clusters have");
        }
        if problem.by_products().next().is_some() && self.tile_of_d(problem)[1] % 16 != 0 {
            return Some("by-products are taken of a multiple of 16 columns");
        }
        if self.splits_scales(problem) {
            return Some("columns that are multiplied together are within one block that has a scale");
        }
        let instruction = self.tile_of_d(problem)[1];
        if problem.sums() == Element::I32 && instruction > 24 && instruction % 16 != 0 {
            return Some("instructions for integers have a multiple of 16 columns, or 8 or 24");
        }
        if problem.sums() == Element::I32 && self.splits > 1 {
            return Some("blocks share the steps of sums in f32 alone");
        }
        if problem.factors() == Element::F32 && !problem.is_tf32() {
            return Some("factors of f32 are multiplied where they may be rounded to tf32");
        }
        let registers = self.shares(problem).map_or(self.registers(), |[_, many]| i64::from(many));
        if self.sums(problem) + OTHER_REGISTERS > registers {
            return Some("a thread has no registers for so many sums");
        }
        if self.stages < 2 {
            return Some("fewer than two stages fit into shared memory");
        }
        if !(1..=steps).contains(&self.splits) {
            return Some("each block that shares a tile has a step along K at least");
        }
        if self.group > count(self.extents(problem)[0], self.rows.max(1)) {
            return Some("there are not so many tiles along the rows");
        }
        if !(1..=2).contains(&self.cluster) {
            return Some("a cluster has one block or two");
        }
        if self.cluster == 2 {
            let side = self.side_by_side();
            let factor = if self.swapped == side { problem.b() } else { problem.a() };
            if problem.readable(factor) != Ok(Contiguous::Columns) {
                return Some("the blocks of a cluster load halves of rows of which K is contiguous");
            }
            if self.blocks % 2 != 0 || (!side && self.group % 2 != 0) {
                return Some("clusters divide the blocks, and the tiles that are taken one after the other");
            }
            if side && count(self.extents(problem)[1], self.columns) < 2 {
                return Some("the blocks of a cluster have tiles side by side, and there is one column of tiles");
            }
        }
        (self.group < 1 || self.blocks < 1 || self.resident < 1).then_some("there are blocks, which take tiles")
    }

    /// Why blocks cannot share the last tiles, if so.
    fn tail_refusal(&self, problem: &Problem) -> Option<&'static str> {
        let [along, across] = self.tiles(problem);
        let plain = problem.function().is_none() && problem.scales().is_none() && problem.batch() == 1;
        if !plain || self.swapped || self.cluster > 1 {
            return Some("the last tiles are shared of one product, without a function, a cluster or other rows");
        }
        if self.splits < 2 || (along * across - self.tail) % self.blocks.max(1) != 0 || self.tail >= along * across {
            return Some("blocks share the tiles that are left of whole turns");
        }
        (16 * self.columns / 8 > 1024).then_some("a block adds 16 rows")
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

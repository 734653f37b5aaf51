//! How a tile of D goes through shared memory.
//!
//! Law: a tile is stored as a whole where it fits beside the stages, else in parts of as many
//! columns, of which the last one may have fewer. Rows of a part are in panels of up to 128 bytes,
//! which swizzles spread over the banks; or, where a tile has an odd number of eights of columns,
//! one behind the other.

use super::{BARRIER_BYTES, BLOCK_BYTES, Plan};
use crate::gemm::epilogue::width;
use crate::gemm::matrix::Contiguous;
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::product::count;

/// Bytes of a vector beside the rows or columns of a tile, at most.
const VECTOR_BYTES: i64 = 1024;
/// The most bytes of shared memory through which a tile of D goes.
const STAGED_BYTES: i64 = 65_536;
/// Parts of a tile beyond which more of them take no longer, where lines go along its rows.
pub(in crate::gemm) const FEW_PARTS: i64 = 4;
/// The most bytes of two buffers through which a tile goes in parts.
const TURNED_BYTES: i64 = 32_768;

impl Plan {
    /// In how many parts a tile of D goes through shared memory, and through how many buffers in
    /// turn: as a whole where it fits; else elements of 32 bits through two small buffers, and
    /// others through one, which leaves more room for stages.
    pub(crate) fn parts(&self, problem: &Problem) -> (i64, i64) {
        let step = if self.along_rows(problem) { 8 } else { self.panel(problem) };
        let [rows, columns] = self.tile_of_d(problem);
        let bytes = rows * columns * i64::from(problem.result().bytes());
        let fits = |buffers: i64, room: i64| {
            let fits = |parts: &i64| columns % (parts * step) == 0 && buffers * bytes / parts <= room;
            (1..=columns / step).find(fits).map(|parts| (parts, buffers))
        };
        let turned = || if problem.result().bytes() == 4 { fits(2, TURNED_BYTES) } else { None };
        if self.alternates {
            return fits(2, TURNED_BYTES).unwrap_or((1, 1));
        }
        if self.is_plain(problem) {
            return (count(columns, self.part_columns(problem)), 1);
        }
        // A fourth stage counts for more than fewer parts do, where blocks wait for each other.
        let fourth = || fits(1, self.beside_four_stages()).filter(|_| self.cluster > 1);
        if bytes <= STAGED_BYTES {
            return fourth().filter(|_| problem.result().bytes() == 2).unwrap_or((1, 1));
        }
        turned().or_else(fourth).or_else(|| fits(1, STAGED_BYTES)).unwrap_or((1, 1))
    }

    /// Bytes through which a tile of D may go where there are four stages.
    fn beside_four_stages(&self) -> i64 {
        (BLOCK_BYTES - BARRIER_BYTES - 4 * self.stage_bytes()).clamp(0, STAGED_BYTES)
    }

    /// Whether rows of a part of D lie one behind the other in shared memory: where panels would
    /// have rows of 16 bytes. An odd number of 16 bytes a row spreads rows over the banks as a
    /// swizzle does.
    pub(crate) fn is_plain(&self, problem: &Problem) -> bool {
        let narrow = self.tile_of_d(problem)[1] % 16 == 8 && problem.result().bytes() == 2;
        let whole = problem.groups().is_none() && problem.fold().is_none();
        narrow && whole && !self.alternates && !self.along_rows(problem) && problem.stored().is_ok()
    }

    /// Columns of a part of a tile, of which the last one may have fewer: where rows lie one behind
    /// the other, an odd multiple of 8, so many as fit.
    pub(crate) fn part_columns(&self, problem: &Problem) -> i64 {
        let [rows, columns] = self.tile_of_d(problem);
        if !self.is_plain(problem) {
            return columns / self.parts(problem).0;
        }
        let fourth = if self.cluster > 1 { self.beside_four_stages() } else { 0 };
        let fits = |room: i64| room / (rows * i64::from(problem.result().bytes()) * 8);
        let most = match (fits(STAGED_BYTES), fits(fourth)) {
            (all, _) if all * 8 >= columns => columns / 8,
            (all, 0) => all,
            (_, fourth) => fourth,
        };
        (most - (most + 1) % 2).max(1) * 8
    }

    /// Bytes of a stage.
    pub(super) fn stage_bytes(&self) -> i64 {
        (self.rows + self.columns) * LINE_BYTES
    }

    /// Bytes of shared memory through which a tile of D is stored.
    pub(super) fn staged_bytes(&self, problem: &Problem) -> i64 {
        if self.is_shared() || problem.staged().is_none() {
            0
        } else {
            // Vectors that come ahead have up to 1 KB each.
            let inputs = problem.function().map_or(0, |fused| fused.inputs.len() as i64);
            let ([rows, _], buffers) = (self.tile_of_d(problem), self.parts(problem).1);
            let tile = rows * self.part_columns(problem) * i64::from(problem.result().bytes()) * buffers;
            tile * self.tiles_at_once() + inputs * VECTOR_BYTES
        }
    }

    /// How much longer stores of D take than those of whole lines, by the panels of a tile.
    pub(crate) fn panels(&self, problem: &Problem) -> f64 {
        match self.panel_bytes(problem) {
            _ if self.is_shared() => 1.0,
            128.. => 1.0,
            64.. => 1.1,
            32.. => 1.3,
            _ => 1.6,
        }
    }

    /// Elements of a row of a panel, through which a tile of D is stored: 128 bytes, or what
    /// divides the tile.
    pub(crate) fn panel(&self, problem: &Problem) -> i64 {
        let [rows, columns] = self.tile_of_d(problem);
        if self.is_plain(problem) {
            return self.part_columns(problem);
        }
        width(if self.along_rows(problem) { rows } else { columns }, i64::from(problem.result().bytes().max(2)))
    }

    /// In how many pieces columns of a tile are stored: parts, or panels that are side by side.
    pub(crate) fn pieces(&self, problem: &Problem) -> i64 {
        match self.along_rows(problem) {
            true => self.parts(problem).0.min(FEW_PARTS),
            false => self.tile_of_d(problem)[1] / self.panel(problem).max(1),
        }
    }

    /// Bytes of a row of a panel.
    pub(crate) fn panel_bytes(&self, problem: &Problem) -> i64 {
        self.panel(problem) * i64::from(problem.result().bytes())
    }

    /// Whether lines of D go along the rows of a tile.
    fn along_rows(&self, problem: &Problem) -> bool {
        self.swapped != (problem.staged() == Some(Contiguous::Rows))
    }
}

//! How a tile of D is staged in shared memory.
//!
//! Law: a tile is staged whole if it fits beside the stages; otherwise it is staged in parts with
//! equal numbers of columns, of which the last part may have fewer. The rows of a part are in
//! panels of up to 128 bytes, which swizzles distribute over the banks. If panels would be narrow,
//! or parts many, whole rows are stored contiguously instead.

use tilewright_kernel::machine::Machine;

use crate::gemm::implicit;
use crate::gemm::panel::width;
use crate::gemm::plan::{BARRIER_BYTES, Plan};
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::weights::WORDS_OF_GROUP;
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::units::count;

/// The largest size of a prefetched vector along the rows or columns of a tile, in bytes.
const VECTOR_BYTES: i64 = 1024;
/// The most bytes of shared memory in which a tile of D is staged.
const STAGED_BYTES: i64 = 64 << 10;
/// From this number of parts on, more parts take no longer if lines go along the rows of a tile.
pub(crate) const FEW_PARTS: i64 = 4;
/// The most bytes of two alternating buffers.
const ALTERNATING_BYTES: i64 = 32 << 10;

impl Plan {
    /// The number of parts in which a tile of D is staged, and the number of buffers that they
    /// alternate between.
    pub(crate) fn parts(&self, problem: &Problem, machine: &Machine) -> (i64, i64) {
        match self.uneven_columns(problem, machine) {
            Some(own) => (count(self.tile_of_d(problem)[1], own), 1),
            None => self.even_parts(problem, machine),
        }
    }

    /// The same for equal parts: the tile as a whole if it fits; otherwise two small buffers for
    /// 32-bit elements, and one buffer for others, which leaves more room for stages.
    fn even_parts(&self, problem: &Problem, machine: &Machine) -> (i64, i64) {
        if self.warps.is_some() {
            return self.warp_parts(problem, machine);
        }
        let step = if self.along_rows(problem) { 8 } else { self.panel_of_tile(problem) };
        let [rows, columns] = self.tile_of_d(problem);
        let bytes = rows * columns * i64::from(problem.result_type().bytes());
        let fits = |buffers: i64, room: i64| {
            let fits = |parts: &i64| columns % (parts * step) == 0 && buffers * bytes / parts <= room;
            (1..=columns / step).find(fits).map(|parts| (parts, buffers))
        };
        let turned = || if problem.result_type().bytes() == 4 { fits(2, ALTERNATING_BYTES) } else { None };
        if self.ping_pong {
            return fits(2, ALTERNATING_BYTES).unwrap_or((1, 1));
        }
        // A fourth stage is worth more than fewer parts if blocks wait for each other.
        let fourth = || fits(1, self.beside_four_stages(problem, machine)).filter(|_| self.cluster > 1);
        if bytes <= STAGED_BYTES {
            return fourth().filter(|_| problem.result_type().bytes() == 2).unwrap_or((1, 1));
        }
        turned().or_else(fourth).or_else(|| fits(1, STAGED_BYTES)).unwrap_or((1, 1))
    }

    /// Bytes that are left for a tile of D beside four stages.
    fn beside_four_stages(&self, problem: &Problem, machine: &Machine) -> i64 {
        (i64::from(machine.multiprocessor.block_shared_bytes) - BARRIER_BYTES - 4 * self.stage_bytes(problem))
            .clamp(0, STAGED_BYTES)
    }

    /// Whether rows of a part of D are contiguous in shared memory: if panels would have lines of
    /// 16 bytes, or parts would be many. Rows of an odd number of 16-byte chunks are distributed
    /// over the banks as by a swizzle.
    pub(crate) fn is_plain(&self, problem: &Problem, machine: &Machine) -> bool {
        !self.along_rows(problem) && self.uneven_columns(problem, machine).is_some()
    }

    /// Columns of a part of a tile; the last part may have fewer.
    pub(crate) fn part_columns(&self, problem: &Problem, machine: &Machine) -> i64 {
        let even = || self.tile_of_d(problem)[1] / self.even_parts(problem, machine).0;
        self.uneven_columns(problem, machine).unwrap_or_else(even)
    }

    /// The same for uneven parts. Parts are uneven if panels would be narrow, or if a cluster with
    /// four stages would otherwise have more than twice as many parts: 208 columns would make 13
    /// parts, because nothing else divides them. If rows are contiguous, a part has an odd multiple
    /// of 8 columns.
    fn uneven_columns(&self, problem: &Problem, machine: &Machine) -> Option<i64> {
        if self.warps.is_some() {
            return None;
        }
        let [rows, columns] = self.tile_of_d(problem);
        let (bytes, along_rows) = (i64::from(problem.result_type().bytes()), self.along_rows(problem));
        let whole = problem.row_groups().is_none() && implicit::of(problem).is_none();
        if bytes != 2 || !whole || self.ping_pong || problem.stored().is_err() || columns % 8 > 0 {
            return None;
        }
        let fourth = if self.cluster > 1 { self.beside_four_stages(problem, machine) } else { 0 };
        let [all, fourth] = [STAGED_BYTES, fourth].map(|room| room / (rows * bytes * 8));
        let odd = |eights: i64| (eights - (eights + 1) % 2).max(1) * 8;
        if columns % 16 == 8 {
            let narrow = match (all, fourth) {
                (all, _) if all * 8 >= columns => columns,
                (all, 0) => odd(all),
                (_, fourth) => odd(fourth),
            };
            return Some(narrow).filter(|_| !along_rows);
        }
        // Lines along the rows of a tile are in panels; the lines of the last part must divide
        // them.
        let divides = |own: &i64| columns % own == 0 || own % (columns % own) == 0;
        let fewer = match along_rows {
            // Warpgroups that store together store a part as a whole, in panels of one width.
            true if !self.writes_apart(problem, false) => return None,
            true => (1..=fourth).rev().map(|eights| eights * 8).find(divides)?,
            false => odd(fourth),
        };
        Some(fewer).filter(|fewer| fourth > 0 && 2 * count(columns, *fewer) < self.even_parts(problem, machine).0)
    }

    /// Bytes of a line of a stage, of the operand along the rows of a tile and of the other one.
    pub(crate) fn line_bytes(&self, problem: &Problem) -> [i64; 2] {
        if problem.int4_scales().is_none() {
            return [LINE_BYTES; 2];
        }
        let numbers = problem.k_tile() * i64::from(problem.operand_type().bytes());
        let words = WORDS_OF_GROUP * i64::from(problem.b().element().bytes());
        if self.swapped { [words, numbers] } else { [numbers, words] }
    }

    /// Bytes of a stage.
    pub(crate) fn stage_bytes(&self, problem: &Problem) -> i64 {
        let [of_row, of_column] = self.line_bytes(problem);
        self.rows * of_row + self.columns * of_column
    }

    /// Bytes of shared memory in which a tile of D is staged.
    pub(crate) fn staged_bytes(&self, problem: &Problem, machine: &Machine) -> i64 {
        if self.warps.is_some() || self.is_shared() || problem.staged().is_none() {
            // Warps stage D in the memory of the operands.
            0
        } else {
            // Prefetched vectors have up to 1 KB each.
            let inputs = problem.epilogue().map_or(0, |fused| fused.inputs.len() as i64);
            let ([rows, _], buffers) = (self.tile_of_d(problem), self.parts(problem, machine).1);
            let tile = rows * self.part_columns(problem, machine) * i64::from(problem.result_type().bytes()) * buffers;
            tile * self.tiles_at_once() + inputs * VECTOR_BYTES
        }
    }

    /// The ratio of the time of stores of D to that of stores of whole lines, by the panels of a
    /// tile.
    pub(crate) fn panels(&self, problem: &Problem, machine: &Machine) -> f64 {
        match self.panel_bytes(problem, machine) {
            _ if self.is_shared() => 1.0,
            128.. => 1.0,
            64.. => 1.1,
            32.. => 1.3,
            _ => 1.6,
        }
    }

    /// Elements of a line of a panel: 128 bytes, or a divisor of the tile.
    pub(crate) fn panel(&self, problem: &Problem, machine: &Machine) -> i64 {
        if self.is_plain(problem, machine) { self.part_columns(problem, machine) } else { self.panel_of_tile(problem) }
    }

    /// The same if rows are not contiguous.
    fn panel_of_tile(&self, problem: &Problem) -> i64 {
        let [rows, columns] = self.tile_of_d(problem);
        width(if self.along_rows(problem) { rows } else { columns }, i64::from(problem.result_type().bytes().max(2)))
    }

    /// The number of pieces in which columns of a tile are stored: parts, or panels side by side.
    pub(crate) fn pieces(&self, problem: &Problem, machine: &Machine) -> i64 {
        match self.along_rows(problem) {
            true => self.parts(problem, machine).0.min(FEW_PARTS),
            false => self.tile_of_d(problem)[1] / self.panel(problem, machine).max(1),
        }
    }

    /// Bytes of a line of a panel.
    pub(crate) fn panel_bytes(&self, problem: &Problem, machine: &Machine) -> i64 {
        self.panel(problem, machine) * i64::from(problem.result_type().bytes())
    }

    /// Whether lines of D go along the rows of a tile.
    pub(crate) fn along_rows(&self, problem: &Problem) -> bool {
        let staged = if self.warps.is_some() { problem.staged_by_warps() } else { problem.staged() };
        self.swapped != (staged == Some(Contiguous::Rows))
    }
}

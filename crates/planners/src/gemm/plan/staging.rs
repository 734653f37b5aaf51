//! How a tile of D goes through shared memory.
//!
//! Law: a tile is staged whole if it fits beside the stages, else in parts of equal columns, of
//! which the last one may have fewer. Rows of a part are in panels of up to 128 bytes, which
//! swizzles spread over the banks. If panels would be narrow, or parts many, whole rows follow each
//! other instead.

use tilewright_kernel::machine::Machine;

use crate::gemm::implicit;
use crate::gemm::panel::width;
use crate::gemm::plan::{BARRIER_BYTES, Plan};
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::product::count;

/// Bytes of a vector beside the rows or columns of a tile, at most.
const VECTOR_BYTES: i64 = 1024;
/// The most bytes of shared memory through which a tile of D goes.
const STAGED_BYTES: i64 = 64 << 10;
/// Parts of a tile beyond which more of them take no longer, where lines go along its rows.
pub(crate) const FEW_PARTS: i64 = 4;
/// The most bytes of two buffers through which a tile goes in parts.
const TURNED_BYTES: i64 = 32 << 10;

impl Plan {
    /// In how many parts a tile of D goes through shared memory, and through how many buffers in
    /// iteration.
    pub(crate) fn parts(&self, problem: &Problem, machine: &Machine) -> (i64, i64) {
        match self.uneven_columns(problem, machine) {
            Some(own) => (count(self.tile_of_d(problem)[1], own), 1),
            None => self.even_parts(problem, machine),
        }
    }

    /// The same of parts of as many columns: as a whole where it fits; else elements of 32 bits
    /// through two small buffers, and others through one, which leaves more room for stages.
    fn even_parts(&self, problem: &Problem, machine: &Machine) -> (i64, i64) {
        let step = if self.along_rows(problem) { 8 } else { self.panel_of_tile(problem) };
        let [rows, columns] = self.tile_of_d(problem);
        let bytes = rows * columns * i64::from(problem.result_type().bytes());
        let fits = |buffers: i64, room: i64| {
            let fits = |parts: &i64| columns % (parts * step) == 0 && buffers * bytes / parts <= room;
            (1..=columns / step).find(fits).map(|parts| (parts, buffers))
        };
        let turned = || if problem.result_type().bytes() == 4 { fits(2, TURNED_BYTES) } else { None };
        if self.ping_pong {
            return fits(2, TURNED_BYTES).unwrap_or((1, 1));
        }
        // A fourth stage counts for more than fewer parts do, where blocks wait for each other.
        let fourth = || fits(1, self.beside_four_stages(machine)).filter(|_| self.cluster > 1);
        if bytes <= STAGED_BYTES {
            return fourth().filter(|_| problem.result_type().bytes() == 2).unwrap_or((1, 1));
        }
        turned().or_else(fourth).or_else(|| fits(1, STAGED_BYTES)).unwrap_or((1, 1))
    }

    /// Bytes through which a tile of D may go where there are four stages.
    fn beside_four_stages(&self, machine: &Machine) -> i64 {
        (i64::from(machine.multiprocessor.block_shared_bytes) - BARRIER_BYTES - 4 * self.stage_bytes())
            .clamp(0, STAGED_BYTES)
    }

    /// Whether rows of a part of D lie one behind the other in shared memory: where panels would
    /// have rows of 16 bytes, or parts would be many. An odd number of 16 bytes a row spreads rows
    /// over the banks as a swizzle does.
    pub(crate) fn is_plain(&self, problem: &Problem, machine: &Machine) -> bool {
        !self.along_rows(problem) && self.uneven_columns(problem, machine).is_some()
    }

    /// Columns of a part of a tile, of which the last one may have fewer.
    pub(crate) fn part_columns(&self, problem: &Problem, machine: &Machine) -> i64 {
        let even = || self.tile_of_d(problem)[1] / self.even_parts(problem, machine).0;
        self.uneven_columns(problem, machine).unwrap_or_else(even)
    }

    /// The same where the last one has fewer: so many as fit, where panels would be narrow, or
    /// where a cluster that has four stages would have more than twice as many parts of as many
    /// columns: of 208 columns 13, because nothing else divides them. Where rows lie one behind the
    /// other, an odd multiple of 8.
    fn uneven_columns(&self, problem: &Problem, machine: &Machine) -> Option<i64> {
        let [rows, columns] = self.tile_of_d(problem);
        let (bytes, along_rows) = (i64::from(problem.result_type().bytes()), self.along_rows(problem));
        let whole = problem.row_groups().is_none() && implicit::of(problem).is_none();
        if bytes != 2 || !whole || self.ping_pong || problem.stored().is_err() || columns % 8 > 0 {
            return None;
        }
        let fourth = if self.cluster > 1 { self.beside_four_stages(machine) } else { 0 };
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
        // Lines along the rows of a tile are in panels; those of the last part divide them.
        let divides = |own: &i64| columns % own == 0 || own % (columns % own) == 0;
        let fewer = match along_rows {
            // Those that write all rows together store a part as a whole, in panels of one width.
            true if !self.writes_apart(problem, false) => return None,
            true => (1..=fourth).rev().map(|eights| eights * 8).find(divides)?,
            false => odd(fourth),
        };
        Some(fewer).filter(|fewer| fourth > 0 && 2 * count(columns, *fewer) < self.even_parts(problem, machine).0)
    }

    /// Bytes of a stage.
    pub(crate) fn stage_bytes(&self) -> i64 {
        (self.rows + self.columns) * LINE_BYTES
    }

    /// Bytes of shared memory through which a tile of D is stored.
    pub(crate) fn staged_bytes(&self, problem: &Problem, machine: &Machine) -> i64 {
        if self.is_shared() || problem.staged().is_none() {
            0
        } else {
            // Vectors that are prefetched have up to 1 KB each.
            let inputs = problem.epilogue().map_or(0, |fused| fused.inputs.len() as i64);
            let ([rows, _], buffers) = (self.tile_of_d(problem), self.parts(problem, machine).1);
            let tile = rows * self.part_columns(problem, machine) * i64::from(problem.result_type().bytes()) * buffers;
            tile * self.tiles_at_once() + inputs * VECTOR_BYTES
        }
    }

    /// How much longer stores of D take than those of whole lines, by the panels of a tile.
    pub(crate) fn panels(&self, problem: &Problem, machine: &Machine) -> f64 {
        match self.panel_bytes(problem, machine) {
            _ if self.is_shared() => 1.0,
            128.. => 1.0,
            64.. => 1.1,
            32.. => 1.3,
            _ => 1.6,
        }
    }

    /// Elements of a row of a panel, through which a tile of D is stored: 128 bytes, or what
    /// divides the tile.
    pub(crate) fn panel(&self, problem: &Problem, machine: &Machine) -> i64 {
        if self.is_plain(problem, machine) { self.part_columns(problem, machine) } else { self.panel_of_tile(problem) }
    }

    /// The same where rows do not lie one behind the other.
    fn panel_of_tile(&self, problem: &Problem) -> i64 {
        let [rows, columns] = self.tile_of_d(problem);
        width(if self.along_rows(problem) { rows } else { columns }, i64::from(problem.result_type().bytes().max(2)))
    }

    /// In how many pieces columns of a tile are stored: parts, or panels that are side by side.
    pub(crate) fn pieces(&self, problem: &Problem, machine: &Machine) -> i64 {
        match self.along_rows(problem) {
            true => self.parts(problem, machine).0.min(FEW_PARTS),
            false => self.tile_of_d(problem)[1] / self.panel(problem, machine).max(1),
        }
    }

    /// Bytes of a row of a panel.
    pub(crate) fn panel_bytes(&self, problem: &Problem, machine: &Machine) -> i64 {
        self.panel(problem, machine) * i64::from(problem.result_type().bytes())
    }

    /// Whether lines of D go along the rows of a tile.
    fn along_rows(&self, problem: &Problem) -> bool {
        self.swapped != (problem.staged() == Some(Contiguous::Rows))
    }
}

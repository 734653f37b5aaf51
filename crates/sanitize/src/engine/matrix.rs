//! Warp-level matrix instructions: products, and the loads and stores of their fragments.

use super::cluster::{Cluster, Stop};
use super::code::{Reference, Row, Source, Target, Touched, Window};
use super::execute::{Executes, Flow};
use super::memory::Words;
use super::warp::{Fragment, State, Warp};
use crate::check::checker::{Access, Kind, NoValues, Space, Values};
use crate::check::finding::Defect;
use crate::isa::matrices;
use crate::isa::mma::LaneWords;

/// Computes result registers from operand registers, or says why the result is undefined.
pub(crate) type MatrixFunction = Box<dyn Fn(&[Row], &mut [Row]) -> Result<(), String> + Send + Sync>;

/// A warp-level matrix instruction.
pub(crate) enum MatrixOp {
    /// A function from registers to registers.
    Compute { to: Box<[Target]>, from: Box<[Source]>, f: MatrixFunction, products: Option<Products> },
    /// `ldmatrix`: loads matrices of 8 by 8 elements of 16 bits.
    Load { from: Reference, to: Box<[Target]>, transposed: bool },
    /// `stmatrix`: stores matrices of 8 by 8 elements of 16 bits.
    Store { to: Reference, from: Box<[Source]>, transposed: bool },
}

/// How the registers of a matrix product correspond to rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Products {
    /// The number of registers of A, which are the first operands, and of B, which follow.
    pub(in crate::engine) a: usize,
    pub(in crate::engine) b: usize,
    /// Whether A has 16 rows, so that every second register belongs to the last 8 rows. If not, it
    /// has 8 rows.
    pub(in crate::engine) is_tall: bool,
    /// Whether a register holds two accumulators.
    pub(in crate::engine) is_packed: bool,
}

impl MatrixOp {
    /// The registers that it reads and writes.
    pub(super) fn touches(&self, own: &mut Touched) {
        match self {
            Self::Compute { to, from, .. } => own.add(to, from),
            Self::Load { from, to, .. } => own.add(to, &[from.base]),
            Self::Store { to, from, .. } => {
                own.add(&[], &[to.base]);
                own.add(&[], from);
            }
        }
    }
}

/// The rows of matrices that are stored, and their addresses.
struct Stored<'a> {
    rows: &'a [[u8; 16]; 32],
    shared: &'a Words,
    addresses: &'a Row,
}

impl Values for Stored<'_> {
    fn written(&self, lane: usize) -> Option<[u8; 32]> {
        let mut all = [0; 32];
        all[..16].copy_from_slice(&self.rows[lane]);
        Some(all)
    }

    fn held(&self, lane: usize) -> [u8; 32] {
        let mut all = [0; 32];
        self.shared.read_into(self.addresses[lane], &mut all[..16]);
        all
    }
}

/// The 32 bits of each lane of a register from a bit on.
pub(in crate::engine) fn cut(row: &Row, shift: u32) -> LaneWords {
    row.map(|value| (value >> shift) as u32)
}

/// A register with these 32 bits for each lane.
pub(super) fn wide(lanes: &LaneWords) -> Row {
    lanes.map(u64::from)
}

impl Cluster<'_> {
    /// Whether all live lanes of the warp are at this instruction. If some are missing, the
    /// fragment waits for them. If the missing ones already wait here, the fragment absorbs them.
    pub(super) fn is_whole(&mut self, warp: &mut Warp, fragment: &mut Fragment, active: u32) -> bool {
        if active == warp.live || fragment.is_forced {
            fragment.is_forced = false;
            return true;
        }
        self.split_active(warp, fragment, active);
        let here = |other: &Fragment| {
            other.state == State::Aligned && other.pc == fragment.pc && other.frame == fragment.frame
        };
        let came = warp.fragments.iter().filter(|other| here(other)).fold(fragment.mask, |all, own| all | own.mask);
        if came != warp.live {
            fragment.state = State::Aligned;
            return false;
        }
        warp.take_along(fragment);
        true
    }

    /// Releases a fragment that waits for lanes of its warp that do not arrive, and reports it.
    /// Returns whether there was one.
    pub(super) fn force_aligned(&mut self, block: usize, warp: &mut Warp) -> bool {
        let Some(place) = warp.fragments.iter().position(|fragment| fragment.state == State::Aligned) else {
            return false;
        };
        let mut fragment = warp.fragments.swap_remove(place);
        warp.take_along(&mut fragment);
        let at = self.statement(warp, &fragment);
        if fragment.mask != warp.live {
            let defect = Defect::Divergence { active: fragment.mask, expected: warp.live };
            self.found(block, warp.number, fragment.mask, at, defect);
        }
        fragment.is_forced = true;
        fragment.state = State::Ready;
        warp.fragments.push(fragment);
        true
    }

    pub(super) fn matrix(&mut self, by: &mut Executes<'_>, op: &MatrixOp) -> Result<Flow, Stop> {
        if !self.is_whole(by.warp, by.fragment, by.active) {
            return Ok(Flow::Parked);
        }
        if self.marks.is_some() {
            self.trace_matrix(by, op);
        }
        let Executes { block, code, at, .. } = *by;
        let active = by.fragment.mask;
        let full = active == by.warp.live;
        match op {
            MatrixOp::Compute { to, from, f, .. } => {
                let frame = &mut by.warp.frames[by.fragment.frame];
                let rows: Vec<Row> = from.iter().map(|source| *frame.row(code, *source)).collect();
                let mut results = vec![[0; 32]; to.len()];
                f(&rows, &mut results).map_err(|why| Stop::Refused(at, why))?;
                for (target, row) in to.iter().zip(&results) {
                    frame.put(*target, row, active, full);
                }
            }
            MatrixOp::Load { from, to, transposed } => {
                let (rank, offsets, good) = self.matrix_rows(by, from, to.len(), false);
                if good != 0 {
                    let access = Access {
                        by: self.lanes(block, by.warp, good),
                        at,
                        space: Space::Shared { rank },
                        kind: Kind::Read,
                        order: from.order,
                        scope: from.scope,
                        bytes: 16,
                        addresses: &offsets,
                        values: &NoValues,
                    };
                    self.check.access(&access);
                    if self.marks.is_some() {
                        self.trace_matrix_load(by, &access, (to, *transposed));
                    }
                }
                let mut rows = [[0; 16]; 32];
                for lane in (0..32).filter(|lane| good >> lane & 1 == 1) {
                    self.blocks[rank as usize].shared.read_into(offsets[lane], &mut rows[lane]);
                }
                let frame = &mut by.warp.frames[by.fragment.frame];
                for (number, target) in to.iter().enumerate() {
                    let matrix = std::array::from_fn(|row| rows[matrices::address_lane(number, row)]);
                    frame.put(*target, &wide(&matrices::load(&matrix, *transposed)), active, full);
                }
            }
            MatrixOp::Store { to, from, transposed } => {
                let mut rows = [[0; 16]; 32];
                for (number, source) in from.iter().enumerate() {
                    let matrix = matrices::store(&cut(by.row(*source), 0), *transposed);
                    for (row, bytes) in matrix.into_iter().enumerate() {
                        rows[matrices::address_lane(number, row)] = bytes;
                    }
                }
                let (rank, offsets, good) = self.matrix_rows(by, to, from.len(), true);
                if good != 0 {
                    let threads = self.lanes(block, by.warp, good);
                    self.check.access(&Access {
                        by: threads,
                        at,
                        space: Space::Shared { rank },
                        kind: Kind::Write,
                        order: to.order,
                        scope: to.scope,
                        bytes: 16,
                        addresses: &offsets,
                        values: &Stored {
                            rows: &rows,
                            shared: &self.blocks[rank as usize].shared,
                            addresses: &offsets,
                        },
                    });
                }
                for lane in (0..32).filter(|lane| good >> lane & 1 == 1) {
                    self.blocks[rank as usize].shared.write_from(offsets[lane], &rows[lane], true);
                }
                self.tell_news();
            }
        }
        Ok(Flow::Next)
    }

    /// The block and the addresses of the rows of matrices.
    pub(super) fn matrix_addresses(&self, by: &Executes<'_>, reference: &Reference) -> (u32, Row) {
        let mut row = self.addresses(by.warp, by.fragment.frame, by.code, reference);
        if reference.window == Window::Generic {
            row.iter_mut().for_each(|address| *address = address.wrapping_sub(super::windows::SHARED));
        }
        (self.blocks[by.block].rank, row)
    }

    /// The block, the addresses of the rows of matrices, and the lanes whose row may be accessed.
    fn matrix_rows(
        &mut self,
        by: &Executes<'_>,
        reference: &Reference,
        matrices: usize,
        writes: bool,
    ) -> (u32, Row, u32) {
        let (rank, row) = self.matrix_addresses(by, reference);
        let lanes = if matrices >= 4 { u32::MAX } else { (1 << (8 * matrices)) - 1 };
        let (side, mask) = (super::access::Side::Shared(rank), lanes & by.fragment.mask);
        let good = self.allowed(by.block, by.warp, by.at, side, mask, &row, 16, writes);
        (rank, row, good)
    }
}

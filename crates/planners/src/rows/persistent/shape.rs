//! The shape of persistent clusters.
//!
//! Law: a shape is the number of blocks of a cluster, of warps of a block, of vectors of a row in
//! each thread, and of resident blocks on a multiprocessor. Together, they hold every vector of the
//! row: registers hold what a thread keeps of its vectors, and shared memory holds the vectors. The
//! chosen shape has the fewest bytes in flight that still hide the latency of the exchange between
//! blocks: more of them make the start and the end take longer.

use tilewright_kernel::machine::Multiprocessor;

use super::super::EXCHANGE_BYTES;
use super::STAGES;
use crate::fitted::{PersistentRows, ROWS};
use crate::units::{LANES, VECTOR, div_up};

/// How clusters hold a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterShape {
    /// Blocks of a cluster.
    pub(crate) blocks: i64,
    /// Warps of a block.
    pub(crate) warps: i64,
    /// Vectors of a row in each thread.
    pub(crate) vectors: i64,
    /// Resident blocks on a multiprocessor: while one waits for the results of its cluster, another
    /// one continues.
    pub(crate) resident: i64,
}

/// The part of a row that its padding may be, at most: a ninth.
const PADDING: i64 = 9;
const FITTED: &PersistentRows = &ROWS.persistent;

impl ClusterShape {
    /// The shape for rows of `count` vectors, where a thread keeps `kept` registers for each
    /// vector, for exponentials or weights; None if no shape holds them. Ties go to the shape with
    /// more warps, which compute while others wait.
    pub(super) fn of(own: &Multiprocessor, count: i64, kept: i64, powers: bool) -> Option<ClusterShape> {
        let [least_warps, most_warps] = FITTED.warps;
        let shapes = FITTED.blocks.into_iter().flat_map(|(blocks, waits)| {
            (least_warps..=most_warps).flat_map(move |warps| {
                (ROWS.register_vectors..=FITTED.thread_vectors).flat_map(move |vectors| {
                    (2..=FITTED.resident_warps / warps)
                        .map(move |resident| (ClusterShape { blocks, warps, vectors, resident }, waits))
                })
            })
        });
        let key = |(shape, waits): &(ClusterShape, i64)| {
            let left = shape.places() - count;
            (shape.at_once() + waits, shape.blocks, left, -shape.warps)
        };
        let held = shapes.filter(|(shape, _)| shape.holds(own, count, kept, powers));
        held.min_by_key(key).map(|(shape, _)| shape)
    }

    /// The vectors of a row that the cluster has room for.
    fn places(&self) -> i64 {
        self.blocks * self.warps * LANES * self.vectors
    }

    /// The vectors of all warps of a multiprocessor.
    fn at_once(&self) -> i64 {
        self.warps * self.resident * self.vectors
    }

    /// Whether there is room for a row, not much more than that, and registers and shared memory
    /// suffice.
    fn holds(&self, own: &Multiprocessor, count: i64, kept: i64, powers: bool) -> bool {
        let ClusterShape { blocks, warps, vectors, resident } = *self;
        let left = self.places() - count;
        // Registers are allocated to four warps at a time, in units of eight.
        let threads = div_up(warps * resident, 4) * 4 * LANES;
        let registers = i64::from(own.registers) / threads / 8 * 8;
        let wanted = kept * vectors + FITTED.other_registers;
        let places = STAGES * warps * LANES * vectors * VECTOR;
        let shared = places + STAGES * blocks * VECTOR + EXCHANGE_BYTES + i64::from(own.reserved_bytes);
        let [few, filled, ragged, powers_of_sixteen] = FITTED.vectors_in_flight;
        let enough = match (blocks, left) {
            (..=4, _) => resident * count >= few * blocks * LANES,
            (_, 0) => self.at_once() >= filled,
            (16, _) if powers => self.at_once() >= powers_of_sixteen,
            _ => self.at_once() >= ragged,
        };
        (0..=count / PADDING).contains(&left)
            && wanted <= registers
            && resident * shared <= i64::from(own.shared_bytes)
            && enough
    }
}

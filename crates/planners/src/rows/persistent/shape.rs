//! The shape of persistent clusters.
//!
//! Law: a shape is the number of blocks of a cluster, of warps of a block, of vectors of a row in
//! each thread, and of resident blocks on a multiprocessor. A cluster holds every vector of the
//! row: in shared memory the vectors, and in registers what each thread keeps for its vectors. The
//! chosen shape has the fewest bytes in flight that still hide the latency of the exchange between
//! blocks: more bytes make the start and the end take longer.

use tilewright_kernel::machine::Machine;

use super::super::EXCHANGE_BYTES;
use super::STAGES;
use crate::fitted::ROWS;
use crate::law::{DATA_REGISTERS, REGISTER_VECTORS, SCHEDULERS, warp_vectors_in_flight};
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

/// The padding of a row is at most a ninth of it.
const PADDING: i64 = 9;
/// The sizes of a cluster that are tried, in blocks.
const BLOCKS: [i64; 4] = [2, 4, 8, 16];
/// The range of the number of vectors of a thread: from those that fit in registers to less than
/// three times as many.
const VECTORS: [i64; 2] = [REGISTER_VECTORS, 3 * REGISTER_VECTORS - 1];

impl ClusterShape {
    /// The shape for rows of `count` vectors, where a thread keeps `kept` registers for each
    /// vector, for exponentials or weights; None if no shape holds them. Ties go to the shape with
    /// more warps, which compute while others wait.
    pub(super) fn of(machine: &Machine, count: i64, kept: i64, powers: bool) -> Option<ClusterShape> {
        let most = i64::from(machine.multiprocessor.threads) / LANES;
        let shapes = BLOCKS.into_iter().flat_map(|blocks| {
            (SCHEDULERS..=2 * SCHEDULERS).flat_map(move |warps| {
                (VECTORS[0]..=VECTORS[1]).flat_map(move |vectors| {
                    (2..=most / warps).map(move |resident| ClusterShape { blocks, warps, vectors, resident })
                })
            })
        });
        let unit = warp_vectors_in_flight(machine);
        let key = |shape: &ClusterShape| {
            let waits = ROWS.cluster_waits[(shape.blocks.ilog2() - 1) as usize] * unit;
            let left = shape.places() - count;
            // The cost is rounded to thousandths, so that keys are integers, which have a total
            // order.
            ((1e3 * (shape.at_once() as f64 + waits)) as i64, shape.blocks, left, -shape.warps)
        };
        shapes.filter(|shape| shape.holds(machine, unit, (count, kept), powers)).min_by_key(key)
    }

    /// The vectors for which the cluster has room.
    fn places(&self) -> i64 {
        self.blocks * self.warps * LANES * self.vectors
    }

    /// The vectors of all warps of a multiprocessor.
    fn at_once(&self) -> i64 {
        self.warps * self.resident * self.vectors
    }

    /// Whether a shape has room for a row without too much padding, and registers and shared memory
    /// suffice.
    fn holds(&self, machine: &Machine, unit: f64, (count, kept): (i64, i64), powers: bool) -> bool {
        let own = &machine.multiprocessor;
        let ClusterShape { blocks, warps, vectors, resident } = *self;
        let left = self.places() - count;
        // Registers are allocated to four warps at a time, in units of eight.
        let threads = div_up(warps * resident, 4) * 4 * LANES;
        let registers = i64::from(own.registers) / threads / 8 * 8;
        let wanted = kept * vectors + 4 * DATA_REGISTERS;
        let places = STAGES * warps * LANES * vectors * VECTOR;
        let shared = places + STAGES * blocks * VECTOR + EXCHANGE_BYTES + i64::from(own.reserved_bytes);
        let [few, more, powers_of_sixteen] = ROWS.in_flight;
        let latencies = match (blocks, left) {
            (..=4, _) => few,
            (16, 1..) if powers => powers_of_sixteen,
            _ => more,
        };
        let enough = resident as f64 * count as f64 >= latencies * unit * (blocks * LANES) as f64;
        (0..=count / PADDING).contains(&left)
            && wanted <= registers
            && resident * shared <= i64::from(own.shared_bytes)
            && enough
    }
}

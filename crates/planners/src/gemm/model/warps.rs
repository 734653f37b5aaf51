//! How long a plan of warps takes, from the data of the machine.
//!
//! Law: a k-tile takes as long as its slowest resource: the MMA units, shared memory, the L2 cache,
//! or the latency of a load divided by the stages in flight. A tile takes its k-tiles, and the time
//! of its first load and of its epilogue, which resident blocks hide from each other. The launch
//! takes as many tiles as the busiest multiprocessor has, and as long as device memory takes for
//! the tensors.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;

use super::smooth_max;
use crate::gemm::fitted::BARE;
use crate::gemm::plan::Plan;
use crate::gemm::problem::weights::WORDS_OF_GROUP;
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::law::{SCHEDULERS, latency};
use crate::units::{LANES, SECTOR, VECTOR, count};

/// Bytes that a multiprocessor receives from the L2 cache in a cycle while all others do too.
/// NVIDIA states 5120 bytes in a cycle for all 108 of an A100, which is 47 for each.
const L2_BYTES_PER_CYCLE: f64 = 40.0;
/// Cycles of barriers, address computations and other instructions that no MMA hides, in latencies
/// of a load: for a tile, and for a k-tile.
const OVERHEAD: [f64; 2] = [0.8, 0.06];

/// The instructions that ptxas emits around two 8-bit MMA for one 4-bit MMA, from 9.0 on: counted
/// in the machine code for sm_90a, sm_100 and sm_120 of ptxas 12.9. Each scheduler of a
/// multiprocessor issues one in a cycle.
const INSTRUCTIONS_OF_NIBBLES: f64 = 128.0;

/// The instructions of a warp for a word of weights of four bits: four masks, four subtractions or
/// fused multiply-adds, up to three shifts, and a share of the loads and scales that counts as one.
/// And the cycles in which a warp that is alone on its scheduler issues one: 32 k-tiles of 48 words
/// took two such warps of an H200 33 us.
const UNPACKING: [f64; 2] = [12.0, 3.0];

/// The MMA operations of a multiprocessor in a cycle for operands of a type.
fn rate(problem: &Problem, machine: &Machine) -> f64 {
    let rates = &machine.rates;
    if problem.has_nibbles() && machine.capability >= (9, 0) {
        return f64::from(2 * 16 * 8 * 64) * SCHEDULERS as f64 / INSTRUCTIONS_OF_NIBBLES;
    }
    let all = match problem.operand_type() {
        // Cards before 9.0 multiply four bits twice as fast as eight.
        _ if problem.has_nibbles() => 2.0 * rates.matrix_i8,
        Element::U8 if problem.blocks().is_some() => rates.matrix_f4,
        Element::F32 => rates.matrix_tf32,
        Element::F64 => rates.matrix_f64,
        Element::I8 | Element::U8 => rates.matrix_i8,
        Element::E4M3 | Element::E5M2 => rates.matrix_f8,
        _ => rates.matrix_16,
    };
    (all / (f64::from(machine.multiprocessors) * machine.clock)).max(1.0)
}

/// Seconds of problems in one launch, each with the plan of its own raster band.
pub(super) fn seconds(plan: &Plan, problems: &[(&Problem, &Plan)], machine: &Machine) -> f64 {
    let Some([along, across]) = plan.warps else { return f64::INFINITY };
    let processors = f64::from(machine.multiprocessors);
    let fitted = &BARE;
    // The cycles of a load, and the overhead that no MMA hides.
    let load = latency(machine) * machine.clock;
    let [of_tile, of_k_tile] = OVERHEAD.map(|loads| loads * load);
    // With a producer, there is no barrier of the block between two k-tiles.
    let of_k_tile = if plan.producer { 0.0 } else { of_k_tile };
    // The blocks of the busiest multiprocessor.
    let resident = (plan.blocks as f64 / processors).ceil().clamp(1.0, plan.blocks_per_sm as f64);
    let (mut cycles, mut bytes, mut second) = (if plan.producer { load } else { 0.0 }, 0.0, 0.0);
    for (problem, own) in problems {
        let (rows, columns) = (plan.rows as f64, plan.columns as f64);
        let [of_row, of_column] = plan.line_bytes(problem).map(|bytes| bytes as f64);
        let line = LINE_BYTES as f64;
        let packed = problem.blocks().map_or(1, |blocks| blocks.format.packed());
        let each = if problem.has_nibbles() { 4.0 } else { 2.0 * f64::from(packed) };
        let operations = each * rows * columns * problem.k_tile() as f64;
        let multiplied = crowding(plan, resident as i64) * operations / (rate(problem, machine) * fitted.loaded_clock);
        // Each warp reads its rows and its columns, and each k-tile is written once.
        let read = rows * across as f64 * of_row + columns * along as f64 * of_column;
        let stage = rows * of_row + columns * of_column;
        let shared = (read + stage) / line;
        // A warp issues its copies one after another, and computes the addresses of two lanes in a
        // cycle. This is an estimate, chosen so that two warps are faster than one, as they are on
        // an H200 for 1 x 14336 x 4096.
        let issued = stage / (2 * VECTOR * along * across) as f64 / resident;
        let loaded = (stage / L2_BYTES_PER_CYCLE).max(issued);
        let promoted = if problem.is_promoted() {
            // Each accumulator is added once, by one of 128 lanes, and each scale is loaded.
            rows * columns / 64.0 + own.scale_loads(problem) as f64 * (along * across) as f64 * 8.0
        } else {
            0.0
        };
        // Each warp unpacks the words of its lines.
        let unpacked = match problem.int4_scales() {
            None => 0.0,
            Some(_) => {
                let [lines, repeated] = if own.swapped { [rows, across as f64] } else { [columns, along as f64] };
                let words = lines * WORDS_OF_GROUP as f64 * repeated / LANES as f64;
                let [instructions, alone] = UNPACKING;
                words * instructions / ((along * across) as f64 * resident / alone).min(SCHEDULERS as f64)
            }
        };
        let busy = smooth_max(smooth_max(multiplied, shared, fitted.overlap), loaded, fitted.overlap);
        let busy = smooth_max(busy, unpacked, fitted.overlap) + promoted;
        let latency = load / (plan.stages - 1).max(1) as f64;
        let k_tile = smooth_max((busy + of_k_tile) * resident, latency, fitted.overlap);
        let steps = count(own.extents(problem)[2], problem.k_tile());
        let d = own.tile_of_d(problem);
        let written = |bytes: f64| (d[0] * d[1]) as f64 * bytes / SECTOR as f64;
        let stored = |split: i64| match split {
            1 => written(f64::from(problem.result_type().bytes())),
            _ => written(f64::from(problem.accumulator_type().bytes()) * own.halves(problem) as f64),
        };
        // Resident blocks multiply while one of them begins or ends a tile. A producer loads the
        // first k-tiles of a tile during the epilogue of the one before.
        let begins = if plan.producer { 0.0 } else { load };
        let alone = |split: i64| (begins + of_tile) / resident + stored(split) * resident;
        let tile = |split: i64| (steps as f64 / split as f64).ceil() * k_tile + alone(split);
        let (first, last) = if own.tail > 0 { (1, own.split_k) } else { (own.split_k, 1) };
        // The waves of this problem; a fraction counts if other problems follow.
        let waves = own.units(problem) as f64 / plan.blocks.max(1) as f64;
        let waves = if problems.len() == 1 { waves.ceil() } else { waves };
        cycles += waves * tile(first);
        if own.tail > 0 {
            cycles += count(own.tail * last, plan.blocks) as f64 * tile(last);
        }
        bytes += problem.bytes() as f64;
        let shares = own.workspace(problem) as f64;
        if shares > 0.0 {
            // Partial accumulators are written and read, most of them in the L2 cache.
            second += fitted.launch + shares / (2.0 * machine.bandwidth);
            bytes += 0.5 * shares;
        }
        // Operands that leave the L2 cache between raster bands are read again.
        bytes += reread(own, problem, machine);
    }
    let memory = bytes / (machine.bandwidth * fitted.bandwidth);
    fitted.launch + smooth_max(cycles / machine.clock, memory, fitted.overlap) + second
}

/// How much longer MMA takes than with the same number of warps in each quarter of a
/// multiprocessor: the warps of resident blocks lie in the quarters in turn, producers among them.
/// One block of two warps leaves two quarters idle: 64 x 14336 x 4096 took 38.3 us on an H200 with
/// 1 x 2 warps, and 33.4 with 2 x 2. Two blocks of two warps and a producer reached 272 TFLOP/s,
/// and 386 without the producer.
fn crowding(plan: &Plan, resident: i64) -> f64 {
    let Some([along, across]) = plan.warps else { return 1.0 };
    let (own, mut quarters) = (along * across, [0_i64; SCHEDULERS as usize]);
    for block in 0..resident {
        for warp in 0..own {
            quarters[((block * (own + i64::from(plan.producer)) + warp) % SCHEDULERS) as usize] += 1;
        }
    }
    let even = (own * resident) as f64 / SCHEDULERS as f64;
    quarters.into_iter().max().map_or(1.0, |most| most as f64 / even)
}

/// Bytes that are read again from device memory: blocks that run at the same time read each of
/// their operands once, and the next wave finds none of them in the L2 cache if a wave reads more
/// than it holds.
fn reread(plan: &Plan, problem: &Problem, machine: &Machine) -> f64 {
    let [m, n, k] = plan.extents(problem);
    let element = f64::from(problem.operand_type().bytes());
    let operands = (m + n) as f64 * k as f64 * element;
    if operands <= machine.l2_bytes as f64 {
        return 0.0;
    }
    let band = (plan.raster_band * plan.rows) as f64;
    let wide = (plan.blocks as f64 / plan.raster_band as f64).max(1.0) * plan.columns as f64;
    // A wave covers `band` rows and `wide` columns.
    let waves = (m as f64 * n as f64 / (band * wide.min(n as f64))).max(1.0);
    let each = (band + wide.min(n as f64)) * k as f64 * element;
    (waves * each - operands).max(0.0) * problem.batch() as f64
}

//! Constants of memory-bound kernels that follow from the data of the machine.
//!
//! Law: nothing here was timed. A multiprocessor has as many registers, threads and schedulers as
//! its [`Machine`] says. Memory is saturated while the bytes in flight are those that it moves
//! during the latency of a load.

use tilewright_kernel::machine::{Machine, Multiprocessor};
use tilewright_kernel::ptx::Target;

use crate::units::{BLOCK_THREADS, LANES, VECTOR};

/// The vectors of 16 bytes that a thread holds in registers: half of its 32 registers, if 2048
/// threads share the 64 Ki registers of a multiprocessor. The other half is for addresses and
/// results.
pub(crate) const REGISTER_VECTORS: i64 = 4;
/// The same, as a number of 32-bit registers.
pub(crate) const DATA_REGISTERS: i64 = REGISTER_VECTORS * VECTOR / 4;
/// The warps of a block that occupies each scheduler of a multiprocessor.
pub(crate) const SCHEDULERS: i64 = Multiprocessor::SCHEDULERS as i64;
/// The threads of such a block.
pub(crate) const FEW_THREADS: i64 = SCHEDULERS * LANES;
/// The most threads of a block if several blocks are to be resident on a multiprocessor.
pub(crate) const SEVERAL_THREADS: i64 = BLOCK_THREADS / 2;

/// The bytes that one block reads at once, one vector for each thread. One block alone reads rows
/// of up to this size; and one block combines partial results of a reduction of up to this size.
pub(crate) const BLOCK_BYTES: i64 = VECTOR * BLOCK_THREADS;

/// This many percent of the L2 cache, in bytes.
pub(crate) fn l2_share(machine: &Machine, percent: i64) -> i64 {
    (i128::from(machine.l2_bytes) * i128::from(percent) / 100).clamp(1, i64::MAX.into()) as i64
}

/// This many percent of the shared memory of a multiprocessor, in bytes.
pub(crate) fn shared_share(machine: &Machine, percent: i64) -> i64 {
    i64::from(machine.multiprocessor.shared_bytes) * percent / 100
}

/// The latency of a load from device memory, in seconds; for a machine without a measured value,
/// that of the card that was measured.
pub(crate) fn latency(machine: &Machine) -> f64 {
    machine.latency.or(Machine::of_target(Target::Sm90a).latency).unwrap_or_default()
}

/// The vectors of a warp that a multiprocessor must have in flight to keep device memory busy, by
/// Little's law.
pub(crate) fn warp_vectors_in_flight(machine: &Machine) -> f64 {
    machine.bandwidth * latency(machine) / f64::from(machine.multiprocessors.max(1)) / (LANES * VECTOR) as f64
}

/// The number of multiprocessors that clusters can fill: a graphics processing cluster has about
/// sixteen, and one of them remains idle.
pub(crate) fn clustered(machine: &Machine) -> i64 {
    let all = i64::from(machine.multiprocessors);
    all - all / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_each_card() {
        let h200 = Machine::named("H200").unwrap();
        assert_eq!((l2_share(&h200, 64), clustered(&h200)), (32 << 20, 124));
        // 12,873 bytes, in vectors of 512.
        assert!((warp_vectors_in_flight(&h200) - 25.14).abs() < 0.01);
        for machine in Machine::all() {
            assert!(l2_share(&machine, 100) == machine.l2_bytes as i64 && l2_share(&machine, 0) == 1);
            assert!(clustered(&machine) * 16 >= i64::from(machine.multiprocessors) * 15);
            assert!(latency(&machine) > 1e-7 && warp_vectors_in_flight(&machine) > 1.0, "{}", machine.name);
            // Two blocks of SEVERAL_THREADS threads, with data in half of their registers, are
            // resident.
            let own = machine.multiprocessor;
            assert!(i64::from(own.threads) >= 2 * SEVERAL_THREADS && i64::from(own.registers) >= 4096 * DATA_REGISTERS);
        }
    }
}

//! Schedules: the order of events that a kernel leaves unspecified.
//!
//! Law: a schedule picks the warp that proceeds among those that can, and decides when asynchronous
//! work completes. Each is an order that the hardware may choose. Races are found from the ordering
//! of accesses, so under every schedule. Schedules differ in the values that a defective kernel
//! computes, and in where it deadlocks.

use std::fmt;

/// The order of warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Round-robin, some instructions each.
    InTurn,
    /// The last warp that can proceed, as far as it can.
    Backward,
    /// At random, with this seed.
    Random(u64),
}

impl Order {
    /// The cluster, of `count`, that runs after `iteration` others.
    pub(super) fn nth_of(self, count: u64, iteration: u64) -> u64 {
        match self {
            Order::InTurn => iteration,
            Order::Backward => count - 1 - iteration,
            Order::Random(seed) => {
                // Steps of a length that is coprime to the count visit each cluster once.
                let mut random = Random::new(seed);
                let first = random.below(count);
                let step = (random.below(count)..).find(|step| divisor(*step, count) == 1).unwrap_or(1);
                let number = u128::from(first) + u128::from(iteration) * u128::from(step);
                (number % u128::from(count.max(1))) as u64
            }
        }
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// When asynchronous work completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Completion {
    /// At its issue.
    Early,
    /// When a warp waits for it, and no other warp can proceed.
    Late,
}

/// An order in which a kernel may be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The order of warps and of blocks.
    pub order: Order,
    /// When asynchronous work completes.
    pub completion: Completion,
}

impl Schedule {
    /// The schedules of a check.
    pub const ALL: [Schedule; 4] = [
        Schedule { order: Order::InTurn, completion: Completion::Late },
        Schedule { order: Order::Backward, completion: Completion::Early },
        Schedule { order: Order::Random(1), completion: Completion::Late },
        Schedule { order: Order::Random(2), completion: Completion::Early },
    ];
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.order {
            Order::InTurn => f.write_str("warps in turn")?,
            Order::Backward => f.write_str("last warp first")?,
            Order::Random(seed) => write!(f, "warps at random, seed {seed}")?,
        }
        f.write_str(match self.completion {
            Completion::Early => ", asynchronous work at once",
            Completion::Late => ", asynchronous work late",
        })
    }
}

/// A random number generator (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a positive one.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn each_cluster_runs_once() {
        for order in [Order::InTurn, Order::Backward, Order::Random(1), Order::Random(2)] {
            for count in (1..40).chain([360, 2048]) {
                let mut found: Vec<u64> = (0..count).map(|iteration| order.nth_of(count, iteration)).collect();
                found.sort_unstable();
                assert_eq!(found, (0..count).collect::<Vec<_>>());
            }
        }
    }
}

//! The order in which warps and blocks get their turns.

/// A schedule. A device may execute in any order that the memory model allows. These schedules
/// exercise different orders.
///
/// ```
/// use tilewright_sanitize::engine::Schedule;
///
/// assert_eq!(Schedule::several(3, 7).len(), 3);
/// assert_eq!(Schedule::several(1, 7), [Schedule::Turns]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// Round-robin over warps, with blocks in ascending order.
    Turns,
    /// The last warps and blocks first, each as far as it can run.
    LastAhead,
    /// The first warps first, each as far as it can run.
    FirstAhead,
    /// Turns of random lengths, in random order.
    Random(u64),
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Turns => out.write_str("warps in turn"),
            Self::LastAhead => out.write_str("the last warps ahead"),
            Self::FirstAhead => out.write_str("the first warps ahead"),
            Self::Random(seed) => write!(out, "random with seed {seed}"),
        }
    }
}

impl Schedule {
    /// This many different schedules: round-robin, the first and the last ahead, then random ones.
    pub fn several(count: u32, seed: u64) -> Vec<Self> {
        (0..count)
            .map(|at| match at {
                0 => Self::Turns,
                1 => Self::LastAhead,
                2 => Self::FirstAhead,
                at => Self::Random(seed.wrapping_add(u64::from(at))),
            })
            .collect()
    }

    pub(super) fn random(self, number: u64) -> Random {
        match self {
            Self::Random(seed) => Random(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            _ => Random(1),
        }
    }

    pub(super) fn arrange<T>(self, order: &mut [T], random: &mut Random) {
        match self {
            Self::Turns | Self::FirstAhead => {}
            Self::LastAhead => order.reverse(),
            Self::Random(_) => {
                for at in (1..order.len()).rev() {
                    order.swap(at, (random.next() % (at as u64 + 1)) as usize);
                }
            }
        }
    }

    /// The number of instructions of a turn.
    pub(super) fn turn(self, usual: u64, random: &mut Random) -> u64 {
        match self {
            Self::Turns => usual,
            Self::LastAhead | Self::FirstAhead => usual * 64,
            Self::Random(_) => 1 << (random.next() % 10),
        }
    }

    /// The number of the cluster at a position in the starting order.
    pub(super) fn cluster(self, place: u64, clusters: u64) -> u64 {
        match self {
            Self::LastAhead => clusters - 1 - place,
            _ => place,
        }
    }

    /// The number of clusters that a core runs concurrently.
    pub(super) fn resident(self) -> usize {
        match self {
            Self::Random(_) => 4,
            _ => 1,
        }
    }

    /// Whether only the first warp that can continue gets turns.
    pub(super) fn stays(self) -> bool {
        matches!(self, Self::LastAhead | Self::FirstAhead)
    }
}

/// A random number generator (multiplication and shifts) with the same numbers on all machines.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }
}

//! Barriers in shared memory: `mbarrier`.
//!
//! Law: a barrier counts the arrivals of its phase that are missing, and bytes of transactions.
//! When none of both is left, the phase is over: the next has as many arrivals as the barrier
//! expects, less those that were dropped. A phase begins with no bytes; they may be completed
//! before they are expected. Phases count from 0, and a wait for a parity holds where the last
//! phase that is over has it; before the first, that is parity 1.
//!
//! (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".)

/// The greatest number of arrivals, and of bytes either way.
pub const MAX_COUNT: u32 = (1 << 20) - 1;

/// A barrier.
///
/// ```
/// use tilewright_sanitize::isa::mbarrier::BarrierWord;
///
/// let mut barrier = BarrierWord::new(2).unwrap();
/// barrier.expect(64).unwrap();
/// assert!(!barrier.arrive(2).unwrap()); // the bytes are missing
/// assert!(barrier.complete(64).unwrap());
/// assert!(barrier.is_over_parity(false));
/// assert_eq!((barrier.phase(), barrier.pending(), barrier.bytes()), (1, 2, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BarrierWord {
    phase: u64,
    expected: u32,
    pending: u32,
    bytes: i64,
}

/// What is wrong with an operation on a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MbarrierFlaw {
    /// More arrivals than are missing.
    Arrivals {
        /// How many are missing.
        pending: u32,
        /// How many came.
        came: u32,
    },
    /// More bytes than a barrier counts, expected or completed.
    Bytes(i64),
}

impl BarrierWord {
    /// `mbarrier.init`. None of a count of 0 or above [`MAX_COUNT`].
    pub fn new(count: u32) -> Option<BarrierWord> {
        (1..=MAX_COUNT).contains(&count).then_some(BarrierWord { phase: 0, expected: count, pending: count, bytes: 0 })
    }

    /// The number of the phase that is not over.
    pub fn phase(&self) -> u64 {
        self.phase
    }

    /// Arrivals that are missing.
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// Arrivals of the next phase.
    pub fn expected(&self) -> u32 {
        self.expected
    }

    /// Bytes that are missing; negative where they came before they were expected.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// What an arrival returns: the phase, and the arrivals that are missing before it.
    pub fn token(&self) -> u64 {
        self.phase << 20 | u64::from(self.pending)
    }

    /// `mbarrier.pending_count` of what an arrival returned.
    pub fn pending_of(token: u64) -> u32 {
        token as u32 & MAX_COUNT
    }

    /// Arrivals; whether the phase is over by them.
    ///
    /// # Errors
    ///
    /// More than are missing: nothing is changed.
    pub fn arrive(&mut self, count: u32) -> Result<bool, MbarrierFlaw> {
        let Some(left) = self.pending.checked_sub(count) else {
            return Err(MbarrierFlaw::Arrivals { pending: self.pending, came: count });
        };
        self.pending = left;
        Ok(self.settle())
    }

    /// `mbarrier.arrive_drop`: arrivals that also are expected no more in later phases.
    ///
    /// # Errors
    ///
    /// As [`BarrierWord::arrive`].
    pub fn arrive_drop(&mut self, count: u32) -> Result<bool, MbarrierFlaw> {
        if count > self.pending || count > self.expected {
            return Err(MbarrierFlaw::Arrivals { pending: self.pending, came: count });
        }
        self.expected -= count;
        self.arrive(count)
    }

    /// One arrival more is missing in this phase: `cp.async.mbarrier.arrive` without `.noinc`.
    ///
    /// # Errors
    ///
    /// More than a barrier counts.
    pub fn add_pending(&mut self) -> Result<(), MbarrierFlaw> {
        if self.pending >= MAX_COUNT {
            return Err(MbarrierFlaw::Arrivals { pending: self.pending, came: 1 });
        }
        self.pending += 1;
        Ok(())
    }

    /// `mbarrier.expect_tx`.
    ///
    /// # Errors
    ///
    /// More bytes than a barrier counts.
    pub fn expect(&mut self, bytes: u32) -> Result<(), MbarrierFlaw> {
        self.bytes = within(self.bytes + i64::from(bytes))?;
        Ok(())
    }

    /// `mbarrier.complete_tx`; whether the phase is over by it.
    ///
    /// # Errors
    ///
    /// More bytes than a barrier counts.
    pub fn complete(&mut self, bytes: u32) -> Result<bool, MbarrierFlaw> {
        self.bytes = within(self.bytes - i64::from(bytes))?;
        Ok(self.settle())
    }

    /// Whether the phase of what an arrival returned is over.
    pub fn is_over(&self, token: u64) -> bool {
        // As many bits as a token holds.
        self.phase << 20 >> 20 != token >> 20
    }

    /// Whether the phase of a parity is over: the last one, which is the one before the first at
    /// first.
    pub fn is_over_parity(&self, odd: bool) -> bool {
        self.phase & 1 != u64::from(odd)
    }

    fn settle(&mut self) -> bool {
        let over = self.pending == 0 && self.bytes == 0;
        if over {
            self.phase += 1;
            self.pending = self.expected;
        }
        over
    }
}

fn within(bytes: i64) -> Result<i64, MbarrierFlaw> {
    if bytes.unsigned_abs() <= u64::from(MAX_COUNT) { Ok(bytes) } else { Err(MbarrierFlaw::Bytes(bytes)) }
}

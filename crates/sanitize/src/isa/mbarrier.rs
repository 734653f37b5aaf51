//! The state of an mbarrier.
//!
//! Law: an mbarrier counts the pending arrivals of its current phase and the pending transaction
//! bytes (tx-count). When both are 0, the phase completes. The next phase has the expected arrival
//! count, less the arrivals that were dropped. A phase begins with a tx-count of 0; bytes may be
//! completed before they are expected. Phases count from 0. A wait for a parity succeeds if the
//! last completed phase has this parity; before the first, that is parity 1.
//!
//! (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".)

/// The greatest arrival count, and the greatest magnitude of the tx-count.
pub const MAX_COUNT: u32 = (1 << 20) - 1;

/// The state of an mbarrier.
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

/// An invalid operation on an mbarrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MbarrierFlaw {
    /// More arrivals than are pending.
    Arrivals {
        /// The number of pending arrivals.
        pending: u32,
        /// The number of new arrivals.
        came: u32,
    },
    /// A tx-count beyond [`MAX_COUNT`].
    Bytes(i64),
}

impl BarrierWord {
    /// `mbarrier.init`. None if the count is 0 or above [`MAX_COUNT`].
    pub fn new(count: u32) -> Option<BarrierWord> {
        (1..=MAX_COUNT).contains(&count).then_some(BarrierWord { phase: 0, expected: count, pending: count, bytes: 0 })
    }

    /// The number of the current phase.
    pub fn phase(&self) -> u64 {
        self.phase
    }

    /// The pending arrivals of the current phase.
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// The expected arrivals of the next phase.
    pub fn expected(&self) -> u32 {
        self.expected
    }

    /// The pending transaction bytes; negative if more bytes arrived than were expected so far.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// The state token that an arrival returns: the phase, and the pending arrivals before this
    /// one.
    pub fn token(&self) -> u64 {
        self.phase << 20 | u64::from(self.pending)
    }

    /// `mbarrier.pending_count` of a state token.
    pub fn pending_of(token: u64) -> u32 {
        token as u32 & MAX_COUNT
    }

    /// `mbarrier.arrive`: arrivals. Returns whether they complete the phase.
    ///
    /// # Errors
    ///
    /// More arrivals than are pending; nothing is changed then.
    pub fn arrive(&mut self, count: u32) -> Result<bool, MbarrierFlaw> {
        let Some(left) = self.pending.checked_sub(count) else {
            return Err(MbarrierFlaw::Arrivals { pending: self.pending, came: count });
        };
        self.pending = left;
        Ok(self.settle())
    }

    /// `mbarrier.arrive_drop`: arrivals that are no longer expected in later phases.
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

    /// Increments the pending arrivals of this phase: `cp.async.mbarrier.arrive` without `.noinc`.
    ///
    /// # Errors
    ///
    /// A count above [`MAX_COUNT`].
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
    /// A tx-count above [`MAX_COUNT`].
    pub fn expect(&mut self, bytes: u32) -> Result<(), MbarrierFlaw> {
        self.bytes = within(self.bytes + i64::from(bytes))?;
        Ok(())
    }

    /// `mbarrier.complete_tx`. Returns whether it completes the phase.
    ///
    /// # Errors
    ///
    /// A tx-count below -[`MAX_COUNT`].
    pub fn complete(&mut self, bytes: u32) -> Result<bool, MbarrierFlaw> {
        self.bytes = within(self.bytes - i64::from(bytes))?;
        Ok(self.settle())
    }

    /// Whether the phase of a state token has completed.
    pub fn is_over(&self, token: u64) -> bool {
        // Compares as many bits as a token holds.
        self.phase << 20 >> 20 != token >> 20
    }

    /// Whether the last completed phase has a parity. Before the first phase completes, that is
    /// parity 1.
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

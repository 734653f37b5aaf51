//! Counts of a run: executed instructions, and the cost of accesses.
//!
//! Law: an access of a warp to shared memory is served in phases of 32 lanes of up to 4 bytes, 16
//! of 8 or 8 of 16. A phase takes as many wavefronts as 4-byte words are accessed in the bank with
//! the most of them. An access to global memory takes the sectors of 32 bytes and the lines of 128
//! bytes that its lanes touch.

use crate::interpret::lanes::lanes;
use crate::program::Source;
use crate::program::operation::Operation;

/// Classes of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Arithmetic, comparisons, selection, conversions, and moves of bits.
    Arithmetic,
    /// Shuffles and ballots.
    Shuffle,
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Atomic operations, and reductions in memory.
    Atomic,
    /// `ldmatrix` and `stmatrix`.
    MatrixMove,
    /// Matrix products.
    Matrix,
    /// `cp.async`, with its groups.
    AsyncCopy,
    /// Bulk copies, with their groups.
    Bulk,
    /// Barriers and fences.
    Barrier,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 10] = [
        Class::Arithmetic,
        Class::Shuffle,
        Class::Load,
        Class::Store,
        Class::Atomic,
        Class::MatrixMove,
        Class::Matrix,
        Class::AsyncCopy,
        Class::Bulk,
        Class::Barrier,
    ];

    /// The name: `load`, `matrix`, ...
    pub fn name(self) -> &'static str {
        match self {
            Class::Arithmetic => "arithmetic",
            Class::Shuffle => "shuffle",
            Class::Load => "load",
            Class::Store => "store",
            Class::Atomic => "atomic",
            Class::MatrixMove => "matrix move",
            Class::Matrix => "matrix",
            Class::AsyncCopy => "async copy",
            Class::Bulk => "bulk copy",
            Class::Barrier => "barrier",
        }
    }

    /// The class of an operation.
    pub fn of(operation: &Operation) -> Class {
        match operation {
            Operation::Shuffle(_) | Operation::Ballot | Operation::Elect => Class::Shuffle,
            Operation::Load(_) | Operation::RemoteLoad(_) => Class::Load,
            Operation::Store(_) | Operation::RemoteStore(_) => Class::Store,
            Operation::Atomic(..)
            | Operation::Reduce(..)
            | Operation::RemoteReduce(..)
            | Operation::Claim
            | Operation::CountBlock
            | Operation::AwaitTurn { .. }
            | Operation::PassTurn { .. } => Class::Atomic,
            Operation::LoadMatrix { .. } | Operation::StoreMatrix { .. } => Class::MatrixMove,
            Operation::Multiply(_) | Operation::Wgmma { .. } => Class::Matrix,
            Operation::CopyAsync { .. } | Operation::CommitAsync | Operation::WaitAsync(_) => Class::AsyncCopy,
            Operation::BulkLoad { .. }
            | Operation::BulkSend { .. }
            | Operation::BulkStore { .. }
            | Operation::CommitBulk
            | Operation::WaitBulk { .. } => Class::Bulk,
            Operation::Barrier
            | Operation::NamedBarrier { .. }
            | Operation::WarpBarrier
            | Operation::NamedArrive { .. }
            | Operation::SetRegisters { .. }
            | Operation::WaitLaunches
            | Operation::LaunchNext
            | Operation::ClusterArrive
            | Operation::ClusterWait
            | Operation::RemoteArrive { .. }
            | Operation::Fence(_)
            | Operation::FenceRegisters
            | Operation::CommitMultiply
            | Operation::WaitMultiply(_)
            | Operation::BarrierInit { .. }
            | Operation::BarrierArrive { .. }
            | Operation::BarrierWait { .. }
            | Operation::Trap => Class::Barrier,
            _ => Class::Arithmetic,
        }
    }
}

/// The accesses of one instruction to one memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessCount {
    /// The statement.
    pub source: Source,
    /// The kind of the instruction.
    pub class: Class,
    /// The buffer.
    pub buffer: String,
    /// The number of executions by a warp in which a lane took part.
    pub requests: u64,
    /// The bytes that lanes accessed, summed over lanes.
    pub bytes: u64,
    /// Wavefronts of shared memory; 0 for global memory.
    pub wavefronts: u64,
    /// Wavefronts without bank conflicts: the words of a phase divided by 32, rounded up, summed
    /// over all phases.
    pub least_wavefronts: u64,
    /// Sectors of 32 bytes of global memory; 0 for shared memory.
    pub sectors: u64,
    /// Lines of 128 bytes of global memory.
    pub lines: u64,
    /// Whether these are upper bounds, because an address or a predicate was unknown. Never for a
    /// run.
    pub at_most: bool,
}

impl AccessCount {
    /// The accesses as a table, with one row for each below a header.
    ///
    /// ```
    /// use tilewright_kernel::cost::Machine;
    /// use tilewright_kernel::interpret::AccessCount;
    /// use tilewright_kernel::Kernel;
    ///
    /// let copy = Kernel::build("copy", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(256,4):(4,1)")?, k.output::<f32>("y", "(256,4):(4,1)")?);
    ///     k.threads(256)?;
    ///     y.thread_part()?.store(&x.thread_part()?.load()?)
    /// })?;
    /// let cost = copy.program().cost(&Machine::named("H200").unwrap(), &[]).unwrap();
    /// let table = AccessCount::table(&AccessCount::by_statement(&cost.counted.unwrap().accesses));
    /// assert_eq!(table.lines().nth(1), Some("load               x                     8        4096      128"));
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn table(accesses: &[AccessCount]) -> String {
        let widest =
            |usual: usize, width: fn(&AccessCount) -> usize| accesses.iter().map(width).fold(usual, usize::max);
        let statements = widest(18, |access| access.source.statement.len());
        let memories = widest(12, |access| access.buffer.len());
        let mut table = format!(
            "{:<statements$} {:<memories$} {:>10} {:>11}  sectors  wavefronts (least)\n",
            "statement", "memory", "requests", "bytes"
        );
        for access in accesses {
            let (statement, memory, place) = (access.source.statement, &access.buffer, access.place());
            let mark = if access.at_most { "  at most" } else { "" };
            let (requests, bytes) = (access.requests, access.bytes);
            table += &format!("{statement:<statements$} {memory:<memories$} {requests:>10} {bytes:>11}{place}{mark}\n");
        }
        table
    }

    /// The traffic after the bytes: sectors, or wavefronts and their minimum. Neither is counted
    /// for TMA.
    fn place(&self) -> String {
        match (self.class, self.wavefronts) {
            (Class::Bulk, _) => format!("{:>9}", "bulk"),
            (_, 0) => format!("{:>9}", self.sectors),
            (_, wavefronts) => format!("{:>9}  {wavefronts} ({})", "", self.least_wavefronts),
        }
    }

    /// The accesses of each statement to each memory, added up, in order.
    pub fn by_statement(accesses: &[AccessCount]) -> Vec<AccessCount> {
        let mut sums: Vec<AccessCount> = Vec::new();
        for access in accesses {
            let same = |sum: &&mut AccessCount| {
                (sum.source, sum.class, &sum.buffer) == (access.source, access.class, &access.buffer)
            };
            match sums.iter_mut().find(same) {
                Some(sum) => sum.add(access),
                None => sums.push(access.clone()),
            }
        }
        sums
    }

    fn add(&mut self, other: &AccessCount) {
        self.at_most |= other.at_most;
        let AccessCount { requests, bytes, wavefronts, least_wavefronts, sectors, lines, .. } = self;
        for (sum, count) in [
            (requests, other.requests),
            (bytes, other.bytes),
            (wavefronts, other.wavefronts),
            (least_wavefronts, other.least_wavefronts),
            (sectors, other.sectors),
            (lines, other.lines),
        ] {
            *sum = sum.saturating_add(count);
        }
    }
}

/// The instructions that a run executed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    pub(super) classes: [u64; Class::ALL.len()],
    /// The accesses of each memory instruction, in the order of the program.
    pub accesses: Vec<AccessCount>,
}

impl Counts {
    /// The number of executed warp instructions of a class.
    pub fn executed(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }

    /// The number of executed warp instructions.
    pub fn total(&self) -> u64 {
        self.classes.iter().sum()
    }
}

/// The counts of one instruction and one memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) wavefronts: u64,
    pub(crate) least: u64,
    pub(crate) sectors: u64,
    pub(crate) lines: u64,
}

const WORD: i64 = 4;
const BANKS: usize = 32;

impl Tally {
    /// All counts.
    pub(crate) fn fields(&mut self) -> [&mut u64; 6] {
        let Tally { requests, bytes, wavefronts, least, sectors, lines } = self;
        [requests, bytes, wavefronts, least, sectors, lines]
    }

    /// The counts as those of a statement.
    pub(crate) fn count(&self, source: Source, class: Class, buffer: String) -> AccessCount {
        AccessCount {
            source,
            class,
            buffer,
            requests: self.requests,
            bytes: self.bytes,
            wavefronts: self.wavefronts,
            least_wavefronts: self.least,
            sectors: self.sectors,
            lines: self.lines,
            at_most: false,
        }
    }

    /// Counts an access of `bytes` by each lane of a mask to shared memory.
    pub(crate) fn shared(&mut self, mask: u32, addresses: &[i64; 32], bytes: u32) {
        if mask == 0 {
            return;
        }
        self.requests += 1;
        self.bytes += u64::from(mask.count_ones() * bytes);
        let width = phase_lanes(bytes);
        for first in (0..32).step_by(width as usize) {
            let part = mask & ((((1_u64 << width) - 1) << first) as u32);
            if part != 0 {
                let (most, all) = wavefronts(part, addresses, bytes);
                self.wavefronts += most;
                self.least += all.div_ceil(BANKS as u64);
            }
        }
    }

    /// Counts an access of `bytes` by each lane of a mask to global memory.
    pub(crate) fn global(&mut self, mask: u32, addresses: &[i64; 32], bytes: u32) {
        if mask == 0 {
            return;
        }
        self.requests += 1;
        self.bytes += u64::from(mask.count_ones() * bytes);
        self.sectors += blocks(mask, addresses, bytes, 32);
        self.lines += blocks(mask, addresses, bytes, 128);
    }
}

/// The number of lanes that shared memory serves in one phase, by the number of bytes of each.
pub(crate) fn phase_lanes(bytes: u32) -> u32 {
    match bytes {
        16 => 8,
        8 => 16,
        _ => 32,
    }
}

/// The number of words in the bank with the most words, and that of all words.
fn wavefronts(mask: u32, addresses: &[i64; 32], bytes: u32) -> (u64, u64) {
    // At most 32 words are accessed in a phase.
    let mut words = [0_i64; 32];
    let mut count = 0;
    for lane in lanes(mask) {
        let first = addresses[lane].div_euclid(WORD);
        let last = (addresses[lane] + i64::from(bytes) - 1).div_euclid(WORD);
        for word in first..=last {
            if count < words.len() && !words[..count].contains(&word) {
                words[count] = word;
                count += 1;
            }
        }
    }
    let mut banks = [0_u64; BANKS];
    for word in &words[..count] {
        banks[word.rem_euclid(BANKS as i64) as usize] += 1;
    }
    (banks.into_iter().max().unwrap_or(0), count as u64)
}

/// The number of blocks of a size that the lanes access.
fn blocks(mask: u32, addresses: &[i64; 32], bytes: u32, size: i64) -> u64 {
    // An aligned access of at most 16 bytes is inside one block.
    let mut found = [0_i64; 32];
    let mut count = 0;
    for lane in lanes(mask) {
        let block = addresses[lane].div_euclid(size);
        let last = (addresses[lane] + i64::from(bytes) - 1).div_euclid(size);
        for block in [block, last].into_iter().take(if block == last { 1 } else { 2 }) {
            if count < found.len() && (count == 0 || found[count - 1] != block) && !found[..count].contains(&block) {
                found[count] = block;
                count += 1;
            }
        }
    }
    count as u64
}

//! Bank conflicts of shared memory.
//!
//! Law: the word at byte `a` is in bank `floor(a / w) mod n`, for `n` banks of `w` bytes. Lanes are
//! served in phases of `n * w / bytes`, at most all of them, where each lane accesses `bytes`
//! bytes. In a phase, a bank serves one word after another, each to all lanes that access it. So
//! for a phase
//!
//! ```text
//! degree = max over banks of the number of different words accessed in it      (wavefronts)
//! ideal  = ceil(number of different words / n)
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::LayoutError;
use crate::analysis::access::Access;
use crate::analysis::error::AnalysisError;
use crate::analysis::storage::Storage;
use crate::analysis::units::{Lines, Number, Units, Visit, with_units};

/// The banks of a shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Banks {
    count: i64,
    bytes: i64,
}

impl Banks {
    /// 32 banks of 4 bytes, as in NVIDIA GPUs.
    pub const NVIDIA: Banks = Banks { count: 32, bytes: 4 };

    /// `count` banks, each `width` bytes wide.
    ///
    /// Errors: one of the numbers is not a power of two between 1 and 1024
    /// ([`AnalysisError::Memory`]).
    pub fn new(count: i64, bytes: i64) -> Result<Banks, AnalysisError> {
        for (what, value) in [("the number of banks", count), ("the bytes of a bank", bytes)] {
            if !(1..=1024).contains(&value) || value.count_ones() != 1 {
                return Err(AnalysisError::Memory { what, value, wanted: "a power of two up to 1024" });
            }
        }
        Ok(Banks { count, bytes })
    }

    /// The number of banks.
    pub fn count(self) -> i64 {
        self.count
    }

    /// The bytes of a word of a bank.
    pub fn bytes(self) -> i64 {
        self.bytes
    }

    /// The bytes of one word of every bank: the most that a phase can transfer.
    pub fn line(self) -> i64 {
        self.count * self.bytes
    }

    /// The number of lanes of a phase, if each lane accesses `bytes` bytes.
    ///
    /// ```
    /// use tilewright_layout::analysis::Banks;
    ///
    /// assert_eq!([2, 4, 8, 16].map(|bytes| Banks::NVIDIA.phase(bytes, 32)), [32, 32, 16, 8]);
    /// ```
    pub fn phase(self, bytes: i64, lanes: i64) -> i64 {
        (self.line() / bytes.max(1)).clamp(1, lanes.max(1))
    }
}

/// The cost of one phase of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Phase {
    /// The number of the group of lanes, which is a warp.
    pub group: i64,
    /// The index of the load or store of its threads.
    pub instruction: i64,
    /// The first lane, counted within the group.
    pub first: i64,
    /// The number of lanes.
    pub lanes: i64,
    /// The number of different words that are accessed.
    pub words: i64,
    /// The number of different words in the busiest bank: the wavefronts.
    pub degree: i64,
    /// The least number of wavefronts for this number of words.
    pub ideal: i64,
}

/// The cost of an access to shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankReport {
    phases: Vec<Phase>,
}

impl BankReport {
    /// The phases, sorted by group, then by instruction.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// The number of wavefronts of all phases.
    pub fn wavefronts(&self) -> i64 {
        self.phases.iter().map(|phase| phase.degree).sum()
    }

    /// The number of wavefronts if each phase had the same number of words spread evenly over the
    /// banks.
    pub fn ideal(&self) -> i64 {
        self.phases.iter().map(|phase| phase.ideal).sum()
    }

    /// The degree of the worst phase: 1 if there is no bank conflict.
    pub fn degree(&self) -> i64 {
        self.phases.iter().map(|phase| phase.degree).max().unwrap_or(0)
    }

    /// Whether no phase takes more wavefronts than its number of words requires.
    pub fn is_conflict_free(&self) -> bool {
        self.phases.iter().all(|phase| phase.degree <= phase.ideal)
    }

    /// The index of the first phase with the most wavefronts.
    pub fn worst(&self) -> usize {
        let worse = |a: &(usize, &Phase), b: &(usize, &Phase)| a.1.degree.cmp(&b.1.degree).then(b.0.cmp(&a.0));
        self.phases.iter().enumerate().max_by(worse).map_or(0, |(number, _)| number)
    }

    /// The number of phases for each degree, in increasing order of the degree.
    pub fn degrees(&self) -> Vec<(i64, usize)> {
        let mut degrees: Vec<i64> = self.phases.iter().map(|phase| phase.degree).collect();
        degrees.sort_unstable();
        let runs = degrees.chunk_by(|a, b| a == b);
        runs.filter_map(|run| Some((*run.first()?, run.len()))).collect()
    }
}

/// An access of a lane to one word of a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hit {
    /// The bank.
    pub bank: i64,
    /// The index of the line in [`PhaseHits::lines`].
    pub line: usize,
    /// The lane, counted within its group.
    pub lane: i64,
}

/// The accesses of one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseHits {
    /// The phase.
    pub phase: Phase,
    /// The lines of memory that are accessed, each as the address of its first byte; known
    /// addresses in increasing order.
    pub lines: Vec<Box<str>>,
    /// The accessed words, sorted by bank, line and lane.
    pub hits: Vec<Hit>,
}

/// A bank conflict: lanes that access different words of one bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankConflict {
    /// The bank.
    pub bank: i64,
    /// For each word, the index of its line and the lanes that access it.
    pub words: Vec<(usize, Vec<i64>)>,
}

impl PhaseHits {
    /// The banks in which more than one word is accessed.
    pub fn collisions(&self) -> Vec<BankConflict> {
        let banks = self.hits.chunk_by(|a, b| a.bank == b.bank);
        let collisions = banks.filter_map(|hits| {
            let words = hits.chunk_by(|a, b| a.line == b.line);
            let words: Vec<_> = words
                .filter_map(|word| Some((word.first()?.line, word.iter().map(|hit| hit.lane).collect())))
                .collect();
            Some(BankConflict { bank: hits.first()?.bank, words }).filter(|collision| collision.words.len() > 1)
        });
        collisions.collect()
    }
}

/// The cost of an access to a tile in shared memory, phase by phase.
///
/// Errors: the elements of a lane are not contiguous ([`AnalysisError::Split`]) or not aligned
/// ([`AnalysisError::Misaligned`]); a lane accesses more than 16 bytes, or more than one word of
/// every bank ([`AnalysisError::Memory`]); an index outside the tile; a bank that is not known
/// before launch ([`AnalysisError::Open`]).
///
/// ```
/// use tilewright_layout::analysis::{Access, Banks, Storage, bank_conflicts};
/// use tilewright_layout::Layout;
///
/// // A column of a row-major matrix of f32: 32 rows of 128 bytes, so all elements are in one bank.
/// let tile: Layout = "(32,32):(32,1)".parse().unwrap();
/// let columns = Access::columns(&tile.shape(), 32, 1).unwrap();
/// let report = bank_conflicts(&Storage::from(&tile), &columns, Banks::NVIDIA).unwrap();
/// assert_eq!((report.degree(), report.wavefronts(), report.ideal()), (32, 1024, 32));
/// ```
pub fn bank_conflicts(storage: &Storage, access: &Access, banks: Banks) -> Result<BankReport, AnalysisError> {
    check(access, banks)?;
    with_units(storage, access, banks.line(), BankCount { banks })
}

/// The accesses in phase `number` of [`BankReport::phases`].
///
/// Errors: as [`bank_conflicts`]; there is no such phase.
///
/// ```
/// use tilewright_layout::analysis::{Access, Banks, Storage, phase_hits};
/// use tilewright_layout::Layout;
///
/// let tile: Layout = "(2,64):(64,1)".parse().unwrap(); // two rows of 128 bytes
/// let access = Access::thread_values(&tile.shape(), 16, 2).unwrap();
/// let hits = phase_hits(&Storage::from(&tile), &access, Banks::NVIDIA, 0).unwrap();
/// let collisions = hits.collisions();
/// assert_eq!((collisions[0].bank, collisions[0].words.clone()), (0, vec![(0, vec![0]), (1, vec![1])]));
/// ```
pub fn phase_hits(storage: &Storage, access: &Access, banks: Banks, number: usize) -> Result<PhaseHits, AnalysisError> {
    check(access, banks)?;
    with_units(storage, access, banks.line(), Hits { banks, number })
}

fn check(access: &Access, banks: Banks) -> Result<(), AnalysisError> {
    let most = banks.line().min(16);
    if access.bytes() > most {
        let wanted = "at most 16, and no more than a line of all banks";
        return Err(AnalysisError::Memory { what: "the bytes that a lane takes", value: access.bytes(), wanted });
    }
    Ok(())
}

/// The phases of an access, without their costs.
fn phases(access: &Access, banks: Banks) -> impl Iterator<Item = Phase> {
    let (lanes, threads, step) = (access.lanes(), access.threads(), banks.phase(access.bytes(), access.lanes()));
    let instructions = access.instructions();
    (0..access.groups()).flat_map(move |group| {
        let here = lanes.min(threads - group * lanes);
        (0..instructions).flat_map(move |instruction| {
            (0..(here + step - 1) / step).map(move |part| {
                let first = part * step;
                let lanes = step.min(here - first);
                Phase { group, instruction, first, lanes, words: 0, degree: 0, ideal: 0 }
            })
        })
    })
}

/// The words that are accessed in each bank during a phase, as the lines that contain them.
struct Words<N> {
    banks: Vec<Vec<N>>,
}

impl<N: Number> Words<N> {
    fn new(banks: Banks) -> Words<N> {
        Words { banks: (0..banks.count).map(|_| Vec::new()).collect() }
    }

    /// Calls `take` for each word that lanes of a phase access, with the lane, the bank and the
    /// line.
    fn each<F: Fn(i64) -> Result<N, LayoutError>>(
        units: &Units<'_, F>,
        banks: Banks,
        phase: &Phase,
        mut take: impl FnMut(i64, i64, N) -> Result<(), AnalysisError>,
    ) -> Result<(), AnalysisError> {
        let bytes = units.access.bytes();
        let words = (bytes / banks.bytes).max(1);
        for lane in phase.first..phase.first + phase.lanes {
            let thread = phase.group * units.access.lanes() + lane;
            let unit = units.unit(thread, phase.instruction)?;
            let (line, place) = units.line(&unit, banks.line() / bytes, thread, phase.instruction)?;
            let bank = place * bytes / banks.bytes;
            for word in 1..words {
                take(lane, bank + word, line.clone())?;
            }
            take(lane, bank, line)?;
        }
        Ok(())
    }
}

struct BankCount {
    banks: Banks,
}

impl Visit for BankCount {
    type Output = Result<BankReport, AnalysisError>;

    fn visit<N: Number>(self, units: Units<'_, impl Fn(i64) -> Result<N, LayoutError>>) -> Self::Output {
        let mut words = Words::<N>::new(self.banks);
        let mut all: Vec<Phase> = phases(units.access, self.banks).collect();
        for phase in &mut all {
            words.banks.iter_mut().for_each(Vec::clear);
            let (group, instruction) = (phase.group, phase.instruction);
            let start = group * units.access.lanes();
            Words::each(&units, self.banks, phase, |lane, bank, line| {
                let Some(known) = usize::try_from(bank).ok().and_then(|bank| words.banks.get_mut(bank)) else {
                    return Ok(());
                };
                for other in known.iter() {
                    if units.same(other, &line, start + lane, instruction)? {
                        return Ok(());
                    }
                }
                known.push(line);
                Ok(())
            })?;
            let counts = words.banks.iter().map(|lines| lines.len() as i64);
            phase.words = counts.clone().sum();
            phase.degree = counts.max().unwrap_or(0);
            phase.ideal = (phase.words + self.banks.count - 1) / self.banks.count;
        }
        Ok(BankReport { phases: all })
    }
}

struct Hits {
    banks: Banks,
    number: usize,
}

impl Visit for Hits {
    type Output = Result<PhaseHits, AnalysisError>;

    fn visit<N: Number>(self, units: Units<'_, impl Fn(i64) -> Result<N, LayoutError>>) -> Self::Output {
        let Some(mut phase) = phases(units.access, self.banks).nth(self.number) else {
            let value = i64::try_from(self.number).unwrap_or(i64::MAX);
            return Err(AnalysisError::Memory { what: "the phase", value, wanted: "one that the access has" });
        };
        let mut lines = Lines::new();
        let mut hits = Vec::new();
        let start = phase.group * units.access.lanes();
        Words::each(&units, self.banks, &phase, |lane, bank, line| {
            let line = lines.number(line, |a, b| units.same(a, b, start + lane, phase.instruction))?;
            hits.push(Hit { bank, line, lane });
            Ok(())
        })?;
        let (rank, lines) = lines.in_order(self.banks.line());
        for hit in &mut hits {
            hit.line = rank.get(hit.line).copied().unwrap_or(0);
        }
        hits.sort_unstable();
        hits.dedup();
        let words = hits.chunk_by(|a, b| (a.bank, a.line) == (b.bank, b.line)).count() as i64;
        let degrees = hits.chunk_by(|a, b| a.bank == b.bank);
        phase.degree = degrees.map(|bank| bank.chunk_by(|a, b| a.line == b.line).count() as i64).max().unwrap_or(0);
        phase.words = words;
        phase.ideal = (words + self.banks.count - 1) / self.banks.count;
        Ok(PhaseHits { phase, lines, hits })
    }
}

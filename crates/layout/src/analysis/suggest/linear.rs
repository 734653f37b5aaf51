//! The best linear map over bits.
//!
//! # Law
//!
//! Let the offsets of an access be linear over the bits of the thread's number. Then the offsets of
//! the lanes of a phase are a translate of the span `W` of the offsets of the lowest `k` bits, and
//! all phases have the same cost. A bijective map `F` of offsets, linear over bits, maps `2^d`
//! different words to `2^r` banks, `2^(d-r)` words to each, with
//!
//! ```text
//! d = rank of W, without the bits within a word or vector
//! r = rank of F(W) on the bits that select a bank
//! ```
//!
//! Let `F` keep words and units of `2^g` elements whole, where a unit is the widest vector. Only
//! the rows of `F` that select a bank matter: a matrix `P` over the bits from `g` on. Only the
//! kernel of `P` matters, because multiplying `P` from the left by an invertible matrix does not
//! change the cost. So it is enough to try those `P` in which each column is a sum of columns
//! before it or the next unit vector. They are tried column by column. The columns that are not
//! chosen yet can increase each rank by at most one for each dimension of `W` that is not spanned
//! yet; a branch that cannot be better even then is cut off.
//!
//! Every `P` of full rank extends to a bijective `F`: the other rows are the bits that are not
//! pivots of `P`, at their own positions if possible.

use alloc::vec::Vec;

use crate::{BitMatrix, BitSpace, LayoutError};

use super::{Problem, Proof, Remedy, Suggestion};
use crate::analysis::access::Access;
use crate::analysis::error::AnalysisError;

/// The most branches that are tried.
const MAX_BRANCHES: usize = 1 << 18;

/// The offsets of the bits of the thread index.
pub(super) struct Bits {
    /// The offset of each bit.
    pub threads: Vec<u64>,
    /// The number of bits that are the lanes of a phase.
    pub lanes: usize,
    /// The number of bits of an offset within a word of a bank, or within a vector if that is
    /// wider.
    pub slot: u32,
}

impl Bits {
    /// The bits of an access; None if the access is not linear over bits.
    pub fn of(problem: &Problem<'_>, access: &Access) -> Option<Bits> {
        let (storage, pattern) = (problem.tile.bit_matrix().ok()?, BitMatrix::of_layout(access.pattern()).ok()?);
        let count = access.threads().trailing_zeros() as usize;
        let index = pattern.columns().get(..count)?;
        if index.iter().any(|index| index >> storage.inputs() != 0) {
            return None;
        }
        let phase = problem.banks.phase(access.bytes(), access.lanes());
        let slot = (access.bytes().max(problem.banks.bytes()) * 8 / problem.bits).max(1).trailing_zeros();
        let lanes = (phase.trailing_zeros() as usize).min(count);
        Some(Bits { threads: index.iter().map(|index| storage.apply(*index)).collect(), lanes, slot })
    }
}

/// The requirements of one access for a map.
struct Wanted {
    /// The words of the lanes, without the bits within a slot, as a basis whose highest bits are
    /// chosen last.
    words: Vec<u64>,
    /// The number of bits below a unit that also select a bank.
    low: u32,
    /// The number of bits that select a bank.
    slots: u32,
    /// The number of phases.
    phases: i64,
}

impl Problem<'_> {
    /// The best linear map, if it takes fewer wavefronts than `most`; None if layout and accesses
    /// are not linear.
    pub(super) fn linear(&self, most: i64) -> Result<Option<Suggestion>, AnalysisError> {
        let (line, word) = (self.line(), (self.banks.bytes() * 8 / self.bits).max(1).trailing_zeros());
        let unit = self.vector.trailing_zeros().max(word);
        // Within one line there is no conflict; and columns are numbers of 32 bits.
        if self.width <= line || unit >= line || self.width - unit > 32 {
            return Ok(None);
        }
        let mut wanted = Vec::new();
        for (access, report) in self.accesses.iter().zip(&self.reports) {
            let Some(bits) = Bits::of(self, access) else { return Ok(None) };
            let basis = BitSpace::of(bits.threads.iter().take(bits.lanes).map(|offset| offset >> bits.slot));
            // Each vector of the basis has a highest bit of its own; the bits below it are
            // arbitrary.
            let words = basis.basis().iter().map(|word| word.value).collect();
            let phases = report.phases().len() as i64;
            wanted.push(Wanted { words, low: unit.saturating_sub(bits.slot), slots: line - bits.slot, phases });
        }
        let mut search = LinearMapSearch {
            wanted: &wanted,
            rows: line - unit,
            width: self.width - unit,
            bound: self.bound,
            best: most,
            columns: Vec::new(),
            found: None,
            branches: 0,
        };
        let complete = search.run(0) || search.best == self.bound;
        let (best, found) = (search.best, search.found);
        let Some(columns) = found else { return Ok(None) };
        let matrix = whole(&columns, line - unit, unit)?;
        let layout = self.after(matrix.clone())?;
        let proof = match (best == self.bound, complete) {
            (true, _) => Proof::Bound,
            (_, true) => Proof::Exhausted,
            _ => Proof::Open,
        };
        self.suggestion(Remedy::Linear(matrix), layout, proof).map(Some)
    }
}

struct LinearMapSearch<'a> {
    wanted: &'a [Wanted],
    rows: u32,
    width: u32,
    bound: i64,
    /// The number of wavefronts of the best map so far.
    best: i64,
    columns: Vec<u64>,
    found: Option<Vec<u64>>,
    branches: usize,
}

impl LinearMapSearch<'_> {
    /// Tries every choice of the remaining columns; false if the search was cut off.
    fn run(&mut self, rank: u32) -> bool {
        if self.branches >= MAX_BRANCHES {
            return false;
        }
        self.branches += 1;
        let left = self.width - self.columns.len() as u32;
        // The matrix must have full rank in the end.
        if rank + left < self.rows || self.cost() >= self.best {
            return true;
        }
        if left == 0 {
            self.best = self.cost();
            self.found = Some(self.columns.clone());
            return true;
        }
        let new = (rank < self.rows).then_some(1_u64 << rank);
        for column in new.into_iter().chain(0..1_u64 << rank) {
            self.columns.push(column);
            let complete = self.run(rank + u32::from(Some(column) == new));
            self.columns.pop();
            if self.best == self.bound {
                return true;
            }
            if !complete {
                return false;
            }
        }
        true
    }

    /// A lower bound of the wavefronts, given the columns so far.
    fn cost(&self) -> i64 {
        let decided = self.columns.len() as u32;
        let costs = self.wanted.iter().map(|wanted| {
            let mut banks = BitSpace::default();
            let (mut open, low) = (0, (1_u64 << wanted.low) - 1);
            for word in &wanted.words {
                let high = word >> wanted.low;
                if high >> decided != 0 {
                    open += 1;
                    continue;
                }
                let columns = self.columns.iter().enumerate().filter(|(bit, _)| high >> bit & 1 != 0);
                let image = columns.fold(0, |sum, (_, column)| sum ^ column);
                banks.insert(image << wanted.low | word & low);
            }
            let rank = (banks.rank() as u32 + open).min(wanted.slots);
            let words = wanted.words.len() as u32;
            // A phase has at most 2^32 lanes.
            wanted.phases << words.saturating_sub(rank)
        });
        costs.sum()
    }
}

/// The bijective map of offsets whose bank rows, from bit `unit` on, are `columns`, and which keeps
/// the bits below.
fn whole(columns: &[u64], rows: u32, unit: u32) -> Result<BitMatrix, LayoutError> {
    let width = columns.len() as u32;
    // The rows are combined, if possible, so that the bits that select a bank keep their positions.
    let square = columns.get(..rows as usize).and_then(|columns| {
        let square = BitMatrix::new(rows as usize, columns.iter().copied()).ok()?;
        square.inverse().ok()
    });
    let columns: Vec<u64> = match &square {
        Some(inverse) => columns.iter().map(|column| inverse.apply(*column)).collect(),
        None => columns.to_vec(),
    };
    let mut basis = BitSpace::default();
    let pivots: Vec<bool> = columns.iter().map(|column| basis.insert(*column).value != 0).collect();
    // The other bits go to the positions above the bank bits, each to its own position if that is
    // free.
    let mut free: Vec<u32> = (rows..width).collect();
    let mut images = columns.clone();
    let others = || (0..width).zip(&pivots).filter(|(_, pivot)| !**pivot).map(|(bit, _)| bit);
    for bit in others().filter(|bit| *bit >= rows) {
        free.retain(|place| *place != bit);
        if let Some(image) = images.get_mut(bit as usize) {
            *image |= 1 << bit;
        }
    }
    for (bit, place) in others().filter(|bit| *bit < rows).zip(free) {
        if let Some(image) = images.get_mut(bit as usize) {
            *image |= 1 << place;
        }
    }
    let low = (0..unit).map(|bit| 1_u64 << bit);
    BitMatrix::new((width + unit) as usize, low.chain(images.iter().map(|image| image << unit)))
}

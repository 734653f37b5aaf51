//! Suggestions: swizzles, paddings and thread orders that cost less.
//!
//! Law: the accesses do not change, and the layout of the tile changes in one way only. Of all
//! changes of a kind, the best one is suggested: with the fewest wavefronts of all accesses
//! together, then with the least memory, then the simplest. Wavefronts are counted as in
//! [`crate::analysis::bank_conflicts`].
//!
//! * **A swizzle** `S<b,m,s>` after the layout; it replaces the swizzle of the tile, if that one
//!   keeps vectors whole and is its own inverse. It must keep vectors whole: `2^m >= vector`. It
//!   must flip bits that decide a bank, or it changes nothing; and it must read a bit of an offset.
//!   That leaves a few hundred, and each is counted. Swizzles that read below the bits they flip,
//!   `s < 0`, either split vectors or permute the banks.
//! * **A linear map over bits** after the layout, where layout and accesses are linear: of all that
//!   keep vectors and words whole, by search with a bound ([`mod@linear`]).
//! * **A padding** of a layout without a swizzle: the offset grows by `p` at each multiple of a
//!   stride `d`, for each `d` that all greater strides are multiples of. Banks repeat after a line
//!   of all banks, so each `p` up to that is counted.
//! * **Another order of threads** for one access: which thread takes which vector, the bits of its
//!   number permuted.
//!
//! A result that takes no more wavefronts than the words wanted in each phase need is the best that
//! any rearrangement of words can do: [`Proof::Bound`].

use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;

mod linear;
mod padding;
mod threads;

use crate::analysis::access::Access;
use crate::analysis::banks::{BankReport, Banks, bank_conflicts};
use crate::analysis::error::AnalysisError;
use crate::analysis::storage::Storage;
use crate::{BitMatrix, Composed, Layout, OuterMap, Swizzle};

/// The most loads and stores that the accesses of a search may have together.
pub const MAX_SEARCHED: i64 = 1 << 17;
/// The most elements of a composed tile, all of whose offsets are enumerated.
pub const MAX_COMPOSED: i64 = 1 << 20;

/// A change that costs less.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// A swizzle of the offsets, which count elements.
    Swizzle(Swizzle),
    /// A linear map over the bits of the offsets.
    Linear(BitMatrix),
    /// More elements at each multiple of a stride.
    Padding {
        /// The stride.
        stride: i64,
        /// The elements.
        elements: i64,
    },
    /// Another order of the threads of one access.
    Threads {
        /// The index of the access.
        access: usize,
        /// From (thread, value) to the index of an element.
        pattern: Layout,
    },
}

/// Why nothing of its kind is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// In each phase of each access, it takes the minimum of wavefronts for the accessed words: no
    /// rearrangement of words does better.
    Bound,
    /// No other of its kind is better: all were tried or, of the orders of threads of one access,
    /// this one reaches the bound of that access. A change of another kind may do better.
    Exhausted,
    /// The search was cut off, or its choice is a good one and no more.
    Open,
}

/// A change, and what accesses cost after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The change.
    pub remedy: Remedy,
    /// The tile after it.
    pub layout: Composed,
    /// The cost of each access after the change.
    pub reports: Vec<BankReport>,
    /// How many elements more the tile takes.
    pub extra: i64,
    /// Why nothing of its kind is better.
    pub proof: Proof,
}

impl Suggestion {
    /// The wavefronts of all accesses.
    pub fn wavefronts(&self) -> i64 {
        total(&self.reports)
    }

    /// The tile after the change as it is written: a layout where it is one.
    pub fn text(&self) -> String {
        match self.layout.as_layout() {
            Some(layout) => layout.to_string(),
            None => self.layout.to_string(),
        }
    }
}

/// The cost of accesses, and what would cost less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The cost of each access before the change.
    pub before: Vec<BankReport>,
    /// Changes that cost less, each the best of its kind. None if there is nothing to gain.
    pub suggestions: Vec<Suggestion>,
}

impl Advice {
    /// The wavefronts of all accesses as the tile is.
    pub fn wavefronts(&self) -> i64 {
        total(&self.before)
    }

    /// The wavefronts that all accesses take at least.
    pub fn ideal(&self) -> i64 {
        self.before.iter().map(BankReport::ideal).sum()
    }
}

fn total(reports: &[BankReport]) -> i64 {
    reports.iter().map(BankReport::wavefronts).sum()
}

/// The changes that make accesses to a tile in shared memory cost less.
///
/// A tile is a layout, `&layout`, or a composed layout, whose result is then changed.
///
/// Errors: as [`bank_conflicts`], of the layout as it is; an offset below 0, or accesses of
/// elements of different widths ([`AnalysisError::Memory`]); more than [`MAX_SEARCHED`] loads and
/// stores, or a composed tile of more than [`MAX_COMPOSED`] elements ([`AnalysisError::TooLarge`]).
///
/// ```
/// use tilewright_layout::analysis::{Access, Banks, Remedy, suggest};
/// use tilewright_layout::Layout;
///
/// // A K-major tile of 128 x 64 halves, written row by row and read by ldmatrix.
/// let tile: Layout = "(128,64):(64,1)".parse().unwrap();
/// let write = Access::rows(&tile.shape(), 16, 8).unwrap();
/// let read = Access::matrices(&tile.shape(), 16, 4, false).unwrap();
/// let advice = suggest(&tile, &[write, read], Banks::NVIDIA).unwrap();
/// let best = &advice.suggestions[0];
/// assert_eq!(best.remedy, Remedy::Swizzle("S<3,3,3>".parse().unwrap())); // S<3,4,3> in bytes
/// assert_eq!((best.wavefronts(), advice.wavefronts()), (advice.ideal(), 9 * 128));
///
/// // A swizzle that does too little gives way to another.
/// let swizzled: Composed = "S<1,3,3> o 0 o (128,64):(64,1)".parse().unwrap();
/// let read = Access::matrices(&tile.shape(), 16, 4, false).unwrap();
/// let advice = suggest(swizzled, &[read], Banks::NVIDIA).unwrap();
/// assert_eq!(advice.suggestions[0].text(), "S<3,3,3> o 0 o (128,64):(64,1)");
/// # use tilewright_layout::Composed;
/// ```
pub fn suggest(tile: impl Into<Composed>, accesses: &[Access], banks: Banks) -> Result<Advice, AnalysisError> {
    let problem = Problem::new(tile.into(), accesses, banks)?;
    let mut suggestions = Vec::new();
    if problem.before > problem.bound {
        let swizzle = problem.swizzle()?;
        let reached = swizzle.as_ref().map_or(problem.before, Suggestion::wavefronts);
        suggestions.extend(swizzle);
        if reached > problem.bound {
            suggestions.extend(problem.linear(reached)?);
        }
        suggestions.extend(problem.padding()?);
        for access in 0..accesses.len() {
            suggestions.extend(problem.threads(access)?);
        }
    }
    Ok(Advice { before: problem.reports, suggestions })
}

/// Accesses to a layout, and where the lanes of their phases are.
struct Problem<'a> {
    tile: Composed,
    /// The tile as a layout, where it is one.
    plain: Option<Layout>,
    storage: Storage,
    accesses: &'a [Access],
    banks: Banks,
    /// The bits of an element.
    bits: i64,
    /// The elements of the widest vector.
    vector: i64,
    /// The number of bits of an offset.
    width: u32,
    phases: Vec<Lanes>,
    reports: Vec<BankReport>,
    before: i64,
    bound: i64,
}

/// The first elements that the lanes of a phase take.
struct Lanes {
    /// The width of an access, or a word of a bank if that is wider, in elements: a power of two,
    /// as an exponent.
    slot: u32,
    starts: Vec<i64>,
}

impl<'a> Problem<'a> {
    fn new(tile: Composed, accesses: &'a [Access], banks: Banks) -> Result<Problem<'a>, AnalysisError> {
        let plain = tile.as_layout().cloned();
        let storage = plain.as_ref().map_or_else(|| Storage::from(&tile), Storage::from);
        let bits = accesses.first().map_or(8, Access::bits);
        let mut problem = Problem {
            tile,
            plain,
            storage,
            accesses,
            banks,
            bits,
            vector: accesses.iter().map(Access::vector).max().unwrap_or(1),
            width: 0,
            phases: Vec::new(),
            reports: Vec::new(),
            before: 0,
            bound: 0,
        };
        if let Some(other) = accesses.iter().map(Access::bits).find(|other| *other != bits) {
            let wanted = "the same in all accesses";
            return Err(AnalysisError::Memory { what: "the bits of an element", value: other, wanted });
        }
        let (least, greatest) = problem.range()?;
        if least < 0 {
            return Err(AnalysisError::Memory { what: "the least offset", value: least, wanted: "at least 0" });
        }
        problem.width = 64 - greatest.leading_zeros();
        let moves = |access: &Access| access.threads().saturating_mul(access.instructions());
        let value = accesses.iter().map(moves).fold(0, i64::saturating_add);
        if value > MAX_SEARCHED {
            let what = "the number of loads and stores of a search";
            return Err(AnalysisError::TooLarge { what, value, limit: MAX_SEARCHED });
        }
        for access in accesses {
            let report = bank_conflicts(&problem.storage, access, banks)?;
            let slot = (access.bytes().max(banks.bytes()) * 8 / bits).max(1).trailing_zeros();
            for phase in report.phases() {
                let first = phase.group * access.lanes() + phase.first;
                let starts = (first..first + phase.lanes)
                    .map(|thread| problem.storage.at(access.index(thread, phase.instruction * access.vector())?));
                let starts = starts.collect::<Result<_, AnalysisError>>()?;
                problem.phases.push(Lanes { slot, starts });
            }
            problem.before += report.wavefronts();
            problem.bound += report.ideal();
            problem.reports.push(report);
        }
        Ok(problem)
    }

    /// The smallest and the largest offset.
    fn range(&self) -> Result<(i64, i64), AnalysisError> {
        if let Some(layout) = &self.plain {
            return Ok(layout.range()?);
        }
        let value = self.storage.size();
        if value > MAX_COMPOSED {
            let what = "the number of elements of a composed tile";
            return Err(AnalysisError::TooLarge { what, value, limit: MAX_COMPOSED });
        }
        let mut range = (0, 0);
        for index in 0..value {
            let offset = self.storage.at(index)?;
            range = (offset.min(range.0), offset.max(range.1));
        }
        Ok(range)
    }

    /// The tile after a map of its offsets.
    fn after(&self, map: impl Into<OuterMap>) -> Result<Composed, AnalysisError> {
        Ok(match &self.plain {
            Some(layout) => Composed::new(map, 0, layout.clone())?,
            None => self.tile.then(map)?,
        })
    }

    /// The swizzle of the tile that may be replaced: without it, vectors are still whole.
    fn replaced(&self) -> Option<Swizzle> {
        let OuterMap::Swizzle(old) = self.tile.outer() else { return None };
        let whole = old.base() >= i64::from(self.vector.trailing_zeros());
        (whole && old.shift().abs() >= old.bits()).then_some(*old)
    }

    /// The number of low bits of an offset that decide a bank or lie below.
    fn line(&self) -> u32 {
        (self.banks.line() * 8 / self.bits).max(1).trailing_zeros()
    }

    /// The wavefronts of all phases where offset `x` has become `map(x)`, which keeps vectors
    /// whole; none if they are more than `most`.
    fn wavefronts(&self, most: i64, map: impl Fn(i64) -> i64) -> Option<i64> {
        let line = self.line();
        let mut sum = 0;
        let mut seen: Vec<(i64, i64)> = Vec::new();
        for phase in &self.phases {
            seen.clear();
            // Slots at most; the lanes of a phase are few.
            let mut degree = 0;
            for start in &phase.starts {
                let place = map(*start);
                let word = (place & ((1 << line) - 1)) >> phase.slot.min(line);
                let key = (word, place >> line);
                if seen.contains(&key) {
                    continue;
                }
                seen.push(key);
                let here = seen.iter().filter(|(other, _)| *other == word).count();
                degree = degree.max(here as i64);
            }
            sum += degree;
            if sum > most {
                return None;
            }
        }
        Some(sum)
    }

    /// The best swizzle, if one is better than none.
    fn swizzle(&self) -> Result<Option<Suggestion>, AnalysisError> {
        let (line, width) = (i64::from(self.line()), i64::from(self.width));
        let first = i64::from(self.vector.trailing_zeros());
        let old = self.replaced();
        let mut best: Option<(i64, i64, i64, i64, Swizzle)> = None;
        for base in first..line {
            for bits in 1..=line - base {
                for shift in bits..=width - base - bits {
                    let Some(swizzle) = Swizzle::checked(bits, base, shift) else { continue };
                    let most = best.as_ref().map_or(self.before - 1, |best| best.0);
                    let Some(cost) = self.wavefronts(most, |x| swizzle.apply(old.map_or(x, |old| old.apply(x)))) else {
                        continue;
                    };
                    let rank = (cost, bits, shift, base);
                    if best.as_ref().is_none_or(|best| rank < (best.0, best.1, best.2, best.3)) {
                        best = Some((cost, bits, shift, base, swizzle));
                    }
                }
            }
        }
        let Some((cost, .., swizzle)) = best else { return Ok(None) };
        let layout = match old {
            Some(_) => Composed::new(swizzle, *self.tile.offset(), self.tile.inner().clone())?,
            None => self.after(swizzle)?,
        };
        let proof = if cost <= self.bound { Proof::Bound } else { Proof::Exhausted };
        self.suggestion(Remedy::Swizzle(swizzle), layout, proof).map(Some)
    }

    /// The cost of a changed tile, counted again.
    fn suggestion(&self, remedy: Remedy, layout: Composed, proof: Proof) -> Result<Suggestion, AnalysisError> {
        let storage = Storage::from(&layout);
        let reports = self.accesses.iter().map(|access| bank_conflicts(&storage, access, self.banks));
        let reports = reports.collect::<Result<Vec<_>, _>>()?;
        let extra = layout.cosize()? - self.tile.cosize()?;
        Ok(Suggestion { remedy, layout, reports, extra, proof })
    }
}

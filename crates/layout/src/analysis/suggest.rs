//! Suggestions: swizzles, paddings and thread orders that reduce bank conflicts.
//!
//! Law: a suggestion makes one change to the layout of the tile, or to the thread order of one
//! access. Of all changes of a kind, the best one is suggested: the one with the fewest wavefronts
//! of all accesses together; of these, the one with the least memory; of these, the simplest.
//! Wavefronts are counted as in [`crate::analysis::bank_conflicts`].
//!
//! * **A swizzle** `S<b,m,s>` after the layout. It replaces the swizzle of the tile, if that one
//!   keeps vectors whole. The new swizzle must keep vectors whole, `2^m >= vector`. It must flip
//!   bits that select a bank, or it changes nothing; and it must read a bit that offsets have.
//!   These conditions leave a few hundred swizzles, and the wavefronts of each are counted.
//!   Swizzles that read below the bits they flip, `s < 0`, either split vectors or only permute the
//!   banks.
//! * **A linear map over bits** after the layout, if layout and accesses are linear over bits. The
//!   best map that keeps vectors and words whole is found by branch and bound ([`mod@linear`]).
//! * **A padding** of a layout without a swizzle: the offset grows by `p` at each multiple of a
//!   stride `d`, for each `d` that divides all greater strides. Banks repeat after one word of
//!   every bank, so only `p` up to that are counted.
//! * **Another order of threads** for one access: the bits of the thread index are permuted, so
//!   that a thread accesses another vector.
//!
//! If a result takes no more wavefronts than the number of words in each phase requires, no
//! rearrangement of words is better: [`Proof::Bound`].

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

/// A change that reduces the cost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// A swizzle of the offsets, which count elements.
    Swizzle(Swizzle),
    /// A linear map over the bits of the offsets.
    Linear(BitMatrix),
    /// Padding: more elements at each multiple of a stride.
    Padding {
        /// The stride.
        stride: i64,
        /// The number of elements added at each multiple.
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

/// The reason why no other change of the same kind is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// In each phase of each access, the number of wavefronts is the minimum for the accessed
    /// words: no rearrangement of words is better.
    Bound,
    /// No other change of this kind is better: all were tried or, for thread orders, this one
    /// reaches the bound of its access. A change of another kind may be better.
    Exhausted,
    /// The search was cut off or is not exhaustive, so a better change may exist.
    Open,
}

/// A change, and the costs after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The change.
    pub remedy: Remedy,
    /// The tile after the change.
    pub layout: Composed,
    /// The cost of each access after the change.
    pub reports: Vec<BankReport>,
    /// The number of elements that the tile grows by.
    pub extra: i64,
    /// The reason why no other change of the same kind is better.
    pub proof: Proof,
}

impl Suggestion {
    /// The number of wavefronts of all accesses.
    pub fn wavefronts(&self) -> i64 {
        total(&self.reports)
    }

    /// The tile after the change as text: a plain layout if it is one.
    pub fn text(&self) -> String {
        match self.layout.as_layout() {
            Some(layout) => layout.to_string(),
            None => self.layout.to_string(),
        }
    }
}

/// The cost of accesses, and changes that reduce it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The cost of each access before the change.
    pub before: Vec<BankReport>,
    /// Changes that reduce the cost, each the best of its kind. Empty if nothing can be gained.
    pub suggestions: Vec<Suggestion>,
}

impl Advice {
    /// The number of wavefronts of all accesses before a change.
    pub fn wavefronts(&self) -> i64 {
        total(&self.before)
    }

    /// The least number of wavefronts that all accesses need.
    pub fn ideal(&self) -> i64 {
        self.before.iter().map(BankReport::ideal).sum()
    }
}

fn total(reports: &[BankReport]) -> i64 {
    reports.iter().map(BankReport::wavefronts).sum()
}

/// Suggests changes that reduce the wavefronts of accesses to a tile in shared memory.
///
/// The tile is a layout, `&layout`, or a composed layout; of a composed layout the values are
/// changed.
///
/// Errors: as [`bank_conflicts`] for the unchanged layout; an offset below 0, or accesses of
/// elements of different widths ([`AnalysisError::Memory`]); more than [`MAX_SEARCHED`] loads and
/// stores, or a composed tile of more than [`MAX_COMPOSED`] elements ([`AnalysisError::TooLarge`]).
///
/// ```
/// use tilewright_layout::analysis::{Access, Banks, Remedy, suggest};
/// use tilewright_layout::Layout;
///
/// // A K-major tile, 128 x 64 of f16, written row by row and read by ldmatrix.
/// let tile: Layout = "(128,64):(64,1)".parse().unwrap();
/// let write = Access::rows(&tile.shape(), 16, 8).unwrap();
/// let read = Access::matrices(&tile.shape(), 16, 4, false).unwrap();
/// let advice = suggest(&tile, &[write, read], Banks::NVIDIA).unwrap();
/// let best = &advice.suggestions[0];
/// assert_eq!(best.remedy, Remedy::Swizzle("S<3,3,3>".parse().unwrap())); // S<3,4,3> in bytes
/// assert_eq!((best.wavefronts(), advice.wavefronts()), (advice.ideal(), 9 * 128));
///
/// // An insufficient swizzle is replaced by another one.
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

/// As [`suggest()`], but tries swizzles alone. That takes a small part of the time.
///
/// ```
/// use tilewright_layout::analysis::{Access, Banks, suggest_swizzle};
/// use tilewright_layout::Layout;
///
/// let tile: Layout = "(32,32):(32,1)".parse().unwrap();
/// let read = Access::columns(&tile.shape(), 32, 1).unwrap();
/// let advice = suggest_swizzle(&tile, &[read], Banks::NVIDIA).unwrap();
/// assert_eq!(advice.suggestions[0].text(), "S<5,0,5> o 0 o (32,32):(32,1)");
/// assert_eq!((advice.wavefronts(), advice.suggestions[0].wavefronts()), (32 * 32, 32));
/// ```
pub fn suggest_swizzle(tile: impl Into<Composed>, accesses: &[Access], banks: Banks) -> Result<Advice, AnalysisError> {
    let problem = Problem::new(tile.into(), accesses, banks)?;
    let best = if problem.before > problem.bound { problem.swizzle()? } else { None };
    Ok(Advice { before: problem.reports, suggestions: best.into_iter().collect() })
}

/// Accesses to a layout, with the offsets of the lanes of their phases.
struct Problem<'a> {
    tile: Composed,
    /// The tile as a layout, if it is one.
    plain: Option<Layout>,
    storage: Storage,
    accesses: &'a [Access],
    banks: Banks,
    /// The number of bits of an element.
    bits: i64,
    /// The number of elements of the widest vector.
    vector: i64,
    /// The number of bits of an offset.
    width: u32,
    phases: Vec<Lanes>,
    reports: Vec<BankReport>,
    before: i64,
    bound: i64,
}

/// The offsets of the first elements of the lanes of a phase.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Lanes {
    /// The width of an access, or a word of a bank if that is wider: the base-2 logarithm of the
    /// number of elements.
    slot: u32,
    /// In ascending order, each once.
    starts: Vec<i64>,
}

impl Lanes {
    fn new(slot: u32, mut starts: Vec<i64>) -> Lanes {
        starts.sort_unstable();
        starts.dedup();
        Lanes { slot, starts }
    }

    /// The lanes with the first offset moved to 0 by exclusive or. A map `F` that is linear over
    /// bits sends `x ^ c` to `F(x) ^ F(c)`, which only permutes words and banks, so it costs a
    /// phase and this one the same.
    fn moved_to_zero(&self) -> Lanes {
        let first = self.starts.first().copied().unwrap_or(0);
        Lanes::new(self.slot, self.starts.iter().map(|start| start ^ first).collect())
    }
}

/// Each different phase, and how many times it occurs.
fn counted(mut phases: Vec<Lanes>) -> Vec<(Lanes, i64)> {
    phases.sort_unstable();
    let runs = phases.chunk_by(|one, next| one == next);
    runs.filter_map(|run| Some((run.first()?.clone(), run.len() as i64))).collect()
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
                problem.phases.push(Lanes::new(slot, starts));
            }
            problem.before += report.wavefronts();
            problem.bound += report.ideal();
            problem.reports.push(report);
        }
        Ok(problem)
    }

    /// The least and the greatest offset.
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

    /// The tile with a map applied to its offsets.
    fn after(&self, map: impl Into<OuterMap>) -> Result<Composed, AnalysisError> {
        Ok(match &self.plain {
            Some(layout) => Composed::new(map, 0, layout.clone())?,
            None => self.tile.then(map)?,
        })
    }

    /// The swizzle of the tile if it may be replaced, because vectors are whole without it.
    fn replaced(&self) -> Option<Swizzle> {
        let OuterMap::Swizzle(old) = self.tile.outer() else { return None };
        let whole = old.base() >= i64::from(self.vector.trailing_zeros());
        (whole && old.shift().abs() >= old.bits()).then_some(*old)
    }

    /// The number of low bits of an offset that select a bank or are below those.
    fn line(&self) -> u32 {
        (self.banks.line() * 8 / self.bits).max(1).trailing_zeros()
    }

    /// The number of wavefronts of phases after each offset `x` is changed to `map(x)`, which keeps
    /// vectors whole; None if it exceeds `most`.
    fn wavefronts(&self, phases: &[(Lanes, i64)], most: i64, map: impl Fn(i64) -> i64) -> Option<i64> {
        let line = self.line();
        let mut sum = 0;
        let mut places: Vec<(i64, i64)> = Vec::new();
        for (phase, times) in phases {
            let place = |start: &i64| {
                let place = map(*start);
                ((place & ((1 << line) - 1)) >> phase.slot.min(line), place >> line)
            };
            places.clear();
            places.extend(phase.starts.iter().map(place));
            places.sort_unstable();
            places.dedup();
            // The number of different lines that are accessed in the word of a bank with the most.
            let degree = places.chunk_by(|one, next| one.0 == next.0).map(<[_]>::len).max().unwrap_or(0);
            sum += degree as i64 * times;
            if sum > most {
                return None;
            }
        }
        Some(sum)
    }

    /// The best swizzle, if it is better than none.
    fn swizzle(&self) -> Result<Option<Suggestion>, AnalysisError> {
        let (line, width) = (i64::from(self.line()), i64::from(self.width));
        let first = i64::from(self.vector.trailing_zeros());
        let old = self.replaced();
        // Both swizzles are linear over bits.
        let phases = counted(self.phases.iter().map(Lanes::moved_to_zero).collect());
        let mut best: Option<(i64, i64, i64, i64, Swizzle)> = None;
        for base in first..line {
            for bits in 1..=line - base {
                for shift in bits..=width - base - bits {
                    let Some(swizzle) = Swizzle::checked(bits, base, shift) else { continue };
                    let most = best.as_ref().map_or(self.before - 1, |best| best.0);
                    let map = |x| swizzle.apply(old.map_or(x, |old| old.apply(x)));
                    let Some(cost) = self.wavefronts(&phases, most, map) else { continue };
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

    /// The suggestion with the wavefronts of the changed tile, counted anew.
    fn suggestion(&self, remedy: Remedy, layout: Composed, proof: Proof) -> Result<Suggestion, AnalysisError> {
        let storage = Storage::from(&layout);
        let reports = self.accesses.iter().map(|access| bank_conflicts(&storage, access, self.banks));
        let reports = reports.collect::<Result<Vec<_>, _>>()?;
        let extra = layout.cosize()? - self.tile.cosize()?;
        Ok(Suggestion { remedy, layout, reports, extra, proof })
    }
}

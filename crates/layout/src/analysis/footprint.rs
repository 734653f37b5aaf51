//! Footprints: the memory that a layout covers, and the distance between two layouts.
//!
//! Law, for a layout `L` of `n` indices with `u` different offsets between the smallest `a` and the
//! largest `b`:
//!
//! ```text
//! span  = b - a + 1        holes = span - u        reuse = n / u
//! ```
//!
//! If no offset repeats and there are no gaps, `i -> L(i) - a` is a permutation of the indices: its
//! cycles describe how the elements move when they are sorted in place. A cycle of `k` elements
//! takes `k - 1` swaps, so all of them take `n` minus the number of cycles, and the permutation is
//! even or odd like this number. Its order is the least common multiple of the cycle lengths:
//! applied so often, it is the identity.
//!
//! From layout `A` to layout `B` of the same elements, element `i` moves from `A(i)` to `B(i)`.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::analysis::access::MAX_ELEMENTS;
use crate::analysis::error::AnalysisError;
use crate::analysis::storage::Storage;

/// The memory that a layout covers. Offsets count elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// The number of indices.
    pub indices: i64,
    /// The number of different offsets.
    pub offsets: i64,
    /// The least offset.
    pub least: i64,
    /// The greatest offset.
    pub greatest: i64,
    /// The largest number of indices that share one offset.
    pub shared: i64,
    /// Two indices with the same offset; the pair of least offset, or None if no offset repeats.
    pub alias: Option<(i64, i64)>,
    /// The gaps between the smallest and the largest offset: the first offset of each gap, and its
    /// length.
    pub gaps: Vec<(i64, i64)>,
    /// The largest divisor `n` of the number of indices such that every aligned block of `n`
    /// indices has consecutive offsets.
    pub contiguity: i64,
    /// Whether the offsets increase strictly with the index.
    pub ascending: bool,
}

impl Footprint {
    /// The number of offsets from the smallest to the largest; saturates.
    pub fn span(&self) -> i64 {
        self.greatest.saturating_sub(self.least).saturating_add(1)
    }

    /// The number of offsets within the span that no index has.
    pub fn holes(&self) -> i64 {
        self.span() - self.offsets
    }

    /// The average number of indices per offset.
    pub fn reuse(&self) -> f64 {
        self.indices as f64 / self.offsets.max(1) as f64
    }
}

/// The offsets of all indices.
fn offsets(storage: &Storage) -> Result<Vec<i64>, AnalysisError> {
    if storage.size() > MAX_ELEMENTS {
        let what = "the size of the layout";
        return Err(AnalysisError::TooLarge { what, value: storage.size(), limit: MAX_ELEMENTS });
    }
    (0..storage.size()).map(|index| storage.at(index)).collect()
}

/// The memory that a layout covers.
///
/// Errors: more than [`MAX_ELEMENTS`] indices; an offset becomes known at launch, or is not
/// representable.
///
/// ```
/// use tilewright_layout::analysis::{Storage, footprint};
/// use tilewright_layout::Layout;
///
/// let padded: Layout = "(4,3):(1,6)".parse().unwrap();
/// let found = footprint(&Storage::from(&padded)).unwrap();
/// assert_eq!((found.span(), found.holes(), found.gaps.clone()), (16, 4, vec![(4, 2), (10, 2)]));
/// assert_eq!((found.contiguity, found.ascending, found.alias), (4, true, None));
/// ```
pub fn footprint(storage: &Storage) -> Result<Footprint, AnalysisError> {
    let all = offsets(storage)?;
    let mut sorted: Vec<(i64, usize)> = all.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let (Some((least, _)), Some((greatest, _))) = (sorted.first().copied(), sorted.last().copied()) else {
        // A layout has at least one index.
        return Err(AnalysisError::TooLarge { what: "the size of the layout", value: 0, limit: MAX_ELEMENTS });
    };
    let runs = sorted.chunk_by(|a, b| a.0 == b.0);
    let (mut count, mut shared, mut alias) = (0, 0, None);
    for run in runs {
        count += 1;
        shared = shared.max(run.len() as i64);
        if let ([(_, first), (_, second), ..], None) = (run, alias) {
            alias = Some((*first as i64, *second as i64));
        }
    }
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    let gaps = pairs.filter_map(|((before, _), (after, _))| {
        let start = before.checked_add(1)?;
        let len = after.checked_sub(start)?;
        (len > 0).then_some((start, len))
    });
    Ok(Footprint {
        indices: storage.size(),
        offsets: count,
        least,
        greatest,
        shared,
        alias,
        gaps: gaps.collect(),
        contiguity: contiguity(&all),
        ascending: all.iter().zip(all.iter().skip(1)).all(|(a, b)| a < b),
    })
}

/// The largest divisor of the number of indices such that every aligned block of this size has
/// consecutive offsets.
fn contiguity(all: &[i64]) -> i64 {
    let breaks = all.iter().zip(all.iter().skip(1)).zip(1_i64..);
    breaks.filter(|((a, b), _)| a.checked_add(1) != Some(**b)).fold(all.len() as i64, |block, (_, at)| gcd(block, at))
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A layout as a permutation of its indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    cycles: Vec<Vec<i64>>,
    size: i64,
}

impl Permutation {
    /// The cycles, each beginning with its least index, sorted by it. A fixed index is a cycle of
    /// length 1.
    pub fn cycles(&self) -> &[Vec<i64>] {
        &self.cycles
    }

    /// The number of indices that do not move.
    pub fn fixed(&self) -> i64 {
        self.cycles.iter().filter(|cycle| cycle.len() == 1).count() as i64
    }

    /// The least number of swaps that produce the permutation.
    pub fn swaps(&self) -> i64 {
        self.size - self.cycles.len() as i64
    }

    /// Whether the number of swaps is even.
    pub fn is_even(&self) -> bool {
        self.swaps() % 2 == 0
    }

    /// The number of times that the permutation must be applied to become the identity; None if
    /// that exceeds 64 bits.
    pub fn order(&self) -> Option<i64> {
        self.cycles.iter().try_fold(1_i64, |order, cycle| {
            let len = cycle.len() as i64;
            (order / gcd(order, len)).checked_mul(len)
        })
    }
}

/// The permutation `i -> L(i) - a` of the indices, where `a` is the least offset, for a layout
/// without holes and repeats.
///
/// Errors: an offset repeats, or an offset in between is missing
/// ([`AnalysisError::NotPermutation`]); as [`footprint`].
///
/// ```
/// use tilewright_layout::analysis::{Storage, permutation};
/// use tilewright_layout::Layout;
///
/// let transposed: Layout = "(2,3):(3,1)".parse().unwrap();
/// let found = permutation(&Storage::from(&transposed)).unwrap();
/// assert_eq!(found.cycles(), [vec![0], vec![1, 3, 4, 2], vec![5]]);
/// assert_eq!((found.order(), found.is_even(), found.swaps()), (Some(4), false, 3));
/// ```
pub fn permutation(storage: &Storage) -> Result<Permutation, AnalysisError> {
    let all = offsets(storage)?;
    let least = all.iter().copied().min().unwrap_or(0);
    let mut taken = vec![false; all.len()];
    let mut images = Vec::with_capacity(all.len());
    for offset in &all {
        let image = offset.checked_sub(least).and_then(|image| usize::try_from(image).ok());
        let layout = || storage.text().into();
        let Some(place) = image.and_then(|image| taken.get_mut(image)) else {
            let what = "leaves gaps, and so reaches offset";
            return Err(AnalysisError::NotPermutation { layout: layout(), what, offset: *offset });
        };
        if *place {
            let what = "has several indices at offset";
            return Err(AnalysisError::NotPermutation { layout: layout(), what, offset: *offset });
        }
        *place = true;
        images.push(image.unwrap_or(0));
    }
    let mut cycles = Vec::new();
    let mut seen = vec![false; images.len()];
    for start in 0..images.len() {
        let mut cycle = Vec::new();
        let mut at = start;
        while let Some(place) = seen.get_mut(at).filter(|seen| !**seen) {
            *place = true;
            cycle.push(at as i64);
            at = images.get(at).copied().unwrap_or(start);
        }
        if !cycle.is_empty() {
            cycles.push(cycle);
        }
    }
    Ok(Permutation { cycles, size: storage.size() })
}

/// The differences between two layouts of the same elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distance {
    /// The number of elements.
    pub indices: i64,
    /// The number of elements whose offsets differ.
    pub moved: i64,
    /// The number of runs that move: consecutive indices that all move by the same distance.
    pub runs: i64,
    /// The first element whose offset differs.
    pub first: Option<i64>,
    /// The largest distance between the offsets of an element in the two layouts.
    pub farthest: i64,
    /// The number of swaps that turn one layout into the other in place; None unless both cover the
    /// same offsets, each once.
    pub swaps: Option<i64>,
}

/// Counts the elements that move when data is converted from one layout to another.
///
/// Errors: they differ in size ([`AnalysisError::Shape`]); as [`footprint`].
///
/// ```
/// use tilewright_layout::analysis::{Storage, distance};
/// use tilewright_layout::Layout;
///
/// let layout = |text: &str| Storage::from(&text.parse::<Layout>().unwrap());
/// let found = distance(&layout("(2,4):(1,2)"), &layout("(2,4):(4,1)")).unwrap();
/// assert_eq!((found.moved, found.first, found.farthest, found.swaps), (6, Some(1), 3, Some(4)));
/// ```
pub fn distance(from: &Storage, to: &Storage) -> Result<Distance, AnalysisError> {
    if from.size() != to.size() {
        let what = format!("it has {} elements, but {} has {}", from.size(), to.text(), to.size());
        return Err(AnalysisError::Shape { shape: from.shape().to_string().into(), what: what.into() });
    }
    let (old, new) = (offsets(from)?, offsets(to)?);
    let steps = old.iter().zip(&new).map(|(old, new)| i128::from(*new) - i128::from(*old));
    let (mut moved, mut runs, mut first, mut farthest, mut before) = (0, 0, None, 0_i128, 0);
    for (index, step) in steps.enumerate() {
        if step != 0 {
            moved += 1;
            first = first.or(Some(index as i64));
            runs += i64::from(step != before);
        }
        farthest = farthest.max(step.abs());
        before = step;
    }
    let farthest = i64::try_from(farthest).unwrap_or(i64::MAX);
    Ok(Distance { indices: from.size(), moved, runs, first, farthest, swaps: swaps(&old, &new) })
}

/// The number of swaps that move the elements from their old to their new offsets; None unless both
/// cover the same offsets, each once.
fn swaps(old: &[i64], new: &[i64]) -> Option<i64> {
    let ranked = |offsets: &[i64]| {
        let mut order: Vec<(i64, usize)> = offsets.iter().copied().zip(0..).collect();
        order.sort_unstable();
        order
    };
    let (old, new) = (ranked(old), ranked(new));
    let same = old.iter().zip(&new).all(|(a, b)| a.0 == b.0);
    let twice = old.iter().zip(old.iter().skip(1)).any(|(a, b)| a.0 == b.0);
    if !same || twice {
        return None;
    }
    // The element that belongs at each offset.
    let mut next = vec![0; old.len()];
    for ((_, here), (_, wanted)) in old.iter().zip(&new) {
        *next.get_mut(*here)? = *wanted;
    }
    let mut seen = vec![false; next.len()];
    let mut cycles = 0;
    for start in 0..next.len() {
        if seen.get(start) == Some(&false) {
            cycles += 1;
            let mut at = start;
            while let Some(place) = seen.get_mut(at).filter(|seen| !**seen) {
                *place = true;
                at = *next.get(at)?;
            }
        }
    }
    Some(next.len() as i64 - cycles)
}

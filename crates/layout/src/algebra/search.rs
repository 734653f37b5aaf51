//! Searches for inverses where no closed form is known: layouts with overlapping, mixed or
//! indivisible strides.
//!
//! Law of both searches: a result satisfies the law of its operation at every index, because each
//! step is checked against it. If the search for a right inverse ends before its limit, no longer
//! one exists; if the search for a left inverse does so without a result, none exists.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::algebra::coalesce::{coalesced, push_merged};
use crate::algebra::compose::{Outer, compose_outer};
use crate::ground::bounds::Wide;
use crate::limits::MAX_CANDIDATES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::refusal::interrupt::{self, Work};
use crate::value::layout::{Layout, Leaf, index_steps};
use crate::value::number::Extent;
use crate::value::tree::{Leaves, Tree};

/// The largest size of a layout for which a search tabulates the values.
pub(crate) const MAX_TABLE: i64 = 1 << 16;

/// A mode with known numbers: extent, stride, and the difference between the indices of neighbours
/// along it.
#[derive(Clone, Copy)]
struct SearchedMode {
    extent: i64,
    stride: i64,
    step: i64,
}

fn modes<N: Extent>(layout: &Layout<N>) -> Option<Vec<SearchedMode>> {
    let leaves = coalesced(layout.leaves())?;
    let steps = index_steps(&leaves)?;
    let mode = |(leaf, step): (&Leaf<N>, &N)| {
        Some(SearchedMode { extent: leaf.extent.known()?, stride: leaf.stride.known()?, step: step.known()? })
    };
    leaves.iter().zip(&steps).map(mode).collect()
}

fn to_layout<N: Extent>(modes: impl Iterator<Item = (i64, i64)>) -> Result<Layout<N>, LayoutError> {
    let mut leaves = Leaves::new();
    for (extent, stride) in modes {
        push_merged(&mut leaves, &Leaf { extent: N::from(extent), stride: N::from(stride) }).fits("inverse")?;
    }
    Layout::flat(leaves)
}

/// The result of a search for a right inverse.
pub(crate) struct Found<N: Extent> {
    /// A right inverse of more indices than were covered before; None if the search found none.
    pub(crate) longer: Option<Layout<N>>,
    /// Whether the search ended before its limits, so that no longer right inverse exists, or none
    /// longer than requested.
    pub(crate) complete: bool,
}

/// Searches for a right inverse of more than `covered` indices; the search stops at `most`.
///
/// A mode `r:e` extends a right inverse of `w` indices exactly when `e` is an index of offset `w`
/// and `L` is additive over the modes. Every layout can be split until its extents are prime, and a
/// part of a right inverse that ends at a running product is one too, so trying all prime `r` and
/// all `e` reaches the largest. One work limit covers all candidates and the compositions that test
/// them.
pub(crate) fn right_inverse<N: Extent>(layout: &Layout<N>, covered: &N, most: i64) -> Found<N> {
    try_right_inverse(layout, covered, most).unwrap_or(Found { longer: None, complete: false })
}

/// As [`right_inverse`]; None if a number is not known or not representable.
fn try_right_inverse<N: Extent>(layout: &Layout<N>, covered: &N, most: i64) -> Option<Found<N>> {
    let modes = modes(layout)?;
    let size: i64 = modes.iter().try_fold(1_i64, |size, mode| size.checked_mul(mode.extent))?;
    let plain: Leaves<Leaf> = modes.iter().map(|mode| Leaf { extent: mode.extent, stride: mode.stride }).collect();
    let mut outer = Outer::blank();
    outer.read(&plain).ok()?;
    let mut by_size = modes;
    by_size.sort_by_key(|mode| core::cmp::Reverse(mode.stride.unsigned_abs()));
    let greatest = reach(&by_size)?.1;
    // Every offset is a multiple of the common divisor of all strides.
    let common = by_size.iter().fold(0_i64, |common, mode| common.shared_divisor(&mode.stride));
    let most = if common == 1 { most } else { 1 };
    let mut search = Right {
        outer,
        modes: by_size,
        size,
        bound: greatest.checked_add(1)?.min(size).min(most),
        left: MAX_CANDIDATES,
        complete: true,
        leaves: Leaves::new(),
        best: (covered.known()?, None),
    };
    if search.best.0 < search.bound {
        search.extend(1);
    }
    let complete = search.complete || search.best.0 >= search.bound;
    let longer = match search.best.1 {
        Some(leaves) => Some(to_layout(leaves.iter().map(|leaf| (leaf.extent, leaf.stride))).ok()?),
        None => None,
    };
    Some(Found { longer, complete })
}

struct Right {
    outer: Outer<i64>,
    /// The modes, largest stride first. Modes of stride 0 are included, because a carry may pass
    /// through one.
    modes: Vec<SearchedMode>,
    size: i64,
    bound: i64,
    left: usize,
    /// Whether no limit has cut off a branch of the search.
    complete: bool,
    leaves: Leaves<Leaf>,
    best: (i64, Option<Leaves<Leaf>>),
}

impl Right {
    fn extend(&mut self, covered: i64) {
        if covered > self.best.0 {
            self.best = (covered, Some(self.leaves.clone()));
        }
        let mut indices = Vec::new();
        self.indices(0, Wide::from(covered), 0, &mut indices);
        for index in indices {
            for prime in primes() {
                if self.best.0 >= self.bound || prime > self.bound / covered {
                    break;
                }
                if self.left == 0 || self.outer.work.spend(self.modes.len() * (self.leaves.len() + 1)).is_err() {
                    self.complete = false;
                    return;
                }
                self.left -= 1;
                self.leaves.push(Leaf { extent: prime, stride: index });
                let fits = self.fits(covered * prime);
                if fits {
                    self.extend(covered * prime);
                }
                self.leaves.pop();
                if !fits {
                    break;
                }
            }
        }
    }

    /// Whether the candidate stays within the layout and is a right inverse for every offset below
    /// `covered`.
    fn fits(&mut self, covered: i64) -> bool {
        let reach = self
            .leaves
            .iter()
            .try_fold(0_i64, |reach, leaf| reach.checked_add((leaf.extent - 1).checked_mul(leaf.stride)?));
        let Ok(profile) = crate::Profile::flat(self.leaves.len()) else { return false };
        let candidate = Layout::from_valid(Tree::from_parts(profile, self.leaves.clone()));
        if reach.is_none_or(|reach| reach >= self.size) {
            return false;
        }
        match compose_outer(&mut self.outer, &candidate) {
            Ok(identity) => identity.equivalent(&Layout::from_valid(Tree::leaf(Leaf { extent: covered, stride: 1 }))),
            Err(LayoutError::Carry(_) | LayoutError::Uneven(_)) => false,
            Err(_) => {
                self.complete = false;
                false
            }
        }
    }

    /// All indices whose offset is `offset`: appended to `found`, each with `index` added.
    ///
    /// The remaining offset may exceed 64 bits, although the offset of every index fits.
    fn indices(&mut self, mode: usize, offset: Wide, index: i64, found: &mut Vec<i64>) {
        let Some((current, rest)) = self.modes.get(mode..).and_then(<[SearchedMode]>::split_first) else {
            if offset == 0 {
                found.push(index);
            }
            return;
        };
        let Some((least, greatest)) = reach(rest) else {
            self.complete = false;
            return;
        };
        let (least, greatest, stride) = (Wide::from(least), Wide::from(greatest), Wide::from(current.stride));
        let (extent, step, mut digit) = (Wide::from(current.extent), current.step, 0);
        while digit < extent {
            if found.len() >= MAX_CANDIDATES || self.outer.work.spend(4 + self.modes.len() - mode).is_err() {
                self.complete = false;
                return;
            }
            let remaining = offset - digit * stride;
            // If all strides have one sign, they bound the digit from one side: start at the first
            // digit that is possible, stop after the last.
            if remaining >= least && remaining <= greatest {
                self.indices(mode + 1, remaining, index + digit as i64 * step, found);
            } else if (stride >= 0 && remaining < least) || (stride <= 0 && remaining > greatest) {
                return;
            } else {
                let excess = if stride > 0 { remaining - greatest } else { least - remaining };
                digit += (excess / stride.abs() - 1).max(0);
            }
            digit += 1;
        }
    }
}

/// The least and the greatest offset of some modes.
fn reach(modes: &[SearchedMode]) -> Option<(i64, i64)> {
    modes.iter().try_fold((0_i64, 0_i64), |(least, greatest), mode| {
        let reach = (mode.extent - 1).checked_mul(mode.stride)?;
        Some((least.checked_add(reach.min(0))?, greatest.checked_add(reach.max(0))?))
    })
}

fn primes() -> impl Iterator<Item = i64> {
    (2_i64..).filter(|n| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0))
}

/// A left inverse, or the reason that there is none.
///
/// `R` is built from its innermost mode. At an offset `u` of the layout its value must be an index
/// of `u`; since `R(-u) = -R(u)`, only positive `u` are considered. The value `f` of a mode `r:f`
/// stays open until an offset determines it.
pub(crate) fn left_inverse<N: Extent>(layout: &Layout<N>) -> Result<Layout<N>, LayoutError> {
    const OP: &str = "left_inverse";
    let undecided = || LayoutError::Undecided { op: OP, limit: MAX_CANDIDATES };
    let numbers = || layout.leaves().iter().flat_map(|leaf| [&leaf.extent, &leaf.stride]);
    if let Some(unknown) = numbers().find(|number| number.known().is_none()) {
        return Err(LayoutError::open(OP, Condition::Known, unknown, &N::zero()));
    }
    let modes = modes(layout).fits(OP)?;
    let size = modes.iter().try_fold(1_i64, |size, mode| size.checked_mul(mode.extent));
    let Some(size) = size.filter(|size| *size <= MAX_TABLE) else { return Err(undecided()) };
    let mut indices: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for index in 0..size {
        let offset = modes
            .iter()
            .try_fold(0_i64, |sum, mode| sum.checked_add((index / mode.step % mode.extent).checked_mul(mode.stride)?));
        let offset = offset.fits(OP)?;
        if offset != 0 {
            let mirrored = if offset < 0 { -index } else { index };
            let magnitude = offset.checked_abs().fits(OP)?;
            indices.entry(magnitude).or_default().push(mirrored);
        }
    }
    let mut search = Left::new(indices.into_iter().collect(), size);
    match search.grow(1, 0) {
        SearchStep::Done => to_layout(search.found()),
        SearchStep::Failed if !search.has_ended() => {
            let pair = search.points.first().map_or((0, 0), |(offset, indices)| (*offset, indices[0]));
            Err(LayoutError::NoLeftInverse(alloc::boxed::Box::new(crate::refusal::evidence::NoInverse {
                offset: pair.0,
                index: pair.1,
            })))
        }
        SearchStep::Failed => interrupt::check(OP).and(Err(undecided())),
    }
}

/// A layout whose value at each of the offsets, in increasing order above 0, is one of the numbers
/// listed with that offset, each below `size` in magnitude; None if the search finds none.
pub(crate) fn through(points: Vec<(i64, Vec<i64>)>, size: i64) -> Option<Layout> {
    let mut search = Left::new(points, size);
    match search.grow(1, 0) {
        SearchStep::Done => to_layout(search.found()).ok(),
        SearchStep::Failed => None,
    }
}

#[derive(PartialEq)]
enum SearchStep {
    Done,
    Failed,
}

/// A mode of the candidate. It begins at offset `begin`; its value is open until an offset
/// determines it.
struct CandidateMode {
    begin: i64,
    extent: i64,
    value: Option<i64>,
}

struct Left {
    /// The offsets above 0, each with the indices that have it.
    points: Vec<(i64, Vec<i64>)>,
    last: i64,
    size: i64,
    left: usize,
    /// The remaining work limit.
    work: Work,
    modes: Vec<CandidateMode>,
    /// Offsets that depend on more than one open value.
    waiting: Vec<usize>,
}

impl Left {
    fn new(points: Vec<(i64, Vec<i64>)>, size: i64) -> Left {
        let last = points.last().map_or(0, |(offset, _)| *offset);
        let (modes, waiting) = (Vec::new(), Vec::new());
        Left { points, last, size, left: MAX_CANDIDATES, work: Work::new(), modes, waiting }
    }

    /// Extents and strides of the modes.
    fn found(&self) -> impl Iterator<Item = (i64, i64)> {
        self.modes.iter().map(|mode| (mode.extent, mode.value.unwrap_or(0)))
    }

    /// Whether a limit is reached or an interrupt was requested: a result that was not found may
    /// exist.
    fn has_ended(&self) -> bool {
        self.left == 0 || self.work.is_spent()
    }

    /// Adds modes that begin at `begin`; the points before number `placed` are satisfied.
    fn grow(&mut self, begin: i64, placed: usize) -> SearchStep {
        if placed == self.points.len() {
            return self.settle();
        }
        let most = (self.last / begin).saturating_add(1);
        // If a mode fails at a point, every longer mode that includes the point fails.
        let mut extent = most;
        while extent > 1 {
            if self.has_ended() {
                return SearchStep::Failed;
            }
            self.modes.push(CandidateMode { begin, extent, value: None });
            let end = self.points.partition_point(|(offset, _)| *offset / extent < begin);
            if self.place(placed, end, begin, extent) == SearchStep::Done {
                return SearchStep::Done;
            }
            self.modes.pop();
            extent -= 1;
        }
        SearchStep::Failed
    }

    /// Places the points from number `next` up to number `end`, then grows further.
    ///
    /// The recursion happens only at a choice, which determines the value of a mode; so its depth
    /// is at most twice the number of modes.
    fn place(&mut self, mut next: usize, end: usize, begin: i64, extent: i64) -> SearchStep {
        let waiting = self.waiting.len();
        let step = loop {
            self.left = self.left.saturating_sub(1);
            if self.has_ended() {
                break SearchStep::Failed;
            }
            if next == end {
                break match begin.checked_mul(extent) {
                    Some(begin) => self.grow(begin, end),
                    None => SearchStep::Failed,
                };
            }
            let (sum, open) = self.known(next);
            match open.as_slice() {
                [] if self.allows(next, sum) => {}
                [] => break SearchStep::Failed,
                [(mode, digit)] => {
                    break self.choose(next, *mode, *digit, sum, |search| search.place(next + 1, end, begin, extent));
                }
                _ => self.waiting.push(next),
            }
            next += 1;
        };
        if step == SearchStep::Failed {
            self.waiting.truncate(waiting);
        }
        step
    }

    /// Tries every value of an open mode that the indices of a point allow.
    fn choose(
        &mut self,
        point: usize,
        mode: usize,
        digit: i64,
        sum: Wide,
        mut then: impl FnMut(&mut Left) -> SearchStep,
    ) -> SearchStep {
        for number in 0.. {
            let Some(index) = self.points.get(point).and_then(|(_, indices)| indices.get(number)) else { break };
            let rest = Wide::from(*index) - sum;
            if rest % Wide::from(digit) != 0 {
                continue;
            }
            let Ok(value) = i64::try_from(rest / Wide::from(digit)) else { continue };
            self.left = self.left.saturating_sub(1);
            if self.has_ended() {
                break;
            }
            self.modes[mode].value = Some(value);
            if self.consistent() && then(self) == SearchStep::Done {
                return SearchStep::Done;
            }
            self.modes[mode].value = None;
        }
        SearchStep::Failed
    }

    /// Determines the values that are still open, from the points that depend on them.
    fn settle(&mut self) -> SearchStep {
        let waiting: Vec<usize> = self.waiting.clone();
        for point in waiting {
            let (sum, open) = self.known(point);
            match open.as_slice() {
                [] => {}
                [(mode, digit)] => return self.choose(point, *mode, *digit, sum, Left::settle),
                [(mode, _), ..] => {
                    let mode = *mode;
                    for value in 1 - self.size..self.size {
                        self.left = self.left.saturating_sub(1);
                        if self.has_ended() {
                            return SearchStep::Failed;
                        }
                        self.modes[mode].value = Some(value);
                        if self.consistent() && self.settle() == SearchStep::Done {
                            return SearchStep::Done;
                        }
                    }
                    self.modes[mode].value = None;
                    return SearchStep::Failed;
                }
            }
        }
        SearchStep::Done
    }

    /// Whether no waiting point is violated: neither a point whose values are all determined, nor
    /// one that leaves no value for its last open mode.
    fn consistent(&self) -> bool {
        self.waiting.iter().all(|point| {
            if self.work.is_spent() {
                return false;
            }
            let (sum, open) = self.known(*point);
            match open.as_slice() {
                [] => self.allows(*point, sum),
                [(_, digit)] => {
                    let indices = self.points.get(*point).map_or(&[][..], |(_, indices)| indices);
                    let _ = self.work.spend(indices.len());
                    indices.iter().any(|index| (Wide::from(*index) - sum) % Wide::from(*digit) == 0)
                }
                _ => true,
            }
        })
    }

    fn allows(&self, point: usize, index: Wide) -> bool {
        let indices = self.points.get(point).map_or(&[][..], |(_, indices)| indices);
        // If the work limit is exceeded here, the search ends at its next step.
        let _ = self.work.spend(indices.len() / 8);
        i64::try_from(index).is_ok_and(|index| indices.contains(&index))
    }

    /// The value of the determined modes at a point, and the open modes with their digits there.
    ///
    /// The digits add up to less than 2^63, so the sum of their products is below 2^126.
    fn known(&self, point: usize) -> (Wide, Vec<(usize, i64)>) {
        let _ = self.work.spend(2 * self.modes.len() + 1);
        let offset = self.points.get(point).map_or(0, |(offset, _)| *offset);
        let (mut sum, mut open) = (0, Vec::new());
        for (number, mode) in self.modes.iter().enumerate() {
            let digit = offset / mode.begin % mode.extent;
            match mode.value {
                _ if digit == 0 => {}
                Some(value) => sum += Wide::from(digit) * Wide::from(value),
                None => open.push((number, digit)),
            }
        }
        (sum, open)
    }
}

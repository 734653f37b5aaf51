//! Left inverses of layouts with XOR strides whose extents are not powers of two.
//!
//! Law: the search finds modes `t_l:^f_l` exactly when for some extents and strides the value at
//! every offset `y` of the layout is an index of `y`, unless it reaches its limit.
//!
//! The digits of `y` depend on the extents alone, and for given digits the value is linear in the
//! bits of the strides. So the extents are searched, innermost first, the longest before the
//! others, and each offset in turn adds one equation, whose right side is its index. If several
//! indices of an offset are consistent, each is tried. A mode that contradicts an offset does so
//! for every extent that includes the offset, so it must end before.

use smallvec::SmallVec;

use super::OffsetTable;
use super::unknowns::{Digits, Unknowns};
use crate::limits::MAX_XOR_STEPS;
use crate::refusal::interrupt::is_requested;
use crate::xor::function::XorModes;

/// The most choices that may be pending.
const MAX_CHOICES: usize = 256;

/// The reason why there is no result.
pub(super) enum NoLeftInverse {
    /// The search was cut off.
    Halted,
    /// There is no left inverse: no candidate is correct at all offsets up to this one, which has
    /// this index.
    None { offset: u64, index: u64 },
}

/// The modes of a left inverse.
pub(super) fn search(table: &OffsetTable) -> Result<XorModes, NoLeftInverse> {
    let mut offsets: alloc::vec::Vec<u64> = table.offsets.iter().map(|(offset, _)| *offset).collect();
    offsets.dedup();
    let mut search = LeftInverseSearch {
        table,
        offsets,
        steps: MAX_XOR_STEPS,
        choices: 0,
        complete: true,
        farthest: 0,
        found: None,
    };
    let begin = search.offsets.partition_point(|offset| *offset == 0);
    // Offset 0 has an index, 0.
    search.extend(&mut SmallVec::new(), &Unknowns::default(), 1, begin);
    match search.found {
        Some(modes) => Ok(modes),
        None if search.has_ended() || !search.complete => Err(NoLeftInverse::Halted),
        None => {
            let offset = search.offsets.get(search.farthest).copied().unwrap_or(0);
            let index = table.indices(offset).first().copied().unwrap_or(0);
            Err(NoLeftInverse::None { offset, index })
        }
    }
}

struct LeftInverseSearch<'a> {
    table: &'a OffsetTable,
    /// Each offset once, in increasing order.
    offsets: alloc::vec::Vec<u64>,
    steps: usize,
    /// The number of pending choices.
    choices: usize,
    /// Whether no choice was left out.
    complete: bool,
    /// The position of the largest offset that some candidate reached, and at which it failed.
    farthest: usize,
    found: Option<XorModes>,
}

impl LeftInverseSearch<'_> {
    fn has_ended(&self) -> bool {
        self.steps == 0 || is_requested()
    }

    /// Adds a mode after `extents`, which cover `covered`; the offsets before position `next` are
    /// correct.
    fn extend(&mut self, extents: &mut SmallVec<[u64; 8]>, known: &Unknowns, covered: u64, next: usize) -> bool {
        let mut known = known.clone();
        known.push();
        self.place(extents, known, covered, next)
    }

    /// Makes the offsets from position `next` on correct with a last mode that continues; if that
    /// fails, ends this mode earlier.
    fn place(&mut self, extents: &mut SmallVec<[u64; 8]>, known: Unknowns, covered: u64, next: usize) -> bool {
        let first = next;
        let (mut next, mut known) = (next, known);
        // The state of the unknowns after this many offsets were placed.
        let mut marks: SmallVec<[(usize, Unknowns); 2]> = SmallVec::new();
        marks.push((next, known.clone()));
        while let Some(offset) = self.offsets.get(next).copied() {
            self.steps = self.steps.saturating_sub(1);
            if self.has_ended() {
                return false;
            }
            let digits = digits(extents, offset);
            if let (sum, true) = known.sum(&digits) {
                if !sum.is_some_and(|index| self.table.has(index, offset)) {
                    break;
                }
                next += 1;
                continue;
            }
            let mut fitting: SmallVec<[Unknowns; 1]> = SmallVec::new();
            for index in self.table.indices(offset) {
                let mut with = known.clone();
                if with.equate(&digits, index, &mut self.steps) {
                    fitting.push(with);
                }
                if self.has_ended() {
                    return false;
                }
            }
            if fitting.len() > 1 {
                if self.choices == MAX_CHOICES {
                    self.complete = false;
                    break;
                }
                self.choices += 1;
                let found = fitting.into_iter().any(|with| self.place(extents, with, covered, next + 1));
                self.choices -= 1;
                if found || self.has_ended() {
                    return found;
                }
                break;
            }
            let Some(only) = fitting.pop() else { break };
            known = only;
            next += 1;
            marks.push((next, known.clone()));
        }
        let largest = self.offsets.last().copied().unwrap_or(0);
        if next == self.offsets.len() {
            let extent = largest / covered + 1;
            if known.bound(extents.len(), extent - 1, &mut self.steps) {
                extents.push(extent);
                self.found = Some(extents.iter().copied().zip(known.strides()).collect());
                extents.pop();
                return true;
            }
        }
        self.farthest = self.farthest.max(next.min(self.offsets.len() - 1));
        self.end_earlier(extents, &marks, covered, first..next)
    }

    /// Ends the last mode after each number of offsets that it has placed, the largest number
    /// first, and continues with another mode.
    fn end_earlier(
        &mut self,
        extents: &mut SmallVec<[u64; 8]>,
        marks: &[(usize, Unknowns)],
        covered: u64,
        placed: core::ops::Range<usize>,
    ) -> bool {
        let mut marks = marks.iter().rev().peekable();
        for next in (placed.start..=placed.end).rev() {
            while marks.peek().is_some_and(|(at, _)| *at > next) {
                marks.next();
            }
            let (Some((_, known)), Some(offset)) = (marks.peek().copied(), self.offsets.get(next)) else { continue };
            // The placed offsets are below the end, and the next one is not.
            let before = next.checked_sub(1).and_then(|before| self.offsets.get(before)).copied().unwrap_or(0);
            let (least, most) = ((before / covered + 1).max(2), offset / covered);
            for extent in (least..=most).rev() {
                self.steps = self.steps.saturating_sub(1);
                if self.has_ended() {
                    return false;
                }
                let mut known = known.clone();
                if !known.bound(extents.len(), extent - 1, &mut self.steps) {
                    continue;
                }
                extents.push(extent);
                // The product is at most the offset.
                let found = self.extend(extents, &known, covered * extent, next);
                extents.pop();
                if found {
                    return true;
                }
            }
        }
        false
    }
}

/// The digits of a number, the last of which has no end.
fn digits(extents: &[u64], number: u64) -> Digits {
    let mut rest = number;
    let mut digits: Digits = extents.iter().map(|extent| (rest % extent, rest /= extent).0).collect();
    digits.push(rest);
    digits
}

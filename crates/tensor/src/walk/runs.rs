//! The runs that make up a walk.
//!
//! Law: the offsets of a walk, in index order, are those of its runs, one run after another. A run
//! of a layout without an outer map either has one step, so that its offset `i` is `first + i *
//! step`; or it has a table, so that its offset is `first + table[i]`. A run of a map has a table,
//! and its offset `i` is `first ^ table[i]`.
//!
//! Functions that are called once for each run are cold and, as `extern "C"`, do not unwind. So the
//! loop around them keeps its variables in registers, and saves them only for the call.
//!
//! Runs are counted by an odometer, a mixed-radix counter whose digits are the modes above the run.
//! It has two hands (positions), one for each end of the remaining runs.

use smallvec::SmallVec;
use tilewright_layout::{Composed, Layout, Leaf, OuterMap, Xor};

use super::tables::{Aligned, Each, MOST, TableBlock, added_block, linear_block, value};

/// Consecutive offsets of a walk.
///
/// Invariant, for a run with a table: the table has `length` numbers, and does not change until the
/// run is used up.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Run {
    /// The first offset; with a table, the number that is added to or XORed with its entries.
    pub first: i64,
    pub step: i64,
    pub table: *const i64,
    pub length: i64,
}

impl Run {
    pub const NONE: Run = Run { first: 0, step: 0, table: std::ptr::null(), length: 0 };
}

/// Runs of the same length at equal distances: the first, and the number of further ones.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RunRows {
    pub run: Run,
    pub more: i64,
    pub pitch: i64,
}

/// A mode of the odometer, and each hand's index in it.
#[derive(Clone, Copy)]
struct Digit {
    leaf: Leaf,
    front: i64,
    back: i64,
}

/// How the odometer's values become offsets.
#[derive(Clone)]
enum Through {
    /// They are the offsets. If there is a table, its entries are added to a run's offset.
    Nothing,
    /// Through a map that is linear over bits. A run begins `bias` after the value. The table holds
    /// the map's values of the differences.
    Table { map: OuterMap, bias: i64 },
    /// A map that is linear over bits, and runs within the aligned blocks of a table.
    Aligned(Aligned),
    /// Through a map that is evaluated at every index. The table has a half for each end.
    Each(Each),
}

/// The runs between the first and the last, which are removed one by one.
#[derive(Clone)]
pub(super) struct Middle {
    /// The range of remaining indices, in whole runs.
    at: i64,
    end: i64,
    /// The number of elements of a run, of all runs of the fastest digit, and of the last of those,
    /// which may be shorter.
    whole: i64,
    row: i64,
    last: i64,
    step: i64,
    digits: SmallVec<[Digit; 8]>,
    /// The beginning of the run of each hand. That of the back is computed when it is first needed.
    front: i64,
    back: i64,
    back_known: bool,
    through: Through,
    table: Vec<i64>,
}

/// The leaves with an extent above 1, with leaves that continue each other merged.
fn merged(leaves: &[Leaf]) -> SmallVec<[Leaf; 8]> {
    let mut modes: SmallVec<[Leaf; 8]> = SmallVec::new();
    for leaf in leaves.iter().filter(|leaf| leaf.extent > 1) {
        match modes.last_mut() {
            // The size of a layout is representable.
            Some(last) if last.stride.checked_mul(last.extent) == Some(leaf.stride) => last.extent *= leaf.extent,
            _ => modes.push(*leaf),
        }
    }
    modes
}

fn digits(leaves: &[Leaf]) -> SmallVec<[Digit; 8]> {
    leaves.iter().map(|leaf| Digit { leaf: *leaf, front: 0, back: 0 }).collect()
}

fn size(leaves: &[Leaf]) -> i64 {
    leaves.iter().map(|leaf| leaf.extent).product()
}

impl Middle {
    fn new(size: i64, whole: i64, first: i64, modes: &[Leaf], through: Through, table: Vec<i64>) -> Middle {
        let row = whole * modes.first().map_or(1, |mode| mode.extent);
        let digits = digits(modes);
        Middle {
            at: 0,
            end: size,
            whole,
            row,
            last: whole,
            step: 0,
            digits,
            front: first,
            back: 0,
            back_known: false,
            through,
            table,
        }
    }

    /// The runs of a layout; as an error the only run, if there is just one.
    #[inline(never)]
    pub fn of_layout(leaves: &[Leaf]) -> Result<Box<Middle>, Run> {
        let leaves = &*merged(leaves);
        // A cursor finds the end of a run by comparing offsets, so they must differ.
        let has_distinct_offsets = |leaf: &Leaf| leaf.stride != 0 && leaf.stride.checked_mul(leaf.extent).is_some();
        let (run, modes) = match leaves {
            [leaf, modes @ ..] if has_distinct_offsets(leaf) => (*leaf, modes),
            modes => (Leaf { extent: 1, stride: 1 }, modes),
        };
        if modes.is_empty() {
            return Err(Run { step: run.stride, length: run.extent, ..Run::NONE });
        }
        let middle = Middle::new(size(leaves), run.extent, 0, modes, Through::Nothing, Vec::new());
        Ok(Box::new(Middle { step: run.stride, ..middle }))
    }

    /// The runs of a composed layout. They use tables if the map is linear over bits and the inner
    /// layout allows it.
    #[inline(never)]
    pub fn of_composed(composed: &Composed) -> Box<Middle> {
        let (map, offset, leaves) = (composed.outer(), *composed.offset(), &*merged(composed.inner().leaves()));
        let size = size(leaves);
        let Some(TableBlock { table, modes, bias, last }) = linear_block(map, offset, leaves) else {
            if let Some((aligned, table)) = Aligned::new(map, offset, leaves) {
                return Box::new(Middle::new(size, 1, 0, &[], Through::Aligned(aligned), table));
            }
            return Middle::of_each(Each::new(map, offset, leaves), size);
        };
        let through = Through::Table { map: map.clone(), bias };
        let mut middle = Middle::new(size, table.len() as i64, offset, &modes, through, table);
        middle.shorten(last);
        Box::new(middle)
    }

    /// The runs of a layout with XOR strides that cannot be written as a composed one.
    #[inline(never)]
    pub fn of_xor(layout: &Layout<Xor>) -> Box<Middle> {
        Middle::of_each(Each::of_xor(layout), layout.size())
    }

    /// The runs of a layout that is evaluated at every index.
    fn of_each(each: Each, size: i64) -> Box<Middle> {
        let whole = size.min(MOST);
        Box::new(Middle::new(size, whole, 0, &[], Through::Each(each), vec![0; 2 * whole as usize]))
    }

    /// Sets the number of elements of the last run of a row.
    fn shorten(&mut self, last: i64) {
        self.row -= self.whole - last;
        self.last = last;
    }

    /// Replaces short runs by longer ones with a table, if walking to the end then costs less.
    pub fn tabulate(&mut self) {
        // Contiguous elements are taken by vector instructions, several at once.
        let few = if self.step == 1 { 8 } else { 48 };
        if self.at > 0
            || self.back_known
            || self.whole >= few
            || self.end < 64
            || !matches!(self.through, Through::Nothing)
        {
            return;
        }
        let leaves: SmallVec<[Leaf; 8]> = self.digits.iter().map(|digit| digit.leaf).collect();
        let run = (0..self.whole).map(|index| index.wrapping_mul(self.step)).collect();
        let TableBlock { table, modes, last, .. } = added_block(run, &leaves, self.end);
        *self = Middle::new(self.end, table.len() as i64, self.front, &modes, Through::Nothing, table);
        self.shorten(last);
    }

    /// The number of remaining elements.
    #[inline]
    pub fn left(&self) -> i64 {
        self.end - self.at
    }

    /// The table to which runs point.
    pub fn table(&self) -> *const i64 {
        self.table.as_ptr()
    }

    /// The run of `length` elements that begins at a value of the odometer.
    #[inline]
    fn run(&self, place: i64, length: i64) -> Run {
        let first = match &self.through {
            // A map has a value at every place of the layout that it was composed with.
            Through::Table { map, bias } => value(map, place.wrapping_add(*bias)),
            _ => place,
        };
        let table = if self.table.is_empty() { std::ptr::null() } else { self.table.as_ptr() };
        Run { first, step: self.step, table, length }
    }

    /// The run of the next indices, evaluated one by one, in the given half of the table.
    fn evaluate(&mut self, at: i64, length: i64, half: i64) -> Option<Run> {
        let Through::Each(each) = &self.through else { return None };
        let table = self.table.as_mut_ptr().wrapping_add((half * self.whole) as usize);
        // SAFETY: the table has two halves of this many numbers. No run uses that of this end any
        // more, and no reference to the other is made.
        each.fill(at, unsafe { std::slice::from_raw_parts_mut(table, length as usize) });
        Some(Run { first: 0, step: 0, table, length })
    }

    /// The number of elements of the run of a hand, given the hand's index in the fastest digit.
    #[inline]
    fn length(&self, hand: impl Fn(&Digit) -> i64) -> i64 {
        match self.digits.first() {
            Some(digit) if hand(digit) + 1 == digit.leaf.extent => self.last,
            _ => self.whole,
        }
    }

    /// Removes and returns the first remaining run; an empty one if there is none.
    ///
    /// The half of the table at the front must not be in use.
    #[cold]
    #[inline(never)]
    pub extern "C" fn first_run(&mut self) -> Run {
        if self.at == self.end {
            return Run::NONE;
        }
        if let Through::Aligned(aligned) = &self.through {
            let run = aligned.first(&self.table, self.at, self.left());
            self.at += run.length;
            return run;
        }
        if let Some(run) = self.evaluate(self.at, self.whole.min(self.left()), 0) {
            self.at += run.length;
            return run;
        }
        let run = self.run(self.front, self.length(|digit| digit.front));
        self.at += run.length;
        self.advance(0);
        run
    }

    /// Removes and returns the last remaining run; an empty one if there is none.
    ///
    /// The half of the table at the back must not be in use.
    #[cold]
    #[inline(never)]
    pub extern "C" fn last_run(&mut self) -> Run {
        if self.at == self.end {
            return Run::NONE;
        }
        if let Through::Aligned(aligned) = &self.through {
            let run = aligned.last(&self.table, self.end, self.left());
            self.end -= run.length;
            return run;
        }
        let length = self.whole.min(self.left());
        if let Some(run) = self.evaluate(self.end - length, length, 1) {
            self.end -= run.length;
            return run;
        }
        if !self.back_known {
            self.back_known = true;
            self.back = self.move_hand(self.end - 1, |digit| &mut digit.back);
        }
        let run = self.run(self.back, self.length(|digit| digit.back));
        self.end -= run.length;
        for digit in &mut self.digits {
            if digit.back > 0 {
                digit.back -= 1;
                self.back = self.back.wrapping_sub(digit.leaf.stride);
                break;
            }
            digit.back = digit.leaf.extent - 1;
            self.back = self.back.wrapping_add(digit.leaf.stride.wrapping_mul(digit.back));
        }
        run
    }

    /// Removes and returns the runs of one length that remain in the fastest digit; without
    /// elements if there are none.
    ///
    /// Only for layouts without an outer map.
    #[cold]
    #[inline(never)]
    pub extern "C" fn rows(&mut self) -> RunRows {
        if self.at == self.end {
            return RunRows { run: Run::NONE, more: 0, pitch: 0 };
        }
        let length = self.length(|digit| digit.front);
        let run = self.run(self.front, length);
        let Some(digit) = self.digits.first_mut() else {
            self.at = self.end;
            return RunRows { run, more: 0, pitch: 0 };
        };
        let (pitch, at) = (digit.leaf.stride, digit.front);
        let ends_early = self.last != self.whole && at + 1 < digit.leaf.extent;
        let mut count = digit.leaf.extent - at - i64::from(ends_early);
        if self.back_known {
            // The last of them may have been removed from the back.
            count = count.min((self.end - self.at) / self.whole);
        }
        self.at += count * length;
        digit.front += count;
        self.front = self.front.wrapping_add(pitch.wrapping_mul(count));
        if digit.front == digit.leaf.extent {
            self.front = self.front.wrapping_sub(pitch.wrapping_mul(digit.front));
            digit.front = 0;
            self.advance(1);
        }
        RunRows { run, more: count - 1, pitch }
    }

    /// Skips the runs before that of element number `count`, which must remain. Returns how many
    /// elements to skip within that run.
    pub fn skip(&mut self, count: i64) -> i64 {
        let index = self.at + count;
        if matches!(self.through, Through::Each(_) | Through::Aligned(_)) {
            self.at = index;
            return 0;
        }
        self.front = self.move_hand(index, |digit| &mut digit.front);
        let within = index % self.row % self.whole;
        self.at = index - within;
        within
    }

    /// Moves a hand to the run that contains an index. Returns the beginning of the run.
    fn move_hand(&mut self, index: i64, hand: impl Fn(&mut Digit) -> &mut i64) -> i64 {
        // The beginning of the run of index 0.
        let mut place = self
            .digits
            .iter()
            .fold(self.front, |place, digit| place.wrapping_sub(digit.front.wrapping_mul(digit.leaf.stride)));
        let mut rest = index / self.row;
        let fastest = index % self.row / self.whole;
        for (number, digit) in self.digits.iter_mut().enumerate() {
            let at = if number == 0 { fastest } else { rest % digit.leaf.extent };
            if number > 0 {
                rest /= digit.leaf.extent;
            }
            place = place.wrapping_add(at.wrapping_mul(digit.leaf.stride));
            *hand(digit) = at;
        }
        place
    }

    /// Moves the front hand to the next index of a digit. If the digit has none, moves to the next
    /// index of the digit after it.
    #[inline]
    fn advance(&mut self, digit: usize) {
        for digit in self.digits.iter_mut().skip(digit) {
            digit.front += 1;
            // Partial sums may wrap, but every offset is representable.
            self.front = self.front.wrapping_add(digit.leaf.stride);
            if digit.front < digit.leaf.extent {
                return;
            }
            self.front = self.front.wrapping_sub(digit.leaf.stride.wrapping_mul(digit.leaf.extent));
            digit.front = 0;
        }
    }
}

//! The position of a walk within a run.
//!
//! Law: a cursor yields the remaining offsets of its run, from the first on, or, at the back, from
//! the last on. It compares with its end: one comparison and one addition for each offset.

use super::runs::Run;

/// The remaining offsets of a run.
///
/// Invariant, of a run with a table: the numbers from `table` up to `last` are those of the
/// remaining offsets, and do not change until they are used.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    /// The next offset; with a table, the number that is XORed with its entries.
    first: i64,
    /// The step, for a layout without an outer map. It is not 0, and no multiple of it up to the
    /// end wraps to 0.
    step: i64,
    end: i64,
    table: *const i64,
    last: *const i64,
}

impl Cursor {
    pub const NONE: Cursor = Cursor { first: 0, step: 0, end: 0, table: std::ptr::null(), last: std::ptr::null() };

    /// The cursor at the beginning of a run.
    #[inline(always)]
    pub fn new(run: Run) -> Cursor {
        let end = run.first.wrapping_add(run.step.wrapping_mul(run.length));
        Cursor {
            first: run.first,
            step: run.step,
            end,
            table: run.table,
            last: run.table.wrapping_add(run.length as usize),
        }
    }

    #[inline(always)]
    pub fn is_empty<const MAPPED: bool>(&self) -> bool {
        if MAPPED { self.table == self.last } else { self.first == self.end }
    }

    /// The first of the remaining offsets.
    ///
    /// # Safety
    /// At least one offset remains.
    #[inline(always)]
    pub unsafe fn take<const MAPPED: bool>(&mut self) -> i64 {
        if MAPPED {
            // SAFETY: the caller vouches for an offset, so that by the invariant the table has its
            // number.
            let number = unsafe { *self.table };
            self.table = self.table.wrapping_add(1);
            return number ^ self.first;
        }
        let offset = self.first;
        self.first = offset.wrapping_add(self.step);
        offset
    }

    /// The next offset of a cursor at the back. With a map it is the last offset. Without one the
    /// cursor was [reversed](Cursor::reversed), so it is the first.
    ///
    /// # Safety
    /// At least one offset remains.
    #[inline(always)]
    pub unsafe fn take_back<const MAPPED: bool>(&mut self) -> i64 {
        if MAPPED {
            self.last = self.last.wrapping_sub(1);
            // SAFETY: the caller vouches for an offset, so that by the invariant the table has its
            // number.
            return unsafe { *self.last } ^ self.first;
        }
        // SAFETY: the caller vouches for an offset.
        unsafe { self.take::<false>() }
    }

    /// Turns a cursor at the front into one at the back, and the reverse. A run without a map
    /// begins at its other end then.
    #[inline(always)]
    pub fn reversed<const MAPPED: bool>(self) -> Cursor {
        if MAPPED {
            return self;
        }
        let (first, end) = (self.end.wrapping_sub(self.step), self.first.wrapping_sub(self.step));
        Cursor { first, end, step: self.step.wrapping_neg(), ..self }
    }

    /// The number of remaining offsets.
    #[inline(always)]
    pub fn length<const MAPPED: bool>(&self) -> i64 {
        if MAPPED {
            return ((self.last as usize).wrapping_sub(self.table as usize) / size_of::<i64>()) as i64;
        }
        self.end.wrapping_sub(self.first).checked_div(self.step).unwrap_or(0)
    }

    /// Skips the first `count` offsets; at least that many remain.
    pub fn skip<const MAPPED: bool>(&mut self, count: i64) {
        if MAPPED {
            self.table = self.table.wrapping_add(count as usize);
        } else {
            self.first = self.first.wrapping_add(count.wrapping_mul(self.step));
        }
    }

    /// Takes the remaining offsets as a run; then none remain.
    pub fn finish<const MAPPED: bool>(&mut self) -> Run {
        let length = self.length::<MAPPED>();
        let run = Run { first: self.first, step: self.step, table: self.table, length };
        self.skip::<MAPPED>(length);
        run
    }

    /// The cursor at a run of length `span` whose first offset is `by` after the end of this one,
    /// for a layout without an outer map.
    #[inline(always)]
    pub fn after(&self, by: i64, span: i64) -> Cursor {
        let first = self.end.wrapping_add(by);
        Cursor { first, end: first.wrapping_add(span), ..*self }
    }

    /// The cursor at the same position in a clone of the table.
    pub fn moved(self, from: *const i64, to: *const i64) -> Cursor {
        if self.table.is_null() {
            return self;
        }
        let place = |pointer: *const i64| to.wrapping_byte_add((pointer as usize).wrapping_sub(from as usize));
        Cursor { table: place(self.table), last: place(self.last), ..self }
    }
}

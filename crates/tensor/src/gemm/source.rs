//! A factor as a task reads it: where it lies, or packed.
//!
//! **Law.** The slices of some rows at some depth hold, side by side, what the micro-kernels read of these rows. Those of a factor that is read in place are there;
//! those of another are there once they have been filled.
#![allow(unsafe_code)]

use std::ops::Range;

use super::kernel::Kernels;
use super::pack::{Pack, Panels};
use super::product::{Factor, Places};
use super::tile::{Ahead, Slices};
use super::workspace::LINE;

/// The steps along K that are packed at once, of all slices: whole words, and whole squares of them.
const DEEP: usize = 64;

/// The bytes of memory, side by side, that are read at once of narrow slices.
const SIDE_BY_SIDE: usize = 256;

/// A factor during a task.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, S, W: 'static, C: 'static> {
    pub factor: &'a Factor<'a, S>,
    pub kernels: &'a Kernels<W, C>,
    /// The strides along the rows and along K of a factor that is read where it lies.
    pub strides: Option<[isize; 2]>,
    /// The rows of a slice.
    pub width: usize,
    /// The rows of words below each slice.
    pub extra: usize,
    /// Whether each slice takes the place of the one before.
    pub alone: bool,
    pub pack: Pack<S, W>,
    /// Where it is packed.
    pub to: *mut W,
    /// Where the numbers of a slice are gathered.
    pub scratch: *mut S,
}

impl<S: Copy + Default, W: Copy, C> Source<'_, S, W, C> {
    /// The words of a slice of so many steps.
    fn length(&self, steps: usize) -> usize {
        self.width * (steps.div_ceil(self.kernels.group) + self.extra)
    }

    /// The slices of the rows from `row` on, at some depth.
    pub fn slices(&self, row: usize, depth: &Range<usize>) -> Slices<W> {
        match self.strides {
            Some([along, step]) => {
                let offset = along * row as isize + step * depth.start as isize;
                let from = self.factor.from.wrapping_offset(offset).cast();
                Slices { from, slice: along * self.width as isize, step, row: along }
            }
            None => {
                let slice = if self.alone { 0 } else { self.length(depth.len()) };
                Slices { from: self.to, slice: slice as isize, step: self.width as isize, row: 1 }
            }
        }
    }

    /// The lines in which the numbers of some rows lie at some depth, if those of each row are side by side.
    pub fn rows_ahead(&self, rows: &Range<usize>, depth: &Range<usize>) -> Ahead {
        match &self.factor.places {
            Places::Lines(_, along) if along.stride(0) == Some(1) => self.ahead(rows, depth),
            _ => Ahead::NOTHING,
        }
    }

    /// The same, also if those at each step are side by side.
    pub fn ahead(&self, rows: &Range<usize>, depth: &Range<usize>) -> Ahead {
        let Places::Lines(down, along) = &self.factor.places else { return Ahead::NOTHING };
        let (Some(down), Some(along)) = (down.stride(0), along.stride(0)) else { return Ahead::NOTHING };
        let (number, stride, length) = match (down, along) {
            (_, 1) => (rows.len(), down, depth.len()),
            (1, _) => (depth.len(), along, rows.len()),
            _ => return Ahead::NOTHING,
        };
        let offset = down.wrapping_mul(rows.start as isize).wrapping_add(along.wrapping_mul(depth.start as isize));
        let (from, bytes) = (self.factor.from.wrapping_offset(offset).cast(), size_of::<S>());
        let lines = if rows.is_empty() || depth.is_empty() { 0 } else { (length * bytes).div_ceil(LINE) };
        Ahead { from, row: stride.wrapping_mul(bytes as isize), rows: number, lines }
    }

    /// Writes the offsets of the steps at some depth, for the slices to be filled.
    pub fn steps(&self, depth: &Range<usize>, steps: &mut [isize]) {
        if let (Places::Lines(_, along), None) = (&self.factor.places, self.strides) {
            along.fill(depth.start, steps);
        }
    }

    /// Packs some rows, of which the first is the first of slice `slice`, at a depth whose steps have been written. A factor that is read in place is there.
    ///
    /// # Safety
    ///
    /// There is room for as many slices as the rows take, or for one where each takes the place of the one before; and for the numbers of a slice where the factor is gathered.
    pub unsafe fn fill(
        &self,
        slice: usize,
        rows: Range<usize>,
        depth: &Range<usize>,
        offsets: &mut [isize],
        steps: &mut [isize],
    ) {
        if self.strides.is_some() {
            return;
        }
        let (Some(offsets), Some(steps)) = (offsets.get_mut(..rows.len()), steps.get_mut(..depth.len())) else {
            return;
        };
        let (width, length) = (self.width, self.length(depth.len()));
        let by = Panels { width, apart: length };
        let several = SIDE_BY_SIDE.div_ceil(width * size_of::<S>());
        let place = |number: usize| {
            let slice = if self.alone { 0 } else { slice + number };
            self.to.wrapping_add(slice * length)
        };
        match &self.factor.places {
            Places::Lines(down, _) => {
                down.fill(rows.start, offsets);
                // Some steps of all slices, then the next: memory is read in longer pieces.
                for (part, steps) in steps.chunks(DEEP).enumerate() {
                    let first = part * DEEP / self.kernels.group * width;
                    for (number, rows) in offsets.chunks(several * width).enumerate() {
                        let to = place(several * number).wrapping_add(first);
                        // SAFETY: the invariant of the factor, and the caller's.
                        unsafe { (self.pack)(self.factor.from, rows, steps, by, to) };
                    }
                }
            }
            Places::Each(at) => {
                for (t, step) in steps.iter_mut().enumerate() {
                    *step = (t * width) as isize;
                }
                for (number, first) in rows.clone().step_by(width).enumerate() {
                    let Some(offsets) = offsets.get_mut(..width.min(rows.end - first)) else { return };
                    for (r, offset) in offsets.iter_mut().enumerate() {
                        *offset = r as isize;
                        for (t, step) in depth.clone().enumerate() {
                            // SAFETY: the invariant of the factor; there is room for a slice.
                            unsafe {
                                let from = self.factor.from.wrapping_offset(at(first + r, step));
                                self.scratch.add(t * width + r).write(*from);
                            }
                        }
                    }
                    // SAFETY: the numbers have just been written.
                    unsafe { (self.pack)(self.scratch, offsets, steps, by, place(number)) };
                }
            }
        }
        if self.extra > 0 {
            for number in 0..rows.len().div_ceil(width) {
                // SAFETY: the slices have been packed, and have room for the words below them.
                unsafe { (self.kernels.below)(place(number), width, depth.len().div_ceil(self.kernels.group)) };
            }
        }
    }
}

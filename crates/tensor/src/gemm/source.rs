//! An operand as a task reads it: in place, or packed.
//!
//! **Law.** The slices of a range of rows over a range of K contain the numbers of these rows as
//! micro-kernels read them. The slices of an operand that is read in place are always valid. Those
//! of a packed operand are valid once they have been filled.
#![allow(unsafe_code)]

use std::ops::Range;

use super::kernel::KernelSet;
use super::pack::{Pack, Panels};
use super::prefetch::Prefetch;
use super::product::{MatrixPlaces, ProductOperand};
use super::tile::Slices;
use crate::memory::LINE;

/// The steps along K that are packed at once for all slices: whole words, and whole squares of
/// them.
const PACKED_STEPS: usize = 64;

/// The bytes of contiguous memory that are read at once if slices are narrow.
const CONTIGUOUS_BYTES: usize = 256;

/// An operand during a task.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, S, W: 'static, C: 'static> {
    pub operand: &'a ProductOperand<'a, S>,
    pub kernels: &'a KernelSet<W, C>,
    /// The strides along the rows and along K of an operand that is read in place; None if it is
    /// packed.
    pub strides: Option<[isize; 2]>,
    /// The rows of a slice: MR of A, NR of B.
    pub width: usize,
    /// The number of rows of correction words below each slice.
    pub extra: usize,
    /// Whether each slice overwrites the one before.
    pub single_slice: bool,
    pub pack: Pack<S, W>,
    /// The memory for packed slices.
    pub to: *mut W,
    /// The memory in which a slice's numbers are gathered if the layout is not additive.
    pub gathered: *mut S,
}

impl<S: Copy + Default, W: Copy, C> Source<'_, S, W, C> {
    /// The number of words of a slice of this many steps.
    fn length(&self, steps: usize) -> usize {
        self.width * (steps.div_ceil(self.kernels.group) + self.extra)
    }

    /// The slices of the rows from `row` on, over a range of K.
    pub fn slices(&self, row: usize, depth: &Range<usize>) -> Slices<W> {
        match self.strides {
            Some([along, step]) => {
                let offset = along * row as isize + step * depth.start as isize;
                let from = self.operand.from.wrapping_offset(offset).cast();
                Slices { from, slice: along * self.width as isize, step, row: along }
            }
            None => {
                let slice = if self.single_slice { 0 } else { self.length(depth.len()) };
                Slices { from: self.to, slice: slice as isize, step: self.width as isize, row: 1 }
            }
        }
    }

    /// The cache lines of a range of rows over a range of K, if the numbers of each row are
    /// contiguous.
    pub fn lines_of_rows(&self, rows: &Range<usize>, depth: &Range<usize>) -> Prefetch {
        match &self.operand.places {
            MatrixPlaces::Lines(_, along) if along.stride(0) == Some(1) => self.lines(rows, depth),
            _ => Prefetch::NONE,
        }
    }

    /// The cache lines of a range of rows over a range of K, if the numbers of each row, or those
    /// of each step, are contiguous.
    pub fn lines(&self, rows: &Range<usize>, depth: &Range<usize>) -> Prefetch {
        let MatrixPlaces::Lines(down, along) = &self.operand.places else { return Prefetch::NONE };
        let (Some(down), Some(along)) = (down.stride(0), along.stride(0)) else { return Prefetch::NONE };
        let (number, stride, length) = match (down, along) {
            (_, 1) => (rows.len(), down, depth.len()),
            (1, _) => (depth.len(), along, rows.len()),
            _ => return Prefetch::NONE,
        };
        let offset = down.wrapping_mul(rows.start as isize).wrapping_add(along.wrapping_mul(depth.start as isize));
        let (from, bytes) = (self.operand.from.wrapping_offset(offset).cast(), size_of::<S>());
        let lines = if rows.is_empty() || depth.is_empty() { 0 } else { (length * bytes).div_ceil(LINE) };
        Prefetch { from, row: stride.wrapping_mul(bytes as isize), rows: number, lines }
    }

    /// Writes the offsets of the steps of a range of K, which filling slices needs.
    pub fn steps(&self, depth: &Range<usize>, steps: &mut [isize]) {
        if let (MatrixPlaces::Lines(_, along), None) = (&self.operand.places, self.strides) {
            along.fill(depth.start, steps);
        }
    }

    /// Packs rows, beginning with the first row of slice `slice`, over a range of K whose step
    /// offsets have been written. Does nothing for an operand that is read in place.
    ///
    /// # Safety
    ///
    /// There is room for as many slices as the rows take, or for the single slice; and for the
    /// numbers of a slice where they are gathered.
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
        let several = CONTIGUOUS_BYTES.div_ceil(width * size_of::<S>());
        let place = |number: usize| {
            let slice = if self.single_slice { 0 } else { slice + number };
            self.to.wrapping_add(slice * length)
        };
        match &self.operand.places {
            MatrixPlaces::Lines(down, _) => {
                down.fill(rows.start, offsets);
                // Packs some steps of all slices, then the next steps, so that memory is read in
                // longer pieces.
                for (part, steps) in steps.chunks(PACKED_STEPS).enumerate() {
                    let first = part * PACKED_STEPS / self.kernels.group * width;
                    for (number, rows) in offsets.chunks(several * width).enumerate() {
                        let to = place(several * number).wrapping_add(first);
                        // SAFETY: the offsets are those of rows and steps of the operand, by whose
                        // invariant the numbers may be read; the caller has room for the slices.
                        unsafe { (self.pack)(self.operand.from, rows, steps, by, to) };
                    }
                }
            }
            MatrixPlaces::Each(at) => {
                for (t, step) in steps.iter_mut().enumerate() {
                    *step = (t * width) as isize;
                }
                for (number, first) in rows.clone().step_by(width).enumerate() {
                    let Some(offsets) = offsets.get_mut(..width.min(rows.end - first)) else { return };
                    for (r, offset) in offsets.iter_mut().enumerate() {
                        *offset = r as isize;
                        for (t, step) in depth.clone().enumerate() {
                            // SAFETY: the function gives places of the operand, by whose invariant
                            // they may be read; the caller has room for the numbers of a slice.
                            unsafe {
                                let from = self.operand.from.wrapping_offset(at(first + r, step));
                                self.gathered.add(t * width + r).write(*from);
                            }
                        }
                    }
                    // SAFETY: the numbers at these offsets have just been written; the caller has
                    // room for the slice.
                    unsafe { (self.pack)(self.gathered, offsets, steps, by, place(number)) };
                }
            }
        }
        if self.extra > 0 {
            for number in 0..rows.len().div_ceil(width) {
                // SAFETY: the slices have been packed, with room for the extra rows of words below
                // them.
                unsafe { (self.kernels.write_extra)(place(number), width, depth.len().div_ceil(self.kernels.group)) };
            }
        }
    }
}

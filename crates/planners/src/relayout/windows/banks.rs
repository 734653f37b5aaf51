//! Wavefronts of shared memory for a tile.
//!
//! Law: a load of a warp takes as many wavefronts as the most words of one bank that its lanes
//! access. The count is for the first load of the middle warp of a block, in the second tile along
//! each axis, because there runs begin inside words and chunks if they do so in any tile.

use super::super::Sides;
use super::WindowsPlan;
use crate::units::{LANES, div_up};

/// Banks of shared memory, each a word of 4 bytes wide: as many as a warp has lanes.
const BANKS: i64 = LANES;

/// The most words in one bank that the lanes access, at `words` words each.
fn wavefronts(places: impl Iterator<Item = i64>, words: i64) -> usize {
    let mut banks: [Vec<i64>; BANKS as usize] = std::array::from_fn(|_| Vec::new());
    for word in places.flat_map(|place| place..place + words) {
        let bank = &mut banks[word.rem_euclid(BANKS) as usize];
        if !bank.contains(&word) {
            bank.push(word);
        }
    }
    banks.iter().map(Vec::len).max().unwrap_or(0)
}

impl WindowsPlan {
    /// The threads of the middle warp.
    fn warp(&self) -> std::ops::Range<i64> {
        let first = self.threads / BANKS / 2 * BANKS;
        first..first + BANKS.min(self.threads)
    }

    /// Wavefronts of loading one element by all lanes, relative to the minimum, averaged over the
    /// elements of a chunk.
    pub(super) fn loads(&self, sides: &Sides) -> f64 {
        let axes = &sides.axes;
        let bytes = i64::from(sides.source.bytes());
        let chunks = div_up(self.window(), self.chunk);
        let second =
            axes.iter().zip(&self.tile.extents).map(|(axis, part)| if axis.extent > 2 * part { *part } else { 0 });
        let starts: Vec<i64> = second.collect();
        let begin: i64 = starts.iter().zip(axes).map(|(start, axis)| start * axis.destination).sum();
        // The first element of the chunk of each lane along its run, and the coordinates of the
        // run.
        let lanes = self.warp().filter_map(|thread| {
            let column = self.targets.first_of(thread / self.along)?;
            let (mut digits, mut begin) = (vec![0; axes.len()], sides.bases.1 + begin);
            for (axis, digit) in self.targets.axes.iter().zip(column) {
                digits[*axis] = digit;
                begin += digit * axes[*axis].destination;
            }
            let skew = if self.skewed { (-begin).rem_euclid(self.align) } else { 0 };
            Some((skew + (thread % self.along).min(chunks - 1) * self.chunk, digits))
        });
        let mut lanes: Vec<(i64, Vec<i64>)> = lanes.collect();
        let mut sum = 0;
        for element in 0..self.chunk {
            let places = lanes.iter_mut().map(|(first, digits)| {
                let mut at = *first + element;
                for (number, axis) in self.tile.destination.iter().enumerate() {
                    let last = number + 1 == self.tile.destination.len();
                    let extent = if last { i64::MAX } else { self.read[*axis] };
                    digits[*axis] = at % extent;
                    at /= extent;
                }
                self.placed(sides, &starts, digits) * bytes / 4
            });
            sum += wavefronts(places, (bytes / 4).max(1));
        }
        sum as f64 / self.chunk as f64 / (bytes as f64 / 4.0).max(1.0)
    }

    /// The word at which the row of an element begins. The element has these coordinates, and 0
    /// along the axes of a row.
    fn row_of(&self, digits: &[i64]) -> i64 {
        let row: i64 = digits.iter().zip(&self.places).map(|(digit, step)| digit * step).sum();
        let counted = (0..digits.len())
            .filter(|axis| !self.tile.source.contains(axis) && !self.tile.beside.contains(axis))
            .map(|axis| digits[axis] * (self.places[axis] / self.word / self.pitch));
        row / self.word + if self.padded { counted.sum::<i64>() / self.chunk } else { 0 }
    }

    /// The position of an element in a tile that begins at `starts`.
    fn placed(&self, sides: &Sides, starts: &[i64], digits: &[i64]) -> i64 {
        let inside = |axis: &usize| self.tile.source.contains(axis);
        let mut row = digits.to_vec();
        self.tile.source.iter().for_each(|axis| row[*axis] = 0);
        let along: i64 = self.tile.source.iter().map(|axis| digits[*axis] * self.places[*axis]).sum();
        let mut place = self.row_of(&row) * self.word + along;
        if self.phased {
            let step = |axis: usize| sides.axes[axis].source;
            let begin: i64 = (0..digits.len()).map(|axis| starts[axis] * step(axis)).sum();
            let row: i64 = (0..digits.len()).filter(|axis| !inside(axis)).map(|axis| digits[axis] * step(axis)).sum();
            place += (sides.bases.0 + begin + row).rem_euclid(self.word);
        }
        place
    }
}

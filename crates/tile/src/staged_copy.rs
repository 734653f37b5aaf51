//! Which thread copies which elements of a tile to shared memory.
//!
//! Law: a tile consists of lines that are contiguous in memory. A thread copies chunks of 16 bytes,
//! or of 8 bytes if a warp has no more to copy. Consecutive threads copy the chunks of a line, then
//! those of the next lines. After the last thread, the first one continues with the line that
//! follows.

use crate::held::Held;

const LANES: i64 = tilewright_kernel::program::WARP_LANES as i64;

/// The copy of a tile of 16-bit elements by the threads of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StagedCopy {
    /// The number of elements of a chunk.
    pub(crate) chunk: i64,
    /// The number of threads that copy one line.
    pub(crate) threads_of_line: i64,
    /// The number of lines that all threads copy at once.
    pub(crate) lines_at_once: i64,
    /// The number of lines of the tile.
    lines: i64,
}

impl StagedCopy {
    /// The copy of `lines` lines of `run` elements, both powers of two.
    pub(crate) fn new(run: i64, lines: i64, threads: i64) -> StagedCopy {
        let chunk = if run * lines >= 8 * LANES { 8 } else { 4 };
        let threads_of_line = (run / chunk).min(threads);
        StagedCopy { chunk, threads_of_line, lines_at_once: (threads / threads_of_line).min(lines), lines }
    }

    /// The number of threads that copy.
    pub(crate) fn movers(self) -> i64 {
        self.threads_of_line * self.lines_at_once
    }

    /// The distribution of a tile with one number for each line: a thread holds the numbers of the
    /// lines that it copies.
    pub(crate) fn of_lines(self, thread_bits: usize) -> Held {
        let at_once = self.lines_at_once.trailing_zeros() as u8;
        let mut threads = vec![None; self.threads_of_line.trailing_zeros() as usize];
        threads.extend((0..at_once).map(Some));
        threads.resize(thread_bits, None);
        Held { threads, values: (at_once..self.lines.trailing_zeros() as u8).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_numbers_of_the_lines_that_it_copies() {
        for (run, lines, threads) in
            [(64, 64, 32), (64, 64, 128), (16, 16, 32), (8, 16, 64), (256, 2, 32), (512, 4, 32)]
        {
            let copy = StagedCopy::new(run, lines, threads);
            let held = copy.of_lines(threads.trailing_zeros() as usize);
            assert!(copy.movers() <= threads);
            for thread in 0..copy.movers() {
                for value in 0..held.values() {
                    let line = thread / copy.threads_of_line + value * copy.lines_at_once;
                    assert_eq!(held.element(thread, value), line, "{copy:?}");
                }
            }
            assert_eq!(held.values() * copy.lines_at_once, lines, "{copy:?}");
        }
    }
}

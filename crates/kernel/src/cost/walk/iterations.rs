//! The loops of a walk.
//!
//! Law: the iterations of a loop are walked one after another. If the walk may extrapolate, and the
//! loop-carried values grow by the same amount in each of the last periods, whole periods are
//! skipped, and counted like the last ones. The last iterations are walked, because they may meet
//! an edge.

use super::sums::{BlockSums, growth};
use super::{Uncounted, Walk};
use crate::interpret::code::Looped;
use crate::interpret::lanes::{Lanes, low, signed};
use crate::program::WARP_LANES;
use crate::program::register::Register;

/// Iterations of a long loop that are walked before later ones are extrapolated.
const WALKED_ITERATIONS: u64 = 32;
/// The iterations of the shortest loop that is extrapolated.
const LONG_LOOP_ITERATIONS: u64 = 4 * WALKED_ITERATIONS;

/// The states of a long loop in its first iterations.
#[derive(Default)]
struct LoopHistory {
    /// The loop-carried values after each iteration; None for unknown ones.
    carried: Vec<Vec<Option<Lanes>>>,
    /// After each iteration of the second half: the counts of the nodes in the loop,
    sums: Vec<BlockSums>,
    /// and the bytes in flight.
    under_way: Vec<u64>,
}

impl Walk<'_> {
    /// Walks the iterations of a loop with these lanes, and returns the node after it.
    pub(super) fn iterations(&mut self, looped: &Looped<'_>, mask: u32) -> Result<usize, Uncounted> {
        let step = looped.step;
        let (from, all) = self.extent(looped, mask)?;
        for carried in &step.carried {
            self.set(carried.current, carried.initial);
        }
        let each = i64::from(step.step.max(1));
        let to = from.saturating_add(i64::try_from(all).unwrap_or(i64::MAX).saturating_mul(each));
        let mut history = LoopHistory::default();
        let (mut index, mut iteration) = (from, 0_u64);
        while index < to {
            self.registers[step.index.index()] = [index as u64 & 0xffff_ffff; WARP_LANES];
            self.known[step.index.index()] = true;
            self.range(looped.start + 1, looped.end, mask)?;
            let next = self.carry(looped);
            index += each;
            iteration += 1;
            if !self.multiplies || all < LONG_LOOP_ITERATIONS || iteration > WALKED_ITERATIONS {
                continue;
            }
            history.carried.push(next);
            if iteration >= WALKED_ITERATIONS / 2 {
                history.sums.push(self.sums.part(looped.start + 1, looped.end));
                history.under_way.push(self.under_way.now());
            }
            if iteration == WALKED_ITERATIONS {
                index += self.pass_over(looped, &history, all) as i64 * each;
            }
        }
        for carried in &step.carried {
            self.set(carried.result, carried.current);
        }
        Ok(looped.end + 1)
    }

    /// The first index of a loop, and the number of its iterations.
    fn extent(&mut self, looped: &Looped<'_>, mask: u32) -> Result<(i64, u64), Uncounted> {
        let step = looped.step;
        [step.from, step.to].into_iter().for_each(|end| self.under_way.read(end));
        if !self.is_known(step.from) || !self.is_known(step.to) {
            return Err(Uncounted::Loop { source: *self.program.source(step.source) });
        }
        let lane = mask.trailing_zeros() as usize % WARP_LANES;
        let number = |register: Register| signed(self.registers[register.index()][lane], 32);
        let (from, to) = (number(step.from), number(step.to));
        let all = u64::try_from((to - from).max(0)).unwrap_or(0).div_ceil(u64::from(step.step.max(1)));
        if step.until.is_none() {
            return Ok((from, all));
        }
        // The loop runs over indices that are claimed in order.
        let (own, clusters) = self.cluster();
        Ok((from, all.saturating_sub(own).div_ceil(clusters)))
    }

    /// Ends an iteration: updates the loop-carried values, and returns those that are known.
    fn carry(&mut self, looped: &Looped<'_>) -> Vec<Option<Lanes>> {
        let step = looped.step;
        // A parallel assignment: the next value of one variable may be the current value of
        // another.
        let value = |next: Register| self.is_known(next).then(|| self.registers[next.index()]);
        let next: Vec<Option<Lanes>> = step.carried.iter().map(|carried| value(carried.next)).collect();
        step.until.iter().for_each(|until| self.under_way.read(*until));
        let renamed = step.carried.iter().map(|carried| (std::slice::from_ref(&carried.next), carried.current));
        self.under_way.rename(renamed);
        for (carried, next) in step.carried.iter().zip(&next) {
            self.known[carried.current.index()] = next.is_some();
            if let Some(next) = next {
                self.registers[carried.current.index()] = *next;
            }
        }
        next
    }

    /// Skips iterations of a loop that repeat the previous ones, given the number of all
    /// iterations. Returns the number of skipped iterations.
    fn pass_over(&mut self, looped: &Looped<'_>, history: &LoopHistory, all: u64) -> u64 {
        let carried = &looped.step.carried;
        let widths: Vec<u32> =
            carried.iter().map(|carried| self.program.widths[carried.current.index()].bits()).collect();
        let Some((period, growth)) = growth(&history.carried, &widths) else { return 0 };
        let LoopHistory { sums, under_way, .. } = history;
        // The bytes in flight no longer change.
        if under_way.iter().zip(&under_way[period..]).any(|(before, after)| before != after) {
            return 0;
        }
        self.under_way.pass_over();
        let periods = (all - WALKED_ITERATIONS - WALKED_ITERATIONS / 2) / period as u64;
        let passed = periods * period as u64;
        let whole = sums.len() - 1 - (sums.len() - 1) % period;
        self.sums.multiply(looped.start + 1, &sums[sums.len() - 1 - whole], passed, whole as u64);
        self.claimed = self.claimed.saturating_add(passed);
        for ((carried, growth), bits) in carried.iter().zip(&growth).zip(&widths) {
            let register = &mut self.registers[carried.current.index()];
            for (value, growth) in register.iter_mut().zip(growth) {
                *value = value.wrapping_add(growth.wrapping_mul(periods)) & low(*bits);
            }
        }
        passed
    }
}

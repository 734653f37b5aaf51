//! Scans (running sums and similar) along a mode of a distributed tile.
//!
//! Law: element `i` along the mode becomes the combination of elements 0 to `i`, in this order,
//! each once. The combination must be associative, because the grouping is unspecified.
//!
//! The index along the mode consists of digits, the fastest first, some of them in the index of a
//! value, the others in that of a thread. The scan processes one digit after another. Below the
//! current digit, everything is scanned already: each part has a total, and each part adds the
//! totals of the parts before it. Within a thread, that is a pass through registers; within a warp,
//! shuffles in doubling steps; between warps, the totals go through shared memory.

use tilewright_layout::Slot;

use super::Build;
use super::distributed::Distributed;
use super::exchange::Exchange;
use super::lanes::Sources;
use super::number::{Flag, Num};
use super::reduction::Reduction;
use crate::distribution::Digit;
use crate::error::{KernelError, Reason};
use crate::program::WARP_LANES;
use crate::program::operation::{Comparison, Number, Operation};
use crate::program::register::Width;
use crate::program::{Location, Source};

/// A digit of a value's index, or of a thread's index.
enum ScanDigit {
    Value(Digit),
    Thread(Digit),
}

impl<'k> Distributed<'k> {
    /// The inclusive scan along a mode: each element is combined with all elements before it.
    ///
    /// Errors: there is no such mode; the type has no arithmetic; a mode of the distribution goes
    /// along this mode and another one together.
    #[track_caller]
    pub fn scan(&self, mode: usize, reduction: Reduction) -> Result<Distributed<'k>, KernelError> {
        self.scanned(mode, reduction, false, "scan", Location::caller())
    }

    /// The exclusive scan: as [`Distributed::scan`], without the element itself. The first element
    /// along the mode becomes the identity: 0 for sums, 1 for products; for minima and maxima
    /// infinity, or the end of the range of an integer type.
    ///
    /// ```
    /// use tilewright_kernel::{Distribution, Kernel, Reduction, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let held = Distribution::new(128, "(32,4):(4,1)")?;
    /// let kernel = Kernel::build("before", |k| {
    ///     let x = k.input::<i32>("x", "128:1")?.load_distributed(&held)?;
    ///     k.output::<i32>("y", "128:1")?.store_distributed(&x.scan_before(0, Reduction::Sum)?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &[2_i32; 128])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<i32>("y")?[..4], [0, 2, 4, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Distributed::scan`].
    #[track_caller]
    pub fn scan_before(&self, mode: usize, reduction: Reduction) -> Result<Distributed<'k>, KernelError> {
        self.scanned(mode, reduction, true, "scan_before", Location::caller())
    }

    fn scanned(
        &self,
        mode: usize,
        reduction: Reduction,
        before: bool,
        statement: &'static str,
        location: Location,
    ) -> Result<Distributed<'k>, KernelError> {
        let refuse = |refusal: Reason| refusal.at(statement, location);
        let build = self.fragment.build;
        build.core().begin(Source { statement, location });
        // Each part of the distribution goes along this mode alone, or not along it at all.
        self.held.along_others(&[mode]).map_err(refuse)?;
        let along = |digit: &Digit| digit.steps.iter().find(|(own, _)| *own == mode).map(|(_, step)| *step);
        let values = self.held.value_digits().into_iter().map(ScanDigit::Value);
        let mut parts: Vec<(i64, ScanDigit)> = self
            .held
            .thread_digits()
            .into_iter()
            .flat_map(|digit| within_and_across(digit, self.held.threads()))
            .map(ScanDigit::Thread)
            .chain(values)
            .filter_map(|part| {
                let (ScanDigit::Value(digit) | ScanDigit::Thread(digit)) = &part;
                Some((along(digit)?, part))
            })
            .collect();
        parts.sort_by_key(|(step, _)| *step);
        let mut totals = self.fragment.numbers_at(statement, location)?;
        let mut scanned = match before {
            true => vec![build.number_of(self.element(), reduction.neutral()); totals.len()],
            false => totals.clone(),
        };
        let mut done: Vec<(i64, i64)> = Vec::new();
        for (_, part) in parts {
            match part {
                ScanDigit::Value(digit) => in_registers(&digit, &mut scanned, &mut totals, reduction),
                ScanDigit::Thread(digit) => {
                    let numbers = (scanned.as_mut_slice(), totals.as_mut_slice());
                    build.in_threads(self, &digit, &done, numbers, reduction).map_err(refuse)?;
                    done.push((digit.below, digit.extent));
                }
            }
        }
        build.core().begin(Source { statement, location });
        self.with_values(&scanned).map_err(refuse)
    }
}

/// Splits a digit of a thread's index that counts both lanes and warps into one that counts lanes
/// and one that counts warps.
fn within_and_across(digit: Digit, threads: i64) -> Vec<Digit> {
    let lanes = WARP_LANES as i64;
    let in_warps = threads % lanes == 0 && digit.below < lanes && lanes % digit.below == 0;
    let within = if in_warps { digit.extent.min(lanes / digit.below) } else { 1 };
    if within == 1 || within == digit.extent || digit.extent % within != 0 {
        return vec![digit];
    }
    let steps = digit.steps.iter().map(|(mode, step)| (*mode, step * within)).collect();
    let across = Digit { below: digit.below * within, extent: digit.extent / within, steps };
    vec![Digit { extent: within, ..digit }, across]
}

/// Scans values that differ only in one digit, in the order of the digit.
fn in_registers<'k>(digit: &Digit, scanned: &mut [Num<'k>], totals: &mut [Num<'k>], reduction: Reduction) {
    for first in (0..scanned.len()).filter(|value| digit.of(*value as i64) == 0) {
        let at = |number: i64| first + (number * digit.below) as usize;
        let mut before = totals[at(0)];
        for number in 1..digit.extent {
            scanned[at(number)] = reduction.of(before, scanned[at(number)]);
            before = reduction.of(before, totals[at(number)]);
        }
        for number in 0..digit.extent {
            totals[at(number)] = before;
        }
    }
}

impl Build {
    fn in_threads<'k>(
        &'k self,
        tile: &Distributed<'k>,
        digit: &Digit,
        scanned_before: &[(i64, i64)],
        (scanned, totals): (&mut [Num<'k>], &mut [Num<'k>]),
        reduction: Reduction,
    ) -> Result<(), Reason> {
        let lanes = WARP_LANES as i64;
        let within = digit.below * digit.extent;
        if tile.held.threads() % lanes == 0 && within <= lanes && lanes % within == 0 {
            self.in_warp(digit, scanned, totals, reduction)
        } else {
            self.across(tile, digit, scanned_before, (scanned, totals), reduction)
        }
    }

    /// True if the digit of the thread's index is at least this.
    fn at_least(&self, digit: &Digit, least: i64) -> Result<Flag<'_>, Reason> {
        let mut core = self.core();
        let thread = core.thread()?;
        let own = core.digit(&thread, digit.below, digit.extent)?;
        let own = core.lower(&own, Width::Bits32)?;
        let least = core.constant(least as u64, Width::Bits32);
        let compare = Operation::Compare(Comparison::GreaterEqual, Number::U32);
        let register = core.pure(compare, [own, least], Width::Predicate);
        drop(core);
        Ok(Flag { build: self, register })
    }

    fn in_warp<'k>(
        &'k self,
        digit: &Digit,
        scanned: &mut [Num<'k>],
        totals: &mut [Num<'k>],
        reduction: Reduction,
    ) -> Result<(), Reason> {
        // The lane whose digit has another value.
        let lane_with = |value: &dyn Fn(i64) -> i64| {
            Sources(std::array::from_fn(|lane| {
                let own = digit.of(lane as i64);
                (lane as i64 + (value(own) - own) * digit.below) as u8
            }))
        };
        let fetch = |number: Num<'k>, sources: &Sources| {
            let register = self.core().fetched(number.register(), sources);
            Num::new(self, register, number.element())
        };
        // Values of one part have the same total, which is fetched once.
        let mut known: Vec<(Num<'k>, Num<'k>, Num<'k>)> = Vec::new();
        for value in 0..scanned.len() {
            let own = totals[value];
            if let Some((_, before, total)) = known.iter().find(|(of, ..)| of.register() == own.register()) {
                scanned[value] = self.at_least(digit, 1)?.select(reduction.of(*before, scanned[value]), scanned[value]);
                totals[value] = *total;
                continue;
            }
            // The totals of all parts up to this one; their number doubles in each step.
            let mut sum = own;
            let mut step = 1;
            while step < digit.extent {
                let before = fetch(sum, &lane_with(&|own| (own - step).max(0)));
                sum = self.at_least(digit, step)?.select(reduction.of(before, sum), sum);
                step *= 2;
            }
            let before = fetch(sum, &lane_with(&|own| (own - 1).max(0)));
            scanned[value] = self.at_least(digit, 1)?.select(reduction.of(before, scanned[value]), scanned[value]);
            totals[value] = fetch(sum, &lane_with(&|_| digit.extent - 1));
            known.push((own, before, totals[value]));
        }
        Ok(())
    }

    fn across<'k>(
        &'k self,
        tile: &Distributed<'k>,
        digit: &Digit,
        scanned_before: &[(i64, i64)],
        (scanned, totals): (&mut [Num<'k>], &mut [Num<'k>]),
        reduction: Reduction,
    ) -> Result<(), Reason> {
        let (member, members) = Exchange::number(self, [digit])?;
        // Threads that differ in digits that are already scanned have the same total. One of them
        // writes it.
        let others = tile.held.thread_digits().into_iter().filter(|own| !own.copies());
        let others = others.flat_map(|own| within_and_across(own, tile.held.threads()));
        let others =
            others.filter(|own| own.below != digit.below && !scanned_before.contains(&(own.below, own.extent)));
        let others: Vec<Digit> = others.collect();
        let (set, sets) = Exchange::number(self, &others)?;
        let mut same = tile.held.copy_digits();
        same.extend(scanned_before);
        let exchange = Exchange { member, members, set, sets };
        // Values of one part have the same total, which is written once.
        let mut lists: Vec<Num<'k>> = Vec::new();
        let mut lists_of = Vec::new();
        for total in totals.iter() {
            let place = lists.iter().position(|own| own.register() == total.register());
            lists_of.push(place.unwrap_or(lists.len()));
            if place.is_none() {
                lists.push(*total);
            }
        }
        let left = [(tile.element(), lists.clone())];
        let arrays = self.leave(&exchange, &same, &left)?;
        for list in 0..lists.len() {
            let parts = self.taken(&arrays, &exchange, list, &Slot::All)?.remove(0);
            // The combination of all parts before that of this thread. The first part has none
            // before it.
            let (mut sum, mut before) = (parts[0], parts[0]);
            for (number, part) in parts.into_iter().enumerate().skip(1) {
                before = self.at_least(digit, number as i64)?.select(sum, before);
                sum = reduction.of(sum, part);
            }
            let first = self.at_least(digit, 1)?;
            for value in (0..scanned.len()).filter(|value| lists_of[*value] == list) {
                scanned[value] = first.select(reduction.of(before, scanned[value]), scanned[value]);
                totals[value] = sum;
            }
        }
        arrays.iter().for_each(|array| self.return_scratch(array));
        Ok(())
    }
}

//! How threads partition the coordinates of a box.
//!
//! Law: every coordinate of some axes belongs to one group of threads and one iteration, and is
//! `digit + groups * iteration` along each axis. So an iteration accesses what the first iteration
//! accessed, plus a constant. A thread divides its index once, and the address of each iteration is
//! that of the first one plus a constant.

use tilewright_kernel::{Build, Flag, KernelError};
use tilewright_layout::symbolic::Expr;

use super::sum::{both, plus, times};
use crate::units::div_up;

/// The coordinates of some axes, distributed over groups of threads.
#[derive(Debug, Clone)]
pub(super) struct Share {
    pub(super) axes: Vec<usize>,
    extents: Vec<i64>,
    groups: Vec<i64>,
    /// Iterations along each axis; the last axis has `again` times as many, in a loop.
    iterations: Vec<i64>,
    again: i64,
    /// The number of groups of threads: as many as have a coordinate, or more.
    all: i64,
}

/// The coordinate of a thread in an iteration.
#[derive(Debug, Clone)]
pub(super) struct ThreadIteration {
    /// Along each axis: the coordinate of the thread in the first iteration, and the constant that
    /// this iteration adds.
    pub(super) digits: Vec<(Expr, i64)>,
    /// What the loop adds along the last axis: its index, and the step of the index.
    pub(super) again: (Expr, i64),
}

impl ThreadIteration {
    /// The coordinate along an axis, by the position of the axis in the list.
    pub(super) fn at(&self, number: usize) -> Result<Expr, KernelError> {
        let (digit, further) = &self.digits[number];
        let here = plus(digit, &Expr::from(*further))?;
        if number + 1 < self.digits.len() { Ok(here) } else { plus(&here, &times(&self.again.0, self.again.1)?) }
    }

    /// The coordinate along each axis, as terms of a sum with these strides.
    pub(super) fn terms(&self, steps: impl Fn(usize) -> i64) -> (Vec<(Expr, i64)>, i64) {
        let mut terms: Vec<(Expr, i64)> =
            self.digits.iter().enumerate().map(|(number, digit)| (digit.0.clone(), steps(number))).collect();
        if let Some(last) = self.digits.len().checked_sub(1) {
            terms.push((self.again.0.clone(), self.again.1 * steps(last)));
        }
        let further = self.digits.iter().enumerate().map(|(number, digit)| digit.1 * steps(number)).sum();
        (terms, further)
    }
}

impl Share {
    /// The cheapest distribution over `all` groups of threads. The cost is the number of
    /// iterations, times 1.5 unless `keeps` holds for every axis that takes several iterations,
    /// given the step of an iteration along that axis. At most `unrolled` iterations are unrolled.
    pub(super) fn new(list: Vec<(usize, i64)>, all: i64, unrolled: i64, keeps: impl Fn(usize, i64) -> bool) -> Share {
        let mut best: Option<((i64, i64), Vec<i64>)> = None;
        let mut groups = Vec::new();
        search(&list, all, &mut groups, &mut |groups| {
            let iterations = |at: usize| div_up(list[at].1, groups[at]);
            let count: i64 = (0..list.len()).map(iterations).product();
            let kept = (0..list.len()).all(|at| iterations(at) == 1 || keeps(list[at].0, groups[at]));
            let last = groups.last().copied().unwrap_or(1);
            let cost = (if kept { 2 * count } else { 3 * count }, last);
            if best.as_ref().is_none_or(|best| cost < best.0) {
                best = Some((cost, groups.to_vec()));
            }
        });
        let groups = best.map_or(Vec::new(), |best| best.1);
        let (axes, extents): (Vec<usize>, Vec<i64>) = list.into_iter().unzip();
        let mut iterations: Vec<i64> =
            extents.iter().zip(&groups).map(|(extent, group)| div_up(*extent, *group)).collect();
        let mut again = 1;
        if let Some((last, others)) = iterations.split_last_mut() {
            let others: i64 = others.iter().product();
            let most = (unrolled / others).max(1);
            again = div_up(*last, most);
            *last = div_up(*last, again);
        }
        Share { axes, extents, groups, iterations, again, all }
    }

    /// The coordinates of a group in its first iteration; None for an idle group.
    pub(super) fn first_of(&self, mut group: i64) -> Option<Vec<i64>> {
        let digits = self.groups.iter().map(|groups| {
            let digit = group % groups;
            group /= groups;
            digit
        });
        let digits = digits.collect();
        (group == 0).then_some(digits)
    }

    /// Iterations of a thread.
    pub(super) fn count(&self) -> i64 {
        self.iterations.iter().product::<i64>() * self.again
    }

    /// Whether `keeps` holds for the steps of all iterations along each axis.
    pub(super) fn keeps(&self, keeps: impl Fn(usize, i64) -> bool) -> bool {
        (0..self.axes.len()).all(|at| {
            let more = self.iterations[at] > 1 || at + 1 == self.axes.len() && self.again > 1;
            !more || keeps(self.axes[at], self.groups[at])
        })
    }

    /// The range of the iterations along the last axis: its extent, or a little more.
    pub(super) fn last(&self) -> i64 {
        let iterations = self.iterations.last().copied().unwrap_or(1) * self.again;
        self.groups.last().copied().unwrap_or(1) * iterations
    }

    /// Emits a body for each iteration of a group of threads.
    pub(super) fn each(
        &self,
        k: &Build,
        group: &Expr,
        body: impl Fn(Vec<ThreadIteration>) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let used: i64 = self.groups.iter().product();
        let mut own = if self.axes.is_empty() { Vec::new() } else { k.coordinate(group, &self.groups)? };
        if let (Some(digit), Some(groups), true) = (own.last_mut(), self.groups.last(), used < self.all) {
            *digit = k.clamped(digit, *groups)?;
        }
        let iterations = |again: Expr| -> Vec<ThreadIteration> {
            let count: i64 = self.iterations.iter().product();
            let (last, step) = (self.groups.last().copied().unwrap_or(1), self.iterations.last().copied().unwrap_or(1));
            (0..count)
                .map(|mut number| {
                    let digits =
                        own.iter().zip(&self.groups).zip(&self.iterations).map(|((digit, groups), iterations)| {
                            let further = number % iterations * groups;
                            number /= iterations;
                            (digit.clone(), further)
                        });
                    ThreadIteration { digits: digits.collect(), again: (again.clone(), last * step) }
                })
                .collect()
        };
        let all = || match self.again {
            1 => body(iterations(Expr::from(0))),
            again => k.range(again, |again| body(iterations(again))),
        };
        match k.unless_less(group, &Expr::from(used))? {
            Some(some) => k.when(some, all),
            None => all(),
        }
    }

    /// Whether a coordinate is inside the box along all axes but the last, if iterations may go
    /// past the box.
    pub(super) fn inside<'k>(
        &self,
        k: &'k Build,
        iteration: &ThreadIteration,
    ) -> Result<Option<Flag<'k>>, KernelError> {
        let mut inside = None;
        for at in 0..self.axes.len().saturating_sub(1) {
            inside = both(inside, k.unless_less(&iteration.at(at)?, &Expr::from(self.extents[at]))?);
        }
        Ok(inside)
    }
}

/// All ways to distribute `left` groups over the axes of a list.
fn search(list: &[(usize, i64)], left: i64, groups: &mut Vec<i64>, found: &mut impl FnMut(&[i64])) {
    let Some((_, extent)) = list.get(groups.len()) else { return found(groups) };
    let most = left.min(*extent);
    for group in 1..=most {
        // Of distributions with the same number of iterations, the one with the fewest groups.
        if group > 1 && div_up(*extent, group) == div_up(*extent, group - 1) {
            continue;
        }
        groups.push(group);
        search(list, left / group, groups, found);
        groups.pop();
    }
}

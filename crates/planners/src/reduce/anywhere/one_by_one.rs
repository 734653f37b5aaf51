//! Elements that a thread adds to its running result one by one.

use tilewright_kernel::{Build, Element, Flag, Fragment, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

use super::{Walk, extents, linear};
use crate::terms::Statistic;

/// A vector that a thread has read.
struct Read<'k> {
    vector: Fragment<'k>,
    /// Whether the vector exists; None if it exists for every thread.
    exists: Option<Flag<'k>>,
    /// The index of its first element, for argmax.
    place: Option<Num<'k>>,
}

impl Walk {
    /// The running results of a thread after all that it reads.
    pub(super) fn walked<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        own: &[Expr],
        share: &Expr,
        along: &Expr,
    ) -> Result<Vec<Fragment<'k>>, KernelError> {
        let statistic = self.statistic;
        let reduced = extents(&self.problem.reduced, if self.inner { self.vector } else { 1 });
        let length: i64 = reduced.iter().product();
        let whole =
            length % (self.shape.along * self.shape.loads * self.shape.steps) == 0 || statistic.neutral() == 0.0;
        let kept: Vec<Fragment<'k>> = statistic
            .kept(self.element)
            .into_iter()
            .enumerate()
            .map(|(part, element)| {
                let fragment = k.register(element, &self.each().to_string())?;
                fragment.fill(statistic.nothing(k, part, element))?;
                Ok(fragment)
            })
            .collect::<Result<_, KernelError>>()?;
        if self.in_chunks() {
            self.chunks(k, x, own, [share, along], &kept)?;
            return Ok(kept);
        }
        k.range(self.shape.steps, |step| {
            let first = linear(&[(share, self.shape.steps), (&step, 1)])?;
            let all = (!whole).then_some(length);
            let read = (0..self.shape.loads).map(|load| self.read(k, x, own, (&first, load, along), all));
            let read = read.collect::<Result<Vec<_>, _>>()?;
            let mut now: Vec<Vec<Num<'k>>> = kept.iter().map(Fragment::numbers).collect::<Result<_, _>>()?;
            for result in 0..self.each() as usize {
                // Vectors are summed on their own first, so that sums stay short.
                let sum = self.sum_of(k, &read, result)?;
                let before: Vec<Num<'k>> = now.iter().map(|part| part[result]).collect();
                let after = sum.map(|sum| statistic.combine(&before, &sum)).unwrap_or_default();
                now.iter_mut().zip(after).for_each(|(part, number)| part[result] = number);
            }
            kept.iter().zip(&now).try_for_each(|(kept, now)| kept.set(now))
        })?;
        Ok(kept)
    }

    /// Reads the vector that is `load` loads after the first one of an iteration. If the number of
    /// vectors is given, threads may go past them.
    fn read<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        own: &[Expr],
        (first, load, along): (&Expr, i64, &Expr),
        all: Option<i64>,
    ) -> Result<Read<'k>, KernelError> {
        let reduced = extents(&self.problem.reduced, if self.inner { self.vector } else { 1 });
        let load = Expr::from(load);
        let loads = self.shape.along * self.shape.loads;
        let number = linear(&[(first, loads), (&load, self.shape.along), (along, 1)])?;
        let digits = k.coordinate(&number, &reduced)?;
        let slots = own.iter().chain(&digits).cloned().map(Slot::At);
        let at: Coord<Expr> = Tree::flat(std::iter::once(Slot::All).chain(slots))?;
        let vector = x.slice(at)?.load_predicated()?;
        let exists = match all {
            None => None,
            Some(all) => Some(k.index(&number)?.lt(k.number_of(Element::I32, all as f64))),
        };
        Ok(Read { vector, exists, place: self.place(k, &digits)? })
    }

    /// Combines what has been read for a result, one number after another, which takes few
    /// registers.
    fn sum_of<'k>(&self, k: &'k Build, read: &[Read<'k>], result: usize) -> Result<Option<Vec<Num<'k>>>, KernelError> {
        let (statistic, wide) = (self.statistic, self.statistic.wide(self.element));
        let step = if self.inner { self.problem.reduced.first().map_or(0, |axis| axis.place) } else { 0 };
        let mut sum: Option<Vec<Num<'k>>> = None;
        for Read { vector, exists, place } in read {
            let numbers = vector.numbers()?;
            let lanes = if self.inner { 0..numbers.len() } else { result..result + 1 };
            for lane in lanes {
                let further = if self.inner { lane as i64 * step } else { 0 };
                let place = place.map(|place| place + k.number(further as i32));
                let number = numbers[lane].to(wide);
                let x = exists.map_or(number, |exists| exists.select(number, number.like(statistic.neutral())));
                sum = Some(match sum {
                    None => statistic.part(x, place),
                    Some(sum) if statistic == Statistic::ArgMaximum => {
                        statistic.combine(&sum, &statistic.part(x, place))
                    }
                    Some(sum) => statistic.add(&sum, x, place),
                });
            }
        }
        Ok(sum)
    }

    /// The index of the element at a coordinate of the reduced axes, for argmax.
    pub(super) fn place<'k>(&self, k: &'k Build, digits: &[Expr]) -> Result<Option<Num<'k>>, KernelError> {
        if self.statistic != Statistic::ArgMaximum {
            return Ok(None);
        }
        let steps = self.problem.reduced.iter().enumerate().map(|(number, axis)| {
            let by = if self.inner && number == 0 { self.vector } else { 1 };
            axis.place * by
        });
        let terms: Vec<(&Expr, i64)> = digits.iter().zip(steps).collect();
        Ok(Some(k.index(&linear(&terms)?)?))
    }
}

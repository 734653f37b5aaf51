//! Elements that a thread adds to its running result one after another.

use tilewright_kernel::{Build, Element, Fragment, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

use super::{Walk, extents, linear};
use crate::reduce::statistic::Statistic;

impl Walk {
    /// What a thread keeps of all that it reads.
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
        let turns: i64 = reduced.iter().product();
        let whole = turns % (self.shape.along * self.shape.loads * self.shape.steps) == 0
            || statistic.neutral(self.element) == 0.0;
        let wide = statistic.wide(self.element);
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
            let mut read = Vec::new();
            for load in 0..self.shape.loads {
                let before = (Expr::from(load), self.shape.along);
                let number =
                    linear(&[(&first, self.shape.along * self.shape.loads), (&before.0, before.1), (along, 1)])?;
                let digits = k.coordinate(&number, &reduced)?;
                let slots = own.iter().chain(&digits).cloned().map(Slot::At);
                let at: Coord<Expr> = Tree::flat(std::iter::once(Slot::All).chain(slots))?;
                let vector = x.slice(at)?.load_predicated()?;
                let exists =
                    if whole { None } else { Some(k.index(&number)?.lt(k.number_of(Element::I32, turns as f64))) };
                read.push((vector, exists, self.place(k, &digits)?));
            }
            let mut now: Vec<Vec<Num<'k>>> = kept.iter().map(Fragment::numbers).collect::<Result<_, _>>()?;
            let at = |now: &[Vec<Num<'k>>], result: usize| now.iter().map(|part| part[result]).collect::<Vec<_>>();
            let counts = |(number, exists): (Num<'k>, Option<tilewright_kernel::Flag<'k>>)| {
                let number = number.to(wide);
                exists.map_or(number, |exists| exists.select(number, number.like(statistic.neutral(wide))))
            };
            let step = if self.inner { self.problem.reduced.first().map_or(0, |axis| axis.place) } else { 0 };
            for result in 0..self.each() as usize {
                let mut sum: Option<Vec<Num<'k>>> = None;
                // The numbers of this turn, one after another, which takes few registers.
                for (vector, exists, place) in &read {
                    let numbers = vector.numbers()?;
                    let lanes = if self.inner { 0..numbers.len() } else { result..result + 1 };
                    for lane in lanes {
                        let further = if self.inner { lane as i64 * step } else { 0 };
                        let place = place.map(|place| place + k.number(further as i32));
                        let x = counts((numbers[lane], *exists));
                        sum = Some(match sum {
                            None => statistic.part(x, place),
                            Some(sum) if statistic == Statistic::ArgMaximum => {
                                statistic.combine(&sum, &statistic.part(x, place))
                            }
                            Some(sum) => statistic.add(&sum, x, place),
                        });
                    }
                }
                // By themselves first, so that sums stay short.
                let after = sum.map(|sum| statistic.combine(&at(&now, result), &sum)).unwrap_or_default();
                now.iter_mut().zip(after).for_each(|(part, number)| part[result] = number);
            }
            kept.iter().zip(&now).try_for_each(|(kept, now)| kept.set(now))
        })?;
        Ok(kept)
    }

    /// The place of what is at a coordinate of the reduced axes, where it is asked for.
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

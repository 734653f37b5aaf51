//! Shares that one block combines: the last one to finish.
//!
//! Law: the last block combines the partial results of all shares, in the order of the shares.
//! Thread `t` of the `T` threads of a result takes the shares `t, t + T, t + 2T, ..`; the threads
//! are then combined in the order of their indices.

use tilewright_kernel::{Build, Distributed, Distribution, Fragment, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Tree};

use super::shape::MOST_LOADS;
use super::{Walk, linear};
use crate::law::REGISTER_VECTORS;
use crate::units::{LANES, div_up, power_from};

impl Walk {
    /// The layout of partial results, as (results, shares).
    pub(super) fn parts_layout(&self, results: i64) -> Result<Layout, LayoutError> {
        let shares = self.shape.shares;
        if self.at_once && results >= LANES {
            Layout::strided((results, shares), (1, results))
        } else {
            Layout::strided((results, shares), (shares, 1))
        }
    }

    /// Combines partial results into results.
    pub(super) fn put_together<'k>(&self, k: &'k Build, parts: &[View<'k>], y: &View<'k>) -> Result<(), KernelError> {
        let statistic = self.statistic;
        let types = statistic.kept(self.element);
        let (count, results) = self.problem.sizes();
        let threads = self.shape.threads;
        let beside = results >= LANES;
        let along = match beside {
            true => threads / power_from(results).min(threads),
            // One warp for each result, if it reads all partial results in few iterations: then no
            // barrier is needed.
            false => power_from(div_up(self.shape.shares, 2 * REGISTER_VECTORS))
                .max(LANES)
                .min(threads / power_from(results).min(LANES / 2)),
        };
        let across = threads / along;
        let layout = match beside {
            true => Layout::strided(((across, along), 1), ((1, across), 0))?,
            false => Layout::strided(((along, across), 1), ((across, 1), 0))?,
        };
        let held = Distribution::new((across, along), &layout)?;
        let steps = div_up(self.shape.shares, along);
        let loads = steps.min(MOST_LOADS);
        let result = |iteration: Expr| {
            let kept: Vec<Fragment<'k>> = types
                .iter()
                .enumerate()
                .map(|(part, element)| {
                    let fragment = k.register(*element, "1")?;
                    fragment.fill(statistic.nothing(k, part, *element))?;
                    Ok(fragment)
                })
                .collect::<Result<_, KernelError>>()?;
            let round = |round: Expr| {
                let mut read: Vec<Vec<Num<'k>>> = Vec::new();
                for load in 0..loads {
                    let step = linear(&[(&round, loads), (&Expr::from(load), 1)])?;
                    let at: Coord<Expr> = Tree::flat([Slot::At(iteration.clone()), Slot::At(step)])?;
                    let one = |(part, view): (usize, &View<'k>)| {
                        let tile = view.local_tile((across, along), at.clone())?;
                        let own = tile.load_distributed_or(&held, statistic.nothing(k, part, types[part]))?;
                        Ok(own.fragment().numbers()?[0])
                    };
                    read.push(parts.iter().enumerate().map(one).collect::<Result<_, KernelError>>()?);
                }
                let mut now: Vec<Num<'k>> = Vec::new();
                for fragment in &kept {
                    now.push(fragment.numbers()?[0]);
                }
                for more in &read {
                    now = statistic.combine(&now, more);
                }
                kept.iter().zip(&now).try_for_each(|(kept, now)| kept.set(&[*now]))
            };
            repeat(k, div_up(steps, loads), round)?;
            let own: Vec<Distributed<'k>> =
                kept.iter().map(|part| part.distributed(&held)).collect::<Result<_, KernelError>>()?;
            let all = statistic.gathered(k, &own, &[1])?;
            let found = statistic.result_of(&all, count as f64)?.to(statistic.result(self.element))?;
            let at: Coord<Expr> = Tree::flat([Slot::At(iteration.clone()), Slot::At(Expr::from(0))])?;
            y.local_tile((across, 1), at)?.store_distributed_predicated(&found)
        };
        repeat(k, div_up(results, across), result)
    }
}

/// Repeats a body, as a loop if there are several iterations.
fn repeat(k: &Build, count: i64, body: impl FnOnce(Expr) -> Result<(), KernelError>) -> Result<(), KernelError> {
    if count == 1 { body(Expr::from(0)) } else { k.range(count, body) }
}

//! Statistics along any modes of a tensor.
//!
//! Law: for each coordinate of the kept modes, the result is one number of all elements along the
//! reduced modes: their sum, mean, 2-norm, maximum, or argmax. Sums are computed in f32, or in f64
//! for elements of f64, in a fixed order; sums of integers of 32 bits or more are exact, and wrap.
//! NaN is greater than every number; of equal elements, or several NaN, the first one counts.
//!
//! * **Contiguous rows** that fit into the registers of a block are read at once, as norms read
//!   them (`rows.rs`).
//! * **Everything else** is read by threads that iterate over the reduced modes (`anywhere.rs`). If
//!   there are few results, several blocks share a result. The last block to finish combines their
//!   parts, or a second launch does.

mod anywhere;
mod indices;
mod problem;
mod rows;
mod statistic;

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_layout::Layout;

use crate::error::PlanError;
use crate::fitted::REDUCTIONS;
use crate::law::{BLOCK_BYTES, SEVERAL_THREADS};
use crate::planned::{Planned, distinct};
use crate::rows::RowsPlan;
use crate::terms::{Meaning, Statistic};
use crate::units::WHOLE;
use anywhere::Walk;
pub use indices::indices_of_greatest;
use problem::ReductionProblem;

/// The options of [`reduce()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReduceOptions {
    /// The alignment of the address of the tensor, in elements. By default the tensor is aligned to
    /// 16 bytes or more; with a smaller alignment, accesses are narrower.
    pub alignment: i64,
}

impl Default for ReduceOptions {
    fn default() -> Self {
        ReduceOptions { alignment: WHOLE }
    }
}

/// A kernel that computes a statistic along some modes of a tensor. The result has the other modes,
/// contiguous and in the order of the tensor: the result for a row-major tensor is row-major. The
/// index of an element is its position along the reduced modes, the first mode fastest.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::{ReduceOptions, Statistic, reduce};
///
/// let h200 = Machine::named("H200").unwrap();
/// let matrix = "(16384,16384):(16384,1)".parse().unwrap();
/// let columns = reduce(&h200, Statistic::Sum, (&matrix, Element::F32), &[0], ReduceOptions::default()).unwrap();
/// assert!(columns.to_string().contains("64 results"));
/// // Of all elements: each block reduces a share, and the last block combines the shares.
/// let all = reduce(&h200, Statistic::Maximum, (&matrix, Element::F32), &[0, 1], ReduceOptions::default()).unwrap();
/// assert!(all.second().is_none() && all.between() == (1..2));
/// ```
///
/// Errors: there is no such mode, or it is named twice; an element is before the tensor; elements
/// of this type cannot be computed with; there are more elements than a launch takes.
pub fn reduce(
    machine: &Machine,
    statistic: Statistic,
    (layout, element): (&Layout, Element),
    modes: &[usize],
    options: ReduceOptions,
) -> Result<Planned, PlanError> {
    let mut all = plans(machine, statistic, (layout, element), (modes, options.alignment), false)?;
    Ok(all.swap_remove(0))
}

/// The kernel of [`reduce`], and those of other plans.
///
/// Errors: those of [`reduce`].
pub(crate) fn candidates(
    machine: &Machine,
    statistic: Statistic,
    tensor: (&Layout, Element),
    modes: &[usize],
    alignment: i64,
) -> Result<Vec<Planned>, PlanError> {
    plans(machine, statistic, tensor, (modes, alignment), true)
}

/// The chosen plan first; then, if `all`, the others.
fn plans(
    machine: &Machine,
    statistic: Statistic,
    (layout, element): (&Layout, Element),
    (modes, alignment): (&[usize], i64),
    all: bool,
) -> Result<Vec<Planned>, PlanError> {
    let problem = ReductionProblem::new(layout, modes, statistic == Statistic::ArgMaximum)?;
    let (count, results) = problem.sizes();
    let named = modes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let along = match modes.len() {
        0 => "no mode".to_string(),
        all if all == layout.rank() => "all modes".to_string(),
        1 => format!("mode {named}"),
        _ => format!("modes {named}"),
    };
    let first = format!("{} along {along} of {element} {layout}", statistic.name());
    let bytes = i64::from(element.bytes()).saturating_mul(layout.filter_zeros().size());
    let bytes = bytes.saturating_add(results.saturating_mul(statistic.result(element).bytes().into()));
    let meaning = Meaning::Reduce {
        statistic,
        from: Box::new(problem.from.clone()),
        to: Box::new(problem.to.clone()),
        along: Box::new(problem.along.clone()),
    };
    let rows = problem
        .as_rows()
        .filter(|_| problem.ascends())
        .map(|row| RowsPlan::in_registers(machine, SEVERAL_THREADS, row, element, alignment));
    let in_rows = |rows: &RowsPlan| {
        let kernel = rows::kernel(statistic, rows)?;
        let plan = vec![first.clone(), rows.plan()];
        Ok(Planned::new(kernel, plan, meaning.clone()).moving(bytes).sized(&[("M", results)]))
    };
    let by_walk = |walk: &Walk| Ok(walked(walk, first.clone(), meaning.clone())?.moving(bytes));
    let rows = rows.and_then(Result::ok);
    let held = rows.as_ref().is_some_and(|rows| {
        let busy = REDUCTIONS.busy_blocks * i64::from(machine.multiprocessors);
        let short = count.saturating_mul(element.bytes().into()) <= BLOCK_BYTES;
        short || results / rows.of_block() >= busy
    });
    let chosen = match &rows {
        Some(rows) if held => in_rows(rows)?,
        _ => by_walk(&Walk::new(machine, statistic, &problem, element, alignment)?)?,
    };
    if !all {
        return Ok(vec![chosen]);
    }
    let mut others: Vec<Result<Planned, PlanError>> = rows.as_ref().map(in_rows).into_iter().collect();
    if let Ok(mut walk) = Walk::new(machine, statistic, &problem, element, alignment) {
        others.push(by_walk(&walk));
        if walk.shape.shares > 1 {
            walk.at_once = !walk.at_once;
            others.push(by_walk(&walk));
        }
    }
    Ok(distinct(chosen, others))
}

/// The kernels of a reduction by threads that iterate over the reduced modes.
fn walked(walk: &Walk, first: String, meaning: Meaning) -> Result<Planned, PlanError> {
    let planned = Planned::new(walk.kernel()?, vec![first, walk.plan()], meaning);
    if walk.at_once {
        return Ok(planned.leaving(walk.kept()));
    }
    if walk.shape.shares == 1 {
        return Ok(planned);
    }
    let (kernel, plan) = walk.second()?;
    Ok(planned.then(kernel, format!("then {plan}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> Machine {
        Machine::named("H200").unwrap()
    }

    /// Columns of a tensor that fits in L2 are reduced by one block each, if that is faster than
    /// shares.
    #[test]
    fn short_columns_in_the_cache_have_no_shares() {
        let plan = |statistic, m: i64, n: i64| {
            let layout = Layout::strided((m, n), (n, 1)).unwrap();
            let problem = ReductionProblem::new(&layout, &[0], statistic == Statistic::ArgMaximum).unwrap();
            Walk::new(&h200(), statistic, &problem, Element::Bf16, WHOLE).unwrap()
        };
        for statistic in [Statistic::Sum, Statistic::ArgMaximum] {
            for (m, n, results, threads) in [
                (1024, 1024, 16, 128),
                (1024, 2048, 32, 128),
                (1024, 4096, 32, 64),
                (2048, 2048, 32, 128),
                (2048, 4096, 32, 128),
                (2048, 8192, 32, 64),
                (4096, 512, 16, 128),
                (4096, 4096, 32, 128),
            ] {
                let plan = plan(statistic, m, n);
                let said = plan.plan();
                assert!(
                    plan.shape.shares == 1 && said.contains(&format!("for {results} results, {threads} threads")),
                    "{said}"
                );
            }
            // Few multiprocessors would have work, or the tensor does not fit in L2.
            for (m, n) in [(4096, 128), (8192, 1024), (16384, 256), (4096, 8192)] {
                assert!(plan(statistic, m, n).shape.shares > 1, "{m} x {n}");
            }
        }
    }

    /// With many results there are many partial results, which a second launch combines. Here, the
    /// second launch combines few, and must leave the same result as the last block.
    #[test]
    fn a_second_launch_leaves_what_the_last_block_does() {
        for (layout, modes) in
            [("60000:1", vec![0]), ("(4400,8):(8,1)", vec![0]), ("(40,6,300):(1800,300,1)", vec![0, 2])]
        {
            let layout: Layout = layout.parse().unwrap();
            for statistic in [Statistic::Sum, Statistic::Norm, Statistic::Maximum, Statistic::ArgMaximum] {
                let problem = ReductionProblem::new(&layout, &modes, statistic == Statistic::ArgMaximum).unwrap();
                let mut walk = Walk::new(&h200(), statistic, &problem, Element::F32, WHOLE).unwrap();
                let meaning = Meaning::Reduce {
                    statistic,
                    from: Box::new(problem.from.clone()),
                    to: Box::new(problem.to.clone()),
                    along: Box::new(problem.along.clone()),
                };
                assert!(walk.shape.shares > 1 && walk.at_once, "{layout}");
                for at_once in [true, false] {
                    walk.at_once = at_once;
                    let planned = walked(&walk, String::new(), meaning.clone()).unwrap();
                    assert_eq!(planned.second().is_some(), !at_once);
                    assert_eq!(planned.between(), 1..1 + walk.kept());
                    planned.check().unwrap_or_else(|error| panic!("{statistic:?} {planned}{error}"));
                }
            }
        }
    }
}

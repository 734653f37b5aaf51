//! Statistics along any modes of a tensor.
//!
//! Law: each coordinate of the kept modes gives one number of all elements along the others: their
//! sum, their mean, the root of the sum of their squares, the greatest, or its place. Sums are
//! taken in f32, in an order that is fixed. NaN is not the greatest unless there is nothing else;
//! of equal elements the first counts.
//!
//! * **Rows** one behind another that the registers of a block hold are read at once, as the norms
//!   read them (`rows.rs`).
//! * **Everything else** is read by threads that go along the reduced modes (`anywhere.rs`), by two
//!   launches where there are few results.

mod anywhere;
mod problem;
mod rows;
mod statistic;

use tilewright_kernel::Element;
use tilewright_layout::Layout;

use crate::error::PlanError;
use crate::meaning::Meaning;
use crate::planned::Planned;
use crate::rows::{Rows, WHOLE};
use anywhere::{THREADS, Walk};
use problem::Problem;
pub use statistic::Statistic;

/// Rows of so many bytes are short: a block reads one at once.
const SHORT: i64 = 1 << 14;
/// As many blocks as keep the processors of a large GPU busy.
const BUSY: i64 = 256;

/// A kernel that computes a statistic along some modes of a tensor. The result has the other modes,
/// without gaps, in the order in which they lie in the tensor: that of a row-major tensor is
/// row-major. The place of an element is its number along the reduced modes, the first one fastest.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::{Statistic, reduce};
///
/// let matrix = "(16384,16384):(16384,1)".parse().unwrap();
/// let columns = reduce(Statistic::Sum, (&matrix, Element::F32), &[0]).unwrap();
/// assert!(columns.to_string().contains("64 results"));
/// // Of all elements: shares of blocks, and a second launch.
/// let all = reduce(Statistic::Maximum, (&matrix, Element::F32), &[0, 1]).unwrap();
/// assert!(all.second().is_some());
/// ```
///
/// Errors: there is no such mode, or it is named twice; an element lies before the tensor; elements
/// of this type are only stored; there are more of them than a launch takes.
pub fn reduce(statistic: Statistic, tensor: (&Layout, Element), modes: &[usize]) -> Result<Planned, PlanError> {
    reduce_at(statistic, tensor, modes, WHOLE)
}

/// As [`reduce`], of tensors that begin at multiples of so many elements, where those are less than
/// 16 bytes: accesses are narrower then.
///
/// Errors: as [`reduce`].
pub fn reduce_at(
    statistic: Statistic,
    (layout, element): (&Layout, Element),
    modes: &[usize],
    alignment: i64,
) -> Result<Planned, PlanError> {
    let problem = Problem::new(layout, modes, statistic == Statistic::ArgMaximum)?;
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
    let rows =
        problem.as_rows().filter(|_| problem.ascends()).map(|row| Rows::in_registers(THREADS, row, element, alignment));
    if let Some(Ok(rows)) = rows {
        let short = count.saturating_mul(element.bytes().into()) <= SHORT;
        if short || results / rows.of_block() >= BUSY {
            let kernel = rows::kernel(statistic, &rows)?;
            return Ok(Planned::new(kernel, vec![first, rows.plan()], meaning).moving(bytes).sized(&[("M", results)]));
        }
    }
    let walk = Walk::new(statistic, &problem, element, alignment)?;
    let planned = Planned::new(walk.kernel()?, vec![first, walk.plan()], meaning).moving(bytes);
    if walk.shares == 1 {
        return Ok(planned);
    }
    let (kernel, plan) = walk.second()?;
    Ok(planned.then(kernel, format!("then {plan}")))
}

//! Softmax of rows.
//!
//! Law: `y(m,n) = e^x(m,n) / sum over j of e^x(m,j)`, in f32 for every element type. Elements of
//! minus infinity give 0; a row of nothing else, or with a NaN, gives NaN.
//!
//! A row that a block holds is read once and written once. Each thread computes exponentials
//! relative to its own maximum, once, and keeps them. The maxima and sums of warps are exchanged
//! together, at one barrier, and exponentials are then rescaled to the maximum of the row. If
//! threads have more than 32 numbers, exponentials are computed twice, because keeping them takes
//! more registers than the elements themselves; persistent clusters keep them. A longer row is read
//! twice; in the first pass, the running sum of a thread is rescaled whenever its maximum grows
//! (online softmax).

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Distributed, Element, Kernel, KernelError, Num, Reduction, View};

use crate::error::PlanError;
use crate::planned::Planned;
use crate::rows::RowsTwice;
use crate::rows::{Held, Persistent, RowComputation, RowsPlan, Way, in_f32, pairwise, together};
use crate::terms::{Meaning, RowMatrix};

/// A lower bound for the maximum of a part that is finite even when it is multiplied by log2(e).
const LEAST: f64 = -2.3e38;

/// `e^(x - maximum)`.
fn power<'k>(x: Num<'k>, greatest: Num<'k>) -> Num<'k> {
    ((x - greatest) * std::f64::consts::LOG2_E).exp2()
}

/// A kernel that computes the softmax of each row of a matrix `(M,N)`, for any number of rows.
/// `(length, type)` converts to a contiguous matrix.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::softmax;
///
/// let h200 = Machine::named("H200").unwrap();
/// let plan = softmax(&h200, (8192, Element::Bf16)).unwrap();
/// assert!(plan.to_string().contains("a block of 256 threads a row, 4 vectors of 8 a thread"));
/// ```
///
/// Errors: elements are integers or f64, because exponentials are computed in f32; there are too
/// many columns.
pub fn softmax(machine: &Machine, matrix: impl Into<RowMatrix>) -> Result<Planned, PlanError> {
    let matrix = matrix.into();
    in_f32("type of rows of softmax", matrix.element)?;
    RowComputation::Softmax.plan(machine, matrix, kernel)
}

/// The kernel of [`softmax`], and those of other plans.
///
/// Errors: those of [`softmax`].
pub(crate) fn candidates(machine: &Machine, matrix: RowMatrix) -> Result<Vec<Planned>, PlanError> {
    in_f32("type of rows of softmax", matrix.element)?;
    RowComputation::Softmax.candidates(machine, matrix, kernel)
}

fn kernel(way: Way) -> Result<Planned, PlanError> {
    match way {
        Way::Held(rows) => held(&rows),
        Way::Persistent(persistent) => persistent_softmax(&persistent),
        Way::ReadTwice(rows) => read_twice(&rows),
    }
}

/// The kernel for rows that fit in the registers of blocks.
fn held(rows: &RowsPlan) -> Result<Planned, PlanError> {
    let (columns, element) = (rows.columns, rows.element());
    let plan = vec![format!("softmax of rows of {columns} {element}"), rows.plan()];
    let kernel = Kernel::build("softmax", |k| {
        let (x, y) = (rows.matrix(k, "x", Role::Input)?, rows.matrix(k, "y", Role::Output)?);
        let held = rows.load(k, &x, Some(k.number_of(element, f64::NEG_INFINITY)))?;
        if rows.has_room() { keeping_powers(k, rows, &held, &y) } else { in_one_pass(k, rows, &held, &y) }
    })?;
    Ok(Planned::new(kernel, plan, Meaning::Softmax { places: rows.places }))
}

/// The kernel for rows that persistent clusters claim. A thread computes the exponentials of its
/// part relative to its own maximum, once, and keeps them; they are rescaled to the maximum of the
/// row.
pub(crate) fn persistent_softmax(persistent: &Persistent) -> Result<Planned, PlanError> {
    let rows = persistent.rows();
    let (columns, element) = (rows.columns, rows.element());
    let plan = vec![format!("softmax of rows of {columns} {element}"), persistent.plan()];
    let kernel = Kernel::build("softmax_in_turn", |k| {
        let (x, y) = (rows.matrix(k, "x", Role::Input)?, rows.matrix(k, "y", Role::Output)?);
        persistent.begin(k, &[])?;
        persistent.each(k, &x, |own_row| {
            let (none, least) = (k.number_of(element, f64::NEG_INFINITY), k.number_of(Element::F32, LEAST));
            let most = together(own_row.runs_or(none), Reduction::Maximum)?.to(Element::F32)?;
            let own = most.fragment().numbers()?.into_iter().fold(least, |most, x| most.max(x));
            let powers = own_row.keep(none, |run| run.map(|x| Ok(power(x, own))))?;
            let mut sum = k.number_of(Element::F32, 0.0);
            for run in &powers {
                sum = run.fragment().numbers()?.into_iter().fold(sum, |sum, x| sum + x);
            }
            let both = own_row.across(of_block(k, rows, [own, sum])?, joined)?;
            let scale = scale_to(own, both[0], both[1]);
            own_row.write_kept(&powers, &y, |run| run.map(|x| Ok(x * scale)))
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::Softmax { places: rows.places }))
}

/// Rows in registers: each thread computes the exponentials of its part relative to its own
/// maximum, once, and keeps them. Meanwhile, shuffles find the maximum of the warp. One
/// multiplication rescales exponentials to the maximum of the row and divides by their sum.
fn keeping_powers<'k>(k: &'k Build, rows: &RowsPlan, held: &Held<'k>, y: &View<'k>) -> Result<(), KernelError> {
    let most = together(held.runs(k), Reduction::Maximum)?.to(Element::F32)?;
    let least = k.number_of(Element::F32, LEAST);
    let own = pairwise(most.fragment().numbers()?, Num::max).max(least);
    let powers = held.runs(k).map(|run| run?.to(Element::F32)?.map(|x| Ok(power(x, own))));
    let powers = powers.collect::<Result<Vec<_>, KernelError>>()?;
    let sums = together(powers.iter().cloned().map(Ok), Reduction::Sum)?;
    let own_sum = pairwise(sums.fragment().numbers()?, |a, b| a + b);
    let greatest = rows.of_each(k, own)?.reduce(&[1], Reduction::Maximum)?;
    let of_warp = greatest.fragment().numbers()?[0];
    let sum = rows.of_each(k, own_sum * power(own, of_warp))?.reduce(&[1], Reduction::Sum)?;
    let sum = sum.fragment().numbers()?[0];
    let [greatest, sum] = if rows.meet() {
        let parts = rows.of_warps(k, &[of_warp, sum], &[least, least.like(0.0)])?;
        let (greatest, sums) = (&parts[0], &parts[1]);
        let all = greatest.reduce(&[1], Reduction::Maximum)?.fragment().numbers()?[0];
        let sums = sums.zip(greatest, |sum, greatest| Ok(sum * power(greatest, all)))?;
        [all, sums.reduce(&[1], Reduction::Sum)?.fragment().numbers()?[0]]
    } else {
        [of_warp, sum]
    };
    let scale = scale_to(own, greatest, sum);
    rows.write_kept(k, &powers, y, |run| run.map(|x| Ok(x * scale)))
}

/// The scale from exponentials relative to one maximum to those relative to another, divided by the
/// sum.
fn scale_to<'k>(own: Num<'k>, greatest: Num<'k>, sum: Num<'k>) -> Num<'k> {
    (own - greatest).multiply_add(own.like(std::f64::consts::LOG2_E), -sum.log2()).exp2()
}

/// Writes exponentials divided by their sum.
fn write<'k>(
    k: &'k Build,
    rows: &RowsPlan,
    held: &Held<'k>,
    y: &View<'k>,
    [greatest, sum]: [&Distributed<'k>; 2],
) -> Result<(), KernelError> {
    let log = sum.map(|sum| Ok(sum.log2()))?;
    rows.write(k, held, &[], y, |run, _| {
        let above = run.zip(greatest, |x, greatest| Ok(x - greatest))?;
        above.zip(&log, |x, log| Ok(x.multiply_add(x.like(std::f64::consts::LOG2_E), -log).exp2()))
    })
}

/// Maximum and sum of exponentials of the union of two sets.
fn joined<'k>(a: &[Num<'k>], b: &[Num<'k>]) -> Vec<Num<'k>> {
    let greatest = a[0].max(b[0]);
    vec![greatest, a[1] * power(a[0], greatest) + b[1] * power(b[0], greatest)]
}

/// The parts of rows that a thread loads from shared memory run by run.
fn in_one_pass<'k>(k: &'k Build, rows: &RowsPlan, held: &Held<'k>, y: &View<'k>) -> Result<(), KernelError> {
    let all = rows.across(k, parts(k, rows, held.runs(k))?, joined)?;
    write(k, rows, held, y, [&all[0], &all[1]])
}

/// The maximum of a block's part of a row, and the sum of exponentials: the maximum of each run
/// rescales the sum so far.
fn parts<'k>(
    k: &'k Build,
    rows: &RowsPlan,
    runs: impl Iterator<Item = Result<Distributed<'k>, KernelError>>,
) -> Result<Vec<Distributed<'k>>, KernelError> {
    let (mut greatest, mut sum) = (k.number_of(Element::F32, LEAST), k.number_of(Element::F32, 0.0));
    for run in runs {
        let numbers = run?.to(Element::F32)?.fragment().numbers()?;
        let now = numbers.iter().fold(greatest, |greatest, x| greatest.max(*x));
        let first = sum * power(greatest, now);
        (greatest, sum) = (now, numbers.iter().fold(first, |sum, x| sum + power(*x, now)));
    }
    of_block(k, rows, [greatest, sum])
}

/// Maximum and sum of exponentials of a block, from those of its threads.
fn of_block<'k>(k: &'k Build, rows: &RowsPlan, own: [Num<'k>; 2]) -> Result<Vec<Distributed<'k>>, KernelError> {
    let [greatest, sum] = own.map(|number| rows.of_each(k, number));
    k.reduce_together(&[&greatest?, &sum?], &[1, 2], |a, b| Ok(joined(a, b)))
}

/// The kernel for rows that do not fit in the registers of a block.
fn read_twice(rows: &RowsTwice) -> Result<Planned, PlanError> {
    let (columns, element) = (rows.columns, rows.element);
    let plan = vec![format!("softmax of rows of {columns} {element}"), rows.plan()];
    let kernel = Kernel::build("softmax_long", |k| {
        let (x, y) = (rows.matrix(k, "x", Role::Input)?, rows.matrix(k, "y", Role::Output)?);
        let (greatest, sum) = (rows.kept(k, LEAST)?, rows.kept(k, 0.0)?);
        rows.first(k, &x, f64::NEG_INFINITY, |numbers, _| {
            let before = greatest.fragment().numbers()?[0];
            let now = numbers.iter().fold(before, |greatest, x| greatest.max(*x));
            let corrected = sum.fragment().numbers()?[0] * power(before, now);
            sum.fragment().set(&[numbers.iter().fold(corrected, |sum, x| sum + power(*x, now))])?;
            greatest.fragment().set(&[now])
        })?;
        let both = k.reduce_together(&[&greatest, &sum], &[1], |a, b| Ok(joined(a, b)))?;
        let log = both[1].map(|sum| Ok(sum.log2()))?;
        rows.second(k, [&x, &y], &[], |run, _| {
            let above = run.zip(&both[0], |x, greatest| Ok(x - greatest))?;
            above.zip(&log, |x, log| Ok(x.multiply_add(x.like(std::f64::consts::LOG2_E), -log).exp2()))
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::Softmax { places: rows.places }))
}

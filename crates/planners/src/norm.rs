//! Norms of rows.
//!
//! Laws, in f32 for every element type, for rows of N elements:
//!
//! * `rms_norm`: `y(m,n) = x(m,n) w(n) / sqrt(sum over j of x(m,j)^2 / N + epsilon)`.
//! * `layer_norm`: `y(m,n) = (x(m,n) - mean) w(n) / sqrt(variance + epsilon) + b(n)`, with the mean
//!   and the variance of row `m`.
//!
//! The variance of a short row is computed from deviations from the mean of each thread, or of the
//! row, so that there is no cancellation. In a long row, where a thread has n vectors, deviations
//! are from the mean of its first vector. Cancellation then amplifies rounding by at most n + 1,
//! because the squares of the first vector itself are part of the sum.
//!
//! A row that fits into the registers and shared memory of a block, or of a cluster, is read once,
//! kept there, and written once. A longer row is read twice. If each block computed one long row,
//! weights would be read as often as rows. Such rows are computed by persistent clusters, which
//! keep their part of the weights in registers and claim one row after another.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Distributed, Element, Flag, Kernel, KernelError, Num, Reduction, View};

use crate::error::PlanError;
use crate::planned::Planned;
use crate::rows::RowsTwice;
use crate::rows::{Held, Persistent, RowComputation, RowVector, RowsPlan, Way, counted, in_f32, pairwise, together};
use crate::terms::{Meaning, Norm, RowMatrix};

impl Norm {
    /// The names of the vectors with an element for each column.
    fn names(self) -> impl Iterator<Item = &'static str> {
        [(self.weights, "weights"), (self.bias, "bias")].into_iter().filter(|(has, _)| *has).map(|(_, name)| name)
    }

    /// Numbers times weights, plus a bias, by a fused multiply-add.
    fn weighed<'k>(self, numbers: Distributed<'k>, beside: &[Distributed<'k>]) -> Result<Distributed<'k>, KernelError> {
        match (self.weights, self.bias, beside) {
            (true, true, [weights, bias]) => {
                let (weights, bias) = (weights.fragment().numbers()?, bias.fragment().numbers()?);
                let all = numbers.fragment().numbers()?.into_iter().zip(weights).zip(bias);
                let all = all.map(|((x, weight), bias)| x.multiply_add(weight, bias)).collect::<Vec<_>>();
                numbers.fragment().set(&all)?;
                Ok(numbers)
            }
            (true, false, [weights]) => numbers.zip(weights, |x, weight| Ok(x * weight)),
            (false, true, [bias]) => numbers.zip(bias, |x, bias| Ok(x + bias)),
            _ => Ok(numbers),
        }
    }
}

/// A kernel that divides each row of a matrix `(M,N)` by the root mean square of the row, and
/// multiplies it by weights, if the norm has them. There is no bias. `(length, type)` converts to a
/// contiguous matrix, and a number to a norm with that epsilon.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::rms_norm;
///
/// let h200 = Machine::named("H200").unwrap();
/// let plan = rms_norm(&h200, (128, Element::Bf16), 1e-5).unwrap();
/// assert!(plan.to_string().contains("16 lanes a row, 8 rows a block, a vector of 8 a lane"));
/// ```
///
/// Errors: elements are integers, or of f64, as roots are computed in f32; there are too many
/// columns.
pub fn rms_norm(machine: &Machine, matrix: impl Into<RowMatrix>, norm: impl Into<Norm>) -> Result<Planned, PlanError> {
    let (matrix, norm) = (matrix.into(), norm.into().without_bias());
    in_f32("type of rows of rms_norm", matrix.element)?;
    RowComputation::RmsNorm.plan(machine, matrix, |way| rms_norm_kernel(way, norm))
}

fn rms_norm_kernel(way: Way, norm: Norm) -> Result<Planned, PlanError> {
    match way {
        Way::Held(rows) => held_rms_norm(&rows, norm),
        Way::Persistent(persistent) => persistent_rms_norm(&persistent, norm),
        Way::ReadTwice(rows) => rms_norm_read_twice(&rows, norm),
    }
}

/// The kernel of [`rms_norm`], or of [`layer_norm`] if the mean is subtracted, and those of other
/// plans.
///
/// Errors: those of [`rms_norm`].
pub(crate) fn candidates(
    machine: &Machine,
    matrix: RowMatrix,
    norm: Norm,
    less_mean: bool,
) -> Result<Vec<Planned>, PlanError> {
    in_f32("type of rows of norms", matrix.element)?;
    match less_mean {
        false => {
            let norm = norm.without_bias();
            RowComputation::RmsNorm.candidates(machine, matrix, |way| rms_norm_kernel(way, norm))
        }
        true => RowComputation::LayerNorm.candidates(machine, matrix, |way| layer_norm_kernel(way, norm)),
    }
}

/// The kernel for rows that persistent clusters claim.
fn persistent_rms_norm(persistent: &Persistent, norm: Norm) -> Result<Planned, PlanError> {
    let rows = persistent.rows();
    let (columns, element) = (rows.columns, rows.element());
    let plan = vec![format!("rows of {columns} {element} by the root of their mean square"), persistent.plan()];
    let kernel = Kernel::build("rms_norm_in_turn", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let beside = norm.names().map(|name| rows.row(k, name)).collect::<Result<Vec<_>, _>>()?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let beside = persistent.begin(k, &beside.iter().collect::<Vec<_>>())?;
        persistent.each(k, &x, |own_row| {
            let squares =
                together(own_row.runs().map(|run| run?.to(Element::F32)?.map(|x| Ok(x * x))), Reduction::Sum)?;
            let squares = squares.reduce(&[1, 2], Reduction::Sum)?;
            let sum = own_row.across(vec![squares], |a, b| vec![a[0] + b[0]])?[0];
            let scale = (sum * (1.0 / columns as f64) + norm.epsilon).rsqrt();
            own_row.write(&beside, &y, |run, beside| norm.weighed(run.map(|x| Ok(x * scale))?, beside))
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::RmsNorm { places: rows.places, norm }))
}

/// The kernel for rows that fit in the registers of blocks.
fn held_rms_norm(rows: &RowsPlan, norm: Norm) -> Result<Planned, PlanError> {
    let (columns, element) = (rows.columns, rows.element());
    let plan = vec![format!("rows of {columns} {element} by the root of their mean square"), rows.plan()];
    let kernel = Kernel::build("rms_norm", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let beside = norm.names().map(|name| rows.row(k, name)).collect::<Result<Vec<_>, _>>()?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let held = rows.load(k, &x, None)?;
        let beside = beside.iter().map(|row| rows.beside(k, row)).collect::<Result<Vec<_>, _>>()?;
        let squares = rows.sum(k, &held, |_, run| run.map(|x| Ok(x * x)))?;
        let scale = squares.map(|sum| Ok((sum * (1.0 / columns as f64) + norm.epsilon).rsqrt()))?;
        rows.write(k, &held, &beside, &y, |run, beside| {
            norm.weighed(run.zip(&scale, |x, scale| Ok(x * scale))?, beside)
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::RmsNorm { places: rows.places, norm }))
}

/// A kernel that subtracts the mean from each row of a matrix `(M,N)`, divides the row by its
/// standard deviation, multiplies it by weights and adds a bias, if the norm has them.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::layer_norm;
///
/// let h200 = Machine::named("H200").unwrap();
/// let plan = layer_norm(&h200, (1000, Element::F32), 1e-5).unwrap();
/// assert!(plan.to_string().contains("a block of 64 threads a row, 4 vectors of 4 a thread"));
/// ```
///
/// Errors: elements are integers, or of f64, as roots are computed in f32; there are too many
/// columns.
pub fn layer_norm(
    machine: &Machine,
    matrix: impl Into<RowMatrix>,
    norm: impl Into<Norm>,
) -> Result<Planned, PlanError> {
    let (matrix, norm) = (matrix.into(), norm.into());
    in_f32("type of rows of layer_norm", matrix.element)?;
    RowComputation::LayerNorm.plan(machine, matrix, |way| layer_norm_kernel(way, norm))
}

fn layer_norm_kernel(way: Way, norm: Norm) -> Result<Planned, PlanError> {
    match way {
        Way::Held(rows) => held_layer_norm(&rows, norm),
        Way::Persistent(persistent) => persistent_layer_norm(&persistent, norm),
        Way::ReadTwice(rows) => layer_norm_read_twice(&rows, norm),
    }
}

/// The kernel for rows that fit in the registers of blocks.
fn held_layer_norm(rows: &RowsPlan, norm: Norm) -> Result<Planned, PlanError> {
    let (columns, element) = (rows.columns, rows.element());
    let plan = vec![format!("rows of {columns} {element} less their mean by the root of their variance"), rows.plan()];
    let kernel = Kernel::build("layer_norm", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let beside = norm.names().map(|name| rows.row(k, name)).collect::<Result<Vec<_>, _>>()?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let held = rows.load(k, &x, None)?;
        let beside = beside.iter().map(|row| rows.beside(k, row)).collect::<Result<Vec<_>, _>>()?;
        let part = 1.0 / columns as f64;
        if rows.even() && !rows.rereads() {
            let [mean, variance] = even_moments(k, rows, &held)?;
            let scale = variance.map(|variance| Ok((variance + norm.epsilon).rsqrt()))?;
            return write_normal(k, rows, &held, (norm, &beside), &y, [&mean, &scale]);
        }
        if rows.is_shared() || rows.rereads() {
            let own = moments(k, rows, held.runs(k), Some(&|number| rows.counts(k, number)))?;
            let mut all = if rows.rereads() {
                rows.across(k, of_block(k, &own)?, joined_quickly)?
            } else {
                rows.of_all(k, &own, &[k.number_of(Element::F32, 0.0); 3], joined_quickly)?
            };
            let (squares, mean) = (all.remove(2), all.remove(1));
            let scale = squares.map(|sum| Ok((sum * part + norm.epsilon).rsqrt()))?;
            return write_normal(k, rows, &held, (norm, &beside), &y, [&mean, &scale]);
        }
        let mean = rows.sum(k, &held, |_, run| Ok(run))?.map(|sum| Ok(sum * part))?;
        let squares = rows.sum(k, &held, |number, run| {
            let left = counted(run.zip(&mean, |x, mean| Ok(x - mean))?, rows.counts(k, number)?)?;
            left.map(|x| Ok(x * x))
        })?;
        let scale = squares.map(|sum| Ok((sum * part + norm.epsilon).rsqrt()))?;
        write_normal(k, rows, &held, (norm, &beside), &y, [&mean, &scale])
    })?;
    Ok(Planned::new(kernel, plan, Meaning::LayerNorm { places: rows.places, norm }))
}

/// The kernel for rows that persistent clusters claim.
fn persistent_layer_norm(persistent: &Persistent, norm: Norm) -> Result<Planned, PlanError> {
    let rows = persistent.rows();
    let (columns, element) = (rows.columns, rows.element());
    let plan =
        vec![format!("rows of {columns} {element} less their mean by the root of their variance"), persistent.plan()];
    let kernel = Kernel::build("layer_norm_in_turn", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let beside = norm.names().map(|name| rows.row(k, name)).collect::<Result<Vec<_>, _>>()?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let beside = persistent.begin(k, &beside.iter().collect::<Vec<_>>())?;
        persistent.each(k, &x, |own_row| {
            let counted = |run| own_row.counts(run);
            let counts: Option<&dyn Fn(usize) -> _> = if persistent.in_pairs() { None } else { Some(&counted) };
            let all = own_row.across(of_block(k, &moments(k, rows, own_row.runs(), counts)?)?, joined_quickly)?;
            let (mean, variance) = match all[..] {
                [mean, variance] => (mean, variance),
                _ => (all[1], all[2] * (1.0 / columns as f64)),
            };
            let scale = (variance + norm.epsilon).rsqrt();
            own_row.write(&beside, &y, |run, beside| norm.weighed(run.map(|x| Ok((x - mean) * scale))?, beside))
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::LayerNorm { places: rows.places, norm }))
}

/// Writes rows minus their mean, times a scale and weights, plus a bias.
fn write_normal<'k>(
    k: &'k Build,
    rows: &RowsPlan,
    held: &Held<'k>,
    (norm, beside): (Norm, &[RowVector<'k>]),
    y: &View<'k>,
    [mean, scale]: [&Distributed<'k>; 2],
) -> Result<(), KernelError> {
    rows.write(k, held, beside, y, |run, beside| {
        let left = run.zip(mean, |x, mean| Ok(x - mean))?.zip(scale, |x, scale| Ok(x * scale))?;
        norm.weighed(left, beside)
    })
}

/// Mean and variance of rows in registers of which all threads have equally many elements. Each
/// thread computes its own first, in two passes without synchronization. They are then combined
/// pairwise, with at most one barrier.
fn even_moments<'k>(k: &'k Build, rows: &RowsPlan, held: &Held<'k>) -> Result<[Distributed<'k>; 2], KernelError> {
    let runs = held.runs(k).map(|run| run?.to(Element::F32)).collect::<Result<Vec<_>, KernelError>>()?;
    let of_run = runs.first().map_or(Ok(0), |run| run.fragment().numbers().map(|numbers| numbers.len()))?;
    let part = 1.0 / (of_run * runs.len()) as f64;
    let sums = together(runs.iter().cloned().map(Ok), Reduction::Sum)?;
    let mean = pairwise(sums.fragment().numbers()?, |a, b| a + b) * part;
    let mut squares: Vec<Num<'k>> = Vec::new();
    for run in &runs {
        let left = run.fragment().numbers()?.into_iter().map(|x| x - mean);
        squares = match squares.len() {
            0 => left.map(|x| x * x).collect(),
            _ => left.zip(squares).map(|(x, sum)| x.multiply_add(x, sum)).collect(),
        };
    }
    let variance = pairwise(squares, |a, b| a + b) * part;
    let own = [rows.of_each(k, mean)?, rows.of_each(k, variance)?];
    let mut all = rows.of_all(k, &own, &[], joined_quickly)?;
    let variance = all.remove(1);
    Ok([all.remove(0), variance])
}

/// The number of elements of a thread in a row, their mean, and the sum of squared deviations, in
/// one pass. A thread subtracts the mean of its first run from its elements and accumulates the
/// differences and their squares, which give its mean and its deviations. If `counts` is None, all
/// threads have equally many elements, and the result is only the mean and the mean of squares.
fn moments<'k>(
    k: &'k Build,
    rows: &RowsPlan,
    runs: impl Iterator<Item = Result<Distributed<'k>, KernelError>>,
    counts: Option<&dyn Fn(usize) -> Result<Option<Flag<'k>>, KernelError>>,
) -> Result<Vec<Distributed<'k>>, KernelError> {
    let zero = k.number_of(Element::F32, 0.0);
    let (mut shift, mut sum, mut squares, mut whole, mut count) = (zero, zero, zero, 0.0, zero);
    for (number, run) in runs.enumerate() {
        let run = run?.to(Element::F32)?;
        let numbers = run.fragment().numbers()?;
        if number == 0 {
            let sum = numbers[1..].iter().fold(numbers[0], |sum, x| sum + *x);
            shift = sum * (1.0 / numbers.len() as f64);
        }
        let inside = counts.map_or(Ok(None), |counts| counts(number))?;
        let left = counted(run.map(|x| Ok(x - shift))?, inside)?;
        for x in left.fragment().numbers()? {
            (sum, squares) = (sum + x, x.multiply_add(x, squares));
        }
        match inside {
            None => whole += numbers.len() as f64,
            Some(inside) => count = count + inside.select(zero.like(numbers.len() as f64), zero),
        }
    }
    // The closer the mean of the first run is to the mean of the row, the less cancellation there
    // is in the sum of squares.
    let kept = match counts {
        None => {
            let apart = sum * (1.0 / whole);
            vec![shift + apart, (squares - sum * apart).max(zero) * (1.0 / whole)]
        }
        Some(_) => {
            let count = count + zero.like(whole);
            let apart = sum / count.max(count.like(1.0));
            vec![count, shift + apart, (squares - sum * apart).max(zero)]
        }
    };
    kept.into_iter().map(|number| rows.of_each(k, number)).collect()
}

/// Combines the moments of the threads of a block.
fn of_block<'k>(k: &'k Build, own: &[Distributed<'k>]) -> Result<Vec<Distributed<'k>>, KernelError> {
    k.reduce_together(&own.iter().collect::<Vec<_>>(), &[1, 2], |a, b| Ok(joined_quickly(a, b)))
}

/// The kernel for rows that do not fit in the registers of a block.
fn rms_norm_read_twice(rows: &RowsTwice, norm: Norm) -> Result<Planned, PlanError> {
    let (columns, element) = (rows.columns, rows.element);
    let plan = vec![format!("rows of {columns} {element} by the root of their mean square"), rows.plan()];
    let kernel = Kernel::build("rms_norm_long", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let beside = norm.names().map(|name| rows.row(k, name)).collect::<Result<Vec<_>, _>>()?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let squares = rows.kept(k, 0.0)?;
        rows.first(k, &x, 0.0, |numbers, _| {
            // Each chunk is added up separately, so that sums stay short.
            let chunk = numbers[1..].iter().fold(numbers[0] * numbers[0], |sum, x| x.multiply_add(*x, sum));
            squares.fragment().set(&[squares.fragment().numbers()?[0] + chunk])
        })?;
        let scale = squares.reduce(&[1], Reduction::Sum)?;
        let scale = scale.map(|sum| Ok((sum * (1.0 / columns as f64) + norm.epsilon).rsqrt()))?;
        rows.second(k, [&x, &y], &beside.iter().collect::<Vec<_>>(), |run, beside| {
            norm.weighed(run.zip(&scale, |x, scale| Ok(x * scale))?, beside)
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::RmsNorm { places: rows.places, norm }))
}

/// As [`joined`], for sets of equal size, which have only the mean and the mean of squares. It
/// needs no division, which would take longer than all other operations.
fn joined_quickly<'k>(a: &[Num<'k>], b: &[Num<'k>]) -> Vec<Num<'k>> {
    if let ([mean, squares], [other, more]) = (a, b) {
        let half = (*other - *mean) * 0.5;
        return vec![*mean + half, half.multiply_add(half, (*squares + *more) * 0.5)];
    }
    let count = a[0] + b[0];
    let root = count.max(count.like(1.0)).rsqrt();
    joined_by(b[0] * root * root, a, b)
}

/// Number, mean and squared deviations of the union of two sets.
fn joined<'k>(a: &[Num<'k>], b: &[Num<'k>]) -> Vec<Num<'k>> {
    let count = a[0] + b[0];
    joined_by(b[0] / count.max(count.like(1.0)), a, b)
}

/// The union of two sets; `weight` is the share of elements of the second set.
fn joined_by<'k>(weight: Num<'k>, a: &[Num<'k>], b: &[Num<'k>]) -> Vec<Num<'k>> {
    let (count, apart) = (a[0] + b[0], b[1] - a[1]);
    vec![count, apart.multiply_add(weight, a[1]), a[2] + b[2] + apart * apart * (a[0] * weight)]
}

/// The kernel for rows that do not fit in the registers of a block.
fn layer_norm_read_twice(rows: &RowsTwice, norm: Norm) -> Result<Planned, PlanError> {
    let (columns, element) = (rows.columns, rows.element);
    let plan = vec![format!("rows of {columns} {element} less their mean by the root of their variance"), rows.plan()];
    let kernel = Kernel::build("layer_norm_long", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let beside = norm.names().map(|name| rows.row(k, name)).collect::<Result<Vec<_>, _>>()?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let kept = [rows.kept(k, 0.0)?, rows.kept(k, 0.0)?, rows.kept(k, 0.0)?];
        rows.first(k, &x, 0.0, |numbers, count| {
            let whole = numbers.len() as f64;
            let sum = numbers[1..].iter().fold(numbers[0], |sum, x| sum + *x);
            let mean = sum / count.max(count.like(1.0));
            let squares = numbers.iter().fold(sum.like(0.0), |squares, x| {
                let left = *x - mean;
                left.multiply_add(left, squares)
            });
            // Elements past the end of the row were read as 0; the square of their deviation from
            // the mean is subtracted again.
            let squares = squares - (count.like(whole) - count) * mean * mean;
            let before = [0, 1, 2].map(|part: usize| kept[part].fragment().numbers());
            let [a, b, c] = before;
            let now = joined(&[a?[0], b?[0], c?[0]], &[count, mean, squares]);
            kept.iter().zip(now).try_for_each(|(kept, now)| kept.fragment().set(&[now]))
        })?;
        let all = k.reduce_together(&[&kept[0], &kept[1], &kept[2]], &[1], |a, b| Ok(joined(a, b)))?;
        let scale = all[2].map(|squares| Ok((squares * (1.0 / columns as f64) + norm.epsilon).rsqrt()))?;
        rows.second(k, [&x, &y], &beside.iter().collect::<Vec<_>>(), |run, beside| {
            let left = run.zip(&all[1], |x, mean| Ok(x - mean))?.zip(&scale, |x, scale| Ok(x * scale))?;
            norm.weighed(left, beside)
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::LayerNorm { places: rows.places, norm }))
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::{Written, ptx};

    use super::*;
    use crate::rows::ClusterShape;

    /// Clusters claim several rows each, but some claim none in the last iteration. Each shape runs
    /// one of the three computations, in rotation; with `TILEWRIGHT_EXHAUSTIVE=1`, all of them.
    #[test]
    fn rows_of_persistent_clusters_are_right() {
        let turns = if std::env::var_os("TILEWRIGHT_EXHAUSTIVE").is_some() { 1 } else { 3 };
        for (number, (columns, element, [blocks, warps, vectors], clusters, rows)) in [
            (4096, Element::F32, [2, 2, 8], 2, 7),
            (2048, Element::F32, [2, 1, 8], 3, 2),
            (4096, Element::F16, [2, 1, 8], 1, 5),
            (16384, Element::Bf16, [4, 2, 8], 3, 8),
            (16384, Element::Bf16, [8, 1, 8], 2, 5),
            (12288, Element::F32, [2, 6, 8], 2, 3),
            (16384, Element::F32, [16, 1, 8], 2, 3),
            // Rows that end within a run: of one warp, of several warps, and after whole runs.
            (5000, Element::F32, [2, 4, 5], 2, 5),
            (9000, Element::Bf16, [2, 3, 6], 2, 3),
            (10_104, Element::F16, [4, 2, 5], 3, 4),
            (2820, Element::F32, [4, 1, 6], 2, 3),
            (10_000, Element::F32, [2, 4, 10], 2, 3),
            (22_000, Element::Bf16, [8, 1, 11], 2, 3),
            (20_000, Element::F32, [16, 1, 10], 1, 3),
            // Threads and a block without elements of a row.
            (7000, Element::F32, [2, 4, 8], 2, 3),
            (3000, Element::Bf16, [4, 1, 4], 2, 3),
        ]
        .into_iter()
        .enumerate()
        {
            let h200 = Machine::named("H200").unwrap();
            let shape = ClusterShape { blocks, warps, vectors, resident: 2 };
            let persistent =
                Persistent::with_clusters(&h200, RowMatrix::new(columns, element), (shape, clusters)).unwrap().unwrap();
            let norm = Norm::new(1e-5);
            let all = [
                persistent_rms_norm(&persistent, norm.without_bias()),
                persistent_layer_norm(&persistent, norm),
                crate::softmax::persistent_softmax(&persistent),
            ];
            for planned in all.into_iter().skip(number % turns).step_by(turns) {
                let planned = planned.unwrap().sized(&[("M", rows)]);
                let report = planned.check().unwrap_or_else(|error| panic!("{columns} {element}: {planned}{error}"));
                assert_eq!(report.compared as i64, rows * columns);
                let mut outputs = planned.kernel().outputs().iter();
                assert!(outputs.all(|output| output.written == Written::Once), "{planned}");
                // Clusters claim rows from the counter of the launch.
                let text = ptx::write(planned.kernel().program(), ptx::Target::Sm90a).unwrap();
                assert!(text.contains("atom.global.inc.u32"), "{planned}");
            }
        }
    }

    /// The plan with persistent clusters that claim rows, as text; None if there is none.
    fn clusters(work: RowComputation, columns: i64, element: Element) -> Option<String> {
        let (h200, matrix) = (Machine::named("H200").unwrap(), RowMatrix::new(columns, element));
        let claims = |plan: &Persistent| work.claims(matrix, plan);
        let found = work.persistent(&h200, matrix).unwrap().filter(claims)?;
        Some(found.plan().split(" threads").next().unwrap_or_default().to_string())
    }

    #[test]
    fn persistent_clusters_have_enough_bytes_in_flight() {
        let norm = |columns, element, beside| {
            let work = if beside > 1 { RowComputation::LayerNorm } else { RowComputation::RmsNorm };
            clusters(work, columns, element)
        };
        let softmax = |columns, element| clusters(RowComputation::Softmax, columns, element);
        for (plan, wanted) in [
            // With two vectors per row, weights and bias: few blocks, and enough vectors in flight.
            (norm(20_000, Element::Bf16, 2), Some("124 clusters of 2 blocks of 256")),
            (norm(18_000, Element::Bf16, 2), Some("186 clusters of 2 blocks of 128")),
            (norm(36_864, Element::Bf16, 2), Some("93 clusters of 4 blocks of 128")),
            (norm(37_000, Element::Bf16, 2), Some("93 clusters of 4 blocks of 160")),
            (norm(45_000, Element::F32, 2), Some("46 clusters of 8 blocks of 128")),
            (norm(47_000, Element::F32, 2), Some("31 clusters of 8 blocks of 256")),
            (norm(30_000, Element::Bf16, 2), Some("93 clusters of 4 blocks of 160")),
            (norm(30_000, Element::F32, 2), Some("62 clusters of 4 blocks of 192")),
            (norm(60_000, Element::Bf16, 2), Some("62 clusters of 4 blocks of 192")),
            (norm(80_000, Element::Bf16, 2), Some("46 clusters of 8 blocks of 160")),
            (norm(80_000, Element::F32, 2), Some("23 clusters of 16 blocks of 160")),
            (norm(98_304, Element::Bf16, 2), Some("31 clusters of 8 blocks of 256")),
            (norm(98_304, Element::F32, 2), Some("15 clusters of 16 blocks of 256")),
            (norm(100_000, Element::Bf16, 2), Some("31 clusters of 8 blocks of 224")),
            (norm(100_000, Element::F32, 2), Some("15 clusters of 16 blocks of 224")),
            (norm(120_000, Element::F32, 2), Some("15 clusters of 16 blocks of 192")),
            (norm(125_000, Element::F32, 2), Some("15 clusters of 16 blocks of 256")),
            (norm(131_072, Element::Bf16, 2), Some("31 clusters of 8 blocks of 256")),
            (norm(131_072, Element::F32, 2), Some("15 clusters of 16 blocks of 256")),
            (norm(262_144, Element::Bf16, 2), Some("15 clusters of 16 blocks of 256")),
            // No persistent clusters: up to 32 KiB, not a multiple of 16 bytes, and too long.
            (norm(16_384, Element::Bf16, 2), None),
            (norm(100_002, Element::F32, 2), None),
            (norm(140_000, Element::F32, 2), None),
            (norm(i64::MAX, Element::Bf16, 2), None),
            // With one vector per row, from 128 KiB on.
            (norm(33_000, Element::F32, 1), Some("62 clusters of 4 blocks of 192")),
            (norm(80_000, Element::F32, 1), Some("23 clusters of 16 blocks of 160")),
            (norm(120_000, Element::Bf16, 1), Some("31 clusters of 8 blocks of 192")),
            (norm(131_072, Element::F32, 1), Some("15 clusters of 16 blocks of 256")),
            (norm(32_000, Element::F32, 1), None),
            (norm(60_000, Element::Bf16, 1), None),
            (norm(49_152, Element::Bf16, 1), None),
            (norm(90_000, Element::F32, 1), Some("23 clusters of 16 blocks of 128")),
            // Softmax: f32 rows that end within a run, from 384 KiB on.
            (softmax(80_000, Element::Bf16), Some("46 clusters of 8 blocks of 160")),
            (softmax(131_072, Element::Bf16), Some("31 clusters of 8 blocks of 256")),
            (softmax(131_072, Element::F32), Some("15 clusters of 16 blocks of 256")),
            (softmax(100_000, Element::F32), Some("23 clusters of 16 blocks of 160")),
            (softmax(98_304, Element::F32), Some("15 clusters of 16 blocks of 256")),
            (softmax(110_000, Element::F32), Some("23 clusters of 16 blocks of 160")),
            (softmax(65_536, Element::F32), Some("31 clusters of 8 blocks of 256")),
            (softmax(60_000, Element::Bf16), None),
            (softmax(80_000, Element::F32), None),
            (softmax(16_384, Element::F32), None),
        ] {
            assert_eq!(plan.as_deref(), wanted);
        }
    }
}

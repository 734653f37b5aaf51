//! Rows divided by their size.
//!
//! Laws, in f32 whatever the type of the elements is, for rows of N elements:
//!
//! * `rms_norm`: `y(m,n) = x(m,n) w(n) / sqrt(sum over j of x(m,j)^2 / N + epsilon)`.
//! * `layer_norm`: `y(m,n) = (x(m,n) - mean) w(n) / sqrt(variance + epsilon) + b(n)`, with the mean
//!   and the variance of row `m`, the latter as the mean of the squares of what is left of each
//!   element less the mean: nothing cancels.
//!
//! A row that the registers of a block hold is read once and written once, and kept there as it was
//! read. A longer one is read twice.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Element, Kernel, Num, Reduction};

use crate::error::PlanError;
use crate::long_rows::LongRows;
use crate::meaning::Meaning;
use crate::planned::Planned;
use crate::rows::Rows;

/// A kernel that divides each row of a matrix `(M,N)`, rows one after another, by the root of the
/// mean of its squares, and multiplies it by weights.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::rms_norm;
///
/// let plan = rms_norm(128, Element::Bf16, 1e-5).unwrap();
/// assert!(plan.to_string().contains("16 lanes a row, 8 rows a block, a vector of 8 a lane"));
/// ```
///
/// Errors: elements of this type have no roots; there are too many columns.
pub fn rms_norm(columns: i64, element: Element, epsilon: f64) -> Result<Planned, PlanError> {
    let rows = match Rows::new(columns, element) {
        Err(PlanError::TooLarge { .. }) => return long_rms_norm(columns, element, epsilon),
        rows => rows?,
    };
    let plan = vec![format!("rows of {columns} {element} by the root of their mean square"), rows.plan()];
    let kernel = Kernel::build("rms_norm", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let weights = rows.row(k, "weights")?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let held = rows.load(k, &x, None)?;
        let weights = rows.beside(&weights)?;
        let squares = rows.sum(k, &held, &[1, 2], |_, run| run.map(|x| Ok(x * x)))?;
        let factor = squares.map(|sum| Ok((sum * (1.0 / columns as f64) + epsilon).rsqrt()))?;
        rows.write(k, &held, &[weights], &y, |run, beside| {
            run.zip(&factor, |x, factor| Ok(x * factor))?.zip(&beside[0], |x, weight| Ok(x * weight))
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::RmsNorm { columns, epsilon }))
}

/// A kernel that takes the mean from each row of a matrix `(M,N)`, rows one after another, divides
/// it by the root of its variance, multiplies it by weights and adds a bias.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::layer_norm;
///
/// let plan = layer_norm(1000, Element::F32, 1e-5).unwrap();
/// assert!(plan.to_string().contains("a block of 128 threads a row, 2 vectors of 4 a thread"));
/// ```
///
/// Errors: elements of this type have no roots; there are too many columns.
pub fn layer_norm(columns: i64, element: Element, epsilon: f64) -> Result<Planned, PlanError> {
    let rows = match Rows::new(columns, element) {
        Err(PlanError::TooLarge { .. }) => return long_layer_norm(columns, element, epsilon),
        rows => rows?,
    };
    let plan = vec![format!("rows of {columns} {element} less their mean by the root of their variance"), rows.plan()];
    let kernel = Kernel::build("layer_norm", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let (weights, bias) = (rows.row(k, "weights")?, rows.row(k, "bias")?);
        let y = rows.matrix(k, "y", Role::Output)?;
        let held = rows.load(k, &x, None)?;
        let (weights, bias) = (rows.beside(&weights)?, rows.beside(&bias)?);
        let part = 1.0 / columns as f64;
        let mean = rows.sum(k, &held, &[1, 2], |_, run| Ok(run))?.map(|sum| Ok(sum * part))?;
        let squares = rows.sum(k, &held, &[1, 2], |number, run| {
            let left = rows.counted(k, number, run.zip(&mean, |x, mean| Ok(x - mean))?)?;
            left.map(|x| Ok(x * x))
        })?;
        let factor = squares.map(|sum| Ok((sum * part + epsilon).rsqrt()))?;
        rows.write(k, &held, &[weights, bias], &y, |run, beside| {
            let left = run.zip(&mean, |x, mean| Ok(x - mean))?.zip(&factor, |x, factor| Ok(x * factor))?;
            left.zip(&beside[0], |x, weight| Ok(x * weight))?.zip(&beside[1], |x, bias| Ok(x + bias))
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::LayerNorm { columns, epsilon }))
}

/// Rows that the registers of a block do not hold.
fn long_rms_norm(columns: i64, element: Element, epsilon: f64) -> Result<Planned, PlanError> {
    let rows = LongRows::new(columns, element)?;
    let plan = vec![format!("rows of {columns} {element} by the root of their mean square"), rows.plan()];
    let kernel = Kernel::build("rms_norm_long", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let weights = rows.row(k, "weights")?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let squares = rows.kept(k, 0.0)?;
        rows.first(k, &x, 0.0, |numbers, _| {
            // Of each chunk by itself, so that sums stay short.
            let chunk = numbers[1..].iter().fold(numbers[0] * numbers[0], |sum, x| x.multiply_add(*x, sum));
            squares.fragment().set(&[squares.fragment().numbers()?[0] + chunk])
        })?;
        let factor = squares.reduce(&[1], Reduction::Sum)?;
        let factor = factor.map(|sum| Ok((sum * (1.0 / columns as f64) + epsilon).rsqrt()))?;
        rows.second(k, [&x, &y], &[&weights], |run, beside| {
            run.zip(&factor, |x, factor| Ok(x * factor))?.zip(&beside[0], |x, weight| Ok(x * weight))
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::RmsNorm { columns, epsilon }))
}

/// The number, the mean and the squares of what is left of two sets together.
fn together<'k>(a: &[Num<'k>], b: &[Num<'k>]) -> Vec<Num<'k>> {
    let count = a[0] + b[0];
    let (weight, apart) = (b[0] / count.max(count.like(1.0)), b[1] - a[1]);
    vec![count, apart.multiply_add(weight, a[1]), a[2] + b[2] + apart * apart * (a[0] * weight)]
}

/// Rows that the registers of a block do not hold.
fn long_layer_norm(columns: i64, element: Element, epsilon: f64) -> Result<Planned, PlanError> {
    let rows = LongRows::new(columns, element)?;
    let plan = vec![format!("rows of {columns} {element} less their mean by the root of their variance"), rows.plan()];
    let kernel = Kernel::build("layer_norm_long", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let (weights, bias) = (rows.row(k, "weights")?, rows.row(k, "bias")?);
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
            // What does not count is 0, and was taken for as far from the mean as that.
            let squares = squares - (count.like(whole) - count) * mean * mean;
            let before = [0, 1, 2].map(|part: usize| kept[part].fragment().numbers());
            let [a, b, c] = before;
            let now = together(&[a?[0], b?[0], c?[0]], &[count, mean, squares]);
            kept.iter().zip(now).try_for_each(|(kept, now)| kept.fragment().set(&[now]))
        })?;
        let all = k.reduce_together(&[&kept[0], &kept[1], &kept[2]], &[1], |a, b| Ok(together(a, b)))?;
        let factor = all[2].map(|squares| Ok((squares * (1.0 / columns as f64) + epsilon).rsqrt()))?;
        rows.second(k, [&x, &y], &[&weights, &bias], |run, beside| {
            let left = run.zip(&all[1], |x, mean| Ok(x - mean))?.zip(&factor, |x, factor| Ok(x * factor))?;
            left.zip(&beside[0], |x, weight| Ok(x * weight))?.zip(&beside[1], |x, bias| Ok(x + bias))
        })
    })?;
    Ok(Planned::new(kernel, plan, Meaning::LayerNorm { columns, epsilon }))
}

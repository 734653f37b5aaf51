//! Rows divided by their size.
//!
//! Laws, in f32 whatever the type of the elements is, for rows of N elements:
//!
//! * `rms_norm`: `y(m,n) = x(m,n) w(n) / sqrt(sum over j of x(m,j)^2 / N + epsilon)`.
//! * `layer_norm`: `y(m,n) = (x(m,n) - mean) w(n) / sqrt(variance + epsilon) + b(n)`, with the mean
//!   and the variance of row `m`, the latter as the mean of the squares of what is left of each
//!   element less the mean: nothing cancels.
//!
//! A row is read once and written once, and kept in registers as it was read.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Element, Kernel};

use crate::error::PlanError;
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
/// Errors: elements of this type have no roots; a row does not fit into the registers of a block.
pub fn rms_norm(columns: i64, element: Element, epsilon: f64) -> Result<Planned, PlanError> {
    let rows = Rows::new(columns, element)?;
    let plan = vec![format!("rows of {columns} {element} by the root of their mean square"), rows.plan()];
    let kernel = Kernel::build("rms_norm", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let weights = rows.row(k, "weights")?;
        let y = rows.matrix(k, "y", Role::Output)?;
        let held = rows.load(k, &x, None)?;
        let weights = rows.beside(&weights)?;
        let squares = rows.sum(&held, &[1, 2], |_, run| run.map(|x| Ok(x * x)))?;
        let factor = squares.map(|sum| Ok((sum * (1.0 / columns as f64) + epsilon).rsqrt()))?;
        let y = rows.tile(k, &y)?;
        for (number, run) in held.iter().enumerate() {
            let scaled = run.to(Element::F32)?.zip(&factor, |x, factor| Ok(x * factor))?;
            let result = scaled.zip(&weights.run(number)?, |x, weight| Ok(x * weight))?;
            rows.store(&y, number, &result)?;
        }
        Ok(())
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
/// Errors: elements of this type have no roots; a row does not fit into the registers of a block.
pub fn layer_norm(columns: i64, element: Element, epsilon: f64) -> Result<Planned, PlanError> {
    let rows = Rows::new(columns, element)?;
    let plan = vec![format!("rows of {columns} {element} less their mean by the root of their variance"), rows.plan()];
    let kernel = Kernel::build("layer_norm", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let (weights, bias) = (rows.row(k, "weights")?, rows.row(k, "bias")?);
        let y = rows.matrix(k, "y", Role::Output)?;
        let held = rows.load(k, &x, None)?;
        let (weights, bias) = (rows.beside(&weights)?, rows.beside(&bias)?);
        let part = 1.0 / columns as f64;
        let mean = rows.sum(&held, &[1, 2], |_, run| Ok(run))?.map(|sum| Ok(sum * part))?;
        let squares = rows.sum(&held, &[1, 2], |number, run| {
            let left = rows.counted(k, number, run.zip(&mean, |x, mean| Ok(x - mean))?)?;
            left.map(|x| Ok(x * x))
        })?;
        let factor = squares.map(|sum| Ok((sum * part + epsilon).rsqrt()))?;
        let y = rows.tile(k, &y)?;
        for (number, run) in held.iter().enumerate() {
            let left = run.to(Element::F32)?.zip(&mean, |x, mean| Ok(x - mean))?;
            let scaled = left.zip(&factor, |x, factor| Ok(x * factor))?;
            let scaled = scaled.zip(&weights.run(number)?, |x, w| Ok(x * w))?;
            rows.store(&y, number, &scaled.zip(&bias.run(number)?, |x, b| Ok(x + b))?)?;
        }
        Ok(())
    })?;
    Ok(Planned::new(kernel, plan, Meaning::LayerNorm { columns, epsilon }))
}

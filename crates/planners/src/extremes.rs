//! Maximum and minimum of two numbers on the host.
//!
//! Law: the result is NaN if one of the numbers is NaN, as in kernels, NumPy and PyTorch. The
//! methods `max` and `min` of Rust's floats return the other number instead.

/// The greater of two numbers.
pub(crate) fn greater(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The lesser of two numbers.
pub(crate) fn lesser(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

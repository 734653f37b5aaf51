//! The greater and the lesser of two numbers on the host.
//!
//! Law: NaN if one of them is NaN, as kernels compute them, and as NumPy and PyTorch do. The
//! methods `max` and `min` of Rust's floats have the other number then.

/// The greater of two numbers.
pub(crate) fn greater(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The lesser of two numbers.
pub(crate) fn lesser(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

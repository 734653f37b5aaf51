//! Comparison of tensors of numbers, up to a tolerance.
//!
//! Law: elements `a` and `b` are close when they are equal, or `|a - b| <= absolute + relative *
//! |b|`. NaN is close to nothing, and infinity only to itself.

use std::fmt;

use tilewright_layout::{Tree, idx2crd};

use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::view::TensorView;

/// The tolerance: how far apart two numbers may be and still be close.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// The tolerance relative to the magnitude of the second number.
    pub relative: f64,
    /// The absolute tolerance, independent of the magnitude.
    pub absolute: f64,
}

/// The difference of two tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The number of elements that are not close to each other.
    pub count: i64,
    /// The number of elements compared.
    pub of: i64,
    /// The first coordinate with the largest distance, measured relative to the tolerance.
    pub worst: Tree<i64>,
    /// The two elements at that coordinate.
    pub elements: (f64, f64),
    /// The largest `|a - b|`; infinite if one of them is NaN.
    pub largest: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { count, of, worst, elements: (a, b), largest } = self;
        write!(
            f,
            "{count} of {of} elements differ; at {worst} one is {a} and the other {b}; the largest difference is {largest}"
        )
    }
}

impl<T: Copy + Into<f64>, L: Offsets> TensorView<'_, T, L> {
    /// The difference of this tensor from another of its shape; None if every element is close to
    /// the other's.
    ///
    /// Errors: the shapes differ.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::{Tensor, Tolerance};
    ///
    /// let (rows, columns): (Layout, Layout) = ("(2,2):(2,1)".parse().unwrap(), "(2,2):(1,2)".parse().unwrap());
    /// let a = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], rows).unwrap();
    /// let b = Tensor::from_vec(vec![1.0_f32, 3.0, 2.001, 4.5], columns).unwrap();
    /// let difference = a.view().difference(&b.view(), Tolerance { relative: 0.01, absolute: 0.0 }).unwrap().unwrap();
    /// assert_eq!(difference.to_string(), "1 of 4 elements differ; at (1,1) one is 4 and the other 4.5; the largest difference is 0.5");
    /// ```
    pub fn difference<U: Copy + Into<f64>, M: Offsets>(
        &self,
        other: &TensorView<'_, U, M>,
        tolerance: Tolerance,
    ) -> Result<Option<Difference>, TensorError> {
        let (first, second) = (self.shape(), other.shape());
        if first != second {
            return Err(TensorError::Shapes { first: Box::new(first), second: Box::new(second) });
        }
        let (mut count, mut largest, mut worst) = (0, 0.0_f64, None);
        let mut furthest = f64::NEG_INFINITY;
        for (index, (a, b)) in (0..).zip(self.iter().zip(other.iter())) {
            let (a, b): (f64, f64) = ((*a).into(), (*b).into());
            if a == b {
                continue;
            }
            let distance = (a - b).abs();
            let distance = if distance.is_nan() { f64::INFINITY } else { distance };
            let allowed = tolerance.absolute + tolerance.relative * b.abs();
            largest = largest.max(distance);
            // An infinite distance is close at no tolerance.
            if distance <= allowed && distance.is_finite() {
                continue;
            }
            count += 1;
            let excess = if allowed > 0.0 && allowed.is_finite() { distance / allowed } else { f64::INFINITY };
            if worst.is_none() || excess > furthest {
                furthest = excess;
                worst = Some((index, (a, b)));
            }
        }
        let Some((index, elements)) = worst else { return Ok(None) };
        let worst = idx2crd(&Tree::leaf(index), &first)?;
        Ok(Some(Difference { count, of: self.size(), worst, elements, largest }))
    }
}

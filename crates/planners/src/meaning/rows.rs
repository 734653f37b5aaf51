//! Definitions of row kernels, in f64.
//!
//! The bounds hold for sums in f32 in any order: a row of n numbers is summed in about log2(n)
//! steps plus the vectors of a thread. 64 steps are an upper bound, each of which rounds by half a
//! unit in the last place of the running sum.

use crate::terms::Statistic;

/// The relative error of a sum of 64 steps in f32, and of the approximate functions of the hardware
/// that follow it, for arguments of up to 2^5: exponentials, roots and divisions have a relative
/// error of 2^-22 each.
const RELATIVE: f64 = 1.0 / (1 << 17) as f64;

/// Running statistics of a sequence of numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Many {
    count: usize,
    sum: f64,
    size: f64,
    squares: f64,
    greatest: f64,
    place: usize,
}

impl Many {
    pub(super) fn new() -> Many {
        Many { count: 0, sum: 0.0, size: 0.0, squares: 0.0, greatest: f64::NEG_INFINITY, place: 0 }
    }

    pub(super) fn add(&mut self, x: f64) {
        // The first NaN is the maximum.
        if x > self.greatest || x.is_nan() && !self.greatest.is_nan() {
            (self.greatest, self.place) = (x, self.count);
        }
        self.count += 1;
        self.sum += x;
        self.size += x.abs();
        self.squares += x * x;
    }

    /// A statistic of the numbers, and a bound on its rounding error.
    pub(super) fn statistic(&self, statistic: Statistic) -> (f64, f64) {
        let count = self.count.max(1) as f64;
        // A thread adds its elements in order, and each addition rounds.
        let rounded = |size: f64| size * (RELATIVE + count * f64::from(f32::EPSILON) / 256.0);
        match statistic {
            Statistic::Sum => (self.sum, rounded(self.size)),
            Statistic::Mean => (self.sum / count, rounded(self.size) / count),
            Statistic::Norm => (self.squares.sqrt(), rounded(self.squares.sqrt())),
            Statistic::Maximum => (self.greatest, 0.0),
            Statistic::ArgMaximum => (self.place as f64, 0.0),
        }
    }
}

/// A row, and its statistics.
pub(super) struct Row {
    numbers: Vec<f64>,
    greatest: f64,
    /// Sum of `e^(x - maximum)`.
    powers: f64,
    mean: f64,
    squares: f64,
    variance: f64,
    size: f64,
}

impl Row {
    pub(super) fn new(numbers: Vec<f64>) -> Row {
        let count = numbers.len().max(1) as f64;
        let greatest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers = numbers.iter().map(|x| (x - greatest).exp()).sum();
        let mean = numbers.iter().sum::<f64>() / count;
        let squares = numbers.iter().map(|x| x * x).sum::<f64>() / count;
        let variance = numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let size = numbers.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
        Row { numbers, greatest, powers, mean, squares, variance, size }
    }

    /// The softmax of an element, and a bound on its rounding error.
    pub(super) fn softmax(&self, column: usize) -> (f64, f64) {
        let value = (self.numbers[column] - self.greatest).exp() / self.powers;
        (value, value * RELATIVE + f64::from(f32::MIN_POSITIVE))
    }

    pub(super) fn rms_norm(&self, column: usize, weight: f64, epsilon: f64) -> (f64, f64) {
        let value = self.numbers[column] * weight / (self.squares + epsilon).sqrt();
        (value, value.abs() * RELATIVE)
    }

    pub(super) fn layer_norm(&self, column: usize, weight: f64, bias: f64, epsilon: f64) -> (f64, f64) {
        let scale = weight / (self.variance + epsilon).sqrt();
        let value = (self.numbers[column] - self.mean) * scale;
        // The error of the mean is that of the sum, divided by the length.
        (value + bias, (value.abs() + bias.abs() + self.size * scale.abs()) * RELATIVE)
    }
}

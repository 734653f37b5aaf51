//! Statistics of several numbers.

/// A statistic of several numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The 2-norm: the root of the sum of squares.
    Norm,
    /// The maximum.
    Maximum,
    /// The argmax: the index of the maximum, from 0, as i32.
    ArgMaximum,
}

impl Statistic {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Statistic::Sum => "sum",
            Statistic::Mean => "mean",
            Statistic::Norm => "norm",
            Statistic::Maximum => "greatest",
            Statistic::ArgMaximum => "place of the greatest",
        }
    }
}

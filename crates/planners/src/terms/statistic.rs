//! What is computed of many numbers.

/// What is computed of many numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// Their sum.
    Sum,
    /// Their sum divided by their number.
    Mean,
    /// The root of the sum of their squares.
    Norm,
    /// The greatest.
    Maximum,
    /// The place of the greatest, from 0, as i32.
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

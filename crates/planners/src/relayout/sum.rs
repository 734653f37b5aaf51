//! Offsets as sums, and their division by a power of two.
//!
//! Law: `base + sum index * step = m * quotient + remainder` with `0 <= remainder < m`. The steps
//! are divided when the kernel is built; what a thread divides is the sum of the remainders of the
//! steps, which is small. So an offset of 64 bits is aligned by arithmetic of 32, and the quotient
//! is a sum of multiples again, of which the algebra knows the bounds.

use tilewright_kernel::{Build, Flag, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{LayoutError, Stride};

/// Indices up to here times a remainder, and a few of them, are small.
const LARGE: i64 = 1 << 24;

/// `base + sum index * step`.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    pub(super) base: i64,
    pub(super) terms: Vec<(Expr, i64)>,
}

/// The sum of two indices.
pub(super) fn plus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Ok(Stride::plus(a, b).ok_or(LayoutError::Overflow { op: "offset" })?)
}

/// Both conditions, of which either may be none.
pub(super) fn both<'k>(a: Option<Flag<'k>>, b: Option<Flag<'k>>) -> Option<Flag<'k>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.and(b)),
        (a, b) => a.or(b),
    }
}

/// A multiple of an index.
pub(super) fn times(a: &Expr, by: i64) -> Result<Expr, KernelError> {
    Ok(Stride::times(a, &Expr::from(by)).ok_or(LayoutError::Overflow { op: "offset" })?)
}

impl Sum {
    /// The sum as an expression.
    pub(super) fn expr(&self) -> Result<Expr, KernelError> {
        let add = |sum: Expr, (index, step): &(Expr, i64)| plus(&sum, &times(index, *step)?);
        self.terms.iter().try_fold(Expr::from(self.base), add)
    }

    /// Quotient and remainder by `m`.
    pub(super) fn divided(&self, k: &Build, m: i64) -> Result<(Expr, Expr), KernelError> {
        let part = |of: &dyn Fn(i64) -> i64| Sum {
            base: of(self.base),
            terms: self
                .terms
                .iter()
                .map(|(index, step)| (index.clone(), of(*step)))
                .filter(|term| term.1 != 0)
                .collect(),
        };
        let mut quotient = part(&|step| step.div_euclid(m));
        let mut small = part(&|step| step.rem_euclid(m));
        for (index, step) in &mut small.terms {
            // A large index is divided first.
            if index.range().1.is_none_or(|greatest| greatest > LARGE) {
                quotient.terms.push((k.quotient(index, m)?, *step));
                *index = k.remainder(index, m)?;
            }
        }
        let small = small.expr()?;
        Ok((plus(&quotient.expr()?, &k.quotient(&small, m)?)?, k.remainder(&small, m)?))
    }

    /// The first multiple of `m` that is not less, divided by `m`, and how far it is.
    pub(super) fn rounded_up(&self, k: &Build, m: i64) -> Result<(Expr, Expr), KernelError> {
        let terms = self.terms.iter().map(|(index, step)| (index.clone(), -step)).collect();
        let (quotient, remainder) = Sum { base: -self.base, terms }.divided(k, m)?;
        Ok((times(&quotient, -1)?, remainder))
    }
}

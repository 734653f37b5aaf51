//! Offsets as sums, and their division by a power of two.
//!
//! Law: `base + sum index * step = m * quotient + remainder` with `0 <= remainder < m`. The steps
//! are divided when the kernel is built; a thread divides only the sum of the remainders, which is
//! small. So a 64-bit offset is aligned by 32-bit arithmetic, and the quotient is again a sum of
//! multiples, whose bounds the algebra knows.

use tilewright_kernel::{Build, Flag, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{LayoutError, Stride};

/// The largest index whose product with a remainder, and sums of a few such products, fit in 32
/// bits.
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

/// The conjunction of two conditions, either of which may be None.
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

    /// The smallest multiple of `m` that is not less than the sum, divided by `m`, and the
    /// difference.
    pub(super) fn rounded_up(&self, k: &Build, m: i64) -> Result<(Expr, Expr), KernelError> {
        let terms = self.terms.iter().map(|(index, step)| (index.clone(), -step)).collect();
        let (quotient, remainder) = Sum { base: -self.base, terms }.divided(k, m)?;
        Ok((times(&quotient, -1)?, remainder))
    }
}

//! Checks for verifiers, with answers that include a reason.
//!
//! Law: the answer is a [`Verdict`]. It holds, with the established result; or it fails, with the
//! first position of the failure, the mode and the numbers; or it is not decided, with the error of
//! the algebra (a search that reached its limit, a number beyond 64 bits, a fact about an extent
//! that is not known). It prints as the sentence of a diagnostic.
//!
//! | question | function |
//! |---|---|
//! | do shape and stride have the same nesting? | [`congruent`] |
//! | does a coordinate fit a shape? | [`weakly_congruent`] |
//! | is there a mode at a path? | [`mode_at`] |
//! | does a shape divide cleanly by a tiler, rounded up, down or not at all? | [`divides`] |
//! | does the inner image fit the outer domain? | [`fits`]; [`fits_shape`] for values that are coordinates |
//! | are two layouts the same function? | [`equal`], [`equal_composed`] |
//! | are they, apart from broadcasts? | [`equal_without_broadcast`], [`equal_composed_without_broadcast`] |
//! | are they, with the same swizzle? | [`identical_composed`] |
//! | do different coordinates have different offsets? | [`injective`] |
//! | is a declared type the one that was inferred? | [`result_type`] |
//!
//! The algebra decides; this module finds the position for the message.
//!
//! ```
//! use tilewright_layout::verify::{self, Remainder};
//! use tilewright_layout::{Layout, Tiler, Tree};
//!
//! # fn main() -> Result<(), tilewright_layout::LayoutError> {
//! let (shape, tiler): (Tree<i64>, Tiler) = ("(128,60)".parse()?, "[16:1;8:1]".parse()?);
//! let verdict = verify::divides(&shape, &tiler, Remainder::Exact);
//! assert!(!verdict.holds());
//! assert_eq!(verdict.to_string(), "fails: exact division: in mode 1, extent 60 is 7 tiles of 8 and 4 more");
//!
//! let (outer, inner): (Layout, Layout) = ("(4,8):(8,1)".parse()?, "(4,4):(1,12)".parse()?);
//! assert_eq!(
//!     verify::fits(&inner, &outer).to_string(),
//!     "fails: the image of the inner layout reaches 39 at coordinate (3,3), and the domain of the outer layout ends at 31"
//! );
//! # Ok(())
//! # }
//! ```

mod congruence;
mod division;
mod domain;
mod equality;
mod injectivity;
mod types;

use core::fmt;

use crate::refusal::message::ModeName;
use crate::{LayoutError, Tree, Truth};

pub use congruence::{Incongruent, MissingMode, congruent, mode_at, weakly_congruent};
pub use division::{Division, Indivisible, Ragged, Remainder, divides};
pub use domain::{Fit, Outside, OutsideShape, fits, fits_shape};
pub use equality::{
    Difference, Distinct, Point, equal, equal_composed, equal_composed_without_broadcast, equal_without_broadcast,
    identical_composed,
};
pub use injectivity::{Injective, SharedOffset, injective};
pub use types::{Mismatch, result_type};

/// The answer to a question: it holds, with result `H`; or it fails, with evidence `F`; or it is
/// not decided, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Verdict<H, F> {
    /// It holds, with the established result.
    Holds(H),
    /// It fails, with position and reason.
    Fails(F),
    /// It is not decided, with the missing fact or the limit.
    Undecided(LayoutError),
}

impl<H, F> Verdict<H, F> {
    /// Whether it was proved to hold.
    pub fn holds(&self) -> bool {
        matches!(self, Verdict::Holds(_))
    }

    /// Whether it was proved to fail.
    pub fn fails(&self) -> bool {
        matches!(self, Verdict::Fails(_))
    }

    /// The answer without its reasons.
    pub fn truth(&self) -> Truth {
        match self {
            Verdict::Holds(_) => Truth::Proved,
            Verdict::Fails(_) => Truth::Refuted,
            Verdict::Undecided(_) => Truth::Open,
        }
    }

    /// The position and reason of a failure; None if it does not fail.
    pub fn failure(self) -> Option<F> {
        match self {
            Verdict::Fails(fails) => Some(fails),
            Verdict::Holds(_) | Verdict::Undecided(_) => None,
        }
    }
}

impl<H: fmt::Display, F: fmt::Display> fmt::Display for Verdict<H, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds(holds) => write!(f, "holds: {holds}"),
            Verdict::Fails(fails) => write!(f, "fails: {fails}"),
            Verdict::Undecided(error) => write!(f, "undecided: {error}"),
        }
    }
}

/// The intermediate result of a question that may be undecided.
type Decided<H, F> = Result<Result<H, F>, LayoutError>;

impl<H, F> From<Decided<H, F>> for Verdict<H, F> {
    fn from(decided: Decided<H, F>) -> Verdict<H, F> {
        match decided {
            Ok(Ok(holds)) => Verdict::Holds(holds),
            Ok(Err(fails)) => Verdict::Fails(fails),
            Err(error) => Verdict::Undecided(error),
        }
    }
}

/// A mode at the start of a sentence: `in mode 1, `, `in mode [1,0], `; nothing for the whole.
struct In<'a>(&'a [usize]);

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            path => write!(f, "in {}, ", ModeName(path)),
        }
    }
}

/// A coordinate in a sentence: always in parentheses.
struct At<'a, N>(&'a Tree<N>);

impl<N: fmt::Display> fmt::Display for At<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_leaf() { write!(f, "({})", self.0) } else { self.0.fmt(f) }
    }
}

/// The error of a question that needs a fact.
fn open(op: &'static str, fact: impl fmt::Display) -> LayoutError {
    LayoutError::unknown(op, &fact)
}

//! The states of a candidate.
//!
//! Law: a candidate is proposed when it is made. Assignment chooses it or rejects it; while it is
//! chosen and nothing depends on it, the choice can be undone, which is how a search backtracks.
//! Once conversions and copies use it, the choice is final:
//!
//! ```text
//!              +--> rejected
//!              |
//!  proposed ---+--> assigned ----> materialised
//!     ^                |
//!     +----------------+
//! ```
//!
//! An assigned candidate cannot be rejected: the choice must be undone first, so that no value
//! keeps a layout that was ruled out.

use core::error::Error;
use core::fmt;

use crate::ground::words::words;

words! {
    /// The state of a candidate during layout assignment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum State {
        /// It may be chosen or rejected.
        Proposed = "proposed",
        /// It is the layout of its value, but the choice may be undone.
        Assigned = "assigned",
        /// The program has conversions to it, or copies and MMAs that use it.
        Materialised = "materialised",
        /// It was ruled out.
        Rejected = "rejected",
    }
}

impl State {
    /// The states that may follow this one.
    ///
    /// ```
    /// use tilewright_layout::candidate::State;
    ///
    /// assert_eq!(State::Proposed.successors(), [State::Assigned, State::Rejected]);
    /// assert_eq!(State::Assigned.successors(), [State::Proposed, State::Materialised]);
    /// assert!(State::Materialised.successors().is_empty() && State::Rejected.successors().is_empty());
    /// ```
    pub fn successors(self) -> &'static [State] {
        match self {
            State::Proposed => &[State::Assigned, State::Rejected],
            State::Assigned => &[State::Proposed, State::Materialised],
            State::Materialised | State::Rejected => &[],
        }
    }

    /// Whether `next` may follow this state.
    pub fn leads_to(self, next: State) -> bool {
        self.successors().contains(&next)
    }
}

/// A change of state that is not legal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IllegalChange {
    /// The state that the candidate is in.
    pub from: State,
    /// The requested state.
    pub to: State,
}

impl fmt::Display for IllegalChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IllegalChange { from, to } = self;
        write!(f, "a candidate that is {from} cannot become {to}")?;
        match from.successors() {
            [] => f.write_str(", nor anything else"),
            [first, rest @ ..] => {
                write!(f, ", only {first}")?;
                rest.iter().try_for_each(|state| write!(f, " or {state}"))
            }
        }
    }
}

impl Error for IllegalChange {}

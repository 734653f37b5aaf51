//! Why an operator is refused.

use std::error::Error;
use std::fmt;

use tilewright_layout::nearest;
use tilewright_tile::TileError;

/// Why there are no programs for an operator with these options.
///
/// ```
/// use tilewright_ops::{Operator, Softmax};
///
/// let error = Softmax { length: 0, ..Softmax::default() }.forward().unwrap_err();
/// assert_eq!(error.to_string(), "softmax: `length` is 0, and a row has at least one element");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OperatorError {
    /// No operator has this name.
    UnknownOperator {
        /// The name.
        name: String,
        /// The names of all operators.
        known: Vec<&'static str>,
    },
    /// The operator has no option of this name.
    UnknownOption {
        /// The operator.
        operator: &'static str,
        /// The name of the option.
        name: String,
        /// The names of its options.
        known: Vec<&'static str>,
    },
    /// The value of an option has another type than the option.
    Type {
        /// The operator.
        operator: &'static str,
        /// The option.
        name: &'static str,
        /// The value, as text.
        value: String,
        /// The type of the option.
        wanted: &'static str,
    },
    /// No kernel supports this value of an option.
    Value {
        /// The operator.
        operator: &'static str,
        /// The option.
        name: &'static str,
        /// The value, as text.
        value: String,
        /// The values that are possible.
        because: String,
    },
    /// The operator has no derivatives.
    NoBackward {
        /// The operator.
        operator: &'static str,
        /// The reason.
        because: &'static str,
    },
    /// The tile program is refused.
    Tile(TileError),
}

impl OperatorError {
    /// A refusal of the value of an option.
    pub(crate) fn value(
        operator: &'static str,
        name: &'static str,
        value: impl fmt::Display,
        because: impl Into<String>,
    ) -> OperatorError {
        OperatorError::Value { operator, name, value: value.to_string(), because: because.into() }
    }
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperatorError::UnknownOperator { name, known } => {
                write!(f, "there is no operator `{name}`")?;
                match nearest(name, known, 1).first() {
                    Some(near) => write!(f, ": did you mean `{near}`?"),
                    None => write!(f, ": there are {}", known.join(", ")),
                }
            }
            OperatorError::UnknownOption { operator, name, known } => {
                write!(f, "{operator} has no option `{name}`: it has {}", known.join(", "))
            }
            OperatorError::Type { operator, name, value, wanted } => {
                write!(f, "{operator}: `{name}` is {wanted}, not {value}")
            }
            OperatorError::Value { operator, name, value, because } => {
                write!(f, "{operator}: `{name}` is {value}, and {because}")
            }
            OperatorError::NoBackward { operator, because } => write!(f, "{operator} has no derivatives: {because}"),
            OperatorError::Tile(error) => error.fmt(f),
        }
    }
}

impl Error for OperatorError {}

tilewright_layout::from_variants!(OperatorError: Tile(TileError));

//! The table of operators: a name, a summary, and how options become programs.

use tilewright_tile::Sequence;

use crate::error::OperatorError;
use crate::options::{FromOptions, Options};
use crate::{Activation, Dropout, LayerNorm, LogSoftmax, Operator, RmsNorm, Softmax};

/// An operator of the table.
#[derive(Debug, Clone, Copy)]
pub struct OperatorEntry {
    /// Its name.
    pub name: &'static str,
    /// What it computes, in one sentence without a full stop.
    pub summary: &'static str,
    /// Makes it of options.
    make: fn(&Options) -> Result<Box<dyn Operator>, OperatorError>,
}

fn make<T: Operator + FromOptions + 'static>(options: &Options) -> Result<Box<dyn Operator>, OperatorError> {
    Ok(Box::new(options.read::<T>()?))
}

const fn entry<T: Operator + FromOptions + 'static>(summary: &'static str) -> OperatorEntry {
    OperatorEntry { name: T::OPERATOR, summary, make: make::<T> }
}

/// All operators.
///
/// ```
/// use tilewright_ops::OPERATORS;
///
/// assert!(OPERATORS.iter().any(|entry| entry.name == "rms_norm"));
/// ```
pub const OPERATORS: &[OperatorEntry] = &[
    entry::<Softmax>("The softmax of each row"),
    entry::<LogSoftmax>("The logarithm of the softmax of each row"),
    entry::<RmsNorm>("Each row over the root of its mean square"),
    entry::<LayerNorm>("Each row less its mean, over the root of its variance"),
    entry::<Activation>("A function of each element, or of one tensor times another"),
    entry::<Dropout>("Each element, or 0 with a given probability"),
];

/// The programs of the operator of a name: of its forward, or of its backward.
///
/// ```
/// use tilewright_ops::{OptionValue, Options, operator};
///
/// let options = Options::from([("length", OptionValue::Integer(1024))]);
/// let forward = operator("softmax", &options, false)?;
/// assert!(forward.to_string().starts_with("tile softmax {"));
/// let error = operator("sofmax", &options, false).unwrap_err();
/// assert_eq!(error.to_string(), "there is no operator `sofmax`: did you mean `softmax`?");
/// # Ok::<(), tilewright_ops::OperatorError>(())
/// ```
///
/// Errors: an unknown operator or option; options that no kernel has; a backward that there is not.
pub fn operator(name: &str, options: &Options, is_backward: bool) -> Result<Sequence, OperatorError> {
    let found = OPERATORS.iter().find(|entry| entry.name == name);
    let entry = found.ok_or_else(|| OperatorError::UnknownOperator { name: name.to_string() })?;
    let operator = (entry.make)(options)?;
    if is_backward { operator.backward() } else { operator.forward() }
}

//! Substitution of numbers for parameters.
//!
//! Law: with a number for each parameter, substitution in a value gives the value that the same
//! program gives for these numbers ([`Value::substitute`]).

use tilewright_layout::symbolic::{Expr, Values};
use tilewright_layout::{AnyTree, Extent};

use crate::value::Value;

/// The values given by pairs of a name and a number. The error is the index of the first argument
/// that is not such a pair.
pub(crate) fn values_of(pairs: &[&Value]) -> Result<Values, usize> {
    let mut values = Values::new();
    for (number, pair) in pairs.chunks(2).enumerate() {
        let is_name = |value: &Value| matches!(value, Value::Tree(AnyTree::Launch(name)) if name.is_leaf());
        let [Value::Tree(name), Value::Int(value)] = pair else {
            return Err(2 * number + usize::from(pair.first().is_some_and(|value| is_name(value))));
        };
        let name = name.number().filter(|_| name.is_leaf()).ok_or(2 * number)?;
        match tilewright_layout::symbolic::Symbolic::parameters(&*name).as_slice() {
            [parameter] if name.known().is_none() && Expr::from(parameter.clone()) == *name => {
                values.set(parameter, *value);
            }
            _ => return Err(2 * number),
        }
    }
    Ok(values)
}

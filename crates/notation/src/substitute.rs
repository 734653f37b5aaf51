//! Numbers in place of parameters, as a program gives them.
//!
//! Law: a value for each parameter turns a value of the language into the one that the same program
//! gives of these numbers ([`Value::substitute`]).

use tilewright_layout::symbolic::{Expr, Values};
use tilewright_layout::{AnyTree, Extent};

use crate::value::Value;

/// The values that pairs of a name and a number give; the number of the first argument that is not
/// so.
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

//! Numbers in place of parameters, in values of every kind.
//!
//! Law: a value for each parameter turns a value of the language into the one that the same program gives of these numbers.

use tilewright_layout::symbolic::{Expr, Parameter, Symbolic, Values};
use tilewright_layout::{Extent, LayoutError};

use crate::value::Value;

impl Value {
    /// The parameters in it, each once: the numbers that become known at launch.
    ///
    /// ```
    /// use tilewright_notation::{Environment, evaluate};
    ///
    /// let value = evaluate("(M{div=8},K):(K,1)", &mut Environment::new()).unwrap();
    /// let names: Vec<String> = value.parameters().iter().map(ToString::to_string).collect();
    /// assert_eq!(names, ["K", "M"]);
    /// ```
    pub fn parameters(&self) -> Vec<Parameter> {
        match self {
            Value::Symbol(number) => number.parameters(),
            Value::SymbolTree(tree) => tree.parameters(),
            Value::SymbolCoord(coord) => coord.parameters(),
            Value::SymbolLayout(layout) => layout.parameters(),
            Value::SymbolTiler(tiler) => tiler.parameters(),
            Value::SymbolComposed(map) => map.parameters(),
            Value::StepTree(tree) => tree.parameters(),
            Value::StepLayout(layout) => layout.parameters(),
            Value::StepTiler(tiler) => tiler.parameters(),
            Value::StepComposed(map) => map.parameters(),
            Value::List(items) => {
                let mut found: Vec<Parameter> = items.iter().flat_map(Value::parameters).collect();
                found.sort();
                found.dedup();
                found
            }
            _ => Vec::new(),
        }
    }

    /// The value with each parameter that is given replaced by its number.
    ///
    /// Errors: a number that the facts of its parameter do not admit; a number is not representable.
    ///
    /// ```
    /// use tilewright_layout::symbolic::Values;
    /// use tilewright_notation::{Environment, evaluate};
    ///
    /// let value = evaluate("(M{div=8},K):(1@0,1@1)", &mut Environment::new()).unwrap();
    /// let mut values = Values::new();
    /// values.set_named("M", 64);
    /// values.set_named("K", 3);
    /// assert_eq!(value.substitute(&values).unwrap().to_string(), "(64,3):(1@0,1@1)");
    /// ```
    pub fn substitute(&self, values: &Values) -> Result<Value, LayoutError> {
        Ok(match self {
            Value::Symbol(number) => number.substitute(values)?.into(),
            Value::SymbolTree(tree) => tree.substitute(values)?.into(),
            Value::SymbolCoord(coord) => coord.substitute(values)?.into(),
            Value::SymbolLayout(layout) => layout.substitute(values)?.into(),
            Value::SymbolTiler(tiler) => tiler.substitute(values)?.into(),
            Value::SymbolComposed(map) => map.substitute(values)?.into(),
            Value::StepTree(tree) => tree.substitute(values)?.into(),
            Value::StepLayout(layout) => layout.substitute(values)?.into(),
            Value::StepTiler(tiler) => tiler.substitute(values)?.into(),
            Value::StepComposed(map) => map.substitute(values)?.into(),
            Value::List(items) => {
                Value::List(items.iter().map(|item| item.substitute(values)).collect::<Result<_, _>>()?)
            }
            known => known.clone(),
        })
    }
}

/// The values that pairs of a name and a number give; the number of the first argument that is not so.
pub(crate) fn values_of(pairs: &[Value]) -> Result<Values, usize> {
    let mut values = Values::new();
    for (number, pair) in pairs.chunks(2).enumerate() {
        let [Value::Symbol(name), Value::Int(value)] = pair else {
            let odd = usize::from(matches!(pair.first(), Some(Value::Symbol(_))));
            return Err(2 * number + odd);
        };
        match name.parameters().as_slice() {
            [parameter] if name.known().is_none() && Expr::from(parameter.clone()) == *name => {
                values.set(parameter, *value);
            }
            _ => return Err(2 * number),
        }
    }
    Ok(values)
}

//! Numbers in place of parameters, in values of every kind.
//!
//! Law: a value for each parameter turns a value of the language into the one that the same program gives of these numbers.

use tilewright_layout::symbolic::{Expr, Parameter, Symbolic, Values};
use tilewright_layout::{Composed, Extent, Layout, LayoutError, OuterMap, Stride, Tiler, Tree};

use crate::kinds::Step;
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
        let mut found = Vec::new();
        gather(self, &mut found);
        found.sort();
        found.dedup();
        found
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
            Value::SymbolComposed(map) => {
                let offset = map.offset().substitute(values)?;
                Composed::new(in_map(map.outer(), values)?, offset, map.inner().substitute(values)?)?.into()
            }
            Value::StepTree(tree) => tree.try_map(|step| in_step(step, values))?.into(),
            Value::StepLayout(layout) => in_layout(layout, values)?.into(),
            Value::StepTiler(tiler) => in_tiler(tiler, values)?.into(),
            Value::StepComposed(map) => {
                let offset = in_step(map.offset(), values)?;
                Composed::new(in_map(map.outer(), values)?, offset, in_layout(map.inner(), values)?)?.into()
            }
            Value::List(items) => {
                Value::List(items.iter().map(|item| item.substitute(values)).collect::<Result<_, _>>()?)
            }
            known => known.clone(),
        })
    }
}

fn in_step(step: &Step, values: &Values) -> Result<Step, LayoutError> {
    step.terms().try_fold(Step::zero(), |sum, (path, scale)| {
        let term = Step::step(scale.substitute(values)?, path);
        sum.plus(&term).ok_or(LayoutError::Overflow { op: "substitute" })
    })
}

fn in_layout(layout: &Layout<Step>, values: &Values) -> Result<Layout<Step>, LayoutError> {
    let stride: Tree<Step> = layout.stride().try_map(|step| in_step(step, values))?;
    Layout::new(&layout.shape().substitute(values)?, &stride)
}

fn in_tiler(tiler: &Tiler<Step>, values: &Values) -> Result<Tiler<Step>, LayoutError> {
    match tiler {
        Tiler::Keep => Ok(Tiler::Keep),
        Tiler::Layout(layout) => in_layout(layout, values).map(Tiler::Layout),
        Tiler::Modes(modes) => {
            Tiler::modes(modes.items().iter().map(|item| in_tiler(item, values)).collect::<Result<Vec<_>, _>>()?)
        }
    }
}

fn in_map(map: &OuterMap<Expr>, values: &Values) -> Result<OuterMap<Expr>, LayoutError> {
    match map {
        OuterMap::Layout(layout) => layout.substitute(values).map(OuterMap::Layout),
        OuterMap::Chain(chain) => {
            let offset = chain.offset().substitute(values)?;
            in_map(chain.outer(), values)?.after(&offset, &in_map(chain.inner(), values)?)
        }
        known => Ok(known.clone()),
    }
}

fn gather(value: &Value, found: &mut Vec<Parameter>) {
    let mut steps = |tree: &Tree<Step>| {
        tree.leaves().iter().flat_map(Step::terms).for_each(|(_, scale)| found.extend(scale.parameters()));
    };
    match value {
        Value::Symbol(number) => found.extend(number.parameters()),
        Value::SymbolTree(tree) => found.extend(tree.parameters()),
        Value::SymbolCoord(coord) => found.extend(coord.parameters()),
        Value::SymbolLayout(layout) => found.extend(layout.parameters()),
        Value::SymbolTiler(tiler) => found.extend(tiler.parameters()),
        Value::StepTree(tree) => steps(tree),
        Value::StepLayout(layout) => {
            steps(&layout.stride());
            found.extend(layout.shape().parameters());
        }
        Value::StepTiler(tiler) => in_tiles(tiler, found),
        Value::SymbolComposed(map) => {
            in_maps(map.outer(), found);
            found.extend(map.offset().parameters());
            found.extend(map.inner().parameters());
        }
        Value::StepComposed(map) => {
            steps(&Tree::leaf(map.offset().clone()));
            steps(&map.inner().stride());
            in_maps(map.outer(), found);
            found.extend(map.shape().parameters());
        }
        Value::List(items) => items.iter().for_each(|item| gather(item, found)),
        _ => {}
    }
}

fn in_tiles(tiler: &Tiler<Step>, found: &mut Vec<Parameter>) {
    match tiler {
        Tiler::Keep => {}
        Tiler::Layout(layout) => gather(&Value::StepLayout(Box::new(layout.clone())), found),
        Tiler::Modes(modes) => modes.items().iter().for_each(|item| in_tiles(item, found)),
    }
}

fn in_maps(map: &OuterMap<Expr>, found: &mut Vec<Parameter>) {
    match map {
        OuterMap::Layout(layout) => found.extend(layout.parameters()),
        OuterMap::Chain(chain) => {
            in_maps(chain.outer(), found);
            found.extend(chain.offset().parameters());
            in_maps(chain.inner(), found);
        }
        OuterMap::Swizzle(_) | OuterMap::Bits(_) => {}
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

//! Substitution of numbers for parameters.
//!
//! Law: given a value for each parameter, an expression becomes its value, and a structure of
//! expressions the same structure of numbers. A value that the facts of a parameter do not admit is
//! refused.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use super::expression::Expr;
use super::parameter::Parameter;
use super::polynomial::{Atom, Operation};
use super::quotient;
use super::text;
use crate::coordinate::Coordinate;
use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Extent;

const OP: &str = "substitute";

/// Values of parameters.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_layout::symbolic::{Expr, Symbolic, Values};
///
/// let layout: Layout<Expr> = "(M{div=128},K):(K,1)".parse().unwrap();
/// let mut values = Values::new();
/// values.set_named("M", 256);
/// assert_eq!(layout.substitute(&values).unwrap().to_string(), "(256,K):(K,1)");
/// values.set_named("K", 64);
/// assert_eq!(layout.numbers(&values).unwrap().to_string(), "(256,64):(64,1)");
/// values.set_named("M", 100); // not a multiple of 128
/// assert_eq!(layout.substitute(&values).unwrap_err().code(), "E0116");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Values {
    given: Vec<(Key, i64)>,
}

#[derive(Debug, Clone)]
enum Key {
    Name(String),
    Parameter(Parameter),
}

impl Values {
    /// An empty set of values.
    pub fn new() -> Values {
        Values::default()
    }

    /// Sets the value of every parameter with this name.
    pub fn set_named(&mut self, name: &str, value: i64) {
        self.given.push((Key::Name(name.to_string()), value));
    }

    /// Sets the value of a parameter and of all parameters with its name.
    pub fn set(&mut self, parameter: &Parameter, value: i64) {
        self.given.push((Key::Parameter(parameter.clone()), value));
    }

    /// The value that was set last.
    pub fn get(&self, parameter: &Parameter) -> Option<i64> {
        let names = |key: &Key| match key {
            Key::Name(name) => parameter.name() == Some(name),
            Key::Parameter(own) => own.stands_for(parameter),
        };
        self.given.iter().rev().find(|(key, _)| names(key)).map(|(_, value)| *value)
    }
}

/// Structures of expressions: [`Expr`], and trees, coordinates, layouts, tilers and composed
/// layouts of expressions.
pub trait Symbolic: Sized + Display {
    /// The same structure with integers.
    type Numbers;

    /// Calls `each` with every expression in it.
    fn visit(&self, each: &mut dyn FnMut(&Expr));

    /// Replaces each parameter that has a value by this value.
    ///
    /// Errors: a value that the facts of its parameter do not admit ([`LayoutError::Argument`]); a
    /// number is not representable.
    fn substitute(&self, values: &Values) -> Result<Self, LayoutError>;

    /// Replaces all parameters by their values.
    ///
    /// Errors: as [`Symbolic::substitute`]; a parameter has no value ([`LayoutError::Argument`]).
    fn numbers(&self, values: &Values) -> Result<Self::Numbers, LayoutError>;

    /// The parameters in it, each once, in order.
    fn parameters(&self) -> Vec<Parameter> {
        let mut found = Vec::new();
        self.visit(&mut |expr| gather(expr, &mut found));
        found.sort();
        found.dedup();
        found
    }

    /// The text with the facts of each name at its first occurrence, which can be parsed alone.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_layout::symbolic::{Expr, Symbolic};
    ///
    /// let layout: Layout<Expr> = "(8,M):(M{div=8},1)".parse().unwrap();
    /// assert_eq!(layout.to_string(), "(8,M):(M,1)");
    /// assert_eq!(layout.with_facts(), "(8,M{div=8}):(M,1)");
    /// ```
    fn with_facts(&self) -> String {
        text::with_facts(&self.to_string(), &self.parameters())
    }
}

fn gather(expr: &Expr, found: &mut Vec<Parameter>) {
    for atom in expr.terms().iter().flat_map(|term| &term.monomial) {
        match atom {
            Atom::Unit(parameter) => found.push(parameter.clone()),
            Atom::Made(made) => {
                gather(&made.left, found);
                gather(&made.right, found);
            }
        }
    }
}

/// Replaces every unit of a parameter in an expression by the result of `unit`.
pub(super) fn rebuilt(
    expr: &Expr,
    unit: &mut dyn FnMut(&Parameter) -> Result<Option<Expr>, LayoutError>,
) -> Result<Expr, LayoutError> {
    if expr.known().is_some() {
        return Ok(expr.clone());
    }
    let mut sum = Expr::known(0);
    for term in expr.terms().iter() {
        let mut product = Expr::known(term.coefficient);
        for atom in &term.monomial {
            let value = match atom {
                Atom::Unit(parameter) => unit(parameter)?.unwrap_or_else(|| Expr::of_atom(atom.clone(), 1)),
                Atom::Made(made) => {
                    let (left, right) = (rebuilt(&made.left, unit)?, rebuilt(&made.right, unit)?);
                    match made.operation {
                        Operation::Floor => quotient::floor(&left, &right),
                        Operation::Truncated => left.divide(&right).map(|(quotient, _)| quotient),
                        Operation::Minimum => quotient::minimum(&left, &right),
                    }
                    .fits_as::<Expr>(OP)?
                }
            };
            product = product.times_expr(&value).fits_as::<Expr>(OP)?;
        }
        sum = sum.plus_expr(&product).fits_as::<Expr>(OP)?;
    }
    Ok(sum)
}

impl Symbolic for Expr {
    type Numbers = i64;

    fn visit(&self, each: &mut dyn FnMut(&Expr)) {
        each(self);
    }

    fn substitute(&self, values: &Values) -> Result<Expr, LayoutError> {
        rebuilt(self, &mut |parameter| match values.get(parameter) {
            Some(value) if parameter.facts().admits(value) => {
                Ok(Some(Expr::known(value / parameter.facts().divisor())))
            }
            Some(value) => {
                let (what, wanted) = ("the value of a parameter", "one that its facts admit");
                Err(LayoutError::Argument { op: OP, what, value, wanted })
            }
            None => Ok(None),
        })
    }

    fn numbers(&self, values: &Values) -> Result<i64, LayoutError> {
        let value = self.substitute(values)?;
        let (what, wanted) = ("the number of values given", "one for every parameter");
        let missing = || LayoutError::Argument { op: OP, what, value: values.given.len() as i64, wanted };
        value.known().ok_or_else(missing)
    }
}

impl From<&Coordinate> for Coordinate<Expr> {
    fn from(step: &Coordinate) -> Coordinate<Expr> {
        step.map_scales(|scale| Expr::from(*scale))
    }
}

impl From<&Layout> for Layout<Expr> {
    /// The same layout with expressions as numbers.
    fn from(layout: &Layout) -> Layout<Expr> {
        let leaf = |leaf: &Leaf| Leaf { extent: Expr::known(leaf.extent), stride: Expr::known(leaf.stride) };
        Layout::from_valid(layout.tree().map(leaf))
    }
}

//! Converts expressions of parameters to polynomials of operations.
//!
//! Law: the polynomial has the value of the expression for every admissible choice of its
//! parameters. A parameter is a variable of the graph, one for each name.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::emit::division::divided;
use crate::emit::error::EmitError;
use crate::emit::graph::{Graph, Id, Variable};
use crate::emit::polynomial::EmittedPolynomial;
use crate::emit::range::Range;
use crate::symbolic::{Expr, Node, Parameter, Rounding};

/// The parameters and their variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    given: Vec<(Parameter, Id)>,
}

impl Parameters {
    /// The polynomial of an expression.
    pub(crate) fn polynomial(&mut self, graph: &mut Graph, expr: &Expr) -> Result<EmittedPolynomial, EmitError> {
        self.of_node(graph, &expr.node())?.ok_or(EmitError::TooLarge { what: "an expression" })
    }

    fn of_node(&mut self, graph: &mut Graph, node: &Node) -> Result<Option<EmittedPolynomial>, EmitError> {
        Ok(Some(match node {
            Node::Integer(value) => EmittedPolynomial::constant(*value),
            Node::Parameter(parameter) => {
                let id = self.variable(graph, parameter)?;
                EmittedPolynomial::of(graph, id)
            }
            Node::Sum(nodes) => {
                let mut sum = EmittedPolynomial::default();
                for node in nodes {
                    let Some(next) = self.of_node(graph, node)?.and_then(|term| sum.plus(&term)) else {
                        return Ok(None);
                    };
                    sum = next;
                }
                sum
            }
            Node::Product(nodes) => {
                let mut product = EmittedPolynomial::constant(1);
                for node in nodes {
                    let Some(next) = self.of_node(graph, node)?.and_then(|factor| product.times(&factor)) else {
                        return Ok(None);
                    };
                    product = next;
                }
                product
            }
            Node::Quotient(n, d, rounding) => {
                let (Some(n), Some(d)) = (self.of_node(graph, n)?, self.of_node(graph, d)?) else { return Ok(None) };
                match (rounding, n.single(), d.known()) {
                    (Rounding::Exact, Some((factors, coefficient)), Some(d)) => {
                        match divided(graph, factors, coefficient, &[], d) {
                            Some((factors, coefficient)) => EmittedPolynomial::term(factors, coefficient),
                            None => quotient(graph, &n, &EmittedPolynomial::constant(d), Rounding::Exact),
                        }
                    }
                    _ => quotient(graph, &n, &d, *rounding),
                }
            }
            Node::Remainder(n, d, rounding) => {
                let (Some(n), Some(d)) = (self.of_node(graph, n)?, self.of_node(graph, d)?) else { return Ok(None) };
                let (n, d) = (n.compute(graph), d.compute(graph));
                let id = graph.remainder(n, d, *rounding);
                EmittedPolynomial::of(graph, id)
            }
            Node::Minimum(a, b) => {
                let (Some(a), Some(b)) = (self.of_node(graph, a)?, self.of_node(graph, b)?) else { return Ok(None) };
                let (a, b) = (a.compute(graph), b.compute(graph));
                let id = graph.minimum(a, b);
                EmittedPolynomial::of(graph, id)
            }
        }))
    }

    /// The variable of a parameter; a parameter without a name is called `p0`, `p1`, ...
    fn variable(&mut self, graph: &mut Graph, parameter: &Parameter) -> Result<Id, EmitError> {
        if let Some((_, id)) = self.given.iter().find(|(own, _)| own.stands_for(parameter)) {
            return Ok(*id);
        }
        let facts = parameter.facts();
        let taken = |name: &str| graph.variables().iter().any(|own| own.name == name);
        let name = match parameter.name() {
            Some(name) if taken(name) => return Err(EmitError::NameTwice { name: name.to_string() }),
            Some(name) => name.to_string(),
            None => (0..).map(|number| format!("p{number}")).find(|name| !taken(name)).unwrap_or_default(),
        };
        let range = Range::of(facts.least(), facts.greatest());
        let open = unbounded(parameter).map(|_| name.clone()).into_iter().collect();
        let id = graph.variable(Variable { name, range, divisor: facts.divisor(), open });
        self.given.push((parameter.clone(), id));
        Ok(id)
    }
}

/// The parameter itself if its values are unbounded.
pub(crate) fn unbounded(parameter: &Parameter) -> Option<&Parameter> {
    let facts = parameter.facts();
    (facts.least().is_none() || facts.greatest().is_none()).then_some(parameter)
}

fn quotient(graph: &mut Graph, n: &EmittedPolynomial, d: &EmittedPolynomial, rounding: Rounding) -> EmittedPolynomial {
    let (n, d) = (n.compute(graph), d.compute(graph));
    let id = graph.quotient(n, d, rounding);
    EmittedPolynomial::of(graph, id)
}

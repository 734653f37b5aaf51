//! An expression as a tree of operations, and its text.
//!
//! Law: the tree has the value of the expression for every admissible choice of the parameters, and
//! the text parses to the same expression if the parameters are declared with the same facts
//! ([`super::Declarations`]).
//!
//! The canonical form has no remainders and only quotients rounded down. This module recovers the
//! other operations: `n - d*floor(n/d)` is `n % d`, `floor((n+7)/8)` is `ceil(n/8)`, and a multiple
//! of the unit of a parameter is a quotient of it, `M/128`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::expression::Expr;
use super::parameter::Parameter;
use super::polynomial::{self, Atom, MadeAtom, Operation, Term};
use super::quotient;
use crate::value::number::gcd;

/// An expression as a tree of operations, for code generators.
///
/// Sums have at least two terms and products at least two factors; a coefficient is the first
/// factor of its product. Divisors are positive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// A number.
    Integer(i64),
    /// A parameter.
    Parameter(Parameter),
    /// The sum of all.
    Sum(Vec<Node>),
    /// The product of all.
    Product(Vec<Node>),
    /// Dividend, divisor, and how the quotient is rounded.
    Quotient(Box<Node>, Box<Node>, Rounding),
    /// Dividend and divisor; the remainder of the quotient with this rounding.
    Remainder(Box<Node>, Box<Node>, Rounding),
    /// The lesser of both.
    Minimum(Box<Node>, Box<Node>),
}

/// How a quotient is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rounding {
    /// Exact: the quotient is an integer for every admissible value.
    Exact,
    /// Down, of a dividend that is never negative: the result of `/` in every language.
    Plain,
    /// Up, of a dividend that is never negative.
    Up,
    /// Down, of a dividend that may be negative.
    Down,
    /// Toward zero, of a dividend that may be negative.
    TowardZero,
}

impl Expr {
    /// The expression as a tree of operations.
    ///
    /// ```
    /// use tilewright_layout::symbolic::{Expr, Node, Rounding};
    ///
    /// let tiles: Expr = "ceil(K/64)".parse().unwrap();
    /// let Node::Quotient(dividend, divisor, Rounding::Up) = tiles.node() else { panic!() };
    /// assert_eq!((dividend.to_string(), *divisor), ("K".to_string(), Node::Integer(64)));
    /// ```
    pub fn node(&self) -> Node {
        let (mut rest, mut parts) = (self.clone(), Vec::new());
        let mut seen: Vec<Atom> = Vec::new();
        while let Some(atom) = divided(&rest).filter(|atom| !seen.contains(atom)).max() {
            if let Atom::Made(made) = &atom
                && let Some((factor, others)) = remainder_in(&rest, &atom, made)
            {
                let remainder = remainder_node(made);
                parts.extend(factor.terms().iter().map(|term| term_node(term, Some(remainder.clone()))));
                rest = others;
            }
            seen.push(atom);
        }
        let terms = rest.terms();
        let (mut constant, moving) = match terms.split_last() {
            Some((last, others)) if last.monomial.is_empty() => (last.coefficient, others),
            _ => (0, &*terms),
        };
        let mut nodes: Vec<Node> = Vec::new();
        for term in moving {
            // If a quotient that is rounded up is one too large, the constant is reduced by one.
            let less = constant.checked_sub(term.coefficient);
            nodes.push(match term.monomial.as_slice() {
                [Atom::Made(made)] => match (rounded_up(made), less) {
                    (Some((node, false)), _) => product_node(term.coefficient, Vec::from([node]), 1),
                    (Some((node, true)), Some(less)) => {
                        constant = less;
                        product_node(term.coefficient, Vec::from([node]), 1)
                    }
                    _ => term_node(term, None),
                },
                _ => term_node(term, None),
            });
        }
        nodes.extend(parts);
        if constant != 0 || nodes.is_empty() {
            nodes.push(Node::Integer(constant));
        }
        match nodes.len() {
            1 => nodes.pop().unwrap_or(Node::Integer(0)),
            _ => Node::Sum(nodes),
        }
    }
}

/// The quotients in the terms of an expression.
fn divided(expr: &Expr) -> impl Iterator<Item = Atom> {
    let atoms: Vec<Atom> = expr.terms().iter().flat_map(|term| term.monomial.iter().cloned()).collect();
    atoms.into_iter().filter(|atom| matches!(atom, Atom::Made(made) if made.operation != Operation::Minimum))
}

/// Writes `expr = factor * (n - d * quotient) + others`, if that is not longer.
fn remainder_in(expr: &Expr, atom: &Atom, made: &MadeAtom) -> Option<(Expr, Expr)> {
    let one = core::iter::once(atom.clone()).collect();
    let mut slope = Vec::new();
    for term in expr.terms().iter() {
        if let Some(monomial) = polynomial::cofactor(&term.monomial, &one) {
            slope.push(Term { monomial, coefficient: term.coefficient.checked_neg()? });
        }
    }
    let slope = polynomial::gathered(slope)?;
    if made.right.terms().first()?.coefficient < 0 {
        return None;
    }
    let (below, _) = polynomial::divide(&slope, &made.right.terms())?;
    let below = Expr::from_terms(below);
    let quotient = Expr::of_atom(atom.clone(), 1);
    let remainder = made.left.minus_expr(&made.right.times_expr(&quotient)?)?;
    let mut best: Option<(Expr, Expr)> = None;
    for factor in [below.plus_expr(&Expr::known(1))?, below] {
        if factor == Expr::known(0) {
            continue;
        }
        let others = expr.minus_expr(&factor.times_expr(&remainder)?)?;
        let length = |(factor, others): &(Expr, Expr)| factor.terms().len() + others.terms().len();
        let candidate = (factor, others);
        let limit = best.as_ref().map_or(expr.terms().len(), |best| length(best).saturating_sub(1));
        if length(&candidate) <= limit {
            best = Some(candidate);
        }
    }
    best
}

/// The most specific rounding of a quotient that the facts about its dividend allow.
fn rounding(made: &MadeAtom) -> Rounding {
    match made.operation {
        _ if quotient::at_least(&made.left, 0) => Rounding::Plain,
        Operation::Truncated => Rounding::TowardZero,
        _ => Rounding::Down,
    }
}

fn remainder_node(made: &MadeAtom) -> Node {
    Node::Remainder(Box::new(made.left.node()), Box::new(made.right.node()), rounding(made))
}

/// A quotient as one that is rounded up, and whether that is greater by one.
fn rounded_up(made: &MadeAtom) -> Option<(Node, bool)> {
    if made.operation != Operation::Floor {
        return None;
    }
    let last = made.left.terms().last().filter(|term| term.monomial.is_empty())?.coefficient;
    let (excess, above) = match made.right.terms().first() {
        Some(divisor) if divisor.monomial.is_empty() && last == divisor.coefficient - 1 => (last, false),
        Some(divisor) if !divisor.monomial.is_empty() && last == -1 => (-1, true),
        _ => return None,
    };
    let dividend = made.left.minus_expr(&Expr::known(excess))?;
    if !quotient::at_least(&dividend, 0) {
        return None;
    }
    Some((Node::Quotient(Box::new(dividend.node()), Box::new(made.right.node()), Rounding::Up), above))
}

/// The node of a term, with an additional factor.
fn term_node(term: &Term, factor: Option<Node>) -> Node {
    let coefficient = term.coefficient;
    // The coefficient is multiplied by the units of all parameters, and divided afterwards.
    let units = |atom: &Atom| if let Atom::Unit(parameter) = atom { parameter.facts().divisor() } else { 1 };
    let units = term.monomial.iter().try_fold(1_i64, |product, atom| product.checked_mul(units(atom)));
    let divisor = units.filter(|units| (coefficient / common(coefficient, *units)).checked_mul(*units).is_some());
    let mut factors = Vec::new();
    for atom in &term.monomial {
        factors.push(match atom {
            Atom::Unit(parameter) => {
                let (whole, unit) = (Node::Parameter(parameter.clone()), parameter.facts().divisor());
                match divisor {
                    None if unit != 1 => {
                        Node::Quotient(Box::new(whole), Box::new(Node::Integer(unit)), Rounding::Exact)
                    }
                    _ => whole,
                }
            }
            Atom::Made(made) => {
                let (left, right) = (Box::new(made.left.node()), Box::new(made.right.node()));
                match made.operation {
                    Operation::Minimum => Node::Minimum(left, right),
                    _ => match rounded_up(made) {
                        Some((node, false)) => node,
                        _ => Node::Quotient(left, right, rounding(made)),
                    },
                }
            }
        });
    }
    factors.extend(factor);
    product_node(coefficient, factors, divisor.unwrap_or(1))
}

/// The greatest common divisor of a coefficient and a divisor.
fn common(coefficient: i64, divisor: i64) -> i64 {
    i64::try_from(gcd(coefficient, divisor)).unwrap_or(1).max(1)
}

/// The node of `coefficient * factors / divisor`, which is exact.
fn product_node(coefficient: i64, mut factors: Vec<Node>, divisor: i64) -> Node {
    let common = common(coefficient, divisor);
    let (coefficient, divisor) = (coefficient / common, divisor / common);
    if coefficient != 1 || factors.is_empty() {
        factors.insert(0, Node::Integer(coefficient));
    }
    let product = match factors.len() {
        1 => factors.pop().unwrap_or(Node::Integer(coefficient)),
        _ => Node::Product(factors),
    };
    match divisor {
        1 => product,
        _ => Node::Quotient(Box::new(product), Box::new(Node::Integer(divisor)), Rounding::Exact),
    }
}

impl Node {
    /// Writes a term with its sign separated.
    fn write_term(&self, f: &mut fmt::Formatter<'_>, first: bool) -> fmt::Result {
        let negative = self.coefficient() < 0;
        match (negative, first) {
            (true, _) => f.write_str("-")?,
            (false, false) => f.write_str("+")?,
            (false, true) => {}
        }
        self.write_magnitude(f)
    }

    fn coefficient(&self) -> i64 {
        match self {
            Node::Integer(value) => *value,
            Node::Product(factors) => factors.first().map_or(1, Node::coefficient),
            Node::Quotient(dividend, _, Rounding::Exact) => dividend.coefficient(),
            _ => 1,
        }
    }

    /// The term without the sign of its coefficient.
    fn write_magnitude(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Integer(value) => write!(f, "{}", value.unsigned_abs()),
            Node::Product(factors) => {
                let mut after = false;
                for (place, factor) in factors.iter().enumerate() {
                    // The coefficient -1 is written as the sign alone.
                    if place == 0 && *factor == Node::Integer(-1) {
                        continue;
                    }
                    if after {
                        f.write_str("*")?;
                    }
                    after = true;
                    factor.write_factor(f)?;
                }
                Ok(())
            }
            Node::Quotient(dividend, divisor, Rounding::Exact) => {
                dividend.write_magnitude(f)?;
                f.write_str("/")?;
                divisor.write_last(f)
            }
            other => other.write_whole(f),
        }
    }

    /// Writes a factor; operators of lower precedence are written as calls.
    fn write_factor(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Integer(value) => write!(f, "{}", value.unsigned_abs()),
            Node::Parameter(_) | Node::Minimum(..) => self.write_whole(f),
            Node::Quotient(dividend, divisor, rounding) => {
                let name = match rounding {
                    Rounding::Up => "ceil",
                    Rounding::TowardZero => "trunc",
                    Rounding::Exact | Rounding::Plain | Rounding::Down => "floor",
                };
                write!(f, "{name}(")?;
                dividend.write_inside(f)?;
                f.write_str("/")?;
                divisor.write_last(f)?;
                f.write_str(")")
            }
            Node::Remainder(dividend, divisor, rounding) => {
                let name = if *rounding == Rounding::TowardZero { "rem" } else { "mod" };
                write!(f, "{name}({dividend},{divisor})")
            }
            Node::Sum(_) | Node::Product(_) => write!(f, "({self})"),
        }
    }

    /// Writes a whole expression without a sign.
    fn write_whole(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Parameter(parameter) => write!(f, "{parameter}"),
            Node::Minimum(a, b) => write!(f, "min({a},{b})"),
            Node::Quotient(dividend, divisor, Rounding::Plain | Rounding::TowardZero) if dividend.is_parameter() => {
                write!(f, "{dividend}/")?;
                divisor.write_last(f)
            }
            Node::Remainder(dividend, divisor, Rounding::Plain | Rounding::TowardZero) if dividend.is_parameter() => {
                write!(f, "{dividend}%")?;
                divisor.write_last(f)
            }
            other => other.write_factor(f),
        }
    }

    fn is_parameter(&self) -> bool {
        matches!(self, Node::Parameter(_))
    }

    /// Writes a dividend within a call.
    fn write_inside(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Sum(_) => write!(f, "({self})"),
            _ => write!(f, "{self}"),
        }
    }

    /// Writes a divisor after `/`.
    fn write_last(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Integer(_) | Node::Parameter(_) => write!(f, "{self}"),
            _ => write!(f, "({self})"),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Sum(terms) => terms.iter().enumerate().try_for_each(|(place, term)| term.write_term(f, place == 0)),
            term => term.write_term(f, true),
        }
    }
}

impl fmt::Display for Expr {
    /// The expression without spaces: `2*M`, `M/128`, `ceil(K/8)`, `8*mod(K,4)+floor(K/4)`. Facts
    /// are not repeated; see [`super::Symbolic::with_facts`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match crate::value::number::Extent::known(self) {
            Some(value) => value.fmt(f),
            None => self.node().fmt(f),
        }
    }
}

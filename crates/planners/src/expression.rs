//! Expressions over elements of tensors.
//!
//! Law: an expression has one value for given elements, and [`Expression::number`] computes it in a
//! kernel as [`Expression::value`] does in f64, each step rounded.

mod function;
mod parse;

use std::fmt;
use std::ops;

use tilewright_kernel::{Build, Element, Num};

use crate::extremes::{greater, lesser};
use function::{Function, gelu_operands};

/// A function of the elements of several tensors at one index.
///
/// ```
/// use tilewright_planners::Expression;
///
/// let (x, bias) = (Expression::input(0), Expression::input(1));
/// let clipped = (x * 2.0 + bias).max(Expression::constant(0.0));
/// assert_eq!(clipped.to_string(), "max(x0 * 2 + x1, 0)");
/// assert_eq!(clipped.value(&[3.0, -1.0]).0, 5.0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Input(usize),
    Constant(f64),
    Unary(Function, Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Minimum,
    Maximum,
}

impl Expression {
    /// The element of an input tensor, by the index of the tensor.
    pub fn input(number: usize) -> Expression {
        Expression(Node::Input(number))
    }

    /// A constant.
    pub fn constant(value: f64) -> Expression {
        Expression(Node::Constant(value))
    }

    fn unary(self, function: Function) -> Expression {
        Expression(Node::Unary(function, Box::new(self.0)))
    }

    fn binary(self, operator: Operator, other: Expression) -> Expression {
        Expression(Node::Binary(operator, Box::new(self.0), Box::new(other.0)))
    }

    /// The value, clamped to a range.
    #[must_use]
    pub fn clamp(self, least: f64, greatest: f64) -> Expression {
        self.max(Expression::constant(least)).min(Expression::constant(greatest))
    }

    /// The lesser of two.
    #[must_use]
    pub fn min(self, other: Expression) -> Expression {
        self.binary(Operator::Minimum, other)
    }

    /// The greater of two.
    #[must_use]
    pub fn max(self, other: Expression) -> Expression {
        self.binary(Operator::Maximum, other)
    }

    /// The number of inputs: the largest index of an input plus 1.
    pub fn inputs(&self) -> usize {
        fn of(node: &Node) -> usize {
            match node {
                Node::Input(number) => number + 1,
                Node::Constant(_) => 0,
                Node::Unary(_, x) => of(x),
                Node::Binary(_, a, b) => of(a).max(of(b)),
            }
        }
        of(&self.0)
    }

    /// Whether the expression reads the input of this index.
    pub fn has(&self, number: usize) -> bool {
        fn has(node: &Node, number: usize) -> bool {
            match node {
                Node::Input(own) => *own == number,
                Node::Constant(_) => false,
                Node::Unary(_, x) => has(x, number),
                Node::Binary(_, a, b) => has(a, number) || has(b, number),
            }
        }
        has(&self.0, number)
    }

    /// Whether the expression can be computed in integers: it has no division, no function but
    /// `abs` and `relu`, and only constants that are integers of 32 bits.
    pub(crate) fn is_of_integers(&self) -> bool {
        fn is(node: &Node) -> bool {
            match node {
                Node::Input(_) => true,
                Node::Constant(value) => value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX),
                Node::Unary(function, x) => matches!(function, Function::Abs | Function::Relu) && is(x),
                Node::Binary(operator, a, b) => *operator != Operator::Divide && is(a) && is(b),
            }
        }
        is(&self.0)
    }

    /// Whether the expression can be computed in f64: the hardware has no exponential in f64, so
    /// functions made of exponentials are excluded.
    pub(crate) fn is_of_doubles(&self) -> bool {
        fn is(node: &Node) -> bool {
            match node {
                Node::Input(_) | Node::Constant(_) => true,
                Node::Unary(function, x) => {
                    matches!(function, Function::Abs | Function::Relu | Function::Sqrt | Function::Recip) && is(x)
                }
                Node::Binary(_, a, b) => is(a) && is(b),
            }
        }
        is(&self.0)
    }

    /// The value, and a bound on its error by roundings in f32.
    ///
    /// An element that is not given is NaN.
    pub fn value(&self, elements: &[f64]) -> (f64, f64) {
        value(&self.0, &elements.iter().map(|element| (*element, 0.0)).collect::<Vec<_>>(), ROUNDING)
    }

    /// Replaces the first inputs by the given expressions.
    ///
    /// ```
    /// use tilewright_planners::Expression;
    ///
    /// let relu = Expression::input(0).relu();
    /// assert_eq!(relu.with(&[Expression::input(2) * 3.0]).to_string(), "relu(x2 * 3)");
    /// ```
    #[must_use]
    pub fn with(&self, inputs: &[Expression]) -> Expression {
        fn of(node: &Node, inputs: &[Expression]) -> Node {
            match node {
                Node::Input(number) => inputs.get(*number).map_or(node.clone(), |input| input.0.clone()),
                Node::Constant(_) => node.clone(),
                Node::Unary(function, x) => Node::Unary(*function, Box::new(of(x, inputs))),
                Node::Binary(operator, a, b) => {
                    Node::Binary(*operator, Box::new(of(a, inputs)), Box::new(of(b, inputs)))
                }
            }
        }
        Expression(of(&self.0, inputs))
    }

    /// The expression as text. The first inputs get the given names instead of numbers.
    ///
    /// ```
    /// use tilewright_planners::Expression;
    ///
    /// let sum = Expression::parse("gelu(x + bias)", &["x", "bias"])?;
    /// assert_eq!(sum.to_string(), "gelu(x0 + x1)");
    /// assert_eq!(sum.named(&["x", "bias"]), "gelu(x + bias)");
    /// # Ok::<(), tilewright_planners::PlanError>(())
    /// ```
    pub fn named(&self, names: &[&str]) -> String {
        Named(&self.0, names).to_string()
    }

    /// The value and its error bound, for inputs that have error bounds themselves, such as
    /// accumulators.
    pub(crate) fn value_of(&self, elements: &[(f64, f64)]) -> (f64, f64) {
        value(&self.0, elements, ROUNDING)
    }

    /// The same, computed in a type: f64, or f32 for any other.
    pub(crate) fn value_in(&self, element: Element, elements: &[(f64, f64)]) -> (f64, f64) {
        value(&self.0, elements, if element == Element::F64 { f64::EPSILON } else { ROUNDING })
    }

    /// Emits the expression into a kernel. All inputs have the same type.
    pub(crate) fn number<'k>(&self, k: &'k Build, element: Element, elements: &[Num<'k>]) -> Num<'k> {
        number(&self.0, k, element, elements)
    }
}

/// Half a unit in the last place of f32: the error of a rounding, and of the hardware's functions.
const ROUNDING: f64 = 1.0 / (1 << 23) as f64;

fn value(node: &Node, elements: &[(f64, f64)], rounding: f64) -> (f64, f64) {
    match node {
        Node::Input(number) => elements.get(*number).copied().unwrap_or((f64::NAN, 0.0)),
        Node::Constant(value) => (*value, value.abs() * rounding),
        Node::Unary(function, x) => {
            let (at, mut off) = value(x, elements, rounding);
            // Both terms are scaled before they are added.
            if let (Function::GeluTanh, Node::Binary(Operator::Add, a, b)) = (function, &**x) {
                off += (value(a, elements, rounding).0.abs() + value(b, elements, rounding).0.abs()) * rounding;
            }
            function.value(at, off, rounding)
        }
        Node::Binary(operator, a, b) => {
            let ((a, a_off), (b, b_off)) = (value(a, elements, rounding), value(b, elements, rounding));
            let rounded = |value: f64, off: f64| (value, off + value.abs() * rounding);
            match operator {
                Operator::Add => rounded(a + b, a_off + b_off),
                Operator::Subtract => rounded(a - b, a_off + b_off),
                Operator::Multiply => rounded(a * b, a.abs() * b_off + b.abs() * a_off + a_off * b_off),
                Operator::Divide => rounded(a / b, (a_off + (a / b).abs() * b_off) / (b.abs() - b_off).max(0.0)),
                Operator::Minimum => (lesser(a, b), a_off.max(b_off)),
                Operator::Maximum => (greater(a, b), a_off.max(b_off)),
            }
        }
    }
}

fn number<'k>(node: &Node, k: &'k Build, element: Element, elements: &[Num<'k>]) -> Num<'k> {
    let of = |node: &Node| number(node, k, element, elements);
    match node {
        Node::Input(number) => elements[*number],
        Node::Constant(value) => k.number_of(element, *value),
        Node::Unary(function, x) => match multiplied(node, k, element, elements) {
            Some([left, right]) => left * right,
            None => function.number(k, element, of(x)),
        },
        Node::Binary(Operator::Add, a, b) => {
            // A fused multiply-add, which rounds once.
            let product = |node: &Node| multiplied(node, k, element, elements);
            match product(a).map(|own| (own, b)).or_else(|| product(b).map(|own| (own, a))) {
                Some(([left, right], rest)) => left.multiply_add(right, of(rest)),
                None => of(a) + of(b),
            }
        }
        Node::Binary(operator, a, b) => {
            let (a, b) = (of(a), of(b));
            match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                Operator::Divide => a / b,
                Operator::Minimum => a.min(b),
                Operator::Maximum => a.max(b),
            }
        }
    }
}

/// The two operands of a multiplication, if the node is one.
fn multiplied<'k>(node: &Node, k: &'k Build, element: Element, elements: &[Num<'k>]) -> Option<[Num<'k>; 2]> {
    let of = |node: &Node| number(node, k, element, elements);
    match node {
        Node::Binary(Operator::Multiply, a, b) => Some([of(a), of(b)]),
        Node::Unary(Function::GeluTanh, x) => Some(match &**x {
            // An input is scaled where it is loaded, which happens once if it is broadcast.
            Node::Binary(Operator::Add, sum, added) if matches!(**added, Node::Input(_)) => {
                gelu_operands(k, element, of(sum), Some(of(added)))
            }
            x => gelu_operands(k, element, of(x), None),
        }),
        _ => None,
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Named(&self.0, &[]).fmt(f)
    }
}

/// An expression, and names for its inputs.
struct Named<'a>(&'a Node, &'a [&'a str]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        written(self.0, self.1, 0, f)
    }
}

/// Writes an expression, in parentheses if its operator binds more weakly than `least`.
fn written(node: &Node, names: &[&str], least: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match node {
        Node::Input(number) => match names.get(*number) {
            Some(name) => f.write_str(name),
            None => write!(f, "x{number}"),
        },
        Node::Constant(value) => write!(f, "{value}"),
        Node::Unary(function, x) => {
            write!(f, "{}(", function.name())?;
            written(x, names, 0, f)?;
            f.write_str(")")
        }
        Node::Binary(operator @ (Operator::Minimum | Operator::Maximum), a, b) => {
            f.write_str(if *operator == Operator::Minimum { "min(" } else { "max(" })?;
            written(a, names, 0, f)?;
            f.write_str(", ")?;
            written(b, names, 0, f)?;
            f.write_str(")")
        }
        Node::Binary(operator, a, b) => {
            let (sign, binds) = match operator {
                Operator::Add => ("+", 1),
                Operator::Subtract => ("-", 1),
                Operator::Multiply => ("*", 2),
                _ => ("/", 2),
            };
            if binds < least {
                f.write_str("(")?;
            }
            written(a, names, binds, f)?;
            write!(f, " {sign} ")?;
            written(b, names, binds + 1, f)?;
            if binds < least { f.write_str(")") } else { Ok(()) }
        }
    }
}

/// Functions of one number, as methods.
macro_rules! functions {
    ($($(#[$about:meta])* $name:ident: $function:ident;)*) => {
        impl Expression {
            $(
                $(#[$about])*
                #[must_use]
                pub fn $name(self) -> Expression {
                    self.unary(Function::$function)
                }
            )*
        }
    };
}

functions! {
    /// `e^self`.
    exp: Exp;
    /// `tanh(self)`, within a relative error of 2^-10.
    tanh: Tanh;
    /// The magnitude.
    abs: Abs;
    /// The square root.
    sqrt: Sqrt;
    /// `1 / self`.
    recip: Recip;
    /// The greater of the value and 0.
    relu: Relu;
    /// `1 / (1 + e^-self)`.
    sigmoid: Sigmoid;
    /// `self / (1 + e^-self)`.
    silu: Silu;
    /// `x * Phi(x)`, where `Phi` is the distribution function of the normal distribution. The error
    /// is at most 4e-7 times `x`; infinities give the limit.
    gelu: Gelu;
    /// The usual approximation of [`Expression::gelu`] by the tanh of a cubic polynomial. The error
    /// is at most 1/2000 of the number, because [`Expression::tanh`] is approximate. It takes fewer
    /// instructions.
    gelu_tanh: GeluTanh;
}

macro_rules! operators {
    ($($of:ident :: $method:ident, $operator:ident;)*) => {
        $(
            impl ops::$of for Expression {
                type Output = Expression;

                fn $method(self, other: Expression) -> Expression {
                    self.binary(Operator::$operator, other)
                }
            }

            impl ops::$of<f64> for Expression {
                type Output = Expression;

                fn $method(self, other: f64) -> Expression {
                    self.binary(Operator::$operator, Expression::constant(other))
                }
            }
        )*
    };
}

operators! {
    Add::add, Add;
    Sub::sub, Subtract;
    Mul::mul, Multiply;
    Div::div, Divide;
}

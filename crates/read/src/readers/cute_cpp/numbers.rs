//! C++ numbers: constants, steps, fractions, tuples of them, and dynamic numbers.
//!
//! Law: a number in a type is that number; a number of an integer type is `?`; a name in source
//! code is a positive parameter. In our notation the path of a step begins with the innermost mode,
//! in a `ScaledBasis` it ends with it.

use super::Meanings;
use super::parse::Node;
use crate::tuple::Tuple;

impl Meanings<'_, '_> {
    /// A number, a step or a tuple of them.
    pub fn tuple(&self, node: &Node) -> Option<Tuple> {
        if let Some(number) = node.number {
            return Some(Tuple::Known(number));
        }
        let items = |nodes: &[Node]| nodes.iter().map(|node| self.tuple(node)).collect::<Option<Vec<_>>>();
        match (node.name.as_str(), node.args()) {
            ("Underscore" | "_", []) => Some(Tuple::Keep),
            ("Int" | "C", [number]) => constant(number),
            ("constant" | "integral_constant", [_, number]) => constant(number),
            (name, []) if name.starts_with('_') => name.get(1..)?.parse().ok().map(Tuple::Known),
            (name, []) if is_integer_type(name) => Some(Tuple::Unknown { divisor: 1 }),
            ("tuple" | "Shape" | "Stride" | "Step" | "Coord" | "ArithmeticTuple", args) if node.args.is_some() => {
                items(args).map(Tuple::Tuple)
            }
            ("make_shape" | "make_stride" | "make_tuple" | "make_coord" | "make_step", []) => {
                items(node.call()?).map(Tuple::Tuple)
            }
            ("ScaledBasis", [scale, path @ ..]) => {
                let mut own = path_of(path)?;
                own.reverse();
                match self.tuple(scale)? {
                    Tuple::Step(scale, mut inner) => {
                        inner.extend(own);
                        Some(Tuple::Step(scale, inner))
                    }
                    scale if own.is_empty() => Some(scale),
                    scale => Some(Tuple::Step(Box::new(scale), own)),
                }
            }
            ("E", path) => {
                let mut own = path_of(path)?;
                own.reverse();
                Some(if own.is_empty() { Tuple::Known(1) } else { Tuple::Step(Box::new(Tuple::Known(1)), own) })
            }
            ("R", [number, divisor]) => {
                let divisor = divisor.number.filter(|divisor| *divisor > 0)?;
                Some(Tuple::Fraction(number.number?, divisor))
            }
            _ => {
                let (node, meanings) = self.defined(node)?;
                meanings.tuple(&node)
            }
        }
    }

    /// A tuple in source code, in which names are parameters.
    pub(super) fn source_tuple(&self, node: &Node) -> Option<String> {
        if let Some(tuple) = self.tuple(node) {
            return Some(tuple.to_string());
        }
        if !matches!(node.name.as_str(), "make_shape" | "make_stride" | "make_tuple") || node.args.is_some() {
            return None;
        }
        let items: Option<Vec<String>> = node
            .call()?
            .iter()
            .map(|item| match (item.args.is_none() && item.call.is_none(), is_free_name(&item.name)) {
                (true, true) if item.scope.is_empty() => Some(item.name.clone()),
                _ => self.source_tuple(item),
            })
            .collect();
        Some(format!("({})", items?.join(",")))
    }
}

pub(super) fn number(node: &Node) -> Option<i64> {
    match constant(node) {
        Some(Tuple::Known(number)) => Some(number),
        _ => None,
    }
}

/// The number of a template argument.
fn constant(node: &Node) -> Option<Tuple> {
    match (node.number, node.name.as_str(), node.args()) {
        (Some(number), ..) => Some(Tuple::Known(number)),
        (_, "true", []) => Some(Tuple::Known(1)),
        (_, "false", []) => Some(Tuple::Known(0)),
        (_, "Int" | "C", [inner]) => constant(inner),
        (_, "constant" | "integral_constant", [_, inner]) => constant(inner),
        (_, name, []) if name.starts_with('_') => name.get(1..)?.parse().ok().map(Tuple::Known),
        _ => None,
    }
}

fn path_of(nodes: &[Node]) -> Option<Vec<usize>> {
    nodes.iter().map(|node| node.number.and_then(|mode| usize::try_from(mode).ok())).collect()
}

/// Integer types of dynamic numbers.
fn is_integer_type(name: &str) -> bool {
    matches!(
        name,
        "int"
            | "unsigned"
            | "unsigned int"
            | "long"
            | "long int"
            | "unsigned long"
            | "long unsigned int"
            | "long long"
            | "long long int"
            | "unsigned long long"
            | "long long unsigned int"
            | "short"
            | "unsigned short"
            | "size_t"
            | "int8_t"
            | "int16_t"
            | "int32_t"
            | "int64_t"
            | "uint8_t"
            | "uint16_t"
            | "uint32_t"
            | "uint64_t"
            | "ptrdiff_t"
            | "index_t"
    )
}

/// Whether a name in source code can be a parameter: it must not be a word of the expression
/// language.
fn is_free_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !is_integer_type(name)
        && !["o", "true", "false", "F2", "S", "Sw"].contains(&name)
        && tilewright_notation::function(name).is_none()
}

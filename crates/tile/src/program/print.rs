//! Programs as text.
//!
//! Law: printed text reads back as the same program ([`crate::read`]), which prints as the same
//! text. Values and loops are numbered in order; types follow as comments.

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write as _;

use super::{Binary, Counter, Index, Name, Operation, Program, Reduction, Role, Statement, Unary, ValueId};

/// A list in parentheses.
pub(super) fn tuple<T: fmt::Display>(items: &[T]) -> String {
    format!("({})", items.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

/// A number as text that reads back as the same number.
fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => "nan".to_string(),
        f64::INFINITY => "inf".to_string(),
        f64::NEG_INFINITY => "-inf".to_string(),
        value => format!("{value}"),
    }
}

/// The name of the statement that atomically combines a tile with a tensor.
pub(crate) fn atomic(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Sum => "atomic_add",
        Reduction::Product => "atomic_product",
        Reduction::Minimum => "atomic_min",
        Reduction::Maximum => "atomic_max",
    }
}

/// Numbers values and loops in the order in which they are printed.
struct Printer<'p> {
    program: &'p Program,
    values: HashMap<ValueId, usize>,
    loops: HashMap<u32, u32>,
    /// The comment for each value.
    remark: &'p dyn Fn(ValueId) -> String,
}

impl Printer<'_> {
    fn named(&mut self, value: ValueId) -> String {
        let next = self.values.len();
        format!("v{}", *self.values.entry(value).or_insert(next))
    }

    fn list(&mut self, values: &[ValueId]) -> String {
        values.iter().map(|value| self.named(*value)).collect::<Vec<_>>().join(", ")
    }

    fn index(&self, index: &Index) -> String {
        let own = |name: &Name| match name.counter() {
            Counter::Iteration(number) => {
                name.with(Counter::Iteration(self.loops.get(&number).copied().unwrap_or(number)))
            }
            Counter::Block(_) => *name,
        };
        let terms = index.terms.iter().map(|(name, by)| (own(name), *by)).collect();
        Index { terms, ..index.clone() }.to_string()
    }

    fn at(&self, at: &[Index]) -> String {
        format!("({})", at.iter().map(|index| self.index(index)).collect::<Vec<_>>().join(", "))
    }

    /// The index of a tile, with the names of the tiles of coordinates along some modes.
    fn picked(&mut self, at: &[Index], rows: &[(usize, ValueId)]) -> String {
        let place = |(mode, index): (usize, &Index)| match rows.iter().find(|(own, _)| *own == mode) {
            Some((_, value)) if index.known() == Some(0) => self.named(*value),
            Some((_, value)) => format!("{} + {}", self.named(*value), self.index(index)),
            None => self.index(index),
        };
        format!("({})", at.iter().enumerate().map(place).collect::<Vec<_>>().join(", "))
    }

    fn operation(&mut self, operation: &Operation, operands: &[ValueId]) -> String {
        let names: Vec<String> = operands.iter().map(|value| self.named(*value)).collect();
        let first = names.first().cloned().unwrap_or_default();
        let call = |name: &str, more: &str| format!("{name}({first}, {more})");
        let modes = |modes: &[usize]| modes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match operation {
            Operation::Constant(element, value) => format!("{element}({})", number(*value)),
            Operation::Number(index) => format!("index({})", self.index(index)),
            Operation::Scalar(name, _) => format!("scalar({name})"),
            Operation::Size(text) => format!("size({text})"),
            Operation::Arange { shape, mode } => format!("arange({}, {mode})", tuple(shape)),
            Operation::Load { tensor, shape, at, other } => {
                let other = if *other == 0.0 { String::new() } else { format!(", {}", number(*other)) };
                let name = &self.program.tensors[*tensor].name;
                format!("load({name}, {}, {}{other})", tuple(shape), self.at(at))
            }
            Operation::Gather { tensor, shape, at, modes, other } => {
                let other = if *other == 0.0 { String::new() } else { format!(", {}", number(*other)) };
                let name = &self.program.tensors[*tensor].name;
                let rows: Vec<_> = modes.iter().copied().zip(operands.iter().copied()).collect();
                let at = self.picked(at, &rows);
                format!("load({name}, {}, {at}{other})", tuple(shape))
            }
            Operation::Stage { tensor, shape, at, modes, picked } => {
                let name = &self.program.tensors[*tensor].name;
                let rows = picked.and_then(|mode| Some((mode, *operands.first()?)));
                let at = self.picked(at, rows.as_slice());
                format!("stage({name}, {}, {at}, {})", tuple(shape), tuple(modes))
            }
            Operation::Unary(own) => {
                let name = Unary::NAMES.iter().find(|(_, known)| known == own).map_or("", |(name, _)| name);
                format!("{name}({first})")
            }
            Operation::Binary(own) => match own {
                Binary::Add => names.join(" + "),
                Binary::Subtract => names.join(" - "),
                Binary::Multiply => names.join(" * "),
                Binary::Divide => names.join(" / "),
                Binary::Remainder => names.join(" % "),
                own => {
                    let name = Binary::NAMES.iter().find(|(_, known)| known == own).map_or("", |(name, _)| name);
                    format!("{name}({})", names.join(", "))
                }
            },
            Operation::MultiplyAdd => format!("fma({})", names.join(", ")),
            Operation::Select(comparison) => match names.as_slice() {
                [a, b, yes, no] => format!("select({a} {} {b}, {yes}, {no})", comparison.sign()),
                _ => String::new(),
            },
            Operation::To(element) => format!("{element}({first})"),
            Operation::Recast(element) => format!("as_{element}({first})"),
            Operation::Unpack { element, signed } => {
                call(if *signed { "unpack_i4" } else { "unpack_u4" }, element.name())
            }
            Operation::Random(word) => format!("random({}, {word})", names.join(", ")),
            Operation::ArgMax(mode) => call("argmax", &mode.to_string()),
            Operation::ArgMin(mode) => call("argmin", &mode.to_string()),
            Operation::Top(mode, count) => call("top", &format!("{mode}, {count}")),
            Operation::TopPlaces(mode, count) => call("top_places", &format!("{mode}, {count}")),
            Operation::Histogram(bins) => call("histogram", &bins.to_string()),
            Operation::Broadcast(shape) => call("broadcast", &tuple(shape)),
            Operation::Reshape(shape) => call("reshape", &tuple(shape)),
            Operation::Transpose(order) => call("transpose", &tuple(order)),
            Operation::Reduce(reduction, along) => call(&format!("reduce_{}", reduction.name()), &modes(along)),
            Operation::Scan(reduction, mode) => call(&format!("scan_{}", reduction.name()), &mode.to_string()),
            Operation::ScanBefore(reduction, mode) => {
                call(&format!("scan_before_{}", reduction.name()), &mode.to_string())
            }
            Operation::Dot => format!("dot({})", names.join(", ")),
            Operation::Atom(name) => call("atom", &format!("\"{name}\"")),
            Operation::Held(held) => call("held", &format!("\"{held}\"")),
        }
    }

    fn body(&mut self, body: &[Statement], indent: usize, out: &mut String) {
        let pad = " ".repeat(indent);
        for statement in body {
            match statement {
                Statement::Let { result, operation, operands, .. } => {
                    let text = self.operation(operation, operands);
                    let line = format!("{pad}{} = {text}", self.named(*result));
                    let _ = writeln!(out, "{line:<56} # {}", (self.remark)(*result));
                }
                Statement::Store { tensor, at, rows, with, value, .. } => {
                    let (place, value) = (self.picked(at, rows), self.named(*value));
                    let verb = with.map_or("store", atomic);
                    let _ = writeln!(out, "{pad}{verb}({}, {place}, {value})", self.program.tensors[*tensor].name);
                }
                Statement::Loop(own) => {
                    let initial: Vec<String> = own.initial.iter().map(|value| self.named(*value)).collect();
                    let count = match &own.count {
                        super::Count::Sizes(text) => text.clone(),
                        super::Count::Index(index) => format!("[{}]", self.index(index)),
                        super::Count::Value(value) => format!("[{}]", self.named(*value)),
                    };
                    let next = self.loops.len() as u32;
                    let iteration = *self.loops.entry(own.iteration).or_insert(next);
                    let carried: Vec<String> = own
                        .parameters
                        .iter()
                        .zip(initial)
                        .map(|(value, initial)| format!("{} = {initial}", self.named(*value)))
                        .collect();
                    let with = if carried.is_empty() { String::new() } else { format!(" with {}", carried.join(", ")) };
                    let _ = writeln!(out, "{pad}loop i{iteration} < {count}{with} {{");
                    self.body(&own.body, indent + 4, out);
                    if own.next.is_empty() {
                        let _ = writeln!(out, "{pad}}}");
                        continue;
                    }
                    let _ = writeln!(out, "{pad}    next {}", self.list(&own.next));
                    let results = self.list(&own.results);
                    let _ = writeln!(out, "{pad}}} -> {results}");
                }
            }
        }
    }
}

/// The keyword that declares a tensor.
pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Input => "input",
        Role::Output => "output",
        Role::Both => "inout",
    }
}

impl Program {
    /// The program as text, with a remark beside each value.
    pub(crate) fn with_remarks(&self, remark: &dyn Fn(ValueId) -> String) -> String {
        let mut out = format!("tile {} {{\n", self.name);
        for tensor in &self.tensors {
            let role = role_name(tensor.role);
            let _ = writeln!(out, "    {role:<6} {}: {} {}", tensor.name, tensor.element, tensor.layout);
        }
        for scalar in &self.scalars {
            let _ = writeln!(out, "    scalar {}: {}", scalar.name, scalar.element);
        }
        if !self.grid.is_empty() {
            let _ = writeln!(out, "    grid {}", self.grid.join(", "));
        }
        if let Some(warps) = self.warps {
            let _ = writeln!(out, "    warps {warps}");
        }
        let mut printer = Printer { program: self, values: HashMap::new(), loops: HashMap::new(), remark };
        printer.body(&self.body, 4, &mut out);
        out.push_str("}\n");
        out
    }
}

impl Program {
    /// The names that the values have in the text.
    pub(crate) fn names(&self) -> HashMap<ValueId, String> {
        let (values, loops) = (HashMap::new(), HashMap::new());
        let mut printer = Printer { program: self, values, loops, remark: &|_| String::new() };
        printer.body(&self.body, 0, &mut String::new());
        printer.values.into_iter().map(|(value, number)| (value, format!("v{number}"))).collect()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_remarks(&|value| self.type_of(value).to_string()))
    }
}

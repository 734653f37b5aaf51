//! Computations, and their text.
//!
//! Law: in an expression, everything is inline. In statements and functions, a value that is used
//! more than once has a name, and a value with a name is used more than once.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::Profile;
use crate::emit::error::{EmitError, Width};
use crate::emit::function::{Function, Results, Value};
use crate::emit::graph::{Graph, Id, Op};
use crate::emit::integer::Integer;
use crate::emit::language::{ANY, OperationForm, Precedence, Style, WHOLE};
use crate::emit::range::Range;
use crate::emit::spelling::{needed, spelled};

/// The most operations of an expression without named parts.
const MAX_EXPRESSION: u64 = 10_000;

/// The values to compute from variables, from which text is written.
///
/// It is made by [`crate::emit::value()`], [`crate::emit::coordinate`] and [`crate::emit::inside`],
/// and [`Computation::and`] combines several over the same variables.
#[derive(Debug, Clone)]
pub struct Computation {
    graph: Graph,
    /// The number of variables of the coordinate; the other variables are parameters.
    coordinates: usize,
    outputs: Vec<Output>,
    profile: Profile,
}

/// A result.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) id: Id,
}

impl Computation {
    pub(crate) fn new(graph: Graph, coordinates: usize, outputs: Vec<Output>, profile: Profile) -> Computation {
        Computation { graph, coordinates, outputs, profile }
    }

    /// The names of the variables: those of the coordinate in order, then the parameters.
    pub fn inputs(&self) -> Vec<&str> {
        self.graph.variables().iter().map(|variable| variable.name.as_str()).collect()
    }

    /// The names of the results.
    pub fn results(&self) -> Vec<&str> {
        self.outputs.iter().map(|output| output.name.as_str()).collect()
    }

    /// The results of both computations; common parts are computed once.
    ///
    /// Errors: the coordinates differ, in their names or in what is known about them; two results
    /// have the same name.
    ///
    /// ```
    /// use tilewright_layout::emit::{Language, Map, Style, Variables, coordinate, value};
    /// use tilewright_layout::{Layout, symbolic::Expr};
    ///
    /// let layout: Layout<Expr> = "(12,N):(N,1)".parse().unwrap();
    /// let digits = coordinate(&layout.shape(), &Variables::index()).unwrap();
    /// let both = digits.and(&value(&layout.into(), &Variables::index()).unwrap()).unwrap();
    /// assert_eq!(both.statements(Style::new(Language::C)).unwrap(), "\
    /// const int64_t c1 = i / 12;
    /// const int64_t c0 = i - c1 * 12;
    /// const int64_t offset = c0 * N + c1;
    /// ");
    /// ```
    pub fn and(mut self, other: &Computation) -> Result<Computation, EmitError> {
        let own = self.graph.variables().get(..self.coordinates);
        if self.coordinates != other.coordinates || own != other.graph.variables().get(..other.coordinates) {
            return Err(EmitError::Variables);
        }
        // The parameters of the other computation that are new here.
        let mut numbers = Vec::new();
        for variable in other.graph.variables() {
            let known = self.graph.variables().iter().position(|own| own.name == variable.name);
            numbers.push(known.unwrap_or_else(|| {
                self.graph.variable(variable.clone());
                self.graph.variables().len() - 1
            }));
        }
        let mut place: BTreeMap<Id, Id> = BTreeMap::new();
        for id in other.graph.ids() {
            let op = match other.graph.op(id).over(|operand| place.get(&operand).copied().unwrap_or(operand)) {
                Op::Variable(number) => Op::Variable(numbers.get(number).copied().unwrap_or(number)),
                op => op,
            };
            place.insert(id, self.graph.add(op, other.graph.range(id)));
        }
        for output in &other.outputs {
            if self.outputs.iter().any(|own| own.name == output.name) {
                return Err(EmitError::NameTwice { name: output.name.clone() });
            }
            let id = place.get(&output.id).copied().unwrap_or(output.id);
            self.outputs.push(Output { name: output.name.clone(), id });
        }
        self.profile = Profile::tuple([&self.profile, &other.profile])?;
        Ok(self)
    }

    /// The expression of the only result.
    ///
    /// Errors: there is not exactly one result ([`EmitError::Names`]); as
    /// [`Computation::expressions`].
    pub fn expression(&self, style: Style) -> Result<String, EmitError> {
        let mut all = self.expressions(style)?;
        match (all.pop(), all.len()) {
            (Some(only), 0) => Ok(only),
            (_, others) => {
                Err(EmitError::Names { given: 1, variables: others + usize::from(!self.outputs.is_empty()) })
            }
        }
    }

    /// An expression for each result, without named parts.
    ///
    /// Errors: a name is not one in the language; a number may not fit; an expression is too long,
    /// and [`Computation::statements`] may still be possible.
    pub fn expressions(&self, style: Style) -> Result<Vec<String>, EmitError> {
        let writer = self.writer(style, false)?;
        writer.results.iter().map(|id| writer.expression(*id)).collect()
    }

    /// Statements that define the common parts and then the results, one line for each.
    ///
    /// Errors: as [`Computation::expressions`].
    pub fn statements(&self, style: Style) -> Result<String, EmitError> {
        let mut writer = self.writer(style, true)?;
        let (parts, results) = writer.named(Naming::Assigned)?;
        let table = style.language.table();
        let line = |value: &Value| table.named(&value.name, &value.text, value.boolean, style.integer) + "\n";
        Ok(parts.iter().chain(&results).map(line).collect())
    }

    /// A function with this name; its arguments are the coordinate, then the parameters that it
    /// needs.
    ///
    /// | language | one result | several results |
    /// |---|---|---|
    /// | Rust, Python | returned | returned as a tuple, nested as the coordinate is |
    /// | Triton | returned | returned as a flat tuple |
    /// | C, CUDA | returned | written through pointers, which follow the inputs |
    ///
    /// In Triton with 64 bits the inputs are converted to 64 bits first, unless every number fits
    /// in 32 bits.
    ///
    /// Errors: as [`Computation::expressions`]; the name is not allowed in the language.
    ///
    /// ```
    /// use tilewright_layout::emit::{Language, Map, Style, Variables, value};
    /// use tilewright_layout::{Layout, symbolic::Expr};
    ///
    /// let layout: Layout<Expr> = "(M,K{div=8}):(K,1)".parse().unwrap();
    /// let offset = value(&layout.into(), &Variables::index()).unwrap();
    /// assert_eq!(offset.function("offset", Style::new(Language::Rust)).unwrap(), "\
    /// #[inline]
    /// ##[allow(non_snake_case)]
    /// pub fn offset(i: i64, M: i64, K: i64) -> i64 {
    ///     let q0: i64 = i / M;
    ///     (i - q0 * M) * K + q0
    /// }
    /// ".replace("##", "#"));
    /// ```
    pub fn function(&self, name: &str, style: Style) -> Result<String, EmitError> {
        let mut writer = self.writer(style, true)?;
        if style.integer == Integer::I32 {
            writer.check_coordinates()?;
        }
        let name = writer.identifier(name)?;
        let naming = if self.outputs.len() > 1 { Naming::Kept } else { Naming::Free };
        let (parts, values) = writer.named(naming)?;
        let live = needed(&writer.graph, &writer.results);
        let used: BTreeSet<usize> = live
            .iter()
            .filter_map(|id| match writer.graph.op(*id) {
                Op::Variable(number) => Some(number),
                _ => None,
            })
            .collect();
        let numbered = |number: usize| writer.inputs.get(number).cloned().unwrap_or_default();
        let all = 0..writer.inputs.len();
        let inputs = all.clone().filter(|number| *number < self.coordinates || used.contains(number)).map(numbered);
        let function = Function {
            name: &name,
            integer: style.integer,
            inputs: inputs.collect(),
            used: all.filter(|number| used.contains(number)).map(numbered).collect(),
            small: live.iter().all(|id| writer.fits(*id, Integer::I32)),
            parts,
            results: Results { values, profile: self.profile.clone() },
        };
        Ok(style.language.table().function(&function))
    }

    fn writer(&self, style: Style, named: bool) -> Result<Writer<'_>, EmitError> {
        let results: Vec<Id> = self.outputs.iter().map(|output| output.id).collect();
        let (graph, results) = spelled(&self.graph, &results, style.language.table(), named);
        let mut writer =
            Writer { computation: self, style, graph, results, inputs: Vec::new(), names: BTreeMap::new() };
        for variable in self.graph.variables() {
            let name = writer.identifier(&variable.name)?;
            writer.inputs.push(name);
        }
        if style.integer == Integer::I32 {
            for id in needed(&writer.graph, &writer.results) {
                if !writer.fits(id, style.integer) {
                    return Err(writer.too_wide(id));
                }
            }
        }
        Ok(writer)
    }
}

/// The use of the names of results.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// No use: the results are returned.
    Free,
    /// The names are those of pointers, so they must not be used for values.
    Kept,
    /// The results are assigned to variables of these names.
    Assigned,
}

/// The state of writing a text.
struct Writer<'a> {
    computation: &'a Computation,
    style: Style,
    graph: Graph,
    results: Vec<Id>,
    /// The variables, as identifiers of the language.
    inputs: Vec<String>,
    /// The names of values.
    names: BTreeMap<Id, String>,
}

impl Writer<'_> {
    fn identifier(&self, name: &str) -> Result<String, EmitError> {
        let language = self.style.language;
        language.identifier(name).map_err(|why| EmitError::Name { name: name.to_string(), language, why })
    }

    fn boolean(&self, id: Id) -> bool {
        matches!(self.graph.op(id), Op::Truth(_) | Op::Less(..) | Op::AtLeast(..) | Op::Both(..))
    }

    fn fits(&self, id: Id, integer: Integer) -> bool {
        let end = 1_i128 << (integer.bits() - 1);
        let within = match self.graph.op(id) {
            Op::Bits(_, mask) => -end <= i128::from(mask) && i128::from(mask) < end,
            Op::Left(_, by) | Op::Right(_, by) => by < integer.bits(),
            _ => true,
        };
        self.boolean(id) || within && self.graph.range(id).within(-end, end - 1)
    }

    /// Checks that the coordinates fit, whether used or not, because a function has all of them as
    /// arguments.
    fn check_coordinates(&self) -> Result<(), EmitError> {
        let end = 1_i128 << (self.style.integer.bits() - 1);
        let coordinates = self.graph.variables().iter().zip(&self.inputs).take(self.computation.coordinates);
        for (variable, part) in coordinates {
            let Range { least, greatest } = variable.range;
            if !variable.range.within(-end, end - 1) {
                let (part, open, integer) = (part.clone(), variable.open.clone(), self.style.integer);
                return Err(EmitError::Width(Box::new(Width { part, integer, range: (least, greatest), open })));
            }
        }
        Ok(())
    }

    fn too_wide(&self, id: Id) -> EmitError {
        let range = self.graph.range(id);
        let mut open: Vec<String> = Vec::new();
        for id in needed(&self.graph, &[id]) {
            if let Op::Variable(number) = self.graph.op(id)
                && let Some(variable) = self.graph.variables().get(number)
            {
                open.extend(variable.open.iter().cloned());
            }
        }
        open.sort();
        open.dedup();
        let part = self.expression(id).unwrap_or_else(|_| "a part".to_string());
        let range = (range.least, range.greatest);
        EmitError::Width(Box::new(Width { part, integer: self.style.integer, range, open }))
    }

    /// The text of an operation without named parts.
    fn expression(&self, id: Id) -> Result<String, EmitError> {
        let mut lengths: BTreeMap<Id, u64> = BTreeMap::new();
        for id in needed(&self.graph, &[id]) {
            let inside = self.graph.op(id).operands().filter_map(|operand| lengths.get(&operand));
            let length = inside.fold(1_u64, |sum, length| sum.saturating_add(*length));
            lengths.insert(id, length);
        }
        match lengths.get(&id) {
            Some(length) if *length > MAX_EXPRESSION => Err(EmitError::TooLarge { what: "an expression" }),
            _ => Ok(self.text(id).0),
        }
    }

    /// The named parts, and the results that are not named parts.
    fn named(&mut self, naming: Naming) -> Result<(Vec<Value>, Vec<Value>), EmitError> {
        let live = needed(&self.graph, &self.results);
        let mut uses: BTreeMap<Id, usize> = BTreeMap::new();
        let operands = live.iter().flat_map(|id| self.graph.op(*id).operands());
        for id in operands.chain(self.results.iter().copied()) {
            *uses.entry(id).or_default() += 1;
        }
        let mut taken: BTreeSet<String> = self.inputs.iter().cloned().collect();
        let mut outputs = Vec::new();
        for (output, id) in self.computation.outputs.iter().zip(&self.results) {
            let name = self.identifier(&output.name)?;
            if naming != Naming::Free && !taken.insert(name.clone()) {
                return Err(EmitError::NameTwice { name });
            }
            outputs.push((name, *id));
        }
        let mut numbers: BTreeMap<char, usize> = BTreeMap::new();
        let mut parts = Vec::new();
        for id in live {
            let stem = match self.graph.op(id) {
                Op::Integer(_) | Op::Truth(_) | Op::Variable(_) => continue,
                Op::Quotient(..) => 'q',
                Op::Remainder(..) => 'r',
                _ => 't',
            };
            if uses.get(&id).copied().unwrap_or(0) < 2 {
                continue;
            }
            // A result that other values use is named like the result.
            let result = outputs.iter().position(|(_, own)| *own == id).filter(|_| naming == Naming::Assigned);
            let name = match result {
                Some(place) => outputs.remove(place).0,
                None => {
                    let number = numbers.entry(stem).or_default();
                    loop {
                        let name = format!("{stem}{number}");
                        *number += 1;
                        if taken.insert(name.clone()) {
                            break name;
                        }
                    }
                }
            };
            let (text, _) = self.text(id);
            parts.push(Value { name: name.clone(), text, boolean: self.boolean(id) });
            self.names.insert(id, name);
        }
        let result = |(name, id): (String, Id)| Value { name, text: self.text(id).0, boolean: self.boolean(id) };
        Ok((parts, outputs.into_iter().map(result).collect()))
    }

    /// The text of an operation, and its precedence.
    fn text(&self, id: Id) -> (String, Precedence) {
        if let Some(name) = self.names.get(&id) {
            return (name.clone(), WHOLE);
        }
        let table = self.style.language.table();
        let op = self.graph.op(id);
        let mut operands: Vec<(String, Precedence)> = op.operands().map(|operand| self.text(operand)).collect();
        match op {
            Op::Integer(value) => return table.integer(value),
            Op::Truth(value) => return (table.truth(value).to_string(), WHOLE),
            Op::Variable(number) => return (self.inputs.get(number).cloned().unwrap_or_default(), WHOLE),
            Op::Left(_, by) | Op::Right(_, by) => operands.push((by.to_string(), WHOLE)),
            Op::Bits(_, mask) => operands.push(table.integer(mask)),
            _ => {}
        }
        let Some(form) = table.form(op) else { return (String::new(), WHOLE) };
        let at = |place: usize, least: Precedence| match operands.get(place) {
            Some((text, own)) if *own < least => format!("({text})"),
            Some((text, _)) => text.clone(),
            None => String::new(),
        };
        match form {
            OperationForm::Infix(symbol, own) => {
                let clear = |place: usize| self.unclear(op, place, symbol);
                let left = at(0, if clear(0) { WHOLE } else { own });
                let right = at(1, if clear(1) { WHOLE } else { own + 1 });
                (format!("{left} {symbol} {right}"), own)
            }
            OperationForm::Prefix(symbol, own) => (format!("{symbol}{}", at(0, own + 1)), own),
            OperationForm::Call(name) => {
                let arguments: Vec<String> = (0..operands.len()).map(|place| at(place, ANY)).collect();
                (format!("{name}({})", arguments.join(", ")), WHOLE)
            }
            OperationForm::Method(name) => {
                let arguments: Vec<String> = (1..operands.len()).map(|place| at(place, ANY)).collect();
                (format!("{}.{name}({})", at(0, WHOLE), arguments.join(", ")), WHOLE)
            }
            OperationForm::Pattern(pattern, own, least) => {
                let text = (0..operands.len())
                    .fold(pattern.to_string(), |text, place| text.replace(&format!("{{{place}}}"), &at(place, least)));
                (text, own)
            }
        }
    }

    /// Whether an operand of a bitwise operator is another operator, so that parentheses are needed
    /// for clarity: their precedence is easily confused, and compilers warn.
    fn unclear(&self, op: Op, place: usize, symbol: &str) -> bool {
        let on_bits = matches!(op, Op::Left(..) | Op::Right(..) | Op::Bits(..) | Op::Xor(..));
        let operand = op.operands().nth(place).filter(|operand| !self.names.contains_key(operand));
        let inner = operand.and_then(|operand| self.style.language.table().form(self.graph.op(operand)));
        match inner {
            Some(OperationForm::Infix(inner, _)) => on_bits && inner != symbol,
            _ => false,
        }
    }
}

//! Derivations: how the value of an expression comes about.
//!
//! Law: a derivation is a program of the language. Each step is an expression over the arguments and the steps before it,
//! evaluated as any other, and the last step has the value of the call that is derived.

use std::fmt;

use tilewright_layout::Tiler;

use crate::arguments::is_map;
use crate::ast::{List, Node, NodeId, Program};
use crate::diagnostic::Diagnostic;
use crate::eval::{Environment, Evaluator, evaluate, run};
use crate::functions;
use crate::reading::tiler_of;
use crate::value::Value;

/// One line of a derivation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// How far it is indented.
    pub indent: usize,
    /// What it says.
    pub text: String,
}

/// The steps by which the value of an expression comes about, and the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derivation {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The value.
    pub value: Value,
}

impl fmt::Display for Derivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{:indent$}{}", "", step.text, indent = 2 * step.indent)?;
        }
        Ok(())
    }
}

/// A call that was evaluated: the function, its arguments and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name of the function; `composition` for `A o B`.
    pub function: &'static str,
    /// The values of its arguments.
    pub arguments: Vec<Value>,
    /// Its value.
    pub value: Value,
}

/// Evaluates a program and tells how its value comes about: the defining formula of the last call with each intermediate
/// value, and likewise for the calls among its arguments.
///
/// Errors: as [`evaluate`].
///
/// ```
/// use tilewright_notation::{Environment, derive};
///
/// let derivation = derive("logical_divide((4,6):(1,4), 4:2)", &mut Environment::new()).unwrap();
/// assert_eq!(
///     derivation.to_string(),
///     "\
/// logical_divide(A, T) = A o (T, complement(T, size(A)))
///   A = (4,6):(1,4)
///   T = 4:2
///   N = size(A) = 24
///   C = complement(T, N) = (2,3):(1,8)
///   D = make_layout(T, C) = (4,(2,3)):(2,(1,8))
///   R = A o D = (4,(2,3)):(2,(1,8))
/// "
/// );
/// ```
pub fn derive(source: &str, env: &mut Environment) -> Result<Derivation, Diagnostic> {
    let mut program = Program::default();
    let value = run(source, &mut program, env)?;
    let mut steps = Vec::new();
    if let Some(last) = program.statements.last() {
        let deriver = Deriver { evaluator: Evaluator { source, program: &program, env } };
        deriver.node(last.value, &value, 0, &mut steps)?;
    }
    Ok(Derivation { steps, value })
}

/// Evaluates a program; if its last statement is a call or a composition, says which, with the values of the arguments.
///
/// Errors: as [`evaluate`].
///
/// ```
/// use tilewright_notation::{Environment, call};
///
/// let call = call("complement(4:2, 24)", &mut Environment::new()).unwrap().unwrap();
/// assert_eq!(call.function, "complement");
/// assert_eq!(call.arguments[1].to_string(), "24");
/// assert_eq!(call.value.to_string(), "(2,3):(1,8)");
/// ```
pub fn call(source: &str, env: &mut Environment) -> Result<Option<Call>, Diagnostic> {
    let mut program = Program::default();
    let value = run(source, &mut program, env)?;
    let Some(last) = program.statements.last() else { return Ok(None) };
    let deriver = Deriver { evaluator: Evaluator { source, program: &program, env } };
    Ok(deriver.called(last.value)?.map(|(function, _, arguments)| Call { function, arguments, value }))
}

struct Deriver<'a> {
    evaluator: Evaluator<'a>,
}

/// A call in the text: the function, the nodes of its arguments and their values.
type Called = (&'static str, Vec<NodeId>, Vec<Value>);

impl Deriver<'_> {
    fn nodes(&self, items: List) -> Vec<NodeId> {
        self.evaluator.program.list(items).to_vec()
    }

    /// The function that a node calls, if it calls one.
    fn called(&self, id: NodeId) -> Result<Option<Called>, Diagnostic> {
        let (function, nodes) = match self.evaluator.program.node(id) {
            Node::Call { name, arguments } => match functions::find(self.evaluator.text(name.span())) {
                Some(function) => (function.name, self.nodes(arguments)),
                None => return Ok(None),
            },
            Node::Compose { items } if items.end - items.start == 2 => ("composition", self.nodes(items)),
            // Parentheses around one value only group it.
            Node::Tuple { items, trailing: false } => match self.nodes(items).as_slice() {
                [only] => return self.called(*only),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let values = nodes.iter().map(|id| self.evaluator.value(*id)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some((function, nodes, values)))
    }

    fn node(&self, id: NodeId, value: &Value, indent: usize, steps: &mut Vec<Step>) -> Result<(), Diagnostic> {
        let Some((function, nodes, values)) = self.called(id)? else {
            let text = self.evaluator.text(self.evaluator.program.span(id));
            let written = value.to_string();
            let text = if text == written { written } else { format!("{text} = {written}") };
            steps.push(Step { indent, text });
            return Ok(());
        };
        let plan = plan(function, &values);
        let list = |items: &[String]| items.join(", ");
        let shown = format!("{function}({})", list(&plan.names));
        steps.push(Step { indent, text: format!("{shown} {}", plan.formula) });
        let mut env = Environment::new();
        for ((name, value), id) in plan.names.iter().zip(&values).zip(&nodes) {
            env.bind(name.as_str(), value.clone());
            steps.push(Step { indent: indent + 1, text: format!("{name} = {value}") });
            // How an argument comes about that is itself a call.
            if self.called(*id)?.is_some() {
                self.node(*id, value, indent + 2, steps)?;
            }
        }
        for (name, expression) in &plan.steps {
            // A step may be refused where the whole is not: by mode, or past the end. It is left out then.
            if let Ok(value) = evaluate(expression, &mut env) {
                steps.push(Step { indent: indent + 1, text: format!("{name} = {expression} = {value}") });
                env.bind(name.as_str(), value);
            }
        }
        if plan.steps.is_empty() {
            steps.push(Step { indent: indent + 1, text: format!("R = {value}") });
        }
        Ok(())
    }
}

/// How a call is derived: names for its arguments, its defining formula, and named expressions.
struct Plan {
    names: Vec<String>,
    formula: String,
    steps: Vec<(String, String)>,
}

fn plan(function: &str, values: &[Value]) -> Plan {
    let form = |names: &[&str], formula: &str, steps: &[(&str, &str)]| Plan {
        names: names.iter().map(|name| name.to_string()).collect(),
        formula: formula.to_string(),
        steps: steps.iter().map(|(name, step)| (name.to_string(), step.to_string())).collect(),
    };
    let second_is_layout = values.get(1).is_some_and(is_map);
    match (function, values.len()) {
        ("logical_divide", _) if second_is_layout => form(
            &["A", "T"],
            "= A o (T, complement(T, size(A)))",
            &[("N", "size(A)"), ("C", "complement(T, N)"), ("D", "make_layout(T, C)"), ("R", "A o D")],
        ),
        ("logical_divide", _) => by_mode("A", "T", values, "divides each mode by its tile", "logical_divide"),
        ("zipped_divide", _) => form(
            &["A", "T"],
            "is logical_divide(A, T) with the tiles gathered in mode 0 and the rests in mode 1",
            &[("D", "logical_divide(A, T)"), ("R", "zipped_divide(A, T)")],
        ),
        ("tiled_divide", _) => form(
            &["A", "T"],
            "is zipped_divide(A, T) with the rests side by side: ((tiles),rest,rest,...)",
            &[("D", "logical_divide(A, T)"), ("Z", "zipped_divide(A, T)"), ("R", "tiled_divide(A, T)")],
        ),
        ("flat_divide", _) => form(
            &["A", "T"],
            "is zipped_divide(A, T) with all modes side by side: (tile,tile,...,rest,rest,...)",
            &[("D", "logical_divide(A, T)"), ("Z", "zipped_divide(A, T)"), ("R", "flat_divide(A, T)")],
        ),
        ("logical_product", _) if second_is_layout => form(
            &["A", "B"],
            "= (A, A* o B), where A* is the weak complement of A, open at the end",
            &[("C", "weak_complement(A)"), ("K", "C o B"), ("R", "make_layout(A, K)")],
        ),
        ("logical_product", _) => by_mode("A", "B", values, "multiplies each mode by its own", "logical_product"),
        ("zipped_product", _) => form(
            &["A", "B"],
            "is logical_product(A, B) with the blocks gathered in mode 0 and the copies in mode 1",
            &[("P", "logical_product(A, B)"), ("R", "zipped_product(A, B)")],
        ),
        ("tiled_product", _) => form(
            &["A", "B"],
            "is zipped_product(A, B) with the copies side by side: ((blocks),copies,copies,...)",
            &[("P", "zipped_product(A, B)"), ("R", "tiled_product(A, B)")],
        ),
        ("flat_product", _) => form(
            &["A", "B"],
            "is zipped_product(A, B) with all modes side by side",
            &[("P", "zipped_product(A, B)"), ("R", "flat_product(A, B)")],
        ),
        ("blocked_product", _) => form(
            &["A", "B"],
            "pairs mode i of A with mode i of A* o B: ((block,copies),...)",
            &[("C", "weak_complement(A)"), ("K", "C o B"), ("R", "blocked_product(A, B)")],
        ),
        ("raked_product", _) => form(
            &["A", "B"],
            "pairs mode i of A* o B with mode i of A: ((copies,block),...)",
            &[("C", "weak_complement(A)"), ("K", "C o B"), ("R", "raked_product(A, B)")],
        ),
        ("tile_to_shape", 2) => form(
            &["A", "S"],
            "= blocked_product(A, the compact layout of how many blocks cover each mode of S)",
            &[
                ("E", "product_each(shape(A))"),
                ("K", "ceil_div(S, E)"),
                ("L", "make_layout(K)"),
                ("R", "tile_to_shape(A, S)"),
            ],
        ),
        ("tile_to_shape", _) => form(
            &["A", "S", "order"],
            "= blocked_product(A, the layout, in this order, of how many blocks cover each mode of S)",
            &[
                ("E", "product_each(shape(A))"),
                ("K", "ceil_div(S, E)"),
                ("L", "make_ordered_layout(K, order)"),
                ("R", "tile_to_shape(A, S, order)"),
            ],
        ),
        ("composition", _) if second_is_layout => {
            let rank = match values.get(1) {
                Some(Value::Layout(b)) => b.rank(),
                _ => 0,
            };
            let mut plan = form(&["A", "B"], "is the R with R(c) = A(B(c)), B being applied first", &[]);
            if rank > 1 {
                let modes = (0..rank).map(|mode| (format!("R{mode}"), format!("A o B[{mode}]")));
                plan.steps.extend(modes);
            }
            plan.steps.push(("R".to_string(), "A o B".to_string()));
            plan
        }
        ("composition", _) => by_mode("A", "T", values, "composes each mode with its own", "composition"),
        ("composition_within", _) => form(
            &["A", "B"],
            "is A o B, where every B(c) is an index of A",
            &[("N", "size(A)"), ("M", "cosize(B)"), ("R", "A o B")],
        ),
        ("complement", 2) => form(
            &["A", "M"],
            "is the sorted R such that (A, R) reaches every offset below M once",
            &[
                ("F", "filter(A)"),
                ("R", "complement(A, M)"),
                ("D", "make_layout(F, R)"),
                ("whole", "is_bijective(D)"),
                ("N", "size(D)"),
            ],
        ),
        ("complement", _) => form(
            &["A"],
            "is the sorted R such that (A, R) reaches every offset once; its last mode is open",
            &[("F", "filter(A)"), ("R", "complement(A)")],
        ),
        ("weak_complement", 2) => form(
            &["A", "M"],
            "is a sorted R such that (A, R) reaches no offset twice; offsets below M may be left out",
            &[("F", "filter(A)"), ("R", "weak_complement(A, M)"), ("once", "is_injective(make_layout(F, R))")],
        ),
        ("right_inverse", _) => form(
            &["A"],
            "is the largest R with A(R(i)) = i",
            &[("R", "right_inverse(A)"), ("A(R(i))", "coalesce(A o R)")],
        ),
        ("left_inverse", _) => {
            form(&["A"], "is an R with A(R(A(k))) = A(k)", &[("R", "left_inverse(A)"), ("R(A(k))", "R o A")])
        }
        ("coalesce", 1) => form(
            &["A"],
            "is the same function with the fewest modes: s:d before t:(s*d) is one mode of extent s*t",
            &[("F", "flatten(A)"), ("R", "coalesce(A)"), ("same", "equivalent(A, R)")],
        ),
        ("filter", 1) => form(&["A"], "= coalesce(filter_zeros(A))", &[("F", "filter_zeros(A)"), ("R", "coalesce(F)")]),
        ("layout_add", _) => form(
            &["A", "B"],
            "is the R with R(i) = A(i) + B(i), on the modes G that neither of the two splits",
            &[
                ("G", "greatest_common_domain(coalesce(A), coalesce(B))"),
                ("AG", "A o G"),
                ("BG", "B o G"),
                ("R", "layout_add(A, B)"),
            ],
        ),
        ("size", 1) => form(&["A"], "= product(shape(A))", &[("S", "shape(A)"), ("R", "product(S)")]),
        ("slice", _) => {
            form(&["A", "c"], "keeps the modes where c has _", &[("rest", "dice(A, c)"), ("R", "slice(A, c)")])
        }
        ("crd2idx", 2) if second_is_layout => form(
            &["c", "A"],
            "= inner_product(natural coordinate of c, stride(A))",
            &[("k", "idx2crd(c, shape(A))"), ("D", "stride(A)"), ("R", "inner_product(k, D)")],
        ),
        (name, count) => {
            let names = match count {
                0 | 1 => vec!["A".to_string()],
                _ => "ABCDEFGHIJKLMN".chars().take(count).map(String::from).collect(),
            };
            let summary = functions::find(name).map_or("", |function| function.summary);
            Plan { names, formula: format!("is {summary}"), steps: Vec::new() }
        }
    }
}

/// A division, product or composition that goes mode by mode.
fn by_mode(first: &str, second: &str, values: &[Value], what: &str, function: &str) -> Plan {
    let names = vec![first.to_string(), second.to_string()];
    let mut steps = Vec::new();
    if let Some(Ok(Tiler::Modes(modes))) = values.get(1).and_then(tiler_of) {
        for (mode, item) in modes.items().iter().enumerate() {
            let expression = match item {
                Tiler::Keep => format!("{first}[{mode}]"),
                item => format!("{function}({first}[{mode}], {item})"),
            };
            steps.push((format!("R{mode}"), expression));
        }
    }
    steps.push(("R".to_string(), format!("{function}({first}, {second})")));
    Plan { names, formula: what.to_string(), steps }
}

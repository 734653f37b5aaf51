//! The plan of each operation's derivation: names for its arguments, its defining formula, and the
//! expressions that lead to its value.
//!
//! Law: an expression uses the arguments and the earlier names. The last one is the value; it is
//! named `R` unless further expressions check it.

use tilewright_layout::{AnyLayout, AnyTree};

use super::morphisms;
use crate::arguments::is_map;
use crate::functions;
use crate::reading::tiler_of;
use crate::value::Value;

/// The name of the operation that applies a map to a coordinate, `A(c)`.
pub(super) const APPLIED: &str = "apply";

/// How a call is derived: names for its arguments, its defining formula, and named expressions.
pub(super) struct Plan {
    pub(super) names: Vec<String>,
    pub(super) formula: String,
    pub(super) steps: Vec<(String, String)>,
}

impl Plan {
    /// The plan with these names, separated by spaces, this formula, and steps `name = expression`,
    /// separated by semicolons.
    pub(super) fn form(names: &str, formula: &str, steps: &str) -> Plan {
        let step = |step: &str| step.split_once(" = ").map(|(name, step)| (name.to_string(), step.to_string()));
        Plan {
            names: names.split(' ').map(String::from).collect(),
            formula: formula.to_string(),
            steps: steps.split("; ").filter_map(step).collect(),
        }
    }
}

/// The plan of a call with these arguments.
pub(super) fn plan(function: &str, values: &[Value]) -> Plan {
    if let Some(plan) = morphisms::plan(function, values) {
        return plan;
    }
    let second_is_layout = values.get(1).is_some_and(is_map);
    match (function, values.len()) {
        ("logical_divide", _) if second_is_layout => Plan::form(
            "A T",
            "= A o (T, complement(T, size(A)))",
            "N = size(A); C = complement(T, N); D = make_layout(T, C); R = A o D",
        ),
        ("logical_divide", _) => by_mode("A", "T", values, "divides each mode by its tile", "logical_divide"),
        ("zipped_divide", _) => Plan::form(
            "A T",
            "is logical_divide(A, T) with the tiles gathered in mode 0 and the rests in mode 1",
            "D = logical_divide(A, T); R = zipped_divide(A, T)",
        ),
        ("tiled_divide", _) => Plan::form(
            "A T",
            "is zipped_divide(A, T) with the rests side by side: ((tiles),rest,rest,...)",
            "D = logical_divide(A, T); Z = zipped_divide(A, T); R = tiled_divide(A, T)",
        ),
        ("flat_divide", _) => Plan::form(
            "A T",
            "is zipped_divide(A, T) with all modes side by side: (tile,tile,...,rest,rest,...)",
            "D = logical_divide(A, T); Z = zipped_divide(A, T); R = flat_divide(A, T)",
        ),
        ("logical_product", _) if second_is_layout => Plan::form(
            "A B",
            "= (A, A* o B), where A* is the weak complement of A, open at the end",
            "C = weak_complement(A); K = C o B; R = make_layout(A, K)",
        ),
        ("logical_product", _) => by_mode("A", "B", values, "multiplies each mode by its own", "logical_product"),
        ("zipped_product", _) => Plan::form(
            "A B",
            "is logical_product(A, B) with the blocks gathered in mode 0 and the copies in mode 1",
            "P = logical_product(A, B); R = zipped_product(A, B)",
        ),
        ("tiled_product", _) => Plan::form(
            "A B",
            "is zipped_product(A, B) with the copies side by side: ((blocks),copies,copies,...)",
            "P = zipped_product(A, B); R = tiled_product(A, B)",
        ),
        ("flat_product", _) => Plan::form(
            "A B",
            "is zipped_product(A, B) with all modes side by side",
            "P = zipped_product(A, B); R = flat_product(A, B)",
        ),
        ("blocked_product", _) => Plan::form(
            "A B",
            "pairs mode i of A with mode i of A* o B: ((block,copies),...)",
            "C = weak_complement(A); K = C o B; R = blocked_product(A, B)",
        ),
        ("raked_product", _) => Plan::form(
            "A B",
            "pairs mode i of A* o B with mode i of A: ((copies,block),...)",
            "C = weak_complement(A); K = C o B; R = raked_product(A, B)",
        ),
        ("tile_to_shape", 2) => Plan::form(
            "A S",
            "= blocked_product(A, the compact layout of how many blocks cover each mode of S)",
            "E = product_each(shape(A)); K = ceil_div(S, E); L = make_layout(K); R = tile_to_shape(A, S)",
        ),
        ("tile_to_shape", _) => Plan::form(
            "A S order",
            "= blocked_product(A, the layout, in this order, of how many blocks cover each mode of S)",
            "E = product_each(shape(A)); K = ceil_div(S, E); L = make_ordered_layout(K, order); R = tile_to_shape(A, S, order)",
        ),
        ("composition", _) if second_is_layout => {
            let rank = match values.get(1) {
                Some(Value::Layout(AnyLayout::Integer(b))) => b.rank(),
                _ => 0,
            };
            let mut plan = Plan::form("A B", "is the R with R(c) = A(B(c)), B being applied first", "");
            if rank > 1 {
                let modes = (0..rank).map(|mode| (format!("R{mode}"), format!("A o B[{mode}]")));
                plan.steps.extend(modes);
            }
            plan.steps.push(("R".to_string(), "A o B".to_string()));
            plan
        }
        ("composition", _) => by_mode("A", "T", values, "composes each mode with its own", "composition"),
        ("composition_within", _) => {
            Plan::form("A B", "is A o B, where every B(c) is an index of A", "N = size(A); M = cosize(B); R = A o B")
        }
        ("complement", 2) => Plan::form(
            "A M",
            "is the sorted R such that (A, R) reaches every offset below M once",
            "F = filter(A); R = complement(A, M); D = make_layout(F, R); whole = is_bijective(D); N = size(D)",
        ),
        ("complement", _) => Plan::form(
            "A",
            "is the sorted R such that (A, R) reaches every offset once; its last mode is open",
            "F = filter(A); R = complement(A)",
        ),
        ("weak_complement", 2) => Plan::form(
            "A M",
            "is a sorted R such that (A, R) reaches no offset twice; offsets below M may be left out",
            "F = filter(A); R = weak_complement(A, M); once = is_injective(make_layout(F, R))",
        ),
        ("right_inverse", _) => {
            Plan::form("A", "is the largest R with A(R(i)) = i", "R = right_inverse(A); A(R(i)) = coalesce(A o R)")
        }
        ("left_inverse", _) => {
            Plan::form("A", "is an R with A(R(A(k))) = A(k)", "R = left_inverse(A); R(A(k)) = R o A")
        }
        ("coalesce", 1) => Plan::form(
            "A",
            "is the same function with the fewest modes: s:d before t:(s*d) is one mode of extent s*t",
            "F = flatten(A); R = coalesce(A); same = equivalent(A, R)",
        ),
        ("filter", 1) => Plan::form("A", "= coalesce(filter_zeros(A))", "F = filter_zeros(A); R = coalesce(F)"),
        ("layout_add", _) => Plan::form(
            "A B",
            "is the R with R(i) = A(i) + B(i), on the modes G that neither of the two splits",
            "G = greatest_common_domain(coalesce(A), coalesce(B)); AG = A o G; BG = B o G; R = layout_add(A, B)",
        ),
        ("size", 1) => Plan::form("A", "= product(shape(A))", "S = shape(A); R = product(S)"),
        ("slice", _) => Plan::form("A c", "keeps the modes where c has _", "rest = dice(A, c); R = slice(A, c)"),
        ("crd2idx", 2) if second_is_layout => Plan::form(
            "c A",
            "= inner_product(natural coordinate of c, stride(A))",
            "k = idx2crd(c, shape(A)); D = stride(A); R = inner_product(k, D)",
        ),
        (APPLIED, _)
            if matches!(
                values,
                [Value::Layout(AnyLayout::Integer(_)), Value::Int(_) | Value::Tree(AnyTree::Integer(_))]
            ) =>
        {
            Plan::form(
                "A c",
                "= inner_product(natural coordinate of c, stride(A))",
                "k = idx2crd(c, shape(A)); D = stride(A); R = inner_product(k, D)",
            )
        }
        (APPLIED, _) => Plan::form("A c", "is the value of A at c", ""),
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

/// The plan of a division, product or composition that works mode by mode.
fn by_mode(first: &str, second: &str, values: &[Value], what: &str, function: &str) -> Plan {
    let names = vec![first.to_string(), second.to_string()];
    let mut steps = Vec::new();
    if let Some(Ok(tiler)) = values.get(1).and_then(tiler_of)
        && tiler.layout().is_none()
    {
        for (mode, item) in (0..tiler.rank()).filter_map(|mode| Some((mode, tiler.mode(mode)?))) {
            let expression = match item.is_keep() {
                true => format!("{first}[{mode}]"),
                false => format!("{function}({first}[{mode}], {item})"),
            };
            steps.push((format!("R{mode}"), expression));
        }
    }
    steps.push(("R".to_string(), format!("{function}({first}, {second})")));
    Plan { names, formula: what.to_string(), steps }
}

//! Checks whether two layouts are the same function, and whether an operation keeps its law.
//!
//! Law: "holds" means that a claim was tested at every index or proved by the algebra. Otherwise
//! the answer says how far the test went.

use tilewright_layout::symbolic::Values;
use tilewright_layout::{AnyLayout, BitMatrix, Layout, Named};
use tilewright_notation::{Call, Environment, Value, evaluate};

use crate::explain::launch;
use crate::explain::law::{self, Verdict};
use crate::explain::map::{self, Map};

/// The result of checking a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The claim, as a formula.
    pub law: String,
    /// Whether it holds.
    pub answer: Answer,
}

/// Whether a claim holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It holds, with the evidence in words.
    Holds(String),
    /// It fails, with a counterexample in words.
    Fails(String),
    /// No counterexample was found; the text says how far the search went.
    Open(String),
}

/// Whether two values are equal: as functions of an index, if one of them is a function.
///
/// ```
/// use tilewright_draw::explain::check::{Answer, equal};
/// use tilewright_notation::{Environment, evaluate};
///
/// let value = |text: &str| evaluate(text, &mut Environment::new()).unwrap();
/// let finding = equal(&value("(4,2):(2,1)"), &value("(2,2,2):(2,5,1)"));
/// assert!(matches!(finding.answer, Answer::Fails(place) if place.starts_with("at coordinate (2,0)")));
/// ```
pub fn equal(a: &Value, b: &Value) -> Finding {
    let (x, y) = (map::of(a), map::of(b));
    let law = "left(i) = right(i)";
    // If one value is a layout, a shape means its compact layout.
    let functions = [&x, &y].into_iter().any(Option::is_some);
    if let Some(failure) = linear(a, b).filter(|_| a != b) {
        return Finding { law: law.to_owned(), answer: Answer::Fails(failure) };
    }
    match (map::of_operand(a), map::of_operand(b)) {
        (Some(x), Some(y)) if functions => same(&x, &y, [a, b], law),
        _ if a == b => Finding { law: "left = right".to_owned(), answer: Answer::Holds(String::new()) },
        (Some(_), Some(_)) => different(),
        _ => match equivalent(a, b) {
            Some(Ok(true)) => Finding { law: law.to_owned(), answer: Answer::Holds(PROVED.to_owned()) },
            Some(Ok(false)) => Finding { law: law.to_owned(), answer: Answer::Fails(REFUTED.to_owned()) },
            Some(Err(reason)) => same_at_launch(a, b, law, &reason),
            None => different(),
        },
    }
}

/// The difference of two maps over bits: in their inputs or outputs, or else at the first power of
/// two where they differ, which is enough because they are linear. None for other values.
fn linear(a: &Value, b: &Value) -> Option<String> {
    let (x, y) = match (a, b) {
        (Value::Linear(x), Value::Linear(y)) => (x, y),
        (Value::Matrix(x), Value::Matrix(y)) => {
            let bits = 0..x.inputs().max(y.inputs());
            let image = |map: &BitMatrix, bit: usize| map.columns().get(bit).copied();
            let bit = bits.into_iter().find(|bit| image(x, *bit) != image(y, *bit))?;
            let told = |image: Option<u64>| image.map_or("none".to_owned(), |value| value.to_string());
            let (left, right) = (told(image(x, bit)), told(image(y, bit)));
            return Some(format!(
                "at index {}: the left = {left}, but the right = {right}",
                1_u64.checked_shl(bit as u32)?
            ));
        }
        _ => return None,
    };
    let sizes = |named: &[Named]| {
        let one = |named: &Named| format!("{}:{}", named.0, 1_u128 << named.1);
        named.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    for (what, left, right) in [("inputs", x.inputs(), y.inputs()), ("outputs", x.outputs(), y.outputs())] {
        if left != right {
            return Some(format!("the {what} differ: {} and {}", sizes(left), sizes(right)));
        }
    }
    let zero = vec![0_u64; x.inputs().len()];
    for (position, input) in x.inputs().iter().enumerate() {
        for bit in 0..input.1 {
            let mut place = zero.clone();
            *place.get_mut(position)? = 1_u64.checked_shl(bit as u32)?;
            let (left, right) = (x.apply(&place).ok()?, y.apply(&place).ok()?);
            if left != right {
                let tuple = |numbers: &[u64]| {
                    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                    format!("({})", numbers.join(","))
                };
                return Some(format!(
                    "at coordinate {} ({} = {}): the left = {}, but the right = {}",
                    tuple(&place),
                    input.0,
                    1_u64.checked_shl(bit as u32)?,
                    tuple(&left),
                    tuple(&right)
                ));
            }
        }
    }
    None
}

/// The finding for two values that are not functions and are different.
fn different() -> Finding {
    Finding { law: "left = right".to_owned(), answer: Answer::Fails("the values differ".to_owned()) }
}

const PROVED: &str = "for all values of its numbers, by the algebra";
const REFUTED: &str = "the algebra shows that they differ";

/// Whether two maps are the same function: at every index if that can be tested quickly, else by
/// the algebra.
fn same(a: &Map, b: &Map, values: [&Value; 2], law: &'static str) -> Finding {
    if a.size() <= law::MOST || a.size() != b.size() {
        return of_verdict(law::same(a, b, law));
    }
    let answer = match equivalent(values[0], values[1]) {
        Some(Ok(true)) => Answer::Holds(format!("at all {} indices, by the algebra", a.size())),
        Some(Ok(false)) => {
            let first = match values {
                [Value::Layout(AnyLayout::Integer(a)), Value::Layout(AnyLayout::Integer(b))] => first_difference(a, b),
                _ => None,
            };
            let value = |map: &Map, index| map.value(index).map_or_else(|error| error.to_string(), |v| v.to_string());
            match first {
                Some(index) => Answer::Fails(format!(
                    "at coordinate {} (index {index}): the left = {}, but the right = {}",
                    a.coordinate(index),
                    value(a, index),
                    value(b, index)
                )),
                None => match law::same(a, b, law).failure {
                    Some(failure) => Answer::Fails(failure),
                    None => Answer::Fails(format!("{REFUTED}, after the first {} indices", law::MOST)),
                },
            }
        }
        _ => return of_verdict(law::same(a, b, law)),
    };
    Finding { law: law.to_owned(), answer }
}

/// Whether two values are the same function, by the algebra; None if they are not functions.
///
/// The error says why that is not decided.
fn equivalent(a: &Value, b: &Value) -> Option<Result<bool, String>> {
    let mut environment = Environment::new();
    environment.bind("left", a.clone());
    environment.bind("right", b.clone());
    match evaluate("equivalent(left, right)", &mut environment) {
        Ok(Value::Bool(same)) => Some(Ok(same)),
        Ok(_) => None,
        // Refusals of the algebra are reported; the others are about arguments that are not
        // functions.
        Err(error) if error.code.starts_with("E01") => Some(Err(error.message)),
        Err(_) => None,
    }
}

/// The first index at which two layouts of the same size differ; None if they are the same
/// function.
///
/// Both layouts are coalesced. Up to some index `p` each is in one mode, and they agree there. If
/// the next strides differ, the layouts differ at `p`. If only the next extents differ, the shorter
/// mode ends at some index. There the longer mode takes one more step of the common stride, and the
/// other layout takes a different step, because otherwise coalescing would have merged its two
/// modes.
fn first_difference(a: &Layout, b: &Layout) -> Option<i64> {
    let (a, b) = (a.coalesce().ok()?, b.coalesce().ok()?);
    let mut reached = 1_i64;
    for (x, y) in a.leaves().iter().zip(b.leaves()) {
        if x.stride != y.stride {
            return Some(reached);
        }
        reached = reached.checked_mul(x.extent.min(y.extent))?;
        if x.extent != y.extent {
            return Some(reached);
        }
    }
    None
}

/// Tests functions with parameters that are known at launch, at some values of the parameters.
fn same_at_launch(a: &Value, b: &Value, law: &'static str, reason: &str) -> Finding {
    let choices = launch::choices(&[a, b]).unwrap_or_default();
    let mut tested = 0;
    for choice in &choices {
        let (Ok(x), Ok(y)) = (a.substitute(choice), b.substitute(choice)) else { continue };
        let (Some(x), Some(y)) = (map::of_operand(&x), map::of_operand(&y)) else { continue };
        if let Some(failure) = law::same(&x, &y, law).failure {
            let failure = format!("where {}: {failure}", launch::named(&[a, b], choice));
            return Finding { law: law.to_owned(), answer: Answer::Fails(failure) };
        }
        tested += 1;
    }
    let answer = Answer::Open(format!("for {tested} choices of numbers; for all of them it is open: {reason}"));
    Finding { law: law.to_owned(), answer }
}

/// Whether the law of the operation holds for a call; None if no law can be checked for these
/// arguments.
///
/// ```
/// use tilewright_draw::explain::check::{self, Answer};
/// use tilewright_notation::{Environment, call};
///
/// let call = call("complement((4,8):(8,1), 64)", &mut Environment::new()).unwrap().unwrap();
/// let finding = check::of_call(&call).unwrap();
/// assert!(matches!(finding.answer, Answer::Holds(_)));
/// ```
pub fn of_call(call: &Call) -> Option<Finding> {
    match launch::choices(&operands(call)) {
        Some(choices) => at_launch(call, &choices),
        None => by_algebra(call).or_else(|| law::of(call.function, &call.arguments, &call.value).map(of_verdict)),
    }
}

/// A proof by the algebra, for a law with too many indices to test; None if there is no proof.
fn by_algebra(call: &Call) -> Option<Finding> {
    let (first, size) = (call.arguments.first()?, map::of(&call.value)?.size());
    if size <= law::MOST {
        return None;
    }
    let law = match (call.function, first, &call.value) {
        ("coalesce" | "coalesce_z" | "flatten" | "group", ..) => {
            matches!(equivalent(first, &call.value), Some(Ok(true))).then_some(law::SAME)
        }
        (
            "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide",
            Value::Layout(AnyLayout::Integer(a)),
            Value::Layout(AnyLayout::Integer(result)),
        ) => law::tiling::same_offsets_as_often(a, result).then_some(law::tiling::DIVIDED),
        _ => None,
    };
    let answer = Answer::Holds(format!("at all {size} indices, by the algebra"));
    law.map(|law| Finding { law: law.to_owned(), answer })
}

/// The value of a call and its arguments.
fn operands(call: &Call) -> Vec<&Value> {
    call.arguments.iter().chain([&call.value]).collect()
}

/// The law of a call with parameters that are known at launch, tested at some values of the
/// parameters.
fn at_launch(call: &Call, choices: &[Values]) -> Option<Finding> {
    let (mut law, mut tested, mut count) = (String::new(), 0_i64, 0);
    for choice in choices {
        let arguments: Result<Vec<Value>, _> = call.arguments.iter().map(|value| value.substitute(choice)).collect();
        let (Ok(arguments), Ok(value)) = (arguments, call.value.substitute(choice)) else { continue };
        let verdict = law::of(call.function, &arguments, &value)?;
        if let Some(failure) = verdict.failure {
            let failure = format!("where {}: {failure}", launch::named(&operands(call), choice));
            return Some(Finding { law: verdict.law, answer: Answer::Fails(failure) });
        }
        law = verdict.law;
        tested = tested.saturating_add(verdict.tested);
        count += 1;
    }
    let places = format!("at {tested} indices, for {count} choices of numbers; the others are not checked");
    (count > 0).then_some(Finding { law, answer: Answer::Open(places) })
}

/// The finding of a test.
fn of_verdict(verdict: Verdict) -> Finding {
    let Verdict { law, tested, total, failure } = verdict;
    let answer = match failure {
        Some(failure) => Answer::Fails(failure),
        None if tested == total && total == 1 => Answer::Holds(String::new()),
        None if tested == total => Answer::Holds(format!("at all {total} indices")),
        None if tested == 0 => {
            Answer::Open(format!("but nothing was tested: there are {total} indices, more than {}", law::MOST))
        }
        None => Answer::Open(format!("at the first {tested} of {total} indices; the rest is not checked")),
    };
    Finding { law, answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: for all pairs of small layouts of the same size, the first difference is the one that a
    /// search over all indices finds.
    #[test]
    fn the_first_difference_is_found_without_a_walk() {
        let mut layouts: Vec<Layout> = Vec::new();
        for shape in ["12", "(2,6)", "(6,2)", "(3,4)", "(4,3)", "(2,3,2)", "(2,2,3)", "(3,2,2)", "(1,12)"] {
            let shape: tilewright_layout::Tree<i64> = shape.parse().unwrap();
            for code in 0..6_i64.pow(u32::try_from(shape.rank()).unwrap()) {
                let mut rest = code;
                let strides = shape.map(|_| {
                    let stride = [-1, 0, 1, 2, 4, 6][usize::try_from(rest % 6).unwrap()];
                    rest /= 6;
                    stride
                });
                layouts.push(Layout::new(&shape, &strides).unwrap());
            }
        }
        let mut differ = 0;
        for a in &layouts {
            for b in &layouts {
                let walked = (0..12).find(|index| a.eval(index) != b.eval(index));
                assert_eq!(first_difference(a, b), walked, "{a} {b}");
                differ += usize::from(walked.is_some());
            }
        }
        assert!(differ > 1000 && differ < layouts.len().pow(2));
    }
}

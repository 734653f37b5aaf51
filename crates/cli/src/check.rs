//! `tilewright check`: whether two layouts are the same function, or whether an operation keeps its law.

use std::io::Write;

use tilewright::layout::symbolic::Values;
use tilewright::notation::{Call, call};
use tilewright::{Environment, Value, evaluate};

use crate::launch;
use crate::law::{self, Verdict};
use crate::map;
use crate::picture::{Paint, painted};
use crate::terminal::{Failure, Terminal};

pub fn run_equal(left: &str, right: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut values = Vec::new();
    for source in [left, right] {
        match evaluate(source, &mut Environment::new()) {
            Ok(value) => values.push(value),
            Err(diagnostic) => return Err(terminal.report(&diagnostic, source)),
        }
    }
    let [a, b] = values.as_slice() else { return Err(Failure::Usage("two expressions are needed".to_owned())) };
    let functions = map::of(a).is_some() || map::of(b).is_some();
    match (map::of_operand(a), map::of_operand(b)) {
        (Some(left), Some(right)) if functions => {
            writeln!(terminal.out, "left:  {a}\nright: {b}")?;
            let verdict = law::same(&left, &right, "left(i) = right(i)");
            conclude(&verdict, terminal)
        }
        _ if a == b => {
            let line = painted("holds: the values are equal", Paint::Good, terminal.colour);
            Ok(writeln!(terminal.out, "{a}\n{line}")?)
        }
        _ => {
            writeln!(terminal.out, "left:  {a}\nright: {b}")?;
            writeln!(terminal.out, "{}", painted("fails: the values differ", Paint::Bad, terminal.colour))?;
            Err(Failure::Refused)
        }
    }
}

pub fn run_law(source: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let call = match call(source, &mut Environment::new()) {
        Ok(call) => call,
        Err(diagnostic) => return Err(terminal.report(&diagnostic, source)),
    };
    let Some(call) = call else {
        return Err(Failure::Usage(
            "the expression has no operation to check; give a second one to compare it with".to_owned(),
        ));
    };
    let verdict = match launch::choices(&operands(&call)) {
        Some(choices) => at_launch(&call, &choices),
        None => law::of(call.function, &call.arguments, &call.value),
    };
    let Some(verdict) = verdict else {
        return Err(Failure::Usage(format!("no law of '{}' can be checked on these arguments", call.function)));
    };
    if !matches!(call.value, Value::Bool(_)) {
        writeln!(terminal.out, "R = {}", call.value)?;
    }
    conclude(&verdict, terminal)
}

/// The value of a call and its arguments.
fn operands(call: &Call) -> Vec<&Value> {
    call.arguments.iter().chain([&call.value]).collect()
}

/// The law of a call whose numbers become known at launch, tested at some of them.
fn at_launch(call: &Call, choices: &[Values]) -> Option<Verdict> {
    let mut whole = Verdict { law: String::new(), tested: 0, total: 0, failure: None };
    for choice in choices {
        let arguments: Result<Vec<Value>, _> = call.arguments.iter().map(|value| value.substitute(choice)).collect();
        let (Ok(arguments), Ok(value)) = (arguments, call.value.substitute(choice)) else { continue };
        let verdict = law::of(call.function, &arguments, &value)?;
        whole.law = format!("{}, for {} choices of numbers", verdict.law, choices.len());
        whole.tested += verdict.tested;
        whole.total += verdict.total;
        if let Some(failure) = verdict.failure {
            whole.failure = Some(format!("where {}: {failure}", launch::named(&operands(call), choice)));
            break;
        }
    }
    (whole.total > 0).then_some(whole)
}

/// Prints what came of a test; a law that fails is an error.
fn conclude(verdict: &Verdict, terminal: &mut Terminal) -> Result<(), Failure> {
    let colour = terminal.colour;
    let law = &verdict.law;
    match &verdict.failure {
        Some(failure) => {
            writeln!(terminal.out, "{}", painted(&format!("fails: {law}"), Paint::Bad, colour))?;
            writeln!(terminal.out, "  {failure}")?;
            Err(Failure::Refused)
        }
        None if verdict.tested == 0 => {
            writeln!(terminal.out, "not checked: {law}; there are {} indices, more than {}", verdict.total, law::MOST)?;
            Err(Failure::Refused)
        }
        None if verdict.total == 1 => {
            Ok(writeln!(terminal.out, "{}", painted(&format!("holds: {law}"), Paint::Good, colour))?)
        }
        None => {
            let places = if verdict.tested == verdict.total {
                format!("at all {} indices", verdict.total)
            } else {
                format!("at the first {} of {} indices", verdict.tested, verdict.total)
            };
            Ok(writeln!(terminal.out, "{}", painted(&format!("holds: {law}, {places}"), Paint::Good, colour))?)
        }
    }
}

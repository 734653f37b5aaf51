//! `tilewright check`: whether two layouts are the same function, and whether an operation keeps
//! its law.
//!
//! Law: "holds" means proved; an undecided claim has an exit status of its own.

use std::borrow::Cow;

use serde_json::json;
use tilewright::Value;
use tilewright::explain::check::{Answer, Finding, equal, of_call};
use tilewright::explain::map;
use tilewright::notation::{Pair, evaluate_pair};

use crate::json::extend;
use crate::output::Failure;
use crate::picture::{Paint, painted};
use crate::reader;
use crate::terminal::Terminal;

pub fn run_equal(left: &str, right: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut pair = evaluate_pair(left, right, &reader::environment());
    let (mut left, mut right) = (Cow::Borrowed(left), Cow::Borrowed(right));
    // A side that is not an expression may be a text of another system.
    for _ in 0..2 {
        let Err(failed) = &pair else { break };
        let side = if failed.0 == 0 { &mut left } else { &mut right };
        let Some(ours) = reader::foreign(side, &failed.1)? else { break };
        *side = Cow::Owned(ours);
        pair = evaluate_pair(&left, &right, &reader::environment());
    }
    let sources = [left, right];
    let Pair { values: [a, b], unnamed, notes } = pair.map_err(|failed| {
        let (side, error) = *failed;
        Failure::of_expression(error, sources.get(side).map(Cow::as_ref).unwrap_or_default())
    })?;
    reader::keep(notes);
    let functions = [&a, &b].into_iter().any(|value| map::of(value).is_some());
    let finding = equal(&a, &b);
    let mut values = if a == b && !functions { format!("{a}\n") } else { format!("left:  {a}\nright: {b}\n") };
    if unnamed > 0 {
        values.push_str("each `?` on the left is the `?` at the same position on the right\n");
    }
    let fields = json!({ "left": a.to_string(), "right": b.to_string() });
    conclude(&values, fields, &finding, terminal)
}

pub fn run_law(source: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut environment = reader::environment();
    let call = reader::called(source, &mut environment);
    reader::note(&mut environment);
    let call = call?;
    let Some(call) = call else {
        return Err(Failure::Usage(
            "the expression has no operation to check; give a second one to compare it with".to_owned(),
        ));
    };
    let Some(finding) = of_call(&call) else {
        return Err(Failure::Value(format!("no law of '{}' can be checked on these arguments", call.function)));
    };
    let result = if matches!(call.value, Value::Bool(_)) { String::new() } else { format!("R = {}\n", call.value) };
    conclude(&result, json!({ "result": call.value.to_string() }), &finding, terminal)
}

/// Prints the result of a test. A claim that fails and a claim that stays open are failures.
fn conclude(
    values: &str,
    mut fields: serde_json::Value,
    finding: &Finding,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let Finding { law, answer } = finding;
    let (holds, word, detail, paint) = match answer {
        Answer::Holds(how) => (Some(true), "holds", how, Paint::Good),
        Answer::Fails(place) => (Some(false), "fails", place, Paint::Bad),
        Answer::Open(how) => (None, "no failure found", how, Paint::Strong),
    };
    if terminal.json {
        extend(&mut fields, json!({ "law": law, "holds": holds, "detail": detail }));
        terminal.object(&fields)?;
    } else {
        let line = match answer {
            Answer::Fails(place) => {
                format!("{}\n  {place}", painted(&format!("{word}: {law}"), paint, terminal.colour))
            }
            _ if detail.is_empty() => painted(&format!("{word}: {law}"), paint, terminal.colour),
            _ => painted(&format!("{word}: {law}, {detail}"), paint, terminal.colour),
        };
        terminal.text(&format!("{values}{line}\n"))?;
    }
    match holds {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::No),
        None => Err(Failure::Partly),
    }
}

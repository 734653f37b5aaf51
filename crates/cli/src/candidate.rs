//! `tilewright candidate`: the record that layout assignment keeps of a layout.
//!
//! Law: two layouts are the same candidate exactly if their normal forms and their swizzles are
//! equal; of equal layouts the first is kept.

use serde_json::json;
use tilewright::Value;
use tilewright::layout::candidate::Candidate;

use crate::json::Json;
use crate::output::Failure;
use crate::reader::Reader;
use crate::show::drawable;
use crate::terminal::Terminal;

pub fn run(expressions: &[String], terminal: &mut Terminal) -> Result<(), Failure> {
    let mut found: Vec<Candidate> = Vec::new();
    for (number, source) in expressions.iter().enumerate() {
        let value = drawable(Reader::default().value(source)?);
        let Value::Layout(layout) = &value else {
            return Err(Failure::Value(format!(
                "a candidate is a layout, and '{source}' is of kind '{}'",
                value.kind()
            )));
        };
        let candidate = Candidate::of_layout(layout).map_err(|error| Failure::Value(error.to_string()))?;
        let same = found.iter().position(|other| *other == candidate).map(|at| at + 1);
        let basis = candidate.basis().to_string();
        let stride = candidate.stride().to_string();
        let normal = candidate.text();
        let swizzle = candidate.swizzle().map(|swizzle| swizzle.to_string());
        let word = |name: String| name.to_lowercase();
        let (kind, state) = (word(format!("{:?}", candidate.kind())), word(format!("{:?}", candidate.state())));
        if terminal.json {
            terminal.object(&json!({
                "layout": layout.to_string(),
                "kind": kind,
                "basis": basis,
                "swizzle": swizzle.map_or(Json::Null, Json::from),
                "stride": stride,
                "identity": normal,
                "state": state,
                "same_as": same,
            }))?;
        } else {
            let swizzle = swizzle.map_or(String::new(), |swizzle| format!("swizzle {swizzle}, "));
            let same = same.map_or(String::new(), |at| format!("the same candidate as {at}, "));
            terminal.text(&format!(
                "{} {layout}\n  basis {basis} of {kind} strides, {swizzle}normal strides {stride}\n  identity {normal}\n  {same}{state}\n",
                number + 1
            ))?;
        }
        found.push(candidate);
    }
    Ok(())
}

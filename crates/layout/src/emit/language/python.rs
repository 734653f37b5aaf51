//! Python.

use alloc::format;
use alloc::string::String;
use alloc::string::ToString;

use crate::symbolic::Rounding;

use super::{OperationForm, OperationTable, Precedence, WHOLE, common, level};
use crate::emit::function::{Function, Value};
use crate::emit::graph::Op;
use crate::emit::integer::Integer;

pub(crate) struct Python;

/// The keywords of Python, which also apply to Triton.
pub(super) const KEYWORDS: &str = "False None True and as assert async await break class continue def del elif else except \
     finally for from global if import in is lambda nonlocal not or pass raise return try while \
     with yield abs min tl triton _";

impl OperationTable for Python {
    fn form(&self, op: Op) -> Option<OperationForm> {
        Some(match op {
            Op::Quotient(_, _, Rounding::Exact | Rounding::Plain | Rounding::Down) => {
                OperationForm::Infix("//", level::PRODUCT)
            }
            Op::Remainder(_, _, Rounding::Plain | Rounding::Down) => OperationForm::Infix("%", level::PRODUCT),
            Op::Minimum(..) => OperationForm::Call("min"),
            Op::Magnitude(_) => OperationForm::Call("abs"),
            Op::Both(..) => OperationForm::Infix("and", level::BOTH),
            Op::Choice(..) => OperationForm::Pattern("{1} if {0} else {2}", level::CHOICE, level::CHOICE + 1),
            other => return common(other),
        })
    }

    fn integer(&self, value: i64) -> (String, Precedence) {
        (value.to_string(), if value < 0 { level::UNARY } else { WHOLE })
    }

    fn truth(&self, value: bool) -> &'static str {
        if value { "True" } else { "False" }
    }

    fn keywords(&self) -> &'static str {
        KEYWORDS
    }

    fn named(&self, name: &str, value: &str, _: bool, _: Integer) -> String {
        format!("{name} = {value}")
    }

    fn function(&self, function: &Function<'_>) -> String {
        let mut text = format!("def {}({}):\n", function.name, function.inputs.join(", "));
        for part in &function.parts {
            text += &format!("    {} = {}\n", part.name, part.text);
        }
        text + &format!("    return {}\n", function.results.nested(&|result: &Value| result.text.clone(), true))
    }
}

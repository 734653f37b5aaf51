//! Triton.

use alloc::format;
use alloc::string::String;

use crate::symbolic::Rounding;

use super::python::{KEYWORDS, Python};
use super::{OperationForm, OperationTable, Precedence, common, level};
use crate::emit::function::{Function, Value};
use crate::emit::graph::Op;
use crate::emit::integer::Integer;

pub(crate) struct Triton;

impl OperationTable for Triton {
    fn form(&self, op: Op) -> Option<OperationForm> {
        Some(match op {
            Op::Quotient(_, _, Rounding::Exact | Rounding::Plain | Rounding::TowardZero) => {
                OperationForm::Infix("//", level::PRODUCT)
            }
            Op::Remainder(_, _, Rounding::Plain | Rounding::TowardZero) => OperationForm::Infix("%", level::PRODUCT),
            Op::Quotient(_, _, Rounding::Up) => OperationForm::Call("tl.cdiv"),
            Op::Minimum(..) => OperationForm::Call("tl.minimum"),
            Op::Magnitude(_) => OperationForm::Call("tl.abs"),
            // `and` needs a single boolean, but a tensor has many.
            Op::Both(..) => OperationForm::Infix("&", level::AND),
            Op::Choice(..) => OperationForm::Call("tl.where"),
            other => return common(other),
        })
    }

    fn integer(&self, value: i64) -> (String, Precedence) {
        Python.integer(value)
    }

    fn truth(&self, value: bool) -> &'static str {
        Python.truth(value)
    }

    fn keywords(&self) -> &'static str {
        KEYWORDS
    }

    fn named(&self, name: &str, value: &str, boolean: bool, integer: Integer) -> String {
        Python.named(name, value, boolean, integer)
    }

    fn function(&self, function: &Function<'_>) -> String {
        let mut text = format!("@triton.jit\ndef {}({}):\n", function.name, function.inputs.join(", "));
        // Program ids and integer arguments have 32 bits, so they are widened.
        if function.integer == Integer::I64 && !function.small {
            for name in function.inputs.iter().filter(|name| function.used.contains(name)) {
                text += &format!("    {name} = tl.cast({name}, tl.int64)\n");
            }
        }
        for part in &function.parts {
            text += &format!("    {} = {}\n", part.name, part.text);
        }
        // Triton does not support nested tuples everywhere.
        text + &format!("    return {}\n", function.results.nested(&|result: &Value| result.text.clone(), false))
    }
}

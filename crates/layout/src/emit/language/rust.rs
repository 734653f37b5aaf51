//! Rust.

use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::symbolic::Rounding;

use super::{ANY, OperationForm, OperationTable, Precedence, WHOLE, common, level};
use crate::emit::function::{Function, Value};
use crate::emit::graph::Op;
use crate::emit::integer::Integer;

pub(crate) struct Rust;

fn type_of(boolean: bool, integer: Integer) -> &'static str {
    match integer {
        _ if boolean => "bool",
        Integer::I32 => "i32",
        Integer::I64 => "i64",
    }
}

impl OperationTable for Rust {
    fn form(&self, op: Op) -> Option<OperationForm> {
        Some(match op {
            Op::Quotient(_, _, Rounding::Exact | Rounding::Plain | Rounding::TowardZero) => {
                OperationForm::Infix("/", level::PRODUCT)
            }
            Op::Remainder(_, _, Rounding::Plain | Rounding::TowardZero) => OperationForm::Infix("%", level::PRODUCT),
            Op::Quotient(_, _, Rounding::Down) => OperationForm::Method("div_euclid"),
            Op::Remainder(_, _, Rounding::Down) => OperationForm::Method("rem_euclid"),
            Op::Minimum(..) => OperationForm::Method("min"),
            Op::Magnitude(_) => OperationForm::Method("abs"),
            Op::Both(..) => OperationForm::Infix("&&", level::BOTH),
            Op::Choice(..) => OperationForm::Pattern("if {0} { {1} } else { {2} }", level::CHOICE, ANY),
            other => return common(other),
        })
    }

    fn integer(&self, value: i64) -> (String, Precedence) {
        (value.to_string(), if value < 0 { level::UNARY } else { WHOLE })
    }

    fn truth(&self, value: bool) -> &'static str {
        if value { "true" } else { "false" }
    }

    fn keywords(&self) -> &'static str {
        "_ abstract as async await become box break const continue crate do dyn else enum extern \
         false final fn for gen if impl in let loop macro match mod move mut override priv pub ref \
         return self Self static struct super trait true try type typeof unsafe unsized use \
         virtual where while yield"
    }

    fn escaped(&self, keyword: &str) -> Option<String> {
        (!["_", "self", "Self", "super", "crate"].contains(&keyword)).then(|| format!("r#{keyword}"))
    }

    fn named(&self, name: &str, value: &str, boolean: bool, integer: Integer) -> String {
        format!("let {name}: {} = {value};", type_of(boolean, integer))
    }

    fn function(&self, function: &Function<'_>) -> String {
        let integer = function.integer;
        let mut text = String::from("#[inline]\n");
        let names = function.inputs.iter().chain(function.parts.iter().map(|part| &part.name));
        let mut allowed = Vec::new();
        if names.chain([function.name]).any(|name| name.chars().any(|letter| letter.is_ascii_uppercase())) {
            allowed.push("non_snake_case");
        }
        if function.inputs.iter().any(|name| !function.used.contains(name)) {
            allowed.push("unused_variables");
        }
        if function.inputs.len() > 7 {
            allowed.push("clippy::too_many_arguments");
        }
        if !allowed.is_empty() {
            text += &format!("#[allow({})]\n", allowed.join(", "));
        }
        let inputs: Vec<String> =
            function.inputs.iter().map(|name| format!("{name}: {}", type_of(false, integer))).collect();
        let types = function.results.nested(&|result: &Value| type_of(result.boolean, integer).to_string(), true);
        text += &format!("pub fn {}({}) -> {types} {{\n", function.name, inputs.join(", "));
        for part in &function.parts {
            text += &format!("    {}\n", self.named(&part.name, &part.text, part.boolean, integer));
        }
        let values = function.results.nested(&|result: &Value| result.text.clone(), true);
        text + &format!("    {values}\n}}\n")
    }
}

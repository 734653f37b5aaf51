//! C and CUDA.

use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::symbolic::Rounding;

use super::{OperationForm, OperationTable, Precedence, WHOLE, common, level};
use crate::emit::function::Function;
use crate::emit::graph::Op;
use crate::emit::integer::Integer;

pub(crate) struct C {
    pub(crate) cuda: bool,
}

fn type_of(boolean: bool, integer: Integer) -> &'static str {
    match integer {
        _ if boolean => "bool",
        Integer::I32 => "int32_t",
        Integer::I64 => "int64_t",
    }
}

/// The precedence of comparisons: between sums and products on one side and bitwise operators on
/// the other.
const COMPARE: Precedence = level::AND;
const BELOW_COMPARE: Precedence = 1;

impl OperationTable for C {
    fn form(&self, op: Op) -> Option<OperationForm> {
        Some(match op {
            Op::Quotient(_, _, Rounding::Exact | Rounding::Plain | Rounding::TowardZero) => {
                OperationForm::Infix("/", level::PRODUCT)
            }
            Op::Remainder(_, _, Rounding::Plain | Rounding::TowardZero) => OperationForm::Infix("%", level::PRODUCT),
            Op::Less(..) => OperationForm::Infix("<", COMPARE),
            Op::AtLeast(..) => OperationForm::Infix(">=", COMPARE),
            Op::Bits(..) => OperationForm::Infix("&", level::AND - BELOW_COMPARE),
            Op::Xor(..) => OperationForm::Infix("^", level::XOR - BELOW_COMPARE),
            Op::Both(..) => OperationForm::Infix("&&", level::BOTH),
            Op::Choice(..) => OperationForm::Pattern("{0} ? {1} : {2}", level::CHOICE, level::CHOICE + 1),
            Op::Minimum(..) | Op::Magnitude(_) => return None,
            other => return common(other),
        })
    }

    fn integer(&self, value: i64) -> (String, Precedence) {
        match value {
            // The magnitude of the least number does not fit in its type.
            i64::MIN => (format!("-{} - 1", i64::MAX), level::SUM),
            value => (value.to_string(), if value < 0 { level::UNARY } else { WHOLE }),
        }
    }

    fn truth(&self, value: bool) -> &'static str {
        if value { "true" } else { "false" }
    }

    fn keywords(&self) -> &'static str {
        // The keywords of C and C++, and the names of types that the text uses.
        "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl \
         concept const const_cast consteval constexpr constinit continue co_await co_return \
         co_yield decltype default delete do double dynamic_cast else enum explicit export extern \
         false float for friend goto if inline int int32_t int64_t long mutable namespace new \
         noexcept not not_eq nullptr operator or or_eq private protected public register \
         reinterpret_cast requires restrict return short signed sizeof static static_assert \
         static_cast struct switch template this thread_local throw true try typedef typeid \
         typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while \
         xor xor_eq"
    }

    fn named(&self, name: &str, value: &str, boolean: bool, integer: Integer) -> String {
        format!("const {} {name} = {value};", type_of(boolean, integer))
    }

    fn function(&self, function: &Function<'_>) -> String {
        let integer = function.integer;
        let mut inputs: Vec<String> =
            function.inputs.iter().map(|name| format!("{} {name}", type_of(false, integer))).collect();
        let mut body = Vec::new();
        for name in function.inputs.iter().filter(|name| !function.used.contains(name)) {
            body.push(format!("(void){name};"));
        }
        for part in &function.parts {
            body.push(self.named(&part.name, &part.text, part.boolean, integer));
        }
        let result = match function.results.values.as_slice() {
            [only] => {
                body.push(format!("return {};", only.text));
                type_of(only.boolean, integer)
            }
            results => {
                for result in results {
                    inputs.push(format!("{} *{}", type_of(result.boolean, integer), result.name));
                    body.push(format!("*{} = {};", result.name, result.text));
                }
                "void"
            }
        };
        if inputs.is_empty() {
            inputs.push("void".to_string());
        }
        let kind = if self.cuda { "__device__ __forceinline__" } else { "static inline" };
        let body: String = body.iter().map(|line| format!("    {line}\n")).collect();
        format!("{kind} {result} {}({}) {{\n{body}}}\n", function.name, inputs.join(", "))
    }
}

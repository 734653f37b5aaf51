//! Arithmetic instructions with one and two operands.

use super::PtxError;
use super::writer::Writer;
use crate::program::Instruction;
use crate::program::operation::{Binary, Number, Unary};
use crate::program::register::Width;

/// The canonical NaN of IEEE binary64, as its bits.
const F64_NAN: &str = "0x7ff8000000000000";

/// The type of a number in an instruction.
pub(super) fn kind(number: Number) -> &'static str {
    match number {
        Number::I16 => "s16",
        Number::U16 => "u16",
        Number::I32 => "s32",
        Number::U32 => "u32",
        Number::I64 => "s64",
        Number::U64 => "u64",
        Number::F16 => "f16",
        Number::Bf16 => "bf16",
        Number::F16x2 => "f16x2",
        Number::Bf16x2 => "bf16x2",
        Number::F32 => "f32",
        Number::F64 => "f64",
    }
}

pub(super) fn is_half(number: Number) -> bool {
    matches!(number, Number::F16 | Number::Bf16)
}

impl Writer<'_> {
    pub(super) fn unary(
        &mut self,
        instruction: &Instruction,
        operation: Unary,
        number: Number,
    ) -> Result<(), PtxError> {
        let result = self.result(instruction);
        let a = self.register(instruction.inputs[0]);
        let width = self.program.width(instruction.inputs[0]);
        let name = kind(number);
        let text = match (operation, number) {
            (Unary::Not, _) if width == Width::Predicate => format!("not.pred {result}, {a};"),
            (Unary::Not, _) => format!("not.b{} {result}, {a};", width.bits()),
            (Unary::CountOnes, _) => format!("popc.b{} {result}, {a};", width.bits()),
            (Unary::CountLeadingZeros, _) => format!("clz.b{} {result}, {a};", width.bits()),
            (Unary::Negate, _) if !number.is_float() => format!("neg.{} {result}, {a};", name.replace('u', "s")),
            (Unary::Negate, _) => format!("neg.{name} {result}, {a};"),
            (Unary::Magnitude, _) if matches!(number, Number::U16 | Number::U32 | Number::U64) => {
                format!("mov.b{} {result}, {a};", width.bits())
            }
            (Unary::Magnitude, _) => format!("abs.{name} {result}, {a};"),
            (_, number) if is_half(number) => {
                return self.by_way_of_f32(instruction, number, &[a], &|writer, parts| {
                    writer.approximated(operation, &parts[0])
                });
            }
            (Unary::SquareRoot, Number::F32 | Number::F64) => format!("sqrt.rn.{name} {result}, {a};"),
            (Unary::Floor, Number::F32 | Number::F64) => format!("cvt.rmi.{name}.{name} {result}, {a};"),
            (Unary::Ceiling, Number::F32 | Number::F64) => format!("cvt.rpi.{name}.{name} {result}, {a};"),
            (Unary::RoundEven, Number::F32 | Number::F64) => format!("cvt.rni.{name}.{name} {result}, {a};"),
            (Unary::Reciprocal, Number::F64) => format!("rcp.rn.f64 {result}, {a};"),
            (Unary::RoundTf32, Number::F32) => format!("cvt.rna.tf32.f32 {result}, {a};"),
            (_, Number::F32) => match self.approximated(operation, &a) {
                Some(text) => text.replace("{}", &result),
                None => return Err(self.none(format!("{operation:?} of {number:?}"), instruction)),
            },
            _ => return Err(self.none(format!("{operation:?} of {number:?}"), instruction)),
        };
        self.line(&text);
        Ok(())
    }

    /// An operation on one f32, with `{}` for the result.
    fn approximated(&self, operation: Unary, a: &str) -> Option<String> {
        let name = match operation {
            Unary::Reciprocal => "rcp.approx.f32",
            Unary::SquareRoot => "sqrt.rn.f32",
            Unary::ReciprocalSquareRoot => "rsqrt.approx.f32",
            Unary::Exp2 => "ex2.approx.ftz.f32",
            Unary::Log2 => "lg2.approx.f32",
            Unary::Sine => "sin.approx.f32",
            Unary::Cosine => "cos.approx.f32",
            Unary::HyperbolicTangent => "tanh.approx.f32",
            _ => return None,
        };
        Some(format!("{name} {{}}, {a};"))
    }

    /// Computes on 16-bit floats through f32. It is wide enough that rounding twice equals rounding
    /// once for quotients and square roots.
    fn by_way_of_f32(
        &mut self,
        instruction: &Instruction,
        number: Number,
        inputs: &[String],
        compute: &dyn Fn(&Writer<'_>, &[String]) -> Option<String>,
    ) -> Result<(), PtxError> {
        let mut wide = Vec::new();
        for input in inputs {
            let register = self.temporary(Width::Bits32);
            if number == Number::F16 {
                self.line(&format!("cvt.f32.f16 {register}, {input};"));
            } else {
                let zero = self.temporary(Width::Bits16);
                self.line(&format!("mov.b16 {zero}, 0;"));
                self.line(&format!("mov.b32 {register}, {{{zero}, {input}}};"));
            }
            wide.push(register);
        }
        let Some(text) = compute(self, &wide) else {
            return Err(self.none(format!("{:?}", instruction.operation), instruction));
        };
        let computed = self.temporary(Width::Bits32);
        self.line(&text.replace("{}", &computed));
        let result = self.result(instruction);
        self.line(&format!("cvt.rn.{}.f32 {result}, {computed};", kind(number)));
        Ok(())
    }

    pub(super) fn binary(
        &mut self,
        instruction: &Instruction,
        operation: Binary,
        number: Number,
    ) -> Result<(), PtxError> {
        let result = self.result(instruction);
        let width = self.program.width(instruction.outputs[0]);
        let inputs = &instruction.inputs;
        let name = kind(number);
        let shifted = matches!(operation, Binary::ShiftLeft | Binary::ShiftRight);
        if width == Width::Predicate {
            let [a, b] = [0, 1].map(|at| self.register(inputs[at]));
            let name = match operation {
                Binary::And => "and",
                Binary::Or => "or",
                Binary::Xor => "xor",
                _ => return Err(self.none(format!("{operation:?} of predicates"), instruction)),
            };
            self.line(&format!("{name}.pred {result}, {a}, {b};"));
            return Ok(());
        }
        let a = self.operand(inputs[0], number);
        let b = self.operand(inputs[1], if shifted { Number::U32 } else { number });
        let bits = width.bits();
        let text = match operation {
            Binary::And => format!("and.b{bits} {result}, {a}, {b};"),
            Binary::Or => format!("or.b{bits} {result}, {a}, {b};"),
            Binary::Xor => format!("xor.b{bits} {result}, {a}, {b};"),
            Binary::ShiftLeft => format!("shl.b{bits} {result}, {a}, {b};"),
            Binary::ShiftRight => format!("shr.{name} {result}, {a}, {b};"),
            Binary::MultiplyWide => format!("mul.wide.{name} {result}, {a}, {b};"),
            Binary::MultiplyHigh => format!("mul.hi.{name} {result}, {a}, {b};"),
            Binary::Remainder if !number.is_float() => format!("rem.{name} {result}, {a}, {b};"),
            Binary::Divide => match number {
                Number::F32 | Number::F64 => format!("div.rn.{name} {result}, {a}, {b};"),
                number if is_half(number) => {
                    return self.by_way_of_f32(instruction, number, &[a, b], &|_, parts| {
                        Some(format!("div.rn.f32 {{}}, {}, {};", parts[0], parts[1]))
                    });
                }
                number if number.is_float() => {
                    return Err(self.none(format!("{operation:?} of {number:?}"), instruction));
                }
                _ => format!("div.{name} {result}, {a}, {b};"),
            },
            Binary::Minimum => format!("min.{name} {result}, {a}, {b};"),
            Binary::Maximum => format!("max.{name} {result}, {a}, {b};"),
            Binary::MinimumNan | Binary::MaximumNan => {
                let verb = if operation == Binary::MinimumNan { "min" } else { "max" };
                match number {
                    // PTX has no `.NaN` for f64.
                    Number::F64 => {
                        let (extreme, unordered) = (self.temporary(Width::Bits64), self.temporary(Width::Predicate));
                        self.line(&format!("{verb}.f64 {extreme}, {a}, {b};"));
                        self.line(&format!("setp.nan.f64 {unordered}, {a}, {b};"));
                        format!("selp.b64 {result}, {F64_NAN}, {extreme}, {unordered};")
                    }
                    number if number.is_float() => format!("{verb}.NaN.{name} {result}, {a}, {b};"),
                    _ => format!("{verb}.{name} {result}, {a}, {b};"),
                }
            }
            Binary::Multiply if !number.is_float() => format!("mul.lo.{name} {result}, {a}, {b};"),
            Binary::Add | Binary::Subtract | Binary::Multiply => {
                // Before Hopper, bf16 has only fused multiply-adds: a*1+b, b*-1+a, a*b-0.
                let one = |writer: &mut Self, bits: &str| {
                    let register =
                        writer.temporary(if number == Number::Bf16x2 { Width::Bits32 } else { Width::Bits16 });
                    let width = if number == Number::Bf16x2 { 32 } else { 16 };
                    writer.line(&format!("mov.b{width} {register}, {bits};"));
                    register
                };
                let pair = number == Number::Bf16x2;
                match (operation, number) {
                    (Binary::Add, Number::Bf16 | Number::Bf16x2) => {
                        let one = one(self, if pair { "0x3f803f80" } else { "0x3f80" });
                        format!("fma.rn.{name} {result}, {a}, {one}, {b};")
                    }
                    (Binary::Subtract, Number::Bf16 | Number::Bf16x2) => {
                        let one = one(self, if pair { "0xbf80bf80" } else { "0xbf80" });
                        format!("fma.rn.{name} {result}, {b}, {one}, {a};")
                    }
                    (_, Number::Bf16 | Number::Bf16x2) => {
                        let zero = one(self, if pair { "0x80008000" } else { "0x8000" });
                        format!("fma.rn.{name} {result}, {a}, {b}, {zero};")
                    }
                    (operation, number) => {
                        let verb = match operation {
                            Binary::Add => "add",
                            Binary::Subtract => "sub",
                            _ => "mul",
                        };
                        let rounding = if number.is_float() { ".rn" } else { "" };
                        format!("{verb}{rounding}.{name} {result}, {a}, {b};")
                    }
                }
            }
            other => return Err(self.none(format!("{other:?} of {number:?}"), instruction)),
        };
        self.line(&text);
        Ok(())
    }
}

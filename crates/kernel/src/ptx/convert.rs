//! Conversions.

use super::writer::Writer;
use super::{PtxError, arithmetic};
use crate::program::Instruction;
use crate::program::operation::{Format, Number, Rounding};
use crate::program::register::Width;

/// The type of a format in a conversion; None for formats that only pairs have.
fn kind(format: Format) -> Option<&'static str> {
    Some(match format {
        Format::I8 => "s8",
        Format::U8 => "u8",
        Format::Number(Number::F16x2 | Number::Bf16x2) => return None,
        Format::Number(number) => arithmetic::kind(number),
        Format::E4M3 | Format::E5M2 => return None,
    })
}

/// Whether it is a floating-point format, and its number of significant bits.
fn float_bits(format: Format) -> Option<u32> {
    match format {
        Format::Number(Number::F16 | Number::Bf16) => Some(16),
        Format::Number(Number::F32) => Some(32),
        Format::Number(Number::F64) => Some(64),
        _ => None,
    }
}

impl Writer<'_> {
    pub(super) fn convert(
        &mut self,
        instruction: &Instruction,
        from: Format,
        to: Format,
        rounding: Rounding,
    ) -> Result<(), PtxError> {
        let (input, result) = (self.register(instruction.inputs[0]), self.result(instruction));
        let none = |writer: &Writer<'_>| PtxError::Operation {
            what: format!("conversion from {from:?} to {to:?}"),
            statement: writer.program.source(instruction.source).to_string(),
        };
        let (Some(source), Some(target)) = (kind(from), kind(to)) else { return Err(none(self)) };
        match (from, to) {
            // The upper half of an f32.
            (Format::Number(Number::Bf16), Format::Number(Number::F32)) => {
                let zero = self.temporary(Width::Bits16);
                self.line(&format!("mov.b16 {zero}, 0;"));
                self.line(&format!("mov.b32 {result}, {{{zero}, {input}}};"));
                return Ok(());
            }
            (Format::Number(Number::Bf16), _) => return Err(none(self)),
            (_, Format::Number(Number::Bf16)) if from != Format::Number(Number::F32) => return Err(none(self)),
            _ => {}
        }
        let letter = |mark: &str| match rounding {
            Rounding::Nearest => format!(".rn{mark}"),
            Rounding::Zero => format!(".rz{mark}"),
            Rounding::Down => format!(".rm{mark}"),
            Rounding::Up => format!(".rp{mark}"),
        };
        let rounded = match (float_bits(from), float_bits(to)) {
            (Some(wide), Some(narrow)) if wide > narrow => letter(""),
            (Some(_), Some(_)) | (None, None) => String::new(),
            (None, Some(_)) => letter(""),
            (Some(_), None) => letter("i"),
        };
        self.line(&format!("cvt{rounded}.{target}.{source} {result}, {input};"));
        // Registers of bytes have zeros in their upper half.
        if to == Format::I8 {
            self.line(&format!("and.b16 {result}, {result}, 255;"));
        }
        Ok(())
    }

    pub(super) fn convert_pair(&mut self, instruction: &Instruction, to: Format) -> Result<(), PtxError> {
        let (low, high) = (self.register(instruction.inputs[0]), self.register(instruction.inputs[1]));
        let result = self.result(instruction);
        let name = match to {
            Format::Number(Number::F16) => "cvt.rn.f16x2.f32",
            Format::Number(Number::Bf16) => "cvt.rn.bf16x2.f32",
            Format::E4M3 | Format::E5M2 => {
                if to == Format::E4M3 {
                    "cvt.rn.satfinite.e4m3x2.f32"
                } else {
                    "cvt.rn.satfinite.e5m2x2.f32"
                }
            }
            other => {
                return Err(PtxError::Operation {
                    what: format!("conversion of a pair to {other:?}"),
                    statement: self.program.source(instruction.source).to_string(),
                });
            }
        };
        // The first source of the instruction is the upper half.
        self.line(&format!("{name} {result}, {high}, {low};"));
        Ok(())
    }

    pub(super) fn widen_pair(&mut self, instruction: &Instruction, from: Format) {
        let (input, result) = (self.register(instruction.inputs[0]), self.result(instruction));
        let source = if from == Format::E4M3 { "e4m3x2" } else { "e5m2x2" };
        self.line(&format!("cvt.rn.f16x2.{source} {result}, {input};"));
    }
}

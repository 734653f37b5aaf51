//! Decodes video instructions: their operations, and the parts of registers that they name.

use super::alu::functions::three;
use super::{Decode, Decoder, exactly, types};
use crate::engine::code::{Op, Source, Target};
use crate::isa::compare::Comparison;
use crate::isa::video::{
    PartInstruction, PartOperation, RegisterPart, ScalarVideo, Secondary, ShiftLimit, VideoProduct,
};
use crate::ptx::{Operand, Scalar};

/// The operation of an opcode, without the suffix that counts parts.
fn operation(name: &str, modifiers: &[&str]) -> Decode<PartOperation> {
    let limit = if modifiers.contains(&"wrap") { ShiftLimit::Wrap } else { ShiftLimit::Clamp };
    Ok(match name {
        "vadd" => PartOperation::Add,
        "vsub" => PartOperation::Sub,
        "vavrg" => PartOperation::Average,
        "vabsdiff" => PartOperation::AbsDiff,
        "vmin" => PartOperation::Min,
        "vmax" => PartOperation::Max,
        "vshl" => PartOperation::ShiftLeft(limit),
        "vshr" => PartOperation::ShiftRight(limit),
        "vset" => {
            let comparison = modifiers.iter().find_map(|word| match *word {
                "eq" => Some(Comparison::Eq),
                "ne" => Some(Comparison::Ne),
                "lt" => Some(Comparison::Lt),
                "le" => Some(Comparison::Le),
                "gt" => Some(Comparison::Gt),
                "ge" => Some(Comparison::Ge),
                _ => None,
            });
            PartOperation::Compare(comparison.ok_or("the comparison is missing")?)
        }
        _ => return Err("this instruction is not known".to_string()),
    })
}

/// A register and its part.
fn split<'o, 'a>(operand: &'o Operand<'a>) -> (&'o Operand<'a>, Option<&'a str>) {
    match operand {
        Operand::Part(inner, part) => (inner, Some(part)),
        whole => (whole, None),
    }
}

fn scalar_part(word: Option<&str>) -> Decode<RegisterPart> {
    match word {
        None => Ok(RegisterPart::Whole),
        Some(word) => RegisterPart::read(word).ok_or_else(|| format!("`.{word}` is no part of a register here")),
    }
}

/// The digits of `h32` or `b3210`, the last one first.
fn numbers(word: &str, bits: u32) -> Option<Vec<u8>> {
    let digits = word.strip_prefix(if bits == 16 { 'h' } else { 'b' })?;
    let most = if bits == 16 { 3 } else { 7 };
    let each = digits.bytes().rev().map(|digit| digit.checked_sub(b'0').filter(|digit| *digit <= most));
    each.collect::<Option<Vec<u8>>>().filter(|all| !all.is_empty())
}

impl<'a> Decoder<'_, 'a> {
    /// Decodes an instruction whose name begins with `v` and that is of no other kind.
    pub(super) fn video_instruction(
        &mut self,
        opcode: &str,
        modifiers: &[&'a str],
        operands: &[Operand<'a>],
    ) -> Decode<()> {
        match opcode.strip_suffix(['2', '4']) {
            Some(name) => self.parts_instruction(name, opcode.ends_with('4'), modifiers, operands),
            None if opcode == "vmad" => self.video_product(modifiers, operands),
            None => self.scalar_video(opcode, modifiers, operands),
        }
    }

    /// The types of the result and of the operands. `vset` names no type of its result.
    fn video_types(&self, modifiers: &[&str], is_set: bool) -> Decode<[bool; 3]> {
        let all: Vec<bool> = types(modifiers).iter().map(|kind| kind.is_signed()).collect();
        match (&all[..], is_set) {
            (&[d, a, b], false) => Ok([d, a, b]),
            (&[a, b], true) => Ok([false, a, b]),
            _ => Err("another number of types is expected".to_string()),
        }
    }

    fn video_emit(
        &mut self,
        d: Target,
        [a, b, c]: [Source; 3],
        f: impl Fn(u32, u32, u32) -> u32 + Send + Sync + 'static,
    ) {
        self.emit(Op::Alu3(d, [a, b, c], three(move |a, b, c| u64::from(f(a as u32, b as u32, c as u32)))));
    }

    /// Decodes `vadd.s32.u32.s32.sat.min d, a.b0, b.h1, c` and similar instructions.
    fn scalar_video(&mut self, opcode: &str, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let operation = operation(opcode, modifiers)?;
        let signed = self.video_types(modifiers, opcode == "vset")?;
        let (d, a, b, c) = match operands {
            [d, a, b] => (d, a, b, None),
            [d, a, b, c] => (d, a, b, Some(c)),
            _ => return Err("three or four operands are expected".to_string()),
        };
        let ((d, to), (a, of_a), (b, of_b)) = (split(d), split(a), split(b));
        let secondary = modifiers.iter().find_map(|word| match *word {
            "add" => Some(Secondary::Add),
            "min" => Some(Secondary::Min),
            "max" => Some(Secondary::Max),
            _ => None,
        });
        let secondary = match (secondary, to, c) {
            (None, None, None) => Secondary::Nothing,
            (None, Some(part), Some(_)) => Secondary::Merge(scalar_part(Some(part))?),
            (Some(secondary), None, Some(_)) => secondary,
            _ => return Err("a third operand and what is done with it go together".to_string()),
        };
        let parts = [scalar_part(of_a)?, scalar_part(of_b)?];
        let own = ScalarVideo { operation, parts, signed, saturates: modifiers.contains(&"sat"), secondary };
        if own.is_open() {
            return Err("the document and devices give different results of this form".to_string());
        }
        let kind = Scalar::B(32);
        let (d, a, b) = (self.target(d)?, self.source(a, kind)?, self.source(b, kind)?);
        let c = match c {
            Some(c) => self.source(c, kind)?,
            None => self.constant(0),
        };
        self.video_emit(d, [a, b, c], move |a, b, c| own.of(a, b, c));
        Ok(())
    }

    /// Decodes `vmad.s32.s32.u32.sat.shr7 d, -a.h0, b.h1, c`.
    fn video_product(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let [d, a, b, c] = exactly(operands)?;
        let sign = |operand: &Operand<'a>| match operand {
            Operand::Negative(inner) => ((**inner).clone(), true),
            own => (own.clone(), false),
        };
        let ((a, minus_a), (b, minus_b), (c, minus_c)) = (sign(a), sign(b), sign(c));
        let [_, of_a, of_b] = self.video_types(modifiers, false)?;
        let plus_one = modifiers.contains(&"po");
        let negated = [minus_a != minus_b, minus_c];
        if u32::from(plus_one) + u32::from(negated[0]) + u32::from(minus_c) > 1 {
            return Err("one of the product and the addend can be negated, without `.po`".to_string());
        }
        let ((a, part_a), (b, part_b)) = (split(&a), split(&b));
        let own = VideoProduct {
            parts: [scalar_part(part_a)?, scalar_part(part_b)?],
            signed: [of_a, of_b],
            negated,
            plus_one,
            shift: match () {
                () if modifiers.contains(&"shr7") => 7,
                () if modifiers.contains(&"shr15") => 15,
                () => 0,
            },
            saturates: modifiers.contains(&"sat"),
        };
        let kind = Scalar::B(32);
        let d = self.target(d)?;
        let from = [self.source(a, kind)?, self.source(b, kind)?, self.source(&c, kind)?];
        self.video_emit(d, from, move |a, b, c| own.of(a, b, c));
        Ok(())
    }

    /// Decodes `vabsdiff4.u32.u32.u32.add d.b10, a.b3210, b.b7654, c` and similar instructions.
    fn parts_instruction(
        &mut self,
        name: &str,
        is_bytes: bool,
        modifiers: &[&'a str],
        operands: &[Operand<'a>],
    ) -> Decode<()> {
        let [d, a, b, c] = exactly(operands)?;
        if matches!(name, "vshl" | "vshr") {
            return Err("this instruction is not known".to_string());
        }
        let bits = if is_bytes { 8 } else { 16 };
        let mut own = PartInstruction::new(operation(name, modifiers)?, bits);
        own.signed = self.video_types(modifiers, name == "vset")?;
        own.saturates = modifiers.contains(&"sat");
        own.sums = modifiers.contains(&"add");
        let ((d, mask), (a, of_a), (b, of_b)) = (split(d), split(a), split(b));
        let unknown = |word: &str| format!("`.{word}` is no choice of parts here");
        for (at, word) in [of_a, of_b].into_iter().enumerate() {
            let Some(word) = word else { continue };
            let found = numbers(word, bits).filter(|all| all.len() as u32 == 32 / bits).ok_or_else(|| unknown(word))?;
            own.chosen[at][..found.len()].copy_from_slice(&found);
        }
        if let Some(word) = mask {
            let found = numbers(word, bits).filter(|all| all.iter().all(|at| u32::from(*at) < 32 / bits));
            own.mask = found.ok_or_else(|| unknown(word))?.iter().fold(0, |mask, at| mask | 1 << at);
        }
        let kind = Scalar::B(32);
        let d = self.target(d)?;
        let from = [self.source(a, kind)?, self.source(b, kind)?, self.source(c, kind)?];
        self.video_emit(d, from, move |a, b, c| own.of(a, b, c));
        Ok(())
    }
}

//! Prints wgmma.

use super::writer::Writer;
use crate::program::Instruction;
use crate::program::memory::Access;
use crate::program::operation::OPERAND_REGISTERS;
use crate::program::register::{Register, Width};
use crate::program::wgmma::{Described, WgmmaOperands};
use tilewright_layout::atoms::Major;

impl Writer<'_> {
    pub(super) fn multiply_group(
        &mut self,
        instruction: &Instruction,
        (operands, columns): (WgmmaOperands, u32),
        (a, b): (Option<&Described>, &Described),
        adds: bool,
    ) {
        let mut inputs = instruction.inputs.iter().copied();
        let left = match a {
            Some(a) => {
                let register = a.access.addressed.then(|| inputs.next()).flatten();
                self.descriptor(a, register)
            }
            None => format!("{{{}}}", self.names(inputs.by_ref().take(OPERAND_REGISTERS)).join(", ")),
        };
        let register = b.access.addressed.then(|| inputs.next()).flatten();
        let right = self.descriptor(b, register);
        let types = match operands {
            WgmmaOperands::F16 => "f16.f16",
            WgmmaOperands::Bf16 => "bf16.bf16",
            WgmmaOperands::Tf32 => "tf32.tf32",
            WgmmaOperands::E4M3 => "e4m3.e4m3",
            WgmmaOperands::E5M2 => "e5m2.e5m2",
            WgmmaOperands::I8 => "s8.s8",
            WgmmaOperands::U8 => "u8.u8",
        };
        // Accumulators are read and written in the same registers (`sums.rs`).
        let sums = self.names(instruction.outputs.iter().copied()).join(", ");
        // Operands with a width other than 16 bits, and operands in registers, cannot be
        // transposed, so they have no transposition argument.
        let turned = a.into_iter().chain([b]).map(|operand| format!(", {}", u32::from(operand.major == Major::MN)));
        let majors = if operands.bytes() == 2 { turned.collect() } else { String::new() };
        let depth = operands.depth();
        // Whether the product is added to the accumulators; and the signs of the operands, which
        // integers do not have.
        let (sum, signs) = if operands.is_integer() { ("s32", "") } else { ("f32", ", 1, 1") };
        let adds = u32::from(adds);
        self.line(&format!(
            "wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{sum}.{types} {{{sums}}}, {left}, {right}, {adds}{signs}{majors};"
        ));
    }

    /// A register with the matrix descriptor of an operand.
    fn descriptor(&mut self, operand: &Described, register: Option<Register>) -> String {
        // The address in units of 16 bytes, plus an offset. The addition to the start field has no
        // carry, because shared memory ends before the field does. So the part that all k-steps
        // share is computed once.
        let begin = self.shared_address(&Access { offset: 0, ..operand.access }, None);
        let (low, wide) = (self.temporary(Width::Bits32), self.temporary(Width::Bits64));
        self.line(&format!("shr.u32 {low}, {begin}, 4;"));
        // The higher bits of an address contain the block in its cluster.
        self.line(&format!("and.b32 {low}, {low}, 0x3fff;"));
        self.line(&format!("or.b32 {low}, {low}, {:#x};", operand.leading >> 4 << 16));
        if let Some(register) = register {
            let (register, units) = (self.register(register), self.temporary(Width::Bits32));
            self.line(&format!("shr.u32 {units}, {register}, 4;"));
            self.line(&format!("add.s32 {low}, {low}, {units};"));
        }
        if operand.access.offset != 0 {
            self.line(&format!("add.s32 {low}, {low}, {};", operand.access.offset >> 4));
        }
        let high = u64::from(operand.stride >> 4) | operand.mode.code() << 30;
        self.line(&format!("mov.b64 {wide}, {{{low}, {high:#x}}};"));
        wide
    }
}

//! Instructions that only read and write registers.
//!
//! Law: the result of such an instruction depends only on its inputs, lane by lane. So the
//! interpreter and the cost report compute it with the same code.

use super::arithmetic;
use super::convert;
use super::lanes::{Lanes, low, one, three, two};
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::operation::{Effect, Operation};
use crate::program::register::Width;

/// Executes an instruction in all lanes of a warp, if it only reads and writes registers. Returns
/// whether it does. Registers have these widths.
pub(crate) fn compute(widths: &[Width], registers: &mut [Lanes], instruction: &Instruction) -> bool {
    let input = |registers: &[Lanes], at: usize| registers[instruction.inputs[at].index()];
    let output = |at: usize| instruction.outputs[at].index();
    match &instruction.operation {
        Operation::Constant(bits) => {
            let width = widths[instruction.outputs[0].index()].bits();
            registers[output(0)] = [bits & low(width); WARP_LANES];
        }
        Operation::Unary(operation, number) => {
            let mask = low(widths[instruction.outputs[0].index()].bits());
            let a = input(registers, 0);
            arithmetic::unary(*operation, *number, mask, &a, &mut registers[output(0)]);
        }
        Operation::Binary(operation, number) => {
            let (a, b) = (input(registers, 0), input(registers, 1));
            arithmetic::binary(*operation, *number, &a, &b, &mut registers[output(0)]);
        }
        Operation::MultiplyAdd(number) => {
            let (a, b, c) = (input(registers, 0), input(registers, 1), input(registers, 2));
            arithmetic::multiply_add(*number, &a, &b, &c, &mut registers[output(0)]);
        }
        Operation::MultiplyAddWide(number) => {
            let (a, b, c) = (input(registers, 0), input(registers, 1), input(registers, 2));
            arithmetic::multiply_add_wide(*number, &a, &b, &c, &mut registers[output(0)]);
        }
        Operation::Compare(comparison, number) => {
            let (a, b) = (input(registers, 0), input(registers, 1));
            arithmetic::compare(*comparison, *number, &a, &b, &mut registers[output(0)]);
        }
        Operation::Select => {
            let (condition, a, b) = (input(registers, 0), input(registers, 1), input(registers, 2));
            let out = &mut registers[output(0)];
            three(&condition, &a, &b, out, |condition, a, b| if condition & 1 == 1 { a } else { b });
        }
        Operation::Convert { from, to, rounding } => {
            let a = input(registers, 0);
            convert::convert(*from, *to, *rounding, &a, &mut registers[output(0)]);
        }
        Operation::ConvertPair { to } => {
            let (a, b) = (input(registers, 0), input(registers, 1));
            convert::convert_pair(*to, &a, &b, &mut registers[output(0)]);
        }
        Operation::WidenPair { from } => {
            let a = input(registers, 0);
            convert::widen_pair(*from, &a, &mut registers[output(0)]);
        }
        Operation::Pack => {
            let width = widths[instruction.inputs[0].index()].bits();
            let mut packed = [0; WARP_LANES];
            for (part, register) in instruction.inputs.iter().enumerate() {
                for (packed, value) in packed.iter_mut().zip(&registers[register.index()]) {
                    *packed |= value << (width * part as u32);
                }
            }
            registers[output(0)] = packed;
        }
        Operation::Unpack => {
            let width = widths[instruction.outputs[0].index()].bits();
            let a = input(registers, 0);
            for (part, register) in instruction.outputs.iter().enumerate() {
                let out = &mut registers[register.index()];
                one(&a, out, |a| a >> (width * part as u32) & low(width));
            }
        }
        Operation::Permute(selector) => {
            let (a, b) = (input(registers, 0), input(registers, 1));
            two(&a, &b, &mut registers[output(0)], |a, b| permuted(a | b << 32, *selector));
        }
        Operation::Logic(table) => {
            let (a, b, c) = (input(registers, 0), input(registers, 1), input(registers, 2));
            three(&a, &b, &c, &mut registers[output(0)], |a, b, c| by_table(*table, [a, b, c]));
        }
        Operation::FunnelShiftLeft => {
            let (a, b, c) = (input(registers, 0), input(registers, 1), input(registers, 2));
            three(&a, &b, &c, &mut registers[output(0)], |a, b, c| ((a | b << 32) << (c % 32)) >> 32);
        }
        Operation::FunnelShiftRight => {
            let (a, b, c) = (input(registers, 0), input(registers, 1), input(registers, 2));
            three(&a, &b, &c, &mut registers[output(0)], |a, b, c| (a | b << 32) >> (c % 32) & low(32));
        }
        other => {
            debug_assert_ne!(other.effect(), Effect::None, "{other:?} is computed");
            return false;
        }
    }
    true
}

/// The result of a three-input truth table, bit by bit.
fn by_table(table: u8, [a, b, c]: [u64; 3]) -> u64 {
    let bit = |at: u32| {
        let row = (a >> at & 1) << 2 | (b >> at & 1) << 1 | (c >> at & 1);
        u64::from(table) >> row & 1
    };
    (0..32).map(|at| bit(at) << at).sum()
}

/// `prmt`: four of eight bytes.
fn permuted(bytes: u64, selector: u16) -> u64 {
    (0..4).map(|place| (bytes >> (8 * (selector >> (4 * place) & 7)) & 0xff) << (8 * place)).sum()
}

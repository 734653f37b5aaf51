//! How the bits of a register are displayed.
//!
//! Law: a register is displayed as numbers of the type that the instruction which writes it
//! implies: the elements of the tensor that it loads, or the type in which it computes. A constant
//! is displayed in the type of the first instruction that reads it. Instructions that only move
//! bits keep the display type.

use super::rounding::{BF16, E4M3, E5M2, F16};
use crate::element::{Element, ElementType};
use crate::program::operation::{Binary, Format, Matrix, Number, Operation, Special, Unary};
use crate::program::register::{Register, Width};
use crate::program::scalar::Scalar;
use crate::program::{Instruction, Program, Step};

/// How the bits of a register are displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// True or false.
    Predicate,
    /// Packed elements of a type, the first one in the lowest bits.
    Elements(Element, u32),
    /// Bits with no known meaning, and their number.
    Bits(u32),
}

impl Reading {
    /// The value of a register as text: `true`, `0.5`, or several elements with commas.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::interpret::Reading;
    ///
    /// assert_eq!(Reading::Elements(Element::F16, 2).text(0x3c00_c000), "-2, 1");
    /// assert_eq!(Reading::Bits(32).text(255), "0x000000ff");
    /// ```
    pub fn text(self, bits: u64) -> String {
        match self {
            Reading::Predicate => (bits & 1 == 1).to_string(),
            Reading::Elements(element, count) => {
                let one = |at: u32| element.text(bits.checked_shr(at * element.bits()).unwrap_or(0));
                (0..count).map(one).collect::<Vec<_>>().join(", ")
            }
            Reading::Bits(bits_of) => format!("0x{bits:0width$x}", width = bits_of as usize / 4),
        }
    }

    /// The element, if there is exactly one.
    pub fn element(self) -> Option<Element> {
        match self {
            Reading::Elements(element, _) => Some(element),
            _ => None,
        }
    }
}

impl Element {
    /// The number with these bits in decimal, with the fewest digits that give the same number when
    /// they are parsed as an `f32`, or as an `f64` for f64 and for floats of 8 bits. Higher bits
    /// are ignored.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    ///
    /// assert_eq!(Element::Bf16.text(0x3fc0), "1.5");
    /// assert_eq!(Element::E4M3.text(0x38), "1");
    /// assert_eq!(Element::I8.text(0xff), "-1");
    /// ```
    pub fn text(self, bits: u64) -> String {
        match self {
            Element::U8 => u8::from_bits(bits).to_string(),
            Element::I8 => i8::from_bits(bits).to_string(),
            Element::U16 => u16::from_bits(bits).to_string(),
            Element::I16 => i16::from_bits(bits).to_string(),
            Element::U32 => u32::from_bits(bits).to_string(),
            Element::I32 => i32::from_bits(bits).to_string(),
            Element::U64 => u64::from_bits(bits).to_string(),
            Element::I64 => i64::from_bits(bits).to_string(),
            Element::E4M3 => E4M3.to_f64(bits & 0xff).to_string(),
            Element::E5M2 => E5M2.to_f64(bits & 0xff).to_string(),
            Element::F16 => (F16.to_f64(bits & 0xffff) as f32).to_string(),
            Element::Bf16 => (BF16.to_f64(bits & 0xffff) as f32).to_string(),
            Element::F32 => f32::from_bits(bits as u32).to_string(),
            Element::F64 => f64::from_bits(bits).to_string(),
        }
    }
}

/// The elements of a number, and how many a register of it has.
fn of_number(number: Number) -> Reading {
    let (element, count) = match number {
        Number::I16 => (Element::I16, 1),
        Number::U16 => (Element::U16, 1),
        Number::I32 => (Element::I32, 1),
        Number::U32 => (Element::U32, 1),
        Number::I64 => (Element::I64, 1),
        Number::U64 => (Element::U64, 1),
        Number::F16 => (Element::F16, 1),
        Number::Bf16 => (Element::Bf16, 1),
        Number::F16x2 => (Element::F16, 2),
        Number::Bf16x2 => (Element::Bf16, 2),
        Number::F32 => (Element::F32, 1),
        Number::F64 => (Element::F64, 1),
    };
    Reading::Elements(element, count)
}

fn of_format(format: Format) -> Reading {
    match format {
        Format::Number(number) => of_number(number),
        Format::I8 => Reading::Elements(Element::I8, 1),
        Format::U8 => Reading::Elements(Element::U8, 1),
        Format::E4M3 => Reading::Elements(Element::E4M3, 1),
        Format::E5M2 => Reading::Elements(Element::E5M2, 1),
    }
}

/// How the accumulators of a matrix instruction of one warp are displayed.
fn of_sums(matrix: Matrix) -> Reading {
    match matrix {
        Matrix::F16F16 => Reading::Elements(Element::F16, 2),
        Matrix::F64 | Matrix::F64K4 | Matrix::F64K8 | Matrix::F64K16 => Reading::Elements(Element::F64, 1),
        Matrix::I8I32 | Matrix::U8I32 | Matrix::S4I32 | Matrix::U4I32 => Reading::Elements(Element::I32, 1),
        Matrix::F16F32 | Matrix::Bf16F32 | Matrix::Tf32F32 | Matrix::E4M3F32 | Matrix::E5M2F32 | Matrix::Scaled(..) => {
            Reading::Elements(Element::F32, 1)
        }
    }
}

/// How each register of a program is displayed.
pub(super) struct Readings<'p> {
    program: &'p Program,
    known: Vec<Option<Reading>>,
}

impl<'p> Readings<'p> {
    /// How the registers of a program are read.
    pub(super) fn new(program: &'p Program) -> Readings<'p> {
        let mut readings = Readings { program, known: vec![None; program.widths.len()] };
        // The second walk propagates the types around loops.
        readings.walk(&program.body);
        readings.walk(&program.body);
        readings
    }

    /// How a register is read.
    pub(super) fn of(&self, register: Register) -> Reading {
        let width = self.program.width(register);
        if width == Width::Predicate {
            return Reading::Predicate;
        }
        self.known[register.index()].unwrap_or(Reading::Bits(width.bits()))
    }

    fn set(&mut self, register: Register, reading: Option<Reading>) {
        let known = &mut self.known[register.index()];
        *known = known.or(reading);
    }

    fn same(&mut self, from: Register, to: Register) {
        let reading = self.known[from.index()];
        self.set(to, reading);
    }

    fn walk(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Instruction(instruction) => self.instruction(instruction),
                Step::Loop(looped) => {
                    self.set(looped.index, Some(of_number(Number::I32)));
                    for carried in &looped.carried {
                        self.same(carried.initial, carried.current);
                        self.same(carried.next, carried.current);
                    }
                    self.walk(&looped.body);
                    for carried in &looped.carried {
                        self.same(carried.next, carried.result);
                        self.same(carried.next, carried.initial);
                    }
                }
                Step::Branch(branch) => {
                    self.walk(&branch.then);
                    self.walk(&branch.otherwise);
                    for chosen in &branch.chosen {
                        self.same(chosen.then, chosen.result);
                        self.same(chosen.otherwise, chosen.result);
                    }
                }
            }
        }
    }

    /// As many elements of a type as a register of this width holds.
    fn filled(&self, element: Element, register: Register) -> Option<Reading> {
        let bits = self.program.width(register).bits();
        Some(Reading::Elements(element, (bits / element.bits()).max(1)))
    }

    fn instruction(&mut self, instruction: &Instruction) {
        let loaded = |access: &crate::program::memory::Access| {
            let element = self.program.buffer(access.buffer).element;
            Some(Reading::Elements(element, (access.bits / element.bits()).max(1)))
        };
        let input = |at: usize| instruction.inputs.get(at).and_then(|input| self.known[input.index()]);
        let given = match &instruction.operation {
            Operation::Special(Special::Thread | Special::Lane | Special::Block(_) | Special::Blocks(_))
            | Operation::Special(Special::ClusterRank)
            | Operation::Ballot
            | Operation::Claim
            | Operation::CountBlock
            | Operation::Unary(Unary::CountOnes | Unary::CountLeadingZeros, _) => Some(of_number(Number::U32)),
            Operation::Scalar(at) => match &self.program.scalars[*at] {
                Scalar::Given { element, .. } => Some(Reading::Elements(*element, 1)),
                Scalar::Size { bits: 64, .. } => Some(of_number(Number::I64)),
                _ => Some(of_number(Number::I32)),
            },
            Operation::Binary(Binary::MultiplyWide, number) => {
                let wide = if *number == Number::U32 { Number::U64 } else { Number::I64 };
                Some(of_number(wide))
            }
            Operation::MultiplyAddWide(_) => Some(of_number(Number::I64)),
            Operation::Unary(_, number)
            | Operation::Binary(_, number)
            | Operation::MultiplyAdd(number)
            | Operation::Atomic(_, number, _) => Some(of_number(*number)),
            Operation::Select => input(1).or(input(2)),
            Operation::Convert { to, .. } => Some(of_format(*to)),
            Operation::ConvertPair { to: Format::Number(Number::F16 | Number::F16x2) }
            | Operation::WidenPair { .. } => Some(of_number(Number::F16x2)),
            Operation::ConvertPair { to: Format::Number(_) } => Some(of_number(Number::Bf16x2)),
            Operation::ConvertPair { to } => of_format(*to).element().map(|element| Reading::Elements(element, 2)),
            Operation::Load(access) | Operation::RemoteLoad(access) => loaded(access),
            Operation::LoadMatrix { access, .. } => {
                let element = self.program.buffer(access.buffer).element;
                Some(Reading::Elements(element, (32 / element.bits()).max(1)))
            }
            Operation::Multiply(matrix) => Some(of_sums(*matrix)),
            Operation::Wgmma { operands, .. } => {
                let sums = if operands.is_integer() { Number::I32 } else { Number::F32 };
                Some(of_number(sums))
            }
            Operation::Shuffle(_) => input(0),
            _ => None,
        };
        match &instruction.operation {
            Operation::Pack | Operation::Unpack | Operation::Permute(_) => {
                if let Some(element) = input(0).and_then(Reading::element) {
                    for output in &instruction.outputs {
                        let reading = self.filled(element, *output);
                        self.set(*output, reading);
                    }
                }
            }
            Operation::Move => {
                for (input, output) in instruction.inputs.iter().zip(&instruction.outputs) {
                    self.same(*input, *output);
                }
            }
            _ => instruction.outputs.iter().for_each(|output| self.set(*output, given)),
        }
        self.taken(instruction);
    }

    /// Records the types that an instruction implies for its operands.
    fn taken(&mut self, instruction: &Instruction) {
        let reading = match &instruction.operation {
            Operation::Unary(_, number)
            | Operation::Binary(_, number)
            | Operation::MultiplyAdd(number)
            | Operation::Compare(_, number) => of_number(*number),
            Operation::Multiply(matrix) => {
                let [a, b, c] = matrix.registers();
                for input in &instruction.inputs[a + b..a + b + c] {
                    self.set(*input, Some(of_sums(*matrix)));
                }
                return;
            }
            _ => return,
        };
        for input in &instruction.inputs {
            self.set(*input, Some(reading));
        }
    }
}

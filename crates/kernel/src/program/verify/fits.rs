//! The number and the widths of the registers of an operation.

use tilewright_layout::atoms::Major;

use super::Checker;
use crate::program::WARP_LANES;
use crate::program::memory::{Access, Space};
use crate::program::operation::{Binary, Format, Number, Operation, Shuffle, Unary};
use crate::program::register::Width;

/// A wait leaves fewer wgmma groups than this in flight (PTX ISA, `wgmma.wait_group`).
const GROUPS: u32 = 8;

fn wide(number: Number) -> Option<Width> {
    Width::of_bits(number.bits())
}

fn register_of(format: Format) -> Option<Width> {
    match format {
        Format::Number(number) => wide(number),
        Format::I8 | Format::U8 | Format::E4M3 | Format::E5M2 => Some(Width::Bits16),
    }
}

impl Checker<'_> {
    /// If an access is to this space, the widths of its address and of its pieces.
    fn access(&self, access: &Access, space: Space) -> Option<(Vec<Width>, Vec<Width>)> {
        let buffer = self.program.buffers.get(access.buffer.index())?;
        let possible = matches!(access.bits, 8 | 16 | 32 | 64)
            && matches!(access.count, 1 | 2 | 4)
            && access.bits * access.count <= 128
            && buffer.space == space;
        let address = if space == Space::Global { Width::Bits64 } else { Width::Bits32 };
        let pieces = vec![Width::of_bits(access.bits.max(16))?; access.count as usize];
        possible.then(|| (if access.addressed { vec![address] } else { Vec::new() }, pieces))
    }

    fn either(&self, access: &Access) -> Option<(Vec<Width>, Vec<Width>)> {
        self.access(access, Space::Global).or_else(|| self.access(access, Space::Shared))
    }

    /// The width of the address of matrices of 16 bits, and a register for each matrix.
    fn matrices(&self, access: &Access) -> Option<(Vec<Width>, Vec<Width>)> {
        let buffer = self.program.buffers.get(access.buffer.index())?;
        let address = if access.addressed { vec![Width::Bits32] } else { Vec::new() };
        (buffer.space == Space::Shared).then(|| (address, vec![Width::Bits32]))
    }

    /// The width of the address of an object in shared memory.
    fn object(&self, access: &Access) -> Option<Vec<Width>> {
        self.matrices(access).map(|(address, _)| address)
    }

    /// Whether registers of these widths match an operation; None if the operation itself is
    /// invalid.
    pub(super) fn fits(&self, operation: &Operation, inputs: &[Width], outputs: &[Width]) -> Option<bool> {
        use Width::{Bits16, Bits32, Bits64, Predicate};
        let exactly = |wanted: &[Width], given: &[Width]| inputs == wanted && outputs == given;
        let narrow = |format: Format| matches!(format, Format::E4M3 | Format::E5M2);
        let paired = |format: Format| matches!(format, Format::Number(Number::F16x2 | Number::Bf16x2));
        Some(match operation {
            Operation::Constant(_) => inputs.is_empty() && outputs.len() == 1,
            Operation::Special(_) => exactly(&[], &[Bits32]),
            Operation::Scalar(index) => exactly(&[], &[Width::of_bits(self.program.scalars.get(*index)?.bits())?]),
            Operation::Unary(Unary::Not, number) => {
                exactly(&[Predicate], &[Predicate]) || exactly(&[wide(*number)?], &[wide(*number)?])
            }
            Operation::Unary(Unary::CountOnes | Unary::CountLeadingZeros, number) => {
                !number.is_float() && number.bits() >= 32 && exactly(&[wide(*number)?], &[Bits32])
            }
            Operation::Unary(Unary::Negate | Unary::Magnitude, number) => exactly(&[wide(*number)?], &[wide(*number)?]),
            Operation::Unary(Unary::RoundTf32, number) => *number == Number::F32 && exactly(&[Bits32], &[Bits32]),
            Operation::Unary(_, number) => number.is_float() && exactly(&[wide(*number)?], &[wide(*number)?]),
            Operation::Binary(Binary::And | Binary::Or | Binary::Xor, number) => {
                let width = wide(*number)?;
                exactly(&[Predicate; 2], &[Predicate]) || exactly(&[width; 2], &[width])
            }
            Operation::Binary(Binary::ShiftLeft | Binary::ShiftRight, number) => {
                !number.is_float() && exactly(&[wide(*number)?, Bits32], &[wide(*number)?])
            }
            Operation::Binary(Binary::MultiplyWide, number) => {
                matches!(number, Number::I32 | Number::U32) && exactly(&[Bits32; 2], &[Bits64])
            }
            Operation::Binary(Binary::MultiplyHigh | Binary::Remainder, number) => {
                !number.is_float() && exactly(&[wide(*number)?; 2], &[wide(*number)?])
            }
            Operation::Binary(_, number) => exactly(&[wide(*number)?; 2], &[wide(*number)?]),
            Operation::MultiplyAdd(number) => exactly(&[wide(*number)?; 3], &[wide(*number)?]),
            Operation::MultiplyAddWide(number) => {
                matches!(number, Number::I32 | Number::U32) && exactly(&[Bits32, Bits32, Bits64], &[Bits64])
            }
            Operation::Compare(_, number) => {
                !matches!(number, Number::F16x2 | Number::Bf16x2) && exactly(&[wide(*number)?; 2], &[Predicate])
            }
            Operation::Select => {
                let [condition, a, b] = inputs else { return None };
                *condition == Predicate && a == b && outputs == [*a]
            }
            Operation::Convert { from, to, .. } => {
                let possible = !narrow(*from) && !narrow(*to) && !paired(*from) && !paired(*to);
                possible && exactly(&[register_of(*from)?], &[register_of(*to)?])
            }
            Operation::ConvertPair { to } => {
                let given = match to {
                    Format::E4M3 | Format::E5M2 => Bits16,
                    Format::Number(Number::F16 | Number::Bf16) => Bits32,
                    _ => return None,
                };
                exactly(&[Bits32; 2], &[given])
            }
            Operation::WidenPair { from } => narrow(*from) && exactly(&[Bits16], &[Bits32]),
            Operation::Pack => packs(inputs, outputs)?,
            Operation::Unpack => packs(outputs, inputs)?,
            Operation::Permute(_) => exactly(&[Bits32; 2], &[Bits32]),
            Operation::FunnelShiftLeft | Operation::FunnelShiftRight | Operation::Logic(_) => {
                exactly(&[Bits32; 3], &[Bits32])
            }
            Operation::Shuffle(Shuffle::Index) => exactly(&[Bits32; 2], &[Bits32]),
            Operation::Shuffle(Shuffle::Butterfly(lanes) | Shuffle::Up(lanes) | Shuffle::Down(lanes)) => {
                *lanes < WARP_LANES as u32 && exactly(&[Bits32], &[Bits32])
            }
            Operation::Ballot => exactly(&[Predicate], &[Bits32]),
            Operation::Load(access) => {
                let (address, pieces) = self.either(access)?;
                exactly(&address, &pieces)
            }
            Operation::Store(access) => {
                let (address, pieces) = self.either(access)?;
                exactly(&[address, pieces].concat(), &[])
            }
            Operation::Atomic(atomic, number, access) => {
                use crate::program::operation::AtomicOperation::CompareExchange;
                let (address, _) = self.either(access)?;
                let values = if *atomic == CompareExchange { 2 } else { 1 };
                let whole = access.count == 1 && access.bits == number.bits();
                whole && exactly(&[address, vec![wide(*number)?; values]].concat(), &[wide(*number)?])
            }
            Operation::Reduce(atomic, number, access) => {
                use crate::program::operation::AtomicOperation::{CompareExchange, Exchange};
                let (address, pieces) = self.either(access)?;
                let whole = access.bits == number.bits() && !matches!(atomic, CompareExchange | Exchange);
                whole && exactly(&[address, pieces].concat(), &[])
            }
            Operation::AwaitTurn { access } => {
                let (address, _) = self.access(access, Space::Global)?;
                let word = access.count == 1 && access.bits == 32;
                word && exactly(&[address, vec![Bits32]].concat(), &[])
            }
            Operation::PassTurn { access } => {
                let (address, _) = self.access(access, Space::Global)?;
                access.count == 1 && access.bits == 32 && exactly(&address, &[])
            }
            Operation::Claim | Operation::CountBlock => exactly(&[Bits32; 2], &[Bits32]),
            Operation::CopyAsync { to, from, or_zeros } => {
                let (shared, _) = self.access(to, Space::Shared)?;
                let (global, _) = self.access(from, Space::Global)?;
                let predicate = if *or_zeros { vec![Predicate] } else { Vec::new() };
                let same = to.bytes() == from.bytes() && matches!(to.bytes(), 4 | 8 | 16);
                same && exactly(&[shared, global, predicate].concat(), &[])
            }
            Operation::CommitAsync
            | Operation::WaitAsync(_)
            | Operation::Barrier
            | Operation::WarpBarrier
            | Operation::ClusterArrive
            | Operation::ClusterWait
            | Operation::WaitLaunches
            | Operation::LaunchNext
            | Operation::Fence(_)
            | Operation::CommitBulk
            | Operation::WaitBulk { .. }
            | Operation::FenceRegisters
            | Operation::CommitMultiply
            | Operation::Trap => exactly(&[], &[]),
            Operation::WaitMultiply(groups) => *groups < GROUPS && exactly(&[], &[]),
            Operation::Elect => exactly(&[], &[Predicate]),
            Operation::SetRegisters { count, .. } => {
                exactly(&[], &[]) && (24..=256).contains(count) && count.is_multiple_of(8)
            }
            Operation::NamedBarrier { number, threads } | Operation::NamedArrive { number, threads } => {
                exactly(&[], &[]) && (1..16).contains(number) && *threads > 0 && threads % WARP_LANES as u32 == 0
            }
            Operation::LoadMatrix { access, .. } => {
                let (address, _) = self.matrices(access)?;
                let count = outputs.len();
                matches!(count, 1 | 2 | 4) && exactly(&address, &vec![Bits32; count])
            }
            Operation::StoreMatrix { access, .. } => {
                let (address, _) = self.matrices(access)?;
                let count = inputs.len().checked_sub(address.len())?;
                matches!(count, 1 | 2 | 4) && exactly(&[address, vec![Bits32; count]].concat(), &[])
            }
            Operation::Multiply(matrix) => {
                let [a, b, c] = matrix.registers();
                let width = if matrix.is_double() { Bits64 } else { Bits32 };
                // The scales of an instruction are in one register.
                let aligned = match matrix {
                    crate::program::operation::Matrix::Scaled(format, byte) => {
                        *byte < 4 && u32::from(*byte).is_multiple_of(format.scales())
                    }
                    _ => true,
                };
                aligned && exactly(&vec![width; a + b + c + matrix.scales()], &vec![width; c])
            }
            Operation::Move => !inputs.is_empty() && inputs == outputs,
            Operation::Wgmma { operands, columns, a, b, .. } => {
                let first = match a {
                    Some(a) => self.object(&a.access)?,
                    None => vec![Bits32; crate::program::operation::OPERAND_REGISTERS],
                };
                let addresses = [first, self.object(&b.access)?].concat();
                let sums = vec![Bits32; *columns as usize / 2];
                let turned = a.iter().chain([b]).any(|operand| operand.major == Major::MN) && operands.bytes() != 2;
                let possible = operands.has(*columns) && !turned;
                possible && exactly(&[addresses, sums.clone()].concat(), &sums)
            }
            Operation::BarrierInit { access, count } => {
                (1..1 << 20).contains(count) && exactly(&self.object(access)?, &[])
            }
            Operation::BarrierArrive { access, expect } => *expect < 1 << 20 && exactly(&self.object(access)?, &[]),
            Operation::BarrierWait { access } => exactly(&[self.object(access)?, vec![Bits32]].concat(), &[]),
            Operation::RemoteArrive { access, .. } => exactly(&[self.object(access)?, vec![Bits32]].concat(), &[]),
            Operation::RemoteLoad(access) => {
                let (address, pieces) = self.access(access, Space::Shared)?;
                exactly(&[address, vec![Bits32]].concat(), &pieces)
            }
            Operation::RemoteStore(access) => {
                let (address, pieces) = self.access(access, Space::Shared)?;
                exactly(&[address, vec![Bits32], pieces].concat(), &[])
            }
            Operation::RemoteReduce(atomic, number, access) => {
                let (address, _) = self.access(access, Space::Shared)?;
                let one = access.count == 1 && access.bits == number.bits();
                one && atomic.reaches_other_blocks(*number)
                    && exactly(&[address, vec![Bits32, wide(*number)?]].concat(), &[])
            }
            Operation::BulkLoad { map, to, barrier, multicast } => {
                let dimensions = self.program.maps.get(map.index())?.dimensions.len();
                let addresses = [self.object(to)?, self.object(barrier)?].concat();
                exactly(&[addresses, vec![Bits32; dimensions + usize::from(*multicast)]].concat(), &[])
            }
            Operation::BulkSend { to, barrier, from, bytes } => {
                let addresses = [self.object(to)?, self.object(barrier)?, self.object(from)?].concat();
                let possible = *bytes > 0 && bytes.is_multiple_of(16) && *bytes < 1 << 20;
                possible && exactly(&[addresses, vec![Bits32]].concat(), &[])
            }
            Operation::BulkStore { map, from } => {
                let dimensions = self.program.maps.get(map.index())?.dimensions.len();
                exactly(&[self.object(from)?, vec![Bits32; dimensions]].concat(), &[])
            }
        })
    }
}

/// Whether the parts together have the width of the whole.
fn packs(parts: &[Width], whole: &[Width]) -> Option<bool> {
    let (first, [whole]) = (parts.first()?, whole) else { return None };
    let alike = parts.iter().all(|part| part == first);
    let bits: u32 = parts.iter().map(|part| part.bits()).sum();
    Some(alike && parts.len() > 1 && matches!(first.bits(), 16 | 32) && bits == whole.bits())
}

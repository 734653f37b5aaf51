//! The rules of programs.
//!
//! Law: a program that passes names only registers, buffers, scalars and maps that it has; writes
//! each register once, before it is read, and reads it only inside the body in which it was
//! written; and each instruction has as many registers of such widths as its operation says.
//! Whoever reads a program after that may rely on it.

use tilewright_atoms::Major;

use super::memory::{Access, Space, TensorMap};
use super::operation::{Binary, Format, Number, Operation, Shuffle, Unary};
use super::register::{Register, Width};
use super::{Branch, Instruction, Loop, Program, SourceId, Step};

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Which rule, and what breaks it.
    pub what: String,
    /// The statement; none for what stands outside all of them.
    pub source: Option<SourceId>,
}

/// How deep loops and conditions may stand in one another.
const MAX_DEPTH: usize = 64;

impl Program {
    /// Checks the rules of programs.
    ///
    /// Errors: the first rule that is broken.
    pub fn verify(&self) -> Result<(), Malformed> {
        let mut checker = Checker { program: self, readable: vec![false; self.widths.len()], written: Vec::new() };
        checker.written.resize(self.widths.len(), false);
        checker.tables()?;
        checker.body(&self.body, 0).map(|_| ())
    }
}

struct Checker<'a> {
    program: &'a Program,
    /// Which registers may be read here.
    readable: Vec<bool>,
    /// Which registers were written anywhere.
    written: Vec<bool>,
}

fn malformed<T>(what: impl Into<String>, source: Option<SourceId>) -> Result<T, Malformed> {
    Err(Malformed { what: what.into(), source })
}

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
    fn tables(&self) -> Result<(), Malformed> {
        let program = self.program;
        if !(1..=1024).contains(&program.threads) {
            return malformed(format!("{} threads in a block, of 1 to 1024", program.threads), None);
        }
        let [x, y, z] = program.cluster.map(u64::from);
        if program.cluster.contains(&0) || x.saturating_mul(y).saturating_mul(z) > 16 {
            return malformed(format!("a cluster of {x} x {y} x {z} blocks, of 1 to 16"), None);
        }
        let mut shared = false;
        for buffer in &program.buffers {
            let name = &buffer.name;
            if !buffer.alignment.is_power_of_two() {
                return malformed(format!("`{name}` is aligned to {} bytes, no power of two", buffer.alignment), None);
            }
            if buffer.start % buffer.alignment != 0 {
                return malformed(format!("`{name}` begins at {}, no multiple of its alignment", buffer.start), None);
            }
            if shared && buffer.space == Space::Global {
                return malformed(format!("the tensor `{name}` comes after a shared array"), None);
            }
            shared |= buffer.space == Space::Shared;
        }
        program.maps.iter().try_for_each(|map| self.map(map))
    }

    fn map(&self, map: &TensorMap) -> Result<(), Malformed> {
        let Some(buffer) = self.program.buffers.get(map.buffer.index()) else {
            return malformed("a map of a tensor that does not exist", None);
        };
        let bytes = buffer.element.bytes();
        let boxed: Vec<u32> = map.dimensions.iter().map(|dimension| dimension.boxed).collect();
        if buffer.space != Space::Global || !(1..=5).contains(&boxed.len()) {
            return malformed("a map is of a tensor in global memory, with one to five dimensions", None);
        }
        if boxed.iter().any(|extent| !(1..=256).contains(extent)) || !(boxed[0] * bytes).is_multiple_of(16) {
            return malformed(format!("a map with boxes of {boxed:?} elements of {bytes} bytes"), None);
        }
        let line = 16 * map.swizzle.units();
        if map.swizzle != tilewright_atoms::SwizzleMode::None && i64::from(boxed[0] * bytes) != line {
            return malformed(format!("a map whose boxes have lines of other than {line} bytes"), None);
        }
        Ok(())
    }

    fn width(&self, register: Register, source: SourceId) -> Result<Width, Malformed> {
        match self.program.widths.get(register.index()) {
            Some(width) => Ok(*width),
            None => malformed(format!("{register} does not exist"), Some(source)),
        }
    }

    fn read(&self, register: Register, source: SourceId) -> Result<Width, Malformed> {
        let width = self.width(register, source)?;
        if !self.readable[register.index()] {
            return malformed(format!("{register} is read where nothing wrote it"), Some(source));
        }
        Ok(width)
    }

    fn write(&mut self, register: Register, scope: &mut Vec<Register>, source: SourceId) -> Result<Width, Malformed> {
        let width = self.width(register, source)?;
        if std::mem::replace(&mut self.written[register.index()], true) {
            return malformed(format!("{register} is written twice"), Some(source));
        }
        self.readable[register.index()] = true;
        scope.push(register);
        Ok(width)
    }

    fn expect(&self, register: Register, width: Width, source: SourceId) -> Result<(), Malformed> {
        let found = self.read(register, source)?;
        if found != width {
            return malformed(
                format!("{register} has {} bits instead of {}", found.bits(), width.bits()),
                Some(source),
            );
        }
        Ok(())
    }

    fn same(&self, registers: &[Register], source: SourceId) -> Result<(), Malformed> {
        let Some(first) = registers.first() else { return Ok(()) };
        let width = self.width(*first, source)?;
        for register in registers {
            let found = self.width(*register, source)?;
            if found != width {
                return malformed(format!("{first} and {register} differ in width"), Some(source));
            }
        }
        Ok(())
    }

    fn body(&mut self, steps: &[Step], depth: usize) -> Result<Vec<Register>, Malformed> {
        self.scoped(steps, depth, Vec::new())
    }

    /// Checks a body; what it wrote remains readable, and is given back.
    fn scoped(&mut self, steps: &[Step], depth: usize, mut scope: Vec<Register>) -> Result<Vec<Register>, Malformed> {
        if depth > MAX_DEPTH {
            return malformed(format!("more than {MAX_DEPTH} loops and conditions in one another"), None);
        }
        for step in steps {
            match step {
                Step::Instruction(instruction) => self.instruction(instruction, &mut scope)?,
                Step::Loop(turns) => self.turns(turns, depth, &mut scope)?,
                Step::Branch(branch) => self.branch(branch, depth, &mut scope)?,
            }
        }
        Ok(scope)
    }

    fn turns(&mut self, turns: &Loop, depth: usize, scope: &mut Vec<Register>) -> Result<(), Malformed> {
        let source = turns.source;
        self.source(source)?;
        self.expect(turns.from, Width::Bits32, source)?;
        self.expect(turns.to, Width::Bits32, source)?;
        if turns.step == 0 {
            return malformed("a loop with step 0", Some(source));
        }
        let mut inner = Vec::new();
        if self.write(turns.index, &mut inner, source)? != Width::Bits32 {
            return malformed("a loop variable that has not 32 bits", Some(source));
        }
        for carried in &turns.carried {
            self.read(carried.initial, source)?;
            self.write(carried.current, &mut inner, source)?;
            self.same(&[carried.initial, carried.current, carried.next, carried.result], source)?;
        }
        let inner = self.scoped(&turns.body, depth + 1, inner)?;
        for carried in &turns.carried {
            self.read(carried.next, source)?;
        }
        if let Some(until) = turns.until {
            self.expect(until, Width::Predicate, source)?;
        }
        self.leave(&inner);
        for carried in &turns.carried {
            self.write(carried.result, scope, source)?;
        }
        Ok(())
    }

    fn branch(&mut self, branch: &Branch, depth: usize, scope: &mut Vec<Register>) -> Result<(), Malformed> {
        let source = branch.source;
        self.source(source)?;
        self.expect(branch.condition, Width::Predicate, source)?;
        let then = self.body(&branch.then, depth + 1)?;
        for chosen in &branch.chosen {
            self.read(chosen.then, source)?;
            self.same(&[chosen.then, chosen.otherwise, chosen.result], source)?;
        }
        self.leave(&then);
        let otherwise = self.body(&branch.otherwise, depth + 1)?;
        for chosen in &branch.chosen {
            self.read(chosen.otherwise, source)?;
        }
        self.leave(&otherwise);
        for chosen in &branch.chosen {
            self.write(chosen.result, scope, source)?;
        }
        Ok(())
    }

    /// What a body wrote can no longer be read.
    fn leave(&mut self, scope: &[Register]) {
        for register in scope {
            self.readable[register.index()] = false;
        }
    }

    fn source(&self, source: SourceId) -> Result<(), Malformed> {
        match self.program.sources.get(source.index()) {
            Some(_) => Ok(()),
            None => malformed(format!("there is no statement {}", source.index()), None),
        }
    }

    fn instruction(&mut self, instruction: &Instruction, scope: &mut Vec<Register>) -> Result<(), Malformed> {
        let source = instruction.source;
        self.source(source)?;
        let operation = &instruction.operation;
        if let Some(guard) = instruction.guard {
            self.expect(guard, Width::Predicate, source)?;
            let allowed = matches!(
                operation,
                Operation::Load(_)
                    | Operation::Store(_)
                    | Operation::RemoteLoad(_)
                    | Operation::RemoteStore(_)
                    | Operation::RemoteReduce(..)
                    | Operation::RemoteArrive { .. }
                    | Operation::BulkSend { .. }
                    | Operation::Atomic(..)
                    | Operation::Reduce(..)
                    | Operation::Claim
                    | Operation::CopyAsync { .. }
                    | Operation::BarrierArrive { .. }
                    | Operation::BulkLoad { .. }
                    | Operation::BulkStore { .. }
            );
            if !allowed {
                return malformed("a predicate on an instruction that has none", Some(source));
            }
        }
        let inputs: Vec<Width> =
            instruction.inputs.iter().map(|input| self.read(*input, source)).collect::<Result<_, _>>()?;
        let mut outputs = Vec::new();
        for output in &instruction.outputs {
            outputs.push(self.write(*output, scope, source)?);
        }
        let unfit = || {
            let bits = |widths: &[Width]| widths.iter().map(|width| width.bits()).collect::<Vec<_>>();
            let (inputs, outputs) = (bits(&inputs), bits(&outputs));
            let what = format!("{operation:?} with inputs of {inputs:?} bits and outputs of {outputs:?}");
            Malformed { what, source: Some(source) }
        };
        match self.fits(operation, &inputs, &outputs) {
            Some(true) => Ok(()),
            _ => Err(unfit()),
        }
    }

    /// Whether an access is one of a space; the widths of its address and of its pieces.
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

    /// Where matrices of 16 bits are: the width of the address, and a register for each.
    fn matrices(&self, access: &Access) -> Option<(Vec<Width>, Vec<Width>)> {
        let buffer = self.program.buffers.get(access.buffer.index())?;
        let address = if access.addressed { vec![Width::Bits32] } else { Vec::new() };
        (buffer.space == Space::Shared).then(|| (address, vec![Width::Bits32]))
    }

    /// The width of the address of something in shared memory.
    fn object(&self, access: &Access) -> Option<Vec<Width>> {
        self.matrices(access).map(|(address, _)| address)
    }

    /// Whether registers of these widths fit an operation; none where it is no operation at all.
    fn fits(&self, operation: &Operation, inputs: &[Width], outputs: &[Width]) -> Option<bool> {
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
            Operation::Shuffle(_) => exactly(&[Bits32], &[Bits32]),
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
                use super::operation::AtomicOperation::CompareExchange;
                let (address, _) = self.either(access)?;
                let values = if *atomic == CompareExchange { 2 } else { 1 };
                let whole = access.count == 1 && access.bits == number.bits();
                whole && exactly(&[address, vec![wide(*number)?; values]].concat(), &[wide(*number)?])
            }
            Operation::Reduce(atomic, number, access) => {
                use super::operation::AtomicOperation::{CompareExchange, Exchange};
                let (address, pieces) = self.either(access)?;
                let whole = access.bits == number.bits() && !matches!(atomic, CompareExchange | Exchange);
                whole && exactly(&[address, pieces].concat(), &[])
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
            | Operation::WaitMultiply(_)
            | Operation::Trap => exactly(&[], &[]),
            Operation::Elect => exactly(&[], &[Predicate]),
            Operation::SetRegisters { count, .. } => {
                exactly(&[], &[]) && (24..=256).contains(count) && count.is_multiple_of(8)
            }
            Operation::NamedBarrier { number, threads } | Operation::NamedArrive { number, threads } => {
                exactly(&[], &[]) && (1..16).contains(number) && *threads > 0 && threads % 32 == 0
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
                let width = if *matrix == super::operation::Matrix::F64 { Bits64 } else { Bits32 };
                exactly(&vec![width; a + b + c], &vec![width; c])
            }
            Operation::Move => !inputs.is_empty() && inputs == outputs,
            Operation::MultiplyGroup { factors, columns, a, b, .. } => {
                let first = match a {
                    Some(a) => self.object(&a.access)?,
                    None => vec![Bits32; super::operation::FACTOR_REGISTERS],
                };
                let addresses = [first, self.object(&b.access)?].concat();
                let sums = vec![Bits32; *columns as usize / 2];
                let turned = a.iter().chain([b]).any(|factor| factor.major == Major::MN) && factors.bytes() != 2;
                let possible = factors.has(*columns) && !turned;
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

/// Whether registers side by side make one.
fn packs(parts: &[Width], whole: &[Width]) -> Option<bool> {
    let (first, [whole]) = (parts.first()?, whole) else { return None };
    let alike = parts.iter().all(|part| part == first);
    let bits: u32 = parts.iter().map(|part| part.bits()).sum();
    Some(alike && parts.len() > 1 && matches!(first.bits(), 16 | 32) && bits == whole.bits())
}

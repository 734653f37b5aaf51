//! Verifies that a program is well-formed.
//!
//! Law: a verified program names only registers, buffers, scalars and maps that it has. It writes
//! each register once, before it is read, and reads it only inside the body in which it was
//! written. Each instruction has the number and the widths of registers that its operation
//! requires. Every later pass may rely on this.

mod fits;

use super::memory::{Space, TensorMap};
use super::operation::Operation;
use super::register::{Register, Width};
use super::{Branch, Instruction, Loop, Program, SourceId, Step};

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The rule, and what breaks it.
    pub what: String,
    /// The statement; None for parts outside of statements.
    pub source: Option<SourceId>,
}

/// The deepest nesting of loops and conditions.
const MAX_DEPTH: usize = 64;

impl Program {
    /// Checks the rules of programs.
    ///
    /// Errors: the first violated rule.
    pub fn verify(&self) -> Result<(), Malformed> {
        let mut checker = Checker { program: self, readable: vec![false; self.widths.len()], written: Vec::new() };
        checker.written.resize(self.widths.len(), false);
        checker.tables()?;
        checker.body(&self.body, 0).map(|_| ())
    }
}

struct Checker<'a> {
    program: &'a Program,
    /// The registers that may be read here.
    readable: Vec<bool>,
    /// The registers that have been written anywhere.
    written: Vec<bool>,
}

fn malformed<T>(what: impl Into<String>, source: Option<SourceId>) -> Result<T, Malformed> {
    Err(Malformed { what: what.into(), source })
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
        if map.swizzle != tilewright_layout::atoms::SwizzleMode::None && i64::from(boxed[0] * bytes) != line {
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

    /// Checks a body. Registers that it wrote remain readable, and are returned.
    fn scoped(&mut self, steps: &[Step], depth: usize, mut scope: Vec<Register>) -> Result<Vec<Register>, Malformed> {
        if depth > MAX_DEPTH {
            return malformed(format!("more than {MAX_DEPTH} loops and conditions in one another"), None);
        }
        for step in steps {
            match step {
                Step::Instruction(instruction) => self.instruction(instruction, &mut scope)?,
                Step::Loop(looped) => self.iterations(looped, depth, &mut scope)?,
                Step::Branch(branch) => self.branch(branch, depth, &mut scope)?,
            }
        }
        Ok(scope)
    }

    fn iterations(&mut self, looped: &Loop, depth: usize, scope: &mut Vec<Register>) -> Result<(), Malformed> {
        let source = looped.source;
        self.source(source)?;
        self.expect(looped.from, Width::Bits32, source)?;
        self.expect(looped.to, Width::Bits32, source)?;
        if looped.step == 0 {
            return malformed("a loop with step 0", Some(source));
        }
        let mut inner = Vec::new();
        if self.write(looped.index, &mut inner, source)? != Width::Bits32 {
            return malformed("a loop variable that has not 32 bits", Some(source));
        }
        for carried in &looped.carried {
            self.read(carried.initial, source)?;
            self.write(carried.current, &mut inner, source)?;
            self.same(&[carried.initial, carried.current, carried.next, carried.result], source)?;
        }
        let inner = self.scoped(&looped.body, depth + 1, inner)?;
        for carried in &looped.carried {
            self.read(carried.next, source)?;
        }
        if let Some(until) = looped.until {
            self.expect(until, Width::Predicate, source)?;
        }
        self.leave(&inner);
        for carried in &looped.carried {
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

    /// Registers written by a body can no longer be read.
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
                    | Operation::AwaitTurn { .. }
                    | Operation::PassTurn { .. }
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
}

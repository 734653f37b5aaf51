//! Prints bodies and operands.

use std::collections::HashMap;

use super::{Feature, PtxError, Target};
use crate::program::memory::{Access, Space};
use crate::program::operation::{Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::{Branch, Instruction, Loop, Program, SourceId, Step};

pub(super) struct Writer<'a> {
    pub(super) program: &'a Program,
    pub(super) target: Target,
    /// The bits of the registers that are constants.
    pub(super) constants: HashMap<Register, u64>,
    /// Constants that some instruction needs in a register.
    pub(super) wanted: Vec<Register>,
    pub(super) body: String,
    /// The number of temporary registers, by width.
    pub(super) further: [u32; Width::ALL.len()],
    labels: u32,
    /// The lowest version of the language that the text needs, as major and minor number.
    pub(super) version: (u32, u32),
    /// Whether an instruction is specific to a family of cards.
    pub(super) of_family: bool,
    pub(super) uses_shared: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(program: &'a Program, target: Target) -> Writer<'a> {
        let mut constants = HashMap::new();
        gather(&program.body, &mut constants);
        Writer {
            program,
            target,
            constants,
            wanted: Vec::new(),
            body: String::new(),
            further: [0; Width::ALL.len()],
            labels: 0,
            version: target.version(),
            of_family: false,
            uses_shared: false,
        }
    }

    /// Records that the text needs at least this version of the language.
    pub(super) fn needs(&mut self, major: u32, minor: u32) {
        self.version = self.version.max((major, minor));
    }

    /// Refuses an instruction that the target lacks.
    pub(super) fn has(&mut self, feature: Feature, what: &str, source: SourceId) -> Result<(), PtxError> {
        if self.target.has(feature) {
            self.of_family |= feature.is_of_family();
            return Ok(());
        }
        let statement = self.program.source(source).to_string();
        Err(PtxError::Target { what: what.to_string(), target: self.target, feature, statement })
    }

    /// The name of the module's counters.
    pub(super) fn counts(&self) -> String {
        format!("{}_counts", self.program.name)
    }

    /// Appends a line.
    pub(super) fn line(&mut self, text: &str) {
        self.body.push_str("    ");
        self.body.push_str(text);
        self.body.push('\n');
    }

    /// Appends a line that is predicated on `guard`, if there is one.
    pub(super) fn guarded(&mut self, guard: Option<Register>, text: &str) {
        match guard {
            Some(guard) => {
                let guard = self.register(guard);
                self.line(&format!("@{guard} {text}"));
            }
            None => self.line(text),
        }
    }

    /// A temporary register.
    pub(super) fn temporary(&mut self, width: Width) -> String {
        let further = &mut self.further[width as usize];
        *further += 1;
        format!("%{}t{}", letter(width), *further - 1)
    }

    fn label(&mut self, stem: &str) -> String {
        self.labels += 1;
        format!("{stem}_{}", self.labels)
    }

    /// The name of a register.
    pub(super) fn register(&mut self, register: Register) -> String {
        if self.constants.contains_key(&register) {
            self.wanted.push(register);
        }
        name(register, self.program.width(register))
    }

    /// An operand: the constant itself if the register is one.
    pub(super) fn operand(&mut self, register: Register, number: Number) -> String {
        match (self.constants.get(&register), number) {
            (Some(bits), Number::I32) => (*bits as u32 as i32).to_string(),
            (Some(bits), Number::U32) => (*bits as u32).to_string(),
            (Some(bits), Number::I64) => (*bits as i64).to_string(),
            (Some(bits), Number::U64) => format!("{bits:#x}"),
            (Some(bits), Number::I16 | Number::U16) => (*bits as u16).to_string(),
            (Some(bits), Number::F32) => format!("0f{:08X}", *bits as u32),
            (Some(bits), Number::F64) => format!("0d{bits:016X}"),
            _ => self.register(register),
        }
    }

    /// A register with the address of an access in shared memory.
    pub(super) fn shared_address(&mut self, access: &Access, address: Option<Register>) -> String {
        self.uses_shared = true;
        let offset = access.offset + i64::from(self.program.buffer(access.buffer).start);
        let sum = self.temporary(Width::Bits32);
        self.line(&format!("add.s32 {sum}, %shared, {offset};"));
        if let Some(register) = address {
            let register = self.register(register);
            self.line(&format!("add.s32 {sum}, {sum}, {register};"));
        }
        sum
    }

    /// The address of an access, in brackets.
    pub(super) fn address(&mut self, access: &Access, address: Option<Register>) -> String {
        let buffer = self.program.buffer(access.buffer);
        let (base, offset, width) = match buffer.space {
            Space::Global => (format!("%base{}", access.buffer.index()), access.offset, Width::Bits64),
            Space::Shared => {
                self.uses_shared = true;
                ("%shared".to_string(), access.offset + i64::from(buffer.start), Width::Bits32)
            }
        };
        let at = match address {
            None => base,
            Some(register) => {
                let sum = self.temporary(width);
                let register = self.register(register);
                self.line(&format!("add.s{} {sum}, {base}, {register};", width.bits()));
                sum
            }
        };
        // Offsets that do not fit in an instruction are added before.
        match i32::try_from(offset) {
            Ok(0) => format!("[{at}]"),
            Ok(offset) => format!("[{at}+{offset}]"),
            Err(_) => {
                let sum = self.temporary(width);
                self.line(&format!("add.s{} {sum}, {at}, {offset};", width.bits()));
                format!("[{sum}]")
            }
        }
    }

    pub(super) fn steps(&mut self, steps: &[Step]) -> Result<(), PtxError> {
        let mut last: Option<SourceId> = None;
        for step in steps {
            match step {
                Step::Instruction(instruction) => {
                    if last != Some(instruction.source) && !matches!(instruction.operation, Operation::Constant(_)) {
                        let source = self.program.source(instruction.source);
                        let (file, line) = (source.location.file(), source.location.line());
                        let file = file.rsplit(['/', '\\']).next().unwrap_or(file).to_string();
                        self.line(&format!("// {} ({file}:{line})", source.statement));
                        last = Some(instruction.source);
                    }
                    self.instruction(instruction)?;
                }
                Step::Loop(looped) => self.iterations(looped)?,
                Step::Branch(branch) => self.branch(branch)?,
            }
        }
        Ok(())
    }

    /// `to = from`, for registers of the program.
    pub(super) fn assign(&mut self, to: Register, from: Register) {
        let width = self.program.width(to);
        let (to, from) = (name(to, width), self.register(from));
        if to != from {
            self.move_text(&to, &from, width);
        }
    }

    fn move_text(&mut self, to: &str, from: &str, width: Width) {
        self.line(&format!("mov.{} {to}, {from};", kind(width)));
    }

    fn iterations(&mut self, looped: &Loop) -> Result<(), PtxError> {
        let (head, end) = (self.label("LOOP"), self.label("END"));
        for carried in &looped.carried {
            self.assign(carried.current, carried.initial);
        }
        let index = name(looped.index, Width::Bits32);
        let from = self.operand(looped.from, Number::I32);
        self.line(&format!("mov.b32 {index}, {from};"));
        let done = self.temporary(Width::Predicate);
        let to = self.operand(looped.to, Number::I32);
        self.line(&format!("setp.ge.s32 {done}, {index}, {to};"));
        self.line(&format!("@{done} bra {end};"));
        self.body.push_str(&format!("{head}:\n"));
        // The program has decided about unrolling, and unrolling takes the assembler long.
        self.line(".pragma \"nounroll\";");
        self.steps(&looped.body)?;
        // Computes the predicate before the registers on which it depends are overwritten for the
        // next iteration.
        let last = looped.until.map(|until| {
            let (until, last) = (self.register(until), self.temporary(Width::Predicate));
            self.line(&format!("not.pred {last}, {until};"));
            last
        });
        // A parallel assignment: the next value of one variable may be the current value of
        // another.
        let busy = |register: Register| looped.carried.iter().any(|carried| carried.current == register);
        let mut moves = Vec::new();
        for carried in &looped.carried {
            let width = self.program.width(carried.current);
            let mut from = self.register(carried.next);
            if busy(carried.next) && carried.next != carried.current {
                let temporary = self.temporary(width);
                self.move_text(&temporary, &from, width);
                from = temporary;
            }
            moves.push((name(carried.current, width), from, width));
        }
        for (to, from, width) in moves {
            if to != from {
                self.move_text(&to, &from, width);
            }
        }
        self.line(&format!("add.s32 {index}, {index}, {};", looped.step));
        let more = self.temporary(Width::Predicate);
        self.line(&format!("setp.lt.s32 {more}, {index}, {to};"));
        if let Some(last) = last {
            self.line(&format!("and.pred {more}, {more}, {last};"));
        }
        self.line(&format!("@{more} bra {head};"));
        self.body.push_str(&format!("{end}:\n"));
        for carried in &looped.carried {
            self.assign(carried.result, carried.current);
        }
        Ok(())
    }

    fn branch(&mut self, branch: &Branch) -> Result<(), PtxError> {
        let (otherwise, end) = (self.label("ELSE"), self.label("JOIN"));
        let condition = self.register(branch.condition);
        self.line(&format!("@!{condition} bra {otherwise};"));
        self.steps(&branch.then)?;
        for chosen in &branch.chosen {
            self.assign(chosen.result, chosen.then);
        }
        self.line(&format!("bra.uni {end};"));
        self.body.push_str(&format!("{otherwise}:\n"));
        self.steps(&branch.otherwise)?;
        for chosen in &branch.chosen {
            self.assign(chosen.result, chosen.otherwise);
        }
        self.body.push_str(&format!("{end}:\n"));
        Ok(())
    }

    /// The only result of an instruction.
    pub(super) fn result(&self, instruction: &Instruction) -> String {
        let register = instruction.outputs[0];
        name(register, self.program.width(register))
    }
}

pub(super) fn name(register: Register, width: Width) -> String {
    format!("%{}{}", letter(width), register.index())
}

/// The first letter of the names of registers of a width.
pub(super) fn letter(width: Width) -> char {
    match width {
        Width::Predicate => 'p',
        Width::Bits16 => 'h',
        Width::Bits32 => 'r',
        Width::Bits64 => 'd',
    }
}

/// The type of a width in the language.
pub(super) fn kind(width: Width) -> &'static str {
    match width {
        Width::Predicate => "pred",
        Width::Bits16 => "b16",
        Width::Bits32 => "b32",
        Width::Bits64 => "b64",
    }
}

fn gather(steps: &[Step], constants: &mut HashMap<Register, u64>) {
    for step in steps {
        match step {
            Step::Instruction(Instruction { operation: Operation::Constant(bits), outputs, .. }) => {
                constants.insert(outputs[0], *bits);
            }
            Step::Instruction(_) => {}
            Step::Loop(looped) => gather(&looped.body, constants),
            Step::Branch(branch) => {
                gather(&branch.then, constants);
                gather(&branch.otherwise, constants);
            }
        }
    }
}

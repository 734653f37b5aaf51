//! Memory accesses: loads, stores, atomic operations and matrices.

use super::arithmetic::{is_half, kind};
use super::writer::Writer;
use crate::program::Instruction;
use crate::program::memory::{Access, Cache, Space};
use crate::program::operation::{AtomicOperation, Number};
use crate::program::register::{Register, Width};

impl Writer<'_> {
    /// The address of an access, in brackets. Its register, if there is one, is the next input.
    pub(super) fn place(&mut self, access: &Access, inputs: &mut impl Iterator<Item = Register>) -> String {
        let register = access.addressed.then(|| inputs.next()).flatten();
        self.address(access, register)
    }

    /// The names of registers.
    pub(super) fn names(&mut self, registers: impl Iterator<Item = Register>) -> Vec<String> {
        registers.map(|register| self.register(register)).collect()
    }

    fn space(&self, access: &Access) -> &'static str {
        match self.program.buffer(access.buffer).space {
            Space::Global => "global",
            Space::Shared => "shared",
        }
    }

    /// The qualifiers of a load or a store, and its registers in braces.
    fn shape(access: &Access, registers: &[String]) -> (String, String) {
        match registers {
            [one] => (format!("b{}", access.bits), one.clone()),
            several => (format!("v{}.b{}", several.len(), access.bits), format!("{{{}}}", several.join(", "))),
        }
    }

    pub(super) fn load(&mut self, instruction: &Instruction, access: &Access) {
        let at = self.place(access, &mut instruction.inputs.iter().copied());
        let outputs = self.names(instruction.outputs.iter().copied());
        self.zeros(instruction, &outputs);
        let (shape, registers) = Self::shape(access, &outputs);
        let space = self.space(access);
        let cache = match (access.cache, space) {
            (_, "shared") | (Cache::Default, _) => "",
            (Cache::ReadOnly, _) => ".nc",
            (Cache::NoAllocate, _) => ".L1::no_allocate",
            (Cache::Streaming, _) => ".cs",
            (Cache::WholeLines, _) => {
                self.needs(7, 4);
                ".L2::128B"
            }
            (Cache::WholeLinesOnce, _) => {
                self.needs(7, 4);
                ".L1::no_allocate.L2::128B"
            }
        };
        self.guarded(instruction.guard, &format!("ld.{space}{cache}.{shape} {registers}, {at};"));
    }

    pub(super) fn remote_load(&mut self, instruction: &Instruction, access: &Access) {
        let at = self.remote(access, &mut instruction.inputs.iter().copied());
        let outputs = self.names(instruction.outputs.iter().copied());
        self.zeros(instruction, &outputs);
        let (shape, registers) = Self::shape(access, &outputs);
        self.guarded(instruction.guard, &format!("ld.shared::cluster.{shape} {registers}, [{at}];"));
    }

    pub(super) fn remote_store(&mut self, instruction: &Instruction, access: &Access) {
        let mut inputs = instruction.inputs.iter().copied();
        let at = self.remote(access, &mut inputs);
        let values = self.names(inputs);
        let (shape, registers) = Self::shape(access, &values);
        self.guarded(instruction.guard, &format!("st.shared::cluster.{shape} [{at}], {registers};"));
    }

    pub(super) fn remote_reduce(
        &mut self,
        instruction: &Instruction,
        (operation, number): (AtomicOperation, Number),
        access: &Access,
    ) {
        let mut inputs = instruction.inputs.iter().copied();
        let at = self.remote(access, &mut inputs);
        let (name, bits) = atomic(operation, number);
        let value = self.names(inputs).join(", ");
        self.guarded(instruction.guard, &format!("red.relaxed.cluster.shared::cluster.{name}.{bits} [{at}], {value};"));
    }

    /// The result of a load whose predicate is false.
    fn zeros(&mut self, instruction: &Instruction, outputs: &[String]) {
        if instruction.guard.is_some() {
            for (output, register) in outputs.iter().zip(&instruction.outputs) {
                let bits = self.program.width(*register).bits();
                self.line(&format!("mov.b{bits} {output}, 0;"));
            }
        }
    }

    pub(super) fn store(&mut self, instruction: &Instruction, access: &Access) {
        let mut inputs = instruction.inputs.iter().copied();
        let at = self.place(access, &mut inputs);
        let values = self.names(inputs);
        let (shape, registers) = Self::shape(access, &values);
        let space = self.space(access);
        let cache = match (access.cache, space) {
            (Cache::Streaming, "global") => ".cs",
            _ => "",
        };
        self.guarded(instruction.guard, &format!("st.{space}{cache}.{shape} {at}, {registers};"));
    }

    pub(super) fn atomic(
        &mut self,
        instruction: &Instruction,
        operation: AtomicOperation,
        number: Number,
        access: &Access,
    ) {
        let (name, bits) = atomic(operation, number);
        let mut inputs = instruction.inputs.iter().copied();
        let at = self.place(access, &mut inputs);
        let values = self.names(inputs).join(", ");
        let result = self.result(instruction);
        if instruction.guard.is_some() {
            let width = self.program.width(instruction.outputs[0]).bits();
            self.line(&format!("mov.b{width} {result}, 0;"));
        }
        let space = self.space(access);
        self.guarded(instruction.guard, &format!("atom.{space}.{name}.{bits} {result}, {at}, {values};"));
    }

    /// Updates the counter of the launch by the instruction `by`, which wraps it to 0 by itself.
    pub(super) fn counted(&mut self, instruction: &Instruction, by: &str) {
        let which = self.operand(instruction.inputs[0], Number::U32);
        let last = self.operand(instruction.inputs[1], Number::U32);
        let result = self.result(instruction);
        let (counts, at) = (self.counts(), self.temporary(Width::Bits64));
        self.line(&format!("mov.u64 {at}, {counts};"));
        self.line(&format!("mad.wide.u32 {at}, {which}, 4, {at};"));
        if instruction.guard.is_some() {
            self.line(&format!("mov.b32 {result}, 0;"));
        }
        self.guarded(instruction.guard, &format!("{by} {result}, [{at}], {last};"));
    }

    pub(super) fn reduce(
        &mut self,
        instruction: &Instruction,
        operation: AtomicOperation,
        number: Number,
        access: &Access,
    ) {
        let (name, bits) = atomic(operation, number);
        let mut inputs = instruction.inputs.iter().copied();
        let at = self.place(access, &mut inputs);
        let values = self.names(inputs);
        let space = self.space(access);
        let (count, values) = (values.len(), values.join(", "));
        let text = if count > 1 {
            self.needs(8, 1);
            format!("red.{space}.{name}.v{count}.{bits} {at}, {{{values}}};")
        } else {
            format!("red.{space}.{name}.{bits} {at}, {values};")
        };
        self.guarded(instruction.guard, &text);
    }

    /// Polls the word that counts turns until it equals the turn of this thread.
    pub(super) fn await_turn(&mut self, instruction: &Instruction, access: &Access) {
        let mut inputs = instruction.inputs.iter().copied();
        let at = self.place(access, &mut inputs);
        let turn = self.names(inputs).join(", ");
        let (count, early) = (self.temporary(Width::Bits32), self.temporary(Width::Predicate));
        self.line("{");
        if let Some(guard) = instruction.guard {
            let guard = self.register(guard);
            self.line(&format!("@!{guard} bra COME;"));
        }
        self.body.push_str("TURN:\n");
        self.line(&format!("ld.acquire.gpu.global.b32 {count}, {at};"));
        self.line(&format!("setp.ne.b32 {early}, {count}, {turn};"));
        self.line(&format!("@{early} bra TURN;"));
        if instruction.guard.is_some() {
            self.body.push_str("COME:\n");
        }
        self.line("}");
    }

    pub(super) fn pass_turn(&mut self, instruction: &Instruction, access: &Access) {
        let at = self.place(access, &mut instruction.inputs.iter().copied());
        self.guarded(instruction.guard, &format!("red.release.gpu.global.add.u32 {at}, 1;"));
    }

    pub(super) fn load_matrix(&mut self, instruction: &Instruction, access: &Access, transposed: bool) {
        let at = self.place(access, &mut instruction.inputs.iter().copied());
        let turned = if transposed { ".trans" } else { "" };
        let outputs = self.names(instruction.outputs.iter().copied());
        let (count, outputs) = (outputs.len(), outputs.join(", "));
        self.line(&format!("ldmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 {{{outputs}}}, {at};"));
    }

    pub(super) fn store_matrix(&mut self, instruction: &Instruction, access: &Access, transposed: bool) {
        self.needs(7, 8);
        let mut inputs = instruction.inputs.iter().copied();
        let at = self.place(access, &mut inputs);
        let turned = if transposed { ".trans" } else { "" };
        let values = self.names(inputs);
        let (count, values) = (values.len(), values.join(", "));
        self.line(&format!("stmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 {at}, {{{values}}};"));
    }
}

/// The name and the type of an atomic operation.
fn atomic(operation: AtomicOperation, number: Number) -> (&'static str, String) {
    let bits = format!("b{}", number.bits());
    let unsigned = |number: Number| match number {
        // Sums of signed and unsigned integers have the same bits; for 64 bits, only the unsigned
        // type exists.
        Number::I64 => "u64".to_string(),
        number => kind(number).to_string(),
    };
    match operation {
        AtomicOperation::Add if is_half(number) => ("add.noftz", kind(number).to_string()),
        AtomicOperation::Add => ("add", unsigned(number)),
        AtomicOperation::Minimum => ("min", kind(number).to_string()),
        AtomicOperation::Maximum => ("max", kind(number).to_string()),
        AtomicOperation::And => ("and", bits),
        AtomicOperation::Or => ("or", bits),
        AtomicOperation::Xor => ("xor", bits),
        AtomicOperation::Exchange => ("exch", bits),
        AtomicOperation::CompareExchange => ("cas", bits),
    }
}

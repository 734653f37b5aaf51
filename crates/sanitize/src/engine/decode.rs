//! Decodes statements into operations.
//!
//! An unknown instruction becomes an operation that stops the run with the instruction's name. So a
//! module with one such kernel can run all its other kernels.

mod alu;
mod flow_ops;
mod layout;
mod memory_ops;
mod products;
mod video;
mod warp_ops;

use std::collections::HashMap;

pub(crate) use layout::Layout;

use super::code::{
    FunctionCode, Micro, NOWHERE, Op, ParameterPlace, Placed, Program, Row, Source, Special, StatementPlace, Target,
    Truth,
};
use super::{flow, windows};
use crate::check::checker::MAX_PLACES;
use crate::ptx::{Module, Operand, PtxError, PtxFunction, Scalar, StateSpace, StatementKind};

/// The location of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegisterPlace {
    Slot(u32),
    Predicate(u32),
}

/// Decodes the statements of a function.
pub(super) struct Decoder<'m, 'a> {
    module: &'m Module<'a>,
    function: &'m PtxFunction<'a>,
    layout: &'m Layout<'a>,
    registers: Vec<RegisterPlace>,
    /// For each variable of the function, its address; for a parameter, its slot.
    variables: Vec<u64>,
    constants: Vec<Row>,
    constant_numbers: HashMap<u64, u32>,
    ops: Vec<Micro>,
    slots: u32,
    predicates: u32,
    parameters: Vec<ParameterPlace>,
    returns: Vec<ParameterPlace>,
    labels: Vec<u32>,
    at: u32,
    guard: Truth,
    pub(super) has_async: bool,
    /// Whether the program reads the address through which blocks of a cooperative launch
    /// synchronise, and whether it uses a heap.
    meets: bool,
    allocates: bool,
}

type Decode<T> = Result<T, String>;

/// Decodes the functions that an entry of a module reaches.
pub(crate) fn program(module: &Module<'_>, entry: &str) -> Result<Program, PtxError> {
    let Some(own) = module.function(entry).filter(|own| own.is_entry && own.body.is_some()) else {
        let names: Vec<&str> =
            module.functions.iter().filter(|own| own.is_entry).map(|own| own.name).take(20).collect();
        return Err(PtxError::new(1, format!("there is no entry `{entry}`; there are: {}", names.join(", "))));
    };
    let mut layout = Layout::new(module, own)?;
    let mut functions = Vec::with_capacity(module.functions.len());
    let mut statements = Vec::new();
    let (mut has_async, mut meets, mut allocates) = (false, false, false);
    for (number, function) in module.functions.iter().enumerate() {
        let body = function.body.as_deref().filter(|_| layout.reachable[number]).unwrap_or_default();
        let first = statements.len() as u32;
        statements.extend(body.iter().map(|statement| StatementPlace {
            function: number as u32,
            line: statement.line,
            location: statement.location,
        }));
        if statements.len() as u64 > u64::from(MAX_PLACES) {
            return Err(PtxError::new(function.line, format!("more than {MAX_PLACES} statements")));
        }
        let mut decoder = Decoder::new(module, function, &layout, number);
        decoder.body(first)?;
        has_async |= decoder.has_async;
        meets |= decoder.meets;
        allocates |= decoder.allocates;
        functions.push(decoder.finish(&layout, number));
    }
    let own_memory = |name: &str, address, size, is_initialised| Placed {
        name: name.to_string(),
        address,
        bytes: Vec::new(),
        size,
        is_const: false,
        is_initialised,
    };
    if meets {
        layout.variables.push(own_memory(
            "the barrier of the grid",
            windows::MEETING_PLACE,
            windows::MEETING_BYTES,
            true,
        ));
    }
    if allocates {
        layout.variables.push(own_memory("the heap", windows::HEAP, windows::HEAP_BYTES, false));
    }
    let number = module.functions.iter().position(|function| std::ptr::eq(function, own)).unwrap_or(0);
    Ok(Program {
        functions,
        entry: layout.entry(own, number as u32),
        statements,
        static_shared: layout.static_shared,
        variables: layout.variables,
        has_async,
        required_threads: own.required_threads,
        most_threads: own.most_threads,
        required_cluster: own.required_cluster,
    })
}

impl<'m, 'a> Decoder<'m, 'a> {
    fn new(module: &'m Module<'a>, function: &'m PtxFunction<'a>, layout: &'m Layout<'a>, number: usize) -> Self {
        let (mut slots, mut predicates) = (0, 0);
        let registers = function.registers.iter().map(|kind| match kind {
            Scalar::Pred => {
                predicates += 1;
                RegisterPlace::Predicate(predicates - 1)
            }
            kind => {
                slots += kind.bits().div_ceil(64);
                RegisterPlace::Slot(slots - kind.bits().div_ceil(64))
            }
        });
        let registers: Vec<RegisterPlace> = registers.collect();
        let mut place = |bytes: u64, register: Option<u32>| match register.map(|own| registers[own as usize]) {
            Some(RegisterPlace::Slot(slot)) => ParameterPlace { slot, slots: 1 },
            _ => {
                let count = bytes.div_ceil(8) as u32;
                slots += count;
                ParameterPlace { slot: slots - count, slots: count }
            }
        };
        let parameters = match function.is_entry {
            true => Vec::new(),
            false => function.parameters.iter().map(|own| place(own.bytes, own.register)).collect(),
        };
        let returns = function.returns.iter().map(|own| place(own.bytes, own.register)).collect();
        let variables = function.variables.iter().enumerate().map(|(at, variable)| match variable.space {
            // A variable for a call is at most as large as a parameter.
            StateSpace::Param => u64::from(place(variable.bytes.unwrap_or(0).min(32 << 10), None).slot),
            _ => layout.addresses[number].get(at).copied().unwrap_or(0),
        });
        let variables = variables.collect();
        Self {
            module,
            function,
            layout,
            registers,
            variables,
            constants: Vec::new(),
            constant_numbers: HashMap::new(),
            ops: Vec::new(),
            slots,
            predicates,
            parameters,
            returns,
            labels: vec![NOWHERE; function.labels.len()],
            at: 0,
            guard: Truth::Constant(true),
            has_async: false,
            meets: false,
            allocates: false,
        }
    }

    fn body(&mut self, first: u32) -> Result<(), PtxError> {
        let body = match &self.function.body {
            Some(body) if first as usize + body.len() <= MAX_PLACES as usize => body,
            _ => return Ok(()),
        };
        if !self.layout.is_reachable(self.function) {
            return Ok(());
        }
        for (number, statement) in body.iter().enumerate() {
            self.at = first + number as u32;
            match &statement.kind {
                StatementKind::Label(label) => self.labels[*label as usize] = self.ops.len() as u32,
                StatementKind::BranchTargets(..) | StatementKind::CallTargets(_) => {}
                StatementKind::Instruction { guard, opcode, modifiers, operands } => {
                    self.guard = match guard {
                        Some((register, negated)) => match self.registers[*register as usize] {
                            RegisterPlace::Predicate(own) => Truth::Register(own, *negated),
                            RegisterPlace::Slot(_) => Truth::Constant(true),
                        },
                        None => Truth::Constant(true),
                    };
                    if let Err(why) = self.instruction(opcode, modifiers, operands) {
                        let name = std::iter::once(*opcode).chain(modifiers.iter().copied()).take(24);
                        let name = name.collect::<Vec<&str>>().join(".");
                        self.emit(Op::Refuse(format!("`{name}`: {why}").into()));
                    }
                }
            }
        }
        // Labels at the end of a function refer to an implicit return.
        let line = body.last().map_or(self.function.line, |statement| statement.line);
        self.guard = Truth::Constant(true);
        self.emit(Op::Return);
        let labels = &self.labels;
        let resolve = |target: &mut u32| {
            // Until here, the target is the number of a label. Now it becomes the index of an
            // operation.
            match labels.get(*target as usize) {
                Some(place) if *place != NOWHERE => {
                    *target = *place;
                    Ok(())
                }
                _ => Err(PtxError::new(line, "a branch goes to a label that names no statement")),
            }
        };
        for micro in &mut self.ops {
            match &mut micro.op {
                Op::Branch { target, .. } => resolve(target)?,
                Op::BranchIndexed { targets, .. } => targets.iter_mut().try_for_each(resolve)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(self, layout: &Layout<'a>, number: usize) -> FunctionCode {
        let mut code = FunctionCode {
            name: self.function.name.to_string(),
            has_body: self.function.body.is_some(),
            ops: self.ops,
            slots: self.slots,
            predicates: self.predicates,
            constants: self.constants,
            parameters: self.parameters,
            returns: self.returns,
            local_bytes: layout.local_bytes[number] as u32,
        };
        if self.has_async {
            for micro in &mut code.ops {
                micro.touches = micro.op.touches().map(Box::new);
            }
        }
        flow::join(&mut code, self.function.is_entry);
        code
    }

    pub(super) fn emit(&mut self, op: Op) {
        self.ops.push(Micro { op, guard: self.guard, at: self.at, touches: None });
    }

    pub(super) fn constant(&mut self, value: u64) -> Source {
        let next = self.constants.len() as u32;
        let number = *self.constant_numbers.entry(value).or_insert(next);
        if number == next {
            self.constants.push([value; 32]);
        }
        Source(number | Source::CONSTANT)
    }

    /// A register that the PTX does not declare.
    pub(super) fn temporary(&mut self, bits: u8) -> Target {
        self.slots += 1;
        Target { slot: self.slots - 1, bits, sign_from: 0 }
    }

    fn function_number(&self, name: &str) -> Option<u32> {
        self.layout.functions.get(name).copied()
    }

    /// An operand as a source of a type.
    pub(super) fn source(&mut self, operand: &Operand<'a>, kind: Scalar) -> Decode<Source> {
        let cut = |value: u64| match kind.bits() {
            bits if bits >= 64 => value,
            bits => value & ((1 << bits) - 1),
        };
        Ok(match operand {
            Operand::Register(register) => match self.registers[*register as usize] {
                RegisterPlace::Slot(slot) => Source(slot),
                RegisterPlace::Predicate(_) => return Err("a predicate stands where a value is expected".to_string()),
            },
            Operand::Integer(value) => self.constant(cut(*value)),
            Operand::Float32(bits) => match kind {
                Scalar::F(64) => {
                    let wide = f64::from(f32::from_bits(*bits)).to_bits();
                    self.constant(wide)
                }
                _ => self.constant(u64::from(*bits)),
            },
            Operand::Float64(bits) => match kind {
                Scalar::F(32) => self.constant(u64::from((f64::from_bits(*bits) as f32).to_bits())),
                _ => self.constant(cut(*bits)),
            },
            Operand::Special(name) => {
                let Some((special, bits)) = special(name) else {
                    return Err(format!("the special register `{name}` is not supported"));
                };
                self.meets |= matches!(special, Special::MeetingPlace | Special::MeetingPlaceHigh);
                let target = self.temporary(bits);
                self.emit(Op::Special(target, special));
                Source(target.slot)
            }
            Operand::Symbol(name, offset) => {
                let address = self.symbol(name)?.wrapping_add(*offset as u64);
                self.constant(cut(address))
            }
            Operand::Local(variable, offset) => self.local(*variable, *offset)?,
            Operand::Sink => return Err("`_` stands where a value is expected".to_string()),
            Operand::Not(_) => return Err("`!` stands before what is no predicate".to_string()),
            _ => return Err("an operand has a form that is not expected here".to_string()),
        })
    }

    /// The address of a variable of the function.
    fn local(&mut self, variable: u32, offset: i64) -> Decode<Source> {
        let own = &self.function.variables[variable as usize];
        let address = self.variables[variable as usize].wrapping_add(offset as u64);
        match own.space {
            StateSpace::Local => {
                let (start, target) = (self.temporary(64), self.temporary(64));
                self.emit(Op::Special(start, Special::LocalFrame));
                let address = self.constant(address);
                let add = Box::new(|a: &Row, b: &Row, d: &mut Row| {
                    (0..32).for_each(|lane| d[lane] = a[lane].wrapping_add(b[lane]));
                });
                self.emit(Op::Alu2(target, [Source(start.slot), address], add));
                Ok(Source(target.slot))
            }
            StateSpace::Param => Err(format!("the address of the parameter `{}` of a call is taken", own.name)),
            _ => Ok(self.constant(address)),
        }
    }

    /// The address of a variable or a function of the module, or of a parameter of the entry.
    fn symbol(&self, name: &str) -> Decode<u64> {
        if self.function.is_entry {
            let mut offset = 0_u64;
            for parameter in &self.function.parameters {
                offset = offset.next_multiple_of(parameter.align.max(1));
                if parameter.name == name {
                    return Ok(offset);
                }
                offset += parameter.bytes;
            }
        } else if self.function.parameters.iter().any(|own| own.name == name) {
            return Err(format!("the address of the parameter `{name}` of a function is taken"));
        }
        if let Some(address) = self.layout.symbols.get(name) {
            return Ok(*address);
        }
        match self.function_number(name) {
            Some(number) => Ok(windows::FUNCTIONS + 16 * u64::from(number)),
            None => Err(format!("`{name}` is not declared")),
        }
    }

    /// The destination register of a result.
    pub(super) fn target(&mut self, operand: &Operand<'a>) -> Decode<Target> {
        match operand {
            Operand::Register(register) => match self.registers[*register as usize] {
                RegisterPlace::Slot(slot) => {
                    let bits = self.function.registers[*register as usize].bits().min(64) as u8;
                    Ok(Target { slot, bits, sign_from: 0 })
                }
                RegisterPlace::Predicate(_) => Err("a predicate stands where a register is expected".to_string()),
            },
            Operand::Sink => Ok(self.temporary(64)),
            _ => Err("the result goes to what is no register".to_string()),
        }
    }

    /// The destination register of a result of a type. A wider register extends the sign.
    pub(super) fn target_of(&mut self, operand: &Operand<'a>, kind: Scalar) -> Decode<Target> {
        let target = self.target(operand)?;
        let widens = kind.is_signed() && u32::from(target.bits) > kind.bits();
        Ok(Target { sign_from: if widens { kind.bits() as u8 } else { 0 }, ..target })
    }

    /// The destination predicate of a result; None for `_`.
    pub(super) fn predicate(&self, operand: &Operand<'a>) -> Decode<Option<u32>> {
        match operand {
            Operand::Register(register) => match self.registers[*register as usize] {
                RegisterPlace::Predicate(own) => Ok(Some(own)),
                RegisterPlace::Slot(_) => Err("a register stands where a predicate is expected".to_string()),
            },
            Operand::Sink => Ok(None),
            _ => Err("a predicate is expected".to_string()),
        }
    }

    /// An operand as a source predicate.
    pub(super) fn truth(&self, operand: &Operand<'a>) -> Decode<Truth> {
        match operand {
            Operand::Register(_) => {
                Ok(self.predicate(operand)?.map_or(Truth::Constant(true), |own| Truth::Register(own, false)))
            }
            Operand::Not(inner) => Ok(match self.truth(inner)? {
                Truth::Register(own, negated) => Truth::Register(own, !negated),
                Truth::Constant(value) => Truth::Constant(!value),
            }),
            Operand::Integer(value) => Ok(Truth::Constant(*value != 0)),
            _ => Err("a predicate is expected".to_string()),
        }
    }

    pub(super) fn is_predicate(&self, operand: &Operand<'a>) -> bool {
        match operand {
            Operand::Register(register) => self.function.registers[*register as usize] == Scalar::Pred,
            Operand::Not(inner) => self.is_predicate(inner),
            _ => false,
        }
    }

    /// The two slots of a 128-bit register.
    pub(super) fn halves(&self, operand: &Operand<'a>) -> Decode<[Target; 2]> {
        match operand {
            Operand::Register(register) if self.function.registers[*register as usize].bits() == 128 => {
                match self.registers[*register as usize] {
                    RegisterPlace::Slot(slot) => {
                        Ok([0, 1].map(|at| Target { slot: slot + at, bits: 64, sign_from: 0 }))
                    }
                    RegisterPlace::Predicate(_) => Err("a register of 128 bits is expected".to_string()),
                }
            }
            _ => Err("a register of 128 bits is expected".to_string()),
        }
    }

    fn instruction(&mut self, opcode: &str, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        if let Some(why) = missing(opcode) {
            return Err(why.to_string());
        }
        if self.memory_instruction(opcode, modifiers, operands)?
            || self.flow_instruction(opcode, modifiers, operands)?
            || self.warp_instruction(opcode, modifiers, operands)?
        {
            return Ok(());
        }
        if let Some(op) = super::engines::decode(self, opcode, modifiers, operands) {
            let op = op?;
            self.has_async |= !matches!(op, super::engines::AsyncOp::Nothing);
            self.emit(Op::Async(op));
            return Ok(());
        }
        if self.alu_instruction(opcode, modifiers, operands)? {
            return Ok(());
        }
        Err("this instruction is not known".to_string())
    }
}

/// Why the engine does not execute an instruction that exists on targets from sm_70 on; None for
/// other instructions.
fn missing(opcode: &str) -> Option<&'static str> {
    Some(match opcode {
        "tex" | "tld4" | "txq" | "istypep" => "textures are not supported",
        "suld" | "sust" | "sured" | "suq" => "surfaces are not supported",
        "multimem" => "its addresses are those of a multicast object of several devices, which no launch here has",
        "tcgen05" | "clusterlaunchcontrol" => "it is of targets from sm_100 on",
        _ => return None,
    })
}

/// Checks that there are exactly N operands.
pub(super) fn exactly<'o, 'a, const N: usize>(operands: &'o [Operand<'a>]) -> Decode<&'o [Operand<'a>; N]> {
    operands.try_into().map_err(|_| format!("{N} operands are expected, not {}", operands.len()))
}

/// The types among modifiers.
pub(super) fn types(modifiers: &[&str]) -> Vec<Scalar> {
    modifiers.iter().filter_map(|word| Scalar::read(word)).collect()
}

fn special(name: &str) -> Option<(Special, u8)> {
    let axis = match name.rsplit_once('.').map(|(_, letter)| letter) {
        Some("y") => 1,
        Some("z") => 2,
        _ => 0,
    };
    Some(match name.split('.').next()? {
        "%tid" => (Special::Thread(axis), 32),
        "%ntid" => (Special::Threads(axis), 32),
        "%ctaid" => (Special::Block(axis), 32),
        "%nctaid" => (Special::Blocks(axis), 32),
        "%clusterid" => (Special::Cluster(axis), 32),
        "%nclusterid" => (Special::Clusters(axis), 32),
        "%cluster_ctaid" => (Special::BlockInCluster(axis), 32),
        "%cluster_nctaid" => (Special::BlocksOfCluster(axis), 32),
        "%cluster_ctarank" => (Special::ClusterRank, 32),
        "%cluster_nctarank" => (Special::ClusterSize, 32),
        "%is_explicit_cluster" => (Special::IsCluster, 32),
        "%laneid" => (Special::Lane, 32),
        "%warpid" => (Special::Warp, 32),
        "%nwarpid" => (Special::Warps, 32),
        "%smid" => (Special::Processor, 32),
        "%nsmid" => (Special::Processors, 32),
        "%gridid" => (Special::Grid, 64),
        "%lanemask_eq" => (Special::LanesEqual, 32),
        "%lanemask_le" => (Special::LanesUpTo, 32),
        "%lanemask_lt" => (Special::LanesBelow, 32),
        "%lanemask_ge" => (Special::LanesFrom, 32),
        "%lanemask_gt" => (Special::LanesAbove, 32),
        "%clock" => (Special::Clock, 32),
        "%clock_hi" => (Special::ClockHigh, 32),
        "%clock64" => (Special::Clock, 64),
        "%globaltimer" => (Special::Nanoseconds, 64),
        "%globaltimer_lo" => (Special::Nanoseconds, 32),
        "%globaltimer_hi" => (Special::NanosecondsHigh, 32),
        "%envreg1" => (Special::MeetingPlaceHigh, 32),
        "%envreg2" => (Special::MeetingPlace, 32),
        "%dynamic_smem_size" => (Special::DynamicShared, 32),
        "%total_smem_size" | "%aggr_smem_size" => (Special::AllShared, 32),
        _ => return None,
    })
}

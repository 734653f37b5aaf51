//! One instruction of a program as one or several of PTX.

use super::writer::Writer;
use super::{PtxError, Target};
use crate::program::Instruction;
use crate::program::memory::{Access, Cache, Space};
use crate::program::operation::{
    AtomicOperation, Axis, Binary, Comparison, Fence, Matrix, Number, Operation, Shuffle, Special, Unary,
};
use crate::program::register::Width;

/// The type of a number in an instruction.
fn kind(number: Number) -> &'static str {
    match number {
        Number::I16 => "s16",
        Number::U16 => "u16",
        Number::I32 => "s32",
        Number::U32 => "u32",
        Number::I64 => "s64",
        Number::U64 => "u64",
        Number::F16 => "f16",
        Number::Bf16 => "bf16",
        Number::F16x2 => "f16x2",
        Number::Bf16x2 => "bf16x2",
        Number::F32 => "f32",
        Number::F64 => "f64",
    }
}

fn is_half(number: Number) -> bool {
    matches!(number, Number::F16 | Number::Bf16)
}

fn axis(axis: Axis) -> char {
    match axis {
        Axis::X => 'x',
        Axis::Y => 'y',
        Axis::Z => 'z',
    }
}

impl Writer<'_> {
    fn none(&self, what: String, instruction: &Instruction) -> PtxError {
        PtxError::Operation { what, statement: self.program.source(instruction.source).to_string() }
    }

    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Result<(), PtxError> {
        let inputs = &instruction.inputs;
        match &instruction.operation {
            Operation::Constant(_) => {}
            Operation::Special(special) => {
                let result = self.result(instruction);
                let from = match special {
                    Special::Thread => "%tid.x".to_string(),
                    Special::Block(at) => format!("%ctaid.{}", axis(*at)),
                    Special::Blocks(at) => format!("%nctaid.{}", axis(*at)),
                    Special::Lane => "%laneid".to_string(),
                    Special::ClusterRank => {
                        self.least(Target::Sm90a, "a cluster", instruction.source)?;
                        "%cluster_ctarank".to_string()
                    }
                };
                self.line(&format!("mov.u32 {result}, {from};"));
            }
            Operation::Scalar(number) => {
                let result = self.result(instruction);
                let bits = self.program.scalars[*number].bits();
                self.line(&format!("ld.param.b{bits} {result}, [scalar{number}];"));
            }
            Operation::Unary(operation, number) => self.unary(instruction, *operation, *number)?,
            Operation::Binary(operation, number) => self.binary(instruction, *operation, *number)?,
            Operation::MultiplyAdd(number) => {
                let result = self.result(instruction);
                let [a, b, c] = [0, 1, 2].map(|at| self.operand(inputs[at], *number));
                let name = if number.is_float() { "fma.rn" } else { "mad.lo" };
                self.line(&format!("{name}.{} {result}, {a}, {b}, {c};", kind(*number)));
            }
            Operation::MultiplyAddWide(number) => {
                let result = self.result(instruction);
                let [a, b] = [0, 1].map(|at| self.operand(inputs[at], *number));
                let c = self.register(inputs[2]);
                self.line(&format!("mad.wide.{} {result}, {a}, {b}, {c};", kind(*number)));
            }
            Operation::Compare(comparison, number) => {
                let result = self.result(instruction);
                let [a, b] = [0, 1].map(|at| self.operand(inputs[at], *number));
                let name = match (comparison, number.is_float()) {
                    (Comparison::Equal, _) => "eq",
                    (Comparison::NotEqual, true) => "neu",
                    (Comparison::NotEqual, false) => "ne",
                    (Comparison::Less, _) => "lt",
                    (Comparison::LessEqual, _) => "le",
                    (Comparison::Greater, _) => "gt",
                    (Comparison::GreaterEqual, _) => "ge",
                };
                self.line(&format!("setp.{name}.{} {result}, {a}, {b};", kind(*number)));
            }
            Operation::Select => {
                let result = self.result(instruction);
                let width = self.program.width(instruction.outputs[0]);
                let [p, a, b] = [0, 1, 2].map(|at| self.register(inputs[at]));
                if width == Width::Predicate {
                    let (yes, no) = (self.temporary(width), self.temporary(width));
                    self.line(&format!("and.pred {yes}, {p}, {a};"));
                    self.line(&format!("not.pred {no}, {p};"));
                    self.line(&format!("and.pred {no}, {no}, {b};"));
                    self.line(&format!("or.pred {result}, {yes}, {no};"));
                } else {
                    self.line(&format!("selp.b{} {result}, {a}, {b}, {p};", width.bits()));
                }
            }
            Operation::Convert { from, to, rounding } => self.convert(instruction, *from, *to, *rounding)?,
            Operation::ConvertPair { to } => self.convert_pair(instruction, *to)?,
            Operation::WidenPair { from } => self.widen_pair(instruction, *from)?,
            Operation::Pack => {
                let result = self.result(instruction);
                let bits = self.program.width(instruction.outputs[0]).bits();
                let parts: Vec<String> = inputs.iter().map(|input| self.register(*input)).collect();
                self.line(&format!("mov.b{bits} {result}, {{{}}};", parts.join(", ")));
            }
            Operation::Unpack => {
                let input = self.register(inputs[0]);
                let bits = self.program.width(inputs[0]).bits();
                let parts: Vec<String> = instruction.outputs.iter().map(|output| self.register(*output)).collect();
                self.line(&format!("mov.b{bits} {{{}}}, {input};", parts.join(", ")));
            }
            Operation::Permute(selector) => {
                let result = self.result(instruction);
                let [a, b] = [0, 1].map(|at| self.register(inputs[at]));
                self.line(&format!("prmt.b32 {result}, {a}, {b}, {selector:#x};"));
            }
            Operation::FunnelShiftLeft | Operation::FunnelShiftRight => {
                let result = self.result(instruction);
                let [a, b, c] = [0, 1, 2].map(|at| self.operand(inputs[at], Number::U32));
                let turn = if instruction.operation == Operation::FunnelShiftLeft { 'l' } else { 'r' };
                self.line(&format!("shf.{turn}.wrap.b32 {result}, {a}, {b}, {c};"));
            }
            Operation::Shuffle(shuffle) => {
                let (result, value) = (self.result(instruction), self.register(inputs[0]));
                let (mode, lane, clamp) = match shuffle {
                    Shuffle::Index => ("idx", self.operand(inputs[1], Number::U32), "0x1f"),
                    Shuffle::Butterfly(mask) => ("bfly", mask.to_string(), "0x1f"),
                    Shuffle::Up(by) => ("up", by.to_string(), "0"),
                    Shuffle::Down(by) => ("down", by.to_string(), "0x1f"),
                };
                self.line(&format!("shfl.sync.{mode}.b32 {result}, {value}, {lane}, {clamp}, 0xffffffff;"));
            }
            Operation::Ballot => {
                let (result, predicate) = (self.result(instruction), self.register(inputs[0]));
                self.line(&format!("vote.sync.ballot.b32 {result}, {predicate}, 0xffffffff;"));
            }
            Operation::Load(access) => self.load(instruction, access),
            Operation::Store(access) => self.store(instruction, access),
            Operation::Atomic(operation, number, access) => {
                let (name, bits) = atomic(*operation, *number);
                let mut inputs = inputs.iter().copied();
                let at = access.addressed.then(|| inputs.next()).flatten();
                let at = self.address(access, at);
                let values: Vec<String> = inputs.map(|input| self.register(input)).collect();
                let result = self.result(instruction);
                if instruction.guard.is_some() {
                    let width = self.program.width(instruction.outputs[0]).bits();
                    self.line(&format!("mov.b{width} {result}, 0;"));
                }
                let space = self.space(access);
                let text = format!("atom.{space}.{name}.{bits} {result}, {at}, {};", values.join(", "));
                self.guarded(instruction.guard, &text);
            }
            Operation::Reduce(operation, number, access) => {
                let (name, bits) = atomic(*operation, *number);
                let mut inputs = inputs.iter().copied();
                let at = access.addressed.then(|| inputs.next()).flatten();
                let at = self.address(access, at);
                let values: Vec<String> = inputs.map(|input| self.register(input)).collect();
                let space = self.space(access);
                let text = if values.len() > 1 {
                    self.least(Target::Sm90a, "a vector of atomic additions", instruction.source)?;
                    self.needs(8, 1);
                    format!("red.{space}.{name}.v{}.{bits} {at}, {{{}}};", values.len(), values.join(", "))
                } else {
                    format!("red.{space}.{name}.{bits} {at}, {};", values.join(", "))
                };
                self.guarded(instruction.guard, &text);
            }
            Operation::CopyAsync { to, from, or_zeros } => {
                let mut inputs = inputs.iter().copied();
                let write = to.addressed.then(|| inputs.next()).flatten();
                let read = from.addressed.then(|| inputs.next()).flatten();
                let (write, read) = (self.address(to, write), self.address(from, read));
                let bytes = to.bytes();
                let level = if bytes == 16 && from.cache == Cache::NoAllocate { "cg" } else { "ca" };
                let size = match (or_zeros, inputs.next()) {
                    (true, Some(predicate)) => {
                        let (size, predicate) = (self.temporary(Width::Bits32), self.register(predicate));
                        self.line(&format!("selp.b32 {size}, {bytes}, 0, {predicate};"));
                        format!(", {size}")
                    }
                    _ => String::new(),
                };
                let text = format!("cp.async.{level}.shared.global {write}, {read}, {bytes}{size};");
                self.guarded(instruction.guard, &text);
            }
            Operation::CommitAsync => self.line("cp.async.commit_group;"),
            Operation::WaitAsync(groups) => self.line(&format!("cp.async.wait_group {groups};")),
            Operation::LoadMatrix { access, transposed } => {
                let at = access.addressed.then(|| inputs.first().copied()).flatten();
                let at = self.address(access, at);
                let turned = if *transposed { ".trans" } else { "" };
                let outputs: Vec<String> = instruction.outputs.iter().map(|output| self.register(*output)).collect();
                let (count, outputs) = (outputs.len(), outputs.join(", "));
                self.line(&format!("ldmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 {{{outputs}}}, {at};"));
            }
            Operation::StoreMatrix { access, transposed } => {
                self.least(Target::Sm90a, "stmatrix", instruction.source)?;
                self.needs(7, 8);
                let mut inputs = inputs.iter().copied();
                let at = access.addressed.then(|| inputs.next()).flatten();
                let at = self.address(access, at);
                let turned = if *transposed { ".trans" } else { "" };
                let values: Vec<String> = inputs.map(|input| self.register(input)).collect();
                let (count, values) = (values.len(), values.join(", "));
                self.line(&format!("stmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 {at}, {{{values}}};"));
            }
            Operation::Multiply(matrix) => self.multiply(instruction, *matrix)?,
            Operation::Barrier => self.line("bar.sync 0;"),
            Operation::NamedBarrier { number, threads } => self.line(&format!("bar.sync {number}, {threads};")),
            Operation::WarpBarrier => self.line("bar.warp.sync 0xffffffff;"),
            Operation::Fence(fence) => {
                let text = match fence {
                    Fence::Block => "fence.acq_rel.cta;",
                    Fence::Device => "fence.acq_rel.gpu;",
                    Fence::AsyncShared => {
                        self.least(Target::Sm90a, "a proxy fence", instruction.source)?;
                        "fence.proxy.async.shared::cta;"
                    }
                    Fence::BarrierInit => {
                        self.least(Target::Sm90a, "a fence of barriers", instruction.source)?;
                        "fence.mbarrier_init.release.cluster;"
                    }
                };
                self.line(text);
            }
            Operation::BarrierInit { access, count } => {
                let at = access.addressed.then(|| inputs.first().copied()).flatten();
                let at = self.address(access, at);
                self.guarded(instruction.guard, &format!("mbarrier.init.shared.b64 {at}, {count};"));
            }
            Operation::BarrierArrive { access, expect } => {
                self.least(Target::Sm90a, "an arrival without a state", instruction.source)?;
                let at = access.addressed.then(|| inputs.first().copied()).flatten();
                let at = self.address(access, at);
                let text = match expect {
                    0 => format!("mbarrier.arrive.shared::cta.b64 _, {at};"),
                    bytes => format!("mbarrier.arrive.expect_tx.shared::cta.b64 _, {at}, {bytes};"),
                };
                self.guarded(instruction.guard, &text);
            }
            Operation::BarrierWait { access } => {
                self.least(Target::Sm90a, "a wait that may sleep", instruction.source)?;
                let mut inputs = inputs.iter().copied();
                let at = access.addressed.then(|| inputs.next()).flatten();
                let at = self.address(access, at);
                let parity = match inputs.next() {
                    Some(parity) => self.register(parity),
                    None => "0".to_string(),
                };
                let done = self.temporary(Width::Predicate);
                self.line("{");
                self.body.push_str("WAIT:\n");
                self.line(&format!("mbarrier.try_wait.parity.shared::cta.b64 {done}, {at}, {parity};"));
                self.line(&format!("@!{done} bra WAIT;"));
                self.line("}");
            }
            Operation::BulkLoad { map, to, barrier } => {
                self.least(Target::Sm90a, "a bulk copy", instruction.source)?;
                let mut inputs = inputs.iter().copied();
                let write = to.addressed.then(|| inputs.next()).flatten();
                let wait = barrier.addressed.then(|| inputs.next()).flatten();
                let (write, wait) = (self.address(to, write), self.address(barrier, wait));
                let coordinates: Vec<String> = inputs.map(|input| self.operand(input, Number::I32)).collect();
                let at = self.map_address(map.index());
                let (rank, coordinates) = (coordinates.len(), coordinates.join(", "));
                let text = format!(
                    "cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes {write}, [{at}, {{{coordinates}}}], {wait};"
                );
                self.guarded(instruction.guard, &text);
            }
            Operation::BulkStore { map, from } => {
                self.least(Target::Sm90a, "a bulk copy", instruction.source)?;
                let mut inputs = inputs.iter().copied();
                let read = from.addressed.then(|| inputs.next()).flatten();
                let read = self.address(from, read);
                let coordinates: Vec<String> = inputs.map(|input| self.operand(input, Number::I32)).collect();
                let at = self.map_address(map.index());
                let (rank, coordinates) = (coordinates.len(), coordinates.join(", "));
                let text = format!(
                    "cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [{at}, {{{coordinates}}}], {read};"
                );
                self.guarded(instruction.guard, &text);
            }
            Operation::CommitBulk => {
                self.least(Target::Sm90a, "a bulk copy", instruction.source)?;
                self.line("cp.async.bulk.commit_group;");
            }
            Operation::WaitBulk { groups, read } => {
                self.least(Target::Sm90a, "a bulk copy", instruction.source)?;
                let read = if *read { ".read" } else { "" };
                self.line(&format!("cp.async.bulk.wait_group{read} {groups};"));
            }
            Operation::Trap => self.line("trap;"),
        }
        Ok(())
    }

    /// The generic address of a tensor map, which is a parameter.
    fn map_address(&mut self, number: usize) -> String {
        self.needs(7, 7);
        let at = self.temporary(Width::Bits64);
        self.line(&format!("mov.b64 {at}, map{number};"));
        self.line(&format!("cvta.param.u64 {at}, {at};"));
        at
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

    fn load(&mut self, instruction: &Instruction, access: &Access) {
        let at = access.addressed.then(|| instruction.inputs.first().copied()).flatten();
        let at = self.address(access, at);
        let outputs: Vec<String> = instruction.outputs.iter().map(|output| self.register(*output)).collect();
        if instruction.guard.is_some() {
            for (output, register) in outputs.iter().zip(&instruction.outputs) {
                let bits = self.program.width(*register).bits();
                self.line(&format!("mov.b{bits} {output}, 0;"));
            }
        }
        let (shape, registers) = Self::shape(access, &outputs);
        let space = self.space(access);
        let cache = match (access.cache, space) {
            (_, "shared") | (Cache::Default, _) => "",
            (Cache::ReadOnly, _) => ".nc",
            (Cache::NoAllocate, _) => ".L1::no_allocate",
            (Cache::Streaming, _) => ".cs",
        };
        self.guarded(instruction.guard, &format!("ld.{space}{cache}.{shape} {registers}, {at};"));
    }

    fn store(&mut self, instruction: &Instruction, access: &Access) {
        let mut inputs = instruction.inputs.iter().copied();
        let at = access.addressed.then(|| inputs.next()).flatten();
        let at = self.address(access, at);
        let values: Vec<String> = inputs.map(|input| self.register(input)).collect();
        let (shape, registers) = Self::shape(access, &values);
        let space = self.space(access);
        let cache = match (access.cache, space) {
            (Cache::Streaming, "global") => ".cs",
            _ => "",
        };
        self.guarded(instruction.guard, &format!("st.{space}{cache}.{shape} {at}, {registers};"));
    }

    fn unary(&mut self, instruction: &Instruction, operation: Unary, number: Number) -> Result<(), PtxError> {
        let result = self.result(instruction);
        let a = self.register(instruction.inputs[0]);
        let width = self.program.width(instruction.inputs[0]);
        let name = kind(number);
        let text = match (operation, number) {
            (Unary::Not, _) if width == Width::Predicate => format!("not.pred {result}, {a};"),
            (Unary::Not, _) => format!("not.b{} {result}, {a};", width.bits()),
            (Unary::CountOnes, _) => format!("popc.b{} {result}, {a};", width.bits()),
            (Unary::CountLeadingZeros, _) => format!("clz.b{} {result}, {a};", width.bits()),
            (Unary::Negate, _) if !number.is_float() => format!("neg.{} {result}, {a};", name.replace('u', "s")),
            (Unary::Negate, _) => format!("neg.{name} {result}, {a};"),
            (Unary::Magnitude, _) if matches!(number, Number::U16 | Number::U32 | Number::U64) => {
                format!("mov.b{} {result}, {a};", width.bits())
            }
            (Unary::Magnitude, _) => format!("abs.{name} {result}, {a};"),
            (_, number) if is_half(number) => {
                return self.by_way_of_f32(instruction, number, &[a], &|writer, parts| {
                    writer.approximated(operation, &parts[0])
                });
            }
            (Unary::SquareRoot, Number::F32 | Number::F64) => format!("sqrt.rn.{name} {result}, {a};"),
            (Unary::Reciprocal, Number::F64) => format!("rcp.rn.f64 {result}, {a};"),
            (_, Number::F32) => match self.approximated(operation, &a) {
                Some(text) => text.replace("{}", &result),
                None => return Err(self.none(format!("{operation:?} of {number:?}"), instruction)),
            },
            _ => return Err(self.none(format!("{operation:?} of {number:?}"), instruction)),
        };
        self.line(&text);
        Ok(())
    }

    /// An operation on one f32, with `{}` for the result.
    fn approximated(&self, operation: Unary, a: &str) -> Option<String> {
        let name = match operation {
            Unary::Reciprocal => "rcp.approx.f32",
            Unary::SquareRoot => "sqrt.rn.f32",
            Unary::ReciprocalSquareRoot => "rsqrt.approx.f32",
            Unary::Exp2 => "ex2.approx.ftz.f32",
            Unary::Log2 => "lg2.approx.f32",
            Unary::Sine => "sin.approx.f32",
            Unary::Cosine => "cos.approx.f32",
            Unary::HyperbolicTangent => "tanh.approx.f32",
            _ => return None,
        };
        Some(format!("{name} {{}}, {a};"))
    }

    /// Computes on 16-bit floats by way of f32, which is wide enough that rounding twice is
    /// rounding once for quotients and square roots.
    fn by_way_of_f32(
        &mut self,
        instruction: &Instruction,
        number: Number,
        inputs: &[String],
        compute: &dyn Fn(&Writer<'_>, &[String]) -> Option<String>,
    ) -> Result<(), PtxError> {
        let mut wide = Vec::new();
        for input in inputs {
            let register = self.temporary(Width::Bits32);
            if number == Number::F16 {
                self.line(&format!("cvt.f32.f16 {register}, {input};"));
            } else {
                let zero = self.temporary(Width::Bits16);
                self.line(&format!("mov.b16 {zero}, 0;"));
                self.line(&format!("mov.b32 {register}, {{{zero}, {input}}};"));
            }
            wide.push(register);
        }
        let Some(text) = compute(self, &wide) else {
            return Err(self.none(format!("{:?}", instruction.operation), instruction));
        };
        let computed = self.temporary(Width::Bits32);
        self.line(&text.replace("{}", &computed));
        let result = self.result(instruction);
        self.line(&format!("cvt.rn.{}.f32 {result}, {computed};", kind(number)));
        Ok(())
    }

    fn binary(&mut self, instruction: &Instruction, operation: Binary, number: Number) -> Result<(), PtxError> {
        let result = self.result(instruction);
        let width = self.program.width(instruction.outputs[0]);
        let inputs = &instruction.inputs;
        let name = kind(number);
        let shifted = matches!(operation, Binary::ShiftLeft | Binary::ShiftRight);
        if width == Width::Predicate {
            let [a, b] = [0, 1].map(|at| self.register(inputs[at]));
            let name = match operation {
                Binary::And => "and",
                Binary::Or => "or",
                Binary::Xor => "xor",
                _ => return Err(self.none(format!("{operation:?} of predicates"), instruction)),
            };
            self.line(&format!("{name}.pred {result}, {a}, {b};"));
            return Ok(());
        }
        let a = self.operand(inputs[0], number);
        let b = self.operand(inputs[1], if shifted { Number::U32 } else { number });
        let bits = width.bits();
        let text = match operation {
            Binary::And => format!("and.b{bits} {result}, {a}, {b};"),
            Binary::Or => format!("or.b{bits} {result}, {a}, {b};"),
            Binary::Xor => format!("xor.b{bits} {result}, {a}, {b};"),
            Binary::ShiftLeft => format!("shl.b{bits} {result}, {a}, {b};"),
            Binary::ShiftRight => format!("shr.{name} {result}, {a}, {b};"),
            Binary::MultiplyWide => format!("mul.wide.{name} {result}, {a}, {b};"),
            Binary::MultiplyHigh => format!("mul.hi.{name} {result}, {a}, {b};"),
            Binary::Remainder if !number.is_float() => format!("rem.{name} {result}, {a}, {b};"),
            Binary::Divide => match number {
                Number::F32 | Number::F64 => format!("div.rn.{name} {result}, {a}, {b};"),
                number if is_half(number) => {
                    return self.by_way_of_f32(instruction, number, &[a, b], &|_, parts| {
                        Some(format!("div.rn.f32 {{}}, {}, {};", parts[0], parts[1]))
                    });
                }
                number if number.is_float() => {
                    return Err(self.none(format!("{operation:?} of {number:?}"), instruction));
                }
                _ => format!("div.{name} {result}, {a}, {b};"),
            },
            Binary::Minimum => format!("min.{name} {result}, {a}, {b};"),
            Binary::Maximum => format!("max.{name} {result}, {a}, {b};"),
            Binary::MinimumNan => format!("min.NaN.{name} {result}, {a}, {b};"),
            Binary::MaximumNan => format!("max.NaN.{name} {result}, {a}, {b};"),
            Binary::Multiply if !number.is_float() => format!("mul.lo.{name} {result}, {a}, {b};"),
            Binary::Add | Binary::Subtract | Binary::Multiply => {
                // Before Hopper, bf16 has fused multiplications and additions alone: a*1+b, b*-1+a,
                // a*b-0.
                let one = |writer: &mut Self, bits: &str| {
                    let register =
                        writer.temporary(if number == Number::Bf16x2 { Width::Bits32 } else { Width::Bits16 });
                    let width = if number == Number::Bf16x2 { 32 } else { 16 };
                    writer.line(&format!("mov.b{width} {register}, {bits};"));
                    register
                };
                let pair = number == Number::Bf16x2;
                match (operation, number) {
                    (Binary::Add, Number::Bf16 | Number::Bf16x2) => {
                        let one = one(self, if pair { "0x3f803f80" } else { "0x3f80" });
                        format!("fma.rn.{name} {result}, {a}, {one}, {b};")
                    }
                    (Binary::Subtract, Number::Bf16 | Number::Bf16x2) => {
                        let one = one(self, if pair { "0xbf80bf80" } else { "0xbf80" });
                        format!("fma.rn.{name} {result}, {b}, {one}, {a};")
                    }
                    (_, Number::Bf16 | Number::Bf16x2) => {
                        let zero = one(self, if pair { "0x80008000" } else { "0x8000" });
                        format!("fma.rn.{name} {result}, {a}, {b}, {zero};")
                    }
                    (operation, number) => {
                        let verb = match operation {
                            Binary::Add => "add",
                            Binary::Subtract => "sub",
                            _ => "mul",
                        };
                        let rounding = if number.is_float() { ".rn" } else { "" };
                        format!("{verb}{rounding}.{name} {result}, {a}, {b};")
                    }
                }
            }
            other => return Err(self.none(format!("{other:?} of {number:?}"), instruction)),
        };
        self.line(&text);
        Ok(())
    }

    fn multiply(&mut self, instruction: &Instruction, matrix: Matrix) -> Result<(), PtxError> {
        let (shape, types) = match matrix {
            Matrix::F16F32 => ("m16n8k16", "f32.f16.f16.f32"),
            Matrix::F16F16 => ("m16n8k16", "f16.f16.f16.f16"),
            Matrix::Bf16F32 => ("m16n8k16", "f32.bf16.bf16.f32"),
            Matrix::Tf32F32 => ("m16n8k8", "f32.tf32.tf32.f32"),
            Matrix::F64 => ("m8n8k4", "f64.f64.f64.f64"),
            Matrix::I8I32 => ("m16n8k32", "s32.s8.s8.s32"),
            Matrix::U8I32 => ("m16n8k32", "s32.u8.u8.s32"),
            Matrix::E4M3F32 | Matrix::E5M2F32 => {
                self.least(Target::Sm89, "a product of 8-bit floats", instruction.source)?;
                self.needs(8, 4);
                let types = if matrix == Matrix::E4M3F32 { "f32.e4m3.e4m3.f32" } else { "f32.e5m2.e5m2.f32" };
                ("m16n8k32", types)
            }
        };
        let [a, b, _] = matrix.registers();
        let names: Vec<String> = instruction.inputs.iter().map(|input| self.register(*input)).collect();
        let outputs: Vec<String> = instruction.outputs.iter().map(|output| self.register(*output)).collect();
        let list = |names: &[String]| format!("{{{}}}", names.join(", "));
        let text = format!(
            "mma.sync.aligned.{shape}.row.col.{types} {}, {}, {}, {};",
            list(&outputs),
            list(&names[..a]),
            list(&names[a..a + b]),
            list(&names[a + b..])
        );
        self.line(&text);
        Ok(())
    }
}

/// Name and type of an atomic operation.
fn atomic(operation: AtomicOperation, number: Number) -> (&'static str, String) {
    let bits = format!("b{}", number.bits());
    let unsigned = |number: Number| match number {
        // Sums of signed and unsigned integers are the same bits; 64-bit ones have the unsigned
        // name alone.
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

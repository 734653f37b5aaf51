//! Prints one instruction of a program as one or several PTX instructions.

use super::PtxError;
use super::arithmetic::kind;
use super::writer::Writer;
use crate::program::Instruction;
use crate::program::operation::{Axis, BlockScaled, Comparison, Fence, Matrix, Number, Operation, Shuffle, Special};
use crate::program::register::Width;
use crate::target::Feature;

fn axis(axis: Axis) -> char {
    match axis {
        Axis::X => 'x',
        Axis::Y => 'y',
        Axis::Z => 'z',
    }
}

impl Writer<'_> {
    pub(super) fn none(&self, what: String, instruction: &Instruction) -> PtxError {
        PtxError::Operation { what, statement: self.program.source(instruction.source).to_string() }
    }

    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Result<(), PtxError> {
        if let Some((feature, what)) = instruction.needs() {
            self.has(feature, what, instruction.source)?;
        }
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
                    Special::ClusterRank => "%cluster_ctarank".to_string(),
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
            Operation::WidenPair { from } => self.widen_pair(instruction, *from),
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
            Operation::Logic(table) => {
                let result = self.result(instruction);
                let [a, b, c] = [0, 1, 2].map(|at| self.operand(inputs[at], Number::U32));
                self.line(&format!("lop3.b32 {result}, {a}, {b}, {c}, {table:#x};"));
            }
            Operation::FunnelShiftLeft | Operation::FunnelShiftRight => {
                let result = self.result(instruction);
                let [a, b, c] = [0, 1, 2].map(|at| self.operand(inputs[at], Number::U32));
                let direction = if instruction.operation == Operation::FunnelShiftLeft { 'l' } else { 'r' };
                self.line(&format!("shf.{direction}.wrap.b32 {result}, {a}, {b}, {c};"));
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
            Operation::Claim => self.counted(instruction, "atom.global.inc.u32"),
            Operation::CountBlock => self.counted(instruction, "atom.acq_rel.gpu.global.inc.u32"),
            Operation::Atomic(operation, number, access) => self.atomic(instruction, *operation, *number, access),
            Operation::AwaitTurn { access } => self.await_turn(instruction, access),
            Operation::PassTurn { access } => self.pass_turn(instruction, access),
            Operation::Reduce(operation, number, access) => self.reduce(instruction, *operation, *number, access),
            Operation::CopyAsync { to, from, or_zeros } => self.copy_async(instruction, to, from, *or_zeros),
            Operation::CommitAsync => self.line("cp.async.commit_group;"),
            Operation::WaitAsync(groups) => self.line(&format!("cp.async.wait_group {groups};")),
            Operation::LoadMatrix { access, transposed } => self.load_matrix(instruction, access, *transposed),
            Operation::StoreMatrix { access, transposed } => self.store_matrix(instruction, access, *transposed),
            Operation::Multiply(matrix) => self.multiply(instruction, *matrix)?,
            Operation::Move => {
                for (input, output) in inputs.iter().zip(&instruction.outputs) {
                    self.assign(*output, *input);
                }
            }
            Operation::Wgmma { operands, columns, a, b, adds } => {
                self.multiply_group(instruction, (*operands, *columns), (a.as_ref(), b), *adds);
            }
            Operation::FenceRegisters => self.line("wgmma.fence.sync.aligned;"),
            Operation::CommitMultiply => self.line("wgmma.commit_group.sync.aligned;"),
            Operation::WaitMultiply(groups) => {
                self.line(&format!("wgmma.wait_group.sync.aligned {groups};"));
            }
            Operation::Barrier => self.line("bar.sync 0;"),
            Operation::NamedBarrier { number, threads } => self.line(&format!("bar.sync {number}, {threads};")),
            Operation::NamedArrive { number, threads } => self.line(&format!("bar.arrive {number}, {threads};")),
            Operation::Elect => {
                let result = self.result(instruction);
                self.line(&format!("elect.sync _|{result}, 0xffffffff;"));
            }
            Operation::SetRegisters { count, more } => {
                let way = if *more { "inc" } else { "dec" };
                self.line(&format!("setmaxnreg.{way}.sync.aligned.u32 {count};"));
            }
            Operation::WaitLaunches => self.line("griddepcontrol.wait;"),
            Operation::LaunchNext => self.line("griddepcontrol.launch_dependents;"),
            Operation::WarpBarrier => self.line("bar.warp.sync 0xffffffff;"),
            Operation::Fence(fence) => {
                let text = match fence {
                    Fence::Block => "fence.acq_rel.cta;",
                    Fence::Device => "fence.acq_rel.gpu;",
                    Fence::AsyncShared => {
                        // The stored data may be in another block.
                        match self.program.has(|operation| {
                            matches!(operation, Operation::RemoteStore(_) | Operation::RemoteReduce(..))
                        }) {
                            true => "fence.proxy.async.shared::cluster;",
                            false => "fence.proxy.async.shared::cta;",
                        }
                    }
                    Fence::AsyncGlobal => "fence.proxy.async.global;",
                    Fence::BarrierInit => "fence.mbarrier_init.release.cluster;",
                };
                self.line(text);
            }
            Operation::BarrierInit { access, count } => self.barrier_init(instruction, access, *count),
            Operation::BarrierArrive { access, expect } => self.barrier_arrive(instruction, access, *expect),
            Operation::BarrierWait { access } => self.barrier_wait(instruction, access),
            Operation::RemoteArrive { access, releases } => self.remote_arrive(instruction, access, *releases),
            Operation::RemoteLoad(access) => self.remote_load(instruction, access),
            Operation::RemoteStore(access) => self.remote_store(instruction, access),
            Operation::RemoteReduce(operation, number, access) => {
                self.remote_reduce(instruction, (*operation, *number), access);
            }
            Operation::ClusterArrive => self.line("barrier.cluster.arrive.aligned;"),
            Operation::ClusterWait => self.line("barrier.cluster.wait.aligned;"),
            Operation::BulkLoad { map, to, barrier, multicast } => {
                self.bulk_load(instruction, *map, (to, barrier), *multicast);
            }
            Operation::BulkSend { to, barrier, from, bytes } => {
                self.bulk_send(instruction, [to, barrier, from], *bytes);
            }
            Operation::BulkStore { map, from } => self.bulk_store(instruction, *map, from),
            Operation::CommitBulk => {
                self.line("cp.async.bulk.commit_group;");
            }
            Operation::WaitBulk { groups, read } => {
                let read = if *read { ".read" } else { "" };
                self.line(&format!("cp.async.bulk.wait_group{read} {groups};"));
            }
            Operation::Trap => self.line("trap;"),
        }
        Ok(())
    }

    fn multiply(&mut self, instruction: &Instruction, matrix: Matrix) -> Result<(), PtxError> {
        let (shape, types) = match matrix {
            Matrix::Scaled(format, byte) => {
                self.multiply_scaled(instruction, (format, byte));
                return Ok(());
            }
            Matrix::F16F32 => ("m16n8k16", "f32.f16.f16.f32"),
            Matrix::F16F16 => ("m16n8k16", "f16.f16.f16.f16"),
            Matrix::Bf16F32 => ("m16n8k16", "f32.bf16.bf16.f32"),
            Matrix::Tf32F32 => ("m16n8k8", "f32.tf32.tf32.f32"),
            Matrix::F64 => ("m8n8k4", "f64.f64.f64.f64"),
            Matrix::F64K4 | Matrix::F64K8 | Matrix::F64K16 if !self.target.has(Feature::TallDoubles) => {
                self.multiply_doubles(instruction, matrix);
                return Ok(());
            }
            Matrix::F64K4 => ("m16n8k4", "f64.f64.f64.f64"),
            Matrix::F64K8 => ("m16n8k8", "f64.f64.f64.f64"),
            Matrix::F64K16 => ("m16n8k16", "f64.f64.f64.f64"),
            Matrix::I8I32 => ("m16n8k32", "s32.s8.s8.s32"),
            Matrix::U8I32 => ("m16n8k32", "s32.u8.u8.s32"),
            Matrix::S4I32 => ("m16n8k64", "s32.s4.s4.s32"),
            Matrix::U4I32 => ("m16n8k64", "s32.u4.u4.s32"),
            Matrix::E4M3F32 | Matrix::E5M2F32 => {
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

    /// An f64 product with 16 rows, as products with 8 rows and 4 along K, in the order of K.
    fn multiply_doubles(&mut self, instruction: &Instruction, matrix: Matrix) {
        let [a, b, c] = matrix.registers();
        let names: Vec<String> = instruction.inputs.iter().map(|input| self.register(*input)).collect();
        let outputs: Vec<String> = instruction.outputs.iter().map(|output| self.register(*output)).collect();
        for half in 0..2 {
            let sums = |all: &[String]| format!("{{{}, {}}}", all[2 * half], all[2 * half + 1]);
            let (result, mut sum) = (sums(&outputs), sums(&names[a + b..a + b + c]));
            for four in 0..b {
                let (left, right) = (&names[2 * four + half], &names[a + four]);
                self.line(&format!(
                    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {result}, {{{left}}}, {{{right}}}, {sum};"
                ));
                sum.clone_from(&result);
            }
        }
    }

    /// A product with block scales. Scales of A come from the first two lanes of each group of
    /// four, those of B from the first one: thread 0 of both selectors.
    fn multiply_scaled(&mut self, instruction: &Instruction, (format, byte): (BlockScaled, u8)) {
        self.needs(8, 7);
        let [a, b, c] = Matrix::Scaled(format, byte).registers();
        let [element, scale, kind, scales] = format.ptx();
        let names: Vec<String> = instruction.inputs.iter().map(|input| self.register(*input)).collect();
        let outputs: Vec<String> = instruction.outputs.iter().map(|output| self.register(*output)).collect();
        let list = |names: &[String]| format!("{{{}}}", names.join(", "));
        let [_, _, depth] = Matrix::Scaled(format, byte).shape();
        let of = |at: usize| format!("{{{}}}, {{{byte}, 0}}", names[a + b + c + at]);
        self.line(&format!(
            "mma.sync.aligned.m16n8k{depth}.row.col.kind::{kind}.block_scale.scale_vec::{scales}.f32.{element}.{element}.f32.{scale} {}, {}, {}, {}, {}, {};",
            list(&outputs),
            list(&names[..a]),
            list(&names[a..a + b]),
            list(&names[a + b..a + b + c]),
            of(0),
            of(1)
        ));
    }
}

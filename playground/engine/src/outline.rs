//! A kernel as a program that can be read.
//!
//! Law: a line for what moves data, multiplies, waits or decides, with the memory that it touches
//! and the bytes of a thread. What a thread computes in between, indices and conditions, is told by
//! its number of instructions; conditions and loops say what they compare, as far as it is short.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use tilewright_kernel::program::memory::{Access, BufferId, MapId};
use tilewright_kernel::program::operation::{Binary, Comparison, Operation};
use tilewright_kernel::program::register::Register;
use tilewright_kernel::program::scalar::Scalar;
use tilewright_kernel::program::{Instruction, Program, Step};

/// The most characters of a condition; of longer ones only that there is one is said.
const MAX_CONDITION: usize = 60;

/// The lines of a kernel: how deep each stands, its text, and how many instructions it stands for.
pub fn of(program: &Program) -> Vec<Json> {
    let mut outline = Outline { program, values: HashMap::new(), lines: Vec::new() };
    outline.body(&program.body, 0);
    let lines = outline.lines.into_iter();
    lines.map(|line| json!([line.indent, line.text(), line.instructions])).collect()
}

/// A line, and how often what it says is done.
struct Line {
    indent: usize,
    what: What,
    times: usize,
    instructions: usize,
}

#[derive(Debug, PartialEq)]
enum What {
    /// Indices, conditions, numbers.
    Computes,
    Does(String),
}

impl Line {
    fn text(&self) -> String {
        match &self.what {
            What::Computes => "compute indices, conditions and values".to_owned(),
            What::Does(text) if self.times > 1 => format!("{} x {text}", self.times),
            What::Does(text) => text.clone(),
        }
    }
}

struct Outline<'p> {
    program: &'p Program,
    /// What registers hold, as text, where it is short.
    values: HashMap<Register, String>,
    lines: Vec<Line>,
}

impl Outline<'_> {
    fn body(&mut self, body: &[Step], indent: usize) {
        // Arithmetic between equal lines, which counts for the line.
        let mut between = 0;
        let first = self.lines.len();
        for step in body {
            match step {
                Step::Instruction(instruction) => {
                    self.note(instruction);
                    let Some(text) = self.does(instruction) else {
                        between += 1;
                        continue;
                    };
                    let what = What::Does(text);
                    let is_own = self.lines.len() > first;
                    match self.lines.last_mut() {
                        Some(last) if is_own && last.indent == indent && last.what == what => {
                            last.times += 1;
                            last.instructions += 1 + between;
                        }
                        _ => {
                            self.computes(between, indent);
                            self.lines.push(Line { indent, what, times: 1, instructions: 1 });
                        }
                    }
                    between = 0;
                }
                Step::Loop(turns) => {
                    self.computes(between, indent);
                    between = 0;
                    let index = format!("i{indent}");
                    let (from, to) = (self.value(turns.from), self.value(turns.to));
                    let step = if turns.step == 1 { String::new() } else { format!(" step {}", turns.step) };
                    let head = format!("for {index} in {from} .. {to}{step}");
                    self.values.insert(turns.index, index);
                    self.lines.push(Line { indent, what: What::Does(head), times: 1, instructions: 1 });
                    self.body(&turns.body, indent + 1);
                }
                Step::Branch(branch) => {
                    self.computes(between, indent);
                    between = 0;
                    let head = format!("if {}", self.value(branch.condition));
                    self.lines.push(Line { indent, what: What::Does(head), times: 1, instructions: 1 });
                    self.body(&branch.then, indent + 1);
                    if !branch.otherwise.is_empty() {
                        self.lines.push(Line {
                            indent,
                            what: What::Does("else".to_owned()),
                            times: 1,
                            instructions: 1,
                        });
                        self.body(&branch.otherwise, indent + 1);
                    }
                }
            }
        }
        self.computes(between, indent);
    }

    fn computes(&mut self, instructions: usize, indent: usize) {
        if instructions > 0 {
            self.lines.push(Line { indent, what: What::Computes, times: 1, instructions });
        }
    }

    /// What a register holds, as text.
    fn value(&self, register: Register) -> String {
        self.values.get(&register).cloned().unwrap_or_else(|| "..".to_owned())
    }

    /// Notes what an instruction computes, if that is short.
    fn note(&mut self, instruction: &Instruction) {
        let [output] = instruction.outputs[..] else { return };
        let inputs: Vec<String> = instruction.inputs.iter().map(|input| self.value(*input)).collect();
        let text = match (&instruction.operation, inputs.as_slice()) {
            (Operation::Constant(bits), _) => (*bits as i64).to_string(),
            (Operation::Special(special), _) => named(&format!("{special:?}")),
            (Operation::Scalar(at), _) => match self.program.scalars.get(*at) {
                Some(Scalar::Size { value, .. }) => value.to_string(),
                _ => return,
            },
            (Operation::Binary(binary, _), [a, b]) => match sign(binary) {
                Some(sign) => format!("({a} {sign} {b})"),
                None => return,
            },
            (Operation::Compare(comparison, _), [a, b]) => format!("{a} {} {b}", compared(comparison)),
            (Operation::MultiplyAdd(_) | Operation::MultiplyAddWide(_), [a, b, c]) => format!("({a} * {b} + {c})"),
            (Operation::Convert { .. } | Operation::Move, [a]) => a.clone(),
            (Operation::Elect, _) => "one lane of the warp".to_owned(),
            _ => return,
        };
        if text.len() <= MAX_CONDITION && text != ".." {
            self.values.insert(output, text);
        }
    }

    fn buffer(&self, id: BufferId) -> String {
        self.program.buffer(id).name.to_string()
    }

    fn of(&self, access: &Access) -> String {
        self.buffer(access.buffer)
    }

    /// The box of a tensor map: its extents, and the tensor.
    fn boxed(&self, map: &MapId) -> String {
        let Some(map) = self.program.maps.get(map.index()) else { return "a box".to_owned() };
        let extents: Vec<String> = map.dimensions.iter().map(|dimension| dimension.boxed.to_string()).collect();
        format!("a box of {} of {}", extents.join(" x "), self.buffer(map.buffer))
    }

    /// What an instruction does to memory, to other threads or with tensor cores; none where it
    /// computes alone.
    fn does(&self, instruction: &Instruction) -> Option<String> {
        let text = match &instruction.operation {
            Operation::Load(access) => format!("load {} bytes of {} into registers", access.bytes(), self.of(access)),
            Operation::Store(access) => format!("store {} bytes of registers to {}", access.bytes(), self.of(access)),
            Operation::Atomic(_, _, access) | Operation::Reduce(_, _, access) => {
                format!("combine {} bytes with {} by an atomic operation", access.bytes(), self.of(access))
            }
            Operation::CopyAsync { to, from, .. } => {
                format!("copy {} bytes of {} to {} (cp.async)", to.bytes(), self.of(from), self.of(to))
            }
            Operation::CommitAsync => "commit the copies since the last commit as a group (cp.async)".to_owned(),
            Operation::WaitAsync(groups) => format!("wait until at most {groups} groups of copies are in flight"),
            Operation::LoadMatrix { access, .. } => format!("ldmatrix: fragments of a warp from {}", self.of(access)),
            Operation::StoreMatrix { access, .. } => format!("stmatrix: fragments of a warp to {}", self.of(access)),
            Operation::Multiply(_) => "mma of a warp: D = A B + C in registers".to_owned(),
            Operation::MultiplyGroup { columns, a, b, .. } => {
                let a = a.as_ref().map_or_else(|| "registers".to_owned(), |a| self.of(&a.access));
                format!("wgmma of a warpgroup, 64 x {columns}: A from {a}, B from {}", self.of(&b.access))
            }
            Operation::FenceRegisters => "fence the registers of the products (wgmma.fence)".to_owned(),
            Operation::CommitMultiply => "commit the products as a group (wgmma)".to_owned(),
            Operation::WaitMultiply(groups) => format!("wait until at most {groups} groups of products are in flight"),
            Operation::Barrier => "barrier: wait for all threads of the block".to_owned(),
            Operation::NamedBarrier { number, threads } => format!("barrier {number}: wait for {threads} threads"),
            Operation::NamedArrive { number, threads } => format!("barrier {number} of {threads} threads: arrive"),
            Operation::WarpBarrier => "wait for the lanes of the warp".to_owned(),
            Operation::ClusterArrive => "arrive at the barrier of the cluster".to_owned(),
            Operation::ClusterWait => "wait for the threads of the cluster".to_owned(),
            Operation::BarrierInit { access, count } => {
                format!("mbarrier {}: init with {count} arrivals", self.of(access))
            }
            Operation::BarrierArrive { access, expect: 0 } => format!("mbarrier {}: arrive", self.of(access)),
            Operation::BarrierArrive { access, expect } => {
                format!("mbarrier {}: arrive, and expect {expect} bytes", self.of(access))
            }
            Operation::BarrierWait { access } => format!("mbarrier {}: wait for the phase", self.of(access)),
            Operation::RemoteArrive { access, .. } => format!("mbarrier {} of another block: arrive", self.of(access)),
            Operation::RemoteLoad(access) => {
                format!("load {} bytes of {} of another block", access.bytes(), self.of(access))
            }
            Operation::RemoteStore(access) | Operation::RemoteReduce(_, _, access) => {
                format!("store {} bytes to {} of another block", access.bytes(), self.of(access))
            }
            Operation::BulkLoad { map, to, barrier, .. } => {
                format!("TMA load: {} to {}, counted by mbarrier {}", self.boxed(map), self.of(to), self.of(barrier))
            }
            Operation::BulkStore { map, from } => format!("TMA store: {} from {}", self.boxed(map), self.of(from)),
            Operation::BulkSend { to, from, bytes, .. } => {
                format!("copy {bytes} bytes of {} to {} of another block (bulk)", self.of(from), self.of(to))
            }
            Operation::CommitBulk => "commit the bulk stores as a group".to_owned(),
            Operation::WaitBulk { groups, .. } => {
                format!("wait until at most {groups} groups of bulk stores are in flight")
            }
            Operation::Fence(_) => "fence: order accesses".to_owned(),
            Operation::Shuffle(_) => "shuffle a value between lanes".to_owned(),
            Operation::SetRegisters { count, .. } => format!("set the registers of a thread to {count} (setmaxnreg)"),
            Operation::Claim => "claim the next tile from the counter".to_owned(),
            Operation::CountBlock => "count this block".to_owned(),
            Operation::WaitLaunches => "wait for the launches before this one".to_owned(),
            Operation::LaunchNext => "let the next launch begin".to_owned(),
            Operation::Trap => "trap".to_owned(),
            _ => return None,
        };
        Some(match instruction.guard.map(|guard| self.value(guard)) {
            None => text,
            Some(condition) if condition == ".." => format!("{text}, where inside"),
            Some(condition) => format!("{text}, where {condition}"),
        })
    }
}

/// A name in lower case, its words apart.
fn named(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() && !text.ends_with(['(', ' ']) {
            text.push(' ');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

fn sign(binary: &Binary) -> Option<&'static str> {
    Some(match binary {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply | Binary::MultiplyWide => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        _ => return None,
    })
}

fn compared(comparison: &Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
    }
}

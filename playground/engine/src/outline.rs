//! A kernel as a readable program.
//!
//! Law: each line is an instruction that moves data, multiplies, waits or branches, with its
//! operands: the tile of a tensor that it reads or writes, the threads that do so, and the bytes of
//! each (`tiles`). Registers and shared memory are named by the tensors of their contents.
//! Arithmetic on data is counted by operation; arithmetic on indices and conditions is left out.
//! Repeated lines, and repeated groups of lines, are shown once, with their number.

pub mod tiles;
mod words;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value as Json, json};
use tilewright_kernel::interpret::AccessKind::{self, Atomic, Read, Write};
use tilewright_kernel::program::memory::{Access, BufferId, MapId, Space};
use tilewright_kernel::program::operation::{Matrix, Operation};
use tilewright_kernel::program::register::{Register, Width};
use tilewright_kernel::program::scalar::Scalar;
use tilewright_kernel::program::{Branch, Instruction, Loop, Program, Source, Step};

use self::tiles::{Tile, Tiles};

/// The most characters of a condition; longer ones are not printed.
const MAX_CONDITION: usize = 60;
/// The text of a value that is not shown.
const UNTOLD: &str = "..";
/// The most tensors that are listed as the origin of a register.
const ORIGINS: usize = 3;
/// The destination of a matrix instruction.
const ACCUMULATORS: &str = "accumulators";
/// The most lines of a repeated group.
const GROUP: usize = 12;

/// The lines of a kernel: the indentation of each, and its text.
pub fn of(program: &Program, tiles: &Tiles) -> Vec<Json> {
    let mut outline = Outline {
        program,
        tiles,
        values: HashMap::new(),
        origins: HashMap::new(),
        contents: HashMap::new(),
        lines: Vec::new(),
    };
    outline.copied(&program.body);
    outline.body(&program.body, 0);
    let lines = outline.lines.iter().map(|line| (line.indent, outline.text(line))).collect();
    grouped(lines).into_iter().map(|(indent, text)| json!([indent, text])).collect()
}

/// A line, and the number of its repetitions.
struct Line {
    indent: usize,
    what: What,
    times: usize,
}

#[derive(Debug, PartialEq)]
enum What {
    /// Arithmetic on data: the count of each operation.
    Data(BTreeMap<String, usize>),
    Deed(Deed),
    /// The head of a loop or of a condition.
    Head(String),
}

/// An access to memory, a synchronization, or a tensor-core instruction.
#[derive(Debug, PartialEq)]
struct Deed {
    parts: Vec<Part>,
    source: Source,
    /// The access whose threads are shown.
    by: Option<(BufferId, AccessKind)>,
    /// The bytes that a thread moves at a time; None if warps move them, or one thread for all.
    bytes: Option<u32>,
    whole_warps: bool,
    condition: Option<String>,
    /// Whether it writes registers, so that arithmetic on them comes after it.
    gives: bool,
}

#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    /// The tile of a buffer that is accessed.
    Place(BufferId, AccessKind),
}

/// Repeated groups of lines, once, below their number.
fn grouped(lines: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((indent, _)) = rest.first() {
        let of = |size: usize| {
            let group = rest.get(..size)?;
            let whole = group.iter().all(|(own, _)| own >= indent);
            let times = rest.chunks(size).take_while(|other| *other == group).count();
            // The next lines are not part of the last group.
            let ends = rest.get(size * times).is_none_or(|(own, _)| own <= indent);
            (whole && ends && times > 1).then_some((group, times))
        };
        match (2..=GROUP.min(rest.len() / 2)).find_map(of) {
            Some((group, times)) => {
                out.push((*indent, format!("{times} times:")));
                out.extend(group.iter().map(|(own, text)| (own + 1, text.clone())));
                rest = rest.get(group.len() * times..).unwrap_or_default();
            }
            None => {
                out.extend(rest.first().cloned());
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    out
}

struct Outline<'p> {
    program: &'p Program,
    tiles: &'p Tiles,
    /// The contents of registers, as text, if short.
    values: HashMap<Register, String>,
    /// The tensors from which the contents of registers come.
    origins: HashMap<Register, Vec<String>>,
    /// The same for shared memory.
    contents: HashMap<BufferId, Vec<String>>,
    lines: Vec<Line>,
}

impl Outline<'_> {
    /// Records the destinations of asynchronous copies in shared memory, at every depth.
    fn copied(&mut self, body: &[Step]) {
        for step in body {
            match step {
                Step::Instruction(instruction) => match &instruction.operation {
                    Operation::CopyAsync { to, from, .. } => self.fill(to.buffer, vec![self.name(from.buffer)]),
                    Operation::BulkLoad { map, to, .. } => {
                        self.fill(to.buffer, vec![self.name(self.program.map(*map).buffer)]);
                    }
                    _ => {}
                },
                Step::Loop(turns) => self.copied(&turns.body),
                Step::Branch(branch) => {
                    self.copied(&branch.then);
                    self.copied(&branch.otherwise);
                }
            }
        }
    }

    fn fill(&mut self, buffer: BufferId, origins: Vec<String>) {
        if self.program.buffer(buffer).space == Space::Shared {
            let held = self.contents.entry(buffer).or_default();
            origins.into_iter().filter(|name| !held.contains(name)).collect::<Vec<_>>().into_iter().for_each(|name| {
                if held.len() < ORIGINS {
                    held.push(name);
                }
            });
        }
    }

    fn body(&mut self, body: &[Step], indent: usize) {
        let first = self.lines.len();
        let mut pending = BTreeMap::new();
        for step in body {
            match step {
                Step::Instruction(instruction) => {
                    self.note(instruction);
                    let data = !self.origins_of(&instruction.inputs).is_empty();
                    match (self.deed(instruction), words::arithmetic(&instruction.operation, data)) {
                        (Some(deed), _) => self.add(deed, &mut pending, (first, indent)),
                        (None, Some(name)) => *pending.entry(name).or_default() += 1,
                        (None, None) => {}
                    }
                }
                Step::Loop(turns) => {
                    self.flush(&mut pending, indent);
                    self.turns(turns, indent);
                }
                Step::Branch(branch) => {
                    self.flush(&mut pending, indent);
                    self.branch(branch, indent);
                }
            }
        }
        self.flush(&mut pending, indent);
    }

    /// Adds an action: a repetition of the previous one, or a new line.
    fn add(&mut self, deed: Deed, pending: &mut BTreeMap<String, usize>, (first, indent): (usize, usize)) {
        let (gives, what) = (deed.gives, What::Deed(deed));
        let own = self.lines.get_mut(first..).unwrap_or_default();
        let same = own.last().is_some_and(|last| last.indent == indent && last.what == what);
        // Arithmetic between equal actions goes before them if they use its results, and after them
        // if it uses theirs.
        match own {
            [.., last] if same && (pending.is_empty() || gives) => last.times += 1,
            [.., Line { what: What::Data(counts), .. }, last] if same => {
                std::mem::take(pending).into_iter().for_each(|(name, count)| *counts.entry(name).or_default() += count);
                last.times += 1;
            }
            _ => {
                self.flush(pending, indent);
                self.lines.push(Line { indent, what, times: 1 });
            }
        }
    }

    /// Adds a line for the arithmetic since the last action.
    fn flush(&mut self, pending: &mut BTreeMap<String, usize>, indent: usize) {
        let data = std::mem::take(pending);
        if !data.is_empty() {
            self.lines.push(Line { indent, what: What::Data(data), times: 1 });
        }
    }

    /// Adds lines below a head; nothing if there are no lines.
    fn below(&mut self, head: String, body: &[Step], indent: usize) {
        self.lines.push(Line { indent, what: What::Head(head), times: 1 });
        let before = self.lines.len();
        self.body(body, indent + 1);
        if self.lines.len() == before {
            self.lines.pop();
        }
    }

    fn turns(&mut self, turns: &Loop, indent: usize) {
        let index = format!("i{indent}");
        let (from, to) = (self.value(turns.from), self.value(turns.to));
        let step = if turns.step == 1 { String::new() } else { format!(" step {}", turns.step) };
        let until = if turns.until.is_some() { ", until a condition holds" } else { "" };
        let range = match [&from, &to].contains(&&UNTOLD.to_owned()) {
            true => "a range that is computed".to_owned(),
            false => format!("{from} .. {to}"),
        };
        let head = format!("for {index} in {range}{step}{until}");
        self.values.insert(turns.index, index);
        for carried in &turns.carried {
            self.inherit(carried.current, &[carried.initial]);
        }
        self.below(head, &turns.body, indent);
        for carried in &turns.carried {
            self.inherit(carried.result, &[carried.next, carried.initial]);
        }
    }

    fn branch(&mut self, branch: &Branch, indent: usize) {
        let condition = match self.value(branch.condition) {
            untold if untold == UNTOLD => "a condition on indices".to_owned(),
            condition => condition,
        };
        let before = self.lines.len();
        self.below(format!("if {condition}"), &branch.then, indent);
        let otherwise = if self.lines.len() == before { format!("if not ({condition})") } else { "else".to_owned() };
        self.below(otherwise, &branch.otherwise, indent);
        for chosen in &branch.chosen {
            self.inherit(chosen.result, &[chosen.then, chosen.otherwise]);
        }
    }

    /// The contents of a register, as text.
    fn value(&self, register: Register) -> String {
        self.values.get(&register).cloned().unwrap_or_else(|| UNTOLD.to_owned())
    }

    /// Records that a register depends on others.
    fn inherit(&mut self, register: Register, from: &[Register]) {
        let origins = self.origins_of(from);
        if !origins.is_empty() {
            self.origins.insert(register, origins);
        }
    }

    fn origins_of(&self, registers: &[Register]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in registers.iter().filter_map(|register| self.origins.get(register)).flatten() {
            if !names.contains(name) && names.len() < ORIGINS {
                names.push(name.clone());
            }
        }
        names
    }

    /// Registers by the tensors from which they come.
    fn held(&self, registers: &[Register]) -> String {
        match self.origins_of(registers) {
            names if names.is_empty() => "registers".to_owned(),
            names => names.join(" and "),
        }
    }

    /// Records the result of an instruction, if short, and the tensors from which its operands
    /// come.
    fn note(&mut self, instruction: &Instruction) {
        let operation = &instruction.operation;
        let origins = match operation {
            Operation::Load(access) | Operation::RemoteLoad(access) | Operation::LoadMatrix { access, .. } => {
                match self.contents.get(&access.buffer) {
                    Some(origins) => origins.clone(),
                    None => vec![self.name(access.buffer)],
                }
            }
            Operation::Multiply(_) | Operation::Wgmma { .. } => vec![ACCUMULATORS.to_owned()],
            _ => self.origins_of(&instruction.inputs),
        };
        if let Operation::Store(access) | Operation::StoreMatrix { access, .. } = operation {
            self.fill(access.buffer, self.origins_of(given(instruction, access, 0)));
        }
        for output in &instruction.outputs {
            // A predicate is a condition, even if it compares data.
            if !origins.is_empty() && self.program.width(*output) != Width::Predicate {
                self.origins.insert(*output, origins.clone());
            }
        }
        let [output] = instruction.outputs[..] else { return };
        let inputs: Vec<String> = instruction.inputs.iter().map(|input| self.value(*input)).collect();
        let size = |at: usize| match self.program.scalars.get(at) {
            Some(Scalar::Size { value, .. }) => Some(value.to_string()),
            Some(Scalar::Given { name, .. }) => Some(name.clone()),
            _ => None,
        };
        let wide = self.program.width(output) == Width::Bits64;
        if let Some(text) = words::value(operation, &inputs, wide, size)
            && text.len() <= MAX_CONDITION
            && !text.contains(UNTOLD)
        {
            self.values.insert(output, text);
        }
    }

    fn name(&self, id: BufferId) -> String {
        self.program.buffer(id).name.clone()
    }

    /// The box of a tensor map: its extents.
    fn boxed(&self, map: &MapId) -> String {
        let extents: Vec<String> =
            self.program.map(*map).dimensions.iter().rev().map(|dimension| dimension.boxed.to_string()).collect();
        format!("box {}", extents.join(" x "))
    }

    fn tile(&self, source: &Source, (buffer, kind): (BufferId, AccessKind)) -> Option<&Tile> {
        self.tiles.tile(source, buffer.index(), kind)
    }

    fn text(&self, line: &Line) -> String {
        match &line.what {
            What::Data(counts) => {
                let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} x {name}")).collect();
                format!("compute {}", counts.join(", "))
            }
            What::Head(text) => text.clone(),
            What::Deed(deed) => self.told(deed, line.times),
        }
    }

    /// The text of an action that is repeated this many times.
    fn told(&self, deed: &Deed, times: usize) -> String {
        let mut text = if times > 1 && deed.bytes.is_none() { format!("{times} x ") } else { String::new() };
        let mut first = false;
        for part in &deed.parts {
            match part {
                Part::Text(own) => text.push_str(own),
                Part::Place(buffer, kind) => match self.tile(&deed.source, (*buffer, *kind)) {
                    Some(tile) => {
                        text.push_str(&tile.place);
                        first |= tile.instructions < times;
                    }
                    None => text.push_str(&self.name(*buffer)),
                },
            }
        }
        if first {
            text.push_str(" (the first)");
        }
        let who = deed.by.and_then(|by| self.tile(&deed.source, by));
        let who = who.map(|tile| if deed.whole_warps { tile.warps.clone() } else { tile.threads.clone() });
        let each = match (deed.bytes, times) {
            (None, _) => None,
            (Some(bytes), 1) => Some(format!("{bytes} bytes each")),
            (Some(bytes), times) => Some(format!("{times} x {bytes} bytes each")),
        };
        let tail: Vec<String> = [who, each].into_iter().flatten().collect();
        if !tail.is_empty() {
            text.push_str(&format!(": {}", tail.join(", ")));
        }
        match deed.condition.as_deref() {
            Some(UNTOLD) => text.push_str(", predicated"),
            Some(condition) => text.push_str(&format!(", where {condition}")),
            None => {}
        }
        text
    }

    /// The action of an instruction on memory, on other threads or with tensor cores; None if it
    /// only computes.
    fn deed(&self, instruction: &Instruction) -> Option<Deed> {
        let of = |access: &Access| self.name(access.buffer);
        let condition = instruction.guard.map(|guard| self.value(guard)).filter(|condition| condition != "1");
        let does = |parts: Vec<Part>, by: Option<(BufferId, AccessKind)>| Deed {
            parts,
            source: *self.program.source(instruction.source),
            by,
            bytes: None,
            whole_warps: false,
            condition: condition.clone(),
            gives: !instruction.outputs.is_empty(),
        };
        let moves = |parts: Vec<Part>, access: &Access, kind| Deed {
            bytes: Some(access.bytes()),
            ..does(parts, Some((access.buffer, kind)))
        };
        let text = |text: &str| Part::Text(text.to_owned());
        let held = |access: &Access, more: usize| Part::Text(self.held(given(instruction, access, more)));
        let there = |access: &Access, kind| Part::Place(access.buffer, kind);
        Some(match &instruction.operation {
            Operation::Load(access) => {
                moves(vec![text("load "), there(access, Read), text(" to registers")], access, Read)
            }
            Operation::Store(access) => {
                moves(vec![text("store "), held(access, 0), text(" to "), there(access, Write)], access, Write)
            }
            Operation::Atomic(operation, _, access) | Operation::Reduce(operation, _, access) => {
                let head = Part::Text(format!("atomic {} of ", words::atomic(*operation)));
                moves(vec![head, held(access, 0), text(" to "), there(access, Atomic)], access, Atomic)
            }
            Operation::CopyAsync { to, from, .. } => {
                moves(vec![text("cp.async "), there(from, Read), text(" to "), there(to, Write)], to, Write)
            }
            Operation::LoadMatrix { access, transposed } => {
                let head = text(if *transposed { "ldmatrix.trans " } else { "ldmatrix " });
                let by = Some((access.buffer, Read));
                Deed { whole_warps: true, ..does(vec![head, there(access, Read), text(" to registers")], by) }
            }
            Operation::StoreMatrix { access, transposed } => {
                let head = text(if *transposed { "stmatrix.trans " } else { "stmatrix " });
                let parts = vec![head, held(access, 0), text(" to "), there(access, Write)];
                Deed { whole_warps: true, ..does(parts, Some((access.buffer, Write))) }
            }
            Operation::Multiply(matrix) => does(vec![Part::Text(self.multiplied(*matrix, instruction))], None),
            Operation::Wgmma { operands, columns, a, b, adds } => {
                let (sign, depth) = (if *adds { "+=" } else { "=" }, operands.depth());
                let mut parts = vec![Part::Text(format!("wgmma 64x{columns}x{depth}: {ACCUMULATORS} {sign} "))];
                match a {
                    Some(a) => parts.extend(self.operand(a.access.buffer)),
                    None => parts.push(Part::Text(self.held(instruction.inputs.get(..4).unwrap_or_default()))),
                }
                parts.push(text(" x "));
                parts.extend(self.operand(b.access.buffer));
                Deed { whole_warps: true, gives: false, ..does(parts, Some((b.access.buffer, Read))) }
            }
            Operation::RemoteLoad(access) => {
                moves(vec![text("load "), there(access, Read), text(" of another block to registers")], access, Read)
            }
            Operation::RemoteStore(access) => {
                let tail = text(" of another block");
                moves(vec![text("store "), held(access, 1), text(" to "), there(access, Write), tail], access, Write)
            }
            Operation::RemoteReduce(operation, _, access) => {
                let head = Part::Text(format!("atomic {} of ", words::atomic(*operation)));
                let parts = vec![head, held(access, 1), text(" to "), there(access, Atomic), text(" of another block")];
                moves(parts, access, Atomic)
            }
            Operation::BulkLoad { map, to, barrier, multicast } => {
                let from = Part::Place(self.program.map(*map).buffer, Read);
                let every = if *multicast { " of several blocks" } else { "" };
                let tail = Part::Text(format!("{every}, {}, mbarrier {}", self.boxed(map), of(barrier)));
                let parts = vec![text("TMA load "), from, text(" to "), there(to, Write), tail];
                does(parts, Some((to.buffer, Write)))
            }
            Operation::BulkStore { map, from } => {
                let to = Part::Place(self.program.map(*map).buffer, Write);
                let tail = Part::Text(format!(", {}", self.boxed(map)));
                does(vec![text("TMA store "), there(from, Read), text(" to "), to, tail], Some((from.buffer, Read)))
            }
            Operation::BulkSend { to, from, bytes, barrier } => {
                let (other, barrier) = (of(to), of(barrier));
                let tail = Part::Text(format!(" to {other} of another block, {bytes} bytes, mbarrier {barrier}"));
                does(vec![text("bulk copy "), there(from, Read), tail], Some((from.buffer, Read)))
            }
            Operation::Shuffle(_) => {
                let from = self.origins_of(instruction.inputs.get(..1)?);
                // A shuffle of the warp index makes it uniform across lanes.
                if from.is_empty() {
                    return None;
                }
                does(vec![Part::Text(format!("shuffle {} between the lanes of a warp", from.join(" and ")))], None)
            }
            other => does(vec![Part::Text(words::orders(other, &of)?)], None),
        })
    }

    /// An operand in shared memory, with the tensors from which it comes.
    fn operand(&self, buffer: BufferId) -> Vec<Part> {
        let place = Part::Place(buffer, Read);
        match self.contents.get(&buffer) {
            Some(origins) => {
                vec![Part::Text(format!("{} in ", origins.join(" and "))), place]
            }
            None => vec![place],
        }
    }

    /// A product of a warp, with the tensors from which its operands come.
    fn multiplied(&self, matrix: Matrix, instruction: &Instruction) -> String {
        let [m, n, k] = matrix.shape();
        let [a, b, _] = matrix.registers();
        let (first, second) = (instruction.inputs.get(..a), instruction.inputs.get(a..a + b));
        let (first, second) = (self.held(first.unwrap_or_default()), self.held(second.unwrap_or_default()));
        format!("mma {m}x{n}x{k} of a warp: {ACCUMULATORS} += {first} x {second}")
    }
}

/// The register operands of an access: after the address, if there is one, this many others.
fn given<'i>(instruction: &'i Instruction, access: &Access, more: usize) -> &'i [Register] {
    instruction.inputs.get(usize::from(access.addressed) + more..).unwrap_or_default()
}

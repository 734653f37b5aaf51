//! Programs written by hand, one instruction per line.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tilewright_layout::atoms::SwizzleMode;
use tilewright_layout::symbolic::Expr;

use crate::element::Element;
use crate::interpret::{Finding, Findings, Interpreter, Run, Schedule};
use crate::program::memory::{Access, Buffer, BufferId, Cache, Dimension, MapId, Role, Space, TensorMap};
use crate::program::operation::{Axis, Binary, Comparison, Fence, Number, Operation, Special};
use crate::program::register::{Register, Width};
use crate::program::{Branch, Carried, Instruction, Location, Loop, Program, Source, SourceId, Step};

/// A program that is being written.
pub(crate) struct Assembler {
    program: Program,
    bodies: Vec<Vec<Step>>,
    /// The predicate of the next instructions, if they have one.
    guard: Option<Register>,
}

impl Assembler {
    /// A grid of `blocks` blocks of `threads` threads.
    pub(crate) fn new(blocks: i64, threads: u32) -> Assembler {
        let program = Program {
            name: "test".to_string(),
            sizes: Vec::new(),
            buffers: Vec::new(),
            scalars: Vec::new(),
            maps: Vec::new(),
            narrow: Vec::new(),
            grid: [Expr::from(blocks), Expr::from(1), Expr::from(1)],
            threads,
            resident: 1,
            cluster: [1; 3],
            shared_bytes: 0,
            tile_counter: None,
            counted: None,
            widths: Vec::new(),
            body: Vec::new(),
            sources: Vec::new(),
        };
        Assembler { program, bodies: vec![Vec::new()], guard: None }
    }

    pub(crate) fn program(mut self) -> Program {
        self.program.body = self.bodies.remove(0);
        self.program
    }

    /// The program itself, to change fields for which there is no method.
    pub(crate) fn raw(&mut self) -> &mut Program {
        &mut self.program
    }

    pub(crate) fn global(&mut self, role: Role, element: Element, elements: i64) -> BufferId {
        let layout = format!("{elements}:1");
        let name = format!("t{}", self.program.buffers.len());
        self.buffer(Buffer {
            name,
            element,
            space: Space::Global,
            role,
            elements: Expr::from(elements),
            alignment: 128,
            start: 0,
            layout,
        })
    }

    pub(crate) fn shared(&mut self, element: Element, elements: i64) -> BufferId {
        let start = self.program.shared_bytes.next_multiple_of(1024);
        self.program.shared_bytes = start + elements as u32 * element.bytes();
        let layout = format!("{elements}:1");
        let name = format!("s{}", self.program.buffers.len());
        self.buffer(Buffer {
            name,
            element,
            space: Space::Shared,
            role: Role::Both,
            elements: Expr::from(elements),
            alignment: 1024,
            start,
            layout,
        })
    }

    pub(crate) fn buffer(&mut self, buffer: Buffer) -> BufferId {
        self.program.buffers.push(buffer);
        BufferId(self.program.buffers.len() as u32 - 1)
    }

    /// A tensor map of a matrix with rows of `columns` elements, and its box.
    pub(crate) fn map(&mut self, buffer: BufferId, extents: [i64; 2], boxed: [u32; 2], swizzle: SwizzleMode) -> MapId {
        let bytes = i64::from(self.program.buffer(buffer).element.bytes());
        let dimension = |extent: i64, stride: i64, boxed| Dimension {
            extent: Expr::from(extent),
            stride: Expr::from(stride),
            boxed,
        };
        let dimensions =
            vec![dimension(extents[0], bytes, boxed[0]), dimension(extents[1], extents[0] * bytes, boxed[1])];
        self.program.maps.push(TensorMap { buffer, dimensions, swizzle });
        MapId(self.program.maps.len() as u32 - 1)
    }

    pub(crate) fn register(&mut self, width: Width) -> Register {
        self.program.widths.push(width);
        Register(self.program.widths.len() as u32 - 1)
    }

    #[track_caller]
    pub(crate) fn source(&mut self, statement: &'static str) -> SourceId {
        self.program.sources.push(Source { statement, location: Location::caller() });
        SourceId(self.program.sources.len() as u32 - 1)
    }

    /// The step that was written last.
    pub(crate) fn last(&mut self) -> Option<&mut Step> {
        self.bodies.last_mut()?.last_mut()
    }

    fn step(&mut self, step: Step) {
        if let Some(body) = self.bodies.last_mut() {
            body.push(step);
        }
    }

    /// An instruction with outputs of these widths.
    #[track_caller]
    pub(crate) fn emit(&mut self, operation: Operation, inputs: &[Register], widths: &[Width]) -> Vec<Register> {
        let source = self.source("line");
        let outputs: Vec<Register> = widths.iter().map(|width| self.register(*width)).collect();
        let guard = self.guard;
        self.step(Step::Instruction(Instruction {
            operation,
            inputs: inputs.iter().copied().collect(),
            outputs: outputs.iter().copied().collect(),
            guard,
            source,
        }));
        outputs
    }

    #[track_caller]
    pub(crate) fn one(&mut self, operation: Operation, inputs: &[Register], width: Width) -> Register {
        self.emit(operation, inputs, &[width])[0]
    }

    /// Gives the next statements a predicate.
    #[track_caller]
    pub(crate) fn guarded(&mut self, predicate: Register, write: impl FnOnce(&mut Assembler)) {
        self.guard = Some(predicate);
        write(self);
        self.guard = None;
    }

    #[track_caller]
    pub(crate) fn constant(&mut self, value: i64) -> Register {
        self.one(Operation::Constant(value as u64), &[], Width::Bits32)
    }

    #[track_caller]
    pub(crate) fn wide_constant(&mut self, value: u64) -> Register {
        self.one(Operation::Constant(value), &[], Width::Bits64)
    }

    #[track_caller]
    pub(crate) fn thread(&mut self) -> Register {
        self.one(Operation::Special(Special::Thread), &[], Width::Bits32)
    }

    #[track_caller]
    pub(crate) fn block(&mut self) -> Register {
        self.one(Operation::Special(Special::Block(Axis::X)), &[], Width::Bits32)
    }

    #[track_caller]
    pub(crate) fn binary(&mut self, operation: Binary, a: Register, b: Register) -> Register {
        self.one(Operation::Binary(operation, Number::I32), &[a, b], Width::Bits32)
    }

    /// `a * operand + term`.
    #[track_caller]
    pub(crate) fn scaled(&mut self, a: Register, operand: i64, term: i64) -> Register {
        let (operand, term) = (self.constant(operand), self.constant(term));
        self.one(Operation::MultiplyAdd(Number::I32), &[a, operand, term], Width::Bits32)
    }

    /// Extends 32 bits to an address in global memory.
    #[track_caller]
    pub(crate) fn wide(&mut self, a: Register) -> Register {
        let one = self.constant(1);
        self.one(Operation::Binary(Binary::MultiplyWide, Number::I32), &[a, one], Width::Bits64)
    }

    #[track_caller]
    pub(crate) fn compare(&mut self, comparison: Comparison, a: Register, b: i64) -> Register {
        let b = self.constant(b);
        self.one(Operation::Compare(comparison, Number::I32), &[a, b], Width::Predicate)
    }

    pub(crate) fn access(&self, buffer: BufferId, bits: u32, count: u32) -> Access {
        Access { buffer, addressed: true, offset: 0, bits, count, cache: Cache::Default }
    }

    fn is_global(&self, buffer: BufferId) -> bool {
        self.program.buffer(buffer).space == Space::Global
    }

    /// Loads `count` pieces of `bits` bits at a 32-bit address.
    #[track_caller]
    pub(crate) fn load_vector(&mut self, buffer: BufferId, address: Register, bits: u32, count: u32) -> Vec<Register> {
        let held = std::mem::take(&mut self.guard);
        let address = if self.is_global(buffer) { self.wide(address) } else { address };
        self.guard = held;
        let width = Width::of_bits(bits.max(16)).unwrap();
        self.emit(Operation::Load(self.access(buffer, bits, count)), &[address], &vec![width; count as usize])
    }

    #[track_caller]
    pub(crate) fn store_vector(&mut self, buffer: BufferId, address: Register, bits: u32, values: &[Register]) {
        let held = std::mem::take(&mut self.guard);
        let address = if self.is_global(buffer) { self.wide(address) } else { address };
        self.guard = held;
        let operation = Operation::Store(self.access(buffer, bits, values.len() as u32));
        self.emit(operation, &[&[address], values].concat(), &[]);
    }

    /// Loads 32 bits.
    #[track_caller]
    pub(crate) fn load(&mut self, buffer: BufferId, address: Register) -> Register {
        self.load_vector(buffer, address, 32, 1)[0]
    }

    /// Stores 32 bits.
    #[track_caller]
    pub(crate) fn store(&mut self, buffer: BufferId, address: Register, value: Register) {
        self.store_vector(buffer, address, 32, &[value]);
    }

    #[track_caller]
    pub(crate) fn plain(&mut self, operation: Operation) {
        self.emit(operation, &[], &[]);
    }

    #[track_caller]
    pub(crate) fn barrier(&mut self) {
        self.plain(Operation::Barrier);
    }

    #[track_caller]
    pub(crate) fn fence(&mut self, fence: Fence) {
        self.plain(Operation::Fence(fence));
    }

    /// A loop whose bounds are constants or registers.
    #[track_caller]
    pub(crate) fn iterations(&mut self, from: Register, to: Register, write: impl FnOnce(&mut Assembler, Register)) {
        self.iterations_carrying(from, to, 1, &[], |assembler, index, _| {
            write(assembler, index);
            Vec::new()
        });
    }

    /// A loop with loop-carried values.
    #[track_caller]
    pub(crate) fn iterations_carrying(
        &mut self,
        from: Register,
        to: Register,
        step: u32,
        initial: &[Register],
        write: impl FnOnce(&mut Assembler, Register, &[Register]) -> Vec<Register>,
    ) -> Vec<Register> {
        let source = self.source("loop");
        let index = self.register(Width::Bits32);
        let widths: Vec<Width> = initial.iter().map(|register| self.program.width(*register)).collect();
        let current: Vec<Register> = widths.iter().map(|width| self.register(*width)).collect();
        self.bodies.push(Vec::new());
        let next = write(self, index, &current);
        let body = self.bodies.pop().unwrap();
        let results: Vec<Register> = widths.iter().map(|width| self.register(*width)).collect();
        let carried = (0..initial.len())
            .map(|at| Carried { initial: initial[at], current: current[at], next: next[at], result: results[at] })
            .collect();
        self.step(Step::Loop(Loop { index, from, to, step, carried, body, until: None, source }));
        results
    }

    #[track_caller]
    pub(crate) fn branch(
        &mut self,
        condition: Register,
        then: impl FnOnce(&mut Assembler),
        otherwise: impl FnOnce(&mut Assembler),
    ) {
        let source = self.source("branch");
        self.bodies.push(Vec::new());
        then(self);
        let then = self.bodies.pop().unwrap();
        self.bodies.push(Vec::new());
        otherwise(self);
        let otherwise = self.bodies.pop().unwrap();
        self.step(Step::Branch(Branch { condition, then, otherwise, chosen: Vec::new(), source }));
    }

    /// A body for the threads whose index is less than `end`.
    #[track_caller]
    pub(crate) fn below(&mut self, end: i64, write: impl FnOnce(&mut Assembler)) {
        let thread = self.thread();
        let condition = self.compare(Comparison::Less, thread, end);
        self.branch(condition, write, |_| {});
    }

    /// A body for one thread.
    #[track_caller]
    pub(crate) fn only(&mut self, thread: i64, write: impl FnOnce(&mut Assembler)) {
        let own = self.thread();
        let condition = self.compare(Comparison::Equal, own, thread);
        self.branch(condition, write, |_| {});
    }
}

thread_local! {
    /// For each code of a defect, the kernels of this thread's tests in which that defect was
    /// found, and no other.
    pub(crate) static FOUND: RefCell<BTreeMap<&'static str, BTreeSet<String>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Records a kernel with findings, if all are of one kind.
pub(crate) fn remember<'f>(program: &Program, findings: impl Iterator<Item = &'f Finding>) {
    let codes: BTreeSet<&'static str> = findings.map(|finding| finding.code()).collect();
    if let (1, Some(code)) = (codes.len(), codes.first()) {
        let text = format!("{:?} {:?}", program.body, program.buffers);
        FOUND.with_borrow_mut(|found| found.entry(*code).or_default().insert(text));
    }
}

/// The runs of a program under every schedule, with random inputs.
pub(crate) fn runs(program: &Program) -> Vec<Result<Run, Findings>> {
    let mut interpreter = Interpreter::new(program, &[]).unwrap_or_else(|error| panic!("{error}"));
    interpreter.fill(3);
    let runs: Vec<_> = Schedule::ALL.into_iter().map(|schedule| interpreter.run(schedule)).collect();
    remember(program, runs.iter().filter_map(|run| run.as_ref().err()).flat_map(|findings| findings.iter()));
    runs
}

/// Checks that every schedule finds a defect of this kind, at a line of the program, and no other
/// kind.
#[track_caller]
pub(crate) fn finds(program: &Program, code: &str) {
    for (schedule, run) in Schedule::ALL.iter().zip(runs(program)) {
        match run {
            Ok(_) => panic!("nothing found under {schedule}, and {code} expected"),
            Err(findings) => {
                for finding in findings.iter() {
                    assert_eq!(finding.code(), code, "{finding}");
                    assert!(finding.to_string().starts_with(code), "{finding}");
                }
            }
        }
    }
}

/// Checks that nothing is found under any schedule, and that all schedules leave the same results.
#[track_caller]
pub(crate) fn is_right(program: &Program) -> Run {
    let runs: Vec<Run> =
        runs(program).into_iter().map(|run| run.unwrap_or_else(|findings| panic!("{}", findings[0]))).collect();
    for other in &runs {
        for tensor in 0..program.tensors().count() {
            assert_eq!(runs[0].bytes(tensor).unwrap(), other.bytes(tensor).unwrap(), "tensor {tensor}");
        }
    }
    crate::cost::tests::agrees(program, &runs[0]);
    runs.into_iter().next().unwrap()
}

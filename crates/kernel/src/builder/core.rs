//! The tables of a program that is being written.
//!
//! Law: an instruction without side effects occurs once in a program, in the outermost body in
//! which its inputs exist; a conversion of elements occurs once between two barriers. So
//! loop-invariant values are computed before the loop, and common subexpressions once. Computations
//! within [`super::Build::in_place`] are not hoisted.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;
use tilewright_layout::Layout;
use tilewright_layout::symbolic::{Declarations, Expr, Parameter};

use super::state::{LastBlock, SchedulerState, Scratch, Team, Write};
use crate::error::Reason;
use crate::program::memory::{Buffer, BufferId, TensorMap};
use crate::program::operation::{Axis, Operation, Special};
use crate::program::register::{Register, Width};
use crate::program::scalar::Scalar;
use crate::program::{Instruction, Registers, Source, SourceId, Step};

/// The values that were computed in one body.
#[derive(Default)]
pub(crate) struct Scope {
    pub(crate) steps: Vec<Step>,
    known: HashMap<(Operation, Registers), Registers>,
    pub(super) expressions: HashMap<(Expr, Width), Register>,
    /// The number of barriers of the block in this body, without those in front of areas of shared
    /// memory.
    pub(super) barriers: usize,
    /// The barriers in front of areas.
    pub(super) before_areas: Vec<BarrierBefore>,
}

/// A barrier in front of an area of shared memory that a body allocates.
pub(super) struct BarrierBefore {
    /// The index of the step.
    pub(super) step: usize,
    pub(super) area: BufferId,
    /// The number of the body's barriers before the area was freed; None if it was not.
    pub(super) returned: Option<usize>,
}

/// A number that threads compute or a loop counts, as a parameter of the layout algebra.
#[derive(Clone)]
pub(crate) struct Variable {
    pub(crate) parameter: Parameter,
    /// A strict upper bound, in addition to its facts.
    pub(crate) below: Option<Expr>,
    /// The 32-bit register that holds it.
    pub(crate) register: Register,
}

/// The location of an element of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// It has no value yet.
    Empty,
    /// A register of its own. Elements of 8 bits are in the low half of a 16-bit register.
    Whole(Register),
    /// One of the elements in a 32-bit register.
    Part(Register, u8),
}

/// The elements of a fragment.
#[derive(Debug, Clone)]
pub(crate) struct FragmentCell {
    /// The number of bits of an element; 1 for predicates.
    pub(crate) bits: u32,
    pub(crate) slots: Vec<Slot>,
}

pub(crate) struct Core {
    pub(crate) names: Declarations,
    pub(crate) sizes: Vec<Parameter>,
    /// The sizes that statements name, and the statement that named each first.
    pub(crate) asked: Vec<(Parameter, Source)>,
    pub(crate) buffers: Vec<Buffer>,
    /// The layouts of the buffers, before their swizzles.
    pub(crate) forms: Vec<Layout<Expr>>,
    /// The stores to outputs.
    pub(crate) writes: Vec<Write>,
    /// For each open body of a condition, the condition and the side.
    pub(crate) conditions: Vec<(Register, bool)>,
    /// For each open loop, the index and the number of iterations.
    pub(crate) iterations: Vec<(Parameter, Expr)>,
    pub(crate) scalars: Vec<Scalar>,
    /// Expressions that are computed in 32 bits; the launch checks that they fit.
    pub(crate) narrow: Vec<Expr>,
    pub(crate) widths: Vec<Width>,
    /// The depth of the body in which each register exists.
    homes: Vec<usize>,
    /// For each register, whether it is computed from the index of the thread, as far as
    /// instructions without side effects show.
    of_thread: Vec<bool>,
    /// For predicates that come from comparisons of indices, the comparisons: each first number is
    /// less than the second.
    pub(super) compared: HashMap<Register, Vec<(Expr, Expr)>>,
    pub(crate) scopes: Vec<Scope>,
    /// The least depth of the body in which something is recomputed. 0 means the outermost body in
    /// which its inputs exist.
    pub(crate) least_depth: usize,
    pub(crate) variables: Vec<Variable>,
    pub(crate) cells: Vec<FragmentCell>,
    pub(crate) grid: [Option<Expr>; 3],
    /// Whether the author has set the number of blocks along an axis. If not, views that are tiled
    /// by block determine it.
    pub(crate) said: [bool; 3],
    /// Facts that were proved with a number of blocks that may still change: that one number is
    /// less than another, or that one is not negative.
    pub(crate) relied: RefCell<HashSet<(Option<Expr>, Expr)>>,
    pub(crate) blocks: [Option<usize>; 3],
    pub(crate) threads: Option<u32>,
    pub(crate) resident: u32,
    /// The number of blocks of a cluster along each axis, once it is set or relied on.
    pub(crate) cluster: Option<[u32; 3]>,
    /// The rank of the block in its cluster.
    pub(crate) rank: Option<Expr>,
    pub(crate) thread: Option<usize>,
    /// The role that is being written.
    pub(crate) team: Option<Team>,
    /// The number of named barriers in use, for roles and for meetings.
    pub(crate) barriers: u32,
    /// The named barriers of roles, by their first warp and the warp after their last.
    pub(crate) of_roles: HashMap<(u32, u32), u32>,
    /// The register reallocations of roles: the first thread, the number of threads, and the
    /// registers of each thread.
    pub(crate) shares: Vec<(i64, u32, u32)>,
    pub(crate) maps: Vec<TensorMap>,
    /// The scheduler from which clusters claim tiles.
    pub(crate) tile_counter: Option<SchedulerState>,
    /// The state of [`super::Build::when_last`], if the kernel has it.
    pub(crate) last_block: Option<LastBlock>,
    /// Registers that belong to accumulators: wgmma may add to them.
    pub(crate) sums: HashSet<Register>,
    pub(crate) digits: HashMap<(Expr, i64, i64), Expr>,
    /// Clamped variables: each equals an index where that is from 0 to a maximum.
    pub(crate) limited: Vec<(Parameter, Expr, i64)>,
    /// Registers that are aliases of others.
    pub(crate) aliases: HashMap<Register, Register>,
    pub(crate) shared_bytes: u32,
    pub(crate) scratch: Scratch,
    pub(crate) sources: Vec<Source>,
    pub(crate) source: SourceId,
}

impl Core {
    pub(crate) fn new(source: Source) -> Core {
        Core {
            names: Declarations::new(),
            sizes: Vec::new(),
            asked: Vec::new(),
            buffers: Vec::new(),
            forms: Vec::new(),
            writes: Vec::new(),
            conditions: Vec::new(),
            iterations: Vec::new(),
            scalars: Vec::new(),
            narrow: Vec::new(),
            widths: Vec::new(),
            homes: Vec::new(),
            of_thread: Vec::new(),
            compared: HashMap::new(),
            scopes: vec![Scope::default()],
            least_depth: 0,
            variables: Vec::new(),
            cells: Vec::new(),
            grid: [None, None, None],
            said: [false; 3],
            relied: RefCell::default(),
            blocks: [None; 3],
            threads: None,
            resident: 1,
            cluster: None,
            rank: None,
            thread: None,
            team: None,
            barriers: 0,
            of_roles: HashMap::new(),
            shares: Vec::new(),
            maps: Vec::new(),
            tile_counter: None,
            last_block: None,
            sums: HashSet::new(),
            digits: HashMap::new(),
            limited: Vec::new(),
            aliases: HashMap::new(),
            shared_bytes: 0,
            scratch: Scratch::default(),
            sources: vec![source],
            source: SourceId(0),
        }
    }

    /// The number of threads, if it was set.
    pub(crate) fn is_said(&self) -> Result<u32, Reason> {
        self.threads.ok_or(Reason::Unsaid {
            what: "the number of threads",
            help: "say it with `k.threads(256)`, or use a tiled copy or tiled MMA",
        })
    }

    /// Begins a statement. It is the source of the instructions that follow.
    pub(crate) fn begin(&mut self, source: Source) {
        if self.sources.last() != Some(&source) {
            self.sources.push(source);
        }
        self.source = SourceId(self.sources.len() as u32 - 1);
    }

    /// The depth of the body that is being written.
    pub(crate) fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    /// A new register that exists from a body on.
    pub(crate) fn register_at(&mut self, width: Width, depth: usize) -> Register {
        let register = Register(self.widths.len() as u32);
        self.widths.push(width);
        self.homes.push(depth);
        self.of_thread.push(false);
        register
    }

    /// Whether a register is computed from the index of the thread by instructions without side
    /// effects. The result of a shuffle does not count, because it may be the same in the whole
    /// warp.
    pub(super) fn is_computed_of_thread(&self, register: Register) -> bool {
        self.of_thread[register.index()]
    }

    pub(crate) fn width(&self, register: Register) -> Width {
        self.widths[register.index()]
    }

    pub(crate) fn home(&self, register: Register) -> usize {
        self.homes[register.index()]
    }

    /// Appends an instruction that has side effects, or that depends on such instructions, to the
    /// body that is being written.
    pub(crate) fn effect(
        &mut self,
        operation: Operation,
        inputs: impl IntoIterator<Item = Register>,
        outputs: &[Width],
        guard: Option<Register>,
    ) -> Registers {
        let depth = self.depth();
        if matches!(operation, Operation::Barrier | Operation::ClusterWait) {
            if depth == 0 {
                self.scratch.settle();
            }
            if operation == Operation::Barrier && guard.is_none() {
                self.scopes[depth].barriers += 1;
            }
            self.forget_conversions();
        }
        let outputs: Registers = outputs.iter().map(|width| self.register_at(*width, depth)).collect();
        let inputs = inputs.into_iter().collect();
        let source = self.source;
        let instruction = Instruction { operation, inputs, outputs: outputs.clone(), guard, source };
        self.scopes[depth].steps.push(Step::Instruction(instruction));
        outputs
    }

    /// Lets conversions be repeated from here on. Across a wait, keeping a narrow register and
    /// converting again costs less than keeping a wide one.
    fn forget_conversions(&mut self) {
        for scope in &mut self.scopes {
            scope.known.retain(|(operation, _), _| !matches!(operation, Operation::Convert { .. } | Operation::Unpack));
        }
    }

    /// The results of an instruction without side effects. It is computed once, in the outermost
    /// body in which its inputs exist, or in the body that [`super::Build::in_place`] determines.
    pub(crate) fn pure_many(
        &mut self,
        operation: Operation,
        inputs: impl IntoIterator<Item = Register>,
        outputs: &[Width],
    ) -> Registers {
        let inputs: Registers = inputs.into_iter().collect();
        let depth = inputs.iter().map(|input| self.home(*input)).max().unwrap_or(0);
        let key = (operation, inputs);
        let here = depth.max(self.least_depth);
        if let Some(known) = self.scopes[depth..=here].iter().find_map(|scope| scope.known.get(&key)) {
            return known.clone();
        }
        let depth = here;
        let outputs: Registers = outputs.iter().map(|width| self.register_at(*width, depth)).collect();
        let (operation, inputs) = key.clone();
        let of_thread = match &operation {
            Operation::Special(special) => matches!(special, Special::Thread | Special::Lane),
            _ => inputs.iter().any(|input| self.of_thread[input.index()]),
        };
        for output in &outputs {
            self.of_thread[output.index()] = of_thread;
        }
        let source = self.source;
        let instruction = Instruction { operation, inputs, outputs: outputs.clone(), guard: None, source };
        self.scopes[depth].steps.push(Step::Instruction(instruction));
        self.scopes[depth].known.insert(key, outputs.clone());
        outputs
    }

    /// As [`Core::pure_many`], for one result.
    pub(crate) fn pure(
        &mut self,
        operation: Operation,
        inputs: impl IntoIterator<Item = Register>,
        output: Width,
    ) -> Register {
        self.pure_many(operation, inputs, &[output])[0]
    }

    pub(crate) fn constant(&mut self, bits: u64, width: Width) -> Register {
        // The width is part of a constant's key: equal bits of another width are a different
        // constant.
        let known = self.scopes[0].known.get(&(Operation::Constant(bits), SmallVec::new())).cloned();
        if let Some(register) = known.iter().flatten().find(|register| self.width(**register) == width) {
            return *register;
        }
        let register = self.register_at(width, 0);
        let source = self.source;
        let outputs: Registers = [register].into_iter().collect();
        let operation = Operation::Constant(bits);
        let instruction =
            Instruction { operation: operation.clone(), inputs: SmallVec::new(), outputs, guard: None, source };
        self.scopes[0].steps.push(Step::Instruction(instruction));
        self.scopes[0].known.entry((operation, SmallVec::new())).or_default().push(register);
        register
    }

    pub(crate) fn special(&mut self, special: Special) -> Register {
        self.outermost(|core| core.pure(Operation::Special(special), [], Width::Bits32))
    }

    /// Computes something in the outermost body that has its inputs, because other bodies may use
    /// it, too.
    pub(super) fn outermost<T>(&mut self, compute: impl FnOnce(&mut Core) -> T) -> T {
        let least = std::mem::take(&mut self.least_depth);
        let found = compute(self);
        self.least_depth = least;
        found
    }

    /// The register of a scalar argument of the launch. Equal scalars share a register.
    pub(crate) fn scalar(&mut self, scalar: Scalar) -> Register {
        let width = Width::of_bits(scalar.bits()).unwrap_or(Width::Bits64);
        let number = match self.scalars.iter().position(|own| *own == scalar) {
            Some(number) => number,
            None => {
                self.scalars.push(scalar);
                self.scalars.len() - 1
            }
        };
        self.outermost(|core| core.pure(Operation::Scalar(number), [], width))
    }

    /// The variable that belongs to a parameter.
    pub(crate) fn variable(&self, parameter: &Parameter) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.parameter.stands_for(parameter))
    }

    /// The axis along which an expression is the index of the block; None if it is not.
    pub(crate) fn axis_of(&self, expr: &Expr) -> Option<Axis> {
        let is = |axis: &Axis| {
            let number = self.blocks[*axis as usize]?;
            (Expr::from(self.variables[number].parameter.clone()) == *expr).then_some(*axis)
        };
        Axis::ALL.iter().find_map(is)
    }
}

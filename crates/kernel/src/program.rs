//! A kernel as instructions: the program of one thread, which all threads execute.
//!
//! Law: there is one program, and everything reads it: the interpreter executes it, the PTX writer
//! prints it, the cost report counts it. So the checked program is the one that runs.
//!
//! It is in SSA form with structured control flow. A register is written by one instruction, or is
//! a loop-carried value, or is selected by a condition; a register that is written inside a body is
//! read only there. The memory operand of an instruction is a buffer of the program, and addresses
//! are in bytes from the beginning of the buffer ([`memory`]). Values that depend only on sizes
//! known at launch are numbers that the host passes ([`scalar`]). Each instruction has the
//! statement of the kernel's author that it came from ([`Source`]).

mod location;
pub mod memory;
pub mod operation;
pub mod register;
pub mod scalar;
mod target;
pub mod verify;
pub mod wgmma;

use std::fmt;

use smallvec::SmallVec;
use tilewright_layout::symbolic::{Expr, Parameter};

use crate::machine::Multiprocessor;
use crate::target::Target;
pub use location::Location;
use memory::{Buffer, BufferId, MapId, TensorMap, Use};
use operation::Operation;
use register::{Register, Width};
use scalar::Scalar;

/// Lanes of a warp.
pub const WARP_LANES: usize = 32;

/// The bytes of a chunk: bulk copies and stores move whole chunks.
pub const BULK_CHUNK_BYTES: u32 = 16;

/// The registers of one instruction.
pub type Registers = SmallVec<[Register; 4]>;

/// A statement of the kernel's author, by its index in [`Program::sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub(crate) u32);

impl SourceId {
    /// Its index in [`Program::sources`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A statement of the kernel's author: its kind, and its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source {
    /// The kind of statement: `copy`, `mma`, `barrier`, ...
    pub statement: &'static str,
    /// The location of the author's call.
    pub location: Location,
}

impl Source {
    /// Whether another statement is written on the same line.
    ///
    /// ```
    /// use tilewright_kernel::program::{Location, Source};
    ///
    /// let at = |column| Source { statement: "load", location: Location::new("kernel.py", 7, column, None) };
    /// assert!(at(5).is_beside(&at(20)));
    /// ```
    pub fn is_beside(&self, other: &Source) -> bool {
        (self.location.file(), self.location.line()) == (other.location.file(), other.location.line())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.statement, self.location)
    }
}

/// One instruction.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// The operation, which determines the kinds of its registers.
    pub operation: Operation,
    /// The input registers.
    pub inputs: Registers,
    /// The output registers.
    pub outputs: Registers,
    /// A predicate. In threads in which it is false, the instruction does nothing, and its outputs
    /// are 0. Only loads, stores, atomic operations, copies and arrivals have one.
    pub guard: Option<Register>,
    /// The statement that it came from.
    pub source: SourceId,
}

/// A value that a loop carries from one iteration to the next.
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    /// Its value before the first iteration.
    pub initial: Register,
    /// Its value at the beginning of an iteration.
    pub current: Register,
    /// Its value at the end of an iteration; written inside of the loop, or before it.
    pub next: Register,
    /// Its value after the last iteration.
    pub result: Register,
}

/// A value that a condition selects.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    /// The value if the condition is true.
    pub then: Register,
    /// The value if it is false.
    pub otherwise: Register,
    /// The selected value.
    pub result: Register,
}

/// One step of a body.
#[derive(Debug, Clone)]
pub enum Step {
    /// An instruction.
    Instruction(Instruction),
    /// A loop. Its number of iterations must be the same for all threads of the block. The
    /// interpreter checks that.
    Loop(Loop),
    /// A condition: each thread executes one of two bodies.
    Branch(Branch),
}

/// A loop: `for index in (from..to).step_by(step)`.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The loop variable, 32 bits.
    pub index: Register,
    /// Its first value.
    pub from: Register,
    /// The end: the loop variable is less than this, by signed comparison.
    pub to: Register,
    /// The increment, which is positive.
    pub step: u32,
    /// The loop-carried values.
    pub carried: Vec<Carried>,
    /// The body.
    pub body: Vec<Step>,
    /// A predicate at the end of an iteration, the same in all threads of the block: if it is true,
    /// this was the last iteration. Written inside of the loop, or before it.
    pub until: Option<Register>,
    /// The statement that it came from.
    pub source: SourceId,
}

/// Two bodies, of which each thread executes one by its predicate.
#[derive(Debug, Clone)]
pub struct Branch {
    /// The condition.
    pub condition: Register,
    /// The body if it is true.
    pub then: Vec<Step>,
    /// The body if it is false.
    pub otherwise: Vec<Step>,
    /// The values that the condition selects.
    pub chosen: Vec<Chosen>,
    /// The statement that it came from.
    pub source: SourceId,
}

/// The counter from which clusters claim indices ([`Operation::Claim`]). The cost report needs it:
/// it assumes that clusters claim indices in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileCounter {
    /// The shared array from which the threads of a block read indices, with an element for each
    /// index of a message.
    pub numbers: BufferId,
    /// The number of valid indices of the first message. In each later message, only the first
    /// index is valid.
    pub first: u32,
    /// The end of the indices, 32 bits. A message holds it if no index is left.
    pub count: Register,
}

/// The program of one thread, which all threads of a grid execute.
///
/// [`Kernel::build`](crate::Kernel::build) makes it. [`interpret`](crate::interpret) executes it,
/// [`ptx::write`](crate::ptx::write) prints it, [`Program::cost`] counts it.
///
/// ```
/// use tilewright_kernel::Kernel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let zeros = Kernel::build("zeros", |k| {
///     let y = k.output::<f32>("y", "(M,4):(4,1)")?;
///     k.threads(32)?;
///     let row = y.local_tile((32, 4), k.block("(x,0)")?)?.thread_part()?;
///     let zeros = row.fragment()?;
///     zeros.clear();
///     row.store_predicated(&zeros)
/// })?;
/// let program = zeros.program();
/// assert_eq!((program.name.as_str(), program.threads, program.shared_bytes), ("zeros", 32, 0));
/// assert_eq!(program.grid[0].to_string(), "ceil(M/32)"); // blocks, known once M is
/// assert_eq!(program.tensors().count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Program {
    /// The name of the kernel.
    pub name: String,
    /// The sizes that become known at launch, with their facts.
    pub sizes: Vec<Parameter>,
    /// Global tensors first, in the order in which a launch passes them; then shared arrays.
    pub buffers: Vec<Buffer>,
    /// The numbers that a launch passes after the tensors.
    pub scalars: Vec<Scalar>,
    /// The tensor maps that a launch passes after the numbers.
    pub maps: Vec<TensorMap>,
    /// Expressions that threads compute as signed 32-bit integers, at their minimum or maximum. A
    /// launch in which one of these does not fit is refused.
    pub narrow: Vec<Expr>,
    /// The number of blocks along each axis.
    pub grid: [Expr; 3],
    /// The number of threads of a block.
    pub threads: u32,
    /// The requested number of resident blocks of a multiprocessor, which limits the registers of a
    /// thread.
    pub resident: u32,
    /// The number of blocks of a cluster along each axis.
    pub cluster: [u32; 3],
    /// The bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// The counter from which clusters claim indices, if they do.
    pub tile_counter: Option<TileCounter>,
    /// If blocks are counted ([`Operation::CountBlock`]), the shared array from which the threads
    /// of a block read how many blocks were counted before. The cost report assumes that blocks are
    /// counted in order.
    pub counted: Option<BufferId>,
    /// The width of each register.
    pub widths: Vec<Width>,
    /// The code of a thread.
    pub body: Vec<Step>,
    /// The statements that the instructions came from.
    pub sources: Vec<Source>,
}

/// The registers of a multiprocessor, which are the same number on every target.
const REGISTERS: u32 = Multiprocessor::of(Target::Sm80).registers;
/// The most registers of a thread, a multiple of 8.
const THREAD_REGISTERS: u32 = 248;

/// The registers of a thread when a block starts, by the threads of a block and the resident blocks
/// of a multiprocessor.
pub(crate) fn entry_registers(threads: u32, resident: u32) -> u32 {
    let share = REGISTERS / (threads.next_multiple_of(WARP_LANES as u32) * resident).max(1);
    (share / 8 * 8).min(THREAD_REGISTERS)
}

impl Program {
    /// All instructions. Those of loops and conditions come after those around them.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        let (mut open, mut steps) = (Vec::new(), self.body.iter());
        std::iter::from_fn(move || {
            loop {
                match steps.next() {
                    Some(Step::Instruction(instruction)) => return Some(instruction),
                    Some(Step::Loop(looped)) => open.push(&looped.body),
                    Some(Step::Branch(branch)) => open.extend([&branch.then, &branch.otherwise]),
                    None => steps = open.pop()?.iter(),
                }
            }
        })
    }

    /// The buffer with this index.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.index()]
    }

    /// The map with this index.
    pub fn map(&self, id: MapId) -> &TensorMap {
        &self.maps[id.index()]
    }

    /// The statement with this index.
    pub fn source(&self, id: SourceId) -> &Source {
        &self.sources[id.index()]
    }

    /// The width of a register.
    pub fn width(&self, register: Register) -> Width {
        self.widths[register.index()]
    }

    /// The registers of a thread at launch, if roles reallocate them: an equal share among the
    /// resident blocks, rounded down to a multiple of 8.
    pub(crate) fn entry_registers(&self) -> u32 {
        entry_registers(self.threads, self.resident)
    }

    /// The most registers of a thread if no role reallocates them. A quarter of a multiprocessor
    /// has a quarter of the registers, and every fourth warp of the resident blocks.
    pub(crate) fn quarter_registers(&self) -> u32 {
        let warps = self.threads.div_ceil(WARP_LANES as u32) * self.resident;
        entry_registers(warps.next_multiple_of(4) * WARP_LANES as u32, 1)
    }

    /// The number of blocks of a cluster.
    pub fn cluster_size(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// The coordinate of the block with a rank in its cluster. Ranks count the first axis fastest.
    pub(crate) fn place_in_cluster(&self, rank: u32) -> [u32; 3] {
        let [x, y, _] = self.cluster;
        [rank % x, rank / x % y, rank / x / y]
    }

    /// The axis along which clusters do not divide a grid, as text; None if they divide it.
    pub(crate) fn undivided(&self, grid: [u32; 3]) -> Option<String> {
        let axes = ["x", "y", "z"].into_iter().zip(grid.into_iter().zip(self.cluster));
        let (axis, (blocks, cluster)) = axes.into_iter().find(|(_, (blocks, cluster))| blocks % cluster != 0)?;
        Some(format!("the grid has {blocks} blocks along {axis}, in clusters of {cluster}"))
    }

    /// Whether a launch may begin before the previous launches on the stream have finished, because
    /// the program itself waits for them.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// let kernel = Kernel::build("waits", |k| {
    ///     k.threads(32)?;
    ///     k.wait_launches();
    ///     Ok(())
    /// })?;
    /// assert!(kernel.program().waits_for_launches());
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn waits_for_launches(&self) -> bool {
        self.has(|operation| matches!(operation, Operation::WaitLaunches))
    }

    /// Whether a launch needs a counter, from which clusters claim indices or at which blocks are
    /// counted.
    pub(crate) fn has_count(&self) -> bool {
        self.has(|operation| matches!(operation, Operation::Claim | Operation::CountBlock))
    }

    /// Whether some instruction has an operation that satisfies `kind`.
    pub(crate) fn has(&self, kind: impl Fn(&Operation) -> bool) -> bool {
        fn any(steps: &[Step], kind: &dyn Fn(&Operation) -> bool) -> bool {
            steps.iter().any(|step| match step {
                Step::Instruction(instruction) => kind(&instruction.operation),
                Step::Loop(looped) => any(&looped.body, kind),
                Step::Branch(branch) => any(&branch.then, kind) || any(&branch.otherwise, kind),
            })
        }
        any(&self.body, &kind)
    }

    /// The use of each tensor by instructions, in the order of the launch arguments.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// let kernel = Kernel::build("copies", |k| {
    ///     k.threads(32)?;
    ///     let x = k.tensor_of(tilewright_kernel::Element::F32, "x", "(32,4):(4,1)", Role::Both)?;
    ///     let y = k.tensor_of(tilewright_kernel::Element::F32, "y", "(32,4):(4,1)", Role::Both)?;
    ///     y.thread_part()?.store(&x.thread_part()?.load()?)
    /// })?;
    /// # use tilewright_kernel::program::memory::Role;
    /// let uses = kernel.program().uses();
    /// assert!(uses[0].read && !uses[0].written && !uses[1].read && uses[1].written);
    /// assert_eq!(uses[0].fewest_bytes, 16);
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn uses(&self) -> Vec<Use> {
        let mut found = vec![Use::default(); self.buffers.len()];
        let mut used = |buffer: BufferId, read: bool, written: bool, bytes: u32| {
            if let Some(own) = found.get_mut(buffer.index()) {
                let fewest = if own.fewest_bytes == 0 { bytes } else { own.fewest_bytes.min(bytes) };
                *own = Use { read: own.read | read, written: own.written | written, fewest_bytes: fewest };
            }
        };
        for instruction in self.instructions() {
            match &instruction.operation {
                // The other access is to shared memory.
                Operation::BulkLoad { map, .. } => used(self.map(*map).buffer, true, false, BULK_CHUNK_BYTES),
                Operation::BulkStore { map, .. } => used(self.map(*map).buffer, false, true, BULK_CHUNK_BYTES),
                Operation::CopyAsync { from, .. } => used(from.buffer, true, false, from.bytes()),
                Operation::Load(access) => used(access.buffer, true, false, access.bytes()),
                Operation::Store(access) => used(access.buffer, false, true, access.bytes()),
                operation => operation.accesses().for_each(|own| used(own.buffer, true, true, own.bytes())),
            }
        }
        let tensors = self.buffers.iter().zip(found).filter(|(buffer, _)| buffer.space == memory::Space::Global);
        tensors.map(|(_, own)| own).collect()
    }

    /// The buffers in global memory, in the order in which a launch passes them.
    pub fn tensors(&self) -> impl Iterator<Item = &Buffer> {
        self.buffers.iter().filter(|buffer| buffer.space == memory::Space::Global)
    }
}

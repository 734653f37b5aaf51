//! The cost of a kernel, estimated before it runs.
//!
//! Law: every number says how it was obtained. Shared memory, threads and occupancy follow from the
//! program and the machine. Registers are an [estimate](Cost::registers). Accesses and instructions
//! are counted by executing blocks with their addresses, as the interpreter does, but without
//! memory. If there are few blocks, all are executed, and the counts equal the interpreter's.
//! Otherwise some blocks of each part of the grid are, and [`Counted::walked`] says how many.
//! Instructions that depend on the contents of memory are counted as upper bounds, and marked;
//! lower bounds are counted as well ([`Counted::least`]).
//!
//! Sectors are counted for tensors that begin at a multiple of 128 bytes, as the driver allocates
//! them. A [`Bound`] is a lower bound of the launch time by one resource of the machine, for
//! tensors in device memory and not in a cache; the largest one is the roofline. It follows from
//! lower bounds of counts, and is as exact as these: if blocks or iterations were sampled, it is
//! approximate.

mod count;
mod in_flight;
mod occupancy;
mod registers;
mod report;
mod requests;
mod stores;
#[cfg(test)]
pub(crate) mod tests;
mod walk;

use std::fmt;

pub use in_flight::InFlight;
pub use occupancy::{Limit, Occupancy};
pub use requests::{Phase, Request};

pub use crate::machine::{Machine, Multiprocessor, Rates};

use crate::interpret::code::{Code, Node};
use crate::interpret::{AccessCount, Class, SetupError};
use crate::program::operation::{Binary, Number, Operation};
use crate::program::{Program, Source};

/// The cost of a launch of a kernel on a machine: see [`Program::cost`].
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The machine.
    pub machine: Machine,
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// An estimate of the 32-bit registers of a thread: the most that are live at the same time, in
    /// the order of the program. An assembler takes more if the number of blocks that should be
    /// resident ([`Program::resident`]) leaves more, to issue loads early.
    pub registers: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// The resident blocks of a multiprocessor, with the estimated registers.
    pub occupancy: Occupancy,
    /// The sum over all tensors of the bytes from the first to the last element.
    pub tensor_bytes: u64,
    /// Bytes of global memory in flight at the same time, in the order of the program. None if it
    /// is not known what the launch executes, or where TMA boxes are.
    ///
    /// A load counts from its instruction until one of its registers is read, and a copy until it
    /// is waited for. Each warp of a multiprocessor's blocks counts with its maximum. So more bytes
    /// than this can be in flight only if an assembler issues loads earlier than the program does.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    /// use tilewright_kernel::cost::Machine;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sums = Kernel::build("sums", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(N,4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
    ///     let z = k.input::<f32>("z", "(N,4):(4,1)")?;
    ///     k.threads(128)?;
    ///     let block = k.block("(x,0)")?;
    ///     let x = x.local_tile((128, 4), block.clone())?.thread_part()?.load_predicated()?;
    ///     let z = z.local_tile((128, 4), block.clone())?.thread_part()?.load_predicated()?;
    ///     let y = y.local_tile((128, 4), block)?.thread_part()?;
    ///     y.store_predicated(&x.zip(&z, |x, z| Ok(x + z))?)
    /// })?;
    /// let h200 = Machine::named("H200").unwrap();
    /// let held = sums.program().cost(&h200, &[("N", 1 << 24)])?.in_flight.unwrap();
    /// // Each thread has loaded two times 16 bytes before it adds.
    /// assert_eq!((held.block_bytes, held.blocks), (128 * 32, 16));
    /// assert!(held.bytes() > h200.in_flight().unwrap());
    /// // With one block for each multiprocessor, too few bytes are in flight.
    /// let few = sums.program().cost(&h200, &[("N", 132 * 128)])?.in_flight.unwrap();
    /// assert!(few.bytes() < h200.in_flight().unwrap());
    /// # Ok(())
    /// # }
    /// ```
    pub in_flight: Option<InFlight>,
    /// The counts of the launch, or why they are unknown.
    pub counted: Result<Counted, Uncounted>,
}

/// The counts of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Blocks of the grid.
    pub blocks: u64,
    /// The number of executed blocks. If it is that of all blocks, the counts are exact, unless
    /// iterations of loops were extrapolated.
    pub walked: u64,
    /// Whether iterations of long loops were executed in part and extrapolated.
    pub multiplied: bool,
    /// The counts of each memory instruction, in the order of the program.
    pub accesses: Vec<AccessCount>,
    /// Whether a condition depends on memory. Then the instructions of both branches are counted.
    pub both_sides: bool,
    /// Warp instructions by [`Class`]: an upper bound.
    pub executed: Vec<(Class, u64)>,
    /// Warp instructions by [`Class`] without code under conditions that depend on memory: a lower
    /// bound.
    pub executed_least: Vec<(Class, u64)>,
    /// Arithmetic operations; a multiply-add counts as two: an upper bound.
    pub operations: Operations,
    /// Arithmetic operations without code under conditions that depend on memory: a lower bound.
    pub least: Operations,
    /// A lower bound of the bytes of tensors that are accessed, each counted once.
    pub touched_bytes: u64,
}

/// Floating-point operations, and operations of matrix instructions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Operations {
    /// Operations of matrix instructions.
    pub matrix: f64,
    /// Operations of ordinary instructions on f16, bf16 and f32.
    pub f32: f64,
    /// Operations of ordinary instructions on f64.
    pub f64: f64,
    /// Of the f32 operations, those on pairs of f16 or bf16.
    pairs: f64,
    /// The seconds that the matrix instructions take at the machine's rate.
    matrix_seconds: f64,
    /// Bytes of shared memory that wgmma read.
    factor_bytes: f64,
}

impl Operations {
    /// The sum of all operations.
    pub fn total(&self) -> f64 {
        self.matrix + self.f32 + self.f64
    }
}

/// Why it is unknown what a launch executes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uncounted {
    /// The number of iterations of a loop comes from memory, or from a scalar argument.
    Loop {
        /// The loop.
        source: Source,
    },
    /// One block executes more instructions than the limit.
    Steps {
        /// The limit, in warp instructions.
        limit: u64,
    },
}

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uncounted::Loop { source } => write!(f, "how often the loop iterates is known at launch alone: {source}"),
            Uncounted::Steps { limit } => write!(f, "a block executes more than {limit} instructions of warps"),
        }
    }
}

/// The least time of an operation on one number of a pair of f16 or bf16, relative to one on f32:
/// 256 results per cycle and multiprocessor instead of 64, on capability 8.0 (CUDA C++ programming
/// guide, throughput of arithmetic instructions). On other capabilities it is more.
const PAIR_SHARE: f64 = 0.25;

/// A lower bound of the time of a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// The resource that limits it.
    pub what: &'static str,
    /// The time in seconds.
    pub seconds: f64,
}

impl Program {
    /// The cost of a launch with these sizes on a machine.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    /// use tilewright_kernel::cost::{Limit, Machine};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("twice", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(N,4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
    ///     k.threads(128)?;
    ///     let rows = x.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.load_predicated()?;
    ///     let doubled = rows.map(|x| Ok(x * 2.0))?;
    ///     y.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.store_predicated(&doubled)
    /// })?;
    /// let cost = kernel.program().cost(&Machine::named("H200").unwrap(), &[("N", 1000)])?;
    /// assert_eq!((cost.grid, cost.occupancy.blocks, cost.occupancy.limit), ([8, 1, 1], 16, Limit::Threads));
    /// let counted = cost.counted.clone().unwrap();
    /// assert_eq!((counted.blocks, counted.walked), (8, 8));
    /// // Sixteen bytes of each of a thousand rows: 500 sectors to read, and as many to write.
    /// assert_eq!((cost.sectors(), cost.tensor_bytes), (1000, 2 * 16_000));
    /// assert_eq!(counted.operations.f32, 4.0 * 8.0 * 128.0);
    /// assert_eq!(cost.roofline().unwrap().what, "device memory");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: a size is missing, unknown or not admitted by its facts; a number does not fit.
    pub fn cost(&self, machine: &Machine, sizes: &[(&str, i64)]) -> Result<Cost, SetupError> {
        let launch = self.launch_numbers(sizes)?;
        let changes = self.has(|operation| matches!(operation, Operation::SetRegisters { .. }));
        // If roles reallocate registers, the number at launch counts. The assembler respects the
        // number of blocks that should be resident.
        let share = self.entry_registers();
        let registers = if changes { share } else { registers::estimate(self).min(share) };
        let occupancy = Occupancy::of(&machine.multiprocessor, self.threads, registers, self.shared_bytes);
        let code = Code::new(self);
        let total = count::count(self, &code, &launch);
        let in_flight = total.as_ref().ok().and_then(|total| in_flight(&code, total, machine, &occupancy));
        let counted = total.map(|total| counted(self, &code, &total, &launch.bytes, machine));
        let tensor_bytes = launch.bytes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        Ok(Cost {
            machine: machine.clone(),
            grid: launch.grid,
            threads: self.threads,
            registers,
            shared_bytes: self.shared_bytes,
            occupancy,
            tensor_bytes,
            in_flight,
            counted,
        })
    }
}

fn in_flight(code: &Code<'_>, total: &count::Total, machine: &Machine, held: &Occupancy) -> Option<InFlight> {
    let block_bytes = total.under_way?;
    let each = total.blocks.div_ceil(u64::from(machine.multiprocessors).max(1));
    let blocks = u64::from(held.blocks).min(each) as u32;
    let brings = |node: &Node<'_>| match node {
        Node::Instruction(instruction) => {
            matches!(
                instruction.operation,
                Operation::Load(_) | Operation::CopyAsync { .. } | Operation::BulkLoad { .. }
            )
        }
        _ => false,
    };
    let marked = code.nodes.iter().zip(&total.sums.taken).any(|(node, taken)| taken.at_most && brings(node));
    Some(InFlight { block_bytes, blocks, at_most: marked || total.sums.both_sides })
}

fn counted(program: &Program, code: &Code<'_>, total: &count::Total, bytes: &[u64], machine: &Machine) -> Counted {
    let mut accesses = Vec::new();
    let (mut operations, mut least) = (Operations::default(), Operations::default());
    let mut touched = vec![0_u64; program.buffers.len()];
    let executed = total.sums.executed.iter().zip(&total.sums.surely);
    for ((node, taken), (executed, surely)) in code.nodes.iter().zip(&total.sums.taken).zip(executed) {
        let Node::Instruction(instruction) = node else { continue };
        add_operations(&mut operations, &instruction.operation, *executed as f64, machine);
        add_operations(&mut least, &instruction.operation, *surely as f64, machine);
        for (access, tally) in instruction.operation.accesses().zip(&taken.of) {
            if tally.requests > 0 {
                let buffer = match &instruction.operation {
                    Operation::BulkLoad { map, .. } | Operation::BulkStore { map, .. } => program.map(*map).buffer,
                    _ => access.buffer,
                };
                let name = program.buffer(buffer).name.clone();
                let class = Class::of(&instruction.operation);
                let count = tally.count(*program.source(instruction.source), class, name);
                if !taken.at_most {
                    let sectors = count.sectors.saturating_mul(32);
                    let moved = match class {
                        Class::Bulk => count.bytes,
                        // If all blocks were executed, each sector counts once.
                        _ => total.touched.as_ref().map_or(sectors, |_| 0),
                    };
                    touched[buffer.index()] = touched[buffer.index()].saturating_add(moved);
                }
                accesses.push(AccessCount { at_most: taken.at_most, ..count });
            }
        }
    }
    let by_class = |executed: &[u64]| {
        let classes = walk::classes(code, executed);
        Class::ALL.into_iter().zip(classes).filter(|(_, count)| *count > 0).collect()
    };
    let (executed, executed_least) = (by_class(&total.sums.executed), by_class(&total.sums.surely));
    let (blocks, walked, both_sides) = (total.blocks, total.walked, total.sums.both_sides);
    let multiplied = total.sums.multiplied;
    for (touched, sectors) in touched.iter_mut().zip(total.touched.iter().flatten()) {
        *touched = touched.saturating_add(sectors.saturating_mul(32));
    }
    let touched_bytes = bytes.iter().zip(&touched).map(|(bytes, touched)| *bytes.min(touched)).sum();
    Counted {
        blocks,
        walked,
        multiplied,
        accesses,
        both_sides,
        executed,
        executed_least,
        operations,
        least,
        touched_bytes,
    }
}

fn add_operations(sums: &mut Operations, operation: &Operation, warps: f64, machine: &Machine) {
    let (number, each) = match operation {
        Operation::Multiply(matrix) => {
            let operations = 2.0 * matrix.shape().map(f64::from).iter().product::<f64>() * warps;
            sums.matrix += operations;
            sums.matrix_seconds += operations / machine.rates.matrix(*matrix).max(1.0);
            return;
        }
        Operation::Wgmma { operands, columns, a, .. } => {
            // Four warps execute one wgmma: 64 rows, and a column of B for each accumulator.
            let (depth, columns) = (f64::from(operands.depth()), f64::from(*columns));
            let operations = 2.0 * 64.0 * columns * depth * warps / 4.0;
            sums.matrix += operations;
            sums.matrix_seconds += operations / machine.rates.group(*operands).max(1.0);
            let rows = if a.is_some() { 64.0 } else { 0.0 };
            sums.factor_bytes += (rows + columns) * depth * f64::from(operands.bytes()) * warps / 4.0;
            return;
        }
        Operation::Binary(Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide, number) => (number, 1.0),
        Operation::Unary(_, number) => (number, 1.0),
        Operation::MultiplyAdd(number) => (number, 2.0),
        _ => return,
    };
    let lanes = 32.0 * warps * each;
    match number {
        Number::F64 => sums.f64 += lanes,
        Number::F16x2 | Number::Bf16x2 => {
            sums.f32 += 2.0 * lanes;
            sums.pairs += 2.0 * lanes;
        }
        number if number.is_float() => sums.f32 += lanes,
        _ => {}
    }
}

impl Counted {
    /// Whether every iteration of every block was executed, and nothing depends on the contents of
    /// memory.
    pub fn is_exact(&self) -> bool {
        self.walked == self.blocks
            && !self.multiplied
            && !self.both_sides
            && self.accesses.iter().all(|access| !access.at_most)
    }

    /// The number of warp instructions.
    pub fn instructions(&self) -> u64 {
        self.executed.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    fn sum(&self, of: impl Fn(&AccessCount) -> u64) -> u64 {
        self.accesses.iter().fold(0, |sum, access| sum.saturating_add(of(access)))
    }

    /// Whether instructions and operations are upper bounds.
    pub fn is_at_most(&self) -> bool {
        self.both_sides
    }

    /// A lower bound of the wavefronts of shared memory, and of the bytes of boxes that are loaded
    /// into it.
    fn shared_at_least(&self) -> (u64, u64) {
        let sum = |of: &dyn Fn(&AccessCount) -> u64| self.sum(|count| if count.at_most { 0 } else { of(count) });
        (sum(&|count| count.wavefronts), sum(&|count| if count.class == Class::Bulk { count.bytes } else { 0 }))
    }

    /// The bytes of the boxes that TMA moves, including elements past the edges of tensors.
    pub fn bulk_bytes(&self) -> u64 {
        self.sum(|count| if count.class == Class::Bulk { count.bytes } else { 0 })
    }

    /// The wavefronts of shared memory, and the number without bank conflicts.
    pub fn wavefronts(&self) -> (u64, u64) {
        (self.sum(|count| count.wavefronts), self.sum(|count| count.least_wavefronts))
    }
}

impl Cost {
    /// The 32-byte sectors of accesses to global memory; 0 if they are not counted.
    pub fn sectors(&self) -> u64 {
        self.counted.as_ref().map_or(0, |counted| counted.sum(|count| count.sectors))
    }

    /// Operations per byte of the tensors; None if they are not counted, or there are no tensors.
    pub fn intensity(&self) -> Option<f64> {
        let counted = self.counted.as_ref().ok()?;
        (self.tensor_bytes > 0).then(|| counted.operations.total() / self.tensor_bytes as f64)
    }

    /// The lower bounds of the time, the largest first.
    pub fn bounds(&self) -> Vec<Bound> {
        let machine = &self.machine;
        let mut bounds = Vec::new();
        let mut bound = |what, seconds: f64| {
            if seconds > 0.0 {
                bounds.push(Bound { what, seconds });
            }
        };
        if let Ok(counted) = &self.counted {
            bound("device memory", counted.touched_bytes as f64 / machine.bandwidth);
            let operations = &counted.least;
            bound("matrix instructions", operations.matrix_seconds);
            // Different units work concurrently.
            let f32 = operations.f32 - operations.pairs * (1.0 - PAIR_SHARE);
            bound("arithmetic", (f32 / machine.rates.f32).max(operations.f64 / machine.rates.f64));
            // A multiprocessor serves one wavefront of 128 bytes per cycle.
            let (wavefronts, boxes) = counted.shared_at_least();
            let wavefronts = wavefronts as f64 + (operations.factor_bytes + boxes as f64) / 128.0;
            bound("shared memory", wavefronts / f64::from(machine.multiprocessors) / machine.clock);
        }
        bounds.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        bounds
    }

    /// The greatest bound: no launch is faster than this, by these numbers. None for an empty
    /// launch.
    pub fn roofline(&self) -> Option<Bound> {
        self.bounds().into_iter().next()
    }
}

//! From a tile program to a kernel.
//!
//! Law: each pass takes a program to one with the same meaning: factors of products by way of shared
//! memory (`factors`), candidates (`pools`), assignment
//! (`assign`), conversions (`place`), the kernel (`lower`). What each of them chose is kept, and
//! [`Compiled::explain`] says it.

use std::time::{Duration, Instant};

use tilewright_kernel::Kernel;

use crate::assign::{Assignment, Conversions, assign};
use crate::error::{Reason, TileError};
use crate::factors;
use crate::memory;
use crate::place::{Placed, place};
use crate::pools::{self, Pools};
use crate::program::{Operation, Program, Statement};

/// Bytes of the largest tile that a thread reads at once.
const BYTES_OF_THREAD: i64 = 32;
/// The most registers of a thread that values may take at once.
const REGISTERS: i64 = 240;

/// A program and what became of it.
pub struct Compiled {
    pub(crate) source: Program,
    pub(crate) pools: Pools,
    pub(crate) assignment: Assignment,
    pub(crate) placed: Placed,
    pub(crate) kernel: Kernel,
    pub(crate) warps: i64,
    /// How long each pass took.
    pub(crate) times: Vec<(&'static str, Duration)>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled({}, {} warps)", self.source.name, self.warps)
    }
}

impl Program {
    /// Assigns layouts, writes the conversions between them, and makes the kernel.
    ///
    /// ```
    /// use tilewright_kernel::interpret;
    /// use tilewright_tile::Program;
    ///
    /// let sums: Program = "
    /// tile sums {
    ///     input x: f32 (M,256):(256,1)
    ///     output y: f32 (M,1):(1,1)
    ///     grid ceil(M/8)
    ///     store(y, (block.x, 0), reduce_sum(load(x, (8,256), (block.x, 0)), 1))
    /// }"
    /// .parse()?;
    /// let compiled = sums.compile()?;
    /// // A row is held by lanes of one warp: shuffles suffice.
    /// assert_eq!(compiled.kernel().program().shared_bytes, 0);
    /// interpret::check(compiled.kernel().program(), &[("M", 11)]).expect("the interpreter finds nothing");
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: a tile has not as many extents as its tensor; values take more registers, or
    /// conversions more shared memory, than a block has; what the kernel language refuses.
    pub fn compile(&self) -> Result<Compiled, TileError> {
        self.verify()?;
        let mut times = Vec::new();
        let mut since = Instant::now();
        let mut took = |pass: &'static str| {
            let now = Instant::now();
            times.push((pass, now - since));
            since = now;
        };
        let warps = self.warps.map_or_else(|| warps(self), i64::from);
        let sizes = memory::typical(self)?;
        let staged = factors::staged(self, 32 * warps, &sizes)?;
        took("factors");
        let nodes = pools::nodes(&staged);
        let pools = Pools::new(&staged, &nodes, warps, &sizes)?;
        took("candidates");
        let assignment = assign(&staged, &nodes, &pools, &mut Conversions::new(warps))?;
        took("assignment");
        let placed = place(&staged, &pools, &assignment)?;
        fits(&placed)?;
        took("conversions");
        let kernel = crate::lower::lower(&placed)?;
        took("kernel");
        Ok(Compiled { source: self.clone(), pools, assignment, placed, kernel, warps, times })
    }
}

/// How many warps a block has where nobody says it: a thread has two vectors of 16 bytes of the
/// largest tile that is read; products of large tiles take four or eight.
fn warps(program: &Program) -> i64 {
    let (mut bytes, mut sums, mut least) = (0, 0, 32);
    for node in pools::nodes(program) {
        let Statement::Let { result, operation, operands, .. } = node.statement else { continue };
        let ty = program.type_of(*result);
        match operation {
            Operation::Load { .. } => bytes = bytes.max(ty.size() * i64::from(ty.element.bytes())),
            Operation::Dot => {
                sums = ty.size().max(sums);
                let shape = &program.type_of(operands[0]).shape;
                least = least.min(shape[0] / 16 * (ty.shape[1] / 8));
            }
            _ => {}
        }
    }
    let warps = match sums {
        0 => bytes / (32 * BYTES_OF_THREAD),
        sums => {
            if sums >= 1 << 14 {
                8
            } else {
                4
            }
        }
    };
    warps.clamp(1, 16).min(least.max(1))
}

/// Refuses what takes more registers than a thread has.
fn fits(placed: &Placed) -> Result<(), Reason> {
    let registers = |value: &crate::program::ValueId| {
        let bits = i64::from(placed.program.type_of(*value).element.bits());
        placed.layouts.get(value).map_or(0, |held| (held.values() * bits + 31) / 32)
    };
    let most = placed.layouts.keys().max_by_key(|value| registers(value));
    let Some(value) = most.filter(|value| registers(value) > REGISTERS) else { return Ok(()) };
    let what = format!("registers a thread for a value of {}", placed.program.type_of(*value));
    Err(Reason::TooMuch { what, asked: registers(value), limit: REGISTERS })
}

impl Compiled {
    /// The program as it was written.
    pub fn source(&self) -> &Program {
        &self.source
    }

    /// The program with the conversions between layouts: each is an operation of its own.
    pub fn placed(&self) -> &Program {
        &self.placed.program
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// How many warps a block has.
    pub fn warps(&self) -> i64 {
        self.warps
    }

    /// How long each pass took.
    pub fn times(&self) -> &[(&'static str, Duration)] {
        &self.times
    }
}

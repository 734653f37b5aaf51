//! From a tile program to a kernel.
//!
//! Law: each pass takes a program to one with the same meaning: factors of products by way of
//! shared memory (`factors`), candidates (`pools`), assignment (`assign`), conversions (`place`),
//! the kernel (`lower`). What each of them chose is kept, and [`Compiled::explain`] says it.

use std::time::{Duration, Instant};

use tilewright_kernel::Kernel;

use crate::assign::{Assignment, Conversions, assign};
use crate::error::TileError;
use crate::factors;
use crate::held::Held;
use crate::memory;
use crate::place::{Placed, place};
use crate::pools::{self, Pools};
use crate::program::{Operation, Program, Statement, ValueId};

/// Bytes of the largest tile that a thread reads at once.
const BYTES_OF_THREAD: i64 = 32;

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
        took("conversions");
        let kernel = crate::lower::lower(&placed, resident(&placed, warps))?;
        took("kernel");
        Ok(Compiled { source: self.clone(), pools, assignment, placed, kernel, warps, times })
    }
}

/// How many warps a block has where nobody says it: a thread has two vectors of 16 bytes of the
/// largest tile that is read; products take four, so that a thread has up to 128 sums, and eight
/// for larger tiles. Measured so on an H200.
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
            if sums > 1 << 14 {
                8
            } else {
                4
            }
        }
    };
    warps.clamp(1, 16).min(least.max(1))
}

/// How many blocks should be on a processor at once, where that should be said: 1024 threads, where
/// a value takes 17 to 32 registers of a thread. With fewer the assembler leaves room for as many
/// by itself, and with more it would have to spill; products take the registers that they want.
fn resident(placed: &Placed, warps: i64) -> u32 {
    let registers = |(value, held): (&ValueId, &Held)| {
        held.values() * i64::from(placed.program.type_of(*value).element.bits()) / 32
    };
    let most = placed.layouts.iter().map(registers).max().unwrap_or(0);
    if placed.tilings.is_empty() && (17..=32).contains(&most) { (32 / warps).clamp(1, 8) as u32 } else { 1 }
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

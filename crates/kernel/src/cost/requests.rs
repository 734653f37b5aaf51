//! The addresses that the lanes of one warp access, instruction by instruction.
//!
//! Law: addresses are those of the counting walk (`walk.rs`): they follow from the indices of
//! threads, blocks and iterations. Each instruction is shown at its first execution.

use super::Uncounted;
use super::walk::Walk;
use crate::interpret::code::Code;
use crate::interpret::counts::{Tally, phase_lanes};
use crate::interpret::{Class, SetupError};
use crate::program::WARP_LANES;
use crate::program::memory::Space;
use crate::program::{Program, Source};

/// One execution of a memory instruction by one warp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The statement.
    pub source: Source,
    /// The kind of the instruction.
    pub class: Class,
    /// The buffer.
    pub buffer: String,
    /// Where the buffer is.
    pub space: Space,
    /// The number of bytes that a lane accesses.
    pub bytes: u32,
    /// The lanes that take part, each with its first byte, counted from the beginning of the
    /// tensor, or of the block's shared memory.
    pub lanes: Vec<(u32, i64)>,
}

/// Lanes that shared memory serves together, and the number of wavefronts that this takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// The lanes, each with its first byte.
    pub lanes: Vec<(u32, i64)>,
    /// The number of wavefronts: that of different words in the bank with the most of them.
    pub wavefronts: u64,
}

impl Request {
    /// The phases in which shared memory serves the lanes: eight lanes of 16 bytes together,
    /// sixteen of 8, otherwise all.
    pub fn phases(&self) -> Vec<Phase> {
        let together = phase_lanes(self.bytes);
        let same = |a: &(u32, i64), b: &(u32, i64)| a.0 / together == b.0 / together;
        let phase = |lanes: &[(u32, i64)]| Phase { lanes: lanes.to_vec(), wavefronts: self.tally(lanes).wavefronts };
        self.lanes.chunk_by(same).map(phase).collect()
    }

    /// The number of 32-byte sectors and of 128-byte lines that the lanes access.
    pub fn sectors_and_lines(&self) -> (u64, u64) {
        let mut tally = Tally::default();
        let (mask, addresses) = spread(&self.lanes);
        tally.global(mask, &addresses, self.bytes);
        (tally.sectors, tally.lines)
    }

    fn tally(&self, lanes: &[(u32, i64)]) -> Tally {
        let mut tally = Tally::default();
        let (mask, addresses) = spread(lanes);
        tally.shared(mask, &addresses, self.bytes);
        tally
    }
}

/// The mask of some lanes, and the address of each lane of a warp.
fn spread(lanes: &[(u32, i64)]) -> (u32, [i64; WARP_LANES]) {
    let (mut mask, mut addresses) = (0, [0; WARP_LANES]);
    for (lane, address) in lanes {
        mask |= 1 << lane;
        addresses[*lane as usize] = *address;
    }
    (mask, addresses)
}

/// The most warp nodes that are walked.
const STEPS: u64 = 1 << 22;

impl Program {
    /// The requests of a warp of a block at these sizes: each memory instruction at its first
    /// execution in which a lane takes part. TMA boxes, and operands that wgmma read from shared
    /// memory, are not requests of lanes.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("twice", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(N,4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
    ///     k.threads(64)?;
    ///     let rows = x.local_tile((64, 4), k.block("(x,0)")?)?.thread_part()?.load_predicated()?;
    ///     let doubled = rows.map(|x| Ok(x * 2.0))?;
    ///     y.local_tile((64, 4), k.block("(x,0)")?)?.thread_part()?.store_predicated(&doubled)
    /// })?;
    /// // Of the second warp of the second block four lanes are inside: rows 96 to 99.
    /// let requests = kernel.program().requests(&[("N", 100)], [1, 0, 0], 1)?.unwrap();
    /// assert_eq!((requests.len(), requests[0].buffer.as_str(), requests[0].bytes), (2, "x", 16));
    /// assert_eq!(requests[0].lanes, [(0, 1536), (1, 1552), (2, 1568), (3, 1584)]);
    /// assert_eq!(requests[0].sectors_and_lines(), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Program::cost`]. The inner error says why a walk does not end, or that an
    /// address depends on the contents of memory. A block or warp that does not exist has no
    /// requests.
    pub fn requests(
        &self,
        sizes: &[(&str, i64)],
        block: [u32; 3],
        warp: u32,
    ) -> Result<Result<Vec<Request>, Uncounted>, SetupError> {
        let launch = self.launch_numbers(sizes)?;
        let inside = block.iter().zip(launch.grid).all(|(at, count)| *at < count);
        if !inside || warp >= self.threads.div_ceil(32) {
            return Ok(Ok(Vec::new()));
        }
        let code = Code::new(self);
        let mut walk = Walk::new(self, &code, launch.grid, &launch.scalars, STEPS).multiplying().asking();
        Ok(walk.warp(block, warp).map(|()| walk.requests()))
    }
}

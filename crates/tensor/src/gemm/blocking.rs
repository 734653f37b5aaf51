//! The blocking of a GEMM: which part of each operand is in which cache at a time.
//!
//! **Law.** MR and NR are the extents of a register tile; MC is a multiple of MR and NC of NR, or
//! they cover the whole dimension; KC is at most the words of the sum. So the loops cover C and K.
//!
//! The loops around the micro-kernel (Van Zee and van de Geijn, "BLIS: a framework for rapidly
//! instantiating BLAS functionality", 2015) divide C and the sum by four tilers, from the outside
//! in:
//!
//! | tiler | divides | so that |
//! |---|---|---|
//! | task | `(M,N)` | each thread has parts of C of its own |
//! | panel, NC by KC | `(N,K)` | a packed panel of B stays in the last-level cache while all of A passes |
//! | block, MC by KC | `(M,K)` | a packed block of A stays in the L2 cache while the panel of B passes |
//! | tile, MR by NR | `(M,N)` | a tile of C stays in registers, and a slice of B in the L1 cache |
//!
//! Extents are balanced: 600 by tiles of at most 512 is two of about 300.

use super::kernel::KernelSet;
use crate::simd::l2_bytes;

/// The words along K that are summed in one pass. A slice of B of eight columns then takes a sixth
/// of the L1 cache, or a third in double precision.
const KC: usize = 256;
/// The largest number of bytes of a packed block of A, MC by KC. It takes half of the L2 cache, or
/// a quarter.
const MC_BYTES: usize = 2 << 20;
/// The bytes of a packed panel of B, NC by KC.
const NC_BYTES: usize = 4 << 20;

/// The largest number of columns for which the next block of A is prefetched while one is
/// multiplied.
const FEW_COLUMNS: usize = 768;

/// Whether the next block of A is prefetched while one is multiplied by this many columns.
///
/// The fewer columns there are, the larger is the share of packing in the total time. But
/// prefetching needs room for two smaller blocks in the L2 cache, so that the panel of B is read
/// more often.
pub(super) fn prefetches_blocks(columns: usize) -> bool {
    columns <= FEW_COLUMNS
}

/// The largest number of bytes of all blocks of A that threads share.
const SHARED_BYTES: usize = 8 << 20;

/// The largest number of bytes of the blocks of A, over all of K, that this many threads share:
/// half of their L2 caches. A larger shared A would be read from memory for each panel. A block of
/// the thread's own stays in its L2 cache until the next block overwrites it.
pub(super) fn shared_bytes(threads: usize) -> usize {
    (l2_bytes() / 2).saturating_mul(threads).min(SHARED_BYTES)
}

/// From this size on, in bytes, a block of A takes much of the L2 cache, so its vectors are loaded
/// late.
const LATE_BLOCK_BYTES: usize = 512 << 10;

/// The cost of the beginning and the end of a tile, in quarters of a cycle.
const TILE_COST: usize = 200;

/// The blocking of one GEMM, in rows, columns and numbers along K.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// Rows of a register tile.
    pub mr: usize,
    /// Columns of a register tile.
    pub nr: usize,
    /// Rows of a block of A.
    pub mc: usize,
    /// Columns of a panel of B.
    pub nc: usize,
    /// Numbers along K of a block and of a panel.
    pub kc: usize,
}

/// The extent of the parts if a dimension is divided into as few parts as possible of at most
/// `most` each. Each part but the last is a multiple of `of`. All three arguments are positive.
#[inline]
pub(super) fn balanced(extent: usize, most: usize, of: usize) -> usize {
    if extent <= most {
        return extent.next_multiple_of(of);
    }
    let parts = extent.div_ceil(most);
    extent.div_ceil(parts).next_multiple_of(of)
}

/// The vectors and columns of the register tiles for a matrix of `vectors` by `columns`, each
/// element the sum of `steps` products.
///
/// Among the tallest tiles of each width, the cheapest is chosen. A step of a tile costs half a
/// cycle for each multiplication, some time for each word and each vector that is loaded, and the
/// time of the broadcast of a word if that is an instruction of its own. A step costs at least four
/// cycles, the latency after which its sums can be added to again. Every tile also has fixed costs
/// at its beginning and its end. If a block of A is small, each load of a vector or word costs half
/// a cycle. If it takes much of the L2 cache, a vector costs three quarters of a cycle, and a word
/// a quarter.
#[inline]
pub(super) fn register_tile<W, C>(
    kernels: &KernelSet<W, C>,
    vectors: usize,
    columns: usize,
    steps: usize,
) -> [usize; 2] {
    let highest = kernels.packed.len();
    if vectors <= highest {
        let width = kernels.packed.get(vectors - 1).map_or(1, |columns| columns.len());
        return [vectors, balanced(columns, width, 1)];
    }
    let late = vectors.saturating_mul(kernels.lanes * steps * size_of::<W>()) > LATE_BLOCK_BYTES;
    let [vector, word] = if late { [3, 1] } else { [2, 2] };
    let cost = |height: usize, width: usize| {
        (2 * height * width + vector * height + (word + kernels.broadcast_cost) * width).max(16) * steps + TILE_COST
    };
    let total = |height: usize, width: usize| {
        let row = |height: usize| {
            let (whole, rest) = (columns / width, columns % width);
            whole.saturating_mul(cost(height, width)).saturating_add(if rest > 0 { cost(height, rest) } else { 0 })
        };
        let (whole, rest) = (vectors / height, vectors % height);
        whole.saturating_mul(row(height)).saturating_add(if rest > 0 { row(rest) } else { 0 })
    };
    let shapes = (1..).zip(kernels.packed.iter().map(|columns| columns.len()));
    shapes.min_by_key(|(height, width)| total(*height, *width)).map_or([1, 1], |(height, width)| [height, width])
}

impl Blocking {
    /// The blocking of a product of `m` by `n` by `k`.
    pub(super) fn new<W, C>(kernels: &KernelSet<W, C>, [m, n, k]: [usize; 3]) -> Blocking {
        let KernelSet { lanes, group, .. } = *kernels;
        let bytes = size_of::<W>();
        let kc = balanced(k, KC * group, 4 * group);
        let [vectors, nr] = register_tile(kernels, m.div_ceil(lanes), n, kc / group);
        let mr = lanes * vectors;
        let row = kc.div_ceil(group) * bytes;
        let parts = if prefetches_blocks(n) { 4 } else { 2 };
        let mc = balanced(m, (MC_BYTES.min(l2_bytes() / parts) / row).max(mr), mr);
        let nc = balanced(n, (NC_BYTES / row).max(nr), nr);
        Blocking { mr, nr, mc, nc, kc }
    }
}

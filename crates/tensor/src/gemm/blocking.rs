//! The tilings of a product: how much of each operand is at work at once.
//!
//! The loops around the micro-kernel (Van Zee and van de Geijn, "BLIS: a framework for rapidly instantiating BLAS functionality",
//! 2015) divide C and the sum by four tilers, from the outside in:
//!
//! | tiler | divides | so that |
//! |---|---|---|
//! | task | `(M,N)` | each thread has parts of C of its own |
//! | panel | `(N,K)` | a packed panel of B stays in the last cache while all of A passes |
//! | block | `(M,K)` | a packed block of A stays in the second cache while the panel of B passes |
//! | tile | `(M,N)` | a tile of C stays in registers, while a slice of B stays in the first cache |
//!
//! Extents are balanced: where a dimension takes two tiles of at most 512, 600 is divided into two of about 300.

use super::caches;
use super::kernel::Kernels;

/// The most bytes of a packed block of A, which is to take half of a second-level cache, or a quarter.
const BLOCK_BYTES: usize = 2 << 20;
/// The bytes of a packed panel of B.
const PANEL_BYTES: usize = 4 << 20;
/// The words of a sum that are added up at once: a slice of B of eight columns then takes a sixth of a first-level cache, or a third in double precision.
const DEPTH: usize = 256;

/// The most columns of a product that fetches the next block of A while one is multiplied.
const FEW_COLUMNS: usize = 768;

/// Whether the next block of A is fetched while one is multiplied by so many columns. Packing takes the longer, beside multiplying, the fewer they are; but then there is room for two
/// smaller blocks in the second cache only, and the panel of B passes more often.
pub(super) fn fetches_blocks(columns: usize) -> bool {
    columns <= FEW_COLUMNS
}

/// The most bytes of all blocks of A that threads share.
const SHARED_BYTES: usize = 8 << 20;

/// The most bytes of blocks of A, at all depths, that so many threads share: what half of their second caches hold. More would come from memory for each product anew, where a thread's
/// own block, which takes the place of the one before, stays near.
pub(super) fn shared_blocks(threads: usize) -> usize {
    (caches::second() / 2).saturating_mul(threads).min(SHARED_BYTES)
}

/// The bytes of a block of A from which on its vectors come late.
const NEAR: usize = 512 << 10;

/// What the beginning and the end of a tile take, in quarters of a cycle.
const BEGINNING: usize = 200;

/// The blocking constants of one product, in rows, columns and numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// Rows and columns of a tile.
    pub mr: usize,
    pub nr: usize,
    /// Rows of a block, columns of a panel, and terms of a sum in both.
    pub mc: usize,
    pub nc: usize,
    pub kc: usize,
}

/// The extent of the parts of a dimension that is divided into the least number of parts of at most `most`, each but the last a multiple of `of`. All three are positive.
#[inline]
pub(super) fn balanced(extent: usize, most: usize, of: usize) -> usize {
    if extent <= most {
        return extent.next_multiple_of(of);
    }
    let parts = extent.div_ceil(most);
    extent.div_ceil(parts).next_multiple_of(of)
}

/// The vectors and columns of the tiles of a matrix of `vectors` by `columns`, each the sum of `steps` products.
///
/// Of the highest tiles of each width those that take the least time: a step of a tile takes half a cycle for each multiplication, some time for each word and each
/// vector that is loaded, and for putting a word into all lanes where that is an instruction of its own, and four cycles at least, until its sums can be added to again;
/// and every tile begins and ends with work of its own. Where a block of A is small, loads are alike, half a cycle each; where it takes much of the second cache, vectors
/// come late, three quarters of a cycle each, and words a quarter.
#[inline]
pub(super) fn tile<W, C>(kernels: &Kernels<W, C>, vectors: usize, columns: usize, steps: usize) -> [usize; 2] {
    let highest = kernels.packed.len();
    if vectors <= highest {
        let width = kernels.packed.get(vectors - 1).map_or(1, |columns| columns.len());
        return [vectors, balanced(columns, width, 1)];
    }
    let near = vectors.saturating_mul(kernels.lanes * steps * size_of::<W>()) <= NEAR;
    let [vector, word] = if near { [2, 2] } else { [3, 1] };
    let time = |height: usize, width: usize| {
        (2 * height * width + vector * height + (word + kernels.spread) * width).max(16) * steps + BEGINNING
    };
    let all = |height: usize, width: usize| {
        let row = |height: usize| {
            let (whole, rest) = (columns / width, columns % width);
            whole.saturating_mul(time(height, width)).saturating_add(if rest > 0 { time(height, rest) } else { 0 })
        };
        let (whole, rest) = (vectors / height, vectors % height);
        whole.saturating_mul(row(height)).saturating_add(if rest > 0 { row(rest) } else { 0 })
    };
    let shapes = (1..).zip(kernels.packed.iter().map(|columns| columns.len()));
    shapes.min_by_key(|(height, width)| all(*height, *width)).map_or([1, 1], |(height, width)| [height, width])
}

impl Blocking {
    /// The blocking of a product of `m` by `n` by `k`.
    pub(super) fn new<W, C>(kernels: &Kernels<W, C>, [m, n, k]: [usize; 3]) -> Blocking {
        let Kernels { lanes, group, .. } = *kernels;
        let bytes = size_of::<W>();
        let kc = balanced(k, DEPTH * group, 4 * group);
        let [vectors, nr] = tile(kernels, m.div_ceil(lanes), n, kc / group);
        let mr = lanes * vectors;
        let deep = kc.div_ceil(group) * bytes;
        let parts = if fetches_blocks(n) { 4 } else { 2 };
        let mc = balanced(m, (BLOCK_BYTES.min(caches::second() / parts) / deep).max(mr), mr);
        let nc = balanced(n, (PANEL_BYTES / deep).max(nr), nr);
        Blocking { mr, nr, mc, nc, kc }
    }
}

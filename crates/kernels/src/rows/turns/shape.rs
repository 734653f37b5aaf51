//! In which shape clusters hold rows that are dealt.
//!
//! Law: a shape is how many blocks a cluster has, how many warps a block, how many vectors of a row
//! a thread, and how many blocks a multiprocessor. Blocks, warps and vectors have a place for each
//! vector of the row; registers hold what a thread keeps of each of its vectors, and shared memory
//! its places. Of such shapes the one is taken that has the least of rows under way that still
//! hides what clusters wait for: more takes longer at the beginning and the end.

use super::{LANES, ROOM, STAGES, VECTOR};

/// How clusters hold a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Blocks of a cluster.
    pub(crate) blocks: i64,
    /// Warps of a block.
    pub(crate) warps: i64,
    /// Vectors of a row that a thread has.
    pub(crate) vectors: i64,
    /// Blocks of a multiprocessor: while one waits for what the others of its cluster find, another
    /// goes on.
    pub(crate) resident: i64,
}

/// Blocks of a cluster, powers of two, and how many vectors at once on a multiprocessor their
/// waiting for each other is worth.
const BLOCKS: [(i64, i64); 4] = [(2, 0), (4, 24), (8, 56), (16, 92)];
/// Warps of a block, and the most of a multiprocessor.
const WARPS: std::ops::RangeInclusive<i64> = 4..=8;
const TOGETHER: i64 = 18;
/// Vectors of a thread.
const VECTORS: std::ops::RangeInclusive<i64> = 5..=11;
/// How many thousandths of a row may be left over in the place for it.
const LEFT_OVER: i64 = 114;
/// Registers of a multiprocessor, and those of a thread that hold nothing of its vectors: always,
/// and where rows end within a run.
const REGISTERS: i64 = 65_536;
const OTHERS: i64 = 52;
const OF_ENDS: i64 = 12;
/// Warps of a group that has registers together.
const GROUPED: i64 = 4;
/// Shared memory of a multiprocessor, and what a block has of it besides places and numbers.
const SHARED: i64 = 228 << 10;
const RESERVED: i64 = 1536;
/// How many vectors all warps of a multiprocessor have, at least: of clusters of few blocks, which
/// have all of them of rows, of more, of these where rows end within a run, and of softmax of such
/// rows by the most, which computes longer. A turn of fewer takes no less time.
const OF_FEW: i64 = 76;
const OF_MORE: i64 = 96;
const OF_ENDED: i64 = 98;
const OF_POWERS: i64 = 120;

impl Shape {
    /// The shape for rows of so many vectors, of each of which a thread keeps so many registers,
    /// powers or other rows; none where none holds them. Of alike ones that of the most warps, for
    /// these compute meanwhile.
    pub(super) fn of(count: i64, kept: i64, powers: bool) -> Option<Shape> {
        let shapes = BLOCKS.into_iter().flat_map(|(blocks, waits)| {
            WARPS.flat_map(move |warps| {
                VECTORS.flat_map(move |vectors| {
                    (2..=TOGETHER / warps).map(move |resident| (Shape { blocks, warps, vectors, resident }, waits))
                })
            })
        });
        let key = |(shape, waits): &(Shape, i64)| {
            let left = shape.places() - count;
            (shape.at_once() + waits, shape.blocks, left, -shape.warps)
        };
        let held = shapes.filter(|(shape, _)| shape.holds(count, kept, powers));
        held.min_by_key(key).map(|(shape, _)| shape)
    }

    /// Places for vectors of a row.
    fn places(&self) -> i64 {
        self.blocks * self.warps * LANES * self.vectors
    }

    /// How many vectors all warps of a multiprocessor have.
    fn at_once(&self) -> i64 {
        self.warps * self.resident * self.vectors
    }

    /// Whether there are places for a row, not too many, and registers and shared memory for them.
    fn holds(&self, count: i64, kept: i64, powers: bool) -> bool {
        let Shape { blocks, warps, vectors, resident } = *self;
        let left = self.places() - count;
        let groups = (warps * resident + GROUPED - 1) / GROUPED;
        let registers = REGISTERS / (groups * GROUPED * LANES) / 8 * 8;
        let wanted = kept * vectors + OTHERS + if left == 0 { 0 } else { OF_ENDS };
        let places = STAGES * warps * LANES * vectors * VECTOR;
        let shared = places + ROOM * blocks * VECTOR + RESERVED;
        let enough = match (blocks, left) {
            (..=4, _) => resident * count >= OF_FEW * blocks * LANES,
            (_, 0) => self.at_once() >= OF_MORE,
            (16, _) if powers => self.at_once() >= OF_POWERS,
            _ => self.at_once() >= OF_ENDED,
        };
        (0..=count.saturating_mul(LEFT_OVER) / 1000).contains(&left)
            && wanted <= registers
            && resident * shared <= SHARED
            && enough
    }
}

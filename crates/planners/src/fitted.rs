//! Fitted constants of all planners except the GEMM planner.
//!
//! Law: a constant is here if it decides between plans but is neither documented nor derived from a
//! law. It has a name, a unit, and a record of how it was found. All constants were fitted on one
//! card, an H200. They are ratios to properties of a card: the sizes of its caches, the latency and
//! bandwidth of its memory, its number of multiprocessors (`law.rs`). Each group says what was
//! timed, the day on which its constants were set, and the command that times its kernels again;
//! `DECISIONS.md` has the times.

/// The bytes of a tensor, in percent of the L2 cache, up to which the tensor is assumed to stay in
/// that cache where it is read or written again. For reductions and for moves by windows it applies
/// to the tensor; for a GEMM with epilogue inputs, to all tensors. 2026-11-24, `tilewright kernel
/// bench sum_columns|permute ..`.
pub(crate) const CACHED_L2_PERCENT: i64 = 64;

/// Constants of softmax and of norms of rows: 1,800 forms of rows of 1 to 512 MiB, 2026-11-23 to
/// 2026-11-29, `tilewright kernel bench softmax|rms_norm|layer_norm M=.. N=..`.
pub(crate) struct FittedRows {
    /// The most warps of a block of a cluster if its part of a row ends within a run. If more are
    /// needed, the block has as many warps as the largest block of which a multiprocessor holds
    /// several.
    pub(crate) ragged_warps: i64,
    /// The total size of all rows, in percent of the L2 cache, up to which each row has its own
    /// block or cluster. Three cases: short rows, longer rows that softmax holds once, and others.
    pub(crate) cached_l2_percent: [i64; 3],
    /// Rows of softmax of f32 that end within a run are claimed by persistent clusters if they are
    /// longer than this many times the longest row that one block holds.
    pub(crate) ragged_softmax_rows: i64,
    /// How long the blocks of a persistent cluster wait for each other, in latencies of device
    /// memory: for clusters of two, four, eight and sixteen blocks.
    pub(crate) cluster_waits: [f64; 4],
    /// How many latencies of device memory the vectors in flight must cover on a multiprocessor
    /// with blocks of persistent clusters. Three cases: clusters of up to four blocks; larger
    /// clusters; and softmax by sixteen blocks whose rows end within a run.
    pub(crate) in_flight: [f64; 3],
}

pub(crate) const ROWS: FittedRows = FittedRows {
    ragged_warps: 12,
    cached_l2_percent: [256, 128, 40],
    ragged_softmax_rows: 3,
    cluster_waits: [0.0, 1.0, 2.3, 3.7],
    in_flight: [3.0, 3.6, 4.3],
};

/// Constants of reductions along any modes: 39 shapes of a matrix, each by up to eight plans, and
/// rows and whole tensors of 1 to 512 MiB, 2026-11-28, `tilewright kernel bench
/// sum_columns|argmax_rows|sum_all ..`.
pub(crate) struct Reductions {
    /// The number of blocks for each multiprocessor that keeps the card busy; and the same if
    /// several blocks share a result.
    pub(crate) busy_blocks: i64,
    pub(crate) shared_blocks: i64,
    /// A result of a strip that adds at most this many elements for each block is shared by half as
    /// many threads.
    pub(crate) few_elements: i64,
    /// Seconds from the end of a launch to the first work of the next launch, or to that of the
    /// last block, which combines the others' results.
    pub(crate) launch: f64,
}

pub(crate) const REDUCTIONS: Reductions =
    Reductions { busy_blocks: 2, shared_blocks: 16, few_elements: 8, launch: 2.45e-6 };

/// Constants of moves between layouts: 2026-11-24, `tilewright kernel bench transpose|permute ..`.
pub(crate) struct Relayouts {
    /// The contiguous bytes beyond which a run is not faster: half of it for tensors in the L2
    /// cache. A run that both layouts share is copied without a transposition if it is at least
    /// twice as long. A square tile needs runs of at least a quarter of it.
    pub(crate) run: i64,
    /// The size of a tensor, in percent of the L2 cache, up to which short runs are as fast as long
    /// ones.
    pub(crate) small_l2_percent: i64,
    /// Tiles that are transposed in registers.
    pub(crate) squares: FittedSquares,
    /// Tiles of layouts over bits.
    pub(crate) bits: FittedBits,
}

/// Constants of tiles that are transposed in registers, square by square.
pub(crate) struct FittedSquares {
    /// The most squares along a side. It is also the most squares of a tile if larger tiles would
    /// leave multiprocessors idle.
    pub(crate) side: i64,
    /// The most elements of a tile.
    pub(crate) elements: i64,
    /// The size of a tensor of 16-bit elements, in percent of the L2 cache, up to which small tiles
    /// are faster.
    pub(crate) halves_l2_percent: i64,
    /// The least share of the positions of all tiles that are elements, the rest being padding: for
    /// elements of less than 4 bytes, and for wider ones.
    pub(crate) filled: [f64; 2],
}

/// Constants of tiles of layouts over bits.
pub(crate) struct FittedBits {
    /// Bytes of a tile: the most; the size beyond which larger tiles are not faster; and the least,
    /// for a small tensor.
    pub(crate) most: u64,
    pub(crate) enough: u64,
    pub(crate) least: u64,
    /// The least number of vectors of a thread, as the exponent of a power of two.
    pub(crate) thread_vectors: u32,
}

pub(crate) const RELAYOUTS: Relayouts = Relayouts {
    run: 256,
    small_l2_percent: 8,
    squares: FittedSquares { side: 64, elements: 1 << 14, halves_l2_percent: 16, filled: [0.74, 0.8] },
    bits: FittedBits { most: 32 << 10, enough: 16 << 10, least: 4 << 10, thread_vectors: 2 },
};

/// Constants of tiles whose runs begin at any address: 5,000 timings of 200 moves, 2026-11-23,
/// `tilewright kernel bench permute ..`.
pub(crate) struct FittedWindows {
    /// The most shared memory of a tile, in percent of that of a multiprocessor, so that two tiles
    /// fit.
    pub(crate) tile_percent: i64,
    /// A tile that would take more shared memory than the first number takes as much as the second:
    /// a third such tile on a multiprocessor would leave too little of the L1 cache. In percent, as
    /// above.
    pub(crate) two_percent: [i64; 2],
    /// The registers of a thread that the number of resident blocks is computed from.
    pub(crate) thread_registers: i64,
    /// The words that a thread has in flight at once, and the words that it reads in one iteration
    /// of a loop.
    pub(crate) words_in_flight: i64,
    pub(crate) words: i64,
    /// The elements that a thread writes in one iteration of a loop; and the same if each needs its
    /// own address computation.
    pub(crate) unrolled: i64,
    pub(crate) unrolled_apart: i64,
    /// The constants of the estimated time of a tile.
    pub(crate) time: WindowTime,
}

/// The estimated time of a move by tiles, in units of the time of the driver's copy of as many
/// bytes. The estimate is 1 plus the sum of the terms below. A pair of weights is for elements of
/// one byte and for wider elements.
pub(crate) struct WindowTime {
    /// Runs may begin within a cache line or a sector. The term is this weight times the bytes of
    /// that line or sector, over the bytes of the run: for lines and sectors of the source; for
    /// lines of the destination; and for sectors of the destination.
    pub(crate) torn_read: f64,
    pub(crate) torn_line: f64,
    pub(crate) torn_sector: [f64; 2],
    /// The weight for runs of the source of 32 bytes, half of 64. Runs of 64 bytes or more cost
    /// nothing.
    pub(crate) short_read: f64,
    /// The instructions of a lane for each byte that memory moves which cost nothing, and the
    /// weight for twice as many.
    pub(crate) issued_per_byte: f64,
    pub(crate) issued: [f64; 2],
    /// The reads of shared memory by a lane for each byte that memory moves which cost nothing, and
    /// the weight for twice as many.
    pub(crate) reads_per_byte: f64,
    pub(crate) reads: f64,
    /// The weight for one resident warp; it is divided by the number of resident warps.
    pub(crate) warps: f64,
    /// The shared memory of all blocks of a multiprocessor, in percent, that costs nothing because
    /// enough L1 cache remains; and the weight for twice as much.
    pub(crate) shared_percent: i64,
    pub(crate) cache: f64,
    /// The bytes of a small tile, and the weight for each doubling of a tile of one-byte elements
    /// beyond that.
    pub(crate) small_tile: f64,
    pub(crate) large: f64,
    /// The number of resident blocks that hide each other's latencies; and the weight for fewer
    /// blocks if one-byte elements stay in the L2 cache.
    pub(crate) many_blocks: i64,
    pub(crate) few_blocks: f64,
    /// The approximate number of registers of a thread.
    pub(crate) thread_registers: i64,
}

pub(crate) const WINDOWS: FittedWindows = FittedWindows {
    tile_percent: 48,
    two_percent: [22, 33],
    thread_registers: 64,
    words_in_flight: 18,
    words: 36,
    unrolled: 192,
    unrolled_apart: 48,
    time: WindowTime {
        torn_read: 0.0083,
        torn_line: 0.0073,
        torn_sector: [0.68, 0.35],
        short_read: 0.3,
        issued_per_byte: 4.55,
        issued: [0.073, 0.035],
        reads_per_byte: 0.417,
        reads: 0.0276,
        warps: 0.95,
        shared_percent: 70,
        cache: 0.112,
        small_tile: 4096.0,
        large: 0.015,
        many_blocks: 4,
        few_blocks: 0.17,
        thread_registers: 48,
    },
};

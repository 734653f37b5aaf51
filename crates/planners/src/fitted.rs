//! The numbers that were found by timing, of every planner but that of GEMM.
//!
//! Law: what no document says and no law gives, but decides between plans, stands here: a name, a
//! unit, and how it was found. All are of one card, an H200, and are ratios of what a card has: of
//! its caches, of the latency and the bandwidth of its memory, of its multiprocessors (`law.rs`).
//! Each group says what was timed, the day on which its numbers were set, and the command that
//! times its kernels again; `DECISIONS.md` has the times.

/// Bytes of a tensor that stays in the L2 cache where it is read or written again, in percent of
/// the cache: of reductions and of moves by windows, and of all tensors of a GEMM with inputs.
/// 2026-11-24, `tilewright kernel bench sum_columns|permute ..`.
pub(crate) const CACHED_L2_PERCENT: i64 = 64;

/// Of softmax and norms of rows: 1,800 forms of rows of 1 to 512 MiB, 2026-11-23 to 2026-11-29,
/// `tilewright kernel bench softmax|rms_norm|layer_norm M=.. N=..`.
pub(crate) struct FittedRows {
    /// The most warps of a block of a cluster whose part of a row ends within a run; the largest of
    /// several blocks take the place of blocks of more warps.
    pub(crate) ragged_warps: i64,
    /// The most bytes of all rows together, in percent of the L2 cache, of which each has a block
    /// or a cluster of its own: of short rows, of longer ones that softmax holds once, and of
    /// others.
    pub(crate) cached_l2_percent: [i64; 3],
    /// How many times as long as rows that one block holds are rows of softmax of f32 that end
    /// within a run, and that persistent clusters claim.
    pub(crate) ragged_softmax_rows: i64,
    /// How long the blocks of a persistent cluster wait for each other, in latencies of device
    /// memory: of two, four, eight and sixteen blocks.
    pub(crate) cluster_waits: [f64; 4],
    /// Latencies of device memory that a multiprocessor with blocks of persistent clusters hides
    /// by vectors in flight: of clusters of up to four blocks, of larger ones, and of softmax by
    /// sixteen blocks where rows end within a run.
    pub(crate) in_flight: [f64; 3],
}

pub(crate) const ROWS: FittedRows = FittedRows {
    ragged_warps: 12,
    cached_l2_percent: [256, 128, 40],
    ragged_softmax_rows: 3,
    cluster_waits: [0.0, 1.0, 2.3, 3.7],
    in_flight: [3.0, 3.6, 4.3],
};

/// Of reductions along any modes: 39 shapes of a matrix, each in up to eight ways, and rows and
/// whole tensors of 1 to 512 MiB, 2026-11-28,
/// `tilewright kernel bench sum_columns|argmax_rows|sum_all ..`.
pub(crate) struct Reductions {
    /// Blocks for each multiprocessor that keep the card busy, and where they have shares of
    /// results.
    pub(crate) busy_blocks: i64,
    pub(crate) shared_blocks: i64,
    /// The most elements of a result of a strip, for each block, of which half as many threads have
    /// parts.
    pub(crate) few_elements: i64,
    /// Seconds from the end of one launch to the work of the next, or of the last block.
    pub(crate) launch: f64,
}

pub(crate) const REDUCTIONS: Reductions =
    Reductions { busy_blocks: 2, shared_blocks: 16, few_elements: 8, launch: 2.45e-6 };

/// Of moves between layouts: 2026-11-24, `tilewright kernel bench transpose|permute ..`.
pub(crate) struct Relayouts {
    /// Bytes side by side that are as good as any. From the L2 cache half as many are; a run that
    /// both sides share is moved as it is from twice as many on; a quarter is the least of a square
    /// tile.
    pub(crate) run: i64,
    /// Bytes of a tensor, in percent of the L2 cache, of which short runs are as good as long ones.
    pub(crate) small_l2_percent: i64,
    /// Tiles turned in registers.
    pub(crate) squares: FittedSquares,
    /// Tiles of bits.
    pub(crate) bits: FittedBits,
}

/// Of tiles that are turned in registers, square by square.
pub(crate) struct FittedSquares {
    /// The most squares along a side: also the most of all where a tile with more would leave
    /// multiprocessors idle.
    pub(crate) side: i64,
    /// The most elements of a tile.
    pub(crate) elements: i64,
    /// Bytes of a tensor of 16-bit elements, in percent of the L2 cache, of which small tiles are
    /// faster.
    pub(crate) halves_l2_percent: i64,
    /// The least share of all tiles that is elements: of narrow elements, and of words.
    pub(crate) filled: [f64; 2],
}

/// Of tiles of layouts over bits.
pub(crate) struct FittedBits {
    /// Bytes of a tile: the most, as many as are enough, and as a small tensor still has.
    pub(crate) most: u64,
    pub(crate) enough: u64,
    pub(crate) least: u64,
    /// Vectors of a thread, the least, as a power of two.
    pub(crate) thread_vectors: u32,
}

pub(crate) const RELAYOUTS: Relayouts = Relayouts {
    run: 256,
    small_l2_percent: 8,
    squares: FittedSquares { side: 64, elements: 1 << 14, halves_l2_percent: 16, filled: [0.74, 0.8] },
    bits: FittedBits { most: 32 << 10, enough: 16 << 10, least: 4 << 10, thread_vectors: 2 },
};

/// Of tiles whose runs begin anywhere: 5,000 timings of 200 moves, 2026-11-23, `tilewright kernel
/// bench permute ..`.
pub(crate) struct FittedWindows {
    /// The most shared memory of a tile, in percent of that of a multiprocessor: two of them.
    pub(crate) tile_percent: i64,
    /// Tiles of more than the first take the second: a third one on a multiprocessor would leave
    /// too little of the L1 cache. In percent, as before.
    pub(crate) two_percent: [i64; 2],
    /// Registers of a thread by which resident blocks are chosen.
    pub(crate) thread_registers: i64,
    /// Words that a thread has in flight, and that it reads before it goes on to the next iteration
    /// of a loop.
    pub(crate) words_in_flight: i64,
    pub(crate) words: i64,
    /// Elements that a thread writes before it goes on to the next iteration, and the same where it
    /// computes in each where they are.
    pub(crate) unrolled: i64,
    pub(crate) unrolled_apart: i64,
    /// The estimate of a tile's time.
    pub(crate) time: WindowTime,
}

/// The time of a move by tiles, where 1 is that of the driver's copy of as many bytes. Each weight
/// is what its term adds to that 1. A pair is of elements of one byte, and of wider ones.
pub(crate) struct WindowTime {
    /// For each byte of a line or sector in which a run of the source begins, over the bytes of the
    /// run; of a line, of a run of the destination; and of a sector of that.
    pub(crate) torn_read: f64,
    pub(crate) torn_line: f64,
    pub(crate) torn_sector: [f64; 2],
    /// Runs of the source of half of 64 bytes.
    pub(crate) short_read: f64,
    /// Instructions of a lane for each byte that memory moves meanwhile, and twice as many of them.
    pub(crate) issued_per_byte: f64,
    pub(crate) issued: [f64; 2],
    /// Reads of shared memory by a lane for each byte that memory moves meanwhile, and twice as
    /// many of them.
    pub(crate) reads_per_byte: f64,
    pub(crate) reads: f64,
    /// One resident warp.
    pub(crate) warps: f64,
    /// Shared memory that all blocks of a multiprocessor take without loss of L1 cache, in percent,
    /// and twice as much of it.
    pub(crate) shared_percent: i64,
    pub(crate) cache: f64,
    /// Bytes of a small tile, and a tile of twice as many one-byte elements.
    pub(crate) small_tile: f64,
    pub(crate) large: f64,
    /// Blocks of a multiprocessor that hide each other's waits, and fewer of them where one-byte
    /// elements stay in the L2 cache.
    pub(crate) many_blocks: i64,
    pub(crate) few_blocks: f64,
    /// Registers of a thread, about.
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

//! The numbers that were found by timing, of every planner but that of GEMM.
//!
//! Law: what no document says and no law gives, but decides between plans, stands here: a name, a
//! unit, and how it was found. All are of one card, an H200 ([`Scale::of`]). What grows with a card
//! is given for that card, and scaled by what another one has. Each group says what was timed, the
//! day on which its numbers were set, and the command that times its kernels again;
//! `DECISIONS.md` has the times.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::Target;

/// What a card has, beside the card that was timed.
pub(crate) struct Scale<'m> {
    machine: &'m Machine,
    timed: Machine,
}

impl<'m> Scale<'m> {
    pub(crate) fn of(machine: &'m Machine) -> Scale<'m> {
        Scale { machine, timed: Machine::of_target(Target::Sm90a) }
    }

    /// A number for all multiprocessors of the card that was timed, for all of this one.
    pub(crate) fn by_multiprocessors(&self, number: i64) -> i64 {
        scaled(number, self.machine.multiprocessors.into(), self.timed.multiprocessors.into())
    }

    /// Bytes of a tensor beside the L2 cache of the card that was timed, beside that of this one.
    pub(crate) fn by_l2(&self, bytes: i64) -> i64 {
        scaled(bytes, self.machine.l2_bytes, self.timed.l2_bytes)
    }

    /// Bytes of the shared memory of a multiprocessor, likewise.
    pub(crate) fn by_shared(&self, bytes: i64) -> i64 {
        let [own, timed] = [self.machine, &self.timed].map(|machine| machine.multiprocessor.shared_bytes.into());
        scaled(bytes, own, timed)
    }
}

/// Bytes of a tensor that stays in the L2 cache of the card that was timed, where it is read or
/// written again: of reductions and of moves by windows, and of all tensors of a GEMM with inputs.
pub(crate) const CACHED_BYTES: i64 = 32 << 20;

/// This many percent of the L2 cache of a machine, in bytes.
pub(crate) fn l2_share(machine: &Machine, percent: i64) -> i64 {
    scaled(percent, machine.l2_bytes, 100)
}

/// A number times a ratio, rounded down, and at least 1.
fn scaled(number: i64, own: u64, timed: u64) -> i64 {
    let scaled = i128::from(number) * i128::from(own) / i128::from(timed.max(1));
    scaled.clamp(1, i64::MAX.into()) as i64
}

/// Of softmax and norms of rows: 2026-11-23 to 2026-11-28,
/// `tilewright kernel bench softmax|rms_norm| layer_norm M=.. N=..`.
pub(crate) struct FittedRows {
    /// Threads of a block whose warps, or lanes, have rows of their own.
    pub(crate) threads_of_short: i64,
    /// The most threads of a block of which a multiprocessor has several.
    pub(crate) threads_of_several: i64,
    /// Vectors of a thread that stay in registers; more of them are in shared memory.
    pub(crate) register_vectors: i64,
    /// Runs of a row that are copied to shared memory as one group.
    pub(crate) runs_of_group: i64,
    /// The most numbers of 32 bits, of its part of a row, that a thread keeps.
    pub(crate) wide_numbers: i64,
    /// Elements of weights that a thread reads along with the row.
    pub(crate) early_elements: i64,
    /// Runs ahead of the one that is written for which weights are read.
    pub(crate) runs_ahead: usize,
    /// Rows of a thread, where each has a vector of it.
    pub(crate) rows_of_thread: i64,
    /// The most numbers of warps that a thread takes by itself: of warps that are a power of two,
    /// and of others.
    pub(crate) numbers_taken: [i64; 2],
    /// Registers of a thread by which resident blocks are chosen: where it has up to two vectors,
    /// up to four of f32, and more.
    pub(crate) thread_registers: [i64; 3],
    /// Clusters of few rows.
    pub(crate) few: FewRows,
    /// Persistent clusters.
    pub(crate) persistent: PersistentRows,
}

/// Of few rows, which leave multiprocessors idle: 1,000 forms of rows of 1 to 128 MiB, 2026-11-29,
/// the command of [`FittedRows`].
pub(crate) struct FewRows {
    /// The most warps of a block of a cluster that has just enough of them for its part of a row
    /// that ends within a run; more warps are made as many as those of the largest of several
    /// blocks.
    pub(crate) ragged_warps: i64,
    /// The least warps of a block of a cluster of eight; of fewer, the cluster has four.
    pub(crate) least_warps: i64,
    /// The most warps of all rows together for each multiprocessor, so that they run at once: of
    /// rows that one block holds in registers, of long rows of softmax in blocks of up to 16 warps,
    /// and of others.
    pub(crate) warps_short: i64,
    pub(crate) warps_long: i64,
    pub(crate) warps_other: i64,
    /// The most rows for each multiprocessor of which the largest block holds one, of f32; half as
    /// many of 16 bits.
    pub(crate) rows_of_largest: i64,
    /// The most bytes of all rows together, in percent of the L2 cache, of which each has a block
    /// or a cluster of its own: of short rows, of longer ones that softmax holds once, and of
    /// others.
    pub(crate) cached_l2_percent: [i64; 3],
}

/// Of persistent clusters that claim rows: 800 forms of rows, 2026-11-28, the command of
/// [`FittedRows`].
pub(crate) struct PersistentRows {
    /// The least bytes of a row that clusters claim: in general, of norms of f32 that end within a
    /// run, of norms with weights and a bias, and of softmax of f32 that ends within a run.
    pub(crate) row_bytes: i64,
    pub(crate) ragged_row_bytes: i64,
    pub(crate) biased_row_bytes: i64,
    pub(crate) ragged_softmax_bytes: i64,
    /// Multiprocessors of the card that clusters fill: graphics processing clusters are no
    /// multiples of a cluster of blocks.
    pub(crate) multiprocessors: i64,
    /// Blocks of a cluster, and how many vectors in flight on a multiprocessor the wait of its
    /// blocks for each other is worth.
    pub(crate) blocks: [(i64, i64); 4],
    /// Warps of a block, from and to, and the most of a multiprocessor.
    pub(crate) warps: [i64; 2],
    pub(crate) resident_warps: i64,
    /// The most vectors of a thread.
    pub(crate) thread_vectors: i64,
    /// Registers of a thread besides those of its vectors.
    pub(crate) other_registers: i64,
    /// The least vectors in flight on a multiprocessor: of clusters of up to four blocks, of larger
    /// ones that rows fill, of others, and of softmax by sixteen blocks where rows end within a
    /// run.
    pub(crate) vectors_in_flight: [i64; 4],
}

pub(crate) const ROWS: FittedRows = FittedRows {
    threads_of_short: 128,
    threads_of_several: 512,
    register_vectors: 4,
    runs_of_group: 4,
    wide_numbers: 32,
    early_elements: 16,
    runs_ahead: 2,
    rows_of_thread: 4,
    numbers_taken: [8, 16],
    thread_registers: [32, 42, 64],
    few: FewRows {
        ragged_warps: 12,
        least_warps: 4,
        warps_short: 8,
        warps_long: 32,
        warps_other: 16,
        rows_of_largest: 2,
        cached_l2_percent: [256, 128, 40],
    },
    persistent: PersistentRows {
        row_bytes: 128 << 10,
        ragged_row_bytes: 112 << 10,
        biased_row_bytes: (32 << 10) + 1,
        ragged_softmax_bytes: (384 << 10) + 1,
        multiprocessors: 124,
        blocks: [(2, 0), (4, 24), (8, 56), (16, 92)],
        warps: [4, 8],
        resident_warps: 20,
        thread_vectors: 11,
        other_registers: 64,
        vectors_in_flight: [76, 96, 98, 120],
    },
};

/// Of reductions along any modes: 39 shapes of a matrix, each in up to eight ways, and rows and
/// whole tensors of 1 to 512 MiB, 2026-11-28,
/// `tilewright kernel bench sum_columns|argmax_rows|sum_all ..`.
pub(crate) struct Reductions {
    /// Bytes that one block reads at once: of a row that it reads alone, and of what all shares
    /// leave for one block to combine.
    pub(crate) block_bytes: i64,
    /// Blocks for each multiprocessor that keep the card busy, and where they have shares of
    /// results.
    pub(crate) busy_blocks: i64,
    pub(crate) shared_blocks: i64,
    /// Threads of a block.
    pub(crate) threads: i64,
    /// Vectors that a thread reads before it computes, and the most elements or shares.
    pub(crate) loads: i64,
    pub(crate) most_loads: i64,
    /// Bytes of the widest strip of results side by side.
    pub(crate) strip: i64,
    /// Threads of a result of a strip: where a result has no more elements than `few_elements`
    /// times the blocks, and else.
    pub(crate) strip_threads: [i64; 2],
    pub(crate) few_elements: i64,
    /// Blocks of the card from which on strips are wider than a sector.
    pub(crate) wide_strip_blocks: i64,
    /// Picoseconds that a block takes for each element of a result of a strip: it reads one row
    /// after the other.
    pub(crate) strip_ps: i64,
    /// Picoseconds for each KiB that blocks with shares read from the L2 cache, and those that
    /// combining the shares takes more than a block takes to begin.
    pub(crate) share_ps: i64,
    pub(crate) combine_ps: i64,
    /// The most shares that a lane reads of a result.
    pub(crate) lane_shares: i64,
}

pub(crate) const REDUCTIONS: Reductions = Reductions {
    block_bytes: 16 << 10,
    busy_blocks: 2,
    shared_blocks: 16,
    threads: 512,
    loads: 4,
    most_loads: 16,
    strip: 256,
    strip_threads: [64, 128],
    few_elements: 8,
    wide_strip_blocks: 64,
    strip_ps: 600,
    share_ps: 122,
    combine_ps: 2_050_000,
    lane_shares: 8,
};

/// Of maps, element by element: 64 MiB to 4 GiB, and tensors in the cache, 2026-11-24, `tilewright
/// kernel bench add|convert|add_row N=..`.
pub(crate) struct Maps {
    /// Threads of a block, and where all tensors stay in the L2 cache.
    pub(crate) threads: [i64; 2],
    /// The most vectors of a thread.
    pub(crate) thread_vectors: i64,
}

pub(crate) const MAPS: Maps = Maps { threads: [128, 256], thread_vectors: 8 };

/// Of moves between layouts: 2026-11-24, `tilewright kernel bench transpose|permute ..`.
pub(crate) struct Relayouts {
    /// Bytes side by side that are as good as any. From the L2 cache half as many are; a run that
    /// both sides share is moved as it is from twice as many on; a quarter is the least of a square
    /// tile.
    pub(crate) run: i64,
    /// Bytes of a tensor, beside the L2 cache, of which short runs are as good as long ones.
    pub(crate) small: i64,
    /// Threads of a block, and the most vectors of a thread that moves rows.
    pub(crate) threads: i64,
    pub(crate) row_vectors: i64,
    /// Tiles turned in registers.
    pub(crate) squares: FittedSquares,
    /// Tiles of bits.
    pub(crate) bits: FittedBits,
}

/// Of tiles that are turned in registers, square by square.
pub(crate) struct FittedSquares {
    /// The most squares of a tile, and the most along a side: also the most of all where a tile
    /// with more would leave multiprocessors idle.
    pub(crate) most: i64,
    pub(crate) side: i64,
    /// The most elements of a tile.
    pub(crate) elements: i64,
    /// Registers of a thread that transposes squares of two vectors, and of more.
    pub(crate) thread_registers: [i64; 2],
    /// Bytes of a tensor of 16-bit elements, beside the L2 cache, of which small tiles are faster.
    pub(crate) cached_of_halves: i64,
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
    small: 4 << 20,
    threads: 256,
    row_vectors: 8,
    squares: FittedSquares {
        most: 512,
        side: 64,
        elements: 1 << 14,
        thread_registers: [42, 64],
        cached_of_halves: 8 << 20,
        filled: [0.74, 0.8],
    },
    bits: FittedBits { most: 32 << 10, enough: 16 << 10, least: 4 << 10, thread_vectors: 2 },
};

/// Of tiles whose runs begin anywhere: 5,000 timings of 200 moves, 2026-11-23, `tilewright kernel
/// bench permute ..`.
pub(crate) struct FittedWindows {
    /// The most shared memory of a tile, in bytes: two of them in a multiprocessor.
    pub(crate) tile_bytes: i64,
    /// Tiles of more bytes than the first take the second number: a third one on a multiprocessor
    /// would leave too little of the L1 cache.
    pub(crate) two_bytes: [i64; 2],
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
    /// Bytes of shared memory that all blocks of a multiprocessor take without loss of L1 cache,
    /// and twice as many of them.
    pub(crate) shared_bytes: i64,
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
    tile_bytes: 112_000,
    two_bytes: [50_000, 78_000],
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
        shared_bytes: 160 << 10,
        cache: 0.112,
        small_tile: 4096.0,
        large: 0.015,
        many_blocks: 4,
        few_blocks: 0.17,
        thread_registers: 48,
    },
};

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

/// A number times a ratio, rounded down, and at least 1.
fn scaled(number: i64, own: u64, timed: u64) -> i64 {
    let scaled = i128::from(number) * i128::from(own) / i128::from(timed.max(1));
    scaled.clamp(1, i64::MAX.into()) as i64
}

/// Of softmax and norms of rows: 2026-11-23 to 2026-11-28,
/// `tilewright kernel bench softmax|rms_norm| layer_norm M=.. N=..`.
pub(crate) struct Rows {
    /// Threads of a block whose warps, or lanes, have rows of their own.
    pub(crate) threads_of_short: i64,
    /// The most threads of a block of which a multiprocessor has several.
    pub(crate) threads_of_several: i64,
    /// Vectors of a thread that stay in registers; more of them are in shared memory.
    pub(crate) register_vectors: i64,
    /// The most vectors of a thread, of a row that is in registers alone; twice as many where it
    /// has shared memory.
    pub(crate) thread_vectors: i64,
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
/// the command of [`Rows`].
pub(crate) struct FewRows {
    /// Up to how many warps a block of a cluster has as few as hold its part of a row that ends
    /// within a run; else as many as the largest of several blocks.
    pub(crate) ragged_warps: i64,
    /// The least warps of a block of a cluster of eight; of fewer, the cluster has four.
    pub(crate) least_warps: i64,
    /// The most warps that all rows have together on the card, so that they run at once: of rows
    /// that one block holds in registers, that one holds partly in shared memory, of longer ones in
    /// blocks of up to 16 warps, and of others.
    pub(crate) warps_short: i64,
    pub(crate) warps_held: i64,
    pub(crate) warps_long: i64,
    pub(crate) warps_other: i64,
    /// From how many vectors on rows are long.
    pub(crate) long_vectors: i64,
    /// Up to how many rows of the card the largest block holds one, of f32 and of 16 bits.
    pub(crate) rows_of_largest: [i64; 2],
    /// Up to how many bytes of rows, beside the L2 cache, each has a block or a cluster of its own:
    /// of softmax, `rms_norm` and `layer_norm`, by the length of a row.
    pub(crate) softmax_cached: [i64; 2],
    pub(crate) rms_norm_cached: [i64; 2],
    pub(crate) layer_norm_cached: [i64; 3],
}

/// Of persistent clusters that claim rows: 800 forms of rows, 2026-11-28, the command of [`Rows`].
pub(crate) struct PersistentRows {
    /// From how many bytes of a row on clusters claim rows: of norms with one row of weights, of
    /// those of f32 that end within a run, of norms with two, and of softmax of f32 that ends
    /// within a run.
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
    /// Vectors of a thread, from and to.
    pub(crate) vectors: [i64; 2],
    /// The most padding of a row, per mille.
    pub(crate) padding: i64,
    /// Registers of a thread besides those of its vectors: always, and where rows end within a run.
    pub(crate) other_registers: i64,
    pub(crate) ragged_registers: i64,
    /// The least vectors in flight on a multiprocessor: of clusters of up to four blocks, which
    /// have all of rows, of more, of more where rows end within a run, and of softmax of such rows
    /// by sixteen.
    pub(crate) vectors_of_few: i64,
    pub(crate) vectors_of_more: i64,
    pub(crate) vectors_of_ragged: i64,
    pub(crate) vectors_of_powers: i64,
}

pub(crate) const ROWS: Rows = Rows {
    threads_of_short: 128,
    threads_of_several: 512,
    register_vectors: 4,
    thread_vectors: 8,
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
        warps_short: 1024,
        warps_held: 2560,
        warps_long: 4096,
        warps_other: 2048,
        long_vectors: 8192,
        rows_of_largest: [256, 128],
        softmax_cached: [128 << 20, 64 << 20],
        rms_norm_cached: [64 << 20, 20 << 20],
        layer_norm_cached: [128 << 20, 25 << 20, 20 << 20],
    },
    persistent: PersistentRows {
        row_bytes: 128 << 10,
        ragged_row_bytes: 112 << 10,
        biased_row_bytes: (32 << 10) + 1,
        ragged_softmax_bytes: (384 << 10) + 1,
        multiprocessors: 124,
        blocks: [(2, 0), (4, 24), (8, 56), (16, 92)],
        warps: [4, 8],
        resident_warps: 18,
        vectors: [5, 11],
        padding: 114,
        other_registers: 52,
        ragged_registers: 12,
        vectors_of_few: 76,
        vectors_of_more: 96,
        vectors_of_ragged: 98,
        vectors_of_powers: 120,
    },
};

/// Of reductions along any modes: 39 shapes of a matrix, each in up to eight ways, and rows and
/// whole tensors of 1 to 512 MiB, 2026-11-28,
/// `tilewright kernel bench sum_columns|argmax_rows|sum_all ..`.
pub(crate) struct Reductions {
    /// Up to how many bytes a row is short: a block reads it at once.
    pub(crate) short_row: i64,
    /// Blocks that keep the card busy.
    pub(crate) busy_blocks: i64,
    /// Blocks where they have shares of results, on the card.
    pub(crate) shared_blocks: i64,
    /// Threads of a block.
    pub(crate) threads: i64,
    /// Vectors that a thread reads before it computes, and the most elements.
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
    /// Nanoseconds of a block that reads a strip: to begin, and for ten elements of a result.
    pub(crate) strip_ns: [i64; 2],
    /// Nanoseconds of blocks with shares: to begin, and for a MiB of the tensor.
    pub(crate) share_ns: [i64; 2],
    /// Bytes that all shares leave at most for one block to combine them.
    pub(crate) combined_bytes: i64,
    /// Shares that a thread reads before it combines them, and the most that a lane reads of a
    /// result.
    pub(crate) share_loads: i64,
    pub(crate) lane_shares: i64,
    /// From how many results on neighbouring threads have neighbouring results, and how many of
    /// fewer are combined at once.
    pub(crate) many_results: i64,
    pub(crate) results_at_once: i64,
}

pub(crate) const REDUCTIONS: Reductions = Reductions {
    short_row: 16 << 10,
    busy_blocks: 256,
    shared_blocks: 2048,
    threads: 512,
    loads: 4,
    most_loads: 16,
    strip: 256,
    strip_threads: [64, 128],
    few_elements: 8,
    wide_strip_blocks: 64,
    strip_ns: [950, 6],
    share_ns: [3000, 125],
    combined_bytes: 16 << 10,
    share_loads: 16,
    lane_shares: 8,
    many_results: 32,
    results_at_once: 16,
};

/// Of maps, element by element: 64 MiB to 4 GiB, and tensors in the cache, 2026-11-24, `tilewright
/// kernel bench add|convert|add_row N=..`.
pub(crate) struct Maps {
    /// Threads of a block, and where all tensors stay in the L2 cache.
    pub(crate) threads: [i64; 2],
    /// Up to how many percent of the L2 cache all tensors fill when they stay there.
    pub(crate) cached_l2_percent: i64,
    /// The most vectors of a thread.
    pub(crate) thread_vectors: i64,
}

pub(crate) const MAPS: Maps = Maps { threads: [128, 256], cached_l2_percent: 96, thread_vectors: 8 };

/// Of moves between layouts: 2026-11-24, `tilewright kernel bench transpose|permute ..`.
pub(crate) struct Relayouts {
    /// From how many bytes on a run that both sides share is moved as it is.
    pub(crate) long_run: i64,
    /// Up to how many bytes of a tensor short runs are as good as long ones, beside the L2 cache.
    pub(crate) small: i64,
    /// Threads of a block that moves rows, bytes of the wider side that it moves, and the most
    /// vectors of a thread.
    pub(crate) row_threads: i64,
    pub(crate) row_block: i64,
    pub(crate) row_vectors: i64,
    /// Bytes side by side that are as good as any: from memory, and from the L2 cache.
    pub(crate) run: i64,
    pub(crate) cached_run: i64,
    /// Tiles turned in registers.
    pub(crate) squares: Squares,
    /// Tiles of bits.
    pub(crate) bits: Bits,
}

/// Of tiles that are turned in registers, square by square.
pub(crate) struct Squares {
    /// The most squares of a tile, the most along a side, and the least that a tile has where
    /// smaller ones would only make more blocks.
    pub(crate) most: i64,
    pub(crate) longest: i64,
    pub(crate) few: i64,
    /// The most elements of a tile.
    pub(crate) elements: i64,
    /// Registers of a thread that transposes squares of two vectors, and of more.
    pub(crate) thread_registers: [i64; 2],
    /// Up to how many bytes of a tensor small tiles are faster, for elements of one byte and of
    /// two, beside the L2 cache.
    pub(crate) cached: [i64; 2],
    /// How much of all tiles is elements, at least: of narrow elements, and of words.
    pub(crate) filled: [f64; 2],
    /// The least bytes side by side.
    pub(crate) least_run: i64,
}

/// Of tiles of layouts over bits.
pub(crate) struct Bits {
    /// Bytes of a tile: the most, as many as are enough, and as a small tensor still has.
    pub(crate) most: u64,
    pub(crate) enough: u64,
    pub(crate) least: u64,
    /// Threads of a block, the most, as a power of two.
    pub(crate) threads: u32,
    /// Vectors of a thread, the least, as a power of two.
    pub(crate) thread_vectors: u32,
}

pub(crate) const RELAYOUTS: Relayouts = Relayouts {
    long_run: 512,
    small: 4 << 20,
    row_threads: 256,
    row_block: 4096,
    row_vectors: 8,
    run: 256,
    cached_run: 128,
    squares: Squares {
        most: 512,
        longest: 64,
        few: 64,
        elements: 1 << 14,
        thread_registers: [42, 64],
        cached: [32 << 20, 8 << 20],
        filled: [0.74, 0.8],
        least_run: 64,
    },
    bits: Bits { most: 32 << 10, enough: 16 << 10, least: 4 << 10, threads: 8, thread_vectors: 2 },
};

/// Of tiles whose runs begin anywhere: 5,000 timings of 200 moves, 2026-11-23, `tilewright kernel
/// bench permute ..`.
pub(crate) struct Windows {
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
/// is what its term adds to that 1.
pub(crate) struct WindowTime {
    /// Bytes of the smallest tile that keeps a block busy for longer than it takes to begin.
    pub(crate) small_tile: f64,
    /// Bytes of shared memory that all blocks of a multiprocessor take without loss of L1 cache.
    pub(crate) shared_bytes: i64,
    /// Instructions of a lane that are issued while memory moves a byte.
    pub(crate) issued: f64,
    /// Bytes that memory moves while a lane reads from shared memory.
    pub(crate) read_back: f64,
    /// Registers of a thread, about.
    pub(crate) thread_registers: i64,
    /// Elements that a thread writes in one iteration, before its code is too long for the
    /// instruction caches.
    pub(crate) code_elements: f64,
    /// Resident blocks of a multiprocessor that are many.
    pub(crate) many_blocks: f64,
    /// A byte of a line or sector in which a run of the source begins, over the bytes of the run;
    /// of a line, of a run of the destination.
    pub(crate) torn_read: f64,
    pub(crate) torn_line: f64,
    /// Runs of the source, and of the destination, of half of 64 bytes.
    pub(crate) short_read: f64,
    pub(crate) short_written: f64,
    /// A tensor's worth of elements outside of it, and of elements read twice.
    pub(crate) outside: f64,
    pub(crate) twice: f64,
    /// Instructions past this part of those that are issued while memory moves count.
    pub(crate) issued_from: f64,
    /// Reads of shared memory, as many as are hidden; those past a part of them; and stores.
    pub(crate) loads: f64,
    pub(crate) loads_past: [f64; 2],
    pub(crate) stores: f64,
    /// One resident warp; one byte that threads side by side write.
    pub(crate) warps: f64,
    pub(crate) side_by_side: f64,
    /// A tile of half of `small_tile`; shared memory of twice `shared_bytes`.
    pub(crate) tiny: f64,
    pub(crate) cache: f64,
    /// Words of a chunk, of windows that begin inside of chunks, and of others.
    pub(crate) chunk_skewed: f64,
    pub(crate) chunk: f64,
    /// Axes beside the runs.
    pub(crate) beside: f64,
    /// As many idle as busy lanes that read, and that write.
    pub(crate) idle_read: f64,
    pub(crate) idle_written: f64,
    /// Code of twice `code_elements`.
    pub(crate) code: f64,
    /// Elements of a byte, and of more.
    pub(crate) bytes: ByWidth,
    pub(crate) words: ByWidth,
}

/// What is otherwise for bytes than for wider elements: they take four times as many instructions
/// and accesses of shared memory for as much memory.
pub(crate) struct ByWidth {
    /// Of sectors in which runs of the destination begin and end.
    pub(crate) torn: f64,
    /// Of instructions past those that are issued while memory moves.
    pub(crate) issued: f64,
    /// Of the size of a tile beside a small one, as a power of two.
    pub(crate) large: f64,
    /// Of chunks narrower than 16 bytes.
    pub(crate) narrow: f64,
    /// Of few resident blocks, where a tensor stays in the L2 cache.
    pub(crate) few: f64,
    /// Whether the last wave counts blocks one by one, and not as many as are resident.
    pub(crate) by_block: bool,
}

pub(crate) const WINDOWS: Windows = Windows {
    tile_bytes: 112_000,
    two_bytes: [50_000, 78_000],
    thread_registers: 64,
    words_in_flight: 18,
    words: 36,
    unrolled: 192,
    unrolled_apart: 48,
    time: WindowTime {
        small_tile: 4096.0,
        shared_bytes: 160 << 10,
        issued: 6.5,
        read_back: 0.6,
        thread_registers: 48,
        code_elements: 96.0,
        many_blocks: 4.0,
        torn_read: 0.012,
        torn_line: 0.0035,
        short_read: 0.3,
        short_written: 0.8,
        outside: 0.065,
        twice: 0.037,
        issued_from: 0.7,
        loads: 0.043,
        loads_past: [0.25, 0.075],
        stores: 0.105,
        warps: 0.6,
        side_by_side: 0.68,
        tiny: 0.034,
        cache: 0.1,
        chunk_skewed: 0.0147,
        chunk: 0.0086,
        beside: 0.0095,
        idle_read: 0.02,
        idle_written: 0.007,
        code: 0.055,
        bytes: ByWidth { torn: 0.65, issued: 0.104, large: 0.02, narrow: 3.4, few: 0.17, by_block: true },
        words: ByWidth { torn: 0.51, issued: 0.05, large: 0.003, narrow: 1.0, few: 0.0, by_block: false },
    },
};

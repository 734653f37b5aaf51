//! Fitted numbers of the time of a GEMM kernel.
//!
//! Every number was fitted on an NVIDIA H200 to times that
//! `tilewright gemm M N K --device --tune COUNT` printed:
//!
//! | constants | measured | date |
//! |---|---|---|
//! | [`BARE`] | 1,900 plans of 240 bare GEMMs of 16-bit types | 2026-11-29 |
//! | [`GENERAL`] | several hundred plans of 33 GEMMs of all kinds | 2026-11-28 |
//! | [`GENERAL`], rows that are not aligned to cache lines | 180 plans of 36 GEMMs | 2026-11-28 |
//!
//! The form of the model is the same for both sets, in `model.rs`. A constant of [`GENERAL`]
//! differs from that of [`BARE`] only where the latter would choose other plans: its measurements
//! predate the terms for single cache lines ([`Loads::Lines`]) and for operands that are read
//! again.
//!
//! Cycles are cycles of an SM at the clock of [`Fitted::loaded_clock`]. A constant without a unit
//! is a ratio.

/// The constants of one set of measurements.
///
/// A common set for all kinds was tried on 2026-11-29. Bare GEMMs kept their times, but the 32
/// GEMMs of other kinds whose tile changed took 1.066 of the time on average, and 1.81 at worst,
/// where 1.04 is accepted. A common set requires those kinds to be measured again, with every
/// candidate. Plans of warps ([`Plan::warps`](crate::gemm::Plan::warps)) have their own model, from
/// the data of the machine, which takes launch, bandwidth and overlap from [`BARE`].
pub(crate) struct Fitted {
    /// The clock of an SM while tensor cores work, as a ratio to the boost clock.
    pub(crate) loaded_clock: f64,
    /// The cost of the loads of a k-tile.
    pub(crate) loads: Loads,
    /// The exponent of the smooth maximum of times that overlap: higher means better overlap.
    pub(crate) overlap: i32,
    /// Cycles that TMA takes for a line of a box outside of the tensor.
    pub(crate) outside_line: f64,
    /// The least number of cycles of a k-tile.
    pub(crate) k_tile: f64,
    /// The share of the time of promotion that is not hidden while another warpgroup multiplies.
    pub(crate) promotion_seen: f64,
    /// Cycles of the epilogue for each 64 accumulators.
    pub(crate) accumulators: f64,
    /// Cycles for each 64 accumulators that split-K writes to the workspace.
    pub(crate) partial_store: f64,
    /// Whether these cycles replace those of the epilogue in a tile of split-K.
    pub(crate) partial_stores_alone: bool,
    /// Cycles of each part of a tile beyond [`FEW_PARTS`](super::plan::staging::FEW_PARTS).
    pub(crate) further_part: f64,
    /// The ratio of the time of tiles of some areas to that of tiles of 128 x 256.
    pub(crate) areas: Areas,
    /// The ratio of the time of a tile under a ping-pong schedule to that under a cooperative one:
    /// in short work, and in long work.
    pub(crate) ping_pong: [f64; 2],
    /// Cycles from the last MMA of a ping-pong warpgroup to the first one of the other warpgroup,
    /// for each piece of a tile that one warpgroup stores.
    pub(crate) handover: f64,
    /// The ratio of the time of a cluster with three stages to that with more stages.
    pub(crate) three_stages_in_cluster: f64,
    /// The achieved bandwidth of device memory, as a ratio to that of the data sheet.
    pub(crate) bandwidth: f64,
    /// The exponents of two smooth maxima: of work and of the reads of operands that were evicted
    /// between waves; and of both and the tensors that are read once. None if no effect was
    /// measured.
    pub(crate) reread: Option<[i32; 2]>,
    /// The cost of the stores of the last wave; None if no effect was measured.
    pub(crate) last_wave: Option<LastWave>,
    /// Seconds of a launch.
    pub(crate) launch: f64,
    /// Seconds of a launch that overlaps the one before (programmatic dependent launch).
    pub(crate) overlapped_launch: f64,
    /// Seconds of the second kernel of split-K.
    pub(crate) second_kernel: f64,
    /// The bandwidth at which partial accumulators of split-K are written and read again, as a
    /// ratio to that of device memory on the data sheet: above 1 if they stay in the L2 cache.
    pub(crate) workspace_bandwidth: f64,
}

/// The cost of the loads of a k-tile.
pub(crate) enum Loads {
    /// Counted in requests for cache lines: the rate at which a block requests them, and the rate
    /// at which L2 delivers to all SMs.
    Lines(LineLoads),
    /// Counted in bytes, with a factor for rows that are not aligned to cache lines.
    Bytes(ByteLoads),
}

/// Loads, counted in cache lines.
pub(crate) struct LineLoads {
    /// Bytes that one block requests in a cycle.
    pub(crate) asked: f64,
    /// Bytes that the blocks of a cluster receive together in a cycle.
    pub(crate) received: f64,
    /// Bytes that L2 delivers to each SM in a cycle while all SMs request.
    pub(crate) delivered: f64,
    /// The additional cost of a request that continues in a second cache line, as a ratio to that
    /// of one that does not.
    pub(crate) second_line: f64,
    /// Cycles until both blocks of a cluster are ready to receive.
    pub(crate) cluster_ready: f64,
    /// Additional cycles if requests continue in a second cache line.
    pub(crate) cluster_ready_second_line: f64,
}

/// Loads, counted in bytes. Pairs are for short work and for long work, in which power lowers the
/// clock of the SMs but not that of L2.
pub(crate) struct ByteLoads {
    /// Bytes that an SM loads in a cycle.
    pub(crate) fill: [f64; 2],
    /// The ratio of the time of loads whose rows are not aligned to cache lines to that of aligned
    /// loads.
    pub(crate) unaligned: [f64; 2],
    /// Cycles until both blocks of a cluster are ready to receive.
    pub(crate) cluster_ready: f64,
}

/// The ratios of the times of tiles to that of tiles of 128 x 256, in work that power limits: tiles
/// of other areas read operands more often or less often.
pub(crate) struct Areas {
    /// Whether the ratios apply to long work only.
    pub(crate) long_alone: bool,
    /// Smaller tiles, and 256 x 128.
    pub(crate) small: f64,
    /// The same for long work whose rows are not aligned to cache lines.
    pub(crate) small_unaligned: f64,
    /// Tiles of 256 x 192 and more.
    pub(crate) largest: f64,
    /// Tiles between 128 x 256 and 256 x 192.
    pub(crate) large: f64,
}

/// The cost of the stores of the last wave in short work whose tensors do not stay in L2.
pub(crate) struct LastWave {
    /// Bytes of stores that L2 absorbs at once.
    pub(crate) cached: i64,
    /// The bandwidth of the remaining stores, as a ratio to that of the data sheet.
    pub(crate) bandwidth: f64,
}

/// Bare GEMMs of 16-bit types: no epilogue function, batch, groups, list, or folded modes.
pub(crate) const BARE: Fitted = Fitted {
    loaded_clock: 0.892,
    loads: Loads::Lines(LineLoads {
        asked: 172.0,
        received: 110.0,
        delivered: 84.0,
        second_line: 1.16,
        cluster_ready: 30.0,
        cluster_ready_second_line: 240.0,
    }),
    overlap: 6,
    outside_line: 2.85,
    k_tile: 195.0,
    promotion_seen: 0.5,
    accumulators: 4.2,
    partial_store: 18.8,
    partial_stores_alone: true,
    further_part: 107.0,
    areas: Areas { long_alone: true, small: 1.08, small_unaligned: 1.015, largest: 1.009, large: 1.035 },
    ping_pong: [0.955, 1.015],
    handover: 850.0,
    three_stages_in_cluster: 1.0,
    bandwidth: 0.82,
    reread: Some([2, 16]),
    last_wave: None,
    launch: 2.15e-6,
    overlapped_launch: 1.53e-6,
    second_kernel: 0.9e-6,
    workspace_bandwidth: 2.375,
};

/// All other GEMMs.
pub(crate) const GENERAL: Fitted = Fitted {
    loads: Loads::Bytes(ByteLoads { fill: [69.0, 73.0], unaligned: [2.05, 1.75], cluster_ready: 60.0 }),
    partial_stores_alone: false,
    further_part: 210.0,
    areas: Areas { long_alone: false, small: 1.07, small_unaligned: 1.03, largest: 0.985, large: 1.02 },
    ping_pong: [1.03, 1.03],
    three_stages_in_cluster: 1.08,
    reread: None,
    last_wave: Some(LastWave { cached: 4 << 20, bandwidth: 0.6 }),
    launch: 1.4e-6,
    overlapped_launch: 0.3e-6,
    workspace_bandwidth: 0.5,
    ..BARE
};

/// The most operations of short work, whose power does not yet lower the clock. A multiply-add
/// counts as two.
pub(crate) const SHORT_WORK: i64 = 40_000_000_000;

// Thresholds of plans. Each was measured on an H200 with `tilewright gemm M N K --device --tune`;
// DECISIONS says when, and what was compared.

/// The tiles of a raster band, unless another number leaves fewer tiles outside of D.
pub(crate) const BAND: i64 = 8;
/// The least number of tiles of a raster band of long work: smaller bands read the operand along
/// the columns too often.
pub(crate) const LEAST_BAND: i64 = 4;
/// The approximate number of bytes of tensors that stay in L2 from one launch to the next.
pub(crate) const CACHED: i64 = 12 << 20;
/// The number of operations for each byte from which on memory is not the bottleneck.
pub(crate) const INTENSE: i64 = 300;
/// Bytes of all stages if the small matrices of a batch are streamed.
pub(crate) const STREAMED_BYTES: i64 = 48 << 10;
/// Stages of a ring so short that the largest tiles release each stage at once.
pub(crate) const SHORT_RING: i64 = 3;
/// The least number of k-tiles of a tile whose stages are released at once because the ring is
/// short.
pub(crate) const RELEASE_K_TILES: i64 = 16;
/// The most k-tiles of the largest tiles whose warpgroups store their rows separately.
pub(crate) const SEPARATE_STORE_K_TILES: i64 = 100;
/// Full waves before the tail, from which on split-K of the tail gains more than it costs.
pub(crate) const TAIL_WAVES: i64 = 12;
/// The numbers of blocks that may share a tile of the tail.
pub(crate) const TAIL_SPLITS: [i64; 5] = [2, 3, 4, 5, 6];
/// The least columns of ping-pong tiles.
pub(crate) const PING_PONG_COLUMNS: i64 = 128;
/// The most waves for which tile widths are adjusted to fill them.
pub(crate) const FILLED_WAVES: i64 = 4;
/// The most scales of a thread that are loaded ahead of their k-tile.
pub(crate) const MAX_SCALES_AHEAD: i64 = 8;
/// The number of k-tiles by which scales are loaded ahead for small tiles.
pub(crate) const SCALE_DEPTH: i64 = 4;
/// Accumulators of a tile whose k-tile takes as long as a load from L2.
pub(crate) const LONG_K_TILE: i64 = 128 * 128;

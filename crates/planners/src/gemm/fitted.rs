//! Fitted numbers of the time of a GEMM kernel.
//!
//! Every number was fitted on an NVIDIA H200 to times that
//! `tilewright gemm M N K --device --tune COUNT` printed:
//!
//! | numbers | measured | date |
//! |---|---|---|
//! | [`BARE`] | 1,900 plans of 240 bare GEMMs of 16-bit types | 2026-11-29 |
//! | [`GENERAL`] | some hundred plans of 33 GEMMs of all kinds | 2026-11-28 |
//! | [`GENERAL`], rows that are not aligned to cache lines | 180 plans of 36 GEMMs | 2026-11-28 |
//!
//! The law is one, in `model.rs`. [`GENERAL`] has a number of its own only where that of [`BARE`]
//! would choose other plans: its measurements predate the terms for single cache lines
//! ([`Loads::Lines`]) and for operands that are read again.
//!
//! Cycles are cycles of an SM at the clock of [`Fitted::loaded_clock`]. A number without a unit is
//! a ratio.

/// The numbers of one set of measurements.
///
/// One set for all kinds was tried on 2026-11-29. Bare GEMMs kept their times, but the 32 GEMMs of
/// other kinds whose tile changed took 1.066 of the time on average, and 1.81 at worst, where
/// 1.04 is accepted. A common set needs those kinds measured again, with every candidate. Plans of
/// warps ([`Plan::warps`](crate::gemm::Plan::warps)) have a law of their own, from the data of the
/// machine, which takes launch, bandwidth and overlap from [`BARE`].
pub(crate) struct Fitted {
    /// The clock of an SM while tensor cores work, of the boost clock.
    pub(crate) loaded_clock: f64,
    /// What the loads of a k-tile take.
    pub(crate) loads: Loads,
    /// Exponent of the smooth maximum of what overlaps: higher means better overlap.
    pub(crate) overlap: i32,
    /// Cycles of TMA for a line of a box outside of the tensor.
    pub(crate) outside_line: f64,
    /// Cycles that a k-tile takes at least.
    pub(crate) k_tile: f64,
    /// How much of promotion is seen while another warpgroup multiplies.
    pub(crate) promotion_seen: f64,
    /// Cycles of the epilogue for each 64 accumulators.
    pub(crate) accumulators: f64,
    /// Cycles for each 64 accumulators that split-K writes to the workspace.
    pub(crate) partial_store: f64,
    /// Whether a tile of split-K takes these in place of those of its epilogue.
    pub(crate) partial_stores_alone: bool,
    /// Cycles of each part of a tile beyond [`FEW_PARTS`](super::plan::staging::FEW_PARTS).
    pub(crate) further_part: f64,
    /// How much longer tiles of some areas take than those of 128 x 256.
    pub(crate) areas: Areas,
    /// How much longer a tile takes under a ping-pong schedule, in short work, and in long work.
    pub(crate) ping_pong: [f64; 2],
    /// Cycles from the last MMA of a ping-pong warpgroup to the first of the other one, and of each
    /// piece of a tile that one warpgroup stores.
    pub(crate) handover: f64,
    /// How much longer a cluster takes with three stages than with more.
    pub(crate) three_stages_in_cluster: f64,
    /// The bandwidth of device memory that is reached, of that of the data sheet.
    pub(crate) bandwidth: f64,
    /// Exponents of the smooth maxima of work and operands that waves find evicted and read again,
    /// and of both and tensors that are read once; none if nothing was seen of it.
    pub(crate) reread: Option<[i32; 2]>,
    /// What the stores of the last wave take; none if nothing was seen of it.
    pub(crate) last_wave: Option<LastWave>,
    /// Seconds of a launch.
    pub(crate) launch: f64,
    /// Seconds of a launch that overlaps the one before (programmatic dependent launch).
    pub(crate) overlapped_launch: f64,
    /// Seconds of the second kernel of split-K.
    pub(crate) second_kernel: f64,
    /// The bandwidth at which partial accumulators of split-K are written and read again, of that
    /// of device memory on the data sheet: above 1 if they stay in the L2 cache.
    pub(crate) workspace_bandwidth: f64,
}

/// What the loads of a k-tile take.
pub(crate) enum Loads {
    /// Counted in requests for cache lines: what a block asks for, and what L2 delivers to all.
    Lines(LineLoads),
    /// Counted in bytes, with a factor for rows that are not aligned to cache lines.
    Bytes(ByteLoads),
}

/// Loads, counted in cache lines.
pub(crate) struct LineLoads {
    /// Bytes a cycle that one block asks for.
    pub(crate) asked: f64,
    /// Bytes a cycle that the blocks of a cluster receive together.
    pub(crate) received: f64,
    /// Bytes a cycle that L2 delivers to each SM while all ask.
    pub(crate) delivered: f64,
    /// How much more a request costs that continues in a second cache line than one that does not.
    pub(crate) second_line: f64,
    /// Cycles until both blocks of a cluster are ready to receive.
    pub(crate) cluster_ready: f64,
    /// Cycles more if requests continue in a second cache line.
    pub(crate) cluster_ready_second_line: f64,
}

/// Loads, counted in bytes: in short work, and in long work, in which power lowers the clock of the
/// SMs but not that of L2.
pub(crate) struct ByteLoads {
    /// Bytes a cycle that loads bring to an SM.
    pub(crate) fill: [f64; 2],
    /// How much longer loads take of rows that are not aligned to cache lines.
    pub(crate) unaligned: [f64; 2],
    /// Cycles until both blocks of a cluster are ready to receive.
    pub(crate) cluster_ready: f64,
}

/// How much longer tiles take than those of 128 x 256, since they read operands more often or less
/// often, in work in which power decides.
pub(crate) struct Areas {
    /// Whether short work does not see it.
    pub(crate) long_alone: bool,
    /// Smaller tiles, and 256 x 128.
    pub(crate) small: f64,
    /// The same in long work whose rows are not aligned to cache lines.
    pub(crate) small_unaligned: f64,
    /// Tiles of 256 x 192 and more.
    pub(crate) largest: f64,
    /// Tiles between 128 x 256 and 256 x 192.
    pub(crate) large: f64,
}

/// What the stores of the last wave take in short work whose tensors do not stay in L2.
pub(crate) struct LastWave {
    /// Bytes that L2 takes at once.
    pub(crate) cached: i64,
    /// The bandwidth of the rest, of that of the data sheet.
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

/// Multiply-adds, counted as two operations each, of work that is short: power does not yet lower
/// the clock.
pub(crate) const SHORT_WORK: i64 = 40_000_000_000;

// Thresholds of plans. Each was measured on an H200 with `tilewright gemm M N K --device --tune`;
// DECISIONS says when, and what was compared.

/// Tiles of a raster band, unless another number leaves fewer tiles outside.
pub(crate) const BAND: i64 = 8;
/// Tiles of a raster band of long work, of which fewer read the operand along the columns too
/// often.
pub(crate) const LEAST_BAND: i64 = 4;
/// Bytes of tensors that stay in L2 from one launch to the next, about.
pub(crate) const CACHED: i64 = 12 << 20;
/// Operations a byte from which on memory does not decide.
pub(crate) const INTENSE: i64 = 300;
/// Bytes of all stages if a batch of small matrices streams through.
pub(crate) const STREAMED_BYTES: i64 = 48 << 10;
/// Stages of a ring so short that the largest tiles release each stage at once.
pub(crate) const SHORT_RING: i64 = 3;
/// The least k-tiles of a tile that does so.
pub(crate) const RELEASE_K_TILES: i64 = 16;
/// The most k-tiles of the largest tiles whose warpgroups store their rows separately.
pub(crate) const SEPARATE_STORE_K_TILES: i64 = 100;
/// Full waves before the tail, from which on split-K of the tail gains more than it costs.
pub(crate) const TAIL_WAVES: i64 = 12;
/// How many blocks may share a tile of the tail.
pub(crate) const TAIL_SPLITS: [i64; 5] = [2, 3, 4, 5, 6];
/// The least columns of ping-pong tiles.
pub(crate) const PING_PONG_COLUMNS: i64 = 128;
/// The most waves that tiles of unusual widths are made to fill.
pub(crate) const FILLED_WAVES: i64 = 4;
/// The most scales of a thread that are loaded ahead of their k-tile.
pub(crate) const MAX_SCALES_AHEAD: i64 = 8;
/// How many k-tiles ahead scales are loaded for small tiles.
pub(crate) const SCALE_DEPTH: i64 = 4;
/// Accumulators of a tile whose k-tile takes as long as a load from L2.
pub(crate) const LONG_K_TILE: i64 = 128 * 128;

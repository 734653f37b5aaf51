//! Fitted numbers of the time of a GEMM kernel.
//!
//! Card: NVIDIA H200. Command: `tilewright gemm M N K --device --tune COUNT`.
//!
//! | numbers | measured | date |
//! |---|---|---|
//! | [`BARE`] | 1,900 plans of 240 bare GEMMs of 16-bit types | 2026-11-29 |
//! | [`OTHER`] | some hundred plans of 33 GEMMs of all other kinds | 2026-11-28 |
//!
//! The law is one, in `model.rs`. [`OTHER`] has six numbers of its own: operands of other sizes,
//! batches and inputs of an epilogue were measured with other loads and stores. Numbers that did
//! not change which plan is chosen were removed (`DECISIONS.md`).
//!
//! Cycles are cycles of an SM at the loaded clock. A number without a unit is a ratio.

/// The numbers of the law.
pub(crate) struct Fitted {
    /// The clock of an SM while tensor cores work, of the boost clock.
    pub(crate) loaded_clock: f64,
    /// The bandwidth of device memory that is reached, of that of the data sheet.
    pub(crate) bandwidth: f64,
    /// Bytes a cycle that one block asks for.
    pub(crate) asked: f64,
    /// Bytes a cycle that L2 delivers to each SM while all ask.
    pub(crate) delivered: f64,
    /// Bytes a cycle that the blocks of a cluster receive together.
    pub(crate) received: f64,
    /// How much more requests of less than half a cache line cost than their bytes say.
    pub(crate) small_request: f64,
    /// Cycles until both blocks of a cluster are ready to receive, and more if requests continue in
    /// a second cache line.
    pub(crate) cluster_ready: f64,
    pub(crate) cluster_ready_second_line: f64,
    /// Cycles of TMA for a line of a box outside of the tensor.
    pub(crate) outside_line: f64,
    /// Cycles that a k-tile takes at least.
    pub(crate) k_tile: f64,
    /// Cycles of the epilogue for each 64 accumulators, and for the same that split-K writes to the
    /// workspace.
    pub(crate) accumulators: f64,
    pub(crate) partial_accumulators: f64,
    /// Cycles of a part of a tile beyond [`FEW_PARTS`](super::plan::staging::FEW_PARTS), and of
    /// each part whose rows follow each other in shared memory without panels.
    pub(crate) part: f64,
    /// How much longer tiles take in long work that are neither 128 x 256 nor 256 x 192 and more:
    /// they read operands more often, and power decides.
    pub(crate) rereading_tile: f64,
    /// How much longer tiles take under a ping-pong schedule in short work, and cycles from the
    /// last MMA of a warpgroup to the first of the other one.
    pub(crate) ping_pong: f64,
    pub(crate) handover: f64,
    /// Seconds of a launch, and of one that overlaps the launch before (programmatic dependent
    /// launch).
    pub(crate) launch: f64,
    pub(crate) overlapped_launch: f64,
    /// Seconds of the second kernel of split-K.
    pub(crate) second_kernel: f64,
    /// The bandwidth at which partial accumulators of split-K are written and read again, of that
    /// of device memory on the data sheet: above 1, since they stay in the L2 cache.
    pub(crate) workspace_bandwidth: f64,
    /// How long the stores of the last wave take, of their time at the bandwidth of the data sheet,
    /// in short work whose tensors do not stay in L2.
    pub(crate) last_wave: f64,
}

/// Bare GEMMs of 16-bit types: no epilogue function, batch, groups, list, or folded modes.
pub(crate) const BARE: Fitted = Fitted {
    loaded_clock: 0.88,
    bandwidth: 0.86,
    asked: 168.0,
    delivered: 84.5,
    received: 110.0,
    small_request: 1.16,
    cluster_ready: 0.0,
    cluster_ready_second_line: 260.0,
    outside_line: 2.5,
    k_tile: 163.0,
    accumulators: 3.8,
    partial_accumulators: 16.8,
    part: 250.0,
    rereading_tile: 1.05,
    ping_pong: 0.95,
    handover: 800.0,
    launch: 2.15e-6,
    overlapped_launch: 1.5e-6,
    second_kernel: 0.9e-6,
    workspace_bandwidth: 2.0,
    last_wave: 0.0,
};

/// All other GEMMs.
pub(crate) const OTHER: Fitted = Fitted {
    asked: 77.0,
    cluster_ready: 69.0,
    cluster_ready_second_line: 0.0,
    outside_line: 4.06,
    accumulators: 2.55,
    last_wave: 1.32,
    ..BARE
};

/// Exponents of smooth maxima, of which higher means better overlap: of MMA and loads, of work and
/// operands that are read again, and of both and tensors that are read once.
pub(crate) const OVERLAP: [i32; 3] = [5, 2, 16];

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

//! The plan of a GEMM.
//!
//! Law: a plan has every choice that the problem does not determine: which operand is along the
//! rows of an output tile, the tile shape, warpgroups, stages, split-K, clusters, and the raster
//! order. [`Plan::refusal`] says why a plan cannot be carried out. `candidates.rs` chooses plans.

mod refusal;
pub(crate) mod staging;
mod text;
pub(crate) mod warps;

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;

use crate::error::PlanError;
use crate::gemm::fitted::{
    BAND, CACHED, INTENSE, LONG_K_TILE, MAX_SCALES_AHEAD, RELEASE_K_TILES, SCALE_DEPTH, SEPARATE_STORE_K_TILES,
    SHORT_RING, SHORT_WORK, STREAMED_BYTES, TAIL_WAVES,
};
use crate::gemm::implicit;
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::{Contiguous, Matrix};
use crate::units::count;
use crate::units::{LANES, has_float8};

/// Warps of a warpgroup, and its threads.
pub(crate) const WARPS: i64 = 4;
pub(crate) const WARPGROUP_THREADS: i64 = LANES * WARPS;
/// Rows of a tile that a warpgroup multiplies by one instruction.
pub(crate) const WARPGROUP_ROWS: i64 = 64;
/// Bytes of shared memory for mbarriers and for the alignment of stages.
const BARRIER_BYTES: i64 = 2048;
/// The most columns of a wgmma instruction, and the most rows or columns of a tile of warps.
const MAX_COLUMNS: i64 = 256;
/// The most phases of a ring of stages. With 24, a row by 512 x 2048 took 8.2 us, and 7.9 with 16.
const MAX_PHASES: i64 = 16;
/// Registers of a thread besides its accumulators, estimated.
const OTHER_REGISTERS: i64 = 32;
/// Registers of a producer thread and of a consumer thread after reallocation, with two consumer
/// warpgroups: multiples of 8 whose total is three equal shares.
const REALLOCATED: [u32; 2] = [40, 232];
/// The same for ping-pong, whose accumulators need more registers and whose producer needs few.
const REALLOCATED_PING_PONG: [u32; 2] = [24, 240];
/// The same with three consumer warpgroups: the total is four equal shares.
const REALLOCATED_THREE: [u32; 2] = [32, 160];
/// The most columns of an instruction with three consumer warpgroups: ptxas gives the accumulators
/// of one instruction no more registers than threads have at launch.
const COLUMNS_OF_THREE: i64 = 192;

/// The plan of a GEMM: chosen by [`Plan::of`], or measured by `tilewright gemm --device --tune`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Swaps operands: B is along the rows of a tile and A along its columns. Little is wasted then
    /// if A has few rows.
    pub swapped: bool,
    /// Rows of a tile: a multiple of the 64 rows of a wgmma instruction.
    pub rows: i64,
    /// Columns of a tile: a multiple of 8 up to 256.
    pub columns: i64,
    /// Consumer warpgroups. Each multiplies its own rows of a tile.
    pub warpgroups: i64,
    /// Stages of shared memory, each of one k-tile.
    pub stages: i64,
    /// Split-K: the number of blocks that share the k-tiles of a tile. A second kernel adds their
    /// partial accumulators in a fixed order.
    pub split_k: i64,
    /// The number of tiles that are split: those after the last full wave. 0 means all tiles.
    pub tail: i64,
    /// Blocks of a cluster, 1 or 2. Both have neighbouring tiles, and each multicasts half of the
    /// operand that they share: the operand along the rows if a tile has more rows than columns,
    /// otherwise the one along the columns.
    pub cluster: i64,
    /// Raster order: the number of tiles along the rows that are visited before the next column of
    /// tiles.
    pub raster_band: i64,
    /// Resident blocks on one multiprocessor.
    pub blocks_per_sm: i64,
    /// Blocks of the persistent grid, which iterate over tiles.
    pub blocks: i64,
    /// Programmatic dependent launch: blocks start while the previous launch still runs, and wait
    /// for it before they read.
    pub programmatic_launch: bool,
    /// Ping-pong schedule: each of two consumer warpgroups has its own tiles, and runs its epilogue
    /// while the other one multiplies. If false, all warpgroups share each tile (cooperative).
    pub ping_pong: bool,
    /// Warps along the rows and along the columns of a tile, which multiply by mma.sync; None if
    /// warpgroups multiply by wgmma. [`Plan::warpgroups`] is 1 then, and does not count.
    pub warps: Option<[i64; 2]>,
    /// Whether a producer warp loads the k-tiles of [`Plan::warps`] by TMA; if false, the warps
    /// copy them by cp.async. Warpgroups always have a producer, so the field is false for them.
    pub producer: bool,
}

/// Refuses a machine that does not have a type of a problem: MMA and conversions of 8-bit floats
/// need Ada or later, MMA of block-scaled formats the Blackwell of desktops.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::gemm::{Matrix, Problem, needs_types};
///
/// let of = |extents| Matrix::rows(Element::E4M3, extents).unwrap();
/// let d = Matrix::rows(Element::Bf16, [64, 64]).unwrap();
/// let problem = Problem::of(of([64, 32]), of([64, 32]), d).unwrap();
/// assert!(needs_types(&problem, &Machine::named("RTX 4090").unwrap()).is_ok());
/// assert!(needs_types(&problem, &Machine::named("A100").unwrap()).is_err());
/// ```
///
/// Errors: [`PlanError::Unknown`] for such a machine.
pub fn needs_types(problem: &Problem, machine: &Machine) -> Result<(), PlanError> {
    if problem.blocks().is_some() && !machine.target.has_block_scaled_mma() {
        let has = |own: &Machine| own.target.has_block_scaled_mma();
        let known = Machine::all().filter(has).map(|own| own.name).collect::<Vec<_>>().join(", ");
        let known = format!("{known}; elsewhere multiply the operands by their scales first, and take bf16");
        let given = machine.name.clone();
        return Err(PlanError::Unknown { what: "machine with MMA of block-scaled operands", given, known });
    }
    let inputs = problem.epilogue().iter().flat_map(|fused| &fused.inputs).collect::<Vec<_>>();
    let mut all = [problem.a(), problem.b(), problem.d()].into_iter().chain(inputs);
    let small = |matrix: &Matrix| matches!(matrix.element(), Element::E4M3 | Element::E5M2);
    if has_float8(machine) || !all.any(small) {
        return Ok(());
    }
    let known = Machine::all().filter(has_float8).map(|own| own.name).collect::<Vec<_>>();
    let given = machine.name.clone();
    Err(PlanError::Unknown { what: "machine with 8-bit floats", given, known: known.join(", ") })
}

impl Plan {
    /// The plan of a tile, with as many stages as fit and as many blocks as the machine holds at
    /// once.
    pub fn tiled(problem: &Problem, machine: &Machine, tile: TileChoice) -> Plan {
        Plan::in_bands(problem, machine, tile, 1)
    }

    /// The choices of a tile, with every other number of the plan set to 1.
    pub(crate) fn of_tile(tile: TileChoice) -> Plan {
        let TileChoice { swapped, rows, columns, warpgroups, split_k, cluster, blocks_per_sm, ping_pong, .. } = tile;
        let TileChoice { warps, producer, .. } = tile;
        Plan {
            swapped,
            rows,
            columns,
            warpgroups,
            stages: 1,
            split_k,
            tail: 0,
            cluster,
            raster_band: 1,
            blocks_per_sm,
            blocks: 1,
            programmatic_launch: false,
            ping_pong,
            warps,
            producer,
        }
    }

    /// The same, with a raster band of at least `least` tiles, if there are as many.
    pub(crate) fn in_bands(problem: &Problem, machine: &Machine, tile: TileChoice, least: i64) -> Plan {
        let TileChoice { rows, cluster, blocks_per_sm, warps, .. } = tile;
        let mut plan = Plan::of_tile(tile);
        let [m, ..] = plan.extents(problem);
        // Only whole clusters.
        let cluster = cluster.max(1);
        plan.raster_band = raster(problem, count(m, rows), if plan.side_by_side() { 1 } else { cluster }, least);
        let units = plan.units(problem);
        let processors = i64::from(machine.multiprocessors);
        let slots = processors * blocks_per_sm;
        // The fewest blocks that need no additional wave: idle SMs leave their power to the others.
        plan.blocks = count(count(units, count(units, slots)), cluster) * cluster;
        plan.programmatic_launch = warps.is_none() && blocks_per_sm == 1 && plan.may_overlap(problem, processors);
        plan.stages = plan.most_stages(problem, machine);
        if plan.streams(problem) {
            plan.stages = plan.stages.min(STREAMED_BYTES / plan.stage_bytes(problem));
        }
        plan
    }

    /// Whether small matrices of a batch are streamed: a block has one k-tile of each matrix and
    /// reads it once. Device memory is the bottleneck then, and loads that run far ahead only delay
    /// stores: 4096 GEMMs of 128 x 64 x 64 took 42.9 us with two stages and 45.4 us with eight. For
    /// 128 x 32 x 64, two stages took longer: 32.5 us instead of 30.8.
    pub(crate) fn streams(&self, problem: &Problem) -> bool {
        let small = 2 * self.stage_bytes(problem) <= STREAMED_BYTES && self.blocks_per_sm == 1 && self.columns >= 64;
        let one = self.tiles(problem) == [1, 1] && count(self.extents(problem)[2], problem.k_tile()) == 1;
        problem.batch() > 1 && small && one
    }

    /// The tile that the plan was made from.
    pub(crate) fn tile(&self) -> TileChoice {
        let Plan { swapped, rows, columns, warpgroups, split_k, cluster, blocks_per_sm, ping_pong, .. } = *self;
        let Plan { warps, producer, .. } = *self;
        TileChoice { swapped, rows, columns, warpgroups, split_k, cluster, blocks_per_sm, ping_pong, warps, producer }
    }

    /// The plan of one problem of a list: the same raster band, or a smaller one that leaves fewer
    /// tiles outside.
    pub(crate) fn of_problem(&self, problem: &Problem) -> Plan {
        let tiles = count(self.extents(problem)[0], self.rows.max(1));
        let outside = |band: i64| count(tiles, band) * band - tiles;
        let bands = (1..=self.raster_band.clamp(1, tiles.max(1))).rev();
        let band = bands.min_by_key(|band| outside(*band) * 64 / tiles.max(1)).unwrap_or(1);
        Plan { raster_band: band, ..self.clone() }
    }

    /// The number of stages that fit into the shared memory of a block, beside the epilogue tile.
    pub(crate) fn most_stages(&self, problem: &Problem, machine: &Machine) -> i64 {
        if self.warps.is_some() {
            return self.most_warp_stages(problem, machine);
        }
        let own = i64::from(machine.multiprocessor.shared_bytes) / self.blocks_per_sm.max(1)
            - i64::from(machine.multiprocessor.reserved_bytes);
        let room = own - BARRIER_BYTES - self.staged_bytes(problem, machine);
        let most = room / self.stage_bytes(problem);
        let even = Plan { stages: most / 2 * 2, ..self.clone() };
        if even.stages_of_phase(problem) == 2 { even.stages.min(2 * MAX_PHASES) } else { most.min(MAX_PHASES) }
    }

    /// Stages that are filled and released together, in one phase of an mbarrier: two of a ring of
    /// small stages, if a tile has several k-tiles and their number is even. Then more bytes are on
    /// their way, and barriers take less of the time of a k-tile.
    pub(crate) fn stages_of_phase(&self, problem: &Problem) -> i64 {
        let steps = self.steps(problem);
        let alone = self.split_k == 1 && self.cluster == 1 && !self.ping_pong && self.warps.is_none();
        let plain = alone && !problem.is_promoted() && implicit::of(problem).is_none();
        let several = steps % 2 == 0 && steps >= RELEASE_K_TILES;
        if plain && several && self.stages >= MAX_PHASES && self.stages % 2 == 0 { 2 } else { 1 }
    }

    /// Whether blocks should start while the previous launch still runs (PDL). Blocks are placed
    /// where the previous blocks left room. If each multiprocessor, or every second one, has one
    /// block, the blocks run at different times, so that operands that they share may have left L2.
    /// If device memory is the bottleneck, this costs more than the overlap gains. The overlap is
    /// worth it if the work is short.
    fn may_overlap(&self, problem: &Problem, processors: i64) -> bool {
        let [m, n, _] = self.extents(problem);
        let even = 20 * self.blocks >= 19 * processors || 2 * self.blocks <= processors;
        let [along, across] = [count(m, self.rows), count(n, self.columns * self.beside())];
        // Blocks share no operand if a matrix has one tile.
        let once = if problem.batch() == 1 { along == 1 || across == 1 } else { along * across == 1 };
        let (operations, bytes) = (problem.operations(), problem.bytes());
        even && operations < SHORT_WORK
            && (once || self.split_k > 1 || bytes < CACHED || operations / bytes.max(1) >= INTENSE)
    }

    /// M, N and K as the kernel sees them: the extent along the rows of tiles first.
    pub(crate) fn extents(&self, problem: &Problem) -> [i64; 3] {
        if let Some(fold) = implicit::of(problem).filter(|_| !self.swapped) {
            return [fold.padded(self.rows), problem.sizes()[1], fold.steps(problem.k_tile()) * problem.k_tile()];
        }
        let [m, n, k] = problem.mma_sizes();
        if self.swapped { [n, m, k] } else { [m, n, k] }
    }

    /// Rows and columns of D that a tile computes. A gated GEMM computes half of those along B.
    pub(crate) fn tile_of_d(&self, problem: &Problem) -> [i64; 2] {
        match problem.pairs() {
            None => [self.rows, self.columns],
            Some(_) if self.swapped => [self.rows / 2, self.columns],
            Some(_) => [self.rows, self.columns / 2],
        }
    }

    /// Whether the blocks of a cluster have tiles side by side, in the same rows; otherwise their
    /// tiles are one above the other.
    pub(crate) fn side_by_side(&self) -> bool {
        self.cluster > 1 && self.rows > self.columns
    }

    /// The number of tiles of a cluster that are side by side.
    pub(crate) fn beside(&self) -> i64 {
        if self.side_by_side() { self.cluster } else { 1 }
    }

    /// The number of tiles along the rows and along the columns, including those outside of D that
    /// complete bands and clusters.
    pub(crate) fn tiles(&self, problem: &Problem) -> [i64; 2] {
        let [m, n, _] = self.extents(problem);
        let across = if self.ends_above(problem) { 1 } else { self.beside() };
        [
            count(m, self.rows * self.raster_band).saturating_mul(self.raster_band),
            count(n, self.columns * across).saturating_mul(across),
        ]
    }

    /// Whether clusters have the tiles of the last column one above the other, while all others
    /// have them side by side. That is so if the number of columns of tiles is odd, the rows of
    /// tiles make pairs, and the operand along the columns is K-major, so that its halves can be
    /// multicast.
    pub(crate) fn ends_above(&self, problem: &Problem) -> bool {
        let [m, n, _] = self.extents(problem);
        let along = count(m, self.rows * self.raster_band).saturating_mul(self.raster_band);
        let operand = if self.swapped { problem.a() } else { problem.b() };
        let halves = problem.readable(operand) == Ok(Contiguous::Columns);
        self.side_by_side() && halves && along % 2 == 0 && count(n, self.columns) % 2 == 1
    }

    /// The work units of the grid: output tiles times splits of K, without the tail.
    pub(crate) fn units(&self, problem: &Problem) -> i64 {
        let [along, across] = self.tiles(problem);
        let alone = if self.tail > 0 { 1 } else { self.split_k };
        let tiles = along.saturating_mul(across).saturating_sub(self.tail);
        tiles.saturating_mul(problem.batch()).saturating_mul(alone)
    }

    /// The most work units of a block: the waves of the grid.
    pub(crate) fn waves(&self, problem: &Problem) -> i64 {
        count(self.units(problem), self.blocks.max(1)).max(1)
    }

    /// Registers of a thread without reallocation: an equal share, in the unit of allocation.
    fn registers(&self, machine: &Machine) -> i64 {
        let own = self.warps.map_or(WARPS * (self.warpgroups + 1), |grid| self.warps_of(grid));
        // A quarter of a multiprocessor has a quarter of the registers, and every fourth warp.
        let threads = LANES * count(own * self.blocks_per_sm.max(1), WARPS) * WARPS;
        (i64::from(machine.multiprocessor.registers) / threads.max(1) / 8 * 8).min(255)
    }

    /// Registers of a thread for accumulators; if they are promoted, for totals and the
    /// accumulators of a k-tile.
    fn accumulators(&self, problem: &Problem, machine: &Machine) -> i64 {
        let own = self.own_accumulators() * i64::from(problem.accumulator_type().bytes()) / 4;
        if problem.is_promoted() { own + own / self.halves(problem) * self.at_once(problem, machine) } else { own }
    }

    /// Accumulators of a thread for its part of a tile.
    fn own_accumulators(&self) -> i64 {
        if let Some([rows, columns]) = self.warps {
            return self.rows * self.columns / (LANES * rows * columns).max(1);
        }
        self.rows / (64 * self.together().max(1)) * self.columns / 2
    }

    /// Warps along the rows of a tile.
    pub(crate) fn warps_along_rows(&self) -> i64 {
        self.warps.map_or(WARPS * self.warpgroups, |[rows, _]| rows)
    }

    /// Warpgroups that share one tile.
    pub(crate) fn together(&self) -> i64 {
        if self.ping_pong { 1 } else { self.warpgroups }
    }

    /// Whether a stage is released as soon as its own wgmma is done, not when the next one has been
    /// issued. If the rows of operands are not aligned to cache lines, loads take longer than MMA.
    /// The ring is also short for the largest tiles of two warpgroups, if there are several k-tiles
    /// or if a tile of an input is loaded between them. Another warpgroup multiplies meanwhile.
    pub(crate) fn releases_at_once(&self, problem: &Problem, tile_comes: bool) -> bool {
        let several = problem.operand_type().bytes() == 2 && self.steps(problem) >= RELEASE_K_TILES;
        let few = self.is_largest() && (tile_comes || (several && self.stages <= SHORT_RING));
        self.warpgroups > 1 && !self.ping_pong && (!problem.begins_at_lines() || few)
    }

    /// Whether each warpgroup stores its own rows of a tile, so that it begins the next tile while
    /// others still store: with 16-bit operands and several k-tiles. The largest tiles do so if
    /// stages are released at once and K is not so long that stores take little of the time.
    pub(crate) fn writes_apart(&self, problem: &Problem, tile_comes: bool) -> bool {
        if self.warps.is_some() {
            return false;
        }
        if self.is_largest() {
            return self.releases_at_once(problem, tile_comes) && self.steps(problem) <= SEPARATE_STORE_K_TILES;
        }
        self.warpgroups > 1 && !self.ping_pong && problem.operand_type().bytes() == 2 && self.steps(problem) > 1
    }

    /// Whether the tile is the largest one of two warpgroups.
    fn is_largest(&self) -> bool {
        (self.rows, self.columns, self.warpgroups) == (128, MAX_COLUMNS, 2)
    }

    /// K-tiles of an output tile.
    fn steps(&self, problem: &Problem) -> i64 {
        count(self.extents(problem)[2], problem.k_tile())
    }

    /// Output tiles that a block has in flight: one for each ping-pong warpgroup, else one.
    pub(crate) fn tiles_at_once(&self) -> i64 {
        if self.ping_pong { self.warpgroups } else { 1 }
    }

    /// The number of instructions for the columns of a tile. A gated tile takes two, one for each
    /// half; so does a tile whose accumulators are promoted, and one with too many columns for an
    /// instruction of three warpgroups.
    pub(crate) fn halves(&self, problem: &Problem) -> i64 {
        if self.warps.is_some() {
            return if problem.pairs().is_some() { 2 } else { 1 };
        }
        let wide = self.warpgroups > 2 && self.columns > COLUMNS_OF_THREE;
        let halved = (problem.is_promoted() || wide) && self.columns % 16 == 0;
        if problem.pairs().is_some() || halved { 2 } else { 1 }
    }

    /// The number of these parts that have their own accumulators while they are promoted. With
    /// two, one is multiplied while the other one is promoted. With one, if registers are short,
    /// another warpgroup multiplies meanwhile.
    pub(crate) fn at_once(&self, problem: &Problem, machine: &Machine) -> i64 {
        if self.warps.is_some() {
            return self.halves(problem);
        }
        let all = self.own_accumulators() * 2 + OTHER_REGISTERS;
        if all > self.most_registers(machine) && self.warpgroups * self.blocks_per_sm > 1 {
            1
        } else {
            self.halves(problem)
        }
    }

    /// How far ahead scales are loaded, if they are few. A k-tile of a large tile takes longer than
    /// a load, so one block ahead is enough. With short k-tiles it is several blocks, as many as
    /// registers allow, if the number of k-tiles is known.
    pub(crate) fn scales_ahead(&self, problem: &Problem, machine: &Machine) -> Option<Ahead> {
        let loads = self.scale_loads(problem);
        if loads > MAX_SCALES_AHEAD {
            return None;
        }
        if self.rows * self.columns >= LONG_K_TILE {
            return Some(Ahead::One);
        }
        let all = count(problem.sizes()[2], problem.k_tile());
        let (blocks, others) = (all / self.split_k, all % self.split_k);
        let left = (self.registers(machine) - OTHER_REGISTERS - self.accumulators(problem, machine)) / loads.max(1);
        let steps = SCALE_DEPTH.min(left).min(blocks);
        (others == 0 && steps > 1).then_some(Ahead::Several { steps, blocks })
    }

    /// Registers of a consumer thread after reallocation.
    fn most_registers(&self, machine: &Machine) -> i64 {
        match (self.warpgroups, self.blocks_per_sm) {
            (2, 1) if self.ping_pong => i64::from(REALLOCATED_PING_PONG[1]),
            (2, 1) => i64::from(REALLOCATED[1]),
            (3, 1) => i64::from(REALLOCATED_THREE[1]),
            _ => self.registers(machine),
        }
    }

    /// Registers of a producer thread and of a consumer thread if registers are reallocated. The
    /// producer is a whole warpgroup then, because `setmaxnreg` applies to warpgroups.
    pub(crate) fn shares(&self, problem: &Problem, machine: &Machine) -> Option<[u32; 2]> {
        let wanted = self.accumulators(problem, machine) + OTHER_REGISTERS;
        if self.warps.is_some() || wanted <= self.registers(machine) || self.blocks_per_sm > 1 {
            return None;
        }
        match self.warpgroups {
            2 if self.ping_pong && wanted > i64::from(REALLOCATED[1]) => Some(REALLOCATED_PING_PONG),
            2 => Some(REALLOCATED),
            3 => Some(REALLOCATED_THREE),
            _ => None,
        }
    }

    /// Bytes of device memory besides the tensors: the partial accumulators of split-K.
    pub fn workspace(&self, problem: &Problem) -> i64 {
        let [m, n, _] = problem.sizes();
        let bytes = i64::from(problem.accumulator_type().bytes());
        let accumulators = m.saturating_mul(n).saturating_mul(problem.batch()).saturating_mul(bytes);
        let tile = self.rows.saturating_mul(self.columns).saturating_mul(bytes);
        if self.tail > 0 {
            return tile.saturating_mul(self.tail).saturating_mul(self.split_k);
        }
        let each = if problem.pairs().is_some() { 2 } else { 1 };
        if self.split_k > 1 { accumulators.saturating_mul(self.split_k * each) } else { 0 }
    }

    /// Scales that a thread loads for a k-tile.
    pub(crate) fn scale_loads(&self, problem: &Problem) -> i64 {
        if let (Some(blocks), Some([along, across])) = (problem.blocks(), self.warps) {
            // Four words for a k-tile of each 16 rows and of each 8 columns.
            return blocks.word() * (self.rows / (16 * along) + self.columns / (8 * across));
        }
        let [m, n, _] = problem.mma_sizes();
        let each = |matrix: &Matrix, extent: i64| matrix.extents()[0] == extent;
        let (a, b) = match (problem.scales(), problem.int4_scales()) {
            (Some(scales), _) => (each(&scales.a, m), each(&scales.b, n)),
            (_, Some(_)) => (false, true),
            _ => return 0,
        };
        let (rows, columns) = if self.swapped { (b, a) } else { (a, b) };
        let of = |each: bool, count: i64| if each { count } else { 1 };
        if let Some([along, across]) = self.warps {
            return of(rows, self.rows / (8 * along)) + of(columns, self.columns / (4 * across));
        }
        of(rows, self.rows / (32 * self.warpgroups)) + of(columns, self.columns / 4).max(self.halves(problem))
    }

    /// The same plan on all multiprocessors, with split-K of the tail; None without a full wave or
    /// without a tail.
    pub(crate) fn sharing_last(&self, problem: &Problem, machine: &Machine, split_k: i64) -> Option<Plan> {
        let (tiles, blocks) = (self.tiles(problem).iter().product::<i64>(), i64::from(machine.multiprocessors));
        let tail = tiles % blocks;
        if self.split_k > 1 || self.blocks_per_sm > 1 || tail == 0 || tail == tiles {
            return None;
        }
        let plan = Plan { split_k, tail, blocks, ..self.clone() };
        plan.refusal(problem, machine).is_none().then_some(plan)
    }

    /// Whether split-K applies to a short tail after many full waves.
    pub(crate) fn shares_few(&self, problem: &Problem) -> bool {
        let waves = (self.tiles(problem).iter().product::<i64>() - self.tail) / self.blocks.max(1);
        self.tail > 0 && 2 * self.tail <= self.blocks && waves >= TAIL_WAVES && !problem.is_promoted()
    }

    /// Whether split-K applies to all tiles.
    pub(crate) fn is_shared(&self) -> bool {
        self.split_k > 1 && self.tail == 0
    }

    /// The plan of the full waves, and that of the tail.
    pub(crate) fn parted(&self) -> (Plan, Plan) {
        (Plan { split_k: 1, tail: 0, ..self.clone() }, Plan { tail: 0, ..self.clone() })
    }
}

/// The height of a raster band: about eight tiles, such that the last band is as full as possible;
/// fewer if the matrices of a batch are small. If rows of operands do not begin at cache lines and
/// the work is long, the band covers all rows if they are few: the L2 answers simultaneous requests
/// for a line together, and unaligned rows cause many such requests.
fn raster(problem: &Problem, tiles: i64, cluster: i64, least: i64) -> i64 {
    let wanted = match problem.batch() {
        1 if tiles <= 2 * BAND && !problem.begins_at_lines() && problem.operations() >= SHORT_WORK => tiles,
        1 => BAND,
        _ => 2,
    };
    let outside = |band: i64| count(tiles, band) * band - tiles;
    let bands = (1..=tiles.clamp(1, 2 * BAND) / cluster).map(|clusters| clusters * cluster);
    let bands = bands.filter(|band| *band >= least.min(tiles));
    bands.min_by_key(|band| (outside(*band) * 64 / tiles.max(1), (band - wanted).abs())).unwrap_or(cluster)
}

/// The choices from which a plan is made: see the fields of [`Plan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileChoice {
    /// B is along the rows of a tile.
    pub swapped: bool,
    /// Rows of a tile.
    pub rows: i64,
    /// Columns of a tile.
    pub columns: i64,
    /// Consumer warpgroups.
    pub warpgroups: i64,
    /// The number of blocks that share the k-tiles of a tile.
    pub split_k: i64,
    /// Blocks of a cluster, 1 or 2.
    pub cluster: i64,
    /// Resident blocks on one multiprocessor.
    pub blocks_per_sm: i64,
    /// Ping-pong schedule.
    pub ping_pong: bool,
    /// Warps along rows and columns that multiply by mma.sync; None for warpgroups and wgmma.
    pub warps: Option<[i64; 2]>,
    /// A producer warp loads the k-tiles of [`TileChoice::warps`] by TMA.
    pub producer: bool,
}

impl TileChoice {
    /// A tile of these rows and columns, by one warpgroup of one block, without other choices.
    pub(crate) fn of(rows: i64, columns: i64) -> TileChoice {
        TileChoice {
            swapped: false,
            rows,
            columns,
            warpgroups: 1,
            split_k: 1,
            cluster: 1,
            blocks_per_sm: 1,
            ping_pong: false,
            warps: None,
            producer: false,
        }
    }
}

/// How far ahead the scales of a block are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// When the previous block begins.
    One,
    /// Several blocks ahead.
    Several {
        /// Number of blocks: at least two, and at most the blocks of a tile.
        steps: i64,
        blocks: i64,
    },
}

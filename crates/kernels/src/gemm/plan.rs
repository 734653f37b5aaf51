//! How a product is cut.
//!
//! Law: a plan says everything that the kernel does not take from the problem: which operand lies
//! along the rows of a tile, the tile, who multiplies, how many stages of shared memory run ahead,
//! how many blocks share a tile, and in which order tiles are taken. [`Plan::refusal`] is the
//! reason why a plan cannot be carried out; [`Plan::of`] gives one that has such a reason only
//! where all have.

mod last_tiles;
mod refusal;
mod stored;
mod text;

use tilewright_kernel::cost::Machine;

pub(super) use self::stored::FEW_PARTS;

use super::matrix::{Contiguous, Matrix};
use super::model;
use super::problem::Problem;
use super::scales::Ahead;
use crate::product::count;

/// Warps of a group that multiplies together.
pub(crate) const WARPS: i64 = 4;
/// Bytes of shared memory that a block of Hopper may have.
const BLOCK_BYTES: i64 = 232_448;
/// Bytes that barriers take, and what aligning stages may lose.
const BARRIER_BYTES: i64 = 2048;
/// The most columns of an instruction.
const MAX_COLUMNS: i64 = 256;
/// Tiles along the rows that are taken one after the other, if nothing is in the way.
const GROUP: i64 = 8;
/// Bytes of tensors that stay in the cache from one launch to the next, about.
pub(super) const CACHED: i64 = 12 << 20;
/// Multiplications and additions of short work.
pub(super) const SHORT: i64 = 40_000_000_000;
/// Multiplications and additions a byte where memory does not decide.
const INTENSE: i64 = 300;
/// Registers of a processor.
const REGISTERS: i64 = 65_536;
/// Registers of a thread besides its sums, about.
const OTHER_REGISTERS: i64 = 32;
/// Registers of a thread that copies, and of one that multiplies, where two groups of warps do: a
/// multiple of 8, together three times what each had.
const FEW_REGISTERS: u32 = 40;
const MANY_REGISTERS: u32 = 232;
/// The same where sums need more, and what copies has few numbers of its own.
const FEWEST_REGISTERS: u32 = 24;
const MOST_REGISTERS: u32 = 240;
/// The same where three groups multiply: together four times what each had.
const FEW_OF_THREE: u32 = 32;
const MANY_OF_THREE: u32 = 160;
/// The most columns of an instruction where three groups multiply: the assembler gives the sums of
/// one instruction no more registers than threads begin with.
const COLUMNS_OF_THREE: i64 = 192;
/// The most scales of a thread that are asked for ahead, and how many steps ahead of short ones.
const SCALES_AHEAD: i64 = 8;
const STEPS_AHEAD: i64 = 4;
/// Sums of a tile of which a step takes as long as a load.
const LONG_STEP: i64 = 128 * 128;
/// Bytes of all stages where small matrices stream through.
const STREAMED_BYTES: i64 = 48 << 10;
/// So few stages of the largest tiles are released at once, if there are so many steps along K; and
/// groups write apart if there are no more than so many.
const FEW_STAGES: i64 = 3;
const SEVERAL: i64 = 16;
const LONG: i64 = 100;
/// The most stages: as many barriers are enough for any latency.
const MAX_STAGES: i64 = 16;

/// How a product is cut: made by [`Plan::of`], or measured by `tilewright gemm --device --tune`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// B lies along the rows of a tile and A along its columns, so that few rows of A waste little.
    pub swapped: bool,
    /// Rows of a tile: 64 for each instruction of a group, one after the other.
    pub rows: i64,
    /// Columns of a tile: a multiple of 8 up to 256.
    pub columns: i64,
    /// Groups of four warps that multiply, each its rows of a tile.
    pub groups: i64,
    /// Stages of shared memory.
    pub stages: i64,
    /// How many blocks share the steps along K of a tile; their sums are added by a second kernel,
    /// in a fixed order.
    pub splits: i64,
    /// How many tiles are shared: the last ones, which fill no turn of all blocks; 0 for all.
    pub tail: i64,
    /// Blocks of a cluster, 1 or 2: they have neighbouring tiles, and each loads half of what both
    /// read, the rows' factor where a tile has more rows than columns, else the columns' factor.
    pub cluster: i64,
    /// Tiles along the rows that are taken one after the other.
    pub group: i64,
    /// Blocks that run on one processor at once.
    pub resident: i64,
    /// Blocks of the launch, which take tiles in turn.
    pub blocks: i64,
    /// Blocks begin while the launch before still runs, and wait for it before they read.
    pub overlaps: bool,
    /// Groups take tiles in turn, each all rows of its own: while one writes a tile, the other one
    /// multiplies.
    pub alternates: bool,
}

impl Plan {
    /// The plan that takes the least time by the model of a machine. Of those with a [`Plan::tail`]
    /// it looks at those alone in which few tiles are left after many turns: others were slower
    /// where they were measured. `--tune` measures all.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::cost::Machine;
    /// use tilewright_kernels::gemm::{Plan, Problem};
    ///
    /// let machine = Machine::named("H200").unwrap();
    /// let problem = Problem::new(Element::Bf16, [4096, 4096, 4096]).unwrap();
    /// let plan = Plan::of(&problem, &machine);
    /// assert_eq!((plan.rows, plan.columns, plan.blocks), (128, 256, 128));
    /// assert_eq!(plan.workspace(&problem), 0);
    /// ```
    pub fn of(problem: &Problem, machine: &Machine) -> Plan {
        model::fastest(problem, machine, |plan| plan.tail == 0 || plan.shares_few(problem))
    }

    /// The plans that the model looks at, the fastest one first, each with the seconds that it
    /// gives them.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::cost::Machine;
    /// use tilewright_kernels::gemm::{Plan, Problem};
    ///
    /// let machine = Machine::named("H200").unwrap();
    /// let problem = Problem::new(Element::Bf16, [16, 4096, 14336]).unwrap();
    /// let plans = Plan::candidates(&problem, &machine);
    /// // The weights, B, lie along the rows of tiles; they are read at the speed of memory.
    /// assert!(plans[0].1.swapped && plans[0].0 < 40e-6);
    /// assert!(plans.windows(2).all(|two| two[0].0 <= two[1].0));
    /// ```
    pub fn candidates(problem: &Problem, machine: &Machine) -> Vec<(f64, Plan)> {
        let mut plans = model::plans(problem, machine);
        plans.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        plans
    }

    /// The plan of a tile, with as many stages as fit and as many blocks as a machine runs at once.
    pub fn tiled(problem: &Problem, machine: &Machine, tile: Tile) -> Plan {
        Plan::in_bands(problem, machine, tile, 1)
    }

    /// The same with so many tiles along the rows one after the other, or more, where there are.
    pub(super) fn in_bands(problem: &Problem, machine: &Machine, tile: Tile, least: i64) -> Plan {
        let Tile { swapped, rows, columns, groups, splits, cluster, resident, alternates } = tile;
        let (stages, group, blocks, overlaps, tail) = (1, 1, 1, false, 0);
        let mut plan = Plan {
            swapped,
            rows,
            columns,
            groups,
            stages,
            splits,
            tail,
            cluster,
            group,
            resident,
            blocks,
            overlaps,
            alternates,
        };
        let [m, ..] = plan.extents(problem);
        // Whole clusters.
        let cluster = cluster.max(1);
        plan.group = raster(problem, count(m, rows), if plan.side_by_side() { 1 } else { cluster }, least);
        let units = plan.units(problem);
        let processors = i64::from(machine.multiprocessors);
        let slots = processors * resident;
        // As many blocks as take no more turns, and no more: idle processors leave their power to
        // the others.
        plan.blocks = count(count(units, count(units, slots)), cluster) * cluster;
        plan.overlaps = resident == 1 && plan.may_overlap(problem, processors);
        plan.stages = plan.most_stages(problem, machine);
        if plan.streams(problem) {
            plan.stages = plan.stages.min(STREAMED_BYTES / plan.stage_bytes());
        }
        plan
    }

    /// Whether blocks read small matrices of a batch one after the other, each once and in one
    /// step. Memory decides then, and copies that run far ahead only wait there, before stores that
    /// could be done: of 4096 products of 128 x 64 x 64, two stages took 42.9 us and eight 45.4. Of
    /// 128 x 32 x 64 they took longer, 32.5 us for 30.8.
    pub(super) fn streams(&self, problem: &Problem) -> bool {
        let small = 2 * self.stage_bytes() <= STREAMED_BYTES && self.resident == 1 && self.columns >= 64;
        let one = self.tiles(problem) == [1, 1] && count(self.extents(problem)[2], problem.depth()) == 1;
        problem.batch() > 1 && small && one
    }

    /// Tiles along the rows that are taken one after the other, if nothing is in the way.
    pub(super) const BAND: i64 = GROUP;

    /// What it was chosen from.
    pub(super) fn tile(&self) -> Tile {
        let Plan { swapped, rows, columns, groups, splits, cluster, resident, alternates, .. } = *self;
        Tile { swapped, rows, columns, groups, splits, cluster, resident, alternates }
    }

    /// The same of one problem of a list: as many tiles along the rows one after the other, or
    /// fewer, so that few of the last ones lie outside.
    pub(super) fn of_problem(&self, problem: &Problem) -> Plan {
        let tiles = count(self.extents(problem)[0], self.rows.max(1));
        let outside = |group: i64| count(tiles, group) * group - tiles;
        let groups = (1..=self.group.clamp(1, tiles.max(1))).rev();
        let group = groups.min_by_key(|group| outside(*group) * 64 / tiles.max(1)).unwrap_or(1);
        Plan { group, ..self.clone() }
    }

    /// How many stages fit into the shared memory of a block, beside what D goes through.
    pub(super) fn most_stages(&self, problem: &Problem, machine: &Machine) -> i64 {
        let own = i64::from(machine.multiprocessor.shared_bytes) / self.resident.max(1)
            - i64::from(machine.multiprocessor.reserved_bytes);
        let room = own - BARRIER_BYTES - self.staged_bytes(problem);
        (room / self.stage_bytes()).min(MAX_STAGES)
    }

    /// Whether blocks should begin while the launch before still runs. They lie where the ones
    /// before left room, which is even where each processor has one, or each second one; what they
    /// read of one another from the cache then comes at other times, which costs more than it
    /// brings where memory decides; and it counts where the work is short.
    fn may_overlap(&self, problem: &Problem, processors: i64) -> bool {
        let [m, n, _] = self.extents(problem);
        let even = 20 * self.blocks >= 19 * processors || 2 * self.blocks <= processors;
        let [along, across] = [count(m, self.rows), count(n, self.columns * self.beside())];
        // Blocks read nothing of one another where a matrix has one tile.
        let once = if problem.batch() == 1 { along == 1 || across == 1 } else { along * across == 1 };
        let (operations, bytes) = (problem.operations(), problem.bytes());
        even && operations < SHORT
            && (once || self.splits > 1 || bytes < CACHED || operations / bytes.max(1) >= INTENSE)
    }

    /// M, N and K as the kernel sees them: the first along the rows of tiles.
    pub(crate) fn extents(&self, problem: &Problem) -> [i64; 3] {
        if let Some(fold) = problem.fold().filter(|_| !self.swapped) {
            return [fold.padded(self.rows), problem.sizes()[1], fold.steps(problem.depth()) * problem.depth()];
        }
        let [m, n, k] = problem.multiplied();
        if self.swapped { [n, m, k] } else { [m, n, k] }
    }

    /// Rows and columns of D of a tile: of pairs half of those that lie along B.
    pub(crate) fn tile_of_d(&self, problem: &Problem) -> [i64; 2] {
        match problem.pairs() {
            None => [self.rows, self.columns],
            Some(_) if self.swapped => [self.rows / 2, self.columns],
            Some(_) => [self.rows, self.columns / 2],
        }
    }

    /// Whether blocks of a cluster have tiles side by side, of the same rows; else one above the
    /// other.
    pub(crate) fn side_by_side(&self) -> bool {
        self.cluster > 1 && self.rows > self.columns
    }

    /// Tiles of a cluster that are side by side.
    pub(crate) fn beside(&self) -> i64 {
        if self.side_by_side() { self.cluster } else { 1 }
    }

    /// Tiles along the rows and along the columns, those outside with which groups and clusters are
    /// whole.
    pub(crate) fn tiles(&self, problem: &Problem) -> [i64; 2] {
        let [m, n, _] = self.extents(problem);
        let across = if self.ends_above(problem) { 1 } else { self.beside() };
        [
            count(m, self.rows * self.group).saturating_mul(self.group),
            count(n, self.columns * across).saturating_mul(across),
        ]
    }

    /// Whether clusters have the tiles of the last column one above the other, while those of all
    /// others are side by side: of an odd number of columns, where the rows make pairs, and K is
    /// contiguous in the factor along the columns, of which those of the last column load halves.
    pub(crate) fn ends_above(&self, problem: &Problem) -> bool {
        let [m, n, _] = self.extents(problem);
        let along = count(m, self.rows * self.group).saturating_mul(self.group);
        let factor = if self.swapped { problem.a() } else { problem.b() };
        let halves = problem.readable(factor) == Ok(Contiguous::Columns);
        self.side_by_side() && halves && along % 2 == 0 && count(n, self.columns) % 2 == 1
    }

    /// The parts of the work that blocks take in turn, but for last tiles that they share.
    pub(crate) fn units(&self, problem: &Problem) -> i64 {
        let [along, across] = self.tiles(problem);
        let alone = if self.tail > 0 { 1 } else { self.splits };
        let tiles = along.saturating_mul(across).saturating_sub(self.tail);
        tiles.saturating_mul(problem.batch()).saturating_mul(alone)
    }

    /// How many of them a block takes, at most.
    pub(crate) fn turns(&self, problem: &Problem) -> i64 {
        count(self.units(problem), self.blocks.max(1)).max(1)
    }

    /// Registers that a thread may have: those of a processor are given to four warps at a time.
    fn registers(&self) -> i64 {
        let threads = 32 * WARPS * (self.groups + 1) * self.resident.max(1);
        (REGISTERS / threads.max(1) / 8 * 8).min(255)
    }

    /// Sums of a thread, and those of a block along K where they are promoted.
    fn sums(&self, problem: &Problem) -> i64 {
        let own = self.own_sums();
        if problem.is_promoted() { own + own / self.halves(problem) * self.at_once(problem) } else { own }
    }

    /// Sums of a thread, of a tile.
    fn own_sums(&self) -> i64 {
        self.rows / (64 * self.together().max(1)) * self.columns / 2
    }

    /// Groups that multiply one tile together.
    pub(crate) fn together(&self) -> i64 {
        if self.alternates { 1 } else { self.groups }
    }

    /// Whether a stage is released as soon as it has been multiplied, not when the next one is:
    /// where rows of the factors begin in the middle of a line, copies take longer than products;
    /// and of the largest tiles of two groups each stage is needed again soon, where there are few
    /// and several steps, or a tile of an input comes between those of the factors. Another group
    /// multiplies meanwhile.
    pub(crate) fn releases_at_once(&self, problem: &Problem, tile_comes: bool) -> bool {
        let several = problem.factors().bytes() == 2 && self.steps(problem) >= SEVERAL;
        let few = self.is_largest() && (tile_comes || (several && self.stages <= FEW_STAGES));
        self.groups > 1 && !self.alternates && (!problem.begins_at_lines() || few)
    }

    /// Whether groups write their rows of a tile each on its own, so that one begins the next tile
    /// while others still write: of types of 16 bits and several steps; of the largest tiles where
    /// stages are released at once and K is not so long that writing takes little of the time.
    pub(crate) fn writes_apart(&self, problem: &Problem, tile_comes: bool) -> bool {
        if self.is_largest() {
            return self.releases_at_once(problem, tile_comes) && self.steps(problem) <= LONG;
        }
        self.groups > 1 && !self.alternates && problem.factors().bytes() == 2 && self.steps(problem) > 1
    }

    /// Whether a tile is the largest one of two groups.
    fn is_largest(&self) -> bool {
        (self.rows, self.columns, self.groups) == (128, MAX_COLUMNS, 2)
    }

    /// Steps along K.
    fn steps(&self, problem: &Problem) -> i64 {
        count(self.extents(problem)[2], problem.depth())
    }

    /// Tiles that a block has at once: those of the groups, if they take tiles in turn.
    pub(crate) fn tiles_at_once(&self) -> i64 {
        if self.alternates { self.groups } else { 1 }
    }

    /// In how many parts the columns of a tile are multiplied: of pairs each half by instructions
    /// of its own; so are halves of the columns where sums are promoted, and where one instruction
    /// would have too many for three groups.
    pub(crate) fn halves(&self, problem: &Problem) -> i64 {
        let wide = self.groups > 2 && self.columns > COLUMNS_OF_THREE;
        let halved = (problem.is_promoted() || wide) && self.columns % 16 == 0;
        if problem.pairs().is_some() || halved { 2 } else { 1 }
    }

    /// Of how many of these parts the sums of a block along K are in registers at once, where sums
    /// are promoted: of both, so that one is multiplied while the other one is added; or of one,
    /// where there are not so many registers, and another group multiplies meanwhile.
    pub(crate) fn at_once(&self, problem: &Problem) -> i64 {
        let all = self.own_sums() * 2 + OTHER_REGISTERS;
        if all > self.most_registers() && self.groups * self.resident > 1 { 1 } else { self.halves(problem) }
    }

    /// How far ahead the scales of blocks along K are asked for, where they are few: a step of a
    /// large tile takes longer than a load, so one is enough; of short ones several are, as far as
    /// there are registers for their scales and it is known how many steps there are.
    pub(super) fn scales_ahead(&self, problem: &Problem) -> Option<Ahead> {
        let loads = self.scale_loads(problem);
        if loads > SCALES_AHEAD {
            return None;
        }
        if self.rows * self.columns >= LONG_STEP {
            return Some(Ahead::One);
        }
        let all = count(problem.sizes()[2], problem.depth());
        let (blocks, others) = (all / self.splits, all % self.splits);
        let left = (self.registers() - OTHER_REGISTERS - self.sums(problem)) / loads.max(1);
        let steps = STEPS_AHEAD.min(left).min(blocks);
        (others == 0 && steps > 1).then_some(Ahead::Several { steps, blocks })
    }

    /// Registers that a thread may have that multiplies, if those who copy leave them theirs.
    fn most_registers(&self) -> i64 {
        match (self.groups, self.resident) {
            (2, 1) if self.alternates => i64::from(MOST_REGISTERS),
            (2, 1) => i64::from(MANY_REGISTERS),
            (3, 1) => i64::from(MANY_OF_THREE),
            _ => self.registers(),
        }
    }

    /// Registers of those who copy, and of those who multiply, where they do not share alike: four
    /// warps copy then.
    pub(crate) fn shares(&self, problem: &Problem) -> Option<[u32; 2]> {
        let wanted = self.sums(problem) + OTHER_REGISTERS;
        if wanted <= self.registers() || self.resident > 1 {
            return None;
        }
        match self.groups {
            2 if self.alternates && wanted > i64::from(MANY_REGISTERS) => Some([FEWEST_REGISTERS, MOST_REGISTERS]),
            2 => Some([FEW_REGISTERS, MANY_REGISTERS]),
            3 => Some([FEW_OF_THREE, MANY_OF_THREE]),
            _ => None,
        }
    }

    /// Bytes of device memory besides the tensors: the sums of each range of steps along K.
    pub fn workspace(&self, problem: &Problem) -> i64 {
        let [m, n, _] = problem.sizes();
        let sums = m.saturating_mul(n).saturating_mul(problem.batch()).saturating_mul(4);
        let tile = self.rows.saturating_mul(self.columns).saturating_mul(4);
        if self.tail > 0 {
            return tile.saturating_mul(self.tail).saturating_mul(self.splits);
        }
        let each = if problem.pairs().is_some() { 2 } else { 1 };
        if self.splits > 1 { sums.saturating_mul(self.splits * each) } else { 0 }
    }

    /// Scales that a thread loads in a step along K.
    pub(crate) fn scale_loads(&self, problem: &Problem) -> i64 {
        let Some(scales) = problem.scales() else { return 0 };
        let [m, n, _] = problem.multiplied();
        let each = |matrix: &Matrix, extent: i64| matrix.extents()[0] == extent;
        let (a, b) = (each(&scales.a, m), each(&scales.b, n));
        let (rows, columns) = if self.swapped { (b, a) } else { (a, b) };
        let of = |each: bool, count: i64| if each { count } else { 1 };
        of(rows, self.rows / (32 * self.groups)) + of(columns, self.columns / 4).max(self.halves(problem))
    }
}

/// How many tiles along the rows are taken one after the other: so many that as few as possible of
/// the last group lie outside, about eight; few of each matrix of a batch. Where rows of the factors
/// begin in the middle of a line and the work is long, all, if they are few: blocks that ask the
/// cache for the same lines at once are answered together, and these ask for many.
fn raster(problem: &Problem, tiles: i64, cluster: i64, least: i64) -> i64 {
    let wanted = match problem.batch() {
        1 if tiles <= 2 * GROUP && !problem.begins_at_lines() && problem.operations() >= SHORT => tiles,
        1 => GROUP,
        _ => 2,
    };
    let outside = |group: i64| count(tiles, group) * group - tiles;
    let groups = (1..=tiles.clamp(1, 2 * GROUP) / cluster).map(|clusters| clusters * cluster);
    let groups = groups.filter(|group| *group >= least.min(tiles));
    groups.min_by_key(|group| (outside(*group) * 64 / tiles.max(1), (group - wanted).abs())).unwrap_or(cluster)
}

/// What a plan is chosen from: see the fields of [`Plan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// B lies along the rows of a tile.
    pub swapped: bool,
    /// Rows of a tile.
    pub rows: i64,
    /// Columns of a tile.
    pub columns: i64,
    /// Groups of four warps that multiply.
    pub groups: i64,
    /// How many blocks share the steps along K of a tile.
    pub splits: i64,
    /// Blocks of a cluster, 1 or 2.
    pub cluster: i64,
    /// Blocks that run on one processor at once.
    pub resident: i64,
    /// Groups take tiles in turn.
    pub alternates: bool,
}

//! Rows that clusters of blocks take in turn.
//!
//! Law: cluster `c` of `C` takes the rows `c, c + C, c + 2C, ..`, or rows are dealt, each to the
//! cluster that asks first, and each of its blocks takes the same part of every row. Parts of a
//! processor are not alike, and a cluster that has one for itself is done before the others; where
//! rows are dealt, it has more of them. What goes with all rows is read once, and stays in
//! registers. A thread copies what it will read itself, so nobody waits for others' copies; a run
//! of a row that has been read for the last time makes room for that run of a row to come. What the
//! blocks find out about a row goes from each to each by copies that arrive at a barrier in memory,
//! so no stores are waited for. There is room for the numbers of two rows: a block that sends those
//! of a row knows that all have read those of the row before the last.

mod shape;

use std::ops::Range;

use tilewright_atoms::{CopyAtom, TiledCopy};
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Cursor, Distributed, Distribution, Element, Flag, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use self::shape::{BLOCKS, GROUPED, VECTORS, holds, shape_of};
use super::passes::in_pairs;
use super::{FULL, LANES, Rows, VECTOR, at_run, widest};
use crate::error::PlanError;

/// Clusters: as many as run at once on a device of 132 multiprocessors, however its groups of
/// multiprocessors are made up. One more would wait until one of the others ends.
const CLUSTERS: i64 = 14;
/// Where rows are dealt, the warps of a multiprocessor, of several blocks: while a block waits for
/// what the others of its cluster find, another goes on.
const TOGETHER: i64 = 18;
/// Blocks of a multiprocessor where rows of f32 take more than eight: more wait for each other. They
/// have so many warps at most, of softmax and of norms, which keep a row in registers besides.
const THREE: i64 = 3;
const WARPS_OF_POWERS: i64 = 8;
const WARPS_OF_NORMS: i64 = 7;
/// From how many bytes of a row on rows are dealt.
const DEALT: i64 = 128 << 10;
/// The same of rows that end within a run, of f32, which one block holds less well, or where two
/// rows go with all; and of softmax of such rows, which fewer blocks hold better.
const DEALT_UNFILLED: i64 = 112 << 10;
const UNFILLED_POWERS: i64 = 384 << 10;
/// Rows that end within a run, with which two go, and that one block holds less well than the ones
/// after them, of which a thread has twice as many vectors.
const DEALT_WITH_TWO: Range<i64> = 56 << 10..64 << 10;
/// Multiprocessors that clusters have on a device of 132, whose groups clusters do not fill. More
/// clusters than there is room for begin when others end, and find nothing left to do.
const PROCESSORS: i64 = 124;
/// Rows for which a block has room.
const STAGES: i64 = 2;
/// Numbers that a block gives the others of a row: what a copy moves at least.
const GIVEN: i64 = 4;
/// Rows whose numbers there is room for.
const ROOM: i64 = 2;

/// How clusters take rows of one length.
pub(crate) struct Turns {
    rows: Rows,
    clusters: i64,
    /// How many blocks a multiprocessor has.
    resident: i64,
    /// Where the number of a later row is asked for, if rows are dealt.
    dealt: Option<Asked>,
}

/// Where clusters ask for the number of a later row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked {
    /// When a turn begins.
    First,
    /// Once the blocks of the cluster have met.
    Late,
}

/// What goes with all rows: the part of this block, run by run.
pub(crate) struct Kept<'k> {
    runs: Vec<Distributed<'k>>,
}

/// The row of a turn: the part of it that this block has.
pub(crate) struct Turn<'a, 'k> {
    k: &'k Build,
    turns: &'a Turns,
    runs: Vec<View<'k>>,
    at: [Expr; 2],
    exchange: &'a Exchange<'k>,
    refill: &'a dyn Fn(usize) -> Result<(), KernelError>,
}

/// Where the blocks of a cluster leave numbers for each other.
struct Exchange<'k> {
    array: View<'k>,
    cursor: Cursor<'k>,
}

fn overflow() -> KernelError {
    LayoutError::Overflow { op: "turn" }.into()
}

impl Turns {
    /// The plan for rows of norms that clusters take in turn, dealt where a few warps of each block
    /// hold them; none for those that fewer blocks hold well, for those that are too long or begin
    /// at no multiple of 16 bytes, and for those that are not dealt and that the vectors of all
    /// threads do not fill, in blocks of whole groups of four warps, among which a multiprocessor
    /// shares out its registers. `beside` is how many rows go with all rows.
    ///
    /// Errors: a layout is not representable.
    pub(crate) fn new(
        columns: i64,
        element: Element,
        alignment: i64,
        beside: usize,
    ) -> Result<Option<Turns>, PlanError> {
        let thread = VECTORS * VECTOR / i64::from(element.bytes());
        let (most, group) = (BLOCKS * FULL * thread, BLOCKS * GROUPED * LANES * thread);
        let fills = most / 2 < columns && columns <= most && columns % group == 0;
        if let Some(turns) = Turns::dealt((columns, alignment), element, (true, WARPS_OF_NORMS), beside as i64)?
            && turns.are_long(beside)
            && !(fills && turns.ends_within())
        {
            return Ok(Some(turns));
        }
        if fills { Turns::of((columns, alignment), element, BLOCKS, CLUSTERS) } else { Ok(None) }
    }

    /// As [`Turns::new`], by `clusters` clusters of `blocks` blocks.
    ///
    /// Errors: as [`Turns::new`].
    pub(crate) fn of(
        (columns, alignment): (i64, i64),
        element: Element,
        blocks: i64,
        clusters: i64,
    ) -> Result<Option<Turns>, PlanError> {
        let thread = VECTORS * VECTOR / i64::from(element.bytes());
        let warps = columns / (blocks * LANES * thread);
        if blocks * warps * LANES * thread != columns {
            return Ok(None);
        }
        Turns::shaped((columns, alignment), element, [blocks, warps, VECTORS], clusters)
    }

    /// Rows held by so many blocks of so many warps, of which each thread has so many vectors; none
    /// for those that begin at no multiple of 16 bytes.
    fn shaped(
        (columns, alignment): (i64, i64),
        element: Element,
        [blocks, warps, vectors]: [i64; 3],
        clusters: i64,
    ) -> Result<Option<Turns>, PlanError> {
        let vector = VECTOR / i64::from(element.bytes());
        if widest(columns, element, alignment) != vector {
            return Ok(None);
        }
        let run = vector * LANES;
        let layout = format!("(({LANES},1,{warps}),({vector},1)):(({vector},1,{run}),(1,1))");
        let held = Distribution::new(&format!("(1,{run},{warps})"), &layout)?;
        let (lanes, rows, each, stored) = (LANES, 1, 1, vectors);
        let rows =
            Rows { columns, element, alignment, vector, lanes, vectors, stored, warps, rows, blocks, each, run: held };
        Ok(Some(Turns { rows, clusters, resident: 1, dealt: None }))
    }

    /// The plan for rows that are dealt to clusters, of as few blocks as hold a row and `beside` rows
    /// that go with all; none for rows that the vectors of all threads do not fill, or, where those
    /// are taken too, that leave too many threads without work; for rows that are too long or begin
    /// at no multiple of 16 bytes. `most` is of how many warps at most a multiprocessor has three
    /// blocks.
    ///
    /// Errors: as [`Turns::new`].
    fn dealt(
        (columns, alignment): (i64, i64),
        element: Element,
        (unfilled, most): (bool, i64),
        beside: i64,
    ) -> Result<Option<Turns>, PlanError> {
        let count = columns / (VECTOR / i64::from(element.bytes()));
        let resident = |[blocks, warps, vectors]: [i64; 3]| {
            let many = blocks > BLOCKS;
            let filled = blocks * warps * LANES * vectors == count;
            let three = element == Element::F32 && many && warps <= most;
            match beside {
                2.. if many && !filled => 2,
                _ => (TOGETHER / warps).max(if three { THREE } else { 2 }),
            }
        };
        let holds = |shape: [i64; 3]| beside < 2 || holds(shape, resident(shape), count, beside);
        let Some(shape) = shape_of(count, unfilled, beside, holds) else { return Ok(None) };
        let resident = resident(shape);
        let counts = [resident, PROCESSORS * resident / shape[0]];
        let turns = Turns::dealt_to((columns, alignment), element, shape, counts, Asked::First)?;
        Ok(turns.map(|turns| {
            // Of the others turns are not shorter than an answer, or it was not faster.
            let longest = element == Element::F32 && shape[0] > BLOCKS && turns.in_pairs();
            let short = turns.ends_within() || longest;
            if beside > 1 && short { Turns { dealt: Some(Asked::Late), ..turns } } else { turns }
        }))
    }

    /// As [`Turns::dealt`], to so many clusters of blocks, warps and vectors of a shape; how many
    /// blocks a multiprocessor has, and where numbers are asked for, is said.
    ///
    /// Errors: as [`Turns::new`].
    pub(crate) fn dealt_to(
        rows: (i64, i64),
        element: Element,
        shape: [i64; 3],
        [resident, clusters]: [i64; 2],
        asked: Asked,
    ) -> Result<Option<Turns>, PlanError> {
        Ok(Turns::shaped(rows, element, shape, clusters)?.map(|turns| Turns { resident, dealt: Some(asked), ..turns }))
    }

    /// The plan for softmax of rows: of numbers of 16 bits powers take longer than rows, and
    /// clusters that the hardware sets off one after another overlap better; none for these.
    ///
    /// Errors: as [`Turns::new`].
    pub(crate) fn of_softmax(columns: i64, element: Element, alignment: i64) -> Result<Option<Turns>, PlanError> {
        let bytes = columns.saturating_mul(element.bytes().into());
        if element != Element::F32 || bytes < DEALT {
            return Ok(None);
        }
        Turns::dealt((columns, alignment), element, (bytes > UNFILLED_POWERS, WARPS_OF_POWERS), 0)
    }

    /// Whether rows are so long that they are dealt.
    fn are_long(&self, beside: usize) -> bool {
        let bytes = self.rows.columns.saturating_mul(self.rows.element.bytes().into());
        match (self.ends_within(), self.rows.element) {
            (true, _) if beside > 1 => DEALT_WITH_TWO.contains(&bytes) || bytes >= DEALT_UNFILLED,
            (true, Element::F32) => bytes >= DEALT_UNFILLED,
            _ => bytes >= DEALT,
        }
    }

    /// Whether rows end within a run.
    fn ends_within(&self) -> bool {
        self.rows.ends_in(self.rows.vectors as usize - 1)
    }

    /// Whether threads that all have as many elements, of blocks and warps whose numbers are powers
    /// of two, are put together in pairs, pairs of pairs and so on.
    pub(crate) fn in_pairs(&self) -> bool {
        self.rows.warps.count_ones() == 1 && !self.ends_within()
    }

    /// What was chosen, in a sentence.
    pub(crate) fn plan(&self) -> String {
        let Rows { blocks, vectors, vector, .. } = self.rows;
        let (clusters, threads) = (self.clusters, self.threads());
        let how = if self.dealt.is_some() {
            "; a cluster that is done takes the next row"
        } else {
            ", which take rows in turn"
        };
        format!(
            "{clusters} clusters of {blocks} blocks of {threads} threads{how}; {vectors} vectors of {vector} a thread, \
             with room for {STAGES} rows in shared memory"
        )
    }

    /// How rows are held.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(crate) fn threads(&self) -> i64 {
        self.rows.lanes * self.rows.warps
    }

    /// The number of the cluster of this block, and which part of a row the block has.
    fn place(&self, k: &Build) -> Result<[Expr; 2], KernelError> {
        let digits = k.coordinate(&k.block_number(Axis::X), &[self.rows.blocks, 1])?;
        Ok([digits[1].clone(), digits[0].clone()])
    }

    /// Says how many blocks there are, and reads the parts of this block of rows that go with all.
    pub(crate) fn begin<'k>(&self, k: &'k Build, beside: &[&View<'k>]) -> Result<Vec<Kept<'k>>, KernelError> {
        k.threads(self.threads())?;
        k.resident(self.resident as u32)?;
        k.grid(Axis::X, &(self.rows.blocks * self.clusters).to_string())?;
        k.cluster(self.rows.blocks as u32)?;
        let [_, part] = self.place(k)?;
        let held = self.rows.run.reduced(&[0])?;
        let read = |row: &&View<'k>| {
            let tile = self.rows.cut(row, 1, [Expr::from(0), part.clone()])?;
            let runs =
                (0..self.rows.vectors as usize).map(|run| tile.slice(at_run(run)?)?.load_distributed_predicated(&held));
            Ok(Kept { runs: runs.collect::<Result<_, KernelError>>()? })
        };
        beside.iter().map(read).collect()
    }

    /// All turns: what becomes of the row of each.
    pub(crate) fn each<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        body: impl FnOnce(&Turn<'_, 'k>) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let Rows { element, vector, vectors, warps, blocks, .. } = self.rows;
        let [cluster, part] = self.place(k)?;
        let (threads, length) = (self.threads(), self.threads() * vector);
        let copy = TiledCopy::new(
            CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?,
            i64::from(element.bits()),
            &format!("(1,{threads}):({threads},1)").parse()?,
            &format!("(1,{vector}):({vector},1)").parse()?,
        )?;
        let layout = format!("(1,{length},{vectors},{STAGES}):({length},1,{length},{})", length * vectors);
        let room = k.shared_of(element, &layout)?;
        let run_at = |stage: &Expr, run: i64| -> Result<View<'k>, KernelError> {
            let at: Coord<Expr> =
                Tree::flat([Slot::All, Slot::All, Slot::At(Expr::from(run)), Slot::At(stage.clone())])?;
            room.slice(at)
        };
        let row_of = |turn: &Expr| {
            let before = Stride::times(turn, &Expr::from(self.clusters)).ok_or_else(overflow)?;
            Stride::plus(&before, &cluster).ok_or_else(overflow)
        };
        let fetch = |row: &Expr, stage: &Expr, run: i64| -> Result<(), KernelError> {
            let before = Stride::times(&part, &Expr::from(vectors)).ok_or_else(overflow)?;
            let column = Stride::plus(&before, &Expr::from(run)).ok_or_else(overflow)?;
            let at: Coord<Expr> = Tree::flat([Slot::At(row.clone()), Slot::At(column)])?;
            k.copy_predicated(&copy, &x.local_tile(&format!("(1,{length})"), at)?, &run_at(stage, run)?)
        };
        let deal = match self.dealt {
            None => None,
            Some(Asked::First) => Some(k.deal(k.size("M")?, STAGES as usize)?),
            Some(Asked::Late) => Some(k.deal_beforehand(k.size("M")?, STAGES as usize)?),
        };
        for number in 0..STAGES {
            let turn = Expr::from(number);
            let row = match &deal {
                Some(deal) => deal.first(number as usize)?,
                None => row_of(&turn)?,
            };
            (0..vectors).try_for_each(|run| fetch(&row, &turn, run))?;
            k.commit_async();
        }
        let layout = format!("({GIVEN},{blocks},{ROOM}):(1,{GIVEN},{})", GIVEN * blocks);
        let array = k.shared_of(Element::F32, &layout)?;
        let exchange = Exchange { array, cursor: k.pipeline(ROOM, (warps * blocks) as u32)?.cursor()? };
        let modes: Layout = format!("(1,{0},{warps}):(0,1,{0})", vector * LANES).parse()?;
        // A turn, its row, and that of the turn for which it makes room.
        let turn = |turn: &Expr, row: Expr, later: &dyn Fn() -> Result<Expr, KernelError>| {
            k.wait_async(STAGES as u32 - 1);
            let stage = k.remainder(turn, STAGES)?;
            let runs = (0..vectors).map(|run| run_at(&stage, run)?.compose_layout(&modes));
            let runs = runs.collect::<Result<Vec<_>, KernelError>>()?;
            let (at, exchange) = ([row, part.clone()], &exchange);
            let refill = |run: usize| fetch(&later()?, &stage, run as i64);
            body(&Turn { k, turns: self, runs, at, exchange, refill: &refill })?;
            k.commit_async();
            Ok(())
        };
        match &deal {
            Some(deal) => deal.each(|drawn| turn(drawn.turn(), drawn.now().clone(), &|| drawn.ahead()))?,
            None => k.range(k.size(&format!("ceil(M/{})", self.clusters))?, |number| {
                let later = || row_of(&Stride::plus(&number, &Expr::from(STAGES)).ok_or_else(overflow)?);
                turn(&number, row_of(&number)?, &later)
            })?,
        }
        k.wait_async(0);
        // A block must not end while others still write to its memory.
        k.cluster_barrier();
        Ok(())
    }
}

impl<'k> Turn<'_, 'k> {
    /// The runs, each as `(R,A,W)`, read when they are wanted. What lies past the end of the row is
    /// 0.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Result<Distributed<'k>, KernelError>> + '_ {
        // Read again each time: kept from the last time, they would fill the registers.
        self.k.warp_barrier();
        self.runs.iter().map(|run| run.load_distributed(&self.turns.rows.run))
    }

    /// The same; what lies past the end is another number.
    pub(crate) fn runs_or(&self, other: Num<'k>) -> impl Iterator<Item = Result<Distributed<'k>, KernelError>> + '_ {
        self.runs().enumerate().map(move |(number, run)| match self.counts(number)? {
            None => run,
            Some(inside) => run?.map(|x| Ok(inside.select(x, other))),
        })
    }

    /// Whether a thread's elements of a run are in the row; none where all threads' are.
    pub(crate) fn counts(&self, run: usize) -> Result<Option<Flag<'k>>, KernelError> {
        self.turns.rows.inside(self.k, run, &self.at[1])
    }

    /// What the blocks of the cluster have of the row, together: numbers that all threads of a
    /// block hold, one for each tile.
    pub(crate) fn across(
        &self,
        parts: Vec<Distributed<'k>>,
        combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Vec<Num<'k>>,
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let k = self.k;
        let numbers = parts.iter().map(|part| Ok(part.fragment().numbers()?[0]));
        let mut numbers = numbers.collect::<Result<Vec<_>, KernelError>>()?;
        let count = numbers.len();
        let Exchange { array, cursor } = self.exchange;
        numbers.resize(GIVEN as usize, k.number_of(Element::F32, 0.0));
        let own = k.register(Element::F32, &GIVEN.to_string())?;
        own.set(&numbers)?;
        let blocks = self.turns.rows.blocks;
        let stage = cursor.stage()?;
        let of = |rank: Expr| -> Result<View<'k>, KernelError> {
            let at: Coord<Expr> = Tree::flat([Slot::All, Slot::At(rank), Slot::At(stage.index().clone())])?;
            array.slice(at)
        };
        k.single(|| {
            stage.acquire()?;
            let mine = of(k.rank())?;
            mine.store(&own)?;
            k.fence_async();
            (1..blocks as u32).try_for_each(|by| stage.send(&mine, &mine, k.rank_after(by)?))?;
            stage.publish()
        })?;
        stage.wait()?;
        let first: Layout =
            if count <= GIVEN as usize / 2 { format!("{count}:1") } else { format!("{GIVEN}:1") }.parse()?;
        let given = |rank: i64| {
            let numbers = of(Expr::from(rank))?.compose_layout(&first)?.load()?.numbers()?;
            Ok(numbers[..count].to_vec())
        };
        let all = in_pairs(blocks, given, combine)?;
        stage.release_to(&format!("{blocks}:1"), 0)?;
        cursor.advance()?;
        Ok(all)
    }

    /// Writes to a matrix what becomes of each run in f32, by what goes with it. The place of a run
    /// is filled anew as soon as it has been read.
    pub(crate) fn write(
        &self,
        beside: &[Kept<'k>],
        matrix: &View<'k>,
        each: impl Fn(Distributed<'k>, &[Distributed<'k>]) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let tile = self.turns.rows.cut(matrix, 1, self.at.clone())?;
        for (number, run) in self.runs().enumerate() {
            let others: Vec<Distributed<'k>> =
                beside.iter().map(|row| row.runs[number].to(Element::F32)).collect::<Result<_, _>>()?;
            let result = each(run?.to(Element::F32)?, &others)?;
            (self.refill)(number)?;
            tile.slice(at_run(number)?)?.store_distributed_predicated(&result.to(self.turns.rows.element)?)?;
        }
        Ok(())
    }
}

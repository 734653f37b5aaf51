//! The kernel of [`super`] by warpgroups.
//!
//! Law: two warpgroups multiply; of a third one, a warp loads by TMA, and each further warp adds
//! the tiles of one stage to the sums of `d_q`. Their stages are handed over by mbarriers.

use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Cursor, Fragment, Kernel, KernelError, Num, Pipeline, View};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{IntoShape, Layout, Slot, Swizzle, Tiler, Tree};
use tilewright_tile::Element;

use super::tensors::Tensors;
use super::{KEYS_OF_BLOCK, OneKernel, QueryWalk};
use crate::attention::place::{OfThread, behind, plus, times};
use crate::attention::rings::{LINE_ELEMENTS, Ring};
use crate::attention::text::Heads;

/// Stages of the rings of queries and of sums.
const STAGES: i64 = 2;
/// Warps that multiply: two warpgroups.
const MULTIPLYING_WARPS: u32 = 8;
/// Warps of the group that loads and adds: the first loads, and each further one adds the tiles of
/// one stage.
const OTHER_WARPS: u32 = 4;
/// Registers of a thread that multiplies, and of a thread that loads or adds: together they fit the
/// 65,536 registers of a multiprocessor.
const MULTIPLYING_REGISTERS: u32 = 240;
const OTHER_REGISTERS: u32 = 24;
/// Elements of a tile that a warp adds at once: two vectors of four for each lane.
const ADDED_ELEMENTS: i64 = 256;

/// The kernel.
pub(super) fn kernel(form: &OneKernel<'_>) -> Result<Kernel, KernelError> {
    Kernel::build("attention_d_q_d_k_d_v", |k| Written::new(form, k)?.roles())
}

/// A product of two warpgroups, arranged along rows and columns.
fn product(
    element: Element,
    arranged: [i64; 2],
    [rows, columns]: [i64; 2],
    held: &str,
) -> Result<TiledMma, KernelError> {
    let types = if element == Element::F16 { "F16F16" } else { "BF16BF16" };
    let name = format!("SM90_64x{}x16_F32{types}_{held}", columns / arranged[1]);
    let groups = Layout::compact(&(arranged[0], arranged[1], 1).into_shape()?)?;
    let order = Tiler::from_shape(&(rows, columns, 16).into_shape()?)?;
    Ok(TiledMma::new(MmaAtom::named(&name)?, &groups, &order)?)
}

/// The kernel while it is written.
struct Written<'k, 'a> {
    form: &'a OneKernel<'a>,
    k: &'k Build,
    tensors: Tensors<'k>,
    /// Tiles in shared memory: keys, values, and rings of `q`, `d_o`, rows and sums; `d_s^T`.
    keys: View<'k>,
    values: View<'k>,
    q_ring: Ring<'k>,
    d_o_ring: Ring<'k>,
    row_ring: Ring<'k>,
    sum_ring: Ring<'k>,
    d_s: View<'k>,
    of_keys: Pipeline<'k>,
    of_q: Pipeline<'k>,
    of_d_o: Pipeline<'k>,
    /// Free stages of sums are given by the warps that add, and taken back when all warps that
    /// multiply have filled them.
    of_sums: Pipeline<'k>,
    /// `d_s` is free when all warps have read it; nobody fills it for others.
    of_d_s: Pipeline<'k>,
    /// Products with rows of keys and columns of queries; with columns of a head; and of `d_q`.
    by_queries: TiledMma,
    by_head: TiledMma,
    of_d_q: TiledMma,
    walk: QueryWalk,
}

impl<'k, 'a> Written<'k, 'a> {
    fn new(form: &'a OneKernel<'a>, k: &'k Build) -> Result<Written<'k, 'a>, KernelError> {
        let OneKernel { dense, wide, queries, .. } = *form;
        let Heads { kv, element, .. } = dense.heads;
        k.threads(i64::from(MULTIPLYING_WARPS + OTHER_WARPS) * 32)?;
        k.grid(Axis::X, &format!("{kv}*B"))?;
        k.grid(Axis::Y, &format!("ceil({}/{KEYS_OF_BLOCK})", dense.keys()))?;
        let (head, block) = (k.block_number(Axis::X), k.block_number(Axis::Y));
        let tensors = Tensors::new(form, k, [block, head])?;
        let keys = Ring::of_panels(k, element, [KEYS_OF_BLOCK, wide], 1)?.only()?;
        let values = Ring::of_panels(k, element, [KEYS_OF_BLOCK, wide], 1)?.only()?;
        let q_ring = Ring::of_panels(k, element, [queries, wide], STAGES)?;
        let d_o_ring = Ring::of_panels(k, element, [queries, wide], STAGES)?;
        let d_s = Ring::of_panels(k, element, [KEYS_OF_BLOCK, queries], 1)?.only()?;
        // Rows of sums are permuted by 32 bytes, so that threads of eight rows write other banks.
        let lines = Layout::strided((queries, wide, STAGES), (wide, 1, queries * wide))?;
        let swizzle = Swizzle::new(3, 3, i64::from(wide.ilog2()) - 3)?;
        let sum_ring = Ring::of_layout(k, Element::F32, swizzle, lines)?;
        let row_ring = Ring::of_numbers(k, 2 * queries, STAGES)?;
        let of_keys = k.pipeline(1, MULTIPLYING_WARPS)?;
        let of_q = k.pipeline(STAGES, MULTIPLYING_WARPS)?;
        let of_d_o = k.pipeline(STAGES, MULTIPLYING_WARPS)?;
        let of_sums = k.pipeline(STAGES, MULTIPLYING_WARPS)?;
        let of_d_s = k.pipeline(1, MULTIPLYING_WARPS)?;
        let by_queries = product(element, [2, 1], [KEYS_OF_BLOCK, queries], "SS")?;
        let by_head = product(element, [2, 1], [KEYS_OF_BLOCK, wide], "RS")?;
        // Each warpgroup has 64 queries, or half of the columns of all.
        let of_d_q = product(element, if queries == 128 { [2, 1] } else { [1, 2] }, [queries, wide], "SS")?;
        let walk = form.walk(k, &tensors.block)?;
        Ok(Written {
            form,
            k,
            tensors,
            keys,
            values,
            q_ring,
            d_o_ring,
            row_ring,
            sum_ring,
            d_s,
            of_keys,
            of_q,
            of_d_o,
            of_sums,
            of_d_s,
            by_queries,
            by_head,
            of_d_q,
            walk,
        })
    }

    fn roles(&self) -> Result<(), KernelError> {
        let k = self.k;
        k.role(MULTIPLYING_WARPS..MULTIPLYING_WARPS + OTHER_WARPS, || k.registers(OTHER_REGISTERS))?;
        k.role(MULTIPLYING_WARPS..MULTIPLYING_WARPS + 1, || k.single(|| self.load()))?;
        for stage in 0..STAGES as u32 {
            let warp = MULTIPLYING_WARPS + 1 + stage;
            k.role(warp..warp + 1, || self.add(stage.into()))?;
        }
        k.role(0..MULTIPLYING_WARPS, || {
            k.registers(MULTIPLYING_REGISTERS)?;
            self.multiply()
        })
    }

    /// Calls `each` for the tiles of all heads of the group, in the order in which they are taken.
    fn each(&self, mut each: impl FnMut([&Expr; 2]) -> Result<(), KernelError>) -> Result<(), KernelError> {
        let QueryWalk { first, count, .. } = &self.walk;
        self.k.range(self.form.dense.heads.group, |group| {
            self.k.range(count.clone(), |iteration| each([&plus(first, &iteration)?, &group]))
        })
    }

    /// The thread that loads.
    fn load(&self) -> Result<(), KernelError> {
        let stage = self.of_keys.cursor()?.stage()?;
        stage.acquire()?;
        stage.load(&self.tensors.keys, &self.keys)?;
        stage.load(&self.tensors.values, &self.values)?;
        stage.publish()?;
        let (q, d_o) = (self.of_q.cursor()?, self.of_d_o.cursor()?);
        self.each(|at| {
            self.load_q(&q, at)?;
            let stage = d_o.stage()?;
            stage.acquire()?;
            stage.load(&self.tensors.of_queries(&self.tensors.d_o, at)?, &self.d_o_ring.stage(stage.index())?)?;
            stage.publish()?;
            d_o.advance()
        })?;
        // The products of the tile behind the last one begin too; their result is not used.
        self.load_q(&q, [&Expr::from(0), &Expr::from(0)])
    }

    /// Loads a tile of `q` and its rows.
    fn load_q(&self, cursor: &Cursor<'k>, at: [&Expr; 2]) -> Result<(), KernelError> {
        let stage = cursor.stage()?;
        stage.acquire()?;
        stage.load(&self.tensors.of_queries(&self.tensors.q, at)?, &self.q_ring.stage(stage.index())?)?;
        stage.load(&self.tensors.rows_of(at)?, &self.row_ring.stage(stage.index())?)?;
        stage.publish()?;
        cursor.advance()
    }

    /// The warp that adds the tiles of a stage to the sums of `d_q`.
    fn add(&self, own: i64) -> Result<(), KernelError> {
        let OneKernel { queries, wide, in_turns, .. } = *self.form;
        let (k, QueryWalk { first, count, .. }) = (self.k, &self.walk);
        let lanes = wide / 4;
        let (rows, beside) = (ADDED_ELEMENTS / wide, 32 / lanes);
        // A lane has four columns of some rows.
        let held = format!("(({lanes},{beside}),(4,2)):(({},1),({rows},{beside}))", 4 * rows);
        let cursor = self.of_sums.cursor()?;
        cursor.advance_by(own)?;
        k.single(|| cursor.stage()?.publish())?;
        cursor.advance_by(STAGES)?;
        k.range(self.form.dense.heads.group, |group| {
            // Every second tile, counted through all heads.
            let count = k.index(count)?;
            let [one, before] = [1, own].map(|number| count.like(number as f64));
            let odd = (k.index(&group)? * count + before).bit_and(one);
            let odd_at = k.index_of(odd)?;
            k.range(k.index_of((count + one - odd).shift_right(one))?, |round| {
                let tile = plus(&plus(first, &odd_at)?, &times(&round, 2)?)?;
                let word = self.tensors.turns_of([&tile, &group])?;
                let to = self.tensors.sums_of([&tile, &group])?;
                let stage = cursor.stage()?;
                let from = self.sum_ring.stage(stage.index())?;
                stage.acquire()?;
                if in_turns {
                    k.single(|| word.await_turn(&self.tensors.block))?;
                    k.warp_barrier();
                }
                // Written out, so that a part is at a known distance from the first one.
                for part in 0..queries / rows {
                    let part_of = |view: &View<'k>| {
                        let own = view.local_tile((rows, wide), behind(0, &[&Expr::from(part), &Expr::from(0)])?)?;
                        own.compose(&held)?.thread_part()
                    };
                    part_of(&to)?.accumulate_vectors(&part_of(&from)?.load()?)?;
                }
                k.warp_barrier();
                k.single(|| {
                    stage.publish()?;
                    if in_turns { word.pass_turn() } else { Ok(()) }
                })?;
                cursor.advance_by(STAGES)
            })
        })
    }

    /// The warpgroups that multiply.
    fn multiply(&self) -> Result<(), KernelError> {
        let OneKernel { dense, logits, wide, queries, .. } = *self.form;
        let k = self.k;
        let accumulators = |columns: i64| {
            let own = k.register(Element::F32, ((2, 2, columns / 8), 1, 1))?;
            own.clear();
            Ok::<_, KernelError>(own)
        };
        let state = State {
            scores: accumulators(queries)?,
            d_p: accumulators(queries)?,
            d_q: accumulators(if queries == 128 { wide } else { wide / 2 })?,
            d_k: accumulators(wide)?,
            d_v: accumulators(wide)?,
            q: self.of_q.cursor()?,
            d_o: self.of_d_o.cursor()?,
            sums: self.of_sums.cursor()?,
            d_s: self.of_d_s.cursor()?,
        };
        self.of_keys.cursor()?.stage()?.wait()?;
        self.begin_scores(&state)?;
        k.wait_mma(0);
        let QueryWalk { first, masked, rest, .. } = &self.walk;
        k.range(dense.heads.group, |_| {
            k.range(masked.clone(), |iteration| k.in_place(|| self.step(&state, Some(&plus(first, &iteration)?))))?;
            k.range(rest.clone(), |_| k.in_place(|| self.step(&state, None)))
        })?;
        k.wait_mma(0);
        state.q.stage()?.release()?;
        let scale = k.number(logits.scale as f32);
        let d_k = state.d_k.map(|own| Ok(own * scale))?.to(dense.heads.element)?;
        self.tensors.d_k.partition_mma(&self.by_head, Operand::C)?.store_predicated(&d_k)?;
        let d_v = state.d_v.to(dense.heads.element)?;
        self.tensors.d_v.partition_mma(&self.by_head, Operand::C)?.store_predicated(&d_v)
    }

    /// Begins the products of keys and the tile of queries at the cursor, when it has come.
    fn begin_scores(&self, state: &State<'k>) -> Result<(), KernelError> {
        let stage = state.q.stage()?;
        stage.wait()?;
        let q = self.q_ring.stage(stage.index())?;
        self.k.mma_anew(&self.by_queries, &state.scores, &self.keys, &q)
    }

    /// Two numbers of adjacent queries, of each eight of a tile: the exponents, or `delta`.
    fn rows(&self, stage: &Expr, which: i64) -> Result<View<'k>, KernelError> {
        let queries = self.form.queries;
        let own = self.row_ring.stage(stage)?.local_tile(queries, Expr::from(which))?;
        own.compose(&format!("((4,{}),2,{}):((2,0),1,8)", 8 * MULTIPLYING_WARPS, queries / 8))?.thread_part()
    }

    /// A tile of queries; with a mask, where its index is given.
    fn step(&self, state: &State<'k>, tile: Option<&Expr>) -> Result<(), KernelError> {
        let OneKernel { dense, logits, queries, .. } = *self.form;
        let (k, element) = (self.k, dense.heads.element);
        let blocks = queries / 8;
        let q_stage = state.q.stage()?;
        let q_tile = self.q_ring.stage(q_stage.index())?;
        let d_o_stage = state.d_o.stage()?;
        d_o_stage.wait()?;
        let d_o_tile = self.d_o_ring.stage(d_o_stage.index())?;
        k.mma_anew(&self.by_queries, &state.d_p, &self.values, &d_o_tile)?;
        // Powers, while `d_p` is computed.
        let mask = tile.map(|tile| self.mask(tile)).transpose()?;
        let exponents = self.rows(q_stage.index(), 0)?;
        let factor = k.number(logits.factor() as f32);
        let minus_infinity = k.number(f32::NEG_INFINITY);
        let scores = state.scores.numbers()?;
        let mut powers = Vec::new();
        for column in 0..blocks {
            let own = exponents.slice(behind(1, &[&Expr::from(column)])?)?.load()?.numbers()?;
            for index in 0..4 {
                let (beside, below) = (index % 2, index / 2);
                let score = scores[(4 * column + index) as usize];
                let mut logit = score.multiply_add(factor, own[beside as usize]);
                if let Some(mask) = &mask {
                    logit = mask.sees(k, [below, beside + 8 * column]).select(logit, minus_infinity);
                }
                powers.push(logit.exp2());
            }
        }
        let operand = Layout::compact(&((2, 2, 2), 1, queries / 16).into_shape()?)?;
        let narrow = |numbers: &[Num<'k>]| {
            let own = k.register(Element::F32, ((2, 2, blocks), 1, 1))?;
            own.set(numbers)?;
            own.to(element)
        };
        k.wait_mma(0);
        // Both operands in one pass, which frees the powers and `d_p` piece by piece.
        let deltas = self.rows(q_stage.index(), 1)?;
        let d_p = state.d_p.numbers()?;
        let mut d_scores = Vec::new();
        for column in 0..blocks {
            let own = deltas.slice(behind(1, &[&Expr::from(column)])?)?.load()?.numbers()?;
            for index in 0..4 {
                let at = (4 * column + index) as usize;
                d_scores.push(powers[at] * (d_p[at] - own[(index % 2) as usize]));
            }
        }
        let (p, d_s) = (narrow(&powers)?.with_layout(&operand)?, narrow(&d_scores)?);
        k.mma(&self.by_head, &state.d_v, &p, &d_o_tile.select(&[1, 0])?, &state.d_v)?;
        let free = state.d_s.stage()?;
        free.acquire()?;
        self.store_d_s(&d_s)?;
        k.fence_async();
        k.barrier();
        k.mma_anew(&self.of_d_q, &state.d_q, &self.d_s.select(&[1, 0])?, &self.keys.select(&[1, 0])?)?;
        k.mma(&self.by_head, &state.d_k, &d_s.with_layout(&operand)?, &q_tile.select(&[1, 0])?, &state.d_k)?;
        // The registers of `p` are free when `d_v` is computed.
        k.wait_mma(2);
        d_o_stage.release()?;
        state.d_o.advance()?;
        state.q.advance()?;
        self.begin_scores(state)?;
        // The tile of `d_q`, while `d_k` and the next scores are computed.
        k.wait_mma(2);
        free.release()?;
        state.d_s.advance()?;
        let sum_stage = state.sums.stage()?;
        sum_stage.wait()?;
        let to = self.sum_ring.stage(sum_stage.index())?;
        to.partition_mma(&self.of_d_q, Operand::C)?.store(&state.d_q)?;
        sum_stage.release()?;
        // The scores are there, too: the assembler knows of no products in flight from iteration to
        // iteration whose results are read.
        k.wait_mma(0);
        q_stage.release()?;
        state.sums.advance()
    }

    /// Writes `d_s^T` to shared memory, as matrices of 8 x 8, strip by strip.
    fn store_d_s(&self, d_s: &Fragment<'k>) -> Result<(), KernelError> {
        let (k, queries) = (self.k, self.form.queries);
        let strips = queries / LINE_ELEMENTS;
        let part = product(self.form.dense.heads.element, [2, 1], [KEYS_OF_BLOCK, LINE_ELEMENTS], "SS")?;
        let store = TiledCopy::of_operand_in(CopyAtom::named("SM90_U32x4_STSM_N")?, &part, Operand::C, 16)?;
        let all = Layout::strided(((2, 2, LINE_ELEMENTS / 8), 1, 1, strips), ((1, 2, 4), 0, 0, LINE_ELEMENTS / 2))?;
        let all = d_s.with_layout(&all)?;
        for strip in 0..strips {
            let own = all.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(strip)])?)?;
            let to = self
                .d_s
                .local_tile((KEYS_OF_BLOCK, LINE_ELEMENTS), behind(0, &[&Expr::from(0), &Expr::from(strip)])?)?;
            k.copy(&store, &own.retile(&store, CopyEnd::Source)?, &to)?;
        }
        Ok(())
    }

    /// Which keys of the block the queries of a tile see.
    fn mask(&self, tile: &Expr) -> Result<Mask<'k>, KernelError> {
        let k = self.k;
        let thread = OfThread::of(k)?;
        let (row, column) = (thread.row(), thread.column());
        let first_key = k.index(&times(&self.tensors.block, KEYS_OF_BLOCK)?)?;
        if self.form.is_causal() {
            let position = k.index(&times(tile, self.form.queries)?)? + k.index(&self.form.shift(k)?)?;
            return Ok(Mask { limit: position + column - row - first_key, is_causal: true });
        }
        let end = k.index(&k.size(self.form.dense.keys())?)?;
        Ok(Mask { limit: end - end.like(1.0) - first_key - row, is_causal: false })
    }
}

/// What the warpgroups carry from tile to tile.
///
/// Products that begin anew leave their accumulators in the registers in which they are: an
/// instruction that clears them would make the assembler wait for products in flight.
struct State<'k> {
    scores: Fragment<'k>,
    d_p: Fragment<'k>,
    d_q: Fragment<'k>,
    d_k: Fragment<'k>,
    d_v: Fragment<'k>,
    q: Cursor<'k>,
    d_o: Cursor<'k>,
    sums: Cursor<'k>,
    d_s: Cursor<'k>,
}

/// A bound: an accumulator counts if its place, from the first one of the thread on, is up to it.
struct Mask<'k> {
    limit: Num<'k>,
    is_causal: bool,
}

impl<'k> Mask<'k> {
    /// Whether an accumulator is unmasked. It is `8 * rows` rows and `columns` columns behind the
    /// first accumulator of the thread.
    fn sees(&self, k: &'k Build, [rows, columns]: [i64; 2]) -> tilewright_kernel::Flag<'k> {
        let place = 8 * rows - if self.is_causal { columns } else { 0 };
        k.number(place as i32).le(self.limit)
    }
}

//! The forward of warps that multiply by `mma.sync`, in one kernel whose products and softmax
//! overlap.
//!
//! Law: a block has rows of queries, 32 for each warp, and takes keys in tiles of 32. The products
//! of the next tile of keys are issued among the instructions of the softmax of this tile, so the
//! tensor cores compute while a warp takes powers of two. Sums are corrected when a logit comes
//! that is much greater than all before: softmax is the same whichever number powers are relative
//! to.
//!
//! *Rings.* Group `g` of copies has keys of tile `g + 1` and values of tile `g`; the group before
//! the first one has the queries and the first keys. Iteration `g` waits for its group, and all
//! warps have then left the stage of the group before, which takes the group that is farthest
//! ahead.
//!
//! *Registers.* Two iterations are written out, so that logits never move to other registers. The
//! queries stay in registers. Heads of 128 have no room for that: sums of values take half of the
//! registers of a thread. Measured on an H200, the program is as fast for them.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Flag, Fragment, Kernel, KernelError, Num, View};
use tilewright_layout::atoms::{Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_tile::Element;

use super::place::{OfThread, behind, minus, over, plus, times};
use super::rings::Ring;
use super::scores::Logits;
use super::text::{Dense, Heads};
use super::warps::{BYTES, DEPTH, OF_A, OF_B, OF_B_TRANSPOSED, STRIP, fragment, product, room, to_shared};

/// Warps of a block, and the blocks that share a multiprocessor: two warps for each of its four
/// schedulers.
const WARPS: i64 = 4;
const RESIDENT: i64 = 2;
/// Rows of queries of a warp: two instructions of 16 rows share each fragment of keys and values.
const ROWS_OF_WARP: i64 = 32;
/// Keys of a tile.
const KEYS: i64 = 32;
/// Stages of the rings. Measured on an H200: with four, 338 TFLOP/s instead of 344.
const STAGES: i64 = 2;
/// Elements of a row of a head.
const WIDE: i64 = 64;
/// Iterations that are written out together.
const TOGETHER: i64 = 2;
/// How far a logit, in powers of two, may be above the greatest one that sums are relative to. So
/// powers are at most 2^8, sums are as exact as with the greatest logit itself, and they are
/// corrected in the first tiles only.
const SLACK: f64 = 8.0;
/// Rows of queries that a thread has a part of.
const ROWS_OF_THREAD: usize = 4;

/// An attention that this form computes.
#[derive(Clone, Copy)]
pub(super) struct ByWarps<'a> {
    dense: &'a Dense,
    logits: &'a Logits,
}

impl<'a> ByWarps<'a> {
    /// The form for an attention on a machine; none if the machine has warpgroups, or if it is not
    /// the common case: heads of 64, without a mask, or causal with as many keys as
    /// queries, and logits that are scaled products.
    pub(super) fn new(dense: &'a Dense, logits: &'a Logits, machine: &Machine) -> Option<ByWarps<'a>> {
        let Heads { head, value, .. } = dense.heads;
        let is_plain = logits.is_plain() && !logits.sinks && logits.before().is_none();
        let is_masked = match logits.after() {
            None => true,
            Some(after) => after == 0 && dense.same_length,
        };
        if machine.target.has_wgmma() || [head, value] != [WIDE; 2] || dense.alignment() < 8 {
            return None;
        }
        let bytes = BYTES * WIDE * (WARPS * ROWS_OF_WARP + 2 * STAGES * KEYS);
        let fits = bytes <= room(machine, RESIDENT);
        (fits && is_plain && is_masked).then_some(ByWarps { dense, logits })
    }

    /// The kernel.
    pub(super) fn kernel(&self) -> Result<Kernel, KernelError> {
        Kernel::build("attention", |k| ForwardKernel::new(self, k)?.all())
    }

    fn rows(&self) -> i64 {
        WARPS * ROWS_OF_WARP
    }
}

/// The kernel while it is written.
struct ForwardKernel<'k, 'a> {
    form: &'a ByWarps<'a>,
    k: &'k Build,
    q: View<'k>,
    keys: View<'k>,
    values: View<'k>,
    o: View<'k>,
    lse: View<'k>,
    /// The tile of queries in shared memory, and the rings of keys and values.
    q_tile: View<'k>,
    key_ring: Ring<'k>,
    value_ring: Ring<'k>,
    mma: TiledMma,
    to_shared: TiledCopy,
    /// The tile of rows.
    block: Expr,
    /// Pairs of iterations without a mask, and with one behind them.
    whole: Expr,
    masked: Expr,
}

/// What a warp carries from tile to tile.
struct ForwardState<'k> {
    /// The products of the tile of this iteration.
    scores: Fragment<'k>,
    /// The greatest product of each row, and the sums of powers of the lane.
    greatest: Fragment<'k>,
    total: Fragment<'k>,
    /// Sums of values, strip by strip.
    sums: Vec<Fragment<'k>>,
    /// Fragments of the queries.
    queries: Vec<Fragment<'k>>,
}

impl<'k, 'a> ForwardKernel<'k, 'a> {
    fn new(form: &'a ByWarps<'a>, k: &'k Build) -> Result<ForwardKernel<'k, 'a>, KernelError> {
        let ByWarps { dense, logits } = *form;
        let Heads { group, kv, element, .. } = dense.heads;
        let of = |name: &str, layout: &str, role: Role| k.tensor_of(element, name, layout, role);
        let q = of("q", &dense.layout_of_queries("q"), Role::Input)?;
        let keys = of("k", &dense.layout_of_keys("k"), Role::Input)?;
        let values = of("v", &dense.layout_of_keys("v"), Role::Input)?;
        let o = of("o", &dense.layout_of_queries("o"), Role::Output)?;
        let lse = k.tensor_of(Element::F32, "lse", &dense.layout_of_rows(), Role::Output)?;
        let rows = form.rows();
        k.threads(32 * WARPS)?;
        k.resident(RESIDENT as u32)?;
        k.grid(Axis::X, &format!("ceil(S/{rows})"))?;
        k.grid(Axis::Y, group)?;
        k.grid(Axis::Z, &format!("{kv}*B"))?;
        let (at, place, head) = (k.block_number(Axis::X), k.block_number(Axis::Y), k.block_number(Axis::Z));
        // With a mask the blocks that take longest begin first.
        let block = match logits.after() {
            None => at,
            Some(_) => minus(&minus(&k.size(&format!("ceil(S/{rows})"))?, &Expr::from(1))?, &at)?,
        };
        let own = |tensor: &View<'k>, slots: &[&Expr]| {
            tensor.slice(behind(2, slots)?)?.local_tile((rows, WIDE), behind(0, &[&block, &Expr::from(0)])?)
        };
        let (q, o) = (own(&q, &[&place, &head])?, own(&o, &[&place, &head])?);
        let lse = lse.slice(behind(1, &[&place, &head])?)?.local_tile(rows, block.clone())?;
        let (keys, values) = (keys.slice(behind(2, &[&head])?)?, values.slice(behind(2, &[&head])?)?);
        let q_tile = Ring::of_rows(k, element, [rows, WIDE], 1)?.only()?;
        let key_ring = Ring::of_rows(k, element, [KEYS, WIDE], STAGES)?;
        let value_ring = Ring::of_rows(k, element, [KEYS, WIDE], STAGES)?;
        let pair = TOGETHER * KEYS;
        let (whole, masked) = match logits.after() {
            Some(_) => (times(&block, rows / pair)?, Expr::from(rows / pair)),
            None => {
                let whole = k.size(dense.keys())?.floor_div(&Expr::from(pair)).ok_or_else(over)?;
                let all = k.size(&format!("ceil({}/{pair})", dense.keys()))?;
                (whole.clone(), minus(&all, &whole)?)
            }
        };
        Ok(ForwardKernel {
            form,
            k,
            q,
            keys,
            values,
            o,
            lse,
            q_tile,
            key_ring,
            value_ring,
            mma: product(element, [WARPS, 1])?,
            to_shared: to_shared(WARPS, WIDE)?,
            block,
            whole,
            masked,
        })
    }

    fn all(&self) -> Result<(), KernelError> {
        let k = self.k;
        let last = Expr::from(STAGES - 1);
        k.copy_predicated(&self.to_shared, &self.q, &self.q_tile)?;
        self.fetch_tile(&self.keys, &self.key_ring, &Expr::from(0), &last)?;
        k.commit_async();
        for group in 0..STAGES - 1 {
            self.fetch(&Expr::from(group), &Expr::from(group))?;
        }
        let row_numbers = || k.register(Element::F32, ROWS_OF_THREAD as i64);
        let mut state = ForwardState {
            scores: k.register(Element::F32, ((2, 2), 2, KEYS / 8))?,
            greatest: row_numbers()?,
            total: row_numbers()?,
            sums: (0..WIDE / STRIP)
                .map(|_| k.register(Element::F32, ((2, 2), 2, STRIP / 8)))
                .collect::<Result<_, _>>()?,
            queries: Vec::new(),
        };
        state.greatest.fill(k.number(f32::NEG_INFINITY))?;
        state.total.clear();
        state.sums.iter().for_each(Fragment::clear);
        k.wait_async(STAGES as u32 - 1);
        k.barrier();
        state.queries = (0..WIDE / DEPTH).map(|step| self.queries(step)).collect::<Result<_, _>>()?;
        state.scores.clear();
        for step in 0..WIDE / DEPTH {
            self.add_scores(&state, &state.scores, step, &last)?;
        }
        k.range(self.whole.clone(), |pair| k.in_place(|| self.pair(&state, &pair, None)))?;
        k.range(self.masked.clone(), |pair| {
            let pair = plus(&self.whole, &pair)?;
            k.in_place(|| self.pair(&state, &pair, Some(&pair)))
        })?;
        k.wait_async(0);
        self.write(&state)
    }

    /// Copies a tile of keys or of values to a stage; zeros, where there are none.
    fn fetch_tile(&self, from: &View<'k>, ring: &Ring<'k>, tile: &Expr, stage: &Expr) -> Result<(), KernelError> {
        let from = from.local_tile((KEYS, WIDE), behind(0, &[tile, &Expr::from(0)])?)?;
        self.k.copy_predicated(&self.to_shared, &from, &ring.stage(stage)?)
    }

    /// Issues a group of copies to a stage.
    fn fetch(&self, group: &Expr, stage: &Expr) -> Result<(), KernelError> {
        self.fetch_tile(&self.keys, &self.key_ring, &plus(group, &Expr::from(1))?, stage)?;
        self.fetch_tile(&self.values, &self.value_ring, group, stage)?;
        self.k.commit_async();
        Ok(())
    }

    /// The queries of a step along the row.
    fn queries(&self, step: i64) -> Result<Fragment<'k>, KernelError> {
        let at = behind(0, &[&Expr::from(0), &Expr::from(step)])?;
        fragment(self.k, &self.mma, &self.q_tile.local_tile((self.form.rows(), DEPTH), at)?, OF_A)
    }

    /// Adds a step along the row to the products of queries and the keys of a stage.
    fn add_scores(
        &self,
        state: &ForwardState<'k>,
        scores: &Fragment<'k>,
        step: i64,
        stage: &Expr,
    ) -> Result<(), KernelError> {
        let at = behind(0, &[&Expr::from(0), &Expr::from(step)])?;
        let tile = self.key_ring.stage(stage)?.local_tile((KEYS, DEPTH), at)?;
        let keys = fragment(self.k, &self.mma, &tile, OF_B)?;
        self.k.mma(&self.mma, scores, &state.queries[step as usize], &keys, scores)
    }

    /// A pair of iterations; with a mask, where it is numbered.
    fn pair(&self, state: &ForwardState<'k>, pair: &Expr, mask: Option<&Expr>) -> Result<(), KernelError> {
        for own in 0..TOGETHER {
            let tile = plus(&times(pair, TOGETHER)?, &Expr::from(own))?;
            self.step(state, &tile, mask.is_some())?;
        }
        Ok(())
    }

    /// A tile of keys and values.
    fn step(&self, state: &ForwardState<'k>, tile: &Expr, is_masked: bool) -> Result<(), KernelError> {
        let (k, logits) = (self.k, self.form.logits);
        let element = self.form.dense.heads.element;
        k.wait_async(STAGES as u32 - 2);
        k.barrier();
        let stage = k.remainder(tile, STAGES)?;
        let next = k.register(Element::F32, ((2, 2), 2, KEYS / 8))?;
        next.clear();
        let steps = WIDE / DEPTH;
        // The tensor cores have work while threads find addresses.
        self.add_scores(state, &next, 0, &stage)?;
        let ahead = plus(tile, &Expr::from(STAGES - 1))?;
        self.fetch(&ahead, &k.remainder(&ahead, STAGES)?)?;
        // Logits of this tile.
        let mut scores = state.scores.numbers()?;
        if is_masked {
            let limits = self.limits(tile)?;
            let nothing = k.number(f32::NEG_INFINITY);
            for (index, score) in scores.iter_mut().enumerate() {
                let column = (index / 8 * 8 + index % 2) as i32;
                *score = k.number(column).le(limits[index / 2 % 4]).select(*score, nothing);
            }
        }
        let of_row = |row: usize| (0..KEYS as usize / 4).map(move |own| own / 2 * 8 + row * 2 + own % 2);
        let (factor, less) = (k.number(logits.factor() as f32), k.number(-logits.factor() as f32));
        let before = state.greatest.numbers()?;
        let found = (0..ROWS_OF_THREAD).map(|row| of_row(row).map(|at| scores[at]).reduce(Num::max));
        let found = found.collect::<Option<Vec<_>>>().ok_or_else(over)?;
        self.add_scores(state, &next, 1, &stage)?;
        let nothing = k.number(f32::NEG_INFINITY);
        let (mut greatest, mut bases, mut moves) = (Vec::new(), Vec::new(), None);
        let slack = k.number((SLACK / logits.factor()) as f32);
        for (own, before) in found.into_iter().zip(&before) {
            let own = [1, 2].into_iter().fold(own, |own, lanes| own.max(k.shuffle_xor(own, lanes)));
            let is_greater = own.gt(*before + slack);
            moves = Some(moves.map_or(is_greater, |moves: Flag<'k>| moves.or(is_greater)));
            let own = is_greater.select(own, *before);
            greatest.push(own);
            // A row that saw nothing has powers of 0.
            bases.push(own.eq(nothing).select(k.number(0.0_f32), own));
        }
        state.greatest.set(&greatest)?;
        k.when(moves.ok_or_else(over)?, || {
            let old: Vec<Num<'k>> =
                before.iter().zip(&bases).map(|(own, base)| ((*own - *base) * factor).exp2()).collect();
            let corrected = |own: &Fragment<'k>, each: usize| {
                let numbers = own.numbers()?.into_iter().enumerate();
                own.set(&numbers.map(|(at, own)| own * old[at / each % ROWS_OF_THREAD]).collect::<Vec<_>>())
            };
            corrected(&state.total, 1)?;
            state.sums.iter().try_for_each(|own| corrected(own, 2))
        })?;
        let bases: Vec<Num<'k>> = bases.into_iter().map(|base| base * less).collect();
        // Powers of two instructions' rows and columns among the rest of the products.
        let mut powers = scores.clone();
        let mut done = 0;
        let chunk = (powers.len() as i64 / (steps - 2)) as usize;
        for step in 2..steps {
            self.add_scores(state, &next, step, &stage)?;
            let to = if step + 1 == steps { powers.len() } else { done + chunk };
            for at in done..to {
                powers[at] = scores[at].multiply_add(factor, bases[at / 2 % 4]).exp2();
            }
            done = to;
        }
        let mut totals = Vec::new();
        for (row, total) in state.total.numbers()?.into_iter().enumerate() {
            let own = of_row(row).map(|at| powers[at]).reduce(|a, b| a + b).ok_or_else(over)?;
            totals.push(total + own);
        }
        state.total.set(&totals)?;
        // Powers as the left operand: for each step along the keys two instructions' columns.
        let mut left = Vec::new();
        for step in 0..KEYS / DEPTH {
            let own = k.register(Element::F32, ((2, 2, 2), 2, 1))?;
            let mut numbers = Vec::new();
            for m in 0..2 {
                for n in 0..2 {
                    let first = (16 * step + 8 * n + 4 * m) as usize;
                    numbers.extend_from_slice(&powers[first..first + 4]);
                }
            }
            own.set(&numbers)?;
            left.push(own.to(element)?);
        }
        let values = self.value_ring.stage(&stage)?.select(&[1, 0])?;
        for (strip, sums) in (0..).zip(&state.sums) {
            for (step, powers) in (0..).zip(&left) {
                let at = behind(0, &[&Expr::from(strip), &Expr::from(step)])?;
                let own = fragment(k, &self.mma, &values.local_tile((STRIP, DEPTH), at)?, OF_B_TRANSPOSED)?;
                k.mma(&self.mma, sums, powers, &own, sums)?;
            }
        }
        state.scores.assign(&next)
    }

    /// The number of columns up to which each row of the thread sees the keys of a tile, from the
    /// first column of the thread on.
    fn limits(&self, tile: &Expr) -> Result<Vec<Num<'k>>, KernelError> {
        let k = self.k;
        let thread = OfThread::of(k)?;
        let column = thread.column();
        let first_key = k.index(&times(tile, KEYS)?)? + column;
        if self.form.logits.after().is_none() {
            let end = k.index(&k.size(self.form.dense.keys())?)?;
            return Ok(vec![end - end.like(1.0) - first_key; ROWS_OF_THREAD]);
        }
        let row = thread.row();
        let limit = k.index(&times(&self.block, self.form.rows())?)? + row - first_key;
        // Rows of a thread: two of an instruction, of two instructions.
        Ok([0, 8, 16 * WARPS, 16 * WARPS + 8].map(|below| limit + limit.like(below as f64)).to_vec())
    }

    /// Writes `o` and `lse`.
    fn write(&self, state: &ForwardState<'k>) -> Result<(), KernelError> {
        let (k, element) = (self.k, self.form.dense.heads.element);
        let (zero, nothing) = (k.number(0.0_f32), k.number(f32::NEG_INFINITY));
        let mut kept = Vec::new();
        let mut logarithms = Vec::new();
        let factor = k.number(self.form.logits.factor() as f32);
        let natural = k.number(std::f32::consts::LN_2);
        for (total, greatest) in state.total.numbers()?.into_iter().zip(state.greatest.numbers()?) {
            let total = [1, 2].into_iter().fold(total, |own, lanes| own + k.shuffle_xor(own, lanes));
            let is_empty = total.eq(zero);
            kept.push(is_empty.select(zero, total.recip()));
            logarithms.push(is_empty.select(nothing, (greatest * factor + total.log2()) * natural));
        }
        for (strip, sums) in (0..).zip(&state.sums) {
            let own = k.register(Element::F32, ((2, 2), 2, STRIP / 8))?;
            let numbers: Vec<Num<'k>> =
                sums.numbers()?.into_iter().enumerate().map(|(at, own)| own * kept[at / 2 % 4]).collect();
            own.set(&numbers)?;
            let to = self.o.local_tile((self.form.rows(), STRIP), behind(0, &[&Expr::from(0), &Expr::from(strip)])?)?;
            to.partition_mma(&self.mma, Operand::C)?.store_predicated(&own.to(element)?)?;
        }
        let own = k.register(Element::F32, ((2, 2), 1))?;
        own.set(&logarithms)?;
        // Four lanes have a row.
        let thread = k.index(&k.thread()?)?;
        k.when(thread.bit_and(thread.like(3.0)).eq(thread.like(0.0)), || {
            let held = format!("((4,8,{WARPS}),(2,2)):((0,1,16),(8,{}))", 16 * WARPS);
            self.lse.compose(&held)?.thread_part()?.store_predicated(&own)
        })
    }
}

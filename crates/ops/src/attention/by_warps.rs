//! The forward of warps that multiply by `mma.sync`, in one kernel.
//!
//! Law: a block has rows of queries, 32 for each warp, and takes keys in tiles of 32. Powers are
//! relative to a logit that was the greatest one of its row: softmax is the same whichever number
//! powers are relative to. So a tile needs no maxima. Its powers are summed, and where a sum says
//! that a power is large, or that a row sees its first key, the warp looks for the greatest logits,
//! corrects its sums, and takes the powers again. This happens in the first tiles only.
//!
//! *Rings.* A group of copies has tiles of keys and of values. Warps meet once for each group: it
//! has arrived then, and all warps have left the stage of the group before, which takes the group
//! that is farthest ahead. Its copies are issued behind the powers of the first tile, so that the
//! products of this tile do not wait for their addresses.
//!
//! *Registers.* The products of the next tile are not computed ahead: the other warp of a scheduler
//! multiplies while a warp takes powers. Measured on an H200, heads of 64: 371 TFLOP/s, and 361
//! with products of the next tile among the powers, which need more registers. Three blocks of a
//! multiprocessor, with 168 registers a thread, took 338. All queries of a row stay in registers
//! with heads of 64, and three eighths of them with heads of 128.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Fragment, Kernel, KernelError, Num, View};
use tilewright_layout::atoms::{Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_tile::Element;

use super::place::{OfThread, behind, minus, over, plus, times};
use super::rings::Ring;
use super::scores::Logits;
use super::text::{Dense, Heads};
use super::warps::{BYTES, DEPTH, OF_A, OF_B, OF_B_TRANSPOSED, STRIP, fragment, product_of_rows, room, to_shared};

/// Warps of a block, and the blocks that share a multiprocessor: two warps for each of its four
/// schedulers.
const WARPS: i64 = 4;
const RESIDENT: i64 = 2;
/// Rows of queries of a warp: two instructions of 16 rows share each fragment of keys and values.
const ROWS_OF_WARP: i64 = 32;
/// Keys of a tile.
const KEYS: i64 = 32;
/// Stages of the rings, and groups of copies whose tiles are written out together, so that the
/// stages are known. Measured on an H200: written out one by one, 315 TFLOP/s instead of 329,
/// causal with heads of 64, and with three stages 364 instead of 380, whole with heads of 128.
const STAGES: i64 = 2;
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
    arranged: Forward,
}

/// How a block takes keys.
#[derive(Clone, Copy)]
struct Forward {
    /// Elements of a row of a head.
    wide: i64,
    /// Tiles of a group of copies.
    tiles: i64,
    /// Steps along a row of queries whose fragments stay in registers; the others are read for each
    /// tile.
    kept: i64,
    /// Whether copies are issued behind the powers of a tile, and not before its products.
    copies_behind: bool,
}

impl Forward {
    /// As measured on an H200. With heads of 64, copies behind the powers reach 369 TFLOP/s instead
    /// of 361, and 334 instead of 319 with a causal mask. With heads of 128 they reach 383 instead
    /// of 380, but 329 instead of 338 with a causal mask; there, two steps in registers instead of
    /// three reach 316.
    fn of(wide: i64, is_causal: bool) -> Forward {
        match wide {
            64 => Forward { wide, tiles: 2, kept: 4, copies_behind: true },
            _ => Forward { wide, tiles: 1, kept: 3, copies_behind: !is_causal },
        }
    }
}

impl<'a> ByWarps<'a> {
    /// The form for an attention on a machine; none if the machine has warpgroups, or if it is not
    /// the common case: heads of 64 or 128, without a mask, or causal with as many keys as queries,
    /// and logits that are scaled products; or if two blocks have no room.
    pub(super) fn new(dense: &'a Dense, logits: &'a Logits, machine: &Machine) -> Option<ByWarps<'a>> {
        let Heads { head, value, .. } = dense.heads;
        let is_plain = logits.is_plain() && !logits.sinks && logits.before().is_none();
        let is_masked = match logits.after() {
            None => true,
            Some(after) => after == 0 && dense.same_length,
        };
        if machine.target.has_wgmma() || !matches!(head, 64 | 128) || head != value || dense.alignment() < 8 {
            return None;
        }
        let arranged = Forward::of(head, logits.after().is_some());
        let bytes = BYTES * head * (WARPS * ROWS_OF_WARP + 2 * STAGES * arranged.tiles * KEYS);
        let fits = bytes <= room(machine, RESIDENT);
        (fits && is_plain && is_masked).then_some(ByWarps { dense, logits, arranged })
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
    /// Iterations without a mask, and with one behind them.
    whole: Expr,
    masked: Expr,
}

/// What a warp carries from tile to tile.
struct ForwardState<'k> {
    /// What is added to logits, in powers of two, of each row: minus the greatest one that sums are
    /// relative to, and the infinity in rows that saw nothing. Then the sums of powers of the lane.
    less: Fragment<'k>,
    total: Fragment<'k>,
    /// Sums of values, strip by strip.
    sums: Vec<Fragment<'k>>,
    /// Fragments of the queries.
    queries: Vec<Fragment<'k>>,
}

impl<'k, 'a> ForwardKernel<'k, 'a> {
    fn new(form: &'a ByWarps<'a>, k: &'k Build) -> Result<ForwardKernel<'k, 'a>, KernelError> {
        let ByWarps { dense, logits, arranged: Forward { wide, tiles, .. } } = *form;
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
            tensor.slice(behind(2, slots)?)?.local_tile((rows, wide), behind(0, &[&block, &Expr::from(0)])?)
        };
        let (q, o) = (own(&q, &[&place, &head])?, own(&o, &[&place, &head])?);
        let lse = lse.slice(behind(1, &[&place, &head])?)?.local_tile(rows, block.clone())?;
        let (keys, values) = (keys.slice(behind(2, &[&head])?)?, values.slice(behind(2, &[&head])?)?);
        let q_tile = Ring::of_rows(k, element, [rows, wide], 1)?.only()?;
        let key_ring = Ring::of_rows(k, element, [KEYS, wide], STAGES * tiles)?;
        let value_ring = Ring::of_rows(k, element, [KEYS, wide], STAGES * tiles)?;
        let together = STAGES * tiles * KEYS;
        let (whole, masked) = match logits.after() {
            Some(_) => (times(&block, rows / together)?, Expr::from(rows / together)),
            None => {
                let whole = k.size(dense.keys())?.floor_div(&Expr::from(together)).ok_or_else(over)?;
                let all = k.size(&format!("ceil({}/{together})", dense.keys()))?;
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
            mma: product_of_rows(element, WARPS, 2)?,
            to_shared: to_shared(WARPS, wide)?,
            block,
            whole,
            masked,
        })
    }

    fn all(&self) -> Result<(), KernelError> {
        let k = self.k;
        let Forward { wide, kept, .. } = self.form.arranged;
        k.copy_predicated(&self.to_shared, &self.q, &self.q_tile)?;
        k.commit_async();
        self.fetch(&Expr::from(0))?;
        let row_numbers = || k.register(Element::F32, ROWS_OF_THREAD as i64);
        let mut state = ForwardState {
            less: row_numbers()?,
            total: row_numbers()?,
            sums: (0..wide / STRIP)
                .map(|_| k.register(Element::F32, ((2, 2), 2, STRIP / 8)))
                .collect::<Result<_, _>>()?,
            queries: Vec::new(),
        };
        state.less.fill(k.number(f32::INFINITY))?;
        state.total.clear();
        state.sums.iter().for_each(Fragment::clear);
        k.wait_async(1);
        k.barrier();
        // The places of threads in a tile are computed once, before the loops.
        self.queries(0)?;
        state.queries = (0..kept).map(|step| self.queries(step)).collect::<Result<_, _>>()?;
        k.range(self.whole.clone(), |own| k.in_place(|| self.groups(&state, &own, false)))?;
        k.range(self.masked.clone(), |own| {
            let own = plus(&self.whole, &own)?;
            k.in_place(|| self.groups(&state, &own, true))
        })?;
        k.wait_async(0);
        self.write(&state)
    }

    /// Accumulators of products of queries and a tile of keys.
    fn scores(&self) -> Result<Fragment<'k>, KernelError> {
        self.k.register(Element::F32, ((2, 2), 2, KEYS / 8))
    }

    /// Copies a tile of keys or of values to a place of a ring; zeros, where there are none.
    fn fetch_tile(&self, from: &View<'k>, ring: &Ring<'k>, tile: &Expr, place: &Expr) -> Result<(), KernelError> {
        let from = from.local_tile((KEYS, self.form.arranged.wide), behind(0, &[tile, &Expr::from(0)])?)?;
        self.k.copy_predicated(&self.to_shared, &from, &ring.stage(place)?)
    }

    /// Issues a group of copies: tiles of keys and of values.
    fn fetch(&self, group: &Expr) -> Result<(), KernelError> {
        for own in 0..self.form.arranged.tiles {
            let [tile, place] = self.tile(group, own)?;
            self.fetch_tile(&self.keys, &self.key_ring, &tile, &place)?;
            self.fetch_tile(&self.values, &self.value_ring, &tile, &place)?;
        }
        self.k.commit_async();
        Ok(())
    }

    /// A tile of a group, and its place in the rings.
    fn tile(&self, group: &Expr, own: i64) -> Result<[Expr; 2], KernelError> {
        let of = |group: &Expr| plus(&times(group, self.form.arranged.tiles)?, &Expr::from(own));
        Ok([of(group)?, of(&self.k.remainder(group, STAGES)?)?])
    }

    /// The queries of a step along the row.
    fn queries(&self, step: i64) -> Result<Fragment<'k>, KernelError> {
        let at = behind(0, &[&Expr::from(0), &Expr::from(step)])?;
        fragment(self.k, &self.mma, &self.q_tile.local_tile((self.form.rows(), DEPTH), at)?, OF_A)
    }

    /// Adds a step along the row to the products of queries and the keys of a place.
    fn add_scores(
        &self,
        state: &ForwardState<'k>,
        scores: &Fragment<'k>,
        step: i64,
        place: &Expr,
    ) -> Result<(), KernelError> {
        let at = behind(0, &[&Expr::from(0), &Expr::from(step)])?;
        let tile = self.key_ring.stage(place)?.local_tile((KEYS, DEPTH), at)?;
        let queries = match state.queries.get(step as usize) {
            Some(kept) => kept,
            None => &self.queries(step)?,
        };
        let keys = fragment(self.k, &self.mma, &tile, OF_B)?;
        self.k.mma(&self.mma, scores, queries, &keys, scores)
    }

    /// The tiles of the groups of an iteration. The group that is farthest ahead is fetched
    /// meanwhile.
    fn groups(&self, state: &ForwardState<'k>, iteration: &Expr, is_masked: bool) -> Result<(), KernelError> {
        let k = self.k;
        for group in 0..STAGES {
            let group = plus(&times(iteration, STAGES)?, &Expr::from(group))?;
            k.wait_async(STAGES as u32 - 2);
            k.barrier();
            let Forward { tiles, copies_behind, .. } = self.form.arranged;
            let ahead = plus(&group, &Expr::from(STAGES - 1))?;
            if !copies_behind {
                self.fetch(&ahead)?;
            }
            for own in 0..tiles {
                let ahead = (copies_behind && own == 0).then_some(&ahead);
                self.step(state, self.tile(&group, own)?, is_masked, ahead)?;
            }
        }
        Ok(())
    }

    /// A tile of keys and values, which are at a place of the rings; a group is fetched meanwhile.
    fn step(
        &self,
        state: &ForwardState<'k>,
        [tile, place]: [Expr; 2],
        is_masked: bool,
        ahead: Option<&Expr>,
    ) -> Result<(), KernelError> {
        let k = self.k;
        let products = self.scores()?;
        products.clear();
        for step in 0..self.form.arranged.wide / DEPTH {
            self.add_scores(state, &products, step, &place)?;
        }
        // Logits of this tile.
        let mut scores = products.numbers()?;
        if is_masked {
            let limits = self.limits(&tile)?;
            let nothing = k.number(f32::NEG_INFINITY);
            for (index, score) in scores.iter_mut().enumerate() {
                let column = (index / 8 * 8 + index % 2) as i32;
                *score = k.number(column).le(limits[index / 2 % 4]).select(*score, nothing);
            }
        }
        let factor = k.number(self.form.logits.factor() as f32);
        let power = |at: usize, less: &[Num<'k>]| scores[at].multiply_add(factor, less[at / 2 % 4]).exp2();
        let less = state.less.numbers()?;
        let powers: Vec<Num<'k>> = (0..scores.len()).map(|at| power(at, &less)).collect();
        if let Some(group) = ahead {
            self.fetch(group)?;
        }
        let left = self.left(&powers)?;
        let own = self.of_rows(&powers, |a, b| a + b)?;
        let before = state.total.numbers()?;
        state.total.set(&before.iter().zip(&own).map(|(a, b)| *a + *b).collect::<Vec<_>>())?;
        // A power is above the slack, or a row sees its first key: then this is no sum up to that.
        let all = own.into_iter().reduce(|a, b| a + b).ok_or_else(over)?;
        let is_exact = all.le(k.number(SLACK.exp2() as f32));
        k.when(k.any_lane(is_exact.not()), || {
            let logits: Vec<Num<'k>> = scores.iter().map(|own| *own * factor).collect();
            let (zero, nothing, slack) = (k.number(0.0_f32), k.number(f32::NEG_INFINITY), k.number(SLACK as f32));
            let (mut old, mut bases, mut kept_less) = (Vec::new(), Vec::new(), Vec::new());
            for (found, less) in self.of_rows(&logits, Num::max)?.into_iter().zip(&less) {
                let found = [1, 2].into_iter().fold(found, |own, lanes| own.max(k.shuffle_xor(own, lanes)));
                let before = zero - *less;
                let greatest = found.gt(before + slack).select(found, before);
                // A row that saw nothing has powers of 0.
                let base = greatest.eq(nothing).select(zero, greatest);
                old.push((before - base).exp2());
                bases.push(zero - base);
                kept_less.push(zero - greatest);
            }
            let powers: Vec<Num<'k>> = (0..scores.len()).map(|at| power(at, &bases)).collect();
            let own = self.of_rows(&powers, |a, b| a + b)?;
            let total = before.iter().zip(&old).zip(own);
            state.total.set(&total.map(|((total, old), own)| total.multiply_add(*old, own)).collect::<Vec<_>>())?;
            for (to, from) in left.iter().zip(self.left(&powers)?) {
                to.assign(&from)?;
            }
            state.less.set(&kept_less)?;
            state.sums.iter().try_for_each(|own| {
                let numbers = own.numbers()?.into_iter().enumerate();
                own.set(&numbers.map(|(at, own)| own * old[at / 2 % ROWS_OF_THREAD]).collect::<Vec<_>>())
            })
        })?;
        let values = self.value_ring.stage(&place)?.select(&[1, 0])?;
        for (strip, sums) in (0..).zip(&state.sums) {
            for (step, powers) in (0..).zip(&left) {
                let at = behind(0, &[&Expr::from(strip), &Expr::from(step)])?;
                let own = fragment(k, &self.mma, &values.local_tile((STRIP, DEPTH), at)?, OF_B_TRANSPOSED)?;
                k.mma(&self.mma, sums, powers, &own, sums)?;
            }
        }
        Ok(())
    }

    /// Powers as the left operand: for each step along the keys two instructions' columns.
    fn left(&self, powers: &[Num<'k>]) -> Result<Vec<Fragment<'k>>, KernelError> {
        let step = |step: i64| {
            let own = self.k.register(Element::F32, ((2, 2, 2), 2, 1))?;
            let mut numbers = Vec::new();
            for m in 0..2 {
                for n in 0..2 {
                    let first = (16 * step + 8 * n + 4 * m) as usize;
                    numbers.extend_from_slice(&powers[first..first + 4]);
                }
            }
            own.set(&numbers)?;
            own.to(self.form.dense.heads.element)
        };
        (0..KEYS / DEPTH).map(step).collect()
    }

    /// Numbers of a tile that a thread has, combined for each of its rows.
    fn of_rows(
        &self,
        all: &[Num<'k>],
        combine: impl Fn(Num<'k>, Num<'k>) -> Num<'k>,
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let of_row = |row: usize| (0..KEYS as usize / 4).map(move |own| all[own / 2 * 8 + row * 2 + own % 2]);
        (0..ROWS_OF_THREAD).map(|row| of_row(row).reduce(&combine).ok_or_else(over)).collect()
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
        let row = thread.warp() * first_key.like(ROWS_OF_WARP as f64) + thread.row_of_warp();
        let limit = k.index(&times(&self.block, self.form.rows())?)? + row - first_key;
        // Rows of a thread: two of an instruction, of two instructions.
        Ok([0, 8, 16, 24].map(|below| limit + limit.like(below as f64)).to_vec())
    }

    /// Writes `o` and `lse`.
    fn write(&self, state: &ForwardState<'k>) -> Result<(), KernelError> {
        let (k, element) = (self.k, self.form.dense.heads.element);
        let (zero, nothing) = (k.number(0.0_f32), k.number(f32::NEG_INFINITY));
        let mut kept = Vec::new();
        let mut logarithms = Vec::new();
        let natural = k.number(std::f32::consts::LN_2);
        for (total, less) in state.total.numbers()?.into_iter().zip(state.less.numbers()?) {
            let total = [1, 2].into_iter().fold(total, |own, lanes| own + k.shuffle_xor(own, lanes));
            let is_empty = total.eq(zero);
            kept.push(is_empty.select(zero, total.recip()));
            logarithms.push(is_empty.select(nothing, (total.log2() - less) * natural));
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
            let held = format!("((4,8,{WARPS}),(2,2)):((0,1,{ROWS_OF_WARP}),(8,16))");
            self.lse.compose(&held)?.thread_part()?.store_predicated(&own)
        })
    }
}

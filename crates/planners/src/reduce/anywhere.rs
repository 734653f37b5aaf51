//! Reductions along any modes of any layout, by threads that iterate over the reduced axes.
//!
//! Law: the threads of a block are `(across, along)`: threads across have different results,
//! threads along share a result. A thread reads several vectors along the axis of stride 1, kept or
//! reduced, before it computes, and keeps one running number for each of its results. After the
//! loop, the threads along combine their numbers once; each thread then has one result and several
//! parts of it.
//!
//! If there are too few results for the multiprocessors of a GPU, the reduced elements are divided
//! into shares, one for each block, and each block writes its partial result. The last block to
//! finish combines them (`shares.rs`), or, if that is too much for one block, a second launch does.
//! So the order of additions is fixed, and the result is deterministic.
//!
//! A tensor in L2 is read in a microsecond or two; waiting for other blocks takes about as long.
//! Its columns are reduced in narrow strips, without shares, if that is estimated to be faster
//! (`shape.rs`).

mod in_chunks;
mod keys;
mod one_by_one;
mod shape;
mod shares;

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis as GridAxis;
use tilewright_kernel::{Build, Distributed, Distribution, Element, Kernel, KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use super::problem::{ReducedAxis, ReductionProblem};
use crate::error::PlanError;
use crate::law::{BLOCK_BYTES, SEVERAL_THREADS};
use crate::rows::{RowsPlan, placed};
use crate::terms::Statistic;
use crate::units::{VECTOR, div_up, gcd, widest};
use shape::{ReductionShape, ReductionWork};

/// How blocks iterate over a problem.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    machine: Machine,
    statistic: Statistic,
    element: Element,
    problem: ReductionProblem,
    vector: i64,
    /// The tensors begin at multiples of this number of elements.
    alignment: i64,
    /// Whether vectors go along a reduced axis.
    inner: bool,
    pub(super) shape: ReductionShape,
    /// Whether the last block combines the shares.
    pub(super) at_once: bool,
}

/// The results of a thread after parts are combined: the coordinate of a vector of results, the
/// selected results of the vector, and the index of the thread among those with the same results.
struct Seeker {
    own: Vec<Expr>,
    lanes: Vec<Expr>,
    along: Expr,
}

/// Axes in vectors: extents, and strides of the tensor.
fn extents(axes: &[ReducedAxis], vector: i64) -> Vec<i64> {
    let mut extents: Vec<i64> = axes.iter().map(|axis| axis.extent).collect();
    match extents.first_mut() {
        Some(first) => *first /= vector,
        None => extents.push(1),
    }
    extents
}

fn linear(terms: &[(&Expr, i64)]) -> Result<Expr, LayoutError> {
    let overflow = || LayoutError::Overflow { op: "place" };
    terms.iter().try_fold(Expr::from(0), |sum, (factor, times)| {
        Stride::times(*factor, &Expr::from(*times)).and_then(|term| Stride::plus(&sum, &term)).ok_or_else(overflow)
    })
}

impl Walk {
    /// The plan for a problem, of tensors that begin at multiples of `alignment` elements.
    ///
    /// Errors: there are more vectors or results than a launch takes.
    pub(super) fn new(
        machine: &Machine,
        statistic: Statistic,
        problem: &ReductionProblem,
        element: Element,
        alignment: i64,
    ) -> Result<Walk, PlanError> {
        let one = |axes: &[ReducedAxis]| axes.first().is_some_and(|axis| axis.stride == 1);
        let inner = one(&problem.reduced);
        let vectors =
            if inner { problem.reduced.first() } else { problem.kept.first().filter(|axis| axis.stride == 1) };
        let bytes = i64::from(element.bytes());
        // A vector begins at each coordinate of the other axes.
        let others = problem.kept.iter().chain(&problem.reduced).filter(|axis| axis.stride != 1);
        let begins = others.fold(alignment, |begins, axis| gcd(begins, axis.stride));
        let vector = vectors.map_or(1, |axis| widest(axis.extent, element, begins));
        let (count, results) = problem.sizes();
        let limit = i64::from(i32::MAX) / 2;
        let (reduced, places) = if inner { (count / vector, results) } else { (count, results / vector) };
        for (what, asked) in [("vectors of a result", reduced), ("results", places)] {
            if asked > limit {
                return Err(PlanError::TooLarge { what, asked, limit });
            }
        }
        if statistic == Statistic::ArgMaximum && count > i64::from(i32::MAX) {
            return Err(PlanError::TooLarge { what: "places of a result", asked: count, limit: i32::MAX.into() });
        }
        // Elements that are contiguous in memory go to adjacent threads.
        let beside = |axes: &[ReducedAxis]| axes.first().map_or(i64::MAX, |axis| axis.stride);
        let work = ReductionWork {
            reduced,
            places,
            vector: vector * bytes,
            bytes: count.saturating_mul(results).saturating_mul(bytes),
            inner,
            narrow: inner || beside(&problem.reduced) < beside(&problem.kept),
            sought: statistic == Statistic::ArgMaximum,
        };
        let shape = work.shape(machine);
        let left = statistic.kept(element).iter().map(|kept| i64::from(kept.bytes())).sum::<i64>();
        let at_once = shape.shares > 1 && left.saturating_mul(results).saturating_mul(shape.shares) <= BLOCK_BYTES;
        let problem = problem.clone();
        let machine = machine.clone();
        Ok(Walk { machine, statistic, element, problem, vector, alignment, inner, shape, at_once })
    }

    /// The number of values of a partial result: two for argmax.
    pub(super) fn kept(&self) -> usize {
        self.statistic.kept(self.element).len()
    }

    /// The plan, in a sentence.
    pub(super) fn plan(&self) -> String {
        let way = if self.inner { "reduced" } else { "kept" };
        let shares = match self.shape.shares {
            1 => String::new(),
            shares if self.at_once => format!("; {shares} shares of each result, which the last block combines"),
            shares => format!("; {shares} shares of each result, which a second launch combines"),
        };
        format!(
            "a block of {} threads for {} results, {} threads each; a thread loads {} vectors of {} along {way} modes at once{shares}",
            self.shape.threads,
            self.shape.across * self.each(),
            self.shape.along,
            self.shape.loads,
            self.vector,
        )
    }

    /// Results of a thread.
    fn each(&self) -> i64 {
        if self.inner { 1 } else { self.vector }
    }

    /// The tensor as (vector, kept axes, reduced axes).
    fn layout(&self) -> Result<Layout, LayoutError> {
        let mut modes = vec![(self.vector, 1)];
        for (axes, cut) in [(&self.problem.kept, !self.inner), (&self.problem.reduced, self.inner)] {
            if axes.is_empty() {
                modes.push((1, 0));
            }
            for (number, axis) in axes.iter().enumerate() {
                let by = if cut && number == 0 { self.vector } else { 1 };
                modes.push((axis.extent / by, axis.stride * by));
            }
        }
        Layout::of_modes(modes)
    }

    /// The kernel of the first launch, or of the only one.
    pub(super) fn kernel(&self) -> Result<Kernel, KernelError> {
        let (_, results) = self.problem.sizes();
        let kept = extents(&self.problem.kept, if self.inner { 1 } else { self.vector });
        let blocks = div_up(kept.iter().product(), self.shape.across);
        let (tile, threads) = (self.shape.across * self.each(), [self.shape.across, self.shape.along]);
        let layout = if self.inner {
            Layout::strided(((threads[1], threads[0]), 1), ((tile, 1), 0))?
        } else {
            Layout::strided(((threads[0], threads[1]), self.each()), ((self.each(), tile), 1))?
        };
        let held = Distribution::new((tile, self.shape.along), &layout)?;
        Kernel::build("reduce", |k| {
            let x = placed(k.tensor_of(self.element, "x", self.layout(), Role::Input)?, self.element, self.alignment)?;
            let outputs = self.outputs(k, results)?;
            k.threads(self.shape.threads)?;
            k.grid(GridAxis::X, blocks)?;
            let block = k.block_number(GridAxis::X);
            let share = if self.shape.shares > 1 {
                k.grid(GridAxis::Y, self.shape.shares)?;
                k.block_number(GridAxis::Y)
            } else {
                Expr::from(0)
            };
            let thread = k.thread()?;
            let (across, along) = if self.inner {
                let digits = k.coordinate(&thread, &[self.shape.along, self.shape.across])?;
                (digits[1].clone(), digits[0].clone())
            } else {
                let digits = k.coordinate(&thread, &threads)?;
                (digits[0].clone(), digits[1].clone())
            };
            let place = |across: &Expr| k.coordinate(&linear(&[(&block, self.shape.across), (across, 1)])?, &kept);
            let own = place(&across)?;
            let mut parts = self.walked(k, &x, &own, &share, &along)?;
            // The first chunk of the share, if chunks and numbers are packed into keys.
            let first = match self.has_keys() {
                true => Some(k.index(&linear(&[(&share, self.chunks_of_share())])?)?),
                false => None,
            };
            if let (Some(first), [numbers, chunks]) = (first, &parts[..]) {
                parts = vec![self.keys(k, numbers, chunks, first)?];
            }
            let mut parts = parts.iter().map(|part| part.distributed(&held)).collect::<Result<Vec<_>, _>>()?;
            let mut seeker = Seeker { own, lanes: (0..self.each()).map(Expr::from).collect(), along };
            if let Some(by_lanes) = self.distribution_by_lanes()? {
                parts = parts.iter().map(|part| part.convert(&by_lanes)).collect::<Result<_, _>>()?;
                let digits =
                    k.coordinate(&thread, &[self.shape.along / self.each(), self.each(), self.shape.across])?;
                let [along, lane, across] = &digits[..] else {
                    return Err(LayoutError::Overflow { op: "thread" }.into());
                };
                seeker = Seeker { own: place(across)?, lanes: vec![lane.clone()], along: along.clone() };
            }
            let mut all = match first {
                Some(first) => self.greatest_of_keys(&parts[0], first)?,
                None => self.statistic.gathered(k, &parts, &[1])?,
            };
            if self.in_chunks() && self.statistic == Statistic::ArgMaximum {
                all[1] = self.place_in_chunk(k, &x, [&all[0], &all[1]], &seeker)?;
            }
            if self.shape.shares == 1 {
                let (count, _) = self.problem.sizes();
                let result = self.statistic.result_of(&all, count as f64)?;
                all = vec![result.to(self.statistic.result(self.element))?];
            }
            for (output, part) in outputs.iter().zip(&all) {
                let at: Coord<Expr> = Tree::flat([Slot::At(block.clone()), Slot::At(share.clone())])?;
                output.local_tile((tile, 1), at)?.store_distributed_predicated(part)?;
            }
            match outputs.get(all.len()) {
                Some(y) => k.when_last(|| self.put_together(k, &outputs[..all.len()], y)),
                None => Ok(()),
            }
        })
    }

    /// The distribution of `(results, threads along)` for combining, if threads have several
    /// results: adjacent lanes get one result each, and as many parts of it as they had results.
    /// Otherwise each thread would combine all parts of all its results.
    fn distribution_by_lanes(&self) -> Result<Option<Distribution>, KernelError> {
        let (each, tile) = (self.each(), self.shape.across * self.each());
        if each == 1 || self.shape.along < each {
            return Ok(None);
        }
        let lanes = self.shape.along / each;
        let layout = Layout::strided(((lanes, tile), each), ((tile, 1), tile * lanes))?;
        Ok(Some(Distribution::new((tile, self.shape.along), &layout)?))
    }

    /// The outputs of the first launch: partial results if there are several shares, and results
    /// unless a second launch writes them.
    fn outputs<'k>(&self, k: &'k Build, results: i64) -> Result<Vec<View<'k>>, KernelError> {
        let mut outputs = Vec::new();
        if self.shape.shares > 1 {
            let text = self.parts_layout(results)?;
            for (element, name) in self.statistic.kept(self.element).into_iter().zip(PARTS) {
                outputs.push(k.tensor_of(element, name, &text, Role::Output)?);
            }
        }
        if self.shape.shares == 1 || self.at_once {
            let element = self.statistic.result(self.element);
            let tensor = k.tensor_of(element, "y", Layout::strided((results, 1), (1, results)), Role::Output)?;
            outputs.push(placed(tensor, element, self.alignment)?);
        }
        Ok(outputs)
    }

    /// The kernel of the second launch, which combines the shares.
    ///
    /// Errors: there are more shares than the registers of a block hold.
    pub(super) fn second(&self) -> Result<(Kernel, String), PlanError> {
        let (count, results) = self.problem.sizes();
        let statistic = self.statistic;
        let kept = statistic.kept(self.element);
        // All partial results have the same distribution: the vectors are as wide as the widest
        // type allows.
        let bytes = kept.iter().map(|element| i64::from(element.bytes())).max().unwrap_or(1);
        let alignment = self.alignment.min(VECTOR / bytes);
        let rows: Vec<RowsPlan> = kept
            .into_iter()
            .map(|element| {
                RowsPlan::in_registers(&self.machine, SEVERAL_THREADS, self.shape.shares, element, alignment)
            })
            .collect::<Result<_, _>>()?;
        let kernel = Kernel::build("reduce_shares", |k| {
            let matrices: Vec<_> = rows
                .iter()
                .zip(PARTS)
                .map(|(rows, name)| {
                    let text = Layout::strided((results, self.shape.shares), (self.shape.shares, 1))?;
                    k.tensor_of(rows.element(), name, &text, Role::Input)
                })
                .collect::<Result<_, _>>()?;
            let element = statistic.result(self.element);
            let y = k.tensor_of(element, "y", Layout::strided((results, 1), (1, results)), Role::Output)?;
            let y = placed(y, element, self.alignment)?;
            RowsPlan::state_resident_blocks(k, &rows.iter().collect::<Vec<_>>())?;
            let mut held = Vec::new();
            for (part, (rows, matrix)) in rows.iter().zip(&matrices).enumerate() {
                let loaded = rows.load_beside(k, matrix, Some(statistic.nothing(k, part, rows.element())))?;
                held.push(loaded.runs(k).collect::<Result<Vec<_>, _>>()?);
            }
            let runs = held.first().map_or(0, Vec::len);
            let of = |run: usize| held.iter().map(|part| part[run].clone()).collect::<Vec<_>>();
            let all = (1..runs).try_fold(of(0), |all, run| {
                let (a, b) = (all, of(run));
                let (a, b): (Vec<&Distributed<'_>>, Vec<_>) = (a.iter().collect(), b.iter().collect());
                k.combine_together(&a, &b, |a, b| Ok(statistic.combine(a, b)))
            })?;
            let all = statistic.gathered(k, &all, &[1, 2])?;
            let found = statistic.result_of(&all, count as f64)?;
            rows[0].store_results(k, &y, &found.to(element)?)
        })?;
        let plan = rows.first().map_or(String::new(), RowsPlan::plan);
        Ok((kernel, plan))
    }
}

/// The names of the partial results.
const PARTS: [&str; 2] = ["parts", "places"];

//! Any modes of any layout, by threads that go through the reduced axes in turn.
//!
//! Law: the threads of a block are `(across, along)`: those across have results of their own, those
//! along share them. A thread reads vectors along the axis of stride 1, kept or reduced, several
//! before it computes, and keeps one number for each of its results; those of all threads along
//! come together once, behind the loop.
//!
//! Where there are too few results for the processors of a large GPU, the reduced elements are cut
//! into shares, each for a block, which leaves what it kept; a second launch makes the results of
//! that. So the order in which numbers are added is fixed, and the result is the same each time.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis as GridAxis;
use tilewright_kernel::{
    Build, Distributed, Distribution, Element, Fragment, Kernel, KernelError, Num, Reduction, View,
};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, LayoutError, Slot, Stride, Tree};

use super::problem::{Axis, Problem};
use super::statistic::Statistic;
use crate::error::PlanError;
use crate::rows::{Rows, together};

/// Threads of a block.
pub(super) const THREADS: i64 = 512;
/// Vectors that a thread reads before it computes, and elements where vectors are short.
const LOADS: i64 = 4;
const MOST_LOADS: i64 = 16;
/// The widest access of a thread, in bytes.
const VECTOR: i64 = 16;
/// Bytes of neighbours that a block reads together where results lie side by side.
const STRIP: i64 = 256;
/// Enough blocks for every processor of a large GPU, and how many there are where they have shares.
const ENOUGH: i64 = 256;
const SHARED: i64 = 2048;

/// How a block goes through a problem.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    statistic: Statistic,
    element: Element,
    problem: Problem,
    vector: i64,
    /// Whether vectors go along a reduced axis.
    inner: bool,
    across: i64,
    along: i64,
    loads: i64,
    steps: i64,
    pub(super) shares: i64,
}

/// Axes in vectors: extents, and the strides of the tensor.
fn extents(axes: &[Axis], vector: i64) -> Vec<i64> {
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

fn up(number: i64) -> i64 {
    (number.max(1) as u64).next_power_of_two() as i64
}

fn over(number: i64, by: i64) -> i64 {
    (number + by - 1) / by
}

impl Walk {
    /// The plan for a problem.
    ///
    /// Errors: there are more vectors or results than a launch takes.
    pub(super) fn new(statistic: Statistic, problem: &Problem, element: Element) -> Result<Walk, PlanError> {
        let one = |axes: &[Axis]| axes.first().is_some_and(|axis| axis.stride == 1);
        let inner = one(&problem.reduced);
        let vectors =
            if inner { problem.reduced.first() } else { problem.kept.first().filter(|axis| axis.stride == 1) };
        let bytes = i64::from(element.bytes());
        let mut vector = if vectors.is_some() { VECTOR / bytes } else { 1 };
        while vectors.is_some_and(|axis| axis.extent % vector != 0) {
            vector /= 2;
        }
        let (count, results) = problem.sizes();
        let limit = i64::from(i32::MAX) / 2;
        let (turns, places) = if inner { (count / vector, results) } else { (count, results / vector) };
        for (what, asked) in [("vectors of a result", turns), ("results", places)] {
            if asked > limit {
                return Err(PlanError::TooLarge { what, asked, limit });
            }
        }
        if statistic == Statistic::ArgMaximum && count > i64::from(i32::MAX) {
            return Err(PlanError::TooLarge { what: "places of a result", asked: count, limit: i32::MAX.into() });
        }
        let loads = (LOADS * VECTOR / (vector * bytes)).min(MOST_LOADS);
        // Neighbours in memory go to neighbours among threads.
        let beside = |axes: &[Axis]| axes.first().map_or(i64::MAX, |axis| axis.stride);
        let narrow = inner || beside(&problem.reduced) < beside(&problem.kept);
        let (across, along) = if narrow {
            let along = up(over(turns, loads)).min(THREADS);
            (THREADS / along, along)
        } else {
            let lanes = up(places).min((STRIP / (vector * bytes)).min(32));
            let along = (THREADS / lanes).min(up(over(turns, loads)));
            (THREADS / along, along)
        };
        let all = over(turns, along * loads);
        let blocks = over(places, across);
        // Results that lie side by side are looked for again at the end of each share.
        let wanted = if statistic == Statistic::ArgMaximum && !narrow { ENOUGH } else { SHARED };
        let shares = if blocks >= ENOUGH { 1 } else { over(wanted, blocks).min(all) };
        let steps = over(all, shares);
        let shares = over(all, steps);
        let problem = problem.clone();
        Ok(Walk { statistic, element, problem, vector, inner, across, along, loads, steps, shares })
    }

    /// What was chosen, in a sentence.
    pub(super) fn plan(&self) -> String {
        let way = if self.inner { "reduced" } else { "side by side" };
        let shares = match self.shares {
            1 => String::new(),
            shares => format!("; {shares} shares of each, which a second launch puts together"),
        };
        format!(
            "a block of {THREADS} threads for {} results, {} threads each; {} vectors of {} {way} at once{shares}",
            self.across * self.each(),
            self.along,
            self.loads,
            self.vector,
        )
    }

    /// Results of a thread.
    fn each(&self) -> i64 {
        if self.inner { 1 } else { self.vector }
    }

    /// The tensor as (vector, kept axes, reduced axes).
    fn text(&self) -> String {
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
        let list = |each: &dyn Fn(&(i64, i64)) -> i64| {
            modes.iter().map(|mode| each(mode).to_string()).collect::<Vec<_>>().join(",")
        };
        format!("({}):({})", list(&|mode| mode.0), list(&|mode| mode.1))
    }

    /// The kernel of the first launch, or of the only one.
    pub(super) fn kernel(&self) -> Result<Kernel, KernelError> {
        let (_, results) = self.problem.sizes();
        let kept = extents(&self.problem.kept, if self.inner { 1 } else { self.vector });
        let blocks = over(kept.iter().product(), self.across);
        let (tile, threads) = (self.across * self.each(), [self.across, self.along]);
        let layout = if self.inner {
            format!("(({},{}),1):(({tile},1),0)", threads[1], threads[0])
        } else {
            format!("(({},{}),{}):(({},{tile}),1)", threads[0], threads[1], self.each(), self.each())
        };
        let held = Distribution::new(&format!("({tile},{})", self.along), &layout)?;
        Kernel::build("reduce", |k| {
            let x = k.tensor_of(self.element, "x", &self.text(), Role::Input)?;
            let outputs = self.outputs(k, results)?;
            k.threads(THREADS)?;
            k.grid(GridAxis::X, &blocks.to_string())?;
            let block = k.block_number(GridAxis::X);
            let share = if self.shares > 1 {
                k.grid(GridAxis::Y, &self.shares.to_string())?;
                k.block_number(GridAxis::Y)
            } else {
                Expr::from(0)
            };
            let thread = k.thread()?;
            let (across, along) = if self.inner {
                let digits = k.coordinate(&thread, &[self.along, self.across])?;
                (digits[1].clone(), digits[0].clone())
            } else {
                let digits = k.coordinate(&thread, &threads)?;
                (digits[0].clone(), digits[1].clone())
            };
            let own = k.coordinate(&linear(&[(&block, self.across), (&across, 1)])?, &kept)?;
            let parts = self.walked(k, &x, &own, &share, &along)?;
            let parts = parts.iter().map(|part| part.distributed(&held)).collect::<Result<Vec<_>, _>>()?;
            let mut all = self.statistic.gathered(k, &parts, &[1])?;
            if self.in_chunks() && self.statistic == Statistic::ArgMaximum {
                all[1] = self.place_in_chunk(k, &x, [&all[0], &all[1]], &own, &along)?;
            }
            if self.shares == 1 {
                let (count, _) = self.problem.sizes();
                let result = self.statistic.result_of(&all, count as f64)?;
                all = vec![result.to(self.statistic.result(self.element))?];
            }
            for (output, part) in outputs.iter().zip(&all) {
                let at: Coord<Expr> = Tree::flat([Slot::At(block.clone()), Slot::At(share.clone())])?;
                output.local_tile(&format!("({tile},1)"), at)?.store_distributed_predicated(part)?;
            }
            Ok(())
        })
    }

    /// The results, or what is left of each share.
    fn outputs<'k>(&self, k: &'k Build, results: i64) -> Result<Vec<View<'k>>, KernelError> {
        if self.shares == 1 {
            let y = (self.statistic.result(self.element), "y");
            return Ok(vec![k.tensor_of(y.0, y.1, &format!("({results},1):(1,{results})"), Role::Output)?]);
        }
        let parts = self.statistic.kept().iter().zip(PARTS);
        let text = format!("({results},{0}):({0},1)", self.shares);
        parts.map(|(element, name)| k.tensor_of(*element, name, &text, Role::Output)).collect()
    }

    /// What a thread keeps of all that it reads.
    fn walked<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        own: &[Expr],
        share: &Expr,
        along: &Expr,
    ) -> Result<Vec<Fragment<'k>>, KernelError> {
        let statistic = self.statistic;
        let reduced = extents(&self.problem.reduced, if self.inner { self.vector } else { 1 });
        let turns: i64 = reduced.iter().product();
        let whole = turns % (self.along * self.loads * self.steps) == 0 || statistic.neutral() == 0.0;
        let kept: Vec<Fragment<'k>> = statistic
            .kept()
            .iter()
            .enumerate()
            .map(|(part, element)| {
                let fragment = k.register(*element, &self.each().to_string())?;
                fragment.fill(statistic.nothing(k, part))?;
                Ok(fragment)
            })
            .collect::<Result<_, KernelError>>()?;
        if self.in_chunks() {
            self.chunks(k, x, own, [share, along], &kept)?;
            return Ok(kept);
        }
        k.range(self.steps, |step| {
            let first = linear(&[(share, self.steps), (&step, 1)])?;
            let mut read = Vec::new();
            for load in 0..self.loads {
                let before = (Expr::from(load), self.along);
                let number = linear(&[(&first, self.along * self.loads), (&before.0, before.1), (along, 1)])?;
                let digits = k.coordinate(&number, &reduced)?;
                let slots = own.iter().chain(&digits).cloned().map(Slot::At);
                let at: Coord<Expr> = Tree::flat(std::iter::once(Slot::All).chain(slots))?;
                let vector = x.slice(at)?.load_predicated()?;
                let exists =
                    if whole { None } else { Some(k.index(&number)?.lt(k.number_of(Element::I32, turns as f64))) };
                read.push((vector, exists, self.place(k, &digits)?));
            }
            let mut now: Vec<Vec<Num<'k>>> = kept.iter().map(Fragment::numbers).collect::<Result<_, _>>()?;
            let at = |now: &[Vec<Num<'k>>], result: usize| now.iter().map(|part| part[result]).collect::<Vec<_>>();
            let counts = |(number, exists): (Num<'k>, Option<tilewright_kernel::Flag<'k>>)| {
                let wide = number.to(Element::F32);
                exists.map_or(wide, |exists| exists.select(wide, wide.like(statistic.neutral())))
            };
            let step = if self.inner { self.problem.reduced.first().map_or(0, |axis| axis.place) } else { 0 };
            for result in 0..self.each() as usize {
                let mut sum: Option<Vec<Num<'k>>> = None;
                // The numbers of this turn, one after another, which takes few registers.
                for (vector, exists, place) in &read {
                    let numbers = vector.numbers()?;
                    let lanes = if self.inner { 0..numbers.len() } else { result..result + 1 };
                    for lane in lanes {
                        let further = if self.inner { lane as i64 * step } else { 0 };
                        let place = place.map(|place| place + k.number(further as i32));
                        let x = counts((numbers[lane], *exists));
                        sum = Some(match sum {
                            None => statistic.part(x, place),
                            Some(sum) if statistic == Statistic::ArgMaximum => {
                                statistic.combine(&sum, &statistic.part(x, place))
                            }
                            Some(sum) => statistic.add(&sum, x, place),
                        });
                    }
                }
                // By themselves first, so that sums stay short.
                let after = sum.map(|sum| statistic.combine(&at(&now, result), &sum)).unwrap_or_default();
                now.iter_mut().zip(after).for_each(|(part, number)| part[result] = number);
            }
            kept.iter().zip(&now).try_for_each(|(kept, now)| kept.set(now))
        })?;
        Ok(kept)
    }

    /// Whether several elements are compared before a place is: their places follow each other.
    fn in_chunks(&self) -> bool {
        match self.statistic {
            Statistic::Maximum => true,
            Statistic::ArgMaximum => self.problem.ascends(),
            _ => false,
        }
    }

    /// The greatest numbers by chunks, and the numbers of these chunks where places are asked for:
    /// a chunk is a vector along the reduced elements, or neighbours along them of each result.
    /// What would lie past the last is the last again, which changes nothing: where it is found
    /// first, its chunk has a lesser number.
    fn chunks<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        own: &[Expr],
        [share, along]: [&Expr; 2],
        kept: &[Fragment<'k>],
    ) -> Result<(), KernelError> {
        let reduced = extents(&self.problem.reduced, if self.inner { self.vector } else { 1 });
        let turns: i64 = reduced.iter().product();
        let whole = turns % (self.along * self.loads * self.steps) == 0;
        // Two elements of 16 bits are compared at once.
        let pair = self.vector.min(2);
        let pairs = self.vector / pair;
        let held = Distribution::new(
            &format!("({THREADS},{pairs},{pair})"),
            &format!("({THREADS},({pair},{pairs})):(1,({},{THREADS}))", THREADS * pairs),
        )?;
        k.range(self.steps, |step| {
            let first = linear(&[(share, self.steps), (&step, 1)])?;
            let mut read = Vec::new();
            for load in 0..self.loads {
                let number = if self.inner {
                    linear(&[(&first, self.along * self.loads), (&Expr::from(load), self.along), (along, 1)])?
                } else {
                    let chunk = linear(&[(&first, self.along), (along, 1)])?;
                    linear(&[(&chunk, self.loads), (&Expr::from(load), 1)])?
                };
                let number = if whole { number } else { k.clamped(&number, turns)? };
                let digits = k.coordinate(&number, &reduced)?;
                let slots = own.iter().chain(&digits).cloned().map(Slot::At);
                let at: Coord<Expr> = Tree::flat(std::iter::once(Slot::All).chain(slots))?;
                read.push((x.slice(at)?.load_predicated()?.distributed(&held)?, number));
            }
            let mut now: Vec<Vec<Num<'k>>> = kept.iter().map(Fragment::numbers).collect::<Result<_, _>>()?;
            let with = |before: &[Num<'k>], most: Num<'k>, chunk: Num<'k>| {
                let place = (self.statistic == Statistic::ArgMaximum).then_some(chunk);
                self.statistic.add(before, most, place)
            };
            if self.inner && self.statistic == Statistic::ArgMaximum {
                for (tile, number) in &read {
                    let before: Vec<Num<'k>> = now.iter().map(|part| part[0]).collect();
                    let after = with(&before, greatest(tile)?, k.index(number)?);
                    now.iter_mut().zip(after).for_each(|(part, number)| part[0] = number);
                }
            } else {
                let tiles = read.iter().map(|(tile, _)| Ok(tile.clone()));
                let all = together(tiles, Reduction::Maximum)?;
                let chunk = k.index(&linear(&[(&first, self.along), (along, 1)])?)?;
                let most =
                    if self.inner { vec![greatest(&all)?] } else { all.to(Element::F32)?.fragment().numbers()? };
                for (result, most) in most.into_iter().enumerate() {
                    let before: Vec<Num<'k>> = now.iter().map(|part| part[result]).collect();
                    let after = with(&before, most, chunk);
                    now.iter_mut().zip(after).for_each(|(part, number)| part[result] = number);
                }
            }
            kept.iter().zip(&now).try_for_each(|(kept, now)| kept.set(now))
        })
    }

    /// The place of the first element of a chunk that is the greatest, which one thread of each
    /// result reads again.
    fn place_in_chunk<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        [greatest, chunks]: [&Distributed<'k>; 2],
        own: &[Expr],
        along: &Expr,
    ) -> Result<Distributed<'k>, KernelError> {
        let reduced = extents(&self.problem.reduced, if self.inner { self.vector } else { 1 });
        let (greatest, numbers) = (greatest.fragment().numbers()?, chunks.fragment().numbers()?);
        let places = k.register(Element::I32, &numbers.len().to_string())?;
        places.fill(k.number(0))?;
        let at = |lane: Slot<Expr>, number: Num<'k>| -> Result<Coord<Expr>, KernelError> {
            let digits = k.coordinate(&k.index_of(number)?, &reduced)?;
            Ok(Tree::flat(std::iter::once(lane).chain(own.iter().chain(&digits).cloned().map(Slot::At)))?)
        };
        k.when(k.index(along)?.eq(k.number(0)), || {
            let mut found = Vec::new();
            for (result, (greatest, chunk)) in greatest.iter().zip(&numbers).enumerate() {
                let (mut elements, step) = (Vec::new(), if self.inner { self.vector } else { self.loads });
                let first = *chunk * k.number(step as i32);
                if self.inner {
                    elements = x.slice(at(Slot::All, *chunk)?)?.load_predicated()?.numbers()?;
                } else {
                    for load in 0..self.loads {
                        let number = first + k.number(load as i32);
                        let one = x.slice(at(Slot::At(Expr::from(result as i64)), number)?)?;
                        elements.push(one.load_predicated()?.numbers()?[0]);
                    }
                }
                let mut place = first;
                for (number, x) in elements.iter().enumerate().rev() {
                    let here = first + k.number(number as i32);
                    place = x.to(Element::F32).eq(*greatest).select(here, place);
                }
                found.push(place);
            }
            places.set(&found)
        })?;
        // The thread that stores a result has read it.
        places.distributed(chunks.distribution())
    }

    /// The place of what is at a coordinate of the reduced axes, where it is asked for.
    fn place<'k>(&self, k: &'k Build, digits: &[Expr]) -> Result<Option<Num<'k>>, KernelError> {
        if self.statistic != Statistic::ArgMaximum {
            return Ok(None);
        }
        let steps = self.problem.reduced.iter().enumerate().map(|(number, axis)| {
            let by = if self.inner && number == 0 { self.vector } else { 1 };
            axis.place * by
        });
        let terms: Vec<(&Expr, i64)> = digits.iter().zip(steps).collect();
        Ok(Some(k.index(&linear(&terms)?)?))
    }

    /// The kernel of the second launch, which puts the shares together.
    ///
    /// Errors: there are more shares than the registers of a block hold.
    pub(super) fn second(&self) -> Result<(Kernel, String), PlanError> {
        let (count, results) = self.problem.sizes();
        let statistic = self.statistic;
        let rows: Vec<Rows> = statistic
            .kept()
            .iter()
            .map(|element| Rows::in_registers(THREADS, self.shares, *element))
            .collect::<Result<_, _>>()?;
        let kernel = Kernel::build("reduce_shares", |k| {
            let matrices: Vec<_> = rows
                .iter()
                .zip(PARTS)
                .map(|(rows, name)| {
                    let text = format!("({results},{0}):({0},1)", self.shares);
                    k.tensor_of(rows.element(), name, &text, Role::Input)
                })
                .collect::<Result<_, _>>()?;
            let element = statistic.result(self.element);
            let y = k.tensor_of(element, "y", &format!("({results},1):(1,{results})"), Role::Output)?;
            let mut held = Vec::new();
            for (part, (rows, matrix)) in rows.iter().zip(&matrices).enumerate() {
                let loaded = rows.load(k, matrix, Some(statistic.nothing(k, part)))?;
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
        let plan = rows.first().map_or(String::new(), Rows::plan);
        Ok((kernel, plan))
    }
}

/// The greatest number of a thread in a tile `(T,P,2)`.
fn greatest<'k>(tile: &Distributed<'k>) -> Result<Num<'k>, KernelError> {
    let pairs = together(tile.split(1)?.into_iter().map(Ok), Reduction::Maximum)?;
    let numbers = pairs.to(Element::F32)?.fragment().numbers()?;
    Ok(numbers[1..].iter().fold(numbers[0], |most, x| most.max(*x)))
}

/// The names of what is left of shares.
const PARTS: [&str; 2] = ["parts", "places"];

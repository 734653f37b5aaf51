//! Windows: copies a tile from shared memory to the destination.
//!
//! Law: in each run of the destination, the chunks that begin in the window of this block are
//! written whole. Elements before the first chunk of the run and after the last one are written one
//! by one, by the block that holds them.

use tilewright_kernel::{Flag, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Tree};

use super::super::share::ThreadIteration;
use super::super::sum::{Sum, both, plus, times};
use super::{Writer, load, store};
use crate::fitted::WINDOWS;
use crate::units::div_up;

/// A run of the destination.
struct Column<'k> {
    begin: Sum,
    /// The index of its first whole chunk, and the number of elements before that.
    first: Expr,
    skew: Expr,
    /// Its coordinates.
    digits: Vec<(usize, Expr)>,
    exists: Option<Flag<'k>>,
}

impl<'k> Writer<'k, '_> {
    /// The run of the destination at these coordinates; `terms` are the terms of its sums.
    fn column(
        &self,
        digits: Vec<(usize, Expr)>,
        terms: Vec<(Expr, i64)>,
        further: i64,
    ) -> Result<Column<'k>, KernelError> {
        let (k, plan, axes) = (self.k, self.plan, &self.sides.axes);
        let mut begin = self.origin(|axis| axis.destination, self.sides.bases.1);
        begin.terms.extend(terms);
        begin.base += further;
        let mut exists = None;
        for (axis, digit) in &digits {
            let at = plus(&self.starts[*axis], digit)?;
            exists = both(exists, k.unless_less(&at, &Expr::from(axes[*axis].extent))?);
        }
        let (first, skew) = match plan.skewed {
            true => {
                let (first, skew) = begin.rounded_up(k, plan.align)?;
                (times(&first, plan.align / plan.chunk)?, skew)
            }
            false => (begin.divided(k, plan.chunk)?.0, Expr::from(0)),
        };
        Ok(Column { begin, first, skew, digits, exists })
    }

    /// The number of elements of a run of the destination from the origin of the tile on.
    fn left(&self) -> Result<Expr, KernelError> {
        let (plan, axes) = (self.plan, &self.sides.axes);
        let Some((last, inner)) = plan.tile.destination.split_last() else { return Ok(Expr::from(1)) };
        let unit: i64 = inner.iter().map(|axis| axes[*axis].extent).product();
        plus(&times(&self.starts[*last], -unit)?, &Expr::from(unit * axes[*last].extent))
    }

    /// Whether runs of the destination are cut into windows.
    fn is_cut(&self) -> bool {
        let last = self.plan.tile.destination.last();
        last.is_some_and(|last| self.plan.tile.extents[*last] < self.sides.axes[*last].extent)
    }

    /// The position in the tile of an element of a run of the destination.
    fn place_along(&self, column: &Column<'k>, at: &Sum) -> Result<Expr, KernelError> {
        let (k, plan, axes) = (self.k, self.plan, &self.sides.axes);
        let list = &plan.tile.destination;
        let mut further = axes[list[0]].source;
        let even = list.iter().all(|axis| {
            let same = (axes[*axis].source - further) % plan.word == 0;
            further *= plan.read[*axis];
            same
        });
        if list.iter().any(|axis| plan.tile.source.contains(axis)) || plan.phased && !even {
            let extents: Vec<i64> = list.iter().map(|axis| plan.read[*axis]).collect();
            let digits = k.coordinate(&at.expr()?, &extents)?;
            let digits: Vec<(usize, Expr)> = list.iter().copied().zip(digits).chain(column.digits.clone()).collect();
            return self.place(&digits);
        }
        // Consecutive rows have equal distances.
        let scaled = |by: i64| at.terms.iter().map(move |(index, step)| (index.clone(), step * by));
        let row = plan.pitch * plan.word;
        let mut sum = Sum { base: at.base * row, terms: scaled(row).collect() };
        sum.terms.extend(column.digits.iter().map(|(axis, digit)| (digit.clone(), plan.places[*axis])));
        let mut place = sum.expr()?;
        if plan.padded {
            place = plus(&place, &times(&at.divided(k, plan.chunk)?.0, plan.word)?)?;
        }
        if plan.phased {
            let step = axes[list[0]].source.rem_euclid(plan.word);
            let mut begin = self.origin(|axis| axis.source, self.sides.bases.0 + at.base * step);
            begin.terms.extend(scaled(step));
            let beside = column.digits.iter().filter(|(axis, _)| plan.tile.beside.contains(axis));
            begin.terms.extend(beside.map(|(axis, digit)| (digit.clone(), axes[*axis].source)));
            place = plus(&place, &begin.divided(k, plan.word)?.1)?;
        }
        Ok(place)
    }

    /// The positions in the tile of the elements of a chunk.
    fn places(&self, column: &Column<'k>, number: &Expr) -> Result<Vec<Expr>, KernelError> {
        let (k, plan) = (self.k, self.plan);
        let (list, chunk) = (&plan.tile.destination, plan.chunk);
        let at = |element| Sum { base: element, terms: vec![(column.skew.clone(), 1), (number.clone(), chunk)] };
        if plan.front == 0 {
            return (0..chunk).map(|element| self.place_along(column, &at(element))).collect();
        }
        // A chunk continues past the end of the first axis at most once, so two positions are
        // computed and each element is a constant away from one of them.
        let extents: Vec<i64> = list.iter().map(|axis| plan.read[*axis]).collect();
        let (first, extent, step) = (at(0).expr()?, extents[0], plan.places[list[0]]);
        let (begin, row) = (k.remainder(&first, extent)?, k.quotient(&first, extent)?);
        let place = |begin: Expr, row: &Expr| {
            let others = list[1..].iter().copied().zip(k.coordinate(row, &extents[1..])?);
            let digits: Vec<(usize, Expr)> =
                [(list[0], begin)].into_iter().chain(others).chain(column.digits.clone()).collect();
            self.place(&digits)
        };
        let left = plus(&times(&begin, -1)?, &Expr::from(extent))?;
        let (here, next) = (place(begin, &row)?, place(Expr::from(0), &plus(&row, &Expr::from(1))?)?);
        let next = plus(&next, &times(&k.clamped(&left, chunk + 1)?, -step)?)?;
        let each = (0..chunk).map(|element| {
            let from = match k.unless_less(&Expr::from(element), &left)? {
                Some(inside) => k.either(inside, &here, &next)?,
                None => here.clone(),
            };
            plus(&from, &Expr::from(element * step))
        });
        each.collect()
    }

    /// An element of the tile.
    fn element(&self, place: &Expr, condition: Option<Flag<'k>>) -> Result<Num<'k>, KernelError> {
        let number = load(self.k, &self.elements.at(place)?, condition)?.numbers()?[0];
        Ok(if self.sides.source == self.sides.destination { number } else { number.to(self.sides.destination) })
    }

    /// The run of the destination of a thread in an iteration.
    fn column_of(&self, iteration: &ThreadIteration) -> Result<Column<'k>, KernelError> {
        let (list, axes) = (&self.plan.targets.axes, &self.sides.axes);
        let mut digits = Vec::new();
        for (number, axis) in list.iter().enumerate() {
            digits.push((*axis, iteration.at(number)?));
        }
        let (terms, further) = iteration.terms(|number| axes[list[number]].destination);
        self.column(digits, terms, further)
    }

    /// Whole chunks of the destination.
    pub(super) fn write(&self, destination: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let chunk = plan.chunk;
        let count = sides.reach.1 / chunk;
        if count == 0 {
            return Ok(());
        }
        let destination = destination.recast(sides.destination, Layout::strided((chunk, count), (1, chunk)))?;
        let window = plan.window();
        let chunks = div_up(window, chunk);
        let own = k.remainder(&self.thread, plan.along)?;
        let group = k.quotient(&self.thread, plan.along)?;
        let left = self.left()?;
        // Whether a chunk begins in the window and ends in the run.
        let whole = |column: &Column<'k>, given: &Expr| -> Result<Option<Flag<'k>>, KernelError> {
            let begin = plus(&column.skew, &times(given, chunk)?)?;
            let mut inside = k.unless_less(given, &Expr::from(chunks))?;
            if window % chunk != 0 {
                inside = both(inside, k.unless_less(&begin, &Expr::from(window))?);
            }
            Ok(both(inside, k.unless_less(&plus(&begin, &Expr::from(chunk - 1))?, &left)?))
        };
        // Whether a run is inside the tile, in case iterations go past it.
        let there = |iteration: &ThreadIteration| -> Result<Option<Flag<'k>>, KernelError> {
            let inside = plan.targets.inside(k, iteration)?;
            let Some(last) = iteration.digits.len().checked_sub(1) else { return Ok(inside) };
            let extent = plan.read[plan.targets.axes[last]];
            Ok(both(inside, k.unless_less(&iteration.at(last)?, &Expr::from(extent))?))
        };
        let moved = |column: &Column<'k>, number: &Expr| -> Result<(), KernelError> {
            let places = self.places(column, number)?;
            let numbers: Result<Vec<Num<'_>>, KernelError> =
                places.iter().map(|place| self.element(place, None)).collect();
            let numbers = numbers?;
            let values = k.register(sides.destination, &chunk.to_string())?;
            values.set(&numbers)?;
            let slot: Coord<Expr> = Tree::flat([Slot::All, Slot::At(plus(&column.first, number)?)])?;
            store(k, &destination.slice(slot)?, column.exists, &values)
        };
        let under = |condition: Option<Flag<'k>>, body: &dyn Fn() -> Result<(), KernelError>| match condition {
            Some(condition) => k.when(condition, body),
            None => body(),
        };
        let each = |iterations: Vec<ThreadIteration>, given: &Expr, number: &Expr| -> Result<(), KernelError> {
            let each = |common: bool| {
                iterations.iter().try_for_each(|iteration| {
                    let column = self.column_of(iteration)?;
                    let whole = if common { None } else { whole(&column, given)? };
                    under(both(whole, there(iteration)?), &|| moved(&column, number))
                })
            };
            // If the plan is `alike`, one condition holds for the chunks of all iterations.
            match iterations.first().filter(|_| plan.alike) {
                Some(first) => under(whole(&self.column_of(first)?, given)?, &|| each(true)),
                None => each(false),
            }
        };
        let step = |step: Expr| -> Result<(), KernelError> {
            let given = plus(&own, &times(&step, plan.along)?)?;
            let number = k.clamped(&given, chunks)?;
            plan.targets.each(k, &group, |iterations| each(iterations, &given, &number))
        };
        if plan.steps * plan.targets.count() * chunk <= WINDOWS.unrolled {
            return (0..plan.steps).try_for_each(|number| step(Expr::from(number)));
        }
        k.range(plan.steps, step)
    }

    /// Elements before the first chunk of a run and after its last chunk, one by one.
    pub(super) fn write_ends(&self, destination: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let (chunk, window) = (plan.chunk, plan.window());
        let Some(outer) = plan.tile.destination.last().copied() else { return Ok(()) };
        let length: i64 = plan.tile.destination.iter().map(|axis| sides.axes[*axis].extent).product();
        if !plan.skewed && length % chunk == 0 {
            return Ok(());
        }
        let left = self.left()?;
        let columns = &plan.targets.axes;
        let extents: Vec<i64> = columns.iter().map(|axis| plan.read[*axis]).collect();
        let runs: i64 = extents.iter().product();
        let most = if plan.skewed { plan.align } else { chunk };
        let iterations = div_up(runs * most, plan.threads);
        let cut = self.is_cut();
        let ends = |iteration: Expr| -> Result<(), KernelError> {
            let number = plus(&times(&iteration, plan.threads)?, &self.thread)?;
            let (element, run) = (k.remainder(&number, most)?, k.quotient(&number, most)?);
            let some = k.unless_less(&run, &Expr::from(runs))?;
            let digits = if columns.is_empty() { Vec::new() } else { k.coordinate(&run, &extents)? };
            let mut digits: Vec<(usize, Expr)> = columns.iter().copied().zip(digits).collect();
            if let Some((axis, digit)) = digits.last_mut() {
                *digit = k.clamped(digit, plan.read[*axis])?;
            }
            let terms = digits.iter().map(|(axis, digit)| (digit.clone(), sides.axes[*axis].destination)).collect();
            let column = self.column(digits, terms, 0)?;
            let exists = both(some, column.exists);
            let one = |at: Expr, condition: Option<Flag<'k>>| -> Result<(), KernelError> {
                let condition = both(condition, k.unless_less(&at, &left)?);
                let values = k.register(sides.destination, "1")?;
                let place = self.place_along(&column, &Sum { base: 0, terms: vec![(at.clone(), 1)] })?;
                values.set(&[self.element(&place, condition)?])?;
                let target = destination.at(&plus(&column.begin.expr()?, &at)?)?;
                store(k, &target, condition, &values)
            };
            let skew = &column.skew;
            // The elements before the first chunk, in the first window.
            if plan.skewed {
                let first = k.unless_less(&self.starts[outer], &Expr::from(1))?;
                let before = k.unless_less(&element, skew)?;
                one(element.clone(), both(both(exists, first), before))?;
            }
            // The number of elements after the last whole chunk; numbers that exceed a window may
            // be clamped.
            let left = if cut { k.clamped(&left, window + most + chunk)? } else { left.clone() };
            let chunks = plus(&plus(&left, &times(skew, -1)?)?, &Expr::from(most))?;
            let chunks = k.quotient(&chunks, chunk)?;
            let some = k.unless_less(&Expr::from(most / chunk - 1), &chunks)?;
            let last = plus(&times(&chunks, chunk)?, &Expr::from(-most))?;
            let behind = plus(&last, skew)?;
            // A block writes the chunks of its window if these are whole; otherwise it writes the
            // chunks that begin in the window.
            let mine = if window % chunk == 0 { &last } else { &behind };
            let mine = if cut { k.unless_less(mine, &Expr::from(window))? } else { None };
            let behind = plus(&behind, &element)?;
            let some = both(some, k.unless_less(&element, &Expr::from(chunk))?);
            let some = both(some, k.unless_less(&behind, &left)?);
            one(k.clamped(&behind, length.min(window + most + chunk))?, both(both(exists, some), mine))
        };
        let all = || if iterations == 1 { ends(Expr::from(0)) } else { k.range(iterations, ends) };
        if !cut {
            return all();
        }
        // Only the first and last blocks have such elements.
        let inner = k.unless_less(&Expr::from(0), &self.starts[outer])?;
        let far = k.unless_less(&Expr::from(window + most + chunk), &left)?;
        match both(inner, far) {
            Some(middle) => k.choose(middle, || Ok(()), all),
            None => all(),
        }
    }
}

//! Windows: copies a tile from the source to shared memory.
//!
//! Law: element `e` of row `r` of the tile is then at `place(r) + phase(r) + e`, where `phase(r)`
//! is the number of elements of the first word of the row that precede the row.

use tilewright_kernel::{Element, Flag, Fragment, KernelError, View};
use tilewright_layout::Layout;
use tilewright_layout::symbolic::Expr;

use super::super::share::ThreadIteration;
use super::super::sum::{Sum, both, plus, times};
use super::{Writer, load, store};
use crate::fitted::WINDOWS;
use crate::units::div_up;

impl<'k> Writer<'k, '_> {
    /// Copies the tile from the source to shared memory.
    pub(super) fn read(&self, source: &View<'k>, word: Element) -> Result<(), KernelError> {
        let (k, plan) = (self.k, self.plan);
        let count = self.sides.reach.0 / plan.word;
        // A source that is smaller than a word is read element by element.
        if count > 0 {
            let source = source.recast(word, Layout::strided(count, 1))?;
            let lane = k.remainder(&self.thread, plan.lanes)?;
            let group = k.quotient(&self.thread, plan.lanes)?;
            plan.sources.each(k, &group, |iterations| {
                // All loads are issued into registers first, so that many are in flight, then
                // stored to shared memory.
                let parts = div_up(iterations.len() as i64 * plan.words, WINDOWS.words_in_flight);
                for iterations in iterations.chunks(div_up(iterations.len() as i64, parts) as usize) {
                    let mut rows = Vec::new();
                    for iteration in iterations {
                        let row = self.read_row(&source, iteration, &lane, plan.sources.inside(k, iteration)?)?;
                        rows.push((plan.sources.inside(k, iteration)?, row));
                    }
                    for (inside, row) in &rows {
                        for (place, word) in row {
                            store(k, place, *inside, word)?;
                        }
                    }
                }
                Ok(())
            })?;
        }
        self.read_rest(source)
    }

    /// Copies the words of a row that belong to this lane.
    fn read_row(
        &self,
        source: &View<'k>,
        iteration: &ThreadIteration,
        lane: &Expr,
        inside: Option<Flag<'k>>,
    ) -> Result<Vec<(View<'k>, Fragment<'k>)>, KernelError> {
        let (k, plan, axes) = (self.k, self.plan, &self.sides.axes);
        let rows = &plan.sources.axes;
        let mut begin = self.origin(|axis| axis.source, self.sides.bases.0);
        let (terms, further) = iteration.terms(|number| axes[rows[number]].source);
        begin.terms.extend(terms);
        begin.base += further;
        let mut condition = inside;
        for (number, axis) in rows.iter().enumerate() {
            let digit = iteration.at(number)?;
            let at = plus(&self.starts[*axis], &digit)?;
            condition = both(condition, k.unless_less(&at, &Expr::from(axes[*axis].extent))?);
            if number + 1 == rows.len() {
                condition = both(condition, k.unless_less(&digit, &Expr::from(plan.read[*axis]))?);
            }
        }
        // Only the rows that the window of a run of the destination reaches are read.
        let run = || plan.tile.destination.iter().filter(|axis| rows.contains(axis));
        if plan.skewed
            && self.sides.source.bytes() == 1
            && run().count() > 1
            && run().count() == plan.tile.destination.len()
        {
            let mut along = Expr::from(0);
            for (number, axis) in rows.iter().enumerate().filter(|(_, axis)| plan.tile.destination.contains(axis)) {
                along = plus(&along, &times(&iteration.at(number)?, axes[*axis].destination)?)?;
            }
            condition = both(condition, k.unless_less(&along, &Expr::from(plan.reach()))?);
        }
        let (at, phase) = match plan.phased {
            true => begin.divided(k, plan.word)?,
            false => (begin.divided(k, plan.word)?.0, Expr::from(0)),
        };
        let row = self.row(iteration, rows)?;
        // The length of the run: less than the tile at the end of an axis.
        let run: i64 = plan.tile.source.iter().map(|axis| plan.read[*axis]).product();
        let mut left = Expr::from(run);
        if let Some((last, inner)) = plan.tile.source.split_last() {
            let unit: i64 = inner.iter().map(|axis| plan.read[*axis]).product();
            left = plus(&times(&self.starts[*last], -unit)?, &Expr::from(unit * axes[*last].extent))?;
        }
        let (end, cut) = (plus(&Expr::from(run), &phase)?, plus(&left, &phase)?);
        let mut words = Vec::new();
        for number in 0..plan.words {
            let along = plus(lane, &Expr::from(number * plan.lanes))?;
            let element = times(&along, plan.word)?;
            let exists = both(k.unless_less(&element, &end)?, k.unless_less(&element, &cut)?);
            let word = load(k, &source.at(&plus(&at, &along)?)?, both(condition, exists))?;
            let place = match plan.fold {
                0 => along,
                fold => plus(&along, &k.quotient(&along, fold)?)?,
            };
            words.push((self.words.at(&plus(&row, &place)?)?, word));
        }
        Ok(words)
    }

    /// The word at which a row begins.
    fn row(&self, iteration: &ThreadIteration, rows: &[usize]) -> Result<Expr, KernelError> {
        let plan = self.plan;
        let (terms, further) = iteration.terms(|number| plan.places[rows[number]] / plan.word);
        let place = Sum { base: further + plan.front / plan.word, terms }.expr()?;
        if !plan.padded {
            return Ok(place);
        }
        // Here, only rows along a run of the destination are counted.
        let beside = |axis: usize| plan.tile.beside.contains(&axis);
        let count = |axis: usize| if beside(axis) { 0 } else { plan.places[axis] / plan.word / plan.pitch };
        let (terms, further) = iteration.terms(|number| count(rows[number]));
        let terms = terms.into_iter().filter(|term| term.1 != 0).collect();
        plus(&place, &Sum { base: further, terms }.divided(self.k, plan.chunk)?.0)
    }

    /// Elements after the last whole word of the source: the tiles that contain one read it alone.
    fn read_rest(&self, source: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let whole = sides.reach.0 / plan.word * plan.word;
        if whole == sides.reach.0 {
            return Ok(());
        }
        // The partial word was stored as zeros.
        k.barrier();
        for at in whole..sides.reach.0 {
            for coordinate in sides.coordinates_of(at) {
                let mut condition = k.unless_less(&self.thread, &Expr::from(1))?;
                let mut digits = Vec::new();
                for (axis, at) in coordinate.iter().enumerate() {
                    let behind = plus(&Expr::from(*at), &times(&self.starts[axis], -1)?)?;
                    let begun = k.unless_less(&self.starts[axis], &Expr::from(at + 1))?;
                    let inside = k.unless_less(&behind, &Expr::from(plan.read[axis]))?;
                    condition = both(both(condition, begun), inside);
                    digits.push((axis, k.clamped(&behind, plan.read[axis])?));
                }
                let from = source.at(&Expr::from(at))?;
                let to = self.elements.at(&self.place(&digits)?)?;
                store(k, &to, condition, &load(k, &from, condition)?)?;
            }
        }
        Ok(())
    }

    /// The position of an element in the tile; axes that are not given have coordinate 0.
    pub(super) fn place(&self, digits: &[(usize, Expr)]) -> Result<Expr, KernelError> {
        let (k, plan, axes) = (self.k, self.plan, &self.sides.axes);
        let terms = digits.iter().map(|(axis, digit)| (digit.clone(), plan.places[*axis])).collect();
        let mut place = Sum { base: plan.front, terms }.expr()?;
        let rows = || digits.iter().filter(|(axis, _)| !plan.tile.source.contains(axis));
        if plan.padded {
            let rows = rows().filter(|(axis, _)| !plan.tile.beside.contains(axis));
            let count = |axis: usize| plan.places[axis] / plan.word / plan.pitch;
            let terms = rows.map(|(axis, digit)| (digit.clone(), count(*axis))).collect();
            place = plus(&place, &times(&Sum { base: 0, terms }.divided(k, plan.chunk)?.0, plan.word)?)?;
        }
        if plan.phased {
            let mut begin = self.origin(|axis| axis.source, self.sides.bases.0);
            begin.terms.extend(rows().map(|(axis, digit)| (digit.clone(), axes[*axis].source)));
            place = plus(&place, &begin.divided(k, plan.word)?.1)?;
        }
        Ok(place)
    }
}

//! A tile from the source to shared memory.
//!
//! Law: element `e` of row `r` of the tile is at `r * pitch + behind(r) + phase(r) + e` afterwards.
//! Words go there by themselves, or wait in registers to be shifted to where their row begins; then
//! `phase` is 0.

use tilewright_kernel::{Element, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;

use super::super::sum::{Sum, plus, times};
use super::{Writer, both, load, store};

/// Words that a lane has read of a row of the tile.
struct Read<'k> {
    words: Vec<Num<'k>>,
    row: Expr,
    /// The number of the first word in the row.
    first: Expr,
    /// How many elements of the first word of the row are before the row.
    phase: Expr,
}

impl<'k> Writer<'k, '_> {
    /// Source to shared memory.
    pub(super) fn read(&self, source: &View<'k>, word: Element) -> Result<(), KernelError> {
        let (k, plan) = (self.k, self.plan);
        let count = self.sides.reach.0 / plan.word;
        // A source of less than a word is read element by element.
        if count > 0 {
            let source = source.recast(word, &format!("{count}:1"))?;
            let lane = k.remainder(&self.thread, plan.lanes)?;
            let group = k.quotient(&self.thread, plan.lanes)?;
            let turn = |turn: Expr| -> Result<(), KernelError> {
                let mut rows = Vec::new();
                for number in 0..plan.each {
                    let pass = plus(&times(&turn, plan.each)?, &Expr::from(number))?;
                    let part = plus(&times(&pass, plan.threads / plan.lanes)?, &group)?;
                    let (row, part) = (k.quotient(&part, plan.parts)?, k.remainder(&part, plan.parts)?);
                    let first = plus(&times(&part, plan.lanes * plan.words)?, &lane)?;
                    rows.push(self.read_row(&source, row, first)?);
                }
                rows.iter().flatten().try_for_each(|row| self.keep_row(row, &lane))
            };
            if plan.turns == 1 {
                turn(Expr::from(0))?;
            } else {
                k.range(plan.turns, turn)?;
            }
        }
        if !plan.shifts() {
            k.commit_async();
            k.wait_async(0);
        }
        self.read_rest(source)
    }

    /// The words of this lane of a part of a row; none where they go to shared memory by themselves.
    fn read_row(&self, source: &View<'k>, row: Expr, first: Expr) -> Result<Option<Read<'k>>, KernelError> {
        let (k, plan, axes) = (self.k, self.plan, &self.sides.axes);
        let rows = plan.tile.rows();
        let extents: Vec<i64> = rows.iter().map(|axis| plan.read[*axis]).collect();
        // The last number has no end, so that it tells rows that there are not.
        let digits = if rows.is_empty() { Vec::new() } else { k.coordinate(&row, &extents)? };
        let mut begin = self.origin(|axis| axis.source, self.sides.bases.0);
        let mut condition = None;
        for (axis, digit) in rows.iter().zip(&digits) {
            begin.terms.push((digit.clone(), axes[*axis].source));
            let at = plus(&self.starts[*axis], digit)?;
            condition = both(condition, k.unless_less(&at, &Expr::from(axes[*axis].extent))?);
        }
        match (rows.last(), digits.last()) {
            (Some(axis), Some(digit)) => {
                condition = both(condition, k.unless_less(digit, &Expr::from(plan.read[*axis]))?);
            }
            _ => condition = both(condition, k.unless_less(&row, &Expr::from(1))?),
        }
        let (at, phase) = match plan.phased {
            true => begin.divided(k, plan.word)?,
            false => (begin.divided(k, plan.word)?.0, Expr::from(0)),
        };
        // How many elements of the run there are: fewer than the tile has at the end of an axis.
        let run: i64 = plan.tile.source.iter().map(|axis| plan.read[*axis]).product();
        let mut left = Expr::from(run);
        if let Some((last, inner)) = plan.tile.source.split_last() {
            let unit: i64 = inner.iter().map(|axis| plan.read[*axis]).product();
            left = plus(&times(&self.starts[*last], -unit)?, &Expr::from(unit * axes[*last].extent))?;
        }
        let (end, cut) = (plus(&Expr::from(run), &phase)?, plus(&left, &phase)?);
        let mut words = Vec::new();
        let behind = self.behind(&row)?;
        // Behind the last word of a part comes the first one of the next.
        let more = i64::from(plan.shifts() && plan.parts > 1);
        for number in 0..plan.words + more {
            let along = plus(&first, &Expr::from(number * plan.lanes))?;
            let at_element = times(&along, plan.word)?;
            let exists = both(k.unless_less(&at_element, &end)?, k.unless_less(&at_element, &cut)?);
            let view = source.at(&plus(&at, &along)?)?;
            let exists = both(condition, exists);
            if !plan.shifts() {
                let place = plus(&plus(&times(&row, plan.pitch())?, &along)?, &behind)?;
                k.copy_async_where(exists.unwrap_or_else(|| k.flag(true)), &view, &self.words.at(&place)?)?;
                continue;
            }
            words.push(load(k, &view, exists)?.numbers()?[0]);
        }
        Ok(plan.shifts().then_some(Read { words, row, first, phase }))
    }

    /// Leaves words of a row in shared memory, shifted to where the row begins.
    fn keep_row(&self, read: &Read<'k>, lane: &Expr) -> Result<(), KernelError> {
        let (k, plan) = (self.k, self.plan);
        let mut words = read.words.clone();
        if read.phase != Expr::from(0) {
            let all = k.remainder(&self.thread, 32)?;
            let next = plus(&all, &Expr::from(1))?;
            let last = k.unless_less(lane, &Expr::from(plan.lanes - 1))?;
            let mut following = Vec::new();
            for word in &read.words {
                following.push(k.shuffle_from(*word, &next)?);
            }
            let bits = times(&read.phase, 32 / plan.word)?;
            for (number, word) in read.words.iter().enumerate() {
                // Behind the word of the last lane comes the next one of the first.
                let behind = match (last, following.get(number + 1)) {
                    (Some(inside), Some(first)) => inside.select(following[number], *first),
                    _ => following[number],
                };
                words[number] = k.funnel_right(*word, behind, &bits)?;
            }
        }
        let behind = self.behind(&read.row)?;
        for (number, word) in words.iter().take(plan.words as usize).enumerate() {
            let along = plus(&read.first, &Expr::from(number as i64 * plan.lanes))?;
            let one = k.register(word.element(), "1")?;
            one.set(&[*word])?;
            self.words.at(&plus(&plus(&times(&read.row, plan.pitch())?, &along)?, &behind)?)?.store(&one)?;
        }
        Ok(())
    }

    /// How many elements of its first word are before a row, where words were left as they are. A
    /// chunk has a multiple of as many rows as a word has elements, which changes nothing.
    pub(super) fn phase(&self, row: &Expr) -> Result<Expr, KernelError> {
        match self.plan.kept {
            None => Ok(Expr::from(0)),
            Some(further) => self.k.remainder(&plus(&times(row, further)?, &self.phase)?, self.plan.word),
        }
    }

    /// How many words more there are before a row.
    pub(super) fn behind(&self, row: &Expr) -> Result<Expr, KernelError> {
        if self.plan.padded { self.k.quotient(row, self.plan.chunk) } else { Ok(Expr::from(0)) }
    }

    /// Elements behind the last whole word of the source: the tiles that have one read it alone.
    fn read_rest(&self, source: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let whole = sides.reach.0 / plan.word * plan.word;
        if whole == sides.reach.0 {
            return Ok(());
        }
        // A word that is cut off was kept as zeros.
        k.barrier();
        for at in whole..sides.reach.0 {
            for coordinate in sides.coordinates_of(at) {
                let mut condition = k.unless_less(&self.thread, &Expr::from(1))?;
                let mut place = Sum { base: 0, terms: Vec::new() };
                for (axis, at) in coordinate.iter().enumerate() {
                    let behind = plus(&Expr::from(*at), &times(&self.starts[axis], -1)?)?;
                    let begun = k.unless_less(&self.starts[axis], &Expr::from(at + 1))?;
                    let inside = k.unless_less(&behind, &Expr::from(plan.read[axis]))?;
                    condition = both(both(condition, begun), inside);
                    place.terms.push((behind, plan.places[axis]));
                }
                let from = source.at(&Expr::from(at))?;
                let mut place = place.expr()?;
                if plan.padded {
                    let row = plan.pitch() * plan.word;
                    let rows = plan.tile.rows().into_iter().map(|axis| {
                        Ok((
                            plus(&Expr::from(coordinate[axis]), &times(&self.starts[axis], -1)?)?,
                            plan.places[axis] / row,
                        ))
                    });
                    let terms = rows.collect::<Result<Vec<_>, KernelError>>()?;
                    let row = k.clamped(&Sum { base: 0, terms }.expr()?, plan.runs())?;
                    place = plus(&place, &plus(&times(&self.behind(&row)?, plan.word)?, &self.phase(&row)?)?)?;
                }
                let to = self.elements.at(&place)?;
                store(k, &to, condition, &load(k, &from, condition)?)?;
            }
        }
        Ok(())
    }
}

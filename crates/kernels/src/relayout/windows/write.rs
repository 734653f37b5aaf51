//! A tile from shared memory to the destination.
//!
//! Law: of each run of the destination, the chunks that begin in the window of this block are
//! written whole, and what lies before the first chunk of the run and behind its last element by
//! element, by the block that has it.

use tilewright_kernel::{Flag, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

use super::super::sum::{Sum, plus, times};
use super::{UNROLLED, Writer, both, load, store};

/// A run of the destination.
struct Column<'k> {
    begin: Sum,
    /// The number of its first whole chunk, and how many elements are before that.
    first: Expr,
    skew: Expr,
    /// Where its elements are in a run of the source.
    place: Expr,
    exists: Option<Flag<'k>>,
}

impl<'k> Writer<'k, '_> {
    /// A run of the destination by its number.
    fn column(&self, number: &Expr) -> Result<Column<'k>, KernelError> {
        let (k, plan, axes) = (self.k, self.plan, &self.sides.axes);
        let columns = plan.tile.columns();
        let extents: Vec<i64> = columns.iter().map(|axis| plan.read[*axis]).collect();
        let mut begin = self.origin(|axis| axis.destination, self.sides.bases.1);
        let mut place = Expr::from(0);
        let mut exists = if columns.is_empty() { k.unless_less(number, &Expr::from(1))? } else { None };
        let digits = if columns.is_empty() { Vec::new() } else { k.coordinate(number, &extents)? };
        for (axis, digit) in columns.iter().zip(digits) {
            begin.terms.push((digit.clone(), axes[*axis].destination));
            place = plus(&place, &times(&digit, plan.places[*axis])?)?;
            let at = plus(&self.starts[*axis], &digit)?;
            exists = both(exists, k.unless_less(&at, &Expr::from(axes[*axis].extent))?);
            if Some(axis) == columns.last() {
                exists = both(exists, k.unless_less(&digit, &Expr::from(plan.read[*axis]))?);
            }
        }
        let (first, skew) = begin.rounded_up(k, plan.chunk)?;
        Ok(Column { begin, first, skew, place, exists })
    }

    /// How many elements of a run of the destination there are from where the tile begins.
    fn left(&self) -> Result<Expr, KernelError> {
        let (plan, axes) = (self.plan, &self.sides.axes);
        let Some((last, inner)) = plan.tile.destination.split_last() else { return Ok(Expr::from(1)) };
        let unit: i64 = inner.iter().map(|axis| axes[*axis].extent).product();
        plus(&times(&self.starts[*last], -unit)?, &Expr::from(unit * axes[*last].extent))
    }

    /// How many elements of a run a block writes.
    fn window(&self) -> i64 {
        self.plan.tile.destination.iter().map(|axis| self.plan.tile.extents[*axis]).product()
    }

    /// Whether runs of the destination are cut into windows.
    fn is_cut(&self) -> bool {
        let last = self.plan.tile.destination.last();
        last.is_some_and(|last| self.plan.tile.extents[*last] < self.sides.axes[*last].extent)
    }

    /// Where the element that is so far along a run of the destination is in the tile.
    fn place(&self, at: &Expr, along: &Expr) -> Result<Expr, KernelError> {
        let list = &self.plan.tile.destination;
        // Rows that follow each other are so far apart as the first two.
        if let (Some(first), true) = (list.first(), self.plan.turned) {
            let behind = plus(&times(&self.behind(at)?, self.plan.word)?, &self.phase(at)?)?;
            return plus(&plus(&times(at, self.plan.places[*first])?, &behind)?, along);
        }
        let extents: Vec<i64> = list.iter().map(|axis| self.plan.read[*axis]).collect();
        let digits = self.k.coordinate(at, &extents)?;
        let add = |sum: Expr, (axis, digit): (&usize, &Expr)| plus(&sum, &times(digit, self.plan.places[*axis])?);
        let place = list.iter().zip(&digits).try_fold(along.clone(), add)?;
        let row = self.plan.pitch() * self.plan.word;
        let rows = list.iter().zip(digits).filter(|(axis, _)| !self.plan.tile.source.contains(axis));
        let terms = rows.map(|(axis, digit)| (digit, self.plan.places[*axis] / row)).collect();
        plus(&place, &times(&self.behind(&Sum { base: 0, terms }.expr()?)?, self.plan.word)?)
    }

    /// Where the elements of a chunk are in the tile, by its number in the run and the shift of that.
    fn chunk_places(&self, skew: &Expr, number: &Expr, along: &Expr) -> Result<Vec<Expr>, KernelError> {
        let plan = self.plan;
        let chunk = plan.chunk;
        let list = &plan.tile.destination;
        let Some(first) = list.first().copied() else { return Ok(vec![along.clone()]) };
        let (extent, step) = (plan.read[first], plan.places[first]);
        let at = plus(skew, &times(number, chunk)?)?;
        if plan.turned || plan.skewed || extent % chunk != 0 {
            return (0..chunk).map(|element| self.place(&plus(&at, &Expr::from(element))?, along)).collect();
        }
        // A chunk stays within the first axis.
        let here = self.place(&at, along)?;
        (0..chunk).map(|element| plus(&here, &Expr::from(element * step))).collect()
    }

    /// An element of the tile.
    fn element(&self, place: &Expr, condition: Option<Flag<'k>>) -> Result<Num<'k>, KernelError> {
        let number = load(self.k, &self.elements.at(place)?, condition)?.numbers()?[0];
        Ok(if self.sides.source == self.sides.destination { number } else { number.to(self.sides.destination) })
    }

    /// Whole chunks of the destination.
    pub(super) fn write(&self, destination: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let chunk = plan.chunk;
        let whole = sides.reach.1 / chunk;
        let chunks = self.window() / chunk;
        if whole == 0 || chunks == 0 {
            return Ok(());
        }
        let destination = destination.recast(sides.destination, &format!("({chunk},{whole}):(1,{chunk})"))?;
        let columns = plan.tile.columns();
        let runs: i64 = columns.iter().map(|axis| plan.read[*axis]).product();
        // Runs that are neighbours in a word of the source go to different turns.
        let apart = if columns.first() == plan.tile.source.first() && !plan.padded { plan.word.min(runs) } else { 1 };
        let groups = (runs + apart - 1) / apart;
        let power = |n: i64| (n.max(1) as u64).next_power_of_two() as i64;
        let along = if plan.padded { 32 } else { (32 / chunk).min(8) }.min(power(chunks));
        let across = (32 / along).min(power(groups));
        let along = 32 / across;
        let (groups, steps) = ((groups + across - 1) / across * apart, (chunks + along - 1) / along);
        let warps = plan.threads / 32;
        let down = power(groups).min(warps);
        let right = warps / down;
        let (turns, steps) = ((groups + down - 1) / down, (steps + right - 1) / right);

        let digits = k.coordinate(&self.thread, &[along, across, down, right])?;
        let left = self.left()?;
        // Elements of a chunk, of which the window is shifted by so many.
        let moved = |column: &Column<'k>, skew: &Expr, from: &Expr, count: i64| -> Result<(), KernelError> {
            for step in 0..count {
                let step = plus(from, &Expr::from(step))?;
                let number = plus(&times(&plus(&times(&step, right)?, &digits[3])?, along)?, &digits[0])?;
                let last = plus(&times(&number, chunk)?, &plus(skew, &Expr::from(chunk - 1))?)?;
                let inside = both(k.unless_less(&number, &Expr::from(chunks))?, k.unless_less(&last, &left)?);
                let condition = both(column.exists, inside);
                let mut numbers = Vec::new();
                for place in self.chunk_places(skew, &number, &column.place)? {
                    numbers.push(self.element(&place, condition)?);
                }
                let values = k.register(sides.destination, &chunk.to_string())?;
                values.set(&numbers)?;
                let slot: Coord<Expr> = Tree::flat([Slot::All, Slot::At(plus(&column.first, &number)?)])?;
                store(k, &destination.slice(slot)?, condition, &values)?;
            }
            Ok(())
        };
        let body = |turn: Expr, from: Expr, count: i64| -> Result<(), KernelError> {
            let group = plus(&times(&turn, down)?, &digits[2])?;
            let parts = k.coordinate(&group, &[apart, groups / apart])?;
            let run = plus(&digits[1], &times(&parts[1], across)?)?;
            let run = plus(&parts[0], &times(&run, apart)?)?;
            let column = self.column(&run)?;
            moved(&column, &column.skew, &from, count)
        };
        // As many steps at once as make a turn of some length.
        let most = (UNROLLED / chunk).max(1);
        let parts = (steps + most - 1) / most;
        let each = (steps + parts - 1) / parts;
        let inner = |turn: Expr| {
            if parts == 1 {
                return body(turn, Expr::from(0), steps);
            }
            k.range(parts, |part| body(turn.clone(), times(&part, each)?, each))
        };
        if turns * steps * chunk <= UNROLLED {
            return (0..turns).try_for_each(|turn| inner(Expr::from(turn)));
        }
        k.range(turns, inner)
    }

    /// What lies before the first chunk of a run and behind its last, element by element.
    pub(super) fn write_ends(&self, destination: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let chunk = plan.chunk;
        let Some(outer) = plan.tile.destination.last().copied() else { return Ok(()) };
        let length: i64 = plan.tile.destination.iter().map(|axis| sides.axes[*axis].extent).product();
        if !plan.skewed && length % chunk == 0 {
            return Ok(());
        }
        let left = self.left()?;
        let columns = plan.tile.columns();
        let runs: i64 = columns.iter().map(|axis| plan.read[*axis]).product();
        let turns = (runs * chunk + plan.threads - 1) / plan.threads;
        let cut = self.is_cut();
        let ends = |turn: Expr| -> Result<(), KernelError> {
            let number = plus(&times(&turn, plan.threads)?, &self.thread)?;
            let (element, run) = (k.remainder(&number, chunk)?, k.quotient(&number, chunk)?);
            let Column { begin, skew, place, exists, .. } = self.column(&run)?;
            let one = |at: Expr, condition: Option<Flag<'k>>| -> Result<(), KernelError> {
                let condition = both(condition, k.unless_less(&at, &left)?);
                let values = k.register(sides.destination, "1")?;
                values.set(&[self.element(&self.place(&at, &place)?, condition)?])?;
                let target = destination.at(&plus(&begin.expr()?, &at)?)?;
                store(k, &target, condition, &values)
            };
            // Before the first chunk, in the first window.
            if plan.skewed {
                let first = k.unless_less(&self.starts[outer], &Expr::from(1))?;
                let before = k.unless_less(&element, &skew)?;
                one(element.clone(), both(both(exists, first), before))?;
            }
            // Behind the last whole chunk: how many there are, and one more.
            // No more than a window has matter.
            let left = if cut { k.clamped(&left, self.window() + 2 * chunk)? } else { left.clone() };
            let chunks = plus(&plus(&left, &times(&skew, -1)?)?, &Expr::from(chunk))?;
            let chunks = k.quotient(&chunks, chunk)?;
            let some = k.unless_less(&Expr::from(0), &chunks)?;
            let mine = if cut { k.unless_less(&chunks, &Expr::from(self.window() / chunk + 1))? } else { None };
            let behind = plus(&times(&chunks, chunk)?, &plus(&skew, &plus(&element, &Expr::from(-chunk))?)?)?;
            let some = both(some, k.unless_less(&behind, &left)?);
            one(k.clamped(&behind, length)?, both(both(exists, some), mine))
        };
        let all = || if turns == 1 { ends(Expr::from(0)) } else { k.range(turns, ends) };
        if !cut {
            return all();
        }
        // Only blocks at the ends have any.
        let last = self.window() + chunk;
        let inner = k.unless_less(&Expr::from(0), &self.starts[outer])?;
        let far = k.unless_less(&Expr::from(last), &left)?;
        match both(inner, far) {
            Some(middle) => k.choose(middle, || Ok(()), all),
            None => all(),
        }
    }
}

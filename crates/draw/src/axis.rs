//! The sides of a grid.
//!
//! Law: a side has a position for every index of a mode, fastest leaf first. Each leaf has its own
//! ticks. A line is drawn where a leaf wraps; the more leaves wrap, the heavier it is.

use tilewright_layout::Tree;

/// One side of a grid: a mode, with the extents of its leaves, fastest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    extents: Vec<i64>,
    unit: i64,
    begin: i64,
    ticked: bool,
    /// The names of the positions, if they are not numbers.
    names: Vec<String>,
    /// The title: what the ticks count.
    title: Option<String>,
}

impl Axis {
    /// The side of a mode of a shape. Leaves of extent 1 carry no tick of their own.
    ///
    /// ```
    /// use tilewright_draw::Axis;
    ///
    /// let axis = Axis::of(&"(2,(3,1))".parse().unwrap());
    /// assert_eq!(axis.len(), 6);
    /// assert_eq!(axis.ticks(5), [1, 2]);
    /// assert_eq!((axis.weight(1), axis.weight(2)), (0, 1));
    /// ```
    pub fn of(mode: &Tree<i64>) -> Axis {
        let extents: Vec<i64> = mode.leaves().iter().copied().filter(|extent| *extent > 1).collect();
        if extents.is_empty() { Axis::flat(1) } else { Axis { extents, ..Axis::flat(1) } }
    }

    /// A side with a single leaf.
    pub fn flat(extent: i64) -> Axis {
        Axis { extents: vec![extent.max(1)], unit: 1, begin: 0, ticked: true, names: Vec::new(), title: None }
    }

    /// A side whose positions have names.
    ///
    /// ```
    /// use tilewright_draw::Axis;
    ///
    /// let axis = Axis::named(["B(c)", "A(B(c))"]);
    /// assert_eq!((axis.len(), axis.tick_text(1, 0).as_str()), (2, "A(B(c))"));
    /// ```
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Axis {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        Axis { names: names.clone(), ..Axis::flat(i64::try_from(names.len()).unwrap_or(1)) }
    }

    /// The side of several modes of a shape, the first mode fastest.
    pub fn of_modes<'a>(modes: impl IntoIterator<Item = &'a Tree<i64>>) -> Axis {
        let leaves = modes.into_iter().flat_map(Tree::leaves).copied();
        let extents: Vec<i64> = leaves.filter(|extent| *extent > 1).collect();
        if extents.is_empty() { Axis::flat(1) } else { Axis { extents, ..Axis::flat(1) } }
    }

    /// The same side with ticks that increase by `unit` for each step of the fastest leaf.
    #[must_use]
    pub fn counted_by(self, unit: i64) -> Axis {
        Axis { unit, ..self }
    }

    /// The same side with ticks that begin at `begin`.
    #[must_use]
    pub fn shifted_by(self, begin: i64) -> Axis {
        Axis { begin, ..self }
    }

    /// The same side with a title, which says what its ticks count.
    ///
    /// ```
    /// use tilewright_draw::Axis;
    ///
    /// assert_eq!(Axis::flat(32).titled("bank").title(), Some("bank"));
    /// ```
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Axis {
        Axis { title: Some(title.into()), ..self }
    }

    /// The title, which says what the ticks count; None if there is none.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The same side with another number of positions: its slowest leaf ends earlier or continues,
    /// and the faster ones repeat as before. If the side ends within a faster leaf, it becomes
    /// flat.
    #[must_use]
    pub(crate) fn cut_to(self, len: i64) -> Axis {
        let run = self.run(self.levels().saturating_sub(1));
        let mut extents = self.extents;
        match extents.last_mut() {
            Some(last) if len >= run && len % run == 0 => *last = len / run,
            _ => extents = vec![len.max(1)],
        }
        Axis { extents, ..Axis::flat(1) }
    }

    /// The same side without ticks.
    #[must_use]
    pub fn unticked(self) -> Axis {
        Axis { ticked: false, ..self }
    }

    /// Whether ticks are shown.
    pub fn is_ticked(&self) -> bool {
        self.ticked
    }

    /// How many positions there are.
    pub fn len(&self) -> i64 {
        self.extents.iter().fold(1, |len: i64, extent| len.saturating_mul(*extent))
    }

    /// Whether there are no positions; always false.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The number of leaves with ticks.
    pub fn levels(&self) -> usize {
        self.extents.len()
    }

    /// The tick of a position in each leaf, fastest first.
    pub fn ticks(&self, position: i64) -> Vec<i64> {
        (0..self.levels()).map(|level| self.tick(position, level)).collect()
    }

    /// The tick of a position in one leaf.
    pub fn tick(&self, position: i64, level: usize) -> i64 {
        let before = self.run(level);
        let here = position.checked_div(before).unwrap_or(0);
        let digit = match self.extents.get(level) {
            Some(extent) if level + 1 < self.levels() => here.checked_rem(*extent).unwrap_or(0),
            _ => here,
        };
        if level == 0 { digit.saturating_mul(self.unit).saturating_add(self.begin) } else { digit }
    }

    /// The text beside a position for one leaf: its tick, or its name.
    pub fn tick_text(&self, position: i64, level: usize) -> String {
        let name = usize::try_from(position).ok().and_then(|at| self.names.get(at));
        name.filter(|_| level == 0).cloned().unwrap_or_else(|| self.tick(position, level).to_string())
    }

    /// The positions of a leaf whose ticks may be the widest.
    pub(crate) fn widest(&self, level: usize) -> Vec<i64> {
        let last = self.len() - 1;
        match self.names.len() {
            // The slowest leaf ends at the last position, and each other leaf at its own last
            // index. The first index may be shifted.
            0 => vec![0, (self.run(level + 1) - 1).min(last), last],
            _ => (0..=last).collect(),
        }
    }

    /// The number of positions of one step of a leaf.
    pub(crate) fn run(&self, level: usize) -> i64 {
        self.extents.iter().take(level).fold(1, |run: i64, extent| run.saturating_mul(*extent))
    }

    /// The number of leaves that wrap at a position: the weight of the line before it.
    pub fn weight(&self, position: i64) -> usize {
        let mut run: i64 = 1;
        let complete = |extent: &&i64| {
            run = run.saturating_mul(**extent);
            position % run == 0
        };
        self.extents.iter().take(self.levels() - 1).take_while(complete).count()
    }
}

/// The positions that are drawn: all, or the first ones, a gap (`None`) and the last one.
pub(crate) fn visible(len: i64, limit: usize) -> Vec<Option<i64>> {
    match i64::try_from(limit.max(3)) {
        Ok(limit) if len > limit => {
            let head = (limit - 2).max(1);
            (0..head).map(Some).chain([None, Some(len - 1)]).collect()
        }
        _ => (0..len).map(Some).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_the_digits_of_the_position() {
        for shape in ["(2,3,4)", "(5,(1,2))", "7", "1"] {
            let axis = Axis::of(&shape.parse().unwrap());
            for position in 0..axis.len() {
                let ticks = axis.ticks(position);
                let sum: i64 = ticks.iter().enumerate().map(|(level, tick)| tick * axis.run(level)).sum();
                assert_eq!(sum, position, "{shape}");
                let zeros = ticks.iter().take_while(|tick| **tick == 0).count().min(axis.levels() - 1);
                assert_eq!(axis.weight(position), zeros, "{shape} {position}");
            }
        }
    }

    #[test]
    fn what_is_left_out_is_in_the_middle() {
        for limit in 3..12 {
            for len in 1..30 {
                let shown = visible(len, limit);
                let places: Vec<i64> = shown.iter().flatten().copied().collect();
                assert!(shown.len() <= limit.max(3));
                assert_eq!((places.first(), places.last()), (Some(&0), Some(&(len - 1))));
                assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
                assert_eq!(shown.contains(&None), places.len() < usize::try_from(len).unwrap());
            }
        }
    }
}

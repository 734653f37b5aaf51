//! Exchange of numbers between threads through shared memory.
//!
//! Law: threads exchange values in sets. Each member writes a number for each value, and after one
//! barrier every thread of the set reads what it needs, in the same order.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Stride, Tree};

use super::Build;
use super::access::Edge;
use super::fragment::Fragment;
use super::number::Num;
use super::tensor::{Cuttable, View};
use crate::distribution::Digit;
use crate::element::Element;
use crate::error::Reason;
use crate::program::WARP_LANES;

/// Sets of threads that exchange numbers through shared memory, and the position of this thread.
pub(crate) struct Exchange {
    /// The index of this thread among the members of its set.
    pub(crate) member: Expr,
    /// The number of members of a set.
    pub(crate) members: i64,
    /// The index of the set of this thread.
    pub(crate) set: Expr,
    /// The number of sets.
    pub(crate) sets: i64,
}

impl Exchange {
    /// The place of the number that a member wrote for a value, in the set of this thread.
    fn at(&self, member: Slot<Expr>, value: Slot<Expr>) -> Result<Coord<Expr>, Reason> {
        Ok(Tree::flat([member, Slot::At(self.set.clone()), value])?)
    }

    /// The number that the digits of a thread form, the first digit fastest, and its number of
    /// values.
    pub(crate) fn number<'d>(
        build: &Build,
        digits: impl IntoIterator<Item = &'d Digit>,
    ) -> Result<(Expr, i64), Reason> {
        let overflow = || Reason::Layout(tilewright_layout::LayoutError::Overflow { op: "thread" });
        let mut core = build.core();
        let thread = core.thread()?;
        let (mut number, mut count) = (Expr::from(0), 1);
        for digit in digits {
            let at = core.digit(&thread, digit.below, digit.extent)?;
            let part = Stride::times(&at, &Expr::from(count)).ok_or_else(overflow)?;
            number = Stride::plus(&number, &part).ok_or_else(overflow)?;
            count *= digit.extent;
        }
        Ok((number, count))
    }
}

impl Build {
    /// Writes lists of numbers to shared memory, one array for each, and waits until all threads
    /// have written.
    pub(crate) fn leave<'k>(
        &'k self,
        exchange: &Exchange,
        same: &[(i64, i64)],
        lists: &[(Element, Vec<Num<'k>>)],
    ) -> Result<Vec<View<'k>>, Reason> {
        let mut arrays = Vec::new();
        for (element, numbers) in lists {
            let (members, sets, values) = (exchange.members, exchange.sets, numbers.len() as i64);
            // If there are many sets, the lanes of a warp write them contiguously. If there are
            // few, they are read member by member, several at once.
            let strides =
                if sets >= WARP_LANES as i64 / 4 { (sets * values, 1, sets) } else { (1, members, sets * members) };
            let layout = Layout::strided((members, sets, values), strides)?;
            arrays.push(match arrays.is_empty() {
                true => self.take_scratch(*element, layout)?,
                false => self.take_scratch_beside(*element, layout)?,
            });
        }
        let only = self.core().all_zero(same)?;
        for (array, (element, numbers)) in arrays.iter().zip(lists) {
            let part = array.sliced(&exchange.at(Slot::At(exchange.member.clone()), Slot::All)?)?;
            let fragment = self.fragment_of(*element, &Tree::leaf(numbers.len() as i64))?;
            fragment.put(numbers)?;
            part.write_where(only, &fragment, 128, Edge::Proved)?;
        }
        self.meet();
        Ok(arrays)
    }

    /// For each array, the numbers that the members of this thread's set wrote for a value: all of
    /// them, or one.
    pub(crate) fn taken<'k>(
        &'k self,
        arrays: &[View<'k>],
        exchange: &Exchange,
        value: usize,
        members: &Slot<Expr>,
    ) -> Result<Vec<Vec<Num<'k>>>, Reason> {
        let take = |array: &View<'k>| {
            let at = exchange.at(members.clone(), Slot::At(Expr::from(value as i64)))?;
            let part = array.sliced(&at)?;
            let fragment: Fragment<'k> = part.fragment_like(array.element)?;
            part.read_into(&fragment, 128, Edge::Proved)?;
            fragment.all()
        };
        arrays.iter().map(take).collect()
    }
}

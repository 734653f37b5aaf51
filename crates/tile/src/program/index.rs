//! Indices of tiles, and iteration counts.
//!
//! Law: an index is a sum of terms and a constant. A term is an integer times the number of a
//! block, times the iteration of a loop, or times the quotient or remainder of one of these by an
//! integer. Blocks and iterations count from 0.

use std::fmt;
use std::ops;

pub use tilewright_kernel::program::operation::Axis;

use super::ValueId;

/// A counter: a block's number, or a loop's iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counter {
    /// The number of the block along an axis.
    Block(Axis),
    /// The iteration of a loop, by the number of the loop.
    Iteration(u32),
}

/// A variable of an index: a counter, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// The number of the block along an axis.
    Block(Axis),
    /// The iteration of a loop, by the number of the loop.
    Iteration(u32),
    /// The quotient of a counter by a number from 2 on, rounded down.
    Quotient(Counter, i64),
    /// The remainder of a counter by a number from 2 on.
    Remainder(Counter, i64),
}

impl Name {
    /// The counter that it depends on.
    pub fn counter(self) -> Counter {
        match self {
            Name::Block(axis) => Counter::Block(axis),
            Name::Iteration(number) => Counter::Iteration(number),
            Name::Quotient(counter, _) | Name::Remainder(counter, _) => counter,
        }
    }

    /// Whether it is a quotient or a remainder. Several blocks or iterations then have the same
    /// value.
    pub(crate) fn is_part(self) -> bool {
        matches!(self, Name::Quotient(..) | Name::Remainder(..))
    }

    /// A counter as a variable.
    fn whole(counter: Counter) -> Name {
        match counter {
            Counter::Block(axis) => Name::Block(axis),
            Counter::Iteration(number) => Name::Iteration(number),
        }
    }

    /// The same variable of another counter.
    pub(crate) fn with(self, counter: Counter) -> Name {
        match (self, counter) {
            (Name::Quotient(_, by), counter) => Name::Quotient(counter, by),
            (Name::Remainder(_, by), counter) => Name::Remainder(counter, by),
            (_, counter) => Name::whole(counter),
        }
    }

    /// Its value, given the value of its counter.
    pub(crate) fn of(self, number: i64) -> i64 {
        match self {
            Name::Block(_) | Name::Iteration(_) => number,
            Name::Quotient(_, by) => number.div_euclid(by.max(1)),
            Name::Remainder(_, by) => number.rem_euclid(by.max(1)),
        }
    }
}

/// A sum of integers times blocks and iterations of loops, plus a constant. Along a mode, it
/// selects a tile, or the first element of a tile ([`Index::elements`]).
///
/// ```
/// use tilewright_tile::{Axis, Index};
///
/// let row = Index::block(Axis::X) * 64 + 3;
/// assert_eq!(row.to_string(), "block.x*64 + 3");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Index {
    pub(crate) terms: Vec<(Name, i64)>,
    pub(crate) constant: i64,
    /// Whether it counts elements. If not, it counts tiles.
    pub(crate) by_element: bool,
    /// The number of elements of the tile that count, from the first one on; None if all count.
    pub(crate) length: Option<i64>,
    /// Whether the arithmetic overflowed 64 bits. The statement that uses the index is then
    /// refused.
    pub(crate) overflows: bool,
}

/// The result of checked arithmetic. If it is None, sets `overflows`.
fn noted(result: Option<i64>, overflows: &mut bool) -> i64 {
    *overflows |= result.is_none();
    result.unwrap_or(0)
}

impl Index {
    /// The number of the block along an axis.
    pub fn block(axis: Axis) -> Index {
        Index { terms: vec![(Name::Block(axis), 1)], ..Index::from(0) }
    }

    /// The same number as a count of elements. The tile begins at this coordinate along the mode,
    /// which need not be a multiple of the tile's extent.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program, interpret};
    ///
    /// // Sums of three neighbours: tiles of 64 that begin one element earlier, here, and one later.
    /// let smooth = Program::build("smooth", |t| {
    ///     let x = t.input(Element::F32, "x", "N:1")?;
    ///     let y = t.output(Element::F32, "y", "N:1")?;
    ///     t.grid(["ceil(N/64)"])?;
    ///     let first = Index::block(Axis::X) * 64;
    ///     let [a, b, c] = [-1, 0, 1].map(|by| t.load(x, &[64], &[(first.clone() + by).elements()]));
    ///     t.store(y, &[Index::block(Axis::X)], a + b + c);
    ///     Ok(())
    /// })?;
    /// assert!(smooth.to_string().contains("[block.x*64 + -1]"));
    /// let outputs = interpret::run(&smooth, &[("N", 3)], &[("x", vec![1.0, 2.0, 4.0])])?;
    /// assert_eq!(outputs[0].1, [Some(3.0), Some(7.0), Some(6.0)]);
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    #[must_use]
    pub fn elements(self) -> Index {
        Index { by_element: true, ..self }
    }

    /// As [`Index::elements`], for a tile of which only this many elements count. A load fills the
    /// others like elements past an edge, and a store skips them.
    ///
    /// ```
    /// use tilewright_tile::{Element, Index, Program, interpret};
    ///
    /// let part = Program::build("part", |t| {
    ///     let x = t.input(Element::F32, "x", "8:1")?;
    ///     let y = t.output(Element::F32, "y", "4:1")?;
    ///     t.store(y, &[0.into()], t.load(x, &[4], &[Index::from(2).within(3)]));
    ///     Ok(())
    /// })?;
    /// assert!(part.to_string().contains("[2 : 3]"));
    /// let x = (0..8).map(f64::from).collect();
    /// assert_eq!(interpret::run(&part, &[], &[("x", x)])?[0].1, [2.0, 3.0, 4.0, 0.0].map(Some));
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    #[must_use]
    pub fn within(self, length: i64) -> Index {
        Index { by_element: true, length: Some(length), ..self }
    }

    /// The quotient by a number, rounded down. It exists for a block, for an iteration, and for a
    /// sum whose terms are all multiples of the number. None for other indices, and for a divisor
    /// less than 1.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Index};
    ///
    /// // Four heads share one of the keys.
    /// let head = Index::block(Axis::X);
    /// assert_eq!(head.clone().quotient(4).unwrap().to_string(), "block.x / 4");
    /// assert_eq!((head.clone() * 8 + 4).quotient(4).unwrap().to_string(), "block.x*2 + 1");
    /// assert!((head + 1).quotient(4).is_none());
    /// ```
    pub fn quotient(self, by: i64) -> Option<Index> {
        if by < 1 {
            return None;
        }
        let divides = |own: &i64| own % by == 0;
        if self.terms.iter().all(|(_, own)| divides(own)) && (self.terms.is_empty() || divides(&self.constant)) {
            let terms = self.terms.iter().map(|(name, own)| (*name, own / by)).collect();
            return Some(Index { terms, constant: self.constant.div_euclid(by), ..self });
        }
        match (self.terms.as_slice(), self.constant) {
            ([(name @ (Name::Block(_) | Name::Iteration(_)), 1)], 0) => {
                Some(Index { terms: vec![(Name::Quotient(name.counter(), by), 1)], ..self })
            }
            ([(Name::Quotient(counter, before), 1)], 0) => {
                let name = Name::Quotient(*counter, before.checked_mul(by)?);
                Some(Index { terms: vec![(name, 1)], ..self })
            }
            _ => None,
        }
    }

    /// The remainder by a number. It exists for a block, for an iteration, and for a sum whose
    /// other terms are all multiples of the number. None for other indices, and for a divisor less
    /// than 1.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Index};
    ///
    /// let part = Index::block(Axis::Y).remainder(4);
    /// assert_eq!(part.unwrap().to_string(), "block.y % 4");
    /// ```
    pub fn remainder(self, by: i64) -> Option<Index> {
        if by < 1 {
            return None;
        }
        if self.terms.iter().all(|(_, own)| own % by == 0) {
            return Some(Index { terms: Vec::new(), constant: self.constant.rem_euclid(by), ..self });
        }
        match (self.terms.as_slice(), self.constant) {
            ([(name @ (Name::Block(_) | Name::Iteration(_)), 1)], 0) => {
                Some(Index { terms: vec![(Name::Remainder(name.counter(), by), 1)], ..self })
            }
            _ => None,
        }
    }

    /// The coordinate at which a tile with this extent begins, given the value of the index.
    pub(crate) fn first(&self, value: i64, extent: i64) -> Option<i64> {
        if self.by_element { Some(value) } else { value.checked_mul(extent) }
    }

    /// The same number, as a count of tiles.
    pub(crate) fn number(self) -> Index {
        Index { by_element: false, length: None, ..self }
    }

    /// Whether an element of the tile counts, given its coordinate in the tile.
    pub(crate) fn has(&self, at: i64) -> bool {
        self.length.is_none_or(|length| at < length)
    }

    pub(crate) fn iteration(number: u32) -> Index {
        Index { terms: vec![(Name::Iteration(number), 1)], ..Index::from(0) }
    }

    /// The value of the index, if it is a constant.
    pub(crate) fn known(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The value of the index, given the value of each variable; None if it overflows.
    pub(crate) fn value(&self, of: impl Fn(Name) -> i64) -> Option<i64> {
        self.terms.iter().try_fold(self.constant, |sum, (name, by)| sum.checked_add(of(*name).checked_mul(*by)?))
    }

    pub(crate) fn plus(mut self, other: &Index) -> Index {
        self.overflows |= other.overflows;
        self.by_element |= other.by_element;
        self.constant = noted(self.constant.checked_add(other.constant), &mut self.overflows);
        for (name, by) in &other.terms {
            match self.terms.iter_mut().find(|(own, _)| own == name) {
                Some((_, own)) => *own = noted(own.checked_add(*by), &mut self.overflows),
                None => self.terms.push((*name, *by)),
            }
        }
        self.terms.retain(|(_, by)| *by != 0);
        self
    }
}

impl From<i64> for Index {
    fn from(constant: i64) -> Index {
        Index { terms: Vec::new(), constant, by_element: false, length: None, overflows: false }
    }
}

impl From<&Index> for Index {
    fn from(index: &Index) -> Index {
        index.clone()
    }
}

impl ops::Add<i64> for Index {
    type Output = Index;

    fn add(self, other: i64) -> Index {
        self.plus(&Index::from(other))
    }
}

impl ops::Add for Index {
    type Output = Index;

    fn add(self, other: Index) -> Index {
        self.plus(&other)
    }
}

impl ops::Mul<i64> for Index {
    type Output = Index;

    fn mul(mut self, by: i64) -> Index {
        self.constant = noted(self.constant.checked_mul(by), &mut self.overflows);
        for (_, own) in &mut self.terms {
            *own = noted(own.checked_mul(by), &mut self.overflows);
        }
        self.terms.retain(|(_, own)| *own != 0);
        self
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Block(Axis::X) => f.write_str("block.x"),
            Name::Block(Axis::Y) => f.write_str("block.y"),
            Name::Block(Axis::Z) => f.write_str("block.z"),
            Name::Iteration(number) => write!(f, "i{number}"),
            Name::Quotient(counter, by) => write!(f, "{} / {by}", Name::whole(*counter)),
            Name::Remainder(counter, by) => write!(f, "{} % {by}", Name::whole(*counter)),
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.by_element, self.length) {
            (true, Some(length)) => return write!(f, "[{} : {length}]", self.clone().number()),
            (true, None) => return write!(f, "[{}]", self.clone().number()),
            (false, _) => {}
        }
        let mut first = true;
        for (name, by) in &self.terms {
            f.write_str(if first { "" } else { " + " })?;
            match by {
                1 => write!(f, "{name}")?,
                by => write!(f, "{name}*{by}")?,
            }
            first = false;
        }
        match (first, self.constant) {
            (true, constant) => write!(f, "{constant}"),
            (false, 0) => Ok(()),
            (false, constant) => write!(f, " + {constant}"),
        }
    }
}

/// The iteration count of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Count {
    /// An expression of sizes: `ceil(K/64)`.
    Sizes(String),
    /// An index: it may depend on the block, or on the iteration of an enclosing loop.
    Index(Index),
    /// A scalar of type i32, which may come from a tensor. If it is negative, there is no
    /// iteration.
    Value(ValueId),
}

impl Count {
    /// The value that holds the count, if there is one.
    pub(crate) fn value(&self) -> Option<ValueId> {
        match self {
            Count::Value(value) => Some(*value),
            Count::Sizes(_) | Count::Index(_) => None,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::Sizes(text) => f.write_str(text),
            Count::Index(index) => index.fmt(f),
            Count::Value(value) => write!(f, "value {}", value.index()),
        }
    }
}

impl From<&str> for Count {
    fn from(text: &str) -> Count {
        Count::Sizes(text.to_string())
    }
}

impl From<Index> for Count {
    fn from(index: Index) -> Count {
        Count::Index(index.number())
    }
}

impl From<i64> for Count {
    fn from(count: i64) -> Count {
        Count::Sizes(count.to_string())
    }
}

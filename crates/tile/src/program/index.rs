//! Indices of tiles, and iteration counts.
//!
//! Law: an index is a sum of numbers times blocks and iterations of loops, or times their quotients
//! and remainders by a number, and a number. Blocks and iterations count from 0.

use std::fmt;
use std::ops;

pub use tilewright_kernel::program::operation::Axis;

use super::ValueId;

/// What counts blocks or iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counter {
    /// The number of the block along an axis.
    Block(Axis),
    /// The iteration of a loop, by the number of the loop.
    Iteration(u32),
}

/// A variable of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// The number of the block along an axis.
    Block(Axis),
    /// The iteration of a loop, by the number of the loop.
    Iteration(u32),
    /// How often a number, from 2 on, goes into one of both.
    Quotient(Counter, i64),
    /// What is left of one of both by a number, from 2 on.
    Remainder(Counter, i64),
}

impl Name {
    /// What it counts, or a part of it.
    pub fn counter(self) -> Counter {
        match self {
            Name::Block(axis) => Counter::Block(axis),
            Name::Iteration(number) => Counter::Iteration(number),
            Name::Quotient(counter, _) | Name::Remainder(counter, _) => counter,
        }
    }

    /// Whether it is a quotient or a remainder: then it is the same for several blocks or
    /// iterations.
    pub(crate) fn is_part(self) -> bool {
        matches!(self, Name::Quotient(..) | Name::Remainder(..))
    }

    /// What is counted, whole.
    fn whole(counter: Counter) -> Name {
        match counter {
            Counter::Block(axis) => Name::Block(axis),
            Counter::Iteration(number) => Name::Iteration(number),
        }
    }

    /// The same of another counter.
    pub(crate) fn with(self, counter: Counter) -> Name {
        match (self, counter) {
            (Name::Quotient(_, by), counter) => Name::Quotient(counter, by),
            (Name::Remainder(_, by), counter) => Name::Remainder(counter, by),
            (_, counter) => Name::whole(counter),
        }
    }

    /// Its value for a number of the block or the iteration.
    pub(crate) fn of(self, number: i64) -> i64 {
        match self {
            Name::Block(_) | Name::Iteration(_) => number,
            Name::Quotient(_, by) => number.div_euclid(by.max(1)),
            Name::Remainder(_, by) => number.rem_euclid(by.max(1)),
        }
    }
}

/// A sum of numbers times blocks and iterations of loops, and a number: which tile along a mode, or
/// from which element on ([`Index::elements`]).
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
    /// Whether it counts elements; else it counts tiles.
    pub(crate) by_element: bool,
    /// How many elements of the tile are inside, from the first one on, if not all are.
    pub(crate) length: Option<i64>,
    /// Whether a number of it did not fit in 64 bits: then it is refused where it is used.
    pub(crate) overflows: bool,
}

/// A result of arithmetic, or a mark that it did not fit.
fn noted(result: Option<i64>, overflows: &mut bool) -> i64 {
    *overflows |= result.is_none();
    result.unwrap_or(0)
}

impl Index {
    /// The number of the block along an axis.
    pub fn block(axis: Axis) -> Index {
        Index { terms: vec![(Name::Block(axis), 1)], ..Index::from(0) }
    }

    /// The same number as a count of elements: a tile begins at this coordinate along a mode, which
    /// need not be a multiple of the tile.
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

    /// As [`Index::elements`], for a tile of which only this many elements are inside: a load gives
    /// the others as elements past the edge, and a store skips them.
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

    /// How often a number goes into this one: of a block, of an iteration, or of a sum whose parts
    /// are all multiples of the number. None for others, and for a divisor below 1.
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

    /// What a quotient leaves: of a block, of an iteration, or of a sum whose other parts are all
    /// multiples of the number. None for others, and for a divisor below 1.
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

    /// The coordinate at which a tile of an extent begins, for an index of this value.
    pub(crate) fn first(&self, value: i64, extent: i64) -> Option<i64> {
        if self.by_element { Some(value) } else { value.checked_mul(extent) }
    }

    /// The same number, of whatever it counts.
    pub(crate) fn number(self) -> Index {
        Index { by_element: false, length: None, ..self }
    }

    /// Whether an element of the tile is inside, by its coordinate in the tile.
    pub(crate) fn has(&self, at: i64) -> bool {
        self.length.is_none_or(|length| at < length)
    }

    pub(crate) fn iteration(number: u32) -> Index {
        Index { terms: vec![(Name::Iteration(number), 1)], ..Index::from(0) }
    }

    /// The number, if it is nothing else.
    pub(crate) fn known(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The value where each name has one; none if it does not fit.
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
    /// A number that depends on the block, or on the iteration of a loop around.
    Index(Index),
    /// A scalar of type i32, which may come from a tensor; no iteration if it is negative.
    Value(ValueId),
}

impl Count {
    /// The value that says it, if one does.
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

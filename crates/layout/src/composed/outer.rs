//! The outer map of a composed layout: a map of integers.
//!
//! Law: a layout is a function on all integers. A swizzle keeps the bits above those that it reads
//! and flips, also the sign. A square bit matrix keeps the bits above its inputs in the same way;
//! any other matrix has values only at numbers within its inputs. A chain applies one map after
//! another, with an offset in between: `x -> outer(offset + inner(x))`.

use alloc::boxed::Box;
use core::fmt;

use crate::bits::bit_xor::BitXor;
use crate::bits::matrix::{BitMatrix, low_bits};
use crate::bits::swizzle::Swizzle;
use crate::ground::words::debug_as_text;
use crate::limits::MAX_CHAIN;
use crate::refusal::error::{Fits, LayoutError, Limit};
use crate::refusal::evidence::Condition;
use crate::value::layout::Layout;
use crate::value::number::Extent;

/// The outer map of a [`crate::Composed`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum OuterMap<N: Extent = i64> {
    /// A layout, as a function on all integers.
    Layout(Layout<N>),
    /// A swizzle.
    Swizzle(Swizzle),
    /// A linear map over bits. A square one keeps the bits above; any other has values only at
    /// numbers within its inputs.
    Bits(BitMatrix),
    /// A chain: one map after another.
    Chain(Box<MapChain<N>>),
}

/// Two maps, one after the other: `x -> outer(offset + inner(x))`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MapChain<N: Extent = i64> {
    pub(crate) outer: OuterMap<N>,
    pub(crate) offset: N,
    /// Never a chain: a chain of three maps has a chain as its outer map.
    pub(crate) inner: OuterMap<N>,
}

impl<N: Extent> MapChain<N> {
    /// The map applied last.
    pub fn outer(&self) -> &OuterMap<N> {
        &self.outer
    }

    /// The offset between the two.
    pub fn offset(&self) -> &N {
        &self.offset
    }

    /// The map applied first.
    pub fn inner(&self) -> &OuterMap<N> {
        &self.inner
    }
}

impl<N: Extent> OuterMap<N> {
    /// The number of leaves of its layouts and of columns of its matrices; limits on copies and
    /// text use it.
    pub(crate) fn leaves(&self) -> usize {
        match self {
            OuterMap::Layout(layout) => layout.leaves().len(),
            OuterMap::Swizzle(_) => 1,
            OuterMap::Bits(matrix) => matrix.inputs(),
            OuterMap::Chain(chain) => chain.outer().leaves().saturating_add(chain.inner().leaves()),
        }
    }

    /// The value at an offset.
    ///
    /// Errors: it is not representable; the empty layout has a value only at 0, and a matrix that
    /// is not square only at numbers within its inputs; the offset of a swizzle is not known.
    #[inline]
    pub fn eval(&self, offset: &N) -> Result<N, LayoutError> {
        match self {
            OuterMap::Layout(layout) => layout.eval(offset),
            OuterMap::Swizzle(swizzle) => match offset.known() {
                Some(offset) => Ok(N::from(swizzle.apply(offset))),
                None => swizzled(*swizzle, offset),
            },
            OuterMap::Bits(matrix) => Ok(N::from(matrix.extended(number(offset)?)?)),
            OuterMap::Chain(chain) => {
                let value = chain.offset.plus(&chain.inner.eval(offset)?);
                chain.outer.eval(&value.fits_as::<N>("eval")?)
            }
        }
    }

    /// The map `x -> self(offset + first(x))`.
    ///
    /// Two linear maps over bits with offset 0 become one, which is a swizzle if possible.
    ///
    /// Errors: the result is a chain of more than [`MAX_CHAIN`] maps.
    ///
    /// ```
    /// use tilewright_layout::{OuterMap, Swizzle};
    ///
    /// let swizzle = |b, m, s| OuterMap::<i64>::from(Swizzle::new(b, m, s).unwrap());
    /// let text = |a: OuterMap, b| a.after(&0, &b).unwrap().to_string();
    /// assert_eq!(text(swizzle(3, 4, 3), swizzle(3, 4, 3)), "S<0,0,0>"); // the identity
    /// assert_eq!(text(swizzle(1, 0, 3), swizzle(1, 1, 3)), "S<2,0,3>");
    /// assert_eq!(text(swizzle(1, 0, 1), swizzle(1, 0, 2)), "F2<3>[1,3,5]");
    /// ```
    pub fn after(&self, offset: &N, first: &OuterMap<N>) -> Result<OuterMap<N>, LayoutError> {
        let joined = self.join(offset, first);
        match joined.maps() {
            0..=MAX_CHAIN => Ok(joined),
            value => Err(LayoutError::TooLarge { limit: Limit::Chain, value }),
        }
    }

    fn join(&self, offset: &N, first: &OuterMap<N>) -> OuterMap<N> {
        if let OuterMap::Chain(chain) = first {
            return self.join(offset, &chain.outer).join(&chain.offset, &chain.inner);
        }
        if offset.is_zero().proved() {
            if self.is_identity() {
                return first.clone();
            }
            if first.is_identity() {
                return self.clone();
            }
            match self {
                OuterMap::Chain(last) => {
                    if let Some(joined) = last.inner.joined(first) {
                        return last.outer.join(&last.offset, &joined);
                    }
                }
                _ => {
                    if let Some(joined) = self.joined(first) {
                        return joined;
                    }
                }
            }
        }
        OuterMap::chain(self.clone(), offset.clone(), first.clone())
    }

    /// The number of maps that are applied one after another.
    pub(crate) fn maps(&self) -> usize {
        match self {
            OuterMap::Chain(chain) => chain.outer.maps() + chain.inner.maps(),
            _ => 1,
        }
    }

    pub(crate) fn chain(outer: OuterMap<N>, offset: N, inner: OuterMap<N>) -> OuterMap<N> {
        OuterMap::Chain(Box::new(MapChain { outer, offset, inner }))
    }

    /// The identity, written as the swizzle that flips no bit.
    pub(crate) fn identity() -> OuterMap<N> {
        OuterMap::of_matrix(BitMatrix::from_valid(0, Default::default()))
    }

    /// Whether it is the identity.
    pub fn is_identity(&self) -> bool {
        match self {
            OuterMap::Layout(layout) => layout.coalesce_z().is_ok_and(|layout| match layout.leaves() {
                [leaf] => leaf.stride.is_one().proved(),
                _ => false,
            }),
            OuterMap::Swizzle(swizzle) => swizzle.is_identity(),
            OuterMap::Bits(matrix) => matrix.is_identity(),
            OuterMap::Chain(_) => false,
        }
    }

    /// The matrix of a swizzle or a bit matrix; None for the other kinds. A square one is extended
    /// to at least `bits` inputs, because it keeps the bits above.
    ///
    /// ```
    /// use tilewright_layout::{OuterMap, Swizzle};
    ///
    /// let swizzle: OuterMap = Swizzle::new(1, 0, 1).unwrap().into();
    /// assert_eq!(swizzle.matrix(3).unwrap().to_string(), "F2<3>[1,3,4]");
    /// ```
    pub fn matrix(&self, bits: usize) -> Option<BitMatrix> {
        match self {
            OuterMap::Swizzle(swizzle) => swizzle.matrix(bits.max(swizzle.reach())).ok(),
            OuterMap::Bits(matrix) if matrix.inputs() == matrix.outputs() && matrix.inputs() < bits => {
                matrix.beside(&BitMatrix::identity(bits - matrix.inputs()).ok()?).ok()
            }
            OuterMap::Bits(matrix) => Some(matrix.clone()),
            _ => None,
        }
    }

    /// The number of bits that a linear map over bits may change.
    fn bits(&self) -> usize {
        match self {
            OuterMap::Swizzle(swizzle) => swizzle.reach(),
            OuterMap::Bits(matrix) => matrix.inputs(),
            _ => 0,
        }
    }

    /// The single linear map that equals this one after `first`; None if there is none.
    fn joined(&self, first: &OuterMap<N>) -> Option<OuterMap<N>> {
        let bits = self.bits().max(first.bits());
        let (last, first) = (self.matrix(bits)?, first.matrix(bits)?);
        let square = |matrix: &BitMatrix| matrix.inputs() == matrix.outputs();
        // Bits above the inputs have no value unless both maps are square.
        if !square(&last) || !square(&first) {
            return None;
        }
        Some(OuterMap::of_matrix(last.compose(&first).ok()?))
    }

    /// The equal swizzle if there is one, else the matrix.
    pub(crate) fn of_matrix(matrix: BitMatrix) -> OuterMap<N> {
        match matrix.swizzle() {
            Some(swizzle) => OuterMap::Swizzle(swizzle),
            None => OuterMap::Bits(matrix),
        }
    }
}

/// The image of an offset that is not known under a swizzle, by arithmetic on its bits:
/// `a ^ c = a + c - 2ac` for bits `a` and `c`.
///
/// Errors: the offset may be negative; a number is not representable.
#[cold]
fn swizzled<N: Extent>(swizzle: Swizzle, offset: &N) -> Result<N, LayoutError> {
    if !offset.less(&N::zero()).refuted() {
        return Err(LayoutError::open("swizzle", Condition::AtMost, &N::zero(), offset));
    }
    let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
    let (into, from) = if shift >= 0 { (base, base + shift) } else { (base - shift, base) };
    let power = |bit: i64| 1_i64.checked_shl(u32::try_from(bit).ok()?).filter(|power| *power > 0).map(N::from);
    let two = N::from(2);
    let bit = |bit: i64| offset.divide(&power(bit)?)?.0.divide(&two).map(|(_, bit)| bit);
    let flipped = |value: N, index: i64| {
        let (a, c) = (bit(into + index)?, bit(from + index)?);
        let change = c.minus(&a.times(&c)?.times(&two)?)?;
        value.plus(&change.times(&power(into + index)?)?)
    };
    (0..bits).try_fold(offset.clone(), flipped).fits_as::<N>("swizzle")
}

fn number<N: Extent>(offset: &N) -> Result<i64, LayoutError> {
    offset.known().ok_or_else(|| LayoutError::open("swizzle", Condition::Known, offset, &N::zero()))
}

impl BitMatrix {
    /// The value at any integer; see the head of this file.
    pub(crate) fn extended(&self, x: i64) -> Result<i64, LayoutError> {
        let above = x as u64 & !low_bits(self.inputs());
        if above == 0 {
            return Ok(self.apply(x as u64) as i64);
        }
        if self.inputs() == self.outputs() {
            return Ok((self.apply(x as u64) | above) as i64);
        }
        let (what, wanted) = ("an offset", "0 or more, and within the bits that the matrix reads");
        Err(LayoutError::Argument { op: "bit_matrix", what, value: x, wanted })
    }

    /// The equal swizzle; None if there is none.
    ///
    /// There is one exactly when the matrix is square, and its XOR with the identity has `b`
    /// consecutive nonzero columns, each with a single bit at the same distance from the diagonal,
    /// which is at least `b`. These columns are the bits that the swizzle reads, so the swizzle is
    /// unique.
    ///
    /// ```
    /// use tilewright_layout::{BitMatrix, Swizzle};
    ///
    /// let swizzle = Swizzle::new(2, 0, 3).unwrap();
    /// assert_eq!(swizzle.matrix(5).unwrap().swizzle(), Some(swizzle));
    /// assert_eq!(BitMatrix::new(2, [2, 1]).unwrap().swizzle(), None);
    /// ```
    pub fn swizzle(&self) -> Option<Swizzle> {
        if self.inputs() != self.outputs() {
            return None;
        }
        // A bit that is read, and its distance above the bit that it flips.
        let mut found: Option<(i64, i64)> = None;
        let mut bits = 0;
        for (position, column) in (0_i64..).zip(self.columns()) {
            let added = column ^ 1_u64.checked_shl(position as u32)?;
            if added == 0 {
                continue;
            }
            let shift = position - i64::from(added.trailing_zeros());
            let (first, wanted) = *found.get_or_insert((position, shift));
            if !added.is_power_of_two() || shift != wanted || position != first + bits {
                return None;
            }
            bits += 1;
        }
        let (first, shift) = found.unwrap_or((0, 0));
        Swizzle::new(bits, first - shift.max(0), shift).ok()
    }
}

impl<N: Extent> From<Layout<N>> for OuterMap<N> {
    fn from(layout: Layout<N>) -> OuterMap<N> {
        OuterMap::Layout(layout)
    }
}

impl<N: Extent> From<Swizzle> for OuterMap<N> {
    fn from(swizzle: Swizzle) -> OuterMap<N> {
        OuterMap::Swizzle(swizzle)
    }
}

impl<N: Extent> From<BitMatrix> for OuterMap<N> {
    fn from(matrix: BitMatrix) -> OuterMap<N> {
        OuterMap::Bits(matrix)
    }
}

impl<N: Extent> fmt::Display for OuterMap<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OuterMap::Layout(layout) => layout.fmt(f),
            OuterMap::Swizzle(swizzle) => swizzle.fmt(f),
            OuterMap::Bits(matrix) => matrix.fmt(f),
            OuterMap::Chain(chain) => write!(f, "{} o {} o {}", chain.outer, chain.offset, chain.inner),
        }
    }
}

debug_as_text!(OuterMap<N: Extent>);

impl<N: Extent> fmt::Debug for MapChain<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MapChain({} o {} o {})", self.outer, self.offset, self.inner)
    }
}

impl<N: Extent> From<BitXor> for OuterMap<N> {
    fn from(map: BitXor) -> OuterMap<N> {
        OuterMap::of_matrix(map.matrix())
    }
}

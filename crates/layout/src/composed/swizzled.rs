//! Swizzled layouts of numbers known at launch.
//!
//! Laws: those of [`Composed`] with known numbers, for every admissible value. A swizzle or an
//! invertible matrix that changes `r` bits is a bijection on all integers, and permutes each
//! aligned block of `2^r` numbers. So the composed layout is injective exactly when its inner
//! layout is; its inverse consists of the inverses of both; and the outer map keeps an interval of
//! whole blocks. An operation for which this is no proof is refused.

use super::{Composed, OuterMap};
use crate::bits::swizzle::ratio;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::symbolic::Expr;
use crate::value::layout::Layout;
use crate::value::number::{Extent, Stride, Truth};

/// The inverse of an outer map that is a bijection on all integers, and the size `2^r` of the
/// aligned blocks that it permutes.
fn undo(op: &'static str, outer: &OuterMap<Expr>) -> Result<(OuterMap<Expr>, i64), LayoutError> {
    let block = |bits: usize| 1_i64.checked_shl(bits as u32).filter(|block| *block > 0).fits_as::<Expr>(op);
    match outer {
        OuterMap::Swizzle(swizzle) => Ok((OuterMap::Swizzle(*swizzle), block(swizzle.reach())?)),
        OuterMap::Bits(matrix) if matrix.inputs() == matrix.outputs() => {
            Ok((OuterMap::of_matrix(matrix.inverse()?), block(matrix.inputs())?))
        }
        other if other.is_identity() => Ok((OuterMap::identity(), 1)),
        other => Err(LayoutError::unknown(op, &format_args!("{other} is one to one"))),
    }
}

impl Composed<Expr> {
    /// Whether different coordinates have different values: whether this is so for the inner
    /// layout, if the outer map is injective.
    ///
    /// Errors: it is not known; as [`Layout::is_injective`].
    ///
    /// ```
    /// use tilewright_layout::{Composed, symbolic::Expr};
    ///
    /// let tile: Composed<Expr> = "S<2,0,2> o 0 o (M{div=4},4):(4,1)".parse().unwrap();
    /// assert!(tile.is_injective().unwrap());
    /// ```
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        undo("is_injective", &self.outer)?;
        self.inner.is_injective()
    }

    /// A map `X` with `R(X(R(k))) = R(k)` for every index `k`, read on all integers.
    ///
    /// Errors: it is not known whether the outer map is injective, or whether a value is negative;
    /// the inner layout has no left inverse.
    ///
    /// ```
    /// use tilewright_layout::{Composed, symbolic::Expr};
    ///
    /// let tile: Composed<Expr> = "S<2,0,2> o 0 o (M{div=4},4):(4,1)".parse().unwrap();
    /// assert_eq!(tile.left_inverse().unwrap().to_string(), "(4,M):(M,1) o 0 o S<2,0,2> o 0 o 4*M:1");
    /// ```
    pub fn left_inverse(&self) -> Result<Composed<Expr>, LayoutError> {
        const OP: &str = "left_inverse";
        let (undone, block) = undo(OP, &self.outer)?;
        let back = self.offset.times(&Expr::from(-1)).fits_as::<Expr>(OP)?;
        let map = OuterMap::Layout(self.inner.left_inverse()?).after(&back, &undone)?;
        let (least, greatest) = self.inner.range()?;
        let first = self.offset.plus(&least).fits_as::<Expr>(OP)?;
        if !first.less(&Expr::zero()).refuted() {
            return Err(LayoutError::open(OP, Condition::AtMost, &Expr::zero(), &first));
        }
        // The values are within the blocks up to the last one that the inner layout reaches.
        let end = greatest.plus(&self.offset).and_then(|last| last.plus(&Expr::one())).fits_as::<Expr>(OP)?;
        let end = end.divide_up(&Expr::from(block)).and_then(|count| count.times(&Expr::from(block)));
        let domain = Layout::mode_of(end.fits_as::<Expr>(OP)?, Expr::one())?;
        Composed::new(map, Expr::zero(), domain)
    }

    /// The largest map `X` with `R(X(i)) = i` for every `i` below its size, for a map whose values
    /// are the numbers below the cosize, each once.
    ///
    /// Errors: it is not known whether the map has such values.
    ///
    /// ```
    /// use tilewright_layout::{Composed, symbolic::Expr};
    ///
    /// let tile: Composed<Expr> = "S<2,0,2> o 0 o (M{div=4},4):(4,1)".parse().unwrap();
    /// assert_eq!(tile.right_inverse().unwrap().to_string(), "(4,M):(M,1) o 0 o S<2,0,2> o 0 o 4*M:1");
    /// ```
    pub fn right_inverse(&self) -> Result<Composed<Expr>, LayoutError> {
        const OP: &str = "right_inverse";
        let count = self.filled(OP)?;
        if !self.is_bijective()? {
            return Err(LayoutError::unknown(OP, &"the values are those from 0 on, each once"));
        }
        let left = self.left_inverse()?;
        Composed::new(left.outer, Expr::zero(), Layout::mode_of(count, Expr::one())?)
    }

    /// The number of values from the offset on, without a hole: the inner layout fills whole
    /// blocks, which the outer map permutes.
    fn filled(&self, op: &'static str) -> Result<Expr, LayoutError> {
        let (_, block) = undo(op, &self.outer)?;
        let block = Expr::from(block);
        if !self.inner.is_surjective()? {
            return Err(LayoutError::unknown(op, &"what is left out by the inner layout is left out by the map"));
        }
        let count = self.inner.cosize()?;
        for number in [&count, &self.offset] {
            if !block.divides(number).proved() {
                return Err(LayoutError::open(op, Condition::Divides, &block, number));
            }
        }
        Ok(count)
    }

    /// The largest value plus one, for an inner layout that fills whole blocks.
    ///
    /// Errors: it is not known whether the inner layout does.
    ///
    /// ```
    /// use tilewright_layout::{Composed, symbolic::Expr};
    ///
    /// let tile: Composed<Expr> = "S<2,0,2> o 0 o (M{div=4},4):(4,1)".parse().unwrap();
    /// assert_eq!(tile.cosize().unwrap().to_string(), "4*M");
    /// ```
    pub fn cosize(&self) -> Result<Expr, LayoutError> {
        const OP: &str = "cosize";
        if self.outer.is_identity() {
            return self.inner.cosize()?.plus(&self.offset).fits_as::<Expr>(OP);
        }
        self.filled(OP)?.plus(&self.offset).fits_as::<Expr>(OP)
    }

    /// Whether the values are exactly `0, 1, .., cosize - 1`. Errors: it is not known.
    pub fn is_surjective(&self) -> Result<bool, LayoutError> {
        const OP: &str = "is_surjective";
        self.filled(OP)?;
        match self.offset.is_zero() {
            Truth::Open => Err(LayoutError::open(OP, Condition::Equal, &self.offset, &Expr::zero())),
            zero => Ok(zero.proved()),
        }
    }

    /// Whether the values are exactly `0, 1, .., cosize - 1`, each once. Errors: it is not known.
    pub fn is_bijective(&self) -> Result<bool, LayoutError> {
        Ok(self.is_injective()? && self.is_surjective()?)
    }

    /// The layout of the same bits in elements of another width, exactly, for a swizzle as the
    /// outer map.
    ///
    /// Errors: the outer map is not a swizzle; as [`Layout::recast`] and
    /// [`crate::Swizzle::recast`]; it is not known whether the offset is at the start of an
    /// element.
    ///
    /// ```
    /// use tilewright_layout::{Composed, symbolic::Expr};
    ///
    /// let tile: Composed<Expr> = "S<2,2,2> o 0 o (M,16):(16,1)".parse().unwrap();
    /// assert_eq!(tile.recast(32, 16).unwrap().to_string(), "S<2,1,2> o 0 o (M,8):(8,1)");
    /// ```
    pub fn recast(&self, new_bits: i64, old_bits: i64) -> Result<Composed<Expr>, LayoutError> {
        const OP: &str = "recast_layout";
        let (wider, narrower) = ratio(OP, new_bits, old_bits)?;
        let outer = match &self.outer {
            OuterMap::Swizzle(swizzle) => OuterMap::Swizzle(swizzle.recast(new_bits, old_bits)?),
            other => {
                return Err(LayoutError::unknown(OP, &format_args!("{other} moves elements of either width whole")));
            }
        };
        let offset = self.offset.times(&Expr::from(narrower)).fits_as::<Expr>(OP)?;
        let wide = Expr::from(wider);
        if !wide.divides(&offset).proved() {
            return Err(LayoutError::open(OP, Condition::Divides, &wide, &offset));
        }
        let (offset, _) = offset.divide(&wide).fits_as::<Expr>(OP)?;
        Composed::new(outer, offset, self.inner.recast(new_bits, old_bits)?)
    }
}

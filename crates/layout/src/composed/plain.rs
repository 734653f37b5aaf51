//! Conversion of composed layouts to layouts with an offset, and to bit matrices.
//!
//! Laws: `to_layout` returns `L` and `o` with `R(c) = o + L(c)` at every coordinate; the bit matrix
//! of `R` equals `R` at every index. If the extents are powers of two and the argument of each
//! outer map is affine over bits, sums of parities ([`super::parity`]) decide both exactly, at a
//! cost that grows with the number of bits.
//!
//! *When `S o off o L` represents a function `f` affine over bits.* A swizzle is its own inverse,
//! so the condition is `off + L(x) = S(f(x))`: every bit of `S(f(x))` must depend on at most one
//! bit of `x`, by the law of sums. `S` replaces row `k` of `f` by row `k` ^ row `k+s` if it flips
//! bit `k`, and keeps the other rows. So it must flip every row of two or more bits and, for a
//! given `s`, all rows from the lowest of these to the highest. Flipping more rows can only fail
//! more often, so there is one candidate for each `s`.

use smallvec::SmallVec;

use super::{Affine, Composed, OuterMap, Parities};
use crate::algebra::coalesce::coalesced;
use crate::bits::matrix::{BitMatrix, Columns};
use crate::bits::swizzle::Swizzle;
use crate::limits::MAX_INDICES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::interrupt;
use crate::value::layout::{Layout, Leaf, index_steps};
use crate::value::number::Extent;
use crate::value::profile::{Profile, ProfileBuilder};
use crate::value::tree::{Leaves, Tree};

impl OuterMap {
    /// The map after a function of bits; None if its argument is not affine over bits, or if a mode
    /// of a layout ends within the argument at a number that is not a power of two.
    pub(super) fn after_bits(&self, sum: Parities) -> Option<Parities> {
        match self {
            OuterMap::Layout(layout) => {
                let layout = layout.coalesce_z().ok()?;
                match layout.leaves() {
                    [leaf] => sum.scaled(leaf.stride),
                    leaves => sum.affine()?.through_layout(leaves),
                }
            }
            OuterMap::Swizzle(swizzle) if swizzle.is_identity() => Some(sum),
            OuterMap::Swizzle(swizzle) => sum.affine()?.swizzled(*swizzle).parities(),
            OuterMap::Bits(matrix) => {
                let affine = sum.affine()?;
                matrix.extended(affine.support() as i64).ok()?;
                affine.then(|value| matrix.extended(value as i64).unwrap_or(0) as u64).parities()
            }
            OuterMap::Chain(chain) => chain.outer.after_bits(chain.inner.after_bits(sum)?.plus(chain.offset)?),
        }
    }
}

impl<N: Extent> From<Layout<N>> for Composed<N> {
    /// The layout with the identity as its outer map.
    fn from(layout: Layout<N>) -> Composed<N> {
        Composed { outer: OuterMap::identity(), offset: N::zero(), inner: layout }
    }
}

impl<N: Extent> From<&Layout<N>> for Composed<N> {
    fn from(layout: &Layout<N>) -> Composed<N> {
        Composed::from(layout.clone())
    }
}

impl<N: Extent> Composed<N> {
    /// The inner layout, if the outer map is the identity and the offset is 0; None otherwise.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let composed = |text: &str| text.parse::<Composed>().unwrap();
    /// assert_eq!(composed("S<0,3,3> o 0 o 4:2").as_layout(), Some(&"4:2".parse().unwrap()));
    /// assert_eq!(composed("S<0,3,3> o 1 o 4:2").as_layout(), None);
    /// ```
    pub fn as_layout(&self) -> Option<&Layout<N>> {
        (self.outer.is_identity() && self.offset.is_zero().proved()).then_some(&self.inner)
    }
}

impl Composed {
    /// The function of the bits of the index; None if the extents are not powers of two, or
    /// [`OuterMap::after_bits`] is None.
    pub(crate) fn parities(&self) -> Option<Parities> {
        self.outer.after_bits(Parities::of_layout(self.inner.leaves(), self.offset)?)
    }

    /// The map as an affine function over bits; None if sums of parities do not show that it is
    /// one.
    pub(crate) fn affine(&self) -> Option<Affine> {
        self.parities()?.affine()
    }

    /// The layout `L` and the offset `o` with `R(c) = o + L(c)` for every coordinate, the shape of
    /// `L` refining that of the domain.
    ///
    /// A swizzled layout has this form if no flipped bit depends on more than one bit of the index,
    /// which is so for most slices of a swizzled tile. The strides may be negative.
    ///
    /// Errors: there is none ([`LayoutError::NotAdditive`], with an index at which additivity
    /// fails); the extents are not powers of two, or the argument of the outer map is not linear
    /// over bits, and the domain has more than [`MAX_INDICES`] coordinates
    /// ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
    /// assert_eq!(tile.to_layout().unwrap_err().code(), "E0121");
    /// let (row, offset) = tile.slice(&"(2,_)".parse().unwrap()).unwrap().to_layout().unwrap();
    /// assert_eq!((row.to_string().as_str(), offset), ("((16,2,2)):((1,-16,32))", 144));
    /// ```
    pub fn to_layout(&self) -> Result<(Layout, i64), LayoutError> {
        const OP: &str = "to_layout";
        if self.outer.is_identity() {
            return Ok((self.inner.clone(), self.offset));
        }
        if let Some(sum) = self.parities() {
            let steps = sum.steps().ok_or_else(|| sum.not_additive(OP))?;
            let offset = sum.eval(0).fits(OP)?;
            return Ok((refined(&self.shape(), &steps)?, offset));
        }
        if self.size() > MAX_INDICES {
            return Err(LayoutError::Undecided { op: OP, limit: MAX_INDICES as usize });
        }
        let offset = self.eval(&0)?;
        let steps = index_steps(self.inner.leaves()).fits(OP)?;
        let mut parts = SmallVec::<[Leaves<Leaf>; 8]>::new();
        for (leaf, step) in self.inner.leaves().iter().zip(&steps) {
            parts.push(modes_of(OP, leaf.extent, *step, offset, |index| self.eval(&index))?);
        }
        let layout = substituted(self.profile(), &parts)?;
        for index in 0..self.size() {
            interrupt::check(OP)?;
            let (value, alone) = (self.eval(&index)?, layout.eval(&index)?);
            let alone = alone.checked_add(offset).fits(OP)?;
            if value != alone {
                return Err(LayoutError::NotAdditive { op: OP, index, value, alone });
            }
        }
        Ok((layout, offset))
    }

    /// [`Composed::slice`] as a layout and an offset, which is the value at `coord` with 0 for its
    /// open modes (CuTe `slice_and_offset`).
    ///
    /// Errors: the coordinate does not fit; as [`Composed::to_layout`].
    pub fn slice_and_offset(&self, coord: &crate::Coord) -> Result<(Layout, i64), LayoutError> {
        self.slice(coord)?.to_layout()
    }

    /// The map as a matrix over bits: column `i` is the image of bit `i` of the index. A negative
    /// value has 64 bits, in two's complement.
    ///
    /// Errors: an extent is not a power of two ([`LayoutError::NotDivisible`]); the map is not
    /// linear over bits, or is not 0 at 0 ([`LayoutError::NotLinear`]). A mode of an outer layout
    /// ends at a number that is not a power of two, and the domain has more than [`MAX_INDICES`]
    /// coordinates ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<1,0,2> o 0 o (2,4):(4,1)".parse().unwrap();
    /// assert_eq!(tile.bit_matrix().unwrap().to_string(), "F2<3>[5,1,2]");
    /// ```
    pub fn bit_matrix(&self) -> Result<BitMatrix, LayoutError> {
        const OP: &str = "bit_matrix";
        let affine = self.to_affine(OP)?;
        if affine.constant != 0 {
            return Err(LayoutError::NotLinear { op: OP, index: 0, value: affine.constant as i64, alone: 0 });
        }
        BitMatrix::of_columns(affine.columns)
    }

    /// The map as an affine function over bits, or the reason why it is not one.
    fn to_affine(&self, op: &'static str) -> Result<Affine, LayoutError> {
        refuse_odd(op, self.inner.profile(), self.inner.leaves().iter().map(|leaf| leaf.extent))?;
        if let Some(sum) = self.parities() {
            return sum.affine().ok_or_else(|| sum.not_affine(op));
        }
        if self.size() > MAX_INDICES {
            return Err(LayoutError::Undecided { op, limit: MAX_INDICES as usize });
        }
        let constant = self.eval(&0)?;
        let bits = self.size().trailing_zeros();
        let columns = (0..bits).map(|bit| Ok((self.eval(&(1 << bit))? ^ constant) as u64));
        let affine = Affine { constant: constant as u64, columns: columns.collect::<Result<Columns, LayoutError>>()? };
        for index in 0..self.size() {
            interrupt::check(op)?;
            let (value, alone) = (self.eval(&index)?, affine.eval(index as u64) as i64);
            if value != alone {
                return Err(LayoutError::NotLinear { op, index, value, alone });
            }
        }
        Ok(affine)
    }

    /// The map over a shape with the function `affine`: a layout with an offset if possible, else
    /// `S o offset o L` if possible, else a bit matrix.
    pub(crate) fn of_affine(shape: &Tree<i64>, affine: &Affine) -> Result<Composed, LayoutError> {
        match unswizzled(shape, affine)? {
            Some(found) => Ok(found),
            None => Composed::of_matrix_over(shape, affine),
        }
    }

    /// As [`Composed::of_affine`], but over exactly this shape, not a refinement.
    pub(crate) fn of_affine_over(shape: &Tree<i64>, affine: &Affine) -> Result<Composed, LayoutError> {
        match unswizzled(shape, affine)?.filter(|found| found.profile() == shape.profile()) {
            Some(found) => Ok(found),
            None => Composed::of_matrix_over(shape, affine),
        }
    }

    /// The map over a shape with the function `affine`, as a bit matrix.
    fn of_matrix_over(shape: &Tree<i64>, affine: &Affine) -> Result<Composed, LayoutError> {
        // The constant is the column of one more input bit, which the offset sets.
        let bits = affine.columns.len();
        let constant = (affine.constant != 0).then_some(affine.constant);
        let matrix = BitMatrix::of_columns(affine.columns.iter().copied().chain(constant))?;
        let offset = if constant.is_some() { 1_i64.checked_shl(bits as u32).fits("bit_matrix")? } else { 0 };
        Composed::new(matrix, offset, Layout::compact(shape)?)
    }
}

/// Refuses extents that are not powers of two.
fn refuse_odd(op: &'static str, profile: &Profile, extents: impl Iterator<Item = i64>) -> Result<(), LayoutError> {
    for (position, extent) in extents.enumerate() {
        if extent <= 0 || extent.count_ones() != 1 {
            let divisor = (extent as u64).checked_next_power_of_two().and_then(|next| i64::try_from(next).ok());
            let (path, divisor) = (profile.path(position), divisor.unwrap_or(1 << 62));
            return Err(LayoutError::NotDivisible { op, path, value: extent, divisor });
        }
    }
    Ok(())
}

/// The modes of a function on `0..extent` that is a layout plus its value `base` at 0, from its
/// values at indices `step` apart.
pub(super) fn modes_of(
    op: &'static str,
    extent: i64,
    step: i64,
    base: i64,
    value: impl Fn(i64) -> Result<i64, LayoutError>,
) -> Result<Leaves<Leaf>, LayoutError> {
    let mut modes = Leaves::new();
    let (mut left, mut run) = (extent, 1_i64);
    while left > 1 {
        let index = |x: i64| x.checked_mul(run).and_then(|x| x.checked_mul(step)).fits(op);
        let stride = value(index(1)?)?.checked_sub(base).fits(op)?;
        let alone = |x: i64| stride.checked_mul(x).and_then(|sum| sum.checked_add(base));
        let mut end = 2;
        while end < left && Some(value(index(end)?)?) == alone(end) {
            end += 1;
        }
        if left % end != 0 {
            let (index, alone) = (index(end)?, alone(end).fits(op)?);
            return Err(LayoutError::NotAdditive { op, index, value: value(index)?, alone });
        }
        modes.push(Leaf { extent: end, stride });
        (left, run) = (left / end, run.checked_mul(end).fits(op)?);
    }
    coalesced(&modes).fits(op)
}

/// The layout over a refinement of `shape`, whose extents are powers of two, with these steps for
/// the bits of the index.
pub(super) fn refined(shape: &Tree<i64>, steps: &[i64]) -> Result<Layout, LayoutError> {
    let mut steps = steps.iter();
    let mut parts = SmallVec::<[Leaves<Leaf>; 8]>::new();
    for extent in shape.leaves() {
        let bits = extent.trailing_zeros() as usize;
        let leaves: Leaves<Leaf> = steps.by_ref().take(bits).map(|step| Leaf { extent: 2, stride: *step }).collect();
        parts.push(coalesced(&leaves).fits("to_layout")?);
    }
    substituted(shape.profile(), &parts)
}

/// The layout in which modes replace each leaf of a profile: several modes as a flat tuple, none as
/// `1:0`.
fn substituted(profile: &Profile, parts: &[Leaves<Leaf>]) -> Result<Layout, LayoutError> {
    let mut builder = ProfileBuilder::new();
    builder.substitute(profile.as_ref(), &mut |leaf, out| match parts.get(leaf).map_or(0, |part| part.len()) {
        0 | 1 => out.leaf(),
        several => out.flat(several),
    });
    let unit = Leaf { extent: 1, stride: 0 };
    let mut leaves = Leaves::new();
    for part in parts {
        if part.is_empty() {
            leaves.push(unit);
        }
        leaves.extend(part.iter().copied());
    }
    Layout::from_tree(Tree::from_parts(builder.finish()?, leaves))
}

/// `S o offset o L` with the function `affine`, with the identity as `S` if possible; None if there
/// is none. The criterion is at the head of this file.
fn unswizzled(shape: &Tree<i64>, affine: &Affine) -> Result<Option<Composed>, LayoutError> {
    let rows: SmallVec<[u64; 64]> = (0..64).map(|row| affine.row(row).0).collect();
    let mixed = |row: &u64| row.count_ones() > 1;
    let low = rows.iter().position(mixed);
    let high = rows.iter().rposition(mixed);
    let (Some(low), Some(high)) = (low, high) else { return with_swizzle(shape, affine, Swizzle::new(0, 0, 0)?) };
    let bits = high - low + 1;
    let row = |row: usize| rows.get(row).copied().unwrap_or(0);
    // Small distances first, and for each distance first the swizzles that read from above.
    for distance in bits..64 {
        let above = high + distance < 63 && (low..=high).all(|k| (row(k) ^ row(k + distance)).count_ones() < 2);
        let below = low >= distance && (low..=high).all(|k| (row(k) ^ row(k - distance)).count_ones() < 2);
        let (bits, low, distance) = (bits as i64, low as i64, distance as i64);
        let swizzle = match (above, below) {
            (true, _) => Swizzle::new(bits, low, distance),
            (_, true) => Swizzle::new(bits, low - distance, -distance),
            _ => continue,
        };
        if let Ok(swizzle) = swizzle
            && let Some(found) = with_swizzle(shape, affine, swizzle)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The function as `swizzle o offset o L`; None if it is not of this form, or a number is not
/// representable.
fn with_swizzle(shape: &Tree<i64>, affine: &Affine, swizzle: Swizzle) -> Result<Option<Composed>, LayoutError> {
    let sum = affine.swizzled(swizzle).parities();
    let Some((steps, offset)) = sum.and_then(|sum| Some((sum.steps()?, sum.eval(0)?))) else { return Ok(None) };
    Ok(Composed::new(swizzle, offset, refined(shape, &steps)?).ok())
}

impl BitMatrix {
    /// The function of a layout whose extents are powers of two: column `i` is the image of bit `i`
    /// of the index. A negative value has 64 bits.
    ///
    /// Errors: an extent is not a power of two ([`LayoutError::NotDivisible`]); the layout is not
    /// linear over bits: the offsets of two bits of the index have a common bit
    /// ([`LayoutError::NotLinear`]).
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let bits = |text: &str| BitMatrix::of_layout(&text.parse().unwrap());
    /// assert_eq!(bits("(2,4):(4,1)").unwrap().to_string(), "F2<3>[4,1,2]");
    /// let error = bits("(2,4):(1,3)").unwrap_err().to_string(); // 1 and 3 share bit 0
    /// assert_eq!(error, "bit_matrix: not linear over bits: the value at index 3 is 4, but its bits 0b11, each alone, come to 2 by XOR");
    /// ```
    pub fn of_layout(layout: &Layout) -> Result<BitMatrix, LayoutError> {
        Composed::from(layout).bit_matrix()
    }

    /// The layout with integer strides that is the same function. Its shape refines the given
    /// shape, whose extents are powers of two.
    ///
    /// It exists exactly when no two columns have a common bit: a layout is additive over the bits
    /// of its index, and the sum of two numbers is their XOR exactly when they have no common bit.
    ///
    /// Errors: there is none ([`LayoutError::NotAdditive`]); an extent is not a power of two; the
    /// size is not `2^inputs`.
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let matrix = BitMatrix::new(3, [4, 1, 2]).unwrap();
    /// assert_eq!(matrix.to_layout(&"(4,2)".parse().unwrap()).unwrap().to_string(), "((2,2),2):((4,1),2)");
    /// ```
    pub fn to_layout(&self, shape: &Tree<i64>) -> Result<Layout, LayoutError> {
        const OP: &str = "to_layout";
        let affine = self.over(OP, shape)?;
        let sum = affine.parities().fits(OP)?;
        let steps = sum.steps().ok_or_else(|| sum.not_additive(OP))?;
        refined(shape, &steps)
    }

    /// The composed layout that is the same function over a shape of power-of-two extents: a layout
    /// if there is one, else `S<b,m,s> o offset o L` if there is one, else this matrix after the
    /// compact layout of the shape.
    ///
    /// Errors: an extent is not a power of two; the size is not `2^inputs`.
    ///
    /// ```
    /// use tilewright_layout::BitMatrix;
    ///
    /// let composed = |columns: [u64; 4]| BitMatrix::of_columns(columns).unwrap().to_composed(&"(4,4)".parse().unwrap()).unwrap().to_string();
    /// assert_eq!(composed([1, 2, 5, 10]), "S<2,0,2> o 0 o (4,4):(1,4)");
    /// assert_eq!(composed([1, 2, 4, 15]), "F2<4>[1,2,4,15] o 0 o (4,4):(1,4)");
    /// ```
    pub fn to_composed(&self, shape: &Tree<i64>) -> Result<Composed, LayoutError> {
        Composed::of_affine(shape, &self.over("to_composed", shape)?)
    }

    /// The matrix as a function of the index of a shape.
    fn over(&self, op: &'static str, shape: &Tree<i64>) -> Result<Affine, LayoutError> {
        refuse_odd(op, shape.profile(), shape.leaves().iter().copied())?;
        let size = shape.product()?;
        let bits = i64::from(size.trailing_zeros());
        if bits != self.inputs() as i64 {
            return Err(LayoutError::Size { op, left: bits, right: self.inputs() as i64 });
        }
        Ok(Affine { constant: 0, columns: self.columns().into() })
    }
}

impl Swizzle {
    /// The swizzle as a composed layout of one block: `S o 0 o 2^(bits + base + |shift|):1`, the
    /// least extent that it permutes (CuTe `make_layout` of a swizzle, with the right extent).
    ///
    /// Errors: the extent is not representable.
    ///
    /// ```
    /// use tilewright_layout::Swizzle;
    ///
    /// assert_eq!(Swizzle::new(2, 0, 3).unwrap().layout().unwrap().to_string(), "S<2,0,3> o 0 o 32:1");
    /// ```
    pub fn layout(self) -> Result<Composed, LayoutError> {
        let bits = self.bits() + self.base() + self.shift().abs();
        let size = 1_i64.checked_shl(bits as u32).filter(|size| *size > 0);
        let size = size.fits("make_layout")?;
        Composed::new(self, 0, Layout::mode_of(size, 1)?)
    }
}

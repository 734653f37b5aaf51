//! Inverses, images and complements of composed layouts.
//!
//! # Laws
//!
//! * Left: `R(X(R(k))) = R(k)` for every index `k`. On an injective map this says `X(R(k)) = k`.
//! * Right: `R(X(i)) = i` for every `i` below the size of `X`, with `X(i)` an index of `R`; the
//!   largest such map.
//! * The image of `R`, as a layout and an offset: `offset + L(j)` are the values, each once, in
//!   increasing order.
//! * `complement(R, M)`: the layout `C` such that the sums of the values of `R` and `C` cover
//!   `[0, N)`, each number once, where `N` is `M` rounded up to what they tile.
//!
//! *Affine over bits*, `R(x) = t ^ M(x)`: with `P` the pseudo-inverse of `M`, `X(y) = P(y ^ t)` is
//! a left inverse, because `y ^ t` is in the image of `M` for every value `y`. It is also a right
//! inverse as far as `0, 1, ..` are values: as far as `t`, `t ^ 1`, `t ^ 2`, `t ^ 4`, .. are in the
//! image of `M`, a power of two of them. It is affine over bits, too. So inverses of swizzled
//! layouts of power-of-two extents always exist.
//!
//! *Otherwise* the left inverse of `A o offset o B` is `B' o -offset o A'`, where `A'` inverts `A`
//! on all values of `offset + B`, and `B'` is a left inverse of `B`. If `A` has no inverse there, a
//! layout with an offset is searched. A right inverse is a left inverse, cut where the values
//! `0, 1, ..` end.
//!
//! *The image* of `t ^ M` is a coset; with the reduced basis of `M` and the least `t` its numbers
//! are enumerated in increasing order. So it is the image of a layout exactly when that enumeration
//! is additive. *A set and its complement cover an interval* only if the set is the image of a
//! layout whose strides form a divisibility chain (de Bruijn, on number systems). So the complement
//! of the image's layout decides.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::plain::modes_of;
use super::{Affine, Composed, OuterMap};
use crate::algebra::search::{self, MAX_TABLE};
use crate::bits::matrix::{BitMatrix, Columns, low_bits, remainder};
use crate::composed::largest::between;
use crate::limits::{MAX_BITS, MAX_CANDIDATES, MAX_INDICES};
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::interrupt;
use crate::value::layout::{Layout, Leaf};
use crate::value::tree::{Leaves, Tree};

/// The most indices of the least value that are tried in a search for a left inverse.
const MAX_FIRST: usize = 8;

const LEFT: &str = "left_inverse";
const RIGHT: &str = "right_inverse";

impl Composed {
    /// A map `X` with `R(X(R(k))) = R(k)` for every index `k`: it maps a value to an index with
    /// this value (CuTe `left_inverse`).
    ///
    /// For power-of-two extents and swizzles it always exists. As any composed layout, it is a
    /// function on all integers.
    ///
    /// Errors: an outer layout maps two offsets to the same value, or the inner layout leaves its
    /// domain, and the search finds no layout with an offset that is a left inverse
    /// ([`LayoutError::Undecided`]); the inner layout has no left inverse; a number is not
    /// representable.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let left = |text: &str| text.parse::<Composed>().unwrap().left_inverse().unwrap().to_string();
    /// assert_eq!(left("S<2,0,2> o 0 o (4,4):(4,1)"), "S<2,0,-2> o 0 o (4,4):(4,1)");
    /// assert_eq!(left("S<1,0,2> o 3 o (3,2):(1,5)"), "(5,2):(1,3) o -3 o S<1,0,2> o 0 o 11:1");
    /// assert_eq!(left("(5,8):(2,3) o 0 o 6:1"), "(2,5):(4,1) o 0 o 9:1"); // 0, 2, 4, 6, 8, 3
    /// ```
    pub fn left_inverse(&self) -> Result<Composed, LayoutError> {
        if let Some(found) = self.affine().and_then(|affine| affine_left_inverse(&affine)) {
            return found;
        }
        match self.undone() {
            Some(map) => Composed::new(map?, 0, Layout::mode_of(self.reach()?, 1)?),
            None => {
                let Ok((layout, offset)) = self.to_layout() else { return self.left_by_values() };
                let back = OuterMap::Layout(layout.left_inverse()?);
                let offset = offset.checked_neg().fits(LEFT)?;
                let domain = Layout::mode_of(self.reach()?, 1)?;
                let inverse = Composed::new(back.after(&offset, &OuterMap::identity())?, 0, domain)?;
                // A layout mirrors below zero and this map may not, so the indices must be within
                // the domain.
                for index in 0..self.size().min(MAX_INDICES) {
                    interrupt::check(LEFT)?;
                    let value = self.eval(&index)?;
                    let back = inverse.eval(&value)?;
                    if !(0..self.size()).contains(&back) || self.eval(&back)? != value {
                        return Err(undecided(LEFT));
                    }
                }
                if self.size() > MAX_INDICES { Err(undecided(LEFT)) } else { Ok(inverse) }
            }
        }
    }

    /// The largest map `X` with `R(X(i)) = i` for every `i` below its size (CuTe `right_inverse`).
    ///
    /// If there is no left inverse, it is the largest layout with an offset.
    ///
    /// Errors: 0 is not a value ([`LayoutError::NoPreimage`]); as [`Composed::left_inverse`]; more
    /// than [`MAX_INDICES`] values or [`MAX_CANDIDATES`] candidates would have to be tried
    /// ([`LayoutError::Undecided`]), which does not happen for power-of-two extents and swizzles.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let right = |text: &str| text.parse::<Composed>().unwrap().right_inverse().map(|map| map.to_string());
    /// assert_eq!(right("S<2,0,2> o 0 o (4,4):(4,1)").unwrap(), "S<2,0,-2> o 0 o (4,4):(4,1)");
    /// assert_eq!(right("S<2,0,2> o 0 o (4,4):(8,1)").unwrap(), "S<0,0,0> o 0 o 4:4");
    /// assert_eq!(right("S<2,0,2> o 16 o 16:1").unwrap_err().to_string(), "right_inverse: nothing has the value 0");
    /// ```
    pub fn right_inverse(&self) -> Result<Composed, LayoutError> {
        if let Some(affine) = self.affine() {
            return affine_right_inverse(&affine);
        }
        let left = match self.left_inverse() {
            Err(LayoutError::NoLeftInverse(_) | LayoutError::Undecided { .. }) => return self.right_by_values(),
            left => left?,
        };
        let most = self.size().min(MAX_INDICES);
        let mut count = 0;
        while count < most {
            interrupt::check(RIGHT)?;
            let index = left.eval(&count)?;
            if !(0..self.size()).contains(&index) || self.eval(&index)? != count {
                break;
            }
            count += 1;
        }
        match count {
            0 => Err(LayoutError::NoPreimage { op: RIGHT, value: 0 }),
            _ if count == most && most < self.size() => Err(undecided(RIGHT)),
            _ => left.compose(&Layout::mode_of(count, 1)?),
        }
    }

    /// A layout with an offset that is a left inverse; values are counted from the least one.
    fn left_by_values(&self) -> Result<Composed, LayoutError> {
        if self.size() > MAX_TABLE {
            return Err(undecided(LEFT));
        }
        let mut indices: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for index in 0..self.size() {
            interrupt::check(LEFT)?;
            indices.entry(self.eval(&index)?).or_default().push(index);
        }
        let mut values = indices.into_iter();
        let (least, firsts) = values.next().fits(LEFT)?;
        let values: Vec<(i64, Vec<i64>)> = values.collect();
        let start = least.checked_neg().fits(LEFT)?;
        for first in firsts.into_iter().take(MAX_FIRST) {
            // Indices are not negative, so their differences are representable.
            let apart = |(value, indices): &(i64, Vec<i64>)| {
                Some((value.checked_sub(least)?, indices.iter().map(|index| index - first).collect()))
            };
            let points = values.iter().map(apart).collect::<Option<_>>().fits(LEFT)?;
            let found = search::through(points, self.size());
            interrupt::check(LEFT)?;
            if let Some(layout) = found {
                let back = OuterMap::Layout(layout).after(&start, &OuterMap::identity())?;
                let back = if first == 0 { back } else { OuterMap::identity().after(&first, &back)? };
                return Composed::new(back, 0, Layout::mode_of(self.reach()?, 1)?);
            }
        }
        Err(LayoutError::Undecided { op: LEFT, limit: MAX_CANDIDATES })
    }

    /// The longest layout with an offset that is a right inverse.
    fn right_by_values(&self) -> Result<Composed, LayoutError> {
        let search = RightSearch::new(self)?;
        let (offset, modes) = search.run()?;
        Composed::new(OuterMap::identity(), offset, Layout::flat(modes)?.coalesce()?)
    }

    /// An upper bound of all values, at least 1: the largest value plus one, if it is found.
    fn reach(&self) -> Result<i64, LayoutError> {
        let end = match self.cosize() {
            Ok(cosize) => cosize,
            Err(_) => {
                let (least, greatest) = self.inner.range()?;
                let (low, high) = (self.offset.checked_add(least), self.offset.checked_add(greatest));
                let (low, high) = low.zip(high).fits(LEFT)?;
                let (_, greatest) = between(&self.outer, low.into(), high.into());
                i64::try_from(greatest.saturating_add(1)).map_err(|_| LayoutError::overflow(LEFT))?
            }
        };
        Ok(end.max(1))
    }

    /// `B' o -offset o A'`; None if no inverse of `A` on all values of `offset + B` is known.
    fn undone(&self) -> Option<Result<OuterMap, LayoutError>> {
        let (least, greatest) = self.inner.range().ok()?;
        let (low, high) = (self.offset.checked_add(least)?, self.offset.checked_add(greatest)?);
        let outer = undo(&self.outer, low, high)?;
        let offset = self.offset.checked_neg()?;
        Some(self.inner.left_inverse().and_then(|inner| OuterMap::Layout(inner).after(&offset, &outer)))
    }

    /// The values as a layout and an offset: `offset + L(j)` for `j` below the size of `L`, each
    /// value once, in increasing order.
    ///
    /// Errors: the values are not those of a layout ([`LayoutError::NotAdditive`], the index
    /// counting the values); where the map is not known to be affine over bits, a domain of more
    /// than [`MAX_INDICES`] coordinates is not enumerated ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<2,0,2> o 0 o (4,4):(8,1)".parse().unwrap();
    /// let (image, offset) = tile.image_layout().unwrap();
    /// assert_eq!((image.to_string().as_str(), offset), ("(4,4):(1,8)", 0));
    /// ```
    pub fn image_layout(&self) -> Result<(Layout, i64), LayoutError> {
        self.image_layout_in("image_layout")
    }

    /// [`Composed::image_layout`], with the name of the operation that needs it in the error.
    fn image_layout_in(&self, op: &'static str) -> Result<(Layout, i64), LayoutError> {
        if let Some(affine) = self.affine().filter(|affine| i64::try_from(affine.support()).is_ok()) {
            let image = BitMatrix::from_valid(MAX_BITS, affine.columns.clone()).image();
            let constant = remainder(&image, affine.constant);
            let increasing = Affine { constant, columns: image.into() };
            let sum = increasing.parities().fits(op)?;
            let steps = sum.steps().ok_or_else(|| sum.not_additive(op))?;
            let shape = Tree::flat(core::iter::repeat_n(2, steps.len()))?;
            return Ok((super::plain::refined(&shape, &steps)?.coalesce()?, constant as i64));
        }
        let values = self.image()?;
        let first = values.first().copied().unwrap_or(0);
        let count = values.len() as i64;
        let value = |index: i64| {
            let value = usize::try_from(index).ok().and_then(|index| values.get(index));
            value.copied().fits(op)
        };
        let layout = Layout::flat(modes_of(op, count, 1, first, value)?)?;
        for index in 0..count {
            let (value, alone) = (value(index)?, layout.eval(&index)?.checked_add(first));
            if Some(value) != alone {
                let alone = alone.fits(op)?;
                return Err(LayoutError::NotAdditive { op, index, value, alone });
            }
        }
        Ok((layout, first))
    }

    /// The values, each once, in increasing order.
    ///
    /// Errors: there are more than [`MAX_INDICES`] coordinates, without modes of stride 0; a value
    /// is not representable.
    pub fn image(&self) -> Result<Vec<i64>, LayoutError> {
        let moving = self.filter_zeros()?;
        if moving.size() > MAX_INDICES {
            return Err(undecided("image"));
        }
        let value = |index| interrupt::check("image").and_then(|()| moving.eval(&index));
        let mut values = (0..moving.size()).map(value).collect::<Result<Vec<i64>, LayoutError>>()?;
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    /// The layout whose values, added to those of this map, cover each number of `[0, target)`
    /// once: [`Layout::complement`] of their layout.
    ///
    /// Errors: the values do not begin at 0, or are not those of a layout whose strides form a
    /// chain, so that no complement exists; as [`Composed::image_layout`].
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let complement = |text: &str| text.parse::<Composed>().unwrap().complement(&64).map(|layout| layout.to_string());
    /// assert_eq!(complement("S<2,0,2> o 0 o (4,4):(4,1)").unwrap(), "4:16");
    /// assert_eq!(complement("S<2,0,2> o 0 o 4:4").unwrap(), "(5,4):(1,20)"); // 0, 5, 10, 15 are the multiples of 5
    /// ```
    pub fn complement(&self, target: &i64) -> Result<Layout, LayoutError> {
        match self.as_layout() {
            Some(layout) => layout.complement(target),
            None => self.whole_image()?.complement(target),
        }
    }

    /// [`Layout::complement_open`] of the layout of the values. Errors: as
    /// [`Composed::complement`].
    pub fn complement_open(&self) -> Result<Layout, LayoutError> {
        match self.as_layout() {
            Some(layout) => layout.complement_open(),
            None => self.whole_image()?.complement_open(),
        }
    }

    /// A layout of offsets at which copies of the values do not overlap:
    /// [`Layout::weak_complement`] of the layout of the values, which need not begin at 0.
    ///
    /// Errors: the values are not those of a layout; modes overlap; as [`Composed::image_layout`].
    pub fn weak_complement(&self, target: &i64) -> Result<Layout, LayoutError> {
        match self.as_layout() {
            Some(layout) => layout.weak_complement(target),
            None => self.image_layout_in("weak_complement")?.0.weak_complement(target),
        }
    }

    /// [`Layout::weak_complement_open`] of the layout of the values. Errors: as
    /// [`Composed::weak_complement`].
    pub fn weak_complement_open(&self) -> Result<Layout, LayoutError> {
        match self.as_layout() {
            Some(layout) => layout.weak_complement_open(),
            None => self.image_layout_in("weak_complement")?.0.weak_complement_open(),
        }
    }

    /// The layout of the values; refuses values that do not begin at 0.
    fn whole_image(&self) -> Result<Layout, LayoutError> {
        let op = "complement";
        match self.image_layout_in(op)? {
            (layout, 0) => Ok(layout),
            (_, value) => {
                let what = "the least value";
                Err(LayoutError::Argument { op, what, value, wanted: "0" })
            }
        }
    }

    /// Whether different coordinates have different values.
    ///
    /// Errors: neither is the map known to be affine over bits, nor its outer map to be injective,
    /// and there are more than [`MAX_INDICES`] coordinates ([`LayoutError::Undecided`]); as
    /// [`Layout::is_injective`].
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        if let Some(affine) = self.affine() {
            return Ok(BitMatrix::from_valid(MAX_BITS, affine.columns).is_injective());
        }
        let (least, greatest) = self.inner.range()?;
        let ends = self.offset.checked_add(least).zip(self.offset.checked_add(greatest));
        if ends.is_some_and(|(low, high)| undo(&self.outer, low, high).is_some()) {
            return self.inner.is_injective();
        }
        if self.filter_zeros()?.size() < self.size() {
            return Ok(false);
        }
        Ok(self.image()?.len() as i64 == self.size())
    }
}

fn undecided(op: &'static str) -> LayoutError {
    LayoutError::Undecided { op, limit: MAX_INDICES as usize }
}

/// The left inverse `y -> P(y ^ t)`, over all numbers with as many bits as the values; None if
/// values are negative or there are too many.
fn affine_left_inverse(affine: &Affine) -> Option<Result<Composed, LayoutError>> {
    let support = affine.support();
    let bits = support.checked_ilog2().map_or(0, |top| top as usize + 1);
    let size = 1_i64.checked_shl(bits as u32).filter(|size| *size > 0)?;
    let back = BitMatrix::from_valid(bits, affine.columns.clone()).pseudo_inverse();
    let columns: Columns = back.columns().into();
    let inverse = Affine { constant: back.apply(affine.constant), columns };
    Some(Composed::of_affine(&Tree::leaf(size), &inverse))
}

/// The same map, cut at the first of the numbers `0, 1, ..` that is not a value.
fn affine_right_inverse(affine: &Affine) -> Result<Composed, LayoutError> {
    let matrix = BitMatrix::from_valid(MAX_BITS, affine.columns.clone());
    let image = matrix.image();
    if remainder(&image, affine.constant) != 0 {
        return Err(LayoutError::NoPreimage { op: RIGHT, value: 0 });
    }
    let back = matrix.pseudo_inverse();
    let columns: Columns = back
        .columns()
        .iter()
        .enumerate()
        .take_while(|(bit, _)| remainder(&image, 1 << bit) == 0)
        .map(|(_, c)| *c)
        .collect();
    // There are at most as many columns as bits of the index.
    let size = 1_i64.checked_shl(columns.len() as u32).fits(RIGHT)?;
    Composed::of_affine(&Tree::leaf(size), &Affine { constant: back.apply(affine.constant), columns })
}

/// A map that inverts `outer` on all offsets from `low` to `high`; None if `outer` is not known to
/// be injective there.
fn undo(outer: &OuterMap, low: i64, high: i64) -> Option<OuterMap> {
    match outer {
        OuterMap::Swizzle(swizzle) => Some(OuterMap::Swizzle(*swizzle)),
        OuterMap::Bits(matrix) if matrix.inputs() == matrix.outputs() => {
            Some(OuterMap::of_matrix(matrix.inverse().ok()?))
        }
        OuterMap::Bits(matrix) => {
            // The inverse reads only the bits of a value, so all offsets must be within the inputs.
            let inside = low >= 0 && high as u64 <= low_bits(matrix.inputs());
            let left = matrix.left_inverse().ok().filter(|_| inside)?;
            Some(OuterMap::Bits(left))
        }
        OuterMap::Layout(layout) => {
            if outer.is_identity() {
                return Some(OuterMap::identity());
            }
            let inside = low >= 0 && high < layout.size() && layout.is_injective().unwrap_or(false);
            Some(OuterMap::Layout(layout.left_inverse().ok().filter(|_| inside)?))
        }
        OuterMap::Chain(chain) => {
            let first = undo(&chain.inner, low, high)?;
            let (least, greatest) = between(&chain.inner, low.into(), high.into());
            let low = i64::try_from(least).ok()?.checked_add(chain.offset)?;
            let high = i64::try_from(greatest).ok()?.checked_add(chain.offset)?;
            let last = undo(&chain.outer, low, high)?;
            first.after(&chain.offset.checked_neg()?, &last).ok()
        }
    }
}

/// A search for a right inverse by the values of a map: see [`Composed::right_inverse`].
///
/// A layout with an offset that is a right inverse for the first `c` values is extended by a mode
/// whose step leads to an index of value `c`; its extent is the number of blocks of `c` values that
/// are then correct.
struct RightSearch {
    /// The values by index; and the values with their indices, sorted.
    values: Vec<i64>,
    sorted: Vec<(i64, i64)>,
    /// The least number that is not a value.
    most: i64,
    left: usize,
    best: (i64, i64, Leaves<Leaf>),
}

impl RightSearch {
    fn new(map: &Composed) -> Result<RightSearch, LayoutError> {
        if map.size() > MAX_INDICES {
            return Err(undecided(RIGHT));
        }
        let value = |index| interrupt::check(RIGHT).and_then(|()| map.eval(&index));
        let values = (0..map.size()).map(value).collect::<Result<Vec<i64>, LayoutError>>()?;
        let mut sorted: Vec<(i64, i64)> = values.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let most = sorted.iter().fold(0, |next, (value, _)| next + i64::from(*value == next));
        Ok(RightSearch { values, sorted, most, left: MAX_CANDIDATES, best: (0, 0, Leaves::new()) })
    }

    /// The offset and the modes of the longest right inverse.
    fn run(mut self) -> Result<(i64, Leaves<Leaf>), LayoutError> {
        for offset in self.indices(0) {
            self.extend(offset, &mut Leaves::new(), &[offset]);
        }
        interrupt::check(RIGHT)?;
        match self.best {
            (0, ..) => Err(LayoutError::NoPreimage { op: RIGHT, value: 0 }),
            (count, ..) if self.left == 0 && count < self.most => {
                Err(LayoutError::Undecided { op: RIGHT, limit: MAX_CANDIDATES })
            }
            (_, offset, modes) => Ok((offset, modes)),
        }
    }

    fn indices(&self, value: i64) -> Vec<i64> {
        let first = self.sorted.partition_point(|(other, _)| *other < value);
        self.sorted.iter().skip(first).take_while(|(other, _)| *other == value).map(|(_, index)| *index).collect()
    }

    fn has(&self, index: i64, value: i64) -> bool {
        usize::try_from(index).ok().and_then(|index| self.values.get(index)) == Some(&value)
    }

    /// Tries all modes that may be appended; `indices` are the values of the modes so far.
    fn extend(&mut self, offset: i64, modes: &mut Leaves<Leaf>, indices: &[i64]) {
        let covered = indices.len();
        if covered as i64 > self.best.0 {
            self.best = (covered as i64, offset, modes.clone());
        }
        for next in self.indices(covered as i64) {
            if self.left == 0 || self.best.0 == self.most || interrupt::is_requested() {
                return;
            }
            let step = next - offset;
            let mut longer = indices.to_vec();
            for block in 1.. {
                self.left = self.left.saturating_sub(1);
                // Indices are below the limit, and so are the blocks.
                let right = |(place, index): (usize, &i64)| {
                    self.has(index + block * step, block * covered as i64 + place as i64)
                };
                if self.left == 0 || !indices.iter().enumerate().all(right) {
                    break;
                }
                longer.extend(indices.iter().map(|index| index + block * step));
            }
            for extent in (2..=longer.len() / covered).rev() {
                modes.push(Leaf { extent: extent as i64, stride: step });
                self.extend(offset, modes, longer.get(..extent * covered).unwrap_or_default());
                modes.pop();
                if self.left == 0 {
                    return;
                }
            }
        }
    }
}

//! Two maps as the modes of one: `make_layout` for composed layouts.
//!
//! Law: `R(x, y) = X(x) + Y(y)`, over the domain whose mode 0 is that of `X` and whose mode 1 is
//! that of `Y`. Division and product with composed layouts are such sums ([`super::arrangement`]).
//!
//! If both are layouts with offsets, `R` is one too. If both are sums of parities
//! ([`super::parity`]), so is `R`; and if `R` is affine over bits, it has a form that is computed
//! from `R` alone.
//!
//! *Otherwise both are packed into one number, to which one chain of maps is applied.* Let the
//! values of `X` be below `2^p`. The low `p` bits of the packed number are `X(x)`, and the bits
//! above are the argument `v` of the outer maps of `Y`: `e = X(x) + 2^p * v`. A map over bits acts
//! on the high bits when it is moved up by `p` (on every integer, because it keeps the bits above
//! it). A layout `L` acts on them when it becomes `(2^p, ..L..)`, whose last mode is that of `L`
//! (for nonnegative numbers, because a layout mirrors below 0). At the end, `(2^p, n):(1, 1)` adds
//! the two parts. A map over bits in the outer chain of `X` stays as it is, if it moves only the
//! low bits. So `R` is that chain after the layout with modes `B_X` and `2^p * B_Y`.

use super::{Affine, Composed, OuterMap, Parities};
use crate::bits::matrix::BitMatrix;
use crate::bits::swizzle::Swizzle;
use crate::composed::largest::between;
use crate::limits::MAX_BITS;
use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Stride;
use crate::value::tree::{Leaves, Tree};

const OP: &str = "beside";

/// The layout and the offset that equal a map; None if it is not of this form.
type Plain = Option<(Layout, i64)>;

/// Combines the inner layouts of the low map and of the high map into one layout, whose value is
/// the sum of both.
pub(super) type Join<'a> = &'a dyn Fn(&Layout, &Layout) -> Result<Layout, LayoutError>;

impl Composed {
    /// The map with this one as mode 0 and `other` as mode 1: `(x, y) -> X(x) + Y(y)` (what
    /// `make_layout` does with layouts).
    ///
    /// If possible, the result is a layout with an offset, or one map over bits after a layout. Its
    /// shape is the pair of the two shapes; a leaf of it becomes several modes only if there is no
    /// other form.
    ///
    /// Errors: neither map is a layout with an offset, or a map over bits of one, and their sum is
    /// not affine over bits ([`LayoutError::NotLinear`], [`LayoutError::Undecided`]); a number is
    /// not representable; the result is a chain of more than [`crate::limits::MAX_CHAIN`] maps.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let composed = |text: &str| text.parse::<Composed>().unwrap();
    /// let beside = |x: &str, y: &str| composed(x).beside(&composed(y)).unwrap().to_string();
    /// assert_eq!(beside("S<1,0,1> o 0 o 4:1", "S<0,0,0> o 0 o 3:4"), "S<1,0,1> o 0 o (4,3):(1,4)");
    /// assert_eq!(beside("S<0,0,0> o 0 o 4:1", "16:4 o 0 o S<1,0,1> o 0 o 4:1"), "S<1,2,1> o 0 o (4,4):(1,4)");
    /// assert_eq!(beside("S<0,0,0> o 0 o 3:1", "16:3 o 0 o S<1,0,1> o 0 o 4:1"), "(4,16):(1,3) o 0 o S<1,2,1> o 0 o (3,4):(1,4)");
    /// ```
    pub fn beside(&self, other: &Composed) -> Result<Composed, LayoutError> {
        let shape = Tree::tuple([&self.shape(), &other.shape()])?;
        // Refuses here if the size of the whole is not representable.
        Layout::compact(&shape)?;
        let plain = (self.to_layout().ok(), other.to_layout().ok());
        // A leaf of the shape that would become several modes stays one as long as another form
        // exists.
        let same_shape =
            |map: &Composed, plain: &Plain| plain.clone().filter(|(layout, _)| layout.profile() == map.profile());
        let kept = (same_shape(self, &plain.0), same_shape(other, &plain.1));
        let found = self.joined(other, &kept, Composed::of_affine_over);
        let found =
            found.or_else(|| if kept == plain { None } else { self.joined(other, &plain, Composed::of_affine) });
        match (found, self.sum(other)) {
            (Some(found), _) => found,
            (None, Some(sum)) => Err(sum.not_affine(OP)),
            (None, None) => Err(LayoutError::Undecided { op: OP, limit: crate::limits::MAX_INDICES as usize }),
        }
    }

    fn sum(&self, other: &Composed) -> Option<Parities> {
        self.parities().zip(other.parities()).and_then(|(x, y)| x.beside(&y))
    }

    /// [`Composed::beside`], given the layouts and offsets that equal the two maps, as far as they
    /// are needed.
    fn joined(
        &self,
        other: &Composed,
        (x, y): &(Plain, Plain),
        of_affine: impl Fn(&Tree<i64>, &Affine) -> Result<Composed, LayoutError>,
    ) -> Option<Result<Composed, LayoutError>> {
        if let (Some((x, first)), Some((y, second))) = (x, y) {
            let offset = first.checked_add(*second).fits(OP);
            return Some(offset.and_then(|offset| Composed::new(OuterMap::identity(), offset, Layout::tuple([x, y])?)));
        }
        let (low, high): (Join<'_>, Join<'_>) =
            (&|low, high| Layout::tuple([low, high]), &|low, high| Layout::tuple([high, low]));
        for (plain, map, join) in [(x, other, low), (y, self, high)] {
            if let Some((layout, offset)) = plain
                && let Some(found) = above(layout, *offset, map, join)
            {
                return Some(found);
            }
        }
        if let Some(affine) = self.sum(other).and_then(|sum| sum.affine()) {
            return Some(Tree::tuple([&self.shape(), &other.shape()]).and_then(|shape| of_affine(&shape, &affine)));
        }
        packed(self, x, other, low).or_else(|| packed(other, y, self, high))
    }
}

impl Composed {
    /// The map with these modes: repeated [`Composed::beside`].
    ///
    /// Errors: as [`Composed::beside`].
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let composed = |text: &str| text.parse::<Composed>().unwrap();
    /// let modes = [composed("S<1,0,1> o 0 o 4:1"), composed("S<0,0,0> o 0 o 3:4"), composed("S<0,0,0> o 0 o 2:16")];
    /// assert_eq!(Composed::tuple(&modes).unwrap().to_string(), "S<1,0,1> o 0 o (4,3,2):(1,4,16)");
    /// ```
    pub fn tuple<'a>(modes: impl IntoIterator<Item = &'a Composed>) -> Result<Composed, LayoutError> {
        let mut modes = modes.into_iter();
        let Some(first) = modes.next() else { return Ok(Composed::from(Layout::unit())) };
        let mut all = first.with(Layout::tuple([first.inner()])?)?;
        for mode in modes {
            let pair = all.beside(mode)?;
            let (Some(before), Some(last)) = (pair.inner().mode(0), pair.inner().mode(1)) else { continue };
            all = pair.with(before.append(&last)?)?;
        }
        Ok(all)
    }
}

/// The number of bits that a map over bits may change; it keeps the bits above. None for other
/// maps.
fn reach(map: &OuterMap) -> Option<usize> {
    match map {
        OuterMap::Swizzle(swizzle) => Some(swizzle.reach()),
        OuterMap::Bits(matrix) => (matrix.inputs() == matrix.outputs()).then_some(matrix.inputs()),
        _ => None,
    }
}

/// Applies the outer map of `map` to both, if that map keeps every offset to which the layout
/// moves.
fn above(layout: &Layout, offset: i64, map: &Composed, join: Join<'_>) -> Option<Result<Composed, LayoutError>> {
    let unit = 1_i64.checked_shl(reach(map.outer())? as u32).filter(|unit| *unit > 0)?;
    let steps = layout.leaves().iter().filter(|leaf| leaf.extent > 1).map(|leaf| leaf.stride);
    if steps.chain([offset]).any(|step| step % unit != 0) {
        return None;
    }
    let offset = map.offset().checked_add(offset)?;
    // The plain layout replaces the low map.
    let inner = join(layout, map.inner());
    Some(inner.and_then(|inner| Composed::new(map.outer().clone(), offset, inner)))
}

/// The low map in the low bits, and the high map through its chain above them. `plain` is the low
/// map, if it is a layout with an offset.
pub(super) fn packed(
    low: &Composed,
    plain: &Option<(Layout, i64)>,
    high: &Composed,
    join: Join<'_>,
) -> Option<Result<Composed, LayoutError>> {
    let identity = OuterMap::identity();
    let (outer, inner, offset, rest) = match plain {
        Some((layout, offset)) => {
            // Values are counted from the least one, which is added at the end.
            let (least, _) = layout.range().ok()?;
            (&identity, layout, least.checked_neg()?, offset.checked_add(least)?)
        }
        None => (low.outer(), low.inner(), *low.offset(), 0),
    };
    let (least, greatest) = inner.range().ok()?;
    let (least, greatest) = (offset.checked_add(least)?, offset.checked_add(greatest)?);
    if least < 0 {
        return None;
    }
    let bits = (64 - greatest.leading_zeros() as usize).max(reach(outer)?);
    let unit = 1_i64.checked_shl(bits as u32).filter(|unit| *unit > 0)?;
    let mut range = ends(high)?;
    let (mut map, unpacked) = lifted(high.outer(), bits, unit, &mut range)?;
    if !unpacked {
        // The last mode has no end; its extent is the number of values, if that makes a layout.
        let count = range.1.checked_add(1).filter(|count| range.0 >= 0 && *count > 0)?;
        let count = if count.checked_mul(unit).is_some() { count.max(2) } else { 2 };
        let parts = [Leaf { extent: unit, stride: 1 }, Leaf { extent: count, stride: 1 }];
        map = OuterMap::Layout(Layout::flat(parts.into_iter().collect()).ok()?).after(&0, &map).ok()?;
    }
    let offset = high.offset().checked_mul(unit)?.checked_add(offset)?;
    let inner = join(inner, &scaled(high.inner(), unit)?);
    let whole = || {
        let map = map.after(&0, outer)?;
        let map = if rest == 0 { map } else { identity.after(&rest, &map)? };
        Composed::new(map, offset, inner?)
    };
    Some(whole())
}

/// The least and the greatest value of `offset + B`.
fn ends(map: &Composed) -> Option<(i64, i64)> {
    let (least, greatest) = map.inner().range().ok()?;
    Some((map.offset().checked_add(least)?, map.offset().checked_add(greatest)?))
}

/// An interval that contains the values of the map for offsets within the given interval.
pub(super) fn values(map: &OuterMap, (low, high): (i64, i64)) -> Option<(i64, i64)> {
    if map.is_identity() {
        return Some((low, high));
    }
    let part = |low: i64, high: i64| between(map, low.into(), high.into());
    let (least, greatest) = match low < 0 && high >= 0 {
        // Numbers of both signs have no common leading bits.
        true => {
            let (below, above) = (part(low, -1), part(0, high));
            (below.0.min(above.0), below.1.max(above.1))
        }
        false => part(low, high),
    };
    Some((i64::try_from(least).ok()?, i64::try_from(greatest).ok()?))
}

/// The map moved above the low bits, and whether it has added the two parts. `range` is the
/// interval of its offsets, and afterwards that of its values.
fn lifted(map: &OuterMap, bits: usize, unit: i64, range: &mut (i64, i64)) -> Option<(OuterMap, bool)> {
    if let OuterMap::Chain(chain) = map {
        let (first, _) = lifted_one(&chain.inner, bits, unit, range, false)?;
        (range.0, range.1) = (range.0.checked_add(chain.offset)?, range.1.checked_add(chain.offset)?);
        let (last, done) = lifted(&chain.outer, bits, unit, range)?;
        return Some((last.after(&chain.offset.checked_mul(unit)?, &first).ok()?, done));
    }
    lifted_one(map, bits, unit, range, true)
}

/// As [`lifted`], for a map that is not a chain. A layout that is applied last also adds the two
/// parts.
fn lifted_one(map: &OuterMap, bits: usize, unit: i64, range: &mut (i64, i64), last: bool) -> Option<(OuterMap, bool)> {
    let offsets = *range;
    *range = values(map, offsets)?;
    match map {
        OuterMap::Swizzle(swizzle) => {
            let moved = Swizzle::new(swizzle.bits(), swizzle.base().checked_add(bits as i64)?, swizzle.shift()).ok()?;
            Some((OuterMap::Swizzle(moved), false))
        }
        OuterMap::Bits(matrix) => {
            let low = BitMatrix::identity(bits).ok().filter(|_| matrix.inputs() + bits <= MAX_BITS)?;
            Some((OuterMap::Bits(low.beside(matrix).ok()?), false))
        }
        OuterMap::Layout(layout) => {
            // For negative arguments a layout mirrors, but the packed number does not.
            let mut leaves: Leaves<Leaf> = Leaves::new();
            leaves.push(Leaf { extent: unit, stride: 1 });
            for leaf in layout.coalesce_z().ok().filter(|_| offsets.0 >= 0)?.leaves() {
                let stride = if last { leaf.stride } else { leaf.stride.checked_mul(unit)? };
                leaves.push(Leaf { extent: leaf.extent, stride });
            }
            Some((OuterMap::Layout(Layout::flat(leaves).ok()?), last))
        }
        OuterMap::Chain(_) => None,
    }
}

/// The layout with its strides multiplied.
fn scaled(layout: &Layout, by: i64) -> Option<Layout> {
    let leaves = layout.leaves().iter();
    let leaves = leaves.map(|leaf| Some(Leaf { extent: leaf.extent, stride: leaf.stride.times(&by)? }));
    let tree = Tree::new(layout.profile().clone(), leaves.collect::<Option<Leaves<Leaf>>>()?).ok()?;
    Layout::from_tree(tree).ok()
}

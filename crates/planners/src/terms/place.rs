//! The layouts that a relayout accepts.
//!
//! Law: a place maps each index to an offset: its base offset plus that of its layout, or the XOR
//! of the offsets of the bits of the index.

use std::fmt;

use tilewright_layout::{BitSpace, Composed, Layout, LayoutError, OuterMap, Swizzle};

use crate::error::PlanError;

/// A layout of a relayout: integer strides, optionally with an offset and a swizzle, or a linear
/// layout over bits.
///
/// ```
/// use tilewright_planners::Place;
/// use tilewright_layout::{BitSpace, Composed, Layout};
///
/// let rows = Place::from(&"(4,8):(8,1)".parse::<Layout>().unwrap());
/// assert_eq!((rows.to_string().as_str(), rows.reach().unwrap()), ("(4,8):(8,1)", 32));
/// let tile: Composed = "S<1,0,2> o 0 o (4,4):(4,1)".parse().unwrap();
/// assert_eq!(Place::try_from(&tile).unwrap().offset(1).unwrap(), 5);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub(crate) map: Option<Swizzle>,
    pub(crate) base: i64,
    pub(crate) layout: Layout,
    /// For a linear layout: the offsets of the indices that are powers of two, whose XOR is the
    /// offset of an index. `layout` then only gives the size.
    pub(crate) bits: Option<Vec<u64>>,
}

impl From<&Layout> for Place {
    fn from(layout: &Layout) -> Place {
        Place { map: None, base: 0, layout: layout.clone(), bits: None }
    }
}

impl TryFrom<&Composed> for Place {
    type Error = PlanError;

    /// The layout itself, if it is already of a supported form; otherwise an equal layout with
    /// strides, with a swizzle, or linear over bits.
    fn try_from(composed: &Composed) -> Result<Place, PlanError> {
        if let Ok((layout, base)) = composed.to_layout() {
            return Ok(Place { map: None, base, layout, bits: None });
        }
        let behind = |composed: &Composed| match composed.outer() {
            OuterMap::Swizzle(swizzle) => {
                let map = Some(*swizzle).filter(|swizzle| swizzle.bits() > 0);
                Some(Place { map, base: *composed.offset(), layout: composed.inner().clone(), bits: None })
            }
            _ => None,
        };
        let linear = || composed.bit_matrix().and_then(|matrix| matrix.to_composed(&composed.shape())).ok();
        let over_bits = || {
            let columns = composed.bit_matrix().ok()?.columns().to_vec();
            let layout = Layout::strided(1_i64.checked_shl(columns.len() as u32)?, 1).ok()?;
            Some(Place { map: None, base: 0, layout, bits: Some(columns) })
        };
        let found = behind(composed).or_else(|| behind(&linear()?)).or_else(over_bits);
        found.ok_or_else(|| PlanError::Kind { layout: composed.to_string() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(columns) = &self.bits {
            let list = |each: &dyn Fn(&u64) -> String| columns.iter().map(each).collect::<Vec<_>>().join(",");
            return write!(f, "({}):({})", list(&|_| "2".to_string()), list(&|column| format!("^{column}")));
        }
        match (self.map, self.base) {
            (None, 0) => self.layout.fmt(f),
            (None, base) => write!(f, "{} + {base}", self.layout),
            (Some(swizzle), base) => write!(f, "{swizzle} o {base} o {}", self.layout),
        }
    }
}

impl Place {
    /// The same place, at an offset in its tensor, in elements.
    ///
    /// ```
    /// use tilewright_planners::Place;
    /// use tilewright_layout::Layout;
    ///
    /// let rows = Place::from(&"(4,8):(8,1)".parse::<Layout>().unwrap()).at(3).unwrap();
    /// assert_eq!((rows.offset(4).unwrap(), rows.reach().unwrap()), (4, 35));
    /// ```
    ///
    /// Errors: it begins before its tensor ([`PlanError::Before`]); it has a swizzle or is linear
    /// over bits, and must begin where its tensor does ([`PlanError::Kind`]).
    pub fn at(self, offset: i64) -> Result<Place, PlanError> {
        if offset != 0 && (self.bits.is_some() || self.map.is_some()) {
            return Err(PlanError::Kind { layout: self.to_string() });
        }
        let base = self.base.checked_add(offset).ok_or(LayoutError::Overflow { op: "offset" })?;
        match offset {
            0.. => Ok(Place { base, ..self }),
            least => Err(PlanError::Before { layout: self.layout.to_string(), least }),
        }
    }

    /// The number of elements.
    pub fn size(&self) -> i64 {
        self.layout.size()
    }

    /// The offset of the element at an index, in elements from the beginning of the tensor.
    ///
    /// Errors: the offset does not fit in 64 bits.
    pub fn offset(&self, index: i64) -> Result<i64, LayoutError> {
        if let Some(columns) = &self.bits {
            let chosen = columns.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
            return Ok(chosen.fold(0, |at, (_, column)| at ^ column) as i64);
        }
        let inner = self.layout.eval(&index)?;
        let at = self.base.checked_add(inner).ok_or(LayoutError::Overflow { op: "offset" })?;
        Ok(self.map.map_or(at, |swizzle| swizzle.apply(at)))
    }

    /// The least number of elements of its tensor. With a swizzle, whole blocks of the swizzle
    /// count.
    ///
    /// Errors: the number does not fit in 64 bits; an offset is not representable.
    pub fn reach(&self) -> Result<i64, LayoutError> {
        let (_, greatest) = self.range()?;
        if self.bits.is_some() {
            return greatest.checked_add(1).ok_or(LayoutError::Overflow { op: "cosize" });
        }
        let overflow = LayoutError::Overflow { op: "cosize" };
        let end = greatest.checked_add(self.base).and_then(|last| last.checked_add(1)).ok_or(overflow)?;
        let Some(swizzle) = self.map else { return Ok(end) };
        let block = 1_i64 << (swizzle.bits() + swizzle.base() + swizzle.shift().max(0)).clamp(0, 40);
        Ok(end.div_euclid(block) * block + if end.rem_euclid(block) > 0 { block } else { 0 })
    }

    /// The smallest and the largest offset before the swizzle and the base offset; for a linear
    /// layout, 0 and all bits, which bounds every offset.
    pub(crate) fn range(&self) -> Result<(i64, i64), LayoutError> {
        let Some(columns) = &self.bits else { return self.layout.range() };
        let all = columns.iter().fold(0, |all, column| all | column);
        Ok((0, i64::try_from(all).map_err(|_| LayoutError::Overflow { op: "range" })?))
    }

    /// Whether no two elements have the same offset.
    pub(crate) fn is_injective(&self) -> Result<bool, LayoutError> {
        match &self.bits {
            None => self.layout.is_injective(),
            Some(columns) => Ok(BitSpace::of(columns.iter().copied()).rank() == columns.len()),
        }
    }

    /// The modes of a strided layout that has the offsets of a linear one; None if there is no such
    /// layout.
    pub(crate) fn modes_over_bits(&self) -> Option<Vec<(i64, i64)>> {
        let columns = self.bits.as_ref()?;
        let space = BitSpace::of(columns.iter().copied());
        let single = space.rank() == columns.len() && space.basis().iter().all(|column| column.value.is_power_of_two());
        single.then(|| space.basis().iter().map(|column| (2, column.value as i64)).collect())
    }

    /// The number of contiguous elements that the swizzle keeps contiguous: a power of two.
    pub(crate) fn kept(&self) -> i64 {
        match self.map {
            None => 1 << 30,
            Some(swizzle) => 1 << swizzle.base().min(swizzle.base() + swizzle.shift()).clamp(0, 30),
        }
    }
}

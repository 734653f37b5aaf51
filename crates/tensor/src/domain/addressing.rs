//! The addresses of the elements of one operand.
//!
//! Law: element `c` has the offset `map(offset + sum c_k * stride_k)`, in elements. Every kind of
//! layout has this form. An integer layout has no map. A composed layout has its outer map. A
//! layout with XOR strides is a linear map over bits after a layout that gives each mode bits of
//! its own.
//!
//! Operands can be visited in loops along modes that are *additive*: each step adds the same number
//! to the offset of an element, whatever the other coordinates are. Without a map all modes are
//! additive. With a map, three rules find additive modes:
//!
//! * *Periods.* `S<b,m,s>` changes bits below `m + b + |s|` only, and reads no others. So steps by
//!   multiples of that power of two are additive. A bit matrix with as many outputs as inputs, and
//!   a layout beyond its first modes, have periods too.
//! * *Units.* Bits below `m` are neither read nor flipped. So modes that stay within them are
//!   additive, if all others step by multiples of `2^m`.
//! * *Columns.* Where coordinates occupy bits of their own, no sum carries, and the place is the
//!   XOR of the columns of these bits. A bit whose column shares no bit with the others is
//!   additive.

use tilewright_layout::{Leaf, OuterMap};

use crate::error::TensorError;
use crate::offsets::Offsets;

/// The addresses of the elements of one operand, in elements.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Addressing {
    map: Option<OuterMap>,
    offset: i64,
    leaves: Vec<Leaf>,
}

/// The largest number of coordinates of a composed layout for which every index is tried to find an
/// equal plain layout.
const MAX_EXAMINED: i64 = 1 << 14;

impl Addressing {
    /// The addressing of a layout.
    ///
    /// Errors: as [`Offsets::derived`].
    pub(crate) fn of<L: Offsets>(layout: &L) -> Result<Addressing, TensorError> {
        if let Some(leaves) = layout.leaves() {
            return Ok(Addressing::of_leaves(leaves.to_vec()));
        }
        let composed = layout.composed()?;
        let inner = composed.inner().leaves();
        let quick = inner.iter().all(|leaf| leaf.extent & (leaf.extent - 1) == 0) || composed.size() <= MAX_EXAMINED;
        if let Some((layout, offset)) = if quick { composed.to_layout().ok() } else { None } {
            return Ok(Addressing { map: None, offset, leaves: layout.leaves().to_vec() });
        }
        let map = Some(composed.outer().clone()).filter(|map| !map.is_identity());
        Ok(Addressing { map, offset: *composed.offset(), leaves: inner.to_vec() })
    }

    /// The addressing with the same element at every coordinate of a shape: a broadcast.
    pub(crate) fn broadcast(extents: impl IntoIterator<Item = i64>) -> Addressing {
        let leaves = extents.into_iter().map(|extent| Leaf { extent, stride: 0 }).collect();
        Addressing { map: None, offset: 0, leaves }
    }

    /// The addressing with the same map and offset over other modes.
    pub(crate) fn with_leaves(&self, leaves: Vec<Leaf>) -> Addressing {
        Addressing { map: self.map.clone(), offset: self.offset, leaves }
    }

    /// The addressing of integer modes, without a map.
    pub(crate) fn of_leaves(leaves: Vec<Leaf>) -> Addressing {
        Addressing { map: None, offset: 0, leaves }
    }

    pub(crate) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    pub(crate) fn offset(&self) -> i64 {
        self.offset
    }

    pub(crate) fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// The number of elements; None if it is not representable.
    pub(crate) fn size(&self) -> Option<i64> {
        self.leaves.iter().try_fold(1_i64, |size, leaf| size.checked_mul(leaf.extent))
    }

    /// The map's value at `offset + inner`; None if it has none there.
    pub(crate) fn place(&self, inner: i64) -> Option<i64> {
        let value = self.offset.checked_add(inner)?;
        match &self.map {
            None => Some(value),
            Some(map) => map.eval(&value).ok(),
        }
    }

    /// The map as a map of bits; None if it is not linear over bits.
    pub(crate) fn bits(&self) -> Option<Bits> {
        match self.map.as_ref()? {
            OuterMap::Swizzle(swizzle) => {
                let reach = swizzle.bits() + swizzle.base() + swizzle.shift().abs();
                let columns = (0..reach).map(|bit| Some(swizzle.apply(1_i64.checked_shl(u32::try_from(bit).ok()?)?)));
                Some(Bits { columns: columns.collect::<Option<Vec<i64>>>()?, open: true })
            }
            OuterMap::Bits(matrix) => {
                let columns = matrix.columns().iter().map(|column| i64::try_from(*column));
                let open = matrix.inputs() == matrix.outputs();
                Some(Bits { columns: columns.collect::<Result<Vec<i64>, _>>().ok()?, open })
            }
            _ => None,
        }
    }

    /// What a step adds to the offset, from any start that is not negative; None if that is not
    /// known.
    pub(crate) fn step(&self, step: i64) -> Option<i64> {
        match &self.map {
            None => Some(step),
            Some(map) => additive(map, step),
        }
    }

    /// Whether no inner value is negative.
    pub(crate) fn starts_from_zero(&self) -> bool {
        let reach = |leaf: &Leaf| leaf.stride.checked_mul(leaf.extent - 1).map(|reach| reach.min(0));
        let least = self.leaves.iter().try_fold(self.offset, |least, leaf| least.checked_add(reach(leaf)?));
        least.is_some_and(|least| least >= 0)
    }
}

/// The effect of a linear map on each bit of a number.
pub(crate) struct Bits {
    /// The value to which the map sends bit `i`.
    pub(crate) columns: Vec<i64>,
    /// Whether bits above the columns are kept.
    pub(crate) open: bool,
}

impl Bits {
    /// The smallest power of two whose multiples the map adds unchanged.
    pub(crate) fn period(&self) -> Option<i64> {
        let period = 1_i64.checked_shl(u32::try_from(self.columns.len()).ok()?).filter(|period| *period > 0);
        period.filter(|_| self.open)
    }

    /// The largest power of two such that the map keeps every bit below it, and sends no other bit
    /// there.
    pub(crate) fn unit(&self) -> i64 {
        let kept = |bits: usize| {
            let below = (1_i64 << bits) - 1;
            let led = self.columns.iter().skip(bits).fold(0, |led, column| led | column);
            self.columns.iter().take(bits).enumerate().all(|(bit, column)| *column == 1 << bit) && led & below == 0
        };
        (0..self.columns.len().min(62)).rev().find(|bits| kept(*bits)).map_or(1, |bits| 1 << bits)
    }

    /// The value to which the map sends a bit.
    pub(crate) fn column(&self, bit: u32) -> Option<i64> {
        match self.columns.get(bit as usize) {
            Some(column) => Some(*column),
            None => 1_i64.checked_shl(bit).filter(|bit| self.open && *bit > 0),
        }
    }
}

fn additive(map: &OuterMap, step: i64) -> Option<i64> {
    let periodic = |period: i64| (step % period == 0).then_some(step);
    match map {
        OuterMap::Swizzle(swizzle) => {
            periodic(1_i64.checked_shl((swizzle.bits() + swizzle.base() + swizzle.shift().abs()) as u32)?)
        }
        OuterMap::Bits(matrix) if matrix.inputs() == matrix.outputs() && matrix.inputs() < 63 => {
            periodic(1 << matrix.inputs())
        }
        OuterMap::Layout(layout) => {
            let (last, front) = layout.leaves().split_last()?;
            let period = front.iter().try_fold(1_i64, |period, leaf| period.checked_mul(leaf.extent))?;
            if step % period == 0 { (step / period).checked_mul(last.stride) } else { None }
        }
        // The laws of the outer map hold for numbers that are not negative, so the inner map must
        // not give negative ones.
        OuterMap::Chain(chain) if *chain.offset() >= 0 && stays_from_zero(chain.inner()) => {
            additive(chain.outer(), additive(chain.inner(), step)?)
        }
        _ => None,
    }
}

/// Whether a map sends no non-negative number to a negative one.
fn stays_from_zero(map: &OuterMap) -> bool {
    match map {
        OuterMap::Swizzle(_) | OuterMap::Bits(_) => true,
        OuterMap::Layout(layout) => layout.leaves().iter().all(|leaf| leaf.stride >= 0),
        OuterMap::Chain(_) => false,
    }
}

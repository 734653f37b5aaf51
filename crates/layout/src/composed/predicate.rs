//! Predicates of composed layouts: properties of all values.
//!
//! Laws: those of the predicates of layouts, with the values of the map. *If the map is affine over
//! bits*, its values are `t ^ V` for a space `V`, so there are `2^rank` of them. With `V` in
//! echelon form, the least value has none of the leading bits of `V` and the greatest has all of
//! them; flipping the sign bit makes the order of signed numbers that of bits. From index
//! `h 2^(k+1) + 2^k - 1` to the next, the value changes by the XOR of columns `0..=k`. It increases
//! for every `h` exactly when the leading bit of that XOR is 0 before the change, that is, when no
//! later column has that bit. *Otherwise* the values are enumerated.

use super::beside::values as interval_of;
use super::{Affine, Composed};
use crate::bits::matrix::BitMatrix;
use crate::limits::{MAX_BITS, MAX_INDICES};
use crate::refusal::error::LayoutError;
use crate::refusal::interrupt;

/// The sign bit; flipping it sorts negative numbers before the others.
const SIGN: u64 = 1 << 63;

/// The least value, the greatest value, and the number of values minus one.
fn extremes(affine: &Affine) -> (i64, i64, u64) {
    let image = BitMatrix::from_valid(MAX_BITS, affine.columns.clone()).image();
    let start = affine.constant ^ SIGN;
    let least = image.iter().rev().fold(start, |value, vector| value.min(value ^ vector));
    let most = image.iter().rev().fold(start, |value, vector| value.max(value ^ vector));
    let rank = image.len() as u32;
    ((least ^ SIGN) as i64, (most ^ SIGN) as i64, u64::MAX.checked_shr(64 - rank).unwrap_or(0))
}

impl Composed {
    /// The least and the greatest value, and whether all numbers in between are values.
    fn interval(&self) -> Result<(i64, i64, bool), LayoutError> {
        if let Some(affine) = self.affine() {
            let (least, most, last) = extremes(&affine);
            return Ok((least, most, most.abs_diff(least) == last));
        }
        let values = self.image()?;
        let (least, most) = (values.first().copied().unwrap_or(0), values.last().copied().unwrap_or(0));
        Ok((least, most, most.abs_diff(least) == values.len() as u64 - 1))
    }

    /// Whether no value is negative.
    ///
    /// Errors: as [`Composed::is_surjective`], if an interval that contains the values does not
    /// decide.
    pub(crate) fn is_never_negative(&self) -> Result<bool, LayoutError> {
        let (least, greatest) = self.inner().range()?;
        let ends = self.offset().checked_add(least).zip(self.offset().checked_add(greatest));
        if ends.is_some_and(|ends| interval_of(self.outer(), ends).is_some_and(|(least, _)| least >= 0)) {
            return Ok(true);
        }
        Ok(self.interval()?.0 >= 0)
    }

    /// Whether the values are exactly `0, 1, .., cosize - 1`, each at least once.
    ///
    /// Errors: the map is not known to be affine over bits, and there are more than [`MAX_INDICES`]
    /// coordinates ([`LayoutError::Undecided`]); a value is not representable.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let surjective = |text: &str| text.parse::<Composed>().unwrap().is_surjective().unwrap();
    /// assert!(surjective("S<3,3,3> o 0 o (8,64):(64,1)") && !surjective("S<1,0,2> o 0 o (3,2):(4,1)"));
    /// ```
    pub fn is_surjective(&self) -> Result<bool, LayoutError> {
        let (least, _, whole) = self.interval()?;
        Ok(least == 0 && whole)
    }

    /// Whether the map is a bijection onto `0..cosize`: every offset of its codomain exactly once.
    ///
    /// Errors: as [`Composed::is_surjective`].
    pub fn is_bijective(&self) -> Result<bool, LayoutError> {
        let (least, most, whole) = self.interval()?;
        Ok(least == 0 && whole && most == self.size() - 1)
    }

    /// The same as [`Composed::is_bijective`]: no offset is missing and none is shared.
    ///
    /// Errors: as [`Composed::is_surjective`].
    pub fn is_compact(&self) -> Result<bool, LayoutError> {
        self.is_bijective()
    }

    /// Whether the values form an interval: no hole between the least and the greatest.
    ///
    /// Errors: as [`Composed::is_surjective`].
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let contiguous = |text: &str| text.parse::<Composed>().unwrap().is_contiguous().unwrap();
    /// assert!(contiguous("S<1,0,2> o 8 o 8:1") && !contiguous("S<1,0,2> o 0 o 4:2"));
    /// ```
    pub fn is_contiguous(&self) -> Result<bool, LayoutError> {
        Ok(self.interval()?.2)
    }

    /// Whether the values increase strictly with the index.
    ///
    /// Errors: as [`Composed::is_surjective`].
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let ordered = |text: &str| text.parse::<Composed>().unwrap().is_ordered().unwrap();
    /// assert!(ordered("S<1,0,2> o 0 o 4:2") && !ordered("S<1,0,2> o 0 o 8:1"));
    /// ```
    pub fn is_ordered(&self) -> Result<bool, LayoutError> {
        if let Some(affine) = self.affine() {
            let (mut before, mut change) = (affine.constant ^ SIGN, 0);
            for (position, column) in affine.columns.iter().enumerate() {
                change ^= column;
                let Some(top) = change.checked_ilog2().map(|top| 1_u64 << top) else { return Ok(false) };
                let later = affine.columns.iter().skip(position + 1).any(|column| column & top != 0);
                if later || before & top != 0 {
                    return Ok(false);
                }
                before ^= column;
            }
            return Ok(true);
        }
        let mut last = None;
        for index in 0..self.size().min(MAX_INDICES) {
            interrupt::check("is_ordered")?;
            let value = self.eval(&index)?;
            if last.is_some_and(|last| last >= value) {
                return Ok(false);
            }
            last = Some(value);
        }
        if self.size() <= MAX_INDICES {
            return Ok(true);
        }
        Err(LayoutError::Undecided { op: "is_ordered", limit: MAX_INDICES as usize })
    }
}

//! The values of a layout with XOR strides.
//!
//! Law: each predicate is about the values at all indices; no enumeration is needed if extents are
//! powers of two. Then the values are a space, whose reduced basis enumerates them in increasing
//! order. Any other extent is a power of two times an odd number: the values are cosets of the
//! space of all modes of extent 2, one for each sum of the odd parts. Cosets are equal or disjoint;
//! the least member identifies a coset, and the greatest member has all leading bits. So only the
//! sums of the odd parts are listed, up to [`MAX_XOR_VALUES`] of them. For a layout that equals a
//! layout of integers, the predicates of that layout are used.

use alloc::vec::Vec;

use crate::algebra::predicate::distinct_values;
use crate::limits::MAX_XOR_VALUES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::interrupt::is_requested;
use crate::value::layout::Layout;
use crate::xor::complement::CutModes;
use crate::xor::{Xor, product};

/// The values of a layout.
pub(crate) struct Image {
    /// The reduced basis of the space, by increasing leading bit.
    space: Vec<u64>,
    /// The number of modes of extent 2.
    twos: usize,
    /// The least member of each coset, one for each coordinate of the odd parts, in increasing
    /// order.
    least: Vec<u64>,
}

impl Image {
    pub(crate) fn of(op: &'static str, layout: &Layout<Xor>) -> Result<Image, LayoutError> {
        let moving = CutModes::of(op, layout)?;
        let space = moving.space()?.image();
        let count = moving.odd.iter().try_fold(1_u64, |count, odd| count.checked_mul(odd.extent));
        if count.is_none_or(|count| count > MAX_XOR_VALUES) {
            return Err(LayoutError::Undecided { op, limit: MAX_XOR_VALUES as usize });
        }
        let mut least = alloc::vec![0];
        for odd in &moving.odd {
            let steps = (0..odd.extent).map(|index| product(index, odd.stride)).collect::<Option<Vec<u64>>>();
            let steps = steps.fits(op)?;
            least = least.iter().flat_map(|sum| steps.iter().map(move |step| sum ^ step)).collect();
        }
        for sum in &mut least {
            *sum = space.iter().rev().fold(*sum, |sum, vector| sum.min(sum ^ vector));
        }
        least.sort_unstable();
        Ok(Image { twos: moving.twos.len(), space, least })
    }

    /// Whether no value repeats, apart from repetitions of stride 0.
    fn distinct(&self) -> bool {
        self.twos == self.space.len() && self.least.windows(2).all(|pair| matches!(pair, [a, b] if a < b))
    }

    /// The least number that is not a value; None if it is not found in a few steps.
    pub(crate) fn first_missing(&self) -> Option<u64> {
        // Below the first bit that is not a leading bit, either every number of a block is a value,
        // or none.
        let block = self.space.iter().zip(0..).take_while(|(vector, bit)| **vector == 1 << *bit).count();
        let numbers = (0..=MAX_XOR_VALUES).map_while(|number| number.checked_mul(1 << block));
        let mut numbers = numbers.take_while(|_| !is_requested());
        numbers.find(|number| {
            let least = self.space.iter().rev().fold(*number, |least, vector| least.min(least ^ vector));
            self.least.binary_search(&least).is_err()
        })
    }

    /// The largest value.
    fn largest(&self) -> u64 {
        let top = self.least.iter().map(|sum| self.space.iter().rev().fold(*sum, |sum, vector| sum.max(sum ^ vector)));
        top.max().unwrap_or(0)
    }
}

impl Layout<Xor> {
    /// The largest offset plus one: the size of the memory from offset 0.
    ///
    /// Errors: a vector is not representable; there are more than [`MAX_XOR_VALUES`] sums of odd
    /// parts ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let layout = |text: &str| text.parse::<Layout<Xor>>().unwrap();
    /// assert_eq!(layout("(8,8):(^1,^9)").cosize().unwrap(), 64);
    /// assert_eq!(layout("(2,2):(^5,^6)").cosize().unwrap(), 7); // 0, 5, 6, 3
    /// assert_eq!(layout("(2,2):(^5,^6)").coshape().unwrap(), 8);
    /// ```
    pub fn cosize(&self) -> Result<i64, LayoutError> {
        const OP: &str = "cosize";
        if let Ok(integers) = self.integers() {
            return integers.cosize();
        }
        let largest = Image::of(OP, self)?.largest();
        i64::try_from(largest).ok().and_then(|largest| largest.checked_add(1)).fits(OP)
    }

    /// The least power of two above all offsets. Sums of offsets are also below it, because it
    /// bounds their bits.
    ///
    /// Errors: a vector, or the power of two, is not representable.
    pub fn coshape(&self) -> Result<i64, LayoutError> {
        const OP: &str = "coshape";
        let bits = CutModes::of(OP, self)?.span(OP)?.outputs();
        if bits >= 63 { Err(LayoutError::overflow(OP)) } else { Ok(1 << bits) }
    }

    /// Whether different coordinates have different values.
    ///
    /// Errors: as [`Layout::cosize`].
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let injective = |text: &str| text.parse::<Layout<Xor>>().unwrap().is_injective().unwrap();
    /// assert!(injective("(8,8):(^1,^9)") && !injective("(2,2,2):(^1,^2,^3)"));
    /// ```
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        const OP: &str = "is_injective";
        if self.leaves().iter().any(|leaf| leaf.extent > 1 && leaf.stride.bits() == 0) {
            return Ok(false);
        }
        let moving = CutModes::of(OP, self)?;
        let space = moving.space()?;
        if !space.is_injective() {
            return Ok(false);
        }
        if moving.odd.is_empty() || moving.independent(OP)? {
            return Ok(true);
        }
        Ok(Image::of(OP, self)?.distinct())
    }

    /// Whether the values are exactly `0, 1, .., cosize - 1`, each at least once.
    ///
    /// Errors: as [`Layout::cosize`].
    pub fn is_surjective(&self) -> Result<bool, LayoutError> {
        if let Ok(integers) = self.integers() {
            return Ok(integers.is_surjective());
        }
        let mut image = Image::of("is_surjective", self)?;
        image.least.dedup();
        let count = (image.least.len() as u128) << image.space.len();
        Ok(count == u128::from(image.largest()) + 1)
    }

    /// Whether the layout is a bijection onto `0..cosize`: every offset of its codomain exactly
    /// once.
    ///
    /// Errors: as [`Layout::cosize`].
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let bijective = |text: &str| text.parse::<Layout<Xor>>().unwrap().is_bijective().unwrap();
    /// assert!(bijective("(8,8):(^9,^1)") && bijective("6:^1") && !bijective("(2,2):(^5,^6)"));
    /// ```
    pub fn is_bijective(&self) -> Result<bool, LayoutError> {
        Ok(self.is_injective()? && self.is_surjective()?)
    }

    /// The same as [`Layout::is_bijective`]: no offset is missing and none is shared.
    ///
    /// Errors: as [`Layout::cosize`].
    pub fn is_compact(&self) -> Result<bool, LayoutError> {
        self.is_bijective()
    }

    /// The values, each once, in increasing order.
    ///
    /// Errors: the layout has more than [`MAX_IMAGE`](crate::limits::MAX_IMAGE) coordinates,
    /// without modes of stride 0; a value is not representable.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Xor};
    ///
    /// let layout: Layout<Xor> = "(2,3):(^5,^2)".parse().unwrap();
    /// assert_eq!(layout.image().unwrap().iter().map(|value| value.bits()).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 7]);
    /// ```
    pub fn image(&self) -> Result<Vec<Xor>, LayoutError> {
        distinct_values(self)
    }
}

//! Integer functions of bits as sums of parities.
//!
//! Law: every integer function `F` of `n` bits has a unique representation
//! `F(x) = c + sum over masks m != 0 of w_m * p_m(x)`, where `p_m(x)` is the parity of `x & m`. It
//! is unique because the functions `1 - 2 * p_m` are the characters of the group of bit vectors,
//! which are linearly independent. A composed layout of power-of-two extents is a short sum of this
//! form if the argument of each swizzle or outer layout is affine over bits:
//!
//! * the inner layout is the sum with one mask of one bit for each bit of the index, whatever its
//!   strides are; an offset is added to `c`;
//! * a function is *affine over bits* when bit `k` of its value (two's complement, 64 bits) is
//!   `t_k ^ p_(m_k)(x)`. It is then the sum of `2^k * (t_k ^ p_(m_k))`. Whether a function is
//!   affine is decided as follows: its values at 0 and at the powers of two determine the only
//!   candidate, whose sum is compared with that of the function;
//! * the value of an outer layout whose modes end at powers of two is the sum of its steps `a_k`
//!   over the bits of its argument: `sum of a_k * (t_k ^ p_(m_k))`.
//!
//! So functions are equal exactly when their sums are, and a function is a layout plus an offset
//! exactly when every mask has one bit.

use smallvec::SmallVec;

use crate::bits::matrix::Columns;
use crate::bits::swizzle::Swizzle;
use crate::ground::bounds::Wide;
use crate::refusal::error::LayoutError;
use crate::value::layout::Leaf;

/// An integer function of `bits` bits: `c + sum of w_m * p_m`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Parities {
    pub(crate) bits: usize,
    pub(crate) constant: Wide,
    /// The nonzero masks in increasing order, with their nonzero weights.
    terms: SmallVec<[(u64, Wide); 16]>,
}

/// A function affine over bits: `x -> constant ^ (the XOR of the columns at the bits of x)`, in
/// two's complement.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Affine {
    pub(crate) constant: u64,
    pub(crate) columns: Columns,
}

/// The value of bit `bit` of a 64-bit number in two's complement.
fn place(bit: usize) -> Wide {
    if bit == 63 { Wide::from(i64::MIN) } else { 1 << bit }
}

impl Parities {
    fn new(bits: usize, constant: Wide) -> Parities {
        Parities { bits, constant, terms: SmallVec::new() }
    }

    /// `offset + L(x)` for a layout; None unless its extents are powers of two.
    pub(crate) fn of_layout(leaves: &[Leaf], offset: i64) -> Option<Parities> {
        let mut sum = Parities::new(0, Wide::from(offset));
        for leaf in leaves {
            let extent = u64::try_from(leaf.extent).ok().filter(|extent| extent.is_power_of_two())?;
            for bit in 0..extent.trailing_zeros() {
                sum.terms.push((1 << sum.bits, Wide::from(leaf.stride) << bit));
                sum.bits += 1;
            }
        }
        sum.normalise()?;
        Some(sum)
    }

    /// Adds `weight * (flipped ^ p_mask)`.
    fn push(&mut self, mask: u64, flipped: bool, weight: Wide) -> Option<()> {
        if flipped {
            self.constant = self.constant.checked_add(weight)?;
        }
        if mask != 0 && weight != 0 {
            self.terms.push((mask, if flipped { weight.checked_neg()? } else { weight }));
        }
        Some(())
    }

    /// Sorts the terms and combines those with the same mask.
    fn normalise(&mut self) -> Option<()> {
        self.terms.sort_unstable_by_key(|(mask, _)| *mask);
        let mut merged: SmallVec<[(u64, Wide); 16]> = SmallVec::new();
        for (mask, weight) in self.terms.drain(..) {
            match merged.last_mut() {
                Some((last, sum)) if *last == mask => *sum = sum.checked_add(weight)?,
                _ => merged.push((mask, weight)),
            }
        }
        merged.retain(|(_, weight)| *weight != 0);
        self.terms = merged;
        Some(())
    }

    /// The function plus a constant.
    pub(crate) fn plus(mut self, by: i64) -> Option<Parities> {
        self.constant = self.constant.checked_add(Wide::from(by))?;
        Some(self)
    }

    /// The sum of this function of the low bits and another one of the bits above them. None if
    /// there are more than 63 bits in all.
    pub(crate) fn beside(&self, high: &Parities) -> Option<Parities> {
        let bits = self.bits.checked_add(high.bits).filter(|bits| *bits < 64)?;
        let mut sum = Parities::new(bits, self.constant.checked_add(high.constant)?);
        sum.terms.extend(self.terms.iter().copied());
        // The terms stay sorted, because the shifted masks are greater than all others.
        sum.terms.extend(high.terms.iter().map(|(mask, weight)| (mask << self.bits, *weight)));
        Some(sum)
    }

    /// The sum of two functions of the same bits; None if the numbers of bits differ, or a number
    /// is not representable.
    pub(crate) fn added(&self, other: &Parities) -> Option<Parities> {
        let constant = self.constant.checked_add(other.constant).filter(|_| self.bits == other.bits)?;
        let mut sum = Parities::new(self.bits, constant);
        sum.terms.extend(self.terms.iter().chain(&other.terms).copied());
        sum.normalise()?;
        Some(sum)
    }

    /// The function times a number.
    pub(crate) fn scaled(mut self, by: i64) -> Option<Parities> {
        let by = Wide::from(by);
        self.constant = self.constant.checked_mul(by)?;
        for (_, weight) in &mut self.terms {
            *weight = weight.checked_mul(by)?;
        }
        self.terms.retain(|(_, weight)| *weight != 0);
        Some(self)
    }

    /// The value at `x`; None if it exceeds 64 bits.
    pub(crate) fn eval(&self, x: u64) -> Option<i64> {
        let mut value = self.constant;
        for (mask, weight) in &self.terms {
            if (mask & x).count_ones() % 2 == 1 {
                value = value.checked_add(*weight)?;
            }
        }
        i64::try_from(value).ok()
    }

    /// The equal affine function over bits; None if the function is not affine, or a value is not
    /// representable.
    pub(crate) fn affine(&self) -> Option<Affine> {
        let candidate = self.candidate()?;
        (candidate.parities()? == *self).then_some(candidate)
    }

    /// The affine function with the values of this one at 0 and at the powers of two.
    fn candidate(&self) -> Option<Affine> {
        let constant = self.eval(0)? as u64;
        let columns = (0..self.bits).map(|bit| Some(self.eval(1 << bit)? as u64 ^ constant));
        Some(Affine { constant, columns: columns.collect::<Option<Columns>>()? })
    }

    /// The step of each bit, if the function is additive over bits; None otherwise.
    pub(crate) fn steps(&self) -> Option<SmallVec<[i64; 16]>> {
        if self.terms.iter().any(|(mask, _)| !mask.is_power_of_two()) {
            return None;
        }
        let mut steps = SmallVec::from_elem(0, self.bits);
        for (mask, weight) in &self.terms {
            *steps.get_mut(mask.trailing_zeros() as usize)? = i64::try_from(*weight).ok()?;
        }
        Some(steps)
    }

    /// The error if [`Parities::affine`] is None.
    #[cold]
    pub(crate) fn not_affine(&self, op: &'static str) -> LayoutError {
        let alone = self.candidate().and_then(|candidate| candidate.parities());
        self.refusal(op, alone, |op, index, value, alone| LayoutError::NotLinear { op, index, value, alone })
    }

    /// The error if [`Parities::steps`] is None.
    #[cold]
    pub(crate) fn not_additive(&self, op: &'static str) -> LayoutError {
        let mut alone = Parities::new(self.bits, self.constant);
        for bit in 0..self.bits {
            // The contribution of the bit alone is the sum over the terms that contain it.
            let mut seen = self.terms.iter().filter(|(mask, _)| mask >> bit & 1 == 1);
            let Some(step) = seen.try_fold(0_i128, |sum, (_, weight)| sum.checked_add(*weight)) else {
                return LayoutError::overflow(op);
            };
            alone.terms.push((1 << bit, step));
        }
        let alone = alone.normalise().map(|()| alone);
        self.refusal(op, alone, |op, index, value, alone| LayoutError::NotAdditive { op, index, value, alone })
    }

    /// The refusal at an index where this function differs from `alone`; the index has as few set
    /// bits as possible.
    fn refusal(
        &self,
        op: &'static str,
        alone: Option<Parities>,
        refuse: impl Fn(&'static str, i64, i64, i64) -> LayoutError,
    ) -> LayoutError {
        let shown = || {
            let alone = alone?;
            let index = self.difference(&alone)?;
            Some(refuse(op, i64::try_from(index).ok()?, self.eval(index)?, alone.eval(index)?))
        };
        shown().unwrap_or(LayoutError::Overflow { op })
    }

    /// A number at which two functions of the same bits differ, such that they agree at every
    /// number with a proper subset of its bits.
    fn difference(&self, other: &Parities) -> Option<u64> {
        let mut rest = Parities::new(self.bits, self.constant.checked_sub(other.constant)?);
        rest.terms.extend(self.terms.iter().copied());
        for (mask, weight) in &other.terms {
            rest.terms.push((*mask, weight.checked_neg()?));
        }
        rest.normalise()?;
        if rest.constant == 0 && rest.terms.is_empty() {
            return None;
        }
        let mut index = 0;
        for bit in (0..self.bits).rev() {
            let off = rest.fixed(bit, false)?;
            if off.constant != 0 || !off.terms.is_empty() {
                rest = off;
            } else {
                rest = rest.fixed(bit, true)?;
                index |= 1 << bit;
            }
        }
        Some(index)
    }

    /// The function with one bit fixed.
    fn fixed(&self, bit: usize, value: bool) -> Option<Parities> {
        let mut fixed = Parities::new(self.bits, self.constant);
        for (mask, weight) in &self.terms {
            fixed.push(mask & !(1 << bit), value && mask >> bit & 1 == 1, *weight)?;
        }
        fixed.normalise()?;
        Some(fixed)
    }
}

impl Affine {
    /// The value at `x`.
    pub(crate) fn eval(&self, x: u64) -> u64 {
        let columns = self.columns.iter().enumerate().filter(|(bit, _)| x >> bit & 1 == 1);
        columns.fold(self.constant, |value, (_, column)| value ^ column)
    }

    /// The mask of the inputs whose parity is bit `row` of the value, and whether the bit is
    /// flipped.
    pub(crate) fn row(&self, row: usize) -> (u64, bool) {
        let mask = self.columns.iter().rev().fold(0, |mask, column| mask << 1 | (column >> row & 1));
        (mask, self.constant >> row & 1 == 1)
    }

    /// The same function as a sum of parities.
    pub(crate) fn parities(&self) -> Option<Parities> {
        let mut sum = Parities::new(self.columns.len(), 0);
        for bit in 0..64 {
            let (mask, flipped) = self.row(bit);
            sum.push(mask, flipped, place(bit))?;
        }
        sum.normalise()?;
        Some(sum)
    }

    /// The function followed by a linear map over bits.
    pub(crate) fn then(&self, map: impl Fn(u64) -> u64) -> Affine {
        Affine { constant: map(self.constant), columns: self.columns.iter().map(|column| map(*column)).collect() }
    }

    /// The function followed by a swizzle.
    pub(crate) fn swizzled(&self, swizzle: Swizzle) -> Affine {
        self.then(|value| swizzle.apply(value as i64) as u64)
    }

    /// The mask of the bits that may be set in a value.
    pub(crate) fn support(&self) -> u64 {
        self.columns.iter().fold(self.constant, |all, column| all | column)
    }

    /// The function followed by a layout; None if a value may be negative, if a mode of the layout
    /// ends within the values at a number that is not a power of two, or if a number is not
    /// representable.
    pub(crate) fn through_layout(&self, leaves: &[Leaf]) -> Option<Parities> {
        let support = self.support();
        let highest = i64::try_from(support).ok()?;
        let mut sum = Parities::new(self.columns.len(), 0);
        let Some((last, front)) = leaves.split_last() else { return (support == 0).then_some(sum) };
        // The first bit of the current mode.
        let mut begin = 0_u32;
        let mut steps = |from: u32, to: u32, stride: i64| {
            for bit in from..to.min(63) {
                let (mask, flipped) = self.row(bit as usize);
                if mask != 0 || flipped {
                    sum.push(mask, flipped, Wide::from(stride).checked_mul(1 << (bit - from))?)?;
                }
            }
            Some(())
        };
        for leaf in front {
            let rest = highest.checked_shr(begin).unwrap_or(0);
            if rest < leaf.extent {
                steps(begin, 63, leaf.stride)?;
                sum.normalise()?;
                return Some(sum);
            }
            let extent = leaf.extent as u64;
            if !extent.is_power_of_two() {
                return None;
            }
            let end = begin + extent.trailing_zeros();
            steps(begin, end, leaf.stride)?;
            begin = end;
        }
        steps(begin, 63, last.stride)?;
        sum.normalise()?;
        Some(sum)
    }
}

//! Strides with unknown bits, as the solutions of linear equations.
//!
//! Law: with the strides `f_l` of the modes, an [`equation`](Unknowns::equate) says that the sum of
//! `digit_l * f_l`, by carry-less products, is a given vector. Each of its bits is the XOR of bits
//! of the strides. The rows are kept in reduced form, each with a bit of its own: so a stride is
//! known exactly when each of its bits has a row with no other bit, and an equation contradicts the
//! rows exactly when it reduces to `0 = 1`.

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::xor::{BITS, length, product};

/// One bit for each bit of each stride: a word for each mode.
type Word = SmallVec<[u64; 4]>;

#[derive(Clone)]
struct EquationRow {
    /// The mode and the bit that only this row has.
    own: (usize, u32),
    bits: Word,
    value: bool,
}

/// The equations for the strides of a list of modes.
#[derive(Clone, Default)]
pub(super) struct Unknowns {
    /// The known strides; None for the others.
    strides: SmallVec<[Option<u64>; 8]>,
    rows: Vec<EquationRow>,
}

/// The digits of a number, one for each mode.
pub(super) type Digits = SmallVec<[u64; 8]>;

impl Unknowns {
    /// Adds a mode with an unknown stride.
    pub(super) fn push(&mut self) {
        self.strides.push(None);
    }

    /// The sum over the modes with known strides, None if it has too many bits; and whether the
    /// digits of all other modes are 0.
    pub(super) fn sum(&self, digits: &[u64]) -> (Option<u64>, bool) {
        let (mut sum, mut all) = (Some(0), true);
        for (digit, stride) in digits.iter().zip(&self.strides) {
            match stride {
                Some(stride) => sum = sum.zip(product(*digit, *stride)).map(|(sum, step)| sum ^ step),
                None => all &= *digit == 0,
            }
        }
        (sum, all)
    }

    /// Adds the equation that the sum over all modes is `value`. Returns whether it is consistent.
    /// Adds the number of compared rows to `steps`.
    pub(super) fn equate(&mut self, digits: &[u64], value: u64, steps: &mut usize) -> bool {
        let (Some(known), _) = self.sum(digits) else { return false };
        let rest = known ^ value;
        let open = |(digit, stride): (&u64, &Option<u64>)| if stride.is_none() { *digit } else { 0 };
        let open: Digits = digits.iter().zip(&self.strides).map(open).collect();
        let mut moving = open.iter().enumerate().filter(|(_, digit)| **digit != 0);
        let free = |mode: usize| self.rows.iter().all(|row| row.bits.get(mode).is_none_or(|word| *word == 0));
        // If there is one mode with a completely unknown stride, the stride is a quotient.
        if let (Some((mode, digit)), None) = (moving.next(), moving.next())
            && free(mode)
        {
            *steps = steps.saturating_sub(1);
            let stride = quotient(rest, *digit).filter(|stride| length(*stride) <= BITS);
            if let (Some(stride), Some(place)) = (stride, self.strides.get_mut(mode)) {
                *place = Some(stride);
            }
            return stride.is_some();
        }
        // The length of the longest product of a digit with 63 bits.
        let longest = open.iter().map(|digit| length(*digit)).max().unwrap_or(0);
        for bit in 0..(BITS + longest).max(length(rest)) {
            // Bit `bit` of `digit * f` is the XOR of the bits `bit - i` of `f` over the bits `i` of
            // the digit.
            let mut bits = Word::from_elem(0, self.strides.len());
            for (word, digit) in bits.iter_mut().zip(&open) {
                for place in (0..length(*digit)).filter(|place| digit >> place & 1 == 1) {
                    if let Some(from) = bit.checked_sub(place).filter(|from| *from < BITS) {
                        *word ^= 1 << from;
                    }
                }
            }
            let wanted = bit < u64::BITS && rest >> bit & 1 == 1;
            if !self.insert(bits, wanted, steps) {
                return false;
            }
        }
        self.settle();
        true
    }

    /// Adds the condition that the steps of a mode up to number `last` are representable: its
    /// stride has no bit that they would shift too far.
    pub(super) fn bound(&mut self, mode: usize, last: u64, steps: &mut usize) -> bool {
        let Some(stride) = self.strides.get(mode) else { return true };
        if let Some(stride) = stride {
            return product(last, *stride).is_some();
        }
        for bit in (BITS + 1).saturating_sub(length(last))..BITS {
            let mut bits = Word::from_elem(0, self.strides.len());
            if let Some(word) = bits.get_mut(mode) {
                *word = 1 << bit;
            }
            if !self.insert(bits, false, steps) {
                return false;
            }
        }
        self.settle();
        true
    }

    /// Adds a row. Returns whether it is consistent.
    fn insert(&mut self, mut bits: Word, mut value: bool, steps: &mut usize) -> bool {
        *steps = steps.saturating_sub(1 + self.rows.len() / 8);
        for row in &self.rows {
            let (mode, bit) = row.own;
            if bits.get(mode).is_some_and(|word| word >> bit & 1 == 1) {
                add(&mut bits, &row.bits);
                value ^= row.value;
            }
        }
        let Some((mode, word)) = bits.iter().enumerate().find(|(_, word)| **word != 0) else { return !value };
        let own = (mode, word.trailing_zeros());
        for row in &mut self.rows {
            if row.bits.get(own.0).is_some_and(|word| word >> own.1 & 1 == 1) {
                add(&mut row.bits, &bits);
                row.value ^= value;
            }
        }
        self.rows.push(EquationRow { own, bits, value });
        true
    }

    /// Removes the strides whose bits are all known from the rows.
    fn settle(&mut self) {
        for mode in 0..self.strides.len() {
            if self.strides.get(mode).is_none_or(Option::is_some) {
                continue;
            }
            let alone = |row: &&EquationRow| {
                row.own.0 == mode && row.bits.iter().map(|word| word.count_ones()).sum::<u32>() == 1
            };
            let (mut count, mut stride) = (0, 0);
            for row in self.rows.iter().filter(alone) {
                count += 1;
                stride |= u64::from(row.value) << row.own.1;
            }
            if count == BITS
                && let Some(place) = self.strides.get_mut(mode)
            {
                *place = Some(stride);
                self.rows.retain(|row| row.own.0 != mode);
            }
        }
    }

    /// Strides that satisfy all equations; undetermined bits are 0.
    pub(super) fn strides(&self) -> SmallVec<[u64; 8]> {
        let mut strides: SmallVec<[u64; 8]> = self.strides.iter().map(|stride| stride.unwrap_or(0)).collect();
        for row in self.rows.iter().filter(|row| row.value) {
            if let Some(stride) = strides.get_mut(row.own.0) {
                *stride |= 1 << row.own.1;
            }
        }
        strides
    }
}

fn add(bits: &mut Word, other: &Word) {
    // A row that was made before a mode was added has no word for that mode.
    if bits.len() < other.len() {
        bits.resize(other.len(), 0);
    }
    for (word, other) in bits.iter_mut().zip(other) {
        *word ^= other;
    }
}

/// The carry-less quotient; None if the division has a remainder.
fn quotient(mut dividend: u64, divisor: u64) -> Option<u64> {
    let mut quotient = 0;
    while length(dividend) >= length(divisor) && dividend != 0 {
        let by = length(dividend) - length(divisor);
        quotient |= 1 << by;
        dividend ^= divisor << by;
    }
    (dividend == 0).then_some(quotient)
}

//! Sorting networks, and numbers made of bits.
//!
//! Law: a step of a sorting network compares elements whose indices differ in sorted bits; the one
//! with the lower index gets the larger value. f32 numbers are compared as integers with the same
//! order.

use tilewright_kernel::{Build, Element, Flag, KernelError, Num};

use super::Lowering;
use crate::program::ValueId;
use crate::top::{Network, Slot};

/// A number of f32 as one of i32 with the same order, and back: where the sign is set, the other
/// bits are flipped.
fn ordered<'k>(x: Num<'k>) -> Num<'k> {
    let sign = x.shift_right(x.like(31.0));
    x.bit_xor(sign.bit_and(x.like(f64::from(i32::MAX))))
}

/// Keys that are sorted.
struct Keys<'k> {
    k: &'k Build,
    values: Vec<Num<'k>>,
}

impl<'k> Keys<'k> {
    /// The mask of bits of values, and that of bits of lanes.
    fn masks(slots: &[Slot]) -> (usize, u32) {
        slots.iter().fold((0, 0), |(values, lanes), slot| match slot {
            Slot::Value(at) => (values | 1 << at, lanes),
            Slot::Thread(at) => (values, lanes | 1 << at),
        })
    }

    /// Whether a bit of the lane's number is 0.
    fn is_low(&self, lane: usize) -> Result<Flag<'k>, KernelError> {
        let thread = self.k.index(&self.k.thread()?)?;
        Ok(thread.bit_and(thread.like(f64::from(1_u32 << lane))).eq(thread.like(0.0)))
    }

    /// Compares each element with the one whose index differs in these bits; by the last of them,
    /// the lower index gets the larger value.
    fn compare(&mut self, slots: &[Slot]) -> Result<(), KernelError> {
        let (values, lanes) = Keys::masks(slots);
        let other: Vec<Num<'k>> = (0..self.values.len())
            .map(|at| {
                let other = self.values[at ^ values];
                if lanes == 0 { other } else { self.k.shuffle_xor(other, lanes) }
            })
            .collect();
        let decides = slots.last().copied();
        let low = match decides {
            Some(Slot::Thread(lane)) => Some(self.is_low(lane)?),
            _ => None,
        };
        let one = |(at, (own, other)): (usize, (Num<'k>, Num<'k>))| match (decides, low) {
            (Some(Slot::Value(bit)), _) if at >> bit & 1 == 0 => own.max(other),
            (Some(Slot::Value(_)), _) => own.min(other),
            (_, Some(low)) => low.select(own.max(other), own.min(other)),
            _ => own,
        };
        self.values = self.values.iter().copied().zip(other).enumerate().map(one).collect();
        Ok(())
    }

    /// Makes what rises and then falls, or falls and then rises, along sorted bits fall.
    fn settle(&mut self, sorted: &[Slot]) -> Result<(), KernelError> {
        sorted.iter().rev().try_for_each(|slot| self.compare(&[*slot]))
    }

    fn sort(&mut self, sorted: &[Slot]) -> Result<(), KernelError> {
        for size in 1..=sorted.len() {
            // Each with its opposite: the first half falls, and so does the second.
            self.compare(&sorted[..size])?;
            self.settle(&sorted[..size - 1])?;
        }
        Ok(())
    }

    /// Merges bits away; returns where the sorted bits are then.
    fn merge(&mut self, sorted: &[Slot], merged: &[Slot]) -> Result<Vec<Slot>, KernelError> {
        for (at, slot) in merged.iter().enumerate() {
            let now = Network::after(sorted, &merged[..at]);
            let slot = Network::after(&[*slot], &merged[..at])[0];
            let all: Vec<Slot> = now.iter().copied().chain([slot]).collect();
            let (values, lanes) = Keys::masks(&all);
            let greater = |at: usize| {
                let other = self.values[at ^ values];
                self.values[at].max(if lanes == 0 { other } else { self.k.shuffle_xor(other, lanes) })
            };
            self.values = match slot {
                Slot::Value(bit) => (0..self.values.len()).filter(|at| at >> bit & 1 == 0).map(greater).collect(),
                Slot::Thread(_) => (0..self.values.len()).map(greater).collect(),
            };
            self.settle(&Network::after(sorted, &merged[..=at]))?;
        }
        Ok(Network::after(sorted, merged))
    }
}

impl<'k> Lowering<'k, '_> {
    /// The greatest along a mode.
    pub(super) fn top(
        &self,
        result: ValueId,
        operand: ValueId,
        mode: usize,
        count: i64,
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let program = &self.placed.program;
        let ty = program.type_of(operand);
        let network = Network::new(&ty.shape, mode, count.trailing_zeros(), self.held(operand)?);
        let tile = self.tiled(&self.numbers(operand)?, &self.distribution(operand)?)?;
        let tile = tile.convert(&network.begins.distribution(&ty.shape)?)?;
        let whole = ty.element == Element::I32;
        let numbers = tile.fragment().numbers()?;
        let numbers = numbers.into_iter().map(|x| if whole { x } else { ordered(x.recast(Element::I32)) });
        let mut keys = Keys { k: self.k, values: numbers.collect() };
        keys.sort(&network.sorted)?;
        let sorted = keys.merge(&network.sorted, &network.merged)?;
        if let Some((from, to)) = &network.moved {
            let mut shape = ty.shape.clone();
            shape[mode] = count << network.merged_then.len();
            let distribution = |held: &crate::held::Held| held.distribution(&shape);
            let tile = self.tiled(&keys.values, &distribution(from)?)?.convert(&distribution(to)?)?;
            keys.values = tile.fragment().numbers()?;
            keys.merge(&sorted, &network.merged_then)?;
        }
        let back = |x: Num<'k>| if whole { x } else { ordered(x).recast(Element::F32) };
        let numbers: Vec<Num<'k>> = keys.values.into_iter().map(back).collect();
        let shape = &program.type_of(result).shape;
        let tile = self.tiled(&numbers, &network.result.distribution(shape)?)?;
        tile.convert(&self.distribution(result)?)?.fragment().numbers()
    }
}

/// A word of Philox4x32-10 of the counter `(c,0,0,0)` and the key `(s,0)`.
pub(super) fn random<'k>(k: &'k Build, counter: Num<'k>, seed: Num<'k>, word: u8) -> Num<'k> {
    let of = |bits: u32| k.number(bits);
    let mut words = [counter.recast(Element::U32), of(0), of(0), of(0)];
    let key = seed.recast(Element::U32);
    for round in 0..10_u32 {
        let product = |a: u32, b: Num<'k>| (of(a).multiply_high(b), of(a) * b);
        let ((high0, low0), (high1, low1)) = (product(0xd251_1f53, words[0]), product(0xcd9e_8d57, words[2]));
        let keys = [key + of(0x9e37_79b9_u32.wrapping_mul(round)), of(0xbb67_ae85_u32.wrapping_mul(round))];
        words = [high1.bit_xor(words[1]).bit_xor(keys[0]), low1, high0.bit_xor(words[3]).bit_xor(keys[1]), low0];
    }
    words[usize::from(word.min(3))].recast(Element::I32)
}

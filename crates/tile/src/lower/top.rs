//! Sorting networks, and random numbers.
//!
//! Law: a step of a sorting network compares elements whose indices differ in sorted bits; the
//! element with the lower index gets the larger value. Floating-point numbers are compared as
//! integers with the same order. If positions are sorted too, equal keys are ordered by position.

use tilewright_kernel::{Build, Element, Flag, KernelError, Num};

use super::Lowering;
use crate::program::statement::definitions;
use crate::program::{Operation, Statement, ValueId};
use crate::top::{Slot, TopNetwork};

/// Converts the bits of a floating-point number to an integer with the same order, and back: if the
/// sign is set, all other bits are flipped.
fn ordered<'k>(k: &'k Build, x: Num<'k>) -> Num<'k> {
    let sign = x.shift_right(k.number(x.element().bits() - 1));
    let others = if x.element() == Element::I64 { k.number(i64::MAX) } else { k.number(i32::MAX) };
    x.bit_xor(sign.bit_and(others))
}

/// The integer type of the same width.
fn whole(element: Element) -> Element {
    if element.bits() == 64 { Element::I64 } else { Element::I32 }
}

/// Keys to sort and, if they are wanted, their positions. Both lists have the same length.
struct Keys<'k> {
    k: &'k Build,
    parts: Vec<Vec<Num<'k>>>,
}

/// Orders two keys with their positions: the first of the order, then the second. Of equal keys,
/// the one with the lower position comes first.
fn in_order<'k>(a: &[Num<'k>], b: &[Num<'k>]) -> [Vec<Num<'k>>; 2] {
    match (a, b) {
        ([a, from], [b, other]) => {
            let first = a.gt(*b).or(a.eq(*b).and(from.lt(*other)));
            let [x, y] = [first.select(*a, *b), first.select(*from, *other)];
            [vec![x, y], vec![first.select(*b, *a), first.select(*other, *from)]]
        }
        _ => {
            let pairs = || a.iter().zip(b);
            [pairs().map(|(a, b)| a.max(*b)).collect(), pairs().map(|(a, b)| a.min(*b)).collect()]
        }
    }
}

impl<'k> Keys<'k> {
    /// The mask of the bits of the value's index, and that of the bits of the lane's index.
    fn masks(slots: &[Slot]) -> (usize, u32) {
        slots.iter().fold((0, 0), |(values, lanes), slot| match slot {
            Slot::Value(at) => (values | 1 << at, lanes),
            Slot::Thread(at) => (values, lanes | 1 << at),
        })
    }

    /// The number of keys of a thread.
    fn count(&self) -> usize {
        self.parts.first().map_or(0, Vec::len)
    }

    /// A key, followed by its position if there is one.
    fn at(&self, at: usize) -> Vec<Num<'k>> {
        self.parts.iter().map(|part| part[at]).collect()
    }

    /// A key of another lane, followed by its position if there is one.
    fn other(&self, at: usize, lanes: u32) -> Vec<Num<'k>> {
        let moved = |own: Num<'k>| if lanes == 0 { own } else { self.k.shuffle_xor(own, lanes) };
        self.at(at).into_iter().map(moved).collect()
    }

    /// Replaces the keys and their positions.
    fn keep(&mut self, keys: &[Vec<Num<'k>>]) {
        self.parts = (0..self.parts.len()).map(|part| keys.iter().map(|key| key[part]).collect()).collect();
    }

    /// Whether a bit of the lane's index is 0.
    fn is_low(&self, lane: usize) -> Result<Flag<'k>, KernelError> {
        let thread = self.k.index(&self.k.thread()?)?;
        Ok(thread.bit_and(thread.like(f64::from(1_u32 << lane))).eq(thread.like(0.0)))
    }

    /// Compares each element with the one whose index differs in all of these bits. The last of the
    /// bits decides which of both has the lower index and gets the larger value.
    fn compare(&mut self, slots: &[Slot]) -> Result<(), KernelError> {
        let (values, lanes) = Keys::masks(slots);
        let others: Vec<Vec<Num<'k>>> = (0..self.count()).map(|at| self.other(at ^ values, lanes)).collect();
        let decides = slots.last().copied();
        let low = match decides {
            Some(Slot::Thread(lane)) => Some(self.is_low(lane)?),
            _ => None,
        };
        let one = |(at, other): (usize, &Vec<Num<'k>>)| {
            let [first, last] = in_order(&self.at(at), other);
            match (decides, low) {
                (Some(Slot::Value(bit)), _) if at >> bit & 1 == 0 => first,
                (Some(Slot::Value(_)), _) => last,
                (_, Some(low)) => first.iter().zip(&last).map(|(first, last)| low.select(*first, *last)).collect(),
                _ => self.at(at),
            }
        };
        let keys: Vec<Vec<Num<'k>>> = others.iter().enumerate().map(one).collect();
        self.keep(&keys);
        Ok(())
    }

    /// Turns bitonic sequences along the sorted bits into descending ones.
    fn settle(&mut self, sorted: &[Slot]) -> Result<(), KernelError> {
        sorted.iter().rev().try_for_each(|slot| self.compare(&[*slot]))
    }

    fn sort(&mut self, sorted: &[Slot]) -> Result<(), KernelError> {
        for size in 1..=sorted.len() {
            // Compares each element with its mirror image, as in a merge of two descending halves.
            self.compare(&sorted[..size])?;
            self.settle(&sorted[..size - 1])?;
        }
        Ok(())
    }

    /// Merges bits away. Returns the new positions of the sorted bits.
    fn merge(&mut self, sorted: &[Slot], merged: &[Slot]) -> Result<Vec<Slot>, KernelError> {
        for (at, slot) in merged.iter().enumerate() {
            let now = TopNetwork::after(sorted, &merged[..at]);
            let slot = TopNetwork::after(&[*slot], &merged[..at])[0];
            let all: Vec<Slot> = now.iter().copied().chain([slot]).collect();
            let (values, lanes) = Keys::masks(&all);
            let first = |at: usize| {
                let [first, _] = in_order(&self.at(at), &self.other(at ^ values, lanes));
                first
            };
            let keys: Vec<Vec<Num<'k>>> = match slot {
                Slot::Value(bit) => (0..self.count()).filter(|at| at >> bit & 1 == 0).map(first).collect(),
                Slot::Thread(_) => (0..self.count()).map(first).collect(),
            };
            self.keep(&keys);
            self.settle(&TopNetwork::after(sorted, &merged[..=at]))?;
        }
        Ok(TopNetwork::after(sorted, merged))
    }
}

/// Keys that a body sorted, with their positions: the value, the mode, and the number of keys.
pub(super) struct Sorted<'k> {
    of: (ValueId, usize, i64),
    parts: Vec<Vec<Num<'k>>>,
}

impl<'k> Lowering<'k, '_> {
    /// The greatest elements along a mode, or their positions. A body that uses both sorts once.
    pub(super) fn top(
        &mut self,
        result: ValueId,
        operand: ValueId,
        (mode, count): (usize, i64),
        places: bool,
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let of = (operand, mode, count);
        let program = &self.placed.program;
        let ty = program.type_of(operand);
        let network = TopNetwork::new(&ty.shape, mode, count.trailing_zeros(), self.held(operand)?);
        let parts = match &self.sorted {
            Some(sorted) if sorted.of == of => sorted.parts.clone(),
            _ => {
                let both = places || asks_for_places(&program.body, of);
                let parts = self.sorted_keys(&network, of, both)?;
                if both {
                    self.sorted = Some(Sorted { of, parts: parts.clone() });
                }
                parts
            }
        };
        let is_back = places || !ty.element.is_float();
        let back = |x: &Num<'k>| if is_back { *x } else { ordered(self.k, *x).recast(ty.element) };
        let missing = || KernelError::from(tilewright_layout::LayoutError::Overflow { op: "top" });
        let part = parts.get(usize::from(places)).ok_or_else(missing)?;
        let numbers: Vec<Num<'k>> = part.iter().map(back).collect();
        let shape = &program.type_of(result).shape;
        let tile = self.tiled(&numbers, &network.result.distribution(shape)?)?;
        tile.convert(&self.distribution(result)?)?.fragment().numbers()
    }

    /// The greatest elements along a mode as keys, with their positions if these are wanted.
    fn sorted_keys(
        &self,
        network: &TopNetwork,
        (operand, mode, count): (ValueId, usize, i64),
        places: bool,
    ) -> Result<Vec<Vec<Num<'k>>>, KernelError> {
        let ty = self.placed.program.type_of(operand);
        let begins = network.begins.distribution(&ty.shape)?;
        let tile = self.tiled(&self.numbers(operand)?, &self.distribution(operand)?)?.convert(&begins)?;
        let numbers = tile.fragment().numbers()?;
        let key = |x: Num<'k>| match ty.element.is_float() {
            true => ordered(self.k, x.recast(whole(ty.element))),
            false => x,
        };
        let numbers = numbers.into_iter().map(key);
        let mut keys = Keys { k: self.k, parts: vec![numbers.collect()] };
        if places {
            keys.parts.push(self.k.distributed_index(&begins, mode)?.fragment().numbers()?);
        }
        keys.sort(&network.sorted)?;
        let sorted = keys.merge(&network.sorted, &network.merged)?;
        if let Some((from, to)) = &network.moved {
            let mut shape = ty.shape.clone();
            shape[mode] = count << network.merged_then.len();
            let (from, to) = (from.distribution(&shape)?, to.distribution(&shape)?);
            for part in &mut keys.parts {
                *part = self.tiled(part, &from)?.convert(&to)?.fragment().numbers()?;
            }
            keys.merge(&sorted, &network.merged_then)?;
        }
        Ok(keys.parts)
    }
}

/// Whether a program uses the positions of the greatest elements of a value.
fn asks_for_places(body: &[Statement], (operand, mode, count): (ValueId, usize, i64)) -> bool {
    definitions(body).any(|own| *own.1 == Operation::TopPlaces(mode, count) && own.2.first() == Some(&operand))
}

/// A word of Philox4x32-10, from the counter `(c,0,0,0)` and the key `(s,0)`.
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

//! A 16-bit maximum and its chunk, packed into one integer key.
//!
//! Law: the key of a larger number is larger; of equal numbers, the key of the earlier chunk is
//! larger. NaN has the largest key; both zeros have the same key bits. So the results of a block
//! are combined by one integer maximum instead of comparisons of pairs.

use tilewright_kernel::{Build, Distributed, Element, Fragment, KernelError, Num, Reduction};

use super::Walk;
use crate::terms::Statistic;

/// The number of chunks of a share that the bits of a key can distinguish.
const CHUNKS: i64 = 1 << 16;

impl Walk {
    /// Chunks of each share.
    pub(super) fn chunks_of_share(&self) -> i64 {
        self.shape.steps * self.shape.along * if self.inner { self.shape.loads } else { 1 }
    }

    /// Whether maxima and their chunks are packed into keys.
    pub(super) fn has_keys(&self) -> bool {
        self.statistic == Statistic::ArgMaximum
            && self.in_chunks()
            && matches!(self.element, Element::F16 | Element::Bf16)
            && self.chunks_of_share() <= CHUNKS
    }

    /// The keys of the numbers of a thread, in f32, and of their chunks, relative to the first
    /// chunk of the share.
    pub(super) fn keys<'k>(
        &self,
        k: &'k Build,
        numbers: &Fragment<'k>,
        chunks: &Fragment<'k>,
        first: Num<'k>,
    ) -> Result<Fragment<'k>, KernelError> {
        let keys = k.register(Element::U32, &self.each().to_string())?;
        let key = |(number, chunk): (Num<'k>, Num<'k>)| {
            // Adding 0 makes -0 equal to +0.
            let bits = (number + number.like(0.0)).to(self.element).recast(Element::U16).to(Element::U32);
            let bits = bits.shift_left(bits.like(16.0));
            // Negative numbers have all bits inverted, other numbers the sign bit.
            let turned = bits.bit_xor(sign_of(bits).bit_or(bits.like(SIGN)));
            // If no element was read, the chunk is 0, which may be before the share.
            let chunk = chunk.max(first) - first;
            let ordered = number.eq(number).select(turned, bits.like(ALL));
            ordered.bit_and(bits.like(HIGH)).bit_or(bits.like(LOW) - chunk.recast(Element::U32))
        };
        let list: Vec<Num<'k>> = numbers.numbers()?.into_iter().zip(chunks.numbers()?).map(key).collect();
        keys.set(&list)?;
        Ok(keys)
    }

    /// The maxima of the threads along, in f32, and their chunks.
    pub(super) fn greatest_of_keys<'k>(
        &self,
        keys: &Distributed<'k>,
        first: Num<'k>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let keys = keys.reduce(&[1], Reduction::Maximum)?;
        let number = |key: Num<'k>| {
            let bits = key.bit_xor(sign_of(key).bit_xor(key.like(ALL)).bit_or(key.like(SIGN)));
            let bits = bits.shift_right(key.like(16.0)).to(Element::U16);
            Ok(bits.recast(self.element).to(self.statistic.wide(self.element)))
        };
        let chunk = |key: Num<'k>| Ok((key.like(LOW) - key.bit_and(key.like(LOW))).recast(Element::I32) + first);
        Ok(vec![keys.map(number)?, keys.map(chunk)?])
    }
}

/// Masks of a 32-bit key: all bits, the sign bit, the bits of a chunk, and the other bits.
const ALL: f64 = u32::MAX as f64;
const SIGN: f64 = i32::MIN.unsigned_abs() as f64;
const LOW: f64 = (CHUNKS - 1) as f64;
const HIGH: f64 = ALL - LOW;

/// The sign bit, copied to all bits.
fn sign_of(bits: Num<'_>) -> Num<'_> {
    bits.recast(Element::I32).shift_right(bits.like(31.0)).recast(Element::U32)
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::machine::Machine;
    use tilewright_layout::Layout;

    use super::*;
    use crate::reduce::problem::ReductionProblem;
    use crate::units::WHOLE;

    /// Numbers of 16 bits and their chunks are packed into keys if a key has enough bits for all
    /// chunks of a share.
    #[test]
    fn keys_have_room_for_all_chunks_of_a_share() {
        let layout: Layout = "(2000000,64):(1,2000000)".parse().unwrap();
        let problem = ReductionProblem::new(&layout, &[0], true).unwrap();
        for (element, keys) in [(Element::Bf16, true), (Element::F16, true), (Element::F32, false)] {
            let machine = Machine::named("H200").unwrap();
            let mut walk = Walk::new(&machine, Statistic::ArgMaximum, &problem, element, WHOLE).unwrap();
            assert!(walk.shape.shares > 1 && walk.has_keys() == keys, "{element}");
            // All elements in one share.
            walk.shape.steps *= walk.shape.shares;
            walk.shape.shares = 1;
            assert!(!walk.has_keys(), "{element}");
        }
    }
}

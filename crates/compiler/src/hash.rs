//! The hash of values and of operations.
//!
//! Law: equal input gives equal hashes within one interner. Each word is mixed by a *folded multiplication*: the 128-bit product of
//! two words, its halves combined by exclusive or. That costs one multiplication a word, where the hash of the standard library
//! costs about ten times as much, and looking things up is all that an interner does.
//!
//! The start is random for each interner, so that nobody who writes layouts can choose ones that collide. Nothing but speed depends
//! on the hash: values are compared.

use std::hash::{BuildHasher, Hasher, RandomState};

/// An odd number without structure: the digits of the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Where the hashes of one interner start.
#[derive(Clone, Copy)]
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn random() -> Seed {
        Seed(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for Seed {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// A hash that is being computed.
pub(crate) struct Folded(u64);

impl Hasher for Folded {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.write_u64(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(MULTIPLIER);
        self.0 = (product as u64) ^ (product >> 64) as u64;
        // A product with zero forgets what came before; the rotation by an odd amount keeps the position of the word.
        self.0 = self.0.wrapping_add(MULTIPLIER).rotate_left(23);
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

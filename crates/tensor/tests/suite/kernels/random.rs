//! Layouts, and numbers, that look random (SplitMix64, by Steele, Lea and Flood, 2014), the same in
//! every run.

use bytemuck::AnyBitPattern;
use tilewright_layout::{Layout, Leaf, Tree};

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Between -1 and 1, with a few of other magnitudes.
    pub fn real(&mut self) -> f64 {
        let value = (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        if self.one_in(16) { value * 64.0 } else { value }
    }

    pub fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for k in (1..count).rev() {
            order.swap(k, self.below(k as u64 + 1) as usize);
        }
        order
    }

    /// An injective layout of these extents: modes in a random order, with padding and backwards at
    /// times.
    pub fn strides(&mut self, extents: &[i64], plain: bool) -> Layout {
        let mut strides = vec![0; extents.len()];
        let mut step = if plain || self.one_in(2) { 1 } else { 1 + self.below(3) as i64 };
        for mode in self.shuffled(extents.len()) {
            strides[mode] = if !plain && self.one_in(6) { -step } else { step };
            step *= extents[mode];
            if !plain && self.one_in(4) {
                step += self.below(5) as i64;
            }
        }
        flat(extents, &strides)
    }

    /// The extents split and merged, so that the sizes agree and the shapes do not.
    pub fn reshaped(&mut self, extents: &[i64]) -> Vec<i64> {
        let mut parts = Vec::new();
        for extent in extents {
            let divisor = (2..=*extent).filter(|divisor| extent % divisor == 0).nth(self.below(2) as usize);
            match divisor {
                Some(divisor) if self.one_in(2) => parts.extend([divisor, extent / divisor]),
                _ => parts.push(*extent),
            }
        }
        if parts.len() > 1 && self.one_in(2) {
            let second = parts.remove(1);
            parts[0] *= second;
        }
        if self.one_in(8) {
            parts.reverse();
        }
        parts
    }
}

/// A layout of leaves alone.
pub fn flat(extents: &[i64], strides: &[i64]) -> Layout {
    let leaves = extents.iter().zip(strides).map(|(extent, stride)| Leaf { extent: *extent, stride: *stride });
    Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap()
}

/// Memory with room before and after, and in it where offset 0 lies.
pub fn memory<T: AnyBitPattern>(range: (i64, i64), seed: u64) -> (Vec<T>, usize) {
    const GUARD: i64 = 9;
    let range = (range.0.min(0), range.1.max(0));
    let count = (range.1 - range.0 + 1 + 2 * GUARD) as usize;
    let mut random = Random(seed);
    let bytes: Vec<u8> = (0..count * size_of::<T>()).map(|_| random.next() as u8).collect();
    let values = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
    (values, (GUARD - range.0) as usize)
}

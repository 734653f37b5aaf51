//! Numbers that look random (SplitMix64, by Steele, Lea and Flood, 2014), the same in every run.

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
}

//! Pseudo-random numbers, the same in every run.

/// A small generator (splitmix64), so that a case can be named by its seed.
pub struct Random(pub u64);

impl Random {
    /// A number from 0 up to `bound`, which is positive.
    pub fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as i64
    }
}

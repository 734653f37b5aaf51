//! The language server: the analysis alone, and over its protocol.

mod foreign;
mod format;
mod position;
mod protocol;
mod tile;

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

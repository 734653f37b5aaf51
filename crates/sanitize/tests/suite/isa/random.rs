//! Random bits, with more of what is at the edges.

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    /// An integer of this many bits: anything, or next to a power of two.
    pub(crate) fn integer(&mut self, width: u32) -> u64 {
        let mask = u64::MAX >> (64 - width);
        let power = 1_u64 << self.below(width.into());
        mask & match self.below(8) {
            0 => 0,
            1 => power,
            2 => power.wrapping_sub(1),
            3 => power.wrapping_neg(),
            4 => self.below(40),
            _ => self.bits(),
        }
    }

    /// A floating-point number with this many bits of exponent and fraction: anything, NaN, an
    /// infinity, 0, subnormal, or near one.
    pub(crate) fn float(&mut self, exponent: u32, fraction: u32) -> u64 {
        let sign = self.below(2) << (exponent + fraction);
        let field = |value: u64| value << fraction;
        let top = (1 << exponent) - 1;
        let low = self.bits() & ((1 << fraction) - 1);
        // Few bits make ties.
        let sparse = low & !((1 << self.below(u64::from(fraction) + 1)) - 1);
        let magnitude = match self.below(16) {
            0 => 0,
            1 => field(top),
            2 => field(top) | low | 1,
            3 => low,
            4 => field(1) | sparse,
            5 => field(top - 1) | low,
            6..=9 => field((top >> 1) - 3 + self.below(7)) | sparse,
            10 => field((top >> 1) - 3 + self.below(7)) | low,
            _ => field(self.below(top)) | low,
        };
        sign | magnitude
    }

    pub(crate) fn f32(&mut self) -> u32 {
        self.float(8, 23) as u32
    }

    pub(crate) fn f64(&mut self) -> u64 {
        self.float(11, 52)
    }
}

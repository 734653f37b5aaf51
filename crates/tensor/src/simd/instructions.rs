//! The instructions of the processor: asked for here, and nowhere else.

/// The instructions that transposes may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instructions {
    /// What every processor has.
    Portable,
    /// AVX2: 32 bytes at a time.
    Avx2,
    /// AVX-512 F and BW: 64 bytes at a time.
    Avx512,
}

impl Instructions {
    /// The best that this processor has.
    pub fn detected() -> Instructions {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                return Instructions::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Instructions::Avx2;
            }
        }
        Instructions::Portable
    }
}

//! The instructions of the processor; no other module queries them.
//!
//! Law: a function that begins with `has` is true only if the processor and the system have the
//! instructions. The answers are cached by the standard library.

use std::fmt;

/// The instructions that transposes may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instructions {
    /// The instructions of every processor of the target.
    Portable,
    /// AVX2: 32 bytes at a time.
    Avx2,
    /// AVX-512 F and BW: 64 bytes at a time.
    Avx512,
}

impl Instructions {
    /// The fastest that this processor has.
    pub fn detected() -> Instructions {
        if has_avx512() {
            Instructions::Avx512
        } else if has_avx2() {
            Instructions::Avx2
        } else {
            Instructions::Portable
        }
    }
}

impl fmt::Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Instructions::Portable => "portable",
            Instructions::Avx2 => "AVX2",
            Instructions::Avx512 => "AVX-512",
        })
    }
}

/// Functions that query the processor; false on every other architecture.
macro_rules! detected {
    ($($(#[$doc:meta])* $name:ident: $($feature:tt),*;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name() -> bool {
            #[cfg(target_arch = "x86_64")]
            return $(is_x86_feature_detected!($feature))&&*;
            #[cfg(not(target_arch = "x86_64"))]
            return false;
        }
    )*};
}

detected! {
    /// AVX2.
    has_avx2: "avx2";
    /// AVX2 with fused multiply-add.
    has_avx2_fma: "avx2", "fma";
    /// AVX-512 F and BW.
    has_avx512: "avx512f", "avx512bw";
    /// The instructions of GEMM kernels in AVX-512: F, BW and VL, and AVX2 with fused multiply-add.
    has_avx512_products: "avx512f", "avx512bw", "avx512vl", "avx2", "fma";
    /// The permutations of bytes of AVX-512 VBMI.
    has_avx512_vbmi: "avx512vbmi";
    /// The dot products of bytes of AVX-512 VNNI.
    has_avx512_vnni: "avx512vnni";
    /// The dot products of bfloat16 of AVX-512-BF16.
    has_avx512_bf16: "avx512bf16";
}

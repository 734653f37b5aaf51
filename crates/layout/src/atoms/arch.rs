//! The architectures on which instructions run.

use core::str::FromStr;

use crate::atoms::error::AtomError;
use crate::ground::words::words;

words! {
    /// The oldest architecture that has an instruction.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Arch {
        /// Any machine: one thread, scalar arithmetic and copies.
        Universal = "Universal",
        /// NVIDIA, compute capability 5.0 and up.
        Sm50 = "SM50",
        /// NVIDIA, compute capability 6.1 and up.
        Sm61 = "SM61",
        /// NVIDIA, compute capability 7.0 (Volta).
        Sm70 = "SM70",
        /// NVIDIA, compute capability 7.5 (Turing) and up.
        Sm75 = "SM75",
        /// NVIDIA, compute capability 8.0 (Ampere) and up.
        Sm80 = "SM80",
        /// NVIDIA, compute capability 8.9 (Ada) and up.
        Sm89 = "SM89",
        /// NVIDIA, compute capability 9.0 (Hopper).
        Sm90 = "SM90",
        /// NVIDIA, compute capability 10.0 (Blackwell, data centre).
        Sm100 = "SM100",
        /// NVIDIA, compute capability 10.3.
        Sm103 = "SM103",
        /// NVIDIA, compute capability 12.0 (Blackwell, desktop).
        Sm120 = "SM120",
        /// AMD matrix cores, first generation (MI100).
        Gfx908 = "GFX908",
        /// AMD matrix cores, second generation (MI200).
        Gfx90a = "GFX90A",
        /// AMD matrix cores, third generation (MI300).
        Gfx942 = "GFX942",
        /// AMD matrix cores, fourth generation (MI350).
        Gfx950 = "GFX950",
        /// AMD graphics, RDNA 3.
        Gfx1100 = "GFX1100",
        /// AMD graphics, RDNA 4.
        Gfx1200 = "GFX1200",
        /// Intel graphics with Xe matrix extensions, 16 work-items wide.
        Xe = "XE",
        /// Intel AMX.
        Amx = "AMX",
        /// A CPU with AVX-512.
        Avx512 = "AVX512",
        /// A CPU with AVX2 and fused multiply-add.
        Avx2 = "AVX2",
        /// Any CPU.
        Portable = "PORTABLE",
    }
}

impl FromStr for Arch {
    type Err = AtomError;

    /// Parses a name in upper or lower case.
    fn from_str(text: &str) -> Result<Arch, AtomError> {
        let found = Arch::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| AtomError::unknown("architecture", text, Arch::ALL.map(Arch::name)))
    }
}

//! The architectures on which instructions run.

use core::fmt;
use core::str::FromStr;

use crate::atoms::error::AtomError;

/// The least machine that has an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Arch {
    /// Any machine: one thread, plain arithmetic and plain copies.
    Universal,
    /// NVIDIA, compute capability 5.0 and up.
    Sm50,
    /// NVIDIA, compute capability 6.1 and up.
    Sm61,
    /// NVIDIA, compute capability 7.0 (Volta).
    Sm70,
    /// NVIDIA, compute capability 7.5 (Turing) and up.
    Sm75,
    /// NVIDIA, compute capability 8.0 (Ampere) and up.
    Sm80,
    /// NVIDIA, compute capability 8.9 (Ada) and up.
    Sm89,
    /// NVIDIA, compute capability 9.0 (Hopper).
    Sm90,
    /// NVIDIA, compute capability 10.0 (Blackwell, data centre).
    Sm100,
    /// NVIDIA, compute capability 10.3.
    Sm103,
    /// NVIDIA, compute capability 12.0 (Blackwell, desktop).
    Sm120,
    /// AMD matrix cores, first generation (MI100).
    Gfx908,
    /// AMD matrix cores, second generation (MI200).
    Gfx90a,
    /// AMD matrix cores, third generation (MI300).
    Gfx942,
    /// AMD matrix cores, fourth generation (MI350).
    Gfx950,
    /// AMD graphics, RDNA 3.
    Gfx1100,
    /// AMD graphics, RDNA 4.
    Gfx1200,
    /// Intel graphics with Xe matrix extensions, 16 work-items wide.
    Xe,
    /// Intel AMX.
    Amx,
    /// A CPU with AVX-512.
    Avx512,
    /// A CPU with AVX2 and fused multiply-add.
    Avx2,
    /// Any CPU.
    Portable,
}

impl Arch {
    /// All of them.
    pub const ALL: [Arch; 22] = [
        Arch::Universal,
        Arch::Sm50,
        Arch::Sm61,
        Arch::Sm70,
        Arch::Sm75,
        Arch::Sm80,
        Arch::Sm89,
        Arch::Sm90,
        Arch::Sm100,
        Arch::Sm103,
        Arch::Sm120,
        Arch::Gfx908,
        Arch::Gfx90a,
        Arch::Gfx942,
        Arch::Gfx950,
        Arch::Gfx1100,
        Arch::Gfx1200,
        Arch::Xe,
        Arch::Amx,
        Arch::Avx512,
        Arch::Avx2,
        Arch::Portable,
    ];

    /// The name with which names of atoms begin.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Universal => "Universal",
            Arch::Sm50 => "SM50",
            Arch::Sm61 => "SM61",
            Arch::Sm70 => "SM70",
            Arch::Sm75 => "SM75",
            Arch::Sm80 => "SM80",
            Arch::Sm89 => "SM89",
            Arch::Sm90 => "SM90",
            Arch::Sm100 => "SM100",
            Arch::Sm103 => "SM103",
            Arch::Sm120 => "SM120",
            Arch::Gfx908 => "GFX908",
            Arch::Gfx90a => "GFX90A",
            Arch::Gfx942 => "GFX942",
            Arch::Gfx950 => "GFX950",
            Arch::Gfx1100 => "GFX1100",
            Arch::Gfx1200 => "GFX1200",
            Arch::Xe => "XE",
            Arch::Amx => "AMX",
            Arch::Avx512 => "AVX512",
            Arch::Avx2 => "AVX2",
            Arch::Portable => "PORTABLE",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Arch {
    type Err = AtomError;

    /// Reads a name in upper or lower case.
    fn from_str(text: &str) -> Result<Arch, AtomError> {
        let found = Arch::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| AtomError::unknown("architecture", text, Arch::ALL.map(Arch::name)))
    }
}

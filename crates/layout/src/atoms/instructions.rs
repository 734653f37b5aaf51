//! The tables of MMA instructions, one file for each architecture.

mod amd;
mod amx;
mod rdna;
mod sm100;
mod sm120;
mod sm61;
mod sm70;
mod sm75;
mod sm80;
mod sm80_sparse;
mod sm89;
mod sm90;
mod universal;
mod wgmma;
mod xe;

use crate::atoms::alias;
use crate::atoms::arch::Arch;
use crate::atoms::catalogue::{self, Member, MmaFamily, MmaRule};
use crate::atoms::cpu;
use crate::atoms::error::AtomError;
use crate::atoms::family::{Family, sealed::Made};
use crate::atoms::mma::MmaAtom;

/// Every table.
pub(crate) const ALL: &[&[MmaFamily]] = &[
    universal::FAMILIES,
    sm61::FAMILIES,
    sm70::FAMILIES,
    sm75::FAMILIES,
    sm80::FAMILIES,
    sm80_sparse::FAMILIES,
    sm89::FAMILIES,
    sm90::FAMILIES,
    wgmma::FAMILIES,
    sm100::FAMILIES,
    sm120::FAMILIES,
    amd::FAMILIES,
    rdna::FAMILIES,
    xe::FAMILIES,
    amx::FAMILIES,
    cpu::FAMILIES,
];

impl Made for MmaAtom {
    type Rule = MmaRule;

    const KIND: &'static str = catalogue::KIND;

    fn tables() -> &'static [&'static [MmaFamily]] {
        ALL
    }

    fn make(name: &str, arch: Arch, rule: &MmaRule) -> Result<MmaAtom, AtomError> {
        let member = Member { name, arch };
        match rule {
            MmaRule::Row(row) => member.signature().and_then(|(shape, types)| member.atom(shape, types, *row)),
            MmaRule::Derived(make) => make(&member),
        }
    }
}

impl MmaAtom {
    /// The instruction of this name, which may also be the name that another system or an older
    /// release uses. The result has the name of the tables.
    ///
    /// Errors: there is none; the error lists similar names ([`AtomError::UnknownName`]).
    ///
    /// ```
    /// use tilewright_layout::atoms::MmaAtom;
    ///
    /// let atom = MmaAtom::named("SM80_16x8x16_F32BF16BF16F32_TN").unwrap();
    /// assert_eq!(atom.b().layout().to_string(), "((4,8),(2,2)):((16,1),(8,64))");
    ///
    /// let error = MmaAtom::named("SM80_16x8x16_F32BF16BF16F23_TN").unwrap_err();
    /// assert!(error.help().unwrap().starts_with("is `SM80_16x8x16_F32BF16BF16F32_TN`"));
    ///
    /// let wmma = MmaAtom::named("RDNA3_16x16x16_F32F16F16_WMMA").unwrap();
    /// assert_eq!(wmma.name(), "GFX1100_16x16x16_F32F16F16F32");
    /// ```
    pub fn named(name: &str) -> Result<MmaAtom, AtomError> {
        Family::named(name).or_else(|error| match alias::names(name).iter().find_map(|own| Family::named(own).ok()) {
            Some(atom) => Ok(atom),
            None => Err(error),
        })
    }

    /// All families of MMA instructions, in the order of architectures.
    pub fn families() -> impl Iterator<Item = &'static MmaFamily> {
        Family::all()
    }
}

/// Thread-value layouts that many warp-wide instructions share: eight groups of four threads, one
/// group for each row.
pub(crate) mod warp {
    /// All 32 threads.
    pub(crate) const THREADS: &str = "32:1";
    /// Accumulators of 16x8: a thread has pairs along N, in rows 8 apart. The same for operands of
    /// 16x8 with two values in a register.
    pub(crate) const R16X8: &str = "((4,8),(2,2)):((32,1),(16,8))";
    /// An operand of 8x8: a thread has a pair.
    pub(crate) const R8X8: &str = "((4,8),2):((16,1),8)";
    /// An operand of 8x16: a thread has four consecutive values.
    pub(crate) const R8X16: &str = "((4,8),4):((32,1),8)";
    /// An operand of 8x4: a thread has one value.
    pub(crate) const R8X4: &str = "((4,8),1):((8,1),0)";
}

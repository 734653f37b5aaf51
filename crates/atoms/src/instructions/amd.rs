//! AMD matrix cores: a wave of 64 lanes, `v_mfma_*` of one block.
//!
//! # Law
//!
//! Lane `l` of `M = 16` or `32` rows has row `l mod M` of A and of B, and of it as many values along K as fill K: `K*M/64`, side by side, the lanes `l / M` one after another. Of the
//! sums it has column `l mod M`, four rows in a row: those of lanes `l / M` one after another, and for `M = 32` such groups four times. Sums in double precision have one row in a
//! row.
//!
//! The names are the project's: the architecture that has the instruction first, and `D`, `A`, `B`, `C`. `v_mfma_f32_32x32x8_f16` is `GFX908_32x32x8_F32F16F16F32`. Types of 8 bits are those of the machine.
//!
//! (AMD CDNA, CDNA2 and CDNA3 instruction set architecture, "Matrix arithmetic instructions": the layout of dense matrices in registers.)

use alloc::format;

use tilewright_layout::Layout;

use crate::arch::Arch::{Gfx90a, Gfx908, Gfx942};
use crate::catalogue::{Member, MmaFamily};
use crate::error::AtomError;
use crate::mma::MmaAtom;
use crate::value_type::ValueType;

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::derived(Gfx908, "GFX908_{32x32x2,16x16x4}_F32F32F32F32", mfma),
    MmaFamily::derived(Gfx908, "GFX908_{32x32x8,16x16x16}_F32F16F16F32", mfma),
    MmaFamily::derived(Gfx908, "GFX908_{32x32x4,16x16x8}_F32BF16BF16F32", mfma),
    MmaFamily::derived(Gfx908, "GFX908_{32x32x8,16x16x16}_S32S8S8S32", mfma),
    MmaFamily::derived(Gfx90a, "GFX90A_{32x32x8,16x16x16}_F32BF16BF16F32", mfma),
    MmaFamily::derived(Gfx90a, "GFX90A_16x16x4_F64F64F64F64", mfma),
    MmaFamily::derived(Gfx942, "GFX942_{32x32x16,16x16x32}_S32S8S8S32", mfma),
    MmaFamily::derived(Gfx942, "GFX942_{32x32x4,16x16x8}_F32TF32TF32F32", mfma),
    MmaFamily::derived(Gfx942, "GFX942_{32x32x16,16x16x32}_F32{E4M3,E5M2}{E4M3,E5M2}F32", mfma),
];

fn mfma(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    let [rows, _, k] = shape;
    let parts = 64 / rows;
    let run = k / parts;
    let factor: Layout = format!("(({rows},{parts}),{run}):((1,{}),{rows})", rows * run).parse()?;
    let sums: Layout = match rows {
        16 if types.d == ValueType::F64 => "((16,4),4):((16,1),4)",
        16 => "((16,4),4):((16,4),1)",
        _ => "((32,2),(4,4)):((32,4),(1,8))",
    }
    .parse()?;
    let threads = Layout::mode_of(64, 1)?;
    let operands = [factor.clone().into(), factor.into(), sums.into()];
    MmaAtom::new(member.name, member.arch, shape, types, threads, operands)
}

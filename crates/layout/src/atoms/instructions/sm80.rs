//! Ampere, warp-wide instructions. (PTX ISA, "Matrix Fragments for mma.m16n8k*", "mma.m8n8k*"; CuTe
//! `SM80_*`.)
//!
//! The published row of `SM80_16x8x128_*POPC` has strides for A that do not match its shape. The
//! layout here is derived from the ISA, like that of the instruction with twice the K: the 32 bits
//! of a register are along K, and the second register is eight rows below.

use super::warp::{R8X4, R8X8, R8X16, R16X8, THREADS};
use crate::atoms::arch::Arch::Sm80;
use crate::atoms::catalogue::{MmaFamily, MmaRow};

const fn row(a: &'static str, b: &'static str, c: &'static str) -> MmaRow {
    MmaRow { threads: THREADS, a, b, c }
}

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    // Floating point.
    MmaFamily::row(Sm80, "SM80_16x8x8_{F16F16F16F16,F32F16F16F32,F32BF16BF16F32}_TN",
        row(R16X8, R8X8, R16X8)),
    MmaFamily::row(Sm80, "SM80_16x8x16_{F16F16F16F16,F32F16F16F32,F32BF16BF16F32}_TN",
        row("((4,8),(2,2,2)):((32,1),(16,8,128))", "((4,8),(2,2)):((16,1),(8,64))", R16X8)),
    MmaFamily::row(Sm80, "SM80_16x8x4_F32TF32TF32F32_TN",
        row("((4,8),2):((16,1),8)", R8X4, R16X8)),
    MmaFamily::row(Sm80, "SM80_16x8x8_F32TF32TF32F32_TN",
        row("((4,8),(2,2)):((16,1),(8,64))", "((4,8),2):((8,1),32)", R16X8)),
    MmaFamily::row(Sm80, "SM80_8x8x4_{F64F64F64F64,C64C64C64C64,GC64C64C64GC64}_TN",
        row(R8X4, R8X4, R8X8)),
    // Bytes.
    MmaFamily::row(Sm80, "SM80_8x8x16_S32{S8,U8}{S8,U8}S32_TN{,_SATURATE}",
        row(R8X16, R8X16, R8X8)),
    MmaFamily::row(Sm80, "SM80_16x8x16_S32{S8,U8}{S8,U8}S32_TN{,_SATURATE}",
        row("((4,8),(4,2)):((64,1),(16,8))", R8X16, R16X8)),
    MmaFamily::row(Sm80, "SM80_16x8x32_S32{S8,U8}{S8,U8}S32_TN{,_SATURATE}",
        row("((4,8),(4,2,2)):((64,1),(16,8,256))", "((4,8),(4,2)):((32,1),(8,128))", R16X8)),
    // Half bytes.
    MmaFamily::row(Sm80, "SM80_8x8x32_S32{S4,U4}{S4,U4}S32_TN{,_SATURATE}",
        row("((4,8),(8)):((64,1),(8))", "((4,8),(8)):((64,1),(8))", R8X8)),
    MmaFamily::row(Sm80, "SM80_16x8x32_S32{S4,U4}{S4,U4}S32_TN{,_SATURATE}",
        row("((4,8),(8,2)):((128,1),(16,8))", "((4,8),(8)):((64,1),(8))", R16X8)),
    MmaFamily::row(Sm80, "SM80_16x8x64_S32{S4,U4}{S4,U4}S32_TN{,_SATURATE}",
        row("((4,8),(8,2,2)):((128,1),(16,8,512))", "((4,8),(8,2)):((64,1),(8,256))", R16X8)),
    // Bits.
    MmaFamily::row(Sm80, "SM80_8x8x128_S32U1U1S32_TN_{XORPOPC,ANDPOPC}",
        row("((4,8),32):((256,1),8)", "((4,8),32):((256,1),8)", R8X8)),
    MmaFamily::row(Sm80, "SM80_16x8x128_S32U1U1S32_TN_{XORPOPC,ANDPOPC}",
        row("((4,8),(32,2)):((512,1),(16,8))", "((4,8),32):((256,1),8)", R16X8)),
    MmaFamily::row(Sm80, "SM80_16x8x256_S32U1U1S32_TN_{XORPOPC,ANDPOPC}",
        row("((4,8),(32,2,2)):((512,1),(16,8,2048))", "((4,8),(32,2)):((256,1),(8,1024))", R16X8)),
];

//! Ampere, warp-wide instructions with a sparse A: `mma.sp`.
//!
//! # Law
//!
//! K includes the omitted values: of 4 consecutive values of A along K, 2 are stored; of 32-bit
//! values 1 of 2, of 4-bit values 4 of 8 in pairs. So a 32-bit register of A covers twice as many
//! positions along K as it has values: `r` positions from `r * t` on, for thread `t` of a group of
//! four. Rows, and the registers of B and of the accumulators, are as in dense instructions. The
//! metadata operand has the positions of the stored values. A selector of the instruction chooses
//! the threads whose registers have the metadata, so the layout shows it as a whole, as if each
//! thread had all of it.
//!
//! (PTX ISA, "Matrix Fragments for sparse mma.m16n8k*"; the names follow CuTe's `SM120_SPARSE_*`.)

use alloc::format;

use super::warp::{R16X8, THREADS};
use crate::Layout;
use crate::atoms::arch::Arch::Sm80;
use crate::atoms::catalogue::{Member, MmaFamily, MmaRow};
use crate::atoms::error::AtomError;
use crate::atoms::mma::{MmaAtom, Operand};
use crate::atoms::thread_value::ThreadValue;

const fn row(a: &'static str, b: &'static str) -> MmaRow {
    MmaRow { threads: THREADS, a, b, c: R16X8 }
}

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    // Floating point.
    MmaFamily::derived(Sm80, "SM80_SPARSE_16x8x16_{F16F16F16F16,F32F16F16F32,F32BF16BF16F32}_TN",
        |member| sparse(member, row("((4,8),(4,2)):((64,1),(16,8))", "((4,8),(2,2)):((16,1),(8,64))"))),
    MmaFamily::derived(Sm80, "SM80_SPARSE_16x8x32_{F16F16F16F16,F32F16F16F32,F32BF16BF16F32}_TN",
        |member| sparse(member, row("((4,8),(4,2,2)):((64,1),(16,8,256))", "((4,8),(2,4)):((16,1),(8,64))"))),
    MmaFamily::derived(Sm80, "SM80_SPARSE_16x8x8_F32TF32TF32F32_TN",
        |member| sparse(member, row("((4,8),(2,2)):((32,1),(16,8))", "((4,8),2):((8,1),32)"))),
    MmaFamily::derived(Sm80, "SM80_SPARSE_16x8x16_F32TF32TF32F32_TN",
        |member| sparse(member, row("((4,8),(2,2,2)):((32,1),(16,8,128))", "((4,8),4):((8,1),32)"))),
    // Bytes.
    MmaFamily::derived(Sm80, "SM80_SPARSE_16x8x32_S32{S8,U8}{S8,U8}S32_TN{,_SATURATE}",
        |member| sparse(member, row("((4,8),(8,2)):((128,1),(16,8))", "((4,8),(4,2)):((32,1),(8,128))"))),
    MmaFamily::derived(Sm80, "SM80_SPARSE_16x8x64_S32{S8,U8}{S8,U8}S32_TN{,_SATURATE}",
        |member| sparse(member, row("((4,8),(8,2,2)):((128,1),(16,8,512))", "((4,8),(4,4)):((32,1),(8,128))"))),
    // Half bytes.
    MmaFamily::derived(Sm80, "SM80_SPARSE_16x8x64_S32{S4,U4}{S4,U4}S32_TN{,_SATURATE}",
        |member| sparse(member, row("((4,8),(16,2)):((256,1),(16,8))", "((4,8),(8,2)):((64,1),(8,256))"))),
    MmaFamily::derived(Sm80, "SM80_SPARSE_16x8x128_S32{S4,U4}{S4,U4}S32_TN{,_SATURATE}",
        |member| sparse(member, row("((4,8),(16,2,2)):((256,1),(16,8,1024))", "((4,8),(8,4)):((64,1),(8,256))"))),
];

fn sparse(member: &Member<'_>, row: MmaRow) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    let whole: Layout = format!("(32,(16,{})):(0,(1,16))", shape[2]).parse()?;
    member.atom(shape, types, row)?.with(Operand::Metadata, ThreadValue::shared(whole, 32))
}

//! Blackwell, instructions of a CTA or a pair of CTAs: `tcgen05.mma`, computed from the name.
//!
//! # Law
//!
//! One thread issues the instruction, for one CTA or for a pair (2x1SM). In a pair each CTA
//! contributes half of the rows of A, of the columns of B, and of the accumulators. Operands are in
//! shared memory, A optionally in tensor memory (TS); accumulators are in tensor memory. A layout
//! lists the elements of an operand, or of the half of each CTA, column by column. K is the number
//! of values in 32 bytes (values of 4 to 8 bits count as bytes, unless all are of 4 bits), twice as
//! many if A is sparse. The patterns have the types of A, B and the accumulators, then M and N. If
//! operands are block-scaled, the type of the scale factors precedes M and N, and the length of a
//! block follows them.
//!
//! (PTX ISA, "tcgen05.mma": matrix shape; CuTe `SM100_MMA_*`.)

use alloc::format;

use crate::Layout;
use crate::atoms::arch::Arch::{Sm100, Sm103};
use crate::atoms::catalogue::{Member, MmaFamily};
use crate::atoms::error::AtomError;
use crate::atoms::mma::MmaAtom;
use crate::atoms::thread_value::ThreadValue;

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    // One CTA.
    MmaFamily::derived(Sm100, "SM100_MMA_TF32_{SS,SS_SPARSE}<TF32,TF32,F32,{64,128},{8,16,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_TF32_TS<TF32,TF32,F32,64,{8,16,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_TF32_TS<TF32,TF32,F32,128,{16,32,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_F16BF16_{SS,SS_SPARSE}<{F16,BF16},{F16,BF16},F32,{64,128},{8,16,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_F16BF16_{SS,SS_SPARSE}<F16,F16,F16,{64,128},{8,16,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_F16BF16_TS<{F16,BF16},{F16,BF16},F32,64,{8,16,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_F16BF16_TS<{F16,BF16},{F16,BF16},F32,128,{16,32,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_S8_{SS,TS,SS_SPARSE}<{S8,U8},{S8,U8},S32,{64,128},{16,32,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_S8_{SS,TS,SS_SPARSE}<{S8,U8},{S8,U8},S32,{64,128},8>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_F8F6F4_{SS,SS_SPARSE}<{E4M3,E5M2,E3M2,E2M3,E2M1},{E4M3,E5M2,E3M2,E2M3,E2M1},{F32,F16},{64,128},{8,16,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_F8F6F4_TS<{E4M3,E5M2,E3M2,E2M3,E2M1},{E4M3,E5M2,E3M2,E2M3,E2M1},{F32,F16},64,{8,16,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_F8F6F4_TS<{E4M3,E5M2,E3M2,E2M3,E2M1},{E4M3,E5M2,E3M2,E2M3,E2M1},{F32,F16},128,{16,32,..,256}>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_MXF8F6F4_{SS,SS_SPARSE}<{E4M3,E5M2,E3M2,E2M3,E2M1},{E4M3,E5M2,E3M2,E2M3,E2M1},F32,UE8M0,128,{8,16,..,256},32>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_MXF4_SS<E2M1,E2M1,F32,UE8M0,128,{8,16,..,256},32>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_MXF4_SS<E2M1,E2M1,F32,UE4M3,128,{8,16,..,256},16>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_MXF4NVF4_SS_SPARSE<E2M1,E2M1,F32,UE8M0,128,{8,16,..,256},32>", one),
    MmaFamily::derived(Sm100, "SM100_MMA_MXF4NVF4_SS_SPARSE<E2M1,E2M1,F32,UE4M3,128,{8,16,..,256},16>", one),
    MmaFamily::derived(Sm103, "SM103_MXF4_ULTRA_SS_VS<E2M1,E2M1,F32,UE8M0,128,{8,16,..,256},32>", one),
    MmaFamily::derived(Sm103, "SM103_MXF4_ULTRA_SS_VS<E2M1,E2M1,F32,UE4M3,128,{8,16,..,256},16>", one),
    // Two CTAs.
    MmaFamily::derived(Sm100, "SM100_MMA_TF32_2x1SM_{SS,SS_SPARSE}<TF32,TF32,F32,{128,256},{16,32,..,256}>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_TF32_2x1SM_TS<TF32,TF32,F32,{128,256},{32,64,..,256}>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_F16BF16_2x1SM_{SS,SS_SPARSE}<{F16,BF16},{F16,BF16},F32,{128,256},{16,32,..,256}>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_F16BF16_2x1SM_{SS,SS_SPARSE}<F16,F16,F16,{128,256},{16,32,..,256}>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_F16BF16_2x1SM_TS<{F16,BF16},{F16,BF16},F32,{128,256},{32,64,..,256}>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_S8_2x1SM_{SS,TS,SS_SPARSE}<{S8,U8},{S8,U8},S32,{128,256},{32,64,..,256}>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_F8F6F4_2x1SM_{SS,SS_SPARSE}<{E4M3,E5M2,E3M2,E2M3,E2M1},{E4M3,E5M2,E3M2,E2M3,E2M1},{F32,F16},{128,256},{16,32,..,256}>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_F8F6F4_2x1SM_TS<{E4M3,E5M2,E3M2,E2M3,E2M1},{E4M3,E5M2,E3M2,E2M3,E2M1},{F32,F16},{128,256},{32,64,..,256}>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_MXF8F6F4_2x1SM_{SS,SS_SPARSE}<{E4M3,E5M2,E3M2,E2M3,E2M1},{E4M3,E5M2,E3M2,E2M3,E2M1},F32,UE8M0,256,{16,32,..,256},32>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_MXF4_2x1SM_SS<E2M1,E2M1,F32,UE8M0,256,{16,32,..,256},32>", two),
    MmaFamily::derived(Sm100, "SM100_MMA_MXF4_2x1SM_SS<E2M1,E2M1,F32,UE4M3,256,{16,32,..,256},16>", two),
    MmaFamily::derived(Sm103, "SM103_MXF4_ULTRA_2x1SM_SS_VS<E2M1,E2M1,F32,UE8M0,256,{16,32,..,256},32>", two),
    MmaFamily::derived(Sm103, "SM103_MXF4_ULTRA_2x1SM_SS_VS<E2M1,E2M1,F32,UE4M3,256,{16,32,..,256},16>", two),
];

fn one(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    atom(member, 1)
}

fn two(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    atom(member, 2)
}

fn atom(member: &Member<'_>, ctas: i64) -> Result<MmaAtom, AtomError> {
    let types = member.factors_and_sums()?;
    let mut numbers = member.numbers();
    let (Some(m), Some(n)) = (numbers.next(), numbers.next()) else { return Err(member.unknown()) };
    let dense = match types.a.bits() {
        _ if member.has("ULTRA") => 96,
        _ if member.has("MXF4") || member.has("MXF4NVF4") => 64,
        bits => 256 / bits.max(8),
    };
    let k = if member.has("SPARSE") { 2 * dense } else { dense };
    let threads: Layout = format!("{ctas}:{}", ctas - 1).parse()?;
    let operands = [halves(ctas, m, k)?, halves(ctas, n, k)?, halves(ctas, m, n)?];
    MmaAtom::new(member.name, member.arch, [m, n, k], types, threads, operands)
}

/// An operand of `rows` x `columns`; with two CTAs each one has a block of the rows.
fn halves(ctas: i64, rows: i64, columns: i64) -> Result<ThreadValue, AtomError> {
    let own = rows / ctas;
    let step = if ctas == 1 { 0 } else { own };
    Ok(format!("({ctas},({own},{columns})):({step},(1,{rows}))").parse::<Layout>()?.into())
}

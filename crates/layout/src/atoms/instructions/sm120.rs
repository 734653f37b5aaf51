//! Blackwell, warp-wide instructions: floating point in 8, 6 and 4 bits, also block-scaled and
//! sparse.
//!
//! The register layouts are those of Ampere's instructions with 8-bit and 4-bit integers. A thread
//! holds the scale factors of one row of A (row `g` or `g + 8` for group `g` of four threads) and
//! of one column of B, so that two threads have the same scale factors of A, and four the same of
//! B. If A is sparse, K includes the omitted values. The patterns have the types of A, B, the
//! accumulators and the scale factors, and the length of a block along K.
//!
//! (PTX ISA, "Matrix Fragments for mma.m16n8k32" and "m16n8k64", "Block Scaling for mma.sync",
//! "mma.sp"; CuTe `SM120_*`.)

use alloc::format;

use crate::Layout;

use super::warp::{R16X8, THREADS};
use crate::atoms::arch::Arch::Sm120;
use crate::atoms::catalogue::{Member, MmaFamily, MmaRow};
use crate::atoms::error::AtomError;
use crate::atoms::mma::{MmaAtom, Operand};
use crate::atoms::thread_value::ThreadValue;

const DEPTH_32: MmaRow = row("((4,8),(4,2,2)):((64,1),(16,8,256))", "((4,8),(4,2)):((32,1),(8,128))");
const DEPTH_64: MmaRow = row("((4,8),(8,2,2)):((128,1),(16,8,512))", "((4,8),(8,2)):((64,1),(8,256))");
/// 8-bit values; half of the values of A are stored.
const SPARSE_64: MmaRow = row("((4,8),(8,2,2)):((128,1),(16,8,512))", "((4,8),(4,4)):((32,1),(8,128))");
/// 4-bit values; half of the values of A are stored.
const SPARSE_128: MmaRow = row("((4,8),(16,2,2)):((256,1),(16,8,1024))", "((4,8),(8,4)):((64,1),(8,256))");
const METADATA_64: &str = "((2,2,8),32):((8,512,1),16)";
const METADATA_128: &str = "((2,2,8),(64)):((8,1024,1),(16))";

const fn row(a: &'static str, b: &'static str) -> MmaRow {
    MmaRow { threads: THREADS, a, b, c: R16X8 }
}

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::derived(Sm120, "SM120_16x8x32_TN<{E2M1,E3M2,E2M3,E4M3,E5M2},{E2M1,E3M2,E2M3,E4M3,E5M2},{F32,F16}>",
        |member| plain(member, 32, DEPTH_32)),
    MmaFamily::derived(Sm120, "SM120_16x8x32_TN_VS<{E2M1,E3M2,E2M3,E4M3,E5M2},{E2M1,E3M2,E2M3,E4M3,E5M2},F32,UE8M0,32>",
        |member| scaled(plain(member, 32, DEPTH_32)?)),
    MmaFamily::derived(Sm120, "SM120_16x8x64_TN_VS<E2M1,E2M1,F32,UE8M0,32>",
        |member| scaled(plain(member, 64, DEPTH_64)?)),
    MmaFamily::derived(Sm120, "SM120_16x8x64_TN_VS<E2M1,E2M1,F32,UE4M3,16>",
        |member| scaled(plain(member, 64, DEPTH_64)?)),
    MmaFamily::derived(Sm120, "SM120_SPARSE_16x8x64_TN<{E2M1,E3M2,E2M3,E4M3,E5M2},{E2M1,E3M2,E2M3,E4M3,E5M2},{F32,F16}>",
        |member| sparse(plain(member, 64, SPARSE_64)?, METADATA_64)),
    MmaFamily::derived(Sm120, "SM120_SPARSE_16x8x64_TN_VS<{E2M1,E3M2,E2M3,E4M3,E5M2},{E2M1,E3M2,E2M3,E4M3,E5M2},F32,UE8M0,32>",
        |member| scaled(sparse(plain(member, 64, SPARSE_64)?, METADATA_64)?)),
    MmaFamily::derived(Sm120, "SM120_SPARSE_16x8x128_TN_VS<E2M1,E2M1,F32,UE8M0,32>",
        |member| scaled(sparse(plain(member, 128, SPARSE_128)?, METADATA_128)?)),
    MmaFamily::derived(Sm120, "SM120_SPARSE_16x8x128_TN_VS<E2M1,E2M1,F32,UE4M3,16>",
        |member| scaled(sparse(plain(member, 128, SPARSE_128)?, METADATA_128)?)),
];

fn plain(member: &Member<'_>, k: i64, row: MmaRow) -> Result<MmaAtom, AtomError> {
    member.atom([16, 8, k], member.factors_and_sums()?, row)
}

fn sparse(atom: MmaAtom, metadata: &str) -> Result<MmaAtom, AtomError> {
    atom.with(Operand::Metadata, metadata.parse::<Layout>()?.into())
}

/// Adds scale factors, whose layout repeats a factor for each value of its block.
fn scaled(atom: MmaAtom) -> Result<MmaAtom, AtomError> {
    let [_, _, k] = atom.shape();
    let rows: Layout = format!("((2,2,8),{k}):((8,0,1),16)").parse()?;
    let columns: Layout = format!("((4,8),{k}):((0,1),8)").parse()?;
    let atom = atom.with(Operand::ScaleA, ThreadValue::shared(rows, 2))?;
    atom.with(Operand::ScaleB, ThreadValue::shared(columns, 4))
}

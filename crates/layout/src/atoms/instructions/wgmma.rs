//! Hopper's warpgroup instructions: `wgmma`, computed from the name.
//!
//! # Law
//!
//! 128 threads multiply A of 64 x K by B of N x K, where K is the number of values in 32 bytes,
//! twice as many if A is sparse. Warp `w` has rows `16w` to `16w + 15` of the accumulators, as 16x8
//! blocks side by side, each with the layout of the warp-wide instructions. B is in shared memory:
//! all threads access all of it, through a matrix descriptor. A is in shared memory, too (SS), or
//! in registers (RS), as 16x8 blocks of 32-bit registers.
//!
//! (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk*"; CuTe `SM90_64xNxK_*` and
//! `SM90::GMMA::SPARSE::GMMA_64xNxK_*`.)

use alloc::format;

use crate::Layout;
use crate::atoms::arch::Arch::Sm90;
use crate::atoms::catalogue::{Member, MmaFamily};
use crate::atoms::error::AtomError;
use crate::atoms::mma::{MmaAtom, Operand};
use crate::atoms::thread_value::ThreadValue;

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::derived(Sm90, "SM90_64x{8,16,..,256}x16_F16F16F16_{SS,RS}", dense),
    MmaFamily::derived(Sm90, "SM90_64x{8,16,..,256}x16_F32F16F16_{SS,RS}", dense),
    MmaFamily::derived(Sm90, "SM90_64x{8,16,..,256}x16_F32BF16BF16_{SS,RS}", dense),
    MmaFamily::derived(Sm90, "SM90_64x{8,16,..,256}x8_F32TF32TF32_{SS,RS}_TN", dense),
    MmaFamily::derived(Sm90, "SM90_64x{8,16,..,256}x32_{F16,F32}{E4M3,E5M2}{E4M3,E5M2}_{SS,RS}_TN", dense),
    MmaFamily::derived(Sm90, "SM90_64x{8,16,24,32,48,64,80,96,112,128,144,160,176,192,208,224,240,256}x32_S32{S8,U8}{S8,U8}_{SS,RS}_TN{,_SATURATE}", dense),
    MmaFamily::derived(Sm90, "SM90::GMMA::SPARSE::GMMA_64x{8,16,..,256}x32_F16F16F16_{SS,RS}", sparse),
    MmaFamily::derived(Sm90, "SM90::GMMA::SPARSE::GMMA_64x{8,16,..,256}x32_F32F16F16_{SS,RS}", sparse),
    MmaFamily::derived(Sm90, "SM90::GMMA::SPARSE::GMMA_64x{8,16,..,256}x32_F32BF16BF16_{SS,RS}", sparse),
    MmaFamily::derived(Sm90, "SM90::GMMA::SPARSE::GMMA_64x{8,16,..,256}x16_F32TF32TF32_{SS,RS}_TN", sparse),
    MmaFamily::derived(Sm90, "SM90::GMMA::SPARSE::GMMA_64x{8,16,..,256}x64_{F16,F32}{E4M3,E5M2}{E4M3,E5M2}_{SS,RS}_TN", sparse),
    MmaFamily::derived(Sm90, "SM90::GMMA::SPARSE::GMMA_64x{8,16,24,32,48,64,80,96,112,128,144,160,176,192,208,224,240,256}x64_S32{S8,U8}{S8,U8}_{SS,RS}_TN{,_SATURATE}", sparse),
];

/// The number of threads of a warpgroup.
const THREADS: i64 = 128;

fn dense(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    atom(member, 1)
}

fn sparse(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let atom = atom(member, 2)?;
    // The metadata has a row for each row of A, and twice as many columns as are stored; if fewer
    // threads suffice, several threads have the same part.
    let metadata = match atom.types().a.bits() {
        8 => ThreadValue::from("((2,2,8,4),(32)):((8,2048,1,16),(64))".parse::<Layout>()?),
        16 => ThreadValue::shared("((2,2,8,4),(16,2)):((1024,0,1,16),(64,8))".parse()?, 2),
        _ => ThreadValue::shared("((2,2,8,4),(8,2)):((512,0,1,16),(64,8))".parse()?, 2),
    };
    atom.with(Operand::Metadata, metadata)
}

/// The instruction whose K is `density` times the number of values in 32 bytes.
fn atom(member: &Member<'_>, density: i64) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    let [_, n, k] = shape;
    let a = match member.has("RS") {
        true => registers(k, 32 / types.a.bits() * density)?.into(),
        false => described(64, k)?,
    };
    let c: Layout = format!("((4,8,4),(2,2,{})):((128,1,16),(64,8,512))", n / 8).parse()?;
    let threads = Layout::mode_of(THREADS, 1)?;
    MmaAtom::new(member.name, member.arch, shape, types, threads, [a, described(n, k)?, c.into()])
}

/// An operand in shared memory: every thread accesses all of it.
fn described(mn: i64, k: i64) -> Result<ThreadValue, AtomError> {
    Ok(ThreadValue::shared(format!("({THREADS},({mn},{k})):(0,(1,{mn}))").parse()?, THREADS))
}

/// A of 64 x k in registers, with `run` values along K in each register.
fn registers(k: i64, run: i64) -> Result<Layout, AtomError> {
    let (thread, half) = (64 * run, 64 * run * 4);
    let text = match run {
        1 => format!("((4,8,4),(2,{})):(({thread},1,16),(8,{half}))", k / 4),
        _ => format!("((4,8,4),({run},2,{})):(({thread},1,16),(64,8,{half}))", k / (4 * run)),
    };
    Ok(text.parse()?)
}

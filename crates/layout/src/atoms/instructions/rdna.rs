//! AMD graphics processors: `v_wmma_*` of a wave of 32 lanes, dense MMA of 16x16.
//!
//! # Law
//!
//! GFX1100 (RDNA 3), 16x16x16. Lanes `l` and `l + 16` both hold row `l` of A, all 16 values along
//! K, and column `l` of B. Element `(i,j)` of the accumulators is
//!
//! ```text
//! value  i div 2     of lane  j + 16 * (i mod 2)
//! ```
//!
//! GFX1200 (RDNA 4), 16x16x16. No value is held twice: element `(i,k)` of A is
//!
//! ```text
//! value  k mod 8     of lane  i + 16 * (k div 8)      (B likewise, with j)
//! ```
//!
//! and element `(i,j)` of the accumulators is value `i mod 8` of lane `j + 16 * (i div 8)`.
//! Accumulators of 16 bits have the same layout; on GFX1100 each occupies half of a register.
//!
//! (AMD "RDNA3" and "RDNA4 Instruction Set Architecture", "Wave Matrix Multiply Accumulate".)
//!
//! `v_wmma_i32_16x16x32_iu4` of GFX1200 and sparse instructions (`v_swmmac_*`) are not included.
//!
//! The names are the project's own, as for the matrix cores. The types `IU8` and `IU4` of the ISA,
//! whose signedness is an option of the instruction, are written `S8` or `U8`, and `S4` or `U4`.

use crate::Layout;
use crate::atoms::arch::Arch::{Gfx1100, Gfx1200};
use crate::atoms::catalogue::{Member, MmaFamily};
use crate::atoms::error::AtomError;
use crate::atoms::mma::MmaAtom;
use crate::atoms::thread_value::ThreadValue;

const LANES: i64 = 32;

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::derived(Gfx1100, "GFX1100_16x16x16_{F32F16F16F32,F32BF16BF16F32,F16F16F16F16,BF16BF16BF16BF16}", copied),
    MmaFamily::derived(Gfx1100, "GFX1100_16x16x16_S32{S8,U8}{S8,U8}S32", copied),
    MmaFamily::derived(Gfx1100, "GFX1100_16x16x16_S32{S4,U4}{S4,U4}S32", copied),
    MmaFamily::derived(Gfx1200, "GFX1200_16x16x16_{F32F16F16F32,F32BF16BF16F32,F16F16F16F16,BF16BF16BF16BF16}", k_halves),
    MmaFamily::derived(Gfx1200, "GFX1200_16x16x16_F32{E4M3,E5M2}{E4M3,E5M2}F32", k_halves),
    MmaFamily::derived(Gfx1200, "GFX1200_16x16x16_S32{S8,U8}{S8,U8}S32", k_halves),
    MmaFamily::derived(Gfx1200, "GFX1200_16x16x16_S32{S4,U4}{S4,U4}S32", k_halves),
];

/// Both halves of the wave hold the same operand values.
fn copied(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let operand = || Ok::<_, AtomError>(ThreadValue::shared("((16,2),16):((1,0),16)".parse()?, 2));
    product(member, operand()?, operand()?, "((16,2),8):((16,1),2)")
}

/// Each half of the wave holds one half of K.
fn k_halves(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let operand = || Ok::<_, AtomError>("((16,2),8):((1,128),16)".parse::<Layout>()?.into());
    product(member, operand()?, operand()?, "((16,2),8):((16,8),1)")
}

fn product(member: &Member<'_>, a: ThreadValue, b: ThreadValue, sums: &str) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    let threads = Layout::mode_of(LANES, 1)?;
    MmaAtom::new(member.name, member.arch, shape, types, threads, [a, b, sums.parse::<Layout>()?.into()])
}

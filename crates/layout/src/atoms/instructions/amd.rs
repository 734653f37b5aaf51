//! AMD matrix cores: a wave of 64 lanes, `v_mfma_*` of one block.
//!
//! # Law
//!
//! An instruction of `M x N x K` has `P = 64 / M` groups of lanes, side by side along K. With `R =
//! K / P` values of a factor in a lane, element `(i,k)` of A is
//!
//! ```text
//! value  k mod R       of lane  i + M * (k div R)        (B likewise, with j and N)
//! ```
//!
//! and element `(i,j)` of the accumulators, with `H` rows together, 4, or 1 in double precision, is
//!
//! ```text
//! value  i mod H + H * (i div (H*P))     of lane  j + N * ((i div H) mod P)
//! ```
//!
//! Operands of 8 bits in an instruction that takes any of 8, 6 and 4 bits are the exception: their
//! values come in two runs of 16, and the second runs of all lanes follow the first ones:
//! `k = 16*p + v mod 16 + 16*P * (v div 16)`. A lane holds one scale factor for its row and for 32
//! values along K.
//!
//! # Sources
//!
//! * All of it: "AMD Instinct CDNA4 Instruction Set Architecture", "General input and output
//!   layout" (its `K_L` is `R`, its `M_I` is `P` where there is one block), which is stated for
//!   every matrix instruction by shape and type alone, with the tables of `V_MFMA_F64_16X16X4_F64`;
//!   "Dense matrix layouts: 8-bit and smaller" for all of GFX950; "MFMA with block exponent
//!   scaling".
//! * Instruction by instruction: the formulae that the AMD matrix instruction calculator prints for
//!   `v_mfma_f32_32x32x8f16`, `v_mfma_f32_16x16x16f16` and `v_mfma_f32_16x16x32_fp8_fp8`; groups,
//!   lanes and terms as Composable Kernel has them for `v_mfma_f32_32x32x4bf16`,
//!   `v_mfma_i32_32x32x8i8` and `v_mfma_i32_16x16x16i8`, which only older machines have.
//!
//! Instructions of several blocks (`v_mfma_f32_32x32x1_2b_f32`, ..) are several products, not one
//! of larger tiles, and sparse ones (`v_smfmac_*`) take an index; neither is here.
//!
//! The names are the project's: the architecture that has the instruction first, and `D`, `A`, `B`,
//! `C`. `v_mfma_f32_32x32x8_f16` is `GFX908_32x32x8_F32F16F16F32`, XF32 is `TF32`, and types of 8
//! bits are those of the machine. `_SCALED` is with scale factors, `UE8M0`.

use alloc::format;

use crate::Layout;
use crate::atoms::arch::Arch::{Gfx90a, Gfx908, Gfx942, Gfx950};
use crate::atoms::catalogue::{Member, MmaFamily};
use crate::atoms::error::AtomError;
use crate::atoms::mma::{MmaAtom, Operand};
use crate::atoms::value_type::ValueType;

const LANES: i64 = 64;

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
    MmaFamily::derived(Gfx950, "GFX950_{32x32x16,16x16x32}_F32{F16F16,BF16BF16}F32", mfma),
    MmaFamily::derived(Gfx950, "GFX950_{32x32x32,16x16x64}_S32S8S8S32", mfma),
    MmaFamily::derived(Gfx950, "GFX950_{32x32x64,16x16x128}_F32{E4M3,E5M2,E2M3,E3M2,E2M1}{E4M3,E5M2,E2M3,E3M2,E2M1}F32{,_SCALED}", mixed),
];

/// Every factor in one run.
fn mfma(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (shape, _) = member.signature()?;
    matrix_product(member, [run(shape)?, run(shape)?])
}

/// Factors of any of 8, 6 and 4 bits.
fn mixed(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    let factor = |value: ValueType| if value.bits() == 8 { two_runs(shape) } else { run(shape) };
    let atom = matrix_product(member, [factor(types.a)?, factor(types.b)?])?;
    match member.has("SCALED") {
        // Each value has its scale factor: the values of a run share one.
        true => atom.with(Operand::ScaleA, run(shape)?.into())?.with(Operand::ScaleB, run(shape)?.into()),
        false => Ok(atom),
    }
}

fn matrix_product(member: &Member<'_>, [a, b]: [Layout; 2]) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    let [rows, columns, _] = shape;
    let parts = LANES / columns;
    let together = if types.d == ValueType::F64 { 1 } else { 4 };
    let groups = rows / (together * parts);
    let step = together * parts;
    let sums: Layout =
        format!("(({columns},{parts}),({together},{groups})):(({rows},{together}),(1,{step}))").parse()?;
    let threads = Layout::mode_of(LANES, 1)?;
    MmaAtom::new(member.name, member.arch, shape, types, threads, [a.into(), b.into(), sums.into()])
}

/// `R` values along K in a lane.
fn run([rows, _, k]: [i64; 3]) -> Result<Layout, AtomError> {
    let parts = LANES / rows;
    let run = k / parts;
    Ok(format!("(({rows},{parts}),{run}):((1,{}),{rows})", rows * run).parse()?)
}

/// Two runs of 16 values along K in a lane.
fn two_runs([rows, _, _]: [i64; 3]) -> Result<Layout, AtomError> {
    let parts = LANES / rows;
    Ok(format!("(({rows},{parts}),(16,2)):((1,{}),({rows},{}))", 16 * rows, 16 * parts * rows).parse()?)
}

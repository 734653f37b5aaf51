//! AMD matrix cores: a wave of 64 lanes, `v_mfma_*` of one block.
//!
//! # Law
//!
//! In an instruction of `M x N x K`, `P = 64 / M` groups of lanes are side by side along K. A lane
//! holds `R = K / P` values of an operand. Element `(i,k)` of A is
//!
//! ```text
//! value  k mod R       of lane  i + M * (k div R)        (B likewise, with j and N)
//! ```
//!
//! and element `(i,j)` of the accumulators is, with `H` consecutive rows in a lane (4, or 1 in
//! double precision),
//!
//! ```text
//! value  i mod H + H * (i div (H*P))     of lane  j + N * ((i div H) mod P)
//! ```
//!
//! 8-bit operands of an instruction that accepts 8, 6 and 4 bits are an exception: the values of a
//! lane are two runs of 16, and along K the second runs of all lanes follow the first runs:
//! `k = 16*p + v mod 16 + 16*P * (v div 16)`. A lane holds one scale factor for its row and for 32
//! values along K.
//!
//! # Sources
//!
//! * For all instructions: "AMD Instinct CDNA4 Instruction Set Architecture", "General input and
//!   output layout" (its `K_L` is `R`, its `M_I` is `P` where there is one block), which is stated
//!   for every matrix instruction by shape and type alone, with the tables of
//!   `V_MFMA_F64_16X16X4_F64`; "Dense matrix layouts: 8-bit and smaller" for all of GFX950; "MFMA
//!   with block exponent scaling".
//! * For single instructions: the formulae that the AMD matrix instruction calculator prints for
//!   `v_mfma_f32_32x32x8f16`, `v_mfma_f32_16x16x16f16` and `v_mfma_f32_16x16x32_fp8_fp8`; the
//!   groups, lanes and terms in Composable Kernel for `v_mfma_f32_32x32x4bf16`,
//!   `v_mfma_i32_32x32x8i8` and `v_mfma_i32_16x16x16i8`, which only older architectures have.
//!
//! Instructions of several blocks (`v_mfma_f32_32x32x1_2b_f32`, ..) compute several products rather
//! than one of a larger tile, and sparse instructions (`v_smfmac_*`) take an index; neither is
//! included.
//!
//! The names are the project's own: the first architecture that has the instruction, the shape, and
//! the types of `D`, `A`, `B`, `C`. `v_mfma_f32_32x32x8_f16` is `GFX908_32x32x8_F32F16F16F32`, XF32
//! is `TF32`, and 8-bit types are those of the architecture. `_SCALED` means with scale factors of
//! type `UE8M0`.

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

/// The values of each operand are one run along K.
fn mfma(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (shape, _) = member.signature()?;
    matrix_product(member, [run(shape)?, run(shape)?])
}

/// Operands of 8, 6 or 4 bits.
fn mixed(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    let factor = |value: ValueType| if value.bits() == 8 { two_runs(shape) } else { run(shape) };
    let atom = matrix_product(member, [factor(types.a)?, factor(types.b)?])?;
    match member.has("SCALED") {
        // The layout repeats a scale factor for each value of a run.
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

/// The layout of an operand with `R` values along K in a lane.
fn run([rows, _, k]: [i64; 3]) -> Result<Layout, AtomError> {
    let parts = LANES / rows;
    let run = k / parts;
    Ok(format!("(({rows},{parts}),{run}):((1,{}),{rows})", rows * run).parse()?)
}

/// The layout of an operand with two runs of 16 values along K in a lane.
fn two_runs([rows, _, _]: [i64; 3]) -> Result<Layout, AtomError> {
    let parts = LANES / rows;
    Ok(format!("(({rows},{parts}),(16,2)):((1,{}),({rows},{}))", 16 * rows, 16 * parts * rows).parse()?)
}

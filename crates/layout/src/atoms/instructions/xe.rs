//! Intel Xe: `dpas`, by a sub-group of 16 work-items.
//!
//! # Law
//!
//! The shape is `M x 16 x K`, with M from 1 to 8 and K the number of values in 32 bytes. Each
//! work-item has one column of the accumulators: element `(i,j)` is value `i` of work-item `j`. The
//! operands are in registers in the order in which the instruction reads them: A row by row, B with
//! the values along K that fit in 32 bits side by side. The work-item that holds a value depends on
//! how the registers are distributed, which the names of CuTe distinguish:
//!
//! * `XE_MxNxK_*_TT`: in units of 16 bits of A, and of 32 bits of B. So work-item `j` has column
//!   `j` of B; with values of 32 bits, rows of A take half of the work-items.
//! * `XE_DPAS_TT<M,D,A,B,C>`: value by value, or byte by byte if two values share a byte. Value `v`
//!   of work-item `t` is number `t + 16*v` of the register.
//! * `XE_DPAS_NN<N,D,A,B,C>`: the same with A and B, rows and columns exchanged.
//!
//! (Intel, "dpas" of the vISA specification; `cl_intel_subgroup_matrix_multiply_accumulate`; CuTe
//! for SYCL, `XE_*`.)

use alloc::format;

use crate::Layout;
use crate::atoms::arch::Arch::Xe;
use crate::atoms::catalogue::{Member, MmaFamily};
use crate::atoms::error::AtomError;
use crate::atoms::mma::{MmaAtom, MmaTypes};

/// The number of work-items of a sub-group.
const ITEMS: i64 = 16;

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::derived(Xe, "XE_{1,2,4,8}x16x16_{F32BF16BF16F32,F32F16F16F32}_TT", words),
    MmaFamily::derived(Xe, "XE_{1,2,4,8}x16x32_{S32S8S8S32,S32U8U8S32}_TT", words),
    MmaFamily::derived(Xe, "XE_{2,4,8}x16x8_F32TF32TF32F32_TT", words),
    MmaFamily::derived(Xe, "XE_DPAS_TT<{1,2,..,8},{F32,BF16},BF16,BF16,{F32,BF16}>", values),
    MmaFamily::derived(Xe, "XE_DPAS_TT<{1,2,..,8},{F32,F16},F16,F16,{F32,F16}>", values),
    MmaFamily::derived(Xe, "XE_DPAS_TT<{2,4,..,8},F32,TF32,TF32,F32>", values),
    MmaFamily::derived(Xe, "XE_DPAS_TT<{1,2,..,8},S32,{S8,U8,S4,U4},{S8,U8,S4,U4},S32>", values),
    MmaFamily::derived(Xe, "XE_DPAS_NN<{1,2,..,8},{F32,BF16},BF16,BF16,{F32,BF16}>", exchanged),
    MmaFamily::derived(Xe, "XE_DPAS_NN<{1,2,..,8},{F32,F16},F16,F16,{F32,F16}>", exchanged),
    MmaFamily::derived(Xe, "XE_DPAS_NN<{2,4,..,8},F32,TF32,TF32,F32>", exchanged),
    MmaFamily::derived(Xe, "XE_DPAS_NN<{1,2,..,8},S32,{S8,U8,S4,U4},{S8,U8,S4,U4},S32>", exchanged),
];

/// Registers distributed in words of 16 bits for A and of 32 bits for B.
fn words(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    let [m, n, k] = shape;
    let a: Layout = match types.a.bits() {
        // Eight work-items share a row.
        32 => format!("((8,2),{}):(({m},1),2)", m / 2).parse()?,
        bits => {
            let run = 16 / bits;
            format!("({ITEMS},({run},{m})):({},({m},1))", m * run).parse()?
        }
    };
    let b: Layout = format!("({ITEMS},{k}):(1,{n})").parse()?;
    let sums = sums(m)?;
    MmaAtom::new(member.name, member.arch, shape, types, Layout::mode_of(ITEMS, 1)?, [a.into(), b.into(), sums.into()])
}

fn sums(m: i64) -> Result<Layout, AtomError> {
    Ok(format!("({ITEMS},{m}):({m},1)").parse()?)
}

/// The arguments of a name: the number of rows, the types, and K.
fn arguments(member: &Member<'_>) -> Result<(i64, MmaTypes, i64), AtomError> {
    let rows = member.numbers().next().ok_or_else(|| member.unknown())?;
    let types = member.result_and_operands_behind(1)?;
    Ok((rows, types, 256 / types.a.bits().max(types.b.bits()).max(1)))
}

/// The operands in register order: A of this many rows, row by row, and B with the values that fit
/// in 32 bits side by side along K.
fn factors(rows: i64, depth: i64, a_bits: i64, b_bits: i64) -> Result<[Layout; 2], AtomError> {
    let row_by_row: Layout = format!("({depth},{rows}):({rows},1)").parse()?;
    let together = 32 / b_bits;
    let blocks: Layout =
        format!("({together},{ITEMS},{}):({ITEMS},1,{})", depth / together, ITEMS * together).parse()?;
    Ok([distributed(&row_by_row, a_bits)?, distributed(&blocks, b_bits)?])
}

/// The values of a register, distributed over the work-items.
fn distributed(register: &Layout, bits: i64) -> Result<Layout, AtomError> {
    let bytes = (8 / bits).max(1);
    let values = register.size() / ITEMS;
    let items: Layout = format!("({ITEMS},({bytes},{})):({bytes},(1,{}))", values / bytes, ITEMS * bytes).parse()?;
    Ok(register.compose(&items)?)
}

/// Registers distributed value by value.
fn values(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (rows, types, depth) = arguments(member)?;
    let [a, b] = factors(rows, depth, types.a.bits(), types.b.bits())?;
    let shape = [rows, ITEMS, depth];
    let threads = Layout::mode_of(ITEMS, 1)?;
    MmaAtom::new(member.name, member.arch, shape, types, threads, [a.into(), b.into(), sums(rows)?.into()])
}

/// The same as `values` with rows and columns exchanged.
fn exchanged(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (columns, types, depth) = arguments(member)?;
    let [b, a] = factors(columns, depth, types.b.bits(), types.a.bits())?;
    let shape = [ITEMS, columns, depth];
    let threads = Layout::mode_of(ITEMS, 1)?;
    let sums: Layout = format!("({ITEMS},{columns}):(1,{ITEMS})").parse()?;
    MmaAtom::new(member.name, member.arch, shape, types, threads, [a.into(), b.into(), sums.into()])
}

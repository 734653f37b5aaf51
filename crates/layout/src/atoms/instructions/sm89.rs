//! Ada, warp-wide instructions: floating point in 8 bits. (PTX ISA, "Matrix Fragments for
//! mma.m16n8k32"; CuTe `SM89_*`.)

use super::warp::{R16X8, THREADS};
use crate::atoms::arch::Arch::Sm89;
use crate::atoms::catalogue::{MmaFamily, MmaRow};

const ROW: MmaRow = MmaRow {
    threads: THREADS,
    a: "((4,8),(4,2,2)):((64,1),(16,8,256))",
    b: "((4,8),(4,2)):((32,1),(8,128))",
    c: R16X8,
};

pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::row(Sm89, "SM89_16x8x32_F32{E4M3,E5M2}{E4M3,E5M2}F32_TN", ROW),
    MmaFamily::row(Sm89, "SM89_16x8x32_F16{E4M3,E5M2}{E4M3,E5M2}F16_TN", ROW),
];

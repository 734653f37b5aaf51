//! Hopper, warp-wide instructions: double precision. (PTX ISA, "Matrix Fragments for mma.m16n8k4,
//! m16n8k8, and m16n8k16 with .f64"; CuTe `SM90_16x8x*`.)

use super::warp::{R8X4, R16X8, THREADS};
use crate::atoms::arch::Arch::Sm90;
use crate::atoms::catalogue::{MmaFamily, MmaRow};

const fn row(a: &'static str, b: &'static str) -> MmaRow {
    MmaRow { threads: THREADS, a, b, c: R16X8 }
}

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::row(Sm90, "SM90_16x8x4_{F64F64F64F64,C64C64C64C64}_TN",
        row("((4,8),2):((16,1),8)", R8X4)),
    MmaFamily::row(Sm90, "SM90_16x8x8_{F64F64F64F64,C64C64C64C64}_TN",
        row("((4,8),(2,2)):((16,1),(8,64))", "((4,8),2):((8,1),32)")),
    MmaFamily::row(Sm90, "SM90_16x8x16_{F64F64F64F64,C64C64C64C64}_TN",
        row("((4,8),(2,4)):((16,1),(8,64))", "((4,8),4):((8,1),32)")),
];

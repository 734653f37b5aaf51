//! Turing, warp-wide instructions. (PTX ISA, "Matrix Fragments for mma.m16n8k8", "mma.m8n8k16";
//! CuTe `SM75_*`.)

use super::warp::{R8X8, R8X16, R16X8, THREADS};
use crate::atoms::arch::Arch::Sm75;
use crate::atoms::catalogue::{MmaFamily, MmaRow};

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::row(Sm75, "SM75_16x8x8_{F32F16F16F32,F16F16F16F16}_TN",
        MmaRow { threads: THREADS, a: R16X8, b: R8X8, c: R16X8 }),
    MmaFamily::row(Sm75, "SM75_8x8x16_S32S8S8S32_TN",
        MmaRow { threads: THREADS, a: R8X16, b: R8X16, c: R8X8 }),
];

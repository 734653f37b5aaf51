//! Volta, instructions of a quad pair: eight threads. (PTX ISA, "Matrix Fragments for mma.m8n8k4";
//! CuTe `SM70_8x8x4_*`.)
//!
//! The last two letters give the memory order of A and B: T is K-major (A row-major, B
//! column-major), N is the other order.

use crate::atoms::arch::Arch::Sm70;
use crate::atoms::catalogue::{MmaFamily, MmaRow};

/// Threads 0 to 3 and 16 to 19.
const QUAD_PAIR: &str = "(4,2):(1,16)";
/// An operand with one row for each thread: four values along K.
const ALONG_K: &str = "(8,4):(1,8)";
/// An operand with four values along M or N for each thread.
const ACROSS: &str = "((4,2),4):((8,4),1)";
/// Accumulators of 16 bits: a thread has a row.
const SUMS_16: &str = "(8,8):(1,8)";
/// Accumulators of 32 bits: a thread has a 2x2 block in each quarter of four columns, in rows 2
/// apart.
const SUMS_32: &str = "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))";

const fn row(a: &'static str, b: &'static str, c: &'static str) -> MmaRow {
    MmaRow { threads: QUAD_PAIR, a, b, c }
}

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::row(Sm70, "SM70_8x8x4_F16F16F16F16_TN", row(ALONG_K, ALONG_K, SUMS_16)),
    MmaFamily::row(Sm70, "SM70_8x8x4_F16F16F16F16_NT", row(ACROSS,  ACROSS,  SUMS_16)),
    MmaFamily::row(Sm70, "SM70_8x8x4_F16F16F16F16_NN", row(ACROSS,  ALONG_K, SUMS_16)),
    MmaFamily::row(Sm70, "SM70_8x8x4_F16F16F16F16_TT", row(ALONG_K, ACROSS,  SUMS_16)),
    MmaFamily::row(Sm70, "SM70_8x8x4_F32F16F16F32_TN", row(ALONG_K, ALONG_K, SUMS_32)),
    MmaFamily::row(Sm70, "SM70_8x8x4_F32F16F16F32_NT", row(ACROSS,  ACROSS,  SUMS_32)),
    MmaFamily::row(Sm70, "SM70_8x8x4_F32F16F16F32_NN", row(ACROSS,  ALONG_K, SUMS_32)),
    MmaFamily::row(Sm70, "SM70_8x8x4_F32F16F16F32_TT", row(ALONG_K, ACROSS,  SUMS_32)),
];

//! `ldmatrix` and `stmatrix`: copies of 8x8 matrices between shared memory and the registers of a
//! warp.
//!
//! Each thread provides the address of a row of 128 bits; if there are fewer rows than threads,
//! several threads share a row. A plain load gives each thread 32 bits of a row of each matrix, a
//! transposing load elements of a column.

use super::{CopyFamily, CopyRow, CopyRule};
use crate::atoms::arch::Arch::{self, Sm75, Sm90, Sm100};
use crate::atoms::terms::CopyEnd;

/// One end as text, and the number of threads that share the same bits there.
type End = (&'static str, i64);

// The end in shared memory: the row of each thread, for one, two and four matrices.
const ROWS_1: End = ("((8,4),128):((128,0),1)", 4);
const ROWS_2: End = ("((16,2),128):((128,0),1)", 2);
const ROWS_4: End = ("(32,128):(128,1)", 1);
/// Two matrices of bytes: pairs of rows, one row from each matrix.
const ROWS_BYTES_2: End = ("((2,2,4,2),128):((128,1024,256,0),1)", 2);
const ROWS_BYTES_4: End = ("((2,2,4,2),128):((128,1024,256,2048),1)", 1);

// The end in registers.
const PLAIN_1: End = ("(32,32):(32,1)", 1);
const PLAIN_2: End = ("(32,(32,2)):(32,(1,1024))", 1);
const PLAIN_4: End = ("(32,(32,4)):(32,(1,1024))", 1);
const TRANSPOSED_1: End = ("((4,8),(16,2)):((256,16),(1,128))", 1);
const TRANSPOSED_2: End = ("((4,8),(16,2,2)):((256,16),(1,128,1024))", 1);
const TRANSPOSED_4: End = ("((4,8),(16,2,4)):((256,16),(1,128,1024))", 1);
const BYTES_2: End = ("((4,8),(8,2,2,2)):((256,8),(1,128,64,1024))", 1);
const BYTES_4: End = ("((4,8),(8,2,2,4)):((256,8),(1,128,64,1024))", 1);

const fn load(arch: Arch, pattern: &'static str, source: End, destination: End) -> CopyFamily {
    let row = CopyRow { threads: 32, source, destination, reference: CopyEnd::Destination };
    CopyFamily::new(arch, pattern, CopyRule::Row(row))
}

const fn store(arch: Arch, pattern: &'static str, source: End, destination: End) -> CopyFamily {
    let row = CopyRow { threads: 32, source, destination, reference: CopyEnd::Source };
    CopyFamily::new(arch, pattern, CopyRule::Row(row))
}

#[rustfmt::skip]
pub(super) const FAMILIES: &[CopyFamily] = &[
    load(Sm75, "SM75_U32x1_LDSM_N", ROWS_1, PLAIN_1),
    load(Sm75, "SM75_U32x2_LDSM_N", ROWS_2, PLAIN_2),
    load(Sm75, "SM75_U32x4_LDSM_N", ROWS_4, PLAIN_4),
    load(Sm75, "SM75_U16x2_LDSM_T", ROWS_1, TRANSPOSED_1),
    load(Sm75, "SM75_U16x4_LDSM_T", ROWS_2, TRANSPOSED_2),
    load(Sm75, "SM75_U16x8_LDSM_T", ROWS_4, TRANSPOSED_4),
    load(Sm75, "SM75_U32x1_MOVM_T", PLAIN_1, TRANSPOSED_1),
    store(Sm90, "SM90_U32x1_STSM_N", PLAIN_1, ROWS_1),
    store(Sm90, "SM90_U32x2_STSM_N", PLAIN_2, ROWS_2),
    store(Sm90, "SM90_U32x4_STSM_N", PLAIN_4, ROWS_4),
    store(Sm90, "SM90_U16x2_STSM_T", TRANSPOSED_1, ROWS_1),
    store(Sm90, "SM90_U16x4_STSM_T", TRANSPOSED_2, ROWS_2),
    store(Sm90, "SM90_U16x8_STSM_T", TRANSPOSED_4, ROWS_4),
    load(Sm100, "SM100_U8x8_LDSM_T", ROWS_BYTES_2, BYTES_2),
    load(Sm100, "SM100_U8x16_LDSM_T", ROWS_BYTES_4, BYTES_4),
    load(Sm100, "SM100_SU{4,6}_DU8x16_x1_LDSM_N", ROWS_1, PLAIN_1),
    load(Sm100, "SM100_SU{4,6}_DU8x16_x2_LDSM_N", ROWS_2, PLAIN_2),
    load(Sm100, "SM100_SU{4,6}_DU8x16_x4_LDSM_N", ROWS_4, PLAIN_4),
    store(Sm100, "SM100_U8x8_STSM_T", BYTES_2, ROWS_BYTES_2),
    store(Sm100, "SM100_U8x16_STSM_T", BYTES_4, ROWS_BYTES_4),
];

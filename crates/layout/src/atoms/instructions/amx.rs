//! Intel AMX: tiles of 16 rows of 64 bytes, one thread.
//!
//! Law: the values are in the order of a tile register, row after row. A row of the A tile is a row
//! of the matrix. A row of the B tile has, for each column, the values along K that one dot product
//! multiplies: four of 8 bits or two of 16 bits. A row of the accumulator tile is a row of the
//! matrix.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "Operation" of
//! `TDPBSSD`, `TDPBSUD`, `TDPBUSD`, `TDPBUUD` and `TDPBF16PS`: dword `k` of row `m` of the first
//! tile is multiplied, part by part, by dword `n` of row `k` of the second and added to dword `n`
//! of row `m`. `TDPFP16PS` uses pairs like `TDPBF16PS`. A test runs this operation on tiles with
//! these layouts.

use crate::atoms::arch::Arch::Amx;
use crate::atoms::catalogue::{MmaFamily, MmaRow};

#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::row(Amx, "AMX_16x16x64_S32{S8,U8}{S8,U8}S32",
        MmaRow { threads: "1:0", a: "(1,(64,16)):(0,(16,1))", b: "(1,(4,16,16)):(0,(16,1,64))", c: "(1,(16,16)):(0,(16,1))" }),
    MmaFamily::row(Amx, "AMX_16x16x32_{F32BF16BF16F32,F32F16F16F32}",
        MmaRow { threads: "1:0", a: "(1,(32,16)):(0,(16,1))", b: "(1,(2,16,16)):(0,(16,1,32))", c: "(1,(16,16)):(0,(16,1))" }),
];

//! Loads and stores of tensor memory (Blackwell): layouts computed from the name.
//!
//! A warp copies 16 or 32 rows (datapaths) of tensor memory, each of the number of bits in the
//! name, `n` times. The tensor-memory end is the whole block for all threads. The register end of a
//! load is given below, and a store is the inverse.
//!
//! `tcgen05.cp` copies from shared memory: one thread issues it, for its own CTA or for a pair,
//! with the numbers of rows and bits in the name. `4x32dp` writes its 32 rows to four groups of 32:
//! the block is everything that is written, and the source is the first quarter of it, four times.
//! The layouts do not include the address in tensor memory of a bit of the block. `2x64dp` has two
//! orders that differ only in these addresses, and is not included.

use alloc::format;

use super::{CopyFamily, CopyRule};
use crate::atoms::arch::Arch::Sm100;
use crate::atoms::error::AtomError;
use crate::atoms::thread_value::ThreadValue;

/// A load from a block of `bits` bits into these registers.
fn load(bits: i64, registers: &str) -> Result<[ThreadValue; 2], AtomError> {
    let all = ThreadValue::shared(format!("(32,{bits}):(0,1)").parse()?, 32);
    Ok([all, ThreadValue::shared(registers.parse()?, 1)])
}

const fn family(
    pattern: &'static str,
    after: &'static str,
    rule: fn(i64) -> Result<[ThreadValue; 2], AtomError>,
) -> CopyFamily {
    CopyFamily::new(Sm100, pattern, CopyRule::Repeated(after, rule))
}

const fn from_shared(
    pattern: &'static str,
    source: &'static str,
    destination: &'static str,
    copies: i64,
) -> CopyFamily {
    CopyFamily::new(Sm100, pattern, CopyRule::Multiplied(source, destination, copies))
}

#[rustfmt::skip]
pub(super) const FAMILIES: &[CopyFamily] = &[
    family("SM100_TMEM_{LOAD,STORE}_16dp256b{1,2,4,8,16,32}x", "16dp256b",
        |n| load(4096 * n, &format!("((4,8),(64,2,{n})):((64,{}),(1,{},256))", 256 * n, 2048 * n))),
    family("SM100_TMEM_{LOAD,STORE}_16dp128b{1,2,4,8,16,32,64}x", "16dp128b",
        |n| load(2048 * n, &format!("((4,8),(32,2,{n})):((32,{}),(1,{},128))", 128 * n, 1024 * n))),
    family("SM100_TMEM_{LOAD,STORE}_16dp64b{1,2,4,8,16,32,64,128}x", "16dp64b",
        |n| load(1024 * n, &format!("((2,2,8),(32,{n})):(({},32,{}),(1,64))", 512 * n, 64 * n))),
    family("SM100_TMEM_{LOAD,STORE}_16dp32b{1,2,4,8,16,32,64,128}x", "16dp32b",
        |n| load(1024 * n, &format!("((16,2),{}):(({},{}),1)", 32 * n, 64 * n, 32 * n))),
    family("SM100_TMEM_{LOAD,STORE}_32dp32b{1,2,4,8,16,32,64,128}x", "32dp32b",
        |n| load(1024 * n, &format!("(32,{}):({},1)", 32 * n, 32 * n))),
    from_shared("SM100_UTCCP_128dp256bit_{1,2}cta", "(1,32768):(0,1)", "(1,32768):(0,1)", 1),
    from_shared("SM100_UTCCP_128dp128bit_{1,2}cta", "(1,16384):(0,1)", "(1,16384):(0,1)", 1),
    from_shared("SM100_UTCCP_4dp256bit_{1,2}cta", "(1,1024):(0,1)", "(1,1024):(0,1)", 1),
    from_shared("SM100_UTCCP_4x32dp128bit_{1,2}cta", "(1,(32,128,4)):(0,(1,32,0))", "(1,16384):(0,1)", 4),
];

//! The functions that instructions compute, from bits to bits, without an engine.
//!
//! Each function is total: it has a result for all bits, and never panics. A file begins with the
//! law of its instructions. Functions of one lane are small and inline, so that a loop over the
//! lanes of a warp becomes vector instructions. Functions of a warp take registers as arrays with a
//! value for each lane.
//!
//! * [`integer`], [`bits`]: integers of 16, 32 and 64 bits, and their bits.
//! * [`compare`]: comparisons, and selections by them.
//! * [`mod@format`]: binary floating-point formats, exact numbers, and rounding.
//! * [`float`]: f32 and f64 with all roundings; [`approximate`]: `.approx`.
//! * [`half`]: f16 and bf16, alone and in pairs.
//! * [`convert`]: `cvt` between all types.
//! * [`mma`]: `mma.sync` of all types and shapes; [`wgmma`]: matrix products of warpgroups;
//!   [`mma::sparse`]: both with a sparse A; [`wmma`]; [`tensor_core`]: how accumulators are
//!   rounded; [`matrices`]: `ldmatrix`, `stmatrix` and `movmatrix`.
//! * [`video`]: two or four numbers in a register; [`mbarrier`]: barriers in shared memory;
//!   [`tensor_map`]: the bytes that a bulk copy of a box moves.
//!
//! Sources: PTX ISA 8.8, "Integer Arithmetic Instructions" to "Warp Level Matrix
//! Multiply-Accumulate Instructions". If it leaves a result open, the law says what this crate
//! computes.

pub mod approximate;
pub mod bits;
pub mod compare;
pub mod convert;
pub mod float;
pub mod format;
pub mod half;
pub mod integer;
pub mod matrices;
pub mod mbarrier;
pub mod mma;
pub mod tensor_core;
pub mod tensor_map;
pub mod video;
pub mod wgmma;
pub mod wmma;

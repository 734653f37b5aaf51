//! What instructions compute: bits in, bits out, without an engine.
//!
//! Each function is total: it has a result for all bits, and panics for none. A file opens with the
//! law of its instructions. Functions of one lane are small and inline, so that a loop over the
//! lanes of a warp, written once for each operation, becomes vector instructions; functions of a
//! warp take registers as arrays with a value for each lane.
//!
//! * [`integer`], [`bits`]: integers of 16, 32 and 64 bits, and their bits.
//! * [`compare`]: comparisons of numbers, and what selects by them.
//! * [`mod@format`]: binary floating-point formats, exact numbers, and how they are rounded.
//! * [`float`]: f32 and f64 with all roundings; [`approximate`]: `.approx`.
//! * [`half`]: f16 and bf16, alone and in pairs.
//! * [`convert`]: `cvt` between all types.
//! * [`mma`]: `mma.sync` of all types and shapes; [`wgmma`]: those of warpgroups;
//!   [`mma::sparse`]: both with an A that is half zeros; [`wmma`]; [`tensor_core`]: how their sums
//!   are rounded; [`matrices`]: `ldmatrix` and its like.
//! * [`video`]: two or four numbers in a register; [`mbarrier`]: barriers in shared memory;
//!   [`tensor_map`]: which bytes a copy of a box moves.
//!
//! Sources: PTX ISA 8.8, "Integer Arithmetic Instructions" to "Warp Level Matrix
//! Multiply-Accumulate Instructions". Where it leaves a result open, the law says what is chosen.

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

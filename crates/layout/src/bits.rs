//! Maps of numbers that are linear over bits.
//!
//! Law: `M(x ^ y) = M(x) ^ M(y)`. A matrix is the general map; a swizzle and a `bit_xor` are named
//! families of them.

pub(crate) mod bit_xor;
pub(crate) mod matrix;
pub(crate) mod space;
pub(crate) mod swizzle;

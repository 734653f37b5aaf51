//! What instructions compute, against oracles that share no code with the library.

mod bits;
mod convert;
mod float;
mod half;
mod integer;
mod matrix;
mod mbarrier;
pub(crate) mod random;
mod sparse;
mod sums;
mod tensor_map;
mod wgmma;
mod wmma;

//! Moving bytes: what the tiles of a plan are done with.
//!
//! # Invariant
//!
//! Every function here is given a source, a destination and tables of byte offsets from them. For each pair of offsets that its description names, the
//! bytes read are inside the memory that the source was borrowed from, and the bytes written inside that of the destination, which nobody else
//! uses meanwhile. The two do not overlap. Pointers are moved by wrapping arithmetic, so that only those that are used need to be inside.
//!
//! Reason for unsafe code: vector instructions, stores past the caches, and no comparison for each element.
#![allow(unsafe_code)]

mod caches;
mod instructions;
mod moves;
mod nontemporal;
pub(crate) mod square;
mod transpose;

pub(crate) use caches::l2_bytes;
pub use instructions::Instructions;
pub(crate) use instructions::{has_avx2_fma, has_avx512_bf16, has_avx512_products, has_avx512_vbmi, has_avx512_vnni};
pub(crate) use moves::{Rectangle, copy_bytes, copy_pairs, copy_run, splat};
pub(crate) use nontemporal::{fence, stream_run, stream_units};
pub(crate) use transpose::{
    Edge, Line, Pieces, Rows, Scratch, Stores, Stripe, TURNED, fetch, stripes_ahead, transpose, transpose_turned,
};

//! The processor: its instructions and caches, and what is done with vector registers.
//!
//! Law: each function computes the same whatever the instructions; they decide only how fast.
//! `instructions` and `caches` ask the processor, `moves` copies runs of bytes, `nontemporal`
//! writes past the caches, `transpose` transposes stripes of bytes for copies, and `square` squares
//! of words for packing.
//!
//! # Invariant
//!
//! Every function that moves bytes is given a source, a destination and tables of byte offsets from
//! them. For each pair of offsets that its description names, the bytes read lie in the memory that
//! the source was borrowed from, and the bytes written in that of the destination, which nobody
//! else uses meanwhile. The two do not overlap. Pointers are moved by wrapping arithmetic, so that
//! only those that are used have to lie inside.
//!
//! Reason for unsafe code: vector instructions, non-temporal stores, and no comparison for each
//! element.
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
    CacheLine, Edge, PERMUTED_BUFFER, Pieces, Scratch, Stores, Stripe, StripeRows, prefetch, stripes_ahead, transpose,
    transpose_permuted,
};

//! The processor: its instructions and caches, and operations on vector registers.
//!
//! Law: each function has the same result with any instructions; they affect speed only.
//! `instructions` and `caches` query the processor, `moves` copies runs of bytes, `nontemporal`
//! writes past the caches, `transpose` transposes stripes of bytes for copies, and `square`
//! transposes squares of words for packing.
//!
//! # Invariant
//!
//! Every function that moves bytes is given a source, a destination and tables of byte offsets from
//! them. For each pair of offsets in its description, the bytes read are in the memory that the
//! source was borrowed from. The bytes written are in the memory of the destination, which nobody
//! else uses meanwhile. The two do not overlap. Pointers are moved by wrapping arithmetic, so that
//! only pointers that are dereferenced must be inside.
//!
//! Reason for unsafe code: vector instructions, non-temporal stores, and element accesses without
//! bounds checks.
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

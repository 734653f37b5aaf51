//! Transposes of stripes in registers.
//!
//! Law: that of [`Stripe`], whatever the instructions.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod network;
mod permuted;
mod portable;
mod stripe;

use super::has_avx512_vbmi;
use super::instructions::Instructions;
pub(crate) use permuted::{PERMUTED_BUFFER, Pieces, transpose_permuted};
pub(crate) use stripe::{CacheLine, Edge, Scratch, Stores, Stripe, StripeRows, prefetch, stripes_ahead};

/// Transposes a stripe of elements of `bytes` bytes: 1, 2, 4 or 8.
///
/// # Safety
/// The law of [`Stripe`], for memory that may be read and written; the invariant of its stores; and
/// a processor with the instructions.
pub(crate) unsafe fn transpose(stripe: &Stripe<'_>, bytes: usize, instructions: Instructions, scratch: &mut Scratch) {
    // SAFETY: the caller vouches for the stripe and the instructions; VBMI has just been asked for.
    unsafe {
        match instructions {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 if bytes == 1 && has_avx512_vbmi() => avx512::bytes::stripe(stripe, bytes, scratch),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => avx512::stripe(stripe, bytes, scratch),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => avx2::stripe(stripe, bytes, scratch),
            _ => portable::stripe(stripe, bytes, scratch),
        }
    }
}
